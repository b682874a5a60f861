//! Score features: a few bytes stored with a name, from which its signals and explanation can be
//! restored without the dictionaries.
//!
//! ```text
//! quality in hundredths; highest bit: words that no explanation may print
//! pronounceability in hundredths
//! caps, two bytes; highest bit: the language of the words is in doubt
//! hundredths of a point of dictionary, market and pronounceability, two bytes each
//! per token: language << 4 | level for a word, or one of the marks below; then its length in a byte,
//! except for the last token, which extends to the end
//! ```
//! Tokens follow one another in the folded label ([`Label`]); hyphens between them are skipped. The
//! characters of an `xn--` label are not stored but decoded again, which needs no dictionary. A label
//! without tokens has no features and is scored again.
//!
//! [`Brief`] features suffice for callers that know the unrounded score. Brief features omit the
//! quality and the dictionary points, which follow from that score and the tokens.

use super::dictionary::{self, Language, Token, TokenKind, digits_where};
use super::facts::{Caps, Facts, ReadPoints};
use super::label::Label;
use super::percent::Percent;
use crate::vocab::name::is_a_label;

const FLAG: u8 = 1 << 7;
/// Flag above the bits of all caps: the language of the words is in doubt.
const DOUBT: u16 = 1 << 15;
/// Flag above the bits of all caps: words that no explanation may print.
const UNPRINTABLE: u16 = 1 << 14;
/// Markers of tokens other than words. The low four bits of a marker are 15, which is not the level
/// of any word.
const UNKNOWN: u8 = 0x0f;
const LETTER: u8 = 0x1f;
const DIGITS: u8 = 0x2f;
const OTHER: u8 = 0x3f;
/// Bytes before the tokens.
const HEAD: usize = 10;
/// Maximum length in bytes.
const LEN_MAX: usize = 255;

/// Appends the features of a label with these `facts`. Appends nothing for a label that must be
/// scored again.
pub fn write(facts: &Facts, printable: bool, tokens: &[Token], out: &mut Vec<u8>) {
    // The length is never exceeded: 63 bytes decode to fewer characters, each of up to two folded
    // letters.
    if tokens.is_empty() || 2 * tokens.len() + HEAD >= LEN_MAX {
        return;
    }
    let flag = if printable { 0 } else { FLAG };
    let ReadPoints { dictionary, market, pronounceability } = facts.read;
    let doubt = if facts.certain { 0 } else { DOUBT };
    let [caps, more] = (facts.caps.bits() | doubt).to_le_bytes();
    out.extend([facts.quality.get() | flag, facts.pronounceability.get(), caps, more]);
    for points in [dictionary, market, pronounceability] {
        out.extend(points.to_le_bytes());
    }
    for (at, token) in tokens.iter().enumerate() {
        out.push(mark(token));
        if at + 1 < tokens.len() {
            out.push(token.len() as u8);
        }
    }
}

/// Score features without those that can be derived from the unrounded score and the tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brief<'a> {
    /// Caps, [`DOUBT`] and [`UNPRINTABLE`].
    pub flags: u16,
    /// Pronounceability in hundredths.
    pub pronounceability: u8,
    /// Market points in hundredths.
    pub market_points: i16,
    pub pronounceability_points: i16,
    /// The tokens as in whole features; empty for a label that must be scored again.
    pub tokens: &'a [u8],
}

impl<'a> Brief<'a> {
    /// Extracts the brief features from whole ones.
    pub fn of(features: &'a [u8]) -> Brief<'a> {
        let Some((&[quality, pronounceability, caps, more, _, _, ref points @ ..], tokens)) =
            features.split_first_chunk::<HEAD>()
        else {
            return Brief::default();
        };
        let unprintable = if quality & FLAG == 0 { 0 } else { UNPRINTABLE };
        let [market_points, pronounceability_points] =
            [0, 2].map(|at| i16::from_le_bytes([points[at], points[at + 1]]));
        Brief {
            flags: u16::from_le_bytes([caps, more]) | unprintable,
            pronounceability,
            market_points,
            pronounceability_points,
            tokens,
        }
    }
}

/// Changes whether the suffix is open to the public.
pub fn set_open(features: &mut [u8], is_open: bool) {
    if let [_, _, caps, more, ..] = features {
        let cap = Caps::NOT_PUBLIC.bits();
        let bits = u16::from_le_bytes([*caps, *more]) & !cap;
        [*caps, *more] = if is_open { bits } else { bits | cap }.to_le_bytes();
    }
}

fn mark(token: &Token) -> u8 {
    match token.kind {
        TokenKind::Word(language) => language.number() << 4 | token.level(),
        TokenKind::Unknown => UNKNOWN,
        TokenKind::Letter => LETTER,
        TokenKind::Digits => DIGITS,
        TokenKind::Other => OTHER,
    }
}

/// Restores `facts`, initially the default, except for `tld_weight`, and the `tokens` of the label;
/// returns whether explanations may print the words. `decoded` is set only for an `xn--` label; the
/// tokens of an ASCII label are cut from `name`.
///
/// Returns `None` when the features are empty or do not fit the label; `facts` and `tokens` are then
/// meaningless.
pub fn read(
    name: &str,
    features: &[u8],
    tokens: &mut Vec<Token>,
    decoded: &mut Label,
    facts: &mut Facts,
) -> Option<bool> {
    let (&[_, _, _, _, low, high, ..], _) = features.split_first_chunk::<HEAD>()?;
    let printable = read_brief(name, Brief::of(features), tokens, decoded, facts)?;
    facts.read.dictionary = i16::from_le_bytes([low, high]);
    Some(printable)
}

/// The same as [`read`], but leaves the dictionary points at 0.
pub fn read_brief(
    name: &str,
    features: Brief<'_>,
    tokens: &mut Vec<Token>,
    decoded: &mut Label,
    facts: &mut Facts,
) -> Option<bool> {
    tokens.clear();
    let Brief { flags, pronounceability, market_points, pronounceability_points, tokens: marks } =
        features;
    if marks.is_empty() {
        return None;
    }
    facts.pronounceability = Percent::clamped(u32::from(pronounceability));
    facts.certain = flags & DOUBT == 0;
    facts.caps = Caps::from_bits(flags & !(DOUBT | UNPRINTABLE));
    facts.read = ReadPoints {
        dictionary: 0,
        market: market_points,
        pronounceability: pronounceability_points,
    };
    if is_a_label(name) {
        decoded.read(name);
        read_tokens(decoded.whole_text(), marks, tokens, facts)?;
        (facts.chars, facts.idn) = (decoded.chars, true);
    } else if name.is_ascii() {
        read_tokens(name, marks, tokens, facts)?;
        facts.chars = name.len() as u32;
    } else {
        return None;
    }
    facts.quality = dictionary::quality(tokens);
    Some(flags & UNPRINTABLE == 0)
}

/// Restores the tokens of `text` and counts their characters by kind.
fn read_tokens(text: &str, marks: &[u8], tokens: &mut Vec<Token>, facts: &mut Facts) -> Option<()> {
    let text = text.as_bytes();
    if text.len() > usize::from(u8::MAX) {
        return None;
    }
    let (mut at, mut seen_digits) = (0, 0u16);
    for pair in marks.chunks(2) {
        while text.get(at) == Some(&b'-') {
            facts.hyphens += 1;
            at += 1;
        }
        let (mark, end) = match *pair {
            [mark, letters] => (mark, at + usize::from(letters)),
            [mark] => (mark, text.len()),
            _ => return None,
        };
        let piece = text.get(at..end).filter(|piece| !piece.is_empty())?;
        let token = token(mark, at as u16, end as u16)?;
        let letters = token.len();
        match token.kind {
            TokenKind::Digits => {
                facts.digits += letters;
                seen_digits |= piece.iter().fold(0, |seen, digit| seen | 1 << (digit & 15));
            }
            TokenKind::Other => facts.others += letters,
            _ => facts.letters += letters,
        }
        tokens.push(token);
        at = end;
    }
    facts.distinct_digits = seen_digits.count_ones();
    facts.digits_where = digits_where(tokens);
    (at == text.len()).then_some(())
}

fn token(mark: u8, start: u16, end: u16) -> Option<Token> {
    let (kind, level) = match mark {
        UNKNOWN => (TokenKind::Unknown, 0),
        LETTER => (TokenKind::Letter, 0),
        DIGITS => (TokenKind::Digits, 0),
        OTHER => (TokenKind::Other, 0),
        _ => match mark & 15 {
            level @ 1..=10 => (TokenKind::Word(Language::from_number(mark >> 4)), level),
            _ => return None,
        },
    };
    Some(Token::new(kind, start, end, level))
}
