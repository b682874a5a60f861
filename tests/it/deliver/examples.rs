//! The specification's own library and the receivers in `data/examples`, against messages of the real
//! server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{PATH, WAIT_MAX, World};
use crate::common::receiver::{Receiver, Reply, Seen};
use crate::common::{tools, wait};
use dropdex::vocab::clock::Clock;

/// Returns a message of the real server, and the secret it is signed with.
fn message() -> (Seen, String) {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(200));
    let mut world = World::new("", &[&receiver]);
    let (_, secret) = world.webhook("größer", &receiver.url("/hook"));
    world.list();
    let seen = receiver.wait_for(1).remove(0);
    assert_eq!(seen.header("content-type"), "application/json");
    assert!(seen.header("user-agent").starts_with("dropdex/"));
    (seen, secret)
}

/// Returns what the reference library makes of a message: its type, or why it is refused.
fn verify(seen: &Seen, secret: &str) -> String {
    const VERIFY: &str = "\
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
given = json.load(sys.stdin)
try:
    print(Webhook(given['secret']).verify(given['body'], given['headers'])['type'])
except WebhookVerificationError as error:
    print('refused:', error)
";
    let headers: serde_json::Map<_, _> =
        seen.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let given = json!({"secret": secret, "body": seen.text(), "headers": headers});
    let mut child = Command::new(tools::python())
        .args(["-c", VERIFY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python can be run");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(given.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

#[test]
fn a_message_is_signed_with_the_former_secret_too() {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(200));
    let mut world = World::new("", &[&receiver]);
    let (rule, former) = world.webhook("drops", &receiver.url("/hook"));
    let path = format!("{PATH}/{rule}/secrets");
    let replace = |world: &mut World| {
        let answer = world.client.request("POST", &path, &[("Idempotency-Key", "once")]);
        assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
        answer.json()["secrets"][0].clone()
    };
    let secret = replace(&mut world);
    assert_eq!(replace(&mut world), secret, "a repeated request replaces nothing");
    assert_eq!(secret["url"], receiver.url("/hook"));
    let until = secret["formerUntil"].as_str().and_then(|it| it.parse::<DateTime<Utc>>().ok());
    let hours = (until.expect("a time") - Clock::system().now()).num_minutes() as f64 / 60.0;
    assert!((23.5..24.5).contains(&hours), "{secret}");
    world.list();
    let seen = receiver.wait_for(1).remove(0);
    assert_eq!(seen.header("webhook-signature").split(' ').count(), 2);
    for secret in [&former, secret["secret"].as_str().expect("text")] {
        assert_eq!(verify(&seen, secret), "alert.matched");
    }
}

#[test]
fn the_reference_library_accepts_only_genuine_messages() {
    let (seen, secret) = message();
    assert_eq!(verify(&seen, &secret), "alert.matched");
    for (what, forged) in seen.forgeries() {
        assert!(verify(&forged, &secret).starts_with("refused:"), "{what}");
    }
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    assert!(verify(&seen, other).starts_with("refused:"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

struct Example {
    child: Child,
    address: SocketAddr,
}

impl Example {
    fn start(file: &Path, secret: &str) -> Example {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = address.expect("loopback has free ports");
        let program = if file.extension().is_some_and(|it| it == "py") {
            tools::python()
        } else {
            tools::node()
        };
        let child = Command::new(program)
            .arg(file)
            .env("WEBHOOK_SECRET", secret)
            .env("PORT", address.port().to_string())
            .env("NODE_PATH", root().join("target/test-tools/node_modules"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        Example { child: child.expect("it can be run"), address }
    }

    /// Returns the status of its response to a message.
    fn status(&self, seen: &Seen) -> u16 {
        let mut stream = self.connect();
        let mut request = format!("POST /hook HTTP/1.1\r\nContent-Length: {}\r\n", seen.body.len());
        for (name, value) in &seen.headers {
            if !matches!(name.as_str(), "content-length" | "connection") {
                request.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        request.push_str("Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream.write_all(&seen.body).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no response: {answer:?}"))
    }

    fn connect(&self) -> TcpStream {
        wait::until_ok(WAIT_MAX, || TcpStream::connect(self.address))
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_example_receivers_accept_only_genuine_messages() {
    let (seen, secret) = message();
    for name in [
        "verify_webhook_library.py",
        "verify_webhook.py",
        "verify_webhook_library.cjs",
        "verify_webhook.cjs",
    ] {
        let file = root().join("data/examples").join(name);
        let mut example = Example::start(&file, &secret);
        assert_eq!(example.status(&seen), 204, "{name}");
        for (what, forged) in seen.forgeries() {
            assert_eq!(example.status(&forged), 401, "{what}: {name}");
        }
        assert_eq!(example.status(&seen), 204, "{name} continues");
        let _ = example.child.kill();
        let mut printed = String::new();
        let mut stdout = example.child.stdout.take().expect("piped");
        stdout.read_to_string(&mut printed).expect("UTF-8");
        assert!(printed.contains("alert.matched 3"), "{name}: {printed}");
    }
}
