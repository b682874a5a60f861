//! How likely a run of letters is, letter by letter: among those of registered names, of Polish
//! ones, and among English words.
//!
//! What three letters are followed by there is cheap, what never follows them is dear; Polish names
//! are counted by two letters, as there are fewer of them. The statistics are
//! `data/scorer/letters-*.bin`, which `benches/scoring` makes.

use super::percent::Percent;

/// `a` to `z`, and 0 for the edge of a run.
const SYMBOLS: usize = 27;
/// Of three symbols before and the next one.
const AFTER_THREE: usize = SYMBOLS.pow(4);
/// Of two.
const AFTER_TWO: usize = SYMBOLS.pow(3);

static NAMES: LetterModel =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-names.bin") };
static ENGLISH: LetterModel =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-english.bin") };
static POLISH: LetterModel<AFTER_TWO> =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-polish.bin") };

/// Cost per letter, in sixteenths of a bit, of the easiest names.
const COST_EASY: u32 = 42;
/// Cost per letter of letters drawn at random.
const COST_HARD: u32 = 92;

/// What each letter costs after the three, or so many others, before it.
#[derive(Clone, Copy)]
pub struct LetterModel<const COSTS: usize = AFTER_THREE> {
    /// By the symbols before and the next one: sixteenths of a bit.
    costs: &'static [u8; COSTS],
}

/// The letters before the next one, as the start of their costs.
#[derive(Clone, Copy, Default)]
pub struct Context(usize);

impl LetterModel {
    /// Of the runs of letters in registered names.
    pub fn names() -> &'static LetterModel {
        &NAMES
    }

    /// Of English words.
    pub fn english() -> &'static LetterModel {
        &ENGLISH
    }

    /// 0 for random letters, 100 for what reads like a word; `None` without any step.
    pub fn ease(total: u32, steps: u32) -> Option<Percent> {
        let mean = total.checked_div(steps)?;
        let above = COST_HARD.saturating_sub(mean);
        Some(Percent::clamped(above * 100 / (COST_HARD - COST_EASY)))
    }
}

impl LetterModel<AFTER_TWO> {
    /// Of the runs of letters in names under `pl`.
    pub fn polish() -> &'static LetterModel<AFTER_TWO> {
        &POLISH
    }
}

impl<const COSTS: usize> LetterModel<COSTS> {
    /// What `letter`, of `a` to `z`, costs after `context`, which moves on to it.
    #[inline]
    pub fn next(&self, context: &mut Context, letter: u8) -> u32 {
        let at = context.0 + usize::from(letter - b'a') + 1;
        context.0 = at % (COSTS / SYMBOLS) * SYMBOLS;
        u32::from(self.costs[at])
    }

    /// What it costs that the run ends here.
    #[inline]
    pub fn end(&self, context: Context) -> u32 {
        u32::from(self.costs[context.0])
    }

    /// Total cost in sixteenths of a bit, and the number of steps it is made of (the end of the
    /// run is one). `letters` must consist of `a` to `z`.
    pub fn cost(&self, letters: &str) -> (u32, u32) {
        let mut context = Context::default();
        let spelt: u32 = letters.bytes().map(|letter| self.next(&mut context, letter)).sum();
        (spelt + self.end(context), letters.len() as u32 + 1)
    }

    /// What the dearest step of the run costs, its end among them.
    pub fn dearest(&self, letters: &str) -> u32 {
        let mut context = Context::default();
        let steps = letters.bytes().map(|letter| self.next(&mut context, letter));
        let dearest = steps.max().unwrap_or(0);
        dearest.max(self.end(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_register_is_cheaper_than_what_they_do_not() {
        let mean = |text| {
            let (total, steps) = LetterModel::names().cost(text);
            total / steps
        };
        for (easy, hard) in [("banana", "bnnxqa"), ("hotel", "htlqe"), ("strasse", "sqrzasx")] {
            assert!(mean(easy) < mean(hard), "{easy} {hard}");
        }
        assert_eq!(LetterModel::names().cost("bana").1, 5, "four letters and the end");
        assert_eq!(LetterModel::ease(0, 0), None);
        assert_eq!(LetterModel::ease(10, 1).map(Percent::get), Some(100));
        assert_eq!(LetterModel::ease(2000, 10).map(Percent::get), Some(0));
    }

    #[test]
    fn polish_letters_are_cheap_in_polish_names() {
        let polish = LetterModel::polish();
        let mean = |text| {
            let (total, steps) = polish.cost(text);
            total / steps
        };
        for (own, other) in [("przyczepy", "throughly"), ("szczecin", "voyageur")] {
            assert!(mean(own) < mean(other), "{own} {other}");
            assert!(polish.dearest(own) < polish.dearest(other), "{own} {other}");
        }
        let dearest = polish.dearest("kwq");
        assert!(dearest >= polish.dearest("kw") && dearest <= polish.cost("kwq").0);
    }

    #[test]
    fn every_letter_goes_on() {
        let mut context = Context::default();
        for letter in "abcdefghijklmnopqrstuvwxyzzzzz".bytes() {
            assert!(LetterModel::names().next(&mut context, letter) > 0);
        }
    }

    #[test]
    fn after_each_context_something_is_likely() {
        let all = NAMES.costs.chunks_exact(SYMBOLS).chain(POLISH.costs.chunks_exact(SYMBOLS));
        for costs in all {
            assert!(costs.iter().any(|&cost| cost < 16 * 5), "a sum of shares is one");
        }
    }
}
