//! One connection from accept to close: TLS, protocol detection, and a timeout for every wait.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::http::Request;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use metrics::{Counter, counter};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until, timeout};

use crate::edge::class::Class;
use crate::server::ServerState;
use crate::server::body::ResponseBody;
use crate::server::gateway::Gateway;
use crate::server::state::{ConnectionState, Protocol, SHORT_STALL, TimeoutKind};
use crate::server::stream::{MonitoredStream, Transport};
use crate::server::tls::CHALLENGE;

/// Maximum size of a request head: twice the largest that browsers and proxies send.
pub(super) const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// Read and write buffer of an HTTP/1.1 connection.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Concurrent requests on an HTTP/2 connection: at least 100 are expected (RFC 9113 §6.5.2).
const STREAMS_MAX: u32 = 128;
/// Stream resets after which an HTTP/2 connection is closed: rapid resets cost the server more than
/// the client (CVE-2023-44487).
const RESETS_MAX: usize = 64;
/// Write buffer of an HTTP/2 stream.
const STREAM_BUFFER_BYTES_MAX: usize = 32 * 1024;
/// HTTP/2 receive windows: request bytes that a client may send before handlers read them, per stream
/// and per connection.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// Interval and timeout of HTTP/2 keep-alive pings.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// First bytes of an HTTP/2 connection (RFC 9113 §3.4); no HTTP/1.1 method starts with them.
const PREFACE: &[u8; 4] = b"PRI ";
/// Delay before a partial preface is examined again.
const PREFACE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The protocol implementations with our limits.
#[derive(Clone)]
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new() -> Protocols {
        let mut http1 = http1::Builder::new();
        // `ConnectionState` replaces hyper's head timeout, which includes the idle time before a
        // request.
        http1
            .header_read_timeout(None)
            .max_header_size(HEAD_BYTES_MAX as usize)
            .max_buf_size(BUFFER_BYTES_MAX);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            .max_local_error_reset_streams(RESETS_MAX)
            .max_send_buf_size(STREAM_BUFFER_BYTES_MAX)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        Protocols { http1, http2 }
    }
}

/// The gateway as hyper calls it for one connection.
struct ConnectionService {
    gateway: Arc<Gateway>,
    state: Arc<ConnectionState>,
    peer: SocketAddr,
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = axum::http::Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let response = self.gateway.call(request, self.peer, &self.state);
        Box::pin(async { Ok(response.await) })
    }
}

/// Serves one connection until it ends. `closing` turns true at shutdown.
pub(super) async fn serve(
    socket: TcpStream,
    peer: SocketAddr,
    shared: Arc<ServerState>,
    closing: watch::Receiver<bool>,
) {
    let mut shutdown = closing.clone();
    let opened = tokio::select! {
        // A request that has already arrived gets its response even during shutdown.
        biased;
        opened = open(socket, &shared) => opened,
        _ = shutdown.wait_for(|closing| *closing) => None,
    };
    let Some((transport, protocol)) = opened else { return };
    let state = Arc::new(ConnectionState::new(protocol, shared.deadlines));
    let io = TokioIo::new(MonitoredStream::new(transport, Arc::clone(&state)));
    let gateway = Arc::clone(&shared.gateway);
    let service = ConnectionService { gateway, state: Arc::clone(&state), peer };
    let age = (protocol == Protocol::Http2).then_some(shared.deadlines.connection_age);
    let life = Lifetime {
        state: &state,
        gateway: &shared.gateway,
        aged_at: age.map(|age| Instant::now() + age),
        is_closing: false,
        others_deadline: None,
    };
    let Protocols { http1, http2 } = &shared.protocols;
    match protocol {
        Protocol::Http1 => drive(http1.serve_connection(io, service), life, closing).await,
        Protocol::Http2 => drive(http2.serve_connection(io, service), life, closing).await,
    }
}

/// Completes the TLS handshake and detects the protocol. Returns `None` after a timeout or an error.
async fn open(socket: TcpStream, shared: &ServerState) -> Option<(Box<dyn Transport>, Protocol)> {
    if let Some(tls) = &shared.tls {
        let handshake = timeout(shared.deadlines.handshake, tls.acceptor().accept(socket)).await;
        let Ok(handshake) = handshake else {
            report_timeout(TimeoutKind::Handshake);
            return None;
        };
        let stream = handshake
            .inspect_err(|err| tracing::debug!(error = %err, "TLS handshake failed"))
            .ok()?;
        // The handshake was the answer to an authority's challenge.
        let chosen = stream.get_ref().1.alpn_protocol();
        if chosen == Some(CHALLENGE) {
            return None;
        }
        let is_http2 = chosen == Some(b"h2");
        let protocol = if is_http2 { Protocol::Http2 } else { Protocol::Http1 };
        return Some((Box::new(stream), protocol));
    }
    let Ok(protocol) = timeout(shared.deadlines.first_byte, detect_protocol(&socket)).await else {
        report_timeout(TimeoutKind::FirstByte);
        return None;
    };
    Some((Box::new(socket), protocol?))
}

/// Detects the protocol from the first bytes. Returns `None` if the client closes the connection
/// first.
async fn detect_protocol(socket: &TcpStream) -> Option<Protocol> {
    let mut start = [0; PREFACE.len()];
    loop {
        let seen = socket.peek(&mut start).await.ok().filter(|seen| *seen > 0)?;
        if start[..seen] != PREFACE[..seen] {
            return Some(Protocol::Http1);
        }
        if seen == PREFACE.len() {
            return Some(Protocol::Http2);
        }
        // The socket stays readable after a peek, so readiness does not signal the next byte.
        sleep(PREFACE_POLL_INTERVAL).await;
    }
}

/// A hyper connection of either protocol.
trait Connection: Future<Output = hyper::Result<()>> {
    /// Closes the connection after the requests in flight.
    fn close(self: Pin<&mut Self>);
}

impl Connection for http1::Connection<TokioIo<MonitoredStream>, ConnectionService> {
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl Connection for http2::Connection<TokioIo<MonitoredStream>, ConnectionService, TokioExecutor> {
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// The limits on the lifetime of a connection.
struct Lifetime<'a> {
    state: &'a ConnectionState,
    gateway: &'a Gateway,
    /// When the connection is too old for further requests; `None` if it accepts none or may have any
    /// age.
    aged_at: Option<Instant>,
    /// Whether the connection accepts no more requests.
    is_closing: bool,
    /// Deadline of the other requests on the connection, set after the first request timeout.
    others_deadline: Option<Instant>,
}

/// An action due on a connection.
enum Due {
    Nothing,
    /// Close after the requests in flight, which keep their deadlines.
    Close,
    Timeout(TimeoutKind),
}

impl Lifetime<'_> {
    /// When the connection times out unless something happens before.
    fn deadline(&self) -> (Instant, TimeoutKind) {
        match (self.state.next_timeout(self.is_short()), self.others_deadline) {
            ((_, TimeoutKind::Request), Some(others)) => (others, TimeoutKind::Request),
            (next, _) => next,
        }
    }

    /// Returns the next instant at which an action may be due.
    fn next_check(&self) -> Instant {
        let (deadline, _) = self.deadline();
        let next = self.aged_at.map_or(deadline, |aged_at| deadline.min(aged_at));
        if self.state.unsent() > 0 {
            // A shortage of memory would move the deadline closer.
            return next.min(Instant::now() + SHORT_STALL);
        }
        next
    }

    fn due(&mut self, now: Instant) -> Due {
        let (deadline, kind) = self.deadline();
        if now < deadline {
            let is_aged = self.aged_at.is_some_and(|aged_at| now >= aged_at);
            return if is_aged { Due::Close } else { Due::Nothing };
        }
        if kind != TimeoutKind::Request || self.others_deadline.is_some() {
            return Due::Timeout(kind);
        }
        let last = self.state.last_request_deadline(self.is_short());
        self.others_deadline = last.filter(|last| *last > now);
        self.others_deadline.map_or(Due::Timeout(kind), |_| Due::Close)
    }

    fn close(&mut self, connection: Pin<&mut impl Connection>) {
        self.is_closing = true;
        self.aged_at = None;
        connection.close();
    }

    fn is_short(&self) -> bool {
        self.gateway.is_short_of_memory(Class::Read)
    }
}

/// Drives a connection until it ends or times out.
async fn drive(
    connection: impl Connection,
    mut life: Lifetime<'_>,
    mut closing: watch::Receiver<bool>,
) {
    let mut connection = pin!(connection);
    // An error means that the server is gone.
    let mut shutdown = pin!(async move { _ = closing.wait_for(|closing| *closing).await });
    // The timer is reset only when the deadline moves closer or has passed, so that most requests do
    // not touch it.
    let mut timer = pin!(sleep_until(life.deadline().0.into()));
    let timed_out = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                if let Err(err) = ended {
                    tracing::debug!(error = %err, "connection error");
                }
                return Poll::Ready(None);
            }
            // Checked after polling the connection, so that a request that has already arrived gets
            // its response.
            if !life.is_closing && shutdown.as_mut().poll(cx).is_ready() {
                life.close(connection.as_mut());
                continue;
            }
            let next = life.next_check().into();
            if timer.deadline() > next {
                timer.as_mut().reset(next);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match life.due(Instant::now()) {
                Due::Nothing => {}
                Due::Close => life.close(connection.as_mut()),
                Due::Timeout(kind) => return Poll::Ready(Some(kind)),
            }
            timer.as_mut().reset(life.deadline().0.into());
        }
    });
    if let Some(kind) = timed_out.await {
        if kind == TimeoutKind::WriteStall || life.state.is_busy() {
            life.state.close_with_reset();
        }
        report_timeout(kind);
    }
}

/// Counts a connection that was closed by a timeout.
fn report_timeout(kind: TimeoutKind) {
    timeouts(kind).increment(1);
    tracing::debug!(timeout = kind.as_str(), "connection timed out");
}

/// Registers the counters at 0 so that `rate()` sees the first increment.
pub(super) fn register_counters() {
    TimeoutKind::ALL.into_iter().for_each(|kind| timeouts(kind).increment(0));
}

fn timeouts(kind: TimeoutKind) -> Counter {
    counter!("dropdex_connections_reaped_total", "late" => kind.as_str())
}
