//! A journal on a [`SimFs`], its caller, and the data that the caller may expect to find again.
//!
//! The caller's state is the list of the numbers of all payloads, in order. A payload is derived from
//! its number only, so a state shows which records led to it and whether each was complete.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use dropdex::journal::{
    AppendError, Journal, JournalError, Marking, Options, Position, Record, RecordKind, Recovery,
    Replay, ReplayResult,
};

use super::fs::{Note, SimFs};
use crate::common::rng::Rng;

/// The folder of the journal. The parent of the folder already exists.
pub const DIR: &str = "/data/journal";
/// The folder that contains [`DIR`].
pub const ABOVE: &str = "/data";

const KIND: RecordKind = match RecordKind::for_caller(16) {
    Some(kind) => kind,
    None => panic!("16 is the caller's"),
};
/// Number of payload numbers in one chunk of a snapshot; few, so that there are several chunks.
const IDS_IN_CHUNK: usize = 16;
const MARK_BYTES: usize = 12;

/// Sizes of payloads; a payload's number modulo 8 is its index here.
const SIZES: [usize; 8] = [0, 3, 9, 20, 40, 300, 700, 1_400];

/// Returns the payload of a number: a mark with the number, then bytes derived from it. In one of four
/// payloads, these are all zeros.
pub fn payload(id: u32) -> Vec<u8> {
    let mut bytes = format!("<<{id:08x}>>").into_bytes();
    let fill = SIZES[id as usize % SIZES.len()];
    let mut rng = Rng::new(u64::from(id));
    match rng.below(4) {
        0 => bytes.resize(MARK_BYTES + fill, 0),
        _ => {
            let words = (0..fill.div_ceil(8)).flat_map(|_| rng.below(usize::MAX).to_le_bytes());
            bytes.extend(words.take(fill));
        }
    }
    bytes
}

/// Returns the numbers of the payloads that are named in `bytes`.
pub fn marks(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    memchr::memchr_iter(b'<', bytes).filter_map(|at| {
        let mark = bytes.get(at..at + MARK_BYTES)?;
        id_of(mark)
    })
}

fn id_of(mark: &[u8]) -> Option<u32> {
    let hex = mark.strip_prefix(b"<<")?.strip_suffix(b">>")?;
    u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

/// The caller's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Numbers of payloads, in order.
    pub ids: Vec<u32>,
    /// The position after the last record, if one was read or applied since the snapshot.
    pub position: Option<Position>,
}

impl Replay for Memory {
    fn reset(&mut self) {
        *self = Memory::default();
    }

    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult {
        let ids = bytes.chunks(4).map(|id| id.try_into().map(u32::from_le_bytes));
        self.ids.extend(ids.collect::<Result<Vec<u32>, _>>()?);
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> ReplayResult {
        let id = record.payload.get(..MARK_BYTES).and_then(id_of).ok_or("an unknown payload")?;
        if record.payload != payload(id) {
            return Err(format!("payload {id} is not whole").into());
        }
        self.ids.push(id);
        let fields = &record.fields;
        let position = Position { seq: fields.seq, chain: record.chain, epoch: fields.epoch };
        self.position = Some(position);
        Ok(())
    }
}

/// Actions of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appends one payload of this size, and waits.
    Append(usize),
    /// Appends several payloads that share a sync, and waits.
    Group(Vec<usize>),
    /// Appends one payload and does not wait.
    Lazy(usize),
    /// Snapshots the state.
    Snapshot,
    /// Ends the journal, cleanly or not, and opens it again.
    Reopen {
        /// Whether [`Journal::close`] ends the journal.
        is_clean: bool,
    },
}

/// Draws a short life of a journal at random.
pub fn script(rng: &mut Rng, steps: usize) -> Vec<Step> {
    (0..steps)
        .map(|_| match rng.below(16) {
            0..=4 => Step::Append(rng.below(SIZES.len())),
            5..=8 => Step::Group((0..rng.between(2, 5)).map(|_| rng.below(SIZES.len())).collect()),
            9..=11 => Step::Lazy(rng.below(SIZES.len())),
            12..=13 => Step::Snapshot,
            other => Step::Reopen { is_clean: other == 14 },
        })
        .collect()
}

/// How a journal is set up.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// See [`Options::segment_bytes`].
    pub segment_bytes: u64,
    /// See [`Options::marking`].
    pub marking: Marking,
}

impl Shape {
    /// Writes marks inline, so that they are written at the same points each time.
    pub const fn inline(segment_bytes: u64) -> Shape {
        Shape { segment_bytes, marking: Marking::Inline }
    }
}

/// Returns the options of a journal on `fs`. The clock stands still, so that the same appends lead to
/// the same bytes.
pub fn options(fs: &SimFs, shape: Shape) -> Options {
    Options {
        dir: DIR.into(),
        segment_bytes: shape.segment_bytes,
        clock_ms: Arc::new(|| 1_790_000_000_000),
        marking: shape.marking,
        fs: Arc::new(fs.clone()),
    }
}

/// Opens the journal on `fs`, and returns its contents.
///
/// # Errors
///
/// The errors of the journal.
pub fn open(fs: &SimFs, shape: Shape) -> Result<(Journal, Recovery, Memory), JournalError> {
    let mut memory = Memory::default();
    let (journal, recovery) = Journal::open(options(fs, shape), &mut memory)?;
    Ok((journal, recovery, memory))
}

/// An open journal and its caller.
pub struct Store {
    /// The disk.
    pub fs: SimFs,
    /// The journal; `None` if the last open failed.
    pub journal: Option<Journal>,
    memory: Arc<Mutex<Memory>>,
    shape: Shape,
    next: u32,
}

impl Store {
    /// Opens a journal on `fs`; numbers of payloads start at `first`.
    pub fn open(fs: &SimFs, shape: Shape, first: u32) -> Store {
        let mut store =
            Store { fs: fs.clone(), journal: None, memory: Arc::default(), shape, next: first };
        store.reopen();
        store
    }

    /// Returns the state of the caller in memory.
    pub fn ids(&self) -> Vec<u32> {
        self.memory().ids.clone()
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs one step. The outcome is recorded; an error does not end the run.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Append(size) => {
                self.append(*size);
            }
            Step::Group(sizes) => self.append_group(sizes),
            Step::Lazy(size) => self.append_lazy(*size),
            Step::Snapshot => {
                if let Some(journal) = &self.journal {
                    journal.end_segment();
                }
                self.snapshot();
            }
            Step::Reopen { is_clean } => {
                if *is_clean {
                    self.close();
                }
                self.journal = None;
                self.reopen();
            }
        }
    }

    /// Reopens the journal after the previous instance has ended.
    pub fn reopen(&mut self) -> Option<JournalError> {
        self.fs.note(Note::Opening);
        match open(&self.fs, self.shape) {
            Ok((journal, _, memory)) => {
                self.fs.note(Note::Opened(memory.ids.clone()));
                self.memory = Arc::new(Mutex::new(memory));
                self.journal = Some(journal);
                None
            }
            Err(err) => Some(err),
        }
    }

    /// Appends a payload and waits; returns the error, if any.
    pub fn append(&mut self, size: usize) -> Option<AppendError> {
        let (id, payload) = self.take(size, false);
        let apply = self.applying(id);
        let journal = self.journal.as_ref()?;
        let result = journal.append(KIND, payload, apply);
        self.answered(id, result.map(|_| ()))
    }

    /// Closes the journal cleanly.
    pub fn close(&mut self) -> bool {
        let is_closed = self.journal.as_ref().is_some_and(|journal| journal.close().is_ok());
        if is_closed {
            self.fs.note(Note::Durable(self.ids()));
        }
        is_closed
    }

    /// Snapshots the caller's state; returns the error, if any. Does nothing if the state came from a
    /// snapshot and nothing was appended to it.
    pub fn snapshot(&mut self) -> Option<JournalError> {
        let journal = self.journal.as_ref()?;
        let memory = self.memory().clone();
        let done = journal.snapshot(memory.position?).and_then(|mut snapshot| {
            for ids in memory.ids.chunks(IDS_IN_CHUNK) {
                snapshot.chunk(&ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>())?;
            }
            snapshot.finish()
        });
        match done {
            Ok(_) => {
                self.fs.note(Note::Durable(memory.ids));
                None
            }
            Err(err) => Some(err),
        }
    }

    /// The first append keeps the writer busy until the others wait.
    fn append_group(&mut self, sizes: &[usize]) {
        let (go, gate) = mpsc::channel::<()>();
        let mut gate = Some(gate);
        let mut waiting = Vec::new();
        for size in std::iter::once(&0).chain(sizes) {
            let (id, payload) = self.take(*size, false);
            let apply = self.applying(id);
            let gate = gate.take();
            let Some(journal) = self.journal.as_ref() else { return };
            let apply = move |appended: dropdex::journal::Appended| {
                apply(appended);
                // Returns when the sender is dropped.
                gate.map(|gate| gate.recv());
            };
            match journal.append_async(KIND, payload, apply) {
                Ok(answer) => waiting.push((id, answer)),
                Err(err) => {
                    self.answered(id, Err(err));
                }
            }
        }
        drop(go);
        for (id, answer) in waiting {
            let result = block_on(answer.durable());
            self.answered(id, result.map(|_| ()));
        }
    }

    fn append_lazy(&mut self, size: usize) {
        let (id, payload) = self.take(size, true);
        let apply = self.applying(id);
        let Some(journal) = self.journal.as_ref() else { return };
        if let Err(err) = journal.append_lazy(KIND, payload, apply) {
            self.answered(id, Err(err));
        }
    }

    fn take(&mut self, size: usize, is_lazy: bool) -> (u32, Vec<u8>) {
        let step = SIZES.len() as u32;
        let id = self.next - self.next % step + size as u32;
        self.next = id - id % step + step;
        self.fs.note(Note::Submitted { id, is_lazy });
        (id, payload(id))
    }

    fn applying(&self, id: u32) -> impl FnOnce(dropdex::journal::Appended) + Send + 'static {
        let (fs, memory) = (self.fs.clone(), Arc::clone(&self.memory));
        move |appended| {
            fs.note(Note::Applied(id));
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            memory.ids.push(id);
            memory.position = Some(appended.position);
        }
    }

    fn answered(&self, id: u32, result: Result<(), AppendError>) -> Option<AppendError> {
        self.fs.note(match &result {
            Ok(()) => Note::Acked(id),
            Err(AppendError::DiskFull) => Note::NoRoom(id),
            Err(_) => Note::Failed(id),
        });
        result.err()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime without drivers").block_on(future)
}

/// Outcomes that were reported to the caller. The outcomes determine the payloads that the caller
/// must find, and those that it may find.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Payloads in the order in which they were submitted.
    order: Vec<u32>,
    fates: HashMap<u32, Fate>,
    /// Whether a lazy append may be dropped, as on a full disk.
    may_drop_lazy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Submitted; there was no response, or an error that leaves the outcome open.
    Open,
    /// Appended; its caller does not wait.
    Lazy,
    /// Written, but its caller does not wait.
    LazyWritten,
    /// Acknowledged as durable, or applied, which promises the same.
    Durable,
    /// Refused for lack of space.
    NoRoom,
}

impl Ledger {
    /// Creates a ledger for a disk that is never full.
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// Creates a ledger for a disk that may be full at times.
    pub fn with_full_disk() -> Ledger {
        Ledger { may_drop_lazy: true, ..Ledger::default() }
    }

    /// Takes a note into account.
    ///
    /// # Errors
    ///
    /// Describes the unexpected result of an open.
    pub fn note(&mut self, note: &Note) -> Result<(), String> {
        match note {
            Note::Submitted { id, is_lazy } => {
                self.order.push(*id);
                self.fates.insert(*id, if *is_lazy { Fate::Lazy } else { Fate::Open });
            }
            Note::Applied(id) => {
                let fate = self.fates.get_mut(id).ok_or("applied an unknown record")?;
                *fate = match *fate {
                    Fate::Lazy => Fate::LazyWritten,
                    Fate::Open => Fate::Durable,
                    other => return Err(format!("{id} applied, and it was {other:?}")),
                };
            }
            Note::Acked(id) => match self.fates.insert(*id, Fate::Durable) {
                Some(Fate::Durable) => {}
                other => return Err(format!("{id} answered before it was applied: {other:?}")),
            },
            Note::NoRoom(id) => match self.fates.insert(*id, Fate::NoRoom) {
                Some(Fate::Open | Fate::Lazy) => {}
                other => return Err(format!("{id} refused, and it was {other:?}")),
            },
            Note::Failed(id) => {
                if let Some(Fate::Durable) = self.fates.get(id) {
                    return Err(format!("{id} applied and then failed"));
                }
            }
            Note::Opening => {}
            Note::Opened(ids) => {
                self.check(ids)?;
                self.order = ids.clone();
                self.fates = ids.iter().map(|id| (*id, Fate::Durable)).collect();
            }
            Note::Durable(ids) => {
                self.fates.extend(ids.iter().map(|id| (*id, Fate::Durable)));
            }
        }
        Ok(())
    }

    /// Checks whether `found` is possible after a crash.
    ///
    /// # Errors
    ///
    /// Describes the violation.
    pub fn check(&self, found: &[u32]) -> Result<(), String> {
        let mut left = found;
        // The first payload that is missing, among those on which later ones depend.
        let mut missing = None;
        let mut refused = None;
        for id in &self.order {
            let fate = self.fates[id];
            if left.first() != Some(id) {
                match fate {
                    Fate::Durable => return Err(format!("{id} was acknowledged and is lost")),
                    Fate::NoRoom => {}
                    Fate::Lazy if self.may_drop_lazy => {}
                    Fate::Open | Fate::Lazy | Fate::LazyWritten => missing = missing.or(Some(id)),
                }
                continue;
            }
            left = &left[1..];
            if let Some(missing) = missing {
                return Err(format!("{id} is there without {missing} before it"));
            }
            if let Some(refused) = refused {
                return Err(format!("{refused} was refused, and is there with {id} after it"));
            }
            if fate == Fate::NoRoom {
                refused = Some(id);
            }
        }
        match left.first() {
            None => Ok(()),
            Some(id) => Err(format!("{id} is there out of its place, or was never given")),
        }
    }
}
