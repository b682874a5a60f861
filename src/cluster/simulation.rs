//! Simulation of nodes and their stream in virtual time, driven by a seed.
//!
//! The sequencers are the real ones. The stream, the network, the disks and the clients are
//! simulated: calls and responses are lost, delayed or repeated; records arrive twice or never;
//! nodes pause, crash and restart. A damaged stream also loses its last records, flips bits and
//! skips records.
//!
//! `DROPDEX_SEED=N` repeats a run, `DROPDEX_FULL=1` runs a million steps.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::copy::Copy;
use super::log::{Submission, Waits};
use super::record::{Chain, SharedPosition, SharedRecord};
use super::sequencer::{Barrier, Input, Now, Output, Sequencer};
use super::stream::{Published, StreamError, StreamRecord};
use super::tests::{Change, Copied, kind};
use crate::journal::{AppendError, Appended, Position};

/// Bugs planted in the nodes, to prove that a simulation finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    /// Nodes do not compare records that they know with those of the stream.
    SkipsCompare,
    /// Nodes forget which keys other nodes changed.
    ForgetsTouched,
    /// Nodes accept a record whose predecessor they have not seen.
    AcceptsGap,
    /// Nodes respond to barriers before the end of the stream is applied.
    AnswersEarly,
}

/// State outside the nodes: the stream and its true history.
#[derive(Default)]
struct Log {
    records: Vec<Vec<u8>>,
    /// All records that were ever stored, by number and chain.
    stored: HashSet<(u64, Chain)>,
    /// Records with flipped bits, by number.
    turned: HashSet<u64>,
    /// The changes in records that the stream has lost.
    lost: HashSet<u64>,
    down_until: Duration,
}

impl Log {
    fn store(&mut self, last: u64, bytes: Vec<u8>) -> Published {
        if self.records.len() as u64 != last {
            return Published::Superseded;
        }
        let at = SharedPosition::after(last + 1, &bytes);
        self.stored.insert((at.seq, at.chain));
        self.records.push(bytes);
        Published::At(at.seq)
    }
}

fn changes(bytes: &[u8]) -> Vec<Change> {
    let parts = SharedRecord::decode(bytes).map(|record| record.parts).unwrap_or_default();
    parts.into_iter().filter_map(|(_, part)| Change::decode(part)).collect()
}

/// State of a node that survives a crash.
#[derive(Default)]
struct Disk {
    values: BTreeMap<u8, u64>,
    applied: SharedPosition,
    chains: Vec<Chain>,
}

#[derive(Default)]
struct Node {
    /// Number of starts. Events of an earlier run are dropped.
    run: u64,
    sequencer: Option<Sequencer<Copied>>,
    disk: Disk,
    /// The last record that the sequencer accepted.
    taken: SharedPosition,
    copies: VecDeque<Copy<Change>>,
    /// Number of the current subscription.
    follower: Option<u64>,
    followers: u64,
    /// Barriers that get a response once a record is applied.
    barriers: Vec<(u64, Vec<Barrier>)>,
    /// Clients that wait for a barrier, each with the record that it must then see.
    readers: Vec<(oneshot::Receiver<Result<(), AppendError>>, u64)>,
    /// The last change of each key. Like an account, a key has one writer per node.
    writing: BTreeMap<u8, u64>,
    paused_until: Duration,
    halted: Option<String>,
}

enum Event {
    /// An input of a sequencer.
    Input(Input<Change>),
    /// The time at which a sequencer asked to be called.
    Wake,
    /// The append arrives at the stream; its response may be lost.
    Append {
        sent: Duration,
        last: u64,
        known: Option<SharedPosition>,
        bytes: Vec<u8>,
        is_answered: bool,
    },
    /// The request to follow arrives at the stream.
    Follow {
        after: u64,
    },
    /// The request for the end of the stream arrives at the stream.
    AskEnd,
    /// The stream sends a record to a follower.
    Deliver {
        follower: u64,
        seq: u64,
    },
    /// The disk has stored the next copies.
    Copied,
    /// A client of the node begins a change.
    Act,
    Crash,
    Start,
}

/// Outcomes of changes, by the value that they wrote.
type Outcomes = Arc<Mutex<HashMap<u64, Result<u64, AppendError>>>>;

struct World {
    rng: fastrand::Rng,
    base: Instant,
    now: Duration,
    /// Events in order of time, then number, each with its node and the number of the node's
    /// restart.
    events: BTreeMap<(Duration, u64), (usize, u64, Event)>,
    made: u64,
    steps: u64,
    nodes: Vec<Node>,
    log: Log,
    planted: Option<Planted>,
    is_damaged: bool,
    /// Whether all faults have ended.
    is_calm: bool,
    outcomes: Outcomes,
    changes_made: u64,
    /// The last record with an acknowledged change.
    acknowledged: Arc<Mutex<u64>>,
}

type Check = Result<(), String>;

const fn ms(range: Range<u64>) -> Range<u64> {
    range.start * 1_000..range.end * 1_000
}

impl World {
    fn new(seed: u64, planted: Option<Planted>, is_damaged: bool) -> World {
        let mut rng = fastrand::Rng::with_seed(seed);
        let nodes = (0..rng.usize(2..=5)).map(|_| Node::default()).collect();
        let mut world = World {
            rng,
            base: Instant::now(),
            now: Duration::ZERO,
            events: BTreeMap::new(),
            made: 0,
            steps: 0,
            nodes,
            log: Log::default(),
            planted,
            is_damaged,
            is_calm: false,
            outcomes: Outcomes::default(),
            changes_made: 0,
            acknowledged: Arc::default(),
        };
        for node in 0..world.nodes.len() {
            world.start(node);
        }
        world
    }

    fn one_in(&mut self, n: u64) -> bool {
        !self.is_calm && self.rng.u64(..n) == 0
    }

    /// Schedules an event of a node after a delay in microseconds.
    fn after(&mut self, micros: Range<u64>, node: usize, event: Event) {
        let at = self.now + Duration::from_micros(self.rng.u64(micros));
        self.at(at, node, event);
    }

    fn at(&mut self, at: Duration, node: usize, event: Event) {
        self.made += 1;
        self.events.insert((at, self.made), (node, self.nodes[node].run, event));
    }

    /// Schedules a message between a node and the stream, sometimes late.
    fn message(&mut self, node: usize, event: Event) {
        let late = if self.one_in(50) { ms(50..3_000) } else { 100..2_000 };
        self.after(late, node, event);
    }

    fn is_down(&self) -> bool {
        self.now < self.log.down_until
    }

    fn start(&mut self, index: usize) {
        let at = self.base + self.now;
        let first_id = self.rng.u128(..);
        let node = &mut self.nodes[index];
        node.run += 1;
        (node.follower, node.halted) = (None, None);
        (node.copies, node.barriers, node.readers, node.writing) = Default::default();
        node.taken = node.disk.applied;
        let replica = Copied::new(self.planted == Some(Planted::ForgetsTouched));
        let sequencer = Sequencer::new(
            format!("n{index}"),
            Arc::new(replica),
            node.disk.applied,
            node.disk.chains.clone(),
            (Waits::default(), first_id, at),
        );
        node.sequencer = Some(sequencer);
        self.after(0..1_000, index, Event::Wake);
        for _ in 0..3 {
            self.after(ms(0..100), index, Event::Act);
        }
        if !self.is_calm {
            self.after(ms(2_000..120_000), index, Event::Crash);
        }
    }

    fn step(&mut self) -> Check {
        let Some(((at, made), (node, run, mut event))) = self.events.pop_first() else {
            return Err("no event is left".to_owned());
        };
        self.now = at;
        if self.one_in(20_000) {
            let pause = Duration::from_micros(self.rng.u64(ms(10..15_000)));
            self.nodes[node].paused_until = self.now + pause;
        }
        if self.is_damaged && self.one_in(20_000) {
            self.damage();
        }
        if run != self.nodes[node].run {
            // Messages survive their sender.
            if let Event::Append { is_answered, .. } = &mut event {
                *is_answered = false;
                self.append(node, event);
            }
            return Ok(());
        }
        let is_at_node =
            !matches!(event, Event::Append { .. } | Event::Follow { .. } | Event::AskEnd);
        let paused_until = self.nodes[node].paused_until;
        if is_at_node && at < paused_until {
            self.events.insert((paused_until, made), (node, run, event));
            return Ok(());
        }
        match event {
            Event::Input(input) => self.input(node, input),
            Event::Wake => {
                let due = self.nodes[node].sequencer.as_ref().map(Sequencer::deadline);
                match due {
                    Some(due) if due <= self.base + self.now => self.input(node, Input::Time),
                    _ => Ok(()),
                }
            }
            append @ Event::Append { .. } => {
                self.append(node, append);
                Ok(())
            }
            Event::Follow { after } => {
                self.follow(node, after);
                Ok(())
            }
            Event::AskEnd => {
                let end = self.log.records.len() as u64;
                let end = if self.is_down() || self.one_in(30) { Err(lost()) } else { Ok(end) };
                self.message(node, Event::Input(Input::End(end)));
                Ok(())
            }
            Event::Deliver { follower, seq } => self.deliver(node, follower, seq),
            Event::Copied => self.copied(node),
            Event::Act => self.act(node),
            Event::Crash if self.is_calm => Ok(()),
            Event::Crash => {
                self.nodes[node].run += 1;
                self.nodes[node].sequencer = None;
                self.after(ms(1..5_000), node, Event::Start);
                Ok(())
            }
            Event::Start => {
                self.start(node);
                Ok(())
            }
        }
    }

    fn input(&mut self, index: usize, input: Input<Change>) -> Check {
        let Some(input) = self.plant(index, input) else { return Ok(()) };
        let now = Now { at: self.base + self.now, unix_ms: 0 };
        let Some(sequencer) = &mut self.nodes[index].sequencer else { return Ok(()) };
        self.steps += 1;
        let outputs = sequencer.on(now, input);
        let deadline = sequencer.deadline();
        let mut has_ended = false;
        for output in outputs {
            has_ended |= matches!(output, Output::End(_));
            self.output(index, output)?;
        }
        if has_ended {
            self.nodes[index].sequencer = None;
            let reason = self.nodes[index].halted.as_deref().unwrap_or("closed");
            if !self.is_damaged {
                return Err(format!("node {index} has halted: {reason}"));
            }
        } else if deadline <= now.at {
            return Err(format!("node {index} asks to be woken in the past"));
        } else {
            self.at(deadline - self.base, index, Event::Wake);
        }
        Ok(())
    }

    /// Changes an input as a planted bug would.
    fn plant(&self, index: usize, input: Input<Change>) -> Option<Input<Change>> {
        let taken = self.nodes[index].taken;
        match (self.planted, input) {
            (Some(Planted::SkipsCompare), Input::Record(record)) if record.seq <= taken.seq => None,
            (Some(Planted::AcceptsGap), Input::Record(record)) if record.seq > taken.seq + 1 => {
                let message = SharedRecord::decode(&record.bytes).ok()?;
                let bytes = SharedRecord { before: taken.chain, ..message }.encode();
                Some(Input::Record(StreamRecord { seq: taken.seq + 1, bytes }))
            }
            (_, input) => Some(input),
        }
    }

    fn output(&mut self, index: usize, output: Output<Change>) -> Check {
        match output {
            Output::CaughtUp(_) => {}
            Output::Condition(condition) => {
                self.nodes[index].taken = condition.taken;
                self.nodes[index].halted = condition.halted;
            }
            Output::Append { last, known, bytes } => {
                let known = known.filter(|_| self.planted != Some(Planted::SkipsCompare));
                if self.one_in(40) {
                    // The message is lost.
                    self.after(100..2_000, index, Event::Input(Input::Published(unknown())));
                    return Ok(());
                }
                let is_answered = !self.one_in(20);
                if !is_answered {
                    self.after(ms(1..2_000), index, Event::Input(Input::Published(unknown())));
                }
                let sent = self.now;
                self.message(index, Event::Append { sent, last, known, bytes, is_answered });
            }
            Output::Follow { after } => self.message(index, Event::Follow { after }),
            Output::Unfollow => self.nodes[index].follower = None,
            Output::AskEnd => self.message(index, Event::AskEnd),
            Output::Copy(copy) => {
                if !self.log.stored.contains(&(copy.position.seq, copy.position.chain)) {
                    return Err(format!("node {index} accepted a record that was never stored"));
                }
                self.nodes[index].copies.push_back(copy);
                self.after(200..3_000, index, Event::Copied);
            }
            Output::Refuse(done, refusal) => done(Err(refusal)),
            Output::RefuseBarrier(answer, refusal) => drop(answer.send(Err(refusal))),
            Output::AnswerBarriers { seq, barriers, .. } => {
                let early = self.planted == Some(Planted::AnswersEarly);
                self.nodes[index].barriers.push((if early { 0 } else { seq }, barriers));
                self.answer_barriers(index)?;
            }
            Output::End(_) => {}
        }
        Ok(())
    }

    fn append(&mut self, index: usize, append: Event) {
        let Event::Append { sent, last, known, bytes, is_answered } = append else { return };
        // A connection does not survive a restart of the servers.
        let published = if self.is_down() || sent < self.log.down_until {
            unknown()
        } else if known.is_some_and(|known| self.record(known.seq).is_some_and(|it| it != known)) {
            Published::Differs
        } else {
            self.log.store(last, bytes)
        };
        if is_answered {
            self.message(index, Event::Input(Input::Published(published)));
        }
    }

    fn record(&self, seq: u64) -> Option<SharedPosition> {
        let bytes = self.log.records.get((seq as usize).checked_sub(1)?)?;
        Some(SharedPosition::after(seq, bytes))
    }

    fn follow(&mut self, index: usize, after: u64) {
        let end = self.log.records.len() as u64;
        if self.is_down() || self.one_in(10) {
            return self.message(index, Event::Input(Input::Followed(Err(lost()))));
        }
        let node = &mut self.nodes[index];
        node.followers += 1;
        let follower = node.followers;
        node.follower = Some(follower);
        // The response to the subscription arrives before its records.
        self.after(1..2, index, Event::Input(Input::Followed(Ok(end))));
        self.after(2..2_000, index, Event::Deliver { follower, seq: after.max(1) });
    }

    fn deliver(&mut self, index: usize, follower: u64, seq: u64) -> Check {
        if self.nodes[index].follower != Some(follower) {
            return Ok(());
        }
        if self.is_down() || self.one_in(500) {
            self.nodes[index].follower = None;
            let error = self.rng.bool().then(lost);
            return self.input(index, Input::Ended(error));
        }
        if self.one_in(500) {
            // Delivers no more records.
            return Ok(());
        }
        let Some(bytes) = self.log.records.get(seq as usize - 1).cloned() else {
            self.after(500..3_000, index, Event::Deliver { follower, seq });
            return Ok(());
        };
        let next = if seq > 1 && self.one_in(100) {
            seq - 1
        } else if self.is_damaged && self.one_in(5_000) {
            seq + 2
        } else {
            seq + 1
        };
        self.after(10..500, index, Event::Deliver { follower, seq: next });
        self.input(index, Input::Record(StreamRecord { seq, bytes }))
    }

    fn copied(&mut self, index: usize) -> Check {
        let acknowledged = Arc::clone(&self.acknowledged);
        let node = &mut self.nodes[index];
        let Some(copy) = node.copies.pop_front() else { return Ok(()) };
        for change in copy.transactions {
            let value = node.disk.values.entry(change.key).or_default();
            if *value != change.from {
                return Err(format!("node {index} applied {change:?} to the value {value}"));
            }
            *value = change.to;
        }
        node.disk.chains.push(node.disk.applied.chain);
        node.disk.applied = copy.position;
        let (seq, position) = (copy.position.seq, Position::default());
        for done in copy.done {
            let mut newest = acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
            *newest = seq.max(*newest);
            done(Ok(Appended { seq, unix_ms: 0, position }));
        }
        self.answer_barriers(index)
    }

    /// Responds to the barriers whose record is applied, and resumes their clients.
    fn answer_barriers(&mut self, index: usize) -> Check {
        let node = &mut self.nodes[index];
        let applied = node.disk.applied.seq;
        let (reached, waiting) =
            std::mem::take(&mut node.barriers).into_iter().partition(|(seq, _)| *seq <= applied);
        node.barriers = waiting;
        let reached: Vec<(u64, Vec<Barrier>)> = reached;
        for barrier in reached.into_iter().flat_map(|(_, barriers)| barriers) {
            let _ = barrier.answer.send(Ok(()));
        }
        for (mut answer, must_see) in std::mem::take(&mut self.nodes[index].readers) {
            match answer.try_recv() {
                Ok(Ok(())) => {
                    if applied < must_see && !self.is_damaged {
                        return Err(format!(
                            "a client of node {index} reads record {applied} after an \
                             acknowledgement of record {must_see}"
                        ));
                    }
                    self.change(index);
                }
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => {}
                Err(oneshot::error::TryRecvError::Empty) => {
                    self.nodes[index].readers.push((answer, must_see));
                }
            }
        }
        Ok(())
    }

    /// Starts a change of a client: it waits for all earlier writes, then decides.
    fn act(&mut self, index: usize) -> Check {
        if !self.is_calm {
            self.after(ms(1..200), index, Event::Act);
        }
        let must_see = *self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, answered) = oneshot::channel();
        self.nodes[index].readers.push((answered, must_see));
        self.input(index, Input::Barrier(answer))
    }

    fn change(&mut self, index: usize) {
        let key = self.rng.u8(..6);
        let node = &mut self.nodes[index];
        let outcomes = Arc::clone(&self.outcomes);
        let known = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        if node.writing.get(&key).is_some_and(|change| !known.contains_key(change)) {
            return;
        }
        drop(known);
        self.changes_made += 1;
        let from = node.disk.values.get(&key).copied().unwrap_or_default();
        let (to, since) = (self.changes_made, node.disk.applied.seq);
        node.writing.insert(key, to);
        let change = Change { key, from, to };
        let submission = Submission {
            transaction: change,
            kind: kind(),
            payload: change.encode(),
            touched: vec![key.into()],
            since,
            done: Box::new(move |outcome| {
                let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                outcomes.insert(to, outcome.map(|appended| appended.seq));
            }),
        };
        self.after(1..50, index, Event::Input(Input::Append(submission)));
    }

    /// Restarts the servers without their last records, or with flipped bits.
    fn damage(&mut self) {
        let len = self.log.records.len();
        if len < 10 {
            return;
        }
        self.log.down_until = self.now + Duration::from_micros(self.rng.u64(ms(1_500..5_000)));
        // Requests in progress do not survive a restart of the servers.
        for (_, _, event) in self.events.values_mut() {
            if let Event::Append { is_answered, .. } = event {
                let is_answered = *is_answered;
                *event = Event::Wake;
                if is_answered {
                    *event = Event::Input(Input::Published(unknown()));
                }
            }
        }
        if self.rng.u8(..4) == 0 {
            let at = len - 1 - self.rng.usize(..5);
            // The flipped bit lies in the time or in the chain of the previous record.
            self.log.records[at][self.rng.usize(17..57)] ^= 1;
            self.log.lost.extend(changes(&self.log.records[at]).iter().map(|it| it.to));
            let turned = SharedPosition::after(at as u64 + 1, &self.log.records[at]);
            self.log.stored.insert((turned.seq, turned.chain));
            self.log.turned.insert(turned.seq);
        } else {
            for bytes in self.log.records.drain(len - self.rng.usize(1..5)..) {
                self.log.lost.extend(changes(&bytes).iter().map(|it| it.to));
            }
        }
    }
}

fn lost() -> StreamError {
    StreamError("lost".to_owned())
}

fn unknown() -> Published {
    Published::Unknown(lost())
}

impl World {
    /// Runs without faults for a while.
    fn run_for(&mut self, time: Duration) -> Check {
        let end = self.now + time;
        while self.events.first_key_value().is_some_and(|((at, _), _)| *at < end) {
            self.step()?;
        }
        self.now = end;
        Ok(())
    }

    /// Ends all faults, lets each node write again, and checks the stored records and the outcomes.
    fn finish(&mut self) -> Check {
        self.is_calm = true;
        self.log.down_until = Duration::ZERO;
        self.run_for(Duration::from_secs(60))?;
        for node in 0..self.nodes.len() {
            let made = self.changes_made;
            self.after(0..1, node, Event::Act);
            self.run_for(Duration::from_secs(10))?;
            if self.nodes[node].sequencer.is_some() && self.changes_made == made {
                return Err(format!("node {node} does not answer"));
            }
        }
        let positions: Vec<SharedPosition> = (1..).map_while(|seq| self.record(seq)).collect();
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, it)| it.sequencer.is_some())
        {
            let mut chains = node.disk.chains[1..].to_vec();
            chains.push(node.disk.applied.chain);
            let differs = positions.iter().zip(&chains).find(|(stored, chain)| {
                stored.chain != **chain && !self.log.turned.contains(&stored.seq)
            });
            if let Some((stored, _)) = differs {
                return Err(format!("node {index} continues with another record {}", stored.seq));
            }
            if chains.len() != positions.len() {
                let (has, all) = (chains.len(), positions.len());
                return Err(format!("node {index} continues with {has} records of {all}"));
            }
        }
        let mut stored: HashMap<u64, u64> = HashMap::new();
        for change in self.log.records.iter().flat_map(|bytes| changes(bytes)) {
            *stored.entry(change.to).or_default() += 1;
        }
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        for to in (1..=self.changes_made).filter(|to| !self.log.lost.contains(to)) {
            let (count, outcome) =
                (stored.get(&to).copied().unwrap_or_default(), outcomes.get(&to));
            let is_right = match outcome {
                Some(Ok(_)) => count == 1,
                Some(Err(AppendError::Superseded | AppendError::Unreachable)) => count == 0,
                Some(Err(_)) | None => count <= 1,
            };
            if !is_right {
                return Err(format!(
                    "change {to} is stored {count} times, its outcome is {outcome:?}"
                ));
            }
        }
        Ok(())
    }

    fn acknowledged_count(&self) -> usize {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.values().filter(|outcome| outcome.is_ok()).count()
    }
}

/// Runs a simulation for some steps, or until all nodes have halted. Returns how many changes were
/// acknowledged.
fn run(seed: u64, steps: u64, planted: Option<Planted>, is_damaged: bool) -> Result<usize, String> {
    let mut world = World::new(seed, planted, is_damaged);
    let ended = loop {
        let is_over = world.steps >= steps || world.nodes.iter().all(|it| it.halted.is_some());
        if is_over {
            break world.finish();
        }
        if let Err(reason) = world.step() {
            break Err(reason);
        }
    };
    let at = format!("DROPDEX_SEED={seed}, step {}, {:?}", world.steps, world.now);
    ended.map(|()| world.acknowledged_count()).map_err(|reason| format!("{at}: {reason}"))
}

/// Returns the seeds of a test: the one in the environment, or several new ones.
fn seeds(count: u64) -> Vec<u64> {
    let given = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = given("DROPDEX_SEED") {
        return vec![seed];
    }
    let first = given("PROPTEST_RNG_SEED").unwrap_or_else(|| fastrand::u64(..1 << 32));
    (first..first + count).collect()
}

fn is_full() -> bool {
    std::env::var_os("DROPDEX_FULL").is_some()
}

#[test]
fn nodes_agree_in_any_order_of_events() {
    let (count, steps) = if is_full() { (20, 50_000) } else { (20, 5_000) };
    for seed in seeds(count) {
        let acknowledged =
            run(seed, steps, None, false).unwrap_or_else(|reason| panic!("{reason}"));
        assert!(
            acknowledged as u64 > steps / 100,
            "{acknowledged} in {steps} steps of seed {seed}"
        );
    }
}

#[test]
fn a_damaged_stream_never_splits_the_nodes() {
    let count = if is_full() { 1_000 } else { 100 };
    for seed in seeds(count) {
        run(seed, 5_000, None, true).unwrap_or_else(|reason| panic!("{reason}"));
    }
}

#[test]
fn planted_faults_are_found() {
    let faults = [
        (Planted::SkipsCompare, true),
        (Planted::ForgetsTouched, false),
        (Planted::AcceptsGap, true),
        (Planted::AnswersEarly, false),
    ];
    for (planted, is_damaged) in faults {
        let found = seeds(100)
            .into_iter()
            .find_map(|seed| run(seed, 5_000, Some(planted), is_damaged).err());
        assert!(found.is_some(), "{planted:?}");
    }
}
