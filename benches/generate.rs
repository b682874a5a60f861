//! Generates a corpus of any size from a list of real names, and reports the rate; with `--csv FILE` it
//! also writes the corpus with its drops, in the native format.
//!
//! `cargo bench --bench generate -- --names FILE --count 10000000 --csv FILE`; `--help` lists all
//! options.

mod common;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::Parser;
use common::cargo::CargoArguments;
use common::drops::{Drops, Mix, write_csv};
use common::names::{Corpus, RealNames};
use dropdex::vocab::day::Day;

/// Generates a corpus of any size from a list of real names, and drops for it.
#[derive(Parser)]
struct Arguments {
    /// Real names, one per line or in the first column of a CSV file; plain, gzip or zstd [default: the
    /// sample in data/sample]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Number of names
    #[arg(long, default_value_t = 1_000_000)]
    count: usize,
    /// The same seed gives the same corpus
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The day of the lists; no drop is later
    #[arg(long, default_value = "2026-11-20", value_name = "YYYY-MM-DD")]
    today: Day,
    /// Write the corpus with its drops to this file (.gz compresses it)
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    cargo: CargoArguments,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.cargo.skip("generate") {
        return Ok(());
    }
    let path = arguments.names.unwrap_or_else(RealNames::sample_path);
    let mut out = io::stdout().lock();

    let started = Instant::now();
    let real = RealNames::read(&path)?;
    let (names, refused) = (real.names().len(), real.refused());
    writeln!(out, "read      {} {refused} refused", pace(names, started))?;

    let started = Instant::now();
    let corpus = real.extend(arguments.count, arguments.seed)?;
    let octets = corpus.text_len() as f64 / corpus.len().max(1) as f64;
    writeln!(out, "made      {} {octets:.1} bytes a name", pace(corpus.len(), started))?;

    let drops = Drops::new(arguments.seed, arguments.today, Mix::MARKET);
    let started = Instant::now();
    let observed = drops.observations(corpus.iter()).count();
    writeln!(out, "observed  {}", pace(observed, started))?;

    if let Some(path) = arguments.csv {
        let started = Instant::now();
        write_file(&path, &corpus, &drops).with_context(|| path.display().to_string())?;
        writeln!(out, "written   {} {}", pace(observed, started), path.display())?;
    }
    Ok(())
}

/// Returns `count` and the time as a row.
fn pace(count: usize, started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    format!("{count:>11} in {seconds:>7.2} s {:>11.0} /s", count as f64 / seconds)
}

fn write_file(path: &std::path::Path, corpus: &Corpus, drops: &Drops) -> io::Result<()> {
    let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let observations = drops.observations(corpus.iter());
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        write_csv(observations, &mut packed)?;
        return packed.finish()?.flush();
    }
    let mut file = file;
    write_csv(observations, &mut file)?;
    file.flush()
}
