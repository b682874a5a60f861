//! The web archive: questions on demand, and the progress of the worker that asks it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::checks::Checks;
use crate::outbound::archive::Captures;

/// Outcome of a question about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// `None` if the archive has no captures.
    Known(Option<Captures>),
    /// The archive sent no usable response.
    Failed,
}

/// Questions on demand, and the progress of the worker on this node.
#[derive(Default)]
pub struct WebArchive {
    pub checks: Checks<Looked>,
    progress: Mutex<Progress>,
}

/// Progress since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of names with a response.
    pub answered: u64,
    /// Number of names that were given up for a day.
    pub failed: u64,
    /// Number of names that wait.
    pub waiting: usize,
    /// Whether the archive asked for a pause, or failed, and nothing is asked until it is over.
    pub is_paused: bool,
}

impl WebArchive {
    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
