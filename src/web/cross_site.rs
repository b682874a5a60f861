//! Rejects cross-site requests that change state. Browsers attach cookies to them, and all changes use
//! POST.

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::error::ApiError;
use crate::http::origin;
use crate::web::error::PageError;

/// Lets safe methods and same-origin requests pass, and responds 403 to others.
pub async fn refuse(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if reads || origin::is_same_origin(request.headers()) {
        return next.run(request).await;
    }
    PageError::from(ApiError::CrossSite).into_response()
}
