//! Cells to values. A cell that is empty or says that nothing is known has no value, which is never 0.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::columns::FactColumn;
use crate::dates::{CellDate, DateOrder};
use crate::vocab::cell::without_formula;
use crate::vocab::day::Day;
use crate::vocab::fact::{FactType, Unit};
use crate::vocab::money::{self, Currency, StatedCurrency, split_currency};
use crate::vocab::number::Readings;

/// Maximum characters of a text, and of an enum.
const TEXT_CHARS_MAX: usize = 200;
const ENUM_CHARS_MAX: usize = 60;
/// Maximum decimals of a number.
const DECIMALS_MAX: usize = 9;
/// Largest whole number, and largest whole part of a decimal number: with all decimals, it is an `i64`.
const INT_MAX: i64 = 1_000_000_000_000_000;
const DEC_MAX: i64 = 1_000_000_000;
/// Plausible years of facts: the first .com was registered in 1985.
const YEARS: std::ops::RangeInclusive<u16> = 1985..=2100;
/// Cells without a value. `∞` is the change of a keyword that had no searches before.
const UNKNOWN: [&str; 9] = ["", "-", "--", "–", "—", "n/a", "#n/a", "null", "∞"];
const TRUE: [&str; 7] = ["yes", "y", "true", "on", "1", "enabled", "locked"];
const FALSE: [&str; 7] = ["no", "n", "false", "off", "0", "disabled", "unlocked"];

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Int(i64),
    /// The lower end of a range: `1K - 10K`.
    AtLeast {
        #[serde(rename = "atLeast")]
        low: i64,
    },
    Dec(Decimal),
    Money {
        cents: u64,
        currency: Currency,
    },
    Date(Day),
    Year(u16),
    Bool(bool),
    Enum(String),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(number) => number.fmt(f),
            Value::AtLeast { low } => write!(f, "{low} or more"),
            Value::Dec(number) => number.fmt(f),
            Value::Money { cents, currency } => {
                write!(f, "{}.{:02} {}", cents / 100, cents % 100, currency.as_str())
            }
            Value::Date(day) => day.fmt(f),
            Value::Year(year) => year.fmt(f),
            Value::Bool(is) => f.write_str(if *is { "yes" } else { "no" }),
            Value::Enum(text) | Value::Text(text) => f.write_str(text),
        }
    }
}

/// A decimal number. Invariant: no zeros at the end of its decimals, so that equal numbers are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    units: i64,
    decimals: u32,
}

impl Decimal {
    /// Returns the number of these units of the last of some decimals.
    pub(crate) fn of_units(mut units: i64, mut decimals: u32) -> Decimal {
        while decimals > 0 && units % 10 == 0 {
            (units, decimals) = (units / 10, decimals - 1);
        }
        Decimal { units, decimals }
    }

    /// Returns the units of the last of some decimals; `None` if the number has more.
    pub(crate) fn units_with(self, decimals: u32) -> Option<i64> {
        self.units.checked_mul(10_i64.checked_pow(decimals.checked_sub(self.decimals)?)?)
    }

    pub(crate) fn decimals(self) -> u32 {
        self.decimals
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.units < 0 { "-" } else { "" };
        let power = 10_u64.pow(self.decimals);
        let (whole, part) = (self.units.unsigned_abs() / power, self.units.unsigned_abs() % power);
        match self.decimals {
            0 => write!(f, "{sign}{whole}"),
            decimals => write!(f, "{sign}{whole}.{part:0width$}", width = decimals as usize),
        }
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.units as f64 / 10_f64.powi(self.decimals as i32))
    }
}

/// A cell that is not a value of its column. The reason never repeats the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadCell {
    #[error("not a whole number")]
    Int,
    #[error("not a number")]
    Dec,
    #[error(
        "a point or comma that may separate thousands or decimals; write the number without it"
    )]
    Mark,
    #[error("outside the scale from 0 to {0}")]
    Scale(u32),
    #[error("not an amount of money")]
    Money,
    #[error("an amount without a currency, or with several")]
    Currency,
    #[error("not a date from 1985 on")]
    Date,
    #[error("not a year from 1985 to 2100")]
    Year,
    #[error("not yes or no")]
    Bool,
    #[error("text that begins like a formula; it is not kept")]
    Formula,
    #[error("longer than {0} characters, or with control characters")]
    Text(usize),
}

/// The currency that a row states for its amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowCurrency {
    None,
    One(Currency),
    /// Several, or a text that is not a currency.
    Unclear,
}

impl RowCurrency {
    pub(crate) fn of<'a>(cells: impl Iterator<Item = &'a str>) -> RowCurrency {
        let mut all = cells.map(str::trim).filter(|cell| !cell.is_empty());
        let Some(first) = all.next() else { return RowCurrency::None };
        match Currency::parse(first) {
            Some(currency) if all.all(|cell| Currency::parse(cell) == Some(currency)) => {
                RowCurrency::One(currency)
            }
            _ => RowCurrency::Unclear,
        }
    }
}

/// Decides what a single mark before three digits is: `1.250`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The decimal mark, if the column shows it.
    decimal: Option<char>,
    /// Otherwise, a mark that separates thousands in files with this separator of cells.
    group: Option<char>,
}

/// How the cells of a column are read; decided over all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) marks: Marks,
    pub(crate) date_order: Option<DateOrder>,
    /// The currency of amounts without one.
    pub(crate) currency: Option<Currency>,
}

/// Evidence in the cells of a column of how to read them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// A number shows that the decimal mark is a point, or a comma.
    points: bool,
    commas: bool,
    /// Dates that exist in one order of day and month.
    day_first: bool,
    month_first: bool,
    /// Dates that exist in both.
    both_orders: bool,
    /// Amounts with a currency, in cell or row, and without one.
    with_currency: bool,
    without_currency: bool,
}

/// Why a column cannot be read without a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ambiguity {
    #[error("the order of day and month is unknown: choose dmy or mdy")]
    DateOrder,
    #[error("no currency is stated: choose one")]
    Currency,
}

impl Evidence {
    /// Adds a cell of the column.
    pub(crate) fn see(&mut self, text: &str, kind: FactType, currency: RowCurrency) {
        let text = text.trim();
        match kind {
            _ if is_unknown(text) => {}
            FactType::Dec => self.see_number(unsigned(text.trim_end_matches('%')).1),
            FactType::Money => {
                let (stated, amount) = split_currency(text);
                self.see_number(amount);
                let is_stated = stated != StatedCurrency::None || currency != RowCurrency::None;
                self.with_currency |= is_stated;
                self.without_currency |= !is_stated;
            }
            FactType::Date => {
                let Some(date) = CellDate::parse(text) else { return };
                match date.order() {
                    Some(DateOrder::DayFirst) => self.day_first = true,
                    Some(DateOrder::MonthFirst) => self.month_first = true,
                    None => self.both_orders |= date.needs_order(),
                }
            }
            FactType::Int | FactType::Year | FactType::Bool | FactType::Enum | FactType::Text => {}
        }
    }

    fn see_number(&mut self, text: &str) {
        let Some(readings) = Readings::of(text) else { return };
        let other = |mark| if mark == '.' { ',' } else { '.' };
        let decimal = match (&readings.grouped, &readings.decimal, readings.last_mark) {
            (None, Some(_), mark) => mark,
            (Some(_), None, Some(mark @ ('.' | ','))) => Some(other(mark)),
            _ => None,
        };
        self.points |= decimal == Some('.');
        self.commas |= decimal == Some(',');
    }

    /// Decides how to read the column. What the cells show takes precedence over `order` and `currency`.
    pub(crate) fn reading(
        self,
        delimiter: u8,
        order: Option<DateOrder>,
        currency: Option<Currency>,
    ) -> Result<Reading, Ambiguity> {
        let marks = match (self.points, self.commas) {
            (true, false) => Marks { decimal: Some('.'), group: None },
            (false, true) => Marks { decimal: Some(','), group: None },
            (true, true) => Marks::default(),
            // Where spreadsheets separate cells by semicolons, the comma is the decimal mark.
            (false, false) if delimiter == b';' => Marks { decimal: None, group: Some('.') },
            (false, false) => Marks { decimal: None, group: Some(',') },
        };
        let date_order = match (self.day_first, self.month_first) {
            (true, false) => Some(DateOrder::DayFirst),
            (false, true) => Some(DateOrder::MonthFirst),
            _ => order,
        };
        if date_order.is_none() && (self.both_orders || self.day_first) {
            return Err(Ambiguity::DateOrder);
        }
        if currency.is_none() && self.without_currency && !self.with_currency {
            return Err(Ambiguity::Currency);
        }
        Ok(Reading { marks, date_order, currency })
    }
}

fn is_unknown(text: &str) -> bool {
    UNKNOWN.iter().any(|unknown| text.eq_ignore_ascii_case(unknown))
}

/// Reads a cell; `None` if its value is unknown.
pub(crate) fn read(
    text: &str,
    column: &FactColumn,
    how: Reading,
    currency: RowCurrency,
) -> Result<Option<Value>, BadCell> {
    let text = text.trim();
    if is_unknown(text) {
        return Ok(None);
    }
    let is_percent = column.unit == Some(Unit::Percent);
    let number = if is_percent { text.trim_end_matches('%').trim_end() } else { text };
    let value = match column.kind {
        FactType::Int => int(number)?,
        FactType::Dec => Value::Dec(dec(number, how.marks)?),
        FactType::Money => amount(text, how, currency)?,
        FactType::Date => return Ok(date(text, how)?.map(Value::Date)),
        FactType::Year => {
            let year = Some(text).filter(|text| text.len() == 4).and_then(|it| it.parse().ok());
            Value::Year(year.filter(|year| YEARS.contains(year)).ok_or(BadCell::Year)?)
        }
        FactType::Bool => Value::Bool(boolean(text).ok_or(BadCell::Bool)?),
        FactType::Enum => Value::Enum(plain_text(text, ENUM_CHARS_MAX)?),
        FactType::Text => Value::Text(plain_text(text, TEXT_CHARS_MAX)?),
    };
    check_scale(&value, column.scale)?;
    let is_zero = match &value {
        Value::Int(number) => *number == 0,
        Value::Dec(number) => number.units == 0,
        Value::Money { cents, .. } => *cents == 0,
        _ => false,
    };
    Ok((!is_zero || !column.zero_is_unknown).then_some(value))
}

/// Reads a date by the order of its column; `None` if it is unknown.
pub(crate) fn date(text: &str, how: Reading) -> Result<Option<Day>, BadCell> {
    if is_unknown(text.trim()) {
        return Ok(None);
    }
    // Without an order, all dates of the column have one form only.
    let order = how.date_order.unwrap_or(DateOrder::DayFirst);
    CellDate::parse(text).and_then(|date| date.day(order)).map(Some).ok_or(BadCell::Date)
}

fn check_scale(value: &Value, scale: Option<u32>) -> Result<(), BadCell> {
    let Some(top) = scale else { return Ok(()) };
    let is_inside = match value {
        Value::Int(number) | Value::AtLeast { low: number } => {
            (0..=i64::from(top)).contains(number)
        }
        Value::Dec(number) => {
            let end = i64::from(top).saturating_mul(10_i64.pow(number.decimals));
            (0..=end).contains(&number.units)
        }
        _ => true,
    };
    if is_inside { Ok(()) } else { Err(BadCell::Scale(top)) }
}

/// Splits the sign from a number; true if it is negative.
fn unsigned(text: &str) -> (bool, &str) {
    match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Reads a whole number, or a range or an open end as its lower end: `1,250`, `10K`, `1K - 10K`, `1M+`.
fn int(text: &str) -> Result<Value, BadCell> {
    if let Some(low) = text.strip_suffix('+') {
        return whole(low).map(|low| Value::AtLeast { low }).ok_or(BadCell::Int);
    }
    // The first character may be a sign.
    let is_dash = |(at, char): &(usize, char)| *at > 0 && matches!(char, '-' | '–' | '—');
    let Some((at, dash)) = text.char_indices().find(is_dash) else {
        return whole(text).map(Value::Int).ok_or(BadCell::Int);
    };
    let (low, high) = (whole(&text[..at]), whole(&text[at + dash.len_utf8()..]));
    match (low, high) {
        (Some(low), Some(high)) if low <= high => Ok(Value::AtLeast { low }),
        _ => Err(BadCell::Int),
    }
}

fn whole(text: &str) -> Option<i64> {
    let (is_negative, text) = unsigned(text.trim());
    let (text, zeros) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 3),
        b'm' => (&text[..text.len() - 1], 6),
        b'b' => (&text[..text.len() - 1], 9),
        _ => (text, 0),
    };
    let readings = Readings::of(text.trim())?;
    // Before a K, `1.250` has decimals; otherwise a whole number has none, so its marks are between groups.
    let (digits, decimals) = match (readings.grouped, readings.decimal) {
        (Some(grouped), None) => (grouped, String::new()),
        (Some(grouped), Some(_)) if zeros == 0 => (grouped, String::new()),
        (None, Some(decimal)) => decimal,
        _ => return None,
    };
    let decimals = decimals.trim_end_matches('0');
    let missing = zeros_after(zeros, decimals.len())?;
    let number: i64 = format!("{digits}{decimals}").parse().ok()?;
    let number = number.checked_mul(10_i64.pow(missing)).filter(|number| *number <= INT_MAX)?;
    Some(if is_negative { -number } else { number })
}

/// Returns the number of zeros that `zeros` leaves after the decimals; `None` if decimals remain.
fn zeros_after(zeros: usize, decimals: usize) -> Option<u32> {
    u32::try_from(zeros.checked_sub(decimals)?).ok()
}

fn dec(text: &str, marks: Marks) -> Result<Decimal, BadCell> {
    let (is_negative, text) = unsigned(text);
    let (whole, decimals) = number(text, marks, BadCell::Dec)?;
    let decimals = decimals.trim_end_matches('0');
    let units = format!("{whole}{decimals}").parse::<i64>().map_err(|_| BadCell::Dec)?;
    if decimals.len() > DECIMALS_MAX || units > DEC_MAX * 10_i64.pow(decimals.len() as u32) {
        return Err(BadCell::Dec);
    }
    Ok(Decimal { units: if is_negative { -units } else { units }, decimals: decimals.len() as u32 })
}

/// Returns the digits before and after the decimal mark.
fn number(text: &str, marks: Marks, otherwise: BadCell) -> Result<(String, String), BadCell> {
    let readings = Readings::of(text.trim()).ok_or(otherwise)?;
    match (readings.grouped, readings.decimal) {
        (Some(grouped), None) => Ok((grouped, String::new())),
        (None, Some(decimal)) => Ok(decimal),
        (Some(grouped), Some(decimal)) => match readings.last_mark {
            mark if mark == marks.decimal => Ok(decimal),
            mark if marks.decimal.is_some() || mark == marks.group => Ok((grouped, String::new())),
            _ => Err(BadCell::Mark),
        },
        (None, None) => Err(otherwise),
    }
}

fn amount(text: &str, how: Reading, row: RowCurrency) -> Result<Value, BadCell> {
    let (stated, amount) = split_currency(text);
    let (whole, decimals) = number(amount, how.marks, BadCell::Money)?;
    // Amounts have two decimals: in a column with decimal points, `1.250` is either a thousand or an error.
    if decimals.len() == 3 {
        return Err(BadCell::Mark);
    }
    let cents = money::cents(&format!("{whole}.{decimals}")).ok_or(BadCell::Money)?;
    let currency = match (stated, row) {
        (StatedCurrency::One(currency), _) => Some(currency),
        (StatedCurrency::None, RowCurrency::One(currency)) => Some(currency),
        (StatedCurrency::None, RowCurrency::None) => how.currency,
        (StatedCurrency::Several, _) | (_, RowCurrency::Unclear) => None,
    };
    Ok(Value::Money { cents, currency: currency.ok_or(BadCell::Currency)? })
}

fn boolean(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&TRUE) { Some(true) } else { is(&FALSE).then_some(false) }
}

fn plain_text(text: &str, chars_max: usize) -> Result<String, BadCell> {
    if without_formula(text) != text {
        return Err(BadCell::Formula);
    }
    let is_plain = text.chars().count() <= chars_max && !text.contains(char::is_control);
    is_plain.then(|| text.to_owned()).ok_or(BadCell::Text(chars_max))
}
