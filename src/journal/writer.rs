//! The writer thread. The thread takes all waiting appends, writes them together, syncs once, and then
//! applies and acknowledges each in order of sequence numbers. The sync takes milliseconds, so all
//! waiting appends share one.
//!
//! After a failed write or sync, appends are refused until the next open, which reads what the disk
//! holds. Only a full disk is retried.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Options;
use super::bytes::StoreUuid;
use super::error::{AppendError, JournalError};
use super::frame::Position;
use super::frame::RecordKind;
use super::fs::DirLock;
use super::log::{Log, Opening, WriteFailure};
use super::queue::{Appended, Done, Pending, Shared, WriterState};
use super::recovery::{Recovery, read_journal};
use super::replay::Replay;
use super::segment::{exists, io_error, lock, make_folder, snapshot_path};
use super::snapshot::{Busy, IntoJournal, SnapshotContext, SnapshotWriter};

/// Timeout of [`Journal::append`] for room in the queue.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(2);

/// An open journal. Dropping the journal writes and syncs waiting appends; [`Journal::close`] also
/// records a clean close.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    dir: PathBuf,
    /// Lock of the folder, released with the last handle or at the end of the process.
    context: SnapshotContext,
    log_bytes: Arc<AtomicU64>,
    ends_segment: Arc<AtomicBool>,
    is_snapshotting: Arc<AtomicBool>,
}

/// A pending append.
pub struct AppendFuture {
    answered: oneshot::Receiver<Result<Appended, AppendError>>,
    shared: Arc<Shared>,
}

impl AppendFuture {
    /// Waits until the append is durable and applied.
    ///
    /// # Errors
    /// [`AppendError`]: it could not be written or synced.
    pub async fn durable(self) -> Result<Appended, AppendError> {
        self.answered.await.unwrap_or_else(|_| Err(self.shared.refusal()))
    }
}

impl Journal {
    /// Opens or creates the journal in `options.dir` and passes the newest undamaged snapshot and every
    /// later record of the caller's kinds to `replay`, in order. When this function returns, the record
    /// of this opening is durable. On a full disk the journal is read-only until there is room for that
    /// record.
    ///
    /// # Errors
    /// [`JournalError`]: the journal is in use or damaged, or the disk failed. A damaged journal is
    /// left unchanged.
    pub fn open(
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<(Journal, Recovery), JournalError> {
        let (dir, fs) = (options.dir.clone(), Arc::clone(&options.fs));
        make_folder(fs.as_ref(), &dir)?;
        let held: Arc<dyn DirLock> = Arc::from(lock(fs.as_ref(), &dir)?);
        let recovered = read_journal(fs.as_ref(), &dir, None, replay)?;
        let log_bytes = Arc::new(AtomicU64::new(recovered.report.log_bytes));
        let ends_segment = Arc::default();
        let store_uuid = recovered.store_uuid.map_or_else(random_uuid, Ok)?;
        let mut opening = Opening {
            options,
            held: Arc::clone(&held),
            store_uuid,
            recovered,
            log_bytes: Arc::clone(&log_bytes),
            ends_segment: Arc::clone(&ends_segment),
        };
        let settled = opening.settle();
        let report = opening.recovered.report.clone();
        // The content of the last segment is kept only while the open waits for disk space.
        let begun = match settled {
            Ok(log) => Ok(log),
            Err(WriteFailure::Full) => Err(opening),
            Err(WriteFailure::Fenced) => return Err(JournalError::Locked { dir }),
            Err(WriteFailure::Fatal(err)) => return Err(err),
        };
        log_recovery(&dir, &report);
        let shared = Arc::new(match &begun {
            Ok(log) => Shared::new(WriterState::Open, log.durable_seq()),
            Err(_) => Shared::new(WriterState::Full, report.last_seq),
        });
        let writer = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("journal".into())
            .spawn(move || match begun {
                Ok(log) => write_until_end(&writer, log),
                Err(opening) => write_once_there_is_room(&writer, opening),
            })
            .map_err(io_error("start the writer thread of", &dir))?;
        let thread = Mutex::new(Some(thread));
        let context = SnapshotContext { fs, shared: Arc::clone(&shared), held, store_uuid };
        let is_snapshotting = Arc::default();
        let journal =
            Journal { shared, thread, dir, context, log_bytes, ends_segment, is_snapshotting };
        Ok((journal, report))
    }

    /// Appends a record and blocks until it is durable. `apply` then runs on the writer's thread,
    /// in order of sequence numbers, before this returns. Blocks, so async code must not call it.
    ///
    /// # Errors
    /// [`AppendError`]; `apply` has not run.
    pub fn append(
        &self,
        kind: RecordKind,
        payload: Vec<u8>,
        apply: impl FnOnce(Appended) + Send + 'static,
    ) -> Result<Appended, AppendError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let done = applying(apply, move |result| {
            // The waiting thread may have ended; the record is durable in any case.
            let _ = answer.send(result);
        });
        self.shared.submit(
            Pending { kind, payload, is_waited_for: true, done: Some(done) },
            ROOM_WAIT_MAX,
        )?;
        answered.recv().unwrap_or_else(|_| Err(self.shared.refusal()))
    }

    /// As [`Journal::append`], for async code: enqueues at once and returns a future. The record is
    /// written even if the future is dropped.
    ///
    /// # Errors
    /// [`AppendError::Busy`] if the queue is full, or another [`AppendError`].
    pub fn append_async(
        &self,
        kind: RecordKind,
        payload: Vec<u8>,
        apply: impl FnOnce(Appended) + Send + 'static,
    ) -> Result<AppendFuture, AppendError> {
        let (answer, answered) = oneshot::channel();
        let done = applying(apply, move |result| {
            // The future may have been dropped.
            let _ = answer.send(result);
        });
        self.shared.submit(
            Pending { kind, payload, is_waited_for: true, done: Some(done) },
            Duration::ZERO,
        )?;
        Ok(AppendFuture { answered, shared: Arc::clone(&self.shared) })
    }

    /// Appends without waiting. The record soon reaches the page cache, where it survives SIGKILL, and
    /// the disk with the next group or within 50 ms. `apply` runs on the writer's thread once the
    /// record is written, in order of sequence numbers, and is dropped if the write fails.
    ///
    /// # Errors
    /// [`AppendError`]; nothing has been written.
    pub fn append_lazy(
        &self,
        kind: RecordKind,
        payload: Vec<u8>,
        apply: impl FnOnce(Appended) + Send + 'static,
    ) -> Result<(), AppendError> {
        let done = Some(applying(apply, |_| {}));
        self.shared.submit(Pending { kind, payload, is_waited_for: false, done }, Duration::ZERO)
    }

    /// Returns the bytes of records since the last snapshot, which the next open would read.
    pub fn log_bytes_since_snapshot(&self) -> u64 {
        self.log_bytes.load(Ordering::Relaxed)
    }

    /// Lets the next append begin a segment, so that the second snapshot from now on removes every record
    /// before that append. Without it, old records stay until their segment is full. Does nothing on a
    /// full disk.
    pub fn end_segment(&self) {
        self.ends_segment.store(true, Ordering::Relaxed);
    }

    /// Begins a snapshot in the journal's folder of the state after the record at `at`. Call this as
    /// soon as that state is captured. Appends continue meanwhile. When the snapshot is finished,
    /// superseded files are removed.
    ///
    /// # Errors
    /// The disk failed, or another snapshot is being written.
    pub fn snapshot(&self, at: Position) -> Result<SnapshotWriter, JournalError> {
        let busy = Busy::begin(&self.is_snapshotting)
            .ok_or_else(|| JournalError::SnapshotBusy { dir: self.dir.clone() })?;
        let into_journal = IntoJournal {
            log_bytes: self.log_bytes_since_snapshot(),
            since: Arc::clone(&self.log_bytes),
            _one_at_a_time: busy,
        };
        let path = snapshot_path(&self.dir, at.seq);
        SnapshotWriter::begin(self.context.clone(), path, at, Some(into_journal))
    }

    /// As [`Journal::snapshot`], but to any file, from which [`super::restore`] creates a journal.
    ///
    /// # Errors
    /// The disk failed, or the file exists.
    pub fn backup(&self, at: Position, file: &Path) -> Result<SnapshotWriter, JournalError> {
        if exists(self.context.fs.as_ref(), file)? {
            return Err(JournalError::Exists { path: file.to_owned() });
        }
        SnapshotWriter::begin(self.context.clone(), file.to_owned(), at, None)
    }

    /// Returns the last record known to be synced, up to which [`super::inspect()`] can read the files.
    pub fn durable_seq(&self) -> u64 {
        self.shared.lock().durable_seq
    }

    /// Checks that appends are accepted.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`] after a failed write or sync, [`AppendError::DiskFull`] until
    /// there is room, [`AppendError::Fenced`] once another process holds the folder,
    /// [`AppendError::Closed`] after a close.
    pub fn health(&self) -> Result<(), AppendError> {
        let queue = self.shared.lock();
        if queue.state == WriterState::Open { Ok(()) } else { Err(queue.state.refusal()) }
    }

    /// Writes and syncs waiting appends, then a record of the clean close. Later appends are refused. A
    /// second close does nothing.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`] or [`AppendError::Fenced`] if a write failed, now or earlier.
    pub fn close(&self) -> Result<(), AppendError> {
        self.end(true);
        match self.shared.refusal() {
            AppendError::Closed => Ok(()),
            refusal => Err(refusal),
        }
    }

    fn end(&self, clean: bool) {
        self.shared.end(clean);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has already poisoned the state.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.end(false);
    }
}

fn log_recovery(dir: &Path, report: &Recovery) {
    if let Some(torn) = &report.torn {
        tracing::warn!(
            journal.segment = %torn.segment.display(),
            journal.offset = torn.offset,
            journal.bytes = torn.bytes,
            journal.kept_as = torn.kept_as.as_ref().map(|path| path.display().to_string()),
            "removed the unacknowledged tail of a write that a crash interrupted"
        );
    }
    for snapshot in &report.damaged_snapshots {
        tracing::warn!(
            journal.snapshot = %snapshot.path.display(),
            error = snapshot.damage,
            "a snapshot is damaged; an older one and the log after it were used instead"
        );
    }
    tracing::info!(
        journal.dir = %dir.display(),
        journal.records = report.records,
        journal.last_seq = report.last_seq,
        journal.epoch = report.epoch,
        journal.clean = report.clean,
        "journal opened"
    );
}

fn applying(
    apply: impl FnOnce(Appended) + Send + 'static,
    answer: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
) -> Done {
    Box::new(move |result| {
        if let Ok(appended) = &result {
            apply(*appended);
        }
        answer(result);
    })
}

fn state_after(failure: &WriteFailure) -> WriterState {
    match failure {
        WriteFailure::Full => WriterState::Full,
        WriteFailure::Fenced => WriterState::Fenced,
        WriteFailure::Fatal(err) => WriterState::Poisoned { reason: err.to_string() },
    }
}

/// Poisons the journal if the writer's thread panics, so that no append waits forever.
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.refuse_all(WriterState::Poisoned {
                reason: "the writer's thread panicked".into(),
            });
        }
    }
}

/// Writer thread of an open that found the disk full.
fn write_once_there_is_room(shared: &Shared, mut opening: Opening) {
    let _guard = OnPanic(shared);
    tracing::error!("disk full: the journal is read-only until there is room");
    // Appends are refused, so none can be waiting.
    while shared.next_group(Some(Opening::probe_at())).is_some() {
        match opening.settle() {
            Ok(log) => {
                drop(opening);
                shared.synced(log.durable_seq());
                shared.reopen();
                return write_until_end(shared, log);
            }
            Err(WriteFailure::Full) => {}
            Err(failure) => {
                let error = state_after(&failure).refusal();
                tracing::error!(error = %error, "the journal accepts no writes until a restart");
                return shared.refuse_all(state_after(&failure));
            }
        }
    }
    shared.refuse_all(WriterState::Closed);
}

/// Writer thread.
fn write_until_end(shared: &Shared, mut log: Log) {
    let _guard = OnPanic(shared);
    let ended = write_groups(shared, &mut log).and_then(|()| {
        let clean = shared.lock().state == WriterState::Ending { clean: true };
        log.end(clean)
    });
    if let Err(failure) = &ended {
        let error = state_after(failure).refusal();
        tracing::error!(error = %error, "the journal accepts no more writes until a restart");
        if let WriteFailure::Fenced = failure {
            log.abandon();
        }
    }
    shared.synced(log.durable_seq());
    // The last mark is written before the end is reported.
    drop(log);
    shared.refuse_all(ended.map_or_else(|failure| state_after(&failure), |()| WriterState::Closed));
}

fn write_groups(shared: &Shared, log: &mut Log) -> Result<(), WriteFailure> {
    while let Some(group) = shared.next_group(log.wake_at()) {
        if group.is_empty() {
            match log.tick() {
                Ok(true) => shared.reopen(),
                Ok(false) => {}
                Err(failure) => {
                    shared.refuse_all(state_after(&failure));
                    return Err(failure);
                }
            }
        } else {
            write_group(shared, log, group)?;
        }
        shared.synced(log.durable_seq());
        log.mark();
    }
    Ok(())
}

/// Writes, applies and acknowledges a group, one run at a time, so that a failure in the next segment
/// does not affect durable appends.
fn write_group(
    shared: &Shared,
    log: &mut Log,
    mut group: Vec<Pending>,
) -> Result<(), WriteFailure> {
    while !group.is_empty() {
        let rest = group.split_off(log.run_len(&group));
        match log.write_run(&group) {
            Ok(appended) => {
                // This precedes the acknowledgements, because their receivers may query the synced
                // position.
                shared.synced(log.durable_seq());
                for (pending, appended) in group.into_iter().zip(appended) {
                    pending.answer(Ok(appended));
                }
            }
            Err(failure) => {
                // Refuse new appends before reporting the failed one.
                shared.refuse_all(state_after(&failure));
                for pending in group.into_iter().chain(rest) {
                    pending.answer(Err(state_after(&failure).refusal()));
                }
                return if let WriteFailure::Full = failure { Ok(()) } else { Err(failure) };
            }
        }
        group = rest;
    }
    Ok(())
}

fn random_uuid() -> Result<StoreUuid, JournalError> {
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(|err| JournalError::Random(err.to_string()))?;
    Ok(uuid)
}
