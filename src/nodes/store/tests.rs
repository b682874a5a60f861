use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::list::{FileList, FileParts, ObjectKey, PART_BYTES_MAX, RelativePath};
use super::memory::{ANY_AGE, Memory};
use super::objects::{ObjectError, Objects};
use super::transfer::{Downloaded, Hashed, Transfer, TransferError, is_like};

fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).expect("a path")
}

/// Bytes that differ in every part.
fn content(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ (at >> 20) as u8 ^ seed).collect()
}

/// Writes files and returns their paths.
fn files(folder: &Path, files: &[(&str, Vec<u8>)]) -> BTreeMap<RelativePath, PathBuf> {
    let write = |(name, bytes): &(&str, Vec<u8>)| {
        let at = folder.join(name);
        fs::create_dir_all(at.parent().expect("a folder")).expect("made");
        fs::write(&at, bytes).expect("written");
        (path(name), at)
    };
    files.iter().map(write).collect()
}

fn unlimited(objects: &Memory) -> Transfer<Memory> {
    Transfer::new(objects.clone(), None)
}

async fn fetch(
    transfer: &Transfer<Memory>,
    list: &FileList,
    folder: &Path,
) -> Result<Downloaded, TransferError> {
    transfer.download(list, |name| Some(folder.join(name.as_str()))).await
}

#[test]
fn paths_stay_within_their_folder() {
    for good in ["a", "corpus/batch-1.ddb", "index/gen-1/trigrams/.managed.json", "a b/ü"] {
        assert_eq!(path(good).as_str(), good);
    }
    for bad in ["", "/", "/etc/passwd", "a/../b", "..", ".", "a//b", "a/", "./a", "a\0"] {
        assert_eq!(RelativePath::parse(bad), None, "{bad:?}");
        let list = serde_json::json!({ "files": { bad: { "len": 0, "parts": [] } } });
        assert!(FileList::decode(list.to_string().as_bytes()).is_err(), "{bad:?}");
    }
    let short = serde_json::json!({ "files": { "a": { "len": 1, "parts": [] } } });
    assert!(FileList::decode(short.to_string().as_bytes()).is_err(), "a part is missing");
}

#[tokio::test]
async fn files_arrive_as_they_were_sent() {
    let (from, to) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("one"));
    let (objects, mut hashed) = (Memory::default(), Hashed::default());
    let transfer = unlimited(&objects);
    let sent = files(
        from.path(),
        &[
            ("index/a", content(PART_BYTES_MAX * 2 + 5, 1)),
            ("index/b", content(PART_BYTES_MAX, 2)),
            ("corpus/empty", Vec::new()),
        ],
    );
    let (key, list) = transfer.upload(&sent, &[], &mut hashed).await.expect("sent");
    assert_eq!(objects.puts.load(Ordering::Relaxed), 5, "four parts and the list");
    assert_eq!(transfer.list(key).await.expect("read"), list);
    let done = fetch(&transfer, &list, to.path()).await.expect("fetched");
    assert_eq!(done, Downloaded { fetched: list.bytes(), kept: 0 });
    for (name, from) in &sent {
        let arrived = to.path().join(name.as_str());
        assert!(fs::read(from).expect("read") == fs::read(&arrived).expect("read"), "{name}");
        assert!(is_like(&arrived, &list.files[name]).expect("read"));
    }
    // Unchanged parts are neither read nor sent again; parts that are already present are not
    // fetched.
    let mut next = sent.clone();
    next.extend(files(from.path(), &[("corpus/new", content(10, 3))]));
    let (_, newer) =
        transfer.upload(&next, std::slice::from_ref(&list), &mut hashed).await.expect("sent");
    assert_eq!(objects.puts.load(Ordering::Relaxed), 7, "one part and a list");
    let done = fetch(&transfer, &newer, to.path()).await.expect("fetched");
    assert_eq!(done, Downloaded { fetched: 10, kept: list.bytes() });
    // The store may have lost parts that no known list names.
    transfer.upload(&sent, &[], &mut hashed).await.expect("sent");
    assert_eq!(objects.puts.load(Ordering::Relaxed), 12);
    assert!(!is_like(&to.path().join("none"), &list.files[&path("index/a")]).expect("read"));
}

#[tokio::test]
async fn an_interrupted_download_resumes() {
    let (from, to) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("one"));
    let objects = Memory::default();
    let transfer = unlimited(&objects);
    let sent =
        files(from.path(), &[("a", content(PART_BYTES_MAX * 5 + 1, 1)), ("b", content(9, 2))]);
    let (_, list) = transfer.upload(&sent, &[], &mut Hashed::default()).await.expect("sent");
    for calls in 0..4 {
        objects.fail_after(Some(calls));
        let lost = fetch(&transfer, &list, to.path()).await.expect_err("the store is gone");
        assert!(matches!(lost, TransferError::Object(ObjectError::Unavailable(_))), "{lost}");
    }
    objects.fail_after(None);
    let before = objects.gets.load(Ordering::Relaxed);
    let done = fetch(&transfer, &list, to.path()).await.expect("fetched");
    let fetched = objects.gets.load(Ordering::Relaxed) - before;
    assert!(fetched < 7, "{fetched} of 7 parts");
    assert_eq!(done.fetched + done.kept, list.bytes());
    assert!(
        fs::read(&sent[&path("a")]).expect("read") == fs::read(to.path().join("a")).expect("read")
    );
}

#[tokio::test]
async fn damaged_and_missing_objects_are_distinguished() {
    let (from, to) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("one"));
    let objects = Memory::default();
    let transfer = unlimited(&objects);
    let sent = files(from.path(), &[("a", content(100, 1))]);
    let (key, list) = transfer.upload(&sent, &[], &mut Hashed::default()).await.expect("sent");
    let part = list.files[&path("a")].parts[0];
    objects.put(part, content(100, 9).into()).await.expect("stored");
    let damaged = fetch(&transfer, &list, to.path()).await.expect_err("damaged");
    assert!(matches!(damaged, TransferError::Object(ObjectError::Damaged(it)) if it == part));
    objects.delete(part).await.expect("removed");
    let missing = fetch(&transfer, &list, to.path()).await.expect_err("missing");
    assert!(matches!(missing, TransferError::Object(ObjectError::Missing(it)) if it == part));
    objects.put(key, b"{}".to_vec().into()).await.expect("stored");
    assert!(transfer.list(key).await.is_err(), "not what its name says");
}

#[tokio::test]
async fn unreferenced_objects_are_removed() {
    let from = tempfile::tempdir().expect("a folder");
    let objects = Memory::default();
    let transfer = unlimited(&objects);
    let mut keys = Vec::new();
    for seed in 0..3 {
        let sent = files(from.path(), &[("a", content(50, seed)), ("b", content(50, 7))]);
        let sent = transfer.upload(&sent, &[], &mut Hashed::default()).await.expect("sent");
        keys.push(sent.0);
    }
    assert_eq!(transfer.keep_only(&keys[1..], Duration::from_secs(60)).await.expect("kept"), 0);
    assert_eq!(transfer.keep_only(&keys[1..], ANY_AGE).await.expect("kept"), 2);
    for key in &keys[1..] {
        let list = transfer.list(*key).await.expect("there");
        let to = tempfile::tempdir().expect("a folder");
        fetch(&transfer, &list, to.path()).await.expect("there");
    }
    let gone = transfer.list(keys[0]).await.expect_err("removed");
    assert!(matches!(gone, TransferError::Object(ObjectError::Missing(_))));
}

#[tokio::test]
async fn the_newest_backup_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let transfer = unlimited(&Memory::default());
    assert_eq!(transfer.backup().await.expect("read"), None);
    let file = folder.path().join("file");
    let mut stored = Vec::new();
    for seed in 0..2 {
        fs::write(&file, content(PART_BYTES_MAX + 9, seed)).expect("written");
        let made = chrono::DateTime::from_timestamp(seed.into(), 0).expect("a time");
        stored.push(transfer.put_backup(&file, made).await.expect("stored"));
    }
    assert_eq!(transfer.backup().await.expect("read"), Some(stored[1]));
    assert_eq!(transfer.keep_only(&[], ANY_AGE).await.expect("removed"), 3, "those of the first");
    let to = folder.path().join("to");
    transfer.fetch_backup(&stored[1], &to).await.expect("fetched");
    assert!(fs::read(&file).expect("read") == fs::read(&to).expect("read"));
    transfer.fetch_backup(&stored[0], &to).await.expect_err("removed");
}

#[tokio::test]
async fn a_rate_limit_delays_a_transfer() {
    let from = tempfile::tempdir().expect("a folder");
    let rate = NonZeroU32::new(4 << 20);
    let transfer = Transfer::new(Memory::default(), rate);
    // The first part is covered by the burst, so it is not delayed.
    let sent = files(from.path(), &[("a", content(PART_BYTES_MAX + (2 << 20), 1))]);
    let begun = std::time::Instant::now();
    transfer.upload(&sent, &[], &mut Hashed::default()).await.expect("sent");
    assert!(begun.elapsed() >= Duration::from_millis(400), "2 MiB at 4 MiB a second");
}

#[test]
fn the_format_of_lists_is_fixed() {
    let parts = FileParts { len: 3, parts: vec![ObjectKey([0xab; 32])] };
    let list = FileList { files: [(path("corpus/a"), parts)].into() };
    let text = format!(r#"{{"files":{{"corpus/a":{{"len":3,"parts":["{}"]}}}}}}"#, "ab".repeat(32));
    assert_eq!(String::from_utf8(list.encode()).expect("text"), text);
    assert_eq!(FileList::decode(text.as_bytes()).expect("read"), list);
}
