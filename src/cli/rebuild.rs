//! `dropdex rebuild`, and the rebuild that ends an ingest.

use std::io::{Write, stdout};
use std::time::Instant;

use clap::Args;

use crate::cli::beside;
use crate::config::Config;
use crate::corpus::Corpus;
use crate::corpus::batch::Batch;
use crate::index::build;
use crate::index::manifest::{self, GenerationId, Manifest};
use crate::index::space::Space;
use crate::workers::admin::Work;

/// Build a new index generation from the corpus and make it current
///
/// A running server switches to it within two seconds. Prints one line of JSON.
#[derive(Args, Debug)]
pub struct RebuildArgs {
    /// Make one batch of all lists first; nothing is lost, but a list of it cannot be removed alone
    #[arg(long)]
    compact: bool,
    /// Do it in this process, also beside a running server, which else does it
    #[arg(long)]
    here: bool,
    /// Do nothing when a generation holds all lists
    #[arg(long, hide = true)]
    if_behind: bool,
}

/// The newest lists stay batches of their own when many are made one: the last ones are those that
/// somebody may want to take back.
const LISTS_APART: usize = 8;

/// Rebuilds and prints what became of it.
///
/// # Errors
/// What to print on stderr before exit 1.
pub fn run(args: &RebuildArgs, config: &Config) -> anyhow::Result<()> {
    let again = args.compact.then(|| "--compact".to_owned());
    let again = again.into_iter().collect();
    if !args.here && beside::run(config, Work::Rebuild, again, Vec::new())?.is_some() {
        return Ok(());
    }
    let started = Instant::now();
    let corpus = Corpus::open(&config.data)?;
    if args.if_behind && !is_behind(&corpus, config) {
        return Ok(());
    }
    if args.compact {
        corpus.compact(&corpus.batches()?, 0)?;
    }
    let manifest = rebuild(&corpus, config)?;
    let summary = serde_json::json!({
        "generation": manifest.generation.to_string(),
        "names": manifest.names,
        "drops": manifest.drops,
        "batches": manifest.batches,
        "seconds": seconds(started),
    });
    writeln!(stdout(), "{summary}")?;
    Ok(())
}

/// Builds a generation from all batches of `corpus` and makes it current.
///
/// # Errors
/// A damaged batch, another rebuild, a full disk: the old generation stays current.
pub fn rebuild(corpus: &Corpus, config: &Config) -> anyhow::Result<Manifest> {
    let mut batches = corpus.batches()?;
    let above = config.index_life.compact_above as usize;
    if above > 0 && batches.len() > above {
        // It is for speed alone, and needs room for the corpus once more.
        let bytes = batches.iter().map(Batch::size).sum();
        let compacted = Space::of(&config.data).and_then(|space| space.leave_room(bytes));
        let compacted = compacted.map_err(anyhow::Error::from);
        match compacted.and_then(|()| Ok(corpus.compact(&batches, LISTS_APART)?)) {
            Ok(_) => batches = corpus.batches()?,
            Err(err) => {
                tracing::warn!(error = format!("{err:#}"), "many batches cannot be made one");
            }
        }
    }
    Ok(build::rebuild(&config.index, &batches, config.index_life.keep, config.clock.now())?)
}

/// Whether no generation holds all lists of the corpus. An index folder that cannot be read is for
/// `rebuild` and `index verify` to tell of.
pub fn is_behind(corpus: &Corpus, config: &Config) -> bool {
    let batches = |generation: &GenerationId| {
        let manifest = Manifest::read(&manifest::folder_of(&config.index, *generation));
        manifest.map_or(0, |manifest| manifest.batches)
    };
    let generations = manifest::generations(&config.index).unwrap_or_default();
    let indexed = generations.iter().map(batches).max().unwrap_or(0);
    corpus.metas().is_ok_and(|metas| metas.len() as u64 > indexed)
}

/// Seconds since `started`, to the millisecond.
pub fn seconds(started: Instant) -> f64 {
    (started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0
}
