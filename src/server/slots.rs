//! How many connections there are, in all and from each address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, counter, gauge};

use crate::server::settings::ConnectionLimits;

/// The places for connections.
pub(super) struct ConnectionSlots {
    limits: ConnectionLimits,
    /// Held for a look-up.
    taken: Mutex<Taken>,
    open: Gauge,
    accepted: Counter,
    refused_total: Counter,
    refused_address: Counter,
}

#[derive(Default)]
struct Taken {
    total: u32,
    /// Of addresses that are counted; none that has no connection.
    by_address: HashMap<IpAddr, u32>,
}

/// A place of a connection, which is free again when this goes.
pub(super) struct ConnectionSlot {
    places: Arc<ConnectionSlots>,
    counted: Option<IpAddr>,
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

    /// A place for a connection from `address`, which is counted by itself unless it is `exempt`;
    /// `None` when there is none.
    pub(super) fn take(
        self: &Arc<ConnectionSlots>,
        address: IpAddr,
        exempt: bool,
    ) -> Option<ConnectionSlot> {
        let counted = (!exempt).then(|| network(address));
        let mut taken = self.taken.lock().expect("no code panics holding this lock");
        if taken.total >= self.limits.total {
            self.refused_total.increment(1);
            return None;
        }
        if let Some(address) = counted {
            let connections = taken.by_address.entry(address).or_default();
            if *connections >= self.limits.per_address {
                self.refused_address.increment(1);
                return None;
            }
            *connections += 1;
        }
        taken.total += 1;
        self.accepted.increment(1);
        self.open.set(taken.total);
        Some(ConnectionSlot { places: Arc::clone(self), counted })
    }

    /// Connections there are.
    pub(super) fn open(&self) -> u32 {
        self.taken.lock().expect("no code panics holding this lock").total
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().expect("no code panics holding this lock");
        taken.total -= 1;
        self.places.open.set(taken.total);
        let Some(address) = self.counted else { return };
        if let Some(connections) = taken.by_address.get_mut(&address) {
            *connections -= 1;
            if *connections == 0 {
                taken.by_address.remove(&address);
            }
        }
    }
}

/// What one customer of a provider has at least: an IPv4 address, a /64 of IPv6 (RFC 6177).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_its_share_and_gives_it_back() {
        let places = ConnectionSlots::new(ConnectionLimits { total: 4, per_address: 2 });
        let one = places.take(ip("2001:db8::1"), false).expect("the first");
        let _two = places.take(ip("2001:db8::2"), false).expect("the second of that network");
        assert!(places.take(ip("2001:db8::3"), false).is_none());
        let _other = places.take(ip("192.0.2.1"), false).expect("another address");
        drop(one);
        let _again = places.take(ip("2001:db8::3"), false).expect("one has gone");
        let _exempt = places.take(ip("127.0.0.1"), true).expect("the fourth");
        assert!(places.take(ip("127.0.0.1"), true).is_none(), "all are taken");
        assert_eq!(places.open(), 4);
    }

    #[test]
    fn addresses_without_a_connection_are_forgotten() {
        let places = ConnectionSlots::new(ConnectionLimits { total: 10, per_address: 1 });
        for last in 0..200u8 {
            drop(places.take(IpAddr::from([192, 0, 2, last]), false).expect("one at a time"));
        }
        assert!(places.taken.lock().expect("no panic").by_address.is_empty());
    }
}
