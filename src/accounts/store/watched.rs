//! Names that somebody watches, and what was seen of each: once, however many watch it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use crate::vocab::name::DomainName;
use crate::vocab::observation::Observation;

/// A snapshot shares the parts; a change meanwhile copies one of them, a few thousand names of a
/// million.
const PARTS: usize = 256;

/// All names on any watchlist.
#[derive(Clone)]
pub(super) struct Watched(Box<[Arc<HashMap<DomainName, Seen>>]>);

/// Of one name. Invariant: somebody watches it, but while a snapshot is loaded.
#[derive(Clone, Copy, Default)]
struct Seen {
    watchers: u32,
    observation: Option<Observation>,
}

impl Default for Watched {
    fn default() -> Watched {
        Watched((0..PARTS).map(|_| Arc::default()).collect())
    }
}

impl Watched {
    /// What was last seen of a name.
    pub(super) fn observation(&self, name: &DomainName) -> Option<Observation> {
        self.0[part_of(name)].get(name)?.observation
    }

    /// How many names are watched, and of how many of them nothing was seen yet.
    pub(super) fn counts(&self) -> (usize, usize) {
        let names = self.0.iter().map(|part| part.len()).sum();
        (names, names - self.observed().count())
    }

    /// Takes note of one more watcher.
    pub(super) fn add(&mut self, name: &DomainName) {
        self.part(name).entry(name.clone()).or_default().watchers += 1;
    }

    /// Takes note of one watcher less. With the last one, what was seen is forgotten.
    pub(super) fn remove(&mut self, name: &DomainName) {
        let part = self.part(name);
        let Some(seen) = part.get_mut(name) else { return };
        seen.watchers = seen.watchers.saturating_sub(1);
        if seen.watchers == 0 {
            part.remove(name);
        }
    }

    /// Takes note of what was seen, of a name that is still watched.
    pub(super) fn observe(&mut self, name: &DomainName, observation: Observation) {
        // Looked up first: a part that nothing changes in is not copied.
        if self.0[part_of(name)].contains_key(name)
            && let Some(seen) = self.part(name).get_mut(name)
        {
            seen.observation = Some(observation);
        }
    }

    /// Takes over what a snapshot says, before its accounts say who watches.
    pub(super) fn put(&mut self, name: DomainName, observation: Observation) {
        self.part(&name).entry(name).or_default().observation = Some(observation);
    }

    /// What was seen, in order of names.
    pub(super) fn by_name(&self) -> Vec<(&DomainName, Observation)> {
        let mut all: Vec<_> = self.observed().collect();
        all.sort_unstable_by(|left, right| left.0.cmp(right.0));
        all
    }

    fn observed(&self) -> impl Iterator<Item = (&DomainName, Observation)> {
        let all = self.0.iter().flat_map(|part| part.iter());
        all.filter_map(|(name, seen)| Some((name, seen.observation?)))
    }

    fn part(&mut self, name: &DomainName) -> &mut HashMap<DomainName, Seen> {
        Arc::make_mut(&mut self.0[part_of(name)])
    }
}

fn part_of(name: &(impl Hash + ?Sized)) -> usize {
    // The high bits are the good ones of this hash.
    FxBuildHasher.hash_one(name).rotate_left(20) as usize % PARTS
}
