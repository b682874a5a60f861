//! Graceful shutdown, and notifications to the supervisor.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::raw::{PATIENCE, connect, rest, wait_until};
use super::{TODAY, served};
use crate::common::{Client, Server, Site};

fn environment(client: &mut Client) -> (u16, Value) {
    let answer = client.get("/api/ready");
    (answer.status, answer.json()["checks"]["environment"].clone())
}

fn serve(site: &Site, delay: &str, settings: &str) -> Server {
    let settings = site.settings(&format!("[server]\n{settings}"));
    site.serve_with(&["--today", TODAY, "--config", &settings, "--drain-delay", delay])
}

fn site() -> Site {
    Site::with_names(std::iter::once("good.com".to_owned()), TODAY)
}

#[test]
fn a_drain_fails_readiness_first_and_keeps_serving() {
    let site = site();
    let server = serve(&site, "5", "");
    let (mut old, address) = (server.client(), server.address());
    assert_eq!(environment(&mut old), (200, "ok".into()));
    let began = Instant::now();
    server.signal("TERM");
    wait_until("not ready", || environment(&mut server.client()).0 == 503);
    let answer = old.get("/api/ready");
    assert_eq!(answer.json()["checks"]["environment"], "draining");
    assert_eq!(answer.json()["ready"], false);
    assert_eq!(answer.header("connection"), Some("close"), "the client reconnects elsewhere");
    assert_eq!(old.connections(), 1);
    assert_eq!(server.client().get("/api/health").status, 200, "new clients are served");
    let log = server.ended();
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(log.contains("stopping"), "{log}");
    assert!(std::net::TcpStream::connect(address).is_err(), "the port is closed");
}

/// Sends the head of a request, but not yet its body.
fn half_a_request(site: &Site, server: &Server) -> std::net::TcpStream {
    let key = site.account("half@example.com", "api");
    let mut stream = connect(server);
    let head = format!(
        "POST /api/v1/appraise HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 24\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).expect("an interim answer");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[test]
fn requests_in_flight_finish_before_shutdown() {
    let site = site();
    let server = serve(&site, "0", "");
    let mut stream = half_a_request(&site, &server);
    let mut idle = connect(&server);
    server.signal("TERM");
    // Connections without a request close at once.
    assert_eq!(rest(&mut idle), b"");
    stream.write_all(b"{\"domains\":[\"good.com\"]} ").expect("it is still there");
    let answer = String::from_utf8(rest(&mut stream)).expect("UTF-8");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("\"good.com\""), "{answer}");
    server.ended();
}

#[test]
fn a_shutdown_has_a_deadline() {
    let site = site();
    let server = serve(&site, "0", "drain_seconds = 1\nbody_seconds = 60\n");
    let _stream = half_a_request(&site, &server);
    let began = Instant::now();
    server.signal("TERM");
    let log = server.ended();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert!(log.contains("still running"), "{log}");
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let site = site();
    let server = serve(&site, "60", "body_seconds = 60\n");
    let _stream = half_a_request(&site, &server);
    server.signal("TERM");
    wait_until("not ready", || environment(&mut server.client()).0 == 503);
    let began = Instant::now();
    server.signal("TERM");
    let log = server.ended();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert!(log.contains("at once"), "{log}");
    // No acknowledged write is lost: the key of the account still exists.
    let server = site.serve(TODAY);
    assert!(site.ok(&["account", "list"]).contains("half@example.com"));
    server.stop();
}

#[test]
fn an_interrupt_skips_the_drain_delay() {
    let site = site();
    let server = serve(&site, "60", "");
    let began = Instant::now();
    server.signal("INT");
    server.ended();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[test]
fn the_supervisor_is_notified() {
    let site = site();
    let socket = site.lists().join("notify.sock");
    let notices = UnixDatagram::bind(&socket).expect("a socket can be made");
    notices.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let notice = || {
        let mut bytes = [0; 512];
        let length = notices.recv(&mut bytes).expect("a notice");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let next = |word: &str| {
        let mut heard = notice();
        while !heard.lines().any(|line| line == word) {
            heard = notice();
        }
    };
    let path = socket.to_str().expect("UTF-8").to_owned();
    let environment = [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "300000".to_owned())];
    let server = site.serve_in(&environment, &["--today", TODAY]);
    next("READY=1");
    next("WATCHDOG=1");
    next("WATCHDOG=1");
    server.signal("HUP");
    next("RELOADING=1");
    next("READY=1");
    assert_eq!(server.client().get("/api/health").status, 200);
    server.signal("TERM");
    next("STOPPING=1");
    server.ended();
}

#[test]
fn sockets_can_be_passed_to_the_server() {
    let site = site();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    // A connection opened before the server starts waits for it.
    let mut early = std::net::TcpStream::connect(address).expect("the port is open");
    early
        .write_all(b"GET /api/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let binary = site.command(&["serve", "--today", TODAY, "--listen", "127.0.0.1:1"]);
    let mut command = Command::new("sh");
    // As with systemd, the socket is descriptor 3, and `LISTEN_PID` is the process ID.
    command.args(["-c", "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"", "sh"]);
    command.arg(binary.get_program()).args(binary.get_args());
    for (name, value) in binary.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::piped());
    let mut child = command.spawn().expect("sh starts");
    early.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let answer = String::from_utf8(rest(&mut early)).expect("UTF-8");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    // The line is printed once requests are served, perhaps a moment after the first response.
    let mut said = String::new();
    let mut told = BufReader::new(child.stdout.take().expect("it is piped"));
    told.read_line(&mut said).expect("its address is printed");
    child.kill().and_then(|()| child.wait()).expect("it runs");
    assert_eq!(said.trim_end(), format!("listening on http://{address}"));
}

#[test]
fn the_units_pass_systemd_analyze() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/data/packaging/dropdex.service");
    let socket = concat!(env!("CARGO_MANIFEST_DIR"), "/data/packaging/dropdex.socket");
    let Ok(output) = Command::new("systemd-analyze").args(["verify", unit, socket]).output() else {
        crate::common::runs::say("no systemd-analyze here: the units were not checked");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    // The program that the unit starts is not installed here.
    let faults: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("dropdex.s") && !line.contains("not executable"))
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn http2_clients_get_a_goaway_at_shutdown() {
    let (_site, server) = served(1, "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let socket = tokio::net::TcpStream::connect(server.address()).await.expect("it listens");
        let (send, connection) = h2::client::handshake(socket).await.expect("HTTP/2");
        let driver = tokio::spawn(connection);
        let mut send = send.ready().await.expect("the connection is established");
        let request = axum::http::Request::get("http://a.example/api/health").body(());
        let (answer, _) = send.send_request(request.expect("a request"), true).expect("sent");
        assert_eq!(answer.await.expect("an answer").status(), 200);
        server.signal("TERM");
        drop(send);
        // The connection ends with GOAWAY, without an error.
        driver.await.expect("no panic").expect("it ended well");
    });
    server.ended();
}
