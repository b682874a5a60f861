//! `/alerts`: rules, previews, deliveries.

use std::time::Duration;

use serde_json::{Value, json};

use super::person::{Page, Person, between, form, what};
use super::{HTML, World};
use crate::common::receiver::{Receiver, Reply};
use crate::common::wait;

/// Deadline of every wait; conditions come true long before.
const WAIT_MAX: Duration = Duration::from_secs(120);

#[test]
fn rules_can_be_created_changed_paused_and_deleted() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    ann.get("/alerts").assert_says(200, "Create alert");
    let page = ann.get("/alerts/new?tld=com&min_dqs=70");
    assert!(
        page.text.contains("value=\"com\"") && page.text.contains("value=\"70\""),
        "{}",
        page.text
    );
    let filter = [
        ("tld", ".COM de,рф"),
        ("min_dqs", "10"),
        ("max_len", "12"),
        ("q", "SHOP"),
        ("stage", "catchable"),
        ("stage", "pending-delete"),
        ("email", "on"),
        ("webhook", ""),
    ];
    let id = ann.add_rule("short and good", &filter);
    let path = format!("/alerts/{id}");
    let words = "Names in .com, .de or .рф, with a score of 10 or more, of at most 12 characters, that contain \
                 “shop”, that are just dropped or pending delete.";
    for page in ["/alerts", &path] {
        ann.get(page).assert_says(200, words);
        ann.get(page).assert_says(200, "short and good");
        ann.get(page).assert_says(200, "active");
    }
    let page = ann.get(&path).text;
    for value in ["value=\"com, de, рф\"", "value=\"catchable\" checked", "value=\"shop\""] {
        assert!(page.contains(value), "no {value} in {page}");
    }
    ann.post(&path, &[("name", "all"), ("email", "on")])
        .assert_goes_to(&format!("{path}?notice=saved"));
    ann.get(&format!("{path}?notice=saved")).assert_says(200, "Rule saved. All names.");
    ann.post(&format!("{path}/pause"), &[]).assert_goes_to(&format!("{path}?notice=paused"));
    ann.get("/alerts").assert_says(200, "0 of 1 active rule in your plan");
    ann.post(&format!("{path}/resume"), &[]).assert_goes_to(&format!("{path}?notice=resumed"));
    ann.get(&format!("{path}/delete")).assert_says(200, "Delete this rule?");
    ann.post(&format!("{path}/delete"), &[]).assert_goes_to("/alerts?notice=removed");
    for (method, path) in
        [("GET", path.clone()), ("POST", path.clone()), ("POST", format!("{path}/test"))]
    {
        let page = if method == "GET" { ann.get(&path) } else { ann.post(&path, &[("name", "a")]) };
        page.assert_says(404, "Not found");
    }
}

#[test]
fn plan_limits_apply_to_forms() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    let first = ann.add_rule("first", &[("email", "on")]);
    let page = ann.post("/alerts/new", &[("name", "second"), ("q", "tea"), ("email", "on")]);
    page.assert_says(403, "The free plan allows 1 active alert rules, and all are used.");
    assert!(
        page.text.contains("value=\"second\"") && page.text.contains("value=\"tea\""),
        "values stay"
    );
    assert!(page.text.contains("href=\"/account/plan\""));
    for channel in [("webhook", "https://hooks.example.com/"), ("chat", "12345")] {
        let page = ann.post("/alerts/new", &[("name", "other"), channel]);
        page.assert_says(403, "The free plan sends alerts by email only.");
        let page = ann.post(&format!("/alerts/{first}"), &[("name", "first"), channel]);
        page.assert_says(403, "The free plan sends alerts by email only.");
    }
    ann.post(&format!("/alerts/{first}/pause"), &[])
        .assert_goes_to(&format!("/alerts/{first}?notice=paused"));
    ann.add_rule("second", &[("email", "on")]);
    let page = ann.post(&format!("/alerts/{first}/resume"), &[]);
    page.assert_says(403, "The free plan allows 1 active alert rules, and all are used.");
    page.assert_says(403, "paused");
    let page = ann.get("/alerts/new");
    page.assert_says(200, "Webhooks: not included in your plan.");
    page.assert_lacks("name=\"webhook\"");

    // After a downgrade, rules are kept, but those beyond the limit are suspended.
    let mut bob = world.person("bob@example.com", "core");
    let old = bob.add_rule("old", &[("email", "on")]);
    let page =
        bob.post("/alerts/new", &[("name", "young"), ("webhook", "https://hooks.example.com/")]);
    let young = between(&page.text, "href=\"/alerts/", "\"").to_owned();
    let young = if young.is_empty() {
        between(&page.text, "button\" href=\"/alerts/", "\"").to_owned()
    } else {
        young
    };
    world.site.ok(&["account", "set-plan", "bob@example.com", "free"]);
    bob.get(&format!("/alerts/{old}")).assert_says(200, "old active");
    bob.get(&format!("/alerts/{young}")).assert_says(200, "young over plan limit");
    bob.get("/alerts").assert_says(200, "not included in the free plan");
    // Its name can still be changed, because its channels stay the same.
    let fields = [("name", "renamed"), ("webhook", "https://hooks.example.com/")];
    bob.post(&format!("/alerts/{young}"), &fields)
        .assert_goes_to(&format!("/alerts/{young}?notice=saved"));
}

#[test]
fn forms_and_the_api_return_the_same_errors() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let id = ann.add_rule("there", &[("email", "on")]);
    let (long, many) = ("x".repeat(101), (0..101).map(|at| format!("t{at}")).collect::<Vec<_>>());
    let webhook = |url: &str| json!([{"type": "webhook", "url": url}]);
    let email = json!([{"type": "email"}]);
    let cases: [(&str, &str, String, &str, Value); 15] = [
        ("name", "name", " ".into(), "name", json!("")),
        ("name", "name", long.clone(), "name", json!(long)),
        ("tld", "tld", many.join(" "), "filter", json!({"tlds": many})),
        ("min_dqs", "min_dqs", "101".into(), "filter", json!({"minDqs": 101})),
        ("min_dqs", "min_dqs", "sixty".into(), "filter", json!({"minDqs": 9999})),
        ("max_len", "max_len", "0".into(), "filter", json!({"maxLength": 0})),
        ("q", "q", "x".repeat(64), "filter", json!({"contains": "x".repeat(64)})),
        (
            "webhook",
            "webhook-0",
            "http://hooks.example.com/".into(),
            "channels",
            webhook("http://hooks.example.com/"),
        ),
        (
            "webhook",
            "webhook-0",
            "https://127.0.0.1/".into(),
            "channels",
            webhook("https://127.0.0.1/"),
        ),
        (
            "webhook",
            "webhook-0",
            "https://10.0.0.1:8443/a".into(),
            "channels",
            webhook("https://10.0.0.1:8443/a"),
        ),
        ("webhook", "webhook-0", "https://[::1]/".into(), "channels", webhook("https://[::1]/")),
        (
            "webhook",
            "webhook-0",
            "https://localhost/".into(),
            "channels",
            webhook("https://localhost/"),
        ),
        (
            "webhook",
            "webhook-0",
            "https://hooks.example.com:22/".into(),
            "channels",
            webhook("https://hooks.example.com:22/"),
        ),
        ("webhook", "webhook-0", HTML.into(), "channels", webhook(HTML)),
        (
            "chat",
            "chat-0",
            "my chat".into(),
            "channels",
            json!([{"type": "telegram", "chatId": "my chat"}]),
        ),
    ];
    for (field, id_of_field, text, member, value) in cases {
        let mut sent = json!({"name": "a", "filter": {}, "channels": email});
        sent[member] = value.clone();
        let (status, body) = api.send("POST", "/api/v1/alerts", &sent).answer();
        assert_eq!(status, 400, "{sent}: {body}");
        let mut fields = vec![("name", "a"), (field, &text)];
        if field == "name" {
            fields.remove(0);
        }
        if !["webhook", "chat"].contains(&field) {
            fields.push(("email", "on"));
        }
        for path in ["/alerts/new".to_owned(), format!("/alerts/{id}")] {
            let page = ann.post(&path, &fields);
            assert_eq!(page.status, 400, "{path} {fields:?}: {}", page.visible());
            let error =
                page.error_of(id_of_field).unwrap_or_else(|| panic!("{field}: {}", page.visible()));
            let error = error.trim_end_matches('.').to_lowercase();
            assert_eq!(error, what(&body).trim_end_matches('.').to_lowercase(), "{field}");
            page.assert_lacks("<img");
        }
    }
    let channels = ann.post("/alerts/new", &[("name", "a")]);
    channels.assert_says(400, "Must be 1 to 5 channels.");
    let six = [
        ("webhook", "https://a.dropdex-tests.com/1"),
        ("webhook", "https://a.dropdex-tests.com/2"),
        ("webhook", "https://a.dropdex-tests.com/3"),
    ];
    let six =
        [&[("name", "a"), ("email", "on"), ("chat", "1"), ("chat", "2")], six.as_slice()].concat();
    ann.post("/alerts/new", &six).assert_says(400, "Must be 1 to 5 channels.");
    let twice = [
        ("name", "a"),
        ("webhook", "https://a.dropdex-tests.com/"),
        ("webhook", "https://A.dropdex-tests.com"),
    ];
    let page = ann.post("/alerts/new", &twice);
    assert_eq!(page.error_of("webhook-1").as_deref(), Some("Must not repeat another channel."));
    ann.post("/alerts/new", &[("name", "a"), ("email", "on"), ("stage", "gone")])
        .assert_says(400, "Must be one of redemption, pending-delete, catchable, released.");
    assert_eq!(api.get("/api/v1/alerts").json()["count"], json!(1));
}

#[test]
fn html_in_every_field_stays_text() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let id = ann.add_rule(HTML, &[("q", HTML), ("email", "on")]);
    ann.post(&format!("/alerts/{id}/test"), &[])
        .assert_goes_to(&format!("/alerts/{id}?notice=tested"));
    let bad: Vec<_> = [
        "name", "tld", "min_dqs", "max_len", "q", "contains", "starts", "add", "stage", "webhook",
        "chat", "once", "rule",
    ]
    .into_iter()
    .map(|name| (name, HTML))
    .collect();
    let pages = [
        ann.get("/alerts"),
        ann.get(&format!("/alerts/{id}")),
        ann.get(&format!("/alerts/{id}/delete")),
        ann.get(&format!("/alerts/new?{}", form(&bad))),
        ann.post("/alerts/new", &bad),
        ann.post(&format!("/alerts/{id}"), &bad),
        ann.post("/alerts/preview", &bad),
        ann.post_by_script("/alerts/preview", &bad),
        ann.get(&format!("/alerts?notice={}", form(&[(HTML, HTML)]))),
    ];
    for page in pages {
        page.assert_lacks("<img");
    }
    ann.get("/alerts").assert_says(200, HTML);
}

#[test]
fn a_rule_is_tried_on_past_releases_as_in_the_api() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    for (fields, filter) in [
        (vec![], json!({})),
        (vec![("tld", "com"), ("max_len", "9")], json!({"tlds": ["com"], "maxLength": 9})),
        (vec![("q", "nothing-like-it")], json!({"contains": "nothing-like-it"})),
    ] {
        let body = api.send("POST", "/api/v1/alerts/backtest", &json!({"filter": filter})).json();
        let names = body["names"].as_u64().expect("a number");
        let words = match names {
            1 => "1 name was released".to_owned(),
            names => format!("{names} names were released"),
        };
        let part = ann.post_by_script("/alerts/backtest", &fields);
        part.assert_lacks("<html");
        part.assert_says(200, &words);
        for example in body["examples"].as_array().expect("names") {
            let name = example["domain"].as_str().expect("a name");
            assert!(part.text.contains(&format!("/domain/{name}")), "{name}: {}", part.text);
        }
        let page = ann.post("/alerts/backtest", &fields);
        page.assert_says(200, &words);
        page.assert_says(200, "New alert rule");
    }
    ann.post_by_script("/alerts/backtest", &[("min_dqs", "200")])
        .assert_says(400, "Minimum score: must be an integer from 0 to 100.");
    let id = ann.add_rule("there", &[("email", "on")]);
    let page = ann.post("/alerts/backtest", &[("rule", &id), ("name", "changed")]);
    assert!(page.text.contains(&format!("action=\"/alerts/{id}\"")), "{}", page.text);
    // An account runs thirty an hour.
    let tried = (0..30).map(|_| ann.post_by_script("/alerts/backtest", &[]).status);
    assert_eq!(tried.last(), Some(429));
}

#[test]
fn the_preview_matches_the_api() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    for (fields, filter, now) in [
        (vec![], json!({}), 6),
        (vec![("tld", "com")], json!({"tlds": ["com"]}), 4),
        (
            vec![("stage", "released"), ("stage", "catchable")],
            json!({"stages": ["released", "catchable"]}),
            2,
        ),
        (vec![("q", "nothing-like-it")], json!({"contains": "nothing-like-it"}), 0),
        (vec![("max_len", "5"), ("webhook", "not yet an ad")], json!({"maxLength": 5}), 2),
    ] {
        let body = api.send("POST", "/api/v1/alerts/preview", &json!({"filter": filter})).json();
        assert_eq!(body["today"], json!(now), "{filter}");
        let part = ann.post_by_script("/alerts/preview", &fields);
        part.assert_lacks("<html");
        assert!(part.has_header("vary", "cookie, x-fragment"));
        let words =
            format!("{now} {}", if now == 1 { "name matches today" } else { "names match today" });
        part.assert_says(200, &words);
        for sample in body["samples"].as_array().expect("names") {
            let name = sample["name"].as_str().expect("a name");
            assert!(part.text.contains(&format!("/domain/{name}")), "{name}: {}", part.text);
        }
        // Without scripts, the preview is a page that keeps the form's values.
        let page = ann.post("/alerts/preview", &fields);
        page.assert_says(200, &words);
        page.assert_says(200, "New alert rule");
        for (_, value) in fields.iter().filter(|(name, _)| !["stage", "webhook"].contains(name)) {
            assert!(page.text.contains(&format!("value=\"{value}\"")), "{value}");
        }
    }
    ann.post_by_script("/alerts/preview", &[("min_dqs", "200")])
        .assert_says(400, "Minimum score: must be an integer from 0 to 100.");
    let id = ann.add_rule("there", &[("email", "on")]);
    let page = ann.post("/alerts/preview", &[("rule", &id), ("name", "changed"), ("tld", "net")]);
    page.assert_says(200, "1 name matches today");
    assert!(
        page.text.contains(&format!("action=\"/alerts/{id}\""))
            && page.text.contains("value=\"changed\"")
    );
    ann.get(&format!("/alerts/{id}")).assert_says(200, "there");
}

#[test]
fn a_secret_is_shown_once() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    let page = ann.get("/alerts/new").text;
    let once = between(&page, "name=\"once\" value=\"", "\"");
    let fields = [("once", once), ("name", "hooks"), ("webhook", "https://hooks.example.com/a")];
    let page = ann.post("/alerts/new", &fields);
    page.assert_says(200, "not shown again");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(page.text.contains("href=\"/docs/reference/webhooks\""));
    let secret = secret_of(&page);
    let id = between(&page.text, "class=\"button\" href=\"/alerts/", "\"").to_owned();
    // A second click or a reload shows the same rule and secret.
    let again = ann.post("/alerts/new", &fields);
    assert_eq!(secret_of(&again), secret);
    ann.get("/alerts").assert_says(200, "1 of 5 active rules");
    let other = [("once", once), ("name", "others"), ("webhook", "https://hooks.example.com/a")];
    ann.post("/alerts/new", &other).assert_says(409, "This form was already submitted");
    for page in ["/alerts".to_owned(), format!("/alerts/{id}")] {
        ann.get(&page).assert_lacks("whsec_");
    }
    // A new webhook gets a new secret; the existing one keeps its own.
    let two = [
        ("name", "hooks"),
        ("webhook", "https://hooks.example.com/a"),
        ("webhook", "https://hooks.example.com/b"),
    ];
    let page = ann.post(&format!("/alerts/{id}"), &two);
    page.assert_says(200, "https://hooks.example.com/b");
    page.assert_lacks("hooks.example.com/a");
    assert_ne!(secret_of(&page), secret);
    ann.post(&format!("/alerts/{id}"), &two).assert_goes_to(&format!("/alerts/{id}?notice=saved"));
}

fn secret_of(page: &Page) -> String {
    format!("whsec_{}", between(&page.text, ">whsec_", "<"))
}

/// Starts a server that trusts `receiver`, may call it, and retries once.
fn world_of(receiver: &Receiver) -> World {
    World::with_files(&[("ca.pem", receiver.certificate())], |paths| {
        let allow = receiver.address().to_string();
        format!("[webhooks]\nallow = [{allow:?}]\nca_file = {:?}\nretry_seconds = [0]\n", paths[0])
    })
}

#[track_caller]
fn add_webhook(person: &mut Person, url: &str) -> String {
    let page = person.post("/alerts/new", &[("name", "hooks"), ("webhook", url)]);
    assert_eq!(page.status, 200, "{}", page.visible());
    between(&page.text, "class=\"button\" href=\"/alerts/", "\"").to_owned()
}

/// Requests a page until it contains `words`.
#[track_caller]
fn wait_for(person: &mut Person, path: &str, words: &str) -> Page {
    wait::until_ok(WAIT_MAX, || {
        let page = person.get_part(path);
        if super::person::visible(&page.text).contains(words) {
            return Ok(page);
        }
        Err(format!("no `{words}` in\n{}", page.visible()))
    })
}

#[test]
fn failed_deliveries_are_shown_and_can_be_retried() {
    // The receiver refuses requests until it is repaired.
    let receiver = Receiver::https(&["127.0.0.1"], |before, _| {
        Reply::status(if before < 1 { 500 } else { 204 })
    });
    let world = world_of(&receiver);
    let mut ann = world.person("ann@example.com", "core");
    let id = add_webhook(&mut ann, &receiver.url("/hook"));
    let path = format!("/alerts/{id}");
    ann.get(&path).assert_says(200, "No messages sent yet.");
    ann.post(&format!("{path}/test"), &[]).assert_goes_to(&format!("{path}?notice=tested"));
    let page = wait_for(&mut ann, &path, "failed");
    for words in ["The receiver failed (5xx).", "Webhook to 127.0.0.1", "6 names", "test", "Retry"]
    {
        page.assert_says(200, words);
    }
    ann.get("/alerts").assert_says(200, "failing since");
    page.assert_lacks("<html");
    let retry = between(&page.text, "action=\"", "\"").to_owned();
    assert!(retry.starts_with(&path) && retry.ends_with("/retry"), "{retry}");
    ann.post(&retry, &[]).assert_goes_to(&format!("{path}?notice=retried"));
    let page = wait_for(&mut ann, &path, "delivered");
    page.assert_lacks("retry");
    ann.post(&retry, &[]).assert_says(409, "This delivery cannot be retried: it was delivered.");
    ann.get("/alerts").assert_says(200, "delivered test, 6 names");
    ann.get("/alerts").assert_lacks("failing since");
    assert_eq!(receiver.wait_for(2).len(), 2);
}

#[test]
fn chat_services_are_entered_once_and_kept_by_their_masked_values() {
    let receiver = Receiver::https(&["127.0.0.1"], |before, _| {
        Reply::status(if before == 0 { 200 } else { 401 })
    });
    let world = world_of(&receiver);
    let mut ann = world.person("ann@example.com", "core");
    let empty = ann.get("/alerts/new");
    for service in ["Slack", "Discord", "Microsoft Teams", "Rocket.Chat", "Pushover user key"] {
        empty.assert_says(200, service);
    }
    let url = receiver.url("/under/");
    let fields = [
        ("slack-url", "https://hooks.slack.com/services/T00/B00/slackslackwxyz"),
        ("ntfy-url", ""),
        ("ntfy-token", ""),
        ("gotify-url", &url),
        ("gotify-token", " Atokentoken5678 "),
    ];
    let id = ann.add_rule("chats", &fields);
    let path = format!("/alerts/{id}");
    let page = ann.get(&path);
    page.assert_says(200, "Slack (hooks.slack.com …wxyz)");
    for secret in ["slackslack", "tokentoken", "/under"] {
        page.assert_lacks(secret);
        ann.get("/alerts").assert_lacks(secret);
    }
    // The form shows the hooks in masked form, and does not change them.
    for value in ["https://hooks.slack.com/…wxyz", "…5678"] {
        assert!(page.text.contains(&format!("value=\"{value}\"")), "{value}: {}", page.text);
    }
    let shown = format!("https://{}/…", receiver.address());
    let kept = [("name", "chats"), ("gotify-url", &shown), ("gotify-token", "…5678")];
    ann.post(&path, &kept).assert_goes_to(&format!("{path}?notice=saved"));
    ann.get(&path).assert_lacks("hooks.slack.com …wxyz");
    ann.post(&format!("{path}/test"), &[]).assert_goes_to(&format!("{path}?notice=tested"));
    wait_for(&mut ann, &path, "delivered");
    let seen = receiver.wait_for(1);
    assert_eq!(seen[0].target, "/under/message");
    assert_eq!(seen[0].header("x-gotify-key"), "Atokentoken5678");
    assert!(seen[0].text().contains("[Test] chats: "), "{}", seen[0].text());
    ann.post(&format!("{path}/test"), &[]).assert_goes_to(&format!("{path}?notice=tested"));
    wait_for(&mut ann, &path, "The service no longer accepts this hook or token");
    ann.get(&path).assert_says(200, "the service no longer accepts this hook or token");
    // Errors are shown beside their fields.
    for (field, text, error) in [
        ("slack-url", "https://discord.com/a", "Must be an address of Slack, at hooks.slack.com"),
        ("pushover-user", "x", "Is required."),
        ("gotify-token", "…5678", "Is required."),
    ] {
        let page = ann.post("/alerts/new", &[("name", "a"), (field, text)]);
        let place = match field {
            "pushover-user" => "pushover-token-0",
            "gotify-token" => "gotify-token-0",
            _ => "slack-url-0",
        };
        let shown = page.error_of(place).unwrap_or_else(|| panic!("{field}: {}", page.visible()));
        assert!(shown.starts_with(error) || shown.starts_with("Is shortened"), "{field}: {shown}");
    }
}

#[test]
fn a_410_switches_its_channel_off() {
    let receiver = Receiver::https(&["127.0.0.1"], |before, _| {
        Reply::status(if before == 0 { 410 } else { 204 })
    });
    let world = world_of(&receiver);
    let mut ann = world.person("ann@example.com", "core");
    let url = receiver.url("/hook");
    let id = add_webhook(&mut ann, &url);
    let path = format!("/alerts/{id}");
    ann.post(&format!("{path}/test"), &[]);
    wait_for(&mut ann, &path, "The receiver responded 410 Gone, so the channel was switched off.");
    let page = ann.get(&path);
    page.assert_says(200, "no active channel");
    page.assert_says(200, "the receiver responded 410 Gone");
    ann.get("/alerts").assert_says(200, "the receiver responded 410 Gone");
    ann.post(&format!("{path}/test"), &[]).assert_says(409, "Every channel of this rule is off;");
    // A new name does not switch the channel on; an explicit request does.
    ann.post(&path, &[("name", "renamed"), ("webhook", &url)])
        .assert_goes_to(&format!("{path}?notice=saved"));
    ann.get(&path).assert_says(200, "no active channel");
    ann.post(&path, &[("name", "renamed"), ("webhook", &url), ("switch_on", "on")])
        .assert_goes_to(&format!("{path}?notice=saved"));
    ann.post(&format!("{path}/test"), &[]).assert_goes_to(&format!("{path}?notice=tested"));
    wait_for(&mut ann, &path, "delivered");
}

#[test]
fn a_list_that_matches_is_delivered_and_shown() {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(204));
    let world = world_of(&receiver);
    let mut ann = world.person("ann@example.com", "core");
    let id = add_webhook(&mut ann, &receiver.url("/hook"));
    let list = world.site.write("more.csv", "domain,drop_date\nharbor.com,2026-03-15\n");
    world.site.ingest(&list, "2026-03-15T01:00:00Z");
    let seen = receiver.wait_for(1);
    assert!(seen[0].text().contains("harbor.com"), "{}", seen[0].text());
    let page = wait_for(&mut ann, &format!("/alerts/{id}"), "delivered");
    page.assert_says(200, "1 name");
    page.assert_lacks(">test<");
}

#[test]
fn channels_without_configuration_are_refused_with_the_reason() {
    let site = crate::common::Site::new();
    let settings = site.write("bare.toml", "");
    let settings = settings.to_str().expect("temporary paths are UTF-8");
    let list = site.write("list.csv", "domain,drop_date\nsolar.com,2026-03-15\n");
    site.ingest(&list, "2026-03-15T00:00:00Z");
    let server = site.serve_with(&["--config", settings, "--today", super::TODAY]);
    let world = World { site, server };
    let mut ann = world.person("ann@example.com", "core");
    let page = ann.get("/alerts/new");
    page.assert_says(200, "E-mail is not set up on this server");
    page.assert_says(200, "Telegram: not set up on this server");
    let page = ann.post("/alerts/new", &[("name", "a"), ("email", "on")]);
    assert_eq!(page.status, 400);
    assert_eq!(
        page.error_of("email").as_deref(),
        Some("Email delivery is not set up on this server; ask its operator.")
    );
}
