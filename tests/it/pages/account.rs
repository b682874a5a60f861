//! Sign-up, keys, passwords and Telegram chats, through forms.

use super::browser::Browser;
use super::{PASSWORD, PLAIN, SIGN_UP, add, logged_in, serve, site};

/// Returns the text of the element with this ID, up to the next tag.
#[track_caller]
fn text_of<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{page}"));
    let (_, rest) = rest.split_once('>').expect("a tag ends");
    rest.split_once('<').expect("an element ends").0
}

#[test]
fn sign_up_leads_to_a_working_key() {
    let site = site("[web]\nplain_http = true\nsignup = true\nsignup_plan = \"pro\"\n");
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    let fields = [("email", "Ann@Example.com"), ("password", PASSWORD)];
    let answer = browser.post("/signup", &fields);
    let login = "/login?notice=signed-up";
    assert_eq!(answer.header("location"), Some(login), "{}", answer.text());
    assert_eq!(browser.cookie, None);
    assert!(browser.get(login).text().contains("Sign-up complete."));
    assert_eq!(browser.log_in("ann@example.com", PASSWORD).status, 303);
    assert!(browser.is_in());
    let page = browser.get("/account/security");
    assert!(page.text().contains("no API key yet"));
    let answer = browser.post("/account/key", &[]);
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let key = text_of(answer.text(), "key").to_owned();
    assert_eq!(answer.text().matches(&key).count(), 4, "by itself, and in three lines to copy");
    let drops = server.client_with(&key).get("/api/v1/drops");
    assert_eq!((drops.status, drops.json()["count"].as_u64()), (200, Some(3)));
    // The key is shown once; the next key revokes it.
    let page = browser.get("/account/security");
    assert!(!page.text().contains(&key) && page.text().contains(&key[48..]));
    assert!(page.text().contains("$DROPDEX_KEY"));
    let answer = browser.post("/account/key", &[]);
    assert_ne!(text_of(answer.text(), "key"), key);
    assert_eq!(server.client_with(&key).get("/api/v1/drops").status, 401);
    // The page shows used requests.
    let page = browser.get("/account/plan");
    assert!(page.text().contains("1 of 100"), "{}", page.text());
    assert_eq!(browser.get("/signup").header("location"), Some("/"), "one account is enough");
    let list = site.ok(&["account", "list", "--json"]);
    assert!(list.contains("\"email\": \"ann@example.com\""), "{list}");
    assert!(list.contains("\"email_verified\": false"), "{list}");
}

#[test]
fn an_invalid_form_is_shown_again_with_its_errors() {
    let site = site(SIGN_UP);
    let server = serve(&site);
    for (email, password, words) in [
        ("nobody", PASSWORD, "An e-mail address has one @"),
        ("bob@example.com", "short", "8 to 128 characters, this has 5"),
        ("bob@example.com", "password1", "too common or too easy to guess"),
        ("bobbybob@example.com", "bobbybob", "too common or too easy to guess"),
    ] {
        let mut browser = Browser::new(&server);
        let answer = browser.post("/signup", &[("email", email), ("password", password)]);
        let page = answer.text();
        assert_eq!(answer.status, 400, "{email} {password}");
        assert!(page.contains(words) && page.contains("aria-invalid=\"true\""), "{page}");
        assert!(page.contains(&format!("value=\"{email}\"")), "typed text is kept: {page}");
        assert!(!page.contains(&format!("\"{password}\"")), "but no password: {page}");
        assert_eq!(browser.cookie, None);
    }
    let nothing = Browser::new(&server).post("/signup", &[]);
    assert_eq!(nothing.status, 400);
    let mut browser = Browser::new(&server);
    let json = [("Sec-Fetch-Site", "same-origin"), ("Content-Type", "application/json")];
    let other = server.client().send_with("POST", "/signup", &json, b"{}");
    assert_eq!(other.status, 400, "{}", other.text());
    let long = "a".repeat(300 * 1024);
    assert_eq!(browser.post("/login", &[("email", &long)]).status, 413);
}

#[test]
fn an_operator_closes_sign_up() {
    let site = site("[web]\nplain_http = true\nsignup = false\n");
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    assert_eq!(browser.get("/signup").status, 403);
    let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
    let answer = browser.post("/signup", &fields);
    assert_eq!((answer.status, browser.cookie.clone()), (403, None));
    assert!(answer.text().contains("Sign-up is closed"));
    assert!(!browser.get("/login").text().contains("/signup"));
    assert_eq!(site.ok(&["account", "list", "--json"]).trim(), "[]");
}

#[test]
fn sign_up_responds_alike_to_known_and_unknown_addresses() {
    let site = site(SIGN_UP);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let sign_up = |email: &str| {
        let fields = [("email", email), ("password", "another horse"), ("next", "/watchlist")];
        let answer = Browser::new(&server).post("/signup", &fields);
        let told = |(name, _): &&(String, String)| name != "date" && name != "x-request-id";
        let headers: Vec<_> = answer.headers.iter().filter(told).cloned().collect();
        (answer.status, headers, answer.body.clone())
    };
    let known = sign_up("ann@example.com");
    assert_eq!(known, sign_up("bob@example.com"));
    assert_eq!(known.0, 303);
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in("ann@example.com", "another horse").status, 400, "hers is kept");
    assert_eq!(browser.log_in("ann@example.com", PASSWORD).status, 303);
    assert_eq!(browser.log_in("bob@example.com", "another horse").status, 303);
}

#[test]
fn sign_up_is_closed_by_default_without_mail() {
    let site = site(PLAIN);
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    let page = browser.get("/signup");
    assert_eq!(page.status, 403);
    assert!(page.text().contains("Ask the administrator for an account"), "{}", page.text());
    let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
    assert_eq!(browser.post("/signup", &fields).status, 403);
    assert_eq!(browser.get("/signup/AAAA").status, 404);
    assert_eq!(browser.post("/signup/AAAA", &fields).status, 404);
    assert_eq!(site.ok(&["account", "list", "--json"]).trim(), "[]");
}

#[test]
fn sign_ups_are_limited_by_network() {
    let site = site(SIGN_UP);
    let server = serve(&site);
    let mut statuses = Vec::new();
    for number in 0..14 {
        let email = format!("a{number}@example.com");
        let fields = [("email", email.as_str()), ("password", PASSWORD)];
        let answer = Browser::new(&server).post("/signup", &fields);
        if answer.status == 429 {
            assert!(answer.number("retry-after").is_some_and(|wait| wait > 0));
        }
        statuses.push(answer.status);
    }
    assert_eq!(statuses, [[303; 10].as_slice(), &[429; 4]].concat());
}

#[test]
fn a_password_change_needs_the_current_password() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let mut browser = logged_in(&server, "ann@example.com");
    let mut other = logged_in(&server, "ann@example.com");
    let mut change = |present, password| {
        let before = browser.cookie.clone();
        let answer =
            browser.post("/account/password", &[("present", present), ("password", password)]);
        (answer, before == browser.cookie)
    };
    for (present, password, words) in [
        ("wrong horse", "another horse", "Wrong password"),
        (PASSWORD, "short", "8 to 128 characters"),
        (PASSWORD, "ann@example.com", "too common or too easy to guess"),
    ] {
        let (answer, same) = change(present, password);
        assert_eq!((answer.status, same), (400, true));
        assert!(answer.text().contains(words), "{}", answer.text());
    }
    let (answer, same) = change(PASSWORD, "another horse");
    assert_eq!(answer.header("location"), Some("/account/security?notice=password"));
    assert!(!same, "a new id for a new password");
    assert!(browser.is_in() && !other.is_in());
    assert_eq!(other.log_in("ann@example.com", PASSWORD).status, 400);
    assert_eq!(other.log_in("ann@example.com", "another horse").status, 303);
    // An open session does not allow passwords to be guessed faster.
    let guess =
        |_| browser.post("/account/password", &[("present", "x"), ("password", "longer horse")]);
    let last = (0..40).map(guess).last().expect("forty");
    assert_eq!(last.status, 429);
}

#[test]
fn every_tab_is_only_for_its_owner() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "free");
    let server = serve(&site);
    let tabs = [
        "/account",
        "/account/plan",
        "/account/security",
        "/account/notifications",
        "/account/data",
    ];
    let mut nobody = Browser::new(&server);
    for tab in tabs {
        let answer = nobody.get(&format!("{tab}?a=b"));
        let next = tab.replace('/', "%2F");
        let location = format!("/login?next={next}%3Fa%3Db");
        assert_eq!(answer.header("location"), Some(location.as_str()));
    }
    for form in [
        "/account/key",
        "/account/password",
        "/account/delete",
        "/account/telegram",
        "/account/email/send",
    ] {
        let answer = nobody.post(form, &[]);
        assert_eq!((answer.status, answer.header("location")), (303, Some("/login")), "{form}");
    }
    let mut ann = logged_in(&server, "ann@example.com");
    for tab in tabs {
        let answer = ann.get(tab);
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.text().matches("<h1").count(), 1);
    }
    let plan = ann.get("/account/plan");
    for (words, shown) in [("$29", false), ("Requires the Pro plan", false), ("00:00 UTC", true)] {
        assert_eq!(plan.text().contains(words), shown, "{words}: {}", plan.text());
    }
    assert!(ann.get("/account/security").text().contains("does not include the JSON API"));
}

#[test]
fn plans_are_shown_if_they_are_public() {
    let site = site(&format!("{PLAIN}[plans]\npublic = true\n[plans.pro]\nprice_usd = 31\n"));
    add(&site, "ann@example.com", "free");
    let server = serve(&site);
    let mut ann = logged_in(&server, "ann@example.com");
    let plan = ann.get("/account/plan");
    for words in ["$31", "10,000", "Requires the Pro plan"] {
        assert!(plan.text().contains(words), "{words}: {}", plan.text());
    }
    assert!(ann.get("/account/security").text().contains("requires the Pro plan"));
}

#[test]
fn a_chat_is_kept_for_new_rules() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "core");
    let server = serve(&site);
    let mut ann = logged_in(&server, "ann@example.com");
    let answer = ann.post("/account/telegram", &[("chat", "\"><script>alert(1)</script>")]);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("&lt;script&gt;") && !answer.text().contains("<script>alert"));
    let answer = ann.post("/account/telegram", &[("chat", " -1001234567890 ")]);
    assert_eq!(answer.header("location"), Some("/account/notifications?notice=chat"));
    assert!(ann.get("/account/notifications").text().contains("value=\"-1001234567890\""));
    let answer = ann.post("/account/telegram", &[("chat", "")]);
    assert_eq!(answer.header("location"), Some("/account/notifications?notice=no-chat"));
}

#[test]
fn html_in_a_field_stays_text() {
    let site = site(SIGN_UP);
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    let evil = "\"><script>alert(1)</script>@example.com";
    for path in ["/login", "/signup"] {
        for (email, next) in [(evil, "/"), ("ann@example.com", evil)] {
            let fields = [("email", email), ("password", "short"), ("next", next)];
            let answer = browser.post(path, &fields);
            let page = answer.text();
            assert_eq!(answer.status, 400);
            assert!(page.contains("&quot;&gt;&lt;script&gt;") && !page.contains("<script>alert"));
        }
        let page = browser.get(&format!("{path}?next=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"));
        assert!(!page.text().contains("<script>alert"), "{}", page.text());
    }
    // An address that our rules accept. Every tab shows it.
    let fields = [("email", "<b>ann</b>@example.com"), ("password", PASSWORD)];
    assert_eq!(browser.post("/signup", &fields).status, 303);
    assert_eq!(browser.log_in("<b>ann</b>@example.com", PASSWORD).status, 303);
    let page = browser.get("/account");
    assert!(page.text().contains("&lt;b&gt;ann&lt;/b&gt;@example.com"), "{}", page.text());
    assert!(!page.text().contains("<b>ann"));
}

#[test]
fn credentials_are_neither_stored_nor_logged() {
    let site = site(SIGN_UP);
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    browser.post("/signup", &[("email", "ann@example.com"), ("password", PASSWORD)]);
    browser.log_in("ann@example.com", PASSWORD);
    let (token, key) = {
        let answer = browser.post("/account/key", &[]);
        (browser.token(), text_of(answer.text(), "key").to_owned())
    };
    browser.post("/login", &[("email", "ann@example.com"), ("password", "wrong horse")]);
    let dump = site.ok(&["journal", "dump"]);
    let mut read = 0;
    let mut files = vec![site.data()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                std::fs::read_dir(path).expect("a folder").map(|it| it.expect("one").path()),
            );
        } else if path.extension().is_none_or(|it| it != "sock") {
            let bytes = std::fs::read(&path).expect("readable");
            for secret in [&token, &key, PASSWORD, "wrong horse"] {
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "{}", path.display());
            }
            read += 1;
        }
    }
    assert!(read > 0);
    let log = server.stop();
    for secret in [&token, &key, PASSWORD, "wrong horse"] {
        assert!(!log.contains(secret) && !dump.contains(secret));
    }
}

#[test]
fn a_session_is_kept_on_request() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "free");
    let server = serve(&site);
    let log_in = |keep: &[(&str, &str)]| {
        let fields = [&[("email", "ann@example.com"), ("password", PASSWORD)], keep].concat();
        let mut browser = Browser::new(&server);
        let answer = browser.post("/login", &fields);
        (browser, answer.header("set-cookie").expect("a session").to_owned())
    };
    let (_, cookie) = log_in(&[]);
    assert!(!cookie.contains("Max-Age"), "{cookie}");
    let (mut kept, cookie) = log_in(&[("keep", "yes")]);
    assert!(cookie.contains("Max-Age"), "{cookie}");
    assert_eq!(kept.get("/account").status, 200);
    // A form with a mistake is returned with its values.
    let wrong = [("email", "ann@example.com"), ("password", "wrong wrong"), ("keep", "yes")];
    let again = Browser::new(&server).post("/login", &wrong);
    assert!(again.text().contains("name=\"keep\" value=\"yes\" checked"), "{}", again.text());
}
