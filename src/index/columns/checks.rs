//! Conditions on dropped names that have no bitmap: ranges of columns, and the text of labels. In: a
//! filter and the columns by doc. Out: which docs of a window, or whether one name, passes.
//!
//! A window is combined word by word. Words without a candidate are skipped, and a column is compared
//! 64 docs at a time without branches, so that the compiler vectorises it. Texts come last.

use std::ops::RangeInclusive;

use crate::index::columns::first_batches::FirstBatches;
use crate::index::columns::label::{MarkTest, TextTest, TextTrail};
use crate::index::columns::rank_key::{dqs_of, length_of};
use crate::index::columns::records::ScoreRecords;
use crate::index::columns::tlds::Tlds;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::filter::{DayRange, Filter};
use crate::vocab::limits::LABEL_CHARS_MAX;

/// Multiplier that gathers bytes of 0 or 1 into the bits of the top byte.
const GATHER: u64 = 0x0102_0408_1020_4080;
/// Words between two looks at the time budget while texts are read.
const WORDS_PER_LOOK: usize = 64;

/// Columns of dropped names, by doc.
#[derive(Clone, Copy)]
pub struct DropColumns<'a> {
    /// TLD numbers.
    pub tlds: &'a [u16],
    /// Rank keys.
    pub keys: &'a [u16],
    /// Latest drop dates, [`Day::raw`].
    pub drop_dates: &'a [u16],
    /// Effective releases.
    pub releases: &'a [u16],
    /// Number of TLDs with the label.
    pub spreads: &'a [u16],
    /// Number of drops; 255 means 255 or more.
    pub drops: &'a [u8],
    /// Marks of the label, see [`crate::index::columns::label::marks_of`].
    pub marks: &'a [u8],
    pub first_batches: &'a FirstBatches,
    pub records: &'a ScoreRecords,
}

/// Conditions on what every name has: score, length, TLD, label and number of TLDs.
#[derive(Debug)]
pub struct NameChecks {
    dqs: RangeInclusive<Dqs>,
    length: RangeInclusive<u8>,
    /// By TLD number; `None` accepts all.
    tlds: Option<Vec<bool>>,
    marks: MarkTest,
    text: Option<TextTest>,
    /// Number of TLDs with the label; `None` accepts any.
    spread: Option<RangeInclusive<u16>>,
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
        }
    }

    /// Returns true if score and length pass.
    #[inline]
    pub fn key_passes(&self, key: u16) -> bool {
        self.dqs.contains(&dqs_of(key)) & self.length.contains(&length_of(key))
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

    /// [`NameChecks::label_passes`] for labels in order.
    pub fn label_passes_after(&self, trail: &mut TextTrail, label: &str) -> bool {
        (self.marks.is_open() || self.marks.passes(super::label::marks_of(label)))
            && self.text.as_ref().is_none_or(|text| text.passes_after(trail, label))
    }

    /// Returns true if a label in so many TLDs passes; `spread` counts them.
    pub fn spread_passes(&self, spread: impl FnOnce() -> usize) -> bool {
        let Some(wanted) = &self.spread else { return true };
        wanted.contains(&u16::try_from(spread()).unwrap_or(u16::MAX))
    }
}

/// Conditions on dropped names.
pub struct DropChecks<'a> {
    columns: DropColumns<'a>,
    name: NameChecks,
    dropped: Option<RangeInclusive<u16>>,
    release: Option<RangeInclusive<u16>>,
    min_drops: u8,
    /// By batch number minus one; `None` accepts all.
    lists: Option<Vec<bool>>,
    /// Some TLDs are excluded.
    not_tlds: bool,
    /// Some lengths are excluded.
    lengths: bool,
}

impl<'a> DropChecks<'a> {
    /// Resolves a filter for a day.
    pub fn new(
        columns: DropColumns<'a>,
        filter: &Filter,
        tlds: &Tlds,
        today: Day,
    ) -> DropChecks<'a> {
        let listed_since = filter.drop.listed_since;
        DropChecks {
            columns,
            name: NameChecks::new(filter, tlds),
            dropped: raw_range(filter.drop.dropped),
            release: raw_range(filter.drop.releases(today)),
            min_drops: filter.drop.min_drops,
            lists: listed_since.map(|since| columns.first_batches.observed_since(since)),
            not_tlds: !filter.not_tlds.is_empty(),
            lengths: filter.min_len > 1 || filter.max_len < LABEL_CHARS_MAX,
        }
    }

    /// Clears the bits of the docs from `64 * first` on that fail. Scores and TLDs that must match are
    /// left to the caller: they have a range and bitmaps.
    pub fn keep(&self, first: usize, words: &mut [u64]) {
        let DropColumns { tlds, keys, drop_dates, releases, spreads, drops, marks, .. } =
            self.columns;
        if self.lengths {
            let lengths = &self.name.length;
            keep_where(keys, first, words, |key| lengths.contains(&length_of(key)));
        }
        if let Some(range) = &self.release {
            keep_where(releases, first, words, |release| range.contains(&release));
        }
        if let Some(range) = &self.dropped {
            keep_where(drop_dates, first, words, |date| range.contains(&date));
        }
        if let Some(range) = &self.name.spread {
            keep_where(spreads, first, words, |spread| range.contains(&spread));
        }
        if self.min_drops > 1 {
            keep_where(drops, first, words, |drops| drops >= self.min_drops);
        }
        if !self.name.marks.is_open() {
            keep_where(marks, first, words, |marks| self.name.marks.passes(marks));
        }
        if let Some(of) = self.name.tlds.as_ref().filter(|_| self.not_tlds) {
            keep_where(tlds, first, words, |tld| of[usize::from(tld)]);
        }
        if let Some(lists) = &self.lists {
            let first_batches = self.columns.first_batches;
            keep_docs(first, words, |doc| lists[first_batches.number(doc) as usize - 1]);
        }
        if let Some(text) = &self.name.text {
            for (at, words) in words.chunks_mut(WORDS_PER_LOOK).enumerate() {
                if budget::spent() {
                    return;
                }
                let label = |doc| self.columns.records.get(doc).label;
                keep_docs(first + at * WORDS_PER_LOOK, words, |doc| text.passes(label(doc)));
            }
        }
    }

    /// Returns true if [`DropChecks::keep`] has anything to compare.
    pub fn has_any(&self) -> bool {
        self.lengths
            || self.release.is_some()
            || self.dropped.is_some()
            || self.name.spread.is_some()
            || self.min_drops > 1
            || !self.name.marks.is_open()
            || self.not_tlds
            || self.lists.is_some()
            || self.name.text.is_some()
    }

    /// Returns true if a doc passes all conditions.
    pub fn passes(&self, doc: u32) -> bool {
        let at = doc as usize;
        if !self.name.key_passes(self.columns.keys[at]) {
            return false;
        }
        let in_range = |range: &Option<RangeInclusive<u16>>, value: u16| {
            range.as_ref().is_none_or(|range| range.contains(&value))
        };
        let of_list =
            |lists: &Vec<bool>| lists[self.columns.first_batches.number(doc) as usize - 1];
        self.name.tld_passes(self.columns.tlds[at])
            && in_range(&self.release, self.columns.releases[at])
            && in_range(&self.dropped, self.columns.drop_dates[at])
            && in_range(&self.name.spread, self.columns.spreads[at])
            && self.columns.drops[at] >= self.min_drops
            && self.name.marks.passes(self.columns.marks[at])
            && self.lists.as_ref().is_none_or(of_list)
            && (self.name.text.as_ref())
                .is_none_or(|text| text.passes(self.columns.records.get(doc).label))
    }
}

/// Returns the range of [`Day::raw`]; `None` if it is open.
fn raw_range(range: DayRange) -> Option<RangeInclusive<u16>> {
    let raw = |day: Option<Day>, open: Day| day.unwrap_or(open).raw();
    (!range.is_open()).then(|| raw(range.from, Day::MIN)..=raw(range.to, Day::MAX))
}

/// Clears the bits of the docs whose value fails.
#[inline]
fn keep_where<T: Copy>(column: &[T], first: usize, words: &mut [u64], passes: impl Fn(T) -> bool) {
    for (at, word) in (first..).zip(words).filter(|(_, word)| **word != 0) {
        let values = &column[at * 64..column.len().min(at * 64 + 64)];
        let mut flags = [0u8; 64];
        if let Some(values) = values.first_chunk::<64>() {
            flags = values.map(|value| u8::from(passes(value)));
        } else {
            flags.iter_mut().zip(values).for_each(|(flag, &value)| *flag = passes(value).into());
        }
        *word &= bits_of(&flags);
    }
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

/// Returns the bits of 64 bytes of 0 or 1.
#[inline]
fn bits_of(flags: &[u8; 64]) -> u64 {
    let (eights, _) = flags.as_chunks::<8>();
    let bits = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
    (0..).zip(eights).fold(0, |word, (at, eight)| word | bits(eight) << (8 * at))
}
