//! Writes snapshots in the background, so that a start reads one snapshot and a short log.
//!
//! A dedicated thread writes one snapshot at a time, when the log has grown. The journal's writer
//! waits only while the pointers to the accounts are copied.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::shared::Shared;
use super::snapshot::write_chunks;
use super::state::Frozen;
use crate::journal::{JournalError, Position, SnapshotReport, SnapshotWriter};

/// Interval at which the thread checks the log without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Reason why a snapshot was not written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the store is closing")]
    Stopping,
    /// The state was only changed in part. A snapshot of that state would replace the undamaged
    /// log.
    #[error("a change panicked halfway; restart the server, which reads the journal again")]
    Poisoned,
}

/// The snapshot thread, which stops on drop.
pub struct Snapshotter {
    control: Arc<Control>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Control {
    /// Whether the thread must check if a snapshot is due.
    wanted: Mutex<bool>,
    woken: Condvar,
    stopping: AtomicBool,
    after_bytes: u64,
    /// Log bytes at which the next snapshot is due; raised after a failure.
    due_bytes: AtomicU64,
    /// Held while a snapshot or a backup is written.
    writing: Mutex<()>,
}

impl Snapshotter {
    /// Starts the thread. A snapshot is due when the log has grown by `after_bytes` since the last
    /// one, or by half the size of that one (`last_bytes` at the start) if that is more.
    pub fn start(shared: &Arc<Shared>, after_bytes: u64, last_bytes: u64) -> Snapshotter {
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
            .inspect_err(|err| tracing::error!(error = %err, "cannot start the snapshot thread"));
        Snapshotter { control, thread: Mutex::new(thread.ok()) }
    }

    /// Wakes the thread if a snapshot is due. Called after every write, at the cost of two atomic
    /// reads.
    pub fn consider(&self, shared: &Shared) {
        if self.control.is_due(shared) {
            *lock(&self.control.wanted) = true;
            self.control.woken.notify_one();
        }
    }

    /// Writes a snapshot into the journal's folder now.
    pub fn snapshot(&self, shared: &Shared) -> Result<SnapshotReport, SnapshotError> {
        self.control.snapshot(shared)
    }

    /// Writes a snapshot to `file`.
    pub fn backup(&self, shared: &Shared, file: &Path) -> Result<SnapshotReport, SnapshotError> {
        let _writing = lock(&self.control.writing);
        let (state, at) = freeze(shared)?;
        self.control.write(&state, shared.journal.backup(at, file)?)
    }

    /// Stops the thread and abandons a snapshot that is being written.
    pub fn stop(&self) {
        self.control.stopping.store(true, Ordering::Relaxed);
        *lock(&self.control.wanted) = true;
        self.control.woken.notify_all();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of the thread has been logged.
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
            // Writes of other nodes of a cluster do not wake this thread.
            if !*wanted {
                let waited = self.woken.wait_timeout(wanted, LOOK_EVERY);
                wanted = waited.unwrap_or_else(PoisonError::into_inner).0;
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
                // No data is lost, but the next start takes longer. The next attempt is delayed,
                // since the cause may persist.
                let due = shared.journal.log_bytes_since_snapshot() + self.after_bytes.max(1);
                self.due_bytes.store(due, Ordering::Relaxed);
                tracing::error!(error = %err, next_at_log_bytes = due, "snapshot failed");
            }
        }
    }

    fn snapshot(&self, shared: &Shared) -> Result<SnapshotReport, SnapshotError> {
        let _writing = lock(&self.writing);
        // Only whole segments are removed.
        shared.journal.end_segment();
        let (state, at) = freeze(shared)?;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the state at one record, and the position of that record.
///
/// # Errors
/// [`SnapshotError::Poisoned`]: a record was only applied in part.
fn freeze(shared: &Shared) -> Result<(Frozen, Position), SnapshotError> {
    let state = shared.state.read().map_err(|_| SnapshotError::Poisoned)?;
    Ok((state.freeze(), state.position))
}
