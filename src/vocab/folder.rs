//! Files below a folder.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

/// Returns the paths of all files below a folder, relative to it and in order. Excluded names are
/// skipped; a folder with such a name is skipped with its content. A missing folder has no files.
///
/// # Errors
/// A folder cannot be read.
pub fn files_below(
    folder: &Path,
    counts: impl Fn(&str) -> bool,
) -> io::Result<Vec<(String, DirEntry)>> {
    let (mut files, mut folders) = (Vec::new(), vec![String::new()]);
    while let Some(prefix) = folders.pop() {
        let entries = match fs::read_dir(folder.join(&prefix)) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| counts(name)) else { continue };
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            if entry.file_type()?.is_dir() { folders.push(path) } else { files.push((path, entry)) }
        }
    }
    files.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(files)
}
