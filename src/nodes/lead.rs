//! Who does the work that is done once for all nodes of a cluster.
//!
//! The leader tells every second that it is there. A node that has not heard it for [`SILENCE_MAX`] takes the lead
//! with a record of the shared log, which ends the term of the one before: two nodes may believe for a moment that
//! they lead, but the log takes the decisions of one. A leader that cannot write stops earlier than another begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};

use super::peers::Peers;
use crate::accounts::{Lead, Store};

/// A leader that was silent for this time loses the lead to the first node that takes it.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
/// A leader that could not write for this time stops its work.
const CUT_OFF_MAX: Duration = Duration::from_secs(4);
/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(250);
/// Time for the last record of a leader that stops.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// A node that may lead.
pub struct Candidate {
    pub store: Store,
    pub peers: Arc<Peers>,
    /// Whether the settings let it lead.
    pub may_lead: bool,
}

impl Candidate {
    /// Returns once this node leads.
    pub async fn leads(&self) {
        let mut looks = looks();
        loop {
            looks.tick().await;
            if self.store.leads() && self.is_able() {
                return;
            }
            let lead = self.store.lead();
            if self.should_lead(&lead) {
                match self.store.take_lead(&lead).await {
                    Ok(()) => {
                        let term = self.store.lead().term;
                        metrics::counter!("dropdex_cluster_leads_total").increment(1);
                        tracing::info!(term, "this node leads: it does the work for all nodes");
                    }
                    // Another node was first, or the log cannot be reached.
                    Err(err) => tracing::debug!(error = %err, "the lead was not taken"),
                }
            }
        }
    }

    /// Returns once this node no longer leads, or cannot tell.
    pub async fn lost(&self) {
        let mut looks = looks();
        while self.store.leads() && self.is_able() {
            looks.tick().await;
        }
        tracing::warn!("this node no longer leads; another does the work for all nodes");
    }

    /// Gives the lead up.
    pub async fn leave(&self) {
        match timeout(LEAVE_MAX, self.store.leave_lead()).await {
            Ok(Ok(())) => {}
            // The others notice after a while.
            Ok(Err(err)) => tracing::info!(error = %err, "the lead was not given up"),
            Err(_) => tracing::info!("the lead was not given up in time"),
        }
    }

    fn should_lead(&self, lead: &Lead) -> bool {
        let Some(condition) = self.store.shared_log() else { return false };
        let is_able = condition.is_caught_up
            && condition.cut_off.is_none()
            && condition.halted.is_none()
            && self.may_lead
            && self.store.is_clock_trusted();
        is_able && self.is_free(lead)
    }

    /// Whether this node may take the lead: there is no leader, it is this node since before a restart, or it is silent.
    fn is_free(&self, lead: &Lead) -> bool {
        let Some(leader) = &lead.node else { return true };
        self.store.is_node(leader)
            || self.peers.has_not_led_for(leader, Instant::now()) > SILENCE_MAX
    }

    /// Whether this node can lead on: what it does must reach the log, on the right day.
    fn is_able(&self) -> bool {
        let Some(condition) = self.store.shared_log() else { return true };
        let is_cut_off = condition.cut_off.is_some_and(|it| it.since.elapsed() > CUT_OFF_MAX);
        condition.halted.is_none() && !is_cut_off && self.store.is_clock_trusted()
    }
}

fn looks() -> tokio::time::Interval {
    let mut looks = interval(PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}
