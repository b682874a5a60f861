//! A load generator over loopback: keep-alive connections that each send the next request when
//! the answer to the last one is whole.
//!
//! Client and server share the cores, so the client must cost little: requests are rendered
//! beforehand, and the connections of a thread wait together (epoll) instead of each blocking a
//! thread, whose wake-ups would cost as much as the answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::timing::Timing;

/// Connections at once.
pub const CONNECTIONS: usize = 16;
/// Room for an answer; grows when one is larger.
const BUFFER_BYTES: usize = 64 << 10;

/// A request as it goes over the wire.
#[derive(Clone, Debug)]
pub struct Request(Vec<u8>);

impl Request {
    /// `GET target`, with a key where one is needed.
    pub fn new(target: &str, key: Option<&str>) -> Request {
        let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        Request(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{key}\r\n").into_bytes())
    }
}

/// What a time of load came to.
#[derive(Debug, Default)]
pub struct Load {
    latencies_ns: Vec<u64>,
    /// Bytes of all bodies.
    pub body_bytes: u64,
    pub elapsed: Duration,
}

impl Load {
    /// Answers a second.
    pub fn per_second(&self) -> f64 {
        self.latencies_ns.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Bytes of body an answer had.
    pub fn mean_body_bytes(&self) -> f64 {
        self.body_bytes as f64 / self.latencies_ns.len().max(1) as f64
    }

    /// From the first byte sent to the last one received.
    pub fn timing(&self) -> Timing {
        Timing::of(self.latencies_ns.clone())
    }

    /// Adds a time of load that came after this one.
    pub fn add_turn(&mut self, later: Load) {
        self.elapsed += later.elapsed;
        self.add_answers(later);
    }

    fn add_answers(&mut self, more: Load) {
        self.latencies_ns.extend(more.latencies_ns);
        self.body_bytes += more.body_bytes;
    }
}

/// Sends `requests` round and round over [`CONNECTIONS`] for `duration`.
///
/// # Errors
/// A connection fails, or an answer has another status than 200.
pub fn drive(
    address: SocketAddr,
    requests: &Arc<[Request]>,
    duration: Duration,
) -> anyhow::Result<Load> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.div_ceil(2).min(CONNECTIONS);
    let begun = Instant::now();
    let until = begun + duration;
    let mut load = Load::default();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let clients: Vec<_> = (0..threads)
            .map(|thread| {
                let requests = Arc::clone(requests);
                scope.spawn(move || client(address, requests, (thread, threads), until))
            })
            .collect();
        for client in clients {
            load.add_answers(client.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        Ok(())
    })?;
    load.elapsed = begun.elapsed();
    Ok(load)
}

/// Asks each request once, in order, over one connection; `visit` gets its place and the body.
///
/// # Errors
/// As [`drive`], and those of `visit`.
pub fn ask_each(
    address: SocketAddr,
    requests: &[Request],
    mut visit: impl FnMut(usize, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let mut connection = Connection::open(address).await?;
        for (at, request) in requests.iter().enumerate() {
            let body = connection.exchange(request).await?;
            visit(at, body)?;
        }
        Ok(())
    })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.context("cannot start the client's runtime")
}

/// The connections of thread `thread` of `threads`.
fn client(
    address: SocketAddr,
    requests: Arc<[Request]>,
    (thread, threads): (usize, usize),
    until: Instant,
) -> anyhow::Result<Load> {
    runtime()?.block_on(async {
        let mut connections = JoinSet::new();
        for number in (thread..CONNECTIONS).step_by(threads) {
            // Spread over the list: no two connections ask the same at the same time.
            let first = number * requests.len() / CONNECTIONS;
            connections.spawn(ask_until(address, Arc::clone(&requests), first, until));
        }
        let mut load = Load::default();
        while let Some(done) = connections.join_next().await {
            load.add_answers(done.context("a connection panicked")??);
        }
        Ok(load)
    })
}

async fn ask_until(
    address: SocketAddr,
    requests: Arc<[Request]>,
    first: usize,
    until: Instant,
) -> anyhow::Result<Load> {
    let mut connection = Connection::open(address).await?;
    let mut load = Load::default();
    let mut asked = Instant::now();
    for request in requests.iter().cycle().skip(first) {
        load.body_bytes += connection.exchange(request).await?.len() as u64;
        let answered = Instant::now();
        load.latencies_ns.push(answered.duration_since(asked).as_nanos() as u64);
        if answered >= until {
            break;
        }
        asked = answered;
    }
    Ok(load)
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(address).await.context("cannot connect to the server")?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        Ok(Connection { stream, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    /// Sends a request and gives the body of its answer.
    async fn exchange(&mut self, request: &Request) -> anyhow::Result<&[u8]> {
        self.stream.write_all(&request.0).await.context("sending a request")?;
        self.buffer.clear();
        let (body, end) = loop {
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.context("reading an answer")? == 0 {
                bail!("the server closed a connection in the middle of an answer");
            }
            if let Some(head) = head(&self.buffer)?
                && self.buffer.len() >= head.end + head.body_bytes
            {
                break (head.end, head.end + head.body_bytes);
            }
        };
        Ok(&self.buffer[body..end])
    }
}

struct Head {
    /// Where the body begins.
    end: usize,
    body_bytes: usize,
}

/// The head of an answer; `None` while it is not whole.
fn head(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[..end]).context("the head of an answer is not text")?;
    if !text.starts_with("HTTP/1.1 200 ") {
        bail!("an answer is not 200:\n{text}\n{}", String::from_utf8_lossy(&bytes[end + 4..]));
    }
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let body_bytes = length.with_context(|| format!("no length in the head\n{text}"))?;
    Ok(Some(Head { end: end + 4, body_bytes }))
}
