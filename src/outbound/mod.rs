//! Outbound calls to name servers, registries, and the receivers of alerts. The modules take plain
//! values and return outcomes; they do not know rules, accounts or queues. Every connection goes
//! through [`guard`], except to the operator's mail server.

pub mod alert;
pub mod archive;
pub mod bootstrap;
pub mod chat;
pub mod coding;
pub mod digest;
pub mod dns;
pub mod email;
pub mod guard;
pub mod http;
pub mod parent;
pub mod rate;
pub mod rdap;
pub mod settings;
pub mod switched_off;
pub mod telegram;
pub mod tls;
pub mod transfer;
pub mod webhook;
pub mod whois;

use dropdex_vocab as vocab;

use std::fmt;
use std::time::Duration;

use crate::guard::GuardError;
use crate::http::CallError;

/// Class of a delivery failure, which decides on retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Refused by the guard.
    Refused,
    /// No response in time.
    Timeout,
    /// The host has no address, or no connection could be made.
    Unreachable,
    /// TLS failed.
    Tls,
    /// An HTTP status other than success.
    Status(u16),
    /// The receiver wants no further messages (410), or no longer exists.
    Gone,
    /// The mailbox or chat does not exist or rejects the message.
    Rejected,
    /// The channel is not configured, or its configuration is wrong.
    NotConfigured,
}

impl Failure {
    /// Returns true when retries are pointless.
    pub fn is_permanent(self) -> bool {
        matches!(self, Failure::Gone | Failure::Rejected)
    }
}

/// A failed delivery.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct SendError {
    pub failure: Failure,
    /// Delay requested by the receiver.
    pub retry_after: Option<Duration>,
    /// Whether the receiver could not be reached at all.
    pub is_down: bool,
    /// Detail for the operator's log, without secrets and without the response body.
    pub detail: String,
}

impl SendError {
    /// Creates an error of a receiver that was reached.
    pub fn new(failure: Failure, detail: impl fmt::Display) -> SendError {
        SendError { failure, retry_after: None, is_down: false, detail: detail.to_string() }
    }

    fn status(status: u16) -> SendError {
        SendError::new(Failure::Status(status), format_args!("HTTP status {status}"))
    }

    fn after(self, retry_after: Option<Duration>) -> SendError {
        SendError { retry_after, ..self }
    }
}

impl From<CallError> for SendError {
    fn from(err: CallError) -> SendError {
        let failure = match &err {
            CallError::Refused(GuardError::Refused(_) | GuardError::Excess { .. })
            | CallError::WrongPeer { .. } => Failure::Refused,
            CallError::Timeout(_) | CallError::ConnectTimeout(_) | CallError::Slow(_) => {
                Failure::Timeout
            }
            CallError::Tls(_) => Failure::Tls,
            CallError::Refused(GuardError::Unresolved { .. })
            | CallError::Unresolved(_)
            | CallError::Unreachable(_)
            | CallError::Http(_)
            | CallError::TooLarge(_)
            | CallError::Coding(_)
            | CallError::BadRequest(_) => Failure::Unreachable,
        };
        SendError { is_down: err.is_unconnected(), ..SendError::new(failure, err) }
    }
}
