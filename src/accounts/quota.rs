//! A day's allowance: how many requests and exports an account has left until 00:00 UTC.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::vocab::day::Day;

/// At most this part of a day's allowance is lost in a crash: a hundredth (decisions.md §4).
const NOTE_PARTS: u32 = 100;

/// The answer to "may I?", with all that the rate-limit headers say. Made from one reading of the
/// clock, so that the parts agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Whether this one may go on; it has been counted then.
    pub granted: bool,
    /// How many the plan allows per UTC day.
    pub limit: u32,
    /// How many are left today, after this one.
    pub remaining: u32,
    /// When the next day's allowance begins: 00:00 UTC.
    pub resets_at: DateTime<Utc>,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Requests to the JSON API.
    Requests,
    /// CSV exports.
    Exports,
}

/// What an account used on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayUsage {
    /// The UTC day; `None` when it never used anything.
    pub day: Option<Day>,
    /// Requests granted on it.
    pub requests: u32,
    /// Exports granted on it.
    pub exports: u32,
}

/// The count of one account, shared by all its requests.
#[derive(Debug, Default)]
pub struct Usage(Mutex<Counts>); // Held for a comparison and an addition.

#[derive(Debug, Default)]
struct Counts {
    now: DayUsage,
    /// What the journal has of `now`.
    noted: DayUsage,
}

impl DayUsage {
    /// Takes over another count. They may come in any order: the latest day counts, and the most of
    /// it.
    pub fn merge(&mut self, other: DayUsage) {
        if self.day < other.day {
            *self = other;
        } else if self.day == other.day {
            self.requests = self.requests.max(other.requests);
            self.exports = self.exports.max(other.exports);
        }
    }

    fn counter(&mut self, counter: Counter) -> &mut u32 {
        match counter {
            Counter::Requests => &mut self.requests,
            Counter::Exports => &mut self.exports,
        }
    }
}

impl Usage {
    /// Counts one of `counter` on `day` if fewer than `limit` were granted on it.
    ///
    /// A day that is over does not come back: when the account was last seen on a later one, that one
    /// is charged. `note` is called with the count whenever a hundredth of `limit` has been granted
    /// since it last returned true: to write it down.
    pub fn charge(
        &self,
        counter: Counter,
        day: Day,
        limit: u32,
        note: impl FnOnce(DayUsage) -> bool,
    ) -> Allowance {
        let mut counts = self.lock();
        if counts.now.day < Some(day) {
            counts.now = DayUsage { day: Some(day), ..DayUsage::default() };
            counts.noted = counts.now;
        }
        let used = *counts.now.counter(counter);
        let granted = used < limit;
        if granted {
            *counts.now.counter(counter) = used + 1;
            let unnoted = used + 1 - *counts.noted.counter(counter);
            if unnoted >= (limit / NOTE_PARTS).max(1) && note(counts.now) {
                counts.noted = counts.now;
            }
        }
        let used = used + u32::from(granted);
        let day = counts.now.day.unwrap_or(day);
        Allowance {
            granted,
            limit,
            remaining: limit.saturating_sub(used),
            resets_at: day.plus(1).start(),
        }
    }

    /// What was used on the last day seen.
    pub fn now(&self) -> DayUsage {
        self.lock().now
    }

    /// What was used and has not been noted, if anything; counts as noted from now on.
    pub fn take_unnoted(&self) -> Option<DayUsage> {
        let mut counts = self.lock();
        let is_unnoted = counts.now != counts.noted;
        counts.noted = counts.now;
        is_unnoted.then_some(counts.now)
    }

    /// Takes over what the journal says.
    pub fn restore(&self, noted: DayUsage) {
        let mut counts = self.lock();
        counts.now.merge(noted);
        counts.noted = counts.now;
    }

    /// The counts. No code panics while it holds this lock.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    #[test]
    fn grants_the_limit_and_not_one_more() {
        let usage = Usage::default();
        let today = day("2026-11-21");
        for left in (0..3).rev() {
            let allowance = usage.charge(Counter::Requests, today, 3, |_| true);
            assert!(allowance.granted);
            assert_eq!(allowance.remaining, left);
            assert_eq!(allowance.resets_at.to_rfc3339(), "2026-11-22T00:00:00+00:00");
        }
        let refused = usage.charge(Counter::Requests, today, 3, |_| true);
        assert!(!refused.granted);
        assert_eq!(refused.remaining, 0);
        assert!(usage.charge(Counter::Exports, today, 1, |_| true).granted, "counted apart");
        assert!(!usage.charge(Counter::Exports, today, 0, |_| true).granted, "0 means none");
        assert!(usage.charge(Counter::Requests, today.plus(1), 3, |_| true).granted, "a new day");
    }

    #[test]
    fn a_day_that_is_over_stays_over() {
        let usage = Usage::default();
        let (first, second) = (day("2026-11-21"), day("2026-11-22"));
        assert!(usage.charge(Counter::Requests, second, 1, |_| true).granted);
        let back = usage.charge(Counter::Requests, first, 1, |_| true);
        assert!(!back.granted);
        assert_eq!(back.resets_at, second.plus(1).start());
    }

    #[test]
    fn is_noted_at_every_hundredth() {
        for (limit, every) in [(10_000, 100), (250, 2), (100, 1), (7, 1)] {
            let usage = Usage::default();
            let mut notes = Vec::new();
            for _ in 0..limit {
                usage.charge(Counter::Requests, day("2026-11-21"), limit, |now| {
                    notes.push(now.requests);
                    true
                });
            }
            let expected: Vec<u32> = (1..=limit).filter(|count| count % every == 0).collect();
            assert_eq!(notes, expected, "limit {limit}");
        }
    }

    #[test]
    fn a_note_that_failed_is_tried_with_the_next() {
        let usage = Usage::default();
        let today = day("2026-11-21");
        let mut tried = Vec::new();
        for count in 1..=4 {
            usage.charge(Counter::Requests, today, 200, |now| {
                tried.push(now.requests);
                count == 3
            });
        }
        assert_eq!(tried, [2, 3]);
        assert_eq!(usage.take_unnoted().map(|now| now.requests), Some(4));
        assert_eq!(usage.take_unnoted(), None);
    }

    #[test]
    fn notes_in_any_order_restore_the_most() {
        let usage = Usage::default();
        let noted = |day, requests, exports| DayUsage { day: Some(day), requests, exports };
        let (first, second) = (day("2026-11-21"), day("2026-11-22"));
        for note in [noted(second, 5, 1), noted(first, 9, 9), noted(second, 4, 2)] {
            usage.restore(note);
        }
        assert_eq!(usage.now(), noted(second, 5, 2));
        assert_eq!(usage.take_unnoted(), None, "the journal has it");
    }
}
