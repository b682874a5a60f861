//! Queue of appends between the journal's handle and its writer thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::PAYLOAD_BYTES_MAX;
use super::error::AppendError;
use super::frame::Position;
use super::frame::RecordKind;

/// Maximum number of waiting appends; if it is reached, the disk does not keep up.
const QUEUE_RECORDS_MAX: usize = 8_192;
/// Maximum bytes of waiting payload.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of payload per sync, to bound the latency of the first append.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// A durable append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its sequence number.
    pub seq: u64,
    /// Time of the write, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// Position after the record, for a snapshot of the resulting state.
    pub position: Position,
}

pub(super) type Done = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;

/// An append in the queue.
pub(super) struct Pending {
    pub(super) kind: RecordKind,
    pub(super) payload: Vec<u8>,
    /// True if the group of this append must be synced.
    pub(super) is_waited_for: bool,
    pub(super) done: Option<Done>,
}

/// State shared by the journal's handle and its thread.
pub(super) struct Shared {
    queue: Mutex<WriteQueue>,
    /// Signals work or a change of state.
    work: Condvar,
    /// Signals room or a change of state.
    room: Condvar,
    /// Signals a sync or a change of state.
    synced: Condvar,
}

pub(super) struct WriteQueue {
    waiting: VecDeque<Pending>,
    payload_bytes: usize,
    pub(super) durable_seq: u64,
    pub(super) state: WriterState,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum WriterState {
    Open,
    /// The disk is full, until the writer finds room.
    Full,
    /// Write waiting appends, then end; `clean` adds the record of a clean close.
    Ending {
        clean: bool,
    },
    Closed,
    /// Another process holds the folder.
    Fenced,
    Poisoned {
        reason: String,
    },
}

impl Shared {
    pub(super) fn new(state: WriterState, durable_seq: u64) -> Shared {
        Shared {
            queue: Mutex::new(WriteQueue {
                waiting: VecDeque::new(),
                payload_bytes: 0,
                durable_seq,
                state,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            synced: Condvar::new(),
        }
    }

    /// Locks the queue. No code panics while it holds this lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, WriteQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn submit(&self, pending: Pending, wait_max: Duration) -> Result<(), AppendError> {
        let len = pending.payload.len();
        if len > PAYLOAD_BYTES_MAX {
            return Err(AppendError::TooLong { len });
        }
        let mut queue = self.lock();
        let mut deadline = None;
        loop {
            if queue.state != WriterState::Open {
                return Err(queue.state.refusal());
            }
            if queue.has_room(len) {
                break;
            }
            let now = Instant::now();
            let left = deadline.get_or_insert(now + wait_max).saturating_duration_since(now);
            if left.is_zero() {
                return Err(AppendError::Busy);
            }
            queue = self.room.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let was_idle = queue.waiting.is_empty();
        queue.payload_bytes += len;
        queue.waiting.push_back(pending);
        drop(queue);
        // The writer takes all waiting appends, so only the first of a group wakes it.
        if was_idle {
            self.work.notify_one();
        }
        Ok(())
    }

    pub(super) fn refusal(&self) -> AppendError {
        self.lock().state.refusal()
    }

    /// Waits until record `seq` is synced.
    ///
    /// # Errors
    /// The journal failed or was closed before that.
    pub(super) fn wait_durable(&self, seq: u64) -> Result<(), AppendError> {
        let mut queue = self.lock();
        while queue.durable_seq < seq {
            if queue.state.is_final() {
                return Err(queue.state.refusal());
            }
            queue = self.synced.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    pub(super) fn synced(&self, durable_seq: u64) {
        let mut queue = self.lock();
        if queue.durable_seq < durable_seq {
            queue.durable_seq = durable_seq;
            drop(queue);
            self.synced.notify_all();
        }
    }

    /// Waits for appends; `None` when the journal ends and nothing is left to write. An empty group
    /// means that `wake_at` has passed.
    pub(super) fn next_group(&self, wake_at: Option<Instant>) -> Option<Vec<Pending>> {
        let mut queue = self.lock();
        loop {
            if !queue.waiting.is_empty() {
                let group = queue.take_group();
                self.room.notify_all();
                return Some(group);
            }
            if !matches!(queue.state, WriterState::Open | WriterState::Full) {
                return None;
            }
            queue = match wake_at.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.work.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Some(Vec::new()),
                Some(left) => {
                    self.work.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Refuses new appends and asks the writer to end once it has written the waiting ones.
    pub(super) fn end(&self, clean: bool) {
        {
            let mut queue = self.lock();
            if matches!(queue.state, WriterState::Open | WriterState::Full) {
                queue.state = WriterState::Ending { clean };
            }
        }
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Accepts appends again after a full disk.
    pub(super) fn reopen(&self) {
        let mut queue = self.lock();
        if queue.state == WriterState::Full {
            queue.state = WriterState::Open;
            tracing::info!("the disk has room again; the journal accepts writes");
        }
    }

    /// Changes the state and rejects all waiting appends. A shutdown continues if the disk is
    /// merely full.
    pub(super) fn refuse_all(&self, state: WriterState) {
        let refusal = state.refusal();
        let left = {
            let mut queue = self.lock();
            let is_ending = matches!(queue.state, WriterState::Ending { .. });
            if !(state == WriterState::Full && is_ending) {
                queue.state = state;
            }
            queue.payload_bytes = 0;
            std::mem::take(&mut queue.waiting)
        };
        self.room.notify_all();
        self.synced.notify_all();
        for pending in left {
            pending.answer(Err(refusal.clone()));
        }
    }
}

impl WriteQueue {
    fn has_room(&self, len: usize) -> bool {
        self.waiting.len() < QUEUE_RECORDS_MAX && self.payload_bytes + len <= QUEUE_BYTES_MAX
    }

    fn take_group(&mut self) -> Vec<Pending> {
        let mut bytes = 0;
        let take = self
            .waiting
            .iter()
            .take_while(|pending| {
                let fits = bytes == 0 || bytes + pending.payload.len() <= GROUP_BYTES_MAX;
                bytes += pending.payload.len();
                fits
            })
            .count();
        let group: Vec<Pending> = self.waiting.drain(..take).collect();
        self.payload_bytes -= group.iter().map(|pending| pending.payload.len()).sum::<usize>();
        group
    }
}

impl WriterState {
    pub(super) fn refusal(&self) -> AppendError {
        match self {
            WriterState::Poisoned { reason } => AppendError::Poisoned { reason: reason.clone() },
            WriterState::Full => AppendError::DiskFull,
            WriterState::Fenced => AppendError::Fenced,
            WriterState::Open | WriterState::Ending { .. } | WriterState::Closed => {
                AppendError::Closed
            }
        }
    }

    /// Returns true if nothing more will be written or synced.
    fn is_final(&self) -> bool {
        matches!(self, WriterState::Closed | WriterState::Fenced | WriterState::Poisoned { .. })
    }
}

impl Pending {
    /// Builds a record of the journal itself.
    pub(super) fn own(kind: RecordKind) -> Pending {
        Pending { kind, payload: Vec::new(), is_waited_for: true, done: None }
    }

    pub(super) fn answer(self, result: Result<Appended, AppendError>) {
        if let Some(done) = self.done {
            done(result);
        }
    }
}
