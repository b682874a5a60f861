//! A run of letters in, the cheapest way to say it out: known words, and letters that are none.
//!
//! Costs are information: what a word costs is how rare it is among the words of registered names,
//! what other letters cost is a fee for leaving the dictionary and then how unlikely each letter is
//! after those before it ([`LetterModel`]). The cheapest way is so the most probable one, and its
//! cost says how familiar the whole is. Whole numbers only, so that every platform agrees.

use super::letters::{Context, LetterModel};
use super::trie::{Node, Trie};

/// In sixteenths of a bit.
pub type Cost = u32;

/// The longest word that is looked for, in letters.
const WORD_LETTERS_MAX: usize = 24;
/// What letters that are no word cost before the first of them.
const NO_WORD_FEE: Cost = 7 * 16;
/// The number of what is no word.
const NO_WORD: u32 = u32::MAX;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes in it.
    pub len: u8,
    /// The number of the word; `None` for what is no word.
    pub word: Option<u32>,
}

/// Words by number, and the cost of each.
pub struct Segmenter<'a> {
    trie: Trie<'a>,
    costs: &'a [u16],
}

/// What a search works in; reused from text to text.
#[derive(Clone, Default)]
pub struct Search {
    /// By end: the cheapest way there.
    best: Vec<Way>,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy)]
struct Way {
    cost: Cost,
    /// The number of the last word.
    word: u32,
    /// Its letters.
    len: u8,
}

/// Dearer than any.
const NONE: Way = Way { cost: Cost::MAX, word: NO_WORD, len: 0 };

impl<'a> Segmenter<'a> {
    /// A segmenter over the words of a trie; `costs` is by their numbers.
    pub fn new(nodes: &'a [Node], costs: &'a [u16]) -> Segmenter<'a> {
        Segmenter { trie: Trie::new(nodes), costs }
    }

    /// Splits `text` of `a` to `z`; no two neighbours are both no word.
    pub fn segment<'s>(
        &self,
        text: &str,
        letters: &LetterModel,
        search: &'s mut Search,
    ) -> (&'s [Segment], Cost) {
        let text = text.as_bytes();
        search.best.clear();
        search.best.resize(text.len() + 1, NONE);
        search.best[0].cost = 0;
        for start in 0..text.len() {
            self.go_on(&text[start..], start == 0, letters, &mut search.best[start..]);
        }
        let cost = search.best[text.len()].cost;
        search.segments.clear();
        let mut end = text.len();
        while end > 0 {
            let Way { word, len, .. } = search.best[end];
            let word = (word != NO_WORD).then_some(word);
            search.segments.push(Segment { len, word });
            end -= usize::from(len);
        }
        search.segments.reverse();
        (&search.segments, cost)
    }

    /// Tries what may follow `best[0]`, which is final: `text` begins after it.
    fn go_on(&self, text: &[u8], first: bool, letters: &LetterModel, best: &mut [Way]) {
        let Some((&mut before, best)) = best.split_first_mut() else { return };
        let mut walk = self.trie.walk();
        for ((len, &letter), best) in (1u8..).zip(text).zip(best.iter_mut()).take(WORD_LETTERS_MAX)
        {
            let Some(word) = walk.step(letter) else { break };
            let Some(word) = word else { continue };
            let cost = before.cost + Cost::from(self.costs[word as usize]);
            if cost < best.cost {
                *best = Way { cost, word, len };
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
                *best = Way { cost, word: NO_WORD, len };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trie_builder::build;
    use super::*;

    /// The cheapest way by trying all of them, and whether it ends in no word.
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
    fn the_cheapest_way_is_found() {
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
    fn any_length_is_split() {
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
