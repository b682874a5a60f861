//! Backups in the folder or bucket of `[backup]`: on a schedule and by command, encrypted, pruned, and restored on an
//! empty machine.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::backup::{answers, world};
use crate::common::s3::S3Service;
use crate::common::{Site, TODAY, wait};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/backups");
/// Public key of `age-key.txt`.
const RECIPIENT: &str = "age1ddh09gnkf8ku4f8gm4y5ra4we5l903t0ky0q3gsjecyqxm35dakqc45g0d";
/// Deadline of a backup of little data.
const SOON: Duration = Duration::from_secs(180);

fn key_file() -> String {
    format!("{FIXTURES}/age-key.txt")
}

/// Returns the names of the stored backups, newest first.
fn names(site: &Site, settings: &str) -> Vec<String> {
    let printed = site.ok(&["--config", settings, "backup", "list", "--json"]);
    let listed: Vec<Value> = serde_json::from_str(&printed).expect("JSON");
    listed.iter().map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
}

/// Returns the days of the stored backups, newest first.
fn days(site: &Site, settings: &str) -> Vec<String> {
    names(site, settings).iter().map(|name| name[8..16].to_owned()).collect()
}

#[test]
fn a_server_makes_backups_on_its_schedule_and_prunes_them() {
    let (site, key, server) = world();
    let before = answers(&server, &key);
    drop(server);
    let folder = site.lists().join("backups");
    fs::create_dir(&folder).expect("made");
    let section = format!("[backup]\nfolder = {folder:?}\nkeep = 2\n");
    let settings = site.settings(&format!("{section}[metrics]\nlisten = \"127.0.0.1:0\"\n"));
    let run = |args: &[&str]| site.ok(&[&["--config", settings.as_str()], args].concat());
    assert!(run(&["backup", "list"]).contains("dropdex backup now"), "says how to make one");
    site.run(&["--config", &settings, "restore", "--check", "latest"])
        .assert_failed(1, &["no stored backups"]);
    fs::write(folder.join("notes.txt"), "mine").expect("written");
    for day in ["2026-03-10", "2026-03-11", "2026-03-12"] {
        let made: Value =
            serde_json::from_str(&run(&["--today", day, "backup", "now"])).expect("JSON");
        assert_eq!(made["counts"]["accounts"], 1, "{made}");
    }
    assert_eq!(days(&site, &settings), ["20260312", "20260311"]);

    // The first backup of the day is due when the server starts.
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    wait::until(SOON, "a backup is made", || days(&site, &settings)[0] == "20260315");
    assert_eq!(days(&site, &settings), ["20260315", "20260312"]);
    server.logged("made a backup and read it back");
    let page = || server.client().get("/status").text().to_owned();
    wait::until(SOON, "the page shows it", || page().contains("<dt>Backups</dt>"));
    assert!(!page().contains("backup failed"), "{}", page());
    let metrics = server.metrics().get("/metrics").text().to_owned();
    let gauge = |name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
    };
    assert_eq!(gauge("dropdex_backup_interval_seconds "), 86_400.0);
    assert!(gauge("dropdex_backup_stored_timestamp_seconds ") > 1_773_500_000.0);
    assert!(gauge("dropdex_backup_bytes ") > 10_000.0);
    assert_eq!(gauge("dropdex_backup_failures_total "), 0.0);
    drop(server);
    assert!(folder.join("notes.txt").exists(), "a foreign file");

    let newest = names(&site, &settings)[0].clone();
    let verified: Value = serde_json::from_str(&run(&["backup", "verify"])).expect("JSON");
    assert_eq!([&verified["name"], &verified["content"]], [newest.as_str(), "verified"]);
    let sums = std::process::Command::new("sha256sum")
        .args(["--quiet", "--check", &format!("{newest}.sha256")])
        .current_dir(&folder)
        .status();
    assert!(sums.expect("it runs").success());

    let empty = Site::new();
    let same = empty.settings(&section);
    empty.ok(&["--config", &same, "restore", &newest]);
    let server = empty.serve(TODAY);
    assert_eq!(answers(&server, &key), before);
}

#[test]
fn an_encrypted_backup_in_a_bucket_is_restored_on_an_empty_machine() {
    let mut bucket = S3Service::seaweedfs();
    let (site, key, server) = world();
    let before = answers(&server, &key);
    drop(server);
    // Three parts, so that parts are put together.
    let large: Vec<u8> =
        (0..20 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(site.data().join("changes/notes.bin"), large).expect("written");
    let section = format!(
        "[backup]\nevery_hours = 1\nencrypt_to = [{RECIPIENT:?}]\n{}",
        bucket.section("backup.s3")
    );
    let settings = site.settings(&section);
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    wait::until(SOON, "a backup is made", || !names(&site, &settings).is_empty());
    drop(server);
    let name = names(&site, &settings)[0].clone();
    assert!(name.ends_with(".tar.age"), "{name}");

    // All that is left is the settings file, and the key that the server never had.
    let empty = Site::new();
    let settings = empty.settings(&section);
    let run = |args: &[&str]| empty.run(&[&["--config", settings.as_str()], args].concat());
    let key_file = key_file();
    let with_key = |args: &[&str]| -> Value {
        let done = run(&[args, &["--identity", &key_file]].concat());
        assert_eq!(done.code, Some(0), "{done}");
        serde_json::from_str(&done.stdout).expect("JSON")
    };
    let sealed = run(&["backup", "verify", &name]);
    assert!(sealed.stdout.contains("\"content\":\"encrypted\""), "{sealed}");
    assert_eq!(with_key(&["backup", "verify"])["content"], "verified");
    run(&["restore", &name]).assert_failed(1, &["--identity FILE"]);
    let other = empty.write(
        "other.txt",
        "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n",
    );
    let other = other.to_str().expect("UTF-8");
    run(&["restore", &name, "--identity", other])
        .assert_failed(1, &[&name, "no key of the identity file"]);
    run(&["restore", "dropdex-20200101T000000Z.tar"]).assert_failed(1, &["backup list"]);
    assert!(fs::read_dir(empty.data()).expect("a folder").next().is_none(), "untouched");
    let restored = with_key(&["restore", "latest"]);
    assert_eq!(restored["counts"]["accounts"], 1, "{restored}");
    let server = empty.serve(TODAY);
    assert_eq!(answers(&server, &key), before);
    drop(server);

    // Without its bucket, a server serves, and reports the failure.
    bucket.kill();
    let server = empty.serve_with(&["--today", TODAY, "--config", &settings]);
    server.logged("the backup failed; trying again");
    server.logged("check endpoint, bucket and keys of [backup.s3]");
    wait::until(SOON, "the page shows it", || {
        server.client().get("/status").text().contains("The scheduled backup failed or is late")
    });
    assert_eq!(server.client_with(&key).get("/api/v1/drops").status, 200);
}

#[test]
fn a_killed_backup_leaves_no_backup() {
    let site = Site::with_a_name_of_each_kind();
    site.account("owner@example.com", "api");
    let folder = site.lists().join("backups");
    fs::create_dir(&folder).expect("made");
    let settings = site.settings(&format!("[backup]\nfolder = {folder:?}\nkeep = 1\n"));
    // Takes seconds to write.
    let large = site.data().join("changes/notes.bin");
    fs::create_dir_all(large.parent().expect("a folder")).expect("made");
    File::create(&large).and_then(|file| file.set_len(1 << 30)).expect("made");
    let drafts = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry"));
        entries.map(|it| it.metadata().map_or(0, |found| found.len())).max().unwrap_or(0)
    };
    let mut command = site.command(&["--config", &settings, "backup", "now"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait::until(SOON, "a part is written", || drafts(&folder) > 1 << 20);
    child.kill().expect("running");
    child.wait().expect("ended");
    assert!(drafts(&folder) > 0, "killed while writing");
    assert!(names(&site, &settings).is_empty());
    fs::remove_file(&large).expect("removed");
    site.ok(&["--config", &settings, "backup", "now"]);
    assert_eq!(names(&site, &settings).len(), 1);
}

#[test]
fn commands_for_stored_backups_need_the_section() {
    let site = Site::with_a_name_of_each_kind();
    site.account("owner@example.com", "api");
    for args in [&["backup", "now"][..], &["backup", "list"], &["restore", "--check", "latest"]] {
        site.run(args).assert_failed(1, &["[backup]", "--config"]);
    }
    site.run(&["backup"]).assert_failed(2, &["--help"]);
    site.run(&["backup", "now", "x.tar"]).assert_failed(2, &["--help"]);
    // A file may be called like a command or a stored backup.
    site.ok(&["backup", "./now"]);
    site.ok(&["restore", "--check", "./now"]);
    site.ok(&["backup", "verify", "./now"]);
    site.ok(&["backup", "dropdex-20260315T030000Z.tar"]);
    for args in [&["restore", "--check"], &["backup", "verify"]] {
        site.ok(&[&args[..], &["dropdex-20260315T030000Z.tar"]].concat());
        site.run(&[&args[..], &["dropdex-20260316T030000Z.tar"]].concat())
            .assert_failed(1, &["name a backup file"]);
    }
    let missing = site.settings("[backup]\nfolder = \"/nonexistent\"\n");
    site.run(&["--config", &missing, "backup", "now"]).assert_failed(1, &["mount its disk"]);
    // A file that the age command line encrypted.
    let sealed = format!("{FIXTURES}/94342a2.tar.age");
    site.run(&["restore", "--check", &sealed]).assert_failed(1, &["--identity FILE"]);
    site.ok(&["restore", "--check", &sealed, "--identity", &key_file()]);
}
