//! Pool.com's pending-delete list: `brightmesa.com,12/4/2026 12:00:00 AM,AUC`.

use super::Given;
use super::dates::{self, SlashOrder};
use super::lines::{Parsed, RowParser, split};
use super::names;
use super::rejects::RejectReason;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// Rows of a Pool list; their date is the day of release.
pub(super) struct Pool(pub(super) Given);

impl RowParser for Pool {
    fn parse(&mut self, row: &str) -> Parsed {
        let row = row.trim();
        names::is_row(row).then(|| {
            let mut fields = split(row, b',');
            let name = DomainName::parse(fields.next().unwrap_or_default())?;
            let date = fields.next().ok_or(RejectReason::TooFewColumns)?;
            let release = release(date)?;
            self.0.listed(name, Some(release), None)
        })
    }
}

/// Returns true for a row of a name and a date.
pub(super) fn fits(row: &str) -> bool {
    let mut fields = split(row, b',');
    let name = fields.next().is_some_and(names::fits);
    name && fields.next().is_some_and(|date| release(date).is_ok())
}

/// The day of `12/4/2026 12:00:00 AM`. Pool writes slashes; a list with other dates has another
/// format, whose header must not be skipped as a comment.
fn release(date: &str) -> Result<Day, RejectReason> {
    if !date.contains('/') {
        return Err(RejectReason::BadDate("release_date"));
    }
    dates::day(date, SlashOrder::MonthFirst, "release_date")
}
