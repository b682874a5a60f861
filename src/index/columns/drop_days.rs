//! Days of dropped names by doc: the latest drop, and its effective release. There are few distinct
//! drop dates, and few distinct numbers of days between drop and release. A doc therefore stores
//! the position of its drop date among all drop dates, and that of its wait among all waits. A
//! [`DayColumn`] of each serves ranges of days.

use crate::columns::day_column::{DayColumn, DayFiles, DayTest};
use crate::columns::packed::Packed;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;

const DATES: &str = "listed.drop-dates";
const DATE: &str = "listed.drop-date";
const WAITS: &str = "listed.waits";
const WAIT: &str = "listed.wait";
const DROPPED: DayFiles = DayFiles { cuts: "listed.drop-cuts", periods: "listed.drop-periods" };
const RELEASED: DayFiles =
    DayFiles { cuts: "listed.release-cuts", periods: "listed.release-periods" };

/// Days of dropped names, as [`crate::vocab::day::Day::raw`].
#[derive(Debug)]
pub struct DropDays {
    /// All drop dates, ascending, and the position of each doc's date.
    dates: Vec<u16>,
    date: Packed,
    /// All numbers of days from a drop to its release, which wrap around, and the position of each
    /// doc's number.
    waits: Vec<u16>,
    wait: Packed,
    dropped: DayColumn,
    released: DayColumn,
}

impl DropDays {
    /// Writes the drop dates and releases by doc.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(dropped: &[u16], released: &[u16], draft: &Draft) -> Result<(), BuildError> {
        let days = dropped.iter().zip(released);
        let waits: Vec<u16> = days.map(|(drop, release)| release.wrapping_sub(*drop)).collect();
        write_numbers((DATES, DATE), dropped, draft)?;
        write_numbers((WAITS, WAIT), &waits, draft)?;
        DayColumn::write(DROPPED, dropped, draft)?;
        DayColumn::write(RELEASED, released, draft)
    }

    /// Opens the files that [`DropDays::write`] wrote for `docs` names.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(files: &Files, docs: u32) -> Result<DropDays, GenerationError> {
        let (dates, date) = open_numbers((DATES, DATE), docs, files)?;
        let (waits, wait) = open_numbers((WAITS, WAIT), docs, files)?;
        let dropped = DayColumn::open(files, DROPPED, docs)?;
        let released = DayColumn::open(files, RELEASED, docs)?;
        Ok(DropDays { dates, date, waits, wait, dropped, released })
    }

    /// Returns the number of names.
    pub fn len(&self) -> u32 {
        self.date.len() as u32
    }

    /// Returns the latest drop date of a doc.
    #[inline]
    pub fn dropped(&self, doc: u32) -> u16 {
        self.dates[self.date.get(doc as usize) as usize]
    }

    /// Returns the effective release of a doc.
    #[inline]
    pub fn released(&self, doc: u32) -> u16 {
        self.dropped(doc).wrapping_add(self.waits[self.wait.get(doc as usize) as usize])
    }

    /// Returns the column of latest drop dates.
    pub fn drop_column(&self) -> &DayColumn {
        &self.dropped
    }

    /// Returns the column of effective releases.
    pub fn release_column(&self) -> &DayColumn {
        &self.released
    }

    /// Clears the bits of the docs that dropped on another day, starting at doc `64 * first`.
    pub fn keep_dropped(&self, test: &DayTest, first: usize, words: &mut [u64]) {
        self.dropped.keep(test, first, words, |doc| self.dropped(doc));
    }

    /// Clears the bits of the docs that are released on another day, starting at doc `64 * first`.
    pub fn keep_released(&self, test: &DayTest, first: usize, words: &mut [u64]) {
        self.released.keep(test, first, words, |doc| self.released(doc));
    }
}

/// Writes all distinct numbers, and the position of each doc's number among them.
fn write_numbers(
    (all, each): (&str, &str),
    numbers: &[u16],
    draft: &Draft,
) -> Result<(), BuildError> {
    let mut places = vec![u16::MAX; 1 << 16];
    numbers.iter().for_each(|&number| places[usize::from(number)] = 0);
    let is_used = |number: &u16| places[usize::from(*number)] == 0;
    let used: Vec<u16> = (0..=u16::MAX).filter(is_used).collect();
    for (place, &number) in (0..).zip(&used) {
        places[usize::from(number)] = place;
    }
    let each_place = numbers.iter().map(|&number| places[usize::from(number)].into());
    draft.put(all, &used)?;
    Packed::new(used.len(), numbers.len(), each_place).write(each, draft)
}

fn open_numbers(
    (all, each): (&str, &str),
    docs: u32,
    files: &Files,
) -> Result<(Vec<u16>, Packed), GenerationError> {
    let numbers: Vec<u16> = files.take(all)?;
    let each = Packed::open(each, numbers.len(), docs as usize, files)?;
    Ok((numbers, each))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    #[test]
    fn days_round_trip_and_ranges_select_the_same_days() {
        let mut rng = fastrand::Rng::with_seed(4);
        for (docs, spread) in [(0u32, 1u16), (1, 1), (3_000, 40), (3_000, 4_000)] {
            let dropped: Vec<u16> = (0..docs).map(|_| 1_000 + rng.u16(0..spread)).collect();
            // Some lists report a release before the drop.
            let released: Vec<u16> =
                dropped.iter().map(|&drop| drop + rng.u16(0..50) - rng.u16(0..3)).collect();
            let write = |draft: &Draft| DropDays::write(&dropped, &released, draft);
            let (_folder, files) = round_trip(write).expect("written");
            let days = DropDays::open(&files, docs).expect("sound");
            assert_eq!(days.len(), docs);
            for doc in 0..docs {
                assert_eq!(days.dropped(doc), dropped[doc as usize]);
                assert_eq!(days.released(doc), released[doc as usize]);
            }
            for _ in 0..100 {
                let start = 990 + rng.u16(0..spread + 60);
                let range = start..=start + rng.u16(0..spread / 2 + 20);
                let words = vec![u64::MAX; (docs / 64).saturating_sub(2) as usize];
                let (mut drops, mut releases) = (words.clone(), words);
                days.keep_dropped(&days.drop_column().test(range.clone()), 2, &mut drops);
                days.keep_released(&days.release_column().test(range.clone()), 2, &mut releases);
                for doc in 2 * 64..(2 + drops.len()) * 64 {
                    let bit = |words: &[u64]| words[doc / 64 - 2] >> (doc % 64) & 1 == 1;
                    assert_eq!(bit(&drops), range.contains(&dropped[doc]), "{range:?} {doc}");
                    assert_eq!(bit(&releases), range.contains(&released[doc]), "{range:?} {doc}");
                }
            }
            assert!(DropDays::open(&files, docs + 64).is_err(), "of other docs");
        }
    }
}
