//! Secret addresses at which readers and calendars find the names of one account.

use serde::{Deserialize, Serialize};

use crate::data::fields::row;
use crate::token::TokenDigest;
use crate::vocab::day::Day;
use crate::vocab::ids::{RuleId, SearchId};

/// The names of a feed. Stored by position: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FeedOf {
    Watchlist,
    Search(SearchId),
    Rule(RuleId),
}

/// A feed and what it is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    pub of: FeedOf,
    pub digest: TokenDigest,
    /// The UTC day it was made.
    pub created: Day,
}

row!(Feed { 1 of, 2 digest, 3 created });

/// Feeds, oldest first, at most one of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feeds(Vec<Feed>);

impl Feeds {
    pub fn iter(&self) -> impl Iterator<Item = &Feed> {
        self.0.iter()
    }

    pub fn get(&self, of: FeedOf) -> Option<&Feed> {
        self.0.iter().find(|feed| feed.of == of)
    }

    pub fn by_digest(&self, digest: &TokenDigest) -> Option<&Feed> {
        self.0.iter().find(|feed| feed.digest.is(digest))
    }

    /// Adds a feed. It replaces the one of the same names.
    pub fn put(&mut self, feed: Feed) {
        self.remove(feed.of);
        self.0.push(feed);
    }

    pub fn remove(&mut self, of: FeedOf) {
        self.0.retain(|feed| feed.of != of);
    }
}
