//! Secret URLs at which feed readers and calendars get names of one account.

use serde::{Deserialize, Serialize};

use crate::data::fields::row;
use crate::token::TokenDigest;
use crate::vocab::day::Day;
use crate::vocab::ids::{RuleId, SearchId};

/// The names that a feed lists. Variants are stored by position, so only append to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FeedOf {
    Watchlist,
    Search(SearchId),
    Rule(RuleId),
}

/// A feed and the digest that identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    pub of: FeedOf,
    pub digest: TokenDigest,
    /// UTC day on which it was created.
    pub created: Day,
}

row!(Feed { 1 of, 2 digest, 3 created });

/// Feeds, oldest first, at most one for each kind of names.
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

    /// Adds a feed. Adds a feed, which replaces the feed of the same names.
    pub fn put(&mut self, feed: Feed) {
        self.remove(feed.of);
        self.0.push(feed);
    }

    pub fn remove(&mut self, of: FeedOf) {
        self.0.retain(|feed| feed.of != of);
    }
}
