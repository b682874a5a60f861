//! The API keys of one account.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use chrono::TimeDelta;
use compact_str::CompactString;

use crate::data::fields::row;
use crate::keys::{KeyDigest, StoredKey};
use crate::vocab::day::Day;
use crate::vocab::ids::KeyId;
use crate::vocab::scope::Scopes;
use crate::vocab::time::UnixMs;

/// Time for which a replaced key may keep working, so that programs can be updated one by one.
pub const KEY_GRACE: TimeDelta = TimeDelta::hours(24);
/// Time after its expiry for which a key is still listed, so that its owner sees why it fails.
pub const EXPIRED_SHOWN: TimeDelta = TimeDelta::days(30);
/// Name of a key that was created without one.
pub const FIRST_NAME: &str = "API key";

/// An API key.
#[derive(Clone, Debug)]
pub struct Key {
    pub id: KeyId,
    /// Name given by its owner.
    pub name: CompactString,
    /// SHA-256 and last four characters of the key.
    pub key: StoredKey,
    pub scopes: Scopes,
    /// UTC day on which it was created; `None` for a key of an older version.
    pub created: Option<Day>,
    /// When it stops working.
    pub until: Option<UnixMs>,
    /// The latest UTC day on which it was used.
    pub used: Option<Day>,
    /// The latest day of use that was sent to the journal, as [`Day::raw`]. Not part of the stored
    /// state.
    noted: Arc<AtomicU16>,
}

row!(Key { 1 id, 2 name, 3 key, 4 scopes } optional { 5 created, 6 until, 7 used } skipped { noted });

impl Key {
    /// Returns a key that was never used.
    pub fn new(
        id: KeyId,
        name: CompactString,
        key: StoredKey,
        scopes: Scopes,
        created: Option<Day>,
        until: Option<UnixMs>,
    ) -> Key {
        Key { id, name, key, scopes, created, until, used: None, noted: Arc::default() }
    }

    /// Returns a key of an older version, which had one key per account, without limits.
    pub fn first(key: StoredKey, created: Option<Day>) -> Key {
        Key::new(KeyId::FIRST, FIRST_NAME.into(), key, Scopes::ALL, created, None)
    }

    /// Returns true if the key works at `now`.
    pub fn works_at(&self, now: UnixMs) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Returns the days from the creation of the key to its expiry.
    pub fn lifetime_days(&self) -> Option<u16> {
        let lifetime = self.until?.instant() - self.created?.start();
        u16::try_from(lifetime.num_days()).ok()
    }

    /// Returns true if a use on `day` is the first of that day, so at most once per day.
    pub fn is_first_use(&self, day: Day) -> bool {
        let is_first = |noted: Option<Day>| noted.is_none_or(|noted| day.replaces(noted));
        is_first(self.used)
            && is_first(Day::from_raw(self.noted.load(Ordering::Relaxed)))
            && is_first(Day::from_raw(self.noted.swap(day.raw(), Ordering::Relaxed)))
    }
}

/// Compares only the stored fields.
impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        let stored = |it: &Key| (it.id, it.key, it.scopes, it.created, it.until, it.used);
        stored(self) == stored(other) && self.name == other.name
    }
}

impl Eq for Key {}

/// Keys, oldest first, with distinct ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

impl Keys {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Key> {
        self.0.iter()
    }

    pub fn get(&self, id: KeyId) -> Option<&Key> {
        self.0.iter().find(|key| key.id == id)
    }

    /// Returns the key with this digest, working or not.
    pub fn by_digest(&self, presented: &KeyDigest) -> Option<&Key> {
        self.0.iter().find(|key| key.key.is(presented))
    }

    /// Returns the number of keys that work at `now`.
    pub fn working(&self, now: UnixMs) -> usize {
        self.0.iter().filter(|key| key.works_at(now)).count()
    }

    /// Returns the keys that expired so long ago that they need not be listed.
    pub fn forgettable(&self, now: UnixMs) -> impl Iterator<Item = &Key> {
        let is_old = move |until: UnixMs| until.instant() + EXPIRED_SHOWN <= now.instant();
        self.0.iter().filter(move |key| key.until.is_some_and(is_old))
    }

    /// Adds a key, or replaces the one with the same id.
    pub fn put(&mut self, key: Key) {
        self.remove(key.id);
        self.0.push(key);
    }

    pub fn remove(&mut self, id: KeyId) {
        self.0.retain(|key| key.id != id);
    }

    /// Sets when a key stops working, and records a use.
    pub fn change(&mut self, id: KeyId, until: Option<UnixMs>, used: Option<Day>) {
        let Some(key) = self.0.iter_mut().find(|key| key.id == id) else { return };
        key.until = until.or(key.until);
        let is_later = |day: &Day| key.used.is_none_or(|used| day.replaces(used));
        key.used = used.filter(is_later).or(key.used);
    }
}
