//! What a write of an account's own things takes and gives besides the thing itself.

use chrono::{DateTime, Utc};
use thiserror::Error;

use super::password::PasswordError;
use crate::journal::AppendError;
use crate::vocab::plan::Plan;

/// Characters of an idempotency key at most.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// What a client calls a request by, so that sending it twice does it once. Invariant: 1 to 255
/// printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// A text that is no [`IdempotencyKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable ASCII characters")]
pub struct IdempotencyKeyError;

impl IdempotencyKey {
    /// # Errors
    /// Empty, too long, or with a character that is not printable ASCII (space to `~`).
    pub fn parse(text: &str) -> Result<IdempotencyKey, IdempotencyKeyError> {
        let fits = (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&text.len());
        let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if fits && printable {
            Ok(IdempotencyKey(text.to_owned()))
        } else {
            Err(IdempotencyKeyError)
        }
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The key of a request and what the request was.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// What the client calls it.
    pub key: IdempotencyKey,
    /// A digest of method, path and body: the key must not come with another request.
    pub fingerprint: [u8; 32],
}

/// The circumstances of a POST.
#[derive(Clone, Debug)]
pub struct Post {
    /// The request's one reading of the clock.
    pub now: DateTime<Utc>,
    /// Where the client named a key.
    pub idempotency: Option<Idempotency>,
}

/// An answer, kept with its effect where the client named a key. A 2xx: what is refused is not
/// kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body, byte for byte; at most 256 KiB where it is to be kept.
    pub body: Vec<u8>,
}

/// What a POST came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The answer.
    pub reply: Reply,
    /// Whether it was given before, and nothing was done now.
    pub replayed: bool,
}

/// Whether a name was put on the watchlist or had been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was put there now.
    Added,
    /// It was there; nothing was consumed.
    AlreadyThere,
}

/// How many accounts voted for and against a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// For.
    pub up: u64,
    /// Against.
    pub down: u64,
}

/// Why a write was not carried out. Nothing has changed then.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The account owns no such thing.
    #[error("not found")]
    NotFound,
    /// The idempotency key came with another request before.
    #[error("the idempotency key was used with another request")]
    IdempotencyConflict,
    /// The plan does not allow it.
    #[error("{message}")]
    PlanLimit {
        /// What the account pays for.
        plan: Plan,
        /// How many the plan allows; `None` where it is not about a number.
        limit: Option<u32>,
        /// What is refused and why.
        message: String,
    },
    /// An account may not have more of something, whatever its plan.
    #[error("an account may have at most {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: u32,
    },
    /// A value that does not fit what the account owns, or a rule of its kind.
    #[error("{field}: {what}")]
    Invalid {
        /// Its place in the request, as the API writes it: `channels[1].url`.
        field: String,
        /// What is wrong with it.
        what: String,
    },
    /// It does not fit how the thing stands now.
    #[error("{0}")]
    Conflict(String),
    /// Every test message of the day has been sent.
    #[error("an account may send at most {limit} test messages a day")]
    TooManyTests {
        /// How many there may be.
        limit: u32,
        /// When the next day begins: 00:00 UTC.
        resets_at: DateTime<Utc>,
        /// Whole seconds until then.
        retry_after_s: i64,
    },
    /// It could not be made durable.
    #[error(transparent)]
    Journal(#[from] AppendError),
    /// No id or secret could be made.
    #[error("the system's random source failed: {0}")]
    Random(getrandom::Error),
    /// Too many passwords are to be compared at once.
    #[error("too many log in at once")]
    Overloaded,
    /// A password could not be hashed.
    #[error(transparent)]
    Password(#[from] PasswordError),
}
