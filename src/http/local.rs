//! Requests from the machine of a single-user server: on loopback, without a proxy.

use std::net::IpAddr;

use axum::http::header::{FORWARDED, HOST, VIA};
use axum::http::{Extensions, HeaderMap};

use crate::http::App;
use crate::http::peer::Client;

/// Whether a request came from this machine to a server that is for its owner alone. A name in `Host`
/// other than that of this machine is refused: a page of another site could have it resolve to loopback
/// (DNS rebinding). So is a request that a proxy forwarded.
pub fn is_local(app: &App, extensions: &Extensions, headers: &HeaderMap) -> bool {
    app.single_user
        && extensions
            .get::<Client>()
            .is_some_and(|client| client.address.to_canonical().is_loopback())
        && !is_forwarded(headers)
        && headers.get(HOST).and_then(|host| host.to_str().ok()).is_some_and(is_this_machine)
}

/// Whether a proxy says that it forwarded the request.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
        || headers.contains_key(VIA)
        || headers
            .keys()
            .any(|name| name.as_str().starts_with("x-forwarded-") || name == "x-real-ip")
}

/// Whether a `Host` is a loopback address or `localhost`, with or without a port.
fn is_this_machine(host: &str) -> bool {
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
        for name in ["x-forwarded-for", "x-forwarded-host", "forwarded", "via", "x-real-ip"] {
            let headers = HeaderMap::from_iter([(
                name.parse().expect("a name"),
                "x".parse().expect("a value"),
            )]);
            assert!(is_forwarded(&headers), "{name}");
        }
        assert!(!is_forwarded(&HeaderMap::new()));
    }
}
