//! Histories of users while links are cut, and while nodes and servers stop. A single server could
//! have produced each history.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::SOON;
use super::kills::{kill_node, kill_server};
use super::nodes::{Node, claim};
use crate::common::linear::{Event, Op, is_linearizable};
use crate::common::nats::Nats;
use crate::common::nginx::free_address;
use crate::common::proxy::Proxy;
use crate::common::rng::Rng;
use crate::common::{Client, Server, runs, wait};

/// Each user has a client at each node.
const USERS: usize = 3;
/// Length of a history.
const ROUND: Duration = Duration::from_secs(15);

/// Error codes of writes that were not carried out.
const NOTHING_WRITTEN: [&str; 4] = ["superseded", "writes_unavailable", "busy", "node_behind"];

/// A user with one claim, whose notes are the register.
struct User {
    key: String,
    claim: u64,
    /// The latest position of the log that any client of the user has seen.
    position: Mutex<String>,
    history: Mutex<Vec<Event>>,
}

impl User {
    fn new(node: &Node, address: SocketAddr, number: usize) -> User {
        let email = format!("user-{number}@example.com");
        // The servers may still be electing a leader.
        let done = |args: &[&str]| {
            wait::until_ok(SOON, || {
                let finished = node.run(args);
                let is_done = finished.code == Some(0) || finished.stderr.contains("already");
                if is_done { Ok(finished.stdout) } else { Err(finished.to_string()) }
            })
        };
        done(&["account", "add", &email, "--plan", "api"]);
        let key = done(&["account", "key", &email]).trim().to_owned();
        let mut client = Client::new(address).with_key(&key);
        let mut body = claim("solar.com");
        body["userNotes"] = json!("0");
        let response = wait::until_ok(SOON, || {
            let response = client.send("POST", "/api/v1/portfolio", &body);
            if response.status == 201 { Ok(response) } else { Err(response.text().to_owned()) }
        });
        let position = response.header("x-log-position").expect("a position").to_owned();
        User {
            key,
            claim: response.json()["id"].as_u64().expect("an id"),
            position: Mutex::new(position),
            history: Mutex::default(),
        }
    }

    fn position(&self) -> String {
        self.position.lock().expect("no panic").clone()
    }

    /// Reads or writes until stopped.
    fn act(
        &self,
        address: SocketAddr,
        values: &AtomicU64,
        began: Instant,
        stop: &AtomicBool,
        seed: u64,
    ) {
        let (mut client, mut rng) = (Client::new(address).with_key(&self.key), Rng::new(seed));
        let now = || began.elapsed().as_nanos() as u64;
        while !stop.load(Ordering::Relaxed) {
            let write = rng.below(2) == 0;
            let value = values.fetch_add(1, Ordering::Relaxed);
            // The time is taken before the position, because this read need not see later writes of
            // other clients.
            let begin = now();
            let position = self.position();
            let headers =
                [("X-Log-Position", position.as_str()), ("Content-Type", "application/json")];
            let sent = if write {
                let body = json!({ "userNotes": value.to_string() }).to_string();
                let target = format!("/api/v1/portfolio/{}", self.claim);
                client.try_send("PATCH", &target, &headers, body.as_bytes())
            } else {
                client.try_request("GET", "/api/v1/portfolio", &headers)
            };
            let event = match sent {
                Ok(response) if response.status == 200 => {
                    // The position is shared before the response is recorded.
                    let position = response.header("x-log-position").expect("a position");
                    self.keep_latest(position);
                    let body = response.json();
                    let op = if write { Op::Write(value) } else { Op::Read(note(&body)) };
                    Some(Event { op, begin, end: Some(now()) })
                }
                // A node that was just started does not know the key.
                Ok(response) if response.status == 401 => None,
                Ok(response) => {
                    assert_eq!(response.status, 503, "{}", response.text());
                    let body = response.json();
                    let is_certain = NOTHING_WRITTEN.iter().any(|code| body["code"] == *code);
                    (write && !is_certain).then_some(Event {
                        op: Op::Write(value),
                        begin,
                        end: None,
                    })
                }
                Err(_) => write.then_some(Event { op: Op::Write(value), begin, end: None }),
            };
            self.history.lock().expect("no panic").extend(event);
            // The number of operations is small enough for the checker.
            thread::sleep(Duration::from_millis(5 + rng.below(20) as u64));
        }
    }

    /// Clients of one user share the latest position that any of them has seen.
    fn keep_latest(&self, position: &str) {
        let mut latest = self.position.lock().expect("no panic");
        if number(position) > number(&latest) {
            *latest = position.to_owned();
        }
    }
}

/// Decodes a position, which is opaque to clients.
fn number(position: &str) -> u64 {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(position).expect("base64");
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

fn note(body: &Value) -> u64 {
    let note = body["claims"][0]["userNotes"].as_str().expect("a note");
    note.parse().expect("a number")
}

/// Three nodes, each with links of its own to three servers.
struct World {
    nats: Nats,
    links: Vec<Vec<Proxy>>,
    nodes: Vec<Node>,
    addresses: Vec<SocketAddr>,
    servers: Vec<Option<Server>>,
}

impl World {
    fn new() -> World {
        let nats = Nats::start(3);
        let links = || (0..3).map(|server| Proxy::to(nats.address(server))).collect();
        let links: Vec<Vec<Proxy>> = (0..3).map(|_| links()).collect();
        let nodes: Vec<Node> = links
            .iter()
            .enumerate()
            .map(|(number, links)| {
                let urls = links.iter().map(|link| format!("nats://{}", link.address()));
                let more = "[plans.api]\nrequests_per_day = 1000000\nwrites_per_minute = 100000\n";
                Node::with(&urls.collect::<Vec<_>>(), number, more)
            })
            .collect();
        nodes[0].ok(&["cluster", "init"]);
        let addresses: Vec<SocketAddr> = nodes.iter().map(|_| free_address()).collect();
        let served = nodes.iter().zip(&addresses);
        let servers = served.map(|(node, address)| Some(node.serve_on(*address))).collect();
        World { nats, links, nodes, addresses, servers }
    }

    /// Cuts links for a moment, or stops or kills a node or a server.
    fn disturb(&mut self, rng: &mut Rng) {
        let World { nats, links, nodes, addresses, servers } = self;
        let pause = Duration::from_millis(200 + rng.below(2_000) as u64);
        let victim = rng.below(3);
        match rng.below(6) {
            // Isolates one node.
            0 => {
                links[victim].iter().for_each(Proxy::cut);
                thread::sleep(pause);
                links[victim].iter().for_each(Proxy::heal);
            }
            // Cuts one link of each node.
            1 => {
                links.iter().for_each(|links| links[victim].cut());
                thread::sleep(pause);
                links.iter().for_each(|links| links[victim].heal());
            }
            2 => {
                let server = servers[victim].as_ref().expect("it runs");
                server.signal("STOP");
                thread::sleep(pause);
                server.signal("CONT");
            }
            3 => {
                nats.stop(victim);
                thread::sleep(pause);
                nats.resume(victim);
            }
            4 => {
                kill_node(&nodes[victim], &mut servers[victim], addresses[victim], pause);
            }
            _ => {
                kill_server(nats, victim, pause);
            }
        }
    }

    /// Lets users act during a disturbance, and checks the history of each. Returns the number of
    /// responses. A round is short, because writes with an unknown outcome make the check of a long
    /// history slow.
    fn round(&mut self, round: usize, rng: &mut Rng, values: &AtomicU64) -> usize {
        let users: Vec<User> = (0..USERS)
            .map(|user| User::new(&self.nodes[0], self.addresses[0], round * USERS + user))
            .collect();
        let seed = rng.below(usize::MAX) as u64;
        let (stop, began) = (AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            for (at, user) in users.iter().enumerate() {
                for (client, &address) in self.addresses.iter().enumerate() {
                    let stop = &stop;
                    let seed = seed.wrapping_add((at * self.addresses.len() + client) as u64 + 1);
                    scope.spawn(move || user.act(address, values, began, stop, seed));
                }
            }
            while began.elapsed() < ROUND {
                thread::sleep(Duration::from_millis(300));
                self.disturb(rng);
            }
            stop.store(true, Ordering::Relaxed);
        });
        self.nats.wait_until_healthy();
        let mut answered = 0;
        for user in users {
            let history = user.history.into_inner().expect("no panic");
            answered += history.iter().filter(|event| event.end.is_some()).count();
            assert!(is_linearizable(0, &history), "round {round}: {history:?}");
        }
        answered
    }
}

#[test]
fn each_user_sees_one_history() {
    let seed = runs::seed();
    let (mut rng, values, mut world) = (Rng::new(seed), AtomicU64::new(1), World::new());
    let (mut rounds, mut answered) = (0, 0);
    let (begun, length) = (Instant::now(), runs::figure(1, 3_600) as u64);
    while begun.elapsed() < Duration::from_secs(length) {
        answered += world.round(rounds, &mut rng, &values);
        rounds += 1;
    }
    assert!(answered > 150 * rounds, "{answered} responses");
    world.nodes[0].compare();
    let minutes = begun.elapsed().as_secs() / 60;
    runs::say(&format!(
        "{answered} answers in {rounds} histories of three users, {minutes} minutes"
    ));
}
