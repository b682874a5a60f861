//! How much of a run of letters names have had before: what there is to spell that nobody knows.
//!
//! [`LetterModel`] knows what follows three letters. Here stands what follows four to seven, as far
//! as registered names have it often and it is news: two million sequences with what their last
//! letter costs after the others. Words, names and brands that labels are made of are among them
//! whether or not a dictionary has them, and so are the halves of words that many others share.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

use super::letters::{Context, LetterModel};

/// Compressed. Of each length how many sequences there are (four bytes, the lowest first); then by
/// length the sequences, as numbers in base 27, each as its difference from the one before (seven
/// bits a byte, the lowest first, the highest bit for more); then what each costs, a byte of half
/// bits.
static SEQUENCES: &[u8] = include_bytes!("../../data/scorer/sequences.zst");

/// `a` to `z`, and 0 for the edge of a run.
const SYMBOLS: u64 = 27;
/// Symbols in a sequence, shortest and longest.
const SHORTEST: u32 = 5;
const LONGEST: u32 = 8;
const LENGTHS: usize = (LONGEST - SHORTEST + 1) as usize;
/// Buckets of the table: a third of its slots is left free, so that few are full.
const BUCKETS: usize = 3 << 17;
const SLOTS: usize = 8;
/// Of a slot, for the cost and one; the rest tells sequences apart.
const COST_BITS: u32 = 5;
const EMPTY: u16 = 0;
/// Sixteenths of a bit in a step of cost.
const STEP: u32 = 8;

/// The sequences, each in the bucket where its hash puts it or, where that is full, in the next:
/// eleven bits of the hash and the cost. One lookup in some hundreds finds another sequence's cost,
/// the same one everywhere.
pub struct Spelling {
    buckets: Vec<Bucket>,
}

/// Slots that are compared all at once, filled from the first on.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct Bucket([u16; SLOTS]);

impl Bucket {
    /// The slot with this tag; empty when there is none.
    #[inline]
    fn find(&self, tag: u16) -> u16 {
        let slots = self.0.iter();
        // Tags differ within a bucket: no branch, and one instruction for all slots.
        slots
            .fold(EMPTY, |found, &slot| found | if slot >> COST_BITS == tag { slot } else { EMPTY })
    }

    fn is_full(&self) -> bool {
        self.0[SLOTS - 1] != EMPTY
    }
}

impl Spelling {
    /// Takes some tens of milliseconds and 6 MB. Panics on a file that is not well-formed: it is
    /// part of the program.
    pub fn load() -> Spelling {
        let mut unpacked = Vec::new();
        let read = StreamingDecoder::new(SEQUENCES).map(|mut file| file.read_to_end(&mut unpacked));
        read.expect("sequences are a zstd frame").expect("sequences unpack");
        let mut spelling = Spelling { buckets: vec![Bucket::default(); BUCKETS] };
        for (length, sequence, cost) in sequences(&unpacked) {
            spelling.put(length, sequence, cost);
        }
        spelling
    }

    /// Adds a sequence, unless another one is found in its place.
    fn put(&mut self, length: u32, sequence: u64, cost: u8) {
        let (mut at, tag) = place(SYMBOLS.pow(length), sequence);
        while self.buckets[at].find(tag) == EMPTY {
            if let Some(free) = self.buckets[at].0.iter_mut().find(|slot| **slot == EMPTY) {
                *free = tag << COST_BITS | u16::from(cost + 1);
                return;
            }
            at = next(at);
        }
    }

    /// Where the sequence of so many last symbols is looked for first, and what is there.
    #[inline]
    fn look<const LENGTH: u32>(&self, last: u64) -> Look {
        // A number that is known when this is built: dividing by another takes ten times as long.
        let all = const { SYMBOLS.pow(LENGTH) };
        let (at, tag) = place(all, last % all);
        Look { at, tag, bucket: self.buckets[at] }
    }

    /// What the last symbol of a sequence costs after the others, in sixteenths of a bit.
    #[inline]
    fn get(&self, Look { mut at, tag, mut bucket }: Look) -> Option<u32> {
        let mut found = bucket.find(tag);
        while found == EMPTY && bucket.is_full() {
            at = next(at);
            bucket = self.buckets[at];
            found = bucket.find(tag);
        }
        let cost = found & ((1 << COST_BITS) - 1);
        Some(STEP * u32::from(cost.checked_sub(1)?))
    }

    /// Total cost of `letters`, of `a` to `z`, and of their end, in sixteenths of a bit: of each the
    /// cost after as many letters as are known.
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
                // Before the first letter is one edge, not several.
                let longest = LENGTHS.min((seen + 1).saturating_sub(SHORTEST as usize));
                let known = looks[..longest].iter().rev().find_map(|&look| self.get(look));
                total += known.unwrap_or(*plain);
            }
        }
        total
    }
}

/// Symbols that are looked up side by side: the table is far from the processor, and what is asked
/// for together is waited for once.
const AHEAD: usize = 16;

/// The bucket where a sequence is looked for first.
#[derive(Clone, Copy, Default)]
struct Look {
    at: usize,
    tag: u16,
    bucket: Bucket,
}

/// A symbol that is looked up.
#[derive(Clone, Copy, Default)]
struct Ahead {
    /// By length.
    looks: [Look; LENGTHS],
    /// Symbols up to it, with the edge before the first.
    seen: usize,
    /// What it costs after three.
    plain: u32,
}

/// Where a sequence is looked for first, one of `all` of its length, and the bits that tell it from
/// others there.
#[inline]
fn place(all: u64, sequence: u64) -> (usize, u16) {
    // A sequence that begins with the edge is another one than the same without.
    let hash = (sequence + all).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = ((hash >> 32) * BUCKETS as u64) >> 32;
    (at as usize, (hash >> 16) as u16 >> COST_BITS)
}

#[inline]
fn next(at: usize) -> usize {
    if at + 1 == BUCKETS { 0 } else { at + 1 }
}

/// Length, sequence and cost of each.
fn sequences(unpacked: &[u8]) -> impl Iterator<Item = (u32, u64, u8)> {
    let (counts, rest) = unpacked.split_at(LENGTHS * size_of::<u32>());
    let (counts, _) = counts.as_chunks();
    let counts: Vec<_> = counts.iter().map(|&count| u32::from_le_bytes(count) as usize).collect();
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static SPELLING: LazyLock<Spelling> = LazyLock::new(Spelling::load);

    fn plain(letters: &str) -> u32 {
        LetterModel::names().cost(letters).0
    }

    #[test]
    fn every_sequence_is_found() {
        let mut unpacked = Vec::new();
        let mut file = StreamingDecoder::new(SEQUENCES).expect("a zstd frame");
        file.read_to_end(&mut unpacked).expect("unpacks");
        let (mut count, mut others) = (0, 0);
        let mut before = None;
        for (length, sequence, cost) in sequences(&unpacked) {
            assert!(sequence < SYMBOLS.pow(length) && u32::from(cost) + 1 < 1 << COST_BITS);
            assert!(before < Some((length, sequence)), "sorted, and each once");
            before = Some((length, sequence));
            let look = match length {
                5 => SPELLING.look::<5>(sequence),
                6 => SPELLING.look::<6>(sequence),
                7 => SPELLING.look::<7>(sequence),
                _ => SPELLING.look::<8>(sequence),
            };
            let found = SPELLING.get(look);
            others += usize::from(found != Some(STEP * u32::from(cost)));
            count += 1;
            assert!(found.is_some());
        }
        assert!(count * 3 <= BUCKETS * SLOTS * 2, "{count} leave too little room");
        assert!(others * 100 < count, "{others} of {count} have another's cost");
    }

    #[test]
    fn what_names_are_made_of_costs_less_than_its_letters() {
        for known in ["hotel", "marketing", "photography", "ubezpieczenia"] {
            assert!(SPELLING.cost(known) < plain(known), "{known}");
        }
        assert_eq!(SPELLING.cost("xqzjvqx"), plain("xqzjvqx"));
        assert_eq!(SPELLING.cost(""), plain(""));
        assert!(SPELLING.cost("cloud") < SPELLING.cost("clowd"));
    }

    #[test]
    fn any_length_is_spelt() {
        assert!((1..=252).all(|length| SPELLING.cost(&"z".repeat(length)) > 0));
    }
}
