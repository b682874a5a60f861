//! Where a request comes from: the address that throttles go by.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::request::Parts;

use crate::web::Web;

/// The client's network: an IPv4 address, or the /64 of an IPv6 address, which is what one customer
/// of a provider has at least (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl FromRequestParts<Web> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Peer, Infallible> {
        let connected = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = connected.map_or(Ipv4Addr::UNSPECIFIED.into(), |ConnectInfo(it)| it.ip());
        Ok(Peer::of(client(address, &parts.headers, &web.settings.proxies)))
    }
}

impl Peer {
    fn of(address: IpAddr) -> Peer {
        match address.to_canonical() {
            IpAddr::V4(address) => Peer(address.into()),
            IpAddr::V6(address) => {
                Peer(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into())
            }
        }
    }
}

#[cfg(test)]
impl From<[u8; 4]> for Peer {
    fn from(octets: [u8; 4]) -> Peer {
        Peer::of(octets.into())
    }
}

/// Who is behind `connected`: where that is a proxy of the operator's, the last address in
/// `X-Forwarded-For` that is none. What stands before it anybody can have written.
fn client(connected: IpAddr, headers: &HeaderMap, proxies: &[IpAddr]) -> IpAddr {
    let is_proxy = |address: &IpAddr| proxies.contains(&address.to_canonical());
    if !is_proxy(&connected) {
        return connected;
    }
    let lines = headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok());
    let named: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
    let mut client = connected;
    for text in named.iter().rev() {
        let Some(address) = parse(text.trim()) else { break };
        client = address;
        if !is_proxy(&address) {
            break;
        }
    }
    client
}

/// An address as proxies write it: bare, or with a port.
fn parse(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    bare.ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_is_one_peer() {
        let same = |one, other| Peer::of(ip(one)) == Peer::of(ip(other));
        assert!(same("2001:db8::1", "2001:db8::ffff:0:0:2"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
    }

    #[test]
    fn only_proxies_of_the_operators_are_believed() {
        let proxies = [ip("127.0.0.1"), ip("10.0.0.1")];
        for (connected, forwarded, expected) in [
            ("192.0.2.1", "198.51.100.1", "192.0.2.1"),
            ("127.0.0.1", "", "127.0.0.1"),
            ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "203.0.113.9, 198.51.100.1, 10.0.0.1", "198.51.100.1"),
            ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
            ("127.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
            ("127.0.0.1", "nonsense", "127.0.0.1"),
            ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ] {
            let mut headers = HeaderMap::new();
            if !forwarded.is_empty() {
                headers.insert("x-forwarded-for", forwarded.parse().expect("a value"));
            }
            assert_eq!(client(ip(connected), &headers, &proxies), ip(expected), "{forwarded}");
        }
    }
}
