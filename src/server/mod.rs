//! Connections in, requests to the router, answers out: the one way into the service from outside.
//!
//! [`Server::run`] accepts; [`connection`] speaks HTTP/1.1 or HTTP/2 and ends what is late
//! ([`state`]); [`slots`] caps how many there are; every request goes through the [`gateway`]. Nothing
//! here knows what is asked for.

mod admission;
mod body;
mod connection;
pub mod cors;
mod gateway;
mod encoding;
mod slots;
mod state;
pub mod settings;
pub mod supervisor;
pub mod tls;
mod wire;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures_util::FutureExt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::http::error::ApiError;
use crate::server::connection::Protocols;
use crate::server::gateway::Gateway;
use crate::server::settings::{ConnectionLimits, Deadlines, ServerSettings};
use crate::server::slots::ConnectionSlots;
use crate::server::tls::Tls;
use crate::telemetry::requests;

/// How long accepting rests when the system has no room for another connection.
const REST: Duration = Duration::from_millis(100);

/// Connections that wait to be accepted: as many as Linux keeps. A burst beyond it waits a second.
const BACKLOG: u32 = 4096;
/// Descriptors of a process for other things than connections: files, and calls to the outside.
const OTHER_DESCRIPTORS: u64 = 200;

/// Has the system give this process as many descriptors as it may have, and says so in the log where
/// that is too few for all connections.
pub fn make_room(limits: &ConnectionLimits) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = u64::from(limits.total) + OTHER_DESCRIPTORS;
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    // None is no limit at all.
    let has = if raised { maximum } else { current };
    if let Some(has) = has.filter(|has| *has < needed) {
        tracing::warn!(
            has,
            needed,
            "too few descriptors for all connections: raise LimitNOFILE= of the unit (ulimit -n), or \
             lower server.connections"
        );
    }
}

/// Listens on a host and port.
///
/// # Errors
/// The host is unknown, or no address of it can be listened on.
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
    // A restart need not wait for connections of the process before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves a router.
pub struct Server {
    shared: Arc<Shared>,
    places: Arc<ConnectionSlots>,
    /// Turns true when connections should come to their end; each holds a receiver.
    closing: watch::Sender<bool>,
}

/// How a request is refused: people get a page, programs the JSON of the error. CorsRequest when it comes: its
/// head is gone by the time its answer fails.
pub type Refusals = fn(&Uri, &HeaderMap) -> Refuse;

/// The answer that tells of an error.
pub type Refuse = fn(ApiError) -> Response;

/// What a server is given.
pub struct Parts {
    pub router: Router,
    /// Those of what never comes to the router.
    pub refusals: Refusals,
    /// Without it connections are plain.
    pub tls: Option<Tls>,
    /// How requests are told of.
    pub observing: requests::Settings,
    /// Whether the end has begun: connections of HTTP/1.1 end with the next answer then.
    pub draining: Arc<AtomicBool>,
}

/// What all connections share.
struct Shared {
    gateway: Arc<Gateway>,
    protocols: Protocols,
    deadlines: Deadlines,
    proxies: Vec<IpAddr>,
    tls: Option<Tls>,
}

impl Server {
    /// A server as `settings` have it.
    pub fn new(settings: &ServerSettings, parts: Parts) -> Server {
        let shared = Shared {
            protocols: Protocols::new(),
            deadlines: settings.deadlines,
            proxies: settings.proxies.clone(),
            tls: parts.tls.clone(),
            gateway: Arc::new(Gateway::new(settings, parts)),
        };
        let places = ConnectionSlots::new(settings.connections);
        connection::begin_counting();
        Server { shared: Arc::new(shared), places, closing: watch::channel(false).0 }
    }

    /// Accepts connections until `stop` is done. Those there are go on.
    pub async fn run(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((socket, peer)) => self.take(socket, peer),
                    Err(err) => rest_after(&err).await,
                },
            }
        }
        // Clients that are connected as far as they know.
        while let Some(Ok((socket, peer))) = listener.accept().now_or_never() {
            self.take(socket, peer);
        }
    }

    /// Has connections end, each after the requests in hand, and waits for them. Gives how many were
    /// left after `deadline`.
    pub async fn close(&self, deadline: Duration) -> u32 {
        self.closing.send_replace(true);
        match timeout(deadline, self.closing.closed()).await {
            Ok(()) => 0,
            Err(_) => self.places.open(),
        }
    }

    fn take(&self, socket: TcpStream, peer: SocketAddr) {
        // A proxy brings everybody's requests, and whoever is on this machine has other means.
        let address = peer.ip().to_canonical();
        let exempt = address.is_loopback() || self.shared.proxies.contains(&address);
        let Some(place) = self.places.take(address, exempt) else {
            // A reset: no state is kept here of a connection that is not served.
            let _ = socket.set_zero_linger();
            return;
        };
        // Answers are small and whole: waiting to fill a packet only delays them.
        let _ = socket.set_nodelay(true);
        let (shared, closing) = (Arc::clone(&self.shared), self.closing.subscribe());
        tokio::spawn(async move {
            connection::serve(socket, peer, shared, closing).await;
            drop(place);
        });
    }
}

/// Clients that have gone before they were accepted are nobody's concern; a system without
/// descriptors or memory needs a moment to have some again.
async fn rest_after(err: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(err.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
        return;
    }
    tracing::warn!(error = %err, "a connection cannot be accepted");
    sleep(REST).await;
}
