//! Requests from the machine of a single-user server: on loopback, without a proxy.
//!
//! No header can prove that no proxy forwarded a request. So this check only decides who may be the first
//! visitor, whose browser then gets a cookie (`web/account/welcome`).

use std::net::IpAddr;

use axum::http::header::{CONNECTION, HOST, ORIGIN, REFERER};
use axum::http::{Extensions, HeaderMap, Version};

use crate::peer::Client;
use crate::service::app::App;

/// Headers that proxies, load balancers and CDNs add to requests that they forward.
const FORWARDING: [&str; 26] = [
    "ali-cdn-real-ip",
    "cdn-loop",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-ipcountry",
    "cf-ray",
    "cf-visitor",
    "client-ip",
    "cloudfront-viewer-address",
    "eo-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "forwarded",
    "forwarded-for",
    "proxy-connection",
    "remote-addr",
    "true-client-ip",
    "via",
    "wl-proxy-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-nf-client-connection-ip",
    "x-original-forwarded-for",
    "x-original-host",
    "x-real-ip",
];
/// Prefixes of further such headers.
const FORWARDING_PREFIXES: [&str; 10] = [
    "x-forwarded",
    "x-appengine-",
    "x-arr-",
    "x-azure-",
    "x-envoy-",
    "x-amzn-",
    "x-amz-cf-",
    "x-vercel-",
    "x-original-url",
    "tailscale-",
];

/// Whether a request came from this machine to a single-user server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    Yes,
    /// The server has several users, or the request came from another machine.
    No,
    /// The connection came from this machine, but not from a browser on it.
    Forwarded,
}

/// Judges a request. A `Host` that does not name this machine is refused, since another site could make
/// its own name resolve to loopback (DNS rebinding).
pub fn judge(app: &App, extensions: &Extensions, headers: &HeaderMap, version: Version) -> Local {
    let is_near = app.site.single_user
        && extensions
            .get::<Client>()
            .is_some_and(|client| client.address.to_canonical().is_loopback());
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    match host.filter(|_| is_near) {
        Some(_) if is_forwarded(headers, version) => Local::Forwarded,
        Some(host) if is_this_machine(host) => Local::Yes,
        _ => Local::No,
    }
}

/// Whether the request shows signs of a proxy, or differs from those of a browser on this machine. An
/// unconfigured proxy such as nginx uses HTTP/1.0 or closes each connection, and the browsers of its visitors
/// send headers that name the public host.
fn is_forwarded(headers: &HeaderMap, version: Version) -> bool {
    let is_added = |name: &str| {
        FORWARDING.contains(&name) || FORWARDING_PREFIXES.iter().any(|it| name.starts_with(it))
    };
    let closes =
        headers.get(CONNECTION).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"close"));
    let names_other = [ORIGIN, REFERER].iter().any(|name| {
        let address = headers.get(name).map(|it| it.to_str().unwrap_or_default());
        address.is_some_and(|address| address != "null" && !is_this_machine(authority(address)))
    });
    version < Version::HTTP_11
        || closes
        || names_other
        || headers.keys().any(|name| is_added(name.as_str()))
}

/// The host and port of a URL.
fn authority(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// Whether a `Host` is a loopback address or `localhost`, with or without a port.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if !port.ends_with(']') => bare,
        _ => host,
    };
    let bare = bare.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(pairs: &[(&'static str, &'static str)], version: Version) -> bool {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
        is_forwarded(&HeaderMap::from_iter(pairs), version)
    }

    #[test]
    fn only_hosts_of_this_machine_are_local() {
        for host in
            ["localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:80", "127.9.9.9", "[::1]:8080"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost.evil.example",
            "",
            ":80",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn forwarded_requests_are_recognized() {
        for name in FORWARDING.into_iter().chain([
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded",
            "x-amzn-trace-id",
            "x-arr-ssl",
        ]) {
            assert!(forwarded(&[(name, "x")], Version::HTTP_11), "{name}");
        }
        for (pairs, version) in [
            (vec![], Version::HTTP_10),
            (vec![("connection", "Close")], Version::HTTP_11),
            (vec![("origin", "https://drops.example")], Version::HTTP_11),
            (vec![("referer", "https://drops.example/login")], Version::HTTP_2),
        ] {
            assert!(forwarded(&pairs, version), "{pairs:?}");
        }
    }

    #[test]
    fn browsers_on_this_machine_are_not_forwarded() {
        for pairs in [
            vec![],
            vec![("connection", "keep-alive"), ("sec-fetch-site", "none")],
            vec![("origin", "http://localhost:8080"), ("referer", "http://localhost:8080/welcome")],
            vec![("origin", "http://[::1]:8080")],
            vec![("origin", "null")],
        ] {
            assert!(!forwarded(&pairs, Version::HTTP_11), "{pairs:?}");
        }
    }
}
