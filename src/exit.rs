//! Exit codes of the command line, for scripts and service managers (`data/docs/configuration.md`).

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

impl ExitWith {
    /// A failure with this code and message.
    pub fn new(code: u8, why: impl Into<String>) -> ExitWith {
        ExitWith { code, why: why.into() }
    }
}
