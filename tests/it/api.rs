//! General behaviour of the HTTP API: authentication, quotas, bad requests, error messages of failed
//! commands, and responses while a new list goes live.
//!
//! The `oracle` module checks the content of responses. Where the specification leaves something open,
//! a comment `Choice:` states the expectation.

use std::collections::HashMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{SecondsFormat, TimeDelta};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use serde_json::{Value, json};

use crate::common::http::escape;
use crate::common::json::{error, unauthenticated, unknown_name};
use crate::common::{Client, Response, Server, Site, TODAY, gzip, wait};

const TOMORROW: &str = "2026-03-16";
const OBSERVED: &str = "2026-03-15T00:00:00Z";

const LIST: &str = "\
domain,drop_date,release_date,status
solar.com,2026-03-15,,
solarpanel.com,2026-03-10,,
solar.de,2026-01-12,,
münchen.de,2026-03-01,,
bestshop.co.uk,2026-03-14,2026-03-17,
kept.org,,,registered
";

/// Creates an installation that holds [`LIST`].
fn site_with_list() -> Site {
    let site = Site::new();
    let list = site.write("list.csv", LIST);
    site.ingest(&list, OBSERVED);
    site
}

/// Starts a server over [`LIST`] on [`TODAY`], and returns it with a key of plan `api`.
fn server_with_list(site: &Site) -> (Server, String) {
    let key = site.account("owner@example.com", "api");
    (site.serve(TODAY), key)
}

/// As [`served`], with an unlimited allowance.
fn server_without_allowance(site: &Site) -> (Server, String) {
    let plenty = "[plans.api]\nrequests_per_day = 1000000000\nwrites_per_minute = 1000000\nexports_per_day = 1000000000\n\
        concurrent_exports = 1000\n";
    let settings = &site.settings(plenty);
    let key = site.account("owner@example.com", "api");
    (site.serve_with(&["--config", settings, "--today", TODAY]), key)
}

/// Asserts a 400 that names the parameter, in the error format.
#[track_caller]
fn assert_refuses(response: &Response, parameter: &str, target: &str) {
    let (status, body) = response.answer();
    assert_eq!(status, 400, "{target}: {body}");
    assert_eq!(body.as_object().map(serde_json::Map::len), Some(3), "{target}: {body}");
    assert_eq!(body["parameter"], parameter, "{target}: {body}");
    let error = body["error"].as_str().unwrap_or_default();
    let reason = error.strip_prefix(parameter).and_then(|rest| rest.strip_prefix(": "));
    let reasoned = reason.is_some_and(|reason| reason.trim().len() > 3);
    assert!(reasoned, "{target}: `{parameter}: <what is wrong>` expected, got {body}");
}

#[track_caller]
fn assert_no_allowance_headers(response: &Response) {
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        assert_eq!(response.header(name), None, "{name} on a request that was not counted");
    }
}

/// Returns the three rate-limit headers: limit, remaining, reset.
#[track_caller]
fn allowance(response: &Response) -> (i64, i64, i64) {
    let number = |name: &str| {
        response.number(name).unwrap_or_else(|| panic!("no {name}: {:?}", response.headers))
    };
    (number("x-ratelimit-limit"), number("x-ratelimit-remaining"), number("x-ratelimit-reset"))
}

fn day(text: &str) -> Day {
    text.parse().expect("a date")
}

/// Returns 00:00 UTC after `day` as a Unix time.
fn next_midnight(text: &str) -> i64 {
    day(text).plus(1).start().timestamp()
}

#[test]
fn only_a_valid_key_authenticates() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client();
    let unknown = format!("Bearer ddx_{}", "0123456789abcdef".repeat(3));
    let upper = format!("Bearer ddx_{}", key[4..].to_uppercase());
    let doubled = format!("Bearer {key}{key}");
    let basic = format!("Basic {key}");
    let bare = key.clone();
    let cut = format!("Bearer {}", &key[..key.len() - 1]);
    let bad = [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        &unknown,
        &upper,
        &doubled,
        &basic,
        &bare,
        &cut,
        "Bearer ddx_\u{fc}",
    ];
    let mut refused: Vec<Vec<(&str, &str)>> = vec![vec![]];
    refused.extend(bad.iter().map(|value| vec![("Authorization", *value)]));
    for headers in &refused {
        for target in [
            "/api/v1/drops",
            "/api/v1/drops?limit=0",
            "/api/v1/search?q=s",
            "/api/v1/domain/solar.com",
            "/api/export/drops",
        ] {
            let response = client.request("GET", target, headers);
            let (status, body) = response.answer();
            // RFC 6750 §3.1: only a request that carried a token gets a reason. White space at the end
            // of a header is not part of its value, and bytes beyond ASCII are never part of a token.
            let has_token = headers
                .iter()
                .any(|(_, value)| value.trim().starts_with("Bearer ") && value.is_ascii());
            let challenge = if has_token { "Bearer error=\"invalid_token\"" } else { "Bearer" };
            assert_eq!(response.header("www-authenticate"), Some(challenge), "{headers:?}");
            assert_eq!((status, body), (401, unauthenticated(has_token)), "{target}");
            assert_no_allowance_headers(&response);
        }
    }
    // RFC 9110 §11.1: the scheme is case-insensitive.
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let value = format!("{scheme} {key}");
        let response = client.request("GET", "/api/v1/drops", &[("Authorization", &value)]);
        assert_eq!(response.status, 200, "{scheme}: {}", response.text());
    }
}

#[test]
fn disabling_an_account_takes_effect_immediately() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    assert_eq!(client.get("/api/v1/drops").status, 200);
    site.ok(&["account", "disable", "owner@example.com"]);
    let answer = client.get("/api/v1/drops").answer();
    assert_eq!(answer, (401, unauthenticated(true)));
}

#[test]
fn each_plan_allows_its_endpoints() {
    let site = site_with_list();
    let server = site.serve(TODAY);
    // Accounts created while the server runs work immediately.
    for (plan, json_api, export) in
        [("free", false, false), ("core", false, true), ("pro", true, true), ("api", true, true)]
    {
        let key = site.account(&format!("{plan}@example.com"), plan);
        let mut client = server.client_with(&key);
        // The plan is checked before the parameters.
        for target in [
            "/api/v1/drops",
            "/api/v1/drops?limit=0",
            "/api/v1/search",
            "/api/v1/domain/no-such-name.com",
        ] {
            let response = client.get(target);
            if json_api {
                assert_ne!(response.status, 403, "{plan} {target}");
                continue;
            }
            let refusal = json!({
                "error": "JSON API access requires the Pro plan or above",
                "code": "PLAN_REQUIRED",
                "plan": plan,
            });
            assert_eq!(response.answer(), (403, refusal), "{plan} {target}");
            assert_no_allowance_headers(&response);
        }
        let response = client.get("/api/export/drops");
        if export {
            assert_eq!(response.status, 200, "{plan}: {}", response.text());
            continue;
        }
        let (status, body) = response.answer();
        // Choice: the message is not specified; `code` and `plan` may accompany it.
        let error = body["error"].as_str().unwrap_or_default();
        assert_eq!(status, 403, "{body}");
        assert!(error.contains("CSV export") && error.contains("Core plan or above"), "{body}");
    }
    site.ok(&["account", "set-plan", "free@example.com", "pro"]);
    let key = site.new_key("free@example.com");
    assert_eq!(server.client_with(&key).get("/api/v1/drops").status, 200, "the plan was changed");
}

/// A parameter and invalid values for it, escaped.
type Wrong = (&'static str, &'static [&'static str]);

const WRONG_FILTERS: &[Wrong] = &[
    ("min_dqs", &["-1", "101", "abc", "1.5", "1e1", "0x10", "99999999999999999999", "%ff", "1%00"]),
    ("max_len", &["0", "64", "-1", "abc", "4.0", "256", "%zz"]),
    ("stage", &["foo", "pending_delete", "redemption,gone", "active", "%ff", "redemption%00"]),
    ("view", &["past", "active,today", "redemption", "%ff"]),
    ("tld", &["%ff", "com,%c3", "%zz", "com%4"]),
];
const WRONG_NEEDLES: &[Wrong] =
    &[("q", &["%ff", "sol%c3", "so%00lar", "so%07lar", "%zz", "solar%", "solar%4"])];
const WRONG_DROPS_PAGES: &[Wrong] = &[
    ("limit", &["0", "1001", "-1", "abc", "1.5", "99999999999999999999"]),
    ("offset", &["-1", "1000001", "abc", "99999999999999999999"]),
];
const WRONG_EXPORT_PAGES: &[Wrong] =
    &[("limit", &["0", "10001", "-1", "abc"]), ("offset", &["-1", "1000001", "abc"])];
const WRONG_SEARCH_PAGES: &[Wrong] =
    &[("limit", &["0", "101", "-1", "abc", "1.5"]), ("offset", &["-1", "10001", "abc"])];

/// Every parameter twice, with valid values.
const TWICE: &[(&str, &str)] = &[
    ("tld", "tld=com&tld=de"),
    ("min_dqs", "min_dqs=1&min_dqs=1"),
    ("max_len", "max_len=5&max_len=6"),
    ("stage", "stage=released&stage=released"),
    ("view", "view=all&view=active"),
    ("limit", "limit=5&tld=com&limit=5"),
    ("offset", "offset=0&offset=0"),
];

#[test]
fn errors_name_the_invalid_parameter() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    for (path, prefix, tables) in [
        ("/api/v1/drops", "?", [WRONG_FILTERS, WRONG_NEEDLES, WRONG_DROPS_PAGES]),
        ("/api/export/drops", "?", [WRONG_FILTERS, WRONG_NEEDLES, WRONG_EXPORT_PAGES]),
        ("/api/v1/search", "?q=s&", [WRONG_FILTERS, WRONG_SEARCH_PAGES, &[]]),
        ("/api/v1/search", "?", [WRONG_NEEDLES, &[], &[]]),
    ] {
        let wrong = tables.into_iter().flatten();
        for (parameter, value) in
            wrong.flat_map(|(parameter, values)| values.iter().map(move |value| (parameter, value)))
        {
            let target = format!("{path}{prefix}{parameter}={value}");
            assert_refuses(&client.get(&target), parameter, &target);
        }
        for (parameter, twice) in TWICE {
            let target = format!("{path}{}{twice}", if prefix == "?" { "?q=s&" } else { prefix });
            assert_refuses(&client.get(&target), parameter, &target);
        }
        let target = format!("{path}?q=a&q=a");
        assert_refuses(&client.get(&target), "q", &target);
    }
}

#[test]
fn q_is_bounded() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    let long = |char: &str, count: usize| escape(&char.repeat(count));
    for target in [
        "/api/v1/search".to_owned(),
        "/api/v1/search?".to_owned(),
        "/api/v1/search?tld=com".to_owned(),
        "/api/v1/search?q=".to_owned(),
        "/api/v1/search?q".to_owned(),
        "/api/v1/search?q=%20%20".to_owned(),
        format!("/api/v1/search?q={}", long("a", 254)),
        format!("/api/v1/search?q={}", long("ü", 254)),
        format!("/api/v1/drops?q={}", long("a", 64)),
        format!("/api/v1/drops?q={}", long("ü", 64)),
        format!("/api/export/drops?q={}", long("a", 64)),
    ] {
        assert_refuses(&client.get(&target), "q", &target);
    }
    for target in [
        format!("/api/v1/search?q={}", long("a", 253)),
        format!("/api/v1/search?q={}", long("ü", 253)),
        format!("/api/v1/drops?q={}", long("a", 63)),
        format!("/api/v1/drops?q={}", long("ü", 63)),
    ] {
        let (status, body) = client.get(&target).answer();
        assert_eq!((status, &body["count"]), (200, &json!(0)), "{target}: {body}");
    }
}

#[test]
fn limits_are_inclusive_and_empty_values_are_absent() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    for target in [
        "/api/v1/drops?min_dqs=0&max_len=63&limit=1000&offset=1000000",
        "/api/v1/drops?min_dqs=100&max_len=1&limit=1&offset=0",
        "/api/v1/search?q=s&min_dqs=100&max_len=1&limit=100&offset=10000",
        "/api/export/drops?limit=10000&offset=1000000",
    ] {
        let response = client.get(target);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
    }
    let plain = client.get("/api/v1/drops").answer();
    assert_eq!(
        plain.1["count"], 4,
        "of six names one never dropped and one is released: {plain:?}"
    );
    for same in [
        "?tld=&min_dqs=&max_len=&q=&stage=&view=&limit=&offset=",
        "?limit",
        "?&&",
        // Choice: a list of only empty items does not filter, like an empty value.
        "?tld=,",
    ] {
        assert_eq!(client.get(&format!("/api/v1/drops{same}")).answer(), plain, "{same}");
    }
    let plain = client.get("/api/v1/search?q=solar").answer();
    assert_eq!(plain.1["total"], 3, "{plain:?}");
    let same = "/api/v1/search?tld=&stage=&view=&min_dqs=&max_len=&limit=&offset=&q=solar";
    assert_eq!(client.get(same).answer(), plain);
}

#[test]
fn totals_are_counted_as_wanted() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    for (sent, total, is_exact) in [
        ("", json!(4), true),
        ("?total=", json!(4), true),
        ("?total=estimate&min_dqs=0", json!(4), true),
        ("?total=exact&limit=1", json!(4), true),
        ("?total=none", Value::Null, false),
    ] {
        let body = client.get(&format!("/api/v1/drops{sent}")).json();
        assert_eq!((&body["total"], &body["totalExact"]), (&total, &json!(is_exact)), "{sent}");
        assert!(body.get("facetsExact").is_none(), "{body}");
    }
    let counted = client.get("/api/v1/drops?total=none&facets=tld").json();
    assert_eq!((&counted["facetsExact"], &counted["count"]), (&json!(true), &json!(4)));
    let refused = client.get("/api/v1/drops?total=maybe").answer();
    assert_eq!(refused, (400, error("total: must be one of estimate, exact, none")));
}

#[test]
fn unknown_parameters_are_refused_with_the_nearest_name() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    for (target, parameter, nearest) in [
        ("/api/v1/drops?min_dsq=5", "min_dsq", Some("min_dqs")),
        ("/api/v1/drops?tld=com&Limit=5", "Limit", Some("limit")),
        ("/api/v1/drops?min-dqs=x&min-dqs=y", "min-dqs", Some("min_dqs")),
        ("/api/v1/drops?unrelated", "unrelated", None),
        ("/api/v1/drops?%6Fffse%74s=1", "offsets", Some("offset")),
        ("/api/v1/drops?%zz=1", "%zz", None),
        ("/api/v1/drops?=1", "", None),
        ("/api/v1/search?q=s&stages=released", "stages", Some("stage")),
        ("/api/v1/domain/solar.com?x=1", "x", None),
        ("/api/v1/watchlist?domain=a.com", "domain", None),
        ("/api/export/drops?colums=name", "colums", Some("columns")),
        ("/api/health?verbose", "verbose", None),
        ("/api/v1/?x", "x", None),
    ] {
        let mut expected = format!("unknown parameter \"{parameter}\"");
        if let Some(nearest) = nearest {
            expected += &format!("; did you mean \"{nearest}\"?");
        }
        let expected =
            json!({"error": expected, "code": "unknown_parameter", "parameter": parameter});
        assert_eq!(client.get(target).answer(), (400, expected), "{target}");
        for lenient in ["handling=lenient", "respond-async, Handling=\"lenient\"; x=1"] {
            let response = client.request("GET", target, &[("Prefer", lenient)]);
            assert_ne!(response.status, 400, "{target}: {}", response.text());
        }
        let strict = client.request("GET", target, &[("Prefer", "handling=strict")]);
        assert_eq!(strict.status, 400, "{target}");
    }
    // An invalid value of a known parameter remains an error, and a request without a key gets 401.
    let lenient = &[("Prefer", "handling=lenient")];
    let response = client.request("GET", "/api/v1/drops?limit=0&x=1", lenient);
    assert_refuses(&response, "limit", "limit=0");
    assert_eq!(server.client().get("/api/v1/drops?x=1").status, 401);
    let counted = client.get("/api/v1/drops?x=1");
    assert!(counted.header("x-ratelimit-remaining").is_some(), "it counts like other errors");
}

#[test]
fn invalid_names_are_refused_with_the_reason() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    let long_label = format!("{}.com", "a".repeat(64));
    let long_name = format!("{0}.{0}.{0}.{0}.com", "a".repeat(63));
    for name in [
        "com",
        "co.uk",
        "www.solar.com",
        "someone.github.io",
        "-solar.com",
        "so--lar.com",
        "solar",
        "solar..com",
        "solar.invalidtld",
        "192.0.2.1",
        "so%20lar.com",
        "so%00lar.com",
        "so%2Flar.com",
        "so%0Alar.com",
        "%ff.com",
        "sol%zz.com",
        "%E2%80%8D.com",
        &long_label,
        &long_name,
    ] {
        let target = format!("/api/v1/domain/{name}");
        assert_refuses(&client.get(&target), "name", &target);
    }
    for name in ["no-such-name.com", "solar.org", "no-such-name.co.uk"] {
        let answer = client.get(&format!("/api/v1/domain/{name}")).answer();
        assert_eq!(answer, (404, unknown_name()), "{name}");
    }
    let known = client.get("/api/v1/domain/xn--mnchen-3ya.de").answer();
    assert_eq!((known.0, &known.1["domain"]), (200, &json!("xn--mnchen-3ya.de")));
    for name in ["M%C3%9CNCHEN.de", "%20XN--MNCHEN-3YA.DE.%20", "mu%CC%88nchen.de"] {
        assert_eq!(client.get(&format!("/api/v1/domain/{name}")).answer(), known, "{name}");
    }
}

#[test]
fn unknown_paths_and_methods_return_json_errors() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    for target in [
        "/nope",
        "/api/v2/drops",
        "/api/v1/nope",
        "/api/v1/domain/solar.com/more",
        "/api/export/nope",
        "/api/health/more",
        "/api/v1/drops/1",
        "/api/v1/%00",
        "/%ff",
    ] {
        assert_eq!(client.get(target).answer(), (404, error("not found")), "{target}");
    }
    for target in [
        "/api/v1",
        "/api/v1/drops",
        "/api/v1/search?q=s",
        "/api/v1/domain/solar.com",
        "/api/export/drops",
        "/api/health",
        "/api/ready",
        "/api/ready/ingest",
    ] {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let response = client.request(method, target, &[("Content-Length", "0")]);
            let (status, body) = response.answer();
            assert_eq!(status, 405, "{method} {target}: {body}");
            assert!(body["error"].is_string(), "{method} {target}: {body}");
            let allowed = response.header("allow").unwrap_or_default();
            let get = allowed.split(',').any(|method| method.trim() == "GET");
            assert!(get, "{method} {target}: Allow is {allowed:?}");
        }
    }
    // Choice: HEAD is GET without its body, or 405.
    for target in ["/api/health", "/api/v1/drops", "/api/v1/search?q=s", "/api/export/drops"] {
        let response = client.request("HEAD", target, &[]);
        assert!(matches!(response.status, 200 | 405), "HEAD {target}: {}", response.status);
        // A body sent by mistake would break the next response.
        assert_eq!(client.get("/api/health").status, 200, "the request after HEAD {target}");
    }
}

#[test]
fn unusual_requests_never_return_5xx() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    let long = "a".repeat(6_000);
    let many_tlds = vec!["com"; 1_500].join(",");
    let many_parameters = "x=1&".repeat(1_500);
    for target in [
        format!("/{long}"),
        format!("/api/v1/domain/{long}"),
        format!("/api/v1/search?q={long}"),
        format!("/api/v1/drops?{long}"),
        format!("/api/v1/drops?tld={many_tlds}"),
        format!("/api/v1/drops?{many_parameters}"),
        "/api/v1/domain/".to_owned(),
        "/api/v1/domain/..%2f..%2fetc%2fpasswd".to_owned(),
        "/api/v1/domain/%2e%2e".to_owned(),
        "//api/v1/drops".to_owned(),
        "/api/v1/drops?=&==&=a".to_owned(),
        "/api/v1/drops?%00=1&%ff=2&%zz=3".to_owned(),
        "/api/v1/drops?q=[(*.%5B%28%5C".to_owned(),
        "/api/v1/search?q=%EF%BF%BF%F4%8F%BF%BF".to_owned(),
        "/api/v1/search?q=%E2%80%AE%C2%AD%CC%81".to_owned(),
        "/api/v1/search?q=xn--".to_owned(),
        "/api/v1/search?q=xn--99999999999".to_owned(),
        "/api/v1/search?q=%F0%9F%92%A9.%F0%9F%92%A9".to_owned(),
    ] {
        let (status, body) = client.get(&target).answer();
        let shown: String = target.chars().take(80).collect();
        assert!(status < 500, "{shown}: {status} {body}");
        assert!(status == 200 || body["error"].is_string(), "{shown}: {status} {body}");
    }
}

#[test]
fn the_allowance_counts_every_request_across_restarts_and_key_rotation() {
    let site = site_with_list();
    let settings = "[plans.pro]\nrequests_per_day = 5\nexports_per_day = 2\n";
    let settings = &site.settings(settings);
    let on = |today: &str| site.serve_with(&["--config", settings, "--today", today]);
    let first_key = site.account("pro@example.com", "pro");

    let server = on(TODAY);
    let mut client = server.client_with(&first_key);
    for (target, status, remaining) in [
        ("/api/v1/drops", 200, 4),
        ("/api/v1/search", 400, 3),
        ("/api/v1/domain/no-such-name.com", 404, 2),
    ] {
        let response = client.get(target);
        assert_eq!(response.status, status, "{target}");
        assert_eq!(allowance(&response), (5, remaining, next_midnight(TODAY)), "{target}");
    }
    // Neither the unauthenticated endpoints nor the exports consume the allowance.
    assert_eq!(client.get("/api/health").status, 200);
    assert_eq!(client.get("/api/v1").status, 200);
    // Choice: a successful export has the rate-limit headers of the export budget.
    let response = client.get("/api/export/drops");
    assert_eq!((response.status, allowance(&response)), (200, (2, 1, next_midnight(TODAY))));

    let second_key = site.new_key("pro@example.com");
    let answer = client.get("/api/v1/drops").answer();
    assert_eq!(answer, (401, unauthenticated(true)), "the old key");
    let mut client = server.client_with(&second_key);
    let response = client.get("/api/v1/search?q=solar");
    assert_eq!((response.status, allowance(&response)), (200, (5, 1, next_midnight(TODAY))));
    server.stop();

    let server = on(TODAY);
    let mut client = server.client_with(&second_key);
    let response = client.get("/api/v1/domain/solar.com");
    assert_eq!((response.status, allowance(&response)), (200, (5, 0, next_midnight(TODAY))));
    // A bad request beyond the allowance returns 429, not 400.
    for target in ["/api/v1/drops", "/api/v1/search", "/api/v1/domain/solar.com"] {
        assert_exhausted(&mut client, target, 5);
    }
    let response = client.get("/api/export/drops");
    assert_eq!((response.status, allowance(&response)), (200, (2, 0, next_midnight(TODAY))));
    for _ in 0..2 {
        assert_exhausted(&mut client, "/api/export/drops", 2);
    }
    server.stop();

    let server = on(TOMORROW);
    let mut client = server.client_with(&second_key);
    let response = client.get("/api/v1/drops");
    assert_eq!((response.status, allowance(&response)), (200, (5, 4, next_midnight(TOMORROW))));
    let response = client.get("/api/export/drops");
    assert_eq!((response.status, allowance(&response)), (200, (2, 1, next_midnight(TOMORROW))));
}

/// Asserts the 429 of an account of plan `pro` on [`TODAY`].
#[track_caller]
fn assert_exhausted(client: &mut Client, target: &str, limit: i64) {
    let seconds_left = || 86_400 - seconds_of_the_day();
    let before = seconds_left();
    let response = client.get(target);
    let after = seconds_left();
    let expected = json!({
        "error": "rate limit exceeded",
        "code": "rate_limited",
        "plan": "pro",
        "limit": limit,
        "resetAt": next_midnight(TODAY) * 1_000,
    });
    assert_eq!(response.answer(), (429, expected), "{target}");
    assert_eq!(allowance(&response), (limit, 0, next_midnight(TODAY)), "{target}");
    let retry_after = response.number("retry-after").expect("429 says when to come back");
    // The pinned clock keeps the time of day. Either rounding is fine, and midnight may pass meanwhile.
    let possible = (after - 1..=before + 1).contains(&retry_after) || after > before;
    assert!(possible, "{target}: Retry-After {retry_after}, {before} s before midnight");
    assert!((1..=86_400).contains(&retry_after), "{target}: Retry-After {retry_after}");
}

fn seconds_of_the_day() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    (since.as_secs() % 86_400) as i64
}

#[test]
fn default_allowances_match_the_plans() {
    let site = site_with_list();
    let server = site.serve(TODAY);
    for (plan, requests, exports) in [("pro", 100, 50), ("api", 10_000, 500)] {
        let key = site.account(&format!("{plan}@example.com"), plan);
        let mut client = server.client_with(&key);
        let reset = next_midnight(TODAY);
        let response = client.get("/api/v1/drops");
        assert_eq!(allowance(&response), (requests, requests - 1, reset), "{plan}");
        let response = client.get("/api/export/drops");
        assert_eq!(allowance(&response), (exports, exports - 1, reset), "{plan}");
    }
    let key = site.account("core@example.com", "core");
    let response = server.client_with(&key).get("/api/export/drops");
    assert_eq!(allowance(&response), (20, 19, next_midnight(TODAY)), "core");
}

#[test]
fn an_export_is_named_after_today() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let response = server.client_with(&key).get("/api/export/drops?tld=com");
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("text/csv; charset=utf-8"));
    let disposition = "attachment; filename=\"drops-2026-03-15.csv\"";
    assert_eq!(response.header("content-disposition"), Some(disposition));
    let text = response.text();
    assert!(text.starts_with("domain,tld,length,dqs,explanation\r\n"), "{text}");
    assert_eq!(text.matches("\r\n").count(), 3, "a header and two names: {text}");
    assert!(text.ends_with("\"\r\n"), "{text}");
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = object.as_object().expect("an object").keys().map(|k| &**k).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn health_and_index_endpoints_need_no_key() {
    let site = site_with_list();
    let server = site.serve(TODAY);
    let mut client = server.client();

    let (status, health) = client.get("/api/health").answer();
    assert_eq!(status, 200);
    assert_eq!(keys(&health), ["latestDropDate", "stale", "status", "uptime"]);
    let known = json!([health["status"], health["latestDropDate"], health["stale"]]);
    assert_eq!(known, json!(["ok", TODAY, false]));
    assert!(health["uptime"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{health}");

    let (status, ready) = client.get("/api/ready").answer();
    assert_eq!((status, &ready["ready"]), (200, &json!(true)), "{ready}");
    assert_eq!(keys(&ready), ["checks", "node", "ready", "uptime"]);
    assert_eq!(ready["checks"], json!({"database": "ok", "drops": "ok", "environment": "ok"}));
    assert!(ready["uptime"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{ready}");
    assert!(ready["node"].as_str().is_some_and(|node| !node.is_empty()), "{ready}");

    let index = client.get("/api/v1").answer();
    assert_eq!(client.get("/api/v1/").answer(), index);
    let (status, index) = index;
    assert_eq!((status, &index["version"]), (200, &json!("1.0")));
    assert_eq!(keys(&index), ["auth", "docs", "endpoints", "name", "version"]);
    for text in ["auth", "docs", "name"] {
        assert!(index[text].as_str().is_some_and(|text| !text.is_empty()), "{text}: {index}");
    }
    let endpoints = index["endpoints"].as_array().expect("an array");
    for path in [
        "/api/v1/drops",
        "/api/v1/search",
        "/api/v1/domain/{name}",
        "/api/export/drops",
        "/api/health",
        "/api/ready",
        "/api/ready/ingest",
    ] {
        let listed = endpoints
            .iter()
            .any(|endpoint| endpoint["method"] == "GET" && endpoint["path"] == path);
        assert!(listed, "GET {path} is not in {index}");
    }
}

#[test]
fn lists_older_than_two_days_are_stale() {
    // Uses the real clock: a pinned one would restart its day if midnight passed meanwhile.
    let ago = |minutes: i64| {
        let then = Clock::system().now() - TimeDelta::minutes(minutes);
        then.to_rfc3339_opts(SecondsFormat::Secs, true)
    };
    let site = Site::new();
    for (file, minutes, hours, stale) in
        [("old.csv", 48 * 60 + 30, 48, true), ("new.csv", 47 * 60 + 30, 47, false)]
    {
        let list = format!("domain,drop_date\n{file}-name.com,2026-01-10\n").replace(".csv-", "-");
        site.ingest(&site.write(file, list), &ago(minutes));
        let server = site.serve_with(&[]);
        let mut client = server.client();
        let word = if stale { "stale" } else { "ok" };
        let expected = json!({
            "status": word,
            "latestDropDate": "2026-01-10",
            "hoursOld": hours,
            "staleAfterHours": 48,
        });
        let status = if stale { 503 } else { 200 };
        assert_eq!(client.get("/api/ready/ingest").answer(), (status, expected), "{file}");
        let (status, health) = client.get("/api/health").answer();
        assert_eq!(
            (status, &health["status"], &health["stale"]),
            (200, &json!(word), &json!(stale)),
            "{file}: {health}"
        );
        assert_eq!(client.get("/api/ready").status, 200, "stale data is served all the same");
        server.stop();
    }
}

/// Requests that clients repeat while a new list goes live.
const WATCHED: [&str; 4] = [
    "/api/v1/drops?limit=1000&view=all",
    "/api/v1/search?q=s&limit=100",
    "/api/v1/domain/solar.com",
    "/api/export/drops",
];
/// 2 s are promised; the rest is tolerance for a busy machine.
const SWITCH_MAX: Duration = Duration::from_secs(60);

#[test]
fn a_new_list_goes_live_under_running_clients() {
    let site = site_with_list();
    let (server, key) = server_without_allowance(&site);
    let mut client = server.client_with(&key);
    let old = WATCHED.map(|target| client.get(target));
    let stop = AtomicBool::new(false);
    // Every reader gets its first responses before the list arrives.
    let readers: Vec<Reader> = (0..4).map(|_| Reader::new(server.client_with(&key))).collect();
    let (readers, new) = thread::scope(|scope| {
        let asking: Vec<_> =
            readers.into_iter().map(|reader| scope.spawn(|| reader.keep_asking(&stop))).collect();
        // The readers must stop even if this thread panics.
        let stop_readers = StopAtDrop(&stop);
        let mut rows = String::from("domain,drop_date,registered_again\n");
        rows.push_str("solar.com,2026-03-15,true\n");
        (0..500).for_each(|at| rows.push_str(&format!("solar{at}.net,2026-03-14,\n")));
        site.ingest(&site.write("second.csv", rows), "2026-03-15T06:00:00Z");
        let is_live = || client.get(WATCHED[0]).body != old[0].body;
        wait::until(SWITCH_MAX, "the new list is served", is_live);
        drop(stop_readers);
        let readers = asking.into_iter().map(|reader| reader.join().expect("no response failed"));
        (readers.collect::<Vec<_>>(), WATCHED.map(|target| client.get(target)))
    });
    for (at, target) in WATCHED.iter().enumerate() {
        assert_eq!((old[at].status, new[at].status), (200, 200), "{target}");
        assert_ne!(old[at].body, new[at].body, "{target} is the same for both lists");
    }
    for reader in readers {
        reader.assert_old_then_new(&old, &new);
    }
}

/// Stops the other threads when dropped, also after a failed assertion.
struct StopAtDrop<'a>(&'a AtomicBool);

impl Drop for StopAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client and its responses: indexes into [`WATCHED`] and `bodies`.
struct Reader {
    client: Client,
    answers: Vec<(usize, usize)>,
    bodies: HashMap<Vec<u8>, usize>,
}

impl Reader {
    /// Creates a client and sends its first round of requests.
    fn new(client: Client) -> Reader {
        let mut reader = Reader { client, answers: Vec::new(), bodies: HashMap::new() };
        reader.ask_all();
        reader
    }

    /// Repeats the requests until `stop`, and a few rounds more.
    fn keep_asking(mut self, stop: &AtomicBool) -> Reader {
        while !stop.load(Ordering::Relaxed) {
            self.ask_all();
        }
        (0..5).for_each(|_| self.ask_all());
        self
    }

    fn ask_all(&mut self) {
        for (at, target) in WATCHED.iter().enumerate() {
            let response = self.client.get(target);
            assert_eq!(response.status, 200, "{target}: {}", response.text());
            let next = self.bodies.len();
            let body = *self.bodies.entry(response.body).or_insert(next);
            self.answers.push((at, body));
        }
    }

    /// Asserts that every response is the complete old or new one, none old after a new one, and that
    /// both were seen on one connection.
    fn assert_old_then_new(&self, old: &[Response], new: &[Response]) {
        let is = |body: usize, answer: &Response| self.bodies.get(&answer.body) == Some(&body);
        let mut switched = false;
        for &(at, body) in &self.answers {
            let (is_old, is_new) = (is(body, &old[at]), is(body, &new[at]));
            let target = WATCHED[at];
            assert!(is_old || is_new, "{target}: neither the old response nor the new one");
            assert!(is_new || !switched, "{target}: the old response after a new one");
            switched = is_new;
        }
        let (at, body) = self.answers[0];
        assert!(is(body, &old[at]) && switched, "this client did not see both lists");
        assert_eq!(self.client.connections(), 1, "the switch closed a connection");
    }
}

#[test]
fn a_rollback_goes_live() {
    let site = site_with_list();
    let (server, key) = server_without_allowance(&site);
    let mut client = server.client_with(&key);
    let mut ask = || {
        let (status, body) = client.get("/api/v1/search?q=s&limit=100").answer();
        assert_eq!(status, 200, "{body}");
        body
    };
    let first = ask();
    let second = site.write("second.csv", "domain,drop_date\nsolar.net,2026-03-12\n");
    site.ingest(&second, "2026-03-15T06:00:00Z");
    wait::until(SWITCH_MAX, "the second list is served", || ask() != first);
    site.ok(&["index", "rollback"]);
    wait::until(SWITCH_MAX, "the generation before is served again", || ask() == first);
}

#[test]
fn the_demo_serves_the_sample_with_the_printed_key() {
    let site = Site::new();
    let server = site.demo();
    let mut client = server.client_with(&server.printed("key "));
    let drops = client.get("/api/v1/drops?tld=com&max_len=8&limit=5");
    assert_eq!((drops.status, drops.json()["count"].clone()), (200, json!(5)), "{}", drops.text());
    let claim = json!({"domain": "example.com", "status": "attempted"});
    assert_eq!(client.send("POST", "/api/v1/portfolio", &claim).status, 201);
    // The demo's rule was created from a saved search, and matched the second of two lists.
    let search = client.get("/api/v1/searches").json()["searches"][0].take();
    assert!(search["newSinceSeen"].as_u64().is_some_and(|new| new > 0), "{search}");
    let rule = client.get("/api/v1/alerts").json()["alerts"][0].take();
    assert_eq!(rule["searchId"], search["id"]);
    let sent = client.get(&format!("/api/v1/alerts/{}/deliveries", rule["id"])).json();
    let sent = &sent["deliveries"][0];
    // The number of a saved search may be an estimate.
    let new = "/api/v1/drops?tld=com&max_len=8&digits=none&listed_since=today&total=exact";
    let new = client.get(new).json()["total"].take();
    assert_eq!((&sent["status"], &sent["names"]), (&json!("delivered"), &new));
    let log = server.log();
    assert!(!log.contains("no source is enabled"), "{log}");
    server.stop();
}

#[test]
fn wrong_usage_ends_with_2() {
    let site = Site::new();
    let list = site.write("list.csv", LIST);
    let list = list.to_str().expect("temporary paths are UTF-8");
    for arguments in [
        &["nonsense"][..],
        &["serve", "--no-such-flag"],
        &["serve", "--today", "tomorrow"],
        &["serve", "--today", "2026-02-30"],
        &["serve", "--listen", "nowhere"],
        &["ingest"],
        &["ingest", "--drop-date", "yesterday", list],
        &["ingest", "--observed-at", "noon", list],
        &["ingest", "--format", "no-such-format", list],
        &["account", "add", "a@example.com"],
        &["account", "add", "a@example.com", "--plan", "gold"],
        &["account", "set-plan", "a@example.com", "gold"],
    ] {
        let finished = site.run(arguments);
        assert_eq!(finished.code, Some(2), "{finished}");
        assert!(finished.stdout.is_empty() && finished.stderr.len() > 10, "{finished}");
        assert!(!finished.stderr.contains("panicked"), "{finished}");
    }
    for arguments in [&["--help"][..], &["serve", "--help"], &["ingest", "--help"], &["--version"]]
    {
        let finished = site.run(arguments);
        assert!(finished.code == Some(0) && finished.stdout.len() > 5, "{finished}");
    }
}

#[test]
fn errors_name_an_unusable_data_folder() {
    let site = site_with_list();
    let not_a_folder = site.write("not-a-folder", "");
    let not_a_folder = not_a_folder.to_str().expect("temporary paths are UTF-8");
    let list = site.write("list.csv", LIST);
    let list = list.to_str().expect("temporary paths are UTF-8");
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0", "--data", not_a_folder][..],
        &["ingest", "--data", not_a_folder, list],
        &["rebuild", "--data", not_a_folder],
        &["account", "list", "--data", not_a_folder],
    ] {
        site.run(arguments).assert_failed(12, &[not_a_folder, "is not a folder", "--data"]);
    }
}

#[test]
fn errors_name_a_port_in_use() {
    let site = site_with_list();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let finished = site.run(&["serve", "--today", TODAY, "--listen", &address]);
    finished.assert_failed(11, &[&address]);
    assert!(!finished.stdout.contains("listening on"), "{finished}");
}

/// Returns every file below `folder`.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder can be read") {
            let entry = entry.expect("a folder can be read");
            let kind = entry.file_type().expect("a file has a type");
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}

/// Flips one bit in the middle of each file that is not empty, and returns their number.
fn damage(files: &[PathBuf]) -> usize {
    let mut damaged = 0;
    for file in files {
        let mut bytes = std::fs::read(file).expect("a file can be read");
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0x10;
            std::fs::remove_file(file).expect("a file can be replaced");
            std::fs::write(file, bytes).expect("a file can be replaced");
            damaged += 1;
        }
    }
    damaged
}

#[test]
fn an_index_of_a_newer_version_is_refused_and_can_be_rebuilt() {
    let site = site_with_list();
    let generations = || files_below(&site.index()).into_iter();
    let manifests = generations().filter(|path| path.ends_with("MANIFEST"));
    for path in manifests {
        let text = std::fs::read_to_string(&path).expect("readable");
        let (json, _) = text.split_once('\n').expect("two lines");
        let mut manifest: Value = serde_json::from_str(json).expect("JSON");
        manifest["format"] = 999.into();
        let json = manifest.to_string();
        let sum = blake3::hash(json.as_bytes()).to_hex();
        std::fs::write(&path, format!("{json}\n{sum}\n")).expect("written");
    }
    let finished = site.run(&["serve", "--listen", "127.0.0.1:0", "--today", TODAY]);
    finished.assert_failed(15, &["index format 999, this dropdex reads", "dropdex rebuild"]);
    site.ok(&["rebuild"]);
    let (server, _) = server_with_list(&site);
    assert_eq!(server.client().get("/api/ready").status, 200);
}

#[test]
fn a_damaged_index_is_refused_and_can_be_rebuilt() {
    let site = site_with_list();
    site.ok(&["index", "verify"]);
    assert!(damage(&files_below(&site.index())) > 0, "there was nothing to damage");
    assert_eq!(site.run(&["index", "verify"]).code, Some(1), "the damage is seen");
    let finished = site.run(&["serve", "--listen", "127.0.0.1:0", "--today", TODAY]);
    finished.assert_failed(15, &["rebuild"]);
    site.ok(&["rebuild"]);
    let (server, key) = server_with_list(&site);
    assert_eq!(server.client_with(&key).get("/api/v1/drops").json()["count"], 4);
}

#[test]
fn a_damaged_generation_falls_back_to_the_previous_one() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let before = server.client_with(&key).get("/api/v1/drops").answer();
    server.stop();
    let first_files = files_below(&site.index());
    let second = site.write("second.csv", "domain,drop_date\nsolar.net,2026-03-12\n");
    site.ingest(&second, "2026-03-15T06:00:00Z");
    let new_files: Vec<PathBuf> =
        files_below(&site.index()).into_iter().filter(|file| !first_files.contains(file)).collect();
    assert!(damage(&new_files) > 0, "the second list made no new files");
    let server = site.serve(TODAY);
    assert_eq!(server.client_with(&key).get("/api/v1/drops").answer(), before);
    let stderr = server.stop();
    assert!(!stderr.trim().is_empty(), "an error for the operator");
}

#[test]
fn a_damaged_list_is_refused_completely() {
    let site = site_with_list();
    let (server, key) = server_with_list(&site);
    let mut client = server.client_with(&key);
    let before = client.get("/api/v1/search?q=s&limit=100").answer();
    let rows: String = (0..2_000).map(|at| format!("shop{at}.com,2026-03-14\n")).collect();
    let good = format!("domain,drop_date\n{rows}");
    let packed = gzip(good.as_bytes());
    let mut flipped = packed.clone();
    flipped[packed.len() / 2] ^= 0x10;
    let half_bad = good.replace("2026-03-14\nshop1", "2026-02-30\nshop1");
    let missing = site.data().join("no-such-list.csv");
    for (path, words) in [
        (site.write("cut.csv.gz", &packed[..packed.len() / 2]), &["cut.csv.gz"][..]),
        (site.write("flipped.csv.gz", flipped), &["flipped.csv.gz"]),
        (site.write("no-column.csv", good.replace("drop_date", "day")), &["drop_date"]),
        (site.write("half-bad.csv", half_bad), &["half-bad.csv"]),
        (site.write("empty.csv", ""), &["empty.csv"]),
        (missing, &["no-such-list.csv"]),
    ] {
        let path = path.to_str().expect("temporary paths are UTF-8");
        site.run(&["ingest", "--observed-at", OBSERVED, path]).assert_failed(1, words);
    }
    // None of the rows of these lists is in the corpus for the next rebuild.
    site.ok(&["rebuild"]);
    server.stop();
    let server = site.serve(TODAY);
    let after = server.client_with(&key).get("/api/v1/search?q=s&limit=100").answer();
    assert_eq!(after, before, "a list is applied whole or not at all");
}

#[test]
fn a_zone_pair_yields_drops_and_registrations() {
    let site = Site::new();
    let zone = |names: [&str; 2]| {
        let rows = names.map(|name| format!("{name} 10800 in ns ns1.example.net.\n")).concat();
        format!("$ORIGIN app.\n@ 3600 IN SOA a. b. 1 2 3 4 5\n{rows}")
    };
    let older = site.write("app-2026-03-13.zone", zone(["alpha", "beta"]));
    let newer = site.write("app-2026-03-14.zone", zone(["beta", "gamma"]));
    let [older, newer] = [&older, &newer].map(|path| path.to_str().expect("UTF-8 paths"));
    let alone = site.run(&["ingest", "--format", "zone-pair", older]);
    assert_eq!(alone.code, Some(2), "{alone}");
    let said = site.ok(&["ingest", "--format", "zone-pair", older, newer]);
    let summary: Value = serde_json::from_str(&said).expect("one line of JSON");
    assert_eq!((&summary["accepted"], &summary["names"]), (&json!(2), &json!(2)), "{said}");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&site.account("z@example.com", "api"));
    let status = |client: &mut Client, name: &str| {
        let (status, body) = client.get(&format!("/api/v1/domain/{name}")).answer();
        (status, body["currentStatus"].clone(), body["latestDrop"]["date"].clone())
    };
    assert_eq!(status(&mut client, "alpha.app"), (200, json!("redemption"), json!("2026-03-14")));
    assert_eq!(status(&mut client, "beta.app").0, 404, "names that stayed are not news");
    assert_eq!(status(&mut client, "gamma.app"), (200, json!("registered"), Value::Null));
}

#[test]
fn ingesting_the_same_list_again_reports_a_no_op() {
    let site = site_with_list();
    let generations = || site.ok(&["index", "list"]).lines().count();
    let before = generations();
    let list = site.write("the-same-under-another-name.csv", LIST);
    let list = list.to_str().expect("temporary paths are UTF-8");
    let finished = site.run(&["ingest", "--observed-at", OBSERVED, list]);
    assert_eq!(finished.code, Some(0), "{finished}");
    let said = format!("{}{}", finished.stdout, finished.stderr).to_lowercase();
    // Choice: the message uses one of these words.
    let says_so = ["already", "the same", "unchanged"].iter().any(|word| said.contains(word));
    assert!(says_so, "{finished}");
    assert_eq!(generations(), before, "nothing was rebuilt");
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let site = site_with_list();
    site.account("owner@example.com", "api");
    let bad = site.write("not-a-folder", "");
    let (bad, good) = (bad.display().to_string(), site.data().display().to_string());
    let config = |folder: &str| {
        let path = site.write("dropdex.toml", format!("data = \"{folder}\"\n"));
        path.display().to_string()
    };
    // (--data, DROPDEX_DATA, data in the file, whether that is the good folder)
    for (flag, environment, file, works) in [
        (Some(&good), Some(&bad), Some(&bad), true),
        (Some(&bad), Some(&good), Some(&good), false),
        (None, Some(&good), Some(&bad), true),
        (None, Some(&bad), Some(&good), false),
        (None, None, Some(&good), true),
        (None, None, Some(&bad), false),
    ] {
        let mut arguments = vec!["account".to_owned(), "list".to_owned()];
        for (name, value) in [("--data", flag.cloned()), ("--config", file.map(|f| config(f)))] {
            arguments.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        let mut command = site.command(&arguments);
        command.env_remove("DROPDEX_DATA");
        command.envs(environment.map(|folder| ("DROPDEX_DATA", folder)));
        let finished = crate::common::process::finish(command);
        let listed = finished.stdout.contains("owner@example.com");
        assert_eq!((finished.code == Some(0), listed), (works, works), "{finished}");
    }
}
