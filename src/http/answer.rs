//! Answers of the resources: what is owned in, JSON of the documented shape out.

use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize, Serializer};

use crate::accounts::{Answered, Reply};
use crate::http::work::json_response;
use crate::vocab::time::UnixMs;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// An instant as the API writes it: `2026-11-21T12:00:00.000Z`.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp(pub UnixMs);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// What a DELETE by id answers.
#[derive(Debug, Serialize)]
pub struct Deleted {
    pub id: u64,
    pub deleted: bool,
}

/// The response to a POST, as it is kept under its idempotency key.
pub fn reply(status: StatusCode, body: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(body).expect("answers are structs of text and numbers");
    Reply { status: status.as_u16(), body }
}

/// The id of an added resource: that of the value or, for a repeat, that in the kept response.
pub fn added_id<T>(answered: &Answered<T>, id: impl FnOnce(&T) -> u64) -> Option<u64> {
    #[derive(Deserialize)]
    struct Added {
        id: u64,
    }

    match &answered.value {
        Some(value) => Some(id(value)),
        None => serde_json::from_slice(&answered.reply.body).map(|Added { id }| id).ok(),
    }
}

/// The response to a POST. `location` is the path of an added resource.
pub fn posted<T>(answered: Answered<T>, location: Option<String>) -> Response {
    let replayed = answered.is_replay();
    let reply = answered.reply;
    let address = location.and_then(|location| HeaderValue::try_from(location).ok());
    let mut response = json_response(reply.body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    if let Some(address) = address {
        response.headers_mut().insert(LOCATION, address);
    }
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The same response, to be kept nowhere on its way: it holds a secret.
pub fn not_stored(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
