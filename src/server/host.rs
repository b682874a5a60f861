//! The `Host` header: given once and well-formed (RFC 9112 §3.2), and for pages the public host.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, Version};

use crate::service::error::ApiError;

/// Checks the hosts of requests.
pub(super) struct Hosts {
    /// Public host and port of the pages; `None` accepts any.
    public: Option<String>,
}

/// Moves the authority of the target, which HTTP/2 sends as `:authority` (RFC 9113 §8.3.1), to the
/// `Host` header, where handlers read it. The authority overrides an existing header (RFC 9112
/// §3.2.2).
pub(super) fn use_authority(parts: &mut Parts) {
    // An HTTP/1.1 request still needs a valid header, which `check` verifies.
    let is_checked = parts.version != Version::HTTP_11 || single(&parts.headers).is_some();
    if let (Some(authority), true) = (parts.uri.authority(), is_checked)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(HOST, host);
    }
}

impl Hosts {
    pub(super) fn new(public: Option<String>) -> Hosts {
        Hosts { public }
    }

    /// Checks the host of a request. The API and the exports accept any host: a browser never sends
    /// an API key on its own, and monitoring uses internal names.
    ///
    /// # Errors
    /// 400 on HTTP/1.1 without exactly one valid host, 421 for a page requested at another host.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        let headers = request.headers();
        let Some(host) = single(headers) else {
            let is_optional = request.version() != Version::HTTP_11;
            let is_absent = !headers.contains_key(HOST);
            return if is_optional && is_absent { Ok(()) } else { Err(ApiError::InvalidHost) };
        };
        match &self.public {
            Some(public) if !request.uri().path().starts_with("/api/") => {
                // The port is ignored, because a proxy may listen on another port.
                let is_public = split(host).0.eq_ignore_ascii_case(split(public).0);
                let is_known = is_public || is_loopback(host);
                let misdirected = || ApiError::Misdirected { host: public.clone() };
                if is_known { Ok(()) } else { Err(misdirected()) }
            }
            _ => Ok(()),
        }
    }
}

/// The only `Host` header, if it is valid.
fn single(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (host, None) = (hosts.next()?, hosts.next()) else { return None };
    host.to_str().ok().filter(|host| is_valid(host))
}

/// Whether `host` is a `uri-host` with an optional port (RFC 3986 §3.2.2).
fn is_valid(host: &str) -> bool {
    let (name, port) = split(host);
    let is_literal = name.starts_with('[');
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
    let is_valid_name = match inner {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !is_literal && !name.is_empty() && name.bytes().all(is_name),
    };
    is_valid_name && port.bytes().all(|byte| byte.is_ascii_digit()) && port.len() <= 5
}

/// Splits a host from its port, which is empty without one.
fn split(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    }
}

fn is_loopback(host: &str) -> bool {
    let (name, _) = split(host);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the status of a request for `path` with these `Host` lines.
    fn check(public: Option<&str>, version: Version, path: &str, hosts: &[&str]) -> u16 {
        let mut request = Request::get(path).version(version).body(()).expect("a request");
        for host in hosts {
            request.headers_mut().append(HOST, host.parse().expect("a value"));
        }
        match Hosts::new(public.map(str::to_owned)).check(&request) {
            Ok(()) => 200,
            Err(ApiError::InvalidHost) => 400,
            Err(ApiError::Misdirected { .. }) => 421,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn http1_needs_one_valid_host() {
        for (hosts, status) in [
            (&["drops.example"][..], 200),
            (&["drops.example:8080"], 200),
            (&["192.0.2.1"], 200),
            (&["[2001:db8::1]:443"], 200),
            (&["[2001:db8::1]"], 200),
            (&["a:"], 200),
            (&[], 400),
            (&["a", "a"], 400),
            (&["a", "b"], 400),
            (&[""], 400),
            (&[":80"], 400),
            (&["a b"], 400),
            (&["a/b"], 400),
            (&["user@a"], 400),
            (&["a:x"], 400),
            (&["a:123456"], 400),
            (&["a, b"], 400),
            (&["[::1"], 400),
            (&["[a]"], 400),
            (&["2001:db8::1"], 400),
        ] {
            assert_eq!(check(None, Version::HTTP_11, "/api/health", hosts), status, "{hosts:?}");
        }
        assert_eq!(check(None, Version::HTTP_10, "/", &[]), 200);
        assert_eq!(check(None, Version::HTTP_2, "/", &[]), 200);
        assert_eq!(check(None, Version::HTTP_10, "/", &["a", "a"]), 400);
    }

    #[test]
    fn pages_accept_the_public_host_and_loopback() {
        let public = Some("drops.example:8443");
        for (host, status) in [
            ("drops.example:8443", 200),
            ("DROPS.example:8443", 200),
            ("localhost", 200),
            ("127.0.0.1:8080", 200),
            ("127.1.2.3", 200),
            ("[::1]:8080", 200),
            ("drops.example", 200),
            ("drops.example.evil.example", 421),
            ("evil.example", 421),
            ("127.0.0.1.evil.example", 421),
            ("10.0.0.1", 421),
        ] {
            assert_eq!(check(public, Version::HTTP_11, "/watchlist", &[host]), status, "{host}");
        }
        assert_eq!(check(public, Version::HTTP_11, "/api/v1/drops", &["internal:80"]), 200);
    }
}
