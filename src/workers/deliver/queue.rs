//! Decides which delivery is sent next. Pure: times are arguments.
//!
//! Deliveries wait in the order they are due, in one lane per *target* (a webhook host, the mail server,
//! Telegram), so that a slow receiver delays only its own. A target gets a few deliveries at a time; after
//! several failures in a row it gets one at a time, with growing pauses (a circuit breaker). The number in
//! flight per account is limited, so that dead receivers of one account do not use up the capacity of
//! others. Targets take turns.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::time::UnixMs;

/// Maximum deliveries in flight. Each needs a socket and a little memory.
pub const IN_FLIGHT_MAX: usize = 256;
/// Maximum in flight for one account.
const ACCOUNT_IN_FLIGHT_MAX: usize = 32;
/// Maximum in flight to one webhook host: receivers are small.
const HOST_IN_FLIGHT_MAX: usize = 2;
/// Maximum in flight to the mail server and to Telegram each.
const SERVICE_IN_FLIGHT_MAX: usize = 8;
/// Failures in a row after which a target gets one delivery at a time.
const FAILURES_MAX: u32 = 5;
/// Maximum pause of a target.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// A receiver with limits and a circuit breaker of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Host and port of a webhook.
    Host(String),
    /// The operator's mail server.
    Mail,
    Telegram,
}

impl Target {
    fn in_flight_max(&self) -> usize {
        match self {
            Target::Host(_) => HOST_IN_FLIGHT_MAX,
            Target::Mail | Target::Telegram => SERVICE_IN_FLIGHT_MAX,
        }
    }
}

/// Identifies a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub account: AccountId,
    pub rule: RuleId,
    pub id: DeliveryId,
}

/// The health of a target after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Healthy,
    /// It did not respond, or responded with an error.
    Unhealthy,
    /// It asked for a pause of this length.
    Busy(Duration),
}

#[derive(Default)]
struct Lane {
    waiting: BTreeSet<(UnixMs, Key)>,
    in_flight: usize,
    failures: u32,
    paused_until: Option<Instant>,
}

/// Waiting deliveries and those in flight.
pub struct Queue {
    lanes: BTreeMap<Target, Lane>,
    in_flight: HashMap<Key, Target>,
    account_in_flight: HashMap<AccountId, usize>,
    /// The target of the last delivery taken.
    turn: Option<Target>,
    /// The first pause of a target.
    pause: Duration,
}

impl Queue {
    /// Creates an empty queue whose first pause of a target is `pause`.
    pub fn new(pause: Duration) -> Queue {
        let (lanes, in_flight, account_in_flight) = Default::default();
        Queue { lanes, in_flight, account_in_flight, turn: None, pause }
    }

    /// Replaces all waiting deliveries. Those in flight stay.
    pub fn replace(&mut self, pending: impl Iterator<Item = (Target, UnixMs, Key)>) {
        self.lanes.values_mut().for_each(|lane| lane.waiting.clear());
        for (target, due, key) in pending {
            self.put(target, due, key);
        }
        let is_active = |lane: &Lane| lane.in_flight > 0 || lane.failures > 0;
        self.lanes.retain(|_, lane| !lane.waiting.is_empty() || is_active(lane));
    }

    /// Adds a delivery unless it is in flight.
    pub fn put(&mut self, target: Target, due: UnixMs, key: Key) {
        if !self.in_flight.contains_key(&key) {
            self.lanes.entry(target).or_default().waiting.insert((due, key));
        }
    }

    /// Takes a delivery that may be sent now. It is in flight from here on.
    pub fn take(&mut self, now: DateTime<Utc>, instant: Instant) -> Option<(Target, Key)> {
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            return None;
        }
        let now = UnixMs::from_instant(now);
        let full: HashSet<AccountId> = self
            .account_in_flight
            .iter()
            .filter(|&(_, &count)| count >= ACCOUNT_IN_FLIGHT_MAX)
            .map(|(&account, _)| account)
            .collect();
        let next = |(target, lane): (&Target, &Lane)| {
            let key = lane.first(target, now, instant, &full)?;
            Some((target.clone(), key))
        };
        let found = match &self.turn {
            Some(turn) => {
                use std::ops::Bound::{Excluded, Unbounded};
                let after = self.lanes.range((Excluded(turn.clone()), Unbounded));
                after.chain(self.lanes.range(..=turn.clone())).find_map(next)
            }
            None => self.lanes.iter().find_map(next),
        };
        let (target, (due, key)) = found?;
        let lane = self.lanes.get_mut(&target)?;
        lane.waiting.remove(&(due, key));
        lane.in_flight += 1;
        self.in_flight.insert(key, target.clone());
        *self.account_in_flight.entry(key.account).or_default() += 1;
        self.turn = Some(target.clone());
        Some((target, key))
    }

    /// Ends the flight of a delivery and returns its target.
    pub fn done(&mut self, key: Key, health: Health, instant: Instant) -> Option<Target> {
        let target = self.in_flight.remove(&key)?;
        if let Some(count) = self.account_in_flight.get_mut(&key.account) {
            *count -= 1;
            if *count == 0 {
                self.account_in_flight.remove(&key.account);
            }
        }
        let pause = self.pause;
        let lane = self.lanes.entry(target.clone()).or_default();
        lane.in_flight -= 1;
        lane.judge(health, pause, instant);
        if lane.waiting.is_empty() && lane.in_flight == 0 && lane.failures == 0 {
            self.lanes.remove(&target);
        }
        Some(target)
    }

    /// The time until [`Queue::take`] may return another delivery after it returned `None`; `None` if only
    /// a new or finished delivery can change that.
    pub fn idle(&self, now: DateTime<Utc>, instant: Instant) -> Option<Duration> {
        let waits = self.lanes.iter().filter(|(target, lane)| lane.has_capacity(target));
        let waits = waits.filter_map(|(_, lane)| {
            let &(due, _) = lane.waiting.first()?;
            let due = (due.instant() - now).to_std().unwrap_or_default();
            let pause = lane.paused_until.map(|until| until.saturating_duration_since(instant));
            Some(due.max(pause.unwrap_or_default()))
        });
        // A delivery that is due but not taken waits for another one to finish.
        waits.filter(|wait| !wait.is_zero()).min()
    }
}

impl Lane {
    /// The first delivery that may be sent.
    fn first(
        &self,
        target: &Target,
        now: UnixMs,
        instant: Instant,
        full: &HashSet<AccountId>,
    ) -> Option<(UnixMs, Key)> {
        let paused = self.paused_until.is_some_and(|until| until > instant);
        if paused || !self.has_capacity(target) {
            return None;
        }
        let due = self.waiting.iter().take_while(|(due, _)| *due <= now);
        due.copied().find(|(_, key)| !full.contains(&key.account))
    }

    fn has_capacity(&self, target: &Target) -> bool {
        let is_broken = self.failures >= FAILURES_MAX;
        self.in_flight < if is_broken { 1 } else { target.in_flight_max() }
    }

    fn judge(&mut self, health: Health, pause: Duration, instant: Instant) {
        let asked = match health {
            Health::Healthy => {
                (self.failures, self.paused_until) = (0, None);
                return;
            }
            Health::Unhealthy => Duration::ZERO,
            Health::Busy(asked) => asked,
        };
        self.failures = self.failures.saturating_add(1);
        let breaks = self.failures.checked_sub(FAILURES_MAX);
        let pause = breaks.map(|breaks| pause.saturating_mul(1 << breaks.min(16)));
        let pause = pause.unwrap_or_default().max(asked).min(PAUSE_MAX);
        self.paused_until = Some(instant + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(account: u64, id: u8) -> Key {
        Key {
            account: AccountId(account),
            rule: RuleId::new(1).expect("an id"),
            id: DeliveryId::new([id; 16]),
        }
    }

    fn host(name: &str) -> Target {
        Target::Host(name.to_owned())
    }

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_000_000 + second, 0).expect("a time")
    }

    fn queue(pending: &[(&str, i64, Key)]) -> Queue {
        let mut queue = Queue::new(Duration::from_secs(5));
        let pending = pending.iter();
        queue.replace(
            pending.map(|&(name, due, key)| (host(name), UnixMs::from_instant(at(due)), key)),
        );
        queue
    }

    fn drain(queue: &mut Queue, now: DateTime<Utc>, instant: Instant) -> Vec<Key> {
        std::iter::from_fn(|| queue.take(now, instant)).map(|(_, key)| key).collect()
    }

    #[test]
    fn targets_take_turns_and_two_at_a_time() {
        let instant = Instant::now();
        let mut queue = queue(&[
            ("slow", 0, key(1, 1)),
            ("slow", 0, key(1, 2)),
            ("slow", 0, key(1, 3)),
            ("other", 0, key(2, 4)),
            ("later", 9, key(2, 5)),
        ]);
        let first = drain(&mut queue, at(0), instant);
        assert_eq!(first.len(), 3);
        assert!(first.contains(&key(2, 4)), "{first:?}");
        assert!(queue.take(at(0), instant).is_none());
        queue.done(first[0], Health::Healthy, instant);
        assert_eq!(queue.idle(at(0), instant), Some(Duration::from_secs(9)));
        let next = drain(&mut queue, at(9), instant);
        assert!(next.contains(&key(2, 5)), "{next:?}");
    }

    #[test]
    fn one_account_does_not_use_up_the_capacity() {
        let instant = Instant::now();
        let mut queue = Queue::new(Duration::from_secs(5));
        let pending = (0..200u8)
            .map(|at_| (host(&format!("a{at_}")), UnixMs::from_instant(at(0)), key(1, at_)));
        let pending: Vec<_> =
            pending.chain([(host("z"), UnixMs::from_instant(at(0)), key(2, 250))]).collect();
        queue.replace(pending.into_iter());
        let taken = drain(&mut queue, at(0), instant);
        assert_eq!(taken.len(), ACCOUNT_IN_FLIGHT_MAX + 1);
        assert!(taken.contains(&key(2, 250)));
    }

    #[test]
    fn repeated_failures_pause_a_target_until_a_success() {
        let instant = Instant::now();
        let many: Vec<_> = (0..40u8).map(|id| ("dead", 0, key(1, id))).collect();
        let mut queue = queue(&many);
        let after = |seconds: u64| instant + Duration::from_secs(seconds);
        for _ in 0..FAILURES_MAX {
            let (_, key) = queue.take(at(0), instant).expect("not broken yet");
            queue.done(key, Health::Unhealthy, instant);
        }
        assert!(queue.take(at(0), after(4)).is_none(), "paused for 5 s");
        assert_eq!(queue.idle(at(0), instant), Some(Duration::from_secs(5)));
        let (_, single) = queue.take(at(0), after(5)).expect("one try");
        assert!(queue.take(at(0), after(5)).is_none(), "one at a time");
        queue.done(single, Health::Unhealthy, after(5));
        assert!(queue.take(at(0), after(14)).is_none(), "now for 10 s");
        let (_, single) = queue.take(at(0), after(15)).expect("one try");
        queue.done(single, Health::Healthy, after(15));
        assert_eq!(drain(&mut queue, at(0), after(15)).len(), HOST_IN_FLIGHT_MAX);
    }

    #[test]
    fn a_busy_target_is_paused() {
        let instant = Instant::now();
        let mut queue =
            queue(&[("busy", 0, key(1, 1)), ("busy", 0, key(1, 2)), ("ok", 0, key(1, 3))]);
        let (_, first) = queue.take(at(0), instant).expect("one");
        queue.done(first, Health::Busy(Duration::from_secs(3)), instant);
        let left = drain(&mut queue, at(0), instant);
        assert!(left.len() <= 2, "{left:?}");
        let target = host("busy");
        let paused = queue.lanes.get(&target).and_then(|lane| lane.paused_until);
        if left.iter().all(|key| *key == self::key(1, 3)) {
            assert_eq!(paused, Some(instant + Duration::from_secs(3)));
        }
    }

    #[test]
    fn deliveries_in_flight_are_not_sent_twice() {
        let instant = Instant::now();
        let mut queue = queue(&[("a", 0, key(1, 1))]);
        let (_, first) = queue.take(at(0), instant).expect("one");
        queue.replace([(host("a"), UnixMs::from_instant(at(0)), first)].into_iter());
        assert!(queue.take(at(0), instant).is_none());
        assert_eq!(queue.done(first, Health::Healthy, instant), Some(host("a")));
        assert_eq!(queue.done(first, Health::Healthy, instant), None);
        assert_eq!(queue.idle(at(0), instant), None);
        assert!(queue.lanes.is_empty());
    }
}
