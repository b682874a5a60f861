//! Files and folders below a folder.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Returns the paths of all files below a folder, relative to it and in order. Excluded names are
/// skipped; a folder with such a name is skipped with its content. A missing folder has no files.
///
/// # Errors
/// A folder cannot be read.
pub fn files_below(
    folder: &Path,
    counts: impl Fn(&str) -> bool,
) -> io::Result<Vec<(String, DirEntry)>> {
    Ok(walk(folder, counts)?.files)
}

/// Returns a folder and all folders below it, each with the time at which an entry was last added, removed
/// or replaced; a missing folder has none. Excluded names are skipped, as in [`files_below`].
///
/// # Errors
/// A folder cannot be read.
pub fn folders_below(
    folder: &Path,
    counts: impl Fn(&str) -> bool,
) -> io::Result<Vec<(String, Option<SystemTime>)>> {
    let mut found = Vec::new();
    for path in walk(folder, counts)?.folders {
        let modified = match fs::metadata(folder.join(&path)).and_then(|it| it.modified()) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => None,
            modified => Some(modified?),
        };
        found.push((path, modified));
    }
    Ok(found)
}

/// The paths below a folder, relative to it and in order.
struct Walked {
    /// With the folder itself, as an empty path.
    folders: Vec<String>,
    files: Vec<(String, DirEntry)>,
}

fn walk(folder: &Path, counts: impl Fn(&str) -> bool) -> io::Result<Walked> {
    let (mut files, mut folders, mut left) = (Vec::new(), Vec::new(), vec![String::new()]);
    while let Some(prefix) = left.pop() {
        let entries = match fs::read_dir(folder.join(&prefix)) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| counts(name)) else { continue };
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            if entry.file_type()?.is_dir() { left.push(path) } else { files.push((path, entry)) }
        }
        folders.push(prefix);
    }
    folders.sort_unstable();
    files.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Walked { folders, files })
}
