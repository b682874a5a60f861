//! The world we call: nothing here is asked for by a request that waits for it.

pub mod rdap;
pub mod settings;
