//! Places of drops among those of their suffix, by doc. They are not stored: new lists change the places
//! of older drops, so they are computed whenever an index is loaded ([`crate::query::suffix_ranks`]).

use crate::columns::first_batches::keep_where;
use crate::vocab::suffix_rank::SuffixRank;

/// Tenths of a percent by doc of the drops list; 0 for a hidden doc.
#[derive(Debug, Default)]
pub struct SuffixRanks(Vec<u16>);

impl SuffixRanks {
    /// Returns the column of `docs` names of which none has a rank yet.
    pub fn new(docs: u32) -> SuffixRanks {
        SuffixRanks(vec![0; docs as usize])
    }

    pub fn set(&mut self, doc: u32, rank: SuffixRank) {
        self.0[doc as usize] = rank.tenths();
    }

    /// Returns the rank of a doc; `None` for a hidden name, and for one that was registered again.
    #[inline]
    pub fn of(&self, doc: u32) -> Option<SuffixRank> {
        self.0.get(doc as usize).copied().and_then(SuffixRank::from_tenths)
    }

    /// Clears the bits of the docs without a rank up to `most`, starting at doc `64 * first`.
    pub fn keep(&self, most: SuffixRank, first: usize, words: &mut [u64]) {
        let within = self.0.len().div_ceil(64).saturating_sub(first).min(words.len());
        let (words, beyond) = words.split_at_mut(within);
        beyond.fill(0);
        keep_where(&self.0, first, words, |tenths| tenths.wrapping_sub(1) < most.tenths());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_up_to_a_rank_are_kept() {
        let mut ranks = SuffixRanks::new(70);
        let rank = |tenths| SuffixRank::from_tenths(tenths).expect("in range");
        for (doc, tenths) in [(0, 1), (1, 10), (2, 11), (64, 10), (69, 1_000)] {
            ranks.set(doc, rank(tenths));
        }
        for most in [rank(1), SuffixRank::best(1), SuffixRank::MAX] {
            let mut words = [u64::MAX; 3];
            ranks.keep(most, 0, &mut words);
            let passes = |doc: u32| ranks.of(doc).is_some_and(|rank| rank <= most);
            for doc in 0..192 {
                let is_kept = words[doc as usize / 64] >> (doc % 64) & 1 == 1;
                assert_eq!(is_kept, passes(doc), "{doc} {most}");
            }
            let mut last = [u64::MAX];
            ranks.keep(most, 1, &mut last);
            assert_eq!(last[0], words[1]);
        }
        assert_eq!((ranks.of(3), ranks.of(70)), (None, None));
    }
}
