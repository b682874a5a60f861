//! Cross-site requests have no effect.

use super::browser::SAME_ORIGIN;
use super::{PLAIN, add, logged_in, serve, site};

/// Every form, with fields that would change something.
const FORMS: &[(&str, &[(&str, &str)])] = &[
    ("/login", &[("email", "ann@example.com"), ("password", "correct horse battery")]),
    ("/signup", &[("email", "eve@example.com"), ("password", "correct horse battery")]),
    ("/forgot", &[("email", "eve@example.com")]),
    ("/reset/00", &[("password", "correct horse battery")]),
    ("/columns", &[("column", "kind")]),
    ("/signup/00", &[("password", "correct horse battery")]),
    ("/logout", &[]),
    ("/logout", &[("everywhere", "yes")]),
    (
        "/account/password",
        &[("present", "correct horse battery"), ("password", "another horse entirely")],
    ),
    ("/account/key", &[]),
    ("/account/keys", &[("name", "x"), ("scope", "read")]),
    ("/account/keys/replace", &[("id", "1")]),
    ("/account/keys/revoke", &[("id", "1")]),
    ("/watchlist/feed", &[]),
    ("/watchlist/feed/revoke", &[]),
    ("/watchlist/alerts", &[("zone", "UTC")]),
    ("/watchlist/alerts/test", &[]),
    ("/watchlist/alerts/secrets", &[]),
    ("/watchlist/bell", &[("mute", "solar.com")]),
    ("/account/delete", &[("password", "correct horse battery")]),
    ("/account/facts", &[]),
    ("/account/facts/mapping", &[("fingerprint", "0011223344556677"), ("column", "domain")]),
    ("/account/facts/remove", &[("source", "a")]),
    ("/account/telegram", &[("chat", "-100")]),
    ("/account/email/send", &[]),
    ("/verify/00", &[]),
];

#[test]
fn cross_site_forms_are_refused() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let mut browser = logged_in(&server, "ann@example.com");
    let facts = || site.ask_admin("{\"command\":\"inspect_journal\"}").expect("answered");
    let before = facts()["state_digest"].clone();
    assert!(before.is_string());
    let own = format!("http://{}", server.address());
    let foreign: &[&[(&str, &str)]] = &[
        &[],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Sec-Fetch-Site", "none")],
        &[("Sec-Fetch-Site", "cross-site"), ("Origin", &own)],
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        &[("Referer", &own)],
    ];
    for (path, fields) in FORMS {
        for headers in foreign {
            let answer = browser.post_with(path, fields, headers);
            assert_eq!(answer.status, 403, "{path} {headers:?}");
            assert_eq!(answer.header("set-cookie"), None, "{path} {headers:?}");
        }
    }
    assert_eq!(facts()["state_digest"], before, "nothing has changed");
    assert!(browser.is_in());
    // The same request from our own pages, with either header.
    let chat = [("chat", "-100")];
    for headers in [[SAME_ORIGIN], [("Origin", own.as_str())]] {
        assert_eq!(browser.post_with("/account/telegram", &chat, &headers).status, 303);
    }
    assert_ne!(facts()["state_digest"], before);
}

#[test]
fn downloads_by_cookie_must_start_on_our_pages() {
    let site = site(PLAIN);
    for (email, plan) in [("core@example.com", "core"), ("free@example.com", "free")] {
        add(&site, email, plan);
    }
    let server = serve(&site);
    let mut browser = logged_in(&server, "core@example.com");
    let own = format!("http://{}", server.address());
    let page = format!("{own}/watchlist");
    let ours: &[&[(&str, &str)]] = &[
        &[SAME_ORIGIN],
        &[("Sec-Fetch-Site", "none")],
        &[("Origin", &own)],
        &[("Referer", &page)],
    ];
    let foreign: &[&[(&str, &str)]] = &[
        &[],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site"), ("Referer", &page)],
        &[("Origin", "https://evil.example"), ("Referer", &page)],
        &[("Referer", "https://evil.example/")],
    ];
    for path in ["/api/export/drops", "/api/export/watchlist", "/api/export/portfolio"] {
        for headers in ours {
            let answer = browser.get_with(path, headers);
            assert_eq!(answer.status, 200, "{path} {headers:?} {}", answer.text());
            assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
        }
        for headers in foreign {
            let answer = browser.get_with(path, headers);
            assert_eq!(answer.status, 403, "{path} {headers:?}");
            assert!(answer.json()["error"].is_string());
        }
    }
    let left = browser.get("/api/export/drops").number("x-ratelimit-remaining");
    assert_eq!(left, Some(20 - 12 - 1), "each counts like one with a key, the refused do not");
    let mut free = logged_in(&server, "free@example.com");
    let refused = free.get("/api/export/drops").json();
    assert_eq!(refused["code"], "PLAN_REQUIRED");
    // A cookie is not a key: the JSON API does not accept it, not even in addition to a wrong key.
    assert_eq!(browser.get_with("/api/v1/drops", &[SAME_ORIGIN]).status, 401);
    let both = [SAME_ORIGIN, ("Authorization", "Bearer ddx_0")];
    assert_eq!(browser.get_with("/api/export/drops", &both).status, 401);
    browser.cookie = None;
    assert_eq!(browser.get_with("/api/export/drops", &[SAME_ORIGIN]).status, 401);
}
