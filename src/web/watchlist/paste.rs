//! Parses a pasted list of names with any separators, or a CSV file with a header line.

use crate::accounts::{Tags, WatchPatch};
use crate::http::body::Money;
use crate::vocab::name::DomainName;

/// Columns of a CSV file with names.
const NAME_COLUMNS: [&str; 2] = ["domain", "name"];

/// A rejected item and its error.
#[derive(Debug, PartialEq, Eq)]
pub struct Rejected {
    pub text: String,
    pub why: String,
}

/// The distinct names of a text with their notes, and the rejected items.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    pub names: Vec<(DomainName, WatchPatch)>,
    pub rejected: Vec<Rejected>,
    /// Items in all, repeated ones included.
    pub items: usize,
}

impl Pasted {
    /// Parses a text. Separators are white space, commas, semicolons, bars and quotes, which no name
    /// contains. A text whose first line names a column `domain` or `name` and others is a CSV file.
    pub fn parse(text: &str) -> Pasted {
        let mut pasted = Pasted::default();
        match csv_of(text) {
            Some((mut reader, columns)) => {
                for row in reader.records().filter_map(Result::ok) {
                    let name = row.get(columns.name).unwrap_or_default().trim();
                    if !name.is_empty() {
                        pasted.add(name, columns.patch(&row));
                    }
                }
            }
            None => items(text).for_each(|item| pasted.add(item, Ok(WatchPatch::default()))),
        }
        let mut seen = rustc_hash::FxHashSet::default();
        pasted.names.retain(|(name, _)| seen.insert(name.clone()));
        pasted
    }

    fn add(&mut self, text: &str, patch: Result<WatchPatch, String>) {
        self.items += 1;
        let name = DomainName::parse(text).map_err(|err| err.to_string());
        match name.and_then(|name| Ok((name, patch?))) {
            Ok(entry) => self.names.push(entry),
            Err(why) => self.rejected.push(Rejected { text: text.to_owned(), why }),
        }
    }
}

/// Positions of the columns that are read.
struct Columns {
    name: usize,
    tags: Option<usize>,
    max_bid: Option<usize>,
    venue: Option<usize>,
    note: Option<usize>,
}

impl Columns {
    /// Reads the notes of a row. Empty cells change nothing.
    fn patch(&self, row: &csv::StringRecord) -> Result<WatchPatch, String> {
        let cell = |at: Option<usize>| {
            let text = at.and_then(|at| row.get(at)).unwrap_or_default().trim();
            (!text.is_empty()).then(|| without_guard(text))
        };
        let bid = cell(self.max_bid).map(|text| text.trim_start_matches('$').parse::<Money>());
        let tags = cell(self.tags).map(tags).transpose()?;
        Ok(WatchPatch {
            note: cell(self.note).map(|text| Some(text.to_owned())),
            tags: tags.map(Tags::Add),
            max_bid: bid
                .transpose()
                .map_err(|err| format!("max_bid_usd {err}"))?
                .map(|it| Some(it.0)),
            venue: cell(self.venue).map(|text| Some(text.to_owned())),
        })
    }
}

/// Parses tags separated by commas.
pub fn tags(text: &str) -> Result<Vec<crate::vocab::tag::Tag>, String> {
    let tags = text.split(',').filter(|tag| !tag.trim().is_empty());
    tags.map(|tag| tag.parse().map_err(|err| format!("tags {err}"))).collect()
}

/// Removes the apostrophe that exports put before texts that a spreadsheet takes for a formula.
fn without_guard(text: &str) -> &str {
    let rest = text.strip_prefix('\'');
    rest.filter(|rest| rest.starts_with(['=', '+', '-', '@'])).unwrap_or(text)
}

fn csv_of(text: &str) -> Option<(csv::Reader<&[u8]>, Columns)> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header: Vec<_> = reader.headers().ok()?.iter().map(|it| it.trim().to_lowercase()).collect();
    let place = |names: &[&str]| header.iter().position(|column| names.contains(&column.as_str()));
    let columns = Columns {
        name: place(&NAME_COLUMNS)?,
        tags: place(&["tags", "tag"]),
        max_bid: place(&["max_bid_usd", "max_bid", "bid"]),
        venue: place(&["venue"]),
        note: place(&["note", "notes"]),
    };
    (header.len() > 1).then_some((reader, columns))
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    let separates = |char: char| char.is_whitespace() || ",;|\"'".contains(char);
    text.split(separates).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::money::Usd;

    #[test]
    fn names_are_split_at_any_separator() {
        let text = "a.com, b.de;c.net\r\n\"d.org\"\tA.COM | münchen.de  <b>.com www.a.com ,,";
        let Pasted { names, rejected, items } = Pasted::parse(text);
        let names: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.com", "b.de", "c.net", "d.org", "xn--mnchen-3ya.de"]);
        let rejected: Vec<_> = rejected.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(rejected, ["<b>.com", "www.a.com"]);
        assert_eq!(items, 8);
        assert_eq!(Pasted::parse(" ,;\n"), Pasted::default());
    }

    #[test]
    fn a_csv_file_brings_its_notes() {
        let text = "\u{feff}Domain,dqs,tags,max_bid_usd,venue,note\r\n\
                    a.com,80,\"flip, keep\",$420.50,DropCatch,\"two\nlines, '=1\"\r\n\
                    b.com,,,,,\r\n\
                    c.com,,,-3,,\r\n\
                    ,,,,,\r\n";
        let Pasted { names, rejected, items } = Pasted::parse(text);
        assert_eq!((names.len(), items), (2, 3));
        let (name, patch) = &names[0];
        assert_eq!(name.as_str(), "a.com");
        let expected = WatchPatch {
            note: Some(Some("two\nlines, '=1".to_owned())),
            tags: Some(Tags::Add(vec![
                "flip".parse().expect("a tag"),
                "keep".parse().expect("a tag"),
            ])),
            max_bid: Some(Usd::from_cents(42_050)),
            venue: Some(Some("DropCatch".to_owned())),
        };
        assert_eq!(*patch, expected);
        assert_eq!(names[1].1, WatchPatch::default());
        assert!(rejected[0].text == "c.com" && rejected[0].why.starts_with("max_bid_usd must be"));
        assert_eq!(without_guard("'=1"), "=1");
    }
}
