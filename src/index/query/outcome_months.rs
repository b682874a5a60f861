//! Outcomes by month of release (`data/docs/outcomes.md`): does the score still order names as it did?

use std::iter::repeat_n;

use chrono::{Datelike, Months};
use rustc_hash::FxHashMap;

use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::to_unicode;
use crate::vocab::outcome::{Auc, Completeness, Horizon, Share};

/// Number of scores, 0 to 100.
pub(super) const SCORES: usize = 101;
/// Months of releases that are counted: a year, and the year before it.
const MONTHS: usize = 2 * YEAR;
const YEAR: usize = 12;
/// The horizon of all months. Within a day, too few names of most suffixes are registered again for an AUC;
/// a month ends too late, since a month of releases counts only when the horizon of all of them is over.
pub const MONTHS_HORIZON: Horizon = Horizon::Week;
/// Months of a period, shortest first.
const SPANS: [usize; 4] = [1, 3, 6, YEAR];
/// Thousandths by which the AUC of a period is below that of the year before, if the score orders less well.
const FALL: f64 = 30.0;

/// The last months whose horizon is over.
pub(super) struct MonthWindow {
    /// First days of the months, and the day after the last.
    starts: Vec<Day>,
    /// Place of the month, by day from the first.
    months: Vec<u8>,
}

impl MonthWindow {
    pub fn new(as_of: Day) -> MonthWindow {
        let end = as_of.plus(1 - MONTHS_HORIZON.days()).date();
        let end = end.with_day(1).expect("a month has a first day");
        let start = |back| Day::from_date(end.checked_sub_months(Months::new(back))?);
        let starts: Vec<Day> = (0..=MONTHS as u32).rev().filter_map(start).collect();
        let days = |month: &[Day]| month[1].days_since(month[0]) as usize;
        let months = starts.windows(2).enumerate();
        let months = months.flat_map(|(at, month)| repeat_n(at as u8, days(month))).collect();
        MonthWindow { starts, months }
    }

    /// Returns the place of the month of a release.
    pub fn find(&self, release: Day) -> Option<u8> {
        let at = release.days_since(*self.starts.first()?);
        self.months.get(usize::try_from(at).ok()?).copied()
    }
}

/// Number of names, and of those that were registered again.
type Taken = (u64, u64);

/// TLD number, completeness, place of the month, and score.
type Key = (u16, Completeness, u8, u8);

/// Names with a known outcome.
#[derive(Default)]
pub(super) struct MonthTally(FxHashMap<Key, Taken>);

impl MonthTally {
    pub fn add(&mut self, tld: u16, shown: Completeness, month: u8, dqs: Dqs, is_taken: bool) {
        let (names, taken) = self.0.entry((tld, shown, month, dqs.points())).or_default();
        (*names, *taken) = (*names + 1, *taken + u64::from(is_taken));
    }

    pub fn merged(mut self, mut other: MonthTally) -> MonthTally {
        if self.0.len() < other.0.len() {
            std::mem::swap(&mut self, &mut other);
        }
        for (key, more) in other.0 {
            let all = self.0.entry(key).or_default();
            *all = (all.0 + more.0, all.1 + more.1);
        }
        self
    }

    /// Returns the history of each suffix, by TLD number and completeness.
    pub fn histories(self, window: &MonthWindow) -> FxHashMap<(u16, Completeness), OutcomeHistory> {
        let mut counts: Vec<_> = self.0.into_iter().collect();
        counts.sort_unstable_by_key(|(key, _)| *key);
        let suffix = |(key, _): &(Key, Taken)| (key.0, key.1);
        let suffixes = counts.chunk_by(|one, other| suffix(one) == suffix(other));
        let history = |counts: &[(Key, Taken)]| {
            let mut months = vec![[Taken::default(); SCORES]; window.starts.len() - 1];
            for &((.., month, score), count) in counts {
                months[usize::from(month)][usize::from(score)] = count;
            }
            (suffix(&counts[0]), OutcomeHistory::new(&window.starts, &months))
        };
        suffixes.map(history).collect()
    }
}

/// Names of a suffix that were released in a period, and how many of them were registered again.
#[derive(Clone, Debug, PartialEq)]
pub struct PeriodOutcome {
    /// First and last day of the releases.
    pub from: Day,
    pub to: Day,
    /// Names with a known outcome.
    pub names: u64,
    /// `None` without names.
    pub share: Option<Share>,
    /// How well the score orders them; `None` for too few.
    pub auc: Option<Auc>,
}

/// Outcomes of a suffix by period of release, as far as lists of one completeness show them.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeHistory {
    /// Months of a period: the fewest with an AUC, or 1 if not even a year has enough names.
    pub months: usize,
    /// Oldest first, from the first with names.
    pub periods: Vec<PeriodOutcome>,
    /// How well the score ordered the names of the year before the last period.
    pub year_before: Option<Auc>,
}

impl OutcomeHistory {
    /// Counts the periods of some months, of which `starts` has the first days and the end.
    fn new(starts: &[Day], months: &[[Taken; SCORES]]) -> OutcomeHistory {
        let last = |count: usize| &months[months.len().saturating_sub(count)..];
        let span = SPANS.into_iter().find(|&span| auc(last(span)).is_some());
        let before = span.and_then(|span| {
            let end = months.len().checked_sub(span)?;
            auc(&months[end.checked_sub(YEAR)?..end])
        });
        let span = span.unwrap_or(1);
        let period = |at: usize, months: &[[Taken; SCORES]]| {
            let (names, taken) = months.iter().flatten().fold((0, 0), joined);
            let (from, to) = (starts[at], starts[at + months.len()].plus(-1));
            PeriodOutcome { from, to, names, share: Share::of(taken, names), auc: auc(months) }
        };
        let periods = months.chunks(span).enumerate().map(|(at, of)| period(at * span, of));
        let periods = periods.skip_while(|period| period.names == 0).collect();
        OutcomeHistory { months: span, periods, year_before: before }
    }

    /// Returns how well the score orders the names of the last period.
    pub fn last(&self) -> Option<Auc> {
        self.periods.last()?.auc
    }

    /// Returns true if the score orders the names of the last period less well than those of the year before.
    pub fn has_fallen(&self) -> bool {
        let (Some(last), Some(before)) = (self.last(), self.year_before) else { return false };
        ((before.value - last.value) * 1_000.0).round() >= FALL && before.value > last.high
    }

    /// Says that the order has become worse.
    pub fn warning(&self, tld: &str) -> Option<String> {
        let (last, before) = (self.last()?, self.year_before?);
        self.has_fallen().then(|| {
            format!(
                "The score orders names of .{} less well than in the year before: {} against {}.",
                to_unicode(tld),
                hundredths(last.value),
                hundredths(before.value)
            )
        })
    }
}

/// Formats an AUC: `.71`.
pub fn hundredths(auc: f64) -> String {
    format!("{auc:.2}").trim_start_matches('0').to_owned()
}

fn joined(one: Taken, other: &Taken) -> Taken {
    (one.0 + other.0, one.1 + other.1)
}

/// Returns how well the score orders the names of some months.
fn auc(months: &[[Taken; SCORES]]) -> Option<Auc> {
    Auc::of((0..SCORES).map(|score| months.iter().map(|month| &month[score]).fold((0, 0), joined)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NU: u16 = 3;

    fn day(text: &str) -> Day {
        text.parse().expect("a date")
    }

    /// Counts, for each month, names of two scores with their numbers of registrations.
    fn history(months: impl Iterator<Item = [(u8, u64, u64); 2]>) -> OutcomeHistory {
        let window = MonthWindow::new(day("2026-03-07"));
        let mut tally = MonthTally::default();
        for (month, scores) in months.enumerate() {
            for (score, names, taken) in scores {
                let dqs = Dqs::new(score).expect("a score");
                for at in 0..names {
                    tally.add(NU, Completeness::Complete, month as u8, dqs, at < taken);
                }
            }
        }
        let mut histories = tally.histories(&window);
        histories.remove(&(NU, Completeness::Complete)).expect("a history")
    }

    #[test]
    fn a_month_counts_when_its_last_horizon_is_over() {
        let window = MonthWindow::new(day("2026-03-07"));
        assert_eq!(window.find(day("2026-02-28")), Some(23));
        assert_eq!(window.find(day("2026-02-01")), Some(23));
        assert_eq!(window.find(day("2026-01-31")), Some(22));
        assert_eq!(window.find(day("2024-03-01")), Some(0));
        assert_eq!(window.find(day("2026-03-01")), None);
        assert_eq!(window.find(day("2024-02-29")), None);
        let before = MonthWindow::new(day("2026-03-06"));
        assert_eq!(before.find(day("2026-02-01")), None);
        assert_eq!(before.find(day("2026-01-31")), Some(23));
        assert_eq!(MonthWindow::new(Day::MIN).find(Day::MIN), None);
    }

    #[test]
    fn small_months_are_counted_together() {
        // 400, 200, 100 and 30 of 1,000 names a month.
        for (taken, months, periods) in [(400, 1, 24), (200, 3, 8), (60, 6, 4), (30, 12, 2)] {
            let found = history((0..24).map(|_| [(20, 500, taken / 4), (40, 500, taken * 3 / 4)]));
            assert_eq!((found.months, found.periods.len()), (months, periods), "{taken}");
            let last = found.periods.last().expect("a period");
            assert_eq!((last.names, last.to), (1_000 * months as u64, day("2026-02-28")));
            assert_eq!(found.periods[0].from, day("2024-03-01"));
            assert!(found.last().is_some() && found.year_before.is_some());
            assert!(!found.has_fallen(), "{taken}");
        }
        let few = history((0..24).map(|_| [(20, 50, 1), (40, 50, 2)]));
        assert_eq!((few.months, few.periods.len(), few.last()), (1, 24, None));
    }

    #[test]
    fn periods_start_with_the_first_names() {
        let found = history((0..24).map(|month| {
            if month < 10 { [(20, 0, 0); 2] } else { [(20, 500, 100), (40, 500, 300)] }
        }));
        assert_eq!((found.months, found.periods.len()), (1, 14));
        assert_eq!(found.periods[0].from, day("2025-01-01"));
        assert!(found.year_before.is_some());
    }

    #[test]
    fn a_fall_outside_the_interval_is_reported() {
        let falls = |of: [(u8, u64, u64); 2]| {
            let before = [(20, 4_000, 800), (40, 4_000, 1_600)];
            history((0..24).map(move |month| if month == 23 { of } else { before }))
        };
        let found = falls([(20, 4_000, 1_150), (40, 4_000, 1_250)]);
        let (last, before) = (found.last().expect("a value"), found.year_before.expect("a value"));
        assert_eq!((last.value, before.value), (0.515, 0.619));
        assert!(found.has_fallen());
        assert_eq!(
            found.warning("nu").as_deref(),
            Some(
                "The score orders names of .nu less well than in the year before: .52 against .62."
            )
        );
        // Less than .03, and .03 or more of too few names.
        for of in [[(20, 4_000, 850), (40, 4_000, 1_550)], [(20, 400, 118), (40, 400, 182)]] {
            let found = falls(of);
            let (last, before) = (found.last(), found.year_before);
            assert!(last.is_some() && before.is_some(), "{found:?}");
            assert!(!found.has_fallen(), "{last:?} {before:?}");
            assert_eq!(found.warning("nu"), None);
        }
    }
}
