//! Shared by the benches and the sample: generates corpora of any size from a list of real names.
//!
//! Included by `mod common;` in a bench and by `#[path]` elsewhere. `tests/it/generator.rs` runs the
//! unit tests of these files.
#![allow(dead_code, reason = "every target that includes these files uses another part of them")]
#![allow(unused_imports, reason = "benches have `cfg(test)` but, without the harness, no tests")]

pub mod cargo;
pub mod drops;
pub mod names;
pub mod rng;
