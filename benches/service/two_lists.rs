//! A corpus of a known list and a newer list, and the duration of work on it.

#[path = "small.rs"]
#[expect(dead_code, reason = "two lists are made here, not one")]
mod small;

use std::path::Path;
use std::time::Instant;

use dropdex::corpus::Corpus;
use dropdex::corpus::ingest::Source;
use dropdex::feeds::Row;
use dropdex::index::Index;
use dropdex::index::generation::build;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;

use crate::common::drops::{Drops, Mix};
use crate::common::names::Corpus as Names;

/// Number of rounds; the median is reported.
const ROUNDS: usize = 5;

/// Creates two generations: one of a known list, and one with a second list of `new` names that are
/// distributed over the others and all dropping.
///
/// # Errors
///
/// A stage fails.
pub fn make(
    folder: &Path,
    names: &Names,
    new: usize,
    today: Day,
    seed: u64,
) -> anyhow::Result<(Index, Index)> {
    let is_new = |at: &usize| (at * new) / names.len() != ((at + 1) * new) / names.len();
    let corpus = Corpus::open(&folder.join("data"))?;
    let dropping = Mix { recent: 1_000, released: 0, registered_again: 0, ..Mix::MARKET };
    let ingest = |list: u8, mix: Mix, day: Day| -> anyhow::Result<Index> {
        let of_list = (0..names.len()).filter(|at| is_new(at) == (list == 1));
        let now = Clock::pinned_to(day).now();
        let source = Source {
            name: format!("list {list}"),
            sha256: [list; 32],
            format: "bench".to_owned(),
            observed_at: now,
            ingested_at: now,
            origin: None,
            day: None,
            replaces: Vec::new(),
            zone: None,
        };
        let drops = Drops::new(seed, day, mix);
        let seen = drops.observations(of_list.map(|at| names.get(at)));
        corpus.ingest(&source, seen.map(|seen| Ok(Row::Seen(seen))))?;
        let (batches, settings) = (corpus.batches()?, build::BuildSettings::default());
        build::rebuild(&folder.join("index"), &batches, &[], settings, now)?;
        small::open(folder)
    };
    Ok((ingest(0, Mix::MARKET, today.plus(-1))?, ingest(1, dropping, today)?))
}

/// Repeats `work`; returns the median time in seconds, and its result.
pub fn median<T>(work: impl Fn() -> T) -> (f64, T) {
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        last = Some(work());
        seconds.push(begun.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    (seconds[ROUNDS / 2], last.expect("rounds were run"))
}
