//! One command at a time for each account, without a lock per account.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Number of locks. Two accounts that share one only wait for each other's sync.
const LOCKS: usize = 1_024;

/// The right to change an account, until it is dropped. It may move to another thread.
pub type AccountLock = OwnedMutexGuard<()>;

pub struct AccountLocks(Box<[Arc<Mutex<()>>]>);

impl AccountLocks {
    pub fn new() -> AccountLocks {
        AccountLocks((0..LOCKS).map(|_| Arc::default()).collect())
    }

    /// Waits for the lock of an account id or address. The holder of one must not take a second.
    pub async fn lock(&self, key: &impl Hash) -> AccountLock {
        Arc::clone(self.lock_of(key)).lock_owned().await
    }

    /// As [`AccountLocks::lock`], for code that is not async.
    pub fn lock_blocking(&self, key: &impl Hash) -> AccountLock {
        Arc::clone(self.lock_of(key)).blocking_lock_owned()
    }

    fn lock_of(&self, key: &impl Hash) -> &Arc<Mutex<()>> {
        // The high bits of this hash are the best ones.
        let hash = FxBuildHasher.hash_one(key).rotate_left(20);
        &self.0[hash as usize % LOCKS]
    }
}
