//! Letter models: the probability of a run of letters in registered names, in Polish names and in
//! English words, letter by letter.
//!
//! A letter that often follows the three before it costs little; one that never does costs much.
//! Polish names use two preceding letters, because there are fewer of them. The statistics are
//! `data/scorer/letters-*.bin`, made by `benches/scoring`.

use super::percent::Percent;

/// `a` to `z`, and 0 for the edge of a run.
const SYMBOLS: usize = 27;
/// Costs by three preceding symbols and the next one.
const AFTER_THREE: usize = SYMBOLS.pow(4);
/// Costs by two preceding symbols and the next one.
const AFTER_TWO: usize = SYMBOLS.pow(3);

static NAMES: LetterModel =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-names.bin") };
static ENGLISH: LetterModel =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-english.bin") };
static POLISH: LetterModel<AFTER_TWO> =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-polish.bin") };

/// Cost per letter, in sixteenths of a bit, of the most pronounceable names.
const COST_EASY: u32 = 42;
/// Cost per letter of random letters.
const COST_HARD: u32 = 92;

/// Cost of each letter after the letters before it.
#[derive(Clone, Copy)]
pub struct LetterModel<const COSTS: usize = AFTER_THREE> {
    /// Sixteenths of a bit, by the preceding symbols and the next one.
    costs: &'static [u8; COSTS],
}

/// The preceding letters, as an offset into the costs.
#[derive(Clone, Copy, Default)]
pub struct Context(usize);

impl LetterModel {
    /// Model of the runs of letters in registered names.
    pub fn names() -> &'static LetterModel {
        &NAMES
    }

    /// Model of English words.
    pub fn english() -> &'static LetterModel {
        &ENGLISH
    }

    /// Pronounceability from a mean cost: 0 for random letters, 1 for word-like ones; `None` without
    /// any step.
    pub fn pronounceability(total: u32, steps: u32) -> Option<Percent> {
        let mean = total.checked_div(steps)?;
        let above = COST_HARD.saturating_sub(mean);
        Some(Percent::clamped(above * 100 / (COST_HARD - COST_EASY)))
    }
}

impl LetterModel<AFTER_TWO> {
    /// Model of the runs of letters in names under `pl`.
    pub fn polish() -> &'static LetterModel<AFTER_TWO> {
        &POLISH
    }
}

impl<const COSTS: usize> LetterModel<COSTS> {
    /// Returns the cost of `letter`, of `a` to `z`, after `context`, and advances `context`.
    #[inline]
    pub fn next(&self, context: &mut Context, letter: u8) -> u32 {
        let at = context.0 + usize::from(letter - b'a') + 1;
        context.0 = at % (COSTS / SYMBOLS) * SYMBOLS;
        u32::from(self.costs[at])
    }

    /// Cost of the end of the run.
    #[inline]
    pub fn end(&self, context: Context) -> u32 {
        u32::from(self.costs[context.0])
    }

    /// Total cost in sixteenths of a bit, and the number of steps including the end of the run.
    /// `letters` must consist of `a` to `z`.
    pub fn cost(&self, letters: &str) -> (u32, u32) {
        let mut context = Context::default();
        let spelt: u32 = letters.bytes().map(|letter| self.next(&mut context, letter)).sum();
        (spelt + self.end(context), letters.len() as u32 + 1)
    }

    /// Cost of the most expensive step of a run, including its end.
    pub fn max_step_cost(&self, letters: &str) -> u32 {
        let mut context = Context::default();
        let steps = letters.bytes().map(|letter| self.next(&mut context, letter));
        let max = steps.max().unwrap_or(0);
        max.max(self.end(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_names_cost_less_than_random_letters() {
        let mean = |text| {
            let (total, steps) = LetterModel::names().cost(text);
            total / steps
        };
        for (easy, hard) in [("banana", "bnnxqa"), ("hotel", "htlqe"), ("strasse", "sqrzasx")] {
            assert!(mean(easy) < mean(hard), "{easy} {hard}");
        }
        assert_eq!(LetterModel::names().cost("bana").1, 5, "four letters and the end");
        assert_eq!(LetterModel::pronounceability(0, 0), None);
        assert_eq!(LetterModel::pronounceability(10, 1).map(Percent::get), Some(100));
        assert_eq!(LetterModel::pronounceability(2000, 10).map(Percent::get), Some(0));
    }

    #[test]
    fn polish_words_cost_less_in_the_polish_model() {
        let polish = LetterModel::polish();
        let mean = |text| {
            let (total, steps) = polish.cost(text);
            total / steps
        };
        for (own, other) in [("przyczepy", "throughly"), ("szczecin", "voyageur")] {
            assert!(mean(own) < mean(other), "{own} {other}");
            assert!(polish.max_step_cost(own) < polish.max_step_cost(other), "{own} {other}");
        }
        let max = polish.max_step_cost("kwq");
        assert!(max >= polish.max_step_cost("kw") && max <= polish.cost("kwq").0);
    }

    #[test]
    fn every_letter_advances_the_context() {
        let mut context = Context::default();
        for letter in "abcdefghijklmnopqrstuvwxyzzzzz".bytes() {
            assert!(LetterModel::names().next(&mut context, letter) > 0);
        }
    }

    #[test]
    fn some_letter_is_likely_after_each_context() {
        let all = NAMES.costs.chunks_exact(SYMBOLS).chain(POLISH.costs.chunks_exact(SYMBOLS));
        for costs in all {
            assert!(costs.iter().any(|&cost| cost < 16 * 5), "probabilities sum to one");
        }
    }
}
