//! An index of names generated from the sample: a million, or `DROPDEX_BENCH_COUNT`.

#[path = "small.rs"]
mod small;

use dropdex::index::Index;
use dropdex::index::filter::AsOf;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::limits::CATCH_DAYS_DEFAULT;
use tempfile::TempDir;

use crate::common::drops::{Drops, Mix};
use crate::common::names::{Corpus, RealNames};

pub const SEED: u64 = 1;
const TODAY: &str = "2026-11-20";
const COUNT_DEFAULT: usize = 1_000_000;

/// Generated names and their index.
pub struct Sample {
    /// The folder of the index, which is removed on drop.
    pub folder: TempDir,
    pub names: Corpus,
    pub drops: Drops,
    pub index: Index,
    pub as_of: AsOf,
}

/// Generates the names and builds their index.
///
/// # Errors
/// A stage fails.
pub fn make(mix: Mix) -> anyhow::Result<Sample> {
    let count = std::env::var("DROPDEX_BENCH_COUNT").ok().and_then(|count| count.parse().ok());
    let as_of = AsOf { today: TODAY.parse()?, catch_days: CATCH_DAYS_DEFAULT };
    let drops = Drops::new(SEED, as_of.today, mix);
    let names = RealNames::read(&RealNames::sample_path())?;
    let names = names.extend(count.unwrap_or(COUNT_DEFAULT), SEED)?;
    let folder = tempfile::tempdir()?;
    let now = Clock::pinned_to(as_of.today).now();
    small::build(folder.path(), names.iter(), &drops, now)?;
    let index = small::open(folder.path())?;
    Ok(Sample { folder, names, drops, index, as_of })
}
