//! Validation of webhook URLs and of URLs in settings. Nothing is resolved here: the addresses of a
//! host name are checked when it is dialled.
//!
//! A URL is parsed once, by the rules of the URL Standard, which read octal, hexadecimal, short,
//! full-width and circled spellings of an IPv4 address as that address. The rules apply to the
//! parsed host, and the canonical text is stored, so that no later parser can read it differently.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::net::{self, AllowList, Network};
use crate::tld::is_label;

/// Maximum bytes of a webhook URL, as sent and in canonical form.
pub const WEBHOOK_URL_MAX: usize = 2_048;
/// Ports of a webhook, unless an operator allows others.
pub const WEBHOOK_PORTS: [u16; 2] = [443, 8443];

/// Maximum bytes of a URL in the settings.
const BASE_URL_MAX: usize = 2_048;

/// Host names that never belong to a public server; names below them are also denied. These hosts
/// are denied by name, since a private resolver may return any address for them, and some resolvers
/// resolve names in `in-addr.arpa` and `ip6.arpa` themselves.
const NAMES_DENIED: &[&str] = &[
    // Special use: RFC 6761, 6762, 7686 and 9476. Nothing below `arpa` is a web server (RFC 3172).
    "alt",
    "arpa",
    "example",
    "invalid",
    "local",
    "localhost",
    "onion",
    "test",
    // Reserved by ICANN for private networks, or not delegated because private networks use them.
    "corp",
    "home",
    "internal",
    "mail",
    // Not delegated, but common in private networks.
    "domain",
    "lan",
    "localdomain",
    "private",
    "svc",
    "workgroup",
    // Metadata services of clouds.
    "instance-data",
    "metadata.amazonaws.com",
    "metadata.goog",
];
/// Name of a Kubernetes cluster's API, followed by any cluster domain.
const KUBERNETES: &str = "kubernetes.default";

/// URL of a webhook: https, on an allowed port, at a public address or at a host name that is not
/// known to be private. Invariant: canonical by the URL Standard, at most [`WEBHOOK_URL_MAX`] bytes,
/// no user, no fragment.
///
/// A URL read from a checksummed file is not validated again until it is dialled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookUrl(String);

/// Reason why a text is not a [`WebhookUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookUrlError {
    #[error("must have at most {WEBHOOK_URL_MAX} characters")]
    TooLong,
    #[error("must not hold white space, control characters or backslashes")]
    BadCharacter,
    #[error("must start with https://")]
    NotHttps,
    #[error("is not a URL: {0}")]
    Malformed(url::ParseError),
    #[error("must not hold a user name or password")]
    UserInfo,
    #[error("must not have a fragment (#...)")]
    Fragment,
    #[error("the port must be 443 or 8443, not {0}")]
    Port(u16),
    #[error("`{0}` is not a public host name: letters, digits and hyphens, two labels or more")]
    BadHost(String),
    #[error("`{0}` is not reachable from the Internet")]
    DeniedName(String),
    #[error("{0} is not a public address")]
    DeniedAddress(IpAddr),
}

impl WebhookUrlError {
    /// Returns the error for the URL of a channel, with advice for the operator.
    pub fn of_channel(&self) -> String {
        match self {
            WebhookUrlError::Port(_)
            | WebhookUrlError::DeniedName(_)
            | WebhookUrlError::DeniedAddress(_) => {
                format!("{self}; the operator can list its address and port in `[webhooks] allow`")
            }
            _ => self.to_string(),
        }
    }
}

impl WebhookUrl {
    /// Parses a URL with the default rules, which allow public addresses only.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<WebhookUrl, WebhookUrlError> {
        WebhookUrl::parse_by(&HostRules::default(), text)
    }

    /// Parses a URL with the operator's rules.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse_by(rules: &HostRules, text: &str) -> Result<WebhookUrl, WebhookUrlError> {
        check_text(text)?;
        let mut url = Url::parse(text).map_err(WebhookUrlError::Malformed)?;
        if url.fragment().is_some() {
            return Err(WebhookUrlError::Fragment);
        }
        rules.check(&url)?;
        if let Some(Host::Domain(name)) = url.host() {
            let name = without_dot(name).to_owned();
            url.set_host(Some(&name)).map_err(WebhookUrlError::Malformed)?;
        }
        let canonical = String::from(url);
        // Percent-encoding may have lengthened the URL.
        let fits = canonical.len() <= WEBHOOK_URL_MAX;
        fits.then_some(WebhookUrl(canonical)).ok_or(WebhookUrlError::TooLong)
    }

    /// Wraps a URL from a checksummed file, which [`WebhookUrl::parse`] accepted when it was written.
    pub fn from_stored(text: String) -> WebhookUrl {
        WebhookUrl(text)
    }

    /// Returns the canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the parsed URL.
    pub fn to_url(&self) -> Url {
        Url::parse(&self.0).expect("a canonical URL parses")
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Rejects texts that the URL parser would repair but other parsers would read differently.
fn check_text(text: &str) -> Result<(), WebhookUrlError> {
    if text.len() > WEBHOOK_URL_MAX {
        return Err(WebhookUrlError::TooLong);
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(WebhookUrlError::BadCharacter);
    }
    let (scheme, rest) = text.split_once("://").ok_or(WebhookUrlError::NotHttps)?;
    // The parser would skip a third slash and read a host after it.
    if !scheme.eq_ignore_ascii_case("https") || rest.starts_with('/') {
        return Err(WebhookUrlError::NotHttps);
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') { Err(WebhookUrlError::UserInfo) } else { Ok(()) }
}

/// The operator's additions to the rules for hosts; none by default.
#[derive(Clone, Debug, Default)]
pub struct HostRules {
    /// Allowed addresses that are not public.
    pub allow: AllowList,
    /// Denied names; names below them are also denied.
    pub deny_names: Vec<DeniedName>,
    /// Denied networks that are public, such as the operator's own.
    pub deny_networks: Vec<Network>,
}

impl HostRules {
    /// Checks host and port of a URL without resolving it: a literal address must be public or
    /// allowed, a name must be well-formed and not denied, and a port other than [`WEBHOOK_PORTS`]
    /// needs an allowed address with that port.
    ///
    /// # Errors
    /// The first rule that the URL breaks.
    pub fn check(&self, url: &Url) -> Result<(), WebhookUrlError> {
        let port = url.port_or_known_default().unwrap_or(0);
        match url.host() {
            Some(Host::Ipv4(address)) => self.check_address((address, port).into()),
            Some(Host::Ipv6(address)) => self.check_address((address, port).into()),
            Some(Host::Domain(name)) => {
                if !WEBHOOK_PORTS.contains(&port) && !self.allow.has_port(port) {
                    return Err(WebhookUrlError::Port(port));
                }
                self.check_name(without_dot(name))
            }
            None => Err(WebhookUrlError::BadHost(String::new())),
        }
    }

    /// Checks an address before it is dialled.
    ///
    /// # Errors
    /// The address is neither allowed, nor public with one of [`WEBHOOK_PORTS`] and not denied.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), WebhookUrlError> {
        if !self.allow.covers(address) && !WEBHOOK_PORTS.contains(&address.port()) {
            return Err(WebhookUrlError::Port(address.port()));
        }
        self.check_network(address)
    }

    /// Checks an address before it is dialled for a protocol other than HTTP.
    ///
    /// # Errors
    /// The address is neither allowed, nor public and not denied.
    pub fn check_network(&self, address: SocketAddr) -> Result<(), WebhookUrlError> {
        let is_denied = || self.deny_networks.iter().any(|denied| denied.covers(address.ip()));
        if self.allow.covers(address) || net::is_global(address.ip()) && !is_denied() {
            Ok(())
        } else {
            Err(WebhookUrlError::DeniedAddress(address.ip()))
        }
    }

    /// Checks a name in lower-case A-label form, without a trailing dot.
    fn check_name(&self, name: &str) -> Result<(), WebhookUrlError> {
        let kubernetes = name
            .strip_prefix(KUBERNETES)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let built_in = NAMES_DENIED.iter().any(|denied| is_below(name, denied));
        let configured = self.deny_names.iter().any(|denied| is_below(name, &denied.0));
        // This precedes the check of the form, which would reject `localhost` for its single label.
        if built_in || configured || kubernetes {
            return Err(WebhookUrlError::DeniedName(name.to_owned()));
        }
        let well_formed = name.len() <= 253 && name.contains('.') && name.split('.').all(is_label);
        well_formed.then_some(()).ok_or_else(|| WebhookUrlError::BadHost(name.to_owned()))
    }
}

/// A name to which an operator denies all calls, including the names below it: `example.com`. In
/// A-label form, without leading and trailing dots.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DeniedName(String);

impl TryFrom<String> for DeniedName {
    type Error = String;

    fn try_from(text: String) -> Result<DeniedName, String> {
        let bare = text.strip_prefix("*.").unwrap_or(&text).trim_matches('.');
        match Host::parse(bare) {
            Ok(Host::Domain(name)) if name.split('.').all(is_label) => Ok(DeniedName(name)),
            _ => Err(format!("`{text}` is not a host name")),
        }
    }
}

/// A URL in the settings, to which paths are appended: http or https, no user, query or fragment.
/// Stored without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Returns the text, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host as a name that users' webhooks may not call; `None` if it is a literal
    /// address.
    pub fn host_name(&self) -> Option<DeniedName> {
        let url = Url::parse(&self.0).ok()?;
        DeniedName::try_from(url.domain()?.to_owned()).ok()
    }

    /// Returns the host and, unless it is the default of the scheme, the port.
    pub fn authority(&self) -> String {
        let authority = self.0.split_once("://").map_or("", |(_, rest)| rest);
        authority.split('/').next().unwrap_or_default().to_owned()
    }

    /// Returns scheme, host and port: `https://example.com:443`.
    pub fn origin(&self) -> String {
        let url = Url::parse(&self.0).expect("a base URL is a URL");
        let port = url.port_or_known_default().unwrap_or_default();
        format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or_default())
    }

    /// Returns the path without a trailing slash: empty, or `/drops`.
    pub fn path(&self) -> &str {
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        rest.find('/').map_or("", |slash| &rest[slash..])
    }

    /// Returns true for https.
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https:")
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(text: String) -> Result<BaseUrl, String> {
        let url = Url::parse(&text).map_err(|err| format!("`{text}` is not a URL: {err}"))?;
        let bare = url.username().is_empty() && url.password().is_none();
        let plain = bare && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(format!("`{text}` must start with https:// or http:// and a host"));
        }
        if !plain || text.len() > BASE_URL_MAX {
            return Err(format!("`{text}` must have no user, no query and no fragment"));
        }
        Ok(BaseUrl(url.as_str().trim_end_matches('/').to_owned()))
    }
}

fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// Returns true if `name` is `suffix` or a name below it.
fn is_below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::net::{IPV4_DENIED, IPV6_DENIED};

    fn parse(text: &str) -> Result<String, WebhookUrlError> {
        WebhookUrl::parse(text).map(|url| url.0)
    }

    /// Returns spellings that the URL parser reads as `address`.
    fn spellings(address: Ipv4Addr) -> Vec<String> {
        let [a, b, c, d] = address.octets();
        let whole = u32::from(address);
        let dotted = address.to_string();
        let digits = |zero: u32| -> String {
            let digit = |c: char| match c.to_digit(10) {
                Some(digit) => char::from_u32(zero + digit).expect("ten digits in a row"),
                None => c,
            };
            dotted.chars().map(digit).collect()
        };
        let circled: String = dotted
            .chars()
            .map(|c| match c.to_digit(10) {
                Some(0) => '\u{24ea}',
                Some(digit) => char::from_u32(0x245f + digit).expect("circled 1 to 9"),
                None => c,
            })
            .collect();
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
            digits(0xff10),
            digits(0x1d7d8),
            circled,
            dotted.replace('.', "\u{3002}"),
            dotted.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        ]
    }

    /// Returns IPv6 addresses that embed `address`.
    fn embeddings(address: Ipv4Addr) -> Vec<String> {
        let [a, b, c, d] = address.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        vec![
            format!("[::ffff:{address}]"),
            format!("[::ffff:{high:x}:{low:x}]"),
            format!("[0:0:0:0:0:FFFF:{address}]"),
            format!("[::{address}]"),
            format!("[::ffff:0:{address}]"),
            format!("[64:ff9b::{address}]"),
            format!("[64:ff9b:1::{address}]"),
            format!("[2002:{high:x}:{low:x}::1]"),
            format!("[2001:0:{high:x}:{low:x}::1]"),
            format!("[fe80::5efe:{address}]"),
        ]
    }

    #[test]
    fn private_addresses_are_denied_in_every_spelling() {
        let mut tried = 0;
        for &(first, bits) in IPV4_DENIED {
            let first = u32::from(first);
            let last = first | u32::MAX.checked_shr(bits).unwrap_or(0);
            for address in [first, last, first + (last - first) / 3].map(Ipv4Addr::from) {
                let isatap =
                    [format!("[2a00::5efe:{address}]"), format!("[2a00::200:5efe:{address}]")];
                let hosts = spellings(address).into_iter().chain(embeddings(address));
                for host in hosts.chain(isatap) {
                    for text in [format!("https://{host}/hook"), format!("HTTPS://{host}:8443")] {
                        let got = parse(&text);
                        let denied = matches!(got, Err(WebhookUrlError::DeniedAddress(_)));
                        assert!(denied, "{text}: {got:?}");
                        tried += 1;
                    }
                }
            }
        }
        for &(first, bits) in IPV6_DENIED {
            let last = u128::from(first) | u128::MAX >> bits;
            for address in [first, Ipv6Addr::from(last)] {
                let text = format!("https://[{address}]/");
                assert_eq!(parse(&text), Err(WebhookUrlError::DeniedAddress(address.into())));
                tried += 1;
            }
        }
        assert!(tried > 3_000, "{tried}");
    }

    #[test]
    fn spellings_of_a_public_address_are_canonicalised() {
        let neighbours = IPV4_DENIED.iter().filter_map(|&(first, bits)| {
            let last = u32::from(first) | u32::MAX.checked_shr(bits).unwrap_or(0);
            Some(Ipv4Addr::from(last.checked_add(1)?))
        });
        let public = [Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::new(100, 63, 255, 255)];
        let public = public.into_iter().chain(neighbours);
        for address in public.filter(|&address| net::is_global(address.into())) {
            for host in spellings(address) {
                let canonical = format!("https://{address}/a?b=c");
                assert_eq!(parse(&format!("https://{host}/a?b=c")), Ok(canonical), "{host}");
            }
            for host in embeddings(address) {
                let got = parse(&format!("https://{host}/"));
                assert!(matches!(got, Err(WebhookUrlError::DeniedAddress(_))), "{host}: {got:?}");
            }
        }
    }

    fn rules(allow: &[&str], deny: &[&str]) -> HostRules {
        let allow = serde_json::from_value(serde_json::json!(allow)).expect("a list");
        let deny = deny.iter().map(|name| DeniedName::try_from((*name).to_owned()));
        let deny_names = deny.collect::<Result<_, _>>().expect("names");
        HostRules { allow, deny_names, deny_networks: Vec::new() }
    }

    #[test]
    fn configured_rules_allow_and_deny_hosts() {
        let rules = rules(
            &["127.0.0.1/32:9000", "[::1/128]:443", "10.0.0.0/8:8443"],
            &["Example.org", "*.mü.com."],
        );
        for (text, allowed) in [
            ("https://127.0.0.1:9000/x", true),
            ("https://0x7f.1:9000/x", true),
            ("https://[::1]/", true),
            ("https://10.9.8.7:8443/", true),
            ("https://hooks.example.com:9000/", true),
            ("https://8.8.8.8/", true),
            ("http://127.0.0.1:9000/x", false),
            ("https://127.0.0.1/", false),
            ("https://127.0.0.2:9000/", false),
            ("https://8.8.8.8:9000/", false),
            ("https://[::ffff:127.0.0.1]:9000/", false),
            ("https://10.9.8.7/", false),
            ("https://hooks.example.com:9001/", false),
            ("https://localhost:9000/", false),
            ("https://example.org/", false),
            ("https://a.b.example.org/", false),
            ("https://notexample.org/", true),
            ("https://a.xn--m-eha.com/", false),
            ("https://xn--m-eha.com.net/", true),
        ] {
            let got = WebhookUrl::parse_by(&rules, text);
            assert_eq!(got.is_ok(), allowed, "{text}: {got:?}");
        }
        for wrong in ["", ".", "a..b", "127.0.0.1", "a b", "-a"] {
            assert!(DeniedName::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn configured_networks_are_denied_unless_an_address_is_allowed() {
        let networks = ["8.8.8.0/24", "2606:4700::/32", "1.1.1.1"];
        let rules = HostRules {
            deny_networks: serde_json::from_value(serde_json::json!(networks)).expect("networks"),
            ..rules(&["8.8.8.8/32:8443"], &[])
        };
        for (text, allowed) in [
            ("https://8.8.8.8/", false),
            ("https://8.8.8.255/", false),
            ("https://0x8080808/", false),
            ("https://8.8.9.0/", true),
            ("https://8.8.7.255/", true),
            ("https://8.8.8.8:8443/", true),
            ("https://8.8.8.9:8443/", false),
            ("https://1.1.1.1/", false),
            ("https://1.1.1.2/", true),
            ("https://[2606:4700::1111]/", false),
            ("https://[2606:4701::1111]/", true),
        ] {
            let got = WebhookUrl::parse_by(&rules, text);
            assert_eq!(got.is_ok(), allowed, "{text}: {got:?}");
        }
        for wrong in ["", "8.8.8.1/24", "8.8.8.0/33", "8.8.8.0/24:443", "[::1]", "host"] {
            assert!(serde_json::from_value::<Network>(wrong.into()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn base_urls_have_no_user_query_or_fragment() {
        for (text, kept) in [
            ("https://drops.example.com", "https://drops.example.com"),
            ("HTTPS://Drops.Example.com/", "https://drops.example.com"),
            ("http://127.0.0.1:8080/under/", "http://127.0.0.1:8080/under"),
        ] {
            let base = BaseUrl::try_from(text.to_owned()).expect(text);
            assert_eq!(base.as_str(), kept);
        }
        for wrong in [
            "",
            "drops.example.com",
            "ftp://example.com",
            "https://",
            "https://a@example.com",
            "https://example.com/?a",
            "https://example.com/#a",
        ] {
            assert!(BaseUrl::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn public_host_names_are_canonicalised() {
        let longest = "a".repeat(63);
        for (text, canonical) in [
            ("https://hooks.example.com", "https://hooks.example.com/"),
            ("HTTPS://Hooks.Example.COM:443/A?B=C", "https://hooks.example.com/A?B=C"),
            ("https://hooks.example.com.:8443/x", "https://hooks.example.com:8443/x"),
            ("https://münchen.de/ü", "https://xn--mnchen-3ya.de/%C3%BC"),
            ("https://a.b-c.d.net/../x/./y", "https://a.b-c.d.net/x/y"),
            ("https://1.2.3.4.net/", "https://1.2.3.4.net/"),
            ("https://corp.com/", "https://corp.com/"),
            ("https://in-addr.arpa.com/", "https://in-addr.arpa.com/"),
            ("https://my-svc.dev/", "https://my-svc.dev/"),
            ("https://mylocalhost.com/", "https://mylocalhost.com/"),
            ("https://internal.example.com/", "https://internal.example.com/"),
            ("https://kubernetes.defaults.com/", "https://kubernetes.defaults.com/"),
            ("https://example.com/a@b", "https://example.com/a@b"),
            ("https://%65xample.com/", "https://example.com/"),
            ("https://[2606:4700:4700:0::1111]/", "https://[2606:4700:4700::1111]/"),
            (&format!("https://{longest}.com/"), &format!("https://{longest}.com/")),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(canonical), "{text}");
            assert_eq!(parse(canonical).as_deref(), Ok(canonical), "again");
        }
    }

    #[test]
    fn private_host_names_are_denied() {
        for name in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "loc%61lhost",
            "ｌocalhost",
            "localhost.localdomain",
            "printer.local",
            "metadata.google.internal",
            "metadata.google.internal.",
            "metadata.goog",
            "metadata.amazonaws.com",
            "nas.lan",
            "router.home.arpa",
            "abc.onion",
            "instance-data",
            "254.169.254.169.in-addr.arpa",
            "8.8.8.8.in-addr.arpa",
            "8.8.8.8.in-addr.arpa.",
            "8.8.8.8.IN-ADDR.ARPA",
            "1.0.0.ip6.arpa",
            "arpa",
            "x.corp",
            "x.home",
            "x.svc",
            "x.mail",
            "x.private",
            "x.test",
            "x.invalid",
            "x.example",
            "x.alt",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ] {
            let got = parse(&format!("https://{name}/"));
            assert!(matches!(got, Err(WebhookUrlError::DeniedName(_))), "{name}: {got:?}");
        }
    }

    #[test]
    fn invalid_urls_are_rejected_with_their_reason() {
        use WebhookUrlError::*;
        let too_long = format!("https://example.com/{}", "a".repeat(WEBHOOK_URL_MAX));
        let grows = format!("https://example.com/{}", "ü".repeat(1_000));
        let long_label = format!("https://{}.com/", "a".repeat(64));
        let long_name = format!("https://{}com/", "abcdefg.".repeat(32));
        for (text, reason) in [
            ("", "must start with https://"),
            ("example.com", "must start with https://"),
            ("//example.com", "must start with https://"),
            ("http://example.com/", "must start with https://"),
            ("ftp://example.com/", "must start with https://"),
            ("https:example.com", "must start with https://"),
            ("https:/example.com", "must start with https://"),
            ("https:///example.com", "must start with https://"),
            ("javascript:alert(1)", "must start with https://"),
            ("https://", "is not a URL: empty host"),
            ("https://?x", "is not a URL: empty host"),
            ("https://:443/", "is not a URL: empty host"),
            ("https://exa mple.com/", "must not hold white space"),
            (" https://example.com/", "must not hold white space"),
            ("https://example.com/\n", "must not hold white space"),
            ("https://exa\tmple.com/", "must not hold white space"),
            ("https://example.com/\0", "must not hold white space"),
            ("https://example.com\\@127.0.0.1/", "must not hold white space"),
            ("https://example.com/\u{a0}", "must not hold white space"),
            ("https://user@example.com/", "must not hold a user name"),
            ("https://user:pass@example.com/", "must not hold a user name"),
            ("https://@example.com/", "must not hold a user name"),
            ("https://:@example.com/", "must not hold a user name"),
            ("https://127.0.0.1@example.com/", "must not hold a user name"),
            ("https://example.com/#x", "must not have a fragment"),
            ("https://example.com/#", "must not have a fragment"),
            ("https://example.com:80/", "the port must be 443 or 8443, not 80"),
            ("https://example.com:0/", "the port must be 443 or 8443, not 0"),
            ("https://example.com:4433/", "the port must be 443 or 8443, not 4433"),
            ("https://example.com:65536/", "is not a URL: invalid port"),
            ("https://example.com:x/", "is not a URL: invalid port"),
            ("https://intranet/", "`intranet` is not a public host name"),
            ("https://com./", "`com` is not a public host name"),
            ("https://example..com/", "`example..com` is not a public host name"),
            ("https://example.com../", "`example.com.` is not a public host name"),
            ("https://.example.com/", "`.example.com` is not a public host name"),
            ("https://-a.example.com/", "`-a.example.com` is not a public host name"),
            ("https://a_b.example.com/", "`a_b.example.com` is not a public host name"),
            ("https://a$b.example.com/", "`a$b.example.com` is not a public host name"),
            ("https://[example.com]/", "is not a URL: invalid IPv6 address"),
            ("https://[fe80::1%25eth0]/", "is not a URL: invalid IPv6 address"),
            ("https://[::1/", "is not a URL: invalid IPv6 address"),
            ("https://256.256.256.256/", "is not a URL: invalid IPv4 address"),
            ("https://1.2.3.4.5/", "is not a URL: invalid IPv4 address"),
            ("https://4294967296/", "is not a URL: invalid IPv4 address"),
            ("https://exam%00ple.com/", "is not a URL: invalid"),
            ("https://exam%20ple.com/", "is not a URL: invalid"),
            ("https://example.com%2f@x.com/", "must not hold a user name"),
            ("https://xn--/", "is not a URL: invalid"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(reason), "{text:?}: {error}");
        }
        assert_eq!(parse(&too_long), Err(TooLong));
        assert_eq!(parse(&grows), Err(TooLong), "in canonical form");
        assert!(matches!(parse(&long_label), Err(BadHost(_) | Malformed(_))));
        assert!(matches!(parse(&long_name), Err(BadHost(_) | Malformed(_))));
    }
}
