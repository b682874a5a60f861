//! Places of drops among those of their suffix, over all layers. Input: the drop lists in rank order.
//! Output: [`SuffixRanks`] of each layer.

use rayon::prelude::*;

use crate::columns::suffix_ranks::SuffixRanks;
use crate::filter::Sort;
use crate::query::index::{Index, Layer};
use crate::vocab::suffix_rank::SuffixRank;

impl Index {
    /// Computes the places of all visible drops among those of their suffix.
    pub(super) fn suffix_ranks(&self) -> Vec<SuffixRanks> {
        let before = self.docs_before();
        let mut counts = vec![0u32; self.tlds().len()];
        self.each_in_rank_order(&before, |_, _, tld| counts[tld] += 1);
        let mut places = vec![0; counts.len()];
        let mut ranks: Vec<SuffixRanks> =
            self.layers().iter().map(|layer| SuffixRanks::new(layer.drops_by_rank.len())).collect();
        self.each_in_rank_order(&before, |layer, doc, tld| {
            places[tld] += 1;
            ranks[layer].set(doc, SuffixRank::of(places[tld], counts[tld]));
        });
        ranks
    }

    /// Returns, for each doc of the newer layer, the first doc of the base that follows it in rank order;
    /// empty for an index of one layer.
    fn docs_before(&self) -> Vec<u32> {
        let [base, newer] = self.layers() else { return Vec::new() };
        let next = |doc| base.first_after(&newer.position_of(Sort::default(), doc));
        (0..newer.drops_by_rank.len()).into_par_iter().map(next).collect()
    }

    /// Calls `visit` with the layer, the doc and the TLD of every visible drop, in rank order.
    fn each_in_rank_order(&self, before: &[u32], mut visit: impl FnMut(usize, u32, usize)) {
        let mut visit = |at: usize, layer: &Layer, doc: u32| {
            if layer.shows_doc(doc) {
                let tld = layer.drops_by_rank.tld(doc);
                visit(at, doc, self.tlds().of_layer(at)[usize::from(tld)].into());
            }
        };
        let mut newer = (0..).zip(before).peekable();
        for doc in 0..self.layers()[0].drops_by_rank.len() {
            while let Some((other, _)) = newer.next_if(|(_, next)| **next <= doc) {
                visit(1, &self.layers()[1], other);
            }
            visit(0, &self.layers()[0], doc);
        }
        newer.for_each(|(other, _)| visit(1, &self.layers()[1], other));
    }
}
