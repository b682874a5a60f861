//! Feeds for readers and calendars (`data/docs/feeds.md`).

use chrono::{DateTime, Utc};

use super::data::feeds::{Feed, FeedOf};
use super::decide::Decided;
use super::error::WriteError;
use super::event::{Event, RowOf};
use super::idempotency::{Draft, Post};
use super::store::{Caller, Credential, Store};
use super::token::{Token, TokenDigest};
use crate::vocab::day::Day;

impl Store {
    /// Creates the feed of some names, or replaces its URL. The previous URL stops working.
    ///
    /// # Errors
    /// [`WriteError::NotFound`]: the search or rule does not exist. [`WriteError::Journal`].
    pub async fn make_feed(
        &self,
        caller: &Caller,
        of: FeedOf,
        now: DateTime<Utc>,
    ) -> Result<Token, WriteError> {
        self.draft_feed(caller, of, Post::repeatable(now)).await?.finish().await
    }

    /// As [`Store::make_feed`], for a POST that may have an idempotency key: a repeated request
    /// does not change the URL.
    ///
    /// # Errors
    /// As [`Store::make_feed`], and an idempotency key used before.
    pub async fn draft_feed(
        &self,
        caller: &Caller,
        of: FeedOf,
        post: Post,
    ) -> Result<Draft<'_, Token>, WriteError> {
        let token = Token::generate().map_err(WriteError::Random)?;
        let feed = Feed { of, digest: token.digest(), created: Day::nearest(post.now) };
        self.draft(caller, post, |account, _| {
            let is_known = match of {
                FeedOf::Watchlist => true,
                FeedOf::Search(id) => account.data.searches.get(id).is_some(),
                FeedOf::Rule(id) => account.data.rules.get(id).is_some(),
            };
            if !is_known || account.is_disabled() {
                return Err(WriteError::NotFound);
            }
            Ok(Decided::new([Event::FeedPut { account: account.id, feed }], token))
        })
        .await
    }

    /// Revokes a feed: its URL stops working at once.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::Journal`].
    pub async fn revoke_feed(&self, caller: &Caller, of: FeedOf) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            account.access.feeds.get(of).ok_or(WriteError::NotFound)?;
            let revoked = Event::Removed { account: account.id, row: RowOf::Feed(of) };
            Ok(Decided::new([revoked], ()))
        })
        .await
    }

    /// Returns the feeds of the caller's account, oldest first.
    pub fn feeds(&self, caller: &Caller) -> Vec<Feed> {
        let state = self.state();
        let feeds =
            state.account(caller.account).map(|account| account.access.feeds.iter().copied());
        feeds.into_iter().flatten().collect()
    }

    /// Returns the account and the names of the feed with this token.
    pub fn feed(&self, token: &Token) -> Option<(Caller, FeedOf, TokenDigest)> {
        let digest = token.digest();
        let state = self.state();
        let (account, feed) = state.by_feed(&digest)?;
        Some((Caller::new(account, Credential::Feed(digest)), feed.of, digest))
    }
}
