//! The facts of one account: an edition of each source, in the form of `dropdex-facts`, and how the columns of
//! files are to be read. This module keeps bytes and does not read them.

use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::data::fields::row;
use crate::vocab::time::UnixMs;

/// Bytes of a part, which fits in a record and in an item of a snapshot.
pub const PART_BYTES: usize = 200 << 10;
/// Approximate size in memory of a source without its bytes, and of a mapping without its texts.
const SOURCE_BYTES: u64 = 256;
const MAPPING_BYTES: u64 = 128;

/// Bytes of an edition. Written for people, it is their number.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Part(pub Vec<u8>);

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(&format_args!("({} bytes)", self.0.len())),
            false => serializer.serialize_bytes(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Part, E> {
                Ok(Part(bytes))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Part, E> {
                Ok(Part(bytes.to_vec()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Part, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = items.next_element()? {
                    bytes.push(byte);
                }
                Ok(Part(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// The newest edition of a source, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactsRow {
    /// Name of the source.
    pub source: CompactString,
    pub added_at: UnixMs,
    /// Number of rows.
    pub rows: u64,
    /// Number of rows of each member of the report of the last file: rows, new or replaced, refused.
    pub file_rows: u64,
    pub from_file: u64,
    pub refused: u64,
}

row!(FactsRow { 1 source, 2 added_at, 3 rows } optional { 4 file_rows, 5 from_file, 6 refused });

/// The newest edition of a source.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnFacts {
    pub row: FactsRow,
    pub bytes: Arc<[u8]>,
}

impl fmt::Debug for OwnFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnFacts")
            .field("row", &self.row)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

impl OwnFacts {
    fn new(row: FactsRow, bytes: Vec<u8>) -> OwnFacts {
        OwnFacts { row, bytes: bytes.into() }
    }

    fn size(&self) -> u64 {
        SOURCE_BYTES + self.row.source.len() as u64 + self.bytes.len() as u64
    }
}

/// All facts of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// In order of their names.
    sources: Vec<Arc<OwnFacts>>,
    /// Parts of an edition that is being added.
    pending: Vec<u8>,
    /// Number of these parts.
    parts: u32,
    /// How files are to be read, by the fingerprint of their header, in order.
    mappings: Vec<(CompactString, CompactString)>,
}

impl Facts {
    /// Returns the approximate size in memory.
    pub fn bytes(&self) -> u64 {
        let sources: u64 = self.sources.iter().map(|source| source.size()).sum();
        let mappings = self.mappings.iter();
        let mappings: u64 =
            mappings.map(|(print, text)| MAPPING_BYTES + (print.len() + text.len()) as u64).sum();
        sources + self.pending.len() as u64 + mappings
    }

    /// Returns the sources in order of their names.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = &Arc<OwnFacts>> {
        self.sources.iter()
    }

    pub fn source(&self, name: &str) -> Option<&Arc<OwnFacts>> {
        self.sources.iter().find(|it| it.row.source == name)
    }

    /// Returns the fingerprints of files and how they are to be read.
    pub fn mappings(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.mappings.iter().map(|(print, mapping)| (print.as_str(), mapping.as_str()))
    }

    /// Returns the number of parts that wait, and their bytes.
    pub fn pending(&self) -> (u32, usize) {
        (self.parts, self.pending.len())
    }

    /// Adds a part of an edition; the first one replaces those that wait.
    pub fn add_part(&mut self, number: u32, part: &Part) {
        if number == 0 {
            self.pending.clear();
        }
        self.pending.extend(&part.0);
        self.parts = number + 1;
    }

    /// Makes the parts that wait the edition of a source.
    pub fn put(&mut self, row: FactsRow) {
        self.parts = 0;
        let new = Arc::new(OwnFacts::new(row, std::mem::take(&mut self.pending)));
        match self.sources.binary_search_by(|it| it.row.source.cmp(&new.row.source)) {
            Ok(at) => self.sources[at] = new,
            Err(at) => self.sources.insert(at, new),
        }
    }

    pub fn remove(&mut self, source: &str) {
        self.sources.retain(|it| it.row.source != source);
    }

    /// Sets or removes how files with a fingerprint are to be read.
    pub fn map(&mut self, print: CompactString, mapping: Option<CompactString>) {
        let found = self.mappings.binary_search_by(|(known, _)| known.cmp(&print));
        match (found, mapping) {
            (Ok(at), Some(mapping)) => self.mappings[at].1 = mapping,
            (Ok(at), None) => drop(self.mappings.remove(at)),
            (Err(at), Some(mapping)) => self.mappings.insert(at, (print, mapping)),
            (Err(_), None) => {}
        }
    }

    /// Returns the parts of bytes, in order.
    pub fn parts(bytes: &[u8]) -> impl Iterator<Item = Part> {
        bytes.chunks(PART_BYTES).map(|part| Part(part.to_vec()))
    }

    /// Returns the parts that wait, as one.
    pub fn waiting(&self) -> Option<(u32, &[u8])> {
        (self.parts > 0).then_some((self.parts, &self.pending))
    }

    /// Sets the number of parts that wait.
    pub fn set_parts(&mut self, parts: u32) {
        self.parts = parts;
    }
}
