//! The section `[index]`: the folder of the generations, and how they are built.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::number::Bounded;
use crate::index::generation::base::ExtendRule;
use crate::index::generation::build::{BuildSettings, Keep};
use crate::index::generation::memory::MemoryBound;
use crate::index::query::index::Contains;
use crate::intake::request::WorkerMemory;
use crate::vocab::named;

/// A rebuild opens and verifies every batch, and merges them all at once.
const COMPACT_ABOVE_DEFAULT: u32 = 64;

/// Enough for 12 columns about 500,000 names, five times over.
const FACTS_MEMORY_MIB_DEFAULT: u32 = 64;
const FACTS_MEMORY_MIB_MAX: u32 = 65_536;

/// Settings of index generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// Generations kept on disk, memory of a rebuild, and when a delta suffices instead of a rebuild.
    pub build: BuildSettings,
    /// Number of batches above which a rebuild compacts them; 0 never compacts.
    pub compact_above: u32,
    /// Memory limit of a worker process.
    pub worker: WorkerMemory,
    /// Memory of the facts that are joined with the index.
    pub facts_memory_mib: u32,
}

impl Default for IndexSettings {
    fn default() -> IndexSettings {
        let build = BuildSettings::default();
        let worker = WorkerMemory::for_rebuild(build.memory);
        let facts_memory_mib = FACTS_MEMORY_MIB_DEFAULT;
        IndexSettings { build, compact_above: COMPACT_ABOVE_DEFAULT, worker, facts_memory_mib }
    }
}

/// The section in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexFile {
    pub folder: Option<PathBuf>,
    keep: Option<Bounded<1, { Keep::MAX as u32 }>>,
    compact_above: Option<u32>,
    rebuild_memory_mib: Option<Bounded<{ MemoryBound::MIN_MIB }, { MemoryBound::MAX_MIB }>>,
    worker_memory_mib: Option<Bounded<{ WorkerMemory::MIN_MIB }, { MemoryBound::MAX_MIB }>>,
    extend_from: Option<u32>,
    extend_percent: Option<Bounded<0, 100>>,
    #[serde(deserialize_with = "named::optional")]
    contains: Option<Contains>,
    facts_memory_mib: Option<Bounded<1, FACTS_MEMORY_MIB_MAX>>,
}

impl IndexFile {
    pub fn settings(&self) -> IndexSettings {
        let default = IndexSettings::default();
        let memory = self.rebuild_memory_mib.and_then(|mib| MemoryBound::from_mib(mib.get()));
        let memory = memory.unwrap_or_default();
        let worker = self.worker_memory_mib.map(|mib| WorkerMemory::from_mib(mib.get()));
        IndexSettings {
            build: BuildSettings {
                keep: self.keep.and_then(|keep| Keep::new(keep.get())).unwrap_or_default(),
                memory,
                extend: ExtendRule {
                    from: self.extend_from.unwrap_or(default.build.extend.from),
                    percent: self.extend_percent.map_or(default.build.extend.percent, Bounded::get),
                },
                contains: self.contains,
            },
            compact_above: self.compact_above.unwrap_or(default.compact_above),
            worker: worker.unwrap_or_else(|| WorkerMemory::for_rebuild(memory)),
            facts_memory_mib: self.facts_memory_mib.map_or(FACTS_MEMORY_MIB_DEFAULT, Bounded::get),
        }
    }
}
