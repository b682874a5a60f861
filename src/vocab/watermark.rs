//! Progress of matching lists against alert rules.

use serde::{Deserialize, Serialize};

use crate::day::Day;

/// Progress of matching: all corpus batches up to and including `batch` have been matched, with the
/// stages that names had on `day`. Batch and day advance independently: stages change with the day
/// even without a new list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watermark {
    /// Number of a batch, from 1; 0 is before the first.
    pub batch: u64,
    /// The day whose stages were matched.
    pub day: Day,
}

impl Watermark {
    /// Combines a watermark with a newer one: the later batch and the later day. Progress never
    /// goes back, so an older generation or a clock that was set back fires no alert twice. Only a
    /// day that a wrong clock set is replaced ([`Day::replaces`]).
    #[must_use]
    pub fn and(self, other: Watermark) -> Watermark {
        let day = if other.day.replaces(self.day) { other.day } else { self.day };
        Watermark { batch: self.batch.max(other.batch), day }
    }

    /// Returns true if `self` covers everything that `other` covers.
    pub fn covers(self, other: Watermark) -> bool {
        self.and(other) == self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watermark_never_goes_back() {
        let mark = |batch, day: &str| Watermark { batch, day: day.parse().expect("a day") };
        let (older, newer) = (mark(3, "2026-11-20"), mark(4, "2026-11-21"));
        assert_eq!(newer.and(older), newer);
        assert_eq!(older.and(newer), newer);
        assert!(newer.covers(older) && newer.covers(newer) && !older.covers(newer));
        let crossed = mark(5, "2026-11-19");
        assert!(!newer.covers(crossed) && !crossed.covers(newer));
        assert_eq!(newer.and(crossed), mark(5, "2026-11-21"));
        let wrong = mark(4, "2028-01-01");
        assert_eq!(wrong.and(crossed), mark(5, "2026-11-19"), "the day of a wrong clock");
    }
}
