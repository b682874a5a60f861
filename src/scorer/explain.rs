//! The explanation of a score: a description of the name, the main reasons for the score, and the
//! length, separated by ` · `.

use super::dictionary::{Language, Token, TokenKind};
use super::facts::Facts;
use super::percent::Percent;
use super::signals::{COMMON_FROM, Points};
use super::words::Words;
use crate::vocab::name::to_unicode;

/// Maximum characters of an explanation (`data/docs/api.md`).
pub const EXPLANATION_CHARS_MAX: usize = 160;
const SEPARATOR: &str = " · ";
/// Maximum number of strengths and of weaknesses.
const PARTS_MAX: usize = 3;
/// Minimum points of a part that is mentioned.
const POINTS_MIN: usize = 2;
/// Maximum total letters and maximum number of quoted words; more would be harder to read than the
/// name itself.
const QUOTED_LETTERS_MAX: u32 = 32;
const QUOTED_MAX: u32 = 5;
/// Quality, in hundredths, below which a word is rare.
const RARE_BELOW: u8 = 50;
/// Pronounceability below which letters are hard to pronounce.
const HARD_BELOW: u8 = 40;
/// Minimum pronounceability of letters that sound like a word.
const EASY_FROM: u8 = 65;
/// Minimum characters of a label without known words to be described as an invented word.
const INVENTED_FROM: u32 = 5;
/// Minimum characters of a name described as long.
const LONG_FROM: u32 = 15;
/// Maximum length of words that are not mentioned if the label also has letters outside words.
const SHORT_LETTERS: u32 = 3;

/// Input of an explanation.
pub struct ExplanationInput<'a> {
    /// The public suffix in A-label form.
    pub tld: &'a str,
    pub facts: &'a Facts,
    pub points: &'a Points,
    pub tokens: &'a [Token],
    /// The tokens in Unicode.
    pub written: &'a Words<'a>,
    /// See [`super::Signals::pattern`].
    pub pattern: Option<&'static str>,
    /// Whether explanations may print the words.
    pub printable: bool,
    /// Number of other TLDs that have the label.
    pub others: u32,
}

/// A part of the points that can be mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MentionedPart {
    Spread,
    Sound,
    Idn,
}

const PARTS: usize = 3;

/// Summary of the words of a label.
#[derive(Clone, Copy, Debug, Default)]
struct Vocabulary {
    words: u32,
    /// Number of letters in all words.
    letters: u32,
    /// Language or kind that all words have in common; `None` without one.
    language: Option<Language>,
    /// Quality of the rarest word.
    rarest: Percent,
    /// Whether the label has letters outside the words.
    rest: bool,
}

impl Vocabulary {
    fn new(tokens: &[Token]) -> Vocabulary {
        let (mut seen, mut longest) = (Vocabulary::default(), 0);
        for token in tokens {
            match token.kind {
                TokenKind::Word(language) if seen.words == 0 => {
                    (seen.language, seen.rarest) = (Some(language), token.quality());
                }
                TokenKind::Word(language) => {
                    seen.language = seen.language.filter(|&first| first == language);
                    seen.rarest = seen.rarest.min(token.quality());
                }
                TokenKind::Unknown | TokenKind::Letter => {
                    seen.rest = true;
                    continue;
                }
                _ => continue,
            }
            seen.words += 1;
            seen.letters += token.len();
            longest = longest.max(token.len());
        }
        // Short words occur by chance in any sequence of letters.
        if seen.rest && longest <= SHORT_LETTERS { Vocabulary { words: 0, ..seen } } else { seen }
    }
}

impl ExplanationInput<'_> {
    /// Writes the explanation into `out`, replacing its content. Omits parts and quotations if the
    /// text would be too long.
    pub fn write(&self, out: &mut String) {
        let seen = Vocabulary::new(self.tokens);
        let (strongest, count) = self.strongest(seen);
        for count in (0..=count).rev() {
            for quoted in [true, false] {
                out.clear();
                self.explain(seen, &strongest[..count], quoted, out);
                // Most names are ASCII; each separator has one more byte than characters.
                if out.len() <= EXPLANATION_CHARS_MAX
                    || out.chars().count() <= EXPLANATION_CHARS_MAX
                {
                    return;
                }
            }
        }
        out.clear();
        self.describe(seen, false, out);
    }

    /// The number of parts that moved the score most, and these parts, strongest first, with their
    /// points.
    fn strongest(&self, seen: Vocabulary) -> ([(MentionedPart, i32); PARTS_MAX], usize) {
        let Points { pronounceability, characters, tld_spread, .. } = *self.points;
        let when = |applies: bool, points: i32| if applies { points } else { 0 };
        let Facts { digits, others, hyphens, idn, .. } = *self.facts;
        let hard = self.is_hard() && seen.words > 0;
        let parts: [(MentionedPart, i32); PARTS] = [
            // A label in no other TLD is mentioned only if that costs points, because it is
            // uncertain otherwise.
            (MentionedPart::Spread, when((self.others > 0) == (tld_spread > 0), tld_spread)),
            (MentionedPart::Sound, when(hard, pronounceability.min(0))),
            (MentionedPart::Idn, when(idn && digits + hyphens + others == 0, characters.min(0))),
        ];
        // Compares one number per part, without branches; of two equal parts, the first one has the
        // higher number.
        let mut best = [0; PARTS_MAX];
        for (at, (_, points)) in parts.iter().enumerate() {
            let moved = points.unsigned_abs() as usize;
            let mut next = if moved >= POINTS_MIN { moved * PARTS + PARTS - 1 - at } else { 0 };
            for best in &mut best {
                (*best, next) = (next.max(*best), next.min(*best));
            }
        }
        let part = |key: usize| parts[PARTS - 1 - key % PARTS];
        (best.map(part), best.iter().filter(|&&key| key > 0).count())
    }

    /// Writes the description, the strengths, the weaknesses, hyphens, digits, the length, and the cap.
    fn explain(
        &self,
        seen: Vocabulary,
        parts: &[(MentionedPart, i32)],
        quoted: bool,
        out: &mut String,
    ) {
        self.describe(seen, quoted, out);
        for &(part, _) in parts.iter().filter(|(_, points)| *points > 0) {
            out.push_str(SEPARATOR);
            // Only other TLDs are mentioned as a strength.
            debug_assert_eq!(part, MentionedPart::Spread);
            out.push_str("known in ");
            plural(self.others, "other TLD", out);
        }
        for &(part, _) in parts.iter().filter(|(_, points)| *points < 0) {
            self.weakness(part, out);
        }
        if !self.is_number() {
            self.count(self.facts.hyphens, "hyphen", out);
            self.count(self.facts.digits, "digit", out);
        }
        if !self.describes_length(seen) {
            self.length(out);
        }
        self.cap(out);
    }

    fn weakness(&self, part: MentionedPart, out: &mut String) {
        out.push_str(SEPARATOR);
        match part {
            MentionedPart::Spread => out.push_str("not known in other TLDs"),
            MentionedPart::Sound => out.push_str("hard to pronounce"),
            MentionedPart::Idn => out.push_str("special characters"),
        }
    }

    fn count(&self, count: u32, noun: &str, out: &mut String) {
        if count > 0 {
            out.push_str(SEPARATOR);
            plural(count, noun, out);
        }
    }

    fn length(&self, out: &mut String) {
        let Facts { chars, letters, .. } = *self.facts;
        let long = chars >= LONG_FROM && self.points.length <= -(POINTS_MIN as i32);
        out.push_str(SEPARATOR);
        out.push_str(if long { "long: " } else { "" });
        plural(chars, if letters == chars { "letter" } else { "character" }, out);
    }

    /// Describes the name, starting with a capital letter or a digit.
    fn describe(&self, seen: Vocabulary, quoted: bool, out: &mut String) {
        match seen.words {
            _ if self.is_number() => self.number(out),
            0 if self.facts.letters == 0 => self.other_script(out),
            0 => self.no_word(out),
            _ => self.known_words(seen, quoted, out),
        }
    }

    /// Returns true if the description states the length.
    fn describes_length(&self, seen: Vocabulary) -> bool {
        self.is_number()
            || seen.words == 0 && (self.is_other_script() || self.facts.chars < INVENTED_FROM)
    }

    fn is_number(&self) -> bool {
        self.facts.digits > 0 && self.facts.letters + self.facts.others == 0
    }

    fn is_other_script(&self) -> bool {
        self.facts.letters == 0 && self.facts.others == self.facts.chars
    }

    fn is_hard(&self) -> bool {
        self.facts.letters > 3 && self.facts.pronounceability.get() < HARD_BELOW
    }

    fn number(&self, out: &mut String) {
        let Facts { digits, distinct_digits, .. } = *self.facts;
        match (digits, distinct_digits) {
            (1, _) => out.push_str("Single digit"),
            (_, 1) => {
                out.push_str("The same digit ");
                number(digits, out);
                out.push_str(" times");
            }
            _ => {
                number(digits, out);
                out.push_str("-digit number");
            }
        }
        self.shape(out);
    }

    fn other_script(&self, out: &mut String) {
        if self.is_other_script() {
            plural(self.facts.others, "letter", out);
            out.push_str(" in a non-Latin script");
        } else {
            out.push_str("Non-Latin letters with digits or hyphens");
        }
    }

    fn no_word(&self, out: &mut String) {
        let Facts { chars, letters, .. } = *self.facts;
        let plain = letters == chars;
        if chars < INVENTED_FROM {
            plural(chars, if plain { "letter" } else { "character" }, out);
            self.shape(out);
        } else if !plain {
            out.push_str("No known word");
        } else {
            out.push_str(match self.facts.pronounceability.get() {
                EASY_FROM.. => "Invented word, pronounceable",
                0..HARD_BELOW => "No known word, hard to pronounce",
                _ => "Invented word",
            });
        }
    }

    /// Writes the pattern, if any.
    fn shape(&self, out: &mut String) {
        if let Some(pattern) = self.pattern {
            out.push_str(" (");
            out.push_str(pattern);
            out.push(')');
        }
    }

    fn known_words(&self, seen: Vocabulary, quoted: bool, out: &mut String) {
        self.how_many(seen, out);
        let worth_quoting = seen.letters <= QUOTED_LETTERS_MAX && seen.words <= QUOTED_MAX;
        let alone = seen.words == 1 && !seen.rest && self.facts.digits == 0;
        if quoted && self.printable && worth_quoting && !alone {
            self.quote(out);
        }
        if seen.rest {
            out.push_str(" with other letters");
        }
    }

    /// `Two common English words`, `Place name`, `Common word of several languages`.
    fn how_many(&self, seen: Vocabulary, out: &mut String) {
        let proper = match seen.language {
            Some(Language::NAMES) => Some("personal name"),
            Some(Language::PLACES) => Some("place name"),
            _ => None,
        };
        let language = seen.language.filter(|_| self.facts.certain).map(Language::name);
        let common = match seen.rarest.get() {
            _ if proper.is_some() => "",
            COMMON_FROM.. => "common ",
            // The lists of other languages are based on speech, in which technical words are rare.
            ..RARE_BELOW if seen.words == 1 && language == Some("English") => "rare ",
            _ => "",
        };
        let start = out.len();
        match seen.words {
            1 => {}
            2 => out.push_str("two "),
            3 => out.push_str("three "),
            4 => out.push_str("four "),
            5 => out.push_str("five "),
            count => {
                number(count, out);
                out.push(' ');
            }
        }
        out.push_str(common);
        if let Some(proper) = proper {
            out.push_str(proper);
        } else {
            if let Some(language) = language {
                out.push_str(language);
                out.push(' ');
            }
            out.push_str("word");
        }
        if seen.words > 1 {
            out.push('s');
        } else if proper.is_none() && language.is_none() && !seen.rest && self.facts.digits == 0 {
            out.push_str(" of several languages");
        }
        out[start..=start].make_ascii_uppercase();
    }

    fn quote(&self, out: &mut String) {
        let is_word = |at: &usize| matches!(self.tokens[*at].kind, TokenKind::Word(_));
        for (number, at) in (0..).zip((0..self.tokens.len()).filter(is_word)) {
            out.push_str(if number == 0 { " (" } else { ", " });
            out.push_str(self.written.get(at));
        }
        out.push(')');
    }

    /// Writes `before` and the suffix in Unicode.
    fn suffix(&self, before: &str, out: &mut String) {
        out.push_str(before);
        if self.tld.as_bytes().windows(4).any(|part| part == b"xn--") {
            out.push_str(&to_unicode(self.tld));
        } else {
            out.push_str(self.tld);
        }
    }

    /// Writes the cap that limits the score, if any. A brand is worth a remark in any case.
    fn cap(&self, out: &mut String) {
        let Some(cap) = self.facts.caps.strictest() else { return };
        if self.points.sum() <= cap.max {
            if cap.name == "alsoBrand" {
                out.push_str(SEPARATOR);
                out.push_str("also a known brand");
            }
            return;
        }
        out.push_str(SEPARATOR);
        out.push_str("capped at ");
        number(cap.max.unsigned_abs(), out);
        out.push_str(": ");
        match cap.name {
            "notPublic" => {
                self.suffix(".", out);
                out.push_str(" is not open to the public");
            }
            "reserved" => out.push_str("reserved by the registry"),
            "alsoBrand" => out.push_str("also a known brand"),
            "manyHyphens" => plural(self.facts.hyphens, "hyphen", out),
            "mixedScripts" => out.push_str("mixed scripts"),
            "spam" => out.push_str("spam term"),
            "brand" | "trademark" => out.push_str("known brand"),
            "adult" => out.push_str("adult term"),
            "minors" => out.push_str("joins minors and sex"),
            _ => out.push_str("offensive word"),
        }
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

/// Writes a decimal number, because the standard formatter would take as long as the rest of the
/// text.
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
