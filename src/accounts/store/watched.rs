//! All watched names with their newest observation, each once, whatever the number of watchers.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;

/// A snapshot shares the parts. A change during a snapshot copies one of them: some 4,000 names of a
/// million.
const PARTS: usize = 256;

/// The names on all watchlists.
#[derive(Clone)]
pub struct Watched(Box<[Arc<HashMap<DomainName, Entry>>]>);

/// One name. Invariant: it has a watcher, except while a snapshot is loaded.
#[derive(Clone, Copy, Default)]
struct Entry {
    watchers: u32,
    observation: Option<Observation>,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched((0..PARTS).map(|_| Arc::default()).collect())
    }
}

impl Watched {
    /// The newest observation of a name.
    pub fn observation(&self, name: &DomainName) -> Option<Observation> {
        self.0[part_of(name)].get(name)?.observation
    }

    /// Number of watched names, and of those without an observation.
    pub fn counts(&self) -> (usize, usize) {
        let names = self.0.iter().map(|part| part.len()).sum();
        (names, names - self.observed().count())
    }

    /// Adds a watcher of a name.
    pub fn add(&mut self, name: &DomainName) {
        self.part(name).entry(name.clone()).or_default().watchers += 1;
    }

    /// Removes a watcher of a name. The last one takes the observation along.
    pub fn remove(&mut self, name: &DomainName) {
        let part = self.part(name);
        let Some(entry) = part.get_mut(name) else { return };
        entry.watchers = entry.watchers.saturating_sub(1);
        if entry.watchers == 0 {
            part.remove(name);
        }
    }

    /// Sets the observation of a name, if it is still watched.
    pub fn observe(&mut self, name: &DomainName, observation: Observation) {
        // Looked up first, so that a part without a change is not copied.
        if self.0[part_of(name)].contains_key(name)
            && let Some(entry) = self.part(name).get_mut(name)
        {
            entry.observation = Some(observation);
        }
    }

    /// Sets an observation from a snapshot, before the watchers are added.
    pub fn put(&mut self, name: DomainName, observation: Observation) {
        self.part(&name).entry(name).or_default().observation = Some(observation);
    }

    /// All observations, in order of names.
    pub fn by_name(&self) -> Vec<(&DomainName, Observation)> {
        let mut all: Vec<_> = self.observed().collect();
        all.sort_unstable_by(|left, right| left.0.cmp(right.0));
        all
    }

    fn observed(&self) -> impl Iterator<Item = (&DomainName, Observation)> {
        let all = self.0.iter().flat_map(|part| part.iter());
        all.filter_map(|(name, entry)| Some((name, entry.observation?)))
    }

    fn part(&mut self, name: &DomainName) -> &mut HashMap<DomainName, Entry> {
        Arc::make_mut(&mut self.0[part_of(name)])
    }
}

fn part_of(name: &(impl Hash + ?Sized)) -> usize {
    // The high bits of this hash are the best ones.
    FxBuildHasher.hash_one(name).rotate_left(20) as usize % PARTS
}
