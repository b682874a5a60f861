//! Lists without a header whose rows are a name and the day of its release.

use super::dates::{self, SlashOrder};
use super::lines::{Parsed, RowParser, split};
use super::names;
use super::rejects::RejectReason;
use super::{Given, Observation};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// Parser of the rows of a list.
pub(super) struct Pairs {
    pub(super) given: Given,
    /// Parser of a row: [`pool`], [`dynadot`] or [`bardate`].
    pub(super) read: fn(&str) -> Result<(DomainName, Day), RejectReason>,
}

impl RowParser for Pairs {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        let row = row.trim();
        names::is_row(row).then(|| {
            let (name, release) = (self.read)(row)?;
            self.given.listed(name, Some(release.into()), None)
        })
    }
}

/// Reads a row of Pool.com's pending-delete list: `brightmesa.com,12/4/2026 12:00:00 AM,AUC`.
pub(super) fn pool(row: &str) -> Result<(DomainName, Day), RejectReason> {
    let mut fields = split(row, b',');
    let name = DomainName::parse(fields.next().unwrap_or_default())?;
    let date = fields.next().ok_or(RejectReason::TooFewColumns)?;
    // Pool uses slashes. A list with other dates has another format, whose header must not be
    // skipped as a comment.
    if !date.contains('/') {
        return Err(RejectReason::BadDate("release_date"));
    }
    Ok((name, dates::day(date, SlashOrder::MonthFirst, "release_date")?))
}

/// Reads a row of Dynadot's backorders: `brightmesa.com,2026/11/24 10:00 PST,...`. The names of the
/// columns are undocumented.
pub(super) fn dynadot(row: &str) -> Result<(DomainName, Day), RejectReason> {
    let mut fields = split(row, b',');
    let name = DomainName::parse(fields.next().unwrap_or_default())?;
    let time = fields.next().ok_or(RejectReason::TooFewColumns)?;
    Ok((name, dates::day(time, SlashOrder::MonthFirst, "release_date")?))
}

/// Reads a row of the text form of the .se and .nu lists: `exempel.se<TAB>2026-10-20`.
pub(super) fn bardate(row: &str) -> Result<(DomainName, Day), RejectReason> {
    let (name, date) = row.split_once(['\t', ' ']).ok_or(RejectReason::TooFewColumns)?;
    let name = DomainName::parse(name)?;
    Ok((name, dates::day(date, SlashOrder::Unknown, "release_date")?))
}
