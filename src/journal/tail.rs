//! Distinguishes the torn tail of a crash from damage to acknowledged records.
//!
//! In both cases a record has a wrong checksum. The following rules, applied in this order,
//! distinguish them by the possible effects of a crash:
//!
//! 1. The commit mark or a snapshot covers the record: it was synced, and has changed.
//! 2. The place holds an undamaged record, but not the next one: no crash moves a whole record.
//! 3. A later undamaged record states that the damaged one was synced: it has changed.
//! 4. Later records are undamaged, and none of them states that: a torn tail, consisting of one
//!    unacknowledged group that reached the disk out of order. The rule holds because a group is
//!    written only after the sync of its predecessor has returned.
//! 5. No undamaged record follows, and a sector of the rest was never written (zero, or past the
//!    end of the file): a torn tail.
//! 6. Flipping one bit repairs the record: it was written completely and has changed.
//! 7. Anything else is undecidable and refused.
//!
//! If the log ends cleanly, only the first rule applies: all records up to the mark must exist. In
//! segments before the last, all records are acknowledged: a segment is synced before the next is
//! created.

use super::bytes::StoreUuid;
use super::error::Damage;
use super::frame::{self, ALIGN, RECORD_HEADER_BYTES, RecordError};

/// The unit in which a disk writes.
const SECTOR_BYTES: usize = 512;
/// Records up to this length are tried with each bit flipped. For longer records that would take
/// seconds, so only the bits of the length are tried.
const REPAIR_BYTES_MAX: usize = 4096;

/// Where a walk through a segment ended.
pub(super) struct Ending<'a> {
    /// The segment.
    pub(super) file: &'a [u8],
    /// Offset at which the undamaged records end.
    pub(super) offset: usize,
    /// The store it belongs to.
    pub(super) store_uuid: &'a StoreUuid,
    /// The record that should start there.
    pub(super) seq: u64,
    /// True if the segment is the last one.
    pub(super) is_last: bool,
    /// The highest record known to be synced, and the source of this knowledge.
    pub(super) known: &'a SyncedRecord,
}

/// The highest record known to be synced, according to a source outside the log.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncedRecord {
    pub(super) seq: u64,
    /// Name of the source, such as "the commit mark".
    pub(super) by: &'static str,
}

/// Class of the bytes at the end of the log.
pub(super) enum Tail {
    /// An unacknowledged write that a crash interrupted.
    Torn,
    /// Undecidable whether the bytes were acknowledged.
    Ambiguous,
    /// Acknowledged, with the reason.
    Acknowledged(String),
}

impl SyncedRecord {
    /// Notes a synced record and its source.
    pub(super) fn learn(&mut self, seq: u64, by: &'static str) {
        if seq > self.seq {
            *self = SyncedRecord { seq, by };
        }
    }

    /// Evidence that record `seq` was synced, if any.
    pub(super) fn evidence(&self, seq: u64) -> Option<String> {
        (self.seq >= seq).then(|| format!("{} says that {} was synced", self.by, self.seq))
    }
}

impl Ending<'_> {
    /// Classifies the bytes in which `damage` was found.
    pub(super) fn classify(&self, damage: &Damage) -> Tail {
        if let Some(evidence) = self.known.evidence(self.seq) {
            return Tail::Acknowledged(evidence);
        }
        if !self.is_last {
            return Tail::Acknowledged("a later segment was created after its sync".into());
        }
        let Damage::Record(damage) = damage else {
            return Tail::Acknowledged("no crash moves a whole record".into());
        };
        if let RecordError::Flags { .. } = damage {
            return Tail::Acknowledged("its checksum fits".into());
        }
        let rest = &self.file[self.offset..];
        match later_record(rest, self.store_uuid, self.seq) {
            Some((later, durable)) if durable >= self.seq => {
                Tail::Acknowledged(format!("record {later} says that {durable} was synced"))
            }
            Some(_) => Tail::Torn,
            None if never_written(self.file, self.offset, damage) => Tail::Torn,
            None if is_one_bit_from_whole(rest, self.store_uuid) => {
                Tail::Acknowledged("it is whole but for one bit".into())
            }
            None => Tail::Ambiguous,
        }
    }
}

/// Returns the later undamaged record with the highest `durable_seq`: its number and that
/// `durable_seq`.
fn later_record(rest: &[u8], store_uuid: &StoreUuid, seq: u64) -> Option<(u64, u64)> {
    // No more than this many records fit before the offset; this rules out most offsets cheaply.
    let highest = seq + (rest.len() / RECORD_HEADER_BYTES) as u64;
    let mut best = None;
    let mut at = ALIGN;
    while at < rest.len() {
        let bytes = &rest[at..];
        let plausible = frame::claimed_seq(bytes).is_some_and(|it| it > seq && it <= highest);
        match plausible.then(|| frame::decode_record(bytes, store_uuid)) {
            Some(Ok(record)) => {
                let found = (record.fields.durable_seq, record.fields.seq);
                best = best.max(Some(found));
                at += frame::record_bytes(record.payload.len());
            }
            _ => at += ALIGN,
        }
    }
    best.map(|(durable, later)| (later, durable))
}

/// Returns true if flipping one bit repairs the record at the start of `rest`, which shows that the
/// record was written completely and has changed since.
fn is_one_bit_from_whole(rest: &[u8], store_uuid: &StoreUuid) -> bool {
    let len_bits = 32;
    let claimed = match rest.first_chunk::<4>() {
        Some(len) => RECORD_HEADER_BYTES.saturating_add(u32::from_le_bytes(*len) as usize),
        None => return false,
    };
    let most = rest.len().min(frame::record_bytes(super::PAYLOAD_BYTES_MAX));
    let mut copy = rest[..most].to_vec();
    let bits = if claimed <= REPAIR_BYTES_MAX.min(most) { claimed * 8 + 7 * 8 } else { len_bits };
    (0..bits.min(most * 8)).any(|bit| {
        copy[bit / 8] ^= 1 << (bit % 8);
        let whole = frame::decode_record(&copy, store_uuid).is_ok();
        copy[bit / 8] ^= 1 << (bit % 8);
        whole
    })
}

/// Returns true if a sector of the damaged record at `offset`, or of the bytes after it, was never
/// written.
fn never_written(file: &[u8], offset: usize, damage: &RecordError) -> bool {
    if let RecordError::Cut { .. } = damage {
        return true;
    }
    let rest = &file[offset..];
    let claimed = match (damage, rest.first_chunk::<4>()) {
        (RecordError::Checksum { .. }, Some(len)) => {
            frame::record_bytes(u32::from_le_bytes(*len) as usize)
        }
        _ => 0,
    };
    let end = offset + claimed.max(rest.len() - trailing_zeros(rest));
    sectors(file, offset, end.min(file.len())).any(|piece| piece.iter().all(|byte| *byte == 0))
}

/// Splits `file[start..end]` at the sector boundaries of the file.
fn sectors(file: &[u8], start: usize, end: usize) -> impl Iterator<Item = &[u8]> {
    let first_end = (start + 1).next_multiple_of(SECTOR_BYTES).min(end);
    let (first, others) = file[start..end].split_at(first_end - start);
    std::iter::once(first).chain(others.chunks(SECTOR_BYTES))
}

pub(super) fn trailing_zeros(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|byte| **byte == 0).count()
}
