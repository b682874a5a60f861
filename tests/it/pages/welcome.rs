//! The first visit to a server on one's own machine, and who is taken for its owner.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::browser::Browser;
use super::{PASSWORD, serve, site};

/// Headers that a browser sends with a typed address.
const TYPED: [(&str, &str); 2] = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Site", "none")];

#[test]
fn an_owner_without_a_password_is_whoever_uses_this_machine() {
    let site = site("");
    let server = serve(&site);
    let mut owner = Browser::new(&server);
    let first = owner.get_with("/", &TYPED);
    assert_eq!((first.status, first.header("location")), (303, Some("/welcome")));
    assert_eq!(server.client().get("/").status, 200, "programs get the list");
    assert!(owner.get("/welcome").text().contains("Who can open it?"));
    assert_eq!(owner.get("/watchlist").status, 303, "nobody owns it yet");
    let done = owner.post("/welcome", &[("lock", "open")]);
    assert_eq!((done.status, done.header("location")), (303, Some("/")));
    assert_eq!(owner.cookie, None);

    // Nothing is gated, and no plans are shown.
    let page = owner.get("/watchlist");
    assert!(page.status == 200 && !page.text().contains("Log out"), "{}", page.text());
    let page = owner.get("/account");
    assert!(!page.text().contains("/account/plan"), "{}", page.text());
    assert_eq!(owner.post("/watch", &[("domain", "good.com")]).status, 303);
    assert_eq!(owner.get("/api/export/watchlist").status, 200);
    // Once.
    assert_eq!(owner.get("/welcome").header("location"), Some("/"));
    assert_eq!(owner.post("/welcome", &[("lock", "open")]).status, 404);

    // By another name of this machine, through a proxy, and from another site.
    for header in [
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Host", "localhost"),
        ("Forwarded", "for=127.0.0.1"),
        ("Via", "1.1 proxy"),
    ] {
        let answer = server.client().request("GET", "/watchlist", &[header]);
        assert_eq!(answer.status, 303, "{header:?}");
        assert!(answer.header("location").is_some_and(|to| to.starts_with("/login")), "{header:?}");
    }
    let by_host = |host: &str| {
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        write!(stream, "GET /watchlist HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text.split(' ').nth(1).expect("a status").to_owned()
    };
    for (host, status) in [
        ("localhost:9", "200"),
        ("127.0.0.1", "200"),
        ("evil.example", "303"),
        ("127.0.0.1.evil.example", "303"),
    ] {
        assert_eq!(by_host(host), status, "{host}");
    }
    let other_site = [("Sec-Fetch-Site", "cross-site")];
    assert_eq!(owner.post_with("/watch", &[("domain", "fine.net")], &other_site).status, 403);
    assert_eq!(owner.get_with("/api/export/watchlist", &other_site).status, 403);

    // The owner survives a restart, and a password ends the open door.
    server.kill();
    let server = serve(&site);
    let mut owner = Browser::new(&server);
    assert!(owner.get("/watchlist").text().contains("good.com"));
    let done = owner.post("/account/password", &[("password", PASSWORD)]);
    assert_eq!(done.status, 303, "{}", done.text());
    assert!(owner.is_in());
    let mut other = Browser::new(&server);
    assert_eq!(other.get("/watchlist").status, 303);
    assert!(other.get("/login").text().contains("owner@localhost"));
    assert_eq!(other.log_in("owner@localhost", PASSWORD).status, 303);
    assert!(other.is_in());
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
