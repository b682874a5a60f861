//! The corpus: scored observations on disk, in the folder `corpus/` of the data folder.
//!
//! Input: rows of a feed ([`ingest`]), which become one immutable batch per list ([`mod@batch`]).
//! Output: one [`merge::Dossier`] per name ([`merge`]). A list is added completely or not at all: a
//! finished batch is renamed into place under the next number. [`compact`] merges many batches into
//! one. Popularity lists are not batches ([`ranked`]).

pub mod batch;
pub mod compact;
pub mod drops;
pub mod ingest;
pub mod lock;
pub mod merge;
mod numbers;
pub mod ranked;
mod scored;
pub mod seen;
pub mod sorter;

use dropdex_feeds as feeds;
use dropdex_scorer as scorer;
use dropdex_vocab as vocab;

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::batch::{Batch, BatchError, BatchMeta, Entry};
use crate::lock::{FolderLock, LockError};
use crate::scored::{Features, ScoredRow};
use crate::scorer::SCORER_VERSION;
use crate::vocab::file_error::{AtPath, FileError};
use crate::vocab::name::DomainName;
use crate::vocab::popularity::PopularityList;

/// Why the corpus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    #[error("{path}: {source}; --data names the data folder")]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Io(#[from] FileError),
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

/// The open and locked corpus, which only one process at a time may hold.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    _lock: FolderLock,
}

impl Corpus {
    /// Opens and locks the corpus in the data folder `data`, and creates it if it is missing.
    ///
    /// # Errors
    /// The folder cannot be used, or another process holds the lock.
    pub fn open(data: &Path) -> Result<Corpus, CorpusError> {
        let folder = data.join(FOLDER);
        let lock = FolderLock::take(&folder, LOCK)?;
        Corpus::locked(folder, lock)
    }

    /// Opens the corpus under a held lock; all temporary files are therefore leftovers.
    fn locked(folder: PathBuf, lock: FolderLock) -> Result<Corpus, CorpusError> {
        let corpus = Corpus { folder, _lock: lock };
        corpus.remove_leftovers()?;
        Ok(corpus)
    }

    /// Whether the data folder `data` contains lists, judged by file names. Takes no lock.
    pub fn has_lists(data: &Path) -> bool {
        let entries = fs::read_dir(data.join(FOLDER)).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| BatchFile::from_path(&entry.path()).is_some())
    }

    /// Verifies every byte of all files in the data folder `data`, without a lock and without changing
    /// anything.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn verify(data: &Path) -> Result<Verified, CorpusError> {
        let folder = data.join(FOLDER);
        let mut found = Verified::default();
        if !folder.exists() {
            return Ok(found);
        }
        let mut next = 1;
        for file in files_and_superseded(&folder)?.0 {
            if file.first != next {
                let gap = CorpusError::Gap { folder: folder.clone(), missing: next };
                found.damaged.push(gap.to_string());
            }
            next = file.last + 1;
            let opened = Batch::open(&file.path).and_then(|batch| {
                file.check(batch.meta())?;
                Ok(batch.meta().lists().len() as u64)
            });
            // If a file is missing, a concurrent compaction has replaced it.
            if opened.is_ok() || file.path.exists() {
                found.note(opened);
            }
        }
        for list in PopularityList::ALL {
            let path = ranked::path_in(&folder, list);
            if path.exists() {
                found.note(ranked::RankedList::open(&path).map(|_| 1));
            }
        }
        Ok(found)
    }

    /// Opens and verifies every batch, oldest first. A batch of an older scorer, or of a format
    /// without score features, is scored again and replaced first.
    ///
    /// # Errors
    /// A batch is missing, damaged or of a newer format.
    pub fn batches(&self) -> Result<Vec<Batch>, CorpusError> {
        self.files()?
            .iter()
            .map(|file| {
                let batch = Batch::open(&file.path)?;
                file.check(batch.meta())?;
                if batch.meta().scorer_version == SCORER_VERSION && batch.has_features() {
                    return Ok(batch);
                }
                self.rescore(&batch)?;
                Ok(Batch::open(&file.path)?)
            })
            .collect()
    }

    /// Returns the metadata of all lists, oldest first, without verifying the batches.
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

    /// Returns the number of lists and the checksum of each batch, oldest first, without verifying them.
    ///
    /// # Errors
    /// The errors of [`Corpus::metas`].
    pub fn checksums(&self) -> Result<Vec<(u64, blake3::Hash)>, CorpusError> {
        let read = |file: &BatchFile| {
            Ok((file.last - file.first + 1, batch::peek_checksum(&file.path, batch::MAGIC.len())?))
        };
        self.files()?.iter().map(read).collect()
    }

    /// Returns the files of all batches, oldest first. The lists of the batches are numbered from 1
    /// without gaps.
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

    /// Returns the files of batches, oldest first, and separately the files whose lists are also in
    /// another file.
    fn files_and_superseded(&self) -> Result<(Vec<BatchFile>, Vec<BatchFile>), CorpusError> {
        files_and_superseded(&self.folder)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("batch-{number:010}.ddb"))
    }

    /// Removes the temporary files of a killed ingest from the data folder `data`, unless an ingest is
    /// running.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn tidy(data: &Path) -> Result<(), CorpusError> {
        let folder = data.join(FOLDER);
        if !folder.exists() {
            return Ok(());
        }
        match FolderLock::take_now(&folder, LOCK) {
            Ok(lock) => Corpus::locked(folder, lock).map(drop),
            Err(LockError::Busy(_)) => Ok(()),
            Err(err) => Err(err.into()),
        }
    }

    fn remove_leftovers(&self) -> Result<(), CorpusError> {
        for entry in fs::read_dir(&self.folder).at(&self.folder)? {
            let entry = entry.at(&self.folder)?;
            let (name, path) = (entry.file_name(), entry.path());
            if name.to_string_lossy().starts_with(".sorting-") {
                fs::remove_dir_all(&path).at(&path)?;
            } else if name.to_string_lossy().starts_with(".new-") {
                fs::remove_file(&path).at(&path)?;
            }
        }
        self.finish_compaction()
    }

    /// Replaces a batch with one that has the scores of this scorer.
    fn rescore(&self, old: &Batch) -> Result<(), CorpusError> {
        tracing::info!(
            batch = %old.path().display(),
            from = old.meta().scorer_version,
            to = SCORER_VERSION,
            "scoring a batch with the new scorer"
        );
        let draft = self.folder.join(".new-rescored");
        let _unpublished = Unpublished(draft.clone());
        let is_compacted = old.is_compacted();
        let mut writer = batch::create(&draft)?;
        let mut cursor = old.cursor(b"")?;
        let (mut chunk, mut lists) = (Vec::new(), Vec::new());
        loop {
            chunk.clear();
            lists.clear();
            while chunk.len() < RESCORE_CHUNK
                && let Some(entry) = cursor.entry()
            {
                chunk.push(ScoredRow::unscored(stored_name(&entry, old)?, entry.record));
                lists.push(is_compacted.then_some(cursor.list()));
                cursor.advance()?;
            }
            if chunk.is_empty() {
                break;
            }
            let features = Features::score(&mut chunk);
            for (row, &list) in chunk.iter().zip(&lists) {
                writer.push(&features.entry(row), list).at(&draft)?;
            }
        }
        let meta = BatchMeta { scorer_version: SCORER_VERSION, ..old.meta().clone() };
        self.publish(writer.finish(&meta).at(&draft)?, &draft, old.path())
    }

    /// Syncs the finished `draft` and renames it to `path`.
    fn publish(
        &self,
        file: io::BufWriter<File>,
        draft: &Path,
        path: &Path,
    ) -> Result<(), CorpusError> {
        file.get_ref().sync_all().at(draft)?;
        fs::rename(draft, path).at(draft)?;
        self.sync()
    }

    /// Syncs the folder, so that file names are durable.
    fn sync(&self) -> Result<(), CorpusError> {
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        Ok(synced.at(&self.folder)?)
    }
}

/// A temporary file that is removed on drop unless it was renamed, so that it does not fill the
/// disk.
struct Unpublished(PathBuf);

impl Drop for Unpublished {
    fn drop(&mut self) {
        // This fails, as it should, if the file was renamed.
        let _ = fs::remove_file(&self.0);
    }
}

/// Parses the name of an entry in `batch`.
fn stored_name(entry: &Entry<'_>, batch: &Batch) -> Result<DomainName, BatchError> {
    DomainName::from_stored(entry.name, entry.label_len).ok_or_else(|| BatchError::Malformed {
        path: batch.path().to_owned(),
        offset: 0,
        what: "invalid name",
    })
}

/// The folder in the data folder.
const FOLDER: &str = "corpus";
/// The lock file in the corpus folder.
const LOCK: &str = "LOCK";
/// Rows per chunk when a batch is scored again.
const RESCORE_CHUNK: usize = 200_000;

/// See [`Corpus::files_and_superseded`].
fn files_and_superseded(folder: &Path) -> Result<(Vec<BatchFile>, Vec<BatchFile>), CorpusError> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).at(folder)? {
        all.extend(BatchFile::from_path(&entry.at(folder)?.path()));
    }
    // Among files that start with the same list, the one with the most lists comes first.
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

/// Result of [`Corpus::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Number of undamaged files and their lists.
    pub files: u64,
    pub lists: u64,
    /// Problems of damaged files, with remedies.
    pub damaged: Vec<String>,
}

impl Verified {
    fn note(&mut self, opened: Result<u64, BatchError>) {
        match opened {
            Ok(lists) => {
                self.files += 1;
                self.lists += lists;
            }
            Err(err) => self.damaged.push(err.to_string()),
        }
    }
}

/// The file of a batch, by its name: `batch-NUMBER.ddb`, or `batch-FIRST-LAST.ddb` for a compacted
/// batch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BatchFile {
    path: PathBuf,
    first: u64,
    last: u64,
}

impl BatchFile {
    /// Parses the file name; `None` for other files.
    fn from_path(path: &Path) -> Option<BatchFile> {
        let name = path.file_name()?.to_str()?;
        let digits = name.strip_prefix("batch-")?.strip_suffix(".ddb")?;
        let number = |digits: &str| (digits.len() == 10).then(|| digits.parse().ok()).flatten();
        let (first, last) = match digits.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(digits)?, number(digits)?),
        };
        (first <= last).then(|| BatchFile { path: path.to_owned(), first, last })
    }

    /// Checks that the batch holds as many lists as its file name states.
    fn check(&self, meta: &BatchMeta) -> Result<(), BatchError> {
        if meta.lists().len() as u64 == self.last - self.first + 1 {
            return Ok(());
        }
        let what = "the number of lists differs from the file name";
        Err(BatchError::Malformed { path: self.path.clone(), offset: 0, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::Sighting;
    use crate::scorer::{Scorer, Scratch};

    /// Returns every entry as text, without its score.
    fn entries(batch: &Batch) -> Vec<String> {
        let mut cursor = batch.cursor(b"").expect("a cursor");
        let mut entries = Vec::new();
        while let Some(entry) = cursor.entry() {
            let name = std::str::from_utf8(entry.name).expect("ASCII");
            let Entry { label_len, length, record, .. } = entry;
            entries.push(format!("{name} {label_len} {length} {record:?}"));
            cursor.advance().expect("an entry");
        }
        entries
    }

    /// A batch in the first format, with drops (one with a release day, one registered again, one an
    /// IDN), a registration, and names that are only known.
    fn version_1() -> Vec<u8> {
        let golden = include_str!("../../tests/golden/corpus-batch-v1.hex");
        hex::decode(golden.split_whitespace().collect::<String>()).expect("hex")
    }

    #[test]
    fn a_batch_without_score_features_is_scored_again_and_replaced() {
        let data = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(data.path()).expect("opens");
        let path = corpus.path(1);
        fs::write(&path, version_1()).expect("written");
        let before = Batch::open(&path).expect("version 1 is readable");
        assert!(!before.has_features());
        let expected = BatchMeta { scorer_version: SCORER_VERSION, ..before.meta().clone() };

        let batches = corpus.batches().expect("rewritten");
        let [after] = batches.as_slice() else { panic!("one batch") };
        assert!(after.has_features());
        assert_eq!((after.meta(), entries(after)), (&expected, entries(&before)));
        assert_eq!(entries(after).len(), 7);
        let mut cursor = after.cursor(b"").expect("a cursor");
        while let Some(entry) = cursor.entry() {
            let mut features = Vec::new();
            let name = stored_name(&entry, after).expect("a name");
            let base =
                Scorer::shared().base_with_features(&name, &mut Scratch::default(), &mut features);
            assert_eq!(entry.base, base, "{name}");
            let dropped = matches!(entry.record.sighting, Sighting::Dropped { .. });
            assert_eq!(entry.features, if dropped { features.as_slice() } else { &[] }, "{name}");
            assert_eq!(entry.features.is_empty(), !dropped, "{name}");
            cursor.advance().expect("an entry");
        }

        let written = fs::read(&path).expect("readable");
        corpus.batches().expect("opens");
        assert_eq!(fs::read(&path).expect("readable"), written, "the second open rewrites nothing");
    }
}
