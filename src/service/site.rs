//! Public address, sessions and owner of this server.

use crate::accounts::Token;
use crate::sources::settings::Contact;
use crate::sources::state::Folder;
use crate::vocab::url::BaseUrl;

/// Addresses and sessions of the server.
pub struct Site {
    /// Public address, if there is one.
    pub home: Option<BaseUrl>,
    /// Kind of the session cookie.
    pub cookie: CookieKind,
    /// Whether the server only serves the owner of this machine: it then listens on loopback,
    /// without TLS and without a public URL.
    pub single_user: bool,
    /// Secret of the link that logs a browser in as the owner of a single-user server. Generated at
    /// each start.
    pub owner_link: Token,
    /// Lets pages set up a new server; `None` for the demo and nodes of a cluster.
    pub setup: Option<Setup>,
}

/// What the page for a new server writes.
pub struct Setup {
    pub sources: Folder,
    /// Contact of the settings, which takes precedence over that of the page.
    pub contact: Option<Contact>,
}

impl Site {
    /// The path of the public address, without a trailing slash; empty at the root of its host.
    pub fn base(&self) -> &str {
        self.home.as_ref().map_or("", BaseUrl::path)
    }
}

/// Kind of the session cookie: when browsers send it, and to which paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieKind {
    /// TLS only. The `__Host-` prefix prevents other hosts of the domain from setting it
    /// (RFC 6265bis §4.1.3.2).
    #[default]
    Secure,
    /// Sent over TLS only, and without the prefix, because the prefix requires the path `/`. For a
    /// server below a path of a shared host.
    SecureBelow,
    /// Sent over plain HTTP too, for a server on loopback without TLS.
    PlainHttp,
}

impl CookieKind {
    pub fn name(self) -> &'static str {
        match self {
            CookieKind::Secure => "__Host-dropdex",
            CookieKind::SecureBelow => "__Secure-dropdex",
            CookieKind::PlainHttp => "dropdex",
        }
    }

    /// Whether browsers send the cookie only over TLS.
    pub fn is_secure(self) -> bool {
        self != CookieKind::PlainHttp
    }
}
