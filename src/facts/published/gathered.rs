//! Facts that the server gathers row by row. A folder of each source has the rows that were added since the last merge,
//! which adds them to the edition `SOURCE.ddf` and drops its old rows.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::PublishedError;
use super::columns;
use super::folder::{self, DRAFT, FactsFolder, KeepError};
use super::sorter::Sorter;
use crate::columns::FactColumn;
use crate::store::{
    self, Edition, Licence, SourceMeta, SourceWriter, StoreError, StoredColumn, StoredRow,
};
use crate::value::{self, Reading, RowCurrency, Value};
use crate::vocab::day::Day;
use crate::vocab::fact::KeyKind;
use crate::vocab::name::DomainName;
use crate::vocab::named::named_enum;
use crate::vocab::new_file;
use crate::vocab::ns_class::NsClass;
use crate::vocab::whole_file;

/// Number of days for which a row is kept: dropped names are remembered for as long.
const KEPT_DAYS: i32 = 400;
/// Maximum number of columns of a source.
const COLUMNS_MAX: usize = 5;

named_enum! {
    /// A source whose rows the server gathers, by its name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Gathered {
        /// The class of the name servers that a name had when it left its zone.
        Zone = "zone",
        /// Captures of a name in a web archive.
        Archive = "archive",
        /// The registration of a name, as its registry last described it.
        Life = "life",
    }
}

/// The facts of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatheredRow {
    pub name: DomainName,
    pub as_of: Day,
    /// One for each column.
    pub values: Vec<Option<Value>>,
}

impl Gathered {
    /// Returns the folder of rows that were not merged. Other nodes and backups have those of lists, which are not
    /// ingested again, but not those of the last minute.
    const fn folder(self) -> &'static str {
        match self {
            Gathered::Zone => "exits",
            Gathered::Archive => ".archive-rows",
            Gathered::Life => ".life-rows",
        }
    }

    /// Columns of its facts, in the notation of headers. Only append: editions name columns by position.
    const fn notation(self) -> &'static [&'static str] {
        match self {
            Gathered::Zone => &["zone.ns_class:enum"],
            Gathered::Archive => &[
                "archive.first:year:less",
                "archive.last:year",
                "archive.days:int",
                "archive.redirects:int:percent",
                "archive.gap:int:years",
            ],
            Gathered::Life => &["life.registered:date:less"],
        }
    }

    /// Returns its title, licence and attribution.
    const fn rights(self) -> (&'static str, Licence, Option<&'static str>) {
        match self {
            Gathered::Zone => ("Name servers at exit", Licence::Own, None),
            Gathered::Archive => {
                ("Web archive", Licence::Open, Some("Captures: Internet Archive, Wayback Machine"))
            }
            Gathered::Life => ("Registration", Licence::Own, None),
        }
    }

    /// Returns the line that the licence asks to be shown beside values.
    pub const fn attribution(self) -> Option<&'static str> {
        self.rights().2
    }

    fn columns(self) -> Vec<FactColumn> {
        columns(self.notation())
    }

    fn meta(self, as_of: Day) -> SourceMeta {
        let (title, licence, attribution) = self.rights();
        let words = match self {
            Gathered::Zone => NsClass::NAMES.map(str::to_owned).to_vec(),
            Gathered::Archive | Gathered::Life => Vec::new(),
        };
        SourceMeta {
            id: self.as_str().to_owned(),
            title: title.to_owned(),
            key: KeyKind::Domain,
            as_of,
            licence,
            attribution: attribution.map(str::to_owned),
            columns: self.columns().iter().map(|it| folder::stored(it, &words)).collect(),
        }
    }
}

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
        Ok(self.add_text(Gathered::Zone, list.file_name().unwrap_or_default(), &rows)?)
    }

    /// Keeps rows in the file `file`, which they replace, until they are merged.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn add_rows(&self, source: Gathered, file: &str, rows: &[GatheredRow]) -> io::Result<()> {
        let text: String = rows.iter().map(GatheredRow::line).collect();
        self.add_text(source, file.as_ref(), &text)
    }

    fn add_text(&self, source: Gathered, file: &OsStr, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let folder = self.path().join(source.folder());
        new_file::create_folder(&folder)?;
        // Backups link to files, so that rows are never appended to one.
        whole_file::replace(&folder.join(file), text.as_bytes())
    }

    /// Merges the rows that were added into the edition in use, and drops its old rows. Returns its number of names;
    /// `None` if no rows were added.
    ///
    /// # Errors
    /// A file cannot be read or written. The edition in use stays, and so do the rows.
    pub fn merge_gathered(&self, source: Gathered, today: Day) -> Result<Option<u64>, KeepError> {
        let entries = fs::read_dir(self.path().join(source.folder())).into_iter().flatten();
        let lists: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        if lists.is_empty() {
            return Ok(None);
        }
        let merge = |scratch: &Path| self.merge(source, &lists, today, scratch);
        let names = self.in_scratch(&format!(".{source}"), merge)?;
        for list in lists {
            fs::remove_file(list).map_err(StoreError::Io)?;
        }
        Ok(Some(names))
    }

    fn merge(
        &self,
        source: Gathered,
        lists: &[PathBuf],
        today: Day,
        scratch: &Path,
    ) -> Result<u64, KeepError> {
        let (columns, mut stored) = (source.columns(), source.meta(today).columns);
        let mut sorter = Sorter::new(scratch).map_err(PublishedError::Scratch)?;
        for list in lists {
            let rows = BufReader::new(File::open(list).map_err(StoreError::Io)?).lines();
            for row in rows {
                // A name may have become a public suffix, and a value may be of a newer version.
                let row = row.map_err(StoreError::Io)?;
                let row = GatheredRow::parse(&row, &columns);
                let Some((name, numbers)) = row.and_then(|row| row.numbers(&mut stored)) else {
                    continue;
                };
                sorter.push(&name, numbers).map_err(PublishedError::Scratch)?;
            }
        }
        let mut new = sorter.finish().map_err(PublishedError::Scratch)?;
        let edition = self.edition(source.as_str());
        let before = edition.exists().then(|| Edition::open(&edition)).transpose()?;
        let mut old = before.as_ref().map(|before| before.rows_from(b"")).transpose()?;
        let of_old = |row: &StoredRow| before.as_ref().map_or(Vec::new(), |it| it.values(row));
        let mut rows = Rows::create(&scratch.join(DRAFT), source, today)?;
        let mut next_old = next(&mut old)?;
        while let Some((name, numbers)) = new.next_row().map_err(PublishedError::Scratch)? {
            let mut newest = (Some(day_of(numbers)), values(numbers, &stored));
            while let Some(row) = next_old.take_if(|row| *row.key <= *name.as_bytes()) {
                if *row.key != *name.as_bytes() {
                    rows.push(&String::from_utf8_lossy(&row.key), row.as_of, &of_old(&row))?;
                } else if row.as_of > newest.0 {
                    newest = (row.as_of, of_old(&row));
                }
                next_old = next(&mut old)?;
            }
            rows.push(name, newest.0, &newest.1)?;
        }
        while let Some(row) = next_old {
            rows.push(&String::from_utf8_lossy(&row.key), row.as_of, &of_old(&row))?;
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

/// A day and the values of columns, as they are sorted: of several rows of a name, the newest sorts first, and counts.
type Numbers = [u32; 1 + COLUMNS_MAX];

fn day_of(numbers: Numbers) -> Day {
    Day::from_raw(u16::MAX - numbers[0] as u16).unwrap_or(Day::MIN)
}

fn values(numbers: Numbers, stored: &[StoredColumn]) -> Vec<Option<Value>> {
    let value = |(column, number): (&StoredColumn, &u32)| {
        let number = number.checked_sub(1)?;
        column.value(i64::from(number >> 1), number & 1 == 1)
    };
    stored.iter().zip(&numbers[1..]).map(value).collect()
}

impl GatheredRow {
    /// Returns the row as a line of a file of rows.
    fn line(&self) -> String {
        let cell = |value: &Option<Value>| match value {
            None => String::new(),
            Some(Value::AtLeast { low }) => format!("{low}+"),
            Some(value) => value.to_string(),
        };
        let cells: Vec<String> = self.values.iter().map(cell).collect();
        format!("{},{},{}\n", self.name, self.as_of, cells.join(","))
    }

    fn parse(line: &str, columns: &[FactColumn]) -> Option<GatheredRow> {
        let mut cells = line.split(',');
        let name = DomainName::parse(cells.next()?).ok()?;
        let as_of = cells.next()?.parse().ok()?;
        let value = |column: &FactColumn| {
            value::read(cells.next()?, column, Reading::default(), RowCurrency::None).ok()
        };
        let values = columns.iter().map(value).collect::<Option<Vec<_>>>()?;
        Some(GatheredRow { name, as_of, values })
    }

    /// Returns the name and the numbers by which the row is sorted; `None` if a value is not one of its column.
    fn numbers(self, stored: &mut [StoredColumn]) -> Option<(DomainName, Numbers)> {
        let mut numbers = Numbers::default();
        numbers[0] = u32::from(u16::MAX - self.as_of.raw());
        for ((number, column), value) in numbers[1..].iter_mut().zip(stored).zip(&self.values) {
            let Some(value) = value else { continue };
            if let Value::Enum(word) = value
                && !column.words.contains(word)
            {
                return None;
            }
            let (code, at_least) = column.code(value)?;
            *number = (u32::try_from(code).ok()? << 1 | u32::from(at_least)) + 1;
        }
        Some((self.name, numbers))
    }
}

/// Writes the rows of an edition that are not old.
struct Rows {
    writer: SourceWriter<File>,
    names: u64,
    today: Day,
}

impl Rows {
    fn create(path: &Path, source: Gathered, today: Day) -> Result<Rows, StoreError> {
        let writer = SourceWriter::new(new_file::create(path)?, source.meta(today))?;
        Ok(Rows { writer, names: 0, today })
    }

    fn push(
        &mut self,
        name: &str,
        as_of: Option<Day>,
        values: &[Option<Value>],
    ) -> Result<(), StoreError> {
        let is_old = as_of.is_none_or(|day| self.today.days_since(day) > KEPT_DAYS);
        if is_old || values.iter().all(Option::is_none) {
            return Ok(());
        }
        self.names += 1;
        self.writer.push(name, as_of, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

        fn add(&self, name: &str, text: &str) {
            let path = self.data.path().join(name);
            fs::write(&path, text).expect("written");
            self.folder.add_exits(&path, "ns_class").expect("added");
        }

        /// Merges on a day. Returns all rows.
        fn merged(&self, on: &str) -> Vec<String> {
            self.merged_of(Gathered::Zone, on)
        }

        fn merged_of(&self, source: Gathered, on: &str) -> Vec<String> {
            let names = self.folder.merge_gathered(source, on.parse().expect("a day"));
            let names = names.expect("merged");
            let edition = Edition::open(&self.folder.edition(source.as_str())).expect("opened");
            assert!(names.is_none_or(|names| names == edition.rows()));
            let rows = rows_of(&edition).into_iter();
            rows.map(|(name, values, day)| format!("{name} {} {day}", values.join(" "))).collect()
        }
    }

    const HEADER: &str = "domain,drop_date,status,registered_again,ns_class\n";

    #[test]
    fn the_newest_exit_of_a_name_counts_for_400_days() {
        let site = Site::new();
        assert_eq!(
            site.folder.merge_gathered(Gathered::Zone, Day::MIN).expect("nothing to do"),
            None
        );
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
        assert_eq!(
            site.folder.merge_gathered(Gathered::Zone, Day::MIN).expect("merged before"),
            None
        );

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
    fn rows_of_every_type_come_back_and_the_newest_of_a_name_counts() {
        let (site, source) = (Site::new(), Gathered::Archive);
        let row = |name: &str, day: &str, first: Option<u16>, days: Value| GatheredRow {
            name: DomainName::parse(name).expect("a name"),
            as_of: day.parse().expect("a day"),
            values: vec![first.map(Value::Year), None, Some(days), None, Some(Value::Int(0))],
        };
        let add = |file: &str, rows: &[GatheredRow]| {
            site.folder.add_rows(source, file, rows).expect("added");
        };
        add(
            "1",
            &[
                row("a.com", "2026-01-02", Some(1998), Value::AtLeast { low: 2000 }),
                row("b.com", "2026-01-02", None, Value::Int(0)),
            ],
        );
        add("2", &[row("b.com", "2026-01-03", Some(2001), Value::Int(7))]);
        add("3", &[]);
        let first = ["a.com 1998 - 2000 or more - 0 2026-01-02", "b.com 2001 - 7 - 0 2026-01-03"];
        assert_eq!(site.merged_of(source, "2026-01-03"), first);
        add("1", &[row("b.com", "2026-01-01", None, Value::Int(1))]);
        assert_eq!(site.merged_of(source, "2026-01-03"), first, "an older row");
        for source in Gathered::ALL {
            let names = source.columns().into_iter().map(|it| it.name);
            assert!(names.into_iter().all(|name| name.source() == source.as_str()), "{source}");
            assert!(source.columns().len() <= COLUMNS_MAX, "{source}");
        }
    }

    #[test]
    fn a_damaged_edition_is_reported_and_the_lists_wait() {
        let site = Site::new();
        site.add("com-3.csv", &format!("{HEADER}b.com,2026-01-02,,false,parked\n"));
        fs::write(site.folder.edition("zone"), "DDXFACTS").expect("written");
        let today = "2026-01-05".parse().expect("a day");
        assert!(site.folder.merge_gathered(Gathered::Zone, today).is_err());
        fs::remove_file(site.folder.edition("zone")).expect("removed");
        assert_eq!(site.merged("2026-01-05"), ["b.com parked 2026-01-02"]);
    }
}
