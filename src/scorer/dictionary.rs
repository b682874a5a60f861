//! The words people know, and which of them a label is made of.
//!
//! English labels are split by the most probable sentence ([`super::segment`]). Words of other
//! languages, given names and places are looked up: the whole run of letters, or two halves of it.
//! The lists and their licences are in `data/words`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::label::{Label, Run, RunKind};
use super::lexicon::{self, Hash, Lexicon};
use super::percent::Percent;
use super::segment::{Counted, CountedPair, Search, Segmenter};

/// A list of words: a language, or one of the two kinds of proper names.
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
    /// Its words, most frequent first, one a line.
    words: &'static str,
}

macro_rules! spoken {
    ($code:literal, $name:literal, $suffixes:expr) => {
        TongueInfo {
            code: Some($code),
            name: $name,
            suffixes: &$suffixes,
            words: include_str!(concat!("../../data/words/frequencywords/", $code, ".txt")),
        }
    };
}

/// Sixteen at most: a word's levels are kept in four bits each of one `u64`.
static TONGUES: [TongueInfo; 16] = [
    TongueInfo {
        code: Some("en"),
        name: "English",
        suffixes: &["uk", "us", "au", "nz", "ie", "ca", "in", "za"],
        words: include_str!("../../data/words/en.txt"),
    },
    spoken!("de", "German", ["de", "at", "ch", "li", "koeln", "wien", "hamburg", "berlin"]),
    spoken!("fr", "French", ["fr", "re"]),
    spoken!("es", "Spanish", ["es", "mx", "ar", "cl", "pe", "uy", "ve", "ec"]),
    spoken!("it", "Italian", ["it", "sm"]),
    spoken!("pl", "Polish", ["pl"]),
    spoken!("sv", "Swedish", ["se", "nu"]),
    spoken!("nl", "Dutch", ["nl", "be", "amsterdam", "vlaanderen"]),
    spoken!("pt", "Portuguese", ["pt", "br"]),
    spoken!("da", "Danish", ["dk"]),
    spoken!("no", "Norwegian", ["no"]),
    spoken!("fi", "Finnish", ["fi"]),
    spoken!("cs", "Czech", ["cz"]),
    spoken!("tr", "Turkish", ["tr"]),
    TongueInfo {
        code: None,
        name: "name",
        suffixes: &[],
        words: include_str!("../../data/words/names.txt"),
    },
    TongueInfo {
        code: None,
        name: "place",
        suffixes: &[],
        words: include_str!("../../data/words/cities.txt"),
    },
];

static MODERN: &str = include_str!("../../data/words/en-modern.txt");
static PAIRS: &str = include_str!("../../data/words/en-pairs.txt");

/// Words of all lists together, so that the table need not grow while it is filled.
const WORDS_ABOUT: usize = 229_376;
/// Words of the English list and of the modern one, for the same reason.
const ENGLISH_WORDS_ABOUT: usize = 57_344;
const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz";
/// What a word of `en-modern.txt` counts as at least: books use these words less than names do.
const MODERN_COUNT_MIN: u64 = 8_000_000;
/// One in so many words is, for the segmenter, each letter that is no word: left to its own rule it
/// would rather read `in` and a stray `n` than `inn`.
const STRAY_LETTER_ONE_IN: u64 = 30_000;
/// A run that is a word of this level is not taken apart: two parts of it mean less.
const PLAIN_WORD_LEVEL_MIN: u8 = 8;
/// Above this quality of the English reading no other is tried.
const PAIR_WORTH_TRYING: u32 = 60;
/// Letters of a run that is tried as two foreign words: in shorter ones two are found by chance.
const PAIR_LETTERS: std::ops::RangeInclusive<usize> = 8..=30;
/// Letters of each of two foreign words at least: shorter ones are found in anything.
const PAIR_WORD_LETTERS_MIN: usize = 3;
/// Letters of a name or place beside another word at least, for the same reason.
const PROPER_LETTERS_MIN: usize = 5;
/// The level of the word beside a name or place at least.
const BESIDE_PROPER_LEVEL_MIN: u8 = 6;
/// Of a run's letters, the share that words must cover, in hundredths; below it the run is an
/// invented word that happens to hold a real one.
const COVERED_MIN: u32 = 60;
/// Letters of a run in which words must cover everything: `goty` is no `got` with a `y`.
const COVERED_WHOLLY: u32 = 5;

impl Tongue {
    /// The one the segmenter splits by.
    pub const ENGLISH: Tongue = Tongue(0);
    /// Given names and surnames.
    pub const NAMES: Tongue = Tongue(14);
    /// Towns and cities.
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
    fn get(self, tongue: Tongue) -> u8 {
        (self.0 >> (4 * tongue.0) & 15) as u8
    }

    /// Makes it as common as this in one tongue, if it is not more so.
    pub fn raise(&mut self, tongue: Tongue, level: u8) {
        if level > self.get(tongue) {
            let shift = 4 * tongue.0;
            self.0 = self.0 & !(15 << shift) | u64::from(level) << shift;
        }
    }

    fn proper(self) -> u8 {
        self.get(Tongue::NAMES).max(self.get(Tongue::PLACES))
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

    fn unknown(run: Run) -> Token {
        Token { kind: TokenKind::Unknown, start: run.start, end: run.end, level: 0 }
    }
}

/// All word lists, and the segmenter over the English one.
pub struct Dictionary {
    lexicon: Lexicon,
    segmenter: Segmenter,
    by_suffix: FxHashMap<&'static str, Tongue>,
}

/// What [`Dictionary::read`] works in and leaves behind; reused from name to name.
#[derive(Clone, Default)]
pub struct Reading {
    search: Search,
    /// The pieces of the label, in order.
    pub tokens: Vec<Token>,
    run: Vec<Token>,
}

impl Dictionary {
    /// Takes some tens of milliseconds and some 6 MB.
    pub fn load() -> Dictionary {
        let by_suffix = Tongue::all()
            .flat_map(|tongue| tongue.info().suffixes.iter().map(move |&suffix| (suffix, tongue)));
        let (words, pairs) = english_model();
        Dictionary {
            lexicon: lexicon(&words),
            segmenter: Segmenter::new(words, &pairs),
            by_suffix: by_suffix.collect(),
        }
    }

    /// The language to expect under a public suffix, by its last label: German for `de`.
    pub fn expected(&self, tld: &str) -> Option<Tongue> {
        let last = tld.rsplit('.').next().unwrap_or(tld);
        self.by_suffix.get(last).copied()
    }

    /// Every word known, in no particular order.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.lexicon.words()
    }

    /// Splits `label` into `reading.tokens`. `expected` is the language its suffix speaks.
    pub fn read(&self, label: &Label, expected: Option<Tongue>, reading: &mut Reading) {
        reading.tokens.clear();
        for &run in &label.runs {
            let kind = match run.kind {
                RunKind::Letters if run.end - run.start == 1 => TokenKind::Letter,
                RunKind::Letters => {
                    self.read_letters(label, run, expected, reading);
                    continue;
                }
                RunKind::Digits => TokenKind::Digits,
                RunKind::Other => TokenKind::Other,
            };
            reading.tokens.push(Token { kind, start: run.start, end: run.end, level: 0 });
        }
    }

    fn read_letters(&self, label: &Label, run: Run, expected: Option<Tongue>, out: &mut Reading) {
        let text = label.text(run.start, run.end);
        let whole = self.whole(text, run, expected);
        if let Some(token) = whole.filter(|token| token.level >= PLAIN_WORD_LEVEL_MIN) {
            out.tokens.push(token);
            return;
        }
        self.segment_english(text, run, out);
        let mut best = quality(&out.run, out.run.len());
        if let Some(token) = whole.filter(|&token| quality(&[token], 1) >= best) {
            best = quality(&[token], 1);
            out.run.clear();
            out.run.push(token);
        }
        if PAIR_LETTERS.contains(&text.len())
            && best < PAIR_WORTH_TRYING
            && let Some(pair) = self.pair(text, run, expected)
            && quality(&pair, 2) > best
        {
            out.run.clear();
            out.run.extend(pair);
        }
        out.tokens.append(&mut out.run);
    }

    /// English words and what is between them, into `out.run`.
    fn segment_english(&self, text: &str, run: Run, out: &mut Reading) {
        out.run.clear();
        let mut start = run.start;
        for segment in self.segmenter.segment(text, &mut out.search) {
            let (end, level) = (start + u16::from(segment.len), segment.level);
            let kind = match level {
                0 => TokenKind::Unknown,
                _ => TokenKind::Word(Tongue::ENGLISH),
            };
            out.run.push(Token { kind, start, end, level });
            start = end;
        }
        merge_unknown(&mut out.run, run);
    }

    fn whole(&self, text: &str, run: Run, expected: Option<Tongue>) -> Option<Token> {
        let text = text.as_bytes();
        let (tongue, level) = self.lexicon.get(text, Hash::of(text))?.best(expected)?;
        let kind = TokenKind::Word(tongue);
        Some(Token { kind, start: run.start, end: run.end, level })
    }

    /// The best two words of one language that make up the run, or a word and a proper name.
    fn pair(&self, text: &str, run: Run, expected: Option<Tongue>) -> Option<[Token; 2]> {
        let text = text.as_bytes();
        let mut best: Option<(usize, Joint)> = None;
        let mut hash = Hash::default();
        for at in 1..=text.len() - PAIR_WORD_LETTERS_MIN {
            hash = hash.with(text[at - 1]);
            if at < PAIR_WORD_LETTERS_MIN {
                continue;
            }
            let (before, after) = text.split_at(at);
            let Some(left) = self.lexicon.get(before, hash) else { continue };
            let Some(right) = self.lexicon.get(after, Hash::of(after)) else { continue };
            let joint = join((left, at), (right, text.len() - at), expected);
            if let Some(joint) = joint
                && best.as_ref().is_none_or(|(_, best)| joint.claim > best.claim)
            {
                best = Some((at, joint));
            }
        }
        let (at, Joint { words: [left, right], .. }) = best?;
        let split = run.start + at as u16;
        let token = |(tongue, level), start, end| Token {
            kind: TokenKind::Word(tongue),
            start,
            end,
            level,
        };
        Some([token(left, run.start, split), token(right, split, run.end)])
    }
}

/// How two halves go together.
struct Joint {
    /// How well, by the weaker one.
    claim: u8,
    /// Of each half.
    words: [(Tongue, u8); 2],
}

/// The language that knows both halves best. A name or place of some length may stand beside one of
/// its common words: `gdanskhotel`. Each half comes with its letters.
fn join(
    (left, left_letters): (Levels, usize),
    (right, right_letters): (Levels, usize),
    expected: Option<Tongue>,
) -> Option<Joint> {
    let mut best: Option<Joint> = None;
    for tongue in Tongue::all().take_while(|&tongue| tongue < Tongue::NAMES) {
        let mut words = [(tongue, left.get(tongue)), (tongue, right.get(tongue))];
        if words[0].1 == 0 && goes_with_proper(words[1].1, left_letters) {
            words[0] = proper(left);
        } else if words[1].1 == 0 && goes_with_proper(words[0].1, right_letters) {
            words[1] = proper(right);
        }
        let weaker = words[0].1.min(words[1].1);
        let claim = claim(tongue, weaker, expected);
        if weaker > 0 && best.as_ref().is_none_or(|best| claim > best.claim) {
            best = Some(Joint { claim, words });
        }
    }
    best
}

fn goes_with_proper(level: u8, proper_letters: usize) -> bool {
    level >= BESIDE_PROPER_LEVEL_MIN && proper_letters >= PROPER_LETTERS_MIN
}

fn proper(levels: Levels) -> (Tongue, u8) {
    let place = levels.get(Tongue::PLACES) > levels.get(Tongue::NAMES);
    (if place { Tongue::PLACES } else { Tongue::NAMES }, levels.proper())
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

/// Makes one piece of what is no word, and of the whole run when too little of it is words.
fn merge_unknown(tokens: &mut Vec<Token>, run: Run) {
    for at in 0..tokens.len() {
        if found_by_chance(tokens, at) {
            (tokens[at].kind, tokens[at].level) = (TokenKind::Unknown, 0);
        }
    }
    tokens.dedup_by(|next, kept| {
        let join = !next.is_word() && !kept.is_word();
        if join {
            kept.end = next.end;
        }
        join
    });
    let letters = u32::from(run.end - run.start);
    let covered: u32 = tokens.iter().filter(|token| token.is_word()).map(Token::len).sum();
    let enough = if letters <= COVERED_WHOLLY { 100 } else { COVERED_MIN };
    if covered * 100 < letters * enough {
        tokens.clear();
        tokens.push(Token::unknown(run));
    }
}

/// True for a two-letter word beside what is no word, and for a one-letter word but before a word
/// of three letters or more, as in `rent a car`: the segmenter finds such words in anything.
fn found_by_chance(tokens: &[Token], at: usize) -> bool {
    let no_word = |other: Option<&Token>| other.is_some_and(|token| !token.is_word());
    let (before, next) = (at.checked_sub(1).and_then(|at| tokens.get(at)), tokens.get(at + 1));
    match tokens[at].len() {
        1 => !next.is_some_and(|next| next.is_word() && next.len() >= 3),
        2 => no_word(before) || no_word(next),
        _ => false,
    }
}

/// All lists in one table. `english` are the words of the English list in its order, then others.
fn lexicon(english: &[Counted<'_>]) -> Lexicon {
    let mut lists: Vec<_> = Tongue::all().map(|tongue| tongue.info().words).collect();
    lists.push(MODERN);
    let mut lexicon = lexicon::Builder::new(lists.clone(), WORDS_ABOUT);
    let english: FxHashMap<_, _> = english.iter().map(|word| (word.word, word.level)).collect();
    let tongues = Tongue::all().chain([Tongue::ENGLISH]);
    for ((list, text), tongue) in lists.into_iter().enumerate().zip(tongues) {
        let mut offset = 0;
        for (rank, line) in text.lines().enumerate() {
            let word = line.split('\t').next().unwrap_or(line);
            let level = match tongue {
                Tongue::ENGLISH => english.get(word).copied().unwrap_or_default(),
                _ => listed_level(tongue, rank),
            };
            lexicon.raise(list, offset, word, tongue, level);
            offset += line.len() + 1;
        }
    }
    lexicon.finish()
}

/// What the segmenter knows: words, and letters that are none, with their counts and levels, and
/// pairs of words.
pub fn english_model() -> (Vec<Counted<'static>>, Vec<CountedPair<'static>>) {
    let mut modern: Vec<_> = MODERN.lines().collect();
    modern.sort_unstable();
    let mut words = Vec::with_capacity(ENGLISH_WORDS_ABOUT);
    let mut take = |word, count| words.push(Counted { word, count, level: english_level(count) });
    for (word, count) in Tongue::ENGLISH.info().words.lines().filter_map(parse_count) {
        match modern.binary_search(&word) {
            Ok(at) => {
                modern.remove(at);
                take(word, count.max(MODERN_COUNT_MIN));
            }
            Err(_) => take(word, count),
        }
    }
    modern.into_iter().for_each(|word| take(word, MODERN_COUNT_MIN));
    let total: u64 = words.iter().map(|word| word.count).sum();
    let known: FxHashSet<&str> =
        words.iter().map(|word| word.word).filter(|word| word.len() == 1).collect();
    let strays = (0..ALPHABET.len()).map(|at| &ALPHABET[at..=at]);
    let strays = strays.filter(|letter| !known.contains(letter));
    let count = total / STRAY_LETTER_ONE_IN;
    words.extend(strays.map(|word| Counted { word, count, level: 0 }));
    let mut pairs: Vec<_> = PAIRS.lines().filter_map(parse_pair).collect();
    let pairs_total: u64 = pairs.iter().map(|&(_, count)| count).sum();
    // Only the most frequent pairs are kept: without the mass of the others each would seem many
    // times as likely as it is. No word precedes `the` as an empty one, so this pair only weighs.
    pairs.push((("", "the"), total.saturating_sub(pairs_total)));
    (words, pairs)
}

fn parse_count(line: &'static str) -> Option<(&'static str, u64)> {
    let (word, count) = line.split_once('\t')?;
    Some((word, count.parse().ok()?))
}

fn parse_pair(line: &'static str) -> Option<CountedPair<'static>> {
    let (pair, count) = line.split_once('\t')?;
    Some((pair.split_once(' ')?, count.parse().ok()?))
}

/// Tenths, by occurrences in the English list: the limits are about its 2,700th, 7,000th,
/// 14,000th, 29,000th and 46,000th word.
fn english_level(count: u64) -> u8 {
    match count {
        15_000_000.. => 10,
        5_000_000.. => 9,
        1_500_000.. => 8,
        400_000.. => 6,
        100_000.. => 5,
        _ => 4,
    }
}

/// Tenths, by place in the list of a language; names and places are listed without an order.
fn listed_level(tongue: Tongue, rank: usize) -> u8 {
    match (tongue, rank) {
        (Tongue::NAMES, _) => 5,
        (Tongue::PLACES, _) => 4,
        (_, 0..500) => 9,
        (_, 500..2_500) => 8,
        (_, 2_500..6_000) => 7,
        (_, 6_000..10_000) => 6,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::load);

    /// The pieces of a label under a suffix, as `hotel:en`, `zynga:?`, and their quality.
    fn read(label: &str, tld: &str) -> (String, u32) {
        let (mut parts, mut reading) = (Label::default(), Reading::default());
        parts.read(label);
        DICTIONARY.read(&parts, DICTIONARY.expected(tld), &mut reading);
        let pieces = reading.tokens.iter().filter(|token| token.may_be_word()).count();
        let shown: Vec<_> = reading.tokens.iter().map(|token| show(&parts, token)).collect();
        (shown.join(" "), quality(&reading.tokens, pieces))
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

    #[track_caller]
    fn assert_reads(label: &str, tld: &str, expected: &str) {
        assert_eq!(read(label, tld).0, expected, "{label}.{tld}");
    }

    #[test]
    fn every_line_of_every_list_is_a_word() {
        for tongue in Tongue::all() {
            for line in tongue.info().words.lines().chain(MODERN.lines()) {
                let word = line.split('\t').next().unwrap_or_default();
                assert!(!word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()), "{line}");
            }
        }
        assert!(Tongue::ENGLISH.info().words.lines().all(|line| line.contains('\t')));
        assert!(PAIRS.lines().all(|line| parse_pair(line).is_some()));
        assert!(DICTIONARY.words().count() <= WORDS_ABOUT, "the table in memory has doubled");
    }

    #[test]
    fn english_is_segmented() {
        assert_reads("hotel", "com", "hotel:en");
        assert_reads("besthotel", "com", "best:en hotel:en");
        assert_reads("bestcityhotel", "com", "best:en city:en hotel:en");
        assert_reads("cryptowallet", "io", "crypto:en wallet:en");
        assert_reads("rentacar", "com", "rent:en a:en car:en");
        assert_reads("breakfastinnlondon", "com", "breakfast:en inn:en london:en");
        assert_reads("best-hotel-4u", "com", "best:en hotel:en 4:digits u:letter");
    }

    #[test]
    fn the_suffix_tells_words_that_two_languages_share() {
        assert_reads("rose", "com", "rose:en");
        assert_reads("auto", "com", "auto:en");
        assert_reads("auto", "de", "auto:de");
        assert_eq!(DICTIONARY.expected("com.pl"), Some(Tongue(5)));
        assert_eq!(DICTIONARY.expected("com"), None);
    }

    #[test]
    fn other_languages_are_known_whole_or_in_two_halves() {
        assert_reads("zeitung", "com", "zeitung:de");
        assert_reads("autohaus", "de", "auto:de haus:de");
        assert_reads("voiture", "fr", "voiture:fr");
        assert_reads("dziecko", "pl", "dziecko:pl");
        assert_reads("flicka", "se", "flicka:sv");
    }

    #[test]
    fn nonsense_stays_one_piece() {
        assert_reads("xkqzjv", "com", "xkqzjv:?");
        assert_reads("ywwmysuqcyisauco", "org", "ywwmysuqcyisauco:?");
        assert_eq!(read("xkqzjv", "com").1, 0);
        assert_reads("a", "com", "a:letter");
        assert_reads("goty", "com", "goty:?");
        let run = "a".repeat(63);
        assert_reads(&run, "com", &format!("{run}:?"));
    }

    #[test]
    fn one_strong_word_beats_two_and_two_beat_three() {
        let quality = |label| read(label, "com").1;
        assert!(quality("hotel") > quality("besthotel"));
        assert!(quality("besthotel") > quality("bestcityhotel"));
        assert!(quality("bestcityhotel") > quality("xkqzjv"));
        assert!(quality("hotel") > quality("hotelx"), "leftovers cost");
        assert!(quality("hotel") > quality("trireme"), "rare words are worth less");
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
