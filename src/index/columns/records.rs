//! Data of dropped names that is not in a column, by doc: the label, the number of TLDs open to the
//! public with the label, and the features its score was computed from. A record is a header of two bytes, the
//! label and the features; records are concatenated, with an array of offsets. The TLD is a column
//! of [`crate::index::columns::drops_by_rank`].

use std::hint::black_box;
use std::ops::Range;

use crate::index::columns::spans::Spans;
use crate::index::error::{BuildError, GenerationError};
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;

const LENS: &str = "records.lens";
const BYTES: &str = "records.bytes";
/// Header: spread and label length in bytes.
const HEADER: usize = 2;

/// Records of all dropped names, by doc.
#[derive(Debug, Default)]
pub struct ScoreRecords {
    spans: Spans,
    bytes: Vec<u8>,
}

/// Records of some docs, to be set.
pub struct RecordsPart<'a> {
    spans: &'a Spans,
    docs: Range<usize>,
    bytes: &'a mut [u8],
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
    pub fn len(&self) -> u8 {
        (HEADER + self.label.len() + self.kept().len()) as u8
    }

    /// Returns the features, or none if the record would be too long: the name is then scored again.
    fn kept(&self) -> &[u8] {
        let fits = HEADER + self.label.len() + self.features.len() <= usize::from(u8::MAX);
        if fits { self.features } else { &[] }
    }
}

impl ScoreRecords {
    /// Allocates records of these sizes.
    ///
    /// # Errors
    /// The records exceed 4 GiB.
    pub fn with_lens(lens: Vec<u8>) -> Result<ScoreRecords, BuildError> {
        let what = "bytes of dropped names";
        let too_many = BuildError::TooMany { what, limit: u32::MAX.into() };
        let spans = Spans::from_lens(lens).ok_or(too_many)?;
        Ok(ScoreRecords { bytes: vec![0; spans.end()], spans })
    }

    /// Divides the records into parts of `step` docs, to be set in parallel.
    pub fn parts_mut(&mut self, step: usize) -> Vec<RecordsPart<'_>> {
        let ScoreRecords { spans, bytes } = self;
        let (mut rest, mut parts) = (bytes.as_mut_slice(), Vec::new());
        for first in (0..spans.len()).step_by(step) {
            let docs = first..spans.len().min(first + step);
            let len = spans.range(docs.end - 1).end - spans.start(first);
            let (bytes, after) = rest.split_at_mut(len);
            rest = after;
            parts.push(RecordsPart { spans, docs, bytes });
        }
        parts
    }

    /// Writes the files.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        draft.put(LENS, self.spans.lens())?;
        draft.put(BYTES, &self.bytes)
    }

    /// Opens the records of `docs` dropped names.
    ///
    /// # Errors
    /// A file is damaged, or of another number of records.
    pub fn open(files: &Files, docs: u32) -> Result<ScoreRecords, GenerationError> {
        let (lens, bytes): (Vec<u8>, Vec<u8>) = (files.take(LENS)?, files.take(BYTES)?);
        let spans = Spans::from_lens(lens);
        let spans = spans.filter(|it| (it.len(), it.end()) == (docs as usize, bytes.len()));
        files.check(spans.is_some(), LENS)?;
        Ok(ScoreRecords { spans: spans.unwrap_or_default(), bytes })
    }

    /// Returns the number of entries.
    pub fn len(&self) -> u32 {
        self.spans.len() as u32
    }

    /// Returns the record of a doc.
    #[inline]
    pub fn get(&self, doc: u32) -> ScoreRecord<'_> {
        let bytes = &self.bytes[self.spans.range(doc as usize)];
        let (label, features) = bytes[HEADER..].split_at(usize::from(bytes[1]));
        let label = std::str::from_utf8(label).expect("labels are ASCII when they are written");
        ScoreRecord { label, spread: bytes[0], features }
    }

    /// Loads the memory of several records in parallel, instead of waiting for each cache miss.
    pub fn prefetch(&self, docs: &[u32]) {
        let first = |&doc: &u32| self.bytes[self.spans.start(doc as usize) + 1];
        black_box(docs.iter().map(first).fold(0, u8::wrapping_add));
    }

    /// Returns the label of a doc: all that a text search reads.
    #[inline]
    pub fn label(&self, doc: u32) -> &[u8] {
        let start = self.spans.start(doc as usize);
        let text = &self.bytes[start + HEADER..];
        &text[..usize::from(self.bytes[start + 1])]
    }
}

impl RecordsPart<'_> {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// Writes the record at a place of the part; it must have the size given before.
    pub fn set(&mut self, place: usize, parts: &NewRecord<'_>) {
        let before = self.spans.start(self.docs.start);
        let range = self.spans.range(self.docs.start + place);
        let (header, text) =
            self.bytes[range.start - before..range.end - before].split_at_mut(HEADER);
        header.copy_from_slice(&[parts.spread, parts.label.len() as u8]);
        let (label, features) = text.split_at_mut(parts.label.len());
        label.copy_from_slice(parts.label);
        features.copy_from_slice(parts.kept());
    }
}
