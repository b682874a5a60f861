//! Searches for the texts of the substring conditions of all rules at once. In: names. Output: for
//! each text, the places of the names that contain it in either form, as with the parameter `q` of
//! the drops list.

use aho_corasick::{AhoCorasick, MatchKind};
use rayon::prelude::*;

use crate::columns::idn::alias_of;
use crate::query::index::Generation;

/// Names per parallel task.
const NAMES_PER_PIECE: usize = 1 << 12;

/// The texts, by number.
pub struct Needles {
    automaton: AhoCorasick,
    count: usize,
}

/// Places of each text, in order.
pub struct Occurrences {
    /// Start of the places of each text, and the end of the last one.
    starts: Vec<usize>,
    places: Vec<u32>,
}

impl Needles {
    /// Builds the automaton of normalised, non-empty texts.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Needles {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(texts)
            .expect("texts have up to 63 characters: states are numbered for millions of rules");
        Needles { count: automaton.patterns_len(), automaton }
    }

    /// Searches the names of `docs` for all texts.
    pub fn find(&self, index: &Generation, docs: &[u32]) -> Occurrences {
        if self.count == 0 {
            return Occurrences { starts: vec![0], places: Vec::new() };
        }
        let pieces: Vec<Vec<(u32, u32)>> = docs
            .par_chunks(NAMES_PER_PIECE)
            .enumerate()
            .map(|(at, docs)| self.find_in_piece(index, (at * NAMES_PER_PIECE) as u32, docs))
            .collect();
        Occurrences::sorted(self.count, &pieces)
    }

    /// Returns text and place of each match, by place.
    fn find_in_piece(&self, index: &Generation, first: u32, docs: &[u32]) -> Vec<(u32, u32)> {
        let (mut found, mut name, mut here) = (Vec::new(), String::new(), Vec::new());
        for (place, &doc) in (first..).zip(docs) {
            let label = index.records.label(doc);
            name.clear();
            name.extend([&label, ".", index.tlds.name(index.drops_by_rank.tld(doc))]);
            self.find_in_text(&name, &mut here);
            if let Some(alias) = alias_of(&name) {
                self.find_in_text(&alias, &mut here);
            }
            here.sort_unstable();
            here.dedup();
            found.extend(here.drain(..).map(|text| (text, place)));
        }
        found
    }

    fn find_in_text(&self, text: &str, found: &mut Vec<u32>) {
        let all = self.automaton.find_overlapping_iter(text);
        found.extend(all.map(|found| found.pattern().as_u32()));
    }
}

impl Occurrences {
    /// Sorts matches by text; places stay in order.
    fn sorted(texts: usize, pieces: &[Vec<(u32, u32)>]) -> Occurrences {
        let mut starts = vec![0usize; texts + 1];
        for &(text, _) in pieces.iter().flatten() {
            starts[text as usize + 1] += 1;
        }
        for text in 0..texts {
            starts[text + 1] += starts[text];
        }
        let mut next = starts.clone();
        let mut places = vec![0; starts[texts]];
        for &(text, place) in pieces.iter().flatten() {
            places[next[text as usize]] = place;
            next[text as usize] += 1;
        }
        Occurrences { starts, places }
    }

    /// Returns the number of texts.
    pub fn texts(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the places of a text, in order.
    pub fn places(&self, text: usize) -> &[u32] {
        &self.places[self.starts[text]..self.starts[text + 1]]
    }
}
