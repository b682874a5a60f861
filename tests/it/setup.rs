//! A new server: it serves at once, its page asks for the owner and the lists, and it ends at a ranked list.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::common::nats::free_addresses;
use crate::common::{Server, Site, wait};
use crate::pages::browser::Browser;
use crate::pages::{PASSWORD, add};
use crate::sources::{DAY, publishers, settings_of};

/// Deadline of the first list; it takes seconds, on a busy machine a minute.
const ARRIVAL_MAX: Duration = Duration::from_secs(90);

fn serve(site: &Site, settings: &str) -> Server {
    site.serve_with(&["--today", DAY, "--config", &site.settings(settings)])
}

/// Status of `/api/ready` and its check of the drops.
fn ready(server: &Server, path: &str) -> (u16, String) {
    let (status, body) = server.client().get(path).answer();
    (status, body["checks"]["drops"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_new_server_leads_its_owner_to_a_ranked_list() {
    let publishers = publishers("good");
    let lists = settings_of(&publishers).replace("contact = \"ops@example.com\"\n", "");
    let site = Site::new();
    let server = serve(&site, &lists);
    for path in ["/api/ready", "/api/ready/reads"] {
        assert_eq!(ready(&server, path), (503, "no_lists".to_owned()), "{path}");
    }
    assert_eq!(server.client().get("/api/health").status, 200);
    let mut owner = Browser::new(&server);
    assert_eq!(owner.get("/").header("location"), Some("/setup"));
    assert_eq!(owner.get("/welcome").header("location"), Some("/setup"));
    let page = owner.get("/setup");
    for words in
        ["Who can open it?", "uk-nominet", "open and available to the public", "Lists with terms"]
    {
        assert!(page.text().contains(words), "{words}: {}", page.text());
    }
    let terms = page.text().matches("name=\"source\"").count();
    let ticked = page.text().matches(" checked").count();
    assert!(ticked > 10 && ticked < terms, "{ticked} of {terms} are ticked");

    let bad = owner.post("/setup", &[("contact", "no contact"), ("source", "uk-nominett")]);
    assert_eq!(bad.status, 400);
    for words in ["is not a contact such as", "has no list uk-nominett"] {
        assert!(bad.text().contains(words), "{words}: {}", bad.text());
    }
    assert!(!site.data().join("sources").join("enabled.json").exists());
    assert_eq!(owner.get("/").header("location"), Some("/setup"), "nothing has happened");

    let chosen = [
        ("lock", "open"),
        ("contact", "owner@example.com"),
        ("source", "uk-nominet"),
        ("source", "se-bardate"),
        ("source", "tranco"),
    ];
    let sent = owner.post("/setup", &chosen);
    assert_eq!((sent.status, sent.header("location")), (303, Some("/setup")), "{}", sent.text());
    let progress = owner.get("/setup");
    // The lists may be in already.
    if progress.status == 200 {
        assert!(progress.header("refresh").is_some(), "{}", progress.text());
        assert!(progress.text().contains("Fetching your first lists"), "{}", progress.text());
        assert_eq!(owner.get("/setup?choose").status, 200);
    }
    wait::until_ok(ARRIVAL_MAX, || match owner.get("/setup").header("location") {
        Some("/") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    wait::until_ok(ARRIVAL_MAX, || {
        let list = owner.get("/");
        let has = |name: &str| list.text().contains(name);
        if has(">quietharbour<") && has(">ljushav<") { Ok(()) } else { Err("no list".to_owned()) }
    });
    assert_eq!(ready(&server, "/api/ready"), (200, "ok".to_owned()));
    assert_eq!(owner.post("/setup", &chosen).status, 404, "the setup is over");
    let agents = publishers.seen();
    assert!(agents.iter().all(|seen| seen.header("user-agent").ends_with("(+owner@example.com)")));
}

#[test]
fn the_first_account_of_a_server_for_several_needs_the_setup_code() {
    let site = Site::new();
    let server = serve(&site, "public_url = \"https://drops.example\"\n");
    let line = server.printed("set this server up at ");
    let code = line.rsplit(' ').next().expect("a code").to_owned();
    let mut owner = Browser::new(&server);
    assert_eq!(owner.get("/").header("location"), Some("/setup"));
    assert!(owner.get("/setup").text().contains("Setup code"));
    let filled = |code: &str| {
        [("email", "ann@example.com"), ("password", PASSWORD), ("code", code)]
            .map(|(a, b)| (a, b.to_owned()))
    };
    let post = |browser: &mut Browser, code: &str| {
        let fields = filled(code);
        let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
        browser.post("/setup", &fields)
    };
    for wrong in ["", "00000-00000"] {
        let refused = post(&mut owner, wrong);
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("not the code that the server printed"));
        assert!(refused.text().contains("ann@example.com"), "what was typed is kept");
    }
    // As people type it.
    let done = post(&mut owner, &code.to_lowercase().replace('-', " "));
    assert_eq!((done.status, done.header("location")), (303, Some("/")), "{}", done.text());
    assert!(owner.is_in());
    assert!(!owner.get("/account").text().contains("/account/plan"), "the owner has no plan");
    // Until a list comes, the owner can still choose lists, and others cannot.
    assert!(owner.get("/setup").text().contains("Fetch the lists"));
    let mut visitor = Browser::new(&server);
    assert_eq!(visitor.get("/").status, 200);
    assert_eq!(visitor.get("/setup").header("location"), Some("/"));
    assert_eq!(post(&mut visitor, &code).status, 404);
    add(&site, "bob@example.com", "api");
    visitor.log_in("bob@example.com", PASSWORD);
    assert!(visitor.is_in());
    assert_eq!(visitor.post("/setup", &[("source", "uk-nominet")]).status, 404);
}

#[test]
fn pages_with_a_password_warn_where_browsers_do_not_keep_the_session() {
    let site = Site::new();
    let port = free_addresses(1)[0].port();
    let server = site.serve_on(SocketAddr::from(([0, 0, 0, 0], port)), &["--today", DAY]);
    let shown = |target: &str, host: &str| {
        let mut connection = TcpStream::connect(server.address()).expect("connected");
        write!(connection, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut page = String::new();
        connection.read_to_string(&mut page).expect("a page");
        assert!(page.contains("type=\"password\""), "{target}: {page}");
        page.contains("This page came over plain HTTP")
    };
    let pages = |host: &str| ["/setup", "/login"].map(|target| shown(target, host));
    assert_eq!(pages("drops.lan:8080"), [true, true]);
    assert_eq!(pages("192.0.2.7:8080"), [true, true]);
    assert_eq!(pages("localhost:8080"), [false, false]);
    assert_eq!(pages("127.0.0.1:8080"), [false, false]);
}

#[test]
fn guesses_of_the_setup_code_are_limited() {
    let site = Site::new();
    let server = serve(&site, "public_url = \"https://drops.example\"\n");
    let mut visitor = Browser::new(&server);
    let guess = [("email", "ann@example.com"), ("password", PASSWORD), ("code", "00000-00000")];
    let last = (0..12).map(|_| visitor.post("/setup", &guess)).last().expect("a response");
    assert!(last.text().contains("Too many attempts"), "{}", last.text());
}

#[test]
fn a_server_with_lists_has_no_setup() {
    let site = Site::with_a_name_of_each_kind();
    let server = serve(&site, "");
    let mut visitor = Browser::new(&server);
    assert_eq!(visitor.get("/setup").header("location"), Some("/"));
    assert_eq!(visitor.post("/setup", &[("lock", "open")]).status, 404);
    let server = Site::new().demo();
    assert_eq!(Browser::new(&server).get("/setup").header("location"), Some("/"));
}
