//! Mails that verify an address, through an SMTP server that keeps them.

use serde_json::json;

use super::browser::Browser;
use super::{PASSWORD, PLAIN, SIGN_UP, TOMORROW, add, logged_in, serve, serve_on, site};
use crate::common::Site;
use crate::common::mailbox::{Mail, Mailbox};

/// Returns settings of a server that sends its mail there, and lets people sign up.
fn settings(mailbox: &Mailbox) -> String {
    mailbox.settings(SIGN_UP)
}

/// Returns the path of the link in a mail.
fn link(mail: &Mail) -> String {
    let lines = mail.text.lines();
    let mut links = lines.filter_map(|line| line.strip_prefix("https://drops.example.net"));
    links.next().unwrap_or_else(|| panic!("{}", mail.text)).trim().to_owned()
}

/// Creates an installation with mail, and an account that was added before mail was set up.
fn site_of_ann(mailbox: &Mailbox) -> Site {
    let site = site(SIGN_UP);
    let server = serve(&site);
    Browser::new(&server).post("/signup", &[("email", "ann@example.com"), ("password", PASSWORD)]);
    drop(server);
    site.settings(&settings(mailbox));
    site
}

#[test]
fn an_account_starts_with_the_mailed_link() {
    let mailbox = Mailbox::new();
    let site = site(&settings(&mailbox));
    add(&site, "bob@example.com", "core");
    let server = serve(&site);
    let mut ann = Browser::new(&server);
    assert!(ann.get("/signup").text().contains("Send link"));
    let sign_up = |email: &str| {
        let answer = Browser::new(&server).post("/signup", &[("email", email)]);
        let told = |(name, _): &&(String, String)| name != "date" && name != "x-request-id";
        let headers: Vec<_> = answer.headers.iter().filter(told).cloned().collect();
        (answer.status, headers, answer.body.clone())
    };
    let unknown = sign_up("Ann@example.com");
    assert_eq!(unknown.0, 303);
    let first = mailbox.next();
    assert!(first.to.contains("<ann@example.com>"), "{}", first.to);
    assert!(ann.get("/signup?notice=mailed").text().contains("We sent an e-mail"));
    assert_eq!(site.ok(&["account", "list", "--json"]).matches("\"email\"").count(), 1);

    // An address with an account gets the same response and another mail.
    assert_eq!(sign_up("bob@example.com"), unknown);
    let known = mailbox.next();
    assert!(known.to.contains("<bob@example.com>"), "{}", known.to);
    assert!(known.text.contains("already has an account"), "{}", known.text);
    assert_eq!(link(&known), "/login");

    // A scanner that follows the link changes nothing.
    let link = link(&first);
    let page = ann.get(&link);
    assert_eq!(page.status, 200);
    assert!(page.text().contains(&format!("action=\"{link}\"")), "{}", page.text());
    let weak = ann.post(&link, &[("password", "short")]);
    assert_eq!(weak.status, 400);
    assert!(weak.text().contains("8 to 128 characters"), "{}", weak.text());
    let done = ann.post(&link, &[("password", PASSWORD)]);
    assert_eq!(done.header("location"), Some("/"), "{}", done.text());
    assert!(ann.is_in());
    let page = ann.get("/account/notifications");
    assert!(!page.text().contains("not verified"), "the link has verified the address");
    // A link works only once, and only if it is not modified.
    assert_eq!(Browser::new(&server).get(&link).status, 404);
    assert_eq!(Browser::new(&server).post(&link, &[("password", PASSWORD)]).status, 404);
    assert_eq!(ann.get(&format!("{link}A")).status, 404);

    // An address gets at most three mails.
    for _ in 0..5 {
        assert_eq!(sign_up("eve@example.com"), unknown);
    }
    let eve = (0..3).map(|_| mailbox.next());
    assert!(eve.into_iter().all(|mail| mail.to.contains("<eve@example.com>")));
    assert_eq!(sign_up("dan@example.com"), unknown);
    assert!(mailbox.next().to.contains("<dan@example.com>"), "and no more to eve");
}

#[test]
fn a_mailbox_gets_three_mails_however_its_address_is_written() {
    let mailbox = Mailbox::new();
    let site = site(&settings(&mailbox));
    add(&site, "a.nn+dropdex@gmail.com", "core");
    let server = serve(&site);
    for spelling in ["ann", "Ann+2", "a.n.n", "an.n+x.y"] {
        for host in ["gmail.com", "googlemail.com"] {
            let email = format!("{spelling}@{host}");
            let answer = Browser::new(&server).post("/signup", &[("email", &email)]);
            assert_eq!(answer.status, 303);
        }
    }
    let forgot = Browser::new(&server).post("/forgot", &[("email", "a.nn+dropdex@gmail.com")]);
    assert_eq!(forgot.status, 303);
    for _ in 0..3 {
        let to = mailbox.next().to;
        assert!(to.contains("@gmail.com") || to.contains("@googlemail.com"), "{to}");
    }
    Browser::new(&server).post("/signup", &[("email", "dan@example.com")]);
    assert!(mailbox.next().to.contains("<dan@example.com>"), "and no more to ann");
}

#[test]
fn an_address_is_verified_by_the_link_that_is_mailed_to_it() {
    let mailbox = Mailbox::new();
    let site = site_of_ann(&mailbox);
    let server = serve(&site);
    let mut ann = logged_in(&server, "ann@example.com");
    let sent = ann.post("/account/email/send", &[]);
    assert_eq!(sent.header("location"), Some("/account/notifications?notice=sent"));
    let mail = mailbox.next();
    assert!(mail.to.contains("<ann@example.com>"), "{}", mail.to);
    let first = link(&mail);
    let page = ann.get("/account/notifications");
    assert!(page.text().contains("not verified") && page.text().contains("Send another link"));

    // No other mail is sent to this address: no rule sends mails, through the API or a page.
    site.ok(&["account", "set-plan", "ann@example.com", "pro"]);
    let key = site.new_key("ann@example.com");
    let mut api = server.client_with(&key);
    let rule = json!({"name": "all", "filter": {}, "channels": [{"type": "email"}]});
    let (status, body) = api.send("POST", "/api/v1/alerts", &rule).answer();
    assert_eq!(status, 400);
    let error = body["error"].as_str().expect("a text");
    assert!(error.starts_with("channels[0]: verify your e-mail address first"), "{error}");

    // A second request shortly afterwards is refused.
    let again = ann.post("/account/email/send", &[]);
    assert_eq!(again.header("location"), Some("/account/notifications?notice=wait"));
    assert!(mailbox.is_empty());

    // A scanner that follows the link changes nothing; the button verifies the address, in any
    // browser.
    let mut elsewhere = Browser::new(&server);
    let page = elsewhere.get(&first);
    assert_eq!(page.status, 200);
    assert!(page.text().contains(&format!("action=\"{first}\"")), "{}", page.text());
    assert_eq!(api.send("POST", "/api/v1/alerts", &rule).status, 400);
    let done = elsewhere.post(&first, &[]);
    assert_eq!(done.header("location"), Some("/login?notice=verified"));
    assert_eq!(elsewhere.get(&first).status, 404, "once");
    assert_eq!(elsewhere.post(&first, &[]).status, 404);
    assert_eq!(api.send("POST", "/api/v1/alerts", &rule).status, 201);
    let page = ann.get("/account/notifications");
    assert!(!page.text().contains("not verified") && !page.text().contains("email/send"));
    let again = ann.post("/account/email/send", &[]);
    assert_eq!(again.header("location"), Some("/account/notifications?notice=verified"));
}

#[test]
fn a_link_expires_after_a_day() {
    let mailbox = Mailbox::new();
    let site = site_of_ann(&mailbox);
    let server = serve(&site);
    logged_in(&server, "ann@example.com").post("/account/email/send", &[]);
    let link = link(&mailbox.next());
    drop(server);
    let server = serve_on(&site, TOMORROW);
    let mut browser = Browser::new(&server);
    assert_eq!(browser.get(&link).status, 404);
    assert_eq!(browser.post(&link, &[]).status, 404);
    for other in ["/verify/", "/verify/00", "/verify/%00", &format!("/verify/{}", "0".repeat(64))] {
        assert_eq!(browser.get(other).status, 404, "{other}");
    }
    // Another link can be requested.
    browser.log_in("ann@example.com", PASSWORD);
    let sent = browser.post("/account/email/send", &[]);
    assert_eq!(sent.header("location"), Some("/account/notifications?notice=sent"));
    let link = self::link(&mailbox.next());
    assert_eq!(
        browser.post(&link, &[]).header("location"),
        Some("/account/notifications?notice=verified")
    );
}

#[test]
fn an_invitation_and_a_forgotten_password_reach_accounts_without_a_password() {
    let mailbox = Mailbox::new();
    let site = site(&mailbox.settings(PLAIN));
    // Without a server, nothing can check the link.
    let invite = |email: &str| site.run(&["account", "add", email, "--plan", "core", "--invite"]);
    invite("early@example.com").assert_failed(1, &["the server must be running"]);
    assert_eq!(site.ok(&["account", "list", "--json"]).trim(), "[]");
    let server = serve(&site);
    let mut mate = Browser::new(&server);
    assert_eq!(mate.get("/signup").status, 403, "a mail server does not open sign-up");

    assert_eq!(invite("mate@example.com").code, Some(0));
    let mail = mailbox.next();
    assert!(mail.to.contains("<mate@example.com>"), "{}", mail.to);
    assert!(mail.text.contains("choose a password"), "{}", mail.text);
    let link = link(&mail);
    assert_eq!(mate.get(&link).status, 200);
    assert_eq!(mate.post(&link, &[("password", "password1")]).status, 400, "too easy to guess");
    assert_eq!(mate.post(&link, &[("password", PASSWORD)]).header("location"), Some("/"));
    assert!(mate.is_in());
    assert_eq!(Browser::new(&server).get(&link).status, 404, "the link works once");

    site.account("silent@example.com", "core");
    let mut silent = Browser::new(&server);
    silent.post("/forgot", &[("email", "silent@example.com")]);
    let link = self::link(&mailbox.next());
    assert_eq!(silent.post(&link, &[("password", PASSWORD)]).header("location"), Some("/"));
    assert_eq!(silent.log_in("silent@example.com", PASSWORD).status, 303);
    invite("mate@example.com")
        .assert_failed(1, &["an account for mate@example.com already exists"]);
    let log = server.stop();
    assert!(log.contains("event=account_invited email=mate@example.com"), "{log}");
}

#[test]
fn an_invitation_without_mail_adds_no_account() {
    let site = site(PLAIN);
    let server = serve(&site);
    let invited = site.run(&["account", "add", "mate@example.com", "--plan", "core", "--invite"]);
    invited.assert_failed(1, &["no account was added", "[smtp]"]);
    assert_eq!(site.ok(&["account", "list", "--json"]).trim(), "[]");
    drop(server);
}

#[test]
fn a_page_says_that_mail_is_not_set_up() {
    let site = site(SIGN_UP);
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    browser.post("/signup", &[("email", "ann@example.com"), ("password", PASSWORD)]);
    browser.log_in("ann@example.com", PASSWORD);
    // The settings of every test have a mail server, but no address for links.
    let page = browser.get("/account/notifications");
    assert!(page.text().contains("cannot send verification links"), "{}", page.text());
    let answer = browser.post("/account/email/send", &[]);
    assert_eq!(answer.header("location"), Some("/account/notifications"));
}

#[test]
fn a_forgotten_password_is_replaced_by_mail() {
    let mailbox = Mailbox::new();
    let site = site(&settings(&mailbox));
    add(&site, "bob@example.com", "core");
    let server = serve(&site);
    let mut elsewhere = Browser::new(&server);
    elsewhere.post("/login", &[("email", "bob@example.com"), ("password", PASSWORD)]);
    assert_eq!(elsewhere.get("/account").status, 200);
    let mut bob = Browser::new(&server);
    assert!(bob.get("/login").text().contains("href=\"/forgot\""));
    let ask = |email: &str| {
        let answer = Browser::new(&server).post("/forgot", &[("email", email)]);
        (answer.status, answer.header("location").map(str::to_owned))
    };
    let known = ask("bob@example.com");
    assert_eq!(known, (303, Some("/forgot?notice=mailed".to_owned())));
    assert_eq!(ask("nobody@example.com"), known, "the response says nothing about accounts");
    let mail = mailbox.next();
    assert!(mail.to.contains("<bob@example.com>"), "{}", mail.to);
    let link = link(&mail);
    assert_eq!(bob.get(&link).status, 200);
    assert_eq!(bob.post(&link, &[("password", "short")]).status, 400);
    assert_eq!(elsewhere.get("/account").status, 200, "nothing changed so far");

    let set = bob.post(&link, &[("password", "an entirely new phrase")]);
    assert_eq!((set.status, set.header("location")), (303, Some("/")));
    assert_eq!(bob.get("/account").status, 200, "logged in");
    assert_eq!(elsewhere.get("/account").status, 303, "all other sessions ended");
    assert_eq!(bob.get(&link).status, 404, "the link works once");
    let log_in = |password| {
        let fields = [("email", "bob@example.com"), ("password", password)];
        Browser::new(&server).post("/login", &fields).status
    };
    assert_eq!((log_in(PASSWORD), log_in("an entirely new phrase")), (400, 303));
    let forged = link.replacen("/reset/", "/reset/A", 1);
    assert_eq!(bob.get(&forged).status, 404);
    assert_eq!(bob.post(&forged, &[("password", "an entirely new phrase")]).status, 404);
}

#[test]
fn without_mail_only_the_operator_replaces_a_forgotten_password() {
    let site = site("");
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    assert!(!browser.get("/login").text().contains("href=\"/forgot\""));
    let page = browser.get("/forgot");
    assert_eq!(page.status, 404);
    assert!(page.text().contains("dropdex account set-password"), "{}", page.text());
    assert_eq!(browser.post("/forgot", &[("email", "bob@example.com")]).status, 404);
}
