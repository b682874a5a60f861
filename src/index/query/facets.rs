//! Counts of the drops list by value. Each facet counts the names that pass all filters except its own.

use std::cmp::Reverse;
use std::ops::Range;

use crate::columns::day::StageDocs;
use crate::columns::properties::Property;
use crate::columns::sampling::Sample;
use crate::columns::slices::{docs_of, ones};
use crate::error::QueryError;
use crate::filter::{AsOf, Counting, DropFilter, Facet, View};
use crate::query::index::{DayIndex, Index, Layer, LayerDay};
use crate::query::rows::FacetValue;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::kind::Kind;
use crate::vocab::language::LanguageCode;
use crate::vocab::stage::Stage;
use crate::vocab::suffix_rank::SuffixRank;
use dropdex_query::filter::{Filter, ReleaseRange};

/// Maximum values of a facet.
const VALUES_MAX: usize = 100;
/// Docs of each layer that pass a filter, as a bitmap: all of them, or those of a sample.
type Matches = Vec<(Vec<u64>, Option<Sample>)>;
/// Number of scores that a facet value covers.
const DQS_STEP: u32 = 10;
/// Percentages of the drops of a suffix, each of which includes those before it.
const SUFFIX_BANDS: [u32; 5] = [1, 5, 10, 25, 50];

/// The values of each facet.
#[derive(Clone, Debug)]
pub struct CountedFacets {
    pub values: Vec<Vec<FacetValue>>,
    /// Whether no number is an estimate.
    pub are_exact: bool,
}

impl Index {
    /// Counts the values of each facet, of which it returns the 100 most frequent, in that order.
    /// Without filters, they are counted once per day and generation. With filters on a long list, numbers
    /// are estimated unless `counting` is [`Counting::Exact`].
    ///
    /// # Errors
    /// [`QueryError`]; does not happen with verified files.
    pub fn facets(
        &self,
        filter: &DropFilter,
        facets: &[Facet],
        as_of: AsOf,
        counting: Counting,
    ) -> Result<CountedFacets, QueryError> {
        let day = self.day(as_of);
        // Facets on which there is no filter share the matches.
        let mut shared: Option<Matches> = None;
        let count = |facet, matches: &Matches| {
            let is_exact = matches.iter().all(|(_, sample)| sample.is_none());
            (self.count_values(facet, matches, &day), is_exact)
        };
        let mut counted =
            CountedFacets { values: Vec::with_capacity(facets.len()), are_exact: true };
        for &facet in facets {
            let without = without(filter, facet);
            let (values, is_exact) =
                if let Some(kept) = is_view(&without).then(|| day.facets(without.view)).flatten() {
                    let of = &kept[facet as usize];
                    let values = match of.get() {
                        Some(values) => values,
                        None => {
                            let values = budget::shared(|| {
                                let matches = self.matching(&without, &day, Counting::Exact)?;
                                Ok::<_, QueryError>(self.count_values(facet, &matches, &day))
                            })?;
                            of.get_or_init(|| values)
                        }
                    };
                    (values.clone(), true)
                } else if without.common == filter.common && without.view == filter.view {
                    if shared.is_none() {
                        shared = Some(self.matching(filter, &day, counting)?);
                    }
                    count(facet, shared.get_or_insert_default())
                } else {
                    count(facet, &self.matching(&without, &day, counting)?)
                };
            counted.values.push(values);
            counted.are_exact &= is_exact;
        }
        Ok(counted)
    }

    fn matching(
        &self,
        filter: &DropFilter,
        day: &DayIndex,
        counting: Counting,
    ) -> Result<Matches, QueryError> {
        let of_layer = |(layer, day): (&Layer, &LayerDay)| {
            let mut docs = vec![0; layer.drops_by_rank.len().div_ceil(64) as usize];
            let sample = match counting {
                Counting::Exact => None,
                _ => layer.sample(filter, day, |first, words| {
                    docs[first..first + words.len()].copy_from_slice(words);
                })?,
            };
            match sample {
                None => layer.matching(filter, day).map(|docs| (docs, None)),
                sample => Ok((docs, sample.filter(|sample| !sample.is_whole()))),
            }
        };
        self.layers_on(day).map(of_layer).collect()
    }

    fn count_values(&self, facet: Facet, matches: &Matches, day: &DayIndex) -> Vec<FacetValue> {
        let mut counts = Vec::new();
        for (at, (layer, day)) in self.layers_on(day).enumerate() {
            let (docs, sample) = &matches[at];
            let of_layer = layer.count_by(facet, docs, day);
            let tlds = self.tlds().of_layer(at);
            for (number, count) in of_layer.into_iter().enumerate() {
                let number = if facet == Facet::Tld { tlds[number].into() } else { number };
                if counts.len() <= number {
                    counts.resize(number + 1, 0);
                }
                counts[number] += sample.map_or(count, |sample| sample.scaled(count));
            }
        }
        self.frequent(facet, &counts)
    }

    /// Returns the most frequent values; ties are ordered by value.
    fn frequent(&self, facet: Facet, counts: &[u32]) -> Vec<FacetValue> {
        let mut by_value: Vec<(usize, u32)> = match facet {
            Facet::Dqs => {
                let tens = counts.chunks(DQS_STEP as usize).map(|ten| ten.iter().sum());
                tens.enumerate().map(|(at, count)| (at * DQS_STEP as usize, count)).collect()
            }
            Facet::DqsBand => {
                let starts = Dqs::BANDS.map(|from| usize::from(from.points()));
                let ends = starts[1..].iter().copied().chain([counts.len()]);
                let within = |from, end| counts.get(from..end).unwrap_or_default().iter().sum();
                starts.iter().zip(ends).map(|(&from, end)| (from, within(from, end))).collect()
            }
            Facet::Tld => {
                let sorted = self.tlds().sorted().iter().map(|&tld| usize::from(tld));
                sorted.map(|tld| (tld, counts[tld])).collect()
            }
            _ => counts.iter().copied().enumerate().collect(),
        };
        by_value.retain(|&(_, count)| count > 0);
        by_value.sort_by_key(|&(_, count)| Reverse(count));
        let text = |number: usize| match facet {
            Facet::Tld => self.tlds().name(number as u16).to_owned(),
            Facet::Stage => Stage::ALL[number].to_string(),
            Facet::Length | Facet::Dqs | Facet::DqsBand => number.to_string(),
            Facet::SuffixRank => SUFFIX_BANDS[number].to_string(),
            Facet::Language => LanguageCode::ALL[number].to_string(),
            Facet::Kind => Kind::ALL[number].to_string(),
            Facet::Release => {
                Day::from_raw(number as u16).map(|day| day.to_string()).unwrap_or_default()
            }
        };
        let value = |(number, count)| FacetValue { value: text(number), count };
        by_value.into_iter().take(VALUES_MAX).map(value).collect()
    }
}

impl Layer {
    /// Returns the number of matches by number of the value.
    fn count_by(&self, facet: Facet, matches: &[u64], day: &LayerDay) -> Vec<u32> {
        let drops = &self.drops_by_rank;
        let both = |docs: StageDocs<'_>| {
            let marked = (0..).zip(matches).filter(|(_, word)| **word != 0);
            marked.map(|(at, word)| (word & docs.word(at)).count_ones()).sum::<u32>()
        };
        match facet {
            Facet::Tld => count(matches, self.tlds.len(), |doc| drops.tld(doc as u32).into()),
            Facet::Stage => {
                Stage::ALL.map(|stage| both(day.stages.docs_in(View::Stage(stage)))).to_vec()
            }
            Facet::Length => drops.properties().column(Property::Length).count(matches).to_vec(),
            Facet::Dqs | Facet::DqsBand => count_scores(matches, |dqs| drops.docs_with(dqs)),
            Facet::Release => count(matches, 1 << 16, |doc| drops.release(doc as u32).into()),
            Facet::Language => drops.properties().count_languages(matches),
            Facet::Kind => drops.properties().count_kinds(matches),
            Facet::SuffixRank => self.count_bands(matches),
        }
    }

    /// Returns the number of matches within each of [`SUFFIX_BANDS`].
    fn count_bands(&self, matches: &[u64]) -> Vec<u32> {
        let bands = SUFFIX_BANDS.map(SuffixRank::best);
        let band = |doc: usize| {
            let rank = self.suffix_ranks().of(doc as u32);
            rank.map_or(bands.len(), |rank| bands.partition_point(|band| *band < rank))
        };
        let mut counts = count(matches, bands.len() + 1, band);
        counts.truncate(bands.len());
        (1..bands.len()).for_each(|at| counts[at] += counts[at - 1]);
        counts
    }
}

/// Returns the filter without the conditions on a facet.
fn without(filter: &DropFilter, facet: Facet) -> DropFilter {
    let mut filter = filter.clone();
    let (common, open) = (&mut filter.common, Filter::default());
    match facet {
        Facet::Tld => (common.tlds, common.not_tlds) = (open.tlds, open.not_tlds),
        Facet::Stage => filter.view = View::All,
        Facet::Length => (common.min_len, common.max_len) = (open.min_len, open.max_len),
        Facet::Dqs | Facet::DqsBand => {
            (common.min_dqs, common.max_dqs) = (open.min_dqs, open.max_dqs)
        }
        Facet::Release => {
            common.drop.release = ReleaseRange::default();
        }
        Facet::Language => common.reading.languages = Vec::new(),
        Facet::Kind => common.reading.kinds = Vec::new(),
        Facet::SuffixRank => common.drop.max_suffix_rank = None,
    }
    filter
}

/// Returns true if the filter has no condition except the view.
pub(super) fn is_view(filter: &DropFilter) -> bool {
    filter.contains.is_none() && filter.common == Filter::default()
}

/// Counts the matches by `number`, which returns values below `numbers`.
fn count(matches: &[u64], numbers: usize, number: impl Fn(usize) -> usize) -> Vec<u32> {
    let mut counts = vec![0; numbers];
    docs_of(0, matches, |doc| counts[number(doc as usize)] += 1);
    counts
}

/// Counts the matches by score. Docs with the same score are adjacent.
fn count_scores(matches: &[u64], docs: impl Fn(Dqs) -> Range<u32>) -> Vec<u32> {
    let before = |doc: u32| {
        let (word, rest) = (doc as usize / 64, doc % 64);
        matches.get(word).map_or(0, |word| (word & ((1 << rest) - 1)).count_ones())
    };
    let scores = (Dqs::MIN.points()..=Dqs::MAX.points()).map(|points| {
        let Range { start, end } = docs(Dqs::clamped(points.into()));
        let words = start as usize / 64..end as usize / 64;
        ones(matches.get(words).unwrap_or_default()) + before(end) - before(start)
    });
    scores.collect()
}
