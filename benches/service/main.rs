//! Measures the whole service: the steps from a list to a served index with their memory and CPU time,
//! and queries in this process, over HTTP, and in databases for comparison. Run by `benches/run`:
//!
//! `cargo bench --bench service -- measure --count N --json FILE` measures one size, `.. table FILE..`
//! combines the figures of all sizes. Without either option, the bench does nothing.

mod answer;
mod bare;
mod check;
mod client;
#[path = "../common/mod.rs"]
mod common;
mod curve;
mod hard;
mod market;
mod measure;
mod peers;
mod process;
mod queries;
mod report;
mod scan;
mod server;
mod stages;
mod timing;
mod wrk;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use dropdex::vocab::day::Day;
use report::Report;

/// The server's allocator: allocation is part of every response.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the whole service on a corpus generated from real names.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Given by `cargo bench`; changes nothing
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Measure one size
    Measure(Measure),
    /// Combine the figures of several sizes into one table
    Table(Table),
    /// Serve a route of static bytes; `measure` starts it
    #[command(hide = true)]
    Bare {
        #[arg(long)]
        bytes: usize,
    },
    /// The filter that `cargo bench FILTER` gives to every bench
    #[command(external_subcommand)]
    #[expect(dead_code, reason = "what the filter is does not matter")]
    Filter(Vec<String>),
}

/// One size.
#[derive(Args)]
struct Measure {
    /// Real names, one per line or in the first column of a CSV file; plain, gzip or zstd [default: the
    /// sample in data/sample]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Number of names
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(10_000..))]
    count: u32,
    /// Every name dropped, instead of one in seven
    #[arg(long)]
    all_dropped: bool,
    /// Memory that a rebuild may take [default: that of `dropdex`]
    #[arg(long, value_name = "MIB")]
    rebuild_memory: Option<u32>,
    /// Do not run the queries in databases
    #[arg(long)]
    without_peers: bool,
    /// The same seed gives the same corpus and queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The day of the lists and of the queries
    #[arg(long, default_value = "2026-11-20", value_name = "YYYY-MM-DD")]
    today: Day,
    /// File for the figures
    #[arg(long, value_name = "FILE")]
    json: PathBuf,
}

/// Some sizes.
#[derive(Args)]
struct Table {
    /// Files that `measure` wrote
    #[arg(required = true, value_name = "FILE")]
    json: Vec<PathBuf>,
    /// File for the curve [default: none is drawn]
    #[arg(long, value_name = "FILE.svg")]
    curve: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Some(Command::Measure(size)) => measure::run(&size),
        Some(Command::Table(table)) => show(&table),
        Some(Command::Bare { bytes }) => bare::serve(bytes),
        Some(Command::Filter(_)) | None => Ok(()),
    }
}

fn show(table: &Table) -> anyhow::Result<()> {
    let mut reports = Vec::new();
    for path in &table.json {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        reports.push(serde_json::from_slice::<Report>(&bytes)?);
    }
    reports.sort_by_key(|report| report.count);
    io::stdout().lock().write_all(report::table(&reports)?.as_bytes())?;
    if let Some(path) = &table.curve {
        fs::write(path, curve::svg(&reports)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
