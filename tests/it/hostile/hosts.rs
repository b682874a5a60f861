//! The `Host` header, HTTP/2 settings, and log messages about proxies.

use std::io::{Read, Write};

use super::{from_network, http2, runtime, served};
use crate::common::Server;
use crate::server::raw::{connect, rest, wait_until};

/// Returns status and body of a request with these header lines.
fn ask(server: &Server, target: &str, lines: &str) -> (u16, String) {
    let mut stream = connect(server);
    let text = format!("GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).expect("it listens");
    let answer = String::from_utf8(rest(&mut stream)).expect("UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{answer}")), body.to_owned())
}

#[test]
fn http1_needs_exactly_one_valid_host() {
    let (_site, server) = served(1, "");
    let error = "{\"error\":\"Host: must be given once, as a host name or address with an optional \
                 port\",\"code\":\"invalid_host\"}";
    for lines in
        ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "Host: a b\r\n", "Host:\r\n"]
    {
        for target in ["/api/health", "/", "/nowhere", "http://a/api/health"] {
            assert_eq!(ask(&server, target, lines), (400, error.to_owned()), "{target} {lines}");
        }
    }
    assert_eq!(ask(&server, "/api/health", "Host: any.example:1234\r\n").0, 200);
    assert_eq!(ask(&server, "http://b/api/health", "Host: a\r\n").0, 200);
    // HTTP/1.0 does not require `Host`.
    let mut stream = connect(&server);
    stream.write_all(b"GET /api/health HTTP/1.0\r\n\r\n").expect("it listens");
    assert!(rest(&mut stream).starts_with(b"HTTP/1.0 200 "));
}

#[test]
fn pages_are_served_only_at_the_public_host() {
    let (_site, server) = served(1, "");
    assert_eq!(ask(&server, "/", "Host: any.example\r\n").0, 200, "without `public_url`");
    let site = crate::common::Site::new();
    let settings = site.settings("public_url = \"https://drops.example/\"\n");
    let list = site.write("list.csv", "domain,drop_date\na.com,2026-11-20\n");
    site.ingest(&list, "2026-11-20T00:00:00Z");
    let server = site.serve_with(&["--today", super::TODAY, "--config", &settings]);
    for (host, status) in [
        ("drops.example", 200),
        ("Drops.Example:443", 200),
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("drops.example.evil.example", 421),
    ] {
        let lines = format!("Host: {host}\r\n");
        let (found, body) = ask(&server, "/", &lines);
        assert_eq!(found, status, "{host}: {body}");
        if status == 421 {
            assert_eq!(
                body,
                "{\"error\":\"Host: the pages of this server are at drops.example\",\"code\":\"misdirected\"}"
            );
        }
        assert_eq!(ask(&server, "/api/health", &lines).0, 200, "{host}");
    }
}

/// RFC 9113 §6.5.2 recommends at least 100.
#[test]
fn http2_allows_128_concurrent_requests() {
    let (_site, server) = served(1, "");
    runtime().block_on(async {
        let (send, _driver) = http2(&server, 1 << 20).await;
        let mut answers = Vec::new();
        for _ in 0..128 {
            let mut send = send.clone().ready().await.expect("the connection is established");
            let request = from_network("GET", "/api/health", 0).body(()).expect("a request");
            answers.push(send.send_request(request, true).expect("sent").0);
        }
        for answer in answers {
            assert_eq!(answer.await.expect("an answer").status(), 200);
        }
    });
    let mut stream = connect(&server);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("it listens");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).expect("its settings");
    assert_eq!(frame[3], 4, "SETTINGS come first");
    let mut settings = vec![0; usize::from(frame[2])];
    stream.read_exact(&mut settings).expect("all of them");
    let streams = settings.chunks(6).find(|it| it[1] == 3).expect("MAX_CONCURRENT_STREAMS");
    assert_eq!(streams[2..], [0, 0, 0, 128]);
}

#[test]
fn the_log_names_the_trusted_proxies() {
    let (_site, server) = served(1, "");
    wait_until("logged", || server.log().contains("X-Forwarded-For and X-Request-Id are trusted"));
    let (_site, server) = served(1, "[server]\nproxies = [\"127.0.0.1\"]\n");
    assert!(!server.log().contains("X-Forwarded-For"), "{}", server.log());
}
