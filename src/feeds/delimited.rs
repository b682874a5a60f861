//! Tables of any vendor whose header has a domain and a date column.

use super::columns::{Header, ListColumns};
use super::dates::{self, SlashOrder};
use super::lines::{Parsed, RowParser, pick};
use super::rejects::RejectReason;
use super::{Given, Observation};
use crate::vocab::name::DomainName;

/// Parser of the rows of a table.
pub(super) struct Delimited {
    columns: ListColumns,
    delimiter: u8,
    /// Whether the release is the end of an auction.
    ends: bool,
    given: Given,
}

impl Delimited {
    pub(super) fn new(header: &Header, columns: ListColumns, given: Given) -> Delimited {
        let ends = columns.release_is_end(header);
        Delimited { columns, delimiter: header.delimiter, ends, given }
    }

    /// Returns the cells with name, release date and drop date; empty for columns that the table
    /// lacks.
    fn cells<'a>(&self, row: &'a str) -> Result<[&'a str; 3], RejectReason> {
        let release = self.columns.release.map(|(at, _)| at);
        let drop = self.columns.drop.map(|(at, _)| at);
        let wanted = [Some(self.columns.name), release, drop];
        let (cells, count) = pick(row, self.delimiter, wanted);
        let is_missing = wanted.into_iter().flatten().any(|at| at >= count);
        if is_missing { Err(RejectReason::TooFewColumns) } else { Ok(cells) }
    }
}

impl RowParser for Delimited {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        (!row.trim().is_empty()).then(|| {
            let [name, release, drop] = self.cells(row)?;
            let name = DomainName::parse(name)?;
            let order =
                |day: Option<(usize, SlashOrder)>| day.map_or(SlashOrder::Unknown, |(_, it)| it);
            let release =
                dates::optional_release(release, order(self.columns.release), "release_date")?;
            // An auction ends at another time than the release.
            let release = release.map(|it| if self.ends { it.day.into() } else { it });
            let drop = dates::optional_day(drop, order(self.columns.drop), "drop_date")?;
            self.given.listed(name, release, drop)
        })
    }
}
