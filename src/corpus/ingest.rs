//! Ingests one list: either its rows become one batch, or nothing changes and the error gives the
//! reason.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::batch::{self, BatchError, BatchMeta, Entry, StoredObservation};
use crate::feeds::{FeedError, Observation, Reject, Row, Sighting};
use crate::merge::Merge;
use crate::scored;
use crate::scorer::{SCORER_VERSION, Scorer, Scratch};
use crate::sorter::{FileWriter, Scoring, Sorter};
use crate::vocab::cell::without_formula;
use crate::vocab::day::Day;
use crate::vocab::file_error::{AtPath, FileError};
use crate::vocab::name::DomainName;
use crate::vocab::new_file;
use crate::vocab::origin::Origin;
use crate::vocab::outcome::ZoneDays;
use crate::{Corpus, CorpusError, Unpublished};

/// Of this many rows, one may be bad. A list with more bad rows is refused, because it does not
/// have the assumed format.
const BAD_ROWS_ONE_IN: u64 = 10;

/// Identity and origin of a list.
#[derive(Clone, Debug)]
pub struct Source {
    /// File name without folders.
    pub name: String,
    /// SHA-256 of the file as stored: the identity of the list.
    pub sha256: [u8; 32],
    pub format: String,
    pub observed_at: DateTime<Utc>,
    pub ingested_at: DateTime<Utc>,
    /// Where the list was fetched from; `None` for a local file.
    pub origin: Option<Origin>,
    /// [`BatchMeta::day`].
    pub day: Option<Day>,
    /// [`BatchMeta::replaces`].
    pub replaces: Vec<u32>,
    /// [`BatchMeta::zone`].
    pub zone: Option<ZoneDays>,
}

/// The result of an ingest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ingested {
    /// Number of accepted rows.
    pub accepted: u64,
    /// Number of rejected rows by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Number of distinct names.
    pub names: u64,
    /// File name of the new batch, or of the popularity list.
    pub batch: String,
    /// The file with the rejected rows, if any.
    pub rejects_file: Option<PathBuf>,
}

/// Why a list was not added. The corpus is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error(
        "{bad} of {rows} rows are bad, more than 10 % (the first in line {line}: {reason}); all are in \
         {rejects}. Correct them, or if the list is not in the format {format}, name its format with \
         --format"
    )]
    TooManyBad { bad: u64, rows: u64, line: u64, reason: String, format: String, rejects: PathBuf },
    #[error("the list holds no names; read as {format}. Leave it out if its day had no drops")]
    Empty { format: String },
    #[error("both zone files hold the same names, so there is nothing to add")]
    SameZones,
    #[error(transparent)]
    Io(#[from] FileError),
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl Corpus {
    /// Returns the lists with this SHA-256 and their numbers, oldest first, except lists that were
    /// later read differently and replaced. A list of bare names that was ingested under file names
    /// with different days may occur once for each day.
    ///
    /// # Errors
    /// A batch is missing or unreadable.
    pub fn find(&self, sha256: &[u8; 32]) -> Result<Vec<(u32, BatchMeta)>, CorpusError> {
        let sha256 = hex::encode(sha256);
        let metas = self.metas()?;
        let found = batch::not_replaced(metas.iter());
        let found = found.filter(|(_, meta)| meta.source_sha256 == sha256);
        let found = found.map(|(number, meta)| (number, meta.clone()));
        Ok(found.collect())
    }

    /// Adds a list, completely or not at all. Rejected rows are written to `rejects/` beside the
    /// corpus, also when the list is refused for having too many of them.
    ///
    /// # Errors
    /// The list cannot be read to its end, has too many bad rows or no good one, or an I/O error
    /// occurs.
    pub fn ingest(
        &self,
        source: &Source,
        rows: impl Iterator<Item = Result<Row, FeedError>>,
    ) -> Result<Ingested, IngestError> {
        let mut tally = RowTally::new(self, source)?;
        let sorter = self.sort(Scoring::Now, &mut tally, rows)?;
        tally.check()?;
        let mut draft = self.draft()?;
        sorter.finish_into(&mut draft.writer, &draft.path)?;
        self.seal(draft, source, tally)
    }

    /// Adds the changes between two zone files of one zone: removed names dropped on `day`, and added
    /// names were registered on it.
    ///
    /// # Errors
    /// The errors of [`Corpus::ingest`], or the zones have the same names.
    pub fn ingest_zone_pair(
        &self,
        source: &Source,
        day: Day,
        older: impl Iterator<Item = Result<Row, FeedError>>,
        newer: impl Iterator<Item = Result<Row, FeedError>>,
    ) -> Result<Ingested, IngestError> {
        let mut tally = RowTally::new(self, source)?;
        let older = self.sort(Scoring::Later, &mut tally, older)?.finish()?;
        let newer = self.sort(Scoring::Later, &mut tally, newer)?.finish()?;
        tally.check()?;
        tally.accepted = 0;
        let mut draft = self.draft()?;
        let scorer = Scorer::shared();
        let mut scratch = Scratch::default();
        let border = older.batches().len();
        let mut merge = Merge::new(older.batches().iter().chain(newer.batches()), b"")?;
        let (mut name, mut features) = (Vec::new(), Vec::new());
        while let Some(first) = merge.peek() {
            name.clear();
            name.extend_from_slice(first.name);
            let (label_len, length) = (first.label_len, first.length);
            let (mut was, mut is) = (false, false);
            while merge.peek().is_some_and(|entry| entry.name == name) {
                let newer = merge.source().is_some_and(|source| source >= border);
                *(if newer { &mut is } else { &mut was }) = true;
                merge.advance()?;
            }
            let sighting = match (was, is) {
                (true, false) => {
                    Sighting::Dropped { date: day, release: None, registered_again: false }
                }
                (false, true) => Sighting::Registered { on: day },
                _ => continue,
            };
            let Some(parsed) = DomainName::from_stored(&name, label_len) else { continue };
            features.clear();
            let base = scored::score(scorer, &parsed, sighting, &mut scratch, &mut features);
            let observed_at = source.observed_at.timestamp();
            let record = StoredObservation { sighting, first_seen: None, observed_at };
            let entry = Entry { name: &name, label_len, length, base, features: &features, record };
            draft.writer.push(&entry, None).at(&draft.path)?;
            tally.accepted += 1;
        }
        if tally.accepted == 0 {
            return Err(IngestError::SameZones);
        }
        self.seal(draft, source, tally)
    }

    fn sort(
        &self,
        scoring: Scoring,
        tally: &mut RowTally,
        rows: impl Iterator<Item = Result<Row, FeedError>>,
    ) -> Result<Sorter, IngestError> {
        let mut sorter = Sorter::new(&self.folder, scoring).at(&self.folder)?;
        for row in rows {
            if let Some(seen) = tally.take(row?)? {
                let Observation { name, sighting, first_seen, observed_at } = seen;
                let observed_at = observed_at.timestamp();
                sorter.push(name, StoredObservation { sighting, first_seen, observed_at })?;
            }
        }
        Ok(sorter)
    }

    fn draft(&self) -> Result<BatchDraft, IngestError> {
        let path = self.folder.join(".new-batch");
        let unpublished = Unpublished(path.clone());
        Ok(BatchDraft { writer: batch::create(&path)?, path, _unpublished: unpublished })
    }

    fn seal(
        &self,
        draft: BatchDraft,
        source: &Source,
        tally: RowTally,
    ) -> Result<Ingested, IngestError> {
        let number = self.next_number(source.ingested_at)?;
        let (rows, names) = draft.writer.counts();
        let meta = BatchMeta {
            source: source.name.clone(),
            source_sha256: hex::encode(source.sha256),
            format: source.format.clone(),
            observed_at: source.observed_at,
            ingested_at: source.ingested_at,
            accepted: tally.accepted,
            rejected: tally.rejected(),
            rows,
            names,
            scorer_version: SCORER_VERSION,
            origin: source.origin.clone(),
            day: source.day,
            replaces: source.replaces.clone(),
            zone: source.zone.clone(),
            lists: Vec::new(),
        };
        let file = draft.writer.finish(&meta).at(&draft.path)?;
        let path = self.path(number);
        self.publish(file, &draft.path, &path)?;
        self.note_number(number)?;
        let batch = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(tally.finish(names, batch))
    }
}

struct BatchDraft {
    writer: FileWriter,
    path: PathBuf,
    _unpublished: Unpublished,
}

/// Counts rows and writes the rejected ones to a file.
pub(super) struct RowTally {
    format: String,
    accepted: u64,
    rejected: BTreeMap<String, u64>,
    path: PathBuf,
    rejects: Option<csv::Writer<File>>,
    /// Line number and reason of the first rejected row.
    first: Option<(u64, String)>,
}

impl RowTally {
    pub(super) fn new(corpus: &Corpus, source: &Source) -> Result<RowTally, IngestError> {
        let data = corpus.folder.parent().unwrap_or(&corpus.folder);
        let name: String = source.name.chars().take(100).collect();
        let path =
            data.join("rejects").join(format!("{name}.{}.csv", hex::encode(&source.sha256[..4])));
        Ok(RowTally {
            format: source.format.clone(),
            accepted: 0,
            rejected: BTreeMap::new(),
            path,
            rejects: None,
            first: None,
        })
    }

    /// Counts the row and returns the content of a good one.
    pub(super) fn take<T>(&mut self, row: Row<T>) -> Result<Option<T>, IngestError> {
        match row {
            Row::Seen(seen) => {
                self.accepted += 1;
                Ok(Some(seen))
            }
            Row::Rejected(reject) => {
                self.reject(&reject)?;
                Ok(None)
            }
        }
    }

    fn reject(&mut self, reject: &Reject) -> Result<(), IngestError> {
        *self.rejected.entry(reject.reason.code().to_owned()).or_default() += 1;
        let line = reject.line.to_string();
        let reason = reject.reason.to_string();
        self.first.get_or_insert_with(|| (reject.line, reason.clone()));
        let row = [&line, reject.reason.code(), &reason, &*without_formula(&reject.text)];
        let written = match &mut self.rejects {
            Some(rejects) => rejects.write_record(row).map_err(io::Error::from),
            None => self
                .open_rejects()
                .and_then(|rejects| Ok(self.rejects.insert(rejects).write_record(row)?)),
        };
        Ok(written.at(&self.path)?)
    }

    fn open_rejects(&self) -> io::Result<csv::Writer<File>> {
        if let Some(folder) = self.path.parent() {
            new_file::create_folder(folder)?;
        }
        let mut rejects = csv::Writer::from_writer(new_file::create(&self.path)?);
        rejects.write_record(["line", "reason", "explanation", "text"])?;
        Ok(rejects)
    }

    /// Refuses a list with too many bad rows, or without rows.
    pub(super) fn check(&mut self) -> Result<(), IngestError> {
        if let Some(rejects) = &mut self.rejects {
            rejects.flush().at(&self.path)?;
        }
        let bad = self.rejected();
        let rows = self.accepted + bad;
        if bad * BAD_ROWS_ONE_IN > rows {
            let (line, reason) = self.first.take().unwrap_or_default();
            return Err(IngestError::TooManyBad {
                bad,
                rows,
                line,
                reason,
                format: self.format.clone(),
                rejects: self.path.clone(),
            });
        }
        if rows == 0 {
            return Err(IngestError::Empty { format: self.format.clone() });
        }
        Ok(())
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(super) fn rejected(&self) -> u64 {
        self.rejected.values().sum()
    }

    pub(super) fn finish(self, names: u64, batch: String) -> Ingested {
        Ingested {
            accepted: self.accepted,
            names,
            batch,
            rejects_file: (!self.rejected.is_empty()).then_some(self.path),
            rejected: self.rejected,
        }
    }
}
