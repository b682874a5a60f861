//! Conditions on the whole text of a label: patterns, regular expressions and edit distance
//! (`data/docs/queries.md`). The input is text, the output an automaton that reads each byte of a
//! label once.
//!
//! Patterns become a bit-parallel automaton (Shift-And) with one bit per symbol, which has room for
//! every pattern. Regular expressions become a dense DFA of bounded size. Both engines read a label
//! in linear time, for every text. Labels are in lower case, so upper-case letters are removed from
//! a regular expression before it is compiled.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock, Mutex};

use icu_normalizer::ComposingNormalizerBorrowed;
use levenshtein_automata::{DFA as EditDfa, Distance, LevenshteinAutomatonBuilder};
use lru::LruCache;
use regex_automata::dfa::{Automaton, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::ParserBuilder;
use regex_syntax::ast::{self, Ast, ClassPerlKind, ClassSetItem};
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind,
    Look, Repetition,
};

use crate::text::Substring;
use crate::vocab::limits::{
    LABEL_CHARS_MAX, LIKE_CHARS, PATTERN_STARS_MAX, PATTERN_SYMBOLS_MAX, REGEX_CHARS_MAX,
};
use crate::vocab::name::A_LABEL;

/// Maximum bytes of a compiled regular expression, and of the tables needed to compile it.
const DFA_BYTES_MAX: usize = 1 << 20;
const NFA_BYTES_MAX: usize = 256 << 10;
/// Maximum nesting of groups.
const NEST_MAX: u32 = 30;
/// Maximum number of cached automata, and of their bytes.
const KEPT_MAX: usize = 128;
const KEPT_BYTES_MAX: usize = 16 << 20;
/// Maximum number of alternatives in [`Matcher::literals`], and the minimum length of each in
/// characters.
const LITERALS_MAX: usize = 16;
const LITERAL_CHARS_MIN: usize = 2;
/// Minimum characters of each part that an edit leaves unchanged.
const PIECE_CHARS_MIN: usize = 3;
/// Classes up to this size are expanded into literals: `cr[iy]pto`.
const CLASS_CHARS_MAX: usize = 4;

/// Reason why a text is invalid as a pattern, a regular expression or a label to compare with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    #[error("must have 1 to {PATTERN_SYMBOLS_MAX} symbols")]
    PatternLength,
    #[error("must have at most {PATTERN_STARS_MAX} `*`")]
    Stars,
    #[error(
        "symbol {at} is \"{symbol}\"; must be C, V, L, N, A, ?, *, a lower-case letter, a digit or -"
    )]
    Symbol { at: usize, symbol: char },
    #[error("must have 1 to {REGEX_CHARS_MAX} characters")]
    RegexLength,
    #[error("at character {at}: {what}")]
    Syntax { at: usize, what: String },
    #[error(
        "is too large: its automaton exceeds 1 MiB; anchor it with ^ or $, or shorten its repetitions"
    )]
    TooLarge,
    #[error("must have {} to {} characters", LIKE_CHARS.start(), LIKE_CHARS.end())]
    LikeLength,
    #[error("must not hold NUL or control characters")]
    Control,
}

/// Kind and text of a matcher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatcherText {
    Pattern(String),
    Regex(String),
    /// A normalised label, and the maximum number of edits.
    Like(String, u8),
}

/// A compiled condition on a label. Equal if the texts are equal.
#[derive(Clone)]
pub struct Matcher {
    text: MatcherText,
    compiled: Arc<Compiled>,
}

struct Compiled {
    engine: Engine,
    /// Minimum and maximum characters of a label that can match.
    lengths: RangeInclusive<u8>,
    literals: Vec<Substring>,
    /// Whether every matching label ends with one of `literals`.
    literals_end: bool,
    /// Whether every match starts at the beginning of the label.
    anchored: bool,
}

enum Engine {
    Shape(Box<Shape>),
    Regex { dfa: Box<dense::DFA<Vec<u32>>>, start: StateID },
    Edits { dfa: EditDfa, distance: u8 },
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        self.text == other.text
    }
}

impl Eq for Matcher {}

impl Hash for Matcher {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Matcher {
    /// Compiles a pattern, the shape of the whole label: `CVCV`, `LLL`, `*bank`.
    ///
    /// # Errors
    /// [`MatcherError`] of a pattern.
    pub fn pattern(text: &str) -> Result<Matcher, MatcherError> {
        let text = text.trim();
        let compiled = Arc::new(Shape::compile(text)?);
        Ok(Matcher { text: MatcherText::Pattern(text.to_owned()), compiled })
    }

    /// Compiles a regular expression, which may match anywhere in the label. Compiling takes up to
    /// about 20 ms. The result is cached, even an error.
    ///
    /// # Errors
    /// [`MatcherError`] of a regular expression.
    pub fn regex(text: &str) -> Result<Matcher, MatcherError> {
        if text.is_empty() || text.chars().count() > REGEX_CHARS_MAX {
            return Err(MatcherError::RegexLength);
        }
        kept(MatcherText::Regex(text.to_owned()), || compile_regex(text))
    }

    /// Compiles a matcher of labels up to `distance` edits from `text`; `distance` is 1 or 2.
    ///
    /// # Errors
    /// [`MatcherError`] of a label to compare with.
    pub fn like(text: &str, distance: u8) -> Result<Matcher, MatcherError> {
        let text = Substring::parse(text).map_err(|err| match err {
            crate::text::QueryError::Length(_) => MatcherError::LikeLength,
            crate::text::QueryError::Control => MatcherError::Control,
        })?;
        let text = text.as_str();
        let chars = text.chars().count();
        if !LIKE_CHARS.contains(&chars) {
            return Err(MatcherError::LikeLength);
        }
        kept(MatcherText::Like(text.to_owned(), distance), || {
            let chars = chars as u8;
            Ok(Compiled {
                engine: Engine::Edits {
                    dfa: EDITS[usize::from(distance > 1)].build_dfa(text),
                    distance,
                },
                lengths: chars - distance..=chars + distance,
                literals: pieces_of(text, distance),
                literals_end: false,
                anchored: true,
            })
        })
    }

    /// Returns true if `text` need not be compiled as a regular expression, because the result is
    /// cached.
    pub fn is_kept(text: &str) -> bool {
        lock_kept().automata.contains(&MatcherText::Regex(text.to_owned()))
    }

    /// Kind and text.
    pub fn text(&self) -> &MatcherText {
        &self.text
    }

    /// Minimum and maximum characters of a label that can match.
    pub fn lengths(&self) -> RangeInclusive<u8> {
        self.compiled.lengths.clone()
    }

    /// Texts, at least one of which occurs in every matching label; empty if none are known.
    pub fn literals(&self) -> &[Substring] {
        &self.compiled.literals
    }

    /// Returns true if every matching label ends with one of [`Matcher::literals`].
    pub fn ends_with_literal(&self) -> bool {
        self.compiled.literals_end
    }

    /// Returns true if a match must start at the beginning of the label, so that most labels fail
    /// within a few bytes.
    pub fn is_anchored(&self) -> bool {
        self.compiled.anchored
    }

    /// Returns true if A-labels are compared instead of Unicode forms.
    pub fn compares_a_labels(&self) -> bool {
        let (MatcherText::Pattern(text) | MatcherText::Regex(text) | MatcherText::Like(text, _)) =
            &self.text;
        text.strip_prefix('^').unwrap_or(text).starts_with(A_LABEL)
    }

    /// Returns true if a label matches, given as A-label and in Unicode.
    pub fn matches(&self, a_label: &str, unicode: &str) -> bool {
        let text = if self.compares_a_labels() { a_label } else { unicode };
        match &self.compiled.engine {
            Engine::Shape(shape) if !text.is_ascii() => shape.matches(text),
            engine => engine.accepts(engine.run(engine.start(), text.as_bytes(), |_| ())),
        }
    }

    /// Returns true if an ASCII label matches. `trail` has the states of the previous label. The
    /// two labels share the first `shared` bytes, which are not read again.
    pub fn extend(&self, trail: &mut Trail, shared: usize, label: &[u8]) -> bool {
        let engine = &self.compiled.engine;
        trail.read = shared.min(trail.read);
        let mut state = match trail.read {
            0 => engine.start(),
            read => trail.states[read],
        };
        if state != DEAD && state != MATCHED {
            state = engine.run(state, &label[trail.read..], |state| {
                trail.read += 1;
                trail.states[trail.read] = state;
            });
        }
        engine.accepts(state)
    }
}

impl Engine {
    fn start(&self) -> u64 {
        match self {
            Engine::Shape(_) => 1,
            Engine::Regex { start, .. } => start.as_u32().into(),
            Engine::Edits { dfa, .. } => dfa.initial_state().into(),
        }
    }

    /// Reads bytes up to the first final state, and returns the last state. `keep` receives each state.
    #[inline(always)]
    fn run(&self, state: u64, bytes: &[u8], keep: impl FnMut(u64)) -> u64 {
        match self {
            Engine::Shape(shape) => {
                run(state, bytes, |state, byte| shape.step(state, shape.of(byte)), keep)
            }
            Engine::Regex { dfa, .. } => {
                let step = |state, byte| {
                    let next = dfa.next_state(StateID::new_unchecked(state as usize), byte);
                    if dfa.is_special_state(next) && dfa.is_match_state(next) {
                        MATCHED
                    } else {
                        next.as_u32().into()
                    }
                };
                run(state, bytes, step, keep)
            }
            Engine::Edits { dfa, .. } => {
                let step = |state, byte| dfa.transition(state as u32, byte).into();
                run(state, bytes, step, keep)
            }
        }
    }

    /// Returns true if a label that ends in this state matches.
    #[inline(always)]
    fn accepts(&self, state: u64) -> bool {
        if state == DEAD || state == MATCHED {
            return state == MATCHED;
        }
        match self {
            Engine::Shape(shape) => state & shape.end != 0,
            Engine::Regex { dfa, .. } => {
                dfa.is_match_state(dfa.next_eoi_state(StateID::new_unchecked(state as usize)))
            }
            Engine::Edits { dfa, distance } => {
                matches!(dfa.distance(state as u32), Distance::Exact(edits) if edits <= *distance)
            }
        }
    }
}

#[inline(always)]
fn run(
    mut state: u64,
    bytes: &[u8],
    step: impl Fn(u64, u8) -> u64,
    mut keep: impl FnMut(u64),
) -> u64 {
    for &byte in bytes {
        state = step(state, byte);
        keep(state);
        if state == DEAD || state == MATCHED {
            break;
        }
    }
    state
}

/// State after which no continuation of the label matches. All three engines use this number.
const DEAD: u64 = 0;
/// State after which every continuation of the label matches.
const MATCHED: u64 = u64::MAX;

/// States of a matcher after each byte of the last label.
#[derive(Clone, Debug)]
pub struct Trail {
    states: [u64; LABEL_CHARS_MAX as usize + 1],
    /// Number of bytes read: the whole label, unless a final state was reached earlier.
    read: usize,
}

impl Default for Trail {
    fn default() -> Trail {
        Trail { states: [DEAD; LABEL_CHARS_MAX as usize + 1], read: 0 }
    }
}

impl Trail {
    /// Returns the length of the prefix that ruled out the last label, if there is one. No label
    /// with that prefix matches.
    pub fn dead_after(&self) -> Option<usize> {
        (self.read > 0 && self.states[self.read] == DEAD).then_some(self.read)
    }
}

/// A pattern as a bit-parallel automaton. Bit `i` of a state: the label read so far matches the first
/// `i` symbols, stars not counted.
struct Shape {
    /// Bit `i` is set if the character is accepted as symbol `i`.
    ascii: [u64; 128],
    /// The symbols that accept any non-ASCII character that is not in `literal`.
    wide: u64,
    literal: Vec<(char, u64)>,
    /// Bits that persist from one character to the next, because a star follows their symbol.
    stays: u64,
    end: u64,
}

const _: () = assert!(PATTERN_SYMBOLS_MAX < 64);

impl Shape {
    fn compile(text: &str) -> Result<Compiled, MatcherError> {
        let symbols = fold_literals(text);
        if symbols.is_empty() || symbols.chars().count() > PATTERN_SYMBOLS_MAX {
            return Err(MatcherError::PatternLength);
        }
        if symbols.chars().filter(|&symbol| symbol == '*').count() > PATTERN_STARS_MAX {
            return Err(MatcherError::Stars);
        }
        let mut shape = Shape { ascii: [0; 128], wide: 0, literal: Vec::new(), stays: 0, end: 0 };
        let mut bit = 1u64;
        let mut literals = vec![String::new()];
        for (at, symbol) in (1..).zip(symbols.chars()) {
            let vowel = |byte: u8| b"aeiouy".contains(&byte);
            let accepts: &dyn Fn(u8) -> bool = match symbol {
                '*' => {
                    shape.stays |= bit;
                    literals.push(String::new());
                    continue;
                }
                'C' => &|byte| byte.is_ascii_lowercase() && (!vowel(byte) || byte == b'y'),
                'V' => &vowel,
                'L' => &|byte| byte.is_ascii_lowercase(),
                'N' => &|byte| byte.is_ascii_digit(),
                'A' => &|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
                '?' => &|_| true,
                'a'..='z' | '0'..='9' | '-' => &|byte| char::from(byte) == symbol,
                // Labels also hold combining marks and symbols such as `❤`. U+FFFD stands for a
                // character that no label holds.
                _ if !symbol.is_ascii()
                    && symbol != char::REPLACEMENT_CHARACTER
                    && !symbol.is_whitespace()
                    && !symbol.is_control() =>
                {
                    &|_| false
                }
                _ => return Err(MatcherError::Symbol { at, symbol }),
            };
            (0..128).filter(|&byte| accepts(byte)).for_each(|byte| {
                shape.ascii[usize::from(byte)] |= bit;
            });
            match symbol {
                'L' | 'A' | '?' => shape.wide |= bit,
                'C' | 'V' | 'N' => {}
                _ => {
                    if !symbol.is_ascii() {
                        shape.literal.push((symbol, bit));
                    }
                    literals.last_mut().expect("one at least").push(symbol);
                    bit <<= 1;
                    continue;
                }
            }
            literals.push(String::new());
            bit <<= 1;
        }
        shape.end = bit;
        let anchored = shape.stays & 1 == 0;
        let least = bit.trailing_zeros() as u8;
        let most = if shape.stays == 0 { least } else { LABEL_CHARS_MAX };
        let end = literals.len() - 1;
        let longest = literals.into_iter().enumerate().max_by_key(|(_, text)| text.chars().count());
        let longest = longest.filter(|(_, text)| text.chars().count() >= LITERAL_CHARS_MIN);
        Ok(Compiled {
            engine: Engine::Shape(Box::new(shape)),
            lengths: least..=most,
            literals_end: longest.as_ref().is_some_and(|(at, _)| *at == end),
            literals: longest.into_iter().map(|(_, text)| Substring::from_stored(text)).collect(),
            anchored,
        })
    }

    /// Returns the symbols that accept a byte.
    #[inline(always)]
    fn of(&self, byte: u8) -> u64 {
        self.ascii[usize::from(byte & 127)]
    }

    #[inline(always)]
    fn step(&self, state: u64, accepted_by: u64) -> u64 {
        (state & accepted_by) << 1 | state & self.stays
    }

    fn matches(&self, label: &str) -> bool {
        let accepted_by = |char: char| match u8::try_from(char) {
            Ok(byte) if byte.is_ascii() => self.of(byte),
            _ => {
                let same = self.literal.iter().filter(|(literal, _)| *literal == char);
                same.fold(self.wide, |all, (_, bit)| all | bit)
            }
        };
        let state = label.chars().fold(1, |state, char| self.step(state, accepted_by(char)));
        state & self.end != 0
    }
}

/// Normalises the texts of a pattern like labels; upper-case letters are symbols and are kept.
fn fold_literals(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let is_symbol = |char: char| matches!(char, 'A'..='Z' | '?' | '*');
    let mut folded = String::new();
    for run in text.split_inclusive(is_symbol) {
        let (literal, symbol) = match run.char_indices().next_back() {
            Some((at, last)) if is_symbol(last) => run.split_at(at),
            _ => (run, ""),
        };
        match Substring::parse(literal) {
            Ok(literal) => folded.push_str(literal.as_str()),
            Err(_) => folded.push_str(literal),
        }
        folded.push_str(symbol);
    }
    folded
}

/// Builders for distances 1 and 2. A swap of neighbours is one edit.
static EDITS: LazyLock<[LevenshteinAutomatonBuilder; 2]> =
    LazyLock::new(|| [1, 2].map(|distance| LevenshteinAutomatonBuilder::new(distance, true)));

fn parser() -> ParserBuilder {
    let mut parser = ParserBuilder::new();
    parser.nest_limit(NEST_MAX).case_insensitive(true);
    parser
}

fn compile_regex(text: &str) -> Result<Compiled, MatcherError> {
    let at = |offset: usize| text[..offset].chars().count() + 1;
    let syntax = |err: regex_syntax::Error| match err {
        regex_syntax::Error::Parse(err) => {
            MatcherError::Syntax { at: at(err.span().start.offset), what: err.kind().to_string() }
        }
        regex_syntax::Error::Translate(err) => {
            MatcherError::Syntax { at: at(err.span().start.offset), what: err.kind().to_string() }
        }
        _ => MatcherError::Syntax { at: 1, what: "is not valid".to_owned() },
    };
    // Errors refer to the text as it was sent.
    parser().build().parse(text).map_err(syntax)?;
    // Labels are in NFC. Syntax is ASCII, which normalisation leaves unchanged.
    let text = &*ComposingNormalizerBorrowed::new_nfc().normalize(text);
    let ascii = with_ascii_classes(text)?;
    let hir = parser().build().parse(&ascii);
    let hir = hir.map_err(|_| MatcherError::Syntax { at: 1, what: "is not valid".to_owned() })?;
    let hir = of_labels(hir);
    let nfa = thompson::Compiler::new()
        .configure(
            thompson::Config::new()
                .utf8(false)
                .nfa_size_limit(Some(NFA_BYTES_MAX))
                .which_captures(thompson::WhichCaptures::None),
        )
        .build_from_hir(&hir)
        .map_err(|_| MatcherError::TooLarge)?;
    let config = dense::Config::new()
        .accelerate(false)
        .start_kind(regex_automata::dfa::StartKind::Unanchored)
        .dfa_size_limit(Some(DFA_BYTES_MAX))
        .determinize_size_limit(Some(DFA_BYTES_MAX));
    let dfa = dense::Builder::new().configure(config).build_from_nfa(&nfa);
    let dfa = dfa.map_err(|_| MatcherError::TooLarge)?;
    let start = dfa.start_state(&start::Config::new());
    let start = start.expect("an unanchored start state, for text that no byte precedes");
    let properties = hir.properties();
    let (first, last) = (properties.look_set_prefix(), properties.look_set_suffix());
    let is_whole = first.contains(Look::Start) && last.contains(Look::End);
    let (least, most) = chars_of(&hir);
    let most = most.filter(|_| is_whole).unwrap_or(usize::MAX);
    let bounded = |len: usize| len.clamp(1, LABEL_CHARS_MAX.into()) as u8;
    let literals = Found::of(&hir).best().unwrap_or_default();
    let without_end = |text: &String| text.replace(END, "");
    Ok(Compiled {
        engine: Engine::Regex { dfa: Box::new(dfa), start },
        lengths: bounded(least)..=bounded(most),
        literals_end: !literals.is_empty() && literals.iter().all(|text| text.ends_with(END)),
        literals: literals.iter().map(without_end).map(Substring::from_stored).collect(),
        anchored: first.contains(Look::Start),
    })
}

/// Replaces `\d`, `\w`, `\s` and their complements by ASCII classes. Other classes match whole
/// characters.
fn with_ascii_classes(text: &str) -> Result<String, MatcherError> {
    struct Perl(Vec<ast::ClassPerl>);

    impl ast::Visitor for Perl {
        type Output = Vec<ast::ClassPerl>;
        type Err = std::convert::Infallible;

        fn finish(self) -> Result<Self::Output, Self::Err> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
            if let Ast::ClassPerl(class) = ast {
                self.0.push((**class).clone());
            }
            Ok(())
        }

        fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
            if let ClassSetItem::Perl(class) = item {
                self.0.push(class.clone());
            }
            Ok(())
        }
    }

    let parsed = ast::parse::ParserBuilder::new().nest_limit(NEST_MAX).build().parse(text);
    let parsed =
        parsed.map_err(|err| MatcherError::Syntax { at: 1, what: err.kind().to_string() })?;
    let Ok(classes) = ast::visit(&parsed, Perl(Vec::new()));
    let mut replaced = text.to_owned();
    for class in classes.iter().rev() {
        let members = match class.kind {
            ClassPerlKind::Digit => "0-9",
            ClassPerlKind::Word => "0-9A-Za-z_",
            ClassPerlKind::Space => r"\t\n\v\f\r\x20",
        };
        let not = if class.negated { "^" } else { "" };
        let span = class.span.start.offset..class.span.end.offset;
        replaced.replace_range(span, &format!("[{not}{members}]"));
    }
    Ok(replaced)
}

/// Removes the characters that no label has, such as upper-case letters. This makes automata
/// smaller and reveals literals. Word boundaries become those of ASCII.
fn of_labels(hir: Hir) -> Hir {
    static UNICODE: LazyLock<ClassUnicode> = LazyLock::new(|| {
        let range = ClassUnicodeRange::new;
        let mut class = ClassUnicode::new([
            range('a', 'z'),
            range('0', '9'),
            range('-', '-'),
            range('\u{80}', char::MAX),
        ]);
        // Normalisation maps these characters to `s` and `k`. Case-insensitive matching would add
        // them to every class that contains either.
        class.difference(&ClassUnicode::new(['ſ', 'K'].map(|char| range(char, char))));
        class
    });
    static BYTES: LazyLock<ClassBytes> = LazyLock::new(|| {
        let ranges = [(b'a', b'z'), (b'0', b'9'), (b'-', b'-')];
        ClassBytes::new(ranges.map(|(start, end)| ClassBytesRange::new(start, end)))
    });
    let all = |subs: Vec<Hir>| subs.into_iter().map(of_labels).collect();
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            class.intersect(&UNICODE);
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            class.intersect(&BYTES);
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => other,
        }),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(of_labels(*repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition })
        }
        HirKind::Capture(Capture { sub, .. }) => of_labels(*sub),
        HirKind::Concat(subs) => Hir::concat(all(subs)),
        HirKind::Alternation(subs) => Hir::alternation(all(subs)),
    }
}

/// Returns the fewest and the most characters of a match; `None` for the latter means unbounded.
fn chars_of(hir: &Hir) -> (usize, Option<usize>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, Some(0)),
        HirKind::Literal(literal) => {
            let chars = String::from_utf8_lossy(&literal.0).chars().count();
            (chars, Some(chars))
        }
        HirKind::Class(_) => (1, Some(1)),
        HirKind::Capture(capture) => chars_of(&capture.sub),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let (least, most) = chars_of(sub);
            let times = |chars: usize, count: u32| chars.saturating_mul(count as usize);
            let most = match (most, max) {
                (Some(0), _) => Some(0),
                (most, max) => most.zip(*max).map(|(most, max)| times(most, max)),
            };
            (times(least, *min), most)
        }
        HirKind::Concat(subs) => subs.iter().map(chars_of).fold((0, Some(0)), |all, sub| {
            let most = all.1.zip(sub.1).map(|(all, sub)| all.saturating_add(sub));
            (all.0.saturating_add(sub.0), most)
        }),
        HirKind::Alternation(subs) => {
            let all: Vec<_> = subs.iter().map(chars_of).collect();
            let most = all.iter().map(|sub| sub.1).collect::<Option<Vec<_>>>();
            let least = all.iter().map(|sub| sub.0).min().unwrap_or(0);
            (least, most.map(|most| most.into_iter().max().unwrap_or(0)))
        }
    }
}

/// Marks the end of the label in the texts of [`Found`]; no label contains it.
const END: char = '\0';

/// Returns the number of characters of a text of [`Found`].
fn chars_in(text: &str) -> usize {
    text.chars().filter(|&char| char != END).count()
}

/// Returns parts of `text`, at least one of which is unchanged in every label within `distance`
/// edits. There is one part more than edits, and a character between neighbouring parts, so that a
/// swap changes no more than one part. The result is empty if the parts would be shorter than
/// [`PIECE_CHARS_MIN`].
fn pieces_of(text: &str, distance: u8) -> Vec<Substring> {
    let chars: Vec<char> = text.chars().collect();
    let pieces = usize::from(distance) + 1;
    let room = chars.len() + 1 - pieces;
    if room / pieces < PIECE_CHARS_MIN || text.starts_with(A_LABEL) {
        return Vec::new();
    }
    let piece = |at: usize| {
        let (start, end) = (room * at / pieces + at, room * (at + 1) / pieces + at);
        Substring::from_stored(chars[start..end].iter().collect())
    };
    (0..pieces).map(piece).collect()
}

/// Texts required by a regular expression.
struct Found {
    /// All texts that the expression matches.
    exact: Option<Vec<String>>,
    /// Every match contains one of these.
    any_of: Option<Vec<String>>,
}

impl Found {
    fn of(hir: &Hir) -> Found {
        let unknown = Found { exact: None, any_of: None };
        let exact = |texts: Vec<String>| Found { exact: Some(texts), any_of: None };
        match hir.kind() {
            HirKind::Look(Look::End) => exact(vec![END.to_string()]),
            HirKind::Empty | HirKind::Look(_) => exact(vec![String::new()]),
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => exact(vec![text.to_owned()]),
                Err(_) => unknown,
            },
            HirKind::Class(Class::Unicode(class)) => {
                let chars: usize = class.iter().map(|range| range.len()).sum();
                if chars == 0 || chars > CLASS_CHARS_MAX {
                    return unknown;
                }
                let ranges = class.iter().flat_map(|range| range.start()..=range.end());
                exact(ranges.map(String::from).collect())
            }
            HirKind::Class(Class::Bytes(_)) => unknown,
            HirKind::Capture(capture) => Found::of(&capture.sub),
            HirKind::Repetition(Repetition { min: 0, max: Some(1), sub, .. }) => {
                let mut found = Found::of(sub);
                found.exact = found.exact.map(|texts| [texts, vec![String::new()]].concat());
                Found { any_of: None, ..found }
            }
            HirKind::Repetition(Repetition { min: 0, .. }) => unknown,
            HirKind::Repetition(repetition) => {
                Found { exact: None, any_of: Found::of(&repetition.sub).best() }
            }
            HirKind::Concat(subs) => Found::of_all(subs.iter().map(Found::of)),
            HirKind::Alternation(subs) => Found::of_any(subs.iter().map(Found::of).collect()),
        }
    }

    fn of_all(subs: impl Iterator<Item = Found>) -> Found {
        let mut any_of = None;
        let mut run = vec![String::new()];
        let mut is_exact = true;
        for sub in subs {
            any_of = better(any_of, sub.any_of);
            let joined = sub.exact.as_ref().filter(|texts| run.len() * texts.len() <= LITERALS_MAX);
            if let Some(texts) = joined {
                let pairs = run.iter().flat_map(|head| texts.iter().map(move |tail| (head, tail)));
                run = pairs.map(|(head, tail)| format!("{head}{tail}")).collect();
                continue;
            }
            is_exact = false;
            any_of = better(any_of, Some(run));
            // The part after a text of unknown length starts a new run.
            run = sub
                .exact
                .filter(|texts| texts.len() <= LITERALS_MAX)
                .unwrap_or_else(|| vec![String::new()]);
        }
        if is_exact {
            return Found { exact: Some(run), any_of };
        }
        Found { exact: None, any_of: better(any_of, Some(run)) }
    }

    fn of_any(subs: Vec<Found>) -> Found {
        let joined = |sets: Option<Vec<Vec<String>>>| {
            sets.map(|sets| sets.concat()).filter(|texts| texts.len() <= LITERALS_MAX)
        };
        let exact = joined(subs.iter().map(|sub| sub.exact.clone()).collect());
        Found { exact, any_of: joined(subs.into_iter().map(Found::best).collect()) }
    }

    /// Returns the more selective set, if it is selective at all.
    fn best(self) -> Option<Vec<String>> {
        better(self.any_of, self.exact)
    }
}

/// Returns the more selective set: the one with the longer texts, or the smaller one if they are
/// equally long.
fn better(left: Option<Vec<String>>, right: Option<Vec<String>>) -> Option<Vec<String>> {
    let shortest = |texts: &Vec<String>| texts.iter().map(|text| chars_in(text)).min();
    let narrows = |texts: &Vec<String>| shortest(texts) >= Some(LITERAL_CHARS_MIN);
    let sets = [left, right].into_iter().flatten().filter(narrows);
    sets.max_by_key(|texts| (shortest(texts), std::cmp::Reverse(texts.len())))
}

/// Cache of recently compiled automata and of recent errors.
struct Kept {
    automata: LruCache<MatcherText, Result<Arc<Compiled>, MatcherError>>,
    bytes: usize,
}

static KEPT: LazyLock<Mutex<Kept>> =
    LazyLock::new(|| Mutex::new(Kept { automata: LruCache::unbounded(), bytes: 0 }));

fn lock_kept() -> std::sync::MutexGuard<'static, Kept> {
    KEPT.lock().expect("no code panics holding this lock")
}

/// Returns the automaton of `text`, compiled on first use. The lock is not held while the
/// expression compiles.
fn kept(
    text: MatcherText,
    compile: impl FnOnce() -> Result<Compiled, MatcherError>,
) -> Result<Matcher, MatcherError> {
    let known = lock_kept().automata.get(&text).cloned();
    let compiled = known.unwrap_or_else(|| {
        let compiled = compile().map(Arc::new);
        let mut kept = lock_kept();
        kept.bytes += bytes(&compiled);
        if let Some((_, before)) = kept.automata.push(text.clone(), compiled.clone()) {
            kept.bytes -= bytes(&before);
        }
        while kept.automata.len() > KEPT_MAX || kept.bytes > KEPT_BYTES_MAX {
            let Some((_, oldest)) = kept.automata.pop_lru() else { break };
            kept.bytes -= bytes(&oldest);
        }
        compiled
    });
    Ok(Matcher { text, compiled: compiled? })
}

/// Returns the size of an automaton in memory.
fn bytes(compiled: &Result<Arc<Compiled>, MatcherError>) -> usize {
    match compiled.as_ref().map(|compiled| &compiled.engine) {
        Ok(Engine::Regex { dfa, .. }) => dfa.memory_usage(),
        // A state has 256 transitions of four bytes.
        Ok(Engine::Edits { dfa, .. }) => dfa.num_states() << 10,
        Ok(Engine::Shape(_)) | Err(_) => 0,
    }
}

#[cfg(test)]
mod tests;
