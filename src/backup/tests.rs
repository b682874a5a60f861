use super::files::link_folder;
use super::*;
use std::fs;
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
