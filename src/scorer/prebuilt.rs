//! Lookup tables that the build script (`build.rs`) generates from the lists in `data/scorer`. The
//! tables are used in place, without parsing at run time.

use super::sequences::{BUCKETS, Bucket};
use super::tlds::SuffixClass;
use super::trie::Node;

const _: () = assert!(cfg!(target_endian = "little"), "the tables hold little-endian numbers");

/// A file aligned to a cache line, so that numbers in it are aligned, and no bucket of sequences
/// crosses a line.
#[repr(C, align(64))]
struct Aligned<Bytes: ?Sized>(Bytes);

static TRIE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trie.bin")));
static WORDS: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/words.bin")));
static SEQUENCES: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/sequences.bin")));

/// Bytes of one word in `words.bin`: eight for levels, two for the cost, two for claims, and one
/// per suffix class.
const WORD_BYTES: usize = 8 + 2 + 2 + SuffixClass::COUNT;

/// Columns of the word list, indexed by the word's number.
#[derive(Clone, Copy)]
pub struct WordColumns {
    /// Bits of each word's `Levels`.
    pub levels: &'static [u64],
    /// Costs in sixteenths of a bit.
    pub costs: &'static [u16],
    /// Bits of each word's `Claims`.
    pub claims: &'static [u16],
    /// Market values in tenths of a point, by suffix class.
    pub values: &'static [[i8; SuffixClass::COUNT]],
}

/// The nodes of the word trie.
pub fn trie() -> &'static [Node] {
    bytemuck::cast_slice(&TRIE.0)
}

/// The columns of the word list.
pub fn words() -> WordColumns {
    let count = WORDS.0.len() / WORD_BYTES;
    let (levels, rest) = WORDS.0.split_at(count * 8);
    let (costs, rest) = rest.split_at(count * 2);
    let (claims, values) = rest.split_at(count * 2);
    WordColumns {
        levels: bytemuck::cast_slice(levels),
        costs: bytemuck::cast_slice(costs),
        claims: bytemuck::cast_slice(claims),
        values: bytemuck::cast_slice(values),
    }
}

/// The hash table of letter sequences.
pub fn sequences() -> &'static [Bucket; BUCKETS] {
    let buckets: &[Bucket] = bytemuck::cast_slice(&SEQUENCES.0);
    buckets.try_into().expect("the file holds one table")
}
