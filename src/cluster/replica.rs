//! Types that the parts of the shared log share: the state that they change, and the commands of the handle.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::record::{Part, SharedPosition};
use crate::journal::{AppendError, Appended, Kind, Position};

/// Transactions that wait at most. More means that the stream does not keep up.
pub(super) const WAITING_MAX: usize = 8_192;

/// Writes wait for so long while the stream cannot be reached: servers elect another leader within seconds.
const WRITES_WAIT: Duration = Duration::from_secs(5);

/// A node that lacks a record for longer is behind.
const LAG_MAX: Duration = Duration::from_secs(10);

/// Records that wait to be copied at most, of up to a megabyte each.
pub(super) const COPIES_MAX: usize = 64;

/// The state that the log changes.
pub trait Replica: Send + Sync + 'static {
    /// Changes that belong together.
    type Transaction: Send + 'static;

    /// Returns the time for a record of this node, in Unix time.
    fn now_ms(&self) -> u64;

    /// Called when all records that the stream had at the start are taken in, with the time of the last of them.
    fn caught_up(&self, newest_ms: Option<u64>);

    /// Decodes a transaction of another node.
    ///
    /// # Errors
    /// This version does not know it.
    fn decode(
        &self,
        part: Part<'_>,
    ) -> Result<Self::Transaction, Box<dyn std::error::Error + Send + Sync>>;

    /// Returns keys of what a transaction changes. One that was decided before another node changed the
    /// same is refused.
    fn touched(&self, transaction: &Self::Transaction) -> Vec<u64>;

    /// Applies transactions up to a position of the shared log, at once. `at` is that of the journal.
    fn apply(&self, transactions: Vec<Self::Transaction>, shared: SharedPosition, at: Position);
}

/// Called once with the outcome.
pub type Done = Box<dyn FnOnce(Result<Appended, AppendError>) + Send>;

/// A transaction to append.
pub struct Submission<T> {
    pub transaction: T,
    pub kind: Kind,
    pub payload: Vec<u8>,
    /// See [`Replica::touched`].
    pub touched: Vec<u64>,
    /// The record up to which the state was known when it was decided.
    pub since: u64,
    pub done: Done,
}

/// A command of the handle to the sequencer.
pub(super) enum Command<T> {
    Append(Submission<T>),
    /// Answers once the last record of the stream is applied.
    Barrier(oneshot::Sender<Result<(), AppendError>>),
}

/// A node that cannot write to the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    pub error: String,
    pub since: Instant,
}

impl Condition {
    /// Whether this node has had all records within the last seconds.
    pub fn is_complete(&self, now: Instant) -> bool {
        self.is_caught_up && self.complete_at.is_some_and(|at| now.duration_since(at) < LAG_MAX)
    }

    /// Whether writes are refused because the stream is unreachable. They wait for a moment first.
    pub fn refuses_writes(&self, now: Instant) -> bool {
        let since = self.cut_off.as_ref().map(|it| it.since);
        self.halted.is_some() || since.is_some_and(|at| now.duration_since(at) > WRITES_WAIT)
    }
}

/// Health of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The last record that this node has taken in. It may not be applied yet.
    pub taken: SharedPosition,
    /// Whether all records that the stream had at the start are taken in.
    pub is_caught_up: bool,
    /// When all records that the stream had were last taken in; `None` before the first time since the start.
    pub complete_at: Option<Instant>,
    /// Why the stream cannot be written, and since when, if so.
    pub cut_off: Option<CutOff>,
    /// Why this node accepts no more writes, if so: its log and the stream differ.
    pub halted: Option<String>,
}
