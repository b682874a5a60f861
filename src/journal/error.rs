//! Every way a journal can fail, with the evidence and what to do next.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::frame::{HeaderError, RecordError};

/// What to do about damage.
const RESTORE: &str = "move the journal's folder away, keep it, and run `dropdex journal restore` \
                       with a backup, or with the newest sound snapshot (.snap) in it";

/// Why a journal could not be opened.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Another process has it.
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
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A segment's header is not one.
    #[error("{} is not a journal segment this dropdex can read: {source}", path.display())]
    Header {
        /// The segment.
        path: PathBuf,
        /// What is wrong.
        source: HeaderError,
    },
    /// A segment is sound but is not the one that belongs in its place.
    #[error(
        "{} does not follow the segment before it: its {what} is {found}, expected {expected}. A \
         segment is missing, or this one comes from elsewhere; {RESTORE}",
        path.display()
    )]
    Misplaced {
        /// The segment.
        path: PathBuf,
        /// The member of its header that does not fit.
        what: &'static str,
        /// What would fit.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// Bytes that were acknowledged have changed.
    #[error(
        "{}: record {seq} at byte {offset} is damaged, and it was acknowledged ({evidence}): \
         {damage}. Nothing was changed; {RESTORE}",
        path.display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where the record starts, in bytes from the start of the file.
        offset: u64,
        /// The sequence number that belongs there.
        seq: u64,
        /// What is wrong with it.
        damage: Damage,
        /// Why it counts as acknowledged.
        evidence: String,
    },
    /// Records that were acknowledged are not there.
    #[error(
        "{}: the log ends at byte {offset}, where record {seq} should be, and that was acknowledged \
         ({evidence}). Nothing was changed; {RESTORE}",
        path.display()
    )]
    Missing {
        /// The last segment, or the folder when it has none.
        path: PathBuf,
        /// Where the log ends, in bytes from the start of the file.
        offset: u64,
        /// The first sequence number that is missing.
        seq: u64,
        /// Why it counts as acknowledged.
        evidence: String,
    },
    /// The commit mark is not there, and with it what tells a whole log from one that was cut.
    #[error(
        "the commit mark {} is {found}: without it nothing shows whether records after {last_seq}, \
         the last one found, were lost. Nothing was changed; if none can have been, run `dropdex \
         journal repair --truncate-after {last_seq} --i-accept-loss`, which makes the mark anew; \
         else {RESTORE}",
        path.display()
    )]
    NoMark {
        /// Where it should be.
        path: PathBuf,
        /// `missing` or `damaged`.
        found: &'static str,
        /// The last sound record.
        last_seq: u64,
    },
    /// The last record has changed or was never whole, and nothing tells which.
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
        /// Where the record starts, in bytes from the start of the file.
        offset: u64,
        /// The sequence number that belongs there.
        seq: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// The record is sound, but whoever it was handed to could not read its payload.
    #[error("{}: record {seq} at byte {offset} cannot be used: {source}", path.display())]
    Replay {
        /// The segment.
        path: PathBuf,
        /// Where the record starts, in bytes from the start of the file.
        offset: u64,
        /// Its sequence number.
        seq: u64,
        /// What its reader said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The mark or a snapshot speaks of another log than the one that is there.
    #[error(
        "{} does not belong to the log beside it: its {what} is {found}, that of the log is \
         {expected}. One of them comes from elsewhere; {RESTORE}",
        path.display()
    )]
    Diverges {
        /// The mark or the snapshot.
        path: PathBuf,
        /// What it knows otherwise.
        what: String,
        /// What the log holds.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// The log does not reach back to a snapshot or to the first record.
    #[error(
        "{}: the log begins with record {first_seq}, and {snapshots}: the records before it are \
         missing. Restore the folder from a backup",
        dir.display()
    )]
    NoStart {
        /// The folder of the journal.
        dir: PathBuf,
        /// The first record there is.
        first_seq: u64,
        /// What snapshots there are.
        snapshots: String,
    },
    /// A snapshot or backup cannot be used.
    #[error("{} is not a snapshot this dropdex can use: {source}", path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong.
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
        /// The format it has.
        format: u16,
        /// The format a reader must know.
        min_reader: u16,
    },
    /// The snapshot is sound, but whoever it was handed to could not use it.
    #[error("the snapshot {} cannot be used: {source}", path.display())]
    ReplaySnapshot {
        /// The file.
        path: PathBuf,
        /// What its reader said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another snapshot is being written.
    #[error("another snapshot of the journal in {} is being written", dir.display())]
    SnapshotBusy {
        /// The folder of the journal.
        dir: PathBuf,
    },
    /// A chunk of a snapshot is too long or empty.
    #[error("a chunk of {len} bytes; one has 1 to {}", super::CHUNK_BYTES_MAX)]
    ChunkLength {
        /// Its length in bytes.
        len: usize,
    },
    /// The records a snapshot is of did not become durable.
    #[error("the snapshot of record {seq} is given up, for the record is not durable: {source}")]
    NotDurable {
        /// The record it follows.
        seq: u64,
        /// Why.
        source: AppendError,
    },
    /// Another process has taken the folder.
    #[error("another process has taken the folder {}", dir.display())]
    Fenced {
        /// The folder of the journal.
        dir: PathBuf,
    },
    /// What is to be made is there already.
    #[error("{} is there already; nothing was changed", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The log cannot be cut there.
    #[error("cannot cut the log in {} after record {seq}: {reason}. Nothing was changed", dir.display())]
    Repair {
        /// The folder of the journal.
        dir: PathBuf,
        /// The record asked for.
        seq: u64,
        /// Why not.
        reason: String,
    },
    /// The system gave no random bytes for the identity of a new store.
    #[error("the system's random source failed: {0}")]
    Random(String),
}

impl JournalError {
    /// Whether a newer dropdex wrote what this one cannot read.
    pub fn is_of_a_newer_format(&self) -> bool {
        matches!(
            self,
            JournalError::Header { source: HeaderError::Newer { .. }, .. }
                | JournalError::NewerMark { .. }
                | JournalError::Snapshot { source: SnapshotDamage::Newer { .. }, .. }
        )
    }
}

/// What is wrong with the bytes where a record should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// They are not a record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// They are a sound record of this store, but not the next one.
    #[error("its sequence number is {found}, expected {expected}")]
    Sequence {
        /// The number that belongs there.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// They are a sound record with the right number that did not follow the one before it.
    #[error("its chain is {}, expected {}", hex::encode(.found), hex::encode(.expected))]
    Chain {
        /// What the record before it leads to.
        expected: [u8; 16],
        /// What it holds.
        found: [u8; 16],
    },
}

/// What is wrong with a snapshot.
#[derive(Debug, Error)]
pub enum SnapshotDamage {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The first 8 bytes name another kind of file.
    #[error("it is of another kind")]
    Magic,
    /// A newer dropdex wrote it.
    #[error(
        "it has format {format} and needs a reader of format {min_reader} or later; use the dropdex \
         that wrote it, or a later one"
    )]
    Newer {
        /// The format it has.
        format: u16,
        /// The format a reader must know.
        min_reader: u16,
    },
    /// The file ends too early.
    #[error("it ends at byte {offset}, before it is whole")]
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
    /// Something follows the end.
    #[error("bytes follow its end at {offset}")]
    TooLong {
        /// Where it should end.
        offset: u64,
    },
    /// It is of another record than its name says.
    #[error("its name says record {named}, its header {found}")]
    Misnamed {
        /// By the name.
        named: u64,
        /// By the header.
        found: u64,
    },
}

/// Why an append was refused, or was not made durable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// Nothing was written: the payload is too long.
    #[error("a payload of {len} bytes; the most is {}", super::PAYLOAD_BYTES_MAX)]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// Nothing was written: the queue stayed full. Try again in a second.
    #[error("the journal is busy; try again in a second")]
    Busy,
    /// A write or sync failed, now or earlier: nothing more is written until the next open. Whether
    /// the append itself is there will show then.
    #[error("the journal takes no writes since one failed ({reason}); restart to recover")]
    Poisoned {
        /// What failed first.
        reason: String,
    },
    /// Nothing was written: the disk is full. Appends are taken again once it has room.
    #[error("the disk is full; the journal takes writes again once there is room")]
    DiskFull,
    /// Another process has taken the folder: nothing more is written, and whether the append itself
    /// is there that process will know.
    #[error("another process has taken the journal's folder; this one takes no more writes")]
    Fenced,
    /// Nothing was written: the journal has been closed.
    #[error("the journal is closed")]
    Closed,
}
