//! HTTP/2 clients, conforming and not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use h2::client::{self, SendRequest};
use tokio::runtime::Runtime;

use super::raw::{
    PATIENCE, assert_in_time, connect, resident, rest, sockets, wait_until, wait_until_reaped,
};
use super::{SHORT, served};
use crate::common::{Server, runs};

/// The task that drives a connection, with the reason for its end.
type Driver = tokio::task::JoinHandle<Result<(), h2::Error>>;

async fn speak(server: &Server) -> (SendRequest<Bytes>, Driver) {
    let socket = tokio::net::TcpStream::connect(server.address()).await.expect("it listens");
    let (send, connection) = client::handshake(socket).await.expect("HTTP/2");
    (send, tokio::spawn(connection))
}

fn ask(path: &str) -> Request<()> {
    Request::get(format!("http://dropdex.example{path}")).body(()).expect("a request")
}

fn ask_with(key: &str, path: &str) -> Request<()> {
    let mut request = ask(path);
    let value = format!("Bearer {key}").parse().expect("a value");
    request.headers_mut().insert("authorization", value);
    request
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn requests_share_a_connection() {
    let (site, server) = served(3, "");
    let key = site.account("a@example.com", "api");
    runtime().block_on(async {
        let (send, _driver) = speak(&server).await;
        let mut asked = Vec::new();
        for number in 0..50 {
            let path = if number % 2 == 0 { "/api/health" } else { "/api/v1/search?q=name" };
            let request = ask_with(&key, path);
            let mut send = send.clone().ready().await.expect("the connection is established");
            asked.push(send.send_request(request, true).expect("sent").0);
        }
        for answer in asked {
            assert_eq!(answer.await.expect("an answer").status(), StatusCode::OK);
        }
    });
}

/// Browsers send the host as `:authority`, and those that do not send `Sec-Fetch-Site` with a form send
/// its origin.
#[test]
fn the_host_is_recognised_as_in_http1() {
    let (_site, server) = served(1, "[web]\nplain_http = true\n");
    runtime().block_on(async {
        let (send, _driver) = speak(&server).await;
        for (origin, is_ours) in
            [("http://dropdex.example", true), ("http://elsewhere.example", false)]
        {
            let request = Request::post("http://dropdex.example/login")
                .header("origin", origin)
                .header("content-type", "application/x-www-form-urlencoded");
            let mut send = send.clone().ready().await.expect("the connection is established");
            let (answer, _) =
                send.send_request(request.body(()).expect("a request"), true).expect("sent");
            let status = answer.await.expect("an answer").status();
            assert_eq!(status != StatusCode::FORBIDDEN, is_ours, "{origin}: {status}");
        }
    });
}

/// A client that does not read a response loses only that response. Other requests on the connection,
/// which may come from other clients of a proxy, have their own deadlines.
#[test]
fn an_unread_http2_stream_does_not_block_others() {
    let (site, server) =
        served(3_000, "export_seconds = 1\nrequest_seconds = 20\nbody_seconds = 20\n");
    let key = site.account("a@example.com", "api");
    runtime().block_on(async {
        let (send, driver) = speak(&server).await;
        let mut first = send.clone().ready().await.expect("the connection is established");
        let request = ask_with(&key, "/api/export/drops");
        let unread = first.send_request(request, true).expect("sent").0.await.expect("an answer");
        let mut second = send.ready().await.expect("the connection is established");
        let request = Request::post("http://dropdex.example/api/v1/appraise")
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        let request = request.body(()).expect("a request");
        let (answer, mut body) = second.send_request(request, false).expect("sent");
        body.send_data(Bytes::from_static(b"{\"domains\":"), false).expect("sent");
        // After the deadline of the first request, the connection accepts no more requests, but this
        // one continues.
        let began = Instant::now();
        while let Ok(ready) = second.clone().ready().await {
            drop(ready);
            assert!(began.elapsed() < PATIENCE, "the export may go on for ever");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        body.send_data(Bytes::from_static(b"[\"good.com\"]}"), true).expect("sent");
        assert_eq!(answer.await.expect("an answer").status(), StatusCode::OK);
        drop((unread, driver));
    });
}

/// A streamed response counts as in flight until it was read.
#[test]
fn an_export_keeps_its_slot_until_it_is_read() {
    let (site, server) = served(3_000, "max_exports = 1\nqueue_timeout_ms = 1\n");
    let key = site.account("a@example.com", "api");
    runtime().block_on(async {
        let (send, _driver) = speak(&server).await;
        let export = async || {
            let request = ask_with(&key, "/api/export/drops");
            let mut send = send.clone().ready().await.expect("the connection is established");
            send.send_request(request, true).expect("sent").0.await.expect("an answer")
        };
        // The client accepts only the first bytes of the export.
        let unread = export().await;
        assert_eq!(unread.status(), StatusCode::OK);
        assert_eq!(export().await.status(), StatusCode::SERVICE_UNAVAILABLE);
        let when_there_is_room = async || {
            let began = Instant::now();
            loop {
                let answer = export().await;
                if answer.status() == StatusCode::OK {
                    return answer;
                }
                assert!(began.elapsed() < PATIENCE, "its slot is not free again");
            }
        };
        // The client disconnects in the middle of the response.
        drop(unread);
        let mut next = when_there_is_room().await;
        let (body, mut read) = (next.body_mut(), 0);
        while let Some(data) = body.data().await {
            let data = data.expect("all of it");
            body.flow_control().release_capacity(data.len()).expect("a free slot");
            read += data.len();
        }
        assert!(read > 100_000, "{read} bytes are not a long export");
        when_there_is_room().await;
    });
}

#[test]
fn a_client_that_opens_and_resets_streams_is_disconnected() {
    let (_site, server) = served(1, "");
    let memory = resident(&server);
    runtime().block_on(async {
        let (mut send, driver) = speak(&server).await;
        let mut resets = 0;
        while resets < 100_000 && !driver.is_finished() {
            let Ok(ready) = send.ready().await else { break };
            send = ready;
            let Ok((answer, mut stream)) = send.send_request(ask("/api/health"), true) else {
                break;
            };
            stream.send_reset(h2::Reason::CANCEL);
            drop(answer);
            resets += 1;
            tokio::task::yield_now().await;
        }
        let ended = driver.await.expect("no panic");
        runs::say(&format!("{resets} resets, then {ended:?}"));
        assert!(resets < 100_000, "it may go on for ever");
    });
    assert_bounded(&server, memory);
}

#[track_caller]
fn assert_bounded(server: &Server, before: u64) {
    let grown = resident(server).saturating_sub(before) >> 20;
    runs::say(&format!("{grown} MiB more"));
    assert!(grown < 64, "{grown} MiB more");
    assert_eq!(server.client().get("/api/health").status, 200, "others are served");
}

/// The preface of a connection, and empty settings.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Builds a frame of this type, with flags, stream and payload.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Sends `next` repeatedly without reading, until the connection ends or `at_most` are sent. Returns
/// the number sent.
fn flood(server: &Server, at_most: usize, mut next: impl FnMut(usize) -> Vec<u8>) -> usize {
    let mut stream = connect(server);
    stream.write_all(HELLO).expect("it listens");
    stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a timeout can be set");
    (0..at_most).find(|&number| stream.write_all(&next(number)).is_err()).unwrap_or(at_most)
}

#[test]
fn floods_of_frames_are_bounded() {
    const FRAMES: usize = 400_000;
    let (_site, server) = served(1, SHORT);
    let memory = resident(&server);
    let quiet = server.client();
    drop(quiet);
    for (what, kind, payload) in [
        ("pings", 6, &[7; 8][..]),
        ("settings", 4, &[0, 3, 0, 0, 0, 9]),
        ("priorities", 2, &[0; 5]),
    ] {
        let stream = if kind == 2 { 1 } else { 0 };
        let began = Instant::now();
        let sent = flood(&server, FRAMES, |_| frame(kind, 0, stream, payload));
        runs::say(&format!("{what}: {sent} sent in {:?}", began.elapsed()));
        assert_bounded(&server, memory);
    }
}

#[test]
fn endless_heads_are_cut_off() {
    let (_site, server) = served(1, SHORT);
    let memory = resident(&server);
    // An endless head, in pieces of 16 KiB, with a literal header that is never indexed.
    let piece = [&[0x10, 1, b'x', 0x7f, 0x81, 0x7d][..], &[b'y'; 16_000]].concat();
    let sent = flood(&server, 10_000, |number| {
        let kind = if number == 0 { 1 } else { 9 };
        frame(kind, 0, 1, &piece)
    });
    runs::say(&format!("{sent} frames of a head"));
    assert!(sent < 10_000, "it may go on for ever");
    assert_bounded(&server, memory);
    // The same head with empty frames.
    let sent =
        flood(&server, 1_000_000, |number| frame(if number == 0 { 1 } else { 9 }, 0, 1, b""));
    assert!(sent < 1_000_000, "it may go on for ever");
    assert_bounded(&server, memory);
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let (_site, server) = served(1, "");
    runtime().block_on(async {
        let (send, _driver) = speak(&server).await;
        let mut send = send.ready().await.expect("the connection is established");
        let mut request = ask("/api/health");
        request.headers_mut().insert("x", "y".repeat(17_000).parse().expect("a value"));
        let (answer, _) = send.send_request(request, true).expect("sent");
        let status = answer.await.map(|answer| answer.status());
        assert_eq!(status.expect("an answer"), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    });
}

#[test]
fn a_client_without_a_window_for_the_response_is_disconnected() {
    let (_site, server) = served(1, SHORT);
    let before = sockets(&server);
    runtime().block_on(async {
        let socket = tokio::net::TcpStream::connect(server.address()).await.expect("it listens");
        let mut builder = client::Builder::new();
        // The document is larger than the window, and is not read.
        builder.initial_window_size(1_000);
        let (send, connection) = builder.handshake::<_, Bytes>(socket).await.expect("HTTP/2");
        let driver = tokio::spawn(connection);
        let mut send = send.ready().await.expect("the connection is established");
        let (answer, _) = send.send_request(ask("/api/openapi.json"), true).expect("sent");
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let began = Instant::now();
        let ended = driver.await.expect("no panic");
        runs::say(&format!("ended {:?} later: {ended:?}", began.elapsed()));
    });
    wait_until("closed", || sockets(&server) <= before);
    // The response is sent in pieces, so the request is in flight until the client has read the last
    // one.
    wait_until_reaped(&server, &[("request", 1)]);
}

#[test]
fn connections_have_a_maximum_age() {
    let (_site, server) = served(1, "connection_seconds = 3\nidle_seconds = 60\n");
    runtime().block_on(async {
        let (send, driver) = speak(&server).await;
        let mut send = send.ready().await.expect("the connection is established");
        let (answer, _) = send.send_request(ask("/api/health"), true).expect("sent");
        assert_eq!(answer.await.expect("an answer").status(), StatusCode::OK);
        let began = Instant::now();
        driver.await.expect("no panic").expect("it ended well");
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    });
}

#[test]
fn a_connection_without_streams_is_idle() {
    let (_site, server) = served(1, SHORT);
    let mut stream: TcpStream = connect(&server);
    let began = Instant::now();
    stream.write_all(HELLO).expect("it listens");
    let mut first = [0; 9];
    stream.read_exact(&mut first).expect("its settings");
    rest(&mut stream);
    assert_in_time(began, Duration::from_secs(2));
    wait_until_reaped(&server, &[("idle", 1)]);
}
