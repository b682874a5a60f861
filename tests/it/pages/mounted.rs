//! A server whose public address has a path: every address that it returns is below that path.

use std::collections::{BTreeSet, VecDeque};

use regex::Regex;
use serde_json::json;

use super::browser::{Browser, SAME_ORIGIN};
use super::{PASSWORD, add, serve, site};

const PATH: &str = "/tools/drops";
const SETTINGS: &str = "public_url = \"https://example.com/tools/drops/\"\n[web]\nsignup = true\n";

/// Follows all links of a member from the first page, and checks the addresses of every page.
#[test]
fn every_link_of_every_page_is_below_the_path() {
    let site = site(SETTINGS);
    add(&site, "ann@example.com", "api");
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    let fields = [("email", "ann@example.com"), ("password", PASSWORD)];
    let answer = browser.post(&format!("{PATH}/login"), &fields);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/tools/drops/")));
    let set = answer.header("set-cookie").expect("a cookie").to_owned();
    assert!(set.starts_with("__Secure-dropdex=") && set.contains("; Path=/tools/drops"), "{set}");
    browser.post(&format!("{PATH}/watch"), &[("domain", "good.com"), ("next", "/watchlist")]);

    let address =
        Regex::new("(href|src|action|formaction|data-href|data-path|content)=\"([^\"]*)\"")
            .expect("valid");
    let mut waiting: VecDeque<String> = [format!("{PATH}/")].into();
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let (mut pages, mut addresses) = (0, 0);
    while let Some(target) = waiting.pop_front() {
        let answer =
            browser.get_with(&target, &[("Sec-Fetch-Site", "none"), ("Accept", "text/html")]);
        if (300..400).contains(&answer.status) {
            let to = answer.header("location").expect("a location").to_owned();
            assert!(to.starts_with(PATH), "{target} redirects to {to}");
            continue;
        }
        assert!(answer.status < 500, "{target}: {}", answer.text());
        if !answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            continue;
        }
        pages += 1;
        for found in address.captures_iter(answer.text()) {
            let (name, to) = (&found[1], found[2].replace("&amp;", "&"));
            if !to.starts_with('/') || to.starts_with("//") {
                continue;
            }
            addresses += 1;
            assert!(to.starts_with(PATH), "{target}: {name} leads to {to}");
            let path = to.split(['?', '#']).next().unwrap_or_default().to_owned();
            // Each kind of page is opened once, because other queries lead to the same page.
            if name != "action" && name != "formaction" && seen.len() < 150 && seen.insert(path) {
                waiting.push_back(to.split('#').next().unwrap_or_default().to_owned());
            }
        }
    }
    assert!(pages > 20 && addresses > 500, "{pages} pages, {addresses} addresses");
}

#[test]
fn requests_come_with_or_without_the_path() {
    let site = site(SETTINGS);
    add(&site, "ann@example.com", "api");
    let key = site.new_key("ann@example.com");
    let server = serve(&site);
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in("ann@example.com", PASSWORD).status, 303);
    for path in ["/account", "/tools/drops/account"] {
        assert_eq!(browser.get(path).status, 200, "{path}");
    }
    let html = [SAME_ORIGIN, ("Accept", "text/html")];
    let nowhere = browser.get_with("/tools/drops/nowhere", &html);
    assert_eq!(nowhere.status, 404);
    assert!(nowhere.text().contains("href=\"/tools/drops/\""), "errors are pages too");
    let mut nobody = Browser::new(&server);
    let login = nobody.get("/watchlist?sort=dqs");
    let next = "/tools/drops/login?next=%2Fwatchlist%3Fsort%3Ddqs";
    assert_eq!(login.header("location"), Some(next));
    let fields =
        [("email", "ann@example.com"), ("password", PASSWORD), ("next", "/watchlist?sort=dqs")];
    let back = nobody.post("/login", &fields);
    assert_eq!(back.header("location"), Some("/tools/drops/watchlist?sort=dqs"));

    let mut client = server.client_with(&key);
    for start in ["", PATH] {
        let drops = client.get(&format!("{start}/api/v1/drops?limit=1"));
        assert_eq!(drops.status, 200, "{}", drops.text());
        let link = drops.header("link").expect("a next page");
        assert!(link.starts_with("</tools/drops/api/v1/drops?"), "{link}");
    }
    let search = json!({"name": "a", "filter": {"tlds": ["com"]}});
    let made = client.send("POST", "/api/v1/searches", &search);
    assert_eq!(made.status, 201, "{}", made.text());
    let location = made.header("location").expect("a location");
    assert!(location.starts_with("/tools/drops/api/v1/searches/"), "{location}");
    let document = client.get("/api/openapi.json").json();
    assert_eq!(document["servers"][0]["url"], "/tools/drops");
    assert_eq!(client.get("/api/v1").json()["docs"], "/tools/drops/api/docs");
    assert!(client.get("/tools/drops/api/ready/reads").status < 500);
    let feed = client.send("POST", "/api/v1/feeds", &json!({}));
    assert_eq!(feed.status, 201, "{}", feed.text());
    let atom = feed.json()["atom"].as_str().expect("an address").to_owned();
    let read = client.get(&atom);
    assert!(read.status == 200 && atom.starts_with("/tools/drops/feeds/"), "{atom}");
    assert!(read.text().contains("https://example.com/tools/drops/feeds/"), "{}", read.text());
}
