//! One ingested list on disk: observations sorted by name, scored once, never changed.
//!
//! ```text
//! magic "DDXBATCH"  version u16
//! entries           front-coded, in blocks that each start with a whole name
//! block index       per block: offset u64, name length u8, first name
//! meta              JSON: where the list came from, counts, scorer version
//! trailer           index offset u64, meta offset u64, BLAKE3 of all bytes before it, magic
//! ```
//! Integers are little-endian. A file is read only after its checksum holds.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use crate::feeds::Sighting;
use crate::scorer::Base;
use crate::vocab::day::Day;
use crate::vocab::name::NAME_OCTETS_MAX;

const MAGIC: &[u8; 8] = b"DDXBATCH";
/// Raised when the layout changes; older versions stay readable.
const VERSION: u16 = 1;
const HEADER_LEN: usize = MAGIC.len() + 2;
const TRAILER_LEN: usize = 8 + 8 + blake3::OUT_LEN + MAGIC.len();
/// More than any meta needs; less than would hurt to read from a damaged file.
const META_LEN_MAX: u64 = 1 << 20;
/// Entries between two whole names: a merge can start at any block.
const BLOCK_ENTRIES: u32 = 1024;

/// Why a batch cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: not a dropdex batch ({found})")]
    Foreign { path: PathBuf, found: String },
    #[error(
        "{path}: batch format {found}, this dropdex reads up to {VERSION}; use a newer dropdex"
    )]
    Version { path: PathBuf, found: u16 },
    #[error(
        "{path}: damaged: BLAKE3 is {found}, expected {expected}; restore the file from a backup, or remove it and ingest its list again"
    )]
    Checksum { path: PathBuf, found: String, expected: String },
    #[error("{path}: damaged at byte {offset}: {what}")]
    Malformed { path: PathBuf, offset: usize, what: &'static str },
}

impl BatchError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> BatchError + '_ {
        move |source| BatchError::Io { path: path.to_owned(), source }
    }
}

/// Where a batch came from and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMeta {
    /// The list's file name, without folders; both names for a zone pair.
    pub source: String,
    /// SHA-256 of the list as it was stored, hex: its identity.
    pub source_sha256: String,
    /// What the list was read as.
    pub format: String,
    /// When the list was observed.
    pub observed_at: DateTime<Utc>,
    /// When it was ingested.
    pub ingested_at: DateTime<Utc>,
    /// Rows accepted and rows rejected.
    pub accepted: u64,
    pub rejected: u64,
    /// Entries in this file, and distinct names among them.
    pub rows: u64,
    pub names: u64,
    /// The scorer that computed every [`Base`] here.
    pub scorer_version: u32,
}

/// One observation as a batch holds it, but for its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub sighting: Sighting,
    pub first_seen: Option<Day>,
    /// Unix seconds.
    pub observed_at: i64,
}

/// One row: a name with its split, score and what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Canonical name, at most 253 octets.
    pub name: &'a [u8],
    /// Octets of the registrable label.
    pub label_len: u8,
    /// Characters of the registrable label in Unicode.
    pub length: u8,
    pub base: Base,
    pub record: Record,
}

impl BatchMeta {
    /// What a temporary sorted run carries: it is read back by the process that wrote it.
    pub fn of_a_run() -> BatchMeta {
        BatchMeta {
            source: String::new(),
            source_sha256: String::new(),
            format: String::new(),
            observed_at: DateTime::UNIX_EPOCH,
            ingested_at: DateTime::UNIX_EPOCH,
            accepted: 0,
            rejected: 0,
            rows: 0,
            names: 0,
            scorer_version: 0,
        }
    }

    /// Reads the meta of the batch at `path` and nothing else: no checksum is verified.
    ///
    /// # Errors
    /// Not readable, or not shaped as a batch.
    pub fn peek(path: &Path) -> Result<BatchMeta, BatchError> {
        let foreign = || BatchError::Foreign { path: path.to_owned(), found: "cut short".into() };
        let mut file = File::open(path).map_err(BatchError::io(path))?;
        let len = file.metadata().map_err(BatchError::io(path))?.len();
        let trailer_at = len.checked_sub(TRAILER_LEN as u64).ok_or_else(foreign)?;
        let mut trailer = [0; TRAILER_LEN];
        file.seek(SeekFrom::Start(trailer_at)).map_err(BatchError::io(path))?;
        file.read_exact(&mut trailer).map_err(BatchError::io(path))?;
        let meta_at = u64::from_le_bytes(trailer[8..16].try_into().expect("eight bytes"));
        if !trailer.ends_with(MAGIC) || meta_at > trailer_at || trailer_at - meta_at > META_LEN_MAX
        {
            return Err(foreign());
        }
        let mut meta = vec![0; (trailer_at - meta_at) as usize];
        file.seek(SeekFrom::Start(meta_at)).map_err(BatchError::io(path))?;
        file.read_exact(&mut meta).map_err(BatchError::io(path))?;
        serde_json::from_slice(&meta).map_err(|_| foreign())
    }
}

const KIND_DROPPED: u8 = 0;
const KIND_REGISTERED: u8 = 1;
const KIND_KNOWN: u8 = 2;
const KIND_MASK: u8 = 0b11;
/// registered_again of a drop; registered of a known name.
const FLAG_REGISTERED: u8 = 1 << 2;
const FLAG_FIRST_SEEN: u8 = 1 << 3;
const FLAG_RELEASE: u8 = 1 << 4;

/// Writes entries, given in name order, then the index, meta and checksum.
pub struct BatchWriter<W: Write> {
    out: W,
    hasher: blake3::Hasher,
    offset: u64,
    last_name: Vec<u8>,
    blocks: Vec<(u64, Vec<u8>)>,
    rows: u64,
    names: u64,
    row: Vec<u8>,
}

impl<W: Write> BatchWriter<W> {
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<BatchWriter<W>> {
        let mut writer = BatchWriter {
            out,
            hasher: blake3::Hasher::new(),
            offset: 0,
            last_name: Vec::with_capacity(NAME_OCTETS_MAX),
            blocks: Vec::new(),
            rows: 0,
            names: 0,
            row: Vec::with_capacity(NAME_OCTETS_MAX + 32),
        };
        writer.put(MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        Ok(writer)
    }

    /// Appends `entry`, whose name is not before the last one's.
    ///
    /// # Errors
    /// Those of the writer below.
    pub fn push(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        debug_assert!(entry.name >= self.last_name.as_slice(), "entries come in name order");
        let repeated = self.rows > 0 && entry.name == self.last_name.as_slice();
        let shared = if self.rows.is_multiple_of(u64::from(BLOCK_ENTRIES)) {
            self.blocks.push((self.offset, entry.name.to_vec()));
            0
        } else {
            common_prefix(&self.last_name, entry.name)
        };
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        encode(entry, shared, &mut row);
        let written = self.put(&row);
        self.row = row;
        self.last_name.clear();
        self.last_name.extend_from_slice(entry.name);
        self.rows += 1;
        self.names += u64::from(!repeated);
        written
    }

    /// Entries and distinct names so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.rows, self.names)
    }

    /// Writes what follows the entries and gives the writer below back, flushed.
    ///
    /// # Errors
    /// Those of the writer below.
    pub fn finish(mut self, meta: &BatchMeta) -> io::Result<W> {
        let index_at = self.offset;
        for (offset, name) in std::mem::take(&mut self.blocks) {
            self.put(&offset.to_le_bytes())?;
            self.put(&[name.len() as u8])?;
            self.put(&name)?;
        }
        let meta_at = self.offset;
        self.put(&serde_json::to_vec(meta).map_err(io::Error::other)?)?;
        self.put(&index_at.to_le_bytes())?;
        self.put(&meta_at.to_le_bytes())?;
        let checksum = self.hasher.finalize();
        self.out.write_all(checksum.as_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

fn encode(entry: &Entry<'_>, shared: usize, row: &mut Vec<u8>) {
    let Record { sighting, first_seen, observed_at } = entry.record;
    let (kind, registered, day, release) = match sighting {
        Sighting::Dropped { date, release, registered_again } => {
            (KIND_DROPPED, registered_again, Some(date), release)
        }
        Sighting::Registered { on } => (KIND_REGISTERED, false, Some(on), None),
        Sighting::Known { registered } => (KIND_KNOWN, registered, None, None),
    };
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = kind
        | flag(registered, FLAG_REGISTERED)
        | flag(first_seen.is_some(), FLAG_FIRST_SEEN)
        | flag(release.is_some(), FLAG_RELEASE);
    let suffix = &entry.name[shared..];
    row.extend_from_slice(&[shared as u8, suffix.len() as u8]);
    row.extend_from_slice(suffix);
    row.extend_from_slice(&[entry.label_len, entry.length, flags]);
    row.extend_from_slice(&entry.base.to_bits().to_le_bytes());
    row.extend_from_slice(&observed_at.to_le_bytes());
    for day in [day, release, first_seen].into_iter().flatten() {
        row.extend_from_slice(&day.raw().to_le_bytes());
    }
}

/// A batch open for reading, its checksum verified.
#[derive(Debug)]
pub struct Batch {
    path: PathBuf,
    bytes: Mmap,
    meta: BatchMeta,
    /// Start of each block and its first name's place in the index.
    blocks: Vec<(usize, std::ops::Range<usize>)>,
    index_at: usize,
}

impl Batch {
    /// Opens and verifies the whole file.
    ///
    /// # Errors
    /// Not readable, not a batch, of a newer format, or not the bytes that were written.
    pub fn open(path: &Path) -> Result<Batch, BatchError> {
        let file = File::open(path).map_err(BatchError::io(path))?;
        let bytes = map(&file).map_err(BatchError::io(path))?;
        let layout = check(path, &bytes)?;
        let meta = serde_json::from_slice(&bytes[layout.meta.clone()]).map_err(|_| {
            BatchError::Malformed { path: path.to_owned(), offset: layout.meta.start, what: "meta" }
        })?;
        let blocks = read_blocks(path, &bytes, &layout)?;
        Ok(Batch { path: path.to_owned(), bytes, meta, blocks, index_at: layout.index.start })
    }

    /// Where the list came from and what it holds.
    pub fn meta(&self) -> &BatchMeta {
        &self.meta
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checksum that the file carries, and that held when it was opened.
    pub fn checksum(&self) -> &[u8] {
        let at = self.bytes.len() - MAGIC.len() - blake3::OUT_LEN;
        &self.bytes[at..at + blake3::OUT_LEN]
    }

    /// The first names of the blocks: where a merge can be cut.
    pub fn block_names(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().map(|(_, name)| &self.bytes[name.clone()])
    }

    /// A cursor at the first entry whose name is `from` or after.
    ///
    /// # Errors
    /// [`BatchError::Malformed`], which a verified file does not give.
    pub fn cursor(&self, from: &[u8]) -> Result<Cursor<'_>, BatchError> {
        // Entries equal to `from` may sit at the end of the block before the first that starts
        // with it: step back past every block that starts with `from` or later.
        let block = self.blocks.partition_point(|(_, name)| &self.bytes[name.clone()] < from);
        let at = match block.checked_sub(1).or((!self.blocks.is_empty()).then_some(0)) {
            Some(block) => self.blocks[block].0,
            None => self.index_at,
        };
        let mut cursor =
            Cursor { batch: self, at, name: Vec::with_capacity(NAME_OCTETS_MAX), rest: None };
        while cursor.advance()? && cursor.name.as_slice() < from {}
        Ok(cursor)
    }
}

/// Walks the entries of a [`Batch`] in name order.
pub struct Cursor<'a> {
    batch: &'a Batch,
    at: usize,
    name: Vec<u8>,
    rest: Option<(u8, u8, Base, Record)>,
}

impl Cursor<'_> {
    /// The entry the cursor stands on; `None` past the end.
    pub fn entry(&self) -> Option<Entry<'_>> {
        self.rest.map(|(label_len, length, base, record)| Entry {
            name: &self.name,
            label_len,
            length,
            base,
            record,
        })
    }

    /// The name the cursor stands on; empty past the end.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Steps to the next entry; false at the end.
    ///
    /// # Errors
    /// [`BatchError::Malformed`], which a verified file does not give.
    pub fn advance(&mut self) -> Result<bool, BatchError> {
        if self.at >= self.batch.index_at {
            self.rest = None;
            self.name.clear();
            return Ok(false);
        }
        match self.decode() {
            Some(rest) => {
                self.rest = Some(rest);
                Ok(true)
            }
            None => Err(BatchError::Malformed {
                path: self.batch.path.clone(),
                offset: self.at,
                what: "entry",
            }),
        }
    }

    fn decode(&mut self) -> Option<(u8, u8, Base, Record)> {
        let mut input = &self.batch.bytes[self.at..self.batch.index_at];
        let before = input.len();
        let [shared, suffix] = take::<2>(&mut input)?;
        let suffix = input.split_off(..usize::from(suffix))?;
        (usize::from(shared) <= self.name.len()).then_some(())?;
        self.name.truncate(usize::from(shared));
        self.name.extend_from_slice(suffix);
        let [label_len, length, flags] = take::<3>(&mut input)?;
        let base = Base::from_bits(u32::from_le_bytes(take(&mut input)?));
        let observed_at = i64::from_le_bytes(take(&mut input)?);
        let registered = flags & FLAG_REGISTERED != 0;
        let kind = flags & KIND_MASK;
        let day = if kind == KIND_KNOWN { None } else { Some(take_day(&mut input)?) };
        let release = if flags & FLAG_RELEASE != 0 { Some(take_day(&mut input)?) } else { None };
        let first_seen =
            if flags & FLAG_FIRST_SEEN != 0 { Some(take_day(&mut input)?) } else { None };
        let sighting = match kind {
            KIND_DROPPED => Sighting::Dropped { date: day?, release, registered_again: registered },
            KIND_REGISTERED => Sighting::Registered { on: day? },
            KIND_KNOWN => Sighting::Known { registered },
            _ => return None,
        };
        self.at += before - input.len();
        Some((label_len, length, base, Record { sighting, first_seen, observed_at }))
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
    // SAFETY: batches are written once, renamed into place and never written again, and the
    // corpus lock keeps a second dropdex out. Should somebody truncate one all the same, the
    // rebuild dies of SIGBUS; the server reads no batch.
    unsafe { Mmap::map(file) }
}

struct Layout {
    index: std::ops::Range<usize>,
    meta: std::ops::Range<usize>,
}

fn check(path: &Path, bytes: &[u8]) -> Result<Layout, BatchError> {
    let foreign = |found: &str| BatchError::Foreign { path: path.to_owned(), found: found.into() };
    if bytes.get(..MAGIC.len()) != Some(MAGIC) {
        return Err(foreign("no magic at its start"));
    }
    let version = bytes.get(MAGIC.len()..HEADER_LEN).ok_or_else(|| foreign("too short"))?;
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version > VERSION {
        return Err(BatchError::Version { path: path.to_owned(), found: version });
    }
    if bytes.len() < HEADER_LEN + TRAILER_LEN || !bytes.ends_with(MAGIC) {
        return Err(foreign("cut short"));
    }
    let sum_at = bytes.len() - MAGIC.len() - blake3::OUT_LEN;
    let expected = &bytes[sum_at..sum_at + blake3::OUT_LEN];
    let found = blake3::Hasher::new().update_rayon(&bytes[..sum_at]).finalize();
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
        Ok(Layout { index: index_at..meta_at, meta: meta_at..end })
    } else {
        Err(foreign("its parts overlap"))
    }
}

fn read_blocks(
    path: &Path,
    bytes: &[u8],
    layout: &Layout,
) -> Result<Vec<(usize, std::ops::Range<usize>)>, BatchError> {
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

/// A buffered writer over a new file at `path`.
///
/// # Errors
/// The file exists or cannot be made.
pub fn create(path: &Path) -> Result<BatchWriter<BufWriter<File>>, BatchError> {
    let file = File::create_new(path).map_err(BatchError::io(path))?;
    BatchWriter::new(BufWriter::with_capacity(1 << 20, file)).map_err(BatchError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    fn meta() -> BatchMeta {
        BatchMeta { source: "list.csv".into(), rows: 3, ..BatchMeta::of_a_run() }
    }

    fn sightings() -> [Sighting; 5] {
        let date = day("2026-10-03");
        [
            Sighting::Dropped { date, release: None, registered_again: false },
            Sighting::Dropped { date, release: Some(day("2026-11-01")), registered_again: true },
            Sighting::Registered { on: date },
            Sighting::Known { registered: true },
            Sighting::Known { registered: false },
        ]
    }

    fn write(path: &Path, names: &[String]) -> Vec<(String, Record)> {
        let mut writer = create(path).expect("a new file");
        let mut rows = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let record = Record {
                sighting: sightings()[at % 5],
                first_seen: at.is_multiple_of(3).then(|| day("2001-02-03")),
                observed_at: at as i64 - 5,
            };
            let base = Base::from_bits(at as u32);
            let entry = Entry { name: name.as_bytes(), label_len: 3, length: 4, base, record };
            writer.push(&entry).expect("written");
            rows.push((name.clone(), record));
        }
        writer.finish(&meta()).expect("finished");
        rows
    }

    fn read(batch: &Batch, from: &str) -> Vec<(String, Record)> {
        let mut cursor = batch.cursor(from.as_bytes()).expect("a cursor");
        let mut rows = Vec::new();
        while let Some(entry) = cursor.entry() {
            let name = String::from_utf8(entry.name.to_vec()).expect("ASCII");
            rows.push((name, entry.record));
            cursor.advance().expect("an entry");
        }
        rows
    }

    #[test]
    fn what_is_written_is_read_from_any_name_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("batch");
        // Repeats cross the block borders: 700 names, each four times.
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
    fn an_empty_batch_is_a_batch() {
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
