//! The child process that runs a request for a server, and the message it exchanges with it.
//!
//! The server starts its own executable with the internal subcommand [`SUBCOMMAND`] and writes one
//! line with a [`Request`] to its standard input. The worker writes one line with an [`Outcome`] to
//! its standard output ([`crate::message`]). Log lines of the worker go to the server's standard
//! error. Exit code and log text carry no meaning.
//!
//! The server keeps the worker's standard input open as long as it wants the outcome. When the pipe
//! closes, because the server stops or dies, the worker kills itself. This can happen at any time;
//! the corpus and the index folder stay valid.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, ensure};
use rustix::process::{
    Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setpriority_process, setrlimit,
};

use crate::message::{decode, encode};
use crate::outcome::Outcome;
use crate::request::{Request, WorkerMemory};
use crate::run::run;
use crate::tables::TableFile;

/// The internal subcommand, hidden from `--help`.
pub const SUBCOMMAND: &str = "intake-worker";
/// The executable of this process, even if an upgrade has replaced its file.
const EXECUTABLE: &str = "/proc/self/exe";
/// Niceness of a worker: lower priority than request threads, including those of long queries
/// (`service/work`).
const NICE: i32 = 15;
/// Prefix of environment variables with settings of the server, some of them secret.
const SETTINGS_PREFIX: &str = "DROPDEX_";

/// Starts a worker and sends it `request`, an encoded [`Request`]. The worker runs while its
/// standard input stays open.
///
/// # Errors
/// The process cannot be started.
pub fn start(request: &[u8], log_json: bool) -> io::Result<Child> {
    let mut command = Command::new(EXECUTABLE);
    command.args(log_json.then_some("--log-json")).arg(SUBCOMMAND);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(SETTINGS_PREFIX) {
            command.env_remove(name);
        }
    }
    // By default, the allocator reserves a gibibyte at once, which would count towards the memory limit. A
    // backtrace needs memory, so a worker without any left would hang.
    command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0").env("RUST_BACKTRACE", "0");
    let mut worker = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(stdin) = &mut worker.stdin {
        // If the write fails, the worker has died, which `collect` reports.
        let _ = stdin.write_all(request);
    }
    Ok(worker)
}

/// Waits for the outcome of a worker.
///
/// # Errors
/// The worker ended without one.
pub fn collect(mut worker: Child, memory: WorkerMemory) -> anyhow::Result<Outcome> {
    let mut line = Vec::new();
    if let Some(stdout) = worker.stdout.take() {
        BufReader::new(stdout).read_until(b'\n', &mut line).context("its output")?;
    }
    let status = worker.wait()?;
    // A truncated line is not a valid outcome.
    ensure!(line.ends_with(b"\n"), "{}", cause(status, memory));
    decode(&line)
}

/// Describes how a worker ended, with the usual cause.
fn cause(status: ExitStatus, memory: WorkerMemory) -> String {
    // The standard library aborts when memory runs out.
    if status.signal() == Some(Signal::ABORT.as_raw()) {
        return format!(
            "{status}: most likely its memory was limited to too little, {memory}; if the list is not damaged, \
             raise index.worker_memory_mib"
        );
    }
    if status.signal() == Some(Signal::KILL.as_raw()) {
        return format!(
            "{status}: most likely out of memory; give the machine or the control group of the service \
             more, or lower index.rebuild_memory_mib"
        );
    }
    format!("{status}; its memory was limited to {memory} (index.worker_memory_mib)")
}

/// Keeps the worker from using up the memory of others: its own limit stops it, and the OOM killer
/// kills it first.
fn bound_memory(memory: WorkerMemory) {
    let before = getrlimit(Resource::Data);
    let bytes = memory.bytes().min(before.maximum.unwrap_or(u64::MAX));
    let limit = Rlimit { current: Some(bytes), ..before };
    let limited = setrlimit(Resource::Data, limit).map_err(io::Error::from);
    let first_to_go = fs::write("/proc/self/oom_score_adj", "1000");
    if let Err(err) = limited.and(first_to_go) {
        tracing::warn!(error = %err, "cannot limit the memory of the intake worker");
    }
}

/// Uses the tables of the server.
fn same_tables(request: &Request) -> anyhow::Result<()> {
    request.site.tables.iter().try_for_each(TableFile::install_same)
}

/// Runs as a worker: reads a request from standard input and writes the outcome to standard output.
///
/// # Errors
/// The request is not a message of this version, or the server no longer runs.
pub fn serve() -> anyhow::Result<()> {
    // Threads that are started after this inherit the priority.
    if let Err(err) = setpriority_process(None, NICE) {
        tracing::debug!(error = %err, "cannot lower the priority of the intake worker");
    }
    let mut line = Vec::new();
    let mut stdin = BufReader::new(io::stdin());
    stdin.read_until(b'\n', &mut line).context("cannot read the request")?;
    let request: Request = decode(&line).context("the request")?;
    bound_memory(request.site.worker);
    thread::spawn(move || {
        let _ = io::copy(&mut stdin, &mut io::sink());
        let _ = kill_process(getpid(), Signal::KILL);
    });
    let outcome = match same_tables(&request) {
        Ok(()) => run(&request, &()),
        Err(err) => Outcome::failed(&err),
    };
    let outcome = encode(&outcome)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&outcome).and_then(|()| stdout.flush()).context("the server is gone")
}
