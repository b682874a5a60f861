//! Classes of requests, each with its own limits and deadline.

use std::time::Duration;

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Uri};

pub const EVENT_STREAM: &str = "text/event-stream";
/// Maximum duration of an event stream. The client then reconnects, to any node.
pub const STREAM_TIME_MAX: Duration = Duration::from_secs(3600);

/// A group of requests that compete for the same resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Health checks, which are never shed.
    Health,
    /// Reads of the index and of user data.
    Read,
    /// Exports, with thousands of rows.
    Export,
    /// Long polls and event streams, which mostly wait.
    Stream,
    /// Requests that hash a password.
    LogIn,
    /// Writes, which wait for the disk.
    Write,
    /// Requests to any path without a valid key or session.
    Visitor,
}

impl Class {
    /// The value of the label `class`.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Health => "health",
            Class::Read => "read",
            Class::Export => "export",
            Class::Stream => "stream",
            Class::LogIn => "log_in",
            Class::Write => "write",
            Class::Visitor => "visitor",
        }
    }
}

/// Whether a request for events waits for new ones, as a long poll or a stream.
pub fn waits(uri: &Uri, headers: &HeaderMap) -> bool {
    let has_wait = |query: &str| query.split('&').any(|pair| pair.starts_with("wait="));
    uri.query().is_some_and(has_wait) || wants_stream(headers)
}

/// Whether a client accepts an event stream.
pub fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(EVENT_STREAM)
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn waiting_requests_are_distinguished_from_others() {
        let waits = |uri: &str, accept: Option<&'static str>| {
            let accept = accept.map(|kind| (ACCEPT, HeaderValue::from_static(kind)));
            waits(&uri.parse().expect("a URI"), &accept.into_iter().collect())
        };
        assert!(waits("/api/v1/changes?since=1&wait=30", None));
        assert!(waits("/api/v1/changes", Some("text/html, Text/Event-Stream;q=0.9")));
        for accept in [None, Some("*/*"), Some("application/json"), Some("text/event-streams")] {
            assert!(!waits("/api/v1/changes?since=1&waits=1", accept));
        }
    }
}
