//! The hash table of letter sequences that [`super::spelling`] looks up, shared with the build script
//! that fills it.

/// Number of symbols: `a` to `z`, and 0 for the edge of a run.
pub const SYMBOLS: u64 = 27;
/// Symbols in the shortest and the longest sequence.
pub const SHORTEST: u32 = 5;
pub const LONGEST: u32 = 8;
pub const LENGTHS: usize = (LONGEST - SHORTEST + 1) as usize;
/// Bits of a slot that hold the cost plus one; the other bits hold the tag that identifies a
/// sequence.
pub const COST_BITS: u32 = 5;
pub const EMPTY: u16 = 0;

/// Number of buckets in the table, which leaves a third of the slots free, so that few buckets are
/// full.
pub const BUCKETS: usize = 3 << 17;
pub const SLOTS: usize = 8;

/// Slots that are compared at once, filled from the first one on.
pub type Bucket = [u16; SLOTS];

/// Returns the slot of a bucket with this tag, or [`EMPTY`].
#[inline]
pub fn find(bucket: &Bucket, tag: u16) -> u16 {
    // Tags differ within a bucket, so one instruction compares all slots without a branch.
    bucket
        .iter()
        .fold(EMPTY, |found, &slot| found | if slot >> COST_BITS == tag { slot } else { EMPTY })
}

pub fn is_full(bucket: &Bucket) -> bool {
    bucket[SLOTS - 1] != EMPTY
}

/// Returns the bucket where the search for a sequence starts, and the sequence's tag. `all` is the
/// number of possible sequences of the same length.
#[inline]
pub fn place(all: u64, sequence: u64) -> (usize, u16) {
    // Adding `all` distinguishes sequences of different lengths.
    let hash = (sequence + all).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = ((hash >> 32) * BUCKETS as u64) >> 32;
    (at as usize, (hash >> 16) as u16 >> COST_BITS)
}

#[inline]
pub fn next(at: usize) -> usize {
    if at + 1 == BUCKETS { 0 } else { at + 1 }
}
