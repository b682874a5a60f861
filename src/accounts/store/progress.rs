//! The alert rules of all accounts together: how far they are matched, and which deliveries are
//! pending. Only the progress is stored; the queue is rebuilt from the outboxes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::data::deliveries::RuleOutbox;
use crate::data::fields::row;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId, UnsubscribeToken};
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// A pending delivery; the order is that in which they are due.
pub type Due = (UnixMs, AccountId, RuleId, DeliveryId);

/// How far all rules are matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchProgress {
    /// All rules; `None` before the first start of a server.
    pub all: Option<Watermark>,
    /// Rules that are further, while a long list is recorded in pieces.
    pub ahead: BTreeMap<(AccountId, RuleId), Watermark>,
}

impl MatchProgress {
    /// How far one rule is matched.
    pub fn get(&self, account: AccountId, rule: RuleId) -> Option<Watermark> {
        let all = self.all?;
        Some(self.ahead.get(&(account, rule)).map_or(all, |ahead| all.and(*ahead)))
    }

    /// Moves one rule to `through`.
    pub fn advance(&mut self, account: AccountId, rule: RuleId, through: Watermark) {
        let ahead = self.ahead.entry((account, rule)).or_insert(through);
        *ahead = ahead.and(through);
    }

    /// Moves all rules to `through`.
    pub fn finish(&mut self, through: Watermark) {
        self.all = Some(self.all.map_or(through, |all| all.and(through)));
        self.ahead.clear();
    }
}

/// How far watched names are matched with the log of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeProgress {
    /// Nothing is sent about names that were watched before this until their owner saves settings.
    pub began: UnixMs,
    /// The last change that all accounts are matched with.
    pub through: u64,
    /// A later one and the accounts up to which it is done, while a match is recorded in pieces.
    pub ahead: Option<(u64, AccountId)>,
}

row!(ChangeProgress { 1 began, 2 through } optional { 3 ahead });

impl ChangeProgress {
    /// The last change that an account is matched with.
    pub fn of(&self, account: AccountId) -> u64 {
        match self.ahead {
            Some((through, upto)) if account <= upto => through,
            _ => self.through,
        }
    }

    /// Moves the accounts up to `upto`, or all, to `through`. Replaying a batch never moves progress backwards.
    pub fn advance(&mut self, through: u64, upto: Option<AccountId>) {
        match upto {
            None => (self.through, self.ahead) = (through, None),
            Some(upto) if through > self.through => {
                let known = self.ahead.filter(|(ahead, _)| *ahead == through);
                let furthest = known.map_or(upto, |(_, known)| known.max(upto));
                self.ahead = Some((through, furthest));
            }
            Some(_) => {}
        }
    }
}

/// An index over all outboxes: pending deliveries, and rules by the token in their unsubscribe links.
#[derive(Default)]
pub struct DeliveryQueue {
    pending: BTreeSet<Due>,
    by_token: HashMap<UnsubscribeToken, (AccountId, RuleId)>,
}

impl DeliveryQueue {
    /// Removes the entries of an outbox before it changes.
    pub fn remove(&mut self, account: AccountId, rule: RuleId, outbox: &RuleOutbox) {
        for (at, id) in outbox.pending() {
            self.pending.remove(&(at, account, rule, id));
        }
        if let Some(token) = outbox.unsubscribe {
            self.by_token.remove(&token);
        }
    }

    /// Adds the entries of an outbox after it changed.
    pub fn add(&mut self, account: AccountId, rule: RuleId, outbox: &RuleOutbox) {
        self.pending.extend(outbox.pending().map(|(at, id)| (at, account, rule, id)));
        if let Some(token) = outbox.unsubscribe {
            self.by_token.insert(token, (account, rule));
        }
    }

    /// Pending deliveries, earliest due first.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = &Due> {
        self.pending.iter()
    }

    /// The rule whose unsubscribe links contain `token`.
    pub fn rule_of(&self, token: UnsubscribeToken) -> Option<(AccountId, RuleId)> {
        self.by_token.get(&token).copied()
    }
}
