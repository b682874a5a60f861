//! Scored records on disk: `corpus/` in the data folder, one immutable batch per ingested list.
//!
//! [`compact`] makes one of many.
//!
//! In: rows of a feed. Out: one [`merge::Dossier`] per name. What a list adds is there whole or
//! not at all: a batch is renamed into place, its number one above the last.

pub mod batch;
pub mod compact;
pub mod ingest;
pub mod lock;
pub mod merge;
mod numbers;
mod scored;
pub mod sorter;

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::corpus::batch::{Batch, BatchError, BatchMeta, Entry};
use crate::corpus::lock::{FolderLock, LockError};
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

impl From<LockError> for CorpusError {
    fn from(err: LockError) -> CorpusError {
        match err {
            LockError::Busy(path) => CorpusError::Busy(path),
            LockError::Io { path, source } => CorpusError::Folder { path, source },
        }
    }
}

/// The corpus, held by one process at a time.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    _lock: FolderLock,
}

impl Corpus {
    /// Opens the corpus in the data folder `data`, made when it is new, and locks it.
    ///
    /// # Errors
    /// The folder cannot be used, or another process holds it.
    pub fn open(data: &Path) -> Result<Corpus, CorpusError> {
        let folder = data.join(FOLDER);
        let lock = FolderLock::take(&folder, LOCK)?;
        Corpus::held(folder, lock)
    }

    /// The corpus of whoever holds its lock, and so knows that nobody works on what is left in it.
    fn held(folder: PathBuf, lock: FolderLock) -> Result<Corpus, CorpusError> {
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
        self.files()?
            .iter()
            .map(|file| {
                let batch = Batch::open(&file.path)?;
                file.check(batch.meta())?;
                if batch.meta().scorer_version == SCORER_VERSION && batch.has_evidence() {
                    return Ok(batch);
                }
                self.rescore(&batch)?;
                Ok(Batch::open(&file.path)?)
            })
            .collect()
    }

    /// The metas of all lists, oldest first, read without verifying the batches.
    ///
    /// # Errors
    /// A batch is missing or unreadable.
    pub fn metas(&self) -> Result<Vec<BatchMeta>, CorpusError> {
        let mut metas = Vec::new();
        for file in self.files()? {
            let meta = BatchMeta::peek(&file.path)?;
            file.check(&meta)?;
            metas.extend_from_slice(meta.lists());
        }
        Ok(metas)
    }

    /// The files of all batches, oldest first; the numbers of their lists are 1, 2, 3 and so on.
    fn files(&self) -> Result<Vec<BatchFile>, CorpusError> {
        let (files, _) = self.files_and_superseded()?;
        let mut missing = 1;
        for file in &files {
            if file.first != missing {
                return Err(CorpusError::Gap { folder: self.folder.clone(), missing });
            }
            missing = file.last + 1;
        }
        Ok(files)
    }

    /// The files of batches, oldest first; and those whose lists are in another of them too.
    fn files_and_superseded(&self) -> Result<(Vec<BatchFile>, Vec<BatchFile>), CorpusError> {
        let failed = |source| CorpusError::Io { path: self.folder.clone(), source };
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            all.extend(BatchFile::of(&entry.map_err(failed)?.path()));
        }
        // Of those that begin with the same list, the one that goes furthest comes first.
        all.sort_unstable_by_key(|file| (file.first, Reverse(file.last)));
        let (mut files, mut superseded) = (Vec::<BatchFile>::new(), Vec::new());
        for file in all {
            match files.last() {
                Some(before) if file.last <= before.last => superseded.push(file),
                _ => files.push(file),
            }
        }
        Ok((files, superseded))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("batch-{number:010}.ddb"))
    }

    /// Removes what an ingest that was killed left in the data folder `data`, unless one is running.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn tidy(data: &Path) -> Result<(), CorpusError> {
        let folder = data.join(FOLDER);
        if !folder.exists() {
            return Ok(());
        }
        match FolderLock::take_now(&folder, LOCK) {
            Ok(lock) => Corpus::held(folder, lock).map(drop),
            Err(LockError::Busy(_)) => Ok(()),
            Err(err) => Err(err.into()),
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
        self.finish_compaction()
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
        let _unpublished = Unpublished(draft.clone());
        let failed = |source| BatchError::Io { path: draft.clone(), source };
        let of_lists = old.is_of_lists();
        let mut writer =
            if of_lists { batch::create_of_lists(&draft)? } else { batch::create(&draft)? };
        let mut cursor = old.cursor(b"")?;
        let (mut chunk, mut lists) = (Vec::new(), Vec::new());
        loop {
            chunk.clear();
            lists.clear();
            while chunk.len() < RESCORE_CHUNK
                && let Some(entry) = cursor.entry()
            {
                chunk.push(ScoredRow::unscored(stored_name(&entry, old)?, entry.record));
                lists.push(of_lists.then_some(cursor.list()));
                cursor.advance()?;
            }
            if chunk.is_empty() {
                break;
            }
            let evidences = Evidences::score(&mut chunk);
            for (row, &list) in chunk.iter().zip(&lists) {
                writer.push_of(&evidences.entry(row), list).map_err(failed)?;
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

/// A draft, which goes when it did not get its real name: on a full disk it would keep what it takes
/// from everybody.
struct Unpublished(PathBuf);

impl Drop for Unpublished {
    fn drop(&mut self) {
        // Nothing is there once it has its name.
        let _ = fs::remove_file(&self.0);
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
/// The file in it that whoever changes the corpus holds the lock on.
const LOCK: &str = "LOCK";
/// Rows scored at once when a batch is scored again.
const RESCORE_CHUNK: usize = 200_000;

/// A file that holds lists, by its name: `batch-NUMBER.ddb`, or `batch-FIRST-LAST.ddb` where several
/// were made one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BatchFile {
    path: PathBuf,
    first: u64,
    last: u64,
}

impl BatchFile {
    /// `None` for other files.
    fn of(path: &Path) -> Option<BatchFile> {
        let name = path.file_name()?.to_str()?;
        let digits = name.strip_prefix("batch-")?.strip_suffix(".ddb")?;
        let number = |digits: &str| (digits.len() == 10).then(|| digits.parse().ok()).flatten();
        let (first, last) = match digits.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(digits)?, number(digits)?),
        };
        (first <= last).then(|| BatchFile { path: path.to_owned(), first, last })
    }

    /// Whether it holds as many lists as its name says.
    fn check(&self, meta: &BatchMeta) -> Result<(), BatchError> {
        if meta.lists().len() as u64 == self.last - self.first + 1 {
            return Ok(());
        }
        let what = "another number of lists than its name says";
        Err(BatchError::Malformed { path: self.path.clone(), offset: 0, what })
    }
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
