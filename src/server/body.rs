//! Bodies on their way: a request's, which must come in time, and an answer's, which tells when it
//! has gone.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::BoxError;
use axum::body::{Body, Bytes};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::Sleep;

use crate::server::admission::Admitted;
use crate::server::settings::BODY_BYTES_PER_SECOND;
use crate::server::state::ConnectionState;

/// A body that came too slowly. Whoever reads it sees one that broke off; the door knows better.
#[derive(Debug, thiserror::Error)]
#[error("the body came too slowly")]
struct TooSlow;

/// The body of a request.
pub(super) struct RequestBody {
    inner: Incoming,
    /// When all of it must be there, but for what its length gives it.
    deadline: Instant,
    received: u64,
    /// Set when it was not.
    late: Arc<AtomicBool>,
    /// Made when there is something to wait for.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    pub(super) fn new(inner: Incoming, deadline: Instant, late: Arc<AtomicBool>) -> RequestBody {
        RequestBody { inner, deadline, received: 0, late, sleep: None }
    }

    fn deadline(&self) -> Instant {
        self.deadline + Duration::from_secs(self.received / BODY_BYTES_PER_SECOND)
    }

    /// Whether more has been waited for too long; wakes the task when it has.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = self.deadline();
        let make = || Box::pin(tokio::time::sleep_until(deadline.into()));
        let sleep = self.sleep.get_or_insert_with(make);
        if sleep.deadline() < deadline.into() {
            sleep.as_mut().reset(deadline.into());
        }
        sleep.as_mut().poll(cx).is_ready()
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.received += frame.data_ref().map_or(0, |data| data.len() as u64);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(err))) => Poll::Ready(Some(Err(err.into()))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.is_late(cx) => {
                self.late.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(TooSlow.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A request of a connection, from its head to the last byte of its answer.
pub(super) struct InFlight {
    state: Arc<ConnectionState>,
    number: u64,
}

impl InFlight {
    pub(super) fn begin(state: &Arc<ConnectionState>, deadline: Instant) -> InFlight {
        InFlight { state: Arc::clone(state), number: state.begin(deadline) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.state.end(self.number);
    }
}

/// The body of an answer.
pub struct AnswerBody {
    inner: Body,
    _in_hand: InFlight,
    /// The place of one that is made while it is read.
    _admitted: Option<Arc<Admitted>>,
}

impl AnswerBody {
    pub(super) fn new(
        inner: Body,
        in_flight: InFlight,
        admitted: Option<Arc<Admitted>>,
    ) -> AnswerBody {
        AnswerBody { inner, _in_hand: in_flight, _admitted: admitted }
    }
}

impl hyper::body::Body for AnswerBody {
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
