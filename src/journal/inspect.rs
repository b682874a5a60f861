//! Looks at a journal and changes nothing, for those who verify, count or print it.

use std::path::{Path, PathBuf};

use super::error::JournalError;
use super::frame::StoreUuid;
use super::fs::Fs;
use super::mark::{self, FoundMark};
use super::recovery::{Recovery, Replay, SegmentFacts, Visit, read_journal, read_records};
use super::segment::{SNAPSHOT_SUFFIX, io_error, list_numbered};
use super::snapshot::verify_snapshot;

/// What a journal holds, for those who look after it.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// As an open would report it.
    pub recovery: Recovery,
    /// The identity of the store; `None` for a new one.
    pub store_uuid: Option<StoreUuid>,
    /// Its segments, first to last.
    pub segments: Vec<SegmentFacts>,
    /// Its snapshots, oldest first, each read whole.
    pub snapshots: Vec<SnapshotFacts>,
    /// Its commit mark.
    pub mark: FoundMark,
}

/// A snapshot as an inspection shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// The file.
    pub path: PathBuf,
    /// The record it follows, by its name.
    pub seq: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The digest of the state in it, or what is wrong with it.
    pub state_digest: Result<[u8; 32], String>,
}

/// Reads the journal in `dir` as an open would, and changes nothing: neither cuts a torn tail nor
/// takes the lock, so a server that writes at the same time may show as one; see [`inspect_to`].
///
/// # Errors
/// [`JournalError`], as an open.
pub fn inspect(
    fs: &dyn Fs,
    dir: &Path,
    replay: &mut dyn Replay,
) -> Result<Inspection, JournalError> {
    inspection(fs, dir, None, replay)
}

/// As [`inspect`], up to record `seq`, which is known to be synced: what follows is not judged, so
/// that a server can have its own files read while it writes. A snapshot that it finishes meanwhile
/// may remove a segment that was to be read; then the disk says that it is not found.
///
/// # Errors
/// As [`inspect`]; records up to `seq` that are damaged or missing are refused as acknowledged.
pub fn inspect_to(
    fs: &dyn Fs,
    dir: &Path,
    seq: u64,
    replay: &mut dyn Replay,
) -> Result<Inspection, JournalError> {
    inspection(fs, dir, Some(seq), replay)
}

/// Visits every record that is left in `dir`, the journal's own and those before the snapshot among
/// them, with its segment and the offset it starts at; up to record `up_to`, if one is given, and
/// else to the end, which is judged as by an open. Changes nothing.
///
/// # Errors
/// [`JournalError`], as an open, and [`JournalError::Replay`] when `visit` refuses.
pub fn dump(
    fs: &dyn Fs,
    dir: &Path,
    up_to: Option<u64>,
    visit: &mut Visit<'_>,
) -> Result<Recovery, JournalError> {
    read_records(fs, dir, up_to, visit)
}

fn inspection(
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
