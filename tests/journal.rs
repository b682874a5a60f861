//! The journal, the accounts on it and the operator's door, on the real disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dropdex::journal::frame::{self, Kind, RecordFields, SegmentHeader};
use dropdex::journal::fs::{Disk, Fs, FsFile};
use dropdex::journal::{
    AppendError, Damage, Journal, JournalError, Options, PAYLOAD_BYTES_MAX, Recovery, inspect,
};

const KIND: Kind = match Kind::of_caller(16) {
    Some(kind) => kind,
    None => panic!("16 is the caller's"),
};

type Records = Vec<(u64, Vec<u8>)>;

fn options(dir: &Path) -> Options {
    let ticks = AtomicU64::new(1_790_000_000_000);
    Options::new(dir, Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed)))
}

fn open(options: Options) -> Result<(Journal, Recovery, Records), JournalError> {
    let mut records = Vec::new();
    let (journal, recovery) = Journal::open(options, |record| {
        records.push((record.fields.seq, record.payload.to_vec()));
        Ok(())
    })?;
    Ok((journal, recovery, records))
}

fn look(dir: &Path) -> Result<(Recovery, Records), JournalError> {
    let mut records = Vec::new();
    let recovery = inspect(&Disk, dir, |record| {
        records.push((record.fields.seq, record.payload.to_vec()));
        Ok(())
    })?;
    Ok((recovery, records))
}

fn append(journal: &Journal, payload: &[u8]) -> u64 {
    journal.append(KIND, payload.to_vec(), |_| {}).expect("durable").seq
}

/// Different lengths, zeros and text among them.
fn payload(number: u64) -> Vec<u8> {
    (0..number * 7 % 61).map(|at| (at * number) as u8).collect()
}

fn segment(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}.seg"))
}

/// A journal of `count` records, each acknowledged on its own, left as a crash leaves it but for
/// most of the zeros after it.
fn journal_of(dir: &Path, count: u64) -> Records {
    let (journal, _, _) = open(options(dir)).expect("opened");
    let records = (1..=count).map(|no| (append(&journal, &payload(no)), payload(no))).collect();
    drop(journal);
    let path = segment(dir, 1);
    let bytes = fs::read(&path).expect("read");
    let used = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    fs::write(&path, &bytes[..used.next_multiple_of(8) + 128]).expect("written");
    records
}

#[test]
fn what_was_appended_is_there_after_reopening() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, recovery, records) = open(options(dir.path())).expect("opened");
    assert_eq!((recovery.epoch, recovery.last_seq, recovery.clean), (1, 0, true));
    assert!(records.is_empty());
    let mut expected: Records =
        (1..=5).map(|no| (append(&journal, &payload(no)), payload(no))).collect();
    assert_eq!(expected[0].0, 2, "the record of the open came first");
    journal.close().expect("closed");
    assert_eq!(journal.append(KIND, vec![], |_| {}), Err(AppendError::Closed));
    drop(journal);

    let (journal, recovery, records) = open(options(dir.path())).expect("opened");
    assert_eq!((recovery.epoch, recovery.last_seq, recovery.clean), (2, 7, true));
    assert_eq!(records, expected);
    expected.push((append(&journal, b"more"), b"more".to_vec()));
    drop(journal);

    let (_journal, recovery, records) = open(options(dir.path())).expect("opened");
    assert_eq!((recovery.epoch, recovery.clean, recovery.torn), (3, false, None));
    assert_eq!(records, expected);
}

#[test]
fn every_flipped_bit_of_acknowledged_data_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    journal_of(dir.path(), 40);
    let path = segment(dir.path(), 1);
    let whole = fs::read(&path).expect("read");
    let used = whole.len() - 128;
    // In place: to write the file anew 40,000 times takes minutes on some file systems.
    let file = fs::File::options().write(true).open(&path).expect("opened");
    let write_byte = |at: usize, byte: u8| {
        std::os::unix::fs::FileExt::write_all_at(&file, &[byte], at as u64).expect("written");
    };
    for bit in 0..used * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        write_byte(bit / 8, bytes[bit / 8]);
        let found = look(dir.path()).map(|(_, records)| records.len());
        assert!(found.is_err(), "bit {bit} of {}: opened with {found:?} records", used * 8);
        // The whole open, lock and writer included, takes milliseconds: a slice of them.
        if bit % 1_009 == 0 {
            assert!(open(options(dir.path())).is_err(), "bit {bit}");
            assert!(fs::read(&path).expect("read") == bytes, "bit {bit}: changed");
        }
        write_byte(bit / 8, whole[bit / 8]);
    }
}

#[test]
fn every_cut_leaves_the_longest_whole_prefix_or_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let records = journal_of(dir.path(), 40);
    let path = segment(dir.path(), 1);
    let whole = fs::read(&path).expect("read");
    let opened = frame::SEGMENT_HEADER_BYTES + frame::record_bytes(0);
    for len in (0..whole.len()).rev() {
        let file = fs::File::options().write(true).open(&path).expect("opened");
        file.set_len(len as u64).expect("cut");
        let mut end = opened;
        let fits = |(_, payload): &&(u64, Vec<u8>)| {
            end += frame::record_bytes(payload.len());
            end <= len
        };
        let expected: Records = records.iter().take_while(fits).cloned().collect();
        match look(dir.path()) {
            Ok((_, found)) => assert!(found == expected, "cut at {len}"),
            Err(JournalError::Header { .. }) => assert!(len < frame::SEGMENT_HEADER_BYTES),
            // A record whose missing bytes are all zeros can pass for one with a changed bit.
            Err(JournalError::Damaged { .. } | JournalError::Ambiguous { .. }) => {}
            Err(err) => panic!("cut at {len}: {err}"),
        }
        if len % 101 == 0 && len >= opened {
            let (journal, _, found) = open(options(dir.path())).expect("opened");
            assert!(found == expected, "cut at {len}");
            append(&journal, b"and on");
            drop(journal);
            let (_, found) = look(dir.path()).expect("sound again");
            assert_eq!(found.len(), expected.len() + 1);
            fs::write(&path, &whole[..len]).expect("written");
        }
    }
}

#[test]
fn a_torn_tail_is_cut_and_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, _) = open(options(dir.path())).expect("opened");
    let mut expected: Records = vec![(append(&journal, b"kept"), b"kept".to_vec())];
    append(&journal, &[0xaa; 3_000]);
    drop(journal);
    // The sectors from 1024 on never reached the disk.
    let path = segment(dir.path(), 1);
    let mut bytes = fs::read(&path).expect("read");
    let start = frame::SEGMENT_HEADER_BYTES + frame::record_bytes(0) + frame::record_bytes(4);
    bytes[1_024..].fill(0);
    fs::write(&path, &bytes).expect("written");

    let (looked, _) = look(dir.path()).expect("readable");
    assert_eq!(looked.torn.expect("torn").kept_as, None);
    for round in 1..=2 {
        let (journal, recovery, records) = open(options(dir.path())).expect("opened");
        assert_eq!(records, expected);
        if round == 1 {
            let torn = recovery.torn.expect("torn");
            assert_eq!((torn.offset, torn.bytes), (start as u64, 1_024 - start as u64));
            let kept = fs::read(torn.kept_as.expect("kept")).expect("read");
            assert!(kept == bytes[start..1_024]);
        } else {
            assert_eq!(recovery.torn, None);
        }
        expected.push((append(&journal, b"on"), b"on".to_vec()));
    }
}

/// Writes a journal of one segment by hand: (`durable_seq`, payload) of each record.
fn forge(dir: &Path, records: &[(u64, &[u8])]) -> Vec<usize> {
    let uuid = [5; 16];
    let header =
        SegmentHeader { store_uuid: uuid, segment_no: 1, first_seq: 1, prev_chain: [0; 16] };
    let mut bytes = header.encode().to_vec();
    let mut chain = [0; 16];
    let mut starts = Vec::new();
    for (seq, (durable_seq, payload)) in (1..).zip(records) {
        starts.push(bytes.len());
        let fields = RecordFields {
            seq,
            durable_seq: *durable_seq,
            epoch: 1,
            kind: KIND,
            flags: 0,
            unix_ms: 0,
        };
        chain = frame::encode_record(&mut bytes, &uuid, &chain, &fields, payload);
    }
    bytes.resize(bytes.len() + 4_096, 0);
    fs::write(segment(dir, 1), bytes).expect("written");
    starts
}

fn damage(dir: &Path, at: usize) {
    let path = segment(dir, 1);
    let mut bytes = fs::read(&path).expect("read");
    // More than one bit: a crash, for all the checksum can tell.
    bytes[at..at + 16].iter_mut().for_each(|byte| *byte ^= 0x5a);
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_group_that_reached_the_disk_out_of_order_is_torn() {
    let dir = tempfile::tempdir().expect("a folder");
    // 3, 4 and 5 were one group: none of them knows another to be synced.
    let records = [(0, &b"one"[..]), (1, b"two"), (2, b"three"), (2, b"four"), (2, b"five")];
    let starts = forge(dir.path(), &records);
    damage(dir.path(), starts[2] + 56);
    let (_journal, recovery, found) = open(options(dir.path())).expect("opened");
    assert_eq!(found.len(), 2);
    assert_eq!(recovery.torn.expect("torn").offset, starts[2] as u64);
}

#[test]
fn damage_that_a_later_record_knows_to_be_synced_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let records = [(0, &b"one"[..]), (1, b"two"), (2, b"three"), (2, b"four"), (3, b"five")];
    let starts = forge(dir.path(), &records);
    damage(dir.path(), starts[2] + 56);
    match open(options(dir.path())).map(|_| ()) {
        Err(err @ JournalError::Damaged { offset, seq, .. }) => {
            assert_eq!((offset, seq), (starts[2] as u64, 3));
            let text = err.to_string();
            for part in ["00000000000000000001.seg", "record 3", "record 5 says that 3 was synced"]
            {
                assert!(text.contains(part), "{text}");
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_last_record_that_was_written_whole_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let starts = forge(dir.path(), &[(0, b"one"), (1, b"two, which is longer than sixteen bytes")]);
    damage(dir.path(), starts[1] + 56);
    let refused = open(options(dir.path())).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Ambiguous { seq: 2, .. })), "{refused:?}");
}

#[test]
fn a_payload_that_imitates_a_record_is_none() {
    let dir = tempfile::tempdir().expect("a folder");
    // Made by somebody who knows the format and not this store: "2 and 3 are synced".
    let fields =
        RecordFields { seq: 3, durable_seq: 3, epoch: 1, kind: KIND, flags: 0, unix_ms: 0 };
    let mut imitation = Vec::new();
    frame::encode_record(&mut imitation, &[6; 16], &[0; 16], &fields, b"");
    imitation.resize(2_000, 1);
    let starts = forge(dir.path(), &[(0, b"one"), (1, &imitation)]);
    let path = segment(dir.path(), 1);
    let mut bytes = fs::read(&path).expect("read");
    bytes[1_024..].fill(0);
    fs::write(path, bytes).expect("written");
    let (_journal, recovery, found) = open(options(dir.path())).expect("opened");
    assert_eq!(found.len(), 1);
    assert_eq!(recovery.torn.expect("torn").offset, starts[1] as u64);
}

#[test]
fn records_moved_about_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    // Equal lengths, so that the chain and the numbers alone can tell.
    let starts = forge(dir.path(), &[(0, b"one"), (1, b"two"), (2, b"thr"), (3, b"fou")]);
    let path = segment(dir.path(), 1);
    let whole = fs::read(&path).expect("read");
    let (len, at) =
        (starts[1] - starts[0], |no: usize| starts[no]..starts[no] + starts[1] - starts[0]);
    let mut swapped = whole.clone();
    swapped[at(1)].copy_from_slice(&whole[at(2)]);
    swapped[at(2)].copy_from_slice(&whole[at(1)]);
    let mut duplicated = whole.clone();
    duplicated[at(2)].copy_from_slice(&whole[at(1)]);
    let dropped = [&whole[..starts[1]], &whole[starts[2]..]].concat();
    let inserted = [&whole[..starts[2]], &whole[starts[1]..]].concat();
    let first_gone = [&whole[..starts[0]], &whole[starts[1]..]].concat();
    // From a store of the same name that went another way after the first record.
    let elsewhere = tempfile::tempdir().expect("a folder");
    forge(elsewhere.path(), &[(0, b"eno"), (1, b"two"), (2, b"thr"), (3, b"fou")]);
    let other = fs::read(segment(elsewhere.path(), 1)).expect("read");
    let mut spliced = whole.clone();
    spliced[at(2)].copy_from_slice(&other[at(2)]);
    assert_eq!(len % frame::ALIGN, 0);
    for (what, bytes) in [
        ("swapped", swapped),
        ("duplicated", duplicated),
        ("dropped", dropped),
        ("inserted", inserted),
        ("first gone", first_gone),
        ("spliced", spliced),
    ] {
        fs::write(&path, bytes).expect("written");
        let refused = look(dir.path()).map(|_| ());
        assert!(
            matches!(
                refused,
                Err(JournalError::Damaged {
                    damage: Damage::Sequence { .. } | Damage::Chain { .. },
                    ..
                })
            ),
            "{what}: {refused:?}"
        );
    }
}

#[test]
fn full_segments_follow_each_other_and_none_may_be_missing() {
    let dir = tempfile::tempdir().expect("a folder");
    let small = || Options { segment_bytes: 1_024, ..options(dir.path()) };
    let (journal, _, _) = open(small()).expect("opened");
    let expected: Records =
        (1..=60).map(|no| (append(&journal, &payload(no)), payload(no))).collect();
    drop(journal);
    let (journal, recovery, found) = open(small()).expect("opened");
    assert!(recovery.segments > 5, "{recovery:?}");
    assert_eq!(found, expected);
    drop(journal);

    let (second, third) = (segment(dir.path(), 2), segment(dir.path(), 3));
    let bytes = fs::read(&second).expect("read");
    assert!(bytes.len() <= 1_024);
    fs::remove_file(&second).expect("removed");
    let refused = look(dir.path()).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Misplaced { .. })), "{refused:?}");
    fs::copy(&third, &second).expect("copied");
    let refused = look(dir.path()).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Misplaced { .. })), "{refused:?}");
    // A segment before the last is acknowledged to its last byte: no cut of it is a torn tail.
    for cut in (0..bytes.len()).step_by(8) {
        fs::write(&second, &bytes[..cut]).expect("written");
        assert!(look(dir.path()).is_err(), "cut at {cut}");
    }
    fs::write(&second, &bytes).expect("written");
    assert_eq!(look(dir.path()).expect("whole again").1, expected);
}

#[test]
fn an_unfinished_segment_is_removed() {
    let dir = tempfile::tempdir().expect("a folder");
    let expected = journal_of(dir.path(), 3);
    let unfinished = dir.path().join("00000000000000000002.tmp");
    fs::write(&unfinished, b"ddx").expect("written");
    let (_journal, _, found) = open(options(dir.path())).expect("opened");
    assert_eq!(found, expected);
    assert!(!unfinished.exists());
}

#[test]
fn a_second_writer_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, _) = open(options(dir.path())).expect("opened");
    let refused = open(options(dir.path())).map(|_| ()).expect_err("in use");
    assert!(matches!(refused, JournalError::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains(&dir.path().display().to_string()), "{refused}");
    drop(journal);
    open(options(dir.path())).expect("free again");
}

#[test]
fn a_payload_too_long_is_refused_and_the_longest_is_not() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, _) = open(options(dir.path())).expect("opened");
    let len = PAYLOAD_BYTES_MAX + 1;
    let refused = journal.append(KIND, vec![0; len], |_| {});
    assert_eq!(refused, Err(AppendError::TooLong { len }));
    let seq = append(&journal, &vec![0; PAYLOAD_BYTES_MAX]);
    drop(journal);
    let (_, records) = look(dir.path()).expect("sound");
    assert_eq!(records, [(seq, vec![0; PAYLOAD_BYTES_MAX])]);
}

#[tokio::test]
async fn async_appends_are_durable_in_order() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, _) = open(options(dir.path())).expect("opened");
    let applied = Arc::new(Mutex::new(Vec::new()));
    let mut answers = Vec::new();
    for no in 1..=50 {
        let applied = Arc::clone(&applied);
        let apply =
            move |it: dropdex::journal::Appended| applied.lock().expect("unpoisoned").push(it.seq);
        answers.push(journal.append_async(KIND, payload(no), apply).expect("taken"));
    }
    let mut seqs = Vec::new();
    for answer in answers {
        seqs.push(answer.durable().await.expect("durable").seq);
    }
    assert_eq!(seqs, (2..=51).collect::<Vec<u64>>());
    assert_eq!(*applied.lock().expect("unpoisoned"), seqs);
}

/// The real disk, watched, and made to fail.
#[derive(Clone, Default)]
struct Watched {
    calls: Arc<Mutex<Vec<&'static str>>>,
    fail_writes: Arc<AtomicBool>,
    fail_syncs: Arc<AtomicBool>,
}

impl Watched {
    fn call(&self, name: &'static str, fails: bool) -> io::Result<()> {
        self.calls.lock().expect("unpoisoned").push(name);
        if fails { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }

    fn count(&self, name: &str) -> usize {
        self.calls.lock().expect("unpoisoned").iter().filter(|call| **call == name).count()
    }
}

impl Fs for Watched {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        Disk.create_dir_all(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        Disk.list(dir)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Disk.read(path)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(WatchedFile(self.clone(), Disk.create(path)?)))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(WatchedFile(self.clone(), Disk.open(path)?)))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.sync_dir(dir)
    }
}

struct WatchedFile(Watched, Box<dyn FsFile>);

impl FsFile for WatchedFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.call("write", self.0.fail_writes.load(Ordering::SeqCst))?;
        self.1.write_all_at(bytes, offset)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.1.truncate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.call("sync", self.0.fail_syncs.load(Ordering::SeqCst))?;
        self.1.sync_data()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.0.call("sync all", self.0.fail_syncs.load(Ordering::SeqCst))?;
        self.1.sync_all()
    }
}

#[test]
fn is_applied_and_answered_after_the_sync_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let disk = Watched::default();
    let (journal, _, _) =
        open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) }).expect("opened");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for no in 0..20 {
                    let calls = Arc::clone(&disk.calls);
                    let apply = move |_| calls.lock().expect("unpoisoned").push("apply");
                    journal.append(KIND, payload(no), apply).expect("durable");
                }
            });
        }
    });
    let calls = disk.calls.lock().expect("unpoisoned").clone();
    assert_eq!(calls.iter().filter(|call| **call == "apply").count(), 160);
    for pair in calls.windows(2) {
        assert!(pair[1] != "apply" || pair[0] != "write", "applied before the sync");
    }
}

#[test]
fn a_lazy_record_is_in_the_file_at_once_and_synced_soon() {
    let dir = tempfile::tempdir().expect("a folder");
    let disk = Watched::default();
    let (journal, _, _) =
        open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) }).expect("opened");
    let (syncs, begun) = (disk.count("sync"), Instant::now());
    journal.append_lazy(KIND, b"lazy".to_vec()).expect("taken");
    while look(dir.path()).expect("readable").1.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(5), "not written");
    }
    while disk.count("sync") == syncs {
        assert!(begun.elapsed() < Duration::from_secs(5), "not synced");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(begun.elapsed() >= Duration::from_millis(45), "synced for a record nobody waits for");
}

#[test]
fn after_a_failed_sync_or_write_nothing_is_written_again() {
    for failing_call in ["sync", "write"] {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = Watched::default();
        let (journal, _, _) =
            open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) }).expect("opened");
        append(&journal, b"before");
        disk.fail_syncs.store(failing_call == "sync", Ordering::SeqCst);
        disk.fail_writes.store(failing_call == "write", Ordering::SeqCst);
        let applied = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&applied);
        let failed =
            journal.append(KIND, b"lost".to_vec(), move |_| seen.store(true, Ordering::SeqCst));
        assert!(matches!(failed, Err(AppendError::Poisoned { .. })), "{failed:?}");
        // The disk is well again, and the journal does not believe it.
        disk.fail_syncs.store(false, Ordering::SeqCst);
        disk.fail_writes.store(false, Ordering::SeqCst);
        let calls = disk.calls.lock().expect("unpoisoned").len();
        assert!(matches!(journal.append(KIND, vec![], |_| {}), Err(AppendError::Poisoned { .. })));
        assert!(matches!(journal.append_lazy(KIND, vec![]), Err(AppendError::Poisoned { .. })));
        assert!(matches!(journal.health(), Err(AppendError::Poisoned { .. })));
        assert!(matches!(journal.close(), Err(AppendError::Poisoned { .. })));
        drop(journal);
        assert!(!applied.load(Ordering::SeqCst));
        assert_eq!(disk.calls.lock().expect("unpoisoned").len(), calls, "{failing_call} retried");
        let (_journal, _, found) = open(options(dir.path())).expect("opened");
        assert_eq!(found[0].1, b"before");
    }
}

mod accounts {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    use chrono::{DateTime, Utc};
    use clap::Parser;
    use dropdex::accounts::admin::{AdminCommand, AdminReply};
    use dropdex::accounts::{Caller, CommandError, Email, Store};
    use dropdex::cli::account::{AccountArgs, Streams, run_with};
    use dropdex::vocab::clock::Clock;
    use dropdex::vocab::plan::{Plan, Plans};
    use dropdex::workers::admin::{AdminSocket, AskError, ask, socket_path};

    use super::*;

    fn clock() -> Clock {
        Clock::pinned_to("2026-11-21".parse().expect("a day"))
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("an instant")
    }

    fn noon() -> DateTime<Utc> {
        at("2026-11-21T12:00:00Z")
    }

    fn store(dir: &Path) -> Store {
        Store::open(dir, Plans::default(), clock()).expect("opened")
    }

    fn email(text: &str) -> Email {
        text.parse().expect("an address")
    }

    /// An account of `plan` with a key.
    fn account(store: &Store, address: &str, plan: Plan) -> String {
        store.add_account(&email(address), plan, None).expect("added");
        store.issue_key(&email(address)).expect("issued").key.reveal().to_owned()
    }

    fn caller(store: &Store, key: &str) -> Caller {
        store.authenticate(key).expect("a working key")
    }

    #[test]
    fn reopening_gives_an_equal_state() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = store(dir.path());
        let key = account(&first, "ann@example.com", Plan::Pro);
        account(&first, "bob@example.com", Plan::Free);
        account(&first, "cy@example.com", Plan::Api);
        first.set_plan(&email("bob@example.com"), Plan::Core).expect("set");
        first.disable(&email("cy@example.com")).expect("disabled");
        first.disable(&email("cy@example.com")).expect("as wanted already");
        for _ in 0..7 {
            assert!(first.charge_request(&caller(&first, &key), noon()).granted);
        }
        assert!(first.charge_export(&caller(&first, &key), noon()).granted);
        let (snapshot, list) = (first.snapshot(), first.list());
        assert_eq!((list[0].requests_today, list[0].exports_today), (7, 1));
        first.close().expect("closed");

        let second = store(dir.path());
        assert!(second.snapshot() == snapshot);
        assert_eq!(second.list(), list);
        assert_eq!(caller(&second, &key).plan, Plan::Pro);
        assert!(second.recovery().clean);
        let next = second.add_account(&email("dee@example.com"), Plan::Free, None).expect("added");
        assert_eq!(next.0, 4, "numbers go on");
    }

    #[test]
    fn a_new_key_kills_the_old_one_and_keeps_the_usage() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = store(dir.path());
        let old = account(&store, "ann@example.com", Plan::Pro);
        for _ in 0..60 {
            assert!(store.charge_request(&caller(&store, &old), noon()).granted);
        }
        let issued = store.issue_key(&email("ann@example.com")).expect("issued");
        assert!(issued.replaced);
        assert!(store.authenticate(&old).is_none(), "the old key");
        let allowance = store.charge_request(&caller(&store, issued.key.reveal()), noon());
        assert_eq!((allowance.limit, allowance.remaining), (100, 39));
        store.disable(&email("ann@example.com")).expect("disabled");
        assert!(store.authenticate(issued.key.reveal()).is_none(), "a disabled account's key");
        let refused = store.issue_key(&email("ann@example.com")).map(|_| ());
        assert!(matches!(refused, Err(CommandError::Refused(_))), "{refused:?}");
        for stranger in
            ["", "ddx_", &old[..51], &old.to_uppercase(), &format!("ddx_{}", "0".repeat(48))]
        {
            assert!(store.authenticate(stranger).is_none(), "{stranger}");
        }
    }

    #[test]
    fn sixty_four_threads_get_the_last_requests_of_a_day_exactly() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = store(dir.path());
        let key = account(&store, "ann@example.com", Plan::Api);
        for _ in 0..9_900 {
            assert!(store.charge_request(&caller(&store, &key), noon()).granted);
        }
        let granted = AtomicU32::new(0);
        let start = std::sync::Barrier::new(64);
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    let caller = caller(&store, &key);
                    start.wait();
                    for _ in 0..10 {
                        if store.charge_request(&caller, noon()).granted {
                            granted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(granted.load(Ordering::Relaxed), 100);
        let refused = store.charge_request(&caller(&store, &key), noon());
        assert_eq!((refused.granted, refused.remaining), (false, 0));
    }

    #[test]
    fn a_crash_loses_at_most_a_hundredth_of_the_allowance_and_a_close_nothing() {
        for (plan, limit) in [(Plan::Api, 10_000_u32), (Plan::Pro, 100)] {
            let dir = tempfile::tempdir().expect("a folder");
            let first = store(dir.path());
            let key = account(&first, "ann@example.com", plan);
            let used = limit / 2 + limit / 150;
            for _ in 0..used {
                assert!(first.charge_request(&caller(&first, &key), noon()).granted);
            }
            drop(first);
            let second = store(dir.path());
            let left = second.charge_request(&caller(&second, &key), noon()).remaining;
            let kept = limit - left - 1;
            assert!(kept <= used && used - kept < (limit / 100).max(1), "{kept} of {used}");
            second.close().expect("closed");
            let third = store(dir.path());
            assert_eq!(third.charge_request(&caller(&third, &key), noon()).remaining, left - 1);
        }
    }

    #[test]
    fn a_day_that_is_over_stays_over_after_a_restart() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = store(dir.path());
        let ann = account(&first, "ann@example.com", Plan::Pro);
        let bob = account(&first, "bob@example.com", Plan::Api);
        let just_after = at("2026-11-22T00:00:01Z");
        let allowance = first.charge_request(&caller(&first, &bob), just_after);
        assert_eq!(allowance.resets_at, at("2026-11-23T00:00:00Z"));
        // The clock steps back over midnight: for Ann as well, it is the 22nd.
        let back = first.charge_request(&caller(&first, &ann), at("2026-11-21T23:59:59Z"));
        assert_eq!(back.resets_at, at("2026-11-23T00:00:00Z"));
        drop(first);
        let second = store(dir.path());
        let back = second.charge_request(&caller(&second, &ann), at("2026-11-21T23:59:59Z"));
        assert_eq!(back.resets_at, at("2026-11-23T00:00:00Z"));
        assert_eq!(back.remaining, 98);
    }

    #[test]
    fn one_address_is_one_account_however_many_ask_at_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = store(dir.path());
        let added = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for spelling in ["ann@example.com", "Ann@Example.com", " ANN@example.com "].repeat(8) {
                let (store, added) = (&store, &added);
                scope.spawn(move || match store.add_account(&email(spelling), Plan::Pro, None) {
                    Ok(_) => {
                        added.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(err) => assert!(matches!(err, CommandError::Refused(_)), "{err}"),
                });
            }
        });
        assert_eq!(added.load(Ordering::Relaxed), 1);
        assert_eq!(store.list().len(), 1);
    }

    #[test]
    fn a_store_whose_disk_failed_still_answers_and_charges() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = Watched::default();
        let fs = Arc::new(disk.clone());
        let store = Store::open_on(fs, dir.path(), Plans::default(), clock()).expect("opened");
        let key = account(&store, "ann@example.com", Plan::Pro);
        disk.fail_syncs.store(true, Ordering::SeqCst);
        let refused = store.add_account(&email("bob@example.com"), Plan::Pro, None);
        assert!(matches!(refused, Err(CommandError::Journal(_))), "{refused:?}");
        assert_eq!(store.health(), Err("read_only".into()));
        assert_eq!(store.list().len(), 1, "what was not durable was not applied");
        let mut granted = 0;
        while store.charge_request(&caller(&store, &key), noon()).granted {
            granted += 1;
        }
        assert_eq!(granted, 100);
        assert!(store.close().is_err());
    }

    #[test]
    fn a_journal_of_a_later_dropdex_is_refused_by_its_kind() {
        let dir = tempfile::tempdir().expect("a folder");
        let (journal, _, _) = open(options(&dir.path().join("journal"))).expect("opened");
        let kind = Kind::of_caller(999).expect("the caller's");
        journal.append(kind, b"?".to_vec(), |_| {}).expect("durable");
        drop(journal);
        let refused = Store::open(dir.path(), Plans::default(), clock()).map(|_| ());
        let text = refused.expect_err("unknown").to_string();
        assert!(text.contains("kind is 999") && text.contains("record 2"), "{text}");
    }

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: AccountArgs,
    }

    /// Runs `dropdex account`; what it printed, or the error.
    fn cli(dir: &Path, line: &str, input: &str) -> anyhow::Result<(String, String)> {
        let args = Cli::try_parse_from(format!("account {line}").split(' '))?.args;
        let (mut output, mut notes) = (Vec::new(), Vec::new());
        let mut streams =
            Streams { input: &mut input.as_bytes(), output: &mut output, notes: &mut notes };
        run_with(args, dir, Plans::default(), clock(), &mut streams)?;
        Ok((String::from_utf8(output)?, String::from_utf8(notes)?))
    }

    fn the_whole_command_line(dir: &Path) {
        let text = |line: &str| cli(dir, line, "").map(|(output, _)| output).expect(line);
        let error = |line: &str| format!("{:#}", cli(dir, line, "").expect_err(line));
        assert_eq!(text("add ann@example.com --plan pro"), "added ann@example.com on plan pro\n");
        cli(dir, "add bob@example.com --plan free --password-stdin", "12345678\n").expect("added");
        let short = cli(dir, "add c@example.com --plan free --password-stdin", "1234567\r\n");
        let short = short.expect_err("too short").to_string();
        assert_eq!(short, "a password has 8 to 128 characters, this has 7");
        assert!(error("add ANN@example.com --plan pro").contains("ann@example.com already"));
        assert!(error("set-plan cy@example.com pro").contains("no account for cy@example.com"));
        assert!(error("add nobody --plan pro").contains("one @"));
        assert!(error("add a@example.com --plan gold").contains("`gold` is not a plan"));
        assert_eq!(text("set-plan bob@example.com api"), "bob@example.com is on plan api\n");
        let (key, note) = cli(dir, "key ann@example.com", "").expect("a key");
        assert!(key.starts_with("ddx_") && key.len() == 53, "the key alone");
        assert!(!note.contains("old key"), "{note}");
        let (new_key, note) = cli(dir, "key ann@example.com", "").expect("a key");
        assert!(new_key != key && note.contains("Its old key no longer works."), "{note}");
        text("disable bob@example.com");
        let json: serde_json::Value = serde_json::from_str(&text("list --json")).expect("JSON");
        let last4 = &new_key.trim_end()[48..];
        assert_eq!(
            json,
            serde_json::json!([
                {"id": 1, "email": "ann@example.com", "plan": "pro", "disabled": false,
                 "created": "2026-11-21", "key_last4": last4, "has_password": false,
                 "requests_today": 0, "exports_today": 0},
                {"id": 2, "email": "bob@example.com", "plan": "api", "disabled": true,
                 "created": "2026-11-21", "key_last4": null, "has_password": true,
                 "requests_today": 0, "exports_today": 0},
            ])
        );
        let table = text("list");
        assert_eq!(table.lines().count(), 3, "{table}");
        assert!(!table.contains(key.trim_end()) && !table.contains(new_key.trim_end()));
    }

    #[test]
    fn the_command_line_works_without_a_server() {
        let dir = tempfile::tempdir().expect("a folder");
        the_whole_command_line(dir.path());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_command_line_works_with_a_server() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().to_owned();
        // What a killed server left behind.
        drop(std::os::unix::net::UnixListener::bind(socket_path(&path)).expect("bound"));
        let store = store(&path);
        let socket = AdminSocket::bind(&path).expect("bound");
        let metadata = fs::metadata(socket_path(&path)).expect("there");
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(socket.serve(store.clone(), async {
            stopped.await.expect("told to stop");
        }));
        let client = path.clone();
        tokio::task::spawn_blocking(move || the_whole_command_line(&client)).await.expect("passed");
        assert_eq!(store.list().len(), 2, "it was the server's store");

        let rude = path.clone();
        let answers = tokio::task::spawn_blocking(move || {
            use std::io::{BufRead, BufReader, Write};
            [&b"{}\n"[..], b"\xff\n", &[b'['; 20_000]].map(|line| {
                let mut stream =
                    std::os::unix::net::UnixStream::connect(socket_path(&rude)).expect("there");
                // The server may hang up on a line that is too long.
                let _ = stream.write_all(line);
                let mut answer = String::new();
                let _ = BufReader::new(stream).read_line(&mut answer);
                answer
            })
        });
        for answer in answers.await.expect("asked") {
            assert!(answer.is_empty() || answer.contains("refused"), "{answer}");
        }
        let again = path.clone();
        let reply = tokio::task::spawn_blocking(move || ask(&again, &AdminCommand::ListAccounts));
        let reply = reply.await.expect("asked").expect("answered");
        assert!(matches!(reply, AdminReply::Accounts { accounts } if accounts.len() == 2));

        stop.send(()).expect("still serving");
        serving.await.expect("ended");
        assert!(!socket_path(&path).exists(), "the socket goes with its server");
        let gone = tokio::task::spawn_blocking({
            let path = path.clone();
            move || ask(&path, &AdminCommand::ListAccounts)
        });
        let gone = gone.await.expect("asked");
        assert!(matches!(gone, Err(AskError::NobodyThere { .. })), "{gone:?}");
        store.close().expect("closed");
    }

    #[test]
    fn a_folder_in_use_by_a_mute_process_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let _held = store(dir.path());
        let error = cli(dir.path(), "list", "").expect_err("in use");
        let text = format!("{error:#}");
        assert!(text.contains(&dir.path().display().to_string()), "{text}");
        assert!(text.contains("does not answer on the admin socket"), "{text}");
    }
}
