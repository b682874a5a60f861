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

    /// Returns the score in whole points, 0 to 100.
    pub const fn points(self) -> u8 {
        self.0
    }
}

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
