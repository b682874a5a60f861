//! Life of a generation: [`build`] writes one and publishes it after its [`selftest`], [`open`]
//! loads it, and [`live`] holds the one being served.

pub mod base;
pub mod build;
pub mod live;
pub mod memory;
pub mod open;
mod selftest;
#[cfg(test)]
mod tests;
