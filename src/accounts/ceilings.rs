//! What accounts may store, in bytes, and how often they may write (`data/docs/accounts.md`, Limits).
//! Limits on the number of rows are with each resource.

use std::fmt;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::data::UserData;
use super::data::account::Account;
use super::data::claims::Claim;
use super::data::rules::Rule;
use super::data::votes::vote_bytes;
use super::data::watches::watch_bytes;
use super::error::WriteError;
use super::event::Event;
use super::store::{Caller, Store};
use crate::vocab::ids::AccountId;
use crate::vocab::plan::{AccountLimits, Plan, Plans};
use crate::vocab::time::UnixMs;

/// The limits of a server.
pub struct Ceilings {
    limits: AccountLimits,
    /// By plan. Each holds a few bytes for every account that wrote since the start.
    rates: [DefaultKeyedRateLimiter<AccountId>; Plan::ALL.len()],
    clock: DefaultClock,
}

impl Ceilings {
    pub fn new(limits: AccountLimits, plans: &Plans) -> Ceilings {
        let rate =
            |plan| RateLimiter::keyed(Quota::per_minute(plans.limits(plan).writes_per_minute));
        Ceilings { limits, rates: Plan::ALL.map(rate), clock: DefaultClock::default() }
    }
}

/// The memory that an account may still use.
#[derive(Clone, Copy)]
pub struct Room {
    used: u64,
    plan: Plan,
    limit: u64,
    /// Whether the limit is that of an unverified address, not of the plan.
    is_unverified: bool,
    is_server_full: bool,
}

impl Room {
    /// Checks that an account may grow by this many bytes. It may always shrink.
    ///
    /// # Errors
    /// [`WriteError::PlanLimit`], [`WriteError::ServerFull`].
    pub fn check(&self, growth: i64) -> Result<(), WriteError> {
        let Room { plan, limit, .. } = *self;
        if growth <= 0 {
            return Ok(());
        }
        if self.used.saturating_add_signed(growth) > limit {
            let message = match self.is_unverified {
                true => format!(
                    "an account whose e-mail address is not verified holds at most {} of data; verify \
                     the address to store more",
                    Size(limit)
                ),
                false => format!(
                    "the {plan} plan holds at most {} of data; shorten notes or delete claims, watched \
                     names, alert rules or votes",
                    Size(limit)
                ),
            };
            return Err(WriteError::PlanLimit { plan, limit: None, message });
        }
        if self.is_server_full { Err(WriteError::ServerFull) } else { Ok(()) }
    }
}

impl Store {
    /// Counts a write of the caller.
    ///
    /// # Errors
    /// [`WriteError::TooManyWrites`].
    pub(super) fn admit(&self, caller: &Caller) -> Result<(), WriteError> {
        let Some(Ceilings { rates, clock, .. }) = &self.0.ceilings else { return Ok(()) };
        rates[caller.plan as usize].check_key(&caller.account).map_err(|refused| {
            let wait = refused.wait_time_from(clock.now());
            WriteError::TooManyWrites {
                plan: caller.plan,
                limit: self.limits(caller).writes_per_minute.get(),
                // Rounded up: a request one second early would be refused again.
                retry_after_s: wait.as_secs() as i64 + 1,
            }
        })
    }

    /// The memory that an account may still use.
    pub(super) fn room(&self, account: &Account) -> Room {
        let now = UnixMs::from_instant(self.0.clock.now());
        let by_plan = u64::from(self.plan_limits(account.plan).data_mb) << 20;
        let limits = self.0.ceilings.as_ref().map(|it| &it.limits);
        let unverified =
            limits.map(|it| it.unverified_bytes).filter(|_| !account.access.is_verified());
        let limit = unverified.map_or(by_plan, |unverified| unverified.min(by_plan));
        Room {
            used: account.data.bytes() - account.data.responses.expired_bytes(now),
            plan: account.plan,
            limit,
            is_unverified: limit < by_plan,
            is_server_full: self.is_full(),
        }
    }

    /// Whether the data of all accounts has reached the operator's limit.
    pub(super) fn is_full(&self) -> bool {
        self.data_bytes_max().is_some_and(|max| self.data_bytes() >= max)
    }

    /// Approximate memory of all accounts and their rows.
    pub fn data_bytes(&self) -> u64 {
        self.state().data_bytes
    }

    /// The operator's limit of [`Store::data_bytes`].
    pub fn data_bytes_max(&self) -> Option<u64> {
        self.0.ceilings.as_ref().map(|it| it.limits.total_bytes)
    }
}

/// The change of an account's memory by these events. They concern different rows.
pub fn growth(data: &UserData, events: &[Event]) -> i64 {
    let grown = |event: &Event| match event {
        Event::ClaimAdded { claim, .. } | Event::ClaimChanged { claim, .. } => {
            claim.bytes() as i64 - data.claims.get(claim.id).map_or(0, Claim::bytes) as i64
        }
        Event::RuleAdded { rule, .. } | Event::RuleChanged { rule, .. } => {
            rule.bytes() as i64 - data.rules.get(rule.id).map_or(0, Rule::bytes) as i64
        }
        Event::WatchAdded { watch, .. } => watch_bytes(&watch.name) as i64,
        Event::VoteSet { name, vote: Some(_), .. } if data.vote(name).is_none() => {
            vote_bytes(name.as_str()) as i64
        }
        Event::ReplyKept { reply, .. } => reply.bytes() as i64,
        _ => 0,
    };
    events.iter().map(grown).sum()
}

/// A number of bytes as people read it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 20 => write!(f, "{} MiB", bytes >> 20),
            bytes => write!(f, "{} KiB", bytes >> 10),
        }
    }
}
