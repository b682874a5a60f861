//! Tables that are compiled in as CSV (RFC 4180): a header, rows, and lines of comments that start with `#`.
//! A test of each table checks all rows.

use std::fmt::Display;

use csv::{Reader, ReaderBuilder};
use serde::de::DeserializeOwned;

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTable {
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error("line {line}: {what}")]
    Row { line: u64, what: String },
}

/// Reads the rows of a table, each with `read`.
///
/// # Errors
/// A row is no [`Deserialize`](serde::Deserialize) of `R`, or `read` refuses it.
pub fn table<R: DeserializeOwned, T, E: Display>(
    text: &str,
    mut read: impl FnMut(R) -> Result<T, E>,
) -> Result<Vec<T>, BadTable> {
    let mut reader: Reader<&[u8]> =
        ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let bad = |what: String| BadTable::Row { line, what };
        let row = record.deserialize(Some(&header)).map_err(|err| bad(err.to_string()))?;
        rows.push(read(row).map_err(|what| bad(what.to_string()))?);
    }
    Ok(rows)
}
