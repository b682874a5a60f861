//! Rows that could not be read, with line, reason and text.

use crate::vocab::name::NameError;

/// Number of characters that are kept of a rejected row, so that rejects files stay small.
pub const REJECT_TEXT_CHARS_MAX: usize = 200;

/// A row that could not be read. Reading continues after such a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Line of the unpacked text where the row starts, counted from 1.
    pub line: u64,
    pub reason: RejectReason,
    /// The row, truncated to [`REJECT_TEXT_CHARS_MAX`] characters, with control characters escaped so
    /// that it is one line.
    pub text: String,
}

impl Reject {
    pub(super) fn new(line: u64, reason: RejectReason, row: &[u8]) -> Reject {
        let text = one_line(row, REJECT_TEXT_CHARS_MAX);
        Reject { line, reason, text }
    }
}

/// Returns the start of a text for messages: truncated, on one line, with control characters
/// escaped.
pub(super) fn one_line(text: &[u8], chars_max: usize) -> String {
    // A character has at most four bytes, so the rest need not be decoded.
    let head = &text[..text.len().min(chars_max * 4)];
    let mut line = String::new();
    for char in String::from_utf8_lossy(head).chars().take(chars_max) {
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    line
}

/// Reason why a row was rejected. The texts use the column names of native CSV.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RejectReason {
    #[error("{0}")]
    Name(NameError),
    #[error("the row has no domain")]
    MissingName,
    #[error("the line is not UTF-8")]
    InvalidUtf8,
    #[error("the row is longer than 1 MiB")]
    TooLong,
    #[error("a quote is not closed, or text follows a closing quote")]
    BadQuotes,
    #[error("the row has fewer columns than it needs")]
    TooFewColumns,
    #[error("the row has no date")]
    MissingDate,
    #[error("`{0}` is not a date; write it as YYYY-MM-DD, with two digits each for month and day")]
    BadDate(&'static str),
    #[error("the date may be day first or month first; write it as YYYY-MM-DD")]
    AmbiguousDate,
    #[error("`observed_at` is neither a date nor a time stamp with a zone (RFC 3339)")]
    BadTime,
    #[error("`status` is not one of registered, redemption, pending-delete, available, unknown")]
    BadStatus,
    #[error("`{0}` is neither true nor false")]
    BadFlag(&'static str),
    #[error("not a JSON object: {0}")]
    BadJson(String),
    #[error("$INCLUDE, $GENERATE and unknown directives of zone files are not followed")]
    ZoneDirective,
    #[error("not a resource record")]
    BadRecord,
    #[error("the rank is not a whole number from 1")]
    BadRank,
}

impl RejectReason {
    /// A stable code for counters and rejects files.
    pub fn code(&self) -> &'static str {
        match self {
            RejectReason::Name(error) => error.code(),
            RejectReason::MissingName => "missing-name",
            RejectReason::InvalidUtf8 => "invalid-utf8",
            RejectReason::TooLong => "too-long",
            RejectReason::BadQuotes => "bad-quotes",
            RejectReason::TooFewColumns => "too-few-columns",
            RejectReason::MissingDate => "missing-date",
            RejectReason::BadDate(_) => "bad-date",
            RejectReason::AmbiguousDate => "ambiguous-date",
            RejectReason::BadTime => "bad-time",
            RejectReason::BadStatus => "bad-status",
            RejectReason::BadFlag(_) => "bad-flag",
            RejectReason::BadJson(_) => "bad-json",
            RejectReason::ZoneDirective => "zone-directive",
            RejectReason::BadRecord => "bad-record",
            RejectReason::BadRank => "bad-rank",
        }
    }
}

impl From<NameError> for RejectReason {
    fn from(error: NameError) -> RejectReason {
        RejectReason::Name(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reject_texts_are_one_short_line() {
        let reject = Reject::new(3, RejectReason::InvalidUtf8, b"a\x1b[2J\r\0\xff.com\tb");
        assert_eq!(reject.text, "a\\u{1b}[2J\\r\\u{0}\u{fffd}.com\\tb");
        let reject = Reject::new(3, RejectReason::TooLong, "é".repeat(5_000).as_bytes());
        assert_eq!(reject.text, "é".repeat(200));
    }
}
