//! Requests: work for the pipeline. A request is complete, so that running it reads no settings.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::feeds::Format;
use crate::index::generation::build::BuildSettings;
use crate::intake::tables::TableFile;
use crate::vocab::clock::Clock;
use crate::vocab::day::Day;
use crate::vocab::origin::Origin;
use crate::zones;

/// One piece of work and the installation it is for.
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
    pub clock: Clock,
    /// Names of zones that become names of the corpus.
    #[serde(default)]
    pub zone_names: zones::Keep,
    /// Tables that replace the compiled ones.
    #[serde(default)]
    pub tables: Vec<TableFile>,
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
    /// Whether a generation is built when the corpus holds lists that no generation does.
    pub rebuild: bool,
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
