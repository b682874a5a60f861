//! The section `[index]`: the folder of the generations, and how many are kept.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::number::Bounded;
use crate::index::generation::build::Keep;

/// A rebuild merges all batches side by side, and each is one more file to verify.
const COMPACT_ABOVE_DEFAULT: u32 = 64;

/// Settings of index generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// Good generations that stay on disk.
    pub keep: Keep,
    /// Number of batches above which a rebuild compacts them; 0 never compacts.
    pub compact_above: u32,
}

impl Default for IndexSettings {
    fn default() -> IndexSettings {
        IndexSettings { keep: Keep::default(), compact_above: COMPACT_ABOVE_DEFAULT }
    }
}

/// The section in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexFile {
    pub folder: Option<PathBuf>,
    keep: Option<Bounded<1, { Keep::MAX as u32 }>>,
    compact_above: Option<u32>,
}

impl IndexFile {
    pub fn settings(&self) -> IndexSettings {
        let default = IndexSettings::default();
        IndexSettings {
            keep: self.keep.and_then(|keep| Keep::new(keep.get())).unwrap_or(default.keep),
            compact_above: self.compact_above.unwrap_or(default.compact_above),
        }
    }
}
