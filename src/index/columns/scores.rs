//! Scores of the docs of the drops list, as ranges: docs are in rank order, so those with the same
//! score are adjacent.

use std::ops::Range;

use crate::columns::rank_key::rank_key;
use crate::columns::rank_table::first_where;
use crate::vocab::dqs::Dqs;

/// Number of scores.
const ROWS: usize = Dqs::MAX.points() as usize + 1;

/// Docs by score.
#[derive(Debug)]
pub struct Scores {
    /// The first doc with a worse score, for each score, best first.
    cuts: Vec<u32>,
}

impl Scores {
    /// Finds the docs of each score; `dqs` returns that of a doc, of which there are `listed`.
    pub fn new(listed: u32, dqs: impl Fn(u32) -> Dqs) -> Scores {
        let row = |doc: usize| row_of(rank_key(dqs(doc as u32), 0));
        let cut = |best: u8| first_where(listed as usize, |doc| row(doc) > best) as u32;
        Scores { cuts: (0..ROWS as u8).map(cut).collect() }
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

    #[test]
    fn docs_of_a_score_are_those_of_a_scan() {
        let mut rng = fastrand::Rng::with_seed(6);
        for listed in [0, 1, 700] {
            let mut scores: Vec<Dqs> =
                (0..listed).map(|_| Dqs::clamped(rng.i32(0..=100))).collect();
            scores.sort_unstable_by(|one, other| other.cmp(one));
            let found = Scores::new(listed, |doc| scores[doc as usize]);
            for points in 0..=100 {
                let dqs = Dqs::clamped(points);
                let with = (0..).zip(&scores).filter(|&(_, &score)| score == dqs);
                assert!(found.docs_with(dqs).eq(with.map(|(doc, _)| doc)), "{points}");
            }
        }
    }
}
