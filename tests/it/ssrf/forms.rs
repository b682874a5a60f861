//! Addresses that are not public, in every notation that some parser accepts. The ranges are taken a
//! second time from the IANA special-purpose registries and the documentation of clouds, so that the
//! test does not repeat a mistake in the service's table.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::common::rng::Rng;

/// First address and prefix length.
pub const DENIED_V4: &[(&str, u32)] = &[
    ("0.0.0.0", 8),
    ("10.0.0.0", 8),
    ("100.64.0.0", 10),
    ("127.0.0.0", 8),
    ("168.63.129.16", 32),
    ("169.254.0.0", 16),
    ("172.16.0.0", 12),
    ("192.0.0.0", 24),
    ("192.0.2.0", 24),
    ("192.31.196.0", 24),
    ("192.52.193.0", 24),
    ("192.88.99.0", 24),
    ("192.168.0.0", 16),
    ("192.175.48.0", 24),
    ("198.18.0.0", 15),
    ("198.51.100.0", 24),
    ("203.0.113.0", 24),
    ("224.0.0.0", 4),
    ("240.0.0.0", 4),
    ("255.255.255.255", 32),
];

pub const DENIED_V6: &[(&str, u32)] = &[
    ("::", 128),
    ("::1", 128),
    ("::", 96),
    ("::ffff:0:0", 96),
    ("::ffff:0:0:0", 96),
    ("64:ff9b::", 96),
    ("64:ff9b:1::", 48),
    ("100::", 64),
    ("100:0:0:1::", 64),
    ("2001::", 23),
    ("2001::", 32),
    ("2001:2::", 48),
    ("2001:10::", 28),
    ("2001:20::", 28),
    ("2001:db8::", 32),
    ("2002::", 16),
    ("2620:4f:8000::", 48),
    ("3fff::", 20),
    ("4000::", 2),
    ("5f00::", 16),
    ("8000::", 1),
    ("fc00::", 7),
    ("fd00:ec2::254", 128),
    ("fe80::", 10),
    ("fec0::", 10),
    ("ff00::", 8),
];

/// Returns the first and last number of a range.
fn range(first: u128, bits: u32, width: u32) -> (u128, u128) {
    let rest = width - bits;
    let all = if rest == 128 { u128::MAX } else { (1u128 << rest) - 1 };
    (first, first | all)
}

fn within(rng: &mut Rng, (first, last): (u128, u128)) -> u128 {
    let random = (0..8).fold(0u128, |sum, _| sum << 16 | rng.below(1 << 16) as u128);
    first + random % (last - first).saturating_add(1).max(1)
}

/// Returns the first, the last and a random address of every IPv4 range.
pub fn denied_v4(rng: &mut Rng) -> Vec<Ipv4Addr> {
    let mut addresses = Vec::new();
    for (first, bits) in DENIED_V4 {
        let first: Ipv4Addr = first.parse().expect("an address");
        let range = range(u32::from(first).into(), *bits, 32);
        for raw in [range.0, range.1, within(rng, range)] {
            addresses.push(Ipv4Addr::from(u32::try_from(raw).expect("32 bits")));
        }
    }
    addresses
}

/// Returns the first, the last and a random address of every IPv6 range.
pub fn denied_v6(rng: &mut Rng) -> Vec<Ipv6Addr> {
    let mut addresses = Vec::new();
    for (first, bits) in DENIED_V6 {
        let first: Ipv6Addr = first.parse().expect("an address");
        let range = range(first.into(), *bits, 128);
        for raw in [range.0, range.1, within(rng, range)] {
            addresses.push(Ipv6Addr::from(raw));
        }
    }
    addresses
}

pub fn is_denied_v4(address: Ipv4Addr) -> bool {
    let raw = u128::from(u32::from(address));
    DENIED_V4.iter().any(|(first, bits)| {
        let first: Ipv4Addr = first.parse().expect("an address");
        let (first, last) = range(u32::from(first).into(), *bits, 32);
        (first..=last).contains(&raw)
    })
}

pub fn is_denied_v6(address: Ipv6Addr) -> bool {
    let raw = u128::from(address);
    DENIED_V6.iter().any(|(first, bits)| {
        let first: Ipv6Addr = first.parse().expect("an address");
        let (first, last) = range(first.into(), *bits, 128);
        (first..=last).contains(&raw)
    })
}

/// Returns `address` as a host, in every notation that parses as this address.
pub fn spellings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let whole = u32::from(address);
    let dotted = address.to_string();
    let digits = |of: &dyn Fn(u32) -> u32| -> String {
        let digit =
            |c: char| c.to_digit(10).map_or(c, |digit| char::from_u32(of(digit)).expect("a digit"));
        dotted.chars().map(digit).collect()
    };
    vec![
        dotted.clone(),
        format!("{dotted}."),
        format!("{whole}"),
        format!("{whole}."),
        format!("0{whole:o}"),
        format!("{whole:#x}"),
        format!("0X{whole:X}"),
        format!("{a}.{}", whole & 0xff_ffff),
        format!("{a}.{b}.{}", whole & 0xffff),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("000{a:o}.{b:#x}.{c}.{d}"),
        digits(&|digit| 0xff10 + digit),
        digits(&|digit| 0x1d7d8 + digit),
        digits(&|digit| if digit == 0 { 0x24ea } else { 0x245f + digit }),
        dotted.replace('.', "\u{3002}"),
        dotted.replace('.', "\u{ff0e}"),
        dotted.replace('.', "%2e"),
        dotted.bytes().map(|byte| format!("%{byte:02x}")).collect(),
    ]
}

/// Returns IPv6 hosts that embed `address`, or appear to.
pub fn embeddings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    vec![
        format!("[::ffff:{address}]"),
        format!("[::FFFF:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:ffff:{address}]"),
        format!("[::{address}]"),
        format!("[::ffff:0:{address}]"),
        format!("[64:ff9b::{address}]"),
        format!("[64:ff9b:1::{high:x}:{low:x}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
        format!("[2001:0:{high:x}:{low:x}::1]"),
        format!("[2001:0:808:808::{:x}:{:x}]", !high, !low),
        format!("[fe80::5efe:{address}]"),
        format!("[2a00:1450::5efe:{address}]"),
        format!("[2a00:1450::200:5efe:{high:x}:{low:x}]"),
    ]
}

/// Returns `address` as a host, in every notation.
pub fn spellings_v6(address: Ipv6Addr) -> Vec<String> {
    let words = address.segments();
    let expanded = words.map(|word| format!("{word:04x}")).join(":");
    let [.., high, low] = words;
    let tail = Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let front = words[..6].iter().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(":");
    vec![
        format!("[{address}]"),
        format!("[{}]", address.to_string().to_uppercase()),
        format!("[{expanded}]"),
        format!("[{front}:{tail}]"),
        format!("[{address}%eth0]"),
        format!("[{address}%25eth0]"),
        format!("[{address}%251]"),
        format!("{address}"),
        format!("[[{address}]]"),
    ]
}

/// Decorations of a host that some clients ignore.
pub const DRESSES: &[&str] = &[
    "https://{}/",
    "HTTPS://{}:443",
    "https://{}:8443/hook?a=b",
    "https://user:pass@{}/",
    "https://example.com@{}/",
    "https://example.com:443@{}:8443/",
    "https://\t{}/",
    "https://{}\t/",
    "https://{}/\n",
    "https://{}\\@example.com/",
    "https://example.com\\@{}/",
    "https:{}/",
    "https:///{}/",
    "https:\\\\{}/",
    " https://{}/",
    "https://{}#@example.com/",
    "https://{}:80/",
    "http://{}/",
    "//{}/",
    "https://[{}]/",
];
