//! The part of a connection's state that determines its timeouts. The stream and the requests
//! report events, from which [`ConnectionState::next_timeout`] derives the deadline.
//!
//! An I/O timeout around the socket would not suffice: it cannot distinguish an idle connection (60 s)
//! from a slow request head (5 s), and would count the time of a slow query against the client.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::server::settings::Deadlines;
use crate::vocab::named::named_enum;

/// Extra time after the deadline of a request for the client to read the error response.
const ERROR_GRACE: Duration = Duration::from_secs(1);
/// Unsent bytes of a connection above which its further requests wait for the client to read.
const UNSENT_BYTES_MAX: u64 = 1 << 20;
/// Maximum time between two reads of the client while the server is short of memory.
pub(super) const SHORT_STALL: Duration = Duration::from_secs(5);

/// The HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

named_enum! {
    /// The timeout that closed a connection, named as in the label `late` and the log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TimeoutKind {
        /// The client sent nothing.
        FirstByte = "first_byte",
        /// A request head was incomplete.
        Header = "header",
        /// No further request arrived.
        Idle = "idle",
        /// A request, including its response, took too long.
        Request = "request",
        /// The client did not read the response.
        WriteStall = "write_stall",
        /// The TLS handshake was incomplete.
        Handshake = "handshake",
    }
}

/// The state of one connection.
pub(super) struct ConnectionState {
    protocol: Protocol,
    deadlines: Deadlines,
    closes_with_reset: AtomicBool,
    lingers: AtomicBool,
    /// Bytes of large responses that were not yet written to the socket.
    unsent: AtomicU64,
    /// Signals that `unsent` has fallen below [`UNSENT_BYTES_MAX`].
    has_room: Notify,
    /// Locked only for a few assignments.
    activity: Mutex<Activity>,
}

struct Activity {
    /// Time at which the last request ended or, before the first request, the connection began.
    idle_since: Instant,
    has_read: bool,
    /// Time at which the first byte of an incomplete request head arrived.
    head_since: Option<Instant>,
    /// The requests in flight: one on HTTP/1.1, a few dozen on HTTP/2.
    requests: Vec<Running>,
    last_request: u64,
    blocked: Option<Blocked>,
}

/// A request in flight.
struct Running {
    number: u64,
    deadline: Instant,
    /// Time at which the client last accepted a part of the response; `None` unless the response is
    /// sent in parts.
    sending: Option<Instant>,
}

impl Running {
    /// Returns the deadline of the request, or an earlier one if the client does not read the
    /// response.
    fn ends(&self, stall: Duration) -> Instant {
        self.sending.map_or(self.deadline, |since| self.deadline.min(since + stall))
    }
}

/// A write blocked by the client's receive window.
#[derive(Clone, Copy)]
struct Blocked {
    since: Instant,
    /// Time at which the client last accepted bytes.
    progress: Instant,
}

impl ConnectionState {
    pub(super) fn new(protocol: Protocol, deadlines: Deadlines) -> ConnectionState {
        let activity = Activity {
            idle_since: Instant::now(),
            has_read: false,
            head_since: None,
            requests: Vec::new(),
            last_request: 0,
            blocked: None,
        };
        ConnectionState {
            protocol,
            deadlines,
            closes_with_reset: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
            unsent: AtomicU64::new(0),
            has_room: Notify::new(),
            activity: Mutex::new(activity),
        }
    }

    pub(super) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// Records that bytes were received. On HTTP/1.1 the bytes begin a head unless a request is in
    /// flight.
    pub(super) fn read(&self) {
        let mut activity = self.activity();
        activity.has_read = true;
        if self.protocol == Protocol::Http1 && activity.requests.is_empty() {
            activity.head_since.get_or_insert_with(Instant::now);
        }
    }

    /// Records that the client accepted bytes.
    pub(super) fn wrote(&self) {
        if let Some(blocked) = &mut self.activity().blocked {
            blocked.progress = Instant::now();
        }
    }

    /// Records whether bytes are waiting for the client to read them.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        let mut activity = self.activity();
        if !is_blocked {
            activity.blocked = None;
        } else if activity.blocked.is_none() {
            let now = Instant::now();
            activity.blocked = Some(Blocked { since: now, progress: now });
        }
    }

    /// Records a complete request head and returns the number of the request.
    pub(super) fn begin_request(&self, deadline: Instant) -> u64 {
        let mut activity = self.activity();
        activity.head_since = None;
        activity.last_request += 1;
        let number = activity.last_request;
        activity.requests.push(Running { number, deadline, sending: None });
        number
    }

    /// Records that the client accepted a part of a response, or that the first part of it was
    /// handed to hyper.
    pub(super) fn sending(&self, request: u64) {
        let mut activity = self.activity();
        if let Some(running) = activity.requests.iter_mut().find(|it| it.number == request) {
            running.sending = Some(Instant::now());
        }
    }

    /// Records that the response was handed to hyper or that the client cancelled.
    pub(super) fn end_request(&self, request: u64) {
        let mut activity = self.activity();
        activity.requests.retain(|running| running.number != request);
        if activity.requests.is_empty() {
            activity.idle_since = Instant::now();
        }
    }

    /// Whether a request is in flight.
    pub(super) fn is_busy(&self) -> bool {
        !self.activity().requests.is_empty()
    }

    /// The latest deadline of the requests in flight.
    pub(super) fn last_request_deadline(&self, is_short: bool) -> Option<Instant> {
        let stall = self.write_stall(is_short);
        let deadlines = self.activity().requests.iter().map(|it| it.ends(stall)).max();
        deadlines.map(|deadline| deadline + ERROR_GRACE)
    }

    /// The instant at which the connection times out unless an event happens first. `is_short` means
    /// that the server is short of memory for responses.
    pub(super) fn next_timeout(&self, is_short: bool) -> (Instant, TimeoutKind) {
        let write_stall = self.write_stall(is_short);
        let activity = self.activity();
        let Deadlines { first_byte, header, idle, export, .. } = self.deadlines;
        let first_request = activity.requests.iter().map(|it| it.ends(write_stall)).min();
        let waiting = match (first_request, activity.head_since) {
            (Some(deadline), _) => (deadline + ERROR_GRACE, TimeoutKind::Request),
            (None, Some(since)) => (since + header, TimeoutKind::Header),
            (None, None) if activity.has_read => (activity.idle_since + idle, TimeoutKind::Idle),
            (None, None) => (activity.idle_since + first_byte, TimeoutKind::FirstByte),
        };
        let Some(Blocked { since, progress }) = activity.blocked else { return waiting };
        // The second bound stops a client that reads a byte now and then.
        let stalled = (progress + write_stall).min(since + export);
        if activity.requests.is_empty() || stalled < waiting.0 {
            (stalled, TimeoutKind::WriteStall)
        } else {
            waiting
        }
    }

    fn write_stall(&self, is_short: bool) -> Duration {
        let usual = self.deadlines.write_stall;
        if is_short { usual.min(SHORT_STALL) } else { usual }
    }

    pub(super) fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    pub(super) fn add_unsent(&self, bytes: u64) {
        self.unsent.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove_unsent(&self, bytes: u64) {
        let before = self.unsent.fetch_sub(bytes, Ordering::Relaxed);
        if before > UNSENT_BYTES_MAX && before - bytes <= UNSENT_BYTES_MAX {
            self.has_room.notify_waiters();
        }
    }

    /// Whether the connection has so many unsent bytes that further requests must wait.
    pub(super) fn is_full(&self) -> bool {
        self.unsent() > UNSENT_BYTES_MAX
    }

    /// Waits until the client has read enough of earlier responses.
    pub(super) async fn room(&self) {
        loop {
            // The waiter is registered before the check, so that no signal is missed.
            let has_room = self.has_room.notified();
            if !self.is_full() {
                return;
            }
            has_room.await;
        }
    }

    /// Makes the stream keep reading for a moment when it is closed. Otherwise a client that is still
    /// sending a body would get a reset and lose the response.
    pub(super) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    pub(super) fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }

    /// Makes the stream discard unsent bytes and reset the connection when it is dropped.
    pub(super) fn close_with_reset(&self) {
        self.closes_with_reset.store(true, Ordering::Relaxed);
    }

    pub(super) fn closes_with_reset(&self) -> bool {
        self.closes_with_reset.load(Ordering::Relaxed)
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().expect("no code panics holding this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(protocol: Protocol) -> ConnectionState {
        ConnectionState::new(protocol, Deadlines::default())
    }

    fn left(state: &ConnectionState) -> (u64, TimeoutKind) {
        let (deadline, kind) = state.next_timeout(false);
        // The time is rounded to whole seconds, because a test takes less than half a second.
        let left = deadline.duration_since(Instant::now()) + Duration::from_millis(500);
        (left.as_secs(), kind)
    }

    #[test]
    fn each_phase_of_a_connection_has_its_timeout() {
        let state = state(Protocol::Http1);
        assert_eq!(left(&state), (5, TimeoutKind::FirstByte));
        state.read();
        assert_eq!(left(&state), (5, TimeoutKind::Header));
        let request = state.begin_request(Instant::now() + Duration::from_secs(30));
        assert_eq!(left(&state), (31, TimeoutKind::Request));
        state.read();
        state.end_request(request);
        assert_eq!(left(&state), (60, TimeoutKind::Idle));
    }

    #[test]
    fn bytes_on_http2_do_not_begin_a_head() {
        let state = state(Protocol::Http2);
        state.read();
        assert_eq!(left(&state), (60, TimeoutKind::Idle));
        let first = state.begin_request(Instant::now() + Duration::from_secs(30));
        let second = state.begin_request(Instant::now() + Duration::from_secs(120));
        assert_eq!(left(&state), (31, TimeoutKind::Request));
        state.end_request(first);
        assert_eq!(left(&state), (121, TimeoutKind::Request));
        state.end_request(second);
        assert!(!state.is_busy());
    }

    #[test]
    fn an_unread_response_on_http2_times_out() {
        let state = state(Protocol::Http2);
        let request = state.begin_request(Instant::now() + Duration::from_secs(120));
        state.begin_request(Instant::now() + Duration::from_secs(60));
        state.sending(request);
        assert_eq!(left(&state), (31, TimeoutKind::Request));
        let short = state.next_timeout(true).0.duration_since(Instant::now());
        assert!(short <= SHORT_STALL + ERROR_GRACE, "{short:?}");
        state.end_request(request);
        assert_eq!(left(&state), (61, TimeoutKind::Request));
    }

    #[tokio::test]
    async fn requests_wait_for_room_on_their_connection() {
        let state = std::sync::Arc::new(state(Protocol::Http2));
        state.add_unsent(UNSENT_BYTES_MAX + 1);
        let waiting = tokio::spawn({
            let state = std::sync::Arc::clone(&state);
            async move { state.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        state.remove_unsent(1);
        waiting.await.expect("no panic");
    }

    #[test]
    fn a_client_that_does_not_read_times_out() {
        let state = state(Protocol::Http1);
        state.read();
        let request = state.begin_request(Instant::now() + Duration::from_secs(120));
        state.set_blocked(true);
        assert_eq!(left(&state), (30, TimeoutKind::WriteStall));
        // The rest of the response is now in buffers.
        state.end_request(request);
        assert_eq!(left(&state), (30, TimeoutKind::WriteStall));
        state.set_blocked(false);
        assert_eq!(left(&state), (60, TimeoutKind::Idle));
    }
}
