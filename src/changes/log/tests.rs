//! Compares the log with a plain list of events, over many appends, restarts and kinds of damage.

use super::*;
use crate::vocab::change::{ChangeKind, ChangeSource};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

const NOW: &str = "2026-11-23T12:00:00Z";

fn now() -> DateTime<Utc> {
    NOW.parse().expect("a time")
}

fn day(days: i32) -> Day {
    Day::nearest(now()).plus(days)
}

fn mark(days: i32) -> Mark {
    Mark { generation: 7, batch: 3, day: day(days), registry: 0, hours: None }
}

/// The events of one derivation, of any kind and with names of any length.
fn events(number: usize, count: usize, days: i32) -> Vec<(String, Change)> {
    let event = |at: usize| {
        let text = format!("{}{number}-{at}.{}", "x".repeat(at % 40), ["com", "co.uk"][at % 2]);
        // The kinds of the first version, so that its file is written.
        let kind = ChangeKind::ALL[at % 8];
        let is_rescored = kind == ChangeKind::Rescored;
        let change = Change {
            seq: 0,
            kind,
            source: ChangeSource::ALL[at % 3],
            name: DomainName::parse(&text).expect("a name"),
            day: day(days + (at % 3) as i32),
            dqs: (!at.is_multiple_of(5)).then(|| Dqs::clamped(at as i32 % 101)),
            dqs_before: is_rescored.then(|| Dqs::clamped(50)),
            release: (!at.is_multiple_of(7)).then(|| day(at as i32 % 30)),
        };
        (text, change)
    };
    (0..count).map(event).collect()
}

fn append(appender: &Appender, mark: Mark, events: &[(String, Change)]) -> u64 {
    let fill = |writer: &mut SegmentWriter| {
        events.iter().try_for_each(|(text, change)| {
            let Change { kind, source, day, dqs, dqs_before, release, .. } = *change;
            let label_len = change.name.label_len();
            let name = text.as_str();
            writer.push(&ChangeEntry {
                kind,
                source,
                name,
                label_len,
                day,
                dqs,
                dqs_before,
                release,
            })
        })
    };
    appender.append(mark, fill).expect("appended")
}

/// A log, and its expected content.
struct World {
    folder: tempfile::TempDir,
    log: Option<(Appender, ChangeLog)>,
    expected: Vec<Change>,
    derived: usize,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World { folder, log: None, expected: Vec::new(), derived: 0 };
        world.reopen();
        world
    }

    fn reopen(&mut self) {
        self.log = None;
        self.log = Some(Appender::open(self.folder.path(), now()).expect("opens"));
    }

    fn appender(&self) -> &Appender {
        &self.log.as_ref().expect("open").0
    }

    fn log(&self) -> &ChangeLog {
        &self.log.as_ref().expect("open").1
    }

    fn derive(&mut self, count: usize, days: i32) {
        self.derived += 1;
        let events = events(self.derived, count, days);
        assert_eq!(append(self.appender(), mark(days), &events), count as u64);
        for (_, mut change) in events {
            change.seq =
                self.expected.last().map_or(now().timestamp() as u64 * 1_000, |last| last.seq + 1);
            self.expected.push(change);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths
    }
}

#[test]
fn pages_have_every_event_once_and_in_order() {
    let mut world = World::new();
    assert_eq!(world.appender().mark(), None);
    assert_eq!(world.log().read(0, 10).expect("empty"), []);
    let wakes = world.log().subscribe();
    for count in [0, 3, 1_100, 0, 1, 2_048, 34_000, 5, 0, 700] {
        world.derive(count, 0);
    }
    assert!(wakes.has_changed().expect("open"));
    for _ in 0..2 {
        let (log, expected) = (world.log(), &world.expected);
        let (first, newest) = (expected[0].seq, expected[expected.len() - 1].seq);
        assert_eq!((log.oldest(), log.newest()), (first, newest));
        assert_eq!(log.read(0, usize::MAX).expect("read"), *expected);
        for since in [first, first + 1, first + 1_022, first + 1_023, first + 30_000, newest - 1] {
            let rest = &expected[(since + 1 - first) as usize..];
            for limit in [0, 1, 2, 1_000] {
                let page = log.read(since, limit).expect("read");
                assert_eq!(page, rest[..limit.min(rest.len())], "{since} {limit}");
            }
        }
        assert_eq!(log.read(newest, 10).expect("nothing yet"), []);
        let ahead = log.read(newest + 1, 10).expect_err("not yet");
        assert!(matches!(ahead, ReadError::Ahead { newest: it } if it == newest), "{ahead}");
        let old = log.read(first - 2, 10).expect_err("never there");
        assert!(matches!(old, ReadError::TooOld { oldest } if oldest == first), "{old}");
        assert_eq!(world.appender().mark(), Some(mark(0)));
        // The large derivation has a file of its own; small ones share theirs.
        assert_eq!(world.files().len(), 2, "{:?}", world.files());
        world.reopen();
    }
}

#[test]
fn events_are_kept_for_ninety_days_and_a_reader_keeps_its_file() {
    let mut world = World::new();
    world.derive(32_000, 0);
    world.derive(32_000, 10);
    let old = world.log().segments.load_full();
    world.derive(5, 91 + 2);
    assert_eq!(world.log().oldest(), world.expected[32_000].seq);
    let err = world.log().read(world.expected[0].seq, 1).expect_err("removed");
    assert!(matches!(err, ReadError::TooOld { .. }), "{err}");
    // 0 stands for the oldest event.
    assert_eq!(world.log().read(0, 1).expect("read"), world.expected[32_000..32_001]);
    let mut seen = 0;
    let visited = old[0].visit(0, &mut |_, _| {
        seen += 1;
        ControlFlow::Continue(())
    });
    assert!(visited.is_ok() && seen == 32_000);
    world.reopen();
    assert_eq!(world.log().oldest(), world.expected[32_000].seq);
}

#[test]
fn leftovers_of_a_kill_are_removed_and_no_list_is_partial() {
    let mut world = World::new();
    world.derive(10, 0);
    let path = world.folder.path().join(".new-123");
    fs::write(&path, b"half").expect("written");
    world.reopen();
    assert!(!path.exists());
    assert_eq!(world.log().read(0, 100).expect("read"), world.expected);
    // A failed derivation does not change the log.
    let fill = |writer: &mut SegmentWriter| {
        let entry = &events(9, 1, 0)[0].1;
        writer.push(&ChangeEntry {
            kind: entry.kind,
            source: entry.source,
            name: "a.com",
            label_len: 1,
            day: entry.day,
            dqs: None,
            dqs_before: None,
            release: None,
        })?;
        Err(io::Error::other("full"))
    };
    world.appender().append(mark(1), fill).expect_err("fails");
    assert_eq!(world.appender().mark(), Some(mark(0)));
    assert_eq!(world.log().read(0, 100).expect("read"), world.expected);
    assert_eq!(world.files().len(), 1);
    world.derive(3, 1);
    world.reopen();
    assert_eq!(world.log().read(0, 100).expect("read"), world.expected);
}

#[test]
fn damage_is_never_read_as_events() {
    let mut world = World::new();
    world.derive(20, 0);
    let path = world.files().pop().expect("a file");
    let whole = fs::read(&path).expect("readable");
    for at in 0..whole.len() {
        for bytes in
            [[&whole[..at], &[whole[at] ^ 0x10], &whole[at + 1..]].concat(), whole[..at].to_vec()]
        {
            fs::write(&path, &bytes).expect("written");
            let opened = Segment::open(&path);
            let read =
                opened.and_then(|segment| segment.visit(0, &mut |_, _| ControlFlow::Continue(())));
            assert!(read.is_err(), "byte {at}");
        }
    }
    fs::write(&path, &whole).expect("written");
}

#[test]
fn damaged_files_and_those_before_them_are_set_aside() {
    let mut world = World::new();
    for _ in 0..3 {
        world.derive(32_000, 0);
    }
    let files = world.files();
    assert_eq!(files.len(), 3);
    let end = fs::metadata(&files[1]).expect("there").len() as usize;
    let mut bytes = fs::read(&files[1]).expect("readable");
    bytes[end - 20] ^= 1;
    fs::write(&files[1], bytes).expect("written");
    world.reopen();
    assert_eq!(world.log().read(0, usize::MAX).expect("read"), world.expected[64_000..]);
    let old = world.log().read(world.expected[63_998].seq, 1).expect_err("set aside");
    assert!(matches!(old, ReadError::TooOld { .. }), "{old}");
    let aside =
        world.files().into_iter().filter(|path| path.extension().is_some_and(|it| it == DAMAGED));
    assert_eq!(aside.count(), 2);
    // Without its newest file, the log starts over with higher numbers.
    let newest = world.expected.last().expect("some").seq;
    fs::write(&files[2], b"not a log").expect("written");
    world.log = None;
    let later = now() + chrono::TimeDelta::hours(1);
    let (appender, log) = Appender::open(world.folder.path(), later).expect("opens");
    assert_eq!(appender.mark(), None);
    append(&appender, mark(0), &events(9, 1, 0));
    assert!(log.oldest() > newest);
    let old = log.read(newest, 1).expect_err("of the log before");
    assert!(matches!(old, ReadError::TooOld { .. }), "{old}");
}

#[test]
fn dropping_the_appender_ends_subscriptions() {
    let mut world = World::new();
    world.derive(1, 0);
    let (appender, log) = world.log.take().expect("open");
    drop(appender);
    assert!(log.subscribe().has_changed().is_err());
    assert_eq!(log.read(0, 10).expect("still readable"), world.expected);
}

#[test]
fn the_format_is_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (appender, _log) = Appender::open(folder.path(), now()).expect("opens");
    append(&appender, mark(0), &events(1, 9, 0));
    let entries = fs::read_dir(folder.path()).expect("a folder");
    let path = entries.map(|entry| entry.expect("an entry").path()).next().expect("a file");
    let ours = hex::encode(fs::read(&path).expect("readable"));
    let golden = include_str!("../../../tests/golden/changes-v1.hex");
    assert_eq!(ours, golden.split_whitespace().collect::<String>());
}

#[test]
fn held_events_are_seen_when_they_are_shown() {
    let (ours, theirs) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    let (writer, log) = Appender::open(ours.path(), now()).expect("opens");
    let seen = log.subscribe();
    append(&writer, mark(0), &events(1, 3, 0));
    writer.hold();
    append(&writer, mark(0), &events(2, 2, 0));
    let read = |log: &ChangeLog| log.read(0, 100).expect("reads").len();
    assert_eq!((read(&log), *seen.borrow()), (3, log.newest()));
    let files = writer.written();
    append(&writer, mark(1), &events(3, 4, 1));
    assert!(!files.are(&writer.written()));
    writer.show(&files);
    assert_eq!((read(&log), *seen.borrow()), (5, log.newest()));

    // Copies the files to another folder, and opens a log there that continues after them.
    let (other, log) = Appender::open(theirs.path(), now()).expect("opens");
    other.hold();
    append(&other, mark(0), &events(9, 1, 0));
    fs::remove_dir_all(theirs.path()).and_then(|()| fs::create_dir(theirs.path())).expect("empty");
    for path in writer.written().paths() {
        fs::copy(path, theirs.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let files = other.reopen().expect("opens");
    assert_eq!((read(&log), other.mark()), (0, Some(mark(1))));
    other.show(&files);
    assert_eq!(read(&log), 9);
    append(&other, mark(2), &events(4, 1, 2));
    assert_eq!(read(&log), 9);
    other.show(&other.written());
    assert_eq!(read(&log), 10);
}
