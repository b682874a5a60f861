//! Feeds and calendars at secret addresses, as their readers see them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Client, Server, Site, TODAY, tools, wait};

const OBSERVED: &str = "2026-03-15T00:00:00Z";
const LIST: &str = "\
domain,drop_date,release_date
solarpanel.com,2026-02-10,2026-03-16
münchen-café.com,2026-02-10,2026-03-17
solarroof.net,2026-02-10,2026-03-20
";

struct Desk {
    site: Site,
    server: Server,
    client: Client,
}

impl Desk {
    fn new() -> Desk {
        let site = Site::new();
        let list = site.write("list.csv", LIST);
        site.ingest(&list, OBSERVED);
        site.ok(&["rebuild"]);
        let key = site.account("ann@example.com", "api");
        let server = site.serve(TODAY);
        let client = server.client_with(&key);
        Desk { site, server, client }
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        let answer = self.client.send("POST", path, body);
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
        answer.json()
    }

    /// Returns the links of a feed for a client that sends these headers.
    fn links(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let answer = self.server.client().request("GET", path, headers);
        answer.text().to_owned()
    }

    /// Checks that a feed links to this page, and that the page exists.
    fn leads_to(&self, read: &Value, path: &str) {
        let address = format!("//{}{path}", self.server.address());
        assert!(read["alternate"][0].as_str().is_some_and(|it| it.ends_with(&address)), "{read}");
        assert_ne!(self.server.client().get(path).status, 404, "{path}");
    }

    /// Returns the entries that readers see at the addresses of a feed.
    fn read(&self, addresses: &Value) -> Value {
        let mut nobody = self.server.client();
        let files = ["atom", "calendar"].map(|form| {
            let answer = nobody.get(addresses[form].as_str().expect("an address"));
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
            assert_eq!(answer.header("x-robots-tag"), Some("noindex"));
            assert_eq!(answer.header("cache-control"), Some("private, max-age=900"));
            self.site.write(form, &answer.body)
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/subscriptions/read.py");
        let mut command = Command::new(tools::python());
        let output = command.arg(script).args(&files).output().expect("Python runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (read["bozo"].as_str(), read["errors"].as_array().map(Vec::len)),
            (Some(""), Some(0)),
            "{read}"
        );
        read
    }
}

#[test]
fn a_search_is_a_feed_and_a_calendar() {
    let mut desk = Desk::new();
    let search = json!({ "name": "<Tomorrow> & \"more\", each", "filter": { "tlds": ["com"] } });
    let id = desk.post("/api/v1/searches", &search)["id"].clone();
    let addresses = desk.post("/api/v1/feeds", &json!({ "searchId": id }));
    let read = desk.read(&addresses);
    assert_eq!(read["title"], "dropdex: <Tomorrow> & \"more\", each");
    desk.leads_to(&read, &format!("/searches/{id}"));
    let entries = read["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2, "{read}");
    let again = json!({ "name": "<Tomorrow> & \"more\", each", "filter": { "tlds": ["net"] } });
    let again = desk.post("/api/v1/searches", &again)["id"].clone();
    let again = desk.post("/api/v1/feeds", &json!({ "searchId": again }));
    assert_ne!(desk.read(&again)["id"], read["id"], "two feeds of one name");
    let ids: std::collections::HashSet<_> = entries.iter().map(|it| it["id"].as_str()).collect();
    let updated: std::collections::HashSet<_> =
        entries.iter().map(|it| it["updated"].as_str()).collect();
    assert_eq!((ids.len(), updated.len()), (2, 2), "each has its own: {read}");
    let titles =
        entries.iter().map(|entry| entry["title"].as_str().expect("text")).collect::<Vec<_>>();
    assert!(titles.iter().any(|title| title.starts_with("münchen-café.com, score ")), "{titles:?}");
    let events = read["events"].as_array().expect("events");
    let solar =
        events.iter().find(|it| it["uid"].as_str().is_some_and(|id| id.contains("solarpanel")));
    let solar = solar.expect("an event");
    assert_eq!(
        (&solar["start"], &solar["minutes"]),
        (&json!("2026-03-16T18:00:00+00:00"), &json!(60.0))
    );
    assert_eq!(solar["status"], "TENTATIVE");
    assert!(solar["description"].as_str().is_some_and(|text| text.contains("not verified")));
    // The names are the same, so a reader shows no entry a second time.
    let path = addresses["atom"].as_str().expect("an address");
    let mut nobody = desk.server.client();
    let tag = nobody.get(path).header("etag").expect("a tag").to_owned();
    assert_eq!(nobody.request("GET", path, &[("If-None-Match", &tag)]).status, 304);
    // A deleted search has no feed.
    assert_eq!(desk.client.request("DELETE", &format!("/api/v1/searches/{id}"), &[]).status, 200);
    assert_eq!(nobody.get(path).status, 404);
}

#[test]
fn a_rule_is_a_feed_of_its_stages_until_it_is_deleted() {
    let mut desk = Desk::new();
    let rule = json!({
        "name": "Solar", "channels": [{ "type": "email" }],
        "filter": { "tlds": ["com", "net"], "contains": "solar", "stages": ["pending-delete"] },
    });
    let id = desk.post("/api/v1/alerts", &rule)["alert"]["id"].clone();
    let addresses = desk.post("/api/v1/feeds", &json!({ "ruleId": id }));
    let read = desk.read(&addresses);
    assert_eq!(read["title"], "dropdex: Solar");
    desk.leads_to(&read, &format!("/alerts/{id}"));
    let uids = read["events"].as_array().expect("events").iter().map(|it| it["uid"].as_str());
    let names: std::collections::BTreeSet<_> =
        uids.map(|uid| uid.expect("text").split('/').next().expect("a name")).collect();
    assert_eq!(names, ["solarpanel.com", "solarroof.net"].into());
    let listed = desk.client.get("/api/v1/feeds").json();
    assert_eq!(
        (&listed["feeds"][0]["ruleId"], &listed["feeds"][0]["searchId"]),
        (&id, &Value::Null)
    );
    let both = desk.client.send("POST", "/api/v1/feeds", &json!({ "ruleId": id, "searchId": 1 }));
    assert_eq!(both.status, 400, "{}", both.text());
    assert_eq!(desk.client.request("DELETE", &format!("/api/v1/alerts/{id}"), &[]).status, 200);
    let path = addresses["atom"].as_str().expect("an address");
    assert_eq!(desk.server.client().get(path).status, 404);
}

#[test]
fn a_watchlist_is_a_calendar_until_it_is_revoked() {
    let mut desk = Desk::new();
    for domain in ["solarroof.net", "solarpanel.com", "example.org"] {
        desk.post("/api/v1/watchlist", &json!({ "domainName": domain }));
    }
    let addresses = desk.post("/api/v1/feeds", &json!({}));
    let read = desk.read(&addresses);
    let starts: Vec<_> =
        read["events"].as_array().expect("events").iter().map(|it| &it["start"]).collect();
    let hours = ["2026-03-16T18:00:00+00:00", "2026-03-20T18:00:00+00:00"];
    assert_eq!(starts, hours, "soonest first, and no date without a drop");
    desk.leads_to(&read, "/watchlist");
    let dossier = desk.client.get("/api/v1/domain/solarpanel.com").json();
    let why = dossier["latestDrop"]["explanation"].as_str().expect("a sentence");
    let text = |entry: &Value, member: &str| entry[member].as_str().expect("text").to_owned();
    let content = text(&read["entries"][0], "content");
    assert!(
        content.starts_with("Stage pending-delete, expected release 2026-03-16. "),
        "{content}"
    );
    assert!(content.ends_with(why), "{content}");
    assert_eq!(
        text(&read["events"][0], "description"),
        format!("Stage pending-delete. Expected, not verified. {why}")
    );
    let listed = desk.client.get("/api/v1/feeds").json();
    assert_eq!(
        listed,
        json!({ "count": 1, "feeds": [{ "searchId": null, "ruleId": null, "createdOn": TODAY }] })
    );
    let mut nobody = desk.server.client();
    let path = |addresses: &Value, form: &str| addresses[form].as_str().expect("text").to_owned();
    let next = desk.post("/api/v1/feeds", &json!({}));
    assert_eq!(nobody.get(&path(&addresses, "calendar")).status, 404, "the previous addresses");
    assert_eq!(nobody.get(&path(&next, "calendar")).status, 200);
    let revoked = desk.client.request("DELETE", "/api/v1/feeds", &[]);
    assert_eq!(revoked.json(), json!({ "searchId": null, "ruleId": null, "removed": true }));
    assert_eq!(nobody.get(&path(&next, "calendar")).status, 404);
    for (target, status) in [
        ("/api/v1/feeds", 404),
        ("/api/v1/feeds?search_id=3", 404),
        ("/api/v1/feeds?search_id=9223372036854775806", 404),
        ("/api/v1/feeds?search_id=x", 400),
        ("/api/v1/feeds?search_id=3&rule_id=4", 400),
        ("/api/v1/feeds?rule_id=4", 404),
        ("/api/v1/feeds?kind=watchlist", 400),
    ] {
        assert_eq!(desk.client.request("DELETE", target, &[]).status, status, "{target}");
    }
    for path in ["/feeds/x.atom", "/feeds/x", &format!("/feeds/{}.rss", "0".repeat(64))] {
        assert_eq!(nobody.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_watched_name_that_a_list_reports_as_registered_is_cancelled() {
    let mut desk = Desk::new();
    for domain in ["solarpanel.com", "solarroof.net"] {
        desk.post("/api/v1/watchlist", &json!({ "domainName": domain }));
    }
    let addresses = desk.post("/api/v1/feeds", &json!({}));
    let again = "domain,drop_date,release_date,registered_again\nsolarpanel.com,2026-02-10,2026-03-16,true\n";
    let list = desk.site.write("again.csv", again);
    desk.site.ingest(&list, "2026-03-15T01:00:00Z");
    desk.site.ok(&["rebuild"]);
    wait::until(Duration::from_secs(15), "the new list", || {
        desk.client.get("/api/v1/watchlist").json()["summary"]["renewed"] == 1
    });
    let read = desk.read(&addresses);
    let mut events = read["events"].as_array().expect("events").iter();
    let event = events.find(|it| it["status"] == "CANCELLED").expect("an event");
    assert_eq!(
        (&event["start"], &event["minutes"]),
        (&json!("2026-03-16T18:00:00+00:00"), &json!(60.0))
    );
    let description = event["description"].as_str().expect("text");
    assert!(description.starts_with("Renewed or registered again. "), "{description}");
    let titles: Vec<_> = read["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|it| it["title"].as_str().expect("text"))
        .collect();
    assert!(
        titles[1].starts_with("solarpanel.com, score ")
            && titles[1].ends_with(", renewed or registered again"),
        "{titles:?}"
    );
}

#[test]
fn a_feed_is_read_twenty_times_at_once_and_no_more_often() {
    let mut desk = Desk::new();
    let addresses = desk.post("/api/v1/feeds", &json!({}));
    let path = addresses["atom"].as_str().expect("an address");
    let mut nobody = desk.server.client();
    for _ in 0..20 {
        assert_eq!(nobody.get(path).status, 200);
    }
    let refused = nobody.get(path);
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (429, Some("too_many_feed_requests"))
    );
    assert!(refused.number("retry-after").is_some_and(|seconds| (1..=60).contains(&seconds)));
}

/// Without a public address, links have the scheme and host that the client used.
#[test]
fn links_have_the_scheme_of_the_request() {
    let mut desk = Desk::new();
    desk.post("/api/v1/watchlist", &json!({ "domainName": "solarpanel.com" }));
    let addresses = desk.post("/api/v1/feeds", &json!({}));
    let here = desk.server.address();
    let https: &[(&str, &str)] =
        &[("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https")];
    let other = [https, &[("X-Forwarded-Host", "drops.example")]].concat();
    for form in ["atom", "calendar"] {
        let path = addresses[form].as_str().expect("an address");
        for (headers, home) in [
            (&[][..], format!("http://{here}")),
            (https, format!("https://{here}")),
            (&other, "https://drops.example".to_owned()),
        ] {
            let text = desk.links(path, headers);
            let link = format!("{home}/domain/solarpanel.com");
            assert!(text.contains(&link), "{form}: no {link} in {text}");
        }
    }
}
