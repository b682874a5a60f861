//! Names of columns and JSON keys in the various feeds, and the header that contains them.

use super::dates::SlashOrder;
use super::error::FeedProblem;
use super::format::Format;
use super::head::Head;
use super::lines::split;
use super::rejects::one_line;
use crate::vocab::header;

/// Meaning of a column or key. If several columns have the same role, the one with the lowest rank is used,
/// regardless of its position. Ranks are positions in the tables below, where more specific names come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The domain name.
    Name { rank: usize },
    /// A day, with its rank among columns of the same meaning, and its order of day and month.
    Day { meaning: Meaning, rank: usize, order: SlashOrder },
}

/// Meaning of a column of days, judged only by its name. [`Fields::resolve`] decides from all columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The day the registry releases the name.
    Release,
    /// The day the registry deletes the name. This day is the release, unless another column has
    /// that name.
    Deletion,
    /// A day called drop. Vendors mean the release; others mean the day the name left its zone.
    DropOrRelease,
    /// `drop_date` as spelled in native CSV: the day the name left its zone.
    Drop,
    /// The end of an auction, or a date without a meaning. This day is the release if no other
    /// column contains it.
    End,
}

const MEANINGS: usize = 5;

/// Rank, order of day and month, and value.
type Ranked<T> = (usize, SlashOrder, T);

/// Columns or keys by role.
pub(super) struct Fields<T> {
    /// Rank and value.
    name: Option<(usize, T)>,
    /// Days, indexed by [`Meaning`].
    days: [Option<Ranked<T>>; MEANINGS],
    /// The meanings that occur, even without a value.
    said: [bool; MEANINGS],
}

impl<T> Default for Fields<T> {
    fn default() -> Fields<T> {
        Fields { name: None, days: [const { None }; MEANINGS], said: [false; MEANINGS] }
    }
}

/// The final roles of the columns or keys of a list.
pub(super) struct Resolved<T> {
    pub(super) name: Option<T>,
    pub(super) release: Option<(SlashOrder, T)>,
    pub(super) drop: Option<(SlashOrder, T)>,
    /// Unused days, because another column has the same meaning.
    pub(super) unused: [Option<T>; MEANINGS],
}

impl<T> Fields<T> {
    /// A name without days.
    pub(super) fn of_name(name: T) -> Fields<T> {
        Fields { name: Some((0, name)), ..Fields::default() }
    }

    /// Records that a column or key of this role exists but has no value in this row.
    pub(super) fn mention(&mut self, role: Role) {
        if let Role::Day { meaning, .. } = role {
            self.said[meaning as usize] = true;
        }
    }

    /// Stores a value, unless the role already has one with the same or a lower rank. Returns the
    /// value that is not used.
    pub(super) fn put(&mut self, role: Role, value: T) -> Option<T> {
        self.mention(role);
        match role {
            Role::Name { rank } => match &self.name {
                Some((best, _)) if *best <= rank => Some(value),
                _ => self.name.replace((rank, value)).map(|(_, value)| value),
            },
            Role::Day { meaning, rank, order } => {
                let slot = &mut self.days[meaning as usize];
                match slot {
                    Some((best, ..)) if *best <= rank => Some(value),
                    _ => slot.replace((rank, order, value)).map(|(.., value)| value),
                }
            }
        }
    }

    /// Determines the meaning of each day. Beside a release, a drop is the day the name left its zone;
    /// without one, it is the release (`data/docs/sources.md`).
    pub(super) fn resolve(self) -> Resolved<T> {
        let says = |meaning: Meaning| self.said[meaning as usize];
        let has_release = says(Meaning::Release);
        let is_drop = has_release || says(Meaning::Deletion) || says(Meaning::Drop);
        let [mut release, mut deletion, mut either, mut drop, mut end] = self.days;
        let drop = drop
            .take()
            .or_else(|| either.take_if(|_| is_drop))
            .or_else(|| deletion.take_if(|_| has_release));
        let release = release
            .take()
            .or_else(|| deletion.take())
            .or_else(|| either.take_if(|_| !is_drop))
            .or_else(|| end.take());
        let day = |(_, order, value)| (order, value);
        let unused = [deletion, either, end, None, None];
        Resolved {
            name: self.name.map(|(_, value)| value),
            release: release.map(day),
            drop: drop.map(day),
            unused: unused.map(|rest| rest.map(|(.., value)| value)),
        }
    }
}

/// Names of columns of days, with the feed's order of day and month.
const DAY_ALIASES: [(&str, Meaning, SlashOrder); 37] = [
    ("releasedate", Meaning::Release, SlashOrder::Unknown),
    ("releaseat", Meaning::Release, SlashOrder::Unknown),
    ("dateavailable", Meaning::Release, SlashOrder::Unknown),
    ("releasetime", Meaning::Release, SlashOrder::Unknown),
    ("releaseon", Meaning::Release, SlashOrder::Unknown),
    ("releasedat", Meaning::Release, SlashOrder::Unknown),
    ("releasedon", Meaning::Release, SlashOrder::Unknown),
    ("availabledate", Meaning::Release, SlashOrder::Unknown),
    ("availabilitydate", Meaning::Release, SlashOrder::Unknown),
    ("availablefrom", Meaning::Release, SlashOrder::Unknown),
    ("availableat", Meaning::Release, SlashOrder::Unknown),
    ("availableon", Meaning::Release, SlashOrder::Unknown),
    ("purgedate", Meaning::Release, SlashOrder::Unknown),
    ("purgetime", Meaning::Release, SlashOrder::Unknown),
    ("purgedat", Meaning::Release, SlashOrder::Unknown),
    ("purged", Meaning::Release, SlashOrder::Unknown),
    ("deletiondate", Meaning::Deletion, SlashOrder::Unknown),
    ("deletedate", Meaning::Deletion, SlashOrder::Unknown),
    ("deletiontime", Meaning::Deletion, SlashOrder::Unknown),
    ("datedeleted", Meaning::Deletion, SlashOrder::Unknown),
    ("deleteddate", Meaning::Deletion, SlashOrder::Unknown),
    ("deletedat", Meaning::Deletion, SlashOrder::Unknown),
    ("deletedon", Meaning::Deletion, SlashOrder::Unknown),
    ("dropdate", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("droptime", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("dropat", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("dropon", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("datedropped", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("droppeddate", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("droppedat", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("droppedon", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("dropped", Meaning::DropOrRelease, SlashOrder::Unknown),
    ("auctionenddate", Meaning::End, SlashOrder::MonthFirst),
    ("auctionendtime", Meaning::End, SlashOrder::MonthFirst),
    ("enddate", Meaning::End, SlashOrder::Unknown),
    ("endtime", Meaning::End, SlashOrder::Unknown),
    ("date", Meaning::End, SlashOrder::Unknown),
];

/// Accepted names of the required columns, for messages.
pub(super) const NAME_WORDS: &str = "domain, domain_name, dominio, name";
pub(super) const DATE_WORDS: &str = "drop_time, dropped, purged, deletion_time, deleted_at, release_at, release_date, date_available, \
     available_from, auction end date, date";

/// Column that identifies an .au list, in whose `Date` the day comes first.
const AU_COLUMN: &str = "eligiblepurgetimeutc";

/// Role of a column or key; `None` if it is not used.
pub(super) fn role(name: &str) -> Option<Role> {
    if name.trim().eq_ignore_ascii_case("drop_date") {
        let order = SlashOrder::Unknown;
        return Some(Role::Day { meaning: Meaning::Drop, rank: 0, order });
    }
    let mut buffer = [0; header::NAME_BYTES_MAX];
    let plain = header::plain(name, &mut buffer)?;
    if let Some(rank) = header::domain_rank(name) {
        return Some(Role::Name { rank });
    }
    let rank = DAY_ALIASES.iter().position(|(alias, ..)| alias.as_bytes() == plain)?;
    let (_, meaning, order) = DAY_ALIASES[rank];
    Some(Role::Day { meaning, rank, order })
}

const _: () = assert!(AU_COLUMN.len() <= header::NAME_BYTES_MAX);

/// Reduces a column's name to lower-case ASCII letters.
pub(super) fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphabetic).map(|char| char.to_ascii_lowercase()).collect()
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
/// Maximum characters that are kept of a column's name.
const CELL_CHARS_MAX: usize = 80;

impl Header {
    /// Finds the first line with both a domain and a date column; if none has both, accepts the
    /// very first line if it has a domain column.
    pub(super) fn find(head: &Head) -> Option<Header> {
        let declared = head.lines.first().and_then(|(_, line)| header::declared_delimiter(line));
        let candidates = || {
            let near = head.lines.iter().filter(|(line, _)| *line <= PREAMBLE_LINES_MAX);
            let near = near.skip(usize::from(declared.is_some()));
            near.flat_map(|(line, text)| {
                let delimiters = header::DELIMITERS.into_iter();
                delimiters
                    .filter(move |delimiter| declared.is_none_or(|declared| declared == *delimiter))
                    .map(|delimiter| Header::cut(*line, text, delimiter))
                    .filter(Header::names_domain)
            })
        };
        let mut rows = head.lines.iter().skip(usize::from(declared.is_some()));
        let first = rows.find(|(_, line)| !line.starts_with('#')).map(|(line, _)| *line);
        let complete = candidates().find(Header::names_date);
        complete.or_else(|| candidates().find(|header| Some(header.line) <= first))
    }

    fn cut(line: u64, text: &str, delimiter: u8) -> Header {
        let cells = split(text, delimiter).map(|cell| one_line(cell.as_bytes(), CELL_CHARS_MAX));
        Header { line, delimiter, cells: cells.collect() }
    }

    fn names_domain(&self) -> bool {
        self.cells.len() > 1
            && self.cells.iter().any(|cell| matches!(role(cell), Some(Role::Name { .. })))
    }

    /// Whether more than one column has a non-empty name.
    pub(super) fn names_several(&self) -> bool {
        self.cells.iter().filter(|cell| !cell.is_empty()).count() > 1
    }

    fn names_date(&self) -> bool {
        let date = |cell: &String| matches!(role(cell), Some(Role::Day { .. }));
        self.cells.iter().any(date)
    }

    /// Position of the column with exactly this name, ignoring case.
    pub(super) fn exactly(&self, name: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.eq_ignore_ascii_case(name))
    }

    /// Position of the column with exactly this name or, failing that, with another spelling of it,
    /// such as `releaseDate` for `release_date`.
    pub(super) fn spelled(&self, name: &str) -> Option<usize> {
        let is_same = |cell: &String| {
            let (mut one, mut other) = ([0; header::NAME_BYTES_MAX], [0; header::NAME_BYTES_MAX]);
            let cell = header::plain(cell, &mut one);
            cell.is_some() && cell == header::plain(name, &mut other)
        };
        self.exactly(name).or_else(|| self.cells.iter().position(is_same))
    }

    /// Error for a missing column.
    pub(super) fn lacks(&self, column: &'static str) -> FeedProblem {
        let header: String = self.cells.join(", ").chars().take(200).collect();
        if column == "domain" {
            return FeedProblem::MissingColumn {
                column,
                aliases: NAME_WORDS,
                line: self.line,
                header,
            };
        }
        FeedProblem::NoDateColumn { aliases: DATE_WORDS, line: self.line, header }
    }

    /// Whether the first column has ranks, like that of a popularity list.
    pub(super) fn starts_with_ranks(&self) -> bool {
        self.cells.first().is_some_and(|cell| letters(cell).contains("rank"))
    }

    /// Error for a missing header.
    pub(super) fn absent(format: Format) -> FeedProblem {
        let why = format!(
            "no header with a domain column ({NAME_WORDS}) in its first {PREAMBLE_LINES_MAX} lines"
        );
        FeedProblem::NotFormat { format, why }
    }
}

/// Positions of the columns that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListColumns {
    pub(super) name: usize,
    pub(super) release: Option<(usize, SlashOrder)>,
    pub(super) drop: Option<(usize, SlashOrder)>,
    /// Columns of names and days that are not read, because another column has the same meaning.
    unused: Vec<usize>,
}

impl ListColumns {
    /// Finds the columns in a header. A day given for all names replaces the column of days.
    ///
    /// # Errors
    /// [`FeedProblem::MissingColumn`] without a name column, or [`FeedProblem::NoDateColumn`].
    pub(super) fn from_header(
        header: &Header,
        day_is_given: bool,
    ) -> Result<ListColumns, FeedProblem> {
        let au = |cell: &String| header::rank(cell, &[AU_COLUMN]).is_some();
        let day_first = header.cells.iter().any(au);
        let (mut fields, mut unused) = (Fields::default(), Vec::new());
        for (at, cell) in header.cells.iter().enumerate() {
            unused.extend(role(cell).and_then(|role| fields.put(role, at)));
        }
        let Resolved { name, release, drop, unused: rest } = fields.resolve();
        if release.is_none() && drop.is_none() && !day_is_given {
            return Err(header.lacks("drop_date"));
        }
        let name = name.ok_or_else(|| header.lacks("domain"))?;
        unused.extend(rest.into_iter().flatten());
        unused.sort_unstable();
        let day = |(order, at)| (at, if day_first { SlashOrder::DayFirst } else { order });
        Ok(ListColumns { name, release: release.map(day), drop: drop.map(day), unused })
    }

    /// Whether both a drop date and an explicitly named release date exist.
    pub(super) fn has_both(&self, header: &Header) -> bool {
        self.drop.is_some() && self.release.is_some() && !self.release_is_end(header)
    }

    /// Whether the release is known only as the end of an auction, or as a date without a meaning.
    pub(super) fn release_is_end(&self, header: &Header) -> bool {
        let is_end = |at: usize| {
            matches!(role(&header.cells[at]), Some(Role::Day { meaning: Meaning::End, .. }))
        };
        self.release.is_some_and(|(at, _)| is_end(at))
    }

    /// Describes the columns that are read and those that are not, as a clause.
    pub(super) fn reason(&self, header: &Header) -> String {
        let cell = |at: usize| format!("`{}`", header.cells[at]);
        let name = cell(self.name);
        let mut reason = match (self.drop, self.release) {
            (Some((drop, _)), Some((release, _))) => format!(
                "header has {name}, the drop date {} and the release date {}",
                cell(drop),
                cell(release)
            ),
            (Some((drop, _)), None) => format!("header has {name} and {}", cell(drop)),
            (None, Some((release, _))) => {
                let at = cell(release);
                let meaning = if at.to_ascii_lowercase().contains("drop") {
                    ", the only date, read as the release date"
                } else {
                    ""
                };
                format!("header has {name} and {at}{meaning}")
            }
            (None, None) => format!("header has {name}"),
        };
        if !self.unused.is_empty() {
            let unused: Vec<String> = self.unused.iter().map(|&at| cell(at)).collect();
            reason += &format!("; not used: {}", unused.join(", "));
        }
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> ListColumns {
        let header = Header::find(&Head::new(text.as_bytes(), true)).expect("a header");
        ListColumns::from_header(&header, false).expect("complete")
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
            assert_eq!(found.drop, None, "{header}");
        }
    }

    /// Formats the name, drop and release columns of a header.
    fn read(text: &str) -> String {
        let header = Header::find(&Head::new(text.as_bytes(), true)).expect("a header");
        let columns = ListColumns::from_header(&header, false).expect("complete");
        let cell = |at: usize| header.cells[at].clone();
        let day = |day: Option<(usize, SlashOrder)>| day.map_or("-".into(), |(at, _)| cell(at));
        let unused: Vec<String> = columns.unused.iter().map(|&at| cell(at)).collect();
        let (drop, release) = (day(columns.drop), day(columns.release));
        format!("{} {drop} {release} [{}]", cell(columns.name), unused.join(" "))
    }

    #[test]
    fn columns_are_what_they_are_called_in_any_order_and_spelling() {
        for (columns, expected) in [
            (["name", "dropDate", "releaseDate"], "name dropDate releaseDate []"),
            (["Domain", "Drop-Date", "RELEASE_DATE"], "Domain Drop-Date RELEASE_DATE []"),
            (["domain_name", "drop_date", "purged"], "domain_name drop_date purged []"),
            (
                ["domain_name", "drop_date", "deletion_time"],
                "domain_name drop_date deletion_time []",
            ),
            (["domain", "droptime", "deletiondate"], "domain droptime deletiondate []"),
            (["domain", "deletedate", "releaseat"], "domain deletedate releaseat []"),
            // A date called drop is the release only if there is no other date.
            (["domain", "dropDate", "price"], "domain - dropDate []"),
            (["domain", "dropDate", "date"], "domain - dropDate [date]"),
            (["domain", "dropDate", "enddate"], "domain - dropDate [enddate]"),
            (["domain_name", "drop_date", "x"], "domain_name drop_date - []"),
            // If two columns have the same role, the more specific name wins.
            (["domain", "releasedate", "date"], "domain - releasedate [date]"),
            (["domain", "releasedate", "purgedate"], "domain - releasedate [purgedate]"),
            (["domainname", "name", "date"], "domainname - date [name]"),
            (["domainname", "domain", "purged"], "domainname - purged [domain]"),
            (["domain", "enddate", "date"], "domain - enddate [date]"),
            (["domain_name", "drop_date", "droptime"], "domain_name drop_date - [droptime]"),
        ] {
            let [a, b, c] = columns;
            for order in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
                let header = order.join(",") + "\n";
                let sorted = |text: String| {
                    let mut words: Vec<String> =
                        text.split(' ').map(|word| word.trim_matches(['[', ']']).into()).collect();
                    words[3..].sort();
                    words
                };
                assert_eq!(sorted(read(&header)), sorted(expected.into()), "{header}");
            }
        }
    }

    #[test]
    fn columns_that_are_not_used_are_named() {
        let reason = |text: &str| {
            let header = Header::find(&Head::new(text.as_bytes(), true)).expect("a header");
            ListColumns::from_header(&header, false).expect("complete").reason(&header)
        };
        let both = reason("name,dropDate,releaseDate,Date\n");
        let expected = "header has `name`, the drop date `dropDate` and the release date `releaseDate`; \
                        not used: `Date`";
        assert_eq!(both, expected);
        let sole = reason("Domain,Drop Date\n");
        assert_eq!(
            sole,
            "header has `Domain` and `Drop Date`, the only date, read as the release date"
        );
        assert_eq!(reason("domain,purged\n"), "header has `domain` and `purged`");
    }

    #[test]
    fn errors_name_the_missing_column() {
        let header = Header::find(&Head::new(b"domain,status\na.com,x\n", true)).expect("a header");
        let problem = ListColumns::from_header(&header, false).expect_err("no date");
        assert!(matches!(
            problem,
            FeedProblem::NoDateColumn { line: 1, ref header, .. }
                if header == "domain, status"
        ));
        assert!(Header::find(&Head::new(b"domain\na.com\n", true)).is_none());
        assert!(Header::find(&Head::new(b"a.com,12/4/2026,AUC\n", true)).is_none());
    }
}
