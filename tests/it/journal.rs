//! The journal, the accounts on it and the admin socket, on the real disk.

use std::fs;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dropdex::journal::frame::{self, RecordFields, RecordKind, SegmentHeader};
use dropdex::journal::fs::{DirLock, Disk, Fs, FsFile};
use dropdex::journal::{
    AppendError, Appended, Damage, Inspection, Journal, JournalError, Marking, Options,
    PAYLOAD_BYTES_MAX, Position, Record, Recovery, Replay, ReplayResult, SnapshotReport, Unread,
    dump, inspect, repair, restore, verify_snapshot,
};

const KIND: RecordKind = match RecordKind::for_caller(16) {
    Some(kind) => kind,
    None => panic!("16 is the caller's"),
};

type Records = Vec<(u64, Vec<u8>)>;

fn options(dir: &Path) -> Options {
    let ticks = AtomicU64::new(1_790_000_000_000);
    Options::new(dir, Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed)))
}

/// Data that was read from a journal: the last snapshot, and the records after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kept {
    chunks: Vec<Vec<u8>>,
    records: Records,
    resets: usize,
}

impl Replay for Kept {
    fn reset(&mut self) {
        *self = Kept { resets: self.resets + 1, ..Kept::default() };
    }
    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult {
        self.chunks.push(bytes.to_vec());
        Ok(())
    }
    fn record(&mut self, record: &Record<'_>) -> ReplayResult {
        self.records.push((record.fields.seq, record.payload.to_vec()));
        Ok(())
    }
}

fn open_kept(options: Options) -> Result<(Journal, Recovery, Kept), JournalError> {
    let mut kept = Kept::default();
    let (journal, recovery) = Journal::open(options, &mut kept)?;
    Ok((journal, recovery, kept))
}

fn open(options: Options) -> Result<(Journal, Recovery, Records), JournalError> {
    let (journal, recovery, kept) = open_kept(options)?;
    Ok((journal, recovery, kept.records))
}

fn look_at(dir: &Path) -> Result<(Inspection, Kept), JournalError> {
    let mut kept = Kept::default();
    let inspection = inspect(&Disk, dir, None, &mut kept)?;
    Ok((inspection, kept))
}

fn look(dir: &Path) -> Result<(Recovery, Records), JournalError> {
    let (inspection, kept) = look_at(dir)?;
    Ok((inspection.recovery, kept.records))
}

/// Resets the mark as if it had never caught up, so that the tail is classified only by the log.
fn lag_mark(dir: &Path) {
    let first = list_segments(dir).into_iter().next().expect("a segment");
    let header = SegmentHeader::decode(&fs::read(first).expect("read")).expect("sound");
    write_mark(dir, header.store_uuid, 0, [0; 16]);
}

/// Returns the segments in `dir`, first to last.
fn list_segments(dir: &Path) -> Vec<PathBuf> {
    let mut segments = Disk.list(dir).expect("listed");
    segments.retain(|path| path.extension().is_some_and(|it| it == "seg"));
    segments.sort();
    segments
}

fn append(journal: &Journal, payload: &[u8]) -> u64 {
    journal.append(KIND, payload.to_vec(), |_| {}).expect("durable").seq
}

/// Returns payloads of different lengths, some of zeros, some of text.
fn payload(number: u64) -> Vec<u8> {
    (0..number * 7 % 61).map(|at| (at * number) as u8).collect()
}

fn segment(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}.seg"))
}

/// Creates a journal of `count` records, each acknowledged on its own, in the state after a crash, but
/// without most of the zeros at the end.
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
fn appended_records_are_read_after_reopening() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, recovery, records) = open(options(dir.path())).expect("opened");
    assert_eq!((recovery.epoch, recovery.last_seq, recovery.clean), (1, 0, true));
    assert!(records.is_empty());
    let mut expected: Records =
        (1..=5).map(|no| (append(&journal, &payload(no)), payload(no))).collect();
    assert_eq!(expected[0].0, 2, "the record of the open is the first one");
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
    // Writes in place: rewriting the file 40,000 times takes minutes on some file systems.
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
        // A complete open, with lock and writer, takes milliseconds, so it is only tried for some
        // bits.
        if bit % 1_009 == 0 {
            assert!(open(options(dir.path())).is_err(), "bit {bit}");
            assert!(fs::read(&path).expect("read") == bytes, "bit {bit}: changed");
        }
        write_byte(bit / 8, whole[bit / 8]);
    }
}

#[test]
fn every_cut_is_refused_where_the_mark_proves_a_loss() {
    let dir = tempfile::tempdir().expect("a folder");
    journal_of(dir.path(), 40);
    let path = segment(dir.path(), 1);
    let whole = fs::read(&path).expect("read");
    let file = fs::File::options().write(true).open(&path).expect("opened");
    for len in (0..whole.len() - 128).rev() {
        file.set_len(len as u64).expect("cut");
        match look(dir.path()) {
            Err(JournalError::Header { .. }) => assert!(len < frame::SEGMENT_HEADER_BYTES),
            Err(
                JournalError::Missing { evidence, .. } | JournalError::Damaged { evidence, .. },
            ) => {
                assert!(evidence.contains("the commit mark says that 41"), "{evidence}");
            }
            other => panic!("cut at {len}: {other:?}"),
        }
    }
}

#[test]
fn every_cut_leaves_the_longest_whole_prefix_or_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let records = journal_of(dir.path(), 40);
    lag_mark(dir.path());
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
            // A record whose missing bytes are all zeros can look like one with a changed bit.
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
            lag_mark(dir.path());
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
    // The sectors starting at offset 1024 never reached the disk.
    let path = segment(dir.path(), 1);
    let mut bytes = fs::read(&path).expect("read");
    let start = frame::SEGMENT_HEADER_BYTES + frame::record_bytes(0) + frame::record_bytes(4);
    bytes[1_024..].fill(0);
    fs::write(&path, &bytes).expect("written");
    let refused = look(dir.path()).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Damaged { seq: 3, .. })), "{refused:?}");
    // This is the state after a crash before the mark was written.
    lag_mark(dir.path());

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

/// Writes a journal of one segment by hand, from the `durable_seq` and payload of each record.
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
    write_mark(dir, uuid, 0, [0; 16]);
    starts
}

fn damage(dir: &Path, at: usize) {
    let path = segment(dir, 1);
    let mut bytes = fs::read(&path).expect("read");
    // Records with more than one changed bit look like the result of a crash.
    bytes[at..at + 16].iter_mut().for_each(|byte| *byte ^= 0x5a);
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_group_that_reached_the_disk_out_of_order_is_torn() {
    let dir = tempfile::tempdir().expect("a folder");
    // Records 3, 4 and 5 were one group, so none of them states that another is synced.
    let records = [(0, &b"one"[..]), (1, b"two"), (2, b"three"), (2, b"four"), (2, b"five")];
    let starts = forge(dir.path(), &records);
    damage(dir.path(), starts[2] + 56);
    let (_journal, recovery, found) = open(options(dir.path())).expect("opened");
    assert_eq!(found.len(), 2);
    assert_eq!(recovery.torn.expect("torn").offset, starts[2] as u64);
}

#[test]
fn damage_before_a_record_that_knows_of_the_sync_is_refused() {
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
    let refused = open(options(dir.path())).map(|_| ()).expect_err("undecidable");
    assert!(matches!(refused, JournalError::Ambiguous { seq: 2, .. }), "{refused}");
    let command = "dropdex journal repair --truncate-after 1 --i-accept-loss";
    assert!(refused.to_string().contains(command), "{refused}");
    let report = repair(&Disk, dir.path(), 1).expect("repaired");
    assert!(report.bytes_cut > 0 && report.removed.is_empty(), "{report:?}");
    assert_eq!(open(options(dir.path())).expect("opened").2.len(), 1);
    fs::remove_dir_all(report.copied_to).expect("removed");
}

#[test]
fn a_damaged_last_record_that_is_whole_but_for_one_bit_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let starts = forge(dir.path(), &[(0, b"one"), (1, b"two")]);
    let path = segment(dir.path(), 1);
    let mut bytes = fs::read(&path).expect("read");
    bytes[starts[1] + 57] ^= 0x10;
    fs::write(&path, bytes).expect("written");
    match open(options(dir.path())).map(|_| ()) {
        Err(JournalError::Damaged { seq: 2, evidence, .. }) => {
            assert_eq!(evidence, "it is whole but for one bit");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_payload_that_imitates_a_record_is_not_read_as_one() {
    let dir = tempfile::tempdir().expect("a folder");
    // The record is forged with knowledge of the format, but not of this store; it claims that
    // records 2 and 3 are synced.
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
    // The lengths are equal, so that only chain and numbers can reveal the change.
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
    // The record is from a store with the same identity whose history differs after the first
    // record.
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
fn full_segments_form_a_chain_without_gaps() {
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
    // Every byte of a segment before the last one has been acknowledged, so a truncation there is
    // never taken for a torn tail.
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
fn a_payload_that_is_too_long_is_refused_and_the_longest_is_accepted() {
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

/// The real disk, with recorded calls and injected failures.
#[derive(Clone)]
struct Watched {
    calls: Arc<Mutex<Vec<&'static str>>>,
    fail_writes: Arc<AtomicBool>,
    fail_syncs: Arc<AtomicBool>,
    fail_truncates: Arc<AtomicBool>,
    fail_marks: Arc<AtomicBool>,
    mark_syncs: Arc<AtomicU32>,
    no_links: Arc<AtomicBool>,
    /// Files cannot grow beyond this many bytes.
    full_past: Arc<AtomicU64>,
    /// Writes of anything other than zeros find no space, as if they needed new blocks.
    full_for_records: Arc<AtomicBool>,
    /// No file can be created.
    full_for_files: Arc<AtomicBool>,
    /// The error of a full disk.
    errno: Arc<AtomicI32>,
    /// Number of checks after which the lock counts as lost; `u32::MAX` for never.
    lost_after: Arc<AtomicU32>,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched {
            calls: Arc::default(),
            fail_writes: Arc::default(),
            fail_syncs: Arc::default(),
            fail_truncates: Arc::default(),
            fail_marks: Arc::default(),
            mark_syncs: Arc::default(),
            no_links: Arc::default(),
            full_past: Arc::new(AtomicU64::new(u64::MAX)),
            full_for_records: Arc::default(),
            full_for_files: Arc::default(),
            errno: Arc::new(AtomicI32::new(28)),
            lost_after: Arc::new(AtomicU32::new(u32::MAX)),
        }
    }
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
        if self.full_for_files.load(Ordering::SeqCst) {
            return Err(io::Error::from_raw_os_error(self.errno.load(Ordering::SeqCst)));
        }
        let (disk, path, file) = (self.clone(), path.to_owned(), Disk.create(path)?);
        Ok(Box::new(WatchedFile { disk, path, file }))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn FsFile>> {
        let (disk, path, file) = (self.clone(), path.to_owned(), Disk.open(path)?);
        Ok(Box::new(WatchedFile { disk, path, file }))
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
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn io::Read + Send>> {
        Disk.open_read(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        Disk.len(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.no_links.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Disk.hard_link(from, to)
    }
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn DirLock>>> {
        let held = Disk.lock(path)?;
        let lost_after = Arc::clone(&self.lost_after);
        Ok(held.map(|held| Box::new(WatchedLock { held, lost_after }) as Box<dyn DirLock>))
    }
}

struct WatchedLock {
    held: Box<dyn DirLock>,
    lost_after: Arc<AtomicU32>,
}

impl DirLock for WatchedLock {
    fn is_ours(&self) -> io::Result<bool> {
        let less = |left: u32| if left == u32::MAX { Some(left) } else { left.checked_sub(1) };
        let is_left = self.lost_after.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        Ok(is_left.is_ok() && self.held.is_ours()?)
    }
}

struct WatchedFile {
    disk: Watched,
    path: PathBuf,
    file: Box<dyn FsFile>,
}

impl WatchedFile {
    /// Marks are written in the background, so they are not recorded, and fail independently.
    fn is_mark(&self) -> bool {
        self.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MARK"))
    }
}

impl FsFile for WatchedFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.is_mark() {
            return self.file.write_all_at(bytes, offset);
        }
        self.disk.call("write", self.disk.fail_writes.load(Ordering::SeqCst))?;
        let end = offset + bytes.len() as u64;
        let is_zeros = bytes.iter().all(|byte| *byte == 0);
        let is_full = self.disk.full_past.load(Ordering::SeqCst) < end
            || !is_zeros && self.disk.full_for_records.load(Ordering::SeqCst);
        if is_full {
            // Part of the data was written, as on real disks.
            let part = bytes.len() / 2;
            self.file.write_all_at(&bytes[..part], offset)?;
            return Err(io::Error::from_raw_os_error(self.disk.errno.load(Ordering::SeqCst)));
        }
        self.file.write_all_at(bytes, offset)
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.disk.call("truncate", self.disk.fail_truncates.load(Ordering::SeqCst))?;
        self.file.truncate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        if self.is_mark() {
            self.disk.mark_syncs.fetch_add(1, Ordering::SeqCst);
            let fails = self.disk.fail_marks.load(Ordering::SeqCst);
            return if fails {
                Err(io::Error::from_raw_os_error(5))
            } else {
                self.file.sync_data()
            };
        }
        self.disk.call("sync", self.disk.fail_syncs.load(Ordering::SeqCst))?;
        self.file.sync_data()
    }
    fn sync_all(&self) -> io::Result<()> {
        if !self.is_mark() {
            self.disk.call("sync all", self.disk.fail_syncs.load(Ordering::SeqCst))?;
        }
        self.file.sync_all()
    }
}

#[test]
fn records_are_applied_and_acknowledged_after_the_sync() {
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
    let (tell, told) = std::sync::mpsc::channel();
    let (watched, path, syncs) = (disk.clone(), dir.path().to_owned(), disk.count("sync"));
    let apply = move |it: Appended| {
        let is_unsynced = watched.count("sync") == syncs;
        tell.send((it.seq, is_unsynced, look(&path))).expect("waiting");
    };
    journal.append_lazy(KIND, b"lazy".to_vec(), apply).expect("taken");
    let (seq, is_unsynced, found) = told.recv().expect("applied");
    assert!(is_unsynced, "synced for a record without a waiter");
    assert_eq!(found.expect("readable").1, [(seq, b"lazy".to_vec())]);
    let begun = Instant::now();
    while journal.durable_seq() < seq {
        assert!(begun.elapsed() < Duration::from_secs(10), "not synced");
        std::thread::yield_now();
    }
    assert_eq!(disk.count("sync"), syncs + 1);
}

#[test]
fn a_failed_sync_or_write_ends_all_writes() {
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
        // The disk works again, but the journal does not trust it.
        disk.fail_syncs.store(false, Ordering::SeqCst);
        disk.fail_writes.store(false, Ordering::SeqCst);
        let calls = disk.calls.lock().expect("unpoisoned").len();
        assert!(matches!(journal.append(KIND, vec![], |_| {}), Err(AppendError::Poisoned { .. })));
        assert!(matches!(
            journal.append_lazy(KIND, vec![], |_| {}),
            Err(AppendError::Poisoned { .. })
        ));
        assert!(matches!(journal.health(), Err(AppendError::Poisoned { .. })));
        assert!(matches!(journal.close(), Err(AppendError::Poisoned { .. })));
        drop(journal);
        assert!(!applied.load(Ordering::SeqCst));
        assert_eq!(disk.calls.lock().expect("unpoisoned").len(), calls, "{failing_call} retried");
        let (_journal, _, found) = open(options(dir.path())).expect("opened");
        assert_eq!(found[0].1, b"before");
    }
}

/// Writes the file `MARK` according to the format.
fn write_mark(dir: &Path, uuid: [u8; 16], seq: u64, chain: [u8; 16]) {
    let mut slot = b"ddxmark\n\x01\x00\x01\x00".to_vec();
    slot.extend_from_slice(&uuid);
    slot.extend_from_slice(&2_u64.to_le_bytes());
    slot.extend_from_slice(&seq.to_le_bytes());
    slot.extend_from_slice(&chain);
    slot.extend_from_slice(&crc32fast::hash(&slot).to_le_bytes());
    slot.resize(4_096, 0);
    fs::write(dir.join("MARK"), slot).expect("written");
}

/// Returns the chain hash of each record in `dir`.
fn chains(dir: &Path) -> Vec<[u8; 16]> {
    let mut chains = Vec::new();
    dump(&Disk, dir, None, &mut |_, _, record| {
        chains.push(record.chain);
        Ok(())
    })
    .expect("sound");
    chains
}

#[test]
fn the_mark_must_match_the_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let (uuid, zeros) = ([5; 16], [0; 16]);
    let starts = forge(dir.path(), &[(0, b"one"), (1, b"two"), (2, &[0xaa; 2_000])]);
    let chains = chains(dir.path());
    write_mark(dir.path(), uuid, 3, chains[2]);
    assert_eq!(look(dir.path()).expect("sound").0.mark, Some(3));
    write_mark(dir.path(), uuid, 2, chains[2]);
    let refused = look(dir.path()).map(|_| ()).expect_err("another log's");
    assert!(refused.to_string().contains("its chain of record 2 is"), "{refused}");
    write_mark(dir.path(), [6; 16], 2, chains[1]);
    let refused = look(dir.path()).map(|_| ()).expect_err("another store's");
    assert!(refused.to_string().contains("its store is 0606"), "{refused}");
    write_mark(dir.path(), uuid, 4, zeros);
    let refused = look(dir.path()).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Missing { seq: 4, .. })), "{refused:?}");

    // Judged by the log, this looks like a torn tail, unless the mark shows more.
    let path = segment(dir.path(), 1);
    let mut bytes = fs::read(&path).expect("read");
    bytes[1_024..1_536].fill(0);
    fs::write(&path, &bytes).expect("written");
    write_mark(dir.path(), uuid, 3, chains[2]);
    match look(dir.path()).map(|_| ()) {
        Err(JournalError::Damaged { seq: 3, offset, evidence, .. }) => {
            assert_eq!(offset, starts[2] as u64);
            assert_eq!(evidence, "the commit mark says that 3 was synced");
        }
        other => panic!("{other:?}"),
    }
    write_mark(dir.path(), uuid, 2, chains[1]);
    assert_eq!(look(dir.path()).expect("torn").0.torn.expect("torn").offset, starts[2] as u64);
    // If neither slot is valid or the file is missing, nothing would show that the end of the log
    // is lost.
    for (damage, word) in [(Some(vec![1; 4_096]), "damaged"), (None, "missing")] {
        match &damage {
            Some(bytes) => fs::write(dir.path().join("MARK"), bytes).expect("written"),
            None => fs::remove_file(dir.path().join("MARK")).expect("removed"),
        }
        let refused = open(options(dir.path())).map(|_| ()).expect_err(word);
        assert!(matches!(refused, JournalError::NoMark { last_seq: 2, .. }), "{refused:?}");
        let text = refused.to_string();
        assert!(
            text.contains(word) && text.contains("--truncate-after 2 --i-accept-loss"),
            "{text}"
        );
    }
    repair(&Disk, dir.path(), 2).expect("repaired");
    let (journal, recovery, found) = open(options(dir.path())).expect("opened");
    assert_eq!((recovery.mark, found.len()), (Some(2), 2));
    drop(journal);
    assert_eq!(look(dir.path()).expect("sound").0.mark, Some(3));
}

#[test]
fn a_missing_log_is_detected() {
    let dir = tempfile::tempdir().expect("a folder");
    journal_of(dir.path(), 3);
    fs::remove_file(segment(dir.path(), 1)).expect("removed");
    let refused = open(options(dir.path())).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Missing { seq: 1, .. })), "{refused:?}");
}

#[test]
fn a_mark_that_cannot_be_written_does_not_stop_the_journal() {
    let dir = tempfile::tempdir().expect("a folder");
    let disk = Watched::default();
    let inline =
        Options { fs: Arc::new(disk.clone()), marking: Marking::Inline, ..options(dir.path()) };
    let (journal, _, _) = open(inline).expect("opened");
    append(&journal, b"marked");
    disk.fail_marks.store(true, Ordering::SeqCst);
    let before = disk.mark_syncs.load(Ordering::SeqCst);
    let expected: Vec<u64> = (1..=5).map(|no| append(&journal, &payload(no))).collect();
    journal.close().expect("closed");
    assert_eq!(disk.mark_syncs.load(Ordering::SeqCst), before + 1, "retried");
    let (recovery, found) = look(dir.path()).expect("sound");
    assert!(recovery.mark.expect("an old one") < recovery.last_seq);
    assert_eq!(found.iter().skip(1).map(|it| it.0).collect::<Vec<_>>(), expected);
}

#[test]
fn the_mark_follows_and_is_current_at_the_end() {
    for (marking, close) in
        [(Marking::Inline, true), (Marking::Background(Duration::from_secs(3_600)), false)]
    {
        let dir = tempfile::tempdir().expect("a folder");
        let (journal, _, _) = open(Options { marking, ..options(dir.path()) }).expect("opened");
        for no in 1..=20 {
            append(&journal, &payload(no));
        }
        if close {
            journal.close().expect("closed");
        }
        drop(journal);
        let (recovery, _) = look(dir.path()).expect("sound");
        assert_eq!(recovery.mark, Some(recovery.last_seq), "{marking:?}");
    }
}

/// Returns every file in `dir` with its bytes, except the mark, whose counter increases.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = Disk
        .list(dir)
        .expect("listed")
        .into_iter()
        .filter(|path| !path.ends_with("MARK"))
        .map(|path| (path.clone(), fs::read(&path).expect("read")))
        .collect();
    files.sort();
    files
}

#[test]
fn recovery_rewrites_the_valid_part_and_is_idempotent() {
    for no_links in [false, true] {
        let dir = tempfile::tempdir().expect("a folder");
        let records = journal_of(dir.path(), 6);
        lag_mark(dir.path());
        let path = segment(dir.path(), 1);
        let mut crashed = fs::read(&path).expect("read");
        crashed.truncate(crashed.len() - 128 - 8);
        fs::write(&path, &crashed).expect("written");
        let disk = Watched::default();
        disk.no_links.store(no_links, Ordering::SeqCst);
        // The next crash is at the first record of the open.
        let crash = || Options {
            fs: Arc::new(disk.clone()),
            clock_ms: Arc::new(|| panic!("as if the process died here")),
            ..options(dir.path())
        };
        let die = || std::panic::catch_unwind(AssertUnwindSafe(|| drop(open(crash()))));
        assert!(die().is_err());
        let once = files(dir.path());
        let name = |path: &PathBuf| path.file_name().expect("a name").display().to_string();
        let names: Vec<String> = once.iter().map(|(path, _)| name(path)).collect();
        let stem = "00000000000000000001";
        let expected = [
            format!("{stem}.1.torn"),
            format!("{stem}.prev"),
            format!("{stem}.seg"),
            "LOCK".into(),
        ];
        assert_eq!(names, expected);
        assert!(once[1].1 == crashed, "the state after the crash");
        assert!(crashed.starts_with(&once[2].1));
        for _ in 0..2 {
            assert!(die().is_err());
            assert!(files(dir.path()) == once);
        }
        let (_journal, recovery, found) = open(options(dir.path())).expect("opened");
        assert_eq!(found, records[..5]);
        assert_eq!(recovery.rewritten, Some(dir.path().join(format!("{stem}.prev"))));
    }
}

#[test]
fn after_a_clean_close_nothing_is_rewritten_unless_the_mark_lags() {
    let dir = tempfile::tempdir().expect("a folder");
    open(options(dir.path())).expect("opened").0.close().expect("closed");
    let (journal, recovery, _) = open(options(dir.path())).expect("opened");
    assert_eq!((recovery.clean, recovery.rewritten), (true, None));
    journal.close().expect("closed");
    drop(journal);
    lag_mark(dir.path());
    let (_journal, recovery, _) = open(options(dir.path())).expect("opened");
    assert!(recovery.clean && recovery.rewritten.is_some(), "{recovery:?}");
}

/// Waits until the journal accepts appends again.
fn wait_for_room(journal: &Journal) {
    let begun = Instant::now();
    while journal.health().is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", journal.health());
        std::thread::yield_now();
    }
}

fn refused_for_room(journal: &Journal, payload: Vec<u8>) {
    let applied = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&applied);
    let refused = journal.append(KIND, payload, move |_| seen.store(true, Ordering::SeqCst));
    assert_eq!(refused, Err(AppendError::DiskFull));
    assert!(!applied.load(Ordering::SeqCst));
    assert_eq!(journal.health(), Err(AppendError::DiskFull));
    assert_eq!(journal.append_lazy(KIND, vec![], |_| {}), Err(AppendError::DiskFull));
}

#[test]
fn a_full_disk_is_survived_without_a_restart() {
    let (nospc, dquot, fbig) = (28, 122, 27);
    for (errno, in_records) in [(nospc, false), (nospc, true), (dquot, false), (fbig, true)] {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = Watched::default();
        disk.errno.store(errno, Ordering::SeqCst);
        let (journal, _, _) =
            open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) }).expect("opened");
        let mut expected: Records = vec![(append(&journal, b"before"), b"before".to_vec())];
        for round in 0..3 {
            let len = fs::metadata(segment(dir.path(), 1)).expect("there").len();
            if in_records {
                disk.full_for_records.store(true, Ordering::SeqCst);
            } else {
                disk.full_past.store(len, Ordering::SeqCst);
            }
            // This first uses up the zeros that the previous round preallocated.
            let long = vec![0xbb; PAYLOAD_BYTES_MAX];
            while !in_records && round > 0 && journal.health().is_ok() {
                match journal.append(KIND, long.clone(), |_| {}) {
                    Ok(appended) => expected.push((appended.seq, long.clone())),
                    Err(err) => assert_eq!(err, AppendError::DiskFull),
                }
            }
            refused_for_room(&journal, long);
            let (recovery, found) = look(dir.path()).expect("sound");
            assert_eq!((found, recovery.torn), (expected.clone(), None), "nothing is half done");
            disk.full_past.store(u64::MAX, Ordering::SeqCst);
            disk.full_for_records.store(false, Ordering::SeqCst);
            wait_for_room(&journal);
            let more = vec![round; 100_000];
            expected.push((append(&journal, &more), more));
        }
        let seqs: Vec<u64> = expected.iter().map(|it| it.0).collect();
        let all: Vec<u64> = (2..).take(seqs.len()).collect();
        assert_eq!(seqs, all, "the position was rolled back");
        drop(journal);
        assert_eq!(open(options(dir.path())).expect("opened").2, expected);
    }
}

#[test]
fn a_journal_opens_on_a_full_disk_and_waits_for_space() {
    type MakeFull = fn(&Watched, bool);
    let files: MakeFull = |disk, full| disk.full_for_files.store(full, Ordering::SeqCst);
    let growth: MakeFull =
        |disk, full| disk.full_past.store(if full { 512 } else { u64::MAX }, Ordering::SeqCst);
    // The segment is rewritten after a crash, but not after a close; `new` starts an empty store.
    for (end, make_full) in ["crash", "torn", "close", "new"]
        .into_iter()
        .flat_map(|end| [files, growth].map(|make_full| (end, make_full)))
    {
        let dir = tempfile::tempdir().expect("a folder");
        let mut expected = Records::new();
        if end != "new" {
            let (journal, _, _) = open(options(dir.path())).expect("opened");
            expected = (1..=9).map(|no| (append(&journal, &payload(no)), payload(no))).collect();
            if end == "close" {
                journal.close().expect("closed");
            }
            drop(journal);
        }
        if end == "torn" {
            let path = segment(dir.path(), 1);
            let mut bytes = fs::read(&path).expect("read");
            let used = bytes.iter().rposition(|byte| *byte != 0).expect("records") + 1;
            bytes.truncate(used.next_multiple_of(8));
            bytes.extend_from_slice(&[0x5a; 8]);
            fs::write(&path, bytes).expect("written");
        }
        let disk = Watched::default();
        make_full(&disk, true);
        let opened = open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) });
        let (journal, recovery, records) = opened.unwrap_or_else(|err| panic!("{end}: {err}"));
        assert_eq!(records, expected, "{end}");
        refused_for_room(&journal, b"no".to_vec());
        let temporaries = |path: &PathBuf| path.extension().is_some_and(|it| it == "tmp");
        assert!(
            Disk.list(dir.path()).expect("listed").iter().filter(|it| temporaries(it)).count() <= 1
        );
        make_full(&disk, false);
        wait_for_room(&journal);
        expected.push((append(&journal, b"after"), b"after".to_vec()));
        drop(journal);
        let (_journal, again, records) = open(options(dir.path())).expect("opened");
        assert_eq!(records, expected, "{end}");
        assert_eq!(again.epoch, recovery.epoch + 1, "{end}");
    }
}

#[test]
fn a_close_on_a_full_disk_is_clean() {
    let dir = tempfile::tempdir().expect("a folder");
    let disk = Watched::default();
    let (journal, _, _) =
        open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) }).expect("opened");
    append(&journal, b"before");
    // Fills the disk to the last byte that is not reserved.
    let len = fs::metadata(segment(dir.path(), 1)).expect("there").len();
    disk.full_past.store(len, Ordering::SeqCst);
    refused_for_room(&journal, vec![1; PAYLOAD_BYTES_MAX]);
    journal.close().expect("closed");
    drop(journal);
    let (_journal, recovery, found) = open(options(dir.path())).expect("opened");
    assert_eq!((recovery.clean, found.len()), (true, 1));
}

#[test]
fn a_full_disk_that_cannot_be_undone_poisons() {
    let dir = tempfile::tempdir().expect("a folder");
    let disk = Watched::default();
    let (journal, _, _) =
        open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) }).expect("opened");
    append(&journal, b"before");
    disk.full_for_records.store(true, Ordering::SeqCst);
    disk.fail_truncates.store(true, Ordering::SeqCst);
    let failed = journal.append(KIND, b"lost".to_vec(), |_| {});
    assert!(matches!(failed, Err(AppendError::Poisoned { .. })), "{failed:?}");
    disk.full_for_records.store(false, Ordering::SeqCst);
    assert!(matches!(journal.health(), Err(AppendError::Poisoned { .. })));
}

#[test]
fn a_segment_that_cannot_be_created_fails_its_records() {
    let dir = tempfile::tempdir().expect("a folder");
    let disk = Watched::default();
    let small = || Options { segment_bytes: 1_024, ..options(dir.path()) };
    let (journal, _, _) = open(Options { fs: Arc::new(disk.clone()), ..small() }).expect("opened");
    disk.full_for_files.store(true, Ordering::SeqCst);
    // The writer is blocked, so that the other records form one group.
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let hold = move |_| gone.recv().expect("a signal to continue");
    let held = journal.append_async(KIND, vec![1; 8], hold).expect("taken");
    let answers: Vec<_> = (0..10)
        .map(|no| journal.append_async(KIND, vec![no; 200], |_| {}).expect("taken"))
        .collect();
    go.send(()).expect("waiting");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(held.durable()).expect("durable");
    let results: Vec<_> =
        answers.into_iter().map(|answer| runtime.block_on(answer.durable())).collect();
    // 64 + 56 + 64 bytes are taken, and a record has 256 bytes, so three fit.
    let (there, refused) = results.split_at(3);
    assert!(there.iter().all(Result::is_ok), "{results:?}");
    assert!(refused.iter().all(|it| *it == Err(AppendError::DiskFull)), "{results:?}");
    disk.full_for_files.store(false, Ordering::SeqCst);
    wait_for_room(&journal);
    assert_eq!(append(&journal, b"on"), 6);
    drop(journal);
    let (_journal, recovery, found) = open(small()).expect("opened");
    assert_eq!((recovery.segments, found.len()), (2, 5));
}

#[test]
fn a_writer_that_lost_its_folder_acknowledges_nothing_more() {
    // The lock is lost before the write, or between the write and the response.
    for checks in [0, 1] {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = Watched::default();
        let (journal, _, _) =
            open(Options { fs: Arc::new(disk.clone()), ..options(dir.path()) }).expect("opened");
        append(&journal, b"before");
        disk.lost_after.store(checks, Ordering::SeqCst);
        let applied = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&applied);
        let fenced =
            journal.append(KIND, b"late".to_vec(), move |_| seen.store(true, Ordering::SeqCst));
        assert_eq!(fenced, Err(AppendError::Fenced));
        assert!(!applied.load(Ordering::SeqCst));
        disk.lost_after.store(u32::MAX, Ordering::SeqCst);
        let calls = disk.calls.lock().expect("unpoisoned").len();
        assert_eq!(journal.append(KIND, vec![], |_| {}), Err(AppendError::Fenced));
        assert_eq!(journal.close(), Err(AppendError::Fenced));
        assert_eq!(disk.calls.lock().expect("unpoisoned").len(), calls);
    }
}

#[test]
fn a_late_writer_does_not_harm_a_new_owner_of_the_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let (late, _, _) = open(options(dir.path())).expect("opened");
    append(&late, b"before");
    // An operator removes the lock because it seems stale.
    fs::remove_file(dir.path().join("LOCK")).expect("removed");
    let (owner, _, found) = open(options(dir.path())).expect("opened");
    assert_eq!(found.len(), 1);
    let mine = append(&owner, b"mine");
    assert_eq!(late.append(KIND, b"late".to_vec(), |_| {}), Err(AppendError::Fenced));
    let refused = late.snapshot(Position::default()).and_then(|snapshot| snapshot.finish());
    assert!(matches!(refused, Err(JournalError::Fenced { .. })), "{refused:?}");
    drop(late);
    drop(owner);
    let (_journal, recovery, found) = open(options(dir.path())).expect("opened");
    assert_eq!(found.last(), Some(&(mine, b"mine".to_vec())));
    assert_eq!(recovery.mark, Some(mine));
}

/// Appends records, then takes a snapshot whose only chunk lists them.
fn snapshot(journal: &Journal, appends: u64) -> SnapshotReport {
    let last =
        (0..appends).map(|no| journal.append(KIND, payload(no + 40), |_| {}).expect("durable"));
    let at = last.last().expect("one at least").position;
    let mut writer = journal.snapshot(at).expect("begun");
    writer.chunk(format!("state at {}", at.seq).as_bytes()).expect("written");
    writer.finish().expect("whole")
}

fn snapshot_path(dir: &Path, seq: u64) -> PathBuf {
    dir.join(format!("{seq:020}.snap"))
}

#[test]
fn a_snapshot_replaces_the_records_before_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, kept) = open_kept(options(dir.path())).expect("opened");
    assert_eq!(kept.resets, 1);
    let at = (1..=10)
        .map(|no| journal.append(KIND, payload(no), |_| {}).expect("durable").position)
        .last()
        .expect("ten");
    let mut writer = journal.snapshot(at).expect("begun");
    let busy = journal.snapshot(at).map(|_| ());
    assert!(matches!(busy, Err(JournalError::SnapshotBusy { .. })), "{busy:?}");
    let chunks = vec![b"one".to_vec(), vec![2; 1 << 20], b"three".to_vec()];
    for bad in [0, (1 << 20) + 1] {
        let refused = writer.chunk(&vec![0; bad]);
        assert!(matches!(refused, Err(JournalError::ChunkLength { .. })), "{refused:?}");
    }
    let before = journal.log_bytes_since_snapshot();
    let late = append(&journal, b"while it is written");
    for chunk in &chunks {
        writer.chunk(chunk).expect("written");
    }
    let report = writer.finish().expect("whole");
    assert_eq!((report.seq, &report.path), (11, &snapshot_path(dir.path(), 11)));
    assert_eq!(report.bytes, fs::metadata(&report.path).expect("there").len());
    assert_eq!(verify_snapshot(&Disk, &report.path).expect("sound"), report);
    let left = journal.log_bytes_since_snapshot();
    assert_eq!(left, frame::record_bytes(19) as u64, "of {before}");
    drop(journal);

    let (journal, recovery, kept) = open_kept(options(dir.path())).expect("opened");
    assert_eq!(recovery.snapshot, Some(report));
    assert_eq!((recovery.records, recovery.log_bytes), (12, left));
    assert!(kept.chunks == chunks);
    assert_eq!(kept.records, [(late, b"while it is written".to_vec())]);
    // The state at this position is captured.
    let mut writer = journal.snapshot(recovery.position).expect("begun");
    writer.chunk(b"again").expect("written");
    writer.finish().expect("whole");
    drop(journal);
    let (_, kept) = look_at(dir.path()).expect("sound");
    assert_eq!((kept.chunks, kept.records), (vec![b"again".to_vec()], vec![]));
}

#[test]
fn a_damaged_snapshot_is_reported_and_the_older_one_used() {
    let dir = tempfile::tempdir().expect("a folder");
    let small = || Options { segment_bytes: 1_024, ..options(dir.path()) };
    let (journal, _, _) = open(small()).expect("opened");
    let first = snapshot(&journal, 30);
    assert!(segment(dir.path(), 1).exists(), "with one snapshot nothing is removed");
    let second = snapshot(&journal, 30);
    assert!(!segment(dir.path(), 1).exists());
    let expected = append(&journal, b"after");
    drop(journal);
    let bytes = fs::read(&second.path).expect("read");
    let mut damaged = bytes.clone();
    damaged[70] ^= 1;
    fs::write(&second.path, &damaged).expect("written");

    let (journal, recovery, kept) = open_kept(small()).expect("opened");
    assert_eq!(recovery.damaged_snapshots[0].path, second.path);
    assert_eq!(recovery.snapshot.map(|it| it.seq), Some(first.seq));
    assert_eq!(kept.chunks, [format!("state at {}", first.seq).into_bytes()]);
    assert_eq!(kept.records.len(), 31);
    assert_eq!(kept.records.last(), Some(&(expected, b"after".to_vec())));
    // The damaged snapshot does not count as one of the two that are kept.
    let third = snapshot(&journal, 30);
    assert!(first.path.exists() && third.path.exists());
    let fourth = snapshot(&journal, 30);
    assert!(!first.path.exists() && !second.path.exists());
    assert!(third.path.exists() && fourth.path.exists());
    drop(journal);
    // First the newest snapshot cannot be read, then neither of the two can.
    fs::write(&fourth.path, b"ddxsnap").expect("written");
    let (inspection, kept) = look_at(dir.path()).expect("sound");
    assert_eq!(kept.chunks, [format!("state at {}", third.seq).into_bytes()]);
    let sound: Vec<bool> = inspection.snapshots.iter().map(|it| it.state_digest.is_ok()).collect();
    assert_eq!(sound, [true, false]);
    fs::write(&third.path, b"").expect("written");
    let refused = look(dir.path()).map(|_| ()).expect_err("no start");
    assert!(matches!(refused, JournalError::NoStart { .. }), "{refused}");
    assert!(refused.to_string().contains("none of its 2 snapshots is sound"), "{refused}");
}

#[test]
fn with_all_segments_left_no_snapshot_is_needed() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, _) = open(options(dir.path())).expect("opened");
    let report = snapshot(&journal, 5);
    drop(journal);
    fs::write(&report.path, b"").expect("written");
    let (_, kept) = look_at(dir.path()).expect("sound");
    assert_eq!((kept.chunks.len(), kept.records.len()), (0, 5));
}

#[test]
fn a_snapshot_and_a_log_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let small = || Options { segment_bytes: 1_024, ..options(dir.path()) };
    let (journal, _, _) = open(small()).expect("opened");
    snapshot(&journal, 30);
    let second = snapshot(&journal, 30);
    drop(journal);
    let segments = look_at(dir.path()).expect("sound").0.segments;
    // The first segment is missing, and neither snapshot reaches back to it.
    let aside = dir.path().join("aside");
    let fits = segments.iter().filter(|it| it.first_seq <= second.seq).count();
    assert!(fits > 2);
    for gone in &segments[..segments.len() - 1] {
        fs::rename(&gone.path, &aside).expect("moved");
        let refused = look(dir.path()).map(|_| ());
        let is_start = gone.segment_no == segments[0].segment_no;
        match refused {
            // The newest snapshot suffices to continue from the second segment.
            Ok(()) => assert!(is_start),
            Err(JournalError::Misplaced { .. }) => assert!(!is_start),
            other => panic!("{other:?}"),
        }
        fs::rename(&aside, &gone.path).expect("moved back");
    }
    // The end is missing, which only the snapshot shows.
    lag_mark(dir.path());
    let last = segments.last().expect("some");
    fs::rename(&last.path, &aside).expect("moved");
    match look(dir.path()).map(|_| ()) {
        Err(JournalError::Missing { seq, evidence, .. }) => {
            assert_eq!(seq, last.first_seq);
            assert_eq!(evidence, format!("a snapshot says that {} was synced", second.seq));
        }
        other => panic!("{other:?}"),
    }
    fs::rename(&aside, &last.path).expect("moved back");
    // All segments are missing.
    let elsewhere = tempfile::tempdir().expect("a folder");
    fs::copy(&second.path, snapshot_path(elsewhere.path(), second.seq)).expect("copied");
    let refused = look(elsewhere.path()).map(|_| ());
    assert!(matches!(refused, Err(JournalError::NoStart { .. })), "{refused:?}");
    // The log of another store, with and without a mark.
    let other = tempfile::tempdir().expect("a folder");
    journal_of(other.path(), 70);
    fs::copy(&second.path, snapshot_path(other.path(), second.seq)).expect("copied");
    let refused = look(other.path()).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Diverges { .. })), "{refused:?}");
}

#[test]
fn a_snapshot_waits_until_its_records_are_synced() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, _) = open(options(dir.path())).expect("opened");
    let (tell, told) = std::sync::mpsc::channel();
    let apply = move |it: Appended| tell.send(it.position).expect("waiting");
    journal.append_lazy(KIND, b"lazy".to_vec(), apply).expect("taken");
    let at = told.recv().expect("applied");
    let mut writer = journal.snapshot(at).expect("begun");
    writer.chunk(b"state").expect("written");
    writer.finish().expect("whole");
    assert!(journal.durable_seq() >= at.seq);
    // A record that is never written.
    let later = Position { seq: at.seq + 5, ..at };
    let writer = journal.snapshot(later).expect("begun");
    journal.close().expect("closed");
    let refused = writer.finish().map(|_| ());
    assert!(matches!(refused, Err(JournalError::NotDurable { .. })), "{refused:?}");
    let left: Vec<_> = files(dir.path()).into_iter().map(|(path, _)| path).collect();
    let suffixes = ["snap", "seg"].map(|suffix| {
        left.iter().filter(|path| path.extension().is_some_and(|it| it == suffix)).count()
    });
    assert_eq!((suffixes, left.len()), ([1, 1], 3), "abandoned files are removed: {left:?}");
}

#[test]
fn a_backup_creates_an_equal_journal() {
    let dir = tempfile::tempdir().expect("a folder");
    let (home, away) = (dir.path().join("home"), dir.path().join("away/journal"));
    let (journal, _, _) = open(options(&home)).expect("opened");
    let file = dir.path().join("backup");
    let at = journal.append(KIND, b"saved".to_vec(), |_| {}).expect("durable").position;
    let mut writer = journal.backup(at, &file).expect("begun");
    writer.chunk(b"state").expect("written");
    append(&journal, b"not in the backup");
    let report = writer.finish().expect("whole");
    let refused = journal.backup(at, &file).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Exists { .. })), "{refused:?}");
    let segments = look_at(&home).expect("sound").0.segments.len();
    assert_eq!(segments, 1, "a backup removes nothing");

    let restored = restore(&Disk, &file, &away).expect("restored");
    assert_eq!((restored.seq, restored.state_digest), (report.seq, report.state_digest));
    let refused = restore(&Disk, &file, &away);
    assert!(matches!(refused, Err(JournalError::Exists { .. })), "{refused:?}");
    let (journal, recovery, kept) = open_kept(options(&away)).expect("opened");
    assert_eq!((recovery.position, recovery.clean), (at, true));
    assert_eq!((kept.chunks, kept.records), (vec![b"state".to_vec()], vec![]));
    assert_eq!(recovery.epoch, at.epoch + 1);
    assert_eq!(append(&journal, b"on"), at.seq + 2);
    drop(journal);
    assert_eq!(look(&away).expect("sound").1.len(), 1);

    let mut bytes = fs::read(&file).expect("read");
    bytes[65] ^= 4;
    fs::write(&file, bytes).expect("written");
    let third = dir.path().join("third");
    let refused = restore(&Disk, &file, &third);
    assert!(matches!(refused, Err(JournalError::Snapshot { .. })), "{refused:?}");
    assert!(!third.exists());
}

#[test]
fn a_live_journal_is_read_up_to_the_last_sync() {
    let dir = tempfile::tempdir().expect("a folder");
    let (journal, _, _) = open(options(dir.path())).expect("opened");
    let expected: Records =
        (1..=5).map(|no| (append(&journal, &payload(no)), payload(no))).collect();
    let seq = journal.durable_seq();
    let mut kept = Kept::default();
    let inspection = inspect(&Disk, dir.path(), Some(seq), &mut kept).expect("sound");
    assert_eq!((inspection.recovery.last_seq, inspection.recovery.torn), (seq, None));
    assert_eq!(kept.records, expected);
    assert_eq!(inspection.segments[0].records, 6);
    assert!(inspection.store_uuid.is_some());
    // Half a record after it, which a reader may find, is ignored.
    let path = segment(dir.path(), 1);
    let bytes = fs::read(&path).expect("read");
    let end = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let mut half = bytes.clone();
    half[end.next_multiple_of(8)..][..600].fill(7);
    fs::write(&path, half).expect("written");
    assert!(inspect(&Disk, dir.path(), None, &mut Unread).is_err());
    inspect(&Disk, dir.path(), Some(seq), &mut Unread).expect("sound");
    let mut kinds = Vec::new();
    dump(&Disk, dir.path(), Some(3), &mut |_, _, record| {
        kinds.push(record.fields.kind);
        Ok(())
    })
    .expect("sound");
    assert_eq!(kinds, [RecordKind::OPENED, KIND, KIND]);
    // Damage to synced records is detected.
    fs::write(&path, &bytes[..end - 16]).expect("written");
    lag_mark(dir.path());
    let refused = inspect(&Disk, dir.path(), Some(seq), &mut Unread).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Damaged { .. })), "{refused:?}");
}

#[test]
fn a_repair_truncates_a_refused_log_and_keeps_a_copy() {
    let base = tempfile::tempdir().expect("a folder");
    let dir = base.path().join("journal");
    let small = || Options { segment_bytes: 1_024, ..options(&dir) };
    let (journal, _, _) = open(small()).expect("opened");
    let first = snapshot(&journal, 30);
    let expected: Records =
        (1..=30).map(|no| (append(&journal, &payload(no)), payload(no))).collect();
    let second = snapshot(&journal, 10);
    drop(journal);
    let cut = expected[10].0;
    // Damages the next record, in the middle of the log.
    let facts = look_at(&dir).expect("sound").0.segments;
    let mut place = None;
    dump(&Disk, &dir, Some(cut + 1), &mut |path, offset, record| {
        if record.fields.seq == cut + 1 {
            place = Some((path.to_owned(), offset as usize));
        }
        Ok(())
    })
    .expect("sound");
    let (path, offset) = place.expect("found");
    let mut bytes = fs::read(&path).expect("read");
    bytes[offset + 20] ^= 1;
    fs::write(&path, bytes).expect("written");
    assert!(matches!(look(&dir), Err(JournalError::Damaged { .. })));

    for (at, reason) in [(cut + 1, "sound up to record"), (1, "the log begins with record")] {
        let refused = repair(&Disk, &dir, at).expect_err("refused").to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    let before = files(&dir);
    let report = repair(&Disk, &dir, cut).expect("repaired");
    assert_eq!(report.last_seq, cut);
    assert!(report.removed.contains(&second.path) && !report.removed.contains(&first.path));
    assert!(report.removed.len() > 1 && report.removed.len() < facts.len() + 1);
    assert_eq!(report.copied_to, base.path().join("journal.before-repair-1"));
    for (path, bytes) in before.iter().filter(|(path, _)| !path.ends_with("LOCK")) {
        let copy = report.copied_to.join(path.file_name().expect("a name"));
        assert!(fs::read(copy).expect("copied") == *bytes, "{}", path.display());
    }
    let (journal, recovery, kept) = open_kept(small()).expect("opened");
    assert_eq!(recovery.last_seq, cut);
    assert_eq!(kept.records, expected[..=10]);
    let refused = repair(&Disk, &dir, cut).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Locked { .. })), "{refused:?}");
    append(&journal, b"on");
    drop(journal);
    assert_eq!(look(&dir).expect("sound").1.len(), 12);
}

mod accounts {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    use chrono::{DateTime, Utc};
    use clap::Parser;
    use dropdex::accounts::admin::{AdminCommand, AdminReply};
    use dropdex::accounts::{Caller, CommandError, Email, Store, StoreOptions};
    use dropdex::cli::account::{AccountArgs, Streams, run_with};
    use dropdex::index::generation::build::BuildSettings;
    use dropdex::intake::queue::Queue;
    use dropdex::intake::request::Site;
    use dropdex::vocab::clock::Clock;
    use dropdex::vocab::plan::{Plan, Plans};
    use dropdex::workers::admin::{AdminSocket, AskError, Backend, ask, socket_path};

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

    /// Adds an account of `plan` with a key.
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
        first.disable(&email("cy@example.com")).expect("already set");
        for _ in 0..7 {
            assert!(first.charge_request(&caller(&first, &key), noon()).granted);
        }
        assert!(first.charge_export(&caller(&first, &key), noon()).granted);
        let list = first.list();
        assert_eq!((list[0].requests_today, list[0].exports_today), (7, 1));
        let still_there = first.clone();
        first.close().expect("closed");
        let digest = still_there.state_digest();
        drop(still_there);

        let second = store(dir.path());
        assert_eq!(second.state_digest(), digest);
        assert_eq!(second.list(), list);
        assert_eq!(caller(&second, &key).plan, Plan::Pro);
        assert!(second.recovery().clean);
        let next = second.add_account(&email("dee@example.com"), Plan::Free, None).expect("added");
        assert_eq!(next.0, 4, "numbers continue");
    }

    #[test]
    fn a_new_key_revokes_the_old_one_and_keeps_the_usage() {
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
    fn sixty_four_threads_get_exactly_the_last_requests_of_a_day() {
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
    fn a_day_that_has_ended_stays_ended_after_a_restart() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = store(dir.path());
        let ann = account(&first, "ann@example.com", Plan::Pro);
        let bob = account(&first, "bob@example.com", Plan::Api);
        let just_after = at("2026-11-22T00:00:01Z");
        let allowance = first.charge_request(&caller(&first, &bob), just_after);
        assert_eq!(allowance.resets_at, at("2026-11-23T00:00:00Z"));
        // The clock steps back over midnight, but the day is still the 22nd, also for Ann.
        let back = first.charge_request(&caller(&first, &ann), at("2026-11-21T23:59:59Z"));
        assert_eq!(back.resets_at, at("2026-11-23T00:00:00Z"));
        drop(first);
        let second = store(dir.path());
        let back = second.charge_request(&caller(&second, &ann), at("2026-11-21T23:59:59Z"));
        assert_eq!(back.resets_at, at("2026-11-23T00:00:00Z"));
        assert_eq!(back.remaining, 98);
    }

    #[test]
    fn concurrent_sign_ups_of_one_address_create_one_account() {
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
    fn a_store_whose_disk_failed_still_serves_and_charges() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = Watched::default();
        let fs = Arc::new(disk.clone());
        let store = Store::open_with(StoreOptions {
            fs,
            ..StoreOptions::new(dir.path(), Plans::default(), clock())
        })
        .expect("opened");
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
        let kind = RecordKind::for_caller(999).expect("the caller's");
        journal.append(kind, b"?".to_vec(), |_| {}).expect("durable");
        drop(journal);
        let refused = Store::open(dir.path(), Plans::default(), clock()).map(|_| ());
        let text = refused.expect_err("unknown").to_string();
        assert!(text.contains("record kind 999") && text.contains("record 2"), "{text}");
    }

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: AccountArgs,
    }

    /// Runs `dropdex account`; returns its output or the error.
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
        cli(dir, "add bob@example.com --plan free --password-stdin", "plain tea leaves\n")
            .expect("added");
        let short = cli(dir, "add c@example.com --plan free --password-stdin", "1234567\r\n");
        let short = short.expect_err("too short").to_string();
        assert_eq!(short, "a password has 8 to 128 characters, this has 7");
        assert!(error("add ANN@example.com --plan pro").contains("ann@example.com already"));
        assert!(error("set-plan cy@example.com pro").contains("no account for cy@example.com"));
        assert!(error("add nobody --plan pro").contains("one @"));
        assert!(error("add a@example.com --plan gold").contains("`gold` is not a plan"));
        assert_eq!(text("set-plan bob@example.com api"), "bob@example.com is on plan api\n");
        let (key, note) = cli(dir, "key ann@example.com", "").expect("a key");
        assert!(key.starts_with("ddx_") && key.len() == 53, "only the key");
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
                 "email_verified": true,
                 "requests_today": 0, "exports_today": 0},
                {"id": 2, "email": "bob@example.com", "plan": "api", "disabled": true,
                 "created": "2026-11-21", "key_last4": null, "has_password": true,
                 "email_verified": true,
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
        // Files left by a killed server.
        drop(std::os::unix::net::UnixListener::bind(socket_path(&path)).expect("bound"));
        let store = store(&path);
        let socket = AdminSocket::bind(&path).expect("bound");
        let metadata = fs::metadata(socket_path(&path)).expect("there");
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (_running, over) = tokio::sync::watch::channel(());
        let site = Site {
            data: path.clone(),
            index: path.join("index"),
            build: BuildSettings::default(),
            compact_above: 0,
            worker: Default::default(),
            clock: clock(),
            zone_names: Default::default(),
            tables: Vec::new(),
        };
        let served = Backend {
            store: store.clone(),
            queue: Queue::new(site, false, Arc::default(), over),
            inviter: None,
        };
        let serving = tokio::spawn(socket.serve(served, async {
            stopped.await.expect("a signal to stop");
        }));
        let client = path.clone();
        tokio::task::spawn_blocking(move || the_whole_command_line(&client)).await.expect("passed");
        assert_eq!(store.list().len(), 2, "it was the server's store");

        let rude = path.clone();
        let answers = tokio::task::spawn_blocking(move || {
            use std::io::{BufRead, BufReader, Write};
            [&b"{}\n"[..], b"\xff\n", &[b'['; 300_000]].map(|line| {
                let mut stream =
                    std::os::unix::net::UnixStream::connect(socket_path(&rude)).expect("there");
                // The server may close the connection if the line is too long.
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
        assert!(!socket_path(&path).exists(), "the socket is removed with its server");
        let gone = tokio::task::spawn_blocking({
            let path = path.clone();
            move || ask(&path, &AdminCommand::ListAccounts)
        });
        let gone = gone.await.expect("asked");
        assert!(matches!(gone, Err(AskError::NotRunning { .. })), "{gone:?}");
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
