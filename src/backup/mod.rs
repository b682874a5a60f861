//! A backup: one archive of everything in an installation except the index, which can be rebuilt from
//! the lists.
//!
//! The archive is a plain tar file, written and read front to back in constant memory:
//!
//! ```text
//! backup.json        format, version, time, last record and state digest
//! settings.toml      the settings file, if there is one
//! journal/users.snap accounts and all that users wrote: a snapshot of the journal
//! changes/ sources/ zones/ tables/ facts/ sales/ corpus/
//! SHA256SUMS         a line a file, as `sha256sum --check` reads them; last, so that it proves completeness
//! ```
//!
//! A backup of a running server is consistent, because a later part can only be newer than an earlier one.
//! The journal comes first, since it records the last list that rules were matched against. The corpus
//! comes last, since sources and zones record which lists it holds. After a restore, a list that only the
//! corpus records is processed again.

//!
//! [`store`] keeps backups in a folder or a bucket, [`save`] makes, verifies and prunes them, and [`encrypt`] lets only
//! the holder of a private key read them.

mod archive;
mod collect;
pub mod encrypt;
mod files;
pub mod name;
pub mod save;
pub mod settings;
pub mod store;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use archive::{read, write};
pub use collect::{ARRIVING, Collected, Users, last_time, note_time, temporary};
pub use files::{FOLDERS, is_empty, link, put_in_place};

/// Raised when the content of an archive changes so that an older version could not restore it.
const FORMAT: u32 = 1;
const FACTS: &str = "backup.json";
const SUMS: &str = "SHA256SUMS";
/// The settings file in an archive.
pub const SETTINGS: &str = "settings.toml";
/// The snapshot of the journal in an archive.
pub const USERS: &str = "journal/users.snap";
/// File in the data folder that is replaced after each backup; its modification time is the time of
/// the backup.
const LAST: &str = "last-backup";

/// Identity of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupFacts {
    pub format: u32,
    /// The version of dropdex that wrote it.
    pub version: String,
    /// RFC 3339.
    pub created: String,
    /// Sequence number of the last journal record that it contains.
    pub seq: u64,
    /// Digest of the users' data, 64 hexadecimal digits.
    pub state_digest: String,
}

impl BackupFacts {
    /// Facts of a backup written by this version.
    pub fn new(created: String, seq: u64, state_digest: String) -> BackupFacts {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        BackupFacts { format: FORMAT, version, created, seq, state_digest }
    }
}

/// A file for an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Path in the archive, with slashes.
    pub name: String,
    /// Path on disk.
    pub path: PathBuf,
}

/// Result of writing or reading an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub facts: BackupFacts,
    /// Number of files.
    pub files: u64,
    pub bytes: u64,
}

/// Why a backup was not written or not read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot write the backup: {0}")]
    Write(io::Error),
    #[error("cannot read the backup: {0}")]
    Read(io::Error),
    #[error(
        "this is not a backup of `dropdex backup`: it does not begin with {FACTS}; a file of `dropdex journal \
         backup` is restored by `dropdex journal restore`"
    )]
    NotABackup,
    #[error(
        "the backup has format {0}, and this version reads {FORMAT}; restore it with a newer dropdex"
    )]
    Newer(u32),
    #[error("the backup is cut short: it ends before {SUMS}; use another one")]
    CutShort,
    #[error("{0}: the content differs from its checksum in {SUMS}; use another backup")]
    Changed(String),
    #[error("the backup lacks {0}, which {SUMS} lists; use another one")]
    Lost(String),
    #[error("the backup contains {0:?}, which has no place in a data folder; use another one")]
    Foreign(String),
    #[error(
        "the backup is encrypted; name the file with the private key of one of its recipients with --identity FILE"
    )]
    Encrypted,
    #[error(
        "no key of the identity file decrypts this backup; use the one whose public key was in [backup] encrypt_to when \
         the backup was made"
    )]
    OtherKey,
    #[error("the encrypted backup is damaged or cut short; use another one")]
    Undecryptable,
    #[error("{}: it changed while it was saved; run the command again", .0.display())]
    Moved(PathBuf),
}

impl BackupError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> BackupError + use<'_> {
        move |source| BackupError::Io { path: path.to_owned(), source }
    }
}

#[cfg(test)]
mod tests;
