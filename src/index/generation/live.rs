//! The generation being served. A request takes it once; a rebuild replaces it whole.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::index::query::index::Index;

/// The one place readers take the index from.
pub struct LiveIndex(ArcSwap<Index>);

impl LiveIndex {
    /// Serves `index`.
    pub fn new(index: Arc<Index>) -> LiveIndex {
        LiveIndex(ArcSwap::new(index))
    }

    /// The index as it is now; it stays as it is for as long as the caller holds it.
    pub fn current(&self) -> Arc<Index> {
        self.0.load_full()
    }

    /// Serves `index` from now on, and gives the old one back: the caller drops it where freeing
    /// gigabytes holds nobody up.
    #[must_use = "drop the old index off the async threads"]
    pub fn publish(&self, index: Arc<Index>) -> Arc<Index> {
        self.0.swap(index)
    }
}
