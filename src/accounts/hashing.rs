//! Password hashing beside the runtime: slow by design, so a few at once and a short queue.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::write::WriteError;

/// Hashes at once: each takes 19 MiB and a core for tens of milliseconds.
const AT_ONCE: usize = 2;
/// Requests that wait for one, about a second's worth. More are told to come again.
const WAITING_MAX: usize = 32;

/// Where passwords are hashed and compared.
pub(super) struct Hashing {
    slots: Arc<Semaphore>,
    /// One for each that works or waits.
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
    /// Does `work` when it is its turn. Work that was begun holds its slot to its end, whether
    /// anybody still waits for it or not.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`]: too many wait.
    pub(super) async fn run<T: Send + 'static>(
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
        // Not done only where the runtime ends.
        done.await.map_err(|_| WriteError::Overloaded)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn two_work_a_few_wait_and_the_rest_is_refused() {
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
            assert!(!done, "nothing was released yet");
            refused += 1;
        }
        for _ in 0..AT_ONCE {
            begun.recv().await.expect("work holds the sender");
        }
        drop(release);
        let mut done = 0;
        while let Some(result) = tasks.join_next().await {
            done += usize::from(result.expect("none panics"));
        }
        assert_eq!((done, most.load(Ordering::SeqCst)), (AT_ONCE + WAITING_MAX, AT_ONCE));
    }
}
