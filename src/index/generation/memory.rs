//! Memory of a rebuild: the limit for the parts of the table, and whether writers run concurrently.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::columns::parts::Room;
use crate::columns::table::Table;
use crate::corpus::batch::Batch;
use crate::error::BuildError;
use crate::query::index::Contains;
use crate::vocab::memory;

/// Memory that all concurrent writers take, in bytes per name: separators and offsets of blocks,
/// then a key, a row and a key by TLD.
const BYTES_PER_NAME: u64 = 10;
/// Memory that all concurrent writers take, in bytes per drop: doc, row, columns, record, and one
/// posting for each of a dozen trigrams. Each core that writes fast fields takes 10 MB as well.
const BYTES_PER_DROP: u64 = 150;

/// Size of the trigrams of all names, in bytes per name, and the number of names above which a list
/// cannot hold them.
const GRAM_BYTES_PER_NAME: u64 = 5;
const GRAM_NAMES_MAX: u32 = 800_000_000;

/// Size of the table relative to the corpus: 1.6, regardless of how many names dropped.
const TABLE_BYTES_PER_CORPUS_BYTE: u64 = 2;

/// Limit on the memory of a rebuild until the new generation is verified. Invariant: at least
/// [`MemoryBound::MIN_MIB`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBound {
    bytes: u64,
}

impl MemoryBound {
    /// Minimum; with less memory, the table would be cut into parts of only a few thousand names.
    pub const MIN_MIB: u32 = 16;
    /// Upper bound of the setting.
    pub const MAX_MIB: u32 = 64 << 20;

    /// Returns `None` below the minimum.
    pub fn from_mib(mib: u32) -> Option<MemoryBound> {
        (mib >= MemoryBound::MIN_MIB).then(|| MemoryBound { bytes: u64::from(mib) << 20 })
    }

    /// Returns the bound in bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Creates a bound below the minimum of the setting.
    #[cfg(test)]
    pub fn tiny() -> MemoryBound {
        MemoryBound { bytes: 64 << 10 }
    }

    /// Returns the room for the parts of the table, which is half of the memory. Parts for which
    /// there is no room are written to a file in `folder`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn room(self, folder: &Path) -> Result<Room, BuildError> {
        Room::limited(self.bytes / 2, folder)
    }

    /// Returns the bytes that the table of `batches` may take on disk.
    pub fn on_disk(self, batches: &[Batch]) -> u64 {
        let bytes = batches.iter().map(Batch::size).sum::<u64>() * TABLE_BYTES_PER_CORPUS_BYTE;
        // A quarter of the memory is for parts that stay in memory.
        if bytes > self.bytes / 4 { bytes } else { 0 }
    }

    /// Returns which names of `table` get trigrams, with which text is found anywhere in them: the trigrams
    /// of all names may take a quarter of the memory.
    pub fn contains(self, table: &Table) -> Contains {
        let bytes = u64::from(table.len()) * GRAM_BYTES_PER_NAME;
        let fits = bytes <= self.bytes / 4 && table.len() <= GRAM_NAMES_MAX;
        if fits { Contains::All } else { Contains::Drops }
    }

    /// Returns true if the other half is enough for all writers at once.
    pub fn allows_side_by_side(self, table: &Table) -> bool {
        let (names, drops) = (u64::from(table.len()), u64::from(table.dropped()));
        names * BYTES_PER_NAME + drops * BYTES_PER_DROP <= self.bytes / 2
    }
}

impl Default for MemoryBound {
    /// Returns the default: half of the memory of the machine or its control group. The server has
    /// the other half.
    fn default() -> MemoryBound {
        let least = u64::from(MemoryBound::MIN_MIB) << 20;
        MemoryBound { bytes: (memory::available_bytes() / 2).max(least) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::fixtures::TestTables;

    #[test]
    fn trigrams_of_all_names_take_a_quarter_of_the_memory_at_most() {
        let contains = |names| MemoryBound::tiny().contains(&TestTables::new(4).table(names));
        assert_eq!([500, 20_000].map(contains), [Contains::All, Contains::Drops]);
    }
}
