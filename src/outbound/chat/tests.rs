use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::*;
use crate::alert::Content;
use crate::http::Answer;
use crate::vocab::dropped_name::DroppedName;
use crate::vocab::ids::RuleId;
use crate::vocab::name::DomainName;
use crate::vocab::stage::Stage;

/// A valid address or valid tokens for each service, and the maximum bytes of its text.
const GOOD: [(&str, [Option<&str>; 3], usize); 9] = [
    ("slack", [Some("https://hooks.slack.com/services/T0/B0/abcdefghwxyz"), None, None], 3_000),
    ("discord", [Some("https://discord.com/api/v10/webhooks/12/abcdefghwxyz"), None, None], 2_000),
    (
        "teams",
        [
            Some("https://prod-0.westus.logic.azure.com:443/workflows/a/invoke?sig=abcdefghwxyz"),
            None,
            None,
        ],
        28 * 1024,
    ),
    ("mattermost", [Some("https://chat.dropdex-tests.com/hooks/abcdefghwxyz"), None, None], 4_000),
    (
        "rocketchat",
        [Some("https://chat.dropdex-tests.com/hooks/a/abcdefghwxyz"), None, None],
        1_000,
    ),
    (
        "googlechat",
        [
            Some("https://chat.googleapis.com/v1/spaces/A/messages?key=a&token=abcdefghwxyz"),
            None,
            None,
        ],
        4_000,
    ),
    (
        "ntfy",
        [Some("https://ntfy.dropdex-tests.com/a/my_topic-x"), Some("tk_abcdefghwxyz"), None],
        4_096,
    ),
    (
        "pushover",
        [None, Some("azGDORePK8gMaC0QOYAMyEEuzJnyUi"), Some("uQiRzpo4DXghDmr9QzzfQu27cmVRsG")],
        1_024,
    ),
    (
        "gotify",
        [Some("https://gotify.dropdex-tests.com/under"), Some("Aabcdefghwxyz"), None],
        32_000,
    ),
];

fn sent([url, token, user]: [Option<&str>; 3]) -> Sent {
    let secret = |text: Option<&str>| text.map(|text| Secret::new(text.to_owned()));
    Sent { url: secret(url), token: secret(token), user: secret(user) }
}

fn parsed(name: &str, parts: [Option<&str>; 3], kept: &[&Chat]) -> Result<Chat, String> {
    let service = service(name).expect(name);
    let parsed = parse(service, &sent(parts), &HostRules::default(), &mut kept.to_vec());
    parsed.map_err(|Refused { part, why }| format!("{}: {why}", part.as_str()))
}

/// An alert with 1,000 names, of which every other one is long and internationalised, for a rule
/// whose name consists of markup.
fn alert() -> Alert {
    let longest = "größte-bücherregale-für-münchen-und-umgebung.com";
    let name = |at: usize| DroppedName {
        name: DomainName::parse(&match at % 2 {
            0 => format!("name{at}.com"),
            _ => longest.to_owned(),
        })
        .expect("a name"),
        dqs: crate::vocab::dqs::Dqs::new(77).expect("a score"),
        drop_date: "2026-03-01".parse().expect("a day"),
        release: "2026-04-05".parse().expect("a day"),
        release_second: None,
        stage: Stage::Redemption,
    };
    Alert {
        is_test: false,
        delivery_id: "00ff".into(),
        at: "2026-03-02T01:02:03Z".parse().expect("a time"),
        date: "2026-03-02".parse().expect("a day"),
        total: 1_000,
        content: Content::Rule {
            id: RuleId::parse("42").expect("an id"),
            name: "<!channel> @everyone @here <users/all> *[x](y)* & ".to_owned() + &"ü".repeat(50),
            names: (0..500).map(name).collect(),
        },
        reasons: Vec::new(),
    }
}

/// Returns a service's request, its body as JSON (a form becomes an object), and the text with the
/// names.
fn posted(name: &str, link: Option<&str>) -> (Post, Value, String) {
    let (_, parts, _) = GOOD.iter().find(|(it, ..)| *it == name).expect(name);
    let chat = parsed(name, *parts, &[]).expect(name);
    let address = match &chat.hook.url {
        Some(url) => url.to_url(),
        None => Url::parse("https://api.pushover.net").expect("a URL"),
    };
    let alert = alert();
    let post = service(name).expect(name).post(address, &chat.hook, Note { alert: &alert, link });
    let body = match post.headers["content-type"].to_str().expect("text") {
        "application/x-www-form-urlencoded" => {
            let pairs = url::form_urlencoded::parse(&post.body);
            pairs.map(|(name, value)| (name.into_owned(), json!(value))).collect()
        }
        _ => serde_json::from_slice(&post.body).expect("JSON"),
    };
    let body: Value = body;
    let text = match name {
        "slack" => &body["blocks"][0]["text"]["text"],
        "discord" => &body["content"],
        "teams" => &body["attachments"][0]["content"]["body"][0]["text"],
        "ntfy" | "pushover" | "gotify" => &body["message"],
        _ => &body["text"],
    };
    let text = text.as_str().unwrap_or_else(|| panic!("{name}: {body}")).to_owned();
    (post, body, text)
}

#[test]
fn every_service_accepts_its_hooks_and_masks_them() {
    assert_eq!(
        GOOD.map(|(name, ..)| name).to_vec(),
        SERVICES.iter().map(|it| it.about().name).collect::<Vec<_>>()
    );
    for (name, parts, _) in GOOD {
        let chat = parsed(name, parts, &[]).expect(name);
        let shown = Part::ALL.map(|part| chat.hook.shown(part));
        for text in shown.iter().flatten().chain([&chat.hook.label(), &format!("{chat:?}")]) {
            assert!(!text.contains("abcdefgh") && !text.contains("topic"), "{name}: {text}");
        }
        // A chat in masked form refers to a stored chat of the same service.
        let again = shown.each_ref().map(Option::as_deref);
        assert_eq!(parsed(name, again, &[&chat]).as_ref(), Ok(&chat), "{name}");
        let other = Chat { service: "other".into(), hook: chat.hook.clone() };
        let refused = parsed(name, again, &[&other]).expect_err(name);
        assert!(refused.contains("is shortened, and no channel of this rule has it"), "{refused}");
    }
}

/// Otherwise, a user who may change a rule could have its token sent to their own host.
#[test]
fn a_kept_token_stays_with_its_address() {
    let parts = [Some("https://gotify.dropdex-tests.com/"), Some("Aabcdefghwxyz"), None];
    let chat = parsed("gotify", parts, &[]).expect("accepted");
    let [url, token, user] = Part::ALL.map(|part| chat.hook.shown(part));
    let (url, token) = (url.as_deref(), token.as_deref());
    let elsewhere = [Some("https://evil.dropdex-tests.com/"), token, user.as_deref()];
    assert!(parsed("gotify", elsewhere, &[&chat]).is_err());
    let renewed =
        parsed("gotify", [url, Some("Anew-token-1234"), None], &[&chat]).expect("accepted");
    assert_eq!(
        (renewed.hook.url, renewed.hook.token),
        (chat.hook.url, Some(Secret::new("Anew-token-1234".into())))
    );
}

#[test]
fn unusable_hooks_are_refused_with_the_reason() {
    for (name, parts, refusal) in [
        ("slack", [None, None, None], "url: is required"),
        (
            "slack",
            [Some("http://hooks.slack.com/services/a"), None, None],
            "url: must start with https://",
        ),
        (
            "slack",
            [Some("https://hooks.slack.com.dropdex-tests.com/services/a"), None, None],
            "url: must be an address of Slack, at hooks.slack.com or hooks.slack-gov.com",
        ),
        (
            "slack",
            [Some("https://hooks.slack.com/triggers/a"), None, None],
            "url: must be an incoming webhook: its path starts with /services/",
        ),
        (
            "slack",
            [Some("https://hooks.slack.com/services/a"), Some("t"), None],
            "token: does not belong to slack",
        ),
        (
            "discord",
            [Some("https://discord.com/api/webhooks/1/a/slack"), None, None],
            "url: must end with /api/webhooks/, a number and a token",
        ),
        (
            "teams",
            [Some("https://contoso.webhook.office.com/webhookb2/a"), None, None],
            "url: must be an address of Microsoft Teams, at *.logic.azure.com or \
             *.environment.api.powerplatform.com",
        ),
        (
            "teams",
            [Some("https://a.logic.azure.com/workflows/a"), None, None],
            "url: must be the whole URL of a workflow, with what follows the ?",
        ),
        (
            "mattermost",
            [Some("https://127.0.0.1/hooks/a"), None, None],
            "url: 127.0.0.1 is not a public address; the operator can list its address and port in \
             `[webhooks] allow`",
        ),
        (
            "rocketchat",
            [Some("https://chat.dropdex-tests.com/hooks/"), None, None],
            "url: must be an incoming webhook: its path has /hooks/ and a key",
        ),
        (
            "googlechat",
            [Some("https://chat.googleapis.com/v1/spaces/A/messages?key=a"), None, None],
            "url: must be the whole link of a webhook, with key and token",
        ),
        (
            "ntfy",
            [Some("https://ntfy.sh/"), None, None],
            "url: must end with the name of a topic, such as https://ntfy.sh/my-topic",
        ),
        (
            "ntfy",
            [Some("https://ntfy.sh/topic"), Some("a b"), None],
            "token: must be 1 to 256 letters, digits and signs, without spaces",
        ),
        ("pushover", [None, Some("azGDORePK8gMaC0QOYAMyEEuzJnyUi"), None], "user: is required"),
        (
            "pushover",
            [None, Some("azGDORePK8gMaC0QOYAMyEEuzJnyU"), Some("a")],
            "token: must be 30 letters and digits",
        ),
        (
            "gotify",
            [Some("https://gotify.dropdex-tests.com/?token=a"), Some("Aabc"), None],
            "url: must be the address of the server alone, without ?",
        ),
        ("gotify", [Some("https://gotify.dropdex-tests.com/"), None, None], "token: is required"),
    ] {
        assert_eq!(parsed(name, parts, &[]).expect_err(name), refusal, "{name}");
    }
}

#[test]
fn a_thousand_long_names_are_cut_by_whole_lines() {
    let link = "https://d.example/alerts/42";
    for (name, _, bytes_max) in GOOD {
        for link in [None, Some(link)] {
            let (post, body, text) = posted(name, link);
            assert!(text.len() <= bytes_max, "{name}: {} bytes", text.len());
            if name == "teams" {
                assert!(post.body.len() <= bytes_max, "{name}: {} bytes", post.body.len());
            }
            let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
            let names: Vec<_> = lines.iter().filter(|line| line.contains("  DQS ")).collect();
            assert!((1..=40).contains(&names.len()), "{name}: {} names", names.len());
            let row = "  DQS 77, redemption, released on 2026-04-05, usual hour 18:00 UTC";
            assert!(names.iter().all(|line| line.ends_with(row)), "{name}: {text}");
            let more = format!("and {} more", 1_000 - names.len());
            let more = link.map_or(more.clone(), |link| format!("{more}: {link}"));
            assert_eq!(lines.last().copied(), Some(more.as_str()), "{name}");
            assert_eq!(body.to_string().contains("d.example"), link.is_some(), "{name}");
        }
    }
}

#[test]
fn the_name_of_a_rule_mentions_no_one() {
    for name in ["slack", "discord", "teams", "mattermost", "rocketchat", "googlechat"] {
        let (_, body, text) = posted(name, None);
        for mention in ["<!channel>", "<users/all>"] {
            assert!(!text.contains(mention), "{name}: {text}");
        }
        let is_markdown = !matches!(name, "slack" | "googlechat");
        assert_eq!(text.contains("\\*\\[x](y)\\*"), is_markdown, "{name}: {text}");
        let says_all = text.contains("@everyone") || text.contains("@here");
        // Slack and Google Chat recognise mentions only in tags.
        assert_eq!(says_all, !is_markdown, "{name}: {text}");
        if name == "discord" {
            assert_eq!(body["allowed_mentions"], json!({"parse": []}));
        }
    }
}

#[test]
fn requests_have_the_documented_shape() {
    let place = |name| posted(name, Some("https://d.example/alerts/42"));
    let (post, body, _) = place("ntfy");
    assert_eq!(post.url.as_str(), "https://ntfy.dropdex-tests.com/a/");
    assert_eq!(post.headers["authorization"], "Bearer tk_abcdefghwxyz");
    assert_eq!(
        (&body["topic"], &body["click"]),
        (&json!("my_topic-x"), &json!("https://d.example/alerts/42"))
    );
    let (post, body, _) = place("gotify");
    assert_eq!(post.url.as_str(), "https://gotify.dropdex-tests.com/under/message");
    assert_eq!(post.headers["x-gotify-key"], "Aabcdefghwxyz");
    assert_eq!(
        body["extras"]["client::notification"]["click"]["url"],
        "https://d.example/alerts/42"
    );
    let (post, body, _) = place("pushover");
    assert_eq!(post.url.as_str(), "https://api.pushover.net/1/messages.json");
    assert!(body["title"].as_str().expect("a title").chars().count() <= 250);
    assert_eq!(body["user"], "uQiRzpo4DXghDmr9QzzfQu27cmVRsG");
    let (post, body, _) = place("teams");
    assert_eq!(post.url.query(), Some("sig=abcdefghwxyz"));
    let attachment = &body["attachments"][0];
    assert_eq!((&body["type"], &attachment["contentUrl"]), (&json!("message"), &Value::Null));
    assert_eq!(attachment["contentType"], "application/vnd.microsoft.card.adaptive");
    assert_eq!(attachment["content"]["actions"][0]["url"], "https://d.example/alerts/42");
}

#[test]
fn responses_decide_between_retry_refusal_and_the_end() {
    use Verdict::{Dead, Refused, Retry, Taken};
    let now: DateTime<Utc> = "2026-03-02T00:00:00Z".parse().expect("a time");
    let after = |seconds| Retry(Some(std::time::Duration::from_millis((seconds * 1_000.0) as u64)));
    let reset = (now.timestamp() + 90).to_string();
    let retry_after = ("retry-after", "7");
    for (name, status, header, body, verdict) in [
        ("slack", 200, None, "ok", Taken),
        ("slack", 400, None, "invalid_payload", Refused),
        ("slack", 403, None, "action_prohibited", Dead),
        ("slack", 404, None, "no_service", Dead),
        ("slack", 410, None, "channel_is_archived", Dead),
        ("slack", 429, Some(retry_after), "", after(7.0)),
        ("slack", 500, None, "rollup_error", Retry(None)),
        ("discord", 204, None, "", Taken),
        ("discord", 400, None, "{}", Refused),
        ("discord", 401, None, "{}", Dead),
        ("discord", 404, None, r#"{"code": 10015}"#, Dead),
        ("discord", 429, None, r#"{"retry_after": 1.5, "global": false}"#, after(1.5)),
        ("discord", 429, None, r#"{"retry_after": -1e300}"#, after(0.0)),
        ("discord", 429, Some(retry_after), "no JSON", after(7.0)),
        ("discord", 502, None, "", Retry(None)),
        ("teams", 202, None, "", Taken),
        ("teams", 401, None, "", Dead),
        ("teams", 404, None, "", Dead),
        ("teams", 413, None, "", Refused),
        ("teams", 429, Some(retry_after), "", after(7.0)),
        ("mattermost", 200, None, "ok", Taken),
        ("mattermost", 400, None, r#"{"id":"web.incoming_webhook.invalid.app_error"}"#, Dead),
        ("mattermost", 400, None, r#"{"id":"web.incoming_webhook.text.app_error"}"#, Refused),
        ("mattermost", 404, None, "a proxy", Retry(None)),
        ("mattermost", 501, None, "", Retry(None)),
        ("rocketchat", 200, None, r#"{"success":true}"#, Taken),
        ("rocketchat", 400, None, r#"{"error":"Invalid integration id or token provided."}"#, Dead),
        ("rocketchat", 404, None, "a proxy", Retry(None)),
        ("rocketchat", 503, Some(retry_after), "", after(7.0)),
        ("googlechat", 200, None, "{}", Taken),
        ("googlechat", 400, None, "{}", Refused),
        ("googlechat", 403, None, "{}", Dead),
        ("googlechat", 404, None, "{}", Dead),
        ("googlechat", 429, None, "{}", Retry(None)),
        ("ntfy", 200, None, "{}", Taken),
        ("ntfy", 401, None, "{}", Dead),
        ("ntfy", 403, None, "{}", Dead),
        ("ntfy", 404, None, "a proxy", Retry(None)),
        ("ntfy", 413, None, "{}", Refused),
        ("ntfy", 429, None, "{}", Retry(None)),
        ("pushover", 200, None, r#"{"status":1}"#, Taken),
        ("pushover", 400, None, r#"{"token":"invalid","status":0}"#, Dead),
        ("pushover", 400, None, r#"{"user":"invalid","status":0}"#, Dead),
        ("pushover", 400, None, r#"{"message":"cannot be blank","status":0}"#, Refused),
        ("pushover", 429, Some(("x-limit-app-reset", reset.as_str())), "{}", after(90.0)),
        ("pushover", 500, None, "", Retry(None)),
        ("gotify", 200, None, "{}", Taken),
        ("gotify", 401, None, "{}", Dead),
        ("gotify", 400, None, "{}", Refused),
        ("gotify", 502, None, "", Retry(None)),
    ] {
        let mut headers = HeaderMap::new();
        if let Some((header, value)) = header {
            headers.insert(header, value.parse().expect("a value"));
        }
        let status_code = StatusCode::from_u16(status).expect("a status");
        let answer = Answer { status: status_code, headers, body: body.as_bytes().to_vec() };
        let got = service(name).expect(name).verdict(&answer, now);
        assert_eq!(got, verdict, "{name} {status} {body}");
    }
    for service in SERVICES {
        let (headers, body) = (HeaderMap::new(), Vec::new());
        let gone = Answer { status: StatusCode::GONE, headers, body };
        let name = service.about().name;
        // Only Pushover has one address for all users.
        let expected = if name == "pushover" { Refused } else { Dead };
        assert_eq!(service.verdict(&gone, now), expected, "{name}");
    }
}
