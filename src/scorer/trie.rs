//! Words of `a` to `z` in, a number per word out, letter by letter: a double array, in which each
//! letter of a text costs one look into one table, and letters that begin no word end the walk.
//!
//! Every node with children has a `base` of its own; its child by a letter stands at `base +
//! letter` and says which letter it is for. What stands there for another node's child has, as
//! bases differ, another letter.

/// Most words that a trie can number.
pub const WORDS_MAX: usize = (1 << (u32::BITS - LETTER_BITS)) - 2;

/// Of [`Node::end`], for the letter.
const LETTER_BITS: u32 = 5;

/// `a` to `z` are 1 to 26.
const LETTERS: usize = 26;
/// The base of nodes without children: nothing is placed here.
const BARREN: u32 = 0;
/// After so many places that did not do, the search for the next node starts where it ended.
const TRIES_MAX: usize = 64;

/// Numbered words.
pub struct Trie {
    nodes: Vec<Node>,
    root: u32,
}

#[derive(Clone, Copy)]
struct Node {
    base: u32,
    /// The letter, in the lowest bits: 0 where no node stands. Above it the number of the word that
    /// ends here, from 1; 0 for none.
    end: u32,
}

const FREE: Node = Node { base: BARREN, end: 0 };

impl Node {
    fn letter(self) -> u8 {
        (self.end & ((1 << LETTER_BITS) - 1)) as u8
    }

    fn word(self) -> u32 {
        self.end >> LETTER_BITS
    }
}

/// A walk through a [`Trie`] along the letters of a text.
#[derive(Clone, Copy)]
pub struct Walk<'a> {
    nodes: &'a [Node],
    base: u32,
}

impl Trie {
    /// Numbers `words` by their places. They are of `a` to `z`, not empty, all different, and at
    /// most [`WORDS_MAX`].
    pub fn new(words: &[&str]) -> Trie {
        debug_assert!(words.len() <= WORDS_MAX);
        let mut sorted: Vec<_> = words.iter().map(|word| word.as_bytes()).zip(1..).collect();
        sorted.sort_unstable();
        Builder::default().build(&sorted)
    }

    /// Before the first letter.
    pub fn walk(&self) -> Walk<'_> {
        Walk { nodes: &self.nodes, base: self.root }
    }
}

impl Walk<'_> {
    /// Goes on along `letter`. The number of the word that the letters so far make, if they make
    /// one; the outer `None` when they begin no word.
    #[inline]
    pub fn step(&mut self, letter: u8) -> Option<Option<u32>> {
        let letter = letter.wrapping_sub(b'a' - 1);
        let node = self.nodes.get(self.base as usize + usize::from(letter))?;
        if node.letter() != letter || letter == 0 {
            return None;
        }
        self.base = node.base;
        Some(node.word().checked_sub(1))
    }
}

/// A sorted word and its number from 1.
type Numbered<'a> = (&'a [u8], u32);

/// Words that begin alike, still to be placed below `node`.
struct Branch<'w, 'a> {
    words: &'w [Numbered<'a>],
    depth: usize,
    /// `None` for the root.
    node: Option<usize>,
}

struct Builder {
    nodes: Vec<Node>,
    taken: Vec<bool>,
    /// By number of children: where to start looking for room.
    from: [usize; LETTERS + 1],
}

impl Default for Builder {
    fn default() -> Builder {
        let nodes = vec![FREE; LETTERS + 1];
        Builder { nodes, taken: vec![true], from: [LETTERS + 1; LETTERS + 1] }
    }
}

impl Builder {
    fn build(mut self, words: &[Numbered<'_>]) -> Trie {
        let mut root = BARREN;
        // Breadth first: nodes with many children find room before it is in pieces.
        let mut waiting =
            std::collections::VecDeque::from([Branch { words, depth: 0, node: None }]);
        while let Some(Branch { words, depth, node }) = waiting.pop_front() {
            let same =
                |(one, _): &Numbered<'_>, (next, _): &Numbered<'_>| one[depth] == next[depth];
            let children: Vec<_> = words.chunk_by(same).collect();
            let letters: Vec<_> =
                children.iter().map(|words| words[0].0[depth] - (b'a' - 1)).collect();
            let base = self.place(&letters);
            match node {
                Some(node) => self.nodes[node].base = base as u32,
                None => root = base as u32,
            }
            for (&letter, words) in letters.iter().zip(children) {
                let at = base + usize::from(letter);
                let ends = usize::from(words[0].0.len() == depth + 1);
                let word = if ends == 1 { words[0].1 } else { 0 };
                let end = word << LETTER_BITS | u32::from(letter);
                self.nodes[at] = Node { base: BARREN, end };
                if words.len() > ends {
                    let words = &words[ends..];
                    waiting.push_back(Branch { words, depth: depth + 1, node: Some(at) });
                }
            }
        }
        self.nodes.shrink_to_fit();
        Trie { nodes: self.nodes, root }
    }

    /// The first base that nobody has and that leaves room for children by these letters.
    fn place(&mut self, letters: &[u8]) -> usize {
        let Some(&first) = letters.first() else { return BARREN as usize };
        let mut tries = 0;
        let mut at = self.from[letters.len()].max(LETTERS + 1);
        loop {
            if self.nodes.len() <= at + LETTERS {
                self.nodes.resize(at + 4096, FREE);
                self.taken.resize(at + 4096, false);
            }
            if self.nodes[at].letter() == 0 {
                let base = at - usize::from(first);
                let free = |&letter: &u8| self.nodes[base + usize::from(letter)].letter() == 0;
                if base >= LETTERS && !self.taken[base] && letters.iter().all(free) {
                    self.taken[base] = true;
                    self.advance(letters.len(), at, tries);
                    return base;
                }
            }
            at += 1;
            tries += 1;
        }
    }

    fn advance(&mut self, children: usize, at: usize, tries: usize) {
        // Alone a child fills any gap; what is before the place it found is full.
        if tries > TRIES_MAX || children == 1 {
            self.from[children] = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn check(words: &[&str], texts: &[String]) {
        let trie = Trie::new(words);
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
    fn words_are_found_with_their_numbers_and_others_are_not() {
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
    fn what_is_no_letter_begins_no_word() {
        let trie = Trie::new(&["a", "az", "zz"]);
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_lowercase()) {
            assert_eq!(trie.walk().step(byte), None);
            let mut walk = trie.walk();
            assert_eq!((walk.step(b'a'), walk.step(byte)), (Some(Some(0)), None));
        }
    }
}
