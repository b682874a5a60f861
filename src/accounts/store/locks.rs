//! One command on an account at a time, without a lock for every account there may be.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// As many commands as may be in flight at once; two accounts in one stripe only wait for each
/// other's sync.
const STRIPES: usize = 1_024;

/// The right to be the one command on an account, until it is dropped. It may move to another
/// thread.
pub(super) type Stripe = OwnedMutexGuard<()>;

pub(super) struct Stripes(Box<[Arc<Mutex<()>>]>);

impl Stripes {
    pub(super) fn new() -> Stripes {
        Stripes((0..STRIPES).map(|_| Arc::default()).collect())
    }

    /// Waits for the stripe of `what`, for async code. Whoever holds one takes no second.
    pub(super) async fn of(&self, what: &impl Hash) -> Stripe {
        Arc::clone(self.at(what)).lock_owned().await
    }

    /// Waits for the stripe of `what`. Not for async code.
    pub(super) fn of_blocking(&self, what: &impl Hash) -> Stripe {
        Arc::clone(self.at(what)).blocking_lock_owned()
    }

    fn at(&self, what: &impl Hash) -> &Arc<Mutex<()>> {
        // The high bits are the good ones of this hash.
        let hash = FxBuildHasher.hash_one(what).rotate_left(20);
        &self.0[hash as usize % STRIPES]
    }
}
