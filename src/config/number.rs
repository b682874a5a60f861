//! Numbers of the settings file, with their ranges.

use std::time::Duration;

use serde::Deserialize;

const DAY_SECONDS: f64 = 86_400.0;

/// An integer in `MIN..=MAX`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "u32")]
pub struct Bounded<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Bounded<MIN, MAX> {
    /// The number, as a type whose range includes `MAX`.
    pub fn get<T: TryFrom<u32>>(self) -> T {
        T::try_from(self.0).ok().expect("callers choose a type that holds MAX")
    }
}

impl<const MIN: u32, const MAX: u32> TryFrom<u32> for Bounded<MIN, MAX> {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        if (MIN..=MAX).contains(&number) {
            Ok(Bounded(number))
        } else {
            Err(format!("{number} is out of range; it must be {MIN} to {MAX}"))
        }
    }
}

/// A duration in seconds, from `MIN_MS` milliseconds to a day.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds<const MIN_MS: u32>(Duration);

impl<const MIN_MS: u32> Seconds<MIN_MS> {
    /// The duration of a setting, or its default.
    pub fn or(setting: Option<Self>, default: Duration) -> Duration {
        setting.map_or(default, |seconds| seconds.0)
    }
}

impl<const MIN_MS: u32> TryFrom<f64> for Seconds<MIN_MS> {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        let min = f64::from(MIN_MS) / 1000.0;
        if (min..=DAY_SECONDS).contains(&seconds) {
            Ok(Seconds(Duration::from_secs_f64(seconds)))
        } else {
            Err(format!("{seconds} is out of range; it must be {min} to {DAY_SECONDS} seconds"))
        }
    }
}

/// A duration in milliseconds, up to a day.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub struct Milliseconds(pub Duration);

impl TryFrom<f64> for Milliseconds {
    type Error = String;

    fn try_from(milliseconds: f64) -> Result<Self, String> {
        Seconds::<0>::try_from(milliseconds / 1000.0).map(|seconds| Milliseconds(seconds.0))
    }
}
