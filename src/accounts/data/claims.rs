//! The claims of one account.

use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::data::fields::row;
use crate::data::sorted::Sorted;
use crate::vocab::claim::{ClaimStatus, RenewalDecision};
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, RuleId};
use crate::vocab::money::{Amount, Percent, Usd};
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
    pub terms: Option<Box<Terms>>,
}

row!(Claim {
    1 id, 2 domain, 3 status, 4 reported_at, 5 updated_at
} optional {
    6 registrar, 7 acquired_price, 8 resale_price, 9 sold_at, 10 user_notes, 11 alert_rule,
    12 bid, 13 venue, 14 renews_on, 15 renewal, 16 terms
});

/// Amounts of a claim in other currencies than the US dollar, the terms of its sale, and the decision about its renewal. Invariants: an amount
/// is here or in the field of the claim with the same name, not in both; terms of a sale are those of a
/// sold claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    pub bid: Option<Amount>,
    pub acquired_price: Option<Amount>,
    pub resale_price: Option<Amount>,
    pub renewal: Option<Amount>,
    pub commission: Option<Commission>,
    /// Venue at which the name was sold.
    pub sold_venue: Option<Box<str>>,
    /// Decision about the renewal that is due on a day.
    pub decision: Option<(Day, RenewalDecision)>,
}

row!(Terms {} optional {
    1 bid, 2 acquired_price, 3 resale_price, 4 renewal, 5 commission, 6 sold_venue, 7 decision
});

/// Commission of the venue that sold a name. Variants are stored by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Commission {
    /// A share of the price.
    Percent(Percent),
    Amount(Amount),
}

/// Snapshot of an alert rule, taken when a claim named it. It outlives the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    pub id: RuleId,
    /// The rule's name at that time.
    pub name: CompactString,
}

row!(Attribution { 1 id, 2 name });

/// Amounts of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    Bid,
    Acquired,
    Resale,
    Renewal,
}

/// Approximate size in memory of a claim without its texts.
const CLAIM_BYTES: u64 = 296;

impl Claim {
    /// Returns a claim with only the required fields, reported at `now`.
    pub fn new(id: ClaimId, domain: DomainName, status: ClaimStatus, now: UnixMs) -> Claim {
        Claim {
            id,
            domain,
            status,
            registrar: None,
            acquired_price: None,
            resale_price: None,
            sold_at: None,
            reported_at: now,
            updated_at: now,
            user_notes: None,
            alert_rule: None,
            bid: None,
            venue: None,
            renews_on: None,
            renewal: None,
            terms: None,
        }
    }

    /// Returns the approximate size in memory of the claim.
    pub fn bytes(&self) -> u64 {
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let rule =
            self.alert_rule.as_ref().map_or(0, |rule| size_of::<Attribution>() + rule.name.len());
        let terms =
            self.terms.as_ref().map_or(0, |terms| size_of::<Terms>() + text(&terms.sold_venue));
        let texts = text(&self.registrar) + text(&self.user_notes) + text(&self.venue);
        CLAIM_BYTES + (self.domain.as_str().len() + texts + rule + terms) as u64
    }

    /// Returns an amount as it was entered.
    pub fn amount(&self, price: Price) -> Option<Amount> {
        let terms = self.terms.as_deref();
        let (usd, other) = match price {
            Price::Bid => (self.bid, terms.and_then(|it| it.bid)),
            Price::Acquired => (self.acquired_price, terms.and_then(|it| it.acquired_price)),
            Price::Resale => (self.resale_price, terms.and_then(|it| it.resale_price)),
            Price::Renewal => (self.renewal, terms.and_then(|it| it.renewal)),
        };
        usd.map(Amount::from).or(other)
    }

    /// Sets or clears an amount.
    pub fn set_amount(&mut self, price: Price, amount: Option<Amount>) {
        let mut terms = self.terms.take().unwrap_or_default();
        let (usd, other) = match price {
            Price::Bid => (&mut self.bid, &mut terms.bid),
            Price::Acquired => (&mut self.acquired_price, &mut terms.acquired_price),
            Price::Resale => (&mut self.resale_price, &mut terms.resale_price),
            Price::Renewal => (&mut self.renewal, &mut terms.renewal),
        };
        *usd = amount.and_then(Amount::usd);
        *other = amount.filter(|_| usd.is_none());
        self.set_terms(*terms);
    }

    /// Returns the decision about the next renewal. A decision about an earlier one no longer counts.
    pub fn decision(&self) -> Option<RenewalDecision> {
        let (day, decision) = self.terms.as_deref()?.decision?;
        (self.renews_on == Some(day)).then_some(decision)
    }

    /// Whether the name is held, so that its renewal matters.
    pub fn is_held(&self) -> bool {
        matches!(self.status, ClaimStatus::Caught | ClaimStatus::Registered)
    }

    /// Replaces the terms.
    pub fn set_terms(&mut self, terms: Terms) {
        self.terms = (terms != Terms::default()).then(|| Box::new(terms));
    }

    /// Returns the commission of the venue that sold the name, and the venue.
    pub fn sale_terms(&self) -> (Option<Commission>, Option<&str>) {
        let terms = self.terms.as_deref();
        (terms.and_then(|it| it.commission), terms.and_then(|it| it.sold_venue.as_deref()))
    }

    /// Returns the commission as an amount; `None` for a share of an unknown price.
    pub fn commission(&self) -> Option<Amount> {
        match self.sale_terms().0? {
            Commission::Percent(percent) => Some(percent.of(self.amount(Price::Resale)?)),
            Commission::Amount(amount) => Some(amount),
        }
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
