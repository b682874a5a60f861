//! Limits of open connections, in total and per client network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use metrics::{Counter, Gauge, counter, gauge};

use crate::edge::peer::network;
use crate::server::settings::ConnectionLimits;

/// The slots of all connections.
pub(super) struct ConnectionSlots {
    limits: ConnectionLimits,
    /// Locked only for one map access.
    taken: Mutex<OpenConnections>,
    open: Gauge,
    accepted: Counter,
    refused_total: Counter,
    refused_address: Counter,
}

#[derive(Default)]
struct OpenConnections {
    total: u32,
    /// Number of connections per client network; networks without any are removed.
    by_network: HashMap<IpAddr, u32>,
}

/// The slot of one connection, released on drop.
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    /// The client network that it counts against; `None` if exempt.
    network: Option<IpAddr>,
}

impl ConnectionSlots {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<ConnectionSlots> {
        Arc::new(ConnectionSlots {
            limits,
            taken: Mutex::default(),
            open: gauge!("dropdex_connections_open"),
            accepted: counter!("dropdex_connections_total"),
            refused_total: counter!("dropdex_connections_refused_total", "limit" => "total"),
            refused_address: counter!("dropdex_connections_refused_total", "limit" => "address"),
        })
    }

    /// Takes a slot for a connection from `address`. Returns `None` if a limit is reached. An `exempt`
    /// connection counts only against the total.
    pub(super) fn take(
        self: &Arc<ConnectionSlots>,
        address: IpAddr,
        exempt: bool,
    ) -> Option<ConnectionSlot> {
        let network = (!exempt).then(|| network(address));
        let mut taken = self.taken();
        if taken.total >= self.limits.total {
            self.refused_total.increment(1);
            return None;
        }
        if let Some(network) = network {
            let connections = taken.by_network.entry(network).or_default();
            if *connections >= self.limits.per_address {
                self.refused_address.increment(1);
                return None;
            }
            *connections += 1;
        }
        taken.total += 1;
        self.accepted.increment(1);
        self.open.set(taken.total);
        Some(ConnectionSlot { slots: Arc::clone(self), network })
    }

    /// The number of open connections.
    pub(super) fn open(&self) -> u32 {
        self.taken().total
    }

    fn taken(&self) -> MutexGuard<'_, OpenConnections> {
        self.taken.lock().expect("no code panics holding this lock")
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.total -= 1;
        self.slots.open.set(taken.total);
        let Some(network) = self.network else { return };
        if let Some(connections) = taken.by_network.get_mut(&network) {
            *connections -= 1;
            if *connections == 0 {
                taken.by_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_has_a_limit_and_slots_are_released() {
        let slots = ConnectionSlots::new(ConnectionLimits { total: 4, per_address: 2 });
        let one = slots.take(ip("2001:db8::1"), false).expect("the first");
        let _two = slots.take(ip("2001:db8::2"), false).expect("the second of that network");
        assert!(slots.take(ip("2001:db8::3"), false).is_none());
        let _other = slots.take(ip("192.0.2.1"), false).expect("another address");
        drop(one);
        let _again = slots.take(ip("2001:db8::3"), false).expect("one has gone");
        let _exempt = slots.take(ip("127.0.0.1"), true).expect("the fourth");
        assert!(slots.take(ip("127.0.0.1"), true).is_none(), "all are taken");
        assert_eq!(slots.open(), 4);
    }

    #[test]
    fn networks_without_connections_are_removed() {
        let slots = ConnectionSlots::new(ConnectionLimits { total: 10, per_address: 1 });
        for last in 0..200u8 {
            drop(slots.take(IpAddr::from([192, 0, 2, last]), false).expect("one at a time"));
        }
        assert!(slots.taken().by_network.is_empty());
    }
}
