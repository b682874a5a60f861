//! TLDs of all layers of an index, whose TLD numbers differ.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Every TLD of an index with its own number; most names first, then by name.
pub struct SharedTlds {
    names: Vec<String>,
    /// Visible names by number.
    counts: Vec<u32>,
    /// Numbers sorted by TLD.
    sorted: Vec<u16>,
    /// Numbers by layer, then by the layer's TLD numbers.
    of_layers: Vec<Vec<u16>>,
}

impl SharedTlds {
    /// Numbers the TLDs of all layers. `layers` has the TLDs of each layer by number, with the
    /// number of their visible names. The maximum is 65,535 TLDs.
    pub fn new(layers: &[Vec<(&str, u32)>]) -> SharedTlds {
        let mut counts = BTreeMap::<&str, u32>::new();
        for &(name, count) in layers.iter().flatten() {
            *counts.entry(name).or_default() += count;
        }
        let mut order: Vec<(&str, u32)> = counts.into_iter().collect();
        order.sort_by_key(|&(_, count)| Reverse(count));
        let names: Vec<String> = order.iter().map(|(name, _)| (*name).to_owned()).collect();
        let counts = order.iter().map(|&(_, count)| count).collect();
        let mut sorted: Vec<u16> = (0..=u16::MAX).take(names.len()).collect();
        sorted.sort_by_key(|&number| &names[usize::from(number)]);
        let number = |&(name, _): &(&str, u32)| {
            let place = sorted.binary_search_by_key(&name, |&at| names[usize::from(at)].as_str());
            sorted[place.expect("every TLD of a layer has a number")]
        };
        let of_layers = layers.iter().map(|layer| layer.iter().map(number).collect()).collect();
        SharedTlds { names, counts, sorted, of_layers }
    }

    /// Returns the number of TLDs.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if the index has no name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the TLD of a number.
    pub fn name(&self, number: u16) -> &str {
        &self.names[usize::from(number)]
    }

    /// Returns the number of a TLD.
    pub fn find(&self, name: &str) -> Option<u16> {
        let place = self.sorted.binary_search_by_key(&name, |&at| self.name(at)).ok()?;
        Some(self.sorted[place])
    }

    /// Returns the number of names under a TLD.
    pub fn names_under(&self, number: u16) -> u32 {
        self.counts[usize::from(number)]
    }

    /// Returns every number, sorted by TLD.
    pub fn sorted(&self) -> &[u16] {
        &self.sorted
    }

    /// Maps the numbers of a layer to those of the index.
    pub fn of_layer(&self, layer: usize) -> &[u16] {
        &self.of_layers[layer]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tlds_are_sorted_by_their_names_in_all_layers() {
        let layers = [vec![("com", 9), ("de", 5), ("org", 3)], vec![("org", 2), ("at", 1)]];
        let tlds = SharedTlds::new(&layers);
        let all: Vec<_> = (0..4).map(|tld| (tlds.name(tld), tlds.names_under(tld))).collect();
        assert_eq!(all, [("com", 9), ("de", 5), ("org", 5), ("at", 1)]);
        assert_eq!((tlds.len(), tlds.sorted()), (4, [3, 0, 1, 2].as_slice()));
        assert_eq!((tlds.of_layer(0), tlds.of_layer(1)), (&[0, 1, 2][..], &[2, 3][..]));
    }
}
