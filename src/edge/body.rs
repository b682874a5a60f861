//! Reads request bodies, up to a size limit.

use axum::body::{Body, HttpBody};
use futures_util::StreamExt;

use crate::service::error::ApiError;

/// Reason why the server stopped reading a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the body did not arrive in time")]
    Slow,
    #[error("the connection ended within the body")]
    Truncated,
    #[error("request bodies use all memory that they may use")]
    OutOfMemory,
    #[error("too many requests at the moment")]
    Shed { retry_after_s: u32 },
}

impl From<BodyError> for ApiError {
    fn from(err: BodyError) -> ApiError {
        match err {
            BodyError::Slow => ApiError::SlowBody,
            BodyError::Truncated => ApiError::parameter("body", "is truncated"),
            BodyError::OutOfMemory => ApiError::Shed { retry_after_s: 1 },
            BodyError::Shed { retry_after_s } => ApiError::Shed { retry_after_s },
        }
    }
}

/// Reads a body of at most `bytes_max`.
///
/// # Errors
/// 413 for a larger body, 400 for a truncated one.
pub async fn read_bytes_up_to(body: Body, bytes_max: usize) -> Result<Vec<u8>, ApiError> {
    // A declared length that is too large is refused before reading.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ApiError::BodyTooLarge { bytes_max });
    }
    let mut bytes = Vec::new();
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|err| {
            let err = err.into_inner().downcast::<BodyError>();
            ApiError::from(err.map_or(BodyError::Truncated, |err| *err))
        })?;
        if bytes.len() + chunk.len() > bytes_max {
            return Err(ApiError::BodyTooLarge { bytes_max });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
