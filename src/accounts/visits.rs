//! Visits of the list of drops (`data/docs/new-names.md`). A visit takes one write, when it begins.
//! The time of its last request is known only in memory: after a restart, its beginning counts.

use std::sync::PoisonError;
use std::time::Duration;

use super::data::account::Account;
use super::data::visits::Visit;
use super::decide::Decided;
use super::error::WriteError;
use super::event::Event;
use super::store::{Caller, Store};
use crate::vocab::time::UnixMs;

/// Maximum time that a page waits for the write. An appended write continues after it.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(1);

impl Store {
    /// Returns the visit to which a request for the list belongs, and records it if it begins with the
    /// request. `batch` is the newest list that is shown. If the write fails, the next visit replaces
    /// this one.
    pub async fn visit(&self, caller: &Caller, batch: u64, now: UnixMs) -> Option<Visit> {
        let active = {
            let mut visiting = self.0.visiting.lock().unwrap_or_else(PoisonError::into_inner);
            visiting.insert(caller.account, now)
        };
        let last = self.data_of(caller.account)?.visit;
        let Some(new) = Visit::next(last.as_ref(), active, now, batch) else { return last };
        let decide = |account: &Account| {
            let next = Visit::next(account.data.visit.as_ref(), active, now, batch);
            Ok(put(account, next))
        };
        let write = self.write_to(caller.account, |account, _| decide(account));
        match tokio::time::timeout(WRITE_WAIT_MAX, write).await {
            Ok(Ok(visit)) => visit,
            Ok(Err(err)) => {
                tracing::warn!(error = %err, "cannot record a visit");
                Some(new)
            }
            Err(_) => Some(new),
        }
    }

    /// Marks the names of the lists up to `batch` as seen.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn mark_seen(
        &self,
        caller: &Caller,
        batch: u64,
        now: UnixMs,
    ) -> Result<Option<Visit>, WriteError> {
        self.write(caller, |account, _| {
            Ok(put(account, account.data.visit.map(|visit| visit.marked(now, batch))))
        })
        .await
    }
}

/// Decides on a visit of an account, and returns the visit that it then has.
fn put(account: &Account, visit: Option<Visit>) -> Decided<Option<Visit>> {
    let changed = visit.filter(|visit| account.data.visit != Some(*visit));
    let event = changed.map(|visit| Event::ListVisited { account: account.id, visit });
    Decided::new(event, changed.or(account.data.visit))
}
