//! dropdex's own CSV (`data/docs/sources.md`), a target format for converting the lists of other
//! tools.

use chrono::{DateTime, Utc};

use super::columns::{self, Header};
use super::dates::{self, SlashOrder};
use super::error::FeedProblem;
use super::lines::{Parsed, RowParser, pick};
use super::rejects::RejectReason;
use super::{Observation, Sighting};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// Columns that are read. The first two are required in exactly this spelling; the others may be
/// spelled differently (`releaseDate`). Further columns are ignored.
const COLUMNS: [&str; 7] = [
    "domain",
    "drop_date",
    "release_date",
    "status",
    "registered_again",
    "first_seen",
    "observed_at",
];

/// Positions of the columns.
#[derive(Clone, Debug)]
pub(super) struct NativeColumns {
    pub(super) line: u64,
    pub(super) delimiter: u8,
    /// Number of fields in the header. A row with fewer fields is rejected, because a truncated row
    /// must not be mistaken for one with an empty `drop_date`.
    count: usize,
    /// Position of each of [`COLUMNS`] in a row.
    at: [Option<usize>; COLUMNS.len()],
}

impl NativeColumns {
    /// Finds the columns in a header.
    ///
    /// # Errors
    /// [`FeedProblem::MissingColumn`] without `domain` or `drop_date`.
    pub(super) fn from_header(header: &Header) -> Result<NativeColumns, FeedProblem> {
        let required = [COLUMNS[0], COLUMNS[1]];
        if let Some(missing) = required.into_iter().find(|name| header.exactly(name).is_none()) {
            return Err(header.lacks(missing));
        }
        let at = COLUMNS.map(|name| header.spelled(name));
        let Header { line, delimiter, ref cells } = *header;
        Ok(NativeColumns { line, delimiter, count: cells.len(), at })
    }

    /// Whether the header has a release date under another name, which this format does not read.
    pub(super) fn loses_a_release(&self, header: &Header) -> bool {
        let [_, _, release, ..] = self.at;
        let columns = columns::ListColumns::from_header(header, false);
        release.is_none() && columns.is_ok_and(|columns| columns.has_both(header))
    }
}

/// Parser of the rows below the header.
pub(super) struct Native {
    pub(super) columns: NativeColumns,
    /// Time of rows without `observed_at`.
    pub(super) observed_at: DateTime<Utc>,
}

impl Native {
    fn observation(&self, row: &str) -> Result<Observation, RejectReason> {
        let (cells, count) = pick(row, self.columns.delimiter, self.columns.at);
        if count < self.columns.count {
            return Err(RejectReason::TooFewColumns);
        }
        let [name, drop_date, release, status, registered_again, first_seen, observed_at] = cells;
        let name = DomainName::parse(name)?;
        let drop_date = day(drop_date, "drop_date")?;
        let release = dates::optional_release(release, SlashOrder::Unknown, "release_date")?;
        let registered = is_registered(status)?;
        let registered_again = flag(registered_again)?;
        let sighting = match drop_date {
            Some(date) => Sighting::Dropped { date, release, registered_again },
            None => Sighting::Known { registered },
        };
        let sighting = sighting.about(name.tld());
        let first_seen = day(first_seen, "first_seen")?;
        let observed_at = match observed_at {
            "" => self.observed_at,
            text => dates::instant(text).ok_or(RejectReason::BadTime)?,
        };
        Ok(Observation { name, sighting, first_seen, observed_at })
    }
}

impl RowParser for Native {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        (!row.trim().is_empty()).then(|| self.observation(row))
    }
}

/// Parses a day; `None` if empty.
fn day(text: &str, column: &'static str) -> Result<Option<Day>, RejectReason> {
    dates::optional_day(text, SlashOrder::Unknown, column)
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
