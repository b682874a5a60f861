//! Errors of refused writes.

use chrono::{DateTime, Utc};
use thiserror::Error;

use super::password::PasswordError;
use crate::journal::AppendError;
use crate::vocab::plan::Plan;

/// Reason why a write was refused. Nothing has changed.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The account has no such resource.
    #[error("not found")]
    NotFound,
    /// The idempotency key was used with another request.
    #[error("the idempotency key was used with another request")]
    IdempotencyConflict,
    /// The plan does not allow the write.
    #[error("{message}")]
    PlanLimit {
        plan: Plan,
        /// Maximum that the plan allows; `None` if the limit is not a number.
        limit: Option<u32>,
        message: String,
    },
    /// A limit that applies to every plan was reached.
    #[error("an account may have at most {limit} {what}")]
    TooMany { what: &'static str, limit: u32 },
    /// A value is out of range or does not fit the account's other data.
    #[error("{field:?}: {what}")]
    Invalid { field: InvalidField, what: String },
    /// The resource is not in the state that the request needs.
    #[error("{0}")]
    Conflict(String),
    /// The data of all accounts has reached the operator's limit.
    #[error(
        "the server holds the most user data that its operator allows; delete rows that you no longer \
         need, or try again later"
    )]
    ServerFull,
    /// The account writes faster than its plan allows.
    #[error("the {plan} plan allows {limit} writes a minute; try again in {retry_after_s} s")]
    TooManyWrites { plan: Plan, limit: u32, retry_after_s: i64 },
    /// The day's test messages are used up.
    #[error("an account may send at most {limit} test messages a day")]
    TooManyTests {
        limit: u32,
        /// The next 00:00 UTC.
        resets_at: DateTime<Utc>,
        retry_after_s: i64,
    },
    /// The journal refused the record.
    #[error(transparent)]
    Journal(#[from] AppendError),
    #[error("the system's random source failed: {0}")]
    Random(getrandom::Error),
    /// The queue of password hashes is full.
    #[error("too many password checks are queued")]
    Overloaded,
    #[error(transparent)]
    Password(#[from] PasswordError),
}

/// The part of a request that is invalid in [`WriteError::Invalid`]. A number in the path is a position in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidField {
    Registrar,
    ResalePrice,
    SoldAt,
    SoldVenue,
    Commission,
    RenewalDecision,
    UserNotes,
    Venue,
    Note,
    Tags,
    AlertRule,
    RuleName,
    SearchName,
    KeyName,
    KeyDays,
    Channels,
    Channel(usize),
    ChannelChatId(usize),
    /// The default chat of new rules.
    ChatId,
}
