//! Tags of user data, and `If-Match` (RFC 9110 §13.1.1), which permits a change only if the client has
//! seen the current state. The tag is compared just before the write.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::IF_MATCH;
use axum::http::{Extensions, HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tower::ServiceExt;

use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::edge::operation::Operation;
use crate::service::app::App;
use crate::service::error::ApiError;

/// Maximum bytes of a representation; a rule or a claim takes a few kilobytes.
const BYTES_MAX: usize = 1 << 20;

/// Checks `If-Match` of a write, if present.
///
/// # Errors
/// 412 if the tag differs or the resource has no tags; 404 if the resource does not exist.
pub async fn check(
    app: &App,
    operation: &'static Operation,
    headers: &HeaderMap,
    (uri, extensions): (&Uri, &Extensions),
) -> Result<(), Response> {
    if !operation.is_conditional() || !headers.contains_key(IF_MATCH) {
        return Ok(());
    }
    let Some(current) = operation.current else {
        // `*` matches any current state; the handler reports a missing resource.
        let is_any = headers.get_all(IF_MATCH).iter().all(|line| line == "*");
        return if is_any { Ok(()) } else { Err(failed()) };
    };
    // The copy keeps the caller, the time and the path parameters.
    let mut asked = Request::new(Body::empty());
    *asked.method_mut() = Method::GET;
    asked.uri_mut().clone_from(uri);
    asked.extensions_mut().clone_from(extensions);
    let route = current(operation).with_state(app.clone());
    let response = route.oneshot(asked).await.unwrap_or_else(|never| match never {});
    if response.status() != StatusCode::OK {
        return Err(response);
    }
    let (_, bytes) = read(response).await.map_err(|err| Refusal::from(err).into_response())?;
    match Tag::for_bytes(&bytes).is_matched(headers) {
        true => Ok(()),
        false => Err(failed()),
    }
}

fn failed() -> Response {
    Refusal::from(ApiError::PreconditionFailed).into_response()
}

/// Adds the tag to the representation of a resource, or returns a 304.
pub async fn tagged(response: Response, headers: &HeaderMap) -> Response {
    if response.status() != StatusCode::OK {
        return response;
    }
    let (response, bytes) = match read(response).await {
        Ok(read) => read,
        Err(err) => return Refusal::from(err).into_response(),
    };
    let tag = Tag::for_bytes(&bytes);
    let unchanged = tag.not_modified(headers);
    unchanged.unwrap_or_else(|| tag.on(response.map(|()| Body::from(bytes))))
}

async fn read(response: Response) -> Result<(axum::http::Response<()>, Bytes), ApiError> {
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, BYTES_MAX).await.map_err(|err| ApiError::Internal(err.into()))?;
    Ok((axum::http::Response::from_parts(parts, ()), bytes))
}
