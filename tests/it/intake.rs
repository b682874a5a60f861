//! Lists that are added while a server is running: by commands, which the server carries out one at a
//! time, and through the inbox.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::common::{Finished, Server, Site, TODAY, gzip, wait};
use serde_json::Value;

/// Deadline for a list to arrive; that takes seconds, or a minute on a busy machine.
const ARRIVAL_MAX: Duration = Duration::from_secs(90);

fn list(names: &[&str]) -> String {
    let rows: String = names.iter().map(|name| format!("{name},2026-03-14\n")).collect();
    format!("domain,drop_date\n{rows}")
}

#[track_caller]
fn until(what: &str, condition: impl Fn() -> bool) {
    wait::until(ARRIVAL_MAX, what, condition);
}

/// Waits until the status page has these counts, because a list is counted only after it was moved.
#[track_caller]
fn until_counted(server: &Server, counts: &[&str]) {
    let mut client = server.client();
    wait::until_ok(ARRIVAL_MAX, || {
        let page = client.get("/status").text().to_owned();
        if counts.iter().all(|count| page.contains(count)) { Ok(()) } else { Err(page) }
    });
}

fn total(server: &Server, key: &str, query: &str) -> u64 {
    let answer = server.client_with(key).get(&format!("/api/v1/search?q={query}"));
    answer.json()["total"].as_u64().expect("a number")
}

fn generation(site: &Site) -> u64 {
    let text = fs::read_to_string(site.index().join("CURRENT")).expect("there is one");
    text.trim().trim_start_matches("gen-").parse().expect("a number")
}

fn ingest(site: &Site, file: &Path) -> Finished {
    let file = file.to_str().expect("UTF-8");
    site.run(&["--today", TODAY, "ingest", file])
}

/// Creates an installation with a first list, and starts a server that checks the inbox every second.
fn world() -> (Site, String, Server) {
    let site = Site::new();
    let key = site.account("owner@example.com", "api");
    let first = site.write("first.csv", list(&["first.com"]));
    assert_eq!(ingest(&site, &first).code, Some(0));
    let settings = site.settings("[inbox]\nseconds = 1\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    (site, key, server)
}

#[test]
fn commands_beside_a_server_run_one_at_a_time() {
    let (site, key, server) = world();
    let lists: Vec<PathBuf> = (0..4)
        .map(|at| site.write(&format!("{at}.csv"), list(&[&format!("beside{at}.com")])))
        .collect();
    let done: Vec<Finished> = thread::scope(|scope| {
        let running: Vec<_> =
            lists.iter().map(|path| scope.spawn(|| ingest(&site, path))).collect();
        running.into_iter().map(|run| run.join().expect("no panic")).collect()
    });
    for finished in &done {
        assert_eq!(finished.code, Some(0), "{finished}");
        let summary: Value = serde_json::from_str(&finished.stdout).expect("one line of JSON");
        assert_eq!(summary["accepted"], 1, "{finished}");
        assert!(finished.stderr.contains("read as"), "{finished}");
    }
    until("all are found", || total(&server, &key, "beside") == 4);
    assert_eq!(generation(&site), 5);

    let again = ingest(&site, &lists[0]);
    assert!(again.stdout.contains("already held"), "{again}");
    assert_eq!(generation(&site), 5, "nothing was built");
    let rebuilt = site.run(&["rebuild"]);
    assert_eq!((rebuilt.code, generation(&site)), (Some(0), 6), "{rebuilt}");
    // Exit codes and the last line on standard error are the same as without a server.
    let bad = site.write("bad.csv", "domain,drop_date\nno name at all,2026-03-14\n");
    let refused = ingest(&site, &bad);
    refused.assert_failed(1, &["bad.csv", "was not ingested"]);
    let local = site.run(&["ingest", "--local", bad.to_str().expect("UTF-8")]);
    local.assert_failed(1, &["bad.csv", "was not ingested"]);
    assert_eq!(refused.stderr.lines().last(), local.stderr.lines().last());
    // The old name of the option still works, with a warning.
    let here = site.run(&["ingest", "--here", bad.to_str().expect("UTF-8")]);
    here.assert_failed(1, &["bad.csv", "was not ingested"]);
    assert!(here.stderr.contains("--here is now called --local"), "{here}");
    assert_eq!(refused.stderr.lines().last(), here.stderr.lines().last());
    // A file that the server cannot see is read by the command, which reports the error.
    let gone = ingest(&site, Path::new("/nonexistent/list.csv"));
    gone.assert_failed(1, &["cannot read", "/nonexistent/list.csv"]);
    assert!(gone.stderr.contains("running here instead"), "{gone}");
    let pair = site.run(&["ingest", "--format", "zone-pair", bad.to_str().expect("UTF-8")]);
    pair.assert_failed(2, &["two files"]);
    server.stop();
}

#[test]
fn the_inbox_ingests_lists_as_they_arrive() {
    let (site, key, server) = world();
    let inbox = site.data().join("inbox");
    let there = |folder: &str, name: &str| inbox.join(folder).join(name).exists();
    until("the folder is made", || inbox.join("refused").exists());
    let arrive = |name: &str, bytes: &[u8]| {
        let aside = inbox.join(format!(".{name}"));
        fs::write(&aside, bytes).expect("written");
        fs::rename(aside, inbox.join(name)).expect("moved");
    };
    fs::write(inbox.join("still.csv.part"), list(&["arrivedlater.com"])).expect("written");
    arrive("a.csv", list(&["arriveda.com"]).as_bytes());
    arrive("b.csv.gz", &crate::common::gzip(list(&["arrivedb.com"]).as_bytes()));
    arrive("pool-2026-03-13.txt", b"arrivedc.com\narrivedd.com\n");
    arrive("undated.txt", b"arrivede.com\narrivedf.com\n");
    arrive("again.csv", list(&["first.com"]).as_bytes());
    arrive("rubbish.csv", b"\x00\x01 this is not a list");
    let packed = crate::common::gzip(list(&["arrivedcut.com"]).as_bytes());
    arrive("cut.csv.gz", &packed[..packed.len() / 2]);
    for done in ["a.csv", "b.csv.gz", "pool-2026-03-13.txt", "again.csv"] {
        until(done, || there("done", done) || there("refused", done));
        assert!(there("done", done), "{done} was refused: {}", server.log());
    }
    for refused in ["undated.txt", "rubbish.csv", "cut.csv.gz"] {
        until(refused, || there("refused", refused));
        let note = inbox.join("refused").join(format!("{refused}.why.txt"));
        let why = fs::read_to_string(note).expect("a note");
        assert!(why.contains(refused), "{why}");
        match refused {
            "undated.txt" => assert!(why.contains("date"), "{why}"),
            "cut.csv.gz" => {
                assert!(why.contains("cut short") && why.contains("then rename it"), "{why}");
            }
            _ => {}
        }
    }
    until("all are found", || total(&server, &key, "arrived") == 4);
    let built = generation(&site);
    assert!((2..=3).contains(&built), "one rebuild for all that arrived at once, not {built}");
    assert!(inbox.join("still.csv.part").exists());
    until_counted(&server, &["3 refused", "3 lists ingested", "last ingest", "last scan"]);

    fs::rename(inbox.join("still.csv.part"), inbox.join("still.csv")).expect("moved");
    until("the last one too", || total(&server, &key, "arrived") == 5);
    // Another list has the same name; both are kept.
    arrive("a.csv", list(&["arrivedg.com"]).as_bytes());
    until("a second a.csv", || there("done", "a.csv.2"));
    server.stop();
}

/// Returns a list without its last row, and the last row.
fn in_halves(names: &[&str]) -> (String, String) {
    let (last, others) = names.split_last().expect("names");
    (list(others), format!("{last},2026-03-14\n"))
}

#[test]
fn a_list_whose_writer_pauses_is_read_once_and_whole() {
    let (site, key, server) = world();
    let inbox = site.data().join("inbox");
    until("the folder is made", || inbox.join("refused").exists());
    let (first, second) = in_halves(&["slowone.com", "slowtwo.com"]);
    let mut writer = File::create(inbox.join("slow.csv")).expect("created");
    let empty = File::create(inbox.join("empty.csv")).expect("created");
    writer.write_all(first.as_bytes()).expect("written");
    // Each of these takes two scans.
    for (file, name) in [("a.csv", "quickone.com"), ("b.csv", "quicktwo.com")] {
        fs::write(inbox.join(file), list(&[name])).expect("written");
        until("the other list is put away", || inbox.join("done").join(file).exists());
    }
    assert!(inbox.join("slow.csv").exists() && inbox.join("empty.csv").exists());
    writer.write_all(second.as_bytes()).expect("written");
    drop((writer, empty));
    until("it is put away", || inbox.join("done/slow.csv").exists());
    until("an empty list is refused", || inbox.join("refused/empty.csv").exists());
    until_counted(&server, &["3 lists ingested", "1 refused"]);
    wait::until(ARRIVAL_MAX, "it is found", || total(&server, &key, "slow") == 2);
}

/// A writer that opens the file, appends to it and closes it for each piece.
#[test]
fn a_list_that_is_appended_in_pieces_waits_for_its_last_line_end() {
    let (site, key, server) = world();
    let inbox = site.data().join("inbox");
    until("the folder is made", || inbox.join("refused").exists());
    let (first, rest) = in_halves(&["seamone.com", "seamtwo.com"]);
    let (cut, rest) = (first + &rest[..6], &rest[6..]);
    fs::write(inbox.join("pieces.csv"), cut).expect("written");
    server.logged("the last line of a list in the inbox has no line end");
    assert!(inbox.join("pieces.csv").exists());
    let mut writer = File::options().append(true).open(inbox.join("pieces.csv")).expect("there");
    writer.write_all(rest.as_bytes()).expect("written");
    drop(writer);
    until("it is put away", || inbox.join("done/pieces.csv").exists());
    wait::until(ARRIVAL_MAX, "both are found", || total(&server, &key, "seam") == 2);
    // A list that is never completed is read in the end, and the log says so.
    fs::write(inbox.join("short-2026-03-13.txt"), "shortone.com\nshorttwo.com").expect("written");
    until("it is read", || inbox.join("done/short-2026-03-13.txt").exists());
    server.logged("the last line has no line end; if the file is cut short, send it again whole");
    wait::until(ARRIVAL_MAX, "both are found", || total(&server, &key, "short") == 2);

    // The writer opens the file by its path again, and so writes the rest to a new file.
    let file = "short-2026-03-13.txt";
    let mut writer =
        File::options().append(true).create(true).open(inbox.join(file)).expect("made");
    writer.write_all(b"shortthree.com\n").expect("written");
    drop(writer);
    server.logged("its writer seems to append in pieces");
    until_counted(&server, &["a writer seems to append in pieces"]);
    server.stop();
}

#[test]
fn folders_and_pipes_in_the_inbox_are_reported_as_ignored() {
    let (site, _key, server) = world();
    let inbox = site.data().join("inbox");
    until("the folder is made", || inbox.join("refused").exists());
    fs::create_dir(inbox.join("monday")).expect("made");
    assert!(Command::new("mkfifo").arg(inbox.join("pipe")).status().expect("it ran").success());
    until_counted(&server, &["2 ignored, no file"]);
    let log = server.logged("the inbox takes files only");
    assert!(log.contains("monday") && log.contains("pipe"), "{log}");
    server.stop();
}

/// The server cannot know of writers that opened the file before it started.
#[test]
fn a_list_that_grows_after_it_was_moved_is_read_again() {
    let (site, key, server) = world();
    drop(server);
    let inbox = site.data().join("inbox");
    let (first, second) = in_halves(&["lateone.com", "latetwo.com"]);
    let mut writers = ["half.csv", "empty.csv"].map(|name| {
        let mut writer = File::create(inbox.join(name)).expect("created");
        if name == "half.csv" {
            writer.write_all(first.as_bytes()).expect("written");
        }
        writer
    });
    let settings = site.settings("[inbox]\nseconds = 1\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    until("half of it is put away", || inbox.join("done/half.csv").exists());
    let note = inbox.join("refused/empty.csv.why.txt");
    until("the empty one is refused", || inbox.join("refused/empty.csv").exists());
    assert!(note.exists());
    writers[0].write_all(second.as_bytes()).expect("written");
    writers[1].write_all(list(&["emptynomore.com"]).as_bytes()).expect("written");
    drop(writers);
    until("both are put away", || {
        let sizes = ["half.csv", "empty.csv"]
            .map(|name| fs::metadata(inbox.join("done").join(name)).map_or(0, |facts| facts.len()));
        sizes == [(first.len() + second.len()) as u64, list(&["emptynomore.com"]).len() as u64]
    });
    assert!(!note.exists() && !inbox.join("refused/empty.csv").exists());
    let found = || (total(&server, &key, "late"), total(&server, &key, "emptynomore"));
    wait::until(ARRIVAL_MAX, "both are found", || found() == (2, 1));
}

#[test]
fn the_inbox_resumes_after_a_kill() {
    let (site, key, server) = world();
    let inbox = site.data().join("inbox");
    until("the folder is made", || inbox.join("refused").exists());
    server.kill();
    // The server is killed between an ingest and the rebuild, so the list is in the corpus and
    // still in the inbox.
    let path = inbox.join("late.csv");
    fs::write(&path, list(&["lately.com"])).expect("written");
    fs::write(inbox.join(".rebuild"), "").expect("written");
    let path = path.to_str().expect("UTF-8");
    site.ok(&["--today", TODAY, "ingest", "--no-rebuild", path]);
    assert_eq!(generation(&site), 1);
    let settings = site.settings("[inbox]\nseconds = 1\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    until("it is found", || total(&server, &key, "lately") == 1);
    until("it is put away", || inbox.join("done").join("late.csv").exists());
    until("all is done", || !inbox.join(".rebuild").exists());
    server.stop();
    let settings = site.settings("[inbox]\nenabled = false\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    assert!(server.client().get("/status").text().contains("no lists since the last restart"));
    server.stop();
}

#[test]
fn a_replaced_list_is_ingested_too() {
    let (site, key, server) = world();
    let inbox = site.data().join("inbox");
    until("the folder is made", || inbox.join("refused").exists());
    // The list is so large that its ingest is still running; the ingest is suspended until the file
    // is replaced.
    let names: Vec<String> = (0..20_000).map(|number| format!("former{number}.com")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (place, next) = (inbox.join("daily.csv"), inbox.join(".next.csv"));
    fs::write(&place, list(&names)).expect("written");
    fs::write(&next, list(&["latter.com"])).expect("written");
    let mut reader = None;
    wait::until(ARRIVAL_MAX, "the server works on it", || {
        reader = reader_of(server.pid(), "daily.csv").filter(|&pid| signal(pid, "STOP"));
        reader.is_some()
    });
    fs::rename(&next, &place).expect("moved");
    assert!(signal(reader.expect("it was suspended"), "CONT"));
    until("the second is found", || total(&server, &key, "latter") == 1);
    until("it is put away", || !place.exists());
    let put_away = fs::read_to_string(inbox.join("done").join("daily.csv")).expect("it is there");
    assert!(put_away.contains("latter.com") || inbox.join("done").join("daily.csv.2").exists());
    server.stop();
}

#[test]
fn a_list_whose_ingest_fails_three_times_is_refused() {
    let (site, key, server) = world();
    let inbox = site.data().join("inbox");
    until("the folder is made", || inbox.join("refused").exists());
    // Rejected rows are written to the folder `rejects`, which is a file here.
    fs::write(site.data().join("rejects"), "").expect("written");
    let names: Vec<String> = (0..20).map(|number| format!("partly{number}.com")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let partly = list(&names) + "no name at all,2026-03-14\n";
    fs::write(inbox.join("fails.csv"), partly).expect("written");
    // The worker is killed each time it reads this list.
    let names: Vec<String> = (0..20_000).map(|number| format!("crash{number}.com")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fs::write(inbox.join("crashes.csv"), list(&names)).expect("written");
    fs::write(inbox.join("good.csv"), list(&["afterall.com"])).expect("written");
    let is_refused = |file: &str| inbox.join("refused").join(file).exists();
    until("both are refused", || {
        if let Some(pid) = reader_of(server.pid(), "crashes.csv") {
            signal(pid, "KILL");
        }
        is_refused("crashes.csv") && is_refused("fails.csv")
    });
    for (file, reason) in [("fails.csv", "rejects"), ("crashes.csv", "SIGKILL")] {
        let note = inbox.join("refused").join(format!("{file}.why.txt"));
        let note = fs::read_to_string(note).expect("a note");
        assert!(note.contains("failed 3 times") && note.contains(reason), "{note}");
        server.logged(file);
    }
    until("the others are added", || total(&server, &key, "afterall") == 1);
    assert!(inbox.join("done").join("good.csv").exists());
    assert_eq!((total(&server, &key, "partly"), total(&server, &key, "crash")), (0, 0));
    until_counted(&server, &["2 refused", "1 list ingested"]);
    server.stop();
}

#[test]
fn a_marker_without_new_lists_builds_no_index() {
    let (site, _key, server) = world();
    let inbox = site.data().join("inbox");
    until("the folder is made", || inbox.join("refused").exists());
    // The state after a list that could not be read.
    fs::write(inbox.join(".rebuild"), "").expect("written");
    until("it was checked", || !inbox.join(".rebuild").exists());
    assert_eq!(generation(&site), 1);
    server.stop();
}

/// Sends a signal; returns whether the process existed.
fn signal(pid: u32, name: &str) -> bool {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    sent.expect("it runs").success()
}

/// Finds the child process of `parent` that has a file of this name open.
fn reader_of(parent: u32, file: &str) -> Option<u32> {
    let parent = format!("PPid:\t{parent}\n");
    fs::read_dir("/proc").expect("Linux has it").find_map(|entry| {
        let path = entry.ok()?.path();
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        // A process may end during the search.
        let is_child = fs::read_to_string(path.join("status")).ok()?.contains(&parent);
        let reads = |fd: fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|to| to.ends_with(file));
        let mut open = fs::read_dir(path.join("fd")).ok()?.flatten();
        (is_child && open.any(reads)).then_some(pid)
    })
}

#[test]
fn work_ends_with_the_server_that_is_killed() {
    let (site, _key, server) = world();
    // A list that takes hours to read but no space on the disk.
    let endless = site.lists().join("endless.csv");
    let file = File::create(&endless).expect("created");
    file.set_len(1 << 40).expect("a sparse file");
    let parent = server.pid();
    thread::scope(|scope| {
        let asked = scope.spawn(|| ingest(&site, &endless));
        let worker = || reader_of(parent, "endless.csv");
        until("the server works on it", || worker().is_some());
        let pid = worker().expect("the server waits for the list");
        server.kill();
        let stat = format!("/proc/{pid}/stat");
        // The process may be a zombie, because its new parent may not reap it here.
        until("it has ended", || {
            fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
        });
        asked.join().expect("no panic").assert_failed(1, &["run the command again"]);
    });
    let list = site.write("next.csv", list(&["next.com"]));
    assert_eq!(ingest(&site, &list).code, Some(0), "the lists are unlocked");
}

/// Creates a list of names whose index takes seconds to build here.
fn many(prefix: &str) -> String {
    let names: Vec<String> = (0..60_000).map(|at| format!("{prefix}{at}.com")).collect();
    list(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Finds the worker process of a server.
fn worker_of(parent: u32) -> Option<u32> {
    let parent = format!("PPid:\t{parent}\n");
    fs::read_dir("/proc").expect("Linux has it").find_map(|entry| {
        let path = entry.ok()?.path();
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        let is_child = fs::read_to_string(path.join("status")).ok()?.contains(&parent);
        let command = fs::read_to_string(path.join("cmdline")).ok()?;
        (is_child && command.contains("intake-worker")).then_some(pid)
    })
}

/// Whether the batch of this number is in the corpus.
fn has_batch(site: &Site, number: u32) -> bool {
    site.data().join(format!("corpus/batch-{number:010}.ddb")).exists()
}

#[test]
fn a_killed_worker_is_noticed_and_its_lists_are_built_later() {
    let site = Site::new();
    let key = site.account("owner@example.com", "api");
    assert_eq!(ingest(&site, &site.write("first.csv", list(&["first.com"]))).code, Some(0));
    let settings = site.settings("[metrics]\nlisten = \"127.0.0.1:0\"\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let metric = |line: &str| server.metrics().get("/metrics").text().contains(line);
    assert!(metric("dropdex_jobs_ended_total{outcome=\"crashed\"} 0"));
    let text = many("killed");
    let path = site.write("many.csv", text);
    thread::scope(|scope| {
        let asked = scope.spawn(|| ingest(&site, &path));
        until("the list is in the corpus", || has_batch(&site, 2));
        let pid = worker_of(server.pid()).expect("it builds the index");
        assert!(signal(pid, "KILL"));
        asked.join().expect("no panic").assert_failed(1, &["SIGKILL", "out of memory"]);
    });
    assert_eq!(generation(&site), 1, "it was killed before the index was built");
    let log = server.logged("an ingest or rebuild failed");
    assert!(log.contains("SIGKILL") && log.contains("next_try"), "{log}");
    assert!(metric("dropdex_jobs_ended_total{outcome=\"crashed\"} 1"));
    let page = || server.client().get("/status").text().to_owned();
    let problem = "an ingest or rebuild failed";
    assert!(page().contains(problem), "{}", page());
    until("the index is built", || total(&server, &key, "killed") > 0);
    until("the status page is as before", || !page().contains(problem));
}

#[test]
fn a_worker_that_needs_too_much_memory_fails_and_says_so() {
    let site = Site::new();
    let key = site.account("owner@example.com", "api");
    assert_eq!(ingest(&site, &site.write("first.csv", list(&["first.com"]))).code, Some(0));
    let settings = site.settings("[index]\nworker_memory_mib = 32\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let path = site.write("many.csv", many("large"));
    thread::scope(|scope| {
        let asked = scope.spawn(|| ingest(&site, &path));
        until("a worker runs", || worker_of(server.pid()).is_some());
        let pid = worker_of(server.pid()).expect("it runs");
        until("it is the first to go", || {
            let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
            score.map_or(true, |score| score.trim() == "1000")
        });
        let failed = asked.join().expect("no panic");
        failed.assert_failed(1, &["limited to", "32 MiB", "index.worker_memory_mib"]);
    });
    server.logged("32 MiB");
    assert_eq!(total(&server, &key, "first"), 1, "the previous index is served");
    server.stop();
    let _server = site.serve(TODAY);
    assert_eq!(ingest(&site, &path).code, Some(0), "the list itself is good");
}

/// Lists of some kilobytes that unpack to megabytes. `tests/hostile-lists` measures larger ones.
#[test]
fn hostile_lists_are_refused_within_little_memory() {
    let site = Site::new();
    assert_eq!(ingest(&site, &site.write("first.csv", list(&["first.com"]))).code, Some(0));
    let settings = site.settings("[index]\nworker_memory_mib = 96\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &settings]);
    let zone = "com. 900 in SOA ns h 1 1 1 1 1\na.com. 1 in NS (";
    for (name, start, piece, words) in [
        ("soa.zone.gz", "com. 900 in SOA ns h (\n", " 1\n", "this is not a zone file"),
        ("spaces.zone.gz", zone, " ", "this is not a zone file"),
        ("record.zone.gz", zone, " 1\n", "this is not a zone file"),
        ("nul.csv.gz", "", "\0", "NUL bytes"),
        ("line.txt.gz", "", "a", "its format is not recognised"),
        ("field.csv.gz", "domain,drop_date\nsolar.com,", "a", "unpacks to too many bytes"),
        ("name.json.gz", "[{\"domain\":\"", "a", "unpacks to too many bytes"),
        ("depth.json.gz", "", "[", "unpacks to too many bytes"),
    ] {
        let bytes =
            [start.as_bytes(), &piece.repeat((100 << 20) / piece.len()).into_bytes()].concat();
        let path = site.write(name, gzip(&bytes));
        assert!(path.metadata().expect("written").len() < 400_000, "{name}");
        let args =
            ["--today", TODAY, "ingest", "--drop-date", TODAY, path.to_str().expect("UTF-8")];
        site.run(&args).assert_failed(1, &[words]);
    }
    assert!(!server.stop().contains("worker process crashed"));
}

#[test]
fn a_restart_builds_the_index_of_lists_that_an_ingest_left() {
    let (site, key, server) = world();
    server.stop();
    let text = many("left");
    let path = site.write("many.csv", text);
    let mut command = site.command(&["--today", TODAY, "ingest"]);
    let mut running = command.arg(&path).spawn().expect("started");
    until("the list is in the corpus", || has_batch(&site, 2));
    running.kill().expect("killed");
    running.wait().expect("reaped");
    assert_eq!(generation(&site), 1, "it was killed before the index was built");
    let server = site.serve(TODAY);
    until("the index is built", || total(&server, &key, "left") > 0);
}

#[test]
fn an_installation_that_lost_its_index_builds_it_at_the_start() {
    let (site, key, server) = world();
    server.stop();
    fs::remove_dir_all(site.index()).expect("removed");
    let server = site.serve(TODAY);
    assert_eq!(total(&server, &key, "first"), 1);
    let log = server.log();
    assert!(log.contains("no source is enabled"), "{log}");
}

#[test]
fn lists_are_read_from_standard_input_and_pipes() {
    let (site, key, server) = world();
    let args = ["--today", TODAY, "ingest", "-", "--drop-date", "2026-03-14"];
    site.ok_with_input(&args, "stdinone.com\nstdintwo.com\n");
    let pipe = site.data().join("names-2026-03-13.txt");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it ran").success());
    let writer = {
        let pipe = pipe.clone();
        thread::spawn(move || fs::write(pipe, "pipeone.com\n").expect("written"))
    };
    assert_eq!(ingest(&site, &pipe).code, Some(0));
    writer.join().expect("it wrote");
    let found = || (total(&server, &key, "stdin"), total(&server, &key, "pipeone"));
    wait::until(ARRIVAL_MAX, "both are found", || found() == (2, 1));
    let left = fs::read_dir(site.data()).expect("readable").flatten();
    let left = left.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".stream-"));
    assert_eq!(left.count(), 0, "the copies are removed");
}

/// Returns the manifest of the current generation without the members that differ in every generation.
fn manifest(site: &Site) -> Value {
    let mut manifest = site.manifest();
    for member in ["generation", "created", "corpus"] {
        manifest[member].take();
    }
    // tantivy puts a random number into its file names and into two files.
    let files = manifest["files"].as_object().expect("an object");
    let sums = files.iter().filter(|(name, _)| !name.ends_with(".json"));
    let named = sums.map(|(name, sum)| match name.strip_prefix("drops/") {
        Some(name) => (format!("drops.{}", name.split('.').next_back().unwrap_or(name)), sum),
        None => (name.clone(), sum),
    });
    let files: serde_json::Map<String, Value> =
        named.map(|(name, sum)| (name, sum.clone())).collect();
    assert!(files.len() > 30, "{files:?}");
    manifest["files"] = files.into();
    manifest
}

fn batches(site: &Site) -> Vec<String> {
    let entries = fs::read_dir(site.data().join("corpus")).expect("readable");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("one").file_name().to_string_lossy().into()).collect();
    names.retain(|name| name.starts_with("batch-"));
    names.sort();
    names
}

/// Writes a list with names that all lists contain, names that only this one contains, and names that
/// dropped again.
fn write_numbered(site: &Site, number: usize) -> PathBuf {
    let mut rows = String::from("domain,drop_date\n");
    for at in 0..60 {
        let name = if at % 2 == 0 { at } else { at * 100 + number };
        let day = 1 + (at % 3) * (number % 4) + number % 9;
        rows.push_str(&format!("batched{name}.{},2026-03-{day:02}\n", ["com", "de"][at % 2]));
    }
    site.write(&format!("{number}.csv"), rows)
}

#[test]
fn an_index_of_one_batch_equals_that_of_many() {
    let site = Site::new();
    let add = |numbers: std::ops::RangeInclusive<usize>, options: &[&str]| {
        let lists: Vec<PathBuf> = numbers.map(|number| write_numbered(&site, number)).collect();
        let lists = lists.iter().map(|list| list.to_str().expect("UTF-8"));
        let arguments = [options, &["--today", TODAY, "ingest"]].concat();
        site.ok(&arguments.into_iter().chain(lists).collect::<Vec<_>>());
    };
    add(1..=10, &[]);
    let before = manifest(&site);
    assert_eq!((before["batches"].as_u64(), batches(&site).len()), (Some(10), 10));
    site.ok(&["--today", TODAY, "rebuild", "--compact"]);
    assert_eq!(batches(&site), ["batch-0000000001-0000000010.ddb"]);
    assert_eq!(manifest(&site), before);
    // Above the limit, a rebuild compacts the batches except the newest ones.
    let settings = site.settings("[index]\ncompact_above = 9\nkeep = 3\n");
    add(11..=18, &[]);
    assert_eq!(batches(&site).len(), 9);
    add(19..=19, &["--config", &settings]);
    assert_eq!(batches(&site).len(), 9, "{:?}", batches(&site));
    assert_eq!(batches(&site)[0], "batch-0000000001-0000000011.ddb");
    let compacted = manifest(&site);
    assert_eq!(compacted["batches"], 19);
    site.ok(&["--today", TODAY, "--config", &settings, "rebuild"]);
    assert_eq!(manifest(&site), compacted);
    let listed = site.ok(&["index", "list"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let again = site.lists().join("3.csv");
    let again = site.ok(&["ingest", again.to_str().expect("UTF-8")]);
    assert!(again.contains("already held"), "{again}");
}

#[test]
fn an_export_is_read_back_exactly() {
    let site = Site::new();
    let own =
        "domain,drop_date,release_date\nsolar.com,2026-03-01,2026-04-09\nriver.se,2026-02-01,\n";
    let path = site.write("own.csv", own);
    assert_eq!(ingest(&site, &path).code, Some(0));
    let columns =
        ["name,dropDate,releaseDate", "releaseDate,stage,dropDate,dqs,daysToRelease,name"];
    for (at, columns) in columns.into_iter().enumerate() {
        let export = |site: &Site| {
            site.ok(&["--today", TODAY, "export", "drops", "--view", "all", "--columns", columns])
        };
        let csv = export(&site);
        assert_eq!(csv.lines().count(), 3, "{csv}");
        let other = Site::new();
        let read = ingest(&other, &other.write(&format!("{at}.csv"), &csv));
        let summary: Value = serde_json::from_str(&read.stdout).expect("one line of JSON");
        let reading = summary["lists"][0]["reading"].as_str().expect("a clause");
        assert!(reading.contains("the drop date `dropDate`"), "{read}");
        assert_eq!(export(&other), csv);
    }
}

#[test]
fn a_newer_public_suffix_list_replaces_the_compiled_one() {
    let site = Site::new();
    let key = site.account("owner@example.com", "api");
    let psl = |icann: &str| {
        let private = "// ===BEGIN PRIVATE DOMAINS===\n// ===END PRIVATE DOMAINS===\n";
        let text =
            format!("// ===BEGIN ICANN DOMAINS===\n{icann}// ===END ICANN DOMAINS===\n{private}");
        let path = site.write("suffixes.dat", text);
        site.settings(&format!("psl = \"{}\"\n", path.display()))
    };
    let settings = psl("com\nnewtld\nco.newtld\n");
    let names = ["a.com", "b.com", "c.com", "shop.newtld", "shop.co.newtld", "shop.com"];
    let file = site.write("names.csv", list(&names));
    let file = file.to_str().expect("UTF-8");
    let without = site.run(&["--today", TODAY, "ingest", file]);
    without.assert_failed(1, &["not in the Public Suffix List"]);
    let with = site.run(&["--today", TODAY, "--config", &settings, "ingest", file]);
    assert_eq!(with.code, Some(0), "{with}");

    let arguments = ["--today", TODAY, "--config", &settings];
    let server = site.serve_with(&arguments);
    assert_eq!(total(&server, &key, "shop"), 3);
    let dossier = server.client_with(&key).get("/api/v1/domain/shop.co.newtld");
    assert_eq!(dossier.status, 200, "{}", dossier.text());
    assert!(!server.log().contains("another Public Suffix List"), "{}", server.log());
    // A worker does not mix two versions of the Public Suffix List.
    psl("com\n");
    let mixed = site.run(&["--today", TODAY, "--config", &settings, "rebuild"]);
    mixed.assert_failed(1, &["suffixes.dat changed", "restart the server"]);
    server.stop();

    let server = site.serve_with(&["--today", TODAY]);
    until("it warns", || server.log().contains("another Public Suffix List"));
    server.stop();
    let rebuilt = site.run(&["--today", TODAY, "--config", &settings, "rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{rebuilt}");
    assert!(rebuilt.stderr.contains("2 names of the corpus are not registrable"), "{rebuilt}");
    let server = site.serve_with(&arguments);
    assert_eq!(total(&server, &key, "shop"), 1);
    server.stop();

    site.write("suffixes.dat", "com\nnet\n");
    let bad = site.run(&["--config", &settings, "score", "a.com"]);
    bad.assert_failed(10, &["psl", "suffixes.dat", "BEGIN ICANN"]);
}

#[test]
fn other_users_cannot_read_rejected_rows() {
    let site = Site::new();
    let names: Vec<String> = (0..20).map(|number| format!("good{number}.com")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let file = site.write("daily.csv", list(&names) + "no name at all,2026-03-14\n");
    let done = ingest(&site, &file);
    let summary: Value = serde_json::from_str(&done.stdout).expect("one line of JSON");
    let rejects = summary["lists"][0]["rejects_file"].as_str().expect("a file");
    let mode = fs::metadata(rejects).expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "{mode:o}");
}

#[test]
fn rejected_rows_are_not_formulas() {
    let site = Site::new();
    let mut list = "domain,drop_date\n".to_owned();
    (0..40).for_each(|number| list += &format!("good{number}.com,2026-03-10\n"));
    let formulas = ["=HYPERLINK(1)", "＠SUM(1)", "+1", "-1"];
    formulas.iter().for_each(|formula| list += &format!("{formula},2026-03-10\n"));
    let done = ingest(&site, &site.write("list.csv", list));
    let summary: Value = serde_json::from_str(&done.stdout).expect("one line of JSON");
    let rejects = summary["lists"][0]["rejects_file"].as_str().expect("a file");
    let mut reader = csv::Reader::from_path(rejects).expect("it exists");
    let texts: Vec<String> =
        reader.records().map(|row| row.expect("a row")[3].to_owned()).collect();
    assert_eq!(texts, formulas.map(|formula| format!("'{formula},2026-03-10")));
}
