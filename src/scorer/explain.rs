//! The score in one sentence: what the name is, then what moved the score most, first what speaks
//! for it, then what against.

use super::dictionary::{Token, TokenKind, Tongue};
use super::percent::Percent;
use super::signals::{Facts, Points};
use super::tlds::SuffixClass;
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
    Market,
    Length,
    Tld,
    Spread,
    Hyphens,
    Digits,
    Sound,
    Language,
    Memory,
    Idn,
}

/// How many of them there are.
const PARTS: usize = 10;
/// How common, in hundredths, a word is that is called common, and one that is not called rare.
const COMMON_FROM: u8 = 80;
const RARE_BELOW: u8 = 50;
/// Letters that are easier than this can be spoken.
const HARD_BELOW: u8 = 40;
/// Letters from here on sound like words: no run of them is unusual.
const EASY_FROM: u8 = 65;
/// Characters from which a name is a lot to remember, whatever it is made of.
const MANY_CHARS: u32 = 12;

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
            for quoted in [true, false] {
                out.clear();
                self.sentence(seen, &strongest[..count], quoted, out);
                // Few sentences hold more bytes than characters.
                if out.len() <= EXPLANATION_CHARS_MAX
                    || out.chars().count() <= EXPLANATION_CHARS_MAX
                {
                    return;
                }
            }
        }
        out.clear();
        self.lead(seen, false, out);
    }

    /// The parts that moved the score most with what they moved it by, first the strongest, and
    /// how many there are.
    fn strongest(&self, seen: Vocabulary) -> ([(Part, i32); PARTS_MAX], usize) {
        let points = self.points;
        // That known words can be pronounced goes without saying, and how little a name of no
        // word says is in the lead.
        let idle = |applies: bool, points: i32| if applies { points } else { 0 };
        let sound = match (self.facts.pronounceability.get(), seen.words) {
            (EASY_FROM.., 0) => points.pronounceability.max(0),
            (EASY_FROM.., _) => 0,
            _ => points.pronounceability.min(0),
        };
        let memory = idle(seen.words > 0 && self.tells_memory(seen), points.dictionary.min(0));
        let parts: [(Part, i32); PARTS] = [
            (Part::Market, idle(seen.words > 0, points.market)),
            (Part::Length, idle(self.tells_length(seen), points.length)),
            (Part::Tld, points.tld),
            (Part::Spread, idle(self.tld_spread > 1 || points.tld_spread < 0, points.tld_spread)),
            (Part::Hyphens, idle(self.facts.hyphens > 0, points.hyphens)),
            (Part::Digits, idle(self.facts.digits > 0 && !self.is_number(), points.digits)),
            (Part::Sound, idle(self.facts.letters > 3 && !self.said_hard(seen), sound)),
            (Part::Language, idle(self.tells_language(seen), points.language)),
            (Part::Memory, memory),
            (Part::Idn, points.idn),
        ];
        // One number each, without a branch: of equals the first is the higher one.
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

    /// What people call neither short nor long is not told, nor what the lead says already.
    fn tells_length(&self, seen: Vocabulary) -> bool {
        const SHORT: u32 = 8;
        const LONG: u32 = 10;
        match self.facts.chars {
            0..=3 => seen.words > 0,
            chars if self.points.length > 0 => chars <= SHORT,
            chars => chars >= LONG,
        }
    }

    /// Two short words may be rare together, but nobody forgets them.
    fn tells_memory(&self, seen: Vocabulary) -> bool {
        seen.words > 2 || self.facts.chars >= MANY_CHARS
    }

    /// Likewise: common words are everyday ones, and rare ones are not. That they are not what
    /// people of a country say is told always.
    fn tells_language(&self, seen: Vocabulary) -> bool {
        let suffix = SuffixClass::of(self.tld);
        let abroad = matches!(suffix, SuffixClass::Country | SuffixClass::Polish);
        let between = (RARE_BELOW..COMMON_FROM).contains(&seen.rarest.get());
        seen.words > 0 && (between || self.points.language < 0 && abroad)
    }

    /// The lead, then what speaks for the name, then what against it.
    fn sentence(&self, seen: Vocabulary, parts: &[(Part, i32)], quoted: bool, out: &mut String) {
        self.lead(seen, quoted, out);
        let good = parts.iter().filter(|(_, points)| *points > 0);
        for &(part, _) in good.clone() {
            out.push_str(", ");
            self.strength(part, seen, out);
        }
        let bad = parts.iter().filter(|(_, points)| *points < 0);
        let (praised, faults) = (good.count() > 0, bad.clone().count());
        for (at, &(part, _)) in bad.enumerate() {
            out.push_str(match at {
                0 if praised => "; but ",
                0 => ", ",
                _ if at + 1 == faults => " and ",
                _ => ", ",
            });
            self.weakness(part, seen, out);
        }
        self.held(out);
        out.push('.');
    }

    fn strength(&self, part: Part, seen: Vocabulary, out: &mut String) {
        let one = seen.words == 1;
        match part {
            Part::Market if self.varied() => {
                out.push_str(if one { "a word that sells" } else { "words that sell" });
            }
            Part::Market => {
                out.push_str("the kind of ");
                out.push_str(if one { "word" } else { "words" });
                out.push_str(" buyers pay for");
            }
            Part::Length if seen.words == 0 => out.push_str("short"),
            Part::Length => {
                out.push_str(if self.facts.chars <= 5 { "only " } else { "short at " });
                self.size(out);
            }
            Part::Tld => self.suffix("in .", out),
            Part::Spread => {
                out.push_str("registered in ");
                plural(self.tld_spread.saturating_sub(1), "other TLD", out);
            }
            Part::Hyphens => out.push_str("read easily with its hyphen"),
            Part::Digits => out.push_str("with digits that fit"),
            Part::Sound => out.push_str("easy to say"),
            Part::Language => out.push_str(if one { "an everyday word" } else { "everyday words" }),
            Part::Memory | Part::Idn => {}
        }
    }

    fn weakness(&self, part: Part, seen: Vocabulary, out: &mut String) {
        let one = seen.words == 1;
        match part {
            Part::Market => {
                out.push_str(if one { "a word" } else { "words" });
                out.push_str(match (self.varied(), one) {
                    (true, _) => " few buyers look for",
                    (false, true) => " that seldom sells",
                    (false, false) => " that seldom sell",
                });
            }
            Part::Length => {
                out.push_str("long at ");
                self.size(out);
            }
            Part::Tld => self.suffix("in the less wanted .", out),
            Part::Spread if self.tld_spread <= 1 => out.push_str("wanted in no other TLD"),
            Part::Spread => {
                out.push_str("wanted in only ");
                plural(self.tld_spread.saturating_sub(1), "other TLD", out);
            }
            Part::Hyphens => {
                out.push_str("with ");
                with(self.facts.hyphens, "hyphen", out);
            }
            Part::Digits => {
                out.push_str("with ");
                with(self.facts.digits, "digit", out);
            }
            Part::Sound => out.push_str("an unusual run of letters"),
            Part::Language => {
                out.push_str(if one { "not an everyday word" } else { "not everyday words" });
                if matches!(SuffixClass::of(self.tld), SuffixClass::Country | SuffixClass::Polish) {
                    self.suffix(" under .", out);
                }
            }
            Part::Memory => out.push_str("a lot to remember"),
            Part::Idn => out.push_str("hard to type as an internationalised name"),
        }
    }

    /// Half of all names are told in other words, so that a list of them does not drone.
    fn varied(&self) -> bool {
        self.facts.chars % 2 == 1
    }

    /// What the name is. It starts with a capital letter or a digit.
    fn lead(&self, seen: Vocabulary, quoted: bool, out: &mut String) {
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
            1 => out.push_str("A single letter of another script"),
            others => {
                number(others, out);
                out.push_str(" letters of another script");
            }
        }
    }

    fn no_word(&self, out: &mut String) {
        let few = self.facts.chars <= 3;
        if few {
            out.push_str("Only ");
        }
        self.size(out);
        out.push_str(match self.facts.pronounceability.get() {
            _ if few => "",
            EASY_FROM.. => " that sound like a word but are none",
            0..HARD_BELOW => " that are hard to pronounce",
            _ => " that form no known word",
        });
    }

    /// The lead says already that the letters are unusual.
    fn said_hard(&self, seen: Vocabulary) -> bool {
        seen.words == 0 && self.facts.pronounceability.get() < HARD_BELOW
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

    /// `before` and the suffix as people write it.
    fn suffix(&self, before: &str, out: &mut String) {
        out.push_str(before);
        if self.tld.as_bytes().windows(4).any(|part| part == b"xn--") {
            out.push_str(&to_unicode(self.tld));
        } else {
            out.push_str(self.tld);
        }
    }

    /// The cap that holds the score, if one does.
    fn held(&self, out: &mut String) {
        let strictest = self.facts.caps.strictest();
        let Some(cap) = strictest.filter(|cap| self.points.sum() > cap.max) else { return };
        out.push_str("; held to ");
        number(cap.max.unsigned_abs(), out);
        out.push_str(" for ");
        match cap.name {
            "manyHyphens" => {
                out.push_str("its ");
                plural(self.facts.hyphens, "hyphen", out);
            }
            "mixedScripts" => out.push_str("mixing scripts"),
            "spam" => out.push_str("a term that spam is made of"),
            "trademark" => out.push_str("a well-known trademark"),
            "adult" => out.push_str("an adult term"),
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

/// Judged by the rarest of them. Of other languages the list is of spoken words, where those of
/// trades are rare: only English ones, which are counted in print, too, are called so.
fn how_common(seen: Vocabulary) -> &'static str {
    match seen.rarest.get() {
        COMMON_FROM.. => "common ",
        ..RARE_BELOW if seen.tongue == Some(Tongue::ENGLISH) => "rare ",
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
