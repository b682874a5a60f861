//! Locks on folders that one process at a time may change.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::vocab::new_file;

/// Maximum wait for a held lock. A starting server holds each lock for a moment to remove leftover
/// files, and a worker releases its lock a moment after its server is killed. The caller should not
/// fail in either case. An ingest or rebuild holds the lock for longer.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Time between two attempts.
const RETRY_PERIOD: Duration = Duration::from_millis(10);

/// A lock on a folder. Dropping the lock releases the folder.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

/// Why a folder was not locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock on this file.
    Busy(PathBuf),
    Io {
        path: PathBuf,
        source: io::Error,
    },
}

impl FolderLock {
    /// Locks the file `name` in `folder`, waiting up to a second if necessary. Creates file and
    /// folder if they are missing.
    ///
    /// # Errors
    /// Another process holds the lock, or the folder cannot be used.
    pub fn take(folder: &Path, name: &str) -> Result<FolderLock, LockError> {
        FolderLock::take_within(WAIT_MAX, folder, name)
    }

    /// [`FolderLock::take`] without waiting, for work that the holder of the lock does anyway.
    ///
    /// # Errors
    /// The errors of [`FolderLock::take`].
    pub fn take_now(folder: &Path, name: &str) -> Result<FolderLock, LockError> {
        FolderLock::take_within(Duration::ZERO, folder, name)
    }

    fn take_within(wait_max: Duration, folder: &Path, name: &str) -> Result<FolderLock, LockError> {
        let until = Instant::now() + wait_max;
        let failed = |source| LockError::Io { path: folder.to_owned(), source };
        new_file::create_folder(folder).map_err(failed)?;
        let path = folder.join(name);
        let file = new_file::open(&path).map_err(failed)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FolderLock { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(RETRY_PERIOD)
                }
                Err(TryLockError::WouldBlock) => return Err(LockError::Busy(path)),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_lock_that_is_released_soon_is_waited_for() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("new");
        let held = FolderLock::take(&folder, "LOCK").expect("free");
        let is_busy =
            |taken| matches!(taken, Err(LockError::Busy(path)) if path.ends_with("new/LOCK"));
        assert!(is_busy(FolderLock::take_now(&folder, "LOCK")));
        assert!(
            is_busy(FolderLock::take_within(2 * RETRY_PERIOD, &folder, "LOCK")),
            "it was held throughout"
        );
        FolderLock::take_now(&folder, "OTHER").expect("each file has its own");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| FolderLock::take_within(MINUTE, &folder, "LOCK"));
            assert!(!waiting.is_finished(), "it is held");
            drop(held);
            waiting.join().expect("no panic").expect("free by now");
        });
    }

    #[test]
    fn the_error_names_a_folder_that_cannot_be_created() {
        let parent = tempfile::tempdir().expect("a folder");
        let file = parent.path().join("file");
        fs::write(&file, "").expect("written");
        let taken = FolderLock::take(&file, "LOCK");
        assert!(matches!(&taken, Err(LockError::Io { path, .. }) if *path == file), "{taken:?}");
    }
}
