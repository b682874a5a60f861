//! State of the scheduled backups, for the status page.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

const LATE_AFTER: TimeDelta = TimeDelta::hours(2);

/// State of the backups that this server makes by itself.
#[derive(Default)]
pub struct Backups(Mutex<Option<BackupState>>);

/// State while the worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupState {
    /// Time of the newest stored backup; `None` without one.
    pub last: Option<DateTime<Utc>>,
    /// When the next one is due; the past while it is late.
    pub due: DateTime<Utc>,
    /// Whether the last attempt failed, so that it is retried.
    pub has_failed: bool,
}

impl BackupState {
    /// Whether a backup should have been made by now. Large ones take a while.
    pub fn is_late(&self, now: DateTime<Utc>) -> bool {
        now - self.due > LATE_AFTER
    }
}

impl Backups {
    /// The state; `None` if this server makes no backups.
    pub fn state(&self) -> MutexGuard<'_, Option<BackupState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
