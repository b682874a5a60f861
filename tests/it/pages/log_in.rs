//! Log-ins: who can log in, and how long a session lasts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::browser::Browser;
use super::{PASSWORD, PLAIN, TOMORROW, add, logged_in, serve, serve_on, site};
use crate::common::wait;

#[test]
fn the_cookie_is_for_this_host_over_tls() {
    let site = site("");
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    let answer = browser.log_in("ann@example.com", PASSWORD);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let set = answer.header("set-cookie").expect("a cookie");
    let value = set.strip_prefix("__Host-dropdex=").expect(set);
    let (value, attributes) = value.split_once("; ").expect(set);
    assert!(value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit()), "{set}");
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Secure; Path=/");
    assert!(browser.is_in());
    // A cookie that another host of the domain could have set is ignored.
    browser.cookie = Some(format!("dropdex={value}"));
    assert!(!browser.is_in());
}

#[test]
fn plain_http_is_only_for_loopback() {
    let plain = site(PLAIN);
    add(&plain, "ann@example.com", "core");
    let server = serve(&plain);
    let mut browser = logged_in(&server, "ann@example.com");
    assert!(browser.cookie.as_deref().is_some_and(|cookie| cookie.starts_with("dropdex=")));
    assert!(browser.is_in());
    drop(server);
    let settings = plain.settings(PLAIN);
    let refused = plain.run(&["serve", "--listen", "0.0.0.0:0", "--config", &settings]);
    refused.assert_failed(10, &["web.plain_http", "loopback"]);
}

#[test]
fn log_in_does_not_reveal_which_accounts_exist() {
    let site = site(PLAIN);
    for email in ["known@example.com", "other@example.com"] {
        add(&site, email, "core");
    }
    site.account("keyed@example.com", "pro");
    site.ok(&["account", "disable", "other@example.com"]);
    let server = serve(&site);
    let mut answers = Vec::new();
    let tried = [
        ("known@example.com", "wrong horse"),
        ("nobod@example.com", PASSWORD),
        ("keyed@example.com", PASSWORD),
        ("other@example.com", PASSWORD),
    ];
    let mut times = [Duration::MAX; 4];
    // The variants take turns, so that slow phases of the machine affect all of them.
    for _ in 0..5 {
        for ((email, password), least) in tried.iter().zip(&mut times) {
            let from = Instant::now();
            let answer = Browser::new(&server).log_in(email, password);
            *least = from.elapsed().min(*least);
            assert_eq!(answer.status, 400);
            assert_eq!(answer.header("set-cookie"), None);
            answers.push(answer.text().replace(email, "EMAIL"));
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "all responses are equal");
    // The work is the same in all cases; a look-up without a hash would be a hundred times as fast.
    let (least, most) = (times.iter().min(), times.iter().max());
    assert!(least.zip(most).is_some_and(|(least, most)| *least * 3 > *most), "{times:?}");
}

#[test]
fn a_stolen_cookie_is_invalid_after_log_out() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let mut browser = logged_in(&server, "ann@example.com");
    let mut stolen = browser.copy(&server);
    assert!(stolen.is_in());
    let answer = browser.post("/logout", &[]);
    assert_eq!(answer.header("location"), Some("/login?notice=logged-out"));
    assert_eq!(browser.cookie, None, "the browser forgets it");
    assert!(!stolen.is_in());
    assert_eq!(stolen.get("/api/export/drops").status, 401);
    assert_eq!(stolen.post("/account/key", &[]).header("location"), Some("/login"));
    // The same holds after a restart.
    drop(server);
    let server = serve(&site);
    assert!(!stolen.copy(&server).is_in());
}

#[test]
fn a_planted_session_id_is_not_adopted() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    let planted = format!("dropdex={}", "ab".repeat(32));
    browser.cookie = Some(planted.clone());
    browser.log_in("ann@example.com", PASSWORD);
    assert_ne!(browser.cookie, Some(planted));
    let mut first = browser.copy(&server);
    browser.log_in("ann@example.com", PASSWORD);
    assert_ne!(browser.cookie, first.cookie, "new at each log-in");
    assert!(browser.is_in() && !first.is_in(), "and the previous session has ended");
}

#[test]
fn sessions_survive_a_restart_and_end_after_a_day() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let browser = logged_in(&server, "ann@example.com");
    server.kill();
    let server = serve(&site);
    assert!(browser.copy(&server).is_in(), "the log-in was on disk before the response");
    drop(server);
    let server = serve_on(&site, TOMORROW);
    assert!(!browser.copy(&server).is_in());
}

#[test]
fn all_browsers_are_logged_out_at_once() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    add(&site, "bob@example.com", "core");
    let server = serve(&site);
    let mut bob = logged_in(&server, "bob@example.com");
    let mut browsers: Vec<_> = (0..3).map(|_| logged_in(&server, "ann@example.com")).collect();
    assert_eq!(browsers[0].get("/account/security").text().matches("Unknown browser").count(), 3);
    browsers[1].post("/logout", &[("everywhere", "yes")]);
    assert!(browsers.iter_mut().all(|browser| browser.cookie.is_none() || !browser.is_in()));
    assert!(bob.is_in(), "other accounts are not affected");
    // The operator ends sessions by a new password and by disabling the account.
    site.ok_with_input(
        &["account", "set-password", "bob@example.com", "--password-stdin"],
        "another horse",
    );
    assert!(!bob.is_in());
    assert_eq!(bob.log_in("bob@example.com", PASSWORD).status, 400);
    assert_eq!(bob.log_in("bob@example.com", "another horse").status, 303);
    site.ok(&["account", "disable", "bob@example.com"]);
    assert!(!bob.is_in());
    drop(server);
    // The commands do the same without a server.
    site.ok_with_input(
        &["account", "set-password", "ann@example.com", "--password-stdin"],
        "another horse",
    );
    let server = serve(&site);
    assert_eq!(Browser::new(&server).log_in("ann@example.com", "another horse").status, 303);
}

#[test]
fn a_log_in_redirects_only_within_this_site() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    for (next, location) in [
        ("/watchlist?sort=dqs", "/watchlist?sort=dqs"),
        ("//evil.example/", "/"),
        ("/\\evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
    ] {
        let mut browser = Browser::new(&server);
        let fields = [("email", "ann@example.com"), ("password", PASSWORD), ("next", next)];
        assert_eq!(browser.post("/login", &fields).header("location"), Some(location), "{next}");
        let query =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
        let there = browser.get(&format!("/login?{query}"));
        assert_eq!((there.status, there.header("location")), (303, Some(location)), "{next}");
    }
}

#[test]
fn a_flood_of_log_ins_is_throttled_without_locking_accounts() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let from = |address: &'static str| [super::browser::SAME_ORIGIN, ("X-Forwarded-For", address)];
    let owner = |password| {
        let fields = [("email", "ann@example.com"), ("password", password)];
        Browser::new(&server).post_with("/login", &fields, &from("192.0.2.1"))
    };
    assert_eq!(owner(PASSWORD).status, 303);
    // Attempts from many addresses at once.
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|thread| {
                let mut browser = Browser::new(&server);
                scope.spawn(move || {
                    let fields = [("email", "ann@example.com"), ("password", "guess")];
                    let address = format!("198.51.100.{thread}");
                    let headers =
                        [super::browser::SAME_ORIGIN, ("X-Forwarded-For", address.as_str())];
                    let one = |_| browser.post_with("/login", &fields, &headers).status;
                    (0..12).map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let count = |status| answers.iter().filter(|it| **it == status).count();
    assert_eq!(count(400) + count(429) + count(503), answers.len(), "{answers:?}");
    assert!(count(400) <= 40 && count(429) >= 100, "{answers:?}");
    // The owner's network keeps access; other networks wait.
    assert_eq!(owner(PASSWORD).status, 303, "the flood does not keep out the owner");
    let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
    let answer = Browser::new(&server).post_with("/login", &fields, &from("203.0.113.1"));
    assert_eq!(answer.status, 429);
    let wait = answer.number("retry-after").expect("a retry time");
    assert!((1..=61).contains(&wait), "{wait}");
    assert!(
        answer.text().contains("Too many attempts") && answer.text().contains("ann@example.com")
    );
    // Guesses from one address are soon throttled, even for other accounts.
    let mut statuses = Vec::new();
    for number in 0..60 {
        let email = format!("a{number}@example.com");
        let fields = [("email", email.as_str()), ("password", "guess")];
        let answer = Browser::new(&server).post_with("/login", &fields, &from("203.0.113.2"));
        statuses.push(answer.status);
    }
    assert!(statuses.ends_with(&[429]), "{statuses:?}");
    assert_eq!(server.client().get("/api/health").status, 200);
}

#[test]
fn guesses_from_many_networks_do_not_keep_out_a_known_one() {
    const GUESSERS: usize = 64;
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let owner = || {
        let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
        let headers = [super::browser::SAME_ORIGIN, ("X-Forwarded-For", "192.0.2.1")];
        Browser::new(&server).post_with("/login", &fields, &headers).status
    };
    assert_eq!(owner(), 303);
    let (guesses, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let answers = std::thread::scope(|scope| {
        for guesser in 0..GUESSERS {
            let (guesses, is_over) = (&guesses, &is_over);
            let mut browser = Browser::new(&server);
            scope.spawn(move || {
                for number in 0.. {
                    let network = format!("10.{guesser}.{}.1", number % 250);
                    let email = format!("a{guesser}.{number}@example.com");
                    let headers =
                        [super::browser::SAME_ORIGIN, ("X-Forwarded-For", network.as_str())];
                    let fields = [("email", email.as_str()), ("password", "guess a word")];
                    let status = browser.post_with("/login", &fields, &headers).status;
                    assert!([400, 429, 503].contains(&status), "{status}");
                    guesses.fetch_add(1, Ordering::Relaxed);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        wait::until(Duration::from_secs(60), "guesses are answered", || {
            guesses.load(Ordering::Relaxed) > GUESSERS
        });
        let answers: Vec<u16> = (0..6).map(|_| owner()).collect();
        is_over.store(true, Ordering::Relaxed);
        answers
    });
    assert_eq!(answers, [303; 6]);
}
