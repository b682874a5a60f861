//! Parses a pasted list of names with any separators, or a CSV file with a header line.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::accounts::{Tags, WatchPatch};
use crate::vocab::cell::unguarded;
use crate::vocab::header;
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::number::DecimalMark;

/// Names of the columns besides the domain, as returned by [`header::plain`]. Of several columns for
/// one field, the first in this list is read.
const TAGS: [&str; 2] = ["tags", "tag"];
const MAX_BID: [&str; 4] = ["maxbidusd", "maxbid", "bidusd", "bid"];
const VENUE: [&str; 1] = ["venue"];
const NOTE: [&str; 2] = ["note", "notes"];
/// The columns that are read, for messages.
pub const COLUMNS: &str = "domain, tags, max_bid_usd, venue, note";
/// Number of rows that are examined to detect a table without a domain column.
const SAMPLE_ROWS: usize = 200;
/// Maximum characters of a header quoted in an error.
const HEADER_CHARS_MAX: usize = 80;

/// A name as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedName {
    /// Line number, from 1.
    pub line: usize,
    pub name: String,
    /// The name, or the whole row of a CSV file.
    pub text: String,
}

/// A name that was rejected.
#[derive(Debug, PartialEq, Eq)]
pub struct Rejected {
    pub sent: PastedName,
    pub why: String,
}

/// The distinct names in a text, with their notes, and the rejected items.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    pub names: Vec<(PastedName, DomainName, WatchPatch)>,
    pub rejected: Vec<Rejected>,
    /// Total number of items, including repeated ones.
    pub items: usize,
    /// The header line of a CSV file. Without the header line, rejected rows could not be sent
    /// again.
    pub header: Option<String>,
    /// Unread columns of a CSV file, as named in its header.
    pub unused: Vec<String>,
    /// Why nothing is read: the text is a table whose domain column cannot be identified.
    pub refusal: Option<String>,
}

impl Pasted {
    /// Parses a text. Separators are white space, commas, semicolons, bars and quotes, which no name
    /// contains. A text whose first line has a domain column is a CSV file, with commas, semicolons, tabs
    /// or bars between its cells; a preceding line such as `sep=;` declares the separator. Any other table
    /// is refused, because its cells may contain names that are not meant to be watched.
    pub fn parse(text: &str) -> Pasted {
        let text = text.trim_start_matches('\u{feff}');
        let start = Start::of(text);
        let mut pasted = Pasted::default();
        let rows = &text[start.at..];
        match CsvColumns::of(rows, &start.delimiters) {
            Some(columns) => pasted.read_csv(text, &start, columns),
            None if start.delimiters.iter().any(|it| is_table(rows, *it)) => {
                pasted.refusal = Some(no_domain_column(rows));
            }
            None => {
                for (at, line) in rows.lines().enumerate() {
                    for item in items(line) {
                        let (name, text) = (item.to_owned(), item.to_owned());
                        let line = start.line + at;
                        pasted.add(PastedName { line, name, text }, Ok(WatchPatch::default()));
                    }
                }
            }
        }
        pasted.reject_repeated();
        pasted
    }

    fn read_csv(&mut self, text: &str, place: &Start, columns: CsvColumns) {
        let rows = &text[place.at..];
        let mut reader = reader(rows, columns.delimiter);
        let mut row = csv::StringRecord::new();
        // Cells are already text, so reading cannot fail.
        let (mut start, mut line) = (0, place.line);
        while reader.read_record(&mut row).is_ok_and(|is_more| is_more) {
            let end = reader.position().byte() as usize;
            let raw = &rows[start..end];
            let sent = raw.trim_start_matches(['\r', '\n']);
            let before = raw[..raw.len() - sent.len()].matches('\n').count();
            let name = row.get(columns.name).unwrap_or_default().trim().to_owned();
            if start == 0 {
                // Includes the line that declares the separator.
                let header = text[..place.at + end].trim_matches(['\r', '\n']);
                self.header = Some(header.to_owned());
            } else if row.iter().any(|cell| !cell.trim().is_empty()) {
                let text = sent.trim_end_matches(['\r', '\n']).to_owned();
                let patch = columns.patch(&row, &text);
                self.add(PastedName { line: line + before, name, text }, patch);
            }
            line += raw.matches('\n').count();
            start = end;
        }
        self.unused = columns.unused();
    }

    fn add(&mut self, sent: PastedName, patch: Result<WatchPatch, String>) {
        self.items += 1;
        let name = match sent.name.as_str() {
            "" => Err("the row has no name".to_owned()),
            name => DomainName::parse_or_address(name).map_err(|err| err.to_string()),
        };
        match name.and_then(|name| Ok((name, patch?))) {
            Ok((name, patch)) => self.names.push((sent, name, patch)),
            Err(why) => self.rejected.push(Rejected { sent, why }),
        }
    }

    /// Keeps the first of repeated names. Other rows with notes are rejected, so that the notes are
    /// not lost.
    fn reject_repeated(&mut self) {
        let mut lines = FxHashMap::default();
        for (sent, name, patch) in std::mem::take(&mut self.names) {
            match lines.get(&name) {
                None => {
                    lines.insert(name.clone(), sent.line);
                    self.names.push((sent, name, patch));
                }
                Some(_) if patch == WatchPatch::default() => {}
                Some(line) => {
                    let why = format!("line {line} has this name already");
                    self.rejected.push(Rejected { sent, why });
                }
            }
        }
    }
}

/// The first row of a text: its position and possible separators.
struct Start {
    at: usize,
    /// Line number, from 1.
    line: usize,
    delimiters: Vec<u8>,
}

impl Start {
    /// Skips blank lines, and a line that declares the separator.
    fn of(text: &str) -> Start {
        let mut start = Start { at: 0, line: 1, delimiters: header::DELIMITERS.to_vec() };
        for line in text.split_inclusive('\n') {
            match header::declared_delimiter(line) {
                Some(declared) if start.delimiters.len() > 1 => start.delimiters = vec![declared],
                _ if line.trim().is_empty() => {}
                _ => break,
            }
            (start.at, start.line) = (start.at + line.len(), start.line + 1);
        }
        start
    }
}

fn reader(rows: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .flexible(true)
        .has_headers(false)
        .delimiter(delimiter)
        .from_reader(rows.as_bytes())
}

/// Returns the first rows that are not blank.
fn sample(rows: &str, delimiter: u8) -> impl Iterator<Item = csv::StringRecord> {
    let records = reader(rows, delimiter).into_records().map_while(Result::ok);
    records.filter(|row| row.iter().any(|cell| !cell.trim().is_empty())).take(SAMPLE_ROWS)
}

/// Returns true for rows that look like a table with a header: most rows have as many cells as the first,
/// and names occur in them but not in the first row.
fn is_table(rows: &str, delimiter: u8) -> bool {
    let has_name = |row: &csv::StringRecord| {
        row.iter().any(|cell| DomainName::parse_or_address(cell.trim()).is_ok())
    };
    let mut rows = sample(rows, delimiter);
    let Some(first) = rows.next().filter(|first| first.len() > 1 && !has_name(first)) else {
        return false;
    };
    let (alike, others): (Vec<_>, Vec<_>) = rows.partition(|row| row.len() == first.len());
    alike.iter().any(has_name) && alike.len() >= others.len()
}

fn no_domain_column(rows: &str) -> String {
    let header: String =
        rows.lines().next().unwrap_or_default().trim().chars().take(HEADER_CHARS_MAX).collect();
    format!(
        "This looks like a table, and none of its columns is called domain ({header}). Call the column with the \
         names domain in the first line, or paste that column alone. Nothing was added."
    )
}

/// Columns of a CSV file, with the positions of those that are read.
struct CsvColumns {
    delimiter: u8,
    header: Vec<String>,
    name: usize,
    tags: Option<usize>,
    max_bid: Option<usize>,
    venue: Option<usize>,
    note: Option<usize>,
}

impl CsvColumns {
    /// Finds the columns of a CSV file; `None` if its first row has no domain column.
    fn of(rows: &str, delimiters: &[u8]) -> Option<CsvColumns> {
        let header = |delimiter| {
            let row = sample(rows, delimiter).next().unwrap_or_default();
            row.iter().map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
        };
        let headers = delimiters.iter().rev().map(|delimiter| (*delimiter, header(*delimiter)));
        let with_names = headers
            .filter_map(|(it, header)| Some((it, column(&header, header::domain_rank)?, header)));
        // Of separators that result in the same number of cells, the comma takes precedence.
        let (delimiter, name, header) = with_names.max_by_key(|(.., header)| header.len())?;
        let of = |names: &[&str]| column(&header, |cell| header::rank(cell, names));
        let (tags, max_bid, venue, note) = (of(&TAGS), of(&MAX_BID), of(&VENUE), of(&NOTE));
        Some(CsvColumns { delimiter, name, tags, max_bid, venue, note, header })
    }

    /// Returns the names of the unread columns.
    fn unused(&self) -> Vec<String> {
        let read = [Some(self.name), self.tags, self.max_bid, self.venue, self.note];
        let columns = (0..).zip(&self.header);
        let unused = columns.filter(|(at, cell)| !cell.is_empty() && !read.contains(&Some(*at)));
        unused.map(|(_, cell)| cell.clone()).collect()
    }

    /// Parses the notes of a row, which was sent as `text`. Empty cells change nothing.
    fn patch(&self, row: &csv::StringRecord, text: &str) -> Result<WatchPatch, String> {
        if text.matches('"').count() % 2 == 1 {
            return Err("a quote is not closed".to_owned());
        }
        if row.len() > self.header.len() {
            let (cells, columns) = (row.len(), self.header.len());
            return Err(format!(
                "the row has {cells} cells and the header has {columns}; put quotes around cells with separators"
            ));
        }
        let cell = |at: Option<usize>| {
            let text = at.and_then(|at| row.get(at)).unwrap_or_default().trim();
            (!text.is_empty()).then(|| unguarded(text))
        };
        let decimals = match self.delimiter {
            b';' => DecimalMark::Comma,
            _ => DecimalMark::Point,
        };
        let bid = cell(self.max_bid).map(|text| Usd::from_text(text, decimals)).transpose();
        let tags = cell(self.tags).map(tags).transpose()?;
        Ok(WatchPatch {
            note: cell(self.note).map(|text| Some(text.to_owned())),
            tags: tags.map(Tags::Add),
            max_bid: bid.map_err(|err| self.about(self.max_bid, &err))?.map(Some),
            venue: cell(self.venue).map(|text| Some(text.to_owned())),
            ..WatchPatch::default()
        })
    }

    /// Creates an error about a cell of the column at a position.
    fn about(&self, at: Option<usize>, err: &dyn fmt::Display) -> String {
        let column = at.and_then(|at| self.header.get(at)).map(String::as_str).unwrap_or_default();
        format!("column {column} {err}")
    }
}

/// Returns the position of the column with the lowest rank.
fn column(header: &[String], rank: impl Fn(&str) -> Option<usize>) -> Option<usize> {
    let ranked = (0..).zip(header).filter_map(|(at, cell)| Some((rank(cell)?, at)));
    ranked.min().map(|(_, at)| at)
}

/// Parses tags separated by commas.
pub fn tags(text: &str) -> Result<Vec<crate::vocab::tag::Tag>, String> {
    let tags = text.split(',').filter(|tag| !tag.trim().is_empty());
    tags.map(|tag| tag.parse().map_err(|err| format!("tags {err}"))).collect()
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    let separates = |char: char| char.is_whitespace() || ",;|\"'".contains(char);
    text.split(separates).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line, text and reason of each rejected item.
    fn rejected(pasted: &Pasted) -> Vec<(usize, &str, &str)> {
        let all = pasted.rejected.iter();
        all.map(|it| (it.sent.line, it.sent.text.as_str(), it.why.as_str())).collect()
    }

    #[test]
    fn names_are_split_at_any_separator() {
        let text = "a.com, b.de;c.net\r\n\"d.org\"\tA.COM | münchen.de  <b>.com www.a.com ,,";
        let pasted = Pasted::parse(text);
        let names: Vec<_> = pasted.names.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.com", "b.de", "c.net", "d.org", "xn--mnchen-3ya.de"]);
        let lines: Vec<_> = rejected(&pasted).iter().map(|it| (it.0, it.1)).collect();
        assert_eq!(lines, [(2, "<b>.com"), (2, "www.a.com")]);
        assert_eq!(pasted.items, 8);
        assert_eq!(Pasted::parse(" ,;\n"), Pasted::default());
    }

    #[test]
    fn a_csv_file_brings_its_notes() {
        let text = "\u{feff}Domain,dqs,tags,max_bid_usd,venue,note\r\n\
                    a.com,80,\"flip, keep\",\"$1,420.50\",DropCatch,\"two\nlines, '=1\"\r\n\
                    b.com,,,,,\r\n\
                    \r\n\
                    c.com,,,-3,,\r\n\
                    ,,,,,\r\n";
        let pasted = Pasted::parse(text);
        assert_eq!((pasted.names.len(), pasted.items), (2, 3));
        let (sent, name, patch) = &pasted.names[0];
        assert_eq!((sent.line, name.as_str()), (2, "a.com"));
        let expected = WatchPatch {
            note: Some(Some("two\nlines, '=1".to_owned())),
            tags: Some(Tags::Add(vec![
                "flip".parse().expect("a tag"),
                "keep".parse().expect("a tag"),
            ])),
            max_bid: Some(Usd::from_cents(142_050)),
            venue: Some(Some("DropCatch".to_owned())),
            ..WatchPatch::default()
        };
        assert_eq!(*patch, expected);
        assert_eq!(pasted.names[1].2, WatchPatch::default());
        let [(line, text, why)] = rejected(&pasted)[..] else { panic!("{pasted:?}") };
        assert_eq!((line, text), (6, "c.com,,,-3,,"));
        assert!(why.starts_with("column max_bid_usd must be"), "{why}");
        assert_eq!(pasted.header.as_deref(), Some("Domain,dqs,tags,max_bid_usd,venue,note"));
    }

    #[test]
    fn no_row_of_a_csv_file_is_lost() {
        let text = "domain;tags;note\n\
                    a.com;flip;one\n\
                    b.com;flip;one;two\n\
                    ;flip;whose\n\
                    A.com;;again\n\
                    a.com;;\n\
                    c.com;;\"open\n\
                    d.com;;\n";
        let pasted = Pasted::parse(text);
        assert_eq!(pasted.names.len(), 1);
        let whys = [
            (
                3,
                "b.com;flip;one;two",
                "the row has 4 cells and the header has 3; put quotes around cells with separators",
            ),
            (4, ";flip;whose", "the row has no name"),
            (7, "c.com;;\"open\nd.com;;", "a quote is not closed"),
            (5, "A.com;;again", "line 2 has this name already"),
        ];
        assert_eq!(rejected(&pasted), whys);
        assert_eq!(Pasted::parse("domain\na.com\nb.com\n").names.len(), 2);
        assert_eq!(Pasted::parse("name\ttags\na.com\tflip\n").names.len(), 1);
        // A list without a header.
        assert_eq!(Pasted::parse("name.com;domain.com").names.len(), 2);
    }

    #[test]
    fn bids_are_read_by_the_separator_of_their_file() {
        let bid = |header: &str, row: &str| {
            let pasted = Pasted::parse(&format!("{header}\n{row}\n"));
            let bid = pasted.names.first().and_then(|(_, _, patch)| patch.max_bid.flatten());
            bid.map(Usd::cents).ok_or_else(|| pasted.rejected[0].why.clone())
        };
        let semicolons = "domain;max_bid_usd";
        for (row, cents) in [
            ("a.com;12,50", 1250),
            ("a.com;12,5", 1250),
            ("a.com;1.250,00", 125_000),
            ("a.com;\"12,50\"", 1250),
            ("a.com;12.50", 1250),
            ("a.com;1250", 125_000),
        ] {
            assert_eq!(bid(semicolons, row), Ok(cents), "{row}");
        }
        for row in ["a.com;1,250", "a.com;1.250", "a.com;12,50,0"] {
            assert!(bid(semicolons, row).is_err(), "{row}");
        }
        for header in ["domain,max_bid_usd", "domain\tmax_bid_usd"] {
            let row = |bid: &str| match header.contains(',') {
                true => format!("a.com,\"{bid}\""),
                false => format!("a.com\t{bid}"),
            };
            assert_eq!(bid(header, &row("1,250.00")), Ok(125_000));
            assert_eq!(bid(header, &row("1,250")), Ok(125_000));
            let refused = bid(header, &row("12,50")).expect_err("a decimal comma");
            assert!(refused.ends_with("write 12.50, not \"12,50\""), "{refused}");
        }
        // An unquoted decimal comma results in one cell too many.
        assert!(bid("domain,max_bid_usd", "a.com,12,50").is_err());
    }

    #[test]
    fn columns_that_are_not_read_are_named() {
        for (header, unused) in [
            ("Domain;Höchstgebot;Bemerkung", &["Höchstgebot", "Bemerkung"][..]),
            ("domain;bid;max bid;maxBidUsd", &["bid", "max bid"]),
            ("Max Bid;bid;domain", &["bid"]),
            ("bid;domain;bid", &["bid"]),
            ("name;Domain Name;note;notes", &["name", "notes"]),
            ("domain;;tags;venue;note;max_bid_usd", &[]),
        ] {
            let cells = header.split(';').count() - 1;
            let row = (0..=cells).map(|_| "a.com").collect::<Vec<_>>().join(";");
            let pasted = Pasted::parse(&format!("{header}\n{row}\n"));
            assert_eq!(pasted.unused, unused, "{header}");
            assert_eq!(pasted.items, 1, "{header}");
        }
        let pasted = Pasted::parse("domain;bid;max bid;maxBidUsd\na.com;1;2;3\n");
        assert_eq!(pasted.names[0].2.max_bid, Some(Usd::from_cents(300)));
        let pasted = Pasted::parse("domain;Bid\na.com;twelve\n");
        assert!(pasted.rejected[0].why.starts_with("column Bid must be"), "{pasted:?}");
    }

    #[test]
    fn every_name_of_the_domain_column_that_lists_have_is_known() {
        for header in ["Nom de domaine", "DOMAIN_NAME", "domeinnaam", "\"dominio\"", "fqdn"] {
            let pasted = Pasted::parse(&format!("{header};Händler\nalpha1.com;sedo.com\n"));
            let names: Vec<_> = pasted.names.iter().map(|(_, name, _)| name.as_str()).collect();
            assert_eq!(names, ["alpha1.com"], "{header}");
            assert_eq!(pasted.unused, ["Händler"]);
        }
    }

    #[test]
    fn a_table_without_a_domain_column_is_refused() {
        for text in [
            "Domänename;Gebot;Händler\nalpha1.com;12,50;sedo.com\n",
            "sep=;\nDomänename;Gebot\nalpha1.com;12,50\nalpha2.com;1\n",
            "\n\nAsset,Broker\r\nalpha1.com,sedo.com\r\n\r\nalpha2.com,\r\n",
            "Asset\tBroker\nalpha1.com\tsedo.com\n",
            "Asset|Broker\nalpha1.com|sedo.com\nalpha2.com|a|b\n",
            "\"Asset, all\",Broker\n\"alpha1.com\",sedo.com\n",
        ] {
            let pasted = Pasted::parse(text);
            let refusal = pasted.refusal.clone().unwrap_or_default();
            assert!(refusal.contains("called domain"), "{text}: {pasted:?}");
            assert_eq!((pasted.items, pasted.names.len()), (0, 0), "{text}");
        }
        for (text, names) in [
            // A first row with a name is not a header.
            ("alpha1.com;12,50;sedo.com\nalpha2.com;1;sedo.com\n", 3),
            ("My names\nalpha1.com\nalpha2.com\n", 2),
            ("Please add, thanks:\nalpha1.com\nalpha2.com, alpha3.com, alpha4.com\n", 4),
            ("alpha1.com, alpha2.com", 2),
        ] {
            let pasted = Pasted::parse(text);
            assert_eq!((pasted.refusal, pasted.names.len()), (None, names), "{text}");
        }
    }

    #[test]
    fn a_first_line_may_declare_the_separator() {
        for (text, cents) in [
            ("sep=;\ndomain;bid\na.com;12,50\n", 1250),
            ("\u{feff}\"sep=;\"\r\n\r\nDomain;Bid\r\na.com;12,50\r\n", 1250),
            ("SEP=,\ndomain,bid\na.com,\"1,250\"\n", 125_000),
            ("sep=|\ndomain|bid\na.com|12.5\n", 1250),
            ("sep=\t\ndomain\tbid\na.com\t12.5\n", 1250),
            ("\ndomain;bid\na.com;12,50\n", 1250),
        ] {
            let pasted = Pasted::parse(text);
            assert_eq!(pasted.rejected, [], "{text}");
            assert_eq!(pasted.names[0].2.max_bid, Some(Usd::from_cents(cents)), "{text}");
        }
        // Rejected rows can be sent again with the declaration, and lines are counted from the start
        // of the text.
        let pasted = Pasted::parse("sep=;\ndomain;bid\na.com;x\n");
        assert_eq!(pasted.header.as_deref(), Some("sep=;\ndomain;bid"));
        assert_eq!(pasted.rejected[0].sent.line, 3);
        let pasted = Pasted::parse("sep=;\na.com;b.com\nwww.c.com\n");
        assert_eq!((pasted.names.len(), pasted.rejected[0].sent.line), (2, 3));
    }
}
