//! Converts a zone file, or the list of a registry, to a sorted file of names.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;

use super::error::ZoneError;
use super::names::{NamesReader, NamesWriter};
use crate::vocab::file_error::AtPath;
use crate::vocab::ns_class::NsClass;

/// Number of bytes of names that are sorted at once if a zone file is not sorted.
const RUN_BYTES: usize = 48 << 20;

/// A name of a zone.
pub struct Owner<'a> {
    pub name: &'a [u8],
    /// Class of its first name server.
    pub class: Option<NsClass>,
}

/// The names of a zone in file order, each without the apex and with a trailing dot.
pub trait Names {
    /// Name of the zone, in lower case and without a trailing dot.
    fn apex(&self) -> &str;

    /// Returns the next name; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, or has another format.
    fn next(&mut self) -> Result<Option<Owner<'_>>, ZoneError>;

    /// Returns the serial number. All names must have been read before the call.
    ///
    /// # Errors
    /// The file is incomplete.
    fn serial(&self) -> Result<u32, ZoneError>;
}

/// Facts about a zone file that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub apex: String,
    pub serial: u32,
    pub names: u64,
}

/// Opens a zone file with `open` and writes its distinct names to `into`, in order. Published zone files
/// are sorted; otherwise the names are sorted in `scratch`.
///
/// # Errors
/// The zone file is incomplete, or a file cannot be written.
pub fn take<N: Names>(
    open: impl Fn() -> Result<N, ZoneError>,
    into: &Path,
    scratch: &Path,
) -> Result<Snapshot, ZoneError> {
    let mut owners = open()?;
    let mut writer = NamesWriter::create(into)?;
    while let Some(Owner { name, class }) = owners.next()? {
        if writer.push(name, [NsClass::number(class)])? == Ordering::Less {
            return sort(open()?, into, scratch);
        }
    }
    let serial = owners.serial()?;
    Ok(Snapshot { apex: owners.apex().to_owned(), serial, names: writer.finish()? })
}

fn sort(mut owners: impl Names, into: &Path, scratch: &Path) -> Result<Snapshot, ZoneError> {
    let folder = tempfile::tempdir_in(scratch).at(scratch)?;
    let (mut run, mut runs) = (Run::default(), Vec::new());
    while let Some(Owner { name, class }) = owners.next()? {
        run.push(name, NsClass::number(class));
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
    let mut readers: Vec<NamesReader<1>> =
        runs.iter().map(|path| NamesReader::open(path)).collect::<Result<_, _>>()?;
    let first = |reader: &NamesReader<1>| reader.name().map(|(name, class)| (name.to_vec(), class));
    let next = |(at, it): (usize, &NamesReader<1>)| {
        first(it).map(|(name, class)| Reverse((name, at, class)))
    };
    let mut heap: BinaryHeap<_> = readers.iter().enumerate().filter_map(next).collect();
    let mut writer = NamesWriter::create(into)?;
    while let Some(Reverse((name, at, class))) = heap.pop() {
        writer.push(&name, class)?;
        readers[at].next()?;
        heap.extend(next((at, &readers[at])));
    }
    Ok(Snapshot { apex: owners.apex().to_owned(), serial, names: writer.finish()? })
}

/// Names to sort in memory.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    /// Position of each name in `bytes`, and the number of its class.
    places: Vec<(u32, u32, u8)>,
}

impl Run {
    fn push(&mut self, name: &[u8], class: u8) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        self.places.push((start, self.bytes.len() as u32, class));
    }

    /// Writes the names, and clears the buffer.
    fn write(&mut self, path: &Path) -> Result<(), ZoneError> {
        let name = |&(start, end, _): &(u32, u32, u8)| &self.bytes[start as usize..end as usize];
        let mut places = std::mem::take(&mut self.places);
        places.sort_by(|one, other| name(one).cmp(name(other)));
        let mut writer = NamesWriter::create(path)?;
        for place in &places {
            writer.push(name(place), [place.2])?;
        }
        writer.finish()?;
        self.bytes.clear();
        Ok(())
    }
}
