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
//! - After a failed write or sync nothing more is written until the next open.
//! - One process writes: a second one is refused.
//!
//! [`frame`] holds the bytes of headers and records, [`reader`] walks one segment, [`recovery`]
//! judges what the walk ends at, [`writer`] groups appends under one sync, [`fs`] is the disk.

pub mod frame;
pub mod fs;
pub mod reader;
pub mod recovery;
pub mod writer;

mod error;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::{AppendError, Damage, JournalError};
pub use frame::{Kind, Record};
pub use recovery::{Recovery, ReplayResult, TornTail, inspect};
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
            fs: Arc::new(fs::Disk),
        }
    }
}
