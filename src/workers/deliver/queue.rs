//! Which delivery is sent next: what is pending in, what may go now out. Pure but for the instants
//! it is given.
//!
//! Deliveries wait in the order they are due, apart for each *target*: whom one slow answer would
//! hold up. A target takes a few at a time, and after a row of failures one at a time, with pauses
//! that grow (a circuit breaker). An account has a few under way, so that nobody's dead receivers
//! take the places of others. Targets take turns.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::vocab::ids::{AccountId, DeliveryId, RuleId};
use crate::vocab::time::UnixMs;

/// Under way at once in all: each is a socket and a little memory.
pub const AT_ONCE_MAX: usize = 256;
/// Of one account.
const OF_ACCOUNT_MAX: usize = 32;
/// To the host of a webhook: receivers are small.
const TO_HOST_MAX: usize = 2;
/// To the mail server and to Telegram, which are made for many.
const TO_SERVICE_MAX: usize = 8;
/// Failures in a row after which a target is tried one at a time.
const FAILURES_MAX: u32 = 5;
/// A pause is this at most.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Whom a slow answer holds up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Host and port of a webhook.
    Host(String),
    /// The operator's mail server.
    Mail,
    Telegram,
}

impl Target {
    fn at_once_max(&self) -> usize {
        match self {
            Target::Host(_) => TO_HOST_MAX,
            Target::Mail | Target::Telegram => TO_SERVICE_MAX,
        }
    }
}

/// Where a delivery is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub account: AccountId,
    pub rule: RuleId,
    pub id: DeliveryId,
}

/// What a try says of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers.
    Well,
    /// It does not, or not as it should.
    Ill,
    /// It asks to be left alone for so long.
    Busy(Duration),
}

#[derive(Default)]
struct Lane {
    waiting: BTreeSet<(UnixMs, Key)>,
    under_way: usize,
    failures: u32,
    paused_until: Option<Instant>,
}

/// Deliveries, those under way among them.
pub struct Queue {
    lanes: BTreeMap<Target, Lane>,
    under_way: HashMap<Key, Target>,
    of_account: HashMap<AccountId, usize>,
    /// The target that had the last turn.
    turn: Option<Target>,
    /// The first pause of a target.
    pause: Duration,
}

impl Queue {
    /// An empty one, whose pauses begin with `pause`.
    pub fn new(pause: Duration) -> Queue {
        let (lanes, under_way, of_account) = Default::default();
        Queue { lanes, under_way, of_account, turn: None, pause }
    }

    /// Takes over all that is pending: what it knew and is not there any more is forgotten, but for
    /// what is under way.
    pub fn replace(&mut self, pending: impl Iterator<Item = (Target, UnixMs, Key)>) {
        self.lanes.values_mut().for_each(|lane| lane.waiting.clear());
        for (target, due, key) in pending {
            self.put(target, due, key);
        }
        let ill = |lane: &Lane| lane.under_way > 0 || lane.failures > 0;
        self.lanes.retain(|_, lane| !lane.waiting.is_empty() || ill(lane));
    }

    /// Adds one, unless it is under way.
    pub fn put(&mut self, target: Target, due: UnixMs, key: Key) {
        if !self.under_way.contains_key(&key) {
            self.lanes.entry(target).or_default().waiting.insert((due, key));
        }
    }

    /// What may go now; it is under way from here on.
    pub fn take(&mut self, now: DateTime<Utc>, instant: Instant) -> Option<(Target, Key)> {
        if self.under_way.len() >= AT_ONCE_MAX {
            return None;
        }
        let now = UnixMs::from_instant(now);
        let full: HashSet<AccountId> = self
            .of_account
            .iter()
            .filter(|&(_, &count)| count >= OF_ACCOUNT_MAX)
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
        lane.under_way += 1;
        self.under_way.insert(key, target.clone());
        *self.of_account.entry(key.account).or_default() += 1;
        self.turn = Some(target.clone());
        Some((target, key))
    }

    /// One is under way no more. Says which target it was for.
    pub fn done(&mut self, key: Key, health: Health, instant: Instant) -> Option<Target> {
        let target = self.under_way.remove(&key)?;
        if let Some(count) = self.of_account.get_mut(&key.account) {
            *count -= 1;
            if *count == 0 {
                self.of_account.remove(&key.account);
            }
        }
        let pause = self.pause;
        let lane = self.lanes.entry(target.clone()).or_default();
        lane.under_way -= 1;
        lane.judge(health, pause, instant);
        if lane.waiting.is_empty() && lane.under_way == 0 && lane.failures == 0 {
            self.lanes.remove(&target);
        }
        Some(target)
    }

    /// How long nothing new can go after [`Queue::take`] gave nothing, unless something comes or is
    /// done; `None` for ever.
    pub fn idle(&self, now: DateTime<Utc>, instant: Instant) -> Option<Duration> {
        let waits = self.lanes.iter().filter(|(target, lane)| lane.has_place(target));
        let waits = waits.filter_map(|(_, lane)| {
            let &(due, _) = lane.waiting.first()?;
            let due = (due.instant() - now).to_std().unwrap_or_default();
            let pause = lane.paused_until.map(|until| until.saturating_duration_since(instant));
            Some(due.max(pause.unwrap_or_default()))
        });
        // What could go and does not waits for a place, which comes when something is done.
        waits.filter(|wait| !wait.is_zero()).min()
    }
}

impl Lane {
    /// The first that may go.
    fn first(
        &self,
        target: &Target,
        now: UnixMs,
        instant: Instant,
        full: &HashSet<AccountId>,
    ) -> Option<(UnixMs, Key)> {
        let paused = self.paused_until.is_some_and(|until| until > instant);
        if paused || !self.has_place(target) {
            return None;
        }
        let due = self.waiting.iter().take_while(|(due, _)| *due <= now);
        due.copied().find(|(_, key)| !full.contains(&key.account))
    }

    fn has_place(&self, target: &Target) -> bool {
        let ill = self.failures >= FAILURES_MAX;
        self.under_way < if ill { 1 } else { target.at_once_max() }
    }

    fn judge(&mut self, health: Health, pause: Duration, instant: Instant) {
        let asked = match health {
            Health::Well => {
                (self.failures, self.paused_until) = (0, None);
                return;
            }
            Health::Ill => Duration::ZERO,
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
        queue.done(first[0], Health::Well, instant);
        assert_eq!(queue.idle(at(0), instant), Some(Duration::from_secs(9)));
        let next = drain(&mut queue, at(9), instant);
        assert!(next.contains(&key(2, 5)), "{next:?}");
    }

    #[test]
    fn an_account_leaves_places_to_others() {
        let instant = Instant::now();
        let mut queue = Queue::new(Duration::from_secs(5));
        let pending = (0..200u8)
            .map(|at_| (host(&format!("a{at_}")), UnixMs::from_instant(at(0)), key(1, at_)));
        let pending: Vec<_> =
            pending.chain([(host("z"), UnixMs::from_instant(at(0)), key(2, 250))]).collect();
        queue.replace(pending.into_iter());
        let taken = drain(&mut queue, at(0), instant);
        assert_eq!(taken.len(), OF_ACCOUNT_MAX + 1);
        assert!(taken.contains(&key(2, 250)));
    }

    #[test]
    fn a_row_of_failures_makes_pauses_and_a_success_ends_them() {
        let instant = Instant::now();
        let many: Vec<_> = (0..40u8).map(|id| ("dead", 0, key(1, id))).collect();
        let mut queue = queue(&many);
        let after = |seconds: u64| instant + Duration::from_secs(seconds);
        for _ in 0..FAILURES_MAX {
            let (_, key) = queue.take(at(0), instant).expect("not yet ill");
            queue.done(key, Health::Ill, instant);
        }
        assert!(queue.take(at(0), after(4)).is_none(), "paused for 5 s");
        assert_eq!(queue.idle(at(0), instant), Some(Duration::from_secs(5)));
        let (_, single) = queue.take(at(0), after(5)).expect("one try");
        assert!(queue.take(at(0), after(5)).is_none(), "one at a time");
        queue.done(single, Health::Ill, after(5));
        assert!(queue.take(at(0), after(14)).is_none(), "now for 10 s");
        let (_, single) = queue.take(at(0), after(15)).expect("one try");
        queue.done(single, Health::Well, after(15));
        assert_eq!(drain(&mut queue, at(0), after(15)).len(), TO_HOST_MAX);
    }

    #[test]
    fn a_target_that_asks_for_it_is_left_alone() {
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
    fn what_is_under_way_is_not_sent_twice() {
        let instant = Instant::now();
        let mut queue = queue(&[("a", 0, key(1, 1))]);
        let (_, first) = queue.take(at(0), instant).expect("one");
        queue.replace([(host("a"), UnixMs::from_instant(at(0)), first)].into_iter());
        assert!(queue.take(at(0), instant).is_none());
        assert_eq!(queue.done(first, Health::Well, instant), Some(host("a")));
        assert_eq!(queue.done(first, Health::Well, instant), None);
        assert_eq!(queue.idle(at(0), instant), None);
        assert!(queue.lanes.is_empty());
    }
}
