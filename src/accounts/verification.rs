//! Watched names to be verified with registries, and their observations.

use std::collections::HashMap;

use super::error::WriteError;
use super::event::Event;
use super::store::{ROWS_MAX, StateChange, Store};
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{FormerState, Observation};
use crate::vocab::time::UnixMs;

/// A watched name to be verified.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: DomainName,
    /// Whether the name consumes a watcher's quota, because the corpus does not hold it.
    pub external: bool,
    /// The accounts that watch it, in ascending order.
    pub watchers: Vec<AccountId>,
    /// When the name was last added to a watchlist. A watcher sees only observations made since the
    /// name was added; older ones would reveal that another account watches it.
    pub added_at: UnixMs,
    /// The newest observation.
    pub observation: Option<Observation>,
}

impl Target {
    /// Returns true if a watcher has no observation of it yet.
    pub fn is_unverified(&self) -> bool {
        self.observation.is_none_or(|seen| seen.at < self.added_at)
    }
}

impl Store {
    /// Returns the newest observation of each of these names.
    pub fn observations<'a>(
        &self,
        names: impl IntoIterator<Item = &'a DomainName>,
    ) -> Vec<Option<Observation>> {
        let state = self.state();
        names.into_iter().map(|name| state.watched.observation(name)).collect()
    }

    /// Returns the newest observation of each of these names, and the previous states, oldest first.
    pub fn observed<'a>(
        &self,
        names: impl IntoIterator<Item = &'a DomainName>,
    ) -> Vec<(Option<Observation>, Vec<FormerState>)> {
        let watched = &self.state().watched;
        let one = |name| (watched.observation(name), watched.former(name).to_vec());
        names.into_iter().map(one).collect()
    }

    /// Returns the number of state changes of watched names, and the changes after number `since`
    /// in the order of the journal, but only the last one of each name.
    pub fn state_changes(&self, since: u64) -> (u64, Vec<StateChange>) {
        // Some pointers are copied, so that the lock is not held while many names are visited.
        let watched = self.state().watched.clone();
        let newest = watched.changes();
        (newest, if newest > since { watched.changed_since(since) } else { Vec::new() })
    }

    /// Returns all names that enabled accounts watch, in order.
    pub fn verification_targets(&self) -> Vec<Target> {
        let accounts = self.state().accounts.clone();
        let mut targets: HashMap<DomainName, Target> = HashMap::new();
        for account in accounts.values().filter(|account| !account.is_disabled()) {
            for entry in account.data.watches() {
                let target = targets.entry(entry.name).or_insert_with_key(|name| Target {
                    name: name.clone(),
                    external: false,
                    watchers: Vec::with_capacity(1),
                    added_at: entry.added_at,
                    observation: None,
                });
                target.external |= entry.external;
                target.added_at = target.added_at.max(entry.added_at);
                target.watchers.push(account.id);
            }
        }
        let mut targets: Vec<_> = targets.into_values().collect();
        targets.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        let observations = self.observations(targets.iter().map(|target| &target.name));
        for (target, observation) in targets.iter_mut().zip(observations) {
            target.observation = observation;
        }
        targets
    }

    /// Records observations. Observations of names no longer watched are dropped.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: the first rows may be recorded.
    pub async fn record_observations(
        &self,
        rows: Vec<(DomainName, Observation)>,
    ) -> Result<(), WriteError> {
        for rows in rows.chunks(ROWS_MAX) {
            let evidence = rows.iter().map(|(_, seen)| seen.evidence).collect();
            let registrations = rows.iter().map(|(_, seen)| seen.registration).collect();
            let event = Event::NamesVerified { rows: rows.to_vec(), evidence, registrations };
            self.append(vec![event], None).await?;
        }
        Ok(())
    }
}
