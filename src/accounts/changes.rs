//! Matches watched names against the log of changes: finds the accounts that watch a changed name,
//! and records messages for them.
//!
//! As with [`matches`](super::matches), a record concerns many accounts and takes no account lock.
//! The record holds the messages and the position up to which the log is matched, so that a crash
//! neither loses a message nor repeats it under another id.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::data::account::Account;
use super::data::rules::Channel;
use super::data::watch_alerts::WatchSender;
use super::decide::random_bytes;
use super::deliveries::{live_channels, new_unsubscribe_token};
use super::error::WriteError;
use super::event::{Event, RecordedChanges};
use super::store::Store;
use super::store::state::State;
use crate::vocab::change::Change;
use crate::vocab::ids::{AccountId, DeliveryId};
use crate::vocab::limits::MESSAGE_NAMES_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;
use crate::vocab::watched_change::WatchedChange;

/// Approximate maximum bytes of a record, the same as for records of matched rules.
const RECORD_BYTES_MAX: usize = 300 << 10;
/// Approximate bytes of a message in a record, without its positions.
const MESSAGE_BYTES: usize = 56;
/// Approximate bytes of a change in a record, without its name.
const CHANGE_BYTES: usize = 24;

/// The changes of the names that one account watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchMatch {
    pub account: AccountId,
    /// Positions in the list of matched changes, in ascending order.
    pub changes: Vec<u32>,
}

impl Store {
    /// Returns the last change that has been matched against all accounts; `None` before the first
    /// start of a server.
    pub fn changes_matched(&self) -> Option<u64> {
        Some(self.state().changes?.through)
    }

    /// Returns the last change of a match that was only recorded in part when the process ended.
    /// The match must resume up to exactly that change. `None` between matches.
    pub fn change_matching_to(&self) -> Option<u64> {
        Some(self.state().changes?.ahead?.0)
    }

    /// Starts matching with the change after `through`, unless matching has already started. For
    /// names that were already watched, nothing is sent until the owner saves settings.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn begin_watch_alerts(&self, through: u64, at: UnixMs) -> Result<(), WriteError> {
        let _one = self.0.watching.lock().await;
        if self.state().changes.is_some() {
            return Ok(());
        }
        self.append(vec![Event::WatchAlertsBegan { at, through }], None).await
    }

    /// Keeps only the changes of watched names.
    pub fn keep_watched(&self, changes: &mut Vec<Change>) {
        let watched = self.state().watched.clone();
        changes.retain(|change| watched.holds(&change.name));
    }

    /// Returns the accounts to notify of these changes, in ascending order. An entry has its own
    /// kinds of changes or follows those of the account. This is slow, and holds no lock while it
    /// runs.
    pub fn match_changes(&self, changes: &[Change]) -> Vec<WatchMatch> {
        let (accounts, progress) = {
            let state = self.state();
            let Some(progress) = state.changes else { return Vec::new() };
            (state.accounts.clone(), progress)
        };
        let by_name = by_name(changes);
        let mut found = Vec::new();
        for account in accounts.values().filter(|account| !account.is_disabled()) {
            let data = &account.data;
            let matched = progress.of(account.id);
            let mut of_account: Vec<u32> = Vec::new();
            let mut add = |positions: &[u32]| {
                let is_told = |at: &&u32| {
                    let change = &changes[**at as usize];
                    change.seq > matched && is_told(account, change, progress.began)
                };
                of_account.extend(positions.iter().filter(is_told));
            };
            // Each item of the shorter list is looked up in the longer one.
            if by_name.len() < data.watch_count() {
                by_name.values().for_each(|positions| add(positions));
            } else {
                for entry in data.watches() {
                    if let Some(positions) = by_name.get(&entry.name) {
                        add(positions);
                    }
                }
            }
            if !of_account.is_empty() {
                of_account.sort_unstable();
                found.push(WatchMatch { account: account.id, changes: of_account });
            }
        }
        found
    }

    /// Queues a message for each channel of these accounts, which must be in order, and moves all
    /// accounts to `through`. Durable when it returns. After an error, the caller matches the
    /// changes again. `has_mail` is true if this server sends mail.
    ///
    /// # Errors
    /// [`WriteError::Journal`], [`WriteError::Random`].
    pub async fn record_changes(
        &self,
        through: u64,
        changes: &[Change],
        found: &[WatchMatch],
        has_mail: bool,
    ) -> Result<usize, WriteError> {
        let recorded = {
            // Ids are drawn under the lock, so that these changes do not join messages that are
            // sent from now on.
            let _one = self.0.watching.lock().await;
            self.record(through, changes, found, has_mail).await
        };
        // Messages that were held back meanwhile may be due.
        self.0.wakes.deliveries.notify_one();
        recorded
    }

    async fn record(
        &self,
        through: u64,
        changes: &[Change],
        mut left: &[WatchMatch],
        has_mail: bool,
    ) -> Result<usize, WriteError> {
        let at = UnixMs::from_instant(self.0.clock.now());
        let mut queued = 0;
        loop {
            let mut batch = ChangeBatch::new(at, has_mail);
            let mut upto = None;
            while let Some((first, rest)) = left.split_first() {
                if !batch.add(&self.state(), first, changes)? {
                    break;
                }
                (upto, left) = (Some(first.account), rest);
            }
            queued += batch.messages.len();
            let upto = upto.filter(|_| !left.is_empty());
            self.append(batch.into_events(through, upto), None).await?;
            if left.is_empty() {
                return Ok(queued);
            }
        }
    }
}

fn by_name(changes: &[Change]) -> FxHashMap<&DomainName, Vec<u32>> {
    let mut by_name: FxHashMap<_, Vec<u32>> =
        FxHashMap::with_capacity_and_hasher(changes.len(), FxBuildHasher);
    for (at, change) in changes.iter().enumerate() {
        by_name.entry(&change.name).or_default().push(at as u32);
    }
    by_name
}

/// Returns true if an account is to be notified of a change.
fn is_told(account: &Account, change: &Change, began: UnixMs) -> bool {
    let data = &account.data;
    let Some(entry) = data.watch(&change.name) else { return false };
    if change.day.start() + chrono::TimeDelta::days(1) <= entry.added_at.instant() {
        return false;
    }
    match data.entry_alerts(&change.name) {
        Some(own) => own.kinds.has(change.kind),
        None => {
            let is_on = data.has_watch_sender() || entry.added_at >= began;
            is_on && data.watch_sender().alerts.kinds.has(change.kind)
        }
    }
}

/// The messages of one record.
struct ChangeBatch {
    at: UnixMs,
    has_mail: bool,
    changes: Vec<WatchedChange>,
    /// Positions in `changes` by position in the caller's list.
    positions: FxHashMap<u32, u16>,
    messages: Vec<RecordedChanges>,
    /// Unsubscribe tokens of accounts that get their first mail.
    tokens: Vec<Event>,
    bytes: usize,
}

impl ChangeBatch {
    fn new(at: UnixMs, has_mail: bool) -> ChangeBatch {
        ChangeBatch {
            at,
            has_mail,
            changes: Vec::new(),
            positions: FxHashMap::default(),
            messages: Vec::new(),
            tokens: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds the messages of an account; returns false if the record is full. One account always fits.
    fn add(
        &mut self,
        state: &State,
        found: &WatchMatch,
        all: &[Change],
    ) -> Result<bool, WriteError> {
        let Some(account) = state.account(found.account).filter(|account| !account.is_disabled())
        else {
            return Ok(true);
        };
        let WatchSender { alerts, rule } = account.data.watch_sender();
        let mut live = live_channels(account, rule);
        let is_there = |channel: &Channel| self.has_mail || *channel != Channel::Email;
        live.retain(|at| is_there(&rule.channels[*at]));
        let types = || rule.channels.iter().filter(|it| is_there(it)).map(Channel::type_name);
        let of_channel = |at: &usize| {
            let channel = &rule.channels[*at];
            let goes = |change: &&u32| {
                let own = account.data.entry_alerts(&all[**change as usize].name);
                own.is_none_or(|own| own.goes_to(channel.type_name(), types()))
            };
            (*at, found.changes.iter().filter(goes).copied().collect::<Vec<u32>>())
        };
        let mut messages: Vec<_> = live.iter().map(of_channel).collect();
        messages.retain(|(_, changes)| !changes.is_empty());
        let bytes = messages.iter().map(|(_, changes)| self.bytes_of(changes, all)).sum::<usize>();
        let names: usize = messages.iter().map(|(_, changes)| shown(changes).len()).sum();
        let is_full = self.bytes + bytes > RECORD_BYTES_MAX
            || self.changes.len() + names > usize::from(u16::MAX);
        if is_full && !self.messages.is_empty() {
            return Ok(false);
        }
        self.bytes += bytes;
        let used: Vec<_> = messages.iter().map(|(channel, _)| *channel).collect();
        self.tokens.extend(new_unsubscribe_token(account, rule, &used)?);
        let due = UnixMs::from_instant(alerts.due(self.at.instant()));
        for (channel, changes) in messages {
            let total = changes.len() as u32;
            let positions = shown(&changes).iter().map(|at| self.position(*at, all)).collect();
            self.messages.push(RecordedChanges {
                account: account.id,
                channel: u8::try_from(channel).expect("there are at most five channels"),
                delivery: DeliveryId::new(random_bytes()?),
                due,
                total,
                changes: positions,
            });
        }
        Ok(true)
    }

    fn bytes_of(&self, changes: &[u32], all: &[Change]) -> usize {
        let shown = shown(changes);
        let new = shown.iter().filter(|at| !self.positions.contains_key(at));
        let new = new.map(|at| all[*at as usize].name.as_str().len() + CHANGE_BYTES);
        MESSAGE_BYTES + 2 * shown.len() + new.sum::<usize>()
    }

    fn position(&mut self, at: u32, all: &[Change]) -> u16 {
        let next = self.changes.len() as u16;
        let position = *self.positions.entry(at).or_insert(next);
        if position == next {
            self.changes.push(WatchedChange::from(&all[at as usize]));
        }
        position
    }

    fn into_events(self, through: u64, upto: Option<AccountId>) -> Vec<Event> {
        let ChangeBatch { at, changes, messages, tokens, .. } = self;
        let matched = Event::ChangesMatched { through, upto, at, changes, messages };
        tokens.into_iter().chain([matched]).collect()
    }
}

/// Returns the changes that a message lists.
fn shown(changes: &[u32]) -> &[u32] {
    &changes[..changes.len().min(MESSAGE_NAMES_MAX)]
}
