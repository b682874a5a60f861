//! What a score was made from, in a few bytes that whoever keeps a name keeps with it, so that
//! signals and explanation are told again without looking the name up in dictionaries.
//!
//! ```text
//! quality in hundredths; highest bit: words that no sentence should hold
//! ease of speaking in hundredths
//! caps, one bit each
//! points of dictionary, market, language and pronounceability, one signed byte each
//! per token: tongue << 4 | level for a word, else one of the marks below; then its letters in a
//! byte, but for the last token, which takes what is left
//! ```
//! Tokens follow one another in the label without marks ([`Label`]); hyphens between them are
//! skipped. What only the characters of an `xn--` label say is read from it again: that takes no
//! dictionary. A label without a token has no evidence (no bytes) and is read again whole.

use super::dictionary::{Token, TokenKind, Tongue, digits_where};
use super::label::Label;
use super::percent::Percent;
use super::signals::{Caps, Facts, ReadPoints};
use crate::vocab::name::is_a_label;

const FLAG: u8 = 1 << 7;
/// Marks of tokens that are no words: level 15, which no word has.
const UNKNOWN: u8 = 0x0f;
const LETTER: u8 = 0x1f;
const DIGITS: u8 = 0x2f;
const OTHER: u8 = 0x3f;
/// Bytes before the tokens.
const HEAD: usize = 7;
/// Bytes at most.
const LEN_MAX: usize = 255;

/// Appends what is to be kept of a label with these `facts`: nothing for one that is to be read
/// again.
pub fn write(facts: &Facts, printable: bool, tokens: &[Token], out: &mut Vec<u8>) {
    // No label has so many: 63 octets decode to fewer characters, of two folded letters each.
    if tokens.is_empty() || 2 * tokens.len() + HEAD >= LEN_MAX {
        return;
    }
    let flag = if printable { 0 } else { FLAG };
    let ReadPoints { dictionary, market, language, pronounceability } = facts.read;
    out.extend([facts.quality.get() | flag, facts.pronounceability.get(), facts.caps.bits()]);
    out.extend([dictionary, market, language, pronounceability].map(|points| points as u8));
    for (at, token) in tokens.iter().enumerate() {
        out.push(mark(token));
        if at + 1 < tokens.len() {
            out.push(token.len() as u8);
        }
    }
}

fn mark(token: &Token) -> u8 {
    match token.kind {
        TokenKind::Word(tongue) => tongue.number() << 4 | token.level(),
        TokenKind::Unknown => UNKNOWN,
        TokenKind::Letter => LETTER,
        TokenKind::Digits => DIGITS,
        TokenKind::Other => OTHER,
    }
}

/// Fills `facts`, so far the default, with those that [`write`] saw but for `tld_weight`, and
/// `tokens` with those of the label; returns whether sentences may hold the words. `read` is left
/// as it is for an ASCII label, whose tokens are cut from `name`, and else reads `name`.
///
/// `None` for evidence that is empty, or that no such label has: what was filled then says nothing.
pub fn read(
    name: &str,
    evidence: &[u8],
    tokens: &mut Vec<Token>,
    read: &mut Label,
    facts: &mut Facts,
) -> Option<bool> {
    tokens.clear();
    let (&[quality, ease, caps, points @ ..], marks) = evidence.split_first_chunk::<HEAD>()?;
    let [dictionary, market, language, pronounceability] = points.map(|points: u8| points as i8);
    facts.quality = Percent::clamped(u32::from(quality & !FLAG));
    facts.pronounceability = Percent::clamped(u32::from(ease));
    facts.caps = Caps::from_bits(caps);
    facts.read = ReadPoints { dictionary, market, language, pronounceability };
    if is_a_label(name) {
        read.read(name);
        read_tokens(read.whole_text(), marks, tokens, facts)?;
        (facts.chars, facts.idn) = (read.chars, true);
    } else if name.is_ascii() {
        read_tokens(name, marks, tokens, facts)?;
        facts.chars = name.len() as u32;
    } else {
        return None;
    }
    Some(quality & FLAG == 0)
}

/// The tokens of `text`, and how many characters of each kind they hold.
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
            level @ 1..=10 => (TokenKind::Word(Tongue::numbered(mark >> 4)), level),
            _ => return None,
        },
    };
    Some(Token::new(kind, start, end, level))
}
