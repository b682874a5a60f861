//! Limits of long requests per account: a few at once, or one after another, so that one account cannot
//! take all slots of the server (`data/docs/network.md`).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::OwnedMutexGuard;

use crate::vocab::ids::AccountId;

/// Number of requests of one kind in progress, per account.
#[derive(Debug, Default)]
pub struct AccountTurns {
    /// Locked only while one entry is updated.
    counts: Mutex<HashMap<AccountId, u32>>,
}

/// One request in progress, counted until it is dropped.
#[derive(Debug)]
pub struct AccountTurn {
    turns: Arc<AccountTurns>,
    account: AccountId,
}

impl AccountTurns {
    /// Begins a request of the account. Returns `None` while `limit` are in progress.
    pub fn begin(self: &Arc<Self>, account: AccountId, limit: u32) -> Option<AccountTurn> {
        let mut counts = self.counts();
        let running = counts.entry(account).or_default();
        if *running >= limit {
            return None;
        }
        *running += 1;
        Some(AccountTurn { turns: Arc::clone(self), account })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<AccountId, u32>> {
        self.counts.lock().expect("no code panics holding this lock")
    }
}

impl Drop for AccountTurn {
    fn drop(&mut self) {
        let mut counts = self.turns.counts();
        match counts.get_mut(&self.account) {
            Some(running @ 2..) => *running -= 1,
            _ => _ = counts.remove(&self.account),
        }
    }
}

/// Serialises the requests of each key, in order of arrival.
pub struct OneAtATime<K> {
    /// Locked only during one look-up.
    locks: Mutex<HashMap<K, Lock>>,
}

type Lock = Arc<tokio::sync::Mutex<()>>;

impl<K> Default for OneAtATime<K> {
    fn default() -> OneAtATime<K> {
        OneAtATime { locks: Mutex::default() }
    }
}

impl<K: Eq + Hash> OneAtATime<K> {
    /// Waits for earlier requests of this key. Dropping the guard lets the next request start.
    pub async fn enter(&self, key: K) -> OwnedMutexGuard<()> {
        self.lock_of(key).lock_owned().await
    }

    fn lock_of(&self, key: K) -> Lock {
        let mut locks = self.locks.lock().expect("no code panics holding this lock");
        if !locks.contains_key(&key) {
            // Removes locks without holders or waiters.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Arc::clone(locks.entry(key).or_default())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn requests_of_a_key_run_one_at_a_time() {
        let pages = OneAtATime::default();
        let first = pages.enter(1).await;
        assert!(pages.enter(1).now_or_never().is_none(), "the second waits");
        let other = pages.enter(2).now_or_never();
        assert!(other.is_some(), "another account does not");
        drop((first, other));
        assert!(pages.enter(1).now_or_never().is_some());
        assert!(pages.enter(3).now_or_never().is_some());
        assert_eq!(pages.locks.lock().expect("no panic").len(), 1, "idle keys are forgotten");
    }
}
