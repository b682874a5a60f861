//! Serialisation of JSON bodies.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use serde::Serialize;

use crate::edge::csv::push_number;
use crate::service::error::ApiError;

/// Initial buffer size, enough for a dossier.
const SMALL_BODY_BYTES: usize = 1024;

/// Serialises a JSON body.
///
/// # Errors
/// 500 for a value without a JSON form, which is a bug.
pub fn json_bytes(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(SMALL_BODY_BYTES);
    serde_json::to_writer(&mut bytes, value).map_err(|err| ApiError::Internal(err.into()))?;
    Ok(bytes)
}

/// Appends a member to a non-empty JSON object.
pub fn push_member(out: &mut Vec<u8>, name: &str, number: u32) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    push_number(out, number);
}

/// Appends `,"name":true` or `,"name":false`.
pub fn push_flag(out: &mut Vec<u8>, name: &str, flag: bool) {
    out.extend_from_slice(format!(",\"{name}\":{flag}").as_bytes());
}

/// Returns a response with status 200 and a JSON body.
pub fn json_response(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
