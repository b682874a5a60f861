//! Observations in any order in, sorted runs out, in memory that does not grow with the list.

use std::io;
use std::path::Path;

use rayon::prelude::*;
use tempfile::TempDir;

use crate::corpus::batch::{self, Batch, BatchError, BatchMeta, Entry, Record};
use crate::scorer::{Base, Scorer, Scratch};
use crate::vocab::name::DomainName;

/// Rows held in memory before they are sorted and spilled: about 50 MB.
const RUN_ROWS: usize = 500_000;

/// Whether a run's rows need their score: a zone's unchanged names do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    Now,
    Later,
}

struct Row {
    name: DomainName,
    base: Base,
    record: Record,
}

/// Collects rows, spilling sorted runs into a temporary folder.
pub struct Sorter {
    folder: TempDir,
    scoring: Scoring,
    rows: Vec<Row>,
    runs: usize,
}

/// Sorted runs, in the order their rows came. The files go when this does.
pub struct Runs {
    batches: Vec<Batch>,
    _folder: TempDir,
}

impl Runs {
    /// The runs, oldest rows first.
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }
}

impl Sorter {
    /// A sorter that spills into a new folder under `scratch`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(scratch: &Path, scoring: Scoring) -> io::Result<Sorter> {
        let folder = tempfile::Builder::new().prefix(".sorting-").tempdir_in(scratch)?;
        Ok(Sorter { folder, scoring, rows: Vec::new(), runs: 0 })
    }

    /// Adds one row.
    ///
    /// # Errors
    /// A full run cannot be written.
    pub fn push(&mut self, name: DomainName, record: Record) -> Result<(), BatchError> {
        self.rows.push(Row { name, base: Base::from_bits(0), record });
        if self.rows.len() >= RUN_ROWS { self.spill() } else { Ok(()) }
    }

    /// Writes the last run and opens all.
    ///
    /// # Errors
    /// A run cannot be written or read back.
    pub fn finish(mut self) -> Result<Runs, BatchError> {
        self.spill()?;
        let batches = (0..self.runs)
            .map(|run| Batch::open(&self.folder.path().join(run.to_string())))
            .collect::<Result<_, _>>()?;
        Ok(Runs { batches, _folder: self.folder })
    }

    fn spill(&mut self) -> Result<(), BatchError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        if self.scoring == Scoring::Now {
            let scorer = Scorer::shared();
            self.rows.par_iter_mut().for_each_init(Scratch::default, |scratch, row| {
                row.base = scorer.base(&row.name, scratch);
            });
        }
        // Stable: rows of one name stay in the order of the list.
        self.rows.par_sort_by(|left, right| left.name.cmp(&right.name));
        let path = self.folder.path().join(self.runs.to_string());
        self.runs += 1;
        let mut writer = batch::create(&path)?;
        let io = |source| BatchError::Io { path: path.clone(), source };
        for row in self.rows.drain(..) {
            let entry = Entry {
                name: row.name.as_str().as_bytes(),
                label_len: row.name.label_len(),
                length: row.name.length(),
                base: row.base,
                record: row.record,
            };
            writer.push(&entry).map_err(io)?;
        }
        writer.finish(&BatchMeta::of_a_run()).map_err(io)?;
        Ok(())
    }
}
