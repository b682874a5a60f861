//! The endpoint for agents, with the official Python client, and with requests that no client sends.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::http::with_query;
use crate::common::{Client, Response, Server, Site, TODAY, tools, wait};
use crate::reading::html::{Element, Page};
use crate::reading::names;

const OBSERVED: &str = "2026-03-15T00:00:00Z";
const LIST: &str = "\
domain,drop_date,release_date
solarpanel.com,2026-02-10,2026-03-16
qxzvkwp.com,2026-02-10,2026-03-16
solarroof.net,2026-02-10,2026-03-16
solarhouse.com,2026-02-12,2026-03-20
";

/// A server with a few drops, some released tomorrow, and an account.
struct Desk {
    site: Site,
    server: Server,
}

impl Desk {
    fn new() -> Desk {
        let site = Site::new();
        let list = site.write("list.csv", LIST);
        site.ingest(&list, OBSERVED);
        site.ok(&["rebuild"]);
        site.account("ann@example.com", "api");
        let server = site.serve(TODAY);
        Desk { site, server }
    }

    fn key(&self, scopes: &str) -> String {
        let command = ["account", "key", "ann@example.com", "--name", scopes, "--scopes", scopes];
        self.site.ok(&command).trim().to_owned()
    }

    /// Returns the output of the agent.
    fn agent(&self, key: &str, mode: &str) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/agent.py");
        let mut command = Command::new(tools::python());
        command.arg(script).arg(mode).env("DROPDEX_KEY", key);
        command.env("DROPDEX_URL", format!("http://{}", self.server.address()));
        let output = command.output().expect("Python runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{mode}: {errors}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Calls a tool.
    fn call(&self, key: &str, name: &str, arguments: Value) -> Value {
        let mut client = self.server.client_with(key);
        structured(&mut client, name, &arguments)
    }

    fn post(&self, key: &str, headers: &[(&str, &str)], body: &Value) -> Response {
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        self.server.client_with(key).send_with("POST", "/mcp", &all, body.to_string().as_bytes())
    }

    fn requests_today(&self) -> u64 {
        let list = self.site.ok(&["account", "list", "--json"]);
        let list: Value = serde_json::from_str(&list).expect("JSON");
        list[0]["requests_today"].as_u64().expect("a number")
    }
}

/// Number of tools.
const TOOLS: usize = 11;

fn tools_list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

/// Sends a message, and returns its result.
fn result(client: &mut Client, method: &str, params: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = client.send("POST", "/mcp", &message);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["result"].clone()
}

fn structured(client: &mut Client, name: &str, arguments: &Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    result(client, "tools/call", &params)["structuredContent"].clone()
}

#[test]
fn an_agent_finds_explains_and_watches_tomorrows_best_name() {
    let desk = Desk::new();
    let key = desk.key("mcp,read,watchlist");
    for (mode, protocol) in
        [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
    {
        let before = desk.requests_today();
        let seen = desk.agent(&key, mode);
        assert_eq!(seen["protocol"], protocol, "{mode}");
        assert_eq!(seen["best"], "solarpanel.com", "{seen}");
        assert_eq!(seen["dossier"]["latestDrop"]["releaseDate"].as_str(), None);
        assert_eq!(seen["dossier"]["dropPredictedAt"], "2026-03-16", "{seen}");
        let score = &seen["score"];
        assert!(score["explanation"].as_str().is_some_and(|text| text.len() > 20), "{score}");
        assert!(score["signals"]["points"].is_object(), "{score}");
        assert_eq!(seen["search"]["results"][0]["domain"], "solarpanel.com", "{seen}");
        assert_eq!(seen["family"]["names"][0]["releaseDate"], "2026-03-16", "{seen}");
        assert_eq!(seen["changes"]["is_error"], false, "{seen}");
        assert_eq!(seen["meaning"]["is_error"], false, "{seen}");
        assert_eq!(seen["tlds"], 2);
        assert_eq!(seen["watch"]["added"], 1, "{seen}");
        let watched = &seen["watchlist"]["watchlist"][0];
        assert_eq!(
            (&watched["domain"], &watched["tags"]),
            (&json!("solarpanel.com"), &json!(["agent"]))
        );
        assert_eq!(seen["unwatch"]["is_error"], false, "{seen}");
        assert_eq!(seen["wrong"]["error"], "min_dqs: must be an integer from 0 to 100", "{seen}");
        let told = "unknown parameter \"min_dsq\"; did you mean \"min_dqs\"?";
        assert_eq!(seen["unknown"]["error"], told, "{seen}");
        let reads = seen["tools"].as_object().expect("tools");
        let writes: Vec<_> = reads.iter().filter(|(_, reads)| **reads == false).collect();
        assert_eq!((reads.len(), writes.len()), (TOOLS, 2), "{reads:?}");
        // Thirteen calls were made; the one with an unknown argument never became a request. Listing the
        // tools counts, and so does connecting, which a client that knows the protocol omits.
        let connects = if mode == "2026-07-28" { 0 } else { 1 };
        assert_eq!(desk.requests_today() - before, 12 + 1 + connects, "{mode}");
    }
}

#[test]
fn every_request_of_an_agent_counts_and_none_beyond_the_allowance_succeeds() {
    let desk = Desk::new();
    let key = desk.key("mcp,read");
    let version = json!("2025-11-25");
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        tools_list(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "none/such"}),
    ];
    for request in &requests {
        let before = desk.requests_today();
        let answer = desk.post(&key, &[], request);
        assert_eq!(answer.status, 200, "{request}: {}", answer.text());
        assert_eq!(desk.requests_today() - before, 1, "{request}");
    }
    let Desk { site, server } = desk;
    drop(server);
    let settings = site.settings("[plans.api]\nrequests_per_day = 1\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let desk = Desk { site, server };
    for request in &requests {
        let answer = desk.post(&key, &[], request).json();
        assert_eq!(answer["error"]["message"], "rate limit exceeded", "{request}: {answer}");
        assert_eq!(answer["error"]["data"]["code"], "rate_limited", "{answer}");
        assert!(answer["error"]["data"]["resetAt"].is_i64(), "{answer}");
    }
}

#[test]
fn a_key_without_the_scope_of_the_watchlist_only_reads() {
    let desk = Desk::new();
    let seen = desk.agent(&desk.key("mcp,read"), "auto");
    for refused in ["watch", "watchlist", "unwatch"] {
        assert_eq!(seen[refused]["is_error"], true, "{refused}");
        assert_eq!(seen[refused]["code"], "insufficient_scope", "{refused}");
        let told = seen[refused]["error"].as_str().expect("text");
        assert!(told.contains("no scope \"watchlist\""), "{told}");
    }
    assert_eq!(seen["best"], "solarpanel.com");
}

#[test]
fn malformed_calls_of_agents_are_refused_in_json() {
    let desk = Desk::new();
    let key = desk.key("mcp");
    let listed = desk.post(&key, &[], &tools_list());
    assert_eq!(
        (listed.status, listed.json()["result"]["tools"].as_array().map(Vec::len)),
        (200, Some(TOOLS))
    );
    let unknown = format!("ddx_{}", "0123456789abcdef".repeat(3));
    let refused = desk.post(&unknown, &[], &tools_list());
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    let refused = desk.post(&desk.key("read"), &[], &tools_list());
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (403, Some("insufficient_scope"))
    );
    let evil = [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")];
    let refused = desk.post(&key, &evil, &tools_list());
    assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("cross_site")));
    let mut client = desk.server.client_with(&key);
    let refused = client.get("/mcp");
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (405, Some("method_not_allowed"))
    );
    let long = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(100_000) });
    let refused = desk.post(&key, &[], &long);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (413, Some("body_too_large")));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "drop_all" } });
    let refused = desk.post(&key, &[], &call);
    assert_eq!(refused.json()["error"]["code"], -32602, "{}", refused.text());
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "foo" });
    let refused = desk.post(&key, &[], &call).json();
    assert_eq!(refused["error"]["message"], "there is no method foo", "{refused}");
}

#[test]
fn results_are_short_unless_more_is_requested() {
    let desk = Desk::new();
    let key = desk.key("mcp,read");
    let call = |name: &str, arguments: Value| desk.call(&key, name, arguments);
    let drops = call("list_drops", json!({}));
    assert_eq!((&drops["count"], &drops["availableTlds"]), (&json!(4), &Value::Null), "{drops}");
    assert!(drops["drops"][0]["explanation"].is_string() && drops["drops"][0]["signals"].is_null());
    let all = call("list_drops", json!({"fields": "name,signals,availableTlds"}));
    assert_eq!(all["availableTlds"], json!(["com", "net"]), "{all}");
    assert!(all["drops"][0]["signals"].is_object(), "{all}");
    let tlds = call("list_tlds", json!({"limit": 1}));
    assert_eq!(
        (&tlds["count"], &tlds["total"], &tlds["tlds"][0]["tld"]),
        (&json!(1), &json!(2), &json!("com"))
    );
    let tlds = call("list_tlds", json!({"q": ".NE"}));
    assert_eq!((&tlds["total"], &tlds["tlds"][0]["tld"]), (&json!(1), &json!("net")), "{tlds}");
    // Numbers may have every form that JSON and agents use.
    for (limit, score) in [(json!(2), json!(1)), (json!("2"), json!("1")), (json!(2.0), json!(1.0))]
    {
        let found = call("list_drops", json!({"limit": limit, "min_dqs": score}));
        assert_eq!((&found["count"], &found["limit"]), (&json!(2), &json!(2)), "{found}");
    }
    let refused = call("list_drops", json!({"min_dqs": 60.5}));
    assert_eq!(refused["error"], "min_dqs: must be an integer from 0 to 100");
    let refused = call("list_drops", json!({"minDqs": 60}));
    assert_eq!(refused["error"], "unknown parameter \"minDqs\"; did you mean \"min_dqs\"?");
    assert_eq!(refused["code"], "unknown_parameter");
    let dossier = call("get_domain", json!({"name": "solarpanel.com"}));
    assert_eq!(dossier["note"], "name: this argument is called domain");
    assert_eq!(
        (&dossier["stage"], &dossier["releaseDate"]),
        (&json!("pending-delete"), &json!("2026-03-16")),
        "{dossier}"
    );
}

/// The sample has 26,000 drops with 900 suffixes. The limits are those of `data/docs/agents.md`.
#[test]
fn answers_about_the_sample_are_short_by_default() {
    let site = Site::new();
    let server = site.demo();
    let mut client = server.client_with(&server.printed("key "));
    let tools = result(&mut client, "tools/list", &json!({}));
    let bytes = tools.to_string().len();
    assert!(bytes <= 18_000, "tools/list: {bytes} bytes");
    let best = structured(&mut client, "list_drops", &json!({}));
    assert_eq!(best["count"], 20, "{best}");
    let row = best["drops"][0].as_object().expect("a row");
    let columns: Vec<_> = row.keys().map(String::as_str).collect();
    assert_eq!(columns, ["dqs", "explanation", "kind", "name", "releaseDate", "stage"]);
    let name = &row["name"];
    let all = structured(&mut client, "list_drops", &json!({"limit": 100, "fields": "name"}));
    let hundred: Vec<_> =
        all["drops"].as_array().expect("rows").iter().map(|row| row["name"].clone()).collect();
    for (tool, arguments) in [
        ("list_drops", json!({})),
        ("list_drops", json!({"fields": "name,signals,explanation,words,releaseAt,availableTlds"})),
        ("list_drops", json!({"facets": "tld,length,dqs"})),
        (
            "explain_filters",
            json!({"tld": "com", "min_dqs": 60, "digits": "none", "contains": "a"}),
        ),
        ("search_names", json!({"q": "a"})),
        ("get_domain", json!({"domain": name})),
        ("label_family", json!({"label": "sol"})),
        ("appraise", json!({"domains": hundred})),
        ("list_changes", json!({})),
        ("list_tlds", json!({})),
        ("list_watchlist", json!({})),
        ("watch", json!({"domains": hundred, "tags": ["agent"]})),
        ("unwatch", json!({"domain": name})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = result(&mut client, "tools/call", &params);
        assert_eq!(answer["isError"], false, "{answer}");
        let text = answer["content"][0]["text"].as_str().expect("text");
        assert!(text.len() <= 5_000, "{tool} {arguments}: {} bytes", text.len());
    }
    let scores = structured(&mut client, "appraise", &json!({"domains": hundred}));
    let more = scores["more"].as_str().expect("more rows");
    assert!(more.ends_with("more; pass limit=100"), "{more}");
    let scores = structured(&mut client, "appraise", &json!({"domains": hundred, "limit": 100}));
    assert_eq!(scores["appraisals"].as_array().map(Vec::len), Some(100));
}

#[test]
fn the_query_of_the_instructions_has_the_names_of_the_page_for_tomorrow() {
    let site = Site::new();
    let server = site.demo();
    let mut client = server.client_with(&server.printed("key "));
    let version = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let answer = result(&mut client, "initialize", &version)["instructions"].clone();
    let answer = answer.as_str().expect("text");
    let mut arguments = json!({"limit": 100, "fields": "name"});
    for pair in answer.split([' ', ',']).filter(|word| word.contains('=')) {
        let (name, value) = pair.split_once('=').expect("a pair");
        arguments[name] = value.into();
    }
    assert_eq!(arguments.as_object().map(|all| all.len()), Some(4), "{answer}");
    let mut listed: Vec<String> = Vec::new();
    loop {
        let page = structured(&mut client, "list_drops", &arguments);
        let rows = page["drops"].as_array().expect("rows");
        listed.extend(rows.iter().map(|row| row["name"].as_str().expect("text").to_owned()));
        match &page["nextCursor"] {
            Value::Null => break,
            next => arguments["cursor"] = next.clone(),
        }
    }
    let home = Page::read(client.get("/").text());
    let is_tab = |it: &Element| it.name == "a" && it.text.starts_with("Tomorrow ");
    let tab = home.all(is_tab).first().and_then(|tab| tab.get("href")).expect("the tab").to_owned();
    let mut shown: Vec<String> = Vec::new();
    loop {
        let page =
            Page::read(client.get(&format!("{tab}&limit=500&offset={}", shown.len())).text());
        let before = shown.len();
        shown.extend(names(&page));
        if shown.len() == before {
            break;
        }
    }
    assert!(listed.len() > 100, "{}", listed.len());
    assert_eq!(listed, shown);
    // A stage would lose some of them.
    let staged =
        json!({"release_from": "tomorrow", "release_to": "tomorrow", "stage": "pending-delete"});
    let explained = structured(&mut client, "explain_filters", &staged);
    let lost = explained["conditions"].as_array().expect("rows");
    let lost = lost.iter().find(|it| it["arguments"] == json!(["stage"])).expect("the stage");
    assert!(lost["leavesOut"].as_u64() > Some(0), "{explained}");
    assert!(explained["hints"][0].as_str().is_some_and(|it| it.contains("pending-delete days")));
}

#[test]
fn conditions_say_what_they_mean_and_which_names_they_leave_out() {
    let desk = Desk::new();
    let key = desk.key("mcp,read");
    let explain = |arguments: Value| desk.call(&key, "explain_filters", arguments);
    let answer = explain(json!({"tld": "net", "digits": "none", "release_to": "2026-03-17"}));
    assert_eq!(answer["total"], 1, "{answer}");
    let rows = answer["conditions"].as_array().expect("rows");
    let of = |argument: &str| {
        let found = rows.iter().find(|it| it["arguments"][0] == argument);
        found.unwrap_or_else(|| panic!("no {argument}: {answer}"))
    };
    assert_eq!(of("tld")["means"], "TLD net");
    assert_eq!(of("tld")["leavesOut"], 2);
    assert_eq!(of("tld")["examples"].as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(
        of("digits"),
        &json!({"arguments": ["digits"], "means": "no digits", "leavesOut": 0, "examples": []})
    );
    assert_eq!(of("release_from")["means"], "drops ≤ 17 Mar");
    assert_eq!(of("adult")["means"], "without adult names");
    assert_eq!(rows[0], *of("tld"));
    let answer = explain(json!({"stage": "redemption", "view": "today", "distance": 1}));
    let hints = ["`view` is ignored beside `stage`", "`distance` is ignored without `like`"];
    assert_eq!(answer["hints"], json!(hints), "{answer}");
    let refused = explain(json!({"min_dqs": 101}));
    assert_eq!(refused["error"], "min_dqs: must be an integer from 0 to 100");
    let key = desk.key("mcp,watchlist");
    let refused = desk.call(&key, "explain_filters", json!({}));
    assert_eq!(refused["code"], "insufficient_scope", "{refused}");
}

#[test]
fn refused_values_have_the_error_of_the_api() {
    let desk = Desk::new();
    let key = desk.key("mcp,read,watchlist");
    let mut client = desk.server.client_with(&key);
    let tools = result(&mut client, "tools/list", &json!({}));
    let mut refused = 0;
    for (tool, path) in [
        ("list_drops", "drops"),
        ("search_names", "search"),
        ("list_changes", "changes"),
        ("list_tlds", "tlds"),
        ("list_watchlist", "watchlist"),
    ] {
        let known = tools["tools"].as_array().expect("tools");
        let known = known.iter().find(|it| it["name"] == tool).expect("the tool");
        let arguments = known["inputSchema"]["properties"].as_object().expect("arguments");
        // A tool has a lower limit, and reads the columns of most lists itself.
        let checked = arguments.keys().filter(|name| !["limit", "fields"].contains(&name.as_str()));
        for name in checked {
            for wrong in
                ["", "!", "-1", "1.5", "a b,c", "99999999999", "xn--", "(", &"x".repeat(500)]
            {
                let by_tool = structured(&mut client, tool, &json!({name: wrong, "limit": 1}));
                let target = with_query(
                    &format!("/api/v1/{path}"),
                    &[("limit", "1".to_owned()), (name, wrong.to_owned())],
                );
                let by_path = client.get(&target).json();
                for member in ["error", "code", "parameter"] {
                    assert_eq!(by_tool[member], by_path[member], "{tool} {name}={wrong}");
                }
                refused += usize::from(by_path["error"].is_string());
            }
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn events_are_listed_by_kind_name_and_watchlist() {
    let desk = Desk::new();
    let key = desk.key("mcp,read,watchlist");
    let later = "domain,drop_date,release_date\nlunar.net,2026-03-14,2026-04-18\nlunar.org,2026-03-14,2026-04-18\n";
    let later = desk.site.write("later.csv", later);
    desk.site.ingest(&later, "2026-03-15T06:00:00Z");
    let call = |name: &str, arguments: Value| desk.call(&key, name, arguments);
    let page = wait::until_ok(Duration::from_secs(60), || {
        let page = call("list_changes", json!({"event": ["left-zone", "renewed"], "tld": "net"}));
        if page["data"][0].is_object() { Ok(page) } else { Err(page.to_string()) }
    });
    let row = &page["data"][0];
    assert_eq!(
        (&row["domain"], &row["event"]),
        (&json!("lunar.net"), &json!("left-zone")),
        "{page}"
    );
    let columns = ["day", "domain", "dqs", "event", "releaseDate", "verified"];
    assert!(row.as_object().expect("a row").keys().eq(columns), "{row}");
    let first = call("list_changes", json!({"limit": 1}));
    let next = &first["next"];
    assert_eq!(first["more"], format!("newer events follow; pass since={next}"), "{first}");
    let watched = || call("list_changes", json!({"watched": true, "domain": "lunar.net"}));
    assert_eq!(watched()["data"], json!([]));
    let added =
        call("watch", json!({"domains": "lunar.net, lunar.test, lunar.org", "max_bid_usd": "60"}));
    assert_eq!((&added["added"], &added["refused"]), (&json!(2), &json!(1)), "{added}");
    assert_eq!(added["results"][1]["outcome"], "refused", "{added}");
    let bid = call("list_watchlist", json!({"fields": "domain,maxBidUsd"}));
    assert_eq!(bid["watchlist"][0]["maxBidUsd"], 60, "{bid}");
    assert_eq!(watched()["data"][0]["domain"], "lunar.net");
    let refused = call("watch", json!({"domains": [], "tags": ["a"]}));
    assert_eq!(refused["error"], "domains: must hold 1 to 1000 names");
}

/// Exports of link tools are licensed to one person, so agents neither get nor find out what they say.
#[test]
fn agents_get_the_facts_that_no_vendor_licensed_to_one_person() {
    let desk = Desk::new();
    let key = desk.key("mcp,read,watchlist");
    let mut client = desk.server.client_with(&key);
    let kind = [("Content-Type", "text/csv")];
    let own = "Item,TrustFlow,CitationFlow\nsolarpanel.com,24,31\n";
    let added = client.send_with("POST", "/api/v1/facts", &kind, own.as_bytes());
    assert_eq!(added.status, 201, "{}", added.text());
    let own = "domain,mine.rank:int\nsolarpanel.com,7\n";
    let added = client.send_with("POST", "/api/v1/facts", &kind, own.as_bytes());
    assert_eq!(added.status, 201, "{}", added.text());
    let facts = desk.site.write("acme.csv", "domain,acme.rank:int\nsolarroof.net,5\n");
    desk.site.ok(&["facts", "add", facts.to_str().expect("UTF-8")]);
    let call = |name: &str, arguments: Value| desk.call(&key, name, arguments);
    wait::until_ok(Duration::from_secs(20), || {
        let found = call("list_drops", json!({"fact": "acme.rank:1..9", "facts": "acme.rank"}));
        match found["drops"][0]["facts"]["acme.rank"]["value"] == json!(5) {
            true => Ok(()),
            false => Err(found.to_string()),
        }
    });
    let mine =
        call("list_drops", json!({"fact": "mine.rank:7", "view": "all", "facts": "mine.rank"}));
    assert_eq!(mine["drops"][0]["facts"]["mine.rank"]["value"], 7, "{mine}");
    for arguments in [
        json!({"fact": "majestic.tf:1..99"}),
        json!({"has": "!majestic.tf"}),
        json!({"sort": "fact:majestic.tf"}),
        json!({"facts": "majestic.tf"}),
        json!({"facets": "fact:majestic.tf"}),
    ] {
        let refused = call("list_drops", arguments);
        let told = refused["error"].as_str().expect("an error");
        assert!(told.contains("has no fact majestic.tf"), "{told}");
        assert!(!told.contains("majestic.cf"), "{told}");
    }
    let dossier = call("get_domain", json!({"domain": "solarpanel.com"}));
    assert!(!dossier.to_string().contains("majestic"), "{dossier}");
    assert!(dossier.to_string().contains("mine"), "{dossier}");
    let own = client.get("/api/v1/domain/solarpanel.com").json();
    assert!(own["facts"].to_string().contains("majestic.cf"), "{own}");
}

#[test]
fn a_client_that_accepts_json_is_served() {
    let desk = Desk::new();
    let mut client = desk.server.client_with(&desk.key("mcp"));
    let body = tools_list().to_string();
    for accept in ["*/*", "application/json", "application/*, text/plain;q=0.1"] {
        for path in ["/mcp", "/mcp/"] {
            let headers = [("Content-Type", "application/json"), ("Accept", accept)];
            let answer = client.send_with("POST", path, &headers, body.as_bytes());
            assert_eq!(answer.status, 200, "{accept}: {}", answer.text());
        }
    }
    let headers = [("Content-Type", "application/json")];
    assert_eq!(client.send_with("POST", "/mcp", &headers, body.as_bytes()).status, 200);
    let headers = [("Content-Type", "application/json"), ("Accept", "text/html")];
    let refused = client.send_with("POST", "/mcp", &headers, body.as_bytes());
    let told = "Accept: must have application/json, which every response is";
    assert_eq!((refused.status, refused.json()["error"].as_str()), (400, Some(told)));
}

#[test]
fn a_body_that_is_not_one_message_returns_400() {
    let desk = Desk::new();
    let mut client = desk.server.client_with(&desk.key("mcp"));
    let mut send = |kind: &str, body: &str| {
        let headers = [("Content-Type", kind), ("Accept", "application/json, text/event-stream")];
        let refused = client.send_with("POST", "/mcp", &headers, body.as_bytes());
        (refused.status, refused.json()["error"].as_str().expect("text").to_owned())
    };
    let told = "body: must be one JSON-RPC message (no batches)".to_owned();
    for body in ["", "hello", "{}", "[]", &json!([tools_list()]).to_string()] {
        assert_eq!(send("application/json", body), (400, told.clone()), "{body}");
    }
    let told = "Content-Type: must be application/json, without an encoding".to_owned();
    assert_eq!(send("text/plain", "hello"), (415, told));
}

#[test]
fn the_library_logs_nothing_about_requests() {
    let desk = Desk::new();
    let key = desk.key("mcp");
    assert_eq!(desk.post(&key, &[], &tools_list()).status, 200);
    let log = desk.server.stop();
    assert!(log.contains(" INFO ") && !log.contains("Service initialized"), "{log}");
    assert!(!log.contains("input stream"), "{log}");
}

/// A proxy that adds a key; it ends on drop.
struct WithKey {
    process: Child,
    port: u16,
}

impl WithKey {
    fn start(key: &str) -> WithKey {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/with_key.js");
        let mut command = Command::new(tools::node());
        command.arg(script).env("DROPDEX_KEY", key).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("Node.js runs");
        let mut line = String::new();
        let mut printed = BufReader::new(process.stdout.take().expect("piped"));
        printed.read_line(&mut line).expect("a line");
        WithKey { process, port: line.trim().parse().expect("a port") }
    }

    fn lead_to(&mut self, server: &Server) {
        let to = self.process.stdin.as_mut().expect("piped");
        writeln!(to, "{}", server.address().port()).expect("the proxy reads it");
    }
}

impl Drop for WithKey {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The other scenarios of the suite need their own tools, prompts and resources.
#[test]
#[ignore = "needs what tests/tools full installs"]
fn the_conformance_suite_and_the_inspector_accept_the_endpoint() {
    let Desk { site, server } = Desk::new();
    server.stop();
    let key =
        site.ok(&["account", "key", "ann@example.com", "--name", "a", "--scopes", "mcp,read"]);
    let mut proxy = WithKey::start(key.trim());
    let settings = site.settings(&format!("public_url = \"http://localhost:{}\"\n", proxy.port));
    let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
    proxy.lead_to(&server);
    let url = format!("http://localhost:{}/mcp", proxy.port);
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(tools::full("node_modules/node/bin/node"));
        command.arg(tools::full(program)).args(arguments);
        let output = command.output().expect("Node.js runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    for (scenario, passed) in [
        ("server-initialize", "Passed: 1/1, 0 failed, 0 warnings"),
        ("ping", "Passed: 1/1, 0 failed, 0 warnings"),
        ("tools-list", "Passed: 1/1, 0 failed, 0 warnings"),
        ("dns-rebinding-protection", "Passed: 2/2, 0 failed, 0 warnings"),
    ] {
        let suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
        let (_, out, err) = run(suite, &["server", "--url", &url, "--scenario", scenario]);
        assert!(out.contains(passed) || err.contains(passed), "{scenario}: {out}\n{err}");
    }
    let inspector = "node_modules/.bin/mcp-inspector";
    let list = ["--cli", &url, "--transport", "http", "--method", "tools/list", "--strict"];
    let (is_ok, out, err) = run(inspector, &list);
    assert!(is_ok, "{err}");
    let tools: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(TOOLS), "{out}");
    // The inspector only warns of results that may be `null`; all arguments are portable.
    assert!(!err.contains("Path: inputSchema"), "{err}");
}
