//! `/api/v1/watchlist`.

use serde_json::{Value, json};

use super::{
    LIST, TODAY, TOMORROW, assert_plan_limit, column, error, serve_with, served, site, watch,
};
use crate::common::{Client, Site};

const PATH: &str = "/api/v1/watchlist";
const EXTERNAL_TWO: &str = "[plans.pro]\nexternal_names = 2\n";

/// Returns the score of a name by `dropdex score`, with the corpus's spread.
fn dqs(site: &Site, name: &str) -> Value {
    let line = site.ok(&["score", "--json", name]);
    let mut score: Value = serde_json::from_str(&line).expect("a line of JSON");
    score["dqs"].take()
}

fn entry(site: &Site, name: &str, latest_drop: Option<&str>) -> Value {
    json!({
        "domain": name,
        "source": "corpus",
        "rdapObservedState": null,
        "rdapVerifiedAt": null,
        "latestDropDate": latest_drop,
        "dqs": dqs(site, name),
    })
}

fn external(name: &str) -> Value {
    json!({
        "domain": name,
        "source": "external",
        "rdapObservedState": null,
        "rdapVerifiedAt": null,
        "latestDropDate": null,
        "dqs": null,
    })
}

fn add(client: &mut Client, name: &str) -> (u16, Value) {
    client.send("POST", PATH, &json!({"domainName": name})).answer()
}

fn remove(client: &mut Client, name: &str) -> (u16, Value) {
    client.request("DELETE", &format!("{PATH}?domain={name}"), &[]).answer()
}

#[test]
fn a_name_is_watched_once_and_can_be_removed() {
    let site = site();
    let (_server, mut client) = served(&site);
    let empty = json!({
        "count": 0, "limit": 100, "offset": 0, "sort": "lifecycle",
        "summary": {"total": 0, "external": 0, "renewed": 0, "checkable": 0},
        "watchlist": [],
    });
    assert_eq!(client.get(PATH).answer(), (200, empty.clone()));
    let pending = entry(&site, "pending.com", Some("2026-02-10"));
    assert_eq!(add(&mut client, " Pending.COM. "), (201, pending.clone()));
    assert_eq!(add(&mut client, "pending.com"), (200, pending.clone()));
    assert_eq!(add(&mut client, "nowhere.com"), (201, external("nowhere.com")));
    assert_eq!(add(&mut client, "kept.de"), (201, entry(&site, "kept.de", None)));
    let munich = entry(&site, "xn--mnchen-3ya.de", Some("2026-03-01"));
    assert_eq!(add(&mut client, "MÜNCHEN.de"), (201, munich.clone()));
    let body = client.get(PATH).json();
    let expected = json!({
        "count": 4, "limit": 100, "offset": 0, "sort": "lifecycle",
        // .com has an RDAP server, .de has none.
        "summary": {"total": 4, "external": 1, "renewed": 0, "checkable": 2},
        "watchlist": [pending, munich, entry(&site, "kept.de", None), external("nowhere.com")],
    });
    assert_eq!(body, expected);

    let gone = json!({"domain": "pending.com", "removed": true});
    assert_eq!(remove(&mut client, "PENDING.com"), (200, gone));
    assert_eq!(remove(&mut client, "pending.com"), (404, error("not found")));
    assert_eq!(remove(&mut client, "never-there.com"), (404, error("not found")));
    for name in ["m%C3%BCnchen.de", "kept.de", "nowhere.com"] {
        assert_eq!(remove(&mut client, name).0, 200, "{name}");
    }
    assert_eq!(client.get(PATH).answer(), (200, empty));
}

#[test]
fn lists_are_sorted_as_requested() {
    let site = site();
    let (_server, mut client) = served(&site);
    let added = [
        "zz-external.com",
        "gone.com",
        "back.com",
        "free-late.com",
        "redeem.com",
        "kept.de",
        "free-early.com",
        "pending.com",
    ];
    for name in added {
        watch(&mut client, name);
    }
    let lifecycle = [
        "free-early.com",
        "free-late.com",
        "pending.com",
        "redeem.com",
        "gone.com",
        // Registered again, never dropped, external: no stage, so by name.
        "back.com",
        "kept.de",
        "zz-external.com",
    ];
    let mut by_name = added;
    by_name.sort_unstable();
    let mut newest_first = added;
    newest_first.reverse();
    let mut by_dqs = by_name.map(|name| {
        let held = name != "zz-external.com";
        (if held { dqs(&site, name).as_i64().expect("a score") } else { -1 }, name)
    });
    by_dqs.sort_by_key(|(dqs, _)| std::cmp::Reverse(*dqs));
    let by_dqs = by_dqs.map(|(_, name)| name);
    for (sort, names) in
        [("lifecycle", lifecycle), ("name", by_name), ("dqs", by_dqs), ("added", newest_first)]
    {
        let body = client.get(&format!("{PATH}?sort={sort}")).json();
        assert_eq!(column(&body["watchlist"], "domain"), names, "{sort}");
        assert_eq!((&body["sort"], &body["count"]), (&json!(sort), &json!(8)));
        // Every page has the summary of the whole list.
        let page = client.get(&format!("{PATH}?sort={sort}&limit=2&offset=3")).json();
        assert_eq!(column(&page["watchlist"], "domain"), names[3..5], "{sort}");
        assert_eq!(page["summary"], body["summary"]);
        assert_eq!(page["summary"]["total"], 8);
        assert_eq!((&page["count"], &page["limit"]), (&json!(2), &json!(2)));
        assert_eq!(page["offset"], 3);
    }
    assert_eq!(client.get(&format!("{PATH}?offset=10000")).json()["count"], 0);
    for (query, refusal) in [
        ("sort=price", "sort: must be one of lifecycle, name, dqs, added"),
        ("limit=0", "limit: must be an integer from 1 to 1000"),
        ("limit=1001", "limit: must be an integer from 1 to 1000"),
        ("offset=10001", "offset: must be an integer from 0 to 10000"),
        ("sort=name&sort=name", "sort: is given more than once"),
    ] {
        let answer = client.get(&format!("{PATH}?{query}")).answer();
        assert_eq!(answer, (400, error(refusal)), "{query}");
    }
}

#[test]
fn names_that_are_not_registrable_are_refused() {
    let site = site();
    let (_server, mut client) = served(&site);
    for (body, refusal) in [
        (json!({}), "domainName: is required"),
        (json!({"domainName": null}), "domainName: is required"),
        (json!({"domainName": 5}), "domainName: invalid type: integer `5`, expected a string"),
        (json!({"domainName": ""}), "domainName: the name is empty"),
        (
            json!({"domainName": "www.a.com"}),
            "domainName: the name is a host below a registrable name",
        ),
        (json!({"domain": "a.com"}), "domain: unknown field `domain`, expected `domainName`"),
    ] {
        assert_eq!(client.send("POST", PATH, &body).answer(), (400, error(refusal)), "{body}");
    }
    for (query, refusal) in [
        ("", "domain: is required"),
        ("?domain=", "domain: is required"),
        ("?domain=com", "domain: the name is a public suffix itself"),
        ("?domain=a.com&domain=a.com", "domain: is given more than once"),
    ] {
        let answer = client.request("DELETE", &format!("{PATH}{query}"), &[]).answer();
        assert_eq!(answer, (400, error(refusal)), "{query}");
    }
}

#[test]
fn external_names_use_quota_until_a_list_contains_them() {
    let site = site();
    let key = site.account("pro@example.com", "pro");
    let server = serve_with(&site, EXTERNAL_TWO, TODAY);
    let mut client = server.client_with(&key);
    watch(&mut client, "first.com");
    watch(&mut client, "second.com");
    let refused = client.send("POST", PATH, &json!({"domainName": "third.com"}));
    assert_plan_limit(&refused, "pro", 2);
    // Watched names and names in the corpus use no quota.
    assert_eq!(add(&mut client, "second.com").0, 200);
    watch(&mut client, "pending.com");
    // Removing a name frees its quota.
    assert_eq!(remove(&mut client, "second.com").0, 200);
    watch(&mut client, "third.com");
    assert_plan_limit(&client.send("POST", PATH, &json!({"domainName": "second.com"})), "pro", 2);
    assert_eq!(client.get(PATH).json()["summary"]["external"], 2);
    server.stop();

    let list = site.write("second.csv", "domain,drop_date\nfirst.com,2026-03-15\n");
    site.ingest(&list, "2026-03-15T06:00:00Z");
    let server = serve_with(&site, EXTERNAL_TWO, TODAY);
    let mut client = server.client_with(&key);
    let first = client.get(&format!("{PATH}?sort=name")).json();
    assert_eq!(first["watchlist"][0], entry(&site, "first.com", Some("2026-03-15")));
    assert_eq!(first["summary"]["external"], 1);
    watch(&mut client, "second.com");
    assert_plan_limit(&client.send("POST", PATH, &json!({"domainName": "fourth.com"})), "pro", 2);
}

#[test]
fn renewed_counts_names_registered_again_since_they_were_added() {
    let site = site();
    let (server, mut client) = served(&site);
    // Registered again before it was added.
    watch(&mut client, "back.com");
    watch(&mut client, "redeem.com");
    watch(&mut client, "pending.com");
    assert_eq!(client.get(PATH).json()["summary"]["renewed"], 0);
    let key = site.new_key("owner@example.com");
    server.stop();
    let later = LIST.replace("redeem.com,2026-03-10,,,", "redeem.com,2026-03-10,,,true");
    let list = site.write("later.csv", later);
    site.ingest(&list, "2026-03-16T00:00:00Z");
    let server = site.serve(TOMORROW);
    let body = server.client_with(&key).get(PATH).json();
    let summary = json!({"total": 3, "external": 0, "renewed": 1, "checkable": 3});
    assert_eq!(body["summary"], summary);
    assert_eq!(column(&body["watchlist"], "domain"), ["pending.com", "back.com", "redeem.com"]);
}
