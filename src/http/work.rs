//! Query work that can take longer than half a millisecond leaves the async threads.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use serde::Serialize;

use crate::http::error::ApiError;
use crate::index::rows::push_number;

/// Microseconds that a query may take on an async thread.
const INLINE_US_MAX: u32 = 500;
/// Room for a dossier, so that it does not move while it is written.
const SMALL_BODY_BYTES: usize = 1024;

/// Runs `work`, here when it takes few microseconds (about `cost_us`), else on the blocking pool.
///
/// # Errors
/// Those of `work`, and 500 when it panicked.
pub async fn run<T: Send + 'static>(
    cost_us: u32,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if cost_us <= INLINE_US_MAX {
        return work();
    }
    tokio::task::spawn_blocking(work).await.map_err(|err| ApiError::Internal(err.into()))?
}

/// A JSON body, made where the work is done.
///
/// # Errors
/// 500 for a value that cannot be JSON, which is a bug.
pub fn json_bytes(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(SMALL_BODY_BYTES);
    serde_json::to_writer(&mut bytes, value).map_err(|err| ApiError::Internal(err.into()))?;
    Ok(bytes)
}

/// Appends a member to a JSON object that has one before it.
pub fn push_member(out: &mut Vec<u8>, name: &str, number: u32) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    push_number(out, number);
}

/// Status 200 with these bytes of JSON.
pub fn json_response(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
