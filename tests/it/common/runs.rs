//! How long a test of chance runs and where its chance comes from.
//!
//! `DROPDEX_SEED=<number>` repeats a run; every run prints its seed. `DROPDEX_FULL=1` runs the full
//! figure instead of the slice that every change gets.

use std::time::{SystemTime, UNIX_EPOCH};

/// The seed of this run, printed so that a failure can be repeated.
pub fn seed() -> u64 {
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

/// As [`seed`]; in `tests/run` the seed of its property tests, so that a commit passes or fails for
/// what is in it.
pub fn seed_of_the_commit() -> u64 {
    let given = std::env::var("PROPTEST_RNG_SEED").ok().filter(|_| !is_seed_given());
    let Some(seed) = given.and_then(|text| text.parse().ok()) else { return seed() };
    say(&format!("DROPDEX_SEED={seed}"));
    seed
}

fn is_seed_given() -> bool {
    std::env::var_os("DROPDEX_SEED").is_some()
}

/// Whether the full figure is asked for.
pub fn full() -> bool {
    std::env::var("DROPDEX_FULL").is_ok_and(|value| value == "1")
}

/// `slice`, or `whole` when the full figure is asked for.
pub fn figure(slice: usize, whole: usize) -> usize {
    if full() { whole } else { slice }
}

/// Writes a line beside the test's result: seeds, and how much was run.
#[expect(clippy::print_stderr, reason = "seeds and counts are read by people, in the log")]
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// Lists are in the order of milliseconds, then of ids, which are random: where the
/// order matters no two objects may share their millisecond.
pub fn wait_for_the_next_millisecond() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let begun = now();
    while now() == begun {
        std::hint::spin_loop();
    }
}
