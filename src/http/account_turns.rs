//! Requests that take long: at most a few at once for each account, so that one account cannot take all
//! slots of the server (`data/docs/network.md`).

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::vocab::ids::AccountId;

/// The server's slot of a request, in the extensions of one that may take long. It is free again when the
/// last clone is dropped.
#[derive(Clone)]
pub struct ServerSlot(#[expect(dead_code, reason = "held until drop")] Arc<dyn Any + Send + Sync>);

impl ServerSlot {
    pub fn new(slot: impl Any + Send + Sync) -> ServerSlot {
        ServerSlot(Arc::new(slot))
    }
}

/// Counts requests of one kind in progress by account.
#[derive(Debug, Default)]
pub struct AccountTurns {
    /// Held for one update of the map.
    counts: Mutex<HashMap<AccountId, u32>>,
}

/// One request in progress, until drop.
#[derive(Debug)]
pub struct AccountTurn {
    turns: Arc<AccountTurns>,
    account: AccountId,
}

impl AccountTurns {
    /// Begins a request of the account; `None` while `limit` are in progress.
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
