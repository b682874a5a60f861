//! Watchlists and the quota of names outside the corpus (`data/docs/api.md`, Watchlist).

use std::collections::BTreeSet;
use std::slice;

use chrono::{DateTime, Utc};
use rustc_hash::FxHashMap;

use super::data::account::Account;
use super::data::watches::WatchEntry;
use super::decide::Decided;
use super::error::WriteError;
use super::event::Event;
use super::idempotency::{Draft, Post};
use super::store::{Caller, Store};
use crate::vocab::limits::WATCHES_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::plan::PlanLimits;
use crate::vocab::time::UnixMs;

/// Maximum names marked as arrived per transaction: as many as fit a record at their longest. Only a
/// quota far above today's plans has more external names; the next write marks the rest.
const ARRIVED_MAX: usize = 2_000;

/// A name to be watched, and facts about it from the index.
#[derive(Clone, Debug)]
pub struct Watch {
    pub name: DomainName,
    /// Whether the index holds the name. If not, it consumes quota.
    pub in_corpus: bool,
    /// Whether it has been registered again since its last drop.
    pub registered_again: bool,
    /// External names of the watchlist that the index now holds. They stop consuming quota before
    /// the quota is checked.
    pub arrived: Vec<DomainName>,
}

/// Whether a name was added to the watchlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Added,
    /// It was on the list before; no quota was consumed.
    AlreadyThere,
}

/// The entry of a name that was to be added, or why it was refused.
type Added = Result<(WatchEntry, Outcome), WriteError>;

impl Store {
    /// Adds a name to the watchlist.
    ///
    /// # Errors
    /// [`WriteError`]: no quota left for an external name, 10,000 entries, an idempotency key used
    /// before.
    pub async fn add_watch(
        &self,
        caller: &Caller,
        watch: Watch,
        post: Post,
    ) -> Result<Draft<'_, (WatchEntry, Outcome)>, WriteError> {
        let now = UnixMs::from_instant(post.now);
        self.draft(caller, post, |account, limits| {
            let Decided { events, mut value } =
                add_all(account, limits, slice::from_ref(&watch), now);
            Ok(Decided { events, value: value.pop().expect("one result for one name")? })
        })
        .await
    }

    /// Adds names to the watchlist, in their order and as one transaction, and returns a result for
    /// each. At most 1,000 names, so that they fit a record.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: none was added.
    pub async fn add_watches(
        &self,
        caller: &Caller,
        new: Vec<Watch>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Result<Outcome, WriteError>>, WriteError> {
        let now = UnixMs::from_instant(now);
        let added =
            self.write(caller, |account, limits| Ok(add_all(account, limits, &new, now))).await?;
        Ok(added.into_iter().map(|one| one.map(|(_, outcome)| outcome)).collect())
    }

    /// Removes a name from the watchlist.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_watch(&self, caller: &Caller, name: &DomainName) -> Result<(), WriteError> {
        match self.remove_watches(caller, vec![name.clone()]).await? {
            0 => Err(WriteError::NotFound),
            _ => Ok(()),
        }
    }

    /// Removes names from the watchlist as one transaction. Returns how many were on it.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: none was removed.
    pub async fn remove_watches(
        &self,
        caller: &Caller,
        names: Vec<DomainName>,
    ) -> Result<usize, WriteError> {
        self.write(caller, |account, _| {
            let (id, watches) = (account.id, &account.data.watches);
            let names: BTreeSet<_> =
                names.into_iter().filter(|name| watches.get(name).is_some()).collect();
            let count = names.len();
            let removed = names.into_iter().map(|name| Event::WatchRemoved { account: id, name });
            Ok(Decided::new(removed, count))
        })
        .await
    }
}

/// Adds names in their order, each as if it came alone: once the quota or the list is full, the rest
/// is refused.
fn add_all(
    account: &Account,
    limits: &PlanLimits,
    new: &[Watch],
    now: UnixMs,
) -> Decided<Vec<Added>> {
    let arrived = arrived(account, new);
    let watches = &account.data.watches;
    let mut adding = Adding {
        account,
        limits,
        now,
        entries: watches.len(),
        external: watches.external() - arrived.len() as u32,
        arrived: &arrived,
        added: FxHashMap::default(),
        events: Vec::new(),
    };
    let results = new.iter().map(|watch| adding.add(watch)).collect();
    let mut events = adding.events;
    if !arrived.is_empty() {
        events.insert(0, Event::WatchesArrived { account: account.id, names: arrived });
    }
    Decided { events, value: results }
}

/// Names being added to a list.
struct Adding<'a> {
    account: &'a Account,
    limits: &'a PlanLimits,
    now: UnixMs,
    /// Names of the list that no longer consume quota.
    arrived: &'a [DomainName],
    /// Entries so far, and those of them that consume quota.
    entries: usize,
    external: u32,
    added: FxHashMap<&'a DomainName, WatchEntry>,
    events: Vec<Event>,
}

impl<'a> Adding<'a> {
    fn add(&mut self, watch: &'a Watch) -> Added {
        let Watch { name, in_corpus, registered_again, .. } = watch;
        let existing = || self.account.data.watches.get(name);
        if let Some(mut entry) = self.added.get(name).cloned().or_else(existing) {
            entry.external &= !self.arrived.contains(name);
            return Ok((entry, Outcome::AlreadyThere));
        }
        if self.entries >= WATCHES_MAX as usize {
            return Err(WriteError::TooMany { what: "names on its watchlist", limit: WATCHES_MAX });
        }
        if !in_corpus && self.external >= self.limits.external_names {
            return Err(external_names_used_up(self.account, self.limits));
        }
        let entry = WatchEntry {
            name: name.clone(),
            added_at: self.now,
            external: !in_corpus,
            registered_again: *registered_again,
        };
        self.entries += 1;
        self.external += u32::from(entry.external);
        self.events.push(Event::WatchAdded { account: self.account.id, watch: entry.clone() });
        self.added.insert(name, entry.clone());
        Ok((entry, Outcome::Added))
    }
}

/// The distinct names among the arrived ones that still consume quota.
fn arrived(account: &Account, new: &[Watch]) -> Vec<DomainName> {
    let is_external =
        |name: &&DomainName| account.data.watches.get(name).is_some_and(|entry| entry.external);
    let names: BTreeSet<_> =
        new.iter().flat_map(|watch| &watch.arrived).filter(is_external).collect();
    names.into_iter().take(ARRIVED_MAX).cloned().collect()
}

fn external_names_used_up(account: &Account, limits: &PlanLimits) -> WriteError {
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
