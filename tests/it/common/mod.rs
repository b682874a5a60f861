//! The one harness of the integration tests: a folder of its own for every test, the real binary
//! run as an operator runs it, and a plain HTTP/1.1 client.
//!
//! Nothing here sleeps: a child is waited for through the end of its output, with a deadline, and
//! what a failed child wrote is part of the failure.
#![allow(dead_code, unused_imports, reason = "each test crate uses its own part of the harness")]

pub mod http;
pub mod json;
pub mod knot;
pub mod ledger;
pub mod mounts;
pub mod nameless;
pub mod process;
pub mod rdap;
pub mod receiver;
pub mod rng;
pub mod runs;
pub mod tools;
pub mod writer;

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

pub use http::{Client, Response};
pub use process::{Finished, Server, Starting};

/// The file of settings of an installation that is given no other.
const SETTINGS: &str = "default-settings.toml";

/// Sections for the outside, but for those that `toml` has: every channel is set up, nothing listens
/// where they lead (port 1 is nobody's), and no name is known.
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

/// One installation of dropdex in a temporary folder, removed when this is dropped.
pub struct Site {
    dir: TempDir,
    data: PathBuf,
}

impl Site {
    /// An installation that holds nothing yet: neither list, nor index, nor account.
    pub fn new() -> Site {
        let dir = tempfile::Builder::new().prefix("dropdex-test-").tempdir();
        let dir = dir.expect("a temporary folder can be made");
        for folder in ["data", "index", "lists"] {
            std::fs::create_dir(dir.path().join(folder)).expect("a folder can be made");
        }
        let data = dir.path().join("data");
        let site = Site { dir, data };
        site.write(SETTINGS, outside(""));
        site
    }

    /// An installation whose index holds `names`, which all dropped on `day`.
    pub fn with_names(names: impl Iterator<Item = String>, day: &str) -> Site {
        let site = Site::new();
        let rows: String = names.map(|name| format!("{name},{day}\n")).collect();
        let list = site.write("list.csv", format!("domain,drop_date\n{rows}"));
        site.ingest(&list, &format!("{day}T00:00:00Z"));
        site
    }

    /// An installation whose index holds, on 2026-03-15, a name that can be registered by anybody, one
    /// that cannot yet, one that is written in Unicode and one that was registered again.
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

    /// This installation with its data in a folder elsewhere, which is not removed with it.
    pub fn with_data(self, data: &Path) -> Site {
        Site { data: data.to_owned(), ..self }
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.data.clone()
    }

    /// The index folder.
    pub fn index(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    /// The folder of lists and settings.
    pub fn lists(&self) -> PathBuf {
        self.dir.path().join("lists")
    }

    /// Writes a file beside the data and index folders and says where it is.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join("lists").join(name);
        std::fs::write(&path, bytes).expect("a list can be written");
        path
    }

    /// Writes a file of settings and gives its path, for `--config`. Sections about the outside
    /// that it does not have are those of every installation here.
    pub fn settings(&self, toml: &str) -> String {
        let path = self.write("settings.toml", format!("{toml}\n{}", outside(toml)));
        path.to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// The binary with this installation's folders in its environment and nothing else of
    /// dropdex's own there.
    pub fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dropdex"));
        let foreign = std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.to_string_lossy().starts_with("DROPDEX_") || name == "RUST_LOG");
        for name in foreign {
            command.env_remove(name);
        }
        command
            .args(args)
            .env("DROPDEX_DATA", self.data())
            .env("DROPDEX_INDEX", self.index())
            .env("DROPDEX_CONFIG", self.dir.path().join("lists").join(SETTINGS))
            // No balancer watches: nobody needs time to notice.
            .env("DROPDEX_DRAIN_DELAY", "0")
            .current_dir(self.dir.path());
        command
    }

    /// Runs a command to its end, however it ends.
    pub fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Finished {
        process::finish(self.command(args))
    }

    /// Runs a command that must succeed and gives its standard output.
    pub fn ok<A: AsRef<OsStr>>(&self, args: &[A]) -> String {
        let finished = self.run(args);
        assert_eq!(finished.code, Some(0), "{finished}");
        finished.stdout
    }

    /// Runs a command that reads `input` and must succeed, and gives its standard output.
    pub fn ok_with_input<A: AsRef<OsStr>>(&self, args: &[A], input: &str) -> String {
        let path = self.write("input", input);
        let input = std::fs::File::open(path).expect("it was just written");
        let output = self.command(args).stdin(input).output().expect("the binary starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{stderr}", output.status);
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Ingests one list that was observed at `observed_at` (RFC 3339) and builds the index.
    pub fn ingest(&self, list: &Path, observed_at: &str) -> String {
        let list = list.to_str().expect("temporary paths are UTF-8");
        self.ok(&["ingest", "--observed-at", observed_at, list])
    }

    /// Sends a line to the running server's admin socket and gives its reply, a JSON object.
    ///
    /// # Errors
    /// Nobody listens, or the server went away before it answered.
    pub fn ask_admin(&self, line: &str) -> io::Result<Value> {
        let mut socket = UnixStream::connect(self.data().join("admin.sock"))?;
        writeln!(socket, "{line}")?;
        let mut reply = String::new();
        BufReader::new(socket).read_line(&mut reply)?;
        Ok(serde_json::from_str(&reply)?)
    }

    /// Has the running server write a snapshot of what users own, and gives its reply.
    ///
    /// # Errors
    /// As [`Site::ask_admin`].
    pub fn ask_for_snapshot(&self) -> io::Result<Value> {
        self.ask_admin("{\"command\":\"snapshot\"}")
    }

    /// Adds an account and gives its first key.
    pub fn account(&self, email: &str, plan: &str) -> String {
        self.ok(&["account", "add", email, "--plan", plan]);
        self.new_key(email)
    }

    /// Adds an account that can log in.
    pub fn account_with_password(&self, email: &str, plan: &str, password: &str) {
        let mut command =
            self.command(&["account", "add", email, "--plan", plan, "--password-stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("piped");
        writeln!(stdin, "{password}").expect("it reads what it is given");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A new key for an account; the one before stops working.
    pub fn new_key(&self, email: &str) -> String {
        let key = self.ok(&["account", "key", email]).trim_end().to_owned();
        let hex = key.strip_prefix("ddx_").unwrap_or_else(|| panic!("not a key: {key:?}"));
        let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        assert!(hex.len() == 48 && hex.bytes().all(lower_hex), "not a key: {key:?}");
        key
    }

    /// Starts a server on a free port whose day is `today`, and waits until it is ready.
    pub fn serve(&self, today: &str) -> Server {
        self.serve_with(&["--today", today])
    }

    /// Starts a server on a free port with more arguments, and waits until it is ready.
    pub fn serve_with(&self, args: &[&str]) -> Server {
        self.start(args).ready()
    }

    /// Starts a server on a free port with more arguments, and waits for nothing.
    pub fn start(&self, args: &[&str]) -> Starting {
        let args = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        Starting::new(self.command(&args))
    }

    /// Starts a command on a day, and waits for nothing.
    pub fn start_on(&self, day: &str, args: &[&str]) -> Starting {
        let mut command = self.command(args);
        command.env("DROPDEX_TODAY", day);
        Starting::new(command)
    }

    /// Runs a command on a day, which must succeed.
    pub fn ok_on(&self, day: &str, args: &[&str]) {
        let mut command = self.command(args);
        command.env("DROPDEX_TODAY", day);
        let finished = process::finish(command);
        assert_eq!(finished.code, Some(0), "{finished}");
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

/// `bytes` as a gzip file.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
