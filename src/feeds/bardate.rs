//! The text form of the .se and .nu release list: `exempel.se<TAB>2026-10-20`.

use super::Given;
use super::lines::{Parsed, RowParser};
use super::names;
use super::rejects::RejectReason;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// Rows of a bardate list; their date is the day of release.
pub(super) struct Bardate(pub(super) Given);

impl RowParser for Bardate {
    fn parse(&mut self, row: &str) -> Parsed {
        let row = row.trim();
        names::is_row(row).then(|| {
            let (name, date) = halves(row).ok_or(RejectReason::TooFewColumns)?;
            let name = DomainName::parse(name)?;
            let release: Day = date.parse().map_err(|_| RejectReason::BadDate("release_date"))?;
            self.0.listed(name, Some(release), None)
        })
    }
}

/// Returns true for a row of a name and a date.
pub(super) fn fits(row: &str) -> bool {
    halves(row).is_some_and(|(name, date)| names::fits(name) && date.parse::<Day>().is_ok())
}

fn halves(row: &str) -> Option<(&str, &str)> {
    row.split_once(['\t', ' ']).map(|(name, date)| (name, date.trim()))
}
