//! Sorts dropped names from name order into rank order. In: a [`Table`]. Out: the *doc* of each
//! name, its position in rank order among the names of the drops list; names registered again
//! follow in name order. [`DropRows`] holds the columns by doc, so that writers read memory
//! sequentially.
//!
//! Counting sort: there are few rank keys, and names of one key stay in name order. Rows are copied
//! in name order as well: reads are sequential, and writes go to some thousand positions that each
//! move forward, which caches hold. In rank order each row would wait for a dozen cache misses.

use std::ops::Range;

use rayon::prelude::*;

use crate::index::columns::records::{NewRecord, ScoreRecords};
use crate::index::columns::table::{Part, Table};
use crate::index::error::BuildError;

/// One bucket per rank key, and one for names registered again.
const BUCKETS: usize = 1 << 16 | 1;
const AGAIN: usize = 1 << 16;
/// Minimum docs per task: each task scans every name.
const DOCS_PER_PIECE_MIN: u32 = 1 << 16;

/// Docs of dropped names.
#[derive(Debug)]
pub struct RankOrder {
    docs: Vec<u32>,
    listed: u32,
}

/// Columns of dropped names, by doc.
#[derive(Debug, Default)]
pub struct DropRows {
    /// Number of docs on the drops list; names registered again follow.
    pub listed: u32,
    /// TLD numbers.
    pub tld: Vec<u16>,
    /// [`crate::index::columns::rank_key::rank_key`].
    pub key: Vec<u16>,
    /// Latest drop date, [`crate::vocab::day::Day::raw`].
    pub drop_date: Vec<u16>,
    /// Effective release of that drop.
    pub release: Vec<u16>,
    /// First batch that reported the drop.
    pub first_batch: Vec<u32>,
    pub records: ScoreRecords,
}

/// Columns of one doc while they are copied.
#[derive(Clone, Copy, Default)]
struct Row {
    tld: u16,
    key: u16,
    drop_date: u16,
    release: u16,
    first_batch: u32,
}

/// Consecutive docs while they are copied.
struct Piece {
    rows: Vec<Row>,
    records: ScoreRecords,
}

impl RankOrder {
    /// Sorts the dropped names of `table`.
    pub fn new(table: &Table) -> RankOrder {
        let mut next = vec![0u32; BUCKETS];
        buckets(table).for_each(|bucket| next[bucket] += 1);
        let mut first = 0;
        for next in &mut next {
            first += std::mem::replace(next, first);
        }
        let listed = next[AGAIN];
        let place = |bucket: usize| {
            next[bucket] += 1;
            next[bucket] - 1
        };
        RankOrder { docs: buckets(table).map(place).collect(), listed }
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

/// Returns the bucket of each dropped name, in name order.
fn buckets(table: &Table) -> impl Iterator<Item = usize> {
    table.parts.iter().flat_map(|part| {
        let drops = part.drops.at.iter().zip(&part.drops.again);
        drops.map(|(&at, &again)| if again { AGAIN } else { part.key[at as usize].into() })
    })
}

impl DropRows {
    /// Copies the dropped names of `table` into doc order, on all cores.
    ///
    /// # Errors
    /// The records exceed 4 GiB.
    pub fn gather(table: &Table, order: &RankOrder) -> Result<DropRows, BuildError> {
        let docs = order.docs.len() as u32;
        let pieces = (docs / DOCS_PER_PIECE_MIN).clamp(1, rayon::current_num_threads() as u32);
        let step = docs.div_ceil(pieces);
        let gathered: Vec<Piece> = (0..pieces)
            .into_par_iter()
            .map(|at| Piece::gather(table, order, at * step..docs.min((at + 1) * step)))
            .collect::<Result<_, _>>()?;
        let mut rows = DropRows { listed: order.listed, ..DropRows::default() };
        for piece in gathered {
            rows.tld.extend(piece.rows.iter().map(|row| row.tld));
            rows.key.extend(piece.rows.iter().map(|row| row.key));
            rows.drop_date.extend(piece.rows.iter().map(|row| row.drop_date));
            rows.release.extend(piece.rows.iter().map(|row| row.release));
            rows.first_batch.extend(piece.rows.iter().map(|row| row.first_batch));
            rows.records.append(piece.records)?;
        }
        Ok(rows)
    }
}

impl Piece {
    fn gather(table: &Table, order: &RankOrder, docs: Range<u32>) -> Result<Piece, BuildError> {
        let mut rows = vec![Row::default(); docs.len()];
        let mut lens = vec![0u32; docs.len()];
        for_each_drop(table, order, &docs, |part, drop, place| {
            let at = part.drops.at[drop] as usize;
            rows[place] = Row {
                tld: part.tld[at],
                key: part.key[at],
                drop_date: part.drops.date[drop],
                release: part.drops.release[drop],
                first_batch: part.drops.first_batch[drop],
            };
            lens[place] = parts_of(part, drop).len() as u32;
        });
        let mut records = ScoreRecords::with_lens(&lens)?;
        for_each_drop(table, order, &docs, |part, drop, place| {
            records.set(place, &parts_of(part, drop));
        });
        Ok(Piece { rows, records })
    }
}

/// Returns the record of a drop.
fn parts_of(part: &Part, drop: usize) -> NewRecord<'_> {
    NewRecord {
        label: part.label(part.drops.at[drop] as usize),
        spread: part.drops.spread[drop],
        features: part.drops.features(drop),
    }
}

/// Visits the drops with docs in `docs`, in name order: the part, the position among its drops, and
/// the position in `docs`.
fn for_each_drop<'a>(
    table: &'a Table,
    order: &RankOrder,
    docs: &Range<u32>,
    mut visit: impl FnMut(&'a Part, usize, usize),
) {
    let mut all = order.docs.as_slice();
    for part in &table.parts {
        let (here, rest) = all.split_at(part.drops.len());
        all = rest;
        for (drop, doc) in here.iter().enumerate() {
            if docs.contains(doc) {
                visit(part, drop, (doc - docs.start) as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::columns::fixtures::TestTables;

    /// Docs are the places in a plain sort, and rows are those of the names.
    #[test]
    fn docs_are_in_rank_order() {
        for names in [0, 1, 2, 70, 3_000] {
            let table = TestTables::new(7).table(names);
            let order = RankOrder::new(&table);
            let mut expected: Vec<(bool, u16, &[u8])> = Vec::new();
            let mut found = Vec::new();
            let rows = DropRows::gather(&table, &order).expect("fits");
            let records = rows.records;
            for (part, drop) in
                table.parts.iter().flat_map(|part| (0..part.drops.len()).map(move |at| (part, at)))
            {
                let at = part.drops.at[drop] as usize;
                let again = part.drops.again[drop];
                let key = if again { 0 } else { part.key[at] };
                expected.push((again, key, part.name(at)));
                let doc = order.docs()[found.len()];
                found.push((doc, part.name(at)));
                let at_doc = doc as usize;
                assert_eq!(rows.tld[at_doc], part.tld[at]);
                assert_eq!(rows.key[at_doc], part.key[at]);
                assert_eq!(rows.drop_date[at_doc], part.drops.date[drop]);
                assert_eq!(rows.release[at_doc], part.drops.release[drop]);
                assert_eq!(rows.first_batch[at_doc], part.drops.first_batch[drop]);
                let record = records.get(doc);
                assert_eq!(record.label.as_bytes(), part.label(at));
                assert_eq!(record.spread, part.drops.spread[drop]);
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
