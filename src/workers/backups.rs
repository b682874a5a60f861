//! Makes backups on the schedule of `[backup]`. In a cluster, the leader makes them.
//!
//! The newest stored backup decides whether one is due, so a restart neither repeats nor misses one, and the first one
//! is made at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use chrono::{DateTime, Utc};
use metrics::{counter, gauge};
use tokio::time::{MissedTickBehavior, interval};

use crate::accounts::Store;
use crate::accounts::admin::{AdminCommand, AdminReply, Saved, execute};
use crate::backup::save::{Verified, save};
use crate::backup::settings::BackupSettings;
use crate::backup::store::{BackupStore, Stored};
use crate::backup::{Collected, Users, note_time};
use crate::http::account_data;
use crate::service::backups::{BackupState, Backups};
use crate::service::work;
use crate::vocab::clock::Clock;

/// Time between two looks at the clock.
const PERIOD: Duration = Duration::from_secs(2);
/// Pause after the first failure, which doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_secs(60);
const RETRY_MAX: Duration = Duration::from_secs(3600);

/// The worker that makes the backups.
pub struct BackupWorker {
    pub settings: BackupSettings,
    pub backups: BackupStore,
    pub store: Store,
    pub data: PathBuf,
    /// The settings file.
    pub file: Option<PathBuf>,
    pub clock: Clock,
    pub status: Arc<Backups>,
}

/// Sets the gauges of a server that makes no backups by itself.
pub fn reset_gauges() {
    gauge!("dropdex_backup_interval_seconds").set(0.0);
    gauge!("dropdex_backup_stored_timestamp_seconds").set(0.0);
    gauge!("dropdex_backup_bytes").set(0.0);
    gauge!("dropdex_backup_duration_seconds").set(0.0);
    counter!("dropdex_backup_failures_total").absolute(0);
}

impl BackupWorker {
    /// Makes backups until `stop` is done. A backup that is being made then is given up.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let interval = self.settings.schedule.interval();
        gauge!("dropdex_backup_interval_seconds").set(interval.as_seconds_f64());
        let (worker, stopping) = (Arc::new(self), Arc::new(AtomicBool::new(false)));
        let status = Arc::clone(&worker.status);
        let mut making = tokio::spawn(Arc::clone(&worker).make_all(Arc::clone(&stopping)));
        tokio::select! {
            () = stop => {}
            _ = &mut making => {}
        }
        stopping.store(true, Ordering::Relaxed);
        // Removes the unfinished file.
        let _ = making.await;
        *status.state() = None;
        reset_gauges();
    }

    async fn make_all(self: Arc<Self>, stopping: Arc<AtomicBool>) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pause = RETRY_FIRST;
        let mut retry_at: Option<Instant> = None;
        while !stopping.load(Ordering::Relaxed) {
            ticks.tick().await;
            let known = *self.status.state();
            let is_early = known.is_some_and(|it| !it.has_failed && self.clock.now() < it.due)
                || retry_at.is_some_and(|at| Instant::now() < at);
            // Names contain the time.
            if is_early || !self.clock.is_trusted() {
                continue;
            }
            let (worker, stop) = (Arc::clone(&self), Arc::clone(&stopping));
            let made = work::run_low(move || worker.make_if_due(&stop)).await;
            if stopping.load(Ordering::Relaxed) {
                return;
            }
            match made.unwrap_or_else(|| Err(anyhow!("the worker panicked"))) {
                Ok(()) => (pause, retry_at) = (RETRY_FIRST, None),
                Err(err) => {
                    tracing::error!(
                        error = format!("{err:#}"),
                        retry_s = pause.as_secs(),
                        "the backup failed; trying again"
                    );
                    counter!("dropdex_backup_failures_total").increment(1);
                    let last = known.and_then(|it| it.last);
                    self.report(last, true);
                    retry_at = Some(Instant::now() + pause);
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// Makes a backup if the newest stored one is old enough. `dropdex backup now` may have made one meanwhile.
    fn make_if_due(&self, stop: &AtomicBool) -> anyhow::Result<()> {
        let now = self.clock.now();
        let stored = self.backups.list()?;
        // A backup from the future was made while the clock was wrong.
        let last = stored.iter().map(|it| it.name.at).find(|at| *at <= now);
        let is_due = last.is_none_or(|last| now >= self.settings.schedule.next(last));
        if is_due {
            self.make(now, stop).map(|made| self.report(Some(made), false))?
        } else {
            self.report(last, false)
        }
        Ok(())
    }

    /// Makes a backup and returns its time.
    fn make(&self, now: DateTime<Utc>, stop: &AtomicBool) -> anyhow::Result<DateTime<Utc>> {
        let problem = self.store.write_problem();
        ensure!(
            problem.as_deref() != Some("disk_full"),
            "the disk of the data folder is full; free space there"
        );
        let began = Instant::now();
        let collected = Collected::new(&self.data, self.file.as_ref(), self.clock, |path| {
            match execute(&self.store, AdminCommand::Backup { path }, account_data::pack) {
                AdminReply::Saved(Saved { seq, state_digest, .. }) => {
                    Ok(Users { seq, state_digest })
                }
                AdminReply::Refused { error } => Err(anyhow!(error)),
                _ => Err(anyhow!("the users' data was not saved")),
            }
        })?;
        let made = save(&self.backups, &self.settings, &collected, now, stop)?;
        let (Stored { name, bytes }, Verified { content, .. }) = made;
        if let Some(done) = content {
            note_time(&self.data, &done.facts)?;
        }
        let took = began.elapsed();
        gauge!("dropdex_backup_bytes").set(bytes as f64);
        gauge!("dropdex_backup_duration_seconds").set(took.as_secs_f64());
        tracing::info!(backup = %name, bytes, took_s = took.as_secs_f32(), "made a backup and read it back");
        Ok(name.at)
    }

    /// Reports the newest backup on the status page and in the metrics.
    fn report(&self, last: Option<DateTime<Utc>>, has_failed: bool) {
        let due = last.map_or_else(|| self.clock.now(), |last| self.settings.schedule.next(last));
        *self.status.state() = Some(BackupState { last, due, has_failed });
        let at = last.map_or(0, |last| last.timestamp());
        gauge!("dropdex_backup_stored_timestamp_seconds").set(at as f64);
    }
}
