//! Idempotency keys: a request that is sent twice is carried out once.
//!
//! The response to a request is stored in the same record as its effect and kept for 24 hours. The
//! caller defines the bytes of the response: the decision returns a [`Draft`] with a typed value,
//! the caller converts the value to a [`Receipt`], and both are then written.

use chrono::{DateTime, Utc};
use thiserror::Error;

use super::ceilings::{Room, growth};
use super::data::account::Account;
use super::data::responses::{KeptResponse, KeyDigest};
use super::decide::Decided;
use super::error::WriteError;
use super::event::Event;
use super::store::locks::AccountLock;
use super::store::{Caller, Store};
use crate::journal::AppendError;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::PlanLimits;
use crate::vocab::time::UnixMs;

/// Maximum characters of an idempotency key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Maximum bytes of a stored response, which shares a record with its effect.
const REPLY_BYTES_MAX: usize = 256 << 10;

/// The client's name for a request. Invariant: 1 to 255 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// The text is not an [`IdempotencyKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable ASCII characters")]
pub struct IdempotencyKeyError;

impl IdempotencyKey {
    /// # Errors
    /// Empty, too long, or with a character other than space to `~`.
    pub fn parse(text: &str) -> Result<IdempotencyKey, IdempotencyKeyError> {
        let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if is_printable && (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&text.len()) {
            Ok(IdempotencyKey(text.to_owned()))
        } else {
            Err(IdempotencyKeyError)
        }
    }

    fn digest(&self) -> KeyDigest {
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(self.0.as_bytes()).as_bytes()[..16]);
        digest
    }
}

/// An idempotency key and its request.
#[derive(Clone, Debug)]
pub struct Idempotency {
    pub key: IdempotencyKey,
    /// Digest of the request, since a key is valid for one request only.
    pub fingerprint: [u8; 32],
}

/// Time and idempotency key of a POST request.
#[derive(Clone, Debug)]
pub struct Post {
    /// The time of the request.
    pub now: DateTime<Utc>,
    pub idempotency: Option<Idempotency>,
}

/// The stored response of a write, for retries of the request. The caller defines status and body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    pub code: u16,
    /// Body, of at most 256 KiB if it is kept.
    pub bytes: Vec<u8>,
}

/// The outcome of a write with an optional idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The result; `None` for a repeat, which changed nothing.
    pub value: Option<T>,
    /// The receipt of this request, or the kept one for a repeat.
    pub receipt: Receipt,
}

impl<T> Answered<T> {
    /// Returns true if this is the stored response to an earlier request.
    pub fn is_replay(&self) -> bool {
        self.value.is_none()
    }
}

/// A decided write of one account. Nothing is written before [`Draft::respond`]; until then the
/// account stays locked.
#[must_use = "nothing is written before `respond`"]
pub struct Draft<'a, T> {
    store: &'a Store,
    /// The account itself is not kept here, since applying the write would then have to copy its data.
    account: AccountId,
    room: Room,
    /// Bytes that the write adds to the account, without the stored response.
    growth: i64,
    lock: AccountLock,
    post: Post,
    outcome: Decision<T>,
}

enum Decision<T> {
    New(Decided<T>),
    Repeat(Receipt),
}

impl<T> Decision<T> {
    fn growth(&self, account: &Account) -> i64 {
        match self {
            Decision::New(decided) => growth(&account.data, &decided.events),
            Decision::Repeat(_) => 0,
        }
    }
}

impl<'a, T> Draft<'a, T> {
    /// Converts the value. A repeat has none.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Draft<'a, U> {
        let Draft { store, account, room, growth, lock, post, outcome } = self;
        let outcome = match outcome {
            Decision::New(Decided { events, value }) => {
                Decision::New(Decided { events, value: convert(value) })
            }
            Decision::Repeat(receipt) => Decision::Repeat(receipt),
        };
        Draft { store, account, room, growth, lock, post, outcome }
    }

    /// Makes a write without an idempotency key durable.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn finish(self) -> Result<T, WriteError> {
        let answered = self.respond(|_| Receipt::default()).await?;
        Ok(answered.value.expect("a write without a key is not a repeat"))
    }

    /// Makes the write durable together with its receipt. A repeat gets the stored receipt instead,
    /// and `receipt` is not called.
    ///
    /// # Errors
    /// [`WriteError::Journal`], or the response does not fit the account's limit of bytes.
    pub async fn respond(
        self,
        receipt: impl FnOnce(&T) -> Receipt,
    ) -> Result<Answered<T>, WriteError> {
        let Decided { mut events, value } = match self.outcome {
            Decision::New(decided) => decided,
            Decision::Repeat(receipt) => return Ok(Answered { value: None, receipt }),
        };
        let receipt = receipt(&value);
        if let Some(idempotency) = self.post.idempotency {
            let at = UnixMs::from_instant(self.post.now);
            let kept = kept(&idempotency, at, &receipt)?;
            self.room.check(self.growth + kept.bytes() as i64)?;
            events.push(Event::ReplyKept { account: self.account, reply: kept });
        }
        self.store.append(events, Some(self.lock)).await?;
        Ok(Answered { value: Some(value), receipt })
    }
}

impl Post {
    /// Describes a POST that may be repeated.
    pub fn repeatable(now: DateTime<Utc>) -> Post {
        Post { now, idempotency: None }
    }
}

impl Store {
    /// Result of a look-up: the request repeats one whose response is kept, or it reuses the key of
    /// another request.
    pub(super) fn is_repeat(&self, caller: &Caller, post: &Post) -> bool {
        let state = self.state();
        let account = state.account(caller.account);
        account.is_some_and(|account| kept_response(account, post).is_some())
    }

    /// Decides on a write, unless its idempotency key was used in the last 24 hours. If the key was
    /// used, a repeated request gets the kept response, and any other request is refused.
    pub(super) async fn draft<T>(
        &self,
        caller: &Caller,
        post: Post,
        decide: impl FnOnce(&Account, &PlanLimits) -> Result<Decided<T>, WriteError>,
    ) -> Result<Draft<'_, T>, WriteError> {
        self.admit(caller)?;
        let (lock, account) = self.lock_account(caller.account).await?;
        let outcome = match kept_response(&account, &post) {
            Some(kept) => Decision::Repeat(kept?),
            None => {
                let decided = decide(&account, self.plan_limits(account.plan))?;
                Decision::New(self.recorded(caller, decided))
            }
        };
        let (room, growth) = (self.room(&account), outcome.growth(&account));
        room.check(growth)?;
        Ok(Draft { store: self, lock, post, account: account.id, room, growth, outcome })
    }
}

/// Returns the response kept under the key of this request; `None` for a new request.
fn kept_response(account: &Account, post: &Post) -> Option<Result<Receipt, WriteError>> {
    let Idempotency { key, fingerprint } = post.idempotency.as_ref()?;
    let kept = account.data.responses.get(&key.digest(), UnixMs::from_instant(post.now))?;
    Some(if kept.fingerprint == *fingerprint {
        Ok(Receipt { code: kept.status, bytes: kept.body.to_vec() })
    } else {
        Err(WriteError::IdempotencyConflict)
    })
}

/// Returns the stored form of a response, unless it is too long.
fn kept(
    Idempotency { key, fingerprint }: &Idempotency,
    at: UnixMs,
    receipt: &Receipt,
) -> Result<KeptResponse, WriteError> {
    let len = receipt.bytes.len();
    if len > REPLY_BYTES_MAX {
        return Err(AppendError::TooLong { len }.into());
    }
    Ok(KeptResponse {
        key: key.digest(),
        fingerprint: *fingerprint,
        at,
        status: receipt.code,
        body: receipt.bytes.as_slice().into(),
    })
}
