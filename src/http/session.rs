//! Session cookies of the pages and of CSV exports started from a page. `accounts` decides whether a
//! session is valid.

use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use chrono::{DateTime, Utc};
use time::Duration;

use crate::accounts::{Person, SESSION_KEPT_MAX, SessionLife, Token};
use crate::http::App;

/// Attributes of the session cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieKind {
    /// TLS only. The `__Host-` prefix prevents other hosts of the domain from setting it
    /// (RFC 6265bis §4.1.3.2).
    #[default]
    Secure,
    /// As `Secure`, for a server below a path of a host that it shares. That prefix requires the path `/`.
    SecureBelow,
    /// Plain HTTP too, for a server on loopback without TLS.
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

    /// Whether browsers send it over TLS only.
    pub fn is_secure(self) -> bool {
        self != CookieKind::PlainHttp
    }

    /// The cookie that carries `token`. It ends with the browser session unless the owner keeps it; the
    /// server ends the session in any case.
    pub fn with(self, token: &Token, life: SessionLife) -> Cookie<'static> {
        let mut cookie = self.build(token.reveal().to_owned());
        if life == SessionLife::Kept {
            cookie.set_max_age(Duration::seconds(SESSION_KEPT_MAX.num_seconds()));
        }
        cookie
    }

    /// A cookie that deletes the one that was set.
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
            .secure(self.is_secure())
            .build()
    }
}

/// The user of a request: the one that the server found before routing, or that of the cookie.
pub fn of_request(app: &App, parts: &Parts, now: DateTime<Utc>) -> Option<Person> {
    parts.extensions.get::<Person>().cloned().or_else(|| find(app, &parts.headers, now))
}

/// The user of the cookie, if the session is valid at `now`. The owner of a single-user server without a
/// password has a cookie for plain HTTP, which not every browser keeps otherwise.
pub fn find(app: &App, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Person> {
    let person = |kind| app.store.person(&token_in(kind, headers)?, now);
    let owner = || person(CookieKind::PlainHttp).filter(|person| person.session.is_none());
    person(app.cookie).or_else(|| owner().filter(|_| app.single_user))
}

/// The token in the request's cookie, valid or not.
pub fn token(app: &App, headers: &HeaderMap) -> Option<Token> {
    let of_owner = app.single_user.then_some(CookieKind::PlainHttp);
    token_in(app.cookie, headers).or_else(|| token_in(of_owner?, headers))
}

fn token_in(kind: CookieKind, headers: &HeaderMap) -> Option<Token> {
    Token::parse(CookieJar::from_headers(headers).get(kind.name())?.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_cookies_are_host_only_secure_and_http_only() {
        let token = Token::parse(&"0a".repeat(32)).expect("a token");
        let text = CookieKind::Secure.with(&token, SessionLife::Short).to_string();
        let value = token.reveal();
        assert_eq!(
            text,
            format!("__Host-dropdex={value}; HttpOnly; SameSite=Strict; Secure; Path=/")
        );
        let text = CookieKind::PlainHttp.with(&token, SessionLife::Short).to_string();
        assert_eq!(text, format!("dropdex={value}; HttpOnly; SameSite=Strict; Path=/"));
        let text = CookieKind::Secure.with(&token, SessionLife::Kept).to_string();
        assert!(text.contains("; Max-Age=2592000") && !text.contains("Expires"), "{text}");
        let text = CookieKind::Secure.removal().to_string();
        assert!(text.starts_with("__Host-dropdex=; HttpOnly; SameSite=Strict; Secure; Path=/;"));
        assert!(text.contains("Max-Age=0"), "{text}");
    }
}
