//! How long one question may hold a core. Whoever runs the work of a request lends it a [`Budget`];
//! walks ask [`spent`] every few thousand steps, and end early when it is. What such a walk gives is
//! of no use: [`Budget::lend`] throws it away and says why. So functions that walk need no argument
//! and no error for it, and outside of requests (rebuilds, matching, commands) nothing is ever spent.
//!
//! Time is that of the core: on a busy machine waiting for others costs nothing. A client that has gone
//! spends the budget of its work at once.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time on a core that a request may take: more than any question takes of ten million names, and
/// less than others notice. Code that is not optimised takes twenty times as long.
pub const QUERY_TIME_MAX: Duration =
    if cfg!(debug_assertions) { Duration::from_secs(5) } else { Duration::from_millis(250) };

/// Why work was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    #[error("the question takes too long")]
    Time,
    #[error("nobody waits for the answer any more")]
    Gone,
}

/// What work may take, not begun.
#[derive(Debug)]
pub struct Budget {
    time_max: Duration,
    gone: Arc<AtomicBool>,
}

/// The other end of a [`Budget`]: when it is dropped, the work ends.
#[derive(Debug)]
pub struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A budget that a thread works on.
#[derive(Debug)]
struct Running {
    time_max: Duration,
    /// Not before this can the time be over; it is then looked at closer.
    until: Instant,
    /// Time that the thread had been on a core at the start; `None` where the system does not tell:
    /// then it is the time of the clock that counts.
    begun: Option<Duration>,
    gone: Arc<AtomicBool>,
    spent: Option<Spent>,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

impl Budget {
    /// A budget of `time_max` on a core, for as long as somebody waits.
    pub fn new(time_max: Duration) -> (Budget, Waiting) {
        let gone = Arc::new(AtomicBool::new(false));
        (Budget { time_max, gone: Arc::clone(&gone) }, Waiting(gone))
    }

    /// Does `work` on this thread within the budget. Does not begin when nobody waits by then.
    ///
    /// # Errors
    /// The budget was spent. What `work` gave is then not all there is.
    pub fn lend<T>(self, work: impl FnOnce() -> T) -> Result<T, Spent> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Spent::Gone);
        }
        let lent = Lent::put(Some(Running {
            time_max: self.time_max,
            until: Instant::now() + self.time_max,
            begun: core_time(),
            gone: self.gone,
            spent: None,
        }));
        let done = work();
        match lent.take_back().and_then(|running| running.spent) {
            None => Ok(done),
            Some(spent) => Err(spent),
        }
    }
}

/// Whether the work on this thread has to end. Costs some 30 ns within a request: to be asked every
/// few thousand steps.
pub fn spent() -> bool {
    RUNNING.with_borrow_mut(|running| running.as_mut().is_some_and(Running::look))
}

/// Does `work` that others wait for too, or that is kept for those who come: it is nobody's to pay
/// for, and must not be left half done.
pub fn shared<T>(work: impl FnOnce() -> T) -> T {
    let lent = Lent::put(None);
    let (begun, on_core) = (Instant::now(), core_time());
    let done = work();
    if let Some(running) = &mut *lent.before.borrow_mut() {
        running.until += begun.elapsed();
        if let (Some(begun), Some(before), Some(after)) = (&mut running.begun, on_core, core_time())
        {
            *begun += after.saturating_sub(before);
        }
    }
    done
}

/// A thread's budget in the place of the one it had, which comes back when this is dropped, also by a
/// panic.
struct Lent {
    before: RefCell<Option<Running>>,
}

impl Lent {
    fn put(running: Option<Running>) -> Lent {
        Lent { before: RefCell::new(RUNNING.replace(running)) }
    }

    fn take_back(self) -> Option<Running> {
        RUNNING.take()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        RUNNING.set(self.before.take());
    }
}

impl Running {
    fn look(&mut self) -> bool {
        if self.spent.is_none() {
            if self.gone.load(Ordering::Relaxed) {
                self.spent = Some(Spent::Gone);
            } else if Instant::now() >= self.until {
                self.look_closer();
            }
        }
        self.spent.is_some()
    }

    /// The time of the clock is over; that on the core need not be.
    fn look_closer(&mut self) {
        let used = self.begun.zip(core_time()).map(|(begun, now)| now.saturating_sub(begun));
        match used.and_then(|used| self.time_max.checked_sub(used)) {
            Some(left) if !left.is_zero() => self.until = Instant::now() + left,
            _ => self.spent = Some(Spent::Time),
        }
    }
}

/// How long this thread has been on a core since it began.
fn core_time() -> Option<Duration> {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    told.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);
    const SHORT: Duration = Duration::from_millis(20);

    /// Works until the budget is spent, or for ten seconds.
    fn work() -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if spent() {
                return true;
            }
        }
        false
    }

    #[test]
    fn work_ends_when_its_time_is_over() {
        let (budget, _waiting) = Budget::new(SHORT);
        assert_eq!(budget.lend(work), Err(Spent::Time));
        assert!(!spent(), "what follows on the thread has none");
        let (budget, _waiting) = Budget::new(LONG);
        assert_eq!(budget.lend(|| 7), Ok(7));
    }

    #[test]
    fn work_ends_when_nobody_waits() {
        let (budget, waiting) = Budget::new(LONG);
        drop(waiting);
        assert_eq!(budget.lend(|| panic!("must not begin")), Err(Spent::Gone));
        let (budget, waiting) = Budget::new(LONG);
        let ended = budget.lend(|| {
            assert!(!spent());
            drop(waiting);
            spent()
        });
        assert_eq!(ended, Err(Spent::Gone));
    }

    #[test]
    fn waiting_for_others_costs_nothing() {
        if core_time().is_none() {
            return;
        }
        let (budget, _waiting) = Budget::new(SHORT);
        let slept = budget.lend(|| {
            std::thread::sleep(3 * SHORT);
            spent()
        });
        assert_eq!(slept, Ok(false));
    }

    #[test]
    fn what_is_shared_is_done_and_not_counted() {
        let (budget, _waiting) = Budget::new(SHORT);
        let done = budget.lend(|| {
            let begun = Instant::now();
            let ended_early = shared(|| {
                while begun.elapsed() < 5 * SHORT {
                    if spent() {
                        return true;
                    }
                }
                false
            });
            (ended_early, spent())
        });
        assert_eq!(done, Ok((false, false)));
    }

    #[test]
    fn a_panic_leaves_no_budget_behind() {
        let (budget, _waiting) = Budget::new(Duration::ZERO);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            budget.lend(|| panic!("on purpose"))
        }));
        assert!(panicked.is_err());
        assert!(!spent());
    }
}
