//! Life of a generation: [`build`] writes and publishes one after its [`selftest`], [`open`] loads
//! it, [`live`] holds the one that is served.

pub mod base;
pub mod build;
pub mod live;
pub mod memory;
pub mod open;
mod selftest;
#[cfg(test)]
mod tests;
