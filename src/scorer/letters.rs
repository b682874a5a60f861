//! How likely a run of letters is, letter by letter: among those of registered names, and among
//! English words.
//!
//! What three letters are followed by there is cheap, what never follows them is dear. The
//! statistics are `data/scorer/letters-*.bin`, which `benches/scoring` makes.

use super::percent::Percent;

/// `a` to `z`, and 0 for the edge of a run.
const SYMBOLS: usize = 27;
/// By the three symbols before and the next one: sixteenths of a bit.
type Costs = [u8; SYMBOLS.pow(4)];

static NAMES: LetterModel =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-names.bin") };
static ENGLISH: LetterModel =
    LetterModel { costs: include_bytes!("../../data/scorer/letters-english.bin") };

/// Cost per letter, in sixteenths of a bit, of the easiest names.
const COST_EASY: u32 = 42;
/// Cost per letter of letters drawn at random.
const COST_HARD: u32 = 92;

/// What each letter costs after the three before it.
#[derive(Clone, Copy)]
pub struct LetterModel {
    costs: &'static Costs,
}

/// The three letters before the next one, as the start of their costs.
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

    /// What `letter`, of `a` to `z`, costs after `context`, which moves on to it.
    #[inline]
    pub fn next(&self, context: &mut Context, letter: u8) -> u32 {
        let at = context.0 + usize::from(letter - b'a') + 1;
        context.0 = at % SYMBOLS.pow(3) * SYMBOLS;
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

    /// 0 for random letters, 100 for what reads like a word; `None` without any step.
    pub fn ease(total: u32, steps: u32) -> Option<Percent> {
        let mean = total.checked_div(steps)?;
        let above = COST_HARD.saturating_sub(mean);
        Some(Percent::clamped(above * 100 / (COST_HARD - COST_EASY)))
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
    fn every_letter_goes_on() {
        let mut context = Context::default();
        for letter in "abcdefghijklmnopqrstuvwxyzzzzz".bytes() {
            assert!(LetterModel::names().next(&mut context, letter) > 0);
        }
    }

    #[test]
    fn after_each_context_something_is_likely() {
        for costs in NAMES.costs.chunks_exact(SYMBOLS) {
            assert!(costs.iter().any(|&cost| cost < 16 * 5), "a sum of shares is one");
        }
    }
}
