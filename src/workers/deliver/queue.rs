//! Decides which delivery is sent next. Pure: times are arguments.
//!
//! The deliveries of an account to a *target* (the host of a webhook or chat service, the mail server, Telegram) wait
//! in a lane, in the order in which they are due. Accounts take turns, and within an account its lanes take turns.
//! Lanes and targets each have a small limit of deliveries in flight. After several failures in a row the limit is
//! one, with growing pauses (a circuit breaker). An error response or a requested pause affects only the lane, so
//! that no account can delay another's deliveries to the same host. Only failed connections affect the target.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::time::UnixMs;

/// Maximum deliveries in flight. Each needs a socket and a little memory.
pub const IN_FLIGHT_MAX: usize = 256;
/// Maximum deliveries in flight for one account.
const ACCOUNT_IN_FLIGHT_MAX: usize = 32;
/// Maximum deliveries in flight from one account to one webhook host; receivers are often small
/// servers.
const LANE_IN_FLIGHT_MAX: usize = 2;
/// Maximum deliveries in flight to one target.
const TARGET_IN_FLIGHT_MAX: usize = 8;
/// Failures in a row after which a lane or a target gets one delivery at a time.
const FAILURES_MAX: u32 = 5;
/// Maximum pause of a lane or target.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// A receiver that has its own limits and circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Host and port of a webhook or chat service.
    Host(String),
    /// The operator's mail server.
    Mail,
    Telegram,
}

impl Target {
    /// Maximum deliveries in flight from one account.
    fn lane_in_flight_max(&self) -> usize {
        match self {
            Target::Host(_) => LANE_IN_FLIGHT_MAX,
            Target::Mail | Target::Telegram => TARGET_IN_FLIGHT_MAX,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Host(host) => host,
            Target::Mail => "mail",
            Target::Telegram => "telegram",
        })
    }
}

/// Identifies a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub account: AccountId,
    pub rule: RuleId,
    pub id: DeliveryId,
}

/// The health of a receiver after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Healthy,
    /// No connection could be made.
    Down,
    /// The receiver did not respond in time, or responded with an error.
    Unhealthy,
    /// The receiver requested a pause of this length.
    Busy(Duration),
}

/// A circuit breaker.
#[derive(Default)]
struct Breaker {
    in_flight: usize,
    /// Failures in a row.
    failures: u32,
    paused_until: Option<Instant>,
}

/// The deliveries of one account to one target.
#[derive(Default)]
struct Lane {
    waiting: BTreeSet<(UnixMs, Key)>,
    breaker: Breaker,
}

/// The deliveries of one account.
#[derive(Default)]
struct Sender {
    lanes: BTreeMap<Target, Lane>,
    in_flight: usize,
    /// The target that had the last turn.
    turn: Option<Target>,
}

/// Number of waiting deliveries and of those in flight.
pub struct Queue {
    senders: BTreeMap<AccountId, Sender>,
    /// Circuit breakers of targets, shared by all accounts.
    targets: HashMap<Target, Breaker>,
    in_flight: HashMap<Key, Target>,
    /// The account that had the last turn.
    turn: Option<AccountId>,
    /// The first pause after failures.
    pause: Duration,
}

impl Queue {
    /// Creates an empty queue whose first pause after failures is `pause`.
    pub fn new(pause: Duration) -> Queue {
        let (senders, targets, in_flight) = Default::default();
        Queue { senders, targets, in_flight, turn: None, pause }
    }

    /// Replaces all waiting deliveries. Those in flight stay.
    pub fn replace(&mut self, pending: impl Iterator<Item = (Target, UnixMs, Key)>) {
        let lanes = self.senders.values_mut().flat_map(|sender| sender.lanes.values_mut());
        lanes.for_each(|lane| lane.waiting.clear());
        for (target, due, key) in pending {
            self.put(target, due, key);
        }
        self.senders.retain(|_, sender| {
            sender.lanes.retain(|_, lane| !lane.is_idle());
            !sender.lanes.is_empty()
        });
        let lanes = self.senders.values().flat_map(|sender| sender.lanes.keys());
        let used: BTreeSet<_> = lanes.collect();
        self.targets.retain(|target, breaker| used.contains(target) || !breaker.is_idle());
    }

    /// Adds a delivery unless it is in flight.
    pub fn put(&mut self, target: Target, due: UnixMs, key: Key) {
        if !self.in_flight.contains_key(&key) {
            if !self.targets.contains_key(&target) {
                self.targets.insert(target.clone(), Breaker::default());
            }
            let sender = self.senders.entry(key.account).or_default();
            sender.lanes.entry(target).or_default().waiting.insert((due, key));
        }
    }

    /// Takes a delivery that may be sent now. The delivery is in flight from then on.
    pub fn take(&mut self, now: DateTime<Utc>, instant: Instant) -> Option<(Target, Key)> {
        let is_open = |target: &Breaker| target.is_open(TARGET_IN_FLIGHT_MAX, instant);
        if self.in_flight.len() >= IN_FLIGHT_MAX || !self.targets.values().any(is_open) {
            return None;
        }
        let now = UnixMs::from_instant(now);
        let is_open = |target: &Target| self.targets.get(target).is_some_and(is_open);
        let (due, key, target) = in_turn(&self.senders, self.turn.as_ref())
            .find_map(|(_, sender)| sender.next(is_open, now, instant))?;
        let sender = self.senders.get_mut(&key.account)?;
        let lane = sender.lanes.get_mut(&target)?;
        lane.waiting.remove(&(due, key));
        lane.breaker.in_flight += 1;
        sender.in_flight += 1;
        sender.turn = Some(target.clone());
        self.targets.get_mut(&target)?.in_flight += 1;
        self.in_flight.insert(key, target.clone());
        self.turn = Some(key.account);
        Some((target, key))
    }

    /// Removes a delivery from those in flight and returns its target.
    pub fn done(&mut self, key: Key, health: Health, instant: Instant) -> Option<Target> {
        let target = self.in_flight.remove(&key)?;
        let sender = self.senders.entry(key.account).or_default();
        sender.in_flight = sender.in_flight.saturating_sub(1);
        let lane = sender.lanes.entry(target.clone()).or_default();
        let shared = self.targets.entry(target.clone()).or_default();
        // A target that accepts connections is up, regardless of its response.
        let (own, common) = match health {
            Health::Down => (None, Health::Down),
            other => (Some(other), Health::Healthy),
        };
        lane.breaker.end(own, self.pause, instant);
        shared.end(Some(common), self.pause, instant);
        if lane.is_idle() {
            sender.lanes.remove(&target);
        }
        if sender.lanes.is_empty() {
            self.senders.remove(&key.account);
        }
        Some(target)
    }

    /// The time until [`Queue::take`] may return another delivery after it returned `None`; `None` if only
    /// a new or finished delivery can change that.
    pub fn idle(&self, now: DateTime<Utc>, instant: Instant) -> Option<Duration> {
        let lanes = self.senders.values().flat_map(|sender| &sender.lanes);
        let waits = lanes.filter_map(|(target, lane)| {
            let shared = self.targets.get(target)?;
            let has_capacity = lane.breaker.has_capacity(target.lane_in_flight_max())
                && shared.has_capacity(TARGET_IN_FLIGHT_MAX);
            let &(due, _) = lane.waiting.first().filter(|_| has_capacity)?;
            let due = (due.instant() - now).to_std().unwrap_or_default();
            Some(due.max(lane.breaker.pause(instant)).max(shared.pause(instant)))
        });
        // A due delivery that was not taken waits for another one to finish.
        waits.filter(|wait| !wait.is_zero()).min()
    }
}

impl Sender {
    /// The first delivery that may be sent.
    fn next(
        &self,
        is_open: impl Fn(&Target) -> bool,
        now: UnixMs,
        instant: Instant,
    ) -> Option<(UnixMs, Key, Target)> {
        if self.in_flight >= ACCOUNT_IN_FLIGHT_MAX {
            return None;
        }
        in_turn(&self.lanes, self.turn.as_ref()).find_map(|(target, lane)| {
            let &(due, key) = lane.waiting.first().filter(|(due, _)| *due <= now)?;
            let may_be_sent =
                lane.breaker.is_open(target.lane_in_flight_max(), instant) && is_open(target);
            may_be_sent.then(|| (due, key, target.clone()))
        })
    }
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.breaker.is_idle()
    }
}

impl Breaker {
    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.failures == 0
    }

    fn is_open(&self, in_flight_max: usize, instant: Instant) -> bool {
        self.has_capacity(in_flight_max) && self.pause(instant).is_zero()
    }

    fn has_capacity(&self, in_flight_max: usize) -> bool {
        let is_broken = self.failures >= FAILURES_MAX;
        self.in_flight < if is_broken { 1 } else { in_flight_max }
    }

    /// The remaining time of its pause.
    fn pause(&self, instant: Instant) -> Duration {
        self.paused_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(instant))
    }

    /// Ends a delivery in flight. `None` leaves the health of the receiver unchanged. `first` is
    /// the first pause. A pause that the receiver requests is clamped to between one and two times
    /// our own.
    fn end(&mut self, health: Option<Health>, first: Duration, instant: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let asked = match health {
            None => return,
            Some(Health::Healthy) => {
                (self.failures, self.paused_until) = (0, None);
                return;
            }
            Some(Health::Down | Health::Unhealthy) => None,
            Some(Health::Busy(asked)) => Some(asked),
        };
        self.failures = self.failures.saturating_add(1);
        let breaks = self.failures.checked_sub(FAILURES_MAX);
        let step = first.saturating_mul(1 << breaks.unwrap_or_default().min(16)).min(PAUSE_MAX);
        let pause = match asked {
            Some(asked) => asked.clamp(step, 2 * step),
            None if breaks.is_some() => step,
            None => Duration::ZERO,
        };
        self.paused_until = Some(instant + pause.min(PAUSE_MAX));
    }
}

/// Iterates once over all entries of a map in a circle, starting after `turn`.
fn in_turn<'a, K: Ord, V>(
    map: &'a BTreeMap<K, V>,
    turn: Option<&'a K>,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    let after = turn.map_or(Unbounded, Excluded);
    map.range::<K, _>((after, Unbounded))
        .chain(turn.into_iter().flat_map(|turn| map.range(..=turn)))
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
        assert_eq!(drain(&mut queue, at(0), after(15)).len(), LANE_IN_FLIGHT_MAX);
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
        let lane = queue.senders.get(&AccountId(1)).and_then(|sender| sender.lanes.get(&target));
        let paused = lane.and_then(|lane| lane.breaker.paused_until);
        if left.iter().all(|key| *key == self::key(1, 3)) {
            assert_eq!(paused, Some(instant + Duration::from_secs(5)), "our own first pause");
        }
    }

    #[test]
    fn a_busy_response_delays_only_the_account_that_got_it() {
        let instant = Instant::now();
        let day = Duration::from_secs(86_400);
        let after = |seconds: u64| instant + Duration::from_secs(seconds);
        let mut queue =
            queue(&[("hooks", 0, key(1, 1)), ("hooks", 0, key(1, 2)), ("hooks", 0, key(2, 3))]);
        let (_, busy) = queue.take(at(0), instant).expect("one");
        assert_eq!(busy.account, AccountId(1));
        queue.done(busy, Health::Busy(day), instant);
        for id in 4..20 {
            queue.put(host("hooks"), UnixMs::from_instant(at(0)), key(2, id));
        }
        let mut sent = 0;
        while let Some((_, key)) = queue.take(at(0), instant) {
            assert_eq!(key.account, AccountId(2), "the other one is paused");
            queue.done(key, Health::Healthy, instant);
            sent += 1;
        }
        assert!(sent >= 16, "{sent}");
        assert!(queue.take(at(0), after(9)).is_none(), "a day is held to twice our own pause");
        assert_eq!(queue.take(at(0), after(10)).map(|(_, key)| key.account), Some(AccountId(1)));
    }

    #[test]
    fn error_responses_break_a_lane_and_failed_connections_break_a_host() {
        let instant = Instant::now();
        for (health, is_other_delayed) in [(Health::Unhealthy, false), (Health::Down, true)] {
            let many: Vec<_> = (0..20u8).map(|id| ("hooks", 0, key(1, id))).collect();
            let mut queue = queue(&many);
            for _ in 0..FAILURES_MAX {
                let (_, key) = queue.take(at(0), instant).expect("not broken yet");
                queue.done(key, health, instant);
            }
            queue.put(host("hooks"), UnixMs::from_instant(at(0)), key(2, 99));
            let next = queue.take(at(0), instant).map(|(_, key)| key.account);
            assert_eq!(next, (!is_other_delayed).then_some(AccountId(2)), "{health:?}");
        }
    }

    #[test]
    fn accounts_take_turns_whatever_the_number_of_their_hosts() {
        let instant = Instant::now();
        let mut queue = Queue::new(Duration::from_secs(5));
        for id in 0..200u8 {
            queue.put(host(&format!("a{id}")), UnixMs::from_instant(at(0)), key(1, id));
        }
        for id in 0..20u8 {
            queue.put(host("z"), UnixMs::from_instant(at(0)), key(2, id));
        }
        let mut accounts = Vec::new();
        for _ in 0..20 {
            let (_, key) = queue.take(at(0), instant).expect("one");
            queue.done(key, Health::Healthy, instant);
            accounts.push(key.account.0);
        }
        assert_eq!(accounts, [1, 2].repeat(10));
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
        assert!(queue.senders.is_empty());
        queue.replace(std::iter::empty());
        assert!(queue.targets.is_empty());
    }
}
