//! Refuses what another site makes a browser send: pages here change things by POST alone, and
//! cookies go along with whatever a browser sends.

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::error::ApiError;
use crate::http::origin;
use crate::web::error::PageError;

/// Lets requests pass that read, and those that a page of ours sent.
pub async fn refuse(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if reads || origin::is_same_origin(request.headers()) {
        return next.run(request).await;
    }
    PageError::from(ApiError::CrossSite).into_response()
}
