//! Published facts that dropdex fetches automatically: each list against a stand-in for its publisher, and every way
//! in which an edition may be bad.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dropdex::facts::store::{Edition, Licence};
use serde_json::{Value, json};

use crate::common::receiver::{Receiver, Reply};
use crate::common::{Site, gzip, wait};
use crate::sources::{DAY, fetch, listed, pause, run, serve_list, sources_section, zip};

/// Sources, each with its list, its path at the publisher, and the number of names of the good edition.
const SOURCES: [(&str, &str, &str, u64); 4] = [
    ("cc-ranks", "cc", "/graphinfo.json", 4),
    ("crux", "crux", "/current.csv.gz", 3),
    ("ut1", "ut1", "/blacklists.tar.gz", 3),
    ("hagezi", "hagezi", "/gambling.txt", 3),
];
/// Deadline for a server to notice an edition; it looks every two seconds.
const NOTICE_MAX: Duration = Duration::from_secs(60);
const GRAPHS: &str =
    r#"[{"id":"cc-main-2026-mar-apr-may","index":"x"},{"id":"cc-main-2026-feb-mar-apr"}]"#;
const RANKS: &str = concat!(
    "/projects/hyperlinkgraph/cc-main-2026-mar-apr-may/domain/",
    "cc-main-2026-mar-apr-may-domain-ranks.txt.gz"
);

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/facts/fixtures/published");
    fs::read(folder.join(name)).expect(name)
}

/// Returns the list of a source, packed as its publisher does.
fn packed(list: &str, quality: &str) -> Vec<u8> {
    match list {
        "cc" => gzip(&fixture(&format!("cc.{quality}.txt"))),
        "crux" => gzip(&fixture(&format!("crux.{quality}.csv"))),
        "hagezi" => fixture(&format!("hagezi.{quality}/gambling.txt")),
        _ => {
            let mut archive = tar::Builder::new(Vec::new());
            for category in ["adult", "gambling", "phishing"] {
                let name = format!("ut1.{quality}/{category}/domains");
                let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
                let path = folder.join("src/facts/fixtures/published").join(&name);
                if path.exists() {
                    let inside = format!("blacklists/{category}/domains");
                    archive.append_path_with_name(path, inside).expect("a fixture");
                }
            }
            gzip(&archive.into_inner().expect("memory"))
        }
    }
}

/// Creates an installation whose sources of facts are at `server`, all enabled.
fn site_of(server: &Receiver) -> (Site, String) {
    let site = Site::new();
    let mut toml = sources_section(server);
    for (name, _, path, _) in SOURCES {
        toml += &format!("[sources.{name}]\nurl = \"{}\"\nenabled = true\n", server.url(path));
    }
    let settings = site.settings(&toml);
    (site, settings)
}

fn edition_path(site: &Site, list: &str) -> PathBuf {
    site.data().join(format!("facts/{list}.ddf"))
}

/// Returns the names of the edition in use.
fn names(site: &Site, list: &str) -> Vec<String> {
    let edition = Edition::open(&edition_path(site, list)).expect("an edition");
    let (mut rows, mut names) = (edition.rows_from(b"").expect("rows"), Vec::new());
    while let Some(row) = rows.next_row().expect("a row") {
        names.push(String::from_utf8(row.key.clone()).expect("ASCII"));
    }
    names
}

#[track_caller]
fn error_of(report: &Value, word: &str) {
    assert_eq!(report["outcome"], "failed", "{report}");
    assert!(report["error"].as_str().is_some_and(|it| it.contains(word)), "no `{word}`: {report}");
}

/// A publisher of all lists. The quality is that of the list at the same position in [`SOURCES`].
fn publisher(quality: impl Fn() -> &'static str + Send + Sync + 'static) -> Receiver {
    Receiver::http(move |_, request| {
        if request.target == "/graphinfo.json" {
            return Reply::Answer(200, Vec::new(), GRAPHS.into());
        }
        let target = if request.target == RANKS { "/graphinfo.json" } else { &request.target };
        match SOURCES.iter().find(|(_, _, path, _)| *path == target) {
            Some((_, list, ..)) => serve_list(request, packed(list, quality())),
            None => Reply::status(404),
        }
    })
}

#[test]
fn each_list_is_downloaded_once_and_its_facts_are_in_use() {
    let server = publisher(|| "good");
    let (site, settings) = site_of(&server);
    let checked = run(&site, &settings, &["check", "--json"]);
    assert_eq!(checked.code, Some(0), "{checked}");
    let checked: Vec<Value> = serde_json::from_str(&checked.stdout).expect("a JSON array");
    for (checked, (_, list, ..)) in checked.iter().zip(SOURCES) {
        let found = &checked["lists"][0];
        assert_eq!(
            (&found["format"], &found["rejected"]),
            (&format!("facts {list}").into(), &0.into())
        );
    }
    assert!(!site.data().join("facts").exists(), "a check keeps nothing");
    for (name, list, path, rows) in SOURCES {
        let before = server.seen().len();
        let report = fetch(&site, &settings, name);
        assert_eq!(
            (&report["outcome"], &report["editions"]),
            (&"added".into(), &1.into()),
            "{report}"
        );
        assert_eq!((&report["rows"], &report["rejected"]), (&rows.into(), &0.into()), "{report}");
        assert_eq!(names(&site, list).len() as u64, rows);
        assert_eq!(fetch(&site, &settings, name)["outcome"], "unchanged");
        let asked: Vec<String> =
            server.seen()[before..].iter().map(|seen| seen.target.clone()).collect();
        match name {
            "cc-ranks" => assert_eq!(asked, [path, RANKS, path, RANKS]),
            _ => assert_eq!(asked, [path, path]),
        }
        let last = server.seen().pop().expect("a request");
        assert!(last.header("if-none-match").starts_with('"'), "a conditional request");
        let shown = listed(&site, &settings, name);
        assert_eq!((&shown["status"], &shown["rows"]), (&"ok".into(), &rows.into()));
        assert_eq!((&shown["class"], &shown["schedule"]), (&"terms".into(), &"every 168h".into()));
    }
    let ranks = Edition::open(&edition_path(&site, "cc")).expect("an edition");
    assert_eq!(ranks.meta().as_of.to_string(), "2026-05-31", "the last day of the release");
    assert_eq!(ranks.meta().licence, Licence::Open);
    let categories = Edition::open(&edition_path(&site, "ut1")).expect("an edition");
    assert_eq!(categories.meta().as_of.to_string(), "2026-11-23", "the day of the download");
    assert_eq!(categories.meta().licence, Licence::ShareAlike);
    let left = fs::read_dir(site.data().join("sources/cc-ranks")).expect("a folder").count();
    assert_eq!(left, 2, "the state and the lock; the download is removed");
    assert!(!site.data().join("corpus").exists(), "facts are not a list of names");
}

#[test]
fn a_broken_edition_is_refused_once_and_the_one_in_use_stays() {
    let turn = Arc::new(AtomicUsize::new(0));
    let turns = Arc::clone(&turn);
    let server = publisher(move || ["good", "broken"][turns.load(Ordering::Relaxed)]);
    let (site, settings) = site_of(&server);
    for (name, list, _, rows) in SOURCES {
        turn.store(0, Ordering::Relaxed);
        assert_eq!(fetch(&site, &settings, name)["outcome"], "added", "{name}");
        let before = fs::read(edition_path(&site, list)).expect("an edition");
        turn.store(1, Ordering::Relaxed);
        error_of(&fetch(&site, &settings, name), "the previous ones stay: ");
        // The publisher has not corrected it: the reason stays, and nothing is downloaded.
        error_of(&fetch(&site, &settings, name), "lines are refused, more than one in ten");
        let shown = listed(&site, &settings, name);
        assert_eq!((&shown["status"], &shown["rows"]), (&"failing".into(), &rows.into()));
        assert_eq!(fs::read(edition_path(&site, list)).expect("an edition"), before, "{name}");
        assert!(!site.data().join("sources").join(name).join("refused").exists());
        turn.store(0, Ordering::Relaxed);
        assert_eq!(fetch(&site, &settings, name)["outcome"], "added", "corrected");
        assert_eq!(listed(&site, &settings, name)["status"], "ok");
    }
}

#[test]
fn responses_other_than_an_edition_are_reported() {
    let page = || b"<!DOCTYPE html><title>Maintenance</title>".to_vec();
    let cut = || {
        let whole = packed("cc", "good");
        whole[..whole.len() - 20].to_vec()
    };
    let is_ranks = |target: &str| target == RANKS;
    type Answer = fn(Vec<u8>) -> Reply;
    let ok: Answer = |body| Reply::Answer(200, Vec::new(), body);
    let cases: [(&str, Option<Reply>, Option<Reply>); 10] = [
        ("there is no list at", Some(Reply::status(404)), None),
        ("there is no list at", None, Some(Reply::status(404))),
        ("no link to the list: expected value", Some(ok(page())), None),
        ("it lists no web graph", Some(ok(b"[]".to_vec())), None),
        ("the newest web graph is not one", Some(ok(br#"[{"id":"../x"}]"#.to_vec())), None),
        ("a web page instead of the list", None, Some(ok(page()))),
        ("a web page instead of the list", None, Some(ok(gzip(&page())))),
        ("the list is empty", None, Some(ok(Vec::new()))),
        ("not packed with gzip", None, Some(ok(b"plain".to_vec()))),
        ("the gzip data is cut short", None, Some(ok(cut()))),
    ];
    for (word, index, ranks) in cases {
        let index = index.unwrap_or_else(|| ok(GRAPHS.into()));
        let ranks = ranks.unwrap_or_else(|| ok(packed("cc", "good")));
        let server =
            Receiver::http(
                move |_, request| {
                    if is_ranks(&request.target) { ranks.clone() } else { index.clone() }
                },
            );
        let (site, settings) = site_of(&server);
        error_of(&fetch(&site, &settings, "cc-ranks"), word);
        assert!(!edition_path(&site, "cc").exists(), "{word}");
    }
}

#[test]
fn a_publisher_that_requests_a_pause_gets_one() {
    let limit = || Reply::Answer(429, vec![("Retry-After", "120".to_owned())], Vec::new());
    let server = Receiver::http(move |_, _| limit());
    let (site, settings) = site_of(&server);
    error_of(&fetch(&site, &settings, "ut1"), "limits requests (429)");
    assert!((100..160).contains(&pause(&listed(&site, &settings, "ut1"))));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn an_edition_that_shrank_is_held_back_until_an_operator_accepts_it() {
    let list = |names: usize| -> Vec<u8> {
        (0..names).map(|at| format!("mesa{at}.com\n")).collect::<String>().into_bytes()
    };
    let size = Arc::new(AtomicUsize::new(9));
    let sizes = Arc::clone(&size);
    let server =
        Receiver::http(move |_, request| serve_list(request, list(sizes.load(Ordering::Relaxed))));
    let (site, settings) = site_of(&server);
    assert_eq!(fetch(&site, &settings, "hagezi")["rows"], 9);
    let accept = |name: &str| run(&site, &settings, &["accept", name]);
    accept("hagezi").assert_failed(1, &["no edition of hagezi is held back"]);
    accept("psl").assert_failed(1, &["psl is not a source of facts"]);
    accept("hagesi").assert_failed(1, &["did you mean hagezi?"]);

    size.store(4, Ordering::Relaxed);
    let reason = "the new edition has 4 names, fewer than half of the 9 in use, and is held back";
    error_of(&fetch(&site, &settings, "hagezi"), reason);
    error_of(&fetch(&site, &settings, "hagezi"), "`dropdex sources accept hagezi`");
    assert_eq!(names(&site, "hagezi").len(), 9);
    assert_eq!(listed(&site, &settings, "hagezi")["status"], "failing");
    let accepted = accept("hagezi");
    assert_eq!(accepted.code, Some(0), "{accepted}");
    assert!(accepted.stdout.contains("facts about 4 names are in use"), "{accepted}");
    assert_eq!(names(&site, "hagezi").len(), 4);
    let shown = listed(&site, &settings, "hagezi");
    assert_eq!((&shown["status"], &shown["rows"]), (&"ok".into(), &4.into()));
    assert_eq!(fetch(&site, &settings, "hagezi")["outcome"], "unchanged");
}

#[test]
fn an_edition_of_several_lists_keeps_those_that_have_not_changed() {
    let turn = Arc::new(AtomicUsize::new(0));
    let turns = Arc::clone(&turn);
    let server = Receiver::http(move |_, request| {
        let (gambling, fake) = match turns.load(Ordering::Relaxed) {
            0 => ("mesa.com\npine.com\n", "mesa.com\n"),
            1 => ("mesa.com\npine.com\n", "quill.com\n"),
            _ => ("mesa.com\n", "mesa.com\n"),
        };
        match request.target.as_str() {
            "/gambling.txt" => serve_list(request, gambling.into()),
            "/fake.txt" => serve_list(request, fake.into()),
            _ => Reply::status(404),
        }
    });
    let site = Site::new();
    let urls = ["/gambling.txt", "/fake.txt", "/gone.txt"].map(|path| server.url(path));
    let toml = format!("[sources.hagezi]\nenabled = true\nurl = {urls:?}\n");
    let settings = site.settings(&(sources_section(&server) + &toml));
    error_of(&fetch(&site, &settings, "hagezi"), "there is no list at");
    let category = |name: &str| {
        let edition = Edition::open(&edition_path(&site, "hagezi")).expect("an edition");
        let row = edition.row(name.as_bytes()).expect("read");
        row.map(|row| edition.values(&row)[0].as_ref().expect("known").to_string())
    };
    let of_all = || ["mesa.com", "pine.com", "quill.com"].map(&category);
    let word = |text: &str| Some(text.to_owned());
    assert_eq!(of_all(), [word("scam"), word("gambling"), None], "the worse category counts");
    turn.store(1, Ordering::Relaxed);
    error_of(&fetch(&site, &settings, "hagezi"), "there is no list at");
    assert_eq!(of_all(), [word("gambling"), word("gambling"), word("scam")]);
    // A list that shrinks makes the edition smaller, which is held back until another list grows.
    turn.store(2, Ordering::Relaxed);
    error_of(&fetch(&site, &settings, "hagezi"), "fewer than half of the 3 in use");
    error_of(&fetch(&site, &settings, "hagezi"), "fewer than half of the 3 in use");
    assert_eq!(of_all(), [word("gambling"), word("gambling"), word("scam")]);
    turn.store(1, Ordering::Relaxed);
    let report = fetch(&site, &settings, "hagezi");
    assert!(report["error"].as_str().is_some_and(|it| !it.contains("half")), "{report}");
    // A restored backup has the edition, but not its lists.
    fs::remove_dir_all(site.data().join("sources/hagezi/lists")).expect("removed");
    turn.store(0, Ordering::Relaxed);
    error_of(&fetch(&site, &settings, "hagezi"), "there is no list at");
    assert_eq!(of_all(), [word("scam"), word("gambling"), None]);
}

#[test]
fn lists_of_markets_state_prices_and_ends_of_their_names() {
    let list = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/facts/fixtures/markets");
        fs::read(folder.join(name)).expect(name)
    };
    let server = Receiver::http(move |_, request| match request.target.as_str() {
        "/godaddy.zip" => serve_list(request, zip("list.json", &list("godaddy.good.json"))),
        "/namecheap.csv" => serve_list(request, list("namecheap.good.csv")),
        _ => Reply::status(404),
    });
    let site = Site::new();
    let section = |name: &str, path: &str| {
        format!("[sources.{name}]\nurl = \"{}\"\nenabled = true\n", server.url(path))
    };
    let settings = site.settings(&format!(
        "{}{}{}",
        sources_section(&server),
        section("godaddy", "/godaddy.zip"),
        section("namecheap", "/namecheap.csv")
    ));
    assert_eq!(fetch(&site, &settings, "namecheap")["outcome"], "added");
    let key = site.account("owner@example.com", "api");
    let served = site.serve(DAY);
    let mut client = served.client_with(&key);
    const SHOWN: &str = "facts=market.name,market.price,market.bids,market.ends";
    let mut rows = || {
        let query = "view=all&fields=name&has=market.price&sort=fact:market.ends&order=asc";
        let found = client.get(&format!("/api/v1/drops?{query}&{SHOWN}"));
        assert_eq!(found.status, 200, "{}", found.text());
        let export = client.get(&format!("/api/export/drops?view=all&columns=name&{SHOWN}"));
        (found.json(), export)
    };
    let usd = |cents: u64| json!({"cents": cents, "currency": "USD"});
    let row = |name: &str, values: [Value; 4]| {
        let names = ["market.name", "market.price", "market.bids", "market.ends"];
        let value = |value: Value| match value {
            Value::Null => Value::Null,
            value => json!({"value": value, "asOf": DAY}),
        };
        let facts = names.map(str::to_owned).into_iter().zip(values.map(value));
        json!({"name": name, "facts": serde_json::Map::from_iter(facts)})
    };
    let ends = ["2026-12-05", "2026-12-06"];
    let other = ["namecheap".into(), usd(500), Value::Null, ends[1].into()];
    let (found, export) = rows();
    assert_eq!(
        found["drops"],
        json!([
            row("brightmesa.com", ["namecheap".into(), usd(1200), 4.into(), ends[0].into()]),
            row("quietharbor.org", other.clone()),
        ])
    );
    assert_eq!(export.status, 200, "{}", export.text());

    // The other house allows internal use only, and a running server notices its list.
    assert_eq!(fetch(&site, &settings, "godaddy")["outcome"], "added");
    wait::until(NOTICE_MAX, "facts of both houses", || {
        rows().0["drops"].as_array().is_some_and(|it| it.len() == 3)
    });
    let (found, export) = rows();
    let both = found["drops"].as_array().expect("rows");
    let first = ["godaddy".into(), usd(1200), 3.into(), ends[0].into()];
    assert_eq!(both[0], row("brightmesa.com", first), "of two houses with one end, the first");
    let closeout = ["godaddy".into(), usd(125_000), 0.into(), ends[1].into()];
    for later in [row("quietharbor.net", closeout), row("quietharbor.org", other)] {
        assert!(both[1..].contains(&later), "{found}");
    }
    let line = "Lists of markets, for internal use only: godaddy";
    assert_eq!(found["factSources"][0]["attribution"], line);
    assert_eq!(export.status, 400, "{}", export.text());
}
