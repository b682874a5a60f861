//! The server as an operator runs it, in a process of its own: how much memory it takes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use dropdex::vocab::day::Day;

use crate::load::{self, Request};
use crate::report::{field, kibibytes};

/// How long a server that answered is left alone, so that its allocator can give memory back.
const SETTLE: Duration = Duration::from_secs(2);
/// The first of each kind builds what the server keeps.
const FIRST_REQUESTS: [&str; 2] = ["/api/v1/drops", "/api/v1/search?q=solar"];
const EMAIL: &str = "bench@dropdex.example";

/// Starts a server, asks it one request of each kind, lets it idle, and gives the bytes that are
/// resident; `None` where the system does not tell (`/proc` is Linux's).
///
/// # Errors
/// The server does not start or does not answer.
pub fn resident_bytes(data: &Path, index: &Path, today: Day) -> anyhow::Result<Option<u64>> {
    run(dropdex(data, index).args(["account", "add", EMAIL, "--plan", "api"]))?;
    let key = run(dropdex(data, index).args(["account", "key", EMAIL]))?;
    let today = today.to_string();
    let mut command = dropdex(data, index);
    command.args(["serve", "--listen", "127.0.0.1:0", "--today", &today]);
    let server = Server::start(&mut command)?;
    let requests: Vec<Request> =
        FIRST_REQUESTS.iter().map(|target| Request::new(target, Some(key.trim_end()))).collect();
    load::ask_each(server.address, &requests, |_, _| Ok(()))?;
    std::thread::sleep(SETTLE);
    let status = format!("/proc/{}/status", server.child.id());
    Ok(field(&status, "VmRSS").and_then(|text| kibibytes(&text)))
}

/// A command on these folders, whatever the environment says.
fn dropdex(data: &Path, index: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dropdex"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DROPDEX_") {
            command.env_remove(name);
        }
    }
    command.env("DROPDEX_DATA", data).env("DROPDEX_INDEX", index).env("RUST_LOG", "warn");
    command
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().context("cannot run dropdex")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {stderr}", output.status);
    String::from_utf8(output.stdout).context("dropdex prints UTF-8")
}

/// A running server. It ends with this value.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(command: &mut Command) -> anyhow::Result<Server> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = child.context("cannot start dropdex")?;
        // Owned from here on: a server that says something else is ended too.
        let mut server = Server { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let stdout = server.child.stdout.take().context("standard output is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("the server's first line")?;
        let address = line.trim_end().strip_prefix("listening on http://");
        server.address = address
            .and_then(|address| address.parse().ok())
            .with_context(|| format!("the server said `{}`", line.trim_end()))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
