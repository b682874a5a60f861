//! Raw lists in, [`Row`]s out: what registries and vendors publish, as observations of names.
//!
//! A reader streams: memory does not grow with the file. Nothing here writes, or knows what the
//! corpus already holds.
//!
//! A list goes through `container` (unpacked, bounded, UTF-8), `sniff` (what is it?), and the
//! module of its format; `lines` cuts text into rows for all formats but JSON. [`ZoneOwners`]
//! reads one of the two files of a zone pair.

mod bardate;
mod columns;
mod container;
mod dates;
mod delimited;
mod error;
mod format;
mod json;
mod lines;
mod names;
mod native;
mod pool;
mod rejects;
mod sniff;
mod stamped;
mod zone;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

pub use self::error::{FeedError, FeedProblem};
pub use self::format::{Format, FormatError};
pub use self::rejects::{REJECT_TEXT_CHARS_MAX, Reject, RejectReason};
pub use self::zone::{ZoneOwners, ZoneRow, zone_day};

use self::container::{HEAD_BYTES, Input};
use self::lines::LineRows;
use self::sniff::{Head, Shape};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// What one list says about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The name it is about.
    pub name: DomainName,
    /// What was seen.
    pub sighting: Sighting,
    /// The day the name was first seen registered, where the list says so.
    pub first_seen: Option<Day>,
    /// When it was seen: the row's own time, else the list's.
    pub observed_at: DateTime<Utc>,
}

/// The kinds of things lists say (decisions.md §2, §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// The name left its zone on `date`; the registry frees it on `release`, where the list says.
    Dropped { date: Day, release: Option<Day>, registered_again: bool },
    /// The name was newly registered on `on`: a drop on or before that day is undone.
    Registered { on: Day },
    /// The name exists; `registered` when the list says it is held. No drop is meant.
    Known { registered: bool },
}

/// One row of a list. Comments, blank lines and headings are no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The row was understood.
    Seen(Observation),
    /// It was not; reading goes on.
    Rejected(Reject),
}

/// How a list is to be read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The shape of the list; `None` to have it recognised.
    pub format: Option<Format>,
    /// The day the names dropped, or were registered, for lists that do not say it row by row.
    /// The `drop_date` column of a list is not overruled.
    pub drop_date: Option<Day>,
    /// When the list was observed; `None` for its own time stamp, the date in its name, or `now`.
    pub observed_at: Option<DateTime<Utc>>,
    /// The time of the reading.
    pub now: DateTime<Utc>,
}

/// An opened list: an iterator over its [`Row`]s.
///
/// An `Err` is the last item: the file cannot be read on, and nothing of it may be applied.
pub struct Feed {
    path: PathBuf,
    format: Format,
    reason: String,
    observed_at: DateTime<Utc>,
    bytes_read: Arc<AtomicU64>,
    /// `None` after an error.
    rows: Option<Rows>,
}

type Rows = Box<dyn Iterator<Item = Result<Row, FeedProblem>> + Send>;

impl Feed {
    /// Opens a list: unpacks its head, tells or checks its format, and reads its header.
    ///
    /// # Errors
    /// Why the file is no list that can be read, and what to do about it.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Feed, FeedError> {
        Feed::start(path, options).map_err(|problem| FeedError::new(path, problem))
    }

    fn start(path: &Path, options: &ReadOptions) -> Result<Feed, FeedProblem> {
        let text = container::open(path)?;
        let names = FileNames::of(path, text.inner_name);
        let head = Head::of(&text.head, text.head.len() < HEAD_BYTES);
        let taken = match options.format {
            Some(format) => sniff::asked(&head, format)?,
            None => sniff::recognise(&head, &names.outer)?,
        };
        let given = Given::of(options, &taken.shape, &names);
        Ok(Feed {
            path: path.to_owned(),
            format: taken.shape.format(),
            reason: taken.reason,
            observed_at: given.observed_at,
            bytes_read: text.bytes_read,
            rows: Some(rows(taken.shape, text.input, given, &names)?),
        })
    }

    /// The format it is read as.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Why it was taken for that, in one clause: "header has `domain` and `drop_date`".
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// When the list was observed: as asked, else its own time stamp, else the day in its file
    /// name at 00:00 UTC, else the time of the reading.
    pub fn observed_at(&self) -> DateTime<Utc> {
        self.observed_at
    }

    /// Raw bytes of the file consumed so far, for a progress bar.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }
}

impl Iterator for Feed {
    type Item = Result<Row, FeedError>;

    fn next(&mut self) -> Option<Result<Row, FeedError>> {
        match self.rows.as_mut()?.next()? {
            Ok(row) => Some(Ok(row)),
            Err(problem) => {
                self.rows = None;
                Some(Err(FeedError::new(&self.path, problem)))
            }
        }
    }
}

/// SHA-256 of a file's raw bytes, packed as they are: the identity of a list.
///
/// # Errors
/// When the file cannot be read.
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

/// The names a file goes by.
struct FileNames {
    /// Of the file itself.
    outer: String,
    /// Of the file inside a zip archive, without its folders.
    inner: Option<String>,
}

impl FileNames {
    fn of(path: &Path, inner: Option<String>) -> FileNames {
        let outer = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let base = |inner: String| inner.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        FileNames { outer, inner: inner.map(base) }
    }

    fn first<T>(&self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        read(&self.outer).or_else(|| self.inner.as_deref().and_then(read))
    }

    /// The day of an .it list, on which its names are released. Its ten digits are no
    /// [`FileNames::date`]: they do not date the list itself.
    fn it_release(&self) -> Option<Day> {
        self.first(dates::it_release)
    }

    fn date(&self) -> Option<Day> {
        self.first(dates::in_file_name)
    }
}

/// What rows do not say themselves.
#[derive(Clone, Copy)]
struct Given {
    observed_at: DateTime<Utc>,
    /// As asked by the operator.
    drop_date: Option<Day>,
}

impl Given {
    fn of(options: &ReadOptions, shape: &Shape, names: &FileNames) -> Given {
        let stamp = match shape {
            Shape::Stamped(stamped) => Some(stamped.at),
            _ => None,
        };
        // A list whose name holds a day to come is about that day, and was made before it.
        let dated = names.date().map(Day::start);
        let observed_at = options
            .observed_at
            .or(stamp)
            .or(dated.filter(|date| *date <= options.now))
            .unwrap_or(options.now);
        Given { observed_at, drop_date: options.drop_date }
    }

    /// The UTC day of the observation; the nearest that can be held.
    fn observed_on(&self) -> Day {
        let nearest = if self.observed_at.timestamp() < 0 { Day::MIN } else { Day::MAX };
        Day::of(self.observed_at).unwrap_or(nearest)
    }

    /// A row of a list that tells releases: without a drop date of its own, the name dropped on
    /// the day the operator says, or else was seen (decisions.md §2).
    fn listed(
        &self,
        name: DomainName,
        release: Option<Day>,
        drop: Option<Day>,
    ) -> Result<Observation, RejectReason> {
        let seen = release.map(|_| self.observed_on());
        let date = drop.or(self.drop_date).or(seen).ok_or(RejectReason::MissingDate)?;
        let sighting = Sighting::Dropped { date, release, registered_again: false };
        Ok(Observation { name, sighting, first_seen: None, observed_at: self.observed_at })
    }

    fn all(&self, sighting: Sighting) -> names::Names {
        names::Names { sighting, observed_at: self.observed_at }
    }
}

/// The reader of a shape.
fn rows(shape: Shape, input: Input, given: Given, names: &FileNames) -> Result<Rows, FeedProblem> {
    Ok(match shape {
        Shape::Json => Box::new(json::JsonRows::new(input, given)),
        Shape::Pool => Box::new(LineRows::new(input, pool::Pool(given)).quoted(b',')),
        Shape::Bardate => Box::new(LineRows::new(input, bardate::Bardate(given))),
        Shape::Native(columns) => {
            let (line, delimiter) = (columns.line, columns.delimiter);
            let parser = native::Native { columns, observed_at: given.observed_at };
            Box::new(LineRows::new(input, parser).quoted(delimiter).skipping(line))
        }
        Shape::Delimited(header, columns) => {
            let parser = delimited::Delimited::new(&header, columns, given);
            Box::new(LineRows::new(input, parser).quoted(header.delimiter).skipping(header.line))
        }
        Shape::Stamped(stamped) => stamped_rows(stamped, input, given),
        Shape::Names => Box::new(LineRows::new(input, given.all(dropped(given, names)?))),
        Shape::Registered => {
            let on = given.drop_date.or(names.date()).unwrap_or(given.observed_on());
            Box::new(LineRows::new(input, given.all(Sighting::Registered { on })))
        }
    })
}

/// Names that were free when the registry made the list: dropped and released on that day.
fn stamped_rows(stamped: stamped::Stamped, input: Input, given: Given) -> Rows {
    let free = Given { observed_at: stamped.at, ..given }.observed_on();
    let date = given.drop_date.unwrap_or(free);
    let all = given.all(Sighting::Dropped { date, release: Some(free), registered_again: false });
    if stamped.flagged {
        Box::new(LineRows::new(input, stamped::Flagged(all)).skipping(stamped.line))
    } else {
        Box::new(LineRows::new(input, all).skipping(stamped.line))
    }
}

/// What a list of bare names says of each, by its options and file name.
fn dropped(given: Given, names: &FileNames) -> Result<Sighting, FeedProblem> {
    let release = names.it_release();
    let date = match release {
        Some(_) => given.drop_date.unwrap_or(given.observed_on()),
        None => given.drop_date.or(names.date()).ok_or(FeedProblem::NoDate)?,
    };
    Ok(Sighting::Dropped { date, release, registered_again: false })
}
