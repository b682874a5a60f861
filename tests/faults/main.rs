//! Faults below the journal: a disk that loses power, fails any call, runs full, or gives back other
//! bytes than were written.
//!
//! The journal runs on a simulated disk ([`disk`], [`fs`]) with a caller that keeps a ledger of what
//! it was told ([`store`]). `DROPDEX_FULL=1` runs the full figures, `DROPDEX_SEED=<number>` repeats a
//! run; see `tests/README.md`.

mod alloc;
mod crash;
mod crash_states;
mod damage;
mod disk;
mod explore;
mod failing_calls;
mod fs;
#[path = "../common/rng.rs"]
#[expect(dead_code, reason = "shared with the oracle, which uses all of it")]
mod rng;
mod store;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// The seed of this run, printed.
fn seed() -> u64 {
    let seed = match std::env::var("DROPDEX_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("DROPDEX_SEED={text}: no number")),
        Err(_) => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            since.as_nanos() as u64
        }
    };
    say(&format!("DROPDEX_SEED={seed}"));
    seed
}

/// Whether the full figures are to be run.
fn is_full() -> bool {
    std::env::var_os("DROPDEX_FULL").is_some_and(|it| it == "1")
}

#[expect(
    clippy::print_stderr,
    reason = "seeds and counts are what a run is repeated and judged by"
)]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Runs `case` for 0 to `count - 1` on `threads` threads, or until it says that it is enough.
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

/// As many as the machine has.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
