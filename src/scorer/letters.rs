//! How easily a run of letters can be spoken, from the letter sequences of real words.
//!
//! A trigram model over the words of every dictionary: what follows two letters in real words is
//! cheap, what never follows them is dear. Whole numbers only, so that every platform agrees.

use super::percent::Percent;

/// `a` to `z`, and 0 for the edge of a word.
const SYMBOLS: usize = 27;
/// Cost per letter, in sixteenths of a bit, of names that read as words: a quarter of the
/// dictionaries' own words cost less.
const COST_EASY: u32 = 40;
/// Cost per letter of letters drawn at random.
const COST_HARD: u32 = 104;

/// What each letter costs after the two before it.
pub struct LetterModel {
    /// Sixteenths of a bit, by `(before last, last, next)`.
    cost: Vec<u8>,
}

impl LetterModel {
    /// Learns from `words`, which consist of `a` to `z` (others are passed over).
    pub fn learn<'a>(words: impl Iterator<Item = &'a str>) -> LetterModel {
        let mut seen = vec![0u32; SYMBOLS * SYMBOLS * SYMBOLS];
        for word in words.filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())) {
            for_each_trigram(word, |at| seen[at] += 1);
        }
        let cost = seen.chunks_exact(SYMBOLS).flat_map(costs_of_next).collect();
        LetterModel { cost }
    }

    /// Total cost in sixteenths of a bit, and the number of steps it is made of (the end of the
    /// word is one). `letters` must consist of `a` to `z`.
    pub fn cost(&self, letters: &str) -> (u32, u32) {
        let (mut total, mut steps) = (0, 0);
        for_each_trigram(letters, |at| {
            total += u32::from(self.cost[at]);
            steps += 1;
        });
        (total, steps)
    }

    /// 0 for random letters, 100 for what reads like a word; `None` without any step.
    pub fn ease(total: u32, steps: u32) -> Option<Percent> {
        let mean = total.checked_div(steps)?;
        let above = COST_HARD.saturating_sub(mean);
        Some(Percent::clamped(above * 100 / (COST_HARD - COST_EASY)))
    }
}

fn for_each_trigram(word: &str, mut visit: impl FnMut(usize)) {
    let (mut before, mut last) = (0, 0);
    for next in word.bytes().map(|byte| usize::from(byte - b'a') + 1).chain([0]) {
        visit((before * SYMBOLS + last) * SYMBOLS + next);
        (before, last) = (last, next);
    }
}

/// Costs of the symbols after one pair, each counted once more than seen so that none is
/// impossible.
fn costs_of_next(seen: &[u32]) -> impl Iterator<Item = u8> + '_ {
    let all = log2_16(seen.iter().sum::<u32>() + SYMBOLS as u32);
    seen.iter().map(move |&count| u8::try_from(all - log2_16(count + 1)).unwrap_or(u8::MAX))
}

/// Sixteen times the binary logarithm of `n`, which is at least 1; linear between powers of two.
fn log2_16(n: u32) -> u32 {
    let whole = n.ilog2();
    let rest = (u64::from(n) << 4 >> whole) as u32 & 15;
    16 * whole + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_whole_numbers() {
        let logs: Vec<_> = [1, 2, 3, 4, 1024, 1536, u32::MAX].map(log2_16).into();
        assert_eq!(logs, [0, 16, 24, 32, 160, 168, 511]);
    }

    #[test]
    fn what_was_learnt_is_easier_than_what_was_not() {
        let model = LetterModel::learn(["banana", "bandana", "cabana", "panama"].into_iter());
        let ease = |word| {
            let (total, steps) = model.cost(word);
            (total, steps)
        };
        assert_eq!(ease("bana").1, 5, "four letters and the end");
        assert!(ease("bana").0 < ease("bxqa").0);
        assert_eq!(LetterModel::ease(0, 0), None);
        assert_eq!(LetterModel::ease(10, 1).map(Percent::get), Some(100));
        assert_eq!(LetterModel::ease(2000, 10).map(Percent::get), Some(0));
    }
}
