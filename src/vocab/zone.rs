//! Local time of an account: a time zone of the IANA database, and full hours in it.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Days, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reason why a text is not a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a name of the IANA time zone database, such as Europe/Berlin")]
pub struct ZoneError;

/// A time zone. Stored by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone(Tz);

/// A full hour of a day: 0 to 23.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Hour(u8);

impl Hour {
    /// Returns the hour with this number; `None` above 23.
    pub fn new(hour: u8) -> Option<Hour> {
        (hour < 24).then_some(Hour(hour))
    }

    /// Returns the hour as a number.
    pub fn get(self) -> u8 {
        self.0
    }

    /// Returns all hours of a day.
    pub fn all() -> impl Iterator<Item = Hour> {
        (0..24).map(Hour)
    }
}

/// Rejects a text that is not an [`Hour`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an hour: a whole number from 0 to 23")]
pub struct HourError;

impl FromStr for Hour {
    type Err = HourError;

    fn from_str(text: &str) -> Result<Hour, HourError> {
        text.parse().ok().and_then(Hour::new).ok_or(HourError)
    }
}

impl TryFrom<u8> for Hour {
    type Error = &'static str;

    fn try_from(hour: u8) -> Result<Hour, &'static str> {
        Hour::new(hour).ok_or("an hour is 0 to 23")
    }
}

impl From<Hour> for u8 {
    fn from(hour: Hour) -> u8 {
        hour.0
    }
}

/// Writes `08:00`.
impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:00", self.0)
    }
}

impl Zone {
    pub const UTC: Zone = Zone(Tz::UTC);

    /// Returns the name in the database.
    pub fn as_str(self) -> &'static str {
        self.0.name()
    }

    /// Returns the names of all zones, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TZ_VARIANTS.iter().map(|zone| zone.name())
    }

    /// Returns the hour that clocks show at `instant`.
    pub fn hour_at(self, instant: DateTime<Utc>) -> Hour {
        Hour(instant.with_timezone(&self.0).hour() as u8)
    }

    /// Returns the time that clocks show at `instant`.
    pub fn local(self, instant: DateTime<Utc>) -> NaiveDateTime {
        instant.with_timezone(&self.0).naive_local()
    }

    /// Returns the next time after `instant` at which clocks show `hour`. On a day without this
    /// hour, the result is the end of the gap; on a day that has the hour twice, it is the first of
    /// the two.
    pub fn next(self, hour: Hour, instant: DateTime<Utc>) -> DateTime<Utc> {
        let today = self.local(instant).date();
        // Three days, because a zone that crosses the date line skips a day.
        let days = (0..=3).filter_map(|days| today.checked_add_days(Days::new(days)));
        let times = days.filter_map(|day| self.first(day.and_hms_opt(hour.0.into(), 0, 0)?));
        times.into_iter().find(|time| *time > instant).unwrap_or(instant)
    }

    /// Returns the first instant at which clocks show this time or, if they skip it, a later one.
    fn first(self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        // The longest gap of the database is a day.
        (0..=96).find_map(|quarters| {
            match self.0.from_local_datetime(&(local + TimeDelta::minutes(15 * quarters))) {
                LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => {
                    Some(time.with_timezone(&Utc))
                }
                LocalResult::None => None,
            }
        })
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(name: &str) -> Result<Zone, ZoneError> {
        name.parse().map(Zone).map_err(|_| ZoneError)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Zone {
    /// A zone that this version does not know becomes UTC: startup must not fail because a name was
    /// removed from the database.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Zone, D::Error> {
        let name = compact_str::CompactString::deserialize(deserializer)?;
        Ok(name.parse().unwrap_or(Zone::UTC))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        name.parse().expect("a zone")
    }

    #[test]
    fn hours_recur_on_days_of_clock_changes() {
        for (name, hour, from, next) in [
            ("UTC", 8, "2026-11-23T07:59:59Z", "2026-11-23T08:00:00Z"),
            ("UTC", 8, "2026-11-23T08:00:00Z", "2026-11-24T08:00:00Z"),
            ("Asia/Kolkata", 8, "2026-11-23T02:00:00Z", "2026-11-23T02:30:00Z"),
            ("America/New_York", 8, "2026-11-23T02:00:00Z", "2026-11-23T13:00:00Z"),
            // Summer time begins on the 29th at 2:00 and ends on 25 October at 3:00.
            ("Europe/Berlin", 8, "2026-03-28T08:00:00Z", "2026-03-29T06:00:00Z"),
            ("Europe/Berlin", 2, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
            ("Europe/Berlin", 2, "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"),
            ("Europe/Berlin", 2, "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z"),
            ("Europe/Berlin", 2, "2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z"),
            ("Europe/Berlin", 8, "2026-10-24T07:00:00Z", "2026-10-25T07:00:00Z"),
            // The clocks change by half an hour, at 2:00.
            ("Australia/Lord_Howe", 2, "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z"),
            // Here, 30 December did not exist.
            ("Pacific/Apia", 8, "2011-12-29T20:00:00Z", "2011-12-30T10:00:00Z"),
        ] {
            let from: DateTime<Utc> = from.parse().expect("a time");
            let next: DateTime<Utc> = next.parse().expect("a time");
            let hour = Hour::new(hour).expect("an hour");
            assert_eq!(zone(name).next(hour, from), next, "{name} {hour} after {from}");
        }
    }

    #[test]
    fn zones_are_stored_by_name() {
        let berlin = zone("Europe/Berlin");
        let json = serde_json::to_string(&berlin).expect("JSON");
        assert_eq!(json, r#""Europe/Berlin""#);
        assert_eq!(serde_json::from_str::<Zone>(&json).ok(), Some(berlin));
        assert_eq!(serde_json::from_str::<Zone>(r#""Moon/Base""#).ok(), Some(Zone::UTC));
        for bad in ["", "europe/berlin", "CET+1", "Moon/Base", " UTC"] {
            assert_eq!(bad.parse::<Zone>(), Err(ZoneError), "{bad}");
        }
        assert!(Zone::names().all(|name| name.parse::<Zone>().is_ok()));
        assert_eq!((Hour::new(24), Hour::try_from(24).is_err()), (None, true));
    }
}
