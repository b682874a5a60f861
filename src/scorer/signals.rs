//! What is seen in a name, and what each thing seen adds to or takes from its score.
//!
//! Most parts are fitted tables ([`super::model`]); the rest, the judgements that no sale can
//! teach, stand here: what an internationalised name loses, what a suffix is worth, what limits a
//! score whatever else is good.

use serde::Serialize;

use super::model::{Class, Model, Part};
use super::percent::Percent;

/// Hyphens from which [`Caps::MANY_HYPHENS`] holds.
pub const MANY_HYPHENS_MIN: u32 = 3;
/// What an IDN loses: many forms and people cannot type it.
const IDN: i32 = -6;
/// The weight of a suffix that neither adds nor takes, in hundredths: an ordinary country code.
const SUFFIX_WEIGHT_PLAIN: i32 = 46;

/// What the name shows, before any judgement.
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
    /// The label is an `xn--` one.
    pub idn: bool,
    /// How much there is to remember, in bits: a rare word is more than a common one.
    pub bits: u32,
    /// The same for each letter or digit, in sixteenths of a bit.
    pub bits_per_letter: u32,
    /// Words, numbers and what is between them.
    pub pieces: u32,
    /// Letters that are in no word.
    pub unknown: u32,
    /// How common its words are in the language of the suffix, in tenths of [`Facts::quality`].
    pub fit: u32,
    /// How unlikely each letter is after those before it, in sixteenths of a bit.
    pub letter_cost: u32,
    /// The same by English words alone.
    pub english_cost: u32,
    /// The same by Polish names alone; nothing under suffixes that are not Polish.
    pub polish_cost: u32,
    /// The least likely of those letters: one step that Polish has not tells a foreign word.
    pub polish_dearest: u32,
    /// How much there is to spell, in bits: letters in an order that names seldom have are more.
    /// Nothing for three characters and fewer.
    pub spelt_bits: u32,
    /// In how many TLDs the corpus holds the label, its own included.
    pub spread: u32,
    /// How well dictionaries know it.
    pub quality: Percent,
    /// How easily it is spoken; half where that cannot be judged.
    pub pronounceability: Percent,
    /// Weight of the public suffix.
    pub tld_weight: Percent,
    /// What the parts are worth that only reading the name can tell.
    pub read: ReadPoints,
    /// What limits the score.
    pub caps: Caps,
}

/// Points that take the dictionaries: kept with a name as evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadPoints {
    pub dictionary: i8,
    pub market: i8,
    pub language: i8,
    pub pronounceability: i8,
}

impl ReadPoints {
    /// From facts that a reading filled, and what buyers pay for the words.
    pub fn of(facts: &Facts, class: Class, market: i32) -> ReadPoints {
        let points = |part| small(Model::shared().points(part, facts, class));
        ReadPoints {
            dictionary: points(Part::Dictionary),
            market: small(market),
            language: points(Part::Language),
            pronounceability: points(Part::Pronounceability),
        }
    }
}

/// No table comes near the limits; what reaches them stays there.
fn small(points: i32) -> i8 {
    points.clamp(i8::MIN.into(), i8::MAX.into()) as u8 as i8
}

/// What limits a score whatever the points say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps(u8);

/// A limit that applies to a name, whether or not its points reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cap {
    /// Which one.
    pub name: &'static str,
    /// The highest score a name with it can have.
    pub max: i32,
}

impl Caps {
    /// [`MANY_HYPHENS_MIN`] hyphens or more.
    pub const MANY_HYPHENS: Caps = Caps(1);
    /// Letters of scripts that are not written together: the usual way to fake a known name.
    pub const MIXED_SCRIPTS: Caps = Caps(1 << 1);
    /// A word that insults a group of people.
    pub const OFFENSIVE: Caps = Caps(1 << 2);
    /// Medicines and the like that spam is made of.
    pub const SPAM: Caps = Caps(1 << 3);
    /// Somebody's trademark: whoever owns it can take the name.
    pub const TRADEMARK: Caps = Caps(1 << 4);
    /// Sold to few, and shown by fewer.
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

    /// Those of both.
    pub const fn with(self, other: Caps) -> Caps {
        Caps(self.0 | other.0)
    }

    /// These when `holds`, else none.
    pub const fn when(self, holds: bool) -> Caps {
        if holds { self } else { Caps(0) }
    }

    /// One bit each, the strictest lowest.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// What [`Caps::bits`] gave.
    pub const fn from_bits(bits: u8) -> Caps {
        Caps(bits & ((1 << Caps::ALL.len()) - 1))
    }

    /// Those that apply, strictest first.
    pub fn list(self) -> impl Iterator<Item = Cap> {
        let applies = move |at: &usize| self.0 >> at & 1 != 0;
        (0..Caps::ALL.len()).filter(applies).map(|at| Caps::ALL[at])
    }

    /// The highest score that they allow.
    pub fn max(self) -> i32 {
        self.strictest().map_or(100, |cap| cap.max)
    }

    /// The strictest one that applies.
    pub fn strictest(self) -> Option<Cap> {
        (self.0 != 0).then(|| Caps::ALL[self.0.trailing_zeros() as usize])
    }
}

/// What each part added to or took from the score. Their sum, limited to 0..=100 and by the caps,
/// is the score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Points {
    /// What plain names of its kind of suffix start from.
    pub start: i32,
    /// Short names are rare and easy to remember.
    pub length: i32,
    /// Words people know, few of them and natural together: how little there is to remember.
    pub dictionary: i32,
    /// Words that buyers pay for.
    pub market: i32,
    /// Words of the language that the suffix speaks.
    pub language: i32,
    /// Letters in an order that names have.
    pub pronounceability: i32,
    /// Digits: which, how many and where.
    pub digits: i32,
    /// Hyphens, which have to be spelt out.
    pub hyphens: i32,
    /// An IDN.
    pub idn: i32,
    /// The public suffix.
    pub tld: i32,
    /// Others thought of the same label: `tldSpread` decides it.
    #[serde(rename = "tldSpread")]
    pub tld_spread: i32,
    /// What brings the sum of all others to the scale of the score, on which 50 is the median of
    /// names that were sold and 90 the best hundredth of a day's drops.
    pub scale: i32,
}

impl Points {
    /// All parts but `tld_spread` and `scale`, which the corpus knows later.
    pub fn of(facts: &Facts, class: Class) -> Points {
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

/// `1-3` … `21+`, by characters of the label (decisions.md §8).
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

/// One point for every twelve hundredths of weight above or below that of an ordinary country code.
fn tld(weight: Percent) -> i32 {
    (i32::from(weight.get()) - SUFFIX_WEIGHT_PLAIN) / 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_those_of_the_contract() {
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
    fn the_strictest_cap_counts() {
        let caps = Caps::OFFENSIVE.with(Caps::MANY_HYPHENS).with(Caps::ADULT.when(false));
        let names: Vec<_> = caps.list().map(|cap| (cap.name, cap.max)).collect();
        assert_eq!(names, [("manyHyphens", 15), ("offensive", 25)]);
        assert_eq!(caps.strictest().map(|cap| cap.max), Some(15));
        assert_eq!(Caps::default().strictest(), None);
        assert_eq!(Caps::from_bits(caps.bits()), caps);
        assert!(Caps::ALL.is_sorted_by_key(|cap| cap.max));
    }

    #[test]
    fn facts_that_a_label_shows_need_no_reading() {
        let facts = Facts {
            chars: 8,
            hyphens: 2,
            read: ReadPoints { market: 9, ..Default::default() },
            ..Default::default()
        };
        let class = Class::of(super::super::tlds::SuffixClass::Com, 8);
        let points = Points::of(&facts, class);
        let none = Points::of(&Facts { hyphens: 0, ..facts }, class);
        assert!(points.hyphens < none.hyphens);
        assert_eq!((points.market, points.dictionary, points.scale), (9, 0, 0));
        assert_eq!(points.sum() - points.hyphens, none.sum() - none.hyphens);
    }
}
