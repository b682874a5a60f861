//! A journal that nobody has open, read as an open would read it: for an operator who wants to know
//! before anything is changed.

use std::path::{Path, PathBuf};

use super::admin::JournalFacts;
use super::snapshot::{self, Loader};
use super::store::JOURNAL_FOLDER;
use crate::journal::fs::Disk;
use crate::journal::{JournalError, inspect};

/// What a journal holds.
#[derive(Debug)]
pub struct Audit {
    /// All of it.
    pub facts: JournalFacts,
    /// Bytes of a tail that a crash left and the next open would cut; `None` without one.
    pub torn_bytes: Option<u64>,
}

/// The folder of the journal in the data folder `data`.
pub fn journal_folder(data: &Path) -> PathBuf {
    data.join(JOURNAL_FOLDER)
}

/// Reads the journal in the data folder `data` and changes nothing. A server that writes at the
/// same time may show as a torn tail: ask it instead.
///
/// # Errors
/// [`JournalError`], as an open.
pub fn audit(data: &Path) -> Result<Audit, JournalError> {
    let mut loader = Loader::default();
    let found = inspect(&Disk, &journal_folder(data), &mut loader)?;
    let torn_bytes = found.recovery.torn.as_ref().map(|torn| torn.bytes);
    let log_bytes = found.recovery.log_bytes;
    let state = loader.into_state(found.recovery.position);
    let facts =
        JournalFacts::of(found, log_bytes, snapshot::digest(&state.freeze()), state.counts());
    Ok(Audit { facts, torn_bytes })
}
