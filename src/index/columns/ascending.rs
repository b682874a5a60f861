//! Strictly ascending numbers with random access, in blocks of 128 in Elias-Fano code. A block
//! holds its first number, and the difference of each other number to it: the low bits are packed,
//! and the high bits are coded in a string of 256 bits with a one for each number and a zero for
//! each step of the high bits.

use std::ops::Range;

use crate::error::{BuildError, GenerationError};
use crate::storage::draft::{Draft, DraftFile};
use crate::storage::files::Files;

/// Numbers in a block.
const BLOCK: usize = 128;
/// Number of words for the high bits of a block, which have a one for each number, and fewer zeros
/// than ones.
const HIGH_WORDS: usize = 2 * BLOCK / 64;
/// Words per unit of storage. A unit holds one low bit of every number of a block.
const UNIT: usize = BLOCK / 64;
/// Words that an [`AscendingWriter`] writes at once. This number is small in tests, so that tests
/// cross the boundaries.
const WORDS_HELD: usize = if cfg!(test) { 1 << 5 } else { 1 << 14 };

/// Compressed strictly ascending numbers.
#[derive(Debug, Default)]
pub struct Ascending {
    len: usize,
    /// First number of each block.
    firsts: Vec<u64>,
    /// Start of each block in `words`, in units, and the end of the last block.
    starts: Vec<u32>,
    /// The high bits of each block, then a unit for each low bit.
    words: Vec<u64>,
}

/// Compresses numbers one by one.
#[derive(Debug, Default)]
pub struct AscendingBuilder {
    whole: Ascending,
    /// Numbers after the last complete block.
    rest: Vec<u64>,
}

impl AscendingBuilder {
    /// Appends a number that is greater than all others.
    pub fn push(&mut self, number: u64) {
        self.rest.push(number);
        if self.rest.len() == BLOCK {
            self.whole.push(&self.rest);
            self.rest.clear();
        }
    }

    /// Returns the number of numbers that were pushed.
    pub fn len(&self) -> usize {
        self.whole.len + self.rest.len()
    }

    /// Returns the numbers.
    pub fn finish(self) -> Ascending {
        let AscendingBuilder { mut whole, rest } = self;
        if !rest.is_empty() {
            whole.push(&rest);
        }
        whole.starts.push((whole.words.len() / UNIT) as u32);
        whole
    }
}

/// Compresses numbers one by one into files that [`Ascending::open`] reads, even if they do not fit
/// into memory.
#[derive(Debug)]
pub struct AscendingWriter<'a> {
    name: String,
    rows: DraftFile<'a>,
    /// Numbers that are not yet written.
    held: AscendingBuilder,
    /// First numbers of the written blocks, with their size in units.
    len: usize,
    firsts: Vec<u64>,
    starts: Vec<u32>,
    units: usize,
}

impl<'a> AscendingWriter<'a> {
    /// Creates files whose names start with `name`.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn new(name: &str, draft: &'a Draft) -> Result<AscendingWriter<'a>, BuildError> {
        let (name, rows) = (name.to_owned(), draft.create(&format!("{name}.rows"))?);
        let (firsts, starts) = (Vec::new(), Vec::new());
        let held = AscendingBuilder::default();
        Ok(AscendingWriter { name, rows, held, len: 0, firsts, starts, units: 0 })
    }

    /// Appends a number that is greater than all others.
    ///
    /// # Errors
    /// A write fails.
    #[inline]
    pub fn push(&mut self, number: u64) -> Result<(), BuildError> {
        self.held.push(number);
        if self.held.whole.words.len() < WORDS_HELD { Ok(()) } else { self.write_held() }
    }

    fn write_held(&mut self) -> Result<(), BuildError> {
        let Ascending { len, firsts, starts, words } = &mut self.held.whole;
        self.len += std::mem::take(len);
        self.firsts.append(firsts);
        self.starts.extend(starts.drain(..).map(|start| self.units as u32 + start));
        self.units += words.len() / UNIT;
        self.rows.append(words)?;
        words.clear();
        Ok(())
    }

    /// Returns how many numbers were pushed.
    pub fn len(&self) -> usize {
        self.len + self.held.len()
    }

    /// Writes the remaining numbers.
    ///
    /// # Errors
    /// A write fails.
    pub fn finish(mut self, draft: &Draft) -> Result<(), BuildError> {
        self.held = AscendingBuilder { whole: self.held.finish(), rest: Vec::new() };
        self.write_held()?;
        draft.put(&format!("{}.firsts", self.name), &self.firsts)?;
        draft.put(&format!("{}.starts", self.name), &self.starts)?;
        self.rows.finish()
    }
}

impl Ascending {
    /// Compresses strictly ascending numbers.
    pub fn new(numbers: impl Iterator<Item = u64>) -> Ascending {
        let mut builder = AscendingBuilder::default();
        numbers.for_each(|number| builder.push(number));
        builder.finish()
    }

    fn push(&mut self, block: &[u64]) {
        let first = block[0];
        let span = block[block.len() - 1] - first;
        // The fewest low bits with which the high bits, coded in unary, still fit.
        let low = (64 - span.leading_zeros()).saturating_sub(BLOCK.ilog2());
        let start = self.words.len();
        self.words.resize(start + HIGH_WORDS + UNIT * low as usize, 0);
        let (high_bits, low_bits) = self.words[start..].split_at_mut(HIGH_WORDS);
        for (at, number) in block.iter().map(|number| number - first).enumerate() {
            let bit = (number >> low) as usize + at;
            high_bits[bit / 64] |= 1 << (bit % 64);
            put_bits(low_bits, at * low as usize, low, number & ((1 << low) - 1));
        }
        self.firsts.push(first);
        self.starts.push((start / UNIT) as u32);
        self.len += block.len();
    }

    /// Returns the high bits and the low bits of a block.
    fn block(&self, block: usize) -> (&[u64], &[u64]) {
        let (from, to) = (self.starts[block] as usize, self.starts[block + 1] as usize);
        self.words[from * UNIT..to * UNIT].split_at(HIGH_WORDS)
    }

    /// Returns the number at a place.
    pub fn get(&self, place: u32) -> u64 {
        let (block, at) = (place as usize / BLOCK, place as usize % BLOCK);
        let (high_bits, low_bits) = self.block(block);
        let low = (low_bits.len() / UNIT) as u32;
        let high = (nth_one(high_bits, at) - at) as u64;
        self.firsts[block] + (high << low | bits(low_bits, at * low as usize, low))
    }

    /// Visits the numbers at these places in order, until `visit` returns false.
    pub fn each(&self, places: Range<u32>, mut visit: impl FnMut(u64) -> bool) {
        let mut place = places.start as usize;
        let end = self.len.min(places.end as usize);
        while place < end {
            let (block, mut at) = (place / BLOCK, place % BLOCK);
            let here = BLOCK.min(end - block * BLOCK);
            let (high_bits, low_bits) = self.block(block);
            let low = (low_bits.len() / UNIT) as u32;
            let first = self.firsts[block];
            let start = nth_one(high_bits, at);
            let mut left = high_bits[start / 64] & u64::MAX << (start % 64);
            for word in start / 64..HIGH_WORDS {
                while left != 0 && at < here {
                    let bit = word * 64 + left.trailing_zeros() as usize;
                    let number =
                        ((bit - at) as u64) << low | bits(low_bits, at * low as usize, low);
                    if !visit(first + number) {
                        return;
                    }
                    left &= left - 1;
                    at += 1;
                }
                left = high_bits.get(word + 1).copied().unwrap_or(0);
            }
            place = (block + 1) * BLOCK;
        }
    }

    /// Returns the place of the first number that is not below `number`. That place must be in
    /// `among` or directly after it.
    pub fn first_at_least(&self, number: u64, among: Range<u32>) -> u32 {
        let from = among.start as usize / BLOCK;
        let to = (among.end as usize).div_ceil(BLOCK);
        // The number before `among` is smaller, so the search can start in the block where `among`
        // starts.
        let after = from + self.firsts[from..to].partition_point(|&first| first < number);
        let Some(block) = after.checked_sub(1) else { return 0 };
        let below = self.below_in(block, number - self.firsts[block]);
        ((block * BLOCK + below).min(self.len)) as u32
    }

    /// Returns how many numbers of a block are less than its first number plus `above`.
    fn below_in(&self, block: usize, above: u64) -> usize {
        let (high_bits, low_bits) = self.block(block);
        let low = (low_bits.len() / UNIT) as u32;
        let high = (above >> low) as usize;
        if high >= BLOCK {
            return BLOCK;
        }
        // Every zero is a step of the high bits, so all numbers with fewer steps precede the last zero.
        let zeros: [u64; HIGH_WORDS] = std::array::from_fn(|at| !high_bits[at]);
        let mut bit = if high == 0 { 0 } else { nth_one(&zeros, high - 1) + 1 };
        let wanted = above & ((1 << low) - 1);
        while high_bits[bit / 64] >> (bit % 64) & 1 == 1
            && bits(low_bits, (bit - high) * low as usize, low) < wanted
        {
            bit += 1;
        }
        bit - high
    }

    /// Writes files whose names start with `name`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, name: &str, draft: &Draft) -> Result<(), BuildError> {
        draft.put(&format!("{name}.firsts"), &self.firsts)?;
        draft.put(&format!("{name}.starts"), &self.starts)?;
        draft.put(&format!("{name}.rows"), &self.words)
    }

    /// Opens the files that [`Ascending::write`] wrote for `len` numbers.
    ///
    /// # Errors
    /// A file is damaged, or does not hold `len` numbers.
    pub fn open(name: &str, len: usize, files: &Files) -> Result<Ascending, GenerationError> {
        let starts_name = format!("{name}.starts");
        let firsts: Vec<u64> = files.take(&format!("{name}.firsts"))?;
        let starts: Vec<u32> = files.take(&starts_name)?;
        let words: Vec<u64> = files.take(&format!("{name}.rows"))?;
        let units = starts.last().map_or(0, |&end| end as usize);
        let fits = firsts.len() == len.div_ceil(BLOCK)
            && starts.len() == firsts.len() + 1
            && words.len() == units * UNIT
            && starts.iter().zip(&starts[1..]).all(|(from, to)| from + HIGH_UNITS <= *to);
        files.check(fits, &starts_name)?;
        Ok(Ascending { len, firsts, starts, words })
    }
}

/// Number of units of the high bits of a block.
const HIGH_UNITS: u32 = (HIGH_WORDS / UNIT) as u32;

/// Writes `value` into the `count` bits that start at bit `at`; these must be zero.
fn put_bits(words: &mut [u64], at: usize, count: u32, value: u64) {
    if count == 0 {
        return;
    }
    let (word, shift) = (at / 64, at % 64);
    words[word] |= value << shift;
    if shift + count as usize > 64 {
        words[word + 1] |= value >> (64 - shift);
    }
}

/// Returns the `count` bits that start at bit `at`; `count` is below 64.
fn bits(words: &[u64], at: usize, count: u32) -> u64 {
    if count == 0 {
        return 0;
    }
    let (word, shift) = (at / 64, at % 64);
    let mut value = words[word] >> shift;
    if shift + count as usize > 64 {
        value |= words[word + 1] << (64 - shift);
    }
    value & ((1 << count) - 1)
}

/// Returns the position of the one-bit that has `before` one-bits before it.
pub fn nth_one(words: &[u64], mut before: usize) -> usize {
    for (at, &word) in words.iter().enumerate() {
        let ones = word.count_ones() as usize;
        if before < ones {
            return at * 64 + nth_one_of(word, before);
        }
        before -= ones;
    }
    unreachable!("callers count the ones")
}

fn nth_one_of(mut word: u64, before: usize) -> usize {
    let mut skipped = 0;
    let mut left = before as u32;
    for half in [32, 16, 8] {
        let ones = (word & ((1 << half) - 1)).count_ones();
        if left >= ones {
            left -= ones;
            word >>= half;
            skipped += half;
        }
    }
    for _ in 0..left {
        word &= word - 1;
    }
    skipped + word.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;
    use crate::columns::rank_table::tests::Random;

    #[test]
    fn numbers_round_trip() {
        let mut random = Random(5);
        for len in [0usize, 1, 127, 128, 129, 1_000] {
            for step in [1, 2, 3, 300, 1 << 20, 1 << 34] {
                let mut number = 0;
                let mut numbers = Vec::new();
                for _ in 0..len {
                    number += 1 + random.next() % step;
                    numbers.push(number);
                }
                let write = |draft: &Draft| {
                    let mut writer = AscendingWriter::new("all", draft)?;
                    numbers.iter().try_for_each(|&number| writer.push(number))?;
                    assert_eq!(writer.len(), len);
                    writer.finish(draft)
                };
                let (_folder, files) = round_trip(write).expect("written");
                let all = Ascending::open("all", len, &files).expect("sound");
                for (place, &number) in numbers.iter().enumerate() {
                    assert_eq!(all.get(place as u32), number);
                    let (end, mut seen) = (len.min(place + 300), Vec::new());
                    all.each(place as u32..end as u32, |number| {
                        seen.push(number);
                        seen.len() < 200
                    });
                    assert_eq!(seen, numbers[place..end.min(place + 200)]);
                    for near in [number - 1, number, number + 1] {
                        let expected = numbers.partition_point(|&it| it < near) as u32;
                        assert_eq!(all.first_at_least(near, 0..len as u32), expected);
                    }
                }
                assert_eq!(all.first_at_least(0, 0..len as u32), 0);
                assert_eq!(all.first_at_least(u64::MAX, 0..len as u32), len as u32);
            }
        }
    }
}
