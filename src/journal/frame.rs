//! Byte format of segment headers and records, format 1. All numbers are little-endian.
//!
//! A segment is one header and then records, each at an offset that is a multiple of 8. The rest of
//! the file after the last record is zeros.
//!
//! ```text
//! segment header, 64 bytes                 record, 56 bytes + payload + zeros to a multiple of 8
//!  0  magic        8  "ddxjrnl\n"            0  len          4  of the payload, without padding
//!  8  format       2  1                      4  crc          4
//! 10  min_reader   2  1                      8  seq          8  from 1, without gaps
//! 12  store_uuid  16  random, per store     16  durable_seq  8
//! 28  segment_no   8  from 1                24  epoch        4  one more at each open
//! 36  first_seq    8                        28  kind         2
//! 44  prev_chain  16                        30  flags        2
//! 60  crc          4  of bytes 0..60        32  unix_ms      8
//!                                           40  chain       16
//!                                           56  payload
//! ```
//!
//! - `crc` of a record is CRC-32 (ISO-HDLC, the crc32fast crate) of the store's uuid and then of
//!   every byte of the record except its own four. It detects every single flipped bit and every
//!   burst of up to 32. Because of the uuid, a payload that imitates a record and a record of another
//!   store are rejected.
//! - `chain` is the first 16 bytes of BLAKE3(store_uuid, chain of the previous record, header
//!   without crc and chain, payload). The chain detects records that were swapped, dropped,
//!   duplicated or spliced, which a checksum per record cannot. The chain includes no file name, so
//!   that a tail can move to another segment unchanged.
//! - `durable_seq` is the highest `seq` known to be synced when the record was written. It
//!   distinguishes acknowledged records from the tail of a crash.
//! - `flags`: a reader ignores unknown bits 0 to 7 and rejects unknown bits 8 to 15.

use thiserror::Error;

use super::PAYLOAD_BYTES_MAX;
use super::bytes::{self, HeaderError, StoreUuid, array, u16_at, u32_at, u64_at};

/// Bytes of a segment header.
pub const SEGMENT_HEADER_BYTES: usize = bytes::HEADER_BYTES;
/// Bytes of a record before its payload.
pub const RECORD_HEADER_BYTES: usize = 56;
/// Alignment of records.
pub const ALIGN: usize = 8;

const MAGIC: [u8; 8] = *b"ddxjrnl\n";
/// Flag bits that a reader must know to read the record.
const FLAGS_MUST_KNOW: u16 = 0xff00;
const CRC_AT: usize = 4;
const CHAIN_AT: usize = 40;

const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(ALIGN));
const _: () = assert!(RECORD_HEADER_BYTES.is_multiple_of(ALIGN));

/// A link of the hash chain; all zeros before the first record of a store.
pub type Chain = [u8; 16];

/// Kind of a record. The journal reserves the first 16 numbers; the others are the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordKind(u16);

impl RecordKind {
    /// The record that each open writes and syncs before anything else, to make its epoch durable.
    pub const OPENED: RecordKind = RecordKind(1);
    /// The record that a clean close writes and syncs last.
    pub const CLOSED: RecordKind = RecordKind(2);
    const FIRST_OF_CALLER: u16 = 16;

    /// Returns a kind of the caller; `None` for the reserved numbers 0 to 15.
    pub const fn for_caller(number: u16) -> Option<RecordKind> {
        if number < RecordKind::FIRST_OF_CALLER { None } else { Some(RecordKind(number)) }
    }

    /// Returns true for the journal's own records.
    pub fn is_journals_own(self) -> bool {
        self.0 < RecordKind::FIRST_OF_CALLER
    }

    /// Returns the stored form.
    pub fn number(self) -> u16 {
        self.0
    }
}

/// The first 64 bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The store to which the segment belongs.
    pub store_uuid: StoreUuid,
    /// Its number, from 1.
    pub segment_no: u64,
    /// The sequence number of its first record.
    pub first_seq: u64,
    /// The chain of the record before the first one of the segment.
    pub prev_chain: Chain,
}

impl SegmentHeader {
    /// Returns the stored form.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let (segment_no, first_seq) = (self.segment_no.to_le_bytes(), self.first_seq.to_le_bytes());
        let fields: [&[u8]; 3] = [&segment_no, &first_seq, &self.prev_chain];
        bytes::encode_header(MAGIC, &self.store_uuid, &fields)
    }

    /// Decodes the header at the start of `file`.
    ///
    /// # Errors
    /// [`HeaderError`].
    pub fn decode(file: &[u8]) -> Result<SegmentHeader, HeaderError> {
        let bytes = bytes::check_header(MAGIC, file)?;
        Ok(SegmentHeader {
            store_uuid: array(bytes, 12),
            segment_no: u64_at(bytes, 28),
            first_seq: u64_at(bytes, 36),
            prev_chain: array(bytes, 44),
        })
    }
}

/// Header fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFields {
    /// Sequence number in the store, from 1, without gaps.
    pub seq: u64,
    /// The highest `seq` known to be synced when the record was written.
    pub durable_seq: u64,
    /// Number of the opening of the store in which the record was written.
    pub epoch: u32,
    pub kind: RecordKind,
    /// Unused. Readers reject unknown bits 8 to 15 and ignore the others.
    pub flags: u16,
    /// Time of the write, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

/// A record, borrowed from the bytes of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its header.
    pub fields: RecordFields,
    /// The record's link in the chain, as stored.
    pub chain: Chain,
    /// The caller's payload.
    pub payload: &'a [u8],
}

/// Position of a journal after a record; the default is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The record's sequence number, 0 before the first.
    pub seq: u64,
    /// Its link in the chain.
    pub chain: Chain,
    /// The open that wrote it.
    pub epoch: u32,
}

impl Record<'_> {
    /// Returns the position of the journal after the record.
    pub(super) fn position(&self) -> Position {
        Position { seq: self.fields.seq, chain: self.chain, epoch: self.fields.epoch }
    }
}

/// Reason why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The end: no bytes are left, or only zeros.
    #[error("the end of the segment")]
    End,
    /// The file ends inside the record.
    #[error("the file ends inside the record: it needs {needed} bytes, {found} are left")]
    Cut {
        /// Length of the record in bytes.
        needed: usize,
        /// Bytes left in the file.
        found: usize,
    },
    /// The claimed length exceeds the maximum.
    #[error("it claims a payload of {len} bytes; the maximum is {PAYLOAD_BYTES_MAX}")]
    TooLong {
        /// The claimed length.
        len: u32,
    },
    /// The checksum does not match.
    #[error("its checksum is {found:08x}, expected {expected:08x}")]
    Checksum {
        /// The checksum computed from the bytes.
        expected: u32,
        /// The stored checksum.
        found: u32,
    },
    /// A newer dropdex wrote the record.
    #[error("it has flags {flags:04x}; bits from 0100 up need a newer dropdex")]
    Flags {
        /// The record's flags.
        flags: u16,
    },
}

/// Returns the size on disk of a record with a payload of `payload_len` bytes.
pub fn record_bytes(payload_len: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_len).next_multiple_of(ALIGN)
}

/// Appends the bytes of one record to `out` and returns its link in the chain.
///
/// The caller has checked that `payload` is at most [`PAYLOAD_BYTES_MAX`] long.
pub fn encode_record(
    out: &mut Vec<u8>,
    store_uuid: &StoreUuid,
    prev_chain: &Chain,
    fields: &RecordFields,
    payload: &[u8],
) -> Chain {
    let start = out.len();
    let mut header = [0; RECORD_HEADER_BYTES];
    header[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..16].copy_from_slice(&fields.seq.to_le_bytes());
    header[16..24].copy_from_slice(&fields.durable_seq.to_le_bytes());
    header[24..28].copy_from_slice(&fields.epoch.to_le_bytes());
    header[28..30].copy_from_slice(&fields.kind.0.to_le_bytes());
    header[30..32].copy_from_slice(&fields.flags.to_le_bytes());
    header[32..40].copy_from_slice(&fields.unix_ms.to_le_bytes());
    let chain = chain_of(store_uuid, prev_chain, &header, payload);
    header[CHAIN_AT..].copy_from_slice(&chain);
    out.extend_from_slice(&header);
    out.extend_from_slice(payload);
    out.resize(start + record_bytes(payload.len()), 0);
    let crc = record_crc(store_uuid, &out[start..]);
    out[start + CRC_AT..start + CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    chain
}

/// Decodes the record at the start of `bytes`, which extend to the end of the file.
///
/// Verifies the checksum, but not the chain; see [`expected_chain`].
///
/// # Errors
/// [`RecordError`]; [`RecordError::End`] is the ordinary end of a segment.
pub fn decode_record<'a>(
    bytes: &'a [u8],
    store_uuid: &StoreUuid,
) -> Result<Record<'a>, RecordError> {
    let Some(header) = bytes.first_chunk::<RECORD_HEADER_BYTES>() else {
        return Err(too_few(bytes, RECORD_HEADER_BYTES));
    };
    if *header == [0; RECORD_HEADER_BYTES] && bytes.iter().all(|byte| *byte == 0) {
        return Err(RecordError::End);
    }
    let len = u32_at(header, 0);
    if len as usize > PAYLOAD_BYTES_MAX {
        return Err(RecordError::TooLong { len });
    }
    let needed = record_bytes(len as usize);
    let Some(record) = bytes.get(..needed) else {
        return Err(too_few(bytes, needed));
    };
    let (expected, found) = (record_crc(store_uuid, record), u32_at(header, CRC_AT));
    if expected != found {
        return Err(RecordError::Checksum { expected, found });
    }
    let flags = u16_at(header, 30);
    if flags & FLAGS_MUST_KNOW != 0 {
        return Err(RecordError::Flags { flags });
    }
    Ok(Record {
        fields: RecordFields {
            seq: u64_at(header, 8),
            durable_seq: u64_at(header, 16),
            epoch: u32_at(header, 24),
            kind: RecordKind(u16_at(header, 28)),
            flags,
            unix_ms: u64_at(header, 32),
        },
        chain: array(header, CHAIN_AT),
        payload: &record[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + len as usize],
    })
}

/// Returns the chain that `record_bytes`, a whole record, must carry after `prev_chain`.
pub fn expected_chain(
    store_uuid: &StoreUuid,
    prev_chain: &Chain,
    record_bytes: &[u8],
    payload: &[u8],
) -> Option<Chain> {
    let header = record_bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
    Some(chain_of(store_uuid, prev_chain, header, payload))
}

/// Returns the unverified sequence number of a record at the start of `bytes`, to skip offsets that
/// cannot hold a record.
pub fn claimed_seq(bytes: &[u8]) -> Option<u64> {
    bytes.get(8..16).map(|seq| u64_at(seq, 0))
}

fn chain_of(
    store_uuid: &StoreUuid,
    prev_chain: &Chain,
    header: &[u8; RECORD_HEADER_BYTES],
    payload: &[u8],
) -> Chain {
    let mut hasher = blake3::Hasher::new();
    hasher.update(store_uuid);
    hasher.update(prev_chain);
    hasher.update(&header[..CRC_AT]);
    hasher.update(&header[CRC_AT + 4..CHAIN_AT]);
    hasher.update(payload);
    array(hasher.finalize().as_bytes(), 0)
}

fn record_crc(store_uuid: &StoreUuid, record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(store_uuid);
    hasher.update(&record[..CRC_AT]);
    hasher.update(&record[CRC_AT + 4..]);
    hasher.finalize()
}

fn too_few(bytes: &[u8], needed: usize) -> RecordError {
    if bytes.iter().all(|byte| *byte == 0) {
        RecordError::End
    } else {
        RecordError::Cut { needed, found: bytes.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: StoreUuid = *b"0123456789abcdef";

    fn fields(seq: u64) -> RecordFields {
        RecordFields {
            seq,
            durable_seq: seq - 1,
            epoch: 3,
            kind: RecordKind::for_caller(16).expect("the caller's"),
            flags: 0,
            unix_ms: 1_790_000_000_000,
        }
    }

    fn record(payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_record(&mut bytes, &UUID, &[7; 16], &fields(9), payload);
        bytes
    }

    #[test]
    fn the_bytes_of_format_1_never_change() {
        let header =
            SegmentHeader { store_uuid: UUID, segment_no: 2, first_seq: 9, prev_chain: [7; 16] };
        let golden = include_str!("../../tests/golden/journal-frame-v1.hex");
        let ours = format!(
            "segment header {}\nrecord, payload \"hello\" {}\nrecord, no payload {}\n",
            hex::encode(header.encode()),
            hex::encode(record(b"hello")),
            hex::encode(record(b"")),
        );
        assert_eq!(ours, golden);
    }

    #[test]
    fn headers_and_records_round_trip() {
        for len in [0, 1, 7, 8, 9, 1_000, PAYLOAD_BYTES_MAX] {
            let payload = vec![0xa5; len];
            let mut bytes = record(&payload);
            assert_eq!(bytes.len() % ALIGN, 0);
            bytes.extend_from_slice(&[0; 100]);
            let decoded = decode_record(&bytes, &UUID).expect("whole");
            assert_eq!(decoded.fields, fields(9));
            assert_eq!(decoded.payload, payload);
            assert_eq!(
                expected_chain(&UUID, &[7; 16], &bytes, decoded.payload),
                Some(decoded.chain)
            );
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_detected() {
        let whole = record(b"fourteen bytes");
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_record(&bytes, &UUID).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_segment_header_is_detected() {
        let whole =
            SegmentHeader { store_uuid: UUID, segment_no: 1, first_seq: 1, prev_chain: [0; 16] }
                .encode();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn newer_formats_are_rejected() {
        let mut bytes =
            SegmentHeader { store_uuid: UUID, segment_no: 1, first_seq: 1, prev_chain: [0; 16] }
                .encode();
        bytes[8..12].copy_from_slice(&[9, 0, 2, 0]);
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        let newer = HeaderError::Newer { format: 9, min_reader: 2 };
        assert_eq!(SegmentHeader::decode(&bytes), Err(newer));
        // A newer format that allows older readers is accepted.
        bytes[10] = 1;
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        assert!(SegmentHeader::decode(&bytes).is_ok());
    }

    #[test]
    fn lengths_beyond_the_file_are_rejected() {
        let mut huge = record(b"x");
        huge[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode_record(&huge, &UUID), Err(RecordError::TooLong { len: u32::MAX }));
        let whole = record(b"hello");
        for len in 1..whole.len() {
            let cut = decode_record(&whole[..len], &UUID);
            assert!(matches!(cut, Err(RecordError::Cut { found, .. }) if found == len), "{cut:?}");
        }
    }

    #[test]
    fn zeros_end_a_segment() {
        for len in [0, 1, 56, 4096] {
            assert_eq!(decode_record(&vec![0; len], &UUID), Err(RecordError::End));
        }
    }

    #[test]
    fn records_of_another_store_are_rejected() {
        let other = decode_record(&record(b"hello"), b"another store...").map(|_| ());
        assert!(matches!(other, Err(RecordError::Checksum { .. })), "{other:?}");
    }

    #[test]
    fn unknown_critical_flags_are_rejected() {
        for (flags, readable) in [(0x00ff, true), (0x0100, false), (0x8000, false)] {
            let mut bytes = Vec::new();
            encode_record(&mut bytes, &UUID, &[0; 16], &RecordFields { flags, ..fields(1) }, b"");
            assert_eq!(decode_record(&bytes, &UUID).is_ok(), readable, "{flags:04x}");
        }
    }
}
