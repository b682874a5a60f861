//! The points that facts add to or subtract from a score.
//!
//! Most points come from fitted tables ([`super::model`]). This module adds one rule that cannot be
//! fitted to sales data: the penalty for internationalised names.

use serde::Serialize;
use utoipa::ToSchema;

use super::facts::{Facts, ReadPoints};
use super::model::{BASE, Model, NameClass, ScoreComponent};
use super::shape::{Form, Shape};

/// Hundredths in a point.
const POINT: i32 = 100;
/// Penalty for an IDN in hundredths of a point: many forms do not accept it, and many people cannot
/// type it.
const IDN: i32 = -2000;

/// Computes the points that need the dictionaries, in hundredths, from facts and the market value of
/// the words.
pub fn read_points(facts: &Facts, class: NameClass, market: i32) -> ReadPoints {
    if facts.shape != Shape::None {
        return ReadPoints::default();
    }
    let of = |part| Model::shared().hundredths(part, facts, class);
    let dictionary = of(ScoreComponent::Dictionary) + of(ScoreComponent::Language);
    let pronounceability = of(ScoreComponent::Pronounceability);
    let label = of(ScoreComponent::Length) + dictionary + market + pronounceability;
    let missing = short_word_floor(facts, class).map_or(0, |floor| (floor - label).max(0));
    ReadPoints {
        dictionary: small(dictionary + missing),
        market: small(market),
        pronounceability: small(pronounceability),
    }
}

/// Hundredths of a point by which a short word exceeds other letters of its length, however many TLDs
/// have those.
const ABOVE_LETTERS: i32 = 500;

/// Minimum hundredths of a point of a label that is a word of up to four letters.
fn short_word_floor(facts: &Facts, class: NameClass) -> Option<i32> {
    let shape = Shape::below_word(facts.chars).filter(|_| facts.form == Form::Word)?;
    let letters = Facts { shape, ..Facts::default() };
    Some(Model::shared().hundredths(ScoreComponent::Shape, &letters, class) + ABOVE_LETTERS)
}

/// Clamps to 16 bits; the tables never reach these limits.
fn small(hundredths: i32) -> i16 {
    hundredths.clamp(i16::MIN.into(), i16::MAX.into()) as u16 as i16
}

/// Parts of a score in hundredths of a point, in the order of [`Points`]; the last is `tldSpread`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([i32; Parts::COUNT]);

impl Parts {
    const COUNT: usize = 7;

    /// Computes all parts except `tldSpread`, which depends on the corpus.
    pub fn new(facts: &Facts, class: NameClass) -> Parts {
        let model = Model::shared();
        let of = |part| model.hundredths(part, facts, class);
        let ReadPoints { dictionary, market, pronounceability } = facts.read;
        let idn = if facts.idn { IDN } else { 0 };
        let (length, characters) = match (facts.shape, facts.form) {
            (Shape::None, _) => (
                of(ScoreComponent::Length),
                of(ScoreComponent::Digits) + of(ScoreComponent::Hyphens) + idn,
            ),
            (_, Form::Number) => (0, of(ScoreComponent::Shape)),
            _ => (of(ScoreComponent::Shape), 0),
        };
        Parts([
            facts.tld_points,
            length,
            dictionary.into(),
            market.into(),
            pronounceability.into(),
            characters,
            0,
        ])
    }

    /// Adds the part of `tldSpread`.
    pub fn with_spread(self, hundredths: i32) -> Parts {
        let Parts([parts @ .., _]) = self;
        let [tld, length, dictionary, market, sound, characters] = parts;
        Parts([tld, length, dictionary, market, sound, characters, hundredths])
    }

    /// Adjusts one part so that all parts add up to `sum`: the one that has the points of the label's
    /// shape or, without a shape, the dictionary.
    pub fn with_sum(self, sum: i32, facts: &Facts) -> Parts {
        const LENGTH: usize = 1;
        const DICTIONARY: usize = 2;
        const CHARACTERS: usize = 5;
        let missing = sum - self.sum();
        let Parts(mut parts) = self;
        parts[match (facts.shape, facts.form) {
            (Shape::None, _) => DICTIONARY,
            (_, Form::Number) => CHARACTERS,
            _ => LENGTH,
        }] += missing;
        Parts(parts)
    }

    /// Returns the sum of the parts, which the scale maps to the score.
    pub fn sum(&self) -> i32 {
        self.0.iter().sum()
    }

    /// Returns whole points that add up to `score`. The scale flattens the sum at its ends, so
    /// parts that push a sum into a flat range are reduced in proportion.
    pub fn points(&self, score: i32) -> Points {
        let target = i64::from((score - BASE) * POINT);
        let total =
            |sign: i64| -> i64 { self.0.iter().map(|&part| (sign * i64::from(part)).max(0)).sum() };
        let (plus, minus) = (total(1), total(-1));
        // One side keeps its size; the other is adjusted to match the sum.
        let (new_plus, new_minus) = match plus - minus > target {
            true => ((target + minus).max(0), minus.max(-target)),
            false => (plus.max(target), (plus - target).max(0)),
        };
        let scaled = self.0.map(|part| match i64::from(part) {
            part if part > 0 => part * new_plus / plus,
            part if part < 0 => part * new_minus / minus,
            _ => 0,
        });
        whole(scaled, i64::from(score - BASE))
    }
}

/// Rounds hundredths to whole points that add up to `sum`; those with the largest remainders are
/// rounded up.
fn whole(scaled: [i64; Parts::COUNT], sum: i64) -> Points {
    let mut points = scaled.map(|part| part.div_euclid(POINT.into()));
    let left = sum - points.iter().sum::<i64>();
    let mut order: [usize; Parts::COUNT] = std::array::from_fn(|at| at);
    order.sort_by_key(|&at| -scaled[at].rem_euclid(POINT.into()));
    // Rounding down leaves less than one point per part. A part of 0 stays 0.
    let used = order.iter().filter(|&&at| scaled[at] != 0);
    used.take(left.max(0) as usize).for_each(|&at| points[at] += 1);
    let rest = sum - points.iter().sum::<i64>();
    let [tld, length, dictionary, market, pronounceability, characters, tld_spread] =
        points.map(|part| part as i32);
    Points {
        base: BASE + rest as i32,
        tld,
        length,
        dictionary,
        market,
        pronounceability,
        characters,
        tld_spread,
    }
}

/// Contribution of each part to the score. The score is their sum, limited by the caps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Points {
    /// Score of an ordinary name, from which the parts add and subtract.
    pub base: i32,
    /// The public suffix.
    pub tld: i32,
    /// Length of the label. Short names are rare and easy to remember.
    pub length: i32,
    /// Known words: few, common, natural together, and in the language of the suffix.
    pub dictionary: i32,
    /// Buyer demand for the words.
    pub market: i32,
    /// How natural the label sounds.
    pub pronounceability: i32,
    /// Digits, hyphens and letters that are hard to type.
    pub characters: i32,
    /// Registrations of the label in other TLDs (`tldSpread`).
    #[serde(rename = "tldSpread")]
    pub tld_spread: i32,
}

impl Points {
    /// The sum, before any cap.
    pub fn sum(&self) -> i32 {
        let Points { base, tld, length, dictionary, market, .. } = *self;
        let Points { pronounceability, characters, tld_spread, .. } = *self;
        base + tld + length + dictionary + market + pronounceability + characters + tld_spread
    }
}

/// Minimum quality, in hundredths, of common words.
pub const COMMON_FROM: u8 = 80;

/// Shape of a short label of letters or digits only.
pub fn pattern(label: &str) -> Option<&'static str> {
    let vowel = |byte: &u8| b"aeiou".contains(byte);
    let letters = label.bytes().all(|byte| byte.is_ascii_lowercase());
    let digits = label.bytes().all(|byte| byte.is_ascii_digit());
    match (label.as_bytes(), letters, digits) {
        ([one, two, three, four], true, _)
            if !vowel(one) && vowel(two) && !vowel(three) && vowel(four) =>
        {
            Some("CVCV")
        }
        (label, true, _) => ["LL", "LLL", "LLLL"].get(label.len().checked_sub(2)?).copied(),
        (label, _, true) => ["NN", "NNN", "NNNN"].get(label.len().checked_sub(2)?).copied(),
        _ => None,
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
    fn short_labels_have_a_pattern() {
        let labels = ["a", "ab", "abc", "abcd", "lumo", "abcde", "7", "77", "777", "7777", "a7"];
        let patterns = labels.map(|label| pattern(label).unwrap_or("-"));
        let expected = ["-", "LL", "LLL", "LLLL", "CVCV", "-", "-", "NN", "NNN", "NNNN", "-"];
        assert_eq!(patterns, expected);
    }

    #[test]
    fn better_suffixes_are_worth_more() {
        let ranked = ["com", "org", "de", "xyz", "plumbing"].map(|tld| Model::shared().suffix(tld));
        assert!(ranked.is_sorted_by(|one, next| one > next), "{ranked:?}");
    }

    #[test]
    fn whole_points_add_up_to_the_score() {
        let signs = |points: Points| {
            let Points { tld, length, dictionary, market, .. } = points;
            [tld, length, dictionary, market].map(i32::signum)
        };
        for parts in [[0; 4], [500, -320, 4451, -1], [9_000, 8_000, -70, 0], [-900, -1, -49, -51]] {
            let [one, two, three, four] = parts;
            let made = Parts([one, two, three, four, 0, 0, 0]);
            for score in 0..=100 {
                let points = made.points(score);
                assert_eq!(points.sum(), score, "{parts:?}");
                let agree = signs(points)
                    .iter()
                    .zip(parts)
                    .all(|(&sign, part)| sign == 0 || sign == part.signum() || part.abs() < POINT);
                assert!(agree, "{parts:?} {points:?}");
            }
        }
        let near = Parts([510, -320, 4451, 0, 0, 0, 0]);
        let points = near.points(BASE + 46);
        assert_eq!((points.base, points.tld, points.length, points.dictionary), (BASE, 5, -3, 44));
    }

    #[test]
    fn points_of_visible_facts_need_no_dictionary() {
        let facts = Facts {
            chars: 8,
            hyphens: 2,
            read: ReadPoints { market: 900, ..Default::default() },
            ..Default::default()
        };
        let class = NameClass::new(super::super::tlds::SuffixClass::Com, 8);
        let parts = Parts::new(&facts, class);
        let none = Parts::new(&Facts { hyphens: 0, ..facts }, class);
        assert!(parts.0[5] < none.0[5]);
        assert_eq!((parts.0[3], parts.0[2]), (900, 0));
        assert_eq!(parts.sum() - parts.0[5], none.sum() - none.0[5]);
    }
}
