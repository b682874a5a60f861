//! What is shown of a dropped name and stands in no column, by doc: its label, in how many TLDs
//! the label stands, and the features its score was made from. A record is a header of two bytes,
//! the label and the features; records stand end to end, behind one offset each. The TLD is a
//! column of [`crate::index::columns::drops_by_rank`]; the score is made by the scorer.

use std::hint::black_box;

use crate::index::error::{BuildError, GenerationError};
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;

const STARTS: &str = "records.starts";
const BYTES: &str = "records.bytes";
/// Spread, and octets of the label.
const HEADER: usize = 2;

/// The records of all dropped names, by doc.
#[derive(Debug)]
pub struct ScoreRecords {
    /// Where each record starts, and the end of the last.
    starts: Vec<u32>,
    bytes: Vec<u8>,
}

/// One dropped name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreRecord<'a> {
    /// The registrable label, as an A-label where it is an IDN.
    pub label: &'a str,
    /// TLDs with the label; 255 stands for 255 and more.
    pub spread: u8,
    /// What the score was made from, for the scorer to read.
    pub features: &'a [u8],
}

/// A record before it is written.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// At most 63 octets, ASCII.
    pub label: &'a [u8],
    pub spread: u8,
    pub features: &'a [u8],
}

/// ScoreRecords while they are gathered, by doc.
#[derive(Debug)]
pub struct RecordBuffer {
    starts: Vec<u32>,
    bytes: Vec<u8>,
}

impl NewRecord<'_> {
    /// Bytes it takes.
    #[expect(clippy::len_without_is_empty, reason = "none is empty: a header is always there")]
    pub fn len(&self) -> usize {
        HEADER + self.label.len() + self.features.len()
    }
}

impl Default for RecordBuffer {
    fn default() -> RecordBuffer {
        RecordBuffer { starts: vec![0], bytes: Vec::new() }
    }
}

impl RecordBuffer {
    /// Room for records of these lengths.
    ///
    /// # Errors
    /// More bytes than can be numbered.
    pub fn with_lens(lens: &[u32]) -> Result<RecordBuffer, BuildError> {
        let mut starts = Vec::with_capacity(lens.len() + 1);
        let mut end = 0u32;
        starts.push(end);
        for &len in lens {
            end = end.checked_add(len).ok_or_else(too_many)?;
            starts.push(end);
        }
        Ok(RecordBuffer { starts, bytes: vec![0; end as usize] })
    }

    /// Fills the room of the record at a place; its length is the one that was told.
    pub fn set(&mut self, place: usize, parts: &NewRecord<'_>) {
        let range = self.starts[place] as usize..self.starts[place + 1] as usize;
        let (header, text) = self.bytes[range].split_at_mut(HEADER);
        header.copy_from_slice(&[parts.spread, parts.label.len() as u8]);
        let (label, features) = text.split_at_mut(parts.label.len());
        label.copy_from_slice(parts.label);
        features.copy_from_slice(parts.features);
    }

    /// Puts more records behind these.
    ///
    /// # Errors
    /// More bytes than can be numbered.
    pub fn append(&mut self, more: RecordBuffer) -> Result<(), BuildError> {
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
}

fn too_many() -> BuildError {
    BuildError::TooMany { what: "bytes of dropped names", limit: u32::MAX.into() }
}

impl From<RecordBuffer> for ScoreRecords {
    fn from(gathered: RecordBuffer) -> ScoreRecords {
        ScoreRecords { starts: gathered.starts, bytes: gathered.bytes }
    }
}

impl ScoreRecords {
    /// Writes them.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        draft.put(STARTS, &self.starts)?;
        draft.put(BYTES, &self.bytes)
    }

    /// Reads the records of `docs` dropped names.
    ///
    /// # Errors
    /// A file is damaged, or another number of records.
    pub fn open(files: &Files, docs: u32) -> Result<ScoreRecords, GenerationError> {
        let starts: Vec<u32> = files.take(STARTS)?;
        let bytes: Vec<u8> = files.take(BYTES)?;
        let fits = starts.len() == docs as usize + 1
            && starts.is_sorted()
            && starts.last().is_some_and(|&end| end as usize == bytes.len())
            && bytes.is_empty() == (docs == 0);
        if !fits {
            return Err(files.malformed(STARTS, "does not fit the other files"));
        }
        Ok(ScoreRecords { starts, bytes })
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record of a doc below [`ScoreRecords::len`].
    #[inline]
    pub fn get(&self, doc: u32) -> ScoreRecord<'_> {
        let at = doc as usize;
        let bytes = &self.bytes[self.starts[at] as usize..self.starts[at + 1] as usize];
        let (label, features) = bytes[HEADER..].split_at(usize::from(bytes[1]));
        let label = std::str::from_utf8(label).expect("labels are ASCII when they are written");
        ScoreRecord { label, spread: bytes[0], features }
    }

    /// Has the memory of records to be read come at once: read one by one, each would wait for it.
    pub fn prefetch(&self, docs: &[u32]) {
        let first = |&doc: &u32| self.bytes[self.starts[doc as usize] as usize + 1];
        black_box(docs.iter().map(first).fold(0, u8::wrapping_add));
    }

    /// The label of a doc below [`ScoreRecords::len`], which is all that a search for text reads.
    #[inline]
    pub fn label(&self, doc: u32) -> &[u8] {
        let start = self.starts[doc as usize] as usize;
        let text = &self.bytes[start + HEADER..];
        &text[..usize::from(self.bytes[start + 1])]
    }
}
