//! `dropdex backup` and `dropdex restore` as an operator uses them: from a running server to an empty
//! machine.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Server, Site, TODAY, gzip, wait};

const PASSWORD: &str = "correct horse battery";

/// Creates an installation with data of every kind, and starts its server.
pub fn world() -> (Site, String, Server) {
    let site = Site::with_a_name_of_each_kind();
    site.account_with_password("owner@example.com", "api", PASSWORD);
    let key = site.new_key("owner@example.com");
    for (day, names) in [(20_260_313, 200), (20_260_314, 198)] {
        let rows: String = (0..names)
            .map(|at| format!("zoned{at:04}.com.\t172800\tin\tns\tns.x.net.\n"))
            .collect();
        let soa = format!("com. 900 in soa a.nic.com. b.nic.com. {day} 1800 900 604800 86400\n");
        let path =
            site.write(&format!("com-{day}.zone.gz"), gzip(format!("{soa}{rows}{soa}").as_bytes()));
        let day = format!("2026-03-{:02}T00:00:00Z", day % 100);
        let path = path.to_str().expect("UTF-8").to_owned();
        site.ok(&["ingest", "--observed-at", &day, &path]);
    }
    let ranks = site.write("tranco.csv", "1,solar.com\n2,example.org\n");
    site.ok(&["ingest", ranks.to_str().expect("UTF-8")]);
    site.ok(&["sources", "enable", "psl", "--yes"]);
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let body = serde_json::json!({ "domainName": "kept.org" });
    let added = client.send("POST", "/api/v1/watchlist", &body);
    assert_eq!(added.status, 201, "{}", added.text());
    (site, key, server)
}

/// Returns responses of a server that must be the same after a restore.
pub fn answers(server: &Server, key: &str) -> Vec<Value> {
    let mut client = server.client_with(key);
    let targets = [
        "/api/v1/drops?limit=100",
        "/api/v1/search?q=zoned",
        "/api/v1/domain/solar.com",
        "/api/v1/watchlist",
        "/api/v1/changes?limit=1000",
    ];
    let mut answers: Vec<Value> =
        targets.into_iter().map(|target| client.get(target).json()).collect();
    // The generation changes when the index is rebuilt.
    answers[0].as_object_mut().expect("a page").remove("generation");
    answers
}

fn backup(site: &Site, name: &str) -> (String, Value) {
    let path = site.lists().join(name).to_str().expect("UTF-8").to_owned();
    let printed = site.ok(&["backup", &path]);
    (path, serde_json::from_str(&printed).expect("JSON"))
}

#[test]
fn a_backup_of_a_running_server_brings_everything_to_an_empty_machine() {
    let (site, key, server) = world();
    let before = answers(&server, &key);
    let (path, written) = backup(&site, "all.tar");
    assert_eq!(written["counts"]["accounts"], 1);
    let sources = site.ok(&["sources", "list"]);
    drop(server);

    // The archive is a tar file that other programs can read and verify.
    let unpacked = site.lists().join("unpacked");
    fs::create_dir(&unpacked).expect("made");
    let run = |program: &str, args: &[&str]| {
        let done =
            Command::new(program).args(args).current_dir(&unpacked).output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    run("tar", &["xf", &path]);
    run("sha256sum", &["--quiet", "--check", "SHA256SUMS"]);
    for file in ["backup.json", "settings.toml", "sources/enabled.json", "corpus/LAST"] {
        assert!(unpacked.join(file).exists(), "{file}");
    }

    let empty = Site::new();
    empty.ok(&["restore", "--check", &path]);
    assert!(fs::read_dir(empty.data()).expect("a folder").next().is_none(), "only read");
    let restored: Value = serde_json::from_str(&empty.ok(&["restore", &path])).expect("JSON");
    assert_eq!(restored["state_digest"], written["state_digest"]);
    assert_eq!(restored["seq"], written["seq"]);
    let server = empty.serve(TODAY);
    assert_eq!(answers(&server, &key), before);
    drop(server);
    assert_eq!(choices(&empty), choices(&site), "the accepted terms");
    assert_eq!(names(&empty.ok(&["sources", "list"])), names(&sources));
    for folder in ["changes", "zones", "corpus"] {
        assert!(
            fs::read_dir(empty.data().join(folder)).expect("there").next().is_some(),
            "{folder}"
        );
    }
    empty.run(&["restore", &path]).assert_failed(1, &["there is data in", "move the folder away"]);
}

/// If an old index folder is next to a restored data folder, it was built from other lists.
#[test]
fn an_index_of_other_lists_is_rebuilt_before_it_is_served() {
    let site = Site::new();
    site.account_with_password("owner@example.com", "api", PASSWORD);
    let ingest = |site: &Site, names: &[&str]| {
        for name in names {
            let list = site
                .write(&format!("{name}.csv"), format!("domain,drop_date\n{name}.com,{TODAY}\n"));
            site.ok(&["ingest", list.to_str().expect("UTF-8")]);
        }
    };
    ingest(&site, &["one", "two", "three"]);
    let (path, _) = backup(&site, "three.tar");
    for others in [&["foreign", "strange"][..], &["a", "b", "c"], &["a", "b", "c", "d"]] {
        let other = Site::new();
        ingest(&other, others);
        fs::remove_dir_all(other.data()).expect("removed");
        other.ok(&["restore", &path]);
        let list = other.write("later.csv", format!("domain,drop_date\nlater.com,{TODAY}\n"));
        let server = other.serve(TODAY);
        let key = other.new_key("owner@example.com");
        let mut client = server.client_with(&key);
        let mut names = || {
            let page = client.get("/api/v1/drops").json();
            let rows = page["drops"].as_array().expect("rows").iter();
            let mut names: Vec<String> = rows.map(|row| row["name"].to_string()).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(names(), "\"one.com\" \"three.com\" \"two.com\"", "beside {others:?}");
        other.ok(&["ingest", list.to_str().expect("UTF-8")]);
        wait::until(std::time::Duration::from_secs(30), "the new list is served", || {
            names().contains("later")
        });
        assert!(!names().contains("foreign"), "{}", names());
    }
}

fn choices(site: &Site) -> String {
    fs::read_to_string(site.data().join("sources/enabled.json")).expect("there")
}

/// Returns the first column of a table.
fn names(table: &str) -> Vec<String> {
    table.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn backups_are_private_never_overwritten_and_stream_through_a_pipe() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::with_a_name_of_each_kind();
    let key = site.account("owner@example.com", "api");
    // Without a server the command reads the files itself.
    let (path, _) = backup(&site, "one.tar");
    let mode = fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    site.run(&["backup", &path]).assert_failed(1, &["exists already"]);
    for (file, said) in
        [("a.csv", "1 list waits in the inbox"), ("b.csv", "2 lists wait in the inbox")]
    {
        fs::create_dir_all(site.data().join("inbox/done")).expect("made");
        fs::write(site.data().join("inbox").join(file), "").expect("written");
        let path = site.lists().join(format!("{file}.tar"));
        let done = site.run(&["backup", path.to_str().expect("UTF-8")]);
        assert!(done.code == Some(0) && done.stderr.contains(said), "{done}");
    }
    fs::remove_dir_all(site.data().join("inbox")).expect("removed");
    site.run(&["backup", "/nonexistent/x.tar"]).assert_failed(1, &["/nonexistent"]);
    let left: Vec<_> = fs::read_dir(site.data())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".backup"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    let server = site.serve(TODAY);
    let piped = site.command(&["backup", "-"]).output().expect("it runs");
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    drop(server);
    let empty = Site::new();
    let mut command = empty.command(&["restore", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("started");
    child.stdin.take().expect("piped").write_all(&piped.stdout).expect("read");
    assert!(child.wait().expect("ended").success());
    let server = empty.serve(TODAY);
    let found = server.client_with(&key).get("/api/v1/search?q=solar").json()["total"].clone();
    assert_eq!(found, 2);
}

#[test]
fn a_restore_that_is_refused_leaves_the_data_folder_as_it_was() {
    let site = Site::with_a_name_of_each_kind();
    site.account("owner@example.com", "api");
    let (path, _) = backup(&site, "sound.tar");
    let whole = fs::read(&path).expect("readable");
    let is_untouched = |site: &Site| {
        let entries = fs::read_dir(site.data()).expect("a folder");
        let names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        assert!(names.is_empty(), "{names:?}");
    };
    let empty = Site::new();
    let try_with = |bytes: &[u8], words: &[&str]| {
        let path = empty.write("bad.tar", bytes);
        let path = path.to_str().expect("UTF-8");
        empty.run(&["restore", path]).assert_failed(1, words);
        is_untouched(&empty);
    };
    try_with(&whole[..whole.len() / 2], &["cut short"]);
    let mut flipped = whole.clone();
    let at = whole.windows(10).position(|found| found == b"owner@exam").expect("the account");
    flipped[at] ^= 1;
    try_with(&flipped, &["journal/users.snap", "differ"]);
    try_with(b"domain,drop_date\n", &["not a backup"]);
    let users = site.lists().join("users.snap");
    site.ok(&["journal", "backup", users.to_str().expect("UTF-8")]);
    try_with(&fs::read(users).expect("readable"), &["journal restore"]);
    // A failed restore also removes the folders that it created.
    let (outer, bad) = (empty.lists().join("outer"), empty.write("bad.tar", b"no backup"));
    let inner = outer.join("data");
    let args = ["--data", inner.to_str().expect("UTF-8"), "restore", bad.to_str().expect("UTF-8")];
    empty.run(&args).assert_failed(1, &["not a backup"]);
    assert!(!outer.exists());
    empty.run(&["restore", "/nonexistent.tar"]).assert_failed(1, &["/nonexistent.tar"]);

    // An installation with lists but no accounts is backed up as well.
    let lists = Site::with_a_name_of_each_kind();
    lists.run(&["restore", &path]).assert_failed(1, &["corpus is not empty"]);
    let server = site.serve(TODAY);
    site.run(&["restore", &path]).assert_failed(1, &["a server is running"]);
    drop(server);
}

#[test]
fn a_backup_of_an_older_version_is_converted() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/backups/94342a2.tar");
    let site = Site::new();
    let output = site.ok(&["restore", old.to_str().expect("UTF-8")]);
    let restored: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!([&restored["seq"], &restored["counts"]["accounts"]], [9, 2], "{restored}");
    // The settings are restored as well.
    let settings = restored["settings"].as_str().expect("a path");
    assert_eq!(fs::read_to_string(settings).expect("kept"), "[plans.pro]\nactive_rules = 7\n");
    site.run(&["journal", "upgrade"]).assert_failed(1, &["nothing to convert"]);
    let key = site.ok(&["account", "key", "one@example.com"]);
    let server = site.serve("2026-11-25");
    let drops = server.client_with(key.trim()).get("/api/v1/drops").json();
    assert_eq!(drops["total"], 2, "{drops}");
}

#[test]
fn a_backup_during_ingests_has_every_list_that_it_reports() {
    let site = Site::with_a_name_of_each_kind();
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let names: Vec<String> = (0..6).map(|at| format!("during{at}.com,2026-03-14\n")).collect();
    let paths: Vec<String> = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for (at, row) in names.iter().enumerate() {
                let list = site.write(&format!("{at}.csv"), format!("domain,drop_date\n{row}"));
                site.ok(&["--today", TODAY, "ingest", list.to_str().expect("UTF-8")]);
            }
        });
        let paths = (0..4).map(|at| backup(&site, &format!("{at}.tar")).0).collect();
        writing.join().expect("no panic");
        paths
    });
    drop(server);
    for path in paths {
        let empty = Site::new();
        empty.ok(&["restore", &path]);
        empty.ok(&["journal", "verify"]);
        let server = empty.serve(TODAY);
        // The first index is built from the lists of the corpus.
        let lists = batches(&empty.data().join("corpus"));
        wait::until(std::time::Duration::from_secs(60), "all lists are matched", || {
            let page = server.client().get("/status").text().to_owned();
            page.contains(&format!("through list {lists}"))
        });
        let total = &server.client_with(&key).get("/api/v1/search?q=during").json()["total"];
        assert_eq!(total.as_u64(), Some(lists - 1), "one list existed before");
    }
}

/// Returns the number of lists in a corpus whose batches were not merged.
fn batches(corpus: &Path) -> u64 {
    let entries = fs::read_dir(corpus).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name.to_string_lossy().starts_with("batch-")).count() as u64
}
