//! The claims of one account.

use std::sync::Arc;

use compact_str::CompactString;

use crate::data::fields::row;
use crate::data::sorted::Sorted;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// A backorder claim. Invariant: `sold_at` is present if and only if the claim is sold, and
/// `resale_price` only then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub id: ClaimId,
    /// The claimed name, which need not be in the corpus.
    pub domain: DomainName,
    pub status: ClaimStatus,
    pub registrar: Option<Box<str>>,
    pub acquired_price: Option<Usd>,
    pub resale_price: Option<Usd>,
    pub sold_at: Option<UnixMs>,
    pub reported_at: UnixMs,
    /// Time of the last change.
    pub updated_at: UnixMs,
    pub user_notes: Option<Box<str>>,
    /// The rule that led to the claim.
    pub alert_rule: Option<Box<Attribution>>,
    pub bid: Option<Usd>,
    /// Venue at which the bid was placed.
    pub venue: Option<Box<str>>,
    pub renews_on: Option<Day>,
    /// The fee of the next renewal.
    pub renewal: Option<Usd>,
}

row!(Claim {
    1 id, 2 domain, 3 status, 4 reported_at, 5 updated_at
} optional {
    6 registrar, 7 acquired_price, 8 resale_price, 9 sold_at, 10 user_notes, 11 alert_rule,
    12 bid, 13 venue, 14 renews_on, 15 renewal
});

/// Snapshot of an alert rule, taken when a claim named it. It outlives the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    pub id: RuleId,
    /// The rule's name at that time.
    pub name: CompactString,
}

row!(Attribution { 1 id, 2 name });

/// Approximate size in memory of a claim without its texts.
const CLAIM_BYTES: u64 = 288;

impl Claim {
    /// Returns the approximate size in memory of the claim.
    pub fn bytes(&self) -> u64 {
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let rule =
            self.alert_rule.as_ref().map_or(0, |rule| size_of::<Attribution>() + rule.name.len());
        let texts = text(&self.registrar) + text(&self.user_notes) + text(&self.venue);
        CLAIM_BYTES + (self.domain.as_str().len() + texts + rule) as u64
    }
}

/// All claims of an account, by id and in list order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    by_id: Sorted<ClaimId, Arc<Claim>>,
    by_time: Sorted<(UnixMs, ClaimId), ()>,
    bytes: u64,
}

impl Claims {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the approximate size in memory of all claims.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn get(&self, id: ClaimId) -> Option<&Claim> {
        self.by_id.get(&id).map(Arc::as_ref)
    }

    /// Returns the claims, newest `reported_at` first, then id descending.
    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Claim> {
        self.by_time.iter().rev().filter_map(|((_, id), ())| self.get(*id))
    }

    /// Returns the claims in ascending order of ids.
    pub fn by_id(&self) -> impl Iterator<Item = &Claim> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Adds a claim, or replaces the one with the same id.
    pub fn put(&mut self, claim: Claim) {
        self.remove(claim.id);
        self.bytes += claim.bytes();
        self.by_time.insert((claim.reported_at, claim.id), ());
        self.by_id.insert(claim.id, Arc::new(claim));
    }

    pub fn remove(&mut self, id: ClaimId) {
        if let Some(old) = self.by_id.remove(&id) {
            self.by_time.remove(&(old.reported_at, id));
            self.bytes -= old.bytes();
        }
    }
}
