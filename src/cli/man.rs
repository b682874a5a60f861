//! `dropdex man`: the manual pages of all commands.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use crate::cli::Cli;

/// Write the manual pages of all commands to a folder
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Folder of the pages; must exist
    folder: PathBuf,
}

/// Writes `dropdex.1` and a page for each command.
///
/// # Errors
/// The folder cannot be written to.
pub fn run(args: &ManArgs) -> anyhow::Result<()> {
    let folder = &args.folder;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write to {}", folder.display()))
}
