//! Files of a generation, each read into owned memory and verified before use. No file is
//! memory-mapped, because truncating a mapped file kills the process with SIGBUS.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytemuck::Pod;
use rayon::prelude::*;

use crate::error::GenerationError;
use crate::storage::manifest::{FileSum, Manifest};
use crate::vocab::file_error::AtPath;

/// Bytes that a thread reads at a time. Page faults on fresh memory are slow, so all cores share
/// the work.
const CHUNK_BYTES: usize = 4 << 20;

/// Files listed in a manifest.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    sums: BTreeMap<String, FileSum>,
    /// Files that are not yet taken.
    left: Mutex<BTreeSet<String>>,
}

impl Files {
    /// Creates the list of files, without reading them.
    pub fn new(folder: &Path, manifest: &Manifest) -> Files {
        let left = manifest.files.keys().cloned().collect();
        Files { folder: folder.to_owned(), sums: manifest.files.clone(), left: Mutex::new(left) }
    }

    /// Reads the values in the file `name` after checking its length and hash.
    ///
    /// # Errors
    /// The file is not listed, not readable, or damaged.
    pub fn take<T: Pod>(&self, name: &str) -> Result<Vec<T>, GenerationError> {
        const { assert!(cfg!(target_endian = "little"), "files hold flat little-endian values") };
        let sum = self.sums.get(name).ok_or_else(|| {
            GenerationError::malformed(&self.folder, format!("its manifest lists no {name}"))
        })?;
        self.left.lock().expect("no code panics holding this lock").remove(name);
        let (path, file) = self.open(name, sum)?;
        let bytes = usize::try_from(sum.len).unwrap_or(usize::MAX);
        if !bytes.is_multiple_of(size_of::<T>()) {
            return Err(self.malformed(name, "ends within a value"));
        }
        let mut values = vec![T::zeroed(); bytes / size_of::<T>()];
        let found = read(&file, bytemuck::cast_slice_mut(&mut values)).at(&path)?;
        compare(path, found, sum)?;
        Ok(values)
    }

    /// Verifies every file without keeping any in memory.
    ///
    /// # Errors
    /// A file is not readable, or damaged.
    pub fn verify(&self) -> Result<(), GenerationError> {
        self.sums.par_iter().try_for_each(|(name, sum)| {
            let (path, file) = self.open(name, sum)?;
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(file).at(&path)?;
            compare(path, hasher.finalize().to_hex().to_string(), sum)
        })
    }

    /// Opens a file and checks its length.
    fn open(&self, name: &str, sum: &FileSum) -> Result<(PathBuf, File), GenerationError> {
        let path = self.folder.join(name);
        let file = File::open(&path).at(&path)?;
        let len = file.metadata().at(&path)?.len();
        if len != sum.len {
            return Err(GenerationError::Length { path, len, expected: sum.len });
        }
        Ok((path, file))
    }

    /// Returns the names of the files that start with `prefix`.
    pub fn names_under(&self, prefix: &str) -> Vec<String> {
        self.sums.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
    }

    /// Checks that every file was taken, and so verified.
    ///
    /// # Errors
    /// The manifest lists a file that no part of the index uses.
    pub fn finish(self) -> Result<(), GenerationError> {
        let left = self.left.into_inner().expect("no code panics holding this lock");
        match left.into_iter().next() {
            None => Ok(()),
            Some(name) => {
                let what = format!("its manifest lists {name}, which does not belong to an index");
                Err(GenerationError::malformed(&self.folder, what))
            }
        }
    }

    /// Checks that the content of a verified file matches the other files.
    ///
    /// # Errors
    /// The content does not match.
    pub fn check(&self, fits: bool, name: &str) -> Result<(), GenerationError> {
        if fits { Ok(()) } else { Err(self.malformed(name, "does not fit the other files")) }
    }

    /// Returns the error for a verified file with unexpected content.
    pub fn malformed(&self, name: &str, what: impl Display) -> GenerationError {
        GenerationError::malformed(&self.folder.join(name), what)
    }
}

fn compare(path: PathBuf, found: String, sum: &FileSum) -> Result<(), GenerationError> {
    if found == sum.blake3 {
        return Ok(());
    }
    Err(GenerationError::Checksum { path, found, expected: sum.blake3.clone() })
}

/// Fills `bytes` from the start of `file` and returns their hash in hex.
fn read(file: &File, bytes: &mut [u8]) -> io::Result<String> {
    bytes
        .par_chunks_mut(CHUNK_BYTES)
        .enumerate()
        .try_for_each(|(at, chunk)| file.read_exact_at(chunk, (at * CHUNK_BYTES) as u64))?;
    Ok(blake3::Hasher::new().update_rayon(bytes).finalize().to_hex().to_string())
}
