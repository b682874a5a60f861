//! The claims of one account.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::vocab::claim::ClaimStatus;
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
}

/// An alert rule as it was when a claim named it. It outlives the rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    pub id: RuleId,
    /// The rule's name at that time.
    pub name: CompactString,
}

/// All claims of an account, by id and in list order. A clone copies pointers, not claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    by_id: BTreeMap<ClaimId, Arc<Claim>>,
    by_time: BTreeSet<(UnixMs, ClaimId)>,
}

impl Claims {
    /// Builds the collection from claims in ascending order of ids.
    pub fn from_sorted(claims: Vec<Claim>) -> Claims {
        let by_time = claims.iter().map(|claim| (claim.reported_at, claim.id)).collect();
        let by_id = claims.into_iter().map(|claim| (claim.id, Arc::new(claim))).collect();
        Claims { by_id, by_time }
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn get(&self, id: ClaimId) -> Option<&Claim> {
        self.by_id.get(&id).map(Arc::as_ref)
    }

    /// Newest `reported_at` first, then id descending.
    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Claim> {
        self.by_time.iter().rev().filter_map(|(_, id)| self.get(*id))
    }

    /// In ascending order of ids.
    pub fn by_id(&self) -> impl ExactSizeIterator<Item = &Claim> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Adds a claim, or replaces the one with its id.
    pub fn put(&mut self, claim: Claim) {
        self.remove(claim.id);
        self.by_time.insert((claim.reported_at, claim.id));
        self.by_id.insert(claim.id, Arc::new(claim));
    }

    pub fn remove(&mut self, id: ClaimId) {
        if let Some(old) = self.by_id.remove(&id) {
            self.by_time.remove(&(old.reported_at, id));
        }
    }
}
