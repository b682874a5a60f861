//! The part of the store that its snapshot thread shares.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use super::snapshot;
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
    pub fn freeze(&self) -> (Frozen, Position) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        (state.freeze(), state.position())
    }

    /// Digest of the state as it is now.
    pub fn digest(&self) -> [u8; 32] {
        snapshot::digest(&self.freeze().0)
    }
}
