//! All watched names with their newest observation, each once, whatever the number of watchers.

use crate::accounts::data::sorted::Sorted;
use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;

/// The names on all watchlists.
#[derive(Clone, Default)]
pub struct Watched(Sorted<DomainName, Entry>);

/// One name. Invariant: it has a watcher, except while a snapshot is loaded.
#[derive(Clone, Copy, Default)]
struct Entry {
    watchers: u32,
    observation: Option<Observation>,
}

impl Watched {
    /// The newest observation of a name.
    pub fn observation(&self, name: &DomainName) -> Option<Observation> {
        self.0.get(name)?.observation
    }

    /// Number of watched names, and of those without an observation.
    pub fn counts(&self) -> (usize, usize) {
        (self.0.len(), self.0.len() - self.by_name().count())
    }

    /// Adds a watcher of a name.
    pub fn add(&mut self, name: &DomainName) {
        match self.0.get_mut(name) {
            Some(entry) => entry.watchers += 1,
            None => drop(self.0.insert(name.clone(), Entry { watchers: 1, observation: None })),
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
        if let Some(entry) = self.0.get_mut(name) {
            entry.observation = Some(observation);
        }
    }

    /// Sets an observation from a snapshot, before the watchers are added.
    pub fn put(&mut self, name: DomainName, observation: Observation) {
        self.0.insert(name, Entry { watchers: 0, observation: Some(observation) });
    }

    /// All observations, in order of names.
    pub fn by_name(&self) -> impl Iterator<Item = (&DomainName, Observation)> {
        self.0.iter().filter_map(|(name, entry)| Some((name, entry.observation?)))
    }
}
