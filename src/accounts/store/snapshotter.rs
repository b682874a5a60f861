//! Writes the state down now and then, so that a start reads one snapshot and little log.
//!
//! A thread of its own, woken when the log has grown, never two snapshots at once. The writer of
//! the journal waits only while the pointers to the accounts are copied.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::snapshot::{self, write_chunks};
use super::state::Frozen;
use super::store::Shared;
use crate::journal::{JournalError, Position, SnapshotReport, SnapshotWriter};

/// Why no snapshot was made.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The journal or the disk.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store is being closed.
    #[error("the store is being closed")]
    Stopping,
}

/// The thread, until it is stopped or dropped.
pub(super) struct Snapshotter {
    control: Arc<Control>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Control {
    /// Whether there is work.
    wanted: Mutex<bool>,
    woken: Condvar,
    stopping: AtomicBool,
    after_bytes: u64,
    /// Log bytes at which the next snapshot is due; more after one that failed.
    due_bytes: AtomicU64,
    /// Held while a snapshot or a backup is written.
    writing: Mutex<()>,
}

impl Snapshotter {
    /// Starts the thread. A snapshot is due when the log has grown by `after_bytes` since the last
    /// one, or by half of that one's bytes (`last_bytes` at the start) where it is more.
    pub(super) fn start(shared: &Arc<Shared>, after_bytes: u64, last_bytes: u64) -> Snapshotter {
        let control = Arc::new(Control {
            wanted: Mutex::new(false),
            woken: Condvar::new(),
            stopping: AtomicBool::new(false),
            after_bytes,
            due_bytes: AtomicU64::new(after_bytes.max(last_bytes / 2)),
            writing: Mutex::new(()),
        });
        let (shared, for_thread) = (Arc::clone(shared), Arc::clone(&control));
        let thread = thread::Builder::new()
            .name("snapshots".into())
            .spawn(move || for_thread.serve(&shared))
            .inspect_err(|err| tracing::error!(error = %err, "no snapshots: no thread for them"));
        Snapshotter { control, thread: Mutex::new(thread.ok()) }
    }

    /// Wakes the thread if a snapshot is due. Called after every write: two atomic reads.
    pub(super) fn consider(&self, shared: &Shared) {
        if self.control.is_due(shared) {
            *lock(&self.control.wanted) = true;
            self.control.woken.notify_one();
        }
    }

    /// Writes a snapshot now, into the journal's folder.
    pub(super) fn snapshot(&self, shared: &Shared) -> Result<SnapshotReport, SnapshotError> {
        self.control.snapshot(shared)
    }

    /// Writes a snapshot to `file`.
    pub(super) fn backup(
        &self,
        shared: &Shared,
        file: &Path,
    ) -> Result<SnapshotReport, SnapshotError> {
        let _writing = lock(&self.control.writing);
        let (state, at) = shared.freeze();
        self.control.write(&state, shared.journal.backup(at, file)?)
    }

    /// Ends the thread; a snapshot that is being written is given up.
    pub(super) fn stop(&self) {
        self.control.stopping.store(true, Ordering::Relaxed);
        *lock(&self.control.wanted) = true;
        self.control.woken.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there has been printed; nothing here depends on it.
            let _ = thread.join();
        }
    }
}

impl Drop for Snapshotter {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Control {
    fn serve(&self, shared: &Shared) {
        loop {
            let mut wanted = lock(&self.wanted);
            while !*wanted {
                wanted = self.woken.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            *wanted = false;
            drop(wanted);
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            if self.is_due(shared) {
                self.try_snapshot(shared);
            }
        }
    }

    fn is_due(&self, shared: &Shared) -> bool {
        shared.journal.log_bytes_since_snapshot() >= self.due_bytes.load(Ordering::Relaxed)
    }

    fn try_snapshot(&self, shared: &Shared) {
        match self.snapshot(shared) {
            Ok(_) | Err(SnapshotError::Stopping) => {}
            Err(err) => {
                // Nothing is lost, a start takes longer. Not again at once: the cause may stay.
                let due = shared.journal.log_bytes_since_snapshot() + self.after_bytes.max(1);
                self.due_bytes.store(due, Ordering::Relaxed);
                tracing::error!(error = %err, next_at_log_bytes = due, "no snapshot was made");
            }
        }
    }

    fn snapshot(&self, shared: &Shared) -> Result<SnapshotReport, SnapshotError> {
        let _writing = lock(&self.writing);
        let (state, at) = shared.freeze();
        let report = self.write(&state, shared.journal.snapshot(at)?)?;
        self.due_bytes.store(self.after_bytes.max(report.bytes / 2), Ordering::Relaxed);
        tracing::info!(
            snapshot.seq = report.seq,
            snapshot.bytes = report.bytes,
            snapshot.accounts = state.accounts.len(),
            "wrote a snapshot"
        );
        Ok(report)
    }

    fn write(
        &self,
        state: &Frozen,
        mut writer: SnapshotWriter,
    ) -> Result<SnapshotReport, SnapshotError> {
        write_chunks(state, |chunk| {
            if self.stopping.load(Ordering::Relaxed) {
                return Err(SnapshotError::Stopping);
            }
            Ok(writer.chunk(chunk)?)
        })?;
        Ok(writer.finish()?)
    }
}

impl Shared {
    /// The state at one record, and which one.
    fn freeze(&self) -> (Frozen, Position) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        (state.freeze(), state.position())
    }

    /// What stands for the state as it is now.
    pub(super) fn digest(&self) -> [u8; 32] {
        snapshot::digest(&self.freeze().0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
