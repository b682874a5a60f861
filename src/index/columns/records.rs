//! Data of dropped names that is not in a column, by doc: the label, the number of TLDs open to the
//! public with the label, and the features its score was computed from. A record is a header of two bytes, the
//! label and the features; records are concatenated, with an array of offsets. The TLD is a column
//! of [`crate::index::columns::drops_by_rank`].

use std::hint::black_box;

use crate::index::error::{BuildError, GenerationError};
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;

const STARTS: &str = "records.starts";
const BYTES: &str = "records.bytes";
/// Header: spread and label length in bytes.
const HEADER: usize = 2;

/// Records of all dropped names, by doc.
#[derive(Debug)]
pub struct ScoreRecords {
    /// Start of each record, and the end of the last.
    starts: Vec<u32>,
    bytes: Vec<u8>,
}

/// Record of a dropped name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreRecord<'a> {
    /// Label, in A-label form.
    pub label: &'a str,
    /// Number of TLDs open to the public with the label; 255 means 255 or more.
    pub spread: u8,
    /// Input of the score, for the scorer to read.
    pub features: &'a [u8],
}

/// Record to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// At most 63 bytes, ASCII.
    pub label: &'a [u8],
    pub spread: u8,
    pub features: &'a [u8],
}

impl NewRecord<'_> {
    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        HEADER + self.label.len() + self.features.len()
    }
}

impl Default for ScoreRecords {
    fn default() -> ScoreRecords {
        ScoreRecords { starts: vec![0], bytes: Vec::new() }
    }
}

impl ScoreRecords {
    /// Allocates records of these sizes.
    ///
    /// # Errors
    /// The records exceed 4 GiB.
    pub fn with_lens(lens: &[u32]) -> Result<ScoreRecords, BuildError> {
        let mut starts = Vec::with_capacity(lens.len() + 1);
        let mut end = 0u32;
        starts.push(end);
        for &len in lens {
            end = end.checked_add(len).ok_or_else(too_many)?;
            starts.push(end);
        }
        Ok(ScoreRecords { starts, bytes: vec![0; end as usize] })
    }

    /// Writes the record at a place; it must have the size given before.
    pub fn set(&mut self, place: usize, parts: &NewRecord<'_>) {
        let range = self.starts[place] as usize..self.starts[place + 1] as usize;
        let (header, text) = self.bytes[range].split_at_mut(HEADER);
        header.copy_from_slice(&[parts.spread, parts.label.len() as u8]);
        let (label, features) = text.split_at_mut(parts.label.len());
        label.copy_from_slice(parts.label);
        features.copy_from_slice(parts.features);
    }

    /// Appends records.
    ///
    /// # Errors
    /// More bytes than can be numbered.
    pub fn append(&mut self, more: ScoreRecords) -> Result<(), BuildError> {
        let before = self.bytes.len();
        u32::try_from(before + more.bytes.len()).map_err(|_| too_many())?;
        if before == 0 {
            *self = more;
            return Ok(());
        }
        self.starts.extend(more.starts[1..].iter().map(|start| start + before as u32));
        self.bytes.extend_from_slice(&more.bytes);
        Ok(())
    }

    /// Writes the files.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        draft.put(STARTS, &self.starts)?;
        draft.put(BYTES, &self.bytes)
    }

    /// Opens the records of `docs` dropped names.
    ///
    /// # Errors
    /// A file is damaged, or of another number of records.
    pub fn open(files: &Files, docs: u32) -> Result<ScoreRecords, GenerationError> {
        let starts: Vec<u32> = files.take(STARTS)?;
        let bytes: Vec<u8> = files.take(BYTES)?;
        let fits = starts.len() == docs as usize + 1
            && starts.is_sorted()
            && starts.last().is_some_and(|&end| end as usize == bytes.len())
            && bytes.is_empty() == (docs == 0);
        files.check(fits, STARTS)?;
        Ok(ScoreRecords { starts, bytes })
    }

    /// Returns the number of entries.
    pub fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Returns the record of a doc.
    #[inline]
    pub fn get(&self, doc: u32) -> ScoreRecord<'_> {
        let at = doc as usize;
        let bytes = &self.bytes[self.starts[at] as usize..self.starts[at + 1] as usize];
        let (label, features) = bytes[HEADER..].split_at(usize::from(bytes[1]));
        let label = std::str::from_utf8(label).expect("labels are ASCII when they are written");
        ScoreRecord { label, spread: bytes[0], features }
    }

    /// Loads the memory of several records in parallel, instead of waiting for each cache miss.
    pub fn prefetch(&self, docs: &[u32]) {
        let first = |&doc: &u32| self.bytes[self.starts[doc as usize] as usize + 1];
        black_box(docs.iter().map(first).fold(0, u8::wrapping_add));
    }

    /// Returns the label of a doc: all that a text search reads.
    #[inline]
    pub fn label(&self, doc: u32) -> &[u8] {
        let start = self.starts[doc as usize] as usize;
        let text = &self.bytes[start + HEADER..];
        &text[..usize::from(self.bytes[start + 1])]
    }
}

fn too_many() -> BuildError {
    BuildError::TooMany { what: "bytes of dropped names", limit: u32::MAX.into() }
}
