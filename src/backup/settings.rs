//! Where, when and how backups are made without a command.

use std::path::PathBuf;

use age::x25519::Recipient;
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};

use crate::bucket::S3Settings;

/// Settings of the scheduled backups, of `dropdex backup now` and of commands that name a stored backup.
#[derive(Clone, Debug)]
pub struct BackupSettings {
    pub place: BackupPlace,
    pub schedule: Schedule,
    /// Number of backups that are kept.
    pub keep: usize,
    /// Public keys that backups are encrypted to; none leaves them unencrypted.
    pub encrypt_to: Vec<Recipient>,
}

/// Where backups are stored.
#[derive(Clone, Debug)]
pub enum BackupPlace {
    Folder(PathBuf),
    Bucket(S3Settings),
}

/// When a backup is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Daily at this time of day, in UTC.
    At(NaiveTime),
    Every(TimeDelta),
}

impl Schedule {
    /// Returns when the backup after the one at `last` is due.
    pub fn next(self, last: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Schedule::At(time) => {
                let same_day = last.date_naive().and_time(time).and_utc();
                same_day + if same_day > last { TimeDelta::zero() } else { self.interval() }
            }
            Schedule::Every(interval) => last + interval,
        }
    }

    /// Returns the time between two backups.
    pub fn interval(self) -> TimeDelta {
        match self {
            Schedule::At(_) => TimeDelta::days(1),
            Schedule::Every(interval) => interval,
        }
    }
}
