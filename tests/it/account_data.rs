//! Accounts that are taken away: the archive of everything, and deletion by the owner.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::process::Stdio;
use std::time::Duration;

use csv::{ReaderBuilder, StringRecord};
use serde_json::{Value, json};
use zip::ZipArchive;

use crate::common::wait;
use crate::common::{Server, Site, TODAY};
use crate::pages::PASSWORD;
use crate::pages::browser::Browser;

const SOON: Duration = Duration::from_secs(60);
const ANN: &str = "ann@example.com";
const PLAIN: &str = "[web]\nplain_http = true\n";
const FACTS: &str =
    "domain,acme.rank:int:rank:less,acme.note,as_of\nsolar.com,7,\"a, b\",2026-03-01\n";
/// Every file of an archive but those of facts, with the header of CSV files.
const FILES: [(&str, &str); 17] = [
    ("README.txt", ""),
    ("account.json", ""),
    ("watchlist.json", ""),
    ("watchlist.csv", "domain"),
    ("portfolio.json", ""),
    ("portfolio.csv", "id"),
    ("alerts.json", ""),
    ("alerts.csv", "id"),
    ("deliveries.json", ""),
    ("searches.json", ""),
    ("searches.csv", "id"),
    ("hidden.json", ""),
    ("hidden.csv", "domain"),
    ("votes.json", ""),
    ("votes.csv", "domain"),
    ("feeds.json", ""),
    ("feeds.csv", "search_id"),
];

/// Starts the server of the site on a day.
fn serve(site: &Site, today: &str) -> Server {
    let settings = site.settings(PLAIN);
    site.serve_with(&["--today", today, "--config", &settings])
}

fn site() -> Site {
    let names = ["solar.com", "fine.net"].map(str::to_owned);
    Site::with_names(names.into_iter(), TODAY)
}

/// The files of an archive.
fn unpacked(archive: &[u8]) -> BTreeMap<String, String> {
    let mut archive = ZipArchive::new(Cursor::new(archive)).expect("an archive");
    let count = archive.len();
    let read = |at| {
        let mut file = archive.by_index(at).expect("a file");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("UTF-8");
        (file.name().to_owned(), text)
    };
    (0..count).map(read).collect()
}

/// The rows of a CSV file, with its header.
#[track_caller]
fn rows(text: &str) -> Vec<StringRecord> {
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|row| row.expect("rows of one length")).collect()
}

#[track_caller]
fn parsed(files: &BTreeMap<String, String>, name: &str) -> Value {
    serde_json::from_str(&files[name]).unwrap_or_else(|err| panic!("{name}: {err}"))
}

#[test]
fn an_archive_has_everything_of_an_account_and_no_secret() {
    let site = site();
    site.account_with_password(ANN, "api", PASSWORD);
    let server = serve(&site, TODAY);
    let key = site.new_key(ANN);
    let mut client = server.client_with(&key);
    let mut send = |method: &str, path: &str, body: Value| {
        let response = client.send(method, path, &body);
        assert!(matches!(response.status, 200 | 201), "{path}: {}", response.text());
        response.json()
    };
    send("POST", "/api/v1/watchlist", json!({ "domainName": "kept.org" }));
    let notes = json!({ "note": "=call, then \"bid\"", "tags": ["flip"], "maxBidUsd": 420 });
    send("PATCH", "/api/v1/watchlist/kept.org", notes);
    let claim = json!({ "domain": "solar.com", "status": "caught", "userNotes": "two\nlines" });
    send("POST", "/api/v1/portfolio", claim);
    let channels = json!([
        { "type": "webhook", "url": "https://hooks.example.com/path" },
        { "type": "slack", "url": "https://hooks.slack.com/services/T0/B0/chat-secret-wxyz" },
    ]);
    let rule = json!({ "name": "short, .de", "filter": { "tlds": ["de"] }, "channels": channels });
    let added = send("POST", "/api/v1/alerts", rule);
    let signing = added["secret"].as_str().expect("a secret").to_owned();
    let search = json!({ "name": "mine", "filter": { "tlds": ["com"], "maxLength": 5 } });
    send("POST", "/api/v1/searches", search);
    send("POST", "/api/v1/hidden", json!({ "domainNames": ["hidden.com"] }));
    send("PUT", "/api/v1/domain/solar.com/feedback", json!({ "vote": "up" }));
    let feed = send("POST", "/api/v1/feeds", json!({}));
    let feed = feed["atom"].as_str().expect("a path").to_owned();
    let address = feed.trim_start_matches("/feeds/").trim_end_matches(".atom");
    let csv = [("Content-Type", "text/csv")];
    let facts = server.client_with(&key).send_with("POST", "/api/v1/facts", &csv, FACTS.as_bytes());
    assert_eq!(facts.status, 201, "{}", facts.text());
    let mut ann = Browser::new(&server);
    assert_eq!(ann.log_in(ANN, PASSWORD).status, 303);
    ann.post("/mark", &[("domain", "fine.net"), ("mark", "spam")]);

    let sent = ann.get("/account/data.zip");
    assert_eq!((sent.status, sent.header("content-type")), (200, Some("application/zip")));
    let file = format!("attachment; filename=\"dropdex-{ANN}-{TODAY}.zip\"");
    assert_eq!(sent.header("content-disposition"), Some(file.as_str()));
    assert_eq!(sent.header("cache-control"), Some("no-store"));
    let files = unpacked(&sent.body);
    let of_facts = ["facts/acme.csv", "facts/mine.csv", "facts/mappings.json"];
    let mut wanted: Vec<_> = FILES.iter().map(|(name, _)| *name).chain(of_facts).collect();
    wanted.sort_unstable();
    assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), wanted);
    for (name, first) in FILES.iter().filter(|(_, first)| !first.is_empty()) {
        let rows = rows(&files[*name]);
        assert_eq!((&rows[0][0], rows.len()), (*first, 2), "{name}: {rows:?}");
        let of_json = parsed(&files, &name.replace(".csv", ".json"));
        assert_eq!(of_json.as_array().map(Vec::len), Some(1), "{name}");
    }
    let (readme, token) = (&files["README.txt"], ann.token());
    for name in FILES.iter().map(|(name, _)| name.trim_end_matches(".csv")) {
        assert!(name == "README.txt" || readme.contains(name), "{name} is not explained");
    }
    for secret in [&key, &signing, address, &token, PASSWORD, "chat-secret", "argon2", "whsec_"] {
        let found = files.iter().find(|(_, text)| text.contains(secret));
        assert!(found.is_none(), "{secret} is in {found:?}");
    }
    let watched = &rows(&files["watchlist.csv"])[1];
    assert_eq!((&watched[0], &watched[12]), ("kept.org", "'=call, then \"bid\""));
    assert_eq!(parsed(&files, "watchlist.json")[0]["note"], "=call, then \"bid\"");
    assert_eq!(&rows(&files["portfolio.csv"])[1][10], "two\nlines");
    let rule = &rows(&files["alerts.csv"])[1];
    assert_eq!(&rule[1], "short, .de");
    assert!(rule[4].starts_with("webhook https://hooks.example.com/path; slack "), "{rule:?}");
    let filter: Value = serde_json::from_str(&rule[5]).expect("JSON");
    assert_eq!(filter, json!({ "tlds": ["de"] }));
    let account = parsed(&files, "account.json");
    assert_eq!((&account["email"], &account["plan"]), (&json!(ANN), &json!("api")));
    assert_eq!(account["keys"][0]["last4"], key[key.len() - 4..]);
    assert_eq!(account["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(&rows(&files["facts/mine.csv"])[1][0], "fine.net");
    // Facts are added again as they are.
    let facts = &files["facts/acme.csv"];
    assert_eq!(rows(facts)[1], vec!["solar.com", "7", "a, b", "2026-03-01"], "{facts}");
    let again = server.client_with(&key).send_with("POST", "/api/v1/facts", &csv, facts.as_bytes());
    assert_eq!(again.json()["refusedCells"], 0, "{}", again.text());
    assert_eq!(unpacked(&ann.get("/account/data.zip").body)["facts/acme.csv"], *facts);

    // The command has the same, with a server and without.
    let path = site.lists().join("ann.zip").to_str().expect("UTF-8").to_owned();
    site.ok(&["account", "export", ANN, &path]);
    let saved = unpacked(&std::fs::read(&path).expect("written"));
    assert_eq!(saved["watchlist.json"], files["watchlist.json"]);
    site.run(&["account", "export", ANN, &path])
        .assert_failed(1, &["exists already; choose another name", "ann.zip"]);
    let log = server.stop();
    assert!(log.contains("event=account_exported email=ann@example.com"), "{log}");
    let mut command = site.command(&["account", "export", ANN, "-"]);
    let output = command.stderr(Stdio::inherit()).output().expect("it ran");
    let alone = unpacked(&output.stdout);
    for (name, text) in saved.iter().filter(|(name, _)| *name != "account.json") {
        assert_eq!(alone[name], *text, "{name}");
    }
    site.run(&["account", "export", "missing@example.com"]).assert_failed(1, &["no account"]);
}

#[test]
fn only_its_owner_downloads_an_archive() {
    let site = site();
    for email in [ANN, "bob@example.com"] {
        site.account_with_password(email, "free", PASSWORD);
    }
    let server = serve(&site, TODAY);
    let mut visitor = Browser::new(&server);
    assert_eq!(visitor.get("/account/data.zip").status, 401);
    assert_eq!(
        visitor.get("/account/data").header("location"),
        Some("/login?next=%2Faccount%2Fdata")
    );
    let mut bob = Browser::new(&server);
    assert_eq!(bob.log_in("bob@example.com", PASSWORD).status, 303);
    let page = bob.get("/account/data");
    assert!(page.text().contains("href=\"/account/data.zip\""), "{}", page.text());
    let files = unpacked(&bob.get("/account/data.zip").body);
    assert_eq!(parsed(&files, "account.json")["email"], "bob@example.com");
    assert_eq!(files["watchlist.json"], "[]\n");
    let other_site = [("Sec-Fetch-Site", "cross-site")];
    assert_eq!(bob.get_with("/account/data.zip", &other_site).status, 403);
}

#[test]
fn an_owner_deletes_the_account_and_restores_it_by_logging_in() {
    let site = site();
    let key = site.account(ANN, "api");
    site.ok_with_input(&["account", "set-password", ANN, "--password-stdin"], PASSWORD);
    let server = serve(&site, TODAY);
    let status = |server: &Server| server.client_with(&key).get("/api/v1/watchlist").status;
    let mut ann = Browser::new(&server);
    assert_eq!(ann.log_in(ANN, PASSWORD).status, 303);
    let wrong = ann.post("/account/delete", &[("password", "wrong horse")]);
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("Your account was not deleted"), "{}", wrong.text());
    assert_eq!(status(&server), 200);
    let page = ann.post("/account/delete", &[("password", PASSWORD)]);
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("22 Mar"), "{}", page.text());
    assert_eq!(status(&server), 401);
    assert!(!ann.is_in());

    // Without the password, nothing shows that the account can be restored.
    assert_eq!(ann.log_in(ANN, "wrong horse").status, 400);
    let offer = ann.log_in(ANN, PASSWORD);
    assert_eq!(offer.status, 200);
    assert!(offer.text().contains("Restore account"), "{}", offer.text());
    assert_eq!(status(&server), 401, "the offer changes nothing");
    let restore = |password| [("email", ANN), ("password", password), ("restore", "yes")];
    assert_eq!(ann.post("/login", &restore("wrong horse")).status, 400);
    assert_eq!(ann.post("/login", &restore(PASSWORD)).header("location"), Some("/"));
    assert!(ann.is_in());
    assert_eq!(status(&server), 200);

    ann.post("/account/delete", &[("password", PASSWORD)]);
    let log = server.stop();
    for event in ["account_deleted", "account_restored"] {
        assert!(log.contains(&format!("event={event} email={ANN} address=127.0.0.1")), "{log}");
    }
    let server = serve(&site, "2026-03-23");
    wait::until(SOON, "the account is erased", || !site.ok(&["account", "list"]).contains(ANN));
    let mut ann = Browser::new(&server);
    assert_eq!(ann.post("/login", &restore(PASSWORD)).status, 400);
}
