//! Rules of every resource endpoint: authentication, request bodies, idempotency, and durability after
//! a crash.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    TODAY, TOMORROW, add_alert, add_claim, assert_plan_limit, column, error, serve_with, served,
    site, watch,
};
use crate::common::json::unknown_name;
use crate::common::{Client, Response, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Every endpoint with a valid body; `{claim}` and `{alert}` stand for ids.
const ENDPOINTS: &[(&str, &str, &str)] = &[
    ("GET", "/api/v1/portfolio", ""),
    ("POST", "/api/v1/portfolio", r#"{"domain": "a.com", "status": "lost"}"#),
    ("GET", "/api/v1/portfolio/{claim}", ""),
    ("PATCH", "/api/v1/portfolio/{claim}", r#"{"status": "lost"}"#),
    ("DELETE", "/api/v1/portfolio/{claim}", ""),
    ("GET", "/api/v1/watchlist", ""),
    ("POST", "/api/v1/watchlist", r#"{"domainName": "kept.de"}"#),
    ("PATCH", "/api/v1/watchlist/pending.com", r#"{"tags": ["flip"]}"#),
    ("POST", "/api/v1/watchlist/batch", r#"{"domainNames": ["kept.de"]}"#),
    ("DELETE", "/api/v1/watchlist?domain=pending.com", ""),
    ("GET", "/api/v1/hidden", ""),
    ("POST", "/api/v1/hidden", r#"{"domainNames": ["kept.de"]}"#),
    ("GET", "/api/v1/searches", ""),
    ("POST", "/api/v1/searches", r#"{"name": "n", "filter": {}}"#),
    ("PATCH", "/api/v1/searches/{alert}", r#"{"name": "m"}"#),
    ("DELETE", "/api/v1/searches/{alert}", ""),
    ("GET", "/api/v1/facts", ""),
    ("PUT", "/api/v1/facts/mappings/0123456789abcdef", r#"{"columns": ["domain", "a.b:int"]}"#),
    ("GET", "/api/v1/alerts", ""),
    ("POST", "/api/v1/alerts", r#"{"name": "n", "filter": {}, "channels": [{"type": "email"}]}"#),
    ("GET", "/api/v1/alerts/{alert}", ""),
    ("PATCH", "/api/v1/alerts/{alert}", r#"{"active": false}"#),
    ("DELETE", "/api/v1/alerts/{alert}", ""),
    ("POST", "/api/v1/archive", r#"{"domain": "a.com"}"#),
    ("POST", "/api/v1/alerts/preview", r#"{"filter": {}}"#),
    ("POST", "/api/v1/alerts/backtest", r#"{"filter": {}}"#),
    ("POST", "/api/v1/alerts/{alert}/test", ""),
    ("POST", "/api/v1/alerts/{alert}/secrets", ""),
    ("GET", "/api/v1/alerts/{alert}/deliveries", ""),
    ("POST", "/api/v1/alerts/{alert}/deliveries/{delivery}/retry", ""),
    ("PUT", "/api/v1/domain/pending.com/feedback", r#"{"vote": "up"}"#),
];
/// An id of no delivery.
const NO_DELIVERY: &str = "0123456789abcdef0123456789abcdef";

fn call(client: &mut Client, method: &str, target: &str, body: &str) -> Response {
    if body.is_empty() {
        return client.request(method, target, &[]);
    }
    client.send_with(method, target, &[JSON], body.as_bytes())
}

#[test]
fn the_json_api_needs_a_plan_and_counts_every_request() {
    let site = site();
    let (server, mut client) = served(&site);
    let claim = add_claim(&mut client, &json!({"domain": "pending.com", "status": "caught"}));
    let alert = add_alert(&mut client, "n");
    watch(&mut client, "pending.com");
    let target = |path: &str| {
        let path = path.replace("{claim}", &claim.to_string()).replace("{delivery}", NO_DELIVERY);
        path.replace("{alert}", &alert.to_string())
    };
    let plans = ["free", "core"];
    let keys = plans.map(|plan| site.account(&format!("{plan}@example.com"), plan));
    for (method, path, body) in ENDPOINTS {
        let target = target(path);
        let response = call(&mut server.client(), method, &target, body);
        let answer = response.answer();
        assert_eq!(answer, (401, error("authentication required")), "{method} {target}");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        for (plan, key) in plans.iter().zip(&keys) {
            let response = call(&mut server.client_with(key), method, &target, body);
            let refusal = json!({
                "error": "JSON API access requires the Pro plan or above",
                "code": "PLAN_REQUIRED",
                "plan": plan,
            });
            assert_eq!(response.answer(), (403, refusal), "{method} {target}");
            assert_eq!(response.header("x-ratelimit-limit"), None);
        }
    }
    // Each request counts, even if its body is refused.
    let before = client.get("/api/v1/drops").number("x-ratelimit-remaining").expect("a number");
    let mut asked = 0;
    for (method, path, body) in ENDPOINTS {
        for body in [*body, "{nonsense"] {
            let response = call(&mut client, method, &target(path), body);
            asked += 1;
            let left = response.number("x-ratelimit-remaining");
            assert_eq!(left, Some(before - asked), "{method} {path}: {}", response.text());
            assert_eq!(response.number("x-ratelimit-limit"), Some(10_000));
            assert!(response.number("x-ratelimit-reset").is_some());
        }
    }
}

#[test]
fn the_last_request_of_a_day_can_be_a_write_and_the_next_is_refused() {
    let site = site();
    let key = site.account("pro@example.com", "pro");
    let server = serve_with(&site, "[plans.pro]\nrequests_per_day = 1\n", TODAY);
    let mut client = server.client_with(&key);
    add_claim(&mut client, &json!({"domain": "pending.com", "status": "caught"}));
    for (method, path, body) in ENDPOINTS {
        // The allowance is checked before the body and the object.
        for body in [*body, "{nonsense"] {
            let (status, refusal) = call(&mut client, method, path, body).answer();
            assert_eq!((status, &refusal["error"]), (429, &json!("rate limit exceeded")), "{path}");
        }
    }
    let server = {
        server.stop();
        site.serve(TOMORROW)
    };
    assert_eq!(server.client_with(&key).get("/api/v1/portfolio").json()["count"], 1);
}

#[test]
fn other_accounts_resources_return_404() {
    let site = site();
    let (server, mut owner) = served(&site);
    let claim = add_claim(&mut owner, &json!({"domain": "pending.com", "status": "caught"}));
    let alert = add_alert(&mut owner, "mine");
    watch(&mut owner, "pending.com");
    let before = [
        owner.get("/api/v1/portfolio").body,
        owner.get("/api/v1/alerts").body,
        owner.get("/api/v1/watchlist").body,
    ];
    let mut other = server.client_with(&site.account("other@example.com", "api"));
    for id in [claim.to_string(), alert.to_string()] {
        for (method, path, body) in ENDPOINTS.iter().filter(|(_, path, _)| path.contains('{')) {
            let target = path.replace("{claim}", &id).replace("{alert}", &id);
            let target = target.replace("{delivery}", NO_DELIVERY);
            let answer = call(&mut other, method, &target, body).answer();
            assert_eq!(answer, (404, error("not found")), "{method} {target}");
        }
    }
    let answer = other.request("DELETE", "/api/v1/watchlist?domain=pending.com", &[]).answer();
    assert_eq!(answer, (404, error("not found")));
    for (target, rows) in [
        ("/api/v1/portfolio", "claims"),
        ("/api/v1/alerts", "alerts"),
        ("/api/v1/watchlist", "watchlist"),
    ] {
        assert_eq!(other.get(target).json()[rows], json!([]), "{target}");
    }
    let after = [
        owner.get("/api/v1/portfolio").body,
        owner.get("/api/v1/alerts").body,
        owner.get("/api/v1/watchlist").body,
    ];
    assert_eq!(after, before);
    // A malformed ID counts as an unknown ID.
    for id in [
        "0",
        "01",
        "-1",
        "+1",
        "1.0",
        "9007199254740992",
        "99999999999999999999",
        "x",
        "%20",
        "%ff",
    ] {
        for (method, path, body) in ENDPOINTS.iter().filter(|(_, path, _)| path.contains('{')) {
            let target = path.replace("{claim}", id).replace("{alert}", id);
            let target = target.replace("{delivery}", NO_DELIVERY);
            let answer = call(&mut owner, method, &target, body).answer();
            assert_eq!(answer, (404, error("not found")), "{method} {target}");
        }
    }
}

#[test]
fn a_405_lists_the_allowed_methods() {
    let site = site();
    let (_server, mut client) = served(&site);
    let all = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    for (target, there) in [
        ("/api/v1/portfolio", vec!["GET", "POST"]),
        ("/api/v1/portfolio/1", vec!["GET", "PATCH", "DELETE"]),
        ("/api/v1/watchlist", vec!["GET", "POST", "DELETE"]),
        ("/api/v1/watchlist/pending.com", vec!["PATCH"]),
        ("/api/v1/watchlist/batch", vec!["POST"]),
        ("/api/v1/hidden", vec!["GET", "POST", "DELETE"]),
        ("/api/v1/searches", vec!["GET", "POST"]),
        ("/api/v1/searches/1", vec!["PATCH", "DELETE"]),
        ("/api/v1/facts", vec!["GET", "POST"]),
        ("/api/v1/facts/acme", vec!["DELETE"]),
        ("/api/v1/facts/mappings/0123456789abcdef", vec!["PUT", "DELETE"]),
        ("/api/v1/alerts", vec!["GET", "POST"]),
        ("/api/v1/alerts/1", vec!["GET", "PATCH", "DELETE"]),
        ("/api/v1/alerts/preview", vec!["POST"]),
        ("/api/v1/archive", vec!["POST"]),
        ("/api/v1/alerts/backtest", vec!["POST"]),
        ("/api/v1/alerts/1/test", vec!["POST"]),
        ("/api/v1/alerts/1/secrets", vec!["POST"]),
        ("/api/v1/alerts/1/deliveries", vec!["GET"]),
        ("/api/v1/alerts/1/deliveries/1/retry", vec!["POST"]),
        ("/unsubscribe/1", vec!["GET", "POST"]),
        ("/api/v1/domain/pending.com/feedback", vec!["PUT"]),
        ("/api/export/watchlist", vec!["GET"]),
        ("/api/export/portfolio", vec!["GET"]),
        ("/api/export/files", vec!["GET"]),
        ("/api/export/files/pipeline-2026-03-15.parquet", vec!["GET"]),
    ] {
        for method in all.iter().filter(|method| !there.contains(method)) {
            let response = client.send_with(method, target, &[JSON], b"{}");
            assert_eq!(response.answer(), (405, error("method not allowed")), "{method} {target}");
            let allow = response.header("allow").unwrap_or_default();
            let mut allowed: Vec<_> = allow.split(',').map(str::trim).collect();
            allowed.retain(|method| *method != "HEAD");
            let mut there = there.clone();
            there.sort_unstable();
            allowed.sort_unstable();
            assert_eq!(allowed, there, "{target}");
        }
    }
    // The endpoint index lists all of them.
    let listed = client.get("/api/v1").json()["endpoints"].take();
    for (method, path, _) in ENDPOINTS {
        let path = path.split('?').next().unwrap_or_default();
        let path = path.replace("{claim}", "{id}").replace("{alert}", "{id}");
        let path = path.replace("watchlist/pending.com", "watchlist/{domain}");
        let path = path.replace("pending.com", "{name}");
        let path = path.replace("mappings/0123456789abcdef", "mappings/{fingerprint}");
        let there = listed.as_array().expect("an array").iter().any(|endpoint| {
            endpoint["method"] == *method && endpoint["path"] == path && endpoint["auth"] == true
        });
        assert!(there, "{method} {path}: {listed}");
    }
}

#[test]
fn a_body_is_a_small_json_object() {
    let site = site();
    let (_server, mut client) = served(&site);
    watch(&mut client, "pending.com");
    let writes = ENDPOINTS.iter().filter(|(_, path, body)| {
        !path.contains("{claim}") && !path.contains("{alert}") && !body.is_empty()
    });
    for (method, target, good) in writes {
        let kind = "Content-Type: must be application/json, without an encoding";
        for headers in [
            vec![],
            vec![("Content-Type", "text/plain")],
            vec![("Content-Type", "application/x-www-form-urlencoded")],
            vec![("Content-Type", "application/json; charset=latin1")],
            vec![JSON, JSON],
            vec![JSON, ("Content-Encoding", "gzip")],
        ] {
            let response = client.send_with(method, target, &headers, good.as_bytes());
            assert_eq!(response.answer(), (415, error(kind)), "{target} {headers:?}");
        }
        for (body, refusal) in [
            ("", "body: must be a JSON object"),
            ("null", "body: must be a JSON object"),
            ("[{}]", "body: must be a JSON object"),
            ("{", "body: is not valid JSON: EOF while parsing an object at line 1 column 1"),
            ("{}{}", "body: is not valid JSON: trailing characters at line 1 column 3"),
        ] {
            let answer = client.send_with(method, target, &[JSON], body.as_bytes()).answer();
            let required = answer.1["error"].as_str().is_some_and(|e| e.ends_with("is required"));
            // `{}{}` may be refused for a missing member of its first object.
            assert!(
                answer == (400, error(refusal)) || body == "{}{}" && required,
                "{target} {body}: {answer:?}"
            );
        }
        let deep = format!("{{\"x\": {}", "[".repeat(20_000));
        let answer = client.send_with(method, target, &[JSON], deep.as_bytes()).answer();
        let refusal = "body: is nested more than 16 levels deep";
        assert_eq!(answer, (400, error(refusal)), "{target}");
        // A body of exactly the maximum length is read; a body with one byte more is not.
        let padding = 64 * 1024 - good.len();
        let full = format!("{good}{}", " ".repeat(padding));
        let response = client.send_with(method, target, &[JSON], full.as_bytes());
        assert!(response.status < 300, "{target}: {}", response.text());
        let over = format!("{full} ");
        let response = client.send_with(method, target, &[JSON], over.as_bytes());
        let refusal = error("body: must have at most 65536 bytes");
        assert_eq!(response.answer(), (413, refusal), "{target}");
        assert!(response.number("x-ratelimit-remaining").is_some());
    }
    let kind = [("Content-Type", "Application/JSON; charset=\"UTF-8\"")];
    let body = br#"{"domainName": "back.com"}"#;
    assert_eq!(client.send_with("POST", "/api/v1/watchlist", &kind, body).status, 201);
}

/// Returns the status line of the response to a request whose body never ends.
fn status_of_endless(server: &Server, key: &str, length: &str, piece: Option<&[u8]>) -> String {
    let mut stream = TcpStream::connect(server.address()).expect("the server accepts connections");
    // A server that reads forever would never respond; the test must still end.
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
    let head = format!(
        "POST /api/v1/watchlist HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\n{length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the head is accepted");
    // The body is just over the limit; after that, the connection stays open and no more bytes are
    // sent.
    for _ in 0..piece.map_or(0, |_| 65) {
        stream.write_all(piece.unwrap_or_default()).expect("accepted bytes can be sent");
    }
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("an answer");
    line
}

#[test]
fn an_endless_body_is_refused_at_the_limit() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let too_large = "HTTP/1.1 413 Payload Too Large\r\n";
    let declared = status_of_endless(&server, &key, "Content-Length: 10000000000", None);
    assert_eq!(declared, too_large);
    let chunk = format!("400\r\n{}\r\n", " ".repeat(0x400));
    let chunk = Some(chunk.as_bytes());
    let chunked = status_of_endless(&server, &key, "Transfer-Encoding: chunked", chunk);
    assert_eq!(chunked, too_large);
    assert_eq!(server.client_with(&key).get("/api/v1/watchlist").json()["count"], 0);
}

#[test]
fn a_post_with_an_idempotency_key_takes_effect_once() {
    let site = site();
    let (server, mut client) = served(&site);
    // Repeated batches, hiding and questions change nothing, so these operations take no key.
    let takes_none = ["/preview", "/backtest", "/batch", "/hidden", "/archive"];
    let adds =
        |path: &str| !path.contains('{') && !takes_none.iter().any(|end| path.ends_with(end));
    let posts = || ENDPOINTS.iter().filter(|(method, path, _)| *method == "POST" && adds(path));
    let send = |client: &mut Client, target: &str, key: &str, body: &str| {
        client.send_with("POST", target, &[JSON, ("Idempotency-Key", key)], body.as_bytes())
    };
    let mut first = Vec::new();
    for (_, target, body) in posts() {
        let key = format!("key of {target}");
        let done = send(&mut client, target, &key, body);
        assert_eq!((done.status, done.header("idempotency-replayed")), (201, None), "{target}");
        let again = send(&mut client, target, &key, body);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!((again.status, &again.body), (201, &done.body), "{target}");
        assert_eq!(again.header("location"), done.header("location"));
        assert_eq!(again.header("cache-control"), done.header("cache-control"));
        // An additional space makes the body different, and the same key at another path is a
        // different request.
        let conflict = error("Idempotency-Key: was used with another request in the last 24 h");
        let other = send(&mut client, target, &key, &format!("{body} "));
        assert_eq!(other.answer(), (409, conflict.clone()), "{target}");
        first.push((*target, key, *body, done));
    }
    let conflict = error("Idempotency-Key: was used with another request in the last 24 h");
    let (_, taken, _, _) = &first[0];
    let (_, elsewhere, body) = posts().nth(2).expect("three POSTs");
    assert_eq!(send(&mut client, elsewhere, taken, body).answer(), (409, conflict));
    let count = |client: &mut Client, target: &str| client.get(target).json()["count"].clone();
    for (target, _, _, _) in &first {
        assert_eq!(count(&mut client, target), json!(1), "{target}");
    }
    // Keys are scoped to the account.
    let mut other = server.client_with(&site.account("other@example.com", "api"));
    for (target, key, body, done) in &first {
        let theirs = send(&mut other, target, key, body);
        assert_eq!((theirs.status, theirs.header("idempotency-replayed")), (201, None));
        // Objects without an id differ only in their timestamps.
        assert!(theirs.body != done.body || target.ends_with("watchlist"), "{target}");
    }
    // Stored responses survive a crash.
    let key_of_owner = site.new_key("owner@example.com");
    server.kill();
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key_of_owner);
    for (target, key, body, done) in &first {
        let again = send(&mut client, target, key, body);
        assert_eq!((again.status, &again.body), (201, &done.body), "{target}");
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(count(&mut client, target), json!(1), "{target}");
    }
    server.stop();
    // After a day the key can be used for another request.
    let server = site.serve("2026-03-17");
    let mut client = server.client_with(&key_of_owner);
    let (target, key, _, _) = &first[0];
    let body = r#"{"domain": "b.com", "status": "sold"}"#;
    assert_eq!(send(&mut client, target, key, body).status, 201);
    assert_eq!(count(&mut client, target), json!(2));
}

#[test]
fn only_successful_posts_are_replayed() {
    let site = site();
    let owner = site.account("pro@example.com", "pro");
    let server = serve_with(&site, "[plans.pro]\nexternal_names = 1\n", TODAY);
    let mut client = server.client_with(&owner);
    let send = |client: &mut Client, key: &str, body: &str| {
        let headers = [JSON, ("Idempotency-Key", key)];
        client.send_with("POST", "/api/v1/watchlist", &headers, body.as_bytes())
    };
    watch(&mut client, "external.com");
    let wanted = r#"{"domainName": "wanted.com"}"#;
    assert_plan_limit(&send(&mut client, "k", wanted), "pro", 1);
    assert_eq!(client.request("DELETE", "/api/v1/watchlist?domain=external.com", &[]).status, 200);
    assert_eq!(send(&mut client, "k", "{}").status, 400);
    let done = send(&mut client, "k", wanted);
    assert_eq!((done.status, done.header("idempotency-replayed")), (201, None));
    // A response that returned an existing object is replayed too.
    let there = send(&mut client, "l", wanted);
    assert_eq!(there.status, 200);
    assert_eq!(client.request("DELETE", "/api/v1/watchlist?domain=wanted.com", &[]).status, 200);
    let again = send(&mut client, "l", wanted);
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!(client.get("/api/v1/watchlist").json()["count"], 0);

    let refusal = "Idempotency-Key: must be 1 to 255 printable ASCII characters";
    for key in ["", &"k".repeat(256), "tab\tinside", "\u{fc}"] {
        assert_eq!(send(&mut client, key, wanted).answer(), (400, error(refusal)), "{key:?}");
    }
    let twice = [JSON, ("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    let answer = client.send_with("POST", "/api/v1/watchlist", &twice, wanted.as_bytes()).answer();
    assert_eq!(answer, (400, error("Idempotency-Key: is given more than once")));
    assert_eq!(send(&mut client, &"~".repeat(255), wanted).status, 201);
}

#[test]
fn an_account_has_one_vote_on_a_name() {
    let site = site();
    let (server, mut first) = served(&site);
    let mut second = server.client_with(&site.account("second@example.com", "pro"));
    let target = "/api/v1/domain/pending.com/feedback";
    let dossier =
        |client: &mut Client| client.get("/api/v1/domain/pending.com").json()["feedback"].take();
    let vote = |client: &mut Client, vote: Value, up: u64, down: u64| {
        let totals = json!({"up": up, "down": down});
        let body = json!({"domain": "pending.com", "vote": vote, "feedback": totals});
        let spelled = "/api/v1/domain/%20PENDING.com./feedback";
        let answer = client.send("PUT", spelled, &json!({"vote": vote})).answer();
        assert_eq!(answer, (200, body));
        assert_eq!(dossier(client), totals);
    };
    vote(&mut first, json!("up"), 1, 0);
    vote(&mut first, json!("up"), 1, 0);
    vote(&mut second, json!("up"), 2, 0);
    vote(&mut second, json!("down"), 1, 1);
    vote(&mut first, Value::Null, 0, 1);
    vote(&mut first, Value::Null, 0, 1);
    vote(&mut first, json!("down"), 0, 2);
    for (body, refusal) in [
        (json!({}), "vote: is required"),
        (json!({"vote": "maybe"}), "vote: must be up, down or null"),
        (json!({"vote": 1}), "vote: invalid type: integer `1`, expected a string"),
        (json!({"up": 1}), "up: unknown field `up`, expected `vote`"),
    ] {
        assert_eq!(first.send("PUT", target, &body).answer(), (400, error(refusal)), "{body}");
    }
    let body = json!({"vote": "up"});
    let answer = first.send("PUT", "/api/v1/domain/never-seen.com/feedback", &body).answer();
    assert_eq!(answer, (404, unknown_name()));
    let answer = first.send("PUT", "/api/v1/domain/com/feedback", &body).answer();
    assert_eq!(answer, (400, error("name: the name is a public suffix itself")));
    assert_eq!(dossier(&mut second), json!({"up": 0, "down": 2}), "nothing of that was done");
}

#[test]
fn acknowledged_objects_survive_a_crash() {
    let site = site();
    let (server, mut client) = served(&site);
    let kept = add_claim(
        &mut client,
        &json!({"domain": "pending.com", "status": "caught", "userNotes": "ü\n"}),
    );
    let gone = add_claim(&mut client, &json!({"domain": "gone.com", "status": "lost"}));
    let hook = json!({"name": "hook", "filter": {"tlds": ["com"], "contains": "shop"},
        "channels": [{"type": "webhook", "url": "https://hooks.example.com/"}]});
    assert_eq!(client.send("POST", "/api/v1/alerts", &hook).status, 201);
    let rule = add_alert(&mut client, "mail");
    for name in ["pending.com", "external.com", "kept.de"] {
        watch(&mut client, name);
    }
    for (method, target, body) in [
        (
            "PATCH",
            format!("/api/v1/portfolio/{kept}"),
            r#"{"status": "sold", "resalePriceUsd": 9.99}"#,
        ),
        ("DELETE", format!("/api/v1/portfolio/{gone}"), ""),
        ("PATCH", format!("/api/v1/alerts/{rule}"), r#"{"active": false, "name": "post"}"#),
        ("DELETE", "/api/v1/watchlist?domain=kept.de".into(), ""),
        ("PUT", "/api/v1/domain/pending.com/feedback".into(), r#"{"vote": "down"}"#),
    ] {
        assert_eq!(call(&mut client, method, &target, body).status, 200, "{method} {target}");
    }
    let targets = [
        "/api/v1/portfolio",
        "/api/v1/watchlist?sort=added",
        "/api/v1/alerts",
        "/api/v1/domain/pending.com",
        "/api/export/portfolio",
        "/api/export/watchlist",
    ];
    let read = |client: &mut Client| targets.map(|target| client.get(target).text().to_owned());
    let before = read(&mut client);
    let watched: Value = serde_json::from_str(&before[1]).expect("JSON");
    assert_eq!(column(&watched["watchlist"], "domain"), ["external.com", "pending.com"]);
    let key = site.new_key("owner@example.com");
    server.kill();
    let server = site.serve(TODAY);
    assert_eq!(read(&mut server.client_with(&key)), before, "after SIGKILL");
    server.stop();
    let server = site.serve(TODAY);
    assert_eq!(read(&mut server.client_with(&key)), before, "after a clean stop");
}
