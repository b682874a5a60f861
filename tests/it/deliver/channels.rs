//! Mails through a real SMTP server, messages through a Bot API on loopback.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{PATH, World};
use crate::common::receiver::{Receiver, Reply};
use crate::common::{Site, tools};

const PASSWORD: &str = "correct horse battery staple";

/// `mail_server.py`, running.
pub struct MailServer {
    child: Child,
    lines: BufReader<ChildStdout>,
    pub port: u64,
}

impl MailServer {
    pub fn start(arguments: &[&str]) -> MailServer {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/deliver/mail_server.py");
        let mut child = Command::new(tools::python())
            .arg(script)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python can be run");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut server = MailServer { child, lines, port: 0 };
        server.port = server.line()["port"].as_u64().expect("a port");
        server
    }

    /// Waits for the next line.
    pub fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("its output can be read");
        serde_json::from_str(&line).unwrap_or_else(|err| panic!("{err}: {line:?}"))
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns settings that send Telegram messages to this service.
fn telegram(api: &Receiver) -> String {
    format!(
        "[telegram]\ntoken = \"123456:SECRET-token\"\nbase = \"{}\"\nallow = [\"{}\"]\n",
        api.url(""),
        api.address()
    )
}

/// Writes certificate and key of `127.0.0.1` to files.
fn certificate(site: &Site) -> [String; 2] {
    let pair = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]);
    let pair = pair.expect("a certificate can be created");
    let files = [("smtp.pem", pair.cert.pem()), ("smtp.key", pair.signing_key.serialize_pem())];
    files.map(|(name, text)| site.write(name, text).display().to_string())
}

#[track_caller]
fn check_mail(mail: &Value, rule: u64, id: &str) {
    let header = |name: &str| mail["headers"][name].as_str().unwrap_or_default();
    assert_eq!(
        (&mail["from"], &mail["to"]),
        (&json!("drops@example.com"), &json!(["owner@example.com"]))
    );
    assert_eq!(header("from"), "Drops <drops@example.com>");
    assert_eq!(header("to"), "owner@example.com");
    assert_eq!(header("message-id"), format!("<{id}@example.com>"));
    assert!(header("subject").starts_with("Größe <b>: 3 names on "), "{mail}");
    let link = header("list-unsubscribe");
    assert!(link.starts_with("<https://drops.example.net/unsubscribe/"), "{mail}");
    assert_eq!(header("list-unsubscribe-post"), "List-Unsubscribe=One-Click");
    assert_eq!(header("auto-submitted"), "auto-generated");
    assert!(!header("date").is_empty(), "{mail}");
    assert_eq!((&mail["type"], &mail["defects"]), (&json!("multipart/alternative"), &json!([])));
    let (text, html) = (mail["text"].as_str().expect("text"), mail["html"].as_str().expect("HTML"));
    for name in ["solar0x1.com", "solar1x1.com", "solar2x1.com"] {
        assert!(text.contains(name) && html.contains(name), "{mail}");
    }
    assert!(text.contains(&format!("(id {rule})")), "{mail}");
    assert!(html.contains("Größe &lt;b&gt;") && !html.contains("<b>"), "{mail}");
}

#[test]
fn mails_are_sent_through_a_real_server_with_tls_and_login() {
    for mode in ["starttls", "tls"] {
        let files = Site::new();
        let [certificate, key] = certificate(&files);
        let mut mails = MailServer::start(&[mode, &certificate, &key, "user", PASSWORD]);
        let password = files.write("password", format!("{PASSWORD}\n"));
        let settings = format!(
            "public_url = \"https://drops.example.net\"\n[smtp]\nhost = \"127.0.0.1\"\nport = {}\n\
             tls = \"{mode}\"\nusername = \"user\"\npassword_file = {password:?}\n\
             from = \"Drops <drops@example.com>\"\nca_file = {certificate:?}\n",
            mails.port
        );
        let mut world = World::new(&settings, &[]);
        let (rule, _) = world.rule("Größe <b>", json!({"type": "email"}));
        world.list();
        let mail = mails.line();
        let delivered = world.wait(rule, "delivered");
        check_mail(&mail, rule, delivered["id"].as_str().expect("an id"));
        assert_eq!((&mail["tls"], &mail["login"]), (&json!(true), &json!(true)), "{mode}");
        // The mail's link unsubscribes with one click.
        let link = mail["headers"]["list-unsubscribe"].as_str().expect("a link");
        let path = link.trim_matches(['<', '>']).strip_prefix("https://drops.example.net");
        let token = path.and_then(|path| path.rsplit('/').next()).expect("a token").to_owned();
        let mail_id = mail["headers"]["message-id"].as_str().expect("an id");
        assert!(token.len() == 32 && !mail_id.contains(&token), "{mail_id} {token}");
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let mut anybody = world.server.client();
        let body = b"List-Unsubscribe=One-Click";
        let answer = anybody.send_with("POST", path.expect("our address"), &form, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let shown = world.client.get(&format!("{PATH}/{rule}")).json();
        let reason = &shown["alert"]["channels"][0]["switchedOff"]["reason"];
        assert_eq!(reason, "unsubscribed", "{shown}");
        let log = world.server.stop();
        assert!(!log.contains(PASSWORD) && !log.contains(&token), "{log}");
    }
}

#[test]
fn an_unverified_mail_server_gets_no_password() {
    let files = Site::new();
    let [certificate, key] = certificate(&files);
    let mails = MailServer::start(&["starttls", &certificate, &key, "user", PASSWORD]);
    let settings = format!(
        "[smtp]\nhost = \"127.0.0.1\"\nport = {}\nusername = \"user\"\npassword = \"{PASSWORD}\"\n\
         from = \"drops@example.com\"\n",
        mails.port
    );
    let mut world = World::new(&settings, &[]);
    let (rule, _) = world.rule("r", json!({"type": "email"}));
    world.list();
    let failed = world.wait(rule, "failed");
    assert_eq!(failed["problem"], "tls", "{}", world.server.log());
}

#[test]
fn missing_mailboxes_are_given_up_and_busy_ones_retried() {
    for (email, status, attempts, problem) in [
        ("nobody@example.com", "failed", 1, json!("rejected")),
        ("later@example.com", "delivered", 2, json!(null)),
    ] {
        let mails = MailServer::start(&["none"]);
        let settings = format!(
            "[smtp]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nfrom = \"drops@example.com\"\n",
            mails.port
        );
        let mut world = World::of(email, &settings, &[]);
        let (rule, _) = world.rule("r", json!({"type": "email"}));
        world.list();
        let settled = world.wait(rule, status);
        assert_eq!((&settled["attempts"], &settled["problem"]), (&json!(attempts), &problem));
    }
}

#[test]
fn telegram_messages_respect_its_rate_limits() {
    let api = Receiver::http(|before, seen| {
        let sent: Value = serde_json::from_slice(&seen.body).expect("JSON");
        let (status, reply) = match sent["chat_id"].as_str() {
            Some("-404") => (
                400,
                json!({"ok": false, "error_code": 400, "description": "Bad Request: chat not found"}),
            ),
            _ if before == 0 => {
                (429, json!({"ok": false, "error_code": 429, "parameters": {"retry_after": 2}}))
            }
            _ => (200, json!({"ok": true, "result": {}})),
        };
        Reply::Answer(status, vec![], reply.to_string().into_bytes())
    });
    let mut world = World::new(&telegram(&api), &[]);
    let (rule, _) = world.rule("to a chat", json!({"type": "telegram", "chatId": "@drops"}));
    world.list();
    let delivered = world.wait(rule, "delivered");
    assert_eq!(delivered["attempts"], 2);
    let seen = api.seen();
    assert_eq!(
        (seen[1].method.as_str(), seen[1].target.as_str()),
        ("POST", "/bot123456:SECRET-token/sendMessage")
    );
    let sent: Value = serde_json::from_slice(&seen[1].body).expect("JSON");
    assert_eq!(
        (&sent["chat_id"], &sent["link_preview_options"]["is_disabled"]),
        (&json!("@drops"), &json!(true))
    );
    let text = sent["text"].as_str().expect("text");
    assert!(text.starts_with("to a chat: 3 names on ") && text.contains("solar0x1.com"), "{text}");
    let (rule, _) = world.rule("to nobody", json!({"type": "telegram", "chatId": -404}));
    world.list();
    let failed = world.wait(rule, "failed");
    assert_eq!((&failed["attempts"], &failed["problem"]), (&json!(1), &json!("rejected")));
    let log = world.server.stop();
    assert!(!log.contains("SECRET"), "{log}");
}

/// After a group becomes a supergroup, the message goes to the new chat at once, and the rule uses
/// that chat from then on.
#[test]
fn a_telegram_group_that_moved_is_followed() {
    const NEW: i64 = -1_001_234_567_890;
    let api = Receiver::http(|_, seen| {
        let sent: Value = serde_json::from_slice(&seen.body).expect("JSON");
        let (status, reply) = match sent["chat_id"].as_str() {
            Some("-77") => (
                400,
                json!({"ok": false, "error_code": 400,
                       "description": "Bad Request: group chat was upgraded to a supergroup chat",
                       "parameters": {"migrate_to_chat_id": NEW}}),
            ),
            _ => (200, json!({"ok": true, "result": {}})),
        };
        Reply::Answer(status, vec![], reply.to_string().into_bytes())
    });
    let mut world = World::new(&telegram(&api), &[]);
    let channel = json!({"type": "telegram", "chatId": -77});
    let (rule, _) = world.rule("to a group", channel.clone());
    let (other, _) = world.rule("to the same", channel.clone());
    let saved = json!({"kinds": [], "channels": [channel]});
    let watching = world.client.send("PUT", "/api/v1/watchlist/alerts", &saved);
    assert_eq!(watching.status, 200, "{}", watching.text());
    world.list();
    for rule in [rule, other] {
        assert_eq!(world.wait(rule, "delivered")["attempts"], 1);
    }
    let chats = |seen: &[crate::common::receiver::Seen]| {
        let chat = |seen: &crate::common::receiver::Seen| {
            let sent: Value = serde_json::from_slice(&seen.body).expect("JSON");
            sent["chat_id"].as_str().expect("an id").to_owned()
        };
        seen.iter().map(chat).collect::<Vec<_>>()
    };
    let before = api.seen().len();
    assert!(chats(&api.seen()).contains(&NEW.to_string()));
    for rule in [rule, other] {
        crate::common::wait::until_ok(std::time::Duration::from_secs(30), || {
            let shown = world.client.get(&format!("/api/v1/alerts/{rule}")).json();
            let chat = shown["alert"]["channels"][0]["chatId"].as_str();
            let is_new = chat.and_then(|chat| chat.parse().ok()) == Some(NEW);
            if is_new { Ok(()) } else { Err(shown.to_string()) }
        });
    }
    let watching = world.client.get("/api/v1/watchlist/alerts").json();
    assert_eq!(watching["alerts"]["channels"][0]["chatId"], NEW.to_string(), "{watching}");
    world.list();
    world.wait(rule, "delivered");
    world.wait(other, "delivered");
    assert!(!chats(&api.seen()[before..]).contains(&"-77".to_owned()), "stored");
}

#[test]
fn the_owner_is_mailed_when_a_channel_is_switched_off() {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(410));
    let mut mails = MailServer::start(&["none"]);
    let settings = format!(
        "public_url = \"https://drops.example.net\"\n[smtp]\nhost = \"127.0.0.1\"\nport = {}\n\
         tls = \"none\"\nfrom = \"drops@example.com\"\n",
        mails.port
    );
    let mut world = World::new(&settings, &[&receiver]);
    let secret = receiver.url("/hooks/not-to-be-mailed");
    let (rule, _) = world.rule("drops", json!({"type": "mattermost", "url": secret}));
    assert_eq!(world.client.send("POST", &format!("{PATH}/{rule}/test"), &json!({})).status, 202);
    let failed = world.wait(rule, "failed");
    assert_eq!(failed["problem"], "gone");
    let mail = mails.line();
    let subject = mail["headers"]["subject"].as_str().expect("a subject");
    assert!(subject.starts_with("Alerts stopped: Mattermost (127.0.0.1:"), "{mail}");
    assert_eq!(mail["to"], json!(["owner@example.com"]));
    let text = mail["text"].as_str().expect("text");
    assert!(text.contains("It responded that this address is gone."), "{text}");
    assert!(text.contains(&format!("https://drops.example.net/alerts/{rule}")), "{text}");
    assert!(!mail.to_string().contains("not-to-be"), "{mail}");
}
