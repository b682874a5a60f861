use super::encrypt::{Identities, decrypted};
use super::files::link_folder;
use super::name::BackupName;
use super::save::{save, verify};
use super::settings::{BackupPlace, BackupSettings, Schedule};
use super::store::BackupStore;
use super::*;
use crate::vocab::clock::Clock;
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use std::fs;
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn put(data: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = data.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
}

fn facts() -> BackupFacts {
    BackupFacts::new("2026-03-15T00:00:00Z".to_owned(), 7, "ab".repeat(32))
}

fn archive(data: &Path) -> Vec<u8> {
    let links = data.join(".links");
    let mut members = vec![Member { name: USERS.to_owned(), path: data.join("users.snap") }];
    members.extend(link(data, &links).expect("linked"));
    let mut bytes = Vec::new();
    write(&mut bytes, facts(), &members).expect("written");
    bytes
}

fn installation() -> tempfile::TempDir {
    let data = tempfile::tempdir().expect("a folder");
    let long = format!("zones/{}/state.json", "z".repeat(180));
    put(
        data.path(),
        &[
            ("users.snap", "users"),
            ("corpus/batch-0000000001.ddb", "names"),
            ("corpus/LAST", "1\n"),
            ("corpus/LOCK", ""),
            ("corpus/.new-last", "draft"),
            ("changes/00000000000000000001.seg", "events"),
            ("changes/00000000000000000000.seg.damaged", "x"),
            ("sources/enabled.json", "{}"),
            ("sources/uk/state.json", "{}"),
            ("sources/uk/lock", ""),
            ("sources/uk/list.part", "half"),
            ("sources/uk/refused/list.csv", "bad"),
            (&long, "{}"),
            ("facts/acme.ddf", "facts"),
            ("facts/.zone/draft.ddf", "half"),
            ("sales/own.csv", "sales"),
            ("inbox/waiting.csv", "solar.com"),
        ],
    );
    data
}

#[test]
fn an_archive_contains_all_but_the_index_and_no_unfinished_files() {
    let data = installation();
    let bytes = archive(data.path());
    let into = tempfile::tempdir().expect("a folder");
    let done = read(bytes.as_slice(), Some(into.path())).expect("restored");
    assert_eq!((&done.facts, done.files), (&facts(), 9));
    assert_eq!(read(bytes.as_slice(), None).expect("verified"), done);
    for (name, there) in [
        ("journal/users.snap", true),
        ("corpus/batch-0000000001.ddb", true),
        ("corpus/LAST", true),
        ("corpus/LOCK", false),
        ("corpus/.new-last", false),
        ("changes/00000000000000000001.seg", true),
        ("changes/00000000000000000000.seg.damaged", false),
        ("sources/enabled.json", true),
        ("sources/uk/state.json", true),
        ("sources/uk/list.part", false),
        ("sources/uk/refused/list.csv", false),
        ("facts/acme.ddf", true),
        ("facts/.zone/draft.ddf", false),
        ("sales/own.csv", true),
        ("inbox/waiting.csv", false),
    ] {
        assert_eq!(into.path().join(name).exists(), there, "{name}");
    }
    let long = into.path().join(format!("zones/{}/state.json", "z".repeat(180)));
    assert_eq!(fs::read_to_string(long).expect("there"), "{}");
}

#[test]
fn a_flipped_or_missing_byte_of_a_backup_is_refused_or_harmless() {
    let data = installation();
    let whole = archive(data.path());
    // Reading verifies hashes, so an archive that can be read has the same files.
    let restored = |bytes: &[u8]| read(bytes, None).ok();
    let expected = restored(&whole).expect("sound");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x11;
        if let Some(found) = restored(&bytes) {
            assert_eq!(found, expected, "byte {at}");
        }
    }
    // Every byte matters except the zeros at the end.
    let end = whole.iter().rposition(|byte| *byte != 0).expect("some");
    for cut in (0..end).step_by(41) {
        assert_eq!(restored(&whole[..cut]), None, "cut at {cut}");
    }
    let cut = read(&whole[..end - 600], None).expect_err("cut");
    assert!(matches!(cut, BackupError::CutShort | BackupError::Lost(_)), "{cut}");
}

#[test]
fn files_without_a_place_in_a_data_folder_are_refused() {
    let data = tempfile::tempdir().expect("a folder");
    put(data.path(), &[("a", "a")]);
    for name in [
        "journal/other.snap",
        "etc/passwd",
        "corpus/.hidden",
        "corpus/sub/LOCK",
        "corpus",
        "corpus/",
        "index/CURRENT",
    ] {
        let members = [Member { name: name.to_owned(), path: data.path().join("a") }];
        let mut bytes = Vec::new();
        write(&mut bytes, facts(), &members).expect("written");
        let err = read(bytes.as_slice(), None).expect_err(name);
        assert!(matches!(err, BackupError::Foreign(_)), "{name}: {err}");
    }
    for other in [&b""[..], b"dropdex journal", &[0; 2048]] {
        let err = read(other, None).expect_err("no backup");
        assert!(matches!(err, BackupError::NotABackup), "{err}");
    }
    let mut bytes = Vec::new();
    write(&mut bytes, BackupFacts { format: 2, ..facts() }, &[]).expect("written");
    let err = read(bytes.as_slice(), None).expect_err("newer");
    assert!(err.to_string().contains("format 2"), "{err}");
}

#[test]
fn a_folder_that_changes_while_it_is_linked_is_linked_again() {
    let data = tempfile::tempdir().expect("a folder");
    let corpus = data.path().join("corpus");
    let name = |number: u32| corpus.join(format!("batch-{number:010}.ddb"));
    fs::create_dir(&corpus).expect("made");
    fs::write(name(1), "1").expect("written");
    let batches_in = |members: Vec<Member>| -> Vec<u32> {
        let stem =
            |it: &Member| it.path.file_stem()?.to_str()?.strip_prefix("batch-")?.parse().ok();
        members.iter().map(|it| stem(it).expect("a batch")).collect()
    };
    let done = AtomicBool::new(false);
    let links = data.path().join(".links");
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            let mut number = 1;
            while !done.load(Ordering::Relaxed) {
                fs::write(name(number + 1), "merged").expect("written");
                fs::remove_file(name(number)).expect("removed");
                number += 1;
                if number.is_multiple_of(2_000) {
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            number
        });
        let link = || link_folder(data.path(), "corpus", &links).map(batches_in);
        let linked: Vec<_> = (0..25).map(|_| link()).collect();
        done.store(true, Ordering::Relaxed);
        let last = compacting.join().expect("no panic");
        for batches in linked {
            match batches {
                Ok(batches) => {
                    let first = *batches.first().expect("a batch at any time");
                    assert!(batches == [first] || batches == [first, first + 1], "{batches:?}");
                }
                Err(err) => assert!(matches!(err, BackupError::Moved(_)), "{err}"),
            }
        }
        assert_eq!(link().expect("linked"), [last]);
    });
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/backups");
/// Public key of `age-key.txt`.
const RECIPIENT: &str = "age1ddh09gnkf8ku4f8gm4y5ra4we5l903t0ky0q3gsjecyqxm35dakqc45g0d";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

fn identities() -> Identities {
    Identities::read(&Path::new(FIXTURES).join("age-key.txt")).expect("a key")
}

/// An installation, and the folder to which its backups go.
struct World {
    data: tempfile::TempDir,
    to: tempfile::TempDir,
    settings: BackupSettings,
}

impl World {
    fn new(encrypt_to: &[&str]) -> World {
        let to = tempfile::tempdir().expect("a folder");
        let settings = BackupSettings {
            place: BackupPlace::Folder(to.path().to_owned()),
            schedule: Schedule::Every(TimeDelta::hours(1)),
            keep: 2,
            encrypt_to: encrypt_to.iter().map(|key| key.parse().expect("a key")).collect(),
        };
        World { data: installation(), to, settings }
    }

    fn store(&self) -> BackupStore {
        BackupStore::Folder(self.to.path().to_owned())
    }

    fn collected(&self) -> Collected {
        let users = |path: PathBuf| {
            fs::copy(self.data.path().join("users.snap"), path)?;
            Ok(Users { seq: 7, state_digest: "ab".repeat(32) })
        };
        Collected::new(self.data.path(), None, Clock::system(), users).expect("collected")
    }

    fn save(&self, now: &str, stop: bool) -> anyhow::Result<String> {
        let stop = AtomicBool::new(stop);
        let made = save(&self.store(), &self.settings, &self.collected(), at(now), &stop);
        made.map(|(stored, _)| stored.name.to_string())
    }

    fn names(&self) -> Vec<String> {
        self.store().list().expect("listed").iter().map(|it| it.name.to_string()).collect()
    }

    /// Returns the names of all files in the folder.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.to.path()).expect("a folder");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().into_string().expect("UTF-8")
        };
        let mut files: Vec<String> = entries.map(name).collect();
        files.sort();
        files
    }
}

#[test]
fn other_files_are_not_backups() {
    for text in ["dropdex-20260315T030000Z.tar", "dropdex-20260315T235959Z.tar.age"] {
        let name = BackupName::parse(text).expect(text);
        assert_eq!(name.to_string(), text);
        assert_eq!(BackupName::parse_checksum(&name.checksum()), Some(name));
    }
    for other in [
        "dropdex.tar",
        "dropdex-20260315T030000Z.tar.gz",
        "dropdex-20260315T030000Z.tar.sha256",
        "dropdex-20261315T030000Z.tar",
        "dropdex-20260315T0300Z.tar",
        "dropdex-+0260315T030000Z.tar",
        "./dropdex-20260315T030000Z.tar",
        "dropdex-20260315T030000Z",
    ] {
        assert_eq!(BackupName::parse(other), None, "{other}");
    }
}

#[test]
fn a_daily_backup_is_due_at_its_time_of_day() {
    let daily = Schedule::At(NaiveTime::from_hms_opt(3, 0, 0).expect("a time"));
    for (last, due) in [
        ("2026-03-15T02:59:59Z", "2026-03-15T03:00:00Z"),
        ("2026-03-15T03:00:00Z", "2026-03-16T03:00:00Z"),
        ("2026-12-31T12:00:00Z", "2027-01-01T03:00:00Z"),
    ] {
        assert_eq!(daily.next(at(last)), at(due), "{last}");
    }
    let hourly = Schedule::Every(TimeDelta::hours(6));
    assert_eq!(hourly.next(at("2026-03-15T20:30:00Z")), at("2026-03-16T02:30:00Z"));
}

#[test]
fn old_backups_and_unfinished_files_are_pruned_and_other_files_stay() {
    let world = World::new(&[]);
    let unfinished = "dropdex-20260301T030000Z.tar";
    for file in [unfinished, "notes.txt", "dropdex.tar", "dropdex-20260301T030000Z.tar.gz"] {
        fs::write(world.to.path().join(file), "x").expect("written");
    }
    fs::create_dir(world.to.path().join("dropdex-20260302T030000Z.tar")).expect("made");
    assert!(world.names().is_empty(), "without a checksum it is unfinished");
    for day in 10..13 {
        world.save(&format!("2026-03-{day}T03:00:00.5Z"), false).expect("made");
    }
    let kept = ["dropdex-20260312T030000Z.tar", "dropdex-20260311T030000Z.tar"];
    assert_eq!(world.names(), kept);
    let mut expected: Vec<String> =
        kept.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.sha256")]).collect();
    let foreign = ["notes.txt", "dropdex.tar", "dropdex-20260301T030000Z.tar.gz"];
    expected.extend(foreign.map(str::to_owned));
    expected.push("dropdex-20260302T030000Z.tar".to_owned());
    expected.sort();
    assert_eq!(world.files(), expected);
}

#[test]
fn a_failed_backup_leaves_nothing_and_removes_nothing() {
    let world = World::new(&[]);
    for day in 10..12 {
        world.save(&format!("2026-03-{day}T03:00:00Z"), false).expect("made");
    }
    let before = world.files();
    let stopped = world.save("2026-03-12T03:00:00Z", true).expect_err("stopped");
    assert!(format!("{stopped:#}").contains("shutting down"), "{stopped:#}");
    world.save("2026-03-11T03:00:00Z", false).expect_err("it exists");
    assert_eq!(world.files(), before);
    let store = world.store();
    let full = store
        .create(BackupName { at: at("2026-03-12T03:00:00Z"), is_encrypted: false }, u64::MAX / 4);
    let full = full.err().expect("no such disk").to_string();
    assert!(full.contains("free space, lower [backup] keep"), "{full}");
    let missing = BackupStore::Folder(world.to.path().join("missing"));
    let missing = format!("{:#}", missing.list().expect_err("missing"));
    assert!(missing.contains("mount its disk"), "{missing}");
}

#[test]
fn an_encrypted_backup_is_read_only_with_its_key() {
    let world = World::new(&[RECIPIENT]);
    // Encrypted in several chunks.
    fs::write(world.data.path().join("corpus/batch-0000000002.ddb"), vec![7; 200_000])
        .expect("written");
    let name = world.save("2026-03-15T03:00:00Z", false).expect("made");
    assert_eq!(name, "dropdex-20260315T030000Z.tar.age");
    let bytes = fs::read(world.to.path().join(&name)).expect("there");
    assert!(!bytes.windows(5).any(|found| found == b"solar" || found == b"users"), "readable");
    let stored = BackupName::parse(&name).expect("a name");
    let sum = world.store().checksum(stored).expect("there");
    let refused =
        |file: &[u8], sum, keys| format!("{:#}", verify(file, sum, keys).expect_err("refused"));
    let keys = identities();
    let sealed = verify(bytes.as_slice(), Some(&sum), None).expect("only its checksum");
    assert_eq!((sealed.bytes, sealed.content), (bytes.len() as u64, None));
    let open = verify(bytes.as_slice(), Some(&sum), Some(&keys)).expect("all of it");
    assert_eq!(open.content.expect("decrypted").facts.seq, 7);
    assert!(refused(&bytes, None, None).contains("--identity FILE"));
    let other = world.data.path().join("other.txt");
    let key = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n";
    fs::write(&other, key).expect("written");
    let others = Identities::read(&other).expect("a key");
    assert!(refused(&bytes, None, Some(&others)).contains("no key of the identity file"));
    fs::write(&other, "not a key\n").expect("written");
    let refusal = format!("{:#}", Identities::read(&other).err().expect("no key"));
    assert!(refusal.contains("other.txt") && refusal.contains("age-keygen"), "{refusal}");
    // Each damage is reported, with and without the key.
    for cut in [bytes.len() - 1, bytes.len() / 2, 300, 150, 30] {
        let damaged = refused(&bytes[..cut], Some(&sum), Some(&keys));
        assert!(damaged.contains("use another one"), "cut at {cut}: {damaged}");
        assert!(refused(&bytes[..cut], Some(&sum), None).contains("use another one"), "{cut}");
    }
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    assert!(refused(&flipped, None, Some(&keys)).contains("damaged"));
}

#[test]
fn a_file_of_the_age_command_line_is_decrypted() {
    let sealed = fs::read(Path::new(FIXTURES).join("94342a2.tar.age")).expect("there");
    let mut opened = Vec::new();
    let keys = identities();
    let mut reader = decrypted(sealed.as_slice(), Some(&keys)).expect("the right key");
    reader.read_to_end(&mut opened).expect("sound");
    assert!(opened == fs::read(Path::new(FIXTURES).join("94342a2.tar")).expect("there"));
}

#[test]
fn a_store_that_returns_other_bytes_is_reported_by_verify() {
    let world = World::new(&[]);
    let name = world.save("2026-03-15T03:00:00Z", false).expect("made");
    let stored = BackupName::parse(&name).expect("a name");
    let sum = world.store().checksum(stored).expect("there");
    let mut bytes = fs::read(world.to.path().join(&name)).expect("there");
    verify(bytes.as_slice(), Some(&sum), None).expect("sound");
    // The padding is in the checksum of the file only.
    *bytes.last_mut().expect("some") ^= 1;
    let damaged = verify(bytes.as_slice(), Some(&sum), None).expect_err("damaged").to_string();
    assert!(damaged.contains("differs from its checksum"), "{damaged}");
}
