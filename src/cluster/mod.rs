//! The shared log of several nodes: one order of records for all of them, kept by an external engine.
//!
//! Like the journal, the log handles bytes and does not know their meaning. [`log`] is the handle
//! and explains how the parts work together; `sequencer` decides what to append and in which order
//! records are applied, `driver` does the I/O, and `copy` keeps this node's own copy. [`stream`] is
//! the interface of the engine: `nodes::jetstream` implements it with NATS. [`record`] has the byte
//! format of a record.
//!
//! A node whose copy differs from the stream halts: it accepts no more writes, so that lost records raise an alarm
//! instead of leading to two histories.

mod copy;
mod driver;
pub mod facts;
pub mod log;
#[cfg(any(test, feature = "fixtures"))]
pub mod memory;
pub mod record;
pub mod replica;
mod sequencer;
pub mod settings;
#[cfg(test)]
mod simulation;
pub mod stream;
#[cfg(test)]
mod tests;

use dropdex_journal as journal;
