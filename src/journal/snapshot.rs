//! Snapshots of the caller's state after a record, which replace older records. A backup has the same
//! format in another place. All numbers are little-endian.
//!
//! ```text
//! header, 64 bytes                         then chunks                 then the end, 88 bytes
//!  0  magic        8  "ddxsnap\n"           len   4  1 to 2^20          0  end            4  2^32 - 1
//!  8  format       2  1                     crc   4                     4  zeros          4
//! 10  min_reader   2  1                     bytes                       8  chunks         8
//! 12  store_uuid  16                                                   16  bytes in them  8
//! 28  seq          8                                                   24  state digest  32
//! 36  chain       16  of that record                                   56  file digest   32
//! 52  epoch        4
//! 56  zeros        4
//! 60  crc          4  of bytes 0..60
//! ```
//!
//! - `crc` of a chunk is CRC-32 of its length and its bytes, to locate damage.
//! - The state digest is BLAKE3 over the chunks, each preceded by its length: the same state in the
//!   same chunks has the same digest in every store.
//! - The file digest is BLAKE3 over all bytes before it.
//!
//! A snapshot is written under a temporary name, synced, renamed, and read back completely. Only then
//! are superseded files removed: all snapshots except the newest two undamaged ones, and segments
//! whose records are all in the *older* of the two. Damage to one snapshot thus loses no data.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::bytes::StoreUuid;
use super::bytes::{HEADER_BYTES, array, check_header, encode_header, u32_at, u64_at};
use super::error::{JournalError, SnapshotDamage};
use super::frame::Position;
use super::frame::SegmentHeader;
use super::fs::{DirLock, Fs, FsFile};
use super::mark::{self, Mark};
use super::queue::Shared;
use super::replay::ReplayResult;
use super::segment::{
    PREVIOUS_SUFFIX, SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, check_ours, copy, create_segment, exists,
    folder_of, io_error, list_numbered, list_own, lock, make_folder, read_header, read_up_to,
    rename_durably, snapshot_path, temporary_path,
};

/// Maximum bytes of a chunk: 1 MiB.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;

const MAGIC: [u8; 8] = *b"ddxsnap\n";
const CHUNK_HEADER_BYTES: usize = 8;
const END_BYTES: usize = 88;
/// Offset of the file digest in the end record.
const FILE_DIGEST_AT: usize = 56;
/// Value that marks the end, in place of a chunk's length.
const END: u32 = u32::MAX;
/// Size of the write buffer.
const WRITE_BYTES: usize = 1 << 20;
/// Size of the read buffer.
const READ_BYTES: usize = 64 << 10;

/// A snapshot being written. Dropping the writer before it has finished removes the file.
pub struct SnapshotWriter {
    file: SnapshotFile,
    path: PathBuf,
    temporary: PathBuf,
    at: Position,
    context: SnapshotContext,
    /// Access to the journal; `None` for a backup.
    into_journal: Option<IntoJournal>,
    is_published: bool,
}

/// Link from a snapshot in the journal's folder to the journal.
pub(super) struct IntoJournal {
    /// Size of the log when the snapshot began; the next open will not read that part.
    pub(super) log_bytes: u64,
    pub(super) since: Arc<AtomicU64>,
    pub(super) _one_at_a_time: Busy,
}

/// Guard that exists while a snapshot is being written.
pub(super) struct Busy(Arc<AtomicBool>);

impl Busy {
    /// Creates the guard; `None` while another one exists.
    pub(super) fn begin(is_busy: &Arc<AtomicBool>) -> Option<Busy> {
        (!is_busy.swap(true, Ordering::SeqCst)).then(|| Busy(Arc::clone(is_busy)))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A completed snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The file.
    pub path: PathBuf,
    /// The record it follows.
    pub seq: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// BLAKE3 over the chunks, each preceded by its length: equal states give equal digests.
    pub state_digest: [u8; 32],
}

/// Header of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SnapshotHeader {
    pub(super) store_uuid: StoreUuid,
    pub(super) position: Position,
}

/// A verified snapshot.
#[derive(Clone, Debug)]
pub(super) struct Verified {
    pub(super) header: SnapshotHeader,
    pub(super) report: SnapshotReport,
}

/// Reason why a snapshot was not read completely.
pub(super) enum ReadError {
    Damage(SnapshotDamage),
    /// The receiver rejected a chunk.
    Refused(Box<dyn std::error::Error + Send + Sync>),
}

impl<T: Into<SnapshotDamage>> From<T> for ReadError {
    fn from(damage: T) -> ReadError {
        ReadError::Damage(damage.into())
    }
}

/// A snapshot writer's access to its journal.
#[derive(Clone)]
pub(super) struct SnapshotContext {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) shared: Arc<Shared>,
    pub(super) held: Arc<dyn DirLock>,
    pub(super) store_uuid: StoreUuid,
}

impl SnapshotWriter {
    /// Begins a snapshot in the journal's folder, or a backup, which never replaces a file.
    pub(super) fn begin(
        context: SnapshotContext,
        path: PathBuf,
        at: Position,
        into_journal: Option<IntoJournal>,
    ) -> Result<SnapshotWriter, JournalError> {
        let temporary = temporary_path(&path);
        check_ours(context.held.as_ref(), folder_of(&path))?;
        let file = context.fs.create(&temporary).map_err(io_error("create", &temporary))?;
        let header = SnapshotHeader { store_uuid: context.store_uuid, position: at };
        let file = SnapshotFile::new(file, &header);
        let is_published = false;
        Ok(SnapshotWriter { file, path, temporary, at, context, into_journal, is_published })
    }

    /// Writes one chunk, of 1 to [`CHUNK_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The disk failed, or the chunk has an invalid length; the snapshot must then be dropped.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        if bytes.is_empty() || bytes.len() > CHUNK_BYTES_MAX {
            return Err(JournalError::ChunkLength { len: bytes.len() });
        }
        self.file.chunk(bytes).map_err(io_error("write", &self.temporary))
    }

    /// Makes the snapshot durable once the records that it covers are durable, and reads it back
    /// completely. A snapshot in the journal's folder then replaces the files that it supersedes.
    ///
    /// # Errors
    /// The disk failed or returned other bytes, or the journal failed or was taken by another process.
    /// The journal is then unchanged, except for a possible additional snapshot.
    pub fn finish(mut self) -> Result<SnapshotReport, JournalError> {
        self.file.end().map_err(io_error("write", &self.temporary))?;
        self.file.file.sync_all().map_err(io_error("sync", &self.temporary))?;
        let seq = self.at.seq;
        // After a loss of power, a snapshot ahead of the log would look like a lost log.
        let SnapshotContext { fs, shared, held, .. } = self.context.clone();
        let dir = folder_of(&self.path).to_owned();
        shared.wait_durable(seq).map_err(|source| JournalError::NotDurable { seq, source })?;
        check_ours(held.as_ref(), &dir)?;
        self.publish()?;
        let report = verify_snapshot(fs.as_ref(), &self.path)?;
        if let Some(into_journal) = &self.into_journal {
            check_ours(held.as_ref(), &dir)?;
            prune(fs.as_ref(), &dir, seq)?;
            into_journal.since.fetch_sub(into_journal.log_bytes, Ordering::Relaxed);
        }
        Ok(report)
    }

    fn publish(&mut self) -> Result<(), JournalError> {
        let fs = self.context.fs.as_ref();
        if self.into_journal.is_none() && exists(fs, &self.path)? {
            return Err(JournalError::Exists { path: self.path.clone() });
        }
        fs.rename(&self.temporary, &self.path).map_err(io_error("rename", &self.temporary))?;
        self.is_published = true;
        let dir = folder_of(&self.path);
        fs.sync_dir(dir).map_err(io_error("sync", dir))
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        // If another process has the folder, the name may belong to its file.
        if !self.is_published && self.context.held.is_ours().unwrap_or(false) {
            // If this fails, the next open removes the file.
            let _ = self.context.fs.remove(&self.temporary);
        }
    }
}

/// Buffered output of a snapshot.
struct SnapshotFile {
    file: Box<dyn FsFile>,
    buffer: Vec<u8>,
    /// Bytes already written.
    offset: u64,
    content: ContentSum,
    whole: blake3::Hasher,
}

/// Count and digest of the chunks of a snapshot.
#[derive(Default)]
struct ContentSum {
    chunks: u64,
    bytes: u64,
    state: blake3::Hasher,
}

impl ContentSum {
    fn add(&mut self, chunk: &[u8]) {
        self.state.update(&(chunk.len() as u32).to_le_bytes());
        self.state.update(chunk);
        self.chunks += 1;
        self.bytes += chunk.len() as u64;
    }

    fn digest(&self) -> [u8; 32] {
        *self.state.finalize().as_bytes()
    }
}

impl SnapshotFile {
    fn new(file: Box<dyn FsFile>, header: &SnapshotHeader) -> SnapshotFile {
        SnapshotFile {
            file,
            buffer: header.encode().to_vec(),
            offset: 0,
            content: ContentSum::default(),
            whole: blake3::Hasher::new(),
        }
    }

    fn chunk(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let len = (bytes.len() as u32).to_le_bytes();
        self.buffer.extend_from_slice(&len);
        self.buffer.extend_from_slice(&chunk_crc(len, bytes).to_le_bytes());
        self.buffer.extend_from_slice(bytes);
        self.content.add(bytes);
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.write_all_at(&self.buffer, self.offset)?;
        self.whole.update(&self.buffer);
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.buffer.extend_from_slice(&END.to_le_bytes());
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&self.content.chunks.to_le_bytes());
        self.buffer.extend_from_slice(&self.content.bytes.to_le_bytes());
        self.buffer.extend_from_slice(&self.content.digest());
        self.flush()?;
        self.buffer.extend_from_slice(self.whole.finalize().as_bytes());
        self.flush()
    }
}

impl SnapshotHeader {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let Position { seq, chain, epoch } = self.position;
        let fields: [&[u8]; 3] = [&seq.to_le_bytes(), &chain, &epoch.to_le_bytes()];
        encode_header(MAGIC, &self.store_uuid, &fields)
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<SnapshotHeader, SnapshotDamage> {
        check_header(MAGIC, bytes)?;
        let position =
            Position { seq: u64_at(bytes, 28), chain: array(bytes, 36), epoch: u32_at(bytes, 52) };
        Ok(SnapshotHeader { store_uuid: array(bytes, 12), position })
    }
}

fn chunk_crc(len: [u8; 4], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&len);
    hasher.update(bytes);
    hasher.finalize()
}

/// Reads and verifies a whole snapshot at any path.
///
/// # Errors
/// [`JournalError::Snapshot`] with the damage.
pub fn verify_snapshot(fs: &dyn Fs, path: &Path) -> Result<SnapshotReport, JournalError> {
    Ok(verify(fs, path)?.report)
}

fn verify(fs: &dyn Fs, path: &Path) -> Result<Verified, JournalError> {
    match read_snapshot(fs, path, &mut |_| Ok(())) {
        Ok(verified) => Ok(verified),
        Err(ReadError::Damage(source)) => {
            Err(JournalError::Snapshot { path: path.to_owned(), source })
        }
        Err(ReadError::Refused(_)) => unreachable!("the visitor refuses nothing"),
    }
}

/// Reads a snapshot and passes its chunks to the receiver. Each chunk is verified individually; only
/// the end shows that they are complete.
pub(super) fn read_snapshot(
    fs: &dyn Fs,
    path: &Path,
    visit: &mut dyn FnMut(&[u8]) -> ReplayResult,
) -> Result<Verified, ReadError> {
    let mut input = SnapshotReader::open(fs, path)?;
    let header = SnapshotHeader::decode(&input.take()?)?;
    let mut content = ContentSum::default();
    let mut chunk = Vec::new();
    loop {
        let at = input.offset;
        let head: [u8; CHUNK_HEADER_BYTES] = input.take()?;
        let len = u32_at(&head, 0);
        if len == END {
            let state_digest = check_end(&mut input, &head, &content)?;
            let (path, seq, bytes) = (path.to_owned(), header.position.seq, input.offset);
            let report = SnapshotReport { path, seq, bytes, state_digest };
            return Ok(Verified { header, report });
        }
        if len == 0 || len as usize > CHUNK_BYTES_MAX {
            return Err(SnapshotDamage::Changed { what: "length of a chunk", offset: at }.into());
        }
        if u64::from(len) > input.left() {
            return Err(SnapshotDamage::Cut { offset: input.len }.into());
        }
        chunk.resize(len as usize, 0);
        input.fill(&mut chunk)?;
        if chunk_crc(len.to_le_bytes(), &chunk) != u32_at(&head, 4) {
            return Err(SnapshotDamage::Changed { what: "chunk", offset: at }.into());
        }
        content.add(&chunk);
        visit(&chunk).map_err(ReadError::Refused)?;
    }
}

/// Verifies the end record, whose first bytes were already read into `head`, and returns the digest
/// of the state.
fn check_end(
    input: &mut SnapshotReader,
    head: &[u8; CHUNK_HEADER_BYTES],
    content: &ContentSum,
) -> Result<[u8; 32], SnapshotDamage> {
    let start = input.offset - CHUNK_HEADER_BYTES as u64;
    let counts: [u8; FILE_DIGEST_AT - CHUNK_HEADER_BYTES] = input.take()?;
    let expected_digest = *input.whole.finalize().as_bytes();
    let digest: [u8; END_BYTES - FILE_DIGEST_AT] = input.take()?;
    let changed = |what| Err(SnapshotDamage::Changed { what, offset: start });
    if digest != expected_digest {
        return changed("digest of the file");
    }
    let digest_at = 16;
    if (u64_at(&counts, 0), u64_at(&counts, 8)) != (content.chunks, content.bytes)
        || u32_at(head, 4) != 0
    {
        return changed("count of chunks");
    }
    let state_digest = content.digest();
    if array(&counts, digest_at) != state_digest {
        return changed("digest of the state");
    }
    if input.source.read(&mut [0])? != 0 {
        return Err(SnapshotDamage::TooLong { offset: input.offset });
    }
    Ok(state_digest)
}

/// A snapshot being read.
struct SnapshotReader {
    source: BufReader<Box<dyn Read + Send>>,
    /// Size of the file, which bounds lengths in it.
    len: u64,
    /// Bytes read.
    offset: u64,
    whole: blake3::Hasher,
}

impl SnapshotReader {
    fn open(fs: &dyn Fs, path: &Path) -> Result<SnapshotReader, SnapshotDamage> {
        let len = fs.len(path)?;
        let buffer = READ_BYTES.min(len as usize).max(1);
        let source = BufReader::with_capacity(buffer, fs.open_read(path)?);
        Ok(SnapshotReader { source, len, offset: 0, whole: blake3::Hasher::new() })
    }

    fn left(&self) -> u64 {
        self.len.saturating_sub(self.offset)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotDamage> {
        let read = read_up_to(&mut self.source, bytes)?;
        self.offset += read as u64;
        if read < bytes.len() {
            return Err(SnapshotDamage::Cut { offset: self.offset });
        }
        self.whole.update(bytes);
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotDamage> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }
}

/// Removes files that are superseded by the verified snapshot of record `newest` and the newest
/// undamaged snapshot before it. If there is no older snapshot, nothing is removed.
///
/// Segments are removed durably, oldest first, so that a crash leaves no gap.
fn prune(fs: &dyn Fs, dir: &Path, newest: u64) -> Result<(), JournalError> {
    let mut older = list_numbered(fs, dir, SNAPSHOT_SUFFIX)?;
    older.retain(|(seq, _)| *seq < newest);
    let is_sound = |(_, path): &&(u64, PathBuf)| verify_snapshot(fs, path).is_ok();
    let Some((second, _)) = older.iter().rev().find(is_sound).cloned() else { return Ok(()) };
    for (_, path) in older.iter().filter(|(seq, _)| *seq < second) {
        fs.remove(path).map_err(io_error("remove", path))?;
    }
    let segments = list_numbered(fs, dir, SEGMENT_SUFFIX)?;
    for pair in segments.windows(2) {
        let [(_, path), (_, next)] = pair else { break };
        if read_header(fs, next)?.first_seq > second + 1 {
            break;
        }
        let previous = path.with_extension(PREVIOUS_SUFFIX);
        if exists(fs, &previous)? {
            fs.remove(&previous).map_err(io_error("remove", &previous))?;
        }
        fs.remove(path).map_err(io_error("remove", path))?;
        fs.sync_dir(dir).map_err(io_error("sync", dir))?;
    }
    fs.sync_dir(dir).map_err(io_error("sync", dir))
}

/// Writes the backup `file` of a store that is not open, at this position, with the chunks that
/// `write` passes to it.
///
/// # Errors
/// The disk failed, or a chunk has an invalid length.
pub fn write_backup(
    fs: &dyn Fs,
    file: &Path,
    store_uuid: StoreUuid,
    position: Position,
    write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), JournalError>) -> Result<(), JournalError>,
) -> Result<SnapshotReport, JournalError> {
    let created = fs.create(file).map_err(io_error("create", file))?;
    let mut backup = SnapshotFile::new(created, &SnapshotHeader { store_uuid, position });
    write(&mut |chunk| {
        if chunk.is_empty() || chunk.len() > CHUNK_BYTES_MAX {
            return Err(JournalError::ChunkLength { len: chunk.len() });
        }
        backup.chunk(chunk).map_err(io_error("write", file))
    })?;
    backup.end().map_err(io_error("write", file))?;
    backup.file.sync_all().map_err(io_error("sync", file))?;
    verify_snapshot(fs, file)
}

/// Creates a journal in `dir` from the backup `file`: a snapshot, and an empty segment for the records
/// after it.
///
/// # Errors
/// The backup is damaged, `dir` holds files of a journal, or the disk failed. An incomplete result
/// has no segment, so no open accepts it as a journal.
pub fn restore(fs: &dyn Fs, file: &Path, dir: &Path) -> Result<SnapshotReport, JournalError> {
    verify_snapshot(fs, file)?;
    make_folder(fs, dir)?;
    let _held = lock(fs, dir)?;
    if let Some(path) = list_own(fs, dir)?.into_iter().next() {
        return Err(JournalError::Exists { path });
    }
    let temporary = temporary_path(&dir.join("restored"));
    copy(fs, file, &temporary)?;
    let copied = verify(fs, &temporary)?;
    let SnapshotHeader { store_uuid, position } = copied.header;
    let path = snapshot_path(dir, position.seq);
    rename_durably(fs, &temporary, &path)?;
    let mark = Mark { store_uuid, counter: 1, seq: position.seq, chain: position.chain };
    mark::make(fs, dir, &mark)?;
    let header = SegmentHeader {
        store_uuid,
        segment_no: 1,
        first_seq: position.seq + 1,
        prev_chain: position.chain,
    };
    create_segment(fs, dir, &header, 0)?;
    Ok(SnapshotReport { path, ..copied.report })
}

#[cfg(test)]
mod tests {
    use super::super::bytes::HeaderError;
    use super::super::fs::Disk;
    use super::*;

    const HEADER: SnapshotHeader = SnapshotHeader {
        store_uuid: *b"0123456789abcdef",
        position: Position { seq: 9, chain: [7; 16], epoch: 3 },
    };

    fn write(path: &Path, chunks: &[&[u8]]) -> Vec<u8> {
        let mut file = SnapshotFile::new(Disk.create(path).expect("created"), &HEADER);
        for chunk in chunks {
            file.chunk(chunk).expect("written");
        }
        file.end().expect("ended");
        std::fs::read(path).expect("read")
    }

    #[test]
    fn the_bytes_of_format_1_never_change() {
        let dir = tempfile::tempdir().expect("a folder");
        let bytes = write(&dir.path().join("s"), &[b"hello", b"you"]);
        let golden = include_str!("../../tests/golden/journal-snapshot-v1.hex");
        assert_eq!(format!("chunks \"hello\", \"you\" {}\n", hex::encode(bytes)), golden);
    }

    #[test]
    fn chunks_round_trip_and_equal_states_have_equal_digests() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s");
        let long = vec![0xa5; CHUNK_BYTES_MAX];
        for chunks in [&[][..], &[&b"one"[..]], &[b"one", &long[..], b"three"]] {
            write(&path, chunks);
            let mut found = Vec::new();
            let read = read_snapshot(&Disk, &path, &mut |chunk| {
                found.push(chunk.to_vec());
                Ok(())
            });
            let Ok(verified) = read else { panic!("sound") };
            assert_eq!(verified.header, HEADER);
            assert_eq!(found, chunks);
            let mut digest = blake3::Hasher::new();
            for chunk in chunks {
                digest.update(&(chunk.len() as u32).to_le_bytes()).update(chunk);
            }
            assert_eq!(verified.report.state_digest, *digest.finalize().as_bytes());
        }
    }

    #[test]
    fn every_flipped_bit_truncation_and_extension_is_detected() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s");
        let whole = write(&path, &[b"hello", b"you there"]);
        let found = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            verify_snapshot(&Disk, &path).is_err()
        };
        let file = Disk.open(&path).expect("opened");
        for bit in 0..whole.len() * 8 {
            let (at, byte) = (bit / 8, whole[bit / 8]);
            file.write_all_at(&[byte ^ 1 << (bit % 8)], at as u64).expect("written");
            assert!(verify_snapshot(&Disk, &path).is_err(), "bit {bit}");
            file.write_all_at(&[byte], at as u64).expect("written");
        }
        for len in 0..whole.len() {
            assert!(found(&whole[..len]), "cut at {len}");
        }
        assert!(found(&[&whole[..], &[0]].concat()));
        assert!(!found(&whole));
    }

    #[test]
    fn newer_formats_are_rejected() {
        let mut bytes = HEADER.encode();
        bytes[8..12].copy_from_slice(&[9, 0, 2, 0]);
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        let refused = SnapshotHeader::decode(&bytes);
        assert!(
            matches!(
                refused,
                Err(SnapshotDamage::Header(HeaderError::Newer { format: 9, min_reader: 2 }))
            ),
            "{refused:?}"
        );
    }
}
