//! One command at a time for each account, without a lock per account.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::shared::Shared;
use crate::journal::AppendError;

/// Number of locks. Two accounts that share a lock merely wait for each other's sync.
const LOCKS: usize = 1_024;

/// The right to change an account on this node, until it is dropped. The right may move to another
/// thread.
pub struct AccountLock {
    _guard: OwnedMutexGuard<()>,
    /// The last record that was applied before the decision; see [`super::shared::Shared::since`].
    pub since: u64,
}

pub struct AccountLocks(Box<[Arc<Mutex<()>>]>);

impl AccountLocks {
    pub fn new() -> AccountLocks {
        AccountLocks((0..LOCKS).map(|_| Arc::default()).collect())
    }

    /// Waits for the lock of an account id or address, and until all writes of other nodes are
    /// applied. The holder of a lock must not take a second one.
    ///
    /// # Errors
    /// [`AppendError`]: the shared log cannot be reached.
    pub async fn lock(&self, key: &impl Hash, shared: &Shared) -> Result<AccountLock, AppendError> {
        // The two waits run concurrently.
        shared.check_reachable()?;
        let guard = Arc::clone(self.lock_of(key)).lock_owned().await;
        shared.barrier().await?;
        Ok(AccountLock { _guard: guard, since: shared.since() })
    }

    /// As [`AccountLocks::lock`], for code that is not async.
    ///
    /// # Errors
    /// As [`AccountLocks::lock`].
    pub fn lock_blocking(
        &self,
        key: &impl Hash,
        shared: &Shared,
    ) -> Result<AccountLock, AppendError> {
        shared.check_reachable()?;
        let guard = Arc::clone(self.lock_of(key)).blocking_lock_owned();
        shared.barrier_blocking()?;
        Ok(AccountLock { _guard: guard, since: shared.since() })
    }

    fn lock_of(&self, key: &impl Hash) -> &Arc<Mutex<()>> {
        // The high bits of this hash are the best ones.
        let hash = FxBuildHasher.hash_one(key).rotate_left(20);
        &self.0[hash as usize % LOCKS]
    }
}
