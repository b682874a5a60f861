//! Prices in whole cents, never as binary fractions.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// The highest price, in US dollars (`data/docs/api.md`).
pub const USD_MAX: u64 = 1_000_000_000;

/// A price in US dollars, to the cent. Invariant: 0 to [`USD_MAX`] dollars.
///
/// Stored as cents plus one, so that `Option<Usd>` takes eight bytes. Serialised as cents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Usd(NonZeroU64);

impl Usd {
    /// A price from cents; `None` above [`USD_MAX`] dollars.
    pub fn from_cents(cents: u64) -> Option<Usd> {
        let plus_one = NonZeroU64::MIN.checked_add(cents)?;
        (cents <= USD_MAX * 100).then_some(Usd(plus_one))
    }

    /// The price in cents.
    pub fn cents(self) -> u64 {
        self.0.get() - 1
    }
}

impl TryFrom<u64> for Usd {
    type Error = &'static str;

    fn try_from(cents: u64) -> Result<Usd, &'static str> {
        Usd::from_cents(cents).ok_or("a price is at most 1e9 US dollars")
    }
}

impl From<Usd> for u64 {
    fn from(price: Usd) -> u64 {
        price.cents()
    }
}

/// Writes the shortest decimal: `12`, `12.5`, `12.05`.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, cents) = (self.cents() / 100, self.cents() % 100);
        match (cents, cents % 10) {
            (0, _) => write!(f, "{dollars}"),
            (_, 0) => write!(f, "{dollars}.{}", cents / 10),
            _ => write!(f, "{dollars}.{cents:02}"),
        }
    }
}

impl fmt::Debug for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} USD")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_range_from_zero_to_a_billion_dollars() {
        for (cents, text) in [(0, "0"), (1, "0.01"), (1205, "12.05"), (1250, "12.5"), (1200, "12")]
        {
            assert_eq!(Usd::from_cents(cents).map(|price| price.to_string()), Some(text.into()));
        }
        assert_eq!(Usd::from_cents(100_000_000_000).map(Usd::cents), Some(100_000_000_000));
        assert_eq!(Usd::from_cents(100_000_000_001), None);
        assert_eq!(Usd::from_cents(u64::MAX), None);
        assert_eq!(size_of::<Option<Usd>>(), 8);
    }
}
