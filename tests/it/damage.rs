//! An index that is damaged, or whose build is interrupted or runs out of space: a verified generation
//! is always served. `DROPDEX_SEED=<number>` repeats a run, `DROPDEX_FULL=1` runs at full size.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::mounts;
use crate::common::rng::Rng;
use crate::common::runs::{figure, full, say, seed};
use crate::common::{Client, Server, Site, TODAY, wait};
use dropdex::index::generation::open::{self, Opened};
use dropdex::index::storage::manifest::{GenerationId, Manifest, folder_of};

/// Deadline from a switch of `CURRENT` to responses from the other generation, on a busy machine.
const SWAP_MAX: Duration = Duration::from_secs(60);
/// One query of every kind.
const QUESTIONS: [&str; 8] = [
    "/api/v1/drops?limit=50",
    "/api/v1/drops?view=all&tld=de&min_dqs=20&offset=5",
    "/api/v1/drops?view=all&q=hop&limit=100",
    "/api/v1/search?q=shop&limit=100",
    "/api/v1/search?q=s&stage=redemption&max_len=9",
    "/api/v1/search?q=m%C3%BCn",
    "/api/v1/domain/shop9.com",
    "/api/v1/domain/xn--mnchen7-n2a.de",
];

fn list(tag: &str, names: usize) -> String {
    let rows: String = (0..names)
        .map(|at| {
            let (tld, day) = (["com", "de", "net"][at % 3], 1 + at % 14);
            let label = if at % 9 == 7 { "münchen" } else { tag };
            format!("{label}{at}.{tld},2026-03-{day:02}\n")
        })
        .collect();
    format!("domain,drop_date\n{rows}")
}

/// Creates an installation with two generations of different lists.
fn two_generations() -> (Site, String) {
    let site = Site::new();
    let key = site.account("owner@example.com", "api");
    for (name, names) in [("shop", 300), ("tea", 120)] {
        let list = site.write(&format!("{name}.csv"), list(name, names));
        site.ok_on(TODAY, &["ingest", list.to_str().expect("UTF-8")]);
    }
    (site, key)
}

fn serve(site: &Site) -> Server {
    let settings =
        site.settings("[plans.api]\nrequests_per_day = 1000000000\nwrites_per_minute = 1000000\n");
    site.serve_with(&["--config", &settings, "--today", TODAY])
}

fn answers(client: &mut Client) -> Vec<(u16, String)> {
    QUESTIONS.iter().map(|target| answer(client, target)).collect()
}

/// Returns status and body of a response, without the number of the generation.
fn answer(client: &mut Client, target: &str) -> (u16, String) {
    let response = client.get(target);
    let mut body = response.json();
    body.as_object_mut().map(|members| members.remove("generation"));
    (response.status, body.to_string())
}

fn files_of(site: &Site, generation: u64) -> Vec<PathBuf> {
    let folder = folder_of(&site.index(), GenerationId(generation));
    let manifest = Manifest::read(&folder).expect("sound");
    let names = manifest.files.keys().map(String::as_str).chain(["MANIFEST"]);
    names.map(|name| folder.join(name)).collect()
}

/// Returns the generation that a server would serve if it started now, and whether `CURRENT` names it.
fn opened(index: &Path) -> (u64, bool) {
    let Opened { index, fallback } =
        open::open_current(index).expect("a valid generation always exists");
    (index.manifest().generation.0, fallback.is_none())
}

fn leftovers(index: &Path) -> Vec<String> {
    let entries = fs::read_dir(index).expect("readable");
    let names = entries.map(|entry| entry.expect("one").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn a_server_is_independent_of_its_index_files() {
    let (site, key) = two_generations();
    let server = serve(&site);
    let mut client = server.client_with(&key);
    let before = answers(&mut client);
    assert!(before.iter().filter(|(status, _)| *status == 200).count() >= 7, "{before:?}");
    for (at, path) in files_of(&site, 2).iter().enumerate() {
        let len = fs::metadata(path).expect("there").len();
        let file = File::options().write(true).open(path).expect("writable");
        match at % 4 {
            0 => file.set_len(len / 2).expect("cut"),
            1 => file.set_len(0).expect("cut"),
            2 => (&file).write_all(&vec![0xa5; len as usize]).expect("overwritten"),
            _ => fs::remove_file(path).expect("removed"),
        }
        assert_eq!(answers(&mut client), before, "{}", path.display());
    }
    let current = site.index().join("CURRENT");
    let named = fs::read(&current).expect("readable");
    fs::write(&current, "gen-").expect("written");
    assert_eq!(answers(&mut client), before);
    fs::remove_file(&current).expect("removed");
    assert_eq!(answers(&mut client), before);
    fs::write(&current, named).expect("written");
    server.stop();

    // The next start serves the previous generation and reports that.
    let server = serve(&site);
    let (status, ready) = server.client().get("/api/ready").answer();
    assert_eq!(status, 200, "{ready}");
    // The response is a word without file names, since anybody can read it.
    assert_eq!(ready["checks"]["drops"], "older_generation", "{ready}");
    let generation = |target: &str| {
        let response = server.client_with(&key).get(target);
        (response.status, response.header("x-index-generation").map(str::to_owned))
    };
    assert_eq!(generation(QUESTIONS[3]), (200, Some("1".to_owned())));
    let page = server.client().get("/status");
    assert!(page.text().contains("the previous one is served"), "{}", page.text());
    server.stop();
}

#[test]
fn every_changed_byte_at_rest_is_refused() {
    let site = Site::new();
    for (name, names) in [("a", 24), ("b", 6)] {
        let list = site.write(&format!("{name}.csv"), list(name, names));
        site.ok_on(TODAY, &["ingest", list.to_str().expect("UTF-8")]);
    }
    let index = site.index();
    assert_eq!(opened(&index), (2, true));
    let mut rng = Rng::new(seed());
    let mut changes = 0;
    for path in files_of(&site, 2) {
        let whole = fs::read(&path).expect("readable");
        // Changes two pages completely or only some of their bytes; a shorter file is changed
        // completely.
        let pages = [rng.below(whole.len() / 4096 + 1), rng.below(whole.len() / 4096 + 1)];
        let mut places: Vec<usize> =
            pages.iter().flat_map(|page| page * 4096..whole.len().min((page + 1) * 4096)).collect();
        places.sort_unstable();
        places.dedup();
        if !full() {
            let step = (places.len() / 6).max(1);
            let first = rng.below(step);
            places = places.into_iter().skip(first).step_by(step).collect();
        }
        let mut refused = |bytes: &[u8], what: &str| {
            fs::write(&path, bytes).expect("writable");
            assert_eq!(opened(&index), (1, false), "{} {what}", path.display());
            changes += 1;
        };
        for at in places {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << rng.below(8);
            refused(&bytes, &format!("byte {at} changed"));
        }
        for _ in 0..figure(2, 200) {
            if !whole.is_empty() {
                let at = rng.below(whole.len());
                refused(&whole[..at], &format!("cut at {at}"));
            }
        }
        refused(&[&whole[..], b"x"].concat(), "one byte more");
        fs::write(&path, &whole).expect("writable");
    }
    // The name of a generation in `CURRENT` is too short for a checksum. A changed name either names
    // a verified generation, or causes an error that says that it names none.
    let current = index.join("CURRENT");
    let whole = fs::read(&current).expect("readable");
    let flipped = (0..whole.len() * 8).map(|bit| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    });
    for bytes in flipped.chain((0..whole.len()).map(|end| whole[..end].to_vec())) {
        fs::write(&current, &bytes).expect("writable");
        if let Ok(Opened { index, .. }) = open::open_current(&index) {
            assert!([1, 2].contains(&index.manifest().generation.0));
        }
        changes += 1;
    }
    fs::write(&current, whole).expect("writable");
    assert_eq!(opened(&index), (2, true));
    say(&format!("{changes} changes of files at rest"));
}

#[test]
fn killed_builds_leave_a_valid_index() {
    let (site, key) = two_generations();
    let server = serve(&site);
    let mut client = server.client_with(&key);
    let mut rng = Rng::new(seed());
    let begun = Instant::now();
    site.ok_on(TODAY, &["rebuild", "--local"]);
    // The maximum is one and a half times as long, because lists are ingested and batches compacted
    // first.
    let longest = begun.elapsed().as_micros() as usize * 3 / 2;
    let rounds = figure(10, 200);
    for round in 0..rounds {
        let delay = Duration::from_micros(rng.below(longest) as u64);
        let more = site.write(&format!("more{round}.csv"), list(&format!("more{round}x"), 40));
        let more = more.to_str().expect("UTF-8");
        // Every third round first ingests a list and compacts many batches.
        let arguments: &[&str] = match round % 3 {
            0 => &["rebuild", "--local"],
            1 => &["ingest", "--local", more],
            _ => &["rebuild", "--local", "--compact"],
        };
        site.start_on(TODAY, arguments).kill_within(delay);
        let (generation, sound) = opened(&site.index());
        assert!(sound, "after {round}: {generation} instead of what CURRENT names");
        let response = client.get(QUESTIONS[3]);
        assert_eq!(response.status, 200, "{}", response.text());
        assert!(response.text().contains("shop9."), "{}", response.text());
    }
    // An interrupted operation succeeds on a retry, and leaves nothing behind.
    for round in (0..rounds).filter(|round| round % 3 == 1) {
        let more = site.lists().join(format!("more{round}.csv"));
        site.ok_on(TODAY, &["ingest", "--local", "--no-rebuild", more.to_str().expect("UTF-8")]);
    }
    site.ok_on(TODAY, &["rebuild", "--local"]);
    assert_eq!(leftovers(&site.index()), [] as [&str; 0]);
    assert_eq!(leftovers(&site.data().join("corpus")), [] as [&str; 0]);
    site.ok(&["index", "verify"]);
    for round in (0..rounds).filter(|round| round % 3 == 1) {
        let target = format!("/api/v1/search?q=more{round}x");
        wait::until_ok(SWAP_MAX, || {
            let answer = client.get(&target);
            if answer.json()["total"] == 36 { Ok(()) } else { Err(answer.text().to_owned()) }
        });
    }
    server.stop();
    say(&format!("killed {rounds} times within {} ms", longest / 1000));
}

#[test]
fn two_rebuilds_and_rollbacks_under_load_serve_one_of_two() {
    let (site, key) = two_generations();
    let server = serve(&site);
    let known: Vec<Vec<(u16, String)>> = {
        let mut client = server.client_with(&key);
        let newer = answers(&mut client);
        site.ok(&["index", "rollback"]);
        wait::until(SWAP_MAX, "it is rolled back", || answers(&mut client) != newer);
        vec![newer, answers(&mut client)]
    };
    let (stop, address) = (AtomicBool::new(false), server.address());
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut client, mut asked) = (Client::new(address).with_key(&key), 0);
            while !stop.load(Ordering::Relaxed) {
                for (at, target) in QUESTIONS.iter().enumerate() {
                    let answer = answer(&mut client, target);
                    assert!(known.iter().any(|known| known[at] == answer), "{target}: {answer:?}");
                    asked += 1;
                }
            }
            asked
        });
        for _ in 0..figure(3, 50) {
            let rebuilds = [0, 1].map(|_| scope.spawn(|| site.run(&["rebuild", "--local"])));
            let codes = rebuilds.map(|run| {
                let finished = run.join().expect("no panic");
                if finished.code != Some(0) {
                    finished.assert_failed(1, &["another", "try again"]);
                }
                finished.code
            });
            assert!(codes.contains(&Some(0)), "{codes:?}");
            assert!(opened(&site.index()).1);
            site.ok(&["index", "rollback"]);
            assert!(opened(&site.index()).1);
        }
        stop.store(true, Ordering::Relaxed);
        say(&format!("{} answers meanwhile", asking.join().expect("every response is known")));
    });
    server.stop();
}

/// Fills the disk with one file.
fn fill(filler: &Path) {
    let mut file = File::create(filler).expect("a file");
    let piece = vec![0x55; 64 << 10];
    while file.write_all(&piece).is_ok() {}
}

/// Batches are merged only for speed. Without space for that, the index is built anyway, and no
/// temporary files remain.
#[test]
fn too_little_space_to_merge_batches_does_not_stop_a_build() {
    if !mounts::may_mount() {
        let test = "damage::too_little_space_to_merge_batches_does_not_stop_a_build";
        return mounts::run_where_mounting_works(test);
    }
    let site = Site::new();
    let disk = site.data().with_file_name("disk");
    mounts::tmpfs(&disk, 12 << 20);
    let data = disk.join("data");
    let settings = site.settings("[index]\ncompact_above = 2\n");
    let on_it = |arguments: &[&str]| {
        let data = ["--config", &settings, "--data", data.to_str().expect("UTF-8")];
        site.run(&[&data, arguments].concat())
    };
    for number in 0..10 {
        let list = site.write("list.csv", list(&format!("shop{number}x"), 2_000));
        let list = list.to_str().expect("UTF-8");
        assert_eq!(on_it(&["ingest", "--no-rebuild", list]).code, Some(0));
    }
    let corpus = data.join("corpus");
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |facts| facts.len());
    let batch = bytes(&corpus.join("batch-0000000001.ddb"));
    assert!(batch > 20_000, "{batch}");
    let filler = disk.join("filler");
    fill(&filler);
    let whole = bytes(&filler);
    let file = File::options().write(true).open(&filler).expect("it is there");
    file.set_len(whole - batch).expect("shorter");
    // The disk has space for a tenth of the index, which is detected before the first byte is
    // written.
    let built = on_it(&["rebuild", "--local"]);
    assert_eq!(built.code, Some(0), "{built}");
    assert!(built.stderr.contains("compaction failed"), "{built}");
    // An explicit rebuild reports the lack of space, and the draft is removed.
    on_it(&["rebuild", "--local", "--compact"]).assert_failed(13, &["no space left"]);
    assert_eq!(leftovers(&corpus), [] as [&str; 0]);
    // A list for which there is no space leaves no files either.
    let long = site.write("long.csv", list("longer", 20_000));
    on_it(&["ingest", "--no-rebuild", long.to_str().expect("UTF-8")])
        .assert_failed(13, &["no space left"]);
    assert_eq!(leftovers(&corpus), [] as [&str; 0]);
    drop(file);
    fs::remove_file(&filler).expect("removed");
    let built = on_it(&["rebuild", "--local", "--compact"]);
    assert_eq!(built.code, Some(0), "{built}");
}

/// With little memory, most of the table of these names goes to a temporary file.
#[test]
fn a_build_in_little_memory_leaves_nothing_behind() {
    const NAMES: usize = 100_000;
    if !mounts::may_mount() {
        let test = "damage::a_build_in_little_memory_leaves_nothing_behind";
        return mounts::run_where_mounting_works(test);
    }
    let site = Site::new();
    let list = site.write("shop.csv", list("shop", NAMES));
    site.ok_on(TODAY, &["ingest", "--no-rebuild", list.to_str().expect("UTF-8")]);
    let disk = site.data().with_file_name("disk");
    mounts::tmpfs(&disk, 64 << 20);
    let index = disk.join("index");
    let folder = index.to_str().expect("UTF-8").to_owned();
    let settings = site.settings("[index]\nrebuild_memory_mib = 16\n");
    let arguments = ["--config", &settings, "--index", &folder, "rebuild", "--local"];
    let begun = Instant::now();
    assert_eq!(site.run(&["--index", &folder, "rebuild", "--local"]).code, Some(0));
    let longest = begun.elapsed().as_micros() as usize + 1;
    let expected = sums(&index);
    // After a kill, the next rebuild removes the draft; the temporary file has already disappeared.
    let mut rng = Rng::new(seed());
    for _ in 0..figure(2, 20) {
        remove_leftovers(&index);
        let mut child = site.command(&arguments).spawn().expect("it starts");
        wait::until(SWAP_MAX, "a rebuild begins", || !leftovers(&index).is_empty());
        thread::sleep(Duration::from_micros(rng.below(longest) as u64));
        child.kill().expect("killed, or over");
        child.wait().expect("over");
        assert!(leftovers(&index).iter().all(|left| !index.join(left).join("table").exists()));
        assert!(opened(&index).1);
    }
    // Files left by the previous round would trigger the filler too early.
    remove_leftovers(&index);
    // The disk fills up after the rebuild has checked the free space.
    let filler = disk.join("filler");
    let before = opened(&index);
    let done = AtomicBool::new(false);
    let failed = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && leftovers(&index).is_empty() {
                thread::sleep(Duration::from_micros(200));
            }
            fill(&filler);
        });
        let failed = site.run(&arguments);
        done.store(true, Ordering::Relaxed);
        failed
    });
    assert!(failed.code == Some(13) && !failed.stderr.contains("panicked"), "{failed}");
    assert_eq!(leftovers(&index), [] as [&str; 0]);
    assert_eq!(opened(&index), before);
    fs::remove_file(&filler).expect("removed");
    let built = site.run(&arguments);
    assert_eq!(built.code, Some(0), "{built}");
    assert_eq!(sums(&index), expected, "the same files as with more memory");
}

fn remove_leftovers(index: &Path) {
    for left in leftovers(index) {
        fs::remove_dir_all(index.join(left)).expect("removed");
    }
}

/// Returns the contents of the files of the current generation; tantivy's files, which have random
/// names, by kind.
fn sums(index: &Path) -> Vec<(String, String)> {
    let folder = folder_of(index, GenerationId(opened(index).0));
    let files = Manifest::read(&folder).expect("sound").files.into_iter();
    let sums = files.filter_map(|(name, file)| match name.strip_prefix("drops/") {
        Some(drawn) => drawn
            .rsplit_once('.')
            .filter(|(_, kind)| *kind != "json")
            .map(|(_, kind)| (kind.to_owned(), file.blake3)),
        None => Some((name, file.blake3)),
    });
    sums.collect()
}

#[test]
fn a_disk_that_fills_during_a_build_keeps_the_old_index() {
    if !mounts::may_mount() {
        let test = "damage::a_disk_that_fills_during_a_build_keeps_the_old_index";
        return mounts::run_where_mounting_works(test);
    }
    let site = Site::new();
    let list = site.write("shop.csv", list("shop", 6_000));
    site.ok_on(TODAY, &["ingest", "--no-rebuild", list.to_str().expect("UTF-8")]);
    let disk = site.data().with_file_name("disk");
    mounts::tmpfs(&disk, 12 << 20);
    let index = disk.join("index");
    let folder = index.to_str().expect("UTF-8").to_owned();
    let rebuild = || site.run(&["--index", &folder, "rebuild", "--local"]);
    let begun = Instant::now();
    assert_eq!(rebuild().code, Some(0));
    let longest = begun.elapsed().as_micros() as usize + 1;
    let (mut failed, rounds) = (0, figure(5, 100));
    let mut rng = Rng::new(seed());
    for round in 0..rounds {
        let filler = disk.join("filler");
        let before = opened(&index).0;
        let done = AtomicBool::new(false);
        let finished = thread::scope(|scope| {
            scope.spawn(|| {
                // Another process takes the space after the rebuild has checked it.
                let delay = if round == 0 { 0 } else { rng.below(longest) };
                let delay = Duration::from_micros(delay as u64);
                while !done.load(Ordering::Relaxed) && leftovers(&index).is_empty() {
                    thread::sleep(Duration::from_micros(200));
                }
                thread::sleep(delay);
                fill(&filler);
            });
            let finished = rebuild();
            done.store(true, Ordering::Relaxed);
            finished
        });
        let (now, sound) = opened(&index);
        assert!(sound, "round {round}: {finished}");
        if finished.code == Some(0) {
            assert!(now > before, "{finished}");
        } else {
            failed += 1;
            assert!(!finished.stderr.contains("panicked"), "{finished}");
            assert_eq!(now, before, "{finished}");
        }
        fs::remove_file(&filler).expect("removed");
    }
    say(&format!("{failed} of {rounds} rebuilds had no room"));
    assert!(failed > 0, "the disk was never full during a rebuild");
    // A rebuild without enough space does not begin.
    let filler = disk.join("filler");
    fill(&filler);
    rebuild().assert_failed(13, &["MB free", "free some space"]);
    fs::remove_file(&filler).expect("removed");
    let last = rebuild();
    assert_eq!(last.code, Some(0), "{last}");
    assert_eq!(leftovers(&index), [] as [&str; 0]);
}
