//! Query execution. Work longer than half a millisecond runs on the blocking pool, for at most a quarter of a
//! second of CPU time ([`crate::vocab::budget`]). Accounts take turns ([`crate::vocab::turns`]). The work stops
//! when the client disconnects.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::Duration;

use rustix::process::{getpriority_process, setpriority_process};

use crate::error::ApiError;
use crate::telemetry::current::{self, Current};
use crate::vocab::budget::{Budget, QUERY_TIME_MAX, Spent};
use crate::vocab::ids::AccountId;
use crate::vocab::turns::{Party, Turn, TurnLimits, Turns};

/// Longest query, in microseconds, that runs on an async thread.
const INLINE_US_MAX: u32 = 500;
/// Niceness added to the pool's threads, so that async threads can accept connections, run small
/// queries and shed load while many long queries run.
const NICER: i32 = 10;

/// Estimated cost of `rows` rows of `row_us` microseconds each, for [`run`].
pub fn cost_us(rows: usize, row_us: usize) -> u32 {
    u32::try_from(rows * row_us).unwrap_or(u32::MAX)
}

/// Runs `work` on the current thread if its estimated cost `cost_us` is small, and otherwise on the blocking
/// pool once the account gets a turn.
///
/// # Errors
/// The errors of `work`; 503 if it gets no turn in time, 422 if it exceeds its time budget, 500 if it
/// panics.
pub async fn run<T: Send + 'static>(
    cost_us: u32,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    if cost_us <= INLINE_US_MAX {
        return work();
    }
    let party = current::account().map_or(Party::Visitors, Party::Account);
    run_within(QUERY_TIME_MAX, Some(turn(party).await?), work).await
}

/// [`run`] for work that scans the text of names or compiles a regular expression.
///
/// # Errors
/// The errors of [`run`].
pub async fn scan<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    run(u32::MAX, work).await
}

/// [`scan`] in a turn of `account`, for the pages of a stream: the response to its request has
/// already begun.
///
/// # Errors
/// The errors of [`run`].
pub async fn scan_for<T: Send + 'static>(
    account: AccountId,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    run_within(QUERY_TIME_MAX, Some(turn(Party::Account(account)).await?), work).await
}

/// [`scan`] if `scans`, otherwise [`run`].
///
/// # Errors
/// The errors of [`run`].
pub async fn run_or_scan<T: Send + 'static>(
    scans: bool,
    cost_us: u32,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    run(if scans { u32::MAX } else { cost_us }, work).await
}

/// Runs short work on the blocking pool without a turn. Meant for work that has its own limit, such as
/// exports: an account runs only a few at once.
///
/// # Errors
/// The errors of [`run`].
pub async fn run_aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    run_within(QUERY_TIME_MAX, None, work).await
}

/// Runs long work of a worker on the blocking pool, at lower priority and without a time budget. `None` if it
/// panicked, which is logged.
pub async fn run_low<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let nice = *NICE;
    let lowered = move || {
        lower_priority(nice);
        work()
    };
    tokio::task::spawn_blocking(lowered).await.ok()
}

/// Queued pieces of work of one account, per core: half of the reads that the server admits by
/// default, which leaves room for other accounts.
const WAITING_PER_PARTY: usize = 16;
/// Queued pieces of work of all accounts, per core.
const WAITING: usize = 24;
/// Paused pieces of work, which wait on a thread of the blocking pool, per core.
pub const PAUSED_PER_CORE: usize = 8;
/// Maximum time in the queue. A request has 30 seconds.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Turns of all work on the blocking pool.
static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| {
    let slots = available_parallelism().map_or(1, NonZero::get);
    Turns::new(TurnLimits {
        slots,
        waiting_per_party: slots * WAITING_PER_PARTY,
        waiting: slots * WAITING,
        paused: slots * PAUSED_PER_CORE,
        wait: WAIT_MAX,
    })
});

async fn turn(party: Party) -> Result<Turn, ApiError> {
    TURNS.take(party).await.map_err(|no_turn| {
        metrics::counter!("dropdex_queries_refused_total").increment(1);
        ApiError::NoTurn { no_turn, is_visitor: party == Party::Visitors }
    })
}

/// Runs `work` on the blocking pool for at most `time_max` of CPU time. When the returned future is
/// dropped, queued work does not start and running work stops soon.
async fn run_within<T: Send + 'static>(
    time_max: Duration,
    turn: Option<Turn>,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let (budget, _waiting) = Budget::new(time_max);
    let current = current::current();
    let nice = *NICE;
    let done = move || {
        lower_priority(nice);
        let _entered = current.as_ref().map(Current::enter);
        budget.lend(turn, work).inspect_err(|spent| count_aborted(*spent))
    };
    let done = tokio::task::spawn_blocking(done).await;
    done.map_err(|err| {
        if err.is_panic() {
            // The server's panic handler does not see panics on the pool.
            metrics::counter!("dropdex_panics_total").increment(1);
        }
        ApiError::Internal(err.into())
    })??
}

/// Niceness of the pool's threads. The niceness is computed on an async thread, which still has the
/// niceness that the operator gave the process.
static NICE: LazyLock<i32> = LazyLock::new(|| getpriority_process(None).unwrap_or(0) + NICER);

/// Lowers the priority of the current thread of the pool, once.
fn lower_priority(nice: i32) {
    thread_local! {
        static LOWERED: Cell<bool> = const { Cell::new(false) };
    }
    if !LOWERED.replace(true) {
        // On Linux, this only sets the priority of the calling thread. A failure is harmless.
        let _ = setpriority_process(None, nice);
    }
}

/// Aborted work is counted here, because the future of a disconnected client no longer exists.
fn count_aborted(spent: Spent) {
    let name = match spent {
        Spent::Time => "dropdex_queries_too_long_total",
        Spent::Gone => "dropdex_queries_abandoned_total",
    };
    metrics::counter!(name).increment(1);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;
    use crate::vocab::budget::spent;

    const LONG: Duration = Duration::from_secs(3_600);

    fn spin() -> Result<bool, ApiError> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if spent() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[tokio::test]
    async fn long_queries_time_out() {
        let refused = run_within(Duration::from_millis(10), None, spin).await;
        assert!(matches!(refused, Err(ApiError::QueryTimeout { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn a_disconnected_client_aborts_its_query() {
        let (started, has_started) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let request = tokio::spawn(run_within(LONG, None, move || {
            started.send(()).expect("the receiver is alive");
            ended.send(spin()?).expect("the receiver is alive");
            Ok(())
        }));
        tokio::task::spawn_blocking(move || has_started.recv())
            .await
            .expect("joined")
            .expect("started");
        request.abort();
        let aborted = tokio::task::spawn_blocking(move || has_ended.recv()).await.expect("joined");
        assert_eq!(aborted, Ok(true));
    }
}
