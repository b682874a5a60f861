//! Captures of names in the Wayback Machine, from a stand-in for its CDX server: what becomes a fact, for whom, and
//! every answer that must not be taken for "no captures".

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dropdex::facts::store::Edition;
use serde_json::{Value, json};

use crate::common::receiver::{Receiver, Reply, Seen};
use crate::common::{Client, Server, Site, TODAY, wait};
use crate::owned_pages::person::{PASSWORD, Person};

/// Longer than any pause that these answers cause.
const WAIT_MAX: Duration = Duration::from_secs(120);

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/archive");
    fs::read(folder.join(name)).expect(name)
}

fn good() -> Reply {
    Reply::Answer(200, Vec::new(), fixture("good.json"))
}

/// Returns the parameters of a query.
fn parameters(seen: &Seen) -> HashMap<String, String> {
    let url = url::Url::parse(&format!("http://archive{}", seen.target)).expect("a target");
    url.query_pairs().into_owned().collect()
}

fn name_of(seen: &Seen) -> String {
    parameters(seen).remove("url").expect("a name")
}

/// A CDX server with the answers for each name in order; all others are [`good`].
fn cdx(answers: &[(&str, Vec<Reply>)]) -> Receiver {
    let answers = answers.iter().map(|(name, all)| ((*name).to_owned(), all.clone()));
    let answers: Arc<Mutex<HashMap<String, Vec<Reply>>>> = Arc::new(Mutex::new(answers.collect()));
    Receiver::http(move |_, seen| {
        let mut answers = answers.lock().expect("no panic while locked");
        match answers.get_mut(&name_of(seen)) {
            Some(left) if !left.is_empty() => left.remove(0),
            _ => good(),
        }
    })
}

/// Creates an installation whose list has one name that drops today and one that drops tomorrow. Returns it with the
/// key of an account.
fn site() -> (Site, String) {
    let site = Site::new();
    let list = site.write(
        "list.csv",
        "domain,drop_date\nsolar.com,2026-02-09\nxqzvkjw.com,2026-02-08\nbetter.com,2026-03-01\n",
    );
    site.ingest(&list, &format!("{TODAY}T00:00:00Z"));
    let key = site.account("one@example.com", "api");
    (site, key)
}

/// Starts a server that asks an archive about one of the best names.
fn serve(site: &Site, archive: &Receiver, more: &str) -> Server {
    let settings = site.settings(&format!(
        "{more}[archive]\nenabled = true\nurl = \"{}\"\nallow = [\"{}\"]\nbest = 1\n",
        archive.url("/cdx/search/cdx"),
        archive.address(),
    ));
    site.serve_with(&["--config", &settings, "--today", TODAY])
}

fn ask(client: &mut Client, name: &str) -> Value {
    let response = client.send("POST", "/api/v1/archive", &json!({"domain": name}));
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

/// Asks until the archive has answered.
#[track_caller]
fn answer(client: &mut Client, name: &str) -> Value {
    let mut last = Value::Null;
    wait::until(WAIT_MAX, name, || {
        last = ask(client, name);
        last["outcome"] != "queued"
    });
    last
}

/// Returns the rows of the edition in use.
fn rows(site: &Site) -> Vec<String> {
    let path = site.data().join("facts/archive.ddf");
    let Ok(edition) = Edition::open(&path) else { return Vec::new() };
    let (mut rows, mut all) = (edition.rows_from(b"").expect("rows"), Vec::new());
    while let Some(row) = rows.next_row().expect("a row") {
        let value = |value: Option<dropdex::facts::Value>| {
            value.map_or_else(|| "-".to_owned(), |value| value.to_string())
        };
        let values: Vec<String> = edition.values(row).into_iter().map(value).collect();
        all.push(format!("{} {}", String::from_utf8_lossy(&row.key), values.join(" ")));
    }
    all
}

#[test]
fn captures_of_the_best_and_of_watched_names_become_facts() {
    let archive = cdx(&[("empty.com", vec![Reply::Answer(200, vec![], fixture("empty.json"))])]);
    let (site, key) = site();
    let server = site.serve(TODAY);
    let watch = json!({"domainName": "watched.com"});
    assert_eq!(server.client_with(&key).send("POST", "/api/v1/watchlist", &watch).status, 201);
    server.stop();
    let server = serve(&site, &archive, "[metrics]\nlisten = \"127.0.0.1:0\"\n");
    let mut client = server.client_with(&key);
    wait::until(WAIT_MAX, "the plan is done", || archive.seen().len() == 2);
    let sent = parameters(&archive.seen()[1]);
    let expected = [
        ("url", "solar.com"),
        ("matchType", "host"),
        ("fl", "timestamp,statuscode,digest"),
        ("collapse", "timestamp:8"),
        ("output", "json"),
        ("limit", "2000"),
    ];
    assert_eq!(sent.len(), expected.len());
    assert!(expected.iter().all(|(name, value)| sent[*name] == *value), "{sent:?}");

    let known = answer(&mut client, "empty.com");
    let none = json!({"first": null, "last": null, "days": 0, "isCut": false, "redirects": null, "gap": null});
    assert_eq!((&known["outcome"], &known["captures"]), (&"known".into(), &none));
    let known = answer(&mut client, "xqzvkjw.com");
    let captures =
        json!({"first": 1998, "last": 2009, "days": 4, "isCut": false, "redirects": 50, "gap": 6});
    assert_eq!(known["captures"], captures);
    assert_eq!(known["attribution"], "Captures: Internet Archive, Wayback Machine");
    wait::until(WAIT_MAX, "the facts are in use", || {
        let drops = client.get("/api/v1/drops?view=all&has=archive.first&facts=archive.days");
        drops.status == 200 && drops.text().contains("xqzvkjw.com")
    });
    let facts = client.get("/api/v1/domain/xqzvkjw.com").json()["facts"].clone();
    assert!(facts.as_array().is_some_and(|facts| facts.len() == 5), "{facts}");

    let metrics = server.metrics().get("/metrics");
    assert!(metrics.text().contains("dropdex_archive_answers_total{outcome=\"none\"} 1"));
    let log = server.stop();
    assert!(!log.contains("panicked"), "{log}");
    let asked: Vec<String> = archive.seen().iter().map(name_of).collect();
    assert_eq!(asked, ["watched.com", "solar.com", "empty.com", "xqzvkjw.com"]);
    let expected = [
        "empty.com - - 0 - -",
        "solar.com 1998 2009 4 50 6",
        "watched.com 1998 2009 4 50 6",
        "xqzvkjw.com 1998 2009 4 50 6",
    ];
    assert_eq!(rows(&site), expected);
}

#[test]
fn failures_are_repeated_and_are_never_no_captures() {
    let body = |name: &str| Reply::Answer(200, Vec::new(), fixture(name));
    let good = fixture("good.json");
    let limited = Reply::Answer(429, vec![("Retry-After", "1".to_owned())], Vec::new());
    let archive = cdx(&[
        ("html.com", vec![body("maintenance.html")]),
        ("busy.com", vec![Reply::status(503), limited]),
        ("cut.com", vec![Reply::Cut(Vec::new(), good[..100].to_vec(), good.len())]),
        ("columns.com", vec![body("other-columns.json")]),
        ("refused.com", vec![Reply::status(403), Reply::status(403)]),
    ]);
    let (site, key) = site();
    let server = serve(&site, &archive, "");
    let mut client = server.client_with(&key);
    for name in ["html.com", "busy.com", "cut.com", "columns.com"] {
        let known = answer(&mut client, name);
        assert_eq!((&known["outcome"], &known["captures"]["days"]), (&"known".into(), &4.into()));
    }
    for _ in 0..2 {
        let failed = answer(&mut client, "refused.com");
        assert_eq!((&failed["outcome"], &failed["captures"]), (&"failed".into(), &Value::Null));
    }
    let log = server.stop();
    assert!(log.contains("not a list in JSON") && log.contains("HTTP status 503"), "{log}");
    let asked = |name: &str| archive.seen().iter().filter(|seen| name_of(seen) == name).count();
    let asked = ["html.com", "busy.com", "cut.com", "columns.com", "refused.com"].map(asked);
    assert_eq!(asked, [2, 3, 2, 2, 1]);
    assert!(rows(&site).iter().all(|row| row.ends_with(" 1998 2009 4 50 6")), "{:?}", rows(&site));
}

/// A row that exists because of a member would show everyone what members want.
#[test]
fn what_members_ask_about_is_not_kept_for_all_unless_the_operator_says_so() {
    let archive = cdx(&[]);
    let (site, key) = site();
    for email in ["ann@example.com", "bob@example.com"] {
        site.account_with_password(email, "free", PASSWORD);
    }
    let server = serve(&site, &archive, "[facts]\nof_members = false\n");
    let mut client = server.client_with(&key);
    client.send("POST", "/api/v1/watchlist", &json!({"domainName": "watched.com"}));
    let mut nobody = Person::nobody(&server);
    nobody.post("/domain/better.com/archive", &[]).assert_goes_to("/login");
    let mut ann = Person::logged_in(&server, "ann@example.com");
    ann.get("/domain/better.com").assert_says(200, "Ask the web archive");
    let sentence = "Captured on 4 days, from 1998 to 2009.";
    wait::until(WAIT_MAX, "the result is shown to Ann", || {
        ann.post("/domain/better.com/archive", &[]);
        ann.get("/domain/better.com").visible().contains(sentence)
    });
    ann.post("/domain/better.com/archive", &[]).assert_goes_to("/domain/better.com?notice=archive");
    ann.get("/status").assert_says(200, "Web archive");
    let mut bob = Person::logged_in(&server, "bob@example.com");
    assert!(!bob.get("/domain/better.com").visible().contains(sentence));
    server.stop();
    let asked: Vec<String> = archive.seen().iter().map(name_of).collect();
    assert_eq!(asked.len(), 2, "not the watched name: {asked:?}");
    assert_eq!(rows(&site), ["solar.com 1998 2009 4 50 6"]);
}

#[test]
fn a_server_without_an_archive_says_so() {
    let (site, key) = site();
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let refused = ask(&mut client, "solar.com");
    assert_eq!(refused["outcome"], "refused");
    assert!(refused["error"].as_str().is_some_and(|it| it.contains("[archive]")), "{refused}");
    for wrong in [json!({}), json!({"domain": "com"}), json!({"domains": ["solar.com"]})] {
        assert_eq!(client.send("POST", "/api/v1/archive", &wrong).status, 400, "{wrong}");
    }
}
