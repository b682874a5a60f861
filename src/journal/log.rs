//! The segment being written: what the writer's thread does to the disk.
//!
//! A run is the part of a group that goes into one segment. It is written, or nothing of it stays.
//!
//! A write that finds the disk full is undone: the file is cut back to what it held before, and the
//! position is as if nothing had been tried. Any other failure, one of a sync above all, is final:
//! the page cache may then show bytes the disk does not have, and a second sync may answer for pages
//! the first one gave up on.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::error::{AppendError, JournalError};
use super::frame::{self, Kind, RecordFields, SEGMENT_HEADER_BYTES, SegmentHeader, StoreUuid};
use super::fs::{FsFile, Held};
use super::mark::{Mark, Marker};
use super::reader::Position;
use super::recovery::{self, Recovered};
use super::segment::{CreateError, create_segment, io_error, is_full, segment_path};
use super::writer::{Appended, Pending};
use super::{Options, frame::record_bytes};

/// A lazy record is synced no later than this after it was written.
const LAZY_SYNC_AFTER: Duration = Duration::from_millis(50);
/// The file is grown by this many zero bytes at a time, or by a segment where that is less: what a
/// crash leaves unwritten is then zero, which recovery can tell from damage, and a full disk shows
/// before a record needs the room. On some file systems a sync also costs less where the length
/// does not change.
const ZEROS_AHEAD: u64 = 1 << 20;
/// Zeros that no record but the one that says "closed" may take: it is written on a full disk too.
const RESERVE: u64 = 4096;
/// While the disk is full it is tried at most this often.
const PROBE_PAUSE: Duration = Duration::from_millis(250);

const _: () = assert!(RESERVE >= frame::RECORD_HEADER_BYTES as u64);

/// Why a run was not written.
pub(super) enum Failure {
    /// The disk is full; nothing of the run is left.
    Full,
    /// Another process has the folder.
    Fenced,
    /// Anything else: nothing more may be written.
    Fatal(JournalError),
}

impl From<JournalError> for Failure {
    fn from(err: JournalError) -> Failure {
        Failure::Fatal(err)
    }
}

impl Failure {
    /// What an open that was interrupted by `err` ended with. Its files are new ones under other
    /// names until they are whole, so that one that found no room can be tried again; a failed sync
    /// never is.
    fn of_open(err: JournalError) -> Failure {
        match &err {
            JournalError::Io { action, source, .. } if *action != "sync" && is_full(source) => {
                Failure::Full
            }
            _ => Failure::Fatal(err),
        }
    }
}

impl From<CreateError> for Failure {
    fn from(err: CreateError) -> Failure {
        match err {
            CreateError::Full => Failure::Full,
            CreateError::Failed(err) => Failure::Fatal(err),
        }
    }
}

impl Failure {
    /// What those who wait are told.
    pub(super) fn refusal(&self) -> AppendError {
        match self {
            Failure::Full => AppendError::DiskFull,
            Failure::Fenced => AppendError::Fenced,
            Failure::Fatal(err) => AppendError::Poisoned { reason: err.to_string() },
        }
    }
}

/// What found no room, and when to try again.
#[derive(Clone, Copy)]
struct Want {
    what: Room,
    probe_at: Instant,
}

#[derive(Clone, Copy)]
enum Room {
    /// So many bytes in the segment.
    Bytes(u64),
    /// A new segment.
    Segment,
}

/// What was read, before anything is changed: all that an open has still to write.
pub(super) struct Opening {
    pub(super) options: Options,
    pub(super) held: Arc<dyn Held>,
    /// The store's identity, a new one for a new store.
    pub(super) store_uuid: StoreUuid,
    pub(super) recovered: Recovered,
    pub(super) log_bytes: Arc<AtomicU64>,
}

impl Opening {
    /// Puts the folder in order and begins the new epoch, durably. On a full disk it can be tried
    /// again, at most every [`PROBE_PAUSE`].
    pub(super) fn settle(&mut self) -> Result<Log, Failure> {
        let Options { fs, dir, .. } = &self.options;
        recovery::settle(fs.as_ref(), dir, &mut self.recovered).map_err(Failure::of_open)?;
        let mut log = Log::resume(self).map_err(Failure::of_open)?;
        log.write_run(&[Pending::own(Kind::OPENED)])?;
        log.mark();
        Ok(log)
    }

    /// When to try again.
    pub(super) fn probe_at() -> Instant {
        Instant::now() + PROBE_PAUSE
    }
}

/// The segment being written and where it stands.
pub(super) struct Log {
    options: Options,
    held: Arc<dyn Held>,
    store_uuid: StoreUuid,
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
    /// While the disk is full.
    want: Option<Want>,
    marker: Marker,
    /// Bytes of records since the last snapshot.
    log_bytes: Arc<AtomicU64>,
    /// Kept from group to group for its memory.
    buffer: Vec<u8>,
}

impl Log {
    /// Goes on where recovery ended, in a new epoch.
    fn resume(opening: &Opening) -> Result<Log, JournalError> {
        let Opening { options, held, store_uuid, recovered, log_bytes } = opening;
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
        // Zeros are written again from here on: what lay there is known to be worth nothing.
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
            buffer: Vec::new(),
        })
    }

    pub(super) fn durable_seq(&self) -> u64 {
        self.durable_seq
    }

    /// When the log wants to be called though nothing is appended.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let probe = self.want.map(|want| want.probe_at);
        [self.sync_due(), probe].into_iter().flatten().min()
    }

    fn sync_due(&self) -> Option<Instant> {
        self.unsynced_since.map(|since| since + LAZY_SYNC_AFTER)
    }

    /// Syncs what has waited long enough, and tries a full disk again. Whether appends can be taken.
    pub(super) fn tick(&mut self) -> Result<bool, Failure> {
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

    /// How many of `group` go into one segment, the next one where this one has no room for the
    /// first.
    pub(super) fn run_len(&self, group: &[Pending]) -> usize {
        let mut end =
            if self.is_full_for(group) { SEGMENT_HEADER_BYTES as u64 } else { self.offset };
        let fits = |pending: &&Pending| {
            end += record_bytes(pending.payload.len()) as u64;
            end <= self.options.segment_bytes
        };
        group.iter().take_while(fits).count().max(1)
    }

    /// Whether the segment has no room for the first of `run`. One without records always has.
    fn is_full_for(&self, run: &[Pending]) -> bool {
        let first = run.first().map_or(0, |pending| record_bytes(pending.payload.len()));
        self.offset > SEGMENT_HEADER_BYTES as u64
            && self.offset + first as u64 > self.options.segment_bytes
    }

    /// Writes `run`, all of it for one segment, and syncs it when somebody waits for it.
    pub(super) fn write_run(&mut self, run: &[Pending]) -> Result<Vec<Appended>, Failure> {
        self.check_ours()?;
        if self.is_full_for(run) {
            self.begin_segment()?;
        }
        let appended = self.write(run, RESERVE)?;
        if run.iter().any(|pending| pending.is_waited_for) {
            self.sync()?;
        }
        self.check_ours()?;
        Ok(appended)
    }

    /// What was synced has been answered: the mark may follow.
    pub(super) fn mark(&mut self) {
        if self.unsynced_since.is_none() {
            self.marker.synced(self.position);
        }
    }

    /// Zeros written at a time: no more than a segment is to hold.
    fn zeros_ahead(&self) -> u64 {
        ZEROS_AHEAD.min(self.options.segment_bytes).max(RESERVE)
    }

    /// Syncs what waits and, when the journal is closed in order, writes the record that says so.
    /// Without room for it, the next open takes the end for a crash, and loses nothing.
    pub(super) fn end(&mut self, clean: bool) -> Result<(), Failure> {
        self.check_ours()?;
        self.sync()?;
        if clean {
            let closed = Pending::own(Kind::CLOSED);
            match self.write(&[closed], 0) {
                Err(Failure::Full) => {
                    tracing::warn!("the disk is full: the journal ends as after a crash");
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

    /// Nothing more is written, marks neither.
    pub(super) fn abandon(&mut self) {
        self.marker.abandon();
    }

    /// The folder must still be the one that was locked: a process that slept through the loss of
    /// it, when somebody moved it away and made another, must not say "saved".
    fn check_ours(&self) -> Result<(), Failure> {
        match self.held.is_ours() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Fenced),
            Err(err) => Err(io_error("look at the lock in", &self.options.dir)(err).into()),
        }
    }

    /// Writes `run` and leaves `reserve` zeros after it. After a failure the position is as before.
    fn write(&mut self, run: &[Pending], reserve: u64) -> Result<Vec<Appended>, Failure> {
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

    fn write_buffer(&mut self, before: Position, reserve: u64) -> Result<(), Failure> {
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

    /// Zeros for `bytes` more and for the reserve after them.
    fn make_room(&mut self, bytes: u64, reserve: u64) -> Result<(), Failure> {
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
                self.is_without(Room::Bytes(bytes));
                Err(Failure::Full)
            }
            Err(err) => Err(io_error("write", &self.path)(err).into()),
        }
    }

    /// A full disk inside the zeros that were to prevent it (a file system that copies on write):
    /// any part of the run may be there, and must not come back after a loss of power.
    fn failed_write(&mut self, err: io::Error, before: Position) -> Failure {
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
        self.is_without(Room::Bytes(self.buffer.len() as u64));
        Failure::Full
    }

    fn is_without(&mut self, what: Room) {
        self.want = Some(Want { what, probe_at: Instant::now() + PROBE_PAUSE });
    }

    /// Tries to get what was missing, for good: written and synced.
    fn probe(&mut self, what: Room) -> Result<bool, Failure> {
        self.check_ours()?;
        let got = match what {
            Room::Segment => self.begin_segment(),
            Room::Bytes(bytes) => self.make_room(bytes, RESERVE).and_then(|()| self.sync_all()),
        };
        match got {
            Ok(()) => {
                self.want = None;
                Ok(true)
            }
            Err(Failure::Full) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn sync(&mut self) -> Result<(), Failure> {
        if self.unsynced_since.is_some() {
            self.sync_all()?;
        }
        Ok(())
    }

    fn sync_all(&mut self) -> Result<(), Failure> {
        self.file.sync_data().map_err(io_error("sync", &self.path))?;
        self.unsynced_since = None;
        self.durable_seq = self.position.seq;
        Ok(())
    }

    /// Cuts the zeros after the last record.
    fn trim(&mut self) -> Result<(), JournalError> {
        self.file.truncate(self.offset).map_err(io_error("truncate", &self.path))?;
        self.allocated = self.offset;
        self.file.sync_all().map_err(io_error("sync", &self.path))
    }

    /// Ends the segment, all of it synced, and begins the next: recovery takes damage in a segment
    /// that is not the last for damage to acknowledged data. On a full disk the old one goes on.
    fn begin_segment(&mut self) -> Result<(), Failure> {
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
                self.is_without(Room::Segment);
                return Err(err.into());
            }
        };
        // Only now: while there is no other segment, its zeros are the reserve.
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
        .map_err(|err| err.in_folder(&options.dir))
}
