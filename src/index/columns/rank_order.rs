//! Sorts dropped names from name order into rank order. In: a [`Table`]. Out: the *doc* of each
//! name, its position in rank order among the names of the drops list; names registered again
//! follow in name order. [`DropRows`] holds the columns by doc, so that writers read memory
//! sequentially.
//!
//! Rank order is by score, then by unrounded score, both descending, then by length and name. Rows are
//! copied in name order: reads are sequential.

use rayon::prelude::*;

use crate::index::columns::properties::{self, PropertyRow};
use crate::index::columns::rank_key::{length_of, order_key};
use crate::index::columns::records::{NewRecord, ScoreRecords};
use crate::index::columns::table::{Part, Table};
use crate::index::error::BuildError;
use crate::scorer::{Scratch, Spread, StoredScore};

/// Sort key of all names registered again: behind every name on the list.
const AGAIN: u64 = u64::MAX;
/// Minimum docs per task: each task scans every name.
const DOCS_PER_PIECE_MIN: u32 = 1 << 16;

/// Docs of dropped names.
#[derive(Debug)]
pub struct RankOrder {
    docs: Vec<u32>,
    listed: u32,
}

/// Dropped names, by doc.
#[derive(Debug)]
pub struct DropRows {
    /// Number of docs on the drops list; names registered again follow.
    pub listed: u32,
    pub rows: Vec<DropRow>,
    pub records: ScoreRecords,
}

/// Columns of a dropped name.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropRow {
    /// TLD number.
    pub tld: u16,
    /// [`crate::index::columns::rank_key::rank_key`].
    pub key: u16,
    /// Unrounded score, [`crate::scorer::Grade::rank`].
    pub rank: u16,
    /// Latest drop date, [`crate::vocab::day::Day::raw`].
    pub drop_date: u16,
    /// Effective release of that drop.
    pub release: u16,
    /// First batch that reported the drop.
    pub first_batch: u32,
    pub properties: PropertyRow,
}

impl RankOrder {
    /// Sorts the dropped names of `table`.
    pub fn new(table: &Table) -> RankOrder {
        let mut order: Vec<(u64, u32)> = sort_keys(table).zip(0..).collect();
        order.par_sort_unstable();
        let listed = order.partition_point(|&(key, _)| key < AGAIN) as u32;
        let mut docs = vec![0; order.len()];
        for (doc, &(_, drop)) in (0..).zip(&order) {
            docs[drop as usize] = doc;
        }
        RankOrder { docs, listed }
    }

    /// Returns the docs by position in dropped order.
    pub fn docs(&self) -> &[u32] {
        &self.docs
    }

    /// Returns the number of docs on the drops list.
    pub fn listed(&self) -> u32 {
        self.listed
    }
}

/// Returns the sort key of each dropped name, in name order.
fn sort_keys(table: &Table) -> impl Iterator<Item = u64> {
    table.parts.iter().flat_map(|part| {
        (0..part.drops.len()).map(|drop| match part.drops.again[drop] {
            true => AGAIN,
            false => order_key(part.key[part.drops.at[drop] as usize], part.drops.rank[drop]),
        })
    })
}

impl DropRows {
    /// Copies the dropped names of `table` into doc order, on all cores, each to its place.
    ///
    /// # Errors
    /// The records exceed 4 GiB.
    pub fn gather(table: &Table, order: &RankOrder) -> Result<DropRows, BuildError> {
        let docs = order.docs.len() as u32;
        let pieces = (docs / DOCS_PER_PIECE_MIN).clamp(1, rayon::current_num_threads() as u32);
        let step = docs.div_ceil(pieces).max(1);
        let (mut rows, mut lens) =
            (vec![DropRow::default(); docs as usize], vec![0u8; docs as usize]);
        let chunks = rows.par_chunks_mut(step as usize).zip(lens.par_chunks_mut(step as usize));
        chunks.enumerate().for_each(|(at, (rows, lens))| {
            let mut scratch = Scratch::default();
            for_each_drop(table, order, at as u32 * step, rows.len(), |part, drop, place| {
                rows[place] = DropRow::of(table, part, drop, &mut scratch);
                lens[place] = parts_of(part, drop).len();
            });
        });
        let mut records = ScoreRecords::with_lens(lens)?;
        records.parts_mut(step as usize).into_par_iter().enumerate().for_each(
            |(at, mut records)| {
                for_each_drop(
                    table,
                    order,
                    at as u32 * step,
                    records.len(),
                    |part, drop, place| {
                        records.set(place, &parts_of(part, drop));
                    },
                );
            },
        );
        Ok(DropRows { listed: order.listed, rows, records })
    }

    /// Returns one column.
    pub fn column<T>(&self, of: impl Fn(&DropRow) -> T) -> Vec<T> {
        self.rows.iter().map(of).collect()
    }
}

impl DropRow {
    fn of(table: &Table, part: &Part, drop: usize, scratch: &mut Scratch) -> DropRow {
        let at = part.drops.at[drop] as usize;
        let known = StoredScore {
            label: std::str::from_utf8(part.label(at)).unwrap_or_default(),
            tld: table.tlds.name(part.tld[at]),
            spread: Spread::UNKNOWN,
            features: part.drops.features(drop),
        };
        let others = part.drops.spread[drop].saturating_sub(1);
        let (length, count) = (length_of(part.key[at]), part.drops.count[drop]);
        DropRow {
            tld: part.tld[at],
            key: part.key[at],
            rank: part.drops.rank[drop],
            drop_date: part.drops.date[drop],
            release: part.drops.release[drop],
            first_batch: part.drops.first_batch[drop],
            properties: properties::row_of(known, length, others, count, scratch),
        }
    }
}

/// Returns the record of a drop.
fn parts_of(part: &Part, drop: usize) -> NewRecord<'_> {
    NewRecord {
        label: part.label(part.drops.at[drop] as usize),
        spread: u8::try_from(part.drops.open_tlds[drop]).unwrap_or(u8::MAX),
        features: part.drops.features(drop),
    }
}

/// Visits the drops with one of `count` docs from `first` on, in name order: the part, the position among
/// its drops, and that of the doc.
fn for_each_drop<'a>(
    table: &'a Table,
    order: &RankOrder,
    first: u32,
    count: usize,
    mut visit: impl FnMut(&'a Part, usize, usize),
) {
    let mut all = order.docs.as_slice();
    for part in &table.parts {
        let (here, rest) = all.split_at(part.drops.len());
        all = rest;
        for (drop, doc) in here.iter().enumerate() {
            let place = doc.wrapping_sub(first) as usize;
            if place < count {
                visit(part, drop, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::columns::fixtures::TestTables;
    use crate::index::columns::properties::Property;

    /// Docs are the places in a plain sort, and rows are those of the names.
    #[test]
    fn docs_are_in_rank_order() {
        for names in [0, 1, 2, 70, 3_000] {
            let table = TestTables::new(7).table(names);
            let order = RankOrder::new(&table);
            let mut expected: Vec<(bool, u64, &[u8])> = Vec::new();
            let mut found = Vec::new();
            let rows = DropRows::gather(&table, &order).expect("fits");
            let records = &rows.records;
            for (part, drop) in
                table.parts.iter().flat_map(|part| (0..part.drops.len()).map(move |at| (part, at)))
            {
                let at = part.drops.at[drop] as usize;
                let again = part.drops.again[drop];
                let key = if again { 0 } else { order_key(part.key[at], part.drops.rank[drop]) };
                expected.push((again, key, part.name(at)));
                let doc = order.docs()[found.len()];
                found.push((doc, part.name(at)));
                let at_doc = doc as usize;
                assert_eq!(rows.rows[at_doc].tld, part.tld[at]);
                assert_eq!(rows.rows[at_doc].key, part.key[at]);
                assert_eq!(rows.rows[at_doc].rank, part.drops.rank[drop]);
                assert_eq!(rows.rows[at_doc].drop_date, part.drops.date[drop]);
                assert_eq!(rows.rows[at_doc].release, part.drops.release[drop]);
                assert_eq!(rows.rows[at_doc].first_batch, part.drops.first_batch[drop]);
                let record = records.get(doc);
                assert_eq!(record.label.as_bytes(), part.label(at));
                assert_eq!(u16::from(record.spread), part.drops.open_tlds[drop].min(255));
                let row = rows.rows[at_doc].properties;
                assert_eq!(row[Property::OtherTlds as usize], part.drops.spread[drop] - 1);
                assert_eq!(row[Property::Drops as usize], u16::from(part.drops.count[drop]));
                assert_eq!(row[Property::Length as usize], u16::from(length_of(part.key[at])));
                assert_eq!(record.features, part.drops.features(drop));
            }
            expected.sort();
            found.sort();
            let listed = expected.iter().filter(|(again, ..)| !again).count();
            assert_eq!(order.listed() as usize, listed);
            assert_eq!(rows.listed as usize, listed);
            let expected: Vec<&[u8]> = expected.into_iter().map(|(.., name)| name).collect();
            assert_eq!(found.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), expected);
        }
    }
}
