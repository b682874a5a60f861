//! Expected share of names like one that are registered again soon after their release.

use std::fmt;

use crate::outcome::Horizon;

/// Percent of names like one that are registered again within [`ExpectedTaken::HORIZON`], 0 to 100
/// (`data/docs/outcomes.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExpectedTaken(u8);

impl ExpectedTaken {
    /// A week has most of the registrations of a year, and its outcome is known soon.
    pub const HORIZON: Horizon = Horizon::Week;
    pub const PERCENT_MAX: u32 = 100;

    /// Returns `None` above 100 percent.
    pub fn new(percent: u32) -> Option<ExpectedTaken> {
        (percent <= ExpectedTaken::PERCENT_MAX).then_some(ExpectedTaken(percent as u8))
    }

    /// Rounds a share from 0 to 1.
    pub fn of_share(share: f64) -> ExpectedTaken {
        ExpectedTaken((share.clamp(0.0, 1.0) * 100.0).round() as u8)
    }

    pub fn percent(self) -> u8 {
        self.0
    }
}

impl fmt::Display for ExpectedTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
