//! What an operator sets for connections: `config` makes it. Each default says why it is that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use crate::server::cors::Origin;

/// Settings of the section `[server]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    pub deadlines: Deadlines,
    pub connections: ConnectionLimits,
    pub admission: AdmissionLimits,
    pub drain: DrainTimes,
    /// Proxies whose `X-Forwarded-For` is believed, in their canonical form.
    pub proxies: Vec<IpAddr>,
    /// Sites whose pages may use the JSON API.
    pub cors_origins: Vec<Origin>,
    /// Without it connections are plain.
    pub tls: Option<TlsFiles>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            deadlines: Deadlines::default(),
            connections: ConnectionLimits::default(),
            admission: AdmissionLimits::default(),
            drain: DrainTimes::default(),
            // A proxy on this machine, as is usual.
            proxies: vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            cors_origins: Vec::new(),
            tls: None,
        }
    }
}

/// How long a client may take for each part of a request, and the server for all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the TCP connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// From there to the first byte.
    pub first_byte: Duration,
    /// From the first byte of a head to its last.
    pub header: Duration,
    /// For a body; a large one has a second more for each [`BODY_BYTES_PER_SECOND`].
    pub body: Duration,
    /// Between two bytes that a client takes of an answer.
    pub write_stall: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// From the head of a request to the end of its answer.
    pub request: Duration,
    /// The same for exports, which are read as they are made.
    pub export: Duration,
    /// How old an HTTP/2 connection grows: balancers send its client elsewhere then.
    pub connection_age: Duration,
}

/// A body that is slower than this after its deadline is somebody holding a connection.
pub const BODY_BYTES_PER_SECOND: u64 = 16 * 1024;

impl Default for Deadlines {
    fn default() -> Deadlines {
        let seconds = Duration::from_secs;
        Deadlines {
            handshake: seconds(5),
            first_byte: seconds(5),
            header: seconds(5),
            body: seconds(10),
            write_stall: seconds(30),
            idle: seconds(60),
            request: seconds(30),
            export: seconds(120),
            connection_age: seconds(600),
        }
    }
}

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// In all: each costs some kilobytes and a file descriptor.
    pub total: u32,
    /// From one address that is neither this machine nor a proxy.
    pub per_address: u32,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits { total: 10_000, per_address: 100 }
    }
}

/// How many requests of each class are worked on at once. As many again may wait for [`Self::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionLimits {
    pub reads: u32,
    pub exports: u32,
    pub log_ins: u32,
    pub writes: u32,
    /// How long a request may wait for its turn.
    pub wait: Duration,
}

/// Reads that are worked on at once, for each core.
const READS_PER_CORE: u32 = 32;

fn cores() -> u32 {
    std::thread::available_parallelism().ok().and_then(|it| it.get().try_into().ok()).unwrap_or(1)
}

impl Default for AdmissionLimits {
    fn default() -> AdmissionLimits {
        AdmissionLimits {
            // Queries compute: more of them than this would wait for one another, at two milliseconds
            // for a page, longer than people call at once.
            reads: READS_PER_CORE * cores(),
            // Each makes thousands of rows, for as long as its client reads.
            exports: 16,
            // Two hash at once (`accounts`), and each waits for its own turn.
            log_ins: 32,
            // They wait for the disk, and share its syncs.
            writes: 256,
            // Longer than a burst of small questions takes, and so short that a refusal is one at once:
            // its client can ask another server.
            wait: Duration::from_millis(2),
        }
    }
}

/// How long the end takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTimes {
    /// How long requests are still taken after readiness says that they should go elsewhere: as long as
    /// a balancer needs to notice.
    pub delay: Duration,
    /// How long requests in hand may take after that.
    pub deadline: Duration,
}

impl Default for DrainTimes {
    fn default() -> DrainTimes {
        DrainTimes { delay: Duration::from_secs(5), deadline: Duration::from_secs(25) }
    }
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}
