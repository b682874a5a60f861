//! Query work that can take longer than half a millisecond leaves the async threads.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use serde::Serialize;

use crate::http::error::ApiError;

/// Rows a query may look at on an async thread: some 0.3 ms of work.
const INLINE_COST_MAX: u32 = 150_000;

/// Runs `work`, here when its `cost` in rows looked at is small, else on the blocking pool.
///
/// # Errors
/// Those of `work`, and 500 when it panicked.
pub async fn run<T: Send + 'static>(
    cost: u32,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if cost <= INLINE_COST_MAX {
        return work();
    }
    tokio::task::spawn_blocking(work).await.map_err(|err| ApiError::Internal(err.into()))?
}

/// A JSON body, made where the work is done.
///
/// # Errors
/// 500 for a value that cannot be JSON, which is a bug.
pub fn json_bytes(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(value).map_err(|err| ApiError::Internal(err.into()))
}

/// Status 200 with these bytes of JSON.
pub fn json_response(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
