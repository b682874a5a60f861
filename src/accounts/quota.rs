//! Daily allowances of requests and exports, which reset at 00:00 UTC.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::vocab::day::Day;

/// Maximum part of the usage that a crash loses: a hundredth of a day's allowance
/// (`data/docs/durability.md`).
const NOTE_PARTS: u32 = 100;

/// The result of a charge, with the values of the rate-limit headers. All values are based on one
/// reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Whether the request was allowed and counted.
    pub granted: bool,
    /// Maximum per UTC day.
    pub limit: u32,
    /// Number left today, after this request.
    pub remaining: u32,
    /// The next 00:00 UTC.
    pub resets_at: DateTime<Utc>,
}

/// The two allowances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Requests to the JSON API.
    Requests,
    /// CSV exports.
    Exports,
}

/// Usage of an account on one UTC day. Stored as `Option<(day, requests, exports)>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<(Day, u32, u32)>", into = "Option<(Day, u32, u32)>")]
pub struct DayUsage {
    /// The latest day of use and its counts; `None` if nothing was ever used.
    pub day: Option<Day>,
    pub requests: u32,
    pub exports: u32,
}

impl From<Option<(Day, u32, u32)>> for DayUsage {
    fn from(stored: Option<(Day, u32, u32)>) -> DayUsage {
        stored.map_or_else(DayUsage::default, |(day, requests, exports)| DayUsage {
            day: Some(day),
            requests,
            exports,
        })
    }
}

impl From<DayUsage> for Option<(Day, u32, u32)> {
    fn from(DayUsage { day, requests, exports }: DayUsage) -> Option<(Day, u32, u32)> {
        day.map(|day| (day, requests, exports))
    }
}

/// The live count of one account, which its requests share.
#[derive(Debug, Default)]
pub struct Usage(Mutex<UsageCounts>); // Locked for a comparison and an addition.

#[derive(Debug, Default)]
struct UsageCounts {
    now: DayUsage,
    /// The part of `now` that is recorded. On a node of a cluster, the amount that all nodes have
    /// reserved.
    noted: DayUsage,
    /// Used by nodes of a cluster only.
    reserved: Reserved,
    /// Writes that were left in the minute after the last one; `None` before the first.
    writes_left: Option<u32>,
}

/// The part of a day's allowance that this node has reserved and not yet granted.
#[derive(Debug, Default)]
struct Reserved {
    requests: u32,
    exports: u32,
    /// Amount granted without a reservation, while the shared log was unreachable.
    owed_requests: u32,
    owed_exports: u32,
    /// Number of reservations under way.
    asked: u32,
}

impl Reserved {
    /// Returns the counts that are left and owed for a kind.
    fn counter(&mut self, counter: Counter) -> (&mut u32, &mut u32) {
        match counter {
            Counter::Requests => (&mut self.requests, &mut self.owed_requests),
            Counter::Exports => (&mut self.exports, &mut self.owed_exports),
        }
    }
}

impl DayUsage {
    /// Merges another count. Counts may arrive in any order: the latest day wins, and the highest
    /// count on that day. A day that a wrong clock set is replaced ([`Day::replaces`]).
    pub fn merge(&mut self, other: DayUsage) {
        if replaces(other.day, self.day) {
            *self = other;
        } else if self.day == other.day {
            self.requests = self.requests.max(other.requests);
            self.exports = self.exports.max(other.exports);
        }
    }

    /// Returns the count of a kind.
    pub fn counter(&mut self, counter: Counter) -> &mut u32 {
        match counter {
            Counter::Requests => &mut self.requests,
            Counter::Exports => &mut self.exports,
        }
    }
}

/// Returns true if a count of the day `other` replaces one of the day `counted`.
fn replaces(other: Option<Day>, counted: Option<Day>) -> bool {
    match (other, counted) {
        (Some(other), Some(counted)) => other.replaces(counted),
        (other, None) => other.is_some(),
        (None, Some(_)) => false,
    }
}

impl Usage {
    /// Charges `counter` on `day` if fewer than `limit` were granted on that day.
    ///
    /// If the account was already charged on one of the next two days, that day is charged. `note`
    /// records the count: it is called whenever a further hundredth of `limit` has been granted
    /// since its last call that returned true.
    pub fn charge(
        &self,
        counter: Counter,
        day: Day,
        limit: u32,
        note: impl FnOnce(DayUsage) -> bool,
    ) -> Allowance {
        let mut counts = self.lock();
        counts.begin(day);
        let used = *counts.now.counter(counter);
        let granted = used < limit;
        if granted {
            *counts.now.counter(counter) = used + 1;
            // What is given back may already be recorded.
            let unnoted = (used + 1).saturating_sub(*counts.noted.counter(counter));
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

    /// Notes how many writes of the minute are left after one.
    pub fn note_writes_left(&self, left: u32) {
        self.lock().writes_left = Some(left);
    }

    pub fn writes_left(&self) -> Option<u32> {
        self.lock().writes_left
    }

    /// Takes `number` grants of `day` back.
    pub fn give_back(&self, counter: Counter, day: Day, number: u32, is_node: bool) {
        let mut counts = self.lock();
        if counts.now.day != Some(day) {
            return;
        }
        if is_node {
            let (left, owed) = counts.reserved.counter(counter);
            let unpaid = number.min(*owed);
            *owed -= unpaid;
            *left += number - unpaid;
        } else {
            let used = counts.now.counter(counter);
            *used = used.saturating_sub(number);
        }
    }

    /// Returns the current allowance. `is_node` is true on a node of a cluster.
    pub fn left(&self, counter: Counter, day: Day, limit: u32, is_node: bool) -> Allowance {
        let mut counts = self.lock();
        counts.begin(day);
        if is_node {
            let left = counts.allowance(counter, limit, true);
            return Allowance { granted: left.remaining > 0, ..left };
        }
        let remaining = limit.saturating_sub(*counts.now.counter(counter));
        let day = counts.now.day.unwrap_or(day);
        Allowance { granted: remaining > 0, limit, remaining, resets_at: day.plus(1).start() }
    }

    /// On a node of a cluster, grants one from the amount that this node has reserved. Returns
    /// `None` if the caller should try a reservation.
    pub fn spend(&self, counter: Counter, day: Day, limit: u32) -> Option<Allowance> {
        let mut counts = self.lock();
        counts.begin(day);
        let total = *counts.noted.counter(counter);
        let is_asked = counts.reserved.asked > 0;
        let (left, owed) = counts.reserved.counter(counter);
        let granted = *left > 0;
        if !granted && (is_asked || total + *owed < limit) {
            return None;
        }
        *left -= u32::from(granted);
        Some(counts.allowance(counter, limit, granted))
    }

    /// Returns true, only once, if a reservation should begin because `few` or less are left.
    pub fn begins_soon(&self, counter: Counter, few: u32) -> bool {
        let mut counts = self.lock();
        let (left, _) = counts.reserved.counter(counter);
        let begins = *left == few && few > 0;
        begins && counts.reserved.asked == 0
    }

    /// On a node of a cluster that cannot reach the shared log, grants one that is reserved later.
    pub fn owe(&self, counter: Counter, day: Day, limit: u32) -> Allowance {
        let mut counts = self.lock();
        counts.begin(day);
        let total = *counts.noted.counter(counter);
        let (_, owed) = counts.reserved.counter(counter);
        let granted = total + *owed < limit;
        *owed += u32::from(granted);
        counts.allowance(counter, limit, granted)
    }

    /// Begins a reservation of up to `block` out of `limit`. Returns the resulting total of all
    /// nodes, and the amount added; `None` if `enough` are left on this node, or if none are left
    /// in total.
    pub fn begin_reservation(
        &self,
        counter: Counter,
        day: Day,
        (limit, block, enough): (u32, u32, u32),
    ) -> Option<(DayUsage, u32)> {
        let mut counts = self.lock();
        counts.begin(day);
        let mut total = counts.noted;
        let (left, owed) = counts.reserved.counter(counter);
        let free = limit.saturating_sub(*total.counter(counter));
        // Blocks get smaller when little of the allowance is left, so that little remains unused on
        // other nodes.
        let amount = (block.min((free / 8).max(1)) + *owed).min(free);
        if *left > enough || amount == 0 {
            return None;
        }
        *total.counter(counter) += amount;
        counts.reserved.asked += 1;
        Some((total, amount))
    }

    /// Ends a reservation. `got` is the amount added and its day, if the reservation succeeded.
    pub fn end_reservation(&self, counter: Counter, got: Option<(Option<Day>, u32)>) {
        let mut counts = self.lock();
        counts.reserved.asked -= 1;
        // Reservations for a past day are discarded.
        let Some((_, amount)) = got.filter(|(day, _)| *day == counts.now.day) else { return };
        let (left, owed) = counts.reserved.counter(counter);
        let paid = amount.min(*owed);
        *owed -= paid;
        *left += amount - paid;
    }

    /// Updates the amount that all nodes have reserved.
    pub fn learn(&self, noted: DayUsage) {
        let mut counts = self.lock();
        if let Some(day) = noted.day {
            counts.begin(day);
        }
        counts.noted.merge(noted);
    }

    /// Discards the usage on `day`, including the reservations of this node.
    pub fn reset(&self, day: Day) {
        self.lock().begin_again(day);
    }

    /// Returns the usage on the latest charged day.
    pub fn now(&self) -> DayUsage {
        self.lock().now
    }

    /// Returns the unrecorded usage, if any. It counts as recorded from now on.
    pub fn take_unnoted(&self) -> Option<DayUsage> {
        let mut counts = self.lock();
        let is_unnoted = counts.now != counts.noted;
        counts.noted = counts.now;
        is_unnoted.then_some(counts.now)
    }

    /// Restores usage from the journal.
    pub fn restore(&self, noted: DayUsage) {
        let mut counts = self.lock();
        counts.now.merge(noted);
        counts.noted = counts.now;
    }

    /// No code panics while it holds this lock.
    fn lock(&self) -> MutexGuard<'_, UsageCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UsageCounts {
    /// Begins a day, unless it is already over.
    fn begin(&mut self, day: Day) {
        if replaces(Some(day), self.now.day) {
            self.begin_again(day);
        }
    }

    /// Counts a day from 0.
    fn begin_again(&mut self, day: Day) {
        let now = DayUsage { day: Some(day), ..DayUsage::default() };
        let reserved = Reserved { asked: self.reserved.asked, ..Reserved::default() };
        *self = UsageCounts { now, noted: now, reserved, writes_left: self.writes_left };
    }

    /// Returns the allowance on a node of a cluster: the amount that other nodes have reserved
    /// counts as used.
    fn allowance(&mut self, counter: Counter, limit: u32, granted: bool) -> Allowance {
        let total = *self.noted.counter(counter);
        let (left, owed) = self.reserved.counter(counter);
        let used = total.saturating_sub(*left) + *owed;
        *self.now.counter(counter) = used;
        let day = self.now.day.unwrap_or(Day::MIN);
        let remaining = limit.saturating_sub(used);
        Allowance { granted, limit, remaining, resets_at: day.plus(1).start() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    #[test]
    fn what_is_given_back_is_granted_again() {
        let today = day("2026-11-21");
        let usage = Usage::default();
        for _ in 0..50 {
            assert!(usage.charge(Counter::Requests, today, 2, |_| true).granted);
            usage.give_back(Counter::Requests, today, 1, false);
        }
        assert!(usage.charge(Counter::Requests, today, 2, |_| true).granted);
        usage.give_back(Counter::Requests, today.plus(-1), 1, false);
        assert!(usage.charge(Counter::Requests, today, 2, |_| true).granted);
        assert!(!usage.charge(Counter::Requests, today, 2, |_| true).granted, "of another day");
        let usage = Usage::default();
        usage.begin_reservation(Counter::Requests, today, (100, 1, 0)).expect("free");
        usage.end_reservation(Counter::Requests, Some((Some(today), 1)));
        for _ in 0..5 {
            assert!(usage.spend(Counter::Requests, today, 100).is_some(), "the same reservation");
            usage.give_back(Counter::Requests, today, 1, true);
        }
    }

    #[test]
    fn grants_up_to_the_limit() {
        let usage = Usage::default();
        let today = day("2026-11-21");
        for left in (0..3).rev() {
            let before = usage.left(Counter::Requests, today, 3, false);
            assert_eq!((before.granted, before.remaining), (true, left + 1));
            let allowance = usage.charge(Counter::Requests, today, 3, |_| true);
            assert!(allowance.granted);
            assert_eq!(allowance.remaining, left);
            assert_eq!(allowance.resets_at.to_rfc3339(), "2026-11-22T00:00:00+00:00");
        }
        let refused = usage.charge(Counter::Requests, today, 3, |_| true);
        assert!(!refused.granted);
        assert_eq!(refused.remaining, 0);
        assert_eq!(usage.left(Counter::Requests, today, 3, false), refused);
        assert!(
            usage.charge(Counter::Exports, today, 1, |_| true).granted,
            "exports have their own limit"
        );
        assert!(!usage.charge(Counter::Exports, today, 0, |_| true).granted, "0 means none");
        assert!(usage.charge(Counter::Requests, today.plus(1), 3, |_| true).granted, "a new day");
    }

    #[test]
    fn an_earlier_day_is_not_reopened() {
        let usage = Usage::default();
        let (first, second) = (day("2026-11-21"), day("2026-11-22"));
        assert!(usage.charge(Counter::Requests, second, 1, |_| true).granted);
        let back = usage.charge(Counter::Requests, first, 1, |_| true);
        assert!(!back.granted);
        assert_eq!(back.resets_at, second.plus(1).start());
    }

    #[test]
    fn the_day_of_a_wrong_clock_is_replaced() {
        for ahead in [3, 400, 40_000] {
            let (usage, today) = (Usage::default(), day("2026-11-21"));
            assert!(usage.charge(Counter::Requests, today.plus(ahead), 1, |_| true).granted);
            let back = usage.charge(Counter::Requests, today, 1, |_| true);
            assert_eq!((back.granted, back.resets_at), (true, today.plus(1).start()));
            let noted = |day| DayUsage { day: Some(day), requests: 1, exports: 0 };
            let usage = Usage::default();
            usage.restore(noted(today.plus(ahead)));
            usage.learn(noted(today));
            assert_eq!(usage.now().day, Some(today));
        }
    }

    #[test]
    fn usage_is_recorded_at_every_hundredth() {
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
    fn a_failed_record_is_retried_with_the_next_charge() {
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
    fn records_in_any_order_restore_the_highest_count() {
        let usage = Usage::default();
        let noted = |day, requests, exports| DayUsage { day: Some(day), requests, exports };
        let (first, second) = (day("2026-11-21"), day("2026-11-22"));
        for note in [noted(second, 5, 1), noted(first, 9, 9), noted(second, 4, 2)] {
            usage.restore(note);
        }
        assert_eq!(usage.now(), noted(second, 5, 2));
        assert_eq!(usage.take_unnoted(), None, "restored usage counts as recorded");
    }

    #[test]
    fn a_node_grants_what_it_reserved() {
        let usage = Usage::default();
        let today = day("2026-11-21");
        let spend = |usage: &Usage| usage.spend(Counter::Requests, today, 100);
        let reserve = |usage: &Usage| {
            let begun = usage.begin_reservation(Counter::Requests, today, (100, 10, 0));
            let (total, amount) = begun?;
            // The reservation is applied on every node, through the shared log.
            usage.learn(total);
            usage.end_reservation(Counter::Requests, Some((total.day, amount)));
            Some((total.requests, amount))
        };
        assert_eq!(spend(&usage), None, "nothing is reserved");
        assert_eq!(reserve(&usage), Some((10, 10)));
        let granted = spend(&usage).expect("reserved");
        assert_eq!((granted.granted, granted.remaining), (true, 99));
        assert_eq!(reserve(&usage), None, "some are left");
        // Another node reserves most of the remaining allowance.
        usage.learn(DayUsage { day: Some(today), requests: 96, exports: 0 });
        let left = std::iter::from_fn(|| spend(&usage)).take(9).filter(|it| it.granted).count();
        assert_eq!((left, spend(&usage)), (9, None));
        assert_eq!(reserve(&usage), Some((97, 1)), "little near the end");
        assert!(spend(&usage).is_some_and(|it| it.granted && it.remaining == 3));
        usage.learn(DayUsage { day: Some(today), requests: 100, exports: 0 });
        assert!(spend(&usage).is_some_and(|it| !it.granted && it.remaining == 0));
        let tomorrow = today.plus(1);
        assert_eq!(usage.spend(Counter::Requests, tomorrow, 100), None, "a new day");
    }

    #[test]
    fn owed_usage_is_reserved_later() {
        let usage = Usage::default();
        let today = day("2026-11-21");
        for _ in 0..3 {
            assert!(usage.owe(Counter::Requests, today, 100).granted);
        }
        let begun = usage.begin_reservation(Counter::Requests, today, (100, 10, 0));
        let (total, amount) = begun.expect("begun");
        assert_eq!((total.requests, amount), (13, 13));
        // A failed reservation changes nothing.
        usage.end_reservation(Counter::Requests, None);
        let again = usage.begin_reservation(Counter::Requests, today, (100, 10, 0));
        assert_eq!(again, Some((total, amount)));
        usage.learn(total);
        usage.end_reservation(Counter::Requests, Some((total.day, amount)));
        let allowance = usage.spend(Counter::Requests, today, 100).expect("reserved");
        assert_eq!((allowance.granted, allowance.remaining), (true, 96));
        let most = usage.begin_reservation(Counter::Exports, today, (2, 1, 0));
        assert_eq!(most.map(|(total, amount)| (total.exports, amount)), Some((1, 1)));
    }
}
