//! Lists of released names, below a line with the time at which the registry created the list: .pl
//! and .mx.

use chrono::{DateTime, Utc};

use super::Observation;
use super::dates;
use super::head::Head;
use super::lines::{Parsed, RowParser};
use super::names::Names;
use super::rejects::RejectReason;

/// The first lines of a stamped list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamped {
    /// Time at which the registry created the list.
    pub(super) at: DateTime<Utc>,
    /// Line number of the time stamp, or of the header below it, after which the rows start.
    pub(super) line: u64,
    /// Whether the list has the .mx form: rows such as `name,true` below `Dominio,Disponible`.
    pub(super) flagged: bool,
}

impl Stamped {
    /// Parses the head of a list. Returns `None` if the first line is not a time stamp.
    pub(super) fn parse(head: &Head) -> Option<Stamped> {
        let (line, first) = head.lines.first()?;
        let at = dates::stamp(first)?;
        let header = head.lines.get(1).filter(|(_, text)| {
            text.split_once(',').is_some_and(|(_, flag)| flag.trim().eq_ignore_ascii_case(FLAG))
        });
        let line = header.map_or(*line, |(line, _)| *line);
        Some(Stamped { at, line, flagged: header.is_some() })
    }
}

const FLAG: &str = "disponible";

/// Parser of rows of the .mx form. Skips names that are not yet released, because they have not
/// dropped.
pub(super) struct Flagged(pub(super) Names);

impl RowParser for Flagged {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        if row.trim().is_empty() {
            return None;
        }
        match row.split_once(',').map(|(name, flag)| (name, flag.trim())) {
            Some((name, flag)) if flag.eq_ignore_ascii_case("true") => self.0.parse(name),
            Some((_, flag)) if flag.eq_ignore_ascii_case("false") => None,
            Some(_) => Some(Err(RejectReason::BadFlag("Disponible"))),
            None => Some(Err(RejectReason::TooFewColumns)),
        }
    }
}
