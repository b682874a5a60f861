//! API keys with names, scopes and an expiry: in the API, on the pages and on the command line.

use serde_json::json;

use super::{PLAIN, add, logged_in, serve, site};
use crate::common::{Response, Server, Site};

/// A request for each scope, with its status for an authorised key.
const REQUESTS: [(&str, &str, &str, &str, u16); 9] = [
    ("read", "GET", "/api/v1/drops", "", 200),
    ("read", "GET", "/api/v1/domain/solar.org", "", 200),
    ("read", "POST", "/api/v1/search/batch", r#"{"queries":[{"q":"s"}]}"#, 200),
    ("export", "GET", "/api/export/drops", "", 200),
    ("watchlist", "GET", "/api/v1/watchlist", "", 200),
    ("watchlist", "GET", "/api/v1/searches", "", 200),
    ("watchlist", "POST", "/api/v1/hidden", r#"{"domainNames":["solar.org"]}"#, 200),
    ("alerts", "GET", "/api/v1/alerts", "", 200),
    ("portfolio", "GET", "/api/v1/portfolio", "", 200),
];

fn made(site: &Site, options: &[&str]) -> String {
    let command = [&["account", "key", "ann@example.com"], options].concat();
    site.ok(&command).trim().to_owned()
}

fn ask(server: &Server, key: &str, method: &str, path: &str, body: &str) -> Response {
    let kind = [("Content-Type", "application/json")];
    server.client_with(key).send_with(method, path, &kind, body.as_bytes())
}

#[test]
fn a_key_may_use_only_its_scopes() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "api");
    let server = serve(&site);
    for scope in ["read", "export", "watchlist", "alerts", "portfolio", "feeds", "mcp"] {
        let key = made(&site, &["--name", scope, "--scopes", scope]);
        for (needed, method, path, body, status) in REQUESTS {
            let answer = ask(&server, &key, method, path, body);
            if needed == scope {
                assert_eq!(answer.status, status, "{path}: {}", answer.text());
                continue;
            }
            assert_eq!(answer.status, 403, "{scope}, {path}");
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
            assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()));
            assert_eq!(answer.header("x-ratelimit-limit"), None, "it does not count");
            let told = format!(
                "this key has no scope \"{needed}\"; create a key that has it on the account page"
            );
            assert_eq!(answer.json(), json!({ "error": told, "code": "insufficient_scope" }));
        }
    }
    let all = made(&site, &["--name", "all"]);
    for (_, method, path, body, status) in REQUESTS {
        assert_eq!(ask(&server, &all, method, path, body).status, status, "{path}");
    }
}

#[test]
fn owners_create_replace_and_revoke_keys() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "api");
    let server = serve(&site);
    let mut ann = logged_in(&server, "ann@example.com");
    assert_eq!(ann.post("/account/key", &[]).status, 200);
    let fields = [("name", "home <server>"), ("scope", "read"), ("scope", "mcp"), ("days", "90")];
    let answer = ann.post("/account/keys", &fields);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let key = key_in(answer.text());
    assert_eq!(server.client_with(&key).get("/api/v1/drops").status, 200);
    assert_eq!(server.client_with(&key).get("/api/v1/watchlist").status, 403);
    let page = ann.get("/account/security");
    let page = page.text();
    assert!(page.contains("home &lt;server&gt;") && page.contains("read, mcp"), "{page}");
    assert!(page.contains(&key[48..]) && !page.contains(&key));
    let id = ids_in(page).pop().expect("an id");
    let answer = ann.post("/account/keys/replace", &[("id", &id), ("keep", "yes")]);
    let next = key_in(answer.text());
    assert!(answer.text().contains("24 hours more"), "{}", answer.text());
    for key in [&key, &next] {
        assert_eq!(server.client_with(key).get("/api/v1/drops").status, 200);
    }
    let answer = ann.post("/account/keys/revoke", &[("id", &id)]);
    assert_eq!(answer.header("location"), Some("/account/security?notice=revoked"));
    assert_eq!(server.client_with(&key).get("/api/v1/drops").status, 401);
    let again = ann.post("/account/keys/revoke", &[("id", &id)]);
    assert_eq!(again.header("location"), Some("/account/security?notice=gone"));
    for (fields, words) in [
        (vec![("name", "x")], "Choose what the key may do."),
        (vec![("name", "x"), ("scope", "write")], "Choose what the key may do."),
        (vec![("name", ""), ("scope", "read")], "The name must have 1 to"),
        (vec![("name", "x"), ("scope", "read"), ("days", "soon")], "Choose when the key expires."),
    ] {
        let answer = ann.post("/account/keys", &fields);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(words), "{words}: {}", answer.text());
    }
}

#[test]
fn an_operator_creates_keys_with_limits() {
    let site = site(PLAIN);
    add(&site, "ann@example.com", "api");
    let short = made(&site, &["--name", "short", "--scopes", "read", "--days", "1"]);
    let first = made(&site, &[]);
    let server = serve(&site);
    for key in [&short, &first] {
        assert_eq!(server.client_with(key).get("/api/v1/drops").status, 200);
    }
    drop(server);
    for (options, words) in [
        (&["--days", "3"][..], "--name"),
        (&["--name", "x", "--scopes", "write"], "must be one of read, export"),
        (&["--name", "x", "--days", "0"], "1..=3650"),
        (&["--name", "\n"], "the name must"),
    ] {
        let command = [&["account", "key", "ann@example.com"], options].concat();
        let refused = site.run(&command);
        assert!(refused.code != Some(0) && refused.stderr.contains(words), "{}", refused.stderr);
    }
}

fn key_in(page: &str) -> String {
    let at = page.find("ddx_").unwrap_or_else(|| panic!("no key on the page: {page}"));
    page[at..at + 52].to_owned()
}

fn ids_in(page: &str) -> Vec<String> {
    let ids = page.split("name=\"id\" value=\"").skip(1);
    ids.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}
