//! Terms that cap a score, and terms that explanations never print, from `data/scorer/terms.csv`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dictionary::Token;
use super::facts::Caps;
use super::label::{Label, RunKind};

static TABLE: &str = include_str!("../../data/scorer/terms.csv");

/// Minimum letters of terms matched inside longer words; shorter ones occur in too many words.
const INSIDE_LETTERS_MIN: usize = 4;

/// The reviewed list.
pub struct Terms {
    unprintable: FxHashSet<&'static str>,
    /// Longer unprintable terms by their first [`INSIDE_LETTERS_MIN`] letters.
    inside: FxHashMap<[u8; INSIDE_LETTERS_MIN], Vec<&'static str>>,
    /// Terms that cap a score.
    capped: FxHashMap<&'static str, Caps>,
}

impl Terms {
    /// Loads the table compiled into the program.
    pub fn load() -> Terms {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        let kinds: FxHashMap<_, _> = rows.filter_map(|row| row.split_once(',')).collect();
        let hidden = kinds.iter().filter(|(_, kind)| !prints(kind));
        let unprintable: FxHashSet<_> = hidden.map(|(&term, _)| term).collect();
        let mut inside: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for &term in &unprintable {
            if let Some(head) = term.as_bytes().first_chunk() {
                inside.entry(*head).or_default().push(term);
            }
        }
        let capped = kinds.iter().filter_map(|(&term, kind)| Some((term, cap(kind)?)));
        Terms { capped: capped.collect(), inside, unprintable }
    }

    /// Returns the caps for the pieces of a label and its runs of letters.
    pub fn caps(&self, label: &Label, tokens: &[Token]) -> Caps {
        let words = tokens.iter().filter(|token| token.is_letters());
        let words = words.map(|token| label.text(token.start, token.end));
        let runs = label.runs.iter().filter(|run| run.kind == RunKind::Letters);
        let runs = runs.map(|run| label.text(run.start, run.end));
        let found = words.chain(runs).filter_map(|text| self.capped.get(text));
        found.fold(Caps::default(), |all, &cap| all.with(cap))
    }

    /// Returns false for a word that no explanation may print. `word` must not have diacritics.
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

/// Returns the cap for terms of this kind.
fn cap(kind: &str) -> Option<Caps> {
    match kind {
        "slur" => Some(Caps::OFFENSIVE),
        "adult" => Some(Caps::ADULT),
        "spam" => Some(Caps::SPAM),
        "brand" => Some(Caps::TRADEMARK),
        _ => None,
    }
}

/// Returns true if explanations may print terms of this kind.
fn prints(kind: &str) -> bool {
    matches!(kind, "spam" | "brand")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_known_kind() {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
        for row in rows {
            let kind = row.split_once(',').map(|(_, kind)| kind);
            assert!(matches!(kind, Some("slur" | "crude" | "adult" | "spam" | "brand")), "{row}");
        }
    }

    #[test]
    fn only_long_terms_are_matched_inside_words() {
        let terms = Terms::load();
        assert!(!terms.may_print("motherfucker") && !terms.may_print("ass"));
        assert!(terms.may_print("class") && terms.may_print("hotel"));
        for term in terms.inside.values().flatten() {
            assert!(!terms.may_print(&format!("x{term}")) && !terms.may_print(&format!("{term}x")));
        }
    }
}
