//! `dropdex journal` as an operator uses it: with and without a running server, on intact, torn,
//! damaged and foreign files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Server, Site, TODAY};

fn site_with_accounts(count: usize) -> Site {
    let site = Site::new();
    for number in 0..count {
        site.account(&format!("user{number}@example.com"), "api");
    }
    site
}

fn served(site: &Site) -> Server {
    let list = site.write("list.csv", "domain,drop_date\nsolar.com,2026-03-15\n");
    site.ingest(&list, "2026-03-15T00:00:00Z");
    site.serve(TODAY)
}

/// Parses the single line of JSON that a command printed.
#[track_caller]
fn line(stdout: &str) -> Value {
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    serde_json::from_str(stdout).unwrap_or_else(|err| panic!("{err}: {stdout}"))
}

fn journal(site: &Site) -> PathBuf {
    site.data().join("journal")
}

/// Returns the segment with the most records, which is the first.
fn segment(site: &Site) -> PathBuf {
    journal(site).join(format!("{:020}.seg", 1))
}

/// Returns every file of the journal with its bytes.
fn files(site: &Site) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(journal(site))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), fs::read(path).expect("readable")))
        .collect();
    all.sort();
    all
}

#[test]
fn verify_reports_an_intact_journal_and_changes_nothing() {
    let site = site_with_accounts(3);
    let before = files(&site);
    let verdict = line(&site.ok(&["journal", "verify"]));
    assert_eq!(verdict["status"], "sound");
    let mut stats = line(&site.ok(&["journal", "stats"]));
    assert_eq!(stats["counts"]["accounts"], 3);
    assert_eq!(stats["segments"].as_array().map(Vec::len), Some(1));
    assert_eq!(stats["mark"], stats["seq"], "after a clean close, the mark names the last record");
    stats["status"] = "sound".into();
    assert_eq!(verdict, stats, "the same facts, and a verdict");
    site.ok(&["journal", "dump"]);
    assert!(files(&site) == before);
}

#[test]
fn journal_commands_work_beside_a_server() {
    let site = site_with_accounts(2);
    // The first start records which lists exist, so that alerts do not fire for them.
    served(&site).stop();
    let alone = line(&site.ok(&["journal", "stats"]));
    let server = served(&site);
    let verdict = line(&site.ok(&["journal", "verify"]));
    assert_eq!(verdict["status"], "sound", "a write in progress is not a torn tail");
    let beside = line(&site.ok(&["journal", "stats"]));
    assert_eq!(beside["store_uuid"], alone["store_uuid"]);
    assert_eq!(beside["counts"], alone["counts"]);
    assert_eq!(beside["state_digest"], alone["state_digest"], "a start changes no state");
    site.account("late@example.com", "free");
    let dump = site.ok(&["journal", "dump"]);
    assert!(dump.contains("late@example.com"), "{dump}");
    server.stop();
}

#[test]
fn journal_files_are_private_to_their_owner() {
    let site = site_with_accounts(2);
    let server = served(&site);
    site.ok(&["journal", "snapshot"]);
    let backup = site.data().join("kept.backup");
    site.ok(&["journal", "backup", &backup.to_string_lossy()]);
    server.stop();
    let mut private: Vec<PathBuf> = files(&site).into_iter().map(|(path, _)| path).collect();
    private.retain(|path| !path.ends_with("LOCK"));
    assert!(private.len() >= 3, "a segment, the mark and a snapshot: {private:?}");
    private.push(backup);
    for path in private {
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}

#[test]
fn a_dump_shows_every_record_without_secrets() {
    let site = site_with_accounts(0);
    let mut command = site.command(&["account", "add", "a@example.com", "--plan", "pro"]);
    command.arg("--password-stdin").stdin(std::process::Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, b"correct horse battery").expect("written");
    drop(stdin);
    assert!(child.wait().expect("ended").success());
    let key = site.new_key("a@example.com");
    site.ok(&["account", "set-plan", "a@example.com", "api"]);

    let dump = site.ok(&["journal", "dump"]);
    for secret in ["argon2", &key, &key[4..], &key[48..], "battery"] {
        assert!(!dump.contains(secret), "{secret} in\n{dump}");
    }
    let lines: Vec<Value> =
        dump.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let seqs: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=lines.len() as u64).collect::<Vec<_>>(), "without gaps");
    let set = lines.iter().find(|line| line["events"][0]["AccountChanged"]["plan"] == "api");
    let set = set.expect("the plan was set");
    assert_eq!(set["events"], json!([{"AccountChanged": {"account": 1, "plan": "api"}}]));
    let seq = set["seq"].to_string();
    let one = site.ok(&["journal", "dump", "--from", &seq, "--to", &seq]);
    assert_eq!(line(&one), *set);
}

/// Creates a data folder with the journal of a former version.
fn former() -> Site {
    let site = Site::new();
    let from =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journals/b0c428a-snapshot");
    fs::create_dir_all(journal(&site)).expect("a folder");
    for entry in fs::read_dir(from).expect("the fixture") {
        let path = entry.expect("a file").path();
        fs::copy(&path, journal(&site).join(path.file_name().expect("a name"))).expect("copied");
    }
    fs::remove_file(journal(&site).join("state.txt")).expect("it is not a file of the journal");
    site
}

#[test]
fn a_journal_of_a_former_version_is_converted_once() {
    let site = former();
    let before = files(&site);
    for refused in [
        &["account", "list"][..],
        &["journal", "verify"],
        &["journal", "stats"],
        &["journal", "snapshot"],
    ] {
        site.run(refused).assert_failed(1, &["`dropdex journal upgrade`"]);
    }
    let after: Vec<_> =
        files(&site).into_iter().filter(|(path, _)| !path.ends_with("LOCK")).collect();
    assert_eq!(after, before, "nothing but the lock was written");
    let list = site.write("list.csv", "domain,drop_date\nsolar.com,2026-03-14\n");
    site.ok(&["ingest", list.to_str().expect("UTF-8")]);
    let serve = site.run(&["serve", "--listen", "127.0.0.1:0"]);
    serve.assert_failed(1, &["an older dropdex wrote it", "`dropdex journal upgrade`"]);
    let upgraded = line(&site.ok(&["journal", "upgrade"]));
    assert_eq!(upgraded["counts"]["accounts"], json!(4), "{upgraded}");
    let kept = PathBuf::from(upgraded["kept_as"].as_str().expect("a path"));
    assert!(kept.ends_with("journal.before-upgrade-1"), "{upgraded}");
    for (path, bytes) in before.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let kept = kept.join(path.file_name().expect("a name"));
        assert_eq!(&fs::read(&kept).expect("kept"), bytes, "{}", kept.display());
    }
    let verdict = line(&site.ok(&["journal", "verify"]));
    assert_eq!(verdict["state_digest"], upgraded["state_digest"], "{verdict}");
    assert!(verdict["seq"].as_u64() > upgraded["seq"].as_u64(), "{verdict}");
    assert!(site.ok(&["account", "list"]).contains("two@example.com"));
    site.run(&["journal", "upgrade"]).assert_failed(1, &["nothing to convert"]);
}

#[test]
fn a_record_of_a_newer_version_is_distinguished_from_damage() {
    use dropdex::journal::{Journal, Options, RecordKind, Unread};

    for (kind, payload, what) in [
        (999, &b"?"[..], "unknown record kind 999"),
        (19, b"\x7f\x00", "event 127 is unknown"),
        (19, b"\x06\x06\x01\x01\x07\x09\x01\x01", "EmailVerified: field 9 is unknown"),
    ] {
        let site = site_with_accounts(1);
        let options = Options::new(&journal(&site), std::sync::Arc::new(|| 1_790_000_000_000));
        let (journal, _) = Journal::open(options, &mut Unread).expect("opened");
        let kind = RecordKind::for_caller(kind).expect("the caller's");
        journal.append(kind, payload.to_vec(), |_| {}).expect("durable");
        journal.close().expect("closed");
        drop(journal);
        let found = site.run(&["journal", "verify"]);
        found.assert_failed(5, &[what, "a newer dropdex wrote it"]);
        assert_eq!(line(&found.stdout)["status"], "newer");
        site.run(&["account", "list"]).assert_failed(1, &[what]);
    }
}

#[test]
fn a_torn_tail_has_its_own_exit_code_and_is_cut_at_the_next_start() {
    let site = site_with_accounts(2);
    // If a header after a sector boundary announces more bytes than were written, it looks like the
    // result of a crash.
    let path = segment(&site);
    let mut bytes = fs::read(&path).expect("readable");
    bytes.extend_from_slice(&[0x5a; 8]);
    fs::write(&path, &bytes).expect("writable");
    let found = site.run(&["journal", "verify"]);
    found.assert_failed(3, &["tail", "crash"]);
    assert_eq!(line(&found.stdout)["status"], "torn");
    site.ok(&["account", "list"]);
    let verdict = line(&site.ok(&["journal", "verify"]));
    assert_eq!((&verdict["status"], &verdict["counts"]["accounts"]), (&json!("sound"), &json!(2)));
}

#[test]
fn damage_is_refused_with_its_place_until_repaired() {
    let site = site_with_accounts(4);
    let path = segment(&site);
    let mut bytes = fs::read(&path).expect("readable");
    let at = bytes.len() / 2;
    bytes[at] ^= 4;
    fs::write(&path, &bytes).expect("writable");
    let before = files(&site);

    let found = site.run(&["journal", "verify"]);
    found.assert_failed(4, &[".seg", "at byte", "record", "acknowledged"]);
    let verdict = line(&found.stdout);
    assert_eq!(verdict["status"], "damaged");
    for command in [&["account", "list"][..], &["journal", "stats"]] {
        site.run(command).assert_failed(1, &[".seg", "acknowledged", "backup"]);
    }
    assert!(files(&site) == before, "nothing was changed");

    let error = verdict["error"].as_str().expect("a text");
    let seq: u64 = error
        .split("record ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("no record in {error}"));
    let keep = (seq - 1).to_string();
    site.run(&["journal", "repair", "--truncate-after", &keep])
        .assert_failed(2, &["--i-accept-loss"]);
    assert!(files(&site) == before, "nothing was changed");
    let cut = ["journal", "repair", "--truncate-after", &keep, "--i-accept-loss"];
    let report = line(&site.ok(&cut));
    assert_eq!(report["last_seq"], seq - 1);
    let copy = report["copied_to"].as_str().expect("a path").to_owned();
    let copied = fs::read(Path::new(&copy).join(path.file_name().expect("a name")));
    assert!(copied.expect("copied") == bytes, "the folder as it was");
    assert_eq!(line(&site.ok(&["journal", "verify"]))["status"], "sound");
    site.account("after@example.com", "pro");
}

#[test]
fn a_missing_mark_is_reported_and_rebuilt_on_demand() {
    let site = site_with_accounts(2);
    let seq = line(&site.ok(&["journal", "stats"]))["seq"].to_string();
    fs::remove_file(journal(&site).join("MARK")).expect("removed");
    site.run(&["journal", "verify"]).assert_failed(4, &["MARK", "missing", "repair"]);
    site.run(&["account", "list"]).assert_failed(1, &["MARK", "missing", "repair"]);
    site.ok(&["journal", "repair", "--truncate-after", &seq, "--i-accept-loss"]);
    let verdict = line(&site.ok(&["journal", "verify"]));
    assert_eq!((&verdict["status"], &verdict["counts"]["accounts"]), (&json!("sound"), &json!(2)));
}

#[test]
fn a_damaged_snapshot_is_reported_and_an_intact_one_restores() {
    let site = site_with_accounts(3);
    let saved = line(&site.ok(&["journal", "snapshot"]));
    let path = PathBuf::from(saved["path"].as_str().expect("a path"));
    let whole = fs::read(&path).expect("readable");
    // The snapshot can be restored like any backup.
    let other = Site::new();
    let restored = other.ok(&["journal", "restore", saved["path"].as_str().expect("a path")]);
    assert_eq!(line(&restored)["state_digest"], saved["state_digest"]);

    let mut bytes = whole.clone();
    bytes[whole.len() / 2] ^= 1;
    fs::write(&path, bytes).expect("writable");
    let found = site.run(&["journal", "verify"]);
    found.assert_failed(3, &["snapshot", "damaged", "the log still has its data"]);
    let verdict = line(&found.stdout);
    assert_eq!(verdict["status"], "snapshot_damaged");
    assert_eq!(verdict["state_digest"], saved["state_digest"], "the log still has the data");
    site.ok(&["account", "list"]);
}

#[test]
fn a_newer_format_is_refused_by_its_version() {
    let site = site_with_accounts(1);
    let path = segment(&site);
    let mut bytes = fs::read(&path).expect("readable");
    bytes[8..12].copy_from_slice(&[9, 0, 9, 0]);
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, &bytes).expect("writable");
    site.run(&["journal", "verify"]).assert_failed(5, &["format 9", "later"]);
    site.run(&["account", "list"]).assert_failed(1, &["format 9", "later"]);
}

#[test]
fn a_backup_under_a_running_server_restores_the_same_state() {
    let site = site_with_accounts(5);
    let server = served(&site);
    let file = site.data().join("../backup.ddx");
    let file = file.to_str().expect("temporary paths are UTF-8");
    let saved = line(&site.ok(&["journal", "backup", file]));
    let digest = saved["state_digest"].clone();
    site.run(&["journal", "backup", file])
        .assert_failed(1, &["already exists", "nothing was changed"]);
    site.run(&["journal", "restore", file]).assert_failed(1, &["server", "stop it"]);
    server.stop();
    site.run(&["journal", "restore", file])
        .assert_failed(1, &["there is a journal", "move it away"]);

    let other = Site::new();
    let restored = line(&other.ok(&["journal", "restore", file]));
    assert_eq!(restored["state_digest"], digest);
    assert_eq!(restored["counts"], saved["counts"]);
    assert_eq!(line(&other.ok(&["journal", "stats"]))["state_digest"], digest);
    // The restored store works like any other: it accepts writes, and a new key revokes an old one.
    other.new_key("user3@example.com");
    let list = other.ok(&["account", "list"]);
    assert_eq!(list.lines().count(), 1 + 5, "{list}");
}

#[test]
fn a_damaged_backup_is_refused_and_leaves_nothing() {
    let site = site_with_accounts(3);
    let file = site.data().join("backup.ddx");
    let file = file.to_str().expect("temporary paths are UTF-8");
    site.ok(&["journal", "backup", file]);
    let whole = fs::read(file).expect("readable");
    for at in [0, 20, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(file, &bytes).expect("writable");
        let other = Site::new();
        other.run(&["journal", "restore", file]).assert_failed(1, &["backup.ddx"]);
        assert!(!other.data().join("journal").join(format!("{:020}.seg", 1)).exists());
        fs::write(file, &whole).expect("writable");
        other.ok(&["journal", "restore", file]);
    }
    fs::write(file, &whole[..whole.len() - 1]).expect("writable");
    Site::new().run(&["journal", "restore", file]).assert_failed(1, &["backup.ddx"]);
}

#[test]
fn a_backup_that_cannot_be_served_leaves_no_journal() {
    use dropdex::journal::{Position, fs::Disk, write_backup};

    let site = Site::new();
    let file = site.data().join("backup.ddx");
    let position = Position { seq: 9, chain: [7; 16], epoch: 3 };
    write_backup(&Disk, &file, *b"0123456789abcdef", position, |write| write(b"\x7f\x00"))
        .expect("written");
    let file = file.to_str().expect("temporary paths are UTF-8");
    for _ in 0..2 {
        site.run(&["journal", "restore", file])
            .assert_failed(1, &["data of an account precedes all accounts"]);
        assert!(!site.data().join("journal").exists());
    }
}

#[test]
fn a_snapshot_can_be_requested() {
    let site = site_with_accounts(2);
    let saved = line(&site.ok(&["journal", "snapshot"]));
    let stats = line(&site.ok(&["journal", "stats"]));
    assert_eq!(stats["snapshots"][0]["state_digest"], saved["state_digest"]);
    assert_eq!(stats["state_digest"], saved["state_digest"]);
}

#[test]
fn every_command_reports_a_missing_journal() {
    let site = Site::new();
    let file = site.data().join("backup.ddx");
    let file = file.to_str().expect("temporary paths are UTF-8");
    for command in [
        &["journal", "verify"][..],
        &["journal", "stats"],
        &["journal", "dump"],
        &["journal", "backup", file],
        &["journal", "snapshot"],
        &["journal", "repair", "--truncate-after", "1", "--i-accept-loss"],
    ] {
        site.run(command).assert_failed(1, &["no journal", "--data"]);
    }
    site.run(&["journal", "restore", file])
        .assert_failed(1, &["cannot read the backup", "backup.ddx"]);
    site.run(&["journal", "tidy"]).assert_failed(2, &[]);
}
