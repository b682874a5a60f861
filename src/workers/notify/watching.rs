//! Notifies owners of changes of the names they watch. The store records the position up to which the change
//! log is matched together with the messages. [`crate::workers::deliver`] sends the messages.
//!
//! A batch of changes results in one message per channel of an account, whatever the number of
//! names.

use std::time::{Duration, Instant};

use tokio::task::{JoinError, spawn_blocking};

use crate::accounts::{Store, WriteError};
use crate::changes::{ChangeLog, ReadError};
use crate::vocab::change::Change;
use crate::vocab::clock::Clock;
use crate::vocab::time::UnixMs;

/// Delay before retrying a failed read or write; most likely the disk is full.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Number of changes read at a time. Only changes of watched names are kept.
const PAGE: usize = 10_000;
/// Number of changes of watched names that are matched at a time; they take about 25 MB.
const BATCH: usize = 200_000;

/// The worker that matches changes against watchlists.
pub struct Watching {
    pub log: ChangeLog,
    pub store: Store,
    pub clock: Clock,
    /// Whether this server sends mail.
    pub has_mail: bool,
}

/// Why changes were not matched. The worker retries.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("matching panicked: {0}")]
    Panic(#[from] JoinError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Changes of watched names, with the number of the last change read.
struct WatchedChanges {
    changes: Vec<Change>,
    through: u64,
}

impl Watching {
    /// On the very first start, skips all existing changes.
    pub async fn begin(&self) {
        if let Err(err) = self.begin_now().await {
            tracing::error!(error = %err, "cannot begin to match changes of watched names");
        }
    }

    async fn begin_now(&self) -> Result<(), WriteError> {
        let now = UnixMs::from_instant(self.clock.now());
        self.store.begin_watch_alerts(self.log.newest(), now).await
    }

    /// Matches all changes until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.match_all() => {}
        }
    }

    async fn match_all(&self) {
        let mut newest = self.log.subscribe();
        loop {
            newest.mark_unchanged();
            match self.match_new().await {
                // The log is closed when the server stops.
                Ok(()) => {
                    if newest.changed().await.is_err() {
                        return;
                    }
                }
                Err(err) => {
                    tracing::error!(error = %err, "matching changes of watched names failed; trying again");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// Matches the changes since the last match.
    ///
    /// # Errors
    /// [`WatchError`]; the call can be repeated.
    pub async fn match_new(&self) -> Result<(), WatchError> {
        loop {
            let Some(since) = self.store.changes_matched() else {
                self.begin_now().await?;
                continue;
            };
            let (log, store) = (self.log.clone(), self.store.clone());
            let begun = Instant::now();
            let (batch, found) = spawn_blocking(move || {
                let batch = WatchedChanges::read(&log, &store, since)?;
                let found = store.match_changes(&batch.changes);
                Ok::<_, ReadError>((batch, found))
            })
            .await??;
            let WatchedChanges { changes, through } = batch;
            if through == since {
                return Ok(());
            }
            let (accounts, matched_ms) = (found.len(), begun.elapsed().as_millis() as u64);
            let messages =
                self.store.record_changes(through, &changes, &found, self.has_mail).await?;
            if messages > 0 {
                let changes = changes.len();
                tracing::info!(
                    through,
                    changes,
                    accounts,
                    messages,
                    matched_ms,
                    "matched changes of watched names"
                );
            }
        }
    }
}

impl WatchedChanges {
    /// Reads changes after `since` until enough are found. If the previous match was written only
    /// in part, all changes of that match are read.
    fn read(log: &ChangeLog, store: &Store, since: u64) -> Result<WatchedChanges, ReadError> {
        let end = store.change_matching_to();
        let mut batch = WatchedChanges { changes: Vec::new(), through: since };
        while end.is_some() || batch.changes.len() < BATCH {
            let mut page = match log.read(batch.through, PAGE) {
                Ok(page) => page,
                Err(ReadError::TooOld { oldest }) => {
                    tracing::warn!(
                        oldest,
                        "changes of watched names are lost: they are no longer kept"
                    );
                    batch.through = oldest.saturating_sub(1);
                    continue;
                }
                Err(ReadError::Ahead { newest }) => {
                    tracing::warn!(newest, "the log of changes has begun again");
                    batch.through = newest;
                    break;
                }
                Err(err) => return Err(err),
            };
            if let Some(end) = end {
                page.retain(|change| change.seq <= end);
            }
            let Some(last) = page.last() else { break };
            batch.through = last.seq;
            store.keep_watched(&mut page);
            batch.changes.append(&mut page);
        }
        Ok(batch)
    }
}
