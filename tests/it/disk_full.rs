//! A data folder on a small file system that fills up: reads succeed all the time, writes get 503 until
//! space is free again, and no acknowledged write is lost.
//!
//! The file system is a tmpfs in a mount namespace of its own, which ends with the test: the test
//! restarts itself through `unshare`, as root or with a user namespace. If the machine allows neither,
//! the test fails with a message. `DROPDEX_SEED=<number>` repeats a run; `DROPDEX_FULL=1` fills the
//! disk 500 times.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use crate::common::ledger::{Ledger, check, check_votes};
use crate::common::mounts;
use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::writer::{Step, Writer};
use crate::common::{Client, Response, Server, Site, TODAY, wait};

/// Space for the journal's folder and some segments. The space is small, so that filling it takes
/// milliseconds.
const DISK_BYTES: u64 = 24 << 20;
/// Rounds per disk. A round adds up to a megabyte of log, and a start after a kill needs space for
/// two more.
const ROUNDS_A_DISK: usize = 8;
const WRITERS: usize = 4;
/// Makes records large, so that few of them use up the preallocated space.
const NOTES_PADDING: usize = 2_000;
const NAMES_PER_WRITER: usize = 4;
/// Maximum time from free space to the first accepted write; the journal probes every 250 ms.
const RESUME_MAX: Duration = Duration::from_secs(30);

#[test]
fn a_full_disk_stops_only_writes_until_there_is_room() {
    if !mounts::may_mount() {
        return mounts::run_where_mounting_works(
            "disk_full::a_full_disk_stops_only_writes_until_there_is_room",
        );
    }
    let seed = seed();
    let mut seeds = Rng::new(seed);
    let (rounds, mut refused) = (figure(8, 500), 0);
    for first in (0..rounds).step_by(ROUNDS_A_DISK) {
        let mut world = World::new(seeds.below(usize::MAX) as u64);
        for round in first..rounds.min(first + ROUNDS_A_DISK) {
            match round % 4 {
                0 => world.filled_while_writing(),
                1 => world.filled_while_idle(),
                2 => world.filled_before_a_snapshot(),
                _ => world.filled_before_the_start(),
            }
        }
        drop(world.serve_and_check());
        refused += world.refused;
    }
    say(&format!("disk filled and freed {rounds} times, {refused} writes refused"));
    assert!(refused >= rounds, "writes refused: {refused}");
}

/// This is the state after an update from a version without a change log.
#[test]
fn a_first_start_on_a_full_disk_serves_reads() {
    if !mounts::may_mount() {
        return mounts::run_where_mounting_works(
            "disk_full::a_first_start_on_a_full_disk_serves_reads",
        );
    }
    let world = World::new(seed());
    world.serve().stop();
    let changes = world.site.data().join("changes");
    fs::remove_dir_all(&changes).expect("it was there");
    world.fill();
    let server = world.serve();
    world.assert_reads(&server);
    let checks = || server.client().get("/api/ready").json()["checks"]["changes"].clone();
    assert_eq!(checks(), "unwritable");
    assert_eq!(server.client().get("/api/ready/reads").status, 200);
    let mut client = server.client_with(&world.key);
    assert_eq!(client.get("/api/v1/changes").json()["data"], json!([]));
    world.free();
    wait::until(RESUME_MAX, "the change log is written", || checks().is_null());
    assert!(fs::read_dir(&changes).expect("a folder").next().is_some());
}

/// SIGXFSZ would end a server that does not ignore it.
#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk() {
    let site = Site::with_names(["known0.com".to_owned()].into_iter(), TODAY);
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let mut watch =
        |domain: &str| client.send("POST", "/api/v1/watchlist", &json!({"domainName": domain}));
    assert_eq!(watch("one.com").status, 201);
    let limit = |bytes| {
        let pid = Pid::from_raw(server.pid().cast_signed());
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(pid, Resource::Fsize, limit).expect("the process is ours");
    };
    limit(Some(1));
    let refused = wait::until_ok(RESUME_MAX, || {
        let response = watch("two.com");
        if response.status == 503 { Ok(response) } else { Err(response.status) }
    });
    assert_refusal(&refused);
    assert_eq!(server.client().get("/api/ready").json()["checks"]["database"], "disk_full");
    assert_eq!(server.client_with(&key).get("/api/v1/drops").status, 200);
    limit(None);
    wait::until(RESUME_MAX, "a write is taken", || watch("three.com").status == 201);
    server.stop();
}

struct World {
    site: Site,
    settings: String,
    key: String,
    writers: Vec<Writer>,
    names: Vec<String>,
    filler: PathBuf,
    rng: Rng,
    refused: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let names: Vec<String> =
            (0..WRITERS * NAMES_PER_WRITER).map(|number| format!("known{number}.com")).collect();
        let site = Site::with_names(names.iter().cloned(), TODAY);
        let settings = site.settings(
            "[plans.api]\nrequests_per_day = 1000000000\nwrites_per_minute = 1000000\nexports_per_day = 1000000000\nconcurrent_exports = 1000\n\
             active_rules = 100000\nexternal_names = 10000\n",
        );
        let disk = site.data().with_file_name("disk");
        mounts::tmpfs(&disk, DISK_BYTES);
        let site = site.with_data(&disk.join("data"));
        fs::create_dir(site.data()).expect("the new disk is empty");
        let key = site.account("owner@example.com", "api");
        let mut writers = Vec::new();
        for (at, names) in names.chunks(NAMES_PER_WRITER).enumerate() {
            let seed = rng.below(usize::MAX) as u64;
            let mut writer = Writer::new(0, &at.to_string(), names.to_vec(), seed);
            writer.notes_padding = NOTES_PADDING;
            writers.push(writer);
        }
        World { site, settings, key, writers, names, filler: disk.join("filler"), rng, refused: 0 }
    }

    fn serve(&self) -> Server {
        self.site.serve_with(&["--config", &self.settings, "--today", TODAY])
    }

    /// Starts a server and checks that its data matches the ledgers.
    fn serve_and_check(&mut self) -> Server {
        let server = self.serve();
        self.check(&server);
        server
    }

    fn check(&mut self, server: &Server) {
        let mut client = server.client_with(&self.key);
        let ledgers = self.writers.iter_mut().map(|writer| &mut writer.ledger);
        check(&mut client, &mut ledgers.collect::<Vec<&mut Ledger>>());
        check_votes(&mut client, &self.names, self.writers.iter().map(|writer| &writer.ledger));
    }

    /// Fills the disk during writes, frees it, perhaps fills it again, and kills the server, whether
    /// or not the disk is full.
    fn filled_while_writing(&mut self) {
        let server = self.serve_and_check();
        for _ in 0..self.rng.between(1, 2) {
            self.write_while_filling(&server);
            self.assert_full(&server);
            self.check(&server);
            self.free();
            self.assert_resumes(&server);
            self.check(&server);
        }
        if self.rng.chance(30) {
            self.fill();
        }
        server.kill();
        self.free();
    }

    /// Fills the disk while nothing is written; kills the server while it is full.
    fn filled_while_idle(&mut self) {
        let server = self.serve_and_check();
        self.fill();
        self.write_until_refused(&server);
        self.assert_full(&server);
        server.kill();
        self.free();
        drop(self.serve_and_check());
    }

    /// A snapshot without enough space does not affect the service; with space it succeeds.
    fn filled_before_a_snapshot(&mut self) {
        let server = self.serve_and_check();
        self.fill();
        let reply = self.site.ask_for_snapshot().expect("the server is there");
        assert_eq!(reply["reply"], "refused", "{reply}");
        self.assert_reads(&server);
        self.check(&server);
        self.free();
        self.assert_resumes(&server);
        let reply = self.site.ask_for_snapshot().expect("the server is there");
        assert_ne!(reply["reply"], "refused", "{reply}");
        self.check(&server);
        server.kill();
    }

    /// Fills the disk before a start, after a clean stop or a kill. A start writes at least a record:
    /// on a full disk, the server serves reads, and accepts writes once space is free.
    fn filled_before_the_start(&mut self) {
        let server = self.serve_and_check();
        if self.rng.chance(50) {
            server.stop();
        } else {
            self.assert_resumes(&server);
            server.kill();
        }
        self.fill();
        // Starts the server twice, because a start without space must not disturb the next one.
        self.serve_and_check().kill();
        let server = self.serve_and_check();
        self.write_until_refused(&server);
        self.assert_full(&server);
        self.free();
        self.assert_resumes(&server);
        server.kill();
    }

    /// All writers write while the disk fills, until each has been refused.
    fn write_while_filling(&mut self, server: &Server) {
        let done = AtomicBool::new(false);
        let (key, filler) = (self.key.clone(), self.filler.clone());
        let refused = thread::scope(|scope| {
            let client = server.client_with(&key);
            let reader = scope.spawn(|| {
                let mut client = client;
                while !done.load(Ordering::Relaxed) {
                    assert_reads(&mut client);
                }
            });
            let writers: Vec<_> = self
                .writers
                .iter_mut()
                .map(|writer| {
                    let client = server.client_with(&key);
                    scope.spawn(move || write_until_refused(writer, client))
                })
                .collect();
            fill(&filler);
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, Ordering::Relaxed);
            reader.join().expect("reads continue");
            ended.into_iter().map(|ended| ended.expect("a writer found no fault")).sum::<usize>()
        });
        self.refused += refused;
    }

    fn write_until_refused(&mut self, server: &Server) {
        for writer in &mut self.writers {
            self.refused += write_until_refused(writer, server.client_with(&self.key));
        }
    }

    fn assert_reads(&self, server: &Server) {
        assert_reads(&mut server.client_with(&self.key));
    }

    /// Asserts that reads succeed, writes fail, and readiness names the reason.
    fn assert_full(&self, server: &Server) {
        self.assert_reads(server);
        let (status, ready) = server.client().get("/api/ready").answer();
        let database = &ready["checks"]["database"];
        assert_eq!((status, database), (503, &json!("disk_full")), "{ready}");
        assert_eq!(ready["ready"], json!(false), "{ready}");
        assert_eq!(server.client().get("/api/health").status, 200);
    }

    /// With free space, the same process accepts writes again.
    fn assert_resumes(&mut self, server: &Server) {
        for writer in &mut self.writers {
            let mut client = server.client_with(&self.key);
            wait::until(RESUME_MAX, "a write is taken", || {
                match writer.add_claim(&mut client).expect("the server is there") {
                    Step::Done => true,
                    Step::Refused(response) => {
                        assert_refusal(&response);
                        false
                    }
                }
            });
        }
        let (status, ready) = server.client().get("/api/ready").answer();
        assert_eq!((status, &ready["checks"]["database"]), (200, &json!("ok")), "{ready}");
    }

    fn fill(&self) {
        fill(&self.filler);
    }

    fn free(&self) {
        match fs::remove_file(&self.filler) {
            Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
            _ => {}
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The folder must be unmounted to be removed; lazily, since a server left by a failed test
        // may still use it.
        let disk = self.filler.parent().expect("the filler is on the disk");
        let _ = Command::new("umount").arg("-l").arg(disk).status();
    }
}

/// Writes a file until no page is free.
fn fill(filler: &Path) {
    let mut file = File::options().create(true).append(true).open(filler).expect("a file");
    for piece in [1 << 20, 64 << 10, 4 << 10, 1] {
        let piece = vec![0x55; piece];
        loop {
            match file.write_all(&piece) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Writes until the server accepts no more; returns the number of refused writes.
fn write_until_refused(writer: &mut Writer, mut client: Client) -> usize {
    loop {
        match writer.step(&mut client).expect("the server is there") {
            Step::Done => {}
            Step::Refused(response) => {
                assert_refusal(&response);
                return 1;
            }
        }
    }
}

#[track_caller]
fn assert_refusal(response: &Response) {
    let (status, body) = response.answer();
    assert_eq!(status, 503, "{body}");
    assert!(body["error"].as_str().is_some_and(|error| !error.is_empty()), "{body}");
    let retry = response.number("retry-after");
    assert!(retry.is_some_and(|seconds| seconds >= 1), "Retry-After: {retry:?}");
}

#[track_caller]
fn assert_reads(client: &mut Client) {
    for target in [
        "/api/v1/drops",
        "/api/v1/search?q=known",
        "/api/v1/domain/known0.com",
        "/api/v1/portfolio",
        "/api/v1/watchlist",
        "/api/v1/alerts",
        "/api/export/drops",
    ] {
        let response = client.get(target);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
    }
}
