//! `/api/v1/watchlist/alerts`, and `alerts` of watched names.

use serde_json::{Value, json};

use super::{error, serve_with, served, site};
use crate::common::{Client, Site, TODAY};

const PATH: &str = "/api/v1/watchlist/alerts";
const WATCHLIST: &str = "/api/v1/watchlist";
/// Mail settings of a server that sends no mail in these tests: no mail server listens on this port.
const MAIL: &str =
    "[smtp]\nhost = \"127.0.0.1\"\nport = 9\ntls = \"none\"\nfrom = \"drops@example.com\"\n";

fn with_mail(site: &Site) -> (crate::common::Server, Client) {
    let key = site.account("owner@example.com", "api");
    let server = serve_with(site, MAIL, TODAY);
    let client = server.client_with(&key);
    (server, client)
}

/// Removes the time of the next message from the settings.
fn settings((status, mut body): (u16, Value)) -> (u16, Value) {
    if let Some(alerts) = body.get_mut("alerts").and_then(Value::as_object_mut) {
        assert!(alerts.remove("nextAt").is_some_and(|at| at.is_string()), "{alerts:?}");
    }
    (status, body)
}

#[test]
fn settings_are_kept_as_they_are_sent() {
    let site = site();
    let (_server, mut client) = with_mail(&site);
    let usual = json!({"alerts": {
        "saved": false,
        "kinds": ["drops-tomorrow", "available", "renewed", "renewal-due"],
        "channels": [{"type": "email"}],
        "digestHour": null,
        "quietHours": null,
        "timeZone": "UTC",
    }});
    assert_eq!(settings(client.get(PATH).answer()), (200, usual));
    let slack = "https://hooks.slack.com/services/T0/B0/abcdefghijklwxyz";
    let body = json!({
        "kinds": ["rescored", "left-zone", "rescored"],
        "channels": [
            {"type": "email"},
            {"type": "webhook", "url": "https://hooks.example.com/x"},
            {"type": "slack", "url": slack},
        ],
        "digestHour": 0,
        "quietHours": {"from": 22, "to": 7},
        "timeZone": "America/Argentina/Buenos_Aires",
    });
    let (status, mut saved) = settings(client.send("PUT", PATH, &body).answer());
    let secrets = saved["secrets"].take();
    assert_eq!((status, &secrets[0]["url"]), (200, &json!("https://hooks.example.com/x")));
    assert!(secrets[0]["secret"].as_str().is_some_and(|it| it.starts_with("whsec_")), "{secrets}");
    let mut channels = body["channels"].clone();
    channels[2]["url"] = json!("https://hooks.slack.com/…wxyz");
    let mut expected = json!({
        "saved": true,
        "kinds": ["left-zone", "rescored"],
        "channels": channels,
        "digestHour": 0,
        "quietHours": {"from": 22, "to": 7},
        "timeZone": "America/Argentina/Buenos_Aires",
    });
    assert_eq!(saved["alerts"], expected);
    // A response can be sent back as a request, in which the shortened address stands for the
    // stored one.
    let mut again = expected.clone();
    again.as_object_mut().expect("an object").remove("saved");
    let (status, saved) = settings(client.send("PUT", PATH, &again).answer());
    assert_eq!((status, &saved), (200, &json!({ "alerts": expected })), "no secret is new");
    // PUT replaces all settings.
    let (status, saved) =
        settings(client.send("PUT", PATH, &json!({"kinds": [], "channels": []})).answer());
    expected = json!({
        "saved": true, "kinds": [], "channels": [], "digestHour": null, "quietHours": null,
        "timeZone": "UTC",
    });
    assert_eq!((status, &saved["alerts"]), (200, &expected));
    assert_eq!(settings(client.get(PATH).answer()), (200, json!({ "alerts": expected })));
    // None of this adds a rule.
    assert_eq!(client.get("/api/v1/alerts").json()["count"], 0);
    assert_eq!(client.get("/api/v1/alerts/9007199254740991").status, 404);
}

#[test]
fn invalid_settings_name_the_member() {
    let site = site();
    let (_server, mut client) = served(&site);
    let none = json!({"kinds": [], "channels": []});
    for (member, value, refusal) in [
        ("kinds", json!(null), "kinds: is required"),
        ("channels", json!(null), "channels: is required"),
        ("kinds", json!(["left-zone", "dropped"]), "kinds[1]: must be one of left-zone,"),
        ("channels", json!([{"type": "fax"}]), "channels[0].type: must be one of email,"),
        ("channels", json!([{"type": "webhook"}]), "channels[0].url: is required"),
        ("digestHour", json!(24), "digestHour: must be an hour: a whole"),
        ("digestHour", json!(-1), "digestHour: must be an hour: a whole number from 0 to 23"),
        ("digestHour", json!("22:00"), "digestHour: must be an hour: a whole number from 0 to 23"),
        ("quietHours", json!({"from": 22}), "quietHours.to: is required"),
        ("quietHours", json!({"from": 7, "to": 7}), "quietHours.to: must be another hour"),
        ("quietHours", json!({"from": 7, "to": 99}), "quietHours.to: must be an hour"),
        (
            "timeZone",
            json!("Mars/Phobos"),
            "timeZone: must be a name of the IANA time zone database",
        ),
        ("timeZone", json!(""), "timeZone: must be a name of the IANA time zone database"),
    ] {
        let mut body = none.clone();
        body[member] = value;
        let (status, answer) = client.send("PUT", PATH, &body).answer();
        let said = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && said.starts_with(refusal), "{body}: {status} {said}");
    }
    let repeated = json!({"type": "webhook", "url": "https://hooks.example.com/x"});
    let body = json!({"kinds": [], "channels": [repeated, repeated]});
    let refusal = error("channels[1]: must not repeat another channel");
    assert_eq!(client.send("PUT", PATH, &body).answer().1["error"], refusal["error"]);
    for bad in [json!([]), json!({"kinds": [], "channels": [], "zone": "UTC"})] {
        assert_eq!(client.send("PUT", PATH, &bad).status, 400, "{bad}");
    }
    assert_eq!(client.get(PATH).json()["alerts"]["saved"], false, "nothing was saved");
}

#[test]
fn each_entry_has_its_own_choice() {
    let site = site();
    let (_server, mut client) = served(&site);
    let watched = client.send("POST", WATCHLIST, &json!({"domainName": "pending.com"}));
    assert_eq!(watched.json()["alerts"], json!(null));
    let path = format!("{WATCHLIST}/pending.com");
    let slack = "https://hooks.slack.com/services/T0/B0/abcdefghijklwxyz";
    let both = json!([{"type": "email"}, {"type": "slack", "url": slack}]);
    let settings = json!({"kinds": [], "channels": both});
    assert_eq!(client.send("PUT", PATH, &settings).status, 200);
    let mut patch = |alerts: Value| {
        let (status, body) = client.send("PATCH", &path, &json!({ "alerts": alerts })).answer();
        (status, if status == 200 { body["alerts"].clone() } else { body["error"].clone() })
    };
    let own = json!({"kinds": ["available"], "channels": ["slack", "email"]});
    assert_eq!(
        patch(
            json!({"kinds": ["available", "available"], "channels": ["slack", "email", "slack"]})
        ),
        (200, own.clone())
    );
    for (alerts, refusal) in [
        (json!({}), "alerts.kinds: is required"),
        (json!({"kinds": vec!["renewed"; 11]}), "alerts.kinds: must have at most 10 items"),
        (json!({"kinds": ["gone"]}), "alerts.kinds[0]: must be one of left-zone,"),
        (json!({"kinds": [], "channels": ["fax"]}), "alerts.channels[0]: must be one of email,"),
        (
            json!({"kinds": [], "channels": ["email", "webhook"]}),
            "alerts.channels[1]: none of your channels is of this type",
        ),
    ] {
        let (status, said) = patch(alerts.clone());
        let said = said.as_str().unwrap_or_default();
        assert!(status == 400 && said.starts_with(refusal), "{alerts}: {status} {said}");
    }
    for bad in [json!("mute"), json!([]), json!({"kinds": [], "muted": true})] {
        assert_eq!(patch(bad.clone()).0, 400, "{bad}");
    }
    let batch = json!({"domainNames": ["a.com"], "alerts": {"kinds": [], "channels": ["ntfy"]}});
    assert_eq!(client.send("POST", &format!("{WATCHLIST}/batch"), &batch).status, 400);
    // Changes of other members keep the settings, and the list shows them. Removing a channel also
    // keeps the settings.
    let settings = json!({"kinds": [], "channels": [{"type": "email"}]});
    assert_eq!(client.send("PUT", PATH, &settings).status, 200);
    assert_eq!(client.send("PATCH", &path, &json!({"note": "n"})).json()["alerts"], own);
    assert_eq!(client.get(WATCHLIST).json()["watchlist"][0]["alerts"], own);
    let batch = json!({"domainNames": ["pending.com", "redeem.com"], "alerts": {"kinds": []}});
    assert_eq!(client.send("POST", &format!("{WATCHLIST}/batch"), &batch).status, 200);
    let mute = json!({"kinds": [], "channels": []});
    let list = client.get(WATCHLIST).json();
    assert_eq!(list["watchlist"].as_array().map(Vec::len), Some(2));
    for entry in list["watchlist"].as_array().expect("a list") {
        assert_eq!(entry["alerts"], mute, "{entry}");
    }
    assert_eq!(client.send("PATCH", &path, &json!({"alerts": null})).json()["alerts"], json!(null));
}

#[test]
fn settings_and_choices_need_their_scopes() {
    let site = site();
    let (server, mut owner) = served(&site);
    let watched = owner.send("POST", WATCHLIST, &json!({"domainName": "pending.com"}));
    assert_eq!(watched.status, 201);
    let key = |scope: &str| {
        let key = ["account", "key", "owner@example.com", "--name", scope, "--scopes", scope];
        server.client_with(site.ok(&key).trim())
    };
    let (mut alerts, mut watchlist) = (key("alerts"), key("watchlist"));
    let body = json!({"kinds": [], "channels": []});
    let choice = json!({"alerts": {"kinds": []}});
    let entry = format!("{WATCHLIST}/pending.com");
    assert_eq!(alerts.send("PUT", PATH, &body).status, 200);
    assert_eq!(watchlist.send("PUT", PATH, &body).status, 403);
    assert_eq!(watchlist.get(PATH).status, 403);
    assert_eq!(alerts.send("PATCH", &entry, &choice).status, 403);
    assert_eq!(watchlist.send("PATCH", &entry, &choice).status, 200);
}

#[test]
fn a_test_message_needs_a_channel() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let server = serve_with(&site, "# without [smtp]\n", TODAY);
    let mut client = server.client_with(&key);
    let refused = client.request("POST", &format!("{PATH}/test"), &[]).answer();
    let what = "no channel is set: save the settings with a channel first";
    assert_eq!((refused.0, &refused.1["error"]), (409, &json!(what)));
    assert_eq!(client.get(&format!("{PATH}/deliveries")).json()["count"], 0);
}

#[test]
fn test_messages_are_listed_and_count() {
    let site = site();
    let (server, mut client) = with_mail(&site);
    let post = |client: &mut Client, path: &str| client.request("POST", path, &[]).answer();
    let (status, body) = post(&mut client, &format!("{PATH}/test"));
    assert_eq!(status, 202, "{body}");
    let queued = &body["deliveries"][0];
    assert_eq!((&queued["kind"], &queued["names"]), (&json!("test"), &json!(1)));
    assert_eq!(queued["changes"][0]["domain"], "example.com");
    let id = queued["id"].as_str().expect("an id").to_owned();
    let list = client.get(&format!("{PATH}/deliveries")).json();
    assert_eq!((&list["count"], &list["deliveries"][0]["id"]), (&json!(1), &json!(id)));
    let (status, body) = post(&mut client, &format!("{PATH}/deliveries/{id}/retry"));
    assert_eq!(status, 409, "{body}");
    assert_eq!(post(&mut client, &format!("{PATH}/deliveries/{}/retry", "0".repeat(32))).0, 404);
    // Other accounts have none of these settings.
    let mut other = server.client_with(&site.account("other@example.com", "api"));
    assert_eq!(other.get(&format!("{PATH}/deliveries")).json()["count"], 0);
    assert_eq!(post(&mut other, &format!("{PATH}/deliveries/{id}/retry")).0, 404);
    for _ in 1..30 {
        assert_eq!(post(&mut client, &format!("{PATH}/test")).0, 202);
    }
    assert_eq!(post(&mut client, &format!("{PATH}/test")).0, 429);
    let none = json!({"kinds": [], "channels": []});
    assert_eq!(client.send("PUT", PATH, &none).status, 200);
    assert_eq!(post(&mut client, &format!("{PATH}/test")).0, 409);
    let newest = client.get(&format!("{PATH}/deliveries")).json()["deliveries"][0]["id"].clone();
    let newest = newest.as_str().expect("an id");
    let (status, body) = post(&mut client, &format!("{PATH}/deliveries/{newest}/retry"));
    let said = body["error"].as_str().unwrap_or_default();
    assert!(status == 409 && said.ends_with("the watchlist's"), "{status} {said}");
}
