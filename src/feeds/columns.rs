//! Names of columns and JSON keys in the various feeds, and the header that holds them.

use super::dates::SlashOrder;
use super::error::FeedProblem;
use super::format::Format;
use super::head::Head;
use super::lines::split;
use super::rejects::one_line;

/// Meaning of a column or key. Of several with the same role, the lowest rank and then the first is
/// used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The domain name.
    Name { rank: u8 },
    /// The day the registry releases the name, or an auction ends.
    Release { rank: u8, order: SlashOrder },
    /// `drop_date` of native CSV: the day the name left its zone.
    Drop,
}

/// Columns or keys by role.
pub(super) struct Fields<T> {
    /// Rank and value.
    pub(super) name: Option<(u8, T)>,
    pub(super) release: Option<(u8, SlashOrder, T)>,
    pub(super) drop: Option<T>,
}

impl<T> Default for Fields<T> {
    fn default() -> Fields<T> {
        Fields { name: None, release: None, drop: None }
    }
}

impl<T> Fields<T> {
    /// Stores a value, unless there is one of the same role with a lower or the same rank.
    pub(super) fn put(&mut self, role: Role, value: T) {
        match role {
            Role::Name { rank } if self.name.as_ref().is_none_or(|(best, _)| rank < *best) => {
                self.name = Some((rank, value));
            }
            Role::Release { rank, order }
                if self.release.as_ref().is_none_or(|(best, ..)| rank < *best) =>
            {
                self.release = Some((rank, order, value));
            }
            Role::Drop => self.drop = Some(value),
            Role::Name { .. } | Role::Release { .. } => {}
        }
    }
}

/// Names of the domain column with their ranks; compared without case, spaces and punctuation.
const NAME_ALIASES: [(&str, u8); 4] =
    [("domain", 0), ("domainname", 0), ("dominio", 0), ("name", 1)];

/// Names of the release column with their ranks and the feed's order of day and month.
const RELEASE_ALIASES: [(&str, u8, SlashOrder); 15] = [
    ("dropdate", 0, SlashOrder::Unknown),
    ("droptime", 0, SlashOrder::Unknown),
    ("purged", 0, SlashOrder::Unknown),
    ("purgedate", 0, SlashOrder::Unknown),
    ("deletiontime", 0, SlashOrder::Unknown),
    ("deletiondate", 0, SlashOrder::Unknown),
    ("deletedate", 0, SlashOrder::Unknown),
    ("releaseat", 0, SlashOrder::Unknown),
    ("releasedate", 0, SlashOrder::Unknown),
    ("dateavailable", 0, SlashOrder::Unknown),
    ("auctionenddate", 0, SlashOrder::MonthFirst),
    ("auctionendtime", 0, SlashOrder::MonthFirst),
    ("endtime", 0, SlashOrder::Unknown),
    ("enddate", 0, SlashOrder::Unknown),
    ("date", 1, SlashOrder::Unknown),
];

/// Accepted names of the required columns, for messages.
pub(super) const NAME_WORDS: &str = "domain, domain_name, dominio, name";
pub(super) const DATE_WORDS: &str = "drop_time, purged, deletion_time, release_at, release_date, \
                                     date_available, auction end date, date";

/// Column that identifies an .au list, whose `Date` is day first.
const AU_COLUMN: &str = "eligiblepurgetimeutc";

/// Role of a column or key; `None` when it is not used.
pub(super) fn role(name: &str) -> Option<Role> {
    if name.trim().eq_ignore_ascii_case("drop_date") {
        return Some(Role::Drop);
    }
    let mut buffer = [0; ALIAS_BYTES_MAX];
    let plain = plain(name, &mut buffer)?;
    if let Some((_, rank)) = NAME_ALIASES.iter().find(|(alias, _)| alias.as_bytes() == plain) {
        return Some(Role::Name { rank: *rank });
    }
    let release = RELEASE_ALIASES.iter().find(|(alias, ..)| alias.as_bytes() == plain);
    release.map(|&(_, rank, order)| Role::Release { rank, order })
}

/// Maximum letters and digits of an alias.
const ALIAS_BYTES_MAX: usize = 24;
const _: () = assert!(AU_COLUMN.len() <= ALIAS_BYTES_MAX);

/// A column's name in lower-case ASCII letters.
pub(super) fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphabetic).map(|char| char.to_ascii_lowercase()).collect()
}

/// Reduces a column's name to lower-case letters and digits, to compare it with aliases: `Domain
/// Name` and `domain_name` become `domainname`. `None` when the result is longer than any alias.
///
/// Runs for every key of every JSON element, so it allocates nothing.
fn plain<'a>(name: &str, buffer: &'a mut [u8; ALIAS_BYTES_MAX]) -> Option<&'a [u8]> {
    let mut length = 0;
    for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
        *buffer.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    Some(&buffer[..length])
}

/// Header line of a table.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) line: u64,
    pub(super) delimiter: u8,
    pub(super) cells: Vec<String>,
}

/// Maximum lines of preamble before a header; SnapNames has two.
const PREAMBLE_LINES_MAX: u64 = 20;
/// Maximum characters kept of a column's name.
const CELL_CHARS_MAX: usize = 80;
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

impl Header {
    /// Finds the first line that names both a domain and a date column, or else accepts the very
    /// first line when it names a domain column.
    pub(super) fn find(head: &Head) -> Option<Header> {
        let declared = head.lines.first().and_then(|(_, line)| declared_delimiter(line));
        let candidates = || {
            let near = head.lines.iter().filter(|(line, _)| *line <= PREAMBLE_LINES_MAX);
            near.skip(usize::from(declared.is_some())).flat_map(|(line, text)| {
                let delimiters = DELIMITERS.into_iter();
                delimiters
                    .filter(move |delimiter| declared.is_none_or(|declared| declared == *delimiter))
                    .map(|delimiter| Header::cut(*line, text, delimiter))
                    .filter(Header::names_domain)
            })
        };
        let first = head.lines.get(usize::from(declared.is_some())).map(|(line, _)| *line);
        let complete = candidates().find(Header::names_date);
        complete.or_else(|| candidates().find(|header| Some(header.line) == first))
    }

    fn cut(line: u64, text: &str, delimiter: u8) -> Header {
        let cells = split(text, delimiter).map(|cell| one_line(cell.as_bytes(), CELL_CHARS_MAX));
        Header { line, delimiter, cells: cells.collect() }
    }

    fn names_domain(&self) -> bool {
        self.cells.len() > 1
            && self.cells.iter().any(|cell| matches!(role(cell), Some(Role::Name { .. })))
    }

    fn names_date(&self) -> bool {
        let date = |cell: &String| matches!(role(cell), Some(Role::Release { .. } | Role::Drop));
        self.cells.iter().any(date)
    }

    /// Position of the column with exactly this name, ignoring case.
    pub(super) fn exactly(&self, name: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.eq_ignore_ascii_case(name))
    }

    /// Error for a missing column.
    pub(super) fn lacks(&self, column: &'static str) -> FeedProblem {
        let aliases = if column == "domain" { NAME_WORDS } else { DATE_WORDS };
        let header: String = self.cells.join(", ").chars().take(200).collect();
        FeedProblem::MissingColumn { column, aliases, line: self.line, header }
    }

    /// Error for a missing header.
    pub(super) fn absent(format: Format) -> FeedProblem {
        let why = format!(
            "no header with a domain column ({NAME_WORDS}) in its first {PREAMBLE_LINES_MAX} lines"
        );
        FeedProblem::NotFormat { format, why }
    }
}

/// Delimiter that a spreadsheet declares on the first line: `sep=;`.
fn declared_delimiter(line: &str) -> Option<u8> {
    let delimiter = line.trim_matches('"').strip_prefix("sep=")?.bytes().next()?;
    DELIMITERS.contains(&delimiter).then_some(delimiter)
}

/// Positions of the columns that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) name: usize,
    pub(super) release: Option<(usize, SlashOrder)>,
    pub(super) drop: Option<usize>,
}

impl Columns {
    /// Finds the columns in a header.
    ///
    /// # Errors
    /// [`FeedProblem::MissingColumn`] without a name column or without any date column.
    pub(super) fn from_header(header: &Header) -> Result<Columns, FeedProblem> {
        let au = |cell: &String| {
            plain(cell, &mut [0; ALIAS_BYTES_MAX]).is_some_and(|name| name == AU_COLUMN.as_bytes())
        };
        let day_first = header.cells.iter().any(au);
        let mut fields = Fields::default();
        for (at, cell) in header.cells.iter().enumerate() {
            match role(cell) {
                Some(Role::Drop) if fields.drop.is_some() => {}
                Some(role) => fields.put(role, at),
                None => {}
            }
        }
        let Fields { name, release, drop } = fields;
        if release.is_none() && drop.is_none() {
            return Err(header.lacks("drop_date"));
        }
        let (_, name) = name.ok_or_else(|| header.lacks("domain"))?;
        let order = |order| if day_first { SlashOrder::DayFirst } else { order };
        Ok(Columns { name, release: release.map(|(_, own, at)| (at, order(own))), drop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> Columns {
        let header = Header::find(&Head::new(text.as_bytes(), true)).expect("a header");
        Columns::from_header(&header).expect("complete")
    }

    #[test]
    fn headers_of_every_feed_are_recognised() {
        use SlashOrder::{DayFirst, MonthFirst, Unknown};
        for (header, name, release, order) in [
            ("roid,domain,drop_time\n", 1, 2, Unknown),
            ("Date,Eligible purge time (UTC),Domain name\n", 2, 0, DayFirst),
            ("domain_name,tld,deletion_time\n", 0, 2, Unknown),
            ("TLD,DOMAIN,EXPIRED,PURGED\n", 1, 3, Unknown),
            ("Domain,TLD,Type,Drop Date\n", 0, 3, Unknown),
            ("hello,\nx\nDomain name,Current bid,Auction end date\n", 0, 2, MonthFirst),
            ("sep=;\n\"Domain Name\";\"End Time\";\"Reserve Price\"\n", 0, 1, Unknown),
            ("domainName,itemId,auctionEndTime\n", 0, 2, MonthFirst),
            ("Name\tDomain\tDate\tPurged\n", 1, 3, Unknown),
        ] {
            let found = columns(header);
            assert_eq!((found.name, found.release), (name, Some((release, order))), "{header}");
        }
    }

    #[test]
    fn errors_name_the_missing_column() {
        let header = Header::find(&Head::new(b"domain,status\na.com,x\n", true)).expect("a header");
        let problem = Columns::from_header(&header).expect_err("no date");
        assert!(matches!(
            problem,
            FeedProblem::MissingColumn { column: "drop_date", line: 1, ref header, .. }
                if header == "domain, status"
        ));
        assert!(Header::find(&Head::new(b"domain\na.com\n", true)).is_none());
        assert!(Header::find(&Head::new(b"a.com,12/4/2026,AUC\n", true)).is_none());
    }
}
