//! All current names of a registry: the list of .sk. Lines that start with `--` are comments; the header
//! names the columns.

use chrono::DateTime;

use super::error::FeedProblem;
use super::format::Format;
use super::head::Head;
use super::lines::{Parsed, RowParser, split};
use super::rejects::RejectReason;
use super::{Observation, Sighting};
use crate::vocab::name::DomainName;

const COMMENT: &str = "--";
const DELIMITER: u8 = b';';
/// Possible headings of the column of names.
const NAMES: [&str; 2] = ["domena", "domain"];

/// Parser of the rows of the list.
pub(super) struct RegisteredNames {
    /// Line number of the header.
    pub(super) line: u64,
    name: usize,
}

impl RegisteredNames {
    /// Finds the header.
    pub(super) fn find(head: &Head) -> Result<RegisteredNames, FeedProblem> {
        let is_name = |cell: &str| {
            let cell = cell.trim().trim_matches('"');
            NAMES.iter().any(|name| cell.eq_ignore_ascii_case(name))
        };
        let first = head.lines.iter().find(|(_, line)| !line.starts_with(COMMENT));
        let found = first.and_then(|(line, text)| {
            let name = split(text, DELIMITER).position(is_name)?;
            Some(RegisteredNames { line: *line, name })
        });
        found.ok_or_else(|| FeedProblem::NotFormat {
            format: Format::Registry,
            why: format!("it starts with `{}`, no header with `{}`", head.start(), NAMES[0]),
        })
    }
}

impl RowParser for RegisteredNames {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        (!row.trim().is_empty() && !row.starts_with(COMMENT)).then(|| {
            let name = split(row, DELIMITER).nth(self.name).ok_or(RejectReason::TooFewColumns)?;
            let (name, observed_at) = (DomainName::parse(name)?, DateTime::UNIX_EPOCH);
            let sighting = Sighting::Known { registered: true };
            Ok(Observation { name, sighting, first_seen: None, observed_at })
        })
    }
}
