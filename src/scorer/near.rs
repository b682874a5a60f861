//! Labels that are one typing error from a known label.
//!
//! The index holds a key for each known label and for each form of it without one letter. Two labels that are
//! one error apart have such a key in common, so a label is looked up by its own keys.

use rustc_hash::FxHashMap;

/// Minimum letters of known labels, and of their misspellings; shorter ones resemble too many words.
const LETTERS_MIN: usize = 5;
/// Minimum letters of known labels for which any letter may be missing, any after the first may be added
/// or changed, and the first may be mistyped.
const ANY_LETTERS_MIN: usize = 6;

/// A label to index.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    pub label: &'a str,
    /// Whether any letter after the first may be added or changed, even in a short label.
    pub any: bool,
}

/// An index of known labels.
#[derive(Debug, Default)]
pub struct Near {
    known: Vec<Entry>,
    /// Positions of the known labels by the [`key`] of their full form and of each form without one
    /// letter.
    by_key: FxHashMap<u64, Vec<u32>>,
    /// The keys as a Bloom filter of one bit each, which the cache holds.
    filter: Vec<u64>,
    /// Maximum letters of a misspelling.
    letters_max: usize,
}

#[derive(Debug)]
struct Entry {
    label: Box<str>,
    any: bool,
}

impl Near {
    /// Indexes labels. Those with fewer than five letters have no misspellings.
    pub fn new<'a>(known: impl IntoIterator<Item = Known<'a>>) -> Near {
        let mut near = Near { filter: vec![0; FILTER_WORDS], ..Near::default() };
        for Known { label, any } in known {
            let at = near.known.len() as u32;
            if label.len() >= LETTERS_MIN {
                let mut keys: Vec<_> = keys_without(label).collect();
                keys.dedup();
                for key in keys.into_iter().chain([key(label)]) {
                    near.by_key.entry(key).or_default().push(at);
                    let (word, bit) = place(key);
                    near.filter[word] |= bit;
                }
                near.letters_max = near.letters_max.max(label.len() + 1);
            }
            near.known
                .push(Entry { label: label.into(), any: any || label.len() >= ANY_LETTERS_MIN });
        }
        near
    }

    /// Returns the known labels, with their positions, that differ from `text` by one typing error. A
    /// label may be returned twice.
    pub fn misspelt(&self, text: &str) -> impl Iterator<Item = (usize, &str)> {
        let keys = (LETTERS_MIN..=self.letters_max).contains(&text.len());
        let keys = keys.then(|| std::iter::once(key(text)).chain(keys_without(text)));
        keys.into_iter().flatten().filter(|&key| self.may_hold(key)).flat_map(move |key| {
            let positions = self.by_key.get(&key).into_iter().flatten();
            positions.filter_map(move |&at| {
                let known = &self.known[at as usize];
                known.is_misspelt(text).then_some((at as usize, &*known.label))
            })
        })
    }

    fn may_hold(&self, key: u64) -> bool {
        let (word, bit) = place(key);
        self.filter[word] & bit != 0
    }
}

/// Multiplier of [`key`], and its inverse.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = 0xf1de_83e1_9937_733d;

/// Length of the Bloom filter.
const FILTER_WORDS: usize = 1 << 12;

/// Returns the word and the bit of a key in the Bloom filter.
fn place(key: u64) -> (usize, u64) {
    let mixed = key.wrapping_mul(FACTOR);
    ((mixed >> 52) as usize % FILTER_WORDS, 1 << (mixed >> 46 & 63))
}

/// Returns a hash of a text: its letters as digits of a number, the first one lowest.
fn key(text: &str) -> u64 {
    text.bytes()
        .rev()
        .fold(0, |key: u64, letter| key.wrapping_mul(FACTOR).wrapping_add(letter.into()))
}

/// Returns the [`key`] of each text that lacks one letter, in the order of the letters.
fn keys_without(text: &str) -> impl Iterator<Item = u64> {
    let (mut before, mut after, mut place) = (0u64, key(text), 1u64);
    text.bytes().map(move |letter| {
        after = after.wrapping_sub(letter.into()).wrapping_mul(INVERSE);
        let key = before.wrapping_add(after.wrapping_mul(place));
        before = before.wrapping_add(place.wrapping_mul(letter.into()));
        place = place.wrapping_mul(FACTOR);
        key
    })
}

impl Entry {
    /// Returns true if `text` is the label with one typing error that people make in labels of this
    /// length: letters swapped, doubled, missing, added or replaced.
    fn is_misspelt(&self, text: &str) -> bool {
        let (label, text) = (self.label.as_bytes(), text.as_bytes());
        // The first letter that differs.
        let at = label.iter().zip(text).take_while(|(one, other)| one == other).count();
        match (&label[at..], &text[at..]) {
            ([wanted, after @ ..], [typed, rest @ ..]) if after == rest => {
                let slipped = are_neighbours(*wanted, *typed);
                if at > 0 { self.any || slipped } else { self.any && slipped }
            }
            ([one, other, after @ ..], [first, second, rest @ ..])
                if after == rest && one == second && other == first =>
            {
                true
            }
            (after, [typed, rest @ ..]) if after == rest => {
                at > 0 && (self.any || text[at - 1] == *typed)
            }
            ([_, after @ ..], rest) => after == rest && label.len() >= ANY_LETTERS_MIN,
            _ => false,
        }
    }
}

/// Returns true for letters whose keys are next to each other on an English keyboard.
fn are_neighbours(one: u8, other: u8) -> bool {
    /// Rows of keys; each key lies below those with the same and with the next number.
    const ROWS: [&[u8]; 3] = [b"qwertyuiop", b"asdfghjkl", b"zxcvbnm"];
    let place = |letter: u8| {
        let find = |row: &&[u8]| row.iter().position(|&key| key == letter);
        ROWS.iter().enumerate().find_map(|(row, keys)| Some((row, find(keys)?)))
    };
    let (Some(one), Some(other)) = (place(one), place(other)) else { return false };
    let (upper, lower) = if one.0 <= other.0 { (one, other) } else { (other, one) };
    match lower.0 - upper.0 {
        0 => upper.1.abs_diff(lower.1) == 1,
        1 => upper.1 == lower.1 || upper.1 == lower.1 + 1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_a_letter_are_those_of_the_shorter_texts() {
        let text = "instagram";
        let shorter = (0..text.len()).map(|at| key(&format!("{}{}", &text[..at], &text[at + 1..])));
        assert!(keys_without(text).eq(shorter));
    }

    #[test]
    fn each_kind_of_error_is_found_once_and_other_labels_are_not() {
        let known = |label| Known { label, any: false };
        let near = Near::new(["twitter", "apple", "ebay"].map(known));
        let found = |text| near.misspelt(text).map(|(_, label)| label).next();
        let errors = ["twiter", "twittter", "twtiter", "twitrer", "twitters", "witter", "rwitter"];
        for error in errors {
            assert_eq!(found(error), Some("twitter"), "{error}");
        }
        // In five letters, only a key beside the right one, a doubled letter or a swap.
        for error in ["appke", "applle", "aplpe"] {
            assert_eq!(found(error), Some("apple"), "{error}");
        }
        for other in
            ["twitter", "twister2", "tvitterr", "apply2", "ample", "pple", "ebey", "eby", "", "é"]
        {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
