//! Creates files and folders. A symbolic link in their place is never followed, so a user who can
//! write to a folder cannot redirect the program elsewhere. Other users cannot read them, since
//! some lists are for internal use only.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Mode of files: the owner writes, the group reads.
const FILE_MODE: u32 = 0o640;
/// Mode of folders.
const FOLDER_MODE: u32 = 0o750;
/// Permissions that no file of this process gets, including files that libraries create.
const UMASK: u32 = 0o027;

/// Creates a file, for reading and writing.
///
/// # Errors
/// The name exists, or the file cannot be created.
pub fn create_new(path: &Path) -> io::Result<File> {
    options().create_new(true).open(path)
}

/// Creates a file that replaces the one with this name. The old bytes stay reachable under other links.
///
/// # Errors
/// The file cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => create_new(path),
    }
}

/// Opens a file without truncating it, or creates it: for locks, and for files to which a later run
/// appends.
///
/// # Errors
/// The path is a link or anything other than a file, or the file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let file = options().create(true).truncate(false).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"))
    }
}

/// Creates a folder and its missing parents.
///
/// # Errors
/// One of them cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates a folder.
///
/// # Errors
/// The name exists, or the folder cannot be created.
pub fn create_new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)
}

/// Restricts the modes of all files that this process, its libraries and its children create from
/// now on. A stricter umask is kept.
pub fn restrict_modes() {
    let before = rustix::process::umask(Mode::from_raw_mode(UMASK));
    rustix::process::umask(before | Mode::from_raw_mode(UMASK));
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    options.read(true).write(true).mode(FILE_MODE).custom_flags(no_follow);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_are_neither_followed_nor_truncated() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = folder.path().join("other");
        fs::write(&other, "precious").expect("written");
        let at = |name: &str| folder.path().join(name);
        symlink(&other, at("link")).expect("linked");
        symlink(at("nowhere"), at("dangling")).expect("linked");
        fs::hard_link(&other, at("hard")).expect("linked");
        for link in ["link", "dangling"] {
            assert!(open(&at(link)).is_err() && create_new(&at(link)).is_err(), "{link}");
        }
        assert!(open(folder.path()).is_err(), "a folder is not a file");
        drop(open(&at("hard")).expect("opened"));
        for link in ["link", "dangling", "hard"] {
            assert_eq!(create(&at(link)).expect("created").metadata().expect("open").len(), 0);
        }
        assert_eq!(fs::read_to_string(&other).expect("readable"), "precious");
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn others_may_read_neither_files_nor_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("a/b");
        create_folder(&inner).expect("created");
        create_folder(&inner).expect("there already");
        create_new(&inner.join("new")).expect("created");
        create(&inner.join("created")).expect("created");
        open(&inner.join("opened")).expect("created");
        for path in ["a", "a/b", "a/b/new", "a/b/created", "a/b/opened"] {
            let mode = fs::metadata(folder.path().join(path)).expect("there").permissions().mode();
            assert_eq!(mode & 0o027, 0, "{path}: {mode:o}");
        }
    }
}
