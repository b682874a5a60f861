//! From observations to an index that answers: each stage of the pipeline with its time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use dropdex::corpus::Corpus;
use dropdex::corpus::ingest::Source;
use dropdex::feeds::{Observation, Row};
use dropdex::index::Index;
use dropdex::index::build;
use dropdex::index::open::{self, Opened};
use tempfile::TempDir;

use crate::common::rng::Rng;

/// The folders of one run. They go with this value.
pub struct Folders {
    root: TempDir,
}

impl Folders {
    /// New folders in the system's temporary folder (`TMPDIR`).
    ///
    /// # Errors
    /// They cannot be made.
    pub fn new() -> anyhow::Result<Folders> {
        let root = tempfile::Builder::new().prefix("dropdex-bench-").tempdir();
        Ok(Folders { root: root.context("cannot make a folder; TMPDIR names another place")? })
    }

    /// The data folder of the corpus and of the server process.
    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// The index folder.
    pub fn index(&self) -> PathBuf {
        self.root.path().join("index")
    }

    /// The data folder of the server in this process, which holds accounts alone.
    pub fn accounts(&self) -> PathBuf {
        self.root.path().join("accounts")
    }

    /// Where files for the peer go.
    pub fn peer(&self) -> &Path {
        self.root.path()
    }
}

/// An index and how long each stage on the way to it took.
pub struct Built {
    pub index: Index,
    pub ingest: Duration,
    pub rebuild: Duration,
    pub open: Duration,
    /// Bytes of all files of the generation.
    pub index_bytes: u64,
    /// Bytes of the batch.
    pub corpus_bytes: u64,
}

/// Puts `observations` into an order that has nothing to do with their names, so that ingest has
/// something to sort.
pub fn shuffle(observations: &mut [Observation], seed: u64) {
    let mut rng = Rng::at(seed, 0);
    for at in (1..observations.len()).rev() {
        observations.swap(at, rng.below(at as u64 + 1) as usize);
    }
}

/// Takes `observations` through every stage.
///
/// # Errors
/// A stage fails, or the index holds another number of names than `names`.
pub fn build(
    folders: &Folders,
    observations: Vec<Observation>,
    names: usize,
    now: DateTime<Utc>,
) -> anyhow::Result<Built> {
    let corpus = Corpus::open(&folders.data())?;
    let source = Source {
        name: "bench".to_owned(),
        sha256: [0; 32],
        format: "bench".to_owned(),
        observed_at: now,
        ingested_at: now,
    };

    let started = Instant::now();
    let rows = observations.into_iter().map(|seen| Ok(Row::Seen(seen)));
    let ingested = corpus.ingest(&source, rows)?;
    let ingest = started.elapsed();
    ensure!(ingested.names == names as u64, "{} of {names} names ingested", ingested.names);

    let started = Instant::now();
    let batches = corpus.batches()?;
    build::rebuild(&folders.index(), &batches, now)?;
    let rebuild = started.elapsed();
    let sizes = batches.iter().map(|batch| std::fs::metadata(batch.path()).map(|file| file.len()));
    let corpus_bytes = sizes.sum::<std::io::Result<u64>>()?;
    drop(batches);

    let started = Instant::now();
    let Opened { index, fallback } = open::open_current(&folders.index())?;
    let open = started.elapsed();
    if let Some(problem) = fallback {
        return Err(problem.into());
    }
    ensure!(index.manifest().names as usize == names, "the index has other names");
    let index_bytes = index.manifest().files.values().map(|sum| sum.len).sum();
    Ok(Built { index, ingest, rebuild, open, index_bytes, corpus_bytes })
}
