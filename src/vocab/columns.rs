//! The choice of columns of the drop list.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::named::named_enum;

named_enum! {
    /// An optional column of the drop list, in the order of the table. Name and score are always shown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Column {
        Why = "why",
        Length = "length",
        Tlds = "tlds",
        Words = "words",
        Language = "language",
        Kind = "kind",
        /// Number of drops on record.
        Drops = "drops",
        /// Best rank on a popularity list.
        Popularity = "popularity",
        /// Place among the drops of its suffix.
        SuffixRank = "suffix-rank",
        /// Percent of names like it that are expected to be registered within a week.
        ExpectedTaken = "expected-taken",
        Dropped = "dropped",
        Listed = "listed",
        /// Days to the release.
        Days = "days",
        Due = "due",
        State = "state",
        /// What registries and the DNS said when the viewer asked.
        Checked = "checked",
    }
}

/// A set of columns, in the order of the table. The text form of a set, in cookies and in the
/// journal, consists of the names separated by dots: `why.length.due`. Unknown names are dropped,
/// so a removed column does not invalidate a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Columns(Vec<Column>);

impl Columns {
    /// Returns the columns with these names.
    pub fn named<'a>(names: impl Iterator<Item = &'a str>) -> Columns {
        let names: Vec<_> = names.collect();
        let is_chosen = |column: &Column| names.contains(&column.as_str());
        Columns(Column::ALL.into_iter().filter(is_chosen).collect())
    }

    /// Returns the columns in the order of the table.
    pub fn as_slice(&self) -> &[Column] {
        &self.0
    }
}

/// The default: why, length, release and state.
impl Default for Columns {
    fn default() -> Columns {
        let columns = [Column::Why, Column::Length, Column::Due, Column::State];
        Columns(columns.to_vec())
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, column) in self.0.iter().enumerate() {
            write!(f, "{}{column}", if at > 0 { "." } else { "" })?;
        }
        Ok(())
    }
}

impl From<String> for Columns {
    fn from(text: String) -> Columns {
        Columns::named(text.split('.'))
    }
}

impl From<Columns> for String {
    fn from(columns: Columns) -> String {
        columns.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_a_set_in_the_order_of_the_table() {
        let read = |text: &str| Columns::from(text.to_owned());
        assert_eq!(read("state.length.gone.state").as_slice(), [Column::Length, Column::State]);
        assert_eq!(read("").as_slice(), []);
        assert_eq!(read("").to_string(), "");
        let default = Columns::default();
        assert_eq!(default.to_string(), "why.length.due.state");
        assert_eq!(read(&default.to_string()), default);
    }
}
