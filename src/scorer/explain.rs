//! The score in one sentence: what the name is, then what moved the score most.

use std::fmt::Write;

use super::dictionary::{Token, TokenKind, Tongue};
use super::label::Label;
use super::signals::{Cap, Facts, Points};
use super::terms::Terms;
use crate::vocab::name::{DomainName, to_unicode};

/// Characters of an explanation at most (decisions.md §8).
pub const EXPLANATION_CHARS_MAX: usize = 160;
/// How many parts are named beside what the name is.
const PARTS_MAX: usize = 3;
/// A part that moved the score by less is not worth a word.
const POINTS_MIN: i32 = 2;
/// Letters of quoted words at most: longer ones make the sentence harder to read than the name.
const QUOTED_LETTERS_MAX: u32 = 32;

/// Everything a sentence can be made from.
pub struct Story<'a> {
    pub name: &'a DomainName,
    pub facts: &'a Facts,
    pub points: &'a Points,
    pub tokens: &'a [Token],
    pub label: &'a Label,
    pub terms: &'a Terms,
    /// At least 1.
    pub tld_spread: u32,
}

/// A part of the points that has words of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Length,
    Words,
    Sound,
    Digits,
    Hyphens,
    Idn,
    Tld,
    Spread,
}

impl Story<'_> {
    /// The sentence with all it should say or, when that is too long, with less.
    pub fn tell(&self) -> String {
        let parts = self.parts();
        for count in (0..=parts.len()).rev() {
            for quoted in [true, false] {
                let sentence = self.sentence(&parts[..count], quoted);
                if sentence.chars().count() <= EXPLANATION_CHARS_MAX {
                    return sentence;
                }
            }
        }
        self.lead(false, false)
    }

    /// The parts that moved the score most, first the strongest.
    fn parts(&self) -> Vec<Part> {
        let points = self.points;
        let mut parts = vec![
            (Part::Words, points.dictionary),
            (Part::Length, points.length),
            (Part::Tld, points.tld),
            (Part::Hyphens, points.hyphens),
            (Part::Digits, points.digits),
            (Part::Sound, points.pronounceability),
            (Part::Spread, points.tld_spread),
            (Part::Idn, points.idn),
        ];
        // That a word can be pronounced goes without saying.
        let spoken = |part| part == Part::Sound && self.has_words() && points.pronounceability > 0;
        parts.retain(|&(part, points)| points.abs() >= POINTS_MIN && !spoken(part));
        parts.sort_by_key(|&(_, points)| -points.abs());
        parts.truncate(PARTS_MAX);
        parts.into_iter().map(|(part, _)| part).collect()
    }

    fn sentence(&self, parts: &[Part], quoted: bool) -> String {
        let has = |part| parts.contains(&part);
        let counted = has(Part::Length);
        let mut text = self.lead(quoted, counted);
        if counted && self.has_words() {
            let _ = write!(text, ", {}", self.size());
        }
        if has(Part::Sound) && self.has_words() {
            text.push_str(", hard to pronounce");
        }
        if has(Part::Hyphens) || has(Part::Digits) && !self.is_number() {
            let _ = write!(text, ", {}", self.spelt_out(has(Part::Hyphens), has(Part::Digits)));
        }
        if has(Part::Idn) {
            text.push_str(", as an internationalised name");
        }
        if has(Part::Tld) {
            let _ = write!(text, ", {}", self.suffix());
        }
        if has(Part::Spread) {
            let _ = write!(text, "; {}", self.elsewhere());
        }
        if let Some(cap) = self.facts.caps.strictest() {
            let _ = write!(text, "; {}", self.held_to(cap));
        }
        text.push('.');
        text
    }

    /// What the name is. It starts with a capital letter or a digit.
    fn lead(&self, quoted: bool, counted: bool) -> String {
        let words = self.words();
        match words.as_slice() {
            _ if self.is_number() => self.number(),
            [] if self.facts.letters == 0 => self.other_script(),
            [] => self.no_word(counted),
            words => self.known_words(words, quoted),
        }
    }

    fn has_words(&self) -> bool {
        self.tokens.iter().any(|token| matches!(token.kind, TokenKind::Word(_)))
    }

    fn words(&self) -> Vec<&Token> {
        self.tokens.iter().filter(|token| matches!(token.kind, TokenKind::Word(_))).collect()
    }

    fn is_number(&self) -> bool {
        self.facts.digits > 0 && self.facts.letters + self.facts.others == 0
    }

    fn number(&self) -> String {
        match (self.facts.digits, self.facts.distinct_digits) {
            (1, _) => "A single digit".into(),
            (digits, 1) => format!("The same digit {digits} times"),
            (digits @ (8 | 11 | 18), _) => format!("An {digits}-digit number"),
            (digits, _) => format!("A {digits}-digit number"),
        }
    }

    fn other_script(&self) -> String {
        match self.facts.others {
            1 => "A single letter of another script".into(),
            others => format!("{others} letters of another script"),
        }
    }

    fn no_word(&self, counted: bool) -> String {
        let size = self.size();
        match (self.facts.pronounceability.get(), self.facts.chars) {
            (_, 1..=3) if counted => format!("Only {size}"),
            (_, 1..=3) => size,
            (70.., _) => format!("{size} that read as a word but no dictionary knows"),
            (0..40, _) => format!("{size} that are hard to pronounce"),
            _ => format!("{size} that form no known word"),
        }
    }

    fn known_words(&self, words: &[&Token], quoted: bool) -> String {
        let mut text = capital(&how_many(words));
        let printable = words.iter().all(|word| self.may_print(word));
        let letters: u32 = words.iter().map(|word| word.len()).sum();
        let worth_quoting = letters <= QUOTED_LETTERS_MAX && words.len() <= 3;
        let rest = self.tokens.iter().any(|token| token.kind == TokenKind::Unknown);
        let alone = words.len() == 1 && !rest && self.facts.digits == 0;
        if quoted && printable && worth_quoting && !alone {
            let _ = write!(text, ", {}", self.quote(words));
            if rest {
                text.push(',');
            }
        }
        if rest {
            text.push_str(" and letters that are no word");
        }
        text
    }

    fn may_print(&self, word: &Token) -> bool {
        self.terms.may_print(self.label.text(word.start, word.end))
    }

    fn quote(&self, words: &[&Token]) -> String {
        let quoted: Vec<_> = words
            .iter()
            .map(|word| format!("\"{}\"", self.label.written(word.start, word.end)))
            .collect();
        match quoted.as_slice() {
            [head @ .., last] if !head.is_empty() => format!("{} and {last}", head.join(", ")),
            _ => quoted.concat(),
        }
    }

    fn size(&self) -> String {
        let chars = self.facts.chars;
        let noun = if self.facts.letters == chars { "letter" } else { "character" };
        plural(chars, noun)
    }

    fn spelt_out(&self, hyphens: bool, digits: bool) -> String {
        let hyphens = hyphens.then(|| with(self.facts.hyphens, "hyphen"));
        let digits = digits.then(|| with(self.facts.digits, "digit"));
        let both: Vec<_> = hyphens.into_iter().chain(digits).collect();
        format!("with {}", both.join(" and "))
    }

    fn suffix(&self) -> String {
        let tld = to_unicode(self.name.tld());
        if self.points.tld < 0 {
            format!("in the less wanted .{tld}")
        } else {
            format!("in .{tld}")
        }
    }

    fn elsewhere(&self) -> String {
        format!("known in {}", plural(self.tld_spread - 1, "other TLD"))
    }

    fn held_to(&self, cap: Cap) -> String {
        let reason = match cap.name {
            "manyHyphens" => format!("its {}", plural(self.facts.hyphens, "hyphen")),
            "mixedScripts" => "mixing scripts".into(),
            _ => "an offensive word".into(),
        };
        format!("held to {} for {reason}", cap.max)
    }
}

/// `two common English words`, `a place name`.
fn how_many(words: &[&Token]) -> String {
    let tongues: Vec<_> = words.iter().map(|word| word.kind).collect();
    let same = tongues.windows(2).all(|pair| pair[0] == pair[1]);
    let kind = match tongues.first() {
        Some(TokenKind::Word(Tongue::NAMES)) if same => "personal name".into(),
        Some(TokenKind::Word(Tongue::PLACES)) if same => "place name".into(),
        Some(TokenKind::Word(tongue)) if same => {
            format!("{}{} word", how_common(words), tongue.name())
        }
        _ => format!("{}word", how_common(words)),
    };
    match words.len() {
        1 => format!("{} {kind}", article(&kind)),
        2 => format!("two {kind}s"),
        3 => format!("three {kind}s"),
        4 => format!("four {kind}s"),
        5 => format!("five {kind}s"),
        count => format!("{count} {kind}s"),
    }
}

/// Judged by the rarest of them.
fn how_common(words: &[&Token]) -> &'static str {
    match words.iter().map(|word| word.quality().get()).min() {
        Some(80..) => "common ",
        Some(50..) => "",
        _ => "rare ",
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn with(count: u32, noun: &str) -> String {
    if count == 1 { format!("a {noun}") } else { format!("{count} {noun}s") }
}
