//! Waits for a condition, with a deadline and a message.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two attempts.
const PERIOD: Duration = Duration::from_millis(20);

/// Repeats `attempt` until it succeeds, and returns its value. Panics with the last error once `max`
/// has passed.
#[track_caller]
pub fn until_ok<T, E: Display>(max: Duration, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + max;
    loop {
        let error = match attempt() {
            Ok(value) => return value,
            Err(error) => error,
        };
        assert!(Instant::now() < deadline, "not within {max:?}: {error}");
        thread::sleep(PERIOD);
    }
}

/// Waits until `condition` holds, and returns how long it took.
#[track_caller]
pub fn until(max: Duration, what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    until_ok(max, || if condition() { Ok(()) } else { Err(what) });
    begun.elapsed()
}
