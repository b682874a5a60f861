//! Distinguishes public from private addresses, to guard calls to addresses that users choose (SSRF).
//! Nothing is resolved here.
//!
//! The table lists the addresses to which users must not make this machine connect: those of the
//! IANA special-purpose address registries, and those that cloud providers reserve. [`AllowList`]
//! holds the exceptions that an operator configures.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use serde::Deserialize;
use url::{Host, Url};

/// A block of IPv4 addresses: its first address and the length of its prefix in bits, 1 to 32.
type Block4 = (Ipv4Addr, u32);
/// A block of IPv6 addresses, with a prefix of 1 to 128 bits.
type Block6 = (Ipv6Addr, u32);

/// IPv4 blocks that are not public. All other IPv4 addresses are public.
pub const IPV4_DENIED: &[Block4] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT, and a cloud's metadata
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure's host agent
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, and most clouds' metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments, and a cloud's metadata
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24),  // AS112
    (Ipv4Addr::new(192, 52, 193, 0), 24),  // AMT
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(192, 175, 48, 0), 24),  // AS112
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, and broadcast
];

/// The only IPv6 block that can be public: global unicast. Loopback, mapped, translated (NAT64,
/// SIIT), unique local, link-local and multicast addresses all lie outside.
pub const IPV6_ALLOWED: Block6 = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks within [`IPV6_ALLOWED`] that are not public.
pub const IPV6_DENIED: &[Block6] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // Teredo, ORCHID, benchmarking, AS112
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Returns true if `address` belongs to the public Internet.
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => is_global_v6(address),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    !IPV4_DENIED.iter().any(|&(first, bits)| {
        let rest = 32 - bits;
        u32::from(address) >> rest == u32::from(first) >> rest
    })
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let within = |&(first, bits): &Block6| {
        let rest = 128 - bits;
        u128::from(address) >> rest == u128::from(first) >> rest
    };
    within(&IPV6_ALLOWED)
        && !IPV6_DENIED.iter().any(within)
        && isatap(address).is_none_or(is_global_v4)
}

/// A block of addresses: `10.1.0.0/16`, `fd00::/8`. Without a prefix length, one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    first: IpAddr,
    /// Bits of the prefix, up to the width of the address.
    bits: u32,
}

impl Network {
    /// Returns true if the block contains `address`. An IPv4-mapped IPv6 address does not match an
    /// IPv4 block.
    pub fn covers(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(ip)) => {
                (u32::from(first) ^ u32::from(ip)).leading_zeros() >= self.bits
            }
            (IpAddr::V6(first), IpAddr::V6(ip)) => {
                (u128::from(first) ^ u128::from(ip)).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }

    /// Parses a block. The error completes a sentence that begins with the text.
    fn parse(text: &str) -> Result<Network, &'static str> {
        let (first, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let first: IpAddr = first.parse().map_err(|_| "is not an IP address")?;
        let width = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse::<u32>().map_err(drop));
        let bits = bits.ok().filter(|&bits| bits <= width).ok_or("has an invalid prefix length")?;
        let rest = match first {
            IpAddr::V4(first) => u32::from(first).checked_shl(bits).unwrap_or(0) != 0,
            IpAddr::V6(first) => u128::from(first).checked_shl(bits).unwrap_or(0) != 0,
        };
        if rest {
            Err("is not the first address of its block")
        } else {
            Ok(Network { first, bits })
        }
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Network, String> {
        Network::parse(&text).map_err(|what| {
            format!("`{text}` {what}; write an address and its prefix length, such as 192.0.2.0/24")
        })
    }
}

/// A block of addresses and a port that an operator allows although they are not public:
/// `10.1.0.0/16:8443`, `127.0.0.1/32:9000`, `[fd00::/8]:443`. Without a prefix length, one address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Allowed {
    network: Network,
    port: u16,
}

impl Allowed {
    /// Returns true if the block contains `address`.
    pub fn covers(&self, address: SocketAddr) -> bool {
        self.network.covers(address.ip()) && self.port == address.port()
    }
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Allowed, String> {
        let wrong = |what: &str| {
            format!(
                "`{text}` {what}; write an address, its prefix length and a port, such as \
                 127.0.0.1/32:9000 or [fd00::/8]:443"
            )
        };
        let (block, port) = text.rsplit_once(':').ok_or_else(|| wrong("has no port"))?;
        let port =
            port.parse().ok().filter(|&port| port > 0).ok_or_else(|| wrong("has no port"))?;
        let bare = block.strip_prefix('[').and_then(|block| block.strip_suffix(']'));
        let network = Network::parse(bare.unwrap_or(block)).map_err(wrong)?;
        if network.first.is_ipv6() != bare.is_some() {
            return Err(wrong("needs brackets around IPv6 and none around IPv4"));
        }
        Ok(Allowed { network, port })
    }
}

impl TryFrom<String> for Allowed {
    type Error = String;

    fn try_from(text: String) -> Result<Allowed, String> {
        text.parse()
    }
}

/// Addresses that an operator allows besides the public ones. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct AllowList(Vec<Allowed>);

impl AllowList {
    /// Returns true if calls to this URL may be in plain text. The guard checks the resolved address again.
    pub fn may_be_plain(&self, url: &Url) -> bool {
        let port = url.port_or_known_default().unwrap_or(0);
        match url.host() {
            Some(Host::Ipv4(address)) => self.covers((address, port).into()),
            Some(Host::Ipv6(address)) => self.covers((address, port).into()),
            Some(Host::Domain(_)) => self.has_port(port),
            None => false,
        }
    }

    /// Returns true if an entry contains `address`.
    pub fn covers(&self, address: SocketAddr) -> bool {
        self.0.iter().any(|allowed| allowed.covers(address))
    }

    /// Returns true if an entry has this port: a host name with this port may then resolve to an
    /// allowed address.
    pub fn has_port(&self, port: u16) -> bool {
        self.0.iter().any(|allowed| allowed.port == port)
    }
}

/// Returns the IPv4 address in an ISATAP interface identifier (RFC 5214 §6.1); a tunnel on the path
/// would deliver to that address.
fn isatap(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., kind, tag, high, low] = address.segments();
    let universal_bit = 0x0200;
    (kind & !universal_bit == 0 && tag == 0x5efe)
        .then(|| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(text: &str) -> bool {
        is_global(text.parse().expect(text))
    }

    /// Returns the first, last and middle address of a block, then its neighbours.
    fn edges(first: u128, bits: u32, width: u32) -> ([u128; 3], [Option<u128>; 2]) {
        let size = 1u128 << (width - bits);
        let last = first + (size - 1);
        let max = u128::MAX >> (128 - width);
        let after = (last < max).then(|| last + 1);
        ([first, last, first + size / 2], [first.checked_sub(1), after])
    }

    #[test]
    fn an_allow_list_covers_only_its_entries() {
        let covers = |entry: &str, address: &str| {
            let allowed: Allowed = entry.parse().expect(entry);
            allowed.covers(address.parse().expect(address))
        };
        for (entry, inside, outside) in [
            ("127.0.0.1/32:9000", "127.0.0.1:9000", ["127.0.0.2:9000", "127.0.0.1:443"]),
            ("127.0.0.1:9000", "127.0.0.1:9000", ["127.0.0.0:9000", "[::ffff:127.0.0.1]:9000"]),
            ("10.0.0.0/8:443", "10.255.255.255:443", ["11.0.0.0:443", "9.255.255.255:443"]),
            ("0.0.0.0/0:443", "8.8.8.8:443", ["[::1]:443", "8.8.8.8:80"]),
            ("[::1/128]:9000", "[::1]:9000", ["[::2]:9000", "127.0.0.1:9000"]),
            ("[fd00::/8]:443", "[fdff::1]:443", ["[fe00::1]:443", "[fc00::1]:443"]),
            ("[::/0]:443", "[::1]:443", ["0.0.0.1:443", "[::1]:444"]),
        ] {
            assert!(covers(entry, inside), "{entry} {inside}");
            assert!(!outside.iter().any(|address| covers(entry, address)), "{entry}");
        }
        for wrong in [
            "",
            ":",
            "127.0.0.1",
            "127.0.0.1/32",
            "127.0.0.1/32:0",
            "127.0.0.1/33:1",
            "::1:9000",
            "[::1]",
            "[127.0.0.1/32]:1",
            "127.0.0.1/8:1",
            "[fd00::1/8]:443",
            "localhost:1",
            "127.1:1",
            "127.0.0.1/-1:1",
            "127.0.0.1/32:65536",
            "[::1%1]:1",
            "fd00::/8:443",
        ] {
            assert!(wrong.parse::<Allowed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ipv4_blocks_have_exact_bounds() {
        let v4 = |raw: u128| Ipv4Addr::from(u32::try_from(raw).expect("32 bits"));
        for &(first, bits) in IPV4_DENIED {
            let (inside, outside) = edges(u32::from(first).into(), bits, 32);
            for address in inside.map(v4) {
                assert!(!is_global(address.into()), "{address} of {first}/{bits}");
            }
            for address in outside.into_iter().flatten().map(v4) {
                let of_another = IPV4_DENIED.iter().any(|&(other, other_bits)| {
                    other != first
                        && (u32::from(address) ^ u32::from(other)).leading_zeros() >= other_bits
                });
                assert_eq!(
                    is_global(address.into()),
                    !of_another,
                    "{address} beside {first}/{bits}"
                );
            }
        }
    }

    #[test]
    fn ipv6_blocks_have_exact_bounds() {
        for &(first, bits) in IPV6_DENIED {
            let (inside, outside) = edges(first.into(), bits, 128);
            for address in inside.map(Ipv6Addr::from) {
                assert!(!is_global(address.into()), "{address} of {first}/{bits}");
            }
            for address in outside.into_iter().flatten().map(Ipv6Addr::from) {
                assert!(is_global(address.into()), "{address} beside {first}/{bits}");
            }
        }
        let (inside, outside) = edges(IPV6_ALLOWED.0.into(), IPV6_ALLOWED.1, 128);
        // The last address of 2000::/3 counts as public, although it is assigned to no network.
        assert!(inside.iter().all(|&raw| is_global(Ipv6Addr::from(raw).into())));
        assert!(outside.iter().flatten().all(|&raw| !is_global(Ipv6Addr::from(raw).into())));
    }

    #[test]
    fn well_known_addresses_are_classified() {
        for public in ["1.1.1.1", "8.8.8.8", "172.15.255.255", "2606:4700:4700::1111", "2a00::1"] {
            assert!(global(public), "{public}");
        }
        for private in [
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::8.8.8.8",
            "::ffff:0:8.8.8.8",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2002:808:808::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
            "2a00::5efe:10.0.0.1",
            "2a00::200:5efe:127.0.0.1",
        ] {
            assert!(!global(private), "{private}");
        }
        assert!(global("2a00::5efe:8.8.8.8"), "ISATAP to a public address");
        assert!(global("2a00::1:5efe:10.0.0.1"), "not ISATAP");
    }
}
