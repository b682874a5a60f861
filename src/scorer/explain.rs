//! The score in one sentence: what the name is, then what moved the score most.

use super::dictionary::{Token, TokenKind, Tongue};
use super::percent::Percent;
use super::signals::{Cap, Facts, Points};
use super::words::Words;
use crate::vocab::name::to_unicode;

/// Characters of an explanation at most (decisions.md §8).
pub const EXPLANATION_CHARS_MAX: usize = 160;
/// How many parts are named beside what the name is.
const PARTS_MAX: usize = 3;
/// A part that moved the score by less is not worth a word.
const POINTS_MIN: usize = 2;
/// Letters of quoted words at most: longer ones make the sentence harder to read than the name.
const QUOTED_LETTERS_MAX: u32 = 32;

/// Everything a sentence can be made from.
pub struct Story<'a> {
    /// The public suffix as the zone has it.
    pub tld: &'a str,
    pub facts: &'a Facts,
    pub points: &'a Points,
    pub tokens: &'a [Token],
    /// The tokens as people write them.
    pub written: &'a Words<'a>,
    /// Sentences may hold the words.
    pub printable: bool,
    /// At least 1.
    pub tld_spread: u32,
}

/// A part of the points that has words of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The parts that a sentence is to name.
#[derive(Clone, Copy, Default)]
struct Parts(u8);

impl Parts {
    fn has(self, part: Part) -> bool {
        self.0 >> part as u8 & 1 != 0
    }

    fn with(self, part: Part) -> Parts {
        Parts(self.0 | 1 << part as u8)
    }
}

/// The words of a label taken together.
#[derive(Clone, Copy, Debug, Default)]
struct Vocabulary {
    words: u32,
    /// Letters of all of them.
    letters: u32,
    /// The tongue of them all; `None` where they have several.
    tongue: Option<Tongue>,
    /// How common the rarest is.
    rarest: Percent,
    /// There are letters beside them that are no word.
    rest: bool,
}

impl Vocabulary {
    fn of(tokens: &[Token]) -> Vocabulary {
        let mut seen = Vocabulary::default();
        for token in tokens {
            match token.kind {
                TokenKind::Word(tongue) if seen.words == 0 => {
                    (seen.tongue, seen.rarest) = (Some(tongue), token.quality());
                }
                TokenKind::Word(tongue) => {
                    seen.tongue = seen.tongue.filter(|&first| first == tongue);
                    seen.rarest = seen.rarest.min(token.quality());
                }
                TokenKind::Unknown => {
                    seen.rest = true;
                    continue;
                }
                _ => continue,
            }
            seen.words += 1;
            seen.letters += token.len();
        }
        seen
    }
}

impl Story<'_> {
    /// Puts the sentence into `out`, in place of what is there: with all it should say or, when
    /// that is too long, with less.
    pub fn tell(&self, out: &mut String) {
        let seen = Vocabulary::of(self.tokens);
        let (strongest, count) = self.strongest(seen);
        for count in (0..=count).rev() {
            let parts =
                strongest[..count].iter().fold(Parts::default(), |all, &part| all.with(part));
            for quoted in [true, false] {
                out.clear();
                self.sentence(seen, parts, quoted, out);
                // Few sentences hold more bytes than characters.
                if out.len() <= EXPLANATION_CHARS_MAX
                    || out.chars().count() <= EXPLANATION_CHARS_MAX
                {
                    return;
                }
            }
        }
        out.clear();
        self.lead(seen, false, false, out);
    }

    /// The parts that moved the score most, first the strongest, and how many there are.
    fn strongest(&self, seen: Vocabulary) -> ([Part; PARTS_MAX], usize) {
        let points = self.points;
        // That a word can be pronounced goes without saying.
        let spoken = seen.words > 0 && points.pronounceability > 0;
        let parts = [
            (Part::Words, points.dictionary),
            (Part::Length, points.length),
            (Part::Tld, points.tld),
            (Part::Hyphens, points.hyphens),
            (Part::Digits, points.digits),
            (Part::Sound, if spoken { 0 } else { points.pronounceability }),
            (Part::Spread, points.tld_spread),
            (Part::Idn, points.idn),
        ];
        // One number each, without a branch: of equals the first is the higher one.
        let mut best = [0; PARTS_MAX];
        for (at, (_, points)) in parts.iter().enumerate() {
            let moved = points.unsigned_abs() as usize;
            let mut next = if moved >= POINTS_MIN { moved * parts.len() + 7 - at } else { 0 };
            for best in &mut best {
                (*best, next) = (next.max(*best), next.min(*best));
            }
        }
        let part = |key: usize| parts[7 - key % parts.len()].0;
        (best.map(part), best.iter().filter(|&&key| key > 0).count())
    }

    fn sentence(&self, seen: Vocabulary, parts: Parts, quoted: bool, out: &mut String) {
        let counted = parts.has(Part::Length);
        self.lead(seen, quoted, counted, out);
        if counted && seen.words > 0 {
            out.push_str(", ");
            self.size(out);
        }
        if parts.has(Part::Sound) && seen.words > 0 {
            out.push_str(", hard to pronounce");
        }
        let hyphens = parts.has(Part::Hyphens);
        let digits = parts.has(Part::Digits) && (hyphens || !self.is_number());
        self.spelt_out(hyphens, digits, out);
        if parts.has(Part::Idn) {
            out.push_str(", as an internationalised name");
        }
        if parts.has(Part::Tld) {
            self.suffix(out);
        }
        if parts.has(Part::Spread) {
            out.push_str("; known in ");
            plural(self.tld_spread - 1, "other TLD", out);
        }
        if let Some(cap) = self.facts.caps.strictest() {
            self.held_to(cap, out);
        }
        out.push('.');
    }

    /// What the name is. It starts with a capital letter or a digit.
    fn lead(&self, seen: Vocabulary, quoted: bool, counted: bool, out: &mut String) {
        match seen.words {
            _ if self.is_number() => self.number(out),
            0 if self.facts.letters == 0 => self.other_script(out),
            0 => self.no_word(counted, out),
            _ => self.known_words(seen, quoted, out),
        }
    }

    fn is_number(&self) -> bool {
        self.facts.digits > 0 && self.facts.letters + self.facts.others == 0
    }

    fn number(&self, out: &mut String) {
        let digits = self.facts.digits;
        match (digits, self.facts.distinct_digits) {
            (1, _) => out.push_str("A single digit"),
            (_, 1) => {
                out.push_str("The same digit ");
                number(digits, out);
                out.push_str(" times");
            }
            _ => {
                out.push_str(if matches!(digits, 8 | 11 | 18) { "An " } else { "A " });
                number(digits, out);
                out.push_str("-digit number");
            }
        }
    }

    fn other_script(&self, out: &mut String) {
        match self.facts.others {
            1 => out.push_str("A single letter of another script"),
            others => {
                number(others, out);
                out.push_str(" letters of another script");
            }
        }
    }

    fn no_word(&self, counted: bool, out: &mut String) {
        let few = self.facts.chars <= 3;
        if few && counted {
            out.push_str("Only ");
        }
        self.size(out);
        out.push_str(match self.facts.pronounceability.get() {
            _ if few => "",
            70.. => " that read as a word but no dictionary knows",
            0..40 => " that are hard to pronounce",
            _ => " that form no known word",
        });
    }

    fn known_words(&self, seen: Vocabulary, quoted: bool, out: &mut String) {
        how_many(seen, out);
        let worth_quoting = seen.letters <= QUOTED_LETTERS_MAX && seen.words <= 3;
        let alone = seen.words == 1 && !seen.rest && self.facts.digits == 0;
        if quoted && self.printable && worth_quoting && !alone {
            out.push_str(", ");
            self.quote(seen, out);
            if seen.rest {
                out.push(',');
            }
        }
        if seen.rest {
            out.push_str(" and letters that are no word");
        }
    }

    fn quote(&self, seen: Vocabulary, out: &mut String) {
        let is_word = |at: &usize| matches!(self.tokens[*at].kind, TokenKind::Word(_));
        for (number, at) in (1..).zip((0..self.tokens.len()).filter(is_word)) {
            out.push_str(match number {
                1 => "\"",
                _ if number == seen.words => " and \"",
                _ => ", \"",
            });
            out.push_str(self.written.get(at));
            out.push('"');
        }
    }

    fn size(&self, out: &mut String) {
        let chars = self.facts.chars;
        plural(chars, if self.facts.letters == chars { "letter" } else { "character" }, out);
    }

    fn spelt_out(&self, hyphens: bool, digits: bool, out: &mut String) {
        if hyphens {
            out.push_str(", with ");
            with(self.facts.hyphens, "hyphen", out);
        }
        if digits {
            out.push_str(if hyphens { " and " } else { ", with " });
            with(self.facts.digits, "digit", out);
        }
    }

    fn suffix(&self, out: &mut String) {
        out.push_str(if self.points.tld < 0 { ", in the less wanted ." } else { ", in ." });
        if self.tld.as_bytes().windows(4).any(|part| part == b"xn--") {
            out.push_str(&to_unicode(self.tld));
        } else {
            out.push_str(self.tld);
        }
    }

    fn held_to(&self, cap: Cap, out: &mut String) {
        out.push_str("; held to ");
        number(cap.max.unsigned_abs(), out);
        out.push_str(" for ");
        match cap.name {
            "manyHyphens" => {
                out.push_str("its ");
                plural(self.facts.hyphens, "hyphen", out);
            }
            "mixedScripts" => out.push_str("mixing scripts"),
            _ => out.push_str("an offensive word"),
        }
    }
}

/// `Two common English words`, `A place name`.
fn how_many(seen: Vocabulary, out: &mut String) {
    let (common, noun) = match seen.tongue {
        Some(Tongue::NAMES) => ("", "personal name"),
        Some(Tongue::PLACES) => ("", "place name"),
        Some(tongue) => (how_common(seen), tongue.name()),
        None => (how_common(seen), "word"),
    };
    let vowel = common.is_empty() && noun.starts_with(['A', 'E', 'I', 'O', 'U']);
    match seen.words {
        1 => out.push_str(if vowel { "An " } else { "A " }),
        2 => out.push_str("Two "),
        3 => out.push_str("Three "),
        4 => out.push_str("Four "),
        5 => out.push_str("Five "),
        count => {
            number(count, out);
            out.push(' ');
        }
    }
    out.push_str(common);
    out.push_str(noun);
    if seen.tongue.is_some_and(|tongue| tongue.code().is_some()) {
        out.push_str(" word");
    }
    if seen.words > 1 {
        out.push('s');
    }
}

/// Judged by the rarest of them.
fn how_common(seen: Vocabulary) -> &'static str {
    match seen.rarest.get() {
        80.. => "common ",
        50.. => "",
        _ => "rare ",
    }
}

fn plural(count: u32, noun: &str, out: &mut String) {
    number(count, out);
    out.push(' ');
    out.push_str(noun);
    if count != 1 {
        out.push('s');
    }
}

fn with(count: u32, noun: &str, out: &mut String) {
    if count == 1 {
        out.push_str("a ");
        out.push_str(noun);
    } else {
        plural(count, noun, out);
    }
}

/// In decimal: the formatter of the standard library takes as long as the rest of a sentence.
fn number(number: u32, out: &mut String) {
    let digit = |number: u32| char::from(b'0' + (number % 10) as u8);
    if number >= 100 {
        self::number(number / 100, out);
    }
    if number >= 10 {
        out.push(digit(number / 10));
    }
    out.push(digit(number));
}
