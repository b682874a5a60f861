//! No secret is logged. A server runs with `RUST_LOG=trace`, so its libraries log as well. The
//! server gets a secret in every way in which it can be given one, and none appears in its log or
//! in the output of commands.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Client, Server, Site, wait};
use crate::pages::browser::Browser;

const DAY: &str = "2026-11-21";
const PASSWORD: &str = "correct horse battery";
const NEW_PASSWORD: &str = "staple staple battery";
const WRONG_PASSWORD: &str = "wrong horse battery";
const SMTP_PASSWORD: &str = "smtp-password-7f3a";
/// Maximum time from a test message of a rule until the last of its channels has failed.
const TRIED_MAX: Duration = Duration::from_secs(30);
const TELEGRAM_TOKEN: &str = "123456:telegram-token-91c2";

/// Secrets sent or received, each with its kind.
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn keep(&mut self, what: &'static str, secret: impl Into<String>) -> String {
        let secret = secret.into();
        assert!(secret.len() >= 8, "{what}: too short to search for: {secret:?}");
        self.0.push((what, secret.clone()));
        secret
    }

    #[track_caller]
    fn assert_absent(&self, log: &str, from: &str) {
        for (what, secret) in &self.0 {
            for spelled in [secret.clone(), secret.replace(' ', "+"), secret.replace(' ', "%20")] {
                let line = log.lines().find(|line| line.contains(&spelled));
                assert!(
                    line.is_none(),
                    "{what} in the log of {from}: {}",
                    line.unwrap_or_default()
                );
            }
        }
    }
}

fn trace(site: &Site) -> Server {
    let toml = format!(
        "public_url = \"http://127.0.0.1\"\n[web]\nplain_http = true\n\
         [smtp]\nhost = \"127.0.0.1\"\nport = 1\ntls = \"none\"\nfrom = \"dropdex@example.com\"\n\
         username = \"dropdex\"\npassword = \"{SMTP_PASSWORD}\"\n\
         [telegram]\ntoken = \"{TELEGRAM_TOKEN}\"\nbase = \"http://127.0.0.1:1\"\n\
         [webhooks]\nallow = [\"127.0.0.1/32:1\"]\npushover_base = \"https://127.0.0.1:1\"\n[log]\naccess = true\nslow_ms = 0\n"
    );
    let settings = site.settings(&toml);
    let trace = [("RUST_LOG", "trace".to_owned())];
    site.serve_in(&trace, &["--today", DAY, "--config", &settings])
}

#[test]
fn no_secret_is_logged() {
    let names = ["good.com", "fine.net", "solar.org"].map(str::to_owned);
    let site = Site::with_names(names.into_iter(), DAY);
    site.account_with_password("ann@example.com", "api", PASSWORD);
    let server = trace(&site);
    let mut secrets = Secrets(Vec::new());
    for (what, secret) in [
        ("the password", PASSWORD),
        ("the new password", NEW_PASSWORD),
        ("a wrong password", WRONG_PASSWORD),
        ("the password of the mail server", SMTP_PASSWORD),
        ("the token of the bot", TELEGRAM_TOKEN),
    ] {
        secrets.keep(what, secret);
    }
    pages(&server, &mut secrets);
    programs(&site, &server, &mut secrets);
    commands(&site, &mut secrets);
    let log = server.stop();
    // `journal dump` does show webhooks, which are signed.
    let is_hook = |(what, _): &&(&str, String)| what.contains("chat service");
    let hooks = Secrets(secrets.0.iter().filter(is_hook).cloned().collect());
    hooks.assert_absent(&site.ok(&["journal", "dump"]), "`journal dump`");
    assert!(log.contains("TRACE") && log.contains("slow query"), "nothing is traced: {log}");
    secrets.assert_absent(&log, "the server");
}

/// Log-ins, cookies, forms.
fn pages(server: &Server, secrets: &mut Secrets) {
    let mut browser = Browser::new(server);
    assert_eq!(browser.log_in("ann@example.com", WRONG_PASSWORD).status, 400);
    assert_eq!(browser.log_in("ann@example.com", PASSWORD).status, 303);
    secrets.keep("a cookie", browser.token());
    assert!(browser.is_in());
    let made = browser.post("/account/key", &[]);
    let text = made.text();
    let at = text.find("ddx_").unwrap_or_else(|| panic!("no key on the page: {text}"));
    let key = secrets.keep("a key of a page", &text[at..at + 52]);
    assert_eq!(server.client_with(&key).get("/api/v1/drops").status, 200);
    let made = browser.post("/watchlist/feed", &[]);
    let text = made.text();
    let at = text.find("/feeds/").unwrap_or_else(|| panic!("no address on the page: {text}"));
    let feed = secrets.keep("the address of a feed", &text[at + 7..at + 71]);
    assert_eq!(server.client().get(&format!("/feeds/{feed}.atom")).status, 200);
    assert_eq!(server.client().get(&format!("/feeds/{feed}.rss")).status, 404);
    let change = [("present", PASSWORD), ("password", NEW_PASSWORD)];
    assert_eq!(browser.post("/account/password", &change).status, 303);
    assert_eq!(browser.get("/?q=solar").status, 200);
    let mut other = Browser::new(server);
    other.post("/signup", &[("email", "bob@example.com"), ("password", PASSWORD)]);
    if other.cookie.is_some() {
        secrets.keep("a cookie of a new account", other.token());
    }
    // A form with a repeated field, and a malformed one.
    other.post("/login", &[("password", PASSWORD), ("password", WRONG_PASSWORD)]);
    let kind = [("Content-Type", "text/plain"), ("Sec-Fetch-Site", "same-origin")];
    server.client().send_with("POST", "/login", &kind, PASSWORD.as_bytes());
    let link = secrets.keep("a link to verify an address", "0123456789abcdef".repeat(4));
    other.get(&format!("/verify/{link}"));
    other.get(&format!("/verify?token={link}"));
    other.get(&format!("/unsubscribe/{link}"));
    let link = secrets.keep("a link that starts an account", "QUJD".repeat(30));
    other.get(&format!("/signup/{link}"));
    other.post(&format!("/signup/{link}"), &[("password", PASSWORD)]);
}

/// Uses keys in every place where one can be sent, webhooks and their secrets, chat services, and
/// deliveries that fail.
fn programs(site: &Site, server: &Server, secrets: &mut Secrets) {
    let key = secrets.keep("a key", site.new_key("ann@example.com"));
    let mut client = server.client_with(&key);
    assert_eq!(client.get("/api/v1/search?q=sol").status, 200);
    let unknown = secrets.keep("an unknown key", format!("ddx_{}", "5".repeat(48)));
    let mut nobody = server.client();
    for (name, value) in [
        ("Authorization", format!("Bearer {unknown}")),
        ("Authorization", format!("Basic {unknown}")),
        ("Authorization", format!("bearer  {key} ")),
        ("Cookie", format!("dropdex={unknown}; other={key}")),
        ("X-Api-Key", key.clone()),
    ] {
        nobody.request("GET", "/api/v1/drops", &[(name, &value)]);
        nobody.request("GET", "/api/export/drops", &[(name, &value)]);
    }
    for target in ["/api/v1/drops", "/api/v1/search", "/", "/no/such/page", "/api/export/drops"] {
        client.get(&format!("{target}?key={key}&q=&password=correct+horse+battery"));
    }
    let rule = json!({
        "name": "all", "filter": {},
        "channels": [
            {"type": "webhook", "url": "https://127.0.0.1:1/hook/of-somebody-5a5a"},
            {"type": "email"}, {"type": "telegram", "chatId": "-100"},
        ],
    });
    let chats = [
        json!({"type": "mattermost", "url": "https://127.0.0.1:1/hooks/mattermost-hook-9f21"}),
        json!({"type": "rocketchat", "url": "https://127.0.0.1:1/hooks/a/rocketchat-hook-4c07"}),
        json!({"type": "ntfy", "url": "https://127.0.0.1:1/ntfy-topic-77ab", "token": "tk_ntfy-token-63de"}),
        json!({"type": "gotify", "url": "https://127.0.0.1:1/", "token": "gotify-token-0b9c"}),
        json!({
            "type": "pushover", "token": "PushoverTokenPushoverToken1234",
            "user": "PushoverUserKeyPushoverUser567",
        }),
    ];
    let fixed = [
        json!({"type": "slack", "url": "https://hooks.slack.com/services/T/B/slack-hook-1d5e"}),
        json!({"type": "discord", "url": "https://discord.com/api/webhooks/1/discord-hook-aa10"}),
        json!({"type": "teams", "url": "https://a.logic.azure.com/workflows/a?sig=teams-hook-c3f8"}),
        json!({
            "type": "googlechat",
            "url": "https://chat.googleapis.com/v1/spaces/A/messages?key=a&token=google-hook-5e88",
        }),
    ];
    let added = client.send("POST", "/api/v1/alerts", &rule);
    assert_eq!(added.status, 201, "{}", added.text());
    let added = added.json();
    secrets.keep("the secret of a webhook", added["secret"].as_str().expect("a secret"));
    // A webhook URL with an unguessable path is a secret too.
    secrets.keep("the path of a webhook", "of-somebody-5a5a");
    let path = format!("/api/v1/alerts/{}", added["id"]);
    assert_eq!(client.send("POST", &format!("{path}/test"), &json!({})).status, 202);
    hooks(&mut client, &chats, true, secrets);
    // These services are on the Internet, so their channels are stored, shown and changed, but not
    // called.
    hooks(&mut client, &fixed, false, secrets);
    wait::until_ok(TRIED_MAX, || match server.log().matches("delivery failed").count() {
        8.. => Ok(()),
        tried => Err(format!("{tried} of 8 channels were tried")),
    });
    // The same requests over HTTP/2, whose library logs other data. Without HTTP/2 support, this
    // does nothing.
    let url = format!("http://{}/api/v1/drops?key={key}", server.address());
    let bearer = format!("Authorization: Bearer {key}");
    let cookie =
        format!("Cookie: dropdex={}", secrets.keep("a cookie over HTTP/2", "c".repeat(64)));
    let curl = Command::new("curl")
        .args(["--silent", "--http2-prior-knowledge", "--max-time", "10", "-H", &bearer])
        .args(["-H", &cookie, &url])
        .output();
    curl.expect("curl runs");
}

/// Adds a rule with chat services and tests it. No response shows the hooks of chat services.
fn hooks(client: &mut Client, channels: &[Value], is_tested: bool, secrets: &mut Secrets) {
    let mut hooks = Secrets(Vec::new());
    for (member, value) in channels.iter().filter_map(Value::as_object).flatten() {
        let value = value.as_str().expect("text");
        if matches!(member.as_str(), "token" | "user") {
            hooks.keep("a token of a chat service", value);
        } else if let Some((_, secret)) = value.rsplit_once(['/', '=']).filter(|it| it.1.len() > 8)
        {
            hooks.keep("the address of a chat service", secret);
        }
    }
    let rule = json!({"name": "chats", "filter": {}, "channels": channels});
    let added = client.send("POST", "/api/v1/alerts", &rule);
    assert_eq!(added.status, 201, "{}", added.text());
    let path = format!("/api/v1/alerts/{}", added.json()["id"]);
    let mut shown = vec![added.text().to_owned()];
    // Channels that are sent back as shown do not change.
    let kept = json!({"channels": client.get(&path).json()["alert"]["channels"]});
    let changed = client.send("PATCH", &path, &kept);
    assert_eq!(changed.status, 200, "{}", changed.text());
    shown.push(changed.text().to_owned());
    if is_tested {
        let tested = client.send("POST", &format!("{path}/test"), &json!({}));
        assert_eq!(tested.status, 202, "{}", tested.text());
        shown.push(tested.text().to_owned());
        shown.push(client.get(&format!("{path}/deliveries")).text().to_owned());
    }
    // Errors do not repeat refused input.
    for channel in channels {
        let mut wrong = channel.clone();
        wrong["type"] = json!("discord");
        if channel["type"] != "discord" {
            let rule = json!({"name": "wrong", "filter": {}, "channels": [wrong]});
            let refused = client.send("POST", "/api/v1/alerts", &rule);
            assert_eq!(refused.status, 400, "{}", refused.text());
            shown.push(refused.text().to_owned());
        }
    }
    hooks.assert_absent(&shown.join("\n"), "responses");
    secrets.0.append(&mut hooks.0);
}

/// Operator commands run beside the server, and log to their own standard error.
fn commands(site: &Site, secrets: &mut Secrets) {
    let run = |args: &[&str]| {
        let mut command = site.command(args);
        command.env("RUST_LOG", "trace");
        let output = command.output().expect("the binary starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (key, told) = run(&["account", "key", "ann@example.com"]);
    secrets.keep("a key of the command", key.trim());
    let (_, listed) = run(&["account", "list"]);
    secrets.assert_absent(&told, "`account key`");
    secrets.assert_absent(&listed, "`account list`");
}
