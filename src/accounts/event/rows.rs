//! Rows that an event changes, for actions that can be undone.

use super::{Event, RowOf};
use crate::data::actions::Key;
use crate::vocab::ids::AccountId;

impl Event {
    /// Returns the rows of an account that the event changes and that an action keeps.
    pub fn rows(&self, of: AccountId) -> Vec<Key> {
        let (account, keys) = match self {
            Event::WatchPut { account, watch } => {
                (account, vec![Key::Watch(watch.entry.name.clone())])
            }
            Event::NamesHidden { account, names, .. } => {
                (account, names.iter().cloned().map(Key::Hidden).collect())
            }
            Event::ClaimPut { account, claim } => (account, vec![Key::Claim(claim.id)]),
            Event::Removed { account, row } => (account, of_row(row)),
            _ => return Vec::new(),
        };
        if *account == of { keys } else { Vec::new() }
    }
}

fn of_row(row: &RowOf) -> Vec<Key> {
    match row {
        RowOf::Claim(id) => vec![Key::Claim(*id)],
        RowOf::Watch(name) => vec![Key::Watch(name.clone())],
        RowOf::Rule(id) => vec![Key::Rule(*id)],
        RowOf::Search(id) => vec![Key::Search(*id)],
        RowOf::Key(_) | RowOf::Feed(_) | RowOf::Session(_) | RowOf::Facts(_) => Vec::new(),
    }
}
