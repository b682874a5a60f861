//! The shared log of a node: appends go to the stream, and all records of the stream, of this node and of
//! others, are copied to the node's journal and applied in order.
//!
//! It has three parts. The first two run on their own thread:
//! - `sequencer` decides: it packs the waiting transactions into one record at a time, appends it,
//!   and receives the records of the stream. It checks that these are contiguous and that each
//!   continues the hash chain. `driver` does its I/O.
//! - `copy` writes records to the journal and, once they are durable, applies them and responds.
//! - [`SharedLog`] is the handle.
//!
//! An append names the record that it must follow. If another node was faster, the append fails; its transactions
//! wait for that record, and those without a conflict are sent again. An append without a response is
//! repeated with the same predecessor, so it is stored at most once. The record found after that predecessor, ours or
//! another node's, shows the outcome.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::copy::Copier;
use super::driver::{self, Driver};
use super::record::{Chain, SharedPosition, TRANSACTION_BYTES_MAX};
use super::replica::{COPIES_MAX, Command, WAITING_MAX};
pub use super::replica::{Condition, CutOff, Done, Replica, Submission};
use super::sequencer::Sequencer;
pub use super::sequencer::Waits;
use super::stream::Stream;
use crate::journal::{AppendError, Journal};

/// Handle of a node's shared log.
pub struct SharedLog<T> {
    commands: mpsc::Sender<Command<T>>,
    applied: watch::Receiver<SharedPosition>,
    condition: watch::Receiver<Condition>,
    closing: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Send + 'static> SharedLog<T> {
    /// Starts the log of the node `node`. `applied` is the position of the state, and `chains` are
    /// the known chains of the records before it, oldest first.
    ///
    /// # Errors
    /// The thread cannot be started, or the system returns no random bytes.
    pub fn start<S: Stream, R: Replica<Transaction = T>>(
        node: &str,
        stream: S,
        journal: &Arc<Journal>,
        replica: R,
        (applied, chains): (SharedPosition, Vec<Chain>),
        waits: Waits,
    ) -> std::io::Result<SharedLog<T>> {
        let (commands, asked) = mpsc::channel(WAITING_MAX);
        let (applied_to, applied_now) = watch::channel(applied);
        let (condition, condition_now) =
            watch::channel(Condition { taken: applied, ..Condition::default() });
        let condition = Arc::new(condition);
        let (closing, closed) = watch::channel(false);
        let replica = Arc::new(replica);
        let copier = Copier {
            journal: Arc::clone(journal),
            replica: Arc::clone(&replica),
            applied: Arc::new(applied_to),
            condition: Arc::clone(&condition),
            closing: closed.clone(),
        };
        let mut first_id = [0; 16];
        getrandom::fill(&mut first_id).map_err(std::io::Error::other)?;
        let start = (waits, u128::from_le_bytes(first_id), driver::now());
        let sequencer =
            Sequencer::new(node.to_owned(), Arc::clone(&replica), applied, chains, start);
        let (copies, to_copy) = mpsc::channel(COPIES_MAX);
        let driver = Driver {
            stream: Arc::new(stream),
            replica,
            commands: asked,
            copies,
            applied: applied_now.clone(),
            condition,
            closed,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("shared-log".into()).spawn(move || {
            runtime.block_on(async move {
                let copying = tokio::spawn(copier.run(to_copy));
                driver.run(sequencer).await;
                // Records that were already received are still written.
                let _ = copying.await;
            });
        })?;
        Ok(SharedLog {
            commands,
            applied: applied_now,
            condition: condition_now,
            closing,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Appends a transaction. It is stored once, even if nodes fail or responses are lost. `done` is called when
    /// the transaction is applied on this node, when it is refused, or when its outcome remains unknown.
    ///
    /// # Errors
    /// [`AppendError`]; `done` is not called.
    pub fn submit(&self, submission: Submission<T>) -> Result<(), AppendError> {
        let len = submission.payload.len();
        if len > TRANSACTION_BYTES_MAX {
            return Err(AppendError::TooLong { len });
        }
        self.health()?;
        self.send(Command::Append(submission))
    }

    /// Waits until everything that any node wrote before this call is applied here.
    ///
    /// # Errors
    /// [`AppendError`]: the stream cannot be reached, or this node is halted.
    pub async fn barrier(&self) -> Result<(), AppendError> {
        self.ask_barrier()?.await.unwrap_or(Err(AppendError::Closed))
    }

    /// As [`SharedLog::barrier`], for code that is not async.
    ///
    /// # Errors
    /// As [`SharedLog::barrier`].
    pub fn barrier_blocking(&self) -> Result<(), AppendError> {
        self.ask_barrier()?.blocking_recv().unwrap_or(Err(AppendError::Closed))
    }

    /// A node that has been cut off from the stream for a while refuses writes at once.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn check_reachable(&self) -> Result<(), AppendError> {
        self.health()?;
        if self.condition.borrow().refuses_writes(driver::now()) {
            return Err(AppendError::Unreachable);
        }
        Ok(())
    }

    fn ask_barrier(&self) -> Result<oneshot::Receiver<Result<(), AppendError>>, AppendError> {
        self.check_reachable()?;
        let (answer, answered) = oneshot::channel();
        self.send(Command::Barrier(answer))?;
        Ok(answered)
    }

    fn send(&self, command: Command<T>) -> Result<(), AppendError> {
        self.commands.try_send(command).map_err(|err| match err {
            mpsc::error::TrySendError::Full(_) => AppendError::Busy,
            mpsc::error::TrySendError::Closed(_) => AppendError::Closed,
        })
    }

    /// Returns the position up to which records are applied.
    pub fn applied(&self) -> SharedPosition {
        *self.applied.borrow()
    }

    /// Waits until the record `seq` is applied. Returns false if that takes longer than `wait`.
    pub async fn reaches(&self, seq: u64, wait: Duration) -> bool {
        let mut applied = self.applied.clone();
        let reached = applied.wait_for(|applied| applied.seq >= seq);
        tokio::time::timeout(wait, reached).await.is_ok_and(|reached| reached.is_ok())
    }

    /// Returns the health of the log.
    pub fn condition(&self) -> Condition {
        self.condition.borrow().clone()
    }

    /// Checks that appends are accepted.
    ///
    /// # Errors
    /// [`AppendError::Halted`] or [`AppendError::Closed`].
    pub fn health(&self) -> Result<(), AppendError> {
        if *self.closing.borrow() {
            return Err(AppendError::Closed);
        }
        match &self.condition.borrow().halted {
            Some(reason) => Err(AppendError::Halted { reason: reason.clone() }),
            None => Ok(()),
        }
    }
}

impl<T> SharedLog<T> {
    /// Closes the log. Pending appends get a few seconds; later ones are refused.
    pub fn close(&self) {
        self.closing.send_replace(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has been logged.
            let _ = thread.join();
        }
    }
}

impl<T> Drop for SharedLog<T> {
    fn drop(&mut self) {
        self.close();
    }
}
