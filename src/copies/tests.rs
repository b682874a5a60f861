use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use tempfile::TempDir;

use super::*;
use crate::table::Cell;
use crate::table::tests::{COLUMNS, parquet_rows};
use crate::vocab::file_error::FileError;

fn day(text: &str) -> Day {
    text.parse().expect("a day")
}

fn about() -> About {
    let made_at = "2026-11-30T00:00:05.000Z".parse().expect("an instant");
    About { generation: 3, made_at, first_seq: None, last_seq: 17, has_internal: false }
}

fn set_name(text: &str) -> SetName {
    text.parse().expect("a name")
}

/// Writes a set with a line for each name.
fn write(copies: &Copies, name: &str, names: &[&str]) -> Set {
    let fill = |draft: &mut Draft| {
        names.iter().try_for_each(|name| {
            let cells = [Cell::Text(name), Cell::Number(7), Cell::Null, Cell::Null, Cell::Null];
            let cells: Vec<Cell<'_>> =
                cells.into_iter().chain([Cell::Null, Cell::Bool(true)]).collect();
            draft.push(format!("{name}\n").as_bytes(), format!("{name},7\r\n").as_bytes(), &cells)
        })
    };
    copies.write::<CopyError>(set_name(name), COLUMNS, about(), fill).expect("written")
}

fn path(data: &TempDir, set: &str, file: &str) -> std::path::PathBuf {
    data.path().join("export-files").join(set).join(file)
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(path).expect("there")).read_to_string(&mut text).expect("gzip");
    text
}

#[test]
fn names_are_read_as_written_and_no_other_text_is() {
    for text in
        ["pipeline-2026-11-30.ndjson.gz", "changes-2026-11-29.parquet", "changes-2026-01-01.csv.gz"]
    {
        let name: FileName = text.parse().expect(text);
        assert_eq!(name.to_string(), text);
    }
    for bad in [
        "",
        "pipeline-2026-11-30",
        "pipeline-2026-11-30.csv",
        "pipeline-2026-11-30.csv.gz.gz",
        "pipeline-2026-11-30.CSV.GZ",
        "pipeline-2026-11-31.parquet",
        "pipeline-20261130.parquet",
        "../pipeline-2026-11-30.parquet",
        "pipeline-2026-11-30/../manifest.json",
        "manifest.json",
        "names-2026-11-30.parquet",
    ] {
        assert_eq!(bad.parse::<FileName>(), Err(NameError), "{bad}");
    }
}

#[test]
fn a_set_has_its_rows_in_all_formats() {
    let data = tempfile::tempdir().expect("a folder");
    let copies = Copies::new(data.path());
    assert_eq!(copies.sets().expect("no folder yet"), []);
    let set = write(&copies, "pipeline-2026-11-30", &["a.com", "b.com"]);
    assert_eq!((set.rows, set.schema_version), (2, SCHEMA_VERSION));
    let file = |name| path(&data, "pipeline-2026-11-30", name);
    assert_eq!(unpacked(&file("pipeline-2026-11-30.ndjson.gz")), "a.com\nb.com\n");
    assert_eq!(
        unpacked(&file("pipeline-2026-11-30.csv.gz")),
        "name,dqs,day,at,share,seq,verified\r\na.com,7\r\nb.com,7\r\n"
    );
    for format in Format::ALL {
        let name = FileName { set: set.name, format };
        let (found, mut opened) = copies.open(name).expect("readable").expect("there");
        assert_eq!(found, set);
        let mut bytes = Vec::new();
        opened.read_to_end(&mut bytes).expect("readable");
        let listed = set.file(format).expect("listed");
        assert_eq!(listed.bytes, bytes.len() as u64);
        assert_eq!(listed.sha256, hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&bytes)));
    }
    assert!(copies.is_sound(&set).expect("readable"));
    assert_eq!(
        parquet_rows(File::open(file("pipeline-2026-11-30.parquet")).expect("there")).len(),
        2
    );
}

#[test]
fn incomplete_sets_are_not_listed_and_replaced() {
    let data = tempfile::tempdir().expect("a folder");
    let copies = Copies::new(data.path());
    let name = "changes-2026-11-29";
    let set = write(&copies, name, &["a.com"]);
    let parquet = path(&data, name, "changes-2026-11-29.parquet");
    let bytes = fs::read(&parquet).expect("there");
    // A byte is missing; the file is; the manifest is half; the manifest is that of another set.
    let manifest = path(&data, name, "manifest.json");
    let text = fs::read_to_string(&manifest).expect("there");
    fs::write(&parquet, &bytes[1..]).expect("written");
    assert_eq!(copies.sets().expect("readable"), []);
    fs::remove_file(&parquet).expect("removed");
    assert!(
        copies.open("changes-2026-11-29.csv.gz".parse().expect("a name")).expect("ok").is_none()
    );
    fs::write(&parquet, &bytes).expect("written");
    assert_eq!(copies.set(set.name), Some(set.clone()));
    for bad in [&text[..text.len() / 2], &text.replace("2026-11-29", "2026-11-28")] {
        fs::write(&manifest, bad).expect("written");
        assert_eq!(copies.set(set.name), None, "{bad}");
    }
    fs::write(&manifest, &text).expect("written");
    let mut flipped = bytes.clone();
    flipped[9] ^= 1;
    fs::write(&parquet, flipped).expect("written");
    assert!(!copies.is_sound(&set).expect("readable"), "the size is right, the checksum is not");
    assert_eq!(write(&copies, name, &["a.com"]).files, set.files);
    assert_eq!(fs::read(&parquet).expect("there"), bytes);
}

#[test]
fn a_failed_set_leaves_nothing_and_drafts_are_removed() {
    let data = tempfile::tempdir().expect("a folder");
    let copies = Copies::new(data.path());
    let failing = |draft: &mut Draft| {
        draft.push(b"a\n", b"a\r\n", &[Cell::Null; 7])?;
        let source = std::io::ErrorKind::StorageFull.into();
        Err(CopyError::Io(FileError { path: "full".into(), source }))
    };
    let failed = copies.write(set_name("pipeline-2026-11-30"), COLUMNS, about(), failing);
    assert!(failed.is_err());
    let folder = data.path().join("export-files");
    assert_eq!(fs::read_dir(&folder).expect("there").count(), 0);
    for set in ["pipeline-2026-11-29", "pipeline-2026-11-30", "changes-2026-11-30"] {
        write(&copies, set, &[]);
    }
    // What a crash leaves, and a file of the operator.
    fs::create_dir(folder.join(".new-changes-2026-11-29")).expect("created");
    fs::write(folder.join("README"), "mine").expect("written");
    let names = || copies.sets().expect("readable").into_iter().map(|it| it.name.to_string());
    let listed = ["pipeline-2026-11-30", "changes-2026-11-30", "pipeline-2026-11-29"];
    assert!(names().eq(listed), "{:?}", names().collect::<Vec<_>>());
    copies.retain(|name| name.day >= day("2026-11-30")).expect("removed");
    assert!(names().eq(listed[..2].iter().copied()));
    let mut left: Vec<_> =
        fs::read_dir(&folder).expect("there").map(|it| it.expect("ok").file_name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["README", "changes-2026-11-30", "pipeline-2026-11-30"]);
}
