//! Verifies a journal that no process has open, without changing it.

use std::path::{Path, PathBuf};

use super::admin::JournalFacts;
use super::store::JOURNAL_FOLDER;
use super::store::snapshot::{self, Loader};
use super::store::state::Counts;
use crate::journal::fs::Disk;
use crate::journal::{JournalError, inspect};

/// The result of an audit.
#[derive(Debug)]
pub struct Audit {
    pub facts: JournalFacts,
    /// Bytes of a torn tail that the next open would remove; `None` without one.
    pub torn_bytes: Option<u64>,
}

/// Returns the folder of the journal in the data folder `data`.
pub fn journal_folder(data: &Path) -> PathBuf {
    data.join(JOURNAL_FOLDER)
}

/// Reads the journal in the data folder `data` as an open would. If a server writes at the same
/// time, its last record may look incomplete; use the server's admin socket instead.
///
/// # Errors
/// [`JournalError`], as for an open.
pub fn audit(data: &Path) -> Result<Audit, JournalError> {
    let mut loader = Loader::default();
    let found = inspect(&Disk, &journal_folder(data), None, &mut loader)?;
    let torn_bytes = found.recovery.torn.as_ref().map(|torn| torn.bytes);
    let log_bytes = found.recovery.log_bytes;
    let state = loader.into_state(found.recovery.position);
    let digest = snapshot::digest(&state.freeze());
    let counts = Counts::new(&state.accounts, state.queue.pending().len());
    let facts = JournalFacts::new(found, log_bytes, digest, counts);
    Ok(Audit { facts, torn_bytes })
}
