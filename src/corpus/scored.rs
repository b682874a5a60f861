//! Rows in memory with their scores, and what the scores were made from.

use rayon::prelude::*;

use crate::corpus::batch::{Entry, Record};
use crate::feeds::Sighting;
use crate::scorer::{Base, Scorer, Scratch};
use crate::vocab::name::DomainName;

/// Rows that one task scores, whose evidence stands together.
const PIECE_ROWS: usize = 4_096;

/// One row, as a [`Entry`] has it.
pub struct ScoredRow {
    pub name: DomainName,
    pub record: Record,
    base: Base,
    /// Where its evidence stands: number of the piece, start and length in it.
    evidence: (u32, u32, u8),
}

/// The evidence of rows: only drops have any.
#[derive(Default)]
pub struct Evidences(Vec<Vec<u8>>);

impl ScoredRow {
    /// A row without a score.
    pub fn unscored(name: DomainName, record: Record) -> ScoredRow {
        ScoredRow { name, record, base: Base::from_bits(0), evidence: (0, 0, 0) }
    }
}

impl Evidences {
    /// Scores `rows` on all cores.
    pub fn score(rows: &mut [ScoredRow]) -> Evidences {
        let scorer = Scorer::shared();
        let pieces = rows.par_chunks_mut(PIECE_ROWS).enumerate();
        let bytes = pieces.map_init(Scratch::default, |scratch, (piece, rows)| {
            let mut bytes = Vec::new();
            for row in rows {
                let start = bytes.len();
                row.base = score(scorer, &row.name, row.record.sighting, scratch, &mut bytes);
                let len = u8::try_from(bytes.len() - start).unwrap_or(0);
                row.evidence = (piece as u32, start as u32, len);
            }
            bytes
        });
        Evidences(bytes.collect())
    }

    /// `row`, one of those scored (or never scored, with the default of this), for a batch.
    pub fn entry<'a>(&'a self, row: &'a ScoredRow) -> Entry<'a> {
        let (piece, start, len) = row.evidence;
        let (start, end) = (start as usize, start as usize + usize::from(len));
        let piece = self.0.get(piece as usize).map_or(&[][..], Vec::as_slice);
        Entry {
            name: row.name.as_str().as_bytes(),
            label_len: row.name.label_len(),
            length: row.name.length(),
            base: row.base,
            evidence: piece.get(start..end).unwrap_or_default(),
            record: row.record,
        }
    }
}

/// The score of a name of which `sighting` was seen; its evidence is appended to `out` for a drop.
pub fn score(
    scorer: &Scorer,
    name: &DomainName,
    sighting: Sighting,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Base {
    match sighting {
        Sighting::Dropped { .. } => scorer.base_with_evidence(name, scratch, out),
        Sighting::Registered { .. } | Sighting::Known { .. } => scorer.base(name, scratch),
    }
}
