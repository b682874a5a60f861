//! Index of the blocks of names: fsts over the separators of blocks. One walk down an fst finds the
//! position of a text among sorted keys, because the value of a key is the number of keys before
//! it.
//!
//! [`place`] queries one fst; a [`BlockIndex`] has several, each over a range of blocks, so that
//! they are built in parallel. Names and ordinals are in [`super::names`].

use std::ops::Range;

use fst::raw::{Builder, Fst, Node};
use rayon::prelude::*;

use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

/// Fst over owned bytes.
pub type OwnedFst = Fst<Vec<u8>>;

/// Maximum number of fsts: enough for the cores of a small machine, few enough to find the right
/// one quickly.
const FSTS_MAX: usize = 8;
/// Minimum blocks per fst. Small in tests, so that tests cross the boundaries of fsts.
const FST_BLOCKS_MIN: usize = if cfg!(test) { 5 } else { 1 << 12 };
/// File of the first block of each fst.
const CUTS: &str = "names/cuts";

/// Position of a text among the keys of an fst with ascending values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Value of the first key that is not before the text.
    pub below: u32,
    /// Whether the text is a key.
    pub exact: bool,
    /// Value of the first key that is after the text and does not start with it.
    pub through: u32,
}

/// Finds `text` in an fst whose values ascend with its keys; `end` is the value that a key after
/// all others would have.
///
/// The sum of outputs on the path to a node is the smallest value below it, so only the path of the
/// text is walked.
pub fn place(fst: &OwnedFst, end: u32, text: &[u8]) -> Bounds {
    let mut node = fst.root();
    let mut gathered = 0;
    // The last transition to the right that was not taken; it leads to the first key after all keys
    // that the walk has passed.
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

/// Returns the smallest value reachable by a transition of `node`.
fn value(node: &Node<'_>, at: usize, gathered: u64) -> u32 {
    (gathered + node.transition(at).out.value()) as u32
}

/// A list of keys in one buffer.
#[derive(Debug, Default)]
pub struct Keys {
    text: Vec<u8>,
    ends: Vec<u32>,
}

impl Keys {
    /// Appends a key.
    pub fn push(&mut self, key: &[u8]) {
        self.text.extend_from_slice(key);
        // The keys of one group of blocks take far less than 4 GiB.
        self.ends.push(self.text.len() as u32);
    }

    /// Appends all of `more`.
    pub fn append(&mut self, more: &Keys) {
        let before = self.text.len() as u32;
        self.text.extend_from_slice(&more.text);
        self.ends.extend(more.ends.iter().map(|end| before + end));
    }

    /// Returns the number of keys.
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the key at a position.
    fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }
}

/// Finds the blocks in which the names with a prefix start and end.
///
/// The separator of a block sorts after all names of the blocks before it, and not after the first
/// name of the block. The separator of block 0 is empty.
pub struct BlockIndex {
    /// First block of each fst, ascending; no fst is empty.
    shards: Vec<Shard>,
}

/// Separators of a range of blocks.
struct Shard {
    /// Separator of the range's first block.
    first: Vec<u8>,
    blocks: Range<u32>,
    /// Maps a separator to the position of its block in `blocks`.
    fst: OwnedFst,
}

impl BlockIndex {
    /// Writes the separators of all blocks, ascending. Each [`Keys`] except the last holds
    /// `group_blocks` of them.
    ///
    /// # Errors
    /// A write fails, or separators do not ascend.
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

    /// Opens the separators of `blocks` blocks.
    ///
    /// # Errors
    /// A file is missing, damaged, or has another number of blocks.
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
                return Err(files.malformed(&name, "has another number of blocks than the names"));
            }
            Ok(Shard { first: first_key(&fst), blocks: cut[0]..cut[1], fst })
        };
        if cuts[0] != 0 {
            return Err(files.malformed(CUTS, "does not begin with the first block"));
        }
        let shards = cuts.windows(2).enumerate().map(open).collect::<Result<_, _>>()?;
        Ok(BlockIndex { shards })
    }

    /// Returns the last block whose separator is not after `prefix`, and the last whose separator
    /// precedes all texts that sort after everything with the prefix; `None` if there are no
    /// blocks.
    ///
    /// The first name that is not before `prefix` is in the former block or starts the next one.
    /// The names with the prefix end within the latter block, or at the end of it.
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

/// Returns the smallest key; empty if there are no keys.
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
    fn places_are_those_of_a_count() {
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
