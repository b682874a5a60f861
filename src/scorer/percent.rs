//! Fractions from 0 to 1 in hundredths.

use serde::{Serialize, Serializer};

/// Hundredths. Invariant: at most 100. Written to JSON as a number from 0 to 1 with at most two
/// decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// The fraction 0.5.
    pub const HALF: Percent = Percent(50);

    /// Creates a fraction from `hundredths`, which is limited to 100.
    pub const fn clamped(hundredths: u32) -> Percent {
        Percent(if hundredths > 100 { 100 } else { hundredths as u8 })
    }

    /// Returns the hundredths, 0 to 100.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 100.0)
    }
}
