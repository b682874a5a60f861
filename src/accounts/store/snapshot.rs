//! Converts the whole state to bytes and back.
//!
//! A snapshot is a list of chunks of at most 1 MiB, each with a sequence of items. An item has a
//! number, a length and content: a row, or a list of rows, with numbered fields like those of
//! events (`data/fields`). Items about all accounts come first, then each account in order of ids,
//! followed by its data in sorted order. A long list is split into several items. Equal states give
//! equal bytes, so a digest of the bytes identifies the state. As with events, the number of an
//! item is never reused, and a reader refuses unknown items.

use std::collections::HashMap;
use std::sync::Arc;

use bincode::Options;
use compact_str::CompactString;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::progress::ChangeProgress;
use super::state::{Frozen, State};
use super::watched::ObservedRow;
use crate::cluster::record::{Chain, SHARED, SharedPosition, SharedRecord, copies};
use crate::data::access::{Access, Address, Links};
use crate::data::account::Account;
use crate::data::deliveries::{
    Delivery, DeliveryStatus, DigestRows, MatchedName, Message, MessageKind, MessageRows, Outbox,
    Problem, RuleOutbox, SwitchedOff,
};
use crate::data::digest::Digest;
use crate::data::facts::Facts;
use crate::data::fields::{NEWER, codec, put_with_length, row, take_numbered};
use crate::data::money::MoneySettings;
use crate::data::nodes::Nodes;
use crate::data::rules::Channel;
use crate::data::visits::Visit;
use crate::data::watch_alerts::{WatchSender, WatchSettings};
use crate::email::Email;
use crate::event::{EventError, Transaction};
use crate::journal::{CHUNK_BYTES_MAX, Position, Record, Replay, ReplayResult};
use crate::password::PasswordHash;
use crate::quota::DayUsage;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, DeliveryId, RuleId, UnsubscribeToken};
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;
use crate::vocab::watermark::Watermark;

/// Approximate bytes of an item of rows.
const ITEM_BYTES: usize = 64 << 10;
/// Length at which a chunk ends. The longest row, a response of 256 KiB, still fits after that
/// length.
const CHUNK_BYTES: usize = 512 << 10;
const _: () = assert!(CHUNK_BYTES + ITEM_BYTES + (300 << 10) <= CHUNK_BYTES_MAX);

/// The numbers of items. Items up to `NAMES`, and `SAMPLE`, are about all accounts together.
mod item {
    /// The first byte of a snapshot before items had numbers.
    pub const FORMER: u8 = 0;
    /// A [`StateRow`](super::StateRow): the first item.
    pub const STATE: u8 = 1;
    /// Rules that are ahead of the others, in order of accounts and rules.
    pub const AHEAD: u8 = 2;
    /// Watched names with an observation, in order.
    pub const OBSERVED: u8 = 3;
    /// Further rows of the table of names to which deliveries refer.
    pub const NAMES: u8 = 4;
    /// An [`AccountRow`](super::AccountRow). The items up to the next account are its data.
    pub const ACCOUNT: u8 = 5;
    /// The items of this kind and of the next two kinds are ordered oldest first.
    pub const SESSIONS: u8 = 6;
    pub const KEYS: u8 = 7;
    pub const FEEDS: u8 = 8;
    /// In order of ids.
    pub const CLAIMS: u8 = 9;
    /// The items of this kind and of the next one are in order of names.
    pub const WATCHES: u8 = 10;
    pub const HIDDEN: u8 = 11;
    /// Newest first.
    pub const RULES: u8 = 12;
    /// Oldest first.
    pub const SEARCHES: u8 = 13;
    /// Names and votes, in order of names.
    pub const VOTES: u8 = 14;
    /// In order of the keys' digests.
    pub const RESPONSES: u8 = 15;
    /// The items of this kind and of the next one are in order of rules; the deliveries of a rule
    /// are ordered oldest first.
    pub const OUTBOXES: u8 = 16;
    pub const DELIVERIES: u8 = 17;
    /// Draws of the random sample, by day and suffix. They precede all accounts.
    pub const SAMPLE: u8 = 18;
    /// A part of the next edition of facts, or of one that is being added.
    pub const FACTS_PART: u8 = 19;
    /// A source of facts, whose parts precede it. In order of names.
    pub const FACTS: u8 = 20;
    /// Descriptions of files of facts, in order of fingerprints.
    pub const FACT_MAPPINGS: u8 = 21;
    /// Number of parts of an edition that is being added.
    pub const FACTS_WAITING: u8 = 22;
    /// An action that can be undone, oldest first, followed by its rows in order of keys.
    pub const ACTION: u8 = 23;
    pub const CHANGED: u8 = 24;
}

/// State of all accounts together.
struct StateRow {
    last_account: u64,
    last_day: Option<Day>,
    owner: Option<AccountId>,
    /// Progress of matching alert rules.
    matched: Option<Watermark>,
    /// Progress of matching watched names with changes.
    changes: Option<ChangeProgress>,
    /// Number of state changes of watched names.
    state_changes: u64,
    /// Position in the shared log.
    shared: Option<(u64, [u8; 32])>,
    nodes: Nodes,
    /// Number of draws and answers of the random sample.
    sample_changes: u64,
}

row!(StateRow {
    1 last_account
} optional {
    2 last_day, 3 owner, 4 matched, 5 changes, 6 state_changes, 7 shared, 8 nodes,
    9 sample_changes
});

/// An account without its lists.
struct AccountRow {
    id: AccountId,
    email: Email,
    plan: Plan,
    created: Day,
    password: Option<PasswordHash>,
    disabled: bool,
    noted: DayUsage,
    /// The links to an unverified address.
    unverified: Option<Links>,
    telegram_chat: Option<CompactString>,
    columns: Option<Columns>,
    /// The latest UTC day with test messages, and the number of messages.
    tests: Option<(Day, u32)>,
    watch_alerts: Option<WatchSettings>,
    money: MoneySettings,
    reminded: Option<Day>,
    visit: Option<Visit>,
    digest: Option<Digest>,
    erase_at: Option<UnixMs>,
}

row!(AccountRow {
    1 id, 2 email, 3 plan, 4 created
} optional {
    5 password, 6 disabled, 7 noted, 8 unverified, 9 telegram_chat, 10 columns, 11 tests,
    12 watch_alerts, 13 money, 14 visit, 15 digest, 16 reminded, 17 erase_at
});

/// The outbox of a rule without its deliveries.
struct OutboxRow {
    rule: RuleId,
    unsubscribe: Option<UnsubscribeToken>,
    off: Vec<(Channel, SwitchedOff)>,
    failing: Vec<(Channel, UnixMs)>,
}

row!(OutboxRow { 1 rule } optional { 2 unsubscribe, 3 off, 4 failing });

/// A [`Delivery`] whose names are positions in the snapshot's table.
struct DeliveryRow {
    rule: RuleId,
    id: DeliveryId,
    channel: Channel,
    kind: MessageKind,
    at: UnixMs,
    list_day: Day,
    total: u32,
    status: DeliveryStatus,
    names: Option<Vec<u32>>,
    changes: Option<Vec<WatchedChange>>,
    attempts: u16,
    last_attempt_at: Option<UnixMs>,
    last_problem: Option<Problem>,
    digest: Option<DigestRows>,
}

row!(DeliveryRow {
    1 rule, 2 id, 3 channel, 4 kind, 5 at, 6 list_day, 7 total, 8 status
} optional {
    9 names, 10 changes, 11 attempts, 12 last_attempt_at, 13 last_problem, 14 digest
});

/// Passes the chunks of a state to `write`, in order.
///
/// # Errors
/// The first error of `write`.
pub fn write_chunks<E>(state: &Frozen, write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut chunks = Chunks {
        chunk: Vec::with_capacity(CHUNK_BYTES_MAX),
        positions: HashMap::new(),
        new_names: Rows::default(),
        write,
    };
    chunks.header(state)?;
    for account in state.accounts.values() {
        chunks.account(account)?;
    }
    chunks.finish()
}

/// Returns the digest of a state: BLAKE3 over its chunks, each after its length (`u32`, little-endian).
pub fn digest(state: &Frozen) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let hashed = write_chunks(state, |chunk| {
        hasher.update(&(chunk.len() as u32).to_le_bytes());
        hasher.update(chunk);
        Ok::<(), std::convert::Infallible>(())
    });
    match hashed {
        Ok(()) => *hasher.finalize().as_bytes(),
    }
}

/// Returns the position of a state in the shared log. Before the first record, the chain is the digest of the
/// state, so nodes that begin with different states refuse that record.
pub fn shared_base(state: &State) -> SharedPosition {
    match state.shared {
        SharedPosition { seq: 0, .. } => {
            SharedPosition { seq: 0, chain: Chain(digest(&state.freeze())) }
        }
        shared => shared,
    }
}

/// Rows of one item.
#[derive(Default)]
struct Rows {
    count: u64,
    bytes: Vec<u8>,
}

impl Rows {
    fn push(&mut self, row: &impl Serialize) {
        self.count += 1;
        codec().serialize_into(&mut self.bytes, row).expect("rows have a stored form");
    }
}

/// A writer of a snapshot.
struct Chunks<W> {
    chunk: Vec<u8>,
    /// Positions of the names in the table, including those in `new_names`. Equal names have one
    /// position, so that equal states have equal bytes.
    positions: HashMap<Arc<MatchedName>, u32>,
    new_names: Rows,
    write: W,
}

impl<E, W: FnMut(&[u8]) -> Result<(), E>> Chunks<W> {
    /// Writes the items about all accounts together.
    fn header(&mut self, state: &Frozen) -> Result<(), E> {
        let SharedPosition { seq, chain } = state.shared;
        self.row(
            item::STATE,
            &StateRow {
                last_account: state.last_account,
                last_day: state.last_day,
                owner: state.owner,
                matched: state.progress.all,
                changes: state.changes,
                state_changes: state.watched.changes(),
                shared: (seq > 0).then_some((seq, chain.0)),
                nodes: state.nodes.clone(),
                sample_changes: state.sample.changes(),
            },
        )?;
        let ahead = state.progress.ahead.iter();
        self.rows(item::AHEAD, ahead.map(|(&(account, rule), it)| (account, rule, *it)))?;
        self.rows(item::OBSERVED, state.watched.rows())?;
        self.rows(item::SAMPLE, state.sample.rows())
    }

    fn account(&mut self, account: &Account) -> Result<(), E> {
        let Account { data, access, .. } = account;
        self.row(item::ACCOUNT, &AccountRow::new(account))?;
        self.rows(item::SESSIONS, access.sessions.iter())?;
        self.rows(item::KEYS, access.keys.iter())?;
        self.rows(item::FEEDS, access.feeds.iter())?;
        self.rows(item::CLAIMS, data.claims.by_id())?;
        self.rows(item::WATCHES, data.watches.iter().map(|entry| data.watches.row(entry)))?;
        self.rows(item::HIDDEN, data.hidden.iter())?;
        self.rows(item::RULES, data.rules.newest_first())?;
        self.rows(item::SEARCHES, data.searches.iter().map(|search| &**search))?;
        self.rows(item::VOTES, data.votes.iter())?;
        self.rows(item::RESPONSES, data.responses.iter())?;
        let outboxes = data.outbox.iter().filter_map(|(rule, outbox)| OutboxRow::new(rule, outbox));
        self.rows(item::OUTBOXES, outboxes)?;
        self.deliveries(&data.outbox)?;
        self.facts(&data.facts)?;
        for action in data.actions.iter() {
            self.row(item::ACTION, action)?;
            self.rows(item::CHANGED, action.rows.values().map(|row| &**row))?;
        }
        Ok(())
    }

    fn facts(&mut self, facts: &Facts) -> Result<(), E> {
        for source in facts.sources() {
            self.parts(&source.bytes)?;
            self.row(item::FACTS, &source.row)?;
        }
        self.rows(item::FACT_MAPPINGS, facts.mappings())?;
        match facts.waiting() {
            Some((parts, bytes)) => {
                self.parts(bytes)?;
                self.row(item::FACTS_WAITING, &parts)
            }
            None => Ok(()),
        }
    }

    fn parts(&mut self, bytes: &[u8]) -> Result<(), E> {
        Facts::parts(bytes).try_for_each(|part| self.row(item::FACTS_PART, &part))
    }

    /// Writes deliveries, each after the names to which it refers.
    fn deliveries(&mut self, outbox: &Outbox) -> Result<(), E> {
        let mut rows = Rows::default();
        for (rule, outbox) in outbox.iter() {
            for delivery in &outbox.deliveries {
                let content = delivery.message.content.as_ref();
                let (names, changes) = content.map(|content| self.content(content)).unzip();
                let row = DeliveryRow::new(rule, delivery, names.flatten(), changes.flatten());
                rows.push(&row);
                if rows.bytes.len() + self.new_names.bytes.len() >= ITEM_BYTES {
                    self.names_and(std::mem::take(&mut rows))?;
                }
            }
        }
        self.names_and(rows)
    }

    fn content(&mut self, content: &MessageRows) -> (Option<Vec<u32>>, Option<Vec<WatchedChange>>) {
        match content {
            MessageRows::Names(names) => {
                (Some(names.iter().map(|name| self.position(name)).collect()), None)
            }
            MessageRows::Changes(changes) => {
                (None, Some(changes.iter().map(|it| WatchedChange::clone(it)).collect()))
            }
            MessageRows::Digest(_) => (None, None),
        }
    }

    fn position(&mut self, name: &Arc<MatchedName>) -> u32 {
        if let Some(position) = self.positions.get(name) {
            return *position;
        }
        let position = u32::try_from(self.positions.len()).expect("memory holds fewer names");
        self.new_names.push(&**name);
        self.positions.insert(Arc::clone(name), position);
        position
    }

    fn names_and(&mut self, rows: Rows) -> Result<(), E> {
        let names = std::mem::take(&mut self.new_names);
        self.list(item::NAMES, &names)?;
        self.list(item::DELIVERIES, &rows)
    }

    /// Writes rows as items of about [`ITEM_BYTES`] each.
    fn rows<T: Serialize>(&mut self, number: u8, rows: impl Iterator<Item = T>) -> Result<(), E> {
        let mut pending = Rows::default();
        for row in rows {
            pending.push(&row);
            if pending.bytes.len() >= ITEM_BYTES {
                self.list(number, &pending)?;
                (pending.count, pending.bytes) = (0, Vec::new());
            }
        }
        self.list(number, &pending)
    }

    /// Writes an item of rows, unless there are no rows.
    fn list(&mut self, number: u8, rows: &Rows) -> Result<(), E> {
        if rows.count == 0 {
            return Ok(());
        }
        self.item(number, |bytes| {
            codec().serialize_into(&mut *bytes, &rows.count).expect("a number has a stored form");
            bytes.extend_from_slice(&rows.bytes);
        })
    }

    fn row(&mut self, number: u8, row: &impl Serialize) -> Result<(), E> {
        self.item(number, |bytes| {
            codec().serialize_into(bytes, row).expect("rows have a stored form");
        })
    }

    fn item(&mut self, number: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), E> {
        self.chunk.push(number);
        put_with_length(&mut self.chunk, write);
        if self.chunk.len() >= CHUNK_BYTES {
            (self.write)(&self.chunk)?;
            self.chunk.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), E> {
        if self.chunk.is_empty() { Ok(()) } else { (self.write)(&self.chunk) }
    }
}

impl AccountRow {
    fn new(account: &Account) -> AccountRow {
        let Account { data, access, .. } = account;
        AccountRow {
            id: account.id,
            email: account.email.clone(),
            plan: account.plan,
            created: account.created,
            password: account.password.clone(),
            disabled: account.disabled,
            noted: account.noted,
            unverified: match access.address {
                Address::Verified => None,
                Address::Unverified(links) => Some(links),
            },
            telegram_chat: access.telegram_chat.clone(),
            columns: data.columns.clone(),
            tests: data.tests,
            watch_alerts: data.watch_sender.as_ref().map(WatchSender::settings),
            money: data.money.clone(),
            reminded: data.reminded,
            visit: data.visit,
            digest: data.digest,
            erase_at: account.erase_at,
        }
    }

    fn into_account(self) -> Account {
        let AccountRow { id, email, plan, created, password, .. } = self;
        let mut account = Account::new(id, email, plan, password, created);
        (account.disabled, account.noted) = (self.disabled, self.noted);
        account.erase_at = self.erase_at;
        let address = self.unverified.map_or(Address::Verified, Address::Unverified);
        let telegram_chat = self.telegram_chat;
        account.access = Arc::new(Access { address, telegram_chat, ..Access::default() });
        let data = Arc::make_mut(&mut account.data);
        (data.columns, data.tests) = (self.columns, self.tests);
        (data.visit, data.digest) = (self.visit, self.digest);
        data.watch_sender = self.watch_alerts.map(WatchSender::new);
        (data.money, data.reminded) = (self.money, self.reminded);
        account
    }
}

impl OutboxRow {
    /// Returns `None` for an outbox that has only deliveries.
    fn new(rule: RuleId, outbox: &RuleOutbox) -> Option<OutboxRow> {
        let RuleOutbox { unsubscribe, off, failing, .. } = outbox;
        let is_bare = unsubscribe.is_none() && off.is_empty() && failing.is_empty();
        (!is_bare).then(|| OutboxRow {
            rule,
            unsubscribe: *unsubscribe,
            off: off.iter().map(|(channel, off)| (Channel::clone(channel), *off)).collect(),
            failing: failing.iter().map(|(channel, at)| (Channel::clone(channel), *at)).collect(),
        })
    }
}

impl DeliveryRow {
    fn new(
        rule: RuleId,
        delivery: &Delivery,
        names: Option<Vec<u32>>,
        changes: Option<Vec<WatchedChange>>,
    ) -> DeliveryRow {
        let Message { kind, at, list_day, total, .. } = delivery.message;
        DeliveryRow {
            rule,
            id: delivery.id,
            channel: Channel::clone(&delivery.channel),
            kind,
            at,
            list_day,
            total,
            status: delivery.status,
            names,
            changes,
            attempts: delivery.attempts,
            last_attempt_at: delivery.last_attempt_at,
            last_problem: delivery.last_problem,
            digest: match &delivery.message.content {
                Some(MessageRows::Digest(rows)) => Some(DigestRows::clone(rows)),
                _ => None,
            },
        }
    }

    /// Returns the delivery; `None` if it refers to a name that is not in `table`.
    fn into_delivery(self, table: &[Arc<MatchedName>]) -> Option<Delivery> {
        let DeliveryRow { kind, at, list_day, total, .. } = self;
        let name = |at: &u32| table.get(usize::try_from(*at).ok()?).map(Arc::clone);
        let content = match (self.names, self.changes) {
            (Some(names), _) => {
                Some(MessageRows::Names(names.iter().map(name).collect::<Option<_>>()?))
            }
            (None, Some(all)) => {
                Some(MessageRows::Changes(all.into_iter().map(Arc::new).collect()))
            }
            (None, None) => self.digest.map(|rows| MessageRows::Digest(Arc::new(rows))),
        };
        Some(Delivery {
            id: self.id,
            channel: Arc::new(self.channel),
            message: Message { kind, at, list_day, total, content },
            attempts: self.attempts,
            status: self.status,
            last_attempt_at: self.last_attempt_at,
            last_problem: self.last_problem,
        })
    }
}

/// Builds a state from the chunks of a snapshot and the records after it.
#[derive(Default)]
pub struct Loader {
    state: State,
    /// The table of names to which deliveries refer.
    names: Vec<Arc<MatchedName>>,
    /// The account whose data is being read. The lists of this account may continue in the next
    /// item.
    open: Option<Box<Account>>,
    /// Chains of the shared log; see [`Loader::take_chains`].
    chains: Vec<Chain>,
}

impl Loader {
    /// Returns the resulting state, at `position`.
    pub fn into_state(mut self, position: Position) -> State {
        self.finish_account();
        self.state.begin(position);
        self.state
    }

    fn item(&mut self, number: u8, content: &[u8]) -> Result<(), EventError> {
        let state = &mut self.state;
        match number {
            item::FORMER => return Err(EventError::Former),
            item::STATE => state.load(decode(number, content)?),
            item::AHEAD => each(number, content, |(account, rule, through)| {
                state.progress.advance(account, rule, through);
            })?,
            item::OBSERVED => {
                each(number, content, |row: ObservedRow| state.watched.put(row))?;
            }
            item::SAMPLE => each(number, content, |row| state.sample.put(row))?,
            item::NAMES => each(number, content, |name| self.names.push(Arc::new(name)))?,
            item::ACCOUNT => {
                self.finish_account();
                let row: AccountRow = decode(number, content)?;
                self.open = Some(Box::new(row.into_account()));
            }
            number => {
                let open = self.open.as_mut().ok_or_else(|| {
                    EventError::new("data of an account precedes all accounts".to_owned())
                })?;
                add_item(open, number, content, &self.names)?;
            }
        }
        Ok(())
    }

    /// Applies copies of records of the shared log.
    fn shared(&mut self, payload: &[u8], position: Position) -> ReplayResult {
        for (seq, bytes) in copies(payload)? {
            let parts = SharedRecord::decode(bytes)?.parts.into_iter();
            let transactions = parts.map(|(kind, payload)| Transaction::decode(kind, payload));
            self.chains.push(self.state.shared.chain);
            let shared = SharedPosition::after(seq, bytes);
            let transactions = transactions.collect::<Result<_, _>>()?;
            self.state.apply_shared(transactions, shared, position, |_, _| {});
        }
        Ok(())
    }

    /// Returns the chains of the shared log before the last record, oldest first, as far as the log
    /// was read.
    pub fn take_chains(&mut self) -> Vec<Chain> {
        std::mem::take(&mut self.chains)
    }

    fn finish_account(&mut self) {
        if let Some(open) = self.open.take() {
            self.state.put_account(*open);
        }
    }
}

impl State {
    fn load(&mut self, row: StateRow) {
        let StateRow { last_account, last_day, owner, changes, .. } = row;
        (self.last_account, self.last_day) = (last_account, last_day);
        (self.owner, self.changes) = (owner, changes);
        self.progress.all = row.matched;
        self.watched.put_changes(row.state_changes);
        if let Some((seq, chain)) = row.shared {
            self.shared = SharedPosition { seq, chain: Chain(chain) };
        }
        self.nodes = row.nodes;
        self.sample.put_changes(row.sample_changes);
    }
}

/// Adds an item to its account.
fn add_item(
    account: &mut Account,
    number: u8,
    content: &[u8],
    names: &[Arc<MatchedName>],
) -> Result<(), EventError> {
    let (data, access) = (Arc::make_mut(&mut account.data), Arc::make_mut(&mut account.access));
    match number {
        item::SESSIONS => each(number, content, |row| access.sessions.push(row)),
        item::KEYS => each(number, content, |row| access.keys.put(row)),
        item::FEEDS => each(number, content, |row| access.feeds.put(row)),
        item::CLAIMS => each(number, content, |row| data.claims.put(row)),
        item::WATCHES => each(number, content, |row| {
            data.watches.put(row);
        }),
        item::HIDDEN => each(number, content, |name| data.hidden.add(name)),
        item::RULES => each(number, content, |row| data.rules.put(row)),
        item::SEARCHES => each(number, content, |row| data.searches.put(row)),
        item::VOTES => each(number, content, |(name, vote): (CompactString, _)| {
            data.votes.set(&name, Some(vote));
        }),
        item::RESPONSES => each(number, content, |row| data.responses.put(row)),
        item::OUTBOXES => each(number, content, |row: OutboxRow| {
            let off = row.off.into_iter().map(|(channel, off)| (Arc::new(channel), off));
            let failing = row.failing.into_iter().map(|(channel, at)| (Arc::new(channel), at));
            data.outbox.change(row.rule, |outbox| {
                outbox.unsubscribe = row.unsubscribe;
                (outbox.off, outbox.failing) = (off.collect(), failing.collect());
            });
        }),
        item::FACTS_PART => {
            let (parts, _) = data.facts.pending();
            data.facts.add_part(parts, &decode(number, content)?);
            Ok(())
        }
        item::FACTS => {
            data.facts.put(decode(number, content)?);
            Ok(())
        }
        item::FACTS_WAITING => {
            data.facts.set_parts(decode(number, content)?);
            Ok(())
        }
        item::FACT_MAPPINGS => {
            each(number, content, |(print, mapping)| data.facts.map(print, Some(mapping)))
        }
        item::ACTION => {
            data.actions.put(decode(number, content)?);
            Ok(())
        }
        item::CHANGED => {
            let newest = data.actions.newest().ok_or_else(|| {
                EventError::new("a row of an action precedes all actions".to_owned())
            })?;
            each(number, content, |row| data.actions.record(newest, row))
        }
        item::DELIVERIES => {
            for row in decode::<Vec<DeliveryRow>>(number, content)? {
                let rule = row.rule;
                let delivery = row.into_delivery(names).ok_or_else(|| {
                    EventError::new("a delivery refers to an unknown name".to_owned())
                })?;
                data.outbox.change(rule, |outbox| outbox.put(delivery));
            }
            Ok(())
        }
        other => Err(EventError::new(format!("item {other} is unknown; {NEWER}"))),
    }
}

fn each<T: DeserializeOwned>(
    number: u8,
    content: &[u8],
    add: impl FnMut(T),
) -> Result<(), EventError> {
    decode::<Vec<T>>(number, content)?.into_iter().for_each(add);
    Ok(())
}

fn decode<T: DeserializeOwned>(number: u8, content: &[u8]) -> Result<T, EventError> {
    codec().deserialize(content).map_err(|err| EventError::new(format!("item {number}: {err}")))
}

impl Replay for Loader {
    fn reset(&mut self) {
        *self = Loader::default();
    }

    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult {
        if bytes.first() == Some(&item::FORMER) {
            return Err(EventError::Former.into());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let (number, content) = take_numbered(&mut rest)
                .ok_or_else(|| EventError::new("a chunk is cut short".to_owned()))?;
            self.item(number, content)?;
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> ReplayResult {
        self.finish_account();
        let fields = record.fields;
        let position = Position { seq: fields.seq, chain: record.chain, epoch: fields.epoch };
        if fields.kind == SHARED {
            return self.shared(record.payload, position);
        }
        self.state.apply(Transaction::decode(fields.kind, record.payload)?, position);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
