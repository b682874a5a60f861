//! One HTTP call: a request in, the answer's status, headers and bounded body out. The only way in
//! which dropdex speaks HTTP to the outside.
//!
//! One connection a request, to an address that [`Guard`] vetted for it, with TLS for its host's
//! name. Absent on purpose: redirects, proxies, cookies, compression, a pool. Each of them is a way
//! to be led elsewhere, or to be given more than was asked for.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::outbound::guard::{Guard, GuardError};

/// A connection to one address is waited for this long.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// A TLS handshake.
const TLS_MAX: Duration = Duration::from_secs(5);
/// A call in all; Standard Webhooks asks for 15 to 30 seconds.
const CALL_MAX: Duration = Duration::from_secs(15);
/// A body that nobody reads, after the head has told what there is to know.
const IDLE_BODY_MAX: Duration = Duration::from_secs(1);
/// Octets of an answer's head at most.
const HEAD_MAX: usize = 16 * 1024;
/// Header lines of an answer at most.
const HEADERS_MAX: usize = 100;
const AGENT: &str = concat!("dropdex/", env!("CARGO_PKG_VERSION"));

/// Makes calls that its guard lets through. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    guard: Guard,
    tls: TlsConnector,
}

/// A request. `Host` and `User-Agent` are added to its headers. It has no `Debug`: addresses and
/// headers may hold secrets.
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What is wanted of an answer's body.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Nothing: so much is read, for the sender's sake, and given if it came in time.
    Glance(usize),
    /// All of it, up to so many octets.
    Whole(usize),
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Why there is none. Tells no more of the request than its host.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("refused: {0}")]
    Refused(GuardError),
    #[error("{0}")]
    Unresolved(GuardError),
    #[error("no answer in time: {0}")]
    Timeout(&'static str),
    #[error("cannot connect: {0}")]
    Unreachable(std::io::Error),
    #[error("connected to {got} instead of {expected}")]
    WrongPeer { expected: SocketAddr, got: SocketAddr },
    #[error("no secure connection: {0}")]
    Tls(std::io::Error),
    #[error("no HTTP: {0}")]
    Http(hyper::Error),
    #[error("the answer has more than {0} octets")]
    TooLarge(usize),
    #[error("the request cannot be sent: {0}")]
    BadRequest(String),
}

impl Client {
    /// A client behind `guard` that trusts the public roots and the certificates in `ca_file`.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificate.
    pub fn new(guard: Guard, ca_file: Option<&Path>) -> anyhow::Result<Client> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = ca_file {
            add_roots(&mut roots, path)
                .with_context(|| format!("the certificates in {}", path.display()))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = config?.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // One connection knows nothing of another.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Client { guard, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// What judges where its calls go.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Sends a request and reads the answer. Never follows it anywhere.
    ///
    /// # Errors
    /// There is no answer to be used.
    pub async fn send(&self, request: Request, body: Body) -> Result<Answer, CallError> {
        let whole = CallError::Timeout("the call as a whole");
        timeout(CALL_MAX, self.call(request, body)).await.unwrap_or(Err(whole))
    }

    async fn call(&self, request: Request, body: Body) -> Result<Answer, CallError> {
        let vetted = self.guard.judge(&request.url).await.map_err(CallError::of_guard)?;
        let stream = self.connect(&vetted.addresses).await?;
        if request.url.scheme() == "http" {
            return exchange(stream, request, body).await;
        }
        let name = server_name(&request.url)?;
        let handshake = timeout(TLS_MAX, self.tls.connect(name, stream)).await;
        let stream = handshake.map_err(|_| CallError::Timeout("the TLS handshake"))?;
        exchange(stream.map_err(CallError::Tls)?, request, body).await
    }

    /// A connection to the first of `addresses` that takes one.
    async fn connect(&self, addresses: &[SocketAddr]) -> Result<TcpStream, CallError> {
        let mut failed = CallError::Timeout("a connection");
        for &address in addresses {
            match timeout(CONNECT_MAX, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    self.check_peer(&stream, address)?;
                    // Requests are written whole.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(err)) => failed = CallError::Unreachable(err),
                Err(_) => failed = CallError::Timeout("a connection"),
            }
        }
        Err(failed)
    }

    /// Nothing is sent to whoever is not the one we dialled, nor to this machine under its public
    /// address.
    fn check_peer(&self, stream: &TcpStream, expected: SocketAddr) -> Result<(), CallError> {
        let got = stream.peer_addr().map_err(CallError::Unreachable)?;
        let own = stream.local_addr().map_err(CallError::Unreachable)?;
        if got != expected {
            return Err(CallError::WrongPeer { expected, got });
        }
        if own.ip() == got.ip() && !self.guard.rules().allow.covers(got) {
            let denied = crate::vocab::url::WebhookUrlError::DeniedAddress(got.ip());
            return Err(CallError::Refused(GuardError::Refused(denied)));
        }
        Ok(())
    }
}

impl CallError {
    fn of_guard(err: GuardError) -> CallError {
        match err {
            GuardError::Refused(_) | GuardError::Excess { .. } => CallError::Refused(err),
            GuardError::Unresolved { .. } => CallError::Unresolved(err),
        }
    }
}

impl Answer {
    /// How long its sender asks to be left alone: `Retry-After`, in seconds or as a date (RFC 9110
    /// §10.2.3). A date that is past is none.
    pub fn retry_after(&self, now: DateTime<Utc>) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = text.parse::<u32>() {
            return Some(Duration::from_secs(seconds.into()));
        }
        let until = DateTime::parse_from_rfc2822(text).ok()?;
        (until.with_timezone(&Utc) - now).to_std().ok()
    }
}

fn add_roots(roots: &mut RootCertStore, path: &Path) -> anyhow::Result<()> {
    let mut added = 0;
    for certificate in CertificateDer::pem_file_iter(path)? {
        roots.add(certificate?)?;
        added += 1;
    }
    anyhow::ensure!(added > 0, "there is none");
    Ok(())
}

/// Whom the certificate must be for: the name as it was vetted, or the literal address.
fn server_name(url: &Url) -> Result<ServerName<'static>, CallError> {
    let bad = |text: String| CallError::BadRequest(text);
    match url.host() {
        Some(Host::Ipv4(address)) => Ok(ServerName::from(std::net::IpAddr::from(address))),
        Some(Host::Ipv6(address)) => Ok(ServerName::from(std::net::IpAddr::from(address))),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_owned();
            ServerName::try_from(name).map_err(|err| bad(err.to_string()))
        }
        None => Err(bad("no host".to_owned())),
    }
}

/// The task that moves a connection's octets; it ends with whoever waits for them.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One request and its answer over a fresh connection, which is closed after it.
async fn exchange<S>(stream: S, request: Request, body: Body) -> Result<Answer, CallError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_MAX).max_headers(HEADERS_MAX);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(CallError::Http)?;
    let _driver = Driver(tokio::spawn(async move {
        // What goes wrong with it is told to whoever waits for the answer.
        let _ = connection.await;
    }));
    let answer = sender.send_request(prepare(request)?).await.map_err(CallError::Http)?;
    let (head, stream) = answer.into_parts();
    let body = match body {
        Body::Whole(most) => read(stream, most, true).await?,
        Body::Glance(most) => {
            let glance = timeout(IDLE_BODY_MAX, read(stream, most, false)).await;
            glance.ok().and_then(Result::ok).unwrap_or_default()
        }
    };
    Ok(Answer { status: head.status, headers: head.headers, body })
}

/// The request in origin form, with the headers every request has.
fn prepare(request: Request) -> Result<hyper::Request<Full<Bytes>>, CallError> {
    let Request { method, url, mut headers, body } = request;
    let bad = |text: &str| CallError::BadRequest(text.to_owned());
    let host = url.host_str().ok_or_else(|| bad("no host"))?;
    let host = host.strip_suffix('.').unwrap_or(host);
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let target = url
        .query()
        .map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    headers.insert(HOST, HeaderValue::try_from(host).map_err(|_| bad("its host"))?);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let mut sent = hyper::Request::new(Full::new(body));
    *sent.method_mut() = method;
    *sent.uri_mut() = target.parse().map_err(|_| bad("its path"))?;
    *sent.headers_mut() = headers;
    Ok(sent)
}

/// Reads up to `most` octets of a body; more is an error when `whole` is asked for.
async fn read(mut body: Incoming, most: usize, whole: bool) -> Result<Vec<u8>, CallError> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(CallError::Http)?.into_data() else { continue };
        let room = most - read.len();
        if data.len() > room {
            if whole {
                return Err(CallError::TooLarge(most));
            }
            read.extend_from_slice(&data[..room]);
            break;
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}
