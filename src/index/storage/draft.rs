//! Files of a generation being written. The files are hashed while they are written, so that the
//! manifest needs no second read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytemuck::Pod;

use crate::error::BuildError;
use crate::storage::manifest::{self, FileSum};
use crate::storage::space::Space;
use crate::vocab::file_error::AtPath;
use crate::vocab::new_file;

/// Size of the write buffer.
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes written between two checks of the free disk space.
const SPACE_EVERY_BYTES: u64 = 4 << 20;

/// The unfinished folder of a generation. Files can be written in parallel.
#[derive(Debug)]
pub struct Draft {
    folder: PathBuf,
    /// Space to leave free on the file system, if known.
    space: Option<Space>,
    sums: Mutex<BTreeMap<String, FileSum>>,
    /// Whether writers may run concurrently.
    side_by_side: bool,
}

/// A file of a [`Draft`], listed once it is finished.
#[derive(Debug)]
pub struct DraftFile<'a> {
    draft: &'a Draft,
    name: String,
    path: PathBuf,
    out: BufWriter<Hashed>,
}

/// A file with a running hash of its content.
#[derive(Debug)]
struct Hashed {
    file: File,
    hasher: blake3::Hasher,
    len: u64,
    space: Option<Space>,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        let looked = self.len / SPACE_EVERY_BYTES;
        self.len += bytes.len() as u64;
        if let Some(space) = &self.space
            && self.len / SPACE_EVERY_BYTES > looked
        {
            space.leave_room(0).map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Draft {
    /// Creates the folder of a draft.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(folder: PathBuf) -> io::Result<Draft> {
        new_file::create_new_folder(&folder)?;
        let space = Space::for_folder(&folder).ok();
        Ok(Draft { folder, space, sums: Mutex::default(), side_by_side: true })
    }

    /// Lets [`Draft::both`] run one writer after the other.
    pub fn run_one_by_one(&mut self) {
        self.side_by_side = false;
    }

    /// Runs two writers concurrently, unless memory is scarce.
    ///
    /// # Errors
    /// One of them fails.
    pub fn both(
        &self,
        one: impl FnOnce() -> Result<(), BuildError> + Send,
        other: impl FnOnce() -> Result<(), BuildError> + Send,
    ) -> Result<(), BuildError> {
        if !self.side_by_side {
            return one().and_then(|()| other());
        }
        let (one, other) = rayon::join(one, other);
        one.and(other)
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a file; `name` is its path within the folder. Missing folders are created.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub fn create(&self, name: &str) -> Result<DraftFile<'_>, BuildError> {
        let path = self.folder.join(name);
        let parent = path.parent().unwrap_or(&self.folder);
        let made = new_file::create_folder(parent).and_then(|()| new_file::create_new(&path));
        let (file, space) = (made.at(&path)?, self.space.clone());
        let hashed = Hashed { file, hasher: blake3::Hasher::new(), len: 0, space };
        let out = BufWriter::with_capacity(BUFFER_BYTES, hashed);
        Ok(DraftFile { draft: self, name: name.to_owned(), path, out })
    }

    /// Writes a file with these values, little-endian.
    ///
    /// # Errors
    /// As [`Draft::create`], or the disk is full.
    pub fn put<T: Pod>(&self, name: &str, values: &[T]) -> Result<(), BuildError> {
        let mut file = self.create(name)?;
        file.append(values)?;
        file.finish()
    }

    /// Lists a file that other code (tantivy) wrote into the folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn adopt(&self, name: &str) -> Result<(), BuildError> {
        let mut hasher = blake3::Hasher::new();
        let path = self.folder.join(name);
        let copied = File::open(&path).and_then(|mut file| io::copy(&mut file, &mut hasher));
        self.add(name.to_owned(), copied.at(&path)?, &hasher);
        Ok(())
    }

    /// Checks that another `bytes` bytes leave the space that the file system must keep.
    ///
    /// # Errors
    /// There is not enough space.
    pub fn leave_room(&self, bytes: u64) -> Result<(), BuildError> {
        self.space.as_ref().map_or(Ok(()), |space| Ok(space.leave_room(bytes)?))
    }

    /// Returns length and hash of each file by name.
    pub fn sums(&self) -> BTreeMap<String, FileSum> {
        self.sums.lock().expect("no code panics holding this lock").clone()
    }

    /// Syncs all files and folders.
    ///
    /// # Errors
    /// A sync fails; the draft is then unusable.
    pub fn sync(&self) -> Result<(), BuildError> {
        let mut folders = std::collections::BTreeSet::from([self.folder.clone()]);
        for name in self.sums().keys() {
            let path = self.folder.join(name);
            folders.extend(path.parent().map(Path::to_owned));
            File::open(&path).and_then(|file| file.sync_all()).at(&path)?;
        }
        let mut deepest_first = folders.iter().rev();
        Ok(deepest_first.try_for_each(|folder| manifest::sync_folder(folder).at(folder))?)
    }

    fn add(&self, name: String, len: u64, hasher: &blake3::Hasher) {
        let sum = FileSum { len, blake3: hasher.finalize().to_hex().to_string() };
        self.sums.lock().expect("no code panics holding this lock").insert(name, sum);
    }
}

impl DraftFile<'_> {
    /// Appends values, little-endian.
    ///
    /// # Errors
    /// A write fails.
    pub fn append<T: Pod>(&mut self, values: &[T]) -> Result<(), BuildError> {
        const { assert!(cfg!(target_endian = "little"), "files hold flat little-endian values") };
        Ok(self.out.write_all(bytemuck::cast_slice(values)).at(&self.path)?)
    }

    /// Flushes the buffer and lists the file.
    ///
    /// # Errors
    /// A write fails.
    pub fn finish(self) -> Result<(), BuildError> {
        let DraftFile { draft, name, path, out } = self;
        let flushed = out.into_inner().map_err(io::IntoInnerError::into_error);
        let Hashed { hasher, len, .. } = flushed.at(&path)?;
        draft.add(name, len, &hasher);
        Ok(())
    }
}
