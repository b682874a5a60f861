//! Scripted HTTP and HTTPS servers on loopback, and canaries that no request may reach. Each connection
//! has a thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Deadline of every wait; conditions come true long before.
const WAIT_MAX: Duration = Duration::from_secs(120);
const HEAD_MAX: usize = 64 * 1024;
/// Number of bytes of an endless body after which the test fails if the sender is still reading.
const ENDLESS: usize = 256 * 1024 * 1024;

/// A received request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    /// The value of a header; empty when it was not sent.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(sent, _)| sent == name);
        found.map_or("", |(_, value)| value)
    }

    /// The body as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies are UTF-8")
    }

    /// Returns the request with another value of a header.
    pub fn with_header(&self, name: &str, value: &str) -> Seen {
        let mut changed = self.clone();
        let found = changed.headers.iter_mut().find(|(sent, _)| sent == name);
        found.expect("the header").1 = value.to_owned();
        changed
    }

    /// Returns messages that a receiver must refuse: each header of a signed webhook, or its body, with
    /// a small change.
    pub fn forgeries(&self) -> Vec<(&'static str, Seen)> {
        let without = |name: &str| {
            let mut forged = self.clone();
            forged.headers.retain(|(sent, _)| sent != name);
            forged
        };
        let mut body = self.clone();
        body.body.push(b' ');
        vec![
            ("another body", body),
            ("another id", self.with_header("webhook-id", "msg_0")),
            ("another time", self.with_header("webhook-timestamp", "1700000000")),
            ("another signature", self.with_header("webhook-signature", "v1,AAAA")),
            ("no signature", without("webhook-signature")),
            ("no time", without("webhook-timestamp")),
            ("no id", without("webhook-id")),
        ]
    }
}

/// The scripted reaction to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Status, header lines, body.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Status 200, header lines and a body that is shorter than this announced length; then the
    /// connection is closed.
    Cut(Vec<(&'static str, String)>, Vec<u8>, usize),
    /// As `Cut`, but the connection stays open and silent.
    Stall(Vec<(&'static str, String)>, Vec<u8>, usize),
    /// Status 200 and a body of this length, sent one byte at this interval.
    Drip(Duration, usize),
    /// Status 200 and a body without an end.
    Endless,
    /// Status 200 and a header without an end.
    EndlessHead,
    /// No response.
    Silence,
    /// The connection is closed.
    Close,
}

impl Reply {
    /// A response with only a status.
    pub fn status(status: u16) -> Reply {
        Reply::Answer(status, Vec::new(), Vec::new())
    }
}

type Script = dyn Fn(usize, &Seen) -> Reply + Send + Sync;

/// A scripted server. Its script gets the number of earlier requests, and the request.
pub struct Receiver {
    address: SocketAddr,
    certificate: String,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    seen: Mutex<Vec<Seen>>,
    changed: Condvar,
    connections: AtomicUsize,
}

impl Receiver {
    /// An HTTPS server for these names.
    pub fn https(
        names: &[&str],
        script: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Receiver {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let pair = rcgen::generate_simple_self_signed(names).expect("a certificate can be created");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the protocols of rustls")
            .with_no_client_auth()
            .with_single_cert(vec![pair.cert.der().clone()], key)
            .expect("a certificate and its key");
        Receiver::start(Some(Arc::new(config)), pair.cert.pem(), Arc::new(script))
    }

    /// An HTTP server.
    pub fn http(script: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Receiver {
        Receiver::start(None, String::new(), Arc::new(script))
    }

    fn start(tls: Option<Arc<ServerConfig>>, certificate: String, script: Arc<Script>) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let log = Arc::new(Log::default());
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                log.connections.fetch_add(1, Ordering::SeqCst);
                let (tls, log, script) = (tls.clone(), Arc::clone(&log), Arc::clone(&script));
                thread::spawn(move || {
                    // The sender may close the connection.
                    let _ = match tls {
                        Some(config) => ServerConnection::new(config)
                            .map_err(io::Error::other)
                            .and_then(|tls| serve(StreamOwned::new(tls, stream), &log, &*script)),
                        None => serve(stream, &log, &*script),
                    };
                });
            }
        });
        Receiver { address, certificate, log: kept }
    }

    /// Address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// `https://127.0.0.1:port/path`, or http.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.certificate.is_empty() { "http" } else { "https" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.log.seen.lock().expect("no panic while locked").clone()
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.log.connections.load(Ordering::SeqCst)
    }

    /// Waits for the first `count` requests and returns all received so far.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Seen> {
        self.wait_until(&format!("{count} requests"), |seen| seen.len() >= count)
    }

    /// Waits until `done` holds for the requests so far, and returns them.
    #[track_caller]
    pub fn wait_until(&self, what: &str, done: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let seen: MutexGuard<'_, Vec<Seen>> = self.log.seen.lock().expect("no panic while locked");
        let (seen, timeout) = self
            .log
            .changed
            .wait_timeout_while(seen, WAIT_MAX, |seen| !done(seen))
            .expect("no panic while locked");
        assert!(!timeout.timed_out(), "not seen: {what}; there were {} requests", seen.len());
        seen.clone()
    }
}

/// Reads one request and reacts as scripted.
fn serve(mut stream: impl Read + Write, log: &Log, script: &Script) -> io::Result<()> {
    let Some(request) = read_request(&mut stream)? else { return Ok(()) };
    let before = {
        let mut seen = log.seen.lock().expect("no panic while locked");
        seen.push(request.clone());
        seen.len() - 1
    };
    log.changed.notify_all();
    match script(before, &request) {
        Reply::Answer(status, headers, body) => {
            let mut answer =
                format!("HTTP/1.1 {status} Some\r\nContent-Length: {}\r\n", body.len());
            for (name, value) in headers {
                answer.push_str(&format!("{name}: {value}\r\n"));
            }
            answer.push_str("Connection: close\r\n\r\n");
            stream.write_all(answer.as_bytes())?;
            if request.method != "HEAD" {
                stream.write_all(&body)?;
            }
        }
        Reply::Cut(headers, body, length) => announce(&mut stream, &headers, &body, length)?,
        Reply::Stall(headers, body, length) => {
            announce(&mut stream, &headers, &body, length)?;
            let mut rest = [0; 1024];
            while stream.read(&mut rest)? > 0 {}
        }
        Reply::Drip(every, length) => {
            announce(&mut stream, &[], &[], length)?;
            for _ in 0..length {
                stream.write_all(b"x")?;
                stream.flush()?;
                thread::sleep(every);
            }
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            pour(&mut stream)?;
        }
        Reply::EndlessHead => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ")?;
            pour(&mut stream)?;
        }
        Reply::Silence => {
            let mut rest = [0; 1024];
            while stream.read(&mut rest)? > 0 {}
        }
        Reply::Close => return Ok(()),
    }
    stream.flush()
}

/// Sends the start of a response whose body is announced with `length` bytes.
fn announce(
    stream: &mut impl Write,
    headers: &[(&str, String)],
    body: &[u8],
    length: usize,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()
}

fn pour(stream: &mut impl Write) -> io::Result<()> {
    let some = [b'x'; 64 * 1024];
    for _ in 0..ENDLESS / some.len() {
        stream.write_all(&some)?;
    }
    panic!("the sender does not stop reading");
}

fn read_request(stream: &mut impl Read) -> io::Result<Option<Seen>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        let read = stream.read(&mut buffer)?;
        if read == 0 || bytes.len() > HEAD_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&buffer[..read]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first.next().unwrap_or_default().to_owned();
    let target = first.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        body.extend_from_slice(&buffer[..read]);
    }
    Ok(Some(Seen { method, target, headers, body }))
}

/// A listener that no request may reach; it counts calls.
pub struct Canary {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
}

impl Canary {
    /// Listens at `address`.
    pub fn at(address: &str) -> io::Result<Canary> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                drop(stream);
            }
        });
        let canary = Canary { address, calls };
        canary.prove();
        Ok(canary)
    }

    /// Address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls since the self-test.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Calls the canary once to show that it works; this call is not counted.
    fn prove(&self) {
        let port = self.address.port();
        TcpStream::connect(("127.0.0.1", port)).expect("a listener on loopback can be reached");
        while self.calls() == 0 {
            thread::yield_now();
        }
        self.calls.store(0, Ordering::SeqCst);
    }
}
