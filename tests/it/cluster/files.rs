//! Lists, index and log of changes of a cluster: the leader publishes them, and all nodes serve the
//! same files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::SOON;
use super::nodes::{Node, key, leader, until_leader, until_status};
use crate::common::nats::Nats;
use crate::common::{Client, Server, Site, runs, wait};

/// Deadline of files on a node. A node that was just started may have to fetch them.
pub(super) const FETCHED_SOON: Duration = Duration::from_secs(60);
/// The position before all records.
const START: &str = "AAAAAAAAAAA";

/// Creates three nodes with these sections of settings. Only the first node has a list.
pub(super) fn one_with_lists(nats: &Nats, more: &str) -> [Node; 3] {
    let nodes = [0, 1, 2].map(|number| {
        let site = if number == 0 { Site::with_a_name_of_each_kind() } else { Site::new() };
        let plan = "[plans.api]\nrequests_per_day = 100000000\n";
        Node::of(site, &nats.urls(), number, &format!("{more}{plan}"))
    });
    nodes[0].ok(&["cluster", "init"]);
    nodes
}

/// Ingests a list of one name on a node.
pub(super) fn ingest(node: &Node, name: &str) {
    let list = format!("domain,drop_date\n{name},2026-03-14\n");
    let list = node.site.write(&format!("{name}.csv"), list);
    node.ok(&["ingest", list.to_str().expect("UTF-8")]);
}

/// Returns the names of the drop list whose label contains a text, and `total` of the response.
fn drops(client: &mut Client, text: &str) -> Option<(Vec<String>, u64)> {
    let response = client.get(&format!("/api/v1/drops?q={text}&view=all&limit=100"));
    (response.status == 200).then(|| names(&response.json()))
}

fn names(page: &Value) -> (Vec<String>, u64) {
    let rows = page["drops"].as_array().expect("rows");
    let names = rows.iter().map(|row| row["name"].as_str().expect("a name").to_owned());
    (names.collect(), page["total"].as_u64().expect("a total"))
}

pub(super) fn until_it_has(client: &mut Client, text: &str, count: usize) {
    wait::until(FETCHED_SOON, "the node serves the list", || {
        drops(client, text).is_some_and(|(names, _)| names.len() == count)
    });
}

#[test]
fn all_nodes_serve_the_files_of_the_leader() {
    let nats = Nats::start(3);
    let nodes = one_with_lists(&nats, "");
    let first = nodes[0].serve();
    until_leader(&nodes, 0, |it| it == 0);
    let mut servers = [Some(first), Some(nodes[1].serve()), Some(nodes[2].serve())];
    let key = key(&nodes[0]);
    let client = |server: &Option<Server>| server.as_ref().expect("it runs").client_with(&key);
    for server in &servers {
        until_it_has(&mut client(server), "solar", 2);
    }
    let refused = nodes[1].run(&["ingest", "/dev/null"]);
    refused.assert_failed(1, &["`node-0` does the work on lists"]);
    ingest(&nodes[0], "fresh-one.com");
    for server in &servers {
        until_it_has(&mut client(server), "fresh", 1);
    }
    // Events have the same numbers on all nodes.
    let changes =
        |server: &Option<Server>| client(server).get("/api/v1/changes?since=0").text().to_owned();
    let theirs = wait::until_ok(SOON, || {
        let text = changes(&servers[0]);
        if text.contains("fresh-one.com") { Ok(text) } else { Err("no event") }
    });
    for server in &servers[1..] {
        wait::until(SOON, "the same events", || changes(server) == theirs);
    }
    // Another node takes over with the published files, and the first one catches up.
    servers[0].take().expect("it runs").kill();
    // On a busy machine, the lead may move again.
    let second = wait::until_ok(2 * FETCHED_SOON, || {
        let second =
            leader(&nodes, 1).filter(|&it| it != 0).ok_or_else(|| "no leader".to_owned())?;
        let list =
            nodes[second].site.write("second.csv", "domain,drop_date\nfresh-two.com,2026-03-14\n");
        let ingest = nodes[second].run(&["ingest", list.to_str().expect("UTF-8")]);
        if ingest.code == Some(0) { Ok(second) } else { Err(ingest.stderr) }
    });
    servers[0] = Some(nodes[0].serve());
    for server in &servers {
        until_it_has(&mut client(server), "fresh", 2);
        until_it_has(&mut client(server), "solar", 2);
    }
    let newest = changes(&servers[second]);
    for server in &servers {
        wait::until(SOON, "the same events", || changes(server) == changes(&servers[second]));
    }
    assert!(newest.contains("fresh-one.com"), "{newest}");
    // A node with deleted files fetches them again.
    servers[1].take().expect("it runs").stop();
    std::fs::remove_dir_all(nodes[1].site.index()).expect("removed");
    std::fs::remove_dir_all(nodes[1].site.data().join("corpus")).expect("removed");
    std::fs::create_dir(nodes[1].site.index()).expect("made");
    servers[1] = Some(nodes[1].serve());
    until_it_has(&mut client(&servers[1]), "fresh", 2);
    nodes[1].compare();
}

/// The number of names in the responses at each position.
type Read = Mutex<BTreeMap<String, u64>>;

/// Reads from one node until stopped, each time from the newest position that any reader has received.
fn read(
    address: std::net::SocketAddr,
    key: &str,
    read: &Read,
    stop: &AtomicBool,
    count: &AtomicU64,
) {
    let mut client = Client::new(address).with_key(key);
    let mut position = START.to_owned();
    while !stop.load(Ordering::Relaxed) {
        let shown = [("X-Log-Position", position.as_str())];
        let response = client.request("GET", "/api/v1/drops?q=switch&view=all&limit=500", &shown);
        if response.status == 503 {
            thread::sleep(Duration::from_millis(2));
            continue;
        }
        assert_eq!(response.status, 200, "{}", response.text());
        let (names, total) = names(&response.json());
        assert_eq!(names.len() as u64, total, "one index responds");
        let told = response.header("x-log-position").expect("a position").to_owned();
        let mut read = read.lock().expect("no panic");
        let known = *read.entry(told.clone()).or_insert(total);
        assert_eq!(known, total, "two results at {told}");
        position = told;
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn all_nodes_switch_at_one_position() {
    let (switches, requests) = (runs::figure(3, 100), runs::figure(0, 1_000_000) as u64);
    let nats = Nats::start(3);
    let nodes = one_with_lists(&nats, "");
    let servers = nodes.each_ref().map(Node::serve);
    let key = key(&nodes[0]);
    for server in &servers {
        until_status(&mut server.client_with(&key), "/api/v1/drops", 200);
        until_it_has(&mut server.client_with(&key), "solar", 2);
    }
    let leader = until_leader(&nodes, 0, |_| true);
    let (seen, stop, count) = (Read::default(), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for server in &servers {
            for _ in 0..2 {
                let (address, key) = (server.address(), &key);
                let (seen, stop, count) = (&seen, &stop, &count);
                scope.spawn(move || read(address, key, seen, stop, count));
            }
        }
        let mut writer = servers[0].client_with(&key);
        for number in 1..=switches {
            ingest(&nodes[leader], &format!("switch-{number}.com"));
            // Each ingest is one switch of the index.
            until_it_has(&mut writer, "switch", number.min(100));
            // A record between two switches.
            writer.send("POST", "/api/v1/portfolio", &super::nodes::claim("solar.com"));
        }
        for server in &servers {
            until_it_has(&mut server.client_with(&key), "switch", switches.min(100));
        }
        while count.load(Ordering::Relaxed) < requests {
            thread::sleep(Duration::from_millis(100));
        }
        stop.store(true, Ordering::Relaxed);
    });
    // As texts, positions sort like their numbers, because all have the same length.
    let mut before = 0;
    let seen = seen.into_inner().expect("no panic");
    let mut decoded: Vec<(u64, u64)> =
        seen.iter().map(|(text, total)| (number(text), *total)).collect();
    decoded.sort_unstable();
    for (position, total) in decoded {
        assert!(total >= before, "{total} names at {position}, {before} before");
        before = total;
    }
    assert_eq!(before, switches as u64);
    let (count, positions) = (count.into_inner(), seen.len());
    let indexes: BTreeSet<u64> = seen.into_values().collect();
    runs::say(&format!(
        "{count} reads of {} indexes at {positions} positions over {switches} switches",
        indexes.len()
    ));
}

/// Decodes the number in a position.
fn number(position: &str) -> u64 {
    use base64::Engine;
    let bytes =
        base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(position).expect("a position");
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}
