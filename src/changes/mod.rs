//! The log of changes: every event of a name, once, in one order, for 90 days (`data/docs/changes.md`).
//! In: events that a worker derives. Out: pages of events from a sequence number on.
//!
//! The log is a folder of files ([`segment`]) that are never changed. Each derivation writes one, aside,
//! syncs and renames it: its events exist completely or not at all, and with them the [`Mark`] up to
//! which everything was derived. After a crash, the derivation resumes from the newest file. While the
//! newest file is small, the next derivation replaces it by one that also has its events, so that many
//! small derivations do not leave as many files.
//!
//! This room knows neither lists nor registries; `workers/changes` derives the events.

pub mod log;
pub mod segment;

use dropdex_vocab as vocab;

pub use log::{Appender, ChangeLog, Files, ReadError};
pub use segment::{Entry, Mark};
