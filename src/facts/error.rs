//! Reasons why a file cannot be read at all. None of them repeats a cell below the header.

use std::io;

use crate::columns::{Fingerprint, NotAColumn};
use crate::vocab::limits::{FACTS_BYTES_MAX, FACTS_COLUMNS_MAX, FACTS_ROWS_MAX};

/// Reason why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("cannot be read: {0}")]
    Io(io::Error),
    #[error("has {bytes} bytes; at most {FACTS_BYTES_MAX} (64 MiB) are read: split it")]
    TooLarge { bytes: u64 },
    #[error("has {rows} rows; at most {FACTS_ROWS_MAX} are read: split it")]
    TooManyRows { rows: u64 },
    #[error("has {columns} columns of facts; at most {FACTS_COLUMNS_MAX} are read: remove some")]
    TooManyColumns { columns: usize },
    #[error("is not text ({0}); save it as CSV in UTF-8")]
    NotText(io::Error),
    #[error(
        "none of the first rows is a header with a column Domain, Name, URL, Keyword or the like; add one, \
         or, if the header is in another language, write it in English"
    )]
    NoHeader,
    #[error(
        "is not a known export; describe its columns, in their order, with --map \
         '{fingerprint}=COLUMN,COLUMN,...', empty for columns to ignore: {}", columns.join(" | ")
    )]
    Unmapped { fingerprint: Fingerprint, columns: Vec<String> },
    #[error("header `{header}` {why}")]
    Column { header: String, why: NotAColumn },
    #[error("has no column of names, labels or words that may be read")]
    NoKey,
    #[error("has no column of facts that may be read")]
    NoFacts,
    #[error("cannot be read as a table: {0}")]
    Table(#[from] csv::Error),
}
