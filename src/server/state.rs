//! What a connection is waiting for, and since when: bytes, requests and answers in, the next
//! deadline out. The connection, its socket and its requests each tell what they see.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::server::settings::Deadlines;

/// What an answer that is being read may take beyond its request's deadline, so that the refusal
/// that the deadline is answered with can be read too.
const ERROR_GRACE: Duration = Duration::from_secs(1);

/// The protocol of a connection: what its bytes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// What was waited for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeoutKind {
    /// Anything at all.
    FirstByte,
    /// A head that had begun.
    Header,
    /// The next request.
    Idle,
    /// A request and its answer.
    Request,
    /// A client that reads.
    WriteStall,
    /// The handshake of TLS.
    Handshake,
}

impl TimeoutKind {
    pub(super) const ALL: [TimeoutKind; 6] = [
        TimeoutKind::FirstByte,
        TimeoutKind::Header,
        TimeoutKind::Idle,
        TimeoutKind::Request,
        TimeoutKind::WriteStall,
        TimeoutKind::Handshake,
    ];

    /// As metrics and logs name it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            TimeoutKind::FirstByte => "first_byte",
            TimeoutKind::Header => "header",
            TimeoutKind::Idle => "idle",
            TimeoutKind::Request => "request",
            TimeoutKind::WriteStall => "write_stall",
            TimeoutKind::Handshake => "handshake",
        }
    }
}

/// The state of one connection.
pub(super) struct ConnectionState {
    protocol: Protocol,
    deadlines: Deadlines,
    /// Held for a few assignments.
    state: Mutex<State>,
}

struct State {
    /// When the last request ended, or the connection began.
    idle_since: Instant,
    /// Whether anything came.
    has_read: bool,
    /// When the first byte of a head came that is not whole yet.
    head_since: Option<Instant>,
    /// Requests in hand, each with its deadline. One on HTTP/1.1, a few dozen on HTTP/2.
    requests: Vec<(u64, Instant)>,
    last_request: u64,
    blocked: Option<Blocked>,
}

/// Bytes that the client does not take.
struct Blocked {
    since: Instant,
    /// When it took some last.
    moved: Instant,
}

impl ConnectionState {
    pub(super) fn new(protocol: Protocol, deadlines: Deadlines) -> ConnectionState {
        let state = State {
            idle_since: Instant::now(),
            has_read: false,
            head_since: None,
            requests: Vec::new(),
            last_request: 0,
            blocked: None,
        };
        ConnectionState { protocol, deadlines, state: Mutex::new(state) }
    }

    pub(super) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// Bytes came. Between two requests of HTTP/1.1 they begin a head.
    pub(super) fn read(&self) {
        let mut state = self.state();
        state.has_read = true;
        if self.protocol == Protocol::Http2 {
            return;
        }
        if state.requests.is_empty() && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// Bytes were taken by the client.
    pub(super) fn wrote(&self) {
        if let Some(blocked) = &mut self.state().blocked {
            blocked.moved = Instant::now();
        }
    }

    /// The client takes no more bytes for now (`true`), or all that there were are gone.
    pub(super) fn blocked(&self, is_blocked: bool) {
        let mut state = self.state();
        if is_blocked && state.blocked.is_none() {
            let now = Instant::now();
            state.blocked = Some(Blocked { since: now, moved: now });
        } else if !is_blocked {
            state.blocked = None;
        }
    }

    /// The head of a request is whole; gives its number.
    pub(super) fn begin(&self, deadline: Instant) -> u64 {
        let mut state = self.state();
        state.head_since = None;
        state.last_request += 1;
        let number = state.last_request;
        state.requests.push((number, deadline));
        number
    }

    /// The answer to a request was handed on whole, or nobody wants it any more.
    pub(super) fn end(&self, request: u64) {
        let mut state = self.state();
        state.requests.retain(|(number, _)| *number != request);
        if state.requests.is_empty() {
            state.idle_since = Instant::now();
        }
    }

    /// Whether a request is in hand.
    pub(super) fn is_busy(&self) -> bool {
        !self.state().requests.is_empty()
    }

    /// When the last of the requests in hand will have been waited for too long.
    pub(super) fn last_deadline(&self) -> Option<Instant> {
        let deadlines = self.state().requests.iter().map(|(_, deadline)| *deadline).max();
        deadlines.map(|deadline| deadline + ERROR_GRACE)
    }

    /// When the connection will have been waited for too long, as it stands now, and for what.
    pub(super) fn deadline(&self) -> (Instant, TimeoutKind) {
        let state = self.state();
        let Deadlines { first_byte, header, idle, write_stall, export, .. } = self.deadlines;
        let waiting =
            match (state.requests.iter().map(|(_, deadline)| *deadline).min(), state.head_since) {
                (Some(deadline), _) => (deadline + ERROR_GRACE, TimeoutKind::Request),
                (None, Some(since)) => (since + header, TimeoutKind::Header),
                (None, None) if state.has_read => (state.idle_since + idle, TimeoutKind::Idle),
                (None, None) => (state.idle_since + first_byte, TimeoutKind::FirstByte),
            };
        match &state.blocked {
            // A client that takes a byte now and then is as good as one that takes none.
            Some(Blocked { since, moved }) => {
                let stalled =
                    ((*moved + write_stall).min(*since + export), TimeoutKind::WriteStall);
                if state.requests.is_empty() || stalled.0 < waiting.0 { stalled } else { waiting }
            }
            None => waiting,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics holding this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(protocol: Protocol) -> ConnectionState {
        ConnectionState::new(protocol, Deadlines::default())
    }

    fn left(state: &ConnectionState) -> (u64, TimeoutKind) {
        let (deadline, late) = state.deadline();
        // Rounded to whole seconds: tests take less than half of one.
        let left = deadline.duration_since(Instant::now()) + Duration::from_millis(500);
        (left.as_secs(), late)
    }

    #[test]
    fn a_connection_waits_for_one_thing_at_a_time() {
        let state = state(Protocol::Http1);
        assert_eq!(left(&state), (5, TimeoutKind::FirstByte));
        state.read();
        assert_eq!(left(&state), (5, TimeoutKind::Header));
        let request = state.begin(Instant::now() + Duration::from_secs(30));
        assert_eq!(left(&state), (31, TimeoutKind::Request));
        state.read();
        state.end(request);
        assert_eq!(left(&state), (60, TimeoutKind::Idle));
    }

    #[test]
    fn on_http2_bytes_alone_are_no_request() {
        let state = state(Protocol::Http2);
        state.read();
        assert_eq!(left(&state), (60, TimeoutKind::Idle));
        let first = state.begin(Instant::now() + Duration::from_secs(30));
        let second = state.begin(Instant::now() + Duration::from_secs(120));
        assert_eq!(left(&state), (31, TimeoutKind::Request));
        state.end(first);
        assert_eq!(left(&state), (121, TimeoutKind::Request));
        state.end(second);
        assert!(!state.is_busy());
    }

    #[test]
    fn a_client_that_does_not_read_is_waited_for_shortly() {
        let state = state(Protocol::Http1);
        state.read();
        let request = state.begin(Instant::now() + Duration::from_secs(120));
        state.blocked(true);
        assert_eq!(left(&state), (30, TimeoutKind::WriteStall));
        // What is left of an answer is in buffers by now.
        state.end(request);
        assert_eq!(left(&state), (30, TimeoutKind::WriteStall));
        state.blocked(false);
        assert_eq!(left(&state), (60, TimeoutKind::Idle));
    }
}
