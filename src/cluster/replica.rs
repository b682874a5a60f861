//! Types shared by the parts of the log: the replica that it changes, its condition, and the commands of the handle.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::record::{Part, SharedPosition};
use crate::journal::{AppendError, Appended, Position, RecordKind};

/// Maximum number of waiting transactions. Reaching the limit means that the stream does not keep
/// up.
pub(super) const WAITING_MAX: usize = 8_192;

/// Time that writes wait while the stream is unreachable: servers elect another leader within seconds.
const WRITES_WAIT: Duration = Duration::from_secs(5);

/// Time after which a node that lacks records counts as behind.
const LAG_MAX: Duration = Duration::from_secs(10);

/// Maximum number of records, of up to a megabyte each, that wait to be copied.
pub(super) const COPIES_MAX: usize = 64;

/// The state that the log changes.
pub trait Replica: Send + Sync + 'static {
    /// Changes that are applied together.
    type Transaction: Send + 'static;

    /// Returns the Unix time for a new record.
    fn now_ms(&self) -> u64;

    /// Called once all records that the stream had at the start are received, with the time of the last one.
    fn caught_up(&self, newest_ms: Option<u64>);

    /// Decodes a transaction of another node.
    ///
    /// # Errors
    /// This version does not know it.
    fn decode(
        &self,
        part: Part<'_>,
    ) -> Result<Self::Transaction, Box<dyn std::error::Error + Send + Sync>>;

    /// Returns the keys that a transaction changes. A transaction is refused as a conflict if
    /// another node has changed one of its keys since it was decided.
    fn touched(&self, transaction: &Self::Transaction) -> Vec<u64>;

    /// Applies the transactions up to the position `shared` of the shared log in one step: readers see the
    /// changes of all of them or of none. `at` is the position in the journal.
    fn apply(&self, transactions: Vec<Self::Transaction>, shared: SharedPosition, at: Position);
}

/// A callback that receives the outcome once.
pub type Done = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;

/// A transaction to append.
pub struct Submission<T> {
    pub transaction: T,
    pub kind: RecordKind,
    pub payload: Vec<u8>,
    /// See [`Replica::touched`].
    pub touched: Vec<u64>,
    /// The record that was last applied when the transaction was decided.
    pub since: u64,
    pub done: Done,
}

/// A command of the handle to the sequencer.
pub(super) enum Command<T> {
    Append(Submission<T>),
    /// Responds once the last record of the stream is applied.
    Barrier(oneshot::Sender<Result<(), AppendError>>),
}

/// Why and since when a node cannot write to the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    pub error: String,
    pub since: Instant,
}

impl Condition {
    /// Returns true if this node had all records at some time in the last few seconds.
    pub fn is_complete(&self, now: Instant) -> bool {
        self.is_caught_up && self.complete_at.is_some_and(|at| now.duration_since(at) < LAG_MAX)
    }

    /// Returns true if writes are refused. If the stream is unreachable, they wait for a moment first.
    pub fn refuses_writes(&self, now: Instant) -> bool {
        let since = self.cut_off.as_ref().map(|it| it.since);
        self.halted.is_some() || since.is_some_and(|at| now.duration_since(at) > WRITES_WAIT)
    }
}

/// Health of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The last record that this node has received. The record may not be applied yet.
    pub taken: SharedPosition,
    /// Whether all records that the stream had at the start are received.
    pub is_caught_up: bool,
    /// When this node last had all records of the stream; `None` if it has not had them since the
    /// start.
    pub complete_at: Option<Instant>,
    /// Set while the stream cannot be written to.
    pub cut_off: Option<CutOff>,
    /// Why this node refuses all further writes: its log and the stream diverged.
    pub halted: Option<String>,
}
