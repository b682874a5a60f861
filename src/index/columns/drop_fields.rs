//! Values of dropped names by doc, from the fast fields of [`super::drop_segment`].

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use tantivy::SegmentReader;
use tantivy::columnar::{Cardinality, Column, ColumnValues};

use crate::columns::drop_segment::DropField;
use crate::columns::rank_key::rank_key;
use crate::error::GenerationError;
use crate::storage::files::Files;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::LABEL_CHARS_MAX;

/// Docs that are read together.
pub const BLOCK: usize = 64;

/// The fast fields of all dropped names.
pub struct DropFields {
    docs: u32,
    columns: [Arc<dyn ColumnValues>; DropField::ALL.len()],
}

impl DropFields {
    /// Opens the fields of a segment whose TLD numbers are below `tlds`.
    ///
    /// # Errors
    /// A field is missing, or a value is out of range.
    pub fn open(
        segment: &SegmentReader,
        tlds: usize,
        files: &Files,
    ) -> Result<DropFields, GenerationError> {
        let docs = segment.max_doc();
        let column = |field: DropField| -> Result<Arc<dyn ColumnValues>, GenerationError> {
            let column: Column = (segment.fast_fields().u64(field.as_str()))
                .map_err(|err| files.malformed(field.as_str(), err))?;
            let is_full = column.get_cardinality() == Cardinality::Full;
            files.check(is_full && column.num_docs() == docs, field.as_str())?;
            Ok(column.values)
        };
        let [dqs, length, tld, drop_day, release_day, rank] = DropField::ALL.map(column);
        let columns = [dqs?, length?, tld?, drop_day?, release_day?, rank?];
        let fields = DropFields { docs, columns };
        for field in DropField::ALL {
            let max = match field {
                DropField::Dqs => Dqs::MAX.points().into(),
                DropField::Length => LABEL_CHARS_MAX.into(),
                DropField::Tld => tlds.saturating_sub(1) as u64,
                DropField::DropDay | DropField::ReleaseDay | DropField::Rank => u16::MAX.into(),
            };
            files.check(fields.are_at_most(field, max), field.as_str())?;
        }
        Ok(fields)
    }

    fn are_at_most(&self, field: DropField, max: u64) -> bool {
        (0..self.docs).into_par_iter().step_by(BLOCK).all(|first| {
            let mut values = [0; BLOCK];
            self.read(field, first, &mut values).iter().all(|&value| value <= max)
        })
    }

    /// Returns the number of docs.
    pub fn docs(&self) -> u32 {
        self.docs
    }

    /// Reads the values of the docs from `first` on into `values`, and returns those that exist.
    pub fn read<'a>(
        &self,
        field: DropField,
        first: u32,
        values: &'a mut [u64; BLOCK],
    ) -> &'a [u64] {
        let values = &mut values[..BLOCK.min((self.docs - first) as usize)];
        self.columns[field as usize].get_range(first.into(), values);
        values
    }

    /// Loads the memory of several docs in parallel, instead of waiting for each cache miss.
    pub fn prefetch(&self, docs: &[u32]) {
        let mut values = vec![0; docs.len()];
        for field in [DropField::Tld, DropField::DropDay, DropField::ReleaseDay] {
            self.columns[field as usize].get_vals(docs, &mut values);
        }
    }

    #[inline]
    fn get(&self, field: DropField, doc: u32) -> u16 {
        self.columns[field as usize].get_val(doc) as u16
    }

    /// Returns the score of a doc.
    #[inline]
    pub fn dqs(&self, doc: u32) -> Dqs {
        Dqs::clamped(self.get(DropField::Dqs, doc).into())
    }

    /// Returns the label length of a doc in characters.
    #[inline]
    pub fn length(&self, doc: u32) -> u8 {
        self.get(DropField::Length, doc) as u8
    }

    /// Returns the TLD number of a doc.
    #[inline]
    pub fn tld(&self, doc: u32) -> u16 {
        self.get(DropField::Tld, doc)
    }

    /// Returns the latest drop date of a doc, as [`crate::vocab::day::Day::raw`].
    #[inline]
    pub fn drop_day(&self, doc: u32) -> u16 {
        self.get(DropField::DropDay, doc)
    }

    /// Returns the effective release of a doc.
    #[inline]
    pub fn release_day(&self, doc: u32) -> u16 {
        self.get(DropField::ReleaseDay, doc)
    }

    /// Returns the unrounded score of a doc, as [`crate::scorer::Grade::rank`].
    pub fn rank(&self, doc: u32) -> u16 {
        self.get(DropField::Rank, doc)
    }

    /// Returns the rank key of a doc, as if it were no adult name.
    #[inline]
    pub fn key(&self, doc: u32) -> u16 {
        rank_key(self.dqs(doc), self.length(doc))
    }
}

impl fmt::Debug for DropFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropFields").field("docs", &self.docs).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::drop_segment::{self, NewSegment};
    use crate::columns::fixtures::{TestTables, round_trip};
    use crate::columns::rank_key::ADULT;
    use crate::columns::rank_order::{DropRows, RankOrder};

    #[test]
    fn values_are_those_of_the_rows_and_fit() {
        let table = TestTables::new(5).table(3_000);
        let order = RankOrder::new(&table).expect("in memory");
        let DropRows { listed, rows } = DropRows::gather(&table, &order).expect("in memory");
        let docs = rows.len() as u32;
        let (_folder, files) = round_trip(|draft| {
            let segment = NewSegment::create(draft, docs, listed)?;
            segment.write_fields(&rows)?;
            segment.write_grams(|_| Ok(()))?;
            segment.finish(draft)
        })
        .expect("written");
        let segment = drop_segment::open(&files, docs, listed).expect("sound");
        let fields = DropFields::open(&segment, table.tlds.len(), &files).expect("sound");
        for (doc, row) in (0..).zip(&rows) {
            assert_eq!((fields.key(doc), fields.tld(doc)), (row.key & !ADULT, row.tld), "{doc}");
            let days = (fields.drop_day(doc), fields.release_day(doc));
            assert_eq!((days, fields.rank(doc)), ((row.drop_date, row.release), row.rank), "{doc}");
        }
        assert!(listed < docs, "some were registered again");
        let last = rows.iter().map(|row| row.tld).max().expect("not empty");
        assert!(DropFields::open(&segment, last.into(), &files).is_err(), "a TLD without a name");
        assert!(drop_segment::open(&files, docs, listed - 1).is_err(), "of another list");
        assert!(drop_segment::open(&files, docs + 1, listed).is_err(), "of other docs");
    }
}
