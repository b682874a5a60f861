//! Request IDs, and the log lines of requests.

use serde_json::Value;

use super::metrics::watched;
use crate::common::{Response, Server, Site, TODAY};

fn site() -> (Site, String) {
    let site = Site::with_names(["solar.com".to_owned()].into_iter(), "2026-03-10");
    let key = site.account("owner@example.com", "pro");
    (site, key)
}

#[track_caller]
fn id(response: &Response) -> String {
    response.header("x-request-id").expect("every response has an id").to_owned()
}

/// Waits until lines of the log contain `text`, and returns them.
fn lines_with(server: &Server, text: &str) -> Vec<String> {
    let log = server.logged(text);
    log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

#[test]
fn every_response_has_its_own_request_id() {
    let (site, key) = site();
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let mut seen = std::collections::BTreeSet::new();
    for (method, target) in [
        ("GET", "/api/v1/drops"),
        ("GET", "/api/v1/drops?limit=0"),
        ("GET", "/api/v1/search"),
        ("GET", "/api/health"),
        ("GET", "/api/export/drops"),
        ("GET", "/"),
        ("GET", "/login"),
        ("GET", "/no/such/page"),
        ("DELETE", "/api/v1/drops"),
        ("POST", "/api/v1/watchlist"),
        ("GET", "/assets/none.css"),
    ] {
        let id = id(&client.request(method, target, &[]));
        assert!(
            id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{target}: {id}"
        );
        assert!(seen.insert(id), "{method} {target}");
    }
}

#[test]
fn only_a_trusted_proxy_sets_the_request_id() {
    let (site, key) = site();
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let mut asked =
        |id_sent: &str| id(&client.request("GET", "/api/v1/drops", &[("X-Request-Id", id_sent)]));
    assert_eq!(asked("edge-1.a_B"), "edge-1.a_B");
    assert_ne!(asked("edge 1"), "edge 1");
    assert_ne!(asked(&"a".repeat(65)), "a".repeat(65));
    drop(server);
    let config = site.settings("[server]\nproxies = [\"192.0.2.1\"]\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &config]);
    let answer = server.client().request("GET", "/api/health", &[("X-Request-Id", "edge")]);
    assert_ne!(id(&answer), "edge");
}

#[test]
fn responses_are_logged_by_route_and_slow_queries_by_filter() {
    let (site, key) = site();
    let (server, _metrics) = watched(&site, "[log]\njson = true\naccess = true\nslow_ms = 0\n");
    let mut client = server.client_with(&key);
    let target = "/api/v1/search?q=SoL&tld=.COM&min_dqs=101&secret=hunter42";
    let refused = client.get(target);
    assert_eq!(refused.status, 400, "{}", refused.text());
    let lenient = [("Prefer", "handling=lenient")];
    let found = client.request("GET", "/api/v1/search?q=SoL&tld=.COM&secret=hunter42", &lenient);
    assert_eq!(found.status, 200);
    let lines: Vec<Value> = lines_with(&server, "slow query")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let slow = &lines[0];
    assert_eq!(slow["level"], "WARN");
    assert_eq!(slow["request"]["id"], id(&found));
    assert_eq!(slow["request"]["route"], "/api/v1/search");
    assert_eq!(slow["request"]["account"], 1);
    let fields = &slow["fields"];
    assert_eq!((&fields["kind"], &fields["rows"]), (&"search".into(), &1.into()));
    let query = fields["query"].as_str().expect("text");
    assert!(query.contains("sol") && query.contains("\"com\""), "{query}");
    assert!(fields["duration_ms"].is_number());

    client.get("/unsubscribe/msg_of-somebody");
    client.get("/no/such/hunter42");
    let answered = lines_with(&server, "unsubscribe");
    let line: Value = serde_json::from_str(&answered[0]).expect("JSON");
    assert_eq!(line["request"]["route"], "/unsubscribe/{delivery}");
    assert_eq!(line["fields"]["status"], 200);
    assert_eq!(line["fields"]["message"], "answered");
    let log = server.stop();
    assert!(!log.contains("hunter42") && !log.contains("of-somebody"), "{log}");
    for line in log.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}
