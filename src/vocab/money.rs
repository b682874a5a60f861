//! Prices in whole cents, never as binary fractions.

use std::fmt;
use std::num::NonZeroU64;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::number::{self, DecimalMark, NumberError};

/// The highest price, in US dollars (`data/docs/api.md`).
pub const USD_MAX: u64 = 1_000_000_000;

/// A price in US dollars, to the cent. Invariant: 0 to [`USD_MAX`] dollars.
///
/// Stored as cents plus one, so that `Option<Usd>` takes eight bytes. Serialised as cents.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Usd(NonZeroU64);

impl Usd {
    /// Returns the price of these cents; `None` above [`USD_MAX`] dollars.
    pub fn from_cents(cents: u64) -> Option<Usd> {
        let plus_one = NonZeroU64::MIN.checked_add(cents)?;
        (cents <= USD_MAX * 100).then_some(Usd(plus_one))
    }

    /// Returns the price in cents.
    pub fn cents(self) -> u64 {
        self.0.get() - 1
    }
}

/// ISO 4217 code of a currency in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Currency(&'static str);

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Currency, D::Error> {
        let code = String::deserialize(deserializer)?;
        Currency::parse(&code)
            .ok_or_else(|| D::Error::custom("is not the code of a currency in use"))
    }
}

impl Currency {
    pub const USD: Currency = Currency("USD");

    /// Returns the currency with this code, in any case.
    pub fn parse(code: &str) -> Option<Currency> {
        let mut codes = CURRENCY_CODES.split_whitespace().chain(["USD"]);
        codes.find(|known| known.eq_ignore_ascii_case(code)).map(Currency)
    }

    /// Returns the code, in upper case.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

/// The currency before or after an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatedCurrency {
    None,
    One(Currency),
    /// A sign that several currencies use, such as `kr`.
    Several,
}

/// Splits an amount from the currency before or after it.
pub fn split_currency(text: &str) -> (StatedCurrency, &str) {
    let text = text.trim();
    if let Some((code, amount)) = other_currency(text) {
        return (
            Currency::parse(code).map_or(StatedCurrency::Several, StatedCurrency::One),
            amount,
        );
    }
    match without_dollar_marks(text) {
        amount if amount.len() < text.len() => (StatedCurrency::One(Currency::USD), amount.trim()),
        amount => (StatedCurrency::None, amount),
    }
}

/// The text is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsdError {
    /// The value is not a JSON number in range.
    #[error("must be a number from 0 to 1000000000 with at most two decimals")]
    Range,
    #[error("must be a number from 0 to 1000000000 with at most two decimals{0}")]
    Number(#[from] NumberError),
}

/// Marks of the US dollar before or after an amount, in any case. If one mark is the end of
/// another, the longer one comes first.
const DOLLAR_MARKS: [&str; 6] = ["US dollars", "dollars", "US $", "US$", "USD", "$"];

/// Signs and words of other currencies, in addition to their ISO 4217 codes, in lower case.
const CURRENCY_WORDS: [(&str, &str); 45] = [
    ("€", "EUR"),
    ("euro", "EUR"),
    ("euros", "EUR"),
    ("£", "GBP"),
    ("pounds", "GBP"),
    ("¥", "JPY or CNY"),
    ("￥", "JPY or CNY"),
    ("元", "CNY"),
    ("円", "JPY"),
    ("yen", "JPY"),
    ("₹", "INR"),
    ("rs", "INR"),
    ("₽", "RUB"),
    ("руб", "RUB"),
    ("₩", "KRW"),
    ("₺", "TRY"),
    ("tl", "TRY"),
    ("₴", "UAH"),
    ("₫", "VND"),
    ("₪", "ILS"),
    ("₱", "PHP"),
    ("฿", "THB"),
    ("₦", "NGN"),
    ("₿", "BTC"),
    ("btc", "BTC"),
    ("eth", "ETH"),
    ("zł", "PLN"),
    ("zl", "PLN"),
    ("kč", "CZK"),
    ("ft", "HUF"),
    ("lei", "RON"),
    ("лв", "BGN"),
    ("kr", "SEK, NOK or DKK"),
    ("fr", "CHF"),
    ("sfr", "CHF"),
    ("r$", "BRL"),
    ("a$", "AUD"),
    ("au$", "AUD"),
    ("c$", "CAD"),
    ("ca$", "CAD"),
    ("nz$", "NZD"),
    ("hk$", "HKD"),
    ("s$", "SGD"),
    ("mx$", "MXN"),
    ("nt$", "TWD"),
];
/// ISO 4217 codes of currencies in use, without USD.
const CURRENCY_CODES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB \
     BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP \
     GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW \
     KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN \
     NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS \
     SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX UYU UZS VED VES VND VUV WST XAF XCD \
     XOF XPF YER ZAR ZMW ZWG";

/// Returns the currency before or after an amount, unless it is the US dollar, and the amount.
fn other_currency(text: &str) -> Option<(&'static str, &str)> {
    let start = text.find(|char: char| char.is_ascii_digit())?;
    let end = text.rfind(|char: char| char.is_ascii_digit())? + 1;
    let known = |word: &str| {
        let word = word.trim().trim_matches('.').to_lowercase();
        let of_word = CURRENCY_WORDS.iter().find(|(known, _)| *known == word);
        let mut codes = CURRENCY_CODES.split_whitespace();
        of_word
            .map(|(_, code)| *code)
            .or_else(|| codes.find(|code| code.eq_ignore_ascii_case(&word)))
    };
    let code = known(&text[..start]).or_else(|| known(&text[end..]))?;
    Some((code, &text[start..end]))
}

/// Removes the first of [`DOLLAR_MARKS`] that the text begins with, then the first that it ends with.
fn without_dollar_marks(text: &str) -> &str {
    let is = |mark: &str, part: Option<&str>| part.is_some_and(|it| it.eq_ignore_ascii_case(mark));
    let before = DOLLAR_MARKS.iter().find(|mark| is(mark, text.get(..mark.len())));
    let text = &text[before.map_or(0, |mark| mark.len())..];
    let end = |mark: &str| text.len().checked_sub(mark.len());
    let after = DOLLAR_MARKS.iter().find(|it| is(it, end(it).and_then(|at| text.get(at..))));
    &text[..text.len() - after.map_or(0, |mark| mark.len())]
}

impl Usd {
    /// Returns true for a price that is read the same way everywhere, so that a page need not ask.
    pub fn is_exact(text: &str) -> bool {
        number::is_exact(without_dollar_marks(text.trim()).trim())
    }

    /// Reads a price that a person wrote: `1,250.50`, `$1,250`, `1250 USD`, `us$ 12.50`.
    ///
    /// # Errors
    /// [`number::plain`] refuses the text, or the price is in another currency, has fractions of a
    /// cent, or is above [`USD_MAX`] dollars.
    pub fn from_text(text: &str, decimals: DecimalMark) -> Result<Usd, UsdError> {
        let text = text.trim();
        if let Some((currency, amount)) = other_currency(text) {
            return Err(NumberError::in_currency(text, amount, currency, "US dollars").into());
        }
        let number = number::plain(without_dollar_marks(text), decimals)?;
        Usd::from_json_number(&number).ok_or(UsdError::Range)
    }

    /// Returns the price in a JSON number; `None` if the value is not a number, is negative, has
    /// fractions of a cent, or is above [`USD_MAX`] dollars.
    pub fn from_json_number(number: &str) -> Option<Usd> {
        cents(number).and_then(Usd::from_cents)
    }
}

/// Returns the cents of a JSON number; `None` if the value is not a number, is negative or has
/// fractions of a cent.
pub fn cents(number: &str) -> Option<u64> {
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
    fn currencies_are_split_from_amounts() {
        use StatedCurrency::{None, One, Several};
        let eur = One(Currency::parse("eur").expect("a currency"));
        for (text, expected) in [
            ("$ 22.99", (One(Currency::USD), "22.99")),
            ("$1450", (One(Currency::USD), "1450")),
            ("12 USD", (One(Currency::USD), "12")),
            (" 1.250,50 € ", (eur, "1.250,50")),
            ("EUR 5", (eur, "5")),
            ("12 kr", (Several, "12")),
            ("12", (None, "12")),
            ("12 apples", (None, "12 apples")),
            ("", (None, "")),
        ] {
            assert_eq!(split_currency(text), expected, "{text}");
        }
        assert_eq!(Currency::parse("JPY or CNY"), Option::None);
    }

    #[test]
    fn a_decimal_comma_is_never_dropped() {
        let usd = |text, decimals| Usd::from_text(text, decimals).map(Usd::cents);
        for text in ["12,5", "12,50", "1,25", "1.250,00", "$12,50", "1e3", "$$5", "12 USD USD"] {
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
        for (text, cents) in [("12,50", 1250), ("$1.250,00", 125_000), ("1,250 USD", 125_000)] {
            assert_eq!(usd(text, DecimalMark::Either), Ok(cents), "{text}");
            assert!(!Usd::is_exact(text), "{text}");
        }
        for text in ["12.5", "$1250", "12.50 USD", "$1,250.50", " 0 "] {
            assert!(Usd::is_exact(text), "{text}");
        }
    }

    #[test]
    fn dollar_marks_are_accepted_in_any_case_on_either_side() {
        for text in [
            "12.50 usd",
            "USD 12.50",
            "Usd12.50",
            "$12.50",
            "US$ 12.50",
            "us$12.50",
            "12.50$",
            "$12.50 USD",
            "US $12.50",
            "12.50 dollars",
        ] {
            for decimals in [DecimalMark::Point, DecimalMark::Comma] {
                assert_eq!(
                    Usd::from_text(text, decimals),
                    Ok(Usd::from_cents(1250).expect("small")),
                    "{text}"
                );
            }
        }
        for text in ["usd", "$", "12.50 usdollar", "é$12", "12é"] {
            assert!(Usd::from_text(text, DecimalMark::Point).is_err(), "{text}");
        }
    }

    #[test]
    fn other_currencies_are_refused_by_name() {
        for (text, currency, like) in [
            ("€12,50", "EUR", "12.50"),
            ("12,50 €", "EUR", "12.50"),
            ("12.50 eur", "EUR", "12.50"),
            ("£1,250", "GBP", "12.50"),
            ("CHF 1'250", "CHF", "1250"),
            ("Fr. 12.-", "CHF", "12"),
            ("R$ 12", "BRL", "12"),
            ("12 A$", "AUD", "12"),
            ("12,50 zł", "PLN", "12.50"),
            ("300 Kč", "CZK", "300"),
            ("¥1000", "JPY or CNY", "1000"),
        ] {
            for decimals in [DecimalMark::Point, DecimalMark::Comma] {
                let refused = Usd::from_text(text, decimals).expect_err(text).to_string();
                let expected = format!(
                    "must be a number from 0 to 1000000000 with at most two decimals; only US dollars are kept, and \
                     {text:?} is in {currency}: convert it, and write it as {like} is written"
                );
                assert_eq!(refused, expected);
            }
        }
    }
}
