//! Locks on folders that one process at a time changes.

use std::fs::{File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// How long whoever holds a lock is waited for. A server that starts holds each for a moment, to remove
/// what was left behind, and work that ends with a killed server gives its back a moment later: neither
/// is worth failing for. Work itself takes longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is asked for meanwhile.
const PERIOD: Duration = Duration::from_millis(10);

/// Takes the lock, now or soon.
///
/// # Errors
/// Another process works on the folder; or the system's.
pub fn take_soon(file: &File) -> Result<(), TryLockError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(PERIOD),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lets_go_soon_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || File::create(folder.path().join("LOCK")).expect("a file");
        let (held, other) = (open(), open());
        held.try_lock().expect("free");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| take_soon(&other));
            assert!(!waiting.is_finished(), "it is held");
            held.unlock().expect("held");
            waiting.join().expect("no panic").expect("free by now");
        });
        assert!(matches!(take_soon(&held), Err(TryLockError::WouldBlock)), "held all the time");
    }
}
