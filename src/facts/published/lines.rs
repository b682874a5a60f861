//! Lines of a published file, and the account of those that are not used.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use serde::Serialize;

use super::PublishedError;
use super::sorter::Sorter;
use crate::report::LISTED_MAX;
use crate::vocab::name::{DomainName, NameError};

/// Maximum bytes of a line. The longest line of a sound file has a name of 253 bytes and a few numbers.
const LINE_BYTES_MAX: u64 = 4 << 10;
/// Bytes that show the kind of a file: the signature of a tar archive is 262 bytes after its start.
const HEAD_BYTES: u64 = 512;
/// A file with more refused lines than one in this many is refused.
const BAD_SHARE: u64 = 10;

/// A line that is not of the format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadLine {
    /// The file, as its address or archive names it.
    pub file: String,
    pub line: u64,
    pub reason: String,
}

/// Account of the lines of an edition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedReport {
    /// Lines other than headers, comments and blank ones.
    pub lines: u64,
    /// Lines about hosts, addresses and suffixes, which are not registrable names.
    pub skipped: u64,
    pub refused_lines: u64,
    /// The first of them.
    pub refused: Vec<BadLine>,
}

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadText {
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("not UTF-8")]
    NotText,
    #[error("expected {expected} columns, found {found}")]
    Columns { found: usize, expected: usize },
    #[error("column {0} is not a number from 1 to 4294967295")]
    Number(&'static str),
    #[error("the rank is not after the one of the line before")]
    Order,
    #[error("the rank is not a multiple of 1000")]
    Bucket,
    #[error("the origin is not an http or https address")]
    Origin,
}

/// The numbers of a row.
pub(super) type Numbers = [u32; 3];

/// The meaning of a line.
pub(super) enum Line {
    Row(DomainName, Numbers),
    /// A row that is not about a registrable name.
    Skipped,
    /// A comment or blank line.
    Nothing,
}

impl Line {
    /// Returns the row of a name. Sound lists also have public suffixes, addresses in numbers, hosts below a name
    /// and names below a private suffix, which are skipped.
    pub(super) fn of(
        name: Result<DomainName, NameError>,
        numbers: Numbers,
    ) -> Result<Line, BadText> {
        match name {
            Ok(name) => Ok(Line::Row(name, numbers)),
            Err(
                NameError::SingleLabel
                | NameError::UnknownSuffix
                | NameError::IsPublicSuffix
                | NameError::PrivateSuffix
                | NameError::BelowRegistrable,
            ) => Ok(Line::Skipped),
            Err(err) => Err(err.into()),
        }
    }
}

/// Reads the start of a file. Returns it with the complete file.
pub(super) fn peek<R: Read>(mut input: R) -> Result<(Vec<u8>, impl Read), PublishedError> {
    let mut head = Vec::new();
    (&mut input).take(HEAD_BYTES).read_to_end(&mut head).map_err(PublishedError::Unpack)?;
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
    match text.first() {
        None => Err(PublishedError::Empty),
        Some(b'<') => Err(PublishedError::WebPage),
        Some(_) => Ok((head.clone(), Cursor::new(head).chain(input))),
    }
}

/// Sorts the rows of files, and counts their lines.
pub(super) struct Reader {
    pub(super) sorter: Sorter<3>,
    pub(super) report: PublishedReport,
    /// Whether any file has a registrable name.
    has_names: bool,
}

impl Reader {
    pub(super) fn new(sorter: Sorter<3>) -> Reader {
        Reader { sorter, report: PublishedReport::default(), has_names: false }
    }

    /// Reads a file: the header, if the format has one, then at most `rows` rows.
    pub(super) fn file(
        &mut self,
        file: &str,
        input: impl Read,
        header: Option<&'static str>,
        rows: u64,
        mut parse: impl FnMut(&str) -> Result<Line, BadText>,
    ) -> Result<(), PublishedError> {
        let mut input = BufReader::with_capacity(128 << 10, input);
        let (mut line, mut left) = (Vec::new(), rows);
        for number in 1_u64.. {
            let Some(text) = next(&mut input, &mut line, number)? else {
                let missing = header.filter(|_| number == 1);
                return missing.map_or(Ok(()), |header| Err(PublishedError::Header(header)));
            };
            if let Some(header) = header.filter(|_| number == 1) {
                if text != header.as_bytes() {
                    return Err(PublishedError::Header(header));
                }
                continue;
            }
            let text = std::str::from_utf8(text).map_err(|_| BadText::NotText);
            let found = text.and_then(&mut parse);
            if matches!(found, Ok(Line::Nothing)) {
                continue;
            }
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            self.report.lines += 1;
            match found {
                Ok(Line::Row(name, numbers)) => {
                    self.has_names = true;
                    self.sorter.push(&name, numbers).map_err(PublishedError::Scratch)?;
                }
                Ok(_) => self.report.skipped += 1,
                Err(why) => self.refuse(file, number, why),
            }
        }
        Ok(())
    }

    fn refuse(&mut self, file: &str, line: u64, why: BadText) {
        self.report.refused_lines += 1;
        if self.report.refused.len() < LISTED_MAX {
            let (file, reason) = (file.to_owned(), why.to_string());
            self.report.refused.push(BadLine { file, line, reason });
        }
    }

    /// Checks the account of all files.
    pub(super) fn check(&self) -> Result<(), PublishedError> {
        let PublishedReport { lines, refused_lines: bad, refused, .. } = &self.report;
        match refused.first() {
            Some(first) if bad * BAD_SHARE > *lines => {
                Err(PublishedError::BadLines { bad: *bad, lines: *lines, first: first.clone() })
            }
            _ if !self.has_names => Err(PublishedError::NoNames),
            _ => Ok(()),
        }
    }
}

/// Reads the next line, without its line break and a byte order mark; `None` at the end.
fn next<'a>(
    input: &mut impl BufRead,
    line: &'a mut Vec<u8>,
    number: u64,
) -> Result<Option<&'a [u8]>, PublishedError> {
    line.clear();
    let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line);
    let read: io::Result<usize> = read;
    if read.map_err(PublishedError::Unpack)? as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
        return Err(PublishedError::LongLine(number));
    }
    let is_end = line.is_empty();
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let text = if number == 1 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
    Ok((!is_end).then_some(text))
}
