//! Exit codes of the command line, for scripts and service managers (`data/docs/configuration.md`).

use std::path::Path;

/// A failure with an exit code of its own. As the context of another error, it sets the code of that.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct ExitWith {
    /// 3 or higher.
    pub code: u8,
    /// The message for standard error.
    pub why: String,
}

/// A setting is wrong, or the settings file cannot be read.
pub const SETTINGS: u8 = 10;
/// The address to listen on is taken or not allowed.
pub const ADDRESS: u8 = 11;
/// A folder belongs to another user, or its permissions forbid its use.
pub const FOLDER: u8 = 12;
/// The disk is full.
pub const DISK_FULL: u8 = 13;
/// The clock is wrong, so that lists would get a wrong day.
pub const CLOCK: u8 = 14;
/// The index has the format of another version, or is damaged.
pub const INDEX: u8 = 15;

/// Marks errors of values in the settings that are only used at the start.
pub trait OfSettings<T> {
    /// Sets the exit code for wrong settings, and names the settings file.
    ///
    /// # Errors
    /// The error, with that code.
    fn of_settings(self, file: Option<&Path>) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> OfSettings<T> for Result<T, E> {
    fn of_settings(self, file: Option<&Path>) -> anyhow::Result<T> {
        self.map_err(|err| in_settings(err.into(), file))
    }
}

/// Adds the exit code for wrong settings, and the settings file.
pub fn in_settings(err: anyhow::Error, file: Option<&Path>) -> anyhow::Error {
    let why = file.map_or_else(
        || "invalid settings".to_owned(),
        |file| format!("invalid settings file {}", file.display()),
    );
    err.context(ExitWith::new(SETTINGS, why))
}

impl ExitWith {
    /// A failure with this code and message.
    pub fn new(code: u8, why: impl Into<String>) -> ExitWith {
        ExitWith { code, why: why.into() }
    }
}
