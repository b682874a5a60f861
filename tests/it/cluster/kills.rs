//! Nodes and servers are killed under load: no acknowledged write is lost, and reads continue.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::SOON;
use super::nodes::{Node, until_status};
use crate::common::ledger::Shown;
use crate::common::nats::Nats;
use crate::common::nginx::{Nginx, free_address};
use crate::common::rng::Rng;
use crate::common::{Client, Server, runs, wait};

const STREAM: &str = "dropdex";
/// A write must be acknowledged within this time after any kill.
const ACKNOWLEDGED_SOON: Duration = Duration::from_secs(90);
/// Pause of a writer, because the writes of an account per minute are limited.
const WRITE_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time between a kill and the start of a gap in acknowledgements that it caused.
const EFFECT: Duration = Duration::from_secs(3);

/// The victim of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Node,
    StreamLeader,
    OtherServer,
}

/// State shared by the threads.
struct Run {
    keys: Vec<String>,
    nodes: Vec<SocketAddr>,
    /// The acknowledged id of each claim, by account and note.
    claims: Vec<Mutex<BTreeMap<String, Option<u64>>>>,
    acknowledged: Mutex<Vec<Instant>>,
    reads: AtomicU64,
    failed_reads: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Run {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Adds claims through any node. Each request has an idempotency key, and is retried until it
    /// is acknowledged.
    fn write(&self, writer: usize) {
        let mut at = writer;
        let mut clients: Vec<Client> = self.nodes.iter().copied().map(Client::new).collect();
        for number in 0.. {
            if self.is_over() {
                return;
            }
            let account = (writer + number) % self.keys.len();
            let (note, authorization) =
                (format!("{writer}-{number}"), format!("Bearer {}", self.keys[account]));
            self.claims[account].lock().expect("no panic").insert(note.clone(), None);
            let claim = json!({ "domain": "solar.com", "status": "attempted", "userNotes": note });
            let headers = [
                ("Content-Type", "application/json"),
                ("Idempotency-Key", note.as_str()),
                ("Authorization", authorization.as_str()),
            ];
            let (body, begun) = (claim.to_string(), Instant::now());
            let id = loop {
                at = (at + 1) % clients.len();
                match clients[at].try_send("POST", "/api/v1/portfolio", &headers, body.as_bytes()) {
                    Ok(response) if response.status == 201 => break response.json()["id"].as_u64(),
                    Ok(response) => {
                        // A node that was just started does not know the key.
                        let is_passing = [401, 503].contains(&response.status);
                        assert!(is_passing, "{}", response.text());
                    }
                    Err(_) => {}
                }
                assert!(begun.elapsed() < ACKNOWLEDGED_SOON, "{note} is not acknowledged");
                thread::sleep(Duration::from_millis(20));
            };
            self.acknowledged.lock().expect("no panic").push(Instant::now());
            self.claims[account].lock().expect("no panic").insert(note, id);
            thread::sleep(WRITE_PAUSE);
        }
    }

    /// Reads through the balancer.
    fn read(&self, balancer: SocketAddr) {
        let mut client = Client::new(balancer).with_key(&self.keys[0]);
        while !self.is_over() {
            let failure = match client.try_request("GET", "/api/v1/search?q=solar", &[]) {
                Ok(response) if response.status == 200 => None,
                Ok(response) => Some(format!("{}: {}", response.status, response.text())),
                Err(err) => Some(err.to_string()),
            };
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.failed_reads.lock().expect("no panic").extend(failure);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the longest time without an acknowledged write that was caused by a kill.
    fn gap_after(&self, killed: Instant) -> Duration {
        let acknowledged = self.acknowledged.lock().expect("no panic");
        let first = acknowledged.partition_point(|at| *at < killed).saturating_sub(1);
        let pairs = acknowledged[first..].windows(2).take_while(|pair| pair[0] < killed + EFFECT);
        let gaps = pairs.map(|pair| pair[1] - pair[0].max(killed));
        gaps.max().unwrap_or_default()
    }
}

/// Starts a balancer that tries the next node when one is down or not ready.
fn balancer(nodes: &[SocketAddr]) -> Nginx {
    let nodes: String = nodes.iter().map(|it| format!("server {it} max_fails=0;")).collect();
    Nginx::start(|address| {
        format!(
            "daemon off; pid pid; worker_processes 1; events {{}} http {{ access_log off; \
             client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; \
             uwsgi_temp_path u; scgi_temp_path s; \
             upstream nodes {{ {nodes} keepalive 16; }} \
             server {{ listen {address}; location / {{ proxy_pass http://nodes; \
             proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host; \
             proxy_connect_timeout 1s; proxy_read_timeout 5s; \
             proxy_next_upstream error timeout http_502 http_503; }} }} }}"
        )
    })
}

/// Kills the server of a node and starts another at its address after a pause. Returns the time at
/// which it was killed.
pub(super) fn kill_node(
    node: &Node,
    server: &mut Option<Server>,
    address: SocketAddr,
    pause: Duration,
) -> Instant {
    server.take().expect("it runs").kill();
    let killed = Instant::now();
    thread::sleep(pause);
    *server = Some(node.serve_on(address));
    killed
}

/// Kills a NATS server and starts it again after a pause. Returns the time of the kill.
pub(super) fn kill_server(nats: &Nats, at: usize, pause: Duration) -> Instant {
    nats.kill(at);
    let killed = Instant::now();
    thread::sleep(pause);
    nats.start_again(at);
    nats.wait_until_healthy();
    killed
}

#[test]
fn kills_lose_no_acknowledged_write() {
    let seed = runs::seed();
    let mut rng = Rng::new(seed);
    let (length, accounts) = (runs::figure(25, 3_600), runs::figure(3, 40));
    let nats = Nats::start(3);
    let more = "[plans.api]\nrequests_per_day = 100000000\n";
    let nodes = [0, 1, 2].map(|number| Node::with(&nats.urls(), number, more));
    nodes[0].ok(&["cluster", "init"]);
    let addresses = [(); 3].map(|()| free_address());
    let mut servers = [0, 1, 2].map(|at| Some(nodes[at].serve_on(addresses[at])));
    let keys: Vec<String> = (0..accounts)
        .map(|account| {
            let email = format!("owner-{account}@example.com");
            nodes[0].ok(&["account", "add", &email, "--plan", "api"]);
            nodes[0].ok(&["account", "key", &email]).trim().to_owned()
        })
        .collect();
    for address in &addresses {
        let mut client = Client::new(*address).with_key(keys.last().expect("one"));
        until_status(&mut client, "/api/v1/search?q=solar", 200);
    }
    let run = Run {
        claims: keys.iter().map(|_| Mutex::default()).collect(),
        keys,
        nodes: addresses.to_vec(),
        acknowledged: Mutex::default(),
        reads: AtomicU64::new(0),
        failed_reads: Mutex::default(),
        stop: AtomicBool::new(false),
    };
    let balancer = balancer(&addresses);
    let mut kills: Vec<(Victim, Instant)> = Vec::new();
    thread::scope(|scope| {
        for writer in 0..3 {
            let run = &run;
            scope.spawn(move || run.write(writer));
        }
        for _ in 0..2 {
            let (run, address) = (&run, balancer.address());
            scope.spawn(move || run.read(address));
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(length as u64) {
            let at = rng.below(3);
            let victim = match nats.leader_of(STREAM) {
                _ if rng.below(2) == 0 => Victim::Node,
                Some(leader) if leader == at => Victim::StreamLeader,
                _ => Victim::OtherServer,
            };
            let pause = Duration::from_millis(500 + rng.below(4_000) as u64);
            let killed = match victim {
                Victim::Node => kill_node(&nodes[at], &mut servers[at], addresses[at], pause),
                _ => kill_server(&nats, at, pause),
            };
            kills.push((victim, killed));
            // The next kill comes 5 to 30 seconds after this one.
            let rest = runs::figure(3_000, 5_000) + rng.below(runs::figure(1_000, 21_000));
            thread::sleep(Duration::from_millis(rest as u64));
        }
        run.stop.store(true, Ordering::Relaxed);
    });
    nats.wait_until_healthy();
    for server in servers.iter().flatten() {
        wait::until(SOON, "it is ready", || server.client().get("/api/ready").status == 200);
    }
    nodes[0].compare();
    report(&run, &kills);
    let failed = run.failed_reads.lock().expect("no panic");
    assert!(
        failed.is_empty(),
        "{} reads failed: {:?}\n{}",
        failed.len(),
        failed[0],
        balancer.log()
    );
    for (key, claims) in run.keys.iter().zip(&run.claims) {
        let claims = claims.lock().expect("no panic");
        for server in servers.iter().flatten() {
            let mut found = BTreeMap::new();
            for (id, claim) in Shown::read(&mut server.client_with(key)).claims {
                let note = claim["userNotes"].as_str().expect("a note").to_owned();
                assert_eq!(found.insert(note.clone(), Some(id)), None, "{note} exists twice");
            }
            assert_eq!(found, *claims, "each claim once, with the id that was acknowledged");
        }
    }
}

/// Prints the gaps in acknowledgements after each kind of kill.
fn report(run: &Run, kills: &[(Victim, Instant)]) {
    let mut gaps: BTreeMap<Victim, Vec<Duration>> = BTreeMap::new();
    for (victim, killed) in kills {
        gaps.entry(*victim).or_default().push(run.gap_after(*killed));
    }
    let all: Vec<Duration> = gaps.values().flatten().copied().collect();
    runs::say(&format!("all kills: {}", figures(all)));
    for (victim, gaps) in gaps {
        runs::say(&format!("{victim:?}: {}", figures(gaps)));
    }
    let acknowledged = run.acknowledged.lock().expect("no panic").len();
    let reads = run.reads.load(Ordering::Relaxed);
    runs::say(&format!("{acknowledged} writes acknowledged, {reads} reads"));
    assert!(acknowledged > 20, "{acknowledged} writes");
}

fn figures(mut gaps: Vec<Duration>) -> String {
    gaps.sort_unstable();
    let at = |share: usize| gaps[(gaps.len() - 1) * share / 100];
    let over = gaps.iter().filter(|gap| **gap > Duration::from_secs(5)).count();
    format!(
        "{} times, no write for {:.1?} at the median, {:.1?} at the 90th percentile, {:.1?} at most; {over} above 5 s",
        gaps.len(),
        at(50),
        at(90),
        at(100)
    )
}
