//! Samples of the docs that pass a filter: evenly spaced blocks of docs in rank order. Their number
//! depends on the data and the filter alone, so equal queries get equal estimates on every machine.

/// Bounds of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Words that are counted instead, in about 200 µs.
    pub counted: usize,
    /// Words of a block.
    pub words: usize,
    /// If the first round finds fewer matches than this, all matches are counted instead.
    pub few: u32,
    /// Matches that suffice: the number of all is then within 2 % of the estimate in 99 of 100
    /// cases.
    pub matches: u32,
}

impl Sampling {
    /// Blocks from one that is visited in the first round to the next.
    pub const SPARSEST: usize = 64;
    /// Part of the words that suffices, even for fewer matches.
    pub const LARGEST: usize = 4;
}

impl Default for Sampling {
    fn default() -> Sampling {
        // Small in tests, so that short lists have estimates.
        let (counted, words, few) =
            if cfg!(debug_assertions) { (1 << 5, 1, 4) } else { (1 << 14, 16, 32) };
        Sampling { counted, words, few, matches: 17_000 }
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
}
