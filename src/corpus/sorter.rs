//! Sorts observations in bounded memory: full runs are scored, sorted and spilled to disk, then
//! merged.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::{panic, thread};

use rayon::prelude::*;
use tempfile::TempDir;

use crate::batch::{
    self, Batch, BatchError, BatchMeta, BatchWriter, EncodedEntries, StoredObservation, head_of,
};
use crate::merge::{self, Merge};
use crate::scored::{Features, ScoredRow};
use crate::vocab::file_error::AtPath;
use crate::vocab::name::DomainName;

/// Rows per run, about 50 MB. Two runs are in memory: one is being filled while the other is scored,
/// sorted and written.
const RUN_ROWS: usize = 500_000;
/// Rows per segment, the work of one task.
const SEGMENT_ROWS: usize = 1 << 16;

/// When rows are scored. Rows of zone files are scored later, because unchanged names need no
/// score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    Now,
    Later,
}

/// A batch writer for a file.
pub type FileWriter = BatchWriter<BufWriter<File>>;

/// Collects rows and spills sorted runs into a temporary folder.
pub struct Sorter {
    scoring: Scoring,
    rows: Vec<ScoredRow>,
    /// Number of rows in a full run.
    run_rows: usize,
    runs: usize,
    /// Dropped before `folder`, so that writing ends before the folder is removed.
    spilling: Spilling,
    folder: TempDir,
}

/// The thread that writes a run, if any. The thread returns the emptied row buffer.
#[derive(Default)]
struct Spilling(Option<JoinHandle<Result<Vec<ScoredRow>, BatchError>>>);

/// Sorted runs, in the order of their rows. Dropping this value removes the files.
pub struct Runs {
    batches: Vec<Batch>,
    _folder: TempDir,
}

impl Runs {
    /// The runs, oldest rows first.
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Merges the runs into `out` on all cores, each of which works on its own range of names.
    fn merge_into(&self, out: &mut FileWriter, path: &Path) -> Result<(), BatchError> {
        let blocks = self.batches.iter().map(|batch| batch.block_names().count()).sum::<usize>();
        let ranges = (blocks * batch::BLOCK_ENTRIES as usize).div_ceil(2 * SEGMENT_ROWS);
        let cuts = merge::cuts(&self.batches, ranges);
        let at: Vec<usize> = (0..=cuts.len()).collect();
        // Segments stay in memory until they are written, so each round has just enough ranges to
        // keep all cores busy.
        for wave in at.chunks(2 * rayon::current_num_threads()) {
            let segments: Vec<EncodedEntries> = wave
                .par_iter()
                .map(|&at| {
                    let from = at.checked_sub(1).map_or(&[] as &[u8], |at| &cuts[at]);
                    self.segment(from, cuts.get(at).map(Vec::as_slice))
                })
                .collect::<Result<_, _>>()?;
            append(segments, out, path)?;
        }
        Ok(())
    }

    /// Returns the rows of names from `from` (inclusive) to `to` (exclusive).
    fn segment(&self, from: &[u8], to: Option<&[u8]>) -> Result<EncodedEntries, BatchError> {
        let mut segment = EncodedEntries::default();
        let mut merge = Merge::new(&self.batches, from)?;
        while let Some(entry) = merge.peek().filter(|entry| to.is_none_or(|to| entry.name < to)) {
            segment.push(&entry, None);
            merge.advance()?;
        }
        Ok(segment)
    }
}

impl Sorter {
    /// Creates a sorter that spills into a new folder under `scratch`.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(scratch: &Path, scoring: Scoring) -> io::Result<Sorter> {
        let folder = tempfile::Builder::new().prefix(".sorting-").tempdir_in(scratch)?;
        let (rows, spilling) = (Vec::new(), Spilling::default());
        Ok(Sorter { scoring, rows, run_rows: RUN_ROWS, runs: 0, spilling, folder })
    }

    /// Adds one row.
    ///
    /// # Errors
    /// A full run cannot be written.
    pub fn push(&mut self, name: DomainName, record: StoredObservation) -> Result<(), BatchError> {
        self.rows.push(ScoredRow::unscored(name, record));
        if self.rows.len() >= self.run_rows { self.spill() } else { Ok(()) }
    }

    /// Writes the last run and opens all of them.
    ///
    /// # Errors
    /// A run cannot be written or read back.
    pub fn finish(mut self) -> Result<Runs, BatchError> {
        self.spill()?;
        self.spilling.finish()?;
        let batches =
            (0..self.runs).map(|run| Batch::open(&self.run_path(run))).collect::<Result<_, _>>()?;
        Ok(Runs { batches, _folder: self.folder })
    }

    /// Writes all rows, sorted, to `out`, the new file at `path`. A single run is not spilled first.
    ///
    /// # Errors
    /// A run cannot be written or read back, or `out` cannot be written.
    pub fn finish_into(mut self, out: &mut FileWriter, path: &Path) -> Result<(), BatchError> {
        if self.runs == 0 {
            return write_sorted(&mut self.rows, self.scoring, out, path);
        }
        self.finish()?.merge_into(out, path)
    }

    fn run_path(&self, run: usize) -> PathBuf {
        self.folder.path().join(run.to_string())
    }

    /// Passes the rows to a writer thread once the previous thread has ended.
    fn spill(&mut self) -> Result<(), BatchError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let buffer = self.spilling.finish()?;
        let mut rows = std::mem::replace(&mut self.rows, buffer);
        let (path, scoring) = (self.run_path(self.runs), self.scoring);
        self.runs += 1;
        self.spilling = Spilling(Some(thread::spawn(move || {
            let mut writer = batch::create(&path)?;
            write_sorted(&mut rows, scoring, &mut writer, &path)?;
            writer.finish(&BatchMeta::default()).at(&path)?;
            Ok(rows)
        })));
        Ok(())
    }
}

impl Spilling {
    /// Waits for the run and returns its buffer for the next.
    fn finish(&mut self) -> Result<Vec<ScoredRow>, BatchError> {
        match self.0.take() {
            Some(thread) => thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
            None => Ok(Vec::new()),
        }
    }
}

impl Drop for Spilling {
    /// Waits for the run; its result is no longer needed.
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            drop(thread.join());
        }
    }
}

/// Scores the rows if `scoring` requires it, appends them sorted to `out`, and clears them. Uses
/// all cores.
fn write_sorted(
    rows: &mut Vec<ScoredRow>,
    scoring: Scoring,
    out: &mut FileWriter,
    path: &Path,
) -> Result<(), BatchError> {
    let features = match scoring {
        Scoring::Now => Features::score(rows),
        Scoring::Later => Features::default(),
    };
    let order = order(rows);
    let segments = order
        .par_chunks(SEGMENT_ROWS)
        .map(|positions| {
            positions.iter().map(|&(_, at)| features.entry(&rows[at as usize])).collect()
        })
        .collect();
    append(segments, out, path)?;
    rows.clear();
    Ok(())
}

/// Returns the positions of `rows` sorted by name, with the heads of the names. Rows of the same
/// name keep the order of the list.
fn order(rows: &[ScoredRow]) -> Vec<(u64, u32)> {
    let name = |at: u32| rows[at as usize].name.as_str();
    let mut order: Vec<(u64, u32)> =
        rows.iter().zip(0..).map(|(row, at)| (head_of(row.name.as_str().as_bytes()), at)).collect();
    order.par_sort_unstable_by(|&(left_head, left), &(right_head, right)| {
        left_head
            .cmp(&right_head)
            .then_with(|| name(left).cmp(name(right)))
            .then_with(|| left.cmp(&right))
    });
    order
}

fn append(
    segments: Vec<EncodedEntries>,
    out: &mut FileWriter,
    path: &Path,
) -> Result<(), BatchError> {
    Ok(segments.into_iter().try_for_each(|segment| out.append(segment)).at(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::Sighting;

    /// Returns the rows of a batch in order: name, second, and whether they are scored.
    fn rows_of(batch: &Batch) -> Vec<(String, i64, bool)> {
        let mut cursor = batch.cursor(b"").expect("a cursor");
        let mut rows = Vec::new();
        while let Some(entry) = cursor.entry() {
            let name = String::from_utf8(entry.name.to_vec()).expect("ASCII");
            rows.push((name, entry.record.observed_at, entry.base.to_bits() != 0));
            cursor.advance().expect("an entry");
        }
        rows
    }

    fn sorted(names: &[String], run_rows: usize, scoring: Scoring) -> Vec<(String, i64, bool)> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sorter = Sorter::new(folder.path(), scoring).expect("a sorter");
        sorter.run_rows = run_rows;
        for (name, observed_at) in names.iter().zip(0..) {
            let sighting = Sighting::Known { registered: true };
            let name = DomainName::parse(name).expect("a name");
            sorter
                .push(name, StoredObservation { sighting, first_seen: None, observed_at })
                .expect("pushed");
        }
        let path = folder.path().join("batch");
        let mut out = batch::create(&path).expect("a new file");
        sorter.finish_into(&mut out, &path).expect("sorted");
        let counts = out.counts();
        out.finish(&BatchMeta::default()).expect("finished");
        let left = std::fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(left, 1, "runs are removed");
        let rows = rows_of(&Batch::open(&path).expect("opens"));
        let mut distinct: Vec<&str> = rows.iter().map(|(name, ..)| name.as_str()).collect();
        distinct.dedup();
        assert_eq!(counts, (rows.len() as u64, distinct.len() as u64));
        rows
    }

    #[test]
    fn rows_are_sorted_and_keep_their_order_within_a_name_for_any_number_of_runs() {
        let mut seed = 1_u32;
        let mut names: Vec<String> = Vec::new();
        for _ in 0..5_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Many names share their first eight bytes, and some are shorter.
            let stem = ["a", "ab", "abcdefgh", "abcdefghi"][(seed >> 8) as usize % 4];
            names.push(format!("{stem}{}.com", (seed >> 16) % 300));
        }
        for scoring in [Scoring::Now, Scoring::Later] {
            let mut expected: Vec<(String, i64, bool)> = names
                .iter()
                .zip(0..)
                .map(|(name, at)| (name.clone(), at, scoring == Scoring::Now))
                .collect();
            expected.sort();
            for run_rows in [1_000_000, 5_000, 4_999, 1_300, 40] {
                assert_eq!(sorted(&names, run_rows, scoring), expected, "runs of {run_rows}");
            }
        }
        assert_eq!(sorted(&[], 10, Scoring::Now), []);
    }
}
