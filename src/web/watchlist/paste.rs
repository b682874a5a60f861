//! Parses a pasted list of names with any separators, or a CSV file with a header line.

use rustc_hash::FxHashMap;

use crate::accounts::{Tags, WatchPatch};
use crate::vocab::cell::unguarded;
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::number::DecimalMark;

/// Columns of a CSV file with names.
const NAME_COLUMNS: [&str; 2] = ["domain", "name"];

/// A name as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Number of its line, from 1.
    pub line: usize,
    pub name: String,
    /// The name, or the whole row of a CSV file.
    pub text: String,
}

/// A name that was rejected.
#[derive(Debug, PartialEq, Eq)]
pub struct Rejected {
    pub sent: Sent,
    pub why: String,
}

/// The distinct names of a text with their notes, and the rejected items.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    pub names: Vec<(Sent, DomainName, WatchPatch)>,
    pub rejected: Vec<Rejected>,
    /// Items in all, repeated ones included.
    pub items: usize,
    /// The header line of a CSV file. Without it, rejected rows could not be sent again.
    pub header: Option<String>,
}

impl Pasted {
    /// Parses a text. Separators are white space, commas, semicolons, bars and quotes, which no name
    /// contains. A text whose first line names a column `domain` or `name` is a CSV file, with commas,
    /// semicolons or tabs between its cells.
    pub fn parse(text: &str) -> Pasted {
        let text = text.trim_start_matches('\u{feff}');
        let mut pasted = Pasted::default();
        match Columns::of(text) {
            Some(columns) => pasted.read_csv(text, &columns),
            None => {
                for (at, line) in text.lines().enumerate() {
                    for item in items(line) {
                        let (name, text) = (item.to_owned(), item.to_owned());
                        pasted.add(Sent { line: at + 1, name, text }, Ok(WatchPatch::default()));
                    }
                }
            }
        }
        pasted.reject_repeated();
        pasted
    }

    fn read_csv(&mut self, text: &str, columns: &Columns) {
        let mut reader = columns.reader(text);
        self.header = text.lines().next().map(str::to_owned);
        let mut row = csv::StringRecord::new();
        // Cells are text already, so that reading cannot fail.
        let (mut start, mut line) = (0, 1);
        while reader.read_record(&mut row).is_ok_and(|is_more| is_more) {
            let end = reader.position().byte() as usize;
            let raw = &text[start..end];
            let sent = raw.trim_start_matches(['\r', '\n']);
            let before = raw[..raw.len() - sent.len()].matches('\n').count();
            let name = row.get(columns.name).unwrap_or_default().trim().to_owned();
            // The header and rows of empty cells are skipped.
            if start > 0 && row.iter().any(|cell| !cell.trim().is_empty()) {
                let text = sent.trim_end_matches(['\r', '\n']).to_owned();
                let patch = columns.patch(&row, &text);
                self.add(Sent { line: line + before, name, text }, patch);
            }
            line += raw.matches('\n').count();
            start = end;
        }
    }

    fn add(&mut self, sent: Sent, patch: Result<WatchPatch, String>) {
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

    /// Keeps the first of repeated names. Notes of the others are not lost: their rows are rejected.
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

/// Positions of the columns that are read.
struct Columns {
    delimiter: u8,
    len: usize,
    name: usize,
    tags: Option<usize>,
    max_bid: Option<usize>,
    venue: Option<usize>,
    note: Option<usize>,
}

impl Columns {
    /// The columns of a CSV file; `None` if the first line has no column of names.
    fn of(text: &str) -> Option<Columns> {
        let first = text.lines().next()?;
        let often = |delimiter: &u8| first.bytes().filter(|byte| byte == delimiter).count();
        // Of delimiters that occur as often, the last.
        let delimiter = *[b'\t', b';', b','].iter().max_by_key(|it| often(it))?;
        let header = first.split(char::from(delimiter));
        let header: Vec<_> =
            header.map(|cell| cell.trim().trim_matches('"').to_lowercase()).collect();
        let place =
            |names: &[&str]| header.iter().position(|column| names.contains(&column.as_str()));
        Some(Columns {
            delimiter,
            len: header.len(),
            name: place(&NAME_COLUMNS)?,
            tags: place(&["tags", "tag"]),
            max_bid: place(&["max_bid_usd", "max_bid", "bid"]),
            venue: place(&["venue"]),
            note: place(&["note", "notes"]),
        })
    }

    fn reader<'t>(&self, text: &'t str) -> csv::Reader<&'t [u8]> {
        csv::ReaderBuilder::new()
            .flexible(true)
            .has_headers(false)
            .delimiter(self.delimiter)
            .from_reader(text.as_bytes())
    }

    /// Reads the notes of a row, which was sent as `text`. Empty cells change nothing.
    fn patch(&self, row: &csv::StringRecord, text: &str) -> Result<WatchPatch, String> {
        if text.matches('"').count() % 2 == 1 {
            return Err("a quote is not closed".to_owned());
        }
        if row.len() > self.len {
            let (cells, columns) = (row.len(), self.len);
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
            max_bid: bid.map_err(|err| format!("column max_bid_usd {err}"))?.map(Some),
            venue: cell(self.venue).map(|text| Some(text.to_owned())),
            alerts: None,
        })
    }
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

    /// Line, text and reason of each rejected item.
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
            alerts: None,
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
        // A list that begins with no header.
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
        // An unquoted decimal comma is one cell too many.
        assert!(bid("domain,max_bid_usd", "a.com,12,50").is_err());
    }
}
