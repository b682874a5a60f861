//! Manifest of a generation, and the folder layout of the index.
//!
//! ```text
//! index/gen-<20 digits>/MANIFEST      line 1: JSON, line 2: BLAKE3 of line 1, hex
//! index/gen-<20 digits>/...           the files the manifest lists, with length and BLAKE3
//! index/CURRENT                       the name of the generation to serve
//! index/REBUILD.lock                  held by the one process that builds or flips CURRENT
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::corpus::batch::Batch;
use crate::corpus::ranked::{RankedList, RankedMeta};
use crate::corpus::seen::Seen;
use crate::error::GenerationError;
use crate::scorer::Coverage;
use crate::vocab::day::Day;
use crate::vocab::file_error::AtPath;
use crate::vocab::new_file;
use crate::vocab::popularity::ListEdition;

/// Version of the file formats, raised when one changes. Generations of other versions are
/// rejected; a rebuild from the corpus replaces them.
pub const INDEX_FORMAT: u32 = 18;

/// File that names the generation to serve.
const CURRENT: &str = "CURRENT";
/// File that describes a generation, in its folder.
pub const MANIFEST: &str = "MANIFEST";
/// Prefix of temporary files that become `CURRENT`.
pub(crate) const CURRENT_DRAFT: &str = ".current-";

/// Number of a generation, written as `gen-` and 20 digits in folder names and `CURRENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GenerationId(pub u64);

impl fmt::Display for GenerationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gen-{:020}", self.0)
    }
}

impl FromStr for GenerationId {
    type Err = ();

    /// Accepts only the exact spelling, since the content of `CURRENT` becomes part of a path.
    fn from_str(text: &str) -> Result<GenerationId, ()> {
        let digits = text.strip_prefix("gen-").ok_or(())?;
        if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(());
        }
        digits.parse().map(GenerationId).map_err(|_| ())
    }
}

/// Length and hash of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    pub len: u64,
    pub blake3: String,
}

/// A Public Suffix List and its effect on a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuffixesUsed {
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// Number of names of the corpus that were omitted because they are not registrable under this
    /// list.
    pub names_left_out: u64,
}

/// A popularity list whose ranks are in a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedList {
    #[serde(flatten)]
    pub edition: ListEdition,
    /// SHA-256 of the list, in hex.
    pub sha256: String,
}

impl From<&RankedMeta> for UsedList {
    fn from(meta: &RankedMeta) -> UsedList {
        UsedList { edition: meta.edition.clone(), sha256: meta.source_sha256.clone() }
    }
}

/// The generation that a delta extends, and the contents of the delta's own files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    pub base: GenerationId,
    /// [`Manifest::digest`] of the base.
    pub base_manifest: String,
    pub own: Contents,
}

/// Contents of the files of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    pub names: u32,
    /// Number of names that dropped, registered again or not.
    pub dropped: u32,
    /// Number of names on the drops list.
    pub drops: u32,
    /// Every TLD; positions are TLD numbers.
    pub tlds: Vec<String>,
}

/// Description of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub generation: GenerationId,
    pub created: DateTime<Utc>,
    /// Version of the scorer that computed its scores.
    pub scorer_version: u32,
    /// [`DROP_RULES`](crate::corpus::drops::DROP_RULES) by which records became drops; 0 for older
    /// rules.
    #[serde(default)]
    pub drop_rules: u32,
    /// Versions of the libraries that wrote its files.
    pub tantivy: String,
    pub fst: String,
    /// BLAKE3 of the checksums of its batches and popularity lists, and the number of lists in them, which is the
    /// number of the newest list.
    pub corpus: String,
    pub batches: u64,
    /// Public Suffix List that replaced the compiled-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffixes: Option<SuffixesUsed>,
    /// Versions of the tables about TLDs that replaced the compiled-in ones, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, String>,
    /// Share of the market that the corpus holds, on which scores depend.
    #[serde(default)]
    pub coverage: Coverage,
    /// The days on which lists showed the outcomes of dropped names.
    #[serde(default)]
    pub seen: Seen,
    /// Numbers of the lists whose terms allow internal use only, ascending from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub internal_lists: Vec<u32>,
    /// Popularity lists, each at most once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub popularity: Vec<UsedList>,
    /// Observation time of the newest list.
    pub newest_observed_at: Option<DateTime<Utc>>,
    /// Set for a delta. If this member is set, the members below, except `files`, describe base and
    /// delta together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<Extension>,
    /// Total number of names.
    pub names: u32,
    /// Number of names that dropped, registered again or not.
    pub dropped: u32,
    /// Number of names on the drops list: those that dropped and were not registered again.
    pub drops: u32,
    /// Every drop date, ascending.
    pub drop_dates: Vec<Day>,
    /// Every TLD. Unless the generation is a delta, the most frequent are first, and positions are
    /// TLD numbers.
    pub tlds: Vec<String>,
    /// All files except the manifest, by path within the folder.
    pub files: BTreeMap<String, FileSum>,
}

impl Manifest {
    /// Returns the contents of the generation's files.
    pub fn own(&self) -> Contents {
        let Manifest { names, dropped, drops, .. } = *self;
        let whole = || Contents { names, dropped, drops, tlds: self.tlds.clone() };
        self.extends.as_ref().map_or_else(whole, |extension| extension.own.clone())
    }

    /// Returns the generation that this one extends.
    pub fn base(&self) -> Option<GenerationId> {
        self.extends.as_ref().map(|extension| extension.base)
    }

    /// Returns the total size of the files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.len).sum()
    }

    /// Returns a hash, in hex, that identifies the generation.
    pub fn digest(&self) -> String {
        let json =
            serde_json::to_vec(self).expect("all keys of maps in a manifest are text values");
        blake3::hash(&json).to_hex().to_string()
    }

    /// Writes and syncs the manifest of the generation in `folder`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string(self).map_err(io::Error::other)?;
        let sum = blake3::hash(text.as_bytes()).to_hex();
        text.push('\n');
        text.push_str(sum.as_str());
        text.push('\n');
        let mut file = new_file::create_new(&folder.join(MANIFEST))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    /// Reads and verifies the manifest of the generation in `folder`.
    ///
    /// # Errors
    /// The manifest is missing, damaged, or of another format.
    pub fn read(folder: &Path) -> Result<Manifest, GenerationError> {
        let path = folder.join(MANIFEST);
        let text = fs::read_to_string(&path).at(&path)?;
        let (json, sum) = text
            .strip_suffix('\n')
            .and_then(|text| text.split_once('\n'))
            .ok_or_else(|| GenerationError::malformed(&path, "not two lines"))?;
        let found = blake3::hash(json.as_bytes()).to_hex().to_string();
        if found != sum {
            let expected = sum.chars().take(64).collect();
            return Err(GenerationError::Checksum { path, found, expected });
        }
        #[derive(Deserialize)]
        struct FormatAlone {
            format: u32,
        }
        let FormatAlone { format } =
            serde_json::from_str(json).map_err(|err| GenerationError::malformed(&path, err))?;
        if format != INDEX_FORMAT {
            return Err(GenerationError::Format { path, found: format, expected: INDEX_FORMAT });
        }
        serde_json::from_str(json).map_err(|err| GenerationError::malformed(&path, err))
    }
}

/// Returns the hash of the checksums of batches, then of popularity lists, in hex.
pub fn digest_of<'a>(checksums: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut corpus = blake3::Hasher::new();
    for checksum in checksums {
        corpus.update(checksum);
    }
    corpus.finalize().to_hex().to_string()
}

/// Returns the [`digest_of`] open batches and popularity lists.
pub fn corpus_digest(batches: &[Batch], ranked: &[RankedList]) -> String {
    let ranked = ranked.iter().map(RankedList::checksum);
    digest_of(batches.iter().map(Batch::checksum).chain(ranked))
}

/// Returns the folder of a generation.
pub fn folder_of(index: &Path, generation: GenerationId) -> PathBuf {
    index.join(generation.to_string())
}

/// Returns the generations on disk, oldest first, including damaged ones.
///
/// # Errors
/// The index folder cannot be read. A missing folder is not an error.
pub fn generations(index: &Path) -> Result<Vec<GenerationId>, GenerationError> {
    let entries = match fs::read_dir(index) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.at(index)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.at(index)?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<GenerationId>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the generation that `CURRENT` names; `None` before the first rebuild.
///
/// # Errors
/// `CURRENT` is unreadable or malformed.
pub fn current(index: &Path) -> Result<Option<GenerationId>, GenerationError> {
    let path = index.join(CURRENT);
    let text = match fs::read(&path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => String::from_utf8(read.at(&path)?).unwrap_or_default(),
    };
    let generation = text.strip_suffix('\n').unwrap_or(&text).parse();
    let malformed = |()| GenerationError::malformed(&path, "does not name a generation");
    generation.map(Some).map_err(malformed)
}

/// File in the index folder that exists while a rollback is in effect: newer generations are
/// deliberately not in use. Without this file, a newer generation was left by a build that was
/// killed before it could point `CURRENT` at it.
const ROLLED_BACK: &str = "ROLLED-BACK";

/// Marks the generations after the current one as rolled back, until another one becomes current.
///
/// # Errors
/// A disk operation fails.
pub fn mark_rolled_back(index: &Path) -> Result<(), GenerationError> {
    let path = index.join(ROLLED_BACK);
    Ok(new_file::create(&path).and_then(|file| file.sync_all()).at(&path)?)
}

/// Returns the generations that are in use, or were until an operator rolled back.
///
/// # Errors
/// As [`generations`] and [`current`].
pub fn published(index: &Path) -> Result<Vec<GenerationId>, GenerationError> {
    let mut generations = generations(index)?;
    if !index.join(ROLLED_BACK).exists() {
        let current = current(index)?;
        generations.retain(|generation| current.is_some_and(|current| *generation <= current));
    }
    Ok(generations)
}

/// Points `CURRENT` at `generation`: writes a temporary file, syncs it, renames it, syncs the
/// folder.
///
/// # Errors
/// A disk operation fails; `CURRENT` then names either the old or the new one.
pub fn set_current(index: &Path, generation: GenerationId) -> Result<(), GenerationError> {
    let flip = || -> io::Result<()> {
        let mut draft = tempfile::Builder::new().prefix(CURRENT_DRAFT).tempfile_in(index)?;
        writeln!(draft, "{generation}")?;
        draft.as_file().sync_all()?;
        draft.persist(index.join(CURRENT)).map_err(|err| err.error)?;
        match fs::remove_file(index.join(ROLLED_BACK)) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
        sync_folder(index)
    };
    Ok(flip().at(&index.join(CURRENT))?)
}

/// Syncs renames and new files in `folder`.
///
/// # Errors
/// The system call fails.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_are_generations() {
        assert_eq!("gen-00000000000000000012".parse(), Ok(GenerationId(12)));
        assert_eq!(GenerationId(12).to_string(), "gen-00000000000000000012");
        for bad in [
            "gen-12",
            "gen-0000000000000000001a",
            "../gen-00000000000000000012",
            "gen-00000000000000000012/..",
            "gen-99999999999999999999",
            "",
            "gen-+0000000000000000001",
        ] {
            assert_eq!(bad.parse::<GenerationId>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn current_flips_whole() {
        let index = tempfile::tempdir().expect("a folder");
        assert!(matches!(current(index.path()), Ok(None)));
        set_current(index.path(), GenerationId(1)).expect("set");
        set_current(index.path(), GenerationId(2)).expect("set");
        assert!(matches!(current(index.path()), Ok(Some(GenerationId(2)))));
        fs::write(index.path().join(CURRENT), "gen-2\n").expect("written");
        assert!(matches!(current(index.path()), Err(GenerationError::Malformed { .. })));
        fs::write(index.path().join(CURRENT), b"\xff\n").expect("written");
        assert!(matches!(current(index.path()), Err(GenerationError::Malformed { .. })));
    }
}
