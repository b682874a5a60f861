//! Text to rows of cells: finds the separator and the header row, and what the file is.

use csv::{Position, Reader, ReaderBuilder, StringRecord};

use crate::columns::{Fingerprint, Mapping, Role, names_a_fact};
use crate::headers::Header;
use crate::presets::Preset;
use crate::vocab::header;

/// Separators of cells, the rarest in other text first.
const DELIMITERS: [u8; 3] = [b'\t', b';', b','];
/// Rows in which the header is searched: exports begin with a title, a note or a period.
const HEADER_ROWS_MAX: usize = 20;
/// Bytes in which the header is searched.
const HEAD_BYTES: usize = 64 * 1024;
/// Maximum cells of a header.
const HEADER_CELLS_MAX: usize = 512;
/// Names, beside those of [`header::domain_rank`], of columns that hold a key.
const KEY_NAMES: [&str; 9] =
    ["url", "target", "item", "website", "host", "label", "word", "keyword", "domains"];

/// How the columns of a file are known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// Nothing describes them.
    Unknown,
    /// The header itself describes them.
    Canonical,
    Preset(&'static Preset),
    Mapped(&'a Mapping),
}

impl Shape<'_> {
    fn of<'a>(cells: &[&str], headers: &[Header], mappings: &'a [Mapping]) -> Option<Shape<'a>> {
        let fingerprint = Fingerprint::of(cells.iter().copied());
        if let Some(mapping) = mappings.iter().find(|mapping| mapping.is_for(fingerprint)) {
            return Some(Shape::Mapped(mapping));
        }
        if let Some(preset) = Preset::of(headers) {
            return Some(Shape::Preset(preset));
        }
        let is_key = |cell: &&str| matches!(cell.parse(), Ok(Role::Key(_)));
        if cells.iter().any(is_key) && cells.iter().any(|cell| names_a_fact(cell)) {
            return Some(Shape::Canonical);
        }
        let is_known = |cell: &&str| {
            header::domain_rank(cell).is_some() || header::rank(cell, &KEY_NAMES).is_some()
        };
        (cells.len() > 1 && cells.iter().any(is_known)).then_some(Shape::Unknown)
    }

    /// Order in which shapes are preferred.
    fn rank(self) -> u8 {
        match self {
            Shape::Unknown => 0,
            Shape::Canonical => 1,
            Shape::Preset(_) => 2,
            Shape::Mapped(_) => 3,
        }
    }
}

/// A file whose header row was found.
pub(crate) struct Table<'a> {
    text: &'a str,
    pub(crate) delimiter: u8,
    /// Position of the header among the rows of the file.
    header_at: usize,
    pub(crate) header_line: u64,
    /// The cells of the header as written.
    pub(crate) cells: Vec<String>,
    pub(crate) headers: Vec<Header>,
    pub(crate) shape: Shape<'a>,
}

/// A row below the header.
pub(crate) struct TableRow<'a> {
    pub(crate) line: u64,
    /// Number of lines of the file that the row covers.
    pub(crate) lines: u64,
    /// Whether every quote begins or ends a cell, or is doubled within one.
    pub(crate) is_well_quoted: bool,
    pub(crate) cells: &'a StringRecord,
}

impl<'a> Table<'a> {
    /// Finds the header; `None` if no row of the head has a column with a known name of a key.
    pub(crate) fn find(text: &'a str, mappings: &'a [Mapping]) -> Option<Table<'a>> {
        let end = (0..=HEAD_BYTES.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
        let head = &text[..end.unwrap_or_default()];
        let declared = header::declared_delimiter(head.lines().next().unwrap_or_default());
        let delimiters = declared.map_or(DELIMITERS.to_vec(), |delimiter| vec![delimiter]);
        let mut best: Option<Table<'a>> = None;
        for delimiter in delimiters {
            let mut rows = reader(head, delimiter).into_records();
            for header_at in 0..HEADER_ROWS_MAX {
                let Some(Ok(record)) = rows.next() else { break };
                if record.len() > HEADER_CELLS_MAX {
                    continue;
                }
                let cells: Vec<&str> = record.iter().collect();
                let headers = Header::row(cells.iter().copied());
                let Some(shape) = Shape::of(&cells, &headers, mappings) else { continue };
                let rank = |table: &Table<'_>| (table.shape.rank(), table.headers.len());
                if best.as_ref().is_none_or(|it| rank(it) < (shape.rank(), headers.len())) {
                    let (header_line, _) = lines(head, &record);
                    let cells = cells.into_iter().map(str::to_owned).collect();
                    best = Some(Table {
                        text,
                        delimiter,
                        header_at,
                        header_line,
                        cells,
                        headers,
                        shape,
                    });
                }
            }
        }
        best
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.cells.iter().map(String::as_str))
    }

    /// Calls `each` for every row below the header that has a cell with text.
    pub(crate) fn each_row(&self, mut each: impl FnMut(TableRow<'_>)) -> Result<(), csv::Error> {
        let mut reader = reader(self.text, self.delimiter);
        let mut cells = StringRecord::new();
        for _ in 0..=self.header_at {
            reader.read_record(&mut cells)?;
        }
        while reader.read_record(&mut cells)? {
            if cells.iter().any(|cell| !cell.trim().is_empty()) {
                let (line, breaks) = lines(self.text, &cells);
                let rest = start(self.text, &cells).len() as u64;
                let end = rest - (self.text.len() as u64 - reader.position().byte());
                let raw = &start(self.text, &cells).as_bytes()[..end as usize];
                let is_well_quoted = is_well_quoted(raw, self.delimiter);
                each(TableRow { line, lines: breaks + 1, is_well_quoted, cells: &cells });
            }
        }
        Ok(())
    }
}

fn reader(text: &str, delimiter: u8) -> Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_bytes())
}

/// Returns the line on which a row starts, and the line breaks within its cells. `csv` counts from the end of the
/// row above, before blank lines.
fn lines(text: &str, row: &StringRecord) -> (u64, u64) {
    let blanks = start(text, row).bytes().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    let blank_lines = blanks.filter(|byte| *byte == b'\n').count() as u64;
    let breaks = row.iter().map(|cell| cell.matches('\n').count() as u64).sum();
    (row.position().map_or(0, Position::line) + blank_lines, breaks)
}

/// Returns the text from the start of a row to the end of the file.
fn start<'a>(text: &'a str, row: &StringRecord) -> &'a str {
    let start = row.position().and_then(|position| usize::try_from(position.byte()).ok());
    start.and_then(|start| text.get(start..)).unwrap_or_default()
}

/// Checks the quotes of a row. `csv` reads any text, but a quote that is missing moves cells to other columns.
fn is_well_quoted(row: &[u8], delimiter: u8) -> bool {
    enum At {
        Start,
        Plain,
        Quoted,
        /// After a quote in a quoted cell, which ends the cell or is the first of two.
        Quote,
    }
    let mut at = At::Start;
    for &byte in row {
        let is_end = byte == delimiter || byte == b'\r' || byte == b'\n';
        at = match (at, byte) {
            (At::Start | At::Quote, b'"') => At::Quoted,
            (At::Quoted, b'"') => At::Quote,
            (At::Quoted, _) => At::Quoted,
            (At::Plain, b'"') => return false,
            (At::Start | At::Plain | At::Quote, _) if is_end => At::Start,
            (At::Start | At::Plain, _) => At::Plain,
            (At::Quote, _) => return false,
        };
    }
    !matches!(at, At::Quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (u8, u64, Vec<String>) {
        let table = Table::find(text, &[]).expect("a header");
        (table.delimiter, table.header_line, table.cells)
    }

    #[test]
    fn separators_and_headers_are_found() {
        for (text, delimiter, line) in [
            ("Domain,TF\nbrightmesa.com,3\n", b',', 1),
            ("Domain;TF\nbrightmesa.com;1,5\n", b';', 1),
            ("Domain\tTF\r\nbrightmesa.com\t3\r\n", b'\t', 1),
            ("sep=;\nDomain;TF\n", b';', 2),
            ("A title, with a comma\n\n\"Two\nlines\"\nDomain;TF\n", b';', 5),
        ] {
            let (got, at, cells) = found(text);
            assert_eq!((got, at), (delimiter, line), "{text}");
            assert_eq!(cells, ["Domain", "TF"], "{text}");
        }
        for text in
            ["", "\n", "brightmesa.com,3\n", "Domain\nbrightmesa.com\n", "sep=;\nDomain,TF\n"]
        {
            assert!(Table::find(text, &[]).is_none(), "{text}");
        }
        let late = "x,y\n".repeat(HEADER_ROWS_MAX) + "Domain,TF\n";
        assert!(Table::find(&late, &[]).is_none());
    }

    #[test]
    fn rows_know_their_lines() {
        let table =
            Table::find("Domain,Note\n\na.com,\"x\ny\"\n , \n\n\nb.com,z", &[]).expect("a header");
        let mut seen = Vec::new();
        table
            .each_row(|row| seen.push((row.line, row.lines, row.cells[0].to_owned())))
            .expect("read");
        assert_eq!(seen, [(3, 2, "a.com".to_owned()), (8, 1, "b.com".to_owned())]);
    }

    #[test]
    fn quotes_that_are_missing_or_too_many_are_noticed() {
        for good in ["a,b", "\"a\",\"\"", "\"a\"\"b,\",c", ",\"a\nb\"\r\n", ""] {
            assert!(is_well_quoted(good.as_bytes(), b','), "{good}");
        }
        for bad in ["\"a,b", "a\",b", "\"a\"b,c", "5\" disc", "\"a\"\",b"] {
            assert!(!is_well_quoted(bad.as_bytes(), b','), "{bad}");
        }
    }
}
