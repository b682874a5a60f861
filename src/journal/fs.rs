//! The disk as the journal sees it: few calls, so that tests can make each of them fail.
//!
//! [`Disk`] is the real one. The lock is not here: it guards processes, which only the real disk
//! knows.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
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
    /// What the system says.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

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

    /// Gives a file another name, in place of any file that had it.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
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

    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(File::options().write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
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
