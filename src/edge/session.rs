//! Session cookies of the pages and of CSV exports started from a page. `accounts` decides whether a
//! session is valid.

use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use chrono::{DateTime, Utc};
use time::Duration;

use crate::accounts::{Person, SESSION_KEPT_MAX, SessionLife, Token};
use crate::service::app::App;
use crate::service::site::CookieKind;

/// The cookie that carries `token`. The cookie expires with the browser session unless the user
/// chose to stay logged in; the server ends the session in any case.
pub fn cookie(kind: CookieKind, token: &Token, life: SessionLife) -> Cookie<'static> {
    let mut cookie = build(kind, token.reveal().to_owned());
    if life == SessionLife::Kept {
        cookie.set_max_age(Duration::seconds(SESSION_KEPT_MAX.num_seconds()));
    }
    cookie
}

/// A cookie that makes the browser delete the session cookie.
pub fn removal(kind: CookieKind) -> Cookie<'static> {
    let mut cookie = build(kind, String::new());
    cookie.make_removal();
    cookie
}

fn build(kind: CookieKind, value: String) -> Cookie<'static> {
    Cookie::build((kind.name(), value))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(kind.is_secure())
        .build()
}

/// Returns the user of a request: the one that the server found before routing, or the one of the
/// cookie.
pub fn of_request(app: &App, parts: &Parts, now: DateTime<Utc>) -> Option<Person> {
    parts.extensions.get::<Person>().cloned().or_else(|| find(app, &parts.headers, now))
}

/// Returns the user of the cookie, if the session is valid at `now`. The owner of a single-user server
/// without a password has a cookie that is also sent over plain HTTP, since not every browser keeps
/// secure cookies there.
pub fn find(app: &App, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Person> {
    let person = |kind| app.store.person(&token_in(kind, headers)?, now);
    let owner = || person(CookieKind::PlainHttp).filter(|person| person.session.is_none());
    person(app.site.cookie).or_else(|| owner().filter(|_| app.site.single_user))
}

/// Returns the token in the request's cookie, valid or not.
pub fn token(app: &App, headers: &HeaderMap) -> Option<Token> {
    let of_owner = app.site.single_user.then_some(CookieKind::PlainHttp);
    token_in(app.site.cookie, headers).or_else(|| token_in(of_owner?, headers))
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
        let text = cookie(CookieKind::Secure, &token, SessionLife::Short).to_string();
        let value = token.reveal();
        assert_eq!(
            text,
            format!("__Host-dropdex={value}; HttpOnly; SameSite=Strict; Secure; Path=/")
        );
        let text = cookie(CookieKind::PlainHttp, &token, SessionLife::Short).to_string();
        assert_eq!(text, format!("dropdex={value}; HttpOnly; SameSite=Strict; Path=/"));
        let text = cookie(CookieKind::Secure, &token, SessionLife::Kept).to_string();
        assert!(text.contains("; Max-Age=2592000") && !text.contains("Expires"), "{text}");
        let text = removal(CookieKind::Secure).to_string();
        assert!(text.starts_with("__Host-dropdex=; HttpOnly; SameSite=Strict; Secure; Path=/;"));
        assert!(text.contains("Max-Age=0"), "{text}");
    }
}
