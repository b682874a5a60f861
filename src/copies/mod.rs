//! Dated files with the whole pipeline, and with the changes of a day, for clients that keep a copy
//! (`data/docs/copy.md`). Input: rows, as lines and as values. Output: files to serve, with checksums.
//!
//! The files of one kind and day are a *set*: a folder with one file for each format and a manifest. A set
//! is written into a draft folder and renamed, so a crash leaves either the whole set or a draft, which the
//! next start removes. A set whose files do not have the sizes of its manifest counts as absent.
//!
//! This room knows neither names nor HTTP; `http/files` writes the rows and serves the files.

mod draft;
mod folder;
pub mod table;

use dropdex_vocab as vocab;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::vocab::day::Day;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::time::UnixMs;

pub use draft::{CopyError, Draft};
pub use folder::Copies;

/// Version of the columns of files. Increment it when a column is renamed, removed or changes its type.
pub const SCHEMA_VERSION: u32 = 1;

named_enum! {
    /// Content of a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        /// Every drop in the pipeline on the day.
        Pipeline = "pipeline",
        /// The changes of the day.
        Changes = "changes",
    }
}
parse_named!(Kind);

named_enum! {
    /// Format of a file. Lines are compressed with gzip; Parquet compresses its columns itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Format {
        Ndjson = "ndjson",
        Csv = "csv",
        Parquet = "parquet",
    }
}

impl Format {
    /// The ending of file names.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Ndjson => "ndjson.gz",
            Format::Csv => "csv.gz",
            Format::Parquet => "parquet",
        }
    }

    /// The media type of files.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Ndjson | Format::Csv => "application/gzip",
            Format::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// Kind and day of a set; the text is the name of its folder: `pipeline-2026-11-30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetName {
    pub kind: Kind,
    pub day: Day,
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind, self.day)
    }
}

/// Error for a text that is not the name of a set or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not the name of a file, such as pipeline-2026-11-30.parquet")]
pub struct NameError;

impl FromStr for SetName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<SetName, NameError> {
        let (kind, day) = text.split_once('-').ok_or(NameError)?;
        let kind = kind.parse().map_err(|_| NameError)?;
        let name = SetName { kind, day: day.parse().map_err(|_| NameError)? };
        // A day has other spellings.
        if name.to_string() == text { Ok(name) } else { Err(NameError) }
    }
}

/// Set and format of a file; the text is its name: `pipeline-2026-11-30.ndjson.gz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    pub set: SetName,
    pub format: Format,
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.set, self.format.extension())
    }
}

impl FromStr for FileName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<FileName, NameError> {
        let (set, extension) = text.split_once('.').ok_or(NameError)?;
        let format = Format::ALL.into_iter().find(|format| format.extension() == extension);
        Ok(FileName { set: set.parse()?, format: format.ok_or(NameError)? })
    }
}

/// Facts about a set that hold for all its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Generation of the index that the rows come from.
    pub generation: u64,
    pub made_at: UnixMs,
    /// Sequence number of the first change of the day; `None` for the pipeline.
    pub first_seq: Option<u64>,
    /// Sequence number of the newest change that the rows include.
    pub last_seq: u64,
    /// Whether rows from lists for internal use only are included.
    pub has_internal: bool,
}

/// A complete set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    pub name: SetName,
    pub schema_version: u32,
    pub about: About,
    pub rows: u64,
    /// One for each format, in the order of [`Format::ALL`].
    pub files: Vec<CopyFile>,
}

impl Set {
    /// Whether the set may be served, if rows from lists for internal use only may be exported or not.
    pub fn is_allowed(&self, exports_internal: bool) -> bool {
        exports_internal || !self.about.has_internal
    }

    /// The file of a format.
    pub fn file(&self, format: Format) -> Option<&CopyFile> {
        self.files.iter().find(|file| file.format == format)
    }
}

/// A file of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyFile {
    pub format: Format,
    pub bytes: u64,
    /// Hexadecimal SHA-256 of the file.
    pub sha256: String,
}

#[cfg(test)]
mod tests;
