//! Names to ordinals and back: fsts, each over a range of names, so that they are built side by
//! side. Values count the names up over all of them, so that a prefix is one range of ordinals
//! wherever the borders lie.

use std::cmp::Ordering;
use std::ops::Range;

use fst::raw::{Fst, Node, Output};

/// An fst over bytes that we own.
pub type OwnedFst = Fst<Vec<u8>>;

/// All names of a generation, in name order.
pub struct NameAutomaton {
    /// The first ordinal of each fst, ascending, and the fst. None is empty.
    shards: Vec<(u32, OwnedFst)>,
    len: u32,
}

impl NameAutomaton {
    /// An automaton of fsts whose names follow each other, their values counting up from 0 over
    /// all of them. Empty ones are left out.
    pub fn new(fsts: impl IntoIterator<Item = OwnedFst>) -> NameAutomaton {
        let mut len = 0;
        let mut shards = Vec::new();
        for fst in fsts.into_iter().filter(|fst| !fst.is_empty()) {
            let first = len;
            len += fst.len() as u32;
            shards.push((first, fst));
        }
        NameAutomaton { shards, len }
    }

    /// Names in all.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ordinal of a canonical name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.shards.iter().find_map(|(_, fst)| fst.get(name)).map(|found| found.value() as u32)
    }

    /// The name of an ordinal below [`NameAutomaton::len`], into `text`.
    pub fn name_into(&self, ordinal: u32, text: &mut Vec<u8>) {
        text.clear();
        let after = self.shards.partition_point(|(first, _)| *first <= ordinal);
        if let Some((_, fst)) = after.checked_sub(1).and_then(|at| self.shards.get(at)) {
            fst.get_key_into(u64::from(ordinal), text);
        }
    }

    /// The ordinals of the names that start with `prefix`.
    pub fn range(&self, prefix: &[u8]) -> Range<u32> {
        let mut found = 0..0;
        for (_, fst) in &self.shards {
            let part = prefix_range(fst, prefix);
            if found.is_empty() {
                found = part;
            } else if !part.is_empty() {
                found.end = part.end;
            }
        }
        found
    }

    /// In how many TLDs `label` (A-label form) stands.
    pub fn tld_spread(&self, label: &str) -> u32 {
        let mut prefix = Vec::with_capacity(label.len() + 1);
        prefix.extend_from_slice(label.as_bytes());
        prefix.push(b'.');
        // A label holds no dot, so what starts with `label.` is that label in some TLD.
        self.range(&prefix).len() as u32
    }

    /// Checks every fst's own checksum.
    ///
    /// # Errors
    /// Those of fst.
    pub fn verify(&self) -> fst::Result<()> {
        self.shards.iter().try_for_each(|(_, fst)| fst.verify())
    }
}

/// The values of the keys that start with `prefix`, in an fst whose values count its keys up.
fn prefix_range(fst: &OwnedFst, prefix: &[u8]) -> Range<u32> {
    let mut node = fst.root();
    let mut output = Output::zero();
    for &byte in prefix {
        let Some(at) = node.find_input(byte) else { return 0..0 };
        let transition = node.transition(at);
        output = output.cat(transition.out);
        node = fst.node(transition.addr);
    }
    match (edge(fst, node, output, Ordering::Less), edge(fst, node, output, Ordering::Greater)) {
        (Some(first), Some(last)) => first..last + 1,
        _ => 0..0,
    }
}

/// The value of the first or last key below `node`; `None` in an empty fst.
fn edge<'a>(
    fst: &'a OwnedFst,
    mut node: Node<'a>,
    mut output: Output,
    side: Ordering,
) -> Option<u32> {
    loop {
        let at = match side {
            // A key that ends here stands before all that go on.
            Ordering::Less if node.is_final() => break,
            Ordering::Less => 0,
            _ if node.is_empty() => break,
            _ => node.len() - 1,
        };
        if node.is_empty() {
            return None;
        }
        let transition = node.transition(at);
        output = output.cat(transition.out);
        node = fst.node(transition.addr);
    }
    node.is_final().then(|| output.cat(node.final_output()).value() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An automaton cut before each of `cuts`.
    fn automaton(names: &[&str], cuts: &[usize]) -> NameAutomaton {
        let borders: Vec<usize> = [0].iter().chain(cuts).copied().chain([names.len()]).collect();
        NameAutomaton::new(borders.windows(2).map(|border| {
            let mut builder = fst::raw::Builder::memory();
            for (at, name) in names.iter().enumerate().take(border[1]).skip(border[0]) {
                builder.insert(name, at as u64).expect("sorted");
            }
            Fst::new(builder.into_inner().expect("built")).expect("an fst")
        }))
    }

    #[test]
    fn a_prefix_is_one_range() {
        let names = [
            "a-b.com", "a.com", "a.de", "a1.com", "ab.co", "ab.co.uk", "ab.com", "b.com",
            "xn--a.de",
        ];
        for cuts in [&[] as &[usize], &[4], &[0, 4, 4, 7], &[1, 2, 3, 4, 5, 6, 7, 8], &[9]] {
            let automaton = automaton(&names, cuts);
            assert_eq!(automaton.len(), names.len() as u32);
            for prefix in
                ["", "a", "a.", "ab", "ab.co", "ab.com", "b", "xn", "zz", "ab.comm", "a.com"]
            {
                let expected: Vec<u32> = (0..names.len() as u32)
                    .filter(|&at| names[at as usize].starts_with(prefix))
                    .collect();
                let found: Vec<u32> = automaton.range(prefix.as_bytes()).collect();
                assert_eq!(found, expected, "{prefix}, cut at {cuts:?}");
            }
            let mut text = Vec::new();
            for (at, name) in (0..).zip(names) {
                assert_eq!(automaton.find(name), Some(at));
                automaton.name_into(at, &mut text);
                assert_eq!(text, name.as_bytes());
            }
            assert_eq!(automaton.find("ab"), None);
            assert_eq!(automaton.tld_spread("ab"), 3);
        }
        assert!(automaton(&[], &[]).range(b"").is_empty());
        assert!(automaton(&[], &[]).range(b"a").is_empty());
    }
}
