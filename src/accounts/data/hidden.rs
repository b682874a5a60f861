//! The names that one account hides from lists.

use crate::data::sorted::Sorted;
use crate::vocab::name::DomainName;

/// Hidden names, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    names: Sorted<DomainName, ()>,
    bytes: u64,
}

/// Approximate size in memory of a hidden name without its text.
const HIDDEN_BYTES: u64 = 64;

/// Returns the approximate size in memory of a hidden name.
pub fn hidden_bytes(name: &DomainName) -> u64 {
    HIDDEN_BYTES + name.as_str().len() as u64
}

impl Hidden {
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the approximate size in memory of all hidden names.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn holds(&self, name: &DomainName) -> bool {
        self.names.get(name).is_some()
    }

    /// Returns the hidden names in order.
    pub fn iter(&self) -> impl Iterator<Item = &DomainName> {
        self.names.iter().map(|(name, ())| name)
    }

    /// Hides names, or stops hiding them.
    pub fn set(&mut self, names: Vec<DomainName>, shown: bool) {
        match shown {
            true => names.iter().for_each(|name| self.remove(name)),
            false => names.into_iter().for_each(|name| self.add(name)),
        }
    }

    pub fn add(&mut self, name: DomainName) {
        let bytes = hidden_bytes(&name);
        if self.names.insert(name, ()).is_none() {
            self.bytes += bytes;
        }
    }

    fn remove(&mut self, name: &DomainName) {
        if self.names.remove(name).is_some() {
            self.bytes -= hidden_bytes(name);
        }
    }
}
