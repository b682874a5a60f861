//! Amounts of a currency that is stated elsewhere.

use std::fmt;

use serde::{Serialize, Serializer};

/// An amount in cents. Serialised as a number of whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(pub u64);

impl Amount {
    /// Rounds to two significant digits: more would promise a precision that sales do not have.
    pub(crate) fn rounded(self) -> Amount {
        let digits = self.0.checked_ilog10().unwrap_or_default();
        let unit = 10_u64.pow(digits.saturating_sub(1));
        Amount((self.0 + unit / 2) / unit * unit)
    }
}

impl fmt::Display for Amount {
    /// Writes whole units with thousands separators, and cents if there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = (self.0 / 100).to_string();
        for (at, digit) in units.chars().enumerate() {
            if at > 0 && (units.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        match self.0 % 100 {
            0 => Ok(()),
            cents => write!(f, ".{cents:02}"),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_to_two_digits_and_written_with_separators() {
        for (cents, rounded, written) in [
            (0, 0, "0"),
            (7, 7, "0.07"),
            (1_249, 1_200, "12"),
            (1_250, 1_300, "13"),
            (99_600, 100_000, "1,000"),
            (123_456_789, 120_000_000, "1,200,000"),
        ] {
            assert_eq!(Amount(cents).rounded(), Amount(rounded), "{cents}");
            assert_eq!(Amount(cents).rounded().to_string(), written, "{cents}");
        }
    }
}
