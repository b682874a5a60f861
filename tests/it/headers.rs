//! The headers that control how caches and browsers use a response: for every operation of the
//! document and every page, with a key, without one, with an invalid one, and in errors.

use crate::common::{Client, Response, Site, TODAY};

/// Returns the names in `Vary`, in lower case.
fn vary(response: &Response) -> Vec<String> {
    let lines = response.headers.iter().filter(|(name, _)| name == "vary");
    lines.flat_map(|(_, value)| value.split(',').map(|name| name.trim().to_lowercase())).collect()
}

/// Checks that no shared cache may hand the response to another client.
#[track_caller]
fn assert_private(what: &str, response: &Response, depends_on: &[&str]) {
    let control = response.header("cache-control").unwrap_or_default();
    let status = response.status;
    assert!(["private, no-cache", "no-store"].contains(&control), "{what} {status}: {control:?}");
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{what} {status}");
    let vary = vary(response);
    for name in depends_on {
        let times = vary.iter().filter(|listed| listed == name).count();
        assert_eq!(times, 1, "{what} {status}: {name} in {vary:?}");
    }
}

#[test]
fn every_operation_forbids_shared_caches() {
    let site = Site::with_a_name_of_each_kind();
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let document = server.client().get("/api/openapi.json").json();
    let unknown = format!("ddx_{}", "0123456789abcdef".repeat(3));
    let mut clients = [server.client(), server.client_with(&unknown), server.client_with(&key)];
    let paths = document["paths"].as_object().expect("an object");
    for (path, methods) in paths {
        let target = path.replace("{name}", "solar.com").replace("{id}", "1");
        let target = target.replace("{delivery}", "0123456789abcdef0123456789abcdef");
        let depends_on: &[&str] = match path.as_str() {
            "/api/v1" => &[],
            it if it.starts_with("/api/v1/") => &["authorization"],
            it if it.starts_with("/api/export/") => &["authorization", "cookie"],
            it if it.starts_with("/unsubscribe/") => &["cookie"],
            _ => &[],
        };
        let is_health = path == "/api/health" || path.starts_with("/api/ready");
        for method in methods.as_object().expect("an object").keys() {
            let method = method.to_uppercase();
            for client in &mut clients {
                let response = client.request(&method, &target, &[("Accept-Encoding", "gzip")]);
                let what = format!("{method} {target}");
                assert_private(&what, &response, depends_on);
                if is_health {
                    assert_eq!(response.header("cache-control"), Some("no-store"), "{what}");
                }
            }
            // The same holds for 405 and 404.
            for target in [target.clone(), format!("{target}/nope")] {
                let response = clients[2].request("OPTIONS", &target, &[]);
                assert!(response.status >= 400, "OPTIONS {target}: {}", response.status);
                assert_private(&format!("OPTIONS {target}"), &response, &[]);
            }
        }
    }
}

#[test]
fn compressed_responses_vary_by_encoding_and_key() {
    let site = Site::with_names((0..100).map(|number| format!("name{number}.com")), TODAY);
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let gzip = &[("Accept-Encoding", "gzip")];
    let response = client.request("GET", "/api/v1/drops?limit=100&view=all", gzip);
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(response.header("vary"), Some("accept-encoding, authorization"));
    let response = client.request("GET", "/api/export/drops?view=all", gzip);
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(vary(&response), ["accept-encoding", "authorization", "cookie"]);
    // The document is the same for all clients.
    let response = client.request("GET", "/api/openapi.json", gzip);
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(response.header("vary"), Some("accept-encoding"));
}

#[test]
fn pages_depend_on_the_session_and_errors_on_the_format() {
    let site = Site::with_a_name_of_each_kind();
    let server = site.serve(TODAY);
    let mut client = server.client();
    for target in ["/", "/search?q=solar", "/domain/solar.com", "/login", "/docs", "/overview"] {
        let response = client.request("GET", target, &[("Accept", "text/html")]);
        assert_eq!(response.status, 200, "{target}");
        assert_private(target, &response, &["cookie"]);
    }
    for (accept, kind) in [("text/html", "text/html"), ("*/*", "application/json")] {
        let response = client.request("GET", "/nope", &[("Accept", accept)]);
        assert_eq!(response.status, 404);
        let sent = response.header("content-type").unwrap_or_default();
        assert!(sent.starts_with(kind), "{accept}: {sent}");
        assert_private("/nope", &response, &["cookie", "accept"]);
    }
}

#[test]
fn wrong_methods_on_pages_return_405() {
    let site = Site::with_a_name_of_each_kind();
    let server = site.serve(TODAY);
    let mut client: Client = server.client();
    for (method, target) in [
        ("PUT", "/"),
        ("TRACE", "/"),
        ("DELETE", "/watchlist"),
        ("PATCH", "/alerts"),
        ("BREW", "/search"),
    ] {
        let response = client.request(method, target, &[("Content-Length", "0")]);
        assert_eq!(response.status, 405, "{method} {target}: {}", response.text());
        let allowed = response.header("allow").unwrap_or_default();
        assert!(allowed.contains("GET"), "{method} {target}: Allow is {allowed:?}");
    }
    // A form from another site is refused as before.
    let response = client.request("POST", "/login", &[("Content-Length", "0")]);
    assert_eq!(response.status, 403, "{}", response.text());
}
