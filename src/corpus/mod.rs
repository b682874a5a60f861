//! Scored records on disk: `corpus/` in the data folder, one immutable batch per ingested list.
//!
//! In: rows of a feed. Out: one [`merge::Dossier`] per name. What a list adds is there whole or
//! not at all: a batch is renamed into place, its number one above the last.

pub mod batch;
pub mod ingest;
pub mod merge;
mod numbers;
mod scored;
pub mod sorter;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::corpus::batch::{Batch, BatchError, BatchMeta, Entry};
use crate::corpus::scored::{Evidences, ScoredRow};
use crate::scorer::SCORER_VERSION;
use crate::vocab::name::DomainName;

/// Why the corpus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    #[error("{path}: {source}; --data names the data folder")]
    Folder { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "another dropdex is ingesting or rebuilding (it holds {0}); try again when it has finished"
    )]
    Busy(PathBuf),
    #[error("batch {missing} is missing from {folder}; restore it from a backup")]
    Gap { folder: PathBuf, missing: u64 },
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// The corpus, held by one process at a time.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    _lock: File,
}

impl Corpus {
    /// Opens the corpus in the data folder `data`, made when it is new, and locks it.
    ///
    /// # Errors
    /// The folder cannot be used, or another process holds it.
    pub fn open(data: &Path) -> Result<Corpus, CorpusError> {
        let folder = data.join(FOLDER);
        let failed = |source| CorpusError::Folder { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        let lock_path = folder.join("LOCK");
        let lock = File::create(&lock_path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CorpusError::Busy(lock_path)),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let corpus = Corpus { folder, _lock: lock };
        corpus.remove_leftovers()?;
        Ok(corpus)
    }

    /// Opens and verifies every batch, oldest first; those of an older scorer, or of a format
    /// without the evidence of scores, are scored again and replaced before.
    ///
    /// # Errors
    /// A batch is missing, damaged or of a newer format.
    pub fn batches(&self) -> Result<Vec<Batch>, CorpusError> {
        self.paths()?
            .iter()
            .map(|path| {
                let batch = Batch::open(path)?;
                if batch.meta().scorer_version == SCORER_VERSION && batch.has_evidence() {
                    return Ok(batch);
                }
                self.rescore(&batch)?;
                Ok(Batch::open(path)?)
            })
            .collect()
    }

    /// The metas of all batches, oldest first, read without verifying the batches.
    ///
    /// # Errors
    /// A batch is missing or unreadable.
    pub fn metas(&self) -> Result<Vec<BatchMeta>, CorpusError> {
        Ok(self.paths()?.iter().map(|path| BatchMeta::peek(path)).collect::<Result<_, _>>()?)
    }

    /// The paths of all batches, oldest first; their numbers are 1, 2, 3 and so on.
    fn paths(&self) -> Result<Vec<PathBuf>, CorpusError> {
        let failed = |source| CorpusError::Io { path: self.folder.clone(), source };
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            numbers.extend(name.to_str().and_then(batch_number));
        }
        numbers.sort_unstable();
        for (number, expected) in numbers.iter().zip(1..) {
            if *number != expected {
                let folder = self.folder.clone();
                return Err(CorpusError::Gap { folder, missing: expected });
            }
        }
        Ok(numbers.into_iter().map(|number| self.path(number)).collect())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("batch-{number:010}.ddb"))
    }

    /// Removes what an ingest that was killed left in the data folder `data`, unless one is running.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn tidy(data: &Path) -> Result<(), CorpusError> {
        if !data.join(FOLDER).exists() {
            return Ok(());
        }
        match Corpus::open(data) {
            Ok(_) | Err(CorpusError::Busy(_)) => Ok(()),
            Err(err) => Err(err),
        }
    }

    fn remove_leftovers(&self) -> Result<(), CorpusError> {
        let failed = |source| CorpusError::Io { path: self.folder.clone(), source };
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(".sorting-") {
                fs::remove_dir_all(entry.path()).map_err(failed)?;
            } else if name.to_string_lossy().starts_with(".new-") {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Writes the batch again with the scores of this scorer, and puts it in the old one's place.
    fn rescore(&self, old: &Batch) -> Result<(), CorpusError> {
        tracing::info!(
            batch = %old.path().display(),
            from = old.meta().scorer_version,
            to = SCORER_VERSION,
            "scoring a batch again"
        );
        let draft = self.folder.join(".new-rescored");
        let failed = |source| BatchError::Io { path: draft.clone(), source };
        let mut writer = batch::create(&draft)?;
        let mut cursor = old.cursor(b"")?;
        let mut chunk = Vec::new();
        loop {
            chunk.clear();
            while chunk.len() < RESCORE_CHUNK
                && let Some(entry) = cursor.entry()
            {
                chunk.push(ScoredRow::unscored(stored_name(&entry, old)?, entry.record));
                cursor.advance()?;
            }
            if chunk.is_empty() {
                break;
            }
            let evidences = Evidences::score(&mut chunk);
            for row in &chunk {
                writer.push(&evidences.entry(row)).map_err(failed)?;
            }
        }
        let meta = BatchMeta { scorer_version: SCORER_VERSION, ..old.meta().clone() };
        self.publish(writer.finish(&meta).map_err(failed)?, &draft, old.path())
    }

    /// Makes the finished `draft` durable under its real name.
    fn publish(
        &self,
        file: io::BufWriter<File>,
        draft: &Path,
        path: &Path,
    ) -> Result<(), CorpusError> {
        let failed = |source| CorpusError::Io { path: draft.to_owned(), source };
        file.get_ref().sync_all().map_err(failed)?;
        fs::rename(draft, path).map_err(failed)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// The name of an entry of `batch`.
fn stored_name(entry: &Entry<'_>, batch: &Batch) -> Result<DomainName, BatchError> {
    DomainName::from_stored(entry.name, entry.label_len).ok_or_else(|| BatchError::Malformed {
        path: batch.path().to_owned(),
        offset: 0,
        what: "a name that is none",
    })
}

/// The folder of the corpus in the data folder.
const FOLDER: &str = "corpus";
/// Rows scored at once when a batch is scored again.
const RESCORE_CHUNK: usize = 200_000;

/// The number of a batch by its file name; `None` for other files.
fn batch_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("batch-")?.strip_suffix(".ddb")?;
    (digits.len() == 10).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::Sighting;
    use crate::scorer::{Scorer, Scratch};

    /// What is told of every entry, but for what the scorer says of it.
    fn told(batch: &Batch) -> Vec<String> {
        let mut cursor = batch.cursor(b"").expect("a cursor");
        let mut told = Vec::new();
        while let Some(entry) = cursor.entry() {
            let name = std::str::from_utf8(entry.name).expect("ASCII");
            let Entry { label_len, length, record, .. } = entry;
            told.push(format!("{name} {label_len} {length} {record:?}"));
            cursor.advance().expect("an entry");
        }
        told
    }

    /// A list as the first dropdex wrote it: drops (one with a release day, one registered again,
    /// one an IDN), a registration and names that were only known.
    fn version_1() -> Vec<u8> {
        let golden = include_str!("../../tests/golden/corpus-batch-v1.hex");
        hex::decode(golden.split_whitespace().collect::<String>()).expect("hex")
    }

    #[test]
    fn a_batch_without_evidence_is_scored_again_and_replaced() {
        let data = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(data.path()).expect("opens");
        let path = corpus.path(1);
        fs::write(&path, version_1()).expect("written");
        let before = Batch::open(&path).expect("version 1 is readable");
        assert!(!before.has_evidence());
        let expected = BatchMeta { scorer_version: SCORER_VERSION, ..before.meta().clone() };

        let batches = corpus.batches().expect("rewritten");
        let [after] = batches.as_slice() else { panic!("one batch") };
        assert!(after.has_evidence());
        assert_eq!((after.meta(), told(after)), (&expected, told(&before)));
        assert_eq!(told(after).len(), 7);
        let mut cursor = after.cursor(b"").expect("a cursor");
        while let Some(entry) = cursor.entry() {
            let mut evidence = Vec::new();
            let name = stored_name(&entry, after).expect("a name");
            let base =
                Scorer::shared().base_with_evidence(&name, &mut Scratch::default(), &mut evidence);
            assert_eq!(entry.base, base, "{name}");
            let dropped = matches!(entry.record.sighting, Sighting::Dropped { .. });
            assert_eq!(entry.evidence, if dropped { evidence.as_slice() } else { &[] }, "{name}");
            assert_eq!(entry.evidence.is_empty(), !dropped, "{name}");
            cursor.advance().expect("an entry");
        }

        let written = fs::read(&path).expect("readable");
        corpus.batches().expect("opens");
        assert_eq!(fs::read(&path).expect("readable"), written, "once is enough");
    }
}
