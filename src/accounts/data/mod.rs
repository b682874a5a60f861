//! What one account owns, as one value: a reader that holds it sees one moment, whatever is
//! written meanwhile.

pub mod claims;
pub mod deliveries;
pub mod replies;
pub mod rules;
pub mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;

use compact_str::CompactString;

use crate::vocab::claim::Vote;
use crate::vocab::day::Day;
use crate::vocab::ids::{ClaimId, DeliveryId, RuleId};
use crate::vocab::name::DomainName;
use claims::{Claim, Claims};
use deliveries::{Delivery, Outbox, SwitchedOff};
use replies::Replies;
use rules::{Channel, Rule, Rules};
use watches::{WatchEntry, Watches};

/// All an account owns. Each part is shared with whoever reads it; a change copies the one part it
/// is about, and only while somebody does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    pub(super) claims: Arc<Claims>,
    pub(super) watches: Arc<Watches>,
    pub(super) rules: Arc<Rules>,
    pub(super) votes: Arc<Votes>,
    pub(super) replies: Arc<Replies>,
    pub(super) outbox: Arc<Outbox>,
    /// The last UTC day with test messages, and how many.
    pub(super) tests: Option<(Day, u32)>,
}

/// The votes of one account, by name.
pub(super) type Votes = BTreeMap<CompactString, Vote>;

impl Owned {
    /// Claims, newest `reported_at` first, then id descending.
    pub fn claims(&self) -> impl DoubleEndedIterator<Item = &Claim> {
        self.claims.newest_first()
    }

    /// How many claims there are.
    pub fn claim_count(&self) -> usize {
        self.claims.len()
    }

    /// The claim with this id.
    pub fn claim(&self, id: ClaimId) -> Option<&Claim> {
        self.claims.get(id)
    }

    /// The entry of this name.
    pub fn watch(&self, name: &DomainName) -> Option<WatchEntry> {
        self.watches.get(name)
    }

    /// The watchlist, in order of names.
    pub fn watches(&self) -> impl ExactSizeIterator<Item = WatchEntry> {
        self.watches.iter()
    }

    /// Watched names that cost quota, in order.
    pub fn external_names(&self) -> impl Iterator<Item = DomainName> {
        self.watches.iter().filter(|entry| entry.external).map(|entry| entry.name)
    }

    /// Alert rules, newest first, then id descending.
    pub fn rules(&self) -> impl DoubleEndedIterator<Item = &Rule> + ExactSizeIterator {
        self.rules.newest_first()
    }

    /// The rule with this id.
    pub fn rule(&self, id: RuleId) -> Option<&Rule> {
        self.rules.get(id)
    }

    /// The account's own vote on a name.
    pub fn vote(&self, name: &DomainName) -> Option<Vote> {
        self.votes.get(name.as_str()).copied()
    }

    /// What was, is and will be sent for a rule, newest first.
    pub fn deliveries(&self, rule: RuleId) -> impl Iterator<Item = &Delivery> {
        let outbox = self.outbox.of(rule);
        outbox.into_iter().flat_map(|outbox| outbox.deliveries.iter().rev())
    }

    /// One of them.
    pub fn delivery(&self, rule: RuleId, id: DeliveryId) -> Option<&Delivery> {
        self.outbox.of(rule)?.get(id)
    }

    /// Why a channel of a rule is off; `None` when it is on.
    pub fn switched_off(&self, rule: RuleId, channel: &Channel) -> Option<SwitchedOff> {
        self.outbox.of(rule)?.switched_off(channel)
    }

    /// Whether any channel of a rule is off.
    pub(super) fn has_channel_off(&self, rule: RuleId) -> bool {
        self.outbox.of(rule).is_some_and(|outbox| !outbox.off.is_empty())
    }
}
