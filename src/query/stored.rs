//! Conditions on names as they are stored: names and values of the parameters of the drops list
//! (`data/docs/queries.md`). They were validated when they were stored. They become a
//! [`Filter`](crate::filter::Filter) on the day that they are used: `tomorrow` and `+3d` move
//! with it.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// Parameters and their values, each parameter at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(Vec<(CompactString, CompactString)>);

impl Conditions {
    /// Conditions of validated parameters. Empty values are left out.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Conditions {
        let set = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Conditions(set.map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Parameters and values, in the order in which they were given.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a parameter; empty if it is not set.
    pub fn get(&self, name: &str) -> &str {
        self.pairs().find(|(set, _)| *set == name).map_or("", |(_, value)| value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Approximate memory.
    pub fn bytes(&self) -> u64 {
        let bytes =
            |(name, value): (&str, &str)| 2 * size_of::<CompactString>() + name.len() + value.len();
        self.pairs().map(bytes).sum::<usize>() as u64
    }
}
