//! Rows in memory with their scores and score features.

use rayon::prelude::*;

use crate::batch::{Entry, StoredObservation};
use crate::feeds::Sighting;
use crate::scorer::{Base, Scorer, Scratch};
use crate::vocab::name::DomainName;

/// Number of rows that one task scores. The features of these rows share a buffer.
const CHUNK_ROWS: usize = 4_096;

/// One row of a batch.
pub struct ScoredRow {
    pub name: DomainName,
    pub record: StoredObservation,
    base: Base,
    /// Location of the row's features: chunk, start and length.
    features: (u32, u32, u8),
}

/// The score features of rows, one buffer per chunk. Only drops have features.
#[derive(Default)]
pub struct Features(Vec<Vec<u8>>);

impl ScoredRow {
    /// Creates a row without a score.
    pub fn unscored(name: DomainName, record: StoredObservation) -> ScoredRow {
        ScoredRow { name, record, base: Base::from_bits(0), features: (0, 0, 0) }
    }
}

impl Features {
    /// Scores `rows` on all cores.
    pub fn score(rows: &mut [ScoredRow]) -> Features {
        let scorer = Scorer::shared();
        let chunks = rows.par_chunks_mut(CHUNK_ROWS).enumerate();
        let bytes = chunks.map_init(Scratch::default, |scratch, (chunk, rows)| {
            let mut bytes = Vec::new();
            for row in rows {
                let start = bytes.len();
                row.base = score(scorer, &row.name, row.record.sighting, scratch, &mut bytes);
                let len = u8::try_from(bytes.len() - start).unwrap_or(0);
                row.features = (chunk as u32, start as u32, len);
            }
            bytes
        });
        Features(bytes.collect())
    }

    /// Returns the batch entry of a row scored by [`Features::score`], or of an unscored row if
    /// `self` is the default.
    pub fn entry<'a>(&'a self, row: &'a ScoredRow) -> Entry<'a> {
        let (chunk, start, len) = row.features;
        let (start, end) = (start as usize, start as usize + usize::from(len));
        let chunk = self.0.get(chunk as usize).map_or(&[][..], Vec::as_slice);
        Entry {
            name: row.name.as_str().as_bytes(),
            label_len: row.name.label_len(),
            length: row.name.length(),
            base: row.base,
            features: chunk.get(start..end).unwrap_or_default(),
            record: row.record,
        }
    }
}

/// Scores a name. For a drop, appends the score features to `out`.
pub fn score(
    scorer: &Scorer,
    name: &DomainName,
    sighting: Sighting,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Base {
    match sighting {
        Sighting::Dropped { .. } | Sighting::Released { .. } => {
            scorer.base_with_features(name, scratch, out)
        }
        Sighting::Registered { .. } | Sighting::Known { .. } => scorer.base(name, scratch),
    }
}
