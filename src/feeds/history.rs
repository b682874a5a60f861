//! All names that a registry ever had, with their latest registration and deletion: AFNIC's open data of
//! .fr. A name without a day of deletion is registered.

use super::columns;
use super::head::Head;
use super::lines::{Parsed, RowParser, pick, split};
use super::rejects::{RejectReason, one_line};
use super::{Given, Observation, Sighting, dates};
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// The columns that are read, for messages.
pub(super) const HEADER_WORDS: &str =
    "`Nom de domaine`, `Date de cr\u{e9}ation` and `Date de retrait du WHOIS`";
/// Names of the columns, reduced to ASCII letters because older files use another encoding.
const NAME: &str = "nomdedomaine";
const CREATED: [&str; 2] = ["datedecration", "datedecreation"];
const DELETED: &str = "datederetraitduwhois";
pub(super) const DELIMITER: u8 = b';';
/// Maximum characters of a column's name.
const CELL_CHARS_MAX: usize = 80;

/// Positions of the columns, whose order differs between years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistoryColumns {
    pub(super) line: u64,
    name: usize,
    created: usize,
    deleted: usize,
}

impl HistoryColumns {
    /// Finds the columns in the first line.
    pub(super) fn find(head: &Head) -> Option<HistoryColumns> {
        let (line, header) = head.lines.first()?;
        let cells: Vec<String> = split(header, DELIMITER)
            .map(|cell| columns::letters(&one_line(cell.as_bytes(), CELL_CHARS_MAX)))
            .collect();
        let at = |names: &[&str]| cells.iter().position(|cell| names.contains(&cell.as_str()));
        let (name, created, deleted) = (at(&[NAME])?, at(&CREATED)?, at(&[DELETED])?);
        Some(HistoryColumns { line: *line, name, created, deleted })
    }
}

/// Rows of the table.
pub(super) struct History {
    pub(super) columns: HistoryColumns,
    pub(super) given: Given,
}

impl History {
    fn read(&self, row: &str) -> Result<Observation, RejectReason> {
        let HistoryColumns { name, created, deleted, .. } = self.columns;
        let wanted = [name, created, deleted].map(Some);
        let ([name, created, deleted], count) = pick(row, DELIMITER, wanted);
        if wanted.into_iter().flatten().any(|at| at >= count) {
            return Err(RejectReason::TooFewColumns);
        }
        let name = DomainName::parse(name)?;
        let first_seen: Option<Day> = dates::day_first(created, "first_seen")?;
        let sighting = match dates::day_first(deleted, "release_date")? {
            Some(date) => {
                Sighting::Dropped { date, release: Some(date.into()), registered_again: false }
            }
            None => Sighting::Known { registered: true },
        };
        Ok(Observation { name, sighting, first_seen, observed_at: self.given.observed_at })
    }
}

impl RowParser for History {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        (!row.trim().is_empty()).then(|| self.read(row))
    }
}
