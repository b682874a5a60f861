//! The retry schedule: decides whether and when a delivery is sent again, from its ID, its attempts and its
//! error. Pure.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::accounts::{AttemptOutcome, Problem, StatusClass};
use crate::outbound::{Failure, SendError};
use crate::vocab::ids::DeliveryId;
use crate::vocab::time::UnixMs;

/// Jitter of a retry in percent of its delay, so that failed deliveries are not all retried at the
/// same time.
const JITTER_PERCENT: u64 = 20;

/// Times of the attempts, counted from the first one.
#[derive(Clone, Debug)]
pub struct Schedule(Vec<Duration>);

impl Schedule {
    /// Creates a schedule of one or more times, in ascending order.
    pub fn new(times: Vec<Duration>) -> Schedule {
        Schedule(times)
    }

    /// The shortest delay above zero, the unit of short pauses.
    pub fn shortest(&self) -> Duration {
        let waits = self.0.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        waits.filter(|wait| !wait.is_zero()).min().unwrap_or(Duration::from_secs(1))
    }

    /// Returns the outcome of attempt number `attempts` of a delivery.
    pub fn settle(
        &self,
        id: DeliveryId,
        attempts: u16,
        result: &Result<(), SendError>,
        now: DateTime<Utc>,
    ) -> AttemptOutcome {
        let Err(err) = result else { return AttemptOutcome::Delivered };
        let problem = problem(err.failure);
        match self.wait(id, attempts, err.retry_after) {
            _ if err.failure == Failure::Gone => AttemptOutcome::SwitchOff { problem },
            Some(wait) if !err.failure.is_permanent() => {
                let wait = TimeDelta::from_std(wait).unwrap_or(TimeDelta::MAX);
                let next = now.checked_add_signed(wait).unwrap_or(DateTime::<Utc>::MAX_UTC);
                AttemptOutcome::Retry { next_at: UnixMs::from_instant(next), problem }
            }
            _ => AttemptOutcome::Failed { problem },
        }
    }

    /// The delay after attempt number `attempts`; `None` after the last one. The receiver's `retry_after`
    /// is honoured within one to two times the scheduled delay.
    fn wait(
        &self,
        id: DeliveryId,
        attempts: u16,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        let at = usize::from(attempts.max(1));
        let base = self.0.get(at)?.saturating_sub(self.0[at - 1]);
        let base = jittered(base, id, attempts);
        Some(retry_after.map_or(base, |asked| asked.clamp(base, base.saturating_mul(2))))
    }
}

/// Varies `wait` by up to [`JITTER_PERCENT`] in either direction. The amount is always the same for
/// a given attempt.
fn jittered(wait: Duration, id: DeliveryId, attempts: u16) -> Duration {
    let mut hasher = blake3::Hasher::new();
    hasher.update(id.bytes()).update(&attempts.to_le_bytes());
    let mut random = [0; 8];
    hasher.finalize_xof().fill(&mut random);
    let span = 2 * JITTER_PERCENT * 100;
    let parts = 100 * (100 - JITTER_PERCENT) + u64::from_le_bytes(random) % (span + 1);
    let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(ms.saturating_mul(parts) / 10_000)
}

/// The problem shown to the owner.
fn problem(failure: Failure) -> Problem {
    match failure {
        Failure::Refused => Problem::Refused,
        Failure::Timeout => Problem::Timeout,
        Failure::Unreachable => Problem::Unreachable,
        Failure::Tls => Problem::Tls,
        Failure::Status(status) => Problem::Status(StatusClass::from_status(status)),
        Failure::Gone => Problem::Gone,
        Failure::Rejected => Problem::Rejected,
        Failure::NotConfigured => Problem::NotConfigured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::settings::RETRY_SECONDS_DEFAULT;

    fn schedule() -> Schedule {
        let seconds = RETRY_SECONDS_DEFAULT.iter();
        Schedule::new(seconds.map(|&s| Duration::from_secs(s.into())).collect())
    }

    fn failed(failure: Failure, retry_after: Option<u64>) -> Result<(), SendError> {
        let retry_after = retry_after.map(Duration::from_secs);
        Err(SendError { retry_after, ..SendError::new(failure, "") })
    }

    fn now() -> DateTime<Utc> {
        "2026-03-15T12:00:00Z".parse().expect("a time")
    }

    fn wait_s(attempts: u16, result: &Result<(), SendError>, id: u8) -> Option<f64> {
        match schedule().settle(DeliveryId::new([id; 16]), attempts, result, now()) {
            AttemptOutcome::Retry { next_at, .. } => {
                Some((next_at.instant() - now()).num_milliseconds() as f64 / 1000.0)
            }
            _ => None,
        }
    }

    #[test]
    fn retries_spread_over_a_day_before_a_delivery_fails() {
        let down = failed(Failure::Unreachable, None);
        for id in 0..50 {
            let mut total = 0.0;
            for attempts in 1..10u16 {
                let base = RETRY_SECONDS_DEFAULT[usize::from(attempts)]
                    - RETRY_SECONDS_DEFAULT[usize::from(attempts) - 1];
                let wait = wait_s(attempts, &down, id).expect("another try");
                let part = wait / f64::from(base);
                assert!((0.79..=1.21).contains(&part), "{attempts}: {wait} of {base}");
                assert_eq!(wait_s(attempts, &down, id), Some(wait), "deterministic");
                total += wait;
            }
            assert!((69_000.0..=104_000.0).contains(&total), "{total}");
            let last = schedule().settle(DeliveryId::new([id; 16]), 10, &down, now());
            assert_eq!(last, AttemptOutcome::Failed { problem: Problem::Unreachable });
        }
        let waits: std::collections::BTreeSet<_> =
            (0..50).map(|id| wait_s(2, &down, id).map(|wait| wait as u64)).collect();
        assert!(waits.len() > 25, "retries are spread: {waits:?}");
    }

    #[test]
    fn retry_after_is_honoured_between_one_and_two_times_the_delay() {
        let base = wait_s(3, &failed(Failure::Status(429), None), 1).expect("another try");
        for (asked, wait) in [
            (0, base),
            (1, base),
            (base as u64 + 60, f64::from(base as u32 + 60)),
            (10 * base as u64, 2.0 * base),
        ] {
            let got =
                wait_s(3, &failed(Failure::Status(429), Some(asked)), 1).expect("another try");
            assert!((got - wait).abs() < 1.0, "asked {asked}: {got}, not {wait}");
        }
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        let settle = |failure| {
            schedule().settle(DeliveryId::new([1; 16]), 1, &failed(failure, Some(5)), now())
        };
        assert_eq!(settle(Failure::Gone), AttemptOutcome::SwitchOff { problem: Problem::Gone });
        assert_eq!(
            settle(Failure::Rejected),
            AttemptOutcome::Failed { problem: Problem::Rejected }
        );
        for failure in [
            Failure::Refused,
            Failure::Timeout,
            Failure::Tls,
            Failure::Status(301),
            Failure::Status(404),
            Failure::Status(500),
            Failure::NotConfigured,
        ] {
            assert!(matches!(settle(failure), AttemptOutcome::Retry { .. }), "{failure:?}");
        }
        let taken = schedule().settle(DeliveryId::new([1; 16]), 1, &Ok(()), now());
        assert_eq!(taken, AttemptOutcome::Delivered);
    }

    #[test]
    fn a_schedule_of_one_attempt_fails_at_once() {
        let one = Schedule::new(vec![Duration::ZERO]);
        let got = one.settle(DeliveryId::new([1; 16]), 1, &failed(Failure::Tls, None), now());
        assert_eq!(got, AttemptOutcome::Failed { problem: Problem::Tls });
    }
}
