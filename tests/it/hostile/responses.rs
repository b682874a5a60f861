//! Responses that their clients do not read.

use std::time::{Duration, Instant};

use axum::http::StatusCode;

use super::{Memory, from_network, http2, metric, runtime, served};
use crate::common::runs::{figure, say};
use crate::server::raw::wait_until;

const STREAMS: usize = 64;
const USED: &str = "dropdex_budget_used_bytes{budget=\"responses\"}";

/// Connections that request large responses and read none of them.
#[test]
fn unread_responses_share_a_budget() {
    const BUDGET_MIB: u64 = 16;
    let (site, server) =
        served(3_000, &format!("[server]\nmax_reads = 1000\nmax_unsent_mib = {BUDGET_MIB}\n"));
    let key = site.account("a@example.com", "api");
    let large = "/api/v1/drops?limit=1000";
    let bytes = server.client_with(&key).get(large).body.len();
    let memory = Memory::watch(&server);
    let connections = figure(8, 40);
    runtime().block_on(async {
        let mut open = Vec::new();
        for number in 0..connections {
            let (send, driver) = http2(&server, 1_000).await;
            let mut answers = Vec::new();
            for _ in 0..STREAMS {
                let Ok(mut send) = send.clone().ready().await else { break };
                let request = from_network("GET", large, number)
                    .header("authorization", format!("Bearer {key}"))
                    .body(())
                    .expect("a request");
                answers.extend(send.send_request(request, true).ok().map(|(answer, _)| answer));
            }
            open.push((answers, send, driver));
        }
        let began = Instant::now();
        let mut most: f64 = 0.0;
        while began.elapsed() < Duration::from_secs(figure(3, 10) as u64) {
            most = most.max(metric(&server, USED));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        say(&format!("{} MiB counted as unsent", most as u64 >> 20));
        assert!(most > 0.0 && most as u64 <= (BUDGET_MIB << 20) + (1 << 20), "{most}");
        // Requests with small responses succeed, or get a 503 with Retry-After.
        let status = server.client_with(&key).get("/api/v1/search?q=name&limit=1").status;
        assert!([200, 503].contains(&status), "{status}");
        drop(open);
        wait_until("all is returned", || metric(&server, USED) == 0.0);
        assert_eq!(server.client_with(&key).get("/api/v1/search?q=name").status, 200);
    });
    let what = format!("{} unread responses of {bytes} bytes", connections * STREAMS);
    let used = memory.used(&what, &server);
    assert!(bytes * connections * STREAMS > 100 << 20, "{bytes} bytes are not a large response");
    assert!(used.growth() < BUDGET_MIB + 64, "{used}");
}

/// The same with compression, which needs memory of its own.
#[test]
fn unread_compressed_responses_are_counted() {
    const BUDGET_MIB: u64 = 16;
    let (site, server) =
        served(3_000, &format!("[server]\nmax_reads = 1000\nmax_unsent_mib = {BUDGET_MIB}\n"));
    let key = site.account("a@example.com", "api");
    let memory = Memory::watch(&server);
    runtime().block_on(async {
        let mut open = Vec::new();
        for number in 0..figure(8, 40) {
            let (send, driver) = http2(&server, 0).await;
            let mut answers = Vec::new();
            for _ in 0..STREAMS {
                let Ok(mut send) = send.clone().ready().await else { break };
                let request = from_network("GET", "/api/v1/drops?limit=100", number)
                    .header("authorization", format!("Bearer {key}"))
                    .header("accept-encoding", "zstd")
                    .body(())
                    .expect("a request");
                answers.extend(send.send_request(request, true).ok().map(|(answer, _)| answer));
            }
            open.push((answers, send, driver));
        }
        tokio::time::sleep(Duration::from_secs(figure(2, 10) as u64)).await;
        let most = metric(&server, USED) as u64;
        assert!(most > 0 && most <= (BUDGET_MIB << 20) + (1 << 20), "{most}");
    });
    let used = memory.used("unread compressed responses", &server);
    assert!(used.growth() < BUDGET_MIB + 64, "{used}");
}

/// Unread responses of visitors do not block responses to customers.
#[test]
fn unread_pages_leave_room_for_keys() {
    let (site, server) = served(
        3_000,
        "[server]\nmax_unsent_mib = 4\nmax_visitors = 1000\nwrite_stall_seconds = 60\n",
    );
    let key = site.account("a@example.com", "api");
    runtime().block_on(async {
        let mut open = Vec::new();
        for number in 0..8 {
            let (send, driver) = http2(&server, 1_000).await;
            let mut answers = Vec::new();
            for _ in 0..STREAMS {
                let Ok(mut send) = send.clone().ready().await else { break };
                let request = from_network("GET", "/?view=all&rows=all", number).body(());
                let sent = send.send_request(request.expect("a request"), true);
                answers.extend(sent.ok().map(|(answer, _)| answer));
            }
            open.push((answers, send, driver));
        }
        wait_until("visitors have their half", || {
            metric(&server, USED) as u64 > (2 << 20) - (200 << 10)
        });
        let mut client = server.client_with(&key);
        for _ in 0..20 {
            let response = client.get("/api/v1/drops?limit=200");
            assert_eq!(response.status, 200, "{}", response.text());
            assert!(response.body.len() > 4096);
        }
    });
}

/// If the client of an export stops reading, the export ends and frees its slot.
#[test]
fn a_stalled_export_ends() {
    let (site, server) =
        served(3_000, "[server]\nmax_exports = 1\nwrite_stall_seconds = 1\nexport_seconds = 100\n");
    let key = site.account("a@example.com", "api");
    runtime().block_on(async {
        let (send, _driver) = http2(&server, 1_000).await;
        let mut send = send.ready().await.expect("the connection is established");
        let request = from_network("GET", "/api/export/drops", 0)
            .header("authorization", format!("Bearer {key}"));
        let (answer, _) =
            send.send_request(request.body(()).expect("a request"), true).expect("sent");
        let unread = answer.await.expect("an answer");
        assert_eq!(unread.status(), StatusCode::OK);
        let began = Instant::now();
        let mut client = server.client_with(&key);
        wait_until("the slot is free", || client.get("/api/export/drops").status == 200);
        say(&format!("a stalled export ended {:?} later", began.elapsed()));
        drop(unread);
    });
}

/// An error response is complete before it is sent, so it holds no slot while the client reads it.
#[test]
fn an_unread_error_takes_no_export_slot() {
    let (site, server) = served(1, "[server]\nmax_exports = 1\n");
    let key = site.account("a@example.com", "api");
    runtime().block_on(async {
        let (send, _driver) = http2(&server, 0).await;
        let mut send = send.ready().await.expect("the connection is established");
        let request = from_network("GET", "/api/export/drops?min_dqs=x", 0)
            .header("authorization", format!("Bearer {key}"));
        let (answer, _) =
            send.send_request(request.body(()).expect("a request"), true).expect("sent");
        let unread = answer.await.expect("an answer");
        assert_eq!(unread.status(), StatusCode::BAD_REQUEST);
        assert_eq!(server.client_with(&key).get("/api/export/drops").status, 200);
        drop(unread);
    });
}
