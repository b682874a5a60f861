//! Drops of names before their latest one. Few names dropped more than once, so each drop is stored
//! with the ordinal of its name, and found by binary search. The latest drop of a name is a doc of
//! the drops list.

use crate::columns::part::Section;
use crate::columns::returns::{ReturnFiles, Returns};
use crate::columns::table::Table;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::day::Day;
use crate::vocab::outcome::{Released, Return};

const ORDINALS: &str = "earlier.ordinals";
const DATES: &str = "earlier.dates";
const RELEASES: &str = "earlier.releases";
const RETURNS: ReturnFiles =
    ReturnFiles { bytes: "earlier.returned", late: "earlier.late", days: "earlier.late-days" };

/// All drops except the latest of each name: by ordinal, then by date.
#[derive(Debug, Default)]
pub struct DropHistory {
    ordinals: Vec<u32>,
    /// [`Day::raw`].
    dates: Vec<u16>,
    /// Effective release.
    releases: Vec<u16>,
    /// Registrations before the next drop.
    returns: Returns,
}

/// A drop that was followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierDrop {
    pub date: Day,
    /// Effective release.
    pub release: Day,
    /// The registration before the next drop, and the day of its list if it is late.
    pub returned: Option<Return>,
    pub late: Option<Day>,
}

impl EarlierDrop {
    /// Returns the release with the registration after it.
    pub fn released(&self) -> Released {
        Released { on: self.release, returned: self.returned, late: self.late }
    }
}

impl DropHistory {
    /// Writes the earlier drops of `table`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(table: &Table, draft: &Draft) -> Result<(), BuildError> {
        let (mut all, mut returned, mut late) = (DropHistory::default(), Vec::new(), Vec::new());
        table.parts.for_each(
            &[Section::Earlier],
            |_| (),
            |part, ()| {
                let earlier = &part.earlier;
                all.ordinals.extend(earlier.at.iter().map(|at| part.first + at));
                all.dates.extend_from_slice(&earlier.date);
                all.releases.extend_from_slice(&earlier.release);
                let first = returned.len() as u32;
                returned.extend_from_slice(&earlier.returned);
                late.extend(earlier.late.iter().map(|&[at, day]| (first + at, day as u16)));
                Ok(())
            },
        )?;
        draft.put(ORDINALS, &all.ordinals)?;
        draft.put(DATES, &all.dates)?;
        draft.put(RELEASES, &all.releases)?;
        Returns::write(RETURNS, &returned, late, draft)
    }

    /// Opens the files that [`DropHistory::write`] wrote for a table of `names` names.
    ///
    /// # Errors
    /// A file is damaged or does not match the others.
    pub fn open(files: &Files, names: u32) -> Result<DropHistory, GenerationError> {
        let ordinals: Vec<u32> = files.take(ORDINALS)?;
        let drops = ordinals.len();
        let all = DropHistory {
            returns: Returns::open(files, RETURNS, 0, drops as u32)?,
            ordinals,
            dates: files.take(DATES)?,
            releases: files.take(RELEASES)?,
        };
        let fits = [all.dates.len(), all.releases.len()] == [drops; 2]
            && all.ordinals.is_sorted()
            && all.ordinals.last().is_none_or(|&last| last < names)
            && !all.dates.contains(&0)
            && !all.releases.contains(&0);
        files.check(fits, ORDINALS)?;
        Ok(all)
    }

    /// Returns the drops of an ordinal before its latest, newest first.
    pub fn before_latest(&self, ordinal: u32) -> impl Iterator<Item = EarlierDrop> {
        let first = self.ordinals.partition_point(|&other| other < ordinal);
        let after = self.ordinals.partition_point(|&other| other <= ordinal);
        (first..after).rev().map(move |at| self.at(at))
    }

    /// Returns all drops with the ordinals of their names.
    pub fn iter(&self) -> impl Iterator<Item = (u32, EarlierDrop)> {
        (0..self.ordinals.len()).map(|at| (self.ordinals[at], self.at(at)))
    }

    fn at(&self, at: usize) -> EarlierDrop {
        let day = |raw| Day::from_raw(raw).expect("was checked when it was read");
        EarlierDrop {
            date: day(self.dates[at]),
            release: day(self.releases[at]),
            returned: self.returns.of(at as u32),
            late: self.returns.late(at as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::{TestTables, round_trip};

    #[test]
    fn drops_are_read_as_written() {
        for (seed, names) in [(1, 0), (2, 1), (3, 5_000)] {
            let table = TestTables::new(seed).table(names);
            let write = |draft: &Draft| DropHistory::write(&table, draft);
            let (_folder, files) = round_trip(write).expect("written");
            let read = DropHistory::open(&files, table.len()).expect("sound");
            let mut found = 0;
            for part in table.parts.iter() {
                for at in 0..part.len() as u32 {
                    let of_name =
                        (0..part.earlier.at.len()).filter(|&drop| part.earlier.at[drop] == at);
                    let expected: Vec<(u16, u16, u8, u32)> = of_name
                        .map(|drop| {
                            let earlier = &part.earlier;
                            let late = earlier.late.iter().find(|[of, _]| *of == drop as u32);
                            let days = (earlier.date[drop], earlier.release[drop]);
                            let late = late.map_or(0, |[_, day]| *day);
                            (days.0, days.1, earlier.returned[drop], late)
                        })
                        .rev()
                        .collect();
                    let drops = read.before_latest(part.first + at).map(|drop| {
                        let late = u32::from(Day::raw_or_zero(drop.late));
                        let days = (drop.date.raw(), drop.release.raw());
                        (days.0, days.1, Return::byte(drop.returned), late)
                    });
                    assert_eq!(drops.collect::<Vec<_>>(), expected);
                    found += expected.len();
                }
            }
            assert_eq!(found > 100, names > 1_000);
            if found > 0 {
                assert!(DropHistory::open(&files, 1).is_err(), "of another table");
            }
        }
    }
}
