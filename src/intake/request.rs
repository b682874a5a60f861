//! Requests: work for the pipeline. A request is complete, so that running it reads no settings.

use std::fmt;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::feeds::Format;
use crate::index::generation::build::BuildSettings;
use crate::index::generation::memory::MemoryBound;
use crate::intake::tables::TableFile;
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

/// The folders of an installation and how it builds generations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Site {
    pub data: PathBuf,
    pub index: PathBuf,
    pub build: BuildSettings,
    /// A rebuild compacts the corpus first when it has more batches than this; 0 never compacts.
    pub compact_above: u32,
    /// Memory of the process that runs a request for a server.
    #[serde(default)]
    pub worker: WorkerMemory,
    pub clock: Clock,
    /// Names of zones that become names of the corpus.
    #[serde(default)]
    pub zone_names: zones::Keep,
    /// Tables that replace the compiled ones.
    #[serde(default)]
    pub tables: Vec<TableFile>,
}

/// Maximum memory of a worker process, in MiB: a list that takes more than a rebuild ever does is damaged, or
/// made to exhaust the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerMemory {
    mib: u32,
}

impl WorkerMemory {
    /// Less does not start the threads of a rebuild.
    pub const MIN_MIB: u32 = 32;
    /// Dictionaries, threads, and the new index that a rebuild opens to verify it.
    const BESIDES_MIB: u64 = 2 << 10;

    /// A limit of at least [`WorkerMemory::MIN_MIB`].
    pub fn from_mib(mib: u32) -> WorkerMemory {
        WorkerMemory { mib: mib.max(WorkerMemory::MIN_MIB) }
    }

    /// Twice what a rebuild may take, and what any worker needs.
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

/// In MiB, like the setting.
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
    /// When the lists were observed; `None` takes the list's own time stamp, else now.
    pub observed_at: Option<DateTime<Utc>>,
    /// Where the lists were fetched from.
    pub origin: Option<Origin>,
    /// The zone that a zone file must hold; `None` takes any.
    #[serde(default)]
    pub zone: Option<String>,
    /// Whether to build a generation if the corpus holds lists that are not in one.
    pub rebuild: bool,
}

impl Task {
    /// Whether the day of the work becomes that of lists.
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
    /// Two files of one zone; what changed between them is one list.
    ZonePair { older: PathBuf, newer: PathBuf },
}

/// Builds a generation from the corpus.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Rebuild {
    /// Merges all batches into one first.
    pub compact: bool,
    /// Builds nothing when a generation holds every list.
    pub only_if_behind: bool,
}

impl Task {
    /// The files that the task reads, besides the corpus.
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
