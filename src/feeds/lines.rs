//! Splits text into numbered rows in bounded memory.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;

use memchr::memchr;

use super::container::Input;
use super::error::FeedProblem;
use super::rejects::{Reject, RejectReason};
use super::{Observation, Row};

/// Maximum bytes of a row. A name has up to 253 bytes; the widest table rows of vendors have a few
/// thousand.
pub(super) const ROW_BYTES_MAX: usize = 1 << 20;
/// Maximum lines of a quoted field. Without this bound, one stray quote would swallow later rows.
const ROW_LINES_MAX: u64 = 16;
/// Number of bytes of an overlong row that are kept for its reject.
const ROW_HEAD_BYTES: usize = 1 << 10;
const BUFFER_BYTES: usize = 256 << 10;

/// A row of the text, without its line ending.
pub(super) struct Line<'a> {
    /// Number of the line where it starts, counted from 1.
    pub(super) number: u64,
    pub(super) bytes: Cow<'a, [u8]>,
    /// Reason why the row cannot be read, if already known.
    pub(super) flaw: Option<RejectReason>,
}

/// Splits a text into lines, or into rows whose quoted fields may contain line breaks.
pub(super) struct LineReader {
    input: Input,
    buffer: Vec<u8>,
    /// Range of the unconsumed bytes in `buffer`.
    held: Range<usize>,
    /// Number of the line that starts at `held.start`.
    number: u64,
}

enum LineEnd {
    /// Offset of the next line, relative to `held.start`.
    At(usize),
    TooLong,
    NoLine,
}

impl LineReader {
    pub(super) fn new(input: Input) -> LineReader {
        LineReader { input, buffer: vec![0; BUFFER_BYTES], held: 0..0, number: 1 }
    }

    /// Returns the next row, or `None` at the end. With a delimiter, a field that starts with a quote
    /// extends to its closing quote (RFC 4180), across line breaks.
    pub(super) fn next(&mut self, delimiter: Option<u8>) -> io::Result<Option<Line<'_>>> {
        let first = match self.line_end(0)? {
            LineEnd::At(end) => end,
            LineEnd::TooLong => return self.overlong().map(Some),
            LineEnd::NoLine => return Ok(None),
        };
        let Some(delimiter) = delimiter else { return Ok(Some(self.take(first, 1, None))) };
        let (mut end, mut lines) = (first, 1);
        let mut quotes = quotes(self.line(0..end), delimiter, false);
        while quotes == Quotes::Open && lines < ROW_LINES_MAX {
            let LineEnd::At(next) = self.line_end(end)? else { break };
            quotes = self::quotes(self.line(end..next), delimiter, true);
            (end, lines) = (next, lines + 1);
        }
        Ok(Some(match quotes {
            Quotes::Closed if end <= ROW_BYTES_MAX => self.take(end, lines, None),
            // Only the line with the quote is rejected, since the next one may be a valid row.
            _ => self.take(first, 1, Some(RejectReason::BadQuotes)),
        }))
    }

    /// Consumes the row that ends at `end`.
    fn take(&mut self, end: usize, lines: u64, flaw: Option<RejectReason>) -> Line<'_> {
        let from = self.held.start;
        let number = self.number;
        self.held.start += end;
        self.number += lines;
        Line { number, bytes: without_line_end(&self.buffer[from..from + end]).into(), flaw }
    }

    fn line(&self, offsets: Range<usize>) -> &[u8] {
        let from = self.held.start;
        without_line_end(&self.buffer[from + offsets.start..from + offsets.end])
    }

    /// End of the line that starts at offset `from`.
    fn line_end(&mut self, from: usize) -> io::Result<LineEnd> {
        let mut searched = from;
        loop {
            let held = &self.buffer[self.held.clone()];
            let newline = memchr(b'\n', &held[searched..]).map(|at| searched + at + 1);
            searched = newline.unwrap_or(held.len());
            if searched - from > ROW_BYTES_MAX {
                return Ok(LineEnd::TooLong);
            }
            if newline.is_some() {
                return Ok(LineEnd::At(searched));
            }
            if !self.fill()? {
                return Ok(if searched > from { LineEnd::At(searched) } else { LineEnd::NoLine });
            }
        }
    }

    /// Skips an overlong line and returns its start.
    fn overlong(&mut self) -> io::Result<Line<'static>> {
        let head = self.buffer[self.held.clone()][..ROW_HEAD_BYTES].to_vec();
        loop {
            let newline = memchr(b'\n', &self.buffer[self.held.clone()]);
            self.held.start = newline.map_or(self.held.end, |at| self.held.start + at + 1);
            if newline.is_some() || !self.fill()? {
                break;
            }
        }
        let number = self.number;
        self.number += 1;
        Ok(Line { number, bytes: head.into(), flaw: Some(RejectReason::TooLong) })
    }

    /// Reads more; returns false at the end of the text.
    fn fill(&mut self) -> io::Result<bool> {
        if self.held.start > 0 {
            self.buffer.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
        }
        if self.held.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let got = self.input.read(&mut self.buffer[self.held.end..])?;
        self.held.end += got;
        Ok(got > 0)
    }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Closed,
    Open,
    Misplaced,
}

/// State of the quotes at the end of a line. `inside` means that the line starts within a quoted
/// field.
fn quotes(line: &[u8], delimiter: u8, mut inside: bool) -> Quotes {
    let mut at = 0;
    while at < line.len() || inside {
        if !inside && line[at] != b'"' {
            match memchr(delimiter, &line[at..]) {
                Some(length) => at += length + 1,
                None => return Quotes::Closed,
            }
            continue;
        }
        at += usize::from(!inside);
        inside = true;
        let Some(length) = memchr(b'"', &line[at..]) else { return Quotes::Open };
        at += length + 1;
        match line.get(at) {
            None => return Quotes::Closed,
            Some(b'"') => at += 1,
            Some(&byte) if byte == delimiter => (at, inside) = (at + 1, false),
            Some(_) => return Quotes::Misplaced,
        }
    }
    Quotes::Closed
}

/// Splits a row with closed quotes into fields, without surrounding quotes and white space.
///
/// Doubled quotes within a field stay doubled, because no relevant field may contain a quote.
pub(super) fn split(row: &str, delimiter: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(row);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = field_end(text.as_bytes(), delimiter);
        rest = text.get(end + 1..);
        let field = &text[..end];
        let inner = field.strip_prefix('"').map(|open| open.strip_suffix('"').unwrap_or(open));
        Some(inner.unwrap_or(field).trim())
    })
}

/// Returns true for a row of empty fields, which spreadsheets write below their data.
fn is_blank(row: &[u8], delimiter: u8) -> bool {
    row.iter().all(|byte| *byte == delimiter || *byte == b'"' || byte.is_ascii_whitespace())
}

/// Returns true for `# a comment`. In a table, `#1` may be a value.
fn is_comment(row: &[u8]) -> bool {
    row.first() == Some(&b'#') && !row.get(1).is_some_and(u8::is_ascii_digit)
}

/// Returns a field, or an empty text for the markers with which programs denote a missing value.
pub(super) fn value(field: &str) -> &str {
    const NONE: [&str; 11] =
        ["null", "none", "nil", "n/a", "na", "#n/a", "nan", "\\n", "-", "--", "0000-00-00"];
    // Most fields are longer.
    let is_mark = field.len() <= 10 && NONE.iter().any(|none| field.eq_ignore_ascii_case(none));
    if is_mark || field == "\u{2013}" || field == "\u{2014}" { "" } else { field }
}

/// Returns the fields of a row at these positions, empty for a missing field or [`value`], and the total number of
/// fields.
pub(super) fn pick<const N: usize>(
    row: &str,
    delimiter: u8,
    positions: [Option<usize>; N],
) -> ([&str; N], usize) {
    let (mut picked, mut count) = ([""; N], 0);
    for field in split(row, delimiter) {
        for (slot, _) in picked.iter_mut().zip(positions).filter(|(_, at)| *at == Some(count)) {
            *slot = value(field);
        }
        count += 1;
    }
    (picked, count)
}

fn field_end(row: &[u8], delimiter: u8) -> usize {
    let mut at = 0;
    if row.first() == Some(&b'"') {
        at = 1;
        while let Some(length) = memchr(b'"', &row[at..]) {
            at += length + 1;
            if row.get(at) != Some(&b'"') {
                break;
            }
            at += 1;
        }
    }
    memchr(delimiter, &row[at..]).map_or(row.len(), |length| at + length)
}

/// A parsed row: an observation or a rank, a rejection, or `None` for a row to skip.
pub(super) type Parsed<T = Observation> = Option<Result<T, RejectReason>>;

/// Parser of a line-based format.
pub(super) trait RowParser: Send {
    /// Content of a row: an observation or a rank.
    type Seen;
    /// Whether irrelevant fields may contain bytes that are not UTF-8 (RFC 1035 §5.1).
    const IS_OCTETS: bool = false;

    fn parse(&mut self, row: &str) -> Parsed<Self::Seen>;
}

/// Rows of a line-based list.
pub(super) struct LineRows<P> {
    lines: LineReader,
    parser: P,
    /// The delimiter, if fields may be quoted.
    delimiter: Option<u8>,
    /// Last line of the header or the preamble.
    skip_through: u64,
}

impl<P: RowParser> LineRows<P> {
    pub(super) fn new(input: Input, parser: P) -> LineRows<P> {
        LineRows { lines: LineReader::new(input), parser, delimiter: None, skip_through: 0 }
    }

    /// Enables quoted fields.
    pub(super) fn quoted(mut self, delimiter: u8) -> LineRows<P> {
        self.delimiter = Some(delimiter);
        self
    }

    /// Skips the lines up to and including this one.
    pub(super) fn skipping(mut self, line: u64) -> LineRows<P> {
        self.skip_through = line;
        self
    }

    fn next_row(&mut self) -> Result<Option<Row<P::Seen>>, FeedProblem> {
        loop {
            let in_preamble = self.lines.number <= self.skip_through;
            let delimiter = self.delimiter.filter(|_| !in_preamble);
            let Some(line) = self.lines.next(delimiter)? else { return Ok(None) };
            if in_preamble {
                continue;
            }
            let is_blank = |delimiter| line.flaw.is_none() && is_blank(&line.bytes, delimiter);
            if delimiter.is_some_and(is_blank) {
                continue;
            }
            let parsed = match (line.flaw, std::str::from_utf8(&line.bytes)) {
                (Some(flaw), _) => Some(Err(flaw)),
                (None, Ok(text)) => self.parser.parse(text),
                (None, Err(_)) if P::IS_OCTETS => {
                    let parsed = self.parser.parse(&String::from_utf8_lossy(&line.bytes));
                    parsed.map(|seen| seen.map_err(|_| RejectReason::InvalidUtf8))
                }
                (None, Err(_)) => Some(Err(RejectReason::InvalidUtf8)),
            };
            match parsed {
                Some(Ok(seen)) => return Ok(Some(Row::Seen(seen))),
                Some(Err(_)) if delimiter.is_some() && is_comment(&line.bytes) => {}
                Some(Err(reason)) => {
                    let reject = Reject::new(line.number, reason, &line.bytes);
                    return Ok(Some(Row::Rejected(reject)));
                }
                None => {}
            }
        }
    }
}

impl<P: RowParser> Iterator for LineRows<P> {
    type Item = Result<Row<P::Seen>, FeedProblem>;

    fn next(&mut self) -> Option<Result<Row<P::Seen>, FeedProblem>> {
        self.next_row().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns `step` bytes per read, so that rows are split at every position.
    struct Slow(io::Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let step = buffer.len().min(self.1);
            self.0.read(&mut buffer[..step])
        }
    }

    fn rows(text: &[u8], step: usize, delimiter: Option<u8>) -> Vec<(u64, String, &'static str)> {
        let input = Slow(io::Cursor::new(text.to_vec()), step);
        let mut lines = LineReader::new(Box::new(input));
        let mut rows = Vec::new();
        while let Some(line) = lines.next(delimiter).expect("no I/O error") {
            let text = String::from_utf8_lossy(&line.bytes[..line.bytes.len().min(20)]);
            rows.push((line.number, text.into_owned(), line.flaw.map_or("", |flaw| flaw.code())));
        }
        rows
    }

    fn good(number: u64, text: &str) -> (u64, String, &'static str) {
        (number, text.into(), "")
    }

    #[test]
    fn lines_are_numbered_with_any_line_ending() {
        for step in [1, 2, 3, 100] {
            let got = rows(b"a\r\n\nb\nlast", step, None);
            assert_eq!(got, [good(1, "a"), good(2, ""), good(3, "b"), good(4, "last")]);
        }
        assert_eq!(rows(b"", 1, None), []);
        assert_eq!(rows(b"a\n", 1, None), [good(1, "a")]);
    }

    #[test]
    fn over_long_lines_are_skipped_and_counted() {
        let mut text = b"a\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 5 << 20));
        text.extend(b"\nb\n");
        for step in [4_096, 1 << 30] {
            let got = rows(&text, step, Some(b','));
            assert_eq!(got, [good(1, "a"), (2, "x".repeat(20), "too-long"), good(3, "b")]);
        }
        text.truncate(3 << 20);
        assert_eq!(rows(&text, 1 << 20, None)[1], (2, "x".repeat(20), "too-long"));
        let exact = [vec![b'x'; ROW_BYTES_MAX - 1], b"\ny".to_vec()].concat();
        assert_eq!(rows(&exact, 4_096, None).len(), 2);
        assert_eq!(rows(&exact, 4_096, None)[0].2, "");
    }

    #[test]
    fn quoted_fields_span_lines() {
        let text = b"a,\"x\ny\",b\n\"q\"\"q\",c\n5\" disk,d\n";
        for step in [1, 7, 100] {
            let got = rows(text, step, Some(b','));
            let want = [good(1, "a,\"x\ny\",b"), good(3, "\"q\"\"q\",c"), good(4, "5\" disk,d")];
            assert_eq!(got, want);
        }
    }

    #[test]
    fn a_stray_quote_rejects_one_row() {
        let text = b"a,\"x\nb,1\nc,\"2\nd,3\n";
        let got = rows(text, 3, Some(b','));
        let bad = |number, text: &str| (number, text.to_owned(), "bad-quotes");
        assert_eq!(got, [bad(1, "a,\"x"), good(2, "b,1"), bad(3, "c,\"2"), good(4, "d,3")]);
        let far = [b"a,\"x\n".to_vec(), b"b\n".repeat(20), b"\",c\n".to_vec()].concat();
        let got = rows(&far, 100, Some(b','));
        assert_eq!((got.len(), got[0].2, got[20].2, got[21].0), (22, "bad-quotes", "", 22));
    }

    #[test]
    fn rows_are_split_into_fields() {
        let fields = |row: &'static str| split(row, b';').collect::<Vec<_>>();
        assert_eq!(fields("a; b ;c"), ["a", "b", "c"]);
        assert_eq!(fields("\"a;b\";\"c\"\"d\";"), ["a;b", "c\"\"d", ""]);
        assert_eq!(fields(""), [""]);
        assert_eq!(fields("é;\"ü\""), ["é", "ü"]);
    }
}
