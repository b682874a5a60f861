//! The byte format of records of the shared log.
//!
//! A record holds the transactions that a node appends together, and the chain of the previous record.
//! The chain of a record is the BLAKE3 hash of its bytes, so it stands for all records up to this one: two
//! nodes with the same chain have applied the same log.
//!
//! Layout, little-endian: version (1 byte), id (16), time in milliseconds since 1970 (8), chain of
//! the previous record (32), length of the node's name (1) and the name; then each transaction:
//! kind (2), length (4), payload.

use std::fmt;

use thiserror::Error;

use crate::journal::{PAYLOAD_BYTES_MAX, RecordKind};

/// Kind of journal records that hold copies of shared records: for each, its sequence number (8
/// bytes, little-endian), its length (4) and its bytes.
pub const SHARED: RecordKind = match RecordKind::for_caller(18) {
    Some(kind) => kind,
    None => panic!("18 is in the caller's range"),
};

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 1 + 16 + 8 + 32 + 1;
const PART_HEAD_BYTES: usize = 2 + 4;
const COPY_HEAD_BYTES: usize = 8 + 4;
/// Maximum length of a node's name, in bytes.
pub const NODE_BYTES_MAX: usize = 64;
/// Maximum length of a record. Servers accept 1 MiB including headers, and the journal 1 MiB including the head of a
/// copy.
pub const RECORD_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - (4 << 10);
/// Maximum length of the transactions of a record.
pub const PARTS_BYTES_MAX: usize = RECORD_BYTES_MAX - HEAD_BYTES - NODE_BYTES_MAX;
/// Maximum length of a transaction.
pub const TRANSACTION_BYTES_MAX: usize = PARTS_BYTES_MAX - PART_HEAD_BYTES;

/// Identifies a record. Random number, chosen by the node that builds the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(pub [u8; 16]);

/// Hash over all records up to and including one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chain(pub [u8; 32]);

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..8]))
    }
}

/// Position in the shared log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedPosition {
    /// Sequence number of the last record; 0 before the first.
    pub seq: u64,
    pub chain: Chain,
}

impl SharedPosition {
    /// Returns the position after a record.
    pub fn after(seq: u64, bytes: &[u8]) -> SharedPosition {
        SharedPosition { seq, chain: Chain(*blake3::hash(bytes).as_bytes()) }
    }
}

/// A transaction: its kind and its bytes.
pub type Part<'a> = (RecordKind, &'a [u8]);

/// A record, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRecord<'a> {
    pub id: RecordId,
    /// Timestamp by the clock of its node; informational.
    pub unix_ms: u64,
    /// Chain of the previous record.
    pub before: Chain,
    /// The node that built it.
    pub node: &'a str,
    pub parts: Vec<Part<'a>>,
}

/// Reason why bytes are not a record.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SharedRecordError {
    #[error("version {0} of the record is unknown; a newer dropdex wrote it")]
    Version(u8),
    #[error("the record is cut short or malformed")]
    Damaged,
}

impl<'a> SharedRecord<'a> {
    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.node.len() <= NODE_BYTES_MAX, "checked where settings are read");
        let parts: usize = self.parts.iter().map(|(_, payload)| part_bytes(payload.len())).sum();
        let len = HEAD_BYTES + self.node.len() + parts;
        let mut bytes = Vec::with_capacity(len);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.id.0);
        bytes.extend_from_slice(&self.unix_ms.to_le_bytes());
        bytes.extend_from_slice(&self.before.0);
        bytes.push(self.node.len() as u8);
        bytes.extend_from_slice(self.node.as_bytes());
        for (kind, payload) in &self.parts {
            bytes.extend_from_slice(&kind.number().to_le_bytes());
            bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            bytes.extend_from_slice(payload);
        }
        bytes
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// [`SharedRecordError`].
    pub fn decode(bytes: &'a [u8]) -> Result<SharedRecord<'a>, SharedRecordError> {
        match bytes.first() {
            Some(&VERSION) => SharedRecord::decode_known(bytes).ok_or(SharedRecordError::Damaged),
            Some(&other) => Err(SharedRecordError::Version(other)),
            None => Err(SharedRecordError::Damaged),
        }
    }

    fn decode_known(mut bytes: &'a [u8]) -> Option<SharedRecord<'a>> {
        let rest = &mut bytes;
        let _version = rest.split_off_first()?;
        let id = RecordId(take(rest)?);
        let unix_ms = u64::from_le_bytes(take(rest)?);
        let before = Chain(take(rest)?);
        let node_bytes = usize::from(*rest.split_off_first()?);
        let node = str::from_utf8(rest.split_off(..node_bytes)?).ok()?;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let kind = RecordKind::for_caller(u16::from_le_bytes(take(rest)?))?;
            let len = u32::from_le_bytes(take(rest)?) as usize;
            parts.push((kind, rest.split_off(..len)?));
        }
        Some(SharedRecord { id, unix_ms, before, node, parts })
    }
}

/// Size of a transaction of `len` bytes within a record.
pub fn part_bytes(len: usize) -> usize {
    PART_HEAD_BYTES + len
}

/// Appends a record to the payload of a [`SHARED`] record.
pub fn push_copy(payload: &mut Vec<u8>, seq: u64, record: &[u8]) {
    payload.extend_from_slice(&seq.to_le_bytes());
    payload.extend_from_slice(&(record.len() as u32).to_le_bytes());
    payload.extend_from_slice(record);
}

/// Returns true if a record of `len` bytes still fits a [`SHARED`] payload of `used` bytes.
pub fn copy_fits(used: usize, len: usize) -> bool {
    used + COPY_HEAD_BYTES + len <= PAYLOAD_BYTES_MAX
}

/// Sequence numbers and bytes of the records in a [`SHARED`] payload.
///
/// # Errors
/// [`SharedRecordError::Damaged`]: it is cut short.
pub fn copies(mut payload: &[u8]) -> Result<Vec<(u64, &[u8])>, SharedRecordError> {
    let mut copies = Vec::new();
    while !payload.is_empty() {
        copies.push(copy(&mut payload).ok_or(SharedRecordError::Damaged)?);
    }
    Ok(copies)
}

fn copy<'a>(payload: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let seq = u64::from_le_bytes(take(payload)?);
    let len = u32::from_le_bytes(take(payload)?) as usize;
    Some((seq, payload.split_off(..len)?))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    bytes.split_off(..N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(number: u16) -> RecordKind {
        RecordKind::for_caller(16 + number % 100).expect("from 16 on")
    }

    proptest! {
        #[test]
        fn records_decode_to_what_was_encoded(
            id: [u8; 16],
            unix_ms: u64,
            before: [u8; 32],
            node in "[a-z0-9-]{0,64}",
            parts: Vec<(u16, Vec<u8>)>,
        ) {
            let parts: Vec<Part<'_>> =
                parts.iter().map(|(number, payload)| (kind(*number), payload.as_slice())).collect();
            let message = SharedRecord { id: RecordId(id), unix_ms, before: Chain(before), node: &node, parts };
            let bytes = message.encode();
            prop_assert_eq!(SharedRecord::decode(&bytes), Ok(message));
            let mut payload = Vec::new();
            for seq in [1, unix_ms] {
                push_copy(&mut payload, seq, &bytes);
            }
            let expected = vec![(1, bytes.as_slice()), (unix_ms, bytes.as_slice())];
            prop_assert_eq!(copies(&payload), Ok(expected));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(mut bytes: Vec<u8>) {
            let _ = (SharedRecord::decode(&bytes), copies(&bytes));
            if let Some(first) = bytes.first_mut() {
                *first = VERSION;
            }
            if let Ok(message) = SharedRecord::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }
    }

    #[test]
    fn the_bytes_of_a_record_are_fixed() {
        let message = SharedRecord {
            id: RecordId([1; 16]),
            unix_ms: 2,
            before: Chain([3; 32]),
            node: "a",
            parts: vec![(kind(0), b"xy")],
        };
        let expected = [
            &[1][..],
            &[1; 16],
            &[2, 0, 0, 0, 0, 0, 0, 0],
            &[3; 32],
            &[1],
            b"a",
            &[16, 0, 2, 0, 0, 0],
            b"xy",
        ];
        assert_eq!(message.encode(), expected.concat());
        assert_eq!(SharedRecord::decode(&[9]), Err(SharedRecordError::Version(9)));
    }
}
