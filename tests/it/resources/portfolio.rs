//! `/api/v1/portfolio`: claims, their filters and errors.

use serde_json::{Value, json};

use super::{
    TOMORROW, add_alert, add_claim, added_id, column, error, hide_times, served, site, with,
};

const PATH: &str = "/api/v1/portfolio";

#[test]
fn claims_can_be_created_read_changed_and_deleted() {
    let site = site();
    let (_server, mut client) = served(&site);
    let full = json!({
        "domain": " MÜNCHEN.de. ",
        "status": "sold",
        "registrar": "Gandi SAS",
        "acquiredPriceUsd": 12.50,
        "resalePriceUsd": 1999,
        "soldAt": "2026-03-14T12:00:00.5+02:00",
        "userNotes": "first line\nsecond line",
        "bidUsd": 420.50,
        "venue": "DropCatch",
        "renewsOn": "2027-03-14",
        "renewalUsd": 11,
    });
    let response = client.send("POST", PATH, &full);
    let id = added_id(&response, PATH);
    let mut body = response.json();
    hide_times(&mut body["claim"], &["reportedAt", "updatedAt"]);
    let mut claim = json!({
        "id": id,
        "domain": "xn--mnchen-3ya.de",
        "unicode": "münchen.de",
        "tld": "de",
        "status": "sold",
        "registrar": "Gandi SAS",
        "acquiredPriceUsd": 12.5,
        "resalePriceUsd": 1999,
        "soldAt": "2026-03-14T10:00:00.500Z",
        "reportedAt": "now",
        "updatedAt": "now",
        "userNotes": "first line\nsecond line",
        "bidUsd": 420.5,
        "venue": "DropCatch",
        "renewsOn": "2027-03-14",
        "renewalUsd": 11,
    });
    assert_eq!(body, json!({"id": id, "claim": claim}));

    let one = format!("{PATH}/{id}");
    let mut read = client.get(&one).json();
    hide_times(&mut read["claim"], &["reportedAt", "updatedAt"]);
    assert_eq!(read, json!({"claim": claim}));

    // A status other than `sold` removes the sale; null removes an optional member.
    let patch = json!({
        "status": "caught", "registrar": null, "acquiredPriceUsd": 0.07, "venue": null, "bidUsd": 421,
    });
    let (status, mut changed) = client.send("PATCH", &one, &patch).answer();
    hide_times(&mut changed["claim"], &["reportedAt", "updatedAt"]);
    for (member, value) in [
        ("status", json!("caught")),
        ("registrar", Value::Null),
        ("acquiredPriceUsd", json!(0.07)),
        ("resalePriceUsd", Value::Null),
        ("soldAt", Value::Null),
        ("venue", Value::Null),
        ("bidUsd", json!(421)),
    ] {
        claim[member] = value;
    }
    assert_eq!((status, &changed), (200, &json!({"claim": claim})));

    let (status, mut unchanged) = client.send("PATCH", &one, &json!({})).answer();
    hide_times(&mut unchanged["claim"], &["reportedAt", "updatedAt"]);
    assert_eq!((status, unchanged), (200, changed));

    let (status, body) = client.request("DELETE", &one, &[]).answer();
    assert_eq!((status, body), (200, json!({"id": id, "deleted": true})));
    for method in ["GET", "DELETE"] {
        assert_eq!(client.request(method, &one, &[]).answer(), (404, error("not found")));
    }
    assert_eq!(client.send("PATCH", &one, &json!({})).answer(), (404, error("not found")));
    let empty = json!({"count": 0, "total": 0, "limit": 100, "offset": 0, "claims": []});
    assert_eq!(client.get(PATH).answer(), (200, empty));
    let page = client.get(&format!("{PATH}?limit=7&offset=3")).json();
    assert_eq!((&page["limit"], &page["offset"]), (&json!(7), &json!(3)));
}

#[test]
fn absent_members_are_null_and_notes_are_text() {
    let site = site();
    let (_server, mut client) = served(&site);
    let sent = json!({"domain": "never-seen.com", "status": "attempted"});
    let response = client.send("POST", PATH, &sent);
    let id = added_id(&response, PATH);
    let mut claim = response.json()["claim"].take();
    hide_times(&mut claim, &["reportedAt", "updatedAt"]);
    let expected = json!({
        "id": id,
        "domain": "never-seen.com",
        "unicode": "never-seen.com",
        "tld": "com",
        "status": "attempted",
        "registrar": null,
        "acquiredPriceUsd": null,
        "resalePriceUsd": null,
        "soldAt": null,
        "reportedAt": "now",
        "updatedAt": "now",
        // data/docs/api.md types notes as text, so absent notes are an empty text.
        "userNotes": "",
        "bidUsd": null,
        "venue": null,
        "renewsOn": null,
        "renewalUsd": null,
    });
    assert_eq!(claim, expected);
    for (name, value) in [("userNotes", json!(null)), ("userNotes", json!(""))] {
        let one = format!("{PATH}/{id}");
        let note = client.send("PATCH", &one, &json!({"userNotes": "x"})).json();
        assert_eq!(note["claim"]["userNotes"], "x");
        let gone = client.send("PATCH", &one, &json!({name: value})).json();
        assert_eq!(gone["claim"]["userNotes"], "");
    }
}

#[test]
fn only_a_sold_claim_has_a_sale_time() {
    let site = site();
    let (_server, mut client) = served(&site);
    let sent = json!({"domain": "free-early.com", "status": "sold"});
    let sold = client.send("POST", PATH, &sent).json();
    assert_eq!(sold["claim"]["soldAt"], sold["claim"]["reportedAt"], "now unless given");
    let one = format!("{PATH}/{}", sold["id"]);
    // Setting `sold` again keeps the first sale.
    let again = client.send("PATCH", &one, &json!({"status": "sold"})).json();
    assert_eq!(again["claim"]["soldAt"], sold["claim"]["soldAt"]);
    let moved = json!({"soldAt": "2026-01-02T03:04:05Z", "resalePriceUsd": 5});
    let moved = client.send("PATCH", &one, &moved).json();
    assert_eq!(moved["claim"]["soldAt"], "2026-01-02T03:04:05.000Z");
    let (status, body) = client.send("PATCH", &one, &json!({"soldAt": null})).answer();
    assert_eq!((status, body), (400, error("soldAt: a sold claim has one")));
    // Any status may follow any other.
    let all = ["attempted", "caught", "registered", "lost", "sold"];
    for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (from, to))) {
        for status in [from, to] {
            let answer = client.send("PATCH", &one, &json!({"status": status})).json();
            let claim = &answer["claim"];
            assert_eq!(claim["status"], **status, "{from} to {to}");
            assert_eq!(claim["soldAt"].is_string(), **status == *"sold", "{from} to {to}");
            assert!(**status == *"sold" || claim["resalePriceUsd"].is_null(), "{claim}");
        }
    }
    client.send("PATCH", &one, &json!({"status": "caught"}));
    for (member, value) in [("soldAt", json!("2026-01-02T03:04:05Z")), ("resalePriceUsd", json!(1))]
    {
        let refusal = error(&format!("{member}: only a sold claim has one"));
        let patch = json!({member: value});
        assert_eq!(client.send("PATCH", &one, &patch).answer(), (400, refusal.clone()));
        let unsold = json!({"domain": "free-early.com", "status": "lost", member: value});
        assert_eq!(client.send("POST", PATH, &unsold).answer(), (400, refusal));
    }
}

#[test]
fn lists_are_filtered_sorted_and_paged() {
    let site = site();
    let (server, mut client) = served(&site);
    let mut ids = Vec::new();
    for status in ["attempted", "caught", "lost", "attempted"] {
        let claim = json!({"domain": "pending.com", "status": status});
        ids.push(add_claim(&mut client, &claim));
    }
    let key = site.new_key("owner@example.com");
    server.stop();
    let server = site.serve(TOMORROW);
    let mut client = server.client_with(&key);
    ids.push(add_claim(&mut client, &json!({"domain": "pending.com", "status": "sold"})));

    let all = client.get(PATH).json();
    let rows = all["claims"].as_array().expect("an array");
    let keys: Vec<_> =
        rows.iter().map(|row| (row["reportedAt"].as_str(), row["id"].as_u64())).collect();
    assert!(keys.is_sorted_by(|a, b| a > b), "newest first, then id descending: {keys:?}");
    assert_eq!(all["count"], 5);
    let mut listed: Vec<_> = keys.iter().filter_map(|(_, id)| *id).collect();
    listed.sort_unstable();
    ids.sort_unstable();
    assert_eq!(listed, ids);

    for (query, statuses) in [
        ("status=sold", vec!["sold"]),
        ("status=lost,%20sold,,", vec!["sold", "lost"]),
        ("status=", vec!["sold", "attempted", "lost", "caught", "attempted"]),
        ("limit=2", vec!["sold", "attempted"]),
        ("limit=2&offset=1", vec!["attempted", "lost"]),
        ("offset=4", vec!["attempted"]),
        ("offset=1000000", vec![]),
        ("status=attempted&offset=1", vec!["attempted"]),
        ("from=2026-03-16", vec!["sold"]),
        ("to=2026-03-16", vec!["attempted", "lost", "caught", "attempted"]),
        ("from=2026-03-15&to=2026-03-16&limit=1", vec!["attempted"]),
        ("from=2026-03-17", vec![]),
        ("to=2026-03-15", vec![]),
        ("from=2026-03-16&to=2026-03-15", vec![]),
    ] {
        let body = client.get(&format!("{PATH}?{query}")).json();
        assert_eq!(column(&body["claims"], "status"), statuses, "{query}");
        assert_eq!(body["count"], statuses.len(), "{query}");
    }
    for (query, refusal) in [
        ("status=won", "status: must be one of attempted, caught, registered, lost, sold"),
        ("status=Sold", "status: must be one of attempted, caught, registered, lost, sold"),
        ("limit=0", "limit: must be an integer from 1 to 1000"),
        ("limit=1001", "limit: must be an integer from 1 to 1000"),
        ("offset=1000001", "offset: must be an integer from 0 to 1000000"),
        ("limit=1&limit=1", "limit: is given more than once"),
    ] {
        let answer = client.get(&format!("{PATH}?{query}")).answer();
        assert_eq!(answer, (400, error(refusal)), "{query}");
    }
    for name in ["from", "to"] {
        for value in ["today", "2026-3-1", "2026-02-30", "2026-03-15T00:00:00Z"] {
            let (status, body) = client.get(&format!("{PATH}?{name}={value}")).answer();
            let text = body["error"].as_str().unwrap_or_default();
            assert!(status == 400 && text.starts_with(&format!("{name}: `")), "{value}: {body}");
        }
    }
}

#[test]
fn prices_are_exact() {
    let site = site();
    let (_server, mut client) = served(&site);
    let one = add_claim(&mut client, &json!({"domain": "pending.com", "status": "caught"}));
    let one = format!("{PATH}/{one}");
    let kind = [("Content-Type", "application/json")];
    let mut set = |price: &str| {
        let body = format!("{{\"acquiredPriceUsd\": {price}}}");
        client.send_with("PATCH", &one, &kind, body.as_bytes())
    };
    for (sent, answered) in [
        ("0", "0"),
        ("12", "12"),
        ("12.0", "12"),
        ("12.50", "12.5"),
        ("0.29", "0.29"),
        ("1.1e1", "11"),
        ("999999999.99", "999999999.99"),
        ("1000000000", "1000000000"),
        ("null", "null"),
    ] {
        let response = set(sent);
        let member = format!("\"acquiredPriceUsd\":{answered},");
        assert!(response.text().contains(&member), "{sent}: {}", response.text());
    }
    let range = "acquiredPriceUsd: must be a number from 0 to 1000000000 with at most two decimals";
    for sent in
        ["-1", "-0.01", "0.001", "12.345", "1e-3", "1000000000.01", "1e10", "\"12\"", "true", "[1]"]
    {
        assert_eq!(set(sent).answer(), (400, error(range)), "{sent}");
    }
    for sent in ["NaN", "Infinity", "1.", ".5", "+1", "01"] {
        let (status, body) = set(sent).answer();
        let text = body["error"].as_str().unwrap_or_default();
        assert!(status == 400 && text.starts_with("body: is not valid JSON"), "{sent}: {body}");
    }
}

#[test]
fn errors_name_their_member() {
    let site = site();
    let (_server, mut client) = served(&site);
    let good = json!({"domain": "pending.com", "status": "caught"});
    let id = add_claim(&mut client, &good);
    let statuses = "must be one of attempted, caught, registered, lost, sold";
    let time = "must be a timestamp of the years 1970 to 9999 such as 2026-11-21T12:00:00.000Z";
    for (member, value, what) in [
        ("status", json!("won"), statuses),
        ("status", json!(1), "invalid type: integer `1`, expected a string"),
        ("registrar", json!(["a"]), "invalid type: sequence, expected a string"),
        ("registrar", json!("x".repeat(201)), "must have 1 to 200 characters"),
        ("registrar", json!("a\nb"), "must not hold control characters"),
        ("userNotes", json!("x".repeat(10_001)), "must have 0 to 10000 characters"),
        ("userNotes", json!("a\u{0}b"), "must not hold control characters"),
        ("venue", json!("x".repeat(61)), "must have 1 to 60 characters"),
        ("bidUsd", json!(-1), "must be a number from 0 to 1000000000 with at most two decimals"),
        ("soldAt", json!("yesterday"), time),
        ("soldAt", json!("2026-03-14"), time),
        ("alertRuleId", json!(0), "is not the id of an alert rule"),
        ("alertRuleId", json!(-1), "is not the id of an alert rule"),
        ("alertRuleId", json!(1.5), "invalid type: floating point `1.5`, expected an integer"),
        ("alertRuleId", json!(7), "must be the id of one of your alert rules"),
    ] {
        let refusal = error(&format!("{member}: {what}"));
        let posted = client.send("POST", PATH, &with(&good, member, value.clone()));
        assert_eq!(posted.answer(), (400, refusal.clone()), "POST {member} {value}");
        let patched = client.send("PATCH", &format!("{PATH}/{id}"), &json!({member: value}));
        assert_eq!(patched.answer(), (400, refusal), "PATCH {member} {value}");
    }
    for (body, refusal) in [
        (json!({"status": "caught"}), "domain: is required"),
        (json!({"domain": "pending.com"}), "status: is required"),
        (json!({"domain": null, "status": "caught"}), "domain: is required"),
        (with(&good, "domain", json!("com")), "domain: the name is a public suffix itself"),
        (
            with(&good, "domain", json!("a b.com")),
            "domain: the name holds a NUL, control or white-space character",
        ),
    ] {
        assert_eq!(client.send("POST", PATH, &body).answer(), (400, error(refusal)), "{body}");
    }
    let one = format!("{PATH}/{id}");
    let (status, body) = client.send("PATCH", &one, &json!({"status": null})).answer();
    assert_eq!((status, body), (400, error("status: must not be null")));
    // Members that users cannot set are refused as unknown.
    for member in ["id", "tld", "reportedAt", "updatedAt", "alertRule", "account"] {
        let (status, body) = client.send("POST", PATH, &with(&good, member, json!(1))).answer();
        let text = body["error"].as_str().unwrap_or_default();
        let told = text.starts_with(&format!("{member}: unknown field `{member}`"));
        assert!(status == 400 && told, "{member}: {body}");
    }
    let (status, body) = client.send("PATCH", &one, &json!({"domain": "a.com"})).answer();
    assert_eq!(status, 400, "the name of a claim cannot be changed: {body}");
    assert_eq!(client.get(PATH).json()["count"], 1, "nothing of that was done");
}

#[test]
fn a_claim_keeps_its_alert_rule() {
    let site = site();
    let (server, mut client) = served(&site);
    let rule = add_alert(&mut client, "short names");
    let sent = json!({"domain": "pending.com", "status": "caught", "alertRuleId": rule});
    let id = add_claim(&mut client, &sent);
    let one = format!("{PATH}/{id}");
    let attribution = json!({"id": rule, "name": "short names"});
    assert_eq!(client.get(&one).json()["claim"]["alertRule"], attribution);
    let alert = format!("/api/v1/alerts/{rule}");
    assert_eq!(client.send("PATCH", &alert, &json!({"name": "renamed"})).status, 200);
    assert_eq!(client.request("DELETE", &alert, &[]).status, 200);
    assert_eq!(client.get(&one).json()["claim"]["alertRule"], attribution);
    let body = client.send("PATCH", &one, &json!({"alertRuleId": null})).json();
    assert_eq!(body["claim"].get("alertRule"), None);
    // A rule of another account cannot be referred to.
    let foreign = add_alert(&mut client, "mine");
    let other = site.account("other@example.com", "pro");
    let sent = with(&sent, "alertRuleId", json!(foreign));
    let answer = server.client_with(&other).send("POST", PATH, &sent).answer();
    assert_eq!(answer, (400, error("alertRuleId: must be the id of one of your alert rules")));
}

#[test]
fn amounts_keep_their_currency() {
    let site = site();
    let (_server, mut client) = served(&site);
    let sent = json!({
        "domain": "pending.com", "status": "sold", "bidUsd": 42.5,
        "otherAmounts": {
            "acquiredPrice": {"amount": 1500, "currency": "JPY"},
            "resalePrice": {"amount": 1250.5, "currency": "eur"},
        },
        "commissionPercent": 12.5, "soldVenue": "Sedo",
    });
    let one = format!("{PATH}/{}", add_claim(&mut client, &sent));
    let claim = client.get(&one).json()["claim"].clone();
    let others = json!({
        "acquiredPrice": {"amount": 1500, "currency": "JPY"},
        "resalePrice": {"amount": 1250.5, "currency": "EUR"},
    });
    assert_eq!(claim["otherAmounts"], others);
    assert_eq!((&claim["bidUsd"], &claim["resalePriceUsd"]), (&json!(42.5), &json!(null)));
    assert_eq!((&claim["commissionPercent"], claim.get("commission")), (&json!(12.5), None));
    assert_eq!(claim["soldVenue"], "Sedo");

    let mut change = |body: Value| client.send("PATCH", &one, &body).answer();
    // An amount replaces the one in another currency, and `null` clears it in any.
    let claim = change(
        json!({"acquiredPriceUsd": 10, "otherAmounts": {"bid": {"amount": 5, "currency": "GBP"}}}),
    );
    let others = json!({
        "bid": {"amount": 5, "currency": "GBP"}, "resalePrice": {"amount": 1250.5, "currency": "EUR"},
    });
    assert_eq!(claim.1["claim"]["otherAmounts"], others);
    assert_eq!(claim.1["claim"]["acquiredPriceUsd"], 10);
    assert_eq!(claim.1["claim"]["bidUsd"], json!(null));
    let claim = change(json!({"bidUsd": null, "commission": {"amount": 60, "currency": "USD"}})).1;
    assert_eq!(claim["claim"]["otherAmounts"].get("bid"), None);
    assert_eq!(claim["claim"]["commission"], json!({"amount": 60, "currency": "USD"}));
    assert_eq!(claim["claim"].get("commissionPercent"), None);
    for (body, refusal) in [
        (
            json!({"bidUsd": 1, "otherAmounts": {"bid": {"amount": 1, "currency": "EUR"}}}),
            "otherAmounts.bid: is given in US dollars too",
        ),
        (
            json!({"otherAmounts": {"bid": {"amount": 1.5, "currency": "JPY"}}}),
            "otherAmounts.bid: must be a number from 0 to 10000000000000 with at most 0 decimals",
        ),
        (
            json!({"otherAmounts": {"bid": {"amount": 1, "currency": "EURO"}}}),
            "otherAmounts.bid: has an unknown currency",
        ),
        (
            json!({"commissionPercent": 100.01}),
            "commissionPercent: must be a number from 0 to 100 with at most two decimals",
        ),
        (json!({"soldVenue": ""}), "soldVenue: must have 1 to 60 characters"),
    ] {
        let (status, answer) = change(body.clone());
        let text = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && text.starts_with(refusal), "{body}: {answer}");
    }
    // Another status removes the terms of the sale.
    let claim = change(json!({"status": "caught"})).1;
    for member in ["commission", "commissionPercent", "soldVenue", "otherAmounts"] {
        assert_eq!(claim["claim"].get(member), None, "{member}");
    }
}
