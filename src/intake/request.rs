//! Requests: work for the pipeline. A request is self-contained, so that running it reads no
//! settings.

use std::fmt;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::feeds::Format;
use crate::index::generation::build::BuildSettings;
use crate::index::generation::memory::MemoryBound;
use crate::tables::TableFile;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::origin::Origin;
use crate::zones;

/// A task and its installation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    pub site: Site,
    pub task: Task,
}

/// The folders of an installation, and its settings for building generations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Site {
    pub data: PathBuf,
    pub index: PathBuf,
    pub build: BuildSettings,
    /// Number of batches above which a rebuild compacts the corpus first; 0 never compacts.
    pub compact_above: u32,
    /// Memory limit of the process that runs a request for a server.
    #[serde(default)]
    pub worker: WorkerMemory,
    pub clock: Clock,
    /// Selects the names of zone files that enter the corpus.
    #[serde(default)]
    pub zone_names: zones::Keep,
    /// Tables that replace the compiled-in ones.
    #[serde(default)]
    pub tables: Vec<TableFile>,
}

/// Maximum memory of a worker process, in MiB. A list that needs more than any rebuild is damaged or
/// malicious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerMemory {
    mib: u32,
}

impl WorkerMemory {
    /// The threads of a rebuild cannot start with less.
    pub const MIN_MIB: u32 = 32;
    /// Memory for dictionaries, threads, and the new index that a rebuild opens to verify it.
    const BESIDES_MIB: u64 = 2 << 10;

    /// Creates a limit, raised to [`WorkerMemory::MIN_MIB`] if lower.
    pub fn from_mib(mib: u32) -> WorkerMemory {
        WorkerMemory { mib: mib.max(WorkerMemory::MIN_MIB) }
    }

    /// Creates a limit of twice the memory bound of a rebuild, plus the memory that every worker
    /// needs.
    pub fn for_rebuild(bound: MemoryBound) -> WorkerMemory {
        let mib = 2 * (bound.bytes() >> 20) + WorkerMemory::BESIDES_MIB;
        WorkerMemory::from_mib(u32::try_from(mib).unwrap_or(u32::MAX))
    }

    pub fn bytes(self) -> u64 {
        u64::from(self.mib) << 20
    }
}

impl Default for WorkerMemory {
    fn default() -> WorkerMemory {
        WorkerMemory::for_rebuild(MemoryBound::default())
    }
}

/// Formats the limit in MiB, like the setting.
impl fmt::Display for WorkerMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.mib)
    }
}

/// A piece of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    Ingest(Ingest),
    Rebuild(Rebuild),
}

/// Adds lists to the corpus.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ingest {
    pub lists: Lists,
    /// The drop date of lists that carry none.
    pub drop_date: Option<Day>,
    /// When the lists were observed; `None` uses the list's own time stamp or, without one, the
    /// current time.
    pub observed_at: Option<DateTime<Utc>>,
    /// Where the lists were fetched from.
    pub origin: Option<Origin>,
    /// Required zone of a zone file; `None` accepts any.
    #[serde(default)]
    pub zone: Option<String>,
    /// Whether to build a generation if the corpus holds lists that are not in one.
    pub rebuild: bool,
}

impl Task {
    /// Whether the current day may be used as the day of a list that has none.
    pub fn dates_lists(&self) -> bool {
        matches!(self, Task::Ingest(Ingest { observed_at: None, .. }))
    }
}

/// The files of an ingest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lists {
    /// Each file is one list; `None` recognises the format.
    Files { files: Vec<PathBuf>, format: Option<Format> },
    /// Two files of one zone; the changes between them are one list.
    ZonePair { older: PathBuf, newer: PathBuf },
}

/// Builds a generation from the corpus.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Rebuild {
    /// Whether to merge all batches into one first.
    pub compact: bool,
    /// Whether to build nothing if a generation already holds every list.
    pub only_if_behind: bool,
}

impl Task {
    /// Returns the files that the task reads, besides the corpus.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Task::Rebuild(_) => Vec::new(),
            Task::Ingest(Ingest { lists: Lists::Files { files, .. }, .. }) => files.clone(),
            Task::Ingest(Ingest { lists: Lists::ZonePair { older, newer }, .. }) => {
                vec![older.clone(), newer.clone()]
            }
        }
    }
}
