//! Errors of zone files and of their stored state, with remedies.

use std::io;
use std::path::PathBuf;

use crate::feeds::{AGAIN, FeedError};
use crate::vocab::day::Day;
use crate::vocab::file_error::FileError;

/// Why a zone file cannot be processed. The stored state has not changed.
#[derive(Debug, thiserror::Error)]
pub enum ZoneError {
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error("the zone file is damaged or cut short ({0}): {AGAIN}")]
    Unpack(io::Error),
    #[error(
        "the zone file is cut short: the SOA record at its start is not repeated at its end: {AGAIN}"
    )]
    NoEnd,
    #[error("a line of the zone file is longer than 1 MiB: this is not a zone file")]
    LongLine,
    #[error(
        "a SOA record of the zone file has more than seven fields, or a field that is too long: this is not a zone file"
    )]
    LongSoa,
    #[error("the zone file is not UTF-8")]
    NotText,
    #[error(
        "more than 100 lines are not records, the last one `{0}`: this is not a zone file, or another version of the format"
    )]
    BadLine(String),
    #[error(
        "a file of the zone `{found}`, but `{expected}` is kept here; give each zone a folder of its own"
    )]
    OtherZone { found: String, expected: String },
    #[error(
        "a file of the zone `{found}` instead of `{expected}`; the names of {expected} stay as they are until the \
         publisher has its own file there"
    )]
    WrongZone { found: String, expected: String },
    #[error(
        "the zone file has serial number {found}, and {held} was taken before; the server is behind, try again later"
    )]
    OldSerial { found: u32, held: u32 },
    #[error("the list has no names")]
    NoNames,
    #[error(
        "{bad} of {rows} rows are not names of the registry; the format of the list has changed"
    )]
    BadRows { bad: u64, rows: u64 },
    #[error("a zone file of {found} was taken already; the next one counts from the day after")]
    SameDay { found: Day },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{}: damaged ({what}); delete the folder to start over with the next zone file: drops of the days \
         before it are then not found", path.display()
    )]
    Damaged { path: PathBuf, what: &'static str },
}

impl ZoneError {
    /// Whether the fault is in the zone file, not in the stored state.
    pub fn is_of_the_file(&self) -> bool {
        !matches!(self, ZoneError::File(_) | ZoneError::Damaged { .. })
    }
}
