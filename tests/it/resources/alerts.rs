//! `/api/v1/alerts`: rules, their channels and errors.

use serde_json::{Value, json};

use super::{
    TODAY, add_alert, added_id, assert_plan_limit, column, error, hide_times, serve_with, served,
    site, with,
};
use crate::common::Client;

const PATH: &str = "/api/v1/alerts";

/// Asserts that this is a webhook's secret: `whsec_` and 32 bytes in base64.
#[track_caller]
fn assert_secret(secret: &Value) {
    let base64 = secret.as_str().and_then(|text| text.strip_prefix("whsec_")).unwrap_or_default();
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let (digits, pad) = base64.split_at(base64.len().min(43));
    assert!(digits.len() == 43 && digits.bytes().all(alphabet) && pad == "=", "{secret}");
}

/// Chat services as a client sends them, and as responses show them.
#[test]
fn chat_services_are_shown_without_their_secrets() {
    let site = site();
    let (_server, mut client) = served(&site);
    let sent = json!([
        {"type": "slack", "url": "https://hooks.slack.com/services/T00/B00/slackslackwxyz"},
        {"type": "ntfy", "url": "https://ntfy.sh/topictopictopic", "token": "tk_tokentoken1234"},
        {"type": "ntfy", "url": "https://ntfy.sh/short"},
        {
            "type": "pushover", "token": "azGDORePK8gMaC0QOYAMyEEuzJnyUi",
            "user": "uQiRzpo4DXghDmr9QzzfQu27cmVRsG",
        },
        {"type": "gotify", "url": "https://gotify.dropdex-tests.com", "token": "Atokentoken5678"},
    ]);
    let shown = json!([
        {"type": "slack", "url": "https://hooks.slack.com/…wxyz"},
        {"type": "ntfy", "url": "https://ntfy.sh/…opic", "token": "…1234"},
        {"type": "ntfy", "url": "https://ntfy.sh/…"},
        {"type": "pushover", "token": "…nyUi", "user": "…VRsG"},
        {"type": "gotify", "url": "https://gotify.dropdex-tests.com/…", "token": "…5678"},
    ]);
    let added = client.send("POST", PATH, &with(&good(), "channels", sent.clone()));
    let id = added_id(&added, PATH);
    assert_eq!(added.json()["alert"]["channels"], shown);
    let one = format!("{PATH}/{id}");
    // A channel that is sent back as shown does not change; other channels may change in the same
    // request.
    let mut fewer = shown.clone();
    fewer[1]["token"] = json!("tk_newnewnewnew9999");
    fewer.as_array_mut().expect("a list").remove(2);
    let (status, body) = client.send("PATCH", &one, &json!({"channels": fewer})).answer();
    fewer[1]["token"] = json!("…9999");
    assert_eq!((status, &body["alert"]["channels"]), (200, &fewer));
    let refusal = "is shortened, and no channel of this rule has it; send all of it";
    for (channel, member) in [
        (json!({"type": "ntfy", "url": "https://ntfy.sh/…"}), "url"),
        (json!({"type": "discord", "url": "https://hooks.slack.com/…wxyz"}), "url"),
        // A token is not sent to another host.
        (
            json!({"type": "gotify", "url": "https://evil.dropdex-tests.com/", "token": "…5678"}),
            "token",
        ),
    ] {
        let patched = client.send("PATCH", &one, &json!({"channels": [channel]}));
        let expected = error(&format!("channels[0].{member}: {refusal}"));
        assert_eq!(patched.answer(), (400, expected));
    }
    let posted = client.send("POST", PATH, &with(&good(), "channels", json!([shown[0]])));
    assert_eq!(posted.answer(), (400, error(&format!("channels[0].url: {refusal}"))));
    // A channel that is sent back twice counts once.
    let twice = json!({"channels": [shown[0], shown[0]]});
    let patched = client.send("PATCH", &one, &twice);
    assert_eq!(patched.answer(), (400, error(&format!("channels[1].url: {refusal}"))));
}

fn good() -> Value {
    json!({"name": "short", "filter": {"minDqs": 60}, "channels": [{"type": "email"}]})
}

#[test]
fn rules_can_be_created_read_changed_and_deleted() {
    let site = site();
    let (_server, mut client) = served(&site);
    let sent = json!({
        "name": "short and good",
        "filter": {
            "tlds": [".COM", "co.uk", "com", "рф"],
            "minDqs": 60,
            "maxLength": 8,
            "contains": "SHOP",
            "stages": ["catchable", "pending-delete", "catchable"],
        },
        "channels": [
            {"type": "email"},
            {"type": "webhook", "url": "HTTPS://Hooks.Example.com:443/a/../b?c"},
            {"type": "telegram", "chatId": -1001234567890_i64},
            {"type": "telegram", "chatId": "@my_channel"},
            {"type": "webhook", "url": "https://8.8.8.8:8443/"},
        ],
    });
    let response = client.send("POST", PATH, &sent);
    let id = added_id(&response, PATH);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let mut body = response.json();
    let (secret, secrets) = (body["secret"].take(), body["secrets"].take());
    assert_secret(&secret);
    assert_eq!(column(&secrets, "url"), ["https://hooks.example.com/b?c", "https://8.8.8.8:8443/"]);
    assert_eq!(secrets[0]["secret"], secret);
    assert_secret(&secrets[1]["secret"]);
    assert_ne!(secrets[1]["secret"], secret);
    hide_times(&mut body["alert"], &["createdAt"]);
    let alert = json!({
        "id": id,
        "name": "short and good",
        "filter": {
            "tlds": ["com", "co.uk", "xn--p1ai"],
            "minDqs": 60,
            "maxLength": 8,
            "contains": "shop",
            "stages": ["catchable", "pending-delete"],
        },
        "channels": [
            {"type": "email"},
            {"type": "webhook", "url": "https://hooks.example.com/b?c"},
            {"type": "telegram", "chatId": "-1001234567890"},
            {"type": "telegram", "chatId": "@my_channel"},
            {"type": "webhook", "url": "https://8.8.8.8:8443/"},
        ],
        "active": true,
        "createdAt": "now",
    });
    assert_eq!(body, json!({"id": id, "alert": alert, "secret": null, "secrets": null}));

    // Secrets are shown only in this response.
    let one = format!("{PATH}/{id}");
    let mut read = client.get(&one).json();
    hide_times(&mut read["alert"], &["createdAt"]);
    assert_eq!(read, json!({"alert": alert}));
    let mut list = client.get(PATH).json();
    hide_times(&mut list["alerts"][0], &["createdAt"]);
    assert_eq!(list, json!({"count": 1, "total": 1, "limit": 100, "offset": 0, "alerts": [alert]}));

    let mut change = |patch: Value| {
        let (status, mut body) = client.send("PATCH", &one, &patch).answer();
        assert_eq!(status, 200, "{patch}: {body}");
        hide_times(&mut body["alert"], &["createdAt"]);
        body
    };
    let mut alert = with(&alert, "active", json!(false));
    assert_eq!(change(json!({"active": false})), json!({"alert": alert}));
    alert["name"] = json!("renamed");
    // A PATCH replaces the filter completely.
    alert["filter"] = json!({"minDqs": 0});
    let patch = json!({"name": "renamed", "filter": {"minDqs": 0}});
    assert_eq!(change(patch), json!({"alert": alert}));
    assert_eq!(change(json!({})), json!({"alert": alert}));
    // A kept webhook keeps its secret; a new webhook's secret is shown once.
    let channels = json!([
        {"type": "webhook", "url": "https://8.8.8.8:8443"},
        {"type": "webhook", "url": "https://new.example.com/"},
    ]);
    let mut body = change(json!({"channels": channels}));
    assert_eq!(column(&body["secrets"], "url"), ["https://new.example.com/"]);
    assert_secret(&body["secret"]);
    assert_eq!(body["secret"], body["secrets"][0]["secret"]);
    alert["channels"] = channels;
    alert["channels"][0]["url"] = json!("https://8.8.8.8:8443/");
    assert_eq!(body["alert"].take(), alert);

    let replaced = client.request("POST", &format!("{one}/secrets"), &[]);
    assert_eq!(
        replaced.header("ratelimit-policy").map(|it| it.contains("\"writes\";q=")),
        Some(true)
    );
    let secrets = replaced.json()["secrets"].take();
    assert_eq!(column(&secrets, "url"), ["https://8.8.8.8:8443/", "https://new.example.com/"]);
    assert_ne!(secrets[1]["secret"], body["secret"]);
    // What comes next keeps the new secrets.
    assert_eq!(client.send("PATCH", &one, &json!({"active": true})).json()["secrets"], Value::Null);

    let (status, body) = client.request("DELETE", &one, &[]).answer();
    assert_eq!((status, body), (200, json!({"id": id, "deleted": true})));
    let gone = client.request("POST", &format!("{one}/secrets"), &[]).answer();
    assert_eq!(gone, (404, error("not found")));
    for method in ["GET", "DELETE"] {
        assert_eq!(client.request(method, &one, &[]).answer(), (404, error("not found")));
    }
    assert_eq!(client.send("PATCH", &one, &json!({})).answer(), (404, error("not found")));
}

#[test]
fn a_rule_without_a_webhook_has_no_secret() {
    let site = site();
    let (_server, mut client) = served(&site);
    let sent = json!({"name": "all", "filter": {"tlds": [], "stages": []},
        "channels": [{"type": "email"}]});
    let response = client.send("POST", PATH, &sent);
    let id = added_id(&response, PATH);
    let mut body = response.json();
    hide_times(&mut body["alert"], &["createdAt"]);
    let alert = json!({"id": id, "name": "all", "filter": {}, "channels": [{"type": "email"}],
        "active": true, "createdAt": "now"});
    assert_eq!(body, json!({"id": id, "alert": alert}));
}

#[test]
fn lists_are_newest_first_and_paged() {
    let site = site();
    let (_server, mut client) = served(&site);
    let names = ["a", "b", "c"];
    for name in names {
        add_alert(&mut client, name);
    }
    let all = client.get(PATH).json();
    let keys: Vec<_> = all["alerts"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|row| (row["createdAt"].as_str(), row["id"].as_u64()))
        .collect();
    assert!(keys.len() == 3 && keys.is_sorted_by(|a, b| a > b), "{keys:?}");
    let page = client.get(&format!("{PATH}?limit=1&offset=1")).json();
    assert_eq!(page["alerts"], json!([all["alerts"][1]]));
    assert_eq!((&page["count"], &page["limit"]), (&json!(1), &json!(1)));
    assert_eq!(page["offset"], 1);
    assert_eq!(client.get(&format!("{PATH}?offset=3")).json()["count"], 0);
    for (query, refusal) in [
        ("limit=0", "limit: must be an integer from 1 to 1000"),
        ("limit=1001", "limit: must be an integer from 1 to 1000"),
        ("offset=-1", "offset: must be an integer from 0 to 10000"),
    ] {
        let answer = client.get(&format!("{PATH}?{query}")).answer();
        assert_eq!(answer, (400, error(refusal)), "{query}");
    }
}

#[test]
fn plans_limit_active_rules() {
    let site = site();
    let key = site.account("pro@example.com", "pro");
    let server = serve_with(&site, "[plans.pro]\nactive_rules = 2\n", TODAY);
    let mut client = server.client_with(&key);
    let first = add_alert(&mut client, "first");
    add_alert(&mut client, "second");
    assert_plan_limit(&client.send("POST", PATH, &good()), "pro", 2);
    // A malformed rule returns 400 first.
    let answer = client.send("POST", PATH, &with(&good(), "name", json!(""))).answer();
    assert_eq!(answer, (400, error("name: must have 1 to 100 characters")));
    let first = format!("{PATH}/{first}");
    assert_eq!(client.send("PATCH", &first, &json!({"active": false})).status, 200);
    let third = add_alert(&mut client, "third");
    assert_plan_limit(&client.send("PATCH", &first, &json!({"active": true})), "pro", 2);
    // Changes that do not activate a rule need no quota.
    assert_eq!(client.send("PATCH", &first, &json!({"name": "still here"})).status, 200);
    assert_eq!(client.request("DELETE", &format!("{PATH}/{third}"), &[]).status, 200);
    assert_eq!(client.send("PATCH", &first, &json!({"active": true})).status, 200);
}

#[test]
fn errors_name_their_member() {
    let site = site();
    let (_server, mut client) = served(&site);
    let id = add_alert(&mut client, "there");
    let tlds: Vec<_> = (0..101).map(|at| format!("t{at}")).collect();
    let six = json!(vec![json!({"type": "email"}); 6]);
    let long = "x".repeat(101);
    for (member, value, refusal) in [
        ("name", json!(""), "name: must have 1 to 100 characters"),
        ("name", json!("  "), "name: must have 1 to 100 characters"),
        ("name", json!(long), "name: must have 1 to 100 characters"),
        ("name", json!("a\nb"), "name: must not hold control characters"),
        ("name", json!(5), "name: invalid type: integer `5`, expected a string"),
        ("filter", json!([]), "filter: invalid type: sequence, expected an object"),
        (
            "filter",
            json!({"minLenght": 1}),
            "filter.minLenght: unknown field `minLenght`, expected one of `tlds`, `notTlds`, `stages`, \
             `minDqs`, `maxDqs`, `minLength`, `maxLength`, `contains`, `starts`, `ends`, `notContains…",
        ),
        ("filter", json!({"minDqs": 101}), "filter.minDqs: must be an integer from 0 to 100"),
        ("filter", json!({"minDqs": -1}), "filter.minDqs: must be an integer from 0 to 100"),
        (
            "filter",
            json!({"minDqs": "60"}),
            "filter.minDqs: invalid type: string \"60\", expected an integer",
        ),
        ("filter", json!({"maxLength": 0}), "filter.maxLength: must be an integer from 1 to 63"),
        ("filter", json!({"maxLength": 64}), "filter.maxLength: must be an integer from 1 to 63"),
        ("filter", json!({"tlds": tlds}), "filter.tlds: must have at most 100 items"),
        (
            "filter",
            json!({"tlds": ["com", ""]}),
            "filter.tlds[1]: must be a public suffix, such as com or co.uk",
        ),
        (
            "filter",
            json!({"tlds": ["c om"]}),
            "filter.tlds[0]: must be a public suffix, such as com or co.uk",
        ),
        (
            "filter",
            json!({"tlds": "com"}),
            "filter.tlds: invalid type: string \"com\", expected a sequence",
        ),
        ("filter", json!({"contains": ""}), "filter.contains: must have 1 to 63 characters"),
        (
            "filter",
            json!({"stages": ["free"]}),
            "filter.stages[0]: must be one of redemption, pending-delete, catchable, released",
        ),
        ("channels", json!([]), "channels: must be 1 to 5 channels"),
        ("channels", six, "channels: must be 1 to 5 channels"),
        ("channels", json!([{}]), "channels[0].type: is required"),
        (
            "channels",
            json!([{"type": "sms"}]),
            "channels[0].type: must be one of email, webhook, telegram, slack, discord, teams, mattermost, \
             rocketchat, googlechat, ntfy, pushover, gotify",
        ),
        (
            "channels",
            json!([{"type": "email"}, {"type": "email"}]),
            "channels[1]: must not repeat another channel",
        ),
        (
            "channels",
            json!([{"type": "email", "url": "https://a.com"}]),
            "channels[0].url: belongs to a webhook or a chat service",
        ),
        ("channels", json!([{"type": "webhook"}]), "channels[0].url: is required"),
        (
            "channels",
            json!([{"type": "webhook", "url": "https://a.com", "chatId": 1}]),
            "channels[0].chatId: belongs to telegram",
        ),
        ("channels", json!([{"type": "telegram"}]), "channels[0].chatId: is required"),
        (
            "channels",
            json!([{"type": "telegram", "chatId": 1.5}]),
            "channels[0].chatId: invalid type: expected a string or an integer",
        ),
        (
            "channels",
            json!([{"type": "telegram", "chatId": "my chat"}]),
            "channels[0].chatId: must be a chat's number, or @ and the name of a public one",
        ),
        (
            "channels",
            json!([{"type": "email", "secret": "x"}]),
            "channels[0].secret: unknown field `secret`, expected one of `type`, `url`, `chatId`, `token`, \
             `user`",
        ),
    ] {
        let posted = client.send("POST", PATH, &with(&good(), member, value.clone()));
        assert_eq!(posted.answer(), (400, error(refusal)), "POST {value}");
        let patched = client.send("PATCH", &format!("{PATH}/{id}"), &json!({member: value}));
        assert_eq!(patched.answer(), (400, error(refusal)), "PATCH");
    }
    for member in ["name", "filter", "channels"] {
        let refusal = error(&format!("{member}: is required"));
        let mut missing = good();
        missing.as_object_mut().expect("an object").remove(member);
        assert_eq!(client.send("POST", PATH, &missing).answer(), (400, refusal.clone()));
        let null = with(&good(), member, Value::Null);
        assert_eq!(client.send("POST", PATH, &null).answer(), (400, refusal));
    }
    for member in ["name", "filter", "channels", "active"] {
        let refusal = error(&format!("{member}: must not be null"));
        let patch = json!({member: null});
        let answer = client.send("PATCH", &format!("{PATH}/{id}"), &patch).answer();
        assert_eq!(answer, (400, refusal));
    }
    for member in ["id", "createdAt", "secret", "account"] {
        let (status, body) = client.send("POST", PATH, &with(&good(), member, json!(1))).answer();
        assert_eq!(status, 400, "{member}: {body}");
    }
    assert_eq!(client.get(PATH).json()["count"], 1, "nothing of that was done");
}

#[test]
fn webhooks_to_internal_addresses_are_refused() {
    let site = site();
    let (_server, mut client) = served(&site);
    let try_url = |client: &mut Client, url: &str| {
        let channels = json!([{"type": "email"}, {"type": "webhook", "url": url}]);
        client.send("POST", PATH, &with(&good(), "channels", channels)).answer()
    };
    // `vocab::url` tests the whole table; these cases show that the endpoint uses it.
    for (url, what) in [
        ("http://hooks.example.com/", "must start with https://"),
        ("https://127.0.0.1/", "127.0.0.1 is not a public address"),
        ("https://2130706433/", "127.0.0.1 is not a public address"),
        ("https://0x7f.1/", "127.0.0.1 is not a public address"),
        ("https://１２７.0.0.1/", "127.0.0.1 is not a public address"),
        ("https://169.254.169.254/latest/", "169.254.169.254 is not a public address"),
        ("https://[::1]/", "::1 is not a public address"),
        ("https://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1 is not a public address"),
        ("https://localhost/", "`localhost` is not reachable from the Internet"),
        (
            "https://metadata.google.internal/",
            "`metadata.google.internal` is not reachable from the Internet",
        ),
        (
            "https://intranet/",
            "`intranet` is not a public host name: letters, digits and hyphens, two labels or more",
        ),
        ("https://me:secret@hooks.example.com/", "must not hold a user name or password"),
        ("https://hooks.example.com:22/", "the port must be 443 or 8443, not 22"),
        ("https://hooks.example.com/#x", "must not have a fragment (#...)"),
        (
            "https://hooks.example.com\\@10.0.0.1/",
            "must not hold white space, control characters or backslashes",
        ),
    ] {
        let is_outside = ["public address", "the Internet", "must be 443 or"];
        let remedy = match is_outside.iter().any(|words| what.contains(words)) {
            true => "; the operator can list its address and port in `[webhooks] allow`",
            false => "",
        };
        let refusal = error(&format!("channels[1].url: {what}{remedy}"));
        assert_eq!(try_url(&mut client, url), (400, refusal), "{url}");
    }
    // A name that does not resolve now may resolve later; its addresses are checked at each call.
    assert_eq!(try_url(&mut client, "https://hooks.no-such-name.dropdex-tests.com/").0, 201);
}
