//! The model of a suffix: a logistic regression of its outcomes on a few properties of a drop, fitted by
//! Newton's method with a small penalty (ridge), on counts of equal drops. The same counts give the same
//! numbers.

use crate::query::outcome_tables::percent;
use crate::query::summary::{BANDS, length_band};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::name::to_unicode;
use crate::vocab::outcome::{Auc, Completeness};

/// Outcomes from which a suffix has a model.
pub const NAMES_MIN: u64 = 2_000;
/// Minimum of names that were registered again, and of names that were not.
const EITHER_MIN: u64 = 50;
/// Earlier drops, and other suffixes, above these numbers count as these.
const DROPS_MAX: u8 = 2;
const OTHERS_MAX: u16 = 15;
/// Scores, in tens, above which the weight of a further point changes.
const KNOTS: [f64; 2] = [3.0, 5.0];

/// Positions of the terms: constant, score, lengths, earlier drops, other suffixes.
const SCORE: usize = 1;
const LENGTH: usize = SCORE + 1 + KNOTS.len();
const DROPS: usize = LENGTH + BANDS.len();
const OTHERS: usize = DROPS + DROPS_MAX as usize;
const TERMS: usize = OTHERS + 1;
type Terms = [f64; TERMS];

/// Penalty of a weight of 1, in names.
const PENALTY: f64 = 1.0;
const STEPS_MAX: usize = 50;
/// The 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The properties of a drop on which the model depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Predictors {
    dqs: Dqs,
    /// Position in [`BANDS`].
    length: u8,
    /// Drops before this one, up to [`DROPS_MAX`].
    drops: u8,
    /// Other suffixes with the label, up to [`OTHERS_MAX`].
    others: u8,
}

impl Predictors {
    /// `earlier` counts the drops of the name before this one.
    pub fn new(dqs: Dqs, length: u8, earlier: u8, others: u16) -> Predictors {
        Predictors {
            dqs,
            length: length_band(length),
            drops: earlier.min(DROPS_MAX),
            others: others.min(OTHERS_MAX) as u8,
        }
    }

    fn terms(self) -> Terms {
        let mut terms = [0.0; TERMS];
        let score = f64::from(self.dqs.points()) / 10.0;
        (terms[0], terms[SCORE]) = (1.0, score);
        for (term, knot) in terms[SCORE + 1..].iter_mut().zip(KNOTS) {
            *term = (score - knot).max(0.0);
        }
        terms[LENGTH + usize::from(self.length)] = 1.0;
        if let Some(drops) = self.drops.checked_sub(1) {
            terms[DROPS + usize::from(drops)] = 1.0;
        }
        terms[OTHERS] = f64::from(self.others).ln_1p();
        terms
    }
}

/// Drops with equal predictors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub names: u64,
    pub taken: u64,
}

impl Count {
    pub fn add(&mut self, other: Count) {
        (self.names, self.taken) = (self.names + other.names, self.taken + other.taken);
    }
}

/// Drops with equal predictors, by time: those that test the model were released last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub earlier: Count,
    pub last: Count,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.earlier.add(other.earlier);
        self.last.add(other.last);
    }

    fn all(self) -> Count {
        let mut all = self.earlier;
        all.add(self.last);
        all
    }
}

/// A fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub shown: Completeness,
    pub all: Count,
    /// First and last release.
    pub from: Day,
    pub to: Day,
    /// `None` with too few earlier or last names.
    pub test: Option<Test>,
    fit: Fit,
}

/// The models of an index, by TLD number.
#[derive(Debug, Default)]
pub(crate) struct Models(Vec<Option<Model>>);

impl Models {
    /// Returns the models of some of `tlds` TLDs.
    pub fn new(tlds: usize, of: Vec<(u16, Model)>) -> Models {
        let mut all = vec![None; tlds];
        of.into_iter().for_each(|(tld, model)| all[usize::from(tld)] = Some(model));
        Models(all)
    }

    pub fn of(&self, tld: u16) -> Option<&Model> {
        self.0.get(usize::from(tld))?.as_ref()
    }

    /// Returns true if no TLD has a model.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// How well a model of the earlier releases predicted the last ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    pub of: Count,
    /// First release of the tested names.
    pub from: Day,
    /// Mean squared difference of expectation and outcome (Brier score).
    pub brier: f64,
    /// The same with the share of the earlier releases as the expectation of every name.
    pub brier_of_mean: f64,
    /// `None` with too few names on either side.
    pub auc: Option<Auc>,
    /// That of the score alone.
    pub auc_of_score: Option<Auc>,
}

/// An expectation, from 0 to 1, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

impl Model {
    /// Fits the drops of a suffix, sorted by predictors; `None` for too few. Those in `counts.last` were released
    /// from `tested` on.
    pub fn fit(
        shown: Completeness,
        (from, to): (Day, Day),
        tested: Day,
        counts: &[(Predictors, Counts)],
    ) -> Option<Model> {
        let part = |of: fn(&Counts) -> Count| -> Vec<(Predictors, Count)> {
            let counts = counts.iter().map(|(drop, counts)| (*drop, of(counts)));
            counts.filter(|(_, count)| count.names > 0).collect()
        };
        let all = part(|counts| counts.all());
        let total = sum(&all);
        if total.names < NAMES_MIN {
            return None;
        }
        let fit = Fit::of(&all)?;
        let (earlier, last) = (part(|counts| counts.earlier), part(|counts| counts.last));
        let test = Fit::of(&earlier).and_then(|fit| Test::of(&fit, sum(&earlier), &last, tested));
        Some(Model { shown, all: total, from, to, test, fit })
    }

    /// Returns the expectation of a drop.
    pub fn expects(&self, drop: Predictors) -> Expectation {
        let terms = drop.terms();
        let (at, spread) = (dot(&self.fit.weights, &terms), Z * self.fit.deviation(&terms));
        Expectation { share: logistic(at), low: logistic(at - spread), high: logistic(at + spread) }
    }

    /// Describes an expectation in a sentence.
    pub fn sentence(&self, expected: Expectation, tld: &str) -> String {
        let Expectation { share, low, high } = expected;
        let at_least = if self.shown == Completeness::Complete { "" } else { "at least " };
        format!(
            "Of .{} names with this score, length and history, {at_least}{} % are expected to be registered again \
             {} ({}-{} %).",
            to_unicode(tld),
            percent(share),
            ExpectedTaken::HORIZON.words(),
            percent(low),
            percent(high),
        )
    }

    /// Returns the expectation of a drop without its interval.
    pub fn share(&self, drop: Predictors) -> f64 {
        logistic(dot(&self.fit.weights, &drop.terms()))
    }
}

impl Test {
    fn of(fit: &Fit, earlier: Count, last: &[(Predictors, Count)], from: Day) -> Option<Test> {
        let of = sum(last);
        let mean = earlier.taken as f64 / earlier.names as f64;
        let brier = |expected: &dyn Fn(Predictors) -> f64| {
            let squares = last.iter().map(|&(drop, Count { names, taken })| {
                let share = expected(drop);
                taken as f64 * (1.0 - share).powi(2) + (names - taken) as f64 * share.powi(2)
            });
            squares.sum::<f64>() / of.names as f64
        };
        let expected = |drop: Predictors| logistic(dot(&fit.weights, &drop.terms()));
        (of.names > 0).then(|| Test {
            of,
            from,
            brier: brier(&expected),
            brier_of_mean: brier(&|_| mean),
            auc: order(last, |drop| expected(drop).to_bits()),
            auc_of_score: order(last, |drop| drop.dqs.points().into()),
        })
    }
}

fn sum(counts: &[(Predictors, Count)]) -> Count {
    counts.iter().fold(Count::default(), |mut all, (_, count)| {
        all.add(*count);
        all
    })
}

/// Returns how well a key orders outcomes.
fn order(counts: &[(Predictors, Count)], key: impl Fn(Predictors) -> u64) -> Option<Auc> {
    let mut by_key: Vec<(u64, Count)> =
        counts.iter().map(|&(drop, count)| (key(drop), count)).collect();
    by_key.sort_unstable_by_key(|(key, _)| *key);
    let groups = by_key.chunk_by(|one, next| one.0 == next.0);
    Auc::of(groups.map(|group| {
        let of = |member: fn(&Count) -> u64| group.iter().map(|(_, count)| member(count)).sum();
        (of(|count| count.names), of(|count| count.taken))
    }))
}

/// Weights, and the Cholesky factor of the information about them.
#[derive(Clone, Debug, PartialEq)]
struct Fit {
    weights: Terms,
    /// Lower triangle.
    factor: [Terms; TERMS],
}

impl Fit {
    /// Returns `None` for too few names on either side.
    fn of(counts: &[(Predictors, Count)]) -> Option<Fit> {
        let Count { names, taken } = sum(counts);
        if taken.min(names - taken) < EITHER_MIN {
            return None;
        }
        let rows: Vec<(Terms, f64, f64)> = counts
            .iter()
            .map(|(drop, count)| (drop.terms(), count.names as f64, count.taken as f64))
            .collect();
        let mut weights = [0.0; TERMS];
        weights[0] = (taken as f64 / (names - taken) as f64).ln();
        let (mut loss, mut factor) = (loss_of(&rows, &weights), [[0.0; TERMS]; TERMS]);
        for _ in 0..STEPS_MAX {
            let (gradient, information) = derivatives(&rows, &weights);
            factor = cholesky(&information);
            let step = solve(&factor, &gradient);
            // A full step may overshoot while the weights are far off.
            let tried = (0..8).map(|halvings| {
                let part = 0.5f64.powi(halvings);
                let weights: Terms = std::array::from_fn(|at| weights[at] + part * step[at]);
                (loss_of(&rows, &weights), weights)
            });
            let Some((better, next)) = tried.into_iter().find(|(tried, _)| *tried < loss) else {
                break;
            };
            (loss, weights) = (better, next);
        }
        Some(Fit { weights, factor })
    }

    /// Returns the standard deviation of the linear predictor.
    fn deviation(&self, terms: &Terms) -> f64 {
        let solved = forward(&self.factor, terms);
        dot(&solved, &solved).sqrt()
    }
}

fn dot(one: &Terms, other: &Terms) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn logistic(at: f64) -> f64 {
    1.0 / (1.0 + (-at).exp())
}

/// Penalty of the weight of a term; the constant has none.
fn penalty(term: usize) -> f64 {
    if term == 0 { 0.0 } else { PENALTY }
}

/// Returns the negative logarithm of the likelihood, with the penalty.
fn loss_of(rows: &[(Terms, f64, f64)], weights: &Terms) -> f64 {
    let of_row = |(terms, names, taken): &(Terms, f64, f64)| {
        let at = dot(weights, terms);
        // ln(1 + e^at), for large values as well.
        names * (at.max(0.0) + (-at.abs()).exp().ln_1p()) - taken * at
    };
    let penalties = weights.iter().enumerate().map(|(at, it)| penalty(at) * it * it / 2.0);
    rows.iter().map(of_row).sum::<f64>() + penalties.sum::<f64>()
}

/// Returns the gradient, downhill, and the matrix of second derivatives.
fn derivatives(rows: &[(Terms, f64, f64)], weights: &Terms) -> (Terms, [Terms; TERMS]) {
    let mut gradient: Terms = std::array::from_fn(|at| -penalty(at) * weights[at]);
    let mut information = [[0.0; TERMS]; TERMS];
    for (at, row) in information.iter_mut().enumerate() {
        row[at] = penalty(at);
    }
    for (terms, names, taken) in rows {
        let share = logistic(dot(weights, terms));
        let (missed, weight) = (taken - names * share, names * share * (1.0 - share));
        for (at, term) in terms.iter().enumerate().filter(|(_, term)| **term != 0.0) {
            gradient[at] += missed * term;
            for (to, other) in information[at].iter_mut().zip(terms) {
                *to += weight * term * other;
            }
        }
    }
    (gradient, information)
}

/// Returns the lower triangle whose product with its transpose is a positive definite matrix.
fn cholesky(of: &[Terms; TERMS]) -> [Terms; TERMS] {
    let mut lower = [[0.0; TERMS]; TERMS];
    for row in 0..TERMS {
        for column in 0..=row {
            let known: f64 = (0..column).map(|at| lower[row][at] * lower[column][at]).sum();
            let rest = of[row][column] - known;
            lower[row][column] =
                if row == column { rest.sqrt() } else { rest / lower[column][column] };
        }
    }
    lower
}

/// Solves `lower * x = of`.
fn forward(lower: &[Terms; TERMS], of: &Terms) -> Terms {
    let mut solved = [0.0; TERMS];
    for row in 0..TERMS {
        let known: f64 = (0..row).map(|at| lower[row][at] * solved[at]).sum();
        solved[row] = (of[row] - known) / lower[row][row];
    }
    solved
}

/// Solves `lower * transpose(lower) * x = of`.
fn solve(lower: &[Terms; TERMS], of: &Terms) -> Terms {
    let half = forward(lower, of);
    let mut solved = [0.0; TERMS];
    for row in (0..TERMS).rev() {
        let known: f64 = (row + 1..TERMS).map(|at| lower[at][row] * solved[at]).sum();
        solved[row] = (half[row] - known) / lower[row][row];
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::TestTables;

    /// Weights of a made-up market: score, earlier drops and other suffixes help, and so do short labels.
    fn truth(drop: Predictors) -> f64 {
        let Predictors { dqs, length, drops, others } = drop;
        let score = f64::from(dqs.points()) / 10.0;
        logistic(
            -4.0 + 0.3 * score
                + 0.4 * (score - 5.0).max(0.0)
                + 0.7 * f64::from(drops)
                + 0.25 * f64::from(others).ln_1p()
                - 0.15 * f64::from(length),
        )
    }

    fn drop(made: &mut TestTables) -> Predictors {
        let dqs = Dqs::new((made.below(18) * 5) as u8).expect("a score");
        Predictors::new(
            dqs,
            2 + made.below(22) as u8,
            made.below(4) as u8,
            made.below(3) as u16 * 4,
        )
    }

    fn happens(made: &mut TestTables, share: f64) -> bool {
        (made.below(1 << 20) as f64) < share * f64::from(1 << 20)
    }

    /// Draws names of the market; a fifth of them was released last.
    fn market(made: &mut TestTables, names: usize) -> Vec<(Predictors, Counts)> {
        let mut all = std::collections::BTreeMap::<Predictors, Counts>::new();
        for at in 0..names {
            let drop = drop(made);
            let taken = happens(made, truth(drop)).into();
            let counts = all.entry(drop).or_default();
            let part = if at % 5 == 0 { &mut counts.last } else { &mut counts.earlier };
            part.add(Count { names: 1, taken });
        }
        all.into_iter().collect()
    }

    fn fit(counts: &[(Predictors, Counts)]) -> Option<Model> {
        let day = |text: &str| text.parse::<Day>().expect("a date");
        let period = (day("2025-01-01"), day("2025-12-31"));
        Model::fit(Completeness::Complete, period, day("2025-10-02"), counts)
    }

    #[test]
    fn intervals_hold_the_true_share_as_often_as_they_say() {
        let (mut inside, mut all, mut made) = (0, 0, TestTables::new(1));
        for _ in 0..60 {
            let model = fit(&market(&mut made, 3_000)).expect("enough names");
            for _ in 0..50 {
                let drop = drop(&mut made);
                let Expectation { share, low, high } = model.expects(drop);
                assert!(0.0 < low && low < share && share < high && high < 1.0);
                assert_eq!(share, model.share(drop));
                all += 1;
                inside += usize::from((low..=high).contains(&truth(drop)));
            }
        }
        let held = inside as f64 / f64::from(all);
        assert!((0.93..=0.97).contains(&held), "{held}");
    }

    #[test]
    fn the_test_compares_the_last_names_with_a_model_of_the_others() {
        let counts = market(&mut TestTables::new(2), 12_000);
        let test = fit(&counts).expect("enough names").test.expect("enough earlier ones");
        let before = counts.iter().map(|&(drop, Counts { earlier, .. })| {
            (drop, Counts { earlier, last: Count::default() })
        });
        let before = fit(&before.collect::<Vec<_>>()).expect("enough names");
        assert_eq!(before.test, None, "no name is left to test it");
        let mean = before.all.taken as f64 / before.all.names as f64;
        let (mut names, mut taken) = (Vec::new(), 0);
        for (drop, Counts { last, .. }) in &counts {
            for at in 0..last.names {
                names.push((before.share(*drop), drop.dqs.points(), at < last.taken));
            }
            taken += last.taken;
        }
        assert_eq!(test.of, Count { names: names.len() as u64, taken });
        let brier = |share: &dyn Fn(f64) -> f64| {
            let squares = names
                .iter()
                .map(|&(of, _, taken)| (share(of) - f64::from(u8::from(taken))).powi(2));
            squares.sum::<f64>() / names.len() as f64
        };
        assert!((test.brier - brier(&|of| of)).abs() < 1e-9);
        assert!((test.brier_of_mean - brier(&|_| mean)).abs() < 1e-9);
        assert!(test.brier < test.brier_of_mean);
        let order = |key: &dyn Fn(&(f64, u8, bool)) -> f64| {
            let side = |of: bool| names.iter().filter(move |name| name.2 == of).map(key);
            let (mut won, mut pairs) = (0.0, 0.0);
            for one in side(true) {
                for other in side(false) {
                    won += if one > other { 1.0 } else { f64::from(u8::from(one == other)) / 2.0 };
                    pairs += 1.0;
                }
            }
            won / pairs
        };
        let auc = test.auc.expect("enough names").value;
        assert!((auc - order(&|name| name.0)).abs() < 0.0006, "{auc}");
        let of_score = test.auc_of_score.expect("enough names").value;
        assert!((of_score - order(&|name| name.1.into())).abs() < 0.0006, "{of_score}");
        assert!(auc > of_score, "{auc} {of_score}");
    }

    #[test]
    fn a_suffix_with_few_names_on_a_side_has_no_model() {
        let counts = market(&mut TestTables::new(3), 3_000);
        assert!(fit(&counts).is_some());
        let with = |taken: fn(u64, u64) -> u64| {
            let of = |count: Count| Count { taken: taken(count.names, count.taken), ..count };
            let counts = counts.iter().map(|&(drop, Counts { earlier, last })| {
                (drop, Counts { earlier: of(earlier), last: of(last) })
            });
            fit(&counts.collect::<Vec<_>>())
        };
        assert_eq!(with(|_, _| 0), None);
        assert_eq!(with(|names, _| names), None);
        assert_eq!(fit(&market(&mut TestTables::new(4), NAMES_MIN as usize - 1)), None);
        assert_eq!(fit(&[]), None);
    }

    #[test]
    fn a_group_that_is_always_taken_still_has_an_expectation_below_one() {
        let mut counts = market(&mut TestTables::new(5), 4_000);
        for (drop, Counts { earlier, last }) in &mut counts {
            if drop.dqs.points() >= 60 {
                (earlier.taken, last.taken) = (earlier.names, last.names);
            }
        }
        let model = fit(&counts).expect("enough names");
        for (drop, _) in &counts {
            let Expectation { share, low, high } = model.expects(*drop);
            assert!(0.0 < low && low < share && share < high && high < 1.0, "{drop:?} {share}");
        }
    }
}
