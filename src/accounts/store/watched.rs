//! All watched names with their newest observation. Each name is stored once, for any number of
//! watchers.

use crate::data::fields::row;
use crate::data::sorted::Sorted;
use crate::vocab::evidence::EvidenceSet;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{FormerState, LatestRegistration, Observation, RdapState};

/// Number of former states kept for a name.
const FORMER_MAX: usize = 8;

/// The names on all watchlists.
#[derive(Clone, Default)]
pub struct Watched {
    names: Sorted<DomainName, WatchedEntry>,
    /// Number of state changes so far.
    changes: u64,
}

/// A watched name. Invariant: the name has a watcher, except while a snapshot is being loaded.
#[derive(Clone, Default)]
struct WatchedEntry {
    watchers: u32,
    observation: Option<Observation>,
    /// Previous states, oldest first.
    former: Vec<FormerState>,
    /// Number of the state change that led to this observation; 0 for a first state.
    change: u64,
}

/// A watched name with its observation, as a snapshot stores it.
pub struct ObservedRow {
    pub name: DomainName,
    pub observation: Observation,
    pub former: Vec<FormerState>,
    pub change: u64,
    pub evidence: EvidenceSet,
    pub registration: LatestRegistration,
}

row!(ObservedRow { 1 name, 2 observation }
    optional { 3 former, 4 change, 5 evidence, 6 registration });

/// A change of the registry state of a watched name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Its number. State changes are numbered from 1, in the order of the journal.
    pub number: u64,
    pub name: DomainName,
    /// The previous known state.
    pub before: Option<RdapState>,
    /// The newest observation of the new state.
    pub observation: Observation,
}

impl Watched {
    /// Returns true if an account watches the name.
    pub fn holds(&self, name: &DomainName) -> bool {
        self.names.get(name).is_some()
    }

    /// Returns the newest observation of a name.
    pub fn observation(&self, name: &DomainName) -> Option<Observation> {
        self.names.get(name)?.observation
    }

    /// Returns the previous states of a name, oldest first.
    pub fn former(&self, name: &DomainName) -> &[FormerState] {
        self.names.get(name).map_or(&[], |entry| &entry.former)
    }

    /// Returns the number of watched names, and of those without an observation.
    pub fn counts(&self) -> (usize, usize) {
        (self.names.len(), self.names.len() - self.by_name().count())
    }

    /// Adds a watcher of a name.
    pub fn add(&mut self, name: &DomainName) {
        match self.names.get_mut(name) {
            Some(entry) => entry.watchers += 1,
            None => drop(
                self.names
                    .insert(name.clone(), WatchedEntry { watchers: 1, ..WatchedEntry::default() }),
            ),
        }
    }

    /// Removes a watcher of a name. If this was the last watcher, the observation is removed too.
    pub fn remove(&mut self, name: &DomainName) {
        let Some(entry) = self.names.get_mut(name) else { return };
        entry.watchers = entry.watchers.saturating_sub(1);
        if entry.watchers == 0 {
            self.names.remove(name);
        }
    }

    /// Sets the observation of a name, if it is still watched.
    pub fn observe(&mut self, name: &DomainName, observation: Observation) {
        let Some(entry) = self.names.get_mut(name) else { return };
        let before = entry.observation.replace(observation);
        let Some(before) = before else { return };
        if before.state == observation.state {
            // A name that was probably free, and now certainly is. Observations of older versions,
            // which were reported as free, have no evidence.
            if observation.is_free() && !before.is_free() && !before.evidence.is_empty() {
                self.changes += 1;
                entry.change = self.changes;
            }
        } else {
            if entry.former.len() == FORMER_MAX {
                entry.former.remove(0);
            }
            entry.former.push(FormerState { state: before.state, last_seen: before.at });
            self.changes += 1;
            entry.change = self.changes;
        }
    }

    /// Adds a row of a snapshot, before the watchers are added.
    pub fn put(&mut self, row: ObservedRow) {
        let ObservedRow { name, observation, former, change, evidence, registration } = row;
        let observation = Some(Observation { evidence, registration, ..observation });
        self.names.insert(name, WatchedEntry { watchers: 0, observation, former, change });
    }

    /// Sets the number of state changes from a snapshot.
    pub fn put_changes(&mut self, changes: u64) {
        self.changes = changes;
    }

    /// Returns the number of state changes.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the rows for a snapshot, in order of names.
    pub fn rows(&self) -> impl Iterator<Item = ObservedRow> {
        self.names.iter().filter_map(|(name, entry)| {
            let WatchedEntry { observation, former, change, .. } = entry;
            let (name, former) = (name.clone(), former.clone());
            let observation = (*observation)?;
            let Observation { evidence, registration, .. } = observation;
            Some(ObservedRow { name, observation, former, change: *change, evidence, registration })
        })
    }

    /// Returns the state changes after number `since` in order, but only the last one of each name.
    pub fn changed_since(&self, since: u64) -> Vec<StateChange> {
        let changed = self.names.iter().filter(|(_, entry)| entry.change > since);
        let mut changes: Vec<_> = changed
            .filter_map(|(name, entry)| {
                let known = |former: &&FormerState| former.state != RdapState::Unknown;
                Some(StateChange {
                    number: entry.change,
                    name: name.clone(),
                    before: entry.former.iter().rev().find(known).map(|former| former.state),
                    observation: entry.observation?,
                })
            })
            .collect();
        changes.sort_unstable_by_key(|change| change.number);
        changes
    }

    /// Returns all observations, in order of names.
    pub fn by_name(&self) -> impl Iterator<Item = (&DomainName, Observation)> {
        self.names.iter().filter_map(|(name, entry)| Some((name, entry.observation?)))
    }
}
