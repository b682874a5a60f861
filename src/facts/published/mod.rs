//! Readers of published files with facts about names: ranks of sites, and lists of names by category.
//! [`PublishedFacts::read`] takes the files of one edition and returns its rows in the order of their names. Files are
//! streamed and rows are sorted on disk, so that memory does not grow with them. [`FactsFolder`] keeps the editions.

mod categories;
mod folder;
mod gathered;
mod lines;
mod markets;
mod ranks;
mod sorter;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use self::folder::{FactsFolder, KeepError, Kept};
pub use self::gathered::{Gathered, GatheredRow};
pub use self::lines::{BadLine, PublishedReport};
pub use self::markets::{House, MarketList, MarketReport};

use self::lines::{Numbers, Reader, peek};
use self::sorter::{SortedRows, Sorter};
use crate::columns::{FactColumn, Role};
use crate::feeds::{self, FeedError};
use crate::store::Licence;
use crate::value::Value;
use crate::vocab::day::Day;
use crate::vocab::named::{named_enum, parse_named};

/// Number of rows of Common Crawl's ranks that are read unless the settings say otherwise, of about 120 million.
pub const TOP_DEFAULT: u64 = 10_000_000;

named_enum! {
    /// A published list of facts, by the name of their source.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PublishedList {
        /// Common Crawl's ranks of names by the links between them.
        Links = "cc",
        /// The most visited sites of Chrome's users, in buckets.
        Visits = "crux",
        /// Lists by category of the University of Toulouse.
        Ut1 = "ut1",
        /// Lists by category for filters of DNS.
        Hagezi = "hagezi",
    }
}
parse_named!(PublishedList);

impl PublishedList {
    /// Columns of its facts, in the notation of headers.
    const fn notation(self) -> &'static [&'static str] {
        match self {
            PublishedList::Links => {
                &["cc.link_rank:int:rank:less", "cc.page_rank:int:rank:less", "cc.hosts:int:more"]
            }
            PublishedList::Visits => &["crux.rank:int:rank:less"],
            PublishedList::Ut1 => &["ut1.category:enum"],
            PublishedList::Hagezi => &["hagezi.category:enum"],
        }
    }

    /// Returns the day that the name of a file states; only names of Common Crawl's files do.
    pub fn day_of(self, file: &str) -> Option<Day> {
        ranks::release_day(file).filter(|_| self == PublishedList::Links)
    }

    /// Returns its title, licence and attribution.
    const fn rights(self) -> (&'static str, Licence, &'static str) {
        match self {
            PublishedList::Links => (
                "Common Crawl link ranks",
                Licence::Open,
                "Link ranks: Common Crawl, web graph of names",
            ),
            PublishedList::Visits => (
                "Chrome top list",
                Licence::ShareAlike,
                "Popularity: Chrome UX Report, Google, from github.com/zakird/crux-top-lists",
            ),
            PublishedList::Ut1 => (
                "UT1 categories",
                Licence::ShareAlike,
                "Categories: UT1 blacklists, Université Toulouse Capitole",
            ),
            PublishedList::Hagezi => (
                "HaGeZi categories",
                Licence::ShareAlike,
                "Categories: HaGeZi DNS blocklists, github.com/hagezi/dns-blocklists",
            ),
        }
    }

    /// Returns its categories, the most severe one first; none of a list of ranks.
    fn words(self) -> Vec<String> {
        let mut words: Vec<String> =
            self.categories().iter().map(|(_, word)| (*word).to_owned()).collect();
        words.dedup();
        words
    }

    const fn categories(self) -> &'static [categories::Category] {
        match self {
            PublishedList::Links | PublishedList::Visits => &[],
            PublishedList::Ut1 => categories::UT1,
            PublishedList::Hagezi => categories::HAGEZI,
        }
    }

    /// Returns the columns of its facts.
    pub fn columns(self) -> Vec<FactColumn> {
        columns(self.notation())
    }

    fn values(self, [first, second, third]: Numbers) -> Vec<Option<Value>> {
        let int = |number: u32| Some(Value::Int(number.into()));
        match self {
            PublishedList::Links => vec![int(first), int(second), int(third)],
            PublishedList::Visits => vec![int(first)],
            PublishedList::Ut1 | PublishedList::Hagezi => {
                let (_, word) = self.categories()[first as usize];
                vec![Some(Value::Enum(word.to_owned()))]
            }
        }
    }
}

/// Reads columns in the notation of headers.
fn columns(notation: &[&str]) -> Vec<FactColumn> {
    let column = |text: &&str| match text.parse() {
        Ok(Role::Fact(column)) => column,
        _ => unreachable!("a test reads all columns"),
    };
    notation.iter().map(column).collect()
}

/// A file of an edition.
#[derive(Clone, Debug)]
pub struct ListFile {
    /// Last part of its address. A plain list of names is named after its category.
    pub name: String,
    pub path: PathBuf,
}

/// Why an edition is refused.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error("the file cannot be read to its end: {0}")]
    Unpack(io::Error),
    #[error("the file is empty")]
    Empty,
    #[error("the file is a web page instead of the list, perhaps for maintenance")]
    WebPage,
    #[error("the first line is not `{}`; the format of the list has changed", .0.escape_debug())]
    Header(&'static str),
    #[error("line {0} is longer than 4 KiB: this is not such a list")]
    LongLine(u64),
    #[error(
        "{bad} of {lines} lines are refused, more than one in ten; the first is line {} of {}: {}",
        first.line, first.file, first.reason
    )]
    BadLines { bad: u64, lines: u64, first: BadLine },
    #[error("no line has a registrable name; the format of the list has changed")]
    NoNames,
    #[error("{0} is neither named after a category that is read nor an archive of such categories")]
    Category(String),
    #[error("rows cannot be sorted on disk: {0}")]
    Scratch(io::Error),
}

/// The rows of an edition.
pub struct PublishedFacts {
    list: PublishedList,
    rows: SortedRows<3>,
    pub report: PublishedReport,
}

impl PublishedFacts {
    /// Reads the files of an edition. `scratch` is a folder for temporary files. Of ranks by links, the first `top`
    /// rows are read.
    ///
    /// # Errors
    /// A file is damaged or has another format, more than one line in ten is refused, or no row is left.
    pub fn read(
        list: PublishedList,
        files: &[ListFile],
        top: u64,
        scratch: &Path,
    ) -> Result<PublishedFacts, PublishedError> {
        let mut reader = Reader::new(Sorter::new(scratch).map_err(PublishedError::Scratch)?);
        for ListFile { name, path } in files {
            let (head, input) = peek(feeds::open_unpacked(path)?)?;
            match list {
                PublishedList::Links => {
                    reader.file(name, input, Some(ranks::LINKS_HEADER), top, ranks::links())?;
                }
                PublishedList::Visits => {
                    let header = Some(ranks::VISITS_HEADER);
                    reader.file(name, input, header, u64::MAX, ranks::visits)?;
                }
                PublishedList::Ut1 | PublishedList::Hagezi => {
                    categories::read(&mut reader, list.categories(), name, &head, input)?;
                }
            }
        }
        reader.check()?;
        let rows = reader.sorter.finish().map_err(PublishedError::Scratch)?;
        Ok(PublishedFacts { list, rows, report: reader.report })
    }

    /// Returns the next row.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub fn next_row(&mut self) -> io::Result<Option<PublishedRow<'_>>> {
        let list = self.list;
        let row = |(name, numbers)| PublishedRow { name, values: list.values(numbers) };
        Ok(self.rows.next_row()?.map(row))
    }
}

/// The facts of a name.
#[derive(Clone, Debug)]
pub struct PublishedRow<'a> {
    /// A registrable name in canonical form.
    pub name: &'a str,
    /// One for each column.
    pub values: Vec<Option<Value>>,
}
