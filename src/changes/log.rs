//! The files of the log as one sequence: [`ChangeLog`] reads it, [`Appender`] continues it.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::segment::{ChangeEntry, Mark, Segment, SegmentError, SegmentWriter};
use crate::vocab::change::Change;
use crate::vocab::file_error::{AtPath, FileError};
use crate::vocab::new_file;

/// Days for which events are kept.
pub const KEPT_DAYS: i32 = 90;
/// Size below which the newest file is replaced by one with more events, instead of starting a new
/// file.
const GROWING_BYTES: u64 = 1 << 20;
/// The first sequence number of a new log is the Unix time in seconds times this number. A log that
/// starts over thus has higher numbers than before, so no client mistakes a new event for an old
/// one.
const NUMBERS_A_SECOND: u64 = 1_000;
/// Prefix of the names of unfinished files.
const DRAFT: &str = ".new-";
const EXTENSION: &str = "seg";
/// Extension of files that were set aside.
const DAMAGED: &str = "damaged";

/// Why events cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Events after the number were removed; `oldest` is the first one kept.
    #[error("events before {oldest} are no longer kept")]
    TooOld { oldest: u64 },
    /// The log has not reached the number yet; `newest` is its last.
    #[error("the newest event is {newest}")]
    Ahead { newest: u64 },
    #[error(transparent)]
    Segment(#[from] SegmentError),
}

/// The log for readers; clones share it.
#[derive(Clone, Debug)]
pub struct ChangeLog {
    /// Oldest first, without gaps; never empty once a mark exists.
    segments: Arc<ArcSwap<Vec<Arc<Segment>>>>,
    newest: watch::Receiver<u64>,
    is_failing: Arc<AtomicBool>,
}

impl ChangeLog {
    /// Whether the last write failed. Events are then missing until a write succeeds.
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Sequence number of the newest event; in an empty log, one less than that of the first event
    /// to come.
    pub fn newest(&self) -> u64 {
        self.segments.load().last().map_or(0, |last| last.next() - 1)
    }

    /// Sequence number of the oldest event kept, or of the next event if the log is empty.
    pub fn oldest(&self) -> u64 {
        self.segments.load().first().map_or(1, |first| first.first())
    }

    /// The point up to which all changes are shown; `None` for a new log.
    pub fn mark(&self) -> Option<Mark> {
        self.segments.load().last().map(|last| last.mark())
    }

    /// Receives the newest sequence number whenever it rises. The channel closes when the server stops.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.clone()
    }

    /// Total size of the files in bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.load().iter().map(|segment| segment.bytes()).sum()
    }

    /// Returns up to `limit` events after sequence number `since`, oldest first. 0 stands for the oldest
    /// event that is kept.
    ///
    /// # Errors
    /// The errors of [`ChangeLog::visit`].
    pub fn read(&self, since: u64, limit: usize) -> Result<Vec<Change>, ReadError> {
        let mut changes = Vec::new();
        if limit > 0 {
            self.visit(since, |seq, entry| {
                changes.push(entry.change(seq));
                if changes.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        }
        Ok(changes)
    }

    /// Calls `visit` with the events after sequence number `since`, oldest first, until it breaks. 0
    /// stands for the oldest event that is kept.
    ///
    /// # Errors
    /// Some of the events are no longer kept, the number is beyond the newest event, or a file is
    /// unreadable or damaged.
    pub fn visit(
        &self,
        since: u64,
        mut visit: impl FnMut(u64, ChangeEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let segments = self.segments.load_full();
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Ok(()) };
        let from = if since == 0 { first.first() } else { since.saturating_add(1) };
        if from < first.first() {
            return Err(ReadError::TooOld { oldest: first.first() });
        }
        if from > last.next() {
            return Err(ReadError::Ahead { newest: last.next() - 1 });
        }
        let start = segments.partition_point(|segment| segment.next() <= from);
        for segment in &segments[start..] {
            if segment.visit(from, &mut visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The files of a log at one moment.
#[derive(Clone, Debug)]
pub struct Files(Arc<Vec<Arc<Segment>>>);

impl Files {
    /// Opens the files in a folder.
    ///
    /// # Errors
    /// The errors of [`Appender::open`].
    pub fn open(folder: &Path) -> Result<Files, SegmentError> {
        Appender::read(folder).map(|segments| Files(Arc::new(segments)))
    }

    /// The paths of the files, oldest first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|segment| segment.path())
    }

    /// Whether the two lists hold the same files.
    pub fn are(&self, other: &Files) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(other.0.iter()).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

/// The only writer of a log. Dropping the appender closes the channels of [`ChangeLog::subscribe`].
#[derive(Debug)]
pub struct Appender {
    folder: PathBuf,
    /// The content on disk.
    written: ArcSwap<Vec<Arc<Segment>>>,
    /// The content that readers see.
    shown: Arc<ArcSwap<Vec<Arc<Segment>>>>,
    newest: watch::Sender<u64>,
    /// Sequence number of the first event of a log without files.
    begin: u64,
    /// Whether events become visible to readers as soon as they are written.
    shows: AtomicBool,
    is_failing: Arc<AtomicBool>,
}

impl Appender {
    /// Opens the log in `folder`, which the first write creates. Damaged files, and all files before
    /// them, are set aside; readers that need them get [`ReadError::TooOld`].
    ///
    /// # Errors
    /// The folder cannot be read, or a file is of a newer format.
    pub fn open(folder: &Path, now: DateTime<Utc>) -> Result<(Appender, ChangeLog), SegmentError> {
        let segments = Arc::new(Appender::read(folder)?);
        let begin = u64::try_from(now.timestamp()).unwrap_or_default().max(1) * NUMBERS_A_SECOND;
        let newest = segments.last().map_or(begin, |last| last.next()) - 1;
        let (newest, receiver) = watch::channel(newest);
        let shown = Arc::new(ArcSwap::new(Arc::clone(&segments)));
        let is_failing = Arc::new(AtomicBool::new(false));
        let log = ChangeLog {
            segments: Arc::clone(&shown),
            newest: receiver,
            is_failing: Arc::clone(&is_failing),
        };
        let appender = Appender {
            folder: folder.to_owned(),
            written: ArcSwap::new(segments),
            shown,
            newest,
            begin,
            shows: AtomicBool::new(true),
            is_failing,
        };
        Ok((appender, log))
    }

    /// Opens the files of a folder.
    fn read(folder: &Path) -> Result<Vec<Arc<Segment>>, SegmentError> {
        let mut paths = Vec::new();
        let entries = match fs::read_dir(folder) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at(folder)?,
        };
        for entry in entries {
            let path = entry.at(folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(DRAFT) {
                fs::remove_file(&path).at(&path)?;
            } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
                paths.push(path);
            }
        }
        // Names have all digits of the first sequence number.
        paths.sort_unstable();
        let mut segments: Vec<Arc<Segment>> = Vec::new();
        while let Some(path) = paths.pop() {
            let after = segments.last().map(|segment| segment.first());
            match Segment::open(&path) {
                Ok(segment) if after.is_none_or(|after| after == segment.next()) => {
                    segments.push(Arc::new(segment));
                }
                Err(err @ (SegmentError::Io(_) | SegmentError::Version { .. })) => return Err(err),
                opened => {
                    let reason = match opened {
                        Ok(_) => format!("{}: a file after it is missing", path.display()),
                        Err(err) => err.to_string(),
                    };
                    tracing::error!(
                        error = reason,
                        "a file of the change log cannot be used; it and those before it are set aside, \
                         and clients that have not read them get 410"
                    );
                    paths.push(path);
                    for path in paths.drain(..) {
                        fs::rename(&path, path.with_extension(DAMAGED)).at(&path)?;
                    }
                }
            }
        }
        segments.reverse();
        Ok(segments)
    }

    /// Stops showing written files at once: from now on, readers see the files passed to
    /// [`Appender::show`].
    pub fn hold(&self) {
        self.shows.store(false, Ordering::Relaxed);
    }

    /// The files that are on disk.
    pub fn written(&self) -> Files {
        Files(self.written.load_full())
    }

    /// Opens the folder again after its files were replaced, and returns them. Readers do not see them until
    /// [`Appender::show`].
    ///
    /// # Errors
    /// The errors of [`Appender::open`].
    pub fn reopen(&self) -> Result<Files, SegmentError> {
        self.written.store(Arc::new(Appender::read(&self.folder)?));
        Ok(self.written())
    }

    /// Makes these files visible to readers.
    pub fn show(&self, Files(segments): &Files) {
        self.shown.store(Arc::clone(segments));
        let newest = segments.last().map_or(self.begin, |last| last.next()) - 1;
        self.newest.send_if_modified(|known| std::mem::replace(known, newest) != newest);
    }

    /// The point up to which all changes are derived; `None` for a new log.
    pub fn mark(&self) -> Option<Mark> {
        self.written.load().last().map(|last| last.mark())
    }

    /// Appends the events that `fill` pushes and moves the mark, atomically. Removes files whose events
    /// are no longer kept. Returns the number of events.
    ///
    /// # Errors
    /// A file cannot be written, or the newest one cannot be read.
    pub fn append(
        &self,
        mark: Mark,
        fill: impl FnOnce(&mut SegmentWriter) -> io::Result<()>,
    ) -> Result<u64, SegmentError> {
        let written = self.write(mark, fill);
        self.is_failing.store(written.is_err(), Ordering::Relaxed);
        written
    }

    fn write(
        &self,
        mark: Mark,
        fill: impl FnOnce(&mut SegmentWriter) -> io::Result<()>,
    ) -> Result<u64, SegmentError> {
        new_file::create_folder(&self.folder).at(&self.folder)?;
        let before = self.written.load_full();
        let last = before.last();
        let grown = last.filter(|last| last.bytes() < GROWING_BYTES);
        let next = last.map_or(self.begin, |last| last.next());
        let first = grown.map_or(next, |grown| grown.first());
        let path = self.folder.join(format!("{first:020}.{EXTENSION}"));
        let draft = tempfile::Builder::new().prefix(DRAFT).tempfile_in(&self.folder);
        let draft = draft.at(&self.folder)?;
        let file = draft.as_file().try_clone().at(&path)?;
        let mut writer = SegmentWriter::new(file, first).at(&path)?;
        if let Some(grown) = grown {
            copy(grown, &mut writer)?;
        }
        fill(&mut writer).at(&path)?;
        writer.finish(mark).at(&path)?;
        draft.persist(&path).map_err(|err| err.error).at(&path)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).at(&self.folder)?;
        let written = Arc::new(Segment::open(&path)?);
        let newest = written.next() - 1;
        let kept_from = mark.day.plus(-KEPT_DAYS);
        let older = &before[..before.len() - usize::from(grown.is_some())];
        let expired = older.iter().take_while(|segment| segment.last_day() < kept_from).count();
        let (expired, kept) = older.split_at(expired);
        self.written.store(Arc::new(kept.iter().cloned().chain([written]).collect()));
        if self.shows.load(Ordering::Relaxed) {
            self.show(&self.written());
        }
        for segment in expired {
            if let Err(err) = fs::remove_file(segment.path()) {
                let path = segment.path().display();
                tracing::warn!(%path, error = %err, "cannot remove a file of the change log");
            }
        }
        Ok(newest + 1 - next)
    }
}

/// Copies the entries of a file to a new one.
fn copy(segment: &Segment, writer: &mut SegmentWriter) -> Result<(), SegmentError> {
    let mut pushed = Ok(());
    let _ = segment.visit(segment.first(), &mut |_, entry| {
        pushed = writer.push(&entry);
        if pushed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let pushed: Result<(), FileError> = pushed.at(segment.path());
    Ok(pushed?)
}

#[cfg(test)]
mod tests;
