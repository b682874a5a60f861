//! Where a text stands among sorted keys, by one walk down an fst whose values count the keys up.
//!
//! [`place`] asks one fst; [`BlockIndex`] are the fsts over the borders between blocks of names,
//! each over a range of blocks, so that they are built side by side. Names and ordinals are not
//! here: they are in [`super::names`].

use std::ops::Range;

use fst::raw::{Builder, Fst, Node};
use rayon::prelude::*;

use crate::index::error::{BuildError, GenerationError};
use crate::index::storage::draft::Draft;
use crate::index::storage::files::Files;

/// An fst over bytes that we own.
pub type OwnedFst = Fst<Vec<u8>>;

/// Fsts over all blocks at most: enough for the cores of a small machine, and few enough that
/// finding the right one costs nothing.
const FSTS_MAX: usize = 8;
/// Blocks for which another fst is worth its while. Few in tests, so that these cross the borders.
const FST_BLOCKS_MIN: usize = if cfg!(test) { 5 } else { 1 << 12 };
/// The first block of each fst.
const CUTS: &str = "names/cuts";

/// How many of the ascending values in an fst belong to keys before a text, and to keys that
/// start with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The value of the first key that is not before the text.
    pub below: u32,
    /// The text is a key.
    pub exact: bool,
    /// The value of the first key that is after the text and does not start with it.
    pub through: u32,
}

/// The place of `text` in an fst whose values ascend with its keys, `end` being the value that a
/// key after all others would have.
///
/// Values ascend, so what is gathered on the way to a node is the smallest value below it: nothing
/// has to be walked but the text itself.
pub fn place(fst: &OwnedFst, end: u32, text: &[u8]) -> Bounds {
    let mut node = fst.root();
    let mut gathered = 0;
    // The last way to the right that the walk passed: what it leads to comes right after all keys
    // that the walk left to its left.
    let mut right = None;
    let next = |right: Option<(usize, usize, u64)>| match right {
        None => end,
        Some((addr, at, gathered)) => value(&fst.node(addr), at, gathered),
    };
    for &byte in text {
        let Some(at) = node.find_input(byte) else {
            let after = (0..node.len()).find(|&at| node.transition(at).inp > byte);
            let below = after.map_or_else(|| next(right), |at| value(&node, at, gathered));
            return Bounds { below, exact: false, through: below };
        };
        if at + 1 < node.len() {
            right = Some((node.addr(), at + 1, gathered));
        }
        let transition = node.transition(at);
        gathered += transition.out.value();
        node = fst.node(transition.addr);
    }
    Bounds { below: gathered as u32, exact: node.is_final(), through: next(right) }
}

/// The smallest value behind a transition of `node`.
fn value(node: &Node<'_>, at: usize, gathered: u64) -> u32 {
    (gathered + node.transition(at).out.value()) as u32
}

/// Names end to end.
#[derive(Debug, Default)]
pub struct Keys {
    text: Vec<u8>,
    ends: Vec<u32>,
}

impl Keys {
    /// Appends one.
    pub fn push(&mut self, key: &[u8]) {
        self.text.extend_from_slice(key);
        // Keys of one group of blocks: far below 2^32 bytes.
        self.ends.push(self.text.len() as u32);
    }

    /// Returns the number of entries.
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The one at a place.
    fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }
}

/// Finds the blocks in which names that start with a prefix begin and end.
///
/// The separator of a block is a text that is after all names of the blocks before it, and not
/// after its own first name; that of block 0 is empty.
pub struct BlockIndex {
    /// Ascending; none is empty.
    shards: Vec<Shard>,
}

/// The separators of a range of blocks.
struct Shard {
    /// The separator of its first block.
    first: Vec<u8>,
    blocks: Range<u32>,
    /// Separator to its block's place in `blocks`.
    fst: OwnedFst,
}

impl BlockIndex {
    /// Writes the separators of all blocks, ascending, each [`Keys`] but the last being of
    /// `group_blocks` of them.
    ///
    /// # Errors
    /// A write fails; two separators that do not ascend.
    pub fn write(groups: &[Keys], group_blocks: usize, draft: &Draft) -> Result<(), BuildError> {
        let blocks: usize = groups.iter().map(Keys::len).sum();
        let fsts = blocks.div_ceil(FST_BLOCKS_MIN).min(FSTS_MAX);
        let cuts: Vec<u32> = (0..=fsts).map(|at| (blocks * at / fsts.max(1)) as u32).collect();
        (0..fsts).into_par_iter().try_for_each(|at| {
            let mut builder = Builder::memory();
            for (value, block) in (cuts[at] as usize..cuts[at + 1] as usize).enumerate() {
                let key = groups[block / group_blocks].get(block % group_blocks);
                builder.insert(key, value as u64)?;
            }
            draft.put(&fst_file(at), &builder.into_inner()?)
        })?;
        draft.put(CUTS, &cuts[..fsts])
    }

    /// The separators of `blocks` blocks.
    ///
    /// # Errors
    /// A file is missing, damaged, or not of these blocks.
    pub fn open(files: &Files, blocks: u32) -> Result<BlockIndex, GenerationError> {
        let mut cuts: Vec<u32> = files.take(CUTS)?;
        cuts.push(blocks);
        let open = |(at, cut): (usize, &[u32])| {
            let name = fst_file(at);
            let fst = Fst::new(files.take(&name)?).map_err(|err| files.malformed(&name, err))?;
            if cut[1].checked_sub(cut[0]).map(|blocks| blocks as usize) != Some(fst.len())
                || fst.is_empty()
                || (at == 0 && (cut[0] != 0 || !fst.root().is_final()))
            {
                return Err(files.malformed(&name, "is not of the blocks it should be of"));
            }
            Ok(Shard { first: first_key(&fst), blocks: cut[0]..cut[1], fst })
        };
        if cuts[0] != 0 {
            return Err(files.malformed(CUTS, "does not begin with the first block"));
        }
        let shards = cuts.windows(2).enumerate().map(open).collect::<Result<_, _>>()?;
        Ok(BlockIndex { shards })
    }

    /// The last block whose separator is not after `prefix`, and the last whose separator is
    /// before all texts that come after everything with the prefix; `None` when there is no block.
    ///
    /// The first name that is not before `prefix` is in the former block or the first of the next
    /// one; the end of the names with the prefix is in the latter, or its end.
    pub fn blocks(&self, prefix: &[u8]) -> Option<(u32, u32)> {
        let after = self.shards.partition_point(|shard| *shard.first <= *prefix);
        let from = self.shards.get(after.checked_sub(1)?)?;
        let to = self.shards[after..].iter().take_while(|shard| shard.first.starts_with(prefix));
        let place_from = from.place(prefix);
        let last = from.blocks.start + place_from.below + u32::from(place_from.exact) - 1;
        let through = match to.last() {
            None => from.blocks.start + place_from.through - 1,
            Some(to) => to.blocks.start + to.place(prefix).through - 1,
        };
        Some((last, through))
    }
}

impl Shard {
    fn place(&self, text: &[u8]) -> Bounds {
        place(&self.fst, self.blocks.end - self.blocks.start, text)
    }
}

fn fst_file(at: usize) -> String {
    format!("names/{at}.fst")
}

/// The smallest key; empty when there is none.
fn first_key(fst: &OwnedFst) -> Vec<u8> {
    let mut key = Vec::new();
    let mut node = fst.root();
    while !node.is_final() && !node.is_empty() {
        let transition = node.transition(0);
        key.push(transition.inp);
        node = fst.node(transition.addr);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_counting_says() {
        let sets: [&[&str]; 4] = [
            &[],
            &[""],
            &["", "a", "ab", "abc", "abd", "b", "ba", "cxy", "cxz", "d"],
            &["ab", "abc", "b.", "b.c", "zzz"],
        ];
        for keys in sets {
            let mut builder = Builder::memory();
            for (value, key) in (0..).zip(keys) {
                builder.insert(key, value).expect("sorted");
            }
            let fst = Fst::new(builder.into_inner().expect("built")).expect("an fst");
            assert_eq!(first_key(&fst), keys.first().copied().unwrap_or_default().as_bytes());
            let texts = ["", "a", "aa", "ab", "abb", "abc", "abcd", "b", "c", "cx", "cxyz", "e"];
            for text in texts.iter().chain(keys) {
                let below = keys.iter().filter(|key| *key < text).count() as u32;
                let under = keys.iter().filter(|key| key.starts_with(text)).count() as u32;
                let expected = Bounds { below, exact: keys.contains(text), through: below + under };
                assert_eq!(place(&fst, keys.len() as u32, text.as_bytes()), expected, "{text}");
            }
        }
    }
}
