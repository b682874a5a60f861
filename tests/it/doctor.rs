//! `dropdex doctor`: what it finds in sound and in broken installations, and what it advises.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::common::Site;
use crate::common::receiver::{Receiver, Reply};

const TODAY: &str = "2026-03-15";

/// Runs the command with these settings. Returns its exit code and findings.
fn doctor(site: &Site, settings: &str, args: &[&str]) -> (Option<i32>, Vec<Value>) {
    let settings = site.settings(settings);
    let finished =
        site.run(&[&["--today", TODAY, "--config", &settings, "doctor", "--json"], args].concat());
    let findings = serde_json::from_str(&finished.stdout);
    (finished.code, findings.unwrap_or_else(|err| panic!("{err}: {finished}")))
}

/// Returns the findings of a check as `level: what -> advice`.
fn of(findings: &[Value], check: &str) -> Vec<String> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let found = findings.iter().filter(|finding| finding["check"] == check);
    found
        .map(|it| format!("{}: {} -> {}", text(it, "level"), text(it, "what"), text(it, "advice")))
        .collect()
}

#[track_caller]
fn assert_one(findings: &[Value], check: &str, words: &[&str]) {
    let found = of(findings, check);
    let has_all = |finding: &String| words.iter().all(|word| finding.contains(word));
    assert!(found.iter().any(has_all), "{check}: {words:?} in {found:#?}");
}

#[test]
fn a_new_installation_has_warnings_and_a_served_one_has_none_about_itself() {
    let site = Site::new();
    let (code, findings) = doctor(&site, "", &["--offline"]);
    assert_eq!(code, Some(0), "{findings:#?}");
    for (check, words) in [
        ("server", "warning: no server runs"),
        ("index", "there is no index yet"),
        ("lists", "dropdex sources enable --all-free"),
        ("backup", "there was no backup yet"),
    ] {
        assert_one(&findings, check, &[words]);
    }
    let site = Site::with_a_name_of_each_kind();
    let _server = site.serve(TODAY);
    site.ok(&["--today", TODAY, "backup", site.lists().join("all.tar").to_str().expect("UTF-8")]);
    let (code, findings) = doctor(&site, "", &["--offline"]);
    let unwell: Vec<&Value> = findings.iter().filter(|it| it["level"] != "ok").collect();
    assert_eq!((code, unwell.len()), (Some(0), 0), "{unwell:#?}");
    for check in
        ["settings", "server", "folders", "index", "space", "memory", "clock", "tls", "lists"]
    {
        assert_one(&findings, check, &["ok: "]);
    }
}

#[test]
fn reasons_why_a_server_does_not_start_are_problems() {
    let site = Site::with_a_name_of_each_kind();
    site.account("owner@example.com", "api");
    let journal = fs::read_dir(site.data().join("journal")).expect("a journal");
    let files = journal.map(|file| file.expect("readable").path());
    let segment = files.into_iter().find(|path| path.extension().is_some_and(|it| it == "seg"));
    let segment = segment.expect("a segment");
    let mut bytes = fs::read(&segment).expect("readable");
    bytes[100] ^= 1;
    fs::write(&segment, bytes).expect("written");
    fs::remove_file(site.index().join("CURRENT")).expect("removed");
    let (code, findings) = doctor(&site, "[backup]\nfolder = \"/none\"\n", &["--offline"]);
    assert_eq!(code, Some(3));
    assert_one(&findings, "journal", &["problem: ", "dropdex journal verify"]);
    assert_one(&findings, "lists", &["no index of them", "dropdex rebuild"]);
    assert_one(&findings, "backup", &["problem: backup.folder: /none"]);
    let (code, findings) = doctor(&site, "[server]\nmax_reeds = 1\n", &["--offline"]);
    assert_eq!((code, findings.len()), (Some(10), 1));
    assert_one(&findings, "settings", &["problem: ", "did you mean max_reads?"]);
}

#[test]
fn each_fault_is_a_problem_with_advice() {
    let site = Site::with_a_name_of_each_kind();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = taken.local_addr().expect("an address");
    drop(taken);
    let publisher = Receiver::http(|_, _| Reply::status(404));
    fs::write(site.lists().join("cert.pem"), "no certificate").expect("written");
    let settings = format!(
        "[server]\ntls_certificate = \"cert.pem\"\ntls_key = \"cert.pem\"\n\
         [smtp]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nfrom = \"a@b.example\"\n\
         [sources]\nallow = [\"{closed}\", \"{}\"]\n\
         [sources.near]\nurl = \"{}\"\n[sources.gone]\nurl = \"http://{closed}/list\"\n",
        closed.port(),
        publisher.address(),
        publisher.url("/list"),
    );
    let (code, findings) = doctor(&site, &settings, &[]);
    assert_eq!(code, Some(3), "{findings:#?}");
    for (check, words) in [
        ("tls", &["problem: ", "server.tls_certificate"][..]),
        ("mail", &["problem: ", &closed.to_string(), "password_file"]),
        ("reach", &["ok: ", &publisher.address().to_string()]),
        ("reach", &["problem: ", &closed.to_string(), "firewall"]),
    ] {
        assert_one(&findings, check, words);
    }

    let open =
        |mode| fs::set_permissions(site.data(), fs::Permissions::from_mode(mode)).expect("its own");
    open(0o777);
    let (code, findings) = doctor(&site, "", &["--offline"]);
    open(0o750);
    assert_eq!(code, Some(3));
    assert_one(&findings, "folders", &["problem: ", "all users of this machine", "chmod o-w"]);

    let settings = site.settings("");
    let late = ["--today", "2026-12-20", "--config", &settings, "doctor", "--offline"];
    site.run(&late).assert_failed(3, &["problems: 1"]);
    let text = site.run(&late).stdout;
    assert!(text.contains("PROBLEM  lists") && text.contains("hours old"), "{text}");
    assert!(text.contains("-> ingest a newer one"), "{text}");

    let early = ["--today", "2020-10-01", "--config", &settings, "doctor", "--offline", "--json"];
    let early: Vec<Value> = serde_json::from_str(&site.run(&early).stdout).expect("JSON");
    assert_one(&early, "clock", &["problem: ", "is before the newest list", "timedatectl"]);

    fs::write(site.index().join("CURRENT"), "nonsense").expect("written");
    let (code, findings) = doctor(&site, "", &["--offline"]);
    assert_eq!(code, Some(3));
    assert_one(&findings, "index", &["problem: ", "dropdex rebuild"]);
}
