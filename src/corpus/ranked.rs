//! Popularity lists: the newest of each kind, in its own file beside the batches. Such a list ranks names
//! and contains no drops. A rebuild joins the lists with the names that dropped; scores do not use them.
//!
//! ```text
//! magic "DDXRANKS"  version u16
//! meta              length u32, JSON: kind of list, origin, counts
//! entries           in name order: name length u8, name, rank u32
//! BLAKE3 of all bytes before it
//! ```
//! Integers are little-endian. A file is read only after its checksum is verified.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::batch::{self, BatchError};
use crate::feeds::{FeedError, RankedName, Row};
use crate::ingest::{IngestError, Ingested, RowTally, Source};
use crate::vocab::file_error::AtPath;
use crate::vocab::new_file;
use crate::vocab::origin::Origin;
use crate::vocab::popularity::{ListEdition, ListRank, PopularityList};
use crate::{Corpus, CorpusError, Unpublished};

const MAGIC: &[u8; 8] = b"DDXRANKS";
/// Incremented when the layout changes.
const VERSION: u16 = 1;
const HEADER_LEN: usize = MAGIC.len() + 2 + 4;
/// The temporary file of a new list.
const DRAFT: &str = ".new-ranks";

/// Origin and content of a popularity list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankedMeta {
    #[serde(flatten)]
    pub edition: ListEdition,
    /// File name without folders.
    pub source: String,
    /// SHA-256 of the list as stored, in hex: its identity.
    pub source_sha256: String,
    pub observed_at: DateTime<Utc>,
    pub ingested_at: DateTime<Utc>,
    pub accepted: u64,
    pub rejected: u64,
    /// Number of distinct names.
    pub names: u64,
    /// Where the list was fetched from; `None` for a local file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// A popularity list in memory, its checksum verified.
#[derive(Debug)]
pub struct RankedList {
    meta: RankedMeta,
    bytes: Vec<u8>,
    /// Offset of each entry.
    starts: Vec<u32>,
    checksum: blake3::Hash,
}

/// A name of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedEntry<'a> {
    /// Canonical name.
    pub name: &'a [u8],
    pub rank: ListRank,
}

impl RankedList {
    /// Reads and verifies the file.
    ///
    /// # Errors
    /// The file is not readable, not a popularity list, of a newer format, or damaged.
    pub fn open(path: &Path) -> Result<RankedList, BatchError> {
        let bytes = fs::read(path).at(path)?;
        let (meta, start) = read_head(path, &bytes[..])?;
        let end = bytes.len().saturating_sub(blake3::OUT_LEN);
        let (checksum, expected) = (blake3::hash(&bytes[..end]), &bytes[end..]);
        if checksum.as_bytes() != expected {
            return Err(BatchError::Checksum {
                path: path.to_owned(),
                found: checksum.to_hex().to_string(),
                expected: hex::encode(expected),
            });
        }
        let mut starts = Vec::new();
        let (mut at, mut before): (usize, &[u8]) = (start, b"");
        while at < end {
            let found = entry(&bytes[..end], at).filter(|found| found.name > before);
            let malformed =
                || BatchError::Malformed { path: path.to_owned(), offset: at, what: "entry" };
            before = found.ok_or_else(malformed)?.name;
            starts.push(at as u32);
            at += 1 + before.len() + 4;
        }
        Ok(RankedList { meta, bytes, starts, checksum })
    }

    pub fn meta(&self) -> &RankedMeta {
        &self.meta
    }

    /// The checksum stored in the file.
    pub fn checksum(&self) -> &[u8] {
        self.checksum.as_bytes()
    }

    /// Returns the entries whose names are `from` or later, in name order.
    pub fn entries_from<'a>(
        &'a self,
        from: &[u8],
    ) -> impl Iterator<Item = RankedEntry<'a>> + use<'a> {
        let read = move |&start: &u32| {
            entry(&self.bytes, start as usize).expect("it was read when the file was opened")
        };
        let first = self.starts.partition_point(|start| read(start).name < from);
        self.starts[first..].iter().map(read)
    }
}

/// Reads the entry at this offset.
fn entry(bytes: &[u8], at: usize) -> Option<RankedEntry<'_>> {
    let (&len, rest) = bytes.get(at..)?.split_first()?;
    let (name, rest) = rest.split_at_checked(len.into())?;
    let rank = u32::from_le_bytes(*rest.first_chunk()?);
    Some(RankedEntry { name, rank: ListRank::new(rank)? })
}

impl Corpus {
    /// Reads and verifies the newest list of each kind.
    ///
    /// # Errors
    /// A file is damaged or of a newer format.
    pub fn ranked_lists(&self) -> Result<Vec<RankedList>, CorpusError> {
        self.ranked_paths().map(|path| Ok(RankedList::open(&path)?)).collect()
    }

    /// Reads the metadata of the newest list of each kind, without verifying it.
    ///
    /// # Errors
    /// A file is unreadable or of a newer format.
    pub fn ranked_metas(&self) -> Result<Vec<RankedMeta>, CorpusError> {
        let read = |path: PathBuf| Ok(read_head(&path, File::open(&path).at(&path)?)?.0);
        self.ranked_paths().map(read).collect()
    }

    /// Returns the checksums of the popularity lists, without verifying them.
    ///
    /// # Errors
    /// The errors of [`Corpus::ranked_metas`].
    pub fn ranked_checksums(&self) -> Result<Vec<blake3::Hash>, CorpusError> {
        self.ranked_paths().map(|path| Ok(batch::peek_checksum(&path, 0)?)).collect()
    }

    /// Replaces the list of its kind with this one, atomically. Rejected rows are written as by
    /// [`Corpus::ingest`].
    ///
    /// # Errors
    /// The errors of [`Corpus::ingest`].
    pub fn ingest_ranked(
        &self,
        source: &Source,
        edition: ListEdition,
        rows: impl Iterator<Item = Result<Row<RankedName>, FeedError>>,
    ) -> Result<Ingested, IngestError> {
        let mut tally = RowTally::new(self, source)?;
        let mut ranked = Vec::new();
        for row in rows {
            ranked.extend(tally.take(row?)?);
        }
        tally.check()?;
        // The best rank of each name comes first.
        ranked.sort_unstable();
        ranked.dedup_by(|later, first| later.name == first.name);
        let path = self.ranked_path(edition.list);
        let meta = RankedMeta {
            edition,
            source: source.name.clone(),
            source_sha256: hex::encode(source.sha256),
            observed_at: source.observed_at,
            ingested_at: source.ingested_at,
            accepted: tally.accepted(),
            rejected: tally.rejected(),
            names: ranked.len() as u64,
            origin: source.origin.clone(),
        };
        let draft = self.folder.join(DRAFT);
        let _unpublished = Unpublished(draft.clone());
        let file = write(&draft, &meta, &ranked).at(&draft)?;
        self.publish(file, &draft, &path)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(tally.finish(meta.names, file))
    }

    fn ranked_path(&self, list: PopularityList) -> PathBuf {
        path_in(&self.folder, list)
    }

    fn ranked_paths(&self) -> impl Iterator<Item = PathBuf> {
        let paths = PopularityList::ALL.into_iter().map(move |list| self.ranked_path(list));
        paths.filter(|path| path.exists())
    }
}

/// Returns the path of the newest list of a kind.
pub(super) fn path_in(folder: &Path, list: PopularityList) -> PathBuf {
    folder.join(format!("ranks-{list}.ddr"))
}

fn write(path: &Path, meta: &RankedMeta, ranked: &[RankedName]) -> io::Result<BufWriter<File>> {
    let meta = serde_json::to_vec(meta).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(HEADER_LEN + meta.len() + 32 * ranked.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(meta.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&meta);
    for RankedName { name, rank } in ranked {
        bytes.push(name.as_str().len() as u8);
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(&rank.get().to_le_bytes());
    }
    let checksum = blake3::hash(&bytes);
    let mut file = BufWriter::new(new_file::create_new(path)?);
    file.write_all(&bytes)?;
    file.write_all(checksum.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Reads the head of a file: its metadata, and the offset of its entries.
fn read_head(path: &Path, mut file: impl Read) -> Result<(RankedMeta, usize), BatchError> {
    let foreign = |found: &str| BatchError::Foreign { path: path.to_owned(), found: found.into() };
    let mut head = [0; HEADER_LEN];
    file.read_exact(&mut head).map_err(|_| foreign("too short"))?;
    let [magic @ .., v0, v1, l0, l1, l2, l3] = head;
    if magic != *MAGIC {
        return Err(foreign("no magic at the start"));
    }
    if u16::from_le_bytes([v0, v1]) != VERSION {
        return Err(foreign("another version; use a newer dropdex"));
    }
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    let mut meta = Vec::new();
    file.take(len.into()).read_to_end(&mut meta).at(path)?;
    let meta = serde_json::from_slice(&meta).map_err(|_| foreign("its head is damaged"))?;
    Ok((meta, HEADER_LEN + len as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::name::DomainName;
    use crate::vocab::popularity::ListId;

    fn ingest(corpus: &Corpus, day: &str, rows: &[(u32, &str)]) -> Ingested {
        let source = Source {
            name: format!("tranco_XJNYN_{day}.csv"),
            sha256: *blake3::hash(day.as_bytes()).as_bytes(),
            format: "ranked".to_owned(),
            observed_at: DateTime::UNIX_EPOCH,
            ingested_at: DateTime::UNIX_EPOCH,
            origin: None,
            day: None,
            replaces: Vec::new(),
            zone: None,
        };
        let edition = ListEdition {
            list: PopularityList::Tranco,
            id: ListId::parse("XJNYN"),
            day: day.parse().expect("a day"),
        };
        let rows = rows.iter().map(|&(rank, name)| {
            let rank = ListRank::new(rank).expect("in range");
            let name = DomainName::parse(name).expect("a name");
            Ok(Row::Seen(RankedName { name, rank }))
        });
        corpus.ingest_ranked(&source, edition, rows).expect("ingested")
    }

    fn content(list: &RankedList) -> Vec<(String, u32)> {
        let entries = list.entries_from(b"");
        let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        entries.map(|entry| (name(entry.name), entry.rank.get())).collect()
    }

    #[test]
    fn a_list_replaces_the_one_before_with_the_best_rank_of_each_name() {
        let data = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(data.path()).expect("opens");
        assert!(corpus.ranked_lists().expect("none").is_empty());
        ingest(&corpus, "2026-11-21", &[(1, "gone.com"), (2, "kept.com")]);
        let ingested =
            ingest(&corpus, "2026-11-22", &[(9, "kept.com"), (4, "b.de"), (3, "kept.com")]);
        assert_eq!((ingested.accepted, ingested.names), (3, 2));
        assert_eq!(ingested.batch, "ranks-tranco.ddr");
        let lists = corpus.ranked_lists().expect("sound");
        let [list] = lists.as_slice() else { panic!("one list") };
        assert_eq!(content(list), [("b.de".to_owned(), 4), ("kept.com".to_owned(), 3)]);
        assert_eq!(list.entries_from(b"c").count(), 1);
        assert_eq!(corpus.ranked_metas().expect("readable"), [list.meta().clone()]);
        assert_eq!(list.meta().edition.day.to_string(), "2026-11-22");
        assert!(corpus.metas().expect("readable").is_empty(), "it is not a batch");
    }

    #[test]
    fn damage_is_found_wherever_it_is() {
        let data = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(data.path()).expect("opens");
        ingest(&corpus, "2026-11-21", &[(1, "a.com"), (2, "b.com")]);
        let path = corpus.ranked_path(PopularityList::Tranco);
        let whole = fs::read(&path).expect("readable");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).expect("writable");
            assert!(RankedList::open(&path).is_err(), "byte {at}");
            fs::write(&path, &whole[..at]).expect("writable");
            assert!(RankedList::open(&path).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn the_format_is_unchanged() {
        let golden = include_str!("../../tests/golden/corpus-ranks-v1.hex");
        let bytes = hex::decode(golden.split_whitespace().collect::<String>()).expect("hex");
        let data = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(data.path()).expect("opens");
        ingest(&corpus, "2026-11-21", &[(7, "münchen.de"), (1_000_000, "b.co.uk"), (1, "a.com")]);
        let path = corpus.ranked_path(PopularityList::Tranco);
        assert_eq!(hex::encode(fs::read(&path).expect("readable")), hex::encode(bytes));
    }
}
