//! The explanation of a score: one sentence that describes the name, then the strengths and
//! weaknesses that moved the score most.

use super::dictionary::{Language, Token, TokenKind};
use super::facts::Facts;
use super::percent::Percent;
use super::signals::Points;
use super::words::Words;
use crate::vocab::name::to_unicode;

/// Maximum characters of an explanation (`data/docs/api.md`).
pub const EXPLANATION_CHARS_MAX: usize = 160;
/// Maximum strengths and weaknesses in a sentence.
const PARTS_MAX: usize = 3;
/// Minimum points of a part that is mentioned.
const POINTS_MIN: usize = 2;
/// Maximum letters of quoted words: longer ones make the sentence harder to read than the name.
const QUOTED_LETTERS_MAX: u32 = 32;

/// Input of an explanation.
pub struct ExplanationInput<'a> {
    /// The public suffix in A-label form.
    pub tld: &'a str,
    pub facts: &'a Facts,
    pub points: &'a Points,
    pub tokens: &'a [Token],
    /// The tokens in Unicode.
    pub written: &'a Words<'a>,
    /// Explanations may print the words.
    pub printable: bool,
    /// At least 1.
    pub tld_spread: u32,
}

/// A part of the points that can be mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Market,
    Length,
    Tld,
    Spread,
    Hyphens,
    Digits,
    Sound,
    Memory,
    Idn,
}

const PARTS: usize = 9;
/// Minimum quality, in hundredths, of common words, and of words that are not rare.
const COMMON_FROM: u8 = 80;
const RARE_BELOW: u8 = 50;
/// Pronounceability below which letters are hard to pronounce.
const HARD_BELOW: u8 = 40;
/// Pronounceability from which letters sound like a word.
const EASY_FROM: u8 = 65;
/// Characters from which any name is hard to remember.
const MANY_CHARS: u32 = 12;

/// Summary of the words of a label.
#[derive(Clone, Copy, Debug, Default)]
struct Vocabulary {
    words: u32,
    /// Letters in all words.
    letters: u32,
    /// Their common language; `None` if they have several.
    language: Option<Language>,
    /// Quality of the rarest word.
    rarest: Percent,
    /// There are other letters beside them.
    rest: bool,
}

impl Vocabulary {
    fn new(tokens: &[Token]) -> Vocabulary {
        let mut seen = Vocabulary::default();
        for token in tokens {
            match token.kind {
                TokenKind::Word(language) if seen.words == 0 => {
                    (seen.language, seen.rarest) = (Some(language), token.quality());
                }
                TokenKind::Word(language) => {
                    seen.language = seen.language.filter(|&first| first == language);
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

impl ExplanationInput<'_> {
    /// Writes the sentence into `out`, replacing its content. Leaves out parts and quotations when
    /// the sentence would be too long.
    pub fn write(&self, out: &mut String) {
        let seen = Vocabulary::new(self.tokens);
        let (strongest, count) = self.strongest(seen);
        for count in (0..=count).rev() {
            for quoted in [true, false] {
                out.clear();
                self.sentence(seen, &strongest[..count], quoted, out);
                // Most sentences are ASCII.
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

    /// The parts that moved the score most, strongest first, with their points, and their number.
    fn strongest(&self, seen: Vocabulary) -> ([(Part, i32); PARTS_MAX], usize) {
        let points = self.points;
        // The description covers easy pronunciation and missing words.
        let when = |applies: bool, points: i32| if applies { points } else { 0 };
        let hard = self.facts.letters > 3
            && self.facts.pronounceability.get() < EASY_FROM
            && !self.described_as_hard(seen);
        let memory = seen.words > 0 && self.mentions_memory(seen);
        let digits = self.facts.digits > 0 && self.facts.hyphens == 0 && !self.is_number();
        let parts: [(Part, i32); PARTS] = [
            (Part::Market, when(seen.words > 0, points.market)),
            (Part::Length, when(self.mentions_length(seen), points.length)),
            (Part::Tld, points.tld),
            (Part::Spread, when(self.tld_spread > 1 || points.tld_spread < 0, points.tld_spread)),
            (Part::Hyphens, when(self.facts.hyphens > 0, points.characters)),
            (Part::Digits, when(digits, points.characters)),
            (Part::Sound, when(hard, points.pronounceability.min(0))),
            (Part::Memory, when(memory, points.dictionary.min(0))),
            (Part::Idn, when(self.facts.idn && !digits, points.characters.min(0))),
        ];
        // Branch-free selection by one number per part; of equals the first has the higher one.
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

    /// Mentions only short and long names, unless the description gives the length.
    fn mentions_length(&self, seen: Vocabulary) -> bool {
        const SHORT: u32 = 8;
        const LONG: u32 = 10;
        match self.facts.chars {
            0..=3 => seen.words > 0,
            chars if self.points.length > 0 => chars <= SHORT,
            chars => chars >= LONG,
        }
    }

    /// Short names of up to two words are easy to remember even when the words are rare.
    fn mentions_memory(&self, seen: Vocabulary) -> bool {
        seen.words > 2 || self.facts.chars >= MANY_CHARS
    }

    /// Writes the description, the strengths, then the weaknesses.
    fn sentence(&self, seen: Vocabulary, parts: &[(Part, i32)], quoted: bool, out: &mut String) {
        self.describe(seen, quoted, out);
        let good = parts.iter().filter(|(_, points)| *points > 0);
        for &(part, _) in good.clone() {
            out.push_str(", ");
            self.strength(part, seen, out);
        }
        let bad = parts.iter().filter(|(_, points)| *points < 0);
        let (has_strengths, faults) = (good.count() > 0, bad.clone().count());
        for (at, &(part, _)) in bad.enumerate() {
            out.push_str(match at {
                0 if has_strengths => "; but ",
                0 => ", ",
                _ if at + 1 == faults => " and ",
                _ => ", ",
            });
            self.weakness(part, out);
        }
        self.cap(out);
        out.push('.');
    }

    fn strength(&self, part: Part, seen: Vocabulary, out: &mut String) {
        match part {
            Part::Market => out.push_str("strong buyer demand"),
            Part::Length if seen.words == 0 => out.push_str("short"),
            Part::Length => {
                out.push_str("only ");
                self.size(out);
            }
            Part::Tld => self.suffix("popular TLD .", out),
            Part::Spread => {
                out.push_str("registered in ");
                plural(self.tld_spread.saturating_sub(1), "other TLD", out);
            }
            Part::Hyphens => out.push_str("natural hyphen"),
            Part::Digits => out.push_str("digits that add value"),
            Part::Sound | Part::Memory | Part::Idn => {}
        }
    }

    fn weakness(&self, part: Part, out: &mut String) {
        match part {
            Part::Market => out.push_str("weak buyer demand"),
            Part::Length => {
                out.push_str("long at ");
                self.size(out);
            }
            Part::Tld => self.suffix("less popular TLD .", out),
            Part::Spread if self.tld_spread <= 1 => out.push_str("not registered in other TLDs"),
            Part::Spread => {
                out.push_str("registered in only ");
                plural(self.tld_spread.saturating_sub(1), "other TLD", out);
            }
            Part::Hyphens => plural(self.facts.hyphens, "hyphen", out),
            Part::Digits => plural(self.facts.digits, "digit", out),
            Part::Sound => out.push_str("unusual letter sequence"),
            Part::Memory => out.push_str("hard to remember"),
            Part::Idn => out.push_str("hard to type as an internationalised name"),
        }
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
            1 => out.push_str("A single letter in another script"),
            others => {
                number(others, out);
                out.push_str(" letters in another script");
            }
        }
    }

    fn no_word(&self, out: &mut String) {
        let few = self.facts.chars <= 3;
        out.push_str(if few { "Only " } else { "Invented word, " });
        self.size(out);
        out.push_str(match self.facts.pronounceability.get() {
            _ if few => "",
            EASY_FROM.. => ", pronounceable",
            0..HARD_BELOW => ", hard to pronounce",
            _ => "",
        });
    }

    /// Returns true when the description says that the name is hard to pronounce.
    fn described_as_hard(&self, seen: Vocabulary) -> bool {
        seen.words == 0 && self.facts.pronounceability.get() < HARD_BELOW
    }

    fn known_words(&self, seen: Vocabulary, quoted: bool, out: &mut String) {
        how_many(seen, out);
        let worth_quoting = seen.letters <= QUOTED_LETTERS_MAX && seen.words <= 3;
        let alone = seen.words == 1 && !seen.rest && self.facts.digits == 0;
        if quoted && self.printable && worth_quoting && !alone {
            out.push_str(", ");
            self.quote(seen, out);
        }
        if seen.rest {
            out.push_str(", and other letters");
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

    /// Writes `before` and the suffix in Unicode.
    fn suffix(&self, before: &str, out: &mut String) {
        out.push_str(before);
        if self.tld.as_bytes().windows(4).any(|part| part == b"xn--") {
            out.push_str(&to_unicode(self.tld));
        } else {
            out.push_str(self.tld);
        }
    }

    /// Writes the cap that limits the score, if any.
    fn cap(&self, out: &mut String) {
        let strictest = self.facts.caps.strictest();
        let Some(cap) = strictest.filter(|cap| self.points.sum() > cap.max) else { return };
        out.push_str("; capped at ");
        number(cap.max.unsigned_abs(), out);
        if cap.name == "notPublic" {
            self.suffix(", .", out);
            return out.push_str(" is not open to the public");
        }
        out.push_str(" for ");
        match cap.name {
            "manyHyphens" => plural(self.facts.hyphens, "hyphen", out),
            "mixedScripts" => out.push_str("mixed scripts"),
            "spam" => out.push_str("a spam term"),
            "brand" | "trademark" => out.push_str("a known brand"),
            "adult" => out.push_str("an adult term"),
            _ => out.push_str("an offensive word"),
        }
    }
}

/// `Two common English words`, `A place name`.
fn how_many(seen: Vocabulary, out: &mut String) {
    let (common, noun) = match seen.language {
        Some(Language::NAMES) => ("", "personal name"),
        Some(Language::PLACES) => ("", "place name"),
        Some(language) => (how_common(seen), language.name()),
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
    if seen.language.is_some_and(|language| language.code().is_some()) {
        out.push_str(" word");
    }
    if seen.words > 1 {
        out.push('s');
    }
}

/// Frequency of the rarest word. Only English words are called rare: the lists of other languages
/// come from speech, in which technical words are rare.
fn how_common(seen: Vocabulary) -> &'static str {
    match seen.rarest.get() {
        COMMON_FROM.. => "common ",
        ..RARE_BELOW if seen.language == Some(Language::ENGLISH) => "rare ",
        _ => "",
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

/// Writes a decimal number; the standard formatter would take as long as the rest of the sentence.
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
