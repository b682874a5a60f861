//! Damage at rest: every bit, every length and every file of a journal that was closed cleanly, and
//! records, pages and files that were moved. In each case, the open is refused, or all acknowledged
//! data is still read and nothing else. The memory used is bounded by the size of the files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dropdex::journal::frame::{self, SEGMENT_HEADER_BYTES};
use dropdex::journal::{Record, Replay, ReplayResult, Unread, inspect};

use super::alloc::most_during;
use super::disk::{Content, Disk, Op, SECTOR};
use super::fs::{Event, SimFs};
use super::store::{self, ABOVE, DIR, Shape, Store};
use super::{cores, in_parallel};
use crate::common::rng::Rng;
use crate::common::runs::{full, say, seed};

type Files = BTreeMap<String, Content>;

const MARK: &str = "MARK";
/// Slots of the mark: length and distance in bytes.
const MARK_SLOT_BYTES: usize = 64;
const MARK_SLOT_APART: usize = 2_048;
const SHAPE: Shape = Shape::inline(4_096);
/// Number of sizes of [`store::payload`] that are used: the small ones, because every bit of every
/// record is flipped.
const SIZES: usize = 5;
/// Memory allowed in addition to twice the size of the files: a chunk of maximum length, and the
/// buffer for reading a snapshot.
const MEMORY_BYTES_MAX: usize = (2 << 20) + (256 << 10);
/// Deadline for the commit mark; its purpose is only to detect a hang.
const MARK_WAIT_MAX: Duration = Duration::from_secs(20);
/// Of this many damaged folders, one is opened for writing; the others are only read.
const OPEN_ONE_IN: usize = 97;

/// A journal's folder and its contents.
struct Sample {
    files: Files,
    disk: Disk,
    ids: Vec<u32>,
    payloads: Vec<Vec<u8>>,
    /// The folder at a few earlier moments.
    earlier: Vec<Files>,
}

/// Creates a journal of `records`, each acknowledged on its own, with a snapshot after each of the
/// listed records. The journal is idle, so its mark names the last record.
fn sample(records: usize, snapshots: &[usize], first: u32) -> Sample {
    let fs = SimFs::sound(Disk::with_dir(ABOVE.as_ref()));
    let mut store = Store::open(&fs, SHAPE, first);
    let mut earlier = Vec::new();
    for at in 1..=records {
        assert_eq!(store.append(at % SIZES), None);
        if snapshots.contains(&at) {
            assert!(store.snapshot().is_none());
        }
        if at % (records / 4) == 0 {
            wait_for_mark(&fs);
            earlier.push(files_of(&fs));
        }
    }
    wait_for_mark(&fs);
    let (files, ids) = (files_of(&fs), store.ids());
    assert_eq!(ids.len(), records);
    let payloads = ids.iter().map(|id| store::payload(*id)).collect();
    let disk = Disk::of_files(DIR.as_ref(), &files);
    Sample { files, disk, ids, payloads, earlier }
}

/// Compares the data read with the acknowledged data, and stores nothing.
struct Expected<'a> {
    sample: &'a Sample,
    /// Number of payloads so far.
    read: usize,
    /// Whether any payload differs. This is not an error yet: the mismatch of a foreign snapshot may
    /// only be found when its records are read, and it counts only if the whole read succeeds.
    is_wrong: bool,
}

impl Replay for Expected<'_> {
    fn reset(&mut self) {
        (self.read, self.is_wrong) = (0, false);
    }

    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult {
        let end = self.read + bytes.len() / 4;
        let ids = self.sample.ids.get(self.read..end).unwrap_or_default();
        self.is_wrong |= !ids.iter().flat_map(|id| id.to_le_bytes()).eq(bytes.iter().copied());
        self.read = end;
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> ReplayResult {
        let next = self.sample.payloads.get(self.read);
        self.is_wrong |= next.is_none_or(|payload| payload != record.payload);
        self.read += 1;
        Ok(())
    }
}

fn files_of(fs: &SimFs) -> Files {
    fs.disk().files(DIR.as_ref())
}

/// Waits until the commit mark, which is written in the background, has caught up with the log.
fn wait_for_mark(fs: &SimFs) {
    let deadline = Instant::now() + MARK_WAIT_MAX;
    loop {
        let report = inspect(fs, Path::new(DIR), None, &mut Unread);
        let report = report.expect("sound").recovery;
        if report.mark == Some(report.last_seq) {
            return;
        }
        assert!(Instant::now() < deadline, "the mark stays at {:?}", report.mark);
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Outcomes of opening damaged folders.
#[derive(Default)]
struct Verdicts {
    refused: AtomicU64,
    harmless: AtomicU64,
}

impl Verdicts {
    fn say(&self, what: &str) {
        let count = |verdicts: &AtomicU64| verdicts.load(Ordering::Relaxed);
        let (refused, harmless) = (count(&self.refused), count(&self.harmless));
        say(&format!("{what}: {refused} refused, {harmless} harmless"));
    }
}

/// Whether a damaged folder must still open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Must {
    Open,
    BeSafe,
    BeRefused,
}

impl Sample {
    /// Returns the folder with one file changed or removed.
    fn with(&self, name: &str, content: Option<Content>) -> Files {
        let mut files = self.files.clone();
        match content {
            Some(content) => files.insert(name.to_owned(), content),
            None => files.remove(name),
        };
        files
    }

    /// Returns the folder with one file replaced.
    fn changed(&self, name: &str, content: Content) -> Disk {
        let mut disk = self.disk.clone();
        disk.damage(&Path::new(DIR).join(name), content);
        disk
    }

    /// Reads a damaged folder. `number` selects the cases that are also opened.
    fn judge(
        &self,
        disk: Disk,
        must: Must,
        number: usize,
        verdicts: &Verdicts,
        what: &dyn Fn() -> String,
    ) {
        let total = disk.bytes_in(DIR.as_ref());
        let fs = SimFs::sound(disk);
        let mut read = Expected { sample: self, read: 0, is_wrong: false };
        let (result, most) =
            most_during(|| inspect(&fs, Path::new(DIR), None, &mut read).map(|_| ()));
        let limit = 2 * total + MEMORY_BYTES_MAX;
        assert!(most <= limit, "{}: {most} bytes of memory for {total}", what());
        match &result {
            Ok(()) => {
                let all = self.ids.len();
                assert!(read.read == all, "{}: reads {} of {all}", what(), read.read);
                assert!(!read.is_wrong, "{}: reads other payloads", what());
                assert!(must != Must::BeRefused, "{}: not noticed", what());
                verdicts.harmless.fetch_add(1, Ordering::Relaxed);
            }
            Err(err) => {
                assert!(must != Must::Open, "{}: refused: {err}", what());
                verdicts.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        if number.is_multiple_of(OPEN_ONE_IN) {
            self.judge_open(&fs, result.is_ok(), &what());
        }
    }

    /// Like [`Sample::judge`], but always opens the folder, too.
    fn judge_files(
        &self,
        files: &Files,
        must: Must,
        verdicts: &Verdicts,
        what: &dyn Fn() -> String,
    ) {
        self.judge(Disk::of_files(DIR.as_ref(), files), must, 0, verdicts, what);
    }

    fn judge_open(&self, fs: &SimFs, is_readable: bool, what: &str) {
        match store::open(fs, SHAPE) {
            Ok((_journal, _, found)) => {
                assert!(is_readable, "{what}: opens, and cannot be read");
                assert!(found.ids == self.ids, "{what}: opens with {:?}", found.ids);
            }
            Err(err) => {
                assert!(!is_readable, "{what}: can be read, and does not open: {err}");
                let is_change =
                    |event: &Event| matches!(event, Event::Op(op) if !matches!(op, Op::SyncDir(_)));
                let has_changed = fs.events().iter().any(is_change);
                assert!(!has_changed, "{what}: refused, and changed all the same");
            }
        }
    }

    fn names(&self, suffix: &str) -> Vec<String> {
        self.files.keys().filter(|name| name.ends_with(suffix)).cloned().collect()
    }

    /// Returns the permitted outcomes of a flipped bit in that file. A mark may lose one of its two
    /// slots, and a snapshot may be lost if the log reaches back to its predecessor.
    fn must(name: &str) -> Must {
        if name.ends_with(".seg") { Must::BeSafe } else { Must::Open }
    }

    /// Returns the permitted outcomes of a cut, which may remove both slots.
    fn must_when_cut(name: &str) -> Must {
        if name == MARK { Must::BeSafe } else { Sample::must(name) }
    }
}

fn is_checked(name: &str) -> bool {
    name == MARK || name.ends_with(".seg") || name.ends_with(".snap")
}

/// Offsets at which a file is damaged: all of its used bytes, and some of the zeros after them. A mark
/// has two slots among zeros, and a sample of these zeros suffices.
fn places(name: &str, content: &Content) -> Vec<usize> {
    let end = content.len().min(content.used().next_multiple_of(8) + 64);
    let is_in_slot = |at: &usize| at % MARK_SLOT_APART < MARK_SLOT_BYTES;
    let is_chosen = |at: &usize| name != MARK || full() || is_in_slot(at) || at.is_multiple_of(61);
    (0..end).filter(is_chosen).collect()
}

/// Flips every bit of the selected files.
fn turn_every_bit(sample: &Sample, verdicts: &Verdicts, is_chosen: impl Fn(&str) -> bool) {
    for (name, content) in sample.files.iter().filter(|(name, _)| is_chosen(name)) {
        let places = places(name, content);
        in_parallel(cores(), places.len() * 8, |at| {
            let bit = places[at / 8] * 8 + at % 8;
            let mut changed = content.clone();
            changed.flip(bit);
            let (disk, must) = (sample.changed(name, changed), Sample::must(name));
            sample.judge(disk, must, at, verdicts, &|| format!("{name}: bit {bit}"));
            true
        });
    }
}

/// Cuts the selected files at every byte.
fn cut_everywhere(sample: &Sample, verdicts: &Verdicts, is_chosen: impl Fn(&str) -> bool) {
    for (name, content) in sample.files.iter().filter(|(name, _)| is_chosen(name)) {
        let places = places(name, content);
        in_parallel(cores(), places.len(), |at| {
            let mut changed = content.clone();
            changed.truncate(places[at]);
            let (disk, must) = (sample.changed(name, changed), Sample::must_when_cut(name));
            sample.judge(disk, must, at, verdicts, &|| format!("{name}: cut at {}", places[at]));
            true
        });
    }
}

fn records() -> usize {
    if full() { 1_000 } else { 100 }
}

/// Creates a journal with two snapshots, which replace a part of the log.
fn sample_with_snapshots() -> Sample {
    let records = records() / 4;
    sample(records, &[records / 3, records * 2 / 3], 0)
}

#[test]
fn every_flipped_bit_of_a_log_is_refused_or_harmless() {
    let verdicts = Verdicts::default();
    turn_every_bit(&sample(records(), &[], 0), &verdicts, is_checked);
    verdicts.say("bits of a log");
}

#[test]
fn every_flipped_bit_beside_snapshots_is_refused_or_harmless() {
    let verdicts = Verdicts::default();
    turn_every_bit(&sample_with_snapshots(), &verdicts, is_checked);
    verdicts.say("bits of a log with snapshots");
}

#[test]
fn every_cut_of_every_file_is_refused_or_harmless() {
    let verdicts = Verdicts::default();
    cut_everywhere(&sample(records(), &[], 0), &verdicts, is_checked);
    cut_everywhere(&sample_with_snapshots(), &verdicts, is_checked);
    verdicts.say("cuts");
}

#[test]
fn a_missing_file_is_refused_or_harmless() {
    let verdicts = Verdicts::default();
    for snapshots in [&[][..], &[20], &[20, 60], &[20, 40, 60]] {
        let sample = sample(100, snapshots, 0);
        let last = sample.names(".seg").pop().expect("a segment");
        for name in sample.files.keys().filter(|name| is_checked(name)) {
            let is_missed = *name == last || name == MARK;
            let must = if is_missed { Must::BeRefused } else { Sample::must(name) };
            let what = || format!("{name} gone, of a journal with snapshots at {snapshots:?}");
            sample.judge_files(&sample.with(name, None), must, &verdicts, &what);
        }
    }
    verdicts.say("files gone");
}

#[test]
fn foreign_and_old_files_are_refused_or_harmless() {
    let verdicts = Verdicts::default();
    for snapshots in [&[][..], &[20], &[20, 60], &[20, 40, 60, 80]] {
        let (sample, other) = (sample(100, snapshots, 0), self::sample(100, snapshots, 50_000));
        let foreign = std::iter::once((&other.files, "of another store"));
        let earlier = sample.earlier.iter().map(|files| (files, "of before"));
        for (files, from) in foreign.chain(earlier) {
            for (name, content) in files.iter().filter(|(name, _)| is_checked(name)) {
                let what = || format!("{name} {from}, beside snapshots at {snapshots:?}");
                let files = sample.with(name, Some(content.clone()));
                sample.judge_files(&files, Must::BeSafe, &verdicts, &what);
            }
        }
        let segments = sample.names(".seg");
        for name in &segments {
            for other in segments.iter().filter(|other| *other != name) {
                let what = || format!("{name} in the place of {other}");
                let mut files = sample.with(other, Some(sample.files[name].clone()));
                sample.judge_files(&files, Must::BeSafe, &verdicts, &what);
                files.insert(name.clone(), sample.files[other].clone());
                let what = || format!("{name} and {other} swapped");
                sample.judge_files(&files, Must::BeRefused, &verdicts, &what);
            }
            let next = format!("{:020}.seg", segments.len() as u64 + 1);
            if !sample.files.contains_key(&next) {
                let files = sample.with(&next, Some(sample.files[name].clone()));
                let what = || format!("{name} again as {next}");
                sample.judge_files(&files, Must::BeRefused, &verdicts, &what);
            }
        }
    }
    verdicts.say("files from elsewhere");
}

/// Positions of the records of a segment.
fn record_ranges(segment: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some(len) = segment.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        let end = at + frame::record_bytes(u32::from_le_bytes(*len) as usize);
        // The sequence number of a record is not 0.
        if end > segment.len() || segment[at + 8..at + 16] == [0; 8] {
            break;
        }
        ranges.push(at..end);
        at = end;
    }
    ranges
}

/// Changes a segment at random and describes the change. `others` are segments that records may come
/// from.
fn mutate(segment: &[u8], others: &[Vec<u8>], rng: &mut Rng) -> (Vec<u8>, String) {
    let ranges = record_ranges(segment);
    let (one, two) = (rng.pick(&ranges).clone(), rng.pick(&ranges).clone());
    let (first, second) = if one.start <= two.start { (one, two) } else { (two, one) };
    let mut bytes = segment.to_vec();
    let what = match rng.below(8) {
        0 => {
            let between = &segment[first.end.min(second.start)..second.start];
            let moved = [&segment[second.clone()], between, &segment[first.clone()]].concat();
            let moved = if first == second { segment[first.clone()].to_vec() } else { moved };
            bytes.splice(first.start..second.end, moved);
            format!("records at {first:?} and {second:?} swapped")
        }
        1 => {
            bytes.splice(second.start..second.start, segment[first.clone()].iter().copied());
            format!("record at {first:?} again at {}", second.start)
        }
        2 => {
            bytes.drain(first.start..second.end);
            format!("records from {} to {} gone", first.start, second.end)
        }
        3 => {
            let other = rng.pick(others);
            let from = rng.pick(&record_ranges(other)).clone();
            bytes.splice(second.clone(), other[from.clone()].iter().copied());
            format!("record at {second:?} from {from:?} of another segment")
        }
        4 => {
            let from = rng.pick(others);
            let start = rng.below(segment.len().min(from.len()));
            bytes.truncate(start);
            bytes.extend_from_slice(&from[start..]);
            format!("from byte {start} on of another segment")
        }
        5 => overwrite(&mut bytes, *rng.pick(&[SECTOR, 4_096]), rng, |_| 0),
        6 => overwrite(&mut bytes, *rng.pick(&[SECTOR, 4_096]), rng, |rng| rng.below(256) as u8),
        _ => {
            let len = 1 + rng.below(64);
            overwrite(&mut bytes, len, rng, |rng| rng.below(256) as u8)
        }
    };
    (bytes, what)
}

/// Overwrites one aligned piece of `len` bytes.
fn overwrite(
    bytes: &mut [u8],
    len: usize,
    rng: &mut Rng,
    mut byte: impl FnMut(&mut Rng) -> u8,
) -> String {
    let start = rng.below(bytes.len().div_ceil(len)) * len;
    let end = bytes.len().min(start + len);
    bytes[start..end].iter_mut().for_each(|it| *it = byte(rng));
    format!("other bytes from {start} to {end}")
}

#[test]
fn records_and_pages_that_moved_or_changed_are_refused_or_harmless() {
    let seed = seed();
    let verdicts = Verdicts::default();
    let (sample, other) = (sample(200, &[], 0), self::sample(200, &[], 50_000));
    let names = sample.names(".seg");
    let bytes_of = |files: &Files| -> Vec<Vec<u8>> {
        let segments = files.iter().filter(|(name, _)| name.ends_with(".seg"));
        let bytes = segments.map(|(_, content)| {
            let mut bytes = content.to_vec();
            bytes.truncate(content.used().next_multiple_of(8) + 64);
            bytes
        });
        bytes.filter(|bytes| !record_ranges(bytes).is_empty()).collect()
    };
    let mut others = bytes_of(&sample.files);
    others.extend(bytes_of(&other.files));
    others.extend(sample.earlier.iter().flat_map(bytes_of));
    in_parallel(cores(), if full() { 100_000 } else { 4_000 }, |at| {
        let mut rng = Rng::new(seed.wrapping_add(at as u64));
        let name = rng.pick(&names);
        let whole = sample.files[name].to_vec();
        let (changed, what) = mutate(&whole, &others, &mut rng);
        let must = if changed == whole { Must::Open } else { Must::BeSafe };
        let disk = sample.changed(name, Content::new(changed));
        let what = || format!("DROPDEX_SEED={seed}, {at}: {name}: {what}");
        sample.judge(disk, must, at, &verdicts, &what);
        true
    });
    verdicts.say("records and pages");
}
