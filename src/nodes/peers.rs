//! The other nodes. Each node publishes its health once a second through the servers of the stream.
//!
//! All times are those of this node's own clock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cluster::facts::NodeFacts;

/// Peers heard from since the start.
pub struct Peers {
    began: Instant,
    heard: Mutex<BTreeMap<String, Peer>>,
}

/// A peer.
#[derive(Clone, Debug)]
pub struct Peer {
    pub facts: NodeFacts,
    pub at: Instant,
    /// When the peer last led and could write.
    led_at: Option<Instant>,
}

impl Peers {
    pub fn new(now: Instant) -> Peers {
        Peers { began: now, heard: Mutex::default() }
    }

    /// Records the facts that a node sent.
    pub fn hear(&self, facts: NodeFacts, at: Instant) {
        let leads = facts.leads
            && facts.cut_off.is_none()
            && facts.halted.is_none()
            && !facts.clock_untrusted;
        let mut heard = self.heard();
        let before = heard.get(&facts.node).and_then(|peer| peer.led_at);
        let led_at = if leads { Some(at) } else { before };
        heard.insert(facts.node.clone(), Peer { facts, at, led_at });
    }

    /// Returns the time since the last message in which `node` led.
    pub fn has_not_led_for(&self, node: &str, now: Instant) -> Duration {
        let led_at = self.heard().get(node).and_then(|peer| peer.led_at);
        now.duration_since(led_at.unwrap_or(self.began))
    }

    /// Returns the nodes heard from since the start, by name.
    pub fn list(&self) -> Vec<Peer> {
        self.heard().values().cloned().collect()
    }

    fn heard(&self) -> MutexGuard<'_, BTreeMap<String, Peer>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
