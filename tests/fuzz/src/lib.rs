//! Fuzzing: the module [`targets`] lists the parsers under test.

#[path = "../../it/common/nameless.rs"]
mod nameless;
mod service;
pub mod targets;

/// Defines the binary of one target.
#[macro_export]
macro_rules! fuzz {
    ($target:ident) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::targets::$target(bytes));
    };
}
