//! Disk operations of the writer's thread on the current segment.
//!
//! A run is the part of a group that goes into one segment. A run is written completely or not at
//! all.
//!
//! A write that finds the disk full is undone: the file is truncated to its previous content, and the
//! position is restored. Any other failure, especially of a sync, is final: the page cache may then
//! show bytes that the disk lacks, and a second sync may succeed although the first one dropped pages.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::bytes::StoreUuid;
use super::error::{JournalError, is_full};
use super::frame::Position;
use super::frame::{self, RecordFields, RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::fs::{DirLock, FsFile};
use super::mark::{Mark, Marker};
use super::queue::{Appended, Pending};
use super::recovery::{self, Recovered};
use super::segment::{check_ours, create_segment, io_error, segment_path};
use super::{Options, frame::record_bytes};

/// Maximum delay of the sync of a lazy record.
const LAZY_SYNC_AFTER: Duration = Duration::from_millis(50);
/// Bytes of zeros by which the file grows, up to a segment. Bytes that a crash leaves unwritten are
/// then zero, which recovery can distinguish from damage, and a full disk is detected before a
/// record needs the space. On some file systems a sync is also faster when the length does not
/// change.
const ZEROS_AHEAD: u64 = 1 << 20;
/// Zeros reserved for the record of a clean close, which is written even on a full disk.
const RESERVE: u64 = 4096;
/// Pause between attempts on a full disk.
const PROBE_PAUSE: Duration = Duration::from_millis(250);

const _: () = assert!(RESERVE >= frame::RECORD_HEADER_BYTES as u64);

/// Reason why a run was not written.
pub(super) enum WriteFailure {
    /// The disk is full; the run was undone.
    Full,
    /// Another process holds the folder.
    Fenced,
    /// Any other error: nothing more may be written.
    Fatal(JournalError),
}

impl From<JournalError> for WriteFailure {
    fn from(err: JournalError) -> WriteFailure {
        match err {
            JournalError::Fenced { .. } => WriteFailure::Fenced,
            other => WriteFailure::Fatal(other),
        }
    }
}

impl WriteFailure {
    /// Classifies an error of creating files. A failure caused by lack of space can be retried,
    /// because files have temporary names until they are complete.
    fn from_create(err: JournalError) -> WriteFailure {
        if err.is_full() { WriteFailure::Full } else { WriteFailure::Fatal(err) }
    }
}

/// An allocation that failed on a full disk, and the time of the next attempt.
#[derive(Clone, Copy)]
struct Want {
    what: NeededSpace,
    probe_at: Instant,
}

#[derive(Clone, Copy)]
enum NeededSpace {
    /// Bytes in the segment.
    Bytes(u64),
    /// A new segment.
    Segment,
}

/// Result of reading the journal, before the open changes anything.
pub(super) struct Opening {
    pub(super) options: Options,
    pub(super) held: Arc<dyn DirLock>,
    /// Identity of the store; newly drawn for a new store.
    pub(super) store_uuid: StoreUuid,
    pub(super) recovered: Recovered,
    pub(super) log_bytes: Arc<AtomicU64>,
    pub(super) ends_segment: Arc<AtomicBool>,
}

impl Opening {
    /// Repairs the folder after a crash and durably begins the new epoch. On a full disk it can be
    /// retried, not more often than every [`PROBE_PAUSE`].
    pub(super) fn settle(&mut self) -> Result<Log, WriteFailure> {
        let Options { fs, dir, .. } = &self.options;
        recovery::settle(fs.as_ref(), dir, &mut self.recovered)
            .map_err(WriteFailure::from_create)?;
        let mut log = Log::resume(self).map_err(WriteFailure::from_create)?;
        log.write_run(&[Pending::own(RecordKind::OPENED)])?;
        log.mark();
        Ok(log)
    }

    /// Time of the next attempt.
    pub(super) fn probe_at() -> Instant {
        Instant::now() + PROBE_PAUSE
    }
}

/// The current segment and its position.
pub(super) struct Log {
    options: Options,
    held: Arc<dyn DirLock>,
    store_uuid: StoreUuid,
    file: Box<dyn FsFile>,
    path: PathBuf,
    segment_no: u64,
    /// Position after the last written record.
    position: Position,
    /// Offset of the next record in the file.
    offset: u64,
    /// Length of the file; zeros from `offset` on.
    allocated: u64,
    durable_seq: u64,
    /// Time at which the oldest unsynced record was written.
    unsynced_since: Option<Instant>,
    /// Set while the disk is full.
    want: Option<Want>,
    marker: Marker,
    /// Bytes of records since the last snapshot.
    log_bytes: Arc<AtomicU64>,
    /// Whether the next append begins a segment.
    ends_segment: Arc<AtomicBool>,
    /// Buffer, reused from group to group.
    buffer: Vec<u8>,
}

impl Log {
    /// Continues where recovery ended, in a new epoch.
    fn resume(opening: &Opening) -> Result<Log, JournalError> {
        let Opening { options, held, store_uuid, recovered, log_bytes, ends_segment } = opening;
        let (options, store_uuid) = (options.clone(), *store_uuid);
        let segment_no = recovered.segment_no.max(1);
        let path = segment_path(&options.dir, segment_no);
        let is_new = recovered.segment_no == 0;
        let file = if is_new {
            create_first_segment(&options, store_uuid)?
        } else {
            options.fs.open(&path).map_err(io_error("open", &path))?
        };
        let offset = if is_new { SEGMENT_HEADER_BYTES as u64 } else { recovered.offset };
        // The bytes from this offset to the end are obsolete; zeros replace them.
        file.truncate(offset).map_err(io_error("truncate", &path))?;
        file.sync_all().map_err(io_error("sync", &path))?;
        let position = Position { epoch: recovered.report.epoch, ..recovered.position };
        let mark = Mark {
            store_uuid,
            counter: recovered.mark_counter + 1,
            seq: position.seq,
            chain: position.chain,
        };
        let marker = Marker::start(options.fs.as_ref(), &options.dir, mark, options.marking)?;
        Ok(Log {
            options,
            held: Arc::clone(held),
            store_uuid,
            file,
            path,
            segment_no,
            position,
            offset,
            allocated: offset,
            durable_seq: position.seq,
            unsynced_since: None,
            want: None,
            marker,
            log_bytes: Arc::clone(log_bytes),
            ends_segment: Arc::clone(ends_segment),
            buffer: Vec::new(),
        })
    }

    pub(super) fn durable_seq(&self) -> u64 {
        self.durable_seq
    }

    /// Returns the time at which the log needs a call to `tick` even without an append.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let probe = self.want.map(|want| want.probe_at);
        [self.sync_due(), probe].into_iter().flatten().min()
    }

    fn sync_due(&self) -> Option<Instant> {
        self.unsynced_since.map(|since| since + LAZY_SYNC_AFTER)
    }

    /// Syncs lazy records that are due, and retries a full disk. Returns whether appends are accepted.
    pub(super) fn tick(&mut self) -> Result<bool, WriteFailure> {
        let now = Instant::now();
        if self.sync_due().is_some_and(|due| due <= now) {
            self.check_ours()?;
            self.sync()?;
        }
        match self.want {
            Some(want) if want.probe_at <= now => self.probe(want.what),
            Some(_) => Ok(false),
            None => Ok(true),
        }
    }

    /// Returns the number of appends of `group` that fit into one segment: the current one, or the
    /// next if the current one has no room for the first.
    pub(super) fn run_len(&self, group: &[Pending]) -> usize {
        let mut end =
            if self.is_full_for(group) { SEGMENT_HEADER_BYTES as u64 } else { self.offset };
        let fits = |pending: &&Pending| {
            end += record_bytes(pending.payload.len()) as u64;
            end <= self.options.segment_bytes
        };
        group.iter().take_while(fits).count().max(1)
    }

    /// Returns true if the segment has no room for the first append of `run`. An empty segment
    /// always has room.
    fn is_full_for(&self, run: &[Pending]) -> bool {
        let first = run.first().map_or(0, |pending| record_bytes(pending.payload.len()));
        self.offset > SEGMENT_HEADER_BYTES as u64
            && self.offset + first as u64 > self.options.segment_bytes
    }

    /// Writes `run`, which fits into one segment, and syncs it if an append waits for the sync.
    pub(super) fn write_run(&mut self, run: &[Pending]) -> Result<Vec<Appended>, WriteFailure> {
        self.check_ours()?;
        let is_asked = self.ends_segment.swap(false, Ordering::Relaxed)
            && self.offset > SEGMENT_HEADER_BYTES as u64;
        if self.is_full_for(run) {
            self.begin_segment()?;
        } else if is_asked {
            match self.begin_segment() {
                // The next snapshot asks again.
                Err(WriteFailure::Full) => self.want = None,
                begun => begun?,
            }
        }
        let appended = self.write(run, RESERVE)?;
        if run.iter().any(|pending| pending.is_waited_for) {
            self.sync()?;
        }
        self.check_ours()?;
        Ok(appended)
    }

    /// Updates the commit mark, once the synced appends have been acknowledged.
    pub(super) fn mark(&mut self) {
        if self.unsynced_since.is_none() {
            self.marker.synced(self.position);
        }
    }

    /// Number of zeros written at a time, at most a segment.
    fn zeros_ahead(&self) -> u64 {
        ZEROS_AHEAD.min(self.options.segment_bytes).max(RESERVE)
    }

    /// Syncs outstanding records and, for a clean close, writes its record. If there is no room for
    /// the record, the next open recovers as after a crash and loses nothing.
    pub(super) fn end(&mut self, clean: bool) -> Result<(), WriteFailure> {
        self.check_ours()?;
        self.sync()?;
        if clean {
            let closed = Pending::own(RecordKind::CLOSED);
            match self.write(&[closed], 0) {
                Err(WriteFailure::Full) => {
                    tracing::warn!(
                        "disk full: the journal could not record a clean close; the next open recovers as after a crash"
                    );
                }
                Err(other) => return Err(other),
                Ok(_) => {
                    self.sync()?;
                    self.trim()?;
                }
            }
            self.check_ours()?;
        }
        self.mark();
        Ok(())
    }

    /// Stops all writes, including marks.
    pub(super) fn abandon(&mut self) {
        self.marker.abandon();
    }

    /// Checks that the folder is still the locked one. A process that was suspended while the folder
    /// was replaced must not acknowledge writes.
    fn check_ours(&self) -> Result<(), WriteFailure> {
        Ok(check_ours(self.held.as_ref(), &self.options.dir)?)
    }

    /// Writes `run` and leaves `reserve` zeros after it. Restores the position after a failure.
    fn write(&mut self, run: &[Pending], reserve: u64) -> Result<Vec<Appended>, WriteFailure> {
        let before = self.position;
        let appended = self.encode(run);
        let written = self.write_buffer(before, reserve);
        if written.is_err() {
            self.position = before;
        }
        self.buffer.clear();
        written.map(|()| appended)
    }

    fn encode(&mut self, run: &[Pending]) -> Vec<Appended> {
        let unix_ms = (self.options.clock_ms)();
        run.iter()
            .map(|pending| {
                self.encode_one(pending, unix_ms);
                Appended { seq: self.position.seq, unix_ms, position: self.position }
            })
            .collect()
    }

    fn encode_one(&mut self, pending: &Pending, unix_ms: u64) {
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

    fn write_buffer(&mut self, before: Position, reserve: u64) -> Result<(), WriteFailure> {
        let len = self.buffer.len() as u64;
        self.make_room(len, reserve)?;
        if let Err(err) = self.file.write_all_at(&self.buffer, self.offset) {
            return Err(self.failed_write(err, before));
        }
        self.offset += len;
        self.log_bytes.fetch_add(len, Ordering::Relaxed);
        self.unsynced_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Allocates zeros for another `bytes` bytes and for the reserve after them.
    fn make_room(&mut self, bytes: u64, reserve: u64) -> Result<(), WriteFailure> {
        let end = self.offset + bytes + reserve;
        if end <= self.allocated {
            return Ok(());
        }
        let zeros = vec![0; (end - self.allocated).next_multiple_of(self.zeros_ahead()) as usize];
        match self.file.write_all_at(&zeros, self.allocated) {
            Ok(()) => {
                self.allocated += zeros.len() as u64;
                Ok(())
            }
            Err(err) if is_full(&err) => {
                let cut = self.file.truncate(self.allocated);
                cut.map_err(io_error("truncate", &self.path))?;
                self.is_without(NeededSpace::Bytes(bytes));
                Err(WriteFailure::Full)
            }
            Err(err) => Err(io_error("write", &self.path)(err).into()),
        }
    }

    /// Handles a failed write. On a copy-on-write file system the disk may be full despite the
    /// allocated zeros; the partly written run is then removed durably.
    fn failed_write(&mut self, err: io::Error, before: Position) -> WriteFailure {
        if !is_full(&err) {
            return io_error("write", &self.path)(err).into();
        }
        let undone = self.file.truncate(self.offset).and_then(|()| self.file.sync_all());
        if let Err(err) = undone {
            return io_error("undo a write to", &self.path)(err).into();
        }
        self.allocated = self.offset;
        self.unsynced_since = None;
        self.durable_seq = before.seq;
        self.is_without(NeededSpace::Bytes(self.buffer.len() as u64));
        WriteFailure::Full
    }

    fn is_without(&mut self, what: NeededSpace) {
        self.want = Some(Want { what, probe_at: Instant::now() + PROBE_PAUSE });
    }

    /// Retries a failed allocation, which writes and syncs zeros.
    fn probe(&mut self, what: NeededSpace) -> Result<bool, WriteFailure> {
        self.check_ours()?;
        let got = match what {
            NeededSpace::Segment => self.begin_segment(),
            NeededSpace::Bytes(bytes) => {
                self.make_room(bytes, RESERVE).and_then(|()| self.sync_all())
            }
        };
        match got {
            Ok(()) => {
                self.want = None;
                Ok(true)
            }
            Err(WriteFailure::Full) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn sync(&mut self) -> Result<(), WriteFailure> {
        if self.unsynced_since.is_some() {
            self.sync_all()?;
        }
        Ok(())
    }

    fn sync_all(&mut self) -> Result<(), WriteFailure> {
        self.file.sync_data().map_err(io_error("sync", &self.path))?;
        self.unsynced_since = None;
        self.durable_seq = self.position.seq;
        Ok(())
    }

    /// Truncates the zeros after the last record.
    fn trim(&mut self) -> Result<(), JournalError> {
        self.file.truncate(self.offset).map_err(io_error("truncate", &self.path))?;
        self.allocated = self.offset;
        self.file.sync_all().map_err(io_error("sync", &self.path))
    }

    /// Syncs the segment and begins the next: recovery treats damage in any segment but the last as
    /// damage to acknowledged data. On a full disk the old segment stays in use.
    fn begin_segment(&mut self) -> Result<(), WriteFailure> {
        self.sync()?;
        let header = SegmentHeader {
            store_uuid: self.store_uuid,
            segment_no: self.segment_no + 1,
            first_seq: self.position.seq + 1,
            prev_chain: self.position.chain,
        };
        let (fs, dir) = (self.options.fs.as_ref(), &self.options.dir);
        let file = match create_segment(fs, dir, &header, self.zeros_ahead()) {
            Ok(file) => file,
            Err(err) => {
                self.is_without(NeededSpace::Segment);
                return Err(WriteFailure::from_create(err));
            }
        };
        // Truncate only now: until the new segment exists, these zeros are the reserve.
        self.trim()?;
        self.file = file;
        self.segment_no = header.segment_no;
        self.path = segment_path(&self.options.dir, self.segment_no);
        self.offset = SEGMENT_HEADER_BYTES as u64;
        self.allocated = self.zeros_ahead();
        Ok(())
    }
}

fn create_first_segment(
    options: &Options,
    store_uuid: StoreUuid,
) -> Result<Box<dyn FsFile>, JournalError> {
    let header = SegmentHeader { store_uuid, segment_no: 1, first_seq: 1, prev_chain: [0; 16] };
    create_segment(options.fs.as_ref(), &options.dir, &header, 0)
}
