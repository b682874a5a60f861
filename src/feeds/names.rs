//! Lists of bare names, one per line: dropped, newly registered, or below a time stamp.

use super::lines::{Parsed, RowParser};
use super::{Observation, Sighting};
use crate::vocab::name::DomainName;
use chrono::{DateTime, Utc};

/// A list with one sighting for all names.
pub(super) struct Names {
    pub(super) sighting: Sighting,
    pub(super) observed_at: DateTime<Utc>,
}

impl RowParser for Names {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        let row = row.trim();
        is_row(row).then(|| {
            let name = DomainName::parse(row)?;
            let (sighting, observed_at) = (self.sighting, self.observed_at);
            Ok(Observation { name, sighting, first_seen: None, observed_at })
        })
    }
}

/// Returns false for a comment, a blank line, or a line without a dot (a heading, a count).
pub(super) fn is_row(line: &str) -> bool {
    !line.starts_with('#') && has_dot(line)
}

/// UTS 46 maps three more characters to the dot between labels.
fn has_dot(line: &str) -> bool {
    line.contains('.') || (!line.is_ascii() && line.contains(['\u{3002}', '\u{ff0e}', '\u{ff61}']))
}

/// Returns true for a row that is only a name.
pub(super) fn fits(row: &str) -> bool {
    DomainName::parse(row).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_comments_are_skipped() {
        for line in ["", "# example.com", "domain", "12 names", "пример"] {
            assert!(!is_row(line), "{line}");
        }
        for line in ["example.com", "例え。jp"] {
            assert!(is_row(line), "{line}");
        }
    }
}
