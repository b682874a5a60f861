//! Registrations of names after their drops, a byte each, and the days of lists that show one late.

use crate::columns::part::Part;
use crate::columns::rank_order::RankOrder;
use crate::columns::table::Table;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::day::Day;
use crate::vocab::outcome::Return;

/// Names of the files.
#[derive(Clone, Copy, Debug)]
pub struct ReturnFiles {
    pub bytes: &'static str,
    pub late: &'static str,
    pub days: &'static str,
}

/// Files of the registrations after the latest drop of each name.
pub const LATEST: ReturnFiles =
    ReturnFiles { bytes: "dropped.returned", late: "dropped.late-docs", days: "dropped.late-days" };

/// Registrations by the number of a drop: a doc, or the place of an earlier drop.
#[derive(Debug, Default)]
pub struct Returns {
    /// Number of the first drop of `bytes`. Drops before it have no registration.
    first: u32,
    /// [`Return::byte`].
    bytes: Vec<u8>,
    /// Drops whose list is later than [`crate::vocab::outcome::GAP_DAYS_MAX`] days after the registration, or
    /// does not give its day, ascending.
    late: Vec<u32>,
    /// The days of those lists.
    days: Vec<u16>,
}

impl Returns {
    /// Writes the files: a byte for each drop from the first with a registration on, and late lists by drop.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(
        files: ReturnFiles,
        bytes: &[u8],
        late: Vec<(u32, u16)>,
        draft: &Draft,
    ) -> Result<(), BuildError> {
        let (late, days): (Vec<u32>, Vec<u16>) = late.into_iter().unzip();
        draft.put(files.bytes, bytes)?;
        draft.put(files.late, &late)?;
        draft.put(files.days, &days)
    }

    /// Writes the registrations after the latest drops of `table`, by doc: those of the docs after the drops
    /// list.
    ///
    /// # Errors
    /// A write fails.
    pub fn write_latest(table: &Table, order: &RankOrder, draft: &Draft) -> Result<(), BuildError> {
        let bytes_of = |part: &Part| -> Vec<(u32, u8)> {
            let drops = (0..).zip(part.drops.returned.iter().copied());
            drops.filter(|(_, byte)| *byte != 0).collect()
        };
        let late_of = |part: &Part| -> Vec<(u32, u16)> {
            part.drops.late.iter().map(|&[drop, day]| (drop, day as u16)).collect()
        };
        let bytes = order.few(table, bytes_of)?.into_iter().map(|(_, byte)| byte);
        let bytes: Vec<u8> = bytes.collect();
        Returns::write(LATEST, &bytes, order.few(table, late_of)?, draft)
    }

    /// Opens the files that [`Returns::write`] wrote for the drops `first..drops`.
    ///
    /// # Errors
    /// A file is damaged or does not match the others.
    pub fn open(
        from: &Files,
        files: ReturnFiles,
        first: u32,
        drops: u32,
    ) -> Result<Returns, GenerationError> {
        let read = Returns {
            first,
            bytes: from.take(files.bytes)?,
            late: from.take(files.late)?,
            days: from.take(files.days)?,
        };
        let is_known = |&byte: &u8| Return::from_byte(byte).is_some();
        let fits = first.checked_add(read.bytes.len() as u32) == Some(drops)
            && read.bytes.iter().all(is_known);
        from.check(fits, files.bytes)?;
        let fits = read.late.len() == read.days.len()
            && read.late.is_sorted_by(|one, next| one < next)
            && read.late.first().is_none_or(|&drop| drop >= first)
            && read.late.last().is_none_or(|&drop| drop < drops)
            && !read.days.contains(&0);
        from.check(fits, files.late)?;
        Ok(read)
    }

    /// Returns the registration after a drop.
    #[inline]
    pub fn of(&self, drop: u32) -> Option<Return> {
        let at = drop.checked_sub(self.first)?;
        Return::from_byte(self.bytes[at as usize])
    }

    /// Returns the day of the list that shows a registration, if that is late.
    pub fn late(&self, drop: u32) -> Option<Day> {
        let at = self.late.binary_search(&drop).ok()?;
        Day::from_raw(self.days[at])
    }

    /// Returns the number of drops with a byte.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if no drop has a byte.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::{TestTables, round_trip};

    #[test]
    fn registrations_are_read_as_written() {
        for (seed, names) in [(1, 0), (2, 70), (3, 5_000)] {
            let table = TestTables::new(seed).table(names);
            let order = RankOrder::new(&table).expect("in memory");
            let write = |draft: &Draft| Returns::write_latest(&table, &order, draft);
            let (_folder, files) = round_trip(write).expect("written");
            let open = |first, drops| Returns::open(&files, LATEST, first, drops);
            let read = open(order.listed(), table.dropped()).expect("sound");
            let (mut docs, mut late) = (order.docs().iter(), 0);
            for part in table.parts.iter() {
                for drop in 0..part.drops.len() {
                    let doc = *docs.next().expect("a doc a drop");
                    assert_eq!(Return::byte(read.of(doc)), part.drops.returned[drop]);
                    let day = part.drops.late.iter().find(|[of, _]| *of == drop as u32);
                    let found = read.late(doc).map(|day| u32::from(day.raw()));
                    assert_eq!(found, day.map(|[_, day]| *day));
                    late += u32::from(found.is_some());
                }
            }
            assert_eq!(late > 100, names > 1_000, "{late}");
            if names > 1_000 {
                assert!(open(order.listed() + 1, table.dropped()).is_err(), "of other docs");
            }
        }
    }
}
