//! The part of the store that its threads share, and its log.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use chrono::DateTime;
use compact_str::CompactString;
use tokio::sync::oneshot;

use super::snapshot::digest;
use super::state::{Frozen, State};
use super::wakes::Wakes;
use crate::cluster::facts::Checkpoint;
use crate::cluster::log::{Replica, SharedLog, Submission};
use crate::cluster::record::{Part, SharedPosition};
use crate::data::nodes::Publication;
use crate::event::{Transaction, of_leader};
use crate::journal::fs::Fs;
use crate::journal::{AppendError, AppendFuture, Appended, Journal, Position};
use crate::vocab::clock::Clock;
use crate::vocab::time::UnixMs;

/// Number of checkpoints whose digests a node keeps.
const CHECKPOINTS_KEPT: usize = 8;

pub struct Shared {
    /// The journal: all applied records, on this machine's disk.
    pub journal: Arc<Journal>,
    /// The log of a cluster, of which the journal is then a copy. `None` for a single node.
    pub log: Option<SharedLog<Transaction>>,
    /// `None` for a single node.
    pub leadership: Option<Leadership>,
    /// The journal's folder and disk, for inspections of its files.
    pub dir: PathBuf,
    pub fs: Arc<dyn Fs>,
    /// The state. Only the journal's thread changes it, once a record is durable. Locked for one
    /// look-up or one transaction.
    pub state: Arc<RwLock<State>>,
    pub checkpoints: Checkpoints,
}

/// The name of this node, and the term in which it leads.
pub struct Leadership {
    pub node: CompactString,
    /// The term in which this process took the lead; 0 if it has not. An earlier process may have
    /// left work unfinished.
    pub term: AtomicU64,
}

impl Leadership {
    pub fn of(node: &str) -> Leadership {
        Leadership { node: node.into(), term: AtomicU64::new(0) }
    }
}

/// The basis of the decision on a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    /// The last record that the decision took into account. If another node has made a later
    /// change, the transaction conflicts with it.
    pub since: u64,
    /// Whether the transaction also conflicts with a change of leader since then.
    pub by_leader: bool,
}

impl Basis {
    /// The transaction conflicts with no change of other nodes.
    pub const ANY: Basis = Basis::owner(u64::MAX);

    pub const fn owner(since: u64) -> Basis {
        Basis { since, by_leader: false }
    }
}

/// An append that is under way.
pub enum Append {
    Local(AppendFuture),
    Shared(oneshot::Receiver<Result<Appended, AppendError>>),
}

impl Append {
    /// Waits until the append is durable and applied.
    ///
    /// # Errors
    /// [`AppendError`].
    pub async fn durable(self) -> Result<(), AppendError> {
        match self {
            Append::Local(append) => append.durable().await.map(drop),
            Append::Shared(answered) => {
                answered.await.unwrap_or(Err(AppendError::Unknown)).map(drop)
            }
        }
    }
}

impl Shared {
    /// Appends a transaction and applies it once it is durable. `after` runs once it is applied, and is dropped if
    /// it is refused.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn append(
        &self,
        transaction: Transaction,
        Basis { since, by_leader }: Basis,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<Append, AppendError> {
        let (kind, payload) = transaction.encode();
        let Some(log) = &self.log else {
            let apply = self.applying(transaction, after);
            return self.journal.append_async(kind, payload, apply).map(Append::Local);
        };
        self.journal.health()?;
        let (answer, answered) = oneshot::channel();
        let done = move |result: Result<Appended, AppendError>| {
            if result.is_ok() {
                after();
            }
            // The caller may have stopped waiting; the record is durable anyway.
            let _ = answer.send(result);
        };
        let (mut touched, done) = (transaction.touched(), Box::new(done));
        touched.extend(by_leader.then(of_leader));
        log.submit(Submission { transaction, kind, payload, touched, since, done })?;
        Ok(Append::Shared(answered))
    }

    /// As [`Shared::append`], for code that is not async: waits until the append is durable and applied.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn append_blocking(
        &self,
        transaction: Transaction,
        basis: Basis,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<(), AppendError> {
        if self.log.is_none() {
            let (kind, payload) = transaction.encode();
            let apply = self.applying(transaction, after);
            return self.journal.append(kind, payload, apply).map(drop);
        }
        match self.append(transaction, basis, after)? {
            Append::Shared(answered) => {
                answered.blocking_recv().unwrap_or(Err(AppendError::Unknown)).map(drop)
            }
            Append::Local(_) => unreachable!("there is a shared log"),
        }
    }

    /// Appends a transaction without waiting.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn append_lazy(
        &self,
        transaction: Transaction,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<(), AppendError> {
        if self.log.is_some() {
            return self.append(transaction, Basis::ANY, after).map(drop);
        }
        let (kind, payload) = transaction.encode();
        self.journal.append_lazy(kind, payload, self.applying(transaction, after))
    }

    /// Returns the function that applies a transaction once it is durable.
    fn applying(
        &self,
        transaction: Transaction,
        after: impl FnOnce() + Send + 'static,
    ) -> impl FnOnce(Appended) + Send + 'static {
        let state = Arc::clone(&self.state);
        move |appended| {
            let mut state = state.write().unwrap_or_else(PoisonError::into_inner);
            state.apply(transaction, appended.position);
            drop(state);
            after();
        }
    }

    /// Fails at once while writes cannot reach the shared log.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn check_reachable(&self) -> Result<(), AppendError> {
        let Some(log) = &self.log else { return Ok(()) };
        // If the record could not be copied here, it would be stored in the shared log, but its
        // caller would get no response.
        self.journal.health()?;
        log.check_reachable()
    }

    /// Returns the last record that is applied here. If another node changes the data later, that
    /// conflicts with a decision made now.
    pub fn since(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.applied().seq)
    }

    /// Waits until all earlier writes of any node are applied here.
    ///
    /// # Errors
    /// [`AppendError`].
    pub async fn barrier(&self) -> Result<(), AppendError> {
        match &self.log {
            Some(log) => log.barrier().await,
            None => Ok(()),
        }
    }

    /// As [`Shared::barrier`], for code that is not async.
    ///
    /// # Errors
    /// As [`Shared::barrier`].
    pub fn barrier_blocking(&self) -> Result<(), AppendError> {
        match &self.log {
            Some(log) => log.barrier_blocking(),
            None => Ok(()),
        }
    }

    /// Checks that appends are accepted.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn health(&self) -> Result<(), AppendError> {
        self.journal.health()?;
        self.log.as_ref().map_or(Ok(()), SharedLog::health)
    }

    /// Closes the logs in order.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn close(&self) -> Result<(), AppendError> {
        if let Some(log) = &self.log {
            log.close();
        }
        self.journal.close()
    }
}

/// Callback for the record that puts files into use. The callback runs while the state is locked.
pub type OnServe = Arc<dyn Fn(&Publication, u64) + Send + Sync>;

/// The state of this node, which the shared log changes. Clones share it.
#[derive(Clone)]
pub struct StateReplica {
    pub state: Arc<RwLock<State>>,
    pub wakes: Wakes,
    pub checkpoints: Checkpoints,
    pub on_serve: OnServe,
    pub clock: Clock,
}

impl StateReplica {
    pub fn new(state: State, clock: Clock) -> StateReplica {
        StateReplica {
            state: Arc::new(RwLock::new(state)),
            wakes: Wakes::default(),
            checkpoints: Checkpoints::default(),
            on_serve: Arc::new(|_, _| {}),
            clock,
        }
    }
}

/// The last checkpoints of a node, oldest first. Clones share the list.
#[derive(Clone, Default)]
pub struct Checkpoints(Arc<Mutex<VecDeque<Checkpoint>>>);

impl Checkpoints {
    /// Computes the digest of a state on its own thread, since it takes a second for a million rows.
    fn compute(&self, id: u64, state: Frozen) {
        let kept = Arc::clone(&self.0);
        let compute = move || {
            let digest = hex::encode(digest(&state));
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(Checkpoint { id, digest });
            if kept.len() > CHECKPOINTS_KEPT {
                kept.pop_front();
            }
        };
        if let Err(err) = thread::Builder::new().name("checkpoint".into()).spawn(compute) {
            tracing::warn!(error = %err, "cannot start a thread for a checkpoint");
        }
    }

    pub fn list(&self) -> Vec<Checkpoint> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Replica for StateReplica {
    type Transaction = Transaction;

    fn now_ms(&self) -> u64 {
        UnixMs::from_instant(self.clock.now()).get()
    }

    fn caught_up(&self, newest_ms: Option<u64>) {
        let newest = newest_ms.and_then(|it| i64::try_from(it).ok());
        self.clock.await_others();
        self.clock.start(newest.and_then(DateTime::from_timestamp_millis));
    }

    fn decode(
        &self,
        (kind, payload): Part<'_>,
    ) -> Result<Transaction, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Transaction::decode(kind, payload)?)
    }

    fn touched(&self, transaction: &Transaction) -> Vec<u64> {
        transaction.touched()
    }

    fn apply(&self, transactions: Vec<Transaction>, shared: SharedPosition, at: Position) {
        let wakes: Vec<_> = transactions.iter().map(|it| self.wakes.after(it)).collect();
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.nodes.served.first().cloned();
        state.apply_shared(transactions, shared, at, |id, frozen| {
            self.checkpoints.compute(id, frozen);
        });
        let served = state.nodes.served.first().filter(|it| before.as_ref() != Some(it)).cloned();
        // This is called before the new state can be read, so responses at this position use these
        // files.
        if let Some(publication) = served {
            (self.on_serve)(&publication, shared.seq);
        }
        drop(state);
        wakes.into_iter().for_each(|wake| wake());
    }
}
