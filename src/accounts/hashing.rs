//! Password hashing on blocking threads. Hashing is slow by design, so few hashes run at once.
//! Attempts wait in a short queue, in which networks take turns. Known networks have their own
//! places and turn, so that guesses from many networks do not lock customers out
//! (`data/docs/accounts.md`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use metrics::counter;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::error::WriteError;

/// Maximum concurrent hashes: each hash takes 19 MiB and occupies a core for tens of milliseconds.
const AT_ONCE: usize = 2;
/// Maximum number of waiting attempts: one limit for known networks, the same for all others. Each
/// limit is a few seconds of work.
const WAITING_MAX: usize = 64;
/// Maximum number of consecutive attempts of known networks while others wait.
const KNOWN_IN_A_ROW: usize = 3;

/// The requester of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The client's network; attempts of one network wait for each other.
    pub network: u64,
    /// Whether this network has logged in to this account before.
    pub is_known: bool,
}

impl Attempt {
    /// The requester at the first visit to a single-user server. No account exists yet whose
    /// password could be guessed.
    pub const FIRST_VISIT: Attempt = Attempt { network: 0, is_known: true };
}

/// Limits concurrent and queued hashing.
#[derive(Default)]
pub struct Hashing {
    /// Locked only for updates.
    queue: Arc<Mutex<HashQueue>>,
}

#[derive(Default)]
struct HashQueue {
    running: usize,
    known: WaitingAttempts,
    others: WaitingAttempts,
    /// Attempts of known networks since the last one of another network.
    known_in_a_row: usize,
}

/// A slot for one hash, which goes to the next attempt on drop.
struct Slot(Arc<Mutex<HashQueue>>);

/// Waiting attempts by network. Networks take turns.
#[derive(Default)]
struct WaitingAttempts {
    /// Queues by network. Invariant: none is empty.
    networks: VecDeque<(u64, VecDeque<oneshot::Sender<Slot>>)>,
}

impl WaitingAttempts {
    fn len(&self) -> usize {
        self.networks.iter().map(|(_, attempts)| attempts.len()).sum()
    }

    /// Adds an attempt. If all places are taken, the network with the most attempts loses its
    /// newest one.
    fn push(&mut self, network: u64, attempt: oneshot::Sender<Slot>) {
        if self.len() >= WAITING_MAX {
            self.retain(|attempt| !attempt.is_closed());
        }
        match self.networks.iter_mut().find(|(other, _)| *other == network) {
            Some((_, attempts)) => attempts.push_back(attempt),
            None => self.networks.push_back((network, VecDeque::from([attempt]))),
        }
        if self.len() > WAITING_MAX {
            // Removes the last entry of the longest queue, or the new one if every network has one
            // attempt.
            let longest = self.networks.iter_mut().max_by_key(|(_, attempts)| attempts.len());
            longest.and_then(|(_, attempts)| attempts.pop_back());
            self.retain(|_| true);
        }
    }

    /// Removes the next attempt.
    fn pop(&mut self) -> Option<oneshot::Sender<Slot>> {
        let (network, mut attempts) = self.networks.pop_front()?;
        let next = attempts.pop_front();
        if !attempts.is_empty() {
            self.networks.push_back((network, attempts));
        }
        next
    }

    fn retain(&mut self, keep: impl Fn(&oneshot::Sender<Slot>) -> bool) {
        for (_, attempts) in &mut self.networks {
            attempts.retain(&keep);
        }
        self.networks.retain(|(_, attempts)| !attempts.is_empty());
    }
}

impl HashQueue {
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let is_turn_of_others = self.known_in_a_row >= KNOWN_IN_A_ROW;
        let other = if is_turn_of_others { self.others.pop() } else { None };
        if let Some(known) = other.is_none().then(|| self.known.pop()).flatten() {
            self.known_in_a_row += 1;
            return Some(known);
        }
        self.known_in_a_row = 0;
        other.or_else(|| self.others.pop())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.0).running -= 1;
        hand_out(&self.0);
    }
}

/// Gives free slots to waiting attempts.
fn hand_out(queue: &Arc<Mutex<HashQueue>>) {
    loop {
        let next = {
            let mut queue = lock(queue);
            if queue.running >= AT_ONCE {
                return;
            }
            let Some(next) = queue.next() else { return };
            queue.running += 1;
            next
        };
        // If the client has disconnected, the slot is returned after the lock is released.
        let _ = next.send(Slot(Arc::clone(queue)));
    }
}

fn lock(queue: &Mutex<HashQueue>) -> MutexGuard<'_, HashQueue> {
    queue.lock().expect("no code panics holding this lock")
}

impl Hashing {
    /// Runs `work` once the attempt gets its turn. Running work keeps its slot to the end, even if
    /// the caller stops waiting.
    ///
    /// # Errors
    /// [`WriteError::Overloaded`]: the queue is full.
    pub async fn run<T: Send + 'static>(
        &self,
        attempt: Attempt,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WriteError> {
        let turn = self.wait(attempt);
        let Ok(slot) = turn.await else {
            counter!("dropdex_sheds_total", "class" => "log_in").increment(1);
            return Err(WriteError::Overloaded);
        };
        let done = spawn_blocking(move || {
            let _slot = slot;
            work()
        });
        // The result is missing only if the runtime is shutting down.
        done.await.map_err(|_| WriteError::Overloaded)
    }

    fn wait(&self, Attempt { network, is_known }: Attempt) -> oneshot::Receiver<Slot> {
        let (sender, turn) = oneshot::channel();
        {
            let mut queue = lock(&self.queue);
            let line = if is_known { &mut queue.known } else { &mut queue.others };
            line.push(network, sender);
        }
        hand_out(&self.queue);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(network: u64) -> Attempt {
        Attempt { network, is_known: false }
    }

    fn known(network: u64) -> Attempt {
        Attempt { network, is_known: true }
    }

    /// Returns queued attempts by name, in the order in which they get their slot.
    struct Waiting(Vec<(&'static str, oneshot::Receiver<Slot>)>);

    impl Waiting {
        /// Takes the slots of the waiters that have their turn.
        fn take(&mut self) -> Vec<(&'static str, Slot)> {
            let mut taken = Vec::new();
            self.0.retain_mut(|(name, turn)| match turn.try_recv() {
                Ok(slot) => {
                    taken.push((*name, slot));
                    false
                }
                Err(_) => true,
            });
            taken
        }
    }

    #[test]
    fn two_hashes_run_at_once_and_networks_take_turns() {
        let hashing = Hashing::default();
        let mut waiting = Waiting(Vec::new());
        for (name, network) in [("a1", 1), ("a2", 1), ("a3", 1), ("a4", 1), ("b", 2), ("c", 3)] {
            waiting.0.push((name, hashing.wait(stranger(network))));
        }
        let mut running = waiting.take();
        let mut order: Vec<&str> = running.iter().map(|(name, _)| *name).collect();
        assert_eq!(order, ["a1", "a2"], "two at once, in order");
        while let Some((_, slot)) = running.pop() {
            drop(slot);
            let next = waiting.take();
            order.extend(next.iter().map(|(name, _)| *name));
            running.extend(next);
        }
        assert_eq!(order, ["a1", "a2", "a3", "b", "c", "a4"]);
    }

    #[test]
    fn guesses_from_many_networks_do_not_keep_out_a_known_one() {
        let hashing = Hashing::default();
        let guesses: Vec<_> = (0..1_000).map(|network| hashing.wait(stranger(network))).collect();
        let mut owner = hashing.wait(known(7));
        assert!(owner.try_recv().is_err(), "both slots are taken");
        let mut guesses = guesses.into_iter();
        drop(guesses.next());
        assert!(owner.try_recv().is_ok(), "the next slot is the owner's");
        let turns: Vec<_> = guesses.map(|mut turn| turn.try_recv()).collect();
        let waiting =
            turns.iter().filter(|turn| matches!(turn, Err(oneshot::error::TryRecvError::Empty)));
        // The owner's slot was freed and went to one of them.
        assert_eq!(waiting.count(), WAITING_MAX - 1);
    }

    #[test]
    fn known_networks_leave_a_turn_to_others() {
        let hashing = Hashing::default();
        let running: Vec<_> = (0..AT_ONCE as u64).map(|it| hashing.wait(known(it))).collect();
        let mut regulars: Vec<_> = (10..20).map(|it| hashing.wait(known(it))).collect();
        let mut newcomer = hashing.wait(stranger(1));
        drop(running);
        for regular in &mut regulars {
            drop(regular.try_recv());
            if newcomer.try_recv().is_ok() {
                return;
            }
        }
        panic!("the newcomer waits for all of them");
    }

    #[test]
    fn a_full_queue_refuses_the_network_that_fills_it() {
        let hashing = Hashing::default();
        let _running: Vec<_> = (0..AT_ONCE as u64).map(|it| hashing.wait(stranger(it))).collect();
        let mut flood: Vec<_> = (0..WAITING_MAX).map(|_| hashing.wait(stranger(9))).collect();
        let mut newcomer = hashing.wait(stranger(10));
        assert_eq!(newcomer.try_recv().err(), Some(oneshot::error::TryRecvError::Empty));
        let last = flood.last_mut().expect("many").try_recv();
        assert_eq!(last.err(), Some(oneshot::error::TryRecvError::Closed));
        drop(flood);
        let mut more: Vec<_> = (20..20 + WAITING_MAX as u64 - 1)
            .map(|network| hashing.wait(stranger(network)))
            .collect();
        let is_refused = more
            .iter_mut()
            .any(|turn| turn.try_recv().err() == Some(oneshot::error::TryRecvError::Closed));
        assert!(!is_refused, "disconnected clients free their places");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn running_work_keeps_its_slot_after_a_disconnect() {
        let hashing = Arc::new(Hashing::default());
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let task = tokio::spawn({
            let hashing = Arc::clone(&hashing);
            async move {
                let work = move || {
                    let _ = begin.send(());
                    let _ = released.recv();
                };
                hashing.run(stranger(1), work).await.is_ok()
            }
        });
        begun.await.expect("it begins");
        task.abort();
        let _ = task.await;
        assert_eq!(lock(&hashing.queue).running, 1);
        drop(release);
        while lock(&hashing.queue).running > 0 {
            tokio::task::yield_now().await;
        }
    }
}
