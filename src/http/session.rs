//! Cookie sessions: for pages, and for CSV exports that are asked for from a page. A cookie in, the
//! [`Person`] it stands for out; what a session is and when it ends is `accounts`' to say.

use axum::http::HeaderMap;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use chrono::{DateTime, Utc};

use crate::accounts::{Person, Token};
use crate::http::App;

/// How the cookie goes over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieKind {
    /// Over TLS alone; the prefix in its name keeps other hosts of the domain from setting it
    /// (RFC 6265bis §4.1.3.2).
    #[default]
    Secure,
    /// Also over plain HTTP: for a server on loopback with no TLS before it.
    PlainHttp,
}

impl CookieKind {
    /// The cookie's name.
    pub fn name(self) -> &'static str {
        match self {
            CookieKind::Secure => "__Host-dropdex",
            CookieKind::PlainHttp => "dropdex",
        }
    }

    /// The cookie that carries `token`. It lives as long as the browser at most, and the session
    /// no longer than its own end.
    pub fn with(self, token: &Token) -> Cookie<'static> {
        self.build(token.reveal().to_owned())
    }

    /// The cookie that takes the place of one that was set, and goes at once.
    pub fn removal(self) -> Cookie<'static> {
        let mut cookie = self.build(String::new());
        cookie.make_removal();
        cookie
    }

    fn build(self, value: String) -> Cookie<'static> {
        Cookie::build((self.name(), value))
            .path("/")
            .http_only(true)
            .same_site(SameSite::Strict)
            .secure(self == CookieKind::Secure)
            .build()
    }
}

/// Whom the request's cookie stands for, if its session holds at `now`.
pub fn find(app: &App, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Person> {
    app.store.person(&token(app, headers)?, now)
}

/// The token in the request's cookie, whether it stands for anybody or not.
pub fn token(app: &App, headers: &HeaderMap) -> Option<Token> {
    let jar = CookieJar::from_headers(headers);
    Token::parse(jar.get(app.cookie.name())?.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_for_this_host_over_tls_and_out_of_reach_of_scripts() {
        let token = Token::parse(&"0a".repeat(32)).expect("a token");
        let text = CookieKind::Secure.with(&token).to_string();
        let value = token.reveal();
        assert_eq!(
            text,
            format!("__Host-dropdex={value}; HttpOnly; SameSite=Strict; Secure; Path=/")
        );
        let text = CookieKind::PlainHttp.with(&token).to_string();
        assert_eq!(text, format!("dropdex={value}; HttpOnly; SameSite=Strict; Path=/"));
        let text = CookieKind::Secure.removal().to_string();
        assert!(text.starts_with("__Host-dropdex=; HttpOnly; SameSite=Strict; Secure; Path=/;"));
        assert!(text.contains("Max-Age=0"), "{text}");
    }
}
