//! Samples of the docs that pass a filter: evenly spaced blocks of docs in rank order. Their number
//! depends on the data and the filter alone, so equal queries get equal estimates on every machine.
//!
//! Matches are not spread evenly: names of one score are neighbours, and names with equal ranks are
//! in name order. The differences between neighbouring blocks show how far an estimate may be off,
//! and decide when a sample suffices.

use crate::columns::doc_sets::Lists;

/// Bounds of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Words that are counted instead, in about 200 µs.
    pub counted: usize,
    /// Words of a block.
    pub words: usize,
    /// If the first round finds fewer matches than this, all matches are counted instead.
    pub few: u32,
    /// Minimum blocks, of which the deviation is known well enough.
    pub blocks: usize,
    /// Docs of a list that are read in the time in which a place in it is found.
    pub seek: u64,
    /// Estimated number of matches from which on the deviation is bounded. For fewer, a quarter of the
    /// words suffices.
    pub large: u32,
}

/// Maximum relative standard deviation of an estimate, as its reciprocal: 99 in 100 estimates are
/// then within 2 %.
const PRECISION: u128 = 150;

impl Sampling {
    /// Blocks from one that is visited in the first round to the next.
    pub const SPARSEST: usize = 64;
    /// Part of the words that suffices for few matches.
    const LARGEST: usize = 4;

    /// Returns true if counting takes no longer than a sample of `words`, because a block would need a
    /// place in each of many lists: a text of two letters is in some forty, `.co` in hundreds.
    pub fn is_dearer(&self, lists: Lists, words: usize) -> bool {
        let blocks = (words / self.words / Sampling::SPARSEST).max(self.blocks);
        words as u64 + lists.docs <= lists.count as u64 * blocks as u64 * self.seek
    }

    /// Returns true if the blocks suffice. `counts` has the matches of each, in order.
    pub fn is_enough(&self, sample: &Sample, counts: &[u32]) -> bool {
        let Sample { matches, visited, words } = *sample;
        let is_large = sample.scaled(matches) >= self.large;
        visited >= words
            || counts.len() >= self.blocks && sample.is_precise(counts)
            || !is_large && visited * Sampling::LARGEST >= words
    }
}

impl Default for Sampling {
    fn default() -> Sampling {
        // Small in tests, so that short lists have estimates.
        let (counted, words, few, seek) =
            if cfg!(debug_assertions) { (1 << 5, 1, 4, 0) } else { (1 << 14, 8, 32, 128) };
        Sampling { counted, words, few, blocks: 256, seek, large: 90_000 }
    }
}

/// The visited part of the docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Matches in it.
    pub matches: u32,
    /// Words of it, and of the docs that may match.
    pub visited: usize,
    pub words: usize,
}

impl Sample {
    /// Estimates a number in all docs from the one in the sample.
    pub fn scaled(&self, count: u32) -> u32 {
        let all = u64::from(count) * self.words as u64 / self.visited.max(1) as u64;
        u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// Returns true if all docs were visited.
    pub fn is_whole(&self) -> bool {
        self.visited == self.words
    }

    /// Returns true if the estimated standard deviation is within bounds. The variance of a block is
    /// half the mean square of the differences between neighbours, in which slow changes cancel out.
    fn is_precise(&self, counts: &[u32]) -> bool {
        let squares: u128 =
            counts.windows(2).map(|pair| u128::from(pair[0].abs_diff(pair[1])).pow(2)).sum();
        let (blocks, matches) = (counts.len() as u128, u128::from(self.matches));
        let (words, rest) = (self.words as u128, (self.words - self.visited) as u128);
        // blocks * squares / (2 * (blocks - 1)) * rest / words <= (matches / PRECISION)²
        blocks * squares * rest * PRECISION * PRECISION
            <= 2 * blocks.saturating_sub(1) * words * matches * matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_many_short_lists_takes_longer_than_a_count() {
        let sampling = Sampling { seek: 128, words: 8, blocks: 256, ..Sampling::default() };
        let is_dearer = |count, docs, words| sampling.is_dearer(Lists { count, docs }, words);
        assert!(is_dearer(37, 45_000, 23_000), "two letters");
        assert!(is_dearer(600, 750_000, 703_000), "`.co`");
        assert!(!is_dearer(1, 45_000, 23_000) && is_dearer(1, 5_000, 23_000));
        assert!(!is_dearer(4, 400_000_000, 703_000));
        assert!(!is_dearer(0, 0, 23_000), "bitmaps alone");
    }

    #[test]
    fn uneven_blocks_need_a_larger_sample() {
        let sampling =
            Sampling { counted: 0, words: 1, few: 1, blocks: 256, seek: 0, large: 90_000 };
        let is_enough = |counts: &[u32], part: usize| {
            let matches = counts.iter().sum();
            let sample = Sample { matches, visited: counts.len(), words: counts.len() * part };
            sampling.is_enough(&sample, counts)
        };
        let even: Vec<u32> = (0..1_000).map(|at| 30 + at % 2).collect();
        let slowly: Vec<u32> = (0..1_000).map(|at| at / 16).collect();
        let uneven: Vec<u32> = (0..1_000).map(|at| at % 2 * 60).collect();
        assert!(is_enough(&even, 64) && is_enough(&slowly, 64) && !is_enough(&uneven, 64));
        assert!(!is_enough(&even[..200], 64), "too few blocks");
        assert!(!is_enough(&uneven, 4) && is_enough(&uneven, 1));
        assert!(!is_enough(&uneven[..400], 8) && is_enough(&uneven[..400], 4), "not large");
        assert!(is_enough(&uneven[..400], 1));
    }
}
