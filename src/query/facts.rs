//! Conditions on facts: `majestic.tf:10..40` and `has=majestic.tf`. Types and visible sources are known to the caller
//! of a query, who resolves the conditions before they are evaluated; no name passes one that is not resolved.

use std::fmt;

use compact_str::CompactString;

use crate::list;
use crate::vocab::fact::{FactCodes, FactColumnId, FactName};

/// Prefix of the parameter of a fact: `fact.majestic.tf=10..40`.
pub const PREFIX: &str = "fact.";
/// The condition that holds the values of all of them.
pub const FACT: &str = "fact";

/// A condition on a fact.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FactCondition {
    pub name: FactName,
    pub test: FactTest,
    /// The column, and the numbers that pass, once the caller is known.
    pub resolved: Option<(FactColumnId, FactCodes)>,
}

/// The values of a fact that pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FactTest {
    Known,
    Unknown,
    /// From one value to another, both included; `None` is unbounded. The type of the fact decides how they are read.
    Range(Option<CompactString>, Option<CompactString>),
    OneOf(Vec<CompactString>),
}

impl FactCondition {
    /// Parses `NAME:VALUES`: `majestic.tf:10..40`, `majestic.tf:10..`, `ut1.category:adult|gambling`.
    ///
    /// # Errors
    /// The text is of another form.
    pub fn parse(text: &str) -> Result<FactCondition, &'static str> {
        let what = "must be SOURCE.FACT:VALUE or SOURCE.FACT:LOW..HIGH, such as majestic.tf:10..40";
        let (name, values) = text.split_once(':').ok_or(what)?;
        let name = name.trim().parse().map_err(|_| what)?;
        let test = match values.split_once("..") {
            Some((low, high)) => {
                let bound = |text: &str| {
                    Some(text.trim()).filter(|text| !text.is_empty()).map(CompactString::from)
                };
                let (low, high) = (bound(low), bound(high));
                if low.is_none() && high.is_none() {
                    return Err("needs a value before or after the two points; has= asks for any");
                }
                FactTest::Range(low, high)
            }
            None => {
                let values = values.split('|').map(str::trim).filter(|value| !value.is_empty());
                FactTest::OneOf(values.map(CompactString::from).collect())
            }
        };
        if test == FactTest::OneOf(Vec::new()) {
            return Err(what);
        }
        Ok(FactCondition { name, test, resolved: None })
    }

    /// Parses `majestic.tf`, or `!majestic.tf` for names without this fact.
    ///
    /// # Errors
    /// The text is not the name of a fact.
    pub fn parse_has(text: &str) -> Result<FactCondition, &'static str> {
        let (test, name) = match text.trim().strip_prefix('!') {
            Some(name) => (FactTest::Unknown, name),
            None => (FactTest::Known, text.trim()),
        };
        let what = "must be SOURCE.FACT, or !SOURCE.FACT for names without this fact";
        let name = name.parse().map_err(|_| what)?;
        Ok(FactCondition { name, test, resolved: None })
    }
}

impl fmt::Display for FactCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |text: &Option<CompactString>| text.clone().unwrap_or_default();
        match &self.test {
            FactTest::Known => self.name.fmt(f),
            FactTest::Unknown => write!(f, "!{}", self.name),
            FactTest::Range(low, high) => {
                write!(f, "{}:{}..{}", self.name, bound(low), bound(high))
            }
            FactTest::OneOf(values) => write!(f, "{}:{}", self.name, values.join("|")),
        }
    }
}

/// Returns the item of [`FACT`] for the parameter of a fact, if `name` is one: none, an empty text, for an empty value.
/// A comma is part of the value.
pub fn item(name: &str, value: &str) -> Option<String> {
    let fact = name.strip_prefix(PREFIX)?;
    if value.trim().is_empty() {
        return Some(String::new());
    }
    Some(list::quote(&format!("{fact}:{value}")).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written() {
        for text in ["a.b:1..2", "a.b:1..", "a.b:..2", "a.b:x|y z", "a.b:2026-01-01..today"] {
            let condition = FactCondition::parse(text).expect(text);
            assert_eq!(condition.to_string(), text);
        }
        for text in ["a.b", "!a.b"] {
            assert_eq!(
                FactCondition::parse_has(text).map(|it| it.to_string()).as_deref(),
                Ok(text)
            );
        }
        for text in ["", "a.b", "a.b:", "a.b:..", "a.b: | ", "a:1", "A.b:1", "a.b.c:1", ":1"] {
            assert!(FactCondition::parse(text).is_err(), "{text}");
        }
        for text in ["", "!", "a", "!!a.b", "a.b:1"] {
            assert!(FactCondition::parse_has(text).is_err(), "{text}");
        }
        assert_eq!(item("fact.a.b", "1,5..").as_deref(), Some("\"a.b:1,5..\""));
        assert_eq!(item("fact.a.b", " ").as_deref(), Some(""));
        assert_eq!(item("facts", "a.b"), None);
    }
}
