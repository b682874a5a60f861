//! Scores of dropped names by doc. Docs on the drops list are in rank order, so the boundaries
//! between scores give the score of each doc. Only names registered again, which follow, have one
//! byte each.

use std::ops::Range;

use crate::columns::rank_key::{dqs_of, rank_key};
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::dqs::Dqs;

const CUTS: &str = "listed.score-cuts";
const AGAIN: &str = "listed.score-again";
/// Number of scores.
const ROWS: usize = Dqs::MAX.points() as usize + 1;

/// Scores of dropped names.
#[derive(Debug)]
pub struct Scores {
    /// The first doc of the drops list with a worse score, for each score, best first.
    cuts: Vec<u32>,
    /// Rows of the names registered again; see [`row_of`].
    again: Vec<u8>,
}

impl Scores {
    /// Builds the scores from the rank keys by doc, of which the first `listed` are on the drops list.
    pub fn new(keys: &[u16], listed: usize) -> Scores {
        let (on_list, again) = keys.split_at(listed);
        let rows = 0..ROWS as u8;
        let cuts = rows.map(|row| on_list.partition_point(|&key| row_of(key) <= row) as u32);
        Scores { cuts: cuts.collect(), again: again.iter().map(|&key| row_of(key)).collect() }
    }

    /// Writes the files.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(&self, draft: &Draft) -> Result<(), BuildError> {
        draft.put(CUTS, &self.cuts)?;
        draft.put(AGAIN, &self.again)
    }

    /// Opens the scores of `dropped` names, of which `listed` are on the drops list.
    ///
    /// # Errors
    /// A file is damaged or does not match.
    pub fn open(files: &Files, dropped: u32, listed: u32) -> Result<Scores, GenerationError> {
        let read = Scores { cuts: files.take(CUTS)?, again: files.take(AGAIN)? };
        let fits = read.cuts.len() == ROWS
            && read.cuts.is_sorted()
            && read.cuts.last() == Some(&listed)
            && read.again.iter().all(|&row| usize::from(row) < ROWS);
        files.check(fits, CUTS)?;
        files.check(dropped.checked_sub(listed) == Some(read.again.len() as u32), AGAIN)?;
        Ok(read)
    }

    /// Returns the number of docs on the drops list.
    pub fn listed(&self) -> u32 {
        self.cuts[ROWS - 1]
    }

    /// Returns the score of a doc.
    pub fn dqs(&self, doc: u32) -> Dqs {
        dqs_of(u16::from(self.row(doc)) << 8)
    }

    /// Returns 100 minus the score of a doc.
    #[inline]
    pub fn row(&self, doc: u32) -> u8 {
        match doc.checked_sub(self.listed()) {
            Some(again) => self.again[again as usize],
            None => self.cuts.partition_point(|&cut| cut <= doc) as u8,
        }
    }

    /// Returns the number of docs with a higher score; they come first.
    pub fn docs_above(&self, max_dqs: Dqs) -> u32 {
        let best = usize::from(Dqs::MAX.points() - max_dqs.points());
        best.checked_sub(1).map_or(0, |better| self.cuts[better])
    }

    /// Returns the number of docs with this score or a better one; they come first.
    pub fn docs_from(&self, min_dqs: Dqs) -> u32 {
        self.cuts[usize::from(row_of(rank_key(min_dqs, 0)))]
    }

    /// Returns the docs with this score.
    pub fn docs_with(&self, dqs: Dqs) -> Range<u32> {
        self.docs_above(dqs)..self.docs_from(dqs)
    }
}

/// Returns 100 minus the score of a [`rank_key`].
fn row_of(key: u16) -> u8 {
    (key >> 8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::round_trip;

    #[test]
    fn scores_are_those_of_the_keys() {
        let mut rng = fastrand::Rng::with_seed(6);
        for (listed, again) in [(0usize, 0usize), (1, 0), (0, 3), (700, 40)] {
            let mut key = || rank_key(Dqs::clamped(rng.i32(0..=100)), rng.u8(1..=63));
            let mut keys: Vec<u16> = (0..listed).map(|_| key()).collect();
            keys.sort_unstable();
            keys.extend((0..again).map(|_| key()));
            let scores = Scores::new(&keys, listed);
            let (_folder, files) = round_trip(|draft| scores.write(draft)).expect("written");
            let (dropped, on_list) = (keys.len() as u32, listed as u32);
            let read = Scores::open(&files, dropped, on_list).expect("sound");
            for (doc, &key) in (0..).zip(&keys) {
                assert_eq!(read.dqs(doc), dqs_of(key), "{doc}");
            }
            for points in 0..=100 {
                let dqs = Dqs::clamped(points);
                let on_list = (0u32..).zip(&keys[..listed]);
                let with = on_list.filter(|&(_, &key)| dqs_of(key) == dqs).map(|(doc, _)| doc);
                assert!(read.docs_with(dqs).eq(with), "{points}");
            }
            assert!(Scores::open(&files, dropped + 1, on_list).is_err());
            assert!(Scores::open(&files, dropped + 1, on_list + 1).is_err());
        }
    }
}
