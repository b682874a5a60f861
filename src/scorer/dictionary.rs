//! The word list, and the split of a label into words.
//!
//! The list holds the words of fourteen languages, given names, surnames and places that registered
//! names use. Each word has a cost (its rarity in names), its frequency by language, and its market
//! value. `data/scorer/README.md` gives the sources; `benches/scoring` generates the list.

use rustc_hash::FxHashMap;

use super::label::{Label, Run, RunKind};
use super::letters::LetterModel;
use super::percent::Percent;
use super::prebuilt::{self, WordColumns};
use super::segment::{Cost, NO_WORD_FEE, Search, Segment, Segmenter};
use super::tlds::SuffixClass;
use crate::vocab::language::LanguageCode;

/// Cost of one of the ten digits, in sixteenths of a bit.
const DIGIT_COST: Cost = 53;
/// Extra cost of each run of digits.
const DIGITS_FEE: Cost = 32;
/// Cost of a letter of another script, assuming thirty equally likely letters.
const OTHER_COST: Cost = 80;
/// Language and level assigned to a listed word without a language.
const UNLISTED: (Language, u8) = (Language::ENGLISH, 1);

/// A language, or one of the two kinds of proper names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Language(u8);

/// ISO 639-1 code (`None` for proper names, which belong to no language), name in explanations, and
/// the suffixes under which the language is expected.
type LanguageInfo = (Option<LanguageCode>, &'static str, &'static [&'static str]);

/// All languages by number. At most sixteen languages, because the levels of a word take four bits
/// each in one `u64`.
static LANGUAGES: [LanguageInfo; 16] = [
    (Some(LanguageCode::English), "English", &["uk", "us", "au", "nz", "ie", "ca", "in", "za"]),
    (
        Some(LanguageCode::German),
        "German",
        &["de", "at", "ch", "li", "koeln", "wien", "hamburg", "berlin"],
    ),
    (Some(LanguageCode::French), "French", &["fr", "re"]),
    (Some(LanguageCode::Spanish), "Spanish", &["es", "mx", "ar", "cl", "pe", "uy", "ve", "ec"]),
    (Some(LanguageCode::Italian), "Italian", &["it", "sm"]),
    (Some(LanguageCode::Polish), "Polish", &["pl"]),
    (Some(LanguageCode::Swedish), "Swedish", &["se", "nu"]),
    (Some(LanguageCode::Dutch), "Dutch", &["nl", "be", "amsterdam", "vlaanderen"]),
    (Some(LanguageCode::Portuguese), "Portuguese", &["pt", "br"]),
    (Some(LanguageCode::Danish), "Danish", &["dk"]),
    (Some(LanguageCode::Norwegian), "Norwegian", &["no"]),
    (Some(LanguageCode::Finnish), "Finnish", &["fi"]),
    (Some(LanguageCode::Czech), "Czech", &["cz"]),
    (Some(LanguageCode::Turkish), "Turkish", &["tr"]),
    (None, "name", &[]),
    (None, "place", &[]),
];

impl Language {
    /// English, the language of most names.
    pub const ENGLISH: Language = Language(0);
    /// Given names and surnames.
    pub const NAMES: Language = Language(14);
    /// Towns, cities and countries.
    pub const PLACES: Language = Language(15);

    /// ISO 639-1 code; `None` for names and places.
    pub fn code(self) -> Option<LanguageCode> {
        self.info().0
    }

    /// `German`, or the kind of proper name.
    pub fn name(self) -> &'static str {
        self.info().1
    }

    /// The language's number, 0 to 15.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the language whose number is in the lowest four bits.
    pub fn from_number(number: u8) -> Language {
        Language(number & 15)
    }

    fn info(self) -> &'static LanguageInfo {
        &LANGUAGES[usize::from(self.0)]
    }

    fn all() -> impl DoubleEndedIterator<Item = Language> {
        (0..LANGUAGES.len() as u8).map(Language)
    }
}

/// Frequency of a word in each [`Language`], in four bits each: 0 for unknown, otherwise tenths of
/// [`Token::quality`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Levels(u64);

impl Levels {
    fn get(self, language: Language) -> u8 {
        (self.0 >> (4 * language.0) & 15) as u8
    }

    /// Returns the languages that have the word, by number, each with its level.
    fn known(self) -> impl Iterator<Item = (Language, u8)> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let number = (left != 0).then(|| left.trailing_zeros() as u8 / 4)?;
            left &= !(15 << (4 * number));
            Some((Language(number), self.get(Language(number))))
        })
    }

    /// Returns the first language with the highest level, and the level.
    fn highest(self) -> Option<(Language, u8)> {
        highest(self.known())
    }
}

/// The languages and kinds of proper names that claim a word, one bit each. A language claims a word
/// that is about as frequent in it as in any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Claims(u16);

impl Claims {
    /// The bits of [`Language::NAMES`] and [`Language::PLACES`].
    const PROPER: u16 = 3 << 14;

    fn has(self, language: Language) -> bool {
        self.0 >> language.0 & 1 != 0
    }

    fn only(self, language: Language) -> bool {
        self.0 == 1 << language.0
    }

    fn is_proper(self) -> bool {
        self.0 & Claims::PROPER != 0
    }

    /// Returns true if the country's language claims a word, or has it and English does not.
    fn is_own(self, levels: Levels, own: Language) -> bool {
        let level = levels.get(own);
        let highest = levels.highest().map_or(0, |highest| highest.1);
        self.has(own)
            || !self.has(Language::ENGLISH) && level > RAREST && level + OWN_BELOW >= highest
    }

    /// Returns the language of a word with these claims, and whether it is certain. The language of
    /// the suffix takes precedence, then English.
    fn settle(self, levels: Levels, letters: u8, expected: Option<Language>) -> (Language, bool) {
        let own = expected.filter(|&own| letters >= NAMED_FROM && self.is_own(levels, own));
        match (own, self.0.count_ones()) {
            (Some(own), _) if !self.is_proper() => (own, true),
            (_, 1) => (Language(self.0.trailing_zeros() as u8), true),
            _ if self.has(Language::ENGLISH) => (Language::ENGLISH, false),
            _ => {
                let claiming = levels.known().filter(|&(language, _)| self.has(language));
                let any = if self.0 == 0 { levels.highest() } else { highest(claiming) };
                (any.unwrap_or(UNLISTED).0, false)
            }
        }
    }
}

/// Returns the first language with the highest level.
fn highest(known: impl Iterator<Item = (Language, u8)>) -> Option<(Language, u8)> {
    known.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Kind of a piece of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word of a dictionary.
    Word(Language),
    /// Letters outside words.
    Unknown,
    /// A single letter between digits, hyphens or ends of the label, such as the `u` of `4u`.
    Letter,
    /// Decimal digits.
    Digits,
    /// Letters of a script without a dictionary.
    Other,
}

/// A piece of a label; `start..end` is its byte range in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub start: u16,
    pub end: u16,
    /// Tenths of quality; 0 except for words.
    level: u8,
}

impl Token {
    /// Creates a piece `start..end`; `level` is tenths of quality, 0 except for words.
    pub fn new(kind: TokenKind, start: u16, end: u16, level: u8) -> Token {
        Token { kind, start, end, level }
    }

    /// Tenths of [`Token::quality`]: 1 to 10 for words.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Frequency of the word: 1.00 for the most common thousands, 0.40 for rare ones, 0 for other
    /// pieces.
    pub fn quality(&self) -> Percent {
        Percent::clamped(10 * u32::from(self.level))
    }

    /// Number of letters or digits.
    pub fn len(&self) -> u32 {
        u32::from(self.end - self.start)
    }

    /// Whether the token is a word of the list.
    pub fn is_word(&self) -> bool {
        matches!(self.kind, TokenKind::Word(_))
    }

    /// Whether the token consists of Latin letters.
    pub fn is_letters(&self) -> bool {
        self.may_be_word() || self.kind == TokenKind::Letter
    }

    /// Whether the token consists of letters that could form a word.
    pub fn may_be_word(&self) -> bool {
        matches!(self.kind, TokenKind::Word(_) | TokenKind::Unknown)
    }
}

/// The list of words, which splits labels.
pub struct Dictionary {
    segmenter: Segmenter<'static>,
    words: WordColumns,
    by_suffix: FxHashMap<&'static str, Language>,
}

/// Minimum letters of a word whose language may be determined by the suffix without other evidence.
const NAMED_FROM: u8 = 3;
/// Level of words rarely used in a language.
const RAREST: u8 = 4;
/// Levels by which a word may be rarer in the language of the suffix than in another.
const OWN_BELOW: u8 = 3;
/// Level of the 2,500 most frequent words of a language.
const COMMON: u8 = 8;
/// Maximum letters of words that match by chance in some language.
const SHORT_LETTERS: u8 = 4;
/// Maximum letters of a run whose split into words may be a coincidence.
const COINCIDENCE_LETTERS_MAX: usize = 8;
/// Words that are also frequent endings, and verbs that stand before one of them, `on`.
const ENDINGS: [&str; 8] = ["an", "as", "at", "ex", "is", "on", "or", "us"];
const BEFORE_ON: [&str; 20] = [
    "add", "bolt", "carry", "clip", "come", "game", "go", "hang", "head", "hold", "lock", "log",
    "move", "play", "right", "rock", "roll", "sign", "turn", "walk",
];
/// Maximum letters of a run that is not read as several words.
const ONE_WORD_MAX: usize = 4;
/// Sixteenths of a bit by which words without a common language must be cheaper than plain letters.
const COINCIDENCE_COST: Cost = 15 * 8;

/// Context that the suffix gives to a label.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The language expected under the suffix.
    pub expected: Option<Language>,
    pub class: SuffixClass,
}

impl Setting {
    /// Returns the cost to subtract from a word of this level in the expected language. Costs are
    /// counted in names of all countries, where words of small languages are rare; at home, the words
    /// of all languages are equally familiar.
    fn saving(self, level: u8, cost: Cost) -> Cost {
        const BIT: Cost = 16;
        /// Bits of the words of levels 4 to 9 in German, whose names are numerous.
        const BITS: [Cost; 6] = [20, 18, 16, 15, 14, 12];
        let at_home = matches!(self.class, SuffixClass::Country | SuffixClass::Polish)
            && self.expected.is_some_and(|language| language != Language::ENGLISH);
        let own = level.checked_sub(RAREST).filter(|_| at_home);
        let own = own.map(|steps| BIT * BITS[usize::from(steps).min(BITS.len() - 1)]);
        own.map_or(0, |own| cost.saturating_sub(own))
    }
}

/// Working memory and result of [`Dictionary::read`]; reused from name to name.
#[derive(Clone, Default)]
pub struct Reading {
    search: Search,
    /// The pieces of the label, in order.
    pub tokens: Vec<Token>,
    /// Levels and claims of the words among the tokens, in order.
    seen: Vec<(Levels, Claims)>,
    /// Whether the language of the words is certain.
    pub certain: bool,
    /// Total cost of the pieces: the information to remember.
    pub cost: Cost,
    /// Sum of the levels of all words in the language of the suffix (English if it has none).
    pub fit: u32,
    /// Sum of the market values of all words, in tenths of a point.
    pub value: i32,
}

impl Dictionary {
    /// The dictionary that is compiled into the program.
    pub fn new() -> Dictionary {
        let by_suffix = Language::all()
            .flat_map(|language| language.info().2.iter().map(move |&suffix| (suffix, language)));
        let words = prebuilt::words();
        let segmenter = Segmenter::new(prebuilt::trie(), words.costs);
        Dictionary { segmenter, words, by_suffix: by_suffix.collect() }
    }

    /// The language expected under a public suffix, by its last label: German for `de`.
    pub fn expected(&self, tld: &str) -> Option<Language> {
        let last = tld.rsplit('.').next().unwrap_or(tld);
        self.by_suffix.get(last).copied()
    }

    /// Splits `label` into `reading.tokens` and adds up their cost, fit and value.
    pub fn read(&self, label: &Label, setting: Setting, reading: &mut Reading) {
        reading.tokens.clear();
        reading.seen.clear();
        reading.certain = true;
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
        let Reading { search, tokens, seen, certain, .. } = out;
        let letters = LetterModel::names();
        let (mut segments, mut cost) = self.segmenter.segment(text, letters, search);
        let unread = [Segment { len: text.len() as u8, word: None }];
        if let Some(spelt) = self.coincidence(text, segments, cost, setting) {
            (segments, cost) = (&unread, spelt);
        }
        let (mut fit, mut value) = (0, 0);
        let mut start = run.start;
        for segment in segments {
            let end = start + u16::from(segment.len);
            let mut token = Token { kind: TokenKind::Unknown, start, end, level: 0 };
            if let Some(word) = segment.word.filter(|&word| !self.is_chance(text, word, setting)) {
                let levels = Levels(self.words.levels[word as usize]);
                let claims = self.claims(word);
                let (language, sure) = claims.settle(levels, segment.len, setting.expected);
                let level = levels.highest().unwrap_or(UNLISTED).1;
                (token.kind, token.level) = (TokenKind::Word(language), level);
                *certain &= sure;
                seen.push((levels, claims));
                let level = levels.get(setting.expected.unwrap_or(Language::ENGLISH));
                cost -= setting.saving(level, self.segmenter.cost(word));
                fit += u32::from(level);
                value += i32::from(self.words.values[word as usize][setting.class.number()]);
            } else if text.len() == 1 {
                token.kind = TokenKind::Letter;
            }
            tokens.push(token);
            start = end;
        }
        (out.cost, out.fit, out.value) = (out.cost + cost, out.fit + fit, out.value + value);
    }

    /// Returns true if a run of up to four letters equals a word of another language by chance: every
    /// language has many short words, such as forms of verbs (`usan`).
    fn is_chance(&self, text: &str, word: u32, setting: Setting) -> bool {
        let (levels, claims) = (Levels(self.words.levels[word as usize]), self.claims(word));
        let is_own = |own| levels.get(own) > 0;
        text.len() <= usize::from(SHORT_LETTERS)
            && !claims.has(Language::ENGLISH)
            && !claims.is_proper()
            && !setting.expected.is_some_and(is_own)
            && levels.highest().is_none_or(|(_, level)| level < COMMON)
    }

    fn claims(&self, word: u32) -> Claims {
        Claims(self.words.claims[word as usize])
    }

    /// Returns the cost of a short run as plain letters if its split into words is a coincidence: it has
    /// four letters or fewer (`if` and `at`), or the second word is an ending (`band` and `on`), or no language has all of the words (`mou` and `rant`), and
    /// they are hardly cheaper than plain letters.
    fn coincidence(
        &self,
        text: &str,
        segments: &[Segment],
        cost: Cost,
        setting: Setting,
    ) -> Option<Cost> {
        if segments.len() < 2 || text.len() > COINCIDENCE_LETTERS_MAX {
            return None;
        }
        let spelt = NO_WORD_FEE + LetterModel::names().cost(text).0;
        if text.len() <= ONE_WORD_MAX || ends_like_a_word(text, segments) {
            return Some(spelt);
        }
        let (mut shared, mut longest) = (u16::MAX, 0);
        for segment in segments {
            let claims = self.claims(segment.word?);
            if !claims.is_proper() {
                shared &= claims.0;
            }
            longest = longest.max(segment.len);
        }
        if longest <= SHORT_LETTERS {
            // Short words exist in every language.
            let own = setting.expected.map_or(0, |own| 1 << own.0);
            shared &= own | 1 << Language::ENGLISH.0;
        }
        (shared == 0 && cost + COINCIDENCE_COST > spelt).then_some(spelt)
    }
}

/// Returns true for a split into a word and an ending.
fn ends_like_a_word(text: &str, segments: &[Segment]) -> bool {
    let [first, _] = segments else { return false };
    let (first, ending) = text.split_at(first.len.into());
    ENDINGS.contains(&ending) && first.len() > 2 && !BEFORE_ON.contains(&first)
}

/// Assigns the words of a label, where possible, to one language: the one that has and claims most
/// of them, then that of the suffix, then English.
fn settle_language(setting: Setting, reading: &mut Reading) {
    let Reading { tokens, seen, certain, .. } = reading;
    let common = || seen.iter().filter(|(_, claims)| !claims.is_proper());
    if seen.len() < 2 || common().count() == 0 {
        return;
    }
    let merit = |language: Language| {
        let has = common().filter(|&&(levels, claims)| has(levels, claims, language)).count();
        let claims = common().filter(|(_, claims)| claims.has(language)).count();
        (has + claims, Some(language) == setting.expected, language == Language::ENGLISH)
    };
    let languages = || Language::all().filter(|language| language.code().is_some());
    let Some(best) = languages().rev().max_by_key(|&language| merit(language)) else { return };
    // The language is certain if it is that of the suffix, or if one word belongs only to it.
    *certain = Some(best) == setting.expected || seen.iter().any(|(_, claims)| claims.only(best));
    let words = tokens.iter_mut().filter(|token| token.is_word());
    for (word, (levels, claims)) in words.zip(seen.iter()) {
        // Proper names stay proper names in any language.
        if has(*levels, *claims, best) && !claims.is_proper() {
            word.kind = TokenKind::Word(best);
        }
    }
}

/// Returns true if a language claims a word, or has it about as often as any other.
fn has(levels: Levels, claims: Claims, language: Language) -> bool {
    let level = levels.get(language);
    claims.has(language) || level > 0 && level + 2 >= levels.highest().map_or(0, |best| best.1)
}

/// Dictionary quality of a label, in hundredths: the frequency of its words weighted by their
/// length, reduced for each additional piece, and again if a piece is not a word.
pub fn quality(tokens: &[Token]) -> Percent {
    /// One word is better than two, and two are better than three.
    const BY_PIECES: [u32; 6] = [100, 100, 90, 68, 50, 38];
    /// A word beside other letters is often a typo, a fragment or a coincidence.
    const WITH_LEFTOVERS: u32 = 75;
    let pieces = tokens.iter().filter(|token| token.may_be_word()).count();
    let (mut sum, mut letters, mut leftovers) = (0, 0, false);
    for token in tokens.iter().filter(|token| token.may_be_word()) {
        sum += token.len() * level_beside(token, pieces);
        letters += token.len();
        leftovers |= !token.is_word();
    }
    let share = BY_PIECES[pieces.min(BY_PIECES.len() - 1)];
    let share = if leftovers { share * WITH_LEFTOVERS / 100 } else { share };
    Percent::clamped((sum * share).checked_div(letters * 10).unwrap_or(0))
}

/// Returns the level of a word that stands beside others; very short words count less.
fn level_beside(token: &Token, words: usize) -> u32 {
    let most = match (words, token.len()) {
        (2.., 0..=2) => 4,
        (2.., 3) => 8,
        _ => 10,
    };
    u32::from(token.level).min(most)
}

/// Cost of digits and of letters of other scripts.
pub fn unread_cost(digits: u32, others: u32) -> Cost {
    DIGIT_COST * digits + OTHER_COST * others
}

/// Computes `Facts::digits_where` for a label of `tokens`.
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
        let setting =
            Setting { expected: DICTIONARY.expected(tld), class: SuffixClass::for_tld(tld) };
        DICTIONARY.read(&parts, setting, &mut reading);
        (parts, reading)
    }

    fn show(label: &Label, token: &Token) -> String {
        let kind = match token.kind {
            TokenKind::Word(language) => {
                language.code().map_or(language.name(), LanguageCode::as_str)
            }
            TokenKind::Unknown => "?",
            TokenKind::Letter => "letter",
            TokenKind::Digits => "digits",
            TokenKind::Other => "other",
        };
        format!("{}:{kind}", label.text(token.start, token.end))
    }

    /// Asserts the pieces of a label under a suffix: `hotel:en`, `zynga:?`.
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
    fn languages_are_recognised() {
        assert_reads("zeitung", "com", "zeitung:de");
        assert_reads("autoversicherung", "de", "autoversicherung:de");
        assert_reads("tanieubezpieczenia", "pl", "tanie:pl ubezpieczenia:pl");
        assert_reads("voiture", "fr", "voiture:fr");
        assert_reads("rose", "com", "rose:en");
        assert_reads("auto", "de", "auto:de");
        assert_eq!(DICTIONARY.expected("com.pl"), Some(Language(5)));
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
    fn words_fit_the_language_of_their_suffix() {
        let fit = |label, tld| read(label, tld).1.fit;
        assert!(fit("zeitung", "de") > fit("zeitung", "com"));
        assert!(fit("newspaper", "com") > fit("newspaper", "de"));
    }

    #[test]
    fn fewer_words_have_higher_quality() {
        let quality = |label| {
            let tokens = read(label, "com").1.tokens;
            super::quality(&tokens)
        };
        assert!(quality("hotel") > quality("besthotel"));
        assert!(quality("besthotel") > quality("bestcityhotel"));
        assert!(quality("bestcityhotel") > quality("xkqzjv"));
        assert!(quality("hotel") > quality("trireme"), "rare words are worth less");
    }

    #[test]
    fn positions_of_digits_are_classified() {
        let digits = |label| digits_where(&read(label, "com").1.tokens);
        let seen = ["hotel", "hotel24", "24", "24hotel", "ho24tel", "4hotel4"].map(digits);
        assert_eq!(seen, [0, 1, 1, 2, 3, 3]);
    }

    #[test]
    fn the_language_of_the_suffix_comes_first() {
        for word in ["zlomowanie", "czapeczki", "olszyny", "tenis", "klub", "online"] {
            assert_reads(word, "pl", &format!("{word}:pl"));
        }
        assert_reads("hotel", "de", "hotel:de");
        assert_reads("window", "de", "window:en");
    }

    #[test]
    fn a_language_is_certain_when_no_other_has_the_word() {
        let certain = |label, tld| read(label, tld).1.certain;
        for (label, tld) in [("window", "com"), ("zeitung", "com"), ("besthotel", "com")] {
            assert!(certain(label, tld), "{label}.{tld}");
        }
        for (label, tld) in [("hotel", "com"), ("ai", "com"), ("ai", "fr"), ("casa", "com")] {
            assert!(!certain(label, tld), "{label}.{tld}");
        }
        assert!(certain("hotel", "de") && certain("casa", "es"));
    }

    #[test]
    fn words_without_a_common_language_are_a_coincidence() {
        for label in ["mourant", "tervis"] {
            assert_eq!(read(label, "com").1.tokens.len(), 1, "{label}");
        }
        assert_reads("mycasa", "com", "my:en casa:es");
    }

    #[test]
    fn people_and_places_are_distinguished_from_words() {
        for (label, kind) in [("maria", "name"), ("garcia", "name"), ("portugal", "place")] {
            assert_reads(label, "com", &format!("{label}:{kind}"));
        }
        assert_reads("rose", "com", "rose:en");
    }
}
