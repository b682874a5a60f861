//! The other nodes. Each node publishes its health once a second through the servers of the stream.
//!
//! All times are those of this node's own clock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cluster::facts::NodeFacts;

/// Peers heard from since the start.
#[derive(Default)]
pub struct Peers {
    heard: Mutex<BTreeMap<String, Peer>>,
    /// The newest term, and when this node first saw it.
    term: Mutex<Option<(u64, Instant)>>,
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

    /// Returns the time since the last message in which `node` led; at most the time since this node
    /// first saw `term`. A new leader has sent nothing yet, and must not lose the lead for that.
    pub fn has_not_led_for(&self, node: &str, term: u64, now: Instant) -> Duration {
        let led_at = self.heard().get(node).and_then(|peer| peer.led_at);
        let mut newest = self.term.lock().unwrap_or_else(PoisonError::into_inner);
        newest.take_if(|(it, _)| *it != term);
        let (_, seen) = *newest.get_or_insert((term, now));
        now.duration_since(led_at.map_or(seen, |it| it.max(seen)))
    }

    /// Returns the nodes heard from since the start, by name.
    pub fn list(&self) -> Vec<Peer> {
        self.heard().values().cloned().collect()
    }

    fn heard(&self) -> MutexGuard<'_, BTreeMap<String, Peer>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "two";

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn facts(leads: bool) -> NodeFacts {
        NodeFacts { node: NODE.to_owned(), leads, ..NodeFacts::default() }
    }

    #[test]
    fn a_new_leader_is_not_silent_before_its_first_message() {
        let (peers, start) = (Peers::default(), Instant::now());
        peers.hear(facts(true), start);
        // It led a minute ago, as did another since.
        assert_eq!(peers.has_not_led_for(NODE, 7, after(start, 60)), Duration::ZERO);
        assert_eq!(peers.has_not_led_for(NODE, 7, after(start, 64)), Duration::from_secs(4));
        // Its messages of the time before it led are not heartbeats of a leader.
        peers.hear(facts(false), after(start, 65));
        assert_eq!(peers.has_not_led_for(NODE, 7, after(start, 66)), Duration::from_secs(6));
        peers.hear(facts(true), after(start, 66));
        assert_eq!(peers.has_not_led_for(NODE, 7, after(start, 67)), Duration::from_secs(1));
    }

    #[test]
    fn each_term_begins_anew() {
        let (peers, start) = (Peers::default(), Instant::now());
        for term in 1..100 {
            let now = after(start, term * 10);
            assert_eq!(peers.has_not_led_for(NODE, term, now), Duration::ZERO);
            assert_eq!(
                peers.has_not_led_for(NODE, term, now + Duration::from_secs(9)),
                Duration::from_secs(9)
            );
        }
    }
}
