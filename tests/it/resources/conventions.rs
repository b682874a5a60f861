//! Conventions of all endpoints of user data: idempotency keys, preconditions, paths, defaults.

use serde_json::{Value, json};

use super::{TODAY, add_alert, add_claim, error, served, site};
use crate::common::{Client, Response};

/// Sends a POST with an idempotency key.
fn keyed(client: &mut Client, path: &str, key: &str, body: &Value) -> Response {
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    client.send_with("POST", path, &headers, body.to_string().as_bytes())
}

#[test]
fn every_post_that_writes_is_replayed() {
    let site = site();
    let (_server, mut client) = served(&site);
    let channels = json!([{"type": "email"}]);
    for (at, (path, body, other)) in [
        ("/api/v1/feeds", json!({}), json!({"searchId": 1})),
        (
            "/api/v1/hidden",
            json!({"domainNames": ["a.com", "b.com"]}),
            json!({"domainNames": ["c.com"]}),
        ),
        ("/api/v1/watchlist", json!({"domainName": "a.com"}), json!({"domainName": "b.com"})),
        (
            "/api/v1/watchlist/batch",
            json!({"domainNames": ["pending.com", "free.com", "no name"]}),
            json!({"domainNames": ["redeem.com"]}),
        ),
        (
            "/api/v1/watchlist/batch",
            json!({"domainNames": ["gone.com"], "tags": ["x"], "maxBidUsd": 5}),
            json!({"domainNames": ["gone.com"], "tags": ["y"]}),
        ),
        (
            "/api/v1/portfolio",
            json!({"domain": "a.com", "status": "caught"}),
            json!({"domain": "b.com", "status": "caught"}),
        ),
        (
            "/api/v1/searches",
            json!({"name": "n", "filter": {}}),
            json!({"name": "m", "filter": {}}),
        ),
        (
            "/api/v1/alerts",
            json!({"name": "n", "filter": {}, "channels": channels}),
            json!({"name": "m", "filter": {}, "channels": channels}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key {at}");
        let first = keyed(&mut client, path, &key, &body);
        assert!(matches!(first.status, 200 | 201), "{path}: {}", first.text());
        assert_eq!(first.header("idempotency-replayed"), None, "{path}");
        let again = keyed(&mut client, path, &key, &body);
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{path}");
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{path}");
        let (status, refused) = keyed(&mut client, path, &key, &other).answer();
        assert_eq!((status, &refused["code"]), (409, &json!("idempotency_conflict")), "{path}");
        // A request with another key runs separately.
        let anew = keyed(&mut client, path, &format!("{key}, again"), &body);
        assert_eq!(anew.header("idempotency-replayed"), None, "{path}");
        assert!(matches!(anew.status, 200 | 201), "{path}: {}", anew.text());
    }
    assert_eq!(client.get("/api/v1/hidden").json()["total"], 2);
    assert_eq!(client.get("/api/v1/portfolio").json()["count"], 2);
}

#[test]
fn a_retry_keeps_the_first_address_of_a_feed() {
    let site = site();
    let (server, mut client) = served(&site);
    let first = keyed(&mut client, "/api/v1/feeds", "once", &json!({}));
    let retry = keyed(&mut client, "/api/v1/feeds", "once", &json!({}));
    assert_eq!(retry.body, first.body);
    assert_eq!(retry.header("cache-control"), Some("no-store"), "it has a secret");
    let address = first.json()["atom"].as_str().expect("a path").to_owned();
    assert_eq!(server.client().get(&address).status, 200);
    let anew = client.send("POST", "/api/v1/feeds", &json!({}));
    assert_eq!(anew.status, 201, "without a key, the address is another one");
    assert_eq!(server.client().get(&address).status, 404);
}

#[test]
fn a_replayed_batch_survives_a_restart() {
    let site = site();
    let (server, mut client) = served(&site);
    let names: Vec<_> = (0..600).map(|at| format!("name-{at}.invalid-tld-{at}")).collect();
    for (key, body) in [
        ("long", json!({"domainNames": names})),
        ("tags", json!({"domainNames": ["pending.com", "redeem.com"], "tags": ["a"]})),
    ] {
        let first = keyed(&mut client, "/api/v1/watchlist/batch", key, &body);
        assert_eq!(first.status, 200, "{}", first.text());
        let again = keyed(&mut client, "/api/v1/watchlist/batch", key, &body);
        assert_eq!(
            (again.header("idempotency-replayed"), &again.body),
            (Some("true"), &first.body)
        );
    }
    server.stop();
    let server = site.serve(TODAY);
    let mut client = server.client_with(&site.new_key("owner@example.com"));
    let tags = json!({"domainNames": ["pending.com", "redeem.com"], "tags": ["a"]});
    let again = keyed(&mut client, "/api/v1/watchlist/batch", "tags", &tags);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["added"], 2);
}

#[test]
fn a_trailing_slash_makes_no_difference() {
    let site = site();
    let (server, mut client) = served(&site);
    let claim = add_claim(&mut client, &json!({"domain": "pending.com", "status": "caught"}));
    for path in [
        "/api/v1".to_owned(),
        "/api/v1/drops".to_owned(),
        "/api/v1/domain/pending.com".to_owned(),
        "/api/v1/portfolio".to_owned(),
        format!("/api/v1/portfolio/{claim}"),
        "/api/openapi.json".to_owned(),
        "/api/export/drops".to_owned(),
    ] {
        let (plain, slashed) = (client.get(&path), client.get(&format!("{path}/")));
        assert_eq!((slashed.status, &slashed.body), (200, &plain.body), "{path}");
    }
    let found = client.get("/api/v1/drops/?limit=1&tld=com");
    assert_eq!(found.json()["limit"], 1);
    let next = found.header("link").expect("there are more");
    assert!(next.starts_with("</api/v1/drops?limit=1&tld=com&cursor="), "{next}");
    assert_eq!(client.get("/api/health/").status, 200);
    // A retry may spell the path differently.
    let body = json!({"domain": "redeem.com", "status": "caught"});
    let first = keyed(&mut client, "/api/v1/portfolio/", "k", &body);
    let again = keyed(&mut client, "/api/v1/portfolio", "k", &body);
    assert_eq!((first.status, again.header("idempotency-replayed")), (201, Some("true")));
    for path in ["/api/v1/drops//", "/api/v1/none/", "/api/"] {
        assert_eq!(client.get(path).answer(), (404, error("not found")), "{path}");
    }
    assert_eq!(server.client().get("/api/v1/drops/").status, 401);
}

#[test]
fn the_defaults_of_the_document_are_accepted_everywhere() {
    let site = site();
    let (_server, mut client) = served(&site);
    let (alert, document) = (add_alert(&mut client, "a"), client.get("/api/openapi.json").json());
    let cursor = client.get("/api/v1/drops?limit=1").json()["nextCursor"].clone();
    let cursor = cursor.as_str().expect("there are more").to_owned();
    let paths = document["paths"].as_object().expect("paths");
    let mut tried = 0;
    for (path, item) in paths.iter().filter(|(path, _)| path.starts_with("/api/")) {
        let parameters = item["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let mut pairs = Vec::new();
        for parameter in parameters.iter().filter(|it| it["in"] == "query") {
            let name = parameter["name"].as_str().expect("a name");
            let value = match &parameter["schema"]["default"] {
                Value::Null if parameter["required"] == true => parameter["example"].clone(),
                Value::Null => continue,
                default => default.clone(),
            };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            pairs.push(format!("{name}={text}"));
        }
        if pairs.is_empty() {
            continue;
        }
        if path == "/api/v1/search" {
            pairs.push("q=pend".to_owned());
        }
        if path == "/api/v1/drops" {
            pairs.push(format!("cursor={cursor}"));
        }
        let path = path.replace("{id}", &alert.to_string());
        let answer = client.get(&format!("{path}?{}", pairs.join("&")));
        assert_eq!(answer.status, 200, "{path} {pairs:?}: {}", answer.text());
        tried += 1;
    }
    assert!(tried > 8, "{tried}");
    let refused = client.get(&format!("/api/v1/drops?offset=1&cursor={cursor}")).answer();
    assert_eq!(refused, (400, error("cursor: must not be given with an offset above 0")));
}

#[test]
fn a_cursor_belongs_to_the_query_and_not_to_its_spelling() {
    let site = site();
    let (_server, mut client) = served(&site);
    let first = client.get("/api/v1/drops?limit=1&tld=com,de&release_to=%2B300d").json();
    let cursor = first["nextCursor"].as_str().expect("there are more").to_owned();
    let second = |client: &mut Client, query: &str| {
        client.get(&format!("/api/v1/drops?{query}&cursor={cursor}")).answer()
    };
    let (status, expected) = second(&mut client, "limit=1&tld=com,de&release_to=%2B300d");
    assert_eq!(status, 200, "{expected}");
    for query in [
        "limit=1&tld=DE,.com,de&release_to=2027-01-09",
        "tld=com,de&release_to=%2B300d&view=active&sort=dqs&order=desc&offset=0&min_dqs=0&limit=1",
        "limit=1&stage=redemption,catchable,pending-delete&release_to=%2B300d&tld=de,com",
    ] {
        assert_eq!(second(&mut client, query), (200, expected.clone()), "{query}");
    }
    for query in [
        "tld=com",
        "tld=com,de&release_to=%2B300d&view=all",
        "tld=com,de&release_to=%2B300d&sort=name",
    ] {
        let (status, refused) = second(&mut client, query);
        assert_eq!((status, &refused["code"]), (400, &json!("cursor_mismatch")), "{query}");
    }
}

#[test]
fn links_lead_through_every_list() {
    let site = site();
    let (_server, mut client) = served(&site);
    let names = ["a.com", "b.com", "münchen.de", "d.com", "e.com"];
    client.send("POST", "/api/v1/watchlist/batch", &json!({ "domainNames": names }));
    client.send("POST", "/api/v1/hidden", &json!({ "domainNames": names }));
    for name in names {
        add_claim(&mut client, &json!({"domain": name, "status": "caught"}));
        add_alert(&mut client, name);
        client.send("POST", "/api/v1/searches", &json!({"name": name, "filter": {}}));
    }
    for (path, rows) in [
        ("/api/v1/watchlist?sort=name", "watchlist"),
        ("/api/v1/hidden?", "hidden"),
        ("/api/v1/portfolio?status=caught,lost", "claims"),
        ("/api/v1/alerts?", "alerts"),
        ("/api/v1/searches?", "searches"),
        ("/api/v1/search?contains=e&min_dqs=0", "results"),
        ("/api/v1/drops?view=all", "drops"),
    ] {
        let all = client.get(path).json();
        let (mut next, mut seen) = (Some(format!("{path}&limit=2")), Vec::new());
        while let Some(target) = next.take() {
            let page = client.get(&target);
            let link = page.header("link").and_then(|link| link.strip_suffix(">; rel=\"next\""));
            next = link.and_then(|link| link.strip_prefix('<')).map(str::to_owned);
            let body = page.json();
            assert_eq!((&body["total"], &body["limit"]), (&all["total"], &json!(2)), "{target}");
            seen.extend(body[rows].as_array().expect("rows").iter().cloned());
        }
        assert!(seen.len() > 2, "{path}: {all}");
        assert_eq!(
            (json!(seen), json!(seen.len())),
            (all[rows].clone(), all["total"].clone()),
            "{path}"
        );
    }
    let watched = client.get("/api/v1/watchlist").json();
    let mut forms = watched["watchlist"].as_array().expect("rows").iter();
    let idn = forms.find(|row| row["domain"] == "xn--mnchen-3ya.de").expect("the IDN");
    assert_eq!(idn["unicode"], "münchen.de");
}

#[test]
fn an_expired_key_has_its_own_error() {
    let site = site();
    site.account("owner@example.com", "api");
    let made = [
        "account",
        "key",
        "owner@example.com",
        "--name",
        "a",
        "--scopes",
        "read,mcp",
        "--days",
        "2",
        "--today",
        "2026-03-10",
    ];
    let key = site.ok(&made).trim().to_owned();
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let (status, refused) = client.get("/api/v1/drops").answer();
    let told = refused["error"].as_str().expect("text");
    assert!(
        told.starts_with("this key expired at 2026-03-1") && told.contains("create a new one"),
        "{told}"
    );
    assert_eq!((status, &refused["code"]), (401, &json!("expired_key")));
    let challenge = client.get("/api/export/drops").header("www-authenticate").map(str::to_owned);
    assert_eq!(
        challenge.as_deref(),
        Some("Bearer error=\"invalid_token\", error_description=\"The key expired\"")
    );
    let (status, refused) = keyed(&mut client, "/mcp", "k", &json!({})).answer();
    assert_eq!((status, &refused["code"]), (401, &json!("expired_key")));
    let unknown = format!("ddx_{}", "0123456789abcdef".repeat(3));
    let (status, refused) = server.client_with(&unknown).get("/api/v1/drops").answer();
    assert_eq!((status, &refused["code"]), (401, &json!("invalid_key")));
}

#[test]
fn a_stale_precondition_returns_412_and_changes_nothing() {
    let site = site();
    let (_server, mut client) = served(&site);
    let claim = add_claim(&mut client, &json!({"domain": "pending.com", "status": "attempted"}));
    let alert = add_alert(&mut client, "mine");
    let search = client.send("POST", "/api/v1/searches", &json!({"name": "n", "filter": {}}));
    let search = search.json()["id"].as_u64().expect("an id");
    super::watch(&mut client, "redeem.com");
    let hide = client.send("POST", "/api/v1/hidden", &json!({"domainNames": ["a.com"]}));
    let feed = client.send("POST", "/api/v1/feeds", &json!({}));
    assert_eq!((hide.status, feed.status), (200, 201));
    let matching = |client: &mut Client, method: &str, path: &str, tag: &str, body: &Value| {
        let headers = [("Content-Type", "application/json"), ("If-Match", tag)];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        client.send_with(method, path, &headers, body.as_bytes())
    };
    let saved = json!({"kinds": ["available"], "channels": [{"type": "email"}]});
    for (method, path, body) in [
        ("PATCH", format!("/api/v1/portfolio/{claim}"), json!({"status": "caught"})),
        ("DELETE", format!("/api/v1/portfolio/{claim}"), Value::Null),
        ("PATCH", format!("/api/v1/alerts/{alert}"), json!({"active": false})),
        ("DELETE", format!("/api/v1/alerts/{alert}"), Value::Null),
        ("PATCH", format!("/api/v1/searches/{search}"), json!({"name": "m"})),
        ("DELETE", format!("/api/v1/searches/{search}"), Value::Null),
        ("PATCH", "/api/v1/watchlist/redeem.com".to_owned(), json!({"note": "x"})),
        ("DELETE", "/api/v1/watchlist?domain=redeem.com".to_owned(), Value::Null),
        ("PUT", "/api/v1/watchlist/alerts".to_owned(), saved),
        ("DELETE", "/api/v1/hidden?domain=a.com".to_owned(), Value::Null),
        ("DELETE", "/api/v1/feeds".to_owned(), Value::Null),
        ("PUT", "/api/v1/domain/pending.com/feedback".to_owned(), json!({"vote": "up"})),
    ] {
        let (status, refused) = matching(&mut client, method, &path, "\"wrong\"", &body).answer();
        let code = &refused["code"];
        assert_eq!((status, code), (412, &json!("precondition_failed")), "{method} {path}");
    }
    assert_eq!(client.get("/api/v1/watchlist/alerts").json()["alerts"]["saved"], false);
    assert_eq!(client.get("/api/v1/portfolio").json()["claims"][0]["status"], "attempted");
    for (path, body) in [
        (format!("/api/v1/portfolio/{claim}"), json!({"userNotes": "a"})),
        (format!("/api/v1/alerts/{alert}"), json!({"name": "b"})),
    ] {
        let found = client.get(&path);
        let tag = found.header("etag").expect("a tag").to_owned();
        let held = client.request("GET", &path, &[("If-None-Match", &tag)]);
        assert_eq!((held.status, held.body.len()), (304, 0), "{path}");
        let left = "x-ratelimit-remaining";
        assert_eq!(held.header(left), found.header(left), "a 304 costs nothing");
        let changed = matching(&mut client, "PATCH", &path, &tag, &body);
        assert_eq!(changed.status, 200, "{path}: {}", changed.text());
        let late = matching(&mut client, "PATCH", &path, &tag, &body);
        assert_eq!(late.status, 412, "{path}: the first change replaced the ETag");
        let now = client.get(&path).header("etag").expect("a tag").to_owned();
        if let Some(told) = changed.header("etag") {
            assert_eq!(told, now, "{path}: a change returns the new ETag");
        }
        assert_eq!(matching(&mut client, "PATCH", &path, "*", &body).status, 200, "{path}");
        let last = client.get(&path).header("etag").expect("a tag").to_owned();
        assert_eq!(
            matching(&mut client, "DELETE", &path, &last, &Value::Null).status,
            200,
            "{path}"
        );
        assert_eq!(
            matching(&mut client, "DELETE", &path, &last, &Value::Null).status,
            404,
            "{path}"
        );
    }
    let any =
        matching(&mut client, "PATCH", "/api/v1/watchlist/redeem.com", "*", &json!({"note": "x"}));
    assert_eq!(any.status, 200);
}
