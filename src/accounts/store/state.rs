//! The users' state in memory: the result of all events so far.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::progress::{DeliveryQueue, Due, MatchProgress};
use super::watched::Watched;
use crate::accounts::data::UserData;
use crate::accounts::data::access::{Access, Address, Session};
use crate::accounts::data::account::Account;
use crate::accounts::data::deliveries::{MatchedName, Message, MessageKind, RuleOutbox};
use crate::accounts::data::rules::Rule;
use crate::accounts::data::watches::WatchEntry;
use crate::accounts::email::Email;
use crate::accounts::event::{Event, RecordedMatch, Transaction};
use crate::accounts::keys::{KeyDigest, StoredKey};
use crate::accounts::quota::DayUsage;
use crate::accounts::token::TokenDigest;
use crate::journal::Position;
use crate::vocab::claim::Vote;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;
use crate::vocab::time::UnixMs;
use crate::vocab::watermark::Watermark;

/// All accounts and their data.
///
/// Everything is behind `Arc`s and changed by `Arc::make_mut`: a reader keeps the moment that it
/// took, and a change copies only what a reader holds.
#[derive(Default)]
pub struct State {
    accounts: HashMap<AccountId, Arc<Account>>,
    by_email: HashMap<Email, AccountId>,
    by_key: HashMap<KeyDigest, AccountId>,
    by_session: HashMap<TokenDigest, AccountId>,
    /// By verification link.
    by_link: HashMap<TokenDigest, AccountId>,
    /// Sums of the accounts' votes, by name.
    votes: HashMap<CompactString, Tally>,
    watched: Watched,
    progress: MatchProgress,
    queue: DeliveryQueue,
    /// Names of a list that is recorded in several records, to be shared by its messages.
    list_names: HashSet<Arc<MatchedName>>,
    last_account: u64,
    last_day: Option<Day>,
    position: Position,
}

/// Votes on one name. Invariant: not both 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    up: u32,
    down: u32,
}

impl Tally {
    fn count_mut(&mut self, vote: Vote) -> &mut u32 {
        match vote {
            Vote::Up => &mut self.up,
            Vote::Down => &mut self.down,
        }
    }
}

/// Numbers of accounts and rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Disabled ones included.
    pub accounts: u64,
    pub claims: u64,
    /// Entries of all watchlists.
    pub watches: u64,
    pub rules: u64,
    pub votes: u64,
    #[serde(default)]
    pub deliveries: u64,
    #[serde(default)]
    pub pending_deliveries: u64,
}

/// The state at one moment, to be written as a snapshot while the state changes.
pub struct Frozen {
    /// In order of their ids.
    pub accounts: Vec<Arc<Account>>,
    /// The highest account id so far.
    pub last_account: u64,
    /// The latest UTC day of any event.
    pub last_day: Option<Day>,
    pub progress: MatchProgress,
    pub watched: Watched,
}

impl State {
    /// Applies the transaction of the record at `position`. Cannot fail, reads no clock, and gives
    /// the same state for the same transactions. Events of an account that does not exist change
    /// nothing; a sound journal has none.
    pub fn apply(&mut self, transaction: Transaction, position: Position) {
        for event in transaction.0 {
            self.apply_event(event);
        }
        self.position = position;
    }

    fn apply_event(&mut self, event: Event) {
        match event {
            Event::AccountAdded { account, email, plan, password, on } => {
                self.put_account(Account::new(account, email, plan, password, on));
            }
            Event::AccountSignedUp { account, email, plan, password, on } => {
                let access = Arc::new(Access::unverified());
                let new = Account::new(account, email, plan, Some(password), on);
                self.put_account(Account { access, ..new });
            }
            Event::PlanSet { account, plan } => self.change(account, |it| it.plan = plan),
            Event::KeyIssued { account, key, .. } => self.set_key(account, Some(key)),
            Event::AccountDisabled { account } => self.disable(account),
            Event::PasswordSet { account, password } => {
                self.change(account, |it| it.password = Some(password));
                self.change_access(account, |access| access.sessions.clear());
            }
            Event::UsageNoted { account, day, requests, exports } => {
                self.see_day(day);
                let noted = DayUsage { day: Some(day), requests, exports };
                self.change(account, |it| it.noted.merge(noted));
            }
            Event::DayBegan { day } => self.see_day(day),
            Event::SessionBegan { account, digest, at } => {
                self.change_access(account, |access| access.begin_session(digest, at));
            }
            Event::SessionSeen { account, digest, at } => {
                self.change_access(account, |access| access.touch_session(&digest, at));
            }
            Event::SessionEnded { account, digest } => {
                self.change_access(account, |access| access.end_session(&digest));
            }
            Event::EmailVerificationAsked { account, digest, at } => {
                self.change_access(account, |access| access.add_link(digest, at));
            }
            Event::EmailVerified { account } => {
                self.change_access(account, |access| access.address = Address::Verified);
            }
            Event::TelegramChatSet { account, chat } => {
                self.change_access(account, |access| access.telegram_chat = chat);
            }
            Event::ClaimAdded { account, claim } | Event::ClaimChanged { account, claim } => {
                self.change_data(account, |data| {
                    data.expire_responses(claim.updated_at);
                    Arc::make_mut(&mut data.claims).put(*claim);
                });
            }
            Event::ClaimRemoved { account, claim } => {
                self.change_data(account, |data| Arc::make_mut(&mut data.claims).remove(claim));
            }
            Event::WatchAdded { account, watch } => self.add_watch(account, &watch),
            Event::WatchRemoved { account, name } => self.remove_watch(account, &name),
            Event::WatchesArrived { account, names } => self.change_data(account, |data| {
                let watches = Arc::make_mut(&mut data.watches);
                names.iter().for_each(|name| watches.mark_in_corpus(name));
            }),
            Event::RuleAdded { account, rule } | Event::RuleChanged { account, rule } => {
                self.put_rule(account, *rule);
            }
            Event::RuleRemoved { account, rule } => self.remove_rule(account, rule),
            Event::VoteSet { account, name, vote } => self.set_vote(account, &name, vote),
            Event::ReplyKept { account, reply } => self.change_data(account, |data| {
                data.expire_responses(reply.at);
                Arc::make_mut(&mut data.responses).put(reply);
            }),
            Event::ListMatched { through, done, at, names, matches } => {
                self.queue_matches(through, at, names, matches);
                if done {
                    self.progress.finish(through);
                    self.list_names = HashSet::new();
                }
            }
            Event::TestQueued { account, rule, at, day, total, names, deliveries } => {
                let message = Message::test(at, day, total, names);
                self.queue_test(account, rule, &message, &deliveries);
            }
            Event::DeliverySettled { account, rule, delivery, at, attempts, outcome } => {
                self.change_outbox(account, rule, |outbox, _| {
                    outbox.settle(delivery, at, attempts, outcome);
                });
            }
            Event::DeliveryRequeued { account, rule, delivery, at } => {
                self.change_outbox(account, rule, |outbox, _| outbox.requeue(delivery, at));
            }
            Event::ChannelSwitchedOff { account, rule, channel, off } => {
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
                rows.iter().for_each(|(name, seen)| self.watched.observe(name, *seen));
            }
        }
    }

    /// The account with this id.
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

    /// The session with this digest, valid or not, and its account.
    pub fn by_session(&self, presented: &TokenDigest) -> Option<(&Arc<Account>, &Session)> {
        let account = self.accounts.get(self.by_session.get(presented)?)?;
        Some((account, account.access.session(presented)?))
    }

    /// The account of the verification link with this digest, valid or not.
    pub fn by_link(&self, presented: &TokenDigest) -> Option<&Arc<Account>> {
        let account = self.accounts.get(self.by_link.get(presented)?)?;
        account.access.link().is_some_and(|(link, _)| link.is(presented)).then_some(account)
    }

    /// All accounts, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.values()
    }

    /// Number of votes for and against a name.
    pub fn votes(&self, name: &DomainName) -> (u32, u32) {
        let Tally { up, down } = self.votes.get(name.as_str()).copied().unwrap_or_default();
        (up, down)
    }

    /// The newest observation of a watched name.
    pub fn observation(&self, name: &DomainName) -> Option<Observation> {
        self.watched.observation(name)
    }

    /// All watched names. A clone costs a few hundred pointers.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// How far all alert rules are matched; `None` before the first start of a server.
    pub fn watermark(&self) -> Option<Watermark> {
        self.progress.all
    }

    /// How far one rule is matched.
    pub fn matched(&self, account: AccountId, rule: RuleId) -> Option<Watermark> {
        self.progress.get(account, rule)
    }

    /// Pending deliveries, earliest due first.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = &Due> {
        self.queue.pending()
    }

    /// The rule whose unsubscribe links contain `id`.
    pub fn rule_of_mail(&self, id: DeliveryId) -> Option<(AccountId, RuleId)> {
        self.queue.rule_of_mail(id)
    }

    /// The highest account id so far.
    pub fn last_account(&self) -> u64 {
        self.last_account
    }

    /// The latest UTC day of any event.
    pub fn last_day(&self) -> Option<Day> {
        self.last_day
    }

    /// The last record applied, or the position of the journal when it was opened.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Numbers of accounts and rows.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for account in self.accounts.values() {
            let data = &account.data;
            counts.accounts += 1;
            counts.claims += data.claims.len() as u64;
            counts.watches += data.watches.len() as u64;
            counts.rules += data.rules.len() as u64;
            counts.votes += data.votes.len() as u64;
            counts.deliveries += data.outbox.len() as u64;
        }
        counts.pending_deliveries = self.queue.pending().len() as u64;
        counts
    }

    /// The state as it is now, at the cost of a pointer per account.
    pub fn freeze(&self) -> Frozen {
        let mut frozen = Frozen {
            accounts: self.accounts.values().cloned().collect(),
            last_account: self.last_account,
            last_day: self.last_day,
            progress: self.progress.clone(),
            watched: self.watched.clone(),
        };
        frozen.accounts.sort_unstable_by_key(|account| account.id);
        frozen
    }

    /// Adds an account with all its data.
    pub fn put_account(&mut self, account: Account) {
        self.last_account = self.last_account.max(account.id.0);
        self.by_email.insert(account.email.clone(), account.id);
        if let Some(key) = &account.key {
            self.by_key.insert(*key.digest(), account.id);
        }
        self.index_access(account.id, &account.access);
        for (name, vote) in account.data.votes.iter() {
            *self.votes.entry(name.clone()).or_default().count_mut(*vote) += 1;
        }
        for entry in account.data.watches.iter() {
            self.watched.add(&entry.name);
        }
        for (rule, outbox) in account.data.outbox.iter() {
            self.queue.add(account.id, rule, outbox);
        }
        self.accounts.insert(account.id, Arc::new(account));
    }

    /// Restores the highest account id and the latest day from a snapshot.
    pub fn set_last(&mut self, account: u64, day: Option<Day>) {
        self.last_account = self.last_account.max(account);
        self.last_day = self.last_day.max(day);
    }

    /// The progress of matching, for a snapshot that is loaded.
    pub fn progress_mut(&mut self) -> &mut MatchProgress {
        &mut self.progress
    }

    /// Restores an observation from a snapshot, before the accounts that watch the name.
    pub fn put_observation(&mut self, name: DomainName, observation: Observation) {
        self.watched.put(name, observation);
    }

    /// Ends the recovery of a journal that stands at `position`: live counts begin with the recorded
    /// usage.
    pub fn begin(&mut self, position: Position) {
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

    fn change_data(&mut self, account: AccountId, change: impl FnOnce(&mut UserData)) {
        self.change(account, |account| change(Arc::make_mut(&mut account.data)));
    }

    /// Changes the access of an account and the indexes over it.
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

    fn disable(&mut self, account: AccountId) {
        self.set_key(account, None);
        self.change(account, |account| account.disabled = true);
        self.change_access(account, |access| access.sessions.clear());
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

    fn see_day(&mut self, day: Day) {
        self.last_day = self.last_day.max(Some(day));
    }

    fn set_vote(&mut self, account: AccountId, name: &DomainName, vote: Option<Vote>) {
        let mut before = None;
        self.change_data(account, |data| {
            let votes = Arc::make_mut(&mut data.votes);
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
        let mut entry = match self.votes.entry(CompactString::new(name.as_str())) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(Tally::default()),
        };
        let tally = entry.get_mut();
        if let Some(before) = before {
            *tally.count_mut(before) -= 1;
        }
        if let Some(now) = now {
            *tally.count_mut(now) += 1;
        }
        if *tally == Tally::default() {
            entry.remove();
        }
    }

    fn add_watch(&mut self, account: AccountId, entry: &WatchEntry) {
        let mut is_new = false;
        self.change_data(account, |data| {
            data.expire_responses(entry.added_at);
            is_new = Arc::make_mut(&mut data.watches).put(entry);
        });
        if is_new {
            self.watched.add(&entry.name);
        }
    }

    fn remove_watch(&mut self, account: AccountId, name: &DomainName) {
        let mut was_there = false;
        self.change_data(account, |data| was_there = Arc::make_mut(&mut data.watches).remove(name));
        if was_there {
            self.watched.remove(name);
        }
    }

    fn put_rule(&mut self, account: AccountId, rule: Rule) {
        let (id, channels) = (rule.id, rule.channels.clone());
        let mut has_outbox = false;
        self.change_data(account, |data| {
            has_outbox = data.outbox.get(id).is_some();
            Arc::make_mut(&mut data.rules).put(rule);
        });
        if has_outbox {
            self.change_outbox(account, id, |outbox, _| outbox.keep_channels(&channels));
        }
    }

    fn remove_rule(&mut self, account: AccountId, rule: RuleId) {
        let mut outbox = None;
        self.change_data(account, |data| {
            Arc::make_mut(&mut data.rules).remove(rule);
            if data.outbox.get(rule).is_some() {
                outbox = Arc::make_mut(&mut data.outbox).remove(rule);
            }
        });
        if let Some(outbox) = outbox {
            self.queue.remove(account, rule, &outbox);
        }
    }

    /// Changes the outbox of a rule and the queue over it.
    fn change_outbox(
        &mut self,
        account: AccountId,
        rule: RuleId,
        change: impl FnOnce(&mut RuleOutbox, &Rule),
    ) {
        let Some(found) = self.accounts.get_mut(&account) else { return };
        let Some(rule) = found.data.rules.get_shared(rule).map(Arc::clone) else { return };
        let data = Arc::make_mut(&mut Arc::make_mut(found).data);
        let outbox = Arc::make_mut(&mut data.outbox);
        if let Some(before) = outbox.get(rule.id) {
            self.queue.remove(account, rule.id, before);
        }
        outbox.change(rule.id, |outbox| change(outbox, &rule));
        if let Some(after) = outbox.get(rule.id) {
            self.queue.add(account, rule.id, after);
        }
    }

    /// Queues the messages of a list. Rules that were paused or removed since they were matched, and
    /// those of disabled accounts, are skipped.
    fn queue_matches(
        &mut self,
        through: Watermark,
        at: UnixMs,
        names: Vec<MatchedName>,
        matches: Vec<RecordedMatch>,
    ) {
        let names: Vec<_> = names.into_iter().map(|name| self.shared_name(name)).collect();
        for RecordedMatch { account, rule, total, names: positions, deliveries } in matches {
            let Some(found) = self.accounts.get(&account) else { continue };
            let is_active = found.data.rules.get(rule).is_some_and(|rule| rule.active);
            if found.disabled || !is_active {
                continue;
            }
            self.progress.advance(account, rule, through);
            let best = positions.iter().filter_map(|at| names.get(usize::from(*at)).cloned());
            let names = Some(best.collect());
            let message =
                Message { kind: MessageKind::Match, at, list_day: through.day, total, names };
            self.change_outbox(account, rule, |outbox, rule| {
                outbox.queue(rule, &message, &deliveries);
            });
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

    fn queue_test(
        &mut self,
        account: AccountId,
        rule: RuleId,
        message: &Message,
        deliveries: &[(u8, DeliveryId)],
    ) {
        let (day, count) = (message.list_day, deliveries.len() as u32);
        self.change_data(account, |data| {
            data.tests = Some(match data.tests {
                Some((last, before)) if last >= day => (last, before.saturating_add(count)),
                _ => (day, count),
            });
        });
        self.change_outbox(account, rule, |outbox, rule| outbox.queue(rule, message, deliveries));
    }
}
