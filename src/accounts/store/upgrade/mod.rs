//! Converts a journal whose rows were stored by position, as versions before 0.1 wrote them. This
//! module is kept for one version.
//!
//! The former events are converted and replayed. The resulting state is written as a snapshot at
//! the position of the journal, with the journal's identity, its sequence numbers and its place in
//! the shared log.

mod event;
mod rows;
mod snapshot;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::snapshot::write_chunks;
use super::state::State;
use crate::cluster::record::{SHARED, SharedPosition, SharedRecord, copies};
use crate::data::nodes::Nodes;
use crate::event::FORMER;
use crate::journal::fs::Fs;
use crate::journal::{
    JournalError, Record, RecordKind, Replay, ReplayResult, SnapshotReport, inspect, write_backup,
};
use snapshot::Pending;

type ReadResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Writes the state of the former journal in `dir` to the backup `file` in the present layout. If
/// the journal has the present layout, it writes nothing and returns `None`.
///
/// # Errors
/// [`JournalError`]: the journal is damaged, or the disk failed.
pub fn back_up_former(
    fs: &dyn Fs,
    dir: &Path,
    file: &Path,
) -> Result<Option<SnapshotReport>, JournalError> {
    let mut former = Former::default();
    let found = inspect(fs, dir, None, &mut former)?;
    let Some(uuid) = found.store_uuid.filter(|_| former.is_former) else { return Ok(None) };
    let position = found.recovery.position;
    former.pending.finish(&mut former.state);
    former.state.begin(position);
    let state = former.state.freeze();
    write_backup(fs, file, uuid, position, |write| write_chunks(&state, write)).map(Some)
}

/// The state that results from a former journal.
#[derive(Default)]
struct Former {
    state: State,
    pending: Pending,
    /// Whether any data had the former layout.
    is_former: bool,
}

impl Former {
    /// Applies a transaction, and keeps the place in the shared log.
    fn apply(&mut self, kind: RecordKind, payload: &[u8]) -> ReadResult<()> {
        if !FORMER.contains(&kind.number()) {
            return Err("the journal has records of both layouts".into());
        }
        self.is_former = true;
        for event in event::decode(kind, payload)? {
            if let Some(event) = event::converted(event, &self.state) {
                self.state.apply_event(event);
            }
        }
        Ok(())
    }
}

impl Replay for Former {
    fn reset(&mut self) {
        *self = Former::default();
    }

    fn chunk(&mut self, bytes: &[u8]) -> ReplayResult {
        self.is_former |= bytes.first() == Some(&0);
        if self.is_former { self.pending.chunk(&mut self.state, bytes) } else { Ok(()) }
    }

    fn record(&mut self, record: &Record<'_>) -> ReplayResult {
        self.pending.finish(&mut self.state);
        let fields = record.fields;
        if fields.kind != SHARED {
            if !self.is_former && !FORMER.contains(&fields.kind.number()) {
                return Ok(());
            }
            self.apply(fields.kind, record.payload)?;
            // From here on, the data is not a copy of a shared log.
            self.state.shared = SharedPosition::default();
            self.state.nodes = Nodes::default();
            return Ok(());
        }
        for (seq, bytes) in copies(record.payload)? {
            for (kind, payload) in SharedRecord::decode(bytes)?.parts {
                if !self.is_former && !FORMER.contains(&kind.number()) {
                    return Ok(());
                }
                self.apply(kind, payload)?;
            }
            self.state.shared = SharedPosition::after(seq, bytes);
        }
        Ok(())
    }
}
