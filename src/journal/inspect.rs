//! Reads a journal without changing it, to verify, count or print it.

use std::path::{Path, PathBuf};

use super::bytes::StoreUuid;
use super::error::JournalError;
use super::fs::Fs;
use super::mark::{self, FoundMark};
use super::recovery::{Recovery, SegmentFacts, read_journal};
use super::replay::Replay;
use super::segment::{SNAPSHOT_SUFFIX, io_error, list_numbered};
use super::snapshot::verify_snapshot;

/// Content of a journal.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The report of an open.
    pub recovery: Recovery,
    /// Identity of the store; `None` for a new one.
    pub store_uuid: Option<StoreUuid>,
    /// Segments of the journal, first to last.
    pub segments: Vec<SegmentFacts>,
    /// Snapshots of the journal, oldest first, each verified.
    pub snapshots: Vec<SnapshotFacts>,
    /// Its commit mark.
    pub mark: FoundMark,
}

/// A snapshot as an inspection shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// The file.
    pub path: PathBuf,
    /// The record that the snapshot follows, according to the file name.
    pub seq: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Digest of the state, or the damage to the snapshot.
    pub state_digest: Result<[u8; 32], String>,
}

/// Reads the journal in `dir` like an open, but without changes and without the lock. A write in
/// progress by another process may appear as a torn tail.
///
/// With `up_to`, a record that is known to be synced, later bytes are ignored, so that a server can
/// inspect its own files while it writes. A snapshot that finishes meanwhile may remove a segment,
/// which then causes a "not found" error.
///
/// # Errors
/// [`JournalError`], as for an open. Damaged or missing records up to `up_to` count as acknowledged.
pub fn inspect(
    fs: &dyn Fs,
    dir: &Path,
    up_to: Option<u64>,
    replay: &mut dyn Replay,
) -> Result<Inspection, JournalError> {
    let mut snapshots = Vec::new();
    for (seq, path) in list_numbered(fs, dir, SNAPSHOT_SUFFIX)? {
        let bytes = fs.len(&path).map_err(io_error("look at", &path))?;
        let state_digest = match verify_snapshot(fs, &path) {
            Ok(report) => Ok(report.state_digest),
            Err(err) => Err(err.to_string()),
        };
        snapshots.push(SnapshotFacts { path, seq, bytes, state_digest });
    }
    let mark = mark::read(fs, dir)?;
    let recovered = read_journal(fs, dir, up_to, replay)?;
    Ok(Inspection {
        store_uuid: recovered.store_uuid,
        segments: recovered.segments,
        snapshots,
        mark,
        recovery: recovered.report,
    })
}
