//! Snapshots of the former layout.

use std::collections::BTreeMap;
use std::sync::Arc;

use bincode::Options;
use compact_str::CompactString;
use serde::Deserialize;

use super::rows;
use super::rows::{all, codec, detailed};
use crate::cluster::record::{Chain, SharedPosition};
use crate::data::access::{Address, Links, Session, SessionLife};
use crate::data::account::Account;
use crate::data::deliveries::{Delivery, MatchedName, Message, MessageRows, Outbox, SwitchedOff};
use crate::data::rules::Channel;
use crate::data::watch_alerts::{WatchSender, WatchSettings};
use crate::data::watches::{WatchDetails, WatchRow};
use crate::query::stored::Conditions;
use crate::store::state::State;
use crate::store::watched::ObservedRow;
use crate::token::TokenDigest;
use crate::vocab::claim::Vote;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::ids::{AccountId, ClaimId, RuleId, SearchId, UnsubscribeToken};
use crate::vocab::name::DomainName;
use crate::vocab::observation::{FormerState, Observation};
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;
use crate::vocab::watermark::Watermark;

/// A rule, the token in its unsubscribe links, and its channels that are off.
type OutboxRow = (RuleId, Option<UnsubscribeToken>, Vec<(Channel, SwitchedOff)>);

/// A part of a snapshot. Stored by position in the list.
#[derive(Deserialize)]
enum Item {
    Header { last_account: u64, last_day: Option<Day> },
    Account(rows::Account),
    Claims(Vec<rows::Claim>),
    Watches(Vec<rows::WatchEntry>),
    Rules(Vec<rows::RuleRow>),
    Votes(Vec<(CompactString, Vote)>),
    Responses(Vec<rows::KeptResponse>),
    Matched(Watermark),
    Ahead(Vec<(AccountId, RuleId, Watermark)>),
    Observed(Vec<(DomainName, Observation)>),
    Names(Vec<rows::DroppedName>),
    Tests(Day, u32),
    Outboxes(Vec<OutboxRow>),
    Deliveries(Vec<(RuleId, rows::Delivery)>),
    Sessions(Vec<(TokenDigest, UnixMs, UnixMs)>),
    Unverified(Option<(TokenDigest, UnixMs)>, Option<(Day, u32)>),
    TelegramChat(CompactString),
    WatchDetails(Vec<(CompactString, rows::WatchDetails)>),
    Hidden(Vec<DomainName>),
    ClaimTrades(Vec<(ClaimId, rows::Trade)>),
    FormerStates(Vec<(DomainName, Vec<FormerState>)>),
    Owner(AccountId),
    KeptSessions(Vec<TokenDigest>),
    RuleDetails(Vec<(RuleId, Conditions, Option<SearchId>)>),
    Searches(Vec<rows::SavedSearch>),
    Columns(Columns),
    Failing(Vec<(RuleId, Vec<(Channel, UnixMs)>)>),
    Keys(Vec<rows::KeyRow>),
    Feeds(Vec<rows::Feed>),
    StateChanges(u64),
    LastChanges(Vec<(DomainName, u64)>),
    Changes(rows::ChangeProgress),
    WatchSender(rows::WatchAlerts, Vec<Channel>, Vec<rows::WebhookSecret>, UnixMs),
    EntryAlerts(Vec<(CompactString, rows::EntryAlerts)>),
    WatchDeliveries(Vec<(rows::Delivery, Option<Vec<WatchedChange>>)>),
    Shared { seq: u64, chain: [u8; 32] },
    Nodes(rows::Nodes),
}

/// Data that is collected until all items about it have been read.
#[derive(Default)]
pub struct Pending {
    names: Vec<Arc<MatchedName>>,
    observed: BTreeMap<DomainName, ObservedRow>,
    account: Option<Account>,
    /// Watched names of the account.
    watches: BTreeMap<CompactString, WatchRow>,
}

impl Pending {
    /// Adds the items of a chunk.
    ///
    /// # Errors
    /// The chunk does not have items of the former layout.
    pub fn chunk(
        &mut self,
        state: &mut State,
        bytes: &[u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let item = codec().allow_trailing_bytes().deserialize_from(&mut rest)?;
            self.item(state, item)?;
        }
        Ok(())
    }

    /// Adds the collected data to the state.
    pub fn finish(&mut self, state: &mut State) {
        for (_, row) in std::mem::take(&mut self.observed) {
            state.watched.put(row);
        }
        if let Some(mut account) = self.account.take() {
            let watches = &mut Arc::make_mut(&mut account.data).watches;
            for (_, row) in std::mem::take(&mut self.watches) {
                watches.put(row);
            }
            state.put_account(account);
        }
    }

    fn item(&mut self, state: &mut State, item: Item) -> Result<(), &'static str> {
        match item {
            Item::Header { last_account, last_day } => {
                (state.last_account, state.last_day) = (last_account, last_day);
            }
            Item::Owner(owner) => state.owner = Some(owner),
            Item::Changes(changes) => state.changes = Some(changes.into()),
            Item::Shared { seq, chain } => {
                state.shared = SharedPosition { seq, chain: Chain(chain) }
            }
            Item::Nodes(nodes) => state.nodes = nodes.into(),
            Item::Matched(through) => state.progress.finish(through),
            Item::Ahead(rows) => {
                for (account, rule, through) in rows {
                    state.progress.advance(account, rule, through);
                }
            }
            Item::StateChanges(changes) => state.watched.put_changes(changes),
            Item::Observed(rows) => {
                for (name, observation) in rows {
                    let (former, change) = (Vec::new(), 0);
                    let (evidence, registration) = Default::default();
                    let row = ObservedRow {
                        name: name.clone(),
                        observation,
                        former,
                        change,
                        evidence,
                        registration,
                    };
                    self.observed.insert(name, row);
                }
            }
            Item::FormerStates(rows) => {
                amend(&mut self.observed, rows, |row, former| row.former = former);
            }
            Item::LastChanges(rows) => {
                amend(&mut self.observed, rows, |row, change| row.change = change);
            }
            Item::Names(rows) => {
                self.names.extend(rows.into_iter().map(|name| Arc::new(name.into())));
            }
            Item::Account(row) => {
                self.finish(state);
                self.account = Some(row.into());
            }
            Item::Watches(rows) => {
                for row in rows {
                    let (details, alerts) = (WatchDetails::default(), None);
                    let row = WatchRow { entry: row.into(), details, alerts };
                    self.watches.insert(row.entry.name.as_str().into(), row);
                }
            }
            Item::WatchDetails(rows) => {
                amend(&mut self.watches, rows, |row, details| row.details = details.into());
            }
            Item::EntryAlerts(rows) => {
                amend(&mut self.watches, rows, |row, alerts| row.alerts = Some(alerts.into()));
            }
            item => {
                let account = self.account.as_mut();
                let account = account.ok_or("data of an account precedes all accounts")?;
                add(account, item, &self.names)?;
            }
        }
        Ok(())
    }
}

/// Changes the rows with these keys.
fn amend<K: Ord, R, V>(into: &mut BTreeMap<K, R>, values: Vec<(K, V)>, set: fn(&mut R, V)) {
    for (key, value) in values {
        into.entry(key).and_modify(|row| set(row, value));
    }
}

/// Adds an item to its account.
fn add(account: &mut Account, item: Item, names: &[Arc<MatchedName>]) -> Result<(), &'static str> {
    let (data, access) = (Arc::make_mut(&mut account.data), Arc::make_mut(&mut account.access));
    match item {
        Item::Feeds(rows) => rows.into_iter().for_each(|row| access.feeds.put(row.into())),
        Item::Keys(rows) => rows.into_iter().for_each(|row| access.keys.put(row.into())),
        Item::Sessions(rows) => {
            let life = SessionLife::Short;
            let session = |(digest, began, seen)| {
                let browser = CompactString::default();
                Session { digest, began, seen, life, browser }
            };
            access.sessions.extend(rows.into_iter().map(session));
        }
        Item::KeptSessions(kept) => {
            let is_kept = |it: &&mut Session| kept.contains(&it.digest);
            access.sessions.iter_mut().filter(is_kept).for_each(|it| it.life = SessionLife::Kept);
        }
        Item::Unverified(newest, on) => access.address = Address::Unverified(Links { newest, on }),
        Item::TelegramChat(chat) => access.telegram_chat = Some(chat),
        Item::Claims(rows) => rows.into_iter().for_each(|row| data.claims.put(row.after(None))),
        Item::ClaimTrades(rows) => {
            for (id, trade) in rows {
                if let Some(claim) = data.claims.get(id).cloned() {
                    data.claims.put(trade.of(&claim));
                }
            }
        }
        Item::Rules(rows) => rows.into_iter().for_each(|row| data.rules.put(row.into())),
        Item::RuleDetails(rows) => {
            for (id, more, search) in rows {
                if let Some(rule) = data.rules.get(id).cloned() {
                    data.rules.put(detailed(&rule, more, search));
                }
            }
        }
        Item::Searches(rows) => rows.into_iter().for_each(|row| data.searches.put(row.into())),
        Item::Hidden(rows) => rows.into_iter().for_each(|name| data.hidden.add(name)),
        Item::Votes(rows) => {
            for (name, vote) in &rows {
                data.votes.set(name, Some(*vote));
            }
        }
        Item::Responses(rows) => rows.into_iter().for_each(|row| data.responses.put(row.into())),
        Item::Tests(day, count) => data.tests = Some((day, count)),
        Item::Columns(columns) => data.columns = Some(columns),
        Item::WatchSender(alerts, channels, secrets, at) => {
            let (alerts, secrets) = (alerts.into(), all(secrets));
            let settings = WatchSettings { alerts, channels, secrets, at };
            data.watch_sender = Some(WatchSender::new(settings));
        }
        item => add_message(&mut data.outbox, item, names)?,
    }
    Ok(())
}

/// Adds an item to the outbox of its account.
fn add_message(
    outbox: &mut Outbox,
    item: Item,
    names: &[Arc<MatchedName>],
) -> Result<(), &'static str> {
    match item {
        Item::Outboxes(rows) => {
            for (rule, token, off) in rows {
                outbox.change(rule, |of| (of.unsubscribe, of.off) = (token, by_channel(off)));
            }
        }
        Item::Failing(rows) => {
            for (rule, failing) in rows {
                outbox.change(rule, |of| of.failing = by_channel(failing));
            }
        }
        Item::Deliveries(rows) => {
            for (rule, row) in rows {
                let named = row.names.as_deref().map(|at| named(names, at)).transpose()?;
                outbox.change(rule, |of| of.put(delivery(row, named)));
            }
        }
        Item::WatchDeliveries(rows) => {
            for (row, changes) in rows {
                let changes = changes.map(|rows| rows.into_iter().map(Arc::new).collect());
                let delivery = delivery(row, changes.map(MessageRows::Changes));
                outbox.change(RuleId::WATCHLIST, |of| of.put(delivery));
            }
        }
        // `Pending::item` and `add` read these.
        _ => {}
    }
    Ok(())
}

/// Returns the names at these positions.
fn named(names: &[Arc<MatchedName>], at: &[u32]) -> Result<MessageRows, &'static str> {
    let named: Option<_> = at.iter().map(|at| names.get(*at as usize).map(Arc::clone)).collect();
    named.map(MessageRows::Names).ok_or("a delivery refers to an unknown name")
}

fn by_channel<T>(rows: Vec<(Channel, T)>) -> Vec<(Arc<Channel>, T)> {
    rows.into_iter().map(|(channel, of)| (Arc::new(channel), of)).collect()
}

fn delivery(row: rows::Delivery, content: Option<MessageRows>) -> Delivery {
    let rows::Delivery { kind, at, list_day, total, .. } = row;
    Delivery {
        id: row.id,
        channel: Arc::new(row.channel),
        message: Message { kind, at, list_day, total, content },
        attempts: row.attempts,
        status: row.status,
        last_attempt_at: row.last_attempt_at,
        last_problem: row.last_problem,
    }
}
