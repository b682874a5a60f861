//! Splits a registrable label into runs of letters, digits and characters of other scripts, with
//! hyphens between them. Diacritics are removed from Latin letters, because the dictionaries have
//! none.

use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};
use unicode_security::mixed_script::AugmentedScriptSet;

use super::words::Cut;
use crate::vocab::name::{is_a_label, to_unicode};

/// Kind of the characters in a [`Run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// Latin letters, which are `a` to `z` in [`Label::text`].
    Letters,
    /// Decimal digits.
    Digits,
    /// Letters of other scripts, each one byte [`OTHER`].
    Other,
}

/// Adjacent characters of one kind; `start..end` is their byte range in [`Label::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub kind: RunKind,
    pub start: u16,
    pub end: u16,
}

/// Byte that stands for characters without a dictionary in [`Label::text`].
pub const OTHER: u8 = b'?';

/// A label split into runs; the buffers are reused from name to name.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// The folded label in ASCII: letters without diacritics, digits, [`OTHER`] and hyphens. Equal to
    /// an ASCII label.
    text: String,
    /// For each byte of `text`, the index of its character in the Unicode form. Empty for an ASCII
    /// label.
    origin: Vec<u16>,
    unicode: String,
    /// The runs, in the order of the label.
    pub runs: Vec<Run>,
    /// Number of characters in the Unicode form.
    pub chars: u32,
    /// Number of decimal digits.
    pub digits: u32,
    /// Number of hyphens.
    pub hyphens: u32,
    /// Whether the label is an A-label (`xn--`).
    pub idn: bool,
    /// Whether the label mixes scripts that no language combines.
    pub mixed_scripts: bool,
}

impl Label {
    /// Reads `label` in A-label form, as `DomainName::label` returns it.
    pub fn read(&mut self, label: &str) {
        self.clear();
        if is_a_label(label) {
            self.idn = true;
            self.unicode.push_str(&to_unicode(label));
            self.read_unicode();
        } else {
            self.read_ascii(label);
        }
    }

    /// A range of the folded text.
    pub fn text(&self, start: u16, end: u16) -> &str {
        &self.text[usize::from(start)..usize::from(end)]
    }

    /// The whole folded text with hyphens.
    pub fn whole_text(&self) -> &str {
        &self.text
    }

    /// The label in Unicode, with diacritics.
    pub fn written(&self) -> &str {
        if self.origin.is_empty() { &self.text } else { &self.unicode }
    }

    /// Returns the position in [`Label::written`] of a range of the folded text.
    pub fn cut(&self, start: u16, end: u16) -> Cut {
        // A label has at most 63 bytes, and its Unicode form at most four times as many.
        if self.origin.is_empty() {
            return (start as u8, end as u8);
        }
        let (start, end) = (usize::from(start), usize::from(end));
        let first = self.origin[start];
        // A word may end between two folded letters of one character, which then belongs to the
        // word with the first letter.
        let first = if start > 0 && self.origin[start - 1] == first { first + 1 } else { first };
        let next = self.origin[end - 1] + 1;
        let mut offsets = self.unicode.char_indices().map(|(at, _)| at).chain([self.unicode.len()]);
        let start = offsets.clone().nth(usize::from(first)).unwrap_or(self.unicode.len());
        let end = offsets.nth(usize::from(next)).unwrap_or(self.unicode.len());
        (start as u8, end.max(start) as u8)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.origin.clear();
        self.unicode.clear();
        self.runs.clear();
        (self.chars, self.digits, self.hyphens) = (0, 0, 0);
        (self.idn, self.mixed_scripts) = (false, false);
    }

    fn read_ascii(&mut self, label: &str) {
        let mut joined = false;
        for byte in label.bytes() {
            self.chars += 1;
            joined = match byte {
                b'-' => self.hyphen(),
                _ => self.push(byte, joined),
            };
        }
    }

    fn read_unicode(&mut self) {
        let unicode = std::mem::take(&mut self.unicode);
        let mut joined = false;
        for (at, char) in unicode.chars().enumerate() {
            self.chars += 1;
            if char == '-' {
                joined = self.hyphen();
                self.origin.push(u16::try_from(at).unwrap_or(u16::MAX));
                continue;
            }
            fold(char, &mut |byte| joined = self.push(byte, joined));
            self.origin.resize(self.text.len(), u16::try_from(at).unwrap_or(u16::MAX));
        }
        self.mixed_scripts = mixes_scripts(&unicode);
        self.unicode = unicode;
    }

    /// Ends the current run.
    fn hyphen(&mut self) -> bool {
        self.hyphens += 1;
        self.text.push('-');
        false
    }

    /// Adds a character to the last run if it directly follows (`joined`) and has the same kind.
    fn push(&mut self, byte: u8, joined: bool) -> bool {
        let kind = match byte {
            b'0'..=b'9' => RunKind::Digits,
            b'a'..=b'z' => RunKind::Letters,
            _ => RunKind::Other,
        };
        self.digits += u32::from(kind == RunKind::Digits);
        let start = u16::try_from(self.text.len()).unwrap_or(u16::MAX);
        self.text.push(char::from(byte));
        match self.runs.last_mut() {
            Some(run) if joined && run.kind == kind => run.end = start + 1,
            _ => self.runs.push(Run { kind, start, end: start + 1 }),
        }
        true
    }
}

/// Folds a character to ASCII letters and digits, or [`OTHER`].
fn fold(char: char, push: &mut impl FnMut(u8)) {
    let ligature = match char {
        'a'..='z' | '0'..='9' => return push(char as u8),
        'ł' => "l",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ı' => "i",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        _ => return fold_marked(char, push),
    };
    ligature.bytes().for_each(push);
}

fn fold_marked(char: char, push: &mut impl FnMut(u8)) {
    let decomposition = const { CanonicalDecompositionBorrowed::new() };
    let mut base = char;
    // Vietnamese letters have two diacritics; no letter has more than three.
    for _ in 0..3 {
        match decomposition.decompose(base) {
            Decomposed::Expansion(first, _) | Decomposed::Singleton(first) => base = first,
            Decomposed::Default => break,
        }
    }
    push(if base.is_ascii_alphanumeric() { base.to_ascii_lowercase() as u8 } else { OTHER });
}

/// Returns true for a text in scripts that no language combines, beyond the level "highly restrictive" of
/// UTS #39 §5.2: one script, or Latin letters in Chinese, Japanese or Korean text. Characters common to
/// all scripts, such as digits and symbols, do not count.
///
/// `unicode_security::RestrictionLevelDetection` also requires that every character be allowed in
/// identifiers. Symbols are not, though some registries allow them in names.
fn mixes_scripts(text: &str) -> bool {
    let (mut all, mut but_latin) = (AugmentedScriptSet::default(), AugmentedScriptSet::default());
    for char in text.chars() {
        let scripts = AugmentedScriptSet::for_char(char);
        all.intersect_with(scripts);
        let mut latin = AugmentedScriptSet::for_char('a');
        latin.intersect_with(scripts);
        if latin.is_empty() {
            but_latin.intersect_with(scripts);
        }
    }
    all.is_empty() && !(but_latin.hanb || but_latin.jpan || but_latin.kore)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::name::DomainName;

    fn label(text: &str) -> Label {
        let name = DomainName::parse(&format!("{text}.com")).expect(text);
        let mut label = Label::default();
        label.read("left-over-1-from-before");
        label.read(name.label());
        label
    }

    fn runs(label: &Label) -> Vec<&str> {
        label.runs.iter().map(|run| label.text(run.start, run.end)).collect()
    }

    #[test]
    fn runs_end_at_hyphens_and_digits() {
        let label = label("best-hotel-4u");
        assert_eq!(runs(&label), ["best", "hotel", "4", "u"]);
        assert_eq!((label.chars, label.digits, label.hyphens), (13, 1, 2));
        assert!(!label.idn && !label.mixed_scripts);
    }

    #[test]
    fn diacritics_are_folded_and_kept_in_the_written_form() {
        let label = label("straße-łódź-münchen");
        assert_eq!(runs(&label), ["strasse", "lodz", "munchen"]);
        assert_eq!((label.chars, label.idn), (19, true));
        let written = |start, end| {
            let (start, end) = label.cut(start, end);
            &label.written()[usize::from(start)..usize::from(end)]
        };
        let runs: Vec<_> = label.runs.iter().map(|run| written(run.start, run.end)).collect();
        assert_eq!(runs, ["straße", "łódź", "münchen"]);
        // If a word ends within a folded character, the character is not printed twice.
        assert_eq!((written(0, 5), written(5, 7)), ("straß", "e"));
        assert_eq!((written(0, 6), written(6, 7)), ("straß", "e"));
    }

    #[test]
    fn other_scripts_are_only_counted() {
        let label = label("пример24");
        assert_eq!(runs(&label), ["??????", "24"]);
        assert_eq!((label.chars, label.digits, label.mixed_scripts), (8, 2, false));
        assert_eq!(runs(&self::label("việtnam")), ["vietnam"], "two diacritics on one letter");
    }

    #[test]
    fn scripts_that_languages_combine_are_not_mixed() {
        for text in [
            "love❤",
            "❤",
            "i❤ny",
            "☕кофе",
            "東京タワー",
            "tokyo東京",
            "ラーメンshop",
            "ヶ丘",
            "k팝",
            "kpop뮤직",
            "漢字한글",
            "ㄅㄆ中文abc",
            "münchen24",
            "việtnam",
            "日本語123",
            "пример-24",
            "αβγ",
            "col·lecció",
            "हिन्दी",
            "ไทย",
        ] {
            assert!(!label(text).mixed_scripts, "{text}");
        }
        for text in [
            "pаypal",
            "раypal",
            "❤pаypal",
            "αpple",
            "東京а",
            "한글タワー",
            "ㄅㄆ한글",
            "हिन्दीabc",
            "ไทยlatin",
            "пример東京",
        ] {
            assert!(label(text).mixed_scripts, "{text}");
        }
    }
}
