//! Rows that could not be read: where they stood, why, and what they said.

use crate::vocab::name::NameError;

/// Characters of a bad row that are kept: enough to find it, and a rejects file stays small.
pub const REJECT_TEXT_CHARS_MAX: usize = 200;

/// One row that was not understood. Reading goes on after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Line of the unpacked text on which the row starts, counted from 1.
    pub line: u64,
    /// Why it was not understood.
    pub reason: RejectReason,
    /// The row, cut to [`REJECT_TEXT_CHARS_MAX`] characters, control characters escaped so that
    /// it is one line whatever the list held.
    pub text: String,
}

impl Reject {
    pub(super) fn new(line: u64, reason: RejectReason, row: &[u8]) -> Reject {
        let text = one_line(row, REJECT_TEXT_CHARS_MAX);
        Reject { line, reason, text }
    }
}

/// The start of a text for people: cut, on one line, and without what would steer a terminal.
pub(super) fn one_line(text: &[u8], chars_max: usize) -> String {
    // A character is at most four bytes; the rest need not be decoded.
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

/// Why a row was not understood. The texts name columns as our native CSV does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RejectReason {
    #[error("{0}")]
    Name(NameError),
    #[error("the row names no domain")]
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
    #[error("`{0}` is not a date")]
    BadDate(&'static str),
    #[error("the date may be day first or month first; write it as YYYY-MM-DD")]
    AmbiguousDate,
    #[error("`observed_at` is neither a date nor a time stamp with a zone (RFC 3339)")]
    BadTime,
    #[error("`status` is none of registered, redemption, pending-delete, available, unknown")]
    BadStatus,
    #[error("`{0}` is neither true nor false")]
    BadFlag(&'static str),
    #[error("not a JSON object: {0}")]
    BadJson(String),
    #[error("$INCLUDE, $GENERATE and unknown directives of zone files are not followed")]
    ZoneDirective,
    #[error("not a resource record")]
    BadRecord,
}

impl RejectReason {
    /// A short stable word for counts and rejects files.
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
    fn the_text_is_one_short_line() {
        let reject = Reject::new(3, RejectReason::InvalidUtf8, b"a\x1b[2J\r\0\xff.com\tb");
        assert_eq!(reject.text, "a\\u{1b}[2J\\r\\u{0}\u{fffd}.com\\tb");
        let reject = Reject::new(3, RejectReason::TooLong, "é".repeat(5_000).as_bytes());
        assert_eq!(reject.text, "é".repeat(200));
    }
}
