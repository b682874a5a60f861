//! Request bodies, read before admission under a deadline, and response bodies, which keep the request
//! in flight until they are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::timeout_at;

use crate::http::error::ApiError;
use crate::server::settings::BODY_BYTES_PER_SECOND;
use crate::server::state::ConnectionState;
use crate::vocab::limits::{BODY_BYTES_MAX, FORM_BYTES_MAX};

/// Reads the body of a request up to the limit that its handler enforces. Every
/// [`BODY_BYTES_PER_SECOND`] bytes received extend the deadline by a second.
///
/// # Errors
/// [`ApiError::SlowBody`] after the deadline, 400 if the connection breaks off.
pub(super) async fn read(
    request: Request<Incoming>,
    deadline: Instant,
) -> Result<Request<Body>, ApiError> {
    let (parts, mut body) = request.into_parts();
    let is_api = parts.uri.path().starts_with("/api/");
    let bytes_max = if is_api { BODY_BYTES_MAX } else { FORM_BYTES_MAX };
    if body.is_end_stream() {
        return Ok(Request::from_parts(parts, Body::empty()));
    }
    if body.size_hint().lower() > bytes_max as u64 {
        // The handler rejects the declared length without reading.
        return Ok(Request::from_parts(parts, Body::new(body)));
    }
    let mut bytes = Vec::new();
    // One byte over the limit is enough for the handler to reject the body.
    while bytes.len() <= bytes_max {
        let extra = Duration::from_secs(bytes.len() as u64 / BODY_BYTES_PER_SECOND);
        let frame = timeout_at((deadline + extra).into(), body.frame()).await;
        let Some(frame) = frame.map_err(|_| ApiError::SlowBody)? else { break };
        let frame = frame.map_err(|_| ApiError::parameter("body", "is truncated"))?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[], Bytes::as_ref));
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// A request of a connection, from its head to the last byte of the response.
pub(super) struct InFlight {
    state: Arc<ConnectionState>,
    number: u64,
}

impl InFlight {
    pub(super) fn begin(state: &Arc<ConnectionState>, deadline: Instant) -> InFlight {
        InFlight { state: Arc::clone(state), number: state.begin_request(deadline) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.state.end_request(self.number);
    }
}

/// The body of a response.
pub struct ResponseBody {
    inner: Body,
    _in_flight: InFlight,
}

impl ResponseBody {
    pub(super) fn new(inner: Body, in_flight: InFlight) -> ResponseBody {
        ResponseBody { inner, _in_flight: in_flight }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
