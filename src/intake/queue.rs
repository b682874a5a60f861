//! Requests beside a server, one at a time, each in a [`worker`] process.

use std::io;
use std::process::ChildStdin;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tokio::sync::{Mutex, oneshot, watch};

use crate::intake::message;
use crate::intake::outcome::Outcome;
use crate::intake::request::{Request, Site, Task};
use crate::intake::worker;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("the server is stopping; nothing is half done, run the command again")]
    Stopping,
    #[error("the server cannot start a worker process: {0}")]
    Start(#[from] io::Error),
    #[error("the worker process crashed ({0:#}); the log of the server may give the reason")]
    Crashed(anyhow::Error),
}

/// The queue of a server. Clones share it.
#[derive(Clone, Debug)]
pub struct Queue {
    site: Site,
    /// Whether workers log as JSON lines.
    log_json: bool,
    turn: Arc<Mutex<()>>,
    stopped: watch::Receiver<()>,
}

impl Queue {
    /// An empty queue for the installation `site`. It ends when the sender of `stopped` is dropped.
    pub fn new(site: Site, log_json: bool, stopped: watch::Receiver<()>) -> Queue {
        // Exported before the first job.
        drop(metrics::gauge!("dropdex_jobs"));
        Queue { site, log_json, turn: Arc::default(), stopped }
    }

    /// The installation that the server serves.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Waits for its turn and runs `task` on the server's own installation.
    ///
    /// # Errors
    /// As [`Queue::run_request`].
    pub async fn run(&self, task: Task) -> Result<Outcome, QueueError> {
        self.run_request(Request { site: self.site.clone(), task }).await
    }

    /// Waits for its turn and runs a request.
    ///
    /// # Errors
    /// The worker cannot be started or crashes, or the server stops: then the worker is killed, and
    /// nothing is half done.
    pub async fn run_request(&self, request: Request) -> Result<Outcome, QueueError> {
        let _counted = Counted::new();
        let mut stopped = self.stopped.clone();
        let stop = async move { while stopped.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            () = stop => Err(QueueError::Stopping),
            outcome = self.run_in_turn(request) => outcome,
        }
    }

    async fn run_in_turn(&self, request: Request) -> Result<Outcome, QueueError> {
        let _turn = self.turn.lock().await;
        let request = message::encode(&request).map_err(io::Error::from)?;
        let (begun, started) = oneshot::channel::<io::Result<Option<ChildStdin>>>();
        let (ended, outcome) = oneshot::channel();
        let log_json = self.log_json;
        // A thread of its own: the blocking pool is for queries.
        thread::Builder::new().name("intake".to_owned()).spawn(move || {
            let began = Instant::now();
            let mut child = match worker::start(&request, log_json) {
                Ok(child) => child,
                Err(err) => return drop(begun.send(Err(err))),
            };
            let _ = begun.send(Ok(child.stdin.take()));
            let outcome = worker::collect(child);
            metrics::histogram!("dropdex_job_duration_seconds")
                .record(began.elapsed().as_secs_f64());
            let _ = ended.send(outcome);
        })?;
        let gone = |_| io::Error::other("the thread of the worker panicked");
        // The worker ends when this is dropped: see `worker`.
        let _stdin = started.await.map_err(gone)??;
        outcome.await.map_err(gone)?.map_err(QueueError::Crashed)
    }
}

/// Counts a request in the gauge of those that run or wait.
struct Counted(metrics::Gauge);

impl Counted {
    fn new() -> Counted {
        let jobs = metrics::gauge!("dropdex_jobs");
        jobs.increment(1.0);
        Counted(jobs)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
