//! The place of a drop among those of its suffix.

use std::fmt;

/// Share of the drops of a suffix that are not behind a drop, in tenths of a percent, rounded up: the best
/// of 200 drops has 5, the last of any suffix has 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuffixRank(u16);

impl SuffixRank {
    /// Rank of the last drop of a suffix.
    pub const MAX: SuffixRank = SuffixRank(1_000);

    /// Returns the rank of the drop at `place`, from 1, among `all`.
    pub fn of(place: u32, all: u32) -> SuffixRank {
        let tenths = (u64::from(place) * 1_000).div_ceil(u64::from(all.max(1)));
        SuffixRank(tenths.clamp(1, 1_000) as u16)
    }

    /// Returns the worst rank within the best `percent` of a suffix.
    pub fn best(percent: u32) -> SuffixRank {
        SuffixRank((percent.clamp(1, 100) * 10) as u16)
    }

    /// Returns `None` if the tenths of a percent are not 1 to 1,000.
    pub fn from_tenths(tenths: u16) -> Option<SuffixRank> {
        (1..=1_000).contains(&tenths).then_some(SuffixRank(tenths))
    }

    pub fn tenths(self) -> u16 {
        self.0
    }
}

/// Writes percent: `0.4`, `12`.
impl fmt::Display for SuffixRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (percent, 0) => write!(f, "{percent}"),
            (percent, tenths) => write!(f, "{percent}.{tenths}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_rounded_up() {
        for (place, all, shown) in [
            (1, 1, "100"),
            (1, 3, "33.4"),
            (1, 200, "0.5"),
            (1, 1_000_000, "0.1"),
            (1_000, 1_000_000, "0.1"),
            (1_001, 1_000_000, "0.2"),
            (u32::MAX, u32::MAX, "100"),
        ] {
            let rank = SuffixRank::of(place, all);
            assert_eq!(rank.to_string(), shown);
            assert_eq!(SuffixRank::from_tenths(rank.tenths()), Some(rank));
        }
        assert_eq!(SuffixRank::from_tenths(0), None);
        assert_eq!(SuffixRank::of(1, 100), SuffixRank::best(1));
    }
}
