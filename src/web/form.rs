//! Forms: octets in, fields as sent out. What they mean is judged where they are turned into it.

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use crate::http::body::read_octets_up_to;
use crate::http::error::ApiError;
use crate::web::error::PageError;

/// Octets of a form at most: a thousand names, pasted, take 256 KiB where each is as long as a name
/// can be and half of it is escaped.
const FORM_BYTES_MAX: usize = 256 * 1024;

/// The fields of a form (`application/x-www-form-urlencoded`), by serde.
pub struct Form<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = PageError;

    async fn from_request(request: Request, _: &S) -> Result<Form<T>, PageError> {
        let (parts, body) = request.into_parts();
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded")) {
            return Err(ApiError::parameter("form", "must be sent as a form").into());
        }
        let octets = read_octets_up_to(body, FORM_BYTES_MAX).await?;
        serde_urlencoded::from_bytes(&octets)
            .map(Form)
            .map_err(|err| ApiError::parameter("form", err).into())
    }
}
