//! Dates in lists, as registries and vendors write them.
//!
//! All dates become UTC days or instants; a time without a zone is taken as UTC.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveTime, Utc};

use super::rejects::RejectReason;
use crate::vocab::day::Day;
use crate::vocab::release_time::Release;

/// Order of day and month in dates with slashes. A wrong guess would move a drop by months.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlashOrder {
    /// `M/D/YYYY`: vendors in the United States.
    MonthFirst,
    /// `DD/MM/YYYY`: .au, .mx.
    DayFirst,
    /// Unknown order; a date is accepted only if just one order is possible, or AM/PM indicates a
    /// US vendor.
    Unknown,
}

/// The UTC day of a date or instant: `2026-10-03`, `2026-10-03T11:31:21Z`,
/// `2026-10-03 18:00`, `12/4/2026 12:00:00 AM`, `16/12/2026`, `10/05/2026 08:00 AM (PDT)`,
/// `20261003`, `03.10.2026`, `3-Oct-2026`, `Sat, 03 Oct 2026 10:00:00 GMT`, `October 3, 2026`.
///
/// # Errors
/// [`RejectReason::MissingDate`] for an empty cell, [`RejectReason::AmbiguousDate`], or
/// [`RejectReason::BadDate`] naming `column`.
pub(super) fn day(
    text: &str,
    order: SlashOrder,
    column: &'static str,
) -> Result<Day, RejectReason> {
    release(text, order, column).map(|release| release.day)
}

/// The same as [`day`], with the second if the text has a time of day.
pub(super) fn release(
    text: &str,
    order: SlashOrder,
    column: &'static str,
) -> Result<Release, RejectReason> {
    let text = text.trim();
    if text.is_empty() {
        return Err(RejectReason::MissingDate);
    }
    if let Ok(day) = text.parse::<Day>() {
        return Ok(day.into());
    }
    let bad = RejectReason::BadDate(column);
    if let Some(day) = compact(text) {
        return Ok(day.into());
    }
    let named = with_month_name(text);
    let (date, time) = named.map_or_else(|| split_date(text), |(_, time)| ("", time));
    let clock = match time {
        "" => None,
        time => Some(Clock::parse(time).ok_or(bad.clone())?),
    };
    let order = match order {
        SlashOrder::Unknown if clock.as_ref().is_some_and(|clock| clock.twelve_hours) => {
            SlashOrder::MonthFirst
        }
        order => order,
    };
    let date = match named.map_or_else(|| slashed(date, order), |(date, _)| Slashed::Date(date)) {
        Slashed::Date(date) => date,
        Slashed::Either => return Err(RejectReason::AmbiguousDate),
        Slashed::No => date.parse::<Day>().map_err(|_| bad.clone())?.date(),
    };
    let release = match clock {
        Some(clock) => clock.on(date).and_then(Release::at),
        None => Day::from_date(date).map(Release::from),
    };
    release.ok_or(bad)
}

/// The same as [`day`], but `None` for an empty cell.
pub(super) fn optional_day(
    text: &str,
    order: SlashOrder,
    column: &'static str,
) -> Result<Option<Day>, RejectReason> {
    optional_release(text, order, column).map(|release| release.map(|release| release.day))
}

/// The same as [`release`], but `None` for an empty cell.
pub(super) fn optional_release(
    text: &str,
    order: SlashOrder,
    column: &'static str,
) -> Result<Option<Release>, RejectReason> {
    match release(text, order, column) {
        Err(RejectReason::MissingDate) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Parses RFC 3339, or `YYYY-MM-DD` as the start of the day: `observed_at` in native CSV.
pub(super) fn instant(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(day) = text.parse::<Day>() {
        return Some(day.start());
    }
    DateTime::parse_from_rfc3339(text).ok().map(|instant| instant.to_utc())
}

/// Parses `DD-MM-YYYY`: .fr. `None` for an empty cell.
pub(super) fn day_first(text: &str, column: &'static str) -> Result<Option<Day>, RejectReason> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let date = || {
        let [day, month, year] = numbers(text, '-')?;
        let year = i32::try_from(year).ok().filter(|year| *year >= 1000)?;
        Day::from_date(NaiveDate::from_ymd_opt(year, month, day)?)
    };
    date().map(Some).ok_or(RejectReason::BadDate(column))
}

/// Parses the line above the names of .pl (`2026-04-07 08:10:56 MEST`) and .mx (`01/10/26 03:00:16
/// GMT-6`). The zone is required, because a date without one is not a timestamp.
pub(super) fn stamp(line: &str) -> Option<DateTime<Utc>> {
    let (date, time) = split_date(line.trim());
    let clock = Clock::parse(time)?;
    clock.zone?;
    let date = match date.parse::<Day>() {
        Ok(day) => day.date(),
        Err(_) => day_month_year(date)?,
    };
    clock.on(date).filter(|instant| Day::from_instant(*instant).is_some())
}

/// `DD/MM/YY` or `DD/MM/YYYY`.
fn day_month_year(text: &str) -> Option<NaiveDate> {
    let [day, month, year] = numbers(text, '/')?;
    let year = if year < 100 { year + 2000 } else { year };
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
}

/// Splits date and time at a `T` or white space.
fn split_date(text: &str) -> (&str, &str) {
    match text.find(|char: char| char == 'T' || char.is_ascii_whitespace()) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, ""),
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Returns the index of the name that equals `word`, or of which `word` is an abbreviation with at
/// least three letters.
fn named(word: &str, names: &[&str]) -> Option<usize> {
    let is_start = |name: &&str| {
        let start = name.get(..word.len());
        word.len() >= 3 && start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    names.iter().position(is_start)
}

/// Parses a date whose month is an English word, which makes the order of the parts clear:
/// `27-Nov-2026`, `Friday, 27 November 2026`, `Nov 27, 2026`. Also returns the rest of the text,
/// which is a time of day.
fn with_month_name(text: &str) -> Option<(NaiveDate, &str)> {
    let mut rest = text;
    let mut word = || {
        let start = rest.trim_start_matches(|char: char| " \t-/.,".contains(char));
        let end = start.find(|char: char| !char.is_ascii_alphanumeric()).unwrap_or(start.len());
        let (word, after) = start.split_at(end);
        rest = after;
        word
    };
    let mut first = word();
    if named(first, &WEEKDAYS).is_some() {
        first = word();
    }
    let (second, year) = (word(), word());
    let (day, month) = match named(second, &MONTHS) {
        Some(month) => (first, month),
        None => (second, named(first, &MONTHS)?),
    };
    let day = ["st", "nd", "rd", "th"].iter().find_map(|end| day.strip_suffix(end)).unwrap_or(day);
    let year = (year.len() == 4).then(|| digits(year)).flatten()?;
    let day = (day.len() <= 2).then(|| digits(day)).flatten()?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month as u32 + 1, day)?;
    Some((date, rest.trim_start_matches([' ', '\t', ','])))
}

enum Slashed {
    Date(NaiveDate),
    Either,
    No,
}

fn slashed(text: &str, order: SlashOrder) -> Slashed {
    // Dots separate day, month and year, in this order.
    let (parts, order) = match numbers(text, '.') {
        Some(parts) => (Some(parts), SlashOrder::DayFirst),
        None => (numbers(text, '/').or_else(|| numbers(text, '-')), order),
    };
    let Some([first, second, year]) = parts else { return Slashed::No };
    let date = |month, day| {
        let year = i32::try_from(year).ok().filter(|year| *year >= 1000)?;
        NaiveDate::from_ymd_opt(year, month, day)
    };
    if first >= 1000 {
        // In ISO 8601, month and day have two digits. A single digit may come from a truncated row:
        // `2026-12-2` from `2026-12-27`.
        if text.len() != "YYYY-MM-DD".len() {
            return Slashed::No;
        }
        let date =
            i32::try_from(first).ok().and_then(|it| NaiveDate::from_ymd_opt(it, second, year));
        return date.map_or(Slashed::No, Slashed::Date);
    }
    let (by_month, by_day) = (date(first, second), date(second, first));
    let found = match order {
        SlashOrder::MonthFirst => by_month,
        SlashOrder::DayFirst => by_day,
        SlashOrder::Unknown if by_month.is_some() && by_day.is_some() && by_month != by_day => {
            return Slashed::Either;
        }
        SlashOrder::Unknown => by_month.or(by_day),
    };
    found.map_or(Slashed::No, Slashed::Date)
}

/// Parses exactly three numbers of one to four digits.
fn numbers(text: &str, separator: char) -> Option<[u32; 3]> {
    let mut parts = text.split(separator).map(digits);
    let found = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(found)
}

pub(super) fn digits(text: &str) -> Option<u32> {
    let shaped = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    shaped.then(|| text.parse().ok()).flatten()
}

/// Parses exactly two digits. A single digit may come from a truncated row.
fn two_digits(text: &str) -> Option<u32> {
    digits(text).filter(|_| text.len() == 2)
}

/// A time of day with its AM/PM and zone.
struct Clock {
    time: NaiveTime,
    twelve_hours: bool,
    zone: Option<FixedOffset>,
}

impl Clock {
    /// `18:00`, `11:31:21Z`, `04:00:00.000+02:00`, `12:00:00 AM`, `08:10:56 MEST`.
    fn parse(text: &str) -> Option<Clock> {
        let end = text.find(|char: char| !matches!(char, '0'..='9' | ':' | '.'));
        let (time, rest) = text.split_at(end.unwrap_or(text.len()));
        let (half, rest) = meridiem(rest.trim());
        let mut parts = time.split(':');
        let hour = half_day(digits(parts.next()?)?, half)?;
        let minute = two_digits(parts.next()?)?;
        let second = match parts.next() {
            Some(part) => two_digits(part.split_once('.').map_or(part, |(whole, _)| whole))?,
            None => 0,
        };
        let time = NaiveTime::from_hms_opt(hour, minute, second)?;
        let zone = match rest.trim() {
            "" => None,
            name => Some(zone(name)?),
        };
        parts.next().is_none().then_some(Clock { time, twelve_hours: half.is_some(), zone })
    }

    fn on(&self, date: NaiveDate) -> Option<DateTime<Utc>> {
        let zone = self.zone.unwrap_or(FixedOffset::east_opt(0)?);
        date.and_time(self.time).and_local_timezone(zone).single().map(|instant| instant.to_utc())
    }
}

#[derive(Clone, Copy)]
enum Half {
    Morning,
    Afternoon,
}

fn meridiem(text: &str) -> (Option<Half>, &str) {
    let half = match text.get(..2) {
        Some(head) if head.eq_ignore_ascii_case("am") => Half::Morning,
        Some(head) if head.eq_ignore_ascii_case("pm") => Half::Afternoon,
        _ => return (None, text),
    };
    (Some(half), &text[2..])
}

/// Converts the hour to the 24-hour clock; 12 AM is 0 and 12 PM is 12.
fn half_day(hour: u32, half: Option<Half>) -> Option<u32> {
    match half {
        None => Some(hour),
        Some(_) if !(1..=12).contains(&hour) => None,
        Some(Half::Morning) => Some(hour % 12),
        Some(Half::Afternoon) => Some(hour % 12 + 12),
    }
}

/// Time zones that occur in lists, with their hours east of UTC.
const ZONES: [(&str, i32); 11] = [
    ("Z", 0),
    ("UTC", 0),
    ("GMT", 0),
    ("MET", 1),
    ("CET", 1),
    ("MEST", 2),
    ("CEST", 2),
    ("EST", -5),
    ("EDT", -4),
    ("PST", -8),
    ("PDT", -7),
];

/// Offset of a zone from UTC: `MEST`, `(PDT)`, `GMT-6`, `UTC+05:30`, `+02:00`, `-0800`.
fn zone(name: &str) -> Option<FixedOffset> {
    let name = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')).unwrap_or(name);
    let known = ZONES.iter().find(|(zone, _)| name.eq_ignore_ascii_case(zone));
    if let Some((_, hours)) = known {
        return FixedOffset::east_opt(hours * 3600);
    }
    let named = name.strip_prefix("GMT").or(name.strip_prefix("UTC"));
    let offset = named.unwrap_or(name);
    let (sign, text) = match offset.split_at_checked(1)? {
        ("+", text) => (1, text),
        ("-", text) => (-1, text),
        _ => return None,
    };
    let (hours, minutes) = match (text.split_once(':'), text.len()) {
        (Some((hours, minutes)), _) => (digits(hours)?, two_digits(minutes)?),
        (None, 4) => text.split_at_checked(2).and_then(|(h, m)| Some((digits(h)?, digits(m)?)))?,
        // `GMT-6` is a common form, but a bare `-0` is a truncated `-08:00`.
        (None, length) if named.is_some() || length == 2 => (digits(text)?, 0),
        (None, _) => return None,
    };
    let seconds = (hours <= 14 && minutes < 60).then_some(hours * 3600 + minutes * 60)?;
    FixedOffset::east_opt(sign * i32::try_from(seconds).ok()?)
}

/// `YYYYMMDD`.
pub(super) fn compact(run: &str) -> Option<Day> {
    let shaped = run.len() == 8 && run.bytes().all(|byte| byte.is_ascii_digit());
    shaped.then(|| ymd(&run[..4], &run[4..6], &run[6..])).flatten()
}

/// Builds a day from year, month and day.
pub(super) fn ymd(year: &str, month: &str, day: &str) -> Option<Day> {
    let year = i32::try_from(digits(year)?).ok()?;
    Day::from_date(NaiveDate::from_ymd_opt(year, digits(month)?, digits(day)?)?)
}

#[cfg(test)]
mod tests {
    use super::SlashOrder::{DayFirst, MonthFirst, Unknown};
    use super::*;

    fn read(text: &str, order: SlashOrder) -> Result<String, &'static str> {
        day(text, order, "release_date").map(|day| day.to_string()).map_err(|why| why.code())
    }

    #[test]
    fn dates_of_every_feed_are_parsed() {
        for (text, order, expected) in [
            ("2026-10-03", Unknown, "2026-10-03"),
            (" 2026-10-03 ", Unknown, "2026-10-03"),
            ("2026-10-03T11:31:21Z", Unknown, "2026-10-03"),
            ("2026-10-03T11:31:21.123Z", Unknown, "2026-10-03"),
            ("2026-10-03T23:30:00-02:00", Unknown, "2026-10-04"),
            ("2026-10-03T00:30:00+0200", Unknown, "2026-10-02"),
            ("2026-10-03 18:00", Unknown, "2026-10-03"),
            ("12/4/2026 12:00:00 AM", MonthFirst, "2026-12-04"),
            ("16/12/2026", DayFirst, "2026-12-16"),
            ("03/04/2026", DayFirst, "2026-04-03"),
            ("03/04/2026", MonthFirst, "2026-03-04"),
            ("16/12/2026", Unknown, "2026-12-16"),
            ("12/16/2026", Unknown, "2026-12-16"),
            ("04/04/2026", Unknown, "2026-04-04"),
            ("2026/10/03 18:00 PST", MonthFirst, "2026-10-04"),
            ("2026/10/03", Unknown, "2026-10-03"),
            ("10/05/2026 08:00 AM (PDT)", Unknown, "2026-10-05"),
            ("10/05/2026 10:00PM (PDT)", Unknown, "2026-10-06"),
            ("03.10.2026", Unknown, "2026-10-03"),
            ("3.1.2026", MonthFirst, "2026-01-03"),
            ("27.11.2026 18:00", Unknown, "2026-11-27"),
            ("2026.10.03", Unknown, "2026-10-03"),
            ("20261003", Unknown, "2026-10-03"),
            ("27-11-2026", Unknown, "2026-11-27"),
            ("11-27-2026", Unknown, "2026-11-27"),
            ("2026-10-03 10:00:00+00", Unknown, "2026-10-03"),
            ("2026-10-03 23:00 GMT-6", Unknown, "2026-10-04"),
            ("27-Nov-2026", Unknown, "2026-11-27"),
            ("27 Nov 2026", MonthFirst, "2026-11-27"),
            ("3-OCT-2026", Unknown, "2026-10-03"),
            ("27/Nov/2026", Unknown, "2026-11-27"),
            ("1 Sept 2026", Unknown, "2026-09-01"),
            ("Nov 27, 2026", Unknown, "2026-11-27"),
            ("November 27th, 2026 10:00 PM (PDT)", Unknown, "2026-11-28"),
            ("Fri, 27 Nov 2026 23:30:00 -0200", Unknown, "2026-11-28"),
            ("Saturday 3 October 2026", Unknown, "2026-10-03"),
        ] {
            assert_eq!(read(text, order), Ok(expected.into()), "{text}");
        }
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for (text, order, code) in [
            ("", Unknown, "missing-date"),
            ("  ", Unknown, "missing-date"),
            ("03/04/2026", Unknown, "ambiguous-date"),
            ("13/14/2026", Unknown, "bad-date"),
            ("13/04/2026", MonthFirst, "bad-date"),
            ("12/4/26", MonthFirst, "bad-date"),
            ("2026-02-30", Unknown, "bad-date"),
            ("2026-10-03T25:00:00Z", Unknown, "bad-date"),
            ("2026-10-03 13:00 PM", Unknown, "bad-date"),
            ("2026-10-03 10:00 XYZ", Unknown, "bad-date"),
            ("1790000000", Unknown, "bad-date"),
            ("20261303", Unknown, "bad-date"),
            ("12.25.2026", Unknown, "bad-date"),
            ("12.4.26", Unknown, "bad-date"),
            ("03-04-2026", Unknown, "ambiguous-date"),
            ("31-Nov-2026", Unknown, "bad-date"),
            ("27-No-2026", Unknown, "bad-date"),
            ("27-Nov-26", Unknown, "bad-date"),
            ("Nov 2026", Unknown, "bad-date"),
            ("27 Nov 2026 soon", Unknown, "bad-date"),
            ("Novem 27 Nov 2026", Unknown, "bad-date"),
            ("2026-10", Unknown, "bad-date"),
            // Truncated dates; the full texts are other days.
            ("2026-12-2", Unknown, "bad-date"),
            ("2026-1-3", Unknown, "bad-date"),
            ("2026-1-13", Unknown, "bad-date"),
            ("2026/12/2", Unknown, "bad-date"),
            ("2026.12.2", Unknown, "bad-date"),
            ("2026-12-2 10:00", Unknown, "bad-date"),
            ("20261", Unknown, "bad-date"),
            ("2026122", Unknown, "bad-date"),
            ("27-Nov-20", Unknown, "bad-date"),
            ("Nov 27, 202", Unknown, "bad-date"),
            ("27.11.20", Unknown, "bad-date"),
            ("11/27/202", MonthFirst, "bad-date"),
            ("2026-10-03T23:30:00-0", Unknown, "bad-date"),
            ("2026-10-03T23:30:00-02:0", Unknown, "bad-date"),
            ("2026-10-03T23:30:00-020", Unknown, "bad-date"),
            ("2026-10-03T2", Unknown, "bad-date"),
            ("2026-10-03 23:3", Unknown, "bad-date"),
            ("10/05/2026 10:00 P", Unknown, "bad-date"),
            ("1.2.3.4", Unknown, "bad-date"),
            ("tomorrow", Unknown, "bad-date"),
            ("1/2/3/4", Unknown, "bad-date"),
            ("0001-01-01T00:00:00+02:00", Unknown, "bad-date"),
            ("２026-10-03", Unknown, "bad-date"),
            ("2026-10-03\u{2003}10:00", Unknown, "bad-date"),
            ("2026-10-03 10:00 +1é2", Unknown, "bad-date"),
            ("2026-10-03 10:00 é", Unknown, "bad-date"),
        ] {
            assert_eq!(read(text, order), Err(code), "{text}");
        }
    }

    #[test]
    fn a_release_with_a_time_has_its_second() {
        for (text, order, expected) in [
            ("2026-10-03T11:31:21Z", Unknown, Some("2026-10-03T11:31:21.000Z")),
            ("2026-10-03T11:31:21.987+02:00", Unknown, Some("2026-10-03T09:31:21.000Z")),
            ("2026-10-03 18:00", Unknown, Some("2026-10-03T18:00:00.000Z")),
            ("12/4/2026 12:00:00 AM", MonthFirst, Some("2026-12-04T00:00:00.000Z")),
            ("2026-10-03", Unknown, None),
            ("20261003", Unknown, None),
            ("16/12/2026", DayFirst, None),
        ] {
            let release = release(text, order, "release_date").expect(text);
            assert_eq!(release.instant().map(|at| at.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn time_stamps_are_instants() {
        for (line, expected) in [
            ("2026-04-07 08:10:56 MEST", "2026-04-07T06:10:56+00:00"),
            ("2026-01-07 08:10:56 MET", "2026-01-07T07:10:56+00:00"),
            ("2026-04-07 00:10:56 CEST", "2026-04-06T22:10:56+00:00"),
            ("01/10/26 03:00:16 GMT-6", "2026-10-01T09:00:16+00:00"),
            ("01/10/2026 03:00:16 UTC", "2026-10-01T03:00:16+00:00"),
        ] {
            assert_eq!(stamp(line).map(|at| at.to_rfc3339()), Some(expected.into()), "{line}");
        }
        for line in ["2026-04-07", "2026-04-07 08:10:56", "2026-04-07 08:10:56 XYZ", "a.pl", ""] {
            assert_eq!(stamp(line), None, "{line}");
        }
    }

    #[test]
    fn native_times_need_a_zone() {
        let start = instant("2026-10-03").map(|at| at.to_rfc3339());
        assert_eq!(start, Some("2026-10-03T00:00:00+00:00".into()));
        let later = instant("2026-10-03T04:05:06.5+02:00").map(|at| at.to_rfc3339());
        assert_eq!(later, Some("2026-10-03T02:05:06.500+00:00".into()));
        assert_eq!(instant("2026-10-03T04:05:06"), None);
    }
}
