//! Rejects cross-site requests that change state. Browsers attach cookies to them, and all changes use
//! POST.

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::edge::origin;
use crate::error::PageError;
use crate::service::error::ApiError;

/// Responds 403 to a POST from another site.
pub async fn refuse(request: Request, next: Next) -> Response {
    // No page supports other methods; the router responds to them with 405.
    if *request.method() != Method::POST || origin::is_same_origin(request.headers()) {
        return next.run(request).await;
    }
    PageError::from(ApiError::CrossSite).into_response()
}
