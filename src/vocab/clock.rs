//! The one clock of the process.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::vocab::day::Day;

/// Source of the time for all of dropdex, so that `--today` and tests can set it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Clock {
    pinned: Option<Day>,
}

impl Clock {
    /// The system's clock, in UTC.
    pub fn system() -> Clock {
        Clock { pinned: None }
    }

    /// A clock whose day is always `today`; the time of day follows the system clock.
    pub fn pinned_to(today: Day) -> Clock {
        Clock { pinned: Some(today) }
    }

    /// The day the clock is pinned to, if any.
    pub fn pinned(&self) -> Option<Day> {
        self.pinned
    }

    /// The current instant, UTC. A request reads it once and passes it on.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn now(&self) -> DateTime<Utc> {
        let now = Utc::now();
        match self.pinned {
            Some(day) => day.date().and_time(now.time()).and_utc(),
            None => now,
        }
    }

    /// The current UTC day. A system clock before 1985 or after 2164 reads as the nearest [`Day`].
    pub fn today(&self) -> Day {
        Day::nearest(self.now())
    }
}
