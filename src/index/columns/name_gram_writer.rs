//! Writes the columns of [`super::name_grams`]. Names are read in runs: the blocks of each gram of
//! a run are sorted by counting, and are written to a temporary file as differences. Runs are in
//! name order, so the blocks of a gram in the first run precede those in the next. Memory does not
//! grow with the number of names, except for the index of the list.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rayon::prelude::*;
use tantivy_common::VInt;

use crate::columns::ascending::AscendingWriter;
use crate::columns::by_gram::ByGram;
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
const READ_BYTES: usize = 1 << 14;

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

/// Returns the blocks of the grams of these names, in the order of the grams: for each gram, its
/// distance from the previous gram, the number of blocks, and the distance of each block from the
/// previous block.
fn run_of(part: &Part, ordinals: Range<u32>) -> Vec<u8> {
    let mut counts = vec![0u32; GRAMS];
    // The grams of all blocks, and for each block the end of its grams.
    let (mut grams, mut ends): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
    let first_block = ordinals.start / GRAM_NAMES;
    for block in first_block..ordinals.end.div_ceil(GRAM_NAMES) {
        let start = ordinals.start.max(block * GRAM_NAMES);
        let end = ordinals.end.min(block.saturating_add(1).saturating_mul(GRAM_NAMES));
        for ordinal in start..end {
            let label = text_of(part.label((ordinal - part.first) as usize));
            each_gram(&form_of(label), |gram| {
                counts[gram as usize] += 1;
                grams.push(gram);
            });
        }
        ends.push(grams.len());
    }
    let (mut sorted, mut start) = (ByGram::with_room(&counts), 0);
    for (block, end) in (first_block..).zip(ends) {
        grams[start..end].iter().for_each(|&gram| sorted.add(gram as usize, block));
        start = end;
    }
    let (mut run, mut gram_before) = (Vec::with_capacity(grams.len()), 0);
    let mut put = |number: u32| VInt(number.into()).serialize_into_vec(&mut run);
    for gram in 0..GRAMS as u32 {
        let blocks = sorted.numbers(gram as usize);
        if blocks.is_empty() {
            continue;
        }
        put(gram - gram_before);
        put(blocks.len() as u32);
        let mut before = 0;
        for &block in blocks {
            put(block - before);
            before = block;
        }
        gram_before = gram;
    }
    run
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
    bytes: BufReader<RunBytes<'a>>,
    hash: blake3::Hash,
    /// Gram whose blocks follow.
    gram: Option<u32>,
}

/// Bytes of a run, hashed as they are read.
struct RunBytes<'a> {
    file: &'a File,
    left: Range<u64>,
    hasher: blake3::Hasher,
}

impl io::Read for RunBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = (self.left.end - self.left.start).min(buffer.len() as u64) as usize;
        self.file.read_exact_at(&mut buffer[..len], self.left.start)?;
        self.hasher.update(&buffer[..len]);
        self.left.start += len as u64;
        Ok(len)
    }
}

impl RunReader<'_> {
    fn new(file: &File, left: Range<u64>, hash: blake3::Hash) -> io::Result<RunReader<'_>> {
        let bytes = RunBytes { file, left, hasher: blake3::Hasher::new() };
        let bytes = BufReader::with_capacity(READ_BYTES, bytes);
        let mut reader = RunReader { bytes, hash, gram: Some(0) };
        reader.next_gram()?;
        Ok(reader)
    }

    /// Moves to the next gram, if there is one.
    fn next_gram(&mut self) -> io::Result<()> {
        if !self.bytes.fill_buf()?.is_empty() {
            let distance = self.number()?;
            self.gram = self.gram.map(|before| before + distance);
            return Ok(());
        }
        self.gram = None;
        if self.bytes.get_ref().hasher.finalize() == self.hash {
            return Ok(());
        }
        let changed = "a temporary file changed while it was in use; check disk and memory";
        Err(io::Error::new(io::ErrorKind::InvalidData, changed))
    }

    #[inline]
    fn number(&mut self) -> io::Result<u32> {
        VInt::deserialize_u64(&mut self.bytes).map(|number| number as u32)
    }
}
