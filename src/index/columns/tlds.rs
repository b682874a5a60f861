//! TLDs of a generation and the numbers that stand for them in columns.

use compact_str::CompactString;
use rustc_hash::FxHashMap;

use crate::scorer::Scorer;
use crate::vocab::release_time::{ReleaseRule, ReleaseRules};
use crate::vocab::stage::Periods;

/// TLDs by number, most frequent first: packed columns store small numbers in fewer bytes.
#[derive(Debug, Default)]
pub struct Tlds {
    names: Vec<String>,
    numbers: FxHashMap<String, u16>,
    /// The numbers, sorted by name.
    sorted: Vec<u16>,
    /// Pending-delete days by number.
    pending: Vec<u16>,
    /// Hours of release by number.
    release: Vec<ReleaseRule>,
    /// Whether the TLD is open to the public, by number.
    open: Vec<bool>,
}

impl Tlds {
    /// Creates the list from up to 65,536 distinct names; positions in `names` are the numbers.
    pub fn new(names: Vec<String>) -> Tlds {
        let numbers = (0..=u16::MAX).zip(&names).map(|(number, name)| (name.clone(), number));
        let numbers: FxHashMap<String, u16> = numbers.collect();
        let mut sorted: Vec<u16> = (0..=u16::MAX).take(names.len()).collect();
        sorted.sort_by_key(|&number| &names[usize::from(number)]);
        let pending = names.iter().map(|name| Periods::for_tld(name).pending_delete_days).collect();
        let open = names.iter().map(|name| Scorer::shared().is_open(name)).collect();
        let release = names.iter().map(|name| ReleaseRules::compiled().of(name)).collect();
        Tlds { names, numbers, sorted, pending, release, open }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the TLD of a number.
    pub fn name(&self, number: u16) -> &str {
        &self.names[usize::from(number)]
    }

    /// Returns the number of a TLD in A-label form; `None` for an unknown one.
    pub fn find(&self, name: &str) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// Returns the numbers of the known TLDs in `wanted`, ascending and unique; `None`, which means
    /// all, if `wanted` is empty.
    pub fn numbers(&self, wanted: &[CompactString]) -> Option<Vec<u16>> {
        if wanted.is_empty() {
            return None;
        }
        let mut numbers: Vec<u16> = wanted.iter().filter_map(|tld| self.find(tld)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Some(numbers)
    }

    /// Returns the pending-delete days of the TLD: the days before release during which a name
    /// cannot be restored.
    pub fn pending_days(&self, number: u16) -> u16 {
        self.pending[usize::from(number)]
    }

    /// Returns the rule of the hour at which the registry of the TLD releases names.
    pub fn release_rule(&self, number: u16) -> ReleaseRule {
        self.release[usize::from(number)]
    }

    /// Returns true if the TLD is open to the public.
    pub fn is_open(&self, number: u16) -> bool {
        self.open[usize::from(number)]
    }

    /// Returns every number, sorted by name.
    pub fn sorted(&self) -> &[u16] {
        &self.sorted
    }

    /// Returns every TLD by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_convert_both_ways() {
        let tlds = Tlds::new(["com", "de", "co.uk"].map(str::to_owned).into());
        assert_eq!((tlds.len(), tlds.name(2), tlds.find("de")), (3, "co.uk", Some(1)));
        assert_eq!((tlds.find("uk"), tlds.sorted()), (None, [2, 0, 1].as_slice()));
        assert_eq!((tlds.pending_days(0), tlds.pending_days(1)), (5, 0));
    }
}
