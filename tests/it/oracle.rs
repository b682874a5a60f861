//! The oracle: a generated corpus, ingested and served by the real binary, receives hundreds of random
//! queries over HTTP, and every complete response is compared with a plain recomputation.
//!
//! `DROPDEX_SEED=<number>` repeats a run; the seed is printed and is part of every failure. Where the
//! specification leaves something open, a comment `Choice:` states the expectation.

mod anywhere;
mod corpus;
mod model;
mod queries;

use std::collections::{BTreeMap, BTreeSet};

use dropdex::query::conditions::CONDITIONS;
use dropdex::vocab::day::Day;
use serde_json::{Value, json};

use crate::common::json::{difference, unknown_name};
use crate::common::rng::Rng;
use crate::common::runs::seed;
use crate::common::{Client, Response, Site, gzip};
use corpus::{Corpus, Kind, LATER, List, TODAYS, day, timestamp};
use model::{DropsQuery, Filter, Model, Name, SearchQuery};

/// Number of queries per day by kind; in total, more than 2,000 queries of lists.
const DROPS_QUESTIONS: usize = 300;
const SEARCH_QUESTIONS: usize = 300;
const DOMAIN_QUESTIONS: usize = 200;
const EXPORT_QUESTIONS: usize = 30;
const PAGED_QUESTIONS: usize = 30;

#[test]
fn every_answer_equals_the_plain_recomputation() {
    check_answers(|site, corpus| ingest_everything(site, corpus, &corpus.lists));
}

/// Runs the same queries on an index that was built from most lists and extended by the other
/// lists.
#[test]
fn every_answer_of_an_extended_index_equals_the_plain_recomputation() {
    check_answers(|site, corpus| {
        let (lists, later) = corpus.lists.split_at(corpus.lists.len() - LATER.len());
        ingest_everything(site, corpus, lists);
        let base = site.manifest()["generation"].clone();
        let settings = site.settings("[index]\nextend_from = 1\nextend_percent = 100\n");
        for (list, file) in later.iter().zip(LATER) {
            assert_eq!(list.file, file);
            ingest(site, std::slice::from_ref(list), &["--config", &settings]);
            assert_eq!(site.manifest()["extends"]["base"], base, "{file}");
        }
    });
}

fn check_answers(ingest: impl Fn(&Site, &Corpus)) {
    let seed = seed();
    let mut rng = Rng::new(seed);
    let corpus = Corpus::generate(&mut rng);
    let model = Model::new(corpus.facts()).ranked(&corpus.ranks());
    let site = Site::new();
    ingest(&site, &corpus);
    let key = site.account("oracle@example.com", "api");
    let houses = model.names().iter().filter_map(|name| {
        let kind = model::house_kind_of(&name.label)?;
        Some(format!("{},{kind},{}\n", name.label, model::HOUSE_AS_OF))
    });
    let houses: String = houses.collect();
    let houses = site.write("house.csv", format!("label,house.kind:enum,as_of\n{houses}"));
    site.ok(&["facts", "add", houses.to_str().expect("UTF-8")]);
    let ranks = model.names().iter().filter_map(|name| {
        let rank = model::rank_of(&name.ascii)?;
        Some(format!("{},{rank},{}\n", name.ascii, model::RANK_AS_OF))
    });
    let ranks = format!("domain,acme.rank:int,as_of\n{}", ranks.collect::<String>());
    let mut asked = BTreeSet::new();
    for today in TODAYS {
        // The index does not change in between, because only queries depend on the day.
        let server = site.serve(today);
        let mut check = Check {
            seed,
            today: day(today),
            model: &model,
            client: server.client_with(&key),
            full_answers: BTreeMap::new(),
            asked: &mut asked,
        };
        if today == TODAYS[0] {
            let kind = [("Content-Type", "text/csv")];
            let added = check.client.send_with("POST", "/api/v1/facts", &kind, ranks.as_bytes());
            assert_eq!(added.status, 201, "{}", added.text());
        }
        check.health();
        check.fixed_questions();
        check.random_questions(&mut rng);
        check.assert_that_answers_held_something();
        server.stop();
    }
    let conditions = CONDITIONS.iter().map(|condition| condition.parameter);
    assert_eq!(asked, conditions.collect(), "DROPDEX_SEED={seed}: every condition is queried");
}

/// The test above is meaningful only if the corpus has every case.
#[test]
fn the_corpus_holds_every_case() {
    for seed in 0..3 {
        let corpus = Corpus::generate(&mut Rng::new(seed));
        let model = Model::new(corpus.facts()).ranked(&corpus.ranks());
        for (case, least, is_case) in CASES {
            let found = model.names().iter().filter(|name| is_case(name)).count();
            assert!(found >= least, "seed {seed}: {found} names that {case}, {least} expected");
        }
        assert!(queries::tlds_of(&model).len() > 15);
        for today in TODAYS.map(day) {
            for stage in ["redemption", "pending-delete", "catchable", "released"] {
                let in_stage =
                    |name: &&Name| name.latest().is_some_and(|latest| latest.stage(today) == stage);
                let found = model.names().iter().filter(in_stage).count();
                assert!(found > 40, "seed {seed}: {found} names in {stage} on {today}");
            }
        }
        assert!(
            model.names().iter().any(|name| outranked(name, model.names())),
            "seed {seed}: no IDN is put first by being equal to q alone"
        );
        // The newest drop date that is not in the future is that of a superseded record.
        assert_eq!(model.newest_drop_date(day(TODAYS[2])), Some(day("2026-03-31")));
    }
}

/// Returns true for an estimate that is five deviations and two blocks off at most. The lists are
/// short, so a sample has few blocks.
fn is_near(about: u64, names: u64) -> bool {
    let far = 5.0 * (names as f64 * 3.0).sqrt() + 512.0;
    about.abs_diff(names) as f64 <= far
}

/// True for an IDN that precedes a longer name of a better rank only because equal names come first.
fn outranked(name: &Name, ranked: &[Name]) -> bool {
    let label = name.unicode.split('.').next().expect("a split has a first part");
    let longer = |other: &Name| other.unicode.starts_with(label) && other.length > name.length;
    name.ascii != name.unicode
        && ranked.iter().take_while(|other| other.ascii != name.ascii).any(longer)
}

type Case = (&'static str, usize, fn(&Name) -> bool);

const CASES: [Case; 11] = [
    ("are there", 3_000, |_| true),
    ("are on a popularity list", 600, |name| name.best_rank().is_some()),
    ("are on several popularity lists", 100, |name| name.popular_on() > 1),
    ("never dropped", 100, |name| name.latest().is_none()),
    ("dropped repeatedly", 300, |name| name.drops() > 1),
    ("are IDNs", 200, |name| name.ascii != name.unicode),
    ("are IDNs starting with x", 5, |name| {
        name.ascii != name.unicode && name.unicode.starts_with('x')
    }),
    ("have a suffix of two labels", 100, |name| name.tld.contains('.')),
    ("are registered again", 100, |name| {
        name.latest().is_some_and(|latest| latest.registered_again)
    }),
    ("drop in the future of the first day", 50, |name| {
        name.latest().is_some_and(|latest| latest.date > day(TODAYS[0]))
    }),
    ("drop on the first day", 50, |name| {
        name.latest().is_some_and(|latest| latest.date == day(TODAYS[0]))
    }),
];

/// Runs ingest several times, as an operator does: some runs leave the index for later, one ingests
/// two files at once, and the last one repeats a list that is already in the corpus.
fn ingest_everything(site: &Site, corpus: &Corpus, lists: &[List]) {
    const REBUILD_LATER: [&str; 5] =
        ["early.csv", "names-a.txt", "full.csv.gz", "names-b.txt", "negative-b.txt"];
    let together = |left: &List, right: &List| {
        left.kind == right.kind && left.observed_at == right.observed_at
    };
    for lists in lists.chunk_by(together) {
        let later = REBUILD_LATER.contains(&lists[0].file);
        ingest(site, lists, if later { &["--no-rebuild"] } else { &[] });
        if lists[0].file == "names-a.txt" {
            site.ok(&["rebuild"]);
        }
    }
    for popular in &corpus.popular {
        let path = site.write(popular.file, &popular.text);
        let path = path.to_str().expect("temporary paths are UTF-8");
        let printed = site.ok(&["ingest", "--no-rebuild", path]);
        let printed: Value = serde_json::from_str(&printed).expect("a line of JSON");
        // The newest list of this kind is already held.
        let rows = if popular.file.contains("OLDER") { 0 } else { popular.rows };
        assert_eq!(printed["accepted"], rows, "{printed}");
    }
    // The list is already in the corpus; the rebuild adds the ranks.
    let again = &lists[..1];
    site.ok(&ingest_arguments(site, again, &[]));
}

fn ingest(site: &Site, lists: &[List], options: &[&str]) {
    let stdout = site.ok(&ingest_arguments(site, lists, options));
    let (mut accepted, mut rejected) = (0, 0);
    for line in stdout.lines() {
        let summary: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {stdout}"));
        accepted += summary["accepted"].as_u64().expect("a count");
        // Choice: `rejected` is an object of counts by reason.
        let reasons = summary["rejected"].as_object().expect("counts by reason");
        rejected += reasons.values().map(|count| count.as_u64().expect("a count")).sum::<u64>();
    }
    let said: usize = lists.iter().map(|list| list.facts.len()).sum();
    let bad: usize = lists.iter().map(|list| list.bad_rows).sum();
    let counts = (accepted as usize, rejected as usize);
    assert_eq!(counts, (said, bad), "{}: accepted and rejected rows in {stdout}", lists[0].file);
}

fn ingest_arguments(site: &Site, lists: &[List], options: &[&str]) -> Vec<String> {
    let observed_at = timestamp(lists[0].observed_at);
    let mut arguments: Vec<String> =
        ["ingest", "--observed-at", &observed_at].map(String::from).into();
    arguments.extend(options.iter().map(|&option| option.to_owned()));
    match lists[0].kind {
        Kind::Native(_) => {}
        // Plain names need no --format, because the drop date identifies them.
        Kind::Names(day) => arguments.extend(["--drop-date".into(), day.to_string()]),
        Kind::Registered(day) => {
            let flags = ["--format", "registered", "--drop-date"].map(String::from);
            arguments.extend(flags);
            arguments.push(day.to_string());
        }
    }
    for list in lists {
        let text = list.text.as_bytes();
        let path = site.write(list.file, if list.gzip { gzip(text) } else { text.into() });
        arguments.push(path.to_str().expect("temporary paths are UTF-8").into());
    }
    arguments
}

/// One day of a server: sends queries and compares responses.
struct Check<'a> {
    seed: u64,
    today: Day,
    model: &'a Model,
    client: Client,
    /// Number of queries sent, by kind, and number of responses that contain a row.
    full_answers: BTreeMap<&'static str, (usize, usize)>,
    /// Conditions covered by random queries.
    asked: &'a mut BTreeSet<&'static str>,
}

impl Check<'_> {
    fn random_questions(&mut self, rng: &mut Rng) {
        for _ in 0..DROPS_QUESTIONS {
            let ask = queries::drops(rng, self.model);
            self.note(&ask.target);
            self.drops(&ask.target, &ask.query);
        }
        for _ in 0..SEARCH_QUESTIONS {
            let ask = queries::search(rng, self.model);
            self.search(&ask.target, &ask.query);
        }
        for _ in 0..DOMAIN_QUESTIONS {
            let ask = queries::domain(rng, self.model);
            self.domain(&ask.target, &ask.query);
        }
        for _ in 0..EXPORT_QUESTIONS {
            let ask = queries::export(rng, self.model);
            self.export(&ask.target, &ask.query);
            let (ask, members) = queries::lines(rng, self.model);
            self.lines(&ask.target, &ask.query, &members);
            let (ask, members) = queries::columns(rng, self.model);
            self.columns(&ask.target, &ask.query, &members);
        }
        for _ in 0..PAGED_QUESTIONS {
            let ask = queries::pages(rng, self.model);
            self.pages(&ask.target, &ask.query, rng);
        }
    }

    /// Sends queries that random queries may not cover on some days.
    fn fixed_questions(&mut self) {
        self.drops("/api/v1/drops", &DropsQuery::default());
        self.export("/api/export/drops", &DropsQuery::default());
        for view in ["active", "today", "all"] {
            let filter = Filter { view: Some(view), ..Filter::default() };
            let query = DropsQuery { filter, limit: Some(1_000), ..DropsQuery::default() };
            self.drops(&format!("/api/v1/drops?limit=1000&view={view}"), &query);
        }
        for prefix in ["a", "x", "xn", "xn--", "abc", "abc.", "abc.com", "münchen", "xü", "1"] {
            let query = SearchQuery {
                sent: prefix.into(),
                prefix: prefix.into(),
                limit: Some(100),
                ..SearchQuery::default()
            };
            let parameters = [("q", prefix.to_owned()), ("limit", "100".to_owned())];
            self.search(&crate::common::http::with_query("/api/v1/search", &parameters), &query);
        }
        self.documented_examples();
        for name in [
            "superseded-special.com",
            "freed-long-ago.co.uk",
            "seen-twice.com",
            "seen-twice.net",
            "back-again.org",
            "gone-again.org",
            "no-such-name.com",
        ] {
            self.domain(&format!("/api/v1/domain/{name}"), name);
        }
        for name in [
            "com",
            "co.uk",
            "www.abc.com",
            "-abc.com",
            "someone.github.io",
            "abc",
            "abc..com",
            "abc.invalidtld",
            "ab%20c.com",
            "ab%00c.com",
            "ab%2Fc.com",
        ] {
            self.bad_name(name);
        }
    }

    /// Sends every example of data/docs/queries.md, at least one for each filter.
    fn documented_examples(&mut self) {
        let page = include_str!("../../data/docs/queries.md");
        let examples: Vec<&str> = page
            .split("GET ")
            .skip(1)
            .map(|rest| rest.split(['`', '\n']).next().expect("a split has a first part"))
            .collect();
        for example in &examples {
            let response = self.client.get(example);
            self.assert_status(example, 200, &response);
        }
        for parameter in dropdex::http::operations::EXPORT_OPTIONS {
            let shown = |example: &&str| {
                let mut pairs = example.split(['?', '&']).skip(1);
                pairs.any(|pair| pair.split('=').next() == Some(parameter.name))
            };
            assert!(examples.iter().any(shown), "{} has no example", parameter.name);
        }
    }

    fn drops(&mut self, target: &str, query: &DropsQuery) {
        let mut expected = self.model.drops(query, self.today);
        self.count("drops", expected["count"] != 0);
        let response = self.client.get(target);
        self.assert_status(target, 200, &response);
        let mut got = response.json();
        let members = got.as_object_mut().expect("an object");
        let (next, generation) = (members.remove("nextCursor"), members.remove("generation"));
        let names = expected["total"].as_u64().expect("a number");
        self.allow_estimates(target, query, &mut expected, &got);
        if let Some(difference) = difference(&expected, &got) {
            panic!("{}\n{difference}", self.place(target));
        }
        let number = |member: &str| got[member].as_u64().expect("a number");
        let follows = number("offset") + number("count") < names && number("count") > 0;
        assert_eq!(next.is_some_and(|next| next.is_string()), follows, "{}", self.place(target));
        assert!(generation.is_some_and(|generation| generation.is_u64()), "{}", self.place(target));
        let link = response.header("link").is_some_and(|link| link.ends_with("; rel=\"next\""));
        assert_eq!(link, follows, "{}", self.place(target));
    }

    /// Replaces exact numbers by the estimates of a response, if it may have some and they are near.
    fn allow_estimates(
        &mut self,
        target: &str,
        query: &DropsQuery,
        expected: &mut Value,
        got: &Value,
    ) {
        if query.total == Some("none") {
            (expected["total"], expected["totalExact"]) = (Value::Null, json!(false));
        } else if query.total != Some("exact") && got["totalExact"] == false {
            let [about, names] = [&got["total"], &expected["total"]].map(|it| it.as_u64());
            let (about, names) = about.zip(names).expect("numbers");
            assert!(is_near(about, names), "{}: {about} for {names}", self.place(target));
            self.count("estimates", true);
            (expected["total"], expected["totalExact"]) = (json!(about), json!(false));
        }
        if query.total != Some("exact") && got["facetsExact"] == false {
            let sum = |values: &Value| -> u64 {
                let values = values.as_array().into_iter().flatten();
                values.filter_map(|value| value["count"].as_u64()).sum()
            };
            for facet in &query.facets {
                let (about, names) = (sum(&got["facets"][facet]), sum(&expected["facets"][facet]));
                assert!(is_near(about, names), "{} {facet}: {about} {names}", self.place(target));
            }
            expected["facets"] = got["facets"].clone();
            expected["facetsExact"] = json!(false);
        }
    }

    /// Reads all pages by their cursors, of any size and with any members.
    fn pages(&mut self, target: &str, query: &DropsQuery, rng: &mut Rng) {
        let expected = self.model.rows(query, &["name"], self.today);
        self.count("pages", !expected.is_empty());
        let mut read: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let joint = if target.contains('?') { '&' } else { '?' };
            // Few pages of a long list, many pages of a short one.
            let limit = (expected.len() / 8 + 1 + rng.below(20)).min(1_000);
            let mut page = format!("{target}{joint}fields=name&limit={limit}&total=exact");
            if let Some(cursor) = &cursor {
                page = format!("{page}&cursor={cursor}");
            }
            let body = self.client.get(&page).json();
            assert_eq!(body["total"], expected.len(), "{} {body}", self.place(&page));
            read.extend(body["drops"].as_array().expect("rows").iter().cloned());
            match body["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
            assert!(read.len() < expected.len(), "{}", self.place(&page));
        }
        assert_eq!(read, expected, "{}", self.place(target));
        if let Some(cursor) = cursor {
            let joint = if target.contains('?') { '&' } else { '?' };
            let other = format!("{target}{joint}not_ends=zqz&cursor={cursor}");
            let code =
                if target.contains("not_ends") { "repeated_parameter" } else { "cursor_mismatch" };
            assert_eq!(self.client.get(&other).json()["code"], code, "{}", self.place(&other));
        }
    }

    /// An export in lines of JSON.
    fn lines(&mut self, target: &str, query: &DropsQuery, members: &[&str]) {
        let expected = self.model.rows(query, members, self.today);
        self.count("lines", !expected.is_empty());
        let response = self.client.get(target);
        self.assert_status(target, 200, &response);
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let got: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        if let Some(difference) = difference(&json!(expected), &json!(got)) {
            panic!("{}\n{difference}", self.place(target));
        }
    }

    fn search(&mut self, target: &str, query: &SearchQuery) {
        let expected = self.model.search(query, self.today);
        self.count("search", expected["count"] != 0);
        self.compare(target, 200, &expected);
    }

    fn domain(&mut self, target: &str, name: &str) {
        let dossier = self.model.dossier(name, self.today);
        self.count("domain", dossier.is_some());
        match dossier {
            Some(expected) => self.compare(target, 200, &expected),
            None => self.compare(target, 404, &unknown_name()),
        }
    }

    /// Checks that a name that is not registrable is refused with the reason (§1), in the format of
    /// parameter errors (§3).
    fn bad_name(&mut self, name: &str) {
        let target = format!("/api/v1/domain/{name}");
        let response = self.client.get(&target);
        let body = response.json();
        let error = body["error"].as_str().unwrap_or_default();
        let as_specified = response.status == 400
            && body["code"] == "invalid_value"
            && body["parameter"] == "name"
            && error.len() > "name: ".len()
            && error.starts_with("name: ");
        assert!(as_specified, "{}: {} {body}", self.place(&target), response.status);
    }

    fn export(&mut self, target: &str, query: &DropsQuery) {
        let expected = self.model.export(query, self.today);
        self.csv("export", target, &expected);
    }

    /// An export of some columns.
    fn columns(&mut self, target: &str, query: &DropsQuery, members: &[&str]) {
        let expected = self.model.csv(query, members, self.today);
        self.csv("columns", target, &expected);
    }

    fn csv(&mut self, kind: &'static str, target: &str, expected: &str) {
        self.count(kind, expected.lines().count() > 1);
        let response = self.client.get(target);
        self.assert_status(target, 200, &response);
        let got = String::from_utf8_lossy(&response.body);
        let different = || {
            let pairs = expected.split_inclusive("\r\n").zip(got.split_inclusive("\r\n"));
            let first = pairs.enumerate().find(|(_, (expected, got))| expected != got);
            format!("{first:?}; {} bytes expected, {} sent", expected.len(), got.len())
        };
        let same = response.body == expected.as_bytes();
        assert!(same, "{}: first line that differs: {}", self.place(target), different());
    }

    fn health(&mut self) {
        let newest = self.model.newest_drop_date(self.today).map(|date| date.to_string());
        for target in ["/api/health", "/api/ready/ingest"] {
            let body = self.client.get(target).json();
            assert_eq!(body["latestDropDate"], json!(newest), "{}", self.place(target));
        }
    }

    fn compare(&mut self, target: &str, status: u16, expected: &Value) {
        let response = self.client.get(target);
        self.assert_status(target, status, &response);
        let place = self.place(target);
        if let Some(difference) = difference(expected, &response.json()) {
            panic!("{place}\n{difference}");
        }
    }

    fn assert_status(&self, target: &str, status: u16, response: &Response) {
        let Response { status: got, .. } = response;
        let body = String::from_utf8_lossy(&response.body[..response.body.len().min(300)]);
        assert_eq!(*got, status, "{}: {body}", self.place(target));
    }

    fn note(&mut self, target: &str) {
        let sent = |pair: &str| pair.split_once('=').is_some_and(|(_, value)| !value.is_empty());
        let pairs = target.split(['?', '&']).skip(1).filter(|pair| sent(pair));
        let names = pairs.filter_map(|pair| pair.split('=').next());
        self.asked.extend(names.filter_map(|name| {
            CONDITIONS.iter().map(|condition| condition.parameter).find(|known| *known == name)
        }));
    }

    fn place(&self, target: &str) -> String {
        format!("DROPDEX_SEED={} --today {} GET {target}", self.seed, self.today)
    }

    fn count(&mut self, kind: &'static str, full: bool) {
        let (asked, held_something) = self.full_answers.entry(kind).or_default();
        *asked += 1;
        *held_something += usize::from(full);
    }

    /// Asserts that enough responses contained a row, because mostly empty ones would prove
    /// nothing. There are only some thirty exports, of which about 13 have one: an eighth is far below.
    fn assert_that_answers_held_something(&self) {
        for (kind, (asked, full)) in &self.full_answers {
            assert!(full * 8 > *asked, "{kind}: {full} of {asked} answers held a row");
        }
    }
}
