//! The HTTP server: accepts connections, enforces limits and deadlines, and passes requests to the
//! router.
//!
//! [`Server::run`] accepts and [`slots`] caps the number of connections. [`connection`] speaks HTTP/1.1
//! or HTTP/2 and closes connections that time out ([`state`]). Every request goes through the
//! [`gateway`], which checks [`host`] and rate ([`visitors`]), and admits it. Bodies of requests and
//! responses count against a [`budget`] ([`body`]). The server does not know the routes.

mod admission;
mod body;
mod budget;
mod connection;
pub mod cors;
mod encoding;
mod gateway;
mod host;
pub mod settings;
pub mod slices;
mod slots;
mod state;
mod stream;
pub mod supervisor;
pub mod tls;
mod visitors;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures_util::FutureExt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::edge::mount::Mount;
use crate::edge::position::Positions;
use crate::edge::routes::Routes;
use crate::server::connection::Protocols;
use crate::server::gateway::Gateway;
use crate::server::settings::{ConnectionLimits, Deadlines, ServerSettings};
use crate::server::slots::ConnectionSlots;
use crate::server::tls::Tls;
use crate::service::error::ApiError;
use crate::telemetry::requests;

/// Pause after a failed accept, usually because file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Length of the accept queue, which Linux caps at 4096. When the queue is full, clients retry
/// after a second.
const BACKLOG: u32 = 4096;
/// File descriptors reserved for files and outbound calls.
const OTHER_DESCRIPTORS: u64 = 200;

/// Raises the soft limit of file descriptors to the hard limit, and logs a warning if that is too low
/// for all connections.
pub fn raise_descriptor_limit(limits: &ConnectionLimits) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = u64::from(limits.total) + OTHER_DESCRIPTORS;
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    // `None` means unlimited.
    let limit = if raised { maximum } else { current };
    if let Some(limit) = limit.filter(|limit| *limit < needed) {
        tracing::warn!(
            limit,
            needed,
            "too few file descriptors for all connections; raise LimitNOFILE= of the unit \
             (ulimit -n) or lower server.max_connections"
        );
    }
}

/// Listens on a host and port.
///
/// # Errors
/// The host is unknown, or listening fails on each of its addresses.
pub async fn bind(address: &str) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in lookup_host(address).await? {
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(err) => failed = err,
        }
    }
    Err(failed)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Lets a restarted server bind while old connections are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves a router.
pub struct Server {
    shared: Arc<ServerState>,
    slots: Arc<ConnectionSlots>,
    /// Turns true at shutdown; every connection holds a receiver.
    closing: watch::Sender<bool>,
}

/// Selects the format of an error response from the request head: a page for a browser, JSON for
/// other clients.
pub type SelectErrorRenderer = fn(&Uri, &HeaderMap) -> ErrorRenderer;

/// Builds the response for an error.
pub type ErrorRenderer = fn(ApiError) -> Response;

/// Determines whether a request has a valid key or session. May store the caller in the request's
/// extensions.
pub type Identify = Arc<dyn Fn(&mut Request) -> bool + Send + Sync>;

/// The parts of a [`Server`].
pub struct ServerParts {
    pub router: Router,
    pub routes: Routes,
    /// Renders errors that occur before the router is called.
    pub error_renderer: SelectErrorRenderer,
    pub identify: Identify,
    /// `None` for a single node.
    pub positions: Option<Positions>,
    /// Host and port at which people reach the pages; `None` accepts any.
    pub public_host: Option<String>,
    pub mount: Mount,
    /// `None` serves plain HTTP.
    pub tls: Option<Tls>,
    pub observing: requests::RequestSettings,
    /// True once shutdown has begun: HTTP/1.1 connections then close with their next response.
    pub draining: Arc<AtomicBool>,
}

/// State shared by all connections.
struct ServerState {
    gateway: Arc<Gateway>,
    protocols: Protocols,
    deadlines: Deadlines,
    proxies: Vec<IpAddr>,
    tls: Option<Tls>,
}

impl Server {
    pub fn new(settings: &ServerSettings, parts: ServerParts) -> Server {
        let shared = ServerState {
            protocols: Protocols::new(),
            deadlines: settings.deadlines,
            proxies: settings.proxies.clone(),
            tls: parts.tls.clone(),
            gateway: Arc::new(Gateway::new(settings, parts)),
        };
        connection::register_counters();
        Server {
            shared: Arc::new(shared),
            slots: ConnectionSlots::new(settings.connections),
            closing: watch::channel(false).0,
        }
    }

    /// Accepts connections until `stop` resolves. Open connections continue.
    pub async fn run(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((socket, peer)) => self.serve(socket, peer),
                    Err(err) => pause_after(&err).await,
                },
            }
        }
        // For clients in the accept queue, the connection is already open.
        while let Some(Ok((socket, peer))) = listener.accept().now_or_never() {
            self.serve(socket, peer);
        }
    }

    /// Closes every connection once its requests in flight are done. Returns how many are still
    /// open after `deadline`.
    pub async fn close(&self, deadline: Duration) -> u32 {
        self.closing.send_replace(true);
        match timeout(deadline, self.closing.closed()).await {
            Ok(()) => 0,
            Err(_) => self.slots.open(),
        }
    }

    fn serve(&self, socket: TcpStream, peer: SocketAddr) {
        // A proxy forwards the requests of many clients, and local clients all share one address.
        let address = peer.ip().to_canonical();
        let exempt = address.is_loopback() || self.shared.proxies.contains(&address);
        let Some(slot) = self.slots.take(address, exempt) else {
            // Resets the connection, so that the kernel keeps no state for it.
            let _ = socket.set_zero_linger();
            return;
        };
        // Responses are written in one go, so waiting to fill a packet would only delay them.
        let _ = socket.set_nodelay(true);
        let (shared, closing) = (Arc::clone(&self.shared), self.closing.subscribe());
        tokio::spawn(async move {
            connection::serve(socket, peer, shared, closing).await;
            drop(slot);
        });
    }
}

/// Pauses when the system lacks descriptors or memory. A client that disconnects before it is accepted
/// needs no pause.
async fn pause_after(err: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(err.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
        return;
    }
    tracing::warn!(error = %err, "accept failed");
    sleep(ACCEPT_PAUSE).await;
}
