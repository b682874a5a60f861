//! File system interface of the journal. The interface has few calls, so that tests can make each
//! of them fail, or can simulate a disk that loses all unsynced data.
//!
//! These calls make data durable:
//!
//! - The bytes of a file, and its length if the bytes cannot be read without it: [`FsFile::sync_data`].
//! - A reduced length: [`FsFile::sync_all`].
//! - The fact that a name exists, is gone, or leads to another file (`create_dir_all`, `create`,
//!   `rename`, `remove`, `hard_link`): [`Fs::sync_dir`] of the folder that contains the name.
//!
//! Nothing else survives a loss of power in any guaranteed order. [`Disk`] is the real file system.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folders and names.
pub trait Fs: Send + Sync {
    /// Creates a folder and its parents, if missing.
    ///
    /// # Errors
    /// The error of the system.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Lists the files and folders in `dir`, in any order.
    ///
    /// # Errors
    /// The error of the system; [`io::ErrorKind::NotFound`] if the folder does not exist.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// Reads the whole content of a file.
    ///
    /// # Errors
    /// The error of the system; [`io::ErrorKind::NotFound`] if the file does not exist.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Opens a file for reading from its start, for files too long to be read whole.
    ///
    /// # Errors
    /// As [`Fs::read`].
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// Returns the length of a file in bytes.
    ///
    /// # Errors
    /// As [`Fs::read`].
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Creates an empty file for writing, replacing an existing one.
    ///
    /// # Errors
    /// The error of the system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>>;

    /// Opens an existing file for writing.
    ///
    /// # Errors
    /// The error of the system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>>;

    /// Renames a file atomically, replacing an existing one.
    ///
    /// # Errors
    /// The error of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Creates a hard link.
    ///
    /// # Errors
    /// The name exists, or the file system does not support hard links.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name, and the file with its last name.
    ///
    /// # Errors
    /// The error of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    ///
    /// # Errors
    /// The error of the system.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks the file at `path`, creating it if missing. `None` when another process, or another
    /// holder in this one, has the lock. Dropping the lock or ending the process releases it.
    ///
    /// # Errors
    /// The error of the system.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>>;
}

/// A held lock, released on drop.
pub trait DirLock: Send + Sync {
    /// Returns true if the path still leads to the locked file. Otherwise the folder was replaced,
    /// and another process may hold a lock of the same name.
    ///
    /// # Errors
    /// The error of the system.
    fn is_ours(&self) -> io::Result<bool>;
}

/// An open file.
pub trait FsFile: Send {
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// The error of the system; any part may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Truncates or extends (with zeros) the file to `len` bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes the content durable, and the length if the content cannot be read without it.
    ///
    /// # Errors
    /// The error of the system. The content then counts as lost.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes content and metadata durable.
    ///
    /// # Errors
    /// As [`FsFile::sync_data`].
    fn sync_all(&self) -> io::Result<()>;
}

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

/// Mode of new files, which hold private data and password hashes.
const PRIVATE: u32 = 0o600;
/// Mode of new folders.
const PRIVATE_FOLDER: u32 = 0o750;
/// Flag that refuses to follow symbolic links.
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

impl Fs for Disk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        let mut file = File::options();
        file.write(true).create(true).truncate(true).mode(PRIVATE).custom_flags(NO_FOLLOW);
        Ok(Box::new(file.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(File::options().write(true).custom_flags(NO_FOLLOW).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(PRIVATE).custom_flags(NO_FOLLOW);
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(FileLock { file, path: path.to_owned() }))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(err)) => Err(err),
        }
    }
}

/// `flock` on a file. Unlike an `fcntl` lock, it does not end when another handle of the file closes.
struct FileLock {
    file: File,
    path: PathBuf,
}

impl DirLock for FileLock {
    fn is_ours(&self) -> io::Result<bool> {
        let there = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(err) => return Err(err),
        };
        let held = self.file.metadata()?;
        Ok((there.dev(), there.ino()) == (held.dev(), held.ino()))
    }
}

impl FsFile for File {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }
}
