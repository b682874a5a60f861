//! The disk as the journal sees it: few calls, so that tests can make each of them fail, or keep a
//! disk of their own that forgets what was not synced.
//!
//! What makes what durable:
//!
//! - The bytes of a file, and its length as far as they need it: [`FsFile::sync_data`].
//! - A length that was cut: [`FsFile::sync_all`].
//! - That a name exists, is gone, or leads to another file (`create_dir_all`, `create`, `rename`,
//!   `remove`, `hard_link`): [`Fs::sync_dir`] of the folder the name is in.
//!
//! Nothing else lasts through a loss of power, in no order. [`Disk`] is the real one.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folders and names.
pub trait Fs: Send + Sync {
    /// Makes a folder and those above it; fine when it is there.
    ///
    /// # Errors
    /// What the system says.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// The files and folders in `dir`, in no order.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::NotFound`] when there is no such folder.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::NotFound`] when there is no such file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// A file open for reading from its start, for those too long to be read whole.
    ///
    /// # Errors
    /// As [`Fs::read`].
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// The length of a file in bytes.
    ///
    /// # Errors
    /// As [`Fs::read`].
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// An empty file open for writing, in place of any that was there.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>>;

    /// A file that is there, open for writing.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>>;

    /// Gives a file another name, in place of any file that had it, all at once: whoever looks finds
    /// the one file or the other.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// What the system says: the name is taken, or the file system knows no second names.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name; the file goes with its last one.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks the file at `path`, making it when it is not there. `None` when another process, or
    /// another holder in this one, has it. The lock ends when it is dropped, or with the process.
    ///
    /// # Errors
    /// What the system says.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Held>>>;
}

/// A lock that is held for as long as this lives.
pub trait Held: Send + Sync {
    /// Whether its path still leads to the file that was locked. Where it does not, the folder was
    /// taken from under the holder, and another process may hold a lock of the same name.
    ///
    /// # Errors
    /// What the system says.
    fn is_ours(&self) -> io::Result<bool>;
}

/// One open file.
pub trait FsFile: Send {
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// What the system says; any part may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts or grows (with zeros) the file to `len` bytes.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes content durable, and the length where it is needed to read the content.
    ///
    /// # Errors
    /// What the system says. After an error the content counts as lost: see the writer.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes content and everything about the file durable.
    ///
    /// # Errors
    /// As [`FsFile::sync_data`].
    fn sync_all(&self) -> io::Result<()>;
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

/// The mode of new files: they hold what people keep to themselves, and what passwords were made into.
const PRIVATE: u32 = 0o600;

impl Fs for Disk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
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
        file.write(true).create(true).truncate(true).mode(PRIVATE);
        Ok(Box::new(file.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(File::options().write(true).open(path)?))
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

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Held>>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(FileLock { file, path: path.to_owned() }))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(err)) => Err(err),
        }
    }
}

/// `flock` on a file: unlike `fcntl` locks it does not end when some other handle of the file is
/// closed.
struct FileLock {
    file: File,
    path: PathBuf,
}

impl Held for FileLock {
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
