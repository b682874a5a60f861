//! What is seen in a name, and what each thing seen adds to or takes from its score: one function
//! per part, each a small table of whole points.
//!
//! The parts are centred: an ordinary registered name gets about 0 from each and keeps
//! [`START`], so a part's size says how far it moved the score.

use serde::Serialize;

use super::percent::Percent;

/// Points of a name with nothing to be said for or against it.
pub const START: i32 = 33;

/// Hyphens from which [`Caps::many_hyphens`] holds.
pub const MANY_HYPHENS_MIN: u32 = 3;

/// What the name shows, before any judgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Characters of the label in Unicode.
    pub chars: u32,
    /// Decimal digits among them.
    pub digits: u32,
    /// Different digits among them.
    pub distinct_digits: u32,
    /// Hyphens among them.
    pub hyphens: u32,
    /// Latin letters among them, after folding.
    pub letters: u32,
    /// Letters of other scripts among them.
    pub others: u32,
    /// The label is an `xn--` one.
    pub idn: bool,
    /// How well dictionaries know it.
    pub quality: Percent,
    /// How easily it is spoken; half where that cannot be judged.
    pub pronounceability: Percent,
    /// Weight of the public suffix.
    pub tld_weight: Percent,
    /// What limits the score.
    pub caps: Caps,
}

/// What limits a score whatever the points say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// A word that insults a group of people.
    pub offensive: bool,
    /// Letters of scripts that are not written together: the usual way to fake a known name.
    pub mixed_scripts: bool,
    /// [`MANY_HYPHENS_MIN`] hyphens or more.
    pub many_hyphens: bool,
}

/// A limit that applies to a name, whether or not its points reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cap {
    /// Which one.
    pub name: &'static str,
    /// The highest score a name with it can have.
    pub max: i32,
}

impl Caps {
    /// Those that apply, strictest first.
    pub fn list(self) -> impl Iterator<Item = Cap> {
        [
            (self.many_hyphens, Cap { name: "manyHyphens", max: 15 }),
            (self.mixed_scripts, Cap { name: "mixedScripts", max: 20 }),
            (self.offensive, Cap { name: "offensive", max: 25 }),
        ]
        .into_iter()
        .filter_map(|(applies, cap)| applies.then_some(cap))
    }

    /// The strictest one that applies.
    pub fn strictest(self) -> Option<Cap> {
        let any = self.many_hyphens || self.mixed_scripts || self.offensive;
        if any { self.list().next() } else { None }
    }
}

/// What each part added to or took from the score. Their sum, limited to 0..=100 and by the caps,
/// is the score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Points {
    /// [`START`].
    pub start: i32,
    /// Short names are rare and easy to remember.
    pub length: i32,
    /// Words people know.
    pub dictionary: i32,
    /// Letters that can be said aloud.
    pub pronounceability: i32,
    /// Digits, which have to be spelt out.
    pub digits: i32,
    /// Hyphens, likewise.
    pub hyphens: i32,
    /// An IDN, which many forms and people cannot type.
    pub idn: i32,
    /// The public suffix.
    pub tld: i32,
    /// Others thought of the same label: `tldSpread` alone decides it.
    #[serde(rename = "tldSpread")]
    pub tld_spread: i32,
}

impl Points {
    /// All parts but `tld_spread`, which the corpus knows later.
    pub fn of(facts: &Facts) -> Points {
        Points {
            start: START,
            length: length(facts),
            dictionary: dictionary(facts),
            pronounceability: pronounceability(facts),
            digits: digits(facts),
            hyphens: hyphens(facts),
            idn: idn(facts),
            tld: tld(facts),
            tld_spread: 0,
        }
    }

    /// The sum, before any limit.
    pub fn sum(&self) -> i32 {
        let Points {
            start,
            length,
            dictionary,
            pronounceability,
            digits,
            hyphens,
            idn,
            tld,
            tld_spread,
        } = *self;
        start + length + dictionary + pronounceability + digits + hyphens + idn + tld + tld_spread
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

/// By characters, from one on.
const LENGTH: [i32; 25] = [
    34, 30, 24, 16, 11, 8, 6, 4, 2, 1, 0, -2, -3, -4, -6, -7, -9, -10, -11, -12, -14, -15, -17,
    -18, -20,
];

fn length(facts: &Facts) -> i32 {
    let at = facts.chars.saturating_sub(1) as usize;
    LENGTH[at.min(LENGTH.len() - 1)]
}

/// By quality in hundredths.
static DICTIONARY: [i8; 101] = {
    let mut points = [0; 101];
    let mut quality = 0;
    while quality < points.len() {
        points[quality] = match quality {
            95.. => 26,
            85.. => 23,
            80.. => 21,
            75.. => 18,
            70.. => 15,
            65.. => 12,
            60.. => 9,
            55.. => 6,
            50.. => 3,
            45.. => 0,
            40.. => -3,
            30.. => -6,
            // A little of it being a word is worth less than an invention that holds none.
            10.. => -8,
            _ => -5,
        };
        quality += 1;
    }
    points
};

fn dictionary(facts: &Facts) -> i32 {
    if facts.letters == 0 {
        return 0;
    }
    let points = i32::from(DICTIONARY[usize::from(facts.quality.get())]);
    // Nobody expects so few letters to be a word.
    if facts.chars <= 3 { points.max(0) } else { points }
}

/// From this `dictionary_quality` on, in hundredths, a name reads as words.
const KNOWN_QUALITY_MIN: u8 = 50;

/// By ease of speaking in hundredths.
static SOUND: [i8; 101] = {
    let mut points = [0; 101];
    let mut ease = 0;
    while ease < points.len() {
        points[ease] = match ease {
            80.. => 5,
            70.. => 3,
            60.. => 1,
            50.. => 0,
            40.. => -3,
            30.. => -6,
            15.. => -12,
            _ => -22,
        };
        ease += 1;
    }
    points
};

fn pronounceability(facts: &Facts) -> i32 {
    let points = i32::from(SOUND[usize::from(facts.pronounceability.get())]);
    match facts.chars {
        // Four letters are remembered as letters: the market for them is one of initials.
        0..=4 => points / 2,
        // Words that people know they can say, however rare their letters.
        _ if facts.quality.get() >= KNOWN_QUALITY_MIN => points.max(0),
        _ => points,
    }
}

fn digits(facts: &Facts) -> i32 {
    if facts.letters + facts.others > 0 {
        return match facts.digits {
            0 => 0,
            1 => -11,
            2 => -12,
            3 => -14,
            _ => -17,
        };
    }
    number(facts)
}

/// Numbers are traded like short names as long as they are short, or few digits make them up.
fn number(facts: &Facts) -> i32 {
    let plain = match facts.digits {
        0..=3 => 0,
        4 => -2,
        5 => -4,
        6 => -8,
        7 => -13,
        _ => -18,
    };
    let repeated = match facts.distinct_digits {
        1 => 8,
        2 => 5,
        3 => 2,
        _ => 0,
    };
    (plain + repeated).min(0)
}

fn hyphens(facts: &Facts) -> i32 {
    match facts.hyphens {
        0 => 0,
        1 => -12,
        2 => -20,
        _ => -26,
    }
}

fn idn(facts: &Facts) -> i32 {
    if facts.idn { -8 } else { 0 }
}

/// One point for every three hundredths of weight above or below 0.46, an ordinary country code.
fn tld(facts: &Facts) -> i32 {
    (i32::from(facts.tld_weight.get()) - 46) / 3
}

/// Three points for a second TLD, then two for every doubling of the TLDs that hold the same label
/// and one for every half way; at most [`SPREAD_MAX`]. `tld_spread` counts the name's own TLD; 0 is
/// read as 1.
pub const fn spread(tld_spread: u32) -> i32 {
    if tld_spread < 2 {
        return 0;
    }
    let doublings = tld_spread.ilog2();
    let half = tld_spread >> (doublings - 1) & 1;
    let points = SECOND_TLD + (2 * doublings + half) as i32;
    if points > SPREAD_MAX { SPREAD_MAX } else { points }
}

/// That somebody else wanted the label at all says more than how many did.
const SECOND_TLD: i32 = 3;
const SPREAD_MAX: i32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Facts = Facts {
        chars: 9,
        digits: 0,
        distinct_digits: 0,
        hyphens: 0,
        letters: 9,
        others: 0,
        idn: false,
        quality: Percent::clamped(83),
        pronounceability: Percent::HALF,
        tld_weight: Percent::clamped(46),
        caps: Caps { offensive: false, mixed_scripts: false, many_hyphens: false },
    };

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
    fn longer_is_never_better() {
        let points = |chars| length(&Facts { chars, ..PLAIN });
        assert!((1..100).all(|chars| points(chars) >= points(chars + 1)));
        assert!(points(1) > points(63));
    }

    #[test]
    fn better_known_words_are_worth_more_once_they_are_most_of_the_name() {
        let points = |quality| dictionary(&Facts { quality: Percent::clamped(quality), ..PLAIN });
        assert!((10..100).all(|quality| points(quality) <= points(quality + 1)));
        assert!(points(0) > points(20), "an invention beats a fragment");
        let initials = Facts { chars: 3, quality: Percent::clamped(0), ..PLAIN };
        assert_eq!(dictionary(&initials), 0, "no word is expected");
        assert_eq!(dictionary(&Facts { letters: 0, ..PLAIN }), 0, "no letters, no verdict");
    }

    #[test]
    fn what_can_be_said_is_worth_more() {
        let points = |ease, facts| {
            pronounceability(&Facts { pronounceability: Percent::clamped(ease), ..facts })
        };
        let invented = Facts { quality: Percent::clamped(0), ..PLAIN };
        assert!((0..100).all(|ease| points(ease, invented) <= points(ease + 1, invented)));
        assert!(points(50, invented) == 0 && points(0, invented) < 0);
        assert_eq!(points(0, PLAIN), 0, "known words can be said");
        let four = Facts { chars: 4, ..invented };
        assert!(points(0, four) > points(0, invented), "four letters are initials");
    }

    #[test]
    fn digits_and_hyphens_cost() {
        let mixed = |digits| super::digits(&Facts { digits, distinct_digits: 1, ..PLAIN });
        assert_eq!(mixed(0), 0);
        assert!((0..9).all(|digits| mixed(digits) >= mixed(digits + 1)) && mixed(1) < 0);
        let hyphen = |hyphens| super::hyphens(&Facts { hyphens, ..PLAIN });
        assert!((0..9).all(|hyphens| hyphen(hyphens) >= hyphen(hyphens + 1)) && hyphen(1) < 0);
    }

    #[test]
    fn numbers_lose_with_every_digit_and_win_by_repeating_it() {
        let number = |digits, distinct_digits| {
            super::digits(&Facts { digits, distinct_digits, letters: 0, ..PLAIN })
        };
        assert!((3..9).all(|digits| number(digits, 3) >= number(digits + 1, 3)));
        assert!(number(6, 1) > number(6, 2) && number(6, 2) > number(6, 6));
        assert!((1..63).all(|digits| number(digits, 1) <= 0), "no number beats a word for it");
    }

    #[test]
    fn suffixes_and_idns() {
        let points = |weight| tld(&Facts { tld_weight: Percent::clamped(weight), ..PLAIN });
        assert_eq!((points(100), points(46), points(6)), (18, 0, -13));
        assert!(idn(&Facts { idn: true, ..PLAIN }) < 0);
    }

    #[test]
    fn each_further_tld_adds_less() {
        let points = [0, 1, 2, 3, 4, 6, 8, 64, 100, u32::MAX].map(spread);
        assert_eq!(points, [0, 0, 5, 6, 7, 8, 9, 15, 16, 16]);
        assert!((0..5000).all(|tlds| spread(tlds) <= spread(tlds + 1)));
    }

    #[test]
    fn the_strictest_cap_counts() {
        let caps = Caps { offensive: true, mixed_scripts: false, many_hyphens: true };
        let names: Vec<_> = caps.list().map(|cap| (cap.name, cap.max)).collect();
        assert_eq!(names, [("manyHyphens", 15), ("offensive", 25)]);
        assert_eq!(caps.strictest().map(|cap| cap.max), Some(15));
        assert_eq!(Caps::default().strictest(), None);
    }
}
