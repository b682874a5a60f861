//! User data over HTTP: complete responses of every endpoint of claims, watchlists, alert rules and
//! votes, their errors and exports, and durability after a crash.
//!
//! Where the specification leaves a detail open, a comment `Choice:` states the expectation.

mod alerts;
mod contract;
mod conventions;
mod deliveries;
mod export;
mod portfolio;
mod searches;
mod watch_alerts;
mod watchlist;

use serde_json::{Map, Value, json};

use crate::common::json::error;
use crate::common::runs::wait_for_the_next_millisecond;
use crate::common::{Client, Response, Server, Site, TODAY};

const TOMORROW: &str = "2026-03-16";
const OBSERVED: &str = "2026-03-15T00:00:00Z";

/// A .com name is released 35 days after its drop; the last 5 of them are pending delete.
const LIST: &str = "\
domain,drop_date,release_date,status,registered_again
free-early.com,2026-02-06,,,
free-late.com,2026-02-08,,,
pending.com,2026-02-10,,,
redeem.com,2026-03-10,,,
gone.com,2026-01-01,,,
kept.de,,,registered,
back.com,2026-02-01,,,true
münchen.de,2026-03-01,,,
";

/// Creates an installation that holds [`LIST`].
fn site() -> Site {
    let site = Site::new();
    let list = site.write("list.csv", LIST);
    site.ingest(&list, OBSERVED);
    site
}

/// Starts a server over [`LIST`] on [`TODAY`], and returns it with a client of plan `api`.
fn served(site: &Site) -> (Server, Client) {
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let client = server.client_with(&key);
    (server, client)
}

/// Starts a server on `today` with these settings.
fn serve_with(site: &Site, settings: &str, today: &str) -> Server {
    site.serve_with(&["--config", &site.settings(settings), "--today", today])
}

/// Asserts the error of a plan limit. The message is not specified.
#[track_caller]
fn assert_plan_limit(response: &Response, plan: &str, limit: u32) {
    let (status, mut body) = response.answer();
    let message = body["error"].take();
    let words = message.as_str().unwrap_or_default().len();
    assert!(words > 10, "a message that says what is refused: {message}");
    let expected = json!({"error": null, "code": "PLAN_LIMIT", "plan": plan, "limit": limit});
    assert_eq!((status, body), (403, expected), "{message}");
}

/// Replaces each of `members`, which must be timestamps of [`TODAY`], with `"now"`.
#[track_caller]
fn hide_times(object: &mut Value, members: &[&str]) {
    for member in members {
        let at = object[*member].as_str().unwrap_or_else(|| panic!("no {member}: {object}"));
        let time = at.strip_prefix("2026-03-15T").and_then(|rest| rest.strip_suffix('Z'));
        let shaped = time.is_some_and(|time| {
            time.len() == "12:00:00.000".len()
                && time.bytes().enumerate().all(|(place, byte)| match place {
                    2 | 5 => byte == b':',
                    8 => byte == b'.',
                    _ => byte.is_ascii_digit(),
                })
        });
        assert!(shaped, "{member}: {at}");
        object[*member] = json!("now");
    }
}

/// Returns the id of a 201's object, which its `Location` must name.
#[track_caller]
fn added_id(response: &Response, collection: &str) -> u64 {
    assert_eq!(response.status, 201, "{}", response.text());
    let id = response.json()["id"].as_u64().expect("an integer id");
    assert!((1..1 << 53).contains(&id), "{id} is exact in every JSON reader");
    assert_eq!(response.header("location"), Some(format!("{collection}/{id}").as_str()));
    id
}

/// Adds an object. The next object gets a later millisecond, because lists are sorted by it.
#[track_caller]
fn add(client: &mut Client, path: &str, body: &Value) -> Response {
    let response = client.send("POST", path, body);
    wait_for_the_next_millisecond();
    response
}

#[track_caller]
fn add_claim(client: &mut Client, claim: &Value) -> u64 {
    added_id(&add(client, "/api/v1/portfolio", claim), "/api/v1/portfolio")
}

#[track_caller]
fn add_alert(client: &mut Client, name: &str) -> u64 {
    let body = json!({"name": name, "filter": {}, "channels": [{"type": "email"}]});
    added_id(&add(client, "/api/v1/alerts", &body), "/api/v1/alerts")
}

#[track_caller]
fn watch(client: &mut Client, name: &str) {
    let response = add(client, "/api/v1/watchlist", &json!({"domainName": name}));
    assert_eq!(response.status, 201, "{name}: {}", response.text());
}

/// Returns the values of `member` in `rows`, in order.
fn column(rows: &Value, member: &str) -> Vec<Value> {
    rows.as_array().expect("an array").iter().map(|row| row[member].clone()).collect()
}

/// Returns the same object with one member changed.
fn with(object: &Value, member: &str, value: Value) -> Value {
    let mut changed: Map<String, Value> = object.as_object().expect("an object").clone();
    changed.insert(member.to_owned(), value);
    Value::Object(changed)
}
