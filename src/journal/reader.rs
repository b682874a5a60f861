//! Walks the records of a segment as long as they are undamaged and in sequence.

use super::bytes::StoreUuid;
use super::error::Damage;
use super::frame::{self, Position, Record, RecordError, SEGMENT_HEADER_BYTES};

/// Result of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkEnd {
    /// Position after the last undamaged record.
    pub position: Position,
    /// Offset of the next record in the file.
    pub offset: u64,
    /// Damage to the bytes at `offset`; `None` at the ordinary end.
    pub damage: Option<Damage>,
}

/// Visits each undamaged record of `file`, a whole segment with a verified header, and passes its
/// offset. Stops after record `up_to`, if given.
///
/// # Errors
/// The first error of `visit`. Damage is returned in [`WalkEnd::damage`].
pub fn walk<E>(
    file: &[u8],
    store_uuid: &StoreUuid,
    start: Position,
    up_to: Option<u64>,
    mut visit: impl FnMut(u64, &Record<'_>) -> Result<(), E>,
) -> Result<WalkEnd, E> {
    let mut position = start;
    let mut at = SEGMENT_HEADER_BYTES;
    let damage = loop {
        match next(&file[at..], store_uuid, &position) {
            Ok(record) if up_to.is_some_and(|up_to| record.fields.seq > up_to) => break None,
            Ok(record) => {
                visit(at as u64, &record)?;
                position = record.position();
                at += frame::record_bytes(record.payload.len());
            }
            Err(Damage::Record(RecordError::End)) => break None,
            Err(damage) => break Some(damage),
        }
    };
    Ok(WalkEnd { position, offset: at as u64, damage })
}

/// Decodes the record at the start of `bytes`, if it follows `position`.
fn next<'a>(
    bytes: &'a [u8],
    store_uuid: &StoreUuid,
    position: &Position,
) -> Result<Record<'a>, Damage> {
    let record = frame::decode_record(bytes, store_uuid)?;
    let expected = position.seq + 1;
    if record.fields.seq != expected {
        return Err(Damage::Sequence { expected, found: record.fields.seq });
    }
    let chain = frame::expected_chain(store_uuid, &position.chain, bytes, record.payload);
    match chain {
        Some(expected) if expected != record.chain => {
            Err(Damage::Chain { expected, found: record.chain })
        }
        _ => Ok(record),
    }
}
