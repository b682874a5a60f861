//! Runs the binary as an operator does, and measures its output, time and memory.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dropdex::vocab::day::Day;
use serde_json::Value;

use crate::client;
use crate::report::{field, kibibytes};

/// Idle time after the requests, so that the allocator can return memory.
const SETTLE: Duration = Duration::from_secs(2);
/// The first request of each kind builds data that the server keeps.
const FIRST_REQUESTS: [&str; 2] = ["/api/v1/drops", "/api/v1/search?q=solar"];
const EMAIL: &str = "bench@dropdex.example";
/// Interval between reads of a process's memory.
const LOOK: Duration = Duration::from_millis(5);
/// Unit of the times in `/proc/PID/stat` on Linux, which does not depend on the kernel's own ticks.
const TICKS_PER_SECOND: f64 = 100.0;

/// A command that succeeded.
#[derive(Debug)]
pub struct Ran {
    pub stdout: String,
    pub seconds: f64,
    /// Sum over all cores; zero on systems without `/proc`.
    pub cpu_seconds: f64,
    /// Peak resident bytes, as measured by periodic sampling.
    pub peak_bytes: u64,
}

/// The folders and the day of one installation.
pub struct Site {
    pub data: PathBuf,
    pub index: PathBuf,
    pub config: PathBuf,
    pub today: Day,
}

impl Site {
    /// Runs `dropdex` with `arguments`.
    ///
    /// # Errors
    ///
    /// It cannot be run or does not succeed.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<Ran> {
        self.ended(arguments, Stdio::piped())
    }

    /// As [`Site::run`], but discards the output, which may be gigabytes.
    ///
    /// # Errors
    ///
    /// As [`Site::run`].
    pub fn run_silent(&self, arguments: &[&str]) -> anyhow::Result<Ran> {
        self.ended(arguments, Stdio::null())
    }

    /// Starts a server.
    ///
    /// # Errors
    /// It does not start.
    pub fn serve(&self) -> anyhow::Result<Server> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let begun = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = child.context("cannot start dropdex")?;
        // The process is owned from here on, so that the server is stopped even if its output is
        // unexpected.
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server { child, address, start: Duration::ZERO };
        let stdout = server.child.stdout.take().context("standard output is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("the server's first line")?;
        server.start = begun.elapsed();
        let address = line.trim_end().strip_prefix("listening on http://");
        server.address = address
            .and_then(|address| address.parse().ok())
            .with_context(|| format!("the server said `{}`", line.trim_end()))?;
        Ok(server)
    }

    /// Adds an account and returns its key.
    ///
    /// # Errors
    ///
    /// As [`Site::run`].
    pub fn add_account(&self) -> anyhow::Result<String> {
        self.run(&["account", "add", EMAIL, "--plan", "api"])?;
        self.new_key()
    }

    /// Replaces the key of the account of [`Site::add_account`].
    ///
    /// # Errors
    ///
    /// As [`Site::run`].
    pub fn new_key(&self) -> anyhow::Result<String> {
        Ok(self.run(&["account", "key", EMAIL])?.stdout.trim_end().to_owned())
    }

    /// Returns a command on these folders; the environment is ignored.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dropdex"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DROPDEX_") {
                command.env_remove(name);
            }
        }
        command.env("DROPDEX_DATA", &self.data).env("DROPDEX_INDEX", &self.index);
        command.env("DROPDEX_TODAY", self.today.to_string()).env("RUST_LOG", "warn");
        command.env("DROPDEX_CONFIG", &self.config);
        command.args(arguments);
        command
    }

    fn ended(&self, arguments: &[&str], stdout: Stdio) -> anyhow::Result<Ran> {
        let mut command = self.command(arguments);
        let (begun, cpu) = (Instant::now(), children_cpu_seconds());
        let mut child =
            command.stdin(Stdio::null()).stdout(stdout).spawn().context("cannot run dropdex")?;
        let status_file = proc_status(&child);
        let mut peak_bytes = 0;
        let status = loop {
            peak_bytes = peak_bytes.max(memory(&status_file, "VmHWM").unwrap_or(0));
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(LOOK);
        };
        let seconds = begun.elapsed().as_secs_f64();
        let mut stdout = String::new();
        // The output is lines of JSON and keys, which fit into a pipe.
        child.stdout.take().map(|mut pipe| pipe.read_to_string(&mut stdout)).transpose()?;
        ensure!(status.success(), "{command:?} ended with {status}");
        let cpu_seconds = children_cpu_seconds() - cpu;
        Ok(Ran { stdout, seconds, cpu_seconds, peak_bytes })
    }
}

/// A running server, which ends on drop.
pub struct Server {
    child: Child,
    address: SocketAddr,
    /// Time from the start of the process until it listens.
    pub start: Duration,
}

impl Server {
    /// Sends one request of each kind, lets the server idle, and returns its resident bytes; `None` if
    /// the system does not report them.
    ///
    /// # Errors
    ///
    /// The server does not respond.
    pub fn idle_bytes(&self, key: &str) -> anyhow::Result<Option<u64>> {
        let targets = FIRST_REQUESTS.map(str::to_owned);
        client::ask_each(self.address, key, &targets, |_, _| Ok(()))?;
        std::thread::sleep(SETTLE);
        Ok(memory(&proc_status(&self.child), "VmRSS"))
    }
}

impl Server {
    /// Returns the number of the served generation.
    ///
    /// # Errors
    ///
    /// The server does not respond.
    pub fn generation(&self, key: &str) -> anyhow::Result<u64> {
        let mut generation = None;
        client::ask_each(self.address, key, &["/api/v1/drops?limit=1".to_owned()], |_, body| {
            generation = serde_json::from_slice::<Value>(body)?["generation"].as_u64();
            Ok(())
        })?;
        generation.context("the list names no generation")
    }

    /// Returns the peak resident bytes so far; `None` if the system does not report them.
    pub fn peak_bytes(&self) -> Option<u64> {
        memory(&proc_status(&self.child), "VmHWM")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn proc_status(child: &Child) -> PathBuf {
    Path::new("/proc").join(child.id().to_string()).join("status")
}

fn memory(status: &Path, name: &str) -> Option<u64> {
    field(status.to_str()?, name).and_then(|text| kibibytes(&text))
}

/// Returns the CPU time of the ended children of this process.
fn children_cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses, which may contain spaces; the times are fields 16 and
    // 17.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks =
        after.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}
