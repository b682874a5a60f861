//! The section `[inbox]`: the folder whose lists are ingested as they arrive.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::config::number::Bounded;

/// Long enough for a copy in progress to grow between two scans, short enough to ingest a list
/// soon.
const PERIOD_DEFAULT: Duration = Duration::from_secs(5);
const SECONDS_MAX: u32 = 86_400;

/// Settings of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InboxSettings {
    pub enabled: bool,
    /// Interval between two scans of the folder.
    #[serde(rename = "seconds", deserialize_with = "seconds")]
    pub period: Duration,
}

impl Default for InboxSettings {
    fn default() -> InboxSettings {
        InboxSettings { enabled: true, period: PERIOD_DEFAULT }
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = Bounded::<1, SECONDS_MAX>::deserialize(deserializer)?;
    Ok(Duration::from_secs(seconds.get()))
}
