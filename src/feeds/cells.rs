//! Cells of a list by the names of their columns or keys, for what lists say beside names and days.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::value::RawValue;

use super::FeedError;
use super::Row;
use super::columns::Header;
use super::container::{self, HEAD_BYTES};
use super::error::FeedProblem;
use super::head::Head;
use super::json::Elements;
use super::lines::{LineRows, Parsed, RowParser, pick};
use super::rejects::RejectReason;
use crate::vocab::header;

/// A name, and the cells of its row, empty where the row has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCells<const N: usize> {
    pub name: String,
    pub cells: [String; N],
}

/// Names of a column, as [`header::plain`] writes them. Of several columns, that with the first name counts.
pub type ColumnNames = &'static [&'static str];

/// Reads the cells of a table with a header, or of a JSON list. `each` gets every row with a name; other rows are
/// skipped. Returns which of the columns the list has; none of a list without a header or a column of names.
///
/// # Errors
/// The file cannot be read to its end.
pub fn each_row<const N: usize>(
    path: &Path,
    columns: [ColumnNames; N],
    each: impl FnMut(NamedCells<N>),
) -> Result<[bool; N], FeedError> {
    read(path, columns, each).map_err(|problem| FeedError::new(path, problem))
}

fn read<const N: usize>(
    path: &Path,
    columns: [ColumnNames; N],
    mut each: impl FnMut(NamedCells<N>),
) -> Result<[bool; N], FeedProblem> {
    let text = container::open(path)?;
    let head = Head::new(&text.head, text.head.len() < HEAD_BYTES);
    if head.first().starts_with(['{', '[']) {
        let mut has = [false; N];
        let (mut elements, mut element) = (Elements::new(text.input), Vec::new());
        while let Some((_, is_whole)) = elements.next(&mut element)? {
            let Ok(object) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(&element) else {
                continue;
            };
            let cell = |rank: &dyn Fn(&str) -> Option<usize>| {
                let named = object.iter().filter_map(|(key, value)| Some((rank(key)?, value)));
                named.min_by_key(|(rank, _)| *rank).map(|(_, value)| text_of(value))
            };
            let cells = columns.map(|names| cell(&|key| header::rank(key, names)));
            has.iter_mut().zip(&cells).for_each(|(has, cell)| *has |= cell.is_some());
            if let Some(name) = cell(&header::domain_rank).filter(|_| is_whole) {
                each(NamedCells { name, cells: cells.map(Option::unwrap_or_default) });
            }
        }
        return Ok(has);
    }
    let Some(header) = Header::find(&head) else { return Ok([false; N]) };
    let at = |rank: &dyn Fn(&str) -> Option<usize>| {
        let named =
            header.cells.iter().enumerate().filter_map(|(at, cell)| Some((rank(cell)?, at)));
        named.min().map(|(_, at)| at)
    };
    let Some(name) = at(&header::domain_rank) else { return Ok([false; N]) };
    let cells = columns.map(|names| at(&|cell| header::rank(cell, names)));
    let parser = Table { name, cells, delimiter: header.delimiter };
    let rows = LineRows::new(text.input, parser).quoted(header.delimiter).skipping(header.line);
    for row in rows {
        if let Row::Seen(row) = row? {
            each(row);
        }
    }
    Ok(cells.map(|at| at.is_some()))
}

/// Returns the text of a string, number or word; nothing for null.
fn text_of(value: &RawValue) -> String {
    match value.get() {
        "null" => String::new(),
        json => serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()),
    }
}

/// Parser of the rows of a table.
struct Table<const N: usize> {
    name: usize,
    cells: [Option<usize>; N],
    delimiter: u8,
}

impl<const N: usize> RowParser for Table<N> {
    type Seen = NamedCells<N>;

    fn parse(&mut self, row: &str) -> Parsed<NamedCells<N>> {
        let ([name], _) = pick(row, self.delimiter, [Some(self.name)]);
        let (cells, count) = pick(row, self.delimiter, self.cells);
        let last = self.cells.into_iter().flatten().chain([self.name]).max();
        Some(if last.is_some_and(|last| last >= count) {
            Err(RejectReason::TooFewColumns)
        } else {
            Ok(NamedCells { name: name.to_owned(), cells: cells.map(str::to_owned) })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn rows(text: &str) -> ([bool; 2], Vec<String>) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), text).expect("written");
        let mut rows = Vec::new();
        let columns: [ColumnNames; 2] = [&["currentbid", "price"], &["bids"]];
        let has = each_row(file.path(), columns, |NamedCells { name, cells }| {
            rows.push(format!("{name}|{}", cells.join("|")));
        });
        (has.expect("read"), rows)
    }

    #[test]
    fn cells_are_found_by_the_names_of_columns_and_keys() {
        let both = [true, true];
        for (text, has, expected) in [
            (
                "Domain,Price,Bids,End Date\na.com,\"1,200\",3,x\nb.com,,,\n",
                both,
                ["a.com|1,200|3", "b.com||"],
            ),
            (
                "sep=;\n\"Bids\";\"Domain Name\";Current Bid;Price\n1;a.com;5;9\n;b.com;;9\n",
                both,
                ["a.com|5|1", "b.com||"],
            ),
            (
                r#"{"meta":{},"data":[{"domainName":"a.com","price":"$12","bids":3},{"name":"b.com","price":null,"bids":[1]}]}"#,
                both,
                ["a.com|$12|3", "b.com||[1]"],
            ),
            ("Domain,Price\na.com,7\nb.com,8\n", [true, false], ["a.com|7|", "b.com|8|"]),
        ] {
            assert_eq!(rows(text), (has, expected.map(str::to_owned).to_vec()), "{text}");
        }
        // Rows without a name, and rows that are cut short.
        assert_eq!(rows("Price,Domain,Bids\n7,a.com\n8,b.com,1\n").1, ["b.com|8|1"]);
        assert_eq!(
            rows(r#"[{"price":"$1"},7,{"domain":"a.com","price":true}]"#).1,
            ["a.com|true|"]
        );
        assert_eq!(rows("a.com\nb.com\n"), ([false; 2], Vec::new()));
    }
}
