//! Sorts rows by name in bounded memory: full runs are sorted and written to a temporary folder, then merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use tempfile::TempDir;

use crate::vocab::name::DomainName;

/// Bytes of the names of a run, about a million; sorting it takes five times as much.
const RUN_BYTES: usize = 16 << 20;

/// Collects rows of a name and `N` numbers. Of two rows with one name, the smaller numbers count.
pub(super) struct Sorter<const N: usize> {
    folder: TempDir,
    names: Vec<u8>,
    /// The end of each name in `names`, and its numbers.
    rows: Vec<(usize, [u32; N])>,
    runs: Vec<File>,
    run_bytes: usize,
}

impl<const N: usize> Sorter<N> {
    /// Creates a sorter with a new folder under `scratch`.
    pub(super) fn new(scratch: &Path) -> io::Result<Sorter<N>> {
        let folder = tempfile::Builder::new().prefix(".sorting-").tempdir_in(scratch)?;
        let (names, rows, runs) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Sorter { folder, names, rows, runs, run_bytes: RUN_BYTES })
    }

    pub(super) fn push(&mut self, name: &DomainName, numbers: [u32; N]) -> io::Result<()> {
        self.names.extend_from_slice(name.as_str().as_bytes());
        self.rows.push((self.names.len(), numbers));
        if self.names.len() >= self.run_bytes { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        let starts = std::iter::once(0).chain(self.rows.iter().map(|(end, _)| *end));
        let name = |(start, (end, numbers)): (usize, &(usize, [u32; N]))| {
            (&self.names[start..*end], *numbers)
        };
        let mut rows: Vec<(&[u8], [u32; N])> = starts.zip(&self.rows).map(name).collect();
        rows.sort_unstable();
        rows.dedup_by_key(|(name, _)| *name);
        let mut file = BufWriter::new(tempfile::tempfile_in(self.folder.path())?);
        for (name, numbers) in rows {
            file.write_all(&[name.len() as u8])?;
            file.write_all(name)?;
            numbers.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))?;
        }
        self.runs.push(file.into_inner().map_err(io::IntoInnerError::into_error)?);
        self.names.clear();
        self.rows.clear();
        Ok(())
    }

    /// Sorts the last run and returns the rows of all.
    pub(super) fn finish(mut self) -> io::Result<SortedRows<N>> {
        self.spill()?;
        let mut rows = SortedRows { runs: Vec::new(), next: BinaryHeap::new(), last: Vec::new() };
        for mut file in self.runs {
            io::Seek::rewind(&mut file)?;
            rows.runs.push(BufReader::with_capacity(256 << 10, file));
            rows.refill(rows.runs.len() - 1)?;
        }
        Ok(rows)
    }
}

/// A name, its numbers, and the run that they are from.
type RunRow<const N: usize> = (Vec<u8>, [u32; N], usize);

/// Rows in the order of their names, each name once.
pub(super) struct SortedRows<const N: usize> {
    runs: Vec<BufReader<File>>,
    /// The next row of each run.
    next: BinaryHeap<Reverse<RunRow<N>>>,
    last: Vec<u8>,
}

impl<const N: usize> SortedRows<N> {
    pub(super) fn next_row(&mut self) -> io::Result<Option<(&str, [u32; N])>> {
        while let Some(Reverse((name, numbers, run))) = self.next.pop() {
            self.refill(run)?;
            if name != self.last {
                self.last = name;
                let name = std::str::from_utf8(&self.last).map_err(io::Error::other)?;
                return Ok(Some((name, numbers)));
            }
        }
        Ok(None)
    }

    fn refill(&mut self, run: usize) -> io::Result<()> {
        let file = &mut self.runs[run];
        let mut length = [0];
        match file.read_exact(&mut length) {
            Err(err) if err.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let (mut name, mut numbers) = (vec![0; length[0].into()], [0; N]);
        file.read_exact(&mut name)?;
        for number in &mut numbers {
            let mut bytes = [0; 4];
            file.read_exact(&mut bytes)?;
            *number = u32::from_le_bytes(bytes);
        }
        self.next.push(Reverse((name, numbers, run)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_name_comes_once_in_order_with_its_least_numbers_for_any_number_of_runs() {
        let mut seed = 1_u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        let rows: Vec<(String, [u32; 3])> =
            (0..4_000).map(|_| (format!("a{}.com", next() % 900), [next(), next(), 0])).collect();
        let mut expected = BTreeMap::<&str, [u32; 3]>::new();
        for (name, numbers) in &rows {
            let least = expected.entry(name).or_insert(*numbers);
            *least = (*least).min(*numbers);
        }
        let scratch = tempfile::tempdir().expect("a folder");
        for run_bytes in [1 << 20, 8_000, 100] {
            let mut sorter = Sorter::new(scratch.path()).expect("a sorter");
            sorter.run_bytes = run_bytes;
            for (name, numbers) in &rows {
                let name = DomainName::parse(name).expect("a name");
                sorter.push(&name, *numbers).expect("pushed");
            }
            let mut sorted = sorter.finish().expect("sorted");
            let mut found = Vec::new();
            while let Some((name, numbers)) = sorted.next_row().expect("read") {
                found.push((name.to_owned(), numbers));
            }
            let expected = expected.iter().map(|(name, numbers)| ((*name).to_owned(), *numbers));
            assert_eq!(found, expected.collect::<Vec<_>>(), "runs of {run_bytes}");
        }
        assert_eq!(std::fs::read_dir(scratch.path()).expect("a folder").count(), 0);
    }
}
