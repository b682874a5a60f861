//! Password hashing on blocking threads. It is slow by design, so few hashes run at once and the
//! queue is short.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::error::WriteError;

/// Concurrent hashes: each takes 19 MiB and a core for tens of milliseconds.
const AT_ONCE: usize = 2;
/// Maximum queue length, about a second of work. Further requests are refused.
const WAITING_MAX: usize = 32;

/// Limits concurrent and queued hashing.
pub struct Hashing {
    slots: Arc<Semaphore>,
    /// One permit for each running or queued hash.
    places: Semaphore,
}

impl Default for Hashing {
    fn default() -> Hashing {
        Hashing {
            slots: Arc::new(Semaphore::new(AT_ONCE)),
            places: Semaphore::new(AT_ONCE + WAITING_MAX),
        }
    }
}

impl Hashing {
    /// Runs `work` when a slot is free. Running work keeps its slot to the end, even if the caller
    /// stops waiting.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`]: the queue is full.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WriteError> {
        let Ok(_place) = self.places.try_acquire() else { return Err(WriteError::Overloaded) };
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|_| WriteError::Overloaded)?;
        let done = spawn_blocking(move || {
            let _slot = slot;
            work()
        });
        // It is abandoned only if the runtime ends.
        done.await.map_err(|_| WriteError::Overloaded)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn two_hashes_run_some_wait_and_the_rest_is_refused() {
        let hashing = Arc::new(Hashing::default());
        let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Arc::new(std::sync::Mutex::new(released));
        let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE + WAITING_MAX + 10 {
            let (hashing, working, most) =
                (Arc::clone(&hashing), Arc::clone(&working), Arc::clone(&most));
            let (released, begin) = (Arc::clone(&released), begin.clone());
            tasks.spawn(async move {
                let work = move || {
                    most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let _ = begin.send(());
                    let _ = released.lock().expect("no one panics").recv();
                    working.fetch_sub(1, Ordering::SeqCst);
                };
                hashing.run(work).await.is_ok()
            });
        }
        let mut refused = 0;
        while refused < 10 {
            let done = tasks.join_next().await.expect("some are left").expect("none panics");
            assert!(!done, "no hash has ended yet");
            refused += 1;
        }
        for _ in 0..AT_ONCE {
            begun.recv().await.expect("running work holds the sender");
        }
        drop(release);
        let mut done = 0;
        while let Some(result) = tasks.join_next().await {
            done += usize::from(result.expect("none panics"));
        }
        assert_eq!((done, most.load(Ordering::SeqCst)), (AT_ONCE + WAITING_MAX, AT_ONCE));
    }
}
