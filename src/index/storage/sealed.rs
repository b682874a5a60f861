//! A read-only tantivy directory over bytes we own: verified once, never mapped, so that nothing
//! that happens to the files on disk reaches a query (a truncated mapping kills with SIGBUS).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};

/// Files by name; clones share them.
#[derive(Clone)]
pub struct SealedDirectory {
    files: Arc<HashMap<PathBuf, OwnedBytes>>,
}

impl SealedDirectory {
    /// Creates a directory of these files.
    pub fn new(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> SealedDirectory {
        let files = files.into_iter().map(|(path, bytes)| (path, OwnedBytes::new(bytes)));
        SealedDirectory { files: Arc::new(files.collect()) }
    }

    fn get(&self, path: &Path) -> Result<OwnedBytes, OpenReadError> {
        let found = self.files.get(path).cloned();
        found.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

impl fmt::Debug for SealedDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.files.keys()).finish()
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a served index is never written")
}

impl Directory for SealedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(self.get(path)?))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let filepath = path.to_owned();
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.files.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_owned()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Ok(self.get(path)?.as_slice().to_vec())
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// No lock is needed: the directory is read-only.
    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
