//! Actions that their owner can undo for ten minutes (`data/docs/watchlist.md`, Undo).

use compact_str::CompactString;

use super::data::account::Account;
use super::data::actions::{Action, Content, Key};
use super::decide::{Decided, draw_id};
use super::error::WriteError;
use super::event::Event;
use super::store::{Caller, Store};
use crate::vocab::ids::ActionId;
use crate::vocab::limits::{CLAIMS_MAX, HIDDEN_MAX, RULES_MAX, SEARCHES_MAX, WATCHES_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::plan::PlanLimits;
use crate::vocab::time::UnixMs;
use crate::watches::external_names_used_up;

/// Numbers of rows of an undone action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Rows that are as before the action.
    pub restored: usize,
    /// Rows that were changed after the action, and stay.
    pub kept: usize,
}

/// A mark of a name that an action set.
pub struct MarkBefore {
    pub name: DomainName,
    pub before: Option<CompactString>,
    /// The print of the mark that the action set; see [`mark_print`].
    pub after: Option<u64>,
}

/// Returns the number by which an action compares marks.
pub fn mark_print(mark: &str) -> u64 {
    Content::Mark(mark.into()).print()
}

impl Caller {
    /// Returns the caller for an action that can be undone: all its writes belong to the action.
    ///
    /// # Errors
    /// The system's random source failed.
    pub fn acting(&self) -> Result<(Caller, ActionId), WriteError> {
        let (mut caller, id) = (self.clone(), draw_id(ActionId::new, |_| false)?);
        caller.action = Some(id);
        Ok((caller, id))
    }
}

impl Store {
    /// Adds the beginning of the caller's action to the events of a write, if there are any.
    pub(super) fn recorded<T>(&self, caller: &Caller, mut decided: Decided<T>) -> Decided<T> {
        if let Some(id) = caller.action.filter(|_| !decided.events.is_empty()) {
            let (account, at) = (caller.account, UnixMs::from_instant(self.0.clock.now()));
            let (marks, mark) = (Vec::new(), None);
            decided.events.insert(0, Event::ActionBegan { account, id, at, marks, mark });
        }
        decided
    }

    /// Adds marks to the caller's action: up to 1,000 names with their marks before, and the mark that
    /// they have now.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn record_marks(
        &self,
        caller: &Caller,
        marks: Vec<(DomainName, Option<CompactString>)>,
        mark: Option<CompactString>,
    ) -> Result<(), WriteError> {
        let Some(id) = caller.action else { return Ok(()) };
        let at = UnixMs::from_instant(self.0.clock.now());
        self.write_to(caller.account, |account, _| {
            let event = Event::ActionBegan { account: account.id, id, at, marks, mark };
            Ok(Decided::new([event], ()))
        })
        .await
    }

    /// Returns the marks of an action that can still be undone.
    pub fn marks_of(&self, caller: &Caller, id: ActionId) -> Vec<MarkBefore> {
        let now = UnixMs::from_instant(self.0.clock.now());
        let owned = self.user_data(caller);
        let rows = owned.action(id, now).into_iter().flat_map(|action| action.rows.values());
        let marks = rows.filter_map(|row| match (&row.key, &row.before) {
            (Key::Mark(name), before) => {
                let before = match before {
                    Some(Content::Mark(mark)) => Some(mark.clone()),
                    _ => None,
                };
                Some(MarkBefore { name: name.clone(), before, after: row.after })
            }
            _ => None,
        });
        marks.collect()
    }

    /// Restores the rows of an action as they were before it, except its marks and those that were
    /// changed after it.
    ///
    /// # Errors
    /// [`WriteError::NotFound`]: no such action, or it is older than ten minutes.
    /// [`WriteError::TooMany`], [`WriteError::PlanLimit`]: the rows no longer fit.
    pub async fn undo(&self, caller: &Caller, id: ActionId) -> Result<Undone, WriteError> {
        let now = UnixMs::from_instant(self.0.clock.now());
        self.write(caller, |account, limits| {
            let action = account.data.actions.get(id, now).ok_or(WriteError::NotFound)?;
            let undone = check(account, limits, action)?;
            Ok(Decided::new([Event::ActionUndone { account: account.id, id }], undone))
        })
        .await
    }
}

/// Checks that the rows of an action fit the limits of the account, and counts them.
fn check(account: &Account, limits: &PlanLimits, action: &Action) -> Result<Undone, WriteError> {
    let data = &account.data;
    // Rows of each kind that are added again.
    let (mut watches, mut hidden, mut claims, mut rules, mut searches) = (0, 0, 0, 0, 0);
    let (mut external, mut restored) = (0, 0);
    for row in data.restorable(action) {
        restored += 1;
        let is_added = row.before.is_some() && row.after.is_none();
        let count = match &row.key {
            Key::Watch(_) => &mut watches,
            Key::Hidden(_) => &mut hidden,
            Key::Claim(_) => &mut claims,
            Key::Rule(_) => &mut rules,
            Key::Search(_) => &mut searches,
            Key::Mark(_) => continue,
        };
        *count += usize::from(is_added);
        if let Some(Content::Watch(before)) = &row.before {
            external += u32::from(is_added && before.entry.external);
        }
    }
    for (added, present, what, limit) in [
        (watches, data.watches.len(), "names on its watchlist", WATCHES_MAX),
        (hidden, data.hidden.len(), "hidden names", HIDDEN_MAX),
        (claims, data.claims.len(), "claims", CLAIMS_MAX),
        (rules, data.rules.len(), "alert rules", RULES_MAX),
        (searches, data.searches.len(), "saved searches", SEARCHES_MAX),
    ] {
        if added > 0 && present + added > limit as usize {
            return Err(WriteError::TooMany { what, limit });
        }
    }
    if external > 0 && data.watches.external() + external > limits.external_names {
        return Err(external_names_used_up(account, limits));
    }
    Ok(Undone { restored, kept: action.rows.len() - restored })
}
