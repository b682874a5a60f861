//! Several nodes that share a log, and their harness: real NATS servers that are killed and stopped,
//! and the proxy in front of them.

mod damage;
mod files;
mod history;
mod join;
mod kills;
mod nodes;
mod s3;
mod transfer;

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::nats::Nats;
use crate::common::proxy::Proxy;
use crate::common::wait;

/// Deadline of every wait.
const SOON: Duration = Duration::from_secs(30);
const STREAM: &str = "log";

#[test]
fn a_nats_cluster_elects_a_leader_again_after_a_kill() {
    let nats = Nats::start(3);
    assert_eq!(nats.urls().len(), 3);
    let killed = nats.meta_leader().expect("a healthy cluster has a leader");
    nats.kill(killed);
    nats.wait_until_healthy();
    let leader = meta_leader(&nats);
    assert_ne!(leader, killed);
    nats.start_again(killed);
    nats.wait_until_healthy();
    let starts = nats.log(killed).matches("Server is ready").count();
    assert_eq!(starts, 2, "{}", nats.log(killed));
}

#[test]
fn a_nats_stream_moves_from_a_killed_and_from_a_stopped_leader() {
    let nats = Nats::start(3);
    create_stream(nats.address(0));
    let stopped = stream_leader(&nats, |_| true);
    nats.stop(stopped);
    let killed = stream_leader(&nats, |leader| leader != stopped);
    nats.resume(stopped);
    nats.wait_until_healthy();
    nats.kill(killed);
    let left = stream_leader(&nats, |leader| leader != killed);
    nats.start_again(killed);
    nats.wait_until_healthy();
    assert!(nats.store_dir(left).join("jetstream/$G/streams").join(STREAM).is_dir());
}

#[test]
fn the_proxy_cuts_delays_and_heals() {
    let nats = Nats::start(1);
    let proxy = Proxy::to(nats.address(0));
    let mut before = Connection::open(proxy.address()).expect("the proxy listens");
    assert!(before.ping(), "connected");
    proxy.cut();
    assert!(!before.ping(), "cut");
    assert!(Connection::open(proxy.address()).is_err(), "cut");
    proxy.heal();
    assert!(!before.ping(), "a cut connection stays closed");
    proxy.delay(Duration::from_millis(50));
    let mut after = Connection::open(proxy.address()).expect("the proxy is healed");
    assert!(after.ping(), "healed");
    nats.kill(0);
    assert!(!after.ping(), "the server was killed");
    assert!(Connection::open(proxy.address()).is_err(), "the server was killed");
}

fn meta_leader(nats: &Nats) -> usize {
    wait::until_ok(SOON, || nats.meta_leader().ok_or("there is no meta leader"))
}

/// Waits until the stream has a leader that meets the condition.
fn stream_leader(nats: &Nats, fits: impl Fn(usize) -> bool) -> usize {
    wait::until_ok(SOON, || nats.leader_of(STREAM).filter(|&it| fits(it)).ok_or("no such leader"))
}

/// Creates [`STREAM`] with three replicas.
fn create_stream(address: SocketAddr) {
    let config = json!({"name": STREAM, "subjects": [STREAM], "num_replicas": 3});
    create_stream_with(address, STREAM, &config);
}

/// Creates a stream.
fn create_stream_with(address: SocketAddr, name: &str, config: &Value) {
    let config = config.to_string();
    let mut connection = Connection::open(address).expect("the server listens");
    let length = config.len();
    let request = format!("PUB $JS.API.STREAM.CREATE.{name} reply {length}\r\n{config}");
    connection.send(&format!("SUB reply 1\r\n{request}")).expect("the server reads");
    let head = connection.line().expect("the server responds");
    assert!(head.starts_with("MSG reply 1 "), "{head}");
    let reply = connection.line().expect("the server responds");
    assert!(reply.contains("\"did_create\":true"), "{reply}");
}

/// A connection that speaks the text protocol of NATS.
struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Connects and reads the server's `INFO`.
    fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(SOON))?;
        let mut connection = Connection(BufReader::new(stream));
        let info = connection.line()?;
        assert!(info.starts_with("INFO {"), "{info}");
        connection.send("CONNECT {\"verbose\":false}")?;
        Ok(connection)
    }

    /// Whether the server responds; false once the connection is closed.
    fn ping(&mut self) -> bool {
        self.send("PING").and_then(|()| self.line()).is_ok_and(|line| line == "PONG")
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        write!(self.0.get_mut(), "{line}\r\n")
    }

    /// The next line, without the server's own pings.
    fn line(&mut self) -> io::Result<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if line != "PING" {
                return Ok(line.to_owned());
            }
        }
    }
}
