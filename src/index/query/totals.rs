//! Totals of filters of the drops list: each is counted once per layer and day, so that further
//! pages and equal queries only pay for their own page.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::iter::Sum;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::filter::{Counting, DropFilter};

/// Maximum number of kept filters, which take up to 5 MB. When it is exceeded, all are dropped,
/// since they can be counted again.
const TOTALS_MAX: usize = 1 << 16;

/// Number of names that pass a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    Exact(u32),
    /// An estimate: of totals above 100,000, 99 in 100 are within 2 %.
    About(u32),
}

impl Total {
    /// Returns the number, whether or not it is exact.
    pub fn count(self) -> u32 {
        let (Total::Exact(count) | Total::About(count)) = self;
        count
    }

    pub fn is_exact(self) -> bool {
        matches!(self, Total::Exact(_))
    }

    /// Corrects an estimate by a page: it ends with row number `end` of all, and `follows` says whether
    /// there are more.
    pub(super) fn with_page(self, end: u32, follows: bool) -> Total {
        match self {
            Total::About(count) if follows => Total::About(count.max(end.saturating_add(1))),
            Total::About(_) => Total::Exact(end),
            exact => exact,
        }
    }
}

/// The sum of some estimates is an estimate.
impl Sum for Total {
    fn sum<I: Iterator<Item = Total>>(totals: I) -> Total {
        totals.fold(Total::Exact(0), |sum, more| {
            let count = sum.count().saturating_add(more.count());
            if sum.is_exact() && more.is_exact() {
                Total::Exact(count)
            } else {
                Total::About(count)
            }
        })
    }
}

/// The known totals of a layer on a day.
#[derive(Default)]
pub(super) struct Totals {
    /// Hashers, one for each half of a key. The seeds of the hashers are random, so clients cannot
    /// construct two filters with the same key.
    hashers: [RandomState; 2],
    totals: Mutex<HashMap<TotalKey, KeptTotal>>,
}

/// The totals of a filter. The estimate is what a query without a known total would find, so that
/// results do not depend on earlier queries.
#[derive(Clone, Copy, Debug, Default)]
struct KeptTotal {
    estimate: Option<Total>,
    exact: Option<u32>,
}

/// Key of the inputs of a total besides the layer and the day. A hash of 128 bits takes less memory
/// than a filter, and collisions are negligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TotalKey([u64; 2]);

impl Totals {
    pub(super) fn key(&self, filter: &DropFilter) -> TotalKey {
        let DropFilter { common, view, contains, .. } = filter;
        TotalKey(self.hashers.each_ref().map(|hasher| hasher.hash_one((common, view, contains))))
    }

    pub(super) fn get(&self, key: TotalKey, counting: Counting) -> Option<Total> {
        let kept = *self.lock().get(&key)?;
        match counting {
            Counting::Exact => {
                kept.exact.map(Total::Exact).or(kept.estimate.filter(|it| it.is_exact()))
            }
            Counting::Estimate | Counting::None => kept.estimate,
        }
    }

    pub(super) fn keep(&self, key: TotalKey, counting: Counting, total: Total) {
        let mut totals = self.lock();
        if totals.len() >= TOTALS_MAX {
            totals.clear();
        }
        let kept = totals.entry(key).or_default();
        match counting {
            Counting::Exact => kept.exact = Some(total.count()),
            Counting::Estimate | Counting::None => kept.estimate = Some(total),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TotalKey, KeptTotal>> {
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
            sort_fact: None,
            after: None,
            limit: 20,
            offset: 0,
        };
        let totals = Totals::default();
        totals.keep(totals.key(&plain), Counting::Estimate, Total::Exact(7));
        let known = |filter: &DropFilter| {
            totals.get(totals.key(filter), Counting::Estimate).map(Total::count)
        };
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
    fn an_exact_total_does_not_replace_an_estimate() {
        let (totals, key) = (Totals::default(), TotalKey([0, 0]));
        let kept = || [Counting::Estimate, Counting::Exact].map(|it| totals.get(key, it));
        totals.keep(key, Counting::Estimate, Total::About(110_000));
        assert_eq!(kept(), [Some(Total::About(110_000)), None]);
        totals.keep(key, Counting::Exact, Total::Exact(111_111));
        assert_eq!(kept(), [Some(Total::About(110_000)), Some(Total::Exact(111_111))]);
        totals.keep(TotalKey([1, 0]), Counting::Estimate, Total::Exact(3));
        assert_eq!(totals.get(TotalKey([1, 0]), Counting::Exact), Some(Total::Exact(3)));
    }

    #[test]
    fn a_page_corrects_an_estimate() {
        let about = Total::About(120);
        assert_eq!(about.with_page(100, true), about);
        assert_eq!(about.with_page(150, true), Total::About(151));
        assert_eq!(about.with_page(90, false), Total::Exact(90));
        assert_eq!(Total::Exact(7).with_page(3, true), Total::Exact(7));
        assert_eq!([Total::Exact(7), about].into_iter().sum::<Total>(), Total::About(127));
    }

    #[test]
    fn totals_are_dropped_when_there_are_too_many() {
        let totals = Totals::default();
        let (counting, get) =
            (Counting::Estimate, |key| totals.get(TotalKey(key), Counting::Estimate));
        for number in 0..TOTALS_MAX as u64 {
            totals.keep(TotalKey([number, 0]), counting, Total::Exact(1));
        }
        assert_eq!(get([0, 0]), Some(Total::Exact(1)));
        totals.keep(TotalKey([0, 1]), counting, Total::Exact(2));
        assert_eq!([get([0, 0]), get([0, 1])], [None, Some(Total::Exact(2))]);
    }
}
