//! A log that cannot be written: the server serves requests, counts the lost lines, and stops cleanly.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Client, Site, TODAY, wait};

const WAIT: Duration = Duration::from_secs(60);
/// More lines than a pipe holds.
const REQUESTS: usize = 600;

/// A server with an access log. Dropping it kills it.
struct Logging(Child);

impl Drop for Logging {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Logging {
    fn start(site: &Site, listen: &str, stdout: Stdio, stderr: Stdio) -> Logging {
        let settings = "[log]\naccess = true\n[metrics]\nlisten = \"127.0.0.1:0\"\n";
        let config = site.settings(settings);
        let mut command =
            site.command(&["serve", "--listen", listen, "--today", TODAY, "--config", &config]);
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        Logging(command.spawn().expect("the server can be run"))
    }

    /// Starts a server with this standard error; returns its addresses, of requests and of metrics.
    fn with_stderr(site: &Site, stderr: Stdio) -> (Logging, SocketAddr, SocketAddr) {
        let mut server = Logging::start(site, "127.0.0.1:0", Stdio::piped(), stderr);
        let mut lines = BufReader::new(server.0.stdout.take().expect("piped")).lines();
        let mut address = |start: &str, end: &str| {
            let line = lines.next().expect("a line").expect("text");
            let address = line.strip_prefix(start).and_then(|line| line.strip_suffix(end));
            address.unwrap_or_else(|| panic!("{line}")).parse().expect("an address")
        };
        let requests = address("listening on http://", "");
        let metrics = address("metrics on http://", "/metrics");
        (server, requests, metrics)
    }

    /// Stops the server, which must exit with code 0.
    fn stop(mut self) {
        let sent = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let ended = wait::until_ok(WAIT, || {
            self.0.try_wait().expect("a child").ok_or_else(|| "it runs".to_owned())
        });
        assert_eq!(ended.code(), Some(0), "{ended}");
    }
}

fn lines_lost(metrics: SocketAddr) -> u64 {
    let response = Client::new(metrics).get("/metrics");
    let text = response.text();
    let line = text.lines().find_map(|line| line.strip_prefix("dropdex_log_lines_lost_total "));
    line.unwrap_or_else(|| panic!("{text}")).parse().expect("a number")
}

/// Sends requests that are logged, all of which must succeed on one connection.
fn assert_answers(address: SocketAddr) {
    let mut client = Client::new(address);
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/api/health").status, 200);
    }
}

#[test]
fn a_log_that_cannot_be_written_does_not_stop_the_server() {
    let site = Site::new();
    site.account("owner@example.com", "pro");
    site.ok(&["rebuild"]);
    let (unread, stalled) = io::pipe().expect("a pipe");
    let (read, closed) = io::pipe().expect("a pipe");
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    for (what, stderr, ends) in [
        ("a full disk", Stdio::from(full), None),
        ("a pipe whose reader ends", Stdio::from(closed), Some(read)),
        ("a pipe whose reader does not read", Stdio::from(stalled), None),
    ] {
        let (server, requests, metrics) = Logging::with_stderr(&site, stderr);
        drop(ends);
        assert_answers(requests);
        assert!(lines_lost(metrics) > 0, "{what}");
        server.stop();
    }
    drop(unread);
}

#[test]
fn a_server_serves_though_standard_output_is_closed() {
    let site = Site::new();
    site.account("owner@example.com", "pro");
    site.ok(&["rebuild"]);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("a free port");
    let (reader, stdout) = io::pipe().expect("a pipe");
    drop(reader);
    let server = Logging::start(&site, &address.to_string(), stdout.into(), Stdio::null());
    wait::until_ok(WAIT, || {
        std::net::TcpStream::connect(address).map(drop).map_err(|err| err.to_string())
    });
    assert_answers(address);
    server.stop();
}
