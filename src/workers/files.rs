//! Makes the dated files that clients copy (`data/docs/copy.md`): once a day the pipeline, and the changes of
//! each day that is over. Each node of a cluster makes its own.
//!
//! The files on disk, the log of changes and the day determine which files are missing, so a restart neither
//! repeats nor misses one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::changes::{ChangeLog, ReadError};
use crate::copies::{Copies, Kind, Set, SetName};
use crate::http::files::rows::{write_changes, write_pipeline};
use crate::service::app::App;
use crate::service::work;
use crate::vocab::change::is_personal;
use crate::vocab::day::Day;

/// Time between two looks at the clock and at the log of changes.
const PERIOD: Duration = Duration::from_secs(2);
/// Time before files that could not be written are tried again; most likely the disk is full.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Days of the pipeline that are kept: a download that began before midnight can continue.
const PIPELINE_DAYS: i32 = 2;

/// The worker that makes the files.
#[derive(Clone)]
pub struct ExportFiles {
    pub app: App,
    pub copies: Copies,
    /// Days of changes that are kept.
    pub keep_days: i32,
}

impl ExportFiles {
    /// Makes files until `stop` is done. Files that are being written then are removed at the next start.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = stop => {}
            () = self.make_all() => {}
        }
    }

    async fn make_all(self) {
        let checking = self.clone();
        work::run_low(move || checking.remove_damaged()).await;
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The day whose files are all made.
        let mut done: Option<Day> = None;
        loop {
            ticks.tick().await;
            let today = self.app.clock.today();
            if done == Some(today) {
                continue;
            }
            let making = self.clone();
            match work::run_low(move || making.make(today)).await {
                Some(Ok(true)) => done = Some(today),
                Some(Ok(false)) => {}
                Some(Err(err)) => {
                    tracing::error!(
                        error = format!("{err:#}"),
                        "export files cannot be made; trying again"
                    );
                    metrics::counter!("dropdex_export_file_failures_total").increment(1);
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                None => tokio::time::sleep(RETRY_AFTER).await,
            }
        }
    }

    /// Removes sets with a file that does not have its checksum. Those of changes are then made again.
    fn remove_damaged(&self) {
        let sets = self.copies.sets().unwrap_or_default();
        let is_damaged = |set: &Set| self.copies.is_sound(set).is_ok_and(|is_sound| !is_sound);
        let damaged = sets.into_iter().filter(is_damaged).map(|set| set.name);
        let damaged: Vec<SetName> = damaged.collect();
        for name in &damaged {
            tracing::error!(files = %name, "export files are damaged and removed; those of changes are made again");
        }
        if !damaged.is_empty()
            && let Err(error) = self.copies.retain(|name| !damaged.contains(&name))
        {
            tracing::error!(%error, "damaged export files cannot be removed");
        }
    }

    /// Removes old sets and makes those that are missing. Returns whether none will be due before the next
    /// day.
    fn make(&self, today: Day) -> anyhow::Result<bool> {
        let first = today.plus(-self.keep_days);
        self.copies.retain(|name| match name.kind {
            Kind::Pipeline => name.day > today.plus(-PIPELINE_DAYS),
            Kind::Changes => name.day >= first,
        })?;
        let Some(mark) = self.app.changes.mark() else { return Ok(false) };
        self.make_changes(first, mark.day.min(today))?;
        let pipeline = SetName { kind: Kind::Pipeline, day: today };
        let has_names = self.app.live.current().manifest().names > 0;
        // The changes of the calendar that the rows include are in the log.
        let is_due = mark.day >= today && has_names;
        if is_due && self.known(pipeline).is_none() {
            finished(&write_pipeline(&self.app, &self.copies, today)?);
        }
        let sets = self.copies.sets()?;
        let bytes: u64 = sets.iter().flat_map(|set| &set.files).map(|file| file.bytes).sum();
        metrics::gauge!("dropdex_export_files_bytes").set(bytes as f64);
        Ok(is_due)
    }

    /// A set that need not be made again.
    fn known(&self, name: SetName) -> Option<Set> {
        let set = self.copies.set(name)?;
        set.is_allowed(self.app.limits.exports_internal).then_some(set)
    }

    /// Makes the files of changes that are missing, from `first` to the day before `end`. The changes of a day
    /// follow those of the day before without a gap.
    fn make_changes(&self, first: Day, end: Day) -> anyhow::Result<()> {
        let log = &self.app.changes;
        // The last change of the day before.
        let mut last: Option<u64> = None;
        // With the number after which the log was read.
        let mut read: Option<(u64, BTreeMap<Day, u64>)> = None;
        for day in (0..).map(|days| first.plus(days)).take_while(|day| *day < end) {
            let name = SetName { kind: Kind::Changes, day };
            if let Some(set) = self.known(name) {
                last = Some(set.about.last_seq);
                continue;
            }
            // Another log has other numbers.
            let known = last.filter(|seq| (log.oldest()..=log.newest() + 1).contains(&(seq + 1)));
            let since = known.unwrap_or(0);
            if read.as_ref().is_none_or(|(after, _)| *after > since) {
                read = Some((since, day_ends(log, since)?));
            }
            let of_day = read.iter().flat_map(|(_, ends)| ends);
            let of_day = of_day.filter(|(it, _)| **it <= day).map(|(it, seq)| (*it, *seq));
            let Some(first_seq) = known.map(|seq| seq + 1).or_else(|| {
                let before = of_day.clone().filter(|(it, _)| *it < day).map(|(_, seq)| seq + 1);
                before.max().or(of_day.clone().next().map(|_| log.oldest()))
            }) else {
                // The log does not reach back to this day.
                continue;
            };
            let last_seq = of_day.map(|(_, seq)| seq).max().unwrap_or(0).max(first_seq - 1);
            finished(&write_changes(&self.app, &self.copies, day, (first_seq, last_seq))?);
            last = Some(last_seq);
        }
        Ok(())
    }
}

/// Returns the number of the last change of each day after number `since`. Changes that only the watchers of a
/// name see do not count: the registry may report one of the day before after midnight.
fn day_ends(log: &ChangeLog, since: u64) -> Result<BTreeMap<Day, u64>, ReadError> {
    let mut ends = BTreeMap::new();
    log.visit(since, |seq, entry| {
        if !is_personal(entry.kind, entry.source) {
            ends.insert(entry.day, seq);
        }
        ControlFlow::Continue(())
    })?;
    Ok(ends)
}

fn finished(set: &Set) {
    let kind = set.name.kind.as_str();
    metrics::counter!("dropdex_export_files_total", "kind" => kind).increment(1);
    tracing::info!(files = %set.name, rows = set.rows, "made export files");
}
