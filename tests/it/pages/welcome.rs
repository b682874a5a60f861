//! The first visit to a server on one's own machine, and which visitors count as its owner.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use super::browser::Browser;
use super::{PASSWORD, serve, serve_on, site};
use crate::common::Server;

/// Headers that a browser sends for a typed address.
const TYPED: [(&str, &str); 2] = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Site", "none")];

/// Returns the status line of the response to a request on a new connection, with these header lines.
fn status(server: &Server, head: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("connected");
    write!(stream, "{head}\r\n").expect("sent");
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text).expect("an answer");
    text.split(' ').nth(1).expect("a status").to_owned()
}

#[test]
fn the_browser_of_the_first_visit_is_the_owner() {
    let site = site("");
    let server = serve(&site);
    let mut owner = Browser::new(&server);
    let first = owner.get_with("/", &TYPED);
    assert_eq!((first.status, first.header("location")), (303, Some("/welcome")));
    assert_eq!(server.client().get("/").status, 200, "programs get the list");
    assert!(owner.get("/welcome").text().contains("Who can open it?"));
    assert_eq!(owner.get("/watchlist").status, 303, "there is no owner yet");
    let done = owner.post("/welcome", &[("lock", "open")]);
    assert_eq!((done.status, done.header("location")), (303, Some("/")));
    let cookie = done.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{cookie}");

    // Every feature is available, and no plans are shown.
    let page = owner.get("/watchlist");
    assert!(page.status == 200 && !page.text().contains("Log out"), "{}", page.text());
    let page = owner.get("/account");
    assert!(!page.text().contains("/account/plan"), "{}", page.text());
    assert_eq!(owner.post("/watch", &[("domain", "good.com")]).status, 303);
    assert_eq!(owner.get("/api/export/watchlist").status, 200);
    // The question is asked only once.
    assert_eq!(owner.get("/welcome").header("location"), Some("/"));
    assert_eq!(owner.post("/welcome", &[("lock", "open")]).status, 404);

    // Without the cookie, a request from this machine is not sufficient.
    let mut other = Browser::new(&server);
    for headers in [&TYPED[..], &[]] {
        let answer = other.get_with("/watchlist", headers);
        assert!(answer.header("location").is_some_and(|to| to.starts_with("/login")));
        assert_eq!(other.cookie, None);
    }
    let page = other.get("/login");
    assert!(page.text().contains("printed when it started"), "{}", page.text());
    assert_eq!(other.get("/api/export/watchlist").status, 401);
    for host in ["localhost:9", "127.0.0.1", "evil.example"] {
        let head = format!("GET /watchlist HTTP/1.1\r\nHost: {host}\r\n");
        assert_eq!(status(&server, &head), "303", "{host}");
    }
    let other_site = [("Sec-Fetch-Site", "cross-site")];
    assert_eq!(owner.post_with("/watch", &[("domain", "fine.net")], &other_site).status, 403);
    assert_eq!(owner.get_with("/api/export/watchlist", &other_site).status, 403);

    // The link that the server printed lets another browser in, until the process ends.
    let link = server.printed("open ");
    let url = link.strip_suffix(" on this machine").expect("the rest of the line");
    let target = url.strip_prefix(&format!("http://{}", server.address())).expect("an address");
    assert!(target.starts_with("/welcome?key="), "{link}");
    let wrong = format!("/welcome?key={}", "0".repeat(64));
    assert_eq!(other.get(&wrong).header("set-cookie"), None);
    assert_eq!(other.get(target).status, 303);
    assert!(other.get("/watchlist").text().contains("good.com"));

    // The owner survives a restart; a password then requires a log-in.
    server.kill();
    let server = serve(&site);
    assert_eq!(Browser::new(&server).get(target).header("set-cookie"), None);
    let mut owner = owner.copy(&server);
    assert!(owner.get("/watchlist").text().contains("good.com"));
    let done = owner.post("/account/password", &[("password", PASSWORD)]);
    assert_eq!(done.status, 303, "{}", done.text());
    assert!(owner.is_in());
    let mut other = other.copy(&server);
    assert_eq!(other.get("/watchlist").status, 303);
    assert!(other.get("/login").text().contains("owner@localhost"));
    assert_eq!(other.log_in("owner@localhost", PASSWORD).status, 303);
    assert!(other.is_in());
}

#[test]
fn a_visitor_through_a_proxy_is_not_the_first() {
    let site = site("");
    let server = serve(&site);
    let welcome = "GET /welcome HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Mode: navigate\r\n";
    for line in [
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Host: localhost",
        "Forwarded: for=127.0.0.1",
        "Via: 1.1 proxy",
        "CF-Connecting-IP: 192.0.2.1",
        "True-Client-IP: 192.0.2.1",
        "CDN-Loop: cloudflare",
        "X-Real-IP: 192.0.2.1",
        "Fastly-Client-IP: 192.0.2.1",
        "Fly-Client-IP: 192.0.2.1",
        "X-Azure-ClientIP: 192.0.2.1",
        "Connection: close",
        "Origin: https://drops.example",
        "Referer: https://drops.example/",
    ] {
        assert_eq!(status(&server, &format!("{welcome}{line}\r\n")), "303", "{line}");
    }
    // The request that nginx sends without any settings.
    let bare = "GET /welcome HTTP/1.0\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\n";
    assert_eq!(status(&server, bare), "303");
    assert_eq!(status(&server, welcome), "200");
    assert_eq!(server.stop().matches("a proxy forwards requests to this server").count(), 1);
}

/// This is the state after an update of a server whose owner had no cookie, and after 30 days
/// without a visit.
#[test]
fn an_owner_whose_cookie_has_expired_is_let_in_again() {
    let site = site("");
    let server = serve(&site);
    Browser::new(&server).post("/welcome", &[("lock", "open")]);
    drop(server);
    let server = serve_on(&site, "2027-01-21");
    let mut owner = Browser::new(&server);
    let first = owner.get_with("/watchlist?sort=dqs", &TYPED);
    assert_eq!((first.status, first.header("location")), (303, Some("/watchlist?sort=dqs")));
    assert_eq!(owner.get_with("/watchlist", &TYPED).status, 200);
    let mut second = Browser::new(&server);
    assert_eq!(second.get_with("/watchlist", &TYPED).status, 303);
    assert_eq!(second.cookie, None);
}

#[test]
fn an_owner_can_begin_with_a_password() {
    let site = site("[web]\nplain_http = true\n");
    let server = serve(&site);
    let mut owner = Browser::new(&server);
    let weak = owner.post("/welcome", &[("lock", "password"), ("password", "short")]);
    assert_eq!(weak.status, 400);
    assert!(weak.text().contains("8 to 128 characters"), "{}", weak.text());
    let done = owner.post("/welcome", &[("lock", "password"), ("password", PASSWORD)]);
    assert_eq!((done.status, done.header("location")), (303, Some("/")));
    assert!(owner.is_in());
    assert_eq!(Browser::new(&server).get("/watchlist").status, 303);
}

#[test]
fn a_server_with_accounts_sign_up_or_a_public_address_has_no_first_visit() {
    for settings in ["public_url = \"https://drops.example\"\n", "[web]\nsignup = true\n"] {
        let site = site(settings);
        let server = serve(&site);
        let mut visitor = Browser::new(&server);
        assert_eq!(visitor.get_with("/", &TYPED).status, 200, "{settings}");
        assert_eq!(visitor.post("/welcome", &[("lock", "open")]).status, 404, "{settings}");
    }
    let site = super::site("");
    super::add(&site, "ann@example.com", "free");
    let server = serve(&site);
    let mut visitor = Browser::new(&server);
    assert_eq!(visitor.get_with("/", &TYPED).status, 200);
    assert_eq!(visitor.post("/welcome", &[("lock", "open")]).status, 404);
}
