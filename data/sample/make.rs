//! Generates the sample: `cargo run --example make-sample -- LIST | gzip -9n > data/sample/sample.csv.gz`.
//!
//! LIST is a list of real names, one per line; README.md beside this file names it. The same list
//! gives the same sample.

#[path = "../../benches/common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Parser;
use common::drops::{Drops, Mix, write_csv};
use common::names::RealNames;
use common::rng::Rng;
use dropdex::vocab::day::Day;
use dropdex::vocab::name::DomainName;

/// Names in the sample.
const COUNT: usize = 50_000;
/// One name in this many is moved to .com, since the list holds none.
const MOVED_ONE_OF: u64 = 3;
/// The last drop date of the sample.
const TODAY: &str = "2026-11-20";
/// Seed of the dates.
const DROPS_SEED: u64 = 20_261_120;
/// Seed of the names. It differs from that of the dates, so that names and dates are independent.
const NAMES_SEED: u64 = 20_261_121;

/// Generates the sample from a list of real names; writes CSV to standard output.
#[derive(Parser)]
struct Arguments {
    /// Real names, one per line; plain, gzip or zstd.
    list: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let list = RealNames::read(&Arguments::parse().list)?;
    let names = choose(&list);
    ensure!(names.len() == COUNT, "the list has only {} names; {COUNT} are needed", names.len());
    let today: Day = TODAY.parse().context("TODAY is a date")?;
    let drops = Drops::new(DROPS_SEED, today, Mix::SAMPLE);
    let mut out = BufWriter::new(io::stdout().lock());
    write_csv(drops.observations(names.into_iter()), &mut out)?;
    out.flush().context("writing the sample")
}

/// Returns [`COUNT`] names taken evenly from the list, some of them moved to .com.
fn choose(list: &RealNames) -> BTreeSet<DomainName> {
    let mut shuffled: Vec<(u64, &DomainName)> =
        list.names().iter().map(|name| (Rng::of(NAMES_SEED, name.as_str()).next(), name)).collect();
    shuffled.sort_unstable();
    let mut chosen = BTreeSet::new();
    for (order, name) in shuffled {
        let moved = Rng::at(NAMES_SEED, order).below(MOVED_ONE_OF) == 0;
        let in_com = moved.then(|| DomainName::parse(&format!("{}.com", name.label())).ok());
        chosen.insert(in_com.flatten().unwrap_or_else(|| name.clone()));
        if chosen.len() == COUNT {
            break;
        }
    }
    chosen
}
