//! Facts about names that others publish or a user brings: names of facts, their types, and the numbers by which
//! values are compared (`data/docs/facts.md`).

use std::fmt;
use std::str::FromStr;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::named::{named_enum, parse_named};

/// Maximum characters of a source and of a fact.
const NAME_CHARS_MAX: usize = 40;

named_enum! {
    /// Kind of the key of a row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum KeyKind {
        /// A registrable name.
        Domain = "domain",
        /// A label under every suffix: `brightmesa`.
        Label = "label",
        /// A word or several: `car insurance`.
        Word = "word",
    }
}
parse_named!(KeyKind);

named_enum! {
    /// Type of the values of a column.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum FactType {
        Int = "int",
        Dec = "dec",
        Money = "money",
        Date = "date",
        Year = "year",
        Bool = "bool",
        /// One of a few words.
        Enum = "enum",
        Text = "text",
    }
}
parse_named!(FactType);

named_enum! {
    /// Unit of the numbers of a column; without one, they are counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Unit {
        Points = "points",
        Percent = "percent",
        Rank = "rank",
        Months = "months",
        Years = "years",
    }
}
parse_named!(Unit);

named_enum! {
    /// Whether more is better.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Direction {
        More = "more",
        Less = "less",
    }
}
parse_named!(Direction);

/// Returns true for the name of a source, and of a fact within it: `a` to `z`, digits, `-` and `_`.
pub fn is_part(text: &str) -> bool {
    let is_known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_known)
}

/// Short names of facts of markets.
const SHORT_NAMES: [(&str, &str); 4] = [
    ("market", "market.name"),
    ("price", "market.price"),
    ("bids", "market.bids"),
    ("ends", "market.ends"),
];

/// Name of a fact within the facts of all sources: `majestic.tf`. Invariant: two parts ([`is_part`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FactName(CompactString);

/// A text that is not the name of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the name of a fact, SOURCE.FACT, such as majestic.tf")]
pub struct NotAFact;

impl FactName {
    /// Returns the name of the source.
    pub fn source(&self) -> &str {
        self.0.split_once('.').map_or("", |(source, _)| source)
    }

    /// Returns the name within the source.
    pub fn fact(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, fact)| fact)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FactName {
    type Err = NotAFact;

    fn from_str(text: &str) -> Result<FactName, NotAFact> {
        if let Some((_, name)) = SHORT_NAMES.iter().find(|(short, _)| *short == text) {
            return Ok(FactName(CompactString::const_new(name)));
        }
        let (source, fact) = text.split_once('.').ok_or(NotAFact)?;
        let fits = is_part(source) && is_part(fact);
        fits.then(|| FactName(text.into())).ok_or(NotAFact)
    }
}

impl TryFrom<String> for FactName {
    type Error = NotAFact;

    fn try_from(text: String) -> Result<FactName, NotAFact> {
        text.parse()
    }
}

impl From<FactName> for String {
    fn from(name: FactName) -> String {
        name.0.into()
    }
}

impl fmt::Display for FactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Identifies one edition of a source: the values of an edition never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EditionId(pub u64);

/// A column of an edition, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactColumnId {
    pub edition: EditionId,
    pub column: u8,
}

/// Values of a column that pass a condition, as the numbers by which values are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FactCodes {
    Known,
    Unknown,
    /// Both ends are included.
    Range(i64, i64),
    /// Sorted.
    OneOf(Vec<i64>),
}

impl FactCodes {
    /// Returns true if a value passes; `None` is unknown.
    #[inline]
    pub fn pass(&self, code: Option<i64>) -> bool {
        match (self, code) {
            (FactCodes::Unknown, code) => code.is_none(),
            (_, None) => false,
            (FactCodes::Known, Some(_)) => true,
            (FactCodes::Range(low, high), Some(code)) => (*low..=*high).contains(&code),
            (FactCodes::OneOf(codes), Some(code)) => codes.binary_search(&code).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_facts_have_two_parts() {
        let name: FactName = "majestic.ref_domains".parse().expect("a name");
        assert_eq!((name.source(), name.fact()), ("majestic", "ref_domains"));
        for (short, name) in SHORT_NAMES {
            assert_eq!(short.parse(), name.parse::<FactName>(), "{short}");
        }
        let long = format!("a.{}", "b".repeat(NAME_CHARS_MAX + 1));
        for bad in ["", "tf", "A.b", ".b", "a.", "a.b.c", "a b.c", "a.ü", &long] {
            assert_eq!(bad.parse::<FactName>(), Err(NotAFact), "{bad}");
        }
    }

    #[test]
    fn unknown_values_pass_one_condition_only() {
        let all = [
            FactCodes::Known,
            FactCodes::Unknown,
            FactCodes::Range(i64::MIN, i64::MAX),
            FactCodes::OneOf(vec![0]),
        ];
        assert_eq!(all.each_ref().map(|it| it.pass(None)), [false, true, false, false]);
        assert_eq!(all.each_ref().map(|it| it.pass(Some(0))), [true, false, true, true]);
        assert_eq!(all.map(|it| it.pass(Some(1))), [true, false, true, false]);
    }
}
