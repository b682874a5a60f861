//! Rate limit, concurrency limit and pauses of one RDAP server. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use super::sample::SHARE;
use crate::vocab::ids::AccountId;

/// Failures in a row after which a server counts as down.
const FAILURES_MAX: u32 = 5;
/// First pause of a server that is down, or that requests a pause without a length. It doubles each
/// time.
const PAUSE_FIRST: Duration = Duration::from_secs(60);
/// Maximum pause.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// Limits for each server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Queries per second, 1 or more.
    pub per_second: u32,
    /// Queries in flight, 1 or more.
    pub concurrency: u32,
}

/// Result of a query, as it affects the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The server responded, with any content.
    Answered,
    /// The server requested a pause, with this length if it gave one.
    NotNow(Option<Duration>),
    /// The server failed or was unreachable.
    Failed,
}

/// The state of one server.
#[derive(Debug)]
pub struct Server {
    limits: Limits,
    in_flight: u32,
    /// Time from which the rate limit allows the next query.
    next_at: Instant,
    /// Time from which the next query of the random sample may be sent.
    sample_at: Instant,
    paused_until: Option<Instant>,
    /// Failures in a row.
    failures: u32,
    /// Number of consecutive requests for a pause, without a response in between.
    refusals: u32,
    /// The account that had the last turn.
    pub turn: Option<AccountId>,
}

impl Server {
    /// Creates the state of a server that was never queried.
    pub fn new(limits: Limits, now: Instant) -> Server {
        Server {
            limits,
            in_flight: 0,
            next_at: now,
            sample_at: now,
            paused_until: None,
            failures: 0,
            refusals: 0,
            turn: None,
        }
    }

    /// The time from which the next query may be sent; `None` while too many are in flight.
    ///
    /// A server that was down first gets only one of the queries that wait for it.
    pub fn ready_at(&self) -> Option<Instant> {
        let trial = self.failures >= FAILURES_MAX || self.refusals > 0;
        let at_once = if trial { 1 } else { self.limits.concurrency };
        let at = self.paused_until.map_or(self.next_at, |until| until.max(self.next_at));
        (self.in_flight < at_once).then_some(at)
    }

    /// Records that a query is sent now.
    ///
    /// Queries are evenly spaced, without bursts: an interval never has more queries than the rate
    /// allows, plus two for its ends and a late timer.
    pub fn begin(&mut self, now: Instant) {
        let spacing = Duration::from_secs(1) / self.limits.per_second;
        let earliest = now.checked_sub(spacing).unwrap_or(now);
        self.next_at = self.next_at.max(earliest) + spacing;
        self.in_flight += 1;
    }

    /// The time from which the next query of the random sample may be sent.
    pub fn sample_ready_at(&self) -> Option<Instant> {
        self.ready_at().map(|at| at.max(self.sample_at))
    }

    /// Charges a query that is sent now to the share of the random sample.
    pub fn charge_sample(&mut self, now: Instant) {
        let spacing = Duration::from_secs(1) * SHARE / self.limits.per_second;
        self.sample_at = self.sample_at.max(now) + spacing;
    }

    /// Records the end of a query and returns the pause that it causes.
    pub fn end(&mut self, ended: Ended, now: Instant) -> Option<Duration> {
        self.in_flight -= 1;
        let pause = match ended {
            Ended::Answered => {
                (self.failures, self.refusals) = (0, 0);
                return None;
            }
            Ended::NotNow(wait) => {
                self.refusals += 1;
                wait.unwrap_or_else(|| pause_after(self.refusals))
            }
            Ended::Failed => {
                self.failures += 1;
                let beyond = self.failures.checked_sub(FAILURES_MAX - 1).filter(|&it| it > 0)?;
                pause_after(beyond)
            }
        };
        let until = now + pause;
        self.paused_until = self.paused_until.max(Some(until));
        Some(pause)
    }

    /// Whether the state can be dropped, because it equals that of a new server except for the
    /// turn.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.in_flight == 0
            && self.next_at.max(self.sample_at) <= now
            && self.paused_until.is_none_or(|until| until <= now)
            && self.failures == 0
            && self.refusals == 0
    }
}

/// Returns the pause after `nth` (at least 1) failures in a row.
pub fn pause_after(nth: u32) -> Duration {
    let doublings = nth.saturating_sub(1).min(16);
    (PAUSE_FIRST * (1 << doublings)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { per_second: 10, concurrency: 2 };

    fn after(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Simulates ten seconds in which queries are sent as soon as permitted, responses arrive after
    /// `took_ms`, and the loop runs late. Returns the time at which each query was sent.
    fn run(limits: Limits, took_ms: u64, late_ms: impl Fn(u64) -> u64) -> Vec<u64> {
        let start = Instant::now();
        let mut server = Server::new(limits, start);
        let (mut left, mut ends) = (Vec::new(), Vec::new());
        let mut at_ms = 0;
        while at_ms < 10_000 {
            let now = start + after(at_ms);
            ends.retain(|&end| {
                let ended = end <= at_ms;
                if ended {
                    server.end(Ended::Answered, now);
                }
                !ended
            });
            while server.ready_at().is_some_and(|at| at <= now) {
                server.begin(now);
                left.push(at_ms);
                ends.push(at_ms + took_ms);
                assert!(ends.len() <= limits.concurrency as usize);
            }
            at_ms += 1 + late_ms(at_ms);
        }
        left
    }

    #[test]
    fn rate_and_concurrency_are_never_exceeded_even_by_a_late_loop() {
        for (took_ms, late) in [(0, 0), (50, 0), (0, 37), (190, 3), (1_000, 0), (10, 999)] {
            for limits in [LIMITS, Limits { per_second: 1, concurrency: 1 }] {
                let left = run(limits, took_ms, |_| late);
                for (at, &from) in left.iter().enumerate() {
                    let within = left[at..].iter().take_while(|&&ms| ms < from + 1_000).count();
                    let most = limits.per_second as usize + 2;
                    assert!(within <= most, "{within} in the second from {from} ms");
                }
            }
        }
        assert!(run(LIMITS, 50, |_| 0).len() >= 99, "the rate is used");
        assert_eq!(run(LIMITS, 1_000, |_| 0).len(), 20, "two in flight, a second each");
    }

    #[test]
    fn a_server_that_asks_for_a_pause_is_paused() {
        let start = Instant::now();
        let mut server = Server::new(LIMITS, start);
        server.begin(start);
        server.begin(start);
        let now = start + after(200);
        assert_eq!(server.end(Ended::NotNow(Some(after(5_000))), now), Some(after(5_000)));
        // A response during the pause does not end it.
        server.end(Ended::Answered, now);
        assert_eq!(server.ready_at(), Some(now + after(5_000)));
        // Pauses of unspecified length double each time.
        for pause_s in [60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            server.begin(now);
            assert_eq!(server.end(Ended::NotNow(None), now), Some(after(pause_s * 1_000)));
            assert_eq!(server.ready_at(), Some(now + after(pause_s * 1_000)));
        }
        server.begin(now);
        assert_eq!(server.ready_at(), None, "one at a time until it responds");
        server.end(Ended::Answered, now);
        server.begin(now);
        assert!(server.ready_at().is_some());
    }

    #[test]
    fn a_server_that_is_down_is_tried_with_one_query() {
        let now = Instant::now();
        let mut server = Server::new(LIMITS, now);
        for _ in 1..FAILURES_MAX {
            server.begin(now);
            assert_eq!(server.end(Ended::Failed, now), None);
        }
        for pause_s in [60, 120, 240] {
            server.begin(now);
            // The limit is reduced only once the server counts as down.
            assert_eq!(server.ready_at().is_some(), pause_s == 60);
            assert_eq!(server.end(Ended::Failed, now), Some(after(pause_s * 1_000)));
        }
        server.begin(now);
        server.end(Ended::Answered, now);
        server.begin(now);
        assert!(server.ready_at().is_some(), "up again");
        assert_eq!(server.end(Ended::Failed, now), None);
    }
}
