//! The part of the store that its snapshot thread shares.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use super::snapshotter::SnapshotError;
use super::state::{Frozen, State};
use crate::journal::fs::Fs;
use crate::journal::{Journal, Position};

pub struct Shared {
    pub journal: Journal,
    /// The journal's folder and disk, to inspect its files.
    pub dir: PathBuf,
    pub fs: Arc<dyn Fs>,
    /// Changed only by the journal's thread, once a record is durable. Locked for one look-up or one
    /// transaction.
    pub state: Arc<RwLock<State>>,
}

impl Shared {
    /// The state at one record, and the position of that record.
    ///
    /// # Errors
    /// [`SnapshotError::Poisoned`]: a record was applied in part.
    pub fn freeze(&self) -> Result<(Frozen, Position), SnapshotError> {
        let state = self.state.read().map_err(|_| SnapshotError::Poisoned)?;
        Ok((state.freeze(), state.position))
    }
}
