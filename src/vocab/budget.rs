//! CPU time budgets of queries. The work of a request runs under a [`Budget`]; long loops call
//! [`spent`] every few thousand steps and stop early when the budget is used up. [`Budget::lend`]
//! then discards the incomplete result and returns the reason. Therefore the loops need neither a
//! parameter nor an error for an exhausted budget. Outside of requests (rebuilds, matching,
//! commands), the budget is unlimited.
//!
//! The budget is CPU time, so waiting for a core on a busy machine costs nothing. A budget ends at
//! once when the client disconnects. The same calls give way to the work of other accounts
//! ([`crate::turns`]).

use std::cell::RefCell;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::turns::Turn;

/// Maximum CPU time of a request: more than any query over ten million names takes, but short
/// enough not to delay other requests. Unoptimised code is twenty times slower.
pub const QUERY_TIME_MAX: Duration =
    if cfg!(debug_assertions) { Duration::from_secs(5) } else { Duration::from_millis(250) };

/// Reason why work was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    #[error("the query exceeded its time budget")]
    Time,
    #[error("the client closed the connection")]
    Gone,
}

/// A budget for work that has not started.
#[derive(Debug)]
pub struct Budget {
    time_max: Duration,
    gone: Arc<AtomicBool>,
}

/// The waiting side of a [`Budget`]: dropping it stops the work.
#[derive(Debug)]
pub struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The budget of the work running on a thread.
#[derive(Debug)]
struct Running {
    time_max: Duration,
    /// Earliest instant at which the CPU time can be used up. The CPU clock is read only after it.
    until: Instant,
    /// The thread's CPU time at the start; `None` if the system does not report it, in which case
    /// wall time is used.
    begun: Option<Duration>,
    gone: Arc<AtomicBool>,
    spent: Option<Spent>,
    /// The turn that the work holds on this thread.
    turn: Option<Turn>,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

impl Budget {
    /// Creates a budget of `time_max` CPU time that ends when [`Waiting`] is dropped.
    pub fn new(time_max: Duration) -> (Budget, Waiting) {
        let gone = Arc::new(AtomicBool::new(false));
        (Budget { time_max, gone: Arc::clone(&gone) }, Waiting(gone))
    }

    /// Runs `work` on this thread within the budget, unless the client has disconnected. `turn`
    /// ends with the work.
    ///
    /// # Errors
    /// The budget was spent, so the result of `work` may be incomplete.
    pub fn lend<T>(self, turn: Option<Turn>, work: impl FnOnce() -> T) -> Result<T, Spent> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Spent::Gone);
        }
        let lent = Lent::put(Some(Running {
            time_max: self.time_max,
            until: Instant::now() + self.time_max,
            begun: core_time(),
            gone: self.gone,
            spent: None,
            turn,
        }));
        let done = work();
        match lent.take_back().and_then(|running| running.spent) {
            None => Ok(done),
            Some(spent) => Err(spent),
        }
    }
}

/// Returns true if the work on this thread must stop. A call takes about 30 ns within a request, so
/// call it every few thousand steps. The call blocks while the work of other accounts comes first,
/// so no lock may be held.
pub fn spent() -> bool {
    RUNNING.with_borrow_mut(|running| running.as_mut().is_some_and(Running::look))
}

/// As [`spent`], but for work that has its own limit and is not charged to the budget: returns true
/// only if the client has disconnected.
pub fn abandoned() -> bool {
    RUNNING.with_borrow_mut(|running| {
        running.as_mut().is_some_and(|running| {
            running.give_way(Instant::now());
            running.gone.load(Ordering::Relaxed)
        })
    })
}

/// Runs `work` within the rest of this thread's budget; `None` if the rest does not suffice. The
/// surrounding work continues in either case.
pub fn in_time<T>(work: impl FnOnce() -> T) -> Option<T> {
    let done = (!spent()).then(work);
    RUNNING.with_borrow_mut(|running| {
        let spent = running.as_mut().map(|running| &mut running.spent);
        let is_late = spent.is_some_and(|spent| spent.take_if(|it| *it == Spent::Time).is_some());
        if is_late { None } else { done }
    })
}

/// Runs `work` without a budget and without charging for it: for results that several requests
/// share or that are cached, and that must not be left incomplete.
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

/// Runs `work` for each item on all cores, within the rest of this thread's budget, which is
/// charged for the time of all cores. A single item runs on this thread. Results are in the order
/// of the items. `work` must not wait for other work of this pool. Items run in rounds; between
/// rounds the work of other accounts gets its turn, because threads of the pool cannot give way.
pub fn on_all_cores<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    /// The threads of the pool inherit the priority of the query thread that starts them.
    static POOL: LazyLock<Option<ThreadPool>> =
        LazyLock::new(|| ThreadPoolBuilder::new().build().ok());
    let Some(pool) = (items.len() > 1).then(|| POOL.as_ref()).flatten() else {
        return items.into_iter().map(work).collect();
    };
    let share = RUNNING.with_borrow(|running| running.as_ref().map(Share::of));
    let mut done = Vec::with_capacity(items.len());
    let mut items = items.into_iter();
    while items.len() > 0 {
        let round: Vec<T> = items.by_ref().take(pool.current_num_threads()).collect();
        let (began, used) = (Instant::now(), share.as_ref().map(Share::used));
        done.extend(pool.install(|| {
            let done = round.into_par_iter().map(|item| match &share {
                Some(share) => share.lend(|| work(item)),
                None => work(item),
            });
            done.collect::<Vec<R>>()
        }));
        RUNNING.with_borrow_mut(|running| {
            let Some(running) = running else { return };
            if let Some((turn, (share, used))) = running.turn.as_mut().zip(share.as_ref().zip(used))
            {
                turn.charge((share.used() - used).saturating_sub(began.elapsed()));
            }
            running.give_way(Instant::now());
        });
    }
    RUNNING.with_borrow_mut(|running| {
        if let Some((running, share)) = running.as_mut().zip(share) {
            share.charge(running);
        }
    });
    done
}

/// The unused part of a budget, shared by several threads.
struct Share {
    time_max: Duration,
    used_ns: AtomicU64,
    gone: Arc<AtomicBool>,
    spent: Mutex<Option<Spent>>,
}

impl Share {
    fn of(running: &Running) -> Share {
        let used = running.begun.zip(core_time()).map(|(begun, now)| now.saturating_sub(begun));
        Share {
            time_max: running.time_max.saturating_sub(used.unwrap_or_default()),
            used_ns: AtomicU64::new(0),
            gone: Arc::clone(&running.gone),
            spent: Mutex::new(running.spent),
        }
    }

    fn used(&self) -> Duration {
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed))
    }

    fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        let left = self.time_max.saturating_sub(self.used());
        let (started, begun) = (Instant::now(), core_time());
        let lent = Lent::put(Some(Running {
            time_max: left,
            until: started + left,
            begun,
            gone: Arc::clone(&self.gone),
            spent: None,
            turn: None,
        }));
        let done = work();
        let on_core = begun.zip(core_time()).map(|(begun, now)| now.saturating_sub(begun));
        let took = on_core.unwrap_or_else(|| started.elapsed());
        self.used_ns.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        if let Some(spent) = lent.take_back().and_then(|running| running.spent) {
            *self.spent.lock().unwrap_or_else(PoisonError::into_inner) = Some(spent);
        }
        done
    }

    /// Charges a budget for the time that its share used.
    fn charge(self, running: &mut Running) {
        running.time_max = running.time_max.saturating_sub(self.used());
        running.until = Instant::now();
        running.spent = self.spent.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
}

/// Replaces a thread's budget and restores the previous one on drop, even during a panic.
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
            let now = Instant::now();
            if self.gone.load(Ordering::Relaxed) {
                self.spent = Some(Spent::Gone);
            } else if now >= self.until {
                self.look_closer();
            } else {
                self.give_way(now);
            }
        }
        self.spent.is_some()
    }

    /// Lets other work go first if it is due. Waiting does not use the budget.
    fn give_way(&mut self, now: Instant) {
        if let Some(waited) = self.turn.as_mut().and_then(|turn| turn.give_way(now)) {
            self.until += waited;
        }
    }

    /// Checks the CPU time once the wall time has passed.
    fn look_closer(&mut self) {
        let used = self.begun.zip(core_time()).map(|(begun, now)| now.saturating_sub(begun));
        match used.and_then(|used| self.time_max.checked_sub(used)) {
            Some(left) if !left.is_zero() => self.until = Instant::now() + left,
            _ => self.spent = Some(Spent::Time),
        }
    }
}

/// Returns the CPU time of this thread since it started.
fn core_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn the_time_of_all_cores_counts() {
        let spin = |_| {
            while !spent() {
                std::hint::spin_loop();
            }
        };
        let (budget, _waiting) = Budget::new(SHORT);
        let done = budget.lend(None, || on_all_cores(vec![(); 64], spin));
        assert_eq!(done, Err(Spent::Time), "and each piece ends at once after that");
        let (budget, _waiting) = Budget::new(LONG);
        let double = |number: u32| 2 * number;
        assert_eq!(budget.lend(None, || on_all_cores(vec![1, 2, 3], double)), Ok(vec![2, 4, 6]));
    }

    /// Loops until the budget is spent, or for ten seconds.
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
    fn work_stops_when_its_time_is_used_up() {
        let (budget, _waiting) = Budget::new(SHORT);
        assert_eq!(budget.lend(None, work), Err(Spent::Time));
        assert!(!spent(), "later work on the thread has no budget");
        let (budget, _waiting) = Budget::new(LONG);
        assert_eq!(budget.lend(None, || 7), Ok(7));
    }

    #[test]
    fn an_overrunning_part_does_not_end_the_rest() {
        let (budget, _waiting) = Budget::new(SHORT);
        let parts = || [in_time(|| 1), in_time(|| i32::from(work())), in_time(|| 3)];
        assert_eq!(budget.lend(None, parts), Ok([Some(1), None, None]));
        assert_eq!(in_time(|| 4), Some(4), "without a budget there is no end");
        let (budget, waiting) = Budget::new(LONG);
        let gone = budget.lend(None, || {
            drop(waiting);
            in_time(|| ())
        });
        assert_eq!(gone, Err(Spent::Gone));
    }

    #[test]
    fn work_stops_when_the_client_disconnects() {
        let (budget, waiting) = Budget::new(LONG);
        drop(waiting);
        assert_eq!(budget.lend(None, || panic!("must not start")), Err(Spent::Gone));
        let (budget, waiting) = Budget::new(LONG);
        let ended = budget.lend(None, || {
            assert!(!spent());
            drop(waiting);
            spent()
        });
        assert_eq!(ended, Err(Spent::Gone));
    }

    #[test]
    fn waiting_costs_no_budget() {
        if core_time().is_none() {
            return;
        }
        let (budget, _waiting) = Budget::new(SHORT);
        let slept = budget.lend(None, || {
            std::thread::sleep(3 * SHORT);
            spent()
        });
        assert_eq!(slept, Ok(false));
    }

    #[test]
    fn shared_work_completes_and_is_not_charged() {
        let (budget, _waiting) = Budget::new(SHORT);
        let done = budget.lend(None, || {
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
            budget.lend(None, || panic!("on purpose"))
        }));
        assert!(panicked.is_err());
        assert!(!spent());
    }
}
