//! Outcomes of dropped names: two zones, fed day by day, give the registrations and shares that a
//! script computes from labels alone.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dropdex::index::filter::{AsOf, RuleQuery, StageSet};
use dropdex::index::generation::open::open_current;
use dropdex::index::query::index::Index;
use dropdex::index::query::outcome_months::hundredths;
use dropdex::index::query::outcome_tables::Group;
use dropdex::index::query::summary::BANDS;
use dropdex::index::rules::backtest::BacktestPeriod;
use dropdex::query::filter::Filter;
use dropdex::scorer::{Coverage, Scorer, Scratch, Spread};
use dropdex::vocab::day::Day;
use dropdex::vocab::dqs::Dqs;
use dropdex::vocab::name::DomainName;
use dropdex::vocab::outcome::{Completeness, Horizon, Return, ReturnTime, Share};
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use crate::common::http::Client;
use crate::common::rng::Rng;
use crate::common::wait::until;
use crate::common::{Site, gzip, tools};

/// The zones with the days from leaving the zone to the release.
const ZONES: [(&str, i32); 2] = [("ee", 31), ("nu", 67)];
/// Days between leaving the zone and the renewal of a name that its holder renewed.
const RENEWED_AFTER: i32 = 10;
/// The first and last day of the zone files.
const FIRST: &str = "2023-07-20";
const LAST: &str = "2025-05-06";
/// Days on which tables are compared: after the first horizons of all releases, and after the last.
const DAYS: [&str; 2] = ["2024-04-01", "2025-05-05"];

fn day(text: &str) -> Day {
    text.parse().expect("a date")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/outcomes")
}

/// A name of a zone, and the days between which its zone did not have it.
struct Label {
    name: String,
    left: Day,
    back: Option<Day>,
    is_renewed: bool,
    days: Option<i32>,
}

fn labels() -> Vec<Label> {
    let mut text = String::new();
    let file = std::fs::File::open(folder().join("labels.csv.gz")).expect("a file");
    GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let mut labels = Vec::new();
    for row in text.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [name, release, days, outcome] = cells[..] else { panic!("{row}") };
        let (_, tld) = name.rsplit_once('.').expect("a suffix");
        let (_, wait) = ZONES.into_iter().find(|(zone, _)| *zone == tld).expect("a zone");
        let (release, is_renewed) = (day(release), outcome == "renewed");
        let left = release.plus(-wait);
        let days: Option<i32> = days.parse().ok();
        let back = if is_renewed {
            Some(left.plus(RENEWED_AFTER))
        } else {
            days.map(|days| release.plus(days))
        };
        labels.push(Label { name: name.to_owned(), left, back, is_renewed, days });
    }
    labels
}

/// Writes the zone file of each day up to `last`.
fn zone_files(site: &Site, zone: &str, labels: &[Label], last: Day) -> Vec<String> {
    // Some names left the zone twice.
    let mut names: BTreeMap<&str, Vec<&Label>> = BTreeMap::new();
    for label in labels.iter().filter(|it| it.name.ends_with(zone)) {
        names.entry(&label.name).or_default().push(label);
    }
    let days = last.days_since(day(FIRST));
    let file = |number: i32| {
        let on = day(FIRST).plus(number);
        let mut text = format!("$ORIGIN {zone}.\n@ 900 SOA a. b. {} 1 1 1 1\n", 1 + number);
        for (name, labels) in &names {
            let is_gone = |it: &&Label| it.left <= on && it.back.is_none_or(|back| on < back);
            if !labels.iter().any(is_gone) {
                writeln!(text, "{name}. NS ns1.x.").expect("text");
            }
        }
        // The days of zone files count once a later list has a row.
        if on < last.plus(-3) {
            writeln!(text, "lastdrop.{zone}. NS ns1.x.").expect("text");
        }
        writeln!(text, "@ 900 SOA a. b. {} 1 1 1 1", 1 + number).expect("text");
        let path = site.write(&format!("{zone}-{on}.txt.gz"), gzip(text.as_bytes()));
        path.to_str().expect("UTF-8").to_owned()
    };
    (0..=days).map(file).collect()
}

/// Runs the independent script.
fn expected() -> Value {
    let output = Command::new(tools::python())
        .args([folder().join("expected.py"), folder().join("labels.csv.gz")])
        .args(DAYS)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn time_word(time: Option<ReturnTime>) -> String {
    match time {
        None => "none".into(),
        Some(ReturnTime::Renewed) => "renewed".into(),
        Some(ReturnTime::Within(horizon)) => horizon.to_string(),
        Some(ReturnTime::Later) => "later".into(),
        Some(ReturnTime::Undated) => "undated".into(),
    }
}

/// Compares the registration after every drop, and every share, with the script. Returns the number of both.
fn compare(index: &Index, expected: &Value) -> (usize, usize) {
    let names = expected["names"].as_object().expect("names");
    let mut count = 0;
    for (name, times) in names {
        let drops = index.drops_of(&DomainName::parse(name).expect("a name"));
        let is_complete = |it: &Return| it.shown == Completeness::Complete;
        assert!(drops.iter().all(|drop| drop.returned.as_ref().is_none_or(is_complete)), "{name}");
        let found = drops.iter().map(|drop| time_word(drop.returned.map(|it| it.time)));
        assert_eq!(json!(found.collect::<Vec<_>>()), *times, "{name}: {drops:?}");
        count += drops.len();
    }
    let mut shares = 0;
    for on in DAYS {
        let tables = index.outcomes(day(on));
        for row in expected["rows"][on].as_array().expect("rows") {
            let tld = index.tlds().find(row["tld"].as_str().expect("a suffix")).expect("known");
            let group = row["length"].as_str().map_or(Group::Suffix, |length| {
                let at = BANDS.iter().position(|(name, _)| *name == length);
                Group::Length(at.expect("a band") as u8)
            });
            let found = tables.row(tld, Completeness::Complete, group).expect("a row");
            let horizon = row["horizon"].as_i64().expect("days") as i32;
            let share = found.shares.iter().find(|it| it.horizon.days() == horizon);
            let share = share.unwrap_or_else(|| panic!("{on} {row}: {found:?}"));
            let Share { count, share: part, low, high } = share.share;
            let found = json!({
                "tld": row["tld"], "length": row["length"], "horizon": horizon,
                "names": share.names, "taken": count, "bounds": [part, low, high],
            });
            assert_eq!(&found, row, "{on}");
            shares += 1;
        }
    }
    (count, shares)
}

/// Compares rules that are tried on past releases with the script.
fn backtests(client: &mut Client, expected: &Value) {
    for test in expected["tests"].as_array().expect("tests") {
        let [rule, found] = &test.as_array().expect("a pair")[..] else { panic!("{test}") };
        let [months, horizon, zone, longest] = &rule.as_array().expect("a rule")[..] else {
            panic!("{rule}")
        };
        let filter = json!({ "tlds": [zone], "maxLength": longest, "adult": "include" });
        let body = json!({ "filter": filter, "months": months, "horizon": horizon });
        let response = client.send("POST", "/api/v1/alerts/backtest", &body);
        assert_eq!(response.status, 200, "{}", response.text());
        let tested = response.json();
        let bounds = json!([tested["share"], tested["low"], tested["high"]]);
        let months = tested["byMonth"].as_array().expect("months").iter().map(|month| {
            let name = month["month"].as_str().expect("a month").to_owned();
            (name, json!([month["names"], month["count"]]))
        });
        let months: Map<String, Value> = months.filter(|(_, counts)| counts[0] != 0).collect();
        let told = json!({
            "names": tested["names"], "renewed": tested["renewed"], "count": tested["count"],
            "months": months, "bounds": bounds,
        });
        assert_eq!(&told, found, "{rule}");
        assert_eq!((&tested["label"], &tested["unknown"]), (&json!("complete"), &json!(0)));
        let examples = tested["examples"].as_array().expect("examples");
        assert_eq!(examples.len(), 20, "{rule}");
        for example in examples {
            let domain = example["domain"].as_str().expect("a name");
            let times = expected["names"][domain].as_array().expect("known");
            let within = match &example["within"] {
                Value::Null => vec![json!("none"), json!("renewed"), json!("later")],
                days => vec![json!(days.to_string())],
            };
            assert!(within.iter().any(|time| times.contains(time)), "{example}: {times:?}");
            let is_taken = example["within"]
                .as_i64()
                .is_some_and(|days| days <= tested["horizon"].as_i64().expect("days"));
            assert_eq!(example["outcome"] == "taken", is_taken, "{example}");
        }
    }
}

/// Returns the names that backtests pick, and what they say about the outcomes.
fn tested(index: &Index) -> (Vec<String>, String) {
    let (common, stages) = (Filter::default(), StageSet::ACTIVE);
    let query = RuleQuery { common, contains: None, stages };
    let (mut picked, mut shown) = (Vec::new(), String::new());
    for horizon in Horizon::ALL {
        let tested = index.backtest(&query, BacktestPeriod::new(day(LAST), 24, horizon));
        for (group, of) in [("all".to_owned(), &tested.all)]
            .into_iter()
            .chain(tested.by_tld.iter().map(|(tld, of)| (tld.clone(), of)))
            .chain(tested.by_month.iter().map(|(month, of)| (month.to_string(), of)))
        {
            // A renewed name was picked as well.
            picked.push(format!("{horizon} {group}: {}", of.names + of.renewed));
            writeln!(shown, "{horizon} {group}: {:?}", of.share()).expect("text");
        }
        let examples = tested.examples.iter();
        picked.extend(examples.map(|it| format!("{horizon} {} {}", it.name, it.release)));
    }
    (picked, shown)
}

/// Everything that the tables of a day say about a zone.
fn rows(index: &Index, zone: &str, on: &str) -> String {
    let tld = index.tlds().find(zone).expect("known");
    format!("{:?}", index.outcomes(day(on)).rows_of(tld))
}

#[test]
fn zones_fed_day_by_day_give_the_outcomes_of_an_independent_script() {
    let (site, labels) = (Site::new(), labels());
    for (zone, _) in ZONES {
        let mut args = vec!["ingest".to_owned(), "--local".to_owned(), "--no-rebuild".to_owned()];
        args.extend(zone_files(&site, zone, &labels, day(LAST)));
        site.ok(&args);
    }
    site.ok(&["rebuild"]);
    let open = || open_current(&site.index()).expect("opens").index;
    let index = open();
    let expected = expected();
    let (names, shares) = compare(&index, &expected);
    assert_eq!((names, shares), (labels.len(), 56), "as many as the script has");

    speaks(&site, &expected);
    let last = |index: &Index| ZONES.map(|(zone, _)| rows(index, zone, LAST));
    let all = |index: &Index| DAYS.map(|on| ZONES.map(|(zone, _)| rows(index, zone, on)));
    let before = (all(&index), last(&index), tested(&index));

    // A list that is observed later says that free names were registered in time. It changes what is
    // known from its day on, and nothing before.
    let free = labels.iter().filter(|it| it.back.is_none());
    let free: String = free.map(|label| format!("{}\n", label.name)).collect();
    let planted = site.write("registered.txt", free);
    let planted = planted.to_str().expect("UTF-8");
    let how = ["--format", "registered", "--drop-date", "2024-03-20", "--observed-at", LAST];
    site.ok(&[&["ingest", "--local"], &how[..], &[planted]].concat());
    let index = open();
    assert_eq!(all(&index), before.0);
    assert_ne!(last(&index), before.1);
    // Backtests find other outcomes, of the same names.
    let (picked, shown) = tested(&index);
    assert_eq!(picked, before.2.0);
    assert_ne!(shown, before.2.1);
}

/// Sends bad backtests, and conditions that do not apply to the past.
fn refuses(client: &mut Client) {
    for (body, what) in [
        (json!({}), "filter"),
        (json!({ "filter": { "tlds": ["nu"] }, "months": 0 }), "months"),
        (json!({ "filter": { "tlds": ["nu"] }, "months": 37 }), "months"),
        (json!({ "filter": { "tlds": ["nu"] }, "horizon": 8 }), "horizon"),
        (json!({ "filter": { "tlds": ["nu"] }, "score": "yesterday" }), "score"),
        (json!({ "filter": { "tld": ["nu"] } }), "filter.tld"),
        (json!({ "filter": { "tlds": ["nu"] }, "asOf": "2020-01-01" }), "asOf"),
    ] {
        let refused = client.send("POST", "/api/v1/alerts/backtest", &body);
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.text().contains(what), "{body}: {}", refused.text());
    }
    let filter = json!({
        "tlds": ["nu"], "minDqs": 10, "minTlds": 0, "stages": ["catchable"], "releaseFrom": "tomorrow", "maxSuffixRank": 5
    });
    let tested =
        client.send("POST", "/api/v1/alerts/backtest", &json!({ "filter": filter })).json();
    assert_eq!(tested["todayValues"], json!(["dqs"]));
    assert_eq!(tested["ignored"], json!(["stages", "releaseFrom, releaseTo", "maxSuffixRank"]));
    // Nothing is known about a suffix without lists: its share is not 0.
    let none = client
        .send("POST", "/api/v1/alerts/backtest", &json!({ "filter": { "tlds": ["fr"] } }))
        .json();
    assert_eq!(
        (&none["names"], &none["share"], &none["label"]),
        (&json!(0), &Value::Null, &Value::Null)
    );
    assert_eq!(none["missing"], json!([{ "from": "2024-04-30", "to": "2025-04-29" }]));
}

/// Tries a condition on the score that names have without other TLDs.
fn base_scores(client: &mut Client) {
    let filter = json!({ "tlds": ["nu"], "minDqs": 20, "maxDqs": 39, "adult": "include" });
    let body = json!({ "filter": filter, "months": 24, "score": "base" });
    let tested = client.send("POST", "/api/v1/alerts/backtest", &body).json();
    let mut scratch = Scratch::default();
    let mut base = |name: &str| {
        let base = Scorer::shared().base(&DomainName::parse(name).expect("a name"), &mut scratch);
        base.with_spread(Spread { tlds: 1, coverage: Coverage::NONE }).dqs.points()
    };
    let labels = labels();
    let nu = labels.iter().filter(|it| it.name.ends_with(".nu") && !it.is_renewed);
    let picked = nu.filter(|it| (20..=39).contains(&base(&it.name))).count();
    assert_eq!((&tested["names"], &tested["todayValues"]), (&json!(picked), &json!([])));
    for example in tested["examples"].as_array().expect("examples") {
        let name = example["domain"].as_str().expect("a name");
        assert_eq!(example["dqs"], base(name), "{name}");
    }
}

/// Returns the share of pairs of .ee names, one registered again and one not, in which the first has the
/// higher score.
fn order(site: &Site) -> f64 {
    let index = open_current(&site.index()).expect("opens").index;
    let as_of = AsOf { today: day(LAST), catch_days: 5 };
    let (mut taken, mut free) = (Vec::new(), Vec::new());
    for label in labels().iter().filter(|it| it.name.ends_with(".ee") && !it.is_renewed) {
        let name = DomainName::parse(&label.name).expect("a name");
        let dqs = index.facts(&name, as_of).expect("known").dqs;
        if label.days.is_some() { taken.push(dqs) } else { free.push(dqs) }
    }
    let won = |one: Dqs| -> f64 {
        let point = |other: &Dqs| match one.cmp(other) {
            Ordering::Greater => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Less => 0.0,
        };
        free.iter().map(point).sum()
    };
    let sum: f64 = taken.iter().copied().map(won).sum();
    sum / (taken.len() * free.len()) as f64
}

/// Compares the months of a zone with the script.
fn history(row: &Value, expected: &Value) {
    let rule = json!([24, 7, row["tld"], 63]);
    let mut tests = expected["tests"].as_array().expect("tests").iter();
    let test = tests.find(|test| test[0] == rule).expect("a test of all names");
    let history = &row["history"];
    let periods = history["periods"].as_array().expect("periods").iter();
    let months = periods.filter(|period| period["n"] != 0).map(|period| {
        let month = period["from"].as_str().expect("a date")[..7].to_owned();
        (month, json!([period["n"], period["share"]["count"]]))
    });
    assert_eq!(json!(months.collect::<Map<_, _>>()), test[1]["months"]);
    // Not even a year has enough registrations for an order.
    assert_eq!((&history["months"], &history["horizon"]), (&json!(1), &json!(7)));
    assert_eq!((&history["yearBefore"], &history["hasFallen"]), (&Value::Null, &json!(false)));
}

/// Asks for outcomes over HTTP, and reads the sentence of a dossier.
fn speaks(site: &Site, expected: &Value) {
    let server = site.serve(LAST);
    let key = site.account("a@example.com", "pro");
    let mut client = server.client_with(&key);
    backtests(&mut client, expected);
    refuses(&mut client);
    base_scores(&mut client);
    let mut get = |query: &str| client.get(&format!("/api/v1/outcomes?{query}"));
    let all = get("tld=.NU&asOf=2024-04-01").json();
    let first = &all["rows"][0];
    assert_eq!((&first["tld"], &first["label"]), (&json!("nu"), &json!("complete")));
    assert_eq!(
        first["within"]["1"],
        json!({
            "n": 2624, "count": 76, "share": 0.029, "low": 0.0232, "high": 0.0361,
            "unanswered": 0, "isRange": false, "auc": null
        })
    );
    assert_eq!(
        first["text"],
        "Of 2624 .nu names, 2.9 % were registered again within a day (2.3-3.6 %) and 4.4 % within a month."
    );
    assert_eq!((&first["from"], &first["to"]), (&json!("2023-10-01"), &json!("2024-03-31")));
    let rows = all["rows"].as_array().expect("rows");
    assert!(
        rows.iter().any(|row| row["length"] == "6-8")
            && rows.iter().any(|row| row["kind"] == "words")
    );
    // A small group gives way to a larger one, which is named.
    let small = get("tld=nu&band=60-69&kind=number&asOf=2024-04-01").json();
    let row = &small["rows"][0];
    assert_eq!(
        (&row["fallback"], &row["band"], &row["n"]),
        (&json!("band"), &Value::Null, &json!(2624))
    );
    let one = get("horizon=30&asOf=2024-04-01").json();
    let shown: Vec<_> = one["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (&row["tld"], row["within"].as_object().expect("shares").len()))
        .collect();
    assert_eq!(shown, [(&json!("ee"), 1), (&json!("nu"), 1)]);
    assert_eq!(one["rows"][0]["history"], Value::Null, "only of the suffix that is asked for");
    // No list shows anything about this suffix.
    let none = get("tld=xn--p1ai").json();
    assert_eq!(
        (&none["rows"][0]["label"], &none["rows"][0]["within"]),
        (&json!("unknown"), &json!({}))
    );
    for (query, parameter) in [
        ("asOf=2025-05-07", "asOf"),
        ("asOf=soon", "asOf"),
        ("tld=a%20b", "tld"),
        ("band=40", "band"),
        ("kind=letter", "kind"),
        ("horizon=31", "horizon"),
    ] {
        let refused = get(query);
        assert_eq!(refused.status, 400, "{query}");
        let text = refused.text();
        assert!(text.contains(parameter), "{query}: {text}");
    }
    // Enough names for an order: that of all pairs of names.
    let late = get("tld=ee&horizon=400").json();
    history(&late["rows"][0], expected);
    assert_eq!(late["rows"][1]["history"], Value::Null, "{late}");
    history(&get("tld=nu").json()["rows"][0], expected);
    let (auc, expected) = (&late["rows"][0]["within"]["400"]["auc"], order(site));
    let value = auc["value"].as_f64().unwrap_or_else(|| panic!("{late}"));
    assert!((value - expected).abs() < 0.0006, "{auc} {expected}");
    let page = client.get("/outcomes");
    assert_eq!(page.status, 200);
    let page = page.text();
    let order = format!("{} within 400 days", hundredths(value));
    for words in [".nu", "by lists of all names", "400 days", &order, "Nov 2023"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    // Long after all releases, only the longest horizon has names.
    until(Duration::from_secs(60), "the counts of the day", || {
        let page = client.get("/domain/0o.nu");
        page.text().contains("were registered again within 400 days")
    });
}

/// Returns the expected share and its bounds by drop, from an independent script.
fn fitted(drops: &str) -> BTreeMap<String, [f64; 3]> {
    let mut script = Command::new(tools::python())
        .arg(folder().join("fit.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    script.stdin.take().expect("a pipe").write_all(drops.as_bytes()).expect("it reads");
    let output = script.wait_with_output().expect("it ends");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn expectations_are_those_of_an_independent_fit() {
    let (site, last) = (Site::new(), day("2024-04-10"));
    let mut labels = labels();
    labels.retain(|label| label.name.ends_with(".nu"));
    // Other suffixes have some of the labels.
    let mut others = String::new();
    for (at, label) in labels.iter().enumerate() {
        let (name, _) = label.name.split_once('.').expect("a suffix");
        for tld in ["com", "de", "org"].iter().take(at % 4) {
            writeln!(others, "{name}.{tld}").expect("text");
        }
    }
    let others = site.write("others.txt", others);
    let path = others.to_str().expect("UTF-8");
    let how = ["--local", "--no-rebuild", "--format", "names", "--observed-at", FIRST];
    let dropped = ["--drop-date", "2022-01-01"];
    site.ok(&[&["ingest"], &how[..], &dropped, &[path]].concat());
    let mut args = vec!["ingest".to_owned(), "--local".to_owned(), "--no-rebuild".to_owned()];
    args.extend(zone_files(&site, "nu", &labels, last));
    site.ok(&args);
    site.ok(&["rebuild"]);

    let index = open_current(&site.index()).expect("opens").index;
    let as_of = AsOf { today: last, catch_days: 5 };
    let (mut drops, mut of_names) = (String::new(), BTreeMap::new());
    labels.sort_by_key(|label| label.left);
    let mut earlier = BTreeMap::<&str, usize>::new();
    for label in &labels {
        let name = DomainName::parse(&label.name).expect("a name");
        let before = earlier.entry(&label.name).or_default();
        let dqs = index.facts(&name, as_of).expect("known").dqs;
        let others = index.family(name.label(), as_of).len() - 1;
        let drop = format!("{dqs},{},{before},{others}", name.length());
        *before += 1;
        if !label.is_renewed && label.left.plus(67) <= last.plus(-7) {
            let is_taken = label.days.is_some_and(|days| days <= 7);
            writeln!(drops, "{drop},{}", u8::from(is_taken)).expect("text");
        }
        of_names.insert(name, drop);
    }
    let expected = fitted(&drops);
    let mut compared = 0;
    for (name, drop) in &of_names {
        let (found, model) = index.expectation_of(name).expect("it dropped");
        assert_eq!((model.shown, model.all.names), (Completeness::Complete, 2_624));
        let Some(shares) = expected.get(drop) else { continue };
        for (found, expected) in [found.share, found.low, found.high].iter().zip(shares) {
            assert!((found - expected).abs() < 1e-6, "{name} {drop}: {found} {expected}");
        }
        compared += 1;
    }
    assert!(compared > 2_500, "{compared}");
    shows_expectations(&site, &index, last);
}

/// Asks for expectations over HTTP: filter, order, dossier, models and the page.
fn shows_expectations(site: &Site, index: &Index, today: Day) {
    let server = site.serve(&today.to_string());
    let mut client = server.client_with(&site.account("a@example.com", "pro"));
    let mut all = client.get("/api/v1/drops?view=all&limit=1000&sort=expected_taken").json();
    let rows = all["drops"].as_array_mut().expect("rows");
    let percents: Vec<u64> =
        rows.iter().map(|row| row["expectedTaken"].as_u64().expect("a percentage")).collect();
    assert!(percents.is_sorted_by(|one, next| one >= next) && percents[0] > 10, "{percents:?}");
    for row in rows.iter() {
        let name = DomainName::parse(row["name"].as_str().expect("a name")).expect("a name");
        let (expected, _) = index.expectation_of(&name).expect("it dropped");
        assert_eq!(row["expectedTaken"], json!((expected.share * 100.0).round() as u64), "{name}");
    }
    let least = percents[percents.len() / 10];
    let some = client.get(&format!("/api/v1/drops?view=all&expected_taken={least}&total=exact"));
    let above = percents.iter().filter(|percent| **percent >= least).count();
    assert_eq!(some.json()["total"], json!(above), "{least}");
    let csv = client
        .get("/api/export/drops?view=all&columns=name,expectedTaken&sort=expected_taken&limit=1");
    assert!(csv.text().ends_with(&format!(",{}\r\n", percents[0])), "{}", csv.text());

    let best = rows[0]["name"].as_str().expect("a name");
    let dossier = client.get(&format!("/api/v1/domain/{best}")).json();
    let expectation = &dossier["expectation"];
    assert_eq!((&expectation["horizon"], &expectation["label"]), (&json!(7), &json!("complete")));
    let share = expectation["share"].as_f64().expect("a share");
    assert_eq!((share * 100.0).round() as u64, percents[0]);
    let page = client.get(&format!("/domain/{best}"));
    let page = page.text();
    assert!(page.contains("are expected to be registered again within a week ("), "{page}");

    let models = client.get("/api/v1/outcomes?tld=nu").json();
    let model = &models["models"][0];
    assert_eq!((&model["n"], &model["count"]), (&json!(2_624), &json!(89)));
    let test = &model["test"];
    assert!(test["brier"].as_f64() < test["brierOfMean"].as_f64(), "{test}");
    assert!(client.get("/outcomes").text().contains("Expectation"));
    for query in ["expected_taken=101", "expected_taken=some", "expected_taken=-1"] {
        let refused = client.get(&format!("/api/v1/drops?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.text().contains("must be an integer from 0 to 100"), "{}", refused.text());
    }
}

/// Of samples of the labels, the stated share of intervals contains the share of all labels.
#[test]
fn intervals_contain_the_share_of_all_names_as_often_as_they_state() {
    let (labels, mut rng) = (labels(), Rng::new(45));
    let (mut held, mut all) = (0, 0);
    for (zone, _) in ZONES {
        let days: Vec<Option<i32>> = labels
            .iter()
            .filter(|label| label.name.ends_with(zone) && !label.is_renewed)
            .map(|label| label.days)
            .collect();
        for horizon in Horizon::ALL {
            let taken = |days: Option<i32>| days.is_some_and(|days| days <= horizon.days());
            let share = days.iter().filter(|days| taken(**days)).count() as f64 / days.len() as f64;
            for _ in 0..500 {
                let names = 400;
                let draw = (0..names).filter(|_| taken(days[rng.below(days.len())]));
                let found = Share::of(draw.count() as u64, names).expect("some");
                held += u32::from((found.low..=found.high).contains(&share));
                all += 1;
            }
        }
    }
    let part = f64::from(held) / f64::from(all);
    assert!((0.93..=0.97).contains(&part), "{held} of {all}");
}
