//! Locks on folders that one process at a time changes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long whoever holds a lock is waited for. A server that starts holds each for a moment, to remove
/// what was left behind, and work that ends with a killed server gives its back a moment later: neither
/// is worth failing for. Work itself takes longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is asked for meanwhile.
const PERIOD: Duration = Duration::from_millis(10);

/// A folder that only this process changes, for as long as this is held.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

/// Why a folder is not this process' to change.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds this file.
    Busy(PathBuf),
    Io {
        path: PathBuf,
        source: io::Error,
    },
}

impl FolderLock {
    /// Takes the lock on the file `name` in `folder`, now or soon. Both are made when they are new.
    ///
    /// # Errors
    /// Another process works on the folder, or it cannot be used.
    pub fn take(folder: &Path, name: &str) -> Result<FolderLock, LockError> {
        FolderLock::take_within(PATIENCE, folder, name)
    }

    /// As `take`, for what can as well be left to whoever holds the lock.
    ///
    /// # Errors
    /// As `take`.
    pub fn take_now(folder: &Path, name: &str) -> Result<FolderLock, LockError> {
        FolderLock::take_within(Duration::ZERO, folder, name)
    }

    fn take_within(patience: Duration, folder: &Path, name: &str) -> Result<FolderLock, LockError> {
        let until = Instant::now() + patience;
        let failed = |source| LockError::Io { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let path = folder.join(name);
        let file = File::create(&path).map_err(failed)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FolderLock { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(PERIOD),
                Err(TryLockError::WouldBlock) => return Err(LockError::Busy(path)),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn who_lets_go_soon_is_waited_for() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("new");
        let held = FolderLock::take(&folder, "LOCK").expect("nobody holds it");
        let is_busy =
            |taken| matches!(taken, Err(LockError::Busy(path)) if path.ends_with("new/LOCK"));
        assert!(is_busy(FolderLock::take_now(&folder, "LOCK")));
        assert!(
            is_busy(FolderLock::take_within(2 * PERIOD, &folder, "LOCK")),
            "it was held all the time"
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
    fn a_folder_that_cannot_be_is_named() {
        let parent = tempfile::tempdir().expect("a folder");
        let file = parent.path().join("file");
        fs::write(&file, "").expect("written");
        let taken = FolderLock::take(&file, "LOCK");
        assert!(matches!(&taken, Err(LockError::Io { path, .. }) if *path == file), "{taken:?}");
    }
}
