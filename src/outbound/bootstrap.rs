//! The RDAP bootstrap registry in use, which a worker replaces while requests read it.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::vocab::rdap::Bootstrap;

/// The registry in use.
pub struct LiveBootstrap(ArcSwap<Bootstrap>);

impl LiveBootstrap {
    /// Starts with `bootstrap`.
    pub fn new(bootstrap: Arc<Bootstrap>) -> LiveBootstrap {
        LiveBootstrap(ArcSwap::new(bootstrap))
    }

    /// The registry in use now.
    pub fn current(&self) -> Arc<Bootstrap> {
        self.0.load_full()
    }

    /// Replaces the registry in use.
    pub fn publish(&self, bootstrap: Arc<Bootstrap>) {
        self.0.store(bootstrap);
    }
}
