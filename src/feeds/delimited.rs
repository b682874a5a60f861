//! Tables of any vendor whose header names a domain and a date column.

use super::Given;
use super::columns::{Columns, Header};
use super::dates::{self, SlashOrder};
use super::lines::{Parsed, RowParser, split};
use super::rejects::RejectReason;
use crate::vocab::name::DomainName;

/// Rows of a table. Their date is the day of release, except in a `drop_date` column.
pub(super) struct Delimited {
    columns: Columns,
    delimiter: u8,
    given: Given,
}

impl Delimited {
    pub(super) fn new(header: &Header, columns: Columns, given: Given) -> Delimited {
        Delimited { columns, delimiter: header.delimiter, given }
    }

    /// The cells with name, release date and drop date.
    fn cells<'a>(&self, row: &'a str) -> Result<[&'a str; 3], RejectReason> {
        let release = self.columns.release.map(|(at, _)| at);
        let wanted = [Some(self.columns.name), release, self.columns.drop];
        let mut found = wanted.map(|at| at.is_none().then_some(""));
        for (at, cell) in split(row, self.delimiter).enumerate() {
            for (slot, wanted) in found.iter_mut().zip(wanted) {
                if wanted == Some(at) {
                    *slot = Some(cell);
                }
            }
        }
        match found {
            [Some(name), Some(release), Some(drop)] => Ok([name, release, drop]),
            _ => Err(RejectReason::TooFewColumns),
        }
    }
}

impl RowParser for Delimited {
    fn parse(&mut self, row: &str) -> Parsed {
        (!row.trim().is_empty()).then(|| {
            let [name, release, drop] = self.cells(row)?;
            let name = DomainName::parse(name)?;
            let order = self.columns.release.map_or(SlashOrder::Unknown, |(_, order)| order);
            let release = dates::optional_day(release, order, "release_date")?;
            let drop = dates::optional_day(drop, SlashOrder::Unknown, "drop_date")?;
            self.given.listed(name, release, drop)
        })
    }
}
