//! What counts as one list, one drop, one release: every row of the table in `data/docs/sources.md`,
//! and readings that replace others.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use dropdex::corpus::Corpus;
use dropdex::corpus::merge::Dossiers;
use dropdex::feeds::Format;
use dropdex::index::generation::build::BuildSettings;
use dropdex::intake::outcome::{ListOutcome, Outcome};
use dropdex::intake::request::{Ingest, Lists, Request, Site, Task};
use dropdex::intake::run;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use tempfile::TempDir;

const TODAY: &str = "2026-11-27";

fn day(text: &str) -> Day {
    text.parse().expect("a date")
}

/// An installation without an index.
struct Folder {
    dir: TempDir,
}

impl Folder {
    fn new() -> Folder {
        Folder { dir: TempDir::new().expect("a folder") }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Ingests a file with options as on the command line.
    fn ingest(&self, arguments: &str, text: &str) -> Outcome {
        let mut words = arguments.split(' ');
        let path = self.dir.path().join(words.next().expect("a file"));
        fs::write(&path, text).expect("written");
        let (mut format, mut drop_date, mut observed_at) = (None, None, None);
        while let (Some(option), Some(value)) = (words.next(), words.next()) {
            match option {
                "--format" => format = Some(value.parse::<Format>().expect("a format")),
                "--drop-date" => drop_date = Some(day(value)),
                "--observed-at" => observed_at = Some(day(value).start()),
                other => panic!("no option: {other}"),
            }
        }
        self.run(Lists::Files { files: vec![path], format }, drop_date, observed_at)
    }

    fn run(
        &self,
        lists: Lists,
        drop_date: Option<Day>,
        observed_at: Option<DateTime<Utc>>,
    ) -> Outcome {
        let site = Site {
            data: self.data(),
            index: self.dir.path().join("index"),
            build: BuildSettings::default(),
            compact_above: 0,
            worker: Default::default(),
            clock: Clock::pinned_to(day(TODAY)),
            zone_names: dropdex::zones::Keep::default(),
            tables: Vec::new(),
        };
        let task =
            Ingest { lists, drop_date, observed_at, origin: None, zone: None, rebuild: false };
        run::run(&Request { site, task: Task::Ingest(task) }, &())
    }

    /// Returns the drops of a name, oldest first: `DATE RELEASE`, and `again` if it was registered
    /// again.
    fn drops(&self, name: &str) -> Vec<String> {
        let corpus = Corpus::open(&self.data()).expect("opens");
        let batches = corpus.batches().expect("sound");
        let mut dossiers = Dossiers::new(&batches, name.as_bytes()).expect("opens");
        let Some(dossier) = dossiers.gather().expect("decodes") else { return Vec::new() };
        if dossier.name != name.as_bytes() {
            return Vec::new();
        }
        let drops = dossier.drops.iter().map(|drop| {
            let release = drop.release.map_or("–".to_owned(), |day| day.to_string());
            let again = if drop.returned.is_some() { " again" } else { "" };
            format!("{} {release}{again}", drop.date)
        });
        drops.collect()
    }

    fn compact(&self) {
        let corpus = Corpus::open(&self.data()).expect("opens");
        corpus.compact(&corpus.batches().expect("sound"), 0).expect("compacted");
    }
}

/// Returns the description of how the last list was read, or the reason for its refusal.
fn reading(outcome: &Outcome) -> String {
    match outcome.lists.last().map(|list| &list.outcome) {
        Some(ListOutcome::Added { reading, .. }) => reading.clone(),
        Some(ListOutcome::AlreadyHeld { .. }) => "already held".to_owned(),
        Some(ListOutcome::Refused { reason }) => reason.clone(),
        other => panic!("{other:?} {outcome:?}"),
    }
}

/// Returns the texts in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_table_of_examples_holds() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/docs/sources.md");
    let docs = fs::read_to_string(docs).expect("readable");
    let (_, table) = docs.split_once("| files | drop date |").expect("a table");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 25, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [files, date, release, count, read] = cells[..] else { panic!("five cells: {row}") };
        let folder = Folder::new();
        let (mut last, mut name) = (None, None);
        for file in files.split(" then ") {
            let texts = quoted(file);
            let (arguments, lines) = texts.split_first().expect("a file");
            name = name.or_else(|| {
                let words = lines.iter().rev().flat_map(|line| line.split([',', ';', ' ', '"']));
                let mut names = words.filter(|word| word.starts_with("solar."));
                names.next().map(str::to_owned)
            });
            // A table in Markdown cannot contain a tab.
            let lines: Vec<String> =
                lines.iter().map(|line| line.replace(".se ", ".se\t")).collect();
            last = Some(folder.ingest(arguments, &(lines.join("\n") + "\n")));
        }
        let drops = folder.drops(&name.expect("a name"));
        let last = last.expect("a list");
        assert_eq!(drops.len().to_string(), count, "{row}\n{drops:?} {last:?}");
        if let Some(drop) = drops.last() {
            let drop = drop.trim_end_matches(" again");
            assert_eq!(drop, format!("{date} {release}"), "{row}");
        } else {
            assert_eq!((date, release), ("–", "–"), "{row}");
        }
        let found = reading(&last);
        assert!(found.contains(read), "{row}\n{found}");
    }
}

#[test]
fn another_reading_of_the_same_bytes_replaces_the_earlier_one() {
    for compacts in [false, true] {
        let folder = Folder::new();
        let compact = || {
            if compacts {
                folder.compact()
            }
        };
        folder.ingest("b.txt --drop-date 2026-11-01", "other.com\n");
        let text = "solar.com\nriver.com\n";
        folder.ingest("a.txt --drop-date 2026-05-11", text);
        compact();
        let outcome = folder.ingest("a.txt --drop-date 2026-11-05", text);
        assert!(outcome.notes.iter().any(|note| note.contains("replaces list 2")), "{outcome:?}");
        compact();
        for name in ["solar.com", "river.com"] {
            assert_eq!(folder.drops(name), ["2026-11-05 –"], "{name}");
        }
        assert_eq!(folder.drops("other.com"), ["2026-11-01 –"]);
        // Without options, and with the same ones, nothing changes.
        for arguments in ["a.txt", "renamed.txt --drop-date 2026-11-05", "a.txt --format names"] {
            assert_eq!(reading(&folder.ingest(arguments, text)), "already held", "{arguments}");
        }
        folder.ingest("a.txt --format registered --drop-date 2026-11-05", text);
        compact();
        assert_eq!(folder.drops("solar.com"), [""; 0]);
        // Returns to a reading that was replaced.
        folder.ingest("a.txt --format names --drop-date 2026-05-11", text);
        compact();
        assert_eq!(folder.drops("solar.com"), ["2026-05-11 –"]);
    }
}

#[test]
fn only_the_list_of_the_same_file_is_replaced() {
    let folder = Folder::new();
    for list in ["2026-11-20.txt", "2026-05-01.txt", "2026-11-20.txt", "again-2026-11-20.txt"] {
        folder.ingest(list, "solar.com\n");
    }
    assert_eq!(folder.drops("solar.com"), ["2026-05-01 –", "2026-11-20 –"]);
    folder.ingest("2026-05-01.txt --drop-date 2026-01-05", "solar.com\n");
    assert_eq!(folder.drops("solar.com"), ["2026-01-05 –", "2026-11-20 –"]);
}

#[test]
fn another_day_of_a_zone_pair_replaces_the_earlier_one() {
    let folder = Folder::new();
    let zone = |names: &str| {
        format!("$ORIGIN com.\n@ IN SOA a.x. b.x. 1 2 3 4 5\nkept IN NS ns1.x.\n{names}")
    };
    let files = ["old.zone", "new.zone"].map(|name| folder.dir.path().join(name));
    fs::write(&files[0], zone("solar IN NS ns1.x.\n")).expect("written");
    fs::write(&files[1], zone("")).expect("written");
    let [older, newer] = files;
    for date in ["2026-11-02", "2026-11-20"] {
        let lists = Lists::ZonePair { older: older.clone(), newer: newer.clone() };
        let outcome = folder.run(lists, Some(day(date)), None);
        assert_eq!(outcome.error(), None);
        assert_eq!(folder.drops("solar.com"), [format!("{date} –")]);
    }
}
