//! What is told of all accounts together, to whoever runs the service.

use std::sync::LazyLock;

use metrics::{Counter as Count, counter};

use crate::accounts::quota::Counter;
use crate::accounts::store::Store;
use crate::vocab::plan::Plan;

impl Store {
    /// How many accounts each plan has, in the order of [`Plan::ALL`], and how many are shut.
    pub fn accounts_by_plan(&self) -> ([u64; Plan::ALL.len()], u64) {
        let (mut plans, mut disabled) = ([0; Plan::ALL.len()], 0);
        for account in self.state().accounts() {
            match account.disabled {
                true => disabled += 1,
                false => plans[account.plan as usize] += 1,
            }
        }
        (plans, disabled)
    }

    /// Records known to be on disk, of the whole life of the store.
    pub fn journal_records(&self) -> u64 {
        self.0.shared.journal.durable_seq()
    }
}

/// Whether it was granted, by plan and by what was counted.
type Usage = [[[Count; 2]; 2]; Plan::ALL.len()];

/// Counts one more of what is counted against allowances.
pub(super) fn count_usage(plan: Plan, counter: Counter, granted: bool) {
    static USAGE: LazyLock<Usage> = LazyLock::new(|| {
        let of = |plan: Plan, kind, outcome| {
            counter!(
                "dropdex_usage_total", "plan" => plan.as_str(), "kind" => kind, "outcome" => outcome
            )
        };
        Plan::ALL.map(|plan| {
            ["request", "export"].map(|kind| ["refused", "granted"].map(|did| of(plan, kind, did)))
        })
    });
    let kind = match counter {
        Counter::Requests => 0,
        Counter::Exports => 1,
    };
    USAGE[plan as usize][kind][usize::from(granted)].increment(1);
}
