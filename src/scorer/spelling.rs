//! How familiar the letters of a run are: what it costs to spell it when no dictionary knows it.
//!
//! [`LetterModel`] holds what follows three letters. This table holds what follows four to seven,
//! where registered names have the sequence often and the cost differs: two million sequences, each
//! with the cost of its last letter after the others. They cover words, names and brands that
//! labels are made of, whether or not a dictionary has them, and parts that many words share.

use super::letters::{Context, LetterModel};
use super::prebuilt::{self, BUCKETS, Bucket, SLOTS};

/// `a` to `z`, and 0 for the edge of a run.
const SYMBOLS: u64 = 27;
/// Symbols in a sequence, shortest and longest.
const SHORTEST: u32 = 5;
const LONGEST: u32 = 8;
const LENGTHS: usize = (LONGEST - SHORTEST + 1) as usize;
/// Bits of a slot that hold the cost plus one; the others hold the tag that identifies a sequence.
const COST_BITS: u32 = 5;
const EMPTY: u16 = 0;
/// Sixteenths of a bit in a step of cost.
const STEP: u32 = 8;

/// The sequences: each in the bucket its hash selects or, where that is full, in the next, as eleven
/// bits of the hash and the cost. One lookup in some hundreds finds the cost of another sequence,
/// always the same one.
pub struct Spelling {
    buckets: &'static [Bucket; BUCKETS],
}

/// Returns the slot of a bucket with this tag; [`EMPTY`] when there is none.
#[inline]
fn find(bucket: &Bucket, tag: u16) -> u16 {
    // Tags differ within a bucket: no branch, and one instruction for all slots.
    bucket
        .iter()
        .fold(EMPTY, |found, &slot| found | if slot >> COST_BITS == tag { slot } else { EMPTY })
}

fn is_full(bucket: &Bucket) -> bool {
    bucket[SLOTS - 1] != EMPTY
}

impl Spelling {
    /// The table the program was built with.
    pub fn new() -> Spelling {
        Spelling { buckets: prebuilt::sequences() }
    }

    /// Reads the bucket in which the sequence of the last `LENGTH` symbols is searched first.
    #[inline]
    fn look<const LENGTH: u32>(&self, last: u64) -> Look {
        // A constant: division by a variable takes ten times as long.
        let all = const { SYMBOLS.pow(LENGTH) };
        let (at, tag) = place(all, last % all);
        Look { at, tag, bucket: self.buckets[at] }
    }

    /// Cost of the last symbol of a sequence after the others, in sixteenths of a bit.
    #[inline]
    fn get(&self, Look { mut at, tag, mut bucket }: Look) -> Option<u32> {
        let mut found = find(&bucket, tag);
        while found == EMPTY && is_full(&bucket) {
            at = next(at);
            bucket = self.buckets[at];
            found = find(&bucket, tag);
        }
        let cost = found & ((1 << COST_BITS) - 1);
        Some(STEP * u32::from(cost.checked_sub(1)?))
    }

    /// Total cost of `letters`, of `a` to `z`, and of their end, in sixteenths of a bit. Each is
    /// priced by the longest known sequence that ends with it.
    pub fn cost(&self, letters: &str) -> u32 {
        let (mut context, mut last, mut total) = (Context::default(), 0, 0);
        let names = LetterModel::names();
        let mut symbols = letters.bytes().map(Some).chain([None]).zip(2..).peekable();
        let mut ahead = [Ahead::default(); AHEAD];
        while symbols.peek().is_some() {
            let mut count = 0;
            for (ahead, (symbol, seen)) in ahead.iter_mut().zip(symbols.by_ref()) {
                let (code, plain) = match symbol {
                    Some(letter) => {
                        (u64::from(letter - b'a') + 1, names.next(&mut context, letter))
                    }
                    None => (0, names.end(context)),
                };
                last = (last * SYMBOLS + code) % SYMBOLS.pow(LONGEST);
                let looks = [
                    self.look::<SHORTEST>(last),
                    self.look::<{ SHORTEST + 1 }>(last),
                    self.look::<{ SHORTEST + 2 }>(last),
                    self.look::<LONGEST>(last),
                ];
                *ahead = Ahead { looks, seen, plain };
                count += 1;
            }
            for Ahead { looks, seen, plain } in &ahead[..count] {
                // One edge symbol precedes the first letter.
                let longest = LENGTHS.min((seen + 1).saturating_sub(SHORTEST as usize));
                let known = looks[..longest].iter().rev().find_map(|&look| self.get(look));
                total += known.unwrap_or(*plain);
            }
        }
        total
    }
}

/// Symbols that are looked up side by side, so that their cache misses overlap.
const AHEAD: usize = 16;

/// A sequence's tag and the bucket in which it is searched first.
#[derive(Clone, Copy, Default)]
struct Look {
    at: usize,
    tag: u16,
    bucket: Bucket,
}

/// A symbol whose lookups are under way.
#[derive(Clone, Copy, Default)]
struct Ahead {
    /// By length.
    looks: [Look; LENGTHS],
    /// Symbols up to and including it, with the edge before the first.
    seen: usize,
    /// Its cost after three letters.
    plain: u32,
}

/// The bucket in which a sequence is searched first, and its tag. `all` is the number of possible
/// sequences of its length.
#[inline]
fn place(all: u64, sequence: u64) -> (usize, u16) {
    // Adding `all` tells sequences of different lengths apart.
    let hash = (sequence + all).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = ((hash >> 32) * BUCKETS as u64) >> 32;
    (at as usize, (hash >> 16) as u16 >> COST_BITS)
}

#[inline]
fn next(at: usize) -> usize {
    if at + 1 == BUCKETS { 0 } else { at + 1 }
}

/// The packed form of the sequences, from which the table is built.
#[cfg(test)]
pub mod packed {
    use std::io::Read;

    use ruzstd::decoding::StreamingDecoder;

    use super::*;

    /// Builds the table from the bytes of `sequences.zst`.
    pub fn table(packed: &[u8]) -> Vec<Bucket> {
        let mut table = vec![[EMPTY; SLOTS]; BUCKETS];
        for (length, sequence, cost) in sequences(&unpack(packed)) {
            put(&mut table, length, sequence, cost);
        }
        table
    }

    /// Adds a sequence, unless another one with its tag is found in its place.
    fn put(table: &mut [Bucket], length: u32, sequence: u64, cost: u8) {
        let (mut at, tag) = place(SYMBOLS.pow(length), sequence);
        while find(&table[at], tag) == EMPTY {
            if let Some(free) = table[at].iter_mut().find(|slot| **slot == EMPTY) {
                *free = tag << COST_BITS | u16::from(cost + 1);
                return;
            }
            at = next(at);
        }
    }

    pub fn unpack(packed: &[u8]) -> Vec<u8> {
        let mut unpacked = Vec::new();
        let mut file = StreamingDecoder::new(packed).expect("a zstd frame");
        file.read_to_end(&mut unpacked).expect("the frame unpacks");
        unpacked
    }

    /// Length, sequence and cost of each; `data/scorer/README.md` describes the format.
    pub fn sequences(unpacked: &[u8]) -> impl Iterator<Item = (u32, u64, u8)> {
        let (counts, rest) = unpacked.split_at(LENGTHS * size_of::<u32>());
        let (counts, _) = counts.as_chunks();
        let counts: Vec<_> =
            counts.iter().map(|&count| u32::from_le_bytes(count) as usize).collect();
        let (numbers, costs) = rest.split_at(rest.len() - counts.iter().sum::<usize>());
        let lengths = (SHORTEST..=LONGEST).zip(counts);
        let lengths = lengths.flat_map(|(length, count)| std::iter::repeat_n(length, count));
        let mut bytes = numbers.iter();
        let (mut before, mut length_before) = (0, SHORTEST);
        lengths.zip(costs).map(move |(length, &cost)| {
            if length != length_before {
                (before, length_before) = (0, length);
            }
            let (mut difference, mut shift) = (0, 0);
            for &byte in bytes.by_ref() {
                difference |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            before += difference;
            (length, before, cost)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelling() -> Spelling {
        Spelling::new()
    }

    fn plain(letters: &str) -> u32 {
        LetterModel::names().cost(letters).0
    }

    #[test]
    fn every_sequence_is_found() {
        let spelling = spelling();
        let unpacked = packed::unpack(include_bytes!("../../data/scorer/sequences.zst"));
        let (mut count, mut others) = (0, 0);
        let mut before = None;
        for (length, sequence, cost) in packed::sequences(&unpacked) {
            assert!(sequence < SYMBOLS.pow(length) && u32::from(cost) + 1 < 1 << COST_BITS);
            assert!(before < Some((length, sequence)), "sorted, and each once");
            before = Some((length, sequence));
            let look = match length {
                5 => spelling.look::<5>(sequence),
                6 => spelling.look::<6>(sequence),
                7 => spelling.look::<7>(sequence),
                _ => spelling.look::<8>(sequence),
            };
            let found = spelling.get(look);
            others += usize::from(found != Some(STEP * u32::from(cost)));
            count += 1;
            assert!(found.is_some());
        }
        assert!(count * 3 <= BUCKETS * SLOTS * 2, "{count} sequences leave too few free slots");
        assert!(others * 100 < count, "{others} of {count} are shadowed by another sequence");
    }

    #[test]
    fn familiar_sequences_cost_less_than_their_letters() {
        for known in ["hotel", "marketing", "photography", "ubezpieczenia"] {
            assert!(spelling().cost(known) < plain(known), "{known}");
        }
        assert_eq!(spelling().cost("xqzjvqx"), plain("xqzjvqx"));
        assert_eq!(spelling().cost(""), plain(""));
        assert!(spelling().cost("cloud") < spelling().cost("clowd"));
    }

    #[test]
    fn runs_of_any_length_have_a_cost() {
        assert!((1..=252).all(|length| spelling().cost(&"z".repeat(length)) > 0));
    }
}
