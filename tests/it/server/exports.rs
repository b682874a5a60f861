//! Exports whose clients do not read.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use futures_util::future::join_all;
use h2::client::{self, ResponseFuture, SendRequest};
use serde_json::json;

use crate::common::{Server, Site, wait};

use super::TODAY;

const EXPORT: &str = "/api/export/drops";
/// Time for which an export may stall, which is enough for every request before the wait, even on a
/// busy machine.
const STALL_SECONDS: u64 = 6;

/// Sends a request for an export over HTTP/2 and returns the response. Its body is not read.
async fn ask(send: &SendRequest<Bytes>, key: &str) -> ResponseFuture {
    let request = Request::get(format!("http://dropdex.example{EXPORT}"))
        .header("authorization", format!("Bearer {key}"))
        .body(())
        .expect("a request");
    let mut send = send.clone().ready().await.expect("the connection is established");
    send.send_request(request, true).expect("sent").0
}

async fn speak(server: &Server) -> SendRequest<Bytes> {
    let socket = tokio::net::TcpStream::connect(server.address()).await.expect("it listens");
    let (send, connection) = client::handshake(socket).await.expect("HTTP/2");
    tokio::spawn(connection);
    send
}

/// Returns the number of occupied export slots.
fn exports_running(server: &Server) -> u32 {
    let metrics = server.metrics().get("/metrics");
    let start = "dropdex_requests_in_flight{class=\"export\"} ";
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned);
    line.expect("the gauge").parse().expect("a number")
}

#[test]
fn an_account_runs_two_exports_and_a_stalled_one_gives_its_slot_back() {
    let names = (0..6_000).map(|number| format!("name{number:05}.com"));
    let site = Site::with_names(names, TODAY);
    let hoarder = site.account("hoarder@example.com", "api");
    let other = site.account("other@example.com", "core");
    // Without a limit per account, two exports occupy all slots of the server.
    let settings = site.settings(&format!(
        "[metrics]\nlisten = \"127.0.0.1:0\"\n\
         [server]\nmax_exports = 3\nwrite_stall_seconds = {STALL_SECONDS}\nexport_seconds = 60\n",
    ));
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let began = Instant::now();
    let (_send, unread) = runtime.block_on(async {
        let send = speak(&server).await;
        let mut unread = Vec::new();
        for _ in 0..2 {
            let response = ask(&send, &hoarder).await.await.expect("a response");
            assert_eq!(response.status(), StatusCode::OK);
            unread.push(response);
        }
        (send, unread)
    });
    let mut client = server.client_with(&hoarder);
    let response = client.get(EXPORT);
    assert_eq!(response.number("retry-after"), Some(5));
    let refused = json!({
        "error": "your plan allows 2 exports at once; wait until one of them ends",
        "code": "exports_running",
        "plan": "api",
        "limit": 2,
    });
    assert_eq!(response.answer(), (429, refused));
    // The refused request is not counted, and other accounts use the remaining slots.
    let mut others = server.client_with(&other);
    assert_eq!(others.get(EXPORT).status, 200);
    // The streams are still open and the connection is busy, but both exports have ended;
    // otherwise, reading them would yield complete files.
    wait::until(Duration::from_secs(50), "the slots are free", || exports_running(&server) == 0);
    assert!(
        began.elapsed() >= Duration::from_secs(STALL_SECONDS),
        "ended before the client's deadline"
    );
    assert_eq!(client.get(EXPORT).status, 200);
    let ended = runtime.block_on(async {
        // Reads both at once, because each holds a part of the connection's window.
        let read = unread.into_iter().map(async |response| {
            let mut body = response.into_body();
            let mut is_aborted = false;
            while let Some(data) = body.data().await {
                match data {
                    Ok(data) => _ = body.flow_control().release_capacity(data.len()),
                    Err(_) => {
                        is_aborted = true;
                        break;
                    }
                }
            }
            assert!(is_aborted, "an export without all its rows looks whole");
        });
        join_all(read).await;
        // A connection whose client did not read accepts no further requests, or has ended.
        let send = speak(&server).await;
        ask(&send, &hoarder).await.await.map(|response| response.status())
    });
    assert_eq!(ended.ok(), Some(StatusCode::OK));
}

#[test]
fn an_export_ends_when_its_account_is_disabled() {
    let site = Site::with_names((0..6_000).map(|number| format!("name{number:05}.com")), TODAY);
    let key = site.account("leaver@example.com", "api");
    let server = site.serve(TODAY);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (_send, unread) = runtime.block_on(async {
        let send = speak(&server).await;
        let response = ask(&send, &key).await.await.expect("a response");
        assert_eq!(response.status(), StatusCode::OK);
        (send, response)
    });
    site.ok(&["account", "disable", "leaver@example.com"]);
    let is_aborted = runtime.block_on(async {
        let mut body = unread.into_body();
        while let Some(data) = body.data().await {
            match data {
                Ok(data) => _ = body.flow_control().release_capacity(data.len()),
                Err(_) => return true,
            }
        }
        false
    });
    assert!(is_aborted, "the rest of the rows was sent");
}
