//! The claims of one account.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compact_str::CompactString;

use crate::vocab::claim::ClaimStatus;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// A backorder claim. Invariant: `sold_at` is there when, and only when, it is sold;
/// `resale_price` only then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its id.
    pub id: ClaimId,
    /// What it is about; the corpus need not know the name.
    pub domain: DomainName,
    /// What became of it.
    pub status: ClaimStatus,
    /// Where it is registered.
    pub registrar: Option<Box<str>>,
    /// What it cost.
    pub acquired_price: Option<Usd>,
    /// What it was sold for.
    pub resale_price: Option<Usd>,
    /// When it was sold.
    pub sold_at: Option<UnixMs>,
    /// When it was added.
    pub reported_at: UnixMs,
    /// When it was last changed.
    pub updated_at: UnixMs,
    /// What its owner wrote about it.
    pub user_notes: Option<Box<str>>,
    /// The rule that led to it.
    pub alert_rule: Option<Box<Attribution>>,
}

/// An alert rule, as it was when a claim named it: rules come and go, what they led to stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// Its id.
    pub id: RuleId,
    /// Its name at that time.
    pub name: CompactString,
}

/// A claim to be added.
#[derive(Clone, Debug)]
pub struct NewClaim {
    /// What it is about.
    pub domain: DomainName,
    /// What became of it.
    pub status: ClaimStatus,
    /// Where it is registered: 1 to 200 characters on one line.
    pub registrar: Option<String>,
    /// What it cost.
    pub acquired_price: Option<Usd>,
    /// What it was sold for: of a sold one only.
    pub resale_price: Option<Usd>,
    /// When it was sold: of a sold one only; now where it is not given.
    pub sold_at: Option<UnixMs>,
    /// A note: at most 10,000 characters; an empty one is none.
    pub user_notes: Option<String>,
    /// A rule of the same account.
    pub alert_rule: Option<RuleId>,
}

/// What to change of a claim: an outer `None` leaves it, an inner one takes it away.
#[derive(Clone, Debug, Default)]
pub struct ClaimPatch {
    /// Any status may follow any other. Leaving `sold` takes `sold_at` and `resale_price` away.
    pub status: Option<ClaimStatus>,
    /// As in [`NewClaim`].
    pub registrar: Option<Option<String>>,
    /// As in [`NewClaim`].
    pub acquired_price: Option<Option<Usd>>,
    /// As in [`NewClaim`].
    pub resale_price: Option<Option<Usd>>,
    /// As in [`NewClaim`]; a sold claim keeps one.
    pub sold_at: Option<Option<UnixMs>>,
    /// As in [`NewClaim`].
    pub user_notes: Option<Option<String>>,
    /// As in [`NewClaim`].
    pub alert_rule: Option<Option<RuleId>>,
}

/// All claims of an account, by id and in the order of lists. A clone copies pointers, not claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::accounts) struct Claims {
    by_id: BTreeMap<ClaimId, Arc<Claim>>,
    by_time: BTreeSet<(UnixMs, ClaimId)>,
}

impl Claims {
    /// Claims in ascending order of their ids.
    pub(in crate::accounts) fn from_sorted(claims: Vec<Claim>) -> Claims {
        let by_time = claims.iter().map(|claim| (claim.reported_at, claim.id)).collect();
        let by_id = claims.into_iter().map(|claim| (claim.id, Arc::new(claim))).collect();
        Claims { by_id, by_time }
    }

    pub(in crate::accounts) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(in crate::accounts) fn get(&self, id: ClaimId) -> Option<&Claim> {
        self.by_id.get(&id).map(Arc::as_ref)
    }

    /// Newest `reported_at` first, then id descending.
    pub(in crate::accounts) fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Claim> {
        self.by_time.iter().rev().filter_map(|(_, id)| self.get(*id))
    }

    /// In ascending order of ids.
    pub(in crate::accounts) fn by_id(&self) -> impl ExactSizeIterator<Item = &Claim> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Adds a claim, or puts it in the place of the one with its id.
    pub(in crate::accounts) fn put(&mut self, claim: Claim) {
        self.remove(claim.id);
        self.by_time.insert((claim.reported_at, claim.id));
        self.by_id.insert(claim.id, Arc::new(claim));
    }

    pub(in crate::accounts) fn remove(&mut self, id: ClaimId) {
        if let Some(old) = self.by_id.remove(&id) {
            self.by_time.remove(&(old.reported_at, id));
        }
    }
}
