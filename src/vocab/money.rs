//! Prices in whole cents, never as binary fractions.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::vocab::number::{self, DecimalMark, NumberError};

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

/// A text that is no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsdError {
    /// Not a JSON number of the right size.
    #[error("must be a number from 0 to 1000000000 with at most two decimals")]
    Range,
    #[error("must be a number from 0 to 1000000000 with at most two decimals{0}")]
    Number(#[from] NumberError),
}

/// Marks of the US dollar before or after an amount, longest first.
const DOLLAR_MARKS: [&str; 3] = ["US$", "USD", "$"];

impl Usd {
    /// Reads a price that a person wrote: `1,250.50`, `$1,250`, `1250 USD`.
    ///
    /// # Errors
    /// Whatever [`number::plain`] refuses, fractions of a cent, and prices above [`USD_MAX`] dollars.
    pub fn from_text(text: &str, decimals: DecimalMark) -> Result<Usd, UsdError> {
        let text = text.trim();
        let before = DOLLAR_MARKS.iter().find_map(|mark| text.strip_prefix(mark));
        let amount = before.or_else(|| DOLLAR_MARKS.iter().find_map(|it| text.strip_suffix(it)));
        let number = number::plain(amount.unwrap_or(text), decimals)?;
        Usd::from_json_number(&number).ok_or(UsdError::Range)
    }

    /// The price in a JSON number; `None` if it is no number, negative, has fractions of a cent, or is
    /// above [`USD_MAX`] dollars.
    pub fn from_json_number(number: &str) -> Option<Usd> {
        cents(number).and_then(Usd::from_cents)
    }
}

/// Cents of a JSON number; `None` if it is not a number, is negative or has fractions of a cent.
fn cents(number: &str) -> Option<u64> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // The value is `significant` × 10^scale cents.
    let scale = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(2 + zeros)?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let factor = 10u64.checked_pow(u32::try_from(scale).ok()?)?;
    significant.parse::<u64>().ok()?.checked_mul(factor)
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

    #[test]
    fn prices_parse_exactly() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0.00", Some(0)),
            ("0e99", Some(0)),
            ("12", Some(1200)),
            ("12.5", Some(1250)),
            ("12.50", Some(1250)),
            ("12.500000000000000000000", Some(1250)),
            ("0.01", Some(1)),
            ("0.29", Some(29)),
            ("1e2", Some(10_000)),
            ("1.25E1", Some(1250)),
            ("1250e-2", Some(1250)),
            ("1000000000", Some(100_000_000_000)),
            ("999999999.99", Some(99_999_999_999)),
            ("0.001", None),
            ("12.500000000000000001", None),
            ("1e-3", None),
            ("-1", None),
            ("1e30", None),
            ("1e999999999999999999999", None),
            ("\"1\"", None),
            ("true", None),
            ("[1]", None),
        ] {
            assert_eq!(cents(text), expected, "{text}");
        }
    }

    #[test]
    fn a_decimal_comma_is_never_dropped() {
        let usd = |text, decimals| Usd::from_text(text, decimals).map(Usd::cents);
        for text in ["12,5", "12,50", "1,25", "1.250,00", "$12,50", "1e3", "€12", "12 EUR", "$$5"]
        {
            let refused = usd(text, DecimalMark::Point).expect_err(text).to_string();
            assert!(refused.starts_with("must be a number from 0 to 1000000000"), "{refused}");
            assert!(refused.contains(", not \""), "{refused}");
        }
        for (text, cents) in [("12,5", 1250), ("12,50", 1250), ("1.250,00 USD", 125_000)] {
            assert_eq!(usd(text, DecimalMark::Comma), Ok(cents), "{text}");
        }
        for (text, cents) in
            [("$1,250.50", 125_050), ("US$ 1,250", 125_000), ("1 250 $", 125_000), ("0", 0)]
        {
            assert_eq!(usd(text, DecimalMark::Point), Ok(cents), "{text}");
        }
        assert_eq!(usd("1,000,000,001", DecimalMark::Point), Err(UsdError::Range));
    }
}
