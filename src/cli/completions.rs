//! `dropdex completions`: scripts that complete commands and options in a shell.

use std::io::{Write, stdout};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;

/// Print the script that completes commands and options in a shell
///
/// For bash: `dropdex completions bash > /etc/bash_completion.d/dropdex`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Name of the shell
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Standard output is closed.
pub fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    // clap panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dropdex", &mut script);
    Ok(stdout().lock().write_all(&script)?)
}
