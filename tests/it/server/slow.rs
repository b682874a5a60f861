//! Clients that send or read slowly.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::raw::{
    assert_in_time, connect, drip, resident, rest, sockets, wait_until, wait_until_reaped,
};
use super::{SHORT, served};
use crate::common::runs;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn silent_connections_are_closed() {
    let (_site, server) = served(1, "first_byte_seconds = 1\n");
    let began = Instant::now();
    assert_eq!(rest(&mut connect(&server)), b"");
    assert_in_time(began, SECOND);
    wait_until_reaped(&server, &[("first_byte", 1)]);
}

#[test]
fn a_short_body_that_no_handler_reads_keeps_the_connection() {
    let (_site, server) = served(1, SHORT);
    let chunked = |bytes: usize| {
        let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
        let rest = bytes % 1024;
        let last =
            if rest > 0 { format!("{rest:x}\r\n{}\r\n", "x".repeat(rest)) } else { String::new() };
        format!("Transfer-Encoding: chunked\r\n\r\n{}{last}0\r\n\r\n", chunk.repeat(bytes / 1024))
    };
    let counted = |bytes: usize| format!("Content-Length: {bytes}\r\n\r\n{}", "x".repeat(bytes));
    // Requests without a route, without a key, and refused before routing.
    for (target, host, status) in
        [("/nothing", "a", "404"), ("/api/v1/watchlist", "a", "401"), ("/nothing", "a b", "400")]
    {
        for (body, is_kept) in [
            (counted(8 << 10), true),
            (chunked(8 << 10), true),
            (chunked(5), true),
            (counted((8 << 10) + 1), false),
            (chunked((8 << 10) + 1), false),
        ] {
            let mut stream = connect(&server);
            let head = format!("POST {target} HTTP/1.1\r\nHost: {host}\r\n{body}");
            stream.write_all(head.as_bytes()).expect("it listens");
            let again = "GET /api/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            // The write fails if the connection is closed.
            let _ = stream.write_all(again.as_bytes());
            let answers = String::from_utf8_lossy(&rest(&mut stream)).into_owned();
            assert!(answers.starts_with(&format!("HTTP/1.1 {status} ")), "{target}: {answers}");
            let is_answered = answers.contains("HTTP/1.1 200 OK");
            assert_eq!(is_answered, is_kept, "{target}, {} bytes: {answers}", body.len());
        }
    }
}

#[test]
fn a_slow_head_is_closed() {
    let (_site, server) = served(1, SHORT);
    for start in ["", "GET /api/health HTTP/1.1\r\nHost: a\r\n", "P", "PRI"] {
        let mut stream = connect(&server);
        let began = Instant::now();
        stream.write_all(start.as_bytes()).expect("it listens");
        drip(&mut stream, b"X", SECOND / 10);
        assert_in_time(began, SECOND);
    }
    // The same holds for the second request on a connection.
    let mut stream = connect(&server);
    stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n").expect("it listens");
    let read = stream.read(&mut [0; 4096]).expect("an answer");
    assert!(read > 100);
    let began = Instant::now();
    drip(&mut stream, b"X", SECOND / 10);
    assert_in_time(began, SECOND);
    wait_until_reaped(&server, &[("header", 5)]);
}

#[test]
fn an_idle_connection_is_closed() {
    let (_site, server) = served(1, SHORT);
    let mut client = server.client();
    client.get("/api/health");
    let mut stream = connect(&server);
    let began = Instant::now();
    stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n").expect("it listens");
    assert!(rest(&mut stream).starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert_in_time(began, 2 * SECOND);
    wait_until_reaped(&server, &[("idle", 2)]);
    client.get("/api/health");
    assert_eq!(client.connections(), 2, "the first one was ended meanwhile");
}

#[test]
fn a_slow_body_gets_408() {
    let (site, server) = served(1, SHORT);
    let key = site.account("a@example.com", "api");
    let head = format!(
        "POST /api/v1/appraise HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{{"
    );
    for (drips, what) in [(false, "stalled"), (true, "slow")] {
        let mut stream = connect(&server);
        let began = Instant::now();
        stream.write_all(head.as_bytes()).expect("it listens");
        if drips {
            drip(&mut stream, b" ", SECOND / 10);
        }
        let answer = String::from_utf8(rest(&mut stream)).expect("UTF-8");
        assert_in_time(began, SECOND);
        assert!(answer.starts_with("HTTP/1.1 408 "), "{what}: {answer}");
        assert!(
            answer.ends_with(
                "{\"error\":\"body: did not arrive in time\",\"code\":\"body_timeout\"}"
            ),
            "{what}: {answer}"
        );
        assert!(answer.contains("\r\nconnection: close\r\n"), "{what}: {answer}");
    }
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let (_site, server) = served(1, SHORT);
    let memory = resident(&server);
    let asks = "GET /api/openapi.json HTTP/1.1\r\nHost: a\r\n\r\n".repeat(300);
    let began = Instant::now();
    let streams: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = connect(&server);
            stream.set_write_timeout(Some(SECOND / 10)).expect("a timeout can be set");
            // The server stops reading if it cannot write.
            let _ = stream.write_all(asks.as_bytes());
            stream
        })
        .collect();
    wait_until_reaped(&server, &[("write_stall", streams.len())]);
    assert_in_time(began, SECOND);
    let grown = resident(&server).saturating_sub(memory) >> 20;
    runs::say(&format!("ten clients that do not read: {grown} MiB more"));
    assert!(grown < 64, "{grown} MiB more");
    drop(streams);
}

/// Returns the 99th percentile of 100 requests.
fn p99(server: &crate::common::Server) -> Duration {
    let mut client = server.client();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let began = Instant::now();
            assert_eq!(client.get("/api/health").status, 200);
            began.elapsed()
        })
        .collect();
    times.sort();
    times[197]
}

#[test]
fn thousands_of_silent_connections_do_not_slow_others() {
    let (_site, server) = served(1, "idle_seconds = 5\nfirst_byte_seconds = 5\n");
    p99(&server);
    let (before, memory, quiet) = (sockets(&server), resident(&server), p99(&server));
    let began = Instant::now();
    let half = runs::figure(1_000, 4_500);
    let silent: Vec<TcpStream> = (0..2 * half)
        .map(|number| {
            let mut stream = connect(&server);
            if number < half {
                stream
                    .write_all(b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n")
                    .expect("it listens");
            }
            stream
        })
        .collect();
    let opened = began.elapsed();
    let (grown, busy) = (resident(&server).saturating_sub(memory) >> 10, p99(&server));
    let held = sockets(&server).saturating_sub(before);
    let took = wait_until("all ended", || sockets(&server) <= before);
    runs::say(&format!(
        "{} connections opened in {opened:?}, {held} of them held at once, {grown} KiB; p99 {quiet:?} before, {busy:?} among them; \
         all ended {took:?} later",
        silent.len()
    ));
    // A connection has buffers and a task; about 13 KiB were measured.
    assert!(grown < 32 * silent.len() as u64, "{grown} KiB more");
    // These two limits do not hold on a machine that runs other tests at the same time.
    if runs::full() {
        assert!(took <= 6 * SECOND, "all ended {took:?} later");
        let most = 50 * quiet.max(Duration::from_millis(1));
        assert!(busy < most, "{quiet:?} before, {busy:?} among them");
    }
}

#[test]
fn connections_beyond_the_limit_are_reset_until_others_close() {
    let (_site, server) = served(1, "max_connections = 5\n");
    let held: Vec<TcpStream> = (0..5).map(|_| connect(&server)).collect();
    wait_until("refused", || {
        let mut stream = connect(&server);
        let _ = stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.read(&mut [0; 64]).map_or(true, |read| read == 0)
    });
    drop(held);
    wait_until("served again", || {
        let mut stream = connect(&server);
        let _ = stream.write_all(b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.read(&mut [0; 64]).is_ok_and(|read| read > 0)
    });
}

#[test]
fn oversized_heads_are_refused() {
    let (_site, server) = served(1, "");
    let ask = |headers: &str| {
        let mut stream = connect(&server);
        let text =
            format!("GET /api/health HTTP/1.1\r\nHost: a\r\n{headers}Connection: close\r\n\r\n");
        // The response may arrive, and the connection close, before everything is sent.
        let _ = stream.write_all(text.as_bytes());
        String::from_utf8_lossy(&rest(&mut stream)).chars().take(12).collect::<String>()
    };
    assert_eq!(ask(&format!("X: {}\r\n", "x".repeat(14_000))), "HTTP/1.1 200");
    assert_eq!(ask(&format!("X: {}\r\n", "x".repeat(17_000))), "HTTP/1.1 431");
    assert_eq!(ask(&"X: y\r\n".repeat(90)), "HTTP/1.1 200");
    assert_eq!(ask(&"X: y\r\n".repeat(101)), "HTTP/1.1 431");
}
