//! An append-only log of durable records.
//!
//! The caller appends encoded payloads; the next [`Journal::open`] returns the same payloads in the
//! same order. The journal does not know what a payload means, so that every guarantee below can be
//! tested to the last bit.
//!
//! - An acknowledged append survives SIGKILL, a crash of the system and a loss of power.
//! - After a crash, an unacknowledged append is either complete or absent.
//! - Open detects changed bytes. If such bytes were acknowledged, the journal refuses to open and names
//!   file, offset and sequence number; an unacknowledged tail is cut off and kept in a separate file.
//! - After a failed write or sync nothing more is written until the next open. A full disk is the
//!   exception: appends are refused until there is room, and no record stays half written.
//! - One process writes: a second one is refused, and one that lost its lock on the folder
//!   acknowledges nothing.
//!
//! Snapshots of the caller's state replace older segments, so that an open stays fast.
//!
//! [`frame`] defines the bytes of headers and records, and `segment` the files. [`reader`] walks
//! one segment; `tail` classifies the bytes where the walk ends. [`mark`] stores what is known to
//! be synced, and [`snapshot`] the state that replaces older segments. [`recovery`] combines them;
//! [`mod@inspect`] only reads. `log` writes, and [`writer`] groups the appends of `queue` under one
//! sync. [`mod@repair`] cuts a log that recovery refuses. [`fs`] is the disk.

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
mod log;
mod queue;
mod replay;
mod segment;
mod tail;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use bytes::{HeaderError, StoreUuid};
pub use error::{AppendError, Damage, JournalError, SnapshotDamage};
pub use frame::Position;
pub use frame::{Record, RecordKind};
pub use inspect::{Inspection, SnapshotFacts, inspect};
pub use mark::{FoundMark, Mark, Marking};
pub use queue::Appended;
pub use recovery::{DamagedSnapshot, Recovery, SegmentFacts, TornTail, Visit, dump};
pub use repair::{RepairReport, repair, set_aside};
pub use replay::{Replay, ReplayResult, Unread};
pub use snapshot::{
    CHUNK_BYTES_MAX, SnapshotReport, SnapshotWriter, restore, verify_snapshot, write_backup,
};
pub use writer::{AppendFuture, Journal};

/// Maximum bytes of a payload: 1 MiB. The reader checks the length before it allocates.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Default size of a segment: small enough to read whole at open, and large enough to keep the
/// number of segments low.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;

/// Milliseconds since 1970-01-01 UTC, for the records' time stamps.
pub type ClockMs = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Location and environment of a journal.
#[derive(Clone)]
pub struct Options {
    /// The folder of the journal; created if missing.
    pub dir: PathBuf,
    /// A segment does not grow past this many bytes.
    pub segment_bytes: u64,
    /// Clock for the time stamps of records.
    pub clock_ms: ClockMs,
    /// Timing of the commit mark.
    pub marking: Marking,
    /// The disk.
    pub fs: Arc<dyn fs::Fs>,
}

impl Options {
    /// Options of a journal in `dir` on the real disk, with segments of the default size.
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
