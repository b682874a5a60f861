//! Request bodies: unrouted and unauthenticated requests get their response before the body is
//! read, and the bodies of all other requests share one budget.

use std::io::Write;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use h2::client::SendRequest;

use super::{Memory, from_network, http2, metric, runtime, served};
use crate::common::runs::{figure, say};
use crate::common::{Server, runs};
use crate::server::raw::{connect, rest, wait_until};

const STREAMS: usize = 64;

/// Sends the heads of requests with bodies of `bytes`, and as much of the bodies as the server accepts,
/// but not their ends. Returns the streams, which keep the requests open.
async fn send_bodies(
    send: &SendRequest<Bytes>,
    bytes: usize,
    request: impl Fn() -> Request<()>,
) -> Vec<(h2::client::ResponseFuture, h2::SendStream<Bytes>)> {
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let Ok(mut send) = send.clone().ready().await else { break };
        let Ok((answer, mut body)) = send.send_request(request(), false) else { break };
        // The server may have responded and ended the stream.
        let _ = body.send_data(Bytes::from(vec![b' '; bytes]), false);
        open.push((answer, body));
    }
    open
}

/// Floods the server with unrouted and unauthenticated requests.
#[test]
fn bodies_of_refused_requests_are_not_kept() {
    let (_site, server) = served(1, "");
    let memory = Memory::watch(&server);
    let connections = figure(10, 20);
    let statuses = runtime().block_on(async {
        let mut open = Vec::new();
        for number in 0..connections {
            let (send, driver) = http2(&server, 1 << 20).await;
            let path =
                ["/nowhere", "/api/v1/appraise", "/portfolio", "/api/v1/portfolio"][number % 4];
            let request = || from_network("POST", path, number).body(()).expect("a request");
            open.push((send_bodies(&send, 255 << 10, request).await, send, driver));
        }
        let mut statuses = Vec::new();
        for (streams, _send, _driver) in &mut open {
            for (answer, _body) in streams.drain(..) {
                // The responses come although no body is ever complete.
                let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
                if let Ok(answer) = answer.expect("a response without a body") {
                    statuses.push(answer.status());
                }
            }
        }
        statuses
    });
    let used = memory.used(&format!("{} bodies of 255 KiB", connections * STREAMS), &server);
    let refused = statuses.iter().filter(|status| status.is_client_error()).count();
    say(&format!("{refused} of {} refused with 4xx", connections * STREAMS));
    assert!(refused * 2 > connections * STREAMS, "{refused} of them were answered");
    assert!(used.growth() < 48, "{used}");
}

#[test]
fn refused_requests_get_their_response_before_their_body_arrives() {
    let (site, server) = served(1, "[web]\nplain_http = true\n");
    let key = site.account("a@example.com", "api");
    let auth = format!("Authorization: Bearer {key}\r\n");
    let json = "Content-Type: application/json\r\n";
    for (head, status) in [
        ("POST /nowhere HTTP/1.1\r\n".to_owned(), 404),
        (format!("POST /api/v1/appraise HTTP/1.1\r\n{json}"), 401),
        (format!("POST /api/v1/nowhere HTTP/1.1\r\n{auth}"), 404),
        (format!("POST /api/v1/drops HTTP/1.1\r\n{auth}{json}"), 405),
        ("POST /portfolio/new HTTP/1.1\r\n".to_owned(), 403),
        ("POST /portfolio/new HTTP/1.1\r\nSec-Fetch-Site: same-origin\r\n".to_owned(), 303),
    ] {
        let mut stream = connect(&server);
        let began = Instant::now();
        let head = format!("{head}Host: a\r\nContent-Length: 60000\r\n\r\n{{");
        stream.write_all(head.as_bytes()).expect("it listens");
        let answer = String::from_utf8(rest(&mut stream)).expect("UTF-8");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{head}: {answer}");
        // `body_seconds` is 10.
        if runs::full() {
            assert!(began.elapsed() < Duration::from_secs(5), "the response waited: {head}");
        }
    }
    // A small body is discarded, so that the connection can be reused.
    let mut client = server.client();
    for _ in 0..3 {
        let answer =
            client.send_with("POST", "/api/v1/appraise", &[], b"{\"domains\":[\"a.com\"]}");
        assert_eq!(answer.status, 401);
    }
    assert_eq!(client.connections(), 1);
}

/// The response reaches a client that is still sending.
#[test]
fn a_client_that_is_still_sending_reads_its_response() {
    let (_site, server) = served(1, "");
    for _ in 0..10 {
        let mut stream = connect(&server);
        let head = "POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("it listens");
        for _ in 0..50 {
            let _ = stream.write_all(&[b' '; 10_000]);
        }
        let answer = String::from_utf8(rest(&mut stream)).expect("UTF-8");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
}

/// Bodies of paying clients are limited as well.
#[test]
fn request_bodies_share_a_budget() {
    const BUDGET_MIB: u64 = 8;
    let (site, server) =
        served(1, &format!("[server]\nmax_request_body_mib = {BUDGET_MIB}\nbody_seconds = 30\n"));
    let key = site.account("a@example.com", "api");
    let memory = Memory::watch(&server);
    let connections = figure(10, 40);
    runtime().block_on(async {
        let mut open = Vec::new();
        for _ in 0..connections {
            let (send, driver) = http2(&server, 1 << 20).await;
            let request = || {
                from_network("POST", "/api/v1/appraise", 0)
                    .header("authorization", format!("Bearer {key}"))
                    .header("content-type", "application/json")
                    .body(())
                    .expect("a request")
            };
            open.push((send_bodies(&send, 63 << 10, request).await, send, driver));
        }
        let used = "dropdex_budget_used_bytes{budget=\"request_bodies\"}";
        let limit = "dropdex_budget_limit_bytes{budget=\"request_bodies\"}";
        assert_eq!(metric(&server, limit) as u64, BUDGET_MIB << 20);
        wait_until("the budget is used", || metric(&server, used) as u64 > BUDGET_MIB << 19);
        assert!(metric(&server, used) as u64 <= BUDGET_MIB << 20);
        // Bodies over the budget get 503 at once, and requests without a body succeed.
        let mut client = server.client_with(&key);
        assert_eq!(client.get("/api/v1/search?q=name").status, 200);
        let mut shed = 0;
        for (streams, _send, _driver) in &mut open {
            for (answer, _body) in streams.drain(..) {
                let answer = tokio::time::timeout(Duration::from_millis(10), answer).await;
                let status = answer.ok().and_then(Result::ok).map(|answer| answer.status());
                shed += usize::from(status == Some(StatusCode::SERVICE_UNAVAILABLE));
            }
        }
        say(&format!("{shed} of {} were refused", connections * STREAMS));
        assert!(shed > 0, "no request was refused");
        drop(open);
        wait_until("all is returned", || metric(&server, used) == 0.0);
        let body = serde_json::json!({"domains": ["good.com"]});
        assert_eq!(client.send("POST", "/api/v1/appraise", &body).status, 200);
    });
    let used = memory.used(&format!("{} bodies of 63 KiB", connections * STREAMS), &server);
    assert!(used.growth() < BUDGET_MIB + 48, "{used}");
}

/// Slow senders do not hold slots of their class while they wait.
#[test]
fn slow_bodies_take_no_slots() {
    const SLOTS: usize = 4;
    let settings = format!("[server]\nmax_reads = {SLOTS}\nbody_seconds = 30\n");
    let (site, server) = served(1, &settings);
    let key = site.account("a@example.com", "api");
    let slow: Vec<_> = (0..5 * SLOTS)
        .map(|_| {
            let stream = slow_body(&server, &key);
            // Waits longer than a request keeps its slot while its body does not arrive.
            std::thread::sleep(Duration::from_millis(50));
            stream
        })
        .collect();
    let mut client = server.client_with(&key);
    let body = serde_json::json!({"domains": ["good.com"]});
    wait_until("served", || client.send("POST", "/api/v1/appraise", &body).status == 200);
    let mut served = 0;
    for mut stream in slow {
        let _ = stream.write_all(b"[\"good.com\"]}");
        let answer = String::from_utf8(rest(&mut stream)).expect("UTF-8");
        served += usize::from(answer.starts_with("HTTP/1.1 200 "));
    }
    // On a busy machine, some requests find all slots occupied when they arrive.
    assert!(served > 2 * SLOTS, "{served}");
}

fn slow_body(server: &Server, key: &str) -> std::net::TcpStream {
    let mut stream = connect(server);
    let head = format!(
        "POST /api/v1/appraise HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: 24\r\n\r\n\
         {{\"domains\":"
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    stream
}
