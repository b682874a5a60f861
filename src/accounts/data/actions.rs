//! The recent actions of one account, with the rows as they were before, so that they can be undone.
//!
//! A row is restored only if it is still as the action left it: what was changed later stays.

use std::collections::BTreeMap;
use std::sync::Arc;

use bincode::Options;
use chrono::TimeDelta;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::data::UserData;
use crate::data::access::is_younger;
use crate::data::claims::Claim;
use crate::data::deliveries::{RuleOutbox, SwitchedOff};
use crate::data::feeds::Feed;
use crate::data::fields::{codec, row};
use crate::data::hidden::hidden_bytes;
use crate::data::rules::{Channel, Rule};
use crate::data::searches::SavedSearch;
use crate::data::watches::WatchRow;
use crate::vocab::ids::{ActionId, ClaimId, RuleId, SearchId, UnsubscribeToken};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// How long an action can be undone (`data/docs/watchlist.md`, Undo).
pub const UNDO_FOR: TimeDelta = TimeDelta::minutes(10);
/// Maximum actions of an account that are kept, the newest ones.
const ACTIONS_MAX: usize = 20;
/// Maximum bytes of all rows of an account's actions: a thousand names with short notes. The oldest
/// actions are dropped first; an action that needs more by itself cannot be undone.
const ACTIONS_BYTES_MAX: u64 = 1 << 20;
/// Approximate size in memory of a row without its content.
const CHANGED_BYTES: u64 = 128;

/// A row that an action can change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    Watch(DomainName),
    Hidden(DomainName),
    /// The mark *clean* or *spam* of a name, which is a fact.
    Mark(DomainName),
    Claim(ClaimId),
    Rule(RuleId),
    Search(SearchId),
}

/// The content of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    Watch(Box<WatchRow>),
    Hidden,
    Mark(CompactString),
    Claim(Box<Claim>),
    Rule(Box<RuleBefore>),
    Search(Box<SavedSearch>, Option<Feed>),
}

/// A rule with what would be lost with it. Its deliveries are not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleBefore {
    pub rule: Rule,
    pub feed: Option<Feed>,
    pub unsubscribe: Option<UnsubscribeToken>,
    /// Channels that are off, which stay off.
    pub off: Vec<(Channel, SwitchedOff)>,
}

row!(RuleBefore { 1 rule } optional { 2 feed, 3 unsubscribe, 4 off });

impl RuleBefore {
    pub fn new(rule: Rule, feed: Option<Feed>, outbox: Option<&RuleOutbox>) -> RuleBefore {
        let off = outbox.iter().flat_map(|outbox| &outbox.off);
        let off = off.map(|(channel, off)| (Channel::clone(channel), *off)).collect();
        let unsubscribe = outbox.and_then(|outbox| outbox.unsubscribe);
        RuleBefore { rule, feed, unsubscribe, off }
    }
}

impl Content {
    /// Returns the approximate size in memory of the row in its collection.
    pub fn bytes(&self, key: &Key) -> u64 {
        match (self, key) {
            (Content::Watch(row), _) => row.bytes(),
            (Content::Hidden, Key::Hidden(name)) => hidden_bytes(name),
            (Content::Hidden, _) => 0,
            (Content::Mark(mark), _) => mark.len() as u64,
            (Content::Claim(claim), _) => claim.bytes(),
            (Content::Rule(before), _) => before.rule.bytes(),
            (Content::Search(search, _), _) => search.bytes(),
        }
    }

    /// Returns the number by which contents are compared. It is stored, so it is equal on all nodes.
    /// Whether a name uses quota is left out, since that changes by itself.
    pub fn print(&self) -> u64 {
        let bytes = match self {
            Content::Watch(row) => {
                let WatchRow { entry, details, alerts } = &**row;
                codec().serialize(&(entry.added_at, details, alerts))
            }
            other => codec().serialize(other),
        };
        let digest = blake3::hash(&bytes.expect("values have a stored form"));
        let first = digest.as_bytes().first_chunk().expect("a digest has 32 bytes");
        u64::from_le_bytes(*first)
    }
}

/// A row that an action changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub key: Key,
    /// The row before the action; `None` if it did not exist.
    pub before: Option<Content>,
    /// The [`Content::print`] of the row after the action; `None` if it did not exist.
    pub after: Option<u64>,
}

row!(Changed { 1 key } optional { 2 before, 3 after });

impl Changed {
    fn bytes(&self) -> u64 {
        CHANGED_BYTES + self.before.as_ref().map_or(0, |content| content.bytes(&self.key))
    }
}

/// An action and the rows that it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub id: ActionId,
    pub at: UnixMs,
    /// Whether the action needs more bytes than are kept.
    pub is_too_large: bool,
    /// Present only in memory; a snapshot stores them as rows of their own.
    pub rows: BTreeMap<Key, Arc<Changed>>,
    pub bytes: u64,
}

row!(Action { 1 id, 2 at } optional { 3 is_too_large } skipped { rows, bytes });

/// The actions of an account, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions(Vec<Arc<Action>>);

impl Actions {
    /// Returns the approximate size in memory of all actions.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|action| CHANGED_BYTES + action.bytes).sum()
    }

    /// Returns the actions, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Action> {
        self.0.iter().map(Arc::as_ref)
    }

    /// Returns an action that can still be undone at `now`.
    pub fn get(&self, id: ActionId, now: UnixMs) -> Option<&Action> {
        let action = self.0.iter().find(|action| action.id == id)?;
        (is_younger(action.at, UNDO_FOR, now) && !action.is_too_large).then_some(action)
    }

    /// Adds an action unless it exists, and drops those that can no longer be undone at its time.
    pub fn begin(&mut self, id: ActionId, at: UnixMs) {
        self.0.retain(|action| is_younger(action.at, UNDO_FOR, at));
        if self.0.iter().all(|action| action.id != id) {
            let excess = (self.0.len() + 1).saturating_sub(ACTIONS_MAX);
            self.0.drain(..excess);
            self.put(Action { id, at, is_too_large: false, rows: BTreeMap::new(), bytes: 0 });
        }
    }

    /// Adds an action of a snapshot.
    pub fn put(&mut self, action: Action) {
        self.0.push(Arc::new(action));
    }

    /// Returns the action that was added last.
    pub fn newest(&self) -> Option<ActionId> {
        self.0.last().map(|action| action.id)
    }

    /// Adds a row to an action. Of a row that the action changes again, the first content counts.
    pub fn record(&mut self, id: ActionId, row: Changed) {
        let action = self.0.iter_mut().find(|action| action.id == id);
        let Some(action) = action.filter(|action| !action.is_too_large) else { return };
        let action = Arc::make_mut(action);
        match action.rows.get_mut(&row.key) {
            Some(known) => Arc::make_mut(known).after = row.after,
            None => {
                action.bytes += row.bytes();
                action.rows.insert(row.key.clone(), Arc::new(row));
            }
        }
        if action.bytes > ACTIONS_BYTES_MAX {
            (action.is_too_large, action.bytes) = (true, 0);
            action.rows.clear();
        }
        while self.bytes() > ACTIONS_BYTES_MAX + ACTIONS_MAX as u64 * CHANGED_BYTES {
            self.0.remove(0);
        }
    }

    /// Removes and returns an action.
    pub fn take(&mut self, id: ActionId) -> Option<Arc<Action>> {
        let at = self.0.iter().position(|action| action.id == id)?;
        Some(self.0.remove(at))
    }
}

impl UserData {
    /// Returns the present content of a row; `None` if it does not exist. A mark is a fact, whose
    /// present value is not known here. The feeds of rules and searches are not here either.
    pub fn content(&self, key: &Key) -> Option<Content> {
        Some(match key {
            Key::Watch(name) => Content::Watch(Box::new(self.watches.row(self.watches.get(name)?))),
            Key::Hidden(name) => self.hidden.holds(name).then_some(Content::Hidden)?,
            Key::Mark(_) => return None,
            Key::Claim(id) => Content::Claim(Box::new(self.claims.get(*id)?.clone())),
            Key::Rule(id) => {
                let rule = self.rules.get(*id)?.clone();
                Content::Rule(Box::new(RuleBefore::new(
                    rule,
                    None,
                    self.outbox.get(*id).map(Arc::as_ref),
                )))
            }
            Key::Search(id) => {
                Content::Search(Box::new(SavedSearch::clone(self.searches.get(*id)?)), None)
            }
        })
    }

    /// Returns the rows that undoing an action changes: those that still are as it left them.
    pub fn restorable<'a>(&self, action: &'a Action) -> impl Iterator<Item = &'a Changed> {
        let rows = action.rows.values().map(Arc::as_ref);
        rows.filter(|row| {
            let is_mark = matches!(row.key, Key::Mark(_));
            is_mark || self.content(&row.key).map(|content| content.print()) == row.after
        })
    }

    /// Returns the change in the account's memory if an action is undone.
    pub fn growth_of_undo(&self, action: &Action) -> i64 {
        let grown = |Changed { key, before, .. }: &Changed| {
            let bytes = |content: &Content| content.bytes(key) as i64;
            before.as_ref().map_or(0, bytes) - self.content(key).as_ref().map_or(0, bytes)
        };
        self.restorable(action).filter(|row| !matches!(row.key, Key::Mark(_))).map(grown).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, name};

    const MINUTE: u64 = 60_000;

    fn id(number: u64) -> ActionId {
        ActionId::new(number).expect("an id")
    }

    fn hidden(number: usize) -> Changed {
        Changed { key: Key::Hidden(name(&format!("n{number}.com"))), before: None, after: Some(1) }
    }

    #[test]
    fn an_action_can_be_undone_for_ten_minutes() {
        let mut actions = Actions::default();
        actions.begin(id(1), at(0));
        actions.record(id(1), hidden(1));
        assert!(actions.get(id(1), at(10 * MINUTE - 1)).is_some());
        assert!(actions.get(id(1), at(10 * MINUTE)).is_none());
        assert!(actions.get(id(2), at(0)).is_none());
        // The next action drops the older one.
        actions.begin(id(2), at(10 * MINUTE));
        assert_eq!(actions.iter().map(|action| action.id.get()).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn parts_of_an_action_are_added_to_it_and_its_first_contents_count() {
        let mut actions = Actions::default();
        let row = |before, after| Changed { before, after, ..hidden(1) };
        for number in [1, 2, 1] {
            actions.begin(id(number), at(number));
        }
        actions.record(id(1), row(None, Some(3)));
        actions.record(id(1), row(Some(Content::Hidden), Some(4)));
        let rows: Vec<_> = actions.iter().map(|action| action.rows.len()).collect();
        assert_eq!(rows, [1, 0]);
        let action = actions.take(id(1)).expect("there");
        assert_eq!(action.rows.values().next().map(|it| &**it), Some(&row(None, Some(4))));
    }

    #[test]
    fn the_actions_of_an_account_are_bounded() {
        let mut actions = Actions::default();
        for number in 1..=30 {
            actions.begin(id(number), at(number));
        }
        assert_eq!(actions.0.len(), ACTIONS_MAX);
        let fits = (ACTIONS_BYTES_MAX / CHANGED_BYTES) as usize;
        (0..fits).for_each(|row| actions.record(id(30), hidden(row)));
        assert_eq!(actions.get(id(30), at(30)).map(|action| action.rows.len()), Some(fits));
        // A second large one displaces the older ones.
        (0..fits).for_each(|row| actions.record(id(29), hidden(row)));
        assert!(actions.bytes() <= ACTIONS_BYTES_MAX + ACTIONS_MAX as u64 * CHANGED_BYTES);
        assert!(actions.get(id(29), at(30)).is_none() || actions.get(id(30), at(30)).is_none());
        // A single one that is too large cannot be undone, and takes no bytes.
        actions.begin(id(31), at(31));
        (0..=fits).for_each(|row| actions.record(id(31), hidden(row)));
        assert!(actions.get(id(31), at(31)).is_none());
        assert_eq!(actions.iter().last().map(|action| action.bytes), Some(0));
    }
}
