//! Hostile clients against the real binary: the memory that they cost, and their effect on other
//! clients.
//!
//! Each test prints the resident memory before, at the peak and after. The default run uses small
//! sizes, and bounds the growth and the share of requests that succeed. A run with `DROPDEX_FULL=1`
//! does everything at once for half an hour, and also compares times.

mod attack;
mod bodies;
mod fairness;
mod hosts;
mod responses;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Request;
use h2::client::{self, SendRequest};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle as Task;

use crate::common::runs::say;
use crate::common::{Server, Site};
use crate::server::raw::resident;

const TODAY: &str = "2026-11-21";

/// Creates an installation with this many names and these settings, and starts its server with metrics.
fn served(names: usize, settings: &str) -> (Site, Server) {
    let site = Site::with_names((0..names).map(|number| format!("name{number:05}.com")), TODAY);
    let server = serve(&site, settings);
    (site, server)
}

fn serve(site: &Site, settings: &str) -> Server {
    let settings = site.settings(&format!(
        "[plans.api]\nrequests_per_day = 100000000\nexports_per_day = 1000000\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\n{settings}"
    ));
    site.serve_with(&["--today", TODAY, "--config", &settings])
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Opens an HTTP/2 connection that accepts `window` bytes of each response.
async fn http2(server: &Server, window: u32) -> (SendRequest<Bytes>, Task<()>) {
    let socket = tokio::net::TcpStream::connect(server.address()).await.expect("it listens");
    let mut builder = client::Builder::new();
    builder.initial_window_size(window).max_concurrent_reset_streams(1_000);
    let (send, connection) = builder.handshake(socket).await.expect("HTTP/2");
    let driver = tokio::spawn(async move {
        // It does not matter how the server closes the connection.
        let _ = connection.await;
    });
    (send, driver)
}

/// Returns a request that appears to come from a different network for each `number`.
fn from_network(method: &str, path: &str, number: usize) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(format!("http://dropdex.example{path}"))
        .header("x-forwarded-for", network(number))
}

fn network(number: usize) -> String {
    format!("198.18.{}.{}", number / 250 % 250, number % 250 + 1)
}

/// Returns a gauge or counter of `/metrics`.
fn metric(server: &Server, series: &str) -> f64 {
    let answer = server.metrics().get("/metrics");
    let line = answer.text().lines().find_map(|line| line.strip_prefix(series)).map(str::trim);
    line.and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no {series} in {}", answer.text()))
}

/// Samples the resident memory of a server.
struct Memory {
    before: u64,
    peak: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    sampling: Option<JoinHandle<()>>,
}

/// Resident memory in MiB.
#[derive(Clone, Copy)]
struct Used {
    before: u64,
    peak: u64,
    after: u64,
}

impl Used {
    fn growth(&self) -> u64 {
        self.peak.saturating_sub(self.before)
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Used { before, peak, after } = self;
        write!(f, "resident memory {before} MiB before, {peak} MiB at the peak, {after} MiB after")
    }
}

impl Memory {
    fn watch(server: &Server) -> Memory {
        let (peak, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (highest, stopped, pid) = (Arc::clone(&peak), Arc::clone(&stop), server.pid());
        let sampling = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                highest.fetch_max(crate::server::raw::resident_of(pid), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(10));
            }
        });
        Memory { before: resident(server), peak, stop, sampling: Some(sampling) }
    }

    /// Ends the sampling and prints the figures.
    fn used(mut self, what: &str, server: &Server) -> Used {
        let mib = |bytes: u64| bytes >> 20;
        let (peak, after) = (self.peak.load(Ordering::Relaxed), resident(server));
        let used = Used { before: mib(self.before), peak: mib(peak), after: mib(after) };
        self.end();
        say(&format!("{what}: {used}"));
        used
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(sampling) = self.sampling.take() {
            sampling.join().expect("no panic");
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
