//! How often one server may be asked: its rate, the questions under way, and how it is left alone
//! when it asks for that or is down. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use crate::vocab::ids::AccountId;

/// Failures in a row after which a server counts as down.
const FAILURES_MAX: u32 = 5;
/// A server that is down, or wants to be left alone and does not say how long, is asked again after
/// this, twice that, and so on.
const PAUSE_FIRST: Duration = Duration::from_secs(60);
/// And at most after this.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// What a server is never asked beyond.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Questions a second, 1 or more.
    pub per_second: u32,
    /// Questions under way, 1 or more.
    pub concurrency: u32,
}

/// How a question to a server ended, as far as the server goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It answered, whatever that was.
    Answered,
    /// It asks to be left alone for so long; `None` when it does not say.
    NotNow(Option<Duration>),
    /// It failed, or could not be reached.
    Failed,
}

/// One server.
#[derive(Debug)]
pub struct Server {
    limits: Limits,
    under_way: u32,
    /// The rate allows the next question from then on.
    next_at: Instant,
    /// It is left alone until then.
    paused_until: Option<Instant>,
    /// Failures in a row.
    failures: u32,
    /// Times in a row that it asked to be left alone.
    refusals: u32,
    /// Whose turn it was last.
    pub turn: Option<AccountId>,
}

impl Server {
    /// A server that nothing is known of.
    pub fn new(limits: Limits, now: Instant) -> Server {
        Server {
            limits,
            under_way: 0,
            next_at: now,
            paused_until: None,
            failures: 0,
            refusals: 0,
            turn: None,
        }
    }

    /// When the next question may be sent, now or later; `None` while too many are under way.
    ///
    /// A server that was down is tried with one question, not with all that wait for it.
    pub fn ready_at(&self) -> Option<Instant> {
        let trial = self.failures >= FAILURES_MAX || self.refusals > 0;
        let at_once = if trial { 1 } else { self.limits.concurrency };
        let at = self.paused_until.map_or(self.next_at, |until| until.max(self.next_at));
        (self.under_way < at_once).then_some(at)
    }

    /// Takes note that a question leaves now.
    ///
    /// Questions are spaced, not saved up: in any time there leave as many as the rate allows for
    /// it, and two more at most, one for each end and one that was late.
    pub fn begin(&mut self, now: Instant) {
        let spacing = Duration::from_secs(1) / self.limits.per_second;
        let earliest = now.checked_sub(spacing).unwrap_or(now);
        self.next_at = self.next_at.max(earliest) + spacing;
        self.under_way += 1;
    }

    /// Takes note of an end; says for how long the server is left alone for it.
    pub fn end(&mut self, ended: Ended, now: Instant) -> Option<Duration> {
        self.under_way -= 1;
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

    /// Whether it can be forgotten: but for whose turn it was, a new one would be the same.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.under_way == 0
            && self.next_at <= now
            && self.paused_until.is_none_or(|until| until <= now)
            && self.failures == 0
            && self.refusals == 0
    }
}

/// The pause after the `nth` time in a row, 1 or more.
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

    /// Asks whenever it may for ten seconds, with answers that take `took_ms`, a loop that comes
    /// late, and says when each question left.
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
    fn neither_rate_nor_concurrency_is_exceeded_however_late_the_loop_comes() {
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
        assert!(run(LIMITS, 50, |_| 0).len() >= 99, "and it is used");
        assert_eq!(run(LIMITS, 1_000, |_| 0).len(), 20, "two under way, a second each");
    }

    #[test]
    fn a_server_that_asks_for_it_is_left_alone() {
        let start = Instant::now();
        let mut server = Server::new(LIMITS, start);
        server.begin(start);
        server.begin(start);
        let now = start + after(200);
        assert_eq!(server.end(Ended::NotNow(Some(after(5_000))), now), Some(after(5_000)));
        // One that answers meanwhile does not end the pause.
        server.end(Ended::Answered, now);
        assert_eq!(server.ready_at(), Some(now + after(5_000)));
        // Without a word, longer each time.
        for pause_s in [60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            server.begin(now);
            assert_eq!(server.end(Ended::NotNow(None), now), Some(after(pause_s * 1_000)));
            assert_eq!(server.ready_at(), Some(now + after(pause_s * 1_000)));
        }
        server.begin(now);
        assert_eq!(server.ready_at(), None, "one at a time until it answers");
        server.end(Ended::Answered, now);
        server.begin(now);
        assert!(server.ready_at().is_some());
    }

    #[test]
    fn a_server_that_is_down_is_tried_with_one_question() {
        let now = Instant::now();
        let mut server = Server::new(LIMITS, now);
        for _ in 1..FAILURES_MAX {
            server.begin(now);
            assert_eq!(server.end(Ended::Failed, now), None);
        }
        for pause_s in [60, 120, 240] {
            server.begin(now);
            // The question that finds it down is not alone yet.
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
