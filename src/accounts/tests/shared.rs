//! Stores of several nodes on one shared log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::admin::{AdminCommand, AdminReply, CommandError, execute};
use crate::cluster::memory::{Memory, WAITS};
use crate::data::nodes::Lead;
use crate::error::WriteError;
use crate::event::{Event, Transaction};
use crate::fixtures::email;
use crate::journal::AppendError;
use crate::quota::Counter;
use crate::store::{Store, StoreOptions};
use crate::tests::no_archive;
use crate::vocab::clock::Clock;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::{Plan, Plans};
use crate::vocab::time::UnixMs;

fn open_node(dir: &Path, name: &str, stream: &Memory) -> Store {
    let mut options = StoreOptions::new(dir, Plans::default(), Clock::system());
    options.waits = WAITS;
    Store::open_shared(options, name, stream.clone(), Arc::new(|_, _| {})).expect("opened")
}

/// Adds an account, and retries if another node made a conflicting change.
fn add(store: &Store, address: &str) -> Result<AccountId, CommandError> {
    loop {
        match store.add_account(&email(address), Plan::Pro, None) {
            Err(CommandError::Journal(AppendError::Superseded)) => {}
            other => return other,
        }
    }
}

/// Requests the digest of their state after one record from all nodes, and returns the digests.
fn digests(stores: &[&Store]) -> Vec<String> {
    let AdminReply::Checkpoint { id } = execute(stores[0], AdminCommand::Checkpoint, no_archive)
    else {
        panic!("no checkpoint");
    };
    let begun = Instant::now();
    loop {
        let facts = stores.iter().map(|store| store.node_facts().expect("a node"));
        let checkpoints = facts.map(|facts| facts.checkpoints.into_iter().find(|it| it.id == id));
        let found: Vec<String> = checkpoints.flatten().map(|it| it.digest).collect();
        if found.len() == stores.len() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn writes_of_one_node_reach_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    stream.fails_one_in.store(20, Ordering::Relaxed);
    let names = ["a", "b", "c"];
    let stores: Vec<Store> =
        names.iter().map(|name| open_node(&folder.path().join(name), name, &stream)).collect();
    // All sign-ups run concurrently; half of the addresses are used on two nodes.
    let added = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (at, store) in stores.iter().enumerate() {
            running.push(scope.spawn(move || {
                let addresses = (at * 10..at * 10 + 20).map(|number| number % 30);
                let added = addresses.map(|number| add(store, &format!("{number}@example.com")));
                added.filter(Result::is_ok).count()
            }));
        }
        running.into_iter().map(|it| it.join().expect("added")).sum::<usize>()
    });
    assert_eq!(added, 30, "each address once");
    stream.fails_one_in.store(0, Ordering::Relaxed);
    let [one, two, three] = &stores[..] else { panic!("three nodes") };
    let found = digests(&[one, two, three]);
    assert!(found.iter().all(|digest| *digest == found[0]), "{found:?}");
    let accounts = one.list();
    let mut ids: Vec<u64> = accounts.iter().map(|account| account.id.0).collect();
    ids.dedup();
    assert_eq!((accounts.len(), ids.len()), (30, 30));
    // A key that one node created works on another, and after a restart.
    let key = one.issue_key(&email("0@example.com")).expect("a key");
    digests(&[one, two, three]);
    assert!(three.authenticate(key.key.reveal()).is_some());
    // The position is after the record of that use.
    digests(&[three]);
    let digest = three.state_digest();
    three.snapshot_now().expect("a snapshot");
    for store in stores {
        store.close().expect("closed");
    }
    let again = open_node(&folder.path().join("c"), "c", &stream);
    assert!(again.authenticate(key.key.reveal()).is_some());
    assert_eq!(again.state_digest(), digest);
    again.close().expect("closed");
}

#[test]
fn the_position_after_a_read_is_at_least_as_new_as_its_data() {
    const ACCOUNTS: usize = 300;
    let folder = tempfile::tempdir().expect("a folder");
    let store = open_node(folder.path(), "a", &Memory::default());
    let is_done = AtomicBool::new(false);
    let (told, written) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut told = Vec::new();
            while !is_done.load(Ordering::Relaxed) {
                told.push((store.list().len(), store.log_position()));
            }
            told
        });
        // The log position after each account's record, since this is the only writer.
        let written: Vec<u64> = (0..ACCOUNTS)
            .map(|number| {
                add(&store, &format!("{number}@example.com")).expect("added");
                store.log_position()
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        (reading.join().expect("read"), written)
    });
    for (accounts, position) in told {
        let newest = accounts.checked_sub(1).map_or(0, |last| written[last]);
        assert!(position >= newest, "{accounts} accounts, {newest} records, told {position}");
    }
    store.close().expect("closed");
}

/// Opens nodes `a` and `b` on one stream.
fn two(folder: &Path) -> (Store, Store, Memory) {
    let stream = Memory::default();
    let [one, other] = ["a", "b"].map(|name| open_node(&folder.join(name), name, &stream));
    (one, other, stream)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn only_the_leader_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other, _stream) = two(folder.path());
    let runtime = runtime();
    let begin = |store: &Store| {
        let begun = store.begin_watch_alerts(7, UnixMs::from_instant(Clock::system().now()));
        runtime.block_on(begun)
    };
    let refused = |result| matches!(result, Err(WriteError::Journal(AppendError::Superseded)));
    assert!(!one.leads() && refused(begin(&one)), "there is no leader");
    let nobody = Lead::default();
    runtime.block_on(one.take_lead(&nobody)).expect("taken");
    assert!(one.leads() && !other.leads());
    // A node that was just started may not yet have read that another one leads.
    assert!(refused(runtime.block_on(other.take_lead(&nobody))));
    assert!(one.leads() && !other.leads());
    assert!(refused(begin(&other)));
    // The log refuses decisions made before another node took the lead.
    let decided = one.leaders_basis().expect("it leads");
    runtime.block_on(other.take_lead(&one.lead())).expect("taken");
    let event = Transaction(vec![Event::Checkpoint { id: 1 }]);
    let late = one.0.shared.append(event, decided, || {}).expect("sent");
    let late = runtime.block_on(late.durable());
    assert!(matches!(late, Err(AppendError::Superseded)), "{late:?}");
    // The refusal comes as soon as the record has arrived, shortly before it is applied.
    runtime.block_on(one.0.shared.barrier()).expect("applied");
    assert!(!one.leads() && other.leads());
    assert_eq!(one.lead(), Lead { term: 2, node: Some("b".into()) });
    begin(&other).expect("it leads");
    // The node no longer leads, so it has no lead to release.
    runtime.block_on(one.leave_lead()).expect("nothing to do");
    assert!(other.leads());
    runtime.block_on(other.leave_lead()).expect("given up");
    assert_eq!(other.lead(), Lead { term: 3, node: None });
    runtime.block_on(one.take_lead(&other.lead())).expect("taken");
    let found = digests(&[&one, &other]);
    assert_eq!(found[0], found[1]);
}

/// After a restart, the process is a different leader; a lead that is not yet applied here still
/// counts.
#[test]
fn a_lead_ends_with_its_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other, stream) = two(folder.path());
    let runtime = runtime();
    runtime.block_on(one.take_lead(&Lead::default())).expect("taken");
    one.close().expect("closed");
    let again = open_node(&folder.path().join("a"), "a", &stream);
    assert!(!again.leads());
    assert_eq!(again.lead().node.as_deref(), Some("a"));
    runtime.block_on(again.take_lead(&again.lead())).expect("taken");
    digests(&[&again, &other]);
    assert_eq!((again.lead().term, other.lead()), (2, again.lead()));
}

#[test]
fn a_node_with_other_data_halts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (alone, stream) = (folder.path().join("a"), Memory::default());
    let store = Store::open(&alone, Plans::default(), Clock::system()).expect("opened");
    add(&store, "a@example.com").expect("added");
    let backup = folder.path().join("backup");
    store.backup(&backup).expect("a backup");
    store.close().expect("closed");
    let first = open_node(&alone, "a", &stream);
    add(&first, "b@example.com").expect("added");
    // The node starts once with the same data, and once without data.
    let restored = folder.path().join("b");
    let disk = crate::journal::fs::Disk;
    crate::journal::restore(&disk, &backup, &restored.join("journal")).expect("restored");
    let second = open_node(&restored, "b", &stream);
    add(&second, "c@example.com").expect("added");
    let found = digests(&[&first, &second]);
    assert_eq!(found[0], found[1]);
    let third = open_node(&folder.path().join("c"), "c", &stream);
    let begun = Instant::now();
    let reason = loop {
        if let Some(reason) = third.node_facts().and_then(|facts| facts.halted) {
            break reason;
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(reason.contains("follows another record 0"), "{reason}");
    assert_eq!(third.health(), Err("halted".to_owned()));
    let refused = add(&third, "d@example.com").expect_err("halted");
    assert!(matches!(refused, CommandError::Journal(AppendError::Halted { .. })), "{refused}");
}

#[test]
fn a_node_that_left_keeps_its_data_and_cannot_rejoin() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    let node = open_node(folder.path(), "a", &stream);
    add(&node, "a@example.com").expect("added");
    assert!(matches!(execute(&node, AdminCommand::Leave, no_archive), AdminReply::Refused { .. }));
    node.close().expect("closed");
    let alone = Store::open(folder.path(), Plans::default(), Clock::system()).expect("opened");
    assert!(alone.is_copy());
    assert_eq!(execute(&alone, AdminCommand::Leave, no_archive), AdminReply::Done);
    assert!(!alone.is_copy());
    add(&alone, "b@example.com").expect("added");
    assert_eq!(alone.list().len(), 2);
    alone.close().expect("closed");
    let back = open_node(folder.path(), "a", &stream);
    let begun = Instant::now();
    while back.health().is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_grant_no_more_than_a_day_allows() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    stream.fails_one_in.store(50, Ordering::Relaxed);
    const LIMIT: u32 = 2_000;
    let open = |name: &str| {
        let mut plans = Plans::default();
        plans.limits_mut(Plan::Pro).requests_per_day = LIMIT;
        let mut options = StoreOptions::new(&folder.path().join(name), plans, Clock::system());
        options.waits = WAITS;
        Store::open_shared(options, name, stream.clone(), Arc::new(|_, _| {})).expect("opened")
    };
    let stores = ["a", "b", "c"].map(open);
    let first = stores[0].clone();
    let key = tokio::task::spawn_blocking(move || {
        add(&first, "a@example.com").expect("added");
        first.issue_key(&email("a@example.com")).expect("a key")
    });
    let key = key.await.expect("no panic").key;
    let now = Clock::system().now();
    let mut clients = Vec::new();
    for client in 0..64 {
        let store = stores[client % 3].clone();
        let begun = Instant::now();
        let caller = loop {
            if let Some(caller) = store.authenticate(key.reveal()) {
                break caller;
            }
            assert!(begun.elapsed() < Duration::from_secs(30));
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        clients.push(tokio::spawn(async move {
            let mut granted = 0;
            while store.charge_waiting(Counter::Requests, &caller, now).await.granted {
                granted += 1;
            }
            granted
        }));
    }
    let mut granted = 0;
    for client in clients {
        granted += client.await.expect("no panic");
    }
    assert!(granted <= LIMIT, "{granted}");
    assert!(granted >= LIMIT - LIMIT / 20, "{granted}");
}
