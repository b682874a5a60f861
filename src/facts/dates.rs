//! Dates in cells. A date is the day that the file states, in any time zone.

use chrono::{DateTime, NaiveDate};

use crate::vocab::day::Day;
use crate::vocab::named::{named_enum, parse_named};

named_enum! {
    /// Order of day and month in dates such as `03/04/2026`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DateOrder {
        DayFirst = "dmy",
        MonthFirst = "mdy",
    }
}
parse_named!(DateOrder);

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The date of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellDate {
    Day(Day),
    /// Two numbers of one or two digits, and a year: the order of day and month is that of the column.
    Numbers([u32; 3]),
}

impl CellDate {
    /// Reads `2027-01-26`, `2027/01/26 11:43 PST`, `2027-01-26T00:00:00Z`, `20270126`, `26.01.2027`,
    /// `Jan 26 2027`, `26-Jan-2027`, seconds or milliseconds since 1970, and `01/26/2027`.
    pub(crate) fn parse(text: &str) -> Option<CellDate> {
        let text = text.trim();
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return of_digits(text).map(CellDate::Day);
        }
        of_month_name(text).map(CellDate::Day).or_else(|| of_numbers(text))
    }

    /// Returns the order in which the date exists; `None` if it has only one form, or exists in both.
    pub(crate) fn order(self) -> Option<DateOrder> {
        let CellDate::Numbers(numbers) = self else { return None };
        let exists = |order| CellDate::Numbers(numbers).day(order).is_some();
        match [DateOrder::DayFirst, DateOrder::MonthFirst].map(exists) {
            [true, false] => Some(DateOrder::DayFirst),
            [false, true] => Some(DateOrder::MonthFirst),
            _ => None,
        }
    }

    /// Returns true if the two orders are two days.
    pub(crate) fn needs_order(self) -> bool {
        let day = |order| self.day(order);
        day(DateOrder::DayFirst) != day(DateOrder::MonthFirst)
    }

    pub(crate) fn day(self, order: DateOrder) -> Option<Day> {
        match (self, order) {
            (CellDate::Day(day), _) => Some(day),
            (CellDate::Numbers([a, b, year]), DateOrder::DayFirst) => ymd(year, b, a),
            (CellDate::Numbers([a, b, year]), DateOrder::MonthFirst) => ymd(year, a, b),
        }
    }
}

fn ymd(year: u32, month: u32, day: u32) -> Option<Day> {
    Day::from_date(NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?)
}

fn of_digits(text: &str) -> Option<Day> {
    let number: i64 = text.parse().ok()?;
    let instant = match text.len() {
        8 => {
            return ymd(text[..4].parse().ok()?, text[4..6].parse().ok()?, text[6..].parse().ok()?);
        }
        10 => DateTime::from_timestamp(number, 0)?,
        13 => DateTime::from_timestamp_millis(number)?,
        _ => return None,
    };
    Day::from_instant(instant)
}

/// Reads a date whose month is a word: `Dec 13 2027`, `13-Dec-2027`, `Mon, 13 December 2027 10:00`.
fn of_month_name(text: &str) -> Option<Day> {
    let mut words =
        text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let month = |word: &str| {
        let start = word.get(..3)?.to_ascii_lowercase();
        let at = MONTHS.iter().position(|month| *month == start)?;
        word.bytes().all(|byte| byte.is_ascii_alphabetic()).then_some(at as u32 + 1)
    };
    let is_weekday = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let mut first = words.next()?;
    if is_weekday(first) && month(first).is_none() {
        first = words.next()?;
    }
    let (second, year) = (words.next()?, words.next().filter(|year| year.len() == 4)?);
    match (month(first), month(second)) {
        (Some(month), None) => ymd(year.parse().ok()?, month, second.parse().ok()?),
        (None, Some(month)) => ymd(year.parse().ok()?, month, first.parse().ok()?),
        _ => None,
    }
}

fn of_numbers(text: &str) -> Option<CellDate> {
    let end = text.find(|char: char| char == 'T' || char.is_whitespace()).unwrap_or(text.len());
    let (date, time) = text.split_at(end);
    let time = time.trim_start_matches('T').trim_start();
    // Refuses `12/31/2026 sold`.
    if !time.is_empty() && !time.starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    let mark = date.find(['-', '/', '.']).map(|at| date.as_bytes()[at])?;
    let parts: Vec<&str> = date.split(char::from(mark)).collect();
    let [first, second, third] = parts[..] else { return None };
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !parts.iter().all(is_number) {
        return None;
    }
    let numbers = [first.parse().ok()?, second.parse().ok()?, third.parse().ok()?];
    match ([first, second, third].map(str::len), mark) {
        ([4, 1..=2, 1..=2], _) => ymd(numbers[0], numbers[1], numbers[2]).map(CellDate::Day),
        ([1..=2, 1..=2, 4], b'.') => ymd(numbers[2], numbers[1], numbers[0]).map(CellDate::Day),
        ([1..=2, 1..=2, 4], _) => {
            let date = CellDate::Numbers(numbers);
            [DateOrder::DayFirst, DateOrder::MonthFirst]
                .into_iter()
                .any(|order| date.day(order).is_some())
                .then_some(date)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_every_export_are_read() {
        for (text, day) in [
            ("2027-01-26", "2027-01-26"),
            ("2027-1-6", "2027-01-06"),
            ("2027/11/23 11:43 PST", "2027-11-23"),
            ("2024-05-01 10:00:00", "2024-05-01"),
            ("2024-05-01T23:59:59Z", "2024-05-01"),
            ("1606247035000", "2020-11-24"),
            ("1606247035", "2020-11-24"),
            ("20270126", "2027-01-26"),
            ("26.01.2027", "2027-01-26"),
            ("Dec 13 2027", "2027-12-13"),
            ("Dec 13, 2027", "2027-12-13"),
            ("13-Dec-2027", "2027-12-13"),
            ("Mon, 13 December 2027 10:00:00 GMT", "2027-12-13"),
        ] {
            assert_eq!(CellDate::parse(text), day.parse().ok().map(CellDate::Day), "{text}");
        }
        for text in [
            "",
            "0",
            "soon",
            "2027-13-01",
            "31/31/2027",
            "01/02/27",
            "1/2/2027 sold",
            "2027-02-30",
            "1970-01-01",
            "Dec 2027",
            "Dec 13 27",
            "13 Foo 2027",
            "99999999999999999999",
            "é-é-é",
            "2027-01",
            "1-2-3-2027",
        ] {
            assert_eq!(CellDate::parse(text), None, "{text}");
        }
    }

    #[test]
    fn day_and_month_are_told_apart_only_if_one_order_exists() {
        let read = |text| CellDate::parse(text).expect("a date");
        assert_eq!(read("31/12/2026").order(), Some(DateOrder::DayFirst));
        assert_eq!(read("12-31-2026").order(), Some(DateOrder::MonthFirst));
        assert_eq!(read("01/02/2026").order(), None);
        assert!(read("01/02/2026").needs_order());
        assert!(!read("02/02/2026").needs_order());
        assert!(!read("2026-01-02").needs_order());
        let day = |order| read("01/02/2026").day(order).map(|day| day.to_string());
        assert_eq!(day(DateOrder::DayFirst).as_deref(), Some("2026-02-01"));
        assert_eq!(day(DateOrder::MonthFirst).as_deref(), Some("2026-01-02"));
    }
}
