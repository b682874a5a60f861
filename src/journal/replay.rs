//! Receivers of a replay.

use super::frame::Record;

/// Result of reading a record; an error ends the replay.
pub type ReplayResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Receiver of a replay: the owner of the state that the records describe.
pub trait Replay {
    /// Discards all state. Called before the first chunk of each snapshot or, without a snapshot,
    /// before the first record. Chunks received earlier came from an unusable snapshot and must be
    /// discarded.
    fn reset(&mut self);

    /// Receives the chunks of the snapshot in order, as they were passed to
    /// [`super::SnapshotWriter::chunk`].
    ///
    /// # Errors
    /// The chunk cannot be used, which ends the replay.
    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult;

    /// Receives the records after the snapshot in order, except the journal's own.
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
