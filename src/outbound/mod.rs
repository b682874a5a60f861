//! The world we call: name servers, registries, and whoever an alert is for. What is to be said
//! comes in as plain values; what became of it goes out. Nothing here knows rules, accounts or
//! queues, and nothing is dialled but through [`guard`] (the operator's mail server aside).

pub mod alert;
pub mod dns;
pub mod email;
pub mod guard;
pub mod http;
pub mod rdap;
pub mod settings;
pub mod telegram;
pub mod webhook;

use std::fmt;
use std::time::Duration;

use crate::outbound::guard::GuardError;
use crate::outbound::http::CallError;

/// Why a message was not taken, in classes that a sender acts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// By our own guard.
    Refused,
    /// No answer in time.
    Timeout,
    /// No address, or no connection.
    Unreachable,
    /// No secure connection.
    Tls,
    /// An answer that is no success: an HTTP status.
    Status(u16),
    /// The receiver wants no more of them, ever (410).
    Gone,
    /// The mailbox or chat is not there, or does not want it.
    Rejected,
    /// The operator has not set up what it takes, or not rightly.
    NotConfigured,
}

impl Failure {
    /// Whether another try would be in vain.
    pub fn is_permanent(self) -> bool {
        matches!(self, Failure::Gone | Failure::Rejected)
    }
}

/// A message that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct SendError {
    pub failure: Failure,
    /// How long the receiver asks to be left alone.
    pub retry_after: Option<Duration>,
    /// For the operator's log. Holds no secret and nothing of an answer's body.
    pub detail: String,
}

impl SendError {
    fn of(failure: Failure, detail: impl fmt::Display) -> SendError {
        SendError { failure, retry_after: None, detail: detail.to_string() }
    }

    fn status(status: u16) -> SendError {
        SendError::of(Failure::Status(status), format_args!("answered {status}"))
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
            CallError::Timeout(_) => Failure::Timeout,
            CallError::Tls(_) => Failure::Tls,
            CallError::Refused(GuardError::Unresolved { .. })
            | CallError::Unresolved(_)
            | CallError::Unreachable(_)
            | CallError::Http(_)
            | CallError::TooLarge(_)
            | CallError::BadRequest(_) => Failure::Unreachable,
        };
        SendError::of(failure, err)
    }
}
