//! The folder of all sets.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::draft::{CopyError, Draft, MANIFEST};
use crate::table::Column;
use crate::vocab::day::Day;
use crate::vocab::file_error::{AtPath, FileError};
use crate::vocab::new_file;
use crate::{About, FileName, Format, Kind, Set, SetName};

/// Prefix of the folders of unfinished sets.
const DRAFT: &str = ".new-";
/// Name of the folder in the data folder.
const FOLDER: &str = "export-files";
/// Bytes that are hashed at a time.
const HASHED_BYTES: usize = 1 << 16;

/// The folder with all sets. It is read for each request: it has a dozen small manifests, and a set that an
/// operator removes or damages is gone at once.
#[derive(Clone, Debug)]
pub struct Copies {
    folder: PathBuf,
}

impl Copies {
    /// The sets below a data folder.
    pub fn new(data: &Path) -> Copies {
        Copies { folder: data.join(FOLDER) }
    }

    /// Returns the complete sets, the newest day first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn sets(&self) -> io::Result<Vec<Set>> {
        let mut sets = Vec::new();
        for name in self.names()? {
            sets.extend(name.parse().ok().and_then(|name| self.set(name)));
        }
        sets.sort_unstable_by_key(|set: &Set| (std::cmp::Reverse(set.name.day), set.name.kind));
        Ok(sets)
    }

    /// Returns the newest day of a complete pipeline, and that of changes.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn newest(&self) -> io::Result<[Option<Day>; 2]> {
        let sets = self.sets()?;
        let of_kind = |kind| sets.iter().find(|set| set.name.kind == kind).map(|set| set.name.day);
        Ok([of_kind(Kind::Pipeline), of_kind(Kind::Changes)])
    }

    /// Returns a set if it is complete: its manifest can be read, and each file has its size.
    pub fn set(&self, name: SetName) -> Option<Set> {
        let folder = self.folder.join(name.to_string());
        let set: Set = serde_json::from_slice(&fs::read(folder.join(MANIFEST)).ok()?).ok()?;
        let is_whole = |format| {
            let file = set.file(format)?;
            let path = folder.join(FileName { set: name, format }.to_string());
            let found = fs::symlink_metadata(path).ok()?;
            (found.is_file() && found.len() == file.bytes).then_some(())
        };
        let is_complete =
            set.name == name && Format::ALL.into_iter().all(|format| is_whole(format).is_some());
        is_complete.then_some(set)
    }

    /// Opens a file of a complete set.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(&self, name: FileName) -> io::Result<Option<(Set, File)>> {
        let Some(set) = self.set(name.set) else { return Ok(None) };
        match File::open(self.folder.join(name.set.to_string()).join(name.to_string())) {
            // It was just removed.
            Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
            file => Ok(Some((set, file?))),
        }
    }

    /// Writes a set; `fill` writes its rows. Replaces an incomplete set of this name.
    ///
    /// # Errors
    /// `fill` fails, or a file cannot be written.
    pub fn write<E: From<CopyError>>(
        &self,
        name: SetName,
        columns: &'static [Column],
        about: About,
        fill: impl FnOnce(&mut Draft) -> Result<(), E>,
    ) -> Result<Set, E> {
        let (whole, draft) =
            (self.folder.join(name.to_string()), self.folder.join(format!("{DRAFT}{name}")));
        let written = self.write_draft(&draft, name, columns, about, fill);
        let renamed = written.and_then(|set| Ok(self.put(&draft, &whole).map(|()| set)?));
        if renamed.is_err() {
            Draft::discard(&draft);
        }
        renamed
    }

    fn write_draft<E: From<CopyError>>(
        &self,
        draft: &Path,
        name: SetName,
        columns: &'static [Column],
        about: About,
        fill: impl FnOnce(&mut Draft) -> Result<(), E>,
    ) -> Result<Set, E> {
        new_file::create_folder(&self.folder).at(&self.folder).map_err(CopyError::from)?;
        Draft::discard(draft);
        let mut files = Draft::create(draft, name, columns)?;
        fill(&mut files)?;
        Ok(files.finish(about)?)
    }

    fn put(&self, draft: &Path, whole: &Path) -> Result<(), CopyError> {
        match fs::remove_dir_all(whole) {
            Err(err) if err.kind() != ErrorKind::NotFound => Err(err).at(whole)?,
            _ => {}
        }
        fs::rename(draft, whole).at(whole)?;
        self.sync()?;
        Ok(())
    }

    /// Whether each file of a set has its checksum.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn is_sound(&self, set: &Set) -> Result<bool, FileError> {
        for file in &set.files {
            let name = FileName { set: set.name, format: file.format }.to_string();
            let path = self.folder.join(set.name.to_string()).join(name);
            if sha256(&path).at(&path)? != file.sha256 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the sets, complete or not, that `keeps` does not select, and unfinished ones. Other files
    /// stay.
    ///
    /// # Errors
    /// The folder cannot be read, or a set cannot be removed.
    pub fn retain(&self, keeps: impl Fn(SetName) -> bool) -> Result<(), FileError> {
        for name in self.names().at(&self.folder)? {
            let is_draft = name.starts_with(DRAFT);
            if is_draft || name.parse().is_ok_and(|name| !keeps(name)) {
                let path = self.folder.join(&name);
                fs::remove_dir_all(&path).at(&path)?;
            }
        }
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
        entries.filter_map(|entry| name(entry).transpose()).collect()
    }

    fn sync(&self) -> Result<(), FileError> {
        File::open(&self.folder).and_then(|folder| folder.sync_all()).at(&self.folder)
    }
}

fn sha256(path: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; HASHED_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}
