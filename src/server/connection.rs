//! One connection, from its first byte to its end: which protocol it speaks, and that nothing on it
//! is waited for longer than its deadline.

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

use crate::server::Shared;
use crate::server::body::AnswerBody;
use crate::server::gateway::Gateway;
use crate::server::state::{ConnectionState, Protocol, TimeoutKind};
use crate::server::wire::{Ending, Stream, Wire};

/// A head with all its headers, in bytes: twice what browsers and proxies send at their worst.
pub(super) const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// What is read ahead and held back to be written, on a connection of HTTP/1.1.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Requests at once on a connection of HTTP/2.
const STREAMS_MAX: u32 = 64;
/// Resets of one connection that are remembered before it is ended: rapid resets cost us more than
/// their client (CVE-2023-44487).
const RESETS_MAX: usize = 64;
/// What is held back to be written, on a stream of HTTP/2.
const STREAM_BUFFER_BYTES_MAX: usize = 64 * 1024;
/// How often a quiet connection of HTTP/2 is asked whether its client is there, and how long that may
/// take.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_ANSWER_MAX: Duration = Duration::from_secs(20);
/// What a connection of HTTP/2 begins with (RFC 9113 §3.4), as far as no method does.
const PREFACE: &[u8; 4] = b"PRI ";
/// How often the start of a connection is looked at that has come in part.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How connections are spoken on.
#[derive(Clone)]
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new() -> Protocols {
        let mut http1 = http1::Builder::new();
        // Deadlines of heads are ours: the library's begins with the connection's idling.
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
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_ANSWER_MAX);
        Protocols { http1, http2 }
    }
}

/// What answers the requests of one connection.
struct Requests {
    gateway: Arc<Gateway>,
    state: Arc<ConnectionState>,
    peer: SocketAddr,
}

impl Service<Request<Incoming>> for Requests {
    type Response = axum::http::Response<AnswerBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let answer = self.gateway.answer(request, self.peer, &self.state);
        Box::pin(async { Ok(answer.await) })
    }
}

/// Serves one connection to its end. `closing` turns true when it should come to it.
pub(super) async fn serve(
    socket: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    closing: watch::Receiver<bool>,
) {
    let mut told = closing.clone();
    let opened = tokio::select! {
        // What has been sent already is answered, whatever the time.
        biased;
        opened = open(socket, &shared) => opened,
        _ = told.wait_for(|closing| *closing) => None,
    };
    let Some((stream, protocol)) = opened else { return };
    let state = Arc::new(ConnectionState::new(protocol, shared.deadlines));
    let ending = Arc::new(Ending::default());
    let wire = TokioIo::new(Wire::new(stream, Arc::clone(&state), Arc::clone(&ending)));
    let requests =
        Requests { gateway: Arc::clone(&shared.gateway), state: Arc::clone(&state), peer };
    match protocol {
        Protocol::Http1 => {
            let connection = shared.protocols.http1.serve_connection(wire, requests);
            watch_over(connection, &state, &ending, closing, None).await;
        }
        Protocol::Http2 => {
            let connection = shared.protocols.http2.serve_connection(wire, requests);
            let age = Some(shared.deadlines.connection_age);
            watch_over(connection, &state, &ending, closing, age).await;
        }
    }
}

/// The stream of a connection and what is spoken on it; `None` when that does not show in time.
async fn open(socket: TcpStream, shared: &Shared) -> Option<(Stream, Protocol)> {
    if let Some(tls) = &shared.tls {
        let handshake = timeout(shared.deadlines.handshake, tls.acceptor().accept(socket)).await;
        if handshake.is_err() {
            reaped(TimeoutKind::Handshake);
        }
        let stream = handshake.ok()?;
        let stream = stream.inspect_err(|err| tracing::debug!(error = %err, "a handshake failed"));
        let stream = stream.ok()?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let protocol = if is_http2 { Protocol::Http2 } else { Protocol::Http1 };
        return Some((Stream::Tls(Box::new(stream)), protocol));
    }
    let protocol = timeout(shared.deadlines.first_byte, protocol_of(&socket)).await;
    if protocol.is_err() {
        reaped(TimeoutKind::FirstByte);
    }
    Some((Stream::Plain(socket), protocol.ok()??))
}

/// What a connection begins with tells its protocol; `None` when it ends first.
async fn protocol_of(socket: &TcpStream) -> Option<Protocol> {
    let mut start = [0; PREFACE.len()];
    loop {
        let seen = socket.peek(&mut start).await.ok().filter(|seen| *seen > 0)?;
        if start[..seen] != PREFACE[..seen] {
            return Some(Protocol::Http1);
        }
        if seen == PREFACE.len() {
            return Some(Protocol::Http2);
        }
        // `P` alone: what was peeked at is there again at once.
        sleep(LOOK_AGAIN).await;
    }
}

/// A connection that can be asked to end after the requests in hand.
trait Graceful: Future<Output = hyper::Result<()>> {
    fn close(self: Pin<&mut Self>);
}

impl Graceful for http1::Connection<TokioIo<Wire>, Requests> {
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl Graceful for http2::Connection<TokioIo<Wire>, Requests, TokioExecutor> {
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Drives a connection until it ends or something on it is late.
async fn watch_over(
    connection: impl Graceful,
    state: &ConnectionState,
    ending: &Ending,
    mut closing: watch::Receiver<bool>,
    age: Option<Duration>,
) {
    let mut connection = pin!(connection);
    let old_at = age.map(|age| Instant::now() + age);
    let told = async move {
        // An error is a server that is gone.
        let _ = closing.wait_for(|closing| *closing).await;
    };
    let mut told = pin!(told);
    let mut is_closing = false;
    // When it is over for those that came with a request that is late.
    let mut last = None;
    // Armed for the first deadline there is, and moved only when it comes nearer or has come: a
    // request on an idle connection does not touch the timer.
    let mut alarm = pin!(sleep_until(state.deadline().0.into()));
    let late = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                if let Err(err) = ended {
                    tracing::debug!(error = %err, "a connection broke off");
                }
                return Poll::Ready(None);
            }
            // After the connection had its turn: a request that was sent before is answered.
            if !is_closing && told.as_mut().poll(cx).is_ready() {
                is_closing = true;
                connection.as_mut().close();
                continue;
            }
            let (deadline, late) = state.deadline();
            let deadline = last.filter(|_| late == TimeoutKind::Request).unwrap_or(deadline);
            let next = match old_at {
                Some(old_at) if !is_closing => deadline.min(old_at),
                _ => deadline,
            };
            if alarm.deadline() > next.into() {
                alarm.as_mut().reset(next.into());
            }
            if alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if now >= deadline {
                let others = state.last_deadline().filter(|last| *last > now);
                if let (TimeoutKind::Request, None, Some(others)) = (late, last, others) {
                    // No more may come; those that share the connection have their time.
                    last = Some(others);
                    is_closing = true;
                    connection.as_mut().close();
                    continue;
                }
                return Poll::Ready(Some(late));
            }
            alarm.as_mut().reset(deadline.into());
            if !is_closing && old_at.is_some_and(|old_at| now >= old_at) {
                is_closing = true;
                connection.as_mut().close();
            }
        }
    });
    if let Some(late) = late.await {
        if late == TimeoutKind::WriteStall || state.is_busy() {
            ending.reset();
        }
        reaped(late);
    }
}

/// Counts a connection that was ended because its client was late.
fn reaped(late: TimeoutKind) {
    reapings(late).increment(1);
    tracing::debug!(late = late.as_str(), "a connection was ended");
}

/// Has them counted from nought, so that the first is an increase to who asks for rates.
pub(super) fn begin_counting() {
    TimeoutKind::ALL.into_iter().for_each(|late| reapings(late).increment(0));
}

fn reapings(late: TimeoutKind) -> Counter {
    counter!("dropdex_connections_reaped_total", "late" => late.as_str())
}
