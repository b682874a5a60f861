//! Applies the limits of `ceilings` to the accounts of the store.

use governor::clock::Clock as _;

use super::super::ceilings::{Ceilings, MinuteLimiters, Room};
use super::super::data::account::Account;
use super::super::error::WriteError;
use super::{Caller, Store};
use crate::vocab::time::UnixMs;

/// The rest of a limit per minute after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinuteLeft {
    pub limit: u32,
    pub remaining: u32,
}

/// A limit per minute is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinuteUsedUp {
    pub limit: u32,
    /// Rounded up, since a request one second early would be refused again.
    pub retry_after_s: u64,
}

impl Ceilings {
    /// Counts a request of the caller by the limiter of its plan.
    fn charge(
        &self,
        limiters: &MinuteLimiters,
        caller: &Caller,
        limit: u32,
    ) -> Result<MinuteLeft, MinuteUsedUp> {
        match limiters[caller.plan as usize].check_key(&caller.account) {
            Ok(state) => Ok(MinuteLeft { limit, remaining: state.remaining_burst_capacity() }),
            Err(refused) => {
                let retry_after_s = refused.wait_time_from(self.clock.now()).as_secs() + 1;
                Err(MinuteUsedUp { limit, retry_after_s })
            }
        }
    }
}

impl Store {
    /// Counts a write of the caller.
    ///
    /// # Errors
    /// [`WriteError::TooManyWrites`].
    pub(crate) fn admit(&self, caller: &Caller) -> Result<(), WriteError> {
        let Some(ceilings) = &self.0.ceilings else { return Ok(()) };
        let limit = self.limits(caller).writes_per_minute.get();
        let charged = ceilings.charge(&ceilings.rates, caller, limit);
        caller.usage.note_writes_left(charged.map_or(0, |left| left.remaining));
        charged.map(drop).map_err(|MinuteUsedUp { limit, retry_after_s }| {
            let retry_after_s = retry_after_s as i64;
            WriteError::TooManyWrites { plan: caller.plan, limit, retry_after_s }
        })
    }

    /// Returns the writes of the minute that were left after the caller's last one; `None` before the
    /// first, or without a limit.
    pub fn writes_left(&self, caller: &Caller) -> Option<MinuteLeft> {
        let limit = self.limits(caller).writes_per_minute.get();
        caller.usage.writes_left().map(|remaining| MinuteLeft { limit, remaining })
    }

    /// Counts a completion of a typed text. Returns how many are left, and the limit a minute, or else the
    /// seconds to wait.
    pub fn charge_suggestion(&self, caller: &Caller) -> Result<MinuteLeft, MinuteUsedUp> {
        let limit = self.limits(caller).suggestions_per_minute.get();
        match &self.0.ceilings {
            Some(ceilings) => ceilings.charge(&ceilings.suggestions, caller, limit),
            None => Ok(MinuteLeft { limit, remaining: limit }),
        }
    }

    /// Returns the memory that an account may still use.
    pub(crate) fn room(&self, account: &Account) -> Room {
        let now = UnixMs::from_instant(self.0.clock.now());
        let by_plan = u64::from(self.plan_limits(account.plan).data_mb) << 20;
        let limits = self.0.ceilings.as_ref().map(|it| &it.limits);
        let unverified =
            limits.map(|it| it.unverified_bytes).filter(|_| !account.access.is_verified());
        let limit = unverified.map_or(by_plan, |unverified| unverified.min(by_plan));
        Room {
            // Removing rows frees their bytes at once, though they are kept for a while to be restored.
            used: account.data.bytes()
                - account.data.responses.expired_bytes(now)
                - account.data.actions.bytes(),
            plan: account.plan,
            limit,
            is_unverified: limit < by_plan,
            is_server_full: self.is_full(),
        }
    }

    /// Returns true if the data of all accounts has reached the operator's limit.
    pub(crate) fn is_full(&self) -> bool {
        self.data_bytes_max().is_some_and(|max| self.data_bytes() >= max)
    }

    /// Returns the approximate size in memory of all accounts and their rows.
    pub fn data_bytes(&self) -> u64 {
        self.state().data_bytes
    }

    /// Returns the operator's limit on [`Store::data_bytes`].
    pub fn data_bytes_max(&self) -> Option<u64> {
        self.0.ceilings.as_ref().map(|it| it.limits.total_bytes)
    }
}
