//! Readers of the lists that registries and vendors publish. [`Feed`] turns a list into [`Row`]s:
//! observations of names, or rejects with line and reason.
//!
//! Readers stream their input, so memory does not grow with the size of the file. Readers write
//! nothing and do not know the corpus.
//!
//! A list passes through `container` (unpacks to UTF-8 within bounds), `sniff` (recognises the format)
//! and the module of its format; `lines` splits text into rows for all formats except JSON.
//! [`Feed::open_zone`] reads one file of a zone pair; [`each_row`] returns other cells of a list.

mod cells;
mod columns;
mod container;
mod dates;
mod delimited;
mod error;
mod file_name;
mod format;
mod head;
mod history;
mod json;
mod lines;
mod names;
mod native;
mod pairs;
mod ranked;
mod reading;
mod registry;
mod rejects;
mod sniff;
mod stamped;
mod zone;

use dropdex_vocab as vocab;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

pub use self::cells::{ColumnNames, NamedCells, each_row};
pub use self::container::ends_within_a_line;
pub use self::error::{AGAIN, FeedError, FeedProblem};
pub use self::format::{Format, FormatError};
pub use self::ranked::RankedName;
pub use self::rejects::{REJECT_TEXT_CHARS_MAX, Reject, RejectReason};
pub use self::zone::{RecordKind, ZoneRecords, zone_day};

use self::container::{HEAD_BYTES, Input};
use self::file_name::FileNames;
use self::head::Head;
use self::lines::LineRows;
use self::reading::{Given, Reading};
use self::sniff::{ListShape, Sniffed};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::vocab::popularity::{ListEdition, ListId, PopularityList};
use crate::vocab::release_time::{Release, ReleaseRules};

/// A statement of a list about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub name: DomainName,
    pub sighting: Sighting,
    /// The day the name was first seen registered, if the list gives it.
    pub first_seen: Option<Day>,
    /// Time of the observation: the time in the row or, without one, the time of the list.
    pub observed_at: DateTime<Utc>,
}

/// Statement of a list about a name (`data/docs/sources.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// The name left its zone on `date`; the registry releases it on `release`, if the list gives it.
    Dropped { date: Day, release: Option<Release>, registered_again: bool },
    /// The registry released the name on `on`, before the list was observed. The day on which the
    /// name left its zone is estimated from the lifecycle of the TLD, unless another list gives it.
    Released { on: Release },
    /// The name was newly registered on `on`, which undoes a drop on or before that day.
    Registered { on: Day },
    /// The name exists, without a drop. `registered` if the list states that it is currently
    /// registered.
    Known { registered: bool },
}

impl Sighting {
    /// Returns the statement for a name of a suffix: its second of release counts only if the registry
    /// states seconds.
    fn about(self, suffix: &str) -> Sighting {
        let stated = |release: Release| match release.second() {
            Some(_) => ReleaseRules::compiled().of(suffix).stated(release),
            None => release,
        };
        match self {
            Sighting::Dropped { date, release, registered_again } => {
                Sighting::Dropped { date, release: release.map(stated), registered_again }
            }
            Sighting::Released { on } => Sighting::Released { on: stated(on) },
            Sighting::Registered { .. } | Sighting::Known { .. } => self,
        }
    }
}

/// A row of a list. Comments, blank lines and headings are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row<T = Observation> {
    Seen(T),
    /// A row that could not be read. Reading continues.
    Rejected(Reject),
}

/// Options for reading a list.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Format of the list; `None` to detect it.
    pub format: Option<Format>,
    /// Day on which the names dropped or were registered, for rows without a day. A `drop_date`
    /// column takes precedence.
    pub drop_date: Option<Day>,
    /// Time of the list; `None` for its own time stamp, the date in its file name, or `now`.
    pub observed_at: Option<DateTime<Utc>>,
    /// Current time.
    pub now: DateTime<Utc>,
}

/// An opened list: an iterator over its [`Row`]s, which are observations, or ranks of a popularity list.
///
/// An `Err` is the last item: reading cannot continue, and nothing of the list may be applied.
pub struct Feed<T = Observation> {
    path: PathBuf,
    format: Format,
    reason: String,
    observed_at: DateTime<Utc>,
    day: Option<Day>,
    bytes_read: Arc<AtomicU64>,
    /// `None` after an error.
    rows: Option<Rows<T>>,
}

type Rows<T = Observation> = Box<dyn Iterator<Item = Result<Row<T>, FeedProblem>> + Send>;

impl Feed {
    /// Opens a list: unpacks its head, recognises or checks its format, and reads its header.
    ///
    /// # Errors
    /// The file is not a readable list of observations; the error states the remedy.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Feed, FeedError> {
        Feed::start(path, options).map_err(|problem| FeedError::new(path, problem))
    }

    fn start(path: &Path, options: &ReadOptions) -> Result<Feed, FeedProblem> {
        let text = container::open(path)?;
        let names = FileNames::new(path, text.inner_name);
        let head = Head::new(&text.head, text.head.len() < HEAD_BYTES);
        let taken = match options.format {
            Some(format) => sniff::requested(&head, format, options.drop_date.is_some())?,
            None => sniff::recognise(&head, &names, options.drop_date.is_some())?,
        };
        let reading = Reading::new(options, &taken.shape, &names)?;
        let mut reason = taken.reason;
        if !reading.clause.is_empty() {
            reason += "; ";
            reason += &reading.clause;
        }
        Ok(Feed {
            path: path.to_owned(),
            format: taken.shape.format(),
            reason,
            observed_at: reading.given.observed_at,
            day: reading.day,
            bytes_read: text.bytes_read,
            rows: Some(rows(taken.shape, text.input, &reading)?),
        })
    }

    /// Opens a zone file, packed or not. Returns the apex of the zone in lower case and without a
    /// trailing dot (`app`, `co.uk`), and the names that it delegates as known and registered,
    /// without a time.
    ///
    /// # Errors
    /// The file cannot be read, or [`FeedProblem::NoApex`].
    pub fn open_zone(path: &Path) -> Result<(String, Feed), FeedError> {
        Feed::start_zone(path).map_err(|problem| FeedError::new(path, problem))
    }

    fn start_zone(path: &Path) -> Result<(String, Feed), FeedProblem> {
        let (apex, text) = zone::open_text(path)?;
        let rows = LineRows::new(text.input, zone::Delegations::new(&apex));
        let feed = Feed {
            path: path.to_owned(),
            format: Format::ZonePair,
            reason: format!("a file of the zone {apex}"),
            observed_at: DateTime::UNIX_EPOCH,
            day: None,
            bytes_read: text.bytes_read,
            rows: Some(Box::new(rows)),
        };
        Ok((apex, feed))
    }

    /// Opens a list of all names of a registry, which are returned as known and registered, without
    /// a time.
    ///
    /// # Errors
    /// The file cannot be read, or has no header with a column of names.
    pub fn open_registry(path: &Path) -> Result<Feed, FeedError> {
        Feed::start_registry(path).map_err(|problem| FeedError::new(path, problem))
    }

    fn start_registry(path: &Path) -> Result<Feed, FeedProblem> {
        let text = container::open(path)?;
        let head = Head::new(&text.head, text.head.len() < HEAD_BYTES);
        let parser = registry::RegisteredNames::find(&head)?;
        let line = parser.line;
        Ok(Feed {
            path: path.to_owned(),
            format: Format::Registry,
            reason: "all names of a registry".to_owned(),
            observed_at: DateTime::UNIX_EPOCH,
            day: None,
            bytes_read: text.bytes_read,
            rows: Some(Box::new(LineRows::new(text.input, parser).skipping(line))),
        })
    }
}

impl Feed<RankedName> {
    /// Opens a popularity list. Returns kind and day of the list.
    ///
    /// # Errors
    /// The file is not a popularity list, or its kind is unknown.
    pub fn open_ranked(
        path: &Path,
        options: &ReadOptions,
    ) -> Result<(ListEdition, Feed<RankedName>), FeedError> {
        Feed::start_ranked(path, options).map_err(|problem| FeedError::new(path, problem))
    }

    fn start_ranked(
        path: &Path,
        options: &ReadOptions,
    ) -> Result<(ListEdition, Feed<RankedName>), FeedProblem> {
        let text = container::open(path)?;
        let names = FileNames::new(path, text.inner_name);
        let head = Head::new(&text.head, text.head.len() < HEAD_BYTES);
        let Sniffed { shape, reason } = sniff::requested(&head, Format::Ranked, false)?;
        let given = Given::new(options, &shape, &names)?;
        let columns = match shape {
            ListShape::Ranked(columns) => columns,
            _ => ranked::RankedColumns::PLAIN,
        };
        let list = columns.list.or_else(|| names.first(PopularityList::in_file_name));
        let edition = ListEdition {
            list: list.ok_or(FeedProblem::NoListName)?,
            id: names.first(ListId::in_file_name),
            day: given.observed_on(),
        };
        let rows = LineRows::new(text.input, ranked::Ranked(columns));
        let feed = Feed {
            path: path.to_owned(),
            format: Format::Ranked,
            reason,
            observed_at: given.observed_at,
            day: None,
            bytes_read: text.bytes_read,
            rows: Some(Box::new(rows.skipping(columns.line))),
        };
        Ok((edition, feed))
    }
}

impl<T> Feed<T> {
    /// Format of the list.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reason why the format was chosen, as a clause: "header has `domain` and `drop_date`".
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Time of the list: the first available of the requested time, its own time stamp, the day in
    /// its file name at 00:00 UTC, and the current time.
    pub fn observed_at(&self) -> DateTime<Utc> {
        self.observed_at
    }

    /// The day that determines how the list is read: the day of all names in a list of bare names,
    /// otherwise [`ReadOptions::drop_date`] if the format uses it.
    pub fn day(&self) -> Option<Day> {
        self.day
    }

    /// Raw bytes of the file consumed so far, for a progress bar.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }
}

impl<T> Iterator for Feed<T> {
    type Item = Result<Row<T>, FeedError>;

    fn next(&mut self) -> Option<Result<Row<T>, FeedError>> {
        match self.rows.as_mut()?.next()? {
            Ok(row) => Some(Ok(row)),
            Err(problem) => {
                self.rows = None;
                Some(Err(FeedError::new(&self.path, problem)))
            }
        }
    }
}

/// Opens a zone file, packed or not. Returns the apex of the zone in lower case and without a trailing
/// dot, and the text of the file.
///
/// # Errors
/// The file cannot be read, or [`FeedProblem::NoApex`].
pub fn open_zone_text(path: &Path) -> Result<(String, Box<dyn Read + Send>), FeedError> {
    let opened = zone::open_text(path).map_err(|problem| FeedError::new(path, problem));
    opened.map(|(apex, text)| (apex, text.input))
}

/// Opens a file, compressed or not, within the same bounds as a list, and without recognising its content.
///
/// # Errors
/// The file cannot be read, or is packed in another way.
pub fn open_unpacked(path: &Path) -> Result<Box<dyn Read + Send>, FeedError> {
    container::open_unpacked(path).map_err(|problem| FeedError::new(path, problem))
}

/// SHA-256 of a file's raw bytes, which identifies a list.
///
/// # Errors
/// The file cannot be read.
pub fn file_sha256(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(got) => hasher.update(&buffer[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Creates the reader for a shape.
fn rows(shape: ListShape, input: Input, reading: &Reading) -> Result<Rows, FeedProblem> {
    let given = reading.given;
    if let Some(all) = reading.all {
        return Ok(Box::new(LineRows::new(input, given.all(all))));
    }
    Ok(match shape {
        ListShape::Json => Box::new(json::JsonRows::new(input, given)),
        ListShape::JsonLines => Box::new(LineRows::new(input, json::Lines(given))),
        ListShape::Pool => {
            Box::new(LineRows::new(input, pairs::Pairs { given, read: pairs::pool }).quoted(b','))
        }
        ListShape::Bardate => {
            Box::new(LineRows::new(input, pairs::Pairs { given, read: pairs::bardate }))
        }
        ListShape::Native(columns) => {
            let (line, delimiter) = (columns.line, columns.delimiter);
            let parser = native::Native { columns, observed_at: given.observed_at };
            Box::new(LineRows::new(input, parser).quoted(delimiter).skipping(line))
        }
        ListShape::Delimited(header, columns) => {
            let parser = delimited::Delimited::new(&header, columns, given);
            Box::new(LineRows::new(input, parser).quoted(header.delimiter).skipping(header.line))
        }
        ListShape::Dynadot => {
            let parser = pairs::Pairs { given, read: pairs::dynadot };
            Box::new(LineRows::new(input, parser).quoted(b',').skipping(1))
        }
        ListShape::History(columns) => {
            let line = columns.line;
            let parser = history::History { columns, given };
            Box::new(LineRows::new(input, parser).quoted(history::DELIMITER).skipping(line))
        }
        ListShape::Stamped(stamped) => stamped_rows(stamped, input, given),
        ListShape::Names | ListShape::Registered | ListShape::Released => {
            return Err(FeedProblem::NoDate);
        }
        ListShape::Ranked(_) => return Err(FeedProblem::RankedList),
    })
}

/// The names were released when the registry created the list, so they dropped and were released on
/// that day.
fn stamped_rows(stamped: stamped::Stamped, input: Input, given: Given) -> Rows {
    let free = Given { observed_at: stamped.at, ..given }.observed_on();
    let date = given.drop_date.unwrap_or(free);
    let all =
        given.all(Sighting::Dropped { date, release: Some(free.into()), registered_again: false });
    if stamped.flagged {
        Box::new(LineRows::new(input, stamped::Flagged(all)).skipping(stamped.line))
    } else {
        Box::new(LineRows::new(input, all).skipping(stamped.line))
    }
}
