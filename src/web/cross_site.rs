//! Refuses what another site makes a browser send: pages here change things by POST alone, and
//! cookies go along with whatever a browser sends. `Sec-Fetch-Site` says where a request comes from;
//! a browser that does not send it sends `Origin` (OWASP, Cross-Site Request Forgery Prevention).

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::error::ApiError;
use crate::web::error::PageError;

/// Lets requests pass that read, and those that a page of ours sent.
pub async fn refuse(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if reads || is_ours(request.headers()) {
        return next.run(request).await;
    }
    PageError::from(ApiError::CrossSite).into_response()
}

/// Whether a page of ours sent the request, as the browser tells it. One that tells nothing is
/// refused: every browser tells one of the two with a POST.
pub fn is_ours(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-site") {
        Some(site) => site == "same-origin",
        None => origin_is_host(headers),
    }
}

fn origin_is_host(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else { return false };
    origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
}
