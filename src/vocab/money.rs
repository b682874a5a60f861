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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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

    /// Returns the number of decimals of an amount (ISO 4217).
    pub fn decimals(self) -> u32 {
        match self.0 {
            "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF"
            | "UGX" | "VND" | "VUV" | "XAF" | "XOF" | "XPF" => 0,
            "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
            _ => 2,
        }
    }

    /// Returns the highest amount in minor units.
    fn minor_max(self) -> u64 {
        if self == Currency::USD { USD_MAX * 100 } else { MINOR_MAX }
    }

    /// Returns the size of the minor unit: 100 cents are a dollar.
    pub fn minor_units(self) -> u64 {
        10u64.pow(self.decimals())
    }
}

/// The highest amount in minor units, in any currency but the US dollar.
const MINOR_MAX: u64 = 10_000_000_000_000;

/// An amount in the currency in which it was entered, in minor units: cents, or yen. Invariant: at most
/// [`USD_MAX`] dollars, or 10^13 minor units of another currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(Currency, u64)", into = "(Currency, u64)")]
pub struct Amount {
    currency: Currency,
    minor: u64,
}

impl Amount {
    /// Returns the amount of these minor units; `None` if it is too high.
    pub fn new(currency: Currency, minor: u64) -> Option<Amount> {
        (minor <= currency.minor_max()).then_some(Amount { currency, minor })
    }

    pub fn currency(self) -> Currency {
        self.currency
    }

    /// Returns the amount in minor units.
    pub fn minor(self) -> u64 {
        self.minor
    }

    /// Returns an amount in US dollars as such.
    pub fn usd(self) -> Option<Usd> {
        (self.currency == Currency::USD).then(|| Usd::from_cents(self.minor)).flatten()
    }

    /// Reads an amount that a person wrote, in the currency that it states, or else in `usual`.
    ///
    /// # Errors
    /// [`number::plain`] refuses the text, the currency is not clear, or the amount is too high or has more
    /// decimals than its currency.
    pub fn from_text(
        text: &str,
        usual: Currency,
        marks: DecimalMark,
    ) -> Result<Amount, AmountError> {
        let (stated, amount) = split_currency(text);
        let currency = match stated {
            StatedCurrency::None => usual,
            StatedCurrency::One(currency) => currency,
            StatedCurrency::Several => return Err(AmountError::Several),
        };
        let number = number::plain(amount, marks)?;
        Amount::from_json_number(&number, currency).ok_or(AmountError::Range(currency))
    }

    /// Returns the amount in a JSON number; `None` if it has more decimals than its currency, or is too
    /// high.
    pub fn from_json_number(number: &str, currency: Currency) -> Option<Amount> {
        scaled(number, currency.decimals()).and_then(|minor| Amount::new(currency, minor))
    }

    /// Returns true for a text that is read the same way everywhere, so that a page need not ask.
    pub fn is_exact(text: &str) -> bool {
        number::is_exact(split_currency(text).1.trim())
    }

    /// Returns the number without its currency, as short as possible: `12`, `12.5`.
    pub fn number(self) -> String {
        let (whole, rest) =
            (self.minor / self.currency.minor_units(), self.minor % self.currency.minor_units());
        let places = format!("{rest:0width$}", width = self.currency.decimals() as usize);
        match places.trim_end_matches('0') {
            "" => whole.to_string(),
            places => format!("{whole}.{places}"),
        }
    }
}

/// The text is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error("must be a number from 0 to 1000000000 with at most two decimals{0}")]
    Number(#[from] NumberError),
    #[error(
        "must be a number from 0 to {max} with at most {places} decimals",
        max = .0.minor_max() / .0.minor_units(),
        places = if .0.decimals() == 2 { "two".to_owned() } else { .0.decimals().to_string() }
    )]
    Range(Currency),
    #[error("has a sign of several currencies; write a code such as SEK")]
    Several,
}

impl From<Usd> for Amount {
    fn from(price: Usd) -> Amount {
        Amount { currency: Currency::USD, minor: price.cents() }
    }
}

impl TryFrom<(Currency, u64)> for Amount {
    type Error = &'static str;

    fn try_from((currency, minor): (Currency, u64)) -> Result<Amount, &'static str> {
        Amount::new(currency, minor).ok_or("an amount is too high")
    }
}

impl From<Amount> for (Currency, u64) {
    fn from(amount: Amount) -> (Currency, u64) {
        (amount.currency, amount.minor)
    }
}

/// Units of [`Rate`] in 1.
const RATE_UNITS: u64 = 100_000_000;
/// The highest rate, in units.
const RATE_MAX: u64 = 1_000_000 * RATE_UNITS;

/// The worth of one unit of a currency in another one: a decimal with eight places. Invariant: above 0, at
/// most a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Rate(NonZeroU64);

impl Rate {
    /// Reads a rate that a person wrote.
    ///
    /// # Errors
    /// The text is not a number from 0.00000001 to 1,000,000 with at most eight decimals.
    pub fn from_text(text: &str) -> Result<Rate, RateError> {
        let text = text.trim();
        // Rates have more decimals than prices, so a single comma is the decimal mark.
        let number = match text.split_once(',') {
            Some((whole, places)) => format!("{whole}.{places}"),
            None => text.to_owned(),
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let units = Some(number).filter(|_| is_plain).and_then(|number| scaled(&number, 8));
        units.and_then(|units| Rate::try_from(units).ok()).ok_or(RateError)
    }

    /// Converts an amount to minor units of `to`, rounded half up.
    pub fn convert(self, amount: Amount, to: Currency) -> u128 {
        let units =
            u128::from(self.0.get()) * u128::from(amount.minor) * u128::from(to.minor_units());
        let of_one = u128::from(RATE_UNITS) * u128::from(amount.currency.minor_units());
        (units + of_one / 2) / of_one
    }
}

/// The text is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a number above 0 and up to 1000000, with at most eight decimals")]
pub struct RateError;

impl TryFrom<u64> for Rate {
    type Error = RateError;

    fn try_from(units: u64) -> Result<Rate, RateError> {
        NonZeroU64::new(units).filter(|units| units.get() <= RATE_MAX).map(Rate).ok_or(RateError)
    }
}

impl From<Rate> for u64 {
    fn from(rate: Rate) -> u64 {
        rate.0.get()
    }
}

/// Writes the shortest decimal: `1.0835`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0.get() / RATE_UNITS, self.0.get() % RATE_UNITS);
        match format!("{rest:08}").trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            places => write!(f, "{whole}.{places}"),
        }
    }
}

/// The share of a sale that its venue keeps, in hundredths of a percent. Invariant: at most 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Percent(u16);

impl Percent {
    const MAX: u16 = 10_000;

    /// Reads a percentage that a person wrote: `15`, `12,5 %`.
    ///
    /// # Errors
    /// The text is not a number from 0 to 100 with at most two decimals.
    pub fn from_text(text: &str) -> Result<Percent, PercentError> {
        let text = text.trim().trim_end_matches('%');
        let number = number::plain(text, DecimalMark::Either).map_err(|_| PercentError)?;
        Percent::from_json_number(&number)
    }

    /// # Errors
    /// The value is not a number from 0 to 100 with at most two decimals.
    pub fn from_json_number(number: &str) -> Result<Percent, PercentError> {
        let hundredths = cents(number).and_then(|it| u16::try_from(it).ok());
        hundredths.ok_or(PercentError)?.try_into()
    }

    /// Returns this share of an amount, rounded half up to a minor unit.
    pub fn of(self, amount: Amount) -> Amount {
        let whole = u128::from(Percent::MAX);
        let part = (u128::from(amount.minor) * u128::from(self.0) + whole / 2) / whole;
        // A part is at most the amount.
        Amount { minor: part as u64, ..amount }
    }

    /// Returns the percentage as a number.
    pub fn hundredths(self) -> u16 {
        self.0
    }
}

/// The text is not a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a number from 0 to 100 with at most two decimals")]
pub struct PercentError;

impl TryFrom<u16> for Percent {
    type Error = PercentError;

    fn try_from(hundredths: u16) -> Result<Percent, PercentError> {
        (hundredths <= Percent::MAX).then_some(Percent(hundredths)).ok_or(PercentError)
    }
}

impl From<Percent> for u16 {
    fn from(percent: Percent) -> u16 {
        percent.0
    }
}

/// Writes the shortest decimal: `12.5`.
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = Usd::from_cents(self.0.into());
        cents.map_or(Ok(()), |it| it.fmt(f))
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
    scaled(number, 2)
}

/// Returns the value of a JSON number times 10^`places`; `None` if the value is not a number, is negative or
/// has more decimals.
fn scaled(number: &str, places: u32) -> Option<u64> {
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
    // The value is `significant` × 10^scale.
    let scale = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(i64::from(places) + zeros)?
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
    use proptest::prelude::*;

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

    #[test]
    fn amounts_are_read_in_their_currency() {
        let eur = Currency::parse("EUR").expect("a currency");
        let of = |code: &str, minor| Amount::new(Currency::parse(code).expect("a currency"), minor);
        for (text, expected) in [
            ("12,50 €", of("EUR", 1_250)),
            ("1.250,00", of("EUR", 125_000)),
            ("$12.5", of("USD", 1_250)),
            ("JPY 1500", of("JPY", 1_500)),
            ("1,250 GBP", of("GBP", 125_000)),
        ] {
            assert_eq!(Amount::from_text(text, eur, DecimalMark::Either).ok(), expected, "{text}");
        }
        for text in ["12 kr", "JPY 15.50", "1000000001 USD", "12.505", "-1", ""] {
            assert!(Amount::from_text(text, eur, DecimalMark::Either).is_err(), "{text}");
        }
        assert_eq!(of("EUR", 1_205).map(Amount::number).as_deref(), Some("12.05"));
        assert_eq!(of("JPY", 1_205).map(Amount::number).as_deref(), Some("1205"));
        assert_eq!(of("KWD", 1_205).map(Amount::number).as_deref(), Some("1.205"));
    }

    #[test]
    fn rates_and_percentages_are_exact_decimals() {
        for (text, shown) in
            [("1.0835", "1.0835"), ("0,92", "0.92"), ("150", "150"), ("0.00000001", "0.00000001")]
        {
            assert_eq!(Rate::from_text(text).map(|rate| rate.to_string()), Ok(shown.to_owned()));
        }
        for text in ["0", "-1", "1.000000001", "1000000.1", "1.2.3", "1e2", "", "1,0,0"] {
            assert_eq!(Rate::from_text(text), Err(RateError), "{text}");
        }
        for (text, hundredths) in [("15", 1_500), ("12,5 %", 1_250), ("0.01", 1), ("100%", 10_000)]
        {
            assert_eq!(Percent::from_text(text).map(Percent::hundredths), Ok(hundredths), "{text}");
        }
        for text in ["100.01", "-1", "12.505", "", "%"] {
            assert_eq!(Percent::from_text(text), Err(PercentError), "{text}");
        }
    }

    fn some_currency() -> impl Strategy<Value = Currency> {
        let codes: Vec<_> = CURRENCY_CODES.split_whitespace().chain(["USD"]).collect();
        proptest::sample::select(codes).prop_map(|code| Currency::parse(code).expect("a currency"))
    }

    fn some_amount() -> impl Strategy<Value = Amount> {
        (some_currency(), 0..=USD_MAX * 100)
            .prop_map(|(currency, minor)| Amount { currency, minor })
    }

    proptest! {
        #[test]
        fn converted_amounts_are_off_by_at_most_half_a_minor_unit(
            amount in some_amount(),
            to in some_currency(),
            units in 1..=RATE_MAX,
        ) {
            let rate = Rate::try_from(units).expect("a rate");
            let one = u128::from(RATE_UNITS) * u128::from(amount.currency.minor_units());
            let exact = u128::from(units) * u128::from(amount.minor) * u128::from(to.minor_units());
            let twice_off = (rate.convert(amount, to) * one).abs_diff(exact) * 2;
            prop_assert!(twice_off <= one);
            prop_assert_eq!(Rate::from_text(&rate.to_string()), Ok(rate));
        }

        #[test]
        fn amounts_survive_being_written(amount in some_amount()) {
            let text = format!("{} {}", amount.number(), amount.currency.as_str());
            let read = Amount::from_text(&text, Currency::USD, DecimalMark::Point);
            // Three decimals could also be thousands, so people are asked to write them otherwise.
            if amount.currency.decimals() < 3 {
                prop_assert_eq!(read, Ok(amount));
            }
            prop_assert_eq!(Amount::from_json_number(&amount.number(), amount.currency), Some(amount));
        }

        #[test]
        fn a_share_and_the_rest_are_the_amount(amount in some_amount(), hundredths in 0u16..=10_000) {
            let part = Percent(hundredths).of(amount);
            prop_assert_eq!(part.currency, amount.currency);
            prop_assert!(part.minor <= amount.minor);
            let exact = u128::from(amount.minor) * u128::from(hundredths);
            prop_assert!((u128::from(part.minor) * 10_000).abs_diff(exact) <= 5_000);
        }
    }
}
