//! The clock of the process.

mod trust;

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::day::Day;
use trust::{Trust, TrustChange};

/// The origin of monotonic times.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Source of the time for all of dropdex, so that `--today` and tests can set it. Copies share one
/// clock.
///
/// The system's clock counts only while it can be trusted: see [`Clock::is_trusted`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(from = "ClockMessage", into = "ClockMessage")]
pub struct Clock {
    pinned: Option<Day>,
    /// Offset from the system's clock, for a clock received from another process.
    ahead_ms: i64,
    trust: Option<&'static Mutex<Trust>>,
}

/// The settings of a clock, for another process of this machine.
#[derive(Serialize, Deserialize)]
struct ClockMessage {
    pinned: Option<Day>,
    #[serde(default)]
    ahead_ms: i64,
}

impl From<Clock> for ClockMessage {
    fn from(clock: Clock) -> ClockMessage {
        let ahead = match clock.pinned {
            Some(_) => TimeDelta::zero(),
            None => clock.now() - system_now(),
        };
        // The two clocks are read one directly after the other.
        let ahead_ms = Some(ahead.num_milliseconds()).filter(|it| it.abs() > 1_000);
        ClockMessage { pinned: clock.pinned, ahead_ms: ahead_ms.unwrap_or(0) }
    }
}

impl From<ClockMessage> for Clock {
    fn from(ClockMessage { pinned, ahead_ms }: ClockMessage) -> Clock {
        Clock { pinned, ahead_ms, trust: None }
    }
}

impl Clock {
    /// Returns the system's clock, in UTC. The clock is not trusted before [`Clock::start`].
    pub fn system() -> Clock {
        // A process has one such clock, which lives as long as the settings.
        let trust = Box::leak(Box::default());
        Clock { trust: Some(trust), ..Clock::default() }
    }

    /// Returns a clock whose day is always `today`; the time of day follows the system clock. It is
    /// always trusted.
    pub fn pinned_to(today: Day) -> Clock {
        Clock { pinned: Some(today), ..Clock::default() }
    }

    /// Returns the day to which the clock is pinned, if any.
    pub fn pinned(&self) -> Option<Day> {
        self.pinned
    }

    /// Returns the current instant, UTC. A request reads the clock once and passes the time on.
    /// While the system's clock is not trusted, the time continues from the last trusted reading,
    /// or from the newest record.
    pub fn now(&self) -> DateTime<Utc> {
        let wall = system_now();
        match (self.pinned, self.trust()) {
            (Some(day), _) => day.date().and_time(wall.time()).and_utc(),
            (None, None) => wall + TimeDelta::milliseconds(self.ahead_ms),
            (None, Some(mut trust)) => {
                let (now, turn) = trust.read(wall.timestamp_millis(), monotonic_ms());
                drop(trust);
                if turn.is_none() && now == wall.timestamp_millis() {
                    return wall;
                }
                let now = DateTime::from_timestamp_millis(now).unwrap_or(wall);
                report(turn, wall, now);
                now
            }
        }
    }

    /// Returns true if the system's clock shows a time before this program was built, so that the
    /// current day is unknown.
    pub fn is_unset(&self) -> bool {
        self.pinned.is_none() && system_now().timestamp_millis() < trust::BUILT
    }

    /// Returns the current UTC day. A system clock before 1985 or after 2164 reads as the nearest
    /// [`Day`].
    pub fn today(&self) -> Day {
        Day::nearest(self.now())
    }

    /// Compares the system's clock with the time of the newest record, once that is known; `None`
    /// means that no record exists.
    pub fn start(&self, newest: Option<DateTime<Utc>>) {
        let Some(mut trust) = self.trust() else { return };
        let newest = newest.map(|it| it.timestamp_millis());
        trust.start(newest, system_now().timestamp_millis(), monotonic_ms());
        if trust.is_trusted() {
            return;
        }
        drop(trust);
        report(Some(TrustChange::Distrusted), system_now(), self.now());
    }

    /// Notes the time of the newest list, before [`Clock::start`].
    pub fn saw(&self, time: Option<DateTime<Utc>>) {
        if let (Some(mut trust), Some(time)) = (self.trust(), time) {
            trust.saw(time.timestamp_millis());
        }
    }

    /// Notes the time of another node of the cluster whose clock is trusted.
    pub fn hear(&self, node: &str, time: DateTime<Utc>) {
        if let Some(mut trust) = self.trust() {
            trust.hear(node, time.timestamp_millis(), monotonic_ms());
        }
    }

    /// Returns true if the system's clock is trusted: it is neither before the build of the
    /// program, nor far from the newest record or from the clocks of most nodes.
    pub fn is_trusted(&self) -> bool {
        self.now();
        self.trust().is_none_or(|trust| trust.is_trusted())
    }

    /// Keeps a node of a cluster from storing a day before its peers can have sent their time.
    pub fn await_others(&self) {
        if let Some(mut trust) = self.trust() {
            trust.await_votes(monotonic_ms());
        }
    }

    /// Returns true if the day may be stored: the clock is trusted, and other nodes have had time
    /// to send theirs.
    pub fn stores(&self) -> bool {
        self.is_trusted() && self.trust().is_none_or(|trust| trust.stores(monotonic_ms()))
    }

    /// Returns true if stored days that are far ahead may be corrected, because they came from a
    /// wrong clock. False in the first seconds of a clock that is behind the newest record.
    pub fn corrects(&self) -> bool {
        self.is_trusted() && self.trust().is_none_or(|trust| trust.corrects(monotonic_ms()))
    }

    fn trust(&self) -> Option<MutexGuard<'static, Trust>> {
        self.trust.map(|trust| trust.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn system_now() -> DateTime<Utc> {
    Utc::now()
}

fn monotonic_ms() -> i64 {
    i64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(i64::MAX)
}

fn report(turn: Option<TrustChange>, system: DateTime<Utc>, used: DateTime<Utc>) {
    match turn {
        None => {}
        Some(TrustChange::Trusted) => {
            tracing::info!(time = %system, "the system clock is trusted again")
        }
        Some(TrustChange::Distrusted) => tracing::error!(
            system = %system, used = %used,
            "the system clock is wrong, or newer than all records by more than a month: its day is not stored; set it \
             (`timedatectl`), or wait ten minutes if it is right"
        ),
    }
}
