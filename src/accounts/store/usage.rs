//! Charging requests and exports, and recording the counts.

use std::sync::atomic::Ordering;

use chrono::{DateTime, Utc};

use super::{Caller, Store, metrics};
use crate::accounts::event::Event;
use crate::accounts::quota::{Allowance, Counter, DayUsage};
use crate::journal::AppendError;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;

impl Store {
    /// Charges one JSON request at `now`, if the day's allowance has one left.
    pub fn charge_request(&self, caller: &Caller, now: DateTime<Utc>) -> Allowance {
        self.charge(Counter::Requests, caller, self.limits(caller).requests_per_day, now)
    }

    /// Charges one export at `now`, if the day's allowance has one left.
    pub fn charge_export(&self, caller: &Caller, now: DateTime<Utc>) -> Allowance {
        self.charge(Counter::Exports, caller, self.limits(caller).exports_per_day, now)
    }

    fn charge(
        &self,
        counter: Counter,
        caller: &Caller,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Allowance {
        let day = self.day(now);
        let allowance = caller.usage.charge(counter, day, limit, |used| {
            let note = usage_noted(caller.account, used);
            note.is_some_and(|note| self.note(note).is_ok())
        });
        metrics::count_usage(caller.plan, counter, allowance.granted);
        allowance
    }

    /// The UTC day of `now`, or the latest day seen if that is later: setting the clock back does
    /// not reopen a day.
    pub(in crate::accounts) fn day(&self, now: DateTime<Utc>) -> Day {
        let day = Day::nearest(now);
        let last = &self.0.last_day;
        if last.load(Ordering::Relaxed) == day.raw() {
            return day;
        }
        let before = last.fetch_max(day.raw(), Ordering::Relaxed);
        if before < day.raw() {
            // If this fails, the next record of usage carries the day.
            let _ = self.note(Event::DayBegan { day });
            return day;
        }
        let later = Day::from_raw(before).unwrap_or(day);
        if later != day && !self.0.warned_of_clock.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                clock.day = %day, latest.day = %later,
                "the clock is behind the latest day seen; allowances stay those of that day"
            );
        }
        later
    }

    /// Records all usage that is not recorded yet.
    pub(super) fn note_all_usage(&self) -> Result<(), AppendError> {
        let accounts = self.state().accounts.clone();
        for account in accounts.values() {
            let unnoted = account.usage.take_unnoted();
            let note = unnoted.and_then(|used| usage_noted(account.id, used));
            if let Some(note) = note {
                self.note_when_free(&note)?;
            }
        }
        Ok(())
    }

    /// Appends an event, waiting while the queue is full. The close syncs all of them at once.
    fn note_when_free(&self, note: &Event) -> Result<(), AppendError> {
        loop {
            match self.note(note.clone()) {
                Err(AppendError::Busy) => std::thread::yield_now(),
                other => return other,
            }
        }
    }
}

fn usage_noted(account: AccountId, used: DayUsage) -> Option<Event> {
    let DayUsage { day, requests, exports } = used;
    Some(Event::UsageNoted { account, day: day?, requests, exports })
}
