//! Two processes and one data folder: the second process is refused, a killed process leaves no lock
//! behind, and a process that was suspended while another took over writes nothing when it resumes.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::common::ledger::{Ledger, check};
use crate::common::process::{Finished, finish};
use crate::common::runs::{figure, seed};
use crate::common::writer::{Step, Writer};
use crate::common::{Client, Server, Site, TODAY};

const SETTINGS: &str = "[plans.api]\nrequests_per_day = 1000000000\nwrites_per_minute = 1000000\nactive_rules = 100000\n\
                        external_names = 10000\n";
const NAMES: [&str; 4] = ["known0.com", "known1.com", "known2.com", "known3.com"];
/// Number of changes by a writer between two events.
const CHANGES: usize = 20;

struct Folder {
    site: Site,
    settings: String,
    key: String,
}

impl Folder {
    fn new() -> Folder {
        let site = Site::with_names(NAMES.map(str::to_owned).into_iter(), TODAY);
        let settings = site.settings(SETTINGS);
        let key = site.account("owner@example.com", "api");
        Folder { site, settings, key }
    }

    fn serve(&self) -> Server {
        self.site.serve_with(&["--config", &self.settings, "--today", TODAY])
    }

    /// Runs a server that is expected to end by itself.
    fn serve_refused(&self) -> Finished {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--today", TODAY];
        finish(self.site.command(&arguments))
    }

    fn lock(&self) -> PathBuf {
        self.site.data().join("journal").join("LOCK")
    }
}

fn writer(mark: &str, seed: u64) -> Writer {
    Writer::new(0, mark, NAMES.map(str::to_owned).to_vec(), seed)
}

#[track_caller]
fn write(writer: &mut Writer, client: &mut Client) {
    for _ in 0..CHANGES {
        match writer.step(client).expect("the server is there") {
            Step::Done => {}
            Step::Refused(response) => panic!("{} {}", response.status, response.text()),
        }
    }
}

#[track_caller]
fn assert_ledger(ledger: &mut Ledger, server: &Server, key: &str) {
    check(&mut server.client_with(key), &mut [ledger]);
}

#[test]
fn a_second_server_is_refused_without_disturbing_the_first() {
    let seed = seed();
    let folder = Folder::new();
    let first = folder.serve();
    let mut client = first.client_with(&folder.key);
    let mut writer = writer("a", seed);
    write(&mut writer, &mut client);
    for _ in 0..3 {
        folder.serve_refused().assert_failed(1, &["in use"]);
        write(&mut writer, &mut client);
    }
    // The socket of the first server still responds, and commands use it.
    folder.site.ok(&["account", "add", "second@example.com", "--plan", "pro"]);
    let key = folder.site.new_key("second@example.com");
    assert_eq!(first.client_with(&key).get("/api/v1/alerts").status, 200);
    assert_ledger(&mut writer.ledger, &first, &folder.key);
    first.stop();
    assert_ledger(&mut writer.ledger, &folder.serve(), &folder.key);
}

#[test]
fn a_killed_server_leaves_no_lock_behind() {
    let seed = seed();
    let folder = Folder::new();
    let mut writer = writer("k", seed);
    for round in 0..figure(4, 200) {
        let server = folder.serve();
        assert_ledger(&mut writer.ledger, &server, &folder.key);
        write(&mut writer, &mut server.client_with(&folder.key));
        server.kill();
        assert!(folder.lock().exists(), "the file stays, only the lock on it is released");
        // In some rounds, an operator's command is the next process to open the folder.
        if round % 2 == 1 {
            let email = format!("after{round}@example.com");
            folder.site.ok(&["account", "add", &email, "--plan", "free"]);
        }
    }
}

#[test]
fn commands_run_locally_after_the_server_stopped() {
    let folder = Folder::new();
    folder.serve().stop();
    folder.site.ok(&["account", "add", "a@example.com", "--plan", "core"]);
    folder.serve().kill();
    // The socket's file exists, but no process listens.
    folder.site.ok(&["account", "add", "b@example.com", "--plan", "core"]);
    let list = folder.site.ok(&["account", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let emails: Vec<_> = list.as_array().expect("a list").iter().map(|it| &it["email"]).collect();
    assert_eq!(emails, ["owner@example.com", "a@example.com", "b@example.com"]);
}

/// A server that is suspended by a signal still holds the store: no other process may write, and the
/// command reports that its outcome is unknown.
#[test]
fn a_command_waits_for_a_suspended_server() {
    let seed = seed();
    let folder = Folder::new();
    let server = folder.serve();
    let mut writer = writer("s", seed);
    write(&mut writer, &mut server.client_with(&folder.key));
    server.signal("STOP");
    let finished = folder.site.run(&["account", "add", "late@example.com", "--plan", "core"]);
    finished.assert_failed(1, &[]);
    assert!(finished.stderr.contains("may or may not"), "{finished}");
    folder.serve_refused().assert_failed(1, &["in use"]);
    server.signal("CONT");
    write(&mut writer, &mut server.client_with(&folder.key));
    let list = folder.site.ok(&["account", "list"]);
    assert!(list.matches("late@example.com").count() <= 1, "{list}");
    assert_ledger(&mut writer.ledger, &server, &folder.key);
    server.kill();
    let after = folder.serve();
    assert_eq!(
        folder.site.ok(&["account", "list"]).matches("late@").count(),
        list.matches("late@").count()
    );
    assert_ledger(&mut writer.ledger, &after, &folder.key);
}

#[test]
fn a_suspended_server_writes_nothing_after_another_took_over() {
    let seed = seed();
    for round in 0..figure(2, 50) {
        slept_and_replaced(seed.wrapping_add(round as u64));
    }
}

fn slept_and_replaced(seed: u64) {
    let folder = Folder::new();
    let sleeper = folder.serve();
    let mut writer = writer("z", seed);
    write(&mut writer, &mut sleeper.client_with(&folder.key));
    // The client connects before the suspension.
    let mut woken = sleeper.client_with(&folder.key);
    assert_eq!(woken.get("/api/v1/portfolio").status, 200);
    sleeper.signal("STOP");
    fs::remove_file(folder.lock()).expect("an operator can remove the lock");
    let second = folder.serve();
    assert_ledger(&mut writer.ledger, &second, &folder.key);
    write(&mut writer, &mut second.client_with(&folder.key));
    sleeper.signal("CONT");
    for number in 0..10 {
        let name = format!("never{number}.com");
        let refused = woken.send("POST", "/api/v1/watchlist", &json!({ "domainName": name }));
        let (status, body) = refused.answer();
        assert_eq!(status, 503, "a server without its lock returns {body}");
        assert!(body["error"].is_string(), "{body}");
    }
    let left =
        |client: &mut Client| client.get("/api/v1/account").json()["requests"]["used"].take();
    let before = left(&mut woken);
    let again = woken.send("POST", "/api/v1/watchlist", &json!({ "domainName": "never.com" }));
    assert_eq!((again.status, left(&mut woken)), (503, before), "a 503 costs nothing");
    // The server may serve reads, but reports that it is not ready.
    assert_eq!(woken.get("/api/v1/portfolio").status, 200);
    let (status, ready) = sleeper.client().get("/api/ready").answer();
    assert_eq!(status, 503, "{ready}");
    assert_ne!(ready["checks"]["database"], json!("ok"), "{ready}");
    write(&mut writer, &mut second.client_with(&folder.key));
    sleeper.kill();
    write(&mut writer, &mut second.client_with(&folder.key));
    assert_ledger(&mut writer.ledger, &second, &folder.key);
    second.kill();
    assert_ledger(&mut writer.ledger, &folder.serve(), &folder.key);
}
