//! Damaged files of the stream on some servers: nodes agree, or halt. Two nodes never continue with
//! different data.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::SOON;
use super::nodes::{Node, key, three, until_status};
use crate::common::ledger::Shown;
use crate::common::nats::Nats;
use crate::common::rng::Rng;
use crate::common::{Client, Server, runs, wait};

const STREAM: &str = "dropdex";
/// Time for which writes are retried after the damage: servers may have to elect a leader, or may never
/// agree again.
const WRITES_WAIT: Duration = Duration::from_secs(12);
/// Time until the cluster is stable: a node halts when the stream has been too short for half a
/// minute.
const SETTLED: Duration = Duration::from_secs(40);

/// Damage to the files of a server while it is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// One bit of a block of records is flipped.
    RecordBit,
    /// A block of records is truncated.
    RecordCut,
    /// One bit of the servers' Raft log is flipped.
    RaftBit,
    /// The Raft log is truncated.
    RaftCut,
    /// The index of the stream is removed.
    Index,
    /// All files are rolled back to an earlier state.
    RolledBack,
    /// All files are removed.
    Gone,
}

const KINDS: [Damage; 7] = [
    Damage::RecordBit,
    Damage::RecordCut,
    Damage::RaftBit,
    Damage::RaftCut,
    Damage::Index,
    Damage::RolledBack,
    Damage::Gone,
];

impl Damage {
    fn apply(self, store: &Path, old: &Path, rng: &mut Rng) {
        let is_of_stream = |path: &Path| path.to_string_lossy().contains("/$G/streams/dropdex/");
        let is_block = |path: &Path| path.extension().is_some_and(|it| it == "blk");
        let files = files_in(store);
        let pick = |rng: &mut Rng, fits: &dyn Fn(&Path) -> bool| {
            let found: Vec<&PathBuf> = files.iter().filter(|it| fits(it) && len(it) > 0).collect();
            (!found.is_empty()).then(|| (*rng.pick(&found)).clone())
        };
        let file = match self {
            Damage::RolledBack | Damage::Gone => None,
            Damage::RecordBit | Damage::RecordCut => {
                pick(rng, &|path| is_of_stream(path) && is_block(path))
            }
            Damage::RaftBit | Damage::RaftCut => {
                pick(rng, &|path| path.to_string_lossy().contains("/$SYS/") && is_block(path))
            }
            Damage::Index => pick(rng, &|path| is_of_stream(path) && path.ends_with("index.db")),
        };
        match (self, file) {
            (Damage::RolledBack, _) => {
                fs::remove_dir_all(store).expect("removed");
                copy(old, store);
            }
            (Damage::Gone, _) => fs::remove_dir_all(store).expect("removed"),
            (Damage::RecordCut | Damage::RaftCut, Some(file)) => {
                let cut = rng.below(len(&file) as usize) as u64;
                let file = fs::File::options().write(true).open(file).expect("opened");
                file.set_len(cut).expect("cut");
            }
            (_, Some(file)) => {
                let mut bytes = fs::read(&file).expect("read");
                let at = rng.below(bytes.len());
                bytes[at] ^= 1 << rng.below(8);
                fs::write(file, bytes).expect("written");
            }
            // At times, the servers keep this data only in memory.
            (_, None) => {}
        }
    }
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |facts| facts.len())
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// Copies a folder.
pub(super) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(copied.success());
}

/// Notes of claims, with their ids once they are acknowledged.
type Claims = BTreeMap<String, Option<u64>>;

/// Adds claims through the nodes in turn until `wanted` are acknowledged or `wait` is over. Returns the number that
/// was acknowledged.
fn write(clients: &mut [Client], claims: &mut Claims, wanted: usize, wait: Duration) -> usize {
    let (begun, mut done) = (Instant::now(), 0);
    while done < wanted && begun.elapsed() < wait {
        let note = claims.len().to_string();
        claims.insert(note.clone(), None);
        let claim = json!({ "domain": "solar.com", "status": "attempted", "userNotes": note });
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", note.as_str())];
        let at = claims.len() % clients.len();
        let body = claim.to_string();
        match clients[at].try_send("POST", "/api/v1/portfolio", &headers, body.as_bytes()) {
            Ok(response) if response.status == 201 => {
                claims.insert(note, response.json()["id"].as_u64());
                done += 1;
            }
            _ => thread::sleep(Duration::from_millis(100)),
        }
    }
    done
}

fn log_of(address: SocketAddr) -> String {
    let ready = Client::new(address).get("/api/ready").json();
    ready["checks"]["log"].as_str().unwrap_or_default().to_owned()
}

/// Checks that all nodes that still serve requests have all acknowledged claims, and that no two
/// nodes differ. `Err` means not yet.
fn check(servers: &[Server], key: &str, claims: &Claims) -> Result<String, String> {
    let states: Vec<String> = servers.iter().map(|it| log_of(it.address())).collect();
    let shown: Vec<BTreeMap<u64, Value>> = servers
        .iter()
        .map(|server| Shown::read(&mut server.client_with(key)).claims.into_iter().collect())
        .collect();
    for (state, shown) in states.iter().zip(&shown) {
        for (id, claim) in shown {
            let note = claim["userNotes"].as_str().expect("a note");
            let known = claims.get(note).unwrap_or_else(|| panic!("{note} was never sent"));
            assert!(known.is_none_or(|known| known == *id), "{note} has another id");
        }
        if state == "ok" {
            for (note, id) in claims.iter().filter_map(|(note, id)| Some((note, (*id)?))) {
                if !shown.contains_key(&id) {
                    return Err(format!("{note} was acknowledged and is lost: {states:?}"));
                }
            }
        }
    }
    let ok: Vec<_> = states.iter().zip(&shown).filter(|(state, _)| *state == "ok").collect();
    let differ = ok.windows(2).any(|two| two[0].1 != two[1].1);
    if differ { Err(format!("nodes differ: {states:?}")) } else { Ok(states.join(", ")) }
}

/// Runs one cluster whose files are damaged once.
fn round(damage: Damage, victims: &[usize], rng: &mut Rng) -> String {
    let nats = Nats::start(3);
    let nodes = three(&nats);
    let servers = nodes.each_ref().map(Node::serve);
    let key = key(&nodes[0]);
    let mut clients = servers.each_ref().map(|server| server.client_with(&key));
    for client in &mut clients {
        until_status(client, "/api/v1/portfolio", 200);
    }
    let mut claims = Claims::new();
    let old = tempfile::tempdir().expect("a folder");
    write(&mut clients, &mut claims, 20, WRITES_WAIT);
    if damage == Damage::RolledBack {
        for &victim in victims {
            nats.kill(victim);
            copy(&nats.store_dir(victim), &old.path().join(victim.to_string()));
            nats.start_again(victim);
        }
        nats.wait_until_healthy();
        write(&mut clients, &mut claims, 20, WRITES_WAIT);
    }
    victims.iter().for_each(|&victim| nats.kill(victim));
    for &victim in victims {
        damage.apply(&nats.store_dir(victim), &old.path().join(victim.to_string()), rng);
        nats.start_again(victim);
    }
    write(&mut clients, &mut claims, 10, WRITES_WAIT);
    // A damaged server may lead now.
    if let Some(leader) = nats.leader_of(STREAM) {
        nats.kill(leader);
        thread::sleep(Duration::from_secs(1));
        nats.start_again(leader);
    }
    let written = write(&mut clients, &mut claims, 10, WRITES_WAIT);
    let begun = Instant::now();
    // Records may still be in transit, or a node may be waiting before it halts.
    while begun.elapsed() < SETTLED {
        let states: Vec<String> = servers.iter().map(|it| log_of(it.address())).collect();
        let is_settled = states.iter().all(|state| state == "halted")
            || (states.iter().all(|state| state == "ok") && written > 0);
        if is_settled {
            break;
        }
        thread::sleep(Duration::from_millis(500));
    }
    thread::sleep(Duration::from_secs(1));
    let acknowledged = claims.values().flatten().count();
    // If the server that a node read from was killed, the node gets records some seconds late.
    let states = wait::until_ok(SOON, || check(&servers, &key, &claims));
    format!("{written} of 10 writes at last, {acknowledged} acknowledged in all; nodes: {states}")
}

#[test]
fn damaged_files_of_the_stream_never_make_nodes_differ() {
    let seed = runs::seed();
    let mut rng = Rng::new(seed);
    for number in 0..runs::figure(1, 70) {
        let damage = if runs::full() { KINDS[number % KINDS.len()] } else { *rng.pick(&KINDS) };
        let mut victims = [0, 1, 2];
        rng.shuffle(&mut victims);
        let victims = &victims[..1 + (number / KINDS.len()) % 2];
        let ended = round(damage, victims, &mut rng);
        runs::say(&format!("{damage:?} on {} of 3 servers: {ended}", victims.len()));
    }
}
