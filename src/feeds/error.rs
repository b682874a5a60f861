//! Errors that make a list unreadable. Each error states the finding, the expectation and the
//! remedy.

use std::io;
use std::path::{Path, PathBuf};

use super::format::{Format, words};
use crate::vocab::day::Day;
use crate::vocab::popularity::PopularityList;

/// A list that cannot be read, at least not to its end. No part of the list may be applied.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FeedError {
    /// Path of the file, as given.
    pub path: PathBuf,
    pub problem: FeedProblem,
}

impl FeedError {
    pub(super) fn new(path: &Path, problem: impl Into<FeedProblem>) -> FeedError {
        FeedError { path: path.to_owned(), problem: problem.into() }
    }
}

/// Advice for a file that may be truncated. Programs that write a file in pieces should use a
/// temporary name.
pub const AGAIN: &str =
    "fetch the file again; put it into an inbox under a temporary name (NAME.part), then rename it";

/// Reason why a list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FeedProblem {
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error(
        "the {container} data is {damage} ({source}): {AGAIN}",
        damage = if source.kind() == io::ErrorKind::UnexpectedEof { "cut short" } else { "damaged or cut short" }
    )]
    Unpack { container: &'static str, source: io::Error },
    #[error(
        "unpacks to too many bytes: {unpacked} from {packed} (at most 100 to 1 beyond 64 MiB, and \
         64 GiB in all); unpack it yourself if you trust it"
    )]
    Bomb { packed: u64, unpacked: u64 },
    #[error(
        "the zip archive holds {files} files; exactly one list is expected: unpack it and give \
         the files one by one"
    )]
    ZipFiles { files: usize },
    #[error("the zip archive cannot be read: {0}; unpack it yourself, or {AGAIN}")]
    Zip(String),
    #[error(
        "packed with {0}, which is not supported; unpack it first, or pack it with gzip or zstd"
    )]
    Container(&'static str),
    #[error(
        "a spreadsheet ({0}), not a text list; open it, save the sheet with the names as CSV (UTF-8), \
         and ingest that file"
    )]
    Spreadsheet(&'static str),
    #[error("holds NUL bytes: not a text list (and not UTF-16 either)")]
    Binary,
    #[error("the file is empty; fetch it again, or pass --format if a list may be empty")]
    Empty,
    #[error(
        "its format is not recognised (it starts with `{start}`); name it with --format, one of \
         {words}",
        words = words()
    )]
    UnknownFormat { start: String },
    #[error("not a list in the format `{format}`: {why}; leave --format out to have it recognised")]
    NotFormat { format: Format, why: String },
    #[error(
        "no column `{column}` in the header on line {line} ({header}); name the column so, or use \
         one of its other names ({aliases}); a list of bare names is read with --format names \
         --drop-date DATE"
    )]
    MissingColumn { column: &'static str, aliases: &'static str, line: u64, header: String },
    #[error(
        "no column of dates, such as `drop_date`, in the header on line {line} ({header}); name the \
         column so, or use one of its other names ({aliases}); if all names dropped on one day, give \
         it with --drop-date YYYY-MM-DD"
    )]
    NoDateColumn { aliases: &'static str, line: u64, header: String },
    #[error(
        "a list of names without a date; say when they dropped with --drop-date YYYY-MM-DD, or put \
         the date into the file name"
    )]
    NoDate,
    #[error(
        "the day `{text}` in its name can be {one} or {other}; say which with {option} YYYY-MM-DD, or \
         write it into the name so (`{other}`)",
        one = days[0],
        other = days[1]
    )]
    AmbiguousDay { text: String, days: [Day; 2], option: &'static str },
    #[error(
        "`{word}` in its name says that its names were newly registered, but it is a list of drops \
         ({reason}); name its format with --format {format} if these are drops"
    )]
    Registrations { word: &'static str, format: Format, reason: String },
    #[error(
        "a zone file: drops are found by comparing two of them; give both with --format \
         zone-pair OLD NEW"
    )]
    ZoneFile,
    #[error("a popularity list: it has ranks of names and no drops")]
    RankedList,
    #[error(
        "a popularity list without a name; put {lists} into the file name",
        lists = PopularityList::NAMES.join(", ")
    )]
    NoListName,
    #[error(
        "a zone file without a date; give it with --drop-date, or put it into the file name \
         (2026-10-03 or 20261003)"
    )]
    NoZoneDay,
    #[error("not a zone file: neither an SOA record nor $ORIGIN in its first 64 KiB")]
    NoApex,
    #[error("the JSON has no list: expected `data`, `domains` or an array at its top level")]
    JsonShape,
    #[error("the JSON is broken at line {line}: {why}; {AGAIN}")]
    BrokenJson { line: u64, why: &'static str },
}

/// Layers below the formats return `io::Error`. A [`FeedProblem`] that is wrapped in an `io::Error`
/// is unwrapped here.
impl From<io::Error> for FeedProblem {
    fn from(error: io::Error) -> FeedProblem {
        match error.downcast::<FeedProblem>() {
            Ok(problem) => problem,
            Err(error) => FeedProblem::Read(error),
        }
    }
}

impl From<FeedProblem> for io::Error {
    fn from(problem: FeedProblem) -> io::Error {
        io::Error::other(problem)
    }
}
