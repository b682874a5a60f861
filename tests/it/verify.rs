//! Verification with registries that speak real RDAP over real HTTP, each with limits of its own:
//! covers the states that users see, the order and frequency of queries, and the state after a
//! restart. The DNS checks use a real name server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::knot::Knot;
use crate::common::rdap::{Limits, RdapServer, Says, bootstrap_of};
use crate::common::runs::{figure, say};
use crate::common::whois::WhoisServer;
use crate::common::{Client, Server, Site, wait};

const TODAY: &str = "2026-11-21";
/// Longer than any step takes, so a timeout means that the event never happens.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Queries that a crash may repeat: those in flight or not yet on disk.
const UNWRITTEN_MAX: usize = 200;

/// Accounts with the plan that these tests need.
const ROOM: &str = "[plans.api]\nrequests_per_day = 1000000\nwrites_per_minute = 1000000\nexternal_names = 10000\n";

#[track_caller]
fn until(what: &str, condition: impl FnMut() -> bool) {
    wait::until(WAIT_MAX, what, condition);
}

/// Returns settings with these servers and this rate of queries per second to each.
fn settings(site: &Site, bootstrap: &RdapServer, servers: &[&RdapServer], rate: u32) -> String {
    settings_with(site, bootstrap, servers, rate, "")
}

fn settings_with(
    site: &Site,
    bootstrap: &RdapServer,
    servers: &[&RdapServer],
    rate: u32,
    more: &str,
) -> String {
    let allow: BTreeSet<String> =
        servers.iter().chain([&bootstrap]).map(|server| server.allowed()).collect();
    site.settings(&format!(
        "{ROOM}[rdap]\nbootstrap = \"{}\"\nrequests_per_second = {rate}\nconcurrency = 2\n\
         allow = {}\n{more}",
        bootstrap.bootstrap_url(),
        json!(allow),
    ))
}

/// Returns settings with which no registry is queried.
fn quiet(site: &Site) -> String {
    site.settings(&format!("{ROOM}[rdap]\nenabled = false\n"))
}

fn serve(site: &Site, today: &str, settings: &str) -> Server {
    site.serve_with(&["--today", today, "--config", settings])
}

fn watch(client: &mut Client, name: &str) {
    let answer = client.send("POST", "/api/v1/watchlist", &json!({"domainName": name}));
    assert_eq!(answer.status, 201, "{name}: {}", answer.text());
}

/// Returns every entry of a watchlist by its name.
fn entries(client: &mut Client) -> HashMap<String, Value> {
    let mut all = HashMap::new();
    loop {
        let target = format!("/api/v1/watchlist?sort=name&limit=1000&offset={}", all.len());
        let page = client.get(&target).json();
        let page = page["watchlist"].as_array().expect("a list").clone();
        if page.is_empty() {
            return all;
        }
        all.extend(
            page.into_iter()
                .map(|entry| (entry["domain"].as_str().expect("a name").to_owned(), entry)),
        );
    }
}

fn state_of(entry: &Value) -> Option<&str> {
    entry["rdapObservedState"].as_str()
}

/// Returns the number of verified entries.
fn verified(client: &mut Client) -> usize {
    entries(client).values().filter(|entry| !entry["rdapVerifiedAt"].is_null()).count()
}

#[test]
fn watchlists_show_registry_states() {
    let (com, net, inside) = (RdapServer::start(), RdapServer::start(), RdapServer::start());
    com.publish_servers(&[(&["com"], &com), (&["net"], &net)]);
    let within = format!("{}domain/{{name}}", inside.base());
    let there = format!("{}domain/{{name}}", net.base());
    let here = format!("{}domain/{{name}}", com.base());
    net.say("moved.com", Says::held_since("2001-02-03"));
    let garbage = vec![0xff; 500];
    let huge = format!("{{\"x\":\"{}\"}}", "a".repeat(300_000)).into_bytes();
    let cases = [
        ("held.com", Says::held_since("2000-01-01"), Some("registered")),
        ("kept.com", Says::held_since("2000-01-01"), Some("renewed")),
        ("caught.com", Says::held_with("2026-11-20", &["addPeriod"]), Some("registered-again")),
        (
            "redeem.com",
            Says::held_with("2000-01-01", &["redemption period", "pending delete"]),
            Some("redemption"),
        ),
        (
            "restore.com",
            Says::held_with("2000-01-01", &["pending delete", "pending restore"]),
            Some("redemption"),
        ),
        ("going.com", Says::held_with("2000-01-01", &["pendingDelete"]), Some("pending-delete")),
        ("gone.com", Says::NotFound, Some("available")),
        ("moved.com", Says::Elsewhere(there), Some("registered")),
        ("wrong.com", Says::About("other.com".into()), Some("unknown")),
        ("garbage.com", Says::Body(garbage), Some("unknown")),
        ("huge.com", Says::Body(huge), Some("unknown")),
        ("packed.com", Says::Coded("gzip"), Some("registered")),
        ("brotli.com", Says::Coded("br"), Some("unknown")),
        // Neither a registry with RDAP nor a name server knows this name.
        ("nobody.de", Says::NotFound, Some("unknown")),
        ("circle.com", Says::Elsewhere(here), None),
        ("inside.com", Says::Elsewhere(within), None),
        ("broken.com", Says::Status(500), None),
        ("silent.com", Says::Nothing, None),
        ("slow.com", Says::Slowly, None),
    ];
    let site = Site::new();
    let dropped = ["kept", "caught", "redeem", "restore", "going", "gone"];
    let rows: String = dropped.iter().map(|label| format!("{label}.com,2026-10-20\n")).collect();
    let list = site.write("list.csv", format!("domain,drop_date\n{rows}"));
    site.ingest(&list, "2026-10-20T00:00:00Z");
    let key = site.account("one@example.com", "api");
    let server = serve(&site, TODAY, &settings(&site, &com, &[&com, &net], 100));
    let mut client = server.client_with(&key);
    for (name, says, _) in &cases {
        com.say(name, says.clone());
        watch(&mut client, name);
    }
    until("every name that can be verified is", || {
        let entries = entries(&mut client);
        cases.iter().all(|(name, _, state)| state.is_none() || state_of(&entries[*name]).is_some())
    });
    let shown = entries(&mut client);
    for (name, _, state) in &cases {
        assert_eq!(state_of(&shown[*name]), *state, "{name}");
        assert_eq!(shown[*name]["rdapVerifiedAt"].is_null(), state.is_none(), "{name}");
    }
    until("redirects are followed to their end", || com.asked_about("circle.com") == 4);
    assert_eq!(inside.asked(), 0, "it is not on the allow list");
    for name in ["inside.com", "broken.com", "silent.com"] {
        until("it was asked about", || com.asked_about(name) > 0);
        assert_eq!(com.asked_about(name), 1, "{name} is paused for minutes");
    }
    let summary = &client.get("/api/v1/watchlist").json()["summary"];
    assert_eq!(summary["total"], cases.len());
    assert_eq!(summary["renewed"], 2, "{summary}");
    assert_eq!(summary["checkable"], cases.len() - 1, "all but the .de");
    let csv = client.get("/api/export/watchlist");
    let row = csv.text().lines().find(|line| line.starts_with("caught.com,")).expect("a row");
    assert!(row.contains(",registered-again,2026-11-21T"), "{row}");
    let log = server.stop();
    assert!(!log.contains("panicked"), "{log}");
    assert!(log.contains("the server sent Content-Encoding: br"), "{log}");
}

/// Once a name dropped, its registry knows only the next registration.
#[test]
fn the_registration_of_the_life_that_ended_becomes_a_fact() {
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say("kept.com", Says::held_since("2001-02-03"));
    com.say("caught.com", Says::held_since("2026-11-20"));
    let site = Site::new();
    let list =
        site.write("list.csv", "domain,drop_date\nkept.com,2026-11-01\ncaught.com,2026-10-10\n");
    site.ingest(&list, "2026-11-01T00:00:00Z");
    let key = site.account("one@example.com", "api");
    let server = serve(&site, TODAY, &settings(&site, &com, &[&com], 100));
    let mut client = server.client_with(&key);
    ["kept.com", "caught.com"].into_iter().for_each(|name| watch(&mut client, name));
    until("both are verified", || verified(&mut client) == 2);
    server.stop();
    let server = serve(&site, TODAY, &quiet(&site));
    let mut client = server.client_with(&key);
    let facts = |name: &str, client: &mut Client| {
        client.get(&format!("/api/v1/domain/{name}")).json()["facts"].take()
    };
    let expected = json!([{
        "fact": "life.registered", "value": "2001-02-03", "asOf": TODAY, "source": "Registration",
        "attribution": null, "own": false, "beforeDrop": false,
    }]);
    assert_eq!(facts("kept.com", &mut client), expected);
    assert_eq!(facts("caught.com", &mut client), json!([]), "it is about the next life");
    server.stop();
    let members = format!(
        "{}\n[facts]\nof_members = false\n",
        std::fs::read_to_string(settings(&site, &com, &[&com], 100)).expect("settings")
    );
    let other = Site::new();
    other.ingest(&list, "2026-11-01T00:00:00Z");
    let key = other.account("one@example.com", "api");
    let server = serve(&other, TODAY, &other.settings(&members));
    let mut client = server.client_with(&key);
    watch(&mut client, "kept.com");
    until("it is verified", || verified(&mut client) == 1);
    server.stop();
    assert!(!other.data().join("facts").exists(), "it would show what a member watches");
}

/// Forms in which registered names have been taken for free ones, each under a suffix of its own, beside
/// forms that prove something.
#[test]
fn a_name_is_free_only_if_two_sources_agree() {
    const RESERVED: &str =
        "{\"errorCode\":404,\"title\":\"Not Found\",\"description\":[\"The name is reserved.\"]}";
    let reserved = Says::held_with("1990-01-01", &["reserved"]);
    // The suffix, what its server says about the name, the records of its zone, state and certainty.
    let cases = [
        ("com", Says::NotFound, Some(""), "available", true),
        ("dev", Says::NotFound, None, "available", false),
        // The zone answers for every name.
        ("shop", Says::NotFound, Some("* NS ns.elsewhere.example.\n"), "available", false),
        ("site", Says::NotFound, Some("* A 192.0.2.1\n"), "available", false),
        ("info", Says::NotFound, Some("some NS ns.elsewhere.example.\n"), "taken", true),
        ("net", Says::With(404, "<html>Not Found</html>"), Some(""), "unknown", false),
        ("app", Says::With(404, "404 page not found"), Some(""), "unknown", false),
        ("online", Says::With(404, RESERVED), Some(""), "reserved", true),
        ("xyz", reserved, Some(""), "reserved", true),
        // Its server knows no name of the suffix at all.
        ("org", Says::NotFound, Some(""), "unknown", false),
    ];
    let servers: Vec<RdapServer> = cases.iter().map(|_| RdapServer::start()).collect();
    let suffixes: Vec<[&str; 1]> = cases.iter().map(|case| [case.0]).collect();
    let services: Vec<(&[&str], &RdapServer)> =
        suffixes.iter().map(|suffix| &suffix[..]).zip(&servers).collect();
    servers[0].publish_servers(&services);
    let mut zones = Vec::new();
    for ((suffix, says, records, ..), server) in cases.iter().zip(&servers) {
        server.say(&format!("some.{suffix}"), says.clone());
        if *suffix == "org" {
            server.say("nic.org", Says::NotFound);
        }
        zones.extend(
            records.map(|records| (*suffix, Knot::start_zone(&format!("{suffix}."), records))),
        );
    }
    let lines = zones.iter().map(|(suffix, knot)| format!("{suffix} = [\"{}\"]\n", knot.address()));
    let dns = format!("[dns.zones]\n{}", lines.collect::<String>());
    let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
    let key = site.account("one@example.com", "api");
    let all: Vec<&RdapServer> = servers.iter().collect();
    let server = serve(&site, TODAY, &settings_with(&site, &servers[0], &all, 100, &dns));
    let mut client = server.client_with(&key);
    cases.iter().for_each(|(suffix, ..)| watch(&mut client, &format!("some.{suffix}")));
    until("every name has a state", || verified(&mut client) == cases.len());
    let shown = entries(&mut client);
    for ((suffix, _, _, state, is_verified), server) in cases.iter().zip(&servers) {
        let availability = &shown[&format!("some.{suffix}")]["availability"];
        assert_eq!(availability["state"], *state, "{suffix}: {availability}");
        assert_eq!(availability["verified"], *is_verified, "{suffix}: {availability}");
        assert!(server.controls() <= 1, "{suffix}: one control a day");
    }
    assert_eq!(servers[0].controls(), 1);
    let log = server.stop();
    assert!(log.contains("404s of an RDAP server do not count"), "{log}");
}

/// A registry may send clients on to registrars, whose servers know nothing of other names.
#[test]
fn a_server_that_a_redirect_leads_to_needs_its_own_control() {
    let (com, other) = (RdapServer::start(), RdapServer::start());
    com.publish_servers(&[(&["com"], &com)]);
    com.say("moved.com", Says::Elsewhere(format!("{}domain/{{name}}", other.base())));
    other.say_otherwise(Says::NotFound);
    let zone = Knot::start_zone("com.", "");
    let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
    let key = site.account("one@example.com", "api");
    let dns = format!("[dns.zones]\ncom = [\"{}\"]\n", zone.address());
    let server = serve(&site, TODAY, &settings_with(&site, &com, &[&com, &other], 100, &dns));
    let mut client = server.client_with(&key);
    watch(&mut client, "moved.com");
    until("it has a state", || verified(&mut client) == 1);
    let availability = &entries(&mut client)["moved.com"]["availability"];
    assert_eq!(availability["state"], "unknown", "{availability}");
    assert_eq!((com.controls(), other.controls()), (1, 0), "the registry is asked for the control");
    server.stop();
}

/// A program asks about names that nobody watches, and follows their results.
#[test]
fn names_are_checked_on_request() {
    let (com, net) = (RdapServer::start(), RdapServer::start());
    com.publish_servers(&[(&["com"], &com), (&["net"], &net)]);
    com.say("held.com", Says::held_since("2000-01-01"));
    net.say_otherwise(Says::Status(500));
    com.say_otherwise(Says::NotFound);
    let zone = Knot::start_zone("com.", "held NS ns.elsewhere.example.\n");
    let dns = format!("[dns.zones]\ncom = [\"{}\"]\n", zone.address());
    let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
    let key = site.account("one@example.com", "api");
    let server = serve(&site, TODAY, &settings_with(&site, &com, &[&com, &net], 100, &dns));
    let mut client = server.client_with(&key);
    let check = |client: &mut Client, names: &[&str]| {
        client.send("POST", "/api/v1/check", &json!({"domains": names})).json()
    };
    let names = ["held.com", "https://free.com/", "no name", "broken.net"];
    let first = check(&mut client, &names);
    assert_eq!((&first["count"], &first["queued"]), (&json!(4), &json!(3)), "{first}");
    assert_eq!(first["checks"][0]["outcome"], "queued");
    assert_eq!(first["checks"][2]["outcome"], "refused");
    assert!(first["checks"][2]["error"].is_string(), "{first}");
    until("all have results", || check(&mut client, &names)["queued"] == 0);
    let checks = check(&mut client, &names)["checks"].take();
    assert_eq!(
        (&checks[0]["domain"], &checks[0]["outcome"]),
        (&json!("held.com"), &json!("checked"))
    );
    assert_eq!(checks[0]["availability"]["state"], "registered");
    let free = &checks[1]["availability"];
    assert_eq!((&free["state"], &free["verified"]), (&json!("available"), &json!(true)), "{free}");
    let said = |source, answer| json!({"source": source, "answer": answer});
    let evidence =
        [said("rdap", "rdap-none"), said("dns", "not-delegated"), said("rdap", "control")];
    assert_eq!(free["evidence"], json!(evidence));
    assert_eq!(
        (&checks[3]["outcome"], &checks[3]["availability"]),
        (&json!("failed"), &json!(null))
    );
    assert_eq!((com.asked(), net.asked()), (2, 1), "each was asked about once");

    // The results of a stream come one by one.
    let sent = json!({"domains": ["held.com", "new.com", "no name"]}).to_string();
    let headers = [("Content-Type", "application/json"), ("Accept", "text/event-stream")];
    let stream = client.send_with("POST", "/api/v1/check", &headers, sent.as_bytes());
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let text = stream.text();
    let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let events: Vec<Value> =
        events.into_iter().map(|data| serde_json::from_str(data).expect("JSON")).collect();
    let outcomes: Vec<&Value> = events.iter().map(|event| &event["outcome"]).collect();
    assert_eq!(outcomes[..3], ["checked", "refused", "checked"], "{text}");
    assert_eq!(events[2]["domain"], "new.com");
    assert!(text.ends_with("event: done\ndata: {\"queued\":0}\n\n"), "{text}");

    for wrong in [json!({}), json!({"domains": []}), json!({"domains": vec!["a.com"; 101]})] {
        assert_eq!(client.send("POST", "/api/v1/check", &wrong).status, 400, "{wrong}");
    }
    // One hour has 100 checks, of which four are used up.
    let many: Vec<String> = (0..100).map(|n| format!("name-{n}.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let last = check(&mut client, &many);
    let rows = last["checks"].as_array().expect("rows");
    let refused = rows.iter().filter(|row| row["outcome"] == "refused").count();
    assert_eq!(refused, 4, "{last}");
    server.stop();
}

/// Suffixes without an RDAP server have a second source, if the operator turns it on.
#[test]
fn whois_confirms_what_the_dns_suspects() {
    let (se, nu) = (WhoisServer::start(), WhoisServer::start());
    se.say("free.se", "# Copyright\ndomain \"free.se\" not found.\n");
    se.say("held.se", "state: active\ndomain: held.se\nholder: abc0001\ncreated: 2001-02-03\n");
    nu.say("busy.nu", "Too many requests...\ndomain \"busy.nu\" not found.\n");
    nu.say("other.nu", "Too many requests...\ndomain \"other.nu\" not found.\n");
    let zones = [Knot::start_zone("se.", ""), Knot::start_zone("nu.", "")];
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
    let key = site.account("one@example.com", "api");
    let more = format!(
        "[dns.zones]\nse = [\"{}\"]\nnu = [\"{}\"]\n[whois]\nenabled = true\nallow = {}\n\
         [whois.servers]\nse = \"{}\"\nnu = \"{}\"\n",
        zones[0].address(),
        zones[1].address(),
        json!([se.address(), nu.address()].map(|at| format!("127.0.0.1/32:{}", at.port()))),
        se.address(),
        nu.address(),
    );
    let server = serve(&site, TODAY, &settings_with(&site, &com, &[&com], 100, &more));
    let mut client = server.client_with(&key);
    let names = ["free.se", "busy.nu", "held.se", "other.nu"];
    let mut check = || client.send("POST", "/api/v1/check", &json!({"domains": names})).json();
    until("all have results", || check()["queued"] == 0);
    let checks = check()["checks"].take();
    let state = |at: usize| {
        let availability = &checks[at]["availability"];
        (availability["state"].as_str().expect("a state"), availability["verified"] == true)
    };
    assert_eq!(state(0), ("available", true), "{checks}");
    assert_eq!(state(1), ("unknown", false), "{checks}");
    assert_eq!(state(2), ("registered", true), "{checks}");
    assert_eq!(state(3), ("unknown", false), "{checks}");
    // They are asked in the order in which the answers of the DNS came.
    let mut asked = se.asked();
    asked.sort();
    assert_eq!(asked, ["free.se\r\n", "held.se\r\n"]);
    assert_eq!(nu.asked().len(), 1, "it is not asked again that day: {:?}", nu.asked());
    server.stop();
}

/// A client that is too fast is told so in words, and with other statuses than 429.
#[test]
fn words_of_throttling_pause_the_server() {
    for says in [
        Says::With(403, "Number of allowed queries exceeded."),
        Says::With(422, "Your access is too fast, please try again later."),
    ] {
        let com = RdapServer::start();
        com.publish_servers(&[(&["com"], &com)]);
        com.say_otherwise(says);
        let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
        let key = site.account("one@example.com", "api");
        let server = serve(&site, TODAY, &settings(&site, &com, &[&com], 100));
        let mut client = server.client_with(&key);
        (0..10).for_each(|n| watch(&mut client, &format!("a{n}.com")));
        until("it was asked", || com.asked() > 0);
        until("it is paused", || server.log().contains("RDAP server paused"));
        assert!(com.asked() <= 2, "asked {} times", com.asked());
        assert_eq!(verified(&mut client), 0, "nothing is known about the names");
        server.stop();
    }
}

/// The server of each of these names records the times of queries.
#[test]
fn a_rate_limited_registry_is_paused_while_others_continue() {
    for status in [429, 503] {
        let (com, net) = (RdapServer::start(), RdapServer::start());
        com.publish_servers(&[(&["com"], &com), (&["net"], &net)]);
        com.say_otherwise(Says::NotNow { status, retry_after_s: Some(3) });
        net.say_otherwise(Says::held_since("2000-01-01"));
        let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
        let key = site.account("one@example.com", "api");
        let server = serve(&site, TODAY, &quiet(&site));
        let mut client = server.client_with(&key);
        for n in 0..10 {
            watch(&mut client, &format!("a{n}.com"));
            watch(&mut client, &format!("a{n}.net"));
        }
        server.stop();
        let server = serve(&site, TODAY, &settings(&site, &com, &[&com, &net], 100));
        let mut client = server.client_with(&key);
        until("the first refusal", || com.asked() > 0);
        com.say_otherwise(Says::held_since("2000-01-01"));
        until("every name is verified", || verified(&mut client) == 20);
        let log = com.log();
        let pause = Duration::from_secs(3);
        let (at_first, later): (Vec<_>, Vec<_>) =
            log.iter().partition(|asked| asked.at < log[0].at + pause);
        assert!(at_first.len() <= 2, "{} queries during its pause", at_first.len());
        let last_of_net = net.log().last().expect("it was asked").at;
        assert!(last_of_net < later[0].at, "the other server waited as well");
        server.stop();
    }
}

#[test]
fn a_server_that_is_down_is_not_tried_with_every_name() {
    let (com, net) = (RdapServer::start(), RdapServer::start());
    com.publish_servers(&[(&["com"], &com), (&["net"], &net)]);
    com.say_otherwise(Says::Nothing);
    net.say_otherwise(Says::NotFound);
    let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
    let key = site.account("one@example.com", "api");
    let server = serve(&site, TODAY, &settings(&site, &com, &[&com, &net], 100));
    let mut client = server.client_with(&key);
    for n in 0..30 {
        watch(&mut client, &format!("a{n}.com"));
        watch(&mut client, &format!("a{n}.net"));
    }
    until("the other server's names are verified", || verified(&mut client) == 30);
    until("it counts as down", || com.asked() >= 5);
    // There are five failures in a row, and one query that was in flight with the fifth.
    assert!(com.asked() <= 6, "asked {} times", com.asked());
    server.stop();
}

#[test]
fn a_shutdown_loses_no_response() {
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say_otherwise(Says::held_since("2000-01-01"));
    com.limit(Limits { in_a_second: 1_000, at_once: 2, think: Duration::from_millis(3) });
    let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
    let key = site.account("one@example.com", "api");
    let settings = settings(&site, &com, &[&com], 300);
    let server = serve(&site, TODAY, &settings);
    let mut client = server.client_with(&key);
    for n in 0..150 {
        watch(&mut client, &format!("a{n}.com"));
    }
    until("it is at work", || com.asked() > 10);
    server.stop();
    let asked = com.asked();
    let server = serve(&site, TODAY, &quiet(&site));
    assert_eq!(verified(&mut server.client_with(&key)), asked);
    assert_eq!(com.asked(), asked, "switched off, no registry is asked");
    assert_eq!(com.exceeded(), 0);
}

/// The bootstrap registry is requested once a day, with the ETag of the stored copy; a new registry is
/// used at once, but one that lost half of its entries is not.
#[test]
fn the_bootstrap_registry_is_kept_and_requested_with_its_etag() {
    let (com, other) = (RdapServer::start(), RdapServer::start());
    let services: [(&[&str], &RdapServer); 3] =
        [(&["com"], &com), (&["net"], &com), (&["org", "info"], &com)];
    com.publish(bootstrap_of(&services, "2026-10-01T00:00:00Z"), "\"one\"");
    com.say_otherwise(Says::NotFound);
    other.say_otherwise(Says::NotFound);
    let site = Site::with_names(["x.com".to_owned()].into_iter(), TODAY);
    let key = site.account("one@example.com", "api");
    let settings = settings(&site, &com, &[&com, &other], 100);
    let run = |today: &str, name: &str| {
        let server = serve(&site, today, &settings);
        let mut client = server.client_with(&key);
        watch(&mut client, name);
        until(&format!("{name} is verified"), || state_of(&entries(&mut client)[name]).is_some());
        let checkable = client.get("/api/v1/watchlist").json()["summary"]["checkable"].clone();
        let log = server.stop();
        (checkable.as_u64().expect("a number"), log)
    };
    run("2026-11-21", "a.com");
    assert_eq!(com.bootstrap_log(), [(None, 200)]);
    run("2026-11-21", "b.com");
    assert_eq!(com.bootstrap_log().len(), 1, "not again on the same day");
    let tag = || Some("\"one\"".to_owned());
    run("2026-11-23", "c.com");
    assert_eq!(com.bootstrap_log()[1..], [(tag(), 304)]);
    // The response has fewer than half of the entries, is garbage, or is an older version; the
    // stored copy stays in use.
    let lost: [(&[&str], &RdapServer); 1] = [(&["com"], &other)];
    for (day, body) in [
        ("2026-11-25", bootstrap_of(&lost, "2026-11-01T00:00:00Z")),
        ("2026-11-27", "<html>".to_owned()),
        ("2026-11-29", bootstrap_of(&services, "2026-09-01T00:00:00Z")),
    ] {
        com.publish(body, "\"bad\"");
        let (_, log) = run(day, &format!("d{day}.com"));
        assert!(log.contains("was not refreshed"), "{log}");
    }
    assert_eq!(other.asked(), 0);
    assert_eq!(com.bootstrap_log()[2..], [(tag(), 200), (tag(), 200), (tag(), 200)]);
    // A newer one is used.
    let moved: [(&[&str], &RdapServer); 2] = [(&["com", "dev"], &other), (&["net"], &com)];
    com.publish(bootstrap_of(&moved, "2026-11-30T00:00:00Z"), "\"two\"");
    let asked = com.asked();
    let (checkable, _) = run("2026-12-01", "e.com");
    assert_eq!((com.asked(), other.asked() > 0), (asked, true));
    assert_eq!(checkable, 7);
    run("2026-12-01", "f.com");
    // A damaged file is logged, and fetched again.
    std::fs::write(site.data().join("rdap-bootstrap.json"), "{").expect("writable");
    let (_, log) = run("2026-12-01", "g.com");
    assert!(log.contains("is not used"), "{log}");
    assert_eq!(com.bootstrap_log().last(), Some(&(None, 200)));
}

/// Registered names are looked up in the DNS. The registry of these names is queried only at long
/// intervals, or when the DNS no longer delegates them. Names without an RDAP server are only looked up
/// in the DNS.
#[test]
fn the_dns_replaces_queries_of_registries() {
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say_otherwise(Says::held_since("2000-01-01"));
    let held: Vec<String> = (0..24).map(|n| format!("held-{n}.com")).collect();
    let lost: Vec<String> = (0..4).map(|n| format!("lost-{n}.com")).collect();
    let zone = |names: &[String], tld: &str| {
        let records = names.iter().fold(String::new(), |zone, name| {
            let label = name.strip_suffix(tld).expect("a name of the zone");
            format!("{zone}{label} NS ns.elsewhere.example.\n")
        });
        Knot::start_zone(&format!("{}.", &tld[1..]), &records)
    };
    let (knot_com, knot_de) = (zone(&held, ".com"), zone(&["there.de".to_owned()], ".de"));
    let site = Site::with_names(held.iter().chain(&lost).cloned(), "2026-10-20");
    let key = site.account("one@example.com", "api");
    let (com_at, de_at) = (knot_com.address(), knot_de.address());
    let dns = format!("[dns.zones]\ncom = [\"{com_at}\"]\nde = [\"{de_at}\"]\n");
    let settings = settings_with(&site, &com, &[&com], 200, &dns);
    let com_names = || held.iter().chain(&lost).map(String::as_str);
    let names: Vec<&str> = com_names().chain(["there.de", "nowhere.de"]).collect();
    let run = |today: &str, wanted: &[&str]| {
        let server = serve(&site, today, &settings);
        let mut client = server.client_with(&key);
        if verified(&mut client) == 0 {
            names.iter().for_each(|name| watch(&mut client, name));
        }
        until(&format!("all are verified on {today}"), || {
            let entries = entries(&mut client);
            wanted.iter().all(|name| {
                let at = entries[*name]["rdapVerifiedAt"].as_str().unwrap_or_default();
                at.starts_with(today)
            })
        });
        let shown = entries(&mut client);
        server.stop();
        shown
    };
    let shown = run(TODAY, &names);
    assert!(com_names().all(|name| state_of(&shown[name]) == Some("renewed")), "{shown:?}");
    assert_eq!(state_of(&shown["there.de"]), Some("taken"));
    assert_eq!(state_of(&shown["nowhere.de"]), Some("unknown"));
    assert_eq!(com.asked(), 28, "nothing was known yet");

    lost.iter().for_each(|name| com.say(name, Says::NotFound));
    let shown = run("2026-11-29", &names);
    assert!(held.iter().all(|name| state_of(&shown[name]) == Some("renewed")), "{shown:?}");
    assert!(lost.iter().all(|name| state_of(&shown[name]) == Some("available")), "{shown:?}");
    assert!(lost.iter().all(|name| com.asked_about(name) == 2));
    let asked = held.iter().filter(|name| com.asked_about(name) == 2).count();
    assert!((1..held.len()).contains(&asked), "{asked} of {} queried", held.len());
    say(&format!("{} of {} held names were spared after eight days", 24 - asked, held.len()));

    // Without the name servers, .com names that are held are queried again. Names that two sources called
    // free stay so, and .de names are not verified.
    drop((knot_com, knot_de));
    let held_names: Vec<&str> = held.iter().map(String::as_str).collect();
    let shown = run("2026-12-07", &held_names);
    assert!(held.iter().all(|name| state_of(&shown[name]) == Some("renewed")), "{shown:?}");
    for name in lost.iter().map(String::as_str).chain(["there.de"]) {
        let at = shown[name]["rdapVerifiedAt"].as_str().expect("it was verified");
        assert!(at.starts_with("2026-11-29"), "{name}: {at}");
    }
    assert!(lost.iter().all(|name| state_of(&shown[name]) == Some("available")), "{shown:?}");
}

/// Names released on a day are drawn, asked about after the watched names, and counted under the label `sample`.
#[test]
fn names_drawn_at_random_are_asked_about_and_counted() {
    const DRAWN: usize = 60;
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say_otherwise(Says::NotFound);
    let zone = Knot::start_zone("com.", "");
    let site = Site::new();
    // The first 30 of each hundred are registered on the day after their release, and the next ten renewed.
    let released = |day: &str, next: &str, count: usize| {
        let name = |at: usize| format!("drop-{}-{at}.com", day.replace('-', ""));
        for at in 0..count {
            match at % 100 {
                0..30 => com.say(&name(at), Says::held_since(next)),
                30..40 => com.say(&name(at), Says::held_since("2001-02-03")),
                _ => {}
            }
        }
        (0..count).map(|at| format!("{},2026-10-15,{day}\n", name(at))).collect::<String>()
    };
    let list = |rows: &str| format!("domain,drop_date,release_date\n{rows}");
    let rows =
        released("2026-11-19", "2026-11-20", 100) + &released("2026-11-20", "2026-11-21", 100);
    site.ingest(&site.write("first.csv", list(&rows)), "2026-10-20T00:00:00Z");
    let key = site.account("one@example.com", "api");
    let watched: Vec<String> = (0..20).map(|at| format!("watched-{at}.com")).collect();
    let server = serve(&site, TODAY, &quiet(&site));
    let mut client = server.client_with(&key);
    watched.iter().for_each(|name| watch(&mut client, name));
    server.stop();

    let more = format!("[sample]\nenabled = true\n[dns.zones]\ncom = [\"{}\"]\n", zone.address());
    let settings = settings_with(&site, &com, &[&com], 400, &more);
    let asked = |day: &str| {
        let day = format!("drop-{}-", day.replace('-', ""));
        com.log().iter().filter(|asked| asked.name.starts_with(&day)).count()
    };
    let row = |client: &mut Client, target: &str| {
        let rows = client.get(target).json()["rows"].take();
        let rows = rows.as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["label"] == "sample")
    };
    let server = serve(&site, TODAY, &settings);
    until("the names of the first day are asked about", || asked("2026-11-19") >= DRAWN);
    // Two queries that are under way at once may arrive in either order.
    let first: Vec<String> = com.log().into_iter().map(|asked| asked.name).take(22).collect();
    assert!(watched.iter().all(|name| first.contains(name)), "watched names first: {first:?}");
    let mut client = server.client_with(&key);
    assert_eq!(row(&mut client, "/api/v1/outcomes?tld=com"), None, "60 names are too few");
    assert_eq!(asked("2026-11-20"), 0, "the day after the release is not over");
    server.stop();

    // The second day was drawn as well, before this list.
    let late: String =
        (0..500).map(|at| format!("late-{at}.com,2026-10-15,2026-11-20\n")).collect();
    site.ingest(&site.write("late.csv", list(&late)), "2026-11-21T12:00:00Z");
    let server = serve(&site, "2026-11-22", &settings);
    let mut client = server.client_with(&key);
    let is_done = |row: &Value| row["coverage"] == 1.0;
    until("every name has an answer", || {
        row(&mut client, "/api/v1/outcomes?tld=com").as_ref().is_some_and(is_done)
    });
    let log = com.log();
    assert_eq!((asked("2026-11-19"), asked("2026-11-20")), (DRAWN, DRAWN));
    assert!(!log.iter().any(|asked| asked.name.starts_with("late-")), "the draw is fixed");
    let place = |name: &str| name.trim_end_matches(".com").rsplit('-').next()?.parse::<u64>().ok();
    let places: Vec<u64> = log
        .iter()
        .filter(|it| it.name.starts_with("drop-"))
        .filter_map(|it| place(&it.name))
        .collect();
    let (taken, kept) = (
        places.iter().filter(|&&at| at < 30).count(),
        places.iter().filter(|&&at| (30..40).contains(&at)).count(),
    );
    let shown = row(&mut client, "/api/v1/outcomes?tld=com").expect("a row");
    let day = &shown["within"]["1"];
    assert_eq!(
        (&day["n"], &day["count"], &day["unanswered"], &day["isRange"]),
        (&json!(2 * DRAWN - kept), &json!(taken), &json!(0), &json!(false)),
        "{shown}"
    );
    assert_eq!(
        (&shown["band"], &shown["from"], &shown["to"]),
        (&json!(null), &json!("2026-11-19"), &json!("2026-11-20"))
    );
    assert!(shown["within"]["7"].is_null(), "{shown}");
    let fallback = row(&mut client, "/api/v1/outcomes?tld=com&band=90-100").expect("a row");
    assert_eq!((&fallback["fallback"], &fallback["n"]), (&json!("band"), &day["n"]));
    assert_eq!(row(&mut client, "/api/v1/outcomes?tld=com&horizon=400"), None);
    assert_eq!(row(&mut client, "/api/v1/outcomes?tld=com&asOf=2026-11-21"), None, "no history");
    let page = client.get("/outcomes").text().to_owned();
    assert!(page.contains(".com, random sample"), "{page}");
    let log = server.stop();
    assert!(!log.contains("panicked"), "{log}");

    // A week later, registered names are not asked about again.
    let server = serve(&site, "2026-11-28", &settings);
    let mut client = server.client_with(&key);
    until("the other names are asked again", || {
        let shown = row(&mut client, "/api/v1/outcomes?tld=com&horizon=7");
        shown.as_ref().is_some_and(is_done)
    });
    let shown = row(&mut client, "/api/v1/outcomes?tld=com").expect("a row");
    assert_eq!(shown["within"]["7"]["count"], json!(taken), "{shown}");
    server.stop();
}

/// A name of the large run.
struct Watched {
    name: String,
    owner: usize,
    /// 0: not in the index; 1: near its release; 2: any other name.
    urgency: usize,
    /// Days to the release, for names near it.
    days: i32,
}

/// Number of accounts in the large run; the last one watches only [`FEW`] names of each urgency.
const ACCOUNTS: usize = 4;
const FEW: usize = 3;

fn names(count: usize) -> Vec<Watched> {
    let small = ACCOUNTS - 1;
    let name = |n: usize, owner: usize| {
        let urgency = n % 3;
        let days = (n / 3 % 5) as i32;
        Watched { name: format!("name-{owner}-{n}.com"), owner, urgency, days }
    };
    let large = (0..count - 3 * FEW).map(|n| name(n, n / 3 % small));
    large.chain((0..3 * FEW).map(|n| name(count + n, small))).collect()
}

/// Adds the names to their owners' watchlists, several at a time so that they share syncs.
fn watch_all(server: &Server, keys: &[String], names: &[Watched]) {
    const AT_ONCE: usize = 16;
    std::thread::scope(|scope| {
        for part in names.chunks(names.len().div_ceil(AT_ONCE)) {
            let mut clients: Vec<Client> = keys.iter().map(|key| server.client_with(key)).collect();
            scope.spawn(move || {
                for watched in part {
                    watch(&mut clients[watched.owner], &watched.name);
                }
            });
        }
    });
}

/// 10,000 watched names of four accounts and one server with limits of its own. The limits are never
/// exceeded, names are queried in order of urgency with accounts in turns, and a restart after SIGKILL
/// resumes where the previous run ended.
#[test]
fn thousands_of_names_are_verified_in_order_within_limits_and_over_a_crash() {
    const RATE: u32 = 400;
    let names = names(figure(1_200, 10_000));
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say_otherwise(Says::held_since("2000-01-01"));
    // The bound is the rate, plus one query for each end of the second and one that was late, plus
    // the queries in flight, whose time of arrival varies.
    let limits =
        Limits { in_a_second: RATE as usize + 4, at_once: 2, think: Duration::from_millis(1) };
    com.limit(limits);
    let site = Site::new();
    let today: chrono::NaiveDate = TODAY.parse().expect("a date");
    let drop_date = |watched: &Watched| match watched.urgency {
        1 => today + chrono::Days::new(watched.days as u64) - chrono::Days::new(35),
        _ => today - chrono::Days::new(3),
    };
    let listed = names.iter().filter(|watched| watched.urgency > 0);
    let rows: String =
        listed.map(|watched| format!("{},{}\n", watched.name, drop_date(watched))).collect();
    let list = site.write("list.csv", format!("domain,drop_date\n{rows}"));
    site.ingest(&list, "2026-11-21T00:00:00Z");
    let keys: Vec<String> =
        (0..ACCOUNTS).map(|n| site.account(&format!("a{n}@example.com"), "api")).collect();
    let server = serve(&site, TODAY, &quiet(&site));
    watch_all(&server, &keys, &names);
    server.stop();
    assert_eq!(com.asked(), 0);
    let records_before = records(&site);

    let settings = settings(&site, &com, &[&com], RATE);
    let begun = Instant::now();
    let server = serve(&site, TODAY, &settings);
    until("half of it is done", || com.asked() >= names.len() / 2);
    server.kill();
    // Requests in flight complete.
    std::thread::sleep(Duration::from_millis(200));
    let before = com.log();
    let server = serve(&site, TODAY, &settings);
    let mut clients: Vec<Client> = keys.iter().map(|key| server.client_with(key)).collect();
    until("every name is verified", || {
        let all: BTreeSet<String> = com.log().into_iter().map(|asked| asked.name).collect();
        all.len() == names.len() && clients.iter_mut().map(verified).sum::<usize>() == names.len()
    });
    let took = begun.elapsed();
    server.stop();
    let all = com.log();
    assert_eq!(com.exceeded(), 0, "queries beyond the server's limits");
    let written = records(&site) - records_before;
    assert!(written <= names.len() / 10, "{written} records for {} names", names.len());
    let (first, second) = all.split_at(before.len());
    let again = asked_again(first, second);
    let by_name: HashMap<&str, &Watched> =
        names.iter().map(|watched| (watched.name.as_str(), watched)).collect();
    for log in [first, second] {
        let log: Vec<&Watched> = log.iter().map(|asked| by_name[asked.name.as_str()]).collect();
        assert_in_order(&log);
    }
    assert_fair(&first.iter().map(|asked| by_name[asked.name.as_str()]).collect::<Vec<_>>());
    say(&format!(
        "{} names of {ACCOUNTS} accounts, at most {RATE} a second, 2 at once: none beyond; killed \
         after {}, {again} of them asked again; {written} records; {took:.0?} in all",
        names.len(),
        first.len(),
    ));
}

/// Returns the number of records in the journal; observations are written in groups.
fn records(site: &Site) -> usize {
    let stats: Value = serde_json::from_str(&site.ok(&["journal", "stats"])).expect("JSON");
    stats["records"].as_u64().expect("a number") as usize
}

/// Checks that each run queries every name once, and repeats only those that were not on disk when the
/// first one was killed.
fn asked_again(
    first: &[crate::common::rdap::Asked],
    second: &[crate::common::rdap::Asked],
) -> usize {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, asked) in first.iter().enumerate() {
        assert_eq!(places.insert(&asked.name, place), None, "{} twice", asked.name);
    }
    let mut seen = BTreeSet::new();
    let mut again = 0;
    for asked in second {
        assert!(seen.insert(&asked.name), "{} twice", asked.name);
        if let Some(place) = places.get(asked.name.as_str()) {
            again += 1;
            // Responses arrive in a different order than queries, displaced by up to the number of
            // queries in flight.
            assert!(first.len() - place <= UNWRITTEN_MAX + 2, "{} was on disk", asked.name);
        }
    }
    assert!(again <= UNWRITTEN_MAX, "{again} again");
    again
}

/// Checks that names come class by class, and each account's names within a class by their release. Two
/// queries are in flight at once, and one may be delayed while several others overtake it, so a few may
/// come late.
fn assert_in_order(log: &[&Watched]) {
    let sorted_but_for_a_few = |keys: &[usize], what: &str| {
        let mut highest = 0;
        let is_late = |key: &&usize| {
            highest = highest.max(**key);
            **key < highest
        };
        let late = keys.iter().filter(is_late).count();
        assert!(late <= 5, "{what}: {late} of {} came late: {keys:?}", keys.len());
    };
    let classes: Vec<usize> = log.iter().map(|watched| watched.urgency).collect();
    sorted_but_for_a_few(&classes, "urgency");
    for owner in 0..ACCOUNTS {
        let near = log.iter().filter(|it| it.urgency == 1 && it.owner == owner);
        let days: Vec<usize> = near.map(|it| it.days as usize).collect();
        sorted_but_for_a_few(&days, "days to release");
    }
}

/// Checks that the account with few names had its turns as often as the others.
fn assert_fair(log: &[&Watched]) {
    let small = ACCOUNTS - 1;
    let own = log.iter().enumerate().filter(|(_, it)| it.urgency == 0 && it.owner == small);
    let places: Vec<usize> = own.map(|(place, _)| place).collect();
    assert_eq!(places.len(), FEW);
    let late = places.iter().filter(|&&place| place >= (FEW + 1) * ACCOUNTS).count();
    assert!(late <= 2, "{places:?}");
}
