//! `dropdex rebuild`, and the rebuild that ends an ingest.

use std::io::{Write, stdout};
use std::time::Instant;

use clap::Args;

use crate::config::Config;
use crate::corpus::Corpus;
use crate::index::build;
use crate::index::manifest::Manifest;

/// Build a new index generation from the corpus and make it current
///
/// A running server switches to it within two seconds. Prints one line of JSON.
#[derive(Args, Debug)]
pub struct RebuildArgs {}

/// Rebuilds and prints what became of it.
///
/// # Errors
/// What to print on stderr before exit 1.
pub fn run(config: &Config) -> anyhow::Result<()> {
    let started = Instant::now();
    let corpus = Corpus::open(&config.data)?;
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
    let batches = corpus.batches()?;
    Ok(build::rebuild(&config.index, &batches, config.index_life.keep, config.clock.now())?)
}

/// Seconds since `started`, to the millisecond.
pub fn seconds(started: Instant) -> f64 {
    (started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0
}
