//! Every way a journal can fail, with the evidence and what to do next.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::frame::{HeaderError, RecordError};

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
         segment is missing, or this one comes from elsewhere; restore the folder from a backup",
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
         {damage}. Nothing was changed; keep a copy of the folder and restore it from a backup",
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
    /// The last record has changed or was never whole, and nothing tells which.
    #[error(
        "{}: the last record, {seq} at byte {offset}, is damaged ({damage}), and nothing shows \
         whether it was acknowledged. Nothing was changed; keep a copy of the folder and restore it \
         from a backup, or cut the file at that byte if losing the record is acceptable",
        path.display()
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
    /// The first record of this open could not be written.
    #[error("cannot write to the journal in {}: {source}", dir.display())]
    FirstAppend {
        /// The folder of the journal.
        dir: PathBuf,
        /// What went wrong.
        source: AppendError,
    },
    /// The system gave no random bytes for the identity of a new store.
    #[error("the system's random source failed: {0}")]
    Random(String),
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
    /// Nothing was written: the journal has been closed.
    #[error("the journal is closed")]
    Closed,
}
