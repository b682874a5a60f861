//! Settings of the section `[server]`, built by `config`, with the reason for each default.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use crate::server::cors::AllowedOrigin;
use crate::vocab::memory;
use crate::vocab::net::AllowList;
use crate::vocab::secret::SecretSource;

/// All settings of the section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    pub deadlines: Deadlines,
    pub connections: ConnectionLimits,
    pub admission: AdmissionLimits,
    pub budgets: Budgets,
    /// Requests per minute without a valid key or session, per client network.
    pub visitor_requests_per_minute: u32,
    pub drain: DrainTimes,
    /// Proxies whose `X-Forwarded-For` and `X-Request-Id` are trusted, as canonical addresses.
    pub proxies: Vec<IpAddr>,
    /// Sites whose pages may call the JSON API.
    pub cors_origins: Vec<AllowedOrigin>,
    /// `None` serves plain HTTP.
    pub tls: Option<TlsSource>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            deadlines: Deadlines::default(),
            connections: ConnectionLimits::default(),
            admission: AdmissionLimits::default(),
            budgets: Budgets::default(),
            // Ten per second, enough for one page with its styles and scripts every second.
            visitor_requests_per_minute: 600,
            drain: DrainTimes::default(),
            // A reverse proxy usually runs on the same machine.
            proxies: vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            cors_origins: Vec::new(),
            tls: None,
        }
    }
}

/// Deadlines of the phases of a connection and a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Maximum time from accepting the connection to the end of the TLS handshake.
    pub handshake: Duration,
    /// Maximum time from the end of the handshake to the first byte.
    pub first_byte: Duration,
    /// Maximum time from the first to the last byte of a request head.
    pub header: Duration,
    /// Maximum time for the request body, extended by a second for every [`BODY_BYTES_PER_SECOND`]
    /// received.
    pub body: Duration,
    /// Maximum time between two reads of the client while a response is sent.
    pub write_stall: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Maximum time from the request head to the end of the response.
    pub request: Duration,
    /// The same maximum for exports, which are produced while they are sent.
    pub export: Duration,
    /// Age at which an HTTP/2 connection is closed, so that load balancers can move the client.
    pub connection_age: Duration,
}

/// Minimum rate of a request body after its deadline. A slower client only ties up the connection.
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

/// Maximum numbers of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// In total. Each connection costs a few kilobytes and a file descriptor.
    pub total: u32,
    /// Maximum per client network, except for loopback and proxies.
    pub per_address: u32,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits { total: 10_000, per_address: 100 }
    }
}

/// Maximum numbers of concurrent requests by class. As many again may queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionLimits {
    pub reads: u32,
    pub exports: u32,
    /// Long polls and streams of events.
    pub streams: u32,
    pub log_ins: u32,
    pub writes: u32,
    /// Requests without a valid key or session.
    pub visitors: u32,
    /// Maximum time in the queue.
    pub queue_timeout: Duration,
}

/// Concurrent reads per core.
const READS_PER_CORE: u32 = 32;
/// Concurrent requests of visitors per core: enough to keep the core busy, and few enough that a flood
/// of them leaves time for requests of customers.
const VISITORS_PER_CORE: u32 = 8;

fn cores() -> u32 {
    std::thread::available_parallelism().ok().and_then(|it| it.get().try_into().ok()).unwrap_or(1)
}

impl Default for AdmissionLimits {
    fn default() -> AdmissionLimits {
        AdmissionLimits {
            // Queries are CPU-bound, about 2 ms per page. With more concurrent queries, each would
            // wait too long for a core.
            reads: READS_PER_CORE * cores(),
            // Each export produces thousands of rows, for as long as its client reads.
            exports: 16,
            // Each stream costs a connection and a few kilobytes, and CPU time only when events
            // occur.
            streams: 2_000,
            // A log-in holds its slot only until the form is read. Password hashing has its own
            // queue (`accounts/hashing`).
            log_ins: 256,
            // Writes wait for the disk and share its syncs.
            writes: 256,
            visitors: VISITORS_PER_CORE * cores(),
            // Long enough for a burst of small queries to pass, and short enough that a client
            // whose request is shed can soon try another server.
            queue_timeout: Duration::from_millis(2),
        }
    }
}

/// Maximum bytes that requests and responses hold, for the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Bytes of request bodies, from the arrival of a body to the response.
    pub request_bytes: u64,
    /// Responses not yet written to the socket.
    pub response_bytes: u64,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets::for_memory(memory::available_bytes())
    }
}

impl Budgets {
    /// Returns the budgets for a machine with this much memory. The index needs most of the memory.
    fn for_memory(bytes: u64) -> Budgets {
        Budgets {
            request_bytes: (bytes / 64).clamp(16 * MIB, 256 * MIB),
            response_bytes: (bytes / 32).clamp(32 * MIB, GIB),
        }
    }
}

/// Phases of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTimes {
    /// Time for which requests are still accepted while readiness returns 503, so that load
    /// balancers notice.
    pub delay: Duration,
    /// Time allowed for the requests in flight after the drain delay.
    pub deadline: Duration,
}

impl Default for DrainTimes {
    fn default() -> DrainTimes {
        DrainTimes { delay: Duration::from_secs(5), deadline: Duration::from_secs(25) }
    }
}

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSource {
    /// The operator renews it.
    Files(TlsFiles),
    /// An authority issues it by ACME.
    Acme(AcmeSettings),
}

impl TlsSource {
    /// The files with the certificate; those of an authority may not exist yet.
    pub fn files(&self) -> &TlsFiles {
        match self {
            TlsSource::Files(files) => files,
            TlsSource::Acme(acme) => &acme.files,
        }
    }
}

/// How a certificate authority issues the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// Host names in the certificate.
    pub hosts: Vec<String>,
    /// E-mail address of the operator.
    pub contact: Option<String>,
    /// Directory URL of the authority.
    pub directory: String,
    /// Private addresses that the directory may have.
    pub allow: AllowList,
    /// PEM file of certificates to trust besides the public roots, for an authority of one's own.
    pub ca_file: Option<PathBuf>,
    /// The customer account that the authority asks for, if it does.
    pub external: Option<ExternalAccount>,
    /// Where the certificate is kept.
    pub files: TlsFiles,
}

/// The key that binds an account to one outside ACME (RFC 8555, section 7.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    pub id: String,
    /// The MAC key in base64url.
    pub key: SecretSource,
}

/// A certificate chain and its private key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}
