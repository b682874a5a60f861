//! Seconds of the releases of dropped names, by doc. Only some registries state them, so each takes six
//! bytes with its doc, and the other docs none.

use crate::columns::part::Part;
use crate::columns::rank_order::RankOrder;
use crate::columns::table::Table;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::release_time::SecondOfDay;

const DOCS: &str = "dropped.timed-docs";
const SECONDS: &str = "dropped.timed-seconds";

/// Seconds by doc. A second has 17 bits: its lowest bit is stored below the bits of its doc.
#[derive(Debug, Default)]
pub struct ReleaseSeconds {
    docs: Vec<u32>,
    halves: Vec<u16>,
}

impl ReleaseSeconds {
    /// Writes the seconds of the dropped names of `table`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(table: &Table, order: &RankOrder, draft: &Draft) -> Result<(), BuildError> {
        let seconds_of = |part: &Part| {
            part.drops.release_seconds.iter().map(|&[drop, second]| (drop, second)).collect()
        };
        let found = order.few(table, seconds_of)?;
        let packed = |(doc, second): (u32, u32)| (doc << 1 | second & 1, (second >> 1) as u16);
        let (docs, halves): (Vec<u32>, Vec<u16>) = found.into_iter().map(packed).unzip();
        draft.put(DOCS, &docs)?;
        draft.put(SECONDS, &halves)
    }

    /// Opens the files that [`ReleaseSeconds::write`] wrote for `docs` names.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(files: &Files, docs: u32) -> Result<ReleaseSeconds, GenerationError> {
        let read = ReleaseSeconds { docs: files.take(DOCS)?, halves: files.take(SECONDS)? };
        let fits = read.docs.len() == read.halves.len()
            && read.docs.is_sorted_by(|one, next| one >> 1 < next >> 1)
            && read.docs.last().is_none_or(|&last| last >> 1 < docs)
            && (0..read.docs.len()).all(|at| read.at(at).is_some());
        files.check(fits, DOCS)?;
        Ok(read)
    }

    /// Returns true if no doc has one.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// Returns the second of a doc, if a list states it.
    pub fn of(&self, doc: u32) -> Option<SecondOfDay> {
        let at = self.docs.partition_point(|&other| other >> 1 < doc);
        self.docs.get(at).filter(|&&other| other >> 1 == doc).and_then(|_| self.at(at))
    }

    fn at(&self, at: usize) -> Option<SecondOfDay> {
        SecondOfDay::new(u32::from(self.halves[at]) << 1 | self.docs[at] & 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::{TestTables, round_trip};

    #[test]
    fn seconds_are_read_as_written() {
        for (seed, names) in [(1, 0), (2, 70), (3, 5_000)] {
            let table = TestTables::new(seed).table(names);
            let order = RankOrder::new(&table).expect("in memory");
            let write = |draft: &Draft| ReleaseSeconds::write(&table, &order, draft);
            let (_folder, files) = round_trip(write).expect("written");
            let read = ReleaseSeconds::open(&files, table.dropped()).expect("sound");
            let (mut docs, mut timed) = (order.docs().iter(), 0);
            for part in table.parts.iter() {
                for drop in 0..part.drops.len() as u32 {
                    let doc = *docs.next().expect("a doc a drop");
                    let own = part.drops.release_seconds.iter().find(|[of, _]| *of == drop);
                    assert_eq!(read.of(doc).map(SecondOfDay::get), own.map(|[_, second]| *second));
                    timed += u32::from(own.is_some());
                }
            }
            assert_eq!(timed > 100, names > 1_000, "{timed}");
            if names > 1_000 {
                assert!(ReleaseSeconds::open(&files, 1).is_err(), "of other docs");
            }
        }
    }
}
