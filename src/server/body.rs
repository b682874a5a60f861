//! Request bodies are read when the handler asks for them. Response bodies keep their request in
//! flight until they are sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, EXPECT};
use axum::http::{Request, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep_until, timeout};

use crate::edge::body::BodyError;
use crate::edge::class::Class;
use crate::server::admission::{Admission, Admitted, Shed};
use crate::server::budget::{ByteBudget, Share, Unsent};
use crate::server::settings::BODY_BYTES_PER_SECOND;
use crate::server::state::ConnectionState;

/// Time for which a request keeps its admission slot while no body data arrives.
const SLOT_KEPT: Duration = Duration::from_millis(20);
/// Maximum length of an unread body that is discarded to reuse the connection, and time allowed for
/// it.
const DISCARDED_BYTES_MAX: u64 = 8 * 1024;
const DISCARDED_WITHIN: Duration = Duration::from_secs(1);
/// Minimum size of a response that counts against the budget. hyper's buffers for each request are
/// larger than this anyway.
const COUNTED_BYTES_MIN: u64 = 4 * 1024;
/// Size of the pieces in which a response is passed to hyper, which buffers one piece beyond what the
/// client's window allows.
const PIECE_BYTES: usize = 16 * 1024;
/// Memory of a compressor, which exists as long as its response.
const COMPRESSOR_BYTES: u64 = 256 * 1024;

/// State shared by a request and its body until the response ends.
pub(super) struct RequestState {
    admission: Arc<Admission>,
    held: Mutex<HeldSlot>,
}

struct HeldSlot {
    slot: Option<Admitted>,
    /// The class of the held slot.
    class: Class,
    /// The bytes read so far.
    share: Share,
    /// The body, if the handler did not read it to the end.
    unread: Option<Incoming>,
}

impl RequestState {
    fn held(&self) -> MutexGuard<'_, HeldSlot> {
        self.held.lock().expect("no code panics holding this lock")
    }

    /// Stores the slot of the request, to be held except while a slow body arrives.
    pub(super) fn keep(&self, class: Class, slot: Option<Admitted>) {
        let mut held = self.held();
        (held.class, held.slot) = (class, slot);
    }

    /// Removes and returns the slot.
    pub(super) fn take_slot(&self) -> Option<Admitted> {
        self.held().slot.take()
    }

    /// Disposes of a body that the handler left unread. Returns whether the connection can be reused:
    /// on HTTP/1.1 the next request follows the body, so the body must be read first.
    pub(super) async fn discard_unread(&self, waits_for_continue: bool) -> bool {
        let Some(mut body) = self.held().unread.take() else { return true };
        // The length of a chunked body is known only at its end.
        if waits_for_continue || body.size_hint().lower() > DISCARDED_BYTES_MAX {
            return false;
        }
        let discarding = async {
            let mut left = DISCARDED_BYTES_MAX;
            while let Some(frame) = body.frame().await {
                let bytes = frame.ok()?.data_ref().map_or(0, Bytes::len);
                left = left.checked_sub(bytes as u64)?;
            }
            Some(())
        };
        matches!(timeout(DISCARDED_WITHIN, discarding).await, Ok(Some(())))
    }
}

/// Replaces the body of a request with one that is read on demand and counted against `budget`. The
/// body must arrive within `deadline`, which is extended by a second for every
/// [`BODY_BYTES_PER_SECOND`] bytes. While a slow body arrives, the request gives up its slot. After the
/// last byte it queues for a slot again, unless it is a log-in.
///
/// Returns the shared state; `None` if the request has no body.
pub(super) fn read_on_demand(
    request: Request<Incoming>,
    deadline: Instant,
    admission: &Arc<Admission>,
    budget: &Arc<ByteBudget>,
) -> (Request<Body>, Option<Arc<RequestState>>) {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return (Request::from_parts(parts, Body::empty()), None);
    }
    let held = HeldSlot { slot: None, class: Class::Health, share: budget.empty(), unread: None };
    let reading =
        Arc::new(RequestState { admission: Arc::clone(admission), held: Mutex::new(held) });
    let body = RequestBody {
        inner: Some(body),
        reading: Arc::clone(&reading),
        deadline,
        timer: None,
        has_slot: true,
        entering: None,
    };
    (Request::from_parts(parts, Body::new(body)), Some(reading))
}

/// Whether the client waits for `100 Continue` before the body (RFC 9110 §10.1.1).
pub(super) fn waits_for_continue<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(EXPECT)
}

/// The body of a request.
struct RequestBody {
    /// `None` after the end.
    inner: Option<Incoming>,
    reading: Arc<RequestState>,
    deadline: Instant,
    /// Timer, created once the body has to wait for the client.
    timer: Option<Pin<Box<Sleep>>>,
    has_slot: bool,
    /// Waits for a slot after the last byte.
    entering: Option<BoxFuture<'static, Result<Option<Admitted>, Shed>>>,
}

impl RequestBody {
    /// Counts the bytes of a frame.
    fn count(&mut self, bytes: usize) -> Result<(), BodyError> {
        let bytes = bytes as u64;
        if !self.reading.held().share.grow(bytes) {
            return Err(BodyError::OutOfMemory);
        }
        self.deadline += Duration::from_secs_f64(bytes as f64 / BODY_BYTES_PER_SECOND as f64);
        Ok(())
    }

    /// Polls the timer that limits the wait for the client. When the timer first expires, the slot is given
    /// back. Once the deadline has passed, the poll completes with [`BodyError::Slow`].
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let first = self.deadline.min(Instant::now() + SLOT_KEPT);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(first.into())));
        loop {
            ready!(timer.as_mut().poll(cx));
            if self.has_slot {
                self.has_slot = false;
                drop(self.reading.take_slot());
            }
            if Instant::now() >= self.deadline {
                return Poll::Ready(BodyError::Slow);
            }
            timer.as_mut().reset(self.deadline.into());
        }
    }

    /// Ends the body once the request has a slot again. A log-in needs no slot, because it enters
    /// the queue of `accounts/hashing`.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.reading.held().class == Class::LogIn {
            drop(self.reading.take_slot());
            return Poll::Ready(None);
        }
        if self.has_slot {
            return Poll::Ready(None);
        }
        let entering = self.entering.get_or_insert_with(|| {
            let class = self.reading.held().class;
            let admission = Arc::clone(&self.reading.admission);
            async move { admission.enter(class).await }.boxed()
        });
        let entered = ready!(entering.poll_unpin(cx));
        self.has_slot = true;
        Poll::Ready(match entered {
            Ok(slot) => {
                self.reading.held().slot = slot;
                None
            }
            Err(Shed { retry_after_s }) => Some(Err(BodyError::Shed { retry_after_s })),
        })
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(inner) = &mut self.inner else { return self.poll_end(cx) };
        match Pin::new(inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let counted = self.count(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(counted.map(|()| frame)))
            }
            Poll::Ready(Some(Err(_))) => Poll::Ready(Some(Err(BodyError::Truncated))),
            Poll::Ready(None) => {
                self.inner = None;
                self.poll_end(cx)
            }
            Poll::Pending => self.poll_deadline(cx).map(|err| Some(Err(err))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let unread = self.inner.take().filter(|body| !body.is_end_stream());
        self.reading.held().unread = unread;
    }
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

/// Length of a large response before compression, stored in its extensions.
#[derive(Clone, Copy)]
struct SourceBytes(u64);

/// Stores the length of a large response in its extensions, because compression hides it.
pub(super) fn remember_length(mut response: Response<Body>) -> Response<Body> {
    if let Some(bytes) = response.body().size_hint().exact().filter(|it| *it >= COUNTED_BYTES_MIN) {
        response.extensions_mut().insert(SourceBytes(bytes));
    }
    response
}

/// Share of a response in the budget of unsent bytes.
pub(super) enum Counted {
    /// Too small to count.
    No,
    /// The whole response is in memory.
    Whole(Unsent),
    /// The response is produced while it is sent. The source of the body counts against the budget
    /// until it ends.
    Streamed { source: Option<Unsent> },
}

impl Counted {
    /// Counts a response. Returns `None` if the budget has too little left.
    pub(super) fn new(
        response: &Response<Body>,
        budget: &Arc<ByteBudget>,
        connection: &Arc<ConnectionState>,
        class: Class,
    ) -> Option<Counted> {
        let take = |bytes| Unsent::take(budget, connection, bytes, class);
        match response.body().size_hint().exact() {
            Some(bytes) if bytes < COUNTED_BYTES_MIN => Some(Counted::No),
            Some(bytes) => take(bytes).map(Counted::Whole),
            None if response.headers().contains_key(CONTENT_ENCODING) => {
                let source = response.extensions().get::<SourceBytes>().map_or(0, |it| it.0);
                let source = Some(take(source + COMPRESSOR_BYTES)?);
                Some(Counted::Streamed { source })
            }
            None => Some(Counted::Streamed { source: None }),
        }
    }
}

/// Returns `data` without spare capacity. Copies the data if the buffer is over an eighth too
/// large, as buffers of pages often are.
fn without_slack(data: Bytes) -> Bytes {
    if !data.is_unique() {
        return data;
    }
    let data = Vec::from(data);
    let slack = data.capacity() - data.len();
    if slack > data.len() / 8 { Bytes::copy_from_slice(&data) } else { data.into() }
}

/// The body of a response.
pub struct ResponseBody {
    inner: Body,
    /// The rest of a frame, sent in pieces.
    rest: Bytes,
    counted: Counted,
    is_large: bool,
    budget: Arc<ByteBudget>,
    in_flight: InFlight,
}

impl ResponseBody {
    pub(super) fn new(
        inner: Body,
        (counted, budget): (Counted, &Arc<ByteBudget>),
        in_flight: InFlight,
    ) -> ResponseBody {
        let is_large = !matches!(counted, Counted::No);
        let (budget, rest) = (Arc::clone(budget), Bytes::new());
        let mut body = ResponseBody { inner, rest, counted, is_large, budget, in_flight };
        body.report_progress();
        // The length is taken now, because the client may not read for a long time.
        if let Counted::Whole(_) = body.counted
            && let Some(Some(Ok(frame))) = body.inner.frame().now_or_never()
            && let Ok(data) = frame.into_data()
        {
            body.keep(without_slack(data));
        }
        body
    }

    /// Reports to the connection that the client is reading the response.
    fn report_progress(&self) {
        if self.is_large {
            self.in_flight.state.sending(self.in_flight.number);
        }
    }

    /// Stores `data` to be sent in pieces. The bytes of `data` count against the budget until hyper
    /// has written them.
    fn keep(&mut self, data: Bytes) {
        self.rest = match std::mem::replace(&mut self.counted, Counted::No) {
            Counted::No => data,
            Counted::Whole(unsent) => unsent.hold(data),
            Counted::Streamed { source } => {
                self.counted = Counted::Streamed { source };
                let (connection, bytes) = (&self.in_flight.state, data.len() as u64);
                Unsent::take_anyway(&self.budget, connection, bytes).hold(data)
            }
        };
    }

    fn next_piece(&mut self) -> Frame<Bytes> {
        let len = self.rest.len().min(PIECE_BYTES);
        Frame::data(self.rest.split_to(len))
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            self.report_progress();
            return Poll::Ready(Some(Ok(self.next_piece())));
        }
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        self.report_progress();
        Poll::Ready(Some(frame.map(|frame| match frame.into_data() {
            Ok(data) => {
                self.keep(data);
                self.next_piece()
            }
            Err(other) => other,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
