//! Reader of files with facts about names, such as exports of registrars, markets and link tools: a file comes in,
//! typed rows and a [`Report`] go out. Nothing is stored, and no name is looked up.
//!
//! `table` finds separator and header, `presets` and `columns` say what the columns hold, `read` decides over all
//! cells of a column how it is read (`value`, `dates`), reads the rows and merges those of one `key`. Columns that
//! may hold personal data or secrets (`headers`) are dropped by name: no cell of them is parsed, returned or
//! repeated in an error.
//!
//! [`published`] reads the files of public sources, which are too large for memory.

mod columns;
pub mod compile;
mod dates;
mod error;
mod headers;
mod key;
mod presets;
pub mod published;
mod read;
mod report;
pub mod store;
mod table;
mod value;

#[cfg(test)]
mod tests;

use dropdex_feeds as feeds;
use dropdex_vocab as vocab;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use self::columns::{FactColumn, Fingerprint, Mapping, MappingError, NotAColumn};
pub use self::dates::DateOrder;
pub use self::error::FactsError;
pub use self::key::Key;
pub use self::report::{
    AmbiguousColumn, Contradiction, KeyColumn, LISTED_MAX, ReadColumn, Refusal, Report,
};
pub use self::value::{Decimal, Value};

use self::table::{Shape, Table};
use crate::vocab::day::Day;
use crate::vocab::limits::FACTS_BYTES_MAX;
use crate::vocab::money::Currency;
use crate::vocab::text_file;

/// Choices for columns that can be read in several ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Order of day and month, for columns that do not show it.
    pub date_order: Option<DateOrder>,
    /// Currency of amounts, for columns and rows that state none.
    pub currency: Option<Currency>,
    /// Whether rows of one key remain apart, as those of a name that was sold twice; by default, they are merged.
    pub keeps_repeats: bool,
    /// Whether the report lists all refusals and not only the first.
    pub lists_all: bool,
}

/// The facts of a row.
#[derive(Clone, Debug)]
pub struct FactRow {
    /// Line of the row; of merged rows, the first one.
    pub line: u64,
    pub key: Key,
    /// Day of the facts, if the row states it.
    pub as_of: Option<Day>,
    /// One for each of [`Report::read`]; `None` if the value is unknown.
    pub values: Vec<Option<Value>>,
}

/// A file of facts.
#[derive(Debug)]
pub struct FactsFile {
    /// The export, if it is a known one; `canonical` or `mapped` otherwise.
    pub preset: &'static str,
    /// Identifies the header row.
    pub fingerprint: Fingerprint,
    pub delimiter: char,
    pub header_line: u64,
    /// Rows in the order of the file, with distinct keys unless [`Choices::keeps_repeats`] is set.
    pub rows: Vec<FactRow>,
    pub report: Report,
}

impl FactsFile {
    /// Opens and reads a file.
    ///
    /// # Errors
    /// As [`FactsFile::read`], or the file cannot be read.
    pub fn open(
        path: &Path,
        mappings: &[Mapping],
        choices: Choices,
    ) -> Result<FactsFile, FactsError> {
        FactsFile::read(FactsFile::bytes(path)?, mappings, choices)
    }

    /// Returns the bytes of a file that is not too large.
    ///
    /// # Errors
    /// The file is too large or cannot be read.
    pub fn bytes(path: &Path) -> Result<Vec<u8>, FactsError> {
        let file = File::open(path).map_err(FactsError::Io)?;
        let bytes = file.metadata().map_err(FactsError::Io)?.len();
        if bytes > FACTS_BYTES_MAX {
            return Err(FactsError::TooLarge { bytes });
        }
        // A pipe has no length.
        let mut bytes = Vec::new();
        file.take(FACTS_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(FactsError::Io)?;
        Ok(bytes)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// The file is too large, is not text, or has columns that nothing describes.
    pub fn read(
        bytes: Vec<u8>,
        mappings: &[Mapping],
        choices: Choices,
    ) -> Result<FactsFile, FactsError> {
        if bytes.len() as u64 > FACTS_BYTES_MAX {
            return Err(FactsError::TooLarge { bytes: bytes.len() as u64 });
        }
        let text = text_file::text(bytes).map_err(FactsError::NotText)?;
        if text.contains('\0') {
            let why = "it holds NUL, as UTF-16 without a byte order mark does";
            return Err(FactsError::NotText(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        let table = Table::find(&text, mappings).ok_or(FactsError::NoHeader)?;
        let (rows, report) = read::rows(&table, choices)?;
        Ok(FactsFile {
            preset: match table.shape {
                Shape::Preset(preset) => &preset.name,
                Shape::Mapped(_) => "mapped",
                Shape::Canonical | Shape::Unknown => "canonical",
            },
            fingerprint: table.fingerprint(),
            delimiter: char::from(table.delimiter),
            header_line: table.header_line,
            rows,
            report,
        })
    }
}
