//! Visits of the list of drops. Names from lists that came after the last visit are new.

use chrono::TimeDelta;

use crate::data::access::is_younger;
use crate::data::fields::row;
use crate::vocab::time::UnixMs;

/// Time without a request after which a visit has ended.
const VISIT_IDLE_MAX: TimeDelta = TimeDelta::minutes(30);

/// The current or last visit, and the lists whose names are not new in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    pub began: UnixMs,
    /// The newest batch when it began.
    pub batch: u64,
    /// When the visit before began, or when names were marked as seen, with the newest batch then. `None`
    /// in the first visit, in which no name is new.
    pub since: Option<(UnixMs, u64)>,
}

row!(Visit { 1 began, 2 batch } optional { 3 since });

impl Visit {
    /// Returns the visit that a request at `now` begins, with `batch` as the newest list; `None` if it
    /// belongs to `last`, whose last request was at `active`.
    pub fn next(
        last: Option<&Visit>,
        active: Option<UnixMs>,
        now: UnixMs,
        batch: u64,
    ) -> Option<Visit> {
        let Some(last) = last else { return Some(Visit { began: now, batch, since: None }) };
        let active = active.unwrap_or(last.began).max(last.began);
        let since = Some((last.began, last.batch));
        (!is_younger(active, VISIT_IDLE_MAX, now)).then_some(Visit { began: now, batch, since })
    }

    /// Returns the visit after its names of the lists up to `batch` were marked as seen.
    pub fn marked(self, now: UnixMs, batch: u64) -> Visit {
        let is_later = self.since.is_none_or(|(_, before)| before < batch);
        if is_later { Visit { since: Some((now, batch)), ..self } } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_ends_after_half_an_hour_without_a_request() {
        let at = |minutes: u64| UnixMs::new(minutes * 60_000).expect("in range");
        let first = Visit::next(None, None, at(100), 7).expect("the first one");
        assert_eq!(first, Visit { began: at(100), batch: 7, since: None });
        let next = |active: Option<u64>, now| Visit::next(Some(&first), active.map(at), at(now), 8);
        assert_eq!(next(None, 129), None, "after a restart, from its beginning on");
        assert_eq!(next(Some(120), 149), None);
        assert_eq!(next(Some(120), 90), None, "the clock was set back");
        let second = Visit { began: at(150), batch: 8, since: Some((at(100), 7)) };
        assert_eq!(next(Some(120), 150), Some(second));

        let marked = second.marked(at(151), 8);
        assert_eq!(marked, Visit { since: Some((at(151), 8)), ..second });
        assert_eq!(marked.marked(at(152), 7), marked, "an older page");
    }
}
