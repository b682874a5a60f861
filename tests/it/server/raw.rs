//! Raw connections, and the resources of a server's process.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::{Server, runs, wait};

/// Deadline of events that happen soon, with tolerance for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a plain TCP connection.
pub fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.set_nodelay(true).expect("a flag can be set");
    stream
}

/// Reads until the peer closes the connection, which it must.
#[track_caller]
pub fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(err) if err.kind() == ErrorKind::ConnectionReset => bytes,
        Err(err) => panic!("the connection was not ended within {PATIENCE:?}: {err}"),
    }
}

/// Sends a byte every `every` until the peer closes the connection; returns how long that took.
pub fn drip(stream: &mut TcpStream, bytes: &[u8], every: Duration) -> Duration {
    let began = Instant::now();
    stream.set_read_timeout(Some(every)).expect("a timeout can be set");
    for byte in bytes.iter().cycle() {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        // Waits, and checks whether the connection was closed.
        match stream.peek(&mut [0]) {
            Ok(_) => break,
            Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        assert!(began.elapsed() < PATIENCE, "the connection was not ended");
    }
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    began.elapsed()
}

/// Returns the number of sockets that a process has open.
pub fn sockets(server: &Server) -> usize {
    let folder = format!("/proc/{}/fd", server.pid());
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    let targets = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// Returns the resident memory of a process in bytes.
pub fn resident(server: &Server) -> u64 {
    resident_of(server.pid())
}

/// As [`resident`], by process id.
pub fn resident_of(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0);
    kib * 1024
}

/// Asserts that the time since `began` is the deadline or a little more. Only full runs limit the excess
/// strictly, because a busy machine can be seconds late.
#[track_caller]
pub fn assert_in_time(began: Instant, deadline: Duration) {
    let took = began.elapsed();
    assert!(took >= deadline, "too early: {took:?}, deadline {deadline:?}");
    let slack = if runs::full() { Duration::from_secs(1) } else { PATIENCE };
    assert!(took <= deadline + slack, "too late: {took:?}, deadline {deadline:?}");
}

/// Waits until this many connections were closed by these timeouts, and none by others.
#[track_caller]
pub fn wait_until_reaped(server: &Server, expected: &[(&str, usize)]) {
    const NAME: &str = "dropdex_connections_reaped_total{late=";
    let mut lines: Vec<String> =
        expected.iter().map(|(late, count)| format!("{NAME}\"{late}\"}} {count}")).collect();
    lines.sort();
    let mut metrics = server.metrics();
    wait_until(&format!("{lines:?}"), || {
        let answer = metrics.get("/metrics");
        let told = answer.text().lines().filter(|line| line.starts_with(NAME));
        let mut reaped: Vec<&str> = told.filter(|line| !line.ends_with(" 0")).collect();
        reaped.sort_unstable();
        reaped == lines
    });
}

/// Waits until `condition` holds, and returns how long it took.
#[track_caller]
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) -> Duration {
    wait::until(PATIENCE, what, condition)
}
