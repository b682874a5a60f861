//! Writes the columns of [`super::name_grams`]. Names are read in runs: the blocks of each gram of
//! a run are sorted by counting and written to a temporary file, as differences. Runs are in name
//! order, so the blocks of a gram are those of the first run, then those of the next. Memory does
//! not grow with the number of names, except for the index of the list.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rayon::prelude::*;

use crate::columns::ascending::AscendingWriter;
use crate::columns::label::form_of;
use crate::columns::name_grams::{GRAM_NAMES, GRAMS, IN_USE, PLACES, POSTINGS, each_gram};
use crate::columns::names::text_of;
use crate::columns::part::{Part, Section};
use crate::columns::table::Table;
use crate::error::BuildError;
use crate::storage::draft::Draft;
use crate::vocab::file_error::AtPath;

/// Names in a run. Small in tests, so that tests cross the boundaries.
const RUN_NAMES: u32 = if cfg!(test) { 64 } else { 1 << 18 };
/// Bytes of a run that are read at once.
const READ_BYTES: u64 = 1 << 14;

/// Writes the grams of the names of `table`.
///
/// # Errors
/// A write fails, or the table cannot be read.
pub fn write(table: &Table, draft: &Draft) -> Result<(), BuildError> {
    let file = tempfile::tempfile_in(draft.folder()).at(draft.folder())?;
    let (mut runs, mut end) = (Vec::new(), 0);
    table.parts.for_each(&[Section::Names], runs_of, |_, made| {
        for run in made {
            draft.leave_room(run.len() as u64)?;
            file.write_all_at(&run, end).at(draft.folder())?;
            runs.push((end..end + run.len() as u64, blake3::hash(&run)));
            end += run.len() as u64;
        }
        Ok(())
    })?;
    let readers = runs.into_iter().map(|(bytes, hash)| RunReader::new(&file, bytes, hash));
    let readers = readers.collect::<io::Result<Vec<_>>>().at(draft.folder())?;
    merge(readers, table.len().div_ceil(GRAM_NAMES), draft)
}

/// Returns the runs of a part, in order.
fn runs_of(part: &Part) -> Vec<Vec<u8>> {
    let (first, end) = (part.first, part.first + part.len() as u32);
    let runs = (first / RUN_NAMES..end.div_ceil(RUN_NAMES)).into_par_iter();
    let run = |run: u32| first.max(run * RUN_NAMES)..end.min((run + 1).saturating_mul(RUN_NAMES));
    runs.map(|at| run_of(part, run(at))).collect()
}

/// Returns the blocks of the grams of these names, in the order of the grams: for each gram its
/// distance from the previous one, the number of blocks, and the distance of each block from the
/// previous one.
fn run_of(part: &Part, ordinals: Range<u32>) -> Vec<u8> {
    let mut seen = vec![0u64; GRAMS / 64];
    let mut starts = vec![0u32; GRAMS + 1];
    // The distinct grams of each block, and the end of those of each block.
    let (mut grams, mut ends): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
    let first_block = ordinals.start / GRAM_NAMES;
    for block in first_block..ordinals.end.div_ceil(GRAM_NAMES) {
        let start = ordinals.start.max(block * GRAM_NAMES);
        let end = ordinals.end.min(block.saturating_add(1).saturating_mul(GRAM_NAMES));
        let before = grams.len();
        for ordinal in start..end {
            let label = text_of(part.label((ordinal - part.first) as usize));
            each_gram(&form_of(label), |gram| {
                let (word, bit) = (gram as usize / 64, 1 << (gram % 64));
                if seen[word] & bit == 0 {
                    seen[word] |= bit;
                    starts[gram as usize + 1] += 1;
                    grams.push(gram);
                }
            });
        }
        grams[before..].iter().for_each(|&gram| seen[gram as usize / 64] = 0);
        ends.push(grams.len());
    }
    (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
    let mut next = starts.clone();
    let mut blocks = vec![0u32; grams.len()];
    let mut start = 0;
    for (block, end) in (first_block..).zip(ends) {
        for &gram in &grams[start..end] {
            let next = &mut next[gram as usize];
            blocks[*next as usize] = block;
            *next += 1;
        }
        start = end;
    }
    let (mut run, mut gram_before) = (Vec::with_capacity(grams.len() * 3 / 2), 0);
    for (gram, range) in starts.windows(2).enumerate().filter(|(_, range)| range[0] < range[1]) {
        put_number(&mut run, (gram - gram_before) as u32);
        put_number(&mut run, range[1] - range[0]);
        let mut before = 0;
        for &block in &blocks[range[0] as usize..range[1] as usize] {
            put_number(&mut run, block - before);
            before = block;
        }
        gram_before = gram;
    }
    run
}

/// Appends a number in LEB128.
fn put_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 1 << 7 {
        bytes.push(number as u8 | 1 << 7);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Writes the postings of all runs, gram by gram.
fn merge(mut runs: Vec<RunReader<'_>>, blocks: u32, draft: &Draft) -> Result<(), BuildError> {
    let (mut in_use, mut places) = (Vec::new(), vec![0]);
    let mut postings = AscendingWriter::new(POSTINGS, draft)?;
    while let Some(gram) = runs.iter().filter_map(|run| run.gram).min() {
        let base = in_use.len() as u64 * u64::from(blocks);
        let mut last = None;
        for run in runs.iter_mut().filter(|run| run.gram == Some(gram)) {
            let mut block = 0;
            for _ in 0..run.number().at(draft.folder())? {
                block += run.number().at(draft.folder())?;
                // Two parts may share a block.
                if last.replace(block) != Some(block) {
                    postings.push(base + u64::from(block))?;
                }
            }
            run.next_gram().at(draft.folder())?;
        }
        in_use.push(gram);
        let limit = u64::from(u32::MAX);
        let place = u32::try_from(postings.len());
        places.push(place.map_err(|_| BuildError::TooMany { what: "trigrams of names", limit })?);
    }
    draft.put(IN_USE, &in_use)?;
    draft.put(PLACES, &places)?;
    postings.finish(draft)
}

/// Reader of a run.
struct RunReader<'a> {
    file: &'a File,
    /// Number of unread bytes.
    left: Range<u64>,
    buffer: Vec<u8>,
    /// Place of the next byte in the buffer.
    at: usize,
    hasher: blake3::Hasher,
    hash: blake3::Hash,
    /// Gram whose blocks follow.
    gram: Option<u32>,
}

impl RunReader<'_> {
    fn new(file: &File, left: Range<u64>, hash: blake3::Hash) -> io::Result<RunReader<'_>> {
        let (buffer, hasher) = (Vec::new(), blake3::Hasher::new());
        let mut reader = RunReader { file, left, buffer, at: 0, hasher, hash, gram: Some(0) };
        reader.next_gram()?;
        Ok(reader)
    }

    /// Moves to the next gram, if there is one.
    fn next_gram(&mut self) -> io::Result<()> {
        if self.at < self.buffer.len() || !self.left.is_empty() {
            let distance = self.number()?;
            self.gram = self.gram.map(|before| before + distance);
            return Ok(());
        }
        self.gram = None;
        if self.hasher.finalize() == self.hash {
            return Ok(());
        }
        let changed = "a temporary file changed while it was in use; check disk and memory";
        Err(io::Error::new(io::ErrorKind::InvalidData, changed))
    }

    #[inline]
    fn number(&mut self) -> io::Result<u32> {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            if self.at == self.buffer.len() {
                self.fill()?;
            }
            let byte = self.buffer[self.at];
            self.at += 1;
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 1 << 7 {
                break;
            }
        }
        Ok(number)
    }

    #[cold]
    fn fill(&mut self) -> io::Result<()> {
        let bytes = READ_BYTES.min(self.left.end - self.left.start);
        self.buffer.resize(bytes.max(1) as usize, 0);
        self.file.read_exact_at(&mut self.buffer, self.left.start)?;
        self.hasher.update(&self.buffer);
        (self.left.start, self.at) = (self.left.start + bytes, 0);
        Ok(())
    }
}
