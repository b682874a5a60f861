//! Chat services: receivers under the services' real host names accept the messages over HTTPS and
//! check their format and limits, and Apprise posts the same text to the same receivers.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{PATH, World, today};
use crate::common::knot::Knot;
use crate::common::receiver::{Receiver, Reply, Seen};
use crate::common::tools;

const HOME: &str = "https://drops.example.net";
const NAMES: usize = 1_000;

/// A service, and the messages that its receiver gets.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub host: &'static str,
    /// Path and query of the hook's address; `None` for a service without an address.
    path: Option<&'static str>,
    /// Other members of the channel.
    more: &'static [(&'static str, &'static str)],
    /// URL of the same receiver for Apprise.
    apprise: &'static str,
    /// Path of the text in our body and in that of Apprise.
    pub text: [&'static str; 2],
    /// Path of the title in both.
    title: Option<&'static str>,
    /// Maximum characters of the text.
    longest: usize,
    /// The response to a message, and the response to a message for a hook that no longer exists.
    answers: [(u16, &'static str); 2],
}

/// Part of every secret.
const SECRET: &str = "TIiajkdnlazkcOXrIdevi7FQ";

pub static CASES: [Case; 9] = [
    Case {
        name: "slack",
        host: "hooks.slack.com",
        path: Some("/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"),
        more: &[],
        apprise: "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ\
                  ?blocks=yes&footer=no&image=no",
        text: ["/blocks/0/text/text", "/attachments/0/blocks/0/text/text"],
        title: None,
        longest: 3_000,
        answers: [(200, "ok"), (404, "no_service")],
    },
    Case {
        name: "discord",
        host: "discord.com",
        path: Some("/api/webhooks/123456789012345678/TIiajkdnlazkcOXrIdevi7FQ"),
        more: &[],
        apprise: "https://discord.com/api/webhooks/123456789012345678/TIiajkdnlazkcOXrIdevi7FQ",
        text: ["/content", "/content"],
        title: None,
        longest: 2_000,
        answers: [(204, ""), (404, r#"{"code": 10015}"#)],
    },
    Case {
        name: "teams",
        host: "prod-0.westus.logic.azure.com",
        path: Some(
            "/workflows/0123456789abcdef/triggers/manual/paths/invoke?api-version=2016-06-01\
             &sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=TIiajkdnlazkcOXrIdevi7FQ",
        ),
        more: &[],
        apprise: "https://prod-0.westus.logic.azure.com:443/workflows/0123456789abcdef/triggers/manual/paths\
                  /invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0\
                  &sig=TIiajkdnlazkcOXrIdevi7FQ&image=no",
        text: ["/attachments/0/content/body/0/text", "/attachments/0/content/body/0/text"],
        title: None,
        longest: 28_000,
        answers: [(202, ""), (404, "")],
    },
    Case {
        name: "mattermost",
        host: "mattermost.dropdex-tests.com",
        path: Some("/hooks/TIiajkdnlazkcOXrIdevi7FQab"),
        more: &[],
        apprise: "mmosts://mattermost.dropdex-tests.com/TIiajkdnlazkcOXrIdevi7FQab?image=no",
        text: ["/text", "/text"],
        title: None,
        longest: 4_000,
        answers: [(200, "ok"), (400, r#"{"id": "web.incoming_webhook.invalid.app_error"}"#)],
    },
    Case {
        name: "rocketchat",
        host: "chat.dropdex-tests.com",
        path: Some("/hooks/abcdefghijklmnopq/TIiajkdnlazkcOXrIdevi7FQTIiajkdnlazkcOXrIdevi7FQ"),
        more: &[],
        apprise: "rockets://abcdefghijklmnopq/TIiajkdnlazkcOXrIdevi7FQTIiajkdnlazkcOXrIdevi7FQ\
                  @chat.dropdex-tests.com/?mode=webhook&avatar=no",
        text: ["/text", "/text"],
        title: None,
        longest: 1_000,
        answers: [
            (200, r#"{"success": true}"#),
            (400, r#"{"success": false, "error": "Invalid integration id or token provided."}"#),
        ],
    },
    Case {
        name: "googlechat",
        host: "chat.googleapis.com",
        path: Some("/v1/spaces/AAAA/messages?key=kkkk&token=TIiajkdnlazkcOXrIdevi7FQ"),
        more: &[],
        apprise: "https://chat.googleapis.com/v1/spaces/AAAA/messages?key=kkkk\
                  &token=TIiajkdnlazkcOXrIdevi7FQ",
        text: ["/text", "/text"],
        title: None,
        longest: 4_000,
        answers: [(200, "{}"), (404, "{}")],
    },
    Case {
        name: "ntfy",
        host: "ntfy.dropdex-tests.com",
        path: Some("/topic-TIiajkdnlazkcOXrIdevi7FQ"),
        more: &[("token", "tk_TIiajkdnlazkcOXrIdevi7FQ")],
        apprise: "ntfys://tk_TIiajkdnlazkcOXrIdevi7FQ@ntfy.dropdex-tests.com/topic-TIiajkdnlazkcOXrIdevi7FQ\
                  ?auth=token&mode=private",
        text: ["/message", "/message"],
        title: Some("/title"),
        longest: 4_096,
        answers: [(200, "{}"), (403, "{}")],
    },
    Case {
        name: "pushover",
        host: "api.pushover.net",
        path: None,
        more: &[
            ("token", "azTIiajkdnlazkcOXrIdevi7FQAMyE"),
            ("user", "uQTIiajkdnlazkcOXrIdevi7FQcmVR"),
        ],
        apprise: "pover://uQTIiajkdnlazkcOXrIdevi7FQcmVR@azTIiajkdnlazkcOXrIdevi7FQAMyE",
        text: ["/message", "/message"],
        title: Some("/title"),
        longest: 1_024,
        answers: [(200, r#"{"status": 1}"#), (400, r#"{"token": "invalid", "status": 0}"#)],
    },
    Case {
        name: "gotify",
        host: "gotify.dropdex-tests.com",
        path: Some("/"),
        more: &[("token", "ATIiajkdnlazkcOXrIdevi7FQ")],
        apprise: "gotifys://gotify.dropdex-tests.com/ATIiajkdnlazkcOXrIdevi7FQ",
        text: ["/message", "/message"],
        title: Some("/title"),
        longest: 32_000,
        answers: [(200, "{}"), (401, "{}")],
    },
];

impl Case {
    pub fn channel(&self, port: u16) -> Value {
        let mut channel = json!({"type": self.name});
        if let Some(path) = self.path {
            channel["url"] = json!(format!("https://{}:{port}{path}", self.host));
        }
        for (member, value) in self.more {
            channel[member] = json!(value);
        }
        channel
    }

    pub fn answer(&self, is_dead: bool) -> Reply {
        let (status, body) = self.answers[usize::from(is_dead)];
        Reply::Answer(status, Vec::new(), body.as_bytes().to_vec())
    }

    /// Returns the requests to this service.
    pub fn of<'a>(&self, seen: &'a [Seen]) -> Vec<&'a Seen> {
        seen.iter().filter(|seen| seen.header("host").starts_with(self.host)).collect()
    }

    /// Checks a message with all names, and returns its title and text.
    fn check(&self, seen: &Seen, rule: u64) -> (String, String) {
        let (name, body) = (self.name, body(seen));
        let at = |pointer| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (title, text) = (self.title.map_or("", at), at(self.text[0]));
        assert!(
            text.chars().count() <= self.longest,
            "{name}: {} characters",
            text.chars().count()
        );
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let headline = if title.is_empty() { lines.next().unwrap_or_default() } else { title };
        assert_eq!(headline, format!("all: {NAMES} names on {}", today()), "{name}");
        let lines: Vec<_> = lines.collect();
        let (last, names) = lines.split_last().expect("lines");
        let is_whole = |line: &&str| line.starts_with("xn--") && line.contains(".com  DQS ");
        assert!(!names.is_empty() && names.iter().all(is_whole), "{name}: {text}");
        let left = NAMES - names.len();
        assert_eq!(*last, format!("and {left} more: {HOME}/alerts/{rule}"), "{name}");
        (title.to_owned(), text.to_owned())
    }
}

/// Parses a body of JSON or of a form.
pub fn body(seen: &Seen) -> Value {
    match seen.header("content-type") {
        "application/x-www-form-urlencoded" => {
            let pairs = url::form_urlencoded::parse(&seen.body);
            pairs.map(|(name, value)| (name.into_owned(), json!(value))).collect()
        }
        kind => {
            assert_eq!(kind, "application/json; charset=utf-8");
            serde_json::from_slice(&seen.body).expect("JSON")
        }
    }
}

/// Returns the requests that Apprise posts with these titles and texts.
fn apprise(given: &BTreeMap<&str, (&str, String, String)>) -> Value {
    let mut child = Command::new(tools::python())
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/deliver/chats.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python can be run");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(&serde_json::to_vec(given).expect("texts")).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).expect("JSON; its errors are above")
}

/// Path and sorted parameters of a request target.
fn place(target: &str) -> (String, Vec<(String, String)>) {
    let base = url::Url::parse("https://any.dropdex-tests.com/").expect("a URL");
    let url = base.join(target).expect("a target");
    let mut pairs: Vec<_> = url.query_pairs().into_owned().collect();
    pairs.sort();
    (url.path().to_owned(), pairs)
}

#[test]
fn every_chat_service_gets_its_documented_message_and_is_switched_off_as_documented() {
    let records: String =
        CASES.iter().map(|case| format!("{}. A 127.0.0.1\n", case.host)).collect();
    let knot = Knot::start_zone(".", &records);
    let hosts = CASES.map(|case| case.host);
    let is_dead = Arc::new(AtomicBool::new(false));
    let dead = Arc::clone(&is_dead);
    let receiver = Receiver::https(&hosts, move |_, seen| {
        let case = CASES.iter().find(|case| seen.header("host").starts_with(case.host));
        case.map_or(Reply::status(421), |case| case.answer(dead.load(Ordering::SeqCst)))
    });
    let port = receiver.address().port();
    let settings = format!("public_url = \"{HOME}\"\n[dns]\nservers = [\"{}\"]\n", knot.address());
    let pushover = format!("pushover_base = \"https://api.pushover.net:{port}\"\n");
    let mut world = World::with("owner@example.com", &settings, &pushover, &[&receiver]);
    let rules = CASES.map(|case| world.rule("all", case.channel(port)).0);

    // Long internationalised names of one list.
    let names = (0..NAMES)
        .map(|at| format!("bücherregale-für-münchen-und-umgebung-{at}.com,{}\n", today()));
    let list =
        world.site.write("long.csv", "domain,drop_date\n".to_owned() + &names.collect::<String>());
    world.lists = 1;
    world.site.ingest(&list, &format!("{}T00:00:01Z", today()));
    let mut given = BTreeMap::new();
    for (case, rule) in CASES.iter().zip(rules) {
        world.wait(rule, "delivered");
        let seen = receiver.seen();
        let ours = case.of(&seen);
        assert_eq!((ours.len(), ours[0].method.as_str()), (1, "POST"), "{}", case.name);
        let (title, text) = case.check(ours[0], rule);
        given.insert(case.name, (case.apprise, title, text));
    }
    let theirs = apprise(&given);
    for case in &CASES {
        let (name, seen, theirs) = (case.name, receiver.seen(), &theirs[case.name]);
        let (seen, (_, title, text)) = (case.of(&seen)[0], &given[name]);
        let at = |pointer| theirs["body"].pointer(pointer).and_then(Value::as_str);
        assert_eq!(at(case.text[1]), Some(text.as_str()), "{name}");
        assert_eq!(case.title.map(at), case.title.map(|_| Some(title.as_str())), "{name}");
        let url = url::Url::parse(theirs["url"].as_str().expect("a URL")).expect("a URL");
        assert_eq!((url.scheme(), url.host_str()), ("https", Some(case.host)), "{name}");
        let target = &url[url::Position::BeforePath..];
        assert_eq!(place(&seen.target), place(target), "{name}");
        let kind = |kind: &str| kind.split(';').next().unwrap_or_default().to_owned();
        let their_kind = theirs["headers"]["Content-Type"].as_str().expect("a type");
        assert_eq!(kind(seen.header("content-type")), kind(their_kind), "{name}");
        for header in ["Authorization", "X-Gotify-Key"] {
            let theirs = theirs["headers"][header].as_str().unwrap_or_default();
            assert_eq!(seen.header(&header.to_lowercase()), theirs, "{name}");
        }
        let ours = body(seen);
        for member in ["/topic", "/user", "/token", "/type", "/attachments/0/contentType"] {
            assert_eq!(ours.pointer(member), theirs["body"].pointer(member), "{name}{member}");
        }
    }

    // The services remove the hooks: each gets one attempt, and none for the next list.
    is_dead.store(true, Ordering::SeqCst);
    world.list();
    for (case, rule) in CASES.iter().zip(rules) {
        let failed = world.wait(rule, "failed");
        assert_eq!(
            (&failed["attempts"], &failed["problem"]),
            (&json!(1), &json!("gone")),
            "{}",
            case.name
        );
        let shown = world.client.get(&format!("{PATH}/{rule}"));
        assert!(!shown.text().contains(SECRET), "{}", shown.text());
        let channel = &shown.json()["alert"]["channels"][0];
        assert_eq!(
            (&channel["type"], &channel["switchedOff"]["reason"]),
            (&json!(case.name), &json!("gone"))
        );
    }
    world.list();
    let calls = receiver.seen().len();
    assert_eq!(calls, 2 * CASES.len());
    let deliveries: Vec<_> = rules.iter().map(|rule| world.deliveries(*rule).len()).collect();
    assert_eq!(deliveries, [2; CASES.len()]);
    let World { site, server, .. } = world;
    let log = server.stop();
    assert!(log.contains("delivery failed") && !log.contains(SECRET), "{log}");
    let dump = site.ok(&["journal", "dump"]);
    assert!(dump.contains("googlechat") && !dump.contains(SECRET), "{dump}");
}

/// A service name that resolves to a private network is refused when a rule is added, and at every
/// call.
#[test]
fn the_guard_checks_every_chat_address() {
    let inside = Receiver::https(&["mattermost.dropdex-tests.com"], |_, _| Reply::status(200));
    let mut knot = Knot::start_zone(".", "mattermost.dropdex-tests.com. A 127.0.0.1\n");
    let settings = format!("[dns]\nservers = [\"{}\"]\n", knot.address());
    let mut world = World::new(&settings, &[]);
    let rule = |url: &str| json!({"name": "a", "filter": {}, "channels": [{"type": "mattermost", "url": url}]});
    let url = "https://mattermost.dropdex-tests.com/hooks/secret-secret";
    let (status, body) = world.client.send("POST", PATH, &rule(url)).answer();
    let refusal = "channels[0].url: `mattermost.dropdex-tests.com` is not reachable from the Internet; the operator can \
         list its address and port in `[webhooks] allow`";
    assert_eq!((status, &body["error"]), (400, &json!(refusal)));
    knot.replace("mattermost.dropdex-tests.com. A 8.8.8.8\n");
    let (status, body) = world.client.send("POST", PATH, &rule(url)).answer();
    assert_eq!(status, 201, "{body}");
    knot.replace("mattermost.dropdex-tests.com. A 127.0.0.1\n");
    let id = body["id"].as_u64().expect("an id");
    assert_eq!(world.client.send("POST", &format!("{PATH}/{id}/test"), &json!({})).status, 202);
    let failed = world.wait(id, "failed");
    assert_eq!((&failed["attempts"], &failed["problem"]), (&json!(3), &json!("refused")));
    assert_eq!(inside.connections(), 0);
}
