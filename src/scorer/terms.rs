//! Words that explanations never print, and those among them that hold a score down, from
//! `data/scorer/terms.csv`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dictionary::Token;
use super::label::Label;

static TABLE: &str = include_str!("../../data/scorer/terms.csv");

/// Letters from which a term is looked for inside of longer words: shorter ones are in too many.
const INSIDE_LETTERS_MIN: usize = 4;

/// The reviewed list.
pub struct Terms {
    unprintable: FxHashSet<&'static str>,
    /// The longer ones by their first [`INSIDE_LETTERS_MIN`] letters, which few words hold.
    inside: FxHashMap<[u8; INSIDE_LETTERS_MIN], Vec<&'static str>>,
    slurs: FxHashSet<&'static str>,
}

impl Terms {
    /// The table the program was built with.
    pub fn load() -> Terms {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        let kinds: FxHashMap<_, _> = rows.filter_map(|row| row.split_once(',')).collect();
        let mut inside: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for &term in kinds.keys() {
            if let Some(head) = term.as_bytes().first_chunk() {
                inside.entry(*head).or_default().push(term);
            }
        }
        let slurs = kinds.iter().filter(|&(_, &kind)| kind == "slur");
        Terms {
            slurs: slurs.map(|(&term, _)| term).collect(),
            inside,
            unprintable: kinds.keys().copied().collect(),
        }
    }

    /// True when a piece of the label, or the whole of it, is a slur.
    pub fn offend(&self, label: &Label, tokens: &[Token]) -> bool {
        let mut letters = tokens.iter().filter(|token| token.is_letters());
        letters.any(|token| self.slurs.contains(label.text(token.start, token.end)))
    }

    /// False for a word that no sentence of ours should hold; `word` without marks.
    pub fn may_print(&self, word: &str) -> bool {
        let mut places = word.as_bytes().windows(INSIDE_LETTERS_MIN).enumerate();
        let held = places.any(|(at, head)| {
            let head = head.first_chunk().expect("a window has its length");
            let mut terms = self.inside.get(head).into_iter().flatten();
            terms.any(|term| word[at..].starts_with(term))
        });
        !held && !self.unprintable.contains(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_known_kind() {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        for row in rows {
            let kind = row.split_once(',').map(|(_, kind)| kind);
            assert!(matches!(kind, Some("slur" | "crude")), "{row}");
        }
    }

    #[test]
    fn long_terms_are_found_inside_of_words_and_short_ones_are_not() {
        let terms = Terms::load();
        assert!(!terms.may_print("motherfucker") && !terms.may_print("ass"));
        assert!(terms.may_print("class") && terms.may_print("hotel"));
        for term in terms.inside.values().flatten() {
            assert!(!terms.may_print(&format!("x{term}")) && !terms.may_print(&format!("{term}x")));
        }
    }
}
