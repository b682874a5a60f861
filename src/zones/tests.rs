//! Simulates weeks of a zone, and compares the lists with the events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::snapshot::{Names, Snapshot};
use super::*;
use crate::vocab::day::Day;
use crate::vocab::outcome::ZoneDays;

fn day(number: i32) -> Day {
    "2026-01-01".parse::<Day>().expect("a day").plus(number)
}

/// A zone file in the format of registries.
fn zone_text(apex: &str, serial: u32, names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let soa = format!(
        "{apex}.\t900\tin\tsoa\ta.nic.{apex}. host.nic.{apex}. {serial} 1800 900 604800 86400\n"
    );
    let mut text = format!("{soa}{apex}.\t172800\tin\tns\ta.nic.{apex}.\n");
    let mut owners: Vec<String> =
        names.into_iter().map(|name| format!("{}.{apex}.", name.as_ref())).collect();
    owners.sort_unstable();
    for (at, owner) in owners.iter().enumerate() {
        let _ = writeln!(text, "{owner}\t172800\tin\tns\tns1.host{}.net.", at % 7);
        let _ = writeln!(text, "{owner}\t172800\tin\tns\tns2.host{}.net.", at % 7);
        if at % 5 == 0 {
            let _ = writeln!(text, "{owner}\t86400\tin\tds\t12345 13 2 0123456789abcdef");
            let _ = writeln!(text, "ns1.{owner}\t172800\tin\ta\t192.0.2.1");
        }
    }
    text + &soa
}

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Folder {
        Folder { folder: tempfile::tempdir().expect("a folder") }
    }

    fn write(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("zone.txt");
        fs::write(&path, text).expect("written");
        path
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("kept")
    }

    fn tracker(&self) -> Tracker {
        Tracker::open(&self.state()).expect("sound")
    }

    fn take(&self, serial: u32, on: Day, names: &[&str]) -> Result<ZoneOutcome, ZoneError> {
        let path = self.write(&zone_text("com", serial, names));
        self.tracker().take(&path, on, ZoneSource::Zone, Keep::Drops)
    }
}

fn snapshot_of(zone: &Path, into: &Path, scratch: &Path) -> Result<Snapshot, ZoneError> {
    snapshot::take(|| owners::Owners::open(zone), into, scratch)
}

fn owners(text: &str) -> Result<(Vec<String>, u32), ZoneError> {
    let folder = Folder::new();
    let mut owners = owners::Owners::open(&folder.write(text))?;
    let mut found = Vec::new();
    while let Some(owner) = owners.next()? {
        found.push(String::from_utf8(owner.name.to_vec()).expect("ASCII"));
    }
    Ok((found, owners.serial()?))
}

#[test]
fn owners_are_read_in_every_spelling() {
    let soa = "com. 900 in soa a.gtld. nstld. 7 1800 900 604800 86400\n";
    let text = format!(
        "; a comment\n{soa}com. 172800 in ns a.gtld.\na-b.com. 172800 in ns ns1.x.\n\
         a-b.com. 172800 in ns ns2.x.\na.com.\t\t172800\tIN\tNS\tns1.x.\n;; expected opt record\n\
         a.com. 86400 in ds 1 13 2 00\nB.COM. 1h30m IN NS ns1.x.\nb.com. 900 in txt \"; (\"\n\
         ns1.c.com. 900 in a 192.0.2.1\nother.net. 900 in ns ns1.x.\nd 900 in ns ns1.x.\n\
         \t900 in ns ns2.x.\nx.y.com. 900 in ns ns1.x.\r\n{soa}"
    );
    let (found, serial) = owners(&text).expect("a zone");
    assert_eq!(found, ["a-b.", "a.", "b.", "d.", "x.y."]);
    assert_eq!(serial, 7);
    let many_lines = "$ORIGIN com.\n@ SOA a. b. ( 9 ; serial\n 2 3\n 4 5 )\na NS ns1\n@ SOA a. b. (\n 9 2 3 4 5 )\n";
    assert_eq!(owners(many_lines).expect("a zone"), (vec!["a.".to_owned()], 9));
}

/// Output of `dig +multiline -y … AXFR`.
#[test]
fn records_in_parentheses_with_repeated_owners_are_read() {
    let soa = "com.\t\t900 IN SOA a.gtld. nstld. (\n\t\t\t7          ; serial\n\t\t\t1800 900\n\t\t\t604800 86400\n\t\t\t)\n";
    let tsig =
        "key.example.\t0 ANY TSIG hmac-sha256. 1795435200 300 32 (\n\t\t\tAAAA= ) 1 NOERROR 0\n";
    let mut text = format!("; <<>> DiG 9.20 <<>> +multiline com AXFR\n\n{soa}{tsig}");
    for at in 0..300 {
        let _ = write!(
            text,
            "n{at:03}.com.\t900 IN NS ns1.x.\nn{at:03}.com.\t900 IN NS (\n\t\tns2.x. )\n\
             n{at:03}.com.\t900 IN DS 1 13 2 (\n\t\t\t0123ABCD\n\t\t\t4567 ) ; key\n\
             n{at:03}.com.\t900 IN RRSIG DS 13 2 900 (\n\t\t\t20261201 20261101 1 com.\n\t\t\tNS== )\n"
        );
    }
    let (found, serial) = owners(&format!("{text}{soa}{tsig}\n;; XFR size: 1200\n")).expect("read");
    assert_eq!((found.len(), serial), (300, 7));
    assert_eq!((&*found[0], &*found[299]), ("n000.", "n299."));
    // The apex may come last, and a line without an owner has the owner of the previous line.
    let short = "com. 900 in soa a. b. 7 1 1 1 1\n";
    let text = format!(
        "{short}x.c.com. 900 in a 192.0.2.1\na.com. 900 in ns ns1.x.\n\tin ns ns2.x.\n\
                        com. 900 in ns ns1.x.\ncom. 900 in ns ns2.x.\n{short}"
    );
    assert_eq!(owners(&text).expect("read"), (vec!["a.".to_owned()], 7));
}

#[test]
fn comments_and_data_may_hold_any_bytes() {
    let folder = Folder::new();
    let path = folder.write("");
    let soa: &[u8] = b"com. 900 in soa a. b. 7 1 1 1 1\n";
    let read = |before: &[u8], line: &[u8]| {
        fs::write(&path, [before, soa, line, soa].concat()).expect("written");
        let mut owners = owners::Owners::open(&path)?;
        let mut count = 0;
        while owners.next()?.is_some() {
            count += 1;
        }
        owners.serial().map(|_| count)
    };
    assert_eq!(read(b"; Zone f\xfcr com\n", b"a.com. in ns ns1.x. ; f\xfcr\n").expect("read"), 1);
    assert_eq!(
        read(b"$ORIGIN\tcom.\n", b"a\tin ns ns1\nb in txt \"\xff\xfe\"\n").expect("read"),
        1
    );
    assert!(matches!(read(b"", b"\xfc\xfc in ns ns1.x.\n"), Err(ZoneError::NotText)));
    assert!(matches!(read(b"", b"\xfc\xfc\xfc\n"), Err(ZoneError::NotText)));
}

#[test]
fn a_soa_record_is_bounded() {
    let endless = format!("com. 900 in soa ns h (\n{}", " 1\n".repeat(100_000));
    assert!(matches!(owners(&endless), Err(ZoneError::LongSoa)));
    let long = format!("com. 900 in soa {} h 7 1 1 1 1\n", "a".repeat(5_000));
    assert!(matches!(owners(&long), Err(ZoneError::LongSoa)));
    let soa = "com. 900 in soa a. b. 7 1 1 1 1\n";
    let open =
        format!("{soa}a.com. in ns ns1.x.\na.com. in txt (\n{}{soa}", " 1\n".repeat(300_000));
    assert!(matches!(owners(&open), Err(ZoneError::BadLine(_) | ZoneError::NoEnd)));
}

#[test]
fn half_a_zone_is_refused() {
    let whole = zone_text("com", 7, ["a", "b", "c"]);
    owners(&whole).expect("a zone");
    let end = whole.trim_end().rfind('\n').expect("many lines");
    for (cut, what) in [(&whole[..=end], "no end"), (&whole[..end / 2], "cut in the middle")] {
        assert!(matches!(owners(cut), Err(ZoneError::NoEnd)), "{what}");
    }
    let other_end = whole.clone() + "com. 900 in soa a. b. 8 1 1 1 1\n";
    assert!(matches!(owners(&other_end), Err(ZoneError::NoEnd)), "another zone's end");
    let after_end = whole.clone() + "z.com. 900 in ns ns1.x.\n";
    assert!(matches!(owners(&after_end), Err(ZoneError::NoEnd)), "records after the end");
    let page = whole + &"<p>The service is down for maintenance.</p>\n".repeat(200);
    assert!(owners(&page).is_err(), "text that is not a zone");
}

#[test]
fn names_in_any_order_are_sorted() {
    let folder = Folder::new();
    let mut names: Vec<String> =
        (0..5_000).map(|at| format!("name{}", at * 7_919 % 10_007)).collect();
    names.push("a-b".into());
    names.push("a".into());
    let soa = "com. 900 in soa a. b. 7 1 1 1 1\n";
    let lines: String =
        names.iter().map(|name| format!("{name}.com. 900 in ns ns1.x.\n")).collect();
    let (sorted, shuffled) = (folder.state().join("sorted"), folder.state().join("shuffled"));
    fs::create_dir_all(folder.state()).expect("created");
    let first = snapshot_of(&folder.write(&zone_text("com", 7, &names)), &sorted, &folder.state());
    let other =
        snapshot_of(&folder.write(&format!("{soa}{lines}{soa}")), &shuffled, &folder.state());
    assert_eq!(first.expect("taken"), other.expect("taken"));
    assert_eq!(fs::read(sorted).expect("readable"), fs::read(shuffled).expect("readable"));
}

#[test]
fn a_zone_file_must_be_newer_and_of_the_same_zone() {
    let folder = Folder::new();
    assert_eq!(
        folder.take(10, day(1), &["a", "b"]).expect("first"),
        ZoneOutcome::First { names: 2 }
    );
    assert_eq!(folder.take(10, day(2), &["a", "b"]).expect("the same"), ZoneOutcome::Unchanged);
    let old = folder.take(9, day(2), &["a"]).expect_err("older");
    assert_eq!(
        old.to_string(),
        "the zone file has serial number 9, and 10 was taken before; the server is behind, try again later"
    );
    assert!(matches!(folder.take(11, day(1), &["a"]), Err(ZoneError::SameDay { .. })));
    let path = folder.write(&zone_text("net", 11, ["a"]));
    let other = folder.tracker().take(&path, day(2), ZoneSource::Zone, Keep::Drops);
    assert!(matches!(other, Err(ZoneError::OtherZone { .. })));
    assert!(matches!(folder.take(11, day(2), &["a", "b"]), Ok(ZoneOutcome::Applied(_))));
    // Serial numbers wrap around.
    for (serial, on) in [(u32::MAX / 2, 3), (u32::MAX - 5, 4), (3, 5)] {
        folder.take(serial, day(on), &["a", "b"]).expect("newer");
    }
}

/// The names of a simulated zone by day, with its faults.
struct Play {
    /// Days on which each name is in the zone.
    present: BTreeMap<String, BTreeSet<i32>>,
    /// For each dropped name, the first day without it.
    dropped: BTreeMap<String, i32>,
}

const DAYS: i32 = 40;
const NAMES: usize = 4_000;
/// Days whose file lacks a third of the names.
const HALF_ZONES: [i32; 2] = [12, 25];
/// A day without a file, one with an older serial number, and one with a truncated file.
const NO_FILE: i32 = 8;
const OLD_FILE: i32 = 17;
const CUT_FILE: i32 = 21;
/// The day on which a registrar's names leave permanently.
const MASS_EXIT: i32 = 19;

impl Play {
    fn new(seed: u64) -> Play {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut play = Play { present: BTreeMap::new(), dropped: BTreeMap::new() };
        for at in 0..NAMES {
            let name = format!("{}{at}", ["a-", "b", "b-", "z"][at % 4]);
            let mut days: BTreeSet<i32> = (0..DAYS).collect();
            match rng.u8(0..100) {
                // A name that drops permanently.
                0..5 => {
                    let left = rng.i32(1..DAYS);
                    days.retain(|&on| on < left);
                    play.dropped.insert(name.clone(), left);
                }
                // A name that is missing from up to two files, then renewed.
                5..9 => {
                    let left = rng.i32(1..DAYS - 3);
                    let back = left + rng.i32(1..3);
                    days.retain(|&on| on < left || on >= back);
                }
                // The names of the registrar.
                9..27 => {
                    days.retain(|&on| on < MASS_EXIT);
                    play.dropped.insert(name.clone(), MASS_EXIT);
                }
                // A new name.
                27..30 => {
                    let first = rng.i32(1..DAYS);
                    days.retain(|&on| on >= first);
                }
                _ => {}
            }
            play.present.insert(name, days);
        }
        play
    }

    /// Returns the zone file of a day, and its serial number.
    fn file(&self, on: i32) -> Option<String> {
        let names =
            || self.present.iter().filter(|(_, days)| days.contains(&on)).map(|(name, _)| name);
        let serial = 100 + on as u32;
        match on {
            NO_FILE => None,
            OLD_FILE => Some(zone_text("com", serial - 3, names())),
            CUT_FILE => {
                let mut text = zone_text("com", serial, names());
                text.truncate(text.len() / 3 * 2);
                Some(text)
            }
            on if HALF_ZONES.contains(&on) => Some(zone_text("com", serial, names().step_by(3))),
            _ => Some(zone_text("com", serial, names())),
        }
    }

    /// Returns the first day on or after `on` whose file is accepted and correct.
    fn seen(on: i32) -> i32 {
        let is_bad =
            |on: &i32| [NO_FILE, OLD_FILE, CUT_FILE].contains(on) || HALF_ZONES.contains(on);
        (on..).find(|on| !is_bad(on)).expect("days go on")
    }
}

/// Returns the rows of lists: the name, its drop date, and whether it is registered again.
fn rows(tracker: &mut Tracker) -> Vec<(String, Day, bool)> {
    let mut rows = Vec::new();
    for list in tracker.lists() {
        let text = fs::read_to_string(&list.path).expect("readable");
        for row in text.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let name = cells[0].strip_suffix(".com").expect("of the zone").to_owned();
            rows.push((name, cells[1].parse().expect("a day"), cells[3] == "true"));
        }
        tracker.ingested(&list).expect("removed");
    }
    rows
}

#[test]
fn forty_days_yield_every_drop_on_its_day_and_no_other() {
    for seed in 0..3 {
        let (play, folder) = (Play::new(seed), Folder::new());
        let (mut listed, mut held) = (BTreeMap::new(), Vec::new());
        for on in 0..DAYS {
            let Some(text) = play.file(on) else { continue };
            let path = folder.write(&text);
            match folder.tracker().take(&path, day(on), ZoneSource::Zone, Keep::Drops) {
                Ok(ZoneOutcome::Held { .. }) => held.push(on),
                Ok(_) => {}
                Err(ZoneError::OldSerial { .. }) => assert_eq!(on, OLD_FILE),
                Err(ZoneError::NoEnd) => assert_eq!(on, CUT_FILE),
                Err(error) => panic!("day {on}: {error}"),
            }
            for (name, dropped, is_again) in rows(&mut folder.tracker()) {
                assert!(!is_again, "{name} never came back");
                assert_eq!(listed.insert(name, (dropped, on)), None, "listed once");
            }
        }
        assert_eq!(
            held,
            [12, MASS_EXIT, MASS_EXIT + 1, 25],
            "mass exits wait: a smaller zone for three files"
        );
        for (name, (dropped, _)) in &listed {
            let left = play.dropped.get(name).copied();
            assert_eq!(left.map(|left| day(Play::seen(left))), Some(*dropped), "{name}");
        }
        for (name, &left) in &play.dropped {
            let first = Play::seen(left);
            // A drop is found after two more files, not counting held and bad ones in between; after
            // a mass exit, it takes two weeks.
            let is_due = if first == MASS_EXIT { first + 14 < DAYS } else { first + 8 < DAYS };
            assert!(!is_due || listed.contains_key(name), "seed {seed}: {name} left on day {left}");
        }
        assert!(listed.len() > 500, "the play has drops");
    }
}

#[test]
fn names_that_return_are_reported() {
    let folder = Folder::new();
    let all = ["early", "late", "stays"];
    folder.take(1, day(0), &all).expect("first");
    for on in 1..=4 {
        folder.take(1 + on as u32, day(on), &["stays"]).expect("taken");
    }
    let mut tracker = folder.tracker();
    assert_eq!(
        rows(&mut tracker),
        [("early".to_owned(), day(1), false), ("late".to_owned(), day(1), false)]
    );
    let ZoneOutcome::Applied(applied) =
        folder.take(20, day(20), &["early", "stays"]).expect("taken")
    else {
        panic!("few changes");
    };
    assert_eq!((applied.restored, applied.registered_again, applied.changes.came), (1, 0, 1));
    // A .com is released 35 days after the first day without it.
    let ZoneOutcome::Applied(applied) = folder.take(36, day(36), &all).expect("taken") else {
        panic!("few changes");
    };
    assert_eq!((applied.restored, applied.registered_again), (0, 1));
    let back = [("early".to_owned(), day(1), true), ("late".to_owned(), day(1), true)];
    assert_eq!(rows(&mut folder.tracker()), back);
}

#[test]
fn all_names_are_listed_once_if_requested() {
    for is_wanted_first in [true, false] {
        let folder = Folder::new();
        let mut listed = Vec::new();
        for (on, names) in
            [&["a"][..], &["a", "b"], &["a", "b", "c"], &["a", "c"]].iter().enumerate()
        {
            let keep = if on > 0 || is_wanted_first { Keep::All } else { Keep::Drops };
            let (serial, on) = (on as u32 + 1, day(on as i32));
            let path = folder.write(&zone_text("com", serial, names.iter()));
            folder.tracker().take(&path, on, ZoneSource::Zone, keep).expect("taken");
            let mut tracker = folder.tracker();
            for list in tracker.lists() {
                let text = fs::read_to_string(&list.path).expect("readable");
                let rows = text.lines().skip(1).map(|row| {
                    let (name, rest) = row.split_once(',').expect("a row");
                    assert_eq!(rest, ",registered,false,");
                    name.to_owned()
                });
                listed.push(rows.collect::<Vec<_>>().join(" "));
                tracker.ingested(&list).expect("removed");
            }
        }
        let expected = match is_wanted_first {
            true => &["a.com", "b.com", "c.com"][..],
            false => &["a.com b.com", "c.com"],
        };
        assert_eq!(listed, expected);
    }
}

#[test]
fn names_that_leave_a_registrys_list_are_free() {
    let folder = Folder::new();
    let list = |names: &[&str], more: &str| {
        let rows: String =
            names.iter().map(|name| format!("{name}.sk;REG-1;HOLD-2;NEW;DOM_OK\n")).collect();
        folder.write(&format!("-- SK-NIC\n--\ndomena;ID reg;ID drzitela;NEW;stav\n{rows}{more}"))
    };
    let take = |on: i32, path: &Path| {
        folder.tracker().take(path, day(on), ZoneSource::Registry, Keep::Drops)
    };
    let all = ["b", "a", "gone", "c", "d", "e", "f", "g", "h", "i", "j"];
    assert_eq!(take(0, &list(&all, "")).expect("first"), ZoneOutcome::First { names: 11 });
    let left: Vec<&str> = all.into_iter().filter(|name| *name != "gone").collect();
    assert!(matches!(take(1, &list(&left, "")), Ok(ZoneOutcome::Applied(it)) if it.waiting == 1));
    assert_eq!(take(1, &list(&left, "")).expect("taken"), ZoneOutcome::Unchanged, "the same day");
    assert!(matches!(take(2, &list(&left, "")), Ok(ZoneOutcome::Applied(it)) if it.dropped == 1));
    let found = folder.tracker().lists().remove(0);
    assert_eq!(
        fs::read_to_string(found.path).expect("readable"),
        "domain,drop_date,status,registered_again,release_date\n\
         gone.sk,2026-01-02,,false,2026-01-02\n"
    );
    // A dropped name can be registered at once, so its return is a new registration.
    assert!(
        matches!(take(3, &list(&all, "")), Ok(ZoneOutcome::Applied(it)) if it.registered_again == 1)
    );
    let garbled = take(4, &list(&all, "no row\nno row\n")).expect_err("another format");
    assert!(garbled.to_string().contains("2 of 13 rows"), "{garbled}");
    let page = take(4, &folder.write("<html>")).expect_err("no list");
    assert!(page.to_string().contains("domena"), "{page}");
}

/// Returns the rows of new lists about names that left: the name and the class of its name servers.
fn classes(tracker: &mut Tracker) -> Vec<(String, String)> {
    let mut classes = Vec::new();
    for list in tracker.lists() {
        let text = fs::read_to_string(&list.path).expect("readable");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("domain,drop_date,status,registered_again,ns_class"));
        for row in lines {
            let cells: Vec<&str> = row.split(',').collect();
            classes.push((cells[0].to_owned(), cells[4].to_owned()));
        }
        tracker.ingested(&list).expect("removed");
    }
    classes
}

/// A zone with one name for each of these name servers, in several notations of a record.
fn zone_with_servers(serial: u32, servers: &[(&str, &str)]) -> String {
    let soa = format!("com. 900 in soa a.gtld. nstld. {serial} 1800 900 604800 86400\n");
    let record = |(name, server): &(&str, &str)| format!("{name} {server}\n");
    let records: String = servers.iter().map(record).collect();
    format!("$ORIGIN com.\n{soa}{records}{soa}")
}

const SERVERS: [(&str, &str); 9] = [
    ("always.com.", "900 in ns ns1.afternic.com."),
    ("bought.com.", "900 in ns NS1.Bodis.com.\nbought.com. 900 in ns ns1.afternic.com."),
    ("brand.com.\t", "\t900\tIN\tNS\tns1.markmonitor.com."),
    ("first.com.", "900 in ns ns1.registrar.net.\nfirst.com. 900 in ns ns1.bodis.com."),
    ("plain.com.", "in ns ns1.registrar.net."),
    ("relative", "NS ns1.sedoparking ; relative to the zone"),
    ("several", "NS (\n ns1.dan.com. )"),
    ("shop.com.", "ns amy.ns.cloudflare.com."),
    ("whois.com.", "900 ns dns1.failed-whois-verification.namecheap.com."),
];

#[test]
fn names_that_leave_have_the_class_of_their_first_name_server() {
    let folder = Folder::new();
    let mut found = Vec::new();
    for on in 0..6 {
        // One name returns to another name server, and leaves again.
        let all: Vec<(&str, &str)> = match on {
            0 => SERVERS.to_vec(),
            2 => vec![SERVERS[0], ("shop.com.", "900 in ns ns1.bodis.com.")],
            _ => SERVERS[..1].to_vec(),
        };
        let path = folder.write(&zone_with_servers(on as u32 + 1, &all));
        let taken = folder.tracker().take(&path, day(on), ZoneSource::Zone, Keep::Drops);
        assert!(taken.is_ok(), "{taken:?}");
        found.extend(classes(&mut folder.tracker()));
    }
    let expected = [
        ("bought.com", "parked"),
        ("brand.com", "brand-keeper"),
        ("first.com", ""),
        ("plain.com", ""),
        ("relative.com", "for-sale"),
        // A name server on a line of its own is not read.
        ("several.com", ""),
        ("whois.com", "expired"),
        ("shop.com", "parked"),
    ];
    assert_eq!(found, expected.map(|(name, class)| (name.to_owned(), class.to_owned())));
}

#[test]
fn a_zone_kept_by_an_older_version_is_continued_without_classes() {
    let folder = Folder::new();
    let take = |on: i32, servers: &[(&str, &str)]| {
        let path = folder.write(&zone_with_servers(on as u32 + 1, servers));
        folder.tracker().take(&path, day(on), ZoneSource::Zone, Keep::Drops).expect("taken")
    };
    let all = [SERVERS[0], SERVERS[1], SERVERS[7]];
    take(0, &all);
    // The names without their classes, as before.
    let path = folder.state().join("names-1");
    let mut reader = names::NamesReader::<1>::open(&path).expect("opened");
    let mut writer = names::NamesWriter::<0>::create(&folder.state().join("old")).expect("created");
    while let Some((name, _)) = reader.name() {
        let name = name.to_vec();
        writer.push(&name, []).expect("written");
        reader.next().expect("read");
    }
    assert_eq!(writer.finish().expect("written"), 3);
    fs::rename(folder.state().join("old"), path).expect("renamed");
    for (on, servers) in [(1, &all[..2]), (2, &all[..2]), (3, &all[..2]), (4, &all[..1])] {
        take(on, servers);
    }
    assert_eq!(classes(&mut folder.tracker()), [("shop.com".to_owned(), String::new())]);
    for on in 5..7 {
        take(on, &all[..1]);
    }
    assert_eq!(classes(&mut folder.tracker()), [("bought.com".to_owned(), "parked".to_owned())]);
}

/// Returns all files of a folder with their content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries =
        fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    entries.map(|path| (path.clone(), fs::read(&path).expect("readable"))).collect()
}

#[test]
fn only_leftovers_of_ended_processes_are_removed() {
    let folder = Folder::new();
    folder.take(1, day(0), &["a", "b"]).expect("first");
    folder.take(2, day(1), &["a"]).expect("taken");
    let before = content(&folder.state());
    for name in ["names-3", "missing-3-2026-01-03", "com-3.csv", ".tmpabc"] {
        fs::write(folder.state().join(name), "half").expect("written");
    }
    folder.tracker();
    assert_eq!(content(&folder.state()), before);
    let bad = folder.write("com. 900 in soa a. b. 3 1 1 1 1\na.com. 900 in ns x.\n");
    folder.tracker().take(&bad, day(2), ZoneSource::Zone, Keep::Drops).expect_err("cut");
    folder.tracker();
    assert_eq!(content(&folder.state()), before);
}

#[test]
fn lists_have_the_days_compared_since_the_last_one() {
    let folder = Folder::new();
    let seen = || {
        let lists = folder.tracker().lists();
        lists.into_iter().map(|list| (list.day, list.seen)).collect::<Vec<_>>()
    };
    let all = ["a", "b", "c"];
    folder.take(1, day(1), &all).expect("first");
    folder.take(2, day(2), &all[1..]).expect("one left");
    folder.take(2, day(3), &all[1..]).expect("unchanged");
    folder.take(3, day(4), &all[1..]).expect("still missing");
    assert_eq!(seen(), []);
    folder.take(4, day(5), &all[1..]).expect("dropped");
    let days = |days: &[i32]| ZoneDays {
        suffix: "com".into(),
        days: days.iter().map(|&it| day(it)).collect(),
    };
    let first = (day(5), days(&[1, 2, 3, 4, 5]));
    assert_eq!(seen(), std::slice::from_ref(&first));
    folder.take(5, day(7), &all).expect("is back");
    assert_eq!(seen(), [first, (day(7), days(&[7]))]);
}

#[test]
fn a_return_is_reported_for_the_longest_horizon_after_the_release() {
    let left = day(1);
    let free = left.plus(35);
    for (days, is_reported) in [(400, true), (403, true), (405, false)] {
        let folder = Folder::new();
        let mut serial = 0;
        let mut take = |on: Day, names: &[&str]| {
            serial += 1;
            folder.take(serial, on, names).expect("taken")
        };
        take(left.plus(-1), &["a", "b"]);
        for after in 0..3 {
            take(left.plus(after), &["b"]);
        }
        take(free.plus(days - 1), &["b"]);
        let ZoneOutcome::Applied(applied) = take(free.plus(days), &["a", "b"]) else {
            panic!("not compared");
        };
        assert_eq!(applied.registered_again, u64::from(is_reported), "{days}");
    }
}
