//! A trie over numbered words of `a` to `z`, as a double array. Each letter of a text costs one
//! lookup in one table, and the walk ends at the first letter that continues no word.
//!
//! A node with children has a unique `base`. The child of a node for a letter is at index `base +
//! letter` and records that letter. If another node's child is at that index, it records a
//! different letter, because bases differ.

/// Bits of a node's second number that hold its letter.
pub const LETTER_BITS: u32 = 5;

/// A node: its base, then its letter in the lowest [`LETTER_BITS`] (0 for an empty place) and above it
/// the number of the word that ends here, from 1 (0 for none). The first element is not a node; it
/// holds the base of the root.
pub type Node = [u32; 2];

/// The trie of numbered words.
#[derive(Clone, Copy)]
pub struct Trie<'a> {
    nodes: &'a [Node],
}

/// A walk through a [`Trie`] along the letters of a text.
#[derive(Clone, Copy)]
pub struct TrieWalk<'a> {
    nodes: &'a [Node],
    base: u32,
}

impl<'a> Trie<'a> {
    /// Creates a trie over at least one node. `benches/scoring/trie_builder.rs` places the nodes.
    pub fn new(nodes: &'a [Node]) -> Trie<'a> {
        Trie { nodes }
    }

    /// Starts before the first letter.
    pub fn walk(&self) -> TrieWalk<'a> {
        TrieWalk { nodes: self.nodes, base: self.nodes[0][0] }
    }
}

impl TrieWalk<'_> {
    /// Continues along `letter`. Returns the number of the word that the letters so far spell, if
    /// any. The outer `None` means that no word starts with them.
    #[inline]
    pub fn step(&mut self, letter: u8) -> Option<Option<u32>> {
        let letter = letter.wrapping_sub(b'a' - 1);
        let [base, end] = *self.nodes.get(self.base as usize + usize::from(letter))?;
        if end & ((1 << LETTER_BITS) - 1) != u32::from(letter) || letter == 0 {
            return None;
        }
        self.base = base;
        Some((end >> LETTER_BITS).checked_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::trie_builder::build;
    use super::*;

    fn check(words: &[&str], texts: &[String]) {
        let nodes = build(words);
        let trie = Trie::new(&nodes);
        let numbers: HashMap<_, _> = words.iter().copied().zip(0u32..).collect();
        for text in texts.iter().map(String::as_str).chain(words.iter().copied()) {
            let mut walk = trie.walk();
            for end in 1..=text.len() {
                let begins = words.iter().any(|word| word.starts_with(&text[..end]));
                let step = walk.step(text.as_bytes()[end - 1]);
                assert_eq!(step.is_some(), begins, "{}", &text[..end]);
                match step {
                    Some(word) => assert_eq!(word, numbers.get(&text[..end]).copied()),
                    None => break,
                }
            }
        }
    }

    #[test]
    fn only_listed_words_are_found_with_their_numbers() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        };
        for (alphabet, count) in [(2, 30), (3, 300), (26, 300), (26, 0), (26, 1)] {
            let mut text = |letters| -> String {
                (0..=draw(letters)).map(|_| char::from(b'a' + draw(alphabet) as u8)).collect()
            };
            let words: std::collections::HashSet<String> = (0..count).map(|_| text(7)).collect();
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let texts: Vec<_> = (0..300).map(|_| text(9)).collect();
            check(&words, &texts);
        }
    }

    #[test]
    fn bytes_other_than_letters_end_the_walk() {
        let nodes = build(&["a", "az", "zz"]);
        let trie = Trie::new(&nodes);
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_lowercase()) {
            assert_eq!(trie.walk().step(byte), None);
            let mut walk = trie.walk();
            assert_eq!((walk.step(b'a'), walk.step(byte)), (Some(Some(0)), None));
        }
    }
}
