//! The watchlist and what it costs (decisions.md §4, §5), and votes.

use std::collections::BTreeSet;
use std::slice;

use rustc_hash::FxHashMap;

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

/// What became of a name that was to be put on the list: its entry, or why there is none.
type Watched = Result<(WatchEntry, Outcome), WriteError>;

/// Puts a name on the list at `now`.
pub(in crate::accounts) fn add(
    account: &Account,
    limits: &PlanLimits,
    watch: &Watch,
    now: UnixMs,
) -> Result<Decided<(WatchEntry, Outcome)>, WriteError> {
    let Decided { events, mut answer } = add_all(account, limits, slice::from_ref(watch), now);
    let answer = answer.pop().expect("one name has one answer")?;
    Ok(Decided { events, answer })
}

/// Puts names on the list at `now`, in their order, each as if it came alone: where a quota or the
/// list ends, what is left is refused. An answer for each.
pub(in crate::accounts) fn add_all(
    account: &Account,
    limits: &PlanLimits,
    new: &[Watch],
    now: UnixMs,
) -> Decided<Vec<Watched>> {
    let mut adding = Adding::new(account, limits, new, now);
    let answer = new.iter().map(|watch| adding.put(watch)).collect();
    let events = arrival(account, adding.arrived).into_iter().chain(adding.events).collect();
    Decided { events, answer }
}

/// Names being put on a list.
struct Adding<'a> {
    account: &'a Account,
    limits: &'a PlanLimits,
    now: UnixMs,
    /// Names on the list that give their quota back first.
    arrived: Vec<DomainName>,
    /// On the list so far, and how many of them cost quota.
    entries: usize,
    external: u32,
    /// Those that were put there now.
    added: FxHashMap<&'a DomainName, WatchEntry>,
    events: Vec<Event>,
}

impl<'a> Adding<'a> {
    fn new(account: &'a Account, limits: &'a PlanLimits, new: &[Watch], now: UnixMs) -> Adding<'a> {
        let watches = &account.owned.watches;
        let arrived = arrived(account, new.iter().flat_map(|watch| &watch.arrived));
        Adding {
            account,
            limits,
            now,
            entries: watches.len(),
            external: watches.external() - arrived.len() as u32,
            arrived,
            added: FxHashMap::default(),
            events: Vec::new(),
        }
    }

    fn put(&mut self, watch: &'a Watch) -> Watched {
        let Watch { name, in_corpus, registered_again, .. } = watch;
        let there = || self.account.owned.watches.get(name);
        if let Some(mut entry) = self.added.get(name).cloned().or_else(there) {
            entry.external &= !self.arrived.contains(name);
            return Ok((entry, Outcome::AlreadyThere));
        }
        if self.entries >= WATCHES_MAX as usize {
            return Err(WriteError::TooMany { what: "names on its watchlist", limit: WATCHES_MAX });
        }
        if !in_corpus && self.external >= self.limits.external_names {
            return Err(no_external_name_left(self.account, self.limits));
        }
        let entry = WatchEntry {
            name: name.clone(),
            added_at: self.now,
            external: !in_corpus,
            registered_again: *registered_again,
        };
        self.entries += 1;
        self.external += u32::from(entry.external);
        let (account, watch) = (self.account.id, entry.clone().into());
        self.events.push(Event::WatchAdded { account, watch });
        self.added.insert(name, entry.clone());
        Ok((entry, Outcome::Added))
    }
}

/// Takes a name off the list.
pub(in crate::accounts) fn remove(
    account: &Account,
    name: &DomainName,
) -> Result<Decided<()>, WriteError> {
    match remove_all(account, slice::from_ref(name)) {
        Decided { answer: 0, .. } => Err(WriteError::NotFound),
        Decided { events, .. } => Ok(Decided { events, answer: () }),
    }
}

/// Takes names off the list; how many were on it.
pub(in crate::accounts) fn remove_all(account: &Account, names: &[DomainName]) -> Decided<usize> {
    let watched = names.iter().filter(|name| account.owned.watches.get(name).is_some());
    let watched: BTreeSet<_> = watched.cloned().collect();
    let count = watched.len();
    let removed = |name| Event::WatchRemoved { account: account.id, name: StoredName(name) };
    Decided { events: watched.into_iter().map(removed).collect(), answer: count }
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
fn arrived<'a>(account: &Account, names: impl Iterator<Item = &'a DomainName>) -> Vec<DomainName> {
    let is_external =
        |name: &&DomainName| account.owned.watches.get(name).is_some_and(|entry| entry.external);
    let mut arrived: Vec<_> = names.filter(is_external).cloned().collect();
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
    let message = match limit {
        0 => format!("the {plan} plan has no watchlist names that are not in the corpus"),
        _ => format!(
            "the {plan} plan allows {limit} watchlist names that are not in the corpus, and they \
             are used up"
        ),
    };
    WriteError::PlanLimit { plan, limit: Some(limit), message }
}
