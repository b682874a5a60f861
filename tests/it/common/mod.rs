//! The harness of the integration tests: each test gets a temporary folder, the real binary run as an
//! operator runs it, and a strict HTTP/1.1 client.
//!
//! Every wait has a deadline. The output of a failed process is part of the failure message.

pub mod http;
pub mod json;
pub mod knot;
pub mod ledger;
pub mod linear;
pub mod mailbox;
pub mod mounts;
pub mod nameless;
pub mod nats;
pub mod nginx;
pub mod process;
pub mod proxy;
pub mod rdap;
pub mod receiver;
pub mod rng;
pub mod runs;
pub mod s3;
mod template;
pub mod tools;
pub mod wait;
pub mod whois;
pub mod writer;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

pub use http::{Client, Response};
pub use process::{Finished, Server, Starting};
use template::Template;

/// The day of servers whose tests need no particular day.
pub const TODAY: &str = "2026-03-15";
/// The default settings file of an installation.
const SETTINGS: &str = "default-settings.toml";

/// Returns the sections for external services that `toml` lacks: every channel is configured but leads
/// to port 1, on which no process listens, and no name resolves.
fn outside(toml: &str) -> String {
    let dns = format!("[dns]\nservers = [\"{}\"]\n", nameless::address());
    let sections = [
        "[smtp]\nhost = \"127.0.0.1\"\nport = 1\ntls = \"none\"\nfrom = \"dropdex@example.com\"\n",
        "[telegram]\ntoken = \"1:test\"\nbase = \"http://127.0.0.1:1\"\n",
        "[rdap]\nenabled = false\n",
        &dns,
    ];
    let has = |section: &str| section.lines().next().is_some_and(|header| toml.contains(header));
    sections.into_iter().filter(|section| !has(section)).collect()
}

/// One installation of dropdex in a temporary folder, which is removed on drop.
///
/// Commands that only prepare it ([`Site::ingest`], [`Site::account`] and others) are run once for all
/// tests; see [`template`]. Once a test has used the folders in any other way, its later commands are
/// run for it alone.
pub struct Site {
    dir: TempDir,
    data: PathBuf,
    state: Mutex<State>,
}

/// Content of an installation's folders.
struct State {
    /// Identifies the commands that were run; `None` once the test has used the folders itself.
    template: Option<Template>,
    /// Whether the template has been copied into the folders.
    is_written: bool,
}

impl State {
    fn write(&mut self, site: &Path) {
        if let Some(template) = self.template.as_ref().filter(|_| !self.is_written) {
            template.restore(site);
            self.is_written = true;
        }
    }
}

impl Site {
    /// Creates an installation without lists, index or accounts.
    pub fn new() -> Site {
        let dir = tempfile::Builder::new().prefix("dropdex-test-").tempdir();
        let dir = dir.expect("a temporary folder can be made");
        for folder in ["data", "index", "lists"] {
            std::fs::create_dir(dir.path().join(folder)).expect("a folder can be made");
        }
        let data = dir.path().join("data");
        let state = State { template: Some(Template::empty()), is_written: true };
        let site = Site { dir, data, state: Mutex::new(state) };
        site.write(SETTINGS, outside(""));
        site
    }

    /// Creates an installation whose index holds `names`, all dropped on `day`.
    pub fn with_names(names: impl Iterator<Item = String>, day: &str) -> Site {
        let site = Site::new();
        let rows: String = names.map(|name| format!("{name},{day}\n")).collect();
        let list = site.write("list.csv", format!("domain,drop_date\n{rows}"));
        site.ingest(&list, &format!("{day}T00:00:00Z"));
        site
    }

    /// Creates an installation whose index holds, on [`TODAY`], an available name, a pending one, an IDN
    /// and one that was registered again.
    pub fn with_a_name_of_each_kind() -> Site {
        let site = Site::new();
        let list = "domain,drop_date,release_date,status\n\
                    solar.com,2026-03-10,,\n\
                    solar.de,2026-01-12,,\n\
                    münchen.de,2026-03-01,,\n\
                    kept.org,,,registered\n";
        site.ingest(&site.write("list.csv", list), "2026-03-15T00:00:00Z");
        site
    }

    /// Moves the data folder to `data`, which is not removed with the installation.
    pub fn with_data(self, data: &Path) -> Site {
        self.leave_template();
        Site { data: data.to_owned(), ..self }
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.leave_template();
        self.data.clone()
    }

    /// The index folder.
    pub fn index(&self) -> PathBuf {
        self.leave_template();
        self.dir.path().join("index")
    }

    /// The folder of lists and settings.
    pub fn lists(&self) -> PathBuf {
        self.dir.path().join("lists")
    }

    /// Writes a file into the folder of lists and returns its path.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join("lists").join(name);
        std::fs::write(&path, bytes).expect("a list can be written");
        path
    }

    /// The manifest of the current generation.
    pub fn manifest(&self) -> Value {
        let current = fs::read_to_string(self.index().join("CURRENT")).expect("there is one");
        let text = fs::read_to_string(self.index().join(current.trim()).join("MANIFEST"));
        let text = text.expect("a manifest");
        serde_json::from_str(text.lines().next().expect("a line")).expect("JSON")
    }

    /// Writes a settings file and returns its path, for `--config`. Sections for external services that
    /// it lacks are added.
    pub fn settings(&self, toml: &str) -> String {
        let path = self.write("settings.toml", format!("{toml}\n{}", outside(toml)));
        path.to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// Returns the binary as a command, with this installation's folders as the only `DROPDEX_` settings
    /// in its environment.
    pub fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        self.leave_template();
        self.plain_command(args)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the template into the folders if needed. From now on, every command is actually run.
    fn leave_template(&self) {
        let mut state = self.state();
        state.write(self.dir.path());
        state.template = None;
    }

    /// Brings this installation to the state after the command that `key` describes, from a template or
    /// by running it, and returns the output of the command.
    fn prepare(&self, key: &[&[u8]], run: impl FnOnce() -> String) -> String {
        let mut state = self.state();
        let Some(before) = state.template.clone() else {
            drop(state);
            return run();
        };
        let after = before.after(key);
        if let Some(output) = after.output() {
            *state = State { template: Some(after), is_written: false };
            return output;
        }
        let _lock = after.lock();
        if let Some(output) = after.output() {
            *state = State { template: Some(after), is_written: false };
            return output;
        }
        state.write(self.dir.path());
        let output = run();
        after.store(self.dir.path(), &output);
        state.template = Some(after);
        output
    }

    /// Runs a command that must succeed, and does not end the use of templates.
    fn prepare_with(&self, args: &[&str]) -> String {
        let key: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        self.prepare(&key, || succeed(self.plain_command(args)))
    }

    fn plain_command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dropdex"));
        let foreign = std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.to_string_lossy().starts_with("DROPDEX_") || name == "RUST_LOG");
        for name in foreign {
            command.env_remove(name);
        }
        command
            .args(args)
            .env("DROPDEX_DATA", &self.data)
            .env("DROPDEX_INDEX", self.dir.path().join("index"))
            .env("DROPDEX_CONFIG", self.dir.path().join("lists").join(SETTINGS))
            // There is no load balancer that needs time to notice a shutdown.
            .env("DROPDEX_DRAIN_DELAY", "0")
            .stdin(Stdio::null())
            .current_dir(self.dir.path());
        command
    }

    /// Runs a command to its end and accepts any exit code.
    pub fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Finished {
        process::finish(self.command(args))
    }

    /// Runs a command that must succeed and returns its standard output.
    pub fn ok<A: AsRef<OsStr>>(&self, args: &[A]) -> String {
        succeed(self.command(args))
    }

    /// Runs a command that reads `input` and must succeed, and returns its standard output.
    pub fn ok_with_input<A: AsRef<OsStr>>(&self, args: &[A], input: &str) -> String {
        let mut command = self.command(args);
        command.stdin(self.input(input));
        succeed(command)
    }

    /// Opens a file with this content.
    fn input(&self, content: &str) -> std::fs::File {
        let path = self.write("input", content);
        std::fs::File::open(path).expect("it was just written")
    }

    /// Ingests one list that was observed at `observed_at` (RFC 3339) and builds the index.
    pub fn ingest(&self, list: &Path, observed_at: &str) -> String {
        let name = list.file_name().expect("a list has a name").as_encoded_bytes();
        let bytes = std::fs::read(list).expect("the list is there");
        self.prepare(&[b"ingest", observed_at.as_bytes(), name, &bytes], || {
            let list = list.to_str().expect("temporary paths are UTF-8");
            succeed(self.plain_command(&["ingest", "--observed-at", observed_at, list]))
        })
    }

    /// Sends a line to the running server's admin socket and returns its reply, a JSON object.
    ///
    /// # Errors
    /// No server listens, or it closed the connection without a reply.
    pub fn ask_admin(&self, line: &str) -> io::Result<Value> {
        let mut socket = UnixStream::connect(self.data().join("admin.sock"))?;
        writeln!(socket, "{line}")?;
        let mut reply = String::new();
        BufReader::new(socket).read_line(&mut reply)?;
        Ok(serde_json::from_str(&reply)?)
    }

    /// Requests a snapshot of the accounts from the running server and returns its reply.
    ///
    /// # Errors
    /// As [`Site::ask_admin`].
    pub fn ask_for_snapshot(&self) -> io::Result<Value> {
        self.ask_admin("{\"command\":\"snapshot\"}")
    }

    /// Adds an account and returns its first key.
    pub fn account(&self, email: &str, plan: &str) -> String {
        self.prepare_with(&["account", "add", email, "--plan", plan]);
        self.new_key(email)
    }

    /// Adds an account that can log in.
    pub fn account_with_password(&self, email: &str, plan: &str, password: &str) {
        let args = ["account", "add", email, "--plan", plan, "--password-stdin"];
        let mut key: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        key.push(password.as_bytes());
        self.prepare(&key, || {
            let mut command = self.plain_command(&args);
            command.stdin(self.input(&format!("{password}\n")));
            succeed(command)
        });
    }

    /// Replaces an account's key and returns the new one.
    pub fn new_key(&self, email: &str) -> String {
        let key = self.prepare_with(&["account", "key", email]).trim_end().to_owned();
        let hex = key.strip_prefix("ddx_").unwrap_or_else(|| panic!("not a key: {key:?}"));
        let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        assert!(hex.len() == 48 && hex.bytes().all(lower_hex), "not a key: {key:?}");
        key
    }

    /// Starts a server with the day `today` on a free port, and waits until it is ready.
    pub fn serve(&self, today: &str) -> Server {
        self.serve_with(&["--today", today])
    }

    /// Starts a server on a free port with more arguments, and waits until it is ready.
    pub fn serve_with(&self, args: &[&str]) -> Server {
        self.start(args).ready()
    }

    /// Starts a server on an address, and waits until it is ready.
    pub fn serve_on(&self, address: SocketAddr, args: &[&str]) -> Server {
        let address = address.to_string();
        let args = [&["serve", "--listen", address.as_str()], args].concat();
        Starting::new(self.command(&args)).ready()
    }

    /// Starts a server on a free port with more arguments, without waiting.
    pub fn start(&self, args: &[&str]) -> Starting {
        let args = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        Starting::new(self.command(&args))
    }

    /// Starts a command on a day, without waiting.
    pub fn start_on(&self, day: &str, args: &[&str]) -> Starting {
        let mut command = self.command(args);
        command.env("DROPDEX_TODAY", day);
        Starting::new(command)
    }

    /// Runs a command on a day, which must succeed.
    pub fn ok_on(&self, day: &str, args: &[&str]) {
        let content = |arg: &str| match std::fs::read(arg) {
            Ok(bytes) => bytes,
            Err(_) => arg.as_bytes().to_owned(),
        };
        let inputs: Vec<Vec<u8>> = args.iter().copied().map(content).collect();
        let mut key: Vec<&[u8]> = vec![day.as_bytes()];
        for (arg, input) in args.iter().zip(&inputs) {
            let name = Path::new(arg).file_name().unwrap_or_default();
            key.extend([name.as_encoded_bytes(), input.as_slice()]);
        }
        self.prepare(&key, || {
            let mut command = self.plain_command(args);
            command.env("DROPDEX_TODAY", day);
            succeed(command)
        });
    }

    /// Starts a server on a free port whose clock is stopped at the Unix time, in seconds, in the file
    /// `clock`.
    pub fn serve_by(&self, clock: &Path, args: &[&str]) -> Server {
        self.serve_in(&tools::faketime(clock), args)
    }

    /// Starts a server on a free port with more arguments and variables in its environment, and waits
    /// until it is ready.
    pub fn serve_in(&self, environment: &[(&str, String)], args: &[&str]) -> Server {
        let args = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        let mut command = self.command(&args);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Starting::new(command).ready()
    }

    /// Starts the demo on a free port, and waits until it is ready.
    pub fn demo(&self) -> Server {
        Starting::new(self.command(&["demo", "--listen", "127.0.0.1:0"])).ready()
    }
}

/// Runs a command that must succeed and returns its standard output.
fn succeed(command: Command) -> String {
    let finished = process::finish(command);
    assert_eq!(finished.code, Some(0), "{finished}");
    finished.stdout
}

/// Returns `bytes` as a gzip file.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
