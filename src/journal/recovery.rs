//! Recovers a journal from its files.
//!
//! Recovery reads the newest undamaged snapshot, then all segments, and verifies each record against
//! the chain; records after the snapshot are replayed. `tail` classifies the bytes where the log
//! ends. Nothing is changed before everything has been read and checked.
//!
//! After a crash, the intact part of the last segment is written to a new file and synced; it then
//! replaces the old file, which is kept as `.prev`. After a failed sync the page cache may show
//! bytes that the disk lacks, and a process that still has the old file open must not reach the new
//! one. The removed tail is kept as `.torn`. After a crash at any step, the next recovery produces
//! the same bytes.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bytes::{HeaderError, StoreUuid};
use super::error::{Damage, JournalError, SnapshotDamage};
use super::frame::Position;
use super::frame::{Chain, Record, RecordKind, SegmentHeader, record_bytes};
use super::fs::Fs;
use super::mark::{self, FoundMark};
use super::reader::{WalkEnd, walk};
use super::replay::{Replay, ReplayResult, Unread};
use super::segment::{
    MARK_FILE, PREVIOUS_SUFFIX, SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, TORN_SUFFIX, copy, exists,
    io_error, list_numbered, remove_temporaries, rename_durably, replace, temporary_path,
    write_new,
};
use super::snapshot::{ReadError, SnapshotReport, Verified, read_snapshot};
use super::tail::{Ending, SyncedRecord, Tail, trailing_zeros};

/// Report of an open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records read, including the journal's own and those before the snapshot.
    pub records: u64,
    /// Number of segments.
    pub segments: u64,
    /// The sequence number of the last undamaged record; 0 for a new journal.
    pub last_seq: u64,
    /// Time at which this record was written, in Unix time; 0 for a new journal.
    pub last_unix_ms: u64,
    /// Position after the last record, to which the replayed state corresponds.
    pub position: Position,
    /// The number of this open, from 1.
    pub epoch: u32,
    /// True if the previous open was closed cleanly, or if the journal is new.
    pub clean: bool,
    /// The removed tail, if any.
    pub torn: Option<TornTail>,
    /// The old file of the segment as the crash left it, if the segment was rewritten.
    pub rewritten: Option<PathBuf>,
    /// The last synced record according to the commit mark; `None` without an undamaged mark.
    pub mark: Option<u64>,
    /// The snapshot with which the replay began.
    pub snapshot: Option<SnapshotReport>,
    /// Newer snapshots that were damaged.
    pub damaged_snapshots: Vec<DamagedSnapshot>,
    /// Bytes of records after the snapshot.
    pub log_bytes: u64,
}

/// A damaged snapshot in whose place an older one was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedSnapshot {
    /// The file.
    pub path: PathBuf,
    pub damage: String,
}

/// Unacknowledged bytes at the end of the log after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment that held these bytes.
    pub segment: PathBuf,
    /// Their offset in the file.
    pub offset: u64,
    /// Number of these bytes, not counting trailing zeros.
    pub bytes: u64,
    /// File that keeps these bytes; `None` after an inspection, which changes nothing.
    pub kept_as: Option<PathBuf>,
}

/// A segment as an inspection shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentFacts {
    /// The file; not serialised.
    #[serde(skip)]
    pub path: PathBuf,
    /// Its number, from 1.
    pub segment_no: u64,
    /// The sequence number of its first record.
    pub first_seq: u64,
    /// Sound records in it.
    pub records: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// Visitor of records, called with segment and offset.
pub type Visit<'a> = dyn FnMut(&Path, u64, &Record<'_>) -> ReplayResult + 'a;

/// Result of recovery for the writer.
#[derive(Default)]
pub(super) struct Recovered {
    /// `None` for a new journal.
    pub(super) store_uuid: Option<StoreUuid>,
    pub(super) position: Position,
    /// Number of the last segment; 0 if none exists.
    pub(super) segment_no: u64,
    /// Offset of the next record in the segment.
    pub(super) offset: u64,
    /// Counter of the commit mark; 0 without one.
    pub(super) mark_counter: u64,
    pub(super) report: Recovery,
    pub(super) segments: Vec<SegmentFacts>,
    /// Content of the last segment.
    last: Vec<u8>,
}

/// Removes a torn tail, rewrites the last segment after a crash, and removes unfinished files. Can be
/// called again after a failure for lack of space.
///
/// # Errors
/// The disk failed, or is full.
pub(super) fn settle(
    fs: &dyn Fs,
    dir: &Path,
    recovered: &mut Recovered,
) -> Result<(), JournalError> {
    // This is done first, because the files of a failed attempt take space.
    remove_temporaries(fs, dir)?;
    let (sound, rest) = recovered.last.split_at(recovered.offset as usize);
    let report = &mut recovered.report;
    if let Some(torn) = &mut report.torn
        && torn.kept_as.is_none()
    {
        torn.kept_as = Some(keep_tail(fs, torn, &rest[..torn.bytes as usize])?);
    }
    // A clean close writes the mark after its sync. Without that mark, the page cache may show the
    // record of the close although the disk lacks it.
    let is_known_durable = report.mark == Some(report.last_seq);
    if let Some(segment) = recovered.segments.last()
        && !(report.clean && is_known_durable)
        && report.rewritten.is_none()
    {
        report.rewritten = Some(rewrite(fs, &segment.path, sound, rest)?);
    }
    Ok(())
}

/// Visits every record in `dir` with its segment and offset, including the journal's own records and
/// those before the snapshot. Stops after record `up_to`, if given; otherwise the end is checked as in
/// an open. Changes nothing.
///
/// # Errors
/// [`JournalError`], as in an open, and [`JournalError::Replay`] if `visit` returns an error.
pub fn dump(
    fs: &dyn Fs,
    dir: &Path,
    up_to: Option<u64>,
    visit: &mut Visit<'_>,
) -> Result<Recovery, JournalError> {
    let found = LogFolder::read(fs, dir, &mut Unread)?;
    Ok(LogReader::new(fs, found, up_to).read_all(visit)?.report)
}

/// Reads the snapshot, then the log, up to record `up_to` if given; changes nothing.
pub(super) fn read_journal(
    fs: &dyn Fs,
    dir: &Path,
    up_to: Option<u64>,
    replay: &mut dyn Replay,
) -> Result<Recovered, JournalError> {
    let found = LogFolder::read(fs, dir, replay)?;
    let after = found.snapshot_position().seq;
    LogReader::new(fs, found, up_to).read_all(&mut |_, _, record| {
        if record.fields.seq > after && !record.fields.kind.is_journals_own() {
            replay.record(record)?;
        }
        Ok(())
    })
}

/// Files beside the log.
struct LogFolder<'a> {
    dir: &'a Path,
    segments: Vec<(u64, PathBuf)>,
    mark: FoundMark,
    snapshot: Option<Verified>,
    damaged: Vec<DamagedSnapshot>,
}

impl<'a> LogFolder<'a> {
    /// Finds the newest undamaged snapshot and replays it.
    fn read(
        fs: &dyn Fs,
        dir: &'a Path,
        replay: &mut dyn Replay,
    ) -> Result<LogFolder<'a>, JournalError> {
        let segments = list_numbered(fs, dir, SEGMENT_SUFFIX)?;
        let (mut snapshot, mut damaged) = (None, Vec::new());
        for (seq, path) in list_numbered(fs, dir, SNAPSHOT_SUFFIX)?.into_iter().rev() {
            match load_snapshot(fs, &path, seq, replay) {
                Ok(verified) => {
                    snapshot = Some(verified);
                    break;
                }
                Err(ReadError::Refused(source)) => {
                    return Err(JournalError::ReplaySnapshot { path, source });
                }
                // A newer dropdex wrote the snapshot, and may have written records that this one
                // cannot read.
                Err(ReadError::Damage(
                    source @ SnapshotDamage::Header(HeaderError::Newer { .. }),
                )) => {
                    return Err(JournalError::Snapshot { path, source });
                }
                Err(ReadError::Damage(damage)) => {
                    damaged.push(DamagedSnapshot { path, damage: damage.to_string() });
                }
            }
        }
        if snapshot.is_none() {
            replay.reset();
        }
        Ok(LogFolder { dir, segments, mark: mark::read(fs, dir)?, snapshot, damaged })
    }

    /// Returns the position of the snapshot or, without one, the position before the first record.
    fn snapshot_position(&self) -> Position {
        self.snapshot.as_ref().map_or_else(Position::default, |it| it.header.position)
    }
}

/// Reads the snapshot twice: first to verify it, then to replay its chunks.
fn load_snapshot(
    fs: &dyn Fs,
    path: &Path,
    named: u64,
    replay: &mut dyn Replay,
) -> Result<Verified, ReadError> {
    let verified = read_snapshot(fs, path, &mut |_| Ok(()))?;
    let found = verified.report.seq;
    if found != named {
        return Err(SnapshotDamage::Misnamed { named, found }.into());
    }
    replay.reset();
    read_snapshot(fs, path, &mut |chunk| replay.chunk(chunk))?;
    Ok(verified)
}

/// State of reading the log.
struct LogReader<'a> {
    fs: &'a dyn Fs,
    found: LogFolder<'a>,
    up_to: Option<u64>,
    known: SyncedRecord,
    so_far: Recovered,
}

impl<'a> LogReader<'a> {
    fn new(fs: &'a dyn Fs, found: LogFolder<'a>, up_to: Option<u64>) -> LogReader<'a> {
        let mut known = SyncedRecord::default();
        if let Some(mark) = found.mark.sound() {
            known.learn(mark.seq, "the commit mark");
        }
        known.learn(found.snapshot_position().seq, "a snapshot");
        known.learn(up_to.unwrap_or(0), "the process that has the journal open");
        let report = Recovery {
            clean: true,
            mark: found.mark.sound().map(|mark| mark.seq),
            snapshot: found.snapshot.as_ref().map(|it| it.report.clone()),
            damaged_snapshots: found.damaged.clone(),
            ..Recovery::default()
        };
        let mark_counter = found.mark.sound().map_or(0, |mark| mark.counter);
        let so_far = Recovered { mark_counter, report, ..Recovered::default() };
        LogReader { fs, found, up_to, known, so_far }
    }

    fn read_all(mut self, visit: &mut Visit<'_>) -> Result<Recovered, JournalError> {
        let segments = std::mem::take(&mut self.found.segments);
        for (at, (segment_no, path)) in segments.iter().enumerate() {
            let is_last = at + 1 == segments.len();
            self.read_segment(*segment_no, path, is_last, visit)?;
            if self.has_reached(self.so_far.position) {
                break;
            }
        }
        self.check_end(segments.last())?;
        let report = &mut self.so_far.report;
        report.position = self.so_far.position;
        report.last_seq = report.position.seq;
        report.epoch = report.position.epoch + 1;
        Ok(self.so_far)
    }

    fn read_segment(
        &mut self,
        segment_no: u64,
        path: &Path,
        is_last: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), JournalError> {
        let file = self.fs.read(path).map_err(io_error("read", path))?;
        let header = SegmentHeader::decode(&file)
            .map_err(|source| JournalError::Header { path: path.to_owned(), source })?;
        self.check_header(path, segment_no, &header)?;
        self.so_far.store_uuid = Some(header.store_uuid);
        self.so_far.segment_no = segment_no;
        let records_before = self.so_far.report.records;
        let walk = self.walk(path, &file, &header.store_uuid, visit)?;
        self.so_far.position = walk.position;
        self.so_far.offset = walk.offset;
        self.so_far.report.segments += 1;
        self.so_far.segments.push(SegmentFacts {
            path: path.to_owned(),
            segment_no,
            first_seq: header.first_seq,
            records: self.so_far.report.records - records_before,
            bytes: file.len() as u64,
        });
        if let Some(damage) = walk.damage
            && !self.has_reached(walk.position)
        {
            self.check_tail(path, &file, &header.store_uuid, damage, is_last)?;
        }
        self.so_far.last = file;
        Ok(())
    }

    fn has_reached(&self, position: Position) -> bool {
        self.up_to.is_some_and(|up_to| position.seq >= up_to)
    }

    /// Checks that the segment is the next one, or that the first one reaches back far enough, and
    /// sets the position before it.
    fn check_header(
        &mut self,
        path: &Path,
        segment_no: u64,
        header: &SegmentHeader,
    ) -> Result<(), JournalError> {
        let is_first = self.so_far.segment_no == 0;
        if is_first {
            self.check_stores(header)?;
            self.so_far.position = self.position_before(header)?;
        }
        let before = self.so_far.position;
        let fits = |what, expected: String, found: String| {
            if expected == found {
                return Ok(());
            }
            Err(JournalError::Misplaced { path: path.to_owned(), what, expected, found })
        };
        // The first segment may have any number if earlier segments may have been removed.
        let is_anywhere = is_first && header.first_seq > 1;
        let expected_no = if is_anywhere { segment_no } else { self.so_far.segment_no + 1 };
        fits("number", expected_no.to_string(), segment_no.to_string())?;
        fits("number", expected_no.to_string(), header.segment_no.to_string())?;
        if let Some(store_uuid) = self.so_far.store_uuid {
            fits("store", hex::encode(store_uuid), hex::encode(header.store_uuid))?;
        }
        let first_seq = before.seq + 1;
        fits("first sequence number", first_seq.to_string(), header.first_seq.to_string())?;
        fits("chain", hex::encode(before.chain), hex::encode(header.prev_chain))?;
        if is_first { self.check_known(before.seq, &before.chain) } else { Ok(()) }
    }

    /// Checks that mark and snapshot belong to the log's store.
    fn check_stores(&self, header: &SegmentHeader) -> Result<(), JournalError> {
        let mark = self.found.mark.sound().map(|it| (self.mark_path(), it.store_uuid));
        let snapshot =
            self.found.snapshot.as_ref().map(|it| (it.report.path.clone(), it.header.store_uuid));
        check_same("store", header.store_uuid, [mark, snapshot])
    }

    /// Position before the first segment.
    fn position_before(&self, header: &SegmentHeader) -> Result<Position, JournalError> {
        if header.first_seq <= 1 {
            return Ok(Position::default());
        }
        let snapshot = self.found.snapshot_position();
        if snapshot.seq + 1 < header.first_seq {
            return Err(self.no_start(header.first_seq));
        }
        let seq = header.first_seq - 1;
        let epoch = if snapshot.seq == seq { snapshot.epoch } else { 0 };
        Ok(Position { seq, chain: header.prev_chain, epoch })
    }

    fn no_start(&self, first_seq: u64) -> JournalError {
        let snapshots = match (&self.found.snapshot, self.found.damaged.len()) {
            (Some(it), _) => format!("the newest sound snapshot is of record {}", it.report.seq),
            (None, 0) => "there is no snapshot".into(),
            (None, damaged) => format!("none of its {damaged} snapshots is sound"),
        };
        JournalError::NoStart { dir: self.found.dir.to_owned(), first_seq, snapshots }
    }

    fn mark_path(&self) -> PathBuf {
        self.found.dir.join(MARK_FILE)
    }

    /// Checks the log against mark and snapshot at record `seq`.
    fn check_known(&self, seq: u64, chain: &Chain) -> Result<(), JournalError> {
        // This runs for every record, so a path is built only for those two records.
        let mark = self.found.mark.sound().filter(|mark| mark.seq == seq);
        let mark = mark.map(|it| (self.mark_path(), it.chain));
        let snapshot = self.found.snapshot.as_ref().filter(|it| it.header.position.seq == seq);
        let snapshot = snapshot.map(|it| (it.report.path.clone(), it.header.position.chain));
        check_same(format_args!("chain of record {seq}"), *chain, [mark, snapshot])
    }

    fn walk(
        &mut self,
        path: &Path,
        file: &[u8],
        store_uuid: &StoreUuid,
        visit: &mut Visit<'_>,
    ) -> Result<WalkEnd, JournalError> {
        let start = self.so_far.position;
        let snapshot_seq = self.found.snapshot_position().seq;
        let mut report = std::mem::take(&mut self.so_far.report);
        let walked = walk(file, store_uuid, start, self.up_to, |offset, record| {
            let seq = record.fields.seq;
            self.check_known(seq, &record.chain)?;
            report.records += 1;
            report.last_unix_ms = record.fields.unix_ms;
            report.clean = record.fields.kind == RecordKind::CLOSED;
            if seq > snapshot_seq {
                report.log_bytes += record_bytes(record.payload.len()) as u64;
            }
            visit(path, offset, record).map_err(|source| {
                let path = path.to_owned();
                JournalError::Replay { path, offset, seq, source }
            })
        });
        self.so_far.report = report;
        walked
    }

    /// Checks that the bytes from `so_far.offset` on are a torn tail that may be removed.
    fn check_tail(
        &mut self,
        path: &Path,
        file: &[u8],
        store_uuid: &StoreUuid,
        damage: Damage,
        is_last: bool,
    ) -> Result<(), JournalError> {
        let (seq, offset) = (self.so_far.position.seq + 1, self.so_far.offset);
        let ending =
            Ending { file, offset: offset as usize, store_uuid, seq, is_last, known: &self.known };
        let path = path.to_owned();
        match ending.classify(&damage) {
            Tail::Acknowledged(evidence) => {
                Err(JournalError::Damaged { path, offset, seq, damage, evidence })
            }
            Tail::Ambiguous => Err(JournalError::Ambiguous { path, offset, seq, damage }),
            Tail::Torn => {
                let rest = &file[offset as usize..];
                let bytes = (rest.len() - trailing_zeros(rest)) as u64;
                let torn = TornTail { segment: path, offset, bytes, kept_as: None };
                self.so_far.report.torn = Some(torn);
                self.so_far.report.clean = false;
                Ok(())
            }
        }
    }

    /// Checks that every record known to be synced has been read.
    fn check_end(&self, last: Option<&(u64, PathBuf)>) -> Result<(), JournalError> {
        if last.is_none() && (self.found.snapshot.is_some() || !self.found.damaged.is_empty()) {
            return Err(JournalError::NoStart {
                dir: self.found.dir.to_owned(),
                first_seq: self.found.snapshot_position().seq + 1,
                snapshots: "no segment is there, not even an empty one".into(),
            });
        }
        if self.has_reached(self.so_far.position) {
            return Ok(());
        }
        let seq = self.so_far.position.seq + 1;
        let Some(evidence) = self.known.evidence(seq) else { return self.check_mark() };
        let path = last.map_or_else(|| self.found.dir.to_owned(), |(_, path)| path.clone());
        Err(JournalError::Missing { path, offset: self.so_far.offset, seq, evidence })
    }

    /// Checks that the mark exists if a record does: it is created before the first record and
    /// replaced atomically. Without the mark, a missing end of the log would go unnoticed.
    fn check_mark(&self) -> Result<(), JournalError> {
        let last_seq = self.so_far.position.seq;
        let found = match self.found.mark {
            _ if last_seq == 0 => return Ok(()),
            FoundMark::Sound(_) => return Ok(()),
            FoundMark::Absent => "missing",
            FoundMark::Unreadable => "damaged",
        };
        Err(JournalError::NoMark { path: self.mark_path(), found, last_seq })
    }
}

/// Checks that the values in `found`, each with its file, equal those of the log.
fn check_same(
    what: impl Display,
    expected: [u8; 16],
    found: [Option<(PathBuf, [u8; 16])>; 2],
) -> Result<(), JournalError> {
    match found.into_iter().flatten().find(|(_, found)| *found != expected) {
        None => Ok(()),
        Some((path, found)) => {
            let (expected, found) = (hex::encode(expected), hex::encode(found));
            Err(JournalError::Diverges { path, what: what.to_string(), expected, found })
        }
    }
}

/// Copies the torn tail beside the segment, unless that was already done. Returns the copy's path.
fn keep_tail(fs: &dyn Fs, torn: &TornTail, rest: &[u8]) -> Result<PathBuf, JournalError> {
    let mut number = 1_u64;
    loop {
        let path = torn.segment.with_extension(format!("{number}.{TORN_SUFFIX}"));
        if !exists(fs, &path)? {
            // The copy is atomic, so that a crash leaves no partial one.
            replace(fs, &path, rest)?;
            return Ok(path);
        }
        // The tail may have been copied before a crash; it is copied only once.
        if fs.read(&path).map_err(io_error("read", &path))? == rest {
            return Ok(path);
        }
        number += 1;
    }
}

/// Replaces the segment at `path` with a synced file of the bytes `sound`, and keeps the old file, in
/// which `rest` follows them. Returns the path of the old file.
fn rewrite(fs: &dyn Fs, path: &Path, sound: &[u8], rest: &[u8]) -> Result<PathBuf, JournalError> {
    let temporary = temporary_path(path);
    write_new(fs, &temporary, sound)?;
    let previous = path.with_extension(PREVIOUS_SUFFIX);
    let is_there = exists(fs, &previous)?;
    // A segment that ends with its last record was already rewritten; the file that the crash left
    // is kept.
    if !is_there || !rest.is_empty() {
        if is_there {
            fs.remove(&previous).map_err(io_error("remove", &previous))?;
        }
        // Some file systems do not support hard links.
        if fs.hard_link(path, &previous).is_err() {
            copy(fs, path, &previous)?;
        }
    }
    rename_durably(fs, &temporary, path)?;
    Ok(previous)
}
