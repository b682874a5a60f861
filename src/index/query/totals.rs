//! Totals of filters of the drops list: each is counted once per layer and day, so that further
//! pages and equal queries only pay for their own page.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::filter::DropFilter;

/// Maximum number of kept totals, which take up to 3 MB. When it is exceeded, all are dropped,
/// since they can be counted again.
const TOTALS_MAX: usize = 1 << 16;

/// The known totals of a layer on a day.
#[derive(Default)]
pub(super) struct Totals {
    /// Hashers, one for each half of a key. Their seeds are random, so clients cannot construct two
    /// filters with the same key.
    hashers: [RandomState; 2],
    totals: Mutex<HashMap<TotalKey, u32>>,
}

/// Key of the inputs of a total besides the layer and the day. A hash of 128 bits takes less memory
/// than a filter, and collisions are negligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TotalKey([u64; 2]);

impl Totals {
    pub(super) fn key(&self, filter: &DropFilter) -> TotalKey {
        let DropFilter { common, view, contains, sort: _, after: _, limit: _, offset: _ } = filter;
        TotalKey(self.hashers.each_ref().map(|hasher| hasher.hash_one((common, view, contains))))
    }

    pub(super) fn get(&self, key: TotalKey) -> Option<u32> {
        self.lock().get(&key).copied()
    }

    pub(super) fn keep(&self, key: TotalKey, total: u32) {
        let mut totals = self.lock();
        if totals.len() >= TOTALS_MAX {
            totals.clear();
        }
        totals.insert(key, total);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TotalKey, u32>> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Sort, SortKey, View};
    use crate::vocab::dqs::Dqs;
    use dropdex_query::filter::Filter;
    use dropdex_query::text::Substring;

    #[test]
    fn a_total_is_found_only_for_equal_inputs() {
        let plain = DropFilter {
            common: Filter::default(),
            view: View::Active,
            contains: None,
            sort: Sort::default(),
            after: None,
            limit: 20,
            offset: 0,
        };
        let totals = Totals::default();
        totals.keep(totals.key(&plain), 7);
        let known = |filter: &DropFilter| totals.get(totals.key(filter));
        let page = DropFilter { limit: 1, offset: 20, ..plain.clone() };
        assert_eq!(known(&page), Some(7));
        assert_eq!(
            known(&DropFilter { sort: Sort::natural(SortKey::Name), ..plain.clone() }),
            Some(7)
        );
        assert_eq!(known(&DropFilter { view: View::Today, ..plain.clone() }), None);
        let contains = Substring::parse("shop").ok();
        assert_eq!(known(&DropFilter { contains, ..plain.clone() }), None);
        let common = Filter { min_dqs: Dqs::clamped(1), ..Filter::default() };
        assert_eq!(known(&DropFilter { common, ..plain }), None);
    }

    #[test]
    fn totals_are_dropped_when_there_are_too_many() {
        let totals = Totals::default();
        for number in 0..TOTALS_MAX as u64 {
            totals.keep(TotalKey([number, 0]), 1);
        }
        assert_eq!(totals.get(TotalKey([0, 0])), Some(1));
        totals.keep(TotalKey([0, 1]), 2);
        assert_eq!([totals.get(TotalKey([0, 0])), totals.get(TotalKey([0, 1]))], [None, Some(2)]);
    }
}
