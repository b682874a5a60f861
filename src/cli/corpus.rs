//! `dropdex corpus`: verifies the lists on disk.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::print_json;
use crate::config::Config;
use crate::corpus::Corpus;
use crate::exit::ExitWith;

/// Verify the ingested lists on disk
#[derive(Args, Debug)]
pub struct CorpusArgs {
    #[command(subcommand)]
    command: CorpusCommand,
}

#[derive(Subcommand, Debug)]
enum CorpusCommand {
    /// Verify every byte of every batch and popularity list; changes nothing, works beside a server
    ///
    /// Exit code 0: sound. 4: a file is damaged or missing. 1: the folder cannot be read.
    Verify,
}

/// Exit code for damage; the same as of `journal verify`.
const DAMAGED: u8 = 4;

/// Output of `verify`.
#[derive(Serialize)]
struct CorpusVerdict {
    status: &'static str,
    /// Number of sound files and lists.
    files: u64,
    lists: u64,
    /// One line for each invalid file, with the remedy.
    damaged: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1, or [`ExitWith`].
pub fn run(
    CorpusArgs { command: CorpusCommand::Verify }: &CorpusArgs,
    config: &Config,
) -> anyhow::Result<()> {
    let found = Corpus::verify(&config.site().data)?;
    let status = if found.damaged.is_empty() { "sound" } else { "damaged" };
    let why = found.damaged.first().cloned();
    let (files, lists, damaged) = (found.files, found.lists, found.damaged);
    print_json(&CorpusVerdict { status, files, lists, damaged })?;
    why.map_or(Ok(()), |why| Err(ExitWith { code: DAMAGED, why }.into()))
}
