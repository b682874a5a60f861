//! Bytes in, durable bytes out: an append-only log that keeps its word.
//!
//! What comes in are payloads the caller has encoded; what comes back at the next [`Journal::open`]
//! are the same payloads in the same order. Nothing here knows what a payload means, so that every
//! promise below can be tested to the last bit.
//!
//! - An append that was answered survives SIGKILL, a crash of the system and a loss of power.
//! - One that was not answered is there whole after a crash, or not at all.
//! - Bytes that changed on disk are found at open. Where they were acknowledged the journal refuses
//!   to open and names file, offset and sequence number; a tail that nobody was told about is cut
//!   and kept aside.
//! - After a failed write or sync nothing more is written until the next open. A full disk alone is
//!   survived: appends are refused until there is room, and nothing stays half written.
//! - One process writes: a second one is refused, and one that lost the folder says "saved" no more.
//!
//! Snapshots of the caller's state let older segments go, so that an open stays short.
//!
//! [`frame`] holds the bytes of headers and records, `segment` the files, [`reader`] walks one
//! segment, `judge` says what the walk ends at, [`mark`] what is known to be synced, [`snapshot`]
//! what need not be read; [`recovery`] puts them together and [`mod@inspect`] looks on. `log` writes,
//! [`writer`] groups appends under one sync, [`mod@repair`] cuts a log that recovery refuses, [`fs`]
//! is the disk.

pub mod frame;
pub mod fs;
pub mod inspect;
pub mod mark;
pub mod reader;
pub mod recovery;
pub mod repair;
pub mod snapshot;
pub mod writer;

mod bytes;
mod error;
mod judge;
mod log;
mod segment;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::{AppendError, Damage, JournalError, SnapshotDamage};
pub use frame::{Kind, Record};
pub use inspect::{Inspection, SnapshotFacts, dump, inspect, inspect_to};
pub use mark::{FoundMark, Mark, Marking};
pub use reader::Position;
pub use recovery::{
    DamagedSnapshot, Recovery, Replay, ReplayResult, SegmentFacts, TornTail, Unread, Visit,
};
pub use repair::{RepairReport, repair};
pub use snapshot::{CHUNK_BYTES_MAX, SnapshotReport, SnapshotWriter, restore, verify_snapshot};
pub use writer::{Answer, Appended, Journal};

/// A payload is at most this long: 1 MiB. The reader checks it before it allocates.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// A segment is full at 64 MiB: small enough to be read whole at open, large enough to be few.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;

/// Milliseconds since 1970-01-01 UTC, for the records' time stamps.
pub type ClockMs = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Where a journal lives and what it is given to work with.
#[derive(Clone)]
pub struct Options {
    /// The folder of the journal; made when it is not there.
    pub dir: PathBuf,
    /// A new segment is begun before one would grow past this many bytes.
    pub segment_bytes: u64,
    /// Time stamps of records.
    pub clock_ms: ClockMs,
    /// When the commit mark is written.
    pub marking: Marking,
    /// The disk.
    pub fs: Arc<dyn fs::Fs>,
}

impl Options {
    /// A journal in `dir` on the real disk, with segments of the default size.
    pub fn new(dir: &Path, clock_ms: ClockMs) -> Options {
        Options {
            dir: dir.to_owned(),
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            clock_ms,
            marking: Marking::Background(mark::MARK_PAUSE_DEFAULT),
            fs: Arc::new(fs::Disk),
        }
    }
}
