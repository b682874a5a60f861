//! Kills while alerts are processed: lists are ingested, matched and delivered, and at random points
//! the server, the ingest or both get SIGKILL. A plain model defines what a real receiver, which
//! refuses one request in five, must get: every match at least once, repeats only under the same id,
//! and nothing else. For watched names, the log of changes defines the expected messages of a webhook
//! and a chat.
//!
//! `DROPDEX_SEED=<number>` repeats a run as far as timing on the machine allows; `DROPDEX_FULL=1`
//! kills a hundred times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dropdex::changes::Appender;
use dropdex::vocab::change::ChangeKind;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use dropdex::vocab::stage::{Periods, Stage};
use dropdex::vocab::watched_change::WatchedChange;
use serde_json::{Value, json};

use crate::common::receiver::{Receiver, Reply, Seen};
use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::{Server, Site, wait};

const FIRST_DAY: &str = "2026-03-15";
/// Catch days of a server with default settings.
const CATCH_DAYS: u16 = 5;
const TLDS: [&str; 5] = ["com", "net", "de", "co.uk", "se"];
/// Maximum time from a list to its last message, including retries and two restarts. If this time
/// is exceeded, something hangs.
const SETTLE_MAX: Duration = Duration::from_secs(240);
/// Maximum time from the start of a server or the end of an ingest to a kill. Kills hit every stage of
/// the work, even in an unoptimised build.
const KILL_AFTER_MAX_MS: usize = 900;
/// Maximum time from the start of an ingest to a kill.
const INGEST_KILL_MAX_MS: usize = 2_500;
/// Percentage of requests that the receiver refuses.
const REFUSED_PERCENT: usize = 20;
/// Times of attempts: some at once, then about one per second, far more than are refused in a row.
const RETRY_SECONDS: &str = "[0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 12, 14, 20]";

/// A message that arrived completely.
#[derive(Clone, Debug)]
struct Received {
    path: String,
    /// The header `webhook-id`.
    id: String,
    body: Value,
    /// Whether the receiver responded with 200, as far as it knows.
    taken: bool,
}

/// A name and its drop date: a rule reports each pair once.
type Drop = (String, Day);

/// A rule and the matches that it must have delivered.
struct Rule {
    /// Addresses of the rule's channels.
    paths: Vec<String>,
    id: u64,
    tlds: Vec<&'static str>,
    contains: Option<String>,
    max_length: Option<usize>,
    /// Stages on which the rule alerts; they are consecutive.
    stages: Vec<Stage>,
    told: BTreeSet<Drop>,
    /// Names that were in the rule's stages when lists were last matched before the rule was added.
    past: BTreeSet<Drop>,
}

struct World {
    site: Site,
    receiver: Receiver,
    received: Arc<Mutex<Vec<Received>>>,
    settings: String,
    key: String,
    server: Option<Server>,
    day: Day,
    rng: Rng,
    rules: Vec<Rule>,
    /// The day of the last match.
    matched_on: Day,
    /// The latest drop of each name.
    names: BTreeMap<String, Day>,
    /// Names of lists that may not have been matched yet.
    fresh: BTreeSet<String>,
    lists: usize,
    kills: BTreeMap<&'static str, usize>,
    /// For each watched name, the newest change just before it was added, and the newest change
    /// just after.
    watched: BTreeMap<String, (u64, u64)>,
    /// Watched names that no list has contained yet.
    expected: Vec<String>,
}

/// Address for messages about watched names.
const WATCH_HOOK: &str = "/watch";
const WATCH_CHAT: &str = "/hooks/watch-watch-watch";
const WATCH_ALERTS: &str = "/api/v1/watchlist/alerts";
/// Minimum number of watched names that no list contains yet.
const EXPECTED_MIN: usize = 40;

/// A change in a received message: the name and the event.
type Told = (String, String);

#[test]
fn every_match_arrives_after_kills() {
    let seed = seed();
    let mut world = World::new(seed);
    let kills = figure(10, 100);
    while world.killed() < kills {
        world.one_kill();
        if world.rng.chance(25) {
            world.settle();
            world.change();
        }
    }
    world.settle();
    // There is no message left that another list or start would send.
    world.ingest_whole(1);
    world.settle();
    world.restart();
    world.settle();
    let changes = world.check_watched();
    let matches: usize = world.rules.iter().map(|rule| rule.told.len() * rule.paths.len()).sum();
    let received = world.received();
    let ids: BTreeSet<&str> = received.iter().map(|one| one.id.as_str()).collect();
    say(&format!(
        "{} kills ({:?}) over {} lists and {} rules: {matches} matches and {changes} changes of {} watched \
         names delivered in {} messages, {} requests, {} of them refused",
        world.killed(),
        world.kills,
        world.lists,
        world.rules.len(),
        world.watched.len(),
        ids.len(),
        received.len(),
        received.iter().filter(|one| !one.taken).count(),
    ));
    assert!(matches > kills, "too few matches: {matches}");
    assert!(changes > kills, "too few changes: {changes}");
}

/// Stores every message that it receives, and refuses some requests, half of them by closing the
/// connection.
fn receiver(seed: u64, received: Arc<Mutex<Vec<Received>>>) -> Receiver {
    Receiver::https(&["127.0.0.1"], move |before, seen: &Seen| {
        let mut rng = Rng::new(seed ^ before as u64);
        let taken = !rng.chance(REFUSED_PERCENT);
        // The message is stored before the response is sent, so a received response implies a
        // stored message.
        received.lock().expect("no code panics holding this lock").push(Received {
            path: seen.target.clone(),
            id: seen.header("webhook-id").to_owned(),
            body: serde_json::from_str(seen.text()).expect("JSON"),
            taken,
        });
        match taken {
            true => Reply::status(200),
            false if rng.chance(50) => Reply::status(500),
            false => Reply::Close,
        }
    })
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let received = Arc::new(Mutex::new(Vec::new()));
        let receiver = receiver(rng.below(usize::MAX) as u64, Arc::clone(&received));
        let site = Site::new();
        let certificate = site.write("ca.pem", receiver.certificate());
        let port = receiver.address().port();
        let settings = site.settings(&format!(
            "[plans.api]\nrequests_per_day = 1000000\nwrites_per_minute = 1000000\nactive_rules = 1000\nexternal_names = 100000\n\
             [metrics]\nlisten = \"127.0.0.1:0\"\n[webhooks]\nallow = [\"127.0.0.1/32:{port}\"]\nca_file = {certificate:?}\n\
             retry_seconds = {RETRY_SECONDS}\n"
        ));
        let key = site.account("owner@example.com", "api");
        let mut world = World {
            site,
            receiver,
            received,
            settings,
            key,
            server: None,
            day: FIRST_DAY.parse().expect("a date"),
            matched_on: FIRST_DAY.parse().expect("a date"),
            rng,
            rules: Vec::new(),
            names: BTreeMap::new(),
            fresh: BTreeSet::new(),
            lists: 0,
            kills: BTreeMap::new(),
            watched: BTreeMap::new(),
            expected: Vec::new(),
        };
        // Some names are ingested before any rule exists.
        world.ingest_whole(30);
        world.start();
        world.fresh.clear();
        for _ in 0..6 {
            world.add_rule();
        }
        world.set_watch_alerts();
        world.watch();
        world
    }

    /// Sends all changes of watched names to a webhook and a chat.
    fn set_watch_alerts(&self) {
        let address = self.receiver.address();
        let settings = json!({
            "kinds": ChangeKind::NAMES,
            "channels": [
                {"type": "webhook", "url": format!("https://{address}{WATCH_HOOK}")},
                {"type": "mattermost", "url": format!("https://{address}{WATCH_CHAT}")},
            ],
        });
        let mut client = self.server.as_ref().expect("it runs").client_with(&self.key);
        let (status, body) = client.send("PUT", WATCH_ALERTS, &settings).answer();
        assert_eq!(status, 200, "{body}");
    }

    /// Watches names that later lists will contain.
    fn watch(&mut self) {
        if self.expected.len() >= EXPECTED_MIN {
            return;
        }
        let some: BTreeSet<String> = (0..EXPECTED_MIN).map(|_| self.name()).collect();
        let before = self.newest_change();
        let mut client = self.server.as_ref().expect("it runs").client_with(&self.key);
        let batch = json!({ "domainNames": some });
        let (status, body) = client.send("POST", "/api/v1/watchlist/batch", &batch).answer();
        assert_eq!((status, &body["added"]), (200, &json!(some.len())), "{body}");
        let after = self.newest_change();
        self.expected.extend(some.iter().cloned());
        self.watched.extend(some.into_iter().map(|name| (name, (before, after))));
    }

    /// Waits until all changes are matched, and returns the number of the newest.
    fn newest_change(&self) -> u64 {
        let mut metrics = self.server.as_ref().expect("it runs").metrics();
        let mut newest = 0;
        wait::until(SETTLE_MAX, "all changes are matched", || {
            let answer = metrics.get("/metrics");
            let gauge = |name: &str| {
                let mut lines = answer.text().lines();
                let number = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                number.and_then(|number| number.parse::<u64>().ok())
            };
            newest = gauge("dropdex_change_log_newest").unwrap_or_default();
            gauge("dropdex_watch_alerts_matched_change") == Some(newest)
        });
        newest
    }

    /// Compares the changes of watched names that receivers got with the log of changes. Returns
    /// the number of changes that had to arrive.
    fn check_watched(&mut self) -> usize {
        // Changes that were collected while the receiver refused others are now due.
        self.stop();
        self.day = self.day.plus(1);
        self.start();
        self.newest_change();
        wait::until(SETTLE_MAX, "no message about watched names is pending", || {
            let mut client = self.server.as_ref().expect("it runs").client_with(&self.key);
            let body = client.get(&format!("{WATCH_ALERTS}/deliveries")).json();
            body["deliveries"].as_array().expect("a list").iter().all(|delivery| {
                assert_ne!(delivery["status"], "failed", "{delivery}");
                delivery["status"] == "delivered"
            })
        });
        self.stop();
        let (log, changes) =
            Appender::open(&self.site.data().join("changes"), Clock::system().now())
                .expect("opens");
        // Minimum and maximum number of deliveries of each change.
        let mut expected: BTreeMap<Told, (usize, usize)> = BTreeMap::new();
        for change in changes.read(0, usize::MAX).expect("whole") {
            let Some((before, after)) = self.watched.get(change.name.as_str()) else { continue };
            if change.seq > *before {
                let told = (change.name.to_string(), WatchedChange::from(&change).words());
                let (must, may) = expected.entry(told).or_default();
                *must += usize::from(change.seq > *after);
                *may += 1;
            }
        }
        drop(log);
        self.start();
        let received = self.received();
        check_hook(&expected, &received);
        check_chat(&expected, &received);
        expected.values().map(|(must, _)| must).sum()
    }

    /// Returns all messages so far, in order of arrival.
    fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no code panics holding this lock").clone()
    }

    fn killed(&self) -> usize {
        self.kills.values().sum()
    }

    fn arguments(&self) -> Vec<String> {
        let day = self.day.to_string();
        ["--config", &self.settings, "--today", &day].map(str::to_owned).to_vec()
    }

    fn start(&mut self) {
        let arguments = self.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.server = Some(self.site.serve_with(&arguments));
    }

    fn stop(&mut self) {
        self.server.take().expect("it runs").stop();
    }

    fn restart(&mut self) {
        self.stop();
        self.start();
    }

    fn kill(&mut self, when: &'static str) {
        self.server.take().expect("it runs").kill();
        *self.kills.entry(when).or_default() += 1;
    }

    fn wait_up_to(&mut self, ms: usize) {
        thread::sleep(Duration::from_millis(self.rng.below(ms + 1) as u64));
    }

    /// One or two kills at a random point.
    fn one_kill(&mut self) {
        let names = 5 + self.rng.below(60);
        match self.rng.below(10) {
            // A kill during matching and delivery of the list.
            0..4 => {
                self.ingest_whole(names);
                self.wait_up_to(KILL_AFTER_MAX_MS);
                self.kill("after a list");
            }
            // During delivery.
            4..6 => {
                let more = self.received().len() + 1 + self.rng.below(6);
                self.ingest_whole(names);
                let until = Instant::now() + Duration::from_secs(3);
                while self.received().len() < more && Instant::now() < until {
                    thread::sleep(Duration::from_millis(1));
                }
                self.kill("while delivering");
            }
            // During startup, with a list to match.
            6..8 => {
                self.kill("idle or delivering");
                self.ingest_whole(names);
                let arguments = self.arguments();
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let delay = self.rng.below(KILL_AFTER_MAX_MS) as u64;
                self.site.start(&arguments).kill_within(Duration::from_millis(delay));
                *self.kills.entry("while starting").or_default() += 1;
            }
            // A kill during the ingest; in half of the cases, the server is killed too.
            _ => {
                let list = self.list(names);
                let delay = self.rng.below(INGEST_KILL_MAX_MS) as u64;
                let day = self.day.to_string();
                let path = list.to_str().expect("temporary paths are UTF-8");
                let ingest = self.site.start_on(&day, &["ingest", path]);
                ingest.kill_within(Duration::from_millis(delay));
                *self.kills.entry("ingest").or_default() += 1;
                if self.rng.chance(50) {
                    self.wait_up_to(KILL_AFTER_MAX_MS / 2);
                    self.kill("beside an ingest");
                }
                self.ingest(&list);
            }
        }
        if self.server.is_none() {
            self.start();
        }
    }

    /// Moves to another day, and changes a rule.
    fn change(&mut self) {
        if self.rng.chance(40) {
            self.stop();
            self.day = self.day.plus(1 + self.rng.below(8) as i32);
            self.start();
            // A name that entered a stage is reported with the first list of the day, before a later list
            // says that the name has dropped again.
            self.settle();
        }
        if self.rng.chance(40) {
            self.add_rule();
        }
        self.watch();
    }

    fn ingest_whole(&mut self, names: usize) {
        let list = self.list(names);
        self.ingest(&list);
    }

    fn ingest(&self, list: &Path) {
        let path = list.to_str().expect("temporary paths are UTF-8");
        self.site.ok_on(&self.day.to_string(), &["ingest", path]);
    }

    /// Writes a list of new names, of names that drop again, and of corrections.
    fn list(&mut self, names: usize) -> PathBuf {
        self.lists += 1;
        // At least one is new, so that no two lists are the same file.
        let mut rows = String::from("domain,drop_date\n");
        let mut drop = |world: &mut World, name: String, date: Day| {
            rows.push_str(&format!("{name},{date}\n"));
            // A record within the lifecycle of the previous drop describes the same drop.
            let tld = name.split_once('.').expect("a TLD").1;
            let over = |before: Day| Periods::for_tld(tld).effective_release(before, None);
            let before = world.names.get(&name).copied().filter(|&before| date <= over(before));
            world.names.insert(name.clone(), before.unwrap_or(date));
            world.fresh.insert(name);
        };
        drop(self, format!("list{}.net", self.lists), self.day);
        for _ in 0..names {
            let known: Vec<String> =
                self.names.keys().filter(|name| !self.fresh.contains(*name)).cloned().collect();
            let again = !known.is_empty() && self.rng.chance(15);
            if !again {
                let is_watched = !self.expected.is_empty() && self.rng.chance(25);
                let name = match is_watched {
                    true => self.expected.swap_remove(0),
                    false => self.name(),
                };
                let days = *self.rng.pick(&[0, 0, 0, 1, 31, 36, 41, 64]);
                let date = self.day.plus(-days);
                drop(self, name, date);
                continue;
            }
            let name = self.rng.pick(&known).clone();
            let before = self.names[&name];
            let date = if self.rng.chance(50) { before } else { self.day.max(before) };
            drop(self, name, date);
        }
        self.site.write(&format!("{}.csv", self.lists), rows)
    }

    fn name(&mut self) -> String {
        loop {
            let mut label = String::new();
            for _ in 0..1 + self.rng.below(4) {
                label.push_str(
                    self.rng.pick::<&str>(&["tea", "so", "lar", "mo", "ox", "port", "ri", "um"]),
                );
            }
            label.push_str(&self.rng.below(1_000).to_string());
            let name = format!("{label}.{}", self.rng.pick(&TLDS));
            if !self.names.contains_key(&name) && !self.watched.contains_key(&name) {
                return name;
            }
        }
    }

    /// Adds a rule. Existing drops do not match it.
    fn add_rule(&mut self) {
        let number = self.rules.len();
        let channels = 1 + self.rng.below(2);
        let paths: Vec<String> = (0..channels).map(|at| format!("/rule{number}/{at}")).collect();
        let first = self.rng.below(4);
        let stages = match self.rng.below(3) {
            0 => Stage::ALL[first..=first].to_vec(),
            1 => Stage::ALL[first..].to_vec(),
            _ => Stage::ALL[..3].to_vec(),
        };
        let mut rule = Rule {
            paths,
            id: 0,
            tlds: TLDS.into_iter().filter(|_| self.rng.chance(50)).collect(),
            contains: self.rng.maybe(40, |rng| (*rng.pick(&["tea", "ar", "1", "x"])).to_owned()),
            max_length: self.rng.maybe(30, |rng| 5 + rng.below(8)),
            stages,
            told: BTreeSet::new(),
            past: BTreeSet::new(),
        };
        let address = self.receiver.address();
        let channels: Vec<Value> = rule
            .paths
            .iter()
            .map(|path| json!({"type": "webhook", "url": format!("https://{address}{path}")}))
            .collect();
        let mut filter = json!({
            "tlds": rule.tlds,
            "stages": rule.stages.iter().map(|stage| stage.as_str()).collect::<Vec<_>>(),
        });
        if let Some(text) = &rule.contains {
            filter["contains"] = json!(text);
        }
        if let Some(length) = rule.max_length {
            filter["maxLength"] = json!(length);
        }
        let body =
            json!({"name": format!("rule {number}"), "filter": filter, "channels": channels});
        let mut client = self.server.as_ref().expect("it runs").client_with(&self.key);
        let (status, body) = client.send("POST", "/api/v1/alerts", &body).answer();
        assert_eq!(status, 201, "{body}");
        rule.id = body["id"].as_u64().expect("an id");
        rule.past = self.matching(&rule, self.matched_on);
        self.rules.push(rule);
    }

    /// Returns the names that are in a rule's stages on a day and pass its filter.
    fn matching(&self, rule: &Rule, day: Day) -> BTreeSet<Drop> {
        let all = self.names.iter().filter(|(name, date)| rule.passes(name, **date, day));
        all.map(|(name, &date)| (name.clone(), date)).collect()
    }

    /// Waits until all expected messages have arrived, and checks that no others did.
    fn settle(&mut self) {
        // No messages are due until a list arrives.
        self.ingest_whole(1);
        self.fresh.clear();
        self.matched_on = self.day;
        for at in 0..self.rules.len() {
            let now = self.matching(&self.rules[at], self.day);
            let rule = &mut self.rules[at];
            rule.told.extend(now.difference(&rule.past).cloned());
        }
        // This includes a list that matches no rule: a rule that is added next must not match it
        // either.
        let mut metrics = self.server.as_ref().expect("it runs").metrics();
        let is_matched = || {
            let answer = metrics.get("/metrics");
            let mut lines = answer.text().lines();
            let number = lines.find_map(|line| line.strip_prefix("dropdex_alerts_matched_list "));
            number
                .and_then(|number| number.parse().ok())
                .is_some_and(|list: usize| list >= self.lists)
        };
        wait::until(SETTLE_MAX, &format!("list {} is matched", self.lists), is_matched);
        wait::until_ok(SETTLE_MAX, || {
            let received = self.received();
            let missing = self.missing(&received);
            if missing.is_empty() && self.pending() == 0 {
                return Ok(());
            }
            let log = self.server.as_ref().expect("it runs").log();
            Err(format!("missing: {missing:?}\n{log}"))
        });
    }

    /// Returns missing matches, and checks the received ones.
    fn missing(&self, received: &[Received]) -> Vec<(String, Drop)> {
        let mut missing = Vec::new();
        for rule in &self.rules {
            for path in &rule.paths {
                let taken = rule.check(path, received);
                let left = rule.told.difference(&taken).cloned();
                missing.extend(left.map(|drop| (path.clone(), drop)));
            }
        }
        let paths = self.rules.iter().flat_map(|rule| &rule.paths).map(String::as_str);
        let known: BTreeSet<&str> = paths.chain([WATCH_HOOK, WATCH_CHAT]).collect();
        for one in received {
            assert!(known.contains(one.path.as_str()), "sent where no rule says: {one:?}");
        }
        missing
    }

    /// Returns the number of pending deliveries; none may have failed.
    fn pending(&self) -> usize {
        let mut client = self.server.as_ref().expect("it runs").client_with(&self.key);
        let mut pending = 0;
        for rule in &self.rules {
            let target = format!("/api/v1/alerts/{}/deliveries", rule.id);
            let (status, body) = client.get(&target).answer();
            assert_eq!(status, 200, "{body}");
            for delivery in body["deliveries"].as_array().expect("a list") {
                assert_ne!(delivery["status"], "failed", "{delivery}");
                pending += usize::from(delivery["status"] != "delivered");
            }
        }
        pending
    }
}

/// Checks that each change was delivered as often as it occurred, under one id each, and that each id
/// has one body.
fn check_hook(expected: &BTreeMap<Told, (usize, usize)>, received: &[Received]) {
    let mut messages: BTreeMap<&str, (&Value, bool)> = BTreeMap::new();
    for one in received.iter().filter(|one| one.path == WATCH_HOOK) {
        let (body, taken) = messages.entry(&one.id).or_insert((&one.body, false));
        assert_eq!(*body, &one.body, "id {} has two bodies", one.id);
        *taken |= one.taken;
    }
    let mut told: BTreeMap<Told, usize> = BTreeMap::new();
    for (id, (body, taken)) in messages {
        assert!(taken, "{id} was given up: {body}");
        let data = &body["data"];
        let changes = data["changes"].as_array().expect("a list");
        assert_eq!(
            (&body["type"], &data["total"]),
            (&json!("watchlist.changed"), &json!(changes.len()))
        );
        for change in changes {
            let change: WatchedChange = serde_json::from_value(change.clone()).expect("a change");
            *told.entry((change.name.to_string(), change.words())).or_default() += 1;
        }
    }
    for (change, times) in &told {
        let may = expected.get(change).map_or(0, |(_, may)| *may);
        assert!(*times <= may, "{change:?} was delivered {times} times, and happened {may} times");
    }
    for (change, (must, _)) in expected {
        let times = told.get(change).copied().unwrap_or_default();
        assert!(
            times >= *must,
            "{change:?} was delivered {times} times, and happened {must} times"
        );
    }
}

/// Checks the messages of a chat, which have no ids: repeats have the same text, and the texts have as
/// many lines as changes occurred.
fn check_chat(expected: &BTreeMap<Told, (usize, usize)>, received: &[Received]) {
    let of_chat = received.iter().filter(|one| one.path == WATCH_CHAT && one.taken);
    let texts: BTreeSet<&str> = of_chat.filter_map(|one| one.body["text"].as_str()).collect();
    let mut total = 0;
    for text in texts {
        for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
            if let Some(more) = line.strip_prefix("and ") {
                let more = more.split(' ').next().and_then(|more| more.parse::<usize>().ok());
                total += more.expect("a number");
                continue;
            }
            let (name, words) = line.split_once("  ").expect("a name and what happened");
            assert!(expected.contains_key(&(name.to_owned(), words.to_owned())), "{line}");
            total += 1;
        }
    }
    let (must, may) = expected.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    assert!((must..=may).contains(&total), "{total} changes came, of {must} to {may}");
}

impl Rule {
    fn passes(&self, name: &str, date: Day, today: Day) -> bool {
        let (label, tld) = name.split_once('.').expect("a name");
        let periods = Periods::for_tld(tld);
        let release = periods.effective_release(date, None);
        let stage = Stage::on(today, release, periods.pending_delete_days, CATCH_DAYS);
        self.stages.contains(&stage)
            && (self.tlds.is_empty() || self.tlds.contains(&tld))
            && self.contains.as_ref().is_none_or(|text| name.contains(text))
            && self.max_length.is_none_or(|most| label.len() <= most)
    }

    /// Returns the drops that one channel received. Each drop has one id, and each id has one
    /// message.
    fn check(&self, path: &str, received: &[Received]) -> BTreeSet<Drop> {
        let mut messages: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut ids: BTreeMap<Drop, &str> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for one in received.iter().filter(|one| one.path == path) {
            let before = messages.insert(&one.id, &one.body);
            assert!(before.is_none_or(|before| before == &one.body), "{} twice: {one:?}", one.id);
            let data = &one.body["data"];
            assert_eq!(data["rule"]["id"], self.id, "{one:?}");
            let names = data["names"].as_array().expect("a list");
            assert_eq!(data["total"], names.len(), "{one:?}");
            for name in names {
                let date = name["dropDate"].as_str().and_then(|date| date.parse().ok());
                let name = name["domain"].as_str().expect("a name").to_owned();
                let drop = (name, date.expect("a date"));
                let id = *ids.entry(drop.clone()).or_insert(&one.id);
                assert_eq!(id, one.id, "{path} got {drop:?} in two messages");
                assert!(!self.past.contains(&drop), "{path} got a past drop: {drop:?}");
                assert!(self.told.contains(&drop), "{path} is not about {drop:?}");
                if one.taken {
                    taken.insert(drop);
                }
            }
        }
        taken
    }
}
