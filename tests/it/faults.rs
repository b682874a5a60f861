//! Faults below the journal: a disk that loses power, fails any call, runs out of space, or returns
//! other bytes than were written.
//!
//! The journal runs on a simulated disk ([`disk`], [`fs`]) with a caller that keeps a ledger of
//! acknowledged writes ([`store`]). `DROPDEX_FULL=1` runs at full size, `DROPDEX_SEED=<number>`
//! repeats a run; see `tests/README.md`.

mod alloc;
mod crash;
mod crash_states;
mod damage;
mod disk;
mod explore;
mod failing_calls;
mod fs;
mod store;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs `case` for 0 to `count - 1` on `threads` threads, until it reports that it is done.
fn in_parallel(threads: usize, count: usize, case: impl Fn(usize) -> bool + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count || !case(at) {
                        return;
                    }
                }
            });
        }
    });
}

/// Returns the number of cores of the machine.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
