//! Budgets of WHOIS servers. Pure: the time is an argument.
//!
//! Operators publish few limits, and exceed them once and an address is blocked. So a server gets one
//! connection at a time, 10 seconds apart, and 200 a day; after words of throttling, none for a day.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Interval between two queries of a server.
const APART: Duration = Duration::from_secs(10);
/// Queries of a server in a day.
const A_DAY: u32 = 200;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// When a server may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Now,
    /// Not before this time; `None` while it is asked.
    Later(Option<Instant>),
    /// Its day is used up, or it asked for rest.
    NotToday,
}

/// The budgets of all servers, by host.
#[derive(Debug, Default)]
pub struct Budgets(HashMap<String, Budget>);

#[derive(Debug)]
struct Budget {
    is_busy: bool,
    next_at: Instant,
    day_began: Instant,
    asked: u32,
    rests_until: Option<Instant>,
}

impl Budgets {
    /// Returns when `host` may be asked.
    pub fn turn(&self, host: &str, now: Instant) -> Turn {
        let Some(budget) = self.0.get(host) else { return Turn::Now };
        let is_new_day = now >= budget.day_began + DAY;
        if budget.rests_until.is_some_and(|until| until > now)
            || budget.asked >= A_DAY && !is_new_day
        {
            return Turn::NotToday;
        }
        match budget.next_at {
            _ if budget.is_busy => Turn::Later(None),
            at if at > now => Turn::Later(Some(at)),
            _ => Turn::Now,
        }
    }

    /// Records that a query is sent now.
    pub fn begin(&mut self, host: &str, now: Instant) {
        let new =
            || Budget { is_busy: false, next_at: now, day_began: now, asked: 0, rests_until: None };
        let budget = self.0.entry(host.to_owned()).or_insert_with(new);
        if now >= budget.day_began + DAY {
            *budget = new();
        }
        budget.is_busy = true;
        budget.asked += 1;
    }

    /// Records the end of a query.
    pub fn end(&mut self, host: &str, is_throttled: bool, now: Instant) {
        let Some(budget) = self.0.get_mut(host) else { return };
        budget.is_busy = false;
        budget.next_at = now + APART;
        if is_throttled {
            budget.rests_until = Some(now + DAY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_one_by_one_and_200_times_a_day() {
        let (begun, mut budgets) = (Instant::now(), Budgets::default());
        let (mut now, mut asked) = (begun, 0);
        loop {
            match budgets.turn("a", now) {
                Turn::Now => {
                    budgets.begin("a", now);
                    asked += 1;
                    assert_ne!(budgets.turn("a", now), Turn::Now, "it is asked");
                    assert_eq!(budgets.turn("b", now), Turn::Now, "others are not affected");
                    now += Duration::from_secs(2);
                    budgets.end("a", false, now);
                }
                Turn::Later(at) => now = at.expect("it is not busy"),
                Turn::NotToday => break,
            }
        }
        assert_eq!(asked, A_DAY);
        assert!(now - begun >= APART * (A_DAY - 1));
        assert_eq!(budgets.turn("a", begun + DAY), Turn::Now);
        budgets.begin("a", begun + DAY);
        budgets.end("a", true, begun + DAY);
        assert_eq!(budgets.turn("a", begun + DAY * 2 - APART), Turn::NotToday);
        assert_eq!(budgets.turn("a", begun + DAY * 2), Turn::Now);
    }
}
