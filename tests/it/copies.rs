//! Dated export files (`data/docs/copy.md`): their rows in every format against the API, days that meet
//! without a gap, a copy that stays exact over an ingest, ranges, plans, licences, and damaged files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dropdex::vocab::day::Day;
use flate2::read::GzDecoder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::common::runs::say;
use crate::common::{Client, Response, Server, Site, tools, wait};

const FIRST: &str = "2026-03-15";
const WAIT_MAX: Duration = Duration::from_secs(60);
const FILES: &str = "/api/export/files";
const HEADER: &str = "domain,drop_date,release_date,registered_again\n";
const ENABLED: &str = "[export_files]\nenabled = true\nkeep_days = 2\n";
const ROOM: &str = "[plans.api]\nrequests_per_day = 1000000\nexports_per_day = 100000\n";
/// The members of rows of the pipeline.
const COLUMNS: &str = "name,unicode,tld,length,dqs,explanation,stage,dropDate,releaseDate,releaseAt,releaseCertainty,\
                       releaseWindowMinutes,daysToRelease,words,language,kind,otherTlds,dropCount,listedAt,\
                       popularityRank,suffixRank,typoOf,expectedTaken";

fn day(days: i32) -> Day {
    FIRST.parse::<Day>().expect("a day").plus(days)
}

/// An installation that makes files.
struct World {
    site: Site,
    key: String,
    settings: String,
    lists: usize,
}

impl World {
    fn new() -> World {
        let site = Site::new();
        let key = site.account("owner@example.com", "api");
        let settings = site.settings(&format!("{ROOM}{ENABLED}"));
        World { site, key, settings, lists: 0 }
    }

    fn serve(&self, days: i32) -> Server {
        self.site.serve_with(&["--today", &day(days).to_string(), "--config", &self.settings])
    }

    /// Ingests a list of the day: names, each with the days of its drop and its release.
    fn ingest(&mut self, days: i32, rows: &[(&str, i32, i32)]) {
        let row = |(name, dropped, release): &(&str, i32, i32)| {
            format!("{name},{},{},\n", day(*dropped), day(*release))
        };
        self.ingest_rows(days, &rows.iter().map(row).collect::<String>());
    }

    fn ingest_rows(&mut self, days: i32, rows: &str) {
        self.lists += 1;
        let list = self.site.write(&format!("list-{}.csv", self.lists), format!("{HEADER}{rows}"));
        self.site.ingest(&list, &format!("{}T{:02}:00:00Z", day(days), self.lists % 24));
    }

    fn client(&self, server: &Server) -> Client {
        server.client_with(&self.key)
    }

    /// A file of a set on disk.
    fn path(&self, set: &str, file: &str) -> PathBuf {
        self.site.data().join("export-files").join(set).join(file)
    }
}

/// The dated files that are listed.
fn listed(client: &mut Client) -> Vec<Value> {
    let response = client.get(FILES);
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["files"].as_array().expect("an array").clone()
}

/// The names of the sets that are listed, in order.
fn sets(client: &mut Client) -> Vec<String> {
    let mut sets: Vec<String> = listed(client)
        .iter()
        .map(|file| {
            format!(
                "{}-{}",
                file["kind"].as_str().expect("text"),
                file["day"].as_str().expect("text")
            )
        })
        .collect();
    sets.dedup();
    sets
}

fn until_sets(client: &mut Client, expected: &[&str]) {
    wait::until(WAIT_MAX, &format!("the sets {expected:?}"), || sets(client) == expected);
}

/// The entry of a file in the list.
fn entry(client: &mut Client, name: &str) -> Value {
    let all = listed(client);
    let found = all.iter().find(|file| file["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not among {all:?}")).clone()
}

/// Downloads a file, and compares it with its entry in the list.
fn download(client: &mut Client, name: &str) -> Vec<u8> {
    let file = entry(client, name);
    let response = client.get(file["url"].as_str().expect("a path"));
    assert_eq!(response.status, 200, "{name}");
    assert_eq!(response.header("accept-ranges"), Some("bytes"));
    let disposition = format!("attachment; filename=\"{name}\"");
    assert_eq!(response.header("content-disposition"), Some(disposition.as_str()));
    assert_eq!(json!(response.body.len()), file["bytes"], "{name}");
    assert_eq!(json!(hex::encode(Sha256::digest(&response.body))), file["sha256"], "{name}");
    response.body
}

fn unzipped(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    text
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The rows of a Parquet file, with dates and instants as the API writes them.
fn parquet_rows(bytes: Vec<u8>) -> Vec<Value> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a Parquet file");
    let value = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::Str(text) => json!(text),
        Field::Int(number) => json!(number),
        Field::Long(number) => json!(number),
        Field::Double(number) => json!(number),
        Field::Bool(flag) => json!(flag),
        Field::Date(days) => {
            json!("1985-01-01".parse::<Day>().expect("a day").plus(days - 5479).to_string())
        }
        Field::TimestampMillis(ms) => {
            let at = dropdex::vocab::time::UnixMs::new(ms.cast_unsigned()).expect("in range");
            json!(at.to_string())
        }
        other => panic!("unexpected {other:?}"),
    };
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| {
        let row = row.expect("a row");
        row.get_column_iter()
            .map(|(name, field)| (name.clone(), value(field)))
            .collect::<Map<_, _>>()
    })
    .map(Value::Object)
    .collect()
}

/// Lines of NDJSON as a Parquet file has them: words as one text, of a popular name only the name.
fn flat(mut row: Value) -> Value {
    if let Some(words) = row.get("words").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().map(|word| word.as_str().expect("text")).collect();
        row["words"] = json!(words.join(" "));
    }
    if row.get("typoOf").is_some_and(Value::is_object) {
        row["typoOf"] = row["typoOf"]["name"].clone();
    }
    if let Some(rank) = row.get("suffixRank").and_then(Value::as_f64) {
        row["suffixRank"] = json!(rank);
    }
    row
}

/// The rows of a CSV file, each by column.
fn csv_rows(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("a row")).collect()
}

/// Returns an export, page by page along `Link`; `between` runs after the first page.
fn paged(client: &mut Client, query: &str, mut between: impl FnMut()) -> Vec<Response> {
    let (mut target, mut pages) = (format!("/api/export/drops?{query}"), Vec::new());
    loop {
        let page = client.get(&target);
        assert_eq!(page.status, 200, "{target}: {}", page.text());
        let next = page.header("link").map(|link| {
            let (next, rest) =
                link.strip_prefix('<').and_then(|it| it.split_once('>')).expect("a link");
            assert_eq!(rest, "; rel=\"next\"");
            next.to_owned()
        });
        pages.push(page);
        if pages.len() == 1 {
            between();
        }
        let Some(next) = next else { return pages };
        target = next;
    }
}

/// All changes after a number, page by page.
fn changes(client: &mut Client, since: u64) -> Vec<Value> {
    let (mut all, mut since) = (Vec::new(), since);
    loop {
        let page = client.get(&format!("/api/v1/changes?since={since}&limit=7")).json();
        all.extend(page["data"].as_array().expect("rows").iter().cloned());
        since = page["next"].as_u64().expect("a number");
        if since >= page["newest"].as_u64().expect("a number") {
            return all;
        }
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn the_pipeline_has_the_rows_of_the_export_in_every_format() {
    let mut world = World::new();
    world.ingest(
        0,
        &[
            ("solar-wind.com", 0, 35),
            ("xn--mnchen-3ya.de", -30, 0),
            ("bestshop.co.uk", -30, 3),
            ("solar.net", -36, -2),
            ("escort-girls.com", -1, 34),
            ("long-gone.org", -90, -50),
        ],
    );
    let server = world.serve(0);
    let mut client = world.client(&server);
    until_sets(&mut client, &["pipeline-2026-03-15"]);
    let file = |extension: &str| format!("pipeline-2026-03-15.{extension}");
    let ndjson = unzipped(&download(&mut client, &file("ndjson.gz")));
    let query = format!("columns={COLUMNS}&sort=name&order=asc&adult=include&limit=2");
    for (format, extension) in [("ndjson", "ndjson.gz"), ("csv", "csv.gz")] {
        let pages = paged(&mut client, &format!("{query}&format={format}"), || ());
        let rows = |page: &Response| {
            let text = page.text().to_owned();
            if format == "csv" {
                text.split_once("\r\n").expect("a header").1.to_owned()
            } else {
                text
            }
        };
        let exported: String = pages.iter().map(rows).collect();
        let text = unzipped(&download(&mut client, &file(extension)));
        let header = if format == "csv" { format!("{COLUMNS}\r\n") } else { String::new() };
        assert_eq!(text, format!("{header}{exported}"), "{format}");
    }
    let rows: Vec<Value> = lines(&ndjson).into_iter().map(flat).collect();
    assert_eq!(rows.len(), 5, "all but the name that was released long ago");
    assert!(rows.iter().map(|row| row["name"].as_str()).is_sorted());
    assert_eq!(parquet_rows(download(&mut client, &file("parquet"))), rows);
    let parquet = entry(&mut client, &file("parquet"));
    assert_eq!((&parquet["rows"], &parquet["schemaVersion"]), (&json!(5), &json!(1)));
    assert_eq!((&parquet["kind"], &parquet["format"]), (&json!("pipeline"), &json!("parquet")));
    assert_eq!((&parquet["day"], &parquet["firstSeq"]), (&json!(FIRST), &Value::Null));
    assert_eq!(number(&parquet["generation"]), world.site.manifest()["generation"]);
    // The changes after this number are not in the rows yet.
    let newest = client.get("/api/v1/changes").json();
    assert_eq!(parquet["lastSeq"], newest["newest"]);
}

#[test]
fn days_of_changes_meet_and_equal_the_api() {
    let mut world = World::new();
    world.ingest(0, &[("solar.com", -35, 2), ("wind.de", -34, 1), ("rain.net", -30, 3)]);
    let server = world.serve(0);
    let mut client = world.client(&server);
    until_sets(&mut client, &["pipeline-2026-03-15"]);
    // A later list is in the changes of the day; the pipeline of the day stays as it is.
    world.ingest(0, &[("moon.com", -1, 34), ("star.org", -1, 30)]);
    wait::until(WAIT_MAX, "events of the list", || changes(&mut client, 0).len() >= 2);
    assert_eq!(entry(&mut client, "pipeline-2026-03-15.csv.gz")["rows"], 3);
    server.stop();
    // A day without a server, and then two days in sequence.
    let server = world.serve(2);
    let mut client = world.client(&server);
    let expected = ["pipeline-2026-03-17", "changes-2026-03-16", "changes-2026-03-15"];
    until_sets(&mut client, &expected);
    let mut since = 0;
    for day in ["2026-03-15", "2026-03-16"] {
        let name = |extension: &str| format!("changes-{day}.{extension}");
        let file = entry(&mut client, &name("parquet"));
        let (first, last) = (number(&file["firstSeq"]), number(&file["lastSeq"]));
        assert!(since == 0 || first == since + 1, "{first} follows {since}");
        since = last;
        let all = changes(&mut client, 0);
        let of_day: Vec<_> = all.iter().filter(|row| row["day"] == day).cloned().collect();
        assert!(!of_day.is_empty(), "{day} has changes");
        assert!(of_day.iter().all(|row| (first..=last).contains(&number(&row["seq"]))));
        assert_eq!(lines(&unzipped(&download(&mut client, &name("ndjson.gz")))), of_day);
        assert_eq!(parquet_rows(download(&mut client, &name("parquet"))), of_day);
        let cells = csv_rows(&unzipped(&download(&mut client, &name("csv.gz"))));
        for (cells, row) in cells.iter().zip(&of_day) {
            for (column, cell) in cells {
                let value = &row[column];
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                assert_eq!(cell, &text.replace("null", ""), "{column}");
            }
        }
        assert_eq!((cells.len(), &file["rows"]), (of_day.len(), &json!(of_day.len())));
    }
    // The API continues where the files end.
    let after = changes(&mut client, since);
    assert!(after.iter().all(|row| row["day"] == "2026-03-17"), "{after:?}");
    server.stop();
    let server = world.serve(3);
    let expected =
        ["pipeline-2026-03-18", "pipeline-2026-03-17", "changes-2026-03-17", "changes-2026-03-16"];
    until_sets(&mut world.client(&server), &expected);
}

#[test]
fn a_copy_by_pages_or_files_is_exact_over_an_ingest_in_between() {
    let mut world = World::new();
    let row = |at: usize| {
        let stage = [-36, -30, -3, 0][at % 4];
        format!("name{at:03}.com,{},{},\n", day(stage), day(stage + 35))
    };
    world.ingest_rows(0, &(0..300).map(row).collect::<String>());
    let server = world.serve(0);
    let mut client = world.client(&server);
    until_sets(&mut client, &["pipeline-2026-03-15"]);
    let names_now = |client: &mut Client| -> BTreeSet<String> {
        let page = client.get("/api/export/drops?format=ndjson&adult=include&limit=10000");
        let rows = lines(page.text());
        rows.iter().map(|row| row["name"].as_str().expect("text").to_owned()).collect()
    };
    let before = names_now(&mut client);
    assert_eq!(before.len(), 300);
    // By pages: 50 new names between and around the known ones, and ten that are registered again.
    let query = "format=ndjson&sort=name&order=asc&limit=40";
    let pages = paged(&mut client, query, || {
        let new = (0..50).map(|at| format!("name{:03}x.com,{},{},\n", at * 6, day(0), day(35)));
        let kept =
            (0..10).map(|at| format!("name{:03}.com,{},{},true\n", at * 8 + 2, day(-3), day(32)));
        world.ingest_rows(0, &new.chain(kept).collect::<String>());
    });
    wait::until(WAIT_MAX, "the list", || names_now(&mut world.client(&server)).len() == 340);
    let after = names_now(&mut client);
    let copied: Vec<String> = pages
        .iter()
        .flat_map(|page| lines(page.text()))
        .map(|row| row["name"].as_str().expect("text").to_owned())
        .collect();
    let distinct: BTreeSet<String> = copied.iter().cloned().collect();
    assert_eq!(distinct.len(), copied.len(), "no name comes twice");
    let throughout: BTreeSet<String> = before.intersection(&after).cloned().collect();
    assert_eq!(throughout.len(), 290);
    assert!(throughout.is_subset(&distinct), "no name that was there throughout is missing");
    let ever: BTreeSet<String> = before.union(&after).cloned().collect();
    assert!(distinct.is_subset(&ever));
    // By files: the pipeline of the morning, and the changes since.
    let file = entry(&mut client, "pipeline-2026-03-15.ndjson.gz");
    let rows = lines(&unzipped(&download(&mut client, "pipeline-2026-03-15.ndjson.gz")));
    let mut copy: BTreeMap<String, Value> = rows
        .iter()
        .map(|row| (row["name"].as_str().expect("text").to_owned(), row["releaseDate"].clone()))
        .collect();
    wait::until(WAIT_MAX, "all events", || {
        changes(&mut client, number(&file["lastSeq"])).len() >= 60
    });
    for change in changes(&mut client, number(&file["lastSeq"])) {
        let name = change["domain"].as_str().expect("text").to_owned();
        match change["event"].as_str().expect("text") {
            "renewed" | "registered-again" => drop(copy.remove(&name)),
            _ => drop(copy.insert(name, change["releaseDate"].clone())),
        }
    }
    assert_eq!(copy.keys().cloned().collect::<BTreeSet<_>>(), after);
}

#[test]
fn a_file_is_served_in_ranges_and_counted_once() {
    let mut world = World::new();
    world.ingest(0, &[("solar.com", 0, 35)]);
    world.settings = world.site.settings(&format!(
        "{ENABLED}[plans.core]\nexports_per_day = 3\n[plans.api]\nexports_per_day = 9\n"
    ));
    world.key = world.site.account("core@example.com", "core");
    let server = world.serve(0);
    let mut client = world.client(&server);
    until_sets(&mut client, &["pipeline-2026-03-15"]);
    let name = "pipeline-2026-03-15.parquet";
    let target = format!("{FILES}/{name}");
    let left = |response: &Response| response.number("x-ratelimit-remaining");
    let head = client.request("HEAD", &target, &[]);
    let len = number(&entry(&mut client, name)["bytes"]);
    assert_eq!((head.status, head.number("content-length")), (200, Some(len as i64)));
    assert_eq!((left(&head), left(&client.get(FILES))), (Some(3), Some(3)), "neither counts");
    let tag = head.header("etag").expect("a tag").to_owned();
    // The first range counts, its continuation does not.
    let mut part = |range: &str, more: &[(&str, &str)]| {
        client.request("GET", &target, &[&[("Range", range)], more].concat())
    };
    let first = part("bytes=0-99", &[]);
    assert_eq!((first.status, left(&first)), (206, Some(2)));
    assert_eq!(first.header("content-range"), Some(format!("bytes 0-99/{len}").as_str()));
    assert_eq!(first.header("content-length"), Some("100"));
    let rest = part("bytes=100-", &[("If-Range", &tag)]);
    assert_eq!((rest.status, left(&rest)), (206, Some(2)));
    let end = part("bytes=-4", &[]);
    assert_eq!((end.body.as_slice(), left(&end)), (&b"PAR1"[..], Some(2)));
    let behind = part(&format!("bytes={len}-"), &[]);
    assert_eq!(behind.status, 416);
    assert_eq!(behind.json()["code"], "range_not_satisfiable");
    assert_eq!(behind.header("content-range"), Some(format!("bytes */{len}").as_str()));
    let held = part("bytes=0-1", &[("If-None-Match", &tag)]);
    assert_eq!((held.status, held.body.len()), (304, 0));
    // Another version of the file is sent whole, and counts.
    let whole = part("bytes=100-", &[("If-Range", "\"other\"")]);
    assert_eq!((whole.status, left(&whole)), (200, Some(1)));
    assert_eq!(whole.body, [first.body, rest.body].concat());
    let again = part("bytes=0-1,3-4", &[]);
    assert_eq!((again.status, left(&again), again.body.len()), (200, Some(0), len as usize));
    assert_eq!(client.get(&target).status, 429);
    let range = client.request("GET", &target, &[("Range", "bytes=0-0")]);
    assert_eq!(range.status, 206, "what was counted can be continued");
    assert_eq!(listed(&mut client).len(), 3, "the list needs no allowance");
}

#[test]
fn files_follow_plans_pages_and_names() {
    let mut world = World::new();
    world.ingest(0, &[("solar.com", 0, 35)]);
    let free = world.site.account("free@example.com", "free");
    let server = world.serve(0);
    let mut client = world.client(&server);
    until_sets(&mut client, &["pipeline-2026-03-15"]);
    let target = format!("{FILES}/pipeline-2026-03-15.csv.gz");
    for path in [FILES, &target] {
        assert_eq!(server.client().get(path).status, 401, "{path}");
        let refused = server.client_with(&free).get(path).answer();
        assert_eq!((refused.0, &refused.1["code"]), (403, &json!("PLAN_REQUIRED")), "{path}");
    }
    for bad in [
        "none",
        "pipeline-2026-03-14.csv.gz",
        "pipeline-2026-03-15.csv",
        "manifest.json",
        "..%2F..%2Fjournal",
    ] {
        assert_eq!(client.get(&format!("{FILES}/{bad}")).status, 404, "{bad}");
    }
    let page = client.get(&format!("{FILES}?limit=2"));
    let body = page.json();
    assert_eq!((&body["count"], &body["total"], &body["limit"]), (&json!(2), &json!(3), &json!(2)));
    assert_eq!(page.header("link"), Some("</api/export/files?limit=2&offset=2>; rel=\"next\""));
    let last = client.get("/api/export/files?limit=2&offset=2");
    assert_eq!((last.json()["count"].clone(), last.header("link")), (json!(1), None));
    assert_eq!(client.get(&format!("{FILES}?limit=0")).status, 400);
    assert_eq!(client.get(&format!("{FILES}?day=2026-03-15")).status, 400);
    server.stop();
    // Without the setting, nothing is served.
    world.settings = world.site.settings(ROOM);
    let server = world.serve(0);
    let mut client = world.client(&server);
    assert_eq!(client.get(FILES).json()["total"], 0);
    assert_eq!(client.get(&target).status, 404);
}

#[test]
fn a_restart_keeps_whole_files_and_replaces_damaged_ones() {
    let mut world = World::new();
    world.ingest(0, &[("solar.com", -35, 1)]);
    let server = world.serve(0);
    let mut client = world.client(&server);
    until_sets(&mut client, &["pipeline-2026-03-15"]);
    world.ingest(0, &[("moon.com", -1, 34)]);
    wait::until(WAIT_MAX, "events", || !changes(&mut client, 0).is_empty());
    server.stop();
    let (pipeline, of_day) = ("pipeline-2026-03-16", "changes-2026-03-15");
    let server = world.serve(1);
    let mut client = world.client(&server);
    let all = [pipeline, "pipeline-2026-03-15", of_day];
    until_sets(&mut client, &all);
    let before = listed(&mut client);
    server.kill();
    // What a crash leaves.
    let draft = world.path(".new-pipeline-2026-03-16", "manifest.json");
    fs::create_dir(draft.parent().expect("a folder")).expect("created");
    fs::write(&draft, "{").expect("written");
    let server = world.serve(1);
    let mut client = world.client(&server);
    wait::until(WAIT_MAX, "the draft is gone", || !draft.exists());
    assert_eq!(listed(&mut client), before, "nothing was made twice");
    // A file that is cut is gone at once.
    let cut = world.path(pipeline, &format!("{pipeline}.csv.gz"));
    let bytes = fs::read(&cut).expect("there");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    assert_eq!(sets(&mut client), &all[1..]);
    assert_eq!(client.get(&format!("{FILES}/{pipeline}.parquet")).status, 404);
    // A changed byte is found at the next start, and the set is made again.
    let changed = world.path(of_day, &format!("{of_day}.parquet"));
    let mut bytes = fs::read(&changed).expect("there");
    bytes[10] ^= 1;
    fs::write(&changed, bytes).expect("written");
    server.stop();
    let server = world.serve(1);
    let mut client = world.client(&server);
    until_sets(&mut client, &all);
    let digests = |files: &[Value]| -> BTreeMap<String, Value> {
        let of_changes = files.iter().filter(|file| file["kind"] == "changes");
        of_changes.map(|it| (it["name"].to_string(), it["sha256"].clone())).collect()
    };
    wait::until(WAIT_MAX, "sound files", || digests(&listed(&mut client)) == digests(&before));
    download(&mut client, &format!("{of_day}.parquet"));
}

/// A copy in the state of a test: a pipeline file, and a list that arrived after it.
struct Copied {
    world: World,
    server: Server,
    folder: PathBuf,
}

impl Copied {
    fn new() -> Copied {
        let mut world = World::new();
        world.ingest(0, &[("solar.com", -35, 2), ("wind.de", -34, 1), ("rain.net", -30, 3)]);
        let server = world.serve(0);
        until_sets(&mut world.client(&server), &["pipeline-2026-03-15"]);
        let folder = world.site.lists().join("copy");
        fs::create_dir(&folder).expect("created");
        Copied { world, server, folder }
    }

    /// Ingests a list with a new name, and with one that is registered again.
    fn change(&mut self) {
        let rows =
            format!("moon.com,{},{},\nrain.net,{},{},true\n", day(-1), day(34), day(-30), day(3));
        self.world.ingest_rows(0, &rows);
        let mut client = self.world.client(&self.server);
        wait::until(WAIT_MAX, "events", || changes(&mut client, 0).len() >= 2);
    }

    /// Restarts the server some days later.
    fn serve_later(self, days: i32) -> Copied {
        self.server.stop();
        Copied { server: self.world.serve(days), ..self }
    }

    /// Runs a command in the folder, with the programs of the environment first.
    fn run(&self, command: &str, environment: &[(&str, String)]) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/examples");
        let output = Command::new("sh")
            .args(["-euc", command])
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{path}", tools::copy_tools().display()))
            .env("EXAMPLES", examples)
            .env("DROPDEX_URL", format!("http://{}", self.server.address()))
            .env("DROPDEX_KEY", &self.world.key)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("a shell");
        let (out, err) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
        let out = String::from_utf8_lossy(out).into_owned();
        assert!(output.status.success(), "{command}\n{out}\n{err}");
        out
    }
}

#[test]
#[ignore = "needs 420 MB of Python packages; in the full run"]
fn the_duckdb_example_follows_the_pipeline() {
    let mut copied = Copied::new();
    let copy = |copied: &Copied, more: &str| {
        copied.run(&format!("python \"$EXAMPLES/copy_duckdb.py\"{more}"), &[])
    };
    let read = |copied: &Copied, query: &str| {
        let program = format!(
            "import duckdb; print(duckdb.connect('drops.duckdb').sql(\"{query}\").fetchall())"
        );
        copied.run(&format!("python -c '{}'", program.replace('\'', "'\\''")), &[])
    };
    assert!(copy(&copied, "").starts_with("3 names"));
    copied.change();
    assert!(copy(&copied, "").starts_with("3 names"));
    assert!(copy(&copied, "").starts_with("3 names"), "nothing is applied twice");
    let query = "select name, releaseDate::varchar, stage from drops order by name";
    let expected = format!(
        "[('moon.com', '{}', None), ('solar.com', '{}', 'pending-delete'), ('wind.de', '{}', 'redemption')]\n",
        day(34),
        day(2),
        day(1)
    );
    assert_eq!(read(&copied, query), expected);
    // The next days: changes by their files, then a new copy with all columns of the new name.
    let copied = copied.serve_later(2);
    let mut client = copied.world.client(&copied.server);
    until_sets(&mut client, &["pipeline-2026-03-17", "changes-2026-03-16", "changes-2026-03-15"]);
    assert!(copy(&copied, "").starts_with("3 names"));
    assert!(copied.folder.join("changes-2026-03-16.parquet").exists(), "read by its file");
    assert!(copy(&copied, " new").starts_with("3 names"));
    let stage = "select stage from drops where name = 'moon.com'";
    assert_eq!(read(&copied, stage), "[('redemption',)]\n");
    let types = "select typeof(releaseDate), typeof(listedAt), typeof(dqs) from drops limit 1";
    assert_eq!(read(&copied, types), "[('DATE', 'TIMESTAMP WITH TIME ZONE', 'INTEGER')]\n");
}

#[test]
#[ignore = "needs 420 MB of Python packages; in the full run"]
fn the_pandas_example_reads_a_file() {
    let copied = Copied::new();
    let mut client = copied.world.client(&copied.server);
    let bytes = download(&mut client, "pipeline-2026-03-15.parquet");
    fs::write(copied.folder.join("pipeline.parquet"), bytes).expect("written");
    let printed = copied.run("python \"$EXAMPLES/copy_pandas.py\"", &[]);
    assert!(printed.contains(&format!("{}    1", day(2))), "{printed}");
}

#[test]
#[ignore = "needs a PostgreSQL server; in the full run"]
fn the_postgresql_examples_follow_the_pipeline() {
    let find = "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb";
    let found = Command::new("sh").args(["-c", find]).output().expect("a shell").stdout;
    let found = String::from_utf8_lossy(&found).lines().next().map(PathBuf::from);
    let Some(programs) = found.as_deref().and_then(Path::parent) else {
        say("the PostgreSQL examples were not run: initdb is missing");
        return;
    };
    let mut copied = Copied::new();
    let cluster = Postgres::start(programs);
    let environment = cluster.environment();
    copied.run("sh \"$EXAMPLES/copy_postgres.sh\"", &environment);
    copied.change();
    copied.run("sh \"$EXAMPLES/copy_postgres_deltas.sh\"", &environment);
    copied.run("sh \"$EXAMPLES/copy_postgres_deltas.sh\"", &environment);
    let query = "select name || ' ' || release_date from drops order by name";
    let rows = copied.run(&format!("psql -qAt -c \"{query}\""), &environment);
    let releases = [day(34), day(2), day(1)];
    let expected = ["moon.com", "solar.com", "wind.de"]
        .iter()
        .zip(releases)
        .map(|(name, release)| format!("{name} {release}\n"));
    assert_eq!(rows, expected.collect::<String>());
}

/// A PostgreSQL server of a test, reached by a socket in its folder. It does not run as root.
struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
}

impl Postgres {
    fn start(programs: &Path) -> Postgres {
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").expect("created");
        let postgres = Postgres { programs: programs.to_owned(), folder };
        postgres.as_owner("initdb -A trust -U copy -D data >log");
        postgres.as_owner("pg_ctl -w -D data -l log -o \"-k $PWD -c listen_addresses=''\" start");
        postgres
    }

    /// Runs a command as a user who may run the server.
    fn as_owner(&self, command: &str) {
        let folder = self.folder.path().display();
        let path = format!("PATH={}:$PATH", self.programs.display());
        let command = format!("cd {folder} && {path} && {command}");
        let is_root = rustix::process::geteuid().is_root();
        let mut runs = Command::new(if is_root { "su" } else { "sh" });
        if is_root {
            let owned = Command::new("chown").args(["nobody", &folder.to_string()]).status();
            assert!(owned.expect("a program").success());
            runs.args(["-s", "/bin/sh", "nobody"]);
        }
        let output = runs.args(["-c", &command]).output().expect("a shell");
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
    }

    fn environment(&self) -> [(&'static str, String); 3] {
        let host = self.folder.path().display().to_string();
        [("PGHOST", host), ("PGUSER", "copy".to_owned()), ("PGDATABASE", "postgres".to_owned())]
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.folder.path().join("data").exists() {
            self.as_owner("pg_ctl -D data -m immediate stop");
        }
    }
}
