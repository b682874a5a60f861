//! Facts about a name, and the points that each adds to or takes from its score.
//!
//! Most points come from fitted tables ([`super::model`]). Rules that sales data cannot teach are
//! here: the penalty of internationalised names, the value of a suffix, and the caps.

use serde::Serialize;

use super::model::{Class, Model, Part};
use super::percent::Percent;

/// Minimum hyphens for [`Caps::MANY_HYPHENS`].
pub const MANY_HYPHENS_MIN: u32 = 3;
/// Points of an IDN: many forms and people cannot type it.
const IDN: i32 = -6;
/// Weight of a suffix worth 0 points, in hundredths: an ordinary country code.
const SUFFIX_WEIGHT_PLAIN: i32 = 46;

/// Properties of a name, before any points.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Characters of the label in Unicode.
    pub chars: u32,
    /// Decimal digits among them.
    pub digits: u32,
    /// Different digits among them.
    pub distinct_digits: u32,
    /// 0 without digits, 1 when all of them end the label, 2 when all begin it, 3 elsewhere.
    pub digits_where: u32,
    /// Hyphens among them.
    pub hyphens: u32,
    /// Latin letters among them, after folding.
    pub letters: u32,
    /// Letters of other scripts among them.
    pub others: u32,
    /// The label is an A-label (`xn--`).
    pub idn: bool,
    /// Information to remember, in bits: a rare word has more than a common one.
    pub bits: u32,
    /// `bits` per letter or digit, in sixteenths of a bit.
    pub bits_per_letter: u32,
    /// Words, numbers and other pieces.
    pub pieces: u32,
    /// Letters outside words.
    pub unknown: u32,
    /// Frequency of its words in the language of the suffix, in tenths of [`Facts::quality`].
    pub fit: u32,
    /// Mean cost of a letter after those before it, in sixteenths of a bit.
    pub letter_cost: u32,
    /// `letter_cost` in the model of English words.
    pub english_cost: u32,
    /// `letter_cost` in the model of Polish names; 0 under other suffixes.
    pub polish_cost: u32,
    /// Highest cost of a step in that model: a step that Polish lacks marks a foreign word.
    pub polish_dearest: u32,
    /// Information to spell, in bits: letters in an unusual order have more. 0 for up to three
    /// characters.
    pub spelt_bits: u32,
    /// TLDs in which the corpus holds the label, including its own.
    pub spread: u32,
    /// Dictionary quality.
    pub quality: Percent,
    /// Pronounceability; 0.5 when it cannot be judged.
    pub pronounceability: Percent,
    /// Weight of the public suffix.
    pub tld_weight: Percent,
    /// Points that take the dictionaries to compute.
    pub read: ReadPoints,
    /// Caps that apply.
    pub caps: Caps,
}

/// Points that take the dictionaries to compute; stored with a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadPoints {
    pub dictionary: i8,
    pub market: i8,
    pub language: i8,
    pub pronounceability: i8,
}

impl ReadPoints {
    /// Computes the points from facts and from the market value of the words.
    pub fn new(facts: &Facts, class: Class, market: i32) -> ReadPoints {
        let points = |part| small(Model::shared().points(part, facts, class));
        ReadPoints {
            dictionary: points(Part::Dictionary),
            market: small(market),
            language: points(Part::Language),
            pronounceability: points(Part::Pronounceability),
        }
    }
}

/// Clamps points to a byte; no table reaches the limits.
fn small(points: i32) -> i8 {
    points.clamp(i8::MIN.into(), i8::MAX.into()) as u8 as i8
}

/// Set of caps, which limit a score regardless of its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps(u8);

/// A cap that applies to a name, whether or not its points reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cap {
    /// Its name in the API.
    pub name: &'static str,
    /// Maximum score of a name with this cap.
    pub max: i32,
}

impl Caps {
    /// [`MANY_HYPHENS_MIN`] hyphens or more.
    pub const MANY_HYPHENS: Caps = Caps(1);
    /// Letters of scripts that no language combines: a common way to imitate a known name.
    pub const MIXED_SCRIPTS: Caps = Caps(1 << 1);
    /// A word that insults a group of people.
    pub const OFFENSIVE: Caps = Caps(1 << 2);
    /// Terms of spam, such as medicines.
    pub const SPAM: Caps = Caps(1 << 3);
    /// A well-known trademark, whose owner can claim the name.
    pub const TRADEMARK: Caps = Caps(1 << 4);
    /// An adult term, which limits the market.
    pub const ADULT: Caps = Caps(1 << 5);

    /// By bit.
    const ALL: [Cap; 6] = [
        Cap { name: "manyHyphens", max: 15 },
        Cap { name: "mixedScripts", max: 20 },
        Cap { name: "offensive", max: 25 },
        Cap { name: "spam", max: 30 },
        Cap { name: "trademark", max: 35 },
        Cap { name: "adult", max: 75 },
    ];

    /// The union of both sets.
    pub const fn with(self, other: Caps) -> Caps {
        Caps(self.0 | other.0)
    }

    /// The set when `holds`, otherwise none.
    pub const fn when(self, holds: bool) -> Caps {
        if holds { self } else { Caps(0) }
    }

    /// One bit per cap, the strictest lowest.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Inverse of [`Caps::bits`].
    pub const fn from_bits(bits: u8) -> Caps {
        Caps(bits & ((1 << Caps::ALL.len()) - 1))
    }

    /// The caps in the set, strictest first.
    pub fn list(self) -> impl Iterator<Item = Cap> {
        let applies = move |at: &usize| self.0 >> at & 1 != 0;
        (0..Caps::ALL.len()).filter(applies).map(|at| Caps::ALL[at])
    }

    /// Maximum score under these caps.
    pub fn max(self) -> i32 {
        self.strictest().map_or(100, |cap| cap.max)
    }

    /// The strictest cap in the set.
    pub fn strictest(self) -> Option<Cap> {
        (self.0 != 0).then(|| Caps::ALL[self.0.trailing_zeros() as usize])
    }
}

/// Points of each part of the score. Their sum, clamped to 0..=100 and to the caps, is the score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Points {
    /// Base value of the class of suffix.
    pub start: i32,
    /// Short names are rare and easy to remember.
    pub length: i32,
    /// Few and common words, which are easy to remember.
    pub dictionary: i32,
    /// Market value of the words.
    pub market: i32,
    /// Words in the language of the suffix.
    pub language: i32,
    /// How natural it sounds.
    pub pronounceability: i32,
    /// Number, variety and position of digits.
    pub digits: i32,
    /// Hyphens, which must be spelled out.
    pub hyphens: i32,
    /// An IDN.
    pub idn: i32,
    /// The public suffix.
    pub tld: i32,
    /// Registrations of the label in other TLDs (`tldSpread`).
    #[serde(rename = "tldSpread")]
    pub tld_spread: i32,
    /// Maps the sum of the other parts to the scale of the score, on which 50 is the median of sold
    /// names and 90 the best hundredth of a day's drops.
    pub scale: i32,
}

impl Points {
    /// All parts except `tld_spread` and `scale`, which depend on the corpus.
    pub fn new(facts: &Facts, class: Class) -> Points {
        let model = Model::shared();
        let points = |part| model.points(part, facts, class);
        let ReadPoints { dictionary, market, language, pronounceability } = facts.read;
        Points {
            start: model.start(class),
            length: points(Part::Length),
            dictionary: dictionary.into(),
            market: market.into(),
            language: language.into(),
            pronounceability: pronounceability.into(),
            digits: points(Part::Digits),
            hyphens: points(Part::Hyphens),
            idn: if facts.idn { IDN } else { 0 },
            tld: tld(facts.tld_weight),
            tld_spread: 0,
            scale: 0,
        }
    }

    /// The sum, before any limit.
    pub fn sum(&self) -> i32 {
        let Points {
            start,
            length,
            dictionary,
            market,
            language,
            pronounceability,
            digits,
            hyphens,
            idn,
            tld,
            tld_spread,
            scale,
        } = *self;
        let words = dictionary + market + language + pronounceability;
        start + length + words + digits + hyphens + idn + tld + tld_spread + scale
    }
}

/// Length band in the API, `1-3` to `21+`, by characters of the label.
pub fn length_band(chars: u32) -> &'static str {
    match chars {
        0..=3 => "1-3",
        4..=5 => "4-5",
        6..=8 => "6-8",
        9..=12 => "9-12",
        13..=20 => "13-20",
        _ => "21+",
    }
}

/// One point per twelve hundredths of weight above or below an ordinary country code.
fn tld(weight: Percent) -> i32 {
    (i32::from(weight.get()) - SUFFIX_WEIGHT_PLAIN) / 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_bands_follow_the_api() {
        let bands = [1, 3, 4, 5, 6, 8, 9, 12, 13, 20, 21, 63].map(length_band);
        let expected = [
            "1-3", "1-3", "4-5", "4-5", "6-8", "6-8", "9-12", "9-12", "13-20", "13-20", "21+",
            "21+",
        ];
        assert_eq!(bands, expected);
    }

    #[test]
    fn better_suffixes_are_worth_more() {
        let points = |weight| tld(Percent::clamped(weight));
        assert_eq!((points(100), points(46), points(6)), (4, 0, -3));
        assert!((0..100).all(|weight| points(weight) <= points(weight + 1)));
    }

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

    #[test]
    fn points_of_visible_facts_need_no_dictionary() {
        let facts = Facts {
            chars: 8,
            hyphens: 2,
            read: ReadPoints { market: 9, ..Default::default() },
            ..Default::default()
        };
        let class = Class::new(super::super::tlds::SuffixClass::Com, 8);
        let points = Points::new(&facts, class);
        let none = Points::new(&Facts { hyphens: 0, ..facts }, class);
        assert!(points.hyphens < none.hyphens);
        assert_eq!((points.market, points.dictionary, points.scale), (9, 0, 0));
        assert_eq!(points.sum() - points.hyphens, none.sum() - none.hyphens);
    }
}
