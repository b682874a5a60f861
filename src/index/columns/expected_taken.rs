//! Expected shares of names that are registered again soon, by doc. They are not stored: new lists change
//! the models, so they are computed whenever an index is loaded ([`crate::query::expectation`]).

use crate::columns::first_batches::keep_where;
use crate::vocab::expected_taken::ExpectedTaken;

/// Byte of a doc whose suffix has no model.
const UNKNOWN: u8 = u8::MAX;

/// Percent by doc of all dropped names; empty if no suffix has a model.
#[derive(Debug, Default)]
pub struct ExpectedColumn(Vec<u8>);

impl ExpectedColumn {
    /// Returns the column of these expectations, by doc.
    pub fn new(of_docs: Vec<Option<ExpectedTaken>>) -> ExpectedColumn {
        ExpectedColumn(
            of_docs.into_iter().map(|it| it.map_or(UNKNOWN, ExpectedTaken::percent)).collect(),
        )
    }

    /// Returns the expectation of a doc.
    #[inline]
    pub fn of(&self, doc: u32) -> Option<ExpectedTaken> {
        ExpectedTaken::new((*self.0.get(doc as usize)?).into())
    }

    /// Clears the bits of the docs below `least`, starting at doc `64 * first`.
    pub fn keep(&self, least: ExpectedTaken, first: usize, words: &mut [u64]) {
        let within = self.0.len().div_ceil(64).saturating_sub(first).min(words.len());
        let (words, beyond) = words.split_at_mut(within);
        beyond.fill(0);
        keep_where(&self.0, first, words, |percent| {
            (percent >= least.percent()) & (percent != UNKNOWN)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_from_a_percentage_on_are_kept() {
        let mut of_docs = vec![None; 70];
        for (doc, percent) in [(0, 0), (1, 10), (2, 11), (64, 100), (69, 9)] {
            of_docs[doc] = ExpectedTaken::new(percent);
        }
        let column = ExpectedColumn::new(of_docs);
        for least in [0, 10, 100] {
            let least = ExpectedTaken::new(least).expect("in range");
            let mut words = [u64::MAX; 3];
            column.keep(least, 0, &mut words);
            for doc in 0..192 {
                let is_kept = words[doc as usize / 64] >> (doc % 64) & 1 == 1;
                assert_eq!(is_kept, column.of(doc).is_some_and(|it| it >= least), "{doc} {least}");
            }
            let mut last = [u64::MAX];
            column.keep(least, 1, &mut last);
            assert_eq!(last[0], words[1]);
        }
        let mut words = [u64::MAX; 2];
        ExpectedColumn::default().keep(ExpectedTaken::of_share(0.0), 0, &mut words);
        assert_eq!(words, [0; 2], "no suffix has a model");
    }
}
