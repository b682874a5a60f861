//! The folders of an installation that a backup contains.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::{BackupError, Member};
use crate::vocab::folder::{files_below, folders_below};
use crate::vocab::new_file;

/// Folders inside the data folder, in the order in which they are saved (see the parent module).
pub const FOLDERS: [&str; 7] =
    ["changes", "sources", "zones", "tables", "facts", "sales", "corpus"];
/// Number of attempts to list a folder without a concurrent change.
const TRIES_MAX: u32 = 100;
/// Longer than a tick of the clock that a file system takes its times from: 10 ms at most on Linux. Of two
/// changes that are further apart, the second one gets a later time.
const TICK: Duration = Duration::from_millis(20);

/// Links the files of all folders into the folder `to`, which is on the same disk: later writes do not
/// change them. Returns the files in the order of the archive.
///
/// # Errors
/// A folder cannot be read, or its files keep changing.
pub fn link(data: &Path, to: &Path) -> Result<Vec<Member>, BackupError> {
    let mut members = Vec::new();
    for folder in FOLDERS {
        members.extend(link_folder(data, folder, to)?);
    }
    Ok(members)
}

/// Links the files of one folder. Files are only added, removed or replaced as a whole, which changes the
/// time of their folder, so the links are a consistent snapshot if no time changed meanwhile. The list of
/// files alone does not show that: read during a change, it may lack both the old and the new file.
pub(super) fn link_folder(
    data: &Path,
    folder: &str,
    to: &Path,
) -> Result<Vec<Member>, BackupError> {
    let from = data.join(folder);
    let times = || folders_below(&from, |name| !is_private(name)).map_err(BackupError::at(&from));
    for _ in 0..TRIES_MAX {
        let before = times()?;
        thread::sleep(TICK);
        let files = files_in(&from, folder).map_err(BackupError::at(&from))?;
        let links = to.join(folder);
        match fs::remove_dir_all(&links) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return Err(BackupError::Io { path: links, source: err });
            }
            _ => {}
        }
        let mut members = Vec::new();
        let mut is_whole = true;
        for name in &files {
            let member = Member { name: format!("{folder}/{name}"), path: links.join(name) };
            let parent = member.path.parent().unwrap_or(&links);
            new_file::create_folder(parent).map_err(BackupError::at(parent))?;
            match fs::hard_link(from.join(name), &member.path) {
                Ok(()) => members.push(member),
                Err(err) if err.kind() == io::ErrorKind::NotFound => is_whole = false,
                Err(source) => return Err(BackupError::Io { path: from.join(name), source }),
            }
        }
        if is_whole && times()? == before {
            return Ok(members);
        }
    }
    Err(BackupError::Moved(from))
}

/// Returns the files below a folder in order. A missing folder has none.
fn files_in(folder: &Path, kind: &str) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for (path, entry) in files_below(folder, |name| !is_private(name))? {
        match entry.metadata() {
            Ok(found)
                if found.is_file()
                    && entry.file_name().to_str().is_some_and(|name| is_kept(kind, name)) =>
            {
                files.push(path);
            }
            Ok(_) => {}
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => return Err(err),
        }
    }
    Ok(files)
}

/// Whether a file or folder is a lock, a draft or a damaged file that was set aside.
fn is_private(name: &str) -> bool {
    name.starts_with('.') || name == "LOCK" || name == "lock" || name.ends_with(".damaged")
}

/// Whether a file is saved. Of the sources, only the choices, the contact and the states are saved, but not
/// unfinished downloads and refused lists.
fn is_kept(folder: &str, name: &str) -> bool {
    folder != "sources" || matches!(name, "enabled.json" | "contact.json" | "state.json")
}

/// Whether the folder has no entries or does not exist.
///
/// # Errors
/// It cannot be read.
pub fn is_empty(folder: &Path) -> Result<bool, BackupError> {
    match fs::read_dir(folder) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(true),
        entries => Ok(entries.map_err(BackupError::at(folder))?.next().is_none()),
    }
}

/// Whether an archive may contain a file with this path.
pub(super) fn has_a_place(name: &str) -> bool {
    let mut parts = name.split('/');
    let is_known = parts.next().is_some_and(|first| FOLDERS.contains(&first));
    let rest: Vec<&str> = parts.collect();
    is_known && !rest.is_empty() && rest.iter().all(|part| !part.is_empty() && !is_private(part))
}

/// Moves the folders of a restored archive from `from` to the data folder, where they must be missing or
/// empty.
///
/// # Errors
/// A disk operation fails.
pub fn put_in_place(from: &Path, data: &Path) -> Result<(), BackupError> {
    for folder in FOLDERS {
        let (new, place) = (from.join(folder), data.join(folder));
        if new.exists() {
            fs::rename(&new, &place).map_err(BackupError::at(&place))?;
        }
    }
    fs::File::open(data).and_then(|data| data.sync_all()).map_err(BackupError::at(data))
}
