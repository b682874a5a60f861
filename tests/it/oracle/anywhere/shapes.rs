//! Random patterns and regular expressions, as sent, with a matcher that tries every way to read a
//! label. It shares no code with the automata of the index.

use std::ops::RangeInclusive;

use super::corpus::{Name, OTHER, bit};
use crate::common::rng::Rng;

/// Characters that a piece accepts: those of some bits, or one outside ASCII.
#[derive(Clone, Copy, Debug)]
struct Set {
    bits: u64,
    other: Option<char>,
}

impl Set {
    const VOWEL: Set = Set::of("aeiouy");
    const CONSONANT: Set = Set::of("bcdfghjklmnpqrstvwxyz");
    const LATIN: Set = Set::of("abcdefghijklmnopqrstuvwxyz");
    const DIGIT: Set = Set::of("0123456789");
    const ANY: Set = Set { bits: u64::MAX, other: None };
    const LETTER: Set = Set { bits: Set::LATIN.bits | OTHER, other: None };
    const LETTER_OR_DIGIT: Set = Set { bits: Set::LETTER.bits | Set::DIGIT.bits, other: None };

    /// The characters of an ASCII text.
    const fn of(text: &str) -> Set {
        let (mut bits, mut at) = (0, 0);
        while at < text.len() {
            bits |= bit(text.as_bytes()[at] as char);
            at += 1;
        }
        Set { bits, other: None }
    }

    fn one(char: char) -> Set {
        Set { bits: bit(char), other: (!char.is_ascii()).then_some(char) }
    }

    /// One of these characters.
    fn any_of(chars: [char; 2]) -> Set {
        let [one, other] = chars.map(Set::one);
        Set { bits: one.bits | other.bits, other: one.other.or(other.other) }
    }

    fn has(self, char: char) -> bool {
        match self.other {
            Some(other) if !char.is_ascii() => char == other,
            _ => self.bits & bit(char) != 0,
        }
    }
}

/// Repeated characters of a set.
#[derive(Clone, Copy, Debug)]
struct Piece {
    set: Set,
    least: usize,
    most: usize,
}

impl Piece {
    const RUN: Piece = Piece { set: Set::ANY, least: 0, most: LONG };

    fn once(set: Set) -> Piece {
        Piece { set, least: 1, most: 1 }
    }

    fn one(char: char) -> Piece {
        Piece::once(Set::one(char))
    }
}

/// More characters than any label has.
const LONG: usize = 1_000;

/// A pattern or a regular expression.
#[derive(Debug)]
pub struct Shape {
    /// Alternatives.
    branches: Vec<Vec<Piece>>,
    at_start: bool,
    at_end: bool,
    /// Whether the A-label is compared.
    of_a_label: bool,
    /// Fewest and most characters of a label that matches.
    lengths: RangeInclusive<usize>,
}

impl Shape {
    fn new(branches: Vec<Vec<Piece>>, at_start: bool, at_end: bool) -> Shape {
        let sum = |of: fn(&Piece) -> usize| branches.iter().map(move |it| it.iter().map(of).sum());
        let least = sum(|piece| piece.least).min().unwrap_or(0);
        let most = sum(|piece| piece.most).max().unwrap_or(LONG);
        let lengths = least..=if at_start && at_end { most } else { LONG };
        Shape { branches, at_start, at_end, of_a_label: false, lengths }
    }

    /// Returns true if the label matches.
    pub fn matches(&self, name: &Name) -> bool {
        if self.of_a_label {
            let chars: Vec<char> = name.label().chars().collect();
            return self.branches.iter().any(|pieces| self.is_in(pieces, &chars));
        }
        self.branches.iter().any(|pieces| self.is_in(pieces, &name.chars))
    }

    /// Returns the bits of characters that every match has.
    pub fn required(&self) -> u64 {
        let bits = |piece: &Piece| match piece.set.bits {
            bits if piece.least > 0 && bits.is_power_of_two() => bits,
            _ => 0,
        };
        match &self.branches[..] {
            [pieces] if !self.of_a_label => pieces.iter().map(bits).fold(0, |all, bit| all | bit),
            _ => 0,
        }
    }

    fn is_in(&self, pieces: &[Piece], chars: &[char]) -> bool {
        if !self.lengths.contains(&chars.len()) {
            return false;
        }
        let last = if self.at_start { 0 } else { chars.len() };
        (0..=last).any(|start| self.reads(pieces, &chars[start..]))
    }

    /// Returns true if the pieces read the start of `chars`, or all of them if the match has to end
    /// there.
    fn reads(&self, pieces: &[Piece], chars: &[char]) -> bool {
        let Some((piece, rest)) = pieces.split_first() else {
            return !self.at_end || chars.is_empty();
        };
        let mut count = 0;
        loop {
            if count >= piece.least && self.reads(rest, &chars[count..]) {
                return true;
            }
            if count == piece.most || count == chars.len() || !piece.set.has(chars[count]) {
                return false;
            }
            count += 1;
        }
    }
}

/// Returns true for a label or text that is compared with A-labels.
fn is_of_a_labels(chars: &[char]) -> bool {
    chars.starts_with(&['x', 'n', '-', '-'])
}

/// Draws a pattern that matches the label.
pub fn pattern(rng: &mut Rng, label: &[char]) -> (String, Shape) {
    let of_a_label = is_of_a_labels(label);
    // Some patterns have no text, others hardly anything else.
    let literal = *rng.pick(&[0, 30, 80]);
    let (mut text, mut pieces, mut stars) = (String::new(), Vec::new(), 0);
    let mut at = 0;
    while at < label.len() {
        let char = label[at];
        let is_prefix = of_a_label && at < 4;
        if !is_prefix && stars < 4 && !text.ends_with('*') && rng.chance(12) {
            text.push('*');
            pieces.push(Piece::RUN);
            stars += 1;
            at += rng.below(6);
            continue;
        }
        let class = match char {
            'a' | 'e' | 'i' | 'o' | 'u' => ('V', Set::VOWEL),
            'a'..='z' => ('C', Set::CONSONANT),
            '0'..='9' => ('N', Set::DIGIT),
            '-' => ('?', Set::ANY),
            _ => ('L', Set::LETTER),
        };
        let (symbol, set) = match rng.below(8) {
            _ if is_prefix || rng.chance(literal) => (char, Set::one(char)),
            0 if char != '-' => ('A', Set::LETTER_OR_DIGIT),
            1 => ('?', Set::ANY),
            2 if char.is_ascii_lowercase() => ('L', Set::LETTER),
            _ => class,
        };
        text.push(symbol);
        pieces.push(Piece::once(set));
        at += 1;
    }
    (text, Shape { of_a_label, ..Shape::new(vec![pieces], true, true) })
}

/// Draws a regular expression that matches the label, or a part of it.
pub fn regex(rng: &mut Rng, label: &[char], other: &[char]) -> (String, Shape) {
    let of_a_label = is_of_a_labels(label);
    if !of_a_label && rng.chance(8) {
        return letters_alone(rng);
    }
    let length = 1 + rng.below(label.len().min(9));
    let at_start = rng.chance(25);
    let first = if at_start || of_a_label { 0 } else { rng.below(label.len() - length + 1) };
    let (mut text, mut pieces) = (String::new(), Vec::new());
    for (at, &char) in label[first..first + length].iter().enumerate() {
        let is_prefix = of_a_label && at < 4;
        push_piece(rng, char, is_prefix, &mut text, &mut pieces);
    }
    let mut branches = vec![pieces];
    if !of_a_label && rng.chance(25) {
        // A second alternative, taken from another label.
        let more = 1 + rng.below(other.len().min(6));
        let tail: Vec<Piece> = other[..more].iter().map(|&char| Piece::one(char)).collect();
        text = format!("({text}|{})", other[..more].iter().collect::<String>());
        branches.push(tail);
    }
    let at_end = first + length == label.len() && rng.chance(60) || rng.chance(10);
    // A part of `xn--` is compared with Unicode forms.
    let of_a_label = text.starts_with("xn--");
    let shape = Shape { of_a_label, ..Shape::new(branches, at_start, at_end) };
    (anchored(&text, at_start, at_end), shape)
}

/// Draws an expression without a text that every match contains.
fn letters_alone(rng: &mut Rng) -> (String, Shape) {
    let (class, set) = match rng.below(3) {
        0 => ("[a-z]", Set::LATIN),
        1 => (r"\d", Set::DIGIT),
        _ => ("[aeiouy]", Set::VOWEL),
    };
    let (least, more) = (1 + rng.below(5), rng.below(3));
    let times = if more == 0 { format!("{least}") } else { format!("{least},{}", least + more) };
    let (at_start, at_end) = (rng.chance(50), rng.chance(50));
    let pieces = vec![Piece { set, least, most: least + more }];
    let text = anchored(&format!("{class}{{{times}}}"), at_start, at_end);
    (text, Shape::new(vec![pieces], at_start, at_end))
}

fn anchored(text: &str, at_start: bool, at_end: bool) -> String {
    let (start, end) = (if at_start { "^" } else { "" }, if at_end { "$" } else { "" });
    format!("{start}{text}{end}")
}

/// Adds an expression that matches a character.
fn push_piece(
    rng: &mut Rng,
    char: char,
    is_prefix: bool,
    text: &mut String,
    pieces: &mut Vec<Piece>,
) {
    match rng.below(24) {
        _ if is_prefix => {
            text.push(char);
            pieces.push(Piece::one(char));
        }
        0 => {
            text.push('.');
            pieces.push(Piece::once(Set::ANY));
        }
        1 if char.is_ascii_lowercase() => {
            text.push_str("[a-z]");
            pieces.push(Piece::once(Set::LATIN));
        }
        2 if char.is_ascii_digit() => {
            text.push_str(r"\d");
            pieces.push(Piece::once(Set::DIGIT));
        }
        // Small classes count as texts, large ones do not.
        3 if char != '-' => {
            text.push_str(&format!("[{char}q]"));
            pieces.push(Piece::once(Set::any_of([char, 'q'])));
        }
        4 if char != '-' => {
            text.push_str(&format!("[{char}bcdef]"));
            let (one, more) = (Set::one(char), Set::of("bcdef"));
            pieces.push(Piece::once(Set { bits: one.bits | more.bits, ..one }));
        }
        5 => {
            text.push_str(&format!("{char}+"));
            pieces.push(Piece { most: LONG, ..Piece::one(char) });
        }
        6 => {
            text.push_str(&format!("{char}?"));
            pieces.push(Piece { least: 0, ..Piece::one(char) });
        }
        7 => {
            text.push_str(&format!("{char}.*"));
            pieces.extend([Piece::one(char), Piece::RUN]);
        }
        _ => {
            text.push(char);
            pieces.push(Piece::one(char));
        }
    }
}
