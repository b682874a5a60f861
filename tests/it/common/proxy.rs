//! A TCP proxy on loopback that a test can cut, heal and slow down.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum bytes of one read.
const CHUNK_MAX: usize = 64 * 1024;
/// Maximum delayed chunks of one direction of a connection.
const CHUNKS_MAX: usize = 128;

/// A proxy to one address. The threads of a proxy run as long as the test.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    target: SocketAddr,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    delay: Duration,
    /// Maximum bytes per second over all connections in both directions, and the time at which the
    /// link is free again.
    rate: Option<u32>,
    free_at: Option<Instant>,
    connections: Vec<Weak<Connection>>,
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Proxy {
    /// Starts a proxy on a free port that forwards connections to `target`.
    pub fn to(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared { target, state: Mutex::default() });
        let kept = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // The target may be down; the client's connection is then closed.
                    if let Ok(Some(connection)) = shared.connect(client) {
                        shared.forward(&connection);
                    }
                });
            }
        });
        Proxy { address, shared: kept }
    }

    /// Address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and closes new ones as soon as they are made. Delayed bytes are lost.
    pub fn cut(&self) {
        let mut state = self.shared.state();
        state.is_cut = true;
        for connection in state.connections.drain(..).filter_map(|it| it.upgrade()) {
            // Either end may already be closed.
            let _ = connection.client.shutdown(Shutdown::Both);
            let _ = connection.server.shutdown(Shutdown::Both);
        }
    }

    /// Forwards new connections again.
    pub fn heal(&self) {
        self.shared.state().is_cut = false;
    }

    /// Limits the bytes per second of both directions together.
    pub fn limit(&self, bytes_per_second: u32) {
        self.shared.state().rate = Some(bytes_per_second);
    }

    /// Delays the bytes that arrive from now on, in both directions.
    pub fn delay(&self, delay: Duration) {
        self.shared.state().delay = delay;
    }
}

impl State {
    /// Returns the time at which bytes that arrive now are forwarded.
    fn due(&mut self, bytes: usize) -> Instant {
        let now = Instant::now();
        let Some(rate) = self.rate else { return now + self.delay };
        let begins = self.free_at.map_or(now, |free_at| free_at.max(now));
        let ends = begins + Duration::from_secs(1).mul_f64(bytes as f64 / f64::from(rate));
        self.free_at = Some(ends);
        ends + self.delay
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects a client to the target; `None` while the proxy is cut.
    fn connect(&self, client: TcpStream) -> io::Result<Option<Arc<Connection>>> {
        // The lock is held until the end of the function, so a cut either refuses a connection or
        // closes it.
        let mut state = self.state();
        if state.is_cut {
            return Ok(None);
        }
        let server = TcpStream::connect(self.target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let connection = Arc::new(Connection { client, server });
        state.connections.retain(|it| it.strong_count() > 0);
        state.connections.push(Arc::downgrade(&connection));
        Ok(Some(connection))
    }

    /// Forwards bytes in both directions until both have ended.
    fn forward(&self, Connection { client, server }: &Connection) {
        thread::scope(|scope| {
            scope.spawn(|| self.copy(client, server));
            self.copy(server, client);
        });
    }

    /// Forwards bytes in one direction until it ends. Reads and writes are on separate threads, so that
    /// a delay costs no throughput.
    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let (sender, receiver) = mpsc::sync_channel::<(Instant, Vec<u8>)>(CHUNKS_MAX);
        thread::scope(|scope| {
            scope.spawn(move || {
                for (due, bytes) in receiver {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    if to.write_all(&bytes).is_err() {
                        let _ = from.shutdown(Shutdown::Both);
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            });
            // The sender is moved into this thread, so that the writer ends when this reader ends.
            let sender = sender;
            let mut buffer = vec![0; CHUNK_MAX];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                let due = self.state().due(read);
                if sender.send((due, buffer[..read].to_owned())).is_err() {
                    break;
                }
            }
        });
    }
}
