//! Tests when lists are matched with alert rules: each drop is matched once, even if the process
//! dies in between. The deliveries are read over HTTP. Unit tests of the index check what a rule
//! matches.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Client, Server, Site, wait};

/// Deadline of a match, which usually takes only a moment.
const MATCH_MAX: Duration = Duration::from_secs(60);
const DAY_1: &str = "2026-03-15";

/// An installation, the server it runs, and the lists it has ingested.
struct World {
    site: Site,
    key: String,
    day: String,
    server: Option<Server>,
    lists: usize,
}

impl World {
    /// Starts a server on [`DAY_1`] with a list whose name matches no rule of these tests.
    fn new() -> World {
        let site = Site::new();
        let key = site.account("owner@example.com", "api");
        let mut world = World { site, key, day: DAY_1.to_owned(), server: None, lists: 0 };
        world.ingest(&[&[("before.org", "2026-03-01")]]);
        world.start();
        world
    }

    /// Ingests lists in one command, and rebuilds.
    fn ingest(&mut self, lists: &[&[(&str, &str)]]) {
        let mut paths = Vec::new();
        for rows in lists {
            self.lists += 1;
            paths.push(self.site.write(&format!("{}.csv", self.lists), text_of(rows)));
        }
        let mut arguments = vec!["ingest"];
        arguments.extend(paths.iter().map(|path| path.to_str().expect("UTF-8")));
        self.run(&arguments);
    }

    /// Runs a command on the server's current day.
    fn run(&self, arguments: &[&str]) {
        self.site.ok_on(&self.day, arguments);
    }

    fn start(&mut self) {
        self.server = Some(self.site.serve(&self.day));
    }

    fn stop(&mut self) {
        self.server.take().expect("it runs").stop();
    }

    /// Restarts the server on another day.
    fn turn_to(&mut self, day: &str) {
        self.stop();
        self.day = day.to_owned();
        self.start();
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn client(&self) -> Client {
        self.server().client_with(&self.key)
    }

    /// Adds lists and waits until they are matched.
    fn match_lists(&mut self, lists: &[&[(&str, &str)]]) {
        self.ingest(lists);
        self.wait_until_matched();
    }

    /// Waits until the newest list is matched.
    fn wait_until_matched(&self) {
        let told = format!("batch={}", self.lists);
        let is_matched = |line: &str| line.contains("matched alert rules") && line.contains(&told);
        wait::until_ok(MATCH_MAX, || {
            let log = self.server().log();
            if log.lines().any(is_matched) { Ok(()) } else { Err(format!("not matched: {log}")) }
        });
    }

    /// Adds a rule and returns its id.
    fn rule(&self, filter: Value) -> u64 {
        let rule = json!({
            "name": "a rule",
            "filter": filter,
            "channels": [{"type": "webhook", "url": "https://hooks.example.com/drops"}],
        });
        let (status, body) = self.client().send("POST", "/api/v1/alerts", &rule).answer();
        assert_eq!(status, 201, "{body}");
        body["id"].as_u64().expect("an id")
    }

    fn change(&self, rule: u64, patch: Value) {
        let target = format!("/api/v1/alerts/{rule}");
        let (status, body) = self.client().send("PATCH", &target, &patch).answer();
        assert_eq!(status, 200, "{body}");
    }

    /// Returns the number of names in each message of a rule, oldest first.
    fn told(&self, rule: u64) -> Vec<u64> {
        let target = format!("/api/v1/alerts/{rule}/deliveries");
        let (status, body) = self.client().get(&target).answer();
        assert_eq!(status, 200, "{body}");
        let deliveries = body["deliveries"].as_array().expect("a list");
        assert_eq!(body["count"], deliveries.len());
        assert!(deliveries.iter().all(|delivery| delivery["kind"] == "match"), "{body}");
        let names = |delivery: &Value| delivery["names"].as_u64().expect("a number");
        deliveries.iter().rev().map(names).collect()
    }
}

/// A list in the native format.
fn text_of(rows: &[(&str, &str)]) -> String {
    let rows: String = rows.iter().map(|(name, date)| format!("{name},{date}\n")).collect();
    format!("domain,drop_date\n{rows}")
}

#[test]
fn a_preview_counts_what_is_sent() {
    let mut world = World::new();
    let filter = json!({"releaseWithinDays": 3});
    let rule = world.rule(filter.clone());
    let preview = |world: &World| {
        let path = "/api/v1/alerts/preview";
        world.client().send("POST", path, &json!({ "filter": filter })).json()
    };
    // A .com name is released 35 days after its drop. The releases of the first two are within the
    // range today, and the release of the third enters it tomorrow.
    world.match_lists(&[&[
        ("nearest.com", "2026-02-08"),
        ("near.com", "2026-02-09"),
        ("soon.com", "2026-02-12"),
        ("far.com", "2026-03-15"),
    ]]);
    assert_eq!(world.told(rule), [2]);
    let seen = preview(&world);
    assert_eq!(seen["latest"], json!({"date": "2026-03-15", "count": 2}), "{seen}");
    assert_eq!(seen["today"], 2);
    world.turn_to("2026-03-16");
    world.match_lists(&[&[("other.com", "2026-03-16")]]);
    assert_eq!(world.told(rule), [2, 1], "its release has entered the range");
    let seen = preview(&world);
    assert_eq!(seen["latest"], json!({"date": "2026-03-16", "count": 1}), "{seen}");
    let days = seen["perDay"].as_array().expect("days");
    assert_eq!(days[0], json!({"date": "2026-03-16", "count": 1}), "{seen}");
    assert_eq!(days[1], json!({"date": "2026-03-15", "count": 2}), "{seen}");
}

#[test]
fn a_rule_fires_once_for_each_drop() {
    let mut world = World::new();
    let com = world.rule(json!({"tlds": ["com"]}));
    let tea = world.rule(json!({"contains": "tea", "maxLength": 7}));
    let idn = world.rule(json!({"contains": "MÜN"}));
    let none = world.rule(json!({"tlds": ["net"]}));
    assert_eq!(world.told(com), [] as [u64; 0], "existing drops are not news");

    let first = [
        ("teapots.com", "2026-03-15"),
        ("teapot-shop.com", "2026-03-15"),
        ("münchen.de", "2026-03-15"),
        ("teatime.co.uk", "2026-03-15"),
    ];
    world.match_lists(&[&first]);
    assert_eq!(world.told(com), [2]);
    assert_eq!(world.told(tea), [2]);
    assert_eq!(world.told(idn), [1]);
    assert_eq!(world.told(none), [] as [u64; 0]);

    // A corrected drop date does not fire; another drop of the name and a new name do.
    world.match_lists(&[&[("teapots.com", "2026-03-15"), ("teatime.co.uk", "2026-03-15")]]);
    assert_eq!((world.told(com), world.told(tea)), (vec![2], vec![2]));
    world.match_lists(&[&[("teapots.com", "2026-03-14"), ("others.com", "2026-03-15")]]);
    assert_eq!((world.told(com), world.told(tea)), (vec![2, 1], vec![2]));

    // Ingesting the same file again, a rebuild, a rollback and compaction do not fire.
    let again = world.site.write("2.csv", text_of(&first));
    world.run(&["ingest", again.to_str().expect("UTF-8")]);
    world.run(&["rebuild"]);
    world.run(&["index", "rollback"]);
    world.run(&["rebuild", "--compact"]);
    world.match_lists(&[&[("teacup.net", "2026-03-15")]]);
    assert_eq!(world.told(com), [2, 1]);
    assert_eq!((world.told(tea), world.told(none)), (vec![2, 1], vec![1]));
    world.stop();
    world.start();
    assert_eq!(world.told(com), [2, 1], "nothing is sent again after a restart");
}

#[test]
fn a_rule_fires_when_a_name_enters_its_stages() {
    let mut world = World::new();
    // The names are released 35 days after their drop, and are in pending delete for the last five.
    let pending = world.rule(json!({"stages": ["pending-delete"]}));
    let late = world.rule(json!({"stages": ["catchable", "released"], "tlds": ["com"]}));
    let all = world.rule(json!({}));
    world.match_lists(&[&[("later.com", "2026-03-15"), ("sooner.com", "2026-02-17")]]);
    assert_eq!(world.told(pending), [] as [u64; 0]);
    assert_eq!(world.told(all), [2]);

    // A new day alone does not fire; the next list does.
    world.turn_to("2026-03-19");
    assert_eq!(world.told(pending), [] as [u64; 0]);
    world.match_lists(&[&[("other.de", "2026-03-18")]]);
    assert_eq!((world.told(pending), world.told(all)), (vec![1], vec![2, 1]));
    world.match_lists(&[&[("another.de", "2026-03-18")]]);
    assert_eq!(world.told(pending), [1], "once");
    assert_eq!(world.told(late), [] as [u64; 0]);

    world.turn_to("2026-03-25");
    world.match_lists(&[&[("third.de", "2026-03-18")]]);
    assert_eq!(world.told(late), [1]);
    // The rule was added when sooner.com had long been catchable, so the name does not fire.
    let added_late = world.rule(json!({"stages": ["catchable", "released"], "tlds": ["com"]}));
    world.turn_to("2026-04-05");
    world.match_lists(&[&[("fourth.de", "2026-03-18")]]);
    assert_eq!((world.told(late), world.told(added_late)), (vec![1], vec![]));
    world.turn_to("2026-04-19");
    world.match_lists(&[&[("fifth.de", "2026-03-18")]]);
    assert_eq!((world.told(late), world.told(added_late)), (vec![1, 1], vec![1]));
}

#[test]
fn every_condition_narrows_a_rule() {
    let mut world = World::new();
    let texts = world.rule(json!({"starts": ["tea"], "notEnds": ["shop"], "notTlds": ["net"]}));
    let shape = world.rule(json!({"pattern": "CVV*", "digits": "none", "contains": "pot"}));
    let regex = world.rule(json!({"regex": "^tea(pot|cup)s?$", "minLength": 6}));
    // The name is released 35 days after its drop, so it enters the range only some days later, and
    // fires then.
    let soon =
        world.rule(json!({"releaseWithinDays": 3, "stages": ["pending-delete", "catchable"]}));
    world.match_lists(&[&[
        ("teapot.com", "2026-03-15"),
        ("teashop.com", "2026-03-15"),
        ("teacup.net", "2026-03-15"),
        ("teapot2.com", "2026-03-15"),
        ("sooner.com", "2026-02-12"),
    ]]);
    assert_eq!(
        (world.told(texts), world.told(shape), world.told(regex)),
        (vec![2], vec![1], vec![2])
    );
    assert_eq!(world.told(soon), [] as [u64; 0], "released on 19 March");
    world.turn_to("2026-03-17");
    world.match_lists(&[&[("other.de", "2026-03-16")]]);
    assert_eq!(world.told(soon), [1]);
    world.turn_to("2026-03-18");
    world.match_lists(&[&[("another.de", "2026-03-16")]]);
    assert_eq!(world.told(soon), [1], "once");
    world.stop();
}

#[test]
fn lists_are_matched_however_they_arrive() {
    let mut world = World::new();
    let both = world.rule(json!({"tlds": ["com", "net"]}));
    let paused = world.rule(json!({"tlds": ["com"]}));
    let edited = world.rule(json!({"tlds": ["com"]}));
    world.change(paused, json!({"active": false}));
    // Two lists in one command produce one message.
    world.match_lists(&[&[("one.com", "2026-03-15")], &[("two.net", "2026-03-15")]]);
    assert_eq!(world.told(both), [2]);
    assert_eq!(world.told(paused), [] as [u64; 0]);
    assert_eq!(world.told(edited), [1]);

    // Neither resuming nor a new filter fires for past drops.
    world.change(paused, json!({"active": true}));
    world.change(edited, json!({"filter": {"tlds": ["net"]}}));
    // A list ingested without a server is matched at the next start.
    world.stop();
    world.ingest(&[&[("three.com", "2026-03-15"), ("four.net", "2026-03-15")]]);
    world.ingest(&[&[("five.net", "2026-03-15")]]);
    world.start();
    world.wait_until_matched();
    assert_eq!(world.told(both), [2, 3]);
    assert_eq!(world.told(paused), [1]);
    assert_eq!(world.told(edited), [1, 2]);

    // A deleted rule matches nothing, and its deliveries are deleted.
    let target = format!("/api/v1/alerts/{edited}");
    assert_eq!(world.client().request("DELETE", &target, &[]).status, 200);
    assert_eq!(world.client().get(&format!("{target}/deliveries")).status, 404);
    world.match_lists(&[&[("six.net", "2026-03-15")]]);
    assert_eq!(world.told(both), [2, 3, 1]);
    world.stop();
}
