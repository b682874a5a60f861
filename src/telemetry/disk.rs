//! Metrics of the journal's disk: sync times, bytes written and errors.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use metrics::{Counter, Histogram, counter, histogram};

use crate::journal::fs::{DirLock, Fs, FsFile};

/// Extension of the files for whose syncs writers wait. The mark is written in the background and
/// not measured.
const SEGMENT: &str = "seg";

/// A file system that measures its calls.
pub struct MeteredFs<F> {
    disk: F,
    counts: DiskMetrics,
}

#[derive(Clone)]
struct DiskMetrics {
    syncs: Histogram,
    bytes: Counter,
    errors: Counter,
}

impl<F: Fs> MeteredFs<F> {
    pub fn new(disk: F) -> MeteredFs<F> {
        let counts = DiskMetrics {
            syncs: histogram!("dropdex_journal_sync_duration_seconds"),
            bytes: counter!("dropdex_journal_written_bytes_total"),
            errors: counter!("dropdex_journal_errors_total"),
        };
        MeteredFs { disk, counts }
    }

    fn file(&self, path: &Path, file: io::Result<Box<dyn FsFile>>) -> io::Result<Box<dyn FsFile>> {
        let file = self.counts.checked(file)?;
        let is_segment = path.extension().is_some_and(|extension| extension == SEGMENT);
        Ok(Box::new(MeteredFile { file, is_segment, counts: self.counts.clone() }))
    }
}

impl DiskMetrics {
    fn checked<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|_| self.errors.increment(1))
    }
}

impl<F: Fs> Fs for MeteredFs<F> {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.counts.checked(self.disk.create_dir_all(dir))
    }

    // Failed reads are not counted, because a missing file is not an error.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(dir)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.disk.read(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.disk.open_read(path)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk.len(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        self.file(path, self.disk.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        self.file(path, self.disk.open(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.counts.checked(self.disk.rename(from, to))
    }

    // Failures are not counted, because some file systems do not support hard links.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.counts.checked(self.disk.remove(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.counts.checked(self.disk.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        self.disk.lock(path)
    }
}

struct MeteredFile {
    file: Box<dyn FsFile>,
    is_segment: bool,
    counts: DiskMetrics,
}

impl MeteredFile {
    fn timed(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let started = Instant::now();
        let synced = self.counts.checked(sync());
        if self.is_segment {
            self.counts.syncs.record(started.elapsed());
        }
        synced
    }
}

impl FsFile for MeteredFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.counts.checked(self.file.write_all_at(bytes, offset))?;
        self.counts.bytes.increment(bytes.len() as u64);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.counts.checked(self.file.truncate(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.timed(|| self.file.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.timed(|| self.file.sync_all())
    }
}
