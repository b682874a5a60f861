//! How far alert rules have been matched.

use crate::vocab::day::Day;

/// Everything up to here has been matched: all batches of the corpus up to and including `batch`,
/// with the stages that names had on `day`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark {
    /// The number of a batch; batches are numbered 1, 2, 3 and so on, 0 is before the first.
    pub batch: u64,
    /// The day whose stages were looked at.
    pub day: Day,
}
