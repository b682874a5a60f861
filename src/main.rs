//! The executable: parses the arguments, runs the command and returns its exit code.

use std::process::ExitCode;

/// A request makes many small, short-lived allocations, and mimalloc serves them measurably faster
/// than the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    dropdex::cli::main()
}
