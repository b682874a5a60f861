//! Every list format as a whole file: good and bad, packed and not, detected and forced.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};
use dropdex::feeds::{
    Feed, FeedError, FeedProblem, Format, ReadOptions, Row, Sighting, file_sha256, zone_day,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

const NOW: &str = "2026-11-21T09:30:00Z";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time stamp")
}

fn auto() -> ReadOptions {
    ReadOptions { format: None, drop_date: None, observed_at: None, now: at(NOW) }
}

fn asked(format: Format) -> ReadOptions {
    ReadOptions { format: Some(format), ..auto() }
}

fn dropped_on(day: &str) -> ReadOptions {
    ReadOptions { drop_date: Some(day.parse().expect("a day")), ..auto() }
}

/// A folder with a single file.
struct OneFile {
    _folder: TempDir,
    path: PathBuf,
}

fn file(name: &str, bytes: impl AsRef<[u8]>) -> OneFile {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("writable");
    OneFile { _folder: folder, path }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/feeds").join(name)
}

/// Describes a row in one line: `a.com dropped 2026-10-03 free 2026-11-07 again`, or `3 bad-date
/// a.com,x`.
fn told(row: &Row) -> String {
    let seen = match row {
        Row::Seen(seen) => seen,
        Row::Rejected(reject) => {
            return format!("{} {} {}", reject.line, reject.reason.code(), reject.text);
        }
    };
    let mut text = match seen.sighting {
        Sighting::Dropped { date, release, registered_again } => {
            let release = release.map_or(String::new(), |it| format!(" free {it}"));
            let again = if registered_again { " again" } else { "" };
            format!("{} dropped {date}{release}{again}", seen.name)
        }
        Sighting::Released { on } => format!("{} was free {on}", seen.name),
        Sighting::Registered { on } => format!("{} registered {on}", seen.name),
        Sighting::Known { registered } => format!("{} known {registered}", seen.name),
    };
    if let Some(day) = seen.first_seen {
        text += &format!(" since {day}");
    }
    text
}

struct Whole {
    format: Format,
    reason: String,
    observed_at: DateTime<Utc>,
    rows: Vec<String>,
}

fn read_path(path: &Path, options: &ReadOptions) -> Result<Whole, FeedError> {
    let feed = Feed::open(path, options)?;
    let (format, observed_at) = (feed.format(), feed.observed_at());
    let reason = feed.reason().to_owned();
    let rows = feed.map(|row| row.map(|row| told(&row))).collect::<Result<_, _>>()?;
    Ok(Whole { format, reason, observed_at, rows })
}

fn read(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Whole, FeedError> {
    read_path(&file(name, bytes).path, options)
}

/// Reads a file that must be readable as a whole, and compares format and rows.
fn check(
    name: &str,
    bytes: impl AsRef<[u8]>,
    options: &ReadOptions,
    format: Format,
    rows: &[&str],
) {
    let whole = read(name, bytes, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(whole.format, format, "{name}: {}", whole.reason);
    assert_eq!(whole.rows, rows, "{name}");
}

fn problem(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> FeedProblem {
    match read(name, bytes, options) {
        Ok(whole) => panic!("{name} was read as {}: {:?}", whole.format, whole.rows),
        Err(error) => error.problem,
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).expect("in memory");
    packer.finish().expect("in memory")
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        match name.strip_suffix('/') {
            Some(folder) => {
                archive.add_directory(folder, SimpleFileOptions::default()).expect("in memory");
            }
            None => {
                archive.start_file(*name, SimpleFileOptions::default()).expect("in memory");
                archive.write_all(bytes).expect("in memory");
            }
        }
    }
    archive.finish().expect("in memory").into_inner()
}

fn utf16le(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

const NATIVE: &str = "domain,drop_date\nbrightmesa.com,2026-10-03\nquietharbor.net,2026-10-04\n";
const NATIVE_ROWS: [&str; 2] =
    ["brightmesa.com dropped 2026-10-03", "quietharbor.net dropped 2026-10-04"];

#[test]
fn native_with_every_column() {
    let list = "\
Status,Extra,DOMAIN,drop_date,release_date,registered_again,first_seen,observed_at
,x,BrightMesa.com,2026-10-03,2026-11-07,,2019-01-02,
pending-delete,x,quietharbor.net.,2026-10-04,,YES,,2026-10-05
registered,x,heldname.org,,,0,,2026-10-05T10:00:00+02:00
Unknown,x,münchen.de,,,no,,
\"redemption\",\"x
over two lines\",\"thirdcreek.org\",\"2026-10-06\",\"\",\"1\",\"\",\"\"
";
    let rows = [
        "brightmesa.com dropped 2026-10-03 free 2026-11-07 since 2019-01-02",
        "quietharbor.net dropped 2026-10-04 again",
        "heldname.org known true",
        "xn--mnchen-3ya.de known false",
        "thirdcreek.org dropped 2026-10-06 again",
    ];
    check("list.csv", list, &auto(), Format::Native, &rows);
    check("list.csv", list.replace('\n', "\r\n"), &auto(), Format::Native, &rows);
    let observed: Vec<DateTime<Utc>> = Feed::open(&file("list.csv", list).path, &auto())
        .expect("a list")
        .map(|row| match row.expect("readable") {
            Row::Seen(seen) => seen.observed_at,
            Row::Rejected(reject) => panic!("{reject:?}"),
        })
        .collect();
    let now = at(NOW);
    let (day, instant) = (at("2026-10-05T00:00:00Z"), at("2026-10-05T08:00:00Z"));
    assert_eq!(observed, [now, day, instant, now, now]);
}

#[test]
fn native_rows_that_are_bad_have_their_line_and_reason() {
    let list = b"\
domain,drop_date,status,registered_again,observed_at
good.com,2026-10-03,,,
good.com,03/10/2026,,,
good.com
\n,2026-10-03,,,
www.good.com,2026-10-03,,,
good.com,2026-10-03,dropped,,
good.com,2026-10-03,,maybe,
good.com,2026-10-03,,,2026-10-03T10:00:00
go\xffod.com,2026-10-03,,,
\"good.com,2026-10-03,,,
good\t.com\x1b,2026-10-03,,,
last.com,2026-10-03,,,";
    let rows = [
        "good.com dropped 2026-10-03",
        "3 ambiguous-date good.com,03/10/2026,,,",
        "4 too-few-columns good.com",
        "6 empty-name ,2026-10-03,,,",
        "7 below-registrable www.good.com,2026-10-03,,,",
        "8 bad-status good.com,2026-10-03,dropped,,",
        "9 bad-flag good.com,2026-10-03,,maybe,",
        "10 bad-time good.com,2026-10-03,,,2026-10-03T10:00:00",
        "11 invalid-utf8 go\u{fffd}od.com,2026-10-03,,,",
        "12 bad-quotes \"good.com,2026-10-03,,,",
        "13 control-or-space good\\t.com\\u{1b},2026-10-03,,,",
        "last.com dropped 2026-10-03",
    ];
    check("list.csv", list, &auto(), Format::Native, &rows);
}

#[test]
fn a_missing_column_fails_the_file_and_is_named() {
    assert!(matches!(
        problem("list.csv", "domain,status\na.com,registered\n", &asked(Format::Native)),
        FeedProblem::NoDateColumn { line: 1, .. }
    ));
    assert!(matches!(
        problem("list.csv", "name,drop_date\na.com,2026-10-03\n", &asked(Format::Native)),
        FeedProblem::MissingColumn { column: "domain", line: 1, .. }
    ));
    let error = read("list.csv", "domain,status\na.com,registered\n", &auto()).err();
    let text = error.expect("no date column").to_string();
    assert!(
        text.contains("list.csv: no column of dates, such as `drop_date`, in the header on line 1"),
        "{text}"
    );
    assert!(text.contains("(domain, status)") && text.contains("--drop-date"), "{text}");
    assert!(matches!(
        problem("list.csv", "Domain,Price\na.com,1\n", &asked(Format::Delimited)),
        FeedProblem::NoDateColumn { .. }
    ));
}

#[test]
fn a_table_without_dates_is_read_with_a_given_day() {
    for (list, first) in [
        ("id,domain,price\n1,alphaone.com,12\n2,alphatwo.com,9\n", "alphaone.com"),
        ("Domain;Price\nalphaone.com;12\nalphatwo.com;\n", "alphaone.com"),
        (
            "# from a shop\nid,domain,price\n1,alphaone.com,\"1,200\"\n2,alphatwo.com,9\n",
            "alphaone.com",
        ),
    ] {
        let told = problem("list.csv", list, &auto()).to_string();
        assert!(told.contains("no column of dates") && told.contains("--drop-date"), "{told}");
        let rows =
            [format!("{first} dropped 2026-11-20"), "alphatwo.com dropped 2026-11-20".into()];
        let rows = rows.each_ref().map(String::as_str);
        check("list.csv", list, &dropped_on("2026-11-20"), Format::Delimited, &rows);
    }
    let ranked = "Rank,Domain\n1,google.com\n2,github.com\n";
    for options in [auto(), dropped_on("2026-11-20")] {
        assert!(matches!(problem("list.csv", ranked, &options), FeedProblem::RankedList));
    }
}

#[test]
fn blank_rows_comments_and_missing_values_are_skipped() {
    let native = "# exported 2026-11-21, by hand\ndomain,drop_date,release_date,status,first_seen\n\
                  alphaone.com,2026-11-20,NULL,N/A,-\n,,,,\n# alphatwo.com,2026-11-20,,,\n\
                  alphatwo.com,27-Nov-2026,none,\\N,n/a\n\"\",\"\",,,\n";
    let rows = ["alphaone.com dropped 2026-11-20", "alphatwo.com dropped 2026-11-27"];
    check("list.csv", native, &auto(), Format::Native, &rows);
    let table = "\n\nsep=;\nDOMAIN;Dropped\nalphaone.com;20.12.2026\n;\n;;\nalphatwo.com;-\n";
    let rows = ["alphaone.com dropped 2026-11-21 free 2026-12-20", "8 missing-date alphatwo.com;-"];
    check("list.csv", table, &auto(), Format::Delimited, &rows);
}

#[test]
fn plain_lists_have_quotes_comments_and_addresses() {
    let list = "\"domain\"\n; a comment about example.com\n\"alphaone.com\"\nalphatwo.com # good\n\
                https://alphathree.com/\nalphafour.com,,\n\nhttps://alphafive.com/page\n,\n";
    let rows = [
        "alphaone.com dropped 2026-11-20",
        "alphatwo.com dropped 2026-11-20",
        "alphathree.com dropped 2026-11-20",
        "alphafour.com dropped 2026-11-20",
        "8 bad-character https://alphafive.com/page",
    ];
    check("list.txt", list, &dropped_on("2026-11-20"), Format::Names, &rows);
    let pages = "https://a.com/1\nhttps://b.com/2\n";
    let problem = problem("2026-11-20.txt", pages, &auto());
    assert!(matches!(problem, FeedProblem::UnknownFormat { .. }), "{problem}");
}

#[test]
fn json_with_one_object_per_line_is_a_list() {
    let list = "{\"domain\":\"alphaone.com\",\"dropDate\":\"2026-11-20\",\"releaseDate\":\"2026-12-25\"}\n\
                {\"domain\":\"alphatwo.com\",\"dropDate\":\"2026-11-19\",\"releaseDate\":null}\n\
                {\"domain\":\"alphathree.com\",\"drop";
    let rows = [
        "alphaone.com dropped 2026-11-20 free 2026-12-25",
        "alphatwo.com dropped 2026-11-19",
        "3 bad-json {\"domain\":\"alphathree.com\",\"drop",
    ];
    check("drops.ndjson", list, &auto(), Format::Json, &rows);
    let whole = "{\"name\":\"Dropped names\",\"data\":[{\"name\":\"exempel.se\",\"release_at\":\"2026-12-20\"}]}";
    check(
        "x.json",
        whole,
        &auto(),
        Format::Json,
        &["exempel.se dropped 2026-11-21 free 2026-12-20"],
    );
}

#[test]
fn plain_names_take_their_day_from_the_option_or_the_file_name() {
    let list = "# dropped names\r\nBrightMesa.com\r\n\r\nheading\r\nquiet harbor.net\r\nbücher.de";
    let rows = |day: &str| {
        [
            format!("brightmesa.com dropped {day}"),
            "5 control-or-space quiet harbor.net".into(),
            format!("xn--bcher-kva.de dropped {day}"),
        ]
    };
    let given = dropped_on("2026-10-01");
    for (name, options, day) in [
        ("names.txt", &given, "2026-10-01"),
        ("2026-10-03.txt", &given, "2026-10-01"),
        ("2026-10-03-free-dropped-domains.csv", &auto(), "2026-10-03"),
        ("20261003.txt", &auto(), "2026-10-03"),
        ("11-30-2021.txt", &auto(), "2021-11-30"),
        ("05-11-2026.txt", &given, "2026-10-01"),
    ] {
        let want = rows(day);
        check(name, list, options, Format::Names, &want.each_ref().map(String::as_str));
    }
    assert!(matches!(problem("names.txt", list, &auto()), FeedProblem::NoDate));
    assert!(problem("names.txt", list, &auto()).to_string().contains("--drop-date"));
}

#[test]
fn an_ambiguous_day_in_a_file_name_is_refused() {
    for (name, list, option) in [
        ("05-11-2026.txt", "a.com\n", "--drop-date"),
        ("nrd-5-11-2026.txt", "a.com\n", "--drop-date"),
        ("pool_05-11-2026.txt", "a.com,12/4/2026 12:00:00 AM,AUC\n", "--observed-at"),
        ("se-05-11-2026.txt", "alfa.se\t2026-12-20\n", "--observed-at"),
        ("uk-05-11-2026.csv", "domain,drop_time\na.uk,2026-12-20\n", "--observed-at"),
    ] {
        let text = problem(name, list, &auto()).to_string();
        assert!(text.contains("can be 2026-05-11 or 2026-11-05"), "{name}: {text}");
        assert!(text.contains(option), "{name}: {text}");
    }
    // The day of a list does not matter if its rows have both dates.
    check("05-11-2026.csv", NATIVE, &auto(), Format::Native, &NATIVE_ROWS);
    let zone = zone_day(Path::new("app-05-11-2026.txt.gz"), None).expect_err("ambiguous");
    assert!(matches!(zone.problem, FeedProblem::AmbiguousDay { .. }), "{zone}");
}

#[test]
fn a_day_after_the_observation_is_the_release() {
    let free = ["a.com dropped 2026-11-21 free 2026-11-30"];
    for name in ["11-30-2026.txt", "2026-11-30.txt", "30-11-2026.txt", "drops_20261130.txt"] {
        check(name, "a.com\n", &auto(), Format::Names, &free);
        let reason = read(name, "a.com\n", &auto()).expect("a list").reason;
        assert!(reason.contains("2026-11-30 is after the day of the list, 2026-11-21"), "{reason}");
    }
    check("names.txt", "a.com\n", &dropped_on("2026-11-30"), Format::Names, &free);
    check(
        "list-2026-11-30.txt",
        "alfa.cl\n",
        &asked(Format::Released),
        Format::Released,
        &["alfa.cl dropped 2026-11-21 free 2026-11-30"],
    );
    let seen = ReadOptions { observed_at: Some(at("2026-11-25T10:00:00Z")), ..auto() };
    let rows = ["a.com dropped 2026-11-25 free 2026-11-30"];
    check("2026-11-30.txt", "a.com\n", &seen, Format::Names, &rows);
    check("2026-11-21.txt", "a.com\n", &auto(), Format::Names, &["a.com dropped 2026-11-21"]);
}

#[test]
fn a_release_before_the_observation_does_not_date_the_drop() {
    let past = ["alfa.se was free 2026-10-20"];
    for (name, list, format) in [
        ("se.json", r#"{"data":[{"name":"alfa.se","release_at":"2026-10-20"}]}"#, Format::Json),
        ("se.txt", "alfa.se\t2026-10-20\n", Format::Bardate),
        ("pool.txt", "alfa.se,10/20/2026 12:00:00 AM,AUC\n", Format::Pool),
        ("uk.csv", "roid,domain,drop_time\nD,alfa.se,2026-10-20T11:31:21Z\n", Format::Delimited),
    ] {
        check(name, list, &auto(), format, &past);
    }
    check(
        "2026102009.txt",
        "alfa.it\n",
        &auto(),
        Format::Names,
        &["alfa.it was free 2026-10-20T07:00:00Z"],
    );
    let uk = "roid,domain,drop_time\nD,alfa.co.uk,2026-10-20T11:31:21Z\n";
    check("uk.csv", uk, &auto(), Format::Delimited, &["alfa.co.uk was free 2026-10-20T11:31:21Z"]);
    // A release that is on the day of the observation, or has a drop date, does.
    let today = ["alfa.se dropped 2026-11-21 free 2026-11-21"];
    check("se.txt", "alfa.se\t2026-11-21\n", &auto(), Format::Bardate, &today);
    let seen = ReadOptions { observed_at: Some(at("2026-09-30T10:00:00Z")), ..auto() };
    let rows = ["alfa.se dropped 2026-09-30 free 2026-10-20"];
    check("se.txt", "alfa.se\t2026-10-20\n", &seen, Format::Bardate, &rows);
    let given = ["alfa.se dropped 2026-10-01 free 2026-10-20"];
    check("se.txt", "alfa.se\t2026-10-20\n", &dropped_on("2026-10-01"), Format::Bardate, &given);
    let both = "domain,drop_date,release_date\nalfa.se,2026-11-21,2026-10-20\n";
    let rows = ["alfa.se dropped 2026-11-21 free 2026-10-20"];
    check("own.csv", both, &auto(), Format::Native, &rows);
}

#[test]
fn public_lists_of_new_registrations_are_never_drops() {
    let rows = ["a.com registered 2026-11-20"];
    for name in
        ["nrd-2026-11-20.txt", "NRD_20261120.txt", "newly-registered-domains-2026-11-20.txt"]
    {
        check(name, "a.com\n", &auto(), Format::Registered, &rows);
        let reason = read(name, "a.com\n", &auto()).expect("a list").reason;
        assert!(
            reason.contains("newly registered, so that drops up to 2026-11-20 are over"),
            "{reason}"
        );
    }
    let archive = zip(&[("domain-names.txt", b"a.com\n")]);
    check("2026-11-20.zip", &archive, &auto(), Format::Registered, &rows);
    let drops = ["a.com dropped 2026-11-20"];
    check("dropped-2026-11-20.zip", &archive, &auto(), Format::Names, &drops);
    check(
        "nrd-14day.txt",
        "a.com\n",
        &auto(),
        Format::Registered,
        &["a.com registered 2026-11-07"],
    );
    // In such a list, a column of dates does not contain releases.
    for list in ["domain,date\na.com,2026-11-20\n", "a.com\t2026-11-20\n"] {
        let text = problem("nrd-2026-11-20.csv", list, &auto()).to_string();
        assert!(text.contains("newly registered") && text.contains("--format"), "{text}");
    }
}

#[test]
fn the_it_list_is_released_at_the_hour_in_its_name() {
    let rows = ["esempio.it dropped 2026-11-21 free 2026-12-03T08:00:00Z"];
    check("2026120309.txt", "esempio.it\n", &auto(), Format::Names, &rows);
    // The hour is that of .it alone.
    let rows = ["example.com dropped 2026-11-21 free 2026-12-03"];
    check("2026120309.txt", "example.com\n", &auto(), Format::Names, &rows);
    let seen = read("2026100309.txt", "esempio.it\n", &auto()).expect("a list").observed_at;
    assert_eq!(seen, at(NOW), "the name does not date the list");
}

#[test]
fn released_names() {
    let list = "mesaclara.cl\n# none\nquiet_harbor.cl\n";
    let bad = "3 bad-character quiet_harbor.cl";
    for (name, options, day) in [
        ("Eliminados.do", &asked(Format::Released), "2026-11-21"),
        ("released-2026-10-03.txt", &asked(Format::Released), "2026-10-03"),
    ] {
        let good = format!("mesaclara.cl dropped {day} free {day}");
        check(name, list, options, Format::Released, &[&good, bad]);
    }
}

#[test]
fn newly_registered_names() {
    let list = "brightmesa.com\n# none\nquiet_harbor.net\n";
    let bad = "3 bad-character quiet_harbor.net";
    for (name, options, day) in [
        ("newly-registered-2026-10-03.txt", &auto(), "2026-10-03"),
        ("newly-registered-2026-10.txt", &auto(), "2026-11-21"),
        ("newly-registered-2026-10-03.txt", &dropped_on("2026-10-01"), "2026-10-01"),
        ("names-2026-10-03.txt", &asked(Format::Registered), "2026-10-03"),
    ] {
        let good = format!("brightmesa.com registered {day}");
        check(name, list, options, Format::Registered, &[&good, bad]);
    }
    let drops = ["brightmesa.com dropped 2026-10-03", bad];
    check("deregistered-2026-10-03.txt", list, &auto(), Format::Names, &drops);
}

#[test]
fn popularity_lists() {
    let plain = "1,com\n2,google.com\n3,www.google.com\n4,bad name.com\nx,netflix.com\n1000001,late.com\n\
                 1000000,M\u{fc}nchen.de\n";
    let majestic =
        "GlobalRank,TldRank,Domain,TLD,RefSubNets\n1,1,google.com,com,9\n2,1,exempel.se,se,8\n";
    let rows = [
        "2 google.com",
        "3 google.com",
        "4 control-or-space 4,bad name.com",
        "5 bad-rank x,netflix.com",
        "1000000 xn--mnchen-3ya.de",
    ];
    let today = &NOW[..10];
    let zipped = zip(&[("top-1m.csv", plain.as_bytes())]);
    for (name, bytes, list, rows) in [
        ("tranco_XJNYN_2026-10-03.csv", plain.into(), "tranco XJNYN 2026-10-03", &rows[..]),
        ("tranco_XJNYN-1m.csv.zip", zipped.clone(), &*format!("tranco XJNYN {today}"), &rows),
        ("umbrella-top-1m.csv.zip", zipped, &format!("umbrella - {today}"), &rows),
        (
            "list-2026-10-03.csv",
            majestic.into(),
            "majestic - 2026-10-03",
            &["1 google.com", "2 exempel.se"],
        ),
    ] {
        for options in [auto(), asked(Format::Ranked)] {
            // Other readings of the list contain no drops.
            let other = problem(name, &bytes, &options);
            assert!(matches!(other, FeedProblem::RankedList), "{name}: {other}");
        }
        let file = file(name, &bytes);
        let (edition, feed) = Feed::open_ranked(&file.path, &auto()).expect("a list");
        let id = edition.id.as_ref().map_or("-", |id| id.as_str());
        assert_eq!(format!("{} {id} {}", edition.list, edition.day), list, "{name}");
        let read = feed.map(|row| match row.expect("readable") {
            Row::Seen(seen) => format!("{} {}", seen.rank.get(), seen.name),
            Row::Rejected(reject) => {
                format!("{} {} {}", reject.line, reject.reason.code(), reject.text)
            }
        });
        assert_eq!(read.collect::<Vec<_>>(), rows, "{name}");
    }
    let nameless = file("top-1m.csv", plain);
    let problem = Feed::open_ranked(&nameless.path, &auto()).err().expect("no name").problem;
    assert!(matches!(problem, FeedProblem::NoListName), "{problem}");
    assert!(Feed::open_ranked(&file("tranco.csv", NATIVE).path, &auto()).is_err());
}

#[test]
fn a_list_of_the_last_days_counts_from_the_first() {
    let rows = ["brightmesa.com registered 2026-11-11"];
    let options = asked(Format::Registered);
    check("nrd-last-10-days.txt", "brightmesa.com\n", &options, Format::Registered, &rows);
}

#[test]
fn pool() {
    let list = "brightmesa.com,12/4/2026 12:00:00 AM,AUC\n\
                QUIETHARBOR.NET,1/31/2027 12:00:00 AM,PDR\n\
                thirdcreek.org,31/1/2027 12:00:00 AM,AUC\n\
                fourth.org\n";
    let rows = [
        "brightmesa.com dropped 2026-11-21 free 2026-12-04",
        "quietharbor.net dropped 2026-11-21 free 2027-01-31",
        "3 bad-date thirdcreek.org,31/1/2027 12:00:00 AM,AUC",
        "4 too-few-columns fourth.org",
    ];
    check(
        "PoolDeletingDomainsList.txt",
        &list[..list.len() - 11],
        &auto(),
        Format::Pool,
        &rows[..3],
    );
    check("list.txt", list, &asked(Format::Pool), Format::Pool, &rows);
    let seen = ReadOptions { observed_at: Some(at("2026-11-20T23:59:59Z")), ..auto() };
    let rows = ["brightmesa.com dropped 2026-11-20 free 2026-12-04"];
    check("pool.txt", "brightmesa.com,12/4/2026,AUC\n", &seen, Format::Pool, &rows);
}

#[test]
fn the_se_and_nu_lists() {
    let json = "{\"data\": [{\"name\":\"exempel.se\",\"release_at\":\"2026-12-20\"},\n\
                {\"name\":\"exempel.se\",\"release_at\":\"soon\"},\n\
                {\"name\":\"exempel.se\"},\n\
                {\"release_at\":\"2026-12-20\"},\n\
                {\"name\":\"exem pel.se\",\"release_at\":\"2026-12-20\"},\n\
                {\"name\":\"exempel.se\",\"release_at\":7},\n\
                {\"name\":\"exempel.se\" \"release_at\":\"2026-12-20\"},\n\
                [1], \"exempel.se\",\n\
                {\"name\":\"xn--bcher-kva.nu\",\"release_at\":\"2026-12-21\",\"x\":{\"y\":[1]}}]}";
    let whole = read("list.json", json, &auto()).expect("a list");
    let good = "exempel.se dropped 2026-11-21 free 2026-12-20";
    assert_eq!(whole.format, Format::Json);
    assert_eq!(whole.rows[0], good);
    assert_eq!(whole.rows[9], "xn--bcher-kva.nu dropped 2026-11-21 free 2026-12-21");
    for (row, start) in [
        (1, "2 bad-date {"),
        (2, "3 missing-date {"),
        (3, "4 missing-name {"),
        (4, "5 control-or-space {"),
        (5, "6 bad-date {"),
        (6, "7 bad-json {"),
        (7, "8 bad-json [1]"),
        (8, "8 missing-date \"exempel.se\""),
    ] {
        assert!(whole.rows[row].starts_with(start), "{}", whole.rows[row]);
    }
    let text = "exempel.se\t2026-12-20\nexempel.nu\t20261220\nexempel.nu\n\n# end\n";
    let rows =
        [good, "exempel.nu dropped 2026-11-21 free 2026-12-20", "3 too-few-columns exempel.nu"];
    check("bardate.txt", text, &asked(Format::Bardate), Format::Bardate, &rows);
    check("bardate.txt", "exempel.se\t2026-12-20\n", &auto(), Format::Bardate, &rows[..1]);
}

#[test]
fn json_of_other_vendors() {
    let park = r#"{"page":1,"nextPage":false,"domains":[{"name":"mesa.io","date_available":"2026-12-15","tld":"io"}]}"#;
    let rows = ["mesa.io dropped 2026-11-21 free 2026-12-15"];
    check("park.json", park, &auto(), Format::Json, &rows);
    let godaddy = "\u{feff}{\"meta\":{\"data\":\"x\"},\"data\":[{\"domainName\":\"BRIGHTMESA.COM\",\
                   \"itemId\":7,\"name\":\"a title\",\"auctionEndTime\":\"2026-12-05T18:00:00Z\",\
                   \"price\":null}]}";
    let rows = ["brightmesa.com dropped 2026-11-21 free 2026-12-05"];
    check("inventory.json", godaddy, &auto(), Format::Json, &rows);
    let ours = r#"[{"domain":"brightmesa.com","drop_date":"2026-10-03"}, "quietharbor.net"]"#;
    let rows = ["brightmesa.com dropped 2026-10-03", "quietharbor.net dropped 2026-10-01"];
    check("ours.json", ours, &dropped_on("2026-10-01"), Format::Json, &rows);
    check("none.json", "{\"data\":[]}", &auto(), Format::Json, &[]);
}

#[test]
fn json_that_is_truncated_or_not_a_list_fails_as_a_whole() {
    let whole =
        "{\"data\":[{\"name\":\"a.se\",\"release_at\":\"2026-12-20\"},\n{\"name\":\"b.se\"}]}";
    for end in [1, whole.len() - 1, whole.len() - 2, whole.len() - 8] {
        let problem = problem("cut.json", &whole[..end], &auto());
        assert!(matches!(problem, FeedProblem::BrokenJson { .. }), "{end}: {problem}");
    }
    assert!(matches!(problem("x.json", "{\"rows\":[]}", &auto()), FeedProblem::JsonShape));
    let other = problem("x.txt", "a.com\n", &asked(Format::Json));
    assert!(matches!(other, FeedProblem::NotFormat { format: Format::Json, .. }), "{other}");
}

#[test]
fn delimited_lists_of_registries_and_vendors() {
    let free = |day: &str| format!("brightmesa.com dropped 2026-11-21 free {day}");
    for (list, day) in [
        ("roid,domain,drop_time\nD_9-UK,brightmesa.com,2026-12-03T11:31:21Z\n", "2026-12-03"),
        (
            "Date,Eligible purge time (UTC),Domain name\n05/12/2026,15:04:50,brightmesa.com\n",
            "2026-12-05",
        ),
        ("domain_name,tld,deletion_time\nbrightmesa.com,com,2026-12-02T08:15:30Z\n", "2026-12-02"),
        (
            "TLD,DOMAIN,EXPIRED,PURGED\ncom,brightmesa.com,2026-11-20T08:49:48Z,2026-11-25T08:49:48Z\n",
            "2026-11-25",
        ),
        ("Domain,TLD,Type,Drop Date\nBrightMesa.com,com,PendingDelete,2026-12-03\n", "2026-12-03"),
        (
            "SnapNames\nas of today, all of them\nDomain name,Current bid,Auction end date\n\
             brightmesa.com,\"$1,069\",12/5/2026\n",
            "2026-12-05",
        ),
        (
            "\u{feff}Domain Name,Price,Auction End Time\nBRIGHTMESA.COM,12,12/05/2026 11:00 PM (PST)\n",
            "2026-12-06",
        ),
        ("domain|date\nbrightmesa.com|2026-12-03 23:30:00-02:00\n", "2026-12-04"),
    ] {
        check("list.csv", list, &auto(), Format::Delimited, &[&free(day)]);
        check("list.csv.gz", gzip(list.as_bytes()), &auto(), Format::Delimited, &[&free(day)]);
    }
    let sedo = "sep=;\r\n\"Domain Name\";\"End Time\";\"Reserve Price\"\r\n\
                \"brightmesa.com\";\"2026-12-05 18:00\";\"1\"\r\n";
    check("sedo.csv", sedo, &auto(), Format::Delimited, &[&free("2026-12-05")]);
    let marked = [vec![0xff, 0xfe], utf16le(sedo)].concat();
    check("sedo.csv", marked, &auto(), Format::Delimited, &[&free("2026-12-05")]);
    check("sedo.csv", utf16le(sedo), &auto(), Format::Delimited, &[&free("2026-12-05")]);
}

#[test]
fn drop_and_release_dates_are_what_their_columns_are_called() {
    let row = ["brightmesa.com dropped 2026-10-20 free 2026-12-24"];
    for list in [
        "name,dropDate,releaseDate\nbrightmesa.com,2026-10-20,2026-12-24\n",
        "Domain,Drop Date,Release Date\nbrightmesa.com,2026-10-20,2026-12-24\n",
        "releaseDate;dropDate;name\n2026-12-24;2026-10-20;brightmesa.com\n",
        "Domain\tDate Available\tDrop Date\nbrightmesa.com\t2026-12-24\t2026-10-20\n",
        "domain_name,drop_date,purged,date\nbrightmesa.com,2026-10-20,2026-12-24,2026-01-01\n",
        "domain,drop_date,purge_date\nbrightmesa.com,2026-10-20,2026-12-24\n",
    ] {
        check("list.csv", list, &auto(), Format::Delimited, &row);
    }
    // Our own CSV may spell its columns as in JSON.
    let native =
        "domain,drop_date,releaseDate,registeredAgain\nbrightmesa.com,2026-10-20,2026-12-24,\n";
    check("list.csv", native, &auto(), Format::Native, &row);
    let json = r#"[{"releaseDate":"2026-12-24","name":"brightmesa.com","dropDate":"2026-10-20"}]"#;
    check("list.json", json, &auto(), Format::Json, &row);
    // If one date is missing in a row, the other keeps its meaning.
    let json = r#"[{"name":"brightmesa.com","dropDate":"2026-10-20","releaseDate":null}]"#;
    check("list.json", json, &auto(), Format::Json, &["brightmesa.com dropped 2026-10-20"]);
    let sole = r#"[{"name":"brightmesa.com","dropDate":"2026-12-24"}]"#;
    check(
        "list.json",
        sole,
        &auto(),
        Format::Json,
        &["brightmesa.com dropped 2026-11-21 free 2026-12-24"],
    );
}

#[test]
fn backorders_of_dynadot_are_read_by_position() {
    let list = "Domain,Ends,Bids,Appraisal\nbrightmesa.net,2026/11/25 10:00 PST,3,$9\n\
                pine.org,12/1/2026,1,$1\nsilver.org,soon,1,$1\nno name,2026/11/25,1,$1\n";
    check(
        "backorders.csv",
        list,
        &asked(Format::Dynadot),
        Format::Dynadot,
        &[
            "brightmesa.net dropped 2026-11-21 free 2026-11-25",
            "pine.org dropped 2026-11-21 free 2026-12-01",
            "4 bad-date silver.org,soon,1,$1",
        ],
    );
    let refused = problem("x.csv", "Domain,Bids\na.com,3\n", &asked(Format::Dynadot));
    assert!(matches!(refused, FeedProblem::NotFormat { format: Format::Dynadot, .. }));
}

#[test]
fn a_history_has_registrations_and_deletions() {
    let header =
        "\"Nom de domaine\";\"Pays BE\";\"Date de création\";\"Date de retrait du WHOIS\"\n";
    let rows = "mesa.fr;FR;28-01-2022;\npine.fr;FR;30-06-2015;27-08-2024\nbad.fr;FR;31-02-2015;\n\
                short.fr;FR\n";
    let expected = [
        "mesa.fr known true since 2022-01-28",
        "pine.fr dropped 2024-08-27 free 2024-08-27 since 2015-06-30",
        "4 bad-date bad.fr;FR;31-02-2015;",
        "5 too-few-columns short.fr;FR",
    ];
    let list = format!("{header}{rows}");
    check("history.csv", &list, &auto(), Format::History, &expected);
    // Older files have a different encoding, and a different order of columns.
    let mut latin =
        b"\"Date de cr\xe9ation\";\"Date de retrait du WHOIS\";\"Nom de domaine\"\n".to_vec();
    latin.extend_from_slice(b"30-06-2015;27-08-2024;pine.fr\n");
    check("history.csv", latin, &auto(), Format::History, &expected[1..2]);
    let refused = problem("x.csv", "Nom de domaine;Pays BE\na.fr;FR\n", &asked(Format::History));
    assert!(matches!(refused, FeedProblem::NotFormat { format: Format::History, .. }));
}

#[test]
fn all_names_of_a_registry_are_read_by_the_header() {
    let names = |text: &str| -> Result<Vec<String>, FeedError> {
        let list = file("domains.txt", text);
        Feed::open_registry(&list.path)?.map(|row| Ok(told(&row?))).collect()
    };
    let list = "-- SK-NIC\n--\nID reg;domena;NEW\nR-1;mesa.sk;NEW\n-- end\nR-2;no name;NEW\nR-3\n";
    assert_eq!(
        names(list).expect("a list"),
        ["mesa.sk known true", "6 control-or-space R-2;no name;NEW", "7 too-few-columns R-3"]
    );
    for bad in ["", "-- only a comment\n", "meno;x\nmesa.sk;y\n", "<html>\n"] {
        let refused = names(bad).expect_err(bad).problem;
        assert!(
            matches!(refused, FeedProblem::NotFormat { format: Format::Registry, .. }),
            "{bad}"
        );
    }
    // Such a list is compared with earlier ones, like a zone file.
    assert!(matches!(problem("x.txt", list, &asked(Format::Registry)), FeedProblem::ZoneFile));
}

#[test]
fn delimited_rows_that_are_bad() {
    let list = "Preamble\nDomain;Purged\na.com;05/06/2026\na.com;\na.com\na.com;never\n\
                \"a.com\";\"13/06/2026\"\n";
    let rows = [
        "3 ambiguous-date a.com;05/06/2026",
        "4 missing-date a.com;",
        "5 too-few-columns a.com",
        "6 bad-date a.com;never",
        "a.com was free 2026-06-13",
    ];
    check("list.csv", list, &auto(), Format::Delimited, &rows);
}

#[test]
fn stamped_lists() {
    let pl = "2026-04-07 08:10:56 MEST\r\n\r\nprzyklad.pl\r\nprzyklad.com.pl\r\nzły pl.pl\r\n";
    let rows = [
        "przyklad.pl dropped 2026-04-07 free 2026-04-07",
        "przyklad.com.pl dropped 2026-04-07 free 2026-04-07",
        "5 control-or-space zły pl.pl",
    ];
    check("2026-01-01.txt", pl, &auto(), Format::Stamped, &rows);
    let seen = read("2026-01-01.txt", pl, &auto()).expect("a list").observed_at;
    assert_eq!(seen, at("2026-04-07T06:10:56Z"), "the stamp dates the list, not its name");
    let mx = "01/10/26 23:00:16 GMT-6\nDominio,Disponible\nejemplo.com.mx,true\nejemplo.mx,false\n\
              ejemplo.org.mx,si\nejemplo.net.mx\n";
    let rows = [
        "ejemplo.com.mx dropped 2026-10-02 free 2026-10-02",
        "5 bad-flag ejemplo.org.mx,si",
        "6 too-few-columns ejemplo.net.mx",
    ];
    check("mx.txt", mx, &auto(), Format::Stamped, &rows);
    let rows = ["przyklad.pl dropped 2026-04-06 free 2026-04-07"];
    let options = ReadOptions { format: Some(Format::Stamped), ..dropped_on("2026-04-06") };
    check("a", "2026-04-07 08:10:56 MEST\nprzyklad.pl\n", &options, Format::Stamped, &rows);
}

#[test]
fn real_lists() {
    let whole = read_path(&fixture("pl-2026-07-10.txt"), &auto()).expect("a list");
    assert_eq!((whole.format, whole.rows.len()), (Format::Stamped, 198));
    assert_eq!(whole.observed_at, at("2026-07-10T06:10:56Z"));
    assert_eq!(whole.rows[0], "01it.pl dropped 2026-07-10 free 2026-07-10");
    assert!(whole.rows.iter().all(|row| row.ends_with("free 2026-07-10")));
    let whole = read_path(&fixture("bardate_domains_nu.json"), &auto()).expect("a list");
    assert_eq!((whole.format, whole.rows.len()), (Format::Json, 100));
    assert_eq!(whole.rows[0], "123usp.nu was free 2026-06-01");
    assert!(whole.rows.iter().all(|row| row.contains(".nu was free 2026-0")));
}

#[test]
fn gzip_zstd_and_zip_hold_the_same_list() {
    let two_members = [gzip(&NATIVE.as_bytes()[..30]), gzip(&NATIVE.as_bytes()[30..])].concat();
    check("list.gz", two_members, &auto(), Format::Native, &NATIVE_ROWS);
    let stored = zip(&[("a/list.csv", NATIVE.as_bytes()), ("a/", b""), ("__MACOSX/x", b"y")]);
    check("list.zip", stored, &auto(), Format::Native, &NATIVE_ROWS);
    let dated = zip(&[("2026-10-03.txt", b"brightmesa.com\n")]);
    check("list.zip", dated, &auto(), Format::Names, &["brightmesa.com dropped 2026-10-03"]);
    let zstd = read_path(&fixture("native.csv.zst"), &auto()).expect("a list");
    assert_eq!(zstd.rows, NATIVE_ROWS);
    let frames = read_path(&fixture("native-frames.csv.zst"), &auto()).expect("a list");
    assert_eq!(frames.rows[..2], NATIVE_ROWS);
    assert_eq!(frames.rows[2..], ["thirdcreek.org dropped 2026-10-05"]);
}

/// A packed list that is truncated or has flipped bits is never taken for a shorter list.
#[test]
fn damaged_packed_lists_are_refused() {
    let zstd = fs::read(fixture("native.csv.zst")).expect("a fixture");
    for (name, whole) in [
        ("list.gz", gzip(NATIVE.as_bytes())),
        ("list.zst", zstd),
        ("list.zip", zip(&[("list.csv", NATIVE.as_bytes())])),
    ] {
        assert_eq!(read(name, &whole, &auto()).expect("whole").rows, NATIVE_ROWS);
        for end in 8..whole.len() {
            let problem = problem(name, &whole[..end], &auto());
            let named = matches!(problem, FeedProblem::Unpack { .. } | FeedProblem::Zip(_));
            assert!(named, "{name} cut at {end}: {problem}");
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            // Some bytes contain no list data (time stamps, names); changing these leaves the rows
            // unchanged.
            if let Ok(read) = read(name, &flipped, &auto()) {
                assert_eq!(read.rows, NATIVE_ROWS, "{name} flipped at {at}");
            }
        }
    }
}

#[test]
fn a_list_that_ends_in_damage_ends_in_one_error() {
    let names: String = (0..50_000).map(|at| format!("name{at}.com\n")).collect();
    let packed = gzip(names.as_bytes());
    let list = file("2026-10-03.txt.gz", &packed[..packed.len() / 2]);
    let mut feed = Feed::open(&list.path, &auto()).expect("its head is whole");
    let seen = feed.by_ref().take_while(|row| matches!(row, Ok(Row::Seen(_)))).count();
    assert!(seen > 5_000 && seen < 50_000, "{seen}");
    assert!(feed.next().is_none(), "take_while took the error, and nothing follows it");
    let last = Feed::open(&list.path, &auto()).expect("as before").last().expect("rows");
    let error = last.expect_err("cut short");
    assert!(matches!(error.problem, FeedProblem::Unpack { container: "gzip", .. }), "{error}");
}

#[test]
fn archives_that_are_not_one_list() {
    let two = zip(&[("a.csv", NATIVE.as_bytes()), ("b.csv", NATIVE.as_bytes())]);
    assert!(matches!(problem("x.zip", two, &auto()), FeedProblem::ZipFiles { files: 2 }));
    let none = zip(&[("folder/", b"")]);
    assert!(matches!(problem("x.zip", none, &auto()), FeedProblem::ZipFiles { files: 0 }));
    let added: [(&str, &[u8]); 6] = [
        ("__MACOSX/._list.csv", b"\0"),
        (".DS_Store", b"\0"),
        ("folder/Thumbs.db", b"\0"),
        ("desktop.ini", b""),
        (".hidden/x", b""),
        ("folder/list.csv", NATIVE.as_bytes()),
    ];
    assert!(read("x.zip", zip(&added), &auto()).is_ok(), "one list, and what systems add");
    assert!(read("x.zip", zip(&[(".list.csv", NATIVE.as_bytes())]), &auto()).is_ok());
    let sheets = [
        zip(&[("[Content_Types].xml", b"<"), ("xl/workbook.xml", b"<")]),
        zip(&[("mimetype", b"application/"), ("content.xml", b"<")]),
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0".to_vec(),
    ];
    for sheet in sheets {
        let problem = problem("list.csv", sheet, &auto());
        assert!(matches!(problem, FeedProblem::Spreadsheet(_)), "{problem}");
        assert!(problem.to_string().contains("as CSV"), "{problem}");
    }
    let xz = b"\xfd7zXZ\0\0\x04";
    assert!(matches!(problem("x.xz", xz, &auto()), FeedProblem::Container("xz")));
    let nested = gzip(&gzip(NATIVE.as_bytes()));
    let inner = problem("x.gz", nested, &auto());
    assert!(matches!(inner, FeedProblem::Binary), "{inner}");
}

#[test]
fn zero_bytes_after_packed_data_are_padding() {
    let gzip_list = gzip(NATIVE.as_bytes());
    let zstd_list = fs::read(fixture("native.csv.zst")).expect("a fixture");
    for packed in [gzip_list, zstd_list] {
        for padding in [1, 512, 300_000] {
            let padded = [&packed[..], &vec![0; padding]].concat();
            read("list.csv.x", padded, &auto()).unwrap_or_else(|err| panic!("{padding}: {err}"));
        }
        for garbage in [&b"x"[..], b"\0\0\0garbage", b"\x1f\x8b"] {
            let bytes = [&packed[..], garbage].concat();
            let read = read("list.csv.x", bytes, &auto());
            assert!(matches!(read, Err(FeedError { problem: FeedProblem::Unpack { .. }, .. })));
        }
    }
}

#[test]
fn utf_16_of_either_byte_order_is_text() {
    let units: Vec<u16> = NATIVE.encode_utf16().collect();
    for mark in [None, Some(0xfeff)] {
        let text = || mark.into_iter().chain(units.iter().copied());
        let little: Vec<u8> = text().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big] {
            assert_eq!(read("x.csv", bytes, &auto()).expect("a list").format, Format::Native);
        }
    }
}

#[test]
fn a_decompression_bomb_is_stopped() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(b"a.com\n").expect("in memory");
    let filler = [vec![b'#'; 999_999], vec![b'\n']].concat();
    for _ in 0..120 {
        packer.write_all(&filler).expect("in memory");
    }
    let packed = packer.finish().expect("in memory");
    let size = packed.len() as u64;
    match problem("2026-10-03.txt.gz", packed, &auto()) {
        FeedProblem::Bomb { packed, unpacked } => {
            assert!(packed <= size && unpacked > 64 << 20, "{packed} {unpacked}");
            assert!(unpacked < (64 << 20) + 100 * size + (1 << 20), "{unpacked}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn over_long_rows_are_rejected_one_by_one() {
    let list = format!("a.com\n{}\nb.com\n", "x".repeat(3 << 20));
    let long = format!("2 too-long {}", "x".repeat(200));
    let rows = ["a.com dropped 2026-10-03", long.as_str(), "b.com dropped 2026-10-03"];
    check("2026-10-03.txt", list, &auto(), Format::Names, &rows);
    let list = format!("[{{\"x\":\"{}\"}}, \"b.com\"]", "y".repeat(3 << 20));
    let long = format!("1 too-long {{\"x\":\"{}", "y".repeat(194));
    let rows = [long.as_str(), "b.com dropped 2026-10-03"];
    check("list.json", list, &dropped_on("2026-10-03"), Format::Json, &rows);
}

#[test]
fn an_unknown_format_is_refused_with_advice() {
    let html = "<!DOCTYPE html>\n<html><a href=\"https://example.com/\">moved.</a></html>\n";
    assert!(matches!(problem("2026-10-03.txt", html, &auto()), FeedProblem::UnknownFormat { .. }));
    let text = problem("2026-10-03.txt", html, &auto()).to_string();
    assert!(text.contains("starts with `<!DOCTYPE html>`") && text.contains("--format"), "{text}");
    assert!(text.contains("native, names, pool"), "{text}");
    let mostly = "a heading.\nb.com\nwhat is this.\n";
    assert!(matches!(
        problem("2026-10-03.txt", mostly, &auto()),
        FeedProblem::UnknownFormat { .. }
    ));
    assert!(matches!(problem("x.txt", "", &auto()), FeedProblem::Empty));
    assert!(matches!(problem("x.txt", "\n \r\n", &auto()), FeedProblem::Empty));
    assert!(matches!(problem("x.txt", "a\0b.com\n", &auto()), FeedProblem::Binary));
    let missing = Feed::open(Path::new("no/such/file"), &auto()).err().expect("no file");
    assert!(matches!(missing.problem, FeedProblem::Read(_)));
    assert!(missing.to_string().starts_with("no/such/file: cannot be read: "), "{missing}");
}

#[test]
fn a_file_of_another_format_than_requested_is_refused() {
    let json = "{\"data\":[{\"name\":\"a.se\",\"release_at\":\"2026-12-20\"}]}";
    for (format, list) in [
        (Format::Native, "a.com\nb.com\n"),
        (Format::Delimited, "a.com\nb.com\n"),
        (Format::Names, NATIVE),
        (Format::Names, json),
        (Format::Registered, json),
        (Format::Released, json),
        (Format::Pool, "a.com\nb.com\n"),
        (Format::Bardate, "a.com\nb.com\n"),
        (Format::Stamped, "a.com\nb.com\n"),
        (Format::Json, NATIVE),
    ] {
        let options = ReadOptions { format: Some(format), ..dropped_on("2026-10-03") };
        match problem("list.txt", list, &options) {
            FeedProblem::NotFormat { format: found, .. } => assert_eq!(found, format),
            other => panic!("{format}: {other}"),
        }
    }
}

#[test]
fn when_a_list_was_observed() {
    let given = ReadOptions { observed_at: Some(at("2026-10-04T05:06:07Z")), ..auto() };
    for (name, options, expected) in [
        ("list.csv", &auto(), NOW),
        ("list-2026-10-03.csv", &auto(), "2026-10-03T00:00:00Z"),
        ("list-2026-12-03.csv", &auto(), NOW),
        ("list-2026-10-03.csv", &given, "2026-10-04T05:06:07Z"),
    ] {
        let seen = read(name, NATIVE, options).expect("a list").observed_at;
        assert_eq!(seen, at(expected), "{name}");
    }
    let rows = ["exempel.se dropped 2026-10-03 free 2026-12-20"];
    check("se-2026-10-03.txt", "exempel.se\t2026-12-20\n", &auto(), Format::Bardate, &rows);
}

#[test]
fn progress_and_identity_count_the_raw_bytes() {
    let packed = gzip(NATIVE.as_bytes());
    let list = file("list.csv.gz", &packed);
    let mut feed = Feed::open(&list.path, &auto()).expect("a list");
    let bytes_read = feed.bytes_read();
    assert_eq!(feed.by_ref().count(), 2);
    assert_eq!(bytes_read.load(Ordering::Relaxed), packed.len() as u64);
    let empty = file("empty", "");
    let hash = file_sha256(&empty.path).expect("readable");
    assert_eq!(hash[..4], [0xe3, 0xb0, 0xc4, 0x42]);
    assert_ne!(file_sha256(&list.path).expect("readable"), hash);
}

const ZONE: &str = "\
; a zone\n\
app.\t21600\tin\tsoa\tns1.x. hm.x. 1 2 3 4 5\n\
app.\t10800\tin\tns\tns1.x.\n\
brightmesa.app.\t10800\tin\tns\tns1.example.net.\n\
brightmesa.app.\t10800\tin\tns\tns2.example.net.\n\
brightmesa.app.\t3600\tin\tds\t1 8 2 00\n\
ns1.glued.app.\t3600\tin\ta\t192.0.2.1\n\
deep.glued.app.\t3600\tin\tns\tns1.x.\n\
GLUED.app.\t3600\tin\tns\tns1.glued.app.\n\
under_score.app.\t3600\tin\tns\tns1.x.\n\
xn--bcher-kva.app.\tin\t3600\tns\tns1.x.\n\
broken.app.\n";

fn owners(name: &str, bytes: impl AsRef<[u8]>) -> Result<(String, Vec<String>), FeedError> {
    let (apex, zone) = Feed::open_zone(&file(name, bytes).path)?;
    let rows = zone
        .map(|row| match row? {
            Row::Seen(seen) => Ok(seen.name.to_string()),
            Row::Rejected(reject) => Ok(format!("{} {}", reject.line, reject.reason.code())),
        })
        .collect::<Result<_, FeedError>>()?;
    Ok((apex, rows))
}

#[test]
fn owners_of_a_zone_file() {
    let names =
        ["brightmesa.app", "glued.app", "10 bad-character", "xn--bcher-kva.app", "12 bad-record"];
    for bytes in [ZONE.as_bytes().to_vec(), gzip(ZONE.as_bytes())] {
        let (apex, rows) = owners("app.zone", bytes).expect("a zone file");
        assert_eq!((apex.as_str(), rows.as_slice()), ("app", names.map(String::from).as_slice()));
    }
    let relative = "$ORIGIN COM.\n$TTL 900\n@ IN SOA a.x. b.x. (\n  1 ; serial\n  900 NS 3 4 5 )\n\
                    EXAMPLE NS NS1.EXAMPLE\n NS NS2.EXAMPLE\nNS1.EXAMPLE A 192.0.2.1\n\
                    SECOND 60 IN NS NS1\n";
    let (apex, rows) = owners("com.zone", relative).expect("a zone file");
    assert_eq!((apex.as_str(), rows.join(" ").as_str()), ("com", "example.com second.com"));
    let error = owners("x.zone", "a.com\n").expect_err("no zone");
    assert!(matches!(error.problem, FeedProblem::NoApex));
    let cut = gzip(ZONE.as_bytes());
    let error = owners("x.gz", &cut[..cut.len() - 9]).expect_err("cut short");
    assert!(matches!(error.problem, FeedProblem::Unpack { .. }), "{error}");
}

#[test]
fn a_single_zone_file_is_refused() {
    for options in [auto(), asked(Format::ZonePair)] {
        let problem = problem("app-2026-10-03.txt", ZONE, &options);
        assert!(matches!(problem, FeedProblem::ZoneFile), "{problem}");
        assert!(problem.to_string().contains("--format zone-pair OLD NEW"), "{problem}");
    }
    let day = |name: &str, given: Option<&str>| {
        let given = given.map(|day| day.parse().expect("a day"));
        zone_day(Path::new(name), given).map(|day| day.to_string()).ok()
    };
    assert_eq!(day("zones/app-20261003.txt.gz", None), Some("2026-10-03".into()));
    assert_eq!(day("zones/app-20261003.txt.gz", Some("2026-10-04")), Some("2026-10-04".into()));
    assert_eq!(day("2026-10-03/app.txt.gz", None), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No bytes make a reader panic, loop, or report a line beyond the end of the text.
    #[test]
    fn any_bytes_are_read_or_refused(
        start in prop::sample::select(vec![
            "", "domain,drop_date\n", "{\"data\":[", "[", "2026-04-07 08:10:56 MEST\n", "a.com\n",
            "a.com,12/4/2026 12:00:00 AM,AUC\n", "a.se\t2026-10-20\n", "sep=;\nDomain;Date\n",
            "1,a.com\n", "GlobalRank,Domain\n", "$ORIGIN com.\n@ SOA a b 1 2 3 4 5\n", "01/10/26 03:00:16 GMT-6\nDominio,Disponible\n",
        ]),
        body in prop::collection::vec(
            prop_oneof![
                "[a-cé\u{2003}\\\\\"\\[\\]{}:,;\t /+()PMT0-9.-]{0,24}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..8),
            ],
            0..12,
        ),
    ) {
        let text = [start.as_bytes().to_vec(), body.join(&b'\n')].concat();
        let lines = text.split(|byte| *byte == b'\n').count() as u64;
        let list = file("2026-10-03.txt", &text);
        let named = file("tranco.csv", &text);
        let formats = Format::ALL.map(Some).into_iter().chain([None]);
        for format in formats {
            let options = ReadOptions { format, ..auto() };
            let Ok(feed) = Feed::open(&list.path, &options) else { continue };
            for row in feed {
                if let Ok(Row::Rejected(reject)) = row {
                    prop_assert!((1..=lines).contains(&reject.line), "{reject:?}");
                    prop_assert!(!reject.text.contains(char::is_control));
                }
            }
        }
        if let Ok((_, ranked)) = Feed::open_ranked(&named.path, &auto()) {
            prop_assert!(ranked.count() as u64 <= lines);
        }
        if let Ok((_, zone)) = Feed::open_zone(&list.path) {
            prop_assert!(zone.count() as u64 <= lines);
        }
    }
}
