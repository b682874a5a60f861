//! Building blocks of JSON responses to writes.

use std::convert::Infallible;
use std::fmt::Display;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::accounts::{Answered, Receipt};
use crate::edge::class::EVENT_STREAM;
use crate::json::json_response;
use crate::query::params::Paging;
use crate::service::receipt::added_id;
use crate::vocab::time::UnixMs;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// An instant in the format of the API: `2026-11-21T12:00:00.000Z`.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp(pub UnixMs);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Confirmation of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub struct Deleted {
    id: u64,
    deleted: bool,
}

impl Deleted {
    /// The resource `id` was deleted.
    pub fn new(id: u64) -> Deleted {
        Deleted { id, deleted: true }
    }
}

/// Builds the response of server-sent events, each with its empty line.
pub fn event_stream(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (CONTENT_TYPE, EVENT_STREAM),
        // Without this header, proxies such as nginx buffer the response.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(events.map(Ok::<Bytes, Infallible>))).into_response()
}

/// Builds the receipt of a POST, which is stored under its idempotency key.
pub fn receipt(status: StatusCode, body: &impl Serialize) -> Receipt {
    let bytes = serde_json::to_vec(body).expect("responses are structs of text and numbers");
    Receipt { code: status.as_u16(), bytes }
}

/// Returns the response to a POST that added a resource to the collection at `path`.
pub fn added<T>(answered: Answered<T>, path: &str, id: impl FnOnce(&T) -> u64) -> Response {
    let id = added_id(&answered, id);
    let location = id.and_then(|id| HeaderValue::try_from(format!("{path}/{id}")).ok());
    let mut response = posted(answered);
    if let Some(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Returns the response to a POST, executed now or replayed.
pub fn posted<T>(answered: Answered<T>) -> Response {
    let replayed = answered.is_replay();
    let Receipt { code, bytes } = answered.receipt;
    let mut response = json_response(bytes);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Names the page after this one in `Link` (RFC 8288), if the list has further rows.
pub fn with_next(mut response: Response, uri: &Uri, page: Paging, total: usize) -> Response {
    let next = page.offset as usize + page.limit as usize;
    if next < total {
        link_next(&mut response, uri, ("offset", &next));
    }
    response
}

/// Names the next page in `Link`: the same query with another `cursor` or `offset`.
pub fn link_next(response: &mut Response, uri: &Uri, (name, value): (&str, &dyn Display)) {
    let kept = |pair: &&str| {
        let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
        !pair.is_empty() && !matches!(name, "cursor" | "offset")
    };
    let mut link = format!("<{}?", uri.path());
    for pair in uri.query().unwrap_or_default().split('&').filter(kept) {
        link.push_str(pair);
        link.push('&');
    }
    link.push_str(&format!("{name}={value}>; rel=\"next\""));
    if let Ok(link) = HeaderValue::try_from(link) {
        response.headers_mut().insert(LINK, link);
    }
}

/// Prevents caches from storing a response that contains a secret.
pub fn not_stored(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
