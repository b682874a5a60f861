//! Receivers of a replay.

use super::frame::Record;

/// Result of reading a record; an error ends the replay.
pub type ReplayResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Receiver of a replay: the owner of the state that the records describe.
pub trait Replay {
    /// Discards all state. Called before the first chunk of every snapshot, and before the first
    /// record otherwise; earlier chunks came from an unusable snapshot.
    fn reset(&mut self);

    /// Receives a chunk of the snapshot, as passed to [`super::SnapshotWriter::chunk`], in order.
    ///
    /// # Errors
    /// The chunk cannot be used, which ends the replay.
    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult;

    /// Receives a record of the caller's kinds after the snapshot, in order.
    ///
    /// # Errors
    /// As [`Replay::chunk`].
    fn record(&mut self, record: &Record<'_>) -> ReplayResult;
}

/// Receiver that keeps nothing, to verify a journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unread;

impl Replay for Unread {
    fn reset(&mut self) {}

    fn chunk(&mut self, _bytes: &[u8]) -> ReplayResult {
        Ok(())
    }

    fn record(&mut self, _record: &Record<'_>) -> ReplayResult {
        Ok(())
    }
}
