//! The users' state in memory: what all events so far lead to.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::access::{Access, Address, Session};
use super::dispatch::{Due, Index, Matched};
use super::email::Email;
use super::event::{Event, StoredMatch, StoredMatchedName, StoredReply, StoredTest, Transaction};
use super::keys::{KeyDigest, StoredKey};
use super::owned::Owned;
use super::owned::claims::Claim;
use super::owned::deliveries::{MatchedName, Message, MessageKind, Queued, RuleOutbox};
use super::owned::rules::Rule;
use super::owned::watches::WatchEntry;
use super::password::PasswordHash;
use super::quota::{DayUsage, Usage};
use super::token::TokenDigest;
use super::watched::Watched;
use super::write::Feedback;
use crate::journal::Position;
use crate::vocab::claim::Vote;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// All accounts and what they own.
///
/// Everything is held through `Arc`s and changed by `Arc::make_mut`: whoever holds one keeps the
/// moment it was taken at, and a change copies only what somebody holds.
#[derive(Default)]
pub struct State {
    accounts: HashMap<AccountId, Arc<Account>>,
    by_email: HashMap<Email, AccountId>,
    by_key: HashMap<KeyDigest, AccountId>,
    by_session: HashMap<TokenDigest, AccountId>,
    /// Links that verify an address.
    by_link: HashMap<TokenDigest, AccountId>,
    /// Names somebody voted on. What the accounts' votes add up to.
    feedback: HashMap<CompactString, Tally>,
    watched: Watched,
    matched: Matched,
    /// What the accounts' outboxes add up to.
    index: Index,
    /// Names of a list that is written down in several records, for the messages to share.
    list_names: HashSet<Arc<MatchedName>>,
    last_account: u64,
    last_day: Option<Day>,
    position: Position,
}

/// One account.
#[derive(Clone)]
pub struct Account {
    /// Its number.
    pub id: AccountId,
    /// Its address.
    pub email: Email,
    /// What it pays for.
    pub plan: Plan,
    /// For a log-in, where one was set.
    pub password: Option<PasswordHash>,
    /// Shut: none of its keys works.
    pub disabled: bool,
    /// The UTC day it was added.
    pub created: Day,
    /// Its one key that works.
    pub key: Option<StoredKey>,
    /// What it used, as far as the journal knows.
    pub noted: DayUsage,
    /// What it used, to the last request: not part of the state. Outlives keys: they come and go,
    /// the allowance is the account's.
    pub usage: Arc<Usage>,
    /// How its owner gets in with a browser, and is reached.
    pub access: Arc<Access>,
    /// What it owns.
    pub owned: Arc<Owned>,
}

/// Votes on one name. Invariant: not both 0, or it is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    up: u32,
    down: u32,
}

impl Tally {
    fn of(&mut self, vote: Vote) -> &mut u32 {
        match vote {
            Vote::Up => &mut self.up,
            Vote::Down => &mut self.down,
        }
    }
}

/// How much a state holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Accounts, shut ones too.
    pub accounts: u64,
    /// Claims of all accounts.
    pub claims: u64,
    /// Names on all watchlists, as often as they are watched.
    pub watches: u64,
    /// Alert rules of all accounts.
    pub rules: u64,
    /// Votes of all accounts.
    pub votes: u64,
    /// Deliveries of alerts that are kept, of all accounts.
    #[serde(default)]
    pub deliveries: u64,
    /// Those of them that are to be sent.
    #[serde(default)]
    pub pending_deliveries: u64,
}

/// A state as it was at one moment, to be written down while the state goes on.
pub struct Frozen {
    /// All accounts, in order of their numbers.
    pub accounts: Vec<Arc<Account>>,
    /// The highest account number there was.
    pub last_account: u64,
    /// The latest UTC day any event tells of.
    pub last_day: Option<Day>,
    /// How far alert rules are matched.
    pub(super) matched: Matched,
    /// What was seen of watched names.
    pub(super) watched: Watched,
}

impl State {
    /// Takes over what happened together, as the record at `position` says. Cannot fail, and gives
    /// the same state from the same transactions: it is all that a restart runs. An account that no
    /// event added cannot be in a journal whose chain is whole, so what names one changes nothing.
    pub fn apply(&mut self, transaction: Transaction, position: Position) {
        for event in transaction.0 {
            self.apply_event(event);
        }
        self.position = position;
    }

    fn apply_event(&mut self, event: Event) {
        match event {
            Event::AccountAdded { account, email, plan, password, on } => {
                self.put_account(Account::new(account, email, plan, password, on.0));
            }
            Event::PlanSet { account, plan } => self.change(account, |account| account.plan = plan),
            Event::KeyIssued { account, key, .. } => self.set_key(account, Some(key)),
            Event::AccountDisabled { account } => {
                self.set_key(account, None);
                self.change(account, |account| account.disabled = true);
                self.change_access(account, |access| access.sessions.clear());
            }
            Event::UsageNoted { account, day, requests, exports } => {
                self.see_day(day.0);
                let noted = DayUsage { day: Some(day.0), requests, exports };
                self.change(account, |account| account.noted.merge(noted));
            }
            Event::DayBegan { day } => self.see_day(day.0),
            event => self.apply_to_access(event),
        }
    }

    fn apply_to_access(&mut self, event: Event) {
        match event {
            Event::AccountSignedUp { account, email, plan, password, on } => {
                let access = Arc::new(Access::unverified());
                let new = Account::new(account, email, plan, Some(password), on.0);
                self.put_account(Account { access, ..new });
            }
            Event::PasswordSet { account, password } => {
                self.change(account, |account| account.password = Some(password));
                self.change_access(account, |access| access.sessions.clear());
            }
            Event::SessionBegan { account, digest, at } => {
                self.change_access(account, |access| access.begin(digest, at));
            }
            Event::SessionSeen { account, digest, at } => {
                self.change_access(account, |access| access.see(&digest, at));
            }
            Event::SessionEnded { account, digest } => {
                self.change_access(account, |access| access.end(&digest));
            }
            Event::EmailVerificationAsked { account, digest, at } => {
                self.change_access(account, |access| access.ask(digest, at));
            }
            Event::EmailVerified { account } => {
                self.change_access(account, |access| access.address = Address::Verified);
            }
            Event::TelegramChatSet { account, chat } => {
                self.change_access(account, |access| access.telegram_chat = chat);
            }
            event => self.apply_to_owned(event),
        }
    }

    fn apply_to_owned(&mut self, event: Event) {
        match event {
            Event::ClaimAdded { account, claim } | Event::ClaimChanged { account, claim } => {
                let claim = Claim::from(*claim);
                self.own(account, |owned| {
                    owned.forget_replies(claim.updated_at);
                    Arc::make_mut(&mut owned.claims).put(claim);
                });
            }
            Event::ClaimRemoved { account, claim } => {
                self.own(account, |owned| Arc::make_mut(&mut owned.claims).remove(claim));
            }
            Event::WatchAdded { account, watch } => self.add_watch(account, &watch.into()),
            Event::WatchRemoved { account, name } => self.remove_watch(account, &name.0),
            Event::WatchesArrived { account, names } => self.own(account, |owned| {
                let watches = Arc::make_mut(&mut owned.watches);
                names.iter().for_each(|name| watches.arrive(&name.0));
            }),
            Event::RuleAdded { account, rule } | Event::RuleChanged { account, rule } => {
                self.put_rule(account, (*rule).into());
            }
            Event::RuleRemoved { account, rule } => self.remove_rule(account, rule),
            Event::VoteSet { account, name, vote } => self.set_vote(account, &name.0, vote),
            Event::ReplyKept { account, reply } => self.keep_reply(account, *reply),
            event => self.apply_to_outbox(event),
        }
    }

    fn apply_to_outbox(&mut self, event: Event) {
        match event {
            Event::ListMatched { through, done, at, names, matches } => {
                self.take_matches(through.into(), at, names, matches);
                if done {
                    self.matched.finish(through.into());
                    self.list_names = HashSet::new();
                }
            }
            Event::TestQueued { account, test } => self.queue_test(account, *test),
            Event::DeliverySettled { account, attempt } => {
                self.change_outbox(account, attempt.rule, |outbox, _| {
                    let settled = attempt.settled.into();
                    outbox.settle(attempt.delivery, attempt.at, attempt.attempts, settled);
                });
            }
            Event::DeliveryRequeued { account, rule, delivery, at } => {
                self.change_outbox(account, rule, |outbox, _| outbox.requeue(delivery, at));
            }
            Event::ChannelSwitchedOff { account, rule, off } => {
                let (channel, off) = off.into_parts();
                self.change_outbox(account, rule, |outbox, rule| {
                    if rule.channels.contains(&channel) {
                        outbox.switch_off(&channel, off);
                    }
                });
            }
            Event::ChannelsSwitchedOn { account, rule } => {
                self.change_outbox(account, rule, |outbox, _| outbox.switch_on());
            }
            Event::NamesVerified { rows } => {
                for (name, observation) in rows {
                    self.watched.observe(&name.0, observation.into());
                }
            }
            // The callers take these.
            Event::AccountAdded { .. }
            | Event::PlanSet { .. }
            | Event::KeyIssued { .. }
            | Event::AccountDisabled { .. }
            | Event::UsageNoted { .. }
            | Event::DayBegan { .. }
            | Event::AccountSignedUp { .. }
            | Event::PasswordSet { .. }
            | Event::SessionBegan { .. }
            | Event::SessionSeen { .. }
            | Event::SessionEnded { .. }
            | Event::EmailVerificationAsked { .. }
            | Event::EmailVerified { .. }
            | Event::TelegramChatSet { .. }
            | Event::ClaimAdded { .. }
            | Event::ClaimChanged { .. }
            | Event::ClaimRemoved { .. }
            | Event::WatchAdded { .. }
            | Event::WatchRemoved { .. }
            | Event::WatchesArrived { .. }
            | Event::RuleAdded { .. }
            | Event::RuleChanged { .. }
            | Event::RuleRemoved { .. }
            | Event::VoteSet { .. }
            | Event::ReplyKept { .. } => {}
        }
    }

    /// The account with this number.
    pub fn account(&self, id: AccountId) -> Option<&Arc<Account>> {
        self.accounts.get(&id)
    }

    /// The account with this address.
    pub fn by_email(&self, email: &Email) -> Option<&Arc<Account>> {
        self.accounts.get(self.by_email.get(email)?)
    }

    /// The account whose working key has this digest.
    pub fn by_key(&self, presented: &KeyDigest) -> Option<&Arc<Account>> {
        let account = self.accounts.get(self.by_key.get(presented)?)?;
        account.key.is_some_and(|key| key.is(presented)).then_some(account)
    }

    /// The account of the session with this digest, and the session, whether it still holds or not.
    pub fn by_session(&self, presented: &TokenDigest) -> Option<(&Arc<Account>, &Session)> {
        let account = self.accounts.get(self.by_session.get(presented)?)?;
        Some((account, account.access.session(presented)?))
    }

    /// The account whose address the link with this digest verifies, whether it is still good or not.
    pub fn by_link(&self, presented: &TokenDigest) -> Option<&Arc<Account>> {
        let account = self.accounts.get(self.by_link.get(presented)?)?;
        account.access.link().is_some_and(|(link, _)| link.is(presented)).then_some(account)
    }

    /// All accounts, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.values()
    }

    /// How many accounts voted for and against a name.
    pub fn feedback(&self, name: &DomainName) -> Feedback {
        let tally = self.feedback.get(name.as_str()).copied().unwrap_or_default();
        Feedback { up: tally.up.into(), down: tally.down.into() }
    }

    /// What was last seen of a name somebody watches.
    pub fn observation(&self, name: &DomainName) -> Option<Observation> {
        self.watched.observation(name)
    }

    /// Every name somebody watches, at the cost of a few hundred pointers.
    pub(super) fn watched(&self) -> Watched {
        self.watched.clone()
    }

    /// How far all alert rules are matched; `None` before the first start of a server.
    pub fn watermark(&self) -> Option<Watermark> {
        self.matched.all
    }

    /// How far one rule is matched.
    pub(super) fn matched(&self, account: AccountId, rule: RuleId) -> Option<Watermark> {
        self.matched.of(account, rule)
    }

    /// What is to be sent, the first that is due first.
    pub(super) fn pending(&self) -> impl ExactSizeIterator<Item = &Due> {
        self.index.pending()
    }

    /// The rule whose mails name `id` in their unsubscribe link.
    pub(super) fn of_mail(&self, id: DeliveryId) -> Option<(AccountId, RuleId)> {
        self.index.of_mail(id)
    }

    /// The highest account number there was.
    pub fn last_account(&self) -> u64 {
        self.last_account
    }

    /// The latest UTC day any event tells of.
    pub fn last_day(&self) -> Option<Day> {
        self.last_day
    }

    /// The last record that was applied, or where the journal stood when it was opened.
    pub fn position(&self) -> Position {
        self.position
    }

    /// How much there is.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for account in self.accounts.values() {
            counts.accounts += 1;
            counts.claims += account.owned.claims.len() as u64;
            counts.watches += account.owned.watches.len() as u64;
            counts.rules += account.owned.rules.len() as u64;
            counts.votes += account.owned.votes.len() as u64;
            counts.deliveries += account.owned.outbox.len() as u64;
        }
        counts.pending_deliveries = self.index.pending().len() as u64;
        counts
    }

    /// The state as it is now, at the cost of a pointer an account.
    pub fn freeze(&self) -> Frozen {
        let mut frozen = Frozen {
            accounts: self.accounts.values().cloned().collect(),
            last_account: self.last_account,
            last_day: self.last_day,
            matched: self.matched.clone(),
            watched: self.watched.clone(),
        };
        frozen.accounts.sort_unstable_by_key(|account| account.id);
        frozen
    }

    /// Adds an account with all it owns, as a snapshot brings it.
    pub(super) fn put_account(&mut self, account: Account) {
        self.last_account = self.last_account.max(account.id.0);
        self.by_email.insert(account.email.clone(), account.id);
        if let Some(key) = &account.key {
            self.by_key.insert(*key.digest(), account.id);
        }
        self.index_access(account.id, &account.access);
        for (name, vote) in account.owned.votes.iter() {
            *self.feedback.entry(name.clone()).or_default().of(*vote) += 1;
        }
        for entry in account.owned.watches.iter() {
            self.watched.add(&entry.name);
        }
        for (rule, outbox) in account.owned.outbox.iter() {
            self.index.put(account.id, rule, outbox);
        }
        self.accounts.insert(account.id, Arc::new(account));
    }

    /// Takes over what a snapshot says of all accounts together.
    pub(super) fn set_last(&mut self, account: u64, day: Option<Day>) {
        self.last_account = self.last_account.max(account);
        self.last_day = self.last_day.max(day);
    }

    /// Takes over how far a snapshot says that rules are matched.
    pub(super) fn set_matched(&mut self, through: Watermark) {
        self.matched.finish(through);
    }

    /// Takes over that a rule is ahead of the others.
    pub(super) fn set_ahead(&mut self, account: AccountId, rule: RuleId, through: Watermark) {
        self.matched.advance(account, rule, through);
    }

    /// Takes over what was seen of a name, before the accounts that watch it.
    pub(super) fn put_observation(&mut self, name: DomainName, observation: Observation) {
        self.watched.put(name, observation);
    }

    /// Ends the reading of a journal that stands at `position`: every account's live count begins
    /// with what was noted.
    pub(super) fn begin(&mut self, position: Position) {
        self.position = position;
        for account in self.accounts.values() {
            account.usage.restore(account.noted);
        }
    }

    fn change(&mut self, account: AccountId, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.accounts.get_mut(&account) {
            change(Arc::make_mut(account));
        }
    }

    fn own(&mut self, account: AccountId, change: impl FnOnce(&mut Owned)) {
        self.change(account, |account| change(Arc::make_mut(&mut account.owned)));
    }

    /// Changes how an account is entered, and the names that leads to it by.
    fn change_access(&mut self, account: AccountId, change: impl FnOnce(&mut Access)) {
        let Some(found) = self.accounts.get_mut(&account) else { return };
        let found = Arc::make_mut(found);
        for session in &found.access.sessions {
            self.by_session.remove(&session.digest);
        }
        if let Some((link, _)) = found.access.link() {
            self.by_link.remove(link);
        }
        change(Arc::make_mut(&mut found.access));
        let access = Arc::clone(&found.access);
        self.index_access(account, &access);
    }

    fn index_access(&mut self, account: AccountId, access: &Access) {
        self.by_session.extend(access.sessions.iter().map(|session| (session.digest, account)));
        self.by_link.extend(access.link().map(|(link, _)| (*link, account)));
    }

    fn set_key(&mut self, account: AccountId, key: Option<StoredKey>) {
        let Some(account) = self.accounts.get_mut(&account) else { return };
        let account = Arc::make_mut(account);
        if let Some(old) = account.key.take() {
            self.by_key.remove(old.digest());
        }
        if let Some(new) = key {
            self.by_key.insert(*new.digest(), account.id);
        }
        account.key = key;
    }

    fn set_vote(&mut self, account: AccountId, name: &DomainName, vote: Option<Vote>) {
        let mut before = None;
        self.own(account, |owned| {
            let votes = Arc::make_mut(&mut owned.votes);
            before = match vote {
                Some(vote) => votes.insert(CompactString::new(name.as_str()), vote),
                None => votes.remove(name.as_str()),
            };
        });
        if self.accounts.contains_key(&account) {
            self.count_vote(name, before, vote);
        }
    }

    fn count_vote(&mut self, name: &DomainName, before: Option<Vote>, now: Option<Vote>) {
        let mut entry = match self.feedback.entry(CompactString::new(name.as_str())) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(Tally::default()),
        };
        let tally = entry.get_mut();
        if let Some(before) = before {
            *tally.of(before) -= 1;
        }
        if let Some(now) = now {
            *tally.of(now) += 1;
        }
        if *tally == Tally::default() {
            entry.remove();
        }
    }

    fn add_watch(&mut self, account: AccountId, entry: &WatchEntry) {
        let mut is_new = false;
        self.own(account, |owned| {
            owned.forget_replies(entry.added_at);
            is_new = Arc::make_mut(&mut owned.watches).put(entry);
        });
        if is_new {
            self.watched.add(&entry.name);
        }
    }

    fn remove_watch(&mut self, account: AccountId, name: &DomainName) {
        let mut was_there = false;
        self.own(account, |owned| was_there = Arc::make_mut(&mut owned.watches).remove(name));
        if was_there {
            self.watched.remove(name);
        }
    }

    fn put_rule(&mut self, account: AccountId, rule: Rule) {
        let (id, channels) = (rule.id, rule.channels.clone());
        let mut has_outbox = false;
        self.own(account, |owned| {
            has_outbox = owned.outbox.of(id).is_some();
            Arc::make_mut(&mut owned.rules).put(rule);
        });
        if has_outbox {
            self.change_outbox(account, id, |outbox, _| outbox.keep_to(&channels));
        }
    }

    fn remove_rule(&mut self, account: AccountId, rule: RuleId) {
        let mut outbox = None;
        self.own(account, |owned| {
            Arc::make_mut(&mut owned.rules).remove(rule);
            if owned.outbox.of(rule).is_some() {
                outbox = Arc::make_mut(&mut owned.outbox).remove(rule);
            }
        });
        if let Some(outbox) = outbox {
            self.index.take(account, rule, &outbox);
        }
    }

    /// Changes what a rule sends, and what is known of it among all accounts.
    fn change_outbox(
        &mut self,
        account: AccountId,
        rule: RuleId,
        change: impl FnOnce(&mut RuleOutbox, &Rule),
    ) {
        let Some(found) = self.accounts.get_mut(&account) else { return };
        let Some(rule) = found.owned.rules.shared(rule).map(Arc::clone) else { return };
        let owned = Arc::make_mut(&mut Arc::make_mut(found).owned);
        let outbox = Arc::make_mut(&mut owned.outbox);
        if let Some(before) = outbox.of(rule.id) {
            self.index.take(account, rule.id, before);
        }
        outbox.change(rule.id, |outbox| change(outbox, &rule));
        if let Some(after) = outbox.of(rule.id) {
            self.index.put(account, rule.id, after);
        }
    }

    /// A rule that was stopped or removed since it was matched, and one of an account that was shut,
    /// sends nothing.
    fn take_matches(
        &mut self,
        through: Watermark,
        at: UnixMs,
        names: Vec<StoredMatchedName>,
        matches: Vec<StoredMatch>,
    ) {
        let names: Vec<_> = names.into_iter().map(|it| self.shared_name(it.into())).collect();
        for StoredMatch { account, rule, total, names: places, deliveries } in matches {
            let Some(found) = self.accounts.get(&account) else { continue };
            let is_at_work = found.owned.rules.get(rule).is_some_and(|rule| rule.active);
            if found.disabled || !is_at_work {
                continue;
            }
            self.matched.advance(account, rule, through);
            let best = places.iter().filter_map(|place| names.get(usize::from(*place)).cloned());
            let (kind, list_day) = (MessageKind::Match, through.day);
            let message = Message { kind, at, list_day, total, names: Some(best.collect()) };
            let queued = Queued { message, deliveries };
            self.change_outbox(account, rule, |outbox, rule| outbox.queue(rule, queued));
        }
    }

    fn shared_name(&mut self, name: MatchedName) -> Arc<MatchedName> {
        if let Some(known) = self.list_names.get(&name) {
            return Arc::clone(known);
        }
        let new = Arc::new(name);
        self.list_names.insert(Arc::clone(&new));
        new
    }

    fn queue_test(&mut self, account: AccountId, test: StoredTest) {
        let StoredTest { rule, day, deliveries, .. } = &test;
        let (rule, day, count) = (*rule, day.0, deliveries.len() as u32);
        self.own(account, |owned| {
            owned.tests = Some(match owned.tests {
                Some((last, before)) if last >= day => (last, before.saturating_add(count)),
                _ => (day, count),
            });
        });
        self.change_outbox(account, rule, |outbox, rule| outbox.queue(rule, test.into()));
    }

    fn keep_reply(&mut self, account: AccountId, reply: StoredReply) {
        self.own(account, |owned| {
            owned.forget_replies(reply.at());
            Arc::make_mut(&mut owned.replies).put(reply.into());
        });
    }

    fn see_day(&mut self, day: Day) {
        self.last_day = self.last_day.max(Some(day));
    }
}

impl Account {
    /// An account as it is when it has just been added.
    pub(super) fn new(
        id: AccountId,
        email: Email,
        plan: Plan,
        password: Option<PasswordHash>,
        created: Day,
    ) -> Account {
        Account {
            id,
            email,
            plan,
            password,
            disabled: false,
            created,
            key: None,
            noted: DayUsage::default(),
            usage: Arc::default(),
            access: Arc::default(),
            owned: Arc::default(),
        }
    }
}

impl From<StoredTest> for Queued {
    fn from(test: StoredTest) -> Queued {
        let StoredTest { at, day, total, names, deliveries, .. } = test;
        let names = names.into_iter().map(|it| Arc::new(MatchedName::from(it))).collect();
        let (kind, names) = (MessageKind::Test, Some(names));
        Queued { message: Message { kind, at, list_day: day.0, total, names }, deliveries }
    }
}

impl Owned {
    /// Forgets the answers whose day is over at `now`, the time of an event: never the clock's, so
    /// that a replay forgets the same ones.
    fn forget_replies(&mut self, now: UnixMs) {
        if self.replies.has_over(now) {
            Arc::make_mut(&mut self.replies).forget(now);
        }
    }
}
