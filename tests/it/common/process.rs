//! Child processes of a test: commands and servers, none of which outlives the test.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::http::Client;
use super::wait;

/// Deadline of a command, which takes seconds even in a debug build, and minutes with ten million
/// names.
const COMMAND_MAX: Duration = Duration::from_secs(900);
/// Deadline of a server's `listening on` line.
const START_MAX: Duration = Duration::from_secs(120);
/// Deadline of a line that should be printed or logged soon.
const PRINTED_MAX: Duration = Duration::from_secs(60);
/// Deadline of a shutdown after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(30);

/// A command that has ended.
pub struct Finished {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    command: String,
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finished { code, stdout, stderr, command } = self;
        write!(f, "{command}\nexit code {code:?}\nstdout:\n{stdout}\nstderr:\n{stderr}")
    }
}

impl Finished {
    /// Asserts a failure as an operator should see it: `code`, no panic, and a last line on
    /// standard error that holds each of `words` (ignoring case).
    #[track_caller]
    pub fn assert_failed(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.stderr.contains("panicked at"), "{self}");
        let last = self.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        for word in words {
            let found = last.to_lowercase().contains(&word.to_lowercase());
            assert!(found, "no `{word}` in the last line on stderr\n{self}");
        }
    }
}

/// Runs a command to its end.
pub fn finish(command: Command) -> Finished {
    let mut running = Running::start(command);
    let code = running.wait(Instant::now() + COMMAND_MAX);
    if code.is_none() {
        running.kill();
    }
    let finished = Finished {
        code: code.flatten(),
        stdout: running.stdout(),
        stderr: running.stderr(),
        command: running.command.clone(),
    };
    assert!(code.is_some(), "not done after {COMMAND_MAX:?}\n{finished}");
    finished
}

/// A server that has been started and is not ready yet.
pub struct Starting(Running);

impl Starting {
    pub(super) fn new(command: Command) -> Starting {
        Starting(Running::start(command))
    }

    /// Waits until it is ready.
    pub fn ready(mut self) -> Server {
        let line = self.0.first_line(Instant::now() + START_MAX);
        let address = line
            .as_deref()
            .and_then(|line| line.strip_prefix("listening on "))
            .and_then(|url| url.strip_prefix("http://").or(url.strip_prefix("https://")))
            .and_then(|address| address.parse().ok());
        if let Some(address) = address {
            return Server { running: self.0, address };
        }
        self.0.kill();
        panic!(
            "the server did not say `listening on http://ADDR`\n{}\nstdout:\n{}\nstderr:\n{}",
            self.0.command,
            self.0.stdout(),
            self.0.stderr()
        );
    }

    /// Sends SIGKILL after `delay`, or when the server is ready if that is earlier.
    pub fn kill_within(mut self, delay: Duration) {
        self.0.first_line(Instant::now() + delay);
        self.0.kill();
    }
}

/// A server that is ready. Dropping the server stops it with SIGTERM, then SIGKILL.
pub struct Server {
    running: Running,
    address: SocketAddr,
}

impl Server {
    /// Address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a client without a key, with its own connection.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Returns a client that sends `key` with every request, with its own connection.
    pub fn client_with(&self, key: &str) -> Client {
        Client::new(self.address).with_key(key)
    }

    /// Returns a client of the metrics listener, which the settings must enable.
    pub fn metrics(&self) -> Client {
        let address = self.printed("metrics on http://");
        let address = address.strip_suffix("/metrics").expect("their path");
        Client::new(address.parse().expect("an address"))
    }

    /// Waits for a line on standard output that starts like this, and returns the rest of it.
    #[track_caller]
    pub fn printed(&self, start: &str) -> String {
        wait::until_ok(PRINTED_MAX, || {
            let text = self.stdout();
            let rest = text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned);
            rest.ok_or_else(|| format!("no line starts with {start:?}: {text}"))
        })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.running.child.id()
    }

    /// Sends a signal by its name: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        assert!(self.running.signal(name), "SIG{name} cannot be sent to {}", self.pid());
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        self.running.stdout()
    }

    /// Waits until standard error contains this text, and returns all of it. A line may appear later
    /// than the response or the file to which it refers.
    #[track_caller]
    pub fn logged(&self, text: &str) -> String {
        wait::until_ok(PRINTED_MAX, || {
            let log = self.log();
            if log.contains(text) {
                Ok(log)
            } else {
                Err(format!("no {text:?} in the log:\n{log}"))
            }
        })
    }

    /// Standard error so far.
    pub fn log(&self) -> String {
        self.running.stderr()
    }

    /// Sends SIGKILL and returns once the process is gone.
    pub fn kill(mut self) -> String {
        self.running.kill();
        self.running.stderr()
    }

    /// Waits until the server exits on its own, asserts success, and returns its standard error.
    pub fn ended(mut self) -> String {
        let code = self.running.wait(Instant::now() + STOP_MAX);
        let stderr = self.running.stderr();
        assert_eq!(code, Some(Some(0)), "stderr:\n{stderr}");
        stderr
    }

    /// Stops the server with SIGTERM, asserts success, and returns its standard error.
    pub fn stop(mut self) -> String {
        let code = self.running.terminate();
        let stderr = self.running.stderr();
        assert_eq!(code, Some(Some(0)), "after SIGTERM; stderr:\n{stderr}");
        stderr
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.terminate().is_none() {
            self.running.kill();
        }
    }
}

/// A child whose output is read continuously, so that it never blocks on a full pipe. Dropping it kills it.
struct Running {
    child: Child,
    /// The exit code, once the process has been waited for.
    ended: Option<Option<i32>>,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
    events: Receiver<Event>,
    open_pipes: usize,
    command: String,
}

enum Event {
    FirstLine(String),
    PipeClosed,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let text = format!("{command:?}");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{text}: {error}"));
        let (sender, events) = mpsc::channel();
        let stdout = child.stdout.take().expect("piped");
        let stderr = child.stderr.take().expect("piped");
        Running {
            stdout: collect(stdout, Some(sender.clone()), sender.clone()),
            stderr: collect(stderr, None, sender),
            child,
            ended: None,
            events,
            open_pipes: 2,
            command: text,
        }
    }

    fn stdout(&self) -> String {
        self.stdout.lock().expect("readers do not panic").clone()
    }

    fn stderr(&self) -> String {
        self.stderr.lock().expect("readers do not panic").clone()
    }

    /// Waits for the first line on standard output; `None` if it does not come by the deadline.
    fn first_line(&mut self, deadline: Instant) -> Option<String> {
        while self.open_pipes > 0 {
            match self.next_event(deadline)? {
                Event::FirstLine(line) => return Some(line),
                Event::PipeClosed => self.open_pipes -= 1,
            }
        }
        None
    }

    /// Waits for the exit code; `None` if the child has not closed its output by the deadline.
    fn wait(&mut self, deadline: Instant) -> Option<Option<i32>> {
        while self.open_pipes > 0 {
            if let Event::PipeClosed = self.next_event(deadline)? {
                self.open_pipes -= 1;
            }
        }
        if self.ended.is_none() {
            self.ended = Some(self.child.wait().expect("a child can be waited for").code());
        }
        self.ended
    }

    fn next_event(&self, deadline: Instant) -> Option<Event> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("every reader reports its end"),
        }
    }

    /// Sends SIGTERM and waits for the exit code; `None` if the child does not end in time.
    fn terminate(&mut self) -> Option<Option<i32>> {
        if self.ended.is_some() {
            return self.ended;
        }
        if !self.signal("TERM") {
            self.kill();
        }
        self.wait(Instant::now() + STOP_MAX)
    }

    /// Whether the signal could be sent.
    fn signal(&self, name: &str) -> bool {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        sent.is_ok_and(|status| status.success())
    }

    /// Sends SIGKILL, unless the child has ended.
    fn kill(&mut self) {
        if self.ended.is_none() && self.child.kill().is_ok() {
            self.ended = self.child.wait().ok().map(|status| status.code());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads a pipe to its end on a thread; sends its first line to `first`, its end to `end`.
fn collect(
    pipe: impl Read + Send + 'static,
    mut first: Option<Sender<Event>>,
    end: Sender<Event>,
) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&text);
    thread::spawn(move || {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let heard = String::from_utf8_lossy(&line).into_owned();
            kept.lock().expect("no panic while locked").push_str(&heard);
            line.clear();
            if let Some(first) = first.take() {
                // The test may have dropped the receiver.
                let _ = first.send(Event::FirstLine(heard.trim_end().to_owned()));
            }
        }
        let _ = end.send(Event::PipeClosed);
    });
    text
}
