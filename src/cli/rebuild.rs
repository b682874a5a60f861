//! `dropdex rebuild`: builds a new generation from the corpus.

use clap::Args;

use crate::cli::admin_client::{Local, end, run_task};
use crate::cli::print_json;
use crate::config::Config;
use crate::intake::request::{Rebuild, Task};

/// Build a new index generation from the corpus and make it current
///
/// A running server does the work, after its queued tasks, and switches to the generation within
/// two seconds. Prints one line of JSON.
#[derive(Args, Debug)]
pub struct RebuildArgs {
    /// Merge all batches into one first. No data is lost, but a merged list can no longer be
    /// removed on its own
    #[arg(long)]
    compact: bool,
    #[command(flatten)]
    local: Local,
}

/// Rebuilds and prints the new generation.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: &RebuildArgs, config: &Config) -> anyhow::Result<()> {
    let task = Rebuild { compact: args.compact, only_if_behind: false };
    let outcome = run_task(Task::Rebuild(task), &args.local, config)?;
    end(&outcome)?;
    if let Some(manifest) = outcome.generation {
        print_json(&serde_json::json!({
            "generation": manifest.generation.to_string(),
            "names": manifest.names,
            "drops": manifest.drops,
            "batches": manifest.batches,
            "seconds": outcome.seconds,
        }))?;
    }
    Ok(())
}
