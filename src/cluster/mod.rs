//! The shared log of several nodes: one order of records for all of them, kept by another engine.
//!
//! Knows bytes, as the journal does: what a transaction means is its owner's. [`log`] is the handle and says how the
//! parts work together; `sequencer` decides what to append and takes in, `driver` does it, `copy` keeps this node's own
//! copy. [`stream`] is what the
//! engine must do, and [`jetstream`] does it with NATS. [`record`] has the bytes of a record.
//!
//! A node that sees that its copy and the stream differ halts: it accepts no more writes, so that a loss is an alarm
//! and not two histories.

mod copy;
mod driver;
pub mod facts;
#[cfg(feature = "cluster")]
pub mod jetstream;
pub mod log;

#[cfg(test)]
pub mod memory;
pub mod peers;
pub mod record;
pub mod replica;
mod sequencer;
pub mod settings;
#[cfg(test)]
mod simulation;
pub mod stream;
#[cfg(test)]
mod tests;
