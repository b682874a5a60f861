//! Pages of the drops list in other orders than rank order, and positions of rows that outlive a
//! generation. The docs that pass a filter are a bitmap; a page is the best of them by a key column.
//!
//! By name, docs are visited in the stored name order until the page is full, or sorted if they are
//! few. Any other key is selected from a column: a pass over the matches costs a comparison each, and
//! seven stored permutations would cost four bytes a name each.

use std::cmp::Ordering;

use crate::index::columns::rank_key::order_key;
use crate::index::filter::{DropFilter, RowPosition, Sort, SortKey};
use crate::index::query::index::Index;
use crate::vocab::budget;

/// Matches up to which names are sorted instead of visited in order.
const SORTED_NAMES_MAX: u32 = 2_000;
/// Matches between two looks at the time budget.
const DOCS_PER_LOOK: usize = 1 << 16;

impl Index {
    /// Returns up to `take` docs of `matches`, in the order of `filter`, from its position and offset on.
    pub(super) fn sorted_docs(
        &self,
        filter: &DropFilter,
        matches: &[u64],
        take: usize,
    ) -> Vec<u32> {
        let skip = filter.offset as usize;
        let wanted = take.saturating_add(skip);
        let mut docs = match filter.sort.key {
            SortKey::Name => self.by_name(filter, matches, wanted),
            _ => self.by_key(filter, matches, wanted),
        };
        docs.drain(..skip.min(docs.len()));
        docs
    }

    fn by_key(&self, filter: &DropFilter, matches: &[u64], wanted: usize) -> Vec<u32> {
        let Sort { key, descending } = filter.sort;
        let directed = |value: u64| if descending { !value } else { value };
        let after =
            filter.after.as_ref().map(|after| (directed(after.value), self.first_after(after)));
        let mut best: Vec<(u64, u32)> = Vec::new();
        let mut worst = (u64::MAX, u32::MAX);
        let trim_at = wanted.saturating_mul(2).saturating_add(DOCS_PER_LOOK);
        for (seen, doc) in docs_of(matches).enumerate() {
            let found = (directed(self.sort_value(key, doc)), doc);
            if found < worst && after.is_none_or(|after| found >= after) {
                best.push(found);
                if best.len() >= trim_at && wanted > 0 {
                    worst = *best.select_nth_unstable(wanted - 1).1;
                    best.truncate(wanted);
                }
            }
            if seen.is_multiple_of(DOCS_PER_LOOK) && budget::spent() {
                break;
            }
        }
        best.sort_unstable();
        best.truncate(wanted);
        best.into_iter().map(|(_, doc)| doc).collect()
    }

    fn by_name(&self, filter: &DropFilter, matches: &[u64], wanted: usize) -> Vec<u32> {
        let descending = filter.sort.descending;
        let directed = |order: Ordering| if descending { order.reverse() } else { order };
        let is_after = |doc: u32| {
            let compared = |after: &RowPosition| directed(self.compare_name(doc, &after.name));
            filter.after.as_ref().is_none_or(|after| compared(after) == Ordering::Greater)
        };
        let total: u32 = matches.iter().map(|word| word.count_ones()).sum();
        if total <= SORTED_NAMES_MAX {
            let mut docs: Vec<u32> = docs_of(matches).filter(|&doc| is_after(doc)).collect();
            docs.sort_by_cached_key(|&doc| self.name_of(doc));
            if descending {
                docs.reverse();
            }
            docs.truncate(wanted);
            return docs;
        }
        let places = self.drops_by_name.docs();
        let holds = |doc: &u32| {
            let word = matches.get(*doc as usize / 64);
            word.is_some_and(|word| word >> (doc % 64) & 1 == 1)
        };
        // In both directions the rows before the position are at the start.
        if descending {
            let end = filter.after.as_ref().map_or(places.len(), |after| {
                places.partition_point(|&doc| self.compare_name(doc, &after.name).is_lt())
            });
            places[..end].iter().rev().copied().filter(holds).take(wanted).collect()
        } else {
            let start = filter.after.as_ref().map_or(0, |after| {
                places.partition_point(|&doc| self.compare_name(doc, &after.name).is_le())
            });
            places[start..].iter().copied().filter(holds).take(wanted).collect()
        }
    }

    fn sort_value(&self, key: SortKey, doc: u32) -> u64 {
        let drops = &self.drops_by_rank;
        let at = doc as usize;
        match key {
            SortKey::Dqs => drops.dqs(doc).points().into(),
            SortKey::Release => drops.releases()[at].into(),
            SortKey::Dropped => drops.drop_dates()[at].into(),
            SortKey::Length => drops.length(doc).into(),
            SortKey::Name => 0,
            SortKey::Tlds => drops.spreads()[at].into(),
            SortKey::Listed => self.listed_at(doc).get(),
        }
    }

    /// Returns the position of a doc of the drops list.
    pub(super) fn position_of(&self, sort: Sort, doc: u32) -> RowPosition {
        RowPosition {
            value: self.sort_value(sort.key, doc),
            key: self.order_key(doc),
            name: self.name_of(doc),
        }
    }

    /// Returns the first doc of the drops list that is after a position in rank order.
    pub(super) fn first_after(&self, position: &RowPosition) -> u32 {
        let (mut low, mut high) = (0, self.drops_by_rank.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self.order_key(middle).cmp(&position.key);
            if order.then_with(|| self.compare_name(middle, &position.name)).is_gt() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn order_key(&self, doc: u32) -> u64 {
        let drops = &self.drops_by_rank;
        order_key(drops.keys()[doc as usize], drops.ranks()[doc as usize])
    }

    fn name_of(&self, doc: u32) -> String {
        let tld = self.tlds.name(self.drops_by_rank.tlds()[doc as usize]);
        format!("{}.{tld}", self.records.get(doc).label)
    }

    fn compare_name(&self, doc: u32, name: &str) -> Ordering {
        let tld = self.tlds.name(self.drops_by_rank.tlds()[doc as usize]);
        let own = self.records.label(doc).iter().chain(b".").chain(tld.as_bytes());
        own.cmp(name.as_bytes())
    }
}

/// Returns the docs whose bits are set.
pub(super) fn docs_of(matches: &[u64]) -> impl Iterator<Item = u32> {
    (0u32..).zip(matches).flat_map(|(at, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(at * 64 + bit)
        })
    })
}
