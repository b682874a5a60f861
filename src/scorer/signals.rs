//! The points that facts add to or take from a score.
//!
//! Most points come from fitted tables ([`super::model`]). Rules that sales data cannot teach are
//! here: the penalty of internationalised names, and the value of a suffix.

use serde::Serialize;
use utoipa::ToSchema;

use super::facts::{Facts, ReadPoints};
use super::model::{Class, Model, Part};
use super::percent::Percent;

/// Points of an IDN: many forms and people cannot type it.
const IDN: i32 = -6;
/// Weight of a suffix worth 0 points, in hundredths: an ordinary country code.
const SUFFIX_WEIGHT_PLAIN: i32 = 46;

/// Computes the points that take the dictionaries from facts and from the market value of the words.
pub fn read_points(facts: &Facts, class: Class, market: i32) -> ReadPoints {
    let points = |part| small(Model::shared().points(part, facts, class));
    ReadPoints {
        dictionary: points(Part::Dictionary),
        market: small(market),
        language: points(Part::Language),
        pronounceability: points(Part::Pronounceability),
    }
}

/// Clamps points to a byte; no table reaches the limits.
fn small(points: i32) -> i8 {
    points.clamp(i8::MIN.into(), i8::MAX.into()) as u8 as i8
}

/// Contribution of each part to the score. The score is their sum, limited to 0 to 100 and by the caps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Points {
    /// Base score for the kind of suffix.
    pub start: i32,
    /// Length of the label. Short names are rare and easy to remember.
    pub length: i32,
    /// Known words: few, common and natural together.
    pub dictionary: i32,
    /// Buyer demand for the words.
    pub market: i32,
    /// Match between the language of the words and the suffix.
    pub language: i32,
    /// How natural the label sounds.
    pub pronounceability: i32,
    /// Digits: kind, number and position.
    pub digits: i32,
    /// Hyphens.
    pub hyphens: i32,
    /// Internationalised domain name.
    pub idn: i32,
    /// The public suffix.
    pub tld: i32,
    /// Registrations of the label in other TLDs (`tldSpread`).
    #[serde(rename = "tldSpread")]
    pub tld_spread: i32,
    /// Adjustment to the scale of the score: 50 is the median of sold names, 90 the best percent of a
    /// day's drops.
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
