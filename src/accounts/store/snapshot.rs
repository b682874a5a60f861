//! The whole state as bytes, and back.
//!
//! A snapshot is a list of chunks of at most 1 MiB, each a run of [`Item`]s in the codec of events.
//! First come items about all accounts together, then each account in order of ids, followed by its
//! data in sorted order. A long list takes several items. Equal states give equal bytes, so a digest
//! of the bytes identifies the state. As with events, items are append only, and golden bytes
//! guard them.

use std::collections::HashMap;
use std::sync::Arc;

use bincode::Options;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::progress::ChangeProgress;
use super::state::{Frozen, State};
use crate::accounts::data::access::{Access, Address, Links, Session, SessionLife};
use crate::accounts::data::account::Account;
use crate::accounts::data::claims::{Claim, Trade};
use crate::accounts::data::deliveries::{
    Content, Delivery, DeliveryStatus, MatchedName, Message, MessageKind, Outbox, Problem,
    SwitchedOff,
};
use crate::accounts::data::feeds::Feed;
use crate::accounts::data::keys::Key;
use crate::accounts::data::nodes::Nodes;
use crate::accounts::data::responses::KeptResponse;
use crate::accounts::data::rules::{Channel, Rule, WebhookSecret};
use crate::accounts::data::searches::SavedSearch;
use crate::accounts::data::watch_alerts::{EntryAlerts, WatchAlerts, WatchSender};
use crate::accounts::data::watches::{WatchDetails, WatchEntry};
use crate::accounts::event::{EventError, Transaction, codec};
use crate::accounts::token::TokenDigest;
use crate::cluster::record::{Chain, SHARED, SharedPosition, SharedRecord, copies};
use crate::journal::{CHUNK_BYTES_MAX, Position, Record, Replay, ReplayResult};
use crate::query::stored::Conditions;
use crate::vocab::claim::Vote;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, ClaimId, DeliveryId, RuleId, SearchId, UnsubscribeToken};
use crate::vocab::name::DomainName;
use crate::vocab::observation::{FormerState, Observation};
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;
use crate::vocab::watermark::Watermark;

/// Approximate bytes of an item of rows.
const ITEM_BYTES: u64 = 64 << 10;
/// A chunk ends once it is this long. The longest row, a response of 256 KiB, still fits after it.
const CHUNK_BYTES: usize = 512 << 10;
const _: () = assert!(CHUNK_BYTES + ITEM_BYTES as usize + (300 << 10) <= CHUNK_BYTES_MAX);

/// A part of a snapshot.
#[derive(Serialize, Deserialize)]
enum Item {
    /// The first item.
    Header { last_account: u64, last_day: Option<Day> },
    /// An account. The items up to the next account are its data.
    Account(Box<Account>),
    /// In order of ids.
    Claims(Vec<Claim>),
    /// In order of names.
    Watches(Vec<WatchEntry>),
    /// Newest first.
    Rules(Vec<Rule>),
    /// In order of names.
    Votes(Vec<(CompactString, Vote)>),
    /// In order of the keys' digests.
    Responses(Vec<KeptResponse>),
    /// How far alert rules are matched. This item and the next two precede the first account.
    Matched(Watermark),
    /// Rules that are ahead, in order of accounts and rules.
    Ahead(Vec<(AccountId, RuleId, Watermark)>),
    /// Observations of watched names, in order of names.
    Observed(Vec<(DomainName, Observation)>),
    /// More rows of the table of names that all deliveries refer to.
    Names(Vec<MatchedName>),
    /// The latest UTC day with test messages, and their number.
    Tests(Day, u32),
    /// In order of rules.
    Outboxes(Vec<StoredOutbox>),
    /// In order of rules, then oldest first.
    Deliveries(Vec<(RuleId, StoredDelivery)>),
    /// Oldest first: digest, begin, last recorded use.
    Sessions(Vec<(TokenDigest, UnixMs, UnixMs)>),
    /// The address is unverified: the newest link; the latest UTC day with links, and their number.
    Unverified(Option<(TokenDigest, UnixMs)>, Option<(Day, u32)>),
    /// The default chat of new alert rules.
    TelegramChat(CompactString),
    /// Notes on watched names, in order of names.
    WatchDetails(Vec<(CompactString, WatchDetails)>),
    /// In order of names.
    Hidden(Vec<DomainName>),
    /// Bids and renewals of the claims that have some, in order of ids.
    ClaimTrades(Vec<(ClaimId, Trade)>),
    /// Former states of watched names that had some, in order of names. Precedes the first account.
    FormerStates(Vec<(DomainName, Vec<FormerState>)>),
    /// The owner of a single-user server. Precedes the first account.
    Owner(AccountId),
    /// Which of the sessions before are kept.
    KeptSessions(Vec<TokenDigest>),
    /// Further conditions and the saved search of the rules that have some, in the order of the rules.
    RuleDetails(Vec<(RuleId, Conditions, Option<SearchId>)>),
    /// Oldest first.
    Searches(Vec<SavedSearch>),
    /// The chosen columns of the drop list.
    Columns(Columns),
    /// Channels that fail and since when, in order of rules.
    Failing(Vec<(RuleId, Vec<(Channel, UnixMs)>)>),
    /// Oldest first.
    Keys(Vec<Key>),
    /// Oldest first.
    Feeds(Vec<Feed>),
    /// The number of state changes of watched names. Precedes the first account, as the next item.
    StateChanges(u64),
    /// The number of the last state change of the names that had some, in order of names.
    LastChanges(Vec<(DomainName, u64)>),
    /// How far watched names are matched with changes. Precedes the first account.
    Changes(ChangeProgress),
    /// Settings, channels and secrets of watch alerts, and when they were saved.
    WatchSender(WatchAlerts, Vec<Channel>, Vec<WebhookSecret>, UnixMs),
    /// Choices for watched names, in order of names.
    EntryAlerts(Vec<(CompactString, EntryAlerts)>),
    /// Messages about watched names, oldest first, with their changes.
    WatchDeliveries(Vec<(StoredDelivery, Option<Vec<WatchedChange>>)>),
    /// Position in the shared log. Precedes the first account.
    Shared { seq: u64, chain: [u8; 32] },
    /// What the nodes of a cluster agree on. Precedes the first account.
    Nodes(Nodes),
}

/// A rule, the token in its unsubscribe links, and its channels that are off.
type StoredOutbox = (RuleId, Option<UnsubscribeToken>, Vec<(Channel, SwitchedOff)>);

/// A [`Delivery`] whose names are positions in the snapshot's table.
#[derive(Serialize, Deserialize)]
struct StoredDelivery {
    id: DeliveryId,
    channel: Channel,
    kind: MessageKind,
    at: UnixMs,
    list_day: Day,
    total: u32,
    names: Option<Vec<u32>>,
    attempts: u16,
    status: DeliveryStatus,
    last_attempt_at: Option<UnixMs>,
    last_problem: Option<Problem>,
}

/// Passes the chunks of a state to `write`, in order.
///
/// # Errors
/// The first error of `write`.
pub fn write_chunks<E>(state: &Frozen, write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut chunks = Chunks {
        chunk: Vec::with_capacity(CHUNK_BYTES_MAX),
        positions: HashMap::new(),
        new_names: Vec::new(),
        write,
    };
    chunks.header(state)?;
    for account in state.accounts.values() {
        chunks.account(account)?;
    }
    chunks.finish()
}

/// Digest of a state: BLAKE3 over its chunks, each after its length (`u32`, little-endian).
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

/// Returns the position of a state in the shared log. Before its first record, the chain is the digest of the
/// state: nodes that begin with different states refuse that record.
pub fn shared_base(state: &State) -> SharedPosition {
    match state.shared {
        SharedPosition { seq: 0, .. } => {
            SharedPosition { seq: 0, chain: Chain(digest(&state.freeze())) }
        }
        shared => shared,
    }
}

/// A snapshot being written.
struct Chunks<W> {
    chunk: Vec<u8>,
    /// Positions of the names in the table, those in `new_names` included. Equal names have one
    /// position, so that equal states have equal bytes.
    positions: HashMap<Arc<MatchedName>, u32>,
    new_names: Vec<MatchedName>,
    write: W,
}

impl<E, W: FnMut(&[u8]) -> Result<(), E>> Chunks<W> {
    /// Items about all accounts together.
    fn header(&mut self, state: &Frozen) -> Result<(), E> {
        let Frozen { last_account, last_day, .. } = *state;
        self.item(&Item::Header { last_account, last_day })?;
        if let Some(all) = state.progress.all {
            self.item(&Item::Matched(all))?;
        }
        let ahead = state.progress.ahead.iter();
        self.rows(ahead.map(|(&(account, rule), it)| (account, rule, *it)), Item::Ahead)?;
        if let Some(owner) = state.owner {
            self.item(&Item::Owner(owner))?;
        }
        if let Some(changes) = state.changes {
            self.item(&Item::Changes(changes))?;
        }
        let SharedPosition { seq, chain } = state.shared;
        if seq > 0 {
            self.item(&Item::Shared { seq, chain: chain.0 })?;
        }
        if state.nodes != Nodes::default() {
            self.item(&Item::Nodes(state.nodes.clone()))?;
        }
        let observed = state.watched.by_name();
        self.rows(observed.map(|(name, seen)| (name.clone(), seen)), Item::Observed)?;
        let former = state.watched.with_former();
        self.rows(former.map(|(name, it)| (name.clone(), it.to_vec())), Item::FormerStates)?;
        let (changes, last) = state.watched.changes();
        if changes > 0 {
            self.item(&Item::StateChanges(changes))?;
        }
        self.rows(last.map(|(name, number)| (name.clone(), number)), Item::LastChanges)
    }

    fn account(&mut self, account: &Account) -> Result<(), E> {
        let data = &account.data;
        self.item(&Item::Account(Box::new(account.clone())))?;
        self.access(&account.access)?;
        self.rows(data.claims.by_id().cloned(), Item::Claims)?;
        self.rows(data.watches.iter(), Item::Watches)?;
        let details = data.watches.all_details();
        self.rows(details.map(|(name, it)| (name.clone(), it.clone())), Item::WatchDetails)?;
        let alerts = data.watches.all_alerts();
        self.rows(alerts.map(|(name, it)| (name.clone(), it.clone())), Item::EntryAlerts)?;
        if let Some(WatchSender { alerts, rule }) = &data.watch_sender {
            let (channels, secrets) = (rule.channels.clone(), rule.secrets.clone());
            self.item(&Item::WatchSender(*alerts, channels, secrets, rule.created_at))?;
        }
        self.rows(data.hidden.iter().cloned(), Item::Hidden)?;
        let has_trade = |claim: &&Claim| claim.trade != Trade::default();
        let traded = data.claims.by_id().filter(has_trade);
        self.rows(traded.map(|claim| (claim.id, claim.trade.clone())), Item::ClaimTrades)?;
        self.rows(data.rules.newest_first().cloned(), Item::Rules)?;
        let has_details = |rule: &&Rule| !rule.filter.more.is_empty() || rule.search.is_some();
        let detailed = data.rules.newest_first().filter(has_details);
        let details = detailed.map(|rule| (rule.id, rule.filter.more.clone(), rule.search));
        self.rows(details, Item::RuleDetails)?;
        self.rows(data.searches.iter().map(|search| SavedSearch::clone(search)), Item::Searches)?;
        self.rows(data.votes.iter().map(|(name, vote)| (name.clone(), *vote)), Item::Votes)?;
        self.rows(data.responses.iter().cloned(), Item::Responses)?;
        if let Some((day, count)) = data.tests {
            self.item(&Item::Tests(day, count))?;
        }
        if let Some(columns) = &data.columns {
            self.item(&Item::Columns(columns.clone()))?;
        }
        let outboxes =
            data.outbox.iter().filter(|(_, it)| it.unsubscribe.is_some() || !it.off.is_empty());
        let off = |(channel, off): &(Arc<Channel>, _)| (Channel::clone(channel), *off);
        let outboxes =
            outboxes.map(|(rule, it)| (rule, it.unsubscribe, it.off.iter().map(off).collect()));
        self.rows(outboxes, Item::Outboxes)?;
        let failing = data.outbox.iter().filter(|(_, it)| !it.failing.is_empty());
        let since = |(channel, since): &(Arc<Channel>, _)| (Channel::clone(channel), *since);
        let failing = failing.map(|(rule, it)| (rule, it.failing.iter().map(since).collect()));
        self.rows(failing, Item::Failing)?;
        let changes = data.outbox.get(RuleId::WATCHLIST).into_iter();
        let changes = changes.flat_map(|outbox| &outbox.deliveries).map(|delivery| {
            let rows = || delivery.message.changes().iter().map(|it| WatchedChange::clone(it));
            let changes = delivery.message.content.as_ref().map(|_| rows().collect());
            (StoredDelivery::new(delivery, None), changes)
        });
        self.rows(changes, Item::WatchDeliveries)?;
        self.deliveries(&data.outbox)
    }

    /// Access data that differs from that of an account just added.
    fn access(&mut self, access: &Access) -> Result<(), E> {
        self.rows(access.keys.iter().cloned(), Item::Keys)?;
        self.rows(access.feeds.iter().copied(), Item::Feeds)?;
        if !access.sessions.is_empty() {
            let rows = access.sessions.iter().map(|it| (it.digest, it.began, it.seen));
            self.item(&Item::Sessions(rows.collect()))?;
            let kept = access.sessions.iter().filter(|it| it.life == SessionLife::Kept);
            let kept: Vec<_> = kept.map(|it| it.digest).collect();
            if !kept.is_empty() {
                self.item(&Item::KeptSessions(kept))?;
            }
        }
        if let Address::Unverified(Links { newest, on }) = access.address {
            self.item(&Item::Unverified(newest, on))?;
        }
        match &access.telegram_chat {
            Some(chat) => self.item(&Item::TelegramChat(chat.clone())),
            None => Ok(()),
        }
    }

    /// Deliveries, each after the names that it refers to.
    fn deliveries(&mut self, outbox: &Outbox) -> Result<(), E> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for (rule, outbox) in outbox.iter().filter(|(rule, _)| *rule != RuleId::WATCHLIST) {
            for delivery in &outbox.deliveries {
                let names = delivery.message.names().iter();
                let names = names.map(|name| self.position(name, &mut bytes)).collect();
                let names = delivery.message.content.as_ref().map(|_| names);
                let stored = StoredDelivery::new(delivery, names);
                let row = (rule, stored);
                bytes += size_of(&row);
                rows.push(row);
                if bytes >= ITEM_BYTES {
                    self.names_and(std::mem::take(&mut rows))?;
                    bytes = 0;
                }
            }
        }
        if rows.is_empty() { Ok(()) } else { self.names_and(rows) }
    }

    fn position(&mut self, name: &Arc<MatchedName>, bytes: &mut u64) -> u32 {
        if let Some(position) = self.positions.get(name) {
            return *position;
        }
        let position = u32::try_from(self.positions.len()).expect("memory holds fewer names");
        *bytes += size_of(&**name);
        self.new_names.push(MatchedName::clone(name));
        self.positions.insert(Arc::clone(name), position);
        position
    }

    fn names_and(&mut self, rows: Vec<(RuleId, StoredDelivery)>) -> Result<(), E> {
        if !self.new_names.is_empty() {
            let names = std::mem::take(&mut self.new_names);
            self.item(&Item::Names(names))?;
        }
        self.item(&Item::Deliveries(rows))
    }

    /// Writes rows as items of about [`ITEM_BYTES`] each, and no item without rows.
    fn rows<T: Serialize>(
        &mut self,
        rows: impl Iterator<Item = T>,
        item: fn(Vec<T>) -> Item,
    ) -> Result<(), E> {
        let (mut pending, mut bytes) = (Vec::new(), 0);
        for row in rows {
            bytes += size_of(&row);
            pending.push(row);
            if bytes >= ITEM_BYTES {
                self.item(&item(std::mem::take(&mut pending)))?;
                bytes = 0;
            }
        }
        if pending.is_empty() { Ok(()) } else { self.item(&item(pending)) }
    }

    fn item(&mut self, item: &Item) -> Result<(), E> {
        codec()
            .serialize_into(&mut self.chunk, item)
            .expect("items are far below 1 MiB, and a vector takes any length");
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

fn size_of(row: &impl Serialize) -> u64 {
    codec().serialized_size(row).expect("every row fits a record")
}

impl StoredDelivery {
    fn new(delivery: &Delivery, names: Option<Vec<u32>>) -> StoredDelivery {
        let Message { kind, at, list_day, total, .. } = &delivery.message;
        StoredDelivery {
            id: delivery.id,
            channel: Channel::clone(&delivery.channel),
            kind: *kind,
            at: *at,
            list_day: *list_day,
            total: *total,
            names,
            attempts: delivery.attempts,
            status: delivery.status,
            last_attempt_at: delivery.last_attempt_at,
            last_problem: delivery.last_problem,
        }
    }

    /// The delivery; `None` if it refers to a name that is not in `table`.
    fn into_delivery(self, table: &[Arc<MatchedName>]) -> Option<Delivery> {
        let name = |at: u32| table.get(usize::try_from(at).ok()?).map(Arc::clone);
        let content = match &self.names {
            Some(positions) => {
                Some(Content::Names(positions.iter().map(|at| name(*at)).collect::<Option<_>>()?))
            }
            None => None,
        };
        Some(self.with(content))
    }

    fn with(self, content: Option<Content>) -> Delivery {
        let StoredDelivery { kind, at, list_day, total, .. } = self;
        Delivery {
            id: self.id,
            channel: Arc::new(self.channel),
            message: Message { kind, at, list_day, total, content },
            attempts: self.attempts,
            status: self.status,
            last_attempt_at: self.last_attempt_at,
            last_problem: self.last_problem,
        }
    }
}

/// Builds a state from the chunks of a snapshot and the records after it.
#[derive(Default)]
pub struct Loader {
    state: State,
    /// The table of names that deliveries refer to.
    names: Vec<Arc<MatchedName>>,
    /// The account whose data is being read. Its lists may go on in the next item.
    open: Option<Box<Account>>,
    /// See [`Loader::take_chains`].
    chains: Vec<Chain>,
}

impl Loader {
    /// The state that everything read leads to, at `position`.
    pub fn into_state(mut self, position: Position) -> State {
        self.finish_account();
        self.state.begin(position);
        self.state
    }

    fn item(&mut self, item: Item) -> Result<(), &'static str> {
        match item {
            Item::Header { last_account, last_day } => {
                (self.state.last_account, self.state.last_day) = (last_account, last_day);
            }
            Item::Owner(owner) => self.state.owner = Some(owner),
            Item::Changes(changes) => self.state.changes = Some(changes),
            Item::Shared { seq, chain } => {
                self.state.shared = SharedPosition { seq, chain: Chain(chain) };
            }
            Item::Nodes(nodes) => self.state.nodes = nodes,
            Item::Matched(through) => self.state.progress.finish(through),
            Item::Ahead(rows) => {
                for (account, rule, through) in rows {
                    self.state.progress.advance(account, rule, through);
                }
            }
            Item::Observed(rows) => {
                for (name, observation) in rows {
                    self.state.watched.put(name, observation);
                }
            }
            Item::FormerStates(rows) => {
                for (name, former) in rows {
                    self.state.watched.put_former(&name, former);
                }
            }
            Item::StateChanges(changes) => self.state.watched.put_changes(changes),
            Item::LastChanges(rows) => {
                for (name, number) in rows {
                    self.state.watched.put_last_change(&name, number);
                }
            }
            Item::Names(rows) => self.names.extend(rows.into_iter().map(Arc::new)),
            Item::Account(mut account) => {
                self.finish_account();
                account.adopt_former_key();
                self.open = Some(account);
            }
            item => {
                let open = self.open.as_mut().ok_or("data of an account precedes all accounts")?;
                add_item(open, item, &self.names)?;
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

    /// Returns the chains of the shared log before the last record, oldest first, as far as it was read.
    pub fn take_chains(&mut self) -> Vec<Chain> {
        std::mem::take(&mut self.chains)
    }

    fn finish_account(&mut self) {
        if let Some(open) = self.open.take() {
            self.state.put_account(*open);
        }
    }
}

/// Adds an item to the account that it belongs to.
fn add_item(
    account: &mut Account,
    item: Item,
    names: &[Arc<MatchedName>],
) -> Result<(), &'static str> {
    let (data, access) = (Arc::make_mut(&mut account.data), Arc::make_mut(&mut account.access));
    match item {
        Item::Feeds(rows) => rows.into_iter().for_each(|row| access.feeds.put(row)),
        Item::Keys(rows) => rows.into_iter().for_each(|row| access.keys.put(row)),
        Item::Claims(rows) => rows.into_iter().for_each(|row| data.claims.put(row)),
        Item::Watches(rows) => {
            for row in &rows {
                data.watches.put(row);
            }
        }
        Item::WatchDetails(rows) => {
            for (name, details) in rows {
                data.watches.set_details(&name, details);
            }
        }
        Item::EntryAlerts(rows) => {
            for (name, alerts) in rows {
                data.watches.set_alerts(&name, Some(alerts));
            }
        }
        Item::WatchSender(alerts, channels, secrets, at) => {
            data.watch_sender = Some(WatchSender::new(alerts, channels, secrets, at));
        }
        Item::WatchDeliveries(rows) => {
            for (delivery, changes) in rows {
                let changes = changes.map(|rows| rows.into_iter().map(Arc::new).collect());
                let delivery = delivery.with(changes.map(Content::Changes));
                data.outbox.change(RuleId::WATCHLIST, |outbox| outbox.put(delivery));
            }
        }
        Item::Hidden(rows) => rows.into_iter().for_each(|name| data.hidden.add(name)),
        Item::ClaimTrades(rows) => {
            rows.into_iter().for_each(|(id, trade)| data.claims.set_trade(id, trade));
        }
        Item::Rules(rows) => rows.into_iter().for_each(|row| data.rules.put(row)),
        Item::RuleDetails(rows) => {
            for (rule, more, search) in rows {
                data.rules.set_details(rule, more, search);
            }
        }
        Item::Searches(rows) => rows.into_iter().for_each(|row| data.searches.put(row)),
        Item::Votes(rows) => {
            for (name, vote) in &rows {
                data.votes.set(name, Some(*vote));
            }
        }
        Item::Responses(rows) => rows.into_iter().for_each(|row| data.responses.put(row)),
        Item::Tests(day, count) => data.tests = Some((day, count)),
        Item::Columns(columns) => data.columns = Some(columns),
        Item::Outboxes(rows) => {
            for (rule, token, off) in rows {
                let off = off.into_iter().map(|(channel, off)| (Arc::new(channel), off));
                data.outbox.change(rule, |outbox| {
                    (outbox.unsubscribe, outbox.off) = (token, off.collect());
                });
            }
        }
        Item::Failing(rows) => {
            for (rule, failing) in rows {
                let failing =
                    failing.into_iter().map(|(channel, since)| (Arc::new(channel), since));
                data.outbox.change(rule, |outbox| outbox.failing = failing.collect());
            }
        }
        Item::Deliveries(rows) => {
            for (rule, delivery) in rows {
                let delivery = delivery.into_delivery(names);
                let delivery = delivery.ok_or("a delivery refers to an unknown name")?;
                data.outbox.change(rule, |outbox| outbox.put(delivery));
            }
        }
        Item::Sessions(rows) => {
            let life = SessionLife::Short;
            let session = |(digest, began, seen)| Session { digest, began, seen, life };
            access.sessions.extend(rows.into_iter().map(session));
        }
        Item::KeptSessions(kept) => kept.iter().for_each(|digest| access.keep_session(digest)),
        Item::Unverified(newest, on) => {
            access.address = Address::Unverified(Links { newest, on });
        }
        Item::TelegramChat(chat) => access.telegram_chat = Some(chat),
        // Not data of an account: read by `Loader::item`.
        Item::Header { .. }
        | Item::Account(_)
        | Item::Matched(_)
        | Item::Ahead(_)
        | Item::Observed(_)
        | Item::FormerStates(_)
        | Item::StateChanges(_)
        | Item::LastChanges(_)
        | Item::Owner(_)
        | Item::Changes(_)
        | Item::Shared { .. }
        | Item::Nodes(_)
        | Item::Names(_) => {}
    }
    Ok(())
}

impl Replay for Loader {
    fn reset(&mut self) {
        *self = Loader::default();
    }

    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult {
        let mut rest = bytes;
        while !rest.is_empty() {
            let limited = codec().allow_trailing_bytes();
            let item = limited.deserialize_from(&mut rest).map_err(EventError::Decode)?;
            self.item(item)?;
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
