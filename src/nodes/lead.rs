//! Leader election: decides which node does the work that only one node of a cluster does.
//!
//! The leader sends its health every second. A node that has not heard from it for [`SILENCE_MAX`]
//! takes the lead by appending a record to the shared log, which ends the previous term. Two nodes
//! may believe for a moment that they lead, but the log accepts the decisions of only one. A leader
//! that cannot write stops before another starts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};

use super::peers::Peers;
use crate::accounts::{Lead, Store};

/// Silence of the leader after which any node may take the lead. Counted from the beginning of its
/// term at the earliest.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Duration of failing writes after which a leader steps down.
const CUT_OFF_MAX: Duration = Duration::from_secs(4);
/// Poll interval.
const PERIOD: Duration = Duration::from_millis(250);
/// Timeout for the record with which a leader steps down.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// A node that may lead.
pub struct Candidate {
    pub store: Store,
    pub peers: Arc<Peers>,
    /// Whether the settings allow this node to lead.
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
                    // Another node was faster, or the log cannot be reached.
                    Err(err) => tracing::debug!(error = %err, "the lead was not taken"),
                }
            }
        }
    }

    /// Returns once this node no longer leads, or no longer knows whether it leads.
    pub async fn lost(&self) {
        let mut looks = looks();
        while self.store.leads() && self.is_able() {
            looks.tick().await;
        }
        tracing::warn!("this node no longer leads; another does the work for all nodes");
    }

    /// Gives up the lead.
    pub async fn leave(&self) {
        match timeout(LEAVE_MAX, self.store.leave_lead()).await {
            Ok(Ok(())) => {}
            // The other nodes notice its silence.
            Ok(Err(err)) => tracing::info!(error = %err, "the lead was not released"),
            Err(_) => tracing::info!("the lead was not released in time"),
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

    /// Returns true if the lead is free: there is no leader, this node led before its restart, or
    /// the leader is silent.
    fn is_free(&self, lead: &Lead) -> bool {
        let Some(leader) = &lead.node else { return true };
        self.store.is_node(leader)
            || self.peers.has_not_led_for(leader, lead.term, Instant::now()) > SILENCE_MAX
    }

    /// Returns true if this node can do the work: it must reach the log and know the day.
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
