//! Columns of small numbers of dropped names, with one bitmap of docs per bit. A condition is a set
//! of values. The condition is compiled to a few word operations, so that 64 docs are compared at
//! once; values are counted without visiting single docs.
//!
//! Numbers that exceed the largest value are also kept in a list.

use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;

use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

/// Maximum bits of a column, so that a [`ValueSet`] holds its values.
const BITS_MAX: usize = 6;
/// Number of words that are combined at once, in a few vector registers.
const LANE: usize = 16;
/// Maximum steps of a test: a binary decision diagram of six variables has fewer.
const STEPS_MAX: usize = 32;
/// Maximum number of matches in a window for which values are read doc by doc.
const FEW: u32 = 8;
/// Number of words of a window in which values are counted, and of a block whose set of values is
/// known.
const WINDOW: usize = 64;
/// Blocks of a group, which a walk of the docs of a value reads as a whole.
const GROUP: usize = 16;

/// A set of values from 0 to 63, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSet(u64);

impl ValueSet {
    pub const ALL: ValueSet = ValueSet(u64::MAX);

    /// Returns the values that pass.
    pub fn of(passes: impl Fn(u8) -> bool) -> ValueSet {
        ValueSet((0..64).filter(|&value| passes(value)).fold(0, |set, value| set | 1 << value))
    }

    /// Returns true if the set has `value`.
    #[inline]
    pub fn has(self, value: u8) -> bool {
        self.0 >> value & 1 == 1
    }
}

/// The numbers of dropped names, by doc.
#[derive(Debug)]
pub struct Slices {
    bits: usize,
    words: usize,
    /// The bitmap of bit 0, then of bit 1, and so on.
    planes: Vec<u64>,
    /// Docs whose number is the largest value or more, ascending; `large` has their numbers.
    large_docs: Vec<u32>,
    large: Vec<u16>,
    /// Values of the docs of each block.
    blocks: Vec<ValueSet>,
    spreads: [Spread; 1 << BITS_MAX],
}

/// How the docs of a value are spread over a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    pub docs: u32,
    /// Words of the groups of blocks that have such docs.
    pub words: usize,
}

/// Names of the files of a column. Only columns with large numbers have the second file.
#[derive(Clone, Copy, Debug)]
pub struct SliceFiles {
    pub bits: usize,
    pub planes: &'static str,
    pub large: Option<(&'static str, &'static str)>,
}

impl Slices {
    /// Largest value of any column.
    pub const VALUE_MAX: u8 = (1 << BITS_MAX) - 1;

    /// Builds the column from the numbers by doc.
    fn new(bits: usize, values: &[u16]) -> Slices {
        let top = (1u16 << bits) - 1;
        let words = values.len().div_ceil(64);
        let mut planes = vec![0; bits * words];
        for (word, values) in values.chunks(64).enumerate() {
            for (place, &value) in values.iter().enumerate() {
                let value = value.min(top);
                (0..bits).for_each(|bit| {
                    planes[bit * words + word] |= u64::from(value >> bit & 1) << place;
                });
            }
        }
        let large = (0u32..).zip(values).filter(|&(_, &value)| value >= top);
        let (large_docs, large) = large.map(|(doc, &value)| (doc, value)).unzip();
        let spreads = [Spread::default(); 1 << BITS_MAX];
        Slices { bits, words, planes, large_docs, large, blocks: Vec::new(), spreads }
    }

    /// Writes the files of a column.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(files: SliceFiles, values: &[u16], draft: &Draft) -> Result<(), BuildError> {
        let slices = Slices::new(files.bits, values);
        draft.put(files.planes, &slices.planes)?;
        let Some((docs, numbers)) = files.large else { return Ok(()) };
        draft.put(docs, &slices.large_docs)?;
        draft.put(numbers, &slices.large)
    }

    /// Opens the files that [`Slices::write`] wrote for `docs` names.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(from: &Files, files: SliceFiles, docs: u32) -> Result<Slices, GenerationError> {
        let words = docs.div_ceil(64) as usize;
        let planes: Vec<u64> = from.take(files.planes)?;
        from.check(planes.len() == files.bits * words, files.planes)?;
        let mut read = Slices {
            bits: files.bits,
            words,
            planes,
            large_docs: Vec::new(),
            large: Vec::new(),
            blocks: Vec::new(),
            spreads: [Spread::default(); 1 << BITS_MAX],
        };
        if let Some((large_docs, large)) = files.large {
            (read.large_docs, read.large) = (from.take(large_docs)?, from.take(large)?);
            let fits = read.large_docs.len() == read.large.len()
                && read.large_docs.is_sorted_by(|one, next| one < next)
                && read.large_docs.last().is_none_or(|&doc| doc < docs)
                && read.large.iter().all(|&number| number >= read.top());
            from.check(fits, large_docs)?;
        }
        Ok(read.with_blocks())
    }

    /// Computes the values of each block, and how each value is spread.
    fn with_blocks(mut self) -> Slices {
        let groups = (0..self.words).step_by(GROUP * WINDOW);
        let groups: Vec<_> =
            groups.map(|start| start..self.words.min(start + GROUP * WINDOW)).collect();
        let counted: Vec<_> =
            groups.par_iter().map(|words| self.count_blocks(words.clone())).collect();
        for (words, (blocks, counts)) in groups.into_iter().zip(counted) {
            self.blocks.extend(blocks);
            for (spread, docs) in self.spreads.iter_mut().zip(counts).filter(|(_, docs)| *docs > 0)
            {
                spread.docs += docs;
                spread.words += words.len();
            }
        }
        self
    }

    /// Returns the values of the blocks of a group, and the number of its docs by value. Places after
    /// the last doc count as docs with value 0.
    fn count_blocks(&self, words: Range<usize>) -> (Vec<ValueSet>, [u32; 1 << BITS_MAX]) {
        let all = [u64::MAX; WINDOW];
        let mut counts = [0; 1 << BITS_MAX];
        let blocks = words.clone().step_by(WINDOW).map(|first| {
            let mut of_block = [0; 1 << BITS_MAX];
            let block = &all[..WINDOW.min(words.end - first)];
            self.count_below(self.bits, first, block, 0, &mut of_block);
            counts.iter_mut().zip(of_block).for_each(|(count, more)| *count += more);
            ValueSet::of(|value| of_block[usize::from(value)] > 0)
        });
        (blocks.collect(), counts)
    }

    fn top(&self) -> u16 {
        (1 << self.bits) - 1
    }

    fn plane(&self, bit: usize) -> &[u64] {
        &self.planes[bit * self.words..(bit + 1) * self.words]
    }

    /// Returns the docs with value 1 of a column of one bit, as a bitmap.
    pub fn flags(&self) -> &[u64] {
        self.plane(0)
    }

    /// Returns the value of a doc: its number, or the largest value.
    #[inline]
    pub fn value(&self, doc: u32) -> u8 {
        let (word, place) = (doc as usize / 64, doc % 64);
        (0..self.bits).fold(0, |value, bit| {
            value | ((self.planes[bit * self.words + word] >> place & 1) as u8) << bit
        })
    }

    /// Returns the number of a doc.
    pub fn number(&self, doc: u32) -> u16 {
        let value = u16::from(self.value(doc));
        match self.large_docs.binary_search(&doc) {
            Ok(at) if value == self.top() => self.large[at],
            _ => value,
        }
    }

    /// Returns the value of a number.
    pub fn value_of(&self, number: u16) -> u8 {
        number.min(self.top()) as u8
    }

    /// Returns the numbers that a value stands for and that occur in docs.
    pub fn numbers_of(&self, value: u8) -> RangeInclusive<u16> {
        let number = u16::from(value);
        let is_top = number == self.top() && !self.large.is_empty();
        number..=if is_top { u16::MAX } else { number }
    }

    /// Returns the first word, starting at `word`, whose block has docs with this value.
    pub fn next_with(&self, value: u8, word: usize) -> Option<usize> {
        let block = word / WINDOW;
        let further = self.blocks.get(block..)?.iter().position(|set| set.has(value))?;
        Some(word.max((block + further) * WINDOW))
    }

    /// Returns how the docs of a value are spread.
    pub fn spread(&self, value: u8) -> Spread {
        self.spreads.get(usize::from(value)).copied().unwrap_or_default()
    }

    /// Compiles a condition.
    pub fn test(&self, set: ValueSet) -> SliceTest {
        let mut test = SliceTest { steps: Vec::new(), result: NONE, set };
        test.result = test.node(self.bits, set.0);
        test
    }

    /// Compiles a range of numbers.
    pub fn range_test(&self, range: RangeInclusive<u16>) -> RangeTest {
        let top = self.top();
        let test = self.test(ValueSet::of(|value| match u16::from(value) {
            value if value == top => *range.end() >= top,
            value => range.contains(&value),
        }));
        RangeTest { test, range }
    }

    /// As [`Slices::keep`], for a range of numbers.
    pub fn keep_range(&self, test: &RangeTest, first: usize, words: &mut [u64]) {
        self.keep(&test.test, first, words);
        let (start, end) = ((first * 64) as u32, ((first + words.len()) * 64) as u32);
        let from = self.large_docs.partition_point(|&doc| doc < start);
        let large = self.large_docs[from..].iter().zip(&self.large[from..]);
        for (&doc, number) in large.take_while(|&(&doc, _)| doc < end) {
            if !test.range.contains(number) {
                words[(doc - start) as usize / 64] &= !(1 << (doc % 64));
            }
        }
    }

    /// Clears the bits of the docs whose value fails, starting at doc `64 * first`.
    pub fn keep(&self, test: &SliceTest, first: usize, words: &mut [u64]) {
        let mut slots = [[0; LANE]; STEPS_MAX + 2];
        slots[usize::from(ALL)] = [u64::MAX; LANE];
        for (at, words) in (first..).step_by(LANE).zip(words.chunks_mut(LANE)) {
            if words.iter().all(|&word| word == 0) {
                continue;
            }
            for (step, out) in test.steps.iter().zip(2..) {
                let plane = self.plane(usize::from(step.bit));
                let mut padded = [0; LANE];
                let plane = match plane.get(at..).and_then(|plane| plane.first_chunk::<LANE>()) {
                    Some(plane) => plane,
                    None => {
                        let rest = plane.get(at..).unwrap_or_default();
                        padded[..rest.len()].copy_from_slice(rest);
                        &padded
                    }
                };
                let (done, rest) = slots.split_at_mut(out);
                let (high, low) = (&done[usize::from(step.high)], &done[usize::from(step.low)]);
                let made = &mut rest[0];
                match (step.high, step.low) {
                    (_, NONE) => (0..LANE).for_each(|at| made[at] = plane[at] & high[at]),
                    (NONE, _) => (0..LANE).for_each(|at| made[at] = !plane[at] & low[at]),
                    (ALL, _) => (0..LANE).for_each(|at| made[at] = plane[at] | low[at]),
                    (_, ALL) => (0..LANE).for_each(|at| made[at] = !plane[at] | high[at]),
                    _ => (0..LANE).for_each(|at| {
                        made[at] = plane[at] & high[at] | !plane[at] & low[at];
                    }),
                }
            }
            let passing = &slots[usize::from(test.result)];
            words.iter_mut().zip(passing).for_each(|(word, passing)| *word &= passing);
        }
    }

    /// Returns the number of matches by value.
    pub fn count(&self, matches: &[u64]) -> [u32; 1 << BITS_MAX] {
        let mut counts = [0; 1 << BITS_MAX];
        for (first, words) in (0..).step_by(WINDOW).zip(matches.chunks(WINDOW)) {
            self.count_below(self.bits, first, words, 0, &mut counts);
        }
        counts
    }

    /// Counts the matches by value. All matches have the same high bits as `value`.
    fn count_below(
        &self,
        bits: usize,
        first: usize,
        words: &[u64],
        value: usize,
        counts: &mut [u32],
    ) {
        let count = ones(words);
        if bits == 0 {
            counts[value] += count;
        } else if count <= FEW {
            docs_of(first, words, |doc| counts[usize::from(self.value(doc))] += 1);
        } else {
            let bit = bits - 1;
            let [low, high] = self.halves(bit, first, words);
            self.count_below(bit, first, &low[..words.len()], value, counts);
            self.count_below(bit, first, &high[..words.len()], value | 1 << bit, counts);
        }
    }

    /// Splits the docs of a window into those without a bit and those with it.
    fn halves(&self, bit: usize, first: usize, words: &[u64]) -> [[u64; WINDOW]; 2] {
        let (mut low, mut high) = ([0; WINDOW], [0; WINDOW]);
        for (at, (&word, &plane)) in words.iter().zip(&self.plane(bit)[first..]).enumerate() {
            (low[at], high[at]) = (word & !plane, word & plane);
        }
        [low, high]
    }

    /// Clears the bits of the docs that cannot be among the `wanted` best. All docs with the value
    /// of the last of these are kept. Returns the value of the last; `None` if no bit is cleared.
    pub fn keep_best(&self, descending: bool, wanted: u32, matches: &mut [u64]) -> Option<u8> {
        let mut left = wanted;
        let mut value = 0;
        let mut better = vec![0u64; matches.len()];
        let mut part = vec![0u64; matches.len()];
        if ones(matches) <= wanted {
            return None;
        }
        for bit in (0..self.bits).rev() {
            let flip = if descending { 0 } else { u64::MAX };
            let mut count = 0;
            for ((part, word), plane) in part.iter_mut().zip(&*matches).zip(self.plane(bit)) {
                *part = word & (plane ^ flip);
                count += part.count_ones();
            }
            if count >= left {
                matches.copy_from_slice(&part);
                value |= u8::from(descending) << bit;
            } else {
                left -= count;
                for ((better, part), word) in better.iter_mut().zip(&part).zip(&mut *matches) {
                    *better |= part;
                    *word &= !part;
                }
                value |= u8::from(!descending) << bit;
            }
        }
        matches.iter_mut().zip(&better).for_each(|(word, better)| *word |= better);
        Some(value)
    }
}

/// The nodes of a test at which no value passes, and at which all values pass. All other nodes are
/// steps.
const NONE: u8 = 0;
const ALL: u8 = 1;

/// A compiled condition on the value of a doc.
#[derive(Clone, Debug)]
pub struct SliceTest {
    /// Each step refers only to earlier ones.
    steps: Vec<Step>,
    result: u8,
    set: ValueSet,
}

/// A compiled condition on the number of a doc.
#[derive(Clone, Debug)]
pub struct RangeTest {
    /// Condition on values; the largest value passes if any number that it stands for may pass.
    test: SliceTest,
    range: RangeInclusive<u16>,
}

impl RangeTest {
    /// Returns true if a number passes.
    #[inline]
    pub fn passes(&self, number: u16) -> bool {
        self.range.contains(&number)
    }
}

/// A step that continues at node `high` for values that have the bit, and at `low` for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    bit: u8,
    high: u8,
    low: u8,
}

impl SliceTest {
    /// Returns the node for a set of values of `bits` bits.
    fn node(&mut self, bits: usize, set: u64) -> u8 {
        let all = u64::MAX >> (64 - (1 << bits));
        let set = set & all;
        if set == 0 || set == all {
            return if set == 0 { NONE } else { ALL };
        }
        let half = 1 << (bits - 1);
        let low = self.node(bits - 1, set);
        let high = self.node(bits - 1, set >> half);
        if low == high {
            return low;
        }
        let step = Step { bit: bits as u8 - 1, high, low };
        let known = self.steps.iter().position(|known| *known == step);
        let at = known.unwrap_or_else(|| {
            self.steps.push(step);
            self.steps.len() - 1
        });
        at as u8 + 2
    }

    /// Returns true if a value passes.
    #[inline]
    pub fn passes(&self, value: u8) -> bool {
        self.set.has(value)
    }
}

/// Returns the number of set bits.
pub fn ones(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

/// Returns true if the bit of a doc is set.
#[inline]
pub fn has_doc(words: &[u64], doc: u32) -> bool {
    words[doc as usize / 64] >> (doc % 64) & 1 == 1
}

/// Sets the bit of a doc.
#[inline]
pub fn set_doc(words: &mut [u64], doc: u32) {
    words[doc as usize / 64] |= 1 << (doc % 64);
}

/// Visits the docs whose bits are set in `words`, which starts at doc `64 * first`.
#[inline]
pub fn docs_of(first: usize, words: &[u64], mut visit: impl FnMut(u32)) {
    for (at, &word) in (first..).zip(words) {
        let mut left = word;
        while left != 0 {
            visit((at * 64) as u32 + left.trailing_zeros());
            left &= left - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: usize, below: u64, seed: u64) -> Vec<u16> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..count).map(|_| rng.u64(0..below) as u16).collect()
    }

    fn bits(values: &[u16], passes: impl Fn(u16) -> bool) -> Vec<u64> {
        let word = |values: &[u16]| {
            let of = |(at, &value): (usize, &u16)| u64::from(passes(value)) << at;
            values.iter().enumerate().map(of).fold(0, |word, bit| word | bit)
        };
        values.chunks(64).map(word).collect()
    }

    #[test]
    fn sets_select_the_values_that_they_contain() {
        let mut rng = fastrand::Rng::with_seed(3);
        for bits_of_column in 1..=BITS_MAX {
            let values = some(64 * 37 + 11, 1 << bits_of_column, 7);
            let slices = Slices::new(bits_of_column, &values);
            for turn in 0..200 {
                let set = ValueSet(match turn % 3 {
                    0 => rng.u64(..),
                    1 => u64::MAX << rng.u32(0..64),
                    _ => u64::MAX >> rng.u32(0..64),
                });
                let test = slices.test(set);
                assert!(test.steps.len() <= STEPS_MAX, "{}", test.steps.len());
                let first = rng.usize(0..30);
                let mut words = vec![u64::MAX; 38 - first + rng.usize(0..40)];
                slices.keep(&test, first, &mut words);
                let expected = bits(&values, |value| set.has(value as u8));
                let shown = &words[..38 - first];
                assert_eq!(shown[..37 - first], expected[first..37]);
                assert_eq!(shown[37 - first] & ((1 << 11) - 1), expected[37]);
            }
        }
    }

    #[test]
    fn numbers_and_counts_are_those_of_the_docs() {
        // The first block has no 7.
        let mut values = some(5_000, 40, 9);
        values[..4_200].iter_mut().filter(|value| **value == 7).for_each(|value| *value = 8);
        let slices = Slices::new(4, &values).with_blocks();
        let matches = bits(&values, |value| !value.is_multiple_of(3));
        let counts = slices.count(&matches);
        let mut expected = [0; 64];
        for (doc, &value) in (0..).zip(&values) {
            assert_eq!((slices.number(doc), slices.value(doc)), (value, value.min(15) as u8));
            expected[usize::from(value.min(15))] += u32::from(!value.is_multiple_of(3));
        }
        assert_eq!(counts, expected);
        for value in [0, 7, 15, 16] {
            let docs_of_block = values.chunks(64 * WINDOW);
            let has = docs_of_block.map(|docs| docs.iter().any(|&doc| doc.min(15) == value));
            let has: Vec<bool> = has.collect();
            for word in 0..values.len() / 64 {
                let next = (word..values.len() / 64).find(|word| has[word / WINDOW]);
                assert_eq!(slices.next_with(value as u8, word), next, "{value} from {word}");
            }
            let docs = values.iter().filter(|&&doc| doc.min(15) == value).count();
            let padding =
                if value == 0 { values.len().next_multiple_of(64) - values.len() } else { 0 };
            let words = if docs > 0 { values.len().div_ceil(64) } else { 0 };
            let spread = Spread { docs: (docs + padding) as u32, words };
            assert_eq!(slices.spread(value as u8), spread, "{value}");
        }
        assert_eq!((slices.numbers_of(3), slices.numbers_of(15)), (3..=3, 15..=u16::MAX));
        assert_eq!(Slices::new(4, &[14, 1]).numbers_of(15), 15..=15);
        for range in [0..=3, 5..=20, 15..=15, 16..=30, 3..=u16::MAX, 15..=u16::MAX] {
            let test = slices.range_test(range.clone());
            let mut words = vec![u64::MAX; 40];
            slices.keep_range(&test, 7, &mut words);
            assert_eq!(words, bits(&values, |value| range.contains(&value))[7..47], "{range:?}");
        }
    }

    #[test]
    fn the_best_by_value_are_kept() {
        let values = some(3_000, 64, 5);
        let slices = Slices::new(6, &values);
        for (descending, wanted) in [(false, 1), (true, 1), (false, 100), (true, 2_000)] {
            let mut matches = bits(&values, |value| value.is_multiple_of(2));
            let all = ones(&matches);
            let last = slices.keep_best(descending, wanted, &mut matches);
            let mut sorted: Vec<u16> =
                values.iter().copied().filter(|value| value.is_multiple_of(2)).collect();
            sorted.sort_unstable();
            if descending {
                sorted.reverse();
            }
            if wanted >= all {
                assert_eq!((last, ones(&matches)), (None, all));
                continue;
            }
            let worst = sorted[wanted as usize - 1];
            assert_eq!(last, Some(worst as u8));
            let is_kept = |value: u16| {
                value.is_multiple_of(2) && if descending { value >= worst } else { value <= worst }
            };
            assert_eq!(matches, bits(&values, is_kept));
        }
    }
}
