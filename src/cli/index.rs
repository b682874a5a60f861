//! `dropdex index`: lists, verifies and rolls back the generations on disk.

use std::io::{Write, stdout};

use anyhow::bail;
use clap::{Args, Subcommand};

use crate::config::Config;
use crate::index::generation::{build, open};
use crate::index::storage::manifest::{self, GenerationId, Manifest};

/// List, verify or roll back the index generations on disk
#[derive(Args, Debug)]
pub struct IndexArgs {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Subcommand, Debug)]
enum IndexCommand {
    /// List the generations, oldest first; `*` marks the current one
    List,
    /// Verify the length and checksum of every file of every generation
    Verify,
    /// Switch back to the newest valid generation before the current one
    ///
    /// A running server switches to it within two seconds. The next rebuild uses the whole corpus again:
    /// first remove the list that was the reason for the rollback.
    Rollback,
}

impl IndexArgs {
    /// Whether the command writes to the index folder.
    pub fn writes_files(&self) -> bool {
        matches!(self.command, IndexCommand::Rollback)
    }
}

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: IndexArgs, config: &Config) -> anyhow::Result<()> {
    match args.command {
        IndexCommand::List => list(config),
        IndexCommand::Verify => verify(config),
        IndexCommand::Rollback => {
            let manifest = build::rollback(&config.index)?;
            writeln!(stdout(), "current is {}", line(&manifest))?;
            Ok(())
        }
    }
}

fn generations(config: &Config) -> anyhow::Result<Vec<GenerationId>> {
    let generations = manifest::generations(&config.index)?;
    if generations.is_empty() {
        bail!(
            "there is no index in {} yet; `dropdex sources enable --all-free` and `dropdex serve` fetch lists, \
             `dropdex ingest FILE` adds one of your own",
            config.index.display()
        );
    }
    Ok(generations)
}

fn list(config: &Config) -> anyhow::Result<()> {
    let current = manifest::current(&config.index).ok().flatten();
    let mut out = stdout().lock();
    for generation in generations(config)? {
        let mark = if current == Some(generation) { '*' } else { ' ' };
        match Manifest::read(&manifest::folder_of(&config.index, generation)) {
            Ok(manifest) => writeln!(out, "{mark} {}", line(&manifest))?,
            Err(err) => writeln!(out, "{mark} {generation}  unusable: {err}")?,
        }
    }
    Ok(())
}

fn verify(config: &Config) -> anyhow::Result<()> {
    let mut bad = 0;
    let mut out = stdout().lock();
    for generation in generations(config)? {
        match open::verify(&config.index, generation) {
            Ok(manifest) => writeln!(out, "ok       {}", line(&manifest))?,
            Err(err) => {
                bad += 1;
                writeln!(out, "damaged  {generation}  {err}")?;
            }
        }
    }
    if bad > 0 {
        bail!("{bad} damaged; `dropdex rebuild` builds a new generation from the corpus");
    }
    Ok(())
}

fn line(manifest: &Manifest) -> String {
    let Manifest { generation, created, names, drops, batches, scorer_version, .. } = manifest;
    let created = created.format("%Y-%m-%dT%H:%M:%SZ");
    format!(
        "{generation}  {created}  {names} names, {drops} drops of {batches} lists, \
         scorer {scorer_version}"
    )
}
