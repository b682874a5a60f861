//! The part of the store that its snapshot thread shares.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use super::state::State;
use crate::journal::Journal;
use crate::journal::fs::Fs;

pub struct Shared {
    pub journal: Journal,
    /// The journal's folder and disk, to inspect its files.
    pub dir: PathBuf,
    pub fs: Arc<dyn Fs>,
    /// Changed only by the journal's thread, once a record is durable. Locked for one look-up or one
    /// transaction.
    pub state: Arc<RwLock<State>>,
}
