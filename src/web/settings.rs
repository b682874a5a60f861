//! The `[web]` section of the configuration.

use serde::Deserialize;

use crate::links::Links;
use crate::service::site::CookieKind;
use crate::vocab::named;
use crate::vocab::plan::Plan;
use crate::vocab::url::BaseUrl;

/// Settings of the pages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSettings {
    /// Whether self-service sign-up is allowed. If not set, sign-up is open if mail and the public URL
    /// are set up, since a mailed link then verifies the address.
    pub signup: Option<bool>,
    /// Plan of accounts created by sign-up.
    #[serde(deserialize_with = "named::deserialize")]
    pub signup_plan: Plan,
    /// Whether session cookies are sent over plain HTTP, for a loopback server without TLS.
    pub plain_http: bool,
    /// Whether every page shows that the data is a sample.
    #[serde(skip)]
    pub demo: bool,
    /// Whether pages show all plans with their prices (`[plans] public`).
    #[serde(skip)]
    pub public_plans: bool,
    /// The section `[links]`.
    #[serde(skip)]
    pub links: Links,
}

impl Default for WebSettings {
    fn default() -> WebSettings {
        WebSettings {
            signup: None,
            signup_plan: Plan::Free,
            plain_http: false,
            demo: false,
            public_plans: false,
            links: Links::default(),
        }
    }
}

impl WebSettings {
    /// Kind of the session cookie of a server with this public address.
    pub fn cookie(&self, home: Option<&BaseUrl>) -> CookieKind {
        match home {
            _ if self.plain_http => CookieKind::PlainHttp,
            Some(home) if !home.path().is_empty() => CookieKind::SecureBelow,
            _ => CookieKind::Secure,
        }
    }
}
