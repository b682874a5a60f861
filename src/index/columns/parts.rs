//! Parts of a table. In: merged parts. Output: the same parts, in order, as often as a writer needs
//! them. Parts stay in memory while there is room. The other parts are written to a temporary file,
//! from which a writer reads the sections that it needs, a few parts at a time.
//!
//! The file has no name, so it disappears when the process ends in any way. Each column is verified
//! when it is read.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use rayon::prelude::*;

use crate::columns::part::{ColumnMover, Part, Section};
use crate::error::BuildError;
use crate::storage::space::Space;
use crate::vocab::file_error::AtPath;
use crate::vocab::new_file;

/// Name of the temporary file in its folder, removed once it is open.
const FILE: &str = "table";

/// Memory for the parts of a table, and a file for those that do not fit.
#[derive(Debug, Default)]
pub struct Room {
    /// The limit; `None` has room for every part.
    limited: Option<Limited>,
}

#[derive(Debug)]
struct Limited {
    /// Size of all parts in memory, in bytes.
    bytes: u64,
    /// Size of the parts that stay in memory.
    used: AtomicU64,
    spill: Spill,
}

/// Temporary file.
#[derive(Debug)]
struct Spill {
    file: File,
    path: PathBuf,
    end: AtomicU64,
    space: Option<Space>,
}

impl Room {
    /// Allows parts to take `bytes` of memory; the others are written to a file in `folder`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn limited(bytes: u64, folder: &Path) -> Result<Room, BuildError> {
        let path = folder.join(FILE);
        let file = new_file::create_new(&path);
        let file = file.at(&path)?;
        fs::remove_file(&path).at(&path)?;
        let space = Space::for_folder(folder).ok();
        let spill = Spill { file, path, end: AtomicU64::new(0), space };
        Ok(Room { limited: Some(Limited { bytes, used: AtomicU64::new(0), spill }) })
    }

    /// Returns the memory that a part may take while it is merged or read: half of the room is for
    /// the parts that stay in memory, and each thread has two other parts in memory.
    pub fn part_bytes(&self) -> u64 {
        let threads = rayon::current_num_threads() as u64;
        self.limited.as_ref().map_or(u64::MAX, |limited| limited.bytes / (4 * threads))
    }

    /// Keeps a part in memory or on disk.
    ///
    /// # Errors
    /// The disk is full.
    pub fn keep(&self, part: Part) -> Result<StoredPart, BuildError> {
        let Some(Limited { bytes, used, spill }) = &self.limited else {
            return Ok(StoredPart::Memory(Box::new(part)));
        };
        let own = part.bytes();
        let take = |used: u64| Some(used + own).filter(|used| *used <= bytes / 2);
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(StoredPart::Memory(Box::new(part))),
            Err(_) => Ok(StoredPart::Disk(spill.write(part)?)),
        }
    }

    fn spill(&self) -> &Spill {
        &self.limited.as_ref().expect("only limited rooms have parts on disk").spill
    }
}

impl Spill {
    fn write(&self, mut part: Part) -> Result<DiskPart, BuildError> {
        let (names, drops) = (part.len() as u32, part.drops.len() as u32);
        let mut sections: [Vec<DiskColumn>; Section::ALL.len()] = Default::default();
        for (section, columns) in Section::ALL.into_iter().zip(&mut sections) {
            part.move_section(section, &mut Writer { spill: self, columns })?;
        }
        Ok(DiskPart { first: 0, names, drops, tlds: Vec::new(), sections })
    }

    fn read(&self, stored: &DiskPart, wanted: &[Section]) -> Result<Part, BuildError> {
        let mut part = Part { first: stored.first, ..Part::default() };
        for &section in wanted {
            let columns = stored.sections[section as usize].iter();
            part.move_section(section, &mut Reader { spill: self, columns })?;
        }
        part.tld.iter_mut().for_each(|tld| *tld = stored.tlds[usize::from(*tld)]);
        Ok(part)
    }
}

/// A part in memory or on disk.
#[derive(Debug)]
pub enum StoredPart {
    Memory(Box<Part>),
    Disk(DiskPart),
}

/// The location of a part in the temporary file.
#[derive(Debug)]
pub struct DiskPart {
    first: u32,
    names: u32,
    drops: u32,
    /// TLD numbers of the table, by TLD number in the file.
    tlds: Vec<u16>,
    sections: [Vec<DiskColumn>; Section::ALL.len()],
}

#[derive(Debug)]
struct DiskColumn {
    at: u64,
    /// Number of values.
    len: usize,
    hash: blake3::Hash,
}

struct Writer<'a> {
    spill: &'a Spill,
    columns: &'a mut Vec<DiskColumn>,
}

impl ColumnMover for Writer<'_> {
    fn column<T: Pod>(&mut self, column: &mut Vec<T>) -> Result<(), BuildError> {
        let Spill { file, path, end, space } = self.spill;
        let bytes: &[u8] = bytemuck::cast_slice(column);
        if let Some(space) = space {
            space.leave_room(bytes.len() as u64)?;
        }
        let at = end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        file.write_all_at(bytes, at).at(path)?;
        self.columns.push(DiskColumn { at, len: column.len(), hash: blake3::hash(bytes) });
        Ok(())
    }
}

struct Reader<'a> {
    spill: &'a Spill,
    columns: std::slice::Iter<'a, DiskColumn>,
}

impl ColumnMover for Reader<'_> {
    fn column<T: Pod>(&mut self, column: &mut Vec<T>) -> Result<(), BuildError> {
        let Spill { file, path, .. } = self.spill;
        let stored = self.columns.next().expect("a section has the columns that were written");
        *column = vec![T::zeroed(); stored.len];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(column);
        file.read_exact_at(bytes, stored.at).at(path)?;
        if blake3::hash(bytes) != stored.hash {
            let changed = "a temporary file changed while it was in use; check disk and memory";
            return Err(io::Error::new(io::ErrorKind::InvalidData, changed)).at(path)?;
        }
        Ok(())
    }
}

/// A part with at least the requested sections.
enum LoadedPart<'a> {
    Memory(&'a Part),
    Read(Box<Part>),
}

impl Deref for LoadedPart<'_> {
    type Target = Part;

    fn deref(&self) -> &Part {
        match self {
            LoadedPart::Memory(part) => part,
            LoadedPart::Read(part) => part,
        }
    }
}

/// All parts of a table, in name order.
#[derive(Debug, Default)]
pub struct Parts {
    room: Room,
    stored: Vec<StoredPart>,
    /// Number of names.
    names: u32,
}

impl Parts {
    /// Creates an empty list of parts that `room` keeps.
    pub fn new(room: Room) -> Parts {
        Parts { room, ..Parts::default() }
    }

    /// Appends a part; `tlds` holds the TLD numbers of the table, by TLD number in the part.
    ///
    /// # Errors
    /// The names exceed the number of ordinals.
    pub fn push(&mut self, mut stored: StoredPart, tlds: Vec<u16>) -> Result<(), BuildError> {
        let first = self.names;
        let names = match &mut stored {
            StoredPart::Memory(part) => {
                part.first = first;
                part.tld.iter_mut().for_each(|tld| *tld = tlds[usize::from(*tld)]);
                part.len()
            }
            StoredPart::Disk(part) => {
                (part.first, part.tlds) = (first, tlds);
                part.names as usize
            }
        };
        let all = u32::try_from(names).ok().and_then(|names| first.checked_add(names));
        self.names = all.ok_or(BuildError::TooMany { what: "names", limit: u32::MAX.into() })?;
        self.stored.push(stored);
        Ok(())
    }

    /// Returns the number of names.
    pub fn names(&self) -> u32 {
        self.names
    }

    /// Returns the number of names that dropped.
    pub fn drops(&self) -> u32 {
        let drops = |stored: &StoredPart| match stored {
            StoredPart::Memory(part) => part.drops.len() as u32,
            StoredPart::Disk(part) => part.drops,
        };
        self.stored.iter().map(drops).sum()
    }

    /// Calls `map` with all parts, on all cores, and `take` with its results, in order. Only the
    /// given sections of a part are read from disk. Each thread has up to two parts in memory at a
    /// time.
    ///
    /// # Errors
    /// A part cannot be read, or `take` fails.
    pub fn for_each<T: Send>(
        &self,
        sections: &[Section],
        map: impl Fn(&Part) -> T + Sync,
        mut take: impl FnMut(&Part, T) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        for wave in self.stored.chunks(2 * rayon::current_num_threads()) {
            let mapped = wave.par_iter().map(|stored| {
                let part = self.load(stored, sections)?;
                let mapped = map(&part);
                Ok((part, mapped))
            });
            for (part, mapped) in mapped.collect::<Result<Vec<_>, BuildError>>()? {
                take(&part, mapped)?;
            }
        }
        Ok(())
    }

    fn load<'a>(
        &self,
        stored: &'a StoredPart,
        sections: &[Section],
    ) -> Result<LoadedPart<'a>, BuildError> {
        match stored {
            StoredPart::Memory(part) => Ok(LoadedPart::Memory(part)),
            StoredPart::Disk(part) => {
                Ok(LoadedPart::Read(Box::new(self.room.spill().read(part, sections)?)))
            }
        }
    }
}

#[cfg(test)]
impl FromIterator<Part> for Parts {
    /// Keeps all parts in memory; their TLD numbers are those of the table.
    fn from_iter<I: IntoIterator<Item = Part>>(all: I) -> Parts {
        let mut parts = Parts::default();
        for part in all {
            let part = StoredPart::Memory(Box::new(part));
            parts.push(part, (0..=u16::MAX).collect()).expect("few names");
        }
        parts
    }
}

#[cfg(test)]
impl Parts {
    /// Returns the parts, all of which must be in memory.
    pub fn iter(&self) -> impl Iterator<Item = &Part> {
        self.stored.iter().map(|stored| match stored {
            StoredPart::Memory(part) => &**part,
            StoredPart::Disk(_) => panic!("a part is on disk"),
        })
    }

    /// Returns the number of parts on disk.
    pub fn on_disk(&self) -> usize {
        self.stored.iter().filter(|stored| matches!(stored, StoredPart::Disk(_))).count()
    }

    /// As [`Parts::iter`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        self.stored.iter_mut().map(|stored| match stored {
            StoredPart::Memory(part) => &mut **part,
            StoredPart::Disk(_) => panic!("a part is on disk"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::TestTables;

    #[test]
    fn a_part_that_changed_on_disk_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let room = Room::limited(0, folder.path()).expect("a file");
        let table = TestTables::new(5).table(200);
        let mut parts = Parts::new(room);
        for part in table.parts.iter() {
            let mut copy = Part { first: part.first, ..Part::default() };
            copy.text.clone_from(&part.text);
            copy.spans.clone_from(&part.spans);
            copy.label_len.clone_from(&part.label_len);
            let stored = parts.room.keep(copy).expect("written");
            parts.push(stored, (0..=u16::MAX).collect()).expect("few names");
        }
        let read = |parts: &Parts| {
            let mut names: Vec<Vec<u8>> = Vec::new();
            parts.for_each(
                &[Section::Names],
                |_| (),
                |part, ()| {
                    names.extend(part.names().map(<[u8]>::to_vec));
                    Ok(())
                },
            )?;
            Ok::<_, BuildError>(names)
        };
        let names: Vec<&[u8]> = table.parts.iter().flat_map(Part::names).collect();
        assert_eq!(read(&parts).expect("as written"), names);
        let spill = parts.room.spill();
        spill.file.write_all_at(b"!", 3).expect("writable");
        let refused = read(&parts).expect_err("changed").to_string();
        assert!(refused.contains("changed while it was in use"), "{refused}");
        spill.file.set_len(1).expect("writable");
        read(&parts).expect_err("cut short");
    }
}
