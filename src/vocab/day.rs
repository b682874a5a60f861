//! A UTC calendar day in two bytes.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A UTC day from 1985-01-01 (the year of the first .com) to 2164-06-05.
///
/// Invariant: stored as days since 1984-12-31, never 0, so that `Option<Day>` takes two bytes and
/// 0 can stand for "no day" in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(NonZeroU16);

/// Days from 0001-01-01 (chrono's day 1) to 1984-12-31.
const EPOCH_FROM_CE: i32 = 724_641;

/// Days by which a counted day may lie ahead of today; see [`Day::replaces`].
const CORRECTED_DAYS_MAX: i32 = 2;

/// Rejects a text that is neither a [`Day`] nor a relative date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a date from {} to {}: YYYY-MM-DD, today, tomorrow, yesterday, +3d or -3d",
    Day::MIN,
    Day::MAX
)]
pub struct RelativeDayError;

/// Rejects a text that is not a [`Day`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a date from 1985-01-01 to 2164-06-05 written as YYYY-MM-DD")]
pub struct DayError(String);

impl Day {
    /// The first representable day: 1985-01-01.
    pub const MIN: Day = Day(NonZeroU16::MIN);
    /// The last representable day: 2164-06-05.
    pub const MAX: Day = Day(NonZeroU16::MAX);

    /// Returns the day of `date`, or `None` outside [`Day::MIN`]..=[`Day::MAX`].
    pub fn from_date(date: NaiveDate) -> Option<Day> {
        let days = date.num_days_from_ce() - EPOCH_FROM_CE;
        u16::try_from(days).ok().and_then(Day::from_raw)
    }

    /// Returns the UTC day of an instant, or `None` outside [`Day::MIN`]..=[`Day::MAX`].
    pub fn from_instant(instant: DateTime<Utc>) -> Option<Day> {
        Day::from_date(instant.date_naive())
    }

    /// Returns the UTC day of an instant, clamped to [`Day::MIN`]..=[`Day::MAX`].
    pub fn nearest(instant: DateTime<Utc>) -> Day {
        let nearest = if instant < Day::MIN.start() { Day::MIN } else { Day::MAX };
        Day::from_instant(instant).unwrap_or(nearest)
    }

    /// Returns true if counts of the day `counted` are discarded when today is `self`: `self` is
    /// later, or so much earlier that `counted` came from a wrong clock. A correction of the clock
    /// by a day or two reopens no day.
    pub fn replaces(self, counted: Day) -> bool {
        self > counted || self.plus(CORRECTED_DAYS_MAX) < counted
    }

    /// Returns the day of a [`Day::raw`] value; `None` for 0.
    pub fn from_raw(raw: u16) -> Option<Day> {
        NonZeroU16::new(raw).map(Day)
    }

    /// Returns the number of days since 1984-12-31, at least 1. Columns and batches store this
    /// number.
    pub fn raw(self) -> u16 {
        self.0.get()
    }

    /// Returns the column value of an optional day: [`Day::raw`], or 0 for none.
    pub fn raw_or_zero(day: Option<Day>) -> u16 {
        day.map_or(0, Day::raw)
    }

    /// Returns the day as a chrono date.
    pub fn date(self) -> NaiveDate {
        NaiveDate::from_num_days_from_ce_opt(EPOCH_FROM_CE + i32::from(self.raw()))
            .expect("65,535 days after 1984 is a date")
    }

    /// Returns midnight UTC at the start of the day.
    pub fn start(self) -> DateTime<Utc> {
        self.date().and_time(NaiveTime::MIN).and_utc()
    }

    /// Returns the day `days` later (earlier if negative), clamped to [`Day::MIN`]..=[`Day::MAX`].
    pub fn plus(self, days: i32) -> Day {
        let raw = (i32::from(self.raw()) + days).clamp(1, i32::from(u16::MAX));
        Day::from_raw(raw as u16).expect("clamped to 1 or more")
    }

    /// Parses `YYYY-MM-DD`, or a date relative to `today`: `today`, `tomorrow`, `yesterday`, `+3d`,
    /// `-3d`. A space stands for `+`, because forms encode it as one.
    ///
    /// # Errors
    /// The text is not a date, or the day is out of range.
    pub fn parse_from(text: &str, today: Day) -> Result<Day, RelativeDayError> {
        let days: i32 = match text {
            "today" => 0,
            "tomorrow" => 1,
            "yesterday" => -1,
            _ => {
                let Some(number) = text.strip_suffix('d') else {
                    return text.parse().map_err(|_| RelativeDayError);
                };
                let (sign, digits) = match number.as_bytes().first() {
                    Some(b'-') => (-1, &number[1..]),
                    Some(b'+' | b' ') => (1, &number[1..]),
                    _ => return Err(RelativeDayError),
                };
                // `parse` would accept another sign.
                let days = Some(digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
                let days = days.and_then(|digits| digits.parse::<u16>().ok());
                sign * i32::from(days.ok_or(RelativeDayError)?)
            }
        };
        let raw = u16::try_from(i32::from(today.raw()) + days).ok();
        raw.and_then(Day::from_raw).ok_or(RelativeDayError)
    }

    /// Returns the whole days from `earlier` to `self`; negative if `self` is earlier.
    pub fn days_since(self, earlier: Day) -> i32 {
        i32::from(self.raw()) - i32::from(earlier.raw())
    }
}

impl FromStr for Day {
    type Err = DayError;

    /// Parses `YYYY-MM-DD`, exactly ten characters, zero-padded.
    fn from_str(text: &str) -> Result<Day, DayError> {
        let shaped = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        shaped
            .then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())
            .flatten()
            .and_then(Day::from_date)
            .ok_or_else(|| DayError(text.chars().take(40).collect()))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = self.date();
        write!(f, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
    }
}

/// Serialises as text in JSON and other readable formats, and as [`Day::raw`] in binary ones, such
/// as the journal.
impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u16(self.raw())
        }
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Day, D::Error> {
        if deserializer.is_human_readable() {
            let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
            text.parse().map_err(D::Error::custom)
        } else {
            Day::from_raw(u16::deserialize(deserializer)?)
                .ok_or_else(|| D::Error::custom("0 is not a day"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_1985_to_2164() {
        assert_eq!(Day::MIN.to_string(), "1985-01-01");
        assert_eq!(Day::MAX.to_string(), "2164-06-05");
        for bad in [
            "1984-12-31",
            "2164-06-06",
            "2026-02-30",
            "2026-1-01",
            "20260101",
            "",
            "+026-01-01",
            "2026-01-01 ",
            "2026/01/01",
            "２026-01-0",
        ] {
            assert!(bad.parse::<Day>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_day_round_trips_as_text() {
        for raw in 1..=u16::MAX {
            let day = Day::from_raw(raw).expect("not 0");
            assert_eq!(day.to_string().parse::<Day>(), Ok(day));
        }
    }

    #[test]
    fn relative_dates_are_parsed() {
        let today: Day = "2026-11-23".parse().expect("a date");
        for (text, days) in [
            ("today", 0),
            ("tomorrow", 1),
            ("yesterday", -1),
            ("+3d", 3),
            (" 3d", 3),
            ("-40d", -40),
            ("+0d", 0),
            ("2026-11-24", 1),
        ] {
            assert_eq!(Day::parse_from(text, today), Ok(today.plus(days)), "{text}");
        }
        for text in
            ["3d", "+d", "++3d", "-+3d", "+3", "+70000d", "-20000d", "Today", "", "d", "+3dd"]
        {
            assert_eq!(Day::parse_from(text, today), Err(RelativeDayError), "{text}");
        }
    }

    #[test]
    fn arithmetic_stays_in_range() {
        let day: Day = "2026-10-03".parse().expect("a date");
        assert_eq!(day.plus(35).to_string(), "2026-11-07");
        assert_eq!(day.plus(35).days_since(day), 35);
        assert_eq!(Day::MAX.plus(1), Day::MAX);
        assert_eq!(Day::MIN.plus(-1), Day::MIN);
    }
}
