//! Facts about a name, and the caps that limit its score.

use serde::Serialize;
use utoipa::ToSchema;

use super::percent::Percent;
use super::shape::{Form, Shape};

/// Minimum hyphens for [`Caps::MANY_HYPHENS`].
pub const MANY_HYPHENS_MIN: u32 = 3;
/// Properties of a name, before any points.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Number of characters of the label in Unicode.
    pub chars: u32,
    /// Number of decimal digits.
    pub digits: u32,
    /// Number of distinct digits.
    pub distinct_digits: u32,
    /// Position of the digits: 0 without digits, 1 if all are at the end of the label, 2 if all are
    /// at its start, 3 otherwise.
    pub digits_where: u32,
    /// Number of hyphens.
    pub hyphens: u32,
    /// Number of Latin letters, after folding.
    pub letters: u32,
    /// Number of letters of other scripts.
    pub others: u32,
    /// Whether the label is an A-label (`xn--`).
    pub idn: bool,
    /// Information that a person must remember, in bits; a rare word has more than a common one.
    pub bits: u32,
    /// `bits` per letter or digit, in sixteenths of a bit.
    pub bits_per_letter: u32,
    /// Number of words, numbers and other pieces.
    pub pieces: u32,
    /// Number of letters outside words.
    pub unknown: u32,
    /// Frequency of the label's words in the language of the suffix, in tenths of
    /// [`Facts::quality`].
    pub fit: u32,
    /// Mean cost of a letter given the letters before it, in sixteenths of a bit.
    pub letter_cost: u32,
    /// `letter_cost` in the model of English words.
    pub english_cost: u32,
    /// `letter_cost` in the model of Polish names; 0 under other suffixes.
    pub polish_cost: u32,
    /// Highest cost of a letter in that model; a sequence that Polish lacks indicates a foreign
    /// word.
    pub polish_dearest: u32,
    /// Information that a person must spell, in bits; letters in an unusual order have more. 0 for
    /// up to three characters.
    pub spelt_bits: u32,
    /// Kind of the label, as far as the model depends on it.
    pub form: Form,
    /// Shape of a number or of a short label that is not a word.
    pub shape: Shape,
    /// Dictionary quality.
    pub quality: Percent,
    /// Pronounceability; 0.5 when it cannot be judged.
    pub pronounceability: Percent,
    /// Weight of the public suffix.
    pub tld_weight: Percent,
    /// Hundredths of a point of the public suffix.
    pub tld_points: i32,
    /// Points whose computation needs the dictionaries.
    pub read: ReadPoints,
    /// Whether the language of its words is certain.
    pub certain: bool,
    /// Caps that apply.
    pub caps: Caps,
}

/// Hundredths of a point whose computation needs the dictionaries; stored with the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadPoints {
    pub dictionary: i16,
    pub market: i16,
    pub pronounceability: i16,
}

/// Set of caps, which limit a score regardless of its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps(u16);

/// Upper bound of the scores of one kind of name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Cap {
    /// Kind of name.
    pub name: &'static str,
    /// Highest possible score.
    pub max: i32,
}

impl Caps {
    /// A name that joins minors and sex; see [`Traits::prohibited`](super::Traits::prohibited).
    pub const MINORS: Caps = Caps(1);
    /// A suffix that is not open to registrations by the public.
    pub const NOT_PUBLIC: Caps = Caps(1 << 1);
    /// A label of one character that the registry reserves.
    pub const RESERVED: Caps = Caps(1 << 2);
    /// [`MANY_HYPHENS_MIN`] hyphens or more.
    pub const MANY_HYPHENS: Caps = Caps(1 << 3);
    /// Letters from scripts that no language combines, which is a common way to imitate a known
    /// name.
    pub const MIXED_SCRIPTS: Caps = Caps(1 << 4);
    /// A known brand, whose owner can claim the name, or a label that looks or is spelt like one.
    pub const BRAND: Caps = Caps(1 << 5);
    /// A word that insults a group of people.
    pub const OFFENSIVE: Caps = Caps(1 << 6);
    /// Terms typical of spam, such as medicines.
    pub const SPAM: Caps = Caps(1 << 7);
    /// A known brand among other words.
    pub const TRADEMARK: Caps = Caps(1 << 8);
    /// An adult term, which limits the market.
    pub const ADULT: Caps = Caps(1 << 9);
    /// A word that is also a known brand, or a less known brand. Mainly a remark.
    pub const ALSO_BRAND: Caps = Caps(1 << 10);

    /// Number of caps.
    pub const COUNT: usize = 11;

    /// All caps, by bit.
    const ALL: [Cap; Caps::COUNT] = [
        Cap { name: "minors", max: 0 },
        Cap { name: "notPublic", max: 10 },
        Cap { name: "reserved", max: 10 },
        Cap { name: "manyHyphens", max: 15 },
        Cap { name: "mixedScripts", max: 20 },
        Cap { name: "brand", max: 20 },
        Cap { name: "offensive", max: 25 },
        Cap { name: "spam", max: 30 },
        Cap { name: "trademark", max: 35 },
        Cap { name: "adult", max: 75 },
        Cap { name: "alsoBrand", max: 90 },
    ];

    /// Returns the union of both sets.
    pub const fn with(self, other: Caps) -> Caps {
        Caps(self.0 | other.0)
    }

    /// Returns the caps that `other` does not have.
    pub const fn without(self, other: Caps) -> Caps {
        Caps(self.0 & !other.0)
    }

    /// Returns true if the set has all caps of `other`.
    pub const fn has(self, other: Caps) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if the caps are more than a remark.
    pub const fn limit(self) -> bool {
        self.without(Caps::ALSO_BRAND).0 != 0
    }

    /// Returns the set if `holds`, otherwise the empty set.
    pub const fn when(self, holds: bool) -> Caps {
        if holds { self } else { Caps(0) }
    }

    /// Returns one bit per cap; the strictest cap has the lowest bit.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Inverse of [`Caps::bits`].
    pub const fn from_bits(bits: u16) -> Caps {
        Caps(bits & ((1 << Caps::ALL.len()) - 1))
    }

    /// Returns the caps in the set, strictest first.
    pub fn list(self) -> impl Iterator<Item = Cap> {
        let applies = move |at: &usize| self.0 >> at & 1 != 0;
        (0..Caps::ALL.len()).filter(applies).map(|at| Caps::ALL[at])
    }

    /// Returns the maximum score under these caps.
    pub fn max(self) -> i32 {
        self.strictest().map_or(100, |cap| cap.max)
    }

    /// Returns the strictest cap in the set.
    pub fn strictest(self) -> Option<Cap> {
        (self.0 != 0).then(|| Caps::ALL[self.0.trailing_zeros() as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_cap_applies() {
        let caps = Caps::OFFENSIVE.with(Caps::MANY_HYPHENS).with(Caps::ADULT.when(false));
        let names: Vec<_> = caps.list().map(|cap| (cap.name, cap.max)).collect();
        assert_eq!(names, [("manyHyphens", 15), ("offensive", 25)]);
        assert_eq!(caps.strictest().map(|cap| cap.max), Some(15));
        assert_eq!(Caps::default().strictest(), None);
        assert_eq!(Caps::from_bits(caps.bits()), caps);
        assert!(Caps::ALL.is_sorted_by_key(|cap| cap.max));
    }
}
