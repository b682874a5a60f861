//! 64 concurrent requests at every limit: exactly as many succeed as the limit allows, and a repeated
//! request takes effect once.
//!
//! `DROPDEX_SEED=<number>` repeats the choices of a run; `DROPDEX_FULL=1` runs each race 1,000 times or
//! more and fills a portfolio to its 100,000 claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::{Client, Response, Server, Site, TODAY};

/// Concurrent requests, each on its own connection.
const CROWD: usize = 64;
const RULES: usize = 5;
const EXTERNAL: usize = 6;
const REQUESTS: usize = 7;
const EXPORTS: usize = 3;
/// Daily limit of test messages in every plan.
const TESTS: usize = 30;
const WATCHES_MAX: usize = 10_000;
const CLAIMS_MAX: usize = 100_000;

struct World {
    site: Site,
    server: Server,
    key: String,
    rng: Rng,
}

impl World {
    /// Starts a server with small caps in plan `api` and small daily limits in plan `pro`.
    fn new() -> World {
        World::with(RULES, EXTERNAL, 1)
    }

    /// Starts a server with other caps and this many names in its corpus.
    fn with(rules: usize, external: usize, known: usize) -> World {
        let seed = seed();
        let site = Site::with_names((0..known).map(|number| format!("name{number}.com")), TODAY);
        let settings = site.settings(&format!(
            "[plans.api]\nrequests_per_day = 1000000000\nwrites_per_minute = 1000000\nexports_per_day = 1000000000\nconcurrent_exports = 1000\n\
             active_rules = {rules}\nexternal_names = {external}\n\
             [plans.pro]\nrequests_per_day = {REQUESTS}\nwrites_per_minute = 1000000\nexports_per_day = {EXPORTS}\n\
             concurrent_exports = 1000\n"
        ));
        let key = site.account("owner@example.com", "api");
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { site, server, key, rng: Rng::new(seed) }
    }

    fn client(&self) -> Client {
        self.server.client_with(&self.key)
    }

    fn crowd(&self, key: &str) -> Vec<Client> {
        (0..CROWD).map(|_| self.server.client_with(key)).collect()
    }

    fn read(&self, target: &str) -> Value {
        let (status, body) = self.client().get(target).answer();
        assert_eq!(status, 200, "{target}: {body}");
        body
    }
}

/// The request of each client.
#[derive(Clone, Debug)]
struct Sent {
    method: &'static str,
    target: String,
    body: Option<Value>,
    key: Option<String>,
}

impl Sent {
    fn get(target: &str) -> Sent {
        Sent { method: "GET", target: target.to_owned(), body: None, key: None }
    }

    fn with(method: &'static str, target: &str, body: Value) -> Sent {
        Sent { method, target: target.to_owned(), body: Some(body), key: None }
    }

    fn keyed(self, key: &str) -> Sent {
        Sent { key: Some(key.to_owned()), ..self }
    }

    fn send(&self, client: &mut Client) -> Response {
        let mut headers = Vec::new();
        if let Some(key) = &self.key {
            headers.push(("Idempotency-Key", key.as_str()));
        }
        match &self.body {
            Some(body) => {
                headers.push(("Content-Type", "application/json"));
                client.send_with(self.method, &self.target, &headers, body.to_string().as_bytes())
            }
            None => client.request(self.method, &self.target, &headers),
        }
    }
}

/// Sends all requests at once and returns the responses in the order of `all`.
fn at_once(crowd: &mut [Client], all: &[Sent]) -> Vec<Response> {
    assert_eq!(crowd.len(), all.len());
    let start = Barrier::new(all.len());
    thread::scope(|scope| {
        let sent: Vec<_> = crowd
            .iter_mut()
            .zip(all)
            .map(|(client, sent)| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    sent.send(client)
                })
            })
            .collect();
        sent.into_iter().map(|one| one.join().expect("an answer")).collect()
    })
}

#[track_caller]
fn assert_plan_limit(response: &Response) {
    let (status, body) = response.answer();
    assert_eq!((status, &body["code"]), (403, &json!("PLAN_LIMIT")), "{body}");
    assert!(body["error"].is_string(), "{body}");
}

fn rule(number: usize) -> Value {
    json!({ "name": format!("rule {number}"), "filter": {}, "channels": [{ "type": "email" }] })
}

#[test]
fn active_rules_never_exceed_their_cap() {
    let mut world = World::new();
    let mut crowd = world.crowd(&world.key.clone());
    let rounds = figure(20, 1_000);
    for round in 0..rounds {
        let room = world.rng.between(1, RULES as i32) as usize;
        let idle = make_room_for_rules(&world, room);
        let all: Vec<Sent> = (0..CROWD)
            .map(|at| match idle.get(at) {
                Some(id) => {
                    let target = format!("/api/v1/alerts/{id}");
                    Sent::with("PATCH", &target, json!({ "active": true }))
                }
                None => Sent::with("POST", "/api/v1/alerts", rule(round * CROWD + at)),
            })
            .collect();
        let answers = at_once(&mut crowd, &all);
        let (done, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.status < 300);
        assert_eq!(done.len(), room, "round {round}, {} idle rules", idle.len());
        refused.iter().for_each(|answer| assert_plan_limit(answer));
        let alerts = world.read("/api/v1/alerts?limit=1000");
        assert_eq!(active(&alerts).len(), RULES, "round {round}: {alerts}");
    }
    say(&format!("{rounds} rounds of {CROWD} requests"));
}

#[test]
fn test_messages_never_exceed_their_day() {
    let world = World::new();
    let mut crowd = world.crowd(&world.key.clone());
    let channels = json!([{ "type": "email" }, { "type": "telegram", "chatId": 1 }]);
    let rule = json!({ "name": "n", "filter": {}, "channels": channels });
    let added = world.client().send("POST", "/api/v1/alerts", &rule).json();
    let one = format!("/api/v1/alerts/{}", added["id"]);
    let test = Sent { method: "POST", ..Sent::get(&format!("{one}/test")) };
    let answers = at_once(&mut crowd, &vec![test; CROWD]);
    let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 202);
    assert_eq!(done.len(), TESTS / 2);
    for answer in refused {
        let (status, body) = answer.answer();
        assert_eq!((status, &body["code"]), (429, &json!("test_limit")), "{body}");
    }
    let listed = world.read(&format!("{one}/deliveries"));
    assert_eq!(listed["count"], TESTS, "{listed}");
}

/// Leaves `RULES - room` rules active and some inactive, and returns the inactive ones.
fn make_room_for_rules(world: &World, room: usize) -> Vec<u64> {
    let mut client = world.client();
    let alerts = world.read("/api/v1/alerts?limit=1000");
    for (at, id) in active(&alerts).into_iter().enumerate().skip(RULES - room) {
        let target = format!("/api/v1/alerts/{id}");
        let answer = if at % 2 == 0 {
            client.request("DELETE", &target, &[])
        } else {
            client.send("PATCH", &target, &json!({ "active": false }))
        };
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let alerts = world.read("/api/v1/alerts?limit=1000");
    for number in active(&alerts).len()..RULES - room {
        let answer = client.send("POST", "/api/v1/alerts", &rule(number));
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let all = alerts["alerts"].as_array().expect("a list");
    let idle = all.iter().filter(|rule| rule["active"] == json!(false));
    let idle: Vec<u64> = idle.map(|rule| rule["id"].as_u64().expect("an id")).collect();
    // Only half a crowd of idle rules remains, so that a long run does not reach the cap on rules.
    for id in idle.iter().skip(CROWD / 2) {
        let answer = client.request("DELETE", &format!("/api/v1/alerts/{id}"), &[]);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    idle.into_iter().take(CROWD / 2).collect()
}

fn active(alerts: &Value) -> Vec<u64> {
    let all = alerts["alerts"].as_array().expect("a list").iter();
    let active = all.filter(|rule| rule["active"] == json!(true));
    active.map(|rule| rule["id"].as_u64().expect("an id")).collect()
}

#[test]
fn external_names_never_exceed_their_quota() {
    let mut world = World::new();
    let mut crowd = world.crowd(&world.key.clone());
    let rounds = figure(20, 1_000);
    for round in 0..rounds {
        let room = world.rng.between(1, EXTERNAL as i32) as usize;
        make_room_on_watchlist(&world, EXTERNAL - room, round);
        // There are fewer names than requests, so some are repeated.
        let choices = world.rng.between(2, CROWD as i32) as usize;
        let names: Vec<String> =
            (0..CROWD).map(|_| format!("r{round}n{}.com", world.rng.below(choices))).collect();
        let all: Vec<Sent> = names
            .iter()
            .map(|name| Sent::with("POST", "/api/v1/watchlist", json!({ "domainName": name })))
            .collect();
        let answers = at_once(&mut crowd, &all);
        let taken = names_taken(&names, &answers);
        let different: BTreeSet<&String> = names.iter().collect();
        assert_eq!(taken, room.min(different.len()), "round {round}: {names:?}");
        let summary = world.read("/api/v1/watchlist")["summary"].clone();
        assert_eq!(summary["external"], json!(EXTERNAL - room + taken), "{summary}");
    }
    say(&format!("{rounds} rounds of {CROWD} requests"));
}

/// Returns how many names were added. Each name was added once and found afterwards, or there was
/// never room for it.
#[track_caller]
fn names_taken(names: &[String], answers: &[Response]) -> usize {
    let mut by_name: BTreeMap<&String, Vec<u16>> = BTreeMap::new();
    for (name, answer) in names.iter().zip(answers) {
        by_name.entry(name).or_default().push(answer.status);
        if answer.status == 403 {
            assert_plan_limit(answer);
        }
    }
    let mut taken = 0;
    for (name, statuses) in &mut by_name {
        statuses.sort_unstable();
        let again = vec![200; statuses.len() - 1];
        let (added, refused) = ([again, vec![201]].concat(), vec![403; statuses.len()]);
        assert!(*statuses == added || *statuses == refused, "{name}: {statuses:?}");
        taken += usize::from(*statuses == added);
    }
    taken
}

/// Removes external names until exactly `kept` are left.
fn make_room_on_watchlist(world: &World, kept: usize, round: usize) {
    let mut client = world.client();
    let list = world.read("/api/v1/watchlist");
    let names = list["watchlist"].as_array().expect("a list");
    for entry in names.iter().skip(kept) {
        let name = entry["domain"].as_str().expect("a name");
        let target = format!("/api/v1/watchlist?domain={name}");
        assert_eq!(client.request("DELETE", &target, &[]).status, 200, "{name}");
    }
    for number in names.len()..kept {
        let name = json!({ "domainName": format!("r{round}kept{number}.com") });
        let answer = client.send("POST", "/api/v1/watchlist", &name);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
}

#[test]
fn concurrent_posts_with_one_idempotency_key_take_effect_once() {
    let world = World::with(1_000, 1_000, 1);
    let mut crowd = world.crowd(&world.key.clone());
    let rounds = figure(20, 1_000);
    for round in 0..rounds {
        let key = format!("key {round}");
        let (target, body) = match round % 3 {
            0 => {
                let domain = format!("once{round}.com");
                ("/api/v1/portfolio", json!({ "domain": domain, "status": "attempted" }))
            }
            1 => ("/api/v1/alerts", rule(round)),
            _ => ("/api/v1/watchlist", json!({ "domainName": format!("once{round}.com") })),
        };
        let all = vec![Sent::with("POST", target, body).keyed(&key); CROWD];
        let answers = at_once(&mut crowd, &all);
        assert_one_effect(&answers.iter().collect::<Vec<_>>());
        assert_eq!(objects_made(&world, target, round), 1, "round {round}");
        clear(&world, target, round);
    }
    say(&format!("{rounds} rounds of {CROWD} requests"));
}

#[test]
fn different_requests_with_one_idempotency_key_take_effect_once() {
    let mut world = World::with(1_000, 1_000, 1);
    let mut crowd = world.crowd(&world.key.clone());
    let rounds = figure(10, 1_000);
    for round in 0..rounds {
        let key = format!("key {round}");
        let all: Vec<Sent> = (0..CROWD)
            .map(|_| {
                let notes = *world.rng.pick(&["this", "that"]);
                let body = json!({ "domain": format!("once{round}.com"), "status": "caught",
                                   "userNotes": notes });
                Sent::with("POST", "/api/v1/portfolio", body).keyed(&key)
            })
            .collect();
        let answers = at_once(&mut crowd, &all);
        let first = answers.iter().position(|answer| answer.status == 201).expect("one is done");
        let (same, other): (Vec<_>, Vec<_>) =
            all.iter().zip(&answers).partition(|(sent, _)| sent.body == all[first].body);
        assert_one_effect(&same.into_iter().map(|(_, answer)| answer).collect::<Vec<_>>());
        for (_, answer) in other {
            let (status, body) = answer.answer();
            assert_eq!(status, 409, "round {round}: {body}");
            assert!(body["error"].is_string(), "{body}");
        }
        assert_eq!(objects_made(&world, "/api/v1/portfolio", round), 1, "round {round}");
        clear(&world, "/api/v1/portfolio", round);
    }
}

/// Asserts that all responses are equal byte for byte, and all but one marked as replayed.
#[track_caller]
fn assert_one_effect(answers: &[&Response]) {
    let bodies: BTreeSet<(u16, &str)> =
        answers.iter().map(|answer| (answer.status, answer.text())).collect();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(bodies.first().map(|(status, _)| *status), Some(201), "{bodies:?}");
    let copies = answers
        .iter()
        .filter(|answer| answer.header("idempotency-replayed") == Some("true"))
        .count();
    assert_eq!(copies, answers.len() - 1);
}

fn objects_made(world: &World, target: &str, round: usize) -> usize {
    let (list, member, name) = named(target, round);
    let body = world.read(&format!("{target}?limit=1000"));
    let rows = body[list].as_array().expect("a list");
    rows.iter().filter(|row| row[member] == json!(name)).count()
}

/// Removes the objects of the round, so that a long run does not reach a cap.
fn clear(world: &World, target: &str, round: usize) {
    let (list, member, name) = named(target, round);
    let body = world.read(&format!("{target}?limit=1000"));
    let rows = body[list].as_array().expect("a list");
    let row = rows.iter().find(|row| row[member] == json!(name)).expect("it was made");
    let target = match row["id"].as_u64() {
        Some(id) => format!("{target}/{id}"),
        None => format!("{target}?domain={name}"),
    };
    let answer = world.client().request("DELETE", &target, &[]);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn named(target: &str, round: usize) -> (&'static str, &'static str, String) {
    match target {
        "/api/v1/alerts" => ("alerts", "name", format!("rule {round}")),
        "/api/v1/watchlist" => ("watchlist", "domain", format!("once{round}.com")),
        _ => ("claims", "domain", format!("once{round}.com")),
    }
}

#[test]
fn the_last_requests_of_a_day_are_granted_once() {
    last_of_the_day("/api/v1/alerts", REQUESTS, figure(10, 1_000));
}

#[test]
fn the_last_exports_of_a_day_are_granted_once() {
    last_of_the_day("/api/export/portfolio", EXPORTS, figure(10, 1_000));
}

/// Every round needs a new account, because used requests stay used.
fn last_of_the_day(target: &str, limit: usize, rounds: usize) {
    let world = World::new();
    for round in 0..rounds {
        let key = world.site.account(&format!("r{round}@example.com"), "pro");
        let answers = at_once(&mut world.crowd(&key), &vec![Sent::get(target); CROWD]);
        let (granted, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.status == 200);
        let mut left: Vec<i64> =
            granted.iter().filter_map(|answer| answer.number("x-ratelimit-remaining")).collect();
        left.sort_unstable();
        assert_eq!(granted.len(), limit, "round {round}: {left:?}");
        let each_once: Vec<i64> = (0..limit as i64).collect();
        assert_eq!(left, each_once, "round {round}");
        for answer in refused {
            let (status, body) = answer.answer();
            let named = (status, &body["error"], &body["plan"], &body["limit"]);
            let expected = (429, &json!("rate limit exceeded"), &json!("pro"), &json!(limit));
            assert_eq!(named, expected, "{body}");
        }
    }
    say(&format!("{rounds} rounds of {CROWD} requests"));
}

#[test]
fn a_replaced_key_never_works_after_the_response() {
    let world = World::new();
    let mut key = world.key.clone();
    let rounds = figure(10, 2_000);
    for round in 0..rounds {
        let new = while_asked(&world, &key, || world.site.new_key("owner@example.com"));
        assert_eq!(world.server.client_with(&new).get("/api/v1/alerts").status, 200, "{round}");
        key = new;
    }
    while_asked(&world, &key, || world.site.ok(&["account", "disable", "owner@example.com"]));
    say(&format!("{rounds} keys replaced under requests"));
}

/// Runs `change` while many clients send requests with `key`. A request that begins after the response
/// to the change must be refused. Before that, both outcomes are correct, but no success may follow a
/// refusal.
fn while_asked<T>(world: &World, key: &str, change: impl FnOnce() -> T) -> T {
    let changed = AtomicBool::new(false);
    let asking = Barrier::new(CROWD / 4 + 1);
    thread::scope(|scope| {
        for mut client in world.crowd(key).into_iter().take(CROWD / 4) {
            let (changed, asking) = (&changed, &asking);
            scope.spawn(move || {
                assert_eq!(client.get("/api/v1/alerts").status, 200, "before the change");
                asking.wait();
                let mut refused = false;
                loop {
                    let last = changed.load(Ordering::SeqCst);
                    let status = client.get("/api/v1/alerts").status;
                    let right = if refused || last {
                        status == 401
                    } else {
                        status == 200 || status == 401
                    };
                    assert!(right, "{status}; changed: {last}, refused before: {refused}");
                    refused = status == 401;
                    if last {
                        return;
                    }
                }
            });
        }
        asking.wait();
        let made = change();
        changed.store(true, Ordering::SeqCst);
        made
    })
}

/// Caps that are not settings. At the small size, only the unit tests of `accounts` cover them.
#[test]
#[ignore = "fills 10,000 names and 100,000 claims over HTTP: a minute and more; in the full run"]
fn watchlists_and_portfolios_never_exceed_their_caps() {
    // Names of the corpus consume no quota.
    let world = World::with(RULES, EXTERNAL, WATCHES_MAX + CROWD);
    fill_to(&world, WATCHES_MAX, &|number| {
        let name = json!({ "domainName": format!("name{number}.com") });
        Sent::with("POST", "/api/v1/watchlist", name)
    });
    let summary = world.read("/api/v1/watchlist?limit=1")["summary"].clone();
    assert_eq!(summary["total"], json!(WATCHES_MAX));
    fill_to(&world, CLAIMS_MAX, &|number| {
        let claim = json!({ "domain": format!("name{number}.com"), "status": "caught" });
        Sent::with("POST", "/api/v1/portfolio", claim)
    });
    let last = world.read(&format!("/api/v1/portfolio?limit=1000&offset={}", CLAIMS_MAX - 1));
    assert_eq!(last["count"], json!(1));
}

/// Adds objects concurrently up to `cap`; only as many of the last requests succeed as there is
/// room for.
fn fill_to(world: &World, cap: usize, add: &(dyn Fn(usize) -> Sent + Sync)) {
    let room = CROWD / 2;
    let mut crowd = world.crowd(&world.key);
    thread::scope(|scope| {
        for (at, client) in crowd.iter_mut().enumerate() {
            scope.spawn(move || {
                for number in (at..cap - room).step_by(CROWD) {
                    let answer = add(number).send(client);
                    assert_eq!(answer.status, 201, "{number}: {}", answer.text());
                }
            });
        }
    });
    let all: Vec<Sent> = (cap..cap + CROWD).map(add).collect();
    let answers = at_once(&mut crowd, &all);
    let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 201);
    assert_eq!(done.len(), room);
    refused.iter().for_each(|answer| assert_plan_limit(answer));
}
