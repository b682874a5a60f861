//! Every name ever seen, in name order. Converts ordinals to names, and names and prefixes to ordinals.
//!
//! Names are stored in blocks of sixteen. An entry holds the length of the prefix that its label
//! shares with the previous label, the rest of the label, and the TLD number. The first entry of a
//! block shares nothing, so that a block can be decoded on its own. The [`BlockIndex`] finds the
//! block of a text. Columns to filter and sort by are elsewhere.
//!
//! Layout of an entry: one byte of two nibbles, the shared length (high) and the length of the rest
//! (low); 15 means that the length follows in a byte of its own, the shared length first. The rest
//! of the label and the TLD number follow; see [`put_tld`].

use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use crate::columns::block_index::{BlockIndex, Keys};
use crate::columns::needles::{LANES, NeedleTrail, Needles};
use crate::columns::part::{Part, Section};
use crate::columns::table::Table;
use crate::columns::tlds::Tlds;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::{Draft, DraftFile};
use crate::storage::files::Files;
use crate::vocab::limits::LABEL_CHARS_MAX;
use crate::vocab::name::NAME_OCTETS_MAX;

/// Names per block. A read decodes half a block on average; each block costs an offset and a
/// separator.
const BLOCK_NAMES: u32 = 16;
/// Blocks per group; offsets are relative to the base of the group. This number is small in tests,
/// so that tests cross the boundaries of groups.
const GROUP_BLOCKS: usize = if cfg!(test) { 4 } else { 1 << 16 };
/// Names per group.
const GROUP_NAMES: u32 = GROUP_BLOCKS as u32 * BLOCK_NAMES;
/// Maximum size of an entry: three bytes of lengths, the label, three bytes of TLD number.
const ENTRY_OCTETS_MAX: usize = 6 + LABEL_CHARS_MAX as usize;
const _: () = assert!(GROUP_NAMES as usize * ENTRY_OCTETS_MAX < u32::MAX as usize);

/// Nibble value of numbers that follow in their own byte.
const NIBBLE_ESCAPE: usize = 15;
/// TLD numbers below this take one byte.
const TLD_SHORT: u16 = 224;
/// Escape byte before a TLD number of two bytes.
const TLD_ESCAPE: u8 = 255;
/// Bytes that are copied at once: a copy of constant length compiles to one move instead of a call.
/// Buffers have this many spare bytes at their ends.
const STRIDE: usize = 16;
const _: () = assert!(STRIDE >= LANES, "needles read past the last label and its TLD number");
/// Buffer size for the longest label and the longest suffix, in whole strides.
const NAME_ROOM: usize =
    (LABEL_CHARS_MAX as usize + NAME_OCTETS_MAX).next_multiple_of(STRIDE) + STRIDE;

/// Number of blocks prefetched together, which is more than memory can load in parallel.
const PREFETCHED: usize = 64;
/// Size of a cache line; most blocks span two.
const CACHE_LINE: usize = 64;

/// File of the concatenated blocks, with [`STRIDE`] spare bytes at the end.
const TEXT: &str = "names/text";
/// File of the offsets of the blocks, relative to the base of their group.
const OFFSETS: &str = "names/offsets";
/// File of the offsets of the groups.
const BASES: &str = "names/bases";

/// Every name ever seen, in name order.
pub struct Names {
    text: Vec<u8>,
    offsets: Vec<u32>,
    bases: Vec<u64>,
    block_index: BlockIndex,
    suffixes: Suffixes,
    len: u32,
}

/// A name that [`Names::for_each`] visits.
#[derive(Clone, Copy, Debug)]
pub struct VisitedName<'a> {
    pub ordinal: u32,
    /// Label, in A-label form: ASCII.
    pub label: &'a [u8],
    /// Number of bytes that the label is known to share with the previously visited label.
    pub shared: usize,
    /// TLD number.
    pub tld: u16,
}

/// Returns the text of a visited label.
pub fn text_of(label: &[u8]) -> &str {
    std::str::from_utf8(label).expect("names are ASCII, and files are verified")
}

/// A reusable buffer for one name.
#[derive(Clone, Debug)]
pub struct NameBuf {
    text: [u8; NAME_ROOM],
    len: u16,
    label_len: u8,
    tld: u16,
}

impl Default for NameBuf {
    fn default() -> NameBuf {
        NameBuf { text: [0; NAME_ROOM], len: 0, label_len: 0, tld: 0 }
    }
}

impl NameBuf {
    /// Returns the name; empty before the first read.
    pub fn as_str(&self) -> &str {
        let text = &self.text[..usize::from(self.len)];
        std::str::from_utf8(text).expect("names are ASCII, and files are verified")
    }

    /// Returns the length of the label in bytes.
    pub fn label_len(&self) -> u8 {
        self.label_len
    }

    /// Returns the label, in A-label form.
    pub fn label(&self) -> &str {
        &self.as_str()[..usize::from(self.label_len)]
    }

    /// Returns the TLD number.
    pub fn tld(&self) -> u16 {
        self.tld
    }
}

impl Names {
    /// Writes the names of `table` into `draft`.
    ///
    /// # Errors
    /// A write fails, or names are not in ascending order.
    pub fn write(table: &Table, draft: &Draft) -> Result<(), BuildError> {
        let mut writer = Writer::new(draft)?;
        table.parts.for_each(&[Section::Names, Section::Keys], encode_rest, |part, rest| {
            writer.append(encode_head(part, &writer.last))?;
            rest.into_iter().try_for_each(|piece| writer.append(piece))?;
            if let Some(last) = part.len().checked_sub(1) {
                writer.last = (part.name(last).to_vec(), part.label_len[last]);
            }
            Ok(())
        })?;
        writer.finish(draft)
    }

    /// Opens the `names` names that [`Names::write`] wrote; `tlds` are their TLDs.
    ///
    /// # Errors
    /// A file is missing, damaged, or holds another number of names.
    pub fn open(files: &Files, names: u32, tlds: &Tlds) -> Result<Names, GenerationError> {
        let text: Vec<u8> = files.take(TEXT)?;
        let offsets: Vec<u32> = files.take(OFFSETS)?;
        let bases: Vec<u64> = files.take(BASES)?;
        let blocks = names.div_ceil(BLOCK_NAMES);
        files.check(offsets.len() == blocks as usize, OFFSETS)?;
        files.check(bases.len() == offsets.len().div_ceil(GROUP_BLOCKS), BASES)?;
        files.check(text.len() >= STRIDE, TEXT)?;
        let block_index = BlockIndex::open(files, blocks)?;
        let suffixes = Suffixes::new(tlds);
        Ok(Names { text, offsets, bases, block_index, suffixes, len: names })
    }

    /// Returns the number of names.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the ordinal of a canonical name.
    pub fn find(&self, name: &str) -> Option<u32> {
        let (block, _) = self.block_index.blocks(name.as_bytes())?;
        let mut seek = Seek::new(self, block, name.as_bytes());
        let ordinal = seek.start();
        (seek.side == Side::Whole).then_some(ordinal)
    }

    /// Returns the ordinals of the names that start with `prefix`.
    pub fn range(&self, prefix: &[u8]) -> Range<u32> {
        if prefix.is_empty() {
            return 0..self.len;
        }
        let Some((first, last)) = self.block_index.blocks(prefix) else { return 0..0 };
        let mut seek = Seek::new(self, first, prefix);
        let start = seek.start();
        if last != first {
            seek = Seek::new(self, last, prefix);
        }
        start..seek.end()
    }

    /// Returns the ordinals of the names whose label is exactly `label`, in A-label form.
    pub fn label_range(&self, label: &str) -> Range<u32> {
        with_dot(label).map_or(0..0, |(prefix, len)| self.range(&prefix[..len]))
    }

    /// As [`Names::label_range`], but faster, if `names`, the range of the prefix `label`, is known.
    pub(super) fn label_range_in(&self, label: &str, names: &Range<u32>) -> Range<u32> {
        let block = names.start / BLOCK_NAMES;
        if names.is_empty() || (names.end - 1) / BLOCK_NAMES != block {
            return self.label_range(label);
        }
        with_dot(label).map_or(0..0, |(prefix, len)| {
            let mut seek = Seek::new(self, block, &prefix[..len]);
            seek.start()..seek.end()
        })
    }

    /// Reads the name of an ordinal below [`Names::len`].
    pub fn read(&self, ordinal: u32, name: &mut NameBuf) {
        let mut entries = self.entries(ordinal / BLOCK_NAMES);
        let mut label_len = 0;
        for _ in 0..=ordinal % BLOCK_NAMES {
            let entry = entries.next();
            move_over(
                &mut name.text[entry.shared..],
                &entries.text[entry.rest.start..],
                entry.rest.len(),
            );
            label_len = entry.shared + entry.rest.len();
            name.tld = entry.tld;
        }
        let suffix = self.suffixes.place(name.tld);
        move_over(&mut name.text[label_len..], &self.suffixes.text[suffix.start..], suffix.len());
        name.len = (label_len + suffix.len()) as u16;
        name.label_len = label_len as u8;
    }

    /// Calls `visit` with the names in ascending ranges, in order, until it breaks. `visit` returns
    /// the next ordinal that it wants. Blocks whose ordinals are not `wanted` are skipped.
    pub fn for_each(
        &self,
        ranges: impl IntoIterator<Item = Range<u32>>,
        needles: Option<&Needles>,
        wanted: impl Fn(Range<u32>) -> bool,
        mut visit: impl FnMut(VisitedName<'_>) -> ControlFlow<(), u32>,
    ) {
        let mut label = [0; NAME_ROOM];
        let mut trail = NeedleTrail::default();
        let (mut next, mut ranges) = (0, ranges.into_iter());
        let mut ordinals = 0..0;
        loop {
            if next >= ordinals.end {
                let Some(range) = ranges.next() else { return };
                (next, ordinals) = (range.start.max(next), range);
                continue;
            }
            let first = next / BLOCK_NAMES * BLOCK_NAMES;
            let end = ordinals.end.min(first + BLOCK_NAMES);
            if !wanted(next..end) {
                next = end;
                continue;
            }
            let mut entries = self.entries(first / BLOCK_NAMES);
            let mut shared = 0;
            for ordinal in first..end {
                let entry = entries.next();
                let len = entry.shared + entry.rest.len();
                move_over(
                    &mut label[entry.shared..],
                    &entries.text[entry.rest.start..],
                    entry.rest.len(),
                );
                shared = entry.shared.min(shared);
                trail.share(entry.shared);
                if ordinal < next {
                    continue;
                }
                let label = &label[..len];
                if let Some(needles) = needles {
                    let rest = &entries.text[entry.rest.start..=entry.rest.end + LANES];
                    if !needles.may_pass(&mut trail, label, rest) {
                        next = ordinal + 1;
                        continue;
                    }
                }
                match visit(VisitedName { ordinal, label, shared, tld: entry.tld }) {
                    ControlFlow::Continue(wanted) => next = wanted.max(ordinal + 1),
                    ControlFlow::Break(()) => return,
                }
                shared = usize::MAX;
            }
        }
    }

    /// Loads the memory of several names in parallel; single calls of [`Names::read`] would wait
    /// for each cache miss. This pays off for the rows of a page, which are far apart in memory.
    pub fn prefetch(&self, ordinals: &[u32]) {
        let mut starts = [0; PREFETCHED];
        for ordinals in ordinals.chunks(PREFETCHED) {
            for (start, ordinal) in starts.iter_mut().zip(ordinals) {
                *start = self.start(ordinal / BLOCK_NAMES);
            }
            let touched = starts[..ordinals.len()].iter().map(|&start| {
                let second = (start + CACHE_LINE).min(self.text.len() - 1);
                self.text[start] ^ self.text[second]
            });
            // The loads are independent, so the CPU issues all of them before it waits.
            black_box(touched.fold(0, |all, octet| all ^ octet));
        }
    }

    #[inline]
    fn start(&self, block: u32) -> usize {
        let block = block as usize;
        self.bases[block / GROUP_BLOCKS] as usize + self.offsets[block] as usize
    }

    fn entries(&self, block: u32) -> Entries<'_> {
        Entries { text: &self.text[self.start(block)..], at: 0 }
    }

    /// Compares a name with a target, both without their common prefix within the label: `own` is
    /// the next byte of the label, and `target` is the rest of the target.
    #[inline(always)]
    fn side(&self, own: Option<u8>, tld: u16, target: &[u8]) -> Side {
        let Some(&octet) = target.first() else { return Side::Under };
        match own.unwrap_or(b'.').cmp(&octet) {
            Ordering::Less => Side::Before,
            Ordering::Greater => Side::After,
            Ordering::Equal => self.suffixes.side(tld, target),
        }
    }
}

/// Position of a name relative to a target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    /// The name equals the target.
    Whole,
    /// The name starts with the target.
    Under,
    After,
}

/// A search in one block for the boundaries of the names that start with a target.
struct Seek<'a> {
    texts: &'a Names,
    target: &'a [u8],
    entries: Entries<'a>,
    /// Length of the common prefix of the target and the last label.
    alike: usize,
    /// Position of the last name relative to the target.
    side: Side,
    /// Unread ordinals.
    left: Range<u32>,
}

impl<'a> Seek<'a> {
    fn new(texts: &'a Names, block: u32, target: &'a [u8]) -> Seek<'a> {
        let first = block * BLOCK_NAMES;
        let left = first..first + (texts.len - first).min(BLOCK_NAMES);
        let entries = texts.entries(block);
        Seek { texts, target, entries, alike: 0, side: Side::Before, left }
    }

    /// Returns the ordinal of the first name that does not sort before the target, or the one after
    /// the block.
    fn start(&mut self) -> u32 {
        self.until(|side| side != Side::Before)
    }

    /// Returns the ordinal after the names that start with the target, or the one after the block.
    fn end(&mut self) -> u32 {
        self.until(|side| side == Side::After)
    }

    #[inline(always)]
    fn until(&mut self, reached: impl Fn(Side) -> bool) -> u32 {
        while !reached(self.side) {
            if self.left.is_empty() {
                return self.left.start;
            }
            self.step();
        }
        self.left.start - 1
    }

    /// Reads a name.
    #[inline(always)]
    fn step(&mut self) {
        let entry = self.entries.next();
        self.left.start += 1;
        if entry.shared < self.alike {
            // The name sorts after the previous one and differs from it within the matched part of
            // the target.
            self.side = Side::After;
        } else if entry.shared == self.alike {
            let rest = &self.entries.text[entry.rest];
            self.alike += alike_octets(rest, &self.target[self.alike..]);
            let own = rest.get(self.alike - entry.shared).copied();
            self.side = self.texts.side(own, entry.tld, &self.target[self.alike..]);
        }
        // Otherwise the name shares the byte in which the previous name differs from the target, so
        // it sorts on the same side of the target as the previous name.
    }
}

/// An iterator over the entries of a block.
struct Entries<'a> {
    /// Text from the start of the block.
    text: &'a [u8],
    at: usize,
}

struct Entry {
    /// Number of bytes that its label shares with the previous one.
    shared: usize,
    /// Range of the rest of its label in the text.
    rest: Range<usize>,
    tld: u16,
}

impl Entries<'_> {
    #[inline(always)]
    fn octet(&mut self) -> u8 {
        self.at += 1;
        self.text[self.at - 1]
    }

    #[inline(always)]
    fn next(&mut self) -> Entry {
        let lengths = self.octet();
        let (mut shared, mut following) = (usize::from(lengths >> 4), usize::from(lengths & 15));
        if shared == NIBBLE_ESCAPE {
            shared = usize::from(self.octet());
        }
        if following == NIBBLE_ESCAPE {
            following = usize::from(self.octet());
        }
        let rest = self.at..self.at + following;
        self.at = rest.end;
        let short = self.octet();
        let tld =
            if u16::from(short) < TLD_SHORT { u16::from(short) } else { self.long_tld(short) };
        Entry { shared, rest, tld }
    }

    #[cold]
    fn long_tld(&mut self, first: u8) -> u16 {
        let second = self.octet();
        if first == TLD_ESCAPE {
            return u16::from_le_bytes([second, self.octet()]);
        }
        TLD_SHORT + ((u16::from(first) - TLD_SHORT) << 8 | u16::from(second))
    }
}

/// The names of a group of blocks, or a part of them.
#[derive(Default)]
struct Piece {
    /// Ordinal of the first name.
    first: u32,
    text: Vec<u8>,
    /// Start of each block in `text`.
    offsets: Vec<u32>,
    separators: Keys,
}

/// Returns the names at the start of a part: those before the first block that starts after the first
/// name of the part. Their encoding depends on the name before the part, which is given with the length
/// of its label.
fn encode_head(part: &Part, (before, label_len): &(Vec<u8>, u8)) -> Piece {
    let label_before = &before[..usize::from(*label_len)];
    Piece::encode(part, part.first..rest_of(part).start, before, label_before)
}

/// Returns the other names, cut between groups.
fn encode_rest(part: &Part) -> Vec<Piece> {
    let Range { start, end } = rest_of(part);
    if start == end {
        return Vec::new();
    }
    let groups: Vec<u32> = (start / GROUP_NAMES..end.div_ceil(GROUP_NAMES)).collect();
    let encode = |group: u32| {
        let first = start.max(group * GROUP_NAMES);
        let last = end.min((group + 1).saturating_mul(GROUP_NAMES));
        let before = part.name((first - part.first) as usize - 1);
        Piece::encode(part, first..last, before, &[])
    };
    groups.into_par_iter().map(encode).collect()
}

fn rest_of(part: &Part) -> Range<u32> {
    let end = part.first + part.len() as u32;
    let start = (part.first.saturating_add(1)).checked_next_multiple_of(BLOCK_NAMES);
    start.unwrap_or(end).min(end)..end
}

impl Piece {
    fn encode<'a>(
        part: &'a Part,
        ordinals: Range<u32>,
        mut before: &'a [u8],
        mut label_before: &'a [u8],
    ) -> Piece {
        let mut made = Piece { first: ordinals.start, ..Piece::default() };
        made.offsets.reserve_exact(ordinals.len().div_ceil(BLOCK_NAMES as usize));
        // Real names take slightly less.
        made.text.reserve(ordinals.len() * 9);
        for ordinal in ordinals {
            let at = (ordinal - part.first) as usize;
            let name = part.name(at);
            if ordinal.is_multiple_of(BLOCK_NAMES) {
                made.begin_block(before, name);
                label_before = &[];
            }
            let label = &name[..usize::from(part.label_len[at])];
            put_entry(&mut made.text, label_before, label, part.tld[at]);
            (before, label_before) = (name, label);
        }
        made
    }

    /// Starts a block with `name`; `before` is the last name of the previous block.
    fn begin_block(&mut self, before: &[u8], name: &[u8]) {
        // The shortest text that sorts after `before` and not after `name`.
        let separator = match before {
            [] => &[],
            _ => &name[..name.len().min(alike_octets(before, name) + 1)],
        };
        self.separators.push(separator);
        self.offsets.push(self.text.len() as u32);
    }
}

/// A writer of pieces, in order.
struct Writer<'a> {
    text: DraftFile<'a>,
    /// Bytes written.
    end: u64,
    bases: Vec<u64>,
    offsets: Vec<u32>,
    /// Bases by group.
    separators: Vec<Keys>,
    /// The last name, and the length of its label.
    last: (Vec<u8>, u8),
}

impl<'a> Writer<'a> {
    fn new(draft: &'a Draft) -> Result<Writer<'a>, BuildError> {
        let text = draft.create(TEXT)?;
        let (bases, offsets, separators) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Writer { text, end: 0, bases, offsets, separators, last: Default::default() })
    }

    fn append(&mut self, piece: Piece) -> Result<(), BuildError> {
        if piece.text.is_empty() {
            return Ok(());
        }
        if piece.first.is_multiple_of(GROUP_NAMES) {
            self.bases.push(self.end);
            self.separators.push(Keys::default());
        }
        let group = self.bases.last().zip(self.separators.last_mut());
        let (base, separators) = group.expect("the first name starts a group");
        let before = (self.end - base) as u32;
        self.offsets.extend(piece.offsets.iter().map(|offset| before + offset));
        separators.append(&piece.separators);
        self.text.append(&piece.text)?;
        self.end += piece.text.len() as u64;
        Ok(())
    }

    fn finish(mut self, draft: &Draft) -> Result<(), BuildError> {
        self.text.append(&[0u8; STRIDE])?;
        self.text.finish()?;
        draft.put(OFFSETS, &self.offsets)?;
        draft.put(BASES, &self.bases)?;
        BlockIndex::write(&self.separators, GROUP_BLOCKS, draft)
    }
}

/// Appends an entry to a block.
fn put_entry(text: &mut Vec<u8>, label_before: &[u8], label: &[u8], tld: u16) {
    let shared = alike_octets(label_before, label);
    let rest = &label[shared..];
    let (high, low) = (shared.min(NIBBLE_ESCAPE), rest.len().min(NIBBLE_ESCAPE));
    text.push((high << 4 | low) as u8);
    if high == NIBBLE_ESCAPE {
        text.push(shared as u8);
    }
    if low == NIBBLE_ESCAPE {
        text.push(rest.len() as u8);
    }
    text.extend_from_slice(rest);
    put_tld(text, tld);
}

/// Appends a TLD number: one byte below 224, for the most frequent TLDs; two big-endian bytes,
/// starting at 224 << 8, for numbers up to 8,159; otherwise 255 and two little-endian bytes.
fn put_tld(text: &mut Vec<u8>, tld: u16) {
    const MIDDLE: u16 = (TLD_ESCAPE as u16 - TLD_SHORT) << 8;
    match tld.checked_sub(TLD_SHORT) {
        None => text.push(tld as u8),
        Some(rest @ ..MIDDLE) => {
            text.extend_from_slice(&[(TLD_SHORT + (rest >> 8)) as u8, rest as u8]);
        }
        Some(_) => {
            text.push(TLD_ESCAPE);
            text.extend_from_slice(&tld.to_le_bytes());
        }
    }
}

/// Returns the label with a dot, and the length of both; `None` if it cannot be a label.
fn with_dot(label: &str) -> Option<([u8; LABEL_CHARS_MAX as usize + 1], usize)> {
    let mut text = [b'.'; LABEL_CHARS_MAX as usize + 1];
    let fits = label.len() < text.len() && !label.contains('.');
    fits.then(|| {
        text[..label.len()].copy_from_slice(label.as_bytes());
        (text, label.len() + 1)
    })
}

/// Returns the length of the common prefix.
#[inline]
fn alike_octets(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Copies `len` bytes, and up to [`STRIDE`] bytes after them.
#[inline(always)]
fn move_over(to: &mut [u8], from: &[u8], len: usize) {
    let mut at = 0;
    loop {
        to[at..at + STRIDE].copy_from_slice(&from[at..at + STRIDE]);
        at += STRIDE;
        if at >= len {
            return;
        }
    }
}

/// Suffixes such as `.com` and `.co.uk` by TLD number, concatenated, with [`STRIDE`] spare bytes.
struct Suffixes {
    text: Vec<u8>,
    /// Start of each suffix, and the end of the last.
    starts: Vec<u32>,
}

impl Suffixes {
    fn new(tlds: &Tlds) -> Suffixes {
        let mut made = Suffixes { text: Vec::new(), starts: vec![0] };
        for tld in tlds.names() {
            made.text.push(b'.');
            made.text.extend_from_slice(tld.as_bytes());
            // At most, there are 65,536 TLDs of 253 bytes.
            made.starts.push(made.text.len() as u32);
        }
        made.text.extend_from_slice(&[0; STRIDE]);
        made
    }

    /// Compares the suffix with a target that starts with a dot.
    fn side(&self, tld: u16, target: &[u8]) -> Side {
        let suffix = &self.text[self.place(tld)];
        match suffix.cmp(target) {
            Ordering::Equal => Side::Whole,
            Ordering::Less => Side::Before,
            Ordering::Greater if suffix.starts_with(target) => Side::Under,
            Ordering::Greater => Side::After,
        }
    }

    #[inline(always)]
    fn place(&self, tld: u16) -> Range<usize> {
        let at = usize::from(tld);
        self.starts[at] as usize..self.starts[at + 1] as usize
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::columns::fixtures::round_trip;

    /// A Xorshift generator, which returns the same numbers for the same seed.
    pub struct Random(pub u64);

    impl Random {
        /// Returns a number below `end`.
        pub fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 16) as usize % end
        }
    }

    /// Returns a table of `names`, each a label and a TLD, with the TLD numbers of `tlds`, cut into
    /// parts at boundaries between labels.
    pub fn table(names: &BTreeSet<(String, usize)>, tlds: &[String], random: &mut Random) -> Table {
        let mut names: Vec<(String, &str, usize)> = names
            .iter()
            .map(|(label, tld)| (format!("{label}.{}", tlds[*tld]), label.as_str(), *tld))
            .collect();
        names.sort();
        let mut parts: Vec<Part> = Vec::new();
        let mut before = None;
        for (name, label, tld) in &names {
            if before != Some(label) && (before.is_none() || random.below(9) == 0) {
                parts.push(Part::default());
                if random.below(5) == 0 {
                    parts.push(Part::default());
                }
            }
            before = Some(label);
            let part = parts.last_mut().expect("the first name begins a part");
            part.text.extend_from_slice(name.as_bytes());
            part.spans.push(name.len()).expect("short");
            part.label_len.push(label.len() as u8);
            part.tld.push(*tld as u16);
            part.key.push(random.below(25_600) as u16);
            part.registered.push(false);
        }
        let parts = parts.into_iter().collect();
        Table { parts, tlds: Tlds::new(tlds.to_vec()), ..Table::default() }
    }

    /// Writes files with `write` and opens them with `open`.
    pub fn reopened<T>(
        write: impl FnOnce(&Draft) -> Result<(), BuildError>,
        open: impl FnOnce(&Files) -> Result<T, GenerationError>,
    ) -> T {
        let (_folder, files) = round_trip(write).expect("written");
        let opened = open(&files).expect("opens");
        files.finish().expect("every file is taken");
        opened
    }

    /// Writes the texts of a table to files and opens them.
    pub fn texts(table: &Table) -> Names {
        let open = |files: &Files| Names::open(files, table.len(), &table.tlds);
        reopened(|draft| Names::write(table, draft), open)
    }

    /// Returns every name of a table, in order.
    pub fn names(table: &Table) -> Vec<String> {
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).expect("ASCII");
        table.parts.iter().flat_map(|part| part.names().map(text)).collect()
    }

    fn label(random: &mut Random) -> String {
        let long = random.below(20) == 0;
        let octets = if long { 1 + random.below(63) } else { 1 + random.below(6) };
        let alphabet = b"aab-1z";
        let inner = |random: &mut Random| alphabet[random.below(alphabet.len())];
        let mut label: Vec<u8> = (0..octets).map(|_| inner(random)).collect();
        for end in [0, octets - 1] {
            if label[end] == b'-' {
                label[end] = b'b';
            }
        }
        String::from_utf8(label).expect("ASCII")
    }

    fn check(table: &Table, prefixes: &[String]) {
        let (texts, names) = (texts(table), names(table));
        assert_eq!(texts.len() as usize, names.len());
        let mut found = NameBuf::default();
        texts.prefetch(&(0..table.len()).collect::<Vec<_>>());
        for (ordinal, name) in (0..).zip(&names) {
            texts.read(ordinal, &mut found);
            let parts = (found.label(), table.tlds.name(found.tld()));
            assert_eq!((found.as_str(), Some(parts)), (name.as_str(), name.split_once('.')));
            assert_eq!(usize::from(found.label_len()), parts.0.len());
            assert_eq!(texts.find(name), Some(ordinal), "{name}");
        }
        let whole = names.iter().step_by(names.len() / 40 + 1);
        let parts = whole.flat_map(|name| (0..=name.len().min(12)).map(|end| &name[..end]));
        for prefix in prefixes.iter().map(String::as_str).chain(parts) {
            let start = names.partition_point(|name| name.as_str() < prefix) as u32;
            let under = names.iter().filter(|name| name.starts_with(prefix)).count() as u32;
            assert_eq!(texts.range(prefix.as_bytes()), start..start + under, "{prefix}");
            let known = names.binary_search_by(|name| name.as_str().cmp(prefix)).ok();
            assert_eq!(texts.find(prefix).map(|found| found as usize), known, "{prefix}");
            let of_label = names.iter().filter(|name| name.split('.').next() == Some(prefix));
            let found = texts.label_range(prefix);
            assert_eq!(found.len(), of_label.count(), "{prefix}");
            let within = texts.label_range_in(prefix, &texts.range(prefix.as_bytes()));
            assert!(within == found || within.is_empty() && found.is_empty(), "{prefix}");
        }
    }

    #[test]
    fn names_and_ordinals_convert_both_ways_at_any_size() {
        let mut random = Random(7);
        let mut tlds: Vec<String> =
            ["com", "de", "co.uk", "co", "c", "xn--p1ai"].map(str::to_owned).into();
        tlds.extend((0..9_000).map(|at| format!("t{at}")));
        // The longest suffix that a name with a label of 63 bytes can have.
        tlds[7_000] = "x".repeat(63) + "." + &"y".repeat(63) + "." + &"z".repeat(61);
        for size in [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 79, 80, 81, 300, 1_500] {
            let mut chosen = BTreeSet::new();
            while chosen.len() < size {
                let tld = match random.below(8) {
                    0 => random.below(tlds.len()),
                    1 => [223, 224, 479, 480, 7_000, 8_159, 8_160, 8_999][random.below(8)],
                    _ => random.below(6),
                };
                chosen.insert((label(&mut random), tld));
            }
            let prefixes = ["", "-", ".", "0", "a-", "zzzzz", "é", "a.c", "a.co", "a.com", "a.z"];
            let mut prefixes: Vec<String> = prefixes.map(str::to_owned).into();
            prefixes.extend((0..100).map(|_| label(&mut random)));
            prefixes.extend((0..100).map(|_| label(&mut random) + ".c"));
            prefixes.extend([63, 64, 300].map(|octets| "a".repeat(octets)));
            check(&table(&chosen, &tlds, &mut random), &prefixes);
        }
    }

    #[test]
    fn one_label_may_fill_many_blocks() {
        let tlds: Vec<String> = (0..300).map(|at| format!("t{at}")).collect();
        let labels = ["a", "a-a", "aa", "b"];
        let chosen = labels
            .iter()
            .flat_map(|label| (0..300).map(|tld| ((*label).to_owned(), tld)))
            .collect();
        let prefixes = ["a", "a.", "a-", "a-a.t5", "aa.t99", "aa.u", "b.t299", "b.t2999", "c"];
        check(&table(&chosen, &tlds, &mut Random(3)), &prefixes.map(str::to_owned));
    }

    #[test]
    fn files_of_another_size_are_refused() {
        let tlds = vec!["com".to_owned()];
        let chosen = (0..100).map(|at| (format!("name{at}"), 0)).collect();
        let table = table(&chosen, &tlds, &mut Random(5));
        for names in [0, 84, 96, 113] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("draft");
            let draft = Draft::new(path).expect("a new folder");
            Names::write(&table, &draft).expect("written");
            let open = |files: &Files| {
                assert!(Names::open(files, names, &table.tlds).is_err(), "{names}");
                Names::open(files, table.len(), &table.tlds)
            };
            reopened(|draft| Names::write(&table, draft), open);
        }
    }
}
