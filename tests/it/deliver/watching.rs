//! Watch alerts: every kind of change on every kind of channel, from the log of changes to the receiver,
//! and changes caused by real lists and days.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use dropdex::changes::{Appender, ChangeEntry, Mark};
use dropdex::vocab::change::{ChangeKind, ChangeSource};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::dqs::Dqs;
use serde_json::{Value, json};

use super::channels::MailServer;
use super::chats::{CASES, body};
use super::{WAIT_MAX, World};
use crate::common::knot::Knot;
use crate::common::receiver::{Receiver, Reply, Seen};
use crate::common::{Client, Server, Site, wait};

const HOME: &str = "https://drops.example.net";
const WATCHLIST: &str = "/api/v1/watchlist";
const SETTINGS: &str = "/api/v1/watchlist/alerts";
const HOOKS: &str = "hooks.dropdex-tests.com";

/// Returns the name to which a change of this kind applies.
fn name_of(kind: ChangeKind) -> String {
    format!("{}.com", kind.as_str().replace('_', "-"))
}

/// Returns the text that describes the change in every channel.
fn words_of(kind: ChangeKind) -> String {
    let today = Clock::system().today();
    match kind {
        ChangeKind::LeftZone => format!("left its zone, {today}"),
        ChangeKind::PendingDelete => format!("is expected in pending delete, {today}"),
        ChangeKind::DropsTomorrow => format!("drops tomorrow, {}", today.plus(1)),
        ChangeKind::DropsToday => format!("drops today, {today}"),
        ChangeKind::DropsInAnHour => format!("drops within an hour, {today}"),
        ChangeKind::RenewalDue => format!("is due for renewal on {today}"),
        ChangeKind::Available => format!("is available, verified {today}"),
        ChangeKind::Renewed => format!("was renewed, {today}"),
        ChangeKind::RegisteredAgain => format!("was registered again, {today}"),
        ChangeKind::Rescored => format!("was scored 80, before 70, {today}"),
    }
}

/// Appends changes to the log while the server is stopped.
fn append(site: &Site, kinds: &[ChangeKind]) {
    let now: DateTime<Utc> = Clock::system().now();
    let (log, _) = Appender::open(&site.data().join("changes"), now).expect("opens");
    let mark: Mark = log.mark().expect("a server ran");
    let names: Vec<_> = kinds.iter().map(|kind| (*kind, name_of(*kind))).collect();
    let appended = log.append(mark, |writer| {
        for (kind, name) in &names {
            let is_expected = matches!(kind, ChangeKind::PendingDelete | ChangeKind::DropsTomorrow);
            let is_scored = *kind == ChangeKind::Rescored;
            writer.push(&ChangeEntry {
                kind: *kind,
                source: if is_expected { ChangeSource::Calendar } else { ChangeSource::List },
                name,
                label_len: (name.len() - ".com".len()) as u8,
                day: Clock::system().today(),
                dqs: Dqs::new(80),
                dqs_before: Dqs::new(70).filter(|_| is_scored),
                release: None,
            })?;
        }
        Ok(())
    });
    assert_eq!(appended.expect("appended"), kinds.len() as u64);
}

#[track_caller]
fn watch(client: &mut Client, names: &[String]) {
    let batch = json!({ "domainNames": names });
    let (status, body) = client.send("POST", &format!("{WATCHLIST}/batch"), &batch).answer();
    assert_eq!((status, &body["added"]), (200, &json!(names.len())), "{body}");
}

#[track_caller]
fn set(client: &mut Client, channels: &[Value], more: Value) -> Value {
    let kinds: Vec<_> = ChangeKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let mut settings = json!({"kinds": kinds, "channels": channels});
    for (member, value) in more.as_object().expect("an object") {
        settings[member] = value.clone();
    }
    let (status, body) = client.send("PUT", SETTINGS, &settings).answer();
    assert_eq!(status, 200, "{body}");
    body
}

#[track_caller]
fn deliveries(client: &mut Client) -> Vec<Value> {
    let body = client.get(&format!("{SETTINGS}/deliveries")).json();
    body["deliveries"].as_array().expect("a list").clone()
}

#[test]
fn every_kind_of_change_arrives_on_every_kind_of_channel() {
    let hosts = CASES.map(|case| case.host);
    let records: String =
        hosts.iter().chain(&[HOOKS]).map(|host| format!("{host}. A 127.0.0.1\n")).collect();
    let knot = Knot::start_zone(".", &records);
    let chats = Receiver::https(&[&hosts[..], &[HOOKS]].concat(), |_, seen| {
        let case = CASES.iter().find(|case| seen.header("host").starts_with(case.host));
        case.map_or(Reply::status(200), |case| case.answer(false))
    });
    let telegram = Receiver::http(|_, _| {
        Reply::Answer(200, vec![], json!({"ok": true, "result": {}}).to_string().into_bytes())
    });
    let mut mails = MailServer::start(&["none"]);
    let port = chats.address().port();
    let settings = format!(
        "public_url = \"{HOME}\"\n[dns]\nservers = [\"{}\"]\n[smtp]\nhost = \"127.0.0.1\"\nport = {}\n\
         tls = \"none\"\nfrom = \"drops@example.com\"\n[telegram]\ntoken = \"123456:SECRET-token\"\n\
         base = \"{}\"\nallow = [\"{}\"]\n",
        knot.address(),
        mails.port,
        telegram.url(""),
        telegram.address()
    );
    let pushover = format!("pushover_base = \"https://api.pushover.net:{port}\"\n");
    let world = World::with("owner@example.com", &settings, &pushover, &[&chats]);
    // No list contains these names, so the server itself derives no changes of them.
    let names: Vec<String> = ChangeKind::ALL.map(name_of).to_vec();
    // An account may have five channels, so three accounts are needed for all kinds of channels.
    let own = [
        json!({"type": "email"}),
        json!({"type": "telegram", "chatId": "@drops"}),
        json!({"type": "webhook", "url": format!("https://{HOOKS}:{port}/watch")}),
    ];
    let channels: Vec<Value> =
        own.into_iter().chain(CASES.iter().map(|case| case.channel(port))).collect();
    let mut keys = vec![world.key.clone()];
    keys.extend(["b@example.com", "c@example.com"].map(|email| world.site.account(email, "api")));
    for (key, channels) in keys.iter().zip(channels.chunks(5)) {
        let mut client = world.server.client_with(key);
        set(&mut client, channels, json!({}));
        watch(&mut client, &names);
    }
    let World { site, server, settings, .. } = world;
    server.stop();
    append(&site, &ChangeKind::ALL);
    let server = site.serve_with(&["--config", &settings]);
    for (key, channels) in keys.iter().zip(channels.chunks(5)) {
        let mut client = server.client_with(key);
        wait::until_ok(WAIT_MAX, || {
            let sent = deliveries(&mut client);
            let is_done = |one: &Value| one["status"] == "delivered";
            match sent.len() == channels.len() && sent.iter().all(is_done) {
                true => Ok(()),
                false => Err(format!("{sent:?}\n{}", server.log())),
            }
        });
        for delivery in deliveries(&mut client) {
            assert_eq!(
                (&delivery["kind"], &delivery["names"]),
                (&json!("changes"), &json!(ChangeKind::ALL.len()))
            );
        }
    }
    let says_all = |channel: &str, text: &str, between: &str| {
        for kind in ChangeKind::ALL {
            let line = format!("{}{between}{}", name_of(kind), words_of(kind));
            assert!(text.contains(&line), "{channel} lacks {line}: {text}");
        }
        assert!(!text.contains(" more"), "{channel}: {text}");
    };
    let seen = chats.seen();
    for case in &CASES {
        let of_case = case.of(&seen);
        assert_eq!(of_case.len(), 1, "{}", case.name);
        let sent = body(of_case[0]);
        let text = sent.pointer(case.text[0]).and_then(Value::as_str).unwrap_or_default();
        says_all(case.name, text, "  ");
        assert!(sent.to_string().contains("Watchlist: 10 changes"), "{sent}");
    }
    let posted: Vec<&Seen> =
        seen.iter().filter(|seen| seen.header("host").starts_with(HOOKS)).collect();
    let hook: Value = serde_json::from_slice(&posted[0].body).expect("JSON");
    assert_eq!((posted.len(), &hook["type"]), (1, &json!("watchlist.changed")));
    let rows = hook["data"]["changes"].as_array().expect("a list");
    let kinds: Vec<_> = rows.iter().map(|row| row["kind"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ChangeKind::ALL.map(ChangeKind::as_str));
    assert_eq!((&rows[7]["dqs"], &rows[7]["dqsBefore"]), (&json!(80), &json!(70)));
    let sent: Value = serde_json::from_slice(&telegram.seen()[0].body).expect("JSON");
    says_all("telegram", sent["text"].as_str().expect("text"), "  ");
    let mail = mails.line();
    let (text, html) = (mail["text"].as_str().expect("text"), mail["html"].as_str().expect("HTML"));
    says_all("mail", text, "  ");
    assert_eq!(mail["headers"]["subject"], "Watchlist: 10 changes");
    for kind in ChangeKind::ALL {
        let link = format!("{HOME}/domain/{}", name_of(kind));
        assert!(text.contains(&link) && html.contains(&link), "{link}: {mail}");
    }
    assert!(html.contains(&format!("{HOME}/watchlist/alerts")), "{html}");
    let link = mail["headers"]["list-unsubscribe"].as_str().expect("a link");
    assert!(link.starts_with(&format!("<{HOME}/unsubscribe/")), "{link}");
    // The subject for a single change consists of its name and text, and no change is sent twice.
    server.stop();
    append(&site, &[ChangeKind::Renewed]);
    let server = site.serve_with(&["--config", &settings]);
    let mail = mails.line();
    let subject = format!("{} {}", name_of(ChangeKind::Renewed), words_of(ChangeKind::Renewed));
    assert_eq!(mail["headers"]["subject"], subject);
    wait::until(WAIT_MAX, "every channel has two messages", || {
        chats.seen().len() + telegram.seen().len() == 2 * (channels.len() - 1)
    });
    server.stop();
}

/// Returns name and kind of each change that a webhook received.
fn told(receiver: &Receiver) -> BTreeSet<(String, String)> {
    let mut told = BTreeSet::new();
    for seen in receiver.seen() {
        let message: Value = serde_json::from_slice(&seen.body).expect("JSON");
        for change in message["data"]["changes"].as_array().expect("changes") {
            let text = |member: &str| change[member].as_str().unwrap_or_default().to_owned();
            assert!(told.insert((text("domain"), text("kind"))), "twice: {message}");
        }
    }
    told
}

/// The changes result from lists and days; the test itself adds none.
#[test]
fn lists_and_days_lead_to_watch_alerts() {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(204));
    let site = Site::new();
    // A .com name is released 35 days after its drop; the last 5 of them are pending delete.
    let list = "domain,drop_date\npending.com,2026-02-10\nredeem.com,2026-02-14\nback.com,2026-03-01\nother.com,2026-02-10\n\
                late.com,2026-02-09\n";
    let list = site.write("first.csv", list);
    site.ingest(&list, "2026-03-15T00:00:00Z");
    let key = site.account("owner@example.com", "api");
    let ca_file = site.write("ca.pem", receiver.certificate());
    let settings = site.settings(&format!(
        "[webhooks]\nallow = [\"{}\"]\nca_file = {ca_file:?}\n",
        receiver.address()
    ));
    let serve = |day: &str| site.serve_with(&["--config", &settings, "--today", day]);
    let server = serve("2026-03-15");
    let mut client = server.client_with(&key);
    set(&mut client, &[json!({"type": "webhook", "url": receiver.url("/watch")})], json!({}));
    let names = ["pending.com", "redeem.com", "back.com", "fresh.com"].map(str::to_owned);
    watch(&mut client, &names);
    // The change of the day is matched already, so its watcher is told at once, and once.
    let late = format!("{WATCHLIST}?domain=late.com");
    for _ in 0..2 {
        watch(&mut client, &["late.com".to_owned()]);
        assert_eq!(client.request("DELETE", &late, &[]).status, 200);
    }
    watch(&mut client, &["late.com".to_owned()]);
    let expect = |server: &Server, expected: &[(&str, &str)]| {
        let expected: BTreeSet<_> =
            expected.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect();
        wait::until_ok(WAIT_MAX, || {
            let told = told(&receiver);
            match told == expected {
                true => Ok(()),
                false => Err(format!("{told:?}\n{}", server.log())),
            }
        });
    };
    // Ingests a list while the server runs. A name that is registered before its release was renewed.
    let list = site.write(
        "second.csv",
        "domain,drop_date,registered_again\nfresh.com,2026-03-15,\nback.com,2026-03-01,true\nloud.com,2026-03-15,\n",
    );
    site.ingest(&list, "2026-03-15T06:00:00Z");
    let mut all =
        vec![("late.com", "drops-tomorrow"), ("fresh.com", "left-zone"), ("back.com", "renewed")];
    expect(&server, &all);
    assert_eq!(deliveries(&mut client).len(), 2, "one at once, one for the list");
    server.stop();
    for (day, more) in [
        (
            "2026-03-16",
            &[
                ("pending.com", "drops-tomorrow"),
                ("redeem.com", "pending-delete"),
                ("late.com", "drops-today"),
            ][..],
        ),
        ("2026-03-17", &[("pending.com", "drops-today"), ("late.com", "available")]),
        ("2026-03-18", &[("pending.com", "available")]),
    ] {
        all.extend(more);
        let server = serve(day);
        expect(&server, &all);
        server.stop();
    }
}
