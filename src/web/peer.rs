//! The client network that rate limits apply to.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::Web;
use crate::edge::peer::{self, Client};

/// An IPv4 address, or the /64 of an IPv6 address, the smallest block that a provider assigns to a
/// customer (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl FromRequestParts<Web> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Peer, Infallible> {
        let client = parts.extensions.get::<Client>();
        let address = client.map_or(Ipv4Addr::UNSPECIFIED.into(), |client| client.address);
        Ok(Peer::from_address(address))
    }
}

impl Peer {
    fn from_address(address: IpAddr) -> Peer {
        Peer(peer::network(address))
    }
}

#[cfg(test)]
impl From<[u8; 4]> for Peer {
    fn from(octets: [u8; 4]) -> Peer {
        Peer::from_address(octets.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_of_a_network_are_one_peer() {
        let same = |one, other| Peer::from_address(ip(one)) == Peer::from_address(ip(other));
        assert!(same("2001:db8::1", "2001:db8::ffff:0:0:2"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
    }
}
