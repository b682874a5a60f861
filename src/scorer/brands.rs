//! Labels that are known as one company's mark (`data/scorer/brands.txt`), and lookalike spellings.
//! Lookalikes use similar letters of other scripts or digits; for the best-known marks, one letter
//! after the first may also be added, missing, changed or swapped.

use rustc_hash::{FxHashMap, FxHashSet};
use unicode_security::confusable_detection::skeleton;

use super::dictionary::Token;
use super::facts::Caps;
use super::label::{Label, OTHER};

static TABLE: &str = include_str!("../../data/scorer/brands.txt");

/// Minimum letters of marks whose misspellings are detected; shorter ones resemble too many words.
const NEAR_LETTERS_MIN: usize = 6;
/// Minimum letters of marks for which a doubled letter (`applle`) is detected.
const DOUBLED_LETTERS_MIN: usize = 5;
/// Maximum bytes of a label.
const LABEL_BYTES: usize = 63;

/// The indexed list of marks.
pub struct Brands {
    marks: FxHashSet<&'static str>,
    /// The marks in the form that [`look`] returns.
    looks: FxHashSet<String>,
    /// The best-known marks, by their full form and by each form without one letter.
    near: FxHashMap<String, Vec<&'static str>>,
    /// Maximum letters of a label that can match `near`.
    near_letters_max: usize,
}

impl Brands {
    /// Loads the list compiled into the program.
    pub fn load() -> Brands {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
        let rows: Vec<_> = rows
            .map(|row| row.strip_suffix(" *").map_or((row, false), |mark| (mark, true)))
            .collect();
        let known = || rows.iter().filter(|(_, known)| *known).map(|&(mark, _)| mark);
        let mut near: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for mark in known().filter(|mark| mark.len() >= DOUBLED_LETTERS_MIN) {
            near.entry(mark.to_owned()).or_default().push(mark);
            let mut keys: Vec<_> = (0..mark.len()).map(|at| without(mark, at)).collect();
            keys.dedup();
            for key in keys {
                near.entry(key).or_default().push(mark);
            }
        }
        Brands {
            marks: rows.iter().map(|&(mark, _)| mark).collect(),
            looks: rows.iter().map(|(mark, _)| look(mark)).collect(),
            near,
            near_letters_max: 1 + known().map(str::len).max().unwrap_or_default(),
        }
    }

    /// Returns the caps of a label that is a mark or resembles one.
    pub fn caps(&self, label: &Label, tokens: &[Token]) -> Caps {
        let mut buffer = [0; LABEL_BYTES];
        let Some(text) = joined(label.whole_text(), &mut buffer) else { return Caps::default() };
        let is_known = || self.looks_known(label, text) || self.is_near(text, tokens);
        Caps::BRAND.when(self.marks.contains(text) || is_known())
    }

    /// Returns true for a label that imitates the look of a mark.
    fn looks_known(&self, label: &Label, text: &str) -> bool {
        // Of the ASCII characters in labels, only these resemble others.
        let deceives = label.idn || text.contains(['0', '1']) || text.contains("rn");
        deceives && self.looks.contains(&look(label.written()))
    }

    /// Returns true if the label differs from a mark by one letter, unless it consists of words.
    fn is_near(&self, text: &str, tokens: &[Token]) -> bool {
        if !(DOUBLED_LETTERS_MIN - 1..=self.near_letters_max).contains(&text.len()) {
            return false;
        }
        let is_near = |mark: &&'static str| {
            // Users who type a mark get its first letter right.
            mark.as_bytes().first() == text.as_bytes().first()
                && strsim::osa_distance(mark, text) == 1
                && (mark.len() >= NEAR_LETTERS_MIN || doubles(mark, text))
        };
        let held = |key: &str| self.near.get(key).into_iter().flatten().find(|mark| is_near(mark));
        let mut buffer = [0; LABEL_BYTES];
        let found = held(text)
            .or_else(|| (0..text.len()).find_map(|at| held(shortened(text, at, &mut buffer))));
        found.is_some_and(|mark| tokens.len() > 1 && text.contains(mark) || !reads_as_words(tokens))
    }
}

/// Returns the label without hyphens.
fn joined<'a>(text: &'a str, buffer: &'a mut [u8; LABEL_BYTES]) -> Option<&'a str> {
    if text.as_bytes().contains(&OTHER) {
        // Such a label can only resemble a mark.
        return Some(text);
    }
    if !text.contains('-') {
        return Some(text);
    }
    let mut length = 0;
    for byte in text.bytes().filter(|&byte| byte != b'-') {
        *buffer.get_mut(length)? = byte;
        length += 1;
    }
    std::str::from_utf8(&buffer[..length]).ok()
}

/// Returns true for words of the same language; `face` followed by Swedish `bok` is a coincidence.
fn reads_as_words(tokens: &[Token]) -> bool {
    let one_language = tokens.windows(2).all(|pair| pair[0].kind == pair[1].kind);
    one_language && tokens.iter().all(|token| token.is_word() && token.len() >= 3)
}

/// Returns the visual form of a text: its skeleton by UTS #39, without diacritics and hyphens.
fn look(text: &str) -> String {
    let is_mark = |char: &char| ('\u{300}'..='\u{36f}').contains(char);
    let chars = skeleton(text).filter(|char| !is_mark(char) && *char != '-');
    chars.flat_map(char::to_lowercase).collect()
}

fn without(text: &str, at: usize) -> String {
    format!("{}{}", &text[..at], &text[at + 1..])
}

/// The same as [`without`], but does not allocate.
fn shortened<'a>(text: &str, at: usize, buffer: &'a mut [u8; LABEL_BYTES]) -> &'a str {
    let length = text.len() - 1;
    buffer[..at].copy_from_slice(&text.as_bytes()[..at]);
    buffer[at..length].copy_from_slice(&text.as_bytes()[at + 1..]);
    std::str::from_utf8(&buffer[..length]).unwrap_or_default()
}

/// Returns true if `text` is `mark` with one letter doubled.
fn doubles(mark: &str, text: &str) -> bool {
    let pairs = text.as_bytes().windows(2).enumerate();
    let mut doubled = pairs.filter(|(_, pair)| pair[0] == pair[1]);
    doubled.any(|(at, _)| text.len() == mark.len() + 1 && without(text, at) == mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::name::DomainName;
    use crate::{Scorer, Scratch, Spread};

    fn caps(name: &str, spread: u32) -> Vec<&'static str> {
        let parsed = DomainName::parse(name).expect(name);
        let scored = Scorer::shared().score(&parsed, Spread::of(spread), &mut Scratch::default());
        scored.signals.caps.iter().map(|cap| cap.name).collect()
    }

    #[test]
    fn every_row_is_a_label_in_order() {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
        let marks: Vec<_> = rows.map(|row| row.strip_suffix(" *").unwrap_or(row)).collect();
        assert!(marks.is_sorted_by(|one, next| one < next), "sorted, none twice");
        for mark in marks {
            let plain = mark.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            assert!(plain && mark.len() <= LABEL_BYTES, "{mark}");
        }
    }

    #[test]
    fn marks_and_their_imitations_are_capped() {
        for name in [
            "google.com",
            "coca-cola.pl",
            "boeing.com",
            "nutella.xyz",
            "amazóń.com",
            "ḟacebook.com",
            "уаһоо.com",
            "arnazon.com",
            "paypa1.net",
            "g00gle.com",
            "rnicrosoft.com",
        ] {
            assert!(caps(name, 1).contains(&"brand"), "{name}: {:?}", caps(name, 1));
        }
    }

    #[test]
    fn misspellings_of_the_best_known_are_capped_in_any_corpus() {
        for name in ["gooogle.com", "facebok.com", "wikipdeia.org", "instagran.com", "netfilx.de"] {
            for tlds in [1, 3, 10, 60, 1000] {
                assert_eq!(caps(name, tlds), ["brand"], "{name}");
            }
        }
    }

    #[test]
    fn words_and_names_near_a_mark_are_free() {
        for name in [
            "cloud.com",
            "phone.net",
            "pillow.de",
            "being.co",
            "boxing.io",
            "winecraft.com",
            "applle.com",
            "x-cloud.com",
            "lipay.com",
            "über.de",
            "solar.com",
            "hilton.co",
            "ab.de",
        ] {
            assert!(!caps(name, 1).contains(&"brand"), "{name}");
        }
    }
}
