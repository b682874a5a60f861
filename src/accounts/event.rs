//! What happened, as it is stored.
//!
//! The bytes are bincode 1.3 with fixed-width little-endian integers, at most 1 MiB, no trailing
//! byte. A variant is stored by its place in the list and a field by its place in the variant, so:
//! never reorder, remove or change one. A new shape is a new variant at the end; readers keep the
//! old ones for ever. The golden bytes under `tests/golden` hold this.

use bincode::Options;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::email::Email;
use super::keys::StoredKey;
use super::password::PasswordHash;
use crate::journal::{Kind, PAYLOAD_BYTES_MAX};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;

/// The journal's number for records that hold an [`Event`].
pub const EVENT: Kind = match Kind::of_caller(16) {
    Some(kind) => kind,
    None => panic!("16 is the caller's"),
};

/// One thing that happened to the users' state.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// An account came to be.
    AccountAdded {
        /// Its number, not used before.
        account: AccountId,
        /// Its address, not in use.
        email: Email,
        /// What it pays for.
        plan: Plan,
        /// For a log-in, where one was set.
        password: Option<PasswordHash>,
        /// The UTC day.
        on: StoredDay,
    },
    /// An account pays for something else from now on.
    PlanSet {
        /// Whose.
        account: AccountId,
        /// What it pays for now.
        plan: Plan,
    },
    /// An account got a key; the one before no longer works.
    KeyIssued {
        /// Whose.
        account: AccountId,
        /// What is kept of it.
        key: StoredKey,
        /// The UTC day.
        on: StoredDay,
    },
    /// An account was shut; its key no longer works.
    AccountDisabled {
        /// Whose.
        account: AccountId,
    },
    /// How much of a day's allowance an account has used so far.
    UsageNoted {
        /// Whose.
        account: AccountId,
        /// The UTC day.
        day: StoredDay,
        /// JSON requests granted on it.
        requests: u32,
        /// Exports granted on it.
        exports: u32,
    },
    /// A UTC day began; none before it comes back.
    DayBegan {
        /// The day.
        day: StoredDay,
    },
}

/// A [`Day`] as two bytes, days since 1984-12-31, where `Day` itself is stored as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct StoredDay(pub Day);

impl TryFrom<u16> for StoredDay {
    type Error = &'static str;

    fn try_from(raw: u16) -> Result<StoredDay, &'static str> {
        Day::from_raw(raw).map(StoredDay).ok_or("0 is not a day")
    }
}

impl From<StoredDay> for u16 {
    fn from(day: StoredDay) -> u16 {
        day.0.raw()
    }
}

/// Why a stored payload is not an [`Event`].
#[derive(Debug, Error)]
pub enum EventError {
    /// Its bytes are none this build knows.
    #[error("it is not an event this dropdex knows ({0}); a later dropdex may have written it")]
    Decode(#[from] bincode::Error),
    /// The journal holds it under a number this build does not know.
    #[error("its kind is {0}, which this dropdex does not know; a later one wrote it")]
    Kind(u16),
}

impl Event {
    /// As stored. Every event is far shorter than a payload may be.
    pub fn encode(&self) -> Vec<u8> {
        codec().serialize(self).expect("texts in an event are bounded and far below 1 MiB")
    }

    /// The event stored as `payload`, under `kind`.
    ///
    /// # Errors
    /// [`EventError`].
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Event, EventError> {
        if kind != EVENT {
            return Err(EventError::Kind(kind.number()));
        }
        Ok(codec().deserialize(payload)?)
    }
}

/// The one codec: `bincode::serialize` and other options write other bytes.
fn codec() -> impl Options {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_little_endian()
        .with_limit(PAYLOAD_BYTES_MAX as u64)
        .reject_trailing_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day() -> StoredDay {
        StoredDay("2026-11-21".parse().expect("a day"))
    }

    /// One of each shape: every variant, every plan, with and without a password.
    fn all() -> Vec<(&'static str, Event)> {
        let account = AccountId(0x0102);
        let email: Email = "ann@example.com".parse().expect("an address");
        let key = serde_json::json!({"digest": vec![0xab; 32], "last4": b"c0de"});
        let key: StoredKey = serde_json::from_value(key).expect("a key");
        let hash: PasswordHash = serde_json::from_str(r#""$argon2id$x""#).expect("a hash");
        let mut events: Vec<_> = Plan::ALL
            .into_iter()
            .map(|plan| (plan.as_str(), Event::PlanSet { account, plan }))
            .collect();
        for (name, password) in [("account", None), ("account, password", Some(hash))] {
            let (email, plan) = (email.clone(), Plan::Pro);
            events.push((name, Event::AccountAdded { account, email, plan, password, on: day() }));
        }
        events.push(("key", Event::KeyIssued { account, key, on: day() }));
        events.push(("disabled", Event::AccountDisabled { account }));
        let (requests, exports) = (100, 7);
        events.push(("usage", Event::UsageNoted { account, day: day(), requests, exports }));
        events.push(("day", Event::DayBegan { day: day() }));
        events
    }

    #[test]
    fn the_bytes_of_every_event_never_change() {
        let ours: String = all()
            .iter()
            .map(|(name, event)| format!("{name}: {}\n", hex::encode(event.encode())))
            .collect();
        assert_eq!(ours, include_str!("../../tests/golden/journal-events-v1.hex"));
    }

    #[test]
    fn what_is_stored_is_read_back() {
        for (name, event) in all() {
            let read = Event::decode(EVENT, &event.encode()).expect(name);
            assert!(read == event, "{name}");
        }
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for (name, event) in all() {
            let bytes = event.encode();
            for len in 0..bytes.len() {
                assert!(Event::decode(EVENT, &bytes[..len]).is_err(), "{name} cut at {len}");
            }
            let trailing = [bytes.as_slice(), &[0]].concat();
            assert!(Event::decode(EVENT, &trailing).is_err(), "{name} and one byte");
        }
        assert!(Event::decode(EVENT, &[0xff; 64]).is_err(), "an unknown variant");
        let day_0 = [5, 0, 0, 0, 0, 0];
        assert!(Event::decode(EVENT, &day_0).is_err(), "day 0");
        let other = Kind::of_caller(17).expect("the caller's");
        assert!(matches!(Event::decode(other, &all()[0].1.encode()), Err(EventError::Kind(17))));
    }
}
