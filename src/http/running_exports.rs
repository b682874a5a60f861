//! Exports in progress: at most a few for each account, so that one account cannot take all slots of
//! the server (`data/docs/network.md`).

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::accounts::Caller;
use crate::http::error::ApiError;
use crate::vocab::ids::AccountId;

/// The server's slot of a request, in the extensions of an export. It is free again when the last clone
/// is dropped.
#[derive(Clone)]
pub struct ServerSlot(#[expect(dead_code, reason = "held until drop")] Arc<dyn Any + Send + Sync>);

impl ServerSlot {
    pub fn new(slot: impl Any + Send + Sync) -> ServerSlot {
        ServerSlot(Arc::new(slot))
    }
}

/// Counts the exports in progress by account.
#[derive(Debug)]
pub struct RunningExports {
    /// Held for one update of the map.
    counts: Mutex<HashMap<AccountId, u32>>,
    /// Longest wait for a client to take the next rows.
    pub stall: Duration,
}

/// One export in progress, until drop.
#[derive(Debug)]
pub struct RunningExport {
    exports: Arc<RunningExports>,
    account: AccountId,
}

impl RunningExports {
    pub fn new(stall: Duration) -> Arc<RunningExports> {
        Arc::new(RunningExports { counts: Mutex::default(), stall })
    }

    /// Begins an export of the caller unless `limit` are in progress.
    ///
    /// # Errors
    /// 429 at the limit.
    pub fn begin(self: &Arc<Self>, caller: &Caller, limit: u32) -> Result<RunningExport, ApiError> {
        let mut counts = self.counts();
        let running = counts.get(&caller.account).copied().unwrap_or_default();
        if running >= limit {
            return Err(ApiError::TooManyExports { plan: caller.plan, limit });
        }
        counts.insert(caller.account, running + 1);
        Ok(RunningExport { exports: Arc::clone(self), account: caller.account })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<AccountId, u32>> {
        self.counts.lock().expect("no code panics holding this lock")
    }
}

impl Drop for RunningExport {
    fn drop(&mut self) {
        let mut counts = self.exports.counts();
        match counts.get_mut(&self.account) {
            Some(running @ 2..) => *running -= 1,
            _ => _ = counts.remove(&self.account),
        }
    }
}
