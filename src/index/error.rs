//! Errors of the index: why a generation was not built, cannot be opened or failed a query.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::corpus::batch::BatchError;
use crate::corpus::lock::LockError;
use crate::vocab::file_error::FileError;

/// Reason why no new generation was built. The old generation stays current.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("another rebuild is running (it holds {0}); try again when it has finished")]
    Busy(PathBuf),
    #[error("{path}: {source}; --index names the index folder")]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Io(#[from] FileError),
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error("building the trigrams of the drops: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
    #[error("building the name automaton: {0}")]
    Fst(#[from] fst::Error),
    #[error("the corpus holds more than {limit} {what}")]
    TooMany { what: &'static str, limit: u64 },
    #[error("the self-test of the new generation failed: {0}; the current one stays in use")]
    SelfTest(String),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error(transparent)]
    Generation(#[from] GenerationError),
}

impl From<LockError> for BuildError {
    fn from(err: LockError) -> BuildError {
        match err {
            LockError::Busy(path) => BuildError::Busy(path),
            LockError::Io { path, source } => BuildError::Folder { path, source },
        }
    }
}

/// Reason why a generation is not used.
#[derive(Debug, thiserror::Error)]
pub enum GenerationError {
    #[error(transparent)]
    Io(#[from] FileError),
    #[error("{path}: {len} bytes, expected {expected}")]
    Length { path: PathBuf, len: u64, expected: u64 },
    #[error("{path}: BLAKE3 is {found}, expected {expected}")]
    Checksum { path: PathBuf, found: String, expected: String },
    #[error("{path}: index format {found}, this dropdex reads {expected}")]
    Format { path: PathBuf, found: u32, expected: u32 },
    #[error("{path}: {what}")]
    Malformed { path: PathBuf, what: String },
}

impl GenerationError {
    pub(super) fn malformed(path: &Path, what: impl fmt::Display) -> GenerationError {
        GenerationError::Malformed { path: path.to_owned(), what: what.to_string() }
    }
}

/// Reason why no generation can be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "there is no index in {0} yet; `dropdex sources enable --all-free` enables the public lists, \
         which `dropdex serve` then fetches; `dropdex ingest FILE` adds a list of your own, and \
         `dropdex rebuild` builds an index from the lists already ingested"
    )]
    Missing(PathBuf),
    #[error(
        "no generation in {index} can be used ({newest}); `dropdex rebuild` builds a new one \
         from the corpus"
    )]
    AllDamaged { index: PathBuf, newest: GenerationError },
    #[error(transparent)]
    Generation(#[from] GenerationError),
}

/// The disk has too little space for a build.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    #[error(
        "{folder} has {} MB free; this needs {} MB, including {} MB that stay free for other \
         programs; free some space (`[index] keep` sets how many generations stay), or move the \
         folder with --index", free >> 20, mb_up(*needed), mb_up(*left_alone)
    )]
    Full { folder: PathBuf, free: u64, needed: u64, left_alone: u64 },
    #[error("{folder}: cannot read the free space: {source}")]
    Unknown { folder: PathBuf, source: io::Error },
}

fn mb_up(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Reading a verified file failed: a bug or failing memory, never the client's fault.
#[derive(Debug, thiserror::Error)]
#[error("index generation {generation}: {source}")]
pub struct QueryError {
    pub(super) generation: String,
    pub(super) source: std::io::Error,
}
