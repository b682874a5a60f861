//! Limits on the bytes that accounts store and on the rate of their writes
//! (`data/docs/accounts.md`, Limits). Each resource defines its own limit on the number of rows.

use std::fmt;

use governor::clock::DefaultClock;
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use super::data::UserData;
use super::data::claims::Claim;
use super::data::facts::{Facts, Part};
use super::data::hidden::hidden_bytes;
use super::data::rules::Rule;
use super::data::votes::vote_bytes;
use super::data::watch_alerts::{WatchSender, WatchSettings};
use super::error::WriteError;
use super::event::Event;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::{AccountLimits, Plan, Plans};

/// A rate limiter by account that also returns the number left.
type MinuteLimiter = RateLimiter<
    AccountId,
    DefaultKeyedStateStore<AccountId>,
    DefaultClock,
    StateInformationMiddleware,
>;

/// One for each plan.
pub(super) type MinuteLimiters = [MinuteLimiter; Plan::ALL.len()];

/// The limits of a server.
pub struct Ceilings {
    pub(super) limits: AccountLimits,
    /// Rate limiters by plan. Each holds a few bytes for every account that wrote since the start.
    pub(super) rates: MinuteLimiters,
    /// The same for completions.
    pub(super) suggestions: MinuteLimiters,
    pub(super) clock: DefaultClock,
}

impl Ceilings {
    pub fn new(limits: AccountLimits, plans: &Plans) -> Ceilings {
        let limiter =
            |per_minute| RateLimiter::keyed(Quota::per_minute(per_minute)).with_middleware();
        Ceilings {
            limits,
            rates: Plan::ALL.map(|plan| limiter(plans.limits(plan).writes_per_minute)),
            suggestions: Plan::ALL.map(|plan| limiter(plans.limits(plan).suggestions_per_minute)),
            clock: DefaultClock::default(),
        }
    }
}

/// The memory that an account may still use.
#[derive(Clone, Copy)]
pub struct Room {
    pub(super) used: u64,
    pub(super) plan: Plan,
    pub(super) limit: u64,
    /// Whether the limit is that of an unverified address rather than that of the plan.
    pub(super) is_unverified: bool,
    pub(super) is_server_full: bool,
}

impl Room {
    /// Checks that an account may grow by this many bytes. An account may always shrink.
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
                     names, alert rules, facts or votes",
                    Size(limit)
                ),
            };
            return Err(WriteError::PlanLimit { plan, limit: None, message });
        }
        if self.is_server_full { Err(WriteError::ServerFull) } else { Ok(()) }
    }
}

/// Returns the change in an account's memory from these events, which concern different rows.
pub fn growth(data: &UserData, events: &[Event]) -> i64 {
    let grown = |event: &Event| match event {
        Event::ClaimPut { claim, .. } => {
            claim.bytes() as i64 - data.claims.get(claim.id).map_or(0, Claim::bytes) as i64
        }
        Event::WatchPut { watch, .. } => {
            watch.bytes() as i64 - data.watches.bytes_of(&watch.entry.name) as i64
        }
        Event::WatchAlertsSet { settings, .. } => {
            let new = WatchSender::new(WatchSettings::clone(settings));
            let before = data.watch_sender.as_ref().map_or(0, |sender| sender.rule.bytes());
            new.rule.bytes() as i64 - before as i64
        }
        Event::NamesHidden { names, shown: false, .. } => {
            names.iter().map(hidden_bytes).sum::<u64>() as i64
        }
        Event::RulePut { rule, .. } => {
            rule.bytes() as i64 - data.rules.get(rule.id).map_or(0, Rule::bytes) as i64
        }
        Event::SearchPut { search, .. } => {
            search.bytes() as i64 - data.searches.get(search.id).map_or(0, |it| it.bytes()) as i64
        }
        Event::VoteSet { name, vote: Some(_), .. } if data.vote(name).is_none() => {
            vote_bytes(name.as_str()) as i64
        }
        Event::ReplyKept { reply, .. } => reply.bytes() as i64,
        Event::ActionUndone { id, .. } => {
            let mut all = data.actions.iter();
            all.find(|action| action.id == *id).map_or(0, |action| data.growth_of_undo(action))
        }
        Event::FactsPart { .. } | Event::FactsPut { .. } | Event::FactsMapped { .. } => {
            growth_of_facts(&data.facts, event)
        }
        _ => 0,
    };
    events.iter().map(grown).sum()
}

/// Returns the change in an account's memory from a part, or from putting an edition into use.
fn growth_of_facts(facts: &Facts, event: &Event) -> i64 {
    match event {
        Event::FactsPart { number, bytes: Part(bytes), .. } => {
            let replaced = if *number == 0 { facts.pending().1 } else { 0 };
            bytes.len() as i64 - replaced as i64
        }
        Event::FactsPut { row, .. } => {
            let before = facts.source(&row.source).map_or(0, |it| it.bytes.len());
            256 - before as i64
        }
        Event::FactsMapped { print, mapping: Some(mapping), .. } => {
            128 + (print.len() + mapping.len()) as i64
        }
        _ => 0,
    }
}

/// Formats a number of bytes for people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 20 => write!(f, "{} MiB", bytes >> 20),
            bytes => write!(f, "{} KiB", bytes >> 10),
        }
    }
}
