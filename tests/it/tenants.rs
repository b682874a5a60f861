//! The responses to one account never depend on another account: each request is sent in a world that
//! has the other account and in a world that does not, and the responses are equal, byte for byte.
//!
//! A world is a server of its own. Ids are random and clocks advance, so intended differences are
//! removed before comparing ([`World::plain`]): an account's own ids become their number in the order
//! of creation, times of day are replaced by one word, and `Date` is removed. Ids of other accounts
//! are kept: in the world without those accounts, they do not exist.
//!
//! Votes are the only data that accounts share: the totals of a name are the same for all.
//! Therefore no request concerns a name that another account votes on.
//!
//! `DROPDEX_SEED=<number>` repeats a run; `DROPDEX_FULL=1` takes 1,000,000 random steps, or as many as
//! fit into ten minutes.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::rng::Rng;
use crate::common::runs::{figure, full, say, seed, wait_for_the_next_millisecond};
use crate::common::{Client, Response, Server, Site, TODAY};

const PLANS: [&str; 4] = ["free", "core", "pro", "api"];
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Allowances that no run uses up, because responses to further requests would be the same in both
/// worlds.
const SETTINGS: &str = "\
[plans.core]
exports_per_day = 1000000000
[plans.pro]
requests_per_day = 1000000000
writes_per_minute = 1000000
exports_per_day = 1000000000
[plans.api]
requests_per_day = 1000000000
writes_per_minute = 1000000
exports_per_day = 1000000000
active_rules = 20
external_names = 20
";
const FACTS: &str = "/api/v1/facts";
/// Approximate number of objects of a kind that a tenant of the random walk keeps.
const KEPT_ABOUT: usize = 12;
const FULL_WALK_MAX: Duration = Duration::from_secs(600);

/// One server with some accounts.
struct World {
    site: Site,
    server: Server,
}

impl World {
    fn new(accounts: &[String]) -> (World, Vec<String>) {
        let site = Site::with_names(known(), TODAY);
        let settings = site.settings(SETTINGS);
        let plan = |account: &String| account.rsplit('-').next().unwrap_or_default().to_owned();
        let keys = accounts
            .iter()
            .map(|account| site.account(&format!("{account}@example.com"), &plan(account)))
            .collect();
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        (World { site, server }, keys)
    }

    fn tenant(&self, key: &str) -> Tenant {
        Tenant::new(self.server.client_with(key))
    }
}

fn known() -> impl Iterator<Item = String> {
    (0..12).map(|number| format!("known{number}.com"))
}

/// One account in one world.
struct Tenant {
    client: Client,
    /// Ids of the account's objects, in order of creation.
    ids: Vec<String>,
    places: HashMap<String, usize>,
}

/// A request, the same for every world.
#[derive(Clone, Debug)]
struct Ask {
    method: &'static str,
    /// `<n>` stands for the n-th id of the tenant.
    target: String,
    /// The body; `<n>` is replaced as in `target`.
    body: Option<String>,
    key: Option<String>,
}

impl Ask {
    fn new(method: &'static str, target: impl Into<String>) -> Ask {
        Ask { method, target: target.into(), body: None, key: None }
    }

    fn with(method: &'static str, target: impl Into<String>, body: &Value) -> Ask {
        Ask { body: Some(body.to_string()), ..Ask::new(method, target) }
    }

    /// Adds a file of facts.
    fn file(text: impl Into<String>) -> Ask {
        Ask { body: Some(text.into()), ..Ask::new("POST", FACTS) }
    }

    fn keyed(self, key: Option<String>) -> Ask {
        Ask { key, ..self }
    }
}

impl Tenant {
    fn new(client: Client) -> Tenant {
        Tenant { client, ids: Vec::new(), places: HashMap::new() }
    }

    fn ask(&mut self, ask: &Ask) -> Response {
        let mut headers = Vec::new();
        if let Some(key) = &ask.key {
            headers.push(("Idempotency-Key", key.as_str()));
        }
        let target = self.fill(&ask.target);
        let response = match &ask.body {
            Some(body) => {
                headers.push(("Content-Type", "application/json"));
                self.client.send_with(ask.method, &target, &headers, self.fill(body).as_bytes())
            }
            None => self.client.request(ask.method, &target, &headers),
        };
        self.learn(&response);
        response
    }

    /// Replaces each `<n>` with an id of the account, without the quotes that it has in JSON.
    fn fill(&self, text: &str) -> String {
        let Some((before, rest)) = text.split_once('<') else { return text.to_owned() };
        let Some((place, after)) = rest.split_once('>') else { return text.to_owned() };
        let place: usize = place.parse().expect("the place of an id");
        // An account that may not write has no ids, so it gets an id that does not exist.
        let id = self.ids.get(place).map_or("1", String::as_str);
        let (before, after) = match (before.strip_suffix('"'), after.strip_prefix('"')) {
            (Some(before), Some(after)) => (before, after),
            _ => (before, after),
        };
        format!("{before}{id}{after}")
    }

    /// Keeps the id that a response returns.
    fn learn(&mut self, response: &Response) {
        if response.status != 201 {
            return;
        }
        let Some(id) = response.json()["id"].as_u64().map(|id| id.to_string()) else { return };
        if !self.places.contains_key(&id) {
            self.places.insert(id.clone(), self.ids.len());
            self.ids.push(id);
        }
    }

    /// Returns a response without intended differences.
    fn plain(&self, response: &Response, method: &str) -> (u16, Vec<String>, String) {
        let length = response.number("content-length");
        if method != "HEAD" && length.is_some() {
            assert_eq!(length, Some(response.body.len() as i64));
        }
        let headers = response
            .headers
            .iter()
            .filter(|(name, _)| {
                // Ids are random, and ETags depend on the time at which the lists of a world were
                // ingested.
                !matches!(name.as_str(), "date" | "content-length" | "etag" | "x-request-id")
            })
            .map(|(name, value)| match (name.as_str(), value.split_once(", ")) {
                // What is left of a minute depends on the clock.
                ("ratelimit", Some((day, _))) => format!("{name}: {day}"),
                _ => format!("{name}: {}", self.plain_text(value)),
            })
            .collect();
        (response.status, headers, self.plain_text(response.text()))
    }

    fn plain_text(&self, text: &str) -> String {
        without_secrets(&without_uptime(&without_times(&self.without_ids(text))))
    }

    fn without_ids(&self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, number) = rest.split_at(at);
            let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
            let (number, after) = number.split_at(end);
            plain.push_str(before);
            match self.places.get(number) {
                Some(place) => plain.push_str(&format!("<{place}>")),
                None => plain.push_str(number),
            }
            rest = after;
        }
        plain + rest
    }
}

/// `2026-03-15T12:34:56.789Z` becomes `2026-03-15T<time>`.
fn without_times(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('T') {
        let (before, after) = rest.split_at(at + 1);
        plain.push_str(before);
        rest = after;
        if rest.get(..13).is_some_and(is_time) {
            plain.push_str("<time>");
            rest = &rest[13..];
        }
    }
    plain + rest
}

/// Whether the text is a time like `12:34:56.789Z`.
fn is_time(text: &str) -> bool {
    text.bytes().zip(*b"00:00:00.000Z").all(|(got, form)| match form {
        b'0' => got.is_ascii_digit(),
        form => got == form,
    })
}

fn without_uptime(text: &str) -> String {
    let Some((before, after)) = text.split_once("\"uptime\":") else { return text.to_owned() };
    format!("{before}\"uptime\":<s>{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn without_secrets(text: &str) -> String {
    let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let plain = without(text, "whsec_", base64);
    let plain = without(&plain, "/feeds/", |c| c.is_ascii_hexdigit());
    // Ids of deliveries are texts, and random like other ids.
    let plain = without(&plain, "\"id\":\"", |c| c.is_ascii_hexdigit());
    // Numbers of changes begin with the second in which the server of a world started.
    let plain = without(&plain, "\"next\":", |c| c.is_ascii_digit());
    without(&plain, "\"newest\":", |c| c.is_ascii_digit())
}

/// Returns the text without the values that follow each `mark`.
fn without(text: &str, mark: &str, is_secret: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(mark);
        plain.push_str("<secret>");
        plain.push_str(part.trim_start_matches(&is_secret));
    }
    plain
}

/// Sends the same request in both worlds. The responses must be equal; returns the one from the world
/// with both accounts.
#[track_caller]
fn ask_both(crowded: &mut Tenant, alone: &mut Tenant, ask: &Ask) -> Response {
    let (one, other) = (crowded.ask(ask), alone.ask(ask));
    let plain = (crowded.plain(&one, ask.method), alone.plain(&other, ask.method));
    assert_eq!(plain.0, plain.1, "{ask:?}\nin a crowded world, and alone");
    if one.status == 201 {
        wait_for_the_next_millisecond();
    }
    one
}

fn claim(domain: &str) -> Value {
    json!({ "domain": domain, "status": "caught", "acquiredPriceUsd": 12.5, "userNotes": "mine" })
}

fn rule(name: &str) -> Value {
    json!({
        "name": name,
        "filter": { "tlds": ["com"], "minDqs": 5, "maxLength": 20 },
        "channels": [{ "type": "webhook", "url": "https://hooks.example.com/a" }],
    })
}

fn watch(name: &str) -> Value {
    json!({ "domainName": name })
}

#[test]
fn responses_never_depend_on_other_accounts() {
    let subjects: Vec<String> = PLANS.iter().map(|plan| format!("subject-{plan}")).collect();
    let others: Vec<String> = PLANS.iter().map(|plan| format!("other-{plan}")).collect();
    let (crowded, keys) = World::new(&[others.as_slice(), &subjects].concat());
    let (alone, alone_keys) = World::new(&subjects);
    let mut owners: Vec<Tenant> = keys[2..4].iter().map(|key| crowded.tenant(key)).collect();
    owners.iter_mut().for_each(own_something);
    let delivery = owners.iter_mut().map(send_a_test).next_back().expect("two owners");
    let before: Vec<String> = owners.iter_mut().map(everything).collect();

    let foreign: Vec<String> = owners.iter().flat_map(|owner| owner.ids.clone()).collect();
    let asks = matrix(&paths(&crowded), &foreign, &delivery);
    let mut callers: Vec<(Tenant, Tenant)> = keys[4..]
        .iter()
        .zip(&alone_keys)
        .map(|(key, alone_key)| (crowded.tenant(key), alone.tenant(alone_key)))
        .collect();
    // No key, and a key that does not exist.
    let unknown = format!("ddx_{}", "0123456789abcdef".repeat(3));
    callers.push((crowded.tenant(&unknown), alone.tenant(&unknown)));
    let nobody = |world: &World| Tenant::new(world.server.client());
    callers.push((nobody(&crowded), nobody(&alone)));
    let mut statuses = BTreeSet::new();
    let mut asked = 0;
    for (one, other) in &mut callers {
        for ask in own_asks().iter().chain(&asks) {
            statuses.insert(ask_both(one, other, ask).status);
            asked += 1;
        }
    }
    // Data of other accounts is unchanged.
    let after: Vec<String> = owners.iter_mut().map(everything).collect();
    assert_eq!(after, before);
    say(&format!("{asked} requests in two worlds, {} foreign ids", foreign.len()));
    for status in [200, 201, 400, 401, 403, 404, 405, 409] {
        assert!(statuses.contains(&status), "no response was {status}: {statuses:?}");
    }
    drop((crowded.site, alone.site));
}

/// Adds claims, watches and rules that other accounts will request.
fn own_something(owner: &mut Tenant) {
    let shared = |name: &str| Some(name.to_owned());
    for ask in [
        Ask::with("POST", "/api/v1/portfolio", &claim("theirs.com")).keyed(shared("shared 1")),
        Ask::with("POST", "/api/v1/portfolio", &claim("known1.com")),
        Ask::with("POST", "/api/v1/alerts", &rule("theirs")).keyed(shared("shared 2")),
        Ask::with("POST", "/api/v1/alerts", &rule("theirs too")),
        Ask::with("POST", "/api/v1/watchlist", &watch("theirs.com")).keyed(shared("shared 3")),
        Ask::with("POST", "/api/v1/watchlist", &watch("known2.com")),
        Ask::file(
            "domain,acme.rank:int,acme.price:money:EUR\nknown1.com,3,12.50\nknown2.com,700,1\n",
        ),
    ] {
        let answer = owner.ask(&ask);
        assert_eq!(answer.status, 201, "{ask:?}: {}", answer.text());
    }
    assert_eq!(owner.ids.len(), 4);
}

/// Queues a test message and returns the id of the account's own delivery.
fn send_a_test(owner: &mut Tenant) -> String {
    let answer = owner.ask(&Ask::new("POST", "/api/v1/alerts/<2>/test"));
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.json()["deliveries"][0]["id"].as_str().expect("an id").to_owned()
}

/// Returns everything that an account can read of its own data. For deliveries, only the number is
/// compared, because they are attempted meanwhile.
fn everything(owner: &mut Tenant) -> String {
    let all = ["/api/v1/portfolio", "/api/v1/watchlist", "/api/v1/alerts", "/api/export/portfolio"]
        .map(|target| owner.client.get(target).text().to_owned())
        .concat();
    let target = owner.fill("/api/v1/alerts/<2>/deliveries");
    let sent = owner.client.get(&target).json();
    all + &format!("{} deliveries, {}", sent["count"], sent["deliveries"][0]["id"])
}

/// Requests about the caller's own data, so that not all of its responses are 404; the idempotency keys
/// are those that the other account used for other requests.
fn own_asks() -> Vec<Ask> {
    let shared = |name: &str| Some(name.to_owned());
    vec![
        Ask::with("POST", "/api/v1/portfolio", &claim("mine.com")).keyed(shared("shared 1")),
        Ask::with("POST", "/api/v1/alerts", &rule("mine")).keyed(shared("shared 2")),
        Ask::with("POST", "/api/v1/watchlist", &watch("mine.com")).keyed(shared("shared 3")),
        // The same request as the other account's, byte for byte.
        Ask::with("POST", "/api/v1/portfolio", &claim("theirs.com")).keyed(shared("shared 1")),
        Ask::with("PUT", "/api/v1/domain/known0.com/feedback", &json!({ "vote": "up" })),
        Ask::new("GET", "/api/v1/portfolio/<0>"),
        Ask::new("GET", "/api/v1/alerts/<1>"),
        // The second half of the questions meets facts of the caller under the same name.
        Ask::new("GET", FACTS),
    ]
    .into_iter()
    .chain(bisection())
    .chain([Ask::file("domain,acme.rank:int\nknown2.com,5\n"), Ask::new("GET", FACTS)])
    .chain(bisection())
    .chain([Ask::new("DELETE", "/api/v1/facts/acme"), Ask::new("GET", FACTS)])
    .collect()
}

/// Questions whose answers would find out the facts of another account: by filter, order, count, facet, column,
/// export, rule, search and event.
fn bisection() -> Vec<Ask> {
    let mut asks = Vec::new();
    for condition in [
        "fact.acme.rank=1..500",
        "fact.acme.rank=3",
        "fact.acme.rank=501..",
        "fact.acme.price=..12.50",
        "has=acme.rank",
        "has=!acme.price",
        "sort=fact:acme.rank",
        "sort=fact:acme.price&order=asc",
        "facts=acme.rank,acme.price",
        "has=acme.rank&facets=tld,dqs&total=exact",
    ] {
        asks.push(Ask::new("GET", format!("/api/v1/drops?view=all&{condition}")));
        asks.push(Ask::new("GET", format!("/api/export/drops?view=all&{condition}")));
        if !condition.contains("sort")
            && !condition.contains("facts=")
            && !condition.contains("facets")
        {
            asks.push(Ask::new("GET", format!("/api/v1/search?q=known&{condition}")));
            asks.push(Ask::new("GET", format!("/api/v1/changes?{condition}")));
        }
    }
    for filter in [
        json!({ "facts": ["acme.rank:1..500"] }),
        json!({ "has": ["acme.rank"] }),
        json!({ "has": ["!acme.price"] }),
    ] {
        let named = json!({ "name": "guess", "filter": filter });
        asks.push(Ask::with("POST", "/api/v1/searches", &named));
        asks.push(Ask::with("POST", "/api/v1/alerts/preview", &json!({ "filter": filter })));
        asks.push(Ask::with("POST", "/api/v1/alerts/backtest", &json!({ "filter": filter })));
        let queries = json!({ "queries": [{ "q": "known", "fact": "acme.rank:1..500" }] });
        asks.push(Ask::with("POST", "/api/v1/search/batch", &queries));
    }
    asks
}

/// Returns every path in the service's index, with its parameters in braces.
fn paths(world: &World) -> BTreeSet<String> {
    let (status, index) = world.server.client().get("/api/v1").answer();
    assert_eq!(status, 200, "{index}");
    let endpoints = index["endpoints"].as_array().expect("a list");
    let path = |endpoint: &Value| endpoint["path"].as_str().expect("a path").to_owned();
    let paths: BTreeSet<String> = endpoints.iter().map(path).collect();
    for path in [
        "/api/v1/portfolio",
        "/api/v1/portfolio/{id}",
        "/api/v1/watchlist",
        "/api/v1/alerts",
        "/api/v1/alerts/{id}",
        "/api/v1/alerts/{id}/deliveries",
        "/api/v1/alerts/{id}/deliveries/{delivery}/retry",
        "/api/v1/alerts/{id}/secrets",
        "/api/v1/alerts/{id}/test",
        "/unsubscribe/{delivery}",
        "/api/v1/domain/{name}/feedback",
        "/api/export/portfolio",
        "/api/export/watchlist",
    ] {
        assert!(paths.contains(path), "the index does not name {path}: {paths:?}");
    }
    paths
}

/// Every combination of path, method, foreign id or name, and body.
///
/// The id of a delivery is also tried in unsubscribe links, whose holder needs no account. The id is
/// not the secret of a mail, so nothing happens.
fn matrix(paths: &BTreeSet<String>, foreign: &[String], delivery: &str) -> Vec<Ask> {
    let id = foreign[0].parse::<u64>().expect("ids are numbers");
    let bodies = [
        json!({}),
        claim("theirs.com"),
        json!({ "domain": "new.com", "status": "lost", "alertRuleId": id }),
        json!({ "userNotes": "changed" }),
        json!({ "active": false }),
        // No vote: the totals of a name are the same for all.
        watch("theirs.com"),
        rule("theirs"),
    ];
    let mut asks = Vec::new();
    for path in paths {
        let written = ["portfolio", "watchlist", "alerts", "feedback"];
        let written = path.starts_with("/api/v1/") && written.iter().any(|it| path.contains(it));
        // If no list exists, one body suffices to show it.
        let bodies = if written { &bodies[..] } else { &bodies[..1] };
        for target in targets(&path.replace("{delivery}", delivery), foreign) {
            for method in METHODS {
                asks.push(Ask::new(method, &target));
                if matches!(method, "POST" | "PUT" | "PATCH") {
                    asks.extend(bodies.iter().map(|body| Ask::with(method, &target, body)));
                }
            }
        }
    }
    asks
}

/// Returns a path with foreign ids and names in its parameters, and with queries that contain them.
fn targets(path: &str, foreign: &[String]) -> Vec<String> {
    let names = ["theirs.com", "known1.com", "known2.com"];
    if path.contains("{id}") {
        return foreign.iter().map(|id| path.replace("{id}", id)).collect();
    }
    if path.contains("{name}") {
        return names.iter().map(|name| path.replace("{name}", name)).collect();
    }
    vec![path.to_owned(), format!("{path}?domain=theirs.com&q=theirs.com&limit=1&offset=1")]
}

#[test]
fn steps_of_two_tenants_in_any_order_have_the_responses_of_one_tenant() {
    let mut rng = Rng::new(seed());
    let accounts = ["first-api".to_owned(), "second-pro".to_owned()];
    let (crowded, keys) = World::new(&accounts);
    let mut walkers = Vec::new();
    for (at, account) in accounts.iter().enumerate() {
        let (alone, alone_keys) = World::new(std::slice::from_ref(account));
        let pair = (crowded.tenant(&keys[at]), alone.tenant(&alone_keys[0]));
        walkers.push(Walker {
            at,
            pair,
            claims: vec![],
            rules: vec![],
            names: vec![],
            _alone: alone,
        });
    }
    let steps = figure(2_500, 1_000_000);
    let deadline = Instant::now() + FULL_WALK_MAX;
    let mut taken = 0;
    let mut found = 0;
    while taken < steps && (!full() || Instant::now() < deadline) {
        let at = rng.below(2);
        let foreign = walkers[1 - at].foreign(&mut rng);
        found += usize::from(walkers[at].step(&mut rng, foreign) < 300);
        taken += 1;
    }
    say(&format!("{taken} steps, {found} of them carried out"));
    assert!(found * 2 > taken, "{found} of {taken} steps were carried out");
}

/// A tenant of the random walk, in the shared world and in a world of its own.
struct Walker {
    at: usize,
    pair: (Tenant, Tenant),
    /// Positions of existing claims among the tenant's ids.
    claims: Vec<usize>,
    rules: Vec<usize>,
    names: Vec<String>,
    /// Keeps its server running.
    _alone: World,
}

/// An id and a name of the other tenant in the shared world.
struct Foreign {
    claim: Option<String>,
    rule: Option<String>,
    name: Option<String>,
}

impl Walker {
    fn foreign(&self, rng: &mut Rng) -> Foreign {
        let id = |rng: &mut Rng, places: &[usize]| {
            (!places.is_empty()).then(|| self.pair.0.ids[*rng.pick(places)].clone())
        };
        Foreign {
            claim: id(rng, &self.claims),
            rule: id(rng, &self.rules),
            name: (!self.names.is_empty()).then(|| rng.pick(&self.names).clone()),
        }
    }

    /// Runs one step on both servers, compares, and returns its status.
    fn step(&mut self, rng: &mut Rng, foreign: Foreign) -> u16 {
        match rng.below(12) {
            0 => self.add_claim(rng, &foreign),
            1 => self.add_rule(rng),
            2 => self.add_watch(rng),
            3 => self.change(rng),
            4 => self.remove(rng),
            5 | 6 => self.trespass(rng, foreign),
            7 => self.vote(rng),
            8 => self.read_one(rng),
            _ => self.read_list(rng),
        }
    }

    fn ask(&mut self, ask: &Ask) -> Response {
        let (crowded, alone) = &mut self.pair;
        ask_both(crowded, alone, ask)
    }

    /// Sends a POST; returns its status and the index of the new id, if any.
    fn post(&mut self, ask: &Ask) -> (u16, Option<usize>) {
        let before = self.pair.0.ids.len();
        let status = self.ask(ask).status;
        (status, (self.pair.0.ids.len() > before).then_some(before))
    }

    /// Draws an idempotency key; both tenants use the same few keys repeatedly.
    fn key(rng: &mut Rng) -> Option<String> {
        rng.chance(30).then(|| format!("key {}", rng.below(40)))
    }

    /// Draws a name; both tenants use the same few names.
    fn name(rng: &mut Rng) -> String {
        let number = rng.below(24);
        if number < 12 { format!("known{number}.com") } else { format!("other{number}.com") }
    }

    fn add_claim(&mut self, rng: &mut Rng, foreign: &Foreign) -> u16 {
        let mut body = claim(&Walker::name(rng));
        match (&foreign.rule, rng.below(4)) {
            (Some(rule), 0) => body["alertRuleId"] = rule.parse().expect("ids are numbers"),
            (_, 1) if !self.rules.is_empty() => {
                body["alertRuleId"] = json!(format!("<{}>", rng.pick(&self.rules)));
            }
            _ => {}
        }
        let ask = Ask::with("POST", "/api/v1/portfolio", &body).keyed(Walker::key(rng));
        let (status, place) = self.post(&ask);
        self.claims.extend(place);
        status
    }

    fn add_rule(&mut self, rng: &mut Rng) -> u16 {
        let body = rule(&format!("rule {}", rng.below(5)));
        let ask = Ask::with("POST", "/api/v1/alerts", &body).keyed(Walker::key(rng));
        let (status, place) = self.post(&ask);
        self.rules.extend(place);
        status
    }

    fn add_watch(&mut self, rng: &mut Rng) -> u16 {
        let name = Walker::name(rng);
        let ask = Ask::with("POST", "/api/v1/watchlist", &watch(&name)).keyed(Walker::key(rng));
        let status = self.ask(&ask).status;
        if status == 201 && !self.names.contains(&name) {
            self.names.push(name);
        }
        status
    }

    fn change(&mut self, rng: &mut Rng) -> u16 {
        if rng.chance(50) && !self.rules.is_empty() {
            let target = format!("/api/v1/alerts/<{}>", rng.pick(&self.rules));
            return self
                .ask(&Ask::with("PATCH", target, &json!({ "active": rng.chance(50) })))
                .status;
        }
        if self.claims.is_empty() {
            return self.read_list(rng);
        }
        let target = format!("/api/v1/portfolio/<{}>", rng.pick(&self.claims));
        let status = *rng.pick(&["attempted", "caught", "registered", "lost", "sold"]);
        let body = json!({ "status": status, "userNotes": format!("note {}", rng.below(9)) });
        self.ask(&Ask::with("PATCH", target, &body)).status
    }

    /// Removes an object of a kind of which there are more than the number to keep or, without one,
    /// any object.
    fn remove(&mut self, rng: &mut Rng) -> u16 {
        let longest = self.claims.len().max(self.rules.len()).max(self.names.len());
        if longest == 0 {
            return self.read_list(rng);
        }
        let mut status = 0;
        for _ in 0..1 + longest.saturating_sub(KEPT_ABOUT) {
            status = self.remove_of_longest(rng);
        }
        status
    }

    fn remove_of_longest(&mut self, rng: &mut Rng) -> u16 {
        let (claims, rules, names) = (self.claims.len(), self.rules.len(), self.names.len());
        if names >= claims && names >= rules {
            let name = self.names.swap_remove(rng.below(names));
            return self
                .ask(&Ask::new("DELETE", format!("/api/v1/watchlist?domain={name}")))
                .status;
        }
        if claims >= rules {
            let place = self.claims.swap_remove(rng.below(claims));
            return self.ask(&Ask::new("DELETE", format!("/api/v1/portfolio/<{place}>"))).status;
        }
        let place = self.rules.swap_remove(rng.below(rules));
        self.ask(&Ask::new("DELETE", format!("/api/v1/alerts/<{place}>"))).status
    }

    /// Reads, changes or removes an object of the other tenant.
    fn trespass(&mut self, rng: &mut Rng, foreign: Foreign) -> u16 {
        let method = *rng.pick(&["GET", "PATCH", "DELETE"]);
        let target = match (rng.below(3), foreign) {
            (0, Foreign { claim: Some(id), .. }) => format!("/api/v1/portfolio/{id}"),
            (1, Foreign { rule: Some(id), .. }) => format!("/api/v1/alerts/{id}"),
            (_, Foreign { name: Some(name), .. }) if !self.names.contains(&name) => {
                return self
                    .ask(&Ask::new("DELETE", format!("/api/v1/watchlist?domain={name}")))
                    .status;
            }
            _ => return self.read_list(rng),
        };
        if method != "PATCH" {
            return self.ask(&Ask::new(method, target)).status;
        }
        let body =
            if target.contains("alerts") { json!({ "active": false }) } else { claim("x.com") };
        self.ask(&Ask::with(method, target, &body)).status
    }

    /// Votes on a name that only this tenant uses, because the totals of a name are the same for
    /// all.
    fn vote(&mut self, rng: &mut Rng) -> u16 {
        let name = format!("known{}.com", self.at * 6 + rng.below(6));
        if rng.chance(30) {
            return self.ask(&Ask::new("GET", format!("/api/v1/domain/{name}"))).status;
        }
        let vote = json!({ "vote": rng.pick(&[Some("up"), Some("down"), None]) });
        self.ask(&Ask::with("PUT", format!("/api/v1/domain/{name}/feedback"), &vote)).status
    }

    fn read_one(&mut self, rng: &mut Rng) -> u16 {
        match rng.below(2) {
            0 if !self.claims.is_empty() => {
                let target = format!("/api/v1/portfolio/<{}>", rng.pick(&self.claims));
                self.ask(&Ask::new("GET", target)).status
            }
            1 if !self.rules.is_empty() => {
                let target = format!("/api/v1/alerts/<{}>", rng.pick(&self.rules));
                self.ask(&Ask::new("GET", target)).status
            }
            _ => self.read_list(rng),
        }
    }

    fn read_list(&mut self, rng: &mut Rng) -> u16 {
        let page = format!("limit={}&offset={}", 1 + rng.below(20), rng.below(3));
        let target = match rng.below(7) {
            0 => format!("/api/v1/portfolio?{page}"),
            1 => format!("/api/v1/portfolio?status=caught,sold&from={TODAY}"),
            2 => format!("/api/v1/alerts?{page}"),
            3 => {
                let sort = rng.pick(&["lifecycle", "name", "dqs", "added"]);
                format!("/api/v1/watchlist?{page}&sort={sort}")
            }
            4 => "/api/export/watchlist".into(),
            5 => format!("/api/export/portfolio?{page}"),
            _ => "/api/v1/drops?limit=3".into(),
        };
        self.ask(&Ask::new("GET", target)).status
    }
}
