//! The listener of `/metrics`, apart from that of the service: an address in, the text format of
//! Prometheus out. It answers nothing else, to few at once, and keeps nobody waiting for long.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::histogram;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::telemetry::catalogue::UPKEEP_EVERY;

const PATH: &str = "/metrics";
/// The text format, version 0.0.4.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A Prometheus or two, and an operator who looks.
const CONNECTIONS_MAX: usize = 16;
/// From the first byte of a request to the end of its head.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// Prometheus comes back every few seconds over the same connection; this is its end, well or not.
const CONNECTION_MAX: Duration = Duration::from_secs(300);
/// After an error of accepting: no descriptors, as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const BUFFER_BYTES: usize = 16 * 1024;

/// What sets the gauges anew before they are read. Blocks.
pub type Sample = Arc<dyn Fn() + Send + Sync>;

/// A listener that is bound.
pub struct Listener {
    listener: TcpListener,
    page: Arc<Page>,
}

/// What is shown.
struct Page {
    handle: PrometheusHandle,
    sample: Sample,
    /// One reads the state of things at a time.
    reading: Mutex<()>,
}

impl Listener {
    /// Listens on `address`, `host:port`.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn bind(
        address: &str,
        handle: PrometheusHandle,
        sample: Sample,
    ) -> anyhow::Result<Listener> {
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!(
                "cannot listen on {address} for metrics; stop what uses it, or choose another \
                 address in [metrics] listen"
            )
        })?;
        Ok(Listener { listener, page: Arc::new(Page { handle, sample, reading: Mutex::new(()) }) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listener.local_addr().context("the listener of metrics has no address")
    }

    /// Answers until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        let mut upkeep = interval(UPKEEP_EVERY);
        upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stop => return,
                _ = upkeep.tick() => {
                    let handle = self.page.handle.clone();
                    // Puts samples into buckets; a panic there is logged, and costs a tick.
                    let _ = tokio::task::spawn_blocking(move || handle.run_upkeep()).await;
                }
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // More than there is place for are closed at once.
                        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                            connections.spawn(serve(stream, Arc::clone(&self.page), place));
                        }
                    }
                    Err(err) => {
                        tracing::warn!(error = %err, "cannot accept a connection for metrics");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }
}

async fn serve(stream: TcpStream, page: Arc<Page>, _place: OwnedSemaphorePermit) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(page.answer(request.method(), request.uri().path()).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), answer);
    // How it ends is the client's business.
    let _ = timeout(CONNECTION_MAX, connection).await;
}

impl Page {
    async fn answer(self: &Arc<Page>, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if path != PATH {
            return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
        }
        if method != Method::GET && method != Method::HEAD {
            let refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            return with(refusal, ALLOW, "GET, HEAD");
        }
        let _reading = self.reading.lock().await;
        let page = Arc::clone(self);
        match tokio::task::spawn_blocking(move || page.read()).await {
            Ok(text) => with(plain(StatusCode::OK, text), CONTENT_TYPE, TEXT),
            Err(err) => {
                tracing::error!(error = %err, "the metrics could not be read");
                plain(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n")
            }
        }
    }

    fn read(&self) -> String {
        let begun = Instant::now();
        (self.sample)();
        histogram!("dropdex_scrape_duration_seconds").record(begun.elapsed());
        self.handle.render()
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    with(response, CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn with(
    mut response: Response<Full<Bytes>>,
    name: HeaderName,
    value: &'static str,
) -> Response<Full<Bytes>> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
