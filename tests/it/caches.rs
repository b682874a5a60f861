//! The service behind a cache. Debian's nginx stores every response that it may, and responses without
//! caching headers for ten minutes. Two accounts and a visitor request every page and every route of
//! the API through it, each twice. Each gets the server's own response, and no data of the others.

use std::net::SocketAddr;
use std::time::Duration;

use dropdex::http::operations::OPERATIONS;
use serde_json::{Value, json};

use crate::browser::access::{OPEN, OWN};
use crate::common::nginx::Nginx;
use crate::common::{Client, Response, Server, Site, TODAY, wait};
use crate::pages::browser::Browser;

const PASSWORD: &str = "correct horse battery";
/// Deadline of steps that take a moment.
const SOON: Duration = Duration::from_secs(60);

/// nginx with a cache of its own.
struct Cache(Nginx);

impl Cache {
    fn before(server: &Server) -> Cache {
        Cache(Nginx::start(|address| config(address, server.address())))
    }

    fn client(&self) -> Client {
        Client::new(self.0.address())
    }
}

/// Settings that many guides recommend: one cache key per URL, and a lifetime for responses that
/// specify none.
fn config(address: SocketAddr, server: SocketAddr) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {kind};"))
        .join(" ");
    format!(
        "daemon off; master_process off; pid pid;\n\
         events {{}}\n\
         http {{\n\
           access_log off; {temporary}\n\
           proxy_cache_path cached keys_zone=all:1m use_temp_path=off;\n\
           server {{\n\
             listen {address};\n\
             location / {{\n\
               proxy_pass http://{server};\n\
               proxy_http_version 1.1;\n\
               proxy_set_header Host $http_host;\n\
               proxy_set_header Connection \"\";\n\
               proxy_cache all;\n\
               proxy_cache_valid any 10m;\n\
               add_header X-Cache $upstream_cache_status always;\n\
             }}\n\
           }}\n\
         }}\n"
    )
}

/// A client and its credentials.
struct Asker {
    /// A word that occurs in all data of the account.
    mark: &'static str,
    headers: Vec<(&'static str, String)>,
}

impl Asker {
    fn ask(&self, client: &mut Client, target: &str) -> Response {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        client.request("GET", target, &headers)
    }
}

/// Creates an account with a claim, a watched name and a rule, and returns their ids.
fn account(
    site: &Site,
    server: &Server,
    mark: &'static str,
) -> (Vec<Asker>, [(&'static str, String); 2]) {
    let email = format!("{mark}@example.com");
    site.account_with_password(&email, "api", PASSWORD);
    let key = site.new_key(&email);
    let mut client = server.client_with(&key);
    let mut add = |path: &str, body: Value| {
        let added = client.send("POST", path, &body);
        assert_eq!(added.status, 201, "{path}: {}", added.text());
        added.json()
    };
    let claim = json!({"domain": format!("{mark}.com"), "status": "lost", "registrar": mark});
    let claim = add("/api/v1/portfolio", claim);
    add("/api/v1/watchlist", json!({"domainName": format!("{mark}.net")}));
    let rule = json!({"name": mark, "filter": {"contains": mark}, "channels": [{"type": "email"}]});
    let rule = add("/api/v1/alerts", rule);
    let ids = [
        ("/portfolio/{id}", claim["claim"]["id"].to_string()),
        ("/alerts/{id}", rule["alert"]["id"].to_string()),
    ];
    let mut browser = Browser::new(server);
    assert_eq!(browser.log_in(&email, PASSWORD).status, 303);
    let cookie = browser.cookie.expect("a session");
    let askers = vec![
        Asker { mark, headers: vec![("Authorization", format!("Bearer {key}"))] },
        Asker { mark, headers: vec![("Cookie", cookie)] },
    ];
    (askers, ids)
}

/// Returns every GET route with these ids, and every page.
fn targets(ids: &[(&str, String)]) -> Vec<String> {
    let mut targets: Vec<String> =
        OPEN.iter().chain(&OWN).map(|(_, path)| path.to_string()).collect();
    for operation in OPERATIONS.iter().filter(|operation| operation.method == "GET") {
        let path = operation.path.replace("{name}", "known.com").replace("{delivery}", "1");
        let path = if path.ends_with("/search") { format!("{path}?q=known") } else { path };
        if !path.contains("{id}") {
            targets.push(path);
            continue;
        }
        let (kind, id) = ids.iter().find(|(kind, _)| path.contains(kind)).expect("a kind of id");
        let filled = kind.replace("{id}", id);
        targets.push(path.replace(kind, &filled));
        // The page of a claim, and the forms that change it.
        targets.extend(["", "/edit", "/delete"].map(|rest| format!("{filled}{rest}")));
    }
    targets
}

#[test]
fn each_client_sees_only_its_own_data_through_a_cache() {
    let site = Site::with_names(["known.com".to_owned()].into_iter(), TODAY);
    let settings =
        site.settings("[web]\nplain_http = true\n[plans.api]\nrequests_per_day = 100000\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let (ann, ids_of_ann) = account(&site, &server, "annsthing");
    let (bob, ids_of_bob) = account(&site, &server, "bobsthing");
    let nobody = vec![Asker { mark: "nobodysthing", headers: vec![] }];
    let cache = Cache::before(&server);
    let (mut through, mut straight) = (cache.client(), server.client());
    let (mut stored, mut found) = (Vec::new(), Vec::new());
    let mut targets = targets(&ids_of_ann);
    targets.extend(self::targets(&ids_of_bob));
    targets.sort();
    targets.dedup();
    // Each client makes the first request once.
    for askers in [[&ann, &bob, &nobody], [&nobody, &bob, &ann]] {
        for target in &targets {
            for asker in askers.into_iter().flatten() {
                let truth = asker.ask(&mut straight, target);
                for time in ["first", "second"] {
                    let answer = asker.ask(&mut through, target);
                    let whom = || format!("{target}, asked for by {} the {time} time", asker.mark);
                    assert_eq!(answer.status, truth.status, "{}: {}", whom(), answer.text());
                    let others =
                        ["annsthing", "bobsthing"].into_iter().filter(|it| *it != asker.mark);
                    for other in others.filter(|other| !target.contains(other)) {
                        assert!(!answer.text().contains(other), "{}: {}", whom(), answer.text());
                    }
                    let own = |answer: &Response| answer.text().matches(asker.mark).count();
                    assert_eq!(own(&answer), own(&truth), "{}: {}", whom(), answer.text());
                    found.push(own(&answer) > 0);
                    if answer.header("x-cache") == Some("HIT") {
                        stored.push(target.clone());
                    }
                }
            }
        }
    }
    assert!(found.iter().filter(|found| **found).count() > 40, "too few belong to an account");
    assert_eq!(stored, [] as [String; 0], "these were stored");
    // Responses that may be stored are in fact stored.
    let page = through.get("/").text().to_owned();
    let asset = page.split('"').find(|text| text.starts_with("/assets/")).expect("an asset");
    through.get(asset);
    assert_eq!(through.get(asset).header("x-cache"), Some("HIT"), "{asset}");
}

#[test]
fn a_cache_does_not_hide_a_drain() {
    let site = Site::with_names(["known.com".to_owned()].into_iter(), TODAY);
    let server = site.serve_with(&["--today", TODAY, "--drain-delay", "60"]);
    let cache = Cache::before(&server);
    let mut client = cache.client();
    for target in ["/api/ready", "/api/health"] {
        (0..2).for_each(|_| assert_eq!(client.get(target).status, 200, "{target}"));
    }
    server.signal("TERM");
    wait::until(SOON, "it is not ready", || client.get("/api/ready").status == 503);
    server.signal("TERM");
    server.ended();
    assert_eq!(client.get("/api/health").status, 502, "no server is running");
}
