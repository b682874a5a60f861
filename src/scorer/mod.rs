//! Names in, [`Dqs`] with its reasons out. Pure: no clock, no I/O, so the same name always gets
//! the same score.

use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

/// Which scorer gave a score. Any change to a score, signal or explanation raises it, and the
/// next rebuild scores the whole corpus again.
pub const SCORER_VERSION: u32 = 1;

/// The score of a name but for `tldSpread`, which only the whole corpus knows: computed once at
/// ingest, kept in the batch, finished at rebuild by [`Base::with_spread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base(u32);

impl Base {
    /// As a batch stores it.
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// What [`Base::to_bits`] gave, by the same [`SCORER_VERSION`].
    pub fn from_bits(bits: u32) -> Base {
        Base(bits)
    }

    /// The score of the name when the corpus holds its label in `tld_spread` TLDs (1 or more).
    pub fn with_spread(self, tld_spread: u32) -> Dqs {
        Dqs::clamped(self.0 as i32 + tld_spread.ilog2() as i32)
    }
}

/// Placeholder until the scorer lands.
pub fn base(name: &DomainName) -> Base {
    Base(100 - u32::from(name.length()))
}
