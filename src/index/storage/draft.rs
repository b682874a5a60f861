//! Files of a generation while it is written: hashed on their way to the disk, so that nothing is
//! read back to learn what the manifest says of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytemuck::Pod;

use crate::index::error::BuildError;
use crate::index::storage::manifest::{self, FileSum};
use crate::index::storage::space::Space;

/// Bytes gathered before they are hashed and written.
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes of a file between two looks at what the disk has left.
const SPACE_EVERY_BYTES: u64 = 4 << 20;

/// A generation's folder before it has its name. Files are written side by side.
#[derive(Debug)]
pub struct Draft {
    folder: PathBuf,
    /// What the file system has to keep free, where that is known.
    space: Option<Space>,
    sums: Mutex<BTreeMap<String, FileSum>>,
}

/// One file of a [`Draft`]; part of it once it is finished.
#[derive(Debug)]
pub struct DraftFile<'a> {
    draft: &'a Draft,
    name: String,
    out: BufWriter<Hashed>,
}

/// A file and the hash of what went into it.
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
            space.check(0).map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Draft {
    /// A draft in the new folder `folder`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: PathBuf) -> io::Result<Draft> {
        fs::create_dir(&folder)?;
        let space = Space::for_folder(&folder).ok();
        Ok(Draft { folder, space, sums: Mutex::default() })
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new file, `name` being its path within the folder; folders on the way are made.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn create(&self, name: &str) -> Result<DraftFile<'_>, BuildError> {
        let path = self.folder.join(name);
        let parent = path.parent().unwrap_or(&self.folder);
        let made = fs::create_dir_all(parent).and_then(|()| File::create_new(&path));
        let file = made.map_err(self.failed(name))?;
        let space = self.space.clone();
        let hashed = Hashed { file, hasher: blake3::Hasher::new(), len: 0, space };
        let out = BufWriter::with_capacity(BUFFER_BYTES, hashed);
        Ok(DraftFile { draft: self, name: name.to_owned(), out })
    }

    /// A new file of these values, little-endian.
    ///
    /// # Errors
    /// As [`Draft::create`], and a full disk.
    pub fn put<T: Pod>(&self, name: &str, values: &[T]) -> Result<(), BuildError> {
        let mut file = self.create(name)?;
        file.write_values(values).map_err(self.failed(name))?;
        file.finish()
    }

    /// Makes a file that somebody else wrote into the folder part of the draft.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn adopt(&self, name: &str) -> Result<(), BuildError> {
        let mut hasher = blake3::Hasher::new();
        let copy = File::open(self.folder.join(name))
            .and_then(|mut file| io::copy(&mut file, &mut hasher))
            .map_err(self.failed(name))?;
        self.add(name.to_owned(), copy, &hasher);
        Ok(())
    }

    /// What the manifest says of the files: length and hash of each by name.
    pub fn sums(&self) -> BTreeMap<String, FileSum> {
        self.sums.lock().expect("no code panics holding this lock").clone()
    }

    /// Makes all files and folders durable.
    ///
    /// # Errors
    /// A sync fails; the draft is then worth nothing.
    pub fn sync(&self) -> Result<(), BuildError> {
        let mut folders = std::collections::BTreeSet::from([self.folder.clone()]);
        for name in self.sums().keys() {
            let path = self.folder.join(name);
            folders.extend(path.parent().map(Path::to_owned));
            File::open(&path).and_then(|file| file.sync_all()).map_err(self.failed(name))?;
        }
        folders.iter().rev().try_for_each(|folder| {
            manifest::sync_folder(folder)
                .map_err(|source| BuildError::Io { path: folder.clone(), source })
        })
    }

    fn add(&self, name: String, len: u64, hasher: &blake3::Hasher) {
        let sum = FileSum { len, blake3: hasher.finalize().to_hex().to_string() };
        self.sums.lock().expect("no code panics holding this lock").insert(name, sum);
    }

    fn failed(&self, name: &str) -> impl FnOnce(io::Error) -> BuildError + use<> {
        let path = self.folder.join(name);
        move |source| BuildError::Io { path, source }
    }
}

impl DraftFile<'_> {
    /// Appends values, little-endian.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write_values<T: Pod>(&mut self, values: &[T]) -> io::Result<()> {
        const { assert!(cfg!(target_endian = "little"), "files hold flat little-endian values") };
        self.out.write_all(bytemuck::cast_slice(values))
    }

    /// Writes what is buffered and makes the file part of the draft.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(self) -> Result<(), BuildError> {
        let DraftFile { draft, name, out } = self;
        let flushed = out.into_inner().map_err(io::IntoInnerError::into_error);
        let Hashed { hasher, len, .. } = flushed.map_err(draft.failed(&name))?;
        draft.add(name, len, &hasher);
        Ok(())
    }
}

impl Write for DraftFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
