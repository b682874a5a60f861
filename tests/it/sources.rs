//! Lists that dropdex fetches automatically: every preset against a stand-in for its publisher, every
//! way in which a server fails, and the path from an empty installation to a ranked list.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use chrono::{DateTime, Utc};
use dropdex::corpus::batch::BatchMeta;
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common::receiver::{Receiver, Reply, Seen};
use crate::common::{Finished, Site, gzip, wait};

pub(crate) const DAY: &str = "2026-11-23";
/// Deadline of a list that a server fetches; it takes seconds, on a busy machine a minute.
const ARRIVAL_MAX: Duration = Duration::from_secs(90);

/// Returns the list of a preset in its documented format, packed as its publisher does.
fn fixture(name: &str, quality: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sources");
    let text = fs::read(path.join(format!("{name}.{quality}"))).expect(name);
    match name {
        "uk-nominet" => gzip(&text),
        "dropcatch" => zip("drops.csv", &text),
        "godaddy" => zip("all_expiring_auctions.json", &text),
        "fr-monthly" => zip("202610_OPENDATA_A-NomsDeDomaineEnPointFr.csv", &text),
        "tranco" | "umbrella" => zip("top-1m.csv", &text),
        "whoisds-nrd" => zip("domain-names.txt", &text),
        "sedo" => {
            let text = String::from_utf8(text).expect("UTF-8");
            let units = text.encode_utf16().flat_map(u16::to_le_bytes);
            [0xff, 0xfe].into_iter().chain(units).collect()
        }
        _ => text,
    }
}

/// Returns the good list of a preset, unpacked.
fn fixture_text(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sources");
    fs::read(path.join(format!("{name}.good"))).expect(name)
}

pub(crate) fn zip(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file(name, zip::write::SimpleFileOptions::default()).expect("memory");
    archive.write_all(bytes).expect("memory");
    archive.finish().expect("memory").into_inner()
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Presets, each with its name, the path and query of its address on its own server, and the number of
/// rows of the good list.
const PRESETS: [(&str, &str, u64); 22] = [
    ("uk-nominet", "/current/uk.csv.gz", 3),
    ("se-bardate", "/bardate_domains.json", 2),
    ("nu-bardate", "/bardate_domains_nu.json", 1),
    ("pl-deleted", "/deleted_domains.txt", 2),
    ("mx-deleted", "/report/domain_deleted_list.csv", 2),
    ("cl-deleted", "/registry/Eliminados.do?t=1d&f=txt", 2),
    ("it-droptime", "/droptime/files/{date}09.txt", 2),
    ("au-expired", "/domain-drop-lists/expired", 2),
    ("au-deleted", "/domain-drop-lists/deleted", 1),
    ("sk-list", "/subory/domains.txt", 3),
    ("tranco", "/api/lists/date/latest", 4),
    ("fr-monthly", "/opendata/{month}_A.zip", 3),
    ("dropcatch", "/GetFileUrl?FileType=csv", 2),
    ("godaddy", "/all_expiring_auctions.json.zip", 2),
    ("namecheap", "/reports/Namecheap_Market_Sales.csv", 2),
    ("sedo", "/fileadmin/expiring_domain_auctions.csv", 1),
    ("dynadot", "/backorders.csv", 2),
    ("parkio", "/domains/index/io.json?limit=1000", 2),
    ("majestic", "/majestic_million.csv", 3),
    ("umbrella", "/top-1m.csv.zip#umbrella-top-1m.csv.zip", 4),
    ("whoisds-nrd", "/newly-registered-domains/{zip64}/nrd#nrd-{date}.zip", 3),
    ("cenk-nrd", "/nrd-last-10-days.txt", 2),
];
/// Number of presets of `--all-free` that produce a batch on the first day. One more preset is
/// compared with the lists of other days, and a popularity list is not a batch.
const FREE: usize = 11;
const FREE_LISTS: usize = 9;
/// The tables of `--all-free`.
const TABLES: [&str; 3] = ["psl", "iana-tlds", "icann-gtlds"];
/// Tranco's newest list.
const TRANCO: &str = r#"{"list_id":"X9K2A","available":true,"created_on":"2026-11-22T01:00:00"}"#;
/// The path of WhoisDS for 2026-11-22.
const REGISTERED_YESTERDAY: &str = "/newly-registered-domains/MjAyNi0xMS0yMi56aXA=/nrd";

/// Starts a server for all publishers. Each list has an ETag, and a client that sends it gets 304.
pub(crate) fn publishers(quality: &'static str) -> Receiver {
    Receiver::http(move |_, request| {
        let target = &request.target;
        if target.ends_with(".sha256") {
            let sum = sha256(&fixture("uk-nominet", quality));
            return Reply::Answer(200, Vec::new(), format!("{sum}  uk.csv.gz\n").into_bytes());
        }
        if target.starts_with("/GetFileUrl") {
            let link = format!("http://{}/signed/drops.zip?sig=1", request.header("host"));
            let body = format!("{{\"success\":true,\"result\":{{\"fileUrl\":\"{link}\"}}}}");
            return Reply::Answer(200, Vec::new(), body.into_bytes());
        }
        if target == "/api/lists/date/latest" {
            return Reply::Answer(200, Vec::new(), TRANCO.into());
        }
        let is_path = |path: &str| path.split('#').next() == Some(target);
        let found = PRESETS.iter().find(|(_, path, _)| is_path(path)).map(|(name, ..)| *name);
        let name = match found {
            Some(name) => name,
            None if target.starts_with("/signed/") => "dropcatch",
            None if target == "/download_daily/X9K2A" => "tranco",
            // Today's list does not exist yet, and earlier ones were removed.
            None if target == REGISTERED_YESTERDAY => "whoisds-nrd",
            // The list for tomorrow is published; the list for the day after does not exist yet.
            None if target == "/droptime/files/2026112409.txt" => "it-droptime",
            // This month's list does not exist yet.
            None if target == "/opendata/202610_A.zip" => "fr-monthly",
            None => return Reply::status(404),
        };
        serve_list(request, fixture(name, quality))
    })
}

pub(crate) fn serve_list(request: &Seen, body: Vec<u8>) -> Reply {
    let tag = format!("\"{}\"", &sha256(&body)[..16]);
    let headers = vec![("ETag", tag.clone())];
    if request.header("if-none-match") == tag {
        return Reply::Answer(304, headers, Vec::new());
    }
    Reply::Answer(200, headers, body)
}

fn settings(site: &Site, server: &Receiver) -> String {
    site.settings(&settings_of(server))
}

/// Returns the settings of an installation whose preset sources point to `server`.
pub(crate) fn settings_of(server: &Receiver) -> String {
    let mut toml = sources_section(server);
    for (name, path, _) in PRESETS {
        toml += &format!("[sources.{name}]\nurl = \"{}\"\n", server.url(path));
    }
    // Zone transfers are tested in `zones`, and tables below.
    for name in TABLES.iter().chain(&["ee-axfr"]) {
        toml += &format!("[sources.{name}]\nenabled = false\n");
    }
    toml
}

pub(crate) fn sources_section(server: &Receiver) -> String {
    format!(
        "[sources]\ncontact = \"ops@example.com\"\nallow = [\"{}\"]\nidle_seconds = 1\n",
        server.address()
    )
}

/// Creates an installation with one source, `lists`, at this path of a server.
fn one_source(server: &Receiver, path: &str, more: &str) -> (Site, String) {
    let site = Site::new();
    let section = sources_section(server);
    let toml = format!("{section}[sources.lists]\nurl = \"{}\"\n{more}", server.url(path));
    let settings = site.settings(&toml);
    (site, settings)
}

pub(crate) fn run(site: &Site, settings: &str, args: &[&str]) -> Finished {
    site.run(&[&["--today", DAY, "--config", settings, "sources"], args].concat())
}

/// Runs `sources fetch NAME` and returns the report of the first source.
pub(crate) fn fetch(site: &Site, settings: &str, name: &str) -> Value {
    let finished = run(site, settings, &["fetch", name, "--json"]);
    let Ok(printed) = serde_json::from_str::<Value>(&finished.stdout) else { panic!("{finished}") };
    assert_eq!(finished.code == Some(0), printed["sources"][0]["error"].is_null(), "{finished}");
    printed["sources"][0].clone()
}

pub(crate) fn listed(site: &Site, settings: &str, name: &str) -> Value {
    let finished = run(site, settings, &["list", "--json"]);
    let all: Vec<Value> = serde_json::from_str(&finished.stdout).expect("a JSON array");
    all.into_iter().find(|source| source["name"] == name).expect("it is listed")
}

/// Fetches `lists`, which must fail with an error that contains these words. Returns the source's entry
/// of `sources list`.
#[track_caller]
fn fails(site: &Site, settings: &str, words: &[&str]) -> Value {
    let report = fetch(site, settings, "lists");
    assert_eq!(report["outcome"], "failed", "{report}");
    let error = report["error"].as_str().expect("an error").to_owned();
    for word in words {
        assert!(error.contains(word), "no `{word}` in `{error}`");
    }
    let listed = listed(site, settings, "lists");
    assert_eq!(listed["problem"], Value::from(error));
    listed
}

/// Returns the seconds until the next run.
pub(crate) fn pause(listed: &Value) -> i64 {
    let next = listed["nextRun"].as_str().expect("a next run");
    let now = dropdex::vocab::clock::Clock::pinned_to(DAY.parse().expect("a day")).now();
    (next.parse::<DateTime<Utc>>().expect("a time") - now).num_seconds()
}

/// Returns the metadata of the batches of the corpus.
fn batches(site: &Site) -> Vec<BatchMeta> {
    let folder = site.data().join("corpus");
    // A corpus without lists may have no folder.
    let mut paths: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "ddb"))
        .collect();
    paths.sort();
    paths.iter().map(|path| BatchMeta::peek(path).expect("a batch")).collect()
}

#[test]
fn every_preset_reads_its_documented_list_and_refuses_a_broken_one() {
    for (quality, is_good) in [("good", true), ("broken", false)] {
        let (site, server) = (Site::new(), publishers(quality));
        let settings = settings(&site, &server);
        let names: Vec<&str> = PRESETS.iter().map(|(name, ..)| *name).collect();
        let finished = run(&site, &settings, &[&["check", "--json"], names.as_slice()].concat());
        assert_eq!(finished.code, Some(if is_good { 0 } else { 1 }), "{finished}");
        let checked: Vec<Value> = serde_json::from_str(&finished.stdout).expect("a JSON array");
        assert_eq!(checked.len(), PRESETS.len());
        for ((name, _, rows), checked) in PRESETS.iter().zip(&checked) {
            assert_eq!(checked["source"], *name);
            // The bad rows appear in the counts, or cause the fetch to be refused.
            let bad = checked["lists"].as_array().into_iter().flatten();
            let bad = bad.filter(|list| list["rejected"].as_u64() > Some(0) || list["rows"] == 0);
            let is_refused = checked["ok"] == false || bad.count() > 0;
            // Lists before this day do not exist.
            let day = match *name {
                "it-droptime" | "fr-monthly" => 1,
                "whoisds-nrd" => 2,
                _ => 0,
            };
            if is_good {
                let list = &checked["lists"].as_array().expect("lists")[day];
                assert_eq!(
                    (&list["rows"], &list["rejected"]),
                    (&(*rows).into(), &0.into()),
                    "{checked}"
                );
            } else {
                assert!(is_refused, "{checked}");
            }
        }
        assert!(!site.data().join("sources").exists(), "nothing is kept");
        assert!(server.seen().iter().all(|seen| {
            seen.header("user-agent").starts_with("dropdex/")
                && seen.header("user-agent").ends_with("(+ops@example.com)")
        }));
    }
}

#[test]
fn broken_lists_are_refused_and_change_nothing() {
    let (site, server) = (Site::new(), publishers("broken"));
    let settings = settings(&site, &server);
    let names: Vec<&str> = PRESETS.iter().map(|(name, ..)| *name).collect();
    let enabled = run(&site, &settings, &[&["enable", "--yes"], names.as_slice()].concat());
    assert_eq!(enabled.code, Some(0), "{enabled}");
    let finished = run(&site, &settings, &["fetch", "--json"]);
    finished.assert_failed(1, &["22 of 22 sources failed"]);
    let printed: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert!(printed["generation"].is_null());
    for report in printed["sources"].as_array().expect("an array") {
        let error = report["error"].as_str().expect("an error");
        assert!(error.contains("refused, and is kept in"), "{report}");
        let kept = site.data().join("sources").join(report["source"].as_str().expect("a name"));
        assert_eq!(fs::read_dir(kept.join("refused")).expect("kept").count(), 1, "{report}");
    }
    assert_eq!(batches(&site), []);
}

#[test]
fn one_command_leads_from_nothing_to_a_ranked_list() {
    let (site, server) = (Site::new(), publishers("good"));
    let key = site.account("owner@example.com", "api");
    let settings = settings(&site, &server);
    let enabled = run(&site, &settings, &["enable", "--all-free"]);
    assert_eq!(enabled.code, Some(0), "{enabled}");
    assert!(enabled.stderr.contains("open and available to the public"), "{enabled}");
    let server_of_us = site.serve_with(&["--today", DAY, "--config", &settings]);
    let mut client = server_of_us.client_with(&key);
    let names = wait::until_ok(ARRIVAL_MAX, || {
        let drops = client.get("/api/v1/drops?limit=100").json();
        let rows = drops["drops"].as_array().cloned().unwrap_or_default();
        let names: BTreeMap<String, u64> = rows
            .iter()
            .map(|row| {
                (
                    row["name"].as_str().unwrap_or_default().to_owned(),
                    row["dqs"].as_u64().unwrap_or(0),
                )
            })
            .collect();
        // All lists of all publishers have arrived.
        let is_ranked = rows.iter().any(|row| row["popularityRank"] == 12_345);
        if names.len() == 17 && is_ranked { Ok((names, rows)) } else { Err(format!("{drops}")) }
    });
    let (names, rows) = names;
    for name in ["brightmesa.co.uk", "exempel.se", "exempel.nu", "brightmesa.pl", "ejemplo.com.mx"]
    {
        assert!(names.contains_key(name), "{name}: {names:?}");
    }
    for name in ["mesaclara.cl", "mesachiara.it", "brightmesa.net.au", "silverpine.com.au"] {
        assert!(names.contains_key(name), "{name}: {names:?}");
    }
    let scores: Vec<u64> = rows.iter().map(|row| row["dqs"].as_u64().unwrap_or(0)).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "best first: {scores:?}");
    // The batches record the origin of their lists.
    let origins = batches(&site).into_iter().flat_map(|batch| batch.lists().to_vec());
    let origins: Vec<_> = origins.map(|list| list.origin.expect("an origin")).collect();
    let uk = origins.iter().find(|origin| origin.source == "uk-nominet").expect("one");
    assert_eq!(uk.url, server.url("/current/uk.csv.gz"));
    assert!(uk.terms.contains("open and available") && !uk.internal);
    let cl = origins.iter().find(|origin| origin.source == "cl-deleted").expect("one");
    assert_eq!(cl.url, server.url("/registry/Eliminados.do"), "without its query");
    let on = PRESETS.iter().filter(|(name, ..)| listed(&site, &settings, name)["enabled"] == true);
    assert_eq!(on.count(), FREE, "markets stay disabled");
    drop(server_of_us);
}

#[test]
fn the_daily_list_of_tranco_is_found_by_its_identifier() {
    let state = Arc::new(AtomicUsize::new(0));
    let step = Arc::clone(&state);
    let server = Receiver::http(move |_, request| {
        let step = step.load(Ordering::Relaxed);
        match request.target.as_str() {
            "/api/lists/date/latest" if step == 0 => {
                let text = TRANCO.replace("true", "false");
                Reply::Answer(200, Vec::new(), text.into_bytes())
            }
            "/api/lists/date/latest" => Reply::Answer(200, Vec::new(), TRANCO.into()),
            // The ZIP archive is refused, the list is not.
            "/download_daily/X9K2A" => Reply::status(403),
            "/download/X9K2A/1000000" => serve_list(request, fixture_text("tranco")),
            _ => Reply::status(404),
        }
    });
    let site = Site::new();
    let key = site.account("owner@example.com", "api");
    let drops = "domain,drop_date\nexempel.se,2026-11-01\n";
    site.ingest(&site.write("list.csv", drops), "2026-11-23T00:00:00Z");
    let url = server.url("/api/lists/date/latest");
    let section = sources_section(&server);
    let settings =
        site.settings(&format!("{section}[sources.tranco]\nenabled = true\nurl = \"{url}\"\n"));
    assert_eq!(fetch(&site, &settings, "tranco")["outcome"], "early");
    state.store(1, Ordering::Relaxed);
    let report = fetch(&site, &settings, "tranco");
    assert_eq!((&report["outcome"], &report["rows"]), (&"added".into(), &4.into()), "{report}");
    assert_eq!(fetch(&site, &settings, "tranco")["outcome"], "unchanged");
    let server_of_us = site.serve(DAY);
    let mut client = server_of_us.client_with(&key);
    let fact = serde_json::json!({"list": "tranco", "rank": 99_999, "date": "2026-11-22", "listId": "X9K2A"});
    assert_eq!(client.get("/api/v1/domain/exempel.se").json()["popularity"][0], fact);
}

#[test]
fn newly_registered_lists_undo_drops_up_to_their_first_day() {
    let (site, server) = (Site::new(), publishers("good"));
    let key = site.account("owner@example.com", "api");
    // The list of WhoisDS is for the 22nd; the ten days of the other list begin on the 13th.
    let drops = "domain,drop_date\nfreshharbor.net,2026-11-22\nbrightmesa.co.uk,2026-11-23\n\
                 newmesa.com,2026-11-22\nnewcreek.org,2026-11-14\nnewcreek.org,2026-10-01\n";
    site.ingest(&site.write("list.csv", drops), "2026-11-23T00:00:00Z");
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "whoisds-nrd", "cenk-nrd", "--yes"]);
    assert_eq!(fetch(&site, &settings, "whoisds-nrd")["rows"], 3);
    assert_eq!(fetch(&site, &settings, "cenk-nrd")["rows"], 2);
    let server_of_us = site.serve(DAY);
    let mut client = server_of_us.client_with(&key);
    let body = client.get("/api/v1/drops?view=all&fields=name&sort=name").json();
    let names = serde_json::json!([{"name": "brightmesa.co.uk"}, {"name": "newcreek.org"}]);
    assert_eq!(body["drops"], names);
}

#[test]
fn markets_are_enabled_when_their_terms_are_accepted() {
    let (site, server) = (Site::new(), publishers("good"));
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "godaddy"]).assert_failed(2, &["--yes"]);
    run(&site, &settings, &["fetch", "godaddy"]).assert_failed(1, &["sources enable godaddy"]);
    run(&site, &settings, &["enable", "go-daddy"]).assert_failed(1, &["no source `go-daddy`"]);
    let enabled = run(&site, &settings, &["enable", "godaddy", "dropcatch", "--yes"]);
    assert!(enabled.stderr.contains("internal use only"), "{enabled}");
    assert_eq!(fetch(&site, &settings, "godaddy")["rows"], 2);
    assert_eq!(fetch(&site, &settings, "dropcatch")["rows"], 2);
    assert!(batches(&site)[0].origin.as_ref().expect("an origin").internal);
    assert_eq!(run(&site, &settings, &["disable", "godaddy"]).code, Some(0));
    assert_eq!(listed(&site, &settings, "godaddy")["enabled"], false);
    run(&site, &settings, &["fetch", "godaddy"]).assert_failed(1, &["not enabled"]);
}

#[test]
fn lists_for_internal_use_are_left_out_of_exports() {
    let (site, server) = (Site::new(), publishers("good"));
    let key = site.account("owner@example.com", "api");
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "godaddy", "dropcatch", "namecheap", "--yes"]);
    // BrightMesa.com is on all three lists; the first list that names the drop counts.
    for name in ["dropcatch", "godaddy", "namecheap"] {
        assert_eq!(fetch(&site, &settings, name)["rows"], 2);
    }
    let exported = |args: &[&str]| {
        let args = [&["--today", DAY, "--config", &settings, "export", "drops"], args].concat();
        let lines: Vec<String> = site.ok(&args).lines().skip(1).map(str::to_owned).collect();
        lines.iter().map(|line| line.split(',').next().unwrap_or_default().to_owned()).collect()
    };
    let mut all: Vec<String> = exported(&[]);
    all.sort();
    assert_eq!(all, ["brightmesa.com", "quietharbor.net", "quietharbor.org"]);
    let pages: Vec<String> = (0..4)
        .flat_map(|offset| exported(&["--limit", "1", "--offset", &offset.to_string()]))
        .collect();
    assert_eq!(pages.len(), 3, "pages have no gaps: {pages:?}");

    let closed = fs::read_to_string(&settings).expect("settings");
    let closed = format!("{closed}\n[export_files]\nenabled = true\n");
    let open = closed.replace("[sources]\n", "[sources]\nexport_internal = true\n");
    let files = |settings: &str, names: i64| {
        let server = site.serve_with(&["--today", DAY, "--config", &site.settings(settings)]);
        let mut client = server.client_with(&key);
        let path = "/api/export/files";
        wait::until(Duration::from_secs(60), "export files", || {
            client.get(path).json()["files"][0]["rows"] == names
        });
        (server, client)
    };
    let (server_of_us, mut client) = files(&closed, 3);
    assert_eq!(client.get("/api/v1/drops").json()["total"], 4);
    assert!(!client.get("/api/export/drops").text().contains("silverpine.net"));
    drop((client, server_of_us));
    fs::remove_dir_all(site.data().join("export-files")).expect("removed");
    drop(files(&open, 4));
    // Under the stricter setting, files with such names are made again.
    let (server_of_us, mut client) = files(&closed, 3);
    let of_day = format!("/api/export/files/pipeline-{DAY}.ndjson.gz");
    let mut text = String::new();
    let body = client.get(&of_day).body;
    GzDecoder::new(body.as_slice()).read_to_string(&mut text).expect("gzip");
    assert_eq!((text.lines().count(), text.contains("silverpine.net")), (3, false));
    drop((client, server_of_us));
    let open = site.settings(&open);
    assert!(
        site.ok(&["--today", DAY, "--config", &open, "export", "drops"]).contains("silverpine.net")
    );
}

#[test]
fn an_unchanged_list_is_not_downloaded_again() {
    let (site, server) = (Site::new(), publishers("good"));
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "uk-nominet", "se-bardate"]);
    for name in ["uk-nominet", "se-bardate"] {
        assert_eq!(fetch(&site, &settings, name)["outcome"], "added");
        assert_eq!(fetch(&site, &settings, name)["outcome"], "unchanged");
    }
    let asked: Vec<String> =
        server.seen().iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect();
    let (uk, se) = ("/current/uk.csv.gz", "/bardate_domains.json");
    let expected = [
        format!("GET {uk}.sha256"),
        format!("GET {uk}"),
        format!("HEAD {uk}"),
        format!("GET {se}"),
        format!("GET {se}"),
    ];
    assert_eq!(asked, expected);
    assert!(server.seen()[4].header("if-none-match").starts_with('"'));
    let listed = listed(&site, &settings, "uk-nominet");
    assert_eq!((&listed["rows"], &listed["problem"]), (&3.into(), &Value::Null));
}

#[test]
fn the_same_bytes_without_validators_cause_no_work() {
    let server =
        Receiver::http(|_, _| Reply::Answer(200, Vec::new(), fixture("pl-deleted", "good")));
    let (site, settings) = one_source(&server, "/pl.txt", "");
    assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added");
    assert_eq!(fetch(&site, &settings, "lists")["outcome"], "unchanged");
    assert_eq!(batches(&site).len(), 1);
}

#[test]
fn a_wrong_checksum_is_refused_and_a_right_one_saves_the_download() {
    let good = fixture("uk-nominet", "good");
    let sum = sha256(&good);
    let server = Receiver::http(move |before, seen| match (before, seen.target.as_str()) {
        (0, _) => Reply::Answer(200, Vec::new(), format!("{}\n", "0".repeat(64)).into_bytes()),
        (_, "/uk.csv.gz.sha256") => Reply::Answer(200, Vec::new(), sum.clone().into_bytes()),
        // A server without validators.
        _ => Reply::Answer(200, Vec::new(), good.clone()),
    });
    let site = Site::new();
    let toml = format!(
        "{}[sources.uk-nominet]\nenabled = true\nurl = \"{}\"\n",
        sources_section(&server),
        server.url("/uk.csv.gz")
    );
    let settings = site.settings(&toml);
    let report = fetch(&site, &settings, "uk-nominet");
    assert!(report["error"].as_str().is_some_and(|text| text.contains("checksum")), "{report}");
    assert!(pause(&listed(&site, &settings, "uk-nominet")) <= 20, "retried soon");
    assert_eq!(fetch(&site, &settings, "uk-nominet")["outcome"], "added");
    let before = server.seen().len();
    assert_eq!(fetch(&site, &settings, "uk-nominet")["outcome"], "unchanged");
    let asked: Vec<String> =
        server.seen()[before..].iter().map(|seen| seen.target.clone()).collect();
    assert_eq!(asked, ["/uk.csv.gz", "/uk.csv.gz.sha256"], "HEAD, then the checksum");
}

#[test]
fn each_status_is_retried_as_documented() {
    for (status, headers, words, next) in [
        (401, vec![], "login (401)", None),
        (403, vec![], "refuses access (403)", None),
        (409, vec![], "accept them on its site", None),
        (428, vec![], "accept them on its site", None),
        (404, vec![], "set `url`", Some(3_600..90_000)),
        (418, vec![], "status 418", Some(3_600..90_000)),
        (429, vec![("Retry-After", "120".to_owned())], "(429)", Some(100..160)),
        (429, vec![], "(429)", Some(280..400)),
        (500, vec![], "failed with status 500", Some(10..20)),
        (503, vec![("Retry-After", "600".to_owned())], "status 503", Some(580..760)),
    ] {
        let server = Receiver::http(move |before, _| match before {
            0 => Reply::Answer(status, headers.clone(), b"<html>".to_vec()),
            _ => Reply::Answer(200, Vec::new(), fixture("pl-deleted", "good")),
        });
        // The next scheduled run is hours away at any time of day.
        let (site, settings) = one_source(&server, "/pl.txt", "schedule = \"every 24h\"\n");
        let listed = fails(&site, &settings, &[words]);
        match next {
            Some(range) => assert!(range.contains(&pause(&listed)), "{status}: {listed}"),
            None => {
                assert!(listed["nextRun"].is_null(), "{status} waits for the operator: {listed}")
            }
        }
        assert_eq!(server.seen().len(), 1, "{status}: no retry within a run");
        // The operator's command tries again.
        assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added", "{status}");
    }
}

#[test]
fn responses_other_than_lists_are_reported() {
    let page = b"<!DOCTYPE html><title>Maintenance</title>".to_vec();
    let big = vec![b'a'; 2 << 20];
    for (body, words) in [
        (page, "web page"),
        (b" \r\n".to_vec(), "empty"),
        (big, "raise `max_mib`"),
        (b"no list at all\n".to_vec(), "refused, and is kept"),
        (gzip(&fixture("pl-deleted", "good"))[..40].to_vec(), "cut short"),
    ] {
        let server = Receiver::http(move |before, _| match before {
            0 => Reply::Answer(200, vec![("ETag", "\"1\"".to_owned())], body.clone()),
            _ => Reply::Answer(
                200,
                vec![("ETag", "\"1\"".to_owned())],
                fixture("pl-deleted", "good"),
            ),
        });
        let (site, settings) = one_source(&server, "/pl", "format = \"stamped\"\nmax_mib = 1\n");
        fails(&site, &settings, &[words]);
        assert_eq!(batches(&site), [], "{words}");
        assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added", "{words}");
        assert_eq!(server.seen()[1].header("if-none-match"), "", "a bad list is not remembered");
    }
    let server = Receiver::http(|_, _| Reply::Endless);
    let (site, settings) = one_source(&server, "/x", "max_mib = 1\n");
    fails(&site, &settings, &["raise `max_mib`"]);
}

#[test]
fn a_list_that_must_be_packed_is_packed() {
    let server = Receiver::http(|_, seen| match seen.target.as_str() {
        "/uk.csv.gz" => Reply::Answer(200, Vec::new(), b"roid,domain,drop_time\n".to_vec()),
        _ => Reply::status(404),
    });
    let site = Site::new();
    let url = server.url("/uk.csv.gz");
    let section = sources_section(&server);
    let settings =
        site.settings(&format!("{section}[sources.uk-nominet]\nenabled = true\nurl = \"{url}\"\n"));
    let report = fetch(&site, &settings, "uk-nominet");
    assert!(report["error"].as_str().is_some_and(|text| text.contains("gzip")), "{report}");
}

#[test]
fn a_cut_download_is_resumed_if_the_list_is_the_same() {
    let good = fixture("pl-deleted", "good");
    let half = good.len() / 2;
    let tag = vec![("ETag", "\"a\"".to_owned())];
    for is_resumable in [true, false] {
        let (whole, tag) = (good.clone(), tag.clone());
        let server = Receiver::http(move |before, seen| {
            if before == 0 {
                return Reply::Cut(tag.clone(), whole[..half].to_vec(), whole.len());
            }
            assert_eq!(seen.header("range"), format!("bytes={half}-"));
            assert_eq!(seen.header("if-range"), "\"a\"");
            if !is_resumable {
                return Reply::Answer(200, tag.clone(), whole.clone());
            }
            let range = format!("bytes {half}-{}/{}", whole.len() - 1, whole.len());
            let headers = [tag.clone(), vec![("Content-Range", range)]].concat();
            Reply::Answer(206, headers, whole[half..].to_vec())
        });
        let (site, settings) = one_source(&server, "/pl.txt", "");
        let listed = fails(&site, &settings, &["connection failed"]);
        assert!((10..20).contains(&pause(&listed)), "{listed}");
        let report = fetch(&site, &settings, "lists");
        assert_eq!((&report["outcome"], &report["rows"]), (&"added".into(), &2.into()), "{report}");
        assert_eq!(batches(&site)[0].source_sha256, sha256(&good));
    }
}

#[test]
fn a_cut_download_is_resumed_after_errors_of_the_server() {
    let good = fixture("pl-deleted", "good");
    let tag = vec![("ETag", "\"a\"".to_owned())];
    let server = Receiver::http(move |before, seen| match before {
        0 => Reply::Cut(tag.clone(), good[..9].to_vec(), good.len()),
        1 => Reply::Answer(503, Vec::new(), Vec::new()),
        2 => Reply::Close,
        _ => {
            assert_eq!((seen.header("range"), seen.header("if-range")), ("bytes=9-", "\"a\""));
            let range = format!("bytes 9-{}/{}", good.len() - 1, good.len());
            let headers = [tag.clone(), vec![("Content-Range", range)]].concat();
            Reply::Answer(206, headers, good[9..].to_vec())
        }
    });
    let (site, settings) = one_source(&server, "/pl.txt", "");
    fails(&site, &settings, &["connection failed"]);
    fails(&site, &settings, &["503"]);
    fails(&site, &settings, &["connection failed"]);
    assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added");
}

#[test]
fn a_download_resumed_at_the_wrong_offset_starts_over() {
    let good = fixture("pl-deleted", "good");
    let server = Receiver::http(move |before, seen| match before {
        0 => Reply::Cut(vec![("ETag", "\"a\"".to_owned())], good[..9].to_vec(), good.len()),
        1 => Reply::Answer(
            206,
            vec![("Content-Range", format!("bytes 5-{}/{}", good.len() - 1, good.len()))],
            good[5..].to_vec(),
        ),
        _ => {
            assert_eq!(seen.header("range"), "");
            Reply::Answer(200, Vec::new(), good.clone())
        }
    });
    let (site, settings) = one_source(&server, "/pl.txt", "");
    fails(&site, &settings, &["connection failed"]);
    fails(&site, &settings, &["wrong place"]);
    assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added");
}

#[test]
fn a_partial_response_that_was_not_requested_is_refused() {
    let good = fixture("pl-deleted", "good");
    for range in [None, Some("bytes 0-8/9"), Some("bytes 5-8/9"), Some("lines 1-2/3")] {
        let good = good.clone();
        let server = Receiver::http(move |before, seen| {
            assert_eq!(seen.header("range"), "");
            let range = range.map(|range| ("Content-Range", range.to_owned()));
            match before {
                0 => Reply::Answer(206, range.into_iter().collect(), good[..9].to_vec()),
                _ => Reply::Answer(200, Vec::new(), good.clone()),
            }
        });
        let (site, settings) = one_source(&server, "/pl.txt", "");
        fails(&site, &settings, &["wrong place (206, ", range.unwrap_or("no Content-Range")]);
        assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added");
    }
}

#[test]
fn a_download_that_is_too_slow_is_aborted() {
    let server = Receiver::http(|_, _| Reply::Drip(Duration::from_millis(50), 1_000));
    let (site, settings) = one_source(&server, "/pl.txt", "");
    fails(&site, &settings, &["the server sent only", "fewer than 1024 a second"]);
}

#[test]
fn two_versions_of_a_list_are_never_joined() {
    let good = fixture("pl-deleted", "good");
    let length = good.len();
    for (other, total) in [
        (("ETag", "\"b\""), length),
        (("Last-Modified", "Tue, 24 Nov 2026 00:00:00 GMT"), length),
        (("ETag", "\"a\""), length + 1),
    ] {
        let good = good.clone();
        let server = Receiver::http(move |before, seen| match before {
            0 => {
                let date = "Mon, 23 Nov 2026 00:00:00 GMT".to_owned();
                let headers = vec![("ETag", "\"a\"".to_owned()), ("Last-Modified", date)];
                Reply::Cut(headers, vec![b'#'; 9], length)
            }
            1 => {
                let range = format!("bytes 9-{}/{total}", total - 1);
                let headers = vec![(other.0, other.1.to_owned()), ("Content-Range", range)];
                Reply::Answer(206, headers, vec![b'#'; total - 9])
            }
            _ => {
                assert_eq!(seen.header("range"), "");
                Reply::Answer(200, Vec::new(), good.clone())
            }
        });
        let (site, settings) = one_source(&server, "/pl.txt", "");
        fails(&site, &settings, &["connection failed"]);
        assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added");
        assert_eq!(batches(&site)[0].source_sha256, sha256(&fixture("pl-deleted", "good")));
    }
}

#[test]
fn a_silent_server_is_aborted_after_the_idle_time() {
    let server = Receiver::http(|_, _| Reply::Stall(Vec::new(), b"2026-11-23".to_vec(), 9_000));
    let (site, settings) = one_source(&server, "/pl.txt", "");
    fails(&site, &settings, &["timed out", "next bytes"]);
}

#[test]
fn redirects_are_followed_but_never_with_the_password_or_into_a_private_network() {
    let elsewhere = Receiver::http(|_, seen| {
        assert_eq!(seen.header("authorization"), "");
        Reply::Answer(200, Vec::new(), fixture("pl-deleted", "good"))
    });
    let there = elsewhere.url("/moved.txt");
    let server = Receiver::http(move |_, seen| match seen.target.as_str() {
        "/pl.txt" => {
            assert_eq!(seen.header("authorization"), "Basic bWU6aHVudGVyNDI=");
            Reply::Answer(302, vec![("Location", there.clone())], Vec::new())
        }
        "/private" => {
            Reply::Answer(301, vec![("Location", "https://10.0.0.1/".to_owned())], Vec::new())
        }
        _ => Reply::Answer(307, vec![("Location", "/loop".to_owned())], Vec::new()),
    });
    let site = Site::new();
    let secret = site.write("secret", "\u{feff}hunter42\r\n");
    let settings = |path: &str| {
        site.settings(&format!(
            "[sources]\nallow = [\"{}\", \"{}\"]\n[sources.lists]\nurl = \"{}\"\nusername = \"me\"\n\
             password_file = \"{}\"\n",
            server.address(),
            elsewhere.address(),
            server.url(path),
            secret.display()
        ))
    };
    fails(&site, &settings("/private"), &["10.0.0.1", "sources.allow"]);
    fails(&site, &settings("/loop"), &["redirects"]);
    let settings = settings("/pl.txt");
    let finished = run(&site, &settings, &["fetch", "--json"]);
    assert_eq!(finished.code, Some(0), "{finished}");
    assert!(!format!("{finished}").contains("hunter42"));
}

#[test]
fn a_host_that_requests_a_pause_gets_no_request_for_the_next_list() {
    let server = Receiver::http(|_, _| {
        Reply::Answer(429, vec![("Retry-After", "60".to_owned())], Vec::new())
    });
    let site = Site::new();
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "se-bardate", "nu-bardate"]);
    let finished = run(&site, &settings, &["fetch"]);
    finished.assert_failed(1, &["2 of 2 sources failed"]);
    assert_eq!(server.seen().len(), 1, "{finished}");
}

#[test]
fn the_failure_of_one_source_or_list_does_not_stop_the_others() {
    let server = Receiver::http(|_, seen| match seen.target.as_str() {
        "/deleted_domains.txt" => Reply::Close,
        "/droptime/files/2026112309.txt" => Reply::status(500),
        "/droptime/files/2026112409.txt" => {
            Reply::Answer(200, Vec::new(), fixture("it-droptime", "good"))
        }
        "/report/domain_deleted_list.csv" => {
            Reply::Answer(200, Vec::new(), fixture("mx-deleted", "good"))
        }
        _ => Reply::status(404),
    });
    let site = Site::new();
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "pl-deleted", "mx-deleted", "it-droptime"]);
    let finished = run(&site, &settings, &["fetch", "--json"]);
    finished.assert_failed(1, &["2 of 3"]);
    let printed: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert!(printed["generation"].is_string(), "what arrived is indexed: {printed}");
    let rows: Vec<&Value> =
        printed["sources"].as_array().expect("three").iter().map(|it| &it["rows"]).collect();
    assert_eq!(rows, [0, 2, 2], "{printed}");
    // A dated list that was ingested is not requested again.
    let before = server.seen().len();
    fetch(&site, &settings, "it-droptime");
    let asked: Vec<String> =
        server.seen()[before..].iter().map(|seen| seen.target.clone()).collect();
    assert_eq!(asked, ["/droptime/files/2026112309.txt", "/droptime/files/2026112509.txt"]);
}

#[test]
fn lists_that_are_not_published_yet_are_not_failures() {
    let server = Receiver::http(|_, _| Reply::status(404));
    let site = Site::new();
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "it-droptime"]);
    assert_eq!(fetch(&site, &settings, "it-droptime")["outcome"], "early");
    assert_eq!(listed(&site, &settings, "it-droptime")["problem"], Value::Null);
}

#[test]
fn a_link_to_another_host_is_not_followed() {
    let server = Receiver::http(|_, _| {
        Reply::Answer(
            200,
            Vec::new(),
            b"{\"result\":\"https://evil.example.com/drops.zip\"}".to_vec(),
        )
    });
    let site = Site::new();
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "dropcatch", "--yes"]);
    let report = fetch(&site, &settings, "dropcatch");
    let error = report["error"].as_str().expect("an error");
    assert!(error.contains("evil.example.com instead of dropcatch-downloads"), "{error}");
}

#[test]
fn errors_of_commands_say_what_to_do() {
    let site = Site::new();
    // The name server of the tests resolves no name.
    let settings = site.settings("");
    let hint = "no name can be resolved: check the DNS and the Internet access of this machine";
    let checked = run(&site, &settings, &["check", "psl", "tranco"]);
    checked.assert_failed(1, &[hint, "[dns]"]);
    assert!(checked.stdout.contains("cannot be resolved"), "{checked}");
    let needs = "czds needs an account: set username and password_file in [sources.czds]";
    let checked = run(&site, &settings, &["check", "psl", "czds"]);
    checked.assert_failed(1, &["2 of 2 sources failed"]);
    assert!(checked.stdout.contains(needs), "{checked}");
    run(&site, &settings, &["enable", "czds", "--yes"]).assert_failed(1, &[needs]);
    run(&site, &settings, &["enable"]).assert_failed(2, &["--all-free"]);
    let nearest = "there is no source `nominet`; did you mean uk-nominet?";
    run(&site, &settings, &["check", "nominet"]).assert_failed(1, &[nearest]);
    run(&site, &settings, &["check", "xyz"])
        .assert_failed(1, &["`dropdex sources list` shows all"]);
    assert_eq!(run(&site, &settings, &["enable", "psl"]).code, Some(0));
    run(&site, &settings, &["fetch"]).assert_failed(1, &[hint]);
    let list = run(&site, &settings, &["list"]);
    let line = list.stdout.lines().find(|line| line.contains("last checked")).expect("a line");
    assert!(line.contains(" UTC, failed; next "), "{line}");
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let site = Site::new();
    let mut list = site.command(&["sources", "list", "--json"]);
    let mut list = list.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    drop(list.stdout.take());
    let ended = list.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && errors.is_empty(), "{}: {errors}", ended.status);
}

#[test]
fn the_settings_file_overrides_the_command() {
    let server = publishers("good");
    let site = Site::new();
    let toml = |enabled: bool| {
        let url = server.url("/deleted_domains.txt");
        let section = sources_section(&server);
        format!("{section}[sources.pl-deleted]\nenabled = {enabled}\nurl = \"{url}\"\n")
    };
    let off = site.settings(&toml(false));
    run(&site, &off, &["enable", "pl-deleted"]).assert_failed(1, &["settings file"]);
    let on = site.settings(&toml(true));
    run(&site, &on, &["disable", "pl-deleted"]).assert_failed(1, &["settings file"]);
    let server_of_us = site.serve_with(&["--today", DAY, "--config", &on]);
    let state = site.data().join("sources/pl-deleted/state.json");
    wait::until(ARRIVAL_MAX, "the list is fetched", || {
        fs::read_to_string(&state).is_ok_and(|text| text.contains("\"rows\": 2"))
    });
    drop(server_of_us);
}

/// Starts a fake CZDS: a log-in with tokens that last an hour, links, and zone files, one of which is
/// refused. The returned state controls its days and statuses.
fn czds() -> (Receiver, Arc<CzdsState>) {
    let state = Arc::new(CzdsState {
        logins: AtomicUsize::new(0),
        status: AtomicUsize::new(200),
        day: AtomicUsize::new(23),
    });
    let served = Arc::clone(&state);
    let server = Receiver::http(move |_, seen| {
        let state = &served;
        let host = seen.header("host");
        let token = format!("Bearer {}", token(state.logins.load(Ordering::SeqCst)));
        match seen.target.as_str() {
            "/api/authenticate" => {
                let sent: Value = serde_json::from_slice(&seen.body).expect("JSON");
                assert_eq!(seen.header("content-type"), "application/json");
                if sent["password"] != "hunter42" {
                    return Reply::status(401);
                }
                let count = state.logins.fetch_add(1, Ordering::SeqCst) + 1;
                let body = serde_json::json!({ "accessToken": token_text(count) });
                Reply::Answer(200, Vec::new(), body.to_string().into_bytes())
            }
            _ if seen.header("authorization") != token => Reply::status(401),
            "/czds/downloads/links" => {
                let links: Vec<String> = ["app", "com", "net"]
                    .map(|zone| format!("http://{host}/czds/downloads/{zone}.zone"))
                    .to_vec();
                Reply::Answer(200, Vec::new(), serde_json::to_vec(&links).expect("JSON"))
            }
            "/czds/requests/report" => {
                let report = "Email,TLD name,Status,Last Updated,Reason,Expire Date\n\
                              me,com,Approved,,,2027-01-04\nme,app,Approved,,,\nme,xyz,Pending,,,\n";
                Reply::Answer(200, Vec::new(), report.as_bytes().to_vec())
            }
            "/czds/downloads/net.zone" => Reply::status(403),
            _ => match state.status.load(Ordering::SeqCst) {
                200 => {
                    let day = state.day.load(Ordering::SeqCst);
                    let date = format!("Mon, {day} Nov 2026 02:00:00 GMT");
                    let zone = zone(&seen.target, day);
                    Reply::Answer(200, vec![("Last-Modified", date)], zone)
                }
                status => Reply::status(u16::try_from(status).expect("a status")),
            },
        }
    });
    (server, state)
}

struct CzdsState {
    logins: AtomicUsize,
    status: AtomicUsize,
    day: AtomicUsize,
}

/// Returns a JSON Web Token that expires on 2 December.
fn token_text(count: usize) -> String {
    use base64::Engine;
    let claims = format!("{{\"exp\":1796169600,\"count\":{count}}}");
    format!("e30.{}.x", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
}

/// The response of the service to a log-in.
fn logged_in() -> Reply {
    let body = serde_json::json!({ "accessToken": token_text(1) }).to_string();
    Reply::Answer(200, Vec::new(), body.into_bytes())
}

fn token(count: usize) -> String {
    if count == 0 { "none".to_owned() } else { token_text(count) }
}

/// Returns a zone file as registries publish it, with the same SOA record at its start and end.
fn zone(target: &str, day: usize) -> Vec<u8> {
    let apex =
        target.rsplit('/').next().and_then(|file| file.strip_suffix(".zone")).expect("a zone");
    let soa = format!("{apex}.\t900\tin\tsoa\ta.{apex}. b.{apex}. {day} 1 2 3 4\n");
    // One name leaves on the 24th.
    let names = (0..50).filter(|at| day < 24 || *at != 7);
    let names = names.map(|at| format!("name{at}.{apex}.\t900\tin\tns\tns.example.net.\n"));
    let names: String = names.collect();
    gzip(format!("{soa}{names}{soa}").as_bytes())
}

/// Creates an installation with a CZDS account.
fn with_czds(server: &Receiver, password: &str, more: &str) -> (Site, String) {
    let site = Site::new();
    let secret = site.write("secret", password);
    let settings = site.settings(&format!(
        "{}[sources.czds]\nenabled = true\nurl = \"{}\"\nlogin_url = \"{}\"\nusername = \"me\"\n\
         password_file = \"{}\"\n{more}",
        sources_section(server),
        server.url("/czds/downloads/links"),
        server.url("/api/authenticate"),
        secret.display(),
    ));
    (site, settings)
}

fn asked(server: &Receiver, from: usize) -> Vec<String> {
    let seen = server.seen();
    seen[from..].iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect()
}

#[test]
fn czds_logs_in_once_and_downloads_a_zone_once_in_24_hours() {
    let (server, state) = czds();
    let (site, settings) = with_czds(&server, "hunter42", "zones = [\"com\"]\n");
    assert_eq!(fetch(&site, &settings, "czds")["error"], Value::Null);
    let (log_in, links, report, com) = (
        "POST /api/authenticate".to_owned(),
        "GET /czds/downloads/links".to_owned(),
        "GET /czds/requests/report".to_owned(),
        "GET /czds/downloads/com.zone".to_owned(),
    );
    assert_eq!(asked(&server, 0), [&log_in, &links, &report, &com].map(String::clone));
    let shown = run(&site, &settings, &["list"]).stdout;
    assert!(
        shown.contains("zones: 2 Approved, 1 Pending; com: Approved until 2027-01-04"),
        "{shown}"
    );
    let token = site.data().join("sources/czds/token.json");
    assert_eq!(fs::metadata(token).expect("kept").permissions().mode() & 0o777, 0o600);

    // There is a newer zone file, but 24 hours have not passed since the last download.
    state.day.store(24, Ordering::SeqCst);
    assert_eq!(fetch(&site, &settings, "czds")["outcome"], "unchanged");
    assert_eq!(asked(&server, 4), [&links, &report].map(String::clone), "the token is used again");

    // Two days later, the service has withdrawn the token.
    state.logins.fetch_add(1, Ordering::SeqCst);
    let later = ["--today", "2026-11-25", "--config", &settings, "sources", "fetch", "czds"];
    assert_eq!(site.run(&later).code, Some(0));
    let head = "HEAD /czds/downloads/com.zone".to_owned();
    assert_eq!(
        asked(&server, 6),
        [&links, &log_in, &links, &report, &head, &com].map(String::clone)
    );
    let later = ["--today", "2026-11-27", "--config", &settings, "sources", "fetch", "czds"];
    assert_eq!(site.run(&later).code, Some(0));
    assert_eq!(
        asked(&server, 12),
        [&links, &report, &head].map(String::clone),
        "Last-Modified has not moved"
    );
}

#[test]
fn drops_are_found_in_the_zone_files_of_czds() {
    let (server, state) = czds();
    let (site, settings) = with_czds(&server, "hunter42", "zones = [\"com\"]\n");
    for day in 23..=26 {
        state.day.store(day, Ordering::SeqCst);
        let today = format!("2026-11-{day}");
        let args = ["--today", &today, "--config", &settings, "sources", "fetch", "czds", "--json"];
        let finished = site.run(&args);
        let report: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        let rows = u64::from(day == 26);
        assert_eq!(report["sources"][0]["rows"], rows, "the third file without it: {finished}");
    }
    let [batch] = &batches(&site)[..] else { panic!("one list of drops") };
    let origin = batch.origin.as_ref().expect("an origin");
    assert_eq!((origin.source.as_str(), origin.internal), ("czds", true));
    let exported = |settings: &str| {
        site.ok(&["--today", "2026-11-26", "--config", settings, "export", "drops"])
    };
    assert!(!exported(&settings).contains("name7.com"));
    let open = fs::read_to_string(&settings).expect("settings");
    let open = site.settings(&open.replace("[sources]\n", "[sources]\nexport_internal = true\n"));
    assert!(exported(&open).contains("name7.com,com"), "{}", exported(&open));
}

/// The odd links are named in a warning, and each zone of the other links is downloaded once.
#[test]
fn odd_links_of_czds_do_not_stop_the_zones() {
    let other = Receiver::http(|_, _| Reply::status(200));
    let foreign = other.url("/czds/downloads/org.zone");
    let server = Receiver::http(move |_, seen| match seen.target.as_str() {
        "/api/authenticate" => logged_in(),
        "/czds/downloads/links" => {
            let base = format!("http://{}/czds/downloads", seen.header("host"));
            let links =
                ["com.zone", "com.zone", "COM.zone", "com.zone?v=2", "app.zone", "guide.pdf"];
            let mut links: Vec<Value> = links.map(|it| format!("{base}/{it}").into()).to_vec();
            links.extend([foreign.as_str().into(), "no link".into(), Value::Null]);
            Reply::Answer(200, Vec::new(), serde_json::to_vec(&links).expect("JSON"))
        }
        "/czds/requests/report" => Reply::status(404),
        target => Reply::Answer(200, Vec::new(), zone(&target.to_lowercase(), 23)),
    });
    let (site, settings) = with_czds(&server, "hunter42", "");
    let report = fetch(&site, &settings, "czds");
    assert_eq!((&report["error"], &report["compared"]), (&Value::Null, &2.into()), "{report}");
    let mut asked = asked(&server, 0);
    asked.retain(|line| line.contains(".zone"));
    asked.sort();
    assert_eq!(asked, ["GET /czds/downloads/app.zone", "GET /czds/downloads/com.zone"]);
    assert_eq!(other.seen().len(), 0);
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("guide.pdf") && warning.contains("/org.zone`"), "{warning}");
    let listed = listed(&site, &settings, "czds");
    assert_eq!((&listed["status"], &listed["warnings"][0]), (&"doubtful".into(), &warning.into()));
    assert!(run(&site, &settings, &["list"]).stdout.contains("WARNING: not downloaded"));
}

/// The file of another zone is refused, which is reported until the zone's own file arrives.
#[test]
fn a_zone_file_of_another_zone_leaves_the_zone_stale() {
    let wrong = Arc::new(AtomicUsize::new(1));
    let is_wrong = Arc::clone(&wrong);
    let server = Receiver::http(move |_, seen| match seen.target.as_str() {
        "/api/authenticate" => logged_in(),
        "/czds/downloads/links" => {
            let base = format!("http://{}/czds/downloads", seen.header("host"));
            let links = ["com", "net"].map(|zone| format!("{base}/{zone}.zone"));
            Reply::Answer(200, Vec::new(), serde_json::to_vec(&links).expect("JSON"))
        }
        "/czds/requests/report" => Reply::status(404),
        "/czds/downloads/com.zone" if is_wrong.load(Ordering::SeqCst) == 1 => {
            let headers = vec![("Last-Modified", "Mon, 23 Nov 2026 02:00:00 GMT".to_owned())];
            Reply::Answer(200, headers, zone("net.zone", 23))
        }
        target => Reply::Answer(200, Vec::new(), zone(target, 24)),
    });
    let (site, settings) = with_czds(&server, "hunter42", "");
    let words = "a file of the zone `net` instead of `com`";
    let report = fetch(&site, &settings, "czds");
    assert!(report["error"].as_str().is_some_and(|text| text.contains(words)), "{report}");
    assert!(report["error"].as_str().is_some_and(|text| text.starts_with("com: ")), "{report}");
    let kept = |zone: &str| site.data().join("zones").join(zone).exists();
    assert!(kept("net") && !kept("com"), "the other zone is compared");
    // Two days later, the service still has the wrong file, and nothing is downloaded.
    let on = |day: &str| {
        let args = ["--today", day, "--config", &settings, "sources", "fetch", "czds", "--json"];
        let printed: Value = serde_json::from_str(&site.run(&args).stdout).expect("JSON");
        printed["sources"][0]["error"].clone()
    };
    assert!(on("2026-11-25").as_str().is_some_and(|text| text.contains(words)), "still stale");
    let zones =
        || asked(&server, 0).iter().filter(|it| *it == "GET /czds/downloads/com.zone").count();
    assert_eq!(zones(), 1);
    wrong.store(0, Ordering::SeqCst);
    assert_eq!((on("2026-11-27"), kept("com")), (Value::Null, true));
}

/// Servers that compress responses unrequested: the list is read, or the error names the coding.
#[test]
fn compressed_responses_are_read_or_named() {
    let list =
        |coding: &str| format!("domain,drop_date\n{coding}name.com,2026-11-20\n").into_bytes();
    let packed = |coding: &str, body: &[u8]| {
        let mut packed = Vec::new();
        let level = flate2::Compression::default();
        match coding {
            "gzip" => packed = gzip(body),
            "deflate" => {
                let mut encoder = flate2::read::ZlibEncoder::new(body, level);
                encoder.read_to_end(&mut packed).expect("memory");
            }
            _ => packed = body.to_vec(),
        }
        packed
    };
    for coding in ["gzip", "deflate"] {
        let server = Receiver::http(move |_, _| {
            let headers = vec![("Content-Encoding", coding.to_owned()), ("ETag", "\"a\"".into())];
            Reply::Answer(200, headers, packed(coding, &list(coding)))
        });
        let (site, settings) = one_source(&server, "/list.csv", "");
        let report = fetch(&site, &settings, "lists");
        assert_eq!((&report["rows"], &report["error"]), (&1.into(), &Value::Null), "{coding}");
        assert_eq!(server.seen()[0].header("accept-encoding"), "identity");
    }
    for (coding, words) in [
        (
            "br",
            "the server sent Content-Encoding: br, which dropdex neither requested nor supports",
        ),
        ("zstd", "the server sent Content-Encoding: zstd, but the body is not coded so"),
    ] {
        let server = Receiver::http(move |_, _| {
            Reply::Answer(200, vec![("Content-Encoding", coding.to_owned())], list(coding))
        });
        let (site, settings) = one_source(&server, "/list.csv", "");
        fails(&site, &settings, &[words]);
    }
}

/// If the server declares the compression of a file as its content coding, the file is kept as published, so that its
/// checksum matches.
#[test]
fn the_compression_of_a_file_is_not_a_content_coding() {
    let body = fixture("uk-nominet", "good");
    let server = Receiver::http(move |_, seen| match seen.target.ends_with(".sha256") {
        true => Reply::Answer(200, Vec::new(), sha256(&body).into_bytes()),
        false => Reply::Answer(200, vec![("Content-Encoding", "x-gzip".to_owned())], body.clone()),
    });
    let site = Site::new();
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "uk-nominet"]);
    let report = fetch(&site, &settings, "uk-nominet");
    assert_eq!((&report["rows"], &report["error"]), (&3.into(), &Value::Null), "{report}");
}

/// A server that sets a cookie and redirects to the same address gets the cookie back; no other server
/// does.
#[test]
fn a_cookie_is_sent_back_while_redirects_are_followed() {
    let other =
        Receiver::http(|_, _| Reply::Answer(200, Vec::new(), fixture("pl-deleted", "good")));
    let elsewhere = other.url("/pl.txt");
    for is_let_in in [true, false] {
        let elsewhere = elsewhere.clone();
        let server = Receiver::http(move |_, seen| match seen.header("cookie") {
            "seen=1; b=2" if is_let_in => {
                Reply::Answer(302, vec![("Location", elsewhere.clone())], Vec::new())
            }
            _ => {
                let cookie = |text: &str| ("Set-Cookie", format!("{text}; Path=/; HttpOnly"));
                let headers = vec![cookie("seen=1"), cookie("b=2"), ("Location", "/pl.txt".into())];
                Reply::Answer(302, headers, Vec::new())
            }
        });
        let (site, settings) = one_source(&server, "/pl.txt", "");
        let toml = fs::read_to_string(&settings).expect("settings");
        let allow = format!("allow = [\"{}\", ", other.address());
        let settings = site.settings(&toml.replace("allow = [", &allow));
        match is_let_in {
            true => assert_eq!(fetch(&site, &settings, "lists")["rows"], 2),
            false => drop(fails(&site, &settings, &["its cookie `seen` was sent back"])),
        }
        assert_eq!(server.seen()[0].header("cookie"), "");
    }
    assert_eq!(other.seen()[0].header("cookie"), "", "cookies go to their own server");
}

/// A compressed body that grows beyond `max_mib`.
#[test]
fn a_compressed_response_is_bounded() {
    let server = Receiver::http(move |_, _| {
        let body = gzip(&vec![b'a'; 3 << 20]);
        Reply::Answer(200, vec![("Content-Encoding", "gzip".to_owned())], body)
    });
    let (site, settings) = one_source(&server, "/list.csv", "max_mib = 1\n");
    fails(&site, &settings, &["above the limit of 1048576", "max_mib"]);
}

/// A list that lost nearly all its rows is accepted, and the source is doubtful.
#[test]
fn a_list_that_shrank_is_doubtful() {
    let server = Receiver::http(|before, _| {
        let rows = if before == 1 { 2 } else { 200 };
        let rows: String =
            (0..rows).map(|at| format!("name{before}x{at}.com,2026-11-2{before}\n")).collect();
        Reply::Answer(200, Vec::new(), format!("domain,drop_date\n{rows}").into_bytes())
    });
    let (site, settings) = one_source(&server, "/list.csv", "");
    let status = || {
        assert_eq!(fetch(&site, &settings, "lists")["outcome"], "added");
        let listed = listed(&site, &settings, "lists");
        (listed["status"].clone(), listed["warnings"].clone())
    };
    assert_eq!(status(), ("ok".into(), Value::Array(Vec::new())));
    let (standing, warnings) = status();
    assert_eq!(standing, "doubtful");
    let warning = warnings[0].as_str().expect("a warning");
    assert!(warning.starts_with("2 rows, 1 % of the usual 200"), "{warning}");
    assert_eq!(status(), ("ok".into(), Value::Array(Vec::new())));
}

/// Errors of CZDS requests. In `data/docs/contributing.md`, each row of the table of errors names a
/// test.
#[test]
fn czds_errors_are_explained() {
    let (server, state) = czds();
    let failed = |zones: &str, words: &str| {
        let (site, settings) = with_czds(&server, "hunter42", zones);
        let report = fetch(&site, &settings, "czds");
        assert!(report["error"].as_str().is_some_and(|text| text.contains(words)), "{report}");
        let next = listed(&site, &settings, "czds")["nextRun"].is_string();
        (site, next)
    };
    // A zone that is not approved does not stop the others.
    let (site, next) = failed("", "net: access to the zone is not approved");
    assert!(next);
    let held = fs::read_to_string(site.data().join("sources/czds/state.json")).expect("a state");
    assert!(held.contains("app.zone") && held.contains("com.zone") && !held.contains("net.zone"));

    for (status, words, is_retried) in [
        (409, "new terms (409); accept them", false),
        (428, "new terms (428); accept them", false),
        (429, "limits requests (429)", true),
        (500, "failed with status 500", true),
        (503, "failed with status 503", true),
        (404, "there is no list", true),
    ] {
        state.status.store(status, Ordering::SeqCst);
        let (_, next) = failed("zones = [\"com\", \"app\"]\n", words);
        assert_eq!(next, is_retried, "{status}");
    }
    let (_, next) = failed("zones = [\"org\"]\n", "request access");
    assert!(next);
    let site = Site::new();
    let bare = site.settings("[sources.uk-nominet]\nenabled = true\n");
    run(&site, &bare, &["enable", "czds", "--yes"])
        .assert_failed(1, &["username", "[sources.czds]"]);
}

/// Log-ins that the service refuses with its documented statuses, or to which it responds with a
/// page.
#[test]
fn a_failed_login_is_reported_and_not_retried() {
    let page = b"<!DOCTYPE html><title>Maintenance</title>".to_vec();
    for (status, body, words, is_retried) in [
        (400, Vec::new(), "password_file", false),
        (401, Vec::new(), "password_file", false),
        (415, Vec::new(), "status 415", true),
        (429, Vec::new(), "limits requests (429)", true),
        (500, Vec::new(), "failed with status 500", true),
        (200, page.clone(), "web page", true),
        (200, b"{}".to_vec(), "returned no token", true),
    ] {
        let sent = body.clone();
        let server = Receiver::http(move |_, _| Reply::Answer(status, Vec::new(), sent.clone()));
        let (site, settings) = with_czds(&server, "hunter42", "");
        let report = fetch(&site, &settings, "czds");
        assert!(report["error"].as_str().is_some_and(|text| text.contains(words)), "{report}");
        assert_eq!(asked(&server, 0), ["POST /api/authenticate"], "{status}");
        let listed = listed(&site, &settings, "czds");
        assert_eq!(listed["nextRun"].is_string(), is_retried, "{status}");
        if status == 429 {
            // The service allows eight attempts in five minutes, so the next one waits.
            assert!((300..400).contains(&pause(&listed)), "{listed}");
        }
    }
}

/// A page with status 200 instead of the links or a zone file, and a redirect to such a page.
#[test]
fn web_pages_instead_of_links_and_zones_are_reported() {
    for at in ["links", "zone", "redirect"] {
        let server = Receiver::http(move |_, seen| {
            let page = || Reply::Answer(200, Vec::new(), b"<html>Maintenance</html>".to_vec());
            let host = seen.header("host");
            match seen.target.as_str() {
                "/api/authenticate" => logged_in(),
                "/czds/downloads/links" if at == "redirect" => {
                    Reply::Answer(302, vec![("Location", "/maintenance".to_owned())], Vec::new())
                }
                "/czds/downloads/links" if at == "zone" => {
                    let links = [format!("http://{host}/czds/downloads/com.zone")];
                    Reply::Answer(200, Vec::new(), serde_json::to_vec(&links).expect("JSON"))
                }
                _ => page(),
            }
        });
        let (site, settings) = with_czds(&server, "hunter42", "");
        let report = fetch(&site, &settings, "czds");
        assert!(report["error"].as_str().is_some_and(|text| text.contains("web page")), "{report}");
        assert!(pause(&listed(&site, &settings, "czds")) <= 20, "{at}: retried soon");
    }
}

/// A token that expires in the middle of a run leads to one log-in, and every zone arrives.
#[test]
fn a_token_that_ends_during_a_run_is_renewed_once() {
    let (server, state) = czds();
    let (site, settings) = with_czds(&server, "hunter42", "zones = [\"com\", \"app\"]\n");
    state.status.store(401, Ordering::SeqCst);
    let report = fetch(&site, &settings, "czds");
    assert!(report["error"].as_str().is_some_and(|text| text.contains("(401)")), "{report}");
    let logins = |from| {
        asked(&server, from).iter().filter(|it| it.starts_with("POST /api/authenticate")).count()
    };
    assert_eq!(logins(0), 2, "at the start, and once for all zones");
    assert!(listed(&site, &settings, "czds")["nextRun"].is_null());
}

/// Zones are downloaded concurrently, four at a time.
#[test]
fn czds_downloads_a_bounded_number_of_zones_at_a_time() {
    const ZONES: [&str; 9] = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"];
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let server = Receiver::http(move |_, seen| match seen.target.as_str() {
        "/api/authenticate" => logged_in(),
        "/czds/downloads/links" => {
            let host = seen.header("host");
            let links = ZONES.map(|zone| format!("http://{host}/czds/downloads/{zone}.zone"));
            Reply::Answer(200, Vec::new(), serde_json::to_vec(&links).expect("JSON"))
        }
        target if target.ends_with(".zone") => {
            let count = now.fetch_add(1, Ordering::SeqCst) + 1;
            peak.fetch_max(count, Ordering::SeqCst);
            // The first downloads wait for one another, so that they are concurrent.
            for _ in 0..1_000 {
                if peak.load(Ordering::SeqCst) >= 4 {
                    break;
                }
                thread::sleep(Duration::from_millis(10));
            }
            let zone = zone(target, 23);
            now.fetch_sub(1, Ordering::SeqCst);
            Reply::Answer(200, Vec::new(), zone)
        }
        _ => Reply::status(404),
    });
    let (site, settings) = with_czds(&server, "hunter42", "");
    let settings = site.settings(
        &fs::read_to_string(&settings)
            .expect("settings")
            .replace("idle_seconds = 1", "idle_seconds = 30"),
    );
    assert_eq!(fetch(&site, &settings, "czds")["error"], Value::Null);
    assert_eq!(most.load(Ordering::SeqCst), 4);
    let kept = fs::read_dir(site.data().join("zones")).expect("zones").count();
    assert_eq!(kept, ZONES.len());
}

#[test]
fn the_token_of_czds_goes_to_no_other_host() {
    let other = Receiver::http(|_, _| Reply::status(200));
    let link = other.url("/czds/downloads/com.zone");
    let server = Receiver::http(move |_, seen| match seen.target.as_str() {
        "/api/authenticate" => logged_in(),
        _ => Reply::Answer(200, Vec::new(), serde_json::to_vec(&[&link]).expect("JSON")),
    });
    let (site, settings) = with_czds(&server, "hunter42", "");
    let report = fetch(&site, &settings, "czds");
    assert!(
        report["error"]
            .as_str()
            .is_some_and(|text| text.contains("com.zone`, which leads elsewhere")),
        "{report}"
    );
    assert_eq!(other.seen().len(), 0);
    // Nor is the password sent to another host.
    let redirecting = Receiver::http(move |_, _| {
        Reply::Answer(307, vec![("Location", other.url("/login"))], Vec::new())
    });
    let (site, settings) = with_czds(&redirecting, "hunter42", "");
    let report = fetch(&site, &settings, "czds");
    assert!(report["error"].as_str().is_some_and(|text| text.contains("redirects")), "{report}");
}

#[test]
fn the_status_page_and_readiness_show_each_source() {
    let server = Receiver::http(|_, seen| match seen.target.as_str() {
        "/deleted_domains.txt" => Reply::Answer(200, Vec::new(), fixture("pl-deleted", "good")),
        _ => Reply::status(403),
    });
    let site = Site::new();
    let settings = settings(&site, &server);
    let with_metrics = fs::read_to_string(&settings).expect("settings");
    let settings = site.settings(&format!("{with_metrics}[metrics]\nlisten = \"127.0.0.1:0\"\n"));
    run(&site, &settings, &["enable", "pl-deleted", "mx-deleted"]);
    let server_of_us = site.serve_with(&["--today", DAY, "--config", &settings]);
    let mut client = server_of_us.client();
    let sources = wait::until_ok(ARRIVAL_MAX, || {
        let ready = client.get("/api/ready/ingest").json();
        let is_done = ready["sources"].as_array().is_some_and(|all| {
            all.len() == 2 && all.iter().all(|source| source["status"] != "waiting")
        });
        if is_done { Ok(ready["sources"].clone()) } else { Err(ready.to_string()) }
    });
    assert_eq!((&sources[0]["name"], &sources[0]["status"]), (&"pl-deleted".into(), &"ok".into()));
    assert_eq!(sources[0]["rows"], 2);
    assert!(sources[0]["lastSuccess"].is_string() && sources[0]["nextRun"].is_string());
    assert_eq!(
        (&sources[1]["name"], &sources[1]["status"]),
        (&"mx-deleted".into(), &"stopped".into())
    );
    assert!(sources[1]["lastSuccess"].is_null() && sources[1]["nextRun"].is_null());

    let page = client.get("/status").text().to_owned();
    for text in
        ["pl-deleted", "mx-deleted", "refuses access (403)", "A source of lists needs attention"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    // A visitor behind a proxy does not see the reasons, which may contain paths.
    let forwarded = client.request("GET", "/status", &[("X-Forwarded-For", "192.0.2.1")]);
    assert!(forwarded.text().contains("mx-deleted") && !forwarded.text().contains("(403)"));
    let scrape = server_of_us.metrics().get("/metrics").text().to_owned();
    for line in [
        "dropdex_source_rows{source=\"pl-deleted\"} 2",
        "dropdex_source_failing{source=\"mx-deleted\"} 1",
        "dropdex_source_failing{source=\"pl-deleted\"} 0",
        "dropdex_source_late_seconds{source=\"mx-deleted\"} 0",
        "dropdex_source_runs_total{source=\"pl-deleted\",outcome=\"added\"} 1",
        "dropdex_source_runs_total{source=\"mx-deleted\",outcome=\"failed\"} 1",
    ] {
        assert!(scrape.contains(line), "{line}");
    }
    // The operator acts while the server runs.
    assert_eq!(run(&site, &settings, &["disable", "mx-deleted"]).code, Some(0));
    wait::until_ok(ARRIVAL_MAX, || {
        let page = client.get("/status").text().to_owned();
        if page.contains("mx-deleted") { Err(page) } else { Ok(()) }
    });
}

#[test]
fn a_server_tries_again_automatically() {
    let server = Receiver::http(|before, _| match before {
        0 => Reply::Cut(vec![("ETag", "\"a\"".to_owned())], b"2026".to_vec(), 99),
        _ => Reply::Answer(200, Vec::new(), fixture("pl-deleted", "good")),
    });
    let (site, settings) = one_source(&server, "/pl.txt", "");
    let server_of_us = site.serve_with(&["--today", DAY, "--config", &settings]);
    wait::until(ARRIVAL_MAX, "the list is fetched", || {
        listed(&site, &settings, "lists")["rows"] == 2
    });
    assert_eq!(server.seen()[1].header("range"), "bytes=4-", "it resumed the download");
    assert!(server_of_us.log().contains("a source was not fetched"));
    drop(server_of_us);
}

#[test]
fn killed_servers_lose_and_repeat_nothing() {
    let (site, server) = (Site::new(), publishers("good"));
    let key = site.account("owner@example.com", "api");
    let settings = settings(&site, &server);
    assert_eq!(run(&site, &settings, &["enable", "--all-free"]).code, Some(0));
    for at in 0..8 {
        let doomed = site.serve_with(&["--today", DAY, "--config", &settings]);
        thread::sleep(Duration::from_millis(at * 90));
        doomed.kill();
    }
    let server_of_us = site.serve_with(&["--today", DAY, "--config", &settings]);
    let mut client = server_of_us.client_with(&key);
    wait::until_ok(ARRIVAL_MAX, || {
        let drops = client.get("/api/v1/drops?limit=1").json();
        if drops["total"] == 17 { Ok(()) } else { Err(drops.to_string()) }
    });
    wait::until(ARRIVAL_MAX, "all sources are done", || {
        let ready = client.get("/api/ready/ingest").json();
        ready["sources"].as_array().is_some_and(|all| all.iter().all(|it| it["status"] == "ok"))
    });
    let lists: Vec<BatchMeta> =
        batches(&site).into_iter().flat_map(|batch| batch.lists().to_vec()).collect();
    let mut hashes: Vec<&str> = lists.iter().map(|list| list.source_sha256.as_str()).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!((lists.len(), hashes.len()), (FREE_LISTS, FREE_LISTS), "each list once");
    assert!(site.data().join("corpus").join("ranks-tranco.ddr").is_file());
    for source in fs::read_dir(site.data().join("sources")).expect("a folder") {
        let path = source.expect("an entry").path();
        if path.is_dir() {
            let files = fs::read_dir(&path).expect("a folder").count();
            assert_eq!(files, 2, "{}: state and lock", path.display());
        }
    }
}

/// Returns a table in its documented format: with a new suffix `newtld` and, starting with some
/// version, without `plumbing`, which is a brand TLD in ICANN's table.
fn table(name: &str, version: u32) -> String {
    let known = ["com", "net", "org", "de", "fr", "uk", "xn--p1ai", "cl", "newtld", "plumbing"];
    let json = |tld: String, is_brand: bool| {
        serde_json::json!({
            "applicationId": null, "contractTerminated": false, "gTLD": tld,
            "registryOperator": "Operator", "specification13": is_brand, "uLabel": null,
        })
    };
    match name {
        "psl" => {
            let rules: String = (0..9_000).map(|at| format!("s{at}.com\n")).collect();
            format!(
                "// VERSION: 2026-11-{version}_08-12-33_UTC\n// ===BEGIN ICANN DOMAINS===\n{}\nco.uk\n\
                 com.au\nco.jp\ncom.br\n{rules}// ===END ICANN DOMAINS===\n\
                 // ===BEGIN PRIVATE DOMAINS===\n// ===END PRIVATE DOMAINS===\n",
                known.join("\n")
            )
        }
        "iana-tlds" => {
            let tlds: String = known.iter().map(|tld| tld.to_uppercase() + "\n").collect();
            let more: String = (0..1_300).map(|at| format!("XN--{at}\n")).collect();
            format!(
                "# Version 202611{version}00, Last Updated Mon Nov {version} 2026\n{tlds}{more}"
            )
        }
        _ => {
            let mut rows: Vec<Value> =
                (0..300).map(|at| json(format!("brand{at}"), true)).collect();
            rows.extend(known.map(|tld| json(tld.to_owned(), tld == "plumbing")));
            let updated = format!("2026-11-{version}T15:54:03.596+0000");
            serde_json::json!({ "gTLDs": rows, "updatedOn": updated, "version": 2 }).to_string()
        }
    }
}

/// Starts a publisher of tables; `version` is a day of November, or 0 for half a table.
fn tables(version: &Arc<AtomicUsize>) -> Receiver {
    let version = Arc::clone(version);
    Receiver::http(move |_, seen| {
        let day = version.load(Ordering::SeqCst) as u32;
        let text = table(seen.target.trim_start_matches('/'), if day == 0 { 23 } else { day });
        let text = if day == 0 { text[..text.len() / 2].to_owned() } else { text };
        serve_list(seen, text.into_bytes())
    })
}

#[test]
fn tables_are_fetched_checked_and_used_from_the_next_start() {
    let version = Arc::new(AtomicUsize::new(20));
    let (site, server) = (Site::new(), tables(&version));
    let key = site.account("owner@example.com", "api");
    let sources: String = TABLES
        .map(|name| {
            format!(
                "[sources.{name}]\nenabled = true\nurl = \"{}\"\n",
                server.url(&format!("/{name}"))
            )
        })
        .concat();
    let settings = site.settings(&(sources_section(&server) + &sources));
    let on = |day: u32, args: &[&str]| {
        let day = format!("2026-11-{day}");
        site.run(&[&["--today", &day, "--config", &settings], args].concat())
    };
    let list = "domain,drop_date\nsolar.plumbing,2026-11-18\nsolar.com,2026-11-18\n";
    let list = site.write("list.csv", list);
    assert_eq!(on(20, &["ingest", list.to_str().expect("UTF-8")]).code, Some(0));
    on(20, &["score", "shop.newtld"]).assert_failed(1, &["names refused"]);

    let checked = on(20, &["sources", "check"]);
    assert!(checked.stdout.contains("psl 2026-11-20_08-12-33_UTC, 9014 rows"), "{checked}");
    let fetched = on(20, &["sources", "fetch"]);
    assert_eq!(fetched.code, Some(0), "{fetched}");
    assert!(
        fetched.stdout.contains("9014 entries takes effect when the server starts"),
        "{fetched}"
    );
    assert_eq!(on(20, &["score", "shop.newtld"]).code, Some(0));
    // At most one request a day, not even a conditional one.
    let before = server.seen().len();
    assert!(on(20, &["sources", "fetch"]).stdout.contains("nothing new"));
    assert_eq!(server.seen().len(), before);

    // A server and its workers use one version from start to end.
    let serving = site.serve_with(&["--today", "2026-11-22", "--config", &settings]);
    let mut client = serving.client_with(&key);
    let psl = |client: &mut crate::common::http::Client| {
        let ready = client.get("/api/ready/ingest").json();
        let all = ready["sources"].as_array().expect("sources").clone();
        let psl = all.into_iter().find(|source| source["name"] == "psl").expect("listed");
        (psl["version"].clone(), psl["inUse"].clone())
    };
    assert_eq!(psl(&mut client), ("2026-11-20_08-12-33_UTC".into(), true.into()));
    version.store(22, Ordering::SeqCst);
    assert_eq!(on(22, &["sources", "fetch", "psl"]).code, Some(0));
    wait::until_ok(ARRIVAL_MAX, || match psl(&mut client) {
        (version, in_use) if version == "2026-11-22_08-12-33_UTC" && in_use == false => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let page = client.get("/status").text().to_owned();
    assert!(page.contains("takes effect at the next start"), "{page}");
    let list = site.write("more.csv", "domain,drop_date\nshop.newtld,2026-11-19\n");
    let added = on(22, &["ingest", list.to_str().expect("UTF-8")]);
    assert_eq!(added.code, Some(0), "{added}");
    // The rebuild marks names under a brand TLD as not public.
    wait::until_ok(ARRIVAL_MAX, || {
        let dossier = client.get("/api/v1/domain/solar.plumbing").json();
        let closed = dossier.to_string().contains("notPublic");
        if closed { Ok(()) } else { Err(dossier.to_string()) }
    });
    assert!(!client.get("/api/v1/domain/solar.com").text().contains("notPublic"));
    serving.stop();

    // Bad and older tables change nothing.
    version.store(0, Ordering::SeqCst);
    let bad = on(24, &["sources", "fetch"]);
    bad.assert_failed(1, &["3 of 3 sources failed"]);
    assert!(bad.stdout.contains("the previous one stays"), "{bad}");
    version.store(21, Ordering::SeqCst);
    let older = on(26, &["sources", "fetch", "psl"]);
    assert!(older.stdout.contains("2026-11-22_08-12-33_UTC is held already"), "{older}");
    let serving = site.serve_with(&["--today", "2026-11-26", "--config", &settings]);
    let mut client = serving.client_with(&key);
    assert_eq!(psl(&mut client), ("2026-11-22_08-12-33_UTC".into(), true.into()));
    let held = fs::read_dir(site.data().join("tables")).expect("tables");
    let names: Vec<String> = held
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("ASCII"))
        .collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("psl-")).count(), 1, "{names:?}");
}

#[test]
fn a_monthly_history_brings_registrations_and_deletions_once() {
    let (site, server) = (Site::new(), publishers("good"));
    let settings = settings(&site, &server);
    run(&site, &settings, &["enable", "fr-monthly", "--yes"]);
    assert_eq!(fetch(&site, &settings, "fr-monthly")["rows"], 3);
    assert_eq!(asked(&server, 0), ["GET /opendata/202611_A.zip", "GET /opendata/202610_A.zip"]);
    let before = server.seen().len();
    assert_eq!(fetch(&site, &settings, "fr-monthly")["outcome"], "unchanged");
    assert_eq!(
        asked(&server, before),
        ["GET /opendata/202611_A.zip"],
        "older lists are not needed"
    );
    let list = site.ok(&["--today", DAY, "export", "drops", "--view", "all"]);
    assert!(list.contains("silverpine.fr") && list.contains("quietharbor.fr"), "{list}");
    assert!(!list.contains("brightmesa.fr"), "{list}");
}

#[test]
fn names_that_leave_a_registrys_list_drop() {
    let day = Arc::new(AtomicUsize::new(0));
    let served = Arc::clone(&day);
    let server = Receiver::http(move |_, _| {
        let text = String::from_utf8(fixture("sk-list", "good")).expect("UTF-8");
        let gone = served.load(Ordering::SeqCst) > 0;
        let rows = text.lines().filter(|line| !(gone && line.starts_with("quietharbor")));
        let text: String = rows.map(|line| format!("{line}\n")).collect();
        let stamp = format!("-- {}\n", served.load(Ordering::SeqCst));
        Reply::Answer(200, Vec::new(), (stamp + &text).into_bytes())
    });
    let site = Site::new();
    let url = server.url("/domains.txt");
    let section = sources_section(&server);
    let settings = site.settings(&format!(
        "{section}[sources.sk-list]\nenabled = true\nurl = \"{url}\"\n[zones]\nkeep = \"all\"\n"
    ));
    for (on, rows) in [(20, 3), (21, 0), (22, 1)] {
        day.store(on - 20, Ordering::SeqCst);
        let today = format!("2026-11-{on}");
        let args = ["--today", &today, "--config", &settings, "sources", "fetch", "--json"];
        let finished = site.run(&args);
        let report: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        assert_eq!(report["sources"][0]["rows"], rows, "day {on}: {finished}");
        assert_eq!(report["sources"][0]["compared"], 1, "day {on}: {finished}");
        assert!(listed(&site, &settings, "sk-list")["lastList"].is_string());
    }
    let list = site.ok(&["--today", "2026-11-22", "export", "drops", "--view", "all"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains("quietharbor.sk,sk"), "{list}");
    // With `keep = "all"`, the other names are found.
    let key = site.account("owner@example.com", "api");
    let serving = site.serve_with(&["--today", "2026-11-22", "--config", &settings]);
    let found = serving.client_with(&key).get("/api/v1/search?q=bright").json();
    assert!(found.to_string().contains("brightmesa.sk"), "{found}");
}
