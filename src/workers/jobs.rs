//! Work on lists beside a server: `ingest`, `rebuild` and the like come in, their exit code and what
//! they printed go out. One at a time, whoever asks, and each as a process of its own from this very
//! program: its memory goes with it, a crash of it is none of the server's, and it gives way where
//! requests want the cores.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setpriority_process};
use tokio::sync::{oneshot, watch};

use crate::vocab::day::Day;

/// This program, also after its file was replaced by an upgrade.
const PROGRAM: &str = "/proc/self/exe";
/// How much work gives way: to the threads of long questions as well (`http/work`).
const NICE: i32 = 15;
/// How often it is asked whether work has ended.
const PERIOD: Duration = Duration::from_millis(20);
/// Bytes of output that are kept of each stream: the end, where the result stands.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// The variable that tells a job the process it is one of.
const JOB_OF: &str = "DROPDEX_JOB_OF";
/// Variables that are the server's own affair.
const NOT_INHERITED: [&str; 3] = ["DROPDEX_TODAY", "NOTIFY_SOCKET", "WATCHDOG_USEC"];

/// Where work finds what it works on.
#[derive(Clone, Debug)]
pub struct Places {
    pub data: PathBuf,
    pub index: PathBuf,
    /// The file of settings.
    pub config: Option<PathBuf>,
    /// The day that is taken for today.
    pub today: Option<Day>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// `None` where a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("the server is stopping; nothing is half done, run it again")]
    Stopping,
    #[error("the server cannot start it: {0}")]
    Start(#[from] io::Error),
}

/// The queue. Clones share it.
#[derive(Clone, Debug)]
pub struct Jobs {
    turn: Arc<tokio::sync::Mutex<()>>,
    stopped: watch::Receiver<()>,
}

impl Jobs {
    /// An empty queue, of which all is over when the sender of `stopped` is gone.
    pub fn new(stopped: watch::Receiver<()>) -> Jobs {
        Jobs { turn: Arc::default(), stopped }
    }

    /// Waits for its turn and runs the command with these arguments.
    ///
    /// # Errors
    /// It cannot be started, or the server stops: then it is ended, which is as good as never begun.
    pub async fn run(
        &self,
        places: &Places,
        arguments: Vec<OsString>,
    ) -> Result<Finished, JobError> {
        let _counted = Counted::new();
        self.run_in_turn(places, arguments).await
    }

    async fn run_in_turn(
        &self,
        places: &Places,
        arguments: Vec<OsString>,
    ) -> Result<Finished, JobError> {
        let mut stopped = self.stopped.clone();
        let stop = async move { while stopped.changed().await.is_ok() {} };
        let mut stop = std::pin::pin!(stop);
        let _turn = tokio::select! {
            biased;
            () = &mut stop => return Err(JobError::Stopping),
            turn = self.turn.lock() => turn,
        };
        let (child, done) = start(places, arguments).await?;
        // Ends it also when the caller of this is dropped.
        let _child = child;
        tokio::select! {
            biased;
            done = done => Ok(done.map_err(|_| io::Error::other("nobody waited for it"))??),
            () = &mut stop => Err(JobError::Stopping),
        }
    }
}

/// One more job under way or waiting, for as long as this is there.
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

/// A child that ends with this.
#[derive(Clone, Debug)]
struct Running(Arc<Mutex<Child>>);

struct EndOnDrop(Running);

impl Running {
    fn lock(&self) -> MutexGuard<'_, Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.lock().try_wait()? {
                return Ok(status);
            }
            thread::sleep(PERIOD);
        }
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        // Nothing happens to one that was waited for. Whatever it was at is safe to be cut off.
        let _ = self.0.lock().kill();
    }
}

type Done = oneshot::Receiver<io::Result<Finished>>;

async fn start(places: &Places, arguments: Vec<OsString>) -> io::Result<(EndOnDrop, Done)> {
    let begun = Instant::now();
    let mut command = Command::new(PROGRAM);
    command.arg("--data").arg(&places.data).arg("--index").arg(&places.index);
    NOT_INHERITED.iter().for_each(|variable| {
        command.env_remove(variable);
    });
    if let Some(config) = &places.config {
        command.arg("--config").arg(config);
    }
    if let Some(today) = places.today {
        command.arg("--today").arg(today.to_string());
    }
    command.args(arguments);
    command.env(JOB_OF, std::process::id().to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (tell_started, started) = oneshot::channel();
    let (tell_done, done) = oneshot::channel();
    thread::Builder::new().name("job".to_owned()).spawn(move || {
        // In here, for to the system the parent of a process is a thread: this one is there to its end.
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(err) => return drop(tell_started.send(Err(err))),
        };
        if let Some(pid) = Pid::from_raw(child.id() as i32)
            && let Err(err) = setpriority_process(Some(pid), NICE)
        {
            tracing::debug!(error = %err, "work on lists cannot be made to give way");
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let running = Running(Arc::new(Mutex::new(child)));
        // Ends with what is sent, also when nobody is there any more to take it.
        let _ = tell_started.send(Ok(EndOnDrop(running.clone())));
        let finished = thread::scope(|scope| {
            let stdout = scope.spawn(|| end_of(stdout));
            let stderr = end_of(stderr);
            let stdout = stdout.join().unwrap_or_default();
            running.wait().map(|status| Finished { code: status.code(), stdout, stderr })
        });
        metrics::histogram!("dropdex_job_duration_seconds").record(begun.elapsed().as_secs_f64());
        // The caller may have gone.
        let _ = tell_done.send(finished);
    })?;
    let child = started.await.map_err(|_| io::Error::other("nobody started it"))??;
    Ok((child, done))
}

/// Ends this process with the server that started it as a job, however that one ends: nobody would hear
/// what came of it, and the next server would find the lists in use. No job is half done.
///
/// # Errors
/// The system does not let it.
pub fn end_with_server() -> io::Result<()> {
    let Some(server) = std::env::var_os(JOB_OF) else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before.
    let parent = getppid().map(|pid| pid.as_raw_nonzero().to_string());
    match parent.is_some_and(|parent| server == *parent) {
        true => Ok(()),
        false => Err(io::Error::other("the server that started this has ended")),
    }
}

/// The end of what a pipe gives, to its end.
fn end_of(pipe: Option<impl Read>) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 8192]);
    let Some(mut pipe) = pipe else { return String::new() };
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..read]);
        if kept.len() > 2 * OUTPUT_BYTES_MAX {
            kept.drain(..kept.len() - OUTPUT_BYTES_MAX);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
