//! Names that dropped, and their stages today.
//!
//! Input: ordinals of names with a drop, their keys, TLDs and docs; once a day, the stage codes of
//! the docs. Output: *dropped order* (name order restricted to names that dropped), also by TLD,
//! for counts and searches in one view. Names that are registered and never dropped form a separate
//! set. Dates and features are stored elsewhere, by doc.
//!
//! If every name has dropped, because an operator ingests only drop lists, dropped order equals
//! name order. The keys and the order by TLD are then shared with those of all names, which saves
//! five bytes per name.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::columns::ascending::nth_one;
use crate::columns::by_tld::{ByTld, ByTldBuilder};
use crate::columns::idn::IdnOrders;
use crate::columns::packed::Packed;
use crate::columns::part::Section;
use crate::columns::rank_table::{ABSENT, Coded, Order, RankTable, Tables};
use crate::columns::slices::{has_doc, set_doc};
use crate::columns::table::Table;
use crate::error::{BuildError, GenerationError};
use crate::filter::View;
use crate::storage::draft::Draft;
use crate::storage::files::Files;

/// Words per stored count of [`Bits`].
const COUNTED_WORDS: usize = 8;
/// Members of a [`Bits`] per hint.
const HINTED: usize = 1 << 10;

/// Set of ordinals whose members are numbered in ascending order.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    /// Number of members before every eighth word, and in total.
    counts: Vec<u32>,
    /// Group of eight words that holds every 1,024th member.
    hints: Vec<u32>,
}

impl Bits {
    fn new(words: Vec<u64>) -> Bits {
        let (mut counts, mut hints, mut members) = (vec![0], Vec::new(), 0u32);
        for (at, words) in words.chunks(COUNTED_WORDS).enumerate() {
            members += words.iter().map(|word| word.count_ones()).sum::<u32>();
            counts.push(members);
            while hints.len() * HINTED < members as usize {
                hints.push(at as u32);
            }
        }
        Bits { words, counts, hints }
    }

    fn len(&self) -> u32 {
        self.counts.last().copied().unwrap_or(0)
    }

    fn holds(&self, ordinal: u32) -> bool {
        has_doc(&self.words, ordinal)
    }

    /// Returns the number of members below `ordinal`, which may be the number of ordinals.
    fn before(&self, ordinal: u32) -> u32 {
        let (word, bit) = (ordinal as usize / 64, ordinal % 64);
        let counted = word / COUNTED_WORDS;
        let whole = &self.words[counted * COUNTED_WORDS..word];
        let part = if bit == 0 { 0 } else { self.words[word] & ((1 << bit) - 1) };
        let near: u32 = whole.iter().map(|word| word.count_ones()).sum();
        self.counts[counted] + near + part.count_ones()
    }

    /// Returns the member at a place below [`Bits::len`].
    fn member(&self, place: u32) -> u32 {
        let hint = place as usize / HINTED;
        let from = self.hints[hint] as usize;
        let to = self.hints.get(hint + 1).map_or(self.counts.len() - 1, |&at| at as usize + 1);
        let counted = from + self.counts[from..to].partition_point(|&count| count <= place) - 1;
        let words = &self.words[counted * COUNTED_WORDS..];
        let bit = nth_one(words, (place - self.counts[counted]) as usize);
        (counted * COUNTED_WORDS * 64 + bit) as u32
    }
}

/// Dropped names of a generation, and the registered names that never dropped.
#[derive(Debug)]
pub struct DropsByName {
    dropped: Bits,
    registered: Vec<u64>,
    docs: Packed,
    /// Rank keys by place, and the order by TLD.
    keys: Arc<Vec<u16>>,
    by_tld: Arc<ByTld>,
}

impl DropsByName {
    /// Builds the set; `docs` holds the distinct docs of all dropped names in dropped order.
    #[cfg(test)]
    pub fn new(table: &Table, docs: Vec<u32>) -> Result<DropsByName, BuildError> {
        let (dropped, registered) = sets(table)?;
        let (keys, by_tld) = orders(table)?;
        let (keys, by_tld) = (Arc::new(keys), Arc::new(by_tld));
        let docs = packed(&docs);
        Ok(DropsByName { dropped: Bits::new(dropped), registered, docs, keys, by_tld })
    }

    /// Writes the dropped names of `table`; `docs` holds their distinct docs in dropped order.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(table: &Table, docs: &[u32], draft: &Draft) -> Result<(), BuildError> {
        let (dropped, registered) = sets(table)?;
        draft.put("dropped.bits", &dropped)?;
        draft.put("dropped.registered", &registered)?;
        packed(docs).write("dropped.docs", draft)?;
        if table.dropped() < table.len() {
            let (keys, by_tld) = orders(table)?;
            draft.put("dropped.keys", &keys)?;
            by_tld.write("dropped-by-tld", draft)?;
        }
        Ok(())
    }

    /// Opens the files that [`DropsByName::write`] wrote; `names` and `by_tld` are the orders of
    /// all names.
    ///
    /// # Errors
    /// A file is damaged, or the files do not match.
    pub fn open(
        files: &Files,
        names: &RankTable,
        by_tld: &Arc<ByTld>,
    ) -> Result<DropsByName, GenerationError> {
        let dropped = Bits::new(files.take("dropped.bits")?);
        let len = dropped.len() as usize;
        let (keys, by_tld) = if dropped.len() as usize == names.len() {
            (names.shared_keys(), Arc::clone(by_tld))
        } else {
            let by_tld = ByTld::open("dropped-by-tld", files)?;
            (Arc::new(files.take("dropped.keys")?), Arc::new(by_tld))
        };
        let all = DropsByName {
            dropped,
            registered: files.take("dropped.registered")?,
            docs: Packed::open("dropped.docs", len, len, files)?,
            keys,
            by_tld,
        };
        files.check(all.registered.len() == all.dropped.words.len(), "dropped.registered")?;
        files.check(all.keys.len() == len && all.by_tld.len() == len, "dropped.keys")?;
        Ok(all)
    }

    /// Returns the number of dropped names.
    pub fn len(&self) -> u32 {
        self.dropped.len()
    }

    /// Returns the place of an ordinal in dropped order; `None` for a name that never dropped.
    pub fn place(&self, ordinal: u32) -> Option<u32> {
        self.dropped.holds(ordinal).then(|| self.dropped.before(ordinal))
    }

    /// Returns the places of the dropped names in a range of ordinals.
    pub fn places(&self, ordinals: Range<u32>) -> Range<u32> {
        self.dropped.before(ordinals.start)..self.dropped.before(ordinals.end)
    }

    /// Returns the ordinal at a place.
    pub fn ordinal(&self, place: u32) -> u32 {
        self.dropped.member(place)
    }

    /// Returns the doc at a place.
    pub fn doc(&self, place: u32) -> u32 {
        self.docs.get(place as usize)
    }

    /// Appends the docs of the `ordinals` that dropped.
    pub fn docs_of(&self, ordinals: &[u32], docs: &mut Vec<u32>) {
        let start = docs.len();
        // First all places are computed, then all docs are read, so that the cache misses of each
        // pass overlap.
        docs.extend(ordinals.iter().filter_map(|&ordinal| self.place(ordinal)));
        docs[start..].iter_mut().for_each(|place| *place = self.doc(*place));
    }

    /// Returns the rank keys by place.
    pub fn keys(&self) -> &[u16] {
        &self.keys
    }

    /// Returns the docs by place.
    pub fn docs(&self) -> &Packed {
        &self.docs
    }

    /// Returns the dropped names by TLD; rows are places in dropped order.
    pub fn by_tld(&self) -> &ByTld {
        &self.by_tld
    }

    /// Returns true for a name that never dropped and is registered according to the lists.
    pub fn registered(&self, ordinal: u32) -> bool {
        has_doc(&self.registered, ordinal)
    }
}

fn packed(docs: &[u32]) -> Packed {
    Packed::new(docs.len(), docs.len(), docs.iter().copied())
}

/// Returns the ordinals of the names that dropped, and of those that are registered, as bits.
fn sets(table: &Table) -> Result<(Vec<u64>, Vec<u64>), BuildError> {
    let words = (table.len() as usize).div_ceil(64);
    let (mut dropped, mut registered) = (vec![0u64; words], vec![0u64; words]);
    table.parts.for_each(
        &[Section::Keys, Section::Drops],
        |_| (),
        |part, ()| {
            part.drops.at.iter().for_each(|at| set_doc(&mut dropped, part.first + at));
            for (ordinal, _) in (part.first..).zip(&part.registered).filter(|(_, held)| **held) {
                set_doc(&mut registered, ordinal);
            }
            Ok(())
        },
    )?;
    Ok((dropped, registered))
}

/// Returns the rank keys of the dropped names in dropped order, and their order by TLD.
fn orders(table: &Table) -> Result<(Vec<u16>, ByTld), BuildError> {
    const READ: [Section; 2] = [Section::Keys, Section::Drops];
    let (mut keys, mut counts) = (Vec::new(), vec![0; table.tlds.len()]);
    table.parts.for_each(
        &READ,
        |_| (),
        |part, ()| {
            for &at in &part.drops.at {
                keys.push(part.key[at as usize]);
                counts[usize::from(part.tld[at as usize])] += 1;
            }
            Ok(())
        },
    )?;
    let mut by_tld = ByTldBuilder::new(&counts);
    table.parts.for_each(
        &READ,
        |_| (),
        |part, ()| {
            part.drops.at.iter().for_each(|&at| {
                by_tld.push(part.tld[at as usize], part.key[at as usize]);
            });
            Ok(())
        },
    )?;
    Ok((keys, by_tld.finish()))
}

/// Stage codes on one day: of the dropped names, in dropped order and by TLD; and of all names with
/// an A-label, in the order of their Unicode forms and by TLD.
#[derive(Debug, Default)]
pub struct StagedDrops {
    in_order: Codes,
    by_tld: Codes,
    idn: Codes,
    idn_by_tld: Codes,
}

impl StagedDrops {
    /// Builds the tables from the code of each doc; see [`crate::columns::day::DayStages`]. Takes
    /// about 100 ms per million names, so run it in the background.
    pub fn new(dropped: &DropsByName, idn: IdnOrders<'_>, stages_by_doc: &[u8]) -> StagedDrops {
        let code = |place| stages_by_doc[dropped.doc(place) as usize];
        let codes: Vec<u8> = (0..dropped.len()).into_par_iter().map(code).collect();
        let by_tld = &dropped.by_tld;
        let places = (0..by_tld.len() as u32).into_par_iter();
        let codes_by_tld = places.map(|place| codes[by_tld.row(place) as usize]).collect();
        let place_of = |&ordinal: &u32| dropped.place(ordinal);
        let idn_codes: Vec<u8> = idn
            .ordinals
            .par_iter()
            .map(|ordinal| place_of(ordinal).map_or(0, |place| codes[place as usize]))
            .collect();
        let idn_rows = (0..idn.by_tld.len() as u32).map(|place| idn.by_tld.row(place) as usize);
        let idn_codes_by_tld = idn_rows.map(|row| idn_codes[row]).collect();
        let (in_order, by_tld) = rayon::join(
            || Codes::new(codes, &dropped.keys),
            || Codes::new(codes_by_tld, by_tld.ranked().keys()),
        );
        let (idn, idn_by_tld) = rayon::join(
            || Codes::new(idn_codes, idn.ranks.keys()),
            || Codes::new(idn_codes_by_tld, idn.by_tld.ranked().keys()),
        );
        StagedDrops { in_order, by_tld, idn, idn_by_tld }
    }

    /// Returns the stage code of a place in dropped order.
    pub fn code(&self, place: u32) -> u8 {
        self.in_order.codes[place as usize]
    }

    /// Returns dropped order restricted to a view.
    pub fn order<'a>(&'a self, dropped: &'a DropsByName, view: View) -> Order<'a, Coded<'a>> {
        self.in_order.order(&dropped.keys, view)
    }

    /// Returns the order of [`DropsByName::by_tld`] restricted to a view.
    pub fn order_by_tld<'a>(
        &'a self,
        dropped: &'a DropsByName,
        view: View,
    ) -> Order<'a, Coded<'a>> {
        self.by_tld.order(dropped.by_tld.ranked().keys(), view)
    }

    /// Returns the order of Unicode forms restricted to a view.
    pub fn order_of_idn<'a>(&'a self, idn: IdnOrders<'a>, view: View) -> Order<'a, Coded<'a>> {
        self.idn.order(idn.ranks.keys(), view)
    }

    /// Returns the order of [`IdnOrders::by_tld`] restricted to a view.
    pub fn order_of_idn_by_tld<'a>(
        &'a self,
        idn: IdnOrders<'a>,
        view: View,
    ) -> Order<'a, Coded<'a>> {
        self.idn_by_tld.order(idn.by_tld.ranked().keys(), view)
    }
}

/// Stage codes in one order.
#[derive(Debug, Default)]
struct Codes {
    codes: Vec<u8>,
    /// Tables for each of [`View::EVERY`] except the last: a search in all views equals one without
    /// a view.
    tables: Vec<Tables>,
}

impl Codes {
    fn new(codes: Vec<u8>, keys: &[u16]) -> Codes {
        let tables =
            View::EVERY[..View::EVERY.len() - 1].par_iter().map(|view| {
                let mask = view.code_mask();
                Tables::new(codes.len(), |place| {
                    if codes[place] & mask == 0 { ABSENT } else { keys[place] }
                })
            });
        Codes { tables: tables.collect(), codes }
    }

    fn order<'a>(&'a self, keys: &'a [u16], view: View) -> Order<'a, Coded<'a>> {
        let column = Coded { keys, codes: &self.codes, mask: view.code_mask() };
        Order { column, tables: &self.tables[view.position()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::rank_table::tests::Random;

    #[test]
    fn members_are_numbered_in_order() {
        let mut random = Random(8);
        for len in [0u32, 1, 63, 64, 65, 511, 512, 513, 200_000] {
            for share in [1, 2, 7, 3_000] {
                let mut words = vec![0u64; (len as usize).div_ceil(64)];
                let members: Vec<u32> = (0..len).filter(|_| random.below(share) == 0).collect();
                members.iter().for_each(|&at| words[at as usize / 64] |= 1 << (at % 64));
                let bits = Bits::new(words);
                assert_eq!(bits.len() as usize, members.len());
                for (place, &member) in members.iter().enumerate() {
                    assert_eq!(bits.member(place as u32), member);
                    assert_eq!(bits.before(member), place as u32);
                    assert!(bits.holds(member));
                }
                for ordinal in (0..=len).step_by(1 + len as usize / 700).chain([len]) {
                    let expected = members.partition_point(|&member| member < ordinal) as u32;
                    assert_eq!(bits.before(ordinal), expected, "{ordinal} of {len}");
                }
            }
        }
    }
}
