//! Lists of bare names, one per line: dropped, newly registered, or below a time stamp.

use super::lines::{Parsed, RowParser};
use super::{Observation, Sighting};
use crate::vocab::name::{DomainName, NameError, host_of_address};
use chrono::{DateTime, Utc};

/// Parser of a list with the same sighting for all names.
pub(super) struct Names {
    pub(super) sighting: Sighting,
    pub(super) observed_at: DateTime<Utc>,
}

impl RowParser for Names {
    type Seen = Observation;

    fn parse(&mut self, row: &str) -> Parsed {
        let row = row.trim();
        is_row(row).then(|| {
            let name = name(row)?;
            let (sighting, observed_at) = (self.sighting.about(name.tld()), self.observed_at);
            Ok(Observation { name, sighting, first_seen: None, observed_at })
        })
    }
}

/// Starts of lines that are comments.
const COMMENTS: [char; 2] = ['#', ';'];

/// Returns false for a comment, a blank line, or a line without a dot (a heading, a count).
pub(super) fn is_row(line: &str) -> bool {
    !line.starts_with(COMMENTS) && !line.starts_with("//") && has_dot(line)
}

/// Parses a row that is only a name. The name may be quoted, followed by empty columns or a comment, or
/// given as the URL of its front page.
fn name(row: &str) -> Result<DomainName, NameError> {
    let comment = row.match_indices(COMMENTS).map(|(at, _)| at);
    let is_apart = |at: &usize| row[..*at].ends_with([' ', '\t']);
    let row = comment.into_iter().find(is_apart).map_or(row, |at| &row[..at]);
    let row = row.trim_end_matches([',', ';', '|', '\t', ' ']);
    let quoted = row.strip_prefix('"').and_then(|row| row.strip_suffix('"'));
    let row = quoted.unwrap_or(row).trim();
    let Some((path, host)) = row.split_once("://").zip(host_of_address(row)) else {
        return DomainName::parse(row);
    };
    let (_, rest) = path;
    let is_front = rest.strip_suffix('/').unwrap_or(rest) == host;
    let host = host.strip_prefix("www.").unwrap_or(host);
    // The URL of any other page says nothing about the name in it.
    if is_front { DomainName::parse(host) } else { DomainName::parse(row) }
}

/// UTS 46 maps three further characters to the dot between labels.
fn has_dot(line: &str) -> bool {
    line.contains('.') || (!line.is_ascii() && line.contains(['\u{3002}', '\u{ff0e}', '\u{ff61}']))
}

/// Returns true for a line that contains only a name.
pub(super) fn is_bare(row: &str) -> bool {
    DomainName::parse(row).is_ok()
}

/// Returns true for a row that is only a name.
pub(super) fn fits(row: &str) -> bool {
    name(row).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_lists_write_it() {
        for row in [
            "alphaone.com",
            "alphaone.com # see example.com",
            "alphaone.com\t; a comment",
            "\"alphaone.com\"",
            "\"alphaone.com\",,",
            "alphaone.com;",
            "alphaone.com\t\t",
            "https://alphaone.com/",
            "HTTP://www.AlphaOne.com",
            "\"https://alphaone.com\"",
            "alphaone.com.",
        ] {
            assert_eq!(name(row).map(|name| name.to_string()), Ok("alphaone.com".into()), "{row}");
        }
        for row in [
            "alphaone.com#x",
            "alphaone.com,12",
            "\"alphaone.com",
            "https://alphaone.com/page",
            "https://shop.alphaone.com/",
            "www.alphaone.com",
            "ftp://alphaone.com/",
            "alphaone.com beta.com",
        ] {
            assert!(name(row).is_err(), "{row}");
        }
    }

    #[test]
    fn headings_and_comments_are_skipped() {
        for line in
            ["", "# example.com", "; example.com", "// a.com", "domain", "12 names", "пример"]
        {
            assert!(!is_row(line), "{line}");
        }
        for line in ["example.com", "例え。jp"] {
            assert!(is_row(line), "{line}");
        }
    }
}
