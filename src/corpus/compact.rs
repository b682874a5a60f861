//! Compaction: merges many batches into one with the same content. The compacted batch holds every entry
//! of every list in merge order, each with the position of its list, and the metadata of the lists. A
//! list keeps its hash and its number, and the first list to report a drop stays the first.
//!
//! The new batch is written to a temporary file, synced and read back, then renamed to
//! `batch-FIRST-LAST.ddb`; only then are the old ones removed. If a crash leaves both, the next open
//! verifies the new batch and removes the old ones, or removes the new one if it is damaged.

use std::fs;
use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::batch::{self, Batch, BatchError, BatchMeta};
use crate::merge::Merge;
use crate::scorer::SCORER_VERSION;
use crate::vocab::file_error::AtPath;
use crate::{BatchFile, Corpus, CorpusError, Unpublished};

/// The temporary file of a compacted batch.
const DRAFT: &str = ".new-compacted";

impl Corpus {
    /// Compacts `batches`, the result of [`Corpus::batches`], except the newest `apart` of them.
    /// Returns false if there is nothing to merge.
    ///
    /// # Errors
    /// An I/O error, or a batch that does not decode. In both cases, nothing has changed on disk.
    pub fn compact(&self, batches: &[Batch], apart: usize) -> Result<bool, CorpusError> {
        let batches = &batches[..batches.len().saturating_sub(apart)];
        if batches.len() < 2 {
            return Ok(false);
        }
        let lists: Vec<BatchMeta> = batches.iter().flat_map(Batch::lists).cloned().collect();
        let place = self.range_path(1, lists.len() as u64);
        let _unpublished = Unpublished(self.folder.join(DRAFT));
        let draft = self.write_one(batches, lists)?;
        fs::rename(&draft, &place).at(&draft)?;
        self.sync()?;
        tracing::info!(batch = %place.display(), of = batches.len(), "compacted batches");
        self.finish_compaction()?;
        Ok(true)
    }

    /// Writes the compacted batch to a temporary file and reads it back.
    fn write_one(&self, batches: &[Batch], lists: Vec<BatchMeta>) -> Result<PathBuf, CorpusError> {
        let draft = self.folder.join(DRAFT);
        let mut writer = batch::create(&draft)?;
        let mut merge = Merge::new(batches, b"")?;
        while let Some(entry) = merge.peek() {
            writer.push(&entry, Some(merge.number() - 1)).at(&draft)?;
            merge.advance()?;
        }
        let (rows, names) = writer.counts();
        let file = writer.finish(&meta_of(lists, rows, names)).at(&draft)?;
        file.get_ref().sync_all().at(&draft)?;
        let written = Batch::open(&draft)?;
        let wanted: u64 = batches.iter().map(|batch| batch.meta().rows).sum();
        if written.meta().rows + merge.skipped() != wanted {
            let what = "entries are missing";
            return Err(BatchError::Malformed { path: draft, offset: 0, what }.into());
        }
        Ok(draft)
    }

    /// Removes batches whose lists are all in a compacted batch.
    pub(super) fn finish_compaction(&self) -> Result<(), CorpusError> {
        let (files, superseded) = self.files_and_superseded()?;
        if superseded.is_empty() {
            return Ok(());
        }
        for file in files {
            let inside =
                superseded.iter().filter(|old| file.first <= old.first && old.last <= file.last);
            let inside: Vec<&BatchFile> = inside.collect();
            if inside.is_empty() {
                continue;
            }
            match Batch::open(&file.path) {
                Ok(_) => {
                    for old in inside {
                        fs::remove_file(&old.path).at(&old.path)?;
                    }
                }
                Err(err) if covers(&inside, &file) => {
                    tracing::warn!(error = %err, "a compacted batch is damaged; the batches it was made of are kept");
                    fs::remove_file(&file.path).at(&file.path)?;
                }
                Err(err) => return Err(err.into()),
            }
        }
        self.sync()
    }

    fn range_path(&self, first: u64, last: u64) -> PathBuf {
        self.folder.join(format!("batch-{first:010}-{last:010}.ddb"))
    }
}

/// Whether `parts`, which are sorted, contain all lists of `whole`.
fn covers(parts: &[&BatchFile], whole: &BatchFile) -> bool {
    let next = parts.iter().fold(whole.first, |next, part| {
        if part.first <= next { next.max(part.last + 1) } else { next }
    });
    next > whole.last
}

fn meta_of(lists: Vec<BatchMeta>, rows: u64, names: u64) -> BatchMeta {
    let newest =
        |time: fn(&BatchMeta) -> DateTime<Utc>| lists.iter().map(time).max().unwrap_or_default();
    BatchMeta {
        source: format!("{} lists", lists.len()),
        format: "lists".to_owned(),
        observed_at: newest(|list| list.observed_at),
        ingested_at: newest(|list| list.ingested_at),
        accepted: lists.iter().map(|list| list.accepted).sum(),
        rejected: lists.iter().map(|list| list.rejected).sum(),
        rows,
        names,
        scorer_version: SCORER_VERSION,
        lists,
        ..BatchMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::{Observation, Row, Sighting};
    use crate::ingest::Source;
    use crate::vocab::name::DomainName;
    use std::path::Path;

    /// Ingests a list of names that depend on its number; every third list reports registrations.
    fn ingest(corpus: &Corpus, number: i64) {
        let at = DateTime::from_timestamp(1_790_000_000 + number * 86_400, 0).expect("a time");
        let source = Source {
            name: format!("list-{number}.csv"),
            sha256: *blake3::hash(&number.to_le_bytes()).as_bytes(),
            format: "test".to_owned(),
            observed_at: at,
            ingested_at: at,
            origin: None,
            day: None,
            replaces: Vec::new(),
            zone: None,
        };
        let date = "2026-10-03".parse().expect("a date");
        let rows = (0..40).filter(|name| (name + number) % 3 != 0).map(|name| {
            let sighting = if number % 3 == 2 {
                Sighting::Known { registered: name % 2 == 0 }
            } else {
                Sighting::Dropped { date, release: None, registered_again: name % 7 == 0 }
            };
            let name = DomainName::parse(&format!("name{name}.com")).expect("a name");
            Ok(Row::Seen(Observation { name, sighting, first_seen: None, observed_at: at }))
        });
        corpus.ingest(&source, rows).expect("ingested");
    }

    /// Returns the full result of a merge: entries with the numbers of their lists, and the lists.
    fn content(corpus: &Corpus) -> (Vec<String>, Vec<BatchMeta>) {
        let batches = corpus.batches().expect("sound");
        let mut merge = Merge::new(&batches, b"").expect("opens");
        let mut entries = Vec::new();
        while let Some(entry) = merge.peek() {
            entries.push(format!("{} {entry:?}", merge.number()));
            merge.advance().expect("decodes");
        }
        (entries, corpus.metas().expect("readable"))
    }

    fn files(corpus: &Corpus) -> Vec<String> {
        let name = |path: &Path| path.file_name().expect("one").to_string_lossy().into_owned();
        let entries = fs::read_dir(&corpus.folder).expect("readable");
        let mut names: Vec<String> =
            entries.map(|entry| name(&entry.expect("one").path())).collect();
        names.retain(|name| name.starts_with("batch-") || name.starts_with('.'));
        names.sort();
        names
    }

    fn corpus_of(lists: i64) -> (tempfile::TempDir, Corpus) {
        let data = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(data.path()).expect("opens");
        (1..=lists).for_each(|number| ingest(&corpus, number));
        (data, corpus)
    }

    #[test]
    fn a_compacted_batch_has_the_content_of_its_parts() {
        let (_data, corpus) = corpus_of(9);
        let before = content(&corpus);
        assert!(corpus.compact(&corpus.batches().expect("sound"), 2).expect("compacted"));
        let whole = "batch-0000000001-0000000007.ddb";
        assert_eq!(files(&corpus), [whole, "batch-0000000008.ddb", "batch-0000000009.ddb"]);
        assert_eq!(content(&corpus), before);
        // Numbers continue, and a compacted list can still be found by its hash.
        ingest(&corpus, 10);
        assert_eq!(files(&corpus).len(), 4);
        let sha256 = *blake3::hash(&3_i64.to_le_bytes()).as_bytes();
        let (number, found) = corpus.find(&sha256).expect("readable").pop().expect("known");
        assert_eq!((number, found.source.as_str()), (3, "list-3.csv"));
        // A compacted batch is compacted again.
        let before = content(&corpus);
        assert!(corpus.compact(&corpus.batches().expect("sound"), 0).expect("compacted"));
        assert_eq!(files(&corpus), ["batch-0000000001-0000000010.ddb"]);
        assert_eq!(content(&corpus), before);
        assert!(!corpus.compact(&corpus.batches().expect("sound"), 0).expect("nothing to do"));
    }

    #[test]
    fn a_crash_at_any_step_loses_nothing() {
        let (data, corpus) = corpus_of(6);
        let before = content(&corpus);
        let old: Vec<(PathBuf, Vec<u8>)> = (1..=6)
            .map(|number| (corpus.path(number), fs::read(corpus.path(number)).expect("readable")))
            .collect();
        assert!(corpus.compact(&corpus.batches().expect("sound"), 0).expect("compacted"));
        let one = corpus.range_path(1, 6);
        let bytes = fs::read(&one).expect("readable");
        drop(corpus);
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        let state = |one_bytes: Option<&[u8]>, draft: bool, left: &[usize]| {
            let corpus = data.path().join("corpus");
            let _ = fs::remove_file(&one);
            old.iter().for_each(|(path, _)| {
                let _ = fs::remove_file(path);
            });
            if let Some(bytes) = one_bytes {
                fs::write(&one, bytes).expect("written");
            }
            if draft {
                fs::write(corpus.join(DRAFT), &bytes[..bytes.len() / 3]).expect("written");
            }
            for &at in left {
                fs::write(&old[at].0, &old[at].1).expect("written");
            }
            Corpus::open(data.path())
        };
        let all: &[usize] = &[0, 1, 2, 3, 4, 5];
        // Covers crashes while writing, after the rename and after some removals, and a damaged
        // compacted batch with all its parts present.
        for (one, draft, left) in [
            (None, true, all),
            (Some(&bytes[..]), false, all),
            (Some(&bytes[..]), false, &[2, 5]),
            (Some(&bytes[..]), true, &[0]),
            (Some(&damaged[..]), false, all),
        ] {
            let corpus = state(one, draft, left).expect("opens");
            assert_eq!(content(&corpus), before);
            let files = files(&corpus);
            assert!(files.len() == 1 || files.len() == 6, "{files:?}");
        }
        // Lost lists are an error.
        assert!(state(Some(&damaged[..]), false, &[1, 2]).is_err());
        let corpus = state(Some(&damaged[..]), false, &[]).expect("batches are not read yet");
        assert!(corpus.batches().is_err());
        drop(corpus);
        let corpus = state(None, false, &[0, 1, 3]).expect("batches are not read yet");
        assert!(matches!(corpus.batches(), Err(CorpusError::Gap { missing: 3, .. })));
    }

    #[test]
    fn a_wrong_file_name_is_refused() {
        let (_data, corpus) = corpus_of(3);
        corpus.compact(&corpus.batches().expect("sound"), 0).expect("compacted");
        fs::rename(corpus.range_path(1, 3), corpus.range_path(1, 4)).expect("renamed");
        assert!(corpus.batches().is_err() && corpus.metas().is_err());
    }

    #[test]
    fn the_format_of_compacted_batches_is_unchanged() {
        let (_data, corpus) = corpus_of(5);
        let expected = content(&corpus);
        let golden = include_str!("../../tests/golden/corpus-batch-v3.hex");
        let bytes = hex::decode(golden.split_whitespace().collect::<String>()).expect("hex");
        (1..=5).for_each(|number| fs::remove_file(corpus.path(number)).expect("removed"));
        fs::write(corpus.range_path(1, 5), bytes).expect("written");
        assert_eq!(without_scores(content(&corpus)), without_scores(expected));
    }

    /// Returns entries and metadata without the parts that depend on the scorer's version.
    fn without_scores(content: (Vec<String>, Vec<BatchMeta>)) -> (Vec<String>, Vec<BatchMeta>) {
        let (mut entries, mut metas) = content;
        for entry in &mut entries {
            let (from, to) = (entry.find(" base: "), entry.find(", record: "));
            entry.replace_range(from.expect("a base")..to.expect("a record"), "");
        }
        metas.iter_mut().for_each(|meta| meta.scorer_version = 0);
        (entries, metas)
    }
}
