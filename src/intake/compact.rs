//! Decides when a rebuild compacts the corpus; `corpus::compact` merges the batches.

use crate::corpus::batch::Batch;
use crate::corpus::{Corpus, CorpusError};
use crate::index::storage::space::Space;
use crate::request::Site;

/// Number of newest lists that keep their own batches, because an operator may want to remove them.
const LISTS_APART: usize = 8;

/// Compacts the corpus when it has more batches than `site` allows, and returns its batches.
///
/// Compaction only saves time, so a rebuild continues if it fails.
///
/// # Errors
/// The batches cannot be read again.
pub fn compact_if_many(
    corpus: &Corpus,
    site: &Site,
    batches: Vec<Batch>,
) -> Result<Vec<Batch>, CorpusError> {
    let above = site.compact_above as usize;
    if above == 0 || batches.len() <= above {
        return Ok(batches);
    }
    match compact(corpus, site, &batches) {
        Ok(()) => corpus.batches(),
        Err(err) => {
            tracing::warn!(error = format!("{err:#}"), "compaction failed");
            Ok(batches)
        }
    }
}

fn compact(corpus: &Corpus, site: &Site, batches: &[Batch]) -> anyhow::Result<()> {
    // The merged batch takes as much space again.
    let bytes = batches.iter().map(Batch::size).sum();
    Space::for_folder(&site.data)?.leave_room(bytes)?;
    corpus.compact(batches, LISTS_APART)?;
    Ok(())
}
