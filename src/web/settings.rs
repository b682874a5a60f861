//! What an operator sets for pages: `config` makes it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::http::session::CookieKind;
use crate::vocab::plan::Plan;

/// Settings of the section `[web]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSettings {
    /// Whether people can make accounts for themselves.
    pub signup: bool,
    /// What such an account pays for.
    pub signup_plan: Plan,
    /// Whether cookies go over plain HTTP: for a server on loopback with no TLS before it.
    pub plain_http: bool,
    /// Proxies whose `X-Forwarded-For` is believed, in their canonical form.
    pub proxies: Vec<IpAddr>,
}

impl Default for WebSettings {
    fn default() -> WebSettings {
        // A proxy on this machine, as is usual.
        let proxies = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        WebSettings { signup: true, signup_plan: Plan::Free, plain_http: false, proxies }
    }
}

impl WebSettings {
    /// How browsers carry sessions.
    pub fn cookie(&self) -> CookieKind {
        if self.plain_http { CookieKind::PlainHttp } else { CookieKind::Secure }
    }
}
