//! One file of the log.
//!
//! ```text
//! magic "DDXCHNGS"  version u16
//! entries           in blocks of 1,024
//! table             per block: offset u64, the first 16 bytes of its BLAKE3
//! meta              JSON: sequence number of the first entry, counts, mark
//! trailer           table offset u64, meta offset u64, BLAKE3 of table and meta, magic
//! ```
//! An entry: kind, source and flag (u8); its day (u16) if the flag is set, otherwise the day is that
//! of the preceding entry in the block; score (u8, 255 for none); for `rescored`, the previous score
//! (u8); release (u16, 0 for none); lengths of the label and of the name in bytes (u8 each); the name.
//!
//! Integers are little-endian. Opening a file verifies only its table and meta; each block is verified
//! when it is read. A log may be gigabytes in size, too much to read at startup. Blocks are read into
//! owned memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::vocab::change::{Change, ChangeKind, ChangeSource};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::file_error::{AtPath, FileError};
use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

const MAGIC: &[u8; 8] = b"DDXCHNGS";
/// Incremented when the layout changes.
const VERSION: u16 = 1;
const HEADER_LEN: usize = MAGIC.len() + 2;
const TRAILER_LEN: usize = 8 + 8 + blake3::OUT_LEN + MAGIC.len();
/// Maximum size of table and meta: enough for two billion entries, and harmless to read from a
/// damaged file.
const TABLE_LEN_MAX: u64 = 64 << 20;
/// Entries per block; a full page spans at most two.
pub const BLOCK_ENTRIES: u64 = 1024;
const BLOCK_SUM_LEN: usize = 16;
/// Size of the write buffer.
const BUFFER_BYTES: usize = 1 << 18;

const KIND_BITS: u8 = 0x0f;
const SOURCE_SHIFT: u8 = 4;
const SOURCE_BITS: u8 = 0x03;
const HAS_DAY: u8 = 0x40;
const NO_SCORE: u8 = u8::MAX;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error(transparent)]
    Io(#[from] FileError),
    #[error("{path}: not a file of the change log ({found})")]
    Foreign { path: PathBuf, found: &'static str },
    #[error(
        "{path}: format {found} of the change log, this dropdex reads {VERSION}; use a newer dropdex"
    )]
    Version { path: PathBuf, found: u16 },
    #[error(
        "{path}: damaged ({what}); restore the file from a backup and restart, or remove it and \
         restart: the log then begins after it"
    )]
    Damaged { path: PathBuf, what: &'static str },
}

/// The point up to which all changes are derived. Clients never see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Number of the index generation.
    pub generation: u64,
    /// Number of the newest list in it.
    pub batch: u64,
    pub day: Day,
    /// Number of the newest state change of a watched name.
    pub registry: u64,
    /// Releases up to an hour after this instant are announced. Logs of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<UnixMs>,
}

/// Metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Meta {
    /// Sequence number of the first entry, or of the next one if the file is empty.
    first: u64,
    entries: u64,
    /// The newest day of any entry, or the day of the mark.
    last_day: Day,
    mark: Mark,
}

/// One event without its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeEntry<'a> {
    pub kind: ChangeKind,
    pub source: ChangeSource,
    /// Canonical name.
    pub name: &'a str,
    /// Length of the registrable label in bytes.
    pub label_len: u8,
    pub day: Day,
    pub dqs: Option<Dqs>,
    /// `Some` for [`ChangeKind::Rescored`] only.
    pub dqs_before: Option<Dqs>,
    pub release: Option<Day>,
}

impl ChangeEntry<'_> {
    /// The event with its sequence number.
    pub fn change(&self, seq: u64) -> Change {
        let ChangeEntry { kind, source, day, dqs, dqs_before, release, .. } = *self;
        Change { seq, kind, source, name: self.domain(), day, dqs, dqs_before, release }
    }

    /// The domain name that it is about.
    pub fn domain(&self) -> DomainName {
        let name = DomainName::from_stored(self.name.as_bytes(), self.label_len);
        name.expect("names are checked when a block is read")
    }

    fn write(&self, day_before: Option<Day>, out: &mut Vec<u8>) {
        let has_day = day_before != Some(self.day);
        let flag = if has_day { HAS_DAY } else { 0 };
        out.push(self.kind as u8 | (self.source as u8) << SOURCE_SHIFT | flag);
        if has_day {
            out.extend_from_slice(&self.day.raw().to_le_bytes());
        }
        out.push(self.dqs.map_or(NO_SCORE, Dqs::points));
        if self.kind == ChangeKind::Rescored {
            out.push(self.dqs_before.map_or(NO_SCORE, Dqs::points));
        }
        out.extend_from_slice(&Day::raw_or_zero(self.release).to_le_bytes());
        out.extend_from_slice(&[self.label_len, self.name.len() as u8]);
        out.extend_from_slice(self.name.as_bytes());
    }

    /// Reads the entry at the start of `bytes` and moves past it.
    fn read<'a>(bytes: &mut &'a [u8], day: &mut Option<Day>) -> Option<ChangeEntry<'a>> {
        let [first] = take(bytes)?;
        let kind = ChangeKind::at(first & KIND_BITS)?;
        let source = ChangeSource::ALL.get(usize::from(first >> SOURCE_SHIFT & SOURCE_BITS));
        if first & HAS_DAY != 0 {
            *day = Some(Day::from_raw(u16::from_le_bytes(take(bytes)?))?);
        }
        let mut score = || -> Option<Option<Dqs>> {
            let [points] = take(bytes)?;
            if points == NO_SCORE { Some(None) } else { Dqs::new(points).map(Some) }
        };
        let dqs = score()?;
        let dqs_before = if kind == ChangeKind::Rescored { score()? } else { None };
        let release = Day::from_raw(u16::from_le_bytes(take(bytes)?));
        let [label_len, len] = take(bytes)?;
        let (name, rest) = bytes.split_at_checked(len.into())?;
        *bytes = rest;
        let name = std::str::from_utf8(name).ok().filter(|name| name.is_ascii())?;
        let has_dot = label_len > 0 && name.as_bytes().get(usize::from(label_len)) == Some(&b'.');
        let (source, day) = (*source?, (*day)?);
        has_dot.then_some(ChangeEntry {
            kind,
            source,
            name,
            label_len,
            day,
            dqs,
            dqs_before,
            release,
        })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// The offset of a block, and its checksum.
#[derive(Clone, Copy, Debug)]
struct Block {
    at: u64,
    sum: [u8; BLOCK_SUM_LEN],
}

/// A file open for reading, which stays readable after it is replaced or removed.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: File,
    meta: Meta,
    blocks: Vec<Block>,
    /// Offset of the end of the last block.
    end: u64,
    len: u64,
}

impl Segment {
    /// Opens a file and verifies its table.
    ///
    /// # Errors
    /// The file is not readable, not of the log, of a newer format, or damaged.
    pub fn open(path: &Path) -> Result<Segment, SegmentError> {
        let foreign = |found| SegmentError::Foreign { path: path.to_owned(), found };
        let damaged = |what| SegmentError::Damaged { path: path.to_owned(), what };
        let file = File::open(path).at(path)?;
        let len = file.metadata().at(path)?.len();
        let Some(trailer_at) =
            len.checked_sub(TRAILER_LEN as u64).filter(|at| *at >= HEADER_LEN as u64)
        else {
            return Err(foreign("too short"));
        };
        let mut head = [0; HEADER_LEN];
        file.read_exact_at(&mut head, 0).at(path)?;
        let [magic @ .., v0, v1] = head;
        if magic != *MAGIC {
            return Err(foreign("no magic at the start"));
        }
        match u16::from_le_bytes([v0, v1]) {
            VERSION => {}
            found => return Err(SegmentError::Version { path: path.to_owned(), found }),
        }
        let mut trailer = [0; TRAILER_LEN];
        file.read_exact_at(&mut trailer, trailer_at).at(path)?;
        let mut rest = &trailer[..];
        let number = |rest: &mut &[u8]| take(rest).map(u64::from_le_bytes).unwrap_or_default();
        let (table_at, meta_at) = (number(&mut rest), number(&mut rest));
        let is_ordered =
            HEADER_LEN as u64 <= table_at && table_at <= meta_at && meta_at <= trailer_at;
        if !rest.ends_with(MAGIC) || !is_ordered || trailer_at - table_at > TABLE_LEN_MAX {
            return Err(damaged("trailer"));
        }
        let mut tail = vec![0; (trailer_at - table_at) as usize];
        file.read_exact_at(&mut tail, table_at).at(path)?;
        if blake3::hash(&tail).as_bytes() != &rest[..blake3::OUT_LEN] {
            return Err(damaged("checksum of its table"));
        }
        let (table, meta) = tail.split_at((meta_at - table_at) as usize);
        let meta: Meta = serde_json::from_slice(meta).map_err(|_| damaged("meta"))?;
        let (rows, rest) = table.as_chunks::<{ 8 + BLOCK_SUM_LEN }>();
        let blocks: Vec<Block> = rows.iter().map(Block::read).collect();
        let ends = blocks.iter().map(|block| block.at).chain([table_at]);
        let fits = rest.is_empty()
            && blocks.len() as u64 == meta.entries.div_ceil(BLOCK_ENTRIES)
            && ends.is_sorted_by(|one, next| one < next)
            && blocks.first().map_or(table_at, |block| block.at) == HEADER_LEN as u64;
        if !fits {
            return Err(damaged("table"));
        }
        Ok(Segment { path: path.to_owned(), file, meta, blocks, end: table_at, len })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn mark(&self) -> Mark {
        self.meta.mark
    }

    /// The newest day of any entry, or that of the mark.
    pub fn last_day(&self) -> Day {
        self.meta.last_day
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// Sequence number of the first entry, or of the next one if the file is empty.
    pub fn first(&self) -> u64 {
        self.meta.first
    }

    /// Sequence number after the last entry.
    pub fn next(&self) -> u64 {
        self.meta.first + self.meta.entries
    }

    /// Calls `visit` with the entries from sequence number `from` on, in order, until it breaks.
    ///
    /// # Errors
    /// A block is not readable, or damaged.
    pub fn visit(
        &self,
        from: u64,
        visit: &mut impl FnMut(u64, ChangeEntry<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SegmentError> {
        let skip = from.saturating_sub(self.meta.first);
        let mut bytes = Vec::new();
        for number in skip / BLOCK_ENTRIES..self.blocks.len() as u64 {
            self.read_block(number as usize, &mut bytes)?;
            let first = number * BLOCK_ENTRIES;
            let count = BLOCK_ENTRIES.min(self.meta.entries - first);
            let (mut rest, mut day) = (bytes.as_slice(), None);
            for place in first..first + count {
                let entry = ChangeEntry::read(&mut rest, &mut day);
                let entry = entry.ok_or_else(|| self.damaged("an entry"))?;
                if place >= skip && visit(self.meta.first + place, entry).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_block(&self, number: usize, bytes: &mut Vec<u8>) -> Result<(), SegmentError> {
        let Block { at, sum } = self.blocks[number];
        let end = self.blocks.get(number + 1).map_or(self.end, |next| next.at);
        bytes.resize((end - at) as usize, 0);
        self.file.read_exact_at(bytes, at).at(&self.path)?;
        if blake3::hash(bytes).as_bytes()[..BLOCK_SUM_LEN] != sum {
            return Err(self.damaged("checksum of its entries"));
        }
        Ok(())
    }

    fn damaged(&self, what: &'static str) -> SegmentError {
        SegmentError::Damaged { path: self.path.clone(), what }
    }
}

impl Block {
    fn read(row: &[u8; 8 + BLOCK_SUM_LEN]) -> Block {
        let mut rest = &row[..];
        let at = take(&mut rest).map(u64::from_le_bytes).unwrap_or_default();
        Block { at, sum: take(&mut rest).unwrap_or_default() }
    }
}

/// A file being written.
pub struct SegmentWriter {
    out: BufWriter<File>,
    first: u64,
    entries: u64,
    last_day: Option<Day>,
    /// Encoded entries of the unfinished block.
    block: Vec<u8>,
    day_before: Option<Day>,
    blocks: Vec<Block>,
    written: u64,
}

impl SegmentWriter {
    /// Starts a file whose first entry has sequence number `first`.
    ///
    /// # Errors
    /// A write fails.
    pub fn new(file: File, first: u64) -> io::Result<SegmentWriter> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(SegmentWriter {
            out,
            first,
            entries: 0,
            last_day: None,
            block: Vec::new(),
            day_before: None,
            blocks: Vec::new(),
            written: HEADER_LEN as u64,
        })
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// A write fails.
    pub fn push(&mut self, entry: &ChangeEntry<'_>) -> io::Result<()> {
        entry.write(self.day_before, &mut self.block);
        self.day_before = Some(entry.day);
        self.last_day = self.last_day.max(Some(entry.day));
        self.entries += 1;
        if self.entries.is_multiple_of(BLOCK_ENTRIES) { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        let mut sum = [0; BLOCK_SUM_LEN];
        sum.copy_from_slice(&blake3::hash(&self.block).as_bytes()[..BLOCK_SUM_LEN]);
        self.blocks.push(Block { at: self.written, sum });
        self.out.write_all(&self.block)?;
        self.written += self.block.len() as u64;
        self.block.clear();
        self.day_before = None;
        Ok(())
    }

    /// Writes the table and the mark, and syncs the file.
    ///
    /// # Errors
    /// A write or the sync fails.
    pub fn finish(mut self, mark: Mark) -> io::Result<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let last_day = self.last_day.unwrap_or(mark.day);
        let meta = Meta { first: self.first, entries: self.entries, last_day, mark };
        let mut tail = Vec::new();
        for Block { at, sum } in &self.blocks {
            tail.extend_from_slice(&at.to_le_bytes());
            tail.extend_from_slice(sum);
        }
        let meta_at = self.written + tail.len() as u64;
        serde_json::to_writer(&mut tail, &meta)?;
        let sum = blake3::hash(&tail);
        tail.extend_from_slice(&self.written.to_le_bytes());
        tail.extend_from_slice(&meta_at.to_le_bytes());
        tail.extend_from_slice(sum.as_bytes());
        tail.extend_from_slice(MAGIC);
        self.out.write_all(&tail)?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}
