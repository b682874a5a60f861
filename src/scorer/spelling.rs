//! Measures how familiar the letters of a run are, as the cost of spelling it without a dictionary.
//!
//! [`LetterModel`] has the costs of a letter after three others. This table has the costs after
//! four to seven others, for the two million sequences that are frequent in registered names and
//! whose cost then differs. Each entry is the cost of the last letter of a sequence after the
//! others. The sequences cover the words, names and brands of which labels consist, in a dictionary
//! or not, and parts that many words share.

use super::letters::{Context, LetterModel};
use super::prebuilt;
use super::sequences::{
    BUCKETS, Bucket, COST_BITS, EMPTY, LENGTHS, LONGEST, SHORTEST, SYMBOLS, find, is_full, next,
    place,
};

/// Size of a cost step in sixteenths of a bit.
const STEP: u32 = 8;

/// The sequences. Each sequence is stored, as eleven bits of its hash and the cost, in the bucket
/// that its hash selects or, if that is full, in the next one. One lookup in a few hundred finds
/// the cost of a different sequence, but every such lookup is reproducible.
pub struct Spelling {
    buckets: &'static [Bucket; BUCKETS],
}

impl Spelling {
    /// Returns the table compiled into the program.
    pub fn new() -> Spelling {
        Spelling { buckets: prebuilt::sequences() }
    }

    /// Reads the bucket where the search for the sequence of the last `LENGTH` symbols starts.
    #[inline]
    fn look<const LENGTH: u32>(&self, last: u64) -> Look {
        // A constant, because division by a variable takes ten times as long.
        let all = const { SYMBOLS.pow(LENGTH) };
        let (at, tag) = place(all, last % all);
        Look { at, tag, bucket: self.buckets[at] }
    }

    /// Returns the cost of the last symbol of a sequence after the others, in sixteenths of a bit.
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

    /// Returns the total cost of `letters` (`a` to `z`) and of their end, in sixteenths of a bit.
    /// The cost of each letter is that of the longest known sequence that ends with it.
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

/// Number of symbols to look up at a time, so that their cache misses overlap.
const AHEAD: usize = 16;

/// A sequence's tag, and the bucket where its search starts.
#[derive(Clone, Copy, Default)]
struct Look {
    at: usize,
    tag: u16,
    bucket: Bucket,
}

/// A symbol whose lookups are in progress.
#[derive(Clone, Copy, Default)]
struct Ahead {
    /// Lookups, by length of the sequence.
    looks: [Look; LENGTHS],
    /// Number of symbols up to and including this one, counting the edge before the first.
    seen: usize,
    /// Cost of the symbol after three letters.
    plain: u32,
}

#[cfg(test)]
mod tests {
    use super::super::sequence_table;
    use super::super::sequences::SLOTS;
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
        let unpacked = include_bytes!(concat!(env!("OUT_DIR"), "/sequences"));
        let (mut count, mut others) = (0, 0);
        let mut before = None;
        for (length, sequence, cost) in sequence_table::sequences(unpacked) {
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
