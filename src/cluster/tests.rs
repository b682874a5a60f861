//! Nodes on a [`Memory`] stream.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::log::{Replica, SharedLog, Submission};
use super::memory::{Memory, WAITS};
use super::record::{Chain, Part, SHARED, SharedPosition, SharedRecord, copies};
use crate::journal::{
    AppendError, Journal, Options, Position, Record, RecordKind, Replay, ReplayResult,
};

const WAIT: Duration = Duration::from_secs(30);

/// A change of a key from one value to the next. The decision was based on the first value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: u8,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Change {
    pub(super) fn encode(self) -> Vec<u8> {
        [&[self.key][..], &self.from.to_le_bytes(), &self.to.to_le_bytes()].concat()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Change> {
        let (&key, rest) = bytes.split_first()?;
        let (from, to) = rest.split_first_chunk()?;
        Some(Change {
            key,
            from: u64::from_le_bytes(*from),
            to: u64::from_le_bytes(to.try_into().ok()?),
        })
    }
}

/// The state of a node.
#[derive(Clone, Debug, Default)]
struct Values {
    values: BTreeMap<u8, u64>,
    changes: Vec<Change>,
    shared: SharedPosition,
    chains: Vec<Chain>,
}

impl Values {
    fn change(&mut self, change: Change) {
        let value = self.values.entry(change.key).or_default();
        assert_eq!(*value, change.from, "decided on a stale value: {change:?}");
        *value = change.to;
        self.changes.push(change);
    }
}

#[derive(Clone, Default)]
pub(super) struct Copied {
    values: Arc<Mutex<Values>>,
    /// Whether this state reports no changed keys: a planted fault.
    forgets_touched: bool,
}

impl Copied {
    /// Returns an empty state, with the fault or without.
    pub(super) fn new(forgets_touched: bool) -> Copied {
        Copied { forgets_touched, ..Copied::default() }
    }

    fn get(&self) -> Values {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Replica for Copied {
    type Transaction = Change;

    fn now_ms(&self) -> u64 {
        1_790_000_000_000
    }

    fn caught_up(&self, _newest_ms: Option<u64>) {}

    fn decode(
        &self,
        (_, bytes): Part<'_>,
    ) -> Result<Change, Box<dyn std::error::Error + Send + Sync>> {
        Change::decode(bytes).ok_or_else(|| "unknown".into())
    }

    fn touched(&self, change: &Change) -> Vec<u64> {
        if self.forgets_touched { Vec::new() } else { vec![change.key.into()] }
    }

    fn apply(&self, changes: Vec<Change>, shared: SharedPosition, _at: Position) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        changes.into_iter().for_each(|change| values.change(change));
        values.shared = shared;
    }
}

impl Replay for Values {
    fn reset(&mut self) {
        *self = Values::default();
    }

    fn chunk(&mut self, _bytes: &[u8]) -> ReplayResult {
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> ReplayResult {
        assert_eq!(record.fields.kind, SHARED);
        for (seq, bytes) in copies(record.payload)? {
            for (_, part) in SharedRecord::decode(bytes)?.parts {
                self.change(Change::decode(part).ok_or("unknown")?);
            }
            self.chains.push(self.shared.chain);
            self.shared = SharedPosition::after(seq, bytes);
        }
        Ok(())
    }
}

struct Node {
    log: Arc<SharedLog<Change>>,
    state: Copied,
    journal: Arc<Journal>,
}

impl Node {
    fn open(dir: &Path, name: &str, stream: Memory) -> Node {
        let mut values = Values::default();
        let options = Options::new(dir, Arc::new(|| 0));
        let (journal, _) = Journal::open(options, &mut values).expect("a journal");
        let (shared, chains) = (values.shared, std::mem::take(&mut values.chains));
        let (journal, state) = (
            Arc::new(journal),
            Copied { values: Arc::new(Mutex::new(values)), forgets_touched: false },
        );
        let log = SharedLog::start(name, stream, &journal, state.clone(), (shared, chains), WAITS);
        Node { log: Arc::new(log.expect("a thread")), state, journal }
    }

    fn close(self) -> Values {
        self.log.close();
        self.journal.close().expect("closed");
        self.state.get()
    }

    /// Adds 1 to a key.
    async fn add(&self, key: u8) -> Result<Change, (Change, AppendError)> {
        let none = Change { key, from: 0, to: 0 };
        self.log.barrier().await.map_err(|err| (none, err))?;
        let since = self.log.applied().seq;
        let from = self.state.get().values.get(&key).copied().unwrap_or_default();
        // Values are unique, so that a change applied twice is detected.
        let change = Change { key, from, to: fastrand::u64(1..) };
        submit(&self.log, change, since).await.map(|()| change).map_err(|err| (change, err))
    }

    async fn settle(&self, seq: u64) {
        assert!(self.log.reaches(seq, WAIT).await, "{:?}", self.log.condition());
    }

    async fn halted(&self) -> String {
        let begun = std::time::Instant::now();
        loop {
            if let Some(reason) = self.log.condition().halted {
                return reason;
            }
            assert!(begun.elapsed() < WAIT, "{:?}", self.log.condition());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub(super) fn kind() -> RecordKind {
    RecordKind::for_caller(16).expect("from 16 on")
}

async fn submit(log: &SharedLog<Change>, change: Change, since: u64) -> Result<(), AppendError> {
    let (answer, answered) = oneshot::channel();
    log.submit(Submission {
        transaction: change,
        kind: kind(),
        payload: change.encode(),
        touched: vec![change.key.into()],
        since,
        done: Box::new(move |result| drop(answer.send(result.map(drop)))),
    })?;
    answered.await.unwrap_or(Err(AppendError::Unknown))
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_agree_despite_faults_of_the_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    stream.fails_one_in.store(8, Ordering::Relaxed);
    let names = ["a", "b", "c"];
    let open = |name: &&str| Arc::new(Node::open(&folder.path().join(name), name, stream.clone()));
    let nodes: Vec<Arc<Node>> = names.iter().map(open).collect();
    let mut writers = Vec::new();
    for node in &nodes {
        // Each node has one writer per key, like the lock of an account. Every node writes all
        // keys.
        for key in 0..6 {
            let node = Arc::clone(node);
            writers.push(tokio::spawn(async move {
                let mut outcomes = Vec::new();
                for _ in 0..40 {
                    outcomes.push(node.add(key).await);
                }
                outcomes
            }));
        }
    }
    let mut outcomes = Vec::new();
    for writer in writers {
        outcomes.extend(writer.await.expect("a writer"));
    }
    stream.fails_one_in.store(0, Ordering::Relaxed);
    let last = stream.records().len() as u64;
    for node in &nodes {
        node.settle(last).await;
    }
    let states: Vec<Values> = nodes.iter().map(|node| node.state.get()).collect();
    for state in &states {
        assert_eq!(state.changes, states[0].changes);
        assert_eq!(state.shared, states[0].shared);
    }
    let count = |change: &Change| states[0].changes.iter().filter(|it| *it == change).count();
    let mut stored = 0;
    for outcome in &outcomes {
        match outcome {
            Ok(change) => {
                assert_eq!(count(change), 1, "{change:?}");
                stored += 1;
            }
            Err((change, AppendError::Superseded | AppendError::Unreachable)) => {
                assert_eq!(count(change), 0, "{change:?}");
            }
            Err((change, err)) => panic!("{change:?}: {err}"),
        }
    }
    assert!(stored > outcomes.len() / 10, "{stored} of {}", outcomes.len());
    assert_eq!(states[0].changes.len(), stored, "nothing else is stored");
    // A restart reads the same state from the copy.
    for (node, name) in nodes.into_iter().zip(names) {
        let before = Arc::into_inner(node).expect("no writer is left").close();
        let again = Node::open(&folder.path().join(name), name, stream.clone());
        assert_eq!(again.state.get().changes, before.changes);
        assert_eq!(again.log.applied(), before.shared);
        again.close();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_catches_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    let first = Node::open(&folder.path().join("a"), "a", stream.clone());
    for _ in 0..100 {
        first.add(1).await.expect("stored");
    }
    let second = Node::open(&folder.path().join("b"), "b", stream.clone());
    second.log.barrier().await.expect("reached");
    assert_eq!(second.state.get().changes, first.state.get().changes);
    assert!(second.log.condition().is_caught_up);
    assert_eq!(second.close().changes, first.close().changes);
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicting_writes_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    let node = Node::open(folder.path(), "a", stream.clone());
    let since = node.log.applied();
    let other = Change { key: 1, from: 0, to: 5 };
    stream.push(since.chain, "b", vec![(kind(), &other.encode())]);
    let stale = submit(&node.log, Change { key: 1, from: 0, to: 6 }, since.seq).await;
    assert_eq!(stale, Err(AppendError::Superseded));
    submit(&node.log, Change { key: 2, from: 0, to: 7 }, since.seq).await.expect("another key");
    node.add(1).await.expect("decided on what is there");
    assert_eq!(node.close().changes.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_stream_differs_halts() {
    let folder = tempfile::tempdir().expect("a folder");
    type Fault = fn(&Memory);
    let faults: [(&str, Fault, &str); 5] = [
        ("changed", |stream| stream.records()[2][60] ^= 1, "is another"),
        ("shorter", |stream| stream.records().truncate(2), "has lost records"),
        (
            "rewritten",
            |stream| {
                let before = SharedPosition::after(2, &stream.records()[1]).chain;
                stream.records().truncate(2);
                for _ in 0..2 {
                    stream.push(before, "b", Vec::new());
                }
            },
            "is another",
        ),
        ("other chain", |stream| stream.push(Chain([9; 32]), "b", Vec::new()), "follows another"),
        ("unreadable", |stream| stream.records().push(vec![1, 2, 3]), "cut short"),
    ];
    for (name, fault, reason) in faults {
        let (stream, dir) = (Memory::default(), folder.path().join(name));
        let node = Node::open(&dir, "a", stream.clone());
        for _ in 0..3 {
            node.add(1).await.expect("stored");
        }
        let values = node.close();
        fault(&stream);
        let node = Node::open(&dir, "a", stream.clone());
        let halted = node.halted().await;
        assert!(halted.contains(reason), "{name}: {halted}");
        let refused = submit(&node.log, Change { key: 2, from: 0, to: 1 }, 3).await;
        assert!(matches!(refused, Err(AppendError::Halted { .. })), "{name}: {refused:?}");
        assert_eq!(node.state.get().values, values.values, "{name}: reads continue");
        node.close();
    }
}

/// The servers lose a record and store another one at its position, while this node is connected.
#[tokio::test(flavor = "multi_thread")]
async fn writes_are_not_acknowledged_after_a_replaced_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    let node = Node::open(folder.path(), "a", stream.clone());
    for _ in 0..3 {
        node.add(1).await.expect("stored");
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = SharedPosition::after(2, &stream.records()[1]).chain;
    stream.records().truncate(2);
    stream.push(before, "b", Vec::new());
    let refused = node.add(1).await;
    assert!(
        matches!(refused, Err((_, AppendError::Unknown | AppendError::Halted { .. }))),
        "{refused:?}"
    );
    let halted = node.halted().await;
    assert!(halted.contains("record 3 of the stream differs"), "{halted}");
    assert_eq!(stream.records().len(), 3);
    node.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_a_newer_version_halts_the_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let stream = Memory::default();
    stream.push(Chain::default(), "b", vec![(kind(), b"new")]);
    let node = Node::open(folder.path(), "a", stream);
    let halted = node.halted().await;
    assert!(halted.contains("record 1 of node b cannot be read: unknown"), "{halted}");
    assert_eq!(node.close().shared.seq, 0);
}

/// If the stream does not compare the expected number, two nodes can append at the same position of
/// the chain. The log then has both records, and every node halts.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_halt_on_a_stream_without_compare_and_append() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stream = Memory::default();
    stream.expects_nothing = true;
    let open = |name: &str| Arc::new(Node::open(&folder.path().join(name), name, stream.clone()));
    let nodes = [open("a"), open("b")];
    let begun = std::time::Instant::now();
    while nodes.iter().any(|node| node.log.condition().halted.is_none()) {
        assert!(begun.elapsed() < WAIT);
        let writes = nodes.each_ref().map(|node| {
            let node = Arc::clone(node);
            tokio::spawn(async move { node.add(1).await })
        });
        for write in writes {
            let _ = write.await.expect("no panic");
        }
    }
    let states = nodes.each_ref().map(|node| node.state.get().changes);
    let shorter = states[0].len().min(states[1].len());
    assert_eq!(states[0][..shorter], states[1][..shorter], "one history, as far as it goes");
}
