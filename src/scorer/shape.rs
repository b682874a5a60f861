//! Forms of labels, and the shapes of short labels and numbers, whose market value depends on little
//! else.

/// Kind of a label, as far as its demand in other TLDs and the top of the scale depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Labels with hyphens, letters of other scripts, or both digits and letters.
    #[default]
    Other,
    /// One word.
    Word,
    /// Two words.
    Pair,
    /// Three words or more.
    Phrase,
    /// Five letters or more that are not all words.
    Invented,
    /// Up to four letters that are not a word.
    Letters,
    /// Digits only.
    Number,
}

impl Form {
    /// Number of forms.
    pub const COUNT: usize = 7;
    /// Names used in `data/scorer/model.txt`, by number.
    pub const NAMES: [&str; Form::COUNT] =
        ["other", "word", "pair", "phrase", "invented", "letters", "number"];
}

/// Maximum letters of a label that has a shape.
pub const SHORT: u32 = 4;

/// Shape of a number or of a short label that is not a word, from the least to the most valuable
/// under `.com`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Longer labels and words.
    #[default]
    None,
    Digits8,
    Digits7,
    Digits6,
    Pattern6,
    Digits5,
    Letters4,
    Lucky5,
    Choice4,
    Pattern5,
    Spoken4,
    Best5,
    Digits4,
    Pattern4,
    Best4,
    Letters3,
    Digits3,
    Best3,
    Spoken3,
    Digits2,
    Letters2,
    Single,
}

impl Shape {
    /// All shapes under `.com`, from the least valuable.
    #[cfg(test)]
    pub const ALL: [Shape; 20] = {
        use Shape::*;
        [
            Digits8, Digits7, Digits6, Pattern6, Digits5, Letters4, Lucky5, Choice4, Pattern5,
            Spoken4, Best5, Digits4, Pattern4, Best4, Letters3, Digits3, Best3, Spoken3, Digits2,
            Letters2,
        ]
    };

    /// Returns the shape of an ASCII label.
    pub fn of(label: &str, form: Form) -> Shape {
        match form {
            Form::Number => number(label.as_bytes()),
            Form::Letters => letters(label.as_bytes()),
            _ => Shape::None,
        }
    }

    /// Returns the most valuable shape of labels of up to four letters that are not words. A word of
    /// the same length is worth more.
    pub fn below_word(chars: u32) -> Option<Shape> {
        [Shape::Single, Shape::Letters2, Shape::Spoken3, Shape::Spoken4]
            .get(chars.checked_sub(1)? as usize)
            .copied()
    }
}

fn letters(label: &[u8]) -> Shape {
    let count = |letters: &[u8]| label.iter().filter(|letter| letters.contains(letter)).count();
    let vowel = |letter: u8| b"aeiouy".contains(&letter);
    match *label {
        [_] => Shape::Single,
        [_, _] => Shape::Letters2,
        [first, middle, last] if vowel(first) != vowel(middle) && vowel(middle) != vowel(last) => {
            Shape::Spoken3
        }
        [one, two, three, four] => match [one, two, three, four].map(vowel) {
            [false, true, false, true]
            | [true, false, true, false]
            | [false, true, true, false] => Shape::Spoken4,
            // Buyers in China want letters that begin a syllable of Pinyin; others want familiar ones.
            _ if count(b"aeiouv") == 0 && count(b"jkqwxyz") <= 2 => Shape::Choice4,
            _ if count(b"aeiou") > 0 && count(b"jkqvwxyz") == 0 => Shape::Choice4,
            _ => Shape::Letters4,
        },
        _ => Shape::Letters3,
    }
}

fn number(label: &[u8]) -> Shape {
    match (label.len(), regularity(label)) {
        (1, _) => Shape::Single,
        (2, _) => Shape::Digits2,
        (3, Regularity::Best) => Shape::Best3,
        (3, _) => Shape::Digits3,
        (4, Regularity::Best) => Shape::Best4,
        (4, Regularity::Pattern) => Shape::Pattern4,
        (4, _) => Shape::Digits4,
        (5, Regularity::Best) => Shape::Best5,
        (5, Regularity::Pattern) => Shape::Pattern5,
        (5, Regularity::Lucky) => Shape::Lucky5,
        (5, Regularity::None) => Shape::Digits5,
        (6, Regularity::Best | Regularity::Pattern) => Shape::Pattern6,
        (6, _) => Shape::Digits6,
        (7, _) => Shape::Digits7,
        _ => Shape::Digits8,
    }
}

/// How regular the digits of a number are.
enum Regularity {
    None,
    /// Without 4, which buyers in China avoid.
    Lucky,
    /// Few different digits, a mirror, a repetition, or eights without a 4.
    Pattern,
    /// One digit only, or a sequence such as 12345.
    Best,
}

fn regularity(digits: &[u8]) -> Regularity {
    let step = |by: i16| digits.windows(2).all(|two| i16::from(two[1]) - i16::from(two[0]) == by);
    if step(0) || step(1) || step(-1) {
        return Regularity::Best;
    }
    let seen = digits.iter().fold(0u16, |seen, digit| seen | 1 << (digit & 15)).count_ones();
    let mirrored = digits.iter().eq(digits.iter().rev());
    let (front, back) = digits.split_at(digits.len() / 2);
    let (has_four, eights) =
        (digits.contains(&b'4'), digits.iter().filter(|&&digit| digit == b'8').count());
    // Sold numbers of five digits without a 4 cost ten times as much if they have three different digits or fewer.
    let few = if has_four { 2 } else { 3 };
    let is_lucky = !has_four && eights >= digits.len().saturating_sub(3).max(1);
    if digits.len() != 4 && seen <= few || seen <= 2 || mirrored || front == back || is_lucky {
        Regularity::Pattern
    } else if has_four {
        Regularity::None
    } else {
        Regularity::Lucky
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_digits_have_a_shape() {
        let shape = |label: &str| number(label.as_bytes());
        for (label, expected) in [
            ("7", Shape::Single),
            ("12", Shape::Digits2),
            ("888", Shape::Best3),
            ("471", Shape::Digits3),
            ("4567", Shape::Best4),
            ("4554", Shape::Pattern4),
            ("1213", Shape::Digits4),
            ("1238", Shape::Pattern4),
            ("88888", Shape::Best5),
            ("54321", Shape::Best5),
            ("10101", Shape::Pattern5),
            ("17188", Shape::Pattern5),
            ("17925", Shape::Lucky5),
            ("41819", Shape::Digits5),
            ("123123", Shape::Pattern6),
            ("418192", Shape::Digits6),
        ] {
            assert_eq!(shape(label), expected, "{label}");
        }
    }

    #[test]
    fn short_letters_have_a_shape() {
        for (label, expected) in [
            ("q", Shape::Single),
            ("qx", Shape::Letters2),
            ("qax", Shape::Spoken3),
            ("axe", Shape::Spoken3),
            ("qxz", Shape::Letters3),
            ("lumo", Shape::Spoken4),
            ("bcdf", Shape::Choice4),
            ("bcdv", Shape::Letters4),
            ("pcah", Shape::Choice4),
            ("pkah", Shape::Letters4),
        ] {
            assert_eq!(letters(label.as_bytes()), expected, "{label}");
        }
    }
}
