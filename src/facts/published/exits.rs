//! Facts about names that left a zone: the class of the name servers that they had. `exits/` of the folder has rows of
//! the lists that were ingested since the last index; before the next one is built, they are merged into `zone.ddf`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::PublishedError;
use super::folder::{DRAFT, FactsFolder, KeepError};
use super::sorter::Sorter;
use crate::store::{
    self, Edition, Licence, SourceMeta, SourceWriter, StoreError, StoredColumn, StoredRow,
};
use crate::value::Value;
use crate::vocab::day::Day;
use crate::vocab::fact::{FactType, KeyKind};
use crate::vocab::name::DomainName;
use crate::vocab::new_file;
use crate::vocab::ns_class::NsClass;
use crate::vocab::whole_file;

const FOLDER: &str = "exits";
const SOURCE: &str = "zone";
const SCRATCH: &str = ".zone";
/// Number of days for which the class of a name is kept: dropped names are remembered for as long.
const KEPT_DAYS: i32 = 400;

impl FactsFolder {
    /// Keeps the classes in a list of names that left a zone, if it has the column `class_column`. A list that is
    /// added again replaces itself.
    ///
    /// # Errors
    /// The list cannot be read, or the folder cannot be written.
    pub fn add_exits(&self, list: &Path, class_column: &str) -> Result<(), StoreError> {
        let mut reader = csv::Reader::from_path(list).map_err(io::Error::from)?;
        let header = reader.headers().map_err(io::Error::from)?.clone();
        let column = |name: &str| header.iter().position(|cell| cell == name);
        let columns = [column("domain"), column("drop_date"), column(class_column)];
        let [Some(name), Some(day), Some(class)] = columns else { return Ok(()) };
        let mut rows = String::new();
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(io::Error::from)? {
            if !record[class].is_empty() {
                rows.extend([&record[name], ",", &record[day], ",", &record[class], "\n"]);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let folder = self.path().join(FOLDER);
        new_file::create_folder(&folder)?;
        let path = folder.join(list.file_name().unwrap_or_default());
        Ok(whole_file::replace(&path, rows.as_bytes())?)
    }

    /// Merges the lists that were added into the edition in use, and drops its old rows. Returns its number of names;
    /// `None` if no list was added.
    ///
    /// # Errors
    /// A file cannot be read or written. The edition in use stays, and so do the lists.
    pub fn merge_exits(&self, today: Day) -> Result<Option<u64>, KeepError> {
        let entries = fs::read_dir(self.path().join(FOLDER)).into_iter().flatten().flatten();
        let lists: Vec<_> = entries.map(|entry| entry.path()).collect();
        if lists.is_empty() {
            return Ok(None);
        }
        let names = self.in_scratch(SCRATCH, |scratch| self.merge(&lists, today, scratch))?;
        for list in lists {
            fs::remove_file(list).map_err(StoreError::Io)?;
        }
        Ok(Some(names))
    }

    fn merge(
        &self,
        lists: &[impl AsRef<Path>],
        today: Day,
        scratch: &Path,
    ) -> Result<u64, KeepError> {
        let mut sorter = Sorter::new(scratch).map_err(PublishedError::Scratch)?;
        for list in lists {
            let rows = BufReader::new(File::open(list).map_err(StoreError::Io)?).lines();
            for row in rows {
                // A name may have become a public suffix, and a class may be of a newer version.
                let row = row.map_err(StoreError::Io)?;
                let Some((name, day, class)) = parse(&row) else { continue };
                // Of several exits of a name, the newest sorts first, and counts.
                let numbers = [u32::from(u16::MAX - day.raw()), class as u32, 0];
                sorter.push(&name, numbers).map_err(PublishedError::Scratch)?;
            }
        }
        let mut new = sorter.finish().map_err(PublishedError::Scratch)?;
        let edition = self.edition(SOURCE);
        let before = edition.exists().then(|| Edition::open(&edition)).transpose()?;
        let mut old = before.as_ref().map(|before| before.rows_from(b"")).transpose()?;
        let mut rows = Rows::create(&scratch.join(DRAFT), today)?;
        let mut next_old = next(&mut old)?;
        while let Some((name, [day, class, _])) = new.next_row().map_err(PublishedError::Scratch)? {
            let day = Day::from_raw(u16::MAX - day as u16).unwrap_or(Day::MIN);
            let mut newest = (Some(day), class);
            while let Some(row) = next_old.take_if(|row| *row.key <= *name.as_bytes()) {
                let class = row.codes[0].unwrap_or_default() as u32;
                if *row.key != *name.as_bytes() {
                    rows.push(&String::from_utf8_lossy(&row.key), row.as_of, class)?;
                } else if row.as_of > newest.0 {
                    newest = (row.as_of, class);
                }
                next_old = next(&mut old)?;
            }
            rows.push(name, newest.0, newest.1)?;
        }
        while let Some(row) = next_old {
            let class = row.codes[0].unwrap_or_default() as u32;
            rows.push(&String::from_utf8_lossy(&row.key), row.as_of, class)?;
            next_old = next(&mut old)?;
        }
        let names = rows.names;
        rows.writer.finish()?.sync_all().map_err(StoreError::Io)?;
        fs::rename(scratch.join(DRAFT), edition).map_err(StoreError::Io)?;
        self.sync().map_err(StoreError::Io)?;
        Ok(names)
    }
}

fn next(rows: &mut Option<store::Rows<'_>>) -> Result<Option<StoredRow>, StoreError> {
    rows.as_mut().map_or(Ok(None), |rows| Ok(rows.next_row()?.cloned()))
}

/// Parses a row of a list that was added.
fn parse(row: &str) -> Option<(DomainName, Day, NsClass)> {
    let (name, rest) = row.split_once(',')?;
    let (day, class) = rest.split_once(',')?;
    Some((DomainName::parse(name).ok()?, day.parse().ok()?, class.parse().ok()?))
}

/// Writes the rows of an edition that are not old.
struct Rows {
    writer: SourceWriter<File>,
    names: u64,
    today: Day,
}

impl Rows {
    fn create(path: &Path, today: Day) -> Result<Rows, StoreError> {
        let words = NsClass::NAMES.map(str::to_owned).to_vec();
        let meta = SourceMeta {
            id: SOURCE.to_owned(),
            title: "Name servers at exit".to_owned(),
            key: KeyKind::Domain,
            as_of: today,
            licence: Licence::Own,
            attribution: None,
            columns: vec![StoredColumn { words, ..StoredColumn::new("ns_class", FactType::Enum) }],
        };
        let writer = SourceWriter::new(new_file::create(path)?, meta)?;
        Ok(Rows { writer, names: 0, today })
    }

    fn push(&mut self, name: &str, as_of: Option<Day>, class: u32) -> Result<(), StoreError> {
        let is_old = as_of.is_none_or(|day| self.today.days_since(day) > KEPT_DAYS);
        let Some(word) = NsClass::NAMES.get(class as usize).filter(|_| !is_old) else {
            return Ok(());
        };
        self.names += 1;
        self.writer.push(name, as_of, &[Some(Value::Enum((*word).to_owned()))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

        fn add(&self, name: &str, text: &str) {
            let path = self.data.path().join(name);
            fs::write(&path, text).expect("written");
            self.folder.add_exits(&path, "ns_class").expect("added");
        }

        /// Merges on a day. Returns all rows.
        fn merged(&self, on: &str) -> Vec<String> {
            let names = self.folder.merge_exits(on.parse().expect("a day")).expect("merged");
            let edition = Edition::open(&self.folder.edition(SOURCE)).expect("an edition");
            assert!(names.is_none_or(|names| names == edition.rows()));
            let (mut rows, mut all) = (edition.rows_from(b"").expect("rows"), Vec::new());
            while let Some(row) = rows.next_row().expect("a row") {
                let (name, day) = (String::from_utf8_lossy(&row.key), edition.as_of(row));
                let value = edition.values(row).remove(0).expect("known");
                all.push(format!("{name} {value} {day}"));
            }
            all
        }
    }

    const HEADER: &str = "domain,drop_date,status,registered_again,ns_class\n";

    #[test]
    fn the_newest_exit_of_a_name_counts_for_400_days() {
        let site = Site::new();
        assert_eq!(site.folder.merge_exits(Day::MIN).expect("nothing to do"), None);
        site.add(
            "com-3.csv",
            &format!(
                "{HEADER}b.com,2026-01-02,,false,parked\nc.com,2026-01-02,,true,\n\
                 d.com,2026-01-02,,false,for-sale\n"
            ),
        );
        site.add("net-9.csv", &format!("{HEADER}a.net,2026-01-03,,false,hosted\n"));
        // Lists of a registry, and of names without a class.
        site.add("sk-1.csv", "domain,drop_date,status,registered_again,release_date\na.sk,,,,\n");
        site.add("org-1.csv", &format!("{HEADER}a.org,2026-01-03,,false,\n"));
        let first =
            ["a.net hosted 2026-01-03", "b.com parked 2026-01-02", "d.com for-sale 2026-01-02"];
        assert_eq!(site.merged("2026-01-05"), first);
        assert_eq!(site.folder.merge_exits(Day::MIN).expect("merged before"), None);

        // A list may be ingested twice, and an older one may come late.
        site.add("com-3.csv", &format!("{HEADER}b.com,2026-01-02,,false,parked\n"));
        site.add(
            "com-4.csv",
            &format!(
                "{HEADER}a.com,2026-02-01,,false,expired\nb.com,2026-03-01,,false,brand-keeper\n\
                 d.com,2025-12-01,,false,hosted\nzz.com,2026-03-01,,false,of-a-newer-version\n\
                 com,2026-03-01,,false,parked\n"
            ),
        );
        let second = [
            "a.com expired 2026-02-01",
            "a.net hosted 2026-01-03",
            "b.com brand-keeper 2026-03-01",
            "d.com for-sale 2026-01-02",
        ];
        assert_eq!(site.merged("2026-03-02"), second);
        site.add("com-5.csv", &format!("{HEADER}e.com,2027-02-06,,false,parked\n"));
        let third = [
            "a.com expired 2026-02-01",
            "a.net hosted 2026-01-03",
            "b.com brand-keeper 2026-03-01",
            "e.com parked 2027-02-06",
        ];
        assert_eq!(site.merged("2027-02-07"), third, "400 days after 3 January");
    }

    #[test]
    fn a_damaged_edition_is_reported_and_the_lists_wait() {
        let site = Site::new();
        site.add("com-3.csv", &format!("{HEADER}b.com,2026-01-02,,false,parked\n"));
        fs::write(site.folder.edition(SOURCE), "DDXFACTS").expect("written");
        let today = "2026-01-05".parse().expect("a day");
        assert!(site.folder.merge_exits(today).is_err());
        fs::remove_file(site.folder.edition(SOURCE)).expect("removed");
        assert_eq!(site.merged("2026-01-05"), ["b.com parked 2026-01-02"]);
    }
}
