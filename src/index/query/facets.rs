//! Counts of the drops list by value. Each facet counts the names that pass all filters but its own.

use std::cmp::Reverse;

use crate::index::columns::rank_key::dqs_of;
use crate::index::error::QueryError;
use crate::index::filter::{AsOf, DropFilter, Facet, View};
use crate::index::query::index::{DayIndex, Index};
use crate::index::query::sort::docs_of;
use crate::vocab::day::Day;
use crate::vocab::filter::{DayRange, Filter};
use crate::vocab::stage::Stage;

/// Maximum values of a facet.
const VALUES_MAX: usize = 100;
/// Scores of one value.
const DQS_STEP: u32 = 10;

/// A value, and the number of names that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetValue {
    pub value: String,
    pub count: u32,
}

impl Index {
    /// Counts the values of each facet: at most 100, most frequent first.
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn facets(
        &self,
        filter: &DropFilter,
        facets: &[Facet],
        as_of: AsOf,
    ) -> Result<Vec<Vec<FacetValue>>, QueryError> {
        let day = self.day(as_of);
        // Facets without a filter of their own share the matches.
        let mut shared: Option<Vec<u64>> = None;
        let mut counted = Vec::with_capacity(facets.len());
        for &facet in facets {
            let without = filter.without(facet);
            let counts = if without.common == filter.common && without.view == filter.view {
                if shared.is_none() {
                    shared = Some(self.matching(filter, &day)?);
                }
                self.count_by(facet, shared.as_deref().unwrap_or_default(), &day)
            } else {
                self.count_by(facet, &self.matching(&without, &day)?, &day)
            };
            counted.push(self.frequent(facet, &counts));
        }
        Ok(counted)
    }

    /// Returns the number of matches by number of the value.
    fn count_by(&self, facet: Facet, matches: &[u64], day: &DayIndex) -> Vec<u32> {
        let drops = &self.drops_by_rank;
        let (tlds, keys, releases) = (drops.tlds(), drops.keys(), drops.releases());
        let codes = day.stages.by_doc();
        let all = u8::MAX >> 4;
        match facet {
            Facet::Tld => count(matches, self.tlds.len(), |doc| tlds[doc].into()),
            Facet::Stage => {
                count(matches, Stage::ALL.len(), |doc| (codes[doc] & all).trailing_zeros() as usize)
            }
            Facet::Length => count(matches, 1 << 8, |doc| usize::from(keys[doc] & 0xff)),
            Facet::Dqs => count(matches, 1 << 8, |doc| dqs_of(keys[doc]).points().into()),
            Facet::Release => count(matches, 1 << 16, |doc| releases[doc].into()),
        }
    }

    /// Returns the most frequent values, by value among equals.
    fn frequent(&self, facet: Facet, counts: &[u32]) -> Vec<FacetValue> {
        let mut by_value: Vec<(usize, u32)> = match facet {
            Facet::Dqs => {
                let tens = counts.chunks(DQS_STEP as usize).map(|ten| ten.iter().sum());
                tens.enumerate().map(|(at, count)| (at * DQS_STEP as usize, count)).collect()
            }
            Facet::Tld => {
                let sorted = self.tlds.sorted().iter().map(|&tld| usize::from(tld));
                sorted.map(|tld| (tld, counts[tld])).collect()
            }
            _ => counts.iter().copied().enumerate().collect(),
        };
        by_value.retain(|&(_, count)| count > 0);
        by_value.sort_by_key(|&(_, count)| Reverse(count));
        let text = |number: usize| match facet {
            Facet::Tld => self.tlds.name(number as u16).to_owned(),
            Facet::Stage => Stage::ALL[number].to_string(),
            Facet::Length | Facet::Dqs => number.to_string(),
            Facet::Release => {
                Day::from_raw(number as u16).map(|day| day.to_string()).unwrap_or_default()
            }
        };
        let value = |(number, count)| FacetValue { value: text(number), count };
        by_value.into_iter().take(VALUES_MAX).map(value).collect()
    }
}

impl DropFilter {
    /// Returns the filter without the conditions on a facet.
    fn without(&self, facet: Facet) -> DropFilter {
        let mut filter = self.clone();
        let (common, open) = (&mut filter.common, Filter::default());
        match facet {
            Facet::Tld => (common.tlds, common.not_tlds) = (open.tlds, open.not_tlds),
            Facet::Stage => filter.view = View::All,
            Facet::Length => (common.min_len, common.max_len) = (open.min_len, open.max_len),
            Facet::Dqs => (common.min_dqs, common.max_dqs) = (open.min_dqs, open.max_dqs),
            Facet::Release => {
                (common.drop.release, common.drop.release_within) = (DayRange::default(), None);
            }
        }
        filter
    }
}

/// Counts the matches by `number`, which is below `numbers`.
fn count(matches: &[u64], numbers: usize, number: impl Fn(usize) -> usize) -> Vec<u32> {
    let mut counts = vec![0; numbers];
    docs_of(matches).for_each(|doc| counts[number(doc as usize)] += 1);
    counts
}
