//! What the rules of all accounts have in common: how far they are matched, and what is to be sent
//! next. Nothing here is stored but how far; the rest is found anew in what accounts own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::owned::deliveries::RuleOutbox;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// Where a pending delivery is, in the order they are due.
pub(super) type Due = (UnixMs, AccountId, RuleId, DeliveryId);

/// How far all rules are matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matched {
    /// Every rule; `None` before the first start of a server.
    pub(super) all: Option<Watermark>,
    /// Rules that are ahead, while a long list is written down in pieces.
    pub(super) ahead: BTreeMap<(AccountId, RuleId), Watermark>,
}

impl Matched {
    /// How far one rule is matched.
    pub(super) fn of(&self, account: AccountId, rule: RuleId) -> Option<Watermark> {
        let all = self.all?;
        Some(self.ahead.get(&(account, rule)).map_or(all, |ahead| all.and(*ahead)))
    }

    pub(super) fn advance(&mut self, account: AccountId, rule: RuleId, through: Watermark) {
        let ahead = self.ahead.entry((account, rule)).or_insert(through);
        *ahead = ahead.and(through);
    }

    /// All rules are matched through `through`.
    pub(super) fn finish(&mut self, through: Watermark) {
        self.all = Some(self.all.map_or(through, |all| all.and(through)));
        self.ahead.clear();
    }
}

/// Where to find, among all accounts, what is pending and what mails name.
#[derive(Default)]
pub(super) struct Index {
    pending: BTreeSet<Due>,
    by_mail: HashMap<DeliveryId, (AccountId, RuleId)>,
}

impl Index {
    /// Takes out what `outbox` has, before it is changed.
    pub(super) fn take(&mut self, account: AccountId, rule: RuleId, outbox: &RuleOutbox) {
        for (at, id) in outbox.pending() {
            self.pending.remove(&(at, account, rule, id));
        }
        if let Some(id) = outbox.mail_id {
            self.by_mail.remove(&id);
        }
    }

    /// Puts in what `outbox` has, after it was changed.
    pub(super) fn put(&mut self, account: AccountId, rule: RuleId, outbox: &RuleOutbox) {
        self.pending.extend(outbox.pending().map(|(at, id)| (at, account, rule, id)));
        if let Some(id) = outbox.mail_id {
            self.by_mail.insert(id, (account, rule));
        }
    }

    /// What is pending, the first that is due first.
    pub(super) fn pending(&self) -> impl ExactSizeIterator<Item = &Due> {
        self.pending.iter()
    }

    /// The rule whose mails name `id`.
    pub(super) fn of_mail(&self, id: DeliveryId) -> Option<(AccountId, RuleId)> {
        self.by_mail.get(&id).copied()
    }
}
