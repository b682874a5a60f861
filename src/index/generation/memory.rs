//! Memory of a rebuild: what the parts of the table may take, and whether writers run side by side.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::columns::parts::Room;
use crate::columns::table::Table;
use crate::corpus::batch::Batch;
use crate::error::BuildError;
use crate::vocab::memory;

/// Memory that all writers take side by side, in bytes a name: separators and offsets of blocks, then a
/// key, a row and a key by TLD.
const BYTES_PER_NAME: u64 = 10;
/// The same in bytes a drop: doc, row, columns, record, and a posting of each of a dozen trigrams.
const BYTES_PER_DROP: u64 = 150;

/// Size of the table by that of the corpus: 1.6, whether few names dropped or all.
const TABLE_BYTES_PER_CORPUS_BYTE: u64 = 2;

/// Memory of a rebuild until the new generation is verified. Invariant: at least [`MemoryBound::MIN_MIB`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBound {
    bytes: u64,
}

impl MemoryBound {
    /// Less would cut the table into parts of a few thousand names.
    pub const MIN_MIB: u32 = 16;
    /// Upper bound of the setting.
    pub const MAX_MIB: u32 = 64 << 20;

    /// Returns `None` below the minimum.
    pub fn from_mib(mib: u32) -> Option<MemoryBound> {
        (mib >= MemoryBound::MIN_MIB).then(|| MemoryBound { bytes: u64::from(mib) << 20 })
    }

    /// The bound in bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Creates a bound that no setting allows.
    #[cfg(test)]
    pub fn tiny() -> MemoryBound {
        MemoryBound { bytes: 64 << 10 }
    }

    /// Returns room for the parts of the table, half of the memory; the others go to a file in `folder`.
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

    /// Returns true if the other half is enough for all writers at once.
    pub fn allows_side_by_side(self, table: &Table) -> bool {
        let (names, drops) = (u64::from(table.len()), u64::from(table.dropped()));
        names * BYTES_PER_NAME + drops * BYTES_PER_DROP <= self.bytes / 2
    }
}

impl Default for MemoryBound {
    /// Half of the machine's memory, or of that of its control group: the server has the other.
    fn default() -> MemoryBound {
        let least = u64::from(MemoryBound::MIN_MIB) << 20;
        MemoryBound { bytes: (memory::available_bytes() / 2).max(least) }
    }
}
