//! What an operator sets for pages: `config` makes it.

use serde::Deserialize;

use crate::http::session::CookieKind;
use crate::vocab::plan::Plan;

/// Settings of the section `[web]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSettings {
    /// Whether people can make accounts for themselves.
    pub signup: bool,
    /// What such an account pays for.
    pub signup_plan: Plan,
    /// Whether cookies go over plain HTTP: for a server on loopback with no TLS before it.
    pub plain_http: bool,
}

impl Default for WebSettings {
    fn default() -> WebSettings {
        WebSettings { signup: true, signup_plan: Plan::Free, plain_http: false }
    }
}

impl WebSettings {
    /// How browsers carry sessions.
    pub fn cookie(&self) -> CookieKind {
        if self.plain_http { CookieKind::PlainHttp } else { CookieKind::Secure }
    }
}
