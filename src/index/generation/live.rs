//! The generation being served. A request takes the index once; a rebuild replaces it completely.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::query::index::Index;

/// The cell from which readers take the index.
pub struct LiveIndex {
    index: ArcSwap<Index>,
    /// Twice the number of replacements; odd during a replacement.
    epoch: AtomicU64,
    is_behind: AtomicBool,
}

impl LiveIndex {
    /// Creates the cell with `index`.
    pub fn new(index: Arc<Index>) -> LiveIndex {
        LiveIndex {
            index: ArcSwap::new(index),
            epoch: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
        }
    }

    /// Returns the current index; it stays valid while the caller holds it.
    pub fn current(&self) -> Arc<Index> {
        self.index.load_full()
    }

    /// Publishes `index` and returns the old one, which must be dropped outside the async threads,
    /// since freeing gigabytes takes time. Only one caller may run this at a time.
    #[must_use = "drop the old index off the async threads"]
    pub fn publish(&self, index: Arc<Index>) -> Arc<Index> {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let old = self.index.swap(index);
        self.epoch.fetch_add(1, Ordering::SeqCst);
        old
    }

    /// Returns a number that changes with each replacement; `None` during a replacement. If the
    /// number is the same at two times, the index was not replaced in between.
    pub fn epoch(&self) -> Option<u64> {
        let epoch = self.epoch.load(Ordering::SeqCst);
        epoch.is_multiple_of(2).then_some(epoch)
    }

    /// Sets whether the other nodes of a cluster serve a newer index.
    pub fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::SeqCst);
    }

    /// Returns true if the other nodes of a cluster serve a newer index.
    pub fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }
}
