//! The watchlist of one account. A watchlist may have 10,000 entries, so each is packed into a name
//! and eight bytes. Notes, tags and bids, which few entries have, are stored separately.

use std::sync::Arc;

use compact_str::CompactString;

use crate::data::fields::row;
use crate::data::sorted::Sorted;
use crate::data::watch_alerts::EntryAlerts;
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::tag::Tag;
use crate::vocab::time::UnixMs;

/// A name on a watchlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchEntry {
    pub name: DomainName,
    pub added_at: UnixMs,
    /// Whether the entry consumes quota because the name was not in the corpus at the last check.
    pub external: bool,
    /// Whether the name had been registered again before it was added.
    pub registered_again: bool,
}

row!(WatchEntry { 1 name, 2 added_at } optional { 3 external, 4 registered_again });

/// The stored form of an entry of a watchlist, with all its notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRow {
    pub entry: WatchEntry,
    pub details: WatchDetails,
    pub alerts: Option<EntryAlerts>,
}

row!(WatchRow { 1 entry } optional { 2 details, 3 alerts });

/// Facts that the owner noted about a watched name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchDetails {
    pub note: Option<Box<str>>,
    /// Distinct, in the order in which they were added.
    pub tags: Vec<Tag>,
    /// The owner's maximum bid.
    pub max_bid: Option<Usd>,
    /// Venue at which the owner wants to bid.
    pub venue: Option<Box<str>>,
}

row!(WatchDetails { } optional { 1 note, 2 tags, 3 max_bid, 4 venue });

impl WatchDetails {
    /// Returns the approximate size in memory; 0 for details in which no value is set, because
    /// these are not kept.
    pub fn bytes(&self) -> u64 {
        if *self == WatchDetails::default() {
            return 0;
        }
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let tags = self.tags.iter().map(|tag| size_of::<Tag>() + tag.as_str().len());
        DETAILS_BYTES + (text(&self.note) + text(&self.venue) + tags.sum::<usize>()) as u64
    }
}

impl WatchRow {
    /// Approximate memory.
    pub fn bytes(&self) -> u64 {
        let alerts = self.alerts.as_ref().map_or(0, EntryAlerts::bytes);
        watch_bytes(&self.entry.name) + self.details.bytes() + alerts
    }
}

/// The fields of a [`WatchEntry`] besides its name: 46 bits of milliseconds, the length of the
/// label, flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed(u64);

/// A watchlist, in order of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watches {
    entries: Sorted<CompactString, Packed>,
    /// Details by name, for entries that have some.
    details: Sorted<CompactString, Arc<WatchDetails>>,
    /// Choices by name, for entries that have their own.
    alerts: Sorted<CompactString, Arc<EntryAlerts>>,
    external: u32,
    bytes: u64,
}

/// Approximate size in memory of a watched name without its text, but with its share of the
/// observation.
const WATCH_BYTES: u64 = 192;

/// Approximate size in memory of details without their texts.
const DETAILS_BYTES: u64 = 160;

/// Returns the approximate size in memory of a watched name, which is also in the table of
/// observations.
fn watch_bytes(name: &DomainName) -> u64 {
    WATCH_BYTES + 2 * name.as_str().len() as u64
}

const LABEL_SHIFT: u32 = 48;
const EXTERNAL: u64 = 1 << 56;
const REGISTERED_AGAIN: u64 = 1 << 57;

impl Packed {
    fn new(entry: &WatchEntry) -> Packed {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        Packed(
            entry.added_at.get()
                | u64::from(entry.name.label_len()) << LABEL_SHIFT
                | flag(entry.external, EXTERNAL)
                | flag(entry.registered_again, REGISTERED_AGAIN),
        )
    }

    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    fn entry(self, name: &str) -> WatchEntry {
        let label_len = (self.0 >> LABEL_SHIFT) as u8;
        let name = DomainName::from_stored(name.as_bytes(), label_len);
        let added_at = UnixMs::new(self.0 & ((1 << LABEL_SHIFT) - 1));
        WatchEntry {
            name: name.expect("packed from a name"),
            added_at: added_at.expect("packed from an instant"),
            external: self.has(EXTERNAL),
            registered_again: self.has(REGISTERED_AGAIN),
        }
    }
}

impl Watches {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the approximate size in memory of the watchlist.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of entries that consume quota.
    pub fn external(&self) -> u32 {
        self.external
    }

    pub fn get(&self, name: &DomainName) -> Option<WatchEntry> {
        self.entries.get(name.as_str()).map(|packed| packed.entry(name.as_str()))
    }

    /// Returns the entries in order of names.
    pub fn iter(&self) -> impl Iterator<Item = WatchEntry> {
        self.entries.iter().map(|(name, packed)| packed.entry(name))
    }

    /// Returns the approximate size in memory of an entry with its details and choice; 0 if the
    /// name is not on the list.
    pub fn bytes_of(&self, name: &DomainName) -> u64 {
        let details = self.details(name.as_str()).map_or(0, |it| it.bytes());
        let alerts = self.alerts(name.as_str()).map_or(0, |it| it.bytes());
        let entry = self.entries.get(name.as_str()).map_or(0, |_| watch_bytes(name));
        entry + details + alerts
    }

    /// Returns the details of a name; `None` without details.
    pub fn details(&self, name: &str) -> Option<&Arc<WatchDetails>> {
        self.details.get(name)
    }

    /// Returns all details, in order of names.
    pub fn all_details(&self) -> impl Iterator<Item = (&CompactString, &WatchDetails)> {
        self.details.iter().map(|(name, details)| (name, &**details))
    }

    /// Replaces the details of a name that is on the list.
    fn set_details(&mut self, name: &str, details: WatchDetails) {
        if self.entries.get(name).is_none() {
            return;
        }
        let bytes = details.bytes();
        let old = match bytes {
            0 => self.details.remove(name),
            _ => self.details.insert(name.into(), Arc::new(details)),
        };
        self.bytes = self.bytes + bytes - old.map_or(0, |old| old.bytes());
    }

    /// Returns the choice for a name; `None` if it follows the settings of the watchlist.
    pub fn alerts(&self, name: &str) -> Option<&Arc<EntryAlerts>> {
        self.alerts.get(name)
    }

    /// Returns an entry with its details and its choice.
    pub fn row(&self, entry: WatchEntry) -> WatchRow {
        let name = entry.name.as_str();
        let details = self.details(name).map(|it| WatchDetails::clone(it)).unwrap_or_default();
        let alerts = self.alerts(name).map(|it| EntryAlerts::clone(it));
        WatchRow { entry, details, alerts }
    }

    /// Replaces the choice for a name that is on the list, or removes it with `None`.
    fn set_alerts(&mut self, name: &str, alerts: Option<EntryAlerts>) {
        if self.entries.get(name).is_none() {
            return;
        }
        self.bytes += alerts.as_ref().map_or(0, EntryAlerts::bytes);
        let old = match alerts {
            Some(alerts) => self.alerts.insert(name.into(), Arc::new(alerts)),
            None => self.alerts.remove(name),
        };
        self.bytes -= old.map_or(0, |old| old.bytes());
    }

    /// Adds an entry, or replaces the one with the same name. Returns true if the name is new.
    pub fn put(&mut self, row: WatchRow) -> bool {
        let WatchRow { entry, details, alerts } = row;
        let is_new = self.put_entry(&entry);
        self.set_details(entry.name.as_str(), details);
        self.set_alerts(entry.name.as_str(), alerts);
        is_new
    }

    fn put_entry(&mut self, entry: &WatchEntry) -> bool {
        let name = CompactString::new(entry.name.as_str());
        let old = self.entries.insert(name, Packed::new(entry));
        self.external += u32::from(entry.external);
        self.external -= u32::from(old.is_some_and(|old| old.has(EXTERNAL)));
        if old.is_none() {
            self.bytes += watch_bytes(&entry.name);
        }
        old.is_none()
    }

    /// Removes an entry. Returns true if the entry existed.
    pub fn remove(&mut self, name: &DomainName) -> bool {
        self.set_details(name.as_str(), WatchDetails::default());
        self.set_alerts(name.as_str(), None);
        let old = self.entries.remove(name.as_str());
        self.external -= u32::from(old.is_some_and(|old| old.has(EXTERNAL)));
        if old.is_some() {
            self.bytes -= watch_bytes(name);
        }
        old.is_some()
    }

    /// Marks a name as known to the corpus: it no longer consumes quota.
    pub fn mark_in_corpus(&mut self, name: &DomainName) {
        // The entry is looked up first, so that an unchanged list is not copied.
        if self.entries.get(name.as_str()).is_some_and(|it| it.has(EXTERNAL))
            && let Some(packed) = self.entries.get_mut(name.as_str())
        {
            packed.0 &= !EXTERNAL;
            self.external -= 1;
        }
    }
}
