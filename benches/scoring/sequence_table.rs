//! Fills the scorer's table of letter sequences (`src/scorer/sequences.rs` describes the layout) from
//! `data/scorer/sequences.zst`. The build script uses it, and a test of the scorer reads the sequences.

use super::sequences::{
    BUCKETS, Bucket, COST_BITS, EMPTY, LENGTHS, LONGEST, SHORTEST, SLOTS, SYMBOLS, find, next,
    place,
};

/// Builds the table from the unpacked bytes of `sequences.zst`.
pub fn table(unpacked: &[u8]) -> Vec<Bucket> {
    let mut table = vec![[EMPTY; SLOTS]; BUCKETS];
    for (length, sequence, cost) in sequences(unpacked) {
        put(&mut table, length, sequence, cost);
    }
    table
}

/// Adds a sequence, unless another sequence with the same tag is already in its bucket.
fn put(table: &mut [Bucket], length: u32, sequence: u64, cost: u8) {
    let (mut at, tag) = place(SYMBOLS.pow(length), sequence);
    while find(&table[at], tag) == EMPTY {
        if let Some(free) = table[at].iter_mut().find(|slot| **slot == EMPTY) {
            *free = tag << COST_BITS | u16::from(cost + 1);
            return;
        }
        at = next(at);
    }
}

/// Returns length, sequence and cost of each sequence; `data/scorer/README.md` describes the format.
pub fn sequences(unpacked: &[u8]) -> impl Iterator<Item = (u32, u64, u8)> {
    let (counts, rest) = unpacked.split_at(LENGTHS * size_of::<u32>());
    let (counts, _) = counts.as_chunks();
    let counts: Vec<_> = counts.iter().map(|&count| u32::from_le_bytes(count) as usize).collect();
    let (numbers, costs) = rest.split_at(rest.len() - counts.iter().sum::<usize>());
    let lengths = (SHORTEST..=LONGEST).zip(counts);
    let lengths = lengths.flat_map(|(length, count)| std::iter::repeat_n(length, count));
    let mut bytes = numbers.iter();
    let (mut before, mut length_before) = (0, SHORTEST);
    lengths.zip(costs).map(move |(length, &cost)| {
        if length != length_before {
            (before, length_before) = (0, length);
        }
        let (mut difference, mut shift) = (0, 0);
        for &byte in bytes.by_ref() {
            difference |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        before += difference;
        (length, before, cost)
    })
}
