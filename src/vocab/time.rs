//! UTC instants with millisecond precision, as user data stores them.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// The last millisecond of the year 9999.
const MS_MAX: u64 = 253_402_300_799_999;

/// Milliseconds since 1970-01-01 UTC. Invariant: within the years 1970 to 9999.
///
/// Stored as milliseconds plus one, so that `Option<UnixMs>` takes eight bytes. Serialised as
/// milliseconds; its `Display` is the text of the API, `2026-11-21T12:00:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct UnixMs(NonZeroU64);

/// Rejects a text that is not a [`UnixMs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a timestamp of the years 1970 to 9999 such as 2026-11-21T12:00:00.000Z")]
pub struct TimeError;

impl UnixMs {
    /// Returns the instant `ms` milliseconds after 1970-01-01 UTC; `None` after the year 9999.
    pub fn new(ms: u64) -> Option<UnixMs> {
        let plus_one = NonZeroU64::MIN.checked_add(ms)?;
        (ms <= MS_MAX).then_some(UnixMs(plus_one))
    }

    /// Returns the instant truncated to the millisecond, clamped to the years 1970 to 9999.
    pub fn from_instant(instant: DateTime<Utc>) -> UnixMs {
        let ms = u64::try_from(instant.timestamp_millis()).unwrap_or(0).min(MS_MAX);
        UnixMs::new(ms).expect("held within the range")
    }

    /// Returns the milliseconds since 1970-01-01 UTC.
    pub fn get(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the time as a chrono instant.
    pub fn instant(self) -> DateTime<Utc> {
        let ms = i64::try_from(self.get()).expect("the year 9999 is far below 2^63 ms");
        DateTime::from_timestamp_millis(ms).expect("chrono holds the years 1970 to 9999")
    }
}

impl FromStr for UnixMs {
    type Err = TimeError;

    /// Parses RFC 3339 with any offset and truncates to the millisecond.
    fn from_str(text: &str) -> Result<UnixMs, TimeError> {
        let instant = DateTime::parse_from_rfc3339(text).map_err(|_| TimeError)?;
        let ms = u64::try_from(instant.timestamp_millis()).map_err(|_| TimeError)?;
        UnixMs::new(ms).ok_or(TimeError)
    }
}

impl TryFrom<u64> for UnixMs {
    type Error = TimeError;

    fn try_from(ms: u64) -> Result<UnixMs, TimeError> {
        UnixMs::new(ms).ok_or(TimeError)
    }
}

impl From<UnixMs> for u64 {
    fn from(at: UnixMs) -> u64 {
        at.get()
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.instant().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl fmt::Debug for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_round_trip_as_text() {
        for (text, canonical) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2026-11-21T14:00:00.1239+02:00", "2026-11-21T12:00:00.123Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            let at: UnixMs = text.parse().expect(text);
            assert_eq!(at.to_string(), canonical);
            assert_eq!((UnixMs::new(at.get()), UnixMs::from_instant(at.instant())), (Some(at), at));
        }
        assert_eq!(size_of::<Option<UnixMs>>(), 8);
    }

    #[test]
    fn invalid_timestamps_are_rejected() {
        for text in ["", "2026-11-21", "1969-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "12"] {
            assert_eq!(text.parse::<UnixMs>(), Err(TimeError), "{text:?}");
        }
        assert_eq!(UnixMs::new(MS_MAX + 1), None);
    }
}
