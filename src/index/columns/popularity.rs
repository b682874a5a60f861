//! Ranks of dropped names on popularity lists, by doc. Few dropped names have a rank, so each rank
//! is stored with its doc, in eight bytes. A bitmap in memory, with one bit per doc, marks the docs
//! that have a rank.

use std::ops::Range;

use crate::columns::part::Part;
use crate::columns::rank_order::RankOrder;
use crate::columns::slices::{has_doc, set_doc};
use crate::columns::table::Table;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::popularity::{ListRank, ListedRank, PopularityList};

const DOCS: &str = "listed.popular-docs";
const RANKS: &str = "listed.popular-ranks";
/// Number of bits of the rank; the position of the list is stored above them.
const RANK_BITS: u32 = 24;
const _: () = assert!(ListRank::MAX < 1 << RANK_BITS);

/// Ranks by doc, then by list.
#[derive(Debug, Default)]
pub struct Popularity {
    docs: Vec<u32>,
    /// [`packed`].
    ranks: Vec<u32>,
    /// Bitmap of the docs that have a rank.
    ranked: Vec<u64>,
}

impl Popularity {
    /// Writes the ranks of the dropped names of `table`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(table: &Table, order: &RankOrder, draft: &Draft) -> Result<(), BuildError> {
        let ranks_of = |part: &Part| {
            let ranks = part.drops.ranks.iter();
            ranks.map(|&(drop, listed)| (drop, packed(listed))).collect()
        };
        let found = order.few(table, ranks_of)?;
        let (docs, ranks): (Vec<u32>, Vec<u32>) = found.into_iter().unzip();
        draft.put(DOCS, &docs)?;
        draft.put(RANKS, &ranks)
    }

    /// Opens the files that [`Popularity::write`] wrote for `docs` names.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(files: &Files, docs: u32) -> Result<Popularity, GenerationError> {
        let mut read =
            Popularity { docs: files.take(DOCS)?, ranks: files.take(RANKS)?, ranked: Vec::new() };
        let fits = read.docs.len() == read.ranks.len()
            && read.docs.is_sorted()
            && read.docs.last().is_none_or(|&last| last < docs)
            && read.ranks.iter().all(|&packed| unpacked(packed).is_some());
        files.check(fits, DOCS)?;
        read.ranked = vec![0; (docs as usize).div_ceil(64)];
        for &doc in &read.docs {
            set_doc(&mut read.ranked, doc);
        }
        Ok(read)
    }

    /// Returns the ranks of a doc, no more than one per list.
    pub fn of(&self, doc: u32) -> impl Iterator<Item = ListedRank> {
        let is_ranked = has_doc(&self.ranked, doc);
        let range = if is_ranked { self.range(doc..doc + 1) } else { 0..0 };
        self.ranks[range].iter().filter_map(|&packed| unpacked(packed))
    }

    /// Returns the best rank of a doc.
    #[inline]
    pub fn best(&self, doc: u32) -> Option<ListRank> {
        self.of(doc).map(|listed| listed.rank).min()
    }

    /// Returns every doc that has a rank, with its best rank.
    pub fn all(&self) -> impl Iterator<Item = (u32, ListRank)> {
        self.in_range(0..self.docs.len())
    }

    /// Clears the bits of the docs that have no rank up to `most`, starting at doc `64 * first`.
    pub fn keep(&self, most: ListRank, first: usize, words: &mut [u64]) {
        let ranked = self.ranked.get(first..).unwrap_or_default();
        let ranked = ranked.iter().chain(std::iter::repeat(&0));
        words.iter_mut().zip(ranked).for_each(|(word, ranked)| *word &= ranked);
        let start = (first * 64) as u32;
        let docs = start..start.saturating_add((words.len() * 64) as u32);
        for (doc, best) in self.in_range(self.range(docs)) {
            let at = (doc - start) as usize;
            words[at / 64] &= !(u64::from(best > most) << (at % 64));
        }
    }

    /// Returns the positions of the ranks of these docs.
    fn range(&self, docs: Range<u32>) -> Range<usize> {
        let start = self.docs.partition_point(|&doc| doc < docs.start);
        let len = self.docs[start..].partition_point(|&doc| doc < docs.end);
        start..start + len
    }

    /// Returns the docs at these positions, which must include all ranks of each doc, with their
    /// best rank.
    fn in_range(&self, range: Range<usize>) -> impl Iterator<Item = (u32, ListRank)> {
        let (docs, ranks) = (&self.docs[range.clone()], &self.ranks[range]);
        let mut at = 0;
        docs.chunk_by(|one, other| one == other).filter_map(move |same| {
            let ranks = &ranks[at..at + same.len()];
            at += same.len();
            let best = ranks.iter().filter_map(|&packed| unpacked(packed)).map(|it| it.rank).min();
            Some((*same.first()?, best?))
        })
    }
}

fn packed(ListedRank { list, rank }: ListedRank) -> u32 {
    (list as u32) << RANK_BITS | rank.get()
}

fn unpacked(packed: u32) -> Option<ListedRank> {
    let list = *PopularityList::ALL.get((packed >> RANK_BITS) as usize)?;
    Some(ListedRank { list, rank: ListRank::new(packed & ((1 << RANK_BITS) - 1))? })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::columns::fixtures::{TestTables, round_trip};

    #[test]
    fn ranks_are_read_as_written_and_kept_up_to_a_rank() {
        for names in [0, 1, 70, 3_000] {
            let table = TestTables::new(11).table(names);
            let order = RankOrder::new(&table).expect("in memory");
            let write = |draft: &Draft| Popularity::write(&table, &order, draft);
            let (_folder, files) = round_trip(write).expect("written");
            let read = Popularity::open(&files, table.dropped()).expect("sound");
            let mut expected = BTreeMap::<u32, Vec<ListedRank>>::new();
            let mut docs = order.docs().iter();
            for part in table.parts.iter() {
                for drop in 0..part.drops.len() as u32 {
                    let doc = *docs.next().expect("a doc a drop");
                    let own = part.drops.ranks.iter().filter(|(of, _)| *of == drop);
                    expected.insert(doc, own.map(|(_, listed)| *listed).collect());
                }
            }
            let best = |listed: &[ListedRank]| listed.iter().map(|listed| listed.rank).min();
            for (&doc, listed) in &expected {
                assert_eq!(read.of(doc).collect::<Vec<_>>(), *listed);
                assert_eq!(read.best(doc), best(listed));
            }
            let all = expected.iter().filter_map(|(&doc, listed)| Some((doc, best(listed)?)));
            assert_eq!(read.all().collect::<Vec<_>>(), all.collect::<Vec<_>>());
            assert!(names < 1_000 || expected.values().any(|listed| listed.len() > 1));
            for most in [1, 500, 1_000, ListRank::MAX] {
                let most = ListRank::new(most).expect("in range");
                for first in [0, 1, 3] {
                    let mut words = vec![u64::MAX; 5];
                    read.keep(most, first, &mut words);
                    for (at, word) in (first..).zip(words) {
                        for bit in 0..64 {
                            let doc = (at * 64 + bit) as u32;
                            let passes = expected
                                .get(&doc)
                                .and_then(|listed| best(listed))
                                .is_some_and(|best| best <= most);
                            assert_eq!(word >> bit & 1 == 1, passes, "{doc}");
                        }
                    }
                }
            }
            if names > 1_000 {
                assert!(Popularity::open(&files, 1).is_err(), "of other docs");
            }
        }
    }
}
