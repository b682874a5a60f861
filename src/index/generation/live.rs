//! The generation being served. A request takes it once; a rebuild replaces it whole.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::index::query::index::Index;

/// Cell from which readers take the index.
pub struct LiveIndex(ArcSwap<Index>);

impl LiveIndex {
    /// Starts with `index`.
    pub fn new(index: Arc<Index>) -> LiveIndex {
        LiveIndex(ArcSwap::new(index))
    }

    /// Returns the current index; it stays valid while the caller holds it.
    pub fn current(&self) -> Arc<Index> {
        self.0.load_full()
    }

    /// Publishes `index` and returns the old one. Drop it outside the async threads: freeing
    /// gigabytes takes time.
    #[must_use = "drop the old index off the async threads"]
    pub fn publish(&self, index: Arc<Index>) -> Arc<Index> {
        self.0.swap(index)
    }
}
