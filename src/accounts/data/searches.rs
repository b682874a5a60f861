//! The saved searches of one account.

use std::sync::Arc;

use compact_str::CompactString;

use crate::data::fields::row;
use crate::query::stored::Conditions;
use crate::vocab::ids::SearchId;
use crate::vocab::time::UnixMs;

/// A named search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSearch {
    pub id: SearchId,
    /// 1 to 100 characters on one line.
    pub name: CompactString,
    /// The filters, and the order in `sort` and `order`.
    pub conditions: Conditions,
    pub created_at: UnixMs,
    /// The newest batch when the owner last opened the search.
    pub seen: u64,
}

row!(SavedSearch { 1 id, 2 name, 3 created_at } optional { 4 conditions, 5 seen });

/// Approximate size in memory of a search without its texts.
const SEARCH_BYTES: u64 = 256;

impl SavedSearch {
    /// Returns the approximate size in memory of the search.
    pub fn bytes(&self) -> u64 {
        SEARCH_BYTES + self.name.len() as u64 + self.conditions.bytes()
    }
}

/// All saved searches of an account, at most 100, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searches(Vec<Arc<SavedSearch>>);

impl Searches {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the approximate size in memory of all searches.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|search| search.bytes()).sum()
    }

    pub fn get(&self, id: SearchId) -> Option<&Arc<SavedSearch>> {
        self.0.iter().find(|search| search.id == id)
    }

    /// Returns the searches, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<SavedSearch>> {
        self.0.iter()
    }

    /// Adds a search, or replaces the one with the same id.
    pub fn put(&mut self, search: SavedSearch) {
        match self.0.iter_mut().find(|known| known.id == search.id) {
            Some(known) => *known = Arc::new(search),
            None => self.0.push(Arc::new(search)),
        }
    }

    /// Adds a removed search again, at its place by age.
    pub fn restore(&mut self, search: SavedSearch) {
        self.remove(search.id);
        let at = self.0.partition_point(|it| it.created_at <= search.created_at);
        self.0.insert(at, Arc::new(search));
    }

    pub fn remove(&mut self, id: SearchId) {
        self.0.retain(|search| search.id != id);
    }
}
