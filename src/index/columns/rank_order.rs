//! Sorts dropped names from name order into rank order. In: a [`Table`]. Output: the *doc* of each
//! name: its position in rank order among the names of the drops list. Names registered again
//! follow in name order. [`DropRows`] holds the columns by doc, and [`records`] encodes the records
//! by doc, so that writers read memory sequentially.
//!
//! Rank order is by score, then by unrounded score, both descending, then by length and name. Rows are
//! copied in name order: the table is read part by part.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::columns::part::{Part, Section};
use crate::columns::properties::{self, PropertyRow};
use crate::columns::rank_key::order_key;
use crate::columns::records::{NewRecords, RecordCounts, RecordWriter, ScoreRecord, ScoreRecords};
use crate::columns::spans::Spans;
use crate::columns::symbols::SymbolWriter;
use crate::columns::table::Table;
use crate::error::BuildError;
use crate::scorer::{Brief, Features, Scratch, Spread, StoredScore};

/// Sort key of all names that were registered again; they follow every name on the list.
const AGAIN: u64 = u64::MAX;
/// Maximum number of labels from which the symbols are chosen.
const LABELS_SAMPLED: usize = 1 << 15;
/// Sections from which sort keys are read.
const KEY_SECTIONS: [Section; 2] = [Section::Keys, Section::Drops];
/// Sections from which rows are built.
const ROW_SECTIONS: [Section; 4] =
    [Section::Names, Section::Keys, Section::Drops, Section::Features];
/// Sections from which records are built, and sections from which the labels of records are built.
const RECORD_SECTIONS: [Section; 3] = [Section::Names, Section::Drops, Section::Features];
const LABEL_SECTIONS: [Section; 2] = [Section::Names, Section::Drops];

/// Docs of dropped names.
#[derive(Debug)]
pub struct RankOrder {
    docs: Vec<u32>,
    listed: u32,
}

/// Dropped names, by doc.
#[derive(Debug)]
pub struct DropRows {
    /// Number of docs on the drops list; names that were registered again follow them.
    pub listed: u32,
    pub rows: Vec<DropRow>,
}

/// The columns of a dropped name.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropRow {
    /// TLD number.
    pub tld: u16,
    /// [`crate::columns::rank_key::rank_key`].
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
    /// Sorts the dropped names of `table` by counting, since they have few distinct sort keys.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn new(table: &Table) -> Result<RankOrder, BuildError> {
        let mut counts = BTreeMap::<u64, u32>::new();
        table.parts.for_each(&KEY_SECTIONS, counts_of, |_, found| {
            found.into_iter().for_each(|(key, count)| *counts.entry(key).or_default() += count);
            Ok(())
        })?;
        let again = counts.get(&AGAIN).copied().unwrap_or(0);
        let mut first = 0;
        let mut next: FxHashMap<u64, u32> = FxHashMap::default();
        for (key, count) in counts {
            next.insert(key, first);
            first += count;
        }
        let mut docs = Vec::with_capacity(first as usize);
        table.parts.for_each(
            &KEY_SECTIONS,
            |_| (),
            |part, ()| {
                docs.extend(sort_keys(part).map(|key| {
                    let next = next.get_mut(&key).expect("every key was counted");
                    *next += 1;
                    *next - 1
                }));
                Ok(())
            },
        )?;
        Ok(RankOrder { docs, listed: first - again })
    }

    /// Returns the docs by position in dropped order.
    pub fn docs(&self) -> &[u32] {
        &self.docs
    }

    /// Returns values that few dropped names have, with their docs, in order. `of` returns the values of a
    /// part, with their places among its drops.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn few<T: Ord + Send>(
        &self,
        table: &Table,
        of: impl Fn(&Part) -> Vec<(u32, T)> + Sync,
    ) -> Result<Vec<(u32, T)>, BuildError> {
        let (mut found, mut docs) = (Vec::new(), self.docs());
        table.parts.for_each(&[Section::Drops], of, |part, values| {
            let (here, rest) = docs.split_at(part.drops.len());
            docs = rest;
            found.extend(values.into_iter().map(|(drop, value)| (here[drop as usize], value)));
            Ok(())
        })?;
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the number of docs on the drops list.
    pub fn listed(&self) -> u32 {
        self.listed
    }
}

/// Returns how many dropped names of a part have each sort key.
fn counts_of(part: &Part) -> FxHashMap<u64, u32> {
    let mut counts = FxHashMap::default();
    sort_keys(part).for_each(|key| *counts.entry(key).or_default() += 1);
    counts
}

/// Returns the sort key of each dropped name of a part, in name order.
fn sort_keys(part: &Part) -> impl Iterator<Item = u64> {
    (0..part.drops.len()).map(|drop| match part.drops.is_again(drop) {
        true => AGAIN,
        false => order_key(part.key[part.drops.at[drop] as usize], part.drops.rank[drop]),
    })
}

impl DropRows {
    /// Copies the dropped names of `table` into doc order.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn gather(table: &Table, order: &RankOrder) -> Result<DropRows, BuildError> {
        let rows_of = |part: &Part| -> Vec<DropRow> {
            let mut scratch = Scratch::default();
            let row = |drop| DropRow::of(table, part, drop, &mut scratch);
            (0..part.drops.len()).map(row).collect()
        };
        let mut rows = vec![DropRow::default(); order.docs.len()];
        let mut docs = order.docs.iter();
        table.parts.for_each(&ROW_SECTIONS, rows_of, |_, found| {
            found.into_iter().zip(&mut docs).for_each(|(row, &doc)| rows[doc as usize] = row);
            Ok(())
        })?;
        Ok(DropRows { listed: order.listed, rows })
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
            features: Features::Whole(part.drops.features(drop)),
        };
        let others = part.drops.spread[drop].saturating_sub(1);
        let (key, count) = (part.key[at], part.drops.count[drop]);
        DropRow {
            tld: part.tld[at],
            key,
            rank: part.drops.rank[drop],
            drop_date: part.drops.date[drop],
            release: part.drops.release[drop],
            first_batch: part.drops.first_batch[drop],
            properties: properties::row_of(&table.typos, known, key, others, count, scratch),
        }
    }
}

/// Returns the record of a drop.
fn record_of(part: &Part, drop: usize) -> ScoreRecord<'_> {
    let label = part.label(part.drops.at[drop] as usize);
    ScoreRecord {
        label: std::str::from_utf8(label).unwrap_or_default(),
        spread: u8::try_from(part.drops.open_tlds[drop]).unwrap_or(u8::MAX),
        features: Brief::of(part.drops.features(drop)),
    }
}

/// Builds the codes for the records of all dropped names of `table`.
fn writer_for(table: &Table, dropped: usize) -> Result<RecordWriter, BuildError> {
    let (step, mut before) = (dropped / LABELS_SAMPLED + 1, 0usize);
    let mut sample: Vec<Vec<u8>> = Vec::new();
    table.parts.for_each(
        &LABEL_SECTIONS,
        |_| (),
        |part, ()| {
            let first = before.next_multiple_of(step) - before;
            let drops = (first..part.drops.len()).step_by(step);
            sample.extend(drops.map(|drop| part.label(part.drops.at[drop] as usize).to_vec()));
            before += part.drops.len();
            Ok(())
        },
    )?;
    let symbols = SymbolWriter::new(&sample.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut counts = RecordCounts::default();
    let counts_of = |part: &Part| {
        let mut counts = RecordCounts::default();
        (0..part.drops.len()).for_each(|drop| counts.add(&record_of(part, drop), &symbols));
        counts
    };
    table.parts.for_each(&RECORD_SECTIONS, counts_of, |_, found| {
        counts.join(found);
        Ok(())
    })?;
    Ok(RecordWriter::new(symbols, &counts))
}

/// Encodes the records of the dropped names of `table`, in doc order.
///
/// # Errors
/// The table cannot be read, or the records exceed 4 GiB.
pub fn records(
    table: &Table,
    order: &RankOrder,
) -> Result<(ScoreRecords, RecordWriter), BuildError> {
    let writer = writer_for(table, order.docs.len())?;
    let encoded = |part: &Part| {
        let (mut spans, mut bytes) = (Spans::with_capacity(part.drops.len()), Vec::new());
        for drop in 0..part.drops.len() {
            let before = bytes.len();
            writer.encode(&record_of(part, drop), &mut bytes);
            spans.push(bytes.len() - before).expect("a part is less than 4 GiB");
        }
        (spans, bytes)
    };
    // The records are encoded twice rather than kept in memory.
    let mut lens = vec![0; order.docs.len()];
    let mut docs = order.docs.iter();
    table.parts.for_each(&RECORD_SECTIONS, encoded, |_, (spans, _)| {
        let all = spans.lens().iter().zip(&mut docs);
        all.for_each(|(&len, &doc)| lens[doc as usize] = len);
        Ok(())
    })?;
    let mut records = NewRecords::with_lens(lens)?;
    let mut docs = order.docs.iter();
    table.parts.for_each(&RECORD_SECTIONS, encoded, |_, (spans, bytes)| {
        let all = (0..spans.len()).zip(&mut docs);
        all.for_each(|(at, &doc)| records.set(doc, &bytes[spans.range(at)]));
        Ok(())
    })?;
    Ok((ScoreRecords::new(records, &writer), writer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::TestTables;
    use crate::columns::properties::Property;
    use crate::columns::rank_key::{is_adult, length_of};
    use crate::columns::records::RecordBuffer;

    /// Docs must be the positions in a plain sort, and rows must belong to the same names.
    #[test]
    fn docs_are_in_rank_order() {
        for names in [0, 1, 2, 70, 3_000] {
            let table = TestTables::new(7).table(names);
            let order = RankOrder::new(&table).expect("in memory");
            let mut expected: Vec<(bool, u64, &[u8])> = Vec::new();
            let mut found = Vec::new();
            let rows = DropRows::gather(&table, &order).expect("in memory");
            let (records, _) = records(&table, &order).expect("fits");
            let mut buffer = RecordBuffer::default();
            for (part, drop) in
                table.parts.iter().flat_map(|part| (0..part.drops.len()).map(move |at| (part, at)))
            {
                let at = part.drops.at[drop] as usize;
                let again = part.drops.is_again(drop);
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
                let record = records.get(doc, &mut buffer);
                assert_eq!(record, record_of(part, drop));
                assert_eq!(record.label.as_bytes(), part.label(at));
                assert_eq!(&*records.label(doc), record.label);
                let row = rows.rows[at_doc].properties;
                assert_eq!(row[Property::OtherTlds as usize], part.drops.spread[drop] - 1);
                assert_eq!(row[Property::Drops as usize], u16::from(part.drops.count[drop]));
                assert_eq!(row[Property::Length as usize], u16::from(length_of(part.key[at])));
                assert_eq!(row[Property::Adult as usize], u16::from(is_adult(part.key[at])));
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
