//! Seeds and sizes of random tests.
//!
//! `DROPDEX_SEED=<number>` repeats a run; every run prints its seed. `DROPDEX_FULL=1` selects the full
//! size instead of the small one that CI runs.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the seed of this run and prints it, so that a failure can be repeated.
pub fn seed() -> u64 {
    let seed = match std::env::var("DROPDEX_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("DROPDEX_SEED={text}: not a number")),
        Err(_) => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            since.as_nanos() as u64
        }
    };
    say(&format!("DROPDEX_SEED={seed}"));
    seed
}

/// Returns the seed that `tests/run` fixes for property tests, so that the result depends only on the
/// commit; otherwise the same as [`seed`].
pub fn seed_of_the_commit() -> u64 {
    let given = std::env::var("PROPTEST_RNG_SEED").ok().filter(|_| !is_seed_given());
    let Some(seed) = given.and_then(|text| text.parse().ok()) else { return seed() };
    say(&format!("DROPDEX_SEED={seed}"));
    seed
}

fn is_seed_given() -> bool {
    std::env::var_os("DROPDEX_SEED").is_some()
}

/// Whether full sizes are selected.
pub fn full() -> bool {
    std::env::var("DROPDEX_FULL").is_ok_and(|value| value == "1")
}

/// Returns `small`, or `whole` if full sizes are selected.
pub fn figure(small: usize, whole: usize) -> usize {
    if full() { whole } else { small }
}

/// Prints a line to the test's log: seeds and sizes.
#[expect(clippy::print_stderr, reason = "seeds and counts are read by people, in the log")]
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// Waits for the next millisecond of the clock. Lists are sorted by millisecond, then by random id, so
/// objects must not share a millisecond where a test depends on their order.
pub fn wait_for_the_next_millisecond() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let begun = now();
    while now() == begun {
        std::hint::spin_loop();
    }
}
