//! Limits of backtests: one at a time and a few an hour for each account, since each reads all drops.

use std::num::NonZeroU32;
use std::sync::Arc;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::account_turns::{AccountTurn, AccountTurns};
use crate::error::ApiError;
use crate::vocab::ids::AccountId;

/// Backtests per account and hour. All may come at once, one after another.
const PER_HOUR: NonZeroU32 = NonZeroU32::new(30).expect("above 0");

/// Limiters of backtests. They are kept in memory, so a restart resets them.
pub struct Backtests {
    limiter: DefaultKeyedRateLimiter<AccountId>,
    running: Arc<AccountTurns>,
}

impl Default for Backtests {
    fn default() -> Backtests {
        let limiter = RateLimiter::keyed(Quota::per_hour(PER_HOUR));
        Backtests { limiter, running: Arc::default() }
    }
}

impl Backtests {
    /// Begins a backtest.
    ///
    /// # Errors
    /// 429 while another one of the account runs, or after too many in an hour.
    pub fn begin(&self, account: AccountId) -> Result<AccountTurn, ApiError> {
        let turn = self.running.begin(account, 1).ok_or(ApiError::BacktestRunning)?;
        self.limiter.check_key(&account).map_err(|refused| ApiError::TooManyBacktests {
            per_hour: PER_HOUR.get(),
            retry_after_s: refused.wait_time_from(DefaultClock::default().now()).as_secs() + 1,
        })?;
        Ok(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_runs_one_at_a_time_and_thirty_an_hour() {
        let limits = Backtests::default();
        let first = limits.begin(AccountId(1)).expect("the first");
        assert!(matches!(limits.begin(AccountId(1)), Err(ApiError::BacktestRunning)));
        assert!(limits.begin(AccountId(2)).is_ok(), "another account is not concerned");
        drop(first);
        for _ in 1..PER_HOUR.get() {
            limits.begin(AccountId(1)).expect("within the hour's");
        }
        let Err(ApiError::TooManyBacktests { per_hour: 30, retry_after_s }) =
            limits.begin(AccountId(1))
        else {
            panic!("not refused")
        };
        assert!((1..=120).contains(&retry_after_s), "{retry_after_s}");
    }
}
