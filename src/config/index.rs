//! The section `[index]`: where generations are and how they are kept. A text alone,
//! `index = "folder"`, names the folder.

use std::fmt;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::index::build::Keep;

/// Batches that a corpus may have before they become one, unless told otherwise: a rebuild walks
/// all of them side by side, and each open file is one more to verify.
const COMPACT_ABOVE_DEFAULT: u32 = 64;

/// How the index is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// Good generations that stay on disk.
    pub keep: Keep,
    /// A rebuild makes one batch of all when there are more than this; 0 never does.
    pub compact_above: u32,
}

impl Default for IndexSettings {
    fn default() -> IndexSettings {
        IndexSettings { keep: Keep::default(), compact_above: COMPACT_ABOVE_DEFAULT }
    }
}

/// The section as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexFile {
    folder: Option<PathBuf>,
    keep: Option<u16>,
    compact_above: Option<u32>,
}

impl IndexFile {
    /// The folder, where it is named, and the settings.
    ///
    /// # Errors
    /// A number is out of its range.
    pub fn settings(self) -> anyhow::Result<(Option<PathBuf>, IndexSettings)> {
        let mut settings = IndexSettings::default();
        if let Some(keep) = self.keep {
            settings.keep = Keep::new(keep)
                .ok_or_else(|| anyhow::anyhow!("index.keep must be 1 to {}", Keep::MAX))?;
        }
        settings.compact_above = self.compact_above.unwrap_or(settings.compact_above);
        Ok((self.folder, settings))
    }
}

/// Reads the section, or the text that names the folder alone.
///
/// # Errors
/// Neither of them.
pub fn either<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IndexFile, D::Error> {
    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = IndexFile;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the index folder, or a section [index]")
        }

        fn visit_str<E>(self, folder: &str) -> Result<IndexFile, E> {
            Ok(IndexFile { folder: Some(folder.into()), ..IndexFile::default() })
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<IndexFile, A::Error> {
            IndexFile::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(Either)
}
