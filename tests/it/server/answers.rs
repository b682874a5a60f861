//! Properties of every response: ETags, encodings, HEAD, CORS.

use std::io::Read;

use dropdex::http::operations::OPERATIONS;
use flate2::read::GzDecoder;

use super::{TODAY, serve, served};
use crate::common::{Client, Response, Site};

const KEY: &str = "a@example.com";

fn tag(response: &Response) -> String {
    response.header("etag").unwrap_or_else(|| panic!("no tag: {response:?}")).to_owned()
}

#[test]
fn a_matching_etag_gives_304() {
    let (site, server) = served(300, "");
    let key = site.account(KEY, "api");
    let mut client = server.client_with(&key);
    for target in [
        "/api/v1/search?q=name",
        "/api/v1/drops?limit=50",
        "/api/v1/domain/name00001.com",
        "/api/openapi.json",
        "/api/docs",
    ] {
        let first = client.get(target);
        assert_eq!(first.status, 200, "{target}");
        let tag = tag(&first);
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() == 34, "{tag}");
        assert_eq!(first.header("cache-control"), Some("private, no-cache"), "{target}");
        let again = client.request("GET", target, &[("If-None-Match", &tag)]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{target}");
        for method in ["GET", "HEAD"] {
            let again = client.request(method, target, &[("If-None-Match", &tag)]);
            // A 304 has no length, because that would be the length of the response that the client
            // already has.
            assert_eq!((again.status, again.header("content-length")), (304, None), "{target}");
        }
        let again = client.request("GET", target, &[("If-None-Match", &tag)]);
        assert_eq!(again.header("etag"), Some(tag.as_str()));
        assert_eq!(again.header("cache-control"), Some("private, no-cache"));
        assert_eq!(again.header("x-index-generation"), first.header("x-index-generation"));
        if let Some(left) = first.number("x-ratelimit-remaining") {
            assert_eq!(again.number("x-ratelimit-remaining"), Some(left), "a 304 costs nothing");
        }
        let other = client.request("GET", target, &[("If-None-Match", "\"abc\"")]);
        assert_eq!((other.status, &other.body), (200, &first.body), "{target}");
        let zipped = client.request("GET", target, &[("Accept-Encoding", "gzip")]);
        let zipped_tag = self::tag(&zipped);
        if zipped.header("content-encoding").is_some() {
            assert_eq!(zipped_tag, format!("{}-gzip\"", tag.trim_end_matches('"')));
        }
        let held = [("If-None-Match", zipped_tag.as_str()), ("Accept-Encoding", "gzip")];
        assert_eq!(client.request("GET", target, &held).status, 304, "{target}");
    }
    // Another query, another day or another vote results in a different ETag.
    let of = |client: &mut Client, target: &str| tag(&client.get(target));
    let searched = of(&mut client, "/api/v1/search?q=name");
    assert_ne!(searched, of(&mut client, "/api/v1/search?q=name0"));
    let dossier = of(&mut client, "/api/v1/domain/name00001.com");
    let vote = serde_json::json!({"vote": "up"});
    client.send("PUT", "/api/v1/domain/name00001.com/feedback", &vote);
    assert_ne!(dossier, of(&mut client, "/api/v1/domain/name00001.com"));
    assert_eq!(client.get("/api/v1/domain/nobody.com").header("etag"), None);
    drop(server);
    let server = site.serve("2026-11-22");
    let mut client = server.client_with(&key);
    assert_ne!(searched, of(&mut client, "/api/v1/search?q=name"), "the next day");
}

#[test]
fn a_new_generation_changes_etags_and_its_header() {
    let site = Site::with_names(["good.com".to_owned()].into_iter(), TODAY);
    let key = site.account(KEY, "api");
    let server = serve(&site, "");
    let mut client = server.client_with(&key);
    let before = client.get("/api/v1/search?q=good");
    let list = site.write("more.csv", format!("domain,drop_date\nbetter.com,{TODAY}\n"));
    site.ingest(&list, &format!("{TODAY}T01:00:00Z"));
    let generation = before.number("x-index-generation").expect("a number");
    super::raw::wait_until("served", || {
        client.get("/api/v1/search?q=good").number("x-index-generation") > Some(generation)
    });
    let held = tag(&before);
    let after = client.request("GET", "/api/v1/search?q=good", &[("If-None-Match", &held)]);
    assert_eq!(after.status, 200);
    assert_ne!(tag(&after), held);
}

/// Returns the decoded body.
fn decoded(response: &Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    match response.header("content-encoding") {
        Some("gzip") => GzDecoder::new(&response.body[..]).read_to_end(&mut bytes),
        Some("zstd") => {
            let mut decoder =
                ruzstd::decoding::StreamingDecoder::new(&response.body[..]).expect("zstd");
            decoder.read_to_end(&mut bytes)
        }
        encoding => panic!("{encoding:?}"),
    }
    .expect("it can be decoded");
    bytes
}

fn vary(response: &Response) -> Vec<&str> {
    let values = response.headers.iter().filter(|(name, _)| name == "vary");
    values.flat_map(|(_, value)| value.split(", ")).collect()
}

#[test]
fn large_responses_are_compressed_for_clients_that_accept_it() {
    let (site, server) = served(3_000, "");
    let mut client = server.client_with(&site.account(KEY, "api"));
    for target in [
        "/api/v1/drops?limit=100",
        "/api/export/drops",
        "/api/docs",
        "/api/openapi.json",
        "/",
        "/docs",
    ] {
        let plain = client.get(target);
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{target}");
        let once = |response: &Response| {
            vary(response).iter().filter(|it| it.eq_ignore_ascii_case("accept-encoding")).count()
        };
        assert_eq!(once(&plain), 1, "{target}: {:?}", vary(&plain));
        for (accepts, encoding) in [
            ("gzip", "gzip"),
            ("zstd", "zstd"),
            ("gzip, deflate, br, zstd", "zstd"),
            ("zstd;q=0.1, gzip", "gzip"),
        ] {
            let answer = client.request("GET", target, &[("Accept-Encoding", accepts)]);
            assert_eq!(answer.header("content-encoding"), Some(encoding), "{target} {accepts}");
            assert_eq!(once(&answer), 1, "{target}: {:?}", vary(&answer));
            assert!(answer.body.len() * 3 < plain.body.len() * 2, "{target} {accepts}");
            assert!(decoded(&answer) == plain.body, "{target} {accepts}");
        }
        for accepts in ["br", "identity", "gzip;q=0", "identity;q=0"] {
            let answer = client.request("GET", target, &[("Accept-Encoding", accepts)]);
            assert_eq!(answer.header("content-encoding"), None, "{target} {accepts}");
        }
    }
    // A small response fits into one packet uncompressed.
    let small = client.request("GET", "/api/health", &[("Accept-Encoding", "gzip")]);
    assert_eq!((small.header("content-encoding"), vary(&small)), (None, vec![]));
    // A response with a secret is not compressed, even if it is long.
    let urls = (0..5).map(|n| serde_json::json!({"type": "webhook", "url": format!("https://h{n}.dropdex-tests.com/{}", "x".repeat(400))}));
    let rule = serde_json::json!({"name": "r", "filter": {}, "channels": urls.collect::<Vec<_>>()});
    let headers = [("Content-Type", "application/json"), ("Accept-Encoding", "gzip, zstd")];
    let answer = client.send_with("POST", "/api/v1/alerts", &headers, rule.to_string().as_bytes());
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert!(answer.body.len() > 1024 && answer.header("content-encoding").is_none());
}

#[test]
fn head_is_get_without_a_body() {
    let (site, server) = served(300, "");
    let mut client = server.client_with(&site.account(KEY, "api"));
    let mut seen = 0;
    for operation in OPERATIONS.iter().filter(|operation| operation.method == "GET") {
        let target = operation.path.replace("{name}", "name00001.com").replace("{id}", "1");
        let target = target.replace("{delivery}", "1");
        let target = if target.ends_with("/search") { format!("{target}?q=name") } else { target };
        for accepts in ["identity", "gzip"] {
            let headers = [("Accept-Encoding", accepts)];
            let get = client.request("GET", &target, &headers);
            let head = client.request("HEAD", &target, &headers);
            assert_eq!((head.status, head.body.len()), (get.status, 0), "{target}");
            // Headers that differ between requests, and the framing of a body of unknown length,
            // are omitted.
            let kept = |response: &Response| -> Vec<(String, String)> {
                let differ = [
                    "date",
                    "ratelimit",
                    "x-ratelimit-remaining",
                    "x-request-id",
                    "transfer-encoding",
                ];
                let headers = response.headers.iter();
                headers.filter(|(name, _)| !differ.contains(&name.as_str())).cloned().collect()
            };
            let (mut of_get, mut of_head) = (kept(&get), kept(&head));
            of_get.sort();
            of_head.sort();
            if target.starts_with("/api/health") || target.starts_with("/api/ready") {
                continue;
            }
            assert_eq!(of_get, of_head, "{target} {accepts}");
        }
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
    assert_eq!(client.request("HEAD", "/api/v1/appraise", &[]).status, 405);
}

#[test]
fn scripts_of_listed_sites_may_call_the_api() {
    let (site, server) = served(3, "cors_origins = [\"https://app.example\"]\n");
    let key = site.account(KEY, "api");
    let mut client = server.client();
    let preflight = |client: &mut Client, origin: &str, path: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Headers", "authorization"),
        ];
        client.request("OPTIONS", path, &headers)
    };
    let allowed = preflight(&mut client, "https://app.example", "/api/v1/drops");
    assert_eq!((allowed.status, allowed.body.len()), (204, 0));
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.example"));
    let headers = allowed.header("access-control-allow-headers").expect("some");
    for name in [
        "authorization",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "last-event-id",
        "prefer",
        "x-log-position",
        "x-request-id",
    ] {
        assert!(headers.split(", ").any(|listed| listed == name), "{name}: {headers}");
    }
    assert_eq!(allowed.header("access-control-allow-credentials"), None);
    for (origin, path) in [
        ("https://evil.example", "/api/v1/drops"),
        ("https://app.example.evil.example", "/api/v1/drops"),
        ("null", "/api/v1/drops"),
        ("https://app.example", "/login"),
    ] {
        let refused = preflight(&mut client, origin, path);
        assert_eq!(refused.header("access-control-allow-origin"), None, "{origin} {path}");
        assert!(refused.status >= 400, "{origin} {path}");
    }
    let mut client = server.client_with(&key);
    let from = |client: &mut Client, target: &str, origin: &str| {
        client.request("GET", target, &[("Origin", origin)])
    };
    let answer = from(&mut client, "/api/v1/drops", "https://app.example");
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.header("vary"), Some("accept-encoding, origin, authorization"));
    // Scripts may read every header of these responses, except those that concern only caches and
    // connections.
    let export = from(&mut client, "/api/export/drops", "https://app.example");
    let paged = from(&mut client, "/api/v1/drops?limit=1", "https://app.example");
    let unknown = from(&mut server.client(), "/api/v1/drops", "https://app.example");
    let wrong = client.request("PUT", "/api/v1/drops", &[("Origin", "https://app.example")]);
    let added = client.send_with(
        "POST",
        "/api/v1/portfolio",
        &[
            ("Origin", "https://app.example"),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", "a"),
        ],
        br#"{"domain": "solar.com", "status": "caught"}"#,
    );
    assert_eq!((export.status, unknown.status, wrong.status, added.status), (200, 401, 405, 201));
    let always = [
        "cache-control",
        "content-type",
        "content-length",
        "content-encoding",
        "date",
        "vary",
        "transfer-encoding",
        "connection",
        "x-content-type-options",
        "server-timing",
    ];
    for answer in [&answer, &export, &paged, &unknown, &wrong, &added] {
        let exposed = answer.header("access-control-expose-headers").expect("listed");
        for (name, _) in &answer.headers {
            let is_read = always.contains(&name.as_str()) || name.starts_with("access-control-");
            assert!(is_read || exposed.split(", ").any(|it| it == name), "{name}: {exposed}");
        }
        assert!(vary(answer).contains(&"origin"));
    }
    for (answer, name) in [
        (&export, "content-disposition"),
        (&paged, "link"),
        (&unknown, "www-authenticate"),
        (&wrong, "allow"),
    ] {
        assert!(answer.header(name).is_some(), "{name}: {:?}", answer.headers);
    }
    let answer = from(&mut client, "/api/v1/drops", "https://evil.example");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    assert!(vary(&answer).contains(&"origin"));
    let refused = from(&mut server.client(), "/api/v1/drops", "https://app.example");
    assert_eq!(
        (refused.status, refused.header("access-control-allow-origin").is_some()),
        (401, true)
    );
    // Only listed origins are allowed.
    drop(server);
    let plain = serve(&site, "");
    let answer = plain.client().request("GET", "/api/health", &[("Origin", "https://app.example")]);
    assert_eq!((answer.header("access-control-allow-origin"), vary(&answer)), (None, vec![]));
}
