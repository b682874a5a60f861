//! HTTP client for all outbound calls, with bounded or streamed responses.
//!
//! Each request uses a new connection to an address that [`Guard`] checked, with TLS for the host name.
//! Redirects, proxies, cookies and connection pools are absent on purpose: each could lead a call to another
//! server. Bodies are decoded within the caller's size limit ([`coding`]).

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, RETRY_AFTER,
    USER_AGENT,
};
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

use crate::coding::{self, CodingError, Codings};
use crate::guard::{Guard, GuardError};
use crate::rate::{LeastRate, TooSlow};
use crate::tls;
use crate::vocab::text_file;

/// Timeout for connecting to one address.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Timeout of a TLS handshake.
const TLS_MAX: Duration = Duration::from_secs(5);
/// Default timeout of a call; Standard Webhooks recommends 15 to 30 seconds.
const CALL_MAX: Duration = Duration::from_secs(15);
/// Timeout for the body of a response whose content is not needed.
const IDLE_BODY_MAX: Duration = Duration::from_secs(1);
/// Maximum bytes of a response head.
const HEAD_MAX: usize = 16 * 1024;
/// Maximum header lines of a response.
const HEADERS_MAX: usize = 100;
/// `User-Agent` of requests without one.
pub const AGENT: &str = concat!("dropdex/", env!("CARGO_PKG_VERSION"));

/// HTTP client behind a guard. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    guard: Guard,
    tls: TlsConnector,
    timeout: Duration,
}

/// A request. The client adds `Host`, and `User-Agent` and `Accept-Encoding` if they are absent. Does not implement
/// `Debug`, because URLs and headers may contain secrets.
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// How much of a response body to read.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Read up to this many bytes if they arrive soon; the content is not needed.
    Glance(usize),
    /// Read the whole body, up to this many bytes.
    Whole(usize),
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A response with a streamed body.
pub struct Stream {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    /// Measures the rate of the body, starting with the first read.
    rate: Option<LeastRate>,
    /// Dropping these closes the connection.
    _sender: http1::SendRequest<Full<Bytes>>,
    _driver: Driver,
}

/// Reason for a failed call. Reveals nothing about the request except its host.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("refused: {0}")]
    Refused(GuardError),
    #[error("{0}")]
    Unresolved(GuardError),
    /// No connection was made in time.
    #[error("timed out: {0}")]
    ConnectTimeout(&'static str),
    #[error("timed out: {0}")]
    Timeout(&'static str),
    #[error(transparent)]
    Slow(#[from] TooSlow),
    #[error("cannot connect: {0}")]
    Unreachable(std::io::Error),
    #[error("connected to {got} instead of {expected}")]
    WrongPeer { expected: SocketAddr, got: SocketAddr },
    #[error("TLS failed: {}", tls::told(.0))]
    Tls(std::io::Error),
    #[error("invalid HTTP response: {0}")]
    Http(hyper::Error),
    #[error("the response has more than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Coding(#[from] CodingError),
    #[error("the request cannot be sent: {0}")]
    BadRequest(String),
}

impl Client {
    /// Creates a client behind `guard` that trusts the public roots and the certificates in
    /// `ca_file`.
    ///
    /// # Errors
    /// The file cannot be read or contains no certificate.
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
        // Connections share no state.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Client { guard, tls: TlsConnector::from(Arc::new(config)), timeout: CALL_MAX })
    }

    /// Returns the same client with another timeout for calls, for large bodies.
    pub fn with_timeout(self, timeout: Duration) -> Client {
        Client { timeout, ..self }
    }

    /// The guard of its calls.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Sends a request and reads the response. Does not follow redirects.
    ///
    /// # Errors
    /// No usable response was received.
    pub async fn send(&self, request: Request, body: Body) -> Result<Answer, CallError> {
        let whole = CallError::Timeout("the whole call");
        timeout(self.timeout, self.call(request, body)).await.unwrap_or(Err(whole))
    }

    /// As [`Client::send`] for libraries that speak in the types of `http`. Reads the whole body, up to `most`
    /// bytes.
    ///
    /// # Errors
    /// The URL is invalid, or no usable response was received.
    pub async fn exchange(
        &self,
        request: hyper::Request<Bytes>,
        most: usize,
    ) -> Result<hyper::Response<Bytes>, CallError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string());
        let url = url.map_err(|err| CallError::BadRequest(err.to_string()))?;
        let request = Request { method: head.method, url, headers: head.headers, body };
        let answer = self.send(request, Body::Whole(most)).await?;
        let mut response = hyper::Response::new(Bytes::from(answer.body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }

    /// Sends a request and returns the response as soon as its head has arrived. Does not follow
    /// redirects.
    ///
    /// # Errors
    /// No response was received in time.
    pub async fn open(&self, request: Request) -> Result<Stream, CallError> {
        let head = CallError::Timeout("the response head");
        timeout(self.timeout, self.start(request)).await.unwrap_or(Err(head))
    }

    /// Connects to a server of a protocol other than HTTP.
    ///
    /// # Errors
    /// The guard refuses the host, or no connection was made in time.
    pub async fn dial(&self, host: &Host, port: u16) -> Result<TcpStream, CallError> {
        let vetted = self.guard.vet_server(host, port).await.map_err(CallError::from_guard)?;
        self.connect(&vetted.addresses).await
    }

    async fn call(&self, request: Request, body: Body) -> Result<Answer, CallError> {
        let Stream { status, mut headers, body: stream, _sender, _driver, .. } =
            self.start(request).await?;
        let codings = Codings::of(&headers);
        let body = match body {
            Body::Whole(most) => {
                let body = read(stream, most, true).await?;
                if body.is_empty() { body } else { codings?.decode(body, most)? }
            }
            Body::Glance(most) => {
                let glance = timeout(IDLE_BODY_MAX, read(stream, most, false)).await;
                let glance = glance.ok().and_then(Result::ok).unwrap_or_default();
                codings.and_then(|codings| codings.decode(glance, most)).unwrap_or_default()
            }
        };
        if headers.remove(CONTENT_ENCODING).is_some() {
            headers.remove(CONTENT_LENGTH);
        }
        Ok(Answer { status, headers, body })
    }

    async fn start(&self, request: Request) -> Result<Stream, CallError> {
        let vetted = self.guard.vet(&request.url).await.map_err(CallError::from_guard)?;
        let stream = self.connect(&vetted.addresses).await?;
        if request.url.scheme() == "http" {
            return exchange(stream, request).await;
        }
        let name = server_name(&request.url)?;
        let handshake = timeout(TLS_MAX, self.tls.connect(name, stream)).await;
        let stream = handshake.map_err(|_| CallError::ConnectTimeout("the TLS handshake"))?;
        exchange(stream.map_err(CallError::Tls)?, request).await
    }

    /// Connects to the first of `addresses` that accepts.
    async fn connect(&self, addresses: &[SocketAddr]) -> Result<TcpStream, CallError> {
        let mut failed = CallError::ConnectTimeout("connecting");
        for &address in addresses {
            match timeout(CONNECT_MAX, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    self.check_peer(&stream, address)?;
                    // Requests are written in one piece.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(err)) => failed = CallError::Unreachable(err),
                Err(_) => failed = CallError::ConnectTimeout("connecting"),
            }
        }
        Err(failed)
    }

    /// Refuses a peer that is not the dialled address, and connections to this machine under its
    /// public address.
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

impl Stream {
    /// Returns the next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// No data or too little arrives within `idle`, or the connection breaks before the end of the
    /// body.
    pub async fn piece(&mut self, idle: Duration) -> Result<Option<Bytes>, CallError> {
        let rate = self.rate.get_or_insert_with(|| LeastRate::new(idle));
        loop {
            let silent = CallError::Timeout("the next bytes of the body");
            let frame = timeout(idle, self.body.frame()).await.map_err(|_| silent)?;
            let Some(frame) = frame else { return Ok(None) };
            if let Ok(data) = frame.map_err(CallError::Http)?.into_data() {
                rate.count(data.len() as u64)?;
                return Ok(Some(data));
            }
        }
    }

    /// Returns the codings of the body, whose pieces are not decoded.
    ///
    /// # Errors
    /// A coding is unknown.
    pub fn codings(&self) -> Result<Codings, CodingError> {
        Codings::of(&self.headers)
    }

    /// The value of `Retry-After`; see [`Answer::retry_after`].
    pub fn retry_after(&self, now: DateTime<Utc>) -> Option<Duration> {
        retry_after(&self.headers, now)
    }
}

impl CallError {
    /// Whether no connection could be made; any other request to the host would then fail too.
    pub fn is_unconnected(&self) -> bool {
        matches!(
            self,
            CallError::Unresolved(_)
                | CallError::Unreachable(_)
                | CallError::ConnectTimeout(_)
                | CallError::Tls(_)
        )
    }

    fn from_guard(err: GuardError) -> CallError {
        match err {
            GuardError::Refused(_) | GuardError::Excess { .. } => CallError::Refused(err),
            GuardError::Unresolved { .. } => CallError::Unresolved(err),
        }
    }
}

impl Answer {
    /// `Retry-After` in seconds or as a date (RFC 9110 §10.2.3); `None` for a past date.
    pub fn retry_after(&self, now: DateTime<Utc>) -> Option<Duration> {
        retry_after(&self.headers, now)
    }
}

fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let until = DateTime::parse_from_rfc2822(text).ok()?;
    (until.with_timezone(&Utc) - now).to_std().ok()
}

fn add_roots(roots: &mut RootCertStore, path: &Path) -> anyhow::Result<()> {
    let mut added = 0;
    for certificate in CertificateDer::pem_slice_iter(&text_file::read(path)?) {
        roots.add(certificate?)?;
        added += 1;
    }
    anyhow::ensure!(added > 0, "the file holds no certificate");
    Ok(())
}

/// Returns the subject that the certificate must have: the checked name, or the literal address.
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

/// Handle of the task that drives a connection; dropping it stops the task.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends one request over a new connection.
async fn exchange<S>(stream: S, request: Request) -> Result<Stream, CallError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_MAX).max_headers(HEADERS_MAX);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(CallError::Http)?;
    let driver = Driver(tokio::spawn(async move {
        // `send_request` also reports errors of the connection.
        let _ = connection.await;
    }));
    let answer = sender.send_request(prepare(request)?).await.map_err(CallError::Http)?;
    let (head, body) = answer.into_parts();
    let (status, headers) = (head.status, head.headers);
    Ok(Stream { status, headers, body, rate: None, _sender: sender, _driver: driver })
}

/// Builds the request in origin form with its standard headers.
fn prepare(request: Request) -> Result<hyper::Request<Full<Bytes>>, CallError> {
    let Request { method, url, mut headers, body } = request;
    let bad = |text: &str| CallError::BadRequest(text.to_owned());
    let host = url.host_str().ok_or_else(|| bad("no host"))?;
    let host = host.strip_suffix('.').unwrap_or(host);
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let target = url
        .query()
        .map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    headers.insert(HOST, HeaderValue::try_from(host).map_err(|_| bad("invalid host"))?);
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(AGENT));
    headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static(coding::ACCEPTED));
    let mut sent = hyper::Request::new(Full::new(body));
    *sent.method_mut() = method;
    *sent.uri_mut() = target.parse().map_err(|_| bad("invalid path"))?;
    *sent.headers_mut() = headers;
    Ok(sent)
}

/// Reads up to `most` bytes of a body; a longer body is an error if `whole` is set.
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
