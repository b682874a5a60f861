//! Totals over all accounts, for metrics.

use std::sync::LazyLock;

use metrics::{Counter as Count, counter};

use super::Store;
use crate::quota::Counter;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// The queues of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Pending deliveries.
    pub deliveries: usize,
    /// Time at which the first pending delivery is due.
    pub first_due: Option<UnixMs>,
    /// Watched names.
    pub watched: usize,
    /// Watched names without an observation.
    pub unseen: usize,
}

impl Store {
    /// Returns the number of accounts by plan, in the order of [`Plan::ALL`], and that of disabled
    /// accounts.
    pub fn accounts_by_plan(&self) -> ([u64; Plan::ALL.len()], u64) {
        let (mut plans, mut disabled) = ([0; Plan::ALL.len()], 0);
        let accounts = self.state().accounts.clone();
        for account in accounts.values() {
            match account.is_disabled() {
                true => disabled += 1,
                false => plans[account.plan as usize] += 1,
            }
        }
        (plans, disabled)
    }

    /// Returns the number of durable records since the store was created.
    pub fn journal_records(&self) -> u64 {
        self.0.shared.journal.durable_seq()
    }

    /// Returns the lengths of the queues. Visits every watched name, so call it on a blocking
    /// thread. Writes continue meanwhile.
    pub fn queues(&self) -> Queues {
        let (deliveries, first_due, watched) = {
            let state = self.state();
            let mut pending = state.queue.pending();
            (pending.len(), pending.next().map(|due| due.0), state.watched.clone())
        };
        let (watched, unseen) = watched.counts();
        Queues { deliveries, first_due, watched, unseen }
    }
}

/// The counters by plan, kind and outcome.
type Usage = [[[Count; 2]; 2]; Plan::ALL.len()];

/// Counts a request or export that was charged or refused.
pub fn count_usage(plan: Plan, counter: Counter, granted: bool) {
    static USAGE: LazyLock<Usage> = LazyLock::new(|| {
        let new = |plan: Plan, kind, outcome| {
            counter!(
                "dropdex_usage_total", "plan" => plan.as_str(), "kind" => kind, "outcome" => outcome
            )
        };
        Plan::ALL.map(|plan| {
            ["request", "export"].map(|kind| ["refused", "granted"].map(|did| new(plan, kind, did)))
        })
    });
    let kind = match counter {
        Counter::Requests => 0,
        Counter::Exports => 1,
    };
    USAGE[plan as usize][kind][usize::from(granted)].increment(1);
}
