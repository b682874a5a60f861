//! A zone file as a sorted file of names.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;

use super::error::ZoneError;
use super::names::{NamesReader, NamesWriter};
use super::owners::Owners;
use crate::vocab::file_error::AtPath;

/// Bytes of names sorted at once when a zone file is not sorted.
const RUN_BYTES: usize = 48 << 20;

/// A zone file that was read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub apex: String,
    pub serial: u32,
    pub names: u64,
}

/// Writes the names that a zone file delegates to `into`, sorted, each once. Published files are sorted;
/// names of others are sorted in `scratch`.
///
/// # Errors
/// The zone file is not whole, or a file cannot be written.
pub fn take(zone: &Path, into: &Path, scratch: &Path) -> Result<Snapshot, ZoneError> {
    let mut owners = Owners::open(zone)?;
    let mut writer = NamesWriter::create(into)?;
    while let Some(owner) = owners.next()? {
        if writer.push(owner, [])? == Ordering::Less {
            return sort(zone, into, scratch);
        }
    }
    let serial = owners.serial()?;
    Ok(Snapshot { apex: owners.apex().to_owned(), serial, names: writer.finish()? })
}

fn sort(zone: &Path, into: &Path, scratch: &Path) -> Result<Snapshot, ZoneError> {
    let folder = tempfile::tempdir_in(scratch).at(scratch)?;
    let (mut owners, mut run, mut runs) = (Owners::open(zone)?, Run::default(), Vec::new());
    while let Some(owner) = owners.next()? {
        run.push(owner);
        if run.bytes.len() >= RUN_BYTES {
            let path = folder.path().join(runs.len().to_string());
            run.write(&path)?;
            runs.push(path);
        }
    }
    let serial = owners.serial()?;
    let path = folder.path().join(runs.len().to_string());
    run.write(&path)?;
    runs.push(path);
    let mut readers: Vec<NamesReader<0>> =
        runs.iter().map(|path| NamesReader::open(path)).collect::<Result<_, _>>()?;
    let first = |reader: &NamesReader<0>| reader.name().map(|(name, _)| name.to_vec());
    let mut heap: BinaryHeap<_> =
        (0..).zip(&readers).filter_map(|(at, it)| Some(Reverse((first(it)?, at)))).collect();
    let mut writer = NamesWriter::create(into)?;
    while let Some(Reverse((name, at))) = heap.pop() {
        let at: usize = at;
        writer.push(&name, [])?;
        readers[at].next()?;
        heap.extend(first(&readers[at]).map(|name| Reverse((name, at))));
    }
    Ok(Snapshot { apex: owners.apex().to_owned(), serial, names: writer.finish()? })
}

/// Names that are sorted in memory.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    /// Where each name is in `bytes`.
    places: Vec<(u32, u32)>,
}

impl Run {
    fn push(&mut self, name: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        self.places.push((start, self.bytes.len() as u32));
    }

    /// Writes the names, and is empty again.
    fn write(&mut self, path: &Path) -> Result<(), ZoneError> {
        let name = |&(start, end): &(u32, u32)| &self.bytes[start as usize..end as usize];
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        let mut writer = NamesWriter::create(path)?;
        for place in &places {
            writer.push(name(place), [])?;
        }
        writer.finish()?;
        self.bytes.clear();
        Ok(())
    }
}
