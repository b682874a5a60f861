//! A cluster of real NATS servers with JetStream on loopback, in a temporary folder. Each server syncs
//! every write.
//!
//! Servers are numbered from 0; server 0 is called `n1` in the logs. The servers do not send other
//! URLs to clients, so a client behind a [`Proxy`](super::proxy::Proxy) stays behind it.

use std::fs::{self, File};
use std::io;
use std::iter;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{Client, Response, tools, wait};

/// Deadline of [`Nats::wait_until_healthy`].
const HEALTHY_MAX: Duration = Duration::from_secs(30);
/// Ports of servers. These ports are below Linux's ephemeral ports, so no other socket takes the
/// port of a server that is down.
const PORTS: Range<u16> = 10_000..32_768;
/// Maximum attempts to find free ports.
const ATTEMPTS: usize = 1_000;

/// A running cluster. Dropping the cluster kills all servers.
pub struct Nats {
    folder: TempDir,
    servers: Vec<Server>,
}

struct Server {
    /// Client port. All ports stay the same over restarts.
    address: SocketAddr,
    /// Port for the other servers.
    cluster: SocketAddr,
    /// Monitoring port, which speaks HTTP.
    monitor: SocketAddr,
    process: Mutex<Process>,
}

#[derive(Default)]
struct Process {
    /// `None` after a kill.
    child: Option<Child>,
    /// Whether the last signal was SIGSTOP.
    is_stopped: bool,
}

impl Nats {
    /// Starts this many servers and waits until they are healthy. One server runs without clustering.
    #[track_caller]
    pub fn start(servers: usize) -> Nats {
        let folder = tempfile::Builder::new().prefix("dropdex-nats-").tempdir();
        let folder = folder.expect("a temporary folder can be made");
        let addresses = free_addresses(3 * servers);
        let servers = addresses.chunks_exact(3).map(|ports| Server {
            address: ports[0],
            cluster: ports[1],
            monitor: ports[2],
            process: Mutex::default(),
        });
        let nats = Nats { folder, servers: servers.collect() };
        for server in 0..nats.servers.len() {
            let config = nats.config(server);
            fs::write(nats.file(server, "conf"), config).expect("settings can be written");
            nats.start_again(server);
        }
        nats.wait_until_healthy();
        nats
    }

    /// URLs of all servers.
    pub fn urls(&self) -> Vec<String> {
        (0..self.servers.len()).map(|server| self.url(server)).collect()
    }

    /// `nats://127.0.0.1:port` of a server.
    pub fn url(&self, server: usize) -> String {
        format!("nats://{}", self.address(server))
    }

    /// Client address of a server.
    pub fn address(&self, server: usize) -> SocketAddr {
        self.servers[server].address
    }

    /// Store folder of a server. JetStream's files are in the subfolder `jetstream`.
    pub fn store_dir(&self, server: usize) -> PathBuf {
        self.file(server, "store")
    }

    /// Log of a server over all its restarts.
    pub fn log(&self, server: usize) -> String {
        fs::read_to_string(self.file(server, "log")).unwrap_or_default()
    }

    /// Sends SIGKILL and returns once the process is gone.
    pub fn kill(&self, server: usize) {
        let child = self.process(server).child.take();
        let mut child = child.expect("the server runs");
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");
    }

    /// Starts a killed server with its old ports and store folder, without waiting.
    pub fn start_again(&self, server: usize) {
        let mut process = self.process(server);
        assert!(process.child.is_none(), "{} was not killed", name(server));
        let log = File::options().create(true).append(true).open(self.file(server, "log"));
        let child = Command::new(tools::nats_server())
            .arg("--config")
            .arg(self.file(server, "conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log can be written"))
            .spawn()
            .expect("nats-server can be run");
        *process = Process { child: Some(child), is_stopped: false };
    }

    /// Sends SIGSTOP: the server keeps its connections and does not respond.
    pub fn stop(&self, server: usize) {
        self.signal(server, "STOP");
    }

    /// Sends SIGCONT.
    pub fn resume(&self, server: usize) {
        self.signal(server, "CONT");
    }

    /// Waits until every running server is healthy and one of them is the meta leader. Killed and
    /// stopped servers are left out.
    #[track_caller]
    pub fn wait_until_healthy(&self) {
        wait::until_ok(HEALTHY_MAX, || {
            self.check_health().map_err(|error| format!("{error}\n{}", self.logs()))
        });
    }

    /// The server that leads JetStream as a whole. `None` during an election, and for a single
    /// server.
    pub fn meta_leader(&self) -> Option<usize> {
        self.only_leader("/jsz", |state, name| state["meta_cluster"]["leader"] == name)
    }

    /// Returns the server that leads a stream; `None` during an election, and if the stream does not
    /// exist.
    pub fn leader_of(&self, stream: &str) -> Option<usize> {
        self.only_leader("/jsz?accounts=true&streams=true", |state, name| {
            let accounts = state["account_details"].as_array().into_iter().flatten();
            let mut streams =
                accounts.flat_map(|account| account["stream_detail"].as_array()).flatten();
            streams.any(|it| it["name"] == stream && it["cluster"]["leader"] == name)
        })
    }

    /// Returns the running server that calls itself the leader. Other servers may still name an
    /// earlier leader. If two servers do, the older leader does not know of the newer one yet.
    fn only_leader(&self, target: &str, leads: impl Fn(&Value, &str) -> bool) -> Option<usize> {
        let mut leaders = self.running().filter(|&server| {
            let response = self.get(server, target).ok();
            response.is_some_and(|response| leads(&response.json(), &name(server)))
        });
        let leader = leaders.next()?;
        leaders.next().is_none().then_some(leader)
    }

    fn check_health(&self) -> Result<(), String> {
        for server in self.running() {
            self.assert_not_ended(server);
            let name = name(server);
            let health =
                self.get(server, "/healthz").map_err(|error| format!("{name}: {error}"))?;
            if health.status != 200 {
                return Err(format!("{name}: {}", health.text()));
            }
        }
        if self.servers.len() > 1 && self.meta_leader().is_none() {
            return Err("no running server is the meta leader".to_owned());
        }
        Ok(())
    }

    #[track_caller]
    fn assert_not_ended(&self, server: usize) {
        let mut process = self.process(server);
        let child = process.child.as_mut();
        let ended = child.and_then(|child| child.try_wait().expect("the child can be polled"));
        assert!(ended.is_none(), "{} ended: {ended:?}\n{}", name(server), self.logs());
    }

    /// The servers that are neither killed nor stopped.
    fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.servers.len()).filter(|&server| {
            let process = self.process(server);
            process.child.is_some() && !process.is_stopped
        })
    }

    /// Sends a request to the monitoring port.
    fn get(&self, server: usize, target: &str) -> io::Result<Response> {
        Client::new(self.servers[server].monitor).try_request("GET", target, &[])
    }

    fn signal(&self, server: usize, signal: &str) {
        let mut process = self.process(server);
        let pid = process.child.as_ref().expect("the server runs").id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{signal} cannot be sent to {pid}");
        process.is_stopped = signal == "STOP";
    }

    fn process(&self, server: usize) -> MutexGuard<'_, Process> {
        self.servers[server].process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file or folder of one server.
    fn file(&self, server: usize, kind: &str) -> PathBuf {
        self.folder.path().join(format!("{}.{kind}", name(server)))
    }

    fn logs(&self) -> String {
        let log = |server| format!("log of {}:\n{}", name(server), self.log(server));
        (0..self.servers.len()).map(log).collect()
    }

    fn config(&self, server: usize) -> String {
        let Server { address, cluster, monitor, .. } = &self.servers[server];
        let mut config = format!(
            "server_name: {}\nlisten: \"{address}\"\nhttp: \"{monitor}\"\n\
             jetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
            name(server),
            self.store_dir(server).display()
        );
        if self.servers.len() > 1 {
            let routes = self.servers.iter().map(|it| format!("\"nats://{}\"", it.cluster));
            let routes = routes.collect::<Vec<_>>().join(", ");
            config.push_str(&format!(
                "cluster {{ name: test, listen: \"{cluster}\", no_advertise: true, \
                 routes: [{routes}] }}\n"
            ));
        }
        config
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let process = server.process.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Some(child) = &mut process.child {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// Name of a server in its settings, in logs and on the monitoring port.
fn name(server: usize) -> String {
    format!("n{}", server + 1)
}

/// Finds distinct free addresses on loopback.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    // All ports stay bound until the last one is found, so they differ.
    let listeners: Vec<TcpListener> =
        iter::repeat_with(|| TcpListener::bind((Ipv4Addr::LOCALHOST, fastrand::u16(PORTS))))
            .take(ATTEMPTS)
            .flatten()
            .take(count)
            .collect();
    assert_eq!(listeners.len(), count, "loopback has free ports in {PORTS:?}");
    let address = |listener: &TcpListener| listener.local_addr();
    listeners.iter().map(|it| address(it).expect("a bound socket has an address")).collect()
}
