//! Completion of a typed text, compared with the rule applied to all names of the sample.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::common::http::escape;
use crate::common::json::error;
use crate::common::{Client, Server, Site, TODAY};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample/sample.csv.gz");
/// Words that people type, each with many names in the sample that begin with it.
const WORDS: [&str; 30] = [
    "hotel", "solar", "bank", "shop", "green", "car", "home", "tech", "game", "music", "food",
    "pet", "travel", "health", "cloud", "data", "smart", "city", "art", "photo", "book", "fit",
    "auto", "real", "sport", "net", "web", "media", "design", "star",
];
/// Suffixes under which each of the words dropped as well.
const SUFFIXES: [&str; 8] = ["com", "net", "org", "de", "io", "co", "info", "eu"];

/// The sample, all words under all suffixes, and names with letters that people mistype.
struct World {
    _site: Site,
    _server: Server,
    client: Client,
}

impl World {
    fn new() -> World {
        let site = Site::new();
        let mut list = String::from("domain,drop_date,release_date,status\n");
        for word in WORDS {
            SUFFIXES.iter().for_each(|suffix| list += &format!("{word}.{suffix},2026-03-10,,\n"));
        }
        for name in ["münchen.de", "münchen-hotels.de", "zebrafinch.com", "zebrafinch.de"] {
            list += &format!("{name},2026-03-10,,\n");
        }
        list += "zebrafinches.com,,,registered\n";
        site.ingest(&site.write("list.csv", &list), "2026-03-15T00:00:00Z");
        site.ingest(SAMPLE.as_ref(), "2026-03-15T00:00:00Z");
        let more = "[plans.api]\nrequests_per_day = 1000000\nsuggestions_per_minute = 1000000\n";
        let key = site.account("owner@example.com", "api");
        let server = site.serve_with(&["--today", TODAY, "--config", &site.settings(more)]);
        let client = server.client_with(&key);
        World { _site: site, _server: server, client }
    }

    fn suggested(&mut self, query: &str) -> Vec<Value> {
        let (status, body) = self.client.get(&format!("/api/v1/suggest?{query}")).answer();
        assert_eq!(status, 200, "{query}: {body}");
        body["names"].as_array().expect("an array").clone()
    }

    /// Returns all names that a search finds, best first, as names and whether the whole label is the text.
    fn found(&mut self, query: &str, text: &str) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        loop {
            let target = format!("/api/v1/search?{query}&limit=100&offset={}", found.len());
            let (status, body) = self.client.get(&target).answer();
            assert_eq!(status, 200, "{target}: {body}");
            let rows = body["results"].as_array().expect("an array");
            found.extend(rows.iter().map(|row| {
                let name = row["domain"].as_str().expect("a name").to_owned();
                let is_whole = label(&name) == text;
                (name, is_whole)
            }));
            if rows.len() < 100 {
                return found;
            }
        }
    }
}

fn label(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["name"].as_str().expect("a name")).collect()
}

/// At most two of the whole matches, then the best name of each other label.
fn completed(found: &[(String, bool)], limit: usize) -> Vec<&str> {
    let whole = found.iter().filter(|(_, is_whole)| *is_whole).take(2);
    let mut labels = HashSet::new();
    let others = found.iter().filter(|(name, is_whole)| !is_whole && labels.insert(label(name)));
    whole.chain(others).take(limit).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn words_are_completed_by_the_best_name_of_each_label() {
    let mut world = World::new();
    for word in WORDS {
        let rows = world.suggested(&format!("q={word}"));
        assert_eq!(names(&rows), completed(&world.found(&format!("q={word}"), word), 8), "{word}");
        let labels: Vec<&str> = names(&rows).into_iter().map(label).collect();
        assert_eq!(labels[0], word);
        assert_eq!(labels.iter().filter(|label| **label == word).count(), 2, "{labels:?}");
        assert_eq!(rows.len(), 8, "compounds follow the word");
        for narrowed in
            ["tld=de,io", "min_dqs=40", "max_len=9", "view=active", "view=today&tld=com"]
        {
            for limit in [1, 4, 20] {
                let query = format!("q={word}&{narrowed}");
                let rows = world.suggested(&format!("{query}&limit={limit}"));
                let found = world.found(&query, word);
                let expected = completed(&found, limit);
                // With few matches, similar names follow.
                assert_eq!(names(&rows)[..expected.len()], expected, "{query}");
                let matched = completed(&found, 20).len().min(limit);
                assert!(matched >= 5 || word.len() >= 4 || rows.len() == matched, "{query}");
            }
        }
        let all = world.suggested(&format!("q={word}&all_suffixes=true&limit=20"));
        let found = world.found(&format!("q={word}"), word);
        let expected: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).take(20).collect();
        assert_eq!(names(&all), expected, "{word}");
    }
    for short in ["s", "so", "2", "0", "xn--m"] {
        let rows = world.suggested(&format!("q={short}&limit=20"));
        assert_eq!(
            names(&rows),
            completed(&world.found(&format!("q={short}"), short), 20),
            "{short}"
        );
    }
}

#[test]
fn a_text_with_a_dot_is_completed_by_suffixes() {
    let mut world = World::new();
    let rows = world.suggested("q=hotel.&limit=20");
    let all: BTreeSet<String> = SUFFIXES.iter().map(|suffix| format!("hotel.{suffix}")).collect();
    assert_eq!(names(&rows).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), all);
    assert_eq!(names(&world.suggested("q=hotel.i")).len(), 2, "hotel.info and hotel.io");
    assert_eq!(names(&world.suggested("q=hotel.de")), ["hotel.de"]);
    assert_eq!(names(&world.suggested("q=https://www.hotel.de/")), ["hotel.de"]);
}

#[test]
fn one_edit_is_forgiven_from_four_characters_on() {
    let mut world = World::new();
    let finch = ["zebrafinch.com", "zebrafinches.com"];
    for typed in [
        "zebrafnich",
        "zbrafinch",
        "ezbrafinch",
        "ebrafinch",
        "zebrafinchh",
        "zebravinch",
        "zzebrafinch",
        "zebrafin-ch",
        "ZEBRAFIMCH",
        "zebrafinch3",
    ] {
        let rows = world.suggested(&format!("q={typed}"));
        let found: BTreeSet<&str> = names(&rows).into_iter().collect();
        // The score decides which suffix stands for a label.
        assert!(found.iter().any(|name| label(name) == "zebrafinch"), "{typed}: {found:?}");
        assert!(found.contains(finch[1]), "{typed}: {found:?}");
        assert_eq!(found.len(), 2, "{typed}: {found:?}");
    }
    assert_eq!(world.suggested("q=zebrafnihc").len(), 0, "two edits");
    let exact = world.suggested("q=zebrafinch");
    assert_eq!(exact.len(), 3, "two names with the label and another label: {exact:?}");
    let rows = world.suggested(&format!("q={}", escape("münchn")));
    assert_eq!(rows[0]["unicode"], "münchen.de", "{rows:?}");
    let rows = world.suggested("q=munchen");
    assert!(
        rows.iter().all(|row| row["name"] != "xn--mnchen-3ya.de"),
        "letters have no accents: {rows:?}"
    );
    assert_eq!(world.suggested("q=zqx").len(), 0, "three characters");
    assert_eq!(world.suggested(&format!("q={}", "zq".repeat(100))).len(), 0, "a long text");
}

#[test]
fn rows_have_name_unicode_score_and_stage() {
    let mut world = World::new();
    let rows = world.suggested(&format!("q={}", escape("münchen")));
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        let name = row["name"].as_str().expect("a name");
        let (_, dossier) = world.client.get(&format!("/api/v1/domain/{name}")).answer();
        let (_, listed) = world.client.get(&format!("/api/v1/drops?q={name}&view=all")).answer();
        assert_eq!(row["dqs"], listed["drops"][0]["dqs"], "{dossier}");
        assert_eq!(row["stage"], listed["drops"][0]["stage"], "{dossier}");
        let members: Vec<&String> = row.as_object().expect("an object").keys().collect();
        assert_eq!(members.len(), 4, "{members:?}");
    }
    let registered = world.suggested("q=zebrafinches");
    assert_eq!(registered[0]["stage"], Value::Null);
    assert_eq!(registered[0]["unicode"], "zebrafinches.com");
}

#[test]
fn a_key_press_counts_as_a_suggestion_and_not_as_a_request() {
    let site = Site::new();
    site.ingest(
        &site.write("list.csv", "domain,drop_date\nsolar.com,2026-03-10\n"),
        "2026-03-15T00:00:00Z",
    );
    let limits = site.settings("[plans.api]\nrequests_per_day = 2\nsuggestions_per_minute = 3\n");
    let key = site.account("owner@example.com", "api");
    let server = site.serve_with(&["--today", TODAY, "--config", &limits]);
    let mut client = server.client_with(&key);
    for left in [2, 1, 0] {
        let response = client.get("/api/v1/suggest?q=so");
        assert_eq!(response.status, 200);
        assert_eq!(
            response.header("ratelimit"),
            Some(format!("\"day\";r=2, \"suggestions\";r={left}").as_str())
        );
        assert_eq!(
            response.header("ratelimit-policy"),
            Some("\"day\";q=2;w=86400, \"suggestions\";q=3;w=60")
        );
        assert_eq!(response.header("x-ratelimit-remaining"), Some("2"));
        assert_eq!(response.header("cache-control"), Some("private, max-age=60"));
        assert!(response.header("etag").is_some());
    }
    let refused = client.get("/api/v1/suggest?q=so");
    assert_eq!(refused.header("retry-after"), Some("20"));
    let (status, body) = refused.answer();
    assert_eq!(
        (status, &body["code"], &body["limit"]),
        (429, &json!("suggestion_limit"), &json!(3)),
        "{body}"
    );
    let (_, account) = client.get("/api/v1/account").answer();
    assert_eq!(account["suggestionsPerMinute"], 3);
    assert_eq!(account["requests"]["used"], 0);
    assert_eq!(client.get("/api/v1/search?q=so").status, 200);
}

#[test]
fn an_unchanged_response_is_not_sent_again() {
    let mut world = World::new();
    let first = world.client.get("/api/v1/suggest?q=hotel");
    let tag = first.header("etag").expect("a tag").to_owned();
    let sent = [("If-None-Match", tag.as_str())];
    let again = world.client.request("GET", "/api/v1/suggest?q=hotel", &sent);
    assert_eq!((again.status, again.header("cache-control")), (304, Some("private, max-age=60")));
}

#[test]
fn bad_queries_are_refused_by_name() {
    let mut world = World::new();
    for (query, what) in [
        ("", "q: must have 1 to 253 characters"),
        ("q=s&limit=21", "limit: must be an integer from 1 to 20"),
        ("q=s&limit=0", "limit: must be an integer from 1 to 20"),
        ("q=s&min_dqs=101", "min_dqs: must be an integer from 0 to 100"),
        ("q=s&max_len=0", "max_len: must be an integer from 1 to 63"),
        ("q=s&view=tomorrow", "view: must be one of active, today, all"),
        ("q=s&all_suffixes=yes", "all_suffixes: must be one of true, false"),
    ] {
        let answer = world.client.get(&format!("/api/v1/suggest?{query}")).answer();
        assert_eq!(answer, (400, error(what)), "{query}");
    }
    for query in ["q=s&contains=x", "q=s&q=t", "q=s&offset=0"] {
        assert_eq!(world.client.get(&format!("/api/v1/suggest?{query}")).status, 400, "{query}");
    }
}
