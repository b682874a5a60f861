//! The editions of published lists in the folder `facts/` of a data folder: `ID.ddf` is in use, and `ID.held` is held
//! back until an operator accepts it. One process at a time may change those of a list.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{ListFile, PublishedError, PublishedFacts, PublishedList, PublishedReport};
use crate::columns::FactColumn;
use crate::store::{Edition, Rows, SourceMeta, SourceWriter, StoreError, StoredColumn};
use crate::value::Value;
use crate::vocab::day::Day;
use crate::vocab::fact::{FactType, KeyKind};
use crate::vocab::new_file;

const FOLDER: &str = "facts";
/// Extension of the editions in use.
const EXTENSION: &str = "ddf";
pub(super) const DRAFT: &str = "draft";
/// The scratch folder of a source that is added.
const ADDED: &str = ".added";

/// An edition that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub names: u64,
    pub report: PublishedReport,
    /// Number of names in the edition in use, which stays in use because the new one has fewer than half of them.
    pub held_back_by: Option<u64>,
}

/// Why an edition is not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    #[error(transparent)]
    Published(#[from] PublishedError),
    #[error("the edition is of {found}, and the one in use is of {held}")]
    Older { found: Day, held: Day },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl KeepError {
    /// Whether the fault is in the files, not in the folder.
    pub fn is_of_the_files(&self) -> bool {
        match self {
            KeepError::Published(err) => !matches!(err, PublishedError::Scratch(_)),
            KeepError::Older { .. } => true,
            KeepError::Store(_) => false,
        }
    }
}

/// The folder `facts/` of a data folder.
#[derive(Clone, Debug)]
pub struct FactsFolder(PathBuf);

impl FactsFolder {
    /// The folder in the data folder `data`. Nothing is created.
    pub fn new(data: &Path) -> FactsFolder {
        FactsFolder(data.join(FOLDER))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the edition of a source in use.
    pub fn edition(&self, source: &str) -> PathBuf {
        self.0.join(format!("{source}.{EXTENSION}"))
    }

    /// Returns the paths of the editions in use, in order.
    pub fn editions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        all.retain(|path| path.extension().is_some_and(|it| it == EXTENSION));
        all.sort_unstable();
        all
    }

    /// Puts an edition of a source into use.
    ///
    /// # Errors
    /// It cannot be written. The one in use stays.
    pub fn put(&self, source: &str, bytes: &[u8]) -> Result<(), KeepError> {
        self.in_scratch(ADDED, |scratch| {
            let draft = scratch.join(DRAFT);
            let written = new_file::create(&draft).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            });
            written.map_err(StoreError::Io)?;
            fs::rename(draft, self.edition(source)).map_err(StoreError::Io)?;
            Ok(self.sync().map_err(StoreError::Io)?)
        })
    }

    /// Whether an edition of the list is in use.
    pub fn holds(&self, list: PublishedList) -> bool {
        self.in_use(list).exists()
    }

    fn in_use(&self, list: PublishedList) -> PathBuf {
        self.edition(list.as_str())
    }

    fn held(&self, list: PublishedList) -> PathBuf {
        self.0.join(format!("{list}.held"))
    }

    /// Compiles the files of an edition and puts it into use, or holds it back.
    ///
    /// # Errors
    /// The files are refused, or the edition cannot be written. The one in use stays.
    pub fn keep(
        &self,
        list: PublishedList,
        files: &[ListFile],
        top: u64,
        as_of: Day,
    ) -> Result<Kept, KeepError> {
        self.in_scratch(&format!(".{list}"), |scratch| {
            self.compile(list, files, top, as_of, scratch)
        })
    }

    /// Runs `work` with an empty folder of this name, which is removed afterwards.
    pub(super) fn in_scratch<T>(
        &self,
        name: &str,
        work: impl FnOnce(&Path) -> Result<T, KeepError>,
    ) -> Result<T, KeepError> {
        let scratch = self.0.join(name);
        if scratch.exists() {
            // The process before was killed.
            fs::remove_dir_all(&scratch).map_err(StoreError::Io)?;
        }
        new_file::create_folder(&scratch).map_err(StoreError::Io)?;
        let done = work(&scratch);
        fs::remove_dir_all(&scratch).map_err(StoreError::Io)?;
        done
    }

    fn compile(
        &self,
        list: PublishedList,
        files: &[ListFile],
        top: u64,
        as_of: Day,
        scratch: &Path,
    ) -> Result<Kept, KeepError> {
        // A damaged edition is replaced without a comparison.
        let before = Edition::open(&self.in_use(list)).ok();
        let mut trend = None;
        if let Some(before) = before.as_ref().filter(|_| list == PublishedList::Links) {
            let held = before.meta().as_of;
            if as_of < held {
                return Err(KeepError::Older { found: as_of, held });
            }
            trend = Some(Trend::new(before, held < as_of)?);
        }
        let mut rows = PublishedFacts::read(list, files, top, scratch)?;
        let draft = scratch.join(DRAFT);
        let file = new_file::create(&draft).map_err(StoreError::Io)?;
        let mut writer = SourceWriter::new(file, meta(list, as_of))?;
        let mut names = 0;
        while let Some(mut row) = rows.next_row().map_err(PublishedError::Scratch)? {
            if list == PublishedList::Links {
                row.values.extend(match &mut trend {
                    Some(trend) => trend.of(row.name)?,
                    None => Default::default(),
                });
            }
            writer.push(row.name, None, &row.values)?;
            names += 1;
        }
        writer.finish()?.sync_all().map_err(StoreError::Io)?;
        let in_use = before.map(|before| before.rows());
        let held_back_by = in_use.filter(|&in_use| names < in_use.div_ceil(2));
        let into = if held_back_by.is_some() { self.held(list) } else { self.in_use(list) };
        fs::rename(draft, into).map_err(StoreError::Io)?;
        if held_back_by.is_none() {
            self.discard_held(list).map_err(StoreError::Io)?;
        }
        self.sync().map_err(StoreError::Io)?;
        Ok(Kept { names, report: rows.report, held_back_by })
    }

    /// Puts the edition that is held back into use. Returns its number of names; `None` if no edition is held back.
    ///
    /// # Errors
    /// The edition is damaged, or cannot be renamed.
    pub fn accept(&self, list: PublishedList) -> Result<Option<u64>, StoreError> {
        let held = self.held(list);
        if !held.exists() {
            return Ok(None);
        }
        let names = Edition::open(&held)?.rows();
        fs::rename(held, self.in_use(list))?;
        self.sync()?;
        Ok(Some(names))
    }

    fn discard_held(&self, list: PublishedList) -> io::Result<()> {
        match fs::remove_file(self.held(list)) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
            _ => Ok(()),
        }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

/// Columns of the ranks by links in the releases before, newest first.
const EARLIER: [&str; 3] = ["link_rank_1", "link_rank_2", "link_rank_3"];

/// Returns a column as editions describe it. `words` are the values of one that has such.
pub(super) fn stored(column: &FactColumn, words: &[String]) -> StoredColumn {
    StoredColumn {
        unit: column.unit,
        direction: column.direction,
        scale: column.scale,
        words: if column.kind == FactType::Enum { words.to_vec() } else { Vec::new() },
        ..StoredColumn::new(column.name.fact(), column.kind)
    }
}

fn meta(list: PublishedList, as_of: Day) -> SourceMeta {
    let (title, licence, attribution) = list.rights();
    let stored = |column: &FactColumn| stored(column, &list.words());
    let mut columns: Vec<StoredColumn> = list.columns().iter().map(stored).collect();
    if list == PublishedList::Links {
        let earlier = |name: &&str| StoredColumn { name: (*name).to_owned(), ..columns[0].clone() };
        let earlier: Vec<StoredColumn> = EARLIER.iter().map(earlier).collect();
        columns.extend(earlier);
    }
    SourceMeta {
        id: list.as_str().to_owned(),
        title: title.to_owned(),
        key: KeyKind::Domain,
        as_of,
        licence,
        attribution: Some(attribution.to_owned()),
        columns,
    }
}

/// The ranks by links of earlier releases, which the edition in use has in its columns.
struct Trend<'a> {
    rows: Rows<'a>,
    /// Columns of the edition in use whose values become those of [`EARLIER`].
    columns: Vec<usize>,
}

impl<'a> Trend<'a> {
    /// With `is_older`, the edition in use is the release before; otherwise it is the same release, read again.
    fn new(before: &'a Edition, is_older: bool) -> Result<Trend<'a>, StoreError> {
        let column = |name: &str| before.meta().columns.iter().position(|it| it.name == name);
        let newest = is_older.then_some("link_rank");
        let columns = newest.into_iter().chain(EARLIER).take(EARLIER.len());
        Ok(Trend { rows: before.rows_from(b"")?, columns: columns.filter_map(column).collect() })
    }

    /// Returns the earlier ranks of a name. Names must come in ascending order.
    fn of(&mut self, name: &str) -> Result<[Option<Value>; EARLIER.len()], StoreError> {
        self.rows.seek(name.as_bytes())?;
        let mut ranks = [const { None }; EARLIER.len()];
        if let Some(row) = self.rows.next_row()?.filter(|row| row.key == name.as_bytes()) {
            for (rank, &column) in ranks.iter_mut().zip(&self.columns) {
                *rank = row.codes[column].map(Value::Int);
            }
        }
        Ok(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::ranks::LINKS_HEADER;
    use crate::published::tests::rows_of;

    struct Site {
        data: tempfile::TempDir,
        folder: FactsFolder,
    }

    impl Site {
        fn new() -> Site {
            let data = tempfile::tempdir().expect("a folder");
            let folder = FactsFolder::new(data.path());
            Site { data, folder }
        }

        fn keep(&self, list: PublishedList, text: &str, day: &str) -> Result<Kept, String> {
            let path = self.data.path().join("gambling.txt");
            fs::write(&path, text).expect("written");
            let files = [ListFile { name: "gambling.txt".to_owned(), path }];
            let kept = self.folder.keep(list, &files, u64::MAX, day.parse().expect("a day"));
            let left = fs::read_dir(&self.folder.0).expect("a folder");
            assert!(left.flatten().all(|it| !it.file_name().as_encoded_bytes().starts_with(b".")));
            kept.map_err(|err| err.to_string())
        }

        fn rows(&self, list: PublishedList) -> Vec<String> {
            let edition = Edition::open(&self.folder.in_use(list)).expect("an edition");
            let rows = rows_of(&edition).into_iter();
            rows.map(|(name, values, _)| format!("{name} {}", values.join(" "))).collect()
        }
    }

    fn ranks(names: &[&str]) -> String {
        let row = |(at, name): (usize, &&str)| format!("{}\t1\t7\t1\tcom.{name}\t2\n", at + 1);
        let rows: String = names.iter().enumerate().map(row).collect();
        format!("{LINKS_HEADER}\n{rows}")
    }

    #[test]
    fn ranks_of_the_three_releases_before_stay_beside_those_of_the_newest() {
        let (site, list) = (Site::new(), PublishedList::Links);
        for (day, names) in [
            ("2026-02-28", &["mesa", "pine"][..]),
            ("2026-03-31", &["pine", "mesa"]),
            ("2026-04-30", &["quill", "mesa"]),
            // The same release again, after its list was corrected.
            ("2026-04-30", &["quill", "pine", "mesa"]),
            ("2026-05-31", &["mesa", "quill"]),
        ] {
            site.keep(list, &ranks(names), day).expect(day);
        }
        assert_eq!(site.rows(list), ["mesa.com 1 7 2 3 2 1", "quill.com 2 7 2 1 - -"]);
        site.keep(list, &ranks(&["mesa", "pine"]), "2026-06-30").expect("newer");
        assert_eq!(site.rows(list), ["mesa.com 1 7 2 1 3 2", "pine.com 2 7 2 - - -"]);
        let why = site.keep(list, &ranks(&["pine"]), "2026-05-31").expect_err("older");
        assert_eq!(why, "the edition is of 2026-05-31, and the one in use is of 2026-06-30");
        assert_eq!(site.rows(list).len(), 2);
    }

    #[test]
    fn an_edition_with_fewer_than_half_of_the_names_waits_until_it_is_accepted() {
        let (site, list, day) = (Site::new(), PublishedList::Hagezi, "2026-11-23");
        let keep = |text: &str| site.keep(list, text, day).expect("kept").held_back_by;
        assert_eq!(keep("a.com\nb.com\nc.com\nd.com\ne.com\n"), None);
        assert_eq!(keep("a.com\nb.com\nz.com\n"), None, "three of five are enough");
        assert_eq!(site.folder.accept(list).expect("read"), None);
        assert_eq!(keep("y.com\n"), Some(3));
        assert_eq!(site.rows(list).len(), 3);
        assert_eq!(site.folder.accept(list).expect("accepted"), Some(1));
        assert_eq!(site.rows(list), ["y.com gambling"]);
        assert_eq!(keep("a.com\nb.com\nc.com\n"), None);
        assert_eq!(keep("y.com\n"), Some(3));
        assert_eq!(keep("a.com\nb.com\nd.com\n"), None);
        assert_eq!(site.folder.accept(list).expect("read"), None, "a whole edition came since");
        assert_eq!(site.rows(list).len(), 3);
    }

    #[test]
    fn a_refused_edition_changes_nothing_and_a_damaged_one_is_replaced() {
        let (site, list, day) = (Site::new(), PublishedList::Hagezi, "2026-11-23");
        site.keep(list, "a.com\nb.com\nc.com\n", day).expect("kept");
        assert!(site.keep(list, "<html>", day).is_err_and(|why| why.contains("web page")));
        assert_eq!(site.rows(list).len(), 3);
        let path = site.folder.in_use(list);
        let mut bytes = fs::read(&path).expect("read");
        bytes[20] ^= 1;
        fs::write(&path, bytes).expect("written");
        fs::create_dir_all(site.folder.0.join(".hagezi/left-over")).expect("created");
        assert_eq!(site.keep(list, "a.com\n", day).expect("kept").held_back_by, None);
        assert_eq!(site.rows(list), ["a.com gambling"]);
    }
}
