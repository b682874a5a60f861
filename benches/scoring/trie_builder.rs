//! Places the nodes of the scorer's word trie (`src/scorer/trie.rs` describes the layout).
//!
//! The scorer's tests build `data/scorer/trie.bin` with it, and the bench `scoring` builds a trie of
//! the words into which it splits labels.

use std::collections::VecDeque;

use super::trie::{LETTER_BITS, Node};

/// `a` to `z` are 1 to 26.
const LETTERS: usize = 26;
/// The base of nodes without children: no node is placed here.
const NO_CHILDREN: u32 = 0;
const FREE: Node = [NO_CHILDREN, 0];
/// Number of failed attempts after which the search for the next node starts where this one ended.
const TRIES_MAX: usize = 64;

/// Numbers `words` by their positions. The words consist of `a` to `z`, are not empty, and all
/// differ.
pub fn build(words: &[&str]) -> Vec<Node> {
    let mut sorted: Vec<_> = words.iter().map(|word| word.as_bytes()).zip(1..).collect();
    sorted.sort_unstable();
    let mut builder = Builder {
        nodes: vec![FREE; LETTERS + 1],
        taken: vec![true],
        from: [LETTERS + 1; LETTERS + 1],
    };
    builder.place_all(&sorted);
    builder.nodes
}

/// A word and its number from 1.
type Numbered<'a> = (&'a [u8], u32);

/// Sorted words with a common prefix that are still to be placed below `node`.
struct Branch<'w, 'a> {
    words: &'w [Numbered<'a>],
    depth: usize,
    node: usize,
}

struct Builder {
    nodes: Vec<Node>,
    /// Bases in use.
    taken: Vec<bool>,
    /// Start of the search for free space, by number of children.
    from: [usize; LETTERS + 1],
}

impl Builder {
    fn place_all(&mut self, words: &[Numbered<'_>]) {
        // Nodes are placed breadth first, so that nodes with many children are placed before the
        // free space is fragmented.
        let mut waiting = VecDeque::from([Branch { words, depth: 0, node: 0 }]);
        while let Some(Branch { words, depth, node }) = waiting.pop_front() {
            let same = |one: &Numbered<'_>, next: &Numbered<'_>| one.0[depth] == next.0[depth];
            let children: Vec<_> = words.chunk_by(same).collect();
            let letters: Vec<_> =
                children.iter().map(|words| words[0].0[depth] - (b'a' - 1)).collect();
            let base = self.place(&letters);
            self.nodes[node][0] = base as u32;
            for (&letter, words) in letters.iter().zip(children) {
                let at = base + usize::from(letter);
                let ends = usize::from(words[0].0.len() == depth + 1);
                let word = if ends == 1 { words[0].1 } else { 0 };
                self.nodes[at] = [NO_CHILDREN, word << LETTER_BITS | u32::from(letter)];
                if words.len() > ends {
                    let words = &words[ends..];
                    waiting.push_back(Branch { words, depth: depth + 1, node: at });
                }
            }
        }
        let used = self.nodes.iter().rposition(|node| node[1] != 0).map_or(1, |last| last + 1);
        self.nodes.truncate(used);
    }

    /// Returns the first unused base with free space for children by these letters.
    fn place(&mut self, letters: &[u8]) -> usize {
        let Some(&first) = letters.first() else { return NO_CHILDREN as usize };
        let mut tries = 0;
        let mut at = self.from[letters.len()].max(LETTERS + 1);
        loop {
            if self.nodes.len() <= at + LETTERS {
                self.nodes.resize(at + 4096, FREE);
                self.taken.resize(at + 4096, false);
            }
            let is_free = |at: usize| self.nodes[at][1] == 0;
            let base = at - usize::from(first);
            let fits = is_free(at)
                && base >= LETTERS
                && !self.taken[base]
                && letters.iter().all(|&letter| is_free(base + usize::from(letter)));
            if fits {
                self.taken[base] = true;
                // A single child fits into any gap, so the places before it are full.
                if tries > TRIES_MAX || letters.len() == 1 {
                    self.from[letters.len()] = at;
                }
                return base;
            }
            at += 1;
            tries += 1;
        }
    }
}
