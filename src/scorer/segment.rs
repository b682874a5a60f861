//! Splits a run of letters into known words and other letters, at the lowest cost.
//!
//! Costs are information content: rare words cost more than common ones. Letters outside words cost
//! a fee, plus the information of each letter given the preceding ones ([`LetterModel`]). The
//! cheapest split is thus the most probable, and its cost measures how familiar the text is. All
//! numbers are integers, so that every platform computes the same result.

use super::letters::{Context, LetterModel};
use super::trie::{Node, Trie};

/// Cost in sixteenths of a bit.
pub type Cost = u32;

/// Maximum letters of a word.
const WORD_LETTERS_MAX: usize = 24;
/// Fee for a run of letters outside words.
pub const NO_WORD_FEE: Cost = 7 * 16;
/// Word number that stands for letters outside words.
const NO_WORD: u32 = u32::MAX;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Length in bytes.
    pub len: u8,
    /// Number of the word; `None` for other letters.
    pub word: Option<u32>,
}

/// Splits text into words, given the cost of each word by number.
pub struct Segmenter<'a> {
    trie: Trie<'a>,
    costs: &'a [u16],
}

/// Working memory of a search, reused from text to text.
#[derive(Clone, Default)]
pub struct Search {
    /// The cheapest path to each position.
    best: Vec<Path>,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy)]
struct Path {
    cost: Cost,
    /// Number of the last word.
    word: u32,
    /// Letters of the last segment.
    len: u8,
}

/// Path more expensive than any real one.
const NO_PATH: Path = Path { cost: Cost::MAX, word: NO_WORD, len: 0 };

impl<'a> Segmenter<'a> {
    /// Creates a segmenter over the words of a trie; `costs` is indexed by their numbers.
    pub fn new(nodes: &'a [Node], costs: &'a [u16]) -> Segmenter<'a> {
        Segmenter { trie: Trie::new(nodes), costs }
    }

    /// Returns the cost of a word.
    pub fn cost(&self, word: u32) -> Cost {
        self.costs[word as usize].into()
    }

    /// Splits `text` of `a` to `z`; adjacent letters outside words form one segment.
    pub fn segment<'s>(
        &self,
        text: &str,
        letters: &LetterModel,
        search: &'s mut Search,
    ) -> (&'s [Segment], Cost) {
        let text = text.as_bytes();
        search.best.clear();
        search.best.resize(text.len() + 1, NO_PATH);
        search.best[0].cost = 0;
        for start in 0..text.len() {
            self.extend(&text[start..], start == 0, letters, &mut search.best[start..]);
        }
        let cost = search.best[text.len()].cost;
        search.segments.clear();
        let mut end = text.len();
        while end > 0 {
            let Path { word, len, .. } = search.best[end];
            let word = (word != NO_WORD).then_some(word);
            search.segments.push(Segment { len, word });
            end -= usize::from(len);
        }
        search.segments.reverse();
        (&search.segments, cost)
    }

    /// Extends the final path `best[0]` by each segment that `text` may start with.
    fn extend(&self, text: &[u8], first: bool, letters: &LetterModel, best: &mut [Path]) {
        let Some((&mut before, best)) = best.split_first_mut() else { return };
        let mut walk = self.trie.walk();
        for ((len, &letter), best) in (1u8..).zip(text).zip(best.iter_mut()).take(WORD_LETTERS_MAX)
        {
            let Some(word) = walk.step(letter) else { break };
            let Some(word) = word else { continue };
            let cost = before.cost + Cost::from(self.costs[word as usize]);
            if cost < best.cost {
                *best = Path { cost, word, len };
            }
        }
        if !first && before.word == NO_WORD {
            return;
        }
        let (mut context, mut spelt) = (Context::default(), before.cost + NO_WORD_FEE);
        for ((len, &letter), best) in (1u8..).zip(text).zip(best) {
            spelt += letters.next(&mut context, letter);
            let cost = spelt + letters.end(context);
            if cost < best.cost {
                *best = Path { cost, word: NO_WORD, len };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trie_builder::build;
    use super::*;

    /// Finds the lowest cost by trying all splits.
    fn cheapest(words: &[(&str, u16)], text: &str, after_no_word: bool) -> Option<Cost> {
        if text.is_empty() {
            return Some(0);
        }
        let letters = LetterModel::names();
        let known =
            words.iter().filter(|(word, _)| text.starts_with(word)).filter_map(|&(word, cost)| {
                Some(Cost::from(cost) + cheapest(words, &text[word.len()..], false)?)
            });
        let spelt = (1..=text.len()).filter(|_| !after_no_word).filter_map(|end| {
            let cost = NO_WORD_FEE + letters.cost(&text[..end]).0;
            Some(cost + cheapest(words, &text[end..], true)?)
        });
        known.chain(spelt).min()
    }

    #[test]
    fn the_cheapest_split_is_found() {
        let words = [
            ("best", 150),
            ("hotel", 140),
            ("be", 120),
            ("sth", 300),
            ("ot", 200),
            ("hot", 160),
            ("el", 170),
        ];
        let nodes = build(&words.map(|(word, _)| word));
        let costs = words.map(|(_, cost)| cost);
        let segmenter = Segmenter::new(&nodes, &costs);
        let mut search = Search::default();
        for text in
            ["besthotel", "hotel", "xhotel", "hotelx", "zzz", "b", "hotelhotel", "bestzqhot"]
        {
            let (segments, cost) = segmenter.segment(text, LetterModel::names(), &mut search);
            assert_eq!(
                segments.iter().map(|segment| usize::from(segment.len)).sum::<usize>(),
                text.len()
            );
            assert_eq!(
                cost,
                cheapest(&words, text, false).expect("letters can be spelt"),
                "{text}"
            );
            let unknown =
                segments.windows(2).any(|pair| pair.iter().all(|segment| segment.word.is_none()));
            assert!(!unknown, "{text}");
        }
        let (segments, _) = segmenter.segment("besthotel", LetterModel::names(), &mut search);
        assert_eq!(
            segments,
            [Segment { len: 4, word: Some(0) }, Segment { len: 5, word: Some(1) }]
        );
    }

    #[test]
    fn runs_of_any_length_are_split() {
        let nodes = build(&["aa"]);
        let segmenter = Segmenter::new(&nodes, &[100]);
        let mut search = Search::default();
        for len in 1..=252 {
            let text = "a".repeat(len);
            let (segments, _) = segmenter.segment(&text, LetterModel::names(), &mut search);
            assert_eq!(segments.iter().map(|segment| usize::from(segment.len)).sum::<usize>(), len);
        }
        assert!(segmenter.segment("", LetterModel::names(), &mut search).0.is_empty());
    }
}
