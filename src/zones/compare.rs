//! Compares two days of a zone in one pass over sorted files, so that memory does not grow with the
//! zone.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::ZoneError;
use super::names::{NamesReader, NamesWriter};
use crate::vocab::day::Day;
use crate::vocab::file_error::AtPath;
use crate::vocab::name::DomainName;
use crate::vocab::new_file;
use crate::vocab::ns_class::NsClass;
use crate::vocab::outcome::{GAP_DAYS_MAX, Horizon};
use crate::vocab::stage::Periods;

/// Number of consecutive zone files without a name after which it counts as dropped.
const ABSENT_FILES: u8 = 3;
/// The same number for a registry's lists of all its names, in which only deleted names are
/// missing.
const ABSENT_LISTS: u8 = 2;
/// Days until a name that left with unusually many others counts as dropped.
const ABSENT_DAYS_MASS: i32 = 14;
/// Number of days after its release for which a dropped name is remembered, so that its return is
/// reported: the longest horizon of outcomes, and a gap.
const REMEMBERED_DAYS: i32 = Horizon::Year.days() + GAP_DAYS_MAX;
/// Column of a zone's lists with the class of the name servers that a dropped name had. `feeds` does not read it.
pub const NS_CLASS: &str = "ns_class";
/// Bytes of a [`Missing`] in its file.
pub const MISSING_BYTES: usize = 6;

/// State of a name that is missing from the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Missing {
    /// The day of the first zone file without the name.
    since: Day,
    /// Number of zone files without the name, up to 255.
    files: u8,
    /// Whether the name left on a day with unusually many others.
    with_many: bool,
    /// Whether the name was listed as dropped.
    is_listed: bool,
    /// Class of the name servers that it had in the last file with it.
    class: Option<NsClass>,
}

impl Missing {
    fn from_bytes(bytes: [u8; MISSING_BYTES]) -> Option<Missing> {
        let [low, high, files, with_many, is_listed, class] = bytes;
        Some(Missing {
            since: Day::from_raw(u16::from_le_bytes([low, high]))?,
            files,
            with_many: with_many == 1,
            is_listed: is_listed == 1,
            // Files of older versions have 0 here.
            class: NsClass::from_number(class),
        })
    }

    fn bytes(self) -> [u8; MISSING_BYTES] {
        let [low, high] = self.since.raw().to_le_bytes();
        let class = NsClass::number(self.class);
        [low, high, self.files, self.with_many.into(), self.is_listed.into(), class]
    }

    /// Returns the state after one more file without the name.
    fn once_more(known: Option<Missing>, on: &OnDay<'_>, class: Option<NsClass>) -> Missing {
        let (with_many, is_listed) = (on.is_mass, false);
        match known {
            Some(known) => Missing { files: known.files.saturating_add(1), ..known },
            None => Missing { since: on.day, files: 1, with_many, is_listed, class },
        }
    }

    fn has_dropped(&self, day: Day, kind: ZoneSource) -> bool {
        match kind {
            _ if self.with_many => day.days_since(self.since) >= ABSENT_DAYS_MASS,
            ZoneSource::Zone => self.files >= ABSENT_FILES,
            ZoneSource::Registry => self.files >= ABSENT_LISTS,
        }
    }
}

/// Kind of the files of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSource {
    /// Zone files, in which a name may be missing for many reasons.
    Zone,
    /// A registry's lists of all its names, in which a missing name was deleted and is available.
    Registry,
}

impl ZoneSource {
    /// Returns the day from which a name that dropped on `day` can be registered.
    fn free_on(self, day: Day, periods: &Periods) -> Day {
        match self {
            ZoneSource::Zone => periods.effective_release(day, None),
            ZoneSource::Registry => day,
        }
    }
}

/// Selects the names of a zone that enter lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Only dropped names.
    #[default]
    Drops,
    /// Existing names enter lists too: they count as other TLDs of a label, and a search finds
    /// them.
    All,
}

/// Differences between two days of a zone, as numbers of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Names that left the zone.
    pub left: u64,
    /// Names that appeared in the zone.
    pub came: u64,
}

/// Counts of names that the comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparisonCounts {
    pub changes: Changes,
    /// Names listed as dropped.
    pub dropped: u64,
    /// Number of names listed as dropped that returned before the registry could have released
    /// them.
    pub restored: u64,
    /// Names listed as dropped that returned after their release.
    pub registered_again: u64,
    /// Missing names that are not listed yet.
    pub waiting: u64,
}

/// The files of a comparison.
pub struct Paths<'a> {
    pub before: &'a Path,
    pub now: &'a Path,
    pub missing_before: &'a Path,
    pub missing_now: &'a Path,
}

/// The day of a comparison, and its circumstances.
pub struct OnDay<'a> {
    pub apex: &'a str,
    pub day: Day,
    /// Whether unusually many names left or appeared.
    pub is_mass: bool,
    pub kind: ZoneSource,
    pub keep: Keep,
    /// Whether to list all names, because existing ones are not listed yet.
    pub lists_all: bool,
}

/// Counts the names that left and appeared.
///
/// # Errors
/// A file cannot be read.
pub fn changes(before: &Path, now: &Path) -> Result<Changes, ZoneError> {
    let (mut before, mut now) = (NamesReader::<1>::open(before)?, NamesReader::<1>::open(now)?);
    let mut changes = Changes::default();
    loop {
        let order = match (before.name(), now.name()) {
            (None, None) => return Ok(changes),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((one, _)), Some((other, _))) => one.cmp(other),
        };
        if order.is_le() {
            before.next()?;
            changes.left += u64::from(order.is_lt());
        }
        if order.is_ge() {
            now.next()?;
            changes.came += u64::from(order.is_gt());
        }
    }
}

/// The files of a comparison, read together.
struct Merged {
    before: NamesReader<1>,
    now: NamesReader<1>,
    missing: NamesReader<MISSING_BYTES>,
}

/// The files that have a name.
struct Presence {
    /// Whether the zone had the name before, and then the class of its name servers.
    was: Option<Option<NsClass>>,
    /// Whether the zone has the name now.
    is: bool,
    /// The state of the name after the previous comparison, if the name was in its file of missing names.
    known: Option<Missing>,
}

impl Merged {
    /// Reads the next name into `owner`; `None` after the last one.
    fn next(&mut self, owner: &mut Vec<u8>) -> Result<Option<Presence>, ZoneError> {
        let (was, is) = (self.before.name(), self.now.name());
        let names = [was.map(|it| it.0), is.map(|it| it.0), self.missing.name().map(|it| it.0)];
        let Some(least) = names.into_iter().flatten().min() else { return Ok(None) };
        owner.clear();
        owner.extend_from_slice(least);
        let was = self.before.next_if(owner)?.map(|[class]| NsClass::from_number(class));
        let is = self.now.next_if(owner)?.is_some();
        let missing = self.missing.next_if(owner)?;
        let known = missing.and_then(Missing::from_bytes);
        if missing.is_some() && known.is_none() {
            return Err(self.missing.damaged("a day"));
        }
        Ok(Some(Presence { was, is, known }))
    }
}

/// Writes the currently missing names, and adds dropped and returned names to `list`.
///
/// # Errors
/// A file cannot be read or written.
pub fn apply(
    paths: &Paths<'_>,
    on: &OnDay<'_>,
    list: &mut DropList,
) -> Result<ComparisonCounts, ZoneError> {
    let mut names = Merged {
        before: NamesReader::open(paths.before)?,
        now: NamesReader::open(paths.now)?,
        missing: NamesReader::open(paths.missing_before)?,
    };
    let mut still_missing = NamesWriter::create(paths.missing_now)?;
    let (mut found, mut owner) = (ComparisonCounts::default(), Vec::new());
    let periods = Periods::for_tld(on.apex);
    while let Some(Presence { was, is, known }) = names.next(&mut owner)? {
        let class = was.flatten();
        let was = was.is_some();
        found.changes.left += u64::from(was && !is);
        found.changes.came += u64::from(is && !was);
        let is_news = if on.lists_all {
            known.is_none_or(|it| !it.is_listed)
        } else {
            !was && known.is_none()
        };
        if is && is_news && on.keep == Keep::All {
            list.exists(&owner)?;
        }
        if !is {
            let mut missing = Missing::once_more(known, on, class);
            if !missing.is_listed && missing.has_dropped(on.day, on.kind) {
                list.dropped(&owner, missing.since, missing.class)?;
                found.dropped += 1;
                missing.is_listed = true;
            }
            found.waiting += u64::from(!missing.is_listed);
            let free_on = on.kind.free_on(missing.since, &periods);
            if !missing.is_listed || on.day.days_since(free_on) <= REMEMBERED_DAYS {
                still_missing.push(&owner, missing.bytes())?;
            }
        } else if let Some(dropped) = known.filter(|it| it.is_listed) {
            list.came_back(&owner, dropped.since)?;
            if on.day < on.kind.free_on(dropped.since, &periods) {
                found.restored += 1;
            } else {
                found.registered_again += 1;
            }
        }
    }
    still_missing.finish()?;
    Ok(found)
}

/// Writes an empty file of missing names.
///
/// # Errors
/// A write fails.
pub fn nothing_missing(path: &Path) -> Result<(), ZoneError> {
    NamesWriter::<MISSING_BYTES>::create(path)?.finish()?;
    Ok(())
}

/// Lists all names of a file.
///
/// # Errors
/// A file cannot be read or written.
pub fn list_all(names: &Path, list: &mut DropList) -> Result<(), ZoneError> {
    let mut names = NamesReader::<1>::open(names)?;
    while let Some((owner, _)) = names.name() {
        list.exists(owner)?;
        names.next()?;
    }
    Ok(())
}

/// Writer of a list in dropdex's own format (`data/docs/sources.md`).
pub struct DropList {
    file: csv::Writer<std::fs::File>,
    path: std::path::PathBuf,
    apex: String,
    kind: ZoneSource,
    rows: u64,
}

impl DropList {
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, apex: &str, kind: ZoneSource) -> Result<DropList, ZoneError> {
        let file = csv::Writer::from_writer(new_file::create(path).at(path)?);
        let (path, apex) = (path.to_owned(), apex.to_owned());
        let mut list = DropList { file, path, apex, kind, rows: 0 };
        let last = match kind {
            ZoneSource::Zone => NS_CLASS,
            ZoneSource::Registry => "release_date",
        };
        list.record(["domain", "drop_date", "status", "registered_again", last])?;
        Ok(list)
    }

    fn record(&mut self, fields: [&str; 5]) -> Result<(), ZoneError> {
        let written = self.file.write_record(fields);
        Ok(written.map_err(std::io::Error::from).at(&self.path)?)
    }

    fn dropped(&mut self, owner: &[u8], on: Day, class: Option<NsClass>) -> Result<(), ZoneError> {
        self.row(owner, [&on.to_string(), "", "false"], class)
    }

    fn came_back(&mut self, owner: &[u8], dropped: Day) -> Result<(), ZoneError> {
        self.row(owner, [&dropped.to_string(), "", "true"], None)
    }

    fn exists(&mut self, owner: &[u8]) -> Result<(), ZoneError> {
        self.row(owner, ["", "registered", "false"], None)
    }

    /// Adds a row if the name is registrable. Deeper delegations and public suffixes are skipped.
    fn row(
        &mut self,
        owner: &[u8],
        rest: [&str; 3],
        class: Option<NsClass>,
    ) -> Result<(), ZoneError> {
        let name = format!("{}{}", String::from_utf8_lossy(owner), self.apex);
        let Ok(name) = DomainName::parse(&name) else { return Ok(()) };
        self.rows += 1;
        let [date, status, again] = rest;
        let last = match self.kind {
            ZoneSource::Zone => class.map_or("", NsClass::as_str),
            // A name deleted by its registry is available.
            ZoneSource::Registry => date,
        };
        self.record([name.as_str(), date, status, again, last])
    }

    /// Syncs the file. Returns the number of rows.
    ///
    /// # Errors
    /// A write fails.
    pub fn finish(mut self) -> Result<u64, ZoneError> {
        self.file.flush().at(&self.path)?;
        self.file.get_ref().sync_all().at(&self.path)?;
        Ok(self.rows)
    }
}
