//! The steps from a list to an index in use, as an operator takes them: `dropdex ingest`, `dropdex
//! rebuild`, and a start. The time and memory of each are measured.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dropdex::feeds::{Observation, Sighting};
use dropdex::index::Index;
use dropdex::index::generation::open::{self, Opened};
use dropdex::vocab::day::Day;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::drops::{Drops, write_csv};
use crate::common::rng::shuffled;
use crate::market::Market;
use crate::process::{Ran, Site};

/// Names of a day's list, about as many as drop each day.
const DAY_NAMES: usize = 400_000;
const DAY_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Interval at which the server is polled until it serves the list.
const LOOK: Duration = Duration::from_millis(100);

/// The folders of one run. The folders are deleted when this value is dropped.
pub struct Folders {
    root: TempDir,
    /// The installation under measurement.
    pub site: Site,
}

impl Folders {
    /// Creates folders in the system's temporary folder (`TMPDIR`), with a memory bound for
    /// rebuilds in MiB.
    ///
    /// # Errors
    ///
    /// They cannot be created.
    pub fn new(today: Day, rebuild_memory: Option<u32>) -> anyhow::Result<Folders> {
        let root = tempfile::Builder::new().prefix("dropdex-bench-").tempdir();
        let root = root.context("cannot create a folder; TMPDIR names another place")?;
        let [data, index, config] =
            ["data", "index", "dropdex.toml"].map(|name| root.path().join(name));
        let bound = rebuild_memory.map(|mib| format!("[index]\nrebuild_memory_mib = {mib}\n"));
        fs::write(&config, bound.unwrap_or_default())?;
        let site = Site { data, index, config, today };
        Ok(Folders { root, site })
    }

    /// Returns the data folder of the server in this process, which holds only accounts.
    pub fn accounts(&self) -> PathBuf {
        self.root.path().join("accounts")
    }

    /// Returns the folder for files of peers and clients.
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}

/// Duration and size of each stage.
pub struct Built {
    /// Number of rows in the list.
    pub rows: u64,
    pub ingest: Ran,
    pub rebuild: Ran,
    /// Bytes of all files of the generation.
    pub index_bytes: u64,
    /// Bytes of the batch.
    pub corpus_bytes: u64,
}

/// Takes the observations that `drops` generates for the market through every stage. The list is not
/// sorted, so that ingest has to sort it, and is removed once it is read.
///
/// # Errors
///
/// A stage fails, or the corpus holds other names.
pub fn build(
    folders: &Folders,
    market: &Market,
    drops: &Drops,
    seed: u64,
) -> anyhow::Result<Built> {
    let (site, list) = (&folders.site, folders.root().join("list.csv"));
    write_list(&list, market, drops, seed).with_context(|| list.display().to_string())?;
    let path = list.to_str().context("TMPDIR is UTF-8")?;
    let observed = site.today.to_string();
    let ingest = site.run(&["ingest", "--no-rebuild", "--observed-at", &observed, path])?;
    fs::remove_file(&list)?;
    let summary: Value = serde_json::from_str(&ingest.stdout)?;
    let (names, rows) = (summary["names"].as_u64(), summary["rows"].as_u64());
    ensure!(names == Some(market.len() as u64), "{names:?} of {} names ingested", market.len());
    let rebuild = site.run(&["rebuild"])?;
    let corpus_bytes = bytes_in(&site.data.join("corpus"))?;
    let index_bytes = bytes_in(&site.index)?;
    Ok(Built { rows: rows.unwrap_or(0), ingest, rebuild, index_bytes, corpus_bytes })
}

/// Opens the built index, and returns how long that took.
///
/// # Errors
///
/// It cannot be opened.
pub fn open(folders: &Folders) -> anyhow::Result<(Index, Duration)> {
    let started = Instant::now();
    let Opened { index, fallback } = open::open_current(&folders.site.index)?;
    let took = started.elapsed();
    match fallback {
        Some(problem) => Err(problem.into()),
        None => Ok((index, took)),
    }
}

/// A day's list, ingested while a server runs.
pub struct DayTaken {
    /// Number of names in it.
    pub names: usize,
    /// Time from the start of the command until the server serves the new generation.
    pub took: Duration,
    /// Peak resident bytes of the server with both generations; `None` if the system does not report
    /// them.
    pub peak_bytes: Option<u64>,
}

/// A list of names that dropped on one day.
pub struct DayList {
    path: PathBuf,
    names: usize,
}

/// Writes a list of names, distributed over the market, that dropped today.
///
/// # Errors
///
/// It cannot be written.
pub fn write_day(folders: &Folders, market: &Market) -> anyhow::Result<DayList> {
    let (site, path) = (&folders.site, folders.root().join("day.csv"));
    let names = DAY_NAMES.min(market.len());
    let mut out = BufWriter::new(File::create(&path)?);
    let dropped = (0..names).map(|at| Observation {
        name: market.name(at * market.len() / names),
        sighting: Sighting::Dropped { date: site.today, release: None, registered_again: false },
        first_seen: None,
        observed_at: site.today.start(),
    });
    write_csv(dropped, &mut out)?;
    out.into_inner()?;
    Ok(DayList { path, names })
}

/// Ingests the list into a running server.
///
/// # Errors
///
/// The list is refused, or a command fails.
pub fn take_day(folders: &Folders, list: &DayList) -> anyhow::Result<DayTaken> {
    let (site, &DayList { ref path, names }) = (&folders.site, list);
    let key = site.new_key()?;
    let server = site.serve()?;
    let before = server.generation(&key)?;
    let begun = Instant::now();
    let observed = format!("{}T12:00:00Z", site.today);
    let path = path.to_str().context("TMPDIR is UTF-8")?;
    site.run(&["ingest", "--observed-at", &observed, path])?;
    while server.generation(&key)? == before {
        ensure!(begun.elapsed() < DAY_TIMEOUT, "the day's list is not served");
        std::thread::sleep(LOOK);
    }
    Ok(DayTaken { names, took: begun.elapsed(), peak_bytes: server.peak_bytes() })
}

fn write_list(path: &Path, market: &Market, drops: &Drops, seed: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let names = shuffled(market.len() as u64, seed).map(|at| market.name(at as usize));
    write_csv(drops.observations(names), &mut out)?;
    out.flush()
}

fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let (path, meta) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        bytes += if meta.is_dir() { bytes_in(&path)? } else { meta.len() };
    }
    Ok(bytes)
}
