//! Nodes of dropdex on three NATS servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::damage::copy;
use super::{SOON, create_stream_with};
use crate::common::ledger::Shown;
use crate::common::nats::Nats;
use crate::common::{Client, Finished, Response, Server, Site, TODAY, runs, wait};

const STREAM: &str = "dropdex";
pub(super) const EMAIL: &str = "owner@example.com";
/// Deadline of a halt. A node halts only after the stream was too short for half a minute.
const HALTED_SOON: Duration = Duration::from_secs(90);

/// An installation that is a node of a cluster.
pub(super) struct Node {
    pub(super) site: Site,
    settings: String,
}

impl Node {
    fn new(nats: &Nats, number: usize) -> Node {
        Node::on(&nats.urls(), number)
    }

    /// Creates a node that reaches the servers at these addresses.
    pub(super) fn on(urls: &[String], number: usize) -> Node {
        Node::with(urls, number, "")
    }

    /// As [`Node::on`], with more sections of settings.
    pub(super) fn with(urls: &[String], number: usize, more: &str) -> Node {
        Node::of(Site::with_a_name_of_each_kind(), urls, number, more)
    }

    /// As [`Node::with`], in an existing installation.
    pub(super) fn of(site: Site, urls: &[String], number: usize, more: &str) -> Node {
        let settings = site.settings(&format!(
            "node = \"node-{number}\"\n[cluster]\nservers = {}\n{more}",
            json!(urls),
        ));
        Node { site, settings }
    }

    pub(super) fn run(&self, args: &[&str]) -> Finished {
        self.site.run(&[args, &["--config", &self.settings]].concat())
    }

    pub(super) fn ok(&self, args: &[&str]) -> String {
        let finished = self.run(args);
        assert_eq!(finished.code, Some(0), "{finished}");
        finished.stdout
    }

    pub(super) fn serve(&self) -> Server {
        self.site.serve_with(&["--today", TODAY, "--config", &self.settings])
    }

    /// Starts a server with a stopped clock.
    fn serve_at(&self, time: &str) -> Server {
        let time: DateTime<Utc> = time.parse().expect("a time");
        let clock = self.site.write("clock", format!("{}\n", time.timestamp()));
        self.site.serve_by(&clock, &["--config", &self.settings])
    }

    pub(super) fn serve_on(&self, address: SocketAddr) -> Server {
        self.site.serve_on(address, &["--today", TODAY, "--config", &self.settings])
    }

    /// Compares the data of three nodes.
    pub(super) fn compare(&self) {
        self.ok(&["cluster", "compare"]);
    }
}

/// Three nodes on a new stream.
pub(super) fn three(nats: &Nats) -> [Node; 3] {
    let nodes = [0, 1, 2].map(|number| Node::new(nats, number));
    nodes[0].ok(&["cluster", "init"]);
    nodes
}

pub(super) fn ready(server: &Server) -> Value {
    server.client().get("/api/ready").json()
}

/// Sends the request until the response has this status.
#[track_caller]
pub(super) fn until_status(client: &mut Client, target: &str, status: u16) -> Value {
    wait::until_ok(SOON, || {
        let response = client.get(target);
        if response.status == status { Ok(response.json()) } else { Err(response.status) }
    })
}

pub(super) fn claim(name: &str) -> Value {
    json!({ "domain": name, "status": "attempted" })
}

pub(super) fn add_claim(client: &mut Client, name: &str) -> u64 {
    let response = client.send("POST", "/api/v1/portfolio", &claim(name));
    assert_eq!(response.status, 201, "{}", response.text());
    response.json()["id"].as_u64().expect("an id")
}

#[test]
fn all_nodes_return_what_a_client_wrote_on_one() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let servers = nodes.each_ref().map(Node::serve);
    nodes[0].ok(&["account", "add", EMAIL, "--plan", "api"]);
    let key = nodes[1].ok(&["account", "key", EMAIL]).trim().to_owned();
    let mut clients = servers.each_ref().map(|server| server.client_with(&key));
    // The other nodes receive the key.
    for client in &mut clients {
        until_status(client, "/api/v1/portfolio", 200);
    }
    let response = clients[0].send("POST", "/api/v1/portfolio", &claim("solar.com"));
    assert_eq!(response.status, 201, "{}", response.text());
    let first = response.json()["id"].as_u64().expect("an id");
    // Another node responds once it has reached the position.
    let position = response.header("x-log-position").expect("a position").to_owned();
    let shown = [("X-Log-Position", position.as_str())];
    let read = clients[1].request("GET", "/api/v1/portfolio", &shown).json();
    assert_eq!(read["claims"][0]["id"], first, "{read}");
    let far = [("X-Log-Position", "AAAAAAD___8")];
    let behind = clients[1].request("GET", "/api/v1/portfolio", &far);
    assert_eq!((behind.status, &behind.json()["code"]), (503, &json!("node_behind")));
    let other = [("X-Log-Position", "7")];
    assert_eq!(clients[1].request("GET", "/api/v1/portfolio", &other).status, 400);
    // A write waits until the node has the writes of other nodes.
    let second = add_claim(&mut clients[1], "solar.de");
    let target = format!("/api/v1/portfolio/{first}");
    let change = clients[2].send("PATCH", &target, &json!({ "userNotes": "from the third" }));
    assert_eq!(change.status, 200, "{}", change.text());
    let expected = Shown::read(&mut clients[2]).claims;
    assert_eq!(expected.len(), 2, "{expected:?}");
    for client in &mut clients {
        wait::until(SOON, "all nodes have the claims", || Shown::read(client).claims == expected);
    }
    nodes[2].compare();
    let status = nodes[0].ok(&["cluster", "status"]);
    let facts: Vec<Value> =
        status.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(facts.len(), 3, "{status}");
    for (fact, number) in facts.iter().zip(0..) {
        assert_eq!(fact["node"], format!("node-{number}"));
        assert_eq!(fact["caughtUp"], true, "{status}");
        assert_eq!(fact["chain"], facts[0]["chain"], "{status}");
    }
    // A node that was killed catches up.
    let [one, two, three] = servers;
    three.kill();
    let target = format!("/api/v1/portfolio/{second}");
    assert_eq!(clients[0].request("DELETE", &target, &[]).status, 200);
    let three = nodes[2].serve();
    wait::until(SOON, "the node caught up", || ready(&three)["checks"]["log"] == "ok");
    assert_eq!(Shown::read(&mut three.client_with(&key)).claims.len(), 1);
    nodes[0].compare();
    // A second node with the same name is refused.
    let namesake = Node::new(&nats, 0);
    namesake
        .run(&["serve", "--listen", "127.0.0.1:0"])
        .assert_failed(1, &["`node-0` is already running"]);
    // The journal of a node shows the records.
    two.stop();
    let dump = nodes[1].ok(&["journal", "dump"]);
    assert!(dump.contains("\"node\":\"node-0\"") && dump.contains("\"Removed\""), "{dump}");
    // A single node refuses the folder until `cluster leave` has been run.
    let alone = nodes[1].site.settings("");
    let refused = nodes[1].site.run(&["serve", "--listen", "127.0.0.1:0", "--config", &alone]);
    refused.assert_failed(1, &["node of a cluster", "dropdex cluster leave"]);
    let refused = nodes[1].site.run(&["account", "list", "--config", &alone]);
    refused.assert_failed(1, &["node of a cluster"]);
    nodes[1].site.ok(&["cluster", "leave", "--config", &alone]);
    let list = nodes[1].site.ok(&["account", "list", "--config", &alone]);
    assert!(list.contains(EMAIL), "{list}");
    drop((one, three));
}

/// Returns the position of the node that leads, as node `asked` sees it.
pub(super) fn leader(nodes: &[Node; 3], asked: usize) -> Option<usize> {
    let status = nodes[asked].run(&["cluster", "status"]).stdout;
    let facts = status.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut leaders = facts.filter(|fact| fact["leads"] == true);
    let leader = leaders.next()?["node"].as_str().expect("a name").to_owned();
    assert!(leaders.next().is_none(), "one node leads: {status}");
    leader.strip_prefix("node-").and_then(|number| number.parse().ok())
}

/// Waits until a node that meets the condition leads, as node `asked` sees it.
#[track_caller]
pub(super) fn until_leader(nodes: &[Node; 3], asked: usize, fits: impl Fn(usize) -> bool) -> usize {
    wait::until_ok(SOON, || leader(nodes, asked).filter(|&it| fits(it)).ok_or("no such leader"))
}

/// Adds an account and returns its key.
pub(super) fn key(node: &Node) -> String {
    node.ok(&["account", "add", EMAIL, "--plan", "api"]);
    node.ok(&["account", "key", EMAIL]).trim().to_owned()
}

#[test]
fn another_node_takes_the_lead_of_one_that_dies() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let mut servers = nodes.each_ref().map(|node| Some(node.serve()));
    let first = until_leader(&nodes, 0, |_| true);
    servers[first].take().expect("it runs").kill();
    let other = (first + 1) % 3;
    let begun = Instant::now();
    let second = until_leader(&nodes, other, |it| it != first);
    runs::say(&format!("the lead was taken {:?} after the leader was killed", begun.elapsed()));
    // A new leader has not sent its health yet when the others first see its term.
    thread::sleep(Duration::from_secs(3));
    let logs = servers.iter().flatten().map(Server::log);
    let taken: usize = logs.map(|log| log.matches("this node leads").count()).sum();
    assert!(taken < 5, "the lead changed {taken} times within seconds");
    // A node that stops releases the lead, and does not take it back when it restarts.
    servers[first] = Some(nodes[first].serve());
    servers[second].take().expect("it runs").stop();
    let third = until_leader(&nodes, first, |_| true);
    assert_ne!(third, second);
    // A node with `may_lead = false` does not take the lead either.
    let settings = "may_lead = false\n";
    let idle = Node::with(&nats.urls(), 7, settings);
    let idle_server = idle.serve();
    for server in servers.iter_mut().filter_map(Option::take) {
        server.kill();
    }
    thread::sleep(Duration::from_secs(8));
    let status: Value = serde_json::from_str(&idle.ok(&["cluster", "status"])).expect("one node");
    assert_eq!(status["leads"], false, "{status}");
    drop(idle_server);
}

/// Sends requests of one account from 64 clients to three nodes until all are refused, and kills one of
/// the nodes. Returns the number of granted requests, by the day in the response.
fn granted(clocks: Option<[&str; 3]>, limit: usize) -> BTreeMap<String, usize> {
    let nats = Nats::start(3);
    let nodes = [0, 1, 2].map(|number| {
        Node::with(&nats.urls(), number, &format!("[plans.api]\nrequests_per_day = {limit}\n"))
    });
    nodes[0].ok(&["cluster", "init"]);
    let start = |at: usize| match clocks {
        Some(clocks) => nodes[at].serve_at(clocks[at]),
        None => nodes[at].serve(),
    };
    let mut servers = [0, 1, 2].map(|at| Some(start(at)));
    let key = key(&nodes[0]);
    // A request whose key is refused is not counted.
    let granted = Mutex::new(BTreeMap::<String, usize>::new());
    let count = |response: &Response| {
        let day = response.header("x-ratelimit-reset").expect("a day").to_owned();
        *granted.lock().expect("no panic").entry(day).or_default() += 1;
    };
    for server in servers.iter().flatten() {
        let mut client = server.client_with(&key);
        let response = wait::until_ok(SOON, || {
            let response = client.get("/api/v1/tlds");
            if response.status == 200 { Ok(response) } else { Err(response.status) }
        });
        count(&response);
    }
    let refused = AtomicUsize::new(0);
    thread::scope(|scope| {
        for at in 0..64 {
            let address = servers[at % 3].as_ref().expect("it runs").address();
            let (key, count, refused) = (&key, &count, &refused);
            scope.spawn(move || {
                let mut client = Client::new(address).with_key(key);
                // Runs until the allowance is used up, or the node is killed.
                while let Ok(response) = client.try_request("GET", "/api/v1/tlds", &[]) {
                    match response.status {
                        200 => count(&response),
                        429 => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                        status => panic!("{status}: {}", response.text()),
                    };
                }
            });
        }
        while granted.lock().expect("no panic").values().sum::<usize>() < limit / 3 {
            thread::sleep(Duration::from_millis(5));
        }
        servers[2].take().expect("it runs").kill();
    });
    assert!(refused.into_inner() > 0, "{granted:?}");
    granted.into_inner().expect("no panic")
}

/// Asserts that no more than the allowance was granted, and at most a twentieth less.
fn assert_granted_once(granted: &BTreeMap<String, usize>, limit: usize) {
    let total: usize = granted.values().sum();
    runs::say(&format!("{granted:?} of {limit} granted"));
    assert!(total <= limit, "{granted:?} of {limit} granted");
    assert!(total >= limit - limit / 20, "{granted:?} of {limit} granted");
}

#[test]
fn nodes_together_grant_the_allowance_of_a_day_once() {
    assert_granted_once(&granted(None, 3_000), 3_000);
}

#[test]
fn clocks_that_differ_grant_no_more() {
    let clocks = ["2026-11-21T12:00:00Z", "2026-11-21T12:10:00Z", "2026-11-21T11:50:00Z"];
    assert_granted_once(&granted(Some(clocks), 3_000), 3_000);
    // One node is already in the next day, but no day's allowance is granted twice.
    let clocks = ["2026-11-21T23:55:00Z", "2026-11-22T00:05:00Z", "2026-11-21T23:59:00Z"];
    let granted = granted(Some(clocks), 3_000);
    runs::say(&format!("{granted:?} of 3000 a day granted"));
    assert!(granted.values().all(|it| *it <= 3_000), "{granted:?}");
    assert!(granted.values().sum::<usize>() >= 3_000 - 150, "{granted:?}");
}

#[test]
fn nodes_halt_when_the_stream_has_lost_records() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let servers = nodes.each_ref().map(Node::serve);
    nodes[0].ok(&["account", "add", EMAIL, "--plan", "api"]);
    nodes[0].compare();
    let old = tempfile::tempdir().expect("a folder");
    let all = [0, 1, 2];
    all.iter().for_each(|&server| nats.kill(server));
    for server in all {
        copy(&nats.store_dir(server), &old.path().join(server.to_string()));
        nats.start_again(server);
    }
    nats.wait_until_healthy();
    wait::until(SOON, "written again", || {
        nodes[0].run(&["account", "set-plan", EMAIL, "pro"]).code == Some(0)
    });
    nodes[1].compare();
    all.iter().for_each(|&server| nats.kill(server));
    for server in all {
        std::fs::remove_dir_all(nats.store_dir(server)).expect("removed");
        copy(&old.path().join(server.to_string()), &nats.store_dir(server));
        nats.start_again(server);
    }
    nats.wait_until_healthy();
    for (node, server) in nodes.iter().zip(&servers) {
        let mut client = server.client();
        let ready = wait::until_ok(HALTED_SOON, || {
            let ready = client.get("/api/ready");
            if ready.json()["checks"]["log"] == "halted" { Ok(ready) } else { Err("not halted") }
        });
        assert_eq!((ready.status, &ready.json()["checks"]["database"]), (503, &json!("halted")));
        assert_eq!(
            server.client().get("/api/ready/reads").status,
            200,
            "a balancer keeps it for reads"
        );
        let page = server.client().get("/status");
        assert!(page.text().contains("dropdex cluster restore"), "{}", page.text());
        // Reads continue, and show all writes.
        assert_eq!(client.get("/api/health").status, 200);
        assert!(node.ok(&["account", "list"]).contains("pro"));
        let refused = node.run(&["account", "set-plan", EMAIL, "api"]);
        refused.assert_failed(1, &["differ", "lost records"]);
    }
}

#[test]
fn nodes_without_a_majority_serve_reads() {
    let nats = Nats::start(3);
    let metrics = "[metrics]\nlisten = \"127.0.0.1:0\"\n";
    let nodes = [0, 1, 2].map(|number| Node::with(&nats.urls(), number, metrics));
    nodes[0].ok(&["cluster", "init"]);
    let servers = nodes.each_ref().map(Node::serve);
    let key = key(&nodes[0]);
    let mut clients = servers.each_ref().map(|server| server.client_with(&key));
    for client in &mut clients {
        until_status(client, "/api/v1/portfolio", 200);
    }
    nats.kill(1);
    nats.kill(2);
    for (server, client) in servers.iter().zip(&mut clients) {
        wait::until(SOON, "cut off", || ready(server)["checks"]["log"] == "cut_off");
        assert_eq!(server.client().get("/api/ready").status, 200);
        assert_eq!(client.get("/api/v1/portfolio").status, 200);
        let refused = client.send("POST", "/api/v1/portfolio", &claim("solar.com"));
        assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("writes_unavailable")));
        assert_eq!(server.client().get("/api/ready/reads").status, 200);
    }
    // Every report to operators shows the condition.
    let client = || servers[0].client();
    wait::until(SOON, "the status page", || {
        client().get("/status").text().contains("shared log of the cluster cannot be written")
    });
    wait::until(SOON, "the metric", || {
        let metrics = servers[0].metrics().get("/metrics");
        ["dropdex_journal_writable 0", "dropdex_cluster_cut_off 1"]
            .iter()
            .all(|it| metrics.text().contains(it))
    });
    let status = nodes[0].run(&["cluster", "status"]);
    status.assert_failed(1, &["writes are refused", "`node-0` cannot write"]);
    // The state does not flap.
    for server in servers.iter().cycle().take(30) {
        assert_eq!(ready(server)["checks"]["log"], "cut_off");
        thread::sleep(Duration::from_millis(100));
    }
    nats.start_again(1);
    nats.start_again(2);
    for server in &servers {
        wait::until(SOON, "reachable again", || ready(server)["checks"]["log"] == "ok");
    }
    add_claim(&mut clients[1], "solar.com");
    nodes[0].compare();
}

#[test]
fn a_stream_that_may_lose_records_is_refused() {
    let nats = Nats::start(3);
    let node = Node::new(&nats, 0);
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    node.run(&serve).assert_failed(1, &["no stream `dropdex`", "cluster init"]);
    let config = json!({
        "name": STREAM, "subjects": [format!("{STREAM}.log")], "num_replicas": 1, "deny_delete": true,
        "deny_purge": true, "discard": "new", "storage": "file",
    });
    create_stream_with(nats.address(0), STREAM, &config);
    node.run(&serve).assert_failed(1, &["`num_replicas` 1", "3 is needed"]);
    node.run(&["cluster", "init"]).assert_failed(1, &["`num_replicas` 1"]);
}

#[test]
fn a_node_with_a_wrong_clock_does_not_move_the_day() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let right = "2026-11-21T12:00:00Z";
    let [one, two] = [0, 1].map(|at| nodes[at].serve_at(right));
    let key = key(&nodes[0]);
    let reset_at = |server: &Server| {
        let mut client = server.client_with(&key);
        let response = wait::until_ok(SOON, || {
            let response = client.get("/api/v1/tlds");
            if response.status == 200 { Ok(response) } else { Err(response.text().to_owned()) }
        });
        response.number("x-ratelimit-reset").and_then(|at| DateTime::from_timestamp(at, 0))
    };
    let today: DateTime<Utc> = "2026-11-22T00:00:00Z".parse().expect("a time");
    assert_eq!(reset_at(&one), Some(today));
    for wrong in [
        "2027-12-26T12:00:00Z",
        "2026-11-23T12:00:00Z",
        "2164-01-01T00:00:00Z",
        "1970-01-01T00:00:01Z",
    ] {
        let begun = Instant::now();
        let three = nodes[2].serve_at(wrong);
        wait::until(SOON, "its clock is not trusted", || {
            ready(&three)["checks"]["clock"] == "untrusted"
                && ready(&three)["checks"]["log"] == "ok"
        });
        runs::say(&format!("{wrong}: not trusted {:?} after the start", begun.elapsed()));
        assert_eq!(three.client().get("/api/ready").status, 503);
        assert_eq!(three.client().get("/api/ready/reads").status, 200);
        // The node serves requests with the day of the other nodes.
        assert_eq!(reset_at(&three), Some(today), "{wrong}");
        add_claim(&mut three.client_with(&key), "solar.com");
        let status = nodes[0].run(&["cluster", "status"]);
        status.assert_failed(1, &["the clock of the node `node-2` is wrong"]);
        three.kill();
        for server in [&one, &two] {
            assert_eq!(reset_at(server), Some(today), "{wrong}");
            assert_eq!(server.client().get("/api/ready").status, 200);
        }
    }
    // The clock is corrected.
    let three = nodes[2].serve_at(right);
    until_status(&mut three.client(), "/api/ready", 200);
    assert_eq!(reset_at(&three), Some(today));
    nodes[0].compare();
}

/// Waits until a node reports that it cannot reach the log; asserts that it is never ready before that.
fn until_cut_off(server: &Server, target: &str) -> Response {
    let mut last = None;
    wait::until(SOON, "the node is cut off", || {
        let response = server.client().get(target);
        assert_eq!(response.status, 503, "{}", response.text());
        let is_cut_off = response.json()["checks"]["log"] == "cut_off";
        last = Some(response);
        is_cut_off
    });
    last.expect("a response")
}

#[test]
fn a_node_that_has_not_read_the_log_is_not_ready() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let server = nodes[0].serve();
    let key = key(&nodes[0]);
    until_status(&mut server.client_with(&key), "/api/v1/portfolio", 200);
    assert_eq!(ready(&server)["dataAge"], 0);
    // A new node with wrong addresses has no keys, and does not report a key as invalid.
    let lost = Node::on(&["nats://127.0.0.1:9".to_owned()], 7);
    let stray = lost.serve();
    for target in ["/api/ready", "/api/ready/reads"] {
        until_cut_off(&stray, target);
    }
    let refused = stray.client_with(&key).get("/api/v1/portfolio");
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("node_behind")));
    let feed = format!("/feeds/{}.atom", "0".repeat(64));
    assert_eq!(stray.client().get(&feed).status, 503, "nor that there is no such feed");
    // A node that has read the log before serves its data, but is not ready either.
    server.stop();
    for at in [0, 1, 2] {
        nats.kill(at);
    }
    let server = nodes[0].serve();
    let response = until_cut_off(&server, "/api/ready");
    assert!(response.json()["dataAge"].is_u64(), "{}", response.text());
    assert_eq!(server.client_with(&key).get("/api/v1/portfolio").status, 200);
    for at in [0, 1, 2] {
        nats.start_again(at);
    }
    nats.wait_until_healthy();
    until_status(&mut server.client(), "/api/ready", 200);
    until_status(&mut server.client(), "/api/ready/reads", 200);
}

#[test]
fn a_node_that_leaves_reads_the_rest_first() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let [one, two] = [0, 1].map(|at| nodes[at].serve());
    let key = key(&nodes[0]);
    until_status(&mut two.client_with(&key), "/api/v1/portfolio", 200);
    let running = nodes[1].run(&["cluster", "leave"]);
    running.assert_failed(1, &["`node-1` is already running"]);
    two.stop();
    // This write is acknowledged while the second node is stopped.
    add_claim(&mut one.client_with(&key), "solar.com");
    one.stop();
    let left: Value = serde_json::from_str(&nodes[1].ok(&["cluster", "leave"])).expect("JSON");
    assert_eq!(left["left"], true);
    assert!(left["position"].as_u64().is_some_and(|it| it > 0), "{left}");
    let alone = nodes[1].site.settings("");
    let server = nodes[1].site.serve_with(&["--today", TODAY, "--config", &alone]);
    assert_eq!(Shown::read(&mut server.client_with(&key)).claims.len(), 1);
    // Without the servers, the command refuses.
    for at in [0, 1, 2] {
        nats.kill(at);
    }
    let refused = nodes[0].run(&["cluster", "leave"]);
    refused.assert_failed(1, &["may lose acknowledged writes", "--i-accept-loss"]);
    nodes[0].ok(&["cluster", "leave", "--i-accept-loss"]);
}

#[test]
fn status_names_missing_nodes_and_servers() {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let servers = nodes.each_ref().map(Node::serve);
    until_leader(&nodes, 0, |_| true);
    let [one, two, three] = servers;
    // Each node gets a heartbeat of the others once a second.
    wait::until(SOON, "all answer", || {
        nodes[0].run(&["cluster", "status"]).stdout.lines().count() == 3
    });
    thread::sleep(Duration::from_secs(2));
    three.kill();
    nats.kill(2);
    let status = wait::until_ok(SOON, || {
        let status = nodes[0].run(&["cluster", "status"]);
        let says = |text: &str| status.stderr.contains(text);
        let all = ["`node-2` does not respond", "2 of 3 nodes answered", "the NATS server n3 "]
            .into_iter()
            .all(says);
        if all { Ok(status.code) } else { Err(status.to_string()) }
    });
    assert_eq!(status, Some(0), "writes go on");
    drop((one, two));
}

#[test]
fn an_invalid_node_name_is_refused() {
    for name in ["a b.c*", "", "n\n", "é", "a/b", ">"] {
        let site = Site::with_a_name_of_each_kind();
        let settings =
            format!("node = {}\n[cluster]\nservers = [\"nats://127.0.0.1:9\"]\n", json!(name));
        let config = site.settings(&settings);
        site.run(&["serve", "--config", &config]).assert_failed(10, &["node"]);
    }
}

#[test]
fn init_without_servers_explains_what_to_check() {
    let nats = Nats::start(3);
    nats.kill(1);
    nats.kill(2);
    let node = Node::new(&nats, 0);
    node.run(&["cluster", "init"]).assert_failed(1, &["`jetstream`", "`routes`"]);
}
