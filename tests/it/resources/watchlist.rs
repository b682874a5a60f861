//! `/api/v1/watchlist`: entries, their order, quotas and notes.

use serde_json::{Value, json};

use super::{
    LIST, TODAY, TOMORROW, assert_plan_limit, column, error, hide_times, serve_with, served, site,
    watch,
};
use crate::common::{Client, Site};

const PATH: &str = "/api/v1/watchlist";
const EXTERNAL_TWO: &str = "[plans.pro]\nexternal_names = 2\n";

/// Returns the score of a name by `dropdex score`, with its spread in the corpus.
fn dqs(site: &Site, name: &str) -> Value {
    let line = site.ok(&["score", "--json", name]);
    let mut score: Value = serde_json::from_str(&line).expect("a line of JSON");
    score["dqs"].take()
}

fn entry(site: &Site, name: &str, latest_drop: Option<&str>, stage: Option<(&str, &str)>) -> Value {
    let (stage, release) = stage.unzip();
    json!({
        "domain": name,
        "unicode": name,
        "source": "corpus",
        "rdapObservedState": null,
        "rdapVerifiedAt": null,
        "latestDropDate": latest_drop,
        "dqs": dqs(site, name),
        "stage": stage,
        "releaseDate": release,
        // No name here has a suffix with a known hour, but for .com.
        "releaseAt": release.filter(|_| name.ends_with(".com")).map(|day| format!("{day}T18:00:00.000Z")),
        "releaseCertainty": release.map(|_| if name.ends_with(".com") { "window" } else { "day" }),
        "releaseWindowMinutes": release.map(|_| if name.ends_with(".com") { 60 } else { 1_440 }),
        "addedAt": "now",
        "note": null,
        "tags": [],
        "maxBidUsd": null,
        "venue": null,
        "alerts": null, "availability": null,
        "rdapFormerStates": [],
    })
}

fn external(name: &str) -> Value {
    json!({
        "domain": name,
        "unicode": name,
        "source": "external",
        "rdapObservedState": null,
        "rdapVerifiedAt": null,
        "latestDropDate": null,
        "dqs": null,
        "stage": null,
        "releaseDate": null,
        "releaseAt": null,
        "releaseCertainty": null,
        "releaseWindowMinutes": null,
        "addedAt": "now",
        "note": null,
        "tags": [],
        "maxBidUsd": null,
        "venue": null,
        "alerts": null, "availability": null,
        "rdapFormerStates": [],
    })
}

/// Returns a response without the times, which are not compared.
fn timeless((status, mut entry): (u16, Value)) -> (u16, Value) {
    if entry.get("addedAt").is_some() {
        hide_times(&mut entry, &["addedAt"]);
    }
    (status, entry)
}

fn add(client: &mut Client, name: &str) -> (u16, Value) {
    timeless(client.send("POST", PATH, &json!({"domainName": name})).answer())
}

fn remove(client: &mut Client, name: &str) -> (u16, Value) {
    client.request("DELETE", &format!("{PATH}?domain={name}"), &[]).answer()
}

#[test]
fn a_name_is_watched_once_and_can_be_removed() {
    let site = site();
    let (_server, mut client) = served(&site);
    let empty = json!({
        "count": 0, "limit": 100, "offset": 0, "sort": "lifecycle", "total": 0,
        "summary": {"total": 0, "external": 0, "renewed": 0, "checkable": 0},
        "watchlist": [],
    });
    assert_eq!(client.get(PATH).answer(), (200, empty.clone()));
    let stage = Some(("pending-delete", "2026-03-17"));
    let pending = entry(&site, "pending.com", Some("2026-02-10"), stage);
    assert_eq!(add(&mut client, " Pending.COM. "), (201, pending.clone()));
    assert_eq!(add(&mut client, "pending.com"), (200, pending.clone()));
    assert_eq!(add(&mut client, "nowhere.com"), (201, external("nowhere.com")));
    assert_eq!(add(&mut client, "kept.de"), (201, entry(&site, "kept.de", None, None)));
    let stage = Some(("redemption", "2026-03-31"));
    let mut munich = entry(&site, "xn--mnchen-3ya.de", Some("2026-03-01"), stage);
    munich["unicode"] = json!("münchen.de");
    assert_eq!(add(&mut client, "MÜNCHEN.de"), (201, munich.clone()));
    let mut body = client.get(PATH).json();
    let entries = body["watchlist"].as_array_mut().expect("entries");
    entries.iter_mut().for_each(|entry| hide_times(entry, &["addedAt"]));
    let expected = json!({
        "count": 4, "limit": 100, "offset": 0, "sort": "lifecycle", "total": 4,
        // .com has a server in the bootstrap registry, .de in the overlay.
        "summary": {"total": 4, "external": 1, "renewed": 0, "checkable": 4},
        "watchlist": [pending, munich, entry(&site, "kept.de", None, None), external("nowhere.com")],
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
        // These names were registered again, never dropped or are external. They have no stage, so
        // they are sorted by name.
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
        ("sort=price", "sort: must be one of lifecycle, name, dqs, added, release, bid, venue"),
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
    let mut first = client.get(&format!("{PATH}?sort=name")).json();
    hide_times(&mut first["watchlist"][0], &["addedAt"]);
    let stage = Some(("redemption", "2026-04-19"));
    assert_eq!(first["watchlist"][0], entry(&site, "first.com", Some("2026-03-15"), stage));
    assert_eq!(first["summary"]["external"], 1);
    watch(&mut client, "second.com");
    assert_plan_limit(&client.send("POST", PATH, &json!({"domainName": "fourth.com"})), "pro", 2);
}

#[test]
fn renewed_counts_names_registered_again_since_they_were_added() {
    let site = site();
    let (server, mut client) = served(&site);
    // The name was registered again before it was added.
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

#[test]
fn notes_are_changed_filtered_and_sorted() {
    let site = site();
    let (server, mut client) = served(&site);
    for name in ["pending.com", "redeem.com", "nowhere.com"] {
        watch(&mut client, name);
    }
    let mut patch =
        |name: &str, body: Value| client.send("PATCH", &format!("{PATH}/{name}"), &body).answer();
    let noted = json!({
        "note": "Ask Hanna.\nSimilar pair sold.", "tags": ["#flip", "keep", "flip"], "maxBidUsd": 420.5,
        "venue": "DropCatch",
    });
    let (status, entry) = patch("PENDING.com", noted);
    assert_eq!((status, &entry["tags"]), (200, &json!(["flip", "keep"])));
    assert_eq!(entry["note"], "Ask Hanna.\nSimilar pair sold.");
    assert_eq!((&entry["maxBidUsd"], &entry["venue"]), (&json!(420.5), &json!("DropCatch")));
    // Absent members keep their values, null clears them.
    let (_, entry) = patch("pending.com", json!({"note": null, "maxBidUsd": 300}));
    assert_eq!((&entry["note"], &entry["maxBidUsd"]), (&Value::Null, &json!(300)));
    assert_eq!(entry["tags"], json!(["flip", "keep"]));
    assert_eq!(patch("nowhere.com", json!({"tags": ["Keep"], "maxBidUsd": 1_000})).0, 200);
    assert_eq!(patch("never-there.com", json!({"note": "x"})), (404, error("not found")));
    for (body, refusal) in [
        (json!({"note": "x".repeat(2_001)}), "note: must have 0 to 2000 characters"),
        (json!({"venue": ""}), "venue: must have 1 to 60 characters"),
        (
            json!({"tags": ["a,b"]}),
            "tags: must have 1 to 30 characters, without commas and control characters",
        ),
        (
            json!({"maxBidUsd": 1.234}),
            "maxBidUsd: must be a number from 0 to 1000000000 with at most two decimals",
        ),
        (
            json!({"bid": 1}),
            "bid: unknown field `bid`, expected one of `note`, `tags`, `maxBidUsd`, `venue`, `alerts`",
        ),
    ] {
        assert_eq!(patch("pending.com", body.clone()), (400, error(refusal)), "{body}");
    }
    let many: Vec<_> = (0..11).map(|at| format!("tag{at}")).collect();
    assert_eq!(
        patch("pending.com", json!({"tags": many})),
        (400, error("tags: a name may have at most 10 tags"))
    );

    for (query, names) in [
        ("tag=keep&sort=name", &["nowhere.com", "pending.com"][..]),
        ("tag=flip,other", &["pending.com"]),
        ("venue=dropcatch", &["pending.com"]),
        ("bid=none", &["redeem.com"]),
        ("sort=bid", &["nowhere.com", "pending.com", "redeem.com"]),
        ("sort=release&stage=redemption,pending-delete", &["pending.com", "redeem.com"]),
        ("sort=venue", &["pending.com", "nowhere.com", "redeem.com"]),
    ] {
        let body = client.get(&format!("{PATH}?{query}")).json();
        assert_eq!(column(&body["watchlist"], "domain"), names, "{query}");
        assert_eq!((&body["total"], &body["summary"]["total"]), (&json!(names.len()), &json!(3)));
    }

    // Notes survive a restart; a name that is removed and added again has none.
    server.kill();
    let server = serve_with(&site, "", TODAY);
    let mut client = server.client_with(&site.new_key("owner@example.com"));
    let body = client.get(&format!("{PATH}?tag=flip")).json();
    assert_eq!(body["watchlist"][0]["maxBidUsd"], 300);
    assert_eq!(remove(&mut client, "pending.com").0, 200);
    assert_eq!(add(&mut client, "pending.com").1["tags"], json!([]));
}

#[test]
fn a_batch_has_a_result_for_each_name() {
    let site = site();
    let (_server, mut client) = served(&site);
    watch(&mut client, "pending.com");
    let batch = format!("{PATH}/batch");
    let sent = json!({
        "domainNames": ["Redeem.COM", "pending.com", "www.a.com", "redeem.com"],
        "tags": ["flip"], "maxBidUsd": 50, "venue": "Dynadot",
    });
    let expected = json!({
        "added": 1, "existing": 2, "refused": 1,
        "results": [
            {"domain": "redeem.com", "outcome": "added"},
            {"domain": "pending.com", "outcome": "existing"},
            {"domain": "www.a.com", "outcome": "refused", "error": "the name is a host below a registrable name"},
            {"domain": "redeem.com", "outcome": "existing"},
        ],
    });
    assert_eq!(client.send("POST", &batch, &sent).answer(), (200, expected));
    let body = client.get(&format!("{PATH}?tag=flip&venue=Dynadot&sort=name")).json();
    assert_eq!(column(&body["watchlist"], "domain"), ["pending.com", "redeem.com"]);
    // A thousand names with tags take four records.
    let names: Vec<_> = (0..1_000).map(|at| format!("batch-{at}.com")).collect();
    let body = client.send("POST", &batch, &json!({"domainNames": names, "tags": ["many"]})).json();
    assert_eq!(
        (&body["added"], &body["results"][999]["outcome"]),
        (&json!(1_000), &json!("added"))
    );
    assert_eq!(client.get(&format!("{PATH}?tag=many")).json()["total"], 1_000);
    for (body, refusal) in [
        (json!({}), "domainNames: is required"),
        (json!({"domainNames": []}), "domainNames: must hold 1 to 1000 names"),
        (json!({"domainNames": ["a.com"], "venue": ""}), "venue: must have 1 to 60 characters"),
    ] {
        assert_eq!(client.send("POST", &batch, &body).answer(), (400, error(refusal)), "{body}");
    }
}

#[test]
fn names_are_hidden_and_shown_again() {
    let site = site();
    let (server, mut client) = served(&site);
    let path = "/api/v1/hidden";
    let hide = |client: &mut Client, names: Value| {
        client.send("POST", path, &json!({"domainNames": names})).answer()
    };
    assert_eq!(
        hide(&mut client, json!(["B.com", "a.com", "b.com"])),
        (200, json!({"added": 2, "total": 2}))
    );
    assert_eq!(
        hide(&mut client, json!(["b.com", "c.com"])),
        (200, json!({"added": 1, "total": 3}))
    );
    let (status, body) = hide(&mut client, json!(["d.com", "www.a.com"]));
    assert_eq!(
        (status, body),
        (400, error("domainNames[1]: the name is a host below a registrable name"))
    );
    server.kill();
    let server = serve_with(&site, "", TODAY);
    let mut client = server.client_with(&site.new_key("owner@example.com"));
    let page =
        json!({"count": 2, "total": 3, "limit": 2, "offset": 1, "hidden": ["b.com", "c.com"]});
    assert_eq!(client.get(&format!("{path}?limit=2&offset=1")).answer(), (200, page));
    let mut show =
        |name: &str| client.request("DELETE", &format!("{path}?domain={name}"), &[]).answer();
    assert_eq!(show("A.com"), (200, json!({"domain": "a.com", "removed": true})));
    assert_eq!(show("a.com"), (404, error("not found")));
    assert_eq!(client.get(path).json()["total"], 2);
}
