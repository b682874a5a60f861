//! The known popularity lists, and ranks on them. They are facts about names and never part of a
//! score.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::day::Day;
use crate::named::named_enum;

named_enum! {
    // The index and the corpus store a list by its position here, so only append.
    /// A popularity list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum PopularityList {
        Tranco = "tranco",
        Majestic = "majestic",
        Umbrella = "umbrella",
    }
}

impl PopularityList {
    /// Returns the display name of the list.
    pub fn title(self) -> &'static str {
        match self {
            PopularityList::Tranco => "Tranco",
            PopularityList::Majestic => "Majestic Million",
            PopularityList::Umbrella => "Cisco Umbrella",
        }
    }

    /// Returns the list that a file name mentions.
    pub fn in_file_name(name: &str) -> Option<PopularityList> {
        let name = name.to_ascii_lowercase();
        PopularityList::ALL.into_iter().find(|list| name.contains(list.as_str()))
    }
}

/// Rank of a name on a popularity list. Invariant: 1 to [`ListRank::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListRank(u32);

impl ListRank {
    /// Maximum rank that is read from a list.
    pub const MAX: u32 = 1_000_000;

    /// Returns `None` if the rank is out of range.
    pub fn new(rank: u32) -> Option<ListRank> {
        (1..=ListRank::MAX).contains(&rank).then_some(ListRank(rank))
    }

    pub fn get(self) -> u32 {
        self.0
    }
}

/// Identifier that a publisher gives to one day's list. Invariant: 1 to 16 ASCII letters and
/// digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CompactString", into = "CompactString")]
pub struct ListId(CompactString);

impl ListId {
    const CHARS_MAX: usize = 16;

    /// Returns `None` if the text is not an identifier.
    pub fn parse(text: &str) -> Option<ListId> {
        let is_id = (1..=ListId::CHARS_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| ListId(text.into()))
    }

    /// Returns the identifier in the file name of a Tranco list: `tranco_XJNYN-1m.csv.zip`.
    pub fn in_file_name(name: &str) -> Option<ListId> {
        let (_, rest) = name.split_once("tranco_")?;
        ListId::parse(rest.split(|char: char| !char.is_ascii_alphanumeric()).next()?)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<CompactString> for ListId {
    type Error = &'static str;

    fn try_from(text: CompactString) -> Result<ListId, &'static str> {
        ListId::parse(&text).ok_or("a list is identified by 1 to 16 letters and digits")
    }
}

impl From<ListId> for CompactString {
    fn from(id: ListId) -> CompactString {
        id.0
    }
}

/// A popularity list of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEdition {
    pub list: PopularityList,
    /// Identifier of the day's list; `None` if the publisher gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ListId>,
    pub day: Day,
}

/// A rank and its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedRank {
    pub list: PopularityList,
    pub rank: ListRank,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_recognised_by_file_name() {
        use PopularityList::{Majestic, Tranco, Umbrella};
        for (name, list, id) in [
            ("tranco_XJNYN-1m.csv.zip", Some(Tranco), Some("XJNYN")),
            ("tranco_4QVYX_2026-11-22.csv.zip", Some(Tranco), Some("4QVYX")),
            ("tranco-2026-11-22.csv", Some(Tranco), None),
            ("tranco_", Some(Tranco), None),
            ("majestic_million.csv", Some(Majestic), None),
            ("Umbrella-top-1m.csv.zip", Some(Umbrella), None),
            ("top-1m.csv", None, None),
        ] {
            assert_eq!(PopularityList::in_file_name(name), list, "{name}");
            let found = ListId::in_file_name(name);
            assert_eq!(found.as_ref().map(ListId::as_str), id, "{name}");
        }
    }

    #[test]
    fn ranks_and_identifiers_are_in_range() {
        for (rank, is_in) in
            [(0, false), (1, true), (ListRank::MAX, true), (ListRank::MAX + 1, false)]
        {
            assert_eq!(ListRank::new(rank).is_some(), is_in, "{rank}");
        }
        for text in ["", "a-b", "ä", "ABCDEFGHIJKLMNOPQ"] {
            assert_eq!(ListId::parse(text), None, "{text}");
        }
    }
}
