//! Times at which a source is fetched.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

const MINUTES_A_DAY: u32 = 24 * 60;
/// Maximum interval: a week.
const MINUTES_MAX: u32 = 7 * MINUTES_A_DAY;

/// Schedule of a source: `daily 03:40` (UTC), `every 6h` or `every 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Schedule {
    /// Minute of the UTC day.
    Daily(u32),
    /// Interval in minutes, 1 to [`MINUTES_MAX`].
    Every(u32),
}

impl Schedule {
    /// Once a day at this time, UTC.
    pub const fn daily(hour: u32, minute: u32) -> Schedule {
        Schedule::Daily(hour * 60 + minute)
    }

    /// Once in the given number of hours.
    pub const fn hours(hours: u32) -> Schedule {
        Schedule::Every(hours * 60)
    }

    /// Time between two runs.
    pub fn interval(self) -> TimeDelta {
        match self {
            Schedule::Daily(_) => TimeDelta::days(1),
            Schedule::Every(minutes) => TimeDelta::minutes(minutes.into()),
        }
    }

    /// Maximum random delay of a run, which spreads the load of many installations: a tenth of the
    /// interval, up to ten minutes.
    pub fn jitter_max(self) -> TimeDelta {
        (self.interval() / 10).min(TimeDelta::minutes(10))
    }

    /// The next run after `now`, without jitter.
    pub fn next_after(self, now: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Schedule::Every(_) => now + self.interval(),
            Schedule::Daily(minute) => {
                let midnight = now.date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
                let today = midnight + TimeDelta::minutes(minute.into());
                if today > now { today } else { today + TimeDelta::days(1) }
            }
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Schedule::Daily(minute) => write!(f, "daily {:02}:{:02}", minute / 60, minute % 60),
            Schedule::Every(minutes) if minutes % 60 == 0 => write!(f, "every {}h", minutes / 60),
            Schedule::Every(minutes) => write!(f, "every {minutes}m"),
        }
    }
}

/// Rejects a text that is not a [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a schedule such as `daily 03:40` (UTC), `every 6h` or `every 30m`, up to a week"
)]
pub struct ScheduleError(String);

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let number = |digits: &str| -> Option<u32> {
            let plain = (1..=5).contains(&digits.len());
            (plain && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| digits.parse().ok())
                .flatten()
        };
        let parse = || match text.split_once(' ')? {
            ("daily", time) => {
                let (hour, minute) = time.split_once(':')?;
                let (hour, minute) = (number(hour)?, number(minute)?);
                (hour < 24 && minute < 60).then(|| Schedule::daily(hour, minute))
            }
            ("every", span) => {
                let minutes = match span.strip_suffix('h') {
                    Some(hours) => number(hours)? * 60,
                    None => number(span.strip_suffix('m')?)?,
                };
                (1..=MINUTES_MAX).contains(&minutes).then_some(Schedule::Every(minutes))
            }
            _ => None,
        };
        parse().ok_or_else(|| ScheduleError(text.chars().take(40).collect()))
    }
}

impl TryFrom<String> for Schedule {
    type Error = ScheduleError;

    fn try_from(text: String) -> Result<Schedule, ScheduleError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn schedules_round_trip() {
        for text in
            ["daily 00:00", "daily 23:59", "every 1m", "every 6h", "every 90m", "every 168h"]
        {
            assert_eq!(text.parse::<Schedule>().expect(text).to_string(), text);
        }
        for text in [
            "",
            "daily",
            "daily 24:00",
            "daily 3:60",
            "daily +3:00",
            "every 0m",
            "every 169h",
            "every 6",
            "every -1h",
            "every 99999999999h",
            "hourly",
        ] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_next_run_is_in_the_future() {
        let daily: Schedule = "daily 03:40".parse().expect("valid");
        for (now, next) in [
            ("2026-11-23T03:39:59Z", "2026-11-23T03:40:00Z"),
            ("2026-11-23T03:40:00Z", "2026-11-24T03:40:00Z"),
            ("2026-12-31T23:00:00Z", "2027-01-01T03:40:00Z"),
        ] {
            assert_eq!(daily.next_after(at(now)), at(next));
        }
        let every: Schedule = "every 90m".parse().expect("valid");
        assert_eq!(every.next_after(at("2026-11-23T23:00:00Z")), at("2026-11-24T00:30:00Z"));
        assert_eq!(every.jitter_max(), TimeDelta::minutes(9));
        assert_eq!(daily.jitter_max(), TimeDelta::minutes(10));
    }
}
