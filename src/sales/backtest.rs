//! How often the ranges of a market held.

use std::fmt;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::amount::Amount;
use crate::range::Range;

/// Minimum number of ranges from which a share is stated.
pub const CHECKED_MIN: u64 = 30;

/// A share of names outside a range, in words.
const SHARES: [(f64, &str); 11] = [
    (0.1, "One name in ten falls"),
    (0.2, "One name in five falls"),
    (0.25, "One name in four falls"),
    (1.0 / 3.0, "One name in three falls"),
    (0.4, "Two names in five fall"),
    (0.5, "One name in two falls"),
    (0.6, "Three names in five fall"),
    (2.0 / 3.0, "Two names in three fall"),
    (0.75, "Three names in four fall"),
    (0.8, "Four names in five fall"),
    (0.9, "Nine names in ten fall"),
];

/// The newest sales of a market, each compared with the range of earlier sales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SalesBacktest)]
pub struct Backtest {
    /// Sales that were compared.
    pub tested: u64,
    /// Sales of names that had a range.
    pub ranges: u64,
    /// Prices from `low` to `high`.
    pub in_range: u64,
    /// Prices from `lowest` to `highest`.
    pub in_wide_range: u64,
    /// Median factor between the middle of a range and the price; `null` without ranges.
    #[serde(serialize_with = "hundredths")]
    #[schema(required)]
    pub median_miss: Option<f64>,
}

fn hundredths<S: Serializer>(factor: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    factor.map(|factor| (factor * 100.0).round() / 100.0).serialize(serializer)
}

impl Backtest {
    /// Compares prices with their ranges, if they have any.
    pub(crate) fn new(results: impl IntoIterator<Item = (Amount, Option<Range>)>) -> Backtest {
        let mut backtest = Backtest::default();
        let mut misses = Vec::new();
        for (price, range) in results {
            backtest.tested += 1;
            let Some(range) = range else { continue };
            backtest.ranges += 1;
            backtest.in_range += u64::from((range.low..=range.high).contains(&price));
            backtest.in_wide_range += u64::from((range.lowest..=range.highest).contains(&price));
            let factor = price.0 as f64 / range.middle.0 as f64;
            misses.push(factor.max(factor.recip()));
        }
        misses.sort_by(f64::total_cmp);
        let (lower, upper) = (misses.len().saturating_sub(1) / 2, misses.len() / 2);
        backtest.median_miss = misses.get(lower).map(|miss| (miss + misses[upper]) / 2.0);
        backtest
    }

    /// Returns the share of names whose price was outside their range, in words; `None` below
    /// [`CHECKED_MIN`] ranges.
    pub fn outside(&self) -> Option<&'static str> {
        let share = 1.0 - self.in_range as f64 / self.ranges as f64;
        let distance = |(of, _): &(f64, &str)| (share - of).abs();
        let nearest = SHARES.iter().min_by(|one, two| distance(one).total_cmp(&distance(two)));
        nearest.filter(|_| self.ranges >= CHECKED_MIN).map(|(_, words)| *words)
    }
}

impl fmt::Display for Backtest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Backtest { ranges, in_range, in_wide_range, .. } = *self;
        if ranges < CHECKED_MIN {
            return write!(
                f,
                "Too few sales to check such ranges: {ranges} had one; {CHECKED_MIN} are needed."
            );
        }
        let percent = |count: u64| (count * 100 + ranges / 2) / ranges;
        write!(
            f,
            "In {ranges} later sales of these files, the range held {} %, and the range of eight in ten {} %",
            percent(in_range),
            percent(in_wide_range)
        )?;
        let miss = self.median_miss.unwrap_or(1.0);
        write!(f, "; half of the prices missed its middle by more than a factor of {miss:.1}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: u64, high: u64) -> Range {
        let [lowest, low, middle, high, highest] =
            [low / 2, low, (low + high) / 2, high, high * 2].map(Amount);
        Range { low, high, lowest, highest, middle }
    }

    #[test]
    fn prices_are_counted_in_and_outside_their_ranges() {
        let prices = [(100, true), (200, true), (90, true), (500, true), (100, false)];
        let results = prices.map(|(price, has)| (Amount(price), has.then(|| range(100, 200))));
        let backtest = Backtest::new(results);
        let Backtest { tested, ranges, in_range, in_wide_range, median_miss } = backtest;
        assert_eq!((tested, ranges, in_range, in_wide_range), (5, 4, 2, 3));
        // Misses of 1.33, 1.5, 1.67 and 3.33.
        assert!((median_miss.expect("ranges") - (1.5 + 150.0 / 90.0) / 2.0).abs() < 1e-12);
        assert_eq!(Backtest::new([]), Backtest::default());
    }

    #[test]
    fn shares_are_stated_only_with_enough_ranges() {
        let of = |ranges, in_range| Backtest { ranges, in_range, ..Backtest::default() };
        assert_eq!(of(29, 15).outside(), None);
        assert!(of(29, 15).to_string().starts_with("Too few sales"));
        for (ranges, in_range, words) in [
            (30, 15, "One name in two falls"),
            (100, 47, "One name in two falls"),
            (100, 38, "Three names in five fall"),
            (100, 67, "One name in three falls"),
            (100, 100, "One name in ten falls"),
        ] {
            assert_eq!(of(ranges, in_range).outside(), Some(words));
        }
        let said = Backtest { in_wide_range: 79, median_miss: Some(2.04), ..of(100, 47) };
        assert_eq!(
            said.to_string(),
            "In 100 later sales of these files, the range held 47 %, and the range of eight in ten 79 %; half of the \
             prices missed its middle by more than a factor of 2.0."
        );
    }
}
