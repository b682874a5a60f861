//! Collects the content of a backup beside a running server.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use chrono::{DateTime, SecondsFormat, Utc};
use tempfile::TempDir;

use super::{BackupError, BackupFacts, Done, LAST, Member, SETTINGS, USERS, archive, files};
use crate::vocab::clock::Clock;
use crate::vocab::whole_file;

/// Prefixes of the names of temporary folders in the data folder.
const LINKS: &str = ".backup-";
pub const ARRIVING: &str = ".restore-";
/// Age at which temporary files of killed commands are removed.
const LEFTOVER_AFTER: Duration = Duration::from_secs(24 * 3600);
const BUFFER_BYTES: usize = 1 << 20;

/// Identity of the users' data in a backup.
pub struct Users {
    /// Sequence number of the last journal record.
    pub seq: u64,
    pub state_digest: String,
}

/// The files of a backup, linked so that later writes do not change them.
pub struct Collected {
    facts: BackupFacts,
    members: Vec<Member>,
    /// Removed at the end.
    _links: TempDir,
}

impl Collected {
    /// Collects the files of a data folder and the settings file. `save_users` writes a snapshot of the users' data to
    /// a new file.
    ///
    /// # Errors
    /// A file cannot be read, or the disk is full.
    pub fn new(
        data: &Path,
        settings: Option<&PathBuf>,
        clock: Clock,
        save_users: impl FnOnce(PathBuf) -> anyhow::Result<Users>,
    ) -> anyhow::Result<Collected> {
        let links = temporary(data, LINKS)?;
        // The journal comes first; see the order in the parent module.
        let path = links.path().join("users.snap");
        let users = save_users(path.clone())?;
        let mut members = Vec::new();
        if let Some(settings) = settings {
            members.push(Member { name: SETTINGS.to_owned(), path: settings.clone() });
        }
        members.push(Member { name: USERS.to_owned(), path });
        members.extend(files::link(data, links.path())?);
        let created = clock.now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let facts = BackupFacts::new(created, users.seq, users.state_digest);
        Ok(Collected { facts, members, _links: links })
    }

    /// Returns the length of all files.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn bytes(&self) -> Result<u64, BackupError> {
        let length = |member: &Member| {
            fs::metadata(&member.path).map(|it| it.len()).map_err(BackupError::at(&member.path))
        };
        self.members.iter().map(length).sum()
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// A file cannot be read, or the archive cannot be written.
    pub fn write(&self, out: impl Write) -> Result<Done, BackupError> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        archive::write(out, self.facts.clone(), &self.members)
    }
}

/// Notes the time of a backup for the metric of the newest one.
///
/// # Errors
/// The file cannot be written.
pub fn note_time(data: &Path, facts: &BackupFacts) -> anyhow::Result<()> {
    let path = data.join(LAST);
    whole_file::replace(&path, format!("{}\n", facts.created).as_bytes()).with_context(|| {
        format!("the backup is complete, but {} cannot be written", path.display())
    })
}

/// Returns the time of the newest backup; `None` before the first.
pub fn last_time(data: &Path) -> Option<DateTime<Utc>> {
    fs::read_to_string(data.join(LAST)).ok()?.trim().parse().ok()
}

/// Creates a temporary folder, and removes those that killed commands left.
///
/// # Errors
/// The folder cannot be created.
pub fn temporary(data: &Path, prefix: &str) -> anyhow::Result<TempDir> {
    for prefix in [LINKS, ARRIVING] {
        remove_leftovers(data, prefix);
    }
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(data);
    folder.with_context(|| format!("cannot make a folder in {}", data.display()))
}

/// Removes old files and folders whose names start with `prefix`. Failures are ignored, because they cost only disk
/// space.
pub(super) fn remove_leftovers(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_old = || {
            let modified = entry.metadata().and_then(|found| found.modified()).ok()?;
            SystemTime::now().duration_since(modified).ok()
        };
        if entry.file_name().to_string_lossy().starts_with(prefix)
            && is_old().is_some_and(|age| age > LEFTOVER_AFTER)
        {
            let path = entry.path();
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
}
