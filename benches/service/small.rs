//! Builds an index in a folder from names, in this process, for benches that only measure queries.

use std::path::Path;

use chrono::{DateTime, Utc};
use dropdex::corpus::Corpus;
use dropdex::corpus::ingest::Source;
use dropdex::feeds::Row;
use dropdex::index::Index;
use dropdex::index::generation::build as generation;
use dropdex::index::generation::open::{self, Opened};
use dropdex::vocab::name::DomainName;

use crate::common::drops::Drops;

/// Builds in `folder` an index of the observations that `drops` generates for `names`.
///
/// # Errors
///
/// A stage fails.
pub fn build(
    folder: &Path,
    names: impl Iterator<Item = DomainName>,
    drops: &Drops,
    now: DateTime<Utc>,
) -> anyhow::Result<()> {
    let corpus = Corpus::open(&folder.join("data"))?;
    let source = Source {
        name: "bench".to_owned(),
        sha256: [0; 32],
        format: "bench".to_owned(),
        observed_at: now,
        ingested_at: now,
        origin: None,
        day: None,
        replaces: Vec::new(),
        zone: None,
    };
    corpus.ingest(&source, drops.observations(names).map(|seen| Ok(Row::Seen(seen))))?;
    let settings = generation::BuildSettings::default();
    generation::rebuild(&folder.join("index"), &corpus.batches()?, &[], settings, now)?;
    Ok(())
}

/// Opens the index that [`build`] wrote to `folder`.
///
/// # Errors
///
/// It cannot be opened.
pub fn open(folder: &Path) -> anyhow::Result<Index> {
    let Opened { index, fallback } = open::open_current(&folder.join("index"))?;
    match fallback {
        Some(problem) => Err(problem.into()),
        None => Ok(index),
    }
}
