//! Progress of matching the alert rules of all accounts, and the queue of pending deliveries. Only
//! the progress is stored; the queue is rebuilt from the outboxes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::data::deliveries::RuleOutbox;
use crate::data::fields::row;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId, UnsubscribeToken};
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// A pending delivery, ordered by due time.
pub type Due = (UnixMs, AccountId, RuleId, DeliveryId);

/// Progress of matching all rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchProgress {
    /// Watermark of all rules; `None` before the first start of a server.
    pub all: Option<Watermark>,
    /// Rules that are ahead while a long list is recorded in pieces.
    pub ahead: BTreeMap<(AccountId, RuleId), Watermark>,
}

impl MatchProgress {
    /// Returns the watermark of one rule.
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

/// Progress of matching watched names with the log of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeProgress {
    /// The change at which matching began. Nothing is sent for names that were already watched at
    /// that time, until the owner saves settings.
    pub began: UnixMs,
    /// The last change that has been matched against all accounts.
    pub through: u64,
    /// While a match is recorded in pieces: the last change of the match, and the account up to
    /// which it is recorded.
    pub ahead: Option<(u64, AccountId)>,
}

row!(ChangeProgress { 1 began, 2 through } optional { 3 ahead });

impl ChangeProgress {
    /// Returns the last change that has been matched against an account.
    pub fn of(&self, account: AccountId) -> u64 {
        match self.ahead {
            Some((through, upto)) if account <= upto => through,
            _ => self.through,
        }
    }

    /// Moves the accounts up to `upto`, or all accounts, to `through`. Replaying a batch never
    /// moves progress backwards.
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
    /// Removes the entries of an outbox before the outbox changes.
    pub fn remove(&mut self, account: AccountId, rule: RuleId, outbox: &RuleOutbox) {
        for (at, id) in outbox.pending() {
            self.pending.remove(&(at, account, rule, id));
        }
        if let Some(token) = outbox.unsubscribe {
            self.by_token.remove(&token);
        }
    }

    /// Adds the entries of an outbox after the outbox has changed.
    pub fn add(&mut self, account: AccountId, rule: RuleId, outbox: &RuleOutbox) {
        self.pending.extend(outbox.pending().map(|(at, id)| (at, account, rule, id)));
        if let Some(token) = outbox.unsubscribe {
            self.by_token.insert(token, (account, rule));
        }
    }

    /// Returns the pending deliveries, earliest due first.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = &Due> {
        self.pending.iter()
    }

    /// Returns the rule whose unsubscribe links contain `token`.
    pub fn rule_of(&self, token: UnsubscribeToken) -> Option<(AccountId, RuleId)> {
        self.by_token.get(&token).copied()
    }
}
