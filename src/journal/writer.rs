//! One thread writes. It takes all appends that wait, writes them in one go, syncs once, and then,
//! in order of sequence numbers, applies and answers each. The sync is what costs (milliseconds), so
//! sixty-four waiting writers share one.
//!
//! After a failed write or sync nothing is tried again: the page cache may then show bytes the disk
//! does not have, and a second sync may answer for pages the first one gave up on. Appends are
//! refused until the next open, which reads what the disk has.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::error::{AppendError, JournalError};
use super::frame::{self, Kind, Record, RecordFields, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::fs::FsFile;
use super::reader::Position;
use super::recovery::{
    self, Recovered, Recovery, ReplayResult, create_segment, io_error, segment_path,
};
use super::{Options, PAYLOAD_BYTES_MAX};

/// Appends that may wait: more than that means the disk does not keep up.
const QUEUE_RECORDS_MAX: usize = 8_192;
/// Bytes of payload that may wait.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// Bytes of payload written under one sync at most, so that the first waiter is not kept long.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// How long [`Journal::append`] waits for room in the queue before it gives up.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(2);
/// A lazy record is synced no later than this after it was written.
const LAZY_SYNC_AFTER: Duration = Duration::from_millis(50);
/// The file is grown by this many zero bytes at a time: what a crash leaves unwritten is then zero,
/// which recovery can tell from damage, and a full disk shows before a record needs the room. On some
/// file systems a sync also costs less where the length does not change.
const ZEROS_AHEAD: u64 = 1 << 20;
/// The file whose lock says that the journal is in use.
const LOCK_FILE: &str = "LOCK";

/// An open journal. Dropping it writes and syncs what waits; [`Journal::close`] also leaves a record
/// that says so.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held for its lock, which ends with the last handle, however the process ends.
    _lock: File,
}

/// An append that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its place in the store.
    pub seq: u64,
    /// When it was written: milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

/// An append that is on its way.
pub struct Answer {
    answered: oneshot::Receiver<Result<Appended, AppendError>>,
    shared: Arc<Shared>,
}

impl Answer {
    /// Waits until the append is durable and applied.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`] when it could not be written or synced.
    pub async fn durable(self) -> Result<Appended, AppendError> {
        self.answered.await.unwrap_or_else(|_| Err(self.shared.refusal()))
    }
}

type Done = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;

struct Pending {
    kind: Kind,
    payload: Vec<u8>,
    /// `None` for a lazy append: nobody waits.
    done: Option<Done>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// There is work, or the state has changed.
    work: Condvar,
    /// There is room, or the state has changed.
    room: Condvar,
}

struct Queue {
    waiting: VecDeque<Pending>,
    payload_bytes: usize,
    state: State,
}

#[derive(Clone, PartialEq, Eq)]
enum State {
    Open,
    /// Write what waits, then end; `clean` adds the record that says so.
    Ending {
        clean: bool,
    },
    Closed,
    Poisoned {
        reason: String,
    },
}

impl Journal {
    /// Opens the journal in `options.dir`, making it when there is none, and hands every record of
    /// the caller's kinds to `replay`, in order. The record of this open is on disk when it returns.
    ///
    /// # Errors
    /// [`JournalError`]: in use, damaged, or the disk failed. Damage changes nothing on disk.
    pub fn open(
        options: Options,
        mut replay: impl FnMut(&Record<'_>) -> ReplayResult,
    ) -> Result<(Journal, Recovery), JournalError> {
        let dir = options.dir.clone();
        options.fs.create_dir_all(&dir).map_err(io_error("create", &dir))?;
        let lock = lock(&dir)?;
        let recovered = recovery::recover(options.fs.as_ref(), &dir, &mut replay)?;
        let report = recovered.report.clone();
        log_recovery(&dir, &report);
        let log = Log::resume(options, recovered)?;
        let shared = Arc::new(Shared::new());
        let writer = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("journal".into())
            .spawn(move || write_until_end(&writer, log))
            .map_err(io_error("start the writer thread of", &dir))?;
        let journal = Journal { shared, thread: Mutex::new(Some(thread)), _lock: lock };
        journal
            .append(Kind::OPENED, Vec::new(), |_| {})
            .map_err(|source| JournalError::FirstAppend { dir, source })?;
        Ok((journal, report))
    }

    /// Appends and waits until it is durable. `apply` runs on the writer's thread once it is, in
    /// order of sequence numbers, before this returns. Blocks: not for async code.
    ///
    /// # Errors
    /// [`AppendError`]; `apply` has not run then.
    pub fn append(
        &self,
        kind: Kind,
        payload: Vec<u8>,
        apply: impl FnOnce(Appended) + Send + 'static,
    ) -> Result<Appended, AppendError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let done = applying(apply, move |result| {
            // Nobody waits when the waiting thread has been torn down; the record stands.
            let _ = answer.send(result);
        });
        self.shared.submit(Pending { kind, payload, done: Some(done) }, ROOM_WAIT_MAX)?;
        answered.recv().unwrap_or_else(|_| Err(self.shared.refusal()))
    }

    /// As [`Journal::append`], for async code: enqueues at once and returns what to await. The
    /// record is written even when nobody does.
    ///
    /// # Errors
    /// [`AppendError::Busy`] at once when the queue is full, and what else refuses an append.
    pub fn append_async(
        &self,
        kind: Kind,
        payload: Vec<u8>,
        apply: impl FnOnce(Appended) + Send + 'static,
    ) -> Result<Answer, AppendError> {
        let (answer, answered) = oneshot::channel();
        let done = applying(apply, move |result| {
            // The future was dropped: nobody wants to know.
            let _ = answer.send(result);
        });
        self.shared.submit(Pending { kind, payload, done: Some(done) }, Duration::ZERO)?;
        Ok(Answer { answered, shared: Arc::clone(&self.shared) })
    }

    /// Appends without waiting: in the page cache at once (it survives SIGKILL), on disk with the
    /// next group or within 50 ms.
    ///
    /// # Errors
    /// [`AppendError`]; nothing has been written then.
    pub fn append_lazy(&self, kind: Kind, payload: Vec<u8>) -> Result<(), AppendError> {
        self.shared.submit(Pending { kind, payload, done: None }, Duration::ZERO)
    }

    /// Whether appends are taken.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`] after a failed write or sync, [`AppendError::Closed`] after a close.
    pub fn health(&self) -> Result<(), AppendError> {
        let queue = self.shared.lock();
        if queue.state == State::Open { Ok(()) } else { Err(queue.state.refusal()) }
    }

    /// Writes and syncs what waits, then a record that the journal was closed in order. Appends are
    /// refused from now on. A second close does nothing.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`] when something could not be written, now or earlier.
    pub fn close(&self) -> Result<(), AppendError> {
        self.end(true);
        match self.shared.refusal() {
            AppendError::Closed => Ok(()),
            refusal => Err(refusal),
        }
    }

    fn end(&self, clean: bool) {
        {
            let mut queue = self.shared.lock();
            if queue.state == State::Open {
                queue.state = State::Ending { clean };
            }
        }
        self.shared.work.notify_all();
        self.shared.room.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there has poisoned the state already; joining is for the order of things.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// Takes the lock of the folder, which ends with the process.
fn lock(dir: &Path) -> Result<File, JournalError> {
    let path = dir.join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io_error("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked { dir: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io_error("lock", &path)(source)),
    }
}

fn log_recovery(dir: &Path, report: &Recovery) {
    if let Some(torn) = &report.torn {
        tracing::warn!(
            journal.segment = %torn.segment.display(),
            journal.offset = torn.offset,
            journal.bytes = torn.bytes,
            journal.kept_as = torn.kept_as.as_ref().map(|path| path.display().to_string()),
            "cut the tail of a write that a crash interrupted; nobody was told it was saved"
        );
    }
    tracing::info!(
        journal.dir = %dir.display(),
        journal.records = report.records,
        journal.last_seq = report.last_seq,
        journal.epoch = report.epoch,
        journal.clean = report.clean,
        "journal opened"
    );
}

fn applying(
    apply: impl FnOnce(Appended) + Send + 'static,
    answer: impl FnOnce(Result<Appended, AppendError>) + Send + 'static,
) -> Done {
    Box::new(move |result| {
        if let Ok(appended) = &result {
            apply(*appended);
        }
        answer(result);
    })
}

impl Shared {
    fn new() -> Shared {
        Shared {
            queue: Mutex::new(Queue {
                waiting: VecDeque::new(),
                payload_bytes: 0,
                state: State::Open,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// The queue. No code panics while it holds this lock.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(&self, pending: Pending, wait_max: Duration) -> Result<(), AppendError> {
        let len = pending.payload.len();
        if len > PAYLOAD_BYTES_MAX {
            return Err(AppendError::TooLong { len });
        }
        let mut queue = self.lock();
        let mut deadline = None;
        loop {
            if queue.state != State::Open {
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
        // The writer takes all that waits, so only the first of a group needs to wake it.
        if was_idle {
            self.work.notify_one();
        }
        Ok(())
    }

    fn refusal(&self) -> AppendError {
        self.lock().state.refusal()
    }

    /// Waits for appends; `None` when the journal is to end and nothing is left to write. An empty
    /// group means that `wake_at` has come.
    fn next_group(&self, wake_at: Option<Instant>) -> Option<Vec<Pending>> {
        let mut queue = self.lock();
        loop {
            if !queue.waiting.is_empty() {
                let group = queue.take_group();
                self.room.notify_all();
                return Some(group);
            }
            if queue.state != State::Open {
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

    /// Ends in `state` and answers all that still wait.
    fn finish(&self, state: State) {
        let left = {
            let mut queue = self.lock();
            queue.state = state.clone();
            queue.payload_bytes = 0;
            std::mem::take(&mut queue.waiting)
        };
        self.room.notify_all();
        for pending in left {
            pending.answer(Err(state.refusal()));
        }
    }
}

impl Queue {
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

impl State {
    fn refusal(&self) -> AppendError {
        match self {
            State::Poisoned { reason } => AppendError::Poisoned { reason: reason.clone() },
            State::Open | State::Ending { .. } | State::Closed => AppendError::Closed,
        }
    }
}

impl Pending {
    fn answer(self, result: Result<Appended, AppendError>) {
        if let Some(done) = self.done {
            done(result);
        }
    }
}

/// Poisons the journal should the writer's thread panic, so that nobody waits for ever.
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.finish(State::Poisoned { reason: "the writer's thread panicked".into() });
        }
    }
}

/// The writer's thread.
fn write_until_end(shared: &Shared, mut log: Log) {
    let _guard = OnPanic(shared);
    let end = match write_groups(shared, &mut log) {
        Ok(()) => end_of(shared, &mut log),
        Err(err) => Err(err),
    };
    shared.finish(match end {
        Ok(()) => State::Closed,
        Err(err) => {
            tracing::error!(error = %err, "the journal takes no more writes until a restart");
            State::Poisoned { reason: err.to_string() }
        }
    });
}

fn write_groups(shared: &Shared, log: &mut Log) -> Result<(), JournalError> {
    while let Some(group) = shared.next_group(log.sync_due()) {
        let is_waited_for = group.iter().any(|pending| pending.done.is_some());
        let appended = log.write(&group).and_then(|appended| {
            if is_waited_for || log.sync_due().is_some_and(|due| due <= Instant::now()) {
                log.sync()?;
            }
            Ok(appended)
        });
        match appended {
            Ok(appended) => {
                for (pending, appended) in group.into_iter().zip(appended) {
                    pending.answer(Ok(appended));
                }
            }
            Err(err) => {
                let reason = err.to_string();
                // Refuse new appends before anybody learns that an old one failed.
                shared.finish(State::Poisoned { reason: reason.clone() });
                for pending in group {
                    pending.answer(Err(AppendError::Poisoned { reason: reason.clone() }));
                }
                return Err(err);
            }
        }
    }
    Ok(())
}

fn end_of(shared: &Shared, log: &mut Log) -> Result<(), JournalError> {
    let clean = shared.lock().state == State::Ending { clean: true };
    log.sync()?;
    if clean {
        log.write(&[Pending { kind: Kind::CLOSED, payload: Vec::new(), done: None }])?;
        log.sync()?;
        log.trim()?;
    }
    Ok(())
}

/// The segment being written and where it stands.
struct Log {
    options: Options,
    store_uuid: frame::StoreUuid,
    file: Box<dyn FsFile>,
    path: PathBuf,
    segment_no: u64,
    /// After the last record written.
    position: Position,
    /// Where the next record goes, in bytes from the start of the file.
    offset: u64,
    /// Length of the file: zeros from `offset` on.
    allocated: u64,
    durable_seq: u64,
    /// When the oldest record that is written and not synced was written.
    unsynced_since: Option<Instant>,
    /// Kept from group to group for its memory.
    buffer: Vec<u8>,
}

impl Log {
    /// Goes on where recovery ended, in a new epoch.
    fn resume(options: Options, recovered: Recovered) -> Result<Log, JournalError> {
        let is_new = recovered.segment_no == 0;
        let store_uuid = if is_new { random_uuid()? } else { recovered.store_uuid };
        let segment_no = recovered.segment_no.max(1);
        let path = segment_path(&options.dir, segment_no);
        let file = if is_new {
            let header =
                SegmentHeader { store_uuid, segment_no, first_seq: 1, prev_chain: [0; 16] };
            create_segment(options.fs.as_ref(), &options.dir, &header)?
        } else {
            options.fs.open(&path).map_err(io_error("open", &path))?
        };
        let offset = if is_new { SEGMENT_HEADER_BYTES as u64 } else { recovered.offset };
        // Zeros are written again from here on: what lay there is known to be worth nothing, and a
        // record that SIGKILL left in the page cache alone must be synced before it counts.
        file.truncate(offset).map_err(io_error("truncate", &path))?;
        file.sync_all().map_err(io_error("sync", &path))?;
        let position = Position { epoch: recovered.report.epoch, ..recovered.position };
        Ok(Log {
            options,
            store_uuid,
            file,
            path,
            segment_no,
            position,
            offset,
            allocated: offset,
            durable_seq: position.seq,
            unsynced_since: None,
            buffer: Vec::new(),
        })
    }

    fn sync_due(&self) -> Option<Instant> {
        self.unsynced_since.map(|since| since + LAZY_SYNC_AFTER)
    }

    /// Writes records for `group`, beginning new segments where one is full. Syncs nothing but
    /// segments that are full.
    fn write(&mut self, group: &[Pending]) -> Result<Vec<Appended>, JournalError> {
        let unix_ms = (self.options.clock_ms)();
        let mut appended = Vec::with_capacity(group.len());
        for pending in group {
            let end = self.offset
                + (self.buffer.len() + frame::record_bytes(pending.payload.len())) as u64;
            let has_records = self.offset + self.buffer.len() as u64 > SEGMENT_HEADER_BYTES as u64;
            if end > self.options.segment_bytes && has_records {
                self.flush()?;
                self.begin_segment()?;
            }
            self.encode(pending, unix_ms);
            appended.push(Appended { seq: self.position.seq, unix_ms });
        }
        self.flush()?;
        Ok(appended)
    }

    fn encode(&mut self, pending: &Pending, unix_ms: u64) {
        let fields = RecordFields {
            seq: self.position.seq + 1,
            durable_seq: self.durable_seq,
            epoch: self.position.epoch,
            kind: pending.kind,
            flags: 0,
            unix_ms,
        };
        self.position.chain = frame::encode_record(
            &mut self.buffer,
            &self.store_uuid,
            &self.position.chain,
            &fields,
            &pending.payload,
        );
        self.position.seq = fields.seq;
    }

    fn flush(&mut self) -> Result<(), JournalError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_zeros_ahead()?;
        self.file.write_all_at(&self.buffer, self.offset).map_err(io_error("write", &self.path))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        self.unsynced_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn write_zeros_ahead(&mut self) -> Result<(), JournalError> {
        let end = self.offset + self.buffer.len() as u64;
        if end <= self.allocated {
            return Ok(());
        }
        let zeros = vec![0; (end - self.allocated).next_multiple_of(ZEROS_AHEAD) as usize];
        self.file.write_all_at(&zeros, self.allocated).map_err(io_error("write", &self.path))?;
        self.allocated += zeros.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if self.unsynced_since.is_some() {
            self.file.sync_data().map_err(io_error("sync", &self.path))?;
            self.unsynced_since = None;
            self.durable_seq = self.position.seq;
        }
        Ok(())
    }

    /// Cuts the zeros after the last record.
    fn trim(&mut self) -> Result<(), JournalError> {
        self.file.truncate(self.offset).map_err(io_error("truncate", &self.path))?;
        self.allocated = self.offset;
        self.file.sync_all().map_err(io_error("sync", &self.path))
    }

    /// Ends the segment, all of it synced, and begins the next: recovery takes damage in a segment
    /// that is not the last for damage to acknowledged data.
    fn begin_segment(&mut self) -> Result<(), JournalError> {
        self.sync()?;
        self.trim()?;
        let header = SegmentHeader {
            store_uuid: self.store_uuid,
            segment_no: self.segment_no + 1,
            first_seq: self.position.seq + 1,
            prev_chain: self.position.chain,
        };
        self.file = create_segment(self.options.fs.as_ref(), &self.options.dir, &header)?;
        self.segment_no = header.segment_no;
        self.path = segment_path(&self.options.dir, self.segment_no);
        self.offset = SEGMENT_HEADER_BYTES as u64;
        self.allocated = self.offset;
        Ok(())
    }
}

fn random_uuid() -> Result<frame::StoreUuid, JournalError> {
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(|err| JournalError::Random(err.to_string()))?;
    Ok(uuid)
}
