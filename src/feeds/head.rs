//! The start of a text, by which its format is recognised.

use super::names;
use super::rejects::one_line;

/// Number of leading rows by which formats without a header are recognised.
const SAMPLE_ROWS: usize = 200;

/// Maximum characters of a text in messages.
const START_CHARS_MAX: usize = 60;

/// The first rows of a text, without blank lines.
pub(super) struct Head {
    /// Line number, counted from 1, and text without line ending.
    pub(super) lines: Vec<(u64, String)>,
}

impl Head {
    /// Splits the start of a text into lines. `whole` means that the text ends here with a complete
    /// last line.
    pub(super) fn new(text: &[u8], whole: bool) -> Head {
        let text = String::from_utf8_lossy(text);
        let complete = match text.rfind('\n') {
            Some(end) if !whole => &text[..end],
            _ => &text,
        };
        let lines = complete.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        Head { lines: lines.map(|(line, at)| (at, line.to_owned())).take(SAMPLE_ROWS).collect() }
    }

    pub(super) fn first(&self) -> &str {
        self.lines.first().map_or("", |(_, line)| line.trim())
    }

    /// The first row, for messages.
    pub(super) fn start(&self) -> String {
        one_line(self.first().as_bytes(), START_CHARS_MAX)
    }

    /// Counts the rows that fit a format, and all rows except comments.
    pub(super) fn fitting(&self, fits: impl Fn(&str) -> bool) -> Sample {
        let rows =
            || self.lines.iter().map(|(_, line)| line.trim()).filter(|line| names::is_row(line));
        Sample { fit: rows().filter(|line| fits(line)).count(), rows: rows().count() }
    }
}

/// Number of rows that fit a format, and number of all sampled rows.
pub(super) struct Sample {
    pub(super) fit: usize,
    pub(super) rows: usize,
}
