//! Errors of the journal, with evidence and advice.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::bytes::HeaderError;
use super::frame::RecordError;

/// Advice for damage.
const RESTORE: &str = "move the journal's folder away, keep it, and run `dropdex journal restore` \
                       with a backup, or with the newest sound snapshot (.snap) in it";

/// Reason why an operation on the journal failed.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Another process holds the folder.
    #[error(
        "the folder {} is in use by another dropdex process: stop that one, or use another data \
         folder",
        dir.display()
    )]
    Locked {
        /// The folder of the journal.
        dir: PathBuf,
    },
    /// The disk refused a call.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A segment has an invalid header.
    #[error("{} is not a journal segment this dropdex can read: {source}", path.display())]
    Header {
        /// The segment.
        path: PathBuf,
        /// The damage.
        source: HeaderError,
    },
    /// An undamaged segment does not follow its predecessor.
    #[error(
        "{} does not follow the segment before it: its {what} is {found}, expected {expected}. A \
         segment is missing, or this one comes from elsewhere; {RESTORE}",
        path.display()
    )]
    Misplaced {
        /// The segment.
        path: PathBuf,
        /// The header field that differs.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The value found.
        found: String,
    },
    /// Acknowledged bytes have changed.
    #[error(
        "{}: record {seq} at byte {offset} is damaged, and it was acknowledged ({evidence}): \
         {damage}. Nothing was changed; {RESTORE}",
        path.display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Offset of the record in the file.
        offset: u64,
        /// The expected sequence number.
        seq: u64,
        /// Its damage.
        damage: Damage,
        /// Evidence that the record was acknowledged.
        evidence: String,
    },
    /// Acknowledged records are missing.
    #[error(
        "{}: the log ends at byte {offset}, where record {seq} should be, and that was acknowledged \
         ({evidence}). Nothing was changed; {RESTORE}",
        path.display()
    )]
    Missing {
        /// The last segment, or the folder if it has no segments.
        path: PathBuf,
        /// Offset of the end of the log.
        offset: u64,
        /// The first missing sequence number.
        seq: u64,
        /// Evidence that the record was acknowledged.
        evidence: String,
    },
    /// The commit mark is missing, so a truncated log would go unnoticed.
    #[error(
        "the commit mark {} is {found}: without it nothing shows whether records after {last_seq}, \
         the last one found, were lost. Nothing was changed; if none can have been, run `dropdex \
         journal repair --truncate-after {last_seq} --i-accept-loss`, which makes the mark anew; \
         else {RESTORE}",
        path.display()
    )]
    NoMark {
        /// Path of the mark.
        path: PathBuf,
        /// `missing` or `damaged`.
        found: &'static str,
        /// The last sound record.
        last_seq: u64,
    },
    /// The last record has changed or was never complete; the two cannot be distinguished.
    #[error(
        "{}: the last record, {seq} at byte {offset}, is damaged ({damage}), and nothing shows \
         whether it was acknowledged. Nothing was changed; {RESTORE}, or, if \
         losing the record is acceptable, run `dropdex journal repair --truncate-after {} \
         --i-accept-loss`",
        path.display(),
        seq - 1
    )]
    Ambiguous {
        /// The segment.
        path: PathBuf,
        /// Offset of the record in the file.
        offset: u64,
        /// The expected sequence number.
        seq: u64,
        /// Its damage.
        damage: Damage,
    },
    /// The record is undamaged, but its receiver rejected the payload.
    #[error("{}: record {seq} at byte {offset} cannot be used: {source}", path.display())]
    Replay {
        /// The segment.
        path: PathBuf,
        /// Offset of the record in the file.
        offset: u64,
        /// Its sequence number.
        seq: u64,
        /// The receiver's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The mark or a snapshot differs from the log, so it belongs to another log.
    #[error(
        "{} does not belong to the log beside it: its {what} is {found}, that of the log is \
         {expected}. One of them comes from elsewhere; {RESTORE}",
        path.display()
    )]
    Diverges {
        /// The mark or the snapshot.
        path: PathBuf,
        /// The differing value.
        what: String,
        /// Its value in the log.
        expected: String,
        /// The value found.
        found: String,
    },
    /// The log does not reach back to an undamaged snapshot or to the first record.
    #[error(
        "{}: the log begins with record {first_seq}, and {snapshots}: the records before it are \
         missing. Restore the folder from a backup",
        dir.display()
    )]
    NoStart {
        /// The folder of the journal.
        dir: PathBuf,
        /// The first record present.
        first_seq: u64,
        /// Description of the snapshots.
        snapshots: String,
    },
    /// A snapshot or backup is damaged.
    #[error("{} is not a snapshot this dropdex can use: {source}", path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// The damage.
        source: SnapshotDamage,
    },
    /// The commit mark was written by a newer dropdex.
    #[error(
        "{} has format {format} and needs a reader of format {min_reader} or later; use the dropdex \
         that wrote it, or a later one",
        path.display()
    )]
    NewerMark {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u16,
        /// The format that a reader must support.
        min_reader: u16,
    },
    /// The snapshot is undamaged, but its receiver rejected it.
    #[error("the snapshot {} cannot be used: {source}", path.display())]
    ReplaySnapshot {
        /// The file.
        path: PathBuf,
        /// The receiver's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another snapshot is being written.
    #[error("another snapshot of the journal in {} is being written", dir.display())]
    SnapshotBusy {
        /// The folder of the journal.
        dir: PathBuf,
    },
    /// A chunk of a snapshot is too long or empty.
    #[error("the chunk has {len} bytes; expected 1 to {}", super::CHUNK_BYTES_MAX)]
    ChunkLength {
        /// Its length in bytes.
        len: usize,
    },
    /// The records of a snapshot did not become durable.
    #[error(
        "the snapshot of record {seq} was abandoned, because the record is not durable: {source}"
    )]
    NotDurable {
        /// The record it follows.
        seq: u64,
        /// The reason.
        source: AppendError,
    },
    /// Another process has taken the folder.
    #[error("another process has taken the folder {}", dir.display())]
    Fenced {
        /// The folder of the journal.
        dir: PathBuf,
    },
    /// The file to be created already exists.
    #[error("{} already exists; nothing was changed", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The log cannot be truncated after the given record.
    #[error("cannot cut the log in {} after record {seq}: {reason}. Nothing was changed", dir.display())]
    Repair {
        /// The folder of the journal.
        dir: PathBuf,
        /// The requested record.
        seq: u64,
        /// The reason.
        reason: String,
    },
    /// The system returned no random bytes for the identity of a new store.
    #[error("the system's random source failed: {0}")]
    Random(String),
}

impl JournalError {
    /// Returns true if the disk was full. A failed sync is final and does not count.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, JournalError::Io { action, source, .. }
            if *action != "sync" && is_full(source))
    }

    /// Returns true if a newer dropdex wrote the file.
    pub fn is_of_a_newer_format(&self) -> bool {
        matches!(
            self,
            JournalError::Header { source: HeaderError::Newer { .. }, .. }
                | JournalError::NewerMark { .. }
                | JournalError::Snapshot {
                    source: SnapshotDamage::Header(HeaderError::Newer { .. }),
                    ..
                }
        )
    }
}

/// Returns true if a write failed because of space, quota or a size limit. Such a write can be
/// undone and may succeed later.
pub(super) fn is_full(err: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(err.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Damage to the bytes where a record should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// The bytes are not a record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An undamaged record of this store, but not the next one.
    #[error("its sequence number is {found}, expected {expected}")]
    Sequence {
        /// The expected number.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// An undamaged record with the right number whose chain does not continue that of its
    /// predecessor.
    #[error("its chain is {}, expected {}", hex::encode(.found), hex::encode(.expected))]
    Chain {
        /// The chain after the previous record.
        expected: [u8; 16],
        /// The value found.
        found: [u8; 16],
    },
}

/// Damage to a snapshot.
#[derive(Debug, Error)]
pub enum SnapshotDamage {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Its header is invalid.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The file ends too early.
    #[error("it ends early, at byte {offset}")]
    Cut {
        /// Bytes read.
        offset: u64,
    },
    /// Bytes have changed.
    #[error("its {what} at byte {offset} is not what was written")]
    Changed {
        /// The part.
        what: &'static str,
        /// Where it starts.
        offset: u64,
    },
    /// Bytes follow the end.
    #[error("bytes follow its end at {offset}")]
    TooLong {
        /// Where it should end.
        offset: u64,
    },
    /// The file name and the header state different record numbers.
    #[error("its name has record {named}, its header record {found}")]
    Misnamed {
        /// The record in the name.
        named: u64,
        /// The record in the header.
        found: u64,
    },
}

/// Reason why an append was refused or did not become durable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// Nothing was written: the payload is too long.
    #[error("the payload has {len} bytes; the maximum is {}", super::PAYLOAD_BYTES_MAX)]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// Nothing was written: the queue stayed full. Try again in a second.
    #[error("the journal is busy; try again in a second")]
    Busy,
    /// A write or sync failed, now or earlier: nothing more is written until the next open, which
    /// determines whether the append is present.
    #[error("the journal accepts no writes after a failed one ({reason}); restart to recover")]
    Poisoned {
        /// The first failure.
        reason: String,
    },
    /// Nothing was written: the disk is full. Appends are accepted again once the disk has room.
    #[error("the disk is full; the journal accepts writes again once there is room")]
    DiskFull,
    /// Another process has taken the folder. Nothing more is written, and only that process knows
    /// whether the append is present.
    #[error("another process has taken the journal's folder; this one accepts no more writes")]
    Fenced,
    /// Nothing was written: the journal has been closed.
    #[error("the journal is closed")]
    Closed,
    /// Nothing was written: another node made a conflicting change first. Try again.
    #[error("another node made a conflicting change; try again")]
    Superseded,
    /// Nothing was written: the shared log cannot be reached.
    #[error("the shared log cannot be reached")]
    Unreachable,
    /// The shared log did not report whether the append was written. The append is written at most
    /// once.
    #[error("the shared log did not report whether the change was written")]
    Unknown,
    /// Nothing was written: this node's copy and the shared log differ.
    #[error("this node's copy and the shared log differ: {reason}")]
    Halted {
        /// The difference.
        reason: String,
    },
}
