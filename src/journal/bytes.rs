//! Little-endian numbers, and the header that segments, commit marks and snapshots have in common:
//!
//! ```text
//!  0  magic        8
//!  8  format       2  1
//! 10  min_reader   2  1
//! 12  store_uuid  16
//! 28  fields      32  by kind of file
//! 60  crc          4  CRC-32 of bytes 0..60
//! ```

use thiserror::Error;

/// The format this build writes.
pub const FORMAT: u16 = 1;

/// The oldest reader that can read what this build writes.
pub const MIN_READER: u16 = 1;

/// Random identity of a store.
pub type StoreUuid = [u8; 16];

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 64;
const CRC_AT: usize = 60;

/// Reason why bytes are not a header of a segment, a commit mark or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The file is shorter than a header. A crash cannot cause this: a segment gets its name only
    /// once its header is synced.
    #[error("the file has {found} bytes; a header has {HEADER_BYTES}")]
    Short {
        /// Number of bytes found.
        found: usize,
    },
    /// The first 8 bytes are those of another kind of file.
    #[error("it starts with {found}, expected {expected}", found = hex::encode(.found), expected = hex::encode(.expected))]
    Magic {
        /// The bytes found.
        found: [u8; 8],
        /// Magic bytes of a file of this kind.
        expected: [u8; 8],
    },
    /// The checksum does not match.
    #[error("its header has checksum {found:08x}, expected {expected:08x}")]
    Checksum {
        /// The checksum computed from the bytes.
        expected: u32,
        /// The stored checksum.
        found: u32,
    },
    /// A newer dropdex wrote the file.
    #[error(
        "it has format {format} and needs a reader of format {min_reader} or later; this dropdex \
         reads up to {FORMAT}. Use the dropdex that wrote it, or a later one"
    )]
    Newer {
        /// The format of the file.
        format: u16,
        /// The format that a reader must support to read the file.
        min_reader: u16,
    },
}

/// Encodes a header with `fields`, of at most 32 bytes.
pub(super) fn encode_header(
    magic: [u8; 8],
    store_uuid: &StoreUuid,
    fields: &[&[u8]],
) -> [u8; HEADER_BYTES] {
    let mut parts = magic.to_vec();
    parts.extend_from_slice(&FORMAT.to_le_bytes());
    parts.extend_from_slice(&MIN_READER.to_le_bytes());
    parts.extend_from_slice(store_uuid);
    fields.iter().for_each(|field| parts.extend_from_slice(field));
    let mut bytes = [0; HEADER_BYTES];
    bytes[..parts.len()].copy_from_slice(&parts);
    let crc = crc32fast::hash(&bytes[..CRC_AT]);
    bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Verifies the header at the start of `file`. The checksum is verified before the format numbers, so
/// that a flipped bit does not pass for a newer version.
pub(super) fn check_header(
    magic: [u8; 8],
    file: &[u8],
) -> Result<&[u8; HEADER_BYTES], HeaderError> {
    let bytes: &[u8; HEADER_BYTES] =
        file.first_chunk().ok_or(HeaderError::Short { found: file.len() })?;
    let found: [u8; 8] = array(bytes, 0);
    if found != magic {
        return Err(HeaderError::Magic { found, expected: magic });
    }
    let (expected, found) = (crc32fast::hash(&bytes[..CRC_AT]), u32_at(bytes, CRC_AT));
    if expected != found {
        return Err(HeaderError::Checksum { expected, found });
    }
    let (format, min_reader) = (u16_at(bytes, 8), u16_at(bytes, 10));
    if min_reader > FORMAT {
        return Err(HeaderError::Newer { format, min_reader });
    }
    Ok(bytes)
}

/// Returns the `N` bytes at offset `at`.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}
