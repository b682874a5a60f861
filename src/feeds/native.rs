//! dropdex's own CSV (`data/docs/sources.md`), to which lists of other tools can be converted.

use chrono::{DateTime, Utc};

use super::columns::Header;
use super::dates;
use super::error::FeedProblem;
use super::lines::{Parsed, RowParser, split};
use super::rejects::RejectReason;
use super::{Observation, Sighting};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// Positions of the columns that are read. Other columns are ignored.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) line: u64,
    pub(super) delimiter: u8,
    /// Fields of the header. A row with fewer is rejected, because a truncated row must not pass for
    /// one with an empty `drop_date`.
    count: usize,
    domain: usize,
    drop_date: usize,
    release_date: Option<usize>,
    status: Option<usize>,
    registered_again: Option<usize>,
    first_seen: Option<usize>,
    observed_at: Option<usize>,
}

impl Columns {
    /// Finds the columns in a header.
    ///
    /// # Errors
    /// [`FeedProblem::MissingColumn`] without `domain` or `drop_date`.
    pub(super) fn from_header(header: &Header) -> Result<Columns, FeedProblem> {
        let required = |name| header.exactly(name).ok_or_else(|| header.lacks(name));
        Ok(Columns {
            line: header.line,
            delimiter: header.delimiter,
            count: header.cells.len(),
            domain: required("domain")?,
            drop_date: required("drop_date")?,
            release_date: header.exactly("release_date"),
            status: header.exactly("status"),
            registered_again: header.exactly("registered_again"),
            first_seen: header.exactly("first_seen"),
            observed_at: header.exactly("observed_at"),
        })
    }
}

/// Rows below the header.
pub(super) struct Native {
    pub(super) columns: Columns,
    /// Time of rows without `observed_at`.
    pub(super) observed_at: DateTime<Utc>,
}

/// Cells of a row, empty for columns that the table lacks.
#[derive(Default)]
struct Cells<'a> {
    domain: &'a str,
    drop_date: &'a str,
    release_date: &'a str,
    status: &'a str,
    registered_again: &'a str,
    first_seen: &'a str,
    observed_at: &'a str,
}

impl Native {
    fn cells<'a>(&self, row: &'a str) -> Result<Cells<'a>, RejectReason> {
        let columns = &self.columns;
        let mut cells = Cells::default();
        let mut count = 0;
        for (at, cell) in split(row, columns.delimiter).enumerate() {
            count = at + 1;
            match Some(at) {
                at if at == Some(columns.domain) => cells.domain = cell,
                at if at == Some(columns.drop_date) => cells.drop_date = cell,
                at if at == columns.release_date => cells.release_date = cell,
                at if at == columns.status => cells.status = cell,
                at if at == columns.registered_again => cells.registered_again = cell,
                at if at == columns.first_seen => cells.first_seen = cell,
                at if at == columns.observed_at => cells.observed_at = cell,
                _ => {}
            }
        }
        if count < columns.count { Err(RejectReason::TooFewColumns) } else { Ok(cells) }
    }

    fn observation(&self, cells: &Cells<'_>) -> Result<Observation, RejectReason> {
        let name = DomainName::parse(cells.domain)?;
        let drop_date = day(cells.drop_date, "drop_date")?;
        let release = day(cells.release_date, "release_date")?;
        let registered = is_registered(cells.status)?;
        let registered_again = flag(cells.registered_again)?;
        let sighting = match drop_date {
            Some(date) => Sighting::Dropped { date, release, registered_again },
            None => Sighting::Known { registered },
        };
        let first_seen = day(cells.first_seen, "first_seen")?;
        let observed_at = match cells.observed_at {
            "" => self.observed_at,
            text => dates::instant(text).ok_or(RejectReason::BadTime)?,
        };
        Ok(Observation { name, sighting, first_seen, observed_at })
    }
}

impl RowParser for Native {
    fn parse(&mut self, row: &str) -> Parsed {
        let parse = || self.cells(row).and_then(|cells| self.observation(&cells));
        (!row.trim().is_empty()).then(parse)
    }
}

/// Parses `YYYY-MM-DD`; `None` when empty.
fn day(text: &str, column: &'static str) -> Result<Option<Day>, RejectReason> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| RejectReason::BadDate(column)),
    }
}

/// Parses a value of `currentStatus` (`data/docs/api.md`) in any case, or an empty cell.
fn is_registered(status: &str) -> Result<bool, RejectReason> {
    const OTHERS: [&str; 5] = ["", "redemption", "pending-delete", "available", "unknown"];
    match status {
        status if status.eq_ignore_ascii_case("registered") => Ok(true),
        status if OTHERS.iter().any(|other| status.eq_ignore_ascii_case(other)) => Ok(false),
        _ => Err(RejectReason::BadStatus),
    }
}

fn flag(text: &str) -> Result<bool, RejectReason> {
    let is = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match text {
        "" => Ok(false),
        _ if is(["true", "1", "yes"]) => Ok(true),
        _ if is(["false", "0", "no"]) => Ok(false),
        _ => Err(RejectReason::BadFlag("registered_again")),
    }
}
