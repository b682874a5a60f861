//! I/O errors that name their file.

use std::io;
use std::path::{Path, PathBuf};

/// An I/O error and the file or folder that caused it.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct FileError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Returns true if a write failed for lack of space, a quota or a limit on the size of files. It
/// may succeed later.
pub fn is_full(err: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(err.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Adds the file to an I/O error.
pub trait AtPath<T> {
    /// Adds `path` to the error.
    ///
    /// # Errors
    /// The error of `self`.
    fn at(self, path: &Path) -> Result<T, FileError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError { path: path.to_owned(), source })
    }
}
