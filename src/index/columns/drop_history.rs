//! Drops of names before their latest one. Few names dropped more than once, so each drop is stored
//! with the ordinal of its name, and found by binary search. The latest drop of a name is a doc of
//! the drops list.

use crate::columns::part::Section;
use crate::columns::table::Table;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::day::Day;

const ORDINALS: &str = "earlier.ordinals";
const DATES: &str = "earlier.dates";
const RELEASES: &str = "earlier.releases";
const AGAIN: &str = "earlier.again";

/// All drops except the latest of each name: by ordinal, then by date.
#[derive(Debug, Default)]
pub struct DropHistory {
    ordinals: Vec<u32>,
    /// [`Day::raw`].
    dates: Vec<u16>,
    /// Effective release.
    releases: Vec<u16>,
    /// 1 if the name was registered again before its next drop, else 0.
    again: Vec<u8>,
}

/// A drop that was followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierDrop {
    pub date: Day,
    /// Effective release.
    pub release: Day,
    /// Registered again before the next drop, according to a list.
    pub registered_again: bool,
}

impl DropHistory {
    /// Writes the earlier drops of `table`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(table: &Table, draft: &Draft) -> Result<(), BuildError> {
        let mut all = DropHistory::default();
        table.parts.for_each(
            &[Section::Earlier],
            |_| (),
            |part, ()| {
                let earlier = &part.earlier;
                all.ordinals.extend(earlier.at.iter().map(|at| part.first + at));
                all.dates.extend_from_slice(&earlier.date);
                all.releases.extend_from_slice(&earlier.release);
                all.again.extend(earlier.again.iter().map(|&again| u8::from(again)));
                Ok(())
            },
        )?;
        draft.put(ORDINALS, &all.ordinals)?;
        draft.put(DATES, &all.dates)?;
        draft.put(RELEASES, &all.releases)?;
        draft.put(AGAIN, &all.again)
    }

    /// Opens the files that [`DropHistory::write`] wrote for a table of `names` names.
    ///
    /// # Errors
    /// A file is damaged or does not match the others.
    pub fn open(files: &Files, names: u32) -> Result<DropHistory, GenerationError> {
        let all = DropHistory {
            ordinals: files.take(ORDINALS)?,
            dates: files.take(DATES)?,
            releases: files.take(RELEASES)?,
            again: files.take(AGAIN)?,
        };
        let drops = all.ordinals.len();
        let fits = [all.dates.len(), all.releases.len(), all.again.len()] == [drops; 3]
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
        let day = |raw| Day::from_raw(raw).expect("was checked when it was read");
        (first..after).rev().map(move |at| EarlierDrop {
            date: day(self.dates[at]),
            release: day(self.releases[at]),
            registered_again: self.again[at] != 0,
        })
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
                    let expected: Vec<(u16, u16, bool)> = of_name
                        .map(|drop| {
                            let earlier = &part.earlier;
                            (earlier.date[drop], earlier.release[drop], earlier.again[drop])
                        })
                        .rev()
                        .collect();
                    let drops = read
                        .before_latest(part.first + at)
                        .map(|drop| (drop.date.raw(), drop.release.raw(), drop.registered_again));
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
