//! Types that the parts of the shared log share: the state that they change, and the commands of the handle.

use std::time::Instant;

use tokio::sync::oneshot;

use super::record::{Part, SharedPosition};
use crate::journal::{AppendError, Appended, Kind, Position};

/// Transactions that wait at most. More means that the stream does not keep up.
pub(super) const WAITING_MAX: usize = 8_192;

/// Records that wait to be copied at most, of up to a megabyte each.
pub(super) const COPIES_MAX: usize = 64;

/// The state that the log changes.
pub trait Replica: Send + Sync + 'static {
    /// Changes that belong together.
    type Transaction: Send + 'static;

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

/// Health of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The last record that this node has taken in. It may not be applied yet.
    pub taken: SharedPosition,
    /// Whether all records that the stream had at the start are taken in.
    pub is_caught_up: bool,
    /// Why the stream cannot be written, and since when, if so.
    pub cut_off: Option<CutOff>,
    /// Why this node accepts no more writes, if so: its log and the stream differ.
    pub halted: Option<String>,
}
