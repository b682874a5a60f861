//! The section `[inbox]`: lists that are ingested as they arrive.

use std::time::Duration;

use serde::Deserialize;

/// Long enough for a copy to go on between two looks, short enough that nobody waits for a list.
const SECONDS_DEFAULT: u32 = 5;
const SECONDS_MAX: u32 = 86_400;

/// Whether the folder is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxSettings {
    pub enabled: bool,
    /// Between two looks.
    pub period: Duration,
}

/// The section as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InboxFile {
    enabled: Option<bool>,
    seconds: Option<u32>,
}

impl InboxFile {
    /// The settings.
    ///
    /// # Errors
    /// A number is out of its range.
    pub fn settings(&self) -> anyhow::Result<InboxSettings> {
        let seconds = self.seconds.unwrap_or(SECONDS_DEFAULT);
        anyhow::ensure!(
            (1..=SECONDS_MAX).contains(&seconds),
            "inbox.seconds must be 1 to {SECONDS_MAX}"
        );
        let period = Duration::from_secs(seconds.into());
        Ok(InboxSettings { enabled: self.enabled.unwrap_or(true), period })
    }
}
