//! Prefix codes: a frequent number takes few bits, a rare one more, and no code word is the start
//! of another. The lengths of its words define a code (canonical Huffman code): words of the same
//! length are consecutive, in the order of their numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

/// Maximum bits of a word: a reader looks up words in a table with this many index bits.
const BITS_MAX: u32 = 12;
/// Bits that can be taken after a [`BitReader::fill`].
const FILLED: u32 = 56;

/// Counts of the occurrences of each number.
pub type Counts = FxHashMap<u16, u64>;

/// Lengths of the words in bits, by number.
type Lengths = Vec<(u16, u8)>;

/// The encoder of a code.
#[derive(Debug)]
pub struct PrefixWriter {
    lengths: Lengths,
    words: FxHashMap<u16, (u64, u32)>,
}

/// The decoder of a code.
#[derive(Debug, Default)]
pub struct PrefixCode {
    bits: u32,
    /// Number and length of the word with which the next bits of the input start, indexed by these
    /// bits.
    table: Vec<(u16, u8)>,
}

/// Appends bits to bytes, lowest first.
#[derive(Debug, Default)]
pub struct BitWriter {
    bits: u64,
    len: u32,
}

/// Takes bits that a [`BitWriter`] wrote.
#[derive(Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    bits: u64,
    /// Number of bits that were read, including those after the last byte.
    len: u32,
}

impl PrefixWriter {
    /// Builds the code that takes the fewest bits for numbers with these counts.
    pub fn new(counts: &Counts) -> PrefixWriter {
        let mut counts: Vec<(u16, u64)> =
            counts.iter().map(|(&number, &count)| (number, count)).collect();
        counts.sort_unstable();
        let lengths = loop {
            let lengths = lengths_for(&counts);
            if lengths.iter().all(|&(_, length)| u32::from(length) <= BITS_MAX) {
                break lengths;
            }
            // Halving flattens the counts, so rare numbers get shorter words.
            counts.iter_mut().for_each(|(_, count)| *count = count.div_ceil(2));
        };
        let words = words_of(&lengths).map(|(number, word, length)| (number, (word, length)));
        PrefixWriter { words: words.collect(), lengths }
    }

    /// Appends a number, which must have been counted.
    pub fn write(&self, number: u16, bits: &mut BitWriter, out: &mut Vec<u8>) {
        let (word, length) = self.words[&number];
        bits.push(word, length, out);
    }

    /// Returns the decoder of this code.
    pub fn reader(&self) -> PrefixCode {
        PrefixCode::of(&self.lengths)
    }

    /// Returns numbers and lengths, from which [`PrefixCode::new`] builds the code.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = [u16; 2]> {
        self.lengths.iter().map(|&(number, length)| [number, length.into()])
    }
}

/// Returns the length of each word.
fn lengths_for(counts: &[(u16, u64)]) -> Lengths {
    // Inner nodes are placed after the numbers; the parent of a node is known once the node is
    // paired.
    let mut parents = vec![0; counts.len()];
    let mut rarest: BinaryHeap<_> =
        counts.iter().enumerate().map(|(node, &(_, count))| Reverse((count, node))).collect();
    while let (Some(Reverse((one, left))), Some(Reverse((other, right)))) =
        (rarest.pop(), rarest.pop())
    {
        let parent = parents.len();
        parents.push(0);
        (parents[left], parents[right]) = (parent, parent);
        rarest.push(Reverse((one + other, parent)));
        if rarest.len() == 1 {
            break;
        }
    }
    let root = parents.len().saturating_sub(1);
    let mut depths = vec![0u8; parents.len()];
    for node in (0..root).rev() {
        depths[node] = depths[parents[node]].saturating_add(1);
    }
    counts.iter().zip(depths).map(|(&(number, _), depth)| (number, depth)).collect()
}

/// Returns the words with their lengths, ordered by length and number; the first bit of a word is
/// its lowest.
fn words_of(lengths: &Lengths) -> impl Iterator<Item = (u16, u64, u32)> {
    let mut by_length: Vec<(u32, u16)> =
        lengths.iter().map(|&(number, length)| (length.into(), number)).collect();
    by_length.sort_unstable();
    let (mut next, mut before) = (0u64, 0);
    by_length.into_iter().map(move |(length, number)| {
        next <<= length - before;
        before = length;
        let word = if length == 0 { 0 } else { next.reverse_bits() >> (u64::BITS - length) };
        next += 1;
        (number, word, length)
    })
}

impl PrefixCode {
    /// Builds the code whose words have these lengths; `None` if no code has them.
    pub fn new(lengths: &[[u16; 2]]) -> Option<PrefixCode> {
        let bits = lengths.iter().map(|&[_, length]| u32::from(length)).max().unwrap_or(0);
        if bits > BITS_MAX {
            return None;
        }
        let room: usize = lengths.iter().map(|&[_, length]| 1 << (bits - u32::from(length))).sum();
        if room > 1 << bits {
            return None;
        }
        let lengths = lengths.iter().map(|&[number, length]| (number, length as u8));
        Some(PrefixCode::of(&lengths.collect()))
    }

    fn of(lengths: &Lengths) -> PrefixCode {
        let bits = lengths.iter().map(|&(_, length)| u32::from(length)).max().unwrap_or(0);
        let mut table = vec![(0, 0); 1 << bits];
        for (number, word, length) in words_of(lengths) {
            for entry in table[word as usize..].iter_mut().step_by(1 << length) {
                *entry = (number, length as u8);
            }
        }
        PrefixCode { bits, table }
    }

    /// Takes the next number.
    #[inline]
    pub fn read(&self, bits: &mut BitReader<'_>) -> u16 {
        let at = bits.bits as usize & ((1 << self.bits) - 1);
        let (number, length) = self.table.get(at).copied().unwrap_or_default();
        bits.skip(length.into());
        number
    }
}

impl BitWriter {
    /// Appends the lowest bits of a number, at most 32.
    pub fn push(&mut self, number: u64, bits: u32, out: &mut Vec<u8>) {
        self.bits |= number << self.len;
        self.len += bits;
        while self.len >= u8::BITS {
            out.push(self.bits as u8);
            self.bits >>= u8::BITS;
            self.len -= u8::BITS;
        }
    }

    /// Fills the last byte with zeros.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.push(0, self.len.next_multiple_of(u8::BITS) - self.len, out);
    }
}

impl<'a> BitReader<'a> {
    /// Creates a reader that starts at the first bit.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> BitReader<'a> {
        let mut reader = BitReader { bytes, bits: 0, len: 0 };
        reader.fill();
        reader
    }

    /// Makes the next 56 bits ready; zeros follow the last byte.
    #[inline]
    pub fn fill(&mut self) {
        if let Some(word) = self.bytes.first_chunk() {
            self.bits |= u64::from_le_bytes(*word) << self.len;
            let bytes = (u64::BITS - 1 - self.len) / u8::BITS;
            self.bytes = &self.bytes[bytes as usize..];
            self.len += bytes * u8::BITS;
            return;
        }
        while self.len < FILLED {
            let (&byte, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
            self.bytes = rest;
            self.bits |= u64::from(byte) << self.len;
            self.len += u8::BITS;
        }
    }

    /// Takes a number that has `bits` bits.
    #[inline]
    pub fn take(&mut self, bits: u32) -> u64 {
        let taken = self.bits & ((1 << bits) - 1);
        self.skip(bits);
        taken
    }

    #[inline]
    fn skip(&mut self, bits: u32) {
        self.bits >>= bits;
        self.len = self.len.saturating_sub(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(writer: &PrefixWriter) -> PrefixCode {
        PrefixCode::new(&writer.lengths().collect::<Vec<_>>()).expect("a code")
    }

    #[test]
    fn numbers_round_trip_and_frequent_ones_are_short() {
        let mut rng = fastrand::Rng::with_seed(4);
        for kinds in [1u32, 2, 3, 60, 4_096] {
            // Each number is half as frequent as its predecessor, down to a count of one.
            let counts: Counts =
                (0..kinds).map(|at| ((at * 7) as u16, (1u64 << 40 >> at.min(40)).max(1))).collect();
            let writer = PrefixWriter::new(&counts);
            let numbers: Vec<u16> = (0..2_000).map(|_| (rng.u32(0..kinds) * 7) as u16).collect();
            let (mut bits, mut bytes) = (BitWriter::default(), Vec::new());
            for &number in &numbers {
                writer.write(number, &mut bits, &mut bytes);
                bits.push(u64::from(number) & 31, 5, &mut bytes);
            }
            bits.finish(&mut bytes);
            let (code, mut reader) = (code_of(&writer), BitReader::new(&bytes));
            for &number in &numbers {
                assert_eq!(code.read(&mut reader), number, "of {kinds}");
                assert_eq!(reader.take(5), u64::from(number) & 31);
                reader.fill();
            }
            let lengths: Vec<[u16; 2]> = writer.lengths().collect();
            let length = |number| {
                lengths.iter().find(|&&[it, _]| it == number).map_or(0, |&[_, length]| length)
            };
            assert!(kinds == 1 || length(0) <= length(7), "of {kinds}");
            assert!(lengths.iter().all(|&[_, length]| u32::from(length) <= BITS_MAX));
            assert_eq!(length(0) == 0, kinds == 1, "one number takes no bits");
        }
    }

    #[test]
    fn lengths_without_a_code_are_refused() {
        assert!(PrefixCode::new(&[]).is_some());
        assert!(PrefixCode::new(&[[5, 1], [6, 2], [7, 2]]).is_some());
        assert!(PrefixCode::new(&[[5, 1], [6, 1], [7, 2]]).is_none(), "too many short words");
        assert!(PrefixCode::new(&[[5, 13]]).is_none(), "too long");
    }

    #[test]
    fn only_zeros_follow_the_last_byte() {
        let mut reader = BitReader::new(&[0xff]);
        assert_eq!((reader.take(9), reader.take(30)), (0xff, 0));
        reader.fill();
        assert_eq!(reader.take(40), 0);
        let unfinished = PrefixCode::new(&[[5, 2]]).expect("a code");
        assert_eq!(unfinished.read(&mut BitReader::new(&[0xff])), 0, "no word");
    }
}
