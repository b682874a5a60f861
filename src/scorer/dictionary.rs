//! The words people know, and which of them a label is made of.
//!
//! One list holds the words of fourteen languages, given names, surnames and places, as far as
//! registered names use them: what each costs (how rare it is there), in which languages it is how
//! common, and what it adds to a name's market value. `data/scorer/README.md` says where it comes
//! from, `benches/scoring` makes it.

use rustc_hash::FxHashMap;

use super::label::{Label, Run, RunKind};
use super::letters::LetterModel;
use super::percent::Percent;
use super::prebuilt::{self, WordColumns};
use super::segment::{Cost, Search, Segmenter};
use super::tlds::SuffixClass;

/// What a digit costs, in sixteenths of a bit: one of ten.
const DIGIT_COST: Cost = 53;
/// What digits cost before the first of them.
const DIGITS_FEE: Cost = 32;
/// What a letter of another script costs: one of some thirty.
const OTHER_COST: Cost = 80;
/// What a word is that the list holds and no language claims.
const UNLISTED: (Tongue, u8) = (Tongue::ENGLISH, 1);

/// A language, or one of the two kinds of proper names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tongue(u8);

/// What is known of a [`Tongue`]; its number is its place here.
struct TongueInfo {
    /// ISO 639-1, or `None` for proper names, which belong to no language.
    code: Option<&'static str>,
    /// As an explanation calls it.
    name: &'static str,
    /// Country suffixes where it is the language to expect.
    suffixes: &'static [&'static str],
}

const fn spoken(
    code: &'static str,
    name: &'static str,
    suffixes: &'static [&'static str],
) -> TongueInfo {
    TongueInfo { code: Some(code), name, suffixes }
}

/// Sixteen at most: a word's levels are kept in four bits each of one `u64`.
static TONGUES: [TongueInfo; 16] = [
    spoken("en", "English", &["uk", "us", "au", "nz", "ie", "ca", "in", "za"]),
    spoken("de", "German", &["de", "at", "ch", "li", "koeln", "wien", "hamburg", "berlin"]),
    spoken("fr", "French", &["fr", "re"]),
    spoken("es", "Spanish", &["es", "mx", "ar", "cl", "pe", "uy", "ve", "ec"]),
    spoken("it", "Italian", &["it", "sm"]),
    spoken("pl", "Polish", &["pl"]),
    spoken("sv", "Swedish", &["se", "nu"]),
    spoken("nl", "Dutch", &["nl", "be", "amsterdam", "vlaanderen"]),
    spoken("pt", "Portuguese", &["pt", "br"]),
    spoken("da", "Danish", &["dk"]),
    spoken("no", "Norwegian", &["no"]),
    spoken("fi", "Finnish", &["fi"]),
    spoken("cs", "Czech", &["cz"]),
    spoken("tr", "Turkish", &["tr"]),
    TongueInfo { code: None, name: "name", suffixes: &[] },
    TongueInfo { code: None, name: "place", suffixes: &[] },
];

impl Tongue {
    /// That of most names.
    pub const ENGLISH: Tongue = Tongue(0);
    /// Given names and surnames.
    pub const NAMES: Tongue = Tongue(14);
    /// Towns, cities and countries.
    pub const PLACES: Tongue = Tongue(15);

    /// ISO 639-1 code; `None` for names and places.
    pub fn code(self) -> Option<&'static str> {
        self.info().code
    }

    /// `German`, or what kind of proper name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Its place in the table: 0 to 15.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The one with this number, of which the lowest four bits count.
    pub fn numbered(number: u8) -> Tongue {
        Tongue(number & 15)
    }

    fn info(self) -> &'static TongueInfo {
        &TONGUES[usize::from(self.0)]
    }

    fn all() -> impl DoubleEndedIterator<Item = Tongue> {
        (0..TONGUES.len() as u8).map(Tongue)
    }
}

/// How common a word is in each [`Tongue`]: four bits each, 0 for unknown, else tenths of
/// [`Token::quality`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Levels(u64);

impl Levels {
    #[cfg(test)]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    fn get(self, tongue: Tongue) -> u8 {
        (self.0 >> (4 * tongue.0) & 15) as u8
    }

    /// Raises the level in one tongue to `level`, if it is lower.
    #[cfg(test)]
    pub fn raise(&mut self, tongue: Tongue, level: u8) {
        if level > self.get(tongue) {
            let shift = 4 * tongue.0;
            self.0 = self.0 & !(15 << shift) | u64::from(level) << shift;
        }
    }

    /// The tongues that know the word, in the order of the table, and its levels there.
    fn known(self) -> impl Iterator<Item = (Tongue, u8)> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let number = (left != 0).then(|| left.trailing_zeros() as u8 / 4)?;
            left &= !(15 << (4 * number));
            Some((Tongue(number), self.get(Tongue(number))))
        })
    }

    /// The tongue that claims the word best (the first in the table of several), and the word's
    /// level where it is most common.
    fn best(self, expected: Option<Tongue>) -> Option<(Tongue, u8)> {
        let mut best: Option<(Tongue, u8)> = None;
        let mut most = 0;
        for (tongue, level) in self.known() {
            let claim = claim(tongue, level, expected);
            if best.is_none_or(|(_, best)| claim > best) {
                best = Some((tongue, claim));
            }
            most = most.max(level);
        }
        best.map(|(tongue, _)| (tongue, most))
    }
}

/// How well a tongue claims a word of this level: a level counts twice what English does for
/// being the language of most names, and less than the language of the suffix does.
fn claim(tongue: Tongue, level: u8, expected: Option<Tongue>) -> u8 {
    2 * level + u8::from(tongue == Tongue::ENGLISH) + 3 * u8::from(Some(tongue) == expected)
}

/// What a piece of a label is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word of a dictionary.
    Word(Tongue),
    /// Letters no dictionary knows.
    Unknown,
    /// A letter by itself, between digits, hyphens and the label's ends: the `u` of `4u`.
    Letter,
    /// Decimal digits.
    Digits,
    /// Letters of a script without a dictionary here.
    Other,
}

/// One piece of a label; `start..end` are bytes of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub start: u16,
    pub end: u16,
    /// Tenths of quality, 0 for all but words.
    level: u8,
}

impl Token {
    /// A piece of the text's bytes `start..end`; `level` is tenths of quality, 0 for all but words.
    pub fn new(kind: TokenKind, start: u16, end: u16, level: u8) -> Token {
        Token { kind, start, end, level }
    }

    /// Tenths of [`Token::quality`]: 1 to 10 for words.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// How common the word is: 1.00 for the thousands everybody uses, 0.40 for rare ones, 0 for
    /// what is no word.
    pub fn quality(&self) -> Percent {
        Percent::clamped(10 * u32::from(self.level))
    }

    /// Letters or digits in it.
    pub fn len(&self) -> u32 {
        u32::from(self.end - self.start)
    }

    /// True for a word of a dictionary.
    pub fn is_word(&self) -> bool {
        matches!(self.kind, TokenKind::Word(_))
    }

    /// True for Latin letters.
    pub fn is_letters(&self) -> bool {
        self.may_be_word() || self.kind == TokenKind::Letter
    }

    /// True for what the dictionaries could have known.
    pub fn may_be_word(&self) -> bool {
        matches!(self.kind, TokenKind::Word(_) | TokenKind::Unknown)
    }
}

/// The list of words, and how labels are split by it.
pub struct Dictionary {
    segmenter: Segmenter<'static>,
    words: WordColumns,
    by_suffix: FxHashMap<&'static str, Tongue>,
}

/// What a word counts for more in the language that the suffix speaks, where several know it.
const EXPECTED_BONUS: u32 = 6;
/// The highest level that names and places have: no list says how common they are.
const PROPER_LEVEL_MAX: u8 = 5;

/// Where a label's suffix puts it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The language to expect, if the suffix speaks one.
    pub expected: Option<Tongue>,
    pub class: SuffixClass,
}

/// What [`Dictionary::read`] works in and leaves behind; reused from name to name.
#[derive(Clone, Default)]
pub struct Reading {
    search: Search,
    /// The pieces of the label, in order.
    pub tokens: Vec<Token>,
    /// What is known of the words among them, in order.
    levels: Vec<Levels>,
    /// What it costs to say the label piece by piece: how much there is to remember.
    pub cost: Cost,
    /// Of all words together, how common they are in the language of the suffix (English where
    /// that speaks none), in levels.
    pub fit: u32,
    /// Of all words together, what buyers pay for them: tenths of a point, before they share it.
    pub value: i32,
}

impl Dictionary {
    /// The dictionary the program was built with.
    pub fn new() -> Dictionary {
        let by_suffix = Tongue::all()
            .flat_map(|tongue| tongue.info().suffixes.iter().map(move |&suffix| (suffix, tongue)));
        let words = prebuilt::words();
        let segmenter = Segmenter::new(prebuilt::trie(), words.costs);
        Dictionary { segmenter, words, by_suffix: by_suffix.collect() }
    }

    /// The language to expect under a public suffix, by its last label: German for `de`.
    pub fn expected(&self, tld: &str) -> Option<Tongue> {
        let last = tld.rsplit('.').next().unwrap_or(tld);
        self.by_suffix.get(last).copied()
    }

    /// Splits `label` into `reading.tokens`, and sums up what they are worth in `setting`.
    pub fn read(&self, label: &Label, setting: Setting, reading: &mut Reading) {
        reading.tokens.clear();
        reading.levels.clear();
        (reading.cost, reading.fit, reading.value) = (0, 0, 0);
        for &run in &label.runs {
            let letters = Cost::from(run.end - run.start);
            let (kind, cost) = match run.kind {
                RunKind::Letters => {
                    self.read_letters(label, run, setting, reading);
                    continue;
                }
                RunKind::Digits => (TokenKind::Digits, DIGITS_FEE + DIGIT_COST * letters),
                RunKind::Other => (TokenKind::Other, OTHER_COST * letters),
            };
            reading.cost += cost;
            reading.tokens.push(Token { kind, start: run.start, end: run.end, level: 0 });
        }
        settle_language(setting, reading);
    }

    fn read_letters(&self, label: &Label, run: Run, setting: Setting, out: &mut Reading) {
        let text = label.text(run.start, run.end);
        let Reading { search, tokens, levels: seen, .. } = out;
        let (segments, cost) = self.segmenter.segment(text, LetterModel::names(), search);
        let (mut fit, mut value) = (0, 0);
        let mut start = run.start;
        for segment in segments {
            let end = start + u16::from(segment.len);
            let mut token = Token { kind: TokenKind::Unknown, start, end, level: 0 };
            if let Some(word) = segment.word {
                let levels = Levels(self.words.levels[word as usize]);
                let (tongue, level) = levels.best(setting.expected).unwrap_or(UNLISTED);
                (token.kind, token.level) = (TokenKind::Word(tongue), level);
                seen.push(levels);
                fit += u32::from(levels.get(setting.expected.unwrap_or(Tongue::ENGLISH)));
                value += i32::from(self.words.values[word as usize][setting.class.number()]);
            } else if text.len() == 1 {
                token.kind = TokenKind::Letter;
            }
            tokens.push(token);
            start = end;
        }
        (out.cost, out.fit, out.value) = (out.cost + cost, out.fit + fit, out.value + value);
    }
}

/// Where the words of a label are of several tongues, gives those words that one language knows
/// to it: to the one that knows the most of them, and of several the one that claims them best.
fn settle_language(setting: Setting, reading: &mut Reading) {
    let Reading { tokens, levels, .. } = reading;
    let words = tokens.iter().filter(|token| token.is_word());
    if levels.len() < 2 || words.clone().all(|word| word.kind == tokens[0].kind) {
        return;
    }
    let mut merits = [(0u32, 0u32); TONGUES.len()];
    for &levels in levels.iter() {
        for (tongue, level) in levels.known().filter(|(tongue, _)| tongue.code().is_some()) {
            let (words, claims) = &mut merits[usize::from(tongue.0)];
            *words += 1;
            let bonus = if Some(tongue) == setting.expected { EXPECTED_BONUS } else { 0 };
            *claims += u32::from(claim(tongue, level, setting.expected)) + bonus;
        }
    }
    let Some(best) = Tongue::all().rev().max_by_key(|tongue| merits[usize::from(tongue.0)]) else {
        return;
    };
    let words = tokens.iter_mut().filter(|token| token.is_word());
    for (word, levels) in words.zip(levels.iter()).filter(|(_, levels)| levels.get(best) > 0) {
        // Who is called Paul is called so in a German name, too.
        let proper = matches!(word.kind, TokenKind::Word(tongue) if tongue.code().is_none());
        if !proper || levels.get(best) > PROPER_LEVEL_MAX {
            word.kind = TokenKind::Word(best);
        }
    }
}

/// How well dictionaries know a label of `tokens`, in hundredths: its words by their letters and by
/// how common they are, less for every further piece, and less again when a piece is no word.
/// `pieces` is the number of words and of unknown pieces between them.
pub fn quality(tokens: &[Token], pieces: usize) -> u32 {
    /// One strong word beats two natural ones beats three.
    const BY_PIECES: [u32; 6] = [100, 100, 90, 68, 50, 38];
    /// A word with leftovers is mostly a typing error, a fragment or found by chance.
    const WITH_LEFTOVERS: u32 = 75;
    let (mut sum, mut letters, mut leftovers) = (0, 0, false);
    for token in tokens.iter().filter(|token| token.may_be_word()) {
        sum += token.len() * level_beside(token, pieces);
        letters += token.len();
        leftovers |= !token.is_word();
    }
    let share = BY_PIECES[pieces.min(BY_PIECES.len() - 1)];
    let share = if leftovers { share * WITH_LEFTOVERS / 100 } else { share };
    (sum * share).checked_div(letters * 10).unwrap_or(0)
}

/// A two-letter word among others says little, and a three-letter one less than a long one.
fn level_beside(token: &Token, words: usize) -> u32 {
    let most = match (words, token.len()) {
        (2.., 0..=2) => 4,
        (2.., 3) => 8,
        _ => 10,
    };
    u32::from(token.level).min(most)
}

/// What digits and letters of other scripts cost one by one.
pub fn unread_cost(digits: u32, others: u32) -> Cost {
    DIGIT_COST * digits + OTHER_COST * others
}

/// [`super::signals::Facts::digits_where`] of a label of `tokens`.
pub fn digits_where(tokens: &[Token]) -> u32 {
    let is_number = |token: &&Token| token.kind == TokenKind::Digits;
    match tokens.iter().filter(is_number).count() {
        0 => 0,
        1 if tokens.last().as_ref().is_some_and(is_number) => 1,
        1 if tokens.first().as_ref().is_some_and(is_number) => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::new);

    fn read(label: &str, tld: &str) -> (Label, Reading) {
        let (mut parts, mut reading) = (Label::default(), Reading::default());
        parts.read(label);
        let setting = Setting { expected: DICTIONARY.expected(tld), class: SuffixClass::of(tld) };
        DICTIONARY.read(&parts, setting, &mut reading);
        (parts, reading)
    }

    fn show(label: &Label, token: &Token) -> String {
        let kind = match token.kind {
            TokenKind::Word(tongue) => tongue.code().unwrap_or(tongue.name()),
            TokenKind::Unknown => "?",
            TokenKind::Letter => "letter",
            TokenKind::Digits => "digits",
            TokenKind::Other => "other",
        };
        format!("{}:{kind}", label.text(token.start, token.end))
    }

    /// The pieces of a label under a suffix, as `hotel:en`, `zynga:?`.
    #[track_caller]
    fn assert_reads(label: &str, tld: &str, expected: &str) {
        let (parts, reading) = read(label, tld);
        let shown: Vec<_> = reading.tokens.iter().map(|token| show(&parts, token)).collect();
        assert_eq!(shown.join(" "), expected, "{label}.{tld}");
    }

    #[test]
    fn labels_are_split_into_words() {
        assert_reads("hotel", "com", "hotel:en");
        assert_reads("besthotel", "com", "best:en hotel:en");
        assert_reads("bestcityhotel", "com", "best:en city:en hotel:en");
        assert_reads("cryptowallet", "io", "crypto:en wallet:en");
        assert_reads("best-hotel-4u", "com", "best:en hotel:en 4:digits u:letter");
        assert_reads("xkqzjv", "com", "xkqzjv:?");
    }

    #[test]
    fn languages_are_found_per_name() {
        assert_reads("zeitung", "com", "zeitung:de");
        assert_reads("autoversicherung", "de", "auto:de versicherung:de");
        assert_reads("tanieubezpieczenia", "pl", "tanie:pl ubezpieczenia:pl");
        assert_reads("voiture", "fr", "voiture:fr");
        assert_reads("rose", "com", "rose:en");
        assert_reads("auto", "de", "auto:de");
        assert_eq!(DICTIONARY.expected("com.pl"), Some(Tongue(5)));
        assert_eq!(DICTIONARY.expected("com"), None);
    }

    #[test]
    fn common_words_cost_less_than_rare_ones_and_than_nonsense() {
        let cost = |label| read(label, "com").1.cost;
        assert!(cost("hotel") < cost("trireme") && cost("hotel") < cost("hxtql"));
        assert!(cost("hotel") < cost("besthotel") && cost("besthotel") < cost("bestcityhotel"));
        assert!(cost("1") < cost("12"));
    }

    #[test]
    fn words_fit_the_language_of_the_suffix() {
        let fit = |label, tld| read(label, tld).1.fit;
        assert!(fit("zeitung", "de") > fit("zeitung", "com"));
        assert!(fit("newspaper", "com") > fit("newspaper", "de"));
    }

    #[test]
    fn one_strong_word_beats_two_and_two_beat_three() {
        let quality = |label| {
            let tokens = read(label, "com").1.tokens;
            super::quality(&tokens, tokens.len())
        };
        assert!(quality("hotel") > quality("besthotel"));
        assert!(quality("besthotel") > quality("bestcityhotel"));
        assert!(quality("bestcityhotel") > quality("xkqzjv"));
        assert!(quality("hotel") > quality("trireme"), "rare words are worth less");
    }

    #[test]
    fn where_digits_stand() {
        let digits = |label| digits_where(&read(label, "com").1.tokens);
        let seen = ["hotel", "hotel24", "24", "24hotel", "ho24tel", "4hotel4"].map(digits);
        assert_eq!(seen, [0, 1, 1, 2, 3, 3]);
    }

    #[test]
    fn levels_keep_their_best_and_their_own_bits() {
        let mut levels = Levels::default();
        for tongue in Tongue::all() {
            levels.raise(tongue, 7);
            levels.raise(tongue, 3);
        }
        assert!(Tongue::all().all(|tongue| levels.get(tongue) == 7));
        assert_eq!(levels.best(None), Some((Tongue::ENGLISH, 7)));
        assert_eq!(levels.best(Some(Tongue(3))), Some((Tongue(3), 7)));
        assert_eq!(Levels::default().best(None), None);
    }
}
