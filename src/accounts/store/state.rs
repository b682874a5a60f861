//! The users' state in memory: the result of all events so far.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::progress::{ChangeProgress, DeliveryQueue, MatchProgress};
use super::watched::Watched;
use crate::cluster::record::SharedPosition;
use crate::data::UserData;
use crate::data::access::{Access, Address, Session};
use crate::data::account::Account;
use crate::data::actions::{Changed, Content, Key as RowKey, RuleBefore};
use crate::data::deliveries::{
    DigestRows, MatchedName, Message, MessageKind, MessageRows, NewChanges, RuleOutbox,
};
use crate::data::digest::Digest;
use crate::data::feeds::{Feed, FeedOf};
use crate::data::keys::Key;
use crate::data::money::MoneySettings;
use crate::data::nodes::Nodes;
use crate::data::rules::Rule;
use crate::data::sample::Sample;
use crate::data::sorted::Sorted;
use crate::data::watch_alerts::WatchSender;
use crate::data::watches::WatchRow;
use crate::email::Email;
use crate::event::{AddedBy, Event, RecordedChanges, RecordedMatch, RowOf, Transaction};
use crate::journal::Position;
use crate::keys::KeyDigest;
use crate::password::PasswordHash;
use crate::quota::DayUsage;
use crate::token::TokenDigest;
use crate::vocab::claim::Vote;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, ActionId, DeliveryId, KeyId, RuleId};
use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;
use crate::vocab::watermark::Watermark;

/// All accounts and their data.
///
/// A reader keeps the state that was current when it took it. A change copies only one chunk of the
/// data that readers hold, so no event locks the state for longer than a millisecond.
#[derive(Default)]
pub struct State {
    pub accounts: Accounts,
    by_email: Sorted<Email, AccountId>,
    by_key: HashMap<KeyDigest, AccountId>,
    by_feed: HashMap<TokenDigest, AccountId>,
    by_session: HashMap<TokenDigest, AccountId>,
    /// Accounts by verification link.
    by_link: HashMap<TokenDigest, AccountId>,
    /// Sums of the accounts' votes, by name.
    votes: Sorted<CompactString, Tally>,
    /// All watched names and their observations.
    pub watched: Watched,
    /// Progress of matching all alert rules.
    pub progress: MatchProgress,
    /// Progress of matching watched names with changes; `None` before matching began.
    pub changes: Option<ChangeProgress>,
    pub queue: DeliveryQueue,
    /// The random sample of released names.
    pub sample: Sample,
    /// Approximate memory of all accounts and their rows.
    pub data_bytes: u64,
    /// Names of a list whose matches are being recorded in several records; the messages of these
    /// records share the names.
    list_names: FxHashSet<Arc<MatchedName>>,
    /// The account that the first visit to a single-user server created.
    pub owner: Option<AccountId>,
    /// The highest account id so far.
    pub last_account: u64,
    /// The latest UTC day of any event.
    pub last_day: Option<Day>,
    /// The last record applied, or the position at which the journal was opened.
    pub position: Position,
    /// The last record of the shared log that was applied; the default if there was none, or if the
    /// node has since then written as a single node.
    pub shared: SharedPosition,
    /// State that the nodes of a cluster share.
    pub nodes: Nodes,
    /// The action that the present transaction belongs to; `None` between transactions.
    acting: Option<(AccountId, ActionId)>,
}

/// Approximate size in memory of an account without rows: names, hashes, sessions and its entry in
/// each index.
const ACCOUNT_BYTES: u64 = 2_048;

/// All accounts, in order of their ids.
pub type Accounts = Sorted<AccountId, Arc<Account>>;

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
    /// Number of accounts, disabled ones included.
    pub accounts: u64,
    pub claims: u64,
    /// Number of entries of all watchlists.
    pub watches: u64,
    pub rules: u64,
    pub votes: u64,
    #[serde(default)]
    pub deliveries: u64,
    #[serde(default)]
    pub pending_deliveries: u64,
}

impl Counts {
    pub fn new(accounts: &Accounts, pending_deliveries: usize) -> Counts {
        let mut counts = Counts {
            accounts: accounts.len() as u64,
            pending_deliveries: pending_deliveries as u64,
            ..Counts::default()
        };
        for account in accounts.values() {
            let data = &account.data;
            counts.claims += data.claims.len() as u64;
            counts.watches += data.watches.len() as u64;
            counts.rules += data.rules.len() as u64;
            counts.votes += data.votes.len() as u64;
            counts.deliveries += data.outbox.len() as u64;
        }
        counts
    }
}

/// The state at one moment, for a snapshot that is written while the state changes.
pub struct Frozen {
    pub accounts: Accounts,
    pub owner: Option<AccountId>,
    pub last_account: u64,
    pub last_day: Option<Day>,
    pub progress: MatchProgress,
    pub changes: Option<ChangeProgress>,
    pub watched: Watched,
    pub sample: Sample,
    pub shared: SharedPosition,
    pub nodes: Nodes,
}

impl State {
    /// Applies the transaction of the record at `position`. Applying cannot fail and reads no
    /// clock, so the same transactions always lead to the same state. Events of an account that
    /// does not exist have no effect; an undamaged journal has no such events.
    pub fn apply(&mut self, transaction: Transaction, position: Position) {
        self.apply_events(transaction);
        self.position = position;
        // From this record on, the data is not a copy of a shared log.
        self.shared = SharedPosition::default();
        self.nodes = Nodes::default();
    }

    /// Applies transactions of the shared log up to its record at `shared`, whose copy is the record at
    /// `position`. As [`State::apply`]. Calls `checkpoint` with the state of each [`Event::Checkpoint`].
    pub fn apply_shared(
        &mut self,
        transactions: Vec<Transaction>,
        shared: SharedPosition,
        position: Position,
        mut checkpoint: impl FnMut(u64, Frozen),
    ) {
        for transaction in transactions {
            if let [Event::Checkpoint { id }] = transaction.0[..] {
                // Nodes may apply several records at once, so their positions may differ here.
                checkpoint(id, Frozen { shared: SharedPosition::default(), ..self.freeze() });
            }
            self.apply_events(transaction);
        }
        (self.shared, self.position) = (shared, position);
    }

    fn apply_events(&mut self, transaction: Transaction) {
        for event in transaction.0 {
            match self.acting {
                Some(action) => self.apply_acting(action, event),
                None => self.apply_event(event),
            }
        }
        self.acting = None;
    }

    /// Applies an event of an action, and keeps the rows as they were.
    fn apply_acting(&mut self, (account, id): (AccountId, ActionId), event: Event) {
        let keys = event.rows(account);
        let before: Vec<_> = keys.iter().map(|key| self.content(account, key)).collect();
        self.apply_event(event);
        for (key, before) in keys.into_iter().zip(before) {
            let after = self.content(account, &key).map(|content| content.print());
            self.change_data(account, |data| {
                data.actions.record(id, Changed { key, before, after });
            });
        }
    }

    pub(super) fn apply_event(&mut self, event: Event) {
        match event {
            Event::ActionBegan { account, id, at, marks, mark } => {
                let after = mark.map(|mark| Content::Mark(mark).print());
                self.change_data(account, |data| {
                    data.actions.begin(id, at);
                    for (name, before) in marks {
                        let before = before.map(Content::Mark);
                        let key = RowKey::Mark(name);
                        data.actions.record(id, Changed { key, before, after });
                    }
                });
                self.acting = Some((account, id));
            }
            Event::ActionUndone { account, id } => self.undo(account, id),
            Event::AccountAdded { account, email, plan, on, password, by } => {
                let new = Account::new(account, email, plan, password, on);
                self.add_account(new, by);
            }
            Event::AccountChanged { account, plan, password, disabled } => {
                self.change_account(account, plan, password, disabled);
            }
            Event::ErasureAsked { account, at } => {
                self.change(account, |account| account.erase_at = at);
                self.change_access(account, |access| access.sessions.clear());
            }
            Event::AccountErased { account } => self.erase_account(account),
            Event::UsageNoted { account, day, requests, exports, reset } => {
                let noted = DayUsage { day: Some(day), requests, exports };
                self.note_usage(account, noted, reset);
            }
            Event::DayBegan { day, corrects } => self.begin_day(day, corrects),
            Event::EmailVerificationAsked { account, digest, at } => {
                self.change_access(account, |access| access.add_link(digest, at));
            }
            Event::EmailVerified { account } => {
                self.change_access(account, |access| access.address = Address::Verified);
            }
            Event::SessionBegan { account, digest, at, life } => {
                self.change_access(account, |access| access.begin_session(digest, at, life));
            }
            Event::SessionSeen { account, digest, at, browser } => {
                self.change_access(account, |access| access.touch_session(&digest, at, browser));
            }
            Event::KeyPut { account, new } => {
                self.change_access(account, |access| access.keys.put(*new));
            }
            Event::KeyChanged { account, id, until, used } => {
                self.change_key(account, id, until, used);
            }
            Event::FeedPut { account, feed } => {
                self.change_access(account, |access| access.feeds.put(feed));
            }
            Event::PreferencesSet { account, chat, columns, money } => {
                self.set_preferences(account, chat, columns, money);
            }
            Event::DigestSet { account, digest } => {
                self.set_digest(account, digest);
            }
            Event::DigestQueued { account, hour, at, batch, delivery, total, rows } => {
                self.queue_digest(account, (hour, batch), (at, delivery), total, rows);
            }
            Event::ListVisited { account, visit } => {
                self.change_data(account, |data| data.visit = Some(visit));
            }
            Event::ClaimPut { account, claim } => self.change_data(account, |data| {
                data.responses.expire(claim.updated_at);
                data.claims.put(*claim);
            }),
            Event::WatchPut { account, watch } => self.put_watch(account, *watch),
            Event::WatchesArrived { account, names } => self.change_data(account, |data| {
                names.iter().for_each(|name| data.watches.mark_in_corpus(name));
            }),
            Event::RulePut { account, rule } => self.put_rule(account, *rule),
            Event::SearchPut { account, search } => self.change_data(account, |data| {
                data.responses.expire(search.created_at);
                data.searches.put(*search);
            }),
            Event::FactsPart { account, number, bytes } => {
                self.change_data(account, |data| data.facts.add_part(number, &bytes));
            }
            Event::FactsPut { account, row } => {
                self.change_data(account, |data| data.facts.put(*row));
            }
            Event::FactsMapped { account, print, mapping } => {
                self.change_data(account, |data| data.facts.map(print, mapping));
            }
            Event::Removed { account, row } => self.remove(account, row),
            Event::VoteSet { account, name, vote } => self.set_vote(account, &name, vote),
            Event::NamesHidden { account, names, shown } => {
                self.change_data(account, |data| data.hidden.set(names, shown));
            }
            Event::ReplyKept { account, reply } => self.change_data(account, |data| {
                data.responses.expire_at_request(reply.at);
                data.responses.put(reply);
            }),
            Event::ListMatched { through, at, done, names, matches } => {
                self.queue_matches(through, at, done, names, matches);
            }
            Event::TestQueued { account, rule, at, day, total, names, changes, deliveries } => {
                let message = Message::test(rule, at, day, total, names, changes);
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
            Event::ChannelsSwitched { account, rule, off } => {
                self.change_outbox(account, rule, |outbox, rule| outbox.switch(rule, off));
            }
            Event::UnsubscribeTokenSet { account, rule, token } => {
                self.change_outbox(account, rule, |outbox, _| outbox.unsubscribe = Some(token));
            }
            Event::WatchAlertsSet { account, settings } => {
                self.set_watch_sender(account, WatchSender::new(*settings));
            }
            Event::WatchAlertsBegan { at, through } => {
                self.changes = Some(ChangeProgress { began: at, through, ahead: None });
            }
            Event::ChangesMatched { through, at, upto, changes, messages } => {
                self.queue_changes(through, at, upto, changes, messages);
            }
            Event::ChangesTold { account: _, at, changes, messages } => {
                self.queue_messages(at, changes, messages);
            }
            Event::RenewalsDue { account, through, at, changes, messages } => {
                let before = self.accounts.get(&account).and_then(|it| it.data.reminded);
                if before.is_none_or(|before| before < through) {
                    self.change_data(account, |data| data.reminded = Some(through));
                    self.queue_messages(at, changes, messages);
                }
            }
            Event::NamesVerified { rows, evidence, registrations } => {
                // Older records have rows alone.
                for (at, (name, seen)) in rows.iter().enumerate() {
                    let evidence = evidence.get(at).copied().unwrap_or_default();
                    let registration = registrations.get(at).copied().unwrap_or_default();
                    self.watched.observe(name, Observation { evidence, registration, ..*seen });
                }
            }
            Event::SampleDrawn { on, suffix, names, seed: _ } => {
                self.sample.draw(on, suffix, names)
            }
            Event::SampleAnswered { rows } => {
                for (on, name, answer) in &rows {
                    self.sample.answer(*on, name, *answer);
                }
            }
            Event::Checkpoint { .. } => {}
            Event::LeadTaken { lead } => self.nodes.lead(lead),
            Event::FilesAnnounced { publication, served } => {
                self.nodes.publish(publication, served)
            }
        }
    }

    /// Returns the account with this id.
    pub fn account(&self, id: AccountId) -> Option<&Arc<Account>> {
        self.accounts.get(&id)
    }

    /// Returns the account with this address.
    pub fn by_email(&self, email: &Email) -> Option<&Arc<Account>> {
        self.accounts.get(self.by_email.get(email)?)
    }

    /// Returns the account with this id, unless it is disabled.
    fn enabled(&self, id: AccountId) -> Option<&Arc<Account>> {
        self.accounts.get(&id).filter(|account| !account.is_disabled())
    }

    /// Returns the key with this digest, working or not, and its account, unless that is disabled.
    pub fn by_key(&self, presented: &KeyDigest) -> Option<(&Arc<Account>, &Key)> {
        let account = self.enabled(*self.by_key.get(presented)?)?;
        Some((account, account.access.keys.by_digest(presented)?))
    }

    /// Returns the feed with this digest, and its account, unless that is disabled.
    pub fn by_feed(&self, presented: &TokenDigest) -> Option<(&Arc<Account>, &Feed)> {
        let account = self.enabled(*self.by_feed.get(presented)?)?;
        Some((account, account.access.feeds.by_digest(presented)?))
    }

    /// Returns the session with this digest, valid or not, and its account, unless that is disabled.
    pub fn by_session(&self, presented: &TokenDigest) -> Option<(&Arc<Account>, &Session)> {
        let account = self.enabled(*self.by_session.get(presented)?)?;
        Some((account, account.access.session(presented)?))
    }

    /// Returns the account of the verification link with this digest, valid or not.
    pub fn by_link(&self, presented: &TokenDigest) -> Option<&Arc<Account>> {
        let account = self.accounts.get(self.by_link.get(presented)?)?;
        account.access.link().is_some_and(|(link, _)| link.is(presented)).then_some(account)
    }

    /// Returns the numbers of votes for and against a name.
    pub fn votes(&self, name: &DomainName) -> (u32, u32) {
        let Tally { up, down } = self.votes.get(name.as_str()).copied().unwrap_or_default();
        (up, down)
    }

    /// Returns the current state, at the cost of a pointer per hundred accounts and watched names.
    pub fn freeze(&self) -> Frozen {
        Frozen {
            accounts: self.accounts.clone(),
            owner: self.owner,
            last_account: self.last_account,
            last_day: self.last_day,
            progress: self.progress.clone(),
            changes: self.changes,
            watched: self.watched.clone(),
            sample: self.sample.clone(),
            shared: self.shared,
            nodes: self.nodes.clone(),
        }
    }

    /// Adds an account with all its data.
    pub fn put_account(&mut self, account: Account) {
        self.last_account = self.last_account.max(account.id.0);
        self.by_email.insert(account.email.clone(), account.id);
        self.index_access(account.id, &account.access);
        self.data_bytes += ACCOUNT_BYTES + account.data.bytes();
        for (name, vote) in account.data.votes.iter() {
            self.count_vote(name, None, Some(*vote));
        }
        for entry in account.data.watches.iter() {
            self.watched.add(&entry.name);
        }
        for (rule, outbox) in account.data.outbox.iter() {
            self.queue.add(account.id, rule, outbox);
        }
        self.accounts.insert(account.id, Arc::new(account));
    }

    /// Ends the recovery of a journal whose last record is at `position`: live counts begin with the
    /// recorded usage.
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
        let Some(found) = self.accounts.get_mut(&account) else { return };
        let data = Arc::make_mut(&mut Arc::make_mut(found).data);
        let before = data.bytes();
        change(data);
        self.data_bytes = self.data_bytes - before + data.bytes();
    }

    /// Changes the access of an account, and updates the indexes over it.
    fn change_access(&mut self, account: AccountId, change: impl FnOnce(&mut Access)) {
        let Some(found) = self.accounts.get_mut(&account) else { return };
        let found = Arc::make_mut(found);
        for session in &found.access.sessions {
            self.by_session.remove(&session.digest);
        }
        for key in found.access.keys.iter() {
            self.by_key.remove(key.key.digest());
        }
        for feed in found.access.feeds.iter() {
            self.by_feed.remove(&feed.digest);
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
        self.by_key.extend(access.keys.iter().map(|key| (*key.key.digest(), account)));
        self.by_feed.extend(access.feeds.iter().map(|feed| (feed.digest, account)));
        self.by_link.extend(access.link().map(|(link, _)| (*link, account)));
    }

    fn add_account(&mut self, mut new: Account, by: AddedBy) {
        match by {
            AddedBy::Operator => {}
            AddedBy::SignUp => new.access = Arc::new(Access::unverified()),
            AddedBy::Owner => self.owner = Some(new.id),
        }
        self.put_account(new);
    }

    fn change_account(
        &mut self,
        account: AccountId,
        plan: Option<Plan>,
        password: Option<PasswordHash>,
        disabled: bool,
    ) {
        let has_password = password.is_some();
        self.change(account, |account| {
            account.plan = plan.unwrap_or(account.plan);
            account.password = password.or(account.password.take());
            account.disabled |= disabled;
        });
        if disabled {
            self.change_access(account, Access::close);
        } else if has_password {
            self.change_access(account, |access| access.sessions.clear());
        }
    }

    /// Removes an account and all that belongs to it. Its number is not used again.
    fn erase_account(&mut self, id: AccountId) {
        self.change_access(id, |access| *access = Access::default());
        let Some(account) = self.accounts.remove(&id) else { return };
        self.by_email.remove(&account.email);
        self.data_bytes -= ACCOUNT_BYTES + account.data.bytes();
        for (name, vote) in account.data.votes.iter() {
            self.count_vote(name, Some(*vote), None);
        }
        for entry in account.data.watches.iter() {
            self.watched.remove(&entry.name);
        }
        for (rule, outbox) in account.data.outbox.iter() {
            self.queue.remove(id, rule, outbox);
        }
        self.progress.ahead.retain(|(account, _), _| *account != id);
        self.owner.take_if(|owner| *owner == id);
    }

    fn note_usage(&mut self, account: AccountId, noted: DayUsage, reset: bool) {
        if !reset {
            self.last_day = self.last_day.max(noted.day);
        }
        self.change(account, |account| match noted.day.filter(|_| reset) {
            Some(day) => {
                account.noted = noted;
                account.usage.reset(day);
            }
            None => {
                account.noted.merge(noted);
                account.usage.learn(account.noted);
            }
        });
    }

    fn begin_day(&mut self, day: Day, corrects: bool) {
        if !corrects {
            self.last_day = self.last_day.max(Some(day));
        } else if self.last_day.is_some_and(|last| day.replaces(last)) {
            self.last_day = Some(day);
        }
    }

    fn set_preferences(
        &mut self,
        account: AccountId,
        chat: Option<Option<CompactString>>,
        columns: Option<Option<Columns>>,
        money: Option<MoneySettings>,
    ) {
        if let Some(chat) = chat {
            self.change_access(account, |access| access.telegram_chat = chat);
        }
        if let Some(columns) = columns {
            self.change_data(account, |data| data.columns = columns);
        }
        if let Some(money) = money {
            self.change_data(account, |data| data.money = money);
        }
    }

    fn change_key(
        &mut self,
        account: AccountId,
        id: KeyId,
        until: Option<UnixMs>,
        used: Option<Day>,
    ) {
        self.last_day = self.last_day.max(used);
        self.change_access(account, |access| access.keys.change(id, until, used));
    }

    fn remove(&mut self, account: AccountId, row: RowOf) {
        match row {
            RowOf::Claim(id) => self.change_data(account, |data| data.claims.remove(id)),
            RowOf::Watch(name) => self.remove_watch(account, &name),
            RowOf::Rule(id) => self.remove_rule(account, id),
            RowOf::Search(id) => {
                self.change_data(account, |data| data.searches.remove(id));
                self.change_access(account, |access| access.feeds.remove(FeedOf::Search(id)));
            }
            RowOf::Key(id) => self.change_access(account, |access| access.keys.remove(id)),
            RowOf::Feed(of) => self.change_access(account, |access| access.feeds.remove(of)),
            RowOf::Facts(source) => {
                self.change_data(account, |data| data.facts.remove(&source));
            }
            RowOf::Session(digest) => {
                self.change_access(account, |access| access.end_session(&digest));
            }
        }
    }

    /// Returns the present content of a row, with its feed.
    fn content(&self, account: AccountId, key: &RowKey) -> Option<Content> {
        let Account { data, access, .. } = &**self.accounts.get(&account)?;
        let mut content = data.content(key)?;
        match &mut content {
            Content::Rule(before) => {
                let feed = access.feeds.get(FeedOf::Rule(before.rule.id));
                before.feed = feed.copied();
            }
            Content::Search(search, feed) => {
                *feed = access.feeds.get(FeedOf::Search(search.id)).copied();
            }
            _ => {}
        }
        Some(content)
    }

    /// Restores the rows of an action that still are as it left them.
    fn undo(&mut self, account: AccountId, id: ActionId) {
        let mut action = None;
        self.change_data(account, |data| action = data.actions.take(id));
        let (Some(action), Some(found)) = (action, self.accounts.get(&account)) else { return };
        let rows: Vec<Changed> = found.data.restorable(&action).cloned().collect();
        for Changed { key, before, .. } in rows {
            self.restore(account, key, before);
        }
    }

    fn restore(&mut self, account: AccountId, key: RowKey, before: Option<Content>) {
        match (key, before) {
            (RowKey::Watch(name), Some(Content::Watch(mut row))) => {
                // A name that is in the corpus now uses no quota.
                let now = self.accounts.get(&account).and_then(|it| it.data.watches.get(&name));
                row.entry.external &= now.is_none_or(|now| now.external);
                self.put_watch(account, *row);
            }
            (RowKey::Watch(name), _) => self.remove_watch(account, &name),
            (RowKey::Hidden(name), before) => self.change_data(account, |data| {
                data.hidden.set(vec![name], before.is_none());
            }),
            (_, Some(Content::Claim(claim))) => {
                self.change_data(account, |data| data.claims.put(*claim));
            }
            (RowKey::Claim(id), _) => self.change_data(account, |data| data.claims.remove(id)),
            (_, Some(Content::Rule(before))) => self.restore_rule(account, *before),
            (RowKey::Rule(id), _) => self.remove_rule(account, id),
            (_, Some(Content::Search(search, feed))) => {
                self.change_data(account, |data| data.searches.restore(*search));
                self.change_access(account, |access| {
                    feed.into_iter().for_each(|feed| access.feeds.put(feed));
                });
            }
            (RowKey::Search(id), _) => self.remove(account, RowOf::Search(id)),
            // Marks are facts: a transaction of its own restores them.
            (RowKey::Mark(_), _) => {}
        }
    }

    fn restore_rule(&mut self, account: AccountId, before: RuleBefore) {
        let RuleBefore { rule, feed, unsubscribe, off } = before;
        let id = rule.id;
        self.put_rule(account, rule);
        self.change_outbox(account, id, |outbox, _| {
            outbox.unsubscribe = unsubscribe;
            outbox.off = off.into_iter().map(|(channel, off)| (Arc::new(channel), off)).collect();
        });
        self.change_access(account, |access| {
            feed.into_iter().for_each(|feed| access.feeds.put(feed));
        });
    }

    fn set_vote(&mut self, account: AccountId, name: &DomainName, vote: Option<Vote>) {
        let mut before = None;
        self.change_data(account, |data| {
            before = data.votes.set(name.as_str(), vote);
        });
        if self.accounts.get(&account).is_some() {
            self.count_vote(name.as_str(), before, vote);
        }
    }

    fn count_vote(&mut self, name: &str, before: Option<Vote>, now: Option<Vote>) {
        let mut tally = self.votes.get(name).copied().unwrap_or_default();
        if let Some(before) = before {
            *tally.count_mut(before) -= 1;
        }
        if let Some(now) = now {
            *tally.count_mut(now) += 1;
        }
        if tally == Tally::default() {
            self.votes.remove(name);
        } else {
            self.votes.insert(name.into(), tally);
        }
    }

    fn put_watch(&mut self, account: AccountId, row: WatchRow) {
        let (mut is_new, name) = (false, row.entry.name.clone());
        self.change_data(account, |data| {
            data.responses.expire(row.entry.added_at);
            is_new = data.watches.put(row);
        });
        if is_new {
            self.watched.add(&name);
        }
    }

    fn remove_watch(&mut self, account: AccountId, name: &DomainName) {
        let mut was_there = false;
        self.change_data(account, |data| was_there = data.watches.remove(name));
        if was_there {
            self.watched.remove(name);
        }
    }

    fn put_rule(&mut self, account: AccountId, rule: Rule) {
        let (id, channels) = (rule.id, rule.channels.clone());
        let mut has_outbox = false;
        self.change_data(account, |data| {
            has_outbox = data.outbox.get(id).is_some();
            data.rules.put(rule);
        });
        if has_outbox {
            self.change_outbox(account, id, |outbox, _| outbox.keep_channels(&channels));
        }
    }

    fn set_watch_sender(&mut self, account: AccountId, sender: WatchSender) {
        let channels = sender.rule.channels.clone();
        let mut has_outbox = false;
        self.change_data(account, |data| {
            has_outbox = data.outbox.get(RuleId::WATCHLIST).is_some();
            data.watch_sender = Some(sender);
        });
        if has_outbox {
            self.change_outbox(account, RuleId::WATCHLIST, |outbox, _| {
                outbox.keep_channels(&channels);
            });
        }
    }

    fn remove_rule(&mut self, account: AccountId, rule: RuleId) {
        let mut outbox = None;
        self.change_data(account, |data| {
            data.rules.remove(rule);
            outbox = data.outbox.remove(rule);
        });
        if let Some(outbox) = outbox {
            self.queue.remove(account, rule, &outbox);
        }
        self.change_access(account, |access| access.feeds.remove(FeedOf::Rule(rule)));
    }

    /// Changes the outbox of a rule, and updates the queue.
    fn change_outbox(
        &mut self,
        account: AccountId,
        rule: RuleId,
        change: impl FnOnce(&mut RuleOutbox, &Rule),
    ) {
        let Some(found) = self.accounts.get_mut(&account) else { return };
        let Some(rule) = found.data.sender(rule).map(Arc::clone) else { return };
        let outbox = &mut Arc::make_mut(&mut Arc::make_mut(found).data).outbox;
        if let Some(before) = outbox.get(rule.id) {
            self.queue.remove(account, rule.id, before);
        }
        outbox.change(rule.id, |outbox| change(outbox, &rule));
        if let Some(after) = outbox.get(rule.id) {
            self.queue.add(account, rule.id, after);
        }
    }

    /// Queues the messages of a list; with `done`, all rules are then matched with it. Skips rules
    /// that were paused or removed after they were matched, rules of disabled accounts, and rules
    /// that were already matched with the list, since a record with an unknown outcome is written
    /// again.
    fn queue_matches(
        &mut self,
        through: Watermark,
        at: UnixMs,
        done: bool,
        names: Vec<MatchedName>,
        matches: Vec<RecordedMatch>,
    ) {
        let names: Vec<_> = names.into_iter().map(|name| self.shared_name(name)).collect();
        for RecordedMatch { account, rule, total, names: positions, deliveries } in matches {
            let Some(found) = self.accounts.get(&account) else { continue };
            let is_active = found.data.rules.get(rule).is_some_and(|rule| rule.active);
            let is_done = self.progress.get(account, rule).is_some_and(|it| it.covers(through));
            if found.is_disabled() || !is_active || is_done {
                continue;
            }
            self.progress.advance(account, rule, through);
            let best = positions.iter().filter_map(|at| names.get(usize::from(*at)).cloned());
            let content = Some(MessageRows::Names(best.collect()));
            let message =
                Message { kind: MessageKind::Match, at, list_day: through.day, total, content };
            self.change_outbox(account, rule, |outbox, rule| {
                outbox.queue(rule, &message, &deliveries);
            });
        }
        if done {
            self.progress.finish(through);
            self.list_names = FxHashSet::default();
        }
    }

    /// Queues messages about watched names. As in [`State::queue_matches`], skips disabled
    /// accounts, and accounts that were already matched with the changes.
    fn queue_changes(
        &mut self,
        through: u64,
        at: UnixMs,
        upto: Option<AccountId>,
        changes: Vec<WatchedChange>,
        mut messages: Vec<RecordedChanges>,
    ) {
        let matched = self.changes;
        messages.retain(|it| matched.is_none_or(|matched| matched.of(it.account) < through));
        self.queue_messages(at, changes, messages);
        if let Some(progress) = &mut self.changes {
            progress.advance(through, upto);
        }
    }

    fn queue_messages(
        &mut self,
        at: UnixMs,
        changes: Vec<WatchedChange>,
        messages: Vec<RecordedChanges>,
    ) {
        let all: Vec<_> = changes.into_iter().map(Arc::new).collect();
        for RecordedChanges { account, channel, delivery, due, total, changes } in messages {
            if self.accounts.get(&account).is_none_or(|found| found.is_disabled()) {
                continue;
            }
            let changes = changes.iter().filter_map(|at| all.get(usize::from(*at)).cloned());
            let changes = changes.collect();
            let new = NewChanges { position: channel, id: delivery, at, due, total, changes };
            self.change_outbox(account, RuleId::WATCHLIST, |outbox, rule| {
                outbox.queue_changes(rule, new);
            });
        }
    }

    fn set_digest(&mut self, account: AccountId, digest: Option<Digest>) {
        let mut has_outbox = false;
        self.change_data(account, |data| {
            has_outbox = data.outbox.get(RuleId::DIGEST).is_some();
            data.digest = digest;
        });
        if has_outbox && digest.is_none() {
            self.change_outbox(account, RuleId::DIGEST, |outbox, _| outbox.keep_channels(&[]));
        }
    }

    /// Queues a digest. Skips disabled accounts, and accounts whose digest was turned off or already
    /// queued for the hour, since a record with an unknown outcome is written again.
    fn queue_digest(
        &mut self,
        account: AccountId,
        (hour, batch): (UnixMs, u64),
        (at, delivery): (UnixMs, Option<DeliveryId>),
        total: u32,
        rows: DigestRows,
    ) {
        let mut is_due = false;
        let is_enabled = self.accounts.get(&account).is_some_and(|found| !found.is_disabled());
        self.change_data(account, |data| {
            if let Some(digest) = data.digest.as_mut().filter(|it| is_enabled && it.through < hour)
            {
                (digest.through, digest.batch) = (hour, digest.batch.max(batch));
                is_due = true;
            }
        });
        if let Some(id) = delivery.filter(|_| is_due) {
            let list_day = Day::nearest(at.instant());
            let content = Some(MessageRows::Digest(Arc::new(rows)));
            let message = Message { kind: MessageKind::Match, at, list_day, total, content };
            self.change_outbox(account, RuleId::DIGEST, |outbox, rule| {
                outbox.queue(rule, &message, &[(0, id)]);
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
                Some((last, before)) if !day.replaces(last) => (last, before.saturating_add(count)),
                _ => (day, count),
            });
        });
        self.change_outbox(account, rule, |outbox, rule| outbox.queue(rule, message, deliveries));
    }
}
