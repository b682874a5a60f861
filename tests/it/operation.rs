//! What operators see: errors at startup, the log, file owners and modes, weak passwords.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Site, TODAY, runs, tools, wait};
use crate::pages::browser::Browser;

const PASSWORD: &str = "correct horse battery";
const SOON: Duration = Duration::from_secs(60);

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

#[test]
fn log_ins_keys_and_changes_of_accounts_are_in_the_security_log() {
    let site = Site::with_a_name_of_each_kind();
    site.account_with_password("ann@example.com", "api", PASSWORD);
    let toml = "[web]\nplain_http = true\n[metrics]\nlisten = \"127.0.0.1:0\"\n";
    let settings = site.settings(toml);
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let mut ann = Browser::new(&server);
    assert_eq!(ann.log_in("ann@example.com", "wrong horse battery").status, 400);
    assert_eq!(ann.log_in("nobody@example.com", PASSWORD).status, 400);
    assert_eq!(ann.log_in("ann@example.com", PASSWORD).status, 303);
    assert_eq!(ann.post("/account/key", &[]).status, 200);
    let change = [("present", PASSWORD), ("password", "staple staple battery")];
    assert_eq!(ann.post("/account/password", &change).status, 303);
    site.account("bob@example.com", "free");
    site.ok(&["account", "set-plan", "bob@example.com", "core"]);
    site.ok(&["account", "disable", "bob@example.com"]);
    let failed = "dropdex_security_events_total{event=\"log_in_failed\"} 2";
    assert!(server.metrics().get("/metrics").text().contains(failed));
    let log = server.stop();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(" security ")).collect();
    for wanted in [
        "event=log_in_failed email=ann@example.com address=127.0.0.1",
        "event=log_in_failed email=nobody@example.com address=127.0.0.1",
        "event=log_in email=ann@example.com address=127.0.0.1",
        "event=key_made email=ann@example.com address=127.0.0.1",
        "event=password_changed email=ann@example.com address=127.0.0.1",
        "event=account_added email=bob@example.com address=local detail=plan free",
        "event=plan_set email=bob@example.com address=local detail=plan core",
        "event=account_disabled email=bob@example.com address=local",
    ] {
        let is_there = lines.iter().any(|line| line.contains(wanted));
        assert!(is_there, "{wanted} is not in\n{}", lines.join("\n"));
    }
}

#[test]
fn a_deleted_account_is_erased_after_seven_days() {
    let site = Site::with_a_name_of_each_kind();
    let key = site.account("ann@example.com", "api");
    let other = site.account("bob@example.com", "api");
    let server = site.serve(TODAY);
    let status = |key: &str| server.client_with(key).get("/api/v1/watchlist").status;
    let body = serde_json::json!({ "domainName": "kept-by-ann.org" });
    assert_eq!(server.client_with(&key).send("POST", "/api/v1/watchlist", &body).status, 201);
    let account = |command: &str| site.ok(&["account", command, "ann@example.com"]);
    assert!(account("delete").contains("is erased on 2026-03-22"));
    assert_eq!([status(&key), status(&other)], [401, 200]);
    assert!(site.ok(&["account", "list"]).contains("deleted"));
    site.run(&["account", "key", "ann@example.com"]).assert_failed(1, &["account restore"]);
    account("restore");
    assert_eq!(status(&key), 200);
    account("delete");
    let log = server.stop();
    assert!(log.contains("event=account_restored email=ann@example.com"), "{log}");

    // A day early, then a day late.
    let server = site.serve("2026-03-21");
    assert!(site.ok(&["account", "list"]).contains("ann@example.com"));
    drop(server);
    let server = site.serve("2026-03-23");
    wait::until(SOON, "the account is erased", || {
        !site.ok(&["account", "list"]).contains("ann@example.com")
    });
    assert_eq!(server.client_with(&key).get("/api/v1/watchlist").status, 401);
    assert_eq!(server.client_with(&other).get("/api/v1/watchlist").status, 200);
    server.logged("event=account_erased");
    site.run(&["account", "restore", "ann@example.com"]).assert_failed(1, &["no account"]);
    // A journal that begins with a backup has nothing of the account.
    let backup = site.lists().join("after.ddx").to_str().expect("UTF-8").to_owned();
    site.ok(&["journal", "backup", &backup]);
    let compact = Site::new();
    compact.ok(&["journal", "restore", &backup]);
    let journal = fs::read_dir(compact.data().join("journal")).expect("a folder");
    for file in journal.map(|it| it.expect("an entry").path()).filter(|path| path.is_file()) {
        let bytes = fs::read(&file).expect("readable");
        for trace in ["ann@example", "kept-by-ann"] {
            let is_there = bytes.windows(trace.len()).any(|it| it == trace.as_bytes());
            assert!(!is_there, "{trace} is in {}", file.display());
        }
    }
    site.ok(&["account", "add", "ann@example.com", "--plan", "free"]);
}

#[test]
fn a_json_log_contains_only_json_and_begins_with_the_version() {
    let site = Site::with_a_name_of_each_kind();
    let server = site.serve_with(&["--today", TODAY, "--log-json"]);
    let log = server.stop();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}")))
        .collect();
    assert_eq!(lines[0]["fields"]["version"], env!("CARGO_PKG_VERSION"), "{}", lines[0]);
    // An error that ends the process is also a JSON line, once the settings are read.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    for args in [
        &["serve", "--log-json", "--listen", &address][..],
        &["serve", "--log-json", "--config", "/nonexistent.toml"],
    ] {
        let failed = site.run(args);
        assert!(matches!(failed.code, Some(10 | 11)), "{failed}");
        for line in failed.stderr.lines() {
            let line: Value =
                serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"));
            assert!(line["level"].is_string(), "{line}");
        }
    }
}

#[test]
fn a_log_for_journald_has_no_times_of_its_own() {
    let site = Site::with_a_name_of_each_kind();
    let path = site.lists().join("log");
    let file = File::create(&path).expect("made");
    let found = file.metadata().expect("there");
    let run = |stream: String| {
        let mut command = site.command(&["serve", "--listen", "256.0.0.1:1"]);
        let file = File::options().append(true).open(&path).expect("there");
        command.env("JOURNAL_STREAM", stream).stderr(file);
        assert!(!command.status().expect("it runs").success());
        let text = fs::read_to_string(&path).expect("readable");
        text.lines().rfind(|line| line.contains("dropdex starts")).expect("a line").to_owned()
    };
    let line = run(format!("{}:{}", found.dev(), found.ino()));
    assert!(line.trim_start().starts_with("INFO"), "{line}");
    let line = run("1:1".to_owned());
    assert!(line.starts_with('2'), "standard error is not that stream: {line}");
}

#[test]
fn a_taken_port_is_named_with_the_remedy() {
    let site = Site::with_a_name_of_each_kind();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let port = format!("port {} is in use", address.port());
    let failed = site.run(&["serve", "--listen", &address.to_string()]);
    failed.assert_failed(11, &[&address.to_string(), &port, "ss -ltnp", "--listen"]);
}

#[test]
fn commands_of_root_do_not_write_where_another_user_serves() {
    let site = Site::with_a_name_of_each_kind();
    let data = site.data();
    let list = site.write("new.csv", "domain,drop_date\nnew.com,2026-03-14\n");
    let list = list.to_str().expect("UTF-8");
    let backup = site.lists().join("b.tar");
    let backup = backup.to_str().expect("UTF-8");
    let folders = [data.clone(), data.join("corpus"), site.index()];
    if folders.iter().any(|folder| chown(folder, Some(12_345), None).is_err()) {
        runs::say("not root: no file can be given to another user");
        return;
    }
    let add = ["account", "add", "a@example.com", "--plan", "free"];
    for args in [
        &add[..],
        &["ingest", list],
        &["rebuild"],
        &["sources", "enable", "psl", "--yes"],
        &["index", "rollback"],
        &["journal", "restore", list],
        &["backup", backup],
        &["restore", backup],
    ] {
        let failed = site.run(args);
        failed.assert_failed(12, &["runs as root", "12345", "sudo -u"]);
    }
    assert!(!data.join("journal").exists() && !data.join("sources").exists());
    // Reading is allowed, and everything is allowed if root owns the files.
    site.ok(&["corpus", "verify"]);
    site.ok(&["index", "list"]);
    folders.iter().for_each(|folder| chown(folder, Some(0), None).expect("given back"));
    site.ok(&add);
    site.ok(&["ingest", list]);
    // A new data folder below a folder of the service's user would belong to root.
    let home = site.lists().join("home");
    fs::create_dir(&home).expect("made");
    chown(&home, Some(12_345), None).expect("root");
    let new = home.join("data");
    let failed = site.run(&["--data", new.to_str().expect("UTF-8"), "account", "list"]);
    failed.assert_failed(12, &["runs as root"]);
    assert!(!new.exists());
}

/// Collects the modes of everything below a folder.
fn modes(folder: &Path, found: &mut Vec<(PathBuf, u32)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let facts = fs::symlink_metadata(&path).expect("it is there");
        if facts.is_dir() {
            modes(&path, found);
        }
        found.push((path, facts.permissions().mode() & 0o777));
    }
}

#[test]
fn other_users_can_read_nothing() {
    let site = Site::new();
    let settings = site.settings("[inbox]\nseconds = 1\n");
    let serve = || site.serve_with(&["--today", TODAY, "--config", &settings]);
    site.account("owner@example.com", "api");
    let rows = "domain,drop_date\nnew.com,2026-03-14\nbad name,2026-03-14\n";
    let list = site.write("new.csv", format!("{rows}{}", "good.com,2026-03-14\n".repeat(9)));
    site.ok(&["--today", TODAY, "ingest", list.to_str().expect("UTF-8")]);
    let server = serve();
    let inbox = site.data().join("inbox");
    wait::until(SOON, "the inbox", || inbox.join("refused").exists());
    fs::write(inbox.join("no-list.csv"), "nothing to read here\n").expect("written");
    let refused = || fs::read_dir(inbox.join("refused")).expect("it is there").count();
    wait::until(SOON, "the list and a note", || refused() == 2);
    drop(server);
    let mut found = Vec::new();
    modes(&site.data(), &mut found);
    modes(&site.index(), &mut found);
    assert!(found.len() > 30, "{found:?}");
    // The list itself has the mode that its writer set.
    found.retain(|(path, mode)| mode & 0o027 != 0 && !path.ends_with("no-list.csv"));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn links_that_replace_locks_are_not_followed() {
    let site = Site::with_a_name_of_each_kind();
    let list = site.write("new.csv", "domain,drop_date\nnew.com,2026-03-14\n");
    let precious = site.write("precious", "precious");
    let (data, index) = (site.data(), site.index());
    for (lock, args) in [
        (data.join("corpus/LOCK"), &["ingest", list.to_str().expect("UTF-8")][..]),
        (index.join("REBUILD.lock"), &["rebuild"]),
        (data.join("journal/LOCK"), &["account", "add", "a@example.com", "--plan", "free"]),
    ] {
        fs::create_dir_all(lock.parent().expect("a folder")).expect("made");
        let _ = fs::remove_file(&lock);
        symlink(&precious, &lock).expect("linked");
        site.run(args).assert_failed(1, &["symbolic links"]);
        assert_eq!(fs::read_to_string(&precious).expect("readable"), "precious", "{lock:?}");
        fs::remove_file(&lock).expect("removed");
        site.ok(args);
    }
}

#[test]
fn exit_codes_tell_wrong_settings_addresses_and_folders() {
    let site = Site::with_a_name_of_each_kind();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address");
    let mail =
        "[smtp]\nhost = \"127.0.0.1\"\nfrom = \"a@b.example\"\ntls = \"none\"\nusername = \"a\"\n";
    for (settings, code, words) in [
        (&format!("{mail}password_file = \"/none\"\n")[..], 10, "smtp.password_file"),
        ("[telegram]\ntoken_file = \"/none\"\n", 10, "/none: No such file"),
        ("[log]\nlevel = \"verbose\"\n", 10, "verbose"),
        ("[server]\ntls_certificate = \"/none\"\ntls_key = \"/none\"\n", 10, "/none"),
        ("[tls]\nacme = true\nhosts = [\"a.example\"]\nca_file = \"/none\"\n", 10, "/none"),
        ("listen = \"0.0.0.0:0\"\n[web]\nplain_http = true\n", 10, "only allowed on loopback"),
        (&format!("[metrics]\nlisten = \"{taken}\"\n"), 11, "[metrics] listen"),
        ("data = \"/dev/null\"\n", 12, "/dev/null is not a folder"),
    ] {
        let given = site.settings(settings);
        let mut command = site.command(&["serve", "--config", &given]);
        if settings.starts_with("data") {
            command.env_remove("DROPDEX_DATA");
        }
        if !settings.starts_with("listen") {
            command.env("DROPDEX_LISTEN", "127.0.0.1:0");
        }
        let failed = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&failed.stderr);
        assert_eq!(failed.status.code(), Some(code), "{settings}: {said}");
        assert!(said.contains(words), "{settings}: {said}");
    }
    let mut wrong = site.command(&["index", "list"]);
    let wrong = wrong.env("DROPDEX_LISTEN", "8080").output().expect("it runs");
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(10), "{said}");
    assert!(said.contains("the environment variable DROPDEX_LISTEN is wrong: listen: "), "{said}");
}

#[test]
fn a_world_writable_data_folder_is_refused() {
    let site = Site::with_a_name_of_each_kind();
    let data = site.data();
    let set = |mode| fs::set_permissions(&data, Permissions::from_mode(mode)).expect("set");
    set(0o777);
    let remedy = format!("chmod o-w {}", data.display());
    for args in [&["serve"][..], &["account", "list"], &["rebuild"], &["backup", "b.tar"]] {
        site.run(args).assert_failed(12, &["all users of this machine", &remedy]);
    }
    set(0o770);
    site.ok(&["account", "list"]);
}

#[test]
fn a_password_is_not_sent_to_the_socket_of_another_user() {
    let site = Site::with_a_name_of_each_kind();
    let data = site.data();
    let socket = data.join("admin.sock");
    let script = "import os, socket, sys\n\
                  listener = socket.socket(socket.AF_UNIX)\n\
                  listener.bind(sys.argv[1])\n\
                  os.chown(sys.argv[1], 12345, 12345)\n\
                  os.setuid(12345)\n\
                  listener.listen()\n\
                  print('ready', flush=True)\n\
                  print(listener.accept()[0].recv(9), flush=True)\n";
    if chown(site.lists(), Some(0), None).is_err() {
        runs::say("not root: no process can be of another user");
        return;
    }
    let mut stranger = Command::new(tools::python())
        .args(["-c", script])
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut said = BufReader::new(stranger.stdout.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("readable");
    assert_eq!(line, "ready\n");
    let failed = site.run(&["account", "list"]);
    failed.assert_failed(1, &["12345", "nothing was sent to it"]);
    line.clear();
    said.read_line(&mut line).expect("readable");
    assert_eq!(line, "b''\n", "the connection was closed without a byte");
    stranger.wait().expect("it ended");
    // A server of the folder's owner gets the password.
    fs::remove_file(&socket).expect("removed");
    let server = site.serve(TODAY);
    site.ok(&["account", "list"]);
    server.stop();
}

#[test]
fn weak_passwords_are_refused_on_the_command_line_too() {
    let site = Site::new();
    for (password, words) in [
        ("password", "too common"),
        ("aaaaaaaa", "too common"),
        ("ann@example.com", "too common"),
        ("short", "8 to 128"),
    ] {
        let mut command = site.command(&[
            "account",
            "add",
            "ann@example.com",
            "--plan",
            "free",
            "--password-stdin",
        ]);
        command.stdin(File::open(site.write("typed", password)).expect("there"));
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{password}: {said}");
    }
    site.account_with_password("ann@example.com", "free", PASSWORD);
    let set = ["account", "set-password", "ann@example.com", "--password-stdin"];
    let mut command = site.command(&set);
    command.stdin(File::open(site.write("typed", "password\n")).expect("there"));
    assert!(!command.status().expect("it runs").success());
}

#[test]
fn damaged_and_missing_batches_are_named_with_the_remedy() {
    let site = Site::with_a_name_of_each_kind();
    let list = site.write("two.csv", "domain,drop_date\ntwo.com,2026-03-14\n");
    site.ok(&["ingest", list.to_str().expect("UTF-8")]);
    let sound: Value = serde_json::from_str(&site.ok(&["corpus", "verify"])).expect("JSON");
    assert_eq!((&sound["status"], &sound["lists"]), (&"sound".into(), &2.into()));
    let path = site.data().join("corpus/batch-0000000001.ddb");
    let whole = fs::read(&path).expect("readable");
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("written");
    let remedy = "restore the file from a backup, or remove it and all later ones";
    site.run(&["corpus", "verify"]).assert_failed(4, &["batch-0000000001.ddb", remedy]);
    fs::remove_file(&path).expect("removed");
    site.run(&["corpus", "verify"]).assert_failed(4, &["batch 1 is missing"]);
}

#[test]
fn mistyped_environment_variables_are_reported() {
    let site = Site::with_a_name_of_each_kind();
    let mut command = site.command(&["index", "list"]);
    command.env("DROPDEX_DATAA", "/nowhere").env("DROPDEX_SMPT_PASSWORD", "x");
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("DROPDEX_DATAA has no effect; did you mean DROPDEX_DATA?"), "{said}");
    assert!(said.contains("did you mean DROPDEX_SMTP_PASSWORD?"), "{said}");
}

#[test]
fn empty_environment_variables_are_absent() {
    let site = crate::common::Site::new();
    let mut command = site.command(&["journal", "stat"]);
    for name in
        ["DROPDEX_TODAY", "DROPDEX_LOG_JSON", "DROPDEX_INDEX", "DROPDEX_LISTEN", "DROPDEX_X"]
    {
        command.env(name, "");
    }
    let ended = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!said.contains("DROPDEX_") && !said.contains("invalid value"), "{said}");
    let help = site.command(&["serve", "--help"]).env("DROPDEX_DRAIN_DELAY", "").output();
    assert!(help.expect("it runs").status.success());
}

#[test]
fn disks_certificates_and_backups_are_measured() {
    let site = Site::with_a_name_of_each_kind();
    site.account("a@example.com", "free");
    let settings = site.settings("[metrics]\nlisten = \"127.0.0.1:0\"\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let metrics = || server.metrics().get("/metrics").text().to_owned();
    let text = metrics();
    for name in ["dropdex_disk_free_bytes{folder=\"data\"}", "dropdex_disk_bytes{folder=\"index\"}"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
    for none in
        ["dropdex_backup_timestamp_seconds 0", "dropdex_certificate_expires_timestamp_seconds 0"]
    {
        assert!(text.lines().any(|line| line == none), "{none}: {text}");
    }
    site.ok(&["backup", site.lists().join("b.tar").to_str().expect("UTF-8")]);
    wait::until(std::time::Duration::from_secs(30), "the backup is measured", || {
        metrics().contains("\ndropdex_backup_timestamp_seconds 17")
    });
}

#[test]
fn the_unit_survives_a_killed_worker_and_a_taken_port_and_names_a_file_that_is_installed() {
    let unit = read("data/packaging/dropdex.service");
    for line in ["OOMPolicy=continue", "RestartSec=5", "StartLimitIntervalSec=0"] {
        assert!(unit.lines().any(|other| other == line), "{line}");
    }
    let named = unit.lines().find_map(|line| line.strip_prefix("Documentation=file://"));
    let named = named.expect("a file").to_owned();
    let install = read("data/docs/operating.md");
    let is_installed = |line: &str| line.starts_with("install ") && line.ends_with(&named);
    assert!(install.lines().any(is_installed), "operating.md does not install {named}");
}
