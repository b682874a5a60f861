//! Delivery of alerts: a list goes live, and receivers on loopback get webhooks, mail (a real SMTP
//! server), Telegram messages and those of chat services. The reference library checks signatures.
//!
//! Times are checked only from the receivers' point of view: a retry does not come too early.

mod channels;
mod chats;
mod examples;
mod receivers;
mod watching;

use std::time::Duration;

use dropdex::vocab::clock::Clock;
use serde_json::{Value, json};

use crate::common::receiver::Receiver;
use crate::common::{Client, Server, Site, wait};

const PATH: &str = "/api/v1/alerts";
/// Deadline of every wait; conditions are normally met long before.
const WAIT_MAX: Duration = Duration::from_secs(180);
const PERIOD: Duration = Duration::from_millis(50);

/// An installation with one list, a server and a client of plan `api`.
struct World {
    site: Site,
    server: Server,
    client: Client,
    lists: u32,
    settings: String,
    key: String,
}

impl World {
    /// Creates a world with these settings, in which the receivers are trusted and allowed.
    fn new(settings: &str, receivers: &[&Receiver]) -> World {
        World::of("owner@example.com", settings, receivers)
    }

    /// As [`World::new`], with an account that has this address.
    fn of(email: &str, settings: &str, receivers: &[&Receiver]) -> World {
        World::with(email, settings, "", receivers)
    }

    /// As [`World::of`], with `more` settings of webhooks.
    fn with(email: &str, settings: &str, more: &str, receivers: &[&Receiver]) -> World {
        let site = Site::with_names(std::iter::once("before.com".to_owned()), &today());
        let key = site.account(email, "api");
        let certificates: String = receivers.iter().map(|it| it.certificate()).collect();
        let allow: Vec<String> = receivers.iter().map(|it| it.address().to_string()).collect();
        let mut webhooks =
            format!("[webhooks]\n{more}allow = {allow:?}\nretry_seconds = [0, 1, 2]\n");
        if !receivers.is_empty() {
            let ca_file = site.write("ca.pem", certificates);
            webhooks.push_str(&format!("ca_file = {ca_file:?}\n"));
        }
        let plenty = "[plans.api]\nrequests_per_day = 1000000\nwrites_per_minute = 1000000\n";
        let settings = site.settings(&format!("{settings}{plenty}{webhooks}"));
        let server = site.serve_with(&["--config", &settings]);
        let client = server.client_with(&key);
        World { site, server, client, lists: 0, settings, key }
    }

    /// Kills the server and starts it again.
    fn restart_after_a_crash(self) -> World {
        let World { site, server, settings, key, .. } = self;
        server.kill();
        let server = site.serve_with(&["--config", &settings]);
        let client = server.client_with(&key);
        World { site, server, client, settings, key, lists: self.lists }
    }

    /// Adds a rule that matches every name, and returns its id and secret.
    #[track_caller]
    fn rule(&mut self, name: &str, channel: Value) -> (u64, String) {
        let rule = json!({"name": name, "filter": {}, "channels": [channel]});
        let (status, body) = self.client.send("POST", PATH, &rule).answer();
        assert_eq!(status, 201, "{body}");
        let secret = body["secret"].as_str().unwrap_or_default().to_owned();
        (body["id"].as_u64().expect("an id"), secret)
    }

    #[track_caller]
    fn webhook(&mut self, name: &str, url: &str) -> (u64, String) {
        self.rule(name, json!({"type": "webhook", "url": url}))
    }

    /// Ingests a list of new names, which goes live.
    fn list(&mut self) {
        self.lists += 1;
        let (list, today) = (self.lists, today());
        let rows: String = (0..3).map(|at| format!("solar{at}x{list}.com,{today}\n")).collect();
        let path = format!("list{list}.csv");
        let path = self.site.write(&path, format!("domain,drop_date\n{rows}"));
        self.site.ingest(&path, &format!("{today}T00:00:{list:02}Z"));
    }

    /// Returns the deliveries of a rule, newest first.
    #[track_caller]
    fn deliveries(&mut self, rule: u64) -> Vec<Value> {
        let body = self.client.get(&format!("{PATH}/{rule}/deliveries")).json();
        body["deliveries"].as_array().expect("a list").clone()
    }

    /// Waits until the newest delivery of a rule has this status, and returns it.
    #[track_caller]
    fn wait(&mut self, rule: u64, status: &str) -> Value {
        wait::until_ok(WAIT_MAX, || {
            let deliveries = self.deliveries(rule);
            match deliveries.first() {
                Some(newest) if newest["status"] == status => Ok(newest.clone()),
                _ => Err(format!("not {status}: {deliveries:?}\n{}", self.server.log())),
            }
        })
    }
}

fn today() -> String {
    Clock::system().today().to_string()
}
