//! The worker of a server that fetches sources on schedule, and builds one generation for the lists of a
//! round.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::bail;
use chrono::{DateTime, Utc};
use metrics::gauge;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::intake::queue::Queue;
use crate::intake::request::{Rebuild, Task};
use crate::run::{Report, RunOutcome, Runner, runs_total};
use crate::settings::{Settings, Source};
use crate::state::{Choice, View};
use crate::vocab::clock::Clock;

/// Interval at which the worker checks which sources are due.
const PERIOD: Duration = Duration::from_secs(2);
/// Maximum time that new lists wait for sources that are still running, so that one index is built
/// for all.
const GATHER_MAX: Duration = Duration::from_secs(60);
/// Pause after the folder was found to be unusable.
const PAUSE: Duration = Duration::from_secs(60);

/// The worker that fetches sources.
pub struct Worker {
    runner: Arc<Runner<Queue>>,
    settings: Settings,
    status: Arc<SourcesStatus>,
    /// Whether the choice of sources was unreadable at the last check.
    is_unreadable: AtomicBool,
}

/// The sources as the worker last saw them, shared with the pages that show them.
#[derive(Debug, Default)]
pub struct SourcesStatus {
    views: Mutex<Arc<[View]>>,
    /// Names of the sources that are being fetched.
    running: Mutex<BTreeSet<String>>,
}

impl SourcesStatus {
    /// Returns all sources. Empty before the worker's first check.
    pub fn views(&self) -> Arc<[View]> {
        Arc::clone(&self.lock())
    }

    /// Returns the names of the sources that are being fetched or ingested.
    pub fn running(&self) -> BTreeSet<String> {
        self.lock_running().clone()
    }

    /// Shows sources as enabled, before the worker sees it.
    pub fn enabled(&self, chosen: &[View], at: DateTime<Utc>) {
        let mut views = self.lock();
        let is_chosen = |view: &View| chosen.iter().any(|it| it.source.name == view.source.name);
        *views = views
            .iter()
            .cloned()
            .map(|view| match is_chosen(&view) {
                true => View { choice: Some(Choice { enabled: true, at }), ..view },
                false => view,
            })
            .collect();
    }

    /// Sets the gauges of all sources.
    pub fn sample(&self, clock: Clock) {
        let now = clock.now();
        for view in self.views().iter() {
            let name = || view.source.name.clone();
            let late = view.late_by(now).map_or(0, |late| late.num_seconds());
            gauge!("dropdex_source_late_seconds", "source" => name()).set(late as f64);
            let failing = view.state.problem.is_some();
            gauge!("dropdex_source_failing", "source" => name()).set(f64::from(u8::from(failing)));
            let warnings = view.state.warnings().len();
            gauge!("dropdex_source_warnings", "source" => name()).set(warnings as f64);
            gauge!("dropdex_source_rows", "source" => name()).set(view.state.rows as f64);
            let at = view.state.last_success.map_or(0, |at| at.timestamp());
            gauge!("dropdex_source_success_timestamp_seconds", "source" => name()).set(at as f64);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Arc<[View]>> {
        self.views.lock().expect("no code panics holding this lock")
    }

    fn lock_running(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.running.lock().expect("no code panics holding this lock")
    }
}

/// Shows a source as running until it is dropped, even by a panic.
struct Running {
    status: Arc<SourcesStatus>,
    name: String,
}

impl Running {
    /// Returns `None` if the source is already running.
    fn begin(status: &Arc<SourcesStatus>, name: &str) -> Option<Running> {
        let is_new = status.lock_running().insert(name.to_owned());
        is_new.then(|| Running { status: Arc::clone(status), name: name.to_owned() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.status.lock_running().remove(&self.name);
    }
}

/// Runs in progress.
type Runs = JoinSet<anyhow::Result<Report>>;

impl Worker {
    /// Creates a worker that reports to `status`, and fills it at once.
    pub fn new(runner: Runner<Queue>, settings: Settings, status: Arc<SourcesStatus>) -> Worker {
        // Registers the counters at 0 so that `rate()` sees the first increment.
        for source in &settings.sources {
            for outcome in [RunOutcome::Added, RunOutcome::Failed] {
                runs_total(&source.name, outcome).increment(0);
            }
        }
        let is_unreadable = AtomicBool::new(false);
        let worker = Worker { runner: Arc::new(runner), settings, status, is_unreadable };
        worker.look();
        worker
    }

    /// Fetches due sources until `stop` is done. Runs in progress are then aborted; their lists and
    /// states stay consistent.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let work = self.work();
        tokio::select! {
            biased;
            () = &mut stop => {}
            () = work => {}
        }
    }

    async fn work(&self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut runs = Runs::new();
        self.look();
        let mut behind_since = None;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                Some(done) = runs.join_next() => {
                    if done.is_ok_and(is_added) {
                        behind_since.get_or_insert_with(Instant::now);
                    }
                }
            }
            let now = self.runner.fetcher.clock.now();
            // Otherwise a list would get the day of a wrong clock, and count as fetched.
            let may_fetch = self.runner.fetcher.clock.is_trusted();
            for view in self.look().iter().filter(|view| view.is_enabled()) {
                let source = &view.source;
                if may_fetch
                    && view.state.is_due(source, now)
                    && let Some(running) = Running::begin(&self.status, &source.name)
                {
                    runs.spawn(self.start(source.clone(), running));
                }
            }
            let is_time = |since: Instant| runs.is_empty() || since.elapsed() > GATHER_MAX;
            if behind_since.is_some_and(is_time) {
                behind_since = None;
                // The queue retries automatically.
                if let Err(err) = self.rebuild().await {
                    tracing::warn!(error = format!("{err:#}"), "fetched lists wait for a rebuild");
                }
            }
        }
    }

    fn start(
        &self,
        source: Source,
        running: Running,
    ) -> impl Future<Output = anyhow::Result<Report>> + use<> {
        let runner = Arc::clone(&self.runner);
        async move {
            let _running = running;
            let report = runner.run(&source).await;
            report.iter().for_each(Report::record);
            if let Err(err) = &report {
                tracing::warn!(
                    source = source.name,
                    error = format!("{err:#}"),
                    "a source was not fetched"
                );
                // The state could not be written, so the source stays due.
                tokio::time::sleep(PAUSE).await;
            } else if report.as_ref().is_ok_and(|report| report.outcome == RunOutcome::Busy) {
                tokio::time::sleep(PERIOD).await;
            }
            report
        }
    }

    /// Reads choices and states. Unreadable choices are logged, and the previous ones stay in use.
    fn look(&self) -> Arc<[View]> {
        match self.runner.folder.views(&self.settings) {
            Ok(views) => {
                *self.status.lock() = views.into();
                self.is_unreadable.store(false, Ordering::Relaxed);
            }
            Err(err) if !self.is_unreadable.swap(true, Ordering::Relaxed) => {
                tracing::warn!(error = format!("{err:#}"), "the choice of sources is unreadable");
            }
            Err(_) => {}
        }
        self.status.views()
    }

    async fn rebuild(&self) -> anyhow::Result<()> {
        let task = Rebuild { compact: false, only_if_behind: true };
        let outcome = self.runner.intake.run(Task::Rebuild(task)).await?;
        outcome.error().map_or(Ok(()), |error| bail!(error.to_owned()))
    }
}

fn is_added(report: anyhow::Result<Report>) -> bool {
    report.is_ok_and(|report| report.lists > 0)
}
