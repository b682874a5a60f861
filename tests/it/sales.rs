//! Comparable sales: `dropdex facts sales` as a user runs it, the same comparables from a script, and dossiers with
//! the operator's files. All sales are invented.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dropdex::scorer::{Scorer, Scratch};
use dropdex::vocab::day::Day;
use dropdex::vocab::name::DomainName;
use serde_json::{Value, json};

use crate::common::rng::Rng;
use crate::common::wait::until;
use crate::common::{Site, TODAY};
use crate::pages::browser::Browser;

/// Seven sales of single words at an auction, one row that is refused, and one sale in retail.
const FILE: &str = "\
    domain,price,currency,date,venue,buyer\n\
    river.com,100,USD,2026-01-10,NameJet,PRIVATE\n\
    stone.com,200,USD,2026-01-11,NameJet,PRIVATE\n\
    cloud.com,300,USD,2026-01-12,NameJet,PRIVATE\n\
    tiger.com,400,USD,2025-04-10,NameJet,PRIVATE\n\
    apple.com,500,USD,2025-05-10,NameJet,PRIVATE\n\
    bread.com,600,USD,2025-06-10,NameJet,PRIVATE\n\
    chair.com,700,USD,2024-07-10,NameJet,PRIVATE\n\
    table.com,soon,USD,2024-07-10,NameJet,PRIVATE\n\
    horse.com,9000,USD,2026-01-20,Sedo,PRIVATE\n";

/// Five sales of single words in retail, of an account.
const OWN: &str = "\
    domain,price,currency,date,venue\n\
    peach.com,300,EUR,2025-01-10,Sedo\n\
    grape.com,350,EUR,2025-01-11,Sedo\n\
    mango.com,400,EUR,2025-01-12,Sedo\n\
    melon.com,450,EUR,2025-01-13,Sedo\n\
    olive.com,500,EUR,2025-01-14,Sedo\n";

/// Writes [`FILE`] where a server finds it, and returns its path.
pub fn write(site: &Site) -> PathBuf {
    let folder = site.data().join("sales");
    fs::create_dir_all(&folder).expect("made");
    let file = folder.join("2026.csv");
    fs::write(&file, FILE).expect("written");
    file
}

#[test]
fn sales_of_similar_names_are_listed_by_channel() {
    let site = Site::new();
    let file = site.write("sales.csv", FILE);
    let file = file.to_str().expect("UTF-8");
    let base = ["facts", "sales", "--as-of", TODAY, "--name", "lemon.com"];
    let text = site.ok(&[&base[..], &[file]].concat());
    for part in [
        "sales; rows: 9, sales: 8, unsold: 0, refused: 1",
        "dropped, may be personal or secret: buyer",
        "line 9, price: not an amount of money",
        "auction, USD: 7 sales. Too few sales to check such ranges: 2 had one; 30 are needed.",
        "retail, USD: 1 sales.",
        "lemon.com:\n  Similar names sold at auction for 210 to 550 USD (middle half of 7 sales, 2024-26). Too few",
        "2025-04-10         400 USD  tiger.com (NameJet): .com, same length",
        "1 sale of similar names in retail, 2026: 1 similar sales; a range needs 5.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("PRIVATE"), "{text}");
    let text = site.ok(&[&base[..], &["--channel", "retail", file]].concat());
    assert!(text.contains("9,000 USD  horse.com") && !text.contains("auction"), "{text}");
    let text = site.ok(&["facts", "sales", "--as-of", "2024-01-01", "--name", "lemon.com", file]);
    assert!(text.contains("lemon.com:\n  no sales of similar names"), "{text}");
}

#[test]
fn files_and_names_that_cannot_be_read_are_reported() {
    let site = Site::new();
    let sales = site.write("sales.csv", FILE);
    let other = site.write("other.csv", "Item,TrustFlow,CitationFlow\nriver.com,1,2\n");
    let (sales, other) = (sales.to_str().expect("UTF-8"), other.to_str().expect("UTF-8"));
    let refused = site.run(&["facts", "sales", other, sales]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stdout.contains("auction, USD: 7 sales"), "{}", refused.stdout);
    let why = "other.csv: has no columns with name, price and day of sales";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    let usage = site.run(&["facts", "sales", "--name", "com", sales]);
    assert_eq!(usage.code, Some(2), "{}", usage.stderr);
}

const AUCTIONS: [&str; 2] = ["NameJet", "DropCatch"];
const RETAIL: [&str; 2] = ["Sedo", "Afternic"];
const WORDS: [&str; 16] = [
    "river", "stone", "cloud", "tiger", "health", "solar", "bread", "garden", "music", "travel",
    "house", "green", "smart", "market", "light", "paper",
];
const SUFFIXES: [&str; 8] = ["com", "com", "com", "net", "org", "io", "de", "app"];

fn label(rng: &mut Rng) -> String {
    let [first, second, third] = [(); 3].map(|()| *rng.pick(&WORDS));
    match rng.below(10) {
        0..4 => first.to_owned(),
        4..6 => format!("{first}{second}"),
        6 => {
            let count = *rng.pick(&[3, 4, 6]);
            (0..count).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
        }
        7 => format!("{first}-{second}"),
        8 => format!("{first}{}", rng.below(100)),
        _ => format!("{first}{second}{third}"),
    }
}

/// Returns a name with its words, as the script reads it.
fn name(domain: &DomainName, scratch: &mut Scratch) -> Value {
    let observed = Scorer::shared().observe(domain, scratch);
    let adult = observed.caps.iter().any(|cap| cap.name == "adult");
    json!({ "domain": domain, "words": observed.words, "adult": adult })
}

fn recomputed(given: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sales/recompute.py");
    let mut python = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut stdin = python.stdin.take().expect("piped");
    stdin.write_all(given.to_string().as_bytes()).expect("written");
    drop(stdin);
    let output = python.wait_with_output().expect("finished");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Rounds the factor, as the program does.
fn with_rounded_miss(mut markets: Value) -> Value {
    for market in markets.as_array_mut().expect("markets") {
        let miss = &mut market["backtest"]["medianMiss"];
        *miss = miss.as_f64().map(|miss| (miss * 100.0).round() / 100.0).into();
    }
    markets
}

#[test]
fn a_script_computes_the_same_ranges_and_backtests() {
    let mut rng = Rng::new(20_261_129);
    let mut scratch = Scratch::default();
    let first: Day = "2019-01-01".parse().expect("a day");
    let (mut rows, mut sales) = ("domain,price,currency,date,venue\n".to_owned(), Vec::new());
    while sales.len() < 3_000 {
        let suffix = rng.pick(&SUFFIXES);
        let Ok(domain) = DomainName::parse(&format!("{}.{suffix}", label(&mut rng))) else {
            continue;
        };
        let venue = match rng.below(10) {
            0..6 => *rng.pick(&AUCTIONS),
            6..9 => *rng.pick(&RETAIL),
            _ => "a friend",
        };
        let factor = if RETAIL.contains(&venue) { 10 } else { 1 };
        let cents = (100 + rng.below(60) * rng.below(60)) * 100 * factor;
        let date = first.plus(rng.between(0, 2_699));
        let currency = if rng.chance(12) { "EUR" } else { "USD" };
        // Some sales are reported twice.
        let reports = if rng.chance(3) { 2 } else { 1 };
        for day in 0..reports {
            let date = date.plus(day * 45);
            writeln!(rows, "{domain},{},{currency},{date},{venue}", cents / 100).expect("a string");
            let mut sold = name(&domain, &mut scratch);
            for (member, value) in [
                ("cents", json!(cents)),
                ("currency", json!(currency)),
                ("date", json!(date)),
                ("venue", json!(venue)),
            ] {
                sold[member] = value;
            }
            sales.push(sold);
        }
    }
    let names: Vec<DomainName> = (0..40)
        .map(|at| format!("{}.{}", label(&mut rng), SUFFIXES[at % SUFFIXES.len()]))
        .map(|text| DomainName::parse(&text).expect("a name"))
        .collect();
    let subjects: Vec<Value> = names.iter().map(|it| name(it, &mut scratch)).collect();
    let expected = recomputed(&json!({ "sales": sales, "names": subjects, "asOf": TODAY }));

    let site = Site::new();
    let file = site.write("sales.csv", &rows);
    let mut args = vec!["facts", "sales", "--json", "--as-of", TODAY];
    args.extend(names.iter().flat_map(|name| ["--name", name.as_str()]));
    args.push(file.to_str().expect("UTF-8"));
    let lines = site.ok(&args);
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let report = &lines.next().expect("a report")["report"];
    assert_eq!(report["sales"], json!(sales.len()));
    let markets = lines.next().expect("markets");
    assert_eq!(markets["repeats"], expected["repeats"]);
    assert!(markets["repeats"].as_u64() > Some(20), "{markets}");
    assert_eq!(markets["markets"], with_rounded_miss(expected["markets"].clone()));
    let mut ranges = 0;
    for (line, expected) in lines.zip(expected["names"].as_array().expect("names")) {
        let mut found = Vec::new();
        for of in line["comparables"].as_array().expect("comparables") {
            let cents = |price: &Value| (price.as_f64().expect("a price") * 100.0).round() as u64;
            let sold = |sold: &Value| json!([sold["domain"], sold["date"], cents(&sold["price"])]);
            let sales: Vec<Value> =
                of["sales"].as_array().expect("sales").iter().map(sold).collect();
            let bounds = |range: &Value| {
                ["lowest", "low", "high", "highest"].map(|bound| cents(&range[bound]))
            };
            let range = Some(&of["range"]).filter(|range| range.is_object()).map(bounds);
            assert_eq!(range.is_some(), of["reason"].is_null(), "{of}");
            ranges += usize::from(range.is_some());
            found.push(json!([of["channel"], of["currency"], range, sales]));
        }
        let wanted = expected["comparables"].as_array().expect("comparables").iter().map(|of| {
            let points = of["points"].as_array().map(|it| json!([it[0], it[1], it[3], it[4]]));
            json!([of["channel"], of["currency"], points, of["sales"]])
        });
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{}", expected["domain"]);
    }
    assert!(ranges > 40, "{ranges} ranges");
}

const PASSWORD: &str = "correct horse battery";
/// Longer than the server takes to see a changed file.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

#[test]
fn dossiers_show_the_operators_sales_to_members_only() {
    let site = Site::with_names(["lemon.com".to_owned()].into_iter(), TODAY);
    let settings = site.settings("[web]\nplain_http = true\n");
    site.account_with_password("ann@example.com", "pro", PASSWORD);
    let key = site.new_key("ann@example.com");
    site.account_with_password("bob@example.com", "pro", PASSWORD);
    let file = write(&site);
    let broken = file.with_file_name("broken.csv");
    fs::write(broken, "Domain,Amount\nriver.com,1\n").expect("written");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let mut client = server.client_with(&key);
    let mut dossier = || client.get("/api/v1/domain/lemon.com");
    until(SEEN_WITHIN, "the sales are read", || !dossier().json()["comparables"].is_null());
    let first = dossier();
    let comparables = &first.json()["comparables"];
    let auction = &comparables[0];
    assert_eq!((&auction["channel"], &auction["count"]), (&json!("auction"), &json!(7)));
    let range = json!({ "low": 210.0, "high": 550.0, "lowest": 110.0, "highest": 660.0 });
    assert_eq!(auction["range"], range, "{auction}");
    let reasons = json!([".com", "same length"]);
    assert_eq!(auction["sales"][0]["reasons"], reasons, "{auction}");
    assert_eq!(comparables[1]["reason"], json!("1 similar sales; a range needs 5"));

    let visitor = Browser::new(&server).get("/domain/lemon.com");
    assert_eq!(visitor.status, 200);
    let mut member = Browser::new(&server);
    assert_eq!(member.log_in("bob@example.com", PASSWORD).status, 303);
    let page = member.get("/domain/lemon.com");
    let parts = [
        "What similar names sold for",
        "sold at auction for 210 to 550 USD",
        "aria-label=\"Prices of 7 sales on a logarithmic axis, from ",
        "USD. The middle half lies from 210 to 550.\"",
        "tiger.com",
    ];
    for part in parts {
        assert!(page.text().contains(part), "{part}: {}", page.text());
        assert!(!visitor.text().contains(part), "{part}: {}", visitor.text());
    }

    let mut api = server.client_with(&key);
    let added =
        api.send_with("POST", "/api/v1/facts", &[("Content-Type", "text/csv")], OWN.as_bytes());
    assert_eq!(added.status, 201, "{}", added.text());
    let mut owner = Browser::new(&server);
    assert_eq!(owner.log_in("ann@example.com", PASSWORD).status, 303);
    let own = owner.get("/domain/lemon.com");
    let (_, own) = own.text().split_once("In your own sales").expect("own sales");
    let (own, of_server) = own.split_once("In the sales of this server").expect("both");
    for part in
        ["Similar names sold in retail for ", "EUR (middle half of 5 sales, 2025)", "peach.com"]
    {
        assert!(own.contains(part) && !of_server.contains(part), "{part}: {own}");
    }
    assert!(!page.text().contains("peach.com"), "other accounts do not see them");

    let charts = page.text().matches("<svg class=\"prices\"").count();
    assert_eq!(charts, 1, "one sale needs no chart");

    fs::write(&file, FILE.replace(",700,", ",7000,")).expect("written");
    until(SEEN_WITHIN, "the sales are read again", || {
        dossier().json()["comparables"] != *comparables
    });
    assert_ne!(dossier().header("etag"), first.header("etag"));
    fs::remove_file(&file).expect("removed");
    until(SEEN_WITHIN, "the sales are gone", || dossier().json()["comparables"].is_null());
    assert!(server.stop().contains("the file of sales is not used"));
}
