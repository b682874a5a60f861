//! The claims of one account.

use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::accounts::data::sorted::Sorted;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// A backorder claim. Invariant: `sold_at` is present exactly if the claim is sold, and
/// `resale_price` only then.
///
/// Events and snapshots store the fields by position: a change of them makes old journals unreadable
/// (`data/docs/contributing.md`, Add a field to a claim).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub id: ClaimId,
    /// The claimed name; it need not be in the corpus.
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
    /// Stored apart, since claims did not always have it.
    #[serde(skip)]
    pub trade: Trade,
}

/// The bid on a claimed name and its next renewal. Events and snapshots store the fields by position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trade {
    pub bid: Option<Usd>,
    /// Where the bid was placed.
    pub venue: Option<Box<str>>,
    pub renews_on: Option<Day>,
    /// The fee of the next renewal.
    pub renewal: Option<Usd>,
}

/// An alert rule as it was when a claim named it. It outlives the rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    pub id: RuleId,
    /// The rule's name at that time.
    pub name: CompactString,
}

/// Approximate memory of a claim besides its texts.
const CLAIM_BYTES: u64 = 288;

impl Trade {
    /// Approximate memory besides that of the claim.
    pub fn bytes(&self) -> u64 {
        self.venue.as_ref().map_or(0, |venue| venue.len() as u64)
    }
}

impl Claim {
    /// Approximate memory of the claim.
    pub fn bytes(&self) -> u64 {
        self.bytes_without_trade() + self.trade.bytes()
    }

    /// As [`Claim::bytes`], without the texts of its trade.
    pub fn bytes_without_trade(&self) -> u64 {
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let rule =
            self.alert_rule.as_ref().map_or(0, |rule| size_of::<Attribution>() + rule.name.len());
        let texts = self.domain.as_str().len() + text(&self.registrar) + text(&self.user_notes);
        CLAIM_BYTES + (texts + rule) as u64
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

    /// Approximate memory of all claims.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn get(&self, id: ClaimId) -> Option<&Claim> {
        self.by_id.get(&id).map(Arc::as_ref)
    }

    /// Newest `reported_at` first, then id descending.
    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Claim> {
        self.by_time.iter().rev().filter_map(|((_, id), ())| self.get(*id))
    }

    /// In ascending order of ids.
    pub fn by_id(&self) -> impl Iterator<Item = &Claim> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Adds a claim, or replaces the one with its id, whose trade stays.
    pub fn put_keeping_trade(&mut self, mut claim: Claim) {
        claim.trade = self.get(claim.id).map(|old| old.trade.clone()).unwrap_or_default();
        self.put(claim);
    }

    /// Sets the trade of a claim, if there is one with this id.
    pub fn set_trade(&mut self, id: ClaimId, trade: Trade) {
        if let Some(claim) = self.get(id) {
            self.put(Claim { trade, ..claim.clone() });
        }
    }

    /// Adds a claim, or replaces the one with its id.
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
