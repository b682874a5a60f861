//! The watchlist and what it costs (decisions.md §4, §5), and votes.

use super::Decided;
use crate::accounts::event::{Event, StoredName};
use crate::accounts::owned::watches::{Watch, WatchEntry};
use crate::accounts::state::Account;
use crate::accounts::write::{Outcome, WriteError};
use crate::vocab::claim::Vote;
use crate::vocab::limits::{VOTES_MAX, WATCHES_MAX};
use crate::vocab::name::DomainName;
use crate::vocab::plan::PlanLimits;
use crate::vocab::time::UnixMs;

/// Names that may arrive in one transaction: a record has room for these at their longest. More
/// external names than this take a setting far above the plans of today, and then the next write
/// takes the rest.
const ARRIVED_MAX: usize = 2_000;

/// Puts a name on the list at `now`.
pub(in crate::accounts) fn add(
    account: &Account,
    limits: &PlanLimits,
    watch: &Watch,
    now: UnixMs,
) -> Result<Decided<(WatchEntry, Outcome)>, WriteError> {
    let watches = &account.owned.watches;
    let arrived = arrived(account, &watch.arrived);
    if let Some(mut entry) = watches.get(&watch.name) {
        entry.external &= !arrived.contains(&watch.name);
        let events = arrival(account, arrived).into_iter().collect();
        return Ok(Decided { events, answer: (entry, Outcome::AlreadyThere) });
    }
    if watches.len() >= WATCHES_MAX as usize {
        return Err(WriteError::TooMany { what: "names on its watchlist", limit: WATCHES_MAX });
    }
    let external = watches.external() - arrived.len() as u32;
    if !watch.in_corpus && external >= limits.external_names {
        return Err(no_external_name_left(account, limits));
    }
    let entry = WatchEntry {
        name: watch.name.clone(),
        added_at: now,
        external: !watch.in_corpus,
        registered_again: watch.registered_again,
    };
    let added = Event::WatchAdded { account: account.id, watch: entry.clone().into() };
    let events = arrival(account, arrived).into_iter().chain([added]).collect();
    Ok(Decided { events, answer: (entry, Outcome::Added) })
}

/// Takes a name off the list.
pub(in crate::accounts) fn remove(
    account: &Account,
    name: &DomainName,
) -> Result<Decided<()>, WriteError> {
    account.owned.watches.get(name).ok_or(WriteError::NotFound)?;
    let event = Event::WatchRemoved { account: account.id, name: StoredName(name.clone()) };
    Ok(Decided { events: vec![event], answer: () })
}

/// Sets or takes back a vote.
pub(in crate::accounts) fn vote(
    account: &Account,
    name: &DomainName,
    vote: Option<Vote>,
) -> Result<Decided<()>, WriteError> {
    let votes = &account.owned.votes;
    let before = votes.get(name.as_str()).copied();
    if before == vote {
        return Ok(Decided { events: Vec::new(), answer: () });
    }
    if before.is_none() && votes.len() >= VOTES_MAX as usize {
        return Err(WriteError::TooMany { what: "votes", limit: VOTES_MAX });
    }
    let event = Event::VoteSet { account: account.id, name: StoredName(name.clone()), vote };
    Ok(Decided { events: vec![event], answer: () })
}

/// Which of `names` cost quota still, each once.
fn arrived(account: &Account, names: &[DomainName]) -> Vec<DomainName> {
    let is_external =
        |name: &&DomainName| account.owned.watches.get(name).is_some_and(|entry| entry.external);
    let mut arrived: Vec<_> = names.iter().filter(is_external).cloned().collect();
    arrived.sort_unstable();
    arrived.dedup();
    arrived.truncate(ARRIVED_MAX);
    arrived
}

fn arrival(account: &Account, arrived: Vec<DomainName>) -> Option<Event> {
    let names: Vec<_> = arrived.into_iter().map(StoredName).collect();
    (!names.is_empty()).then_some(Event::WatchesArrived { account: account.id, names })
}

fn no_external_name_left(account: &Account, limits: &PlanLimits) -> WriteError {
    let (plan, limit) = (account.plan, limits.external_names);
    let message = format!(
        "the {plan} plan allows {limit} watchlist names that are not in the corpus, and they are \
         used up"
    );
    WriteError::PlanLimit { plan, limit: Some(limit), message }
}
