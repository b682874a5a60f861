//! Conditions on dropped names that have no bitmap: ranges of columns, and the text of labels.
//! Input: a filter and the columns by doc. Output: the docs of a window that pass, or whether a
//! single name passes.
//!
//! A window is combined word by word: properties and days are bitmaps ([`crate::columns::slices`]).
//! List numbers are compared for 64 docs at a time without branches, so that the compiler
//! vectorises the loop. Texts come last.

use std::ops::RangeInclusive;

use crate::columns::day_column::{DayColumn, DayTest};
use crate::columns::drop_fields::DropFields;
use crate::columns::expected_taken::ExpectedColumn;
use crate::columns::facts::{FactCheck, FactTables};
use crate::columns::first_batches::FirstBatches;
use crate::columns::label::{MarkTest, TextTest, TextTrail};
use crate::columns::names::text_of;
use crate::columns::popularity::Popularity;
use crate::columns::properties::{Properties, PropertyTests, TraitTest};
use crate::columns::rank_key::{dqs_of, is_adult, length_of};
use crate::columns::records::ScoreRecords;
use crate::columns::release_seconds::ReleaseSeconds;
use crate::columns::suffix_ranks::SuffixRanks;
use crate::columns::tlds::Tlds;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::popularity::ListRank;
use crate::vocab::release_time::SecondOfDay;
use crate::vocab::suffix_rank::SuffixRank;
use dropdex_query::filter::{Adult, DayRange, DropConditions, Filter, ReadingFilter, ReleaseRange};

/// Words between two checks of the time budget while texts are read.
const WORDS_PER_LOOK: usize = 64;

/// Columns of dropped names of a layer that [`DropsByRank`](super::drops_by_rank::DropsByRank) does not hold.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    pub tlds: &'a Tlds,
    pub records: &'a ScoreRecords,
    pub suffix_ranks: &'a SuffixRanks,
    pub expected: &'a ExpectedColumn,
    pub facts: &'a FactTables,
}

/// Columns of dropped names, by doc.
#[derive(Clone, Copy)]
pub struct DropColumns<'a> {
    pub fields: &'a DropFields,
    pub drop_days: &'a DayColumn,
    pub release_days: &'a DayColumn,
    pub release_seconds: &'a ReleaseSeconds,
    pub properties: &'a Properties,
    pub first_batches: &'a FirstBatches,
    pub popularity: &'a Popularity,
    pub beside: Beside<'a>,
}

/// Conditions on properties of every name: score, length, TLD, label and number of TLDs.
#[derive(Debug)]
pub struct NameChecks {
    dqs: RangeInclusive<Dqs>,
    length: RangeInclusive<u8>,
    /// Accepted TLDs by number; `None` accepts all.
    tlds: Option<Vec<bool>>,
    marks: MarkTest,
    text: Option<TextTest>,
    /// Number of TLDs with the label; `None` accepts any.
    spread: Option<RangeInclusive<u16>>,
    /// Words, kind and language of the label according to the scorer; `None` accepts any.
    traits: Option<TraitTest>,
    adult: Adult,
}

impl NameChecks {
    /// Resolves the conditions of a filter.
    pub fn new(filter: &Filter, tlds: &Tlds) -> NameChecks {
        let mut accepted = None;
        if !(filter.tlds.is_empty() && filter.not_tlds.is_empty()) {
            let mut of = vec![filter.tlds.is_empty(); tlds.len()];
            let numbers = |names| tlds.numbers(names).into_iter().flatten();
            numbers(&filter.tlds).for_each(|tld| of[usize::from(tld)] = true);
            numbers(&filter.not_tlds).for_each(|tld| of[usize::from(tld)] = false);
            accepted = Some(of);
        }
        let others = (filter.min_tlds, filter.max_tlds);
        NameChecks {
            dqs: filter.min_dqs..=filter.max_dqs,
            length: filter.min_len..=filter.max_len,
            tlds: accepted,
            marks: MarkTest::new(&filter.label),
            text: TextTest::new(&filter.label),
            spread: (others != (0, u16::MAX))
                .then(|| others.0.saturating_add(1)..=others.1.saturating_add(1)),
            traits: (filter.reading != ReadingFilter::default())
                .then(|| TraitTest::new(&filter.reading)),
            adult: filter.adult,
        }
    }

    /// Prepares the checks for many labels in order; see [`TextTest::expect_order`].
    pub fn expect_order(&mut self, filter: &Filter) {
        if let Some(text) = &mut self.text {
            text.expect_order(&filter.label);
        }
    }

    /// Returns true if score and length pass, and an adult name may.
    #[inline]
    pub fn key_passes(&self, key: u16) -> bool {
        self.dqs.contains(&dqs_of(key))
            & self.length.contains(&length_of(key))
            & ((self.adult == Adult::Include) | !is_adult(key))
    }

    /// Returns true if names of the TLD pass.
    #[inline]
    pub fn tld_passes(&self, tld: u16) -> bool {
        self.tlds.as_ref().is_none_or(|tlds| tlds[usize::from(tld)])
    }

    /// Returns true if a label (in A-label form) passes.
    pub fn label_passes(&self, label: &str) -> bool {
        (self.marks.is_open() || self.marks.passes(super::label::marks_of(label)))
            && self.text.as_ref().is_none_or(|text| text.passes(label))
    }

    /// As [`NameChecks::label_passes`], for labels in order.
    pub fn label_passes_after(&self, trail: &mut TextTrail, label: &[u8]) -> bool {
        (self.marks.is_open() || self.marks.passes(super::label::marks_of(text_of(label))))
            && self.text.as_ref().is_none_or(|text| text.passes_after(trail, label))
    }

    /// Returns true if a label with this number of TLDs passes; `spread` counts the TLDs.
    pub fn spread_passes(&self, spread: impl FnOnce() -> usize) -> bool {
        let Some(wanted) = &self.spread else { return true };
        wanted.contains(&u16::try_from(spread()).unwrap_or(u16::MAX))
    }

    /// Returns the condition on the traits of the label.
    pub fn traits(&self) -> Option<&TraitTest> {
        self.traits.as_ref()
    }
}

/// A condition on releases.
struct ReleaseTest {
    days: DayTest,
    /// The days of the range that begin or end at an instant.
    cut: Vec<CutDay>,
}

/// A day of which some releases pass.
struct CutDay {
    day: u16,
    seconds: RangeInclusive<SecondOfDay>,
    /// Whether names of a TLD pass, by number; `None` if the registry states an instant for each name.
    by_tld: Vec<Option<bool>>,
}

impl ReleaseTest {
    fn new(columns: DropColumns<'_>, range: ReleaseRange) -> Option<ReleaseTest> {
        let days = raw_range(range.days())?;
        let mut ends = vec![range.days().from, range.days().to];
        ends.dedup();
        let cut: Vec<CutDay> = ends
            .into_iter()
            .flatten()
            .filter_map(|day| Some(CutDay::new(day, range.seconds_on(day)?, columns.beside.tlds)))
            .collect();
        let cut_days: Vec<u16> = cut.iter().map(|cut| cut.day).collect();
        Some(ReleaseTest { days: columns.release_days.test(days, &cut_days), cut })
    }

    fn passes(&self, columns: DropColumns<'_>, doc: u32) -> bool {
        let day = columns.fields.release_day(doc);
        self.days.passes(day)
            && self.cut.iter().all(|cut| cut.day != day || cut.passes(columns, doc))
    }
}

impl CutDay {
    fn new(day: Day, seconds: RangeInclusive<SecondOfDay>, tlds: &Tlds) -> CutDay {
        let by_rule = |tld: u16| {
            let rule = tlds.release_rule(tld);
            let passes = |second| seconds.contains(&second);
            (!rule.states_instants()).then(|| rule.second_on(day.into()).is_none_or(passes))
        };
        let by_tld = (0..=u16::MAX).take(tlds.len()).map(by_rule).collect();
        CutDay { day: day.raw(), seconds, by_tld }
    }

    fn passes(&self, columns: DropColumns<'_>, doc: u32) -> bool {
        let stated = || columns.release_seconds.of(doc);
        self.by_tld[usize::from(columns.fields.tld(doc))]
            .unwrap_or_else(|| stated().is_none_or(|second| self.seconds.contains(&second)))
    }
}

/// Conditions on dropped names.
pub struct DropChecks<'a> {
    columns: DropColumns<'a>,
    name: NameChecks,
    properties: PropertyTests,
    dropped: Option<DayTest>,
    release: Option<ReleaseTest>,
    /// Accepted batches by number minus one; `None` accepts all.
    lists: Option<Vec<bool>>,
    max_rank: Option<ListRank>,
    max_suffix_rank: Option<SuffixRank>,
    expected_taken: Option<ExpectedTaken>,
    facts: Vec<FactCheck>,
}

impl<'a> DropChecks<'a> {
    /// Resolves a filter.
    pub fn new(columns: DropColumns<'a>, filter: &Filter) -> DropChecks<'a> {
        let DropConditions { listed_since, after_batch, through_batch, .. } = filter.drop;
        let batches = (after_batch, through_batch);
        let is_open = listed_since.is_none() && batches == (None, None);
        DropChecks {
            columns,
            name: NameChecks::new(filter, columns.beside.tlds),
            properties: PropertyTests::new(filter, columns.properties),
            dropped: raw_range(filter.drop.dropped).map(|days| columns.drop_days.test(days, &[])),
            release: ReleaseTest::new(columns, filter.drop.release),
            lists: (!is_open).then(|| columns.first_batches.accepted(listed_since, batches)),
            max_rank: filter.drop.max_rank,
            max_suffix_rank: filter.drop.max_suffix_rank,
            expected_taken: filter.drop.expected_taken,
            facts: filter
                .drop
                .facts
                .iter()
                .map(|fact| {
                    let resolved = fact.resolved.as_ref().map(|(id, codes)| (*id, codes));
                    FactCheck::new(columns.beside.facts, resolved)
                })
                .collect(),
        }
    }

    /// Clears the bits of the docs that fail, starting at doc `64 * first`. The caller checks scores
    /// and TLDs, for which there are a range of docs and bitmaps.
    pub fn keep(&self, first: usize, words: &mut [u64]) {
        let DropColumns { fields, drop_days, release_days, properties, .. } = self.columns;
        let DropColumns { first_batches, popularity, beside, .. } = self.columns;
        if let Some(most) = self.max_rank {
            popularity.keep(most, first, words);
        }
        if let Some(most) = self.max_suffix_rank {
            beside.suffix_ranks.keep(most, first, words);
        }
        if let Some(least) = self.expected_taken {
            beside.expected.keep(least, first, words);
        }
        for fact in &self.facts {
            fact.keep(first, words);
        }
        self.properties.keep(properties, first, words);
        if let Some(test) = &self.release {
            release_days.keep(&test.days, first, words, |doc| test.passes(self.columns, doc));
        }
        if let Some(test) = &self.dropped {
            drop_days.keep(test, first, words, |doc| test.passes(fields.drop_day(doc)));
        }
        if let Some(lists) = &self.lists {
            first_batches.keep(lists, first, words);
        }
        if let Some(text) = &self.name.text {
            for (at, words) in words.chunks_mut(WORDS_PER_LOOK).enumerate() {
                if budget::spent() {
                    return;
                }
                let passes = |doc| text.passes(&beside.records.label(doc));
                keep_docs(first + at * WORDS_PER_LOOK, words, passes);
            }
        }
    }

    /// Returns true if a doc passes the conditions that [`DropChecks::keep`] leaves to the caller.
    pub fn score_and_tld_pass(&self, doc: u32) -> bool {
        let fields = self.columns.fields;
        self.name.key_passes(fields.key(doc)) && self.name.tld_passes(fields.tld(doc))
    }

    /// Returns true if [`DropChecks::keep`] has conditions to check.
    pub fn has_any(&self) -> bool {
        let DropChecks { columns: _, name, properties, dropped, release, .. } = self;
        let DropChecks { lists, max_rank, max_suffix_rank, expected_taken, facts, .. } = self;
        !properties.is_open()
            || release.is_some()
            || dropped.is_some()
            || lists.is_some()
            || max_rank.is_some()
            || max_suffix_rank.is_some()
            || expected_taken.is_some()
            || !facts.is_empty()
            || name.text.is_some()
    }

    /// Returns true if a doc passes all conditions.
    pub fn passes(&self, doc: u32) -> bool {
        let DropColumns { fields, properties, first_batches, popularity, beside, .. } =
            self.columns;
        let of_list = |lists: &Vec<bool>| lists[first_batches.number(doc) as usize - 1];
        self.name.key_passes(fields.key(doc))
            && self.name.tld_passes(fields.tld(doc))
            && self.release.as_ref().is_none_or(|test| test.passes(self.columns, doc))
            && self.dropped.as_ref().is_none_or(|test| test.passes(fields.drop_day(doc)))
            && self.properties.passes(properties, doc)
            && self.lists.as_ref().is_none_or(of_list)
            && self.max_rank.is_none_or(|most| popularity.best(doc).is_some_and(|it| it <= most))
            && self
                .max_suffix_rank
                .is_none_or(|most| beside.suffix_ranks.of(doc).is_some_and(|rank| rank <= most))
            && self
                .expected_taken
                .is_none_or(|least| beside.expected.of(doc).is_some_and(|it| it >= least))
            && self.facts.iter().all(|fact| fact.passes(doc))
            && self.name.text.as_ref().is_none_or(|text| text.passes(&beside.records.label(doc)))
    }
}

/// Returns the range of [`Day::raw`]; `None` if it is open.
pub fn raw_range(range: DayRange) -> Option<RangeInclusive<u16>> {
    let raw = |day: Option<Day>, open: Day| day.unwrap_or(open).raw();
    (!range.is_open()).then(|| raw(range.from, Day::MIN)..=raw(range.to, Day::MAX))
}

/// Clears the bits of the docs that fail.
fn keep_docs(first: usize, words: &mut [u64], passes: impl Fn(u32) -> bool) {
    for (at, word) in (first..).zip(words) {
        let mut left = *word;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            if !passes((at * 64) as u32 + bit) {
                *word &= !(1 << bit);
            }
        }
    }
}
