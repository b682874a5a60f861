//! The Domain Quality Score.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Domain Quality Score, in whole points. Invariant: `0 <= points <= 100`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u8")]
pub struct Dqs(u8);

impl Dqs {
    /// The best score.
    pub const MAX: Dqs = Dqs(100);
    /// The lowest score.
    pub const MIN: Dqs = Dqs(0);

    /// Returns `points` as a score, or `None` above 100.
    pub fn new(points: u8) -> Option<Dqs> {
        (points <= Dqs::MAX.0).then_some(Dqs(points))
    }

    /// Returns the score of a sum of points, clamped to 0..=100.
    pub fn clamped(points: i32) -> Dqs {
        Dqs(points.clamp(0, 100) as u8)
    }

    /// Returns the number of names of a day of which one has at least this score. `None` below 60, the score of
    /// the best tenth. The scale fixes the shares at the scores of [`RARITIES`] (`data/docs/score.md`); between
    /// them, they fall by the same factor from point to point.
    pub fn one_in(self) -> Option<u32> {
        let points = f64::from(self.0);
        let after = RARITIES.iter().position(|(at, _)| f64::from(*at) > points);
        let low = after.unwrap_or(RARITIES.len()).checked_sub(1)?;
        let (from, names) = RARITIES[low];
        let (to, next) = RARITIES.get(low + 1).copied().unwrap_or((from + 1, names));
        let way = (points - f64::from(from)) / f64::from(to - from);
        let names = f64::from(names) * (f64::from(next) / f64::from(names)).powf(way);
        // Two digits: the shares are estimates.
        let digit = 10_f64.powf((names.log10() - 1.0).floor());
        Some(((names / digit).round() * digit) as u32)
    }

    /// Returns the class of the score: the place in [`Dqs::CLASSES`] of the highest one that it reaches.
    pub fn class(self) -> usize {
        Dqs::CLASSES.iter().rposition(|from| *from <= self).unwrap_or_default()
    }

    /// Lowest scores of the five classes by rarity: the best tenth begins at 60, the best hundredth at 90, the
    /// best thousandth at 97, and the best ten-thousandth at 99.
    pub const CLASSES: [Dqs; 5] = [Dqs(0), Dqs(60), Dqs(90), Dqs(97), Dqs(99)];

    /// Lowest scores of the bands in which names are counted.
    pub const BANDS: [Dqs; 5] = [Dqs(0), Dqs(60), Dqs(80), Dqs(90), Dqs(97)];

    /// Returns the score in whole points, 0 to 100.
    pub const fn points(self) -> u8 {
        self.0
    }
}

/// Scores, and how many names of a day there are for each that reaches them (`data/docs/score.md`).
const RARITIES: [(u8, u32); 5] = [(60, 10), (90, 100), (97, 1_000), (99, 10_000), (100, 100_000)];

impl TryFrom<u8> for Dqs {
    type Error = &'static str;

    fn try_from(points: u8) -> Result<Dqs, &'static str> {
        Dqs::new(points).ok_or("a score is at most 100")
    }
}

impl fmt::Display for Dqs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rarity_follows_the_scale() {
        let names = |points| Dqs::new(points).expect("a score").one_in();
        assert_eq!([59, 0].map(names), [None, None]);
        let at_fixed_scores = RARITIES.map(|(points, names)| (points, Some(names)));
        assert_eq!(at_fixed_scores.map(|(points, _)| (points, names(points))), at_fixed_scores);
        assert_eq!([74, 80, 91, 94, 98].map(names), [29, 46, 140, 370, 3_200].map(Some));
        assert!((61..=100).all(|points| names(points) >= names(points - 1)));
    }

    #[test]
    fn a_class_begins_at_its_lowest_score() {
        let class = |points| Dqs::new(points).expect("a score").class();
        let classes = [0, 59, 60, 89, 90, 96, 97, 98, 99, 100].map(class);
        assert_eq!(classes, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    }
}
