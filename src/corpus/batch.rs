//! One ingested list on disk: observations sorted by name, scored once, immutable.
//!
//! ```text
//! magic "DDXBATCH"  version u16
//! entries           front-coded, in blocks that each start with a whole name
//! block index       per block: offset u64, name length u8, first name
//! meta              JSON: where the list came from, counts, scorer version
//! trailer           index offset u64, meta offset u64, BLAKE3 of all bytes before it, magic
//! ```
//! An entry: number of bytes shared with the previous name, number of further bytes, the further bytes;
//! bytes of the label, characters of the label, flags; score; time of the observation in seconds,
//! unless it equals that of the previous entry; the days that the flags announce; the second of the release,
//! if a list states it; for a drop, length and bytes of its score features.
//!
//! Version 1 has no score features and stores the time of every entry. Batches of this version are read and rescored.
//! Versions 2 (one list) and 3 (compacted) have no seconds.
//!
//! Integers are little-endian. A file is read only after its checksum is verified.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use memmap2::{Mmap, UncheckedAdvice};
use serde::{Deserialize, Serialize};

use crate::feeds::{Format, Sighting};
use crate::scorer::Base;
use crate::vocab::day::Day;
use crate::vocab::file_error::{AtPath, FileError};
use crate::vocab::new_file;
use crate::vocab::origin::Origin;
use crate::vocab::outcome::ZoneDays;
use crate::vocab::release_time::{Release, SecondOfDay};

pub(super) const MAGIC: &[u8; 8] = b"DDXBATCH";
/// Incremented when the layout changes. Older versions stay readable.
const VERSION_MAX: u16 = 4;
/// The first version with score features.
const VERSION_WITH_FEATURES: u16 = 2;
/// The version of compacted batches, before their metadata identified them.
const VERSION_COMPACTED: u16 = 3;
const HEADER_LEN: usize = MAGIC.len() + 2;
const TRAILER_LEN: usize = 8 + 8 + blake3::OUT_LEN + MAGIC.len();
/// Maximum bytes of the metadata: enough for a hundred thousand lists, and harmless to read from a
/// damaged file.
const META_LEN_MAX: u64 = 64 << 20;
/// Maximum bytes of the score features of an entry, whose length is stored in one byte.
const FEATURES_LEN_MAX: usize = 255;
/// Entries per block. A merge can start at any block.
pub const BLOCK_ENTRIES: u32 = 1024;
/// Size of the write buffer, which is hashed and written when full.
const BUFFER_BYTES: usize = 1 << 18;
/// Bytes to hash on all cores before releasing their memory.
const HASHED_BYTES: usize = 32 << 20;
/// Bytes that a cursor reads before it releases their memory.
const CURSOR_BYTES: usize = 4 << 20;

/// Why a batch cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    #[error(transparent)]
    Io(#[from] FileError),
    #[error("{path}: not a dropdex batch ({found})")]
    Foreign { path: PathBuf, found: String },
    #[error(
        "{path}: batch format {found}, this dropdex reads up to {VERSION_MAX}; use a newer dropdex"
    )]
    Version { path: PathBuf, found: u16 },
    #[error(
        "{path}: damaged: BLAKE3 is {found}, expected {expected}; restore the file from a backup, or remove it and all later ones and ingest their lists again"
    )]
    Checksum { path: PathBuf, found: String, expected: String },
    #[error(
        "{path}: damaged at byte {offset}: {what}; restore the file from a backup, or remove it and all later ones and ingest their lists again"
    )]
    Malformed { path: PathBuf, offset: usize, what: &'static str },
}

/// Metadata of a batch: its origin and content. The default describes a temporary sorted run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMeta {
    /// The file name of the list without folders; both names for a zone pair.
    pub source: String,
    /// SHA-256 of the list as stored, in hex: its identity.
    pub source_sha256: String,
    pub format: String,
    pub observed_at: DateTime<Utc>,
    pub ingested_at: DateTime<Utc>,
    pub accepted: u64,
    pub rejected: u64,
    /// Number of entries in this file.
    pub rows: u64,
    /// Number of distinct names in this file.
    pub names: u64,
    /// Version of the scorer that computed every [`Base`] in this file.
    pub scorer_version: u32,
    /// Where the list was fetched from; `None` for a local file or a compacted batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The day that determines how the list is read, if any
    /// ([`Feed::day`](crate::feeds::Feed::day)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Day>,
    /// Numbers, from 1, of lists with the same bytes whose rows were interpreted differently. The
    /// entries of those lists no longer count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<u32>,
    /// For a list of the changes of a zone: the zone, and the days of the files that were compared since
    /// its last list. On these days, names without a row had not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<ZoneDays>,
    /// The lists of a compacted batch, in order; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<BatchMeta>,
}

/// Returns the lists that no other reading replaces, with their numbers from 1. `lists` are all of a corpus.
pub fn not_replaced<'a>(
    lists: impl Iterator<Item = &'a BatchMeta> + Clone,
) -> impl Iterator<Item = (u32, &'a BatchMeta)> {
    let replaced: BTreeSet<u32> =
        lists.clone().flat_map(|list| list.replaces.iter().copied()).collect();
    (1..).zip(lists).filter(move |(number, _)| !replaced.contains(number))
}

/// One observation as a batch stores it, without its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredObservation {
    pub sighting: Sighting,
    pub first_seen: Option<Day>,
    /// Unix seconds.
    pub observed_at: i64,
}

/// One row: a name, its score and the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Canonical name, at most 253 bytes.
    pub name: &'a [u8],
    /// Bytes of the registrable label.
    pub label_len: u8,
    /// Characters of the registrable label in Unicode.
    pub length: u8,
    pub base: Base,
    /// The score features as stored by the scorer: at most 255 bytes; empty unless `record` is a
    /// drop.
    pub features: &'a [u8],
    pub record: StoredObservation,
}

impl BatchMeta {
    /// The lists in the batch, one or more, in order.
    pub fn lists(&self) -> &[BatchMeta] {
        if self.lists.is_empty() { std::slice::from_ref(self) } else { &self.lists }
    }

    /// Whether the list has the registrations of all names that a registry ever had.
    pub fn is_history(&self) -> bool {
        self.format == Format::History.as_str()
    }

    /// Reads only the metadata of the batch at `path`, without verifying the checksum.
    ///
    /// # Errors
    /// The file is not readable or not a batch.
    pub fn peek(path: &Path) -> Result<BatchMeta, BatchError> {
        let foreign = || BatchError::Foreign { path: path.to_owned(), found: "cut short".into() };
        let mut file = File::open(path).at(path)?;
        let len = file.metadata().at(path)?.len();
        let trailer_at = len.checked_sub(TRAILER_LEN as u64).ok_or_else(foreign)?;
        let mut trailer = [0; TRAILER_LEN];
        file.seek(SeekFrom::Start(trailer_at)).at(path)?;
        file.read_exact(&mut trailer).at(path)?;
        let meta_at = u64::from_le_bytes(trailer[8..16].try_into().expect("eight bytes"));
        if !trailer.ends_with(MAGIC) || meta_at > trailer_at || trailer_at - meta_at > META_LEN_MAX
        {
            return Err(foreign());
        }
        let mut meta = vec![0; (trailer_at - meta_at) as usize];
        file.seek(SeekFrom::Start(meta_at)).at(path)?;
        file.read_exact(&mut meta).at(path)?;
        serde_json::from_slice(&meta).map_err(|_| foreign())
    }
}

/// Reads the checksum of the file at `path`, which is `after` bytes before its end, without
/// verifying it.
///
/// # Errors
/// The file is not readable or too short.
pub(super) fn peek_checksum(path: &Path, after: usize) -> Result<blake3::Hash, BatchError> {
    let foreign = || BatchError::Foreign { path: path.to_owned(), found: "cut short".into() };
    let mut file = File::open(path).at(path)?;
    let len = file.metadata().at(path)?.len();
    let at = len.checked_sub((blake3::OUT_LEN + after) as u64).ok_or_else(foreign)?;
    file.seek(SeekFrom::Start(at)).at(path)?;
    let mut checksum = [0; blake3::OUT_LEN];
    file.read_exact(&mut checksum).at(path)?;
    Ok(checksum.into())
}

const KIND_DROPPED: u8 = 0;
const KIND_REGISTERED: u8 = 1;
const KIND_KNOWN: u8 = 2;
/// A drop whose release has a second.
const KIND_TIMED: u8 = 3;
const KIND_MASK: u8 = 0b11;
/// `registered_again` of a drop, or `registered` of a known name.
const FLAG_REGISTERED: u8 = 1 << 2;
const FLAG_FIRST_SEEN: u8 = 1 << 3;
const FLAG_RELEASE: u8 = 1 << 4;
/// Observed in the same second as the previous entry of the block.
const FLAG_SAME_SECOND: u8 = 1 << 5;
/// The entry is from the same list as the previous entry of the block.
const FLAG_SAME_LIST: u8 = 1 << 6;
/// A drop for which only the release is known. The release is stored in place of the drop date, so
/// versions without this flag can read the entry.
const FLAG_RELEASE_ALONE: u8 = 1 << 7;

/// Encoded entries in name order, in memory. Threads build segments in parallel, and one
/// [`BatchWriter`] appends them.
#[derive(Default)]
pub struct EncodedEntries {
    bytes: Vec<u8>,
    /// Offset in `bytes` and first name of each block.
    blocks: Vec<(u64, Vec<u8>)>,
    /// Number of entries in the last block.
    in_block: u32,
    last_name: Vec<u8>,
    last_second: i64,
    last_list: Option<u32>,
    rows: u64,
    names: u64,
}

impl EncodedEntries {
    /// Appends `entry`, whose name must not sort before the last one; `list` is the position of its
    /// list in a compacted batch.
    pub fn push(&mut self, entry: &Entry<'_>, list: Option<u32>) {
        debug_assert!(entry.name >= self.last_name.as_slice(), "entries come in name order");
        let shared = common_prefix(&self.last_name, entry.name);
        let repeated = shared == entry.name.len() && shared == self.last_name.len();
        self.names += u64::from(!repeated || self.rows == 0);
        let first = self.rows == 0 || self.in_block == BLOCK_ENTRIES;
        if first {
            self.blocks.push((self.bytes.len() as u64, entry.name.to_vec()));
            self.in_block = 0;
        }
        let same_second = !first && entry.record.observed_at == self.last_second;
        let same_list = !first && list == self.last_list;
        let before = Before { shared: if first { 0 } else { shared }, same_second, same_list };
        encode(entry, list, before, &mut self.bytes);
        self.last_list = list;
        self.last_name.truncate(shared);
        self.last_name.extend_from_slice(&entry.name[shared..]);
        self.last_second = entry.record.observed_at;
        self.in_block += 1;
        self.rows += 1;
    }
}

impl<'a> FromIterator<Entry<'a>> for EncodedEntries {
    fn from_iter<I: IntoIterator<Item = Entry<'a>>>(entries: I) -> EncodedEntries {
        let mut segment = EncodedEntries::default();
        entries.into_iter().for_each(|entry| segment.push(&entry, None));
        segment
    }
}

/// Writes entries in name order, then block index, metadata and checksum.
pub struct BatchWriter<W: Write> {
    out: W,
    hasher: blake3::Hasher,
    /// Number of bytes written.
    offset: u64,
    /// The blocks written so far.
    blocks: Vec<(u64, Vec<u8>)>,
    /// The entries not yet written, and the last name.
    tail: EncodedEntries,
}

impl<W: Write> BatchWriter<W> {
    fn new(out: W, version: u16) -> io::Result<BatchWriter<W>> {
        let (hasher, tail) = (blake3::Hasher::new(), EncodedEntries::default());
        let mut writer = BatchWriter { out, hasher, offset: 0, blocks: Vec::new(), tail };
        writer.put(MAGIC)?;
        writer.put(&version.to_le_bytes())?;
        Ok(writer)
    }

    /// The same as [`EncodedEntries::push`].
    ///
    /// # Errors
    /// An I/O error.
    pub fn push(&mut self, entry: &Entry<'_>, list: Option<u32>) -> io::Result<()> {
        self.tail.push(entry, list);
        if self.tail.bytes.len() < BUFFER_BYTES { Ok(()) } else { self.write_tail() }
    }

    /// Appends all entries of `segment`, whose first name must not sort before the last one.
    ///
    /// # Errors
    /// An I/O error.
    pub fn append(&mut self, segment: EncodedEntries) -> io::Result<()> {
        let Some((_, first)) = segment.blocks.first() else { return Ok(()) };
        self.write_tail()?;
        let repeated = self.tail.rows > 0 && self.tail.last_name == *first;
        let (rows, names) = self.counts();
        self.tail = EncodedEntries {
            rows: rows + segment.rows,
            names: names + segment.names - u64::from(repeated),
            ..segment
        };
        self.write_tail()
    }

    /// Returns the number of entries and of distinct names so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.tail.rows, self.tail.names)
    }

    /// Writes the block index, metadata and checksum, and returns the flushed writer.
    ///
    /// # Errors
    /// An I/O error.
    pub fn finish(mut self, meta: &BatchMeta) -> io::Result<W> {
        self.write_tail()?;
        let index_at = self.offset;
        let mut end = Vec::new();
        for (offset, name) in std::mem::take(&mut self.blocks) {
            end.extend_from_slice(&offset.to_le_bytes());
            end.push(name.len() as u8);
            end.extend_from_slice(&name);
        }
        let meta_at = index_at + end.len() as u64;
        end.extend(serde_json::to_vec(meta).map_err(io::Error::other)?);
        end.extend(index_at.to_le_bytes());
        end.extend(meta_at.to_le_bytes());
        self.put(&end)?;
        let checksum = self.hasher.finalize();
        self.out.write_all(checksum.as_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the entries of the tail. The tail then keeps only the last name and the counts.
    fn write_tail(&mut self) -> io::Result<()> {
        let start = self.offset;
        let blocks = self.tail.blocks.drain(..);
        self.blocks.extend(blocks.map(|(offset, name)| (start + offset, name)));
        let mut bytes = std::mem::take(&mut self.tail.bytes);
        let written = self.put(&bytes);
        bytes.clear();
        self.tail.bytes = bytes;
        written
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// Returns the length of the common prefix of two names.
fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let words = left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0);
    let mut shared = 0;
    for (left, right) in words {
        let differing = u64::from_le_bytes(*left) ^ u64::from_le_bytes(*right);
        if differing != 0 {
            return shared + differing.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    let rest = left[shared..].iter().zip(&right[shared..]);
    shared + rest.take_while(|(left, right)| left == right).count()
}

/// The parts that an entry shares with the previous one.
struct Before {
    /// Number of shared bytes of the name.
    shared: usize,
    same_second: bool,
    same_list: bool,
}

fn encode(entry: &Entry<'_>, list: Option<u32>, before: Before, row: &mut Vec<u8>) {
    let Before { shared, same_second, same_list } = before;
    let StoredObservation { sighting, first_seen, observed_at } = entry.record;
    let (kind, registered, day, release) = match sighting {
        Sighting::Dropped { date, release, registered_again } => {
            (KIND_DROPPED, registered_again, Some(date), release)
        }
        Sighting::Released { on } => (KIND_DROPPED, false, Some(on.day), Some(on)),
        Sighting::Registered { on } => (KIND_REGISTERED, false, Some(on), None),
        Sighting::Known { registered } => (KIND_KNOWN, registered, None, None),
    };
    let second = release.and_then(Release::second);
    let kind = if second.is_some() { KIND_TIMED } else { kind };
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = kind
        | flag(registered, FLAG_REGISTERED)
        | flag(first_seen.is_some(), FLAG_FIRST_SEEN)
        | flag(release.is_some(), FLAG_RELEASE)
        | flag(matches!(sighting, Sighting::Released { .. }), FLAG_RELEASE_ALONE)
        | flag(same_second, FLAG_SAME_SECOND)
        | flag(same_list && list.is_some(), FLAG_SAME_LIST);
    let suffix = &entry.name[shared..];
    row.extend_from_slice(&[shared as u8, suffix.len() as u8]);
    row.extend_from_slice(suffix);
    row.extend_from_slice(&[entry.label_len, entry.length, flags]);
    row.extend_from_slice(&entry.base.to_bits().to_le_bytes());
    if !same_second {
        row.extend_from_slice(&observed_at.to_le_bytes());
    }
    if let Some(list) = list.filter(|_| !same_list) {
        row.extend_from_slice(&list.to_le_bytes());
    }
    let release = release.map(|release| release.day);
    for day in [day, release, first_seen].into_iter().flatten() {
        row.extend_from_slice(&day.raw().to_le_bytes());
    }
    if let Some(second) = second {
        row.extend_from_slice(&second.get().to_le_bytes());
    }
    if matches!(kind, KIND_DROPPED | KIND_TIMED) {
        // Features that do not fit are omitted, and the score is then computed again.
        let features = if entry.features.len() <= FEATURES_LEN_MAX { entry.features } else { &[] };
        row.push(features.len() as u8);
        row.extend_from_slice(features);
    }
}

/// A batch open for reading, its checksum verified.
#[derive(Debug)]
pub struct Batch {
    path: PathBuf,
    bytes: Mmap,
    version: u16,
    meta: BatchMeta,
    blocks: Vec<Block>,
    index_at: usize,
}

/// Offset of a block and the range of its first name.
type Block = (usize, std::ops::Range<usize>);

impl Batch {
    /// Opens and verifies the whole file.
    ///
    /// # Errors
    /// The file is not readable, not a batch, of a newer format, or damaged.
    pub fn open(path: &Path) -> Result<Batch, BatchError> {
        let file = File::open(path).at(path)?;
        let bytes = map(&file).at(path)?;
        let layout = check(path, &bytes)?;
        let meta = serde_json::from_slice(&bytes[layout.meta.clone()]).map_err(|_| {
            BatchError::Malformed { path: path.to_owned(), offset: layout.meta.start, what: "meta" }
        })?;
        let blocks = read_blocks(path, &bytes, &layout)?;
        let Layout { version, index, .. } = layout;
        Ok(Batch { path: path.to_owned(), bytes, version, meta, blocks, index_at: index.start })
    }

    /// Metadata: origin and content.
    pub fn meta(&self) -> &BatchMeta {
        &self.meta
    }

    /// Whether drops carry score features. Files of version 1 do not.
    pub fn has_features(&self) -> bool {
        self.version >= VERSION_WITH_FEATURES
    }

    /// Whether the batch was compacted, so that each entry names its list.
    pub fn is_compacted(&self) -> bool {
        self.version == VERSION_COMPACTED || !self.meta.lists.is_empty()
    }

    /// The lists in the batch, one or more, in order.
    pub fn lists(&self) -> &[BatchMeta] {
        self.meta.lists()
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The checksum in the file, which was verified on opening.
    pub fn checksum(&self) -> &[u8] {
        let at = self.bytes.len() - MAGIC.len() - blake3::OUT_LEN;
        &self.bytes[at..at + blake3::OUT_LEN]
    }

    /// The first names of the blocks, where a merge can be split.
    pub fn block_names(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().map(|block| self.block_name(block))
    }

    /// Returns a cursor at the first entry whose name is `from` or later.
    ///
    /// # Errors
    /// [`BatchError::Malformed`], which does not occur in verified files.
    pub fn cursor(&self, from: &[u8]) -> Result<Cursor<'_>, BatchError> {
        let at = self.blocks.first().map_or(self.index_at, |(offset, _)| *offset);
        let mut cursor = Cursor {
            batch: self,
            at,
            block: 0,
            kept_from: at,
            name: NameBytes::default(),
            fields: None,
            observed_at: 0,
            list: 0,
        };
        cursor.advance()?;
        cursor.seek(from)?;
        Ok(cursor)
    }

    /// The first name of a block.
    fn block_name(&self, block: &Block) -> &[u8] {
        &self.bytes[block.1.clone()]
    }
}

/// Twice the length of the longest name, so that a prefix and a suffix always fit.
const NAME_BYTES: usize = 2 * u8::MAX as usize;
/// Length into which most names and suffixes fit. Such texts are copied with a fixed length, which
/// takes a few instructions.
const SHORT: usize = 32;

/// Buffer that holds the current name of a cursor.
#[derive(Clone, Copy, Debug)]
pub struct NameBytes {
    bytes: [u8; NAME_BYTES],
    len: usize,
    /// The first bytes as a number. Names with different heads sort like their heads.
    head: u64,
}

impl Default for NameBytes {
    fn default() -> NameBytes {
        NameBytes { bytes: [0; NAME_BYTES], len: 0, head: 0 }
    }
}

impl NameBytes {
    /// The name.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Copies the name of `other`.
    pub fn copy(&mut self, other: &NameBytes) {
        (self.len, self.head) = (other.len, other.head);
        match (self.bytes.first_chunk_mut::<SHORT>(), other.bytes.first_chunk::<SHORT>()) {
            (Some(to), Some(from)) if other.len <= SHORT => *to = *from,
            _ => self.bytes[..other.len].copy_from_slice(other.as_slice()),
        }
    }

    /// Keeps the first `shared` bytes and appends `suffix` bytes, which it consumes from `input`.
    /// Returns `None` if `input` has fewer.
    fn follow(&mut self, shared: usize, suffix: usize, input: &mut &[u8]) -> Option<()> {
        (shared <= self.len && suffix <= u8::MAX.into()).then_some(())?;
        match input.first_chunk::<SHORT>() {
            Some(bytes) if suffix <= SHORT => {
                self.bytes[shared..shared + SHORT].copy_from_slice(bytes);
                *input = &input[suffix..];
            }
            _ => self.bytes[shared..shared + suffix].copy_from_slice(input.split_off(..suffix)?),
        }
        self.len = shared + suffix;
        if shared < 8 {
            self.head = head_of(self.as_slice());
        }
        Some(())
    }
}

impl Ord for NameBytes {
    fn cmp(&self, other: &NameBytes) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.as_slice().cmp(other.as_slice()))
    }
}

impl PartialOrd for NameBytes {
    fn partial_cmp(&self, other: &NameBytes) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NameBytes {
    fn eq(&self, other: &NameBytes) -> bool {
        self.head == other.head && self.as_slice() == other.as_slice()
    }
}

impl Eq for NameBytes {}

/// The first eight bytes of a name as a big-endian number, padded with zeros.
pub fn head_of(name: &[u8]) -> u64 {
    match name.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let head = name.iter().fold(0, |head, &byte| head << 8 | u64::from(byte));
            if name.is_empty() { 0 } else { head << (64 - 8 * name.len()) }
        }
    }
}

/// Iterates over the entries of a [`Batch`] in name order.
pub struct Cursor<'a> {
    batch: &'a Batch,
    at: usize,
    /// A block that starts at or before the current entry.
    block: usize,
    /// Start of the bytes that were read but whose memory is not yet released.
    kept_from: usize,
    name: NameBytes,
    fields: Option<EntryFields<'a>>,
    /// The time of the current entry in seconds.
    observed_at: i64,
    /// The position of the list of the current entry.
    list: u32,
}

/// An [`Entry`] without its name.
#[derive(Clone, Copy)]
pub struct EntryFields<'a> {
    pub label_len: u8,
    pub length: u8,
    pub base: Base,
    pub features: &'a [u8],
    pub record: StoredObservation,
}

impl<'a> Cursor<'a> {
    /// The current entry; `None` past the end.
    pub fn entry(&self) -> Option<Entry<'_>> {
        let EntryFields { label_len, length, base, features, record } = self.fields?;
        Some(Entry { name: self.name.as_slice(), label_len, length, base, features, record })
    }

    /// The current entry without its name.
    pub fn fields(&self) -> Option<EntryFields<'a>> {
        self.fields
    }

    /// The position of the current entry's list in [`Batch::lists`].
    pub fn list(&self) -> u32 {
        self.list
    }

    /// The current name; empty past the end.
    pub fn name(&self) -> &NameBytes {
        &self.name
    }

    /// Moves to the next entry; false at the end.
    ///
    /// # Errors
    /// [`BatchError::Malformed`], which does not occur in verified files.
    pub fn advance(&mut self) -> Result<bool, BatchError> {
        if self.at >= self.batch.index_at {
            self.fields = None;
            self.name = NameBytes::default();
            return Ok(false);
        }
        if self.at - self.kept_from >= CURSOR_BYTES {
            self.give_back();
        }
        self.fields = self.decode();
        if self.fields.is_some() { Ok(true) } else { Err(self.malformed()) }
    }

    /// Releases the memory of bytes already read, because a merge reads each byte only once.
    #[cold]
    fn give_back(&mut self) {
        give_back(&self.batch.bytes, self.kept_from..self.at);
        self.kept_from = self.at;
    }

    /// Moves forward to the first entry whose name is `from` or later. Skips blocks, so that a series of
    /// calls decodes the batch at most once.
    ///
    /// # Errors
    /// [`BatchError::Malformed`], which does not occur in verified files.
    pub fn seek(&mut self, from: &[u8]) -> Result<(), BatchError> {
        if self.fields.is_none() || self.name.as_slice() >= from {
            return Ok(());
        }
        // Entries equal to `from` may be at the end of the block before the first one that starts with
        // `from`.
        let is_before = |block: &Block| self.batch.block_name(block) < from;
        let blocks = &self.batch.blocks[self.block..];
        let mut step = 1;
        while blocks.get(step).is_some_and(is_before) {
            step *= 2;
        }
        let near = &blocks[step / 2..blocks.len().min(step)];
        self.block += step / 2 + near.partition_point(is_before).saturating_sub(1);
        let (offset, _) = self.batch.blocks[self.block];
        if offset > self.at {
            self.give_back();
            (self.at, self.kept_from) = (offset, offset);
        }
        while self.advance()? && self.name.as_slice() < from {}
        Ok(())
    }

    #[cold]
    fn malformed(&self) -> BatchError {
        BatchError::Malformed { path: self.batch.path.clone(), offset: self.at, what: "entry" }
    }

    fn decode(&mut self) -> Option<EntryFields<'a>> {
        let batch = self.batch;
        let mut input = &batch.bytes[self.at..batch.index_at];
        let before = input.len();
        let [shared, suffix] = take::<2>(&mut input)?.map(usize::from);
        self.name.follow(shared, suffix, &mut input)?;
        let [label_len, length, flags, base @ ..] = take::<7>(&mut input)?;
        let base = Base::from_bits(u32::from_le_bytes(base));
        if flags & FLAG_SAME_SECOND == 0 {
            self.observed_at = i64::from_le_bytes(take(&mut input)?);
        }
        if batch.is_compacted() && flags & FLAG_SAME_LIST == 0 {
            self.list = u32::from_le_bytes(take(&mut input)?);
            (self.list < batch.lists().len() as u32).then_some(())?;
        }
        let registered = flags & FLAG_REGISTERED != 0;
        let kind = flags & KIND_MASK;
        let day = if kind == KIND_KNOWN { None } else { Some(take_day(&mut input)?) };
        let release = if flags & FLAG_RELEASE != 0 { Some(take_day(&mut input)?) } else { None };
        let first_seen =
            if flags & FLAG_FIRST_SEEN != 0 { Some(take_day(&mut input)?) } else { None };
        let second = if kind == KIND_TIMED {
            Some(SecondOfDay::new(u32::from_le_bytes(take(&mut input)?))?)
        } else {
            None
        };
        let release = release.map(|day| Release::new(day, second));
        let sighting = match kind {
            KIND_REGISTERED => Sighting::Registered { on: day? },
            KIND_KNOWN => Sighting::Known { registered },
            _ if flags & FLAG_RELEASE_ALONE != 0 => Sighting::Released { on: release? },
            _ => Sighting::Dropped { date: day?, release, registered_again: registered },
        };
        let is_drop = matches!(kind, KIND_DROPPED | KIND_TIMED);
        let features = if is_drop && batch.has_features() {
            let [len] = take(&mut input)?;
            input.split_off(..usize::from(len))?
        } else {
            &[]
        };
        self.at += before - input.len();
        let record = StoredObservation { sighting, first_seen, observed_at: self.observed_at };
        Some(EntryFields { label_len, length, base, features, record })
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    input.split_off(..N)?.try_into().ok()
}

fn take_day(input: &mut &[u8]) -> Option<Day> {
    Day::from_raw(u16::from_le_bytes(take(input)?))
}

#[expect(unsafe_code, reason = "the one place that maps a file")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a batch is written once, renamed into place and never written again, and the corpus
    // lock keeps a second dropdex out. If an operator truncates one nevertheless, the worker process
    // of the rebuild dies of SIGBUS. The server itself maps no batch.
    unsafe { Mmap::map(file) }
}

/// Advises the kernel that the process does not need these bytes for now. Pages of a mapped file count as
/// memory of the process that read them. Afterwards these pages stay in the page cache while it has room.
#[expect(unsafe_code, reason = "belongs to the one place that maps a file")]
fn give_back(bytes: &Mmap, range: std::ops::Range<usize>) {
    // SAFETY: the mapping is shared and read-only, so that a later read finds the same bytes in the file.
    let given = unsafe {
        bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len())
    };
    // Best effort: pages that the kernel keeps merely take memory.
    let _ = given;
}

struct Layout {
    version: u16,
    index: std::ops::Range<usize>,
    meta: std::ops::Range<usize>,
}

fn check(path: &Path, bytes: &Mmap) -> Result<Layout, BatchError> {
    let foreign = |found: &str| BatchError::Foreign { path: path.to_owned(), found: found.into() };
    if bytes.get(..MAGIC.len()) != Some(MAGIC) {
        return Err(foreign("no magic at the start"));
    }
    let version = bytes.get(MAGIC.len()..HEADER_LEN).ok_or_else(|| foreign("too short"))?;
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version > VERSION_MAX {
        return Err(BatchError::Version { path: path.to_owned(), found: version });
    }
    if bytes.len() < HEADER_LEN + TRAILER_LEN || !bytes.ends_with(MAGIC) {
        return Err(foreign("cut short"));
    }
    let sum_at = bytes.len() - MAGIC.len() - blake3::OUT_LEN;
    let expected = &bytes[sum_at..sum_at + blake3::OUT_LEN];
    let found = hash(bytes, sum_at);
    if found.as_bytes() != expected {
        return Err(BatchError::Checksum {
            path: path.to_owned(),
            found: found.to_hex().to_string(),
            expected: hex::encode(expected),
        });
    }
    let number = |at: usize| {
        let bytes = bytes[at..at + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
    };
    let (index_at, meta_at, end) = (number(sum_at - 16), number(sum_at - 8), sum_at - 16);
    if HEADER_LEN <= index_at && index_at <= meta_at && meta_at <= end {
        Ok(Layout { version, index: index_at..meta_at, meta: meta_at..end })
    } else {
        Err(foreign("overlapping parts"))
    }
}

/// Hashes the first `len` bytes and releases their memory.
fn hash(bytes: &Mmap, len: usize) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for start in (0..len).step_by(HASHED_BYTES) {
        let piece = start..len.min(start + HASHED_BYTES);
        hasher.update_rayon(&bytes[piece.clone()]);
        give_back(bytes, piece);
    }
    hasher.finalize()
}

fn read_blocks(path: &Path, bytes: &[u8], layout: &Layout) -> Result<Vec<Block>, BatchError> {
    let mut blocks = Vec::new();
    let mut at = layout.index.start;
    while at < layout.index.end {
        let block = bytes[at..layout.index.end]
            .split_first_chunk::<9>()
            .and_then(|(head, rest)| {
                let (&offset, _) = head.split_first_chunk::<8>()?;
                let name = at + 9..at + 9 + usize::from(head[8]);
                let offset = usize::try_from(u64::from_le_bytes(offset)).ok()?;
                (rest.len() >= name.len() && offset < layout.index.start).then_some((offset, name))
            })
            .ok_or(BatchError::Malformed { path: path.to_owned(), offset: at, what: "index" })?;
        at = block.1.end;
        blocks.push(block);
    }
    Ok(blocks)
}

/// Creates the file of a batch. Entries of a compacted batch are written with their list, and its metadata
/// has the lists.
///
/// # Errors
/// The file exists or cannot be created.
pub fn create(path: &Path) -> Result<BatchWriter<BufWriter<File>>, BatchError> {
    let out = BufWriter::with_capacity(1 << 20, new_file::create_new(path).at(path)?);
    Ok(BatchWriter::new(out, VERSION_MAX).at(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn meta() -> BatchMeta {
        BatchMeta { source: "list.csv".into(), rows: 3, ..BatchMeta::default() }
    }

    fn sightings() -> [Sighting; 8] {
        let date = day("2026-10-03");
        let timed =
            Release::at("2026-10-09T23:59:59Z".parse().expect("an instant")).expect("a day");
        [
            Sighting::Dropped { date, release: Some(timed), registered_again: true },
            Sighting::Released { on: timed },
            Sighting::Dropped { date, release: None, registered_again: false },
            Sighting::Dropped {
                date,
                release: Some(day("2026-11-01").into()),
                registered_again: true,
            },
            Sighting::Released { on: date.into() },
            Sighting::Registered { on: date },
            Sighting::Known { registered: true },
            Sighting::Known { registered: false },
        ]
    }

    /// Features of a drop, from none to the maximum length depending on the row.
    fn features(row: usize) -> &'static [u8] {
        static BYTES: [u8; FEATURES_LEN_MAX] = [7; FEATURES_LEN_MAX];
        if row % 8 < 5 { &BYTES[..row % (FEATURES_LEN_MAX + 1)] } else { &[] }
    }

    fn write(path: &Path, names: &[String]) -> Vec<(String, StoredObservation)> {
        let mut writer = create(path).expect("a new file");
        let mut rows = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let record = StoredObservation {
                sighting: sightings()[at % 8],
                first_seen: at.is_multiple_of(3).then(|| day("2001-02-03")),
                observed_at: at as i64 / 3 - 5,
            };
            let base = Base::from_bits(at as u32);
            let entry = Entry {
                name: name.as_bytes(),
                label_len: 3,
                length: 4,
                base,
                features: features(at),
                record,
            };
            writer.push(&entry, None).expect("written");
            rows.push((name.clone(), record));
        }
        writer.finish(&meta()).expect("finished");
        rows
    }

    fn read(batch: &Batch, from: &str) -> Vec<(String, StoredObservation)> {
        let mut cursor = batch.cursor(from.as_bytes()).expect("a cursor");
        let mut rows = Vec::new();
        while let Some(entry) = cursor.entry() {
            let name = String::from_utf8(entry.name.to_vec()).expect("ASCII");
            rows.push((name, entry.record));
            let row = entry.base.to_bits() as usize;
            assert_eq!(entry.features, features(row), "row {row}");
            cursor.advance().expect("an entry");
        }
        rows
    }

    #[test]
    fn entries_are_read_from_any_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("batch");
        // Repeated names cross block boundaries: 700 names, four times each.
        let names: Vec<String> = (0..2800).map(|at| format!("n{:04}.com", at / 4)).collect();
        let rows = write(&path, &names);
        let batch = Batch::open(&path).expect("opens");
        assert_eq!(batch.meta(), &meta());
        assert_eq!(BatchMeta::peek(&path).expect("a meta"), meta());
        assert_eq!(read(&batch, ""), rows);
        for from in ["n0256.com", "n0255.com", "n0255.com0", "n0512.com", "n0699.com", "zzz"] {
            let expected: Vec<_> =
                rows.iter().filter(|(name, _)| name.as_str() >= from).cloned().collect();
            assert_eq!(read(&batch, from), expected, "{from}");
        }
    }

    #[test]
    fn segments_and_single_entries_write_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let names: Vec<String> = (0..5000).map(|at| format!("n{:04}.com", at / 3)).collect();
        let entry = |at: usize| {
            let sighting = sightings()[at % 8];
            let record =
                StoredObservation { sighting, first_seen: None, observed_at: at as i64 / 7 };
            let base = Base::from_bits(at as u32);
            let name = names[at].as_bytes();
            Entry { name, label_len: 5, length: 5, base, features: features(at), record }
        };
        let mut reads = Vec::new();
        // Row numbers at which segments end. The remaining rows are written one by one.
        let ends: [&[usize]; 4] = [&[], &[0, 1, 2, 1024, 1025], &[700, 701, 4000], &[3000, 5000]];
        for (at, ends) in ends.into_iter().enumerate() {
            let path = folder.path().join(at.to_string());
            let mut writer = create(&path).expect("a new file");
            let mut start = 0;
            for &end in ends {
                writer.append((start..end).map(entry).collect()).expect("written");
                start = end;
            }
            for at in start..names.len() {
                writer.push(&entry(at), None).expect("written");
            }
            assert_eq!(writer.counts(), (5000, 1667));
            writer.finish(&meta()).expect("finished");
            let batch = Batch::open(&path).expect("opens");
            reads.push((read(&batch, ""), read(&batch, "n0341.com")));
        }
        assert_eq!(reads[0].0.len(), 5000);
        assert!(reads.iter().all(|read| *read == reads[0]));
    }

    #[test]
    fn names_compare_as_their_bytes() {
        let long = "abcdefgh".repeat(30);
        let names = ["", "a", "a-b.com", "a.com", "ab", "abcdefgh", "abcdefghi", &long[..32]];
        let names = [&names[..], &[&long[..33], &long[..100], &long, "b"]].concat();
        let stored = |name: &&str| {
            let (mut stored, mut copy) = (NameBytes::default(), NameBytes::default());
            // The previous content of the buffer must have no effect.
            stored.follow(0, 100, &mut long.as_bytes()).expect("bytes");
            let half = name.len() / 2;
            stored.follow(0, half, &mut &name.as_bytes()[..half]).expect("bytes");
            let rest = name.len() - half;
            stored.follow(half, rest, &mut &name.as_bytes()[half..]).expect("bytes");
            copy.copy(&stored);
            assert_eq!(copy.as_slice(), name.as_bytes());
            copy
        };
        for left in &names {
            for right in &names {
                let (one, other) = (stored(left), stored(right));
                assert_eq!(one.cmp(&other), left.cmp(right), "{left} {right}");
                assert_eq!(one == other, left == right, "{left} {right}");
                let shared = left.bytes().zip(right.bytes()).take_while(|(l, r)| l == r).count();
                assert_eq!(common_prefix(left.as_bytes(), right.as_bytes()), shared);
            }
        }
        assert!(NameBytes::default().follow(1, 1, &mut &b"ab"[..]).is_none());
        assert!(NameBytes::default().follow(0, 3, &mut &b"ab"[..]).is_none());
    }

    #[test]
    fn an_empty_batch_is_valid() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("batch");
        write(&path, &[]);
        assert_eq!(read(&Batch::open(&path).expect("opens"), ""), []);
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("batch");
        let names: Vec<String> = (0..20).map(|at| format!("n{at:02}.com")).collect();
        write(&path, &names);
        let whole = std::fs::read(&path).expect("readable");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).expect("writable");
            assert!(Batch::open(&path).is_err(), "bit flipped at {at}");
            std::fs::write(&path, &whole[..at]).expect("writable");
            assert!(Batch::open(&path).is_err(), "cut at {at}");
        }
    }
}
