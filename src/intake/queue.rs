//! Runs the requests of a server one at a time, each in a [`worker`] process.
//!
//! A worker that ends without an outcome, by a signal or an error, is logged and counted. As after a failed
//! rebuild or a killed server, the corpus may then hold lists that are in no generation.
//! [`Queue::keep_built`] builds the missing generation, and retries with growing pauses.

use std::io;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::MutexGuard;
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{Mutex, Notify, oneshot, watch};

use crate::message;
use crate::outcome::{Outcome, Step};
use crate::request::{Rebuild, Request, Site, Task};
use crate::run::{self, IndexState};
use crate::worker;

/// Pauses before retrying a failed rebuild; the last one repeats. Memory or disk space may become
/// available meanwhile.
const PAUSES_SECONDS: [u64; 5] = [10, 60, 300, 900, 3600];

/// Reasons why a request has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("the server is stopping; nothing is half done, run the command again")]
    Stopping,
    #[error("the server cannot start a worker process: {0}")]
    Start(#[from] io::Error),
    #[error("the worker process crashed ({0:#}); the log of the server may give the reason")]
    Crashed(anyhow::Error),
    #[error(
        "the clock of this machine is wrong or was just set, so lists would get a wrong day; set it (`timedatectl`), give \
         the time of the lists (`--observed-at`), or try again in ten minutes"
    )]
    Clock,
    #[error("the last rebuild failed; the next try is at {}", .0.format("%Y-%m-%d %H:%M:%S UTC"))]
    Paused(DateTime<Utc>),
}

/// The failure of the last job that should have built an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProblem {
    /// The error on one line. It may name files.
    pub text: String,
    /// First of the failures in a row.
    pub since: DateTime<Utc>,
    /// Failures in a row.
    pub failures: u32,
    pub next_try: DateTime<Utc>,
}

/// Status of a server's jobs, shared with the pages that show it.
#[derive(Debug, Default)]
pub struct JobStatus {
    state: std::sync::Mutex<JobState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct JobState {
    problem: Option<JobProblem>,
    next_try: Option<Instant>,
}

impl JobStatus {
    /// Returns the reason why lists are not in the index yet; `None` if nothing failed.
    pub fn problem(&self) -> Option<JobProblem> {
        self.lock().problem.clone()
    }

    fn failed(&self, text: String, now: DateTime<Utc>) {
        let mut state = self.lock();
        let before = state.problem.as_ref();
        let failures = before.map_or(0, |before| before.failures) + 1;
        let since = before.map_or(now, |before| before.since);
        let at = (failures as usize).min(PAUSES_SECONDS.len()) - 1;
        let pause = PAUSES_SECONDS[at];
        let next_try = now + TimeDelta::seconds(pause.try_into().unwrap_or(i64::MAX));
        state.problem = Some(JobProblem { text, since, failures, next_try });
        state.next_try = Some(Instant::now() + Duration::from_secs(pause));
        drop(state);
        self.changed.notify_one();
    }

    fn succeeded(&self) {
        *self.lock() = JobState::default();
    }

    /// Returns when the next attempt is due, if one is planned.
    fn next_try(&self) -> Option<Instant> {
        self.lock().next_try
    }

    fn lock(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().expect("no code panics holding this lock")
    }
}

/// Label values for the outcome of a job in metrics.
const OUTCOMES: [&str; 3] = ["ok", "failed", "crashed"];

fn jobs_total(outcome: &'static str) -> metrics::Counter {
    metrics::counter!("dropdex_jobs_ended_total", "outcome" => outcome)
}

/// The queue of a server. Clones share it.
#[derive(Clone, Debug)]
pub struct Queue {
    site: Site,
    /// Whether workers log as JSON lines.
    log_json: bool,
    turn: Arc<Mutex<()>>,
    status: Arc<JobStatus>,
    stopped: watch::Receiver<()>,
}

impl Queue {
    /// Creates an empty queue for the installation `site`, which reports to `status`. The queue ends
    /// when the sender of `stopped` is dropped.
    pub fn new(
        site: Site,
        log_json: bool,
        status: Arc<JobStatus>,
        stopped: watch::Receiver<()>,
    ) -> Queue {
        // Creating the gauge exports it before the first job.
        drop(metrics::gauge!("dropdex_jobs"));
        OUTCOMES.into_iter().for_each(|outcome| jobs_total(outcome).increment(0));
        Queue { site, log_json, turn: Arc::default(), status, stopped }
    }

    /// The installation that the server serves.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Waits for a turn and runs `task` on the server's own installation.
    ///
    /// # Errors
    /// The errors of [`Queue::run_request`].
    pub async fn run(&self, task: Task) -> Result<Outcome, QueueError> {
        self.run_request(Request { site: self.site.clone(), task }).await
    }

    /// Waits for a turn and runs a request.
    ///
    /// # Errors
    /// A list would get its day from an untrusted clock, the worker cannot be started or crashes, or the server stops.
    /// When the server stops, the worker is killed; corpus and index stay valid. After a failure, a rebuild with
    /// `only_if_behind` is refused during the pause.
    pub async fn run_request(&self, request: Request) -> Result<Outcome, QueueError> {
        if matches!(&request.task, Task::Rebuild(Rebuild { only_if_behind: true, .. }))
            && self.status.next_try().is_some_and(|next| next > Instant::now())
            && let Some(problem) = self.status.problem()
        {
            return Err(QueueError::Paused(problem.next_try));
        }
        if request.task.dates_lists() && !request.site.clock.is_trusted() {
            return Err(QueueError::Clock);
        }
        let _counted = JobGauge::new();
        let mut stopped = self.stopped.clone();
        let stop = async move { while stopped.changed().await.is_ok() {} };
        let is_own = request.site.index == self.site.index;
        let is_rebuild = matches!(request.task, Task::Rebuild(_));
        let outcome = tokio::select! {
            biased;
            () = stop => Err(QueueError::Stopping),
            outcome = self.run_in_turn(request) => outcome,
        };
        self.note(&outcome, is_own, is_rebuild);
        outcome
    }

    /// Logs and counts an outcome, and plans a retry if needed.
    fn note(&self, outcome: &Result<Outcome, QueueError>, is_own: bool, is_rebuild: bool) {
        let [ok, failed, crashed] = OUTCOMES;
        let (word, problem) = match outcome {
            Err(QueueError::Stopping | QueueError::Paused(_) | QueueError::Clock) => return,
            Err(err) => (crashed, Some(err.to_string())),
            Ok(Outcome { failure: Some(failure), .. }) => {
                let is_unbuilt = failure.step == Step::Rebuild || is_rebuild;
                (failed, is_unbuilt.then(|| failure.message.clone()))
            }
            Ok(_) => (ok, None),
        };
        jobs_total(word).increment(1);
        match (problem, outcome) {
            (Some(text), _) if is_own => {
                self.status.failed(text, self.site.clock.now());
                if let Some(JobProblem { text, failures, next_try, .. }) = self.status.problem() {
                    let next_try = next_try.format("%Y-%m-%dT%H:%M:%SZ");
                    tracing::error!(
                        error = text, failures, %next_try,
                        "an ingest or rebuild failed; lists may be missing from the index, which is \
                         built again at the next try"
                    );
                }
            }
            (Some(error), _) => tracing::error!(error, "an ingest or rebuild failed"),
            (None, Ok(done))
                if is_own && (is_rebuild || done.generation.is_some()) && word == ok =>
            {
                self.status.succeeded();
            }
            _ => {}
        }
    }

    /// Builds a generation whenever the corpus holds lists that are in no generation: at startup,
    /// and after failed jobs. Runs until `stop` completes.
    pub async fn keep_built(self, stop: impl Future<Output = ()>) {
        let work = async {
            let site = self.site.clone();
            let state = tokio::task::spawn_blocking(move || run::index_state(&site)).await;
            if state.is_ok_and(|state| state != IndexState::Current) {
                tracing::info!("the lists hold more than the index; building it");
                self.build().await;
            }
            loop {
                self.status.changed.notified().await;
                while let Some(next) = self.status.next_try() {
                    tokio::time::sleep_until(next.into()).await;
                    self.build().await;
                }
            }
        };
        tokio::select! {
            () = stop => {}
            () = work => {}
        }
    }

    /// Builds the missing generation. [`Queue::note`] plans retries of failures.
    async fn build(&self) {
        let task = Rebuild { compact: false, only_if_behind: true };
        // `Paused` means that another job has failed meanwhile.
        let _ = self.run(Task::Rebuild(task)).await;
    }

    async fn run_in_turn(&self, request: Request) -> Result<Outcome, QueueError> {
        let _turn = self.turn.lock().await;
        let memory = request.site.worker;
        let request = message::encode(&request).map_err(io::Error::from)?;
        let (begun, started) = oneshot::channel::<io::Result<Option<ChildStdin>>>();
        let (ended, outcome) = oneshot::channel();
        let log_json = self.log_json;
        // The wait runs on its own thread, because the blocking pool is for queries.
        thread::Builder::new().name("intake".to_owned()).spawn(move || {
            let began = Instant::now();
            let mut child = match worker::start(&request, log_json) {
                Ok(child) => child,
                Err(err) => return drop(begun.send(Err(err))),
            };
            let _ = begun.send(Ok(child.stdin.take()));
            let outcome = worker::collect(child, memory);
            metrics::histogram!("dropdex_job_duration_seconds")
                .record(began.elapsed().as_secs_f64());
            let _ = ended.send(outcome);
        })?;
        let gone = |_| io::Error::other("the thread of the worker panicked");
        // Dropping this ends the worker; see `worker`.
        let _stdin = started.await.map_err(gone)??;
        outcome.await.map_err(gone)?.map_err(QueueError::Crashed)
    }
}

/// Guard that counts a request in the gauge of running and waiting requests.
struct JobGauge(metrics::Gauge);

impl JobGauge {
    fn new() -> JobGauge {
        let jobs = metrics::gauge!("dropdex_jobs");
        jobs.increment(1.0);
        JobGauge(jobs)
    }
}

impl Drop for JobGauge {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
