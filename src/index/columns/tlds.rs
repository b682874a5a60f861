//! The TLDs of a generation and their numbers, which columns hold in their stead.

use compact_str::CompactString;
use rustc_hash::FxHashMap;

use crate::vocab::stage::Periods;

/// TLDs by number, the most frequent first: small numbers are short where numbers are packed.
#[derive(Debug, Default)]
pub struct Tlds {
    names: Vec<String>,
    numbers: FxHashMap<String, u16>,
    /// Numbers in the order of their names.
    sorted: Vec<u16>,
    /// Pending-delete days by number.
    pending: Vec<u16>,
}

impl Tlds {
    /// The TLDs whose places in `names` are their numbers; at most 65,536, each once.
    pub fn new(names: Vec<String>) -> Tlds {
        let numbers = (0..=u16::MAX).zip(&names).map(|(number, name)| (name.clone(), number));
        let numbers: FxHashMap<String, u16> = numbers.collect();
        let mut sorted: Vec<u16> = (0..=u16::MAX).take(names.len()).collect();
        sorted.sort_by_key(|&number| &names[usize::from(number)]);
        let pending = names.iter().map(|name| Periods::for_tld(name).pending_delete_days).collect();
        Tlds { names, numbers, sorted, pending }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The TLD of a number below [`Tlds::len`].
    pub fn name(&self, number: u16) -> &str {
        &self.names[usize::from(number)]
    }

    /// The number of a TLD in A-label form; `None` for one that no name here has.
    pub fn find(&self, name: &str) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    /// The numbers of those of `wanted` that are here, ascending, each once; `None`, which is all of
    /// them, where none is asked for.
    pub fn numbers(&self, wanted: &[CompactString]) -> Option<Vec<u16>> {
        if wanted.is_empty() {
            return None;
        }
        let mut numbers: Vec<u16> = wanted.iter().filter_map(|tld| self.find(tld)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Some(numbers)
    }

    /// Days before the release in which nobody can restore a name of the TLD.
    pub fn pending_days(&self, number: u16) -> u16 {
        self.pending[usize::from(number)]
    }

    /// Every number, in the order of the names.
    pub fn sorted(&self) -> &[u16] {
        &self.sorted
    }

    /// Every TLD, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_find_each_other() {
        let tlds = Tlds::new(["com", "de", "co.uk"].map(str::to_owned).into());
        assert_eq!((tlds.len(), tlds.name(2), tlds.find("de")), (3, "co.uk", Some(1)));
        assert_eq!((tlds.find("uk"), tlds.sorted()), (None, [2, 0, 1].as_slice()));
        assert_eq!((tlds.pending_days(0), tlds.pending_days(1)), (5, 0));
    }
}
