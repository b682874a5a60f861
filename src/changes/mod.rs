//! The log of changes: every event of a name, once, in one order, for 90 days (`data/docs/changes.md`).
//! Input: events that a worker derives. Output: pages of events from a sequence number on.
//!
//! The log is a folder of immutable files ([`segment`]). Each derivation writes a temporary file, syncs
//! it and renames it, so its events become visible atomically, together with the [`Mark`] up to which
//! everything was derived. After a crash, the derivation resumes from the newest file. While the newest
//! file is small, the next derivation replaces it with one that also holds the old events, so that many
//! small derivations do not leave many small files.
//!
//! This room does not depend on lists or registries; `workers/changes` derives the events.

pub mod log;
pub mod segment;

use dropdex_vocab as vocab;

pub use log::{Appender, ChangeLog, Files, ReadError};
pub use segment::{ChangeEntry, Mark};
