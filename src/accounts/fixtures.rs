//! Values for the unit tests of this room.

use super::data::claims::Claim;
use super::data::rules::{Channel, Rule};
use super::email::Email;
use super::keys::StoredKey;
use crate::query::stored::Conditions;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

pub fn day() -> Day {
    "2026-11-21".parse().expect("a day")
}

pub fn name(text: &str) -> DomainName {
    DomainName::parse(text).expect("a name")
}

pub fn email(text: &str) -> Email {
    text.parse().expect("an address")
}

pub fn stored_key() -> StoredKey {
    let key = serde_json::json!({"digest": vec![0xab; 32], "last4": b"c0de"});
    serde_json::from_value(key).expect("a key")
}

/// Returns an instant `ms` milliseconds after a fixed one.
pub fn at(ms: u64) -> UnixMs {
    UnixMs::new(1_790_000_000_000 + ms).expect("an instant")
}

/// Returns a claim with only the required fields.
pub fn claim() -> Claim {
    let id = ClaimId::new(0x0102_0304).expect("an id");
    let claim = Claim::new(id, name("example.co.uk"), ClaimStatus::Attempted, at(0));
    Claim { updated_at: at(1), ..claim }
}

/// Returns a rule that matches everything and sends mail.
pub fn rule() -> Rule {
    Rule {
        id: RuleId::new(7).expect("an id"),
        name: "short".into(),
        filter: Conditions::default(),
        channels: vec![Channel::Email],
        active: true,
        created_at: at(4),
        secrets: Vec::new(),
        search: None,
    }
}
