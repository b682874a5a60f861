//! Charges requests and exports, and records the counts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Caller, Store, metrics};
use crate::error::WriteError;
use crate::event::Event;
use crate::journal::AppendError;
use crate::quota::{Allowance, Counter, DayUsage};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;

/// Part of a day's allowance that a node of a cluster reserves at a time.
const BLOCK_PARTS: u32 = 100;
/// Maximum attempts to reserve while other nodes also reserve.
const ATTEMPTS_MAX: u64 = 10;
/// Prefix of the lock key of an allowance. An allowance has its own lock, besides that of the
/// account.
const ALLOWANCE: &str = "allowance";

fn block(limit: u32) -> u32 {
    (limit / BLOCK_PARTS).max(1)
}

impl Store {
    /// Charges one JSON request at `now`, if the day's allowance has one left.
    pub fn charge_request(&self, caller: &Caller, now: DateTime<Utc>) -> Allowance {
        self.charge(Counter::Requests, caller, self.allowed(Counter::Requests, caller), now)
    }

    /// Charges one export at `now`, if the day's allowance has one left.
    pub fn charge_export(&self, caller: &Caller, now: DateTime<Utc>) -> Allowance {
        self.charge(Counter::Exports, caller, self.allowed(Counter::Exports, caller), now)
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

    /// Charges one at `now` if that needs no waiting. A node of a cluster may first have to reserve
    /// a part of the day's allowance.
    pub fn try_charge(
        &self,
        counter: Counter,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Option<Allowance> {
        let limit = self.allowed(counter, caller);
        if self.0.shared.log.is_none() {
            return Some(self.charge(counter, caller, limit, now));
        }
        let allowance = caller.usage.spend(counter, self.day(now), limit)?;
        metrics::count_usage(caller.plan, counter, allowance.granted);
        if caller.usage.begins_soon(counter, block(limit) / 2)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (store, caller) = (self.clone(), caller.clone());
            // If this fails, the next request without an allowance reports the error.
            runtime.spawn(async move {
                let _ = store.reserve(counter, &caller, now, block(limit) / 2).await;
            });
        }
        Some(allowance)
    }

    /// Takes back charges of the day `now`.
    pub fn give_back(&self, counter: Counter, caller: &Caller, number: u32, now: DateTime<Utc>) {
        caller.usage.give_back(counter, self.day(now), number, self.0.shared.log.is_some());
    }

    /// Returns the day's allowance at `now`, without a charge.
    pub fn allowance(&self, counter: Counter, caller: &Caller, now: DateTime<Utc>) -> Allowance {
        let (limit, is_node) = (self.allowed(counter, caller), self.0.shared.log.is_some());
        caller.usage.left(counter, self.day(now), limit, is_node)
    }

    /// Charges one at `now`. Waits while this node of a cluster reserves a part of the day's
    /// allowance; if the shared log cannot be reached, the part is reserved later.
    pub async fn charge_waiting(
        &self,
        counter: Counter,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Allowance {
        loop {
            if let Some(allowance) = self.try_charge(counter, caller, now) {
                return allowance;
            }
            let (store, asking) = (self.clone(), caller.clone());
            // The reservation completes even if the client of this request disconnects.
            let reserved =
                tokio::spawn(async move { store.reserve(counter, &asking, now, 0).await }).await;
            let is_unreachable = !matches!(
                reserved,
                Ok(Ok(()) | Err(WriteError::Journal(AppendError::Superseded | AppendError::Busy)))
            );
            if is_unreachable {
                let limit = self.allowed(counter, caller);
                let allowance = caller.usage.owe(counter, self.day(now), limit);
                metrics::count_usage(caller.plan, counter, allowance.granted);
                return allowance;
            }
        }
    }

    /// Reserves a block of the day's allowance for this node, unless more than `enough` are left.
    async fn reserve(
        &self,
        counter: Counter,
        caller: &Caller,
        now: DateTime<Utc>,
        enough: u32,
    ) -> Result<(), WriteError> {
        let limit = self.allowed(counter, caller);
        let mut attempt = 1;
        loop {
            let key = (ALLOWANCE, caller.account);
            let lock = self.0.locks.lock(&key, &self.0.shared).await?;
            let wanted = (limit, block(limit), enough);
            let begun = caller.usage.begin_reservation(counter, self.day(now), wanted);
            let Some((total, amount)) = begun else { return Ok(()) };
            let note = usage_noted(caller.account, total).into_iter().collect();
            let reserved = self.append(note, Some(lock)).await;
            let got = reserved.is_ok().then_some((total.day, amount));
            caller.usage.end_reservation(counter, got);
            match reserved {
                Err(WriteError::Journal(AppendError::Superseded | AppendError::Busy))
                    if attempt < ATTEMPTS_MAX =>
                {
                    let pause = Duration::from_millis(fastrand::u64(1..=10 * attempt));
                    tokio::time::sleep(pause).await;
                    attempt += 1;
                }
                reserved => return reserved,
            }
        }
    }

    fn allowed(&self, counter: Counter, caller: &Caller) -> u32 {
        let limits = self.limits(caller);
        match counter {
            Counter::Requests => limits.requests_per_day,
            Counter::Exports => limits.exports_per_day,
        }
    }

    /// Returns the UTC day that counts at `now`. That is the day of the clock, unless this day is
    /// one or two days before the latest recorded one: setting the clock back does not reopen a
    /// day. While the clock is not trusted, the recorded day counts.
    pub(crate) fn day(&self, now: DateTime<Utc>) -> Day {
        let day = Day::nearest(now);
        // The day may be about to be recorded.
        let noted = Day::from_raw(self.0.last_day.load(Ordering::Relaxed));
        let Some(recorded) = self.state().last_day.max(noted) else {
            if self.0.clock.stores() {
                self.note_day(Event::DayBegan { day, corrects: false }, day);
            }
            return day;
        };
        if recorded == day || !day.replaces(recorded) || !self.0.clock.stores() {
            return recorded;
        }
        if day > recorded {
            self.note_day(Event::DayBegan { day, corrects: false }, day);
        } else if !self.0.clock.corrects() {
            return recorded;
        } else if self.note_day(Event::DayBegan { day, corrects: true }, day) {
            tracing::warn!(
                clock.day = %day, latest.day = %recorded,
                "the latest day recorded was that of a wrong clock; allowances are those of today again"
            );
        }
        day
    }

    /// Records a day, unless it is already being recorded. If recording fails, the next request
    /// records it, or the next record of usage carries the day.
    fn note_day(&self, event: Event, day: Day) -> bool {
        let last = &self.0.last_day;
        let is_new = last.swap(day.raw(), Ordering::Relaxed) != day.raw();
        if is_new && self.note(event).is_err() {
            last.store(0, Ordering::Relaxed);
        }
        is_new
    }

    /// Records all usage that is not recorded yet.
    pub(super) fn note_all_usage(&self) -> Result<(), AppendError> {
        // Nodes of a cluster reserve before they grant.
        if self.0.shared.log.is_some() {
            return Ok(());
        }
        let accounts = self.state().accounts.clone();
        for account in accounts.values() {
            // A day that a wrong clock shows is not recorded.
            let is_over = |used: &DayUsage| used.day <= self.state().last_day;
            let unnoted = account.usage.take_unnoted().filter(is_over);
            let note = unnoted.and_then(|used| usage_noted(account.id, used));
            if let Some(note) = note {
                self.note_when_free(&note)?;
            }
        }
        Ok(())
    }

    /// Appends an event, waiting while the queue is full. Closing the journal syncs all of these
    /// events at once.
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
    Some(Event::UsageNoted { account, day: day?, requests, exports, reset: false })
}
