//! dropdex never calls a private network: all forms of addresses in requests, and names, redirects
//! and changing DNS responses at dial time (OWASP API7).
//!
//! The real binary gets the requests, a real name server (Knot DNS) resolves the names, and canaries on
//! loopback show that nothing was dialled.

mod dial;
mod forms;

use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

use serde_json::{Value, json};

use crate::common::knot::{Knot, ZONE};
use crate::common::rng::Rng;
use crate::common::{Client, Response, Server, Site, TODAY, runs};

/// Allowances that no test uses up.
const PLENTY: &str =
    "[plans.api]\nrequests_per_day = 1000000\nwrites_per_minute = 1000000\nactive_rules = 5000\n";

/// An installation, a server with these settings, and a client of plan `api`.
fn served(settings: &str) -> (Site, Server, Client) {
    let site = Site::with_names(std::iter::once("some.com".to_owned()), TODAY);
    let key = site.account("owner@example.com", "api");
    let settings = site.settings(&format!("{PLENTY}{settings}"));
    let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
    let client = server.client_with(&key);
    (site, server, client)
}

fn post(client: &mut Client, urls: &[String]) -> Response {
    let channels: Vec<Value> =
        urls.iter().map(|url| json!({"type": "webhook", "url": url})).collect();
    client.send("POST", "/api/v1/alerts", &json!({"name": "r", "filter": {}, "channels": channels}))
}

#[track_caller]
fn assert_refused(client: &mut Client, url: &str) {
    let response = post(client, &[url.to_owned()]);
    let (status, body) = response.answer();
    let reason = body["error"].as_str().unwrap_or_default();
    assert_eq!(status, 400, "{url:?}: {body}");
    assert!(reason.starts_with("channels[0].url: "), "{url:?}: {body}");
}

#[test]
fn private_addresses_are_refused_in_every_notation() {
    let mut rng = Rng::new(runs::seed());
    let (_site, _server, mut client) = served("");
    let mut hosts = Vec::new();
    for address in forms::denied_v4(&mut rng) {
        hosts.extend(forms::spellings(address));
        hosts.extend(forms::embeddings(address));
    }
    for address in forms::denied_v6(&mut rng) {
        hosts.extend(forms::spellings_v6(address));
    }
    let mut tried = 0;
    for (at, host) in hosts.iter().enumerate() {
        // Each address is tried without decoration, and with two of the decorations in turn.
        let dresses = forms::DRESSES.len() - 1;
        for dress in [0, 1 + at % dresses, 1 + (at / dresses + 7 * at) % dresses] {
            assert_refused(&mut client, &forms::DRESSES[dress].replace("{}", host));
            tried += 1;
        }
    }
    runs::say(&format!("{tried} forms of {} hosts were refused", hosts.len()));
    assert!(tried >= 5_000, "{tried}");
    assert_eq!(client.get("/api/v1/alerts").json()["count"], 0);
}

#[test]
fn names_and_networks_are_refused_by_rule_without_a_resolver() {
    let (_site, _server, mut client) = served(
        "[dns]\nservers = [\"127.0.0.1:9\"]\n\
         [outbound]\ndeny_networks = [\"8.8.8.0/24\"]\nown_addresses = [\"1.1.1.1\"]\n",
    );
    for host in [
        "254.169.254.169.in-addr.arpa",
        "8.8.8.8.in-addr.arpa",
        "1.0.0.0.ip6.arpa",
        "router.home.arpa",
        "x.corp",
        "x.home",
        "x.svc",
        "x.lan",
        "x.internal",
        "x.local",
        "x.localhost",
        "x.test",
        "x.invalid",
        "x.example",
        "x.onion",
        "8.8.8.8",
        "1.1.1.1",
    ] {
        assert_refused(&mut client, &format!("https://{host}/"));
        assert_refused(&mut client, &format!("https://{host}:8443/hook"));
    }
    let other =
        post(&mut client, &["https://8.8.4.4/".into(), "https://x.dropdex-tests.com/".into()]);
    assert_eq!(other.status, 201, "{}", other.text());
}

#[test]
fn public_addresses_are_accepted() {
    let mut rng = Rng::new(runs::seed());
    let (_site, _server, mut client) = served("");
    let word = |rng: &mut Rng| rng.below(1 << 16) as u16;
    let mut expected = Vec::new();
    while expected.len() < 1_000 {
        let v4 = Ipv4Addr::from(u32::from(word(&mut rng)) << 16 | u32::from(word(&mut rng)));
        let [mut first, rest @ ..]: [u16; 8] = std::array::from_fn(|_| word(&mut rng));
        first = 0x2000 | first & 0x1fff;
        let words = [first, rest[0], rest[1], rest[2], rest[3], rest[4], rest[5], rest[6]];
        let v6 = Ipv6Addr::from(words);
        let port = if rng.chance(30) { ":8443" } else { "" };
        match rng.below(3) {
            0 if !forms::is_denied_v4(v4) => {
                let spellings = forms::spellings(v4);
                let host = rng.pick(&spellings).clone();
                expected.push((format!("https://{host}{port}/x"), format!("https://{v4}{port}/x")));
            }
            1 if !forms::is_denied_v6(v6) => {
                let host =
                    if rng.chance(50) { format!("{v6}") } else { format!("{v6}").to_uppercase() };
                expected
                    .push((format!("https://[{host}]{port}/x"), format!("https://[{v6}]{port}/x")));
            }
            2 => {
                let name = format!("h{}.example.com", expected.len());
                expected
                    .push((format!("https://{name}{port}/x"), format!("https://{name}{port}/x")));
            }
            _ => {}
        }
    }
    for five in expected.chunks(5) {
        let sent: Vec<String> = five.iter().map(|(sent, _)| sent.clone()).collect();
        let response = post(&mut client, &sent);
        assert_eq!(response.status, 201, "{sent:?}: {}", response.text());
        let body = response.json();
        for (at, (_, canonical)) in five.iter().enumerate() {
            assert_eq!(body["alert"]["channels"][at]["url"], json!(canonical));
        }
    }
}

/// Records of the zone: names that resolve to private networks in various ways, and `public...` names.
const RECORDS: &str = "\
public A 8.8.8.8
public4 A 8.8.8.8
public4 A 1.1.1.1
public6 AAAA 2606:4700:4700::1111
alias CNAME public
loop A 127.0.0.1
mixed A 8.8.8.8
mixed A 10.0.0.1
mixed6 A 8.8.8.8
mixed6 AAAA fd00::1
last A 8.8.8.8
last A 8.8.4.4
last A 1.1.1.1
last A 1.0.0.1
last A 192.168.0.1
inner CNAME chain1
chain1 CNAME chain2
chain2 CNAME chain3
chain3 A 169.254.169.254
metadata A 169.254.169.254
azure A 168.63.129.16
zero A 0.0.0.0
mapped AAAA ::ffff:8.8.8.8
mapped-loop AAAA ::ffff:127.0.0.1
nat64 AAAA 64:ff9b::808:808
nat64-loop AAAA 64:ff9b::7f00:1
sixtofour AAAA 2002:7f00:1::1
teredo AAAA 2001:0:808:808::1
isatap AAAA 2a00:1450::5efe:10.0.0.1
loop6 AAAA ::1
link AAAA fe80::1
*.wild A 127.0.0.1
";

/// Returns records with chains of aliases, and with more addresses than any service has.
fn records_in_excess() -> String {
    let deep = |at: usize| format!("deep{at} CNAME deep{}\n", at + 1);
    let deep: String = (1..12).map(deep).collect();
    let many =
        |at: usize| format!("many A 8.8.{}.{}\nlots A 8.9.{}.{}\n", at / 100, at, at / 7, at);
    let many: String = (1..18).map(many).collect();
    let lots: String = (20..220).map(|at| format!("lots A 8.10.0.{at}\n")).collect();
    format!("{deep}deep12 A 8.8.8.8\n{many}{lots}")
}

#[test]
fn a_name_is_refused_if_any_of_its_records_is_private() {
    let knot = Knot::start(&format!("{RECORDS}{}", records_in_excess()));
    let dns = format!("[dns]\nservers = [\"{}\"]\n", knot.address());
    let (_site, server, mut client) = served(&dns);
    let mut refused = 0;
    for record in RECORDS.lines() {
        let name = record.split(' ').next().expect("a name").replace('*', "any");
        let public = name.starts_with("public") || name == "alias";
        for url in [format!("https://{name}.{ZONE}/"), format!("https://{name}.{ZONE}:8443/x")] {
            if public {
                let response = post(&mut client, &[url]);
                assert_eq!(response.status, 201, "{record}: {}", response.text());
            } else if !name.starts_with("chain") || name == "chain3" {
                assert_refused(&mut client, &url);
                refused += 1;
            }
        }
    }
    assert!(refused > 40, "{refused}");
    for name in ["deep1", "many", "lots"] {
        assert_refused(&mut client, &format!("https://{name}.{ZONE}/"));
    }
    // Hosts without an address are checked at dial time.
    let nowhere = post(&mut client, &[format!("https://nowhere.{ZONE}/")]);
    assert_eq!(nowhere.status, 201, "{}", nowhere.text());
    // Only the operator sees the address behind a name.
    let told = post(&mut client, &[format!("https://inner.{ZONE}/")]).text().to_owned();
    assert!(!told.contains("169.254"), "{told}");
    server.logged("169.254.169.254");
    // A change of a rule is checked in the same way.
    let id = nowhere.json()["id"].as_u64().expect("an id");
    let patch = json!({"channels": [{"type": "webhook", "url": format!("https://mixed.{ZONE}/")}]});
    assert_eq!(client.send("PATCH", &format!("/api/v1/alerts/{id}"), &patch).status, 400);
}

#[test]
fn a_silent_name_server_does_not_delay_others() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = silent.local_addr().expect("a bound socket has an address");
    let (_site, _server, mut client) = served(&format!("[dns]\nservers = [\"{address}\"]\n"));
    let names = (0..5).map(|at| format!("https://slow{at}.{ZONE}/")).collect::<Vec<_>>();
    let response = post(&mut client, &names);
    assert_eq!(response.status, 201, "{}", response.text());
}

#[test]
fn only_allow_listed_private_addresses_are_accepted() {
    let settings =
        "[webhooks]\nallow = [\"127.0.0.1/32:9000\"]\ndeny_hosts = [\"corp.dropdex-tests.com\"]\n";
    let settings = format!("public_url = \"https://drops.example.net\"\n{PLENTY}{settings}");
    let site = Site::with_names(std::iter::once("some.com".to_owned()), TODAY);
    let key = site.account("owner@example.com", "api");
    let server = site.serve_with(&["--config", &site.settings(&settings), "--today", TODAY]);
    let mut client = server.client_with(&key);
    assert_eq!(post(&mut client, &["https://127.0.0.1:9000/".into()]).status, 201);
    assert_eq!(post(&mut client, &["https://0x7f.1:9000/".into()]).status, 201);
    for url in [
        "http://127.0.0.1:9000/",
        "https://127.0.0.1/",
        "https://127.0.0.1:8443/",
        "https://127.0.0.2:9000/",
        "https://[::1]:9000/",
        "https://[::ffff:127.0.0.1]:9000/",
        "https://8.8.8.8:9000/",
        "https://localhost:9000/",
        "https://a.corp.dropdex-tests.com/",
        "https://drops.example.net/api/v1/alerts",
    ] {
        assert_refused(&mut client, url);
    }
}
