//! Names of backups in a store.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, Utc};

const PREFIX: &str = "dropdex-";
const TIME: &str = "%Y%m%dT%H%M%SZ";
const PLAIN: &str = ".tar";
const ENCRYPTED: &str = ".tar.age";
/// Suffix of the file with the checksum of a backup.
const CHECKSUM: &str = ".sha256";

/// The name of a backup: `dropdex-20260315T030000Z.tar`, or `.tar.age` if it is encrypted. Names are ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackupName {
    /// In whole seconds.
    pub at: DateTime<Utc>,
    pub is_encrypted: bool,
}

impl BackupName {
    /// Parses a name; `None` for other files.
    pub fn parse(text: &str) -> Option<BackupName> {
        let rest = text.strip_prefix(PREFIX)?;
        let (time, suffix) = rest.split_at_checked(rest.find('.')?)?;
        let at = NaiveDateTime::parse_from_str(time, TIME).ok()?.and_utc();
        let name = BackupName { at, is_encrypted: suffix == ENCRYPTED };
        // `TIME` also matches other spellings, such as a sign.
        (name.to_string() == text).then_some(name)
    }

    /// Parses the name of the file with a backup's checksum.
    pub(super) fn parse_checksum(text: &str) -> Option<BackupName> {
        BackupName::parse(text.strip_suffix(CHECKSUM)?)
    }

    /// Returns the name of the file with the checksum of the backup.
    pub(super) fn checksum(&self) -> String {
        format!("{self}{CHECKSUM}")
    }
}

impl fmt::Display for BackupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.is_encrypted { ENCRYPTED } else { PLAIN };
        write!(f, "{PREFIX}{}{suffix}", self.at.format(TIME))
    }
}
