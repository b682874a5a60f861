//! Truncates a log that recovery refuses, for an operator who accepts the loss.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use super::error::JournalError;
use super::frame::Position;
use super::frame::SegmentHeader;
use super::fs::Fs;
use super::mark::{self, Mark};
use super::reader::walk;
use super::segment::{
    SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, copy, exists, folder_of, io_error, list_numbered, list_own,
    lock, remove_temporaries, rename_durably, replace,
};
use super::snapshot::{SnapshotHeader, read_snapshot};

/// Result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// Copy of the folder before the repair.
    pub copied_to: PathBuf,
    /// The last remaining record.
    pub last_seq: u64,
    /// Bytes removed from the end of its segment, including zeros.
    pub bytes_cut: u64,
    /// Removed segments and snapshots.
    pub removed: Vec<PathBuf>,
}

/// The planned end of the log.
struct Cut {
    header: SegmentHeader,
    path: PathBuf,
    position: Position,
    /// The segment up to the end.
    sound: Vec<u8>,
    bytes_cut: u64,
    /// Files to remove: later segments, then snapshots of later records.
    superfluous: Vec<PathBuf>,
}

/// Truncates the log in `dir` after record `truncate_after`. The whole folder is first copied to
/// `<dir>.before-repair-N`. A repair that a crash interrupted can be repeated.
///
/// # Errors
/// The folder is in use, the log is damaged before that record, the remaining log could not be
/// opened, or the disk failed.
pub fn repair(fs: &dyn Fs, dir: &Path, truncate_after: u64) -> Result<RepairReport, JournalError> {
    let _held = lock(fs, dir)?;
    let cut = plan(fs, dir, truncate_after)?;
    let copied_to = copy_folder(fs, dir)?;
    // Last segment first, so that the log never has gaps.
    for path in &cut.superfluous {
        fs.remove(path).map_err(io_error("remove", path))?;
        fs.sync_dir(dir).map_err(io_error("sync", dir))?;
    }
    replace(fs, &cut.path, &cut.sound)?;
    let counter = mark::read(fs, dir)?.sound().map_or(0, |mark| mark.counter) + 1;
    let (store_uuid, Position { seq, chain, .. }) = (cut.header.store_uuid, cut.position);
    mark::make(fs, dir, &Mark { store_uuid, counter, seq, chain })?;
    remove_temporaries(fs, dir)?;
    let (bytes_cut, removed) = (cut.bytes_cut, cut.superfluous);
    Ok(RepairReport { copied_to, last_seq: seq, bytes_cut, removed })
}

/// Finds the end; changes nothing.
fn plan(fs: &dyn Fs, dir: &Path, seq: u64) -> Result<Cut, JournalError> {
    let cannot = |reason| JournalError::Repair { dir: dir.to_owned(), seq, reason };
    let (kept, later): (Vec<_>, Vec<_>) =
        list_numbered(fs, dir, SNAPSHOT_SUFFIX)?.into_iter().partition(|(of, _)| *of <= seq);
    let snapshot = kept.iter().rev().find_map(|(_, path)| {
        read_snapshot(fs, path, &mut |_| Ok(())).ok().map(|verified| verified.header)
    });
    let segments = list_numbered(fs, dir, SEGMENT_SUFFIX)?;
    let mut before: Option<Position> = None;
    for (at, (_, path)) in segments.iter().enumerate() {
        let file = fs.read(path).map_err(io_error("read", path))?;
        let header = match SegmentHeader::decode(&file) {
            Ok(header) => header,
            Err(_) if before.is_some() => break,
            Err(source) => return Err(JournalError::Header { path: path.clone(), source }),
        };
        let start = match before {
            Some(position) => position,
            None => first_position(&header, snapshot.as_ref(), seq).map_err(cannot)?,
        };
        if (header.first_seq, header.prev_chain) != (start.seq + 1, start.chain) {
            break;
        }
        // If the log is damaged or ends early, the intact records before that point remain.
        let Ok(sound) =
            walk(&file, &header.store_uuid, start, Some(seq), |_, _| Ok::<_, Infallible>(()));
        let (position, end) = (sound.position, sound.offset as usize);
        if position.seq == seq {
            let segments_later = segments[at + 1..].iter().rev();
            let superfluous = segments_later.chain(later.iter().rev());
            return Ok(Cut {
                header,
                path: path.clone(),
                position,
                sound: file[..end].to_vec(),
                bytes_cut: (file.len() - end) as u64,
                superfluous: superfluous.map(|(_, path)| path.clone()).collect(),
            });
        }
        before = Some(position);
    }
    let last = before.map_or(0, |position| position.seq);
    Err(cannot(format!("the log is sound up to record {last} only")))
}

/// Returns the position before the first segment.
fn first_position(
    header: &SegmentHeader,
    snapshot: Option<&SnapshotHeader>,
    seq: u64,
) -> Result<Position, String> {
    let first_seq = header.first_seq;
    if first_seq > seq + 1 {
        return Err(format!("the log begins with record {first_seq}"));
    }
    let start = Position { seq: first_seq - 1, chain: header.prev_chain, epoch: 0 };
    match snapshot.map(|snapshot| snapshot.position) {
        _ if first_seq == 1 => Ok(start),
        Some(position) if position.seq == start.seq => Ok(position),
        Some(position) if position.seq > start.seq => Ok(start),
        _ => Err(format!("no sound snapshot reaches from record {first_seq} to there")),
    }
}

/// Copies the journal's files to a new folder beside its own.
fn copy_folder(fs: &dyn Fs, dir: &Path) -> Result<PathBuf, JournalError> {
    let target = unused_name(fs, dir, "before-repair")?;
    fs.create_dir_all(&target).map_err(io_error("create", &target))?;
    for path in list_own(fs, dir)? {
        if let Some(name) = path.file_name() {
            copy(fs, &path, &target.join(name))?;
        }
    }
    fs.sync_dir(&target).map_err(io_error("sync", &target))?;
    let above = folder_of(&target);
    fs.sync_dir(above).map_err(io_error("sync", above))?;
    Ok(target)
}

/// Moves the whole folder to `<dir>.before-<what>-N`, so that another journal can take its place.
/// Returns the new path of the folder.
///
/// # Errors
/// The folder is in use, or the disk failed.
pub fn set_aside(fs: &dyn Fs, dir: &Path, what: &str) -> Result<PathBuf, JournalError> {
    let _held = lock(fs, dir)?;
    let target = unused_name(fs, dir, &format!("before-{what}"))?;
    rename_durably(fs, dir, &target)?;
    Ok(target)
}

fn unused_name(fs: &dyn Fs, dir: &Path, suffix: &str) -> Result<PathBuf, JournalError> {
    let mut number = 1_u64;
    loop {
        let mut name = dir.as_os_str().to_owned();
        name.push(format!(".{suffix}-{number}"));
        let name = PathBuf::from(name);
        let is_free = fs.list(&name).is_err_and(|err| err.kind() == std::io::ErrorKind::NotFound);
        if is_free && !exists(fs, &name)? {
            return Ok(name);
        }
        number += 1;
    }
}
