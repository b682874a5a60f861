//! Names sorted by (TLD number, name): the matches of a prefix within a TLD are one range.
//!
//! Input: TLD number and rank key of rows in name order (all names, or those that dropped). Output:
//! the places of a range of rows within a TLD, the row of a place, and the keys by place.
//!
//! Rows by place are [`Ascending`] numbers, with the TLD in the high bits and the row in the low bits.

use std::ops::Range;

use crate::columns::ascending::Ascending;
use crate::columns::rank_table::RankTable;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

/// Rows sorted by (TLD number, row), with their keys.
#[derive(Debug, Default)]
pub struct ByTld {
    rows: Ascending,
    ranked: RankTable,
    /// First place of each TLD, and the end of the last one.
    starts: Vec<u32>,
}

/// Sorts rows by TLD with a counting sort.
pub struct ByTldBuilder {
    /// Place of the next row of each TLD.
    next: Vec<u32>,
    rows: Vec<u32>,
    keys: Vec<u16>,
    /// Number of rows so far.
    row: u32,
}

impl ByTldBuilder {
    /// Creates a builder; `counts` is the number of rows of each TLD.
    pub fn new(counts: &[u32]) -> ByTldBuilder {
        let mut len = 0;
        let next = counts.iter().map(|&count| {
            let first = len;
            len += count;
            first
        });
        let next = next.collect();
        let (rows, keys) = (vec![0; len as usize], vec![0; len as usize]);
        ByTldBuilder { next, rows, keys, row: 0 }
    }

    /// Adds the next row.
    #[inline]
    pub fn push(&mut self, tld: u16, key: u16) {
        let place = &mut self.next[usize::from(tld)];
        self.rows[*place as usize] = self.row;
        self.keys[*place as usize] = key;
        *place += 1;
        self.row += 1;
    }

    /// Builds the order.
    pub fn finish(self) -> ByTld {
        let ByTldBuilder { next, rows, keys, .. } = self;
        // The place of the next row is now the end of the TLD.
        let mut place = 0;
        let numbers = (0u16..=u16::MAX).zip(&next).flat_map(|(tld, &end)| {
            let rows = &rows[place..end as usize];
            place = end as usize;
            rows.iter().map(move |&row| u64::from(tld) << 32 | u64::from(row))
        });
        let sorted = Ascending::new(numbers);
        drop(rows);
        ByTld::from_parts(sorted, RankTable::new(keys))
    }
}

impl ByTld {
    /// Builds the order from `tlds` and `keys` by row; TLD numbers are below `tld_count`.
    pub fn new(tld_count: usize, tlds: &[u16], keys: &[u16]) -> ByTld {
        let mut counts = vec![0; tld_count];
        tlds.iter().for_each(|&tld| counts[usize::from(tld)] += 1);
        let mut builder = ByTldBuilder::new(&counts);
        tlds.iter().zip(keys).for_each(|(&tld, &key)| builder.push(tld, key));
        builder.finish()
    }

    fn from_parts(rows: Ascending, ranked: RankTable) -> ByTld {
        let len = ranked.len() as u32;
        let tld_count = len.checked_sub(1).map_or(0, |last| (rows.get(last) >> 32) + 1);
        let mut starts = vec![0];
        for tld in 1..=tld_count {
            let from = starts[starts.len() - 1];
            starts.push(rows.first_at_least(tld << 32, from..len));
        }
        ByTld { rows, ranked, starts }
    }

    /// Writes files whose names start with `name`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, name: &str, draft: &Draft) -> Result<(), BuildError> {
        self.rows.write(name, draft)?;
        self.ranked.write(name, draft)
    }

    /// Opens the files that [`ByTld::write`] wrote.
    ///
    /// # Errors
    /// A file is damaged, or the files do not match.
    pub fn open(name: &str, files: &Files) -> Result<ByTld, GenerationError> {
        let ranked = RankTable::open(name, files)?;
        Ok(ByTld::from_parts(Ascending::open(name, ranked.len(), files)?, ranked))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.ranked.len()
    }

    /// Returns the places of the `rows` that are in a TLD, in row order.
    pub fn places(&self, tld: u16, rows: Range<u32>) -> Range<u32> {
        let Some(&[first, last]) = self.starts.get(usize::from(tld)..usize::from(tld) + 2) else {
            return 0..0;
        };
        let above = u64::from(tld) << 32;
        let start = self.rows.first_at_least(above | u64::from(rows.start), first..last);
        let end = self.rows.first_at_least(above | u64::from(rows.end), start..last);
        start..end.max(start)
    }

    /// Returns the row at a place.
    pub fn row(&self, place: u32) -> u32 {
        self.rows.get(place) as u32
    }

    /// Returns the rank table by place.
    pub fn ranked(&self) -> &RankTable {
        &self.ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::rank_table::tests::Random;

    #[test]
    fn rows_of_a_tld_are_one_range() {
        let mut random = Random(6);
        for (len, tld_count) in [(0usize, 1usize), (1, 3), (5_000, 1), (20_000, 700)] {
            // Low numbers are frequent, and some numbers have no row.
            let mut tld = || {
                let below = random.below(tld_count as u32) + 1;
                random.below(below) as u16
            };
            let tlds: Vec<u16> = (0..len).map(|_| tld()).collect();
            let keys = random.keys(len);
            let by_tld = ByTld::new(tld_count, &tlds, &keys);
            assert_eq!(by_tld.len(), len);
            for tld in (0..tld_count as u16).step_by(7) {
                let rows = random.range(len as u32);
                let expected: Vec<u32> =
                    rows.clone().filter(|&row| tlds[row as usize] == tld).collect();
                let places = by_tld.places(tld, rows);
                assert!(places.end as usize <= len);
                let found: Vec<u32> = places.clone().map(|place| by_tld.row(place)).collect();
                assert_eq!(found, expected);
                for (place, row) in places.zip(found) {
                    assert_eq!(by_tld.ranked().keys()[place as usize], keys[row as usize]);
                }
            }
        }
    }
}
