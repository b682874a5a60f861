//! Words of all lists in, how common each is in every tongue out: one table of eight bytes a word,
//! with the words themselves left where they stand in the program.

use rustc_hash::FxHashMap;

use super::dictionary::{Levels, Tongue};

/// Slots in a group.
const GROUP: usize = 8;
/// The tag of a slot without a word.
const EMPTY: u8 = 0;
const OFFSET_BITS: u32 = 24;
const LIST_BITS: u32 = 5;
const LEN_BITS: u32 = 6;
const LEVELS_BITS: u32 = 16;
const _: () = assert!(OFFSET_BITS + LIST_BITS + LEN_BITS + LEVELS_BITS <= u64::BITS);

/// Where a word stands.
#[derive(Clone, Copy)]
struct Place {
    list: usize,
    offset: usize,
    len: usize,
}

/// Words with their levels.
pub struct Lexicon {
    lists: Vec<&'static str>,
    /// Open addressing by groups of eight slots: of each slot a byte of the hash of its word, 0 for
    /// an empty one. A group is looked at in one go, and nearly all that is no word ends there.
    tags: Vec<[u8; GROUP]>,
    /// From the lowest bit on: where the word stands in its list, which list that is, the word's
    /// bytes, and the number of its levels.
    slots: Vec<u64>,
    /// All combinations that words have: a few thousand.
    levels: Vec<Levels>,
}

/// A [`Lexicon`] that words are put into.
pub struct Builder {
    lexicon: Lexicon,
    numbers: FxHashMap<Levels, u16>,
    words: usize,
}

/// The hash of a text, which can grow by a letter at a time.
#[derive(Clone, Copy, Default)]
pub struct Hash(u64);

impl Hash {
    /// That of a whole text.
    pub fn of(text: &[u8]) -> Hash {
        text.iter().fold(Hash::default(), |hash, &letter| hash.with(letter))
    }

    /// That of the text with one more letter.
    #[inline]
    pub fn with(self, letter: u8) -> Hash {
        let Hash(hash) = self;
        Hash(hash.wrapping_add(letter.into()).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The group where a search begins: by the highest bits, which all letters reach.
    fn group(self, groups: usize) -> usize {
        (((self.0 >> 32) * groups as u64) >> 32) as usize
    }

    /// By bits below those that choose the group; not 0.
    fn tag(self) -> u8 {
        ((self.0 >> 24) as u8).max(EMPTY + 1)
    }
}

impl Lexicon {
    /// What is known of `text`, whose hash is `hash`.
    #[inline]
    pub fn get(&self, text: &[u8], hash: Hash) -> Option<Levels> {
        let at = self.find(text, hash).ok()?;
        Some(self.levels[levels_number(self.slots[at])])
    }

    /// The slot where it stands, or else where it would.
    #[inline]
    fn find(&self, text: &[u8], hash: Hash) -> Result<usize, usize> {
        let own = u64::from_le_bytes([hash.tag(); GROUP]);
        let mut at = hash.group(self.tags.len());
        loop {
            let group = u64::from_le_bytes(self.tags[at]);
            let mut alike = zero_bytes(group ^ own);
            while alike != 0 {
                let slot = GROUP * at + first_byte(alike);
                if self.word(self.slots[slot]).as_bytes() == text {
                    return Ok(slot);
                }
                alike &= alike - 1;
            }
            let empty = zero_bytes(group);
            if empty != 0 {
                return Err(GROUP * at + first_byte(empty));
            }
            at = if at + 1 < self.tags.len() { at + 1 } else { 0 };
        }
    }

    /// Every word, in no particular order.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + '_ {
        let tags = self.tags.as_flattened().iter();
        let slots = tags.zip(&self.slots).filter(|&(&tag, _)| tag != EMPTY);
        slots.map(|(_, &slot)| self.word(slot))
    }

    fn word(&self, slot: u64) -> &'static str {
        let Place { list, offset, len } = Place::of(slot);
        &self.lists[list][offset..offset + len]
    }
}

/// The highest bit of each byte that is 0. Bytes above one that is may be marked, too.
fn zero_bytes(bytes: u64) -> u64 {
    const LOWEST: u64 = u64::from_le_bytes([1; 8]);
    bytes.wrapping_sub(LOWEST) & !bytes & (LOWEST << 7)
}

fn first_byte(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

fn levels_number(slot: u64) -> usize {
    (slot >> (OFFSET_BITS + LIST_BITS + LEN_BITS)) as usize & ((1 << LEVELS_BITS) - 1)
}

impl Place {
    fn of(slot: u64) -> Place {
        let bits = |from: u32, bits: u32| (slot >> from) as usize & ((1 << bits) - 1);
        Place {
            offset: bits(0, OFFSET_BITS),
            list: bits(OFFSET_BITS, LIST_BITS),
            len: bits(OFFSET_BITS + LIST_BITS, LEN_BITS),
        }
    }

    fn slot(self, levels: u16) -> u64 {
        let Place { list, offset, len } = self;
        debug_assert!(offset >> OFFSET_BITS == 0 && list >> LIST_BITS == 0 && len >> LEN_BITS == 0);
        let place = offset | list << OFFSET_BITS | len << (OFFSET_BITS + LIST_BITS);
        let levels = u64::from(levels) << (OFFSET_BITS + LIST_BITS + LEN_BITS);
        place as u64 | levels
    }
}

impl Builder {
    /// For at most so many different words out of `lists`: at most 32, each below 16 MiB.
    pub fn new(lists: Vec<&'static str>, words_max: usize) -> Builder {
        // Half as many again: a search for what is not there ends after a few slots.
        let groups = (words_max + words_max / 2) / GROUP + 1;
        let (tags, slots) = (vec![[EMPTY; GROUP]; groups], vec![0; groups * GROUP]);
        let levels = vec![Levels::default()];
        let numbers = FxHashMap::from_iter([(Levels::default(), 0)]);
        Builder { lexicon: Lexicon { lists, tags, slots, levels }, numbers, words: 0 }
    }

    /// Raises the levels of `word`, which stands in the list with this number at `offset` and has
    /// 1 to 63 bytes.
    pub fn raise(&mut self, list: usize, offset: usize, word: &str, tongue: Tongue, level: u8) {
        let hash = Hash::of(word.as_bytes());
        let Lexicon { tags, slots, levels: numbered, .. } = &self.lexicon;
        let (at, mut levels, place) = match self.lexicon.find(word.as_bytes(), hash) {
            Ok(at) => (at, numbered[levels_number(slots[at])], Place::of(slots[at])),
            Err(at) => {
                self.words += 1;
                assert!(self.words < GROUP * tags.len(), "there are more words than announced");
                (at, Levels::default(), Place { list, offset, len: word.len() })
            }
        };
        self.lexicon.tags[at / GROUP][at % GROUP] = hash.tag();
        levels.raise(tongue, level);
        self.lexicon.slots[at] = place.slot(self.number(levels));
    }

    fn number(&mut self, levels: Levels) -> u16 {
        *self.numbers.entry(levels).or_insert_with(|| {
            let number = self.lexicon.levels.len();
            self.lexicon.levels.push(levels);
            u16::try_from(number).expect("words have a few thousand combinations of levels")
        })
    }

    /// All words put in.
    pub fn finish(mut self) -> Lexicon {
        self.lexicon.levels.shrink_to_fit();
        self.lexicon
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn words_are_found_and_others_are_not() {
        const LISTS: [&str; 2] = ["ab b cab abc bca zzz", "b abc q zzzz"];
        let mut builder = Builder::new(LISTS.to_vec(), 8);
        let mut expected: HashMap<&str, Levels> = HashMap::new();
        for (list, text) in LISTS.iter().enumerate() {
            let mut offset = 0;
            for (rank, word) in text.split(' ').enumerate() {
                let (tongue, level) = (Tongue::numbered(list as u8), rank as u8 + 1);
                builder.raise(list, offset, word, tongue, level);
                expected.entry(word).or_default().raise(tongue, level);
                offset += word.len() + 1;
            }
        }
        let lexicon = builder.finish();
        let mut words: Vec<_> = lexicon.words().collect();
        let mut own: Vec<_> = expected.keys().copied().collect();
        words.sort_unstable();
        own.sort_unstable();
        assert_eq!(words, own);
        for text in ["", "a", "ab", "b", "c", "cab", "abc", "bca", "z", "zz", "zzz", "zzzz", "q"] {
            let got = lexicon.get(text.as_bytes(), Hash::of(text.as_bytes()));
            assert_eq!(got, expected.get(text).copied(), "{text}");
        }
    }
}
