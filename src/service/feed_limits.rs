//! Limits of feeds: a rate for each address, and concurrency per account.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::account_turns::{AccountTurn, AccountTurns};
use crate::accounts::TokenDigest;
use crate::error::ApiError;
use crate::vocab::ids::AccountId;

/// Requests to a feed that may come at once. Feed readers and calendars poll every 15 minutes or
/// less often.
const BURST: u32 = 20;
const REFILL_EVERY: Duration = Duration::from_secs(60);
/// Feeds of an account that may be built at once. Feeds take slots of visitors, and one account must not use
/// up those slots.
const AT_ONCE_MAX: u32 = 4;
/// Requests between two removals of idle limits.
const SWEEP_EVERY: u32 = 4_096;
/// Limiters of feeds. They are kept in memory, so a restart resets them.
pub struct FeedLimits {
    limiter: DefaultKeyedRateLimiter<TokenDigest>,
    running: Arc<AccountTurns>,
    checks: AtomicU32,
}

impl Default for FeedLimits {
    fn default() -> FeedLimits {
        let burst = NonZeroU32::new(BURST).expect("above 0");
        let quota = Quota::with_period(REFILL_EVERY).expect("above 0").allow_burst(burst);
        FeedLimits {
            limiter: RateLimiter::keyed(quota),
            running: Arc::default(),
            checks: AtomicU32::new(0),
        }
    }
}

impl FeedLimits {
    /// Begins a request of a feed.
    ///
    /// # Errors
    /// 429 when the feed was read too often, or too many feeds of the account are being built.
    pub fn begin(&self, account: AccountId, feed: TokenDigest) -> Result<AccountTurn, ApiError> {
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP_EVERY) {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&feed).map_err(|refused| ApiError::TooManyFeedRequests {
            retry_after_s: refused.wait_time_from(DefaultClock::default().now()).as_secs() + 1,
        })?;
        let running = self.running.begin(account, AT_ONCE_MAX);
        running.ok_or(ApiError::TooManyFeeds { limit: AT_ONCE_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Token;

    #[test]
    fn an_account_reads_a_few_feeds_at_once() {
        let limits = FeedLimits::default();
        let feed = |number: u8| {
            Token::parse(&format!("{number:064x}")).expect("64 hexadecimal digits").digest()
        };
        let begin = |account, number| limits.begin(AccountId(account), feed(number));
        let mut running: Vec<_> = (0..AT_ONCE_MAX as u8).map(|number| begin(1, number)).collect();
        assert!(running.iter().all(Result::is_ok));
        let refused = begin(1, 100);
        assert!(
            matches!(refused, Err(ApiError::TooManyFeeds { limit: AT_ONCE_MAX })),
            "{refused:?}"
        );
        assert!(begin(2, 101).is_ok(), "another account is not concerned");
        running.pop();
        assert!(begin(1, 102).is_ok());
    }
}
