//! Popularity lists: rows of a rank and a host, without a header (Tranco, Umbrella) or with that of the
//! Majestic Million. A host counts for the registrable name that contains it.

use super::columns::Header;
use super::head::Head;
use super::lines::{Parsed, RowParser, pick};
use super::rejects::RejectReason;
use crate::vocab::name::{DomainName, NameError};
use crate::vocab::popularity::{ListRank, PopularityList};

/// A name on a popularity list. A list may have several ranks for a name, one for each of its hosts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankedName {
    pub name: DomainName,
    pub rank: ListRank,
}

const DELIMITER: u8 = b',';
/// Columns of the Majestic Million.
const RANK_COLUMN: &str = "GlobalRank";
const NAME_COLUMN: &str = "Domain";

/// Positions of the columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankedColumns {
    /// Line number of the header; 0 without a header.
    pub(super) line: u64,
    rank: usize,
    host: usize,
    /// The list that uses this header.
    pub(super) list: Option<PopularityList>,
}

impl RankedColumns {
    /// Returns the columns of a list without a header.
    pub(super) const PLAIN: RankedColumns = RankedColumns { line: 0, rank: 0, host: 1, list: None };

    /// Finds the header of the Majestic Million.
    pub(super) fn find(head: &Head) -> Option<RankedColumns> {
        let header = Header::find(head)?;
        let (rank, host) = (header.exactly(RANK_COLUMN)?, header.exactly(NAME_COLUMN)?);
        let list = Some(PopularityList::Majestic);
        (header.delimiter == DELIMITER).then_some(RankedColumns {
            line: header.line,
            rank,
            host,
            list,
        })
    }
}

/// Parser of the rows of a list.
pub(super) struct Ranked(pub(super) RankedColumns);

impl RowParser for Ranked {
    type Seen = RankedName;

    /// Skips hosts without a registrable name, such as suffixes themselves and names of private
    /// networks, and ranks above the maximum.
    fn parse(&mut self, row: &str) -> Parsed<RankedName> {
        let RankedColumns { rank, host, .. } = self.0;
        if row.trim().is_empty() {
            return None;
        }
        let ([rank_text, host_text], count) = pick(row, DELIMITER, [Some(rank), Some(host)]);
        if count <= rank.max(host) {
            return Some(Err(RejectReason::TooFewColumns));
        }
        let Some(rank) = rank_text.parse::<u32>().ok().filter(|&rank| rank > 0) else {
            return Some(Err(RejectReason::BadRank));
        };
        let rank = ListRank::new(rank)?;
        match DomainName::of_host(host_text) {
            Ok(name) => Some(Ok(RankedName { name, rank })),
            Err(
                NameError::IsPublicSuffix
                | NameError::PrivateSuffix
                | NameError::SingleLabel
                | NameError::UnknownSuffix,
            ) => None,
            Err(err) => Some(Err(err.into())),
        }
    }
}

/// Returns true for a row of a list without a header.
pub(super) fn fits(row: &str) -> bool {
    matches!(Ranked(RankedColumns::PLAIN).parse(row), Some(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ranks_of_registrable_names() {
        let parse = |row: &str| {
            let parsed = Ranked(RankedColumns::PLAIN).parse(row)?;
            Some(parsed.map(|seen| format!("{} {}", seen.rank.get(), seen.name)))
        };
        for (row, seen) in [
            ("1,google.com", Some(Ok("1 google.com"))),
            ("7,www.netflix.com\r", Some(Ok("7 netflix.com"))),
            ("1000000,MÜNCHEN.de", Some(Ok("1000000 xn--mnchen-3ya.de"))),
            ("1000001,late.com", None),
            ("3,com", None),
            ("4,a.github.io", None),
            ("5,router.lan", None),
            ("", None),
            ("0,a.com", Some(Err(RejectReason::BadRank))),
            ("x,a.com", Some(Err(RejectReason::BadRank))),
            ("5", Some(Err(RejectReason::TooFewColumns))),
            ("5,a b.com", Some(Err(RejectReason::Name(NameError::ControlOrSpace)))),
        ] {
            assert_eq!(parse(row), seen.map(|seen| seen.map(str::to_owned)), "{row}");
        }
    }

    #[test]
    fn the_header_of_majestic_is_found() {
        let head = |text: &str| RankedColumns::find(&Head::new(text.as_bytes(), true));
        let found = head("GlobalRank,TldRank,Domain,TLD,RefSubNets\n1,1,google.com,com,5\n");
        let RankedColumns { line, rank, host, list } = found.expect("its header");
        assert_eq!((line, rank, host, list), (1, 0, 2, Some(PopularityList::Majestic)));
        assert!(head("1,google.com\n").is_none() && head("Rank,Domain\n1,a.com\n").is_none());
    }
}
