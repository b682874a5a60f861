//! The votes of one account.

use compact_str::CompactString;

use crate::data::sorted::Sorted;
use crate::vocab::claim::Vote;

/// Approximate size in memory of a vote without its name, but with its share of the tally.
const VOTE_BYTES: u64 = 128;

/// The votes of one account, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    by_name: Sorted<CompactString, Vote>,
    bytes: u64,
}

/// Returns the approximate size in memory of a vote on `name`, which is also in the tally.
pub fn vote_bytes(name: &str) -> u64 {
    VOTE_BYTES + 2 * name.len() as u64
}

impl Votes {
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the approximate size in memory of all votes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn get(&self, name: &str) -> Option<Vote> {
        self.by_name.get(name).copied()
    }

    /// Returns the votes in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&CompactString, &Vote)> {
        self.by_name.iter()
    }

    /// Sets a vote, or withdraws it with `None`. Returns the previous one.
    pub fn set(&mut self, name: &str, vote: Option<Vote>) -> Option<Vote> {
        let before = match vote {
            Some(vote) => self.by_name.insert(CompactString::new(name), vote),
            None => self.by_name.remove(name),
        };
        match (before, vote) {
            (None, Some(_)) => self.bytes += vote_bytes(name),
            (Some(_), None) => self.bytes -= vote_bytes(name),
            _ => {}
        }
        before
    }
}
