//! Estimates the share of the market that a corpus holds, and the weight of a count of TLDs in that
//! corpus.
//!
//! The points of `tldSpread` are fitted to counts over six million registered names. A larger corpus
//! finds a label in more TLDs, a smaller one in fewer or in none. [`Coverage`] compares a corpus with
//! those names by labels that many TLDs have (`data/scorer/frequent.txt`).

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

static FREQUENT: &str = include_str!("../../data/scorer/frequent.txt");

/// Frequent labels and the TLDs that have them in the reference names.
static PROBES: LazyLock<Vec<(&str, u32)>> = LazyLock::new(|| {
    let rows = FREQUENT.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| row.split_once(' ')).map(|(label, tlds)| (label, number(tlds))).collect()
});

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("frequent.txt: not a number: {text}"))
}

/// Ratio of the TLDs of frequent labels in a corpus to those in the reference names, in 4,096ths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage(u32);

impl Coverage {
    /// No corpus, or one without frequent labels, so that nothing is known about other TLDs.
    pub const NONE: Coverage = Coverage(0);
    /// A corpus with the coverage of the reference names.
    pub const REFERENCE: Coverage = Coverage(1 << 12);
    /// Leading bits to keep of an estimate. Every score depends on this estimate, so a single day's list should not
    /// change it: it changes only after the corpus has grown by at least 1/32.
    const BITS: u32 = 6;
    /// Coverage below which other TLDs are ignored; about that of 40,000 names from the whole
    /// market.
    const LEAST: u32 = Coverage::REFERENCE.0 / 128;

    /// Returns the labels to look up in a corpus.
    pub fn probes() -> impl ExactSizeIterator<Item = &'static str> {
        PROBES.iter().map(|&(label, _)| label)
    }

    /// Computes the coverage of a corpus in which the probes have a total of `found` public TLDs.
    pub fn from_found(found: u64) -> Coverage {
        let expected: u64 = PROBES.iter().map(|&(_, tlds)| u64::from(tlds)).sum();
        let units = found * u64::from(Coverage::REFERENCE.0) / expected.max(1);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let rest = (u32::BITS - units.leading_zeros()).saturating_sub(Coverage::BITS);
        Coverage(units >> rest << rest)
    }

    /// Converts `others`, a count of other TLDs in this corpus, to the equivalent count in the
    /// reference names, and its weight; both in 256ths.
    pub(super) fn reference(self, others: u32) -> (u64, i64) {
        let (units, whole) = (u64::from(self.0), u64::from(Coverage::REFERENCE.0));
        let others = u64::from(others);
        if units >= whole {
            return (UNIT * others * whole / units, UNIT as i64);
        }
        if self.0 < Coverage::LEAST {
            return (0, 0);
        }
        // Estimates unseen TLDs in proportion to the seen ones: the mean of a Poisson count with a
        // gamma prior.
        let unseen = if others == 0 {
            0
        } else {
            (whole - units) * (UNIT * others + PRIOR_SHAPE) / (units + PRIOR_RATE)
        };
        let half = if others == 0 { HALF_UNSEEN } else { HALF_SEEN };
        let weight = UNIT * units * (whole + half) / (units + half) / whole;
        (UNIT * others + unseen, weight as i64)
    }
}

/// The value 1 in 256ths.
pub(super) const UNIT: u64 = 256;
/// Shape (in 256ths) and rate (in units of [`Coverage`]) of the prior distribution of other TLDs.
const PRIOR_SHAPE: u64 = 26;
const PRIOR_RATE: u64 = 1024;
/// Coverage at which `tldSpread` has about half its weight. In a small corpus, the absence of other
/// TLDs means little, but the presence of one means much.
const HALF_UNSEEN: u64 = 1024;
const HALF_SEEN: u64 = 64;

/// Other TLDs in which the corpus has a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Number of TLDs open to the public in which the corpus has the label, including the name's
    /// own; 0 counts as 1.
    pub tlds: u32,
    pub coverage: Coverage,
}

impl Spread {
    /// The spread without a corpus.
    pub const UNKNOWN: Spread = Spread { tlds: 1, coverage: Coverage::NONE };

    /// The spread of a label in `tlds` TLDs of a corpus with the coverage of the reference names.
    pub const fn of(tlds: u32) -> Spread {
        Spread { tlds, coverage: Coverage::REFERENCE }
    }

    /// TLDs other than the name's own.
    pub(super) fn others(self) -> u32 {
        self.tlds.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_labels_have_counts() {
        assert!(Coverage::probes().len() >= 500);
        assert!(PROBES.iter().all(|&(label, tlds)| tlds > 0 && !label.contains('.')));
        assert!(PROBES.is_sorted_by(|one, next| one.0 < next.0), "sorted, each once");
        let expected = PROBES.iter().map(|&(_, tlds)| u64::from(tlds)).sum();
        assert_eq!(Coverage::from_found(expected), Coverage::REFERENCE);
        assert_eq!(Coverage::from_found(0), Coverage::NONE);
    }

    #[test]
    fn an_estimate_changes_in_steps_of_a_thirty_second_or_less() {
        let expected: u64 = PROBES.iter().map(|&(_, tlds)| u64::from(tlds)).sum();
        let mut before = Coverage::from_found(expected / 50);
        let (mut steps, mut counted) = (0, 0);
        for found in expected / 50..4 * expected {
            let Coverage(units) = Coverage::from_found(found);
            let exact = found * u64::from(Coverage::REFERENCE.0) / expected;
            assert!(u64::from(units) <= exact && exact - u64::from(units) <= exact / 32);
            assert!(units >= before.0 && units - before.0 <= 1 + before.0 / 32);
            steps += u32::from(units != before.0);
            (before, counted) = (Coverage(units), counted + 1);
        }
        assert!(
            (32 * 7..=32 * 8).contains(&steps) && steps < counted / 200,
            "{steps} of {counted}"
        );
    }

    #[test]
    fn a_count_stands_for_more_in_a_smaller_corpus() {
        let reference = |units, others| Coverage(units).reference(others);
        assert_eq!(reference(4096, 7), (7 * UNIT, 256));
        assert_eq!(reference(40_960, 70), (7 * UNIT, 256));
        assert_eq!(reference(0, 7).1, 0);
        let counts = [4096, 2048, 1024, 256].map(|units| reference(units, 3).0);
        assert!(counts.is_sorted_by(|more, fewer| more < fewer), "{counts:?}");
        let weights = [0, 31, 32, 512, 2048, 4096].map(|units| reference(units, 0).1);
        assert!(weights.is_sorted() && weights[1] == 0 && weights[2] > 0, "{weights:?}");
    }
}
