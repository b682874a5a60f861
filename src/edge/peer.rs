//! The client address of a request: the peer of the connection or, behind a trusted proxy, the address
//! from `X-Forwarded-For`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::FORWARDED;

/// The client of a request, stored in its extensions by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub address: IpAddr,
    /// Whether a trusted proxy forwarded the request, so that its headers can be trusted.
    pub through_proxy: bool,
    /// Whether the proxy reports no usable address (for example `unknown`), so that `address` is the
    /// proxy's.
    pub is_hidden: bool,
}

impl Client {
    /// Determines the client behind a connection whose peer is `connected`. If the peer is one of
    /// the trusted `proxies` (in canonical form), the client is the last untrusted address in
    /// `X-Forwarded-For`; clients can forge the entries before it.
    pub fn from_headers(connected: IpAddr, headers: &HeaderMap, proxies: &[IpAddr]) -> Client {
        let is_proxy = |address: &IpAddr| proxies.contains(&address.to_canonical());
        if !is_proxy(&connected) {
            return Client { address: connected, through_proxy: false, is_hidden: false };
        }
        let mut address = connected;
        // A proxy may send only the newer `Forwarded` header. The client's address is then unknown.
        let mut is_hidden =
            headers.contains_key(FORWARDED) && !headers.contains_key("x-forwarded-for");
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        // Parsed as bytes, because forged entries may be invalid text.
        for named in lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')) {
            let Some(next) = str::from_utf8(named).ok().and_then(|text| parse(text.trim())) else {
                is_hidden = true;
                break;
            };
            address = next;
            if !is_proxy(&next) {
                break;
            }
        }
        Client { address, through_proxy: true, is_hidden }
    }

    /// The network that rate limits apply to.
    pub fn network(&self) -> IpAddr {
        network(self.address)
    }
}

/// Returns the smallest network that a provider assigns to one customer: an IPv4 address, or an
/// IPv6 /64 (RFC 6177).
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// Parses an address with or without a port, quoted or not.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let bare = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    bare.ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let proxies = [ip("127.0.0.1"), ip("10.0.0.1")];
        for (connected, forwarded, expected) in [
            ("192.0.2.1", "198.51.100.1", "192.0.2.1"),
            ("127.0.0.1", "", "127.0.0.1"),
            ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "203.0.113.9, 198.51.100.1, 10.0.0.1", "198.51.100.1"),
            ("127.0.0.1", "203.0.113.9|198.51.100.1|10.0.0.1", "198.51.100.1"),
            ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
            ("127.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
            ("127.0.0.1", "nonsense", "127.0.0.1"),
            ("127.0.0.1", "\u{e9}, 198.51.100.1", "198.51.100.1"),
            ("127.0.0.1", "198.51.100.1, \u{e9}", "127.0.0.1"),
            ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ] {
            let mut headers = HeaderMap::new();
            for line in forwarded.split('|').filter(|line| !line.is_empty()) {
                headers.append(
                    "x-forwarded-for",
                    HeaderValue::from_bytes(line.as_bytes()).expect("a value"),
                );
            }
            let client = Client::from_headers(ip(connected), &headers, &proxies);
            assert_eq!(client.address, ip(expected), "{forwarded}");
            assert_eq!(client.through_proxy, connected != "192.0.2.1");
        }
    }

    #[test]
    fn a_client_that_its_proxy_hides_counts_as_the_proxy() {
        let proxies = [ip("127.0.0.1"), ip("10.0.0.1")];
        let client = |name: &'static str, value: &str| {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
            let headers =
                HeaderMap::from_iter([(axum::http::HeaderName::from_static(name), value)]);
            Client::from_headers(ip("10.0.0.1"), &headers, &proxies)
        };
        let xff = "x-forwarded-for";
        for hidden in
            ["unknown", "_hidden", "", " ", "1.2.3.4, unknown", "1.2.3.4, 10.0.0.1:1:2", "a.b"]
        {
            let client = client(xff, hidden);
            assert!(client.is_hidden && client.address == ip("10.0.0.1"), "{hidden}");
        }
        assert!(client(xff, "unknown, 127.0.0.1").is_hidden, "behind a second proxy");
        assert!(client("forwarded", "for=unknown").is_hidden);
        for named in
            ["198.51.100.1", "[2001:db8::1]:80", "\"[2001:db8::1]:80\"", "unknown, 1.2.3.4"]
        {
            assert!(!client(xff, named).is_hidden, "{named}");
        }
        assert!(!client("via", "1.1 a").is_hidden, "a request of the proxy itself");
    }
}
