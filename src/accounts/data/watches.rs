//! The watchlist of one account: some 10,000 names of which nobody may notice the memory.

use std::collections::BTreeMap;

use compact_str::CompactString;

use crate::vocab::name::DomainName;
use crate::vocab::time::UnixMs;

/// A name to be watched, with what the index says of it.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The name.
    pub name: DomainName,
    /// Whether the index holds it: otherwise it costs quota.
    pub in_corpus: bool,
    /// Whether it has been registered again since its last drop.
    pub registered_again: bool,
    /// Names on the account's list, kept as external, that the index now holds. They give their
    /// quota back before it is judged.
    pub arrived: Vec<DomainName>,
}

/// A name on a watchlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchEntry {
    /// The name.
    pub name: DomainName,
    /// When it was added.
    pub added_at: UnixMs,
    /// Whether it costs quota: the index did not hold it when last told.
    pub external: bool,
    /// Whether it was registered again already when it was added.
    pub registered_again: bool,
}

/// What [`WatchEntry`] has besides the name, in eight bytes: 46 bits of milliseconds, the length of
/// the label, flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed(u64);

/// A watchlist, in order of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::accounts) struct Watches {
    entries: BTreeMap<CompactString, Packed>,
    external: u32,
}

const LABEL_SHIFT: u32 = 48;
const EXTERNAL: u64 = 1 << 56;
const REGISTERED_AGAIN: u64 = 1 << 57;

impl Packed {
    fn of(entry: &WatchEntry) -> Packed {
        let flag = |is: bool, flag: u64| if is { flag } else { 0 };
        Packed(
            entry.added_at.get()
                | u64::from(entry.name.label_len()) << LABEL_SHIFT
                | flag(entry.external, EXTERNAL)
                | flag(entry.registered_again, REGISTERED_AGAIN),
        )
    }

    fn label_len(self) -> u8 {
        (self.0 >> LABEL_SHIFT) as u8
    }

    fn added_at(self) -> UnixMs {
        UnixMs::new(self.0 & ((1 << LABEL_SHIFT) - 1)).expect("packed from an instant")
    }

    fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    fn entry(self, name: &str) -> WatchEntry {
        WatchEntry {
            name: DomainName::from_stored(name.as_bytes(), self.label_len())
                .expect("packed from a name"),
            added_at: self.added_at(),
            external: self.is(EXTERNAL),
            registered_again: self.is(REGISTERED_AGAIN),
        }
    }
}

impl Watches {
    /// Entries in ascending order of names.
    pub(in crate::accounts) fn from_sorted(entries: Vec<WatchEntry>) -> Watches {
        let external = entries.iter().filter(|entry| entry.external).count() as u32;
        let entries = entries.into_iter().map(|entry| {
            let packed = Packed::of(&entry);
            (CompactString::new(entry.name.as_str()), packed)
        });
        Watches { entries: entries.collect(), external }
    }

    pub(in crate::accounts) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many cost quota.
    pub(in crate::accounts) fn external(&self) -> u32 {
        self.external
    }

    pub(in crate::accounts) fn get(&self, name: &DomainName) -> Option<WatchEntry> {
        self.entries.get(name.as_str()).map(|packed| packed.entry(name.as_str()))
    }

    /// In order of names.
    pub(in crate::accounts) fn iter(&self) -> impl ExactSizeIterator<Item = WatchEntry> {
        self.entries.iter().map(|(name, packed)| packed.entry(name))
    }

    /// Adds an entry, or puts it in the place of the one with its name; whether it had none.
    pub(in crate::accounts) fn put(&mut self, entry: &WatchEntry) -> bool {
        let name = CompactString::new(entry.name.as_str());
        let old = self.entries.insert(name, Packed::of(entry));
        self.external += u32::from(entry.external);
        self.external -= u32::from(old.is_some_and(|old| old.is(EXTERNAL)));
        old.is_none()
    }

    /// Removes an entry; whether there was one.
    pub(in crate::accounts) fn remove(&mut self, name: &DomainName) -> bool {
        let old = self.entries.remove(name.as_str());
        self.external -= u32::from(old.is_some_and(|old| old.is(EXTERNAL)));
        old.is_some()
    }

    /// Takes note that a list brought the name: it no longer costs quota.
    pub(in crate::accounts) fn arrive(&mut self, name: &DomainName) {
        if let Some(packed) = self.entries.get_mut(name.as_str()).filter(|it| it.is(EXTERNAL)) {
            packed.0 &= !EXTERNAL;
            self.external -= 1;
        }
    }
}
