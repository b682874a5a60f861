//! All watched names with their newest observation, each once, whatever the number of watchers.

use crate::accounts::data::sorted::Sorted;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{FormerState, Observation};

/// Former states kept of a name; older ones are forgotten.
const FORMER_MAX: usize = 8;

/// The names on all watchlists.
#[derive(Clone, Default)]
pub struct Watched(Sorted<DomainName, Entry>);

/// One name. Invariant: it has a watcher, except while a snapshot is loaded.
#[derive(Clone, Default)]
struct Entry {
    watchers: u32,
    observation: Option<Observation>,
    /// States before that of the observation, oldest first.
    former: Vec<FormerState>,
}

impl Watched {
    /// The newest observation of a name.
    pub fn observation(&self, name: &DomainName) -> Option<Observation> {
        self.0.get(name)?.observation
    }

    /// States of a name before that of its newest observation, oldest first.
    pub fn former(&self, name: &DomainName) -> &[FormerState] {
        self.0.get(name).map_or(&[], |entry| &entry.former)
    }

    /// Number of watched names, and of those without an observation.
    pub fn counts(&self) -> (usize, usize) {
        (self.0.len(), self.0.len() - self.by_name().count())
    }

    /// Adds a watcher of a name.
    pub fn add(&mut self, name: &DomainName) {
        match self.0.get_mut(name) {
            Some(entry) => entry.watchers += 1,
            None => drop(self.0.insert(name.clone(), Entry { watchers: 1, ..Entry::default() })),
        }
    }

    /// Removes a watcher of a name. The last one takes the observation along.
    pub fn remove(&mut self, name: &DomainName) {
        let Some(entry) = self.0.get_mut(name) else { return };
        entry.watchers = entry.watchers.saturating_sub(1);
        if entry.watchers == 0 {
            self.0.remove(name);
        }
    }

    /// Sets the observation of a name, if it is still watched.
    pub fn observe(&mut self, name: &DomainName, observation: Observation) {
        let Some(entry) = self.0.get_mut(name) else { return };
        let before = entry.observation.replace(observation);
        if let Some(before) = before.filter(|before| before.state != observation.state) {
            if entry.former.len() == FORMER_MAX {
                entry.former.remove(0);
            }
            entry.former.push(FormerState { state: before.state, last_seen: before.at });
        }
    }

    /// Sets an observation from a snapshot, before the watchers are added.
    pub fn put(&mut self, name: DomainName, observation: Observation) {
        self.0.insert(name, Entry { observation: Some(observation), ..Entry::default() });
    }

    /// Sets the former states of a name from a snapshot, after its observation.
    pub fn put_former(&mut self, name: &DomainName, former: Vec<FormerState>) {
        if let Some(entry) = self.0.get_mut(name) {
            entry.former = former;
        }
    }

    /// The names that had other states before, in order.
    pub fn with_former(&self) -> impl Iterator<Item = (&DomainName, &[FormerState])> {
        let with = self.0.iter().filter(|(_, entry)| !entry.former.is_empty());
        with.map(|(name, entry)| (name, entry.former.as_slice()))
    }

    /// All observations, in order of names.
    pub fn by_name(&self) -> impl Iterator<Item = (&DomainName, Observation)> {
        self.0.iter().filter_map(|(name, entry)| Some((name, entry.observation?)))
    }
}
