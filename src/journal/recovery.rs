//! Opens what a journal left on disk, and judges where it ends.
//!
//! A crash while appending leaves a torn tail; a decaying disk leaves changed bytes. Both look like
//! a record whose checksum fails. [`judge`] tells them apart by what a crash can leave behind:
//!
//! 1. A later sound record says that the damaged one was synced: acknowledged data has changed.
//! 2. Later records are sound, and none says so: one unacknowledged group that reached the disk out
//!    of order. That is sound because a group is written only after the sync of the one before it
//!    has returned.
//! 3. Nothing sound follows, and a sector of the rest was never written (zero, or past the end of
//!    the file): a torn tail, unless turning one bit back makes the record whole.
//! 4. Nothing sound follows and every sector was written: undecidable, and refused.
//!
//! In a segment that is not the last, all is acknowledged: it was synced before the next was made.

use std::path::{Path, PathBuf};

use super::error::{Damage, JournalError};
use super::frame::{
    self, ALIGN, RECORD_HEADER_BYTES, Record, RecordError, SegmentHeader, StoreUuid,
};
use super::fs::{Fs, FsFile};
use super::reader::{Position, Walk, walk};

/// The unit a disk writes or does not write.
const SECTOR_BYTES: usize = 512;
/// Records up to this long are tried with each of their bits turned back; a longer one would take
/// seconds, and a bit of its length is tried all the same.
const REPAIR_BYTES_MAX: usize = 4096;

const SEGMENT_SUFFIX: &str = "seg";
const TORN_SUFFIX: &str = "torn";
const TEMPORARY_SUFFIX: &str = "tmp";

/// What whoever reads a record says to it: an error ends the reading.
pub type ReplayResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// What the open of a journal found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records read, the journal's own among them.
    pub records: u64,
    /// Segments there were.
    pub segments: u64,
    /// The sequence number of the last sound record; 0 for a new journal.
    pub last_seq: u64,
    /// The number of this open, from 1.
    pub epoch: u32,
    /// Whether the open before this one was closed in order. True for a new journal.
    pub clean: bool,
    /// The tail that was cut, if one was.
    pub torn: Option<TornTail>,
}

/// Bytes of a crash that nobody was told were safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment they were cut from.
    pub segment: PathBuf,
    /// Where they started, in bytes from the start of the file.
    pub offset: u64,
    /// How many there were, trailing zeros not counted.
    pub bytes: u64,
    /// Where they are kept; `None` when they were only looked at.
    pub kept_as: Option<PathBuf>,
}

/// What recovery hands to the writer.
pub(super) struct Recovered {
    pub(super) store_uuid: StoreUuid,
    pub(super) position: Position,
    /// The number of the last segment; 0 when there is none yet.
    pub(super) segment_no: u64,
    /// Where the next record goes in it.
    pub(super) offset: u64,
    pub(super) report: Recovery,
}

/// Reads the journal in `dir` as an open would, and changes nothing: neither cuts a torn tail nor
/// takes the lock, so a server that writes at the same time may show as one.
///
/// # Errors
/// [`JournalError`], as an open.
pub fn inspect(
    fs: &dyn Fs,
    dir: &Path,
    mut replay: impl FnMut(&Record<'_>) -> ReplayResult,
) -> Result<Recovery, JournalError> {
    let (recovered, _) = read_segments(fs, dir, &mut replay)?;
    Ok(recovered.report)
}

/// Reads all segments in `dir`, hands each record to `replay`, cuts a torn tail, and removes segments
/// (`.tmp`) that a crash left unfinished.
///
/// # Errors
/// [`JournalError`]; damage changes nothing on disk.
pub(super) fn recover(
    fs: &dyn Fs,
    dir: &Path,
    replay: &mut dyn FnMut(&Record<'_>) -> ReplayResult,
) -> Result<Recovered, JournalError> {
    let (mut recovered, rest) = read_segments(fs, dir, replay)?;
    if let Some(torn) = &mut recovered.report.torn {
        torn.kept_as = Some(cut_tail(fs, dir, torn, &rest)?);
    }
    for path in fs.list(dir).map_err(io_error("list", dir))? {
        if has_suffix(&path, TEMPORARY_SUFFIX) {
            fs.remove(&path).map_err(io_error("remove", &path))?;
        }
    }
    Ok(recovered)
}

/// What there is, and the bytes of the torn tail.
fn read_segments(
    fs: &dyn Fs,
    dir: &Path,
    replay: &mut dyn FnMut(&Record<'_>) -> ReplayResult,
) -> Result<(Recovered, Vec<u8>), JournalError> {
    let segments = list_segments(fs, dir)?;
    let mut rest = Vec::new();
    let mut so_far = Recovered {
        store_uuid: [0; 16],
        position: Position::default(),
        segment_no: 0,
        offset: 0,
        report: Recovery { clean: true, ..Recovery::default() },
    };
    for (at, (segment_no, path)) in segments.iter().enumerate() {
        let file = fs.read(path).map_err(io_error("read", path))?;
        let header = check_header(path, &file, *segment_no, &so_far)?;
        so_far.store_uuid = header.store_uuid;
        let walk = replay_segment(path, &file, &mut so_far, replay)?;
        so_far.segment_no = *segment_no;
        so_far.offset = walk.offset;
        so_far.report.segments += 1;
        if let Some(damage) = walk.damage {
            let is_last = at + 1 == segments.len();
            judge(path, &file, &header.store_uuid, &so_far, damage, is_last)?;
            rest = file[walk.offset as usize..].to_vec();
            rest.truncate(rest.len() - trailing_zeros(&rest));
            let (segment, bytes) = (path.clone(), rest.len() as u64);
            let torn = TornTail { segment, offset: walk.offset, bytes, kept_as: None };
            so_far.report.torn = Some(torn);
            so_far.report.clean = false;
        }
    }
    so_far.report.last_seq = so_far.position.seq;
    so_far.report.epoch = so_far.position.epoch + 1;
    Ok((so_far, rest))
}

/// The file name of a segment.
pub(super) fn segment_path(dir: &Path, segment_no: u64) -> PathBuf {
    dir.join(format!("{segment_no:020}.{SEGMENT_SUFFIX}"))
}

/// Makes a segment that holds its header alone. It gets its name once that is synced, so that a
/// segment without a sound header is always damage and never a crash.
pub(super) fn create_segment(
    fs: &dyn Fs,
    dir: &Path,
    header: &SegmentHeader,
) -> Result<Box<dyn FsFile>, JournalError> {
    let path = segment_path(dir, header.segment_no);
    let temporary = path.with_extension(TEMPORARY_SUFFIX);
    let file = fs.create(&temporary).map_err(io_error("create", &temporary))?;
    file.write_all_at(&header.encode(), 0).map_err(io_error("write", &temporary))?;
    file.sync_all().map_err(io_error("sync", &temporary))?;
    fs.rename(&temporary, &path).map_err(io_error("rename", &temporary))?;
    fs.sync_dir(dir).map_err(io_error("sync", dir))?;
    Ok(file)
}

/// Gives an error of the disk its place.
pub(super) fn io_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Io { action, path, source }
}

/// The segments in `dir`, by number.
fn list_segments(fs: &dyn Fs, dir: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let mut segments: Vec<_> = fs
        .list(dir)
        .map_err(io_error("list", dir))?
        .into_iter()
        .filter(|path| has_suffix(path, SEGMENT_SUFFIX))
        .filter_map(|path| segment_no(&path).map(|no| (no, path)))
        .collect();
    segments.sort();
    Ok(segments)
}

fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension().is_some_and(|it| it == suffix)
}

fn segment_no(path: &Path) -> Option<u64> {
    let stem = path.file_stem()?.to_str()?;
    (stem.len() == 20 && stem.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| stem.parse().ok())
        .flatten()
}

fn check_header(
    path: &Path,
    file: &[u8],
    segment_no: u64,
    before: &Recovered,
) -> Result<SegmentHeader, JournalError> {
    let header = SegmentHeader::decode(file)
        .map_err(|source| JournalError::Header { path: path.to_owned(), source })?;
    let fits = |what, expected: String, found: String| {
        if expected == found {
            return Ok(());
        }
        Err(JournalError::Misplaced { path: path.to_owned(), what, expected, found })
    };
    let expected_no = before.segment_no + 1;
    fits("number", expected_no.to_string(), segment_no.to_string())?;
    fits("number", expected_no.to_string(), header.segment_no.to_string())?;
    if before.segment_no > 0 {
        fits("store", hex::encode(before.store_uuid), hex::encode(header.store_uuid))?;
    }
    let first_seq = before.position.seq + 1;
    fits("first sequence number", first_seq.to_string(), header.first_seq.to_string())?;
    fits("chain", hex::encode(before.position.chain), hex::encode(header.prev_chain))?;
    Ok(header)
}

fn replay_segment(
    path: &Path,
    file: &[u8],
    so_far: &mut Recovered,
    replay: &mut dyn FnMut(&Record<'_>) -> ReplayResult,
) -> Result<Walk, JournalError> {
    let report = &mut so_far.report;
    let walk = walk(file, &so_far.store_uuid, so_far.position, |offset, record| {
        report.records += 1;
        report.clean = record.fields.kind == frame::Kind::CLOSED;
        if record.fields.kind.is_journals_own() {
            return Ok(());
        }
        let seq = record.fields.seq;
        replay(record).map_err(|source| JournalError::Replay {
            path: path.to_owned(),
            offset,
            seq,
            source,
        })
    })?;
    so_far.position = walk.position;
    Ok(walk)
}

/// Fine when the bytes from `so_far.offset` on are a torn tail that may be cut.
fn judge(
    path: &Path,
    file: &[u8],
    store_uuid: &StoreUuid,
    so_far: &Recovered,
    damage: Damage,
    is_last: bool,
) -> Result<(), JournalError> {
    let seq = so_far.position.seq + 1;
    let (path, offset) = (path.to_owned(), so_far.offset);
    let evidence = match tail(file, offset as usize, store_uuid, seq, &damage, is_last) {
        Tail::Torn => return Ok(()),
        Tail::Ambiguous => return Err(JournalError::Ambiguous { path, offset, seq, damage }),
        Tail::Acknowledged(evidence) => evidence,
    };
    Err(JournalError::Damaged { path, offset, seq, damage, evidence })
}

enum Tail {
    Torn,
    Ambiguous,
    Acknowledged(String),
}

/// What the bytes are from `offset` on, where record `seq` should start.
fn tail(
    file: &[u8],
    offset: usize,
    store_uuid: &StoreUuid,
    seq: u64,
    damage: &Damage,
    is_last: bool,
) -> Tail {
    if !is_last {
        return Tail::Acknowledged("a later segment was begun after its sync".into());
    }
    let Damage::Record(damage) = damage else {
        return Tail::Acknowledged("no crash moves a whole record".into());
    };
    if let RecordError::Flags { .. } = damage {
        return Tail::Acknowledged("its checksum fits".into());
    }
    let rest = &file[offset..];
    match later_record(rest, store_uuid, seq) {
        Some((later, durable)) if durable >= seq => {
            Tail::Acknowledged(format!("record {later} says that {durable} was synced"))
        }
        Some(_) => Tail::Torn,
        None if is_one_bit_from_whole(rest, store_uuid) => {
            Tail::Acknowledged("it is whole but for one bit".into())
        }
        None if never_written(file, offset, damage) => Tail::Torn,
        None => Tail::Ambiguous,
    }
}

/// The later sound record that knows of the highest synced one: its number and that one's.
fn later_record(rest: &[u8], store_uuid: &StoreUuid, seq: u64) -> Option<(u64, u64)> {
    // No more records than this fit between, which rules out most offsets at the price of a load.
    let highest = seq + (rest.len() / RECORD_HEADER_BYTES) as u64;
    let mut best = None;
    let mut at = ALIGN;
    while at < rest.len() {
        let bytes = &rest[at..];
        let plausible = frame::claimed_seq(bytes).is_some_and(|it| it > seq && it <= highest);
        match plausible.then(|| frame::decode_record(bytes, store_uuid)) {
            Some(Ok(record)) => {
                let found = (record.fields.durable_seq, record.fields.seq);
                best = best.max(Some(found));
                at += frame::record_bytes(record.payload.len());
            }
            _ => at += ALIGN,
        }
    }
    best.map(|(durable, later)| (later, durable))
}

/// Whether turning back one bit makes the start of `rest` a sound record: then it was written whole
/// and has changed since. A torn record passes for one once in about 2^17.
fn is_one_bit_from_whole(rest: &[u8], store_uuid: &StoreUuid) -> bool {
    let len_bits = 32;
    let claimed = match rest.first_chunk::<4>() {
        Some(len) => RECORD_HEADER_BYTES.saturating_add(u32::from_le_bytes(*len) as usize),
        None => return false,
    };
    let most = rest.len().min(frame::record_bytes(super::PAYLOAD_BYTES_MAX));
    let mut copy = rest[..most].to_vec();
    let bits = if claimed <= REPAIR_BYTES_MAX.min(most) { claimed * 8 + 7 * 8 } else { len_bits };
    (0..bits.min(most * 8)).any(|bit| {
        copy[bit / 8] ^= 1 << (bit % 8);
        let whole = frame::decode_record(&copy, store_uuid).is_ok();
        copy[bit / 8] ^= 1 << (bit % 8);
        whole
    })
}

/// Whether a sector of the damaged record at `offset`, or of what follows it, was never written.
fn never_written(file: &[u8], offset: usize, damage: &RecordError) -> bool {
    if let RecordError::Cut { .. } = damage {
        return true;
    }
    let rest = &file[offset..];
    let claimed = match (damage, rest.first_chunk::<4>()) {
        (RecordError::Checksum { .. }, Some(len)) => {
            frame::record_bytes(u32::from_le_bytes(*len) as usize)
        }
        _ => 0,
    };
    let end = offset + claimed.max(rest.len() - trailing_zeros(rest));
    sectors(file, offset, end.min(file.len())).any(|piece| piece.iter().all(|byte| *byte == 0))
}

/// `file[start..end]` in pieces that lie in one sector of the file each.
fn sectors(file: &[u8], start: usize, end: usize) -> impl Iterator<Item = &[u8]> {
    let first_end = (start + 1).next_multiple_of(SECTOR_BYTES).min(end);
    let (first, others) = file[start..end].split_at(first_end - start);
    std::iter::once(first).chain(others.chunks(SECTOR_BYTES))
}

fn trailing_zeros(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|byte| **byte == 0).count()
}

/// Copies the torn tail, `rest`, beside the segment, then cuts it off. Returns the copy's path.
///
/// The copy is synced first: a crash between the two only makes another one.
fn cut_tail(
    fs: &dyn Fs,
    dir: &Path,
    torn: &TornTail,
    rest: &[u8],
) -> Result<PathBuf, JournalError> {
    let path = &torn.segment;
    let kept_as = unused_torn_path(fs, dir, path)?;
    let kept = fs.create(&kept_as).map_err(io_error("create", &kept_as))?;
    kept.write_all_at(rest, 0).map_err(io_error("write", &kept_as))?;
    kept.sync_all().map_err(io_error("sync", &kept_as))?;
    fs.sync_dir(dir).map_err(io_error("sync", dir))?;
    let segment = fs.open(path).map_err(io_error("open", path))?;
    segment.truncate(torn.offset).map_err(io_error("truncate", path))?;
    segment.sync_all().map_err(io_error("sync", path))?;
    Ok(kept_as)
}

/// A name no earlier tail has: a second crash must not overwrite what the first one left.
fn unused_torn_path(fs: &dyn Fs, dir: &Path, segment: &Path) -> Result<PathBuf, JournalError> {
    let taken = fs.list(dir).map_err(io_error("list", dir))?;
    let mut number = 1_u64;
    loop {
        let name = segment.with_extension(format!("{number}.{TORN_SUFFIX}"));
        if !taken.contains(&name) {
            return Ok(name);
        }
        number += 1;
    }
}
