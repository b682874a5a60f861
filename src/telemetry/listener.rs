//! The `/metrics` endpoint, in Prometheus' text format, on a listener of its own.
//!
//! `axum::serve` has no timeout for a slow request head and no limit of connections, so a few idle
//! clients could lock Prometheus out. This accept loop has both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics::histogram;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::catalogue::UPKEEP_INTERVAL;

/// Media type of the text format, version 0.0.4.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Enough for two Prometheus servers and an operator.
const CONNECTIONS_MAX: usize = 16;
/// Timeout of a request head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Lifetime of a connection. Prometheus reconnects.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(300);
/// Pause after a failed accept, usually because file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const BUFFER_BYTES_MAX: usize = 16 * 1024;

/// Sets the gauges before a scrape. May block.
pub type Sample = Arc<dyn Fn() + Send + Sync>;

/// A bound listener.
pub struct Listener {
    listener: TcpListener,
    exporter: Arc<Exporter>,
}

struct Exporter {
    handle: PrometheusHandle,
    sample: Sample,
    /// Serialises scrapes.
    scraping: Mutex<()>,
}

impl Listener {
    /// Listens on `address`, a `host:port`.
    ///
    /// # Errors
    /// Binding fails.
    pub async fn bind(
        address: &str,
        handle: PrometheusHandle,
        sample: Sample,
    ) -> anyhow::Result<Listener> {
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!(
                "cannot listen on {address} for metrics; stop the process that uses it or choose \
                 another address in [metrics] listen"
            )
        })?;
        let exporter = Arc::new(Exporter { handle, sample, scraping: Mutex::new(()) });
        Ok(Listener { listener, exporter })
    }

    /// The bound address.
    ///
    /// # Errors
    /// The system call fails.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listener.local_addr().context("the metrics listener has no address")
    }

    /// Serves until `stop` resolves.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let router = router(Arc::clone(&self.exporter));
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        let mut upkeep = interval(UPKEEP_INTERVAL);
        upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stop => return,
                _ = upkeep.tick() => {
                    let handle = self.exporter.handle.clone();
                    // If the upkeep panics, the panic hook logs it, and only this tick is lost.
                    let _ = spawn_blocking(move || handle.run_upkeep()).await;
                }
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // A connection beyond the limit is closed at once.
                        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
                            connections.spawn(serve(stream, router.clone(), slot));
                        }
                    }
                    Err(err) => {
                        tracing::warn!(error = %err, "accept failed on the metrics listener");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

async fn serve(stream: TcpStream, router: Router, _slot: OwnedSemaphorePermit) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // All errors are caused by a client that disconnected or sent invalid HTTP.
    let _ = timeout(CONNECTION_TIMEOUT, connection).await;
}

fn router(exporter: Arc<Exporter>) -> Router {
    let wrong_method = || async {
        (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], "method not allowed\n")
    };
    let not_found = || async { (StatusCode::NOT_FOUND, "metrics are at /metrics\n") };
    Router::new()
        .route("/metrics", get(scrape).fallback(wrong_method))
        .fallback(not_found)
        .with_state(exporter)
}

async fn scrape(State(exporter): State<Arc<Exporter>>) -> Response {
    let _scraping = exporter.scraping.lock().await;
    let blocking = Arc::clone(&exporter);
    match spawn_blocking(move || blocking.render()).await {
        Ok(text) => ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(err) => {
            tracing::error!(error = %err, "scrape failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "internal error\n").into_response()
        }
    }
}

impl Exporter {
    fn render(&self) -> String {
        let started = Instant::now();
        (self.sample)();
        histogram!("dropdex_scrape_duration_seconds").record(started.elapsed());
        self.handle.render()
    }
}
