//! Checks at dial time, through the service's own client: names that resolve to private networks, and
//! servers that redirect there.

use std::net::SocketAddr;
use std::time::Duration;

use dropdex::outbound::dns::Dns;
use dropdex::outbound::guard::Guard;
use dropdex::outbound::http::Client;
use dropdex::outbound::webhook::{self, Message};
use dropdex::outbound::{Failure, SendError, settings};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::net::AllowList;
use dropdex::vocab::secret::Secret;
use dropdex::vocab::url::{HostRules, WebhookUrl};
use serde_json::json;

use super::{PLENTY, RECORDS, post};
use crate::common::knot::{Knot, ZONE};
use crate::common::receiver::{Canary, Receiver, Reply};
use crate::common::{Site, wait};

/// Deadline for another test to release a port.
const PORT_MAX: Duration = Duration::from_secs(120);

/// Makes a call like the delivery of a webhook, with these addresses allowed.
struct Caller {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Caller {
    fn new(dns: SocketAddr, allow: &[String], ca_file: Option<&std::path::Path>) -> Caller {
        let allow: AllowList = serde_json::from_value(json!(allow)).expect("an allow list");
        let servers = vec![dns];
        let dns =
            Dns::new(&settings::Dns { servers, ..settings::Dns::default() }).expect("a resolver");
        let guard = Guard::new(HostRules { allow, ..HostRules::default() }, dns);
        let client = Client::new(guard, ca_file).expect("a client");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        Caller { runtime: runtime.expect("a runtime"), client }
    }

    /// Sends a message to an address as if the address had been accepted before.
    fn call(&self, url: &str) -> Result<(), SendError> {
        let url = WebhookUrl::from_stored(url.to_owned());
        let secret = Secret::new("whsec_AAAA".into());
        let message = Message { url: &url, secrets: vec![&secret], id: "msg_1", body: "{}".into() };
        self.runtime.block_on(webhook::send(&self.client, message, Clock::system().now()))
    }

    #[track_caller]
    fn assert_failure(&self, url: &str, failure: Failure) {
        let got = self.call(url).expect_err(url);
        assert_eq!(got.failure, failure, "{url}: {got}");
    }
}

/// Starts canaries at every address of this machine, on both public ports, but on the one below
/// 1,024 only if the system allows it. Waits for ports that another test uses.
fn canaries() -> Vec<Canary> {
    let everywhere = |port: u16| {
        let both = Canary::at(&format!("[::]:{port}"));
        both.or_else(|_| Canary::at(&format!("0.0.0.0:{port}")))
    };
    let first = wait::until_ok(PORT_MAX, || everywhere(8443));
    std::iter::once(first).chain(everywhere(443)).collect()
}

fn assert_silent(canaries: &[Canary]) {
    for canary in canaries {
        assert_eq!(canary.calls(), 0, "{} was called", canary.address());
    }
}

#[test]
fn private_addresses_are_never_dialled() {
    let canaries = canaries();
    let mut knot = Knot::start(RECORDS);
    let caller = Caller::new(knot.address(), &[], None);
    // Addresses, and names with any record in a private network.
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0.0.0.0"] {
        caller.assert_failure(&format!("https://{host}:8443/"), Failure::Refused);
        caller.assert_failure(&format!("https://{host}/"), Failure::Refused);
        caller.assert_failure(&format!("http://{host}:8443/"), Failure::Refused);
    }
    for record in RECORDS.lines() {
        let name = record.split(' ').next().expect("a name").replace('*', "any");
        if !name.starts_with("public") && name != "alias" {
            caller.assert_failure(&format!("https://{name}.{ZONE}:8443/"), Failure::Refused);
        }
    }
    caller.assert_failure("https://localhost:8443/", Failure::Refused);
    caller.assert_failure(&format!("https://nowhere.{ZONE}:8443/"), Failure::Unreachable);
    // The address is public when it is checked and private when it is dialled.
    for inside in ["A 127.0.0.1", "AAAA ::1", "CNAME loop", "AAAA ::ffff:127.0.0.1"] {
        knot.replace("rebound A 8.8.8.8");
        let url = url::Url::parse(&format!("https://rebound.{ZONE}:8443/")).expect("a URL");
        let judged = caller.runtime.block_on(caller.client.guard().vet(&url));
        assert!(judged.is_ok(), "{judged:?}");
        knot.replace(&format!("loop A 127.0.0.1\nrebound {inside}"));
        caller.assert_failure(url.as_str(), Failure::Refused);
    }
    assert_silent(&canaries);
}

#[test]
fn a_receiver_redirects_nowhere() {
    let canary = Canary::at("127.0.0.1:0").expect("loopback has free ports");
    let at = canary.address();
    let knot = Knot::start("hook A 127.0.0.1\nboth A 127.0.0.1\nboth A 127.0.0.2\n");
    let name = format!("hook.{ZONE}");
    let receiver = Receiver::https(&[&name, "127.0.0.1"], move |_, seen| {
        let (status, place) = match seen.target.as_str() {
            "/301" => (301, format!("https://{at}/")),
            "/302" => (302, format!("http://{at}/")),
            "/307" => (307, format!("//{at}/")),
            "/308" => (308, format!("https://127.0.0.1:{}/", at.port())),
            "/300" => (300, format!("https://{at}/")),
            "/refresh" => {
                return Reply::Answer(
                    200,
                    vec![("Refresh", format!("0;url=http://{at}/"))],
                    vec![],
                );
            }
            "/alt" => {
                return Reply::Answer(200, vec![("Alt-Svc", format!("h2=\"{at}\""))], vec![]);
            }
            "/endless" => return Reply::Endless,
            "/head" => return Reply::EndlessHead,
            "/close" => return Reply::Close,
            "/gone" => (410, String::new()),
            _ => (204, String::new()),
        };
        Reply::Answer(status, vec![("Location", place)], vec![])
    });
    let site = Site::new();
    let ca_file = site.write("ca.pem", receiver.certificate());
    let port = receiver.address().port();
    let allow = [format!("127.0.0.1/32:{port}")];
    let caller = Caller::new(knot.address(), &allow, Some(&ca_file));
    for host in [name.clone(), "127.0.0.1".to_owned()] {
        let hook = |path: &str| format!("https://{host}:{port}{path}");
        for status in [300, 301, 302, 307, 308] {
            caller.assert_failure(&hook(&format!("/{status}")), Failure::Status(status));
        }
        for path in ["/", "/refresh", "/alt", "/endless"] {
            caller.call(&hook(path)).unwrap_or_else(|err| panic!("{path}: {err}"));
        }
        caller.assert_failure(&hook("/gone"), Failure::Gone);
        caller.assert_failure(&hook("/head"), Failure::Unreachable);
        caller.assert_failure(&hook("/close"), Failure::Unreachable);
    }
    // Each request opened one connection, to the intended receiver, and sent the receiver's host
    // name.
    let seen = receiver.seen();
    assert_eq!(receiver.connections(), seen.len());
    let hosts = [format!("{name}:{port}"), format!("127.0.0.1:{port}")];
    assert!(seen.iter().all(|seen| hosts.iter().any(|host| host == seen.header("host"))));
    // A name with a public and a private address is refused.
    caller.assert_failure(&format!("https://both.{ZONE}:{port}/"), Failure::Refused);
    // The peer must have a certificate for the name.
    let strict = Caller::new(knot.address(), &allow, None);
    let before = receiver.seen().len();
    strict.assert_failure(&format!("https://{name}:{port}/"), Failure::Tls);
    assert_eq!(receiver.seen().len(), before, "nothing is sent without a valid certificate");
    assert_eq!(canary.calls(), 0);
}

/// The whole path: rules that were accepted while their names were public, a list that goes live,
/// with every environment variable set that makes other clients use a proxy.
#[test]
fn the_server_dials_neither_rebound_names_nor_proxies() {
    let canaries = canaries();
    let mut knot = Knot::start("rebound A 8.8.8.8\nmixed A 8.8.8.8\nstays A 127.0.0.1\n");
    let receiver = Receiver::https(&[&format!("stays.{ZONE}")], |_, _| Reply::status(204));
    let port = receiver.address().port();
    let today = Clock::system().today().to_string();
    let site = Site::with_names(std::iter::once("some.com".to_owned()), &today);
    let key = site.account("owner@example.com", "api");
    let ca_file = site.write("ca.pem", receiver.certificate());
    let settings = site.settings(&format!(
        "{PLENTY}[dns]\nservers = [\"{}\"]\n[webhooks]\nallow = [\"127.0.0.1/32:{port}\"]\n\
         ca_file = {ca_file:?}\nretry_seconds = [0, 1]\n",
        knot.address()
    ));
    let proxy = format!("http://127.0.0.1:{}", canaries[0].address().port());
    let names =
        ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let environment = names.map(|name| (name, proxy.clone()));
    let server = site.serve_in(&environment, &["--config", &settings]);
    let mut client = server.client_with(&key);
    let mut rule = |url: String| {
        let response = post(&mut client, &[url]);
        assert_eq!(response.status, 201, "{}", response.text());
        response.json()["id"].as_u64().expect("an id")
    };
    let inside = [
        rule(format!("https://rebound.{ZONE}:8443/")),
        rule(format!("https://rebound.{ZONE}/")),
        rule(format!("https://mixed.{ZONE}:8443/")),
    ];
    rule(format!("https://stays.{ZONE}:{port}/"));
    knot.replace("rebound A 127.0.0.1\nmixed A 8.8.8.8\nmixed A 127.0.0.1\nstays A 127.0.0.1\n");
    let list = site.write("new.csv", format!("domain,drop_date\nsolar.com,{today}\n"));
    site.ingest(&list, &format!("{today}T00:00:01Z"));
    assert_eq!(receiver.wait_for(1).len(), 1, "a direct connection to an allowed receiver");
    for rule in inside {
        let path = format!("/api/v1/alerts/{rule}/deliveries");
        let failed = wait::until_ok(PORT_MAX, || {
            let delivery = client.get(&path).json()["deliveries"][0].clone();
            if delivery["status"] == "failed" {
                return Ok(delivery);
            }
            Err(format!("{delivery}\n{}", server.log()))
        });
        assert_eq!((&failed["attempts"], &failed["problem"]), (&json!(2), &json!("refused")));
    }
    assert_silent(&canaries);
}
