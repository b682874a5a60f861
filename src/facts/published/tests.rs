//! Tests of whole files: a sound and a broken edition of each list, and everything else that a server may send.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;
use crate::store::Edition;

const ALL: u64 = u64::MAX;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Returns name, values and day of each row of an edition; `-` is unknown.
pub(super) fn rows_of(edition: &Edition) -> Vec<(String, Vec<String>, Day)> {
    let (mut rows, mut all) = (edition.rows_from(b"").expect("rows"), Vec::new());
    while let Some(row) = rows.next_row().expect("a row") {
        let text = |value: Option<Value>| value.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let values = edition.values(row).into_iter().map(text).collect();
        all.push((String::from_utf8_lossy(&row.key).into_owned(), values, edition.as_of(row)));
    }
    all
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/published")
}

/// Returns the files of an edition, packed as their publisher does.
fn fixture(list: PublishedList, quality: &str) -> Vec<(String, Vec<u8>)> {
    let path = |ending: &str| fixtures().join(format!("{list}.{quality}{ending}"));
    let packed = |path: PathBuf| gzip(&fs::read(&path).expect("a fixture"));
    match list {
        PublishedList::Links => {
            vec![("x-domain-ranks.txt.gz".to_owned(), packed(path(".txt")))]
        }
        PublishedList::Visits => vec![("current.csv.gz".to_owned(), packed(path(".csv")))],
        PublishedList::Ut1 => {
            let mut archive = tar::Builder::new(Vec::new());
            for category in ["adult", "gambling", "phishing", "press"] {
                let file = path("").join(category).join("domains");
                if file.exists() {
                    let name = format!("blacklists/{category}/domains");
                    archive.append_path_with_name(file, name).expect("a fixture");
                }
            }
            let archive = gzip(&archive.into_inner().expect("memory"));
            vec![("blacklists.tar.gz".to_owned(), archive)]
        }
        PublishedList::Hagezi => {
            let entries = fs::read_dir(path("")).expect("a folder").map(|it| it.expect("an entry"));
            let name = |entry: &fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
            let read = |entry: fs::DirEntry| (name(&entry), fs::read(entry.path()).expect("read"));
            let mut files: Vec<(String, Vec<u8>)> = entries.map(read).collect();
            files.sort();
            files
        }
    }
}

/// Reads an edition; all temporary files must be gone afterwards.
fn read(list: PublishedList, files: &[(String, Vec<u8>)], top: u64) -> Result<String, String> {
    let folder = TempDir::new().expect("a folder");
    let scratch = TempDir::new().expect("a folder");
    let on_disk = |(name, bytes): &(String, Vec<u8>)| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        ListFile { name: name.clone(), path }
    };
    let files: Vec<ListFile> = files.iter().map(on_disk).collect();
    let shown = match PublishedFacts::read(list, &files, top, scratch.path()) {
        Ok(edition) => Ok(shown(edition)),
        Err(err) => Err(err.to_string().replace(&format!("{}/", folder.path().display()), "")),
    };
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 0);
    shown
}

fn shown(mut edition: PublishedFacts) -> String {
    let (mut out, columns) = (String::new(), edition.list.columns());
    while let Some(PublishedRow { name, values }) = edition.next_row().expect("rows") {
        assert_eq!(values.len(), columns.len());
        out += name;
        for (column, value) in columns.iter().zip(values) {
            write!(out, " {}={}", column.name, value.expect("known")).expect("a string");
        }
        out.push('\n');
    }
    let PublishedReport { lines, skipped, refused_lines, refused } = &edition.report;
    writeln!(out, "{lines} lines, {skipped} skipped, {refused_lines} refused").expect("a string");
    for BadLine { file, line, reason } in refused {
        writeln!(out, "{file} {line}: {reason}").expect("a string");
    }
    out
}

fn one(name: &str, bytes: impl Into<Vec<u8>>) -> [(String, Vec<u8>); 1] {
    [(name.to_owned(), bytes.into())]
}

#[test]
fn sound_editions_are_read_and_broken_ones_are_refused_as_recorded() {
    let mut found = String::new();
    for list in PublishedList::ALL {
        let rows = read(list, &fixture(list, "good"), ALL).expect("a sound edition");
        let why = read(list, &fixture(list, "broken"), ALL).expect_err("a broken edition");
        write!(found, "[{list}]\n{rows}broken: {why}\n\n").expect("a string");
    }
    assert_eq!(found, fs::read_to_string(fixtures().join("expected.txt")).expect("recorded"));
}

#[test]
fn each_malformed_line_has_its_number_and_reason_and_one_in_ten_may_be_malformed() {
    let sound = |at: u32| format!("{at}\t2E7\t{at}\t0.1\tcom.mesa{at}\t1\n");
    let text = |bad: &str| {
        let rows: String = (1..=9).map(sound).collect();
        format!("{}\n{rows}{bad}\n", ranks::LINKS_HEADER)
    };
    let list = PublishedList::Links;
    for (bad, reason) in [
        ("10\t2E7\t1\t0.1\tcom.mesa", "expected 6 columns, found 5"),
        ("x\t2E7\t1\t0.1\tcom.mesa\t1", "column #harmonicc_pos is not a number from 1"),
        ("10\t2E7\t4294967296\t0.1\tcom.mesa\t1", "column #pr_pos is not a number"),
        ("10\t2E7\t1\t0.1\tcom.mesa\t0", "column #n_hosts is not a number"),
        ("10\t2E7\t1\t0.1\tcom.mesa\t+1", "column #n_hosts is not a number"),
        ("9\t2E7\t1\t0.1\tcom.mesa\t1", "the rank is not after the one of the line before"),
        ("10\t2E7\t1\t0.1\tcom.me_sa\t1", "the name holds `_`"),
        ("10\t2E7\t1\t0.1\tcom..mesa\t1", "the name has an empty label"),
    ] {
        let rows = read(list, &one("r.txt", text(bad)), ALL).expect("one line in ten");
        assert!(rows.contains("10 lines, 0 skipped, 1 refused\nr.txt 11: "), "{rows}");
        assert!(rows.contains(reason), "no `{reason}` in {rows}");
        let twice = read(list, &one("r.txt", text(&format!("{bad}\n{bad}"))), ALL);
        let why = twice.expect_err("two lines in eleven");
        assert!(why.contains("2 of 11 lines are refused"), "{why}");
        assert!(why.contains("line 11 of r.txt") && why.contains(reason), "{why}");
    }
    let mut bytes = text("").into_bytes();
    bytes.extend_from_slice(b"10\t2E7\t1\t0.1\tcom.m\xff\t1\n");
    assert!(read(list, &one("r.txt", bytes), ALL).is_err_and(|why| why.contains("2 of 11")));
}

#[test]
fn files_of_another_kind_are_refused_with_the_reason() {
    let cut = |list| {
        let (name, bytes) = fixture(list, "good").remove(0);
        one(&name, &bytes[..bytes.len() / 2])
    };
    let page = "\u{feff}\n<!DOCTYPE html><html><body>maintenance</body></html>";
    for list in PublishedList::ALL {
        let name = match list {
            PublishedList::Hagezi | PublishedList::Ut1 => "gambling.txt",
            _ => "list.txt",
        };
        let mut cases = vec![
            (one(name, ""), "the file is empty"),
            (one(name, gzip(b" \n\n")), "the file is empty"),
            (one(name, page), "a web page instead of the list"),
            (one(name, gzip(page.as_bytes())), "a web page instead of the list"),
            (one(name, "x".repeat(5_000)), "line 1 is longer than 4 KiB"),
        ];
        match list {
            PublishedList::Hagezi | PublishedList::Ut1 => {
                cases.push((one("tracking.txt", "brightmesa.com\n"), "named after a category"));
                cases.push((one(name, "blog.brightmesa.com\n"), "no line has a registrable name"));
                cases.push((one(name, "# nothing\n"), "no line has a registrable name"));
            }
            PublishedList::Links | PublishedList::Visits => {
                cases.push((one(name, "domain,rank\nbrightmesa.com,1\n"), "the first line is not"));
                cases.push((cut(list), "cannot be read to its end: the gzip data is cut short"));
            }
        }
        for (files, reason) in cases {
            let why = read(list, &files, ALL).expect_err(reason);
            assert!(why.contains(reason), "{list}: no `{reason}` in `{why}`");
        }
    }
    let why = read(PublishedList::Ut1, &cut(PublishedList::Ut1), ALL).expect_err("cut");
    assert!(why.contains("cannot be read to its end"), "{why}");
    let header = format!("{}\n", ranks::LINKS_HEADER);
    let why = read(PublishedList::Links, &one("r.txt", header), ALL).expect_err("no rows");
    assert!(why.contains("no line has a registrable name"), "{why}");
}

#[test]
fn ranks_are_read_up_to_the_row_that_the_settings_name() {
    let files = fixture(PublishedList::Links, "good");
    let rows = read(PublishedList::Links, &files, 2).expect("a sound edition");
    assert!(rows.contains("2 lines, 0 skipped, 0 refused"), "{rows}");
    assert!(rows.starts_with("brightmesa.com ") && !rows.contains("exempelhus"), "{rows}");
}
